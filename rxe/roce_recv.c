// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Receiving on a RoCEv2 port: datagrams, which may come as trains of equal length (UDP GRO), to packets. */
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce_internal.h"

#define BUDGET (4 * ROCE_RECVS) /* datagrams or trains before others have their turn */
#define ALONE  16               /* single ones before it is asked whether more of them wait */

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

/* To the transport or the MAD layer. What they do not take is lost, as on any Ethernet. */
static void deliver(struct roce_port *rp, struct wire_packet *p)
{
	u32 qpn = wire_bth_qpn((const struct wire_bth *)(p->hdr + p->bth_off));
	const struct wire_port_user *u = qpn == 1 ? &rp->wire.mad : &rp->wire.data;

	if (!qpn || !u->receive || u->receive(u->ctx, p) == -EAGAIN) {
		roce_count(rp, ROCE_CTR_REFUSED);
		wire_packet_free(p);
	}
}

void roce_arrived(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	roce_count(rp, ROCE_CTR_RECEIVED);
	if ((r->tos & WIRE_ECN_MASK) == WIRE_ECN_CE)
		roce_count(rp, ROCE_CTR_ECN);
	p->in_port = rp->wire.num;
	roce_tap(rp, p, r, false);
	deliver(rp, p);
}

void roce_parsed(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	if (!p)
		roce_count(rp, errno == EILSEQ ? ROCE_CTR_ICRC : ROCE_CTR_MALFORMED);
	else if (likely(list_empty(&rp->faults)) || roce_fault_pass(rp, p, false))
		roce_arrived(rp, p, r);
}

void roce_take(struct roce_port *rp, struct wire_buf *buf, u32 off, u32 len, const struct wire_roce *r)
{
	roce_parsed(rp, wire_roce_parse(buf, off, len, r), r);
}

/* Does the message of the packet that begins with @opcode go on? */
static bool is_midst(u8 opcode)
{
	const struct wire_opcode *op = wire_opcode(opcode);

	return op && op->flags & WIRE_OPF_PAYLOAD && !(op->flags & WIRE_OPF_END);
}

void roce_take_train(struct roce_endpoint *ep, struct wire_buf *buf, u32 len, struct msghdr *m)
{
	u32 segment = len, off;
	struct wire_roce r;

	if (!len || m->msg_flags & MSG_TRUNC || !roce_origin(ep, m, &r, &segment)) {
		roce_count(ep->port, ROCE_CTR_MALFORMED);
		return;
	}
	if (ep->own && wire_gid_equal(&r.src, &ep->own->gid))
		return; /* our own: members here have got it already */
	for (off = 0; off < len; off += segment, r.id++) {
		ep->midst = is_midst(buf->data[off]);
		roce_take(ep->port, buf, off, min(segment, len - off), &r);
	}
}

/* Buffers whose bytes a packet still holds are left to it. */
static bool refill(struct roce_port *rp, u32 n)
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

static u32 receive_some(struct roce_endpoint *ep, u32 most)
{
	static u8 control[ROCE_RECVS][ROCE_CONTROL] __attribute__((aligned(8)));
	union ip_sockaddr from[ROCE_RECVS];
	struct mmsghdr m[ROCE_RECVS];
	struct iovec iov[ROCE_RECVS];
	u32 i;
	int n;

	if (!refill(ep->port, most))
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
		roce_take_train(ep, ep->port->rx[i], m[i].msg_len, &m[i].msg_hdr);
	return n < 0 ? 0 : (u32)n;
}

/*
 * How many to ask for. While a long message comes one, since the next one may be placed; and one where they come one at a time,
 * since to ask for more than there is costs a look more, which short messages feel. The loop tells when there is more.
 */
static u32 how_many(const struct roce_endpoint *ep)
{
	return ep->midst || ep->alone % ALONE ? 1 : ROCE_RECVS;
}

void roce_recv(struct roce_endpoint *ep)
{
	u32 done = 0, most, got;

	loop_stay_awake(ep->port->loop); /* to be woken costs the sender more than a look costs us */
	do {
		bool may_place = ep->midst && list_empty(&ep->port->faults);
		enum roce_placed placed = may_place ? roce_place(ep) : ROCE_ELSEWHERE;

		done++;
		if (placed == ROCE_PLACED)
			continue;
		if (placed == ROCE_NOTHING)
			break;
		most = how_many(ep);
		got = receive_some(ep, most);
		done += got;
		ep->alone = got == 1 && !ep->midst ? ep->alone + 1 : 0;
		if (got < most || ep->alone % ALONE)
			break;
	} while (done < BUDGET);
}
