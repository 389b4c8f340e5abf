// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* RoCEv2 receive on UDP sockets (IBTA A17.3): datagrams, or GRO trains of datagrams of equal length, to packets. */
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce/roce_internal.h"

#define BUDGET     (4 * ROCE_RECVS) /* datagrams or trains per turn of the loop */
#define SINGLE_MAX 16               /* single datagrams in a row before the next try to receive a batch */

static void get_control(struct msghdr *m, struct wire_roce *r, u32 *segment)
{
	struct cmsghdr *c;
	int v;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		v = *CMSG_DATA(c);
		if (c->cmsg_len >= CMSG_LEN(sizeof(v)))
			memcpy(&v, CMSG_DATA(c), sizeof(v));
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && v > 0)
			*segment = (u32)v;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			r->tos = (u8)v;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			r->ttl = (u8)v;
	}
}

bool roce_origin(const struct roce_endpoint *ep, struct msghdr *m, struct wire_roce *r, u32 *segment)
{
	struct ip_addr src;

	*r = (struct wire_roce){ .dst = ep->gid, .ttl = ROCE_TTL };
	if (!ip_sockaddr_get(m->msg_name, &src, &r->sport))
		return false;
	r->src = wire_gid_from_bytes(src.raw);
	get_control(m, r, segment);
	return true;
}

/*
 * Passes a packet to the transport or the MAD layer, and drops it if they refuse it: Ethernet has no backpressure here.
 */
static void packet_deliver(struct roce_port *rp, struct wire_packet *p)
{
	u32 qpn = wire_bth_qpn(wire_packet_bth(p));
	const struct wire_port_user *u = qpn == 1 ? &rp->wire.mad : &rp->wire.data;

	if (!qpn || !u->receive || u->receive(u->ctx, p) == -EAGAIN) {
		roce_count(rp, ROCE_CTR_REFUSED);
		wire_packet_free(p);
	}
}

void roce_arrived(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	roce_count(rp, ROCE_CTR_RECEIVED);
	rp->counter[ROCE_CTR_RECEIVED_BYTES] += wire_roce_len(p);
	if ((r->tos & WIRE_ECN_MASK) == WIRE_ECN_CE)
		roce_count(rp, ROCE_CTR_ECN);
	p->in_port = rp->wire.num;
	roce_tap(rp, p, r, false);
	packet_deliver(rp, p);
}

void roce_parsed(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	if (!p)
		roce_count(rp, errno == EILSEQ ? ROCE_CTR_ICRC : ROCE_CTR_MALFORMED);
	else if (!roce_faulty(rp))
		roce_arrived(rp, p, r);
	else
		roce_fault_arrived(rp, p, r);
}

void roce_recv_packet(struct roce_port *rp, struct wire_buf *buf, u32 off, u32 len, const struct wire_roce *r)
{
	roce_parsed(rp, wire_roce_parse(buf, off, len, r), r);
}

/* Does the message continue after a packet with @opcode? */
static bool continues_message(u8 opcode)
{
	const struct wire_opcode *op = wire_opcode(opcode);

	return op && op->flags & WIRE_OPF_PAYLOAD && !(op->flags & WIRE_OPF_END);
}

void roce_recv_train(struct roce_endpoint *ep, struct wire_buf *buf, u32 len, struct msghdr *m)
{
	u32 segment = len, off;
	struct wire_roce r;

	if (!len || m->msg_flags & MSG_TRUNC || !roce_origin(ep, m, &r, &segment)) {
		roce_count(ep->port, ROCE_CTR_MALFORMED);
		return;
	}
	if (ep->own && wire_gid_equal(&r.src, &ep->own->gid))
		return; /* multicast sent by this port: local members have received it already */
	for (off = 0; off < len; off += segment, r.id++) {
		ep->mid_message = continues_message(buf->data[off]);
		roce_recv_packet(ep->port, buf, off, min(segment, len - off), &r);
	}
}

/* Replaces buffers that packets still reference. */
static bool rx_buffers_refill(struct roce_port *rp, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (rp->rx[i] && rp->rx[i]->refs == 1)
			continue;
		wire_buf_put(rp->rx[i]);
		rp->rx[i] = wire_buf_alloc(ROCE_TRAIN);
		if (!rp->rx[i])
			return false;
	}
	return true;
}

static u32 recv_datagrams(struct roce_endpoint *ep, u32 most)
{
	static u8 control[ROCE_RECVS][ROCE_CONTROL] __attribute__((aligned(8)));
	union ip_sockaddr from[ROCE_RECVS];
	struct mmsghdr m[ROCE_RECVS];
	struct iovec iov[ROCE_RECVS];
	u32 i;
	int n;

	if (!rx_buffers_refill(ep->port, most))
		return 0;
	memset(m, 0, most * sizeof(m[0]));
	for (i = 0; i < most; i++) {
		iov[i] = (struct iovec){ ep->port->rx[i]->data, ROCE_TRAIN };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						.msg_namelen = sizeof(from[i]),
						.msg_iov = &iov[i],
						.msg_iovlen = 1,
						.msg_control = control[i],
						.msg_controllen = ROCE_CONTROL };
	}
	n = recvmmsg(ep->rx.fd, m, most, MSG_DONTWAIT, NULL);
	ep->next_known &= n <= 0;
	for (i = 0; (int)i < n; i++)
		roce_recv_train(ep, ep->port->rx[i], m[i].msg_len, &m[i].msg_hdr);
	return n < 0 ? 0 : (u32)n;
}

/*
 * Batch size of recvmmsg(). 1 within a long message, since the next train may be eligible for zero-copy; also 1 while
 * datagrams arrive one at a time, since a larger batch costs an extra poll of the socket, which adds latency to short
 * messages.
 */
static u32 recv_batch(const struct roce_endpoint *ep)
{
	return ep->mid_message || ep->single % SINGLE_MAX ? 1 : ROCE_RECVS;
}

void roce_recv(struct roce_endpoint *ep)
{
	u32 done = 0, most, got;

	loop_stay_awake(ep->port->loop); /* a wake-up costs the sender more than polling costs the receiver */
	do {
		bool may_zcopy = ep->mid_message && !roce_faulty(ep->port);
		enum roce_zcopy zcopy = may_zcopy ? roce_zcopy_recv(ep) : ROCE_ZCOPY_NONE;

		done++;
		if (zcopy == ROCE_ZCOPY_DONE)
			continue;
		if (zcopy == ROCE_ZCOPY_EMPTY)
			break;
		most = recv_batch(ep);
		got = recv_datagrams(ep, most);
		done += got;
		ep->single = got == 1 && !ep->mid_message ? ep->single + 1 : 0;
		if (got < most || ep->single % SINGLE_MAX)
			break;
	} while (done < BUDGET);
}
