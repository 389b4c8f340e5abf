// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RoCEv2 send on UDP sockets (IBTA A17.3). Packets of one flow and one length are sent as one UDP GSO train, which the
 * kernel segments. The kernel sets the IPv4 identification of the segments from 0 on, and 0 in single packets; the ICRC
 * covers that field.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce/roce_internal.h"

#define SHORT        256 /* bytes: longer payload is sent by zero-copy, shorter payload is copied */
#define OTHER_TRAINS 16
#define SMALL        (WIRE_HDR_MAX + SHORT + WIRE_ROCE_TAIL_MAX)

/* A GSO train under construction. */
struct train {
	struct roce_flow *flow;
	struct wire_roce path; /* of its first packet */
	u32 segment, bytes, npkts, niov;
	struct wire_packet *pkt[ROCE_SEGMENTS];
	struct iovec iov[2 * ROCE_SEGMENTS + 1];
	u8 small[ROCE_SEGMENTS *
		 SMALL]; /* headers and tails, contiguous between payloads: each iovec costs time in the kernel */
	u32 used, piece; /* bytes of it; start of the last iovec */
};

void roce_tap(struct roce_port *rp, const struct wire_packet *p, const struct wire_roce *r, bool out)
{
	static u8 frame[WIRE_ROCE_FRAME];
	int n;

	if (likely(!rp->tap))
		return;
	n = wire_roce_frame(p, r, frame, sizeof(frame));
	if (n > 0)
		rp->tap(rp->tap_ctx, frame, (u32)n, out);
}

static struct roce_endpoint *endpoint_of(struct roce_port *rp, const struct wire_gid *gid)
{
	u32 i;

	for (i = 0; i < rp->neps; i++)
		if (wire_gid_equal(&rp->ep[i].gid, gid))
			return &rp->ep[i];
	return NULL;
}

/* One flow per pair of QPs, up to ROCE_FLOWS. */
static struct roce_flow *flow_of(struct roce_endpoint *ep, const struct wire_packet *p, const struct wire_roce *r)
{
	u32 qpn = wire_bth_qpn(wire_packet_bth(p));

	return &ep->flow[((qpn * 0x9e3779b1u) >> 16 ^ r->flow) % ROCE_FLOWS];
}

static bool route(struct roce_port *rp, const struct wire_packet *p, struct wire_roce *r, struct roce_flow **flow)
{
	struct roce_endpoint *ep;

	if (p->l2.version == 1)
		return false; /* v1 needs Ethernet frames (EtherType 0x8915) */
	wire_roce_from_grh(p, r);
	ep = endpoint_of(rp, &r->src);
	if (!ep || wire_gid_is_v4(&r->src) != wire_gid_is_v4(&r->dst) || wire_gid_is_zero(&r->dst))
		return false;
	*flow = flow_of(ep, p, r);
	r->sport = (*flow)->sport;
	return true;
}

bool roce_socket_route(struct roce_port *rp, const struct wire_packet *p, struct wire_roce *r)
{
	struct roce_flow *flow;

	return route(rp, p, r, &flow);
}

static bool lost(struct roce_port *rp)
{
	if (likely(!rp->loss) || (rng_next(&rp->rng) >> 32) >= rp->loss)
		return false;
	roce_count(rp, ROCE_CTR_FAULTS);
	return true;
}

bool roce_may_mark(const struct wire_packet *p)
{
	u8 ecn = wire_grh_tclass(wire_packet_grh(p)) & WIRE_ECN_MASK;

	return ecn && ecn != WIRE_ECN_CE;
}

void roce_mark(struct roce_port *rp, struct wire_packet *p)
{
	struct wire_grh *grh = wire_packet_grh(p);

	wire_grh_set_ver_tc_flow(grh, wire_grh_tclass(grh) | WIRE_ECN_CE, wire_grh_flow(grh));
	roce_count(rp, ROCE_CTR_MARKED);
}

void roce_queue(struct roce_port *rp, struct wire_packet *p)
{
	if (unlikely(rp->marking) && roce_may_mark(p) && (rng_next(&rp->rng) >> 32) < rp->marking)
		roce_mark(rp, p);
	if (roce_ack_delay(rp, p))
		return;
	roce_ack_piggyback(rp, p);
	loop_task_queue(rp->loop, &rp->task);
}

int roce_send(struct wire_port *w, struct wire_packet *p)
{
	struct roce_port *rp = container_of(w, struct roce_port, wire);
	struct wire_roce r;

	if (rp->ntx >= ROCE_QUEUE) {
		rp->want_ready = true;
		return -EAGAIN;
	}
	if (!p->grh_off || !rp->link->route(rp, p, &r)) {
		roce_count(rp, ROCE_CTR_UNROUTED);
		wire_packet_free(p);
		return 0;
	}
	if (lost(rp)) {
		roce_tap(rp, p, &r, true);
		wire_packet_free(p);
		return 0;
	}
	if (!roce_faulty(rp) || roce_fault_sent(rp, p))
		roce_queue(rp, p);
	return 0;
}

static bool same_way(const struct train *t, const struct roce_flow *flow, const struct wire_roce *r)
{
	return t->flow == flow && wire_gid_equal(&t->path.dst, &r->dst) && t->path.tos == r->tos &&
	       t->path.ttl == r->ttl;
}

static void train_put(struct train *t, const void *p, u32 len)
{
	if (len)
		memcpy(t->small + t->used, p, len);
	t->used += len;
}

static void piece_end(struct train *t)
{
	if (t->used > t->piece)
		t->iov[t->niov++] = (struct iovec){ t->small + t->piece, t->used - t->piece };
	t->piece = t->used;
}

static void train_add(struct train *t, struct wire_packet *p, struct wire_roce *r)
{
	u32 hdr = p->hdr_len - p->bth_off;

	train_put(t, p->hdr + p->bth_off, hdr);
	if (p->len <= SHORT) {
		train_put(t, p->data, p->len);
	} else {
		piece_end(t);
		t->iov[t->niov++] = (struct iovec){ (void *)(uintptr_t)p->data, p->len };
	}
	r->id = (u16)t->npkts;
	t->used += wire_roce_tail(p, r, t->small + t->used);
	t->pkt[t->npkts++] = p;
	t->bytes += wire_roce_len(p);
}

/* Moves packets from the queue to the train while flow and length are the same; the last one may be shorter. */
static void train_fill(struct roce_port *rp, struct train *t)
{
	struct roce_flow *flow;
	struct wire_roce r;

	t->npkts = t->niov = t->bytes = t->used = t->piece = 0;
	while (!list_empty(&rp->tx) && t->npkts < (rp->no_gso ? 1 : ROCE_SEGMENTS)) {
		struct wire_packet *p = list_first(&rp->tx, struct wire_packet, link);
		u32 len = wire_roce_len(p);

		route(rp, p, &r, &flow); /* cannot fail: it succeeded when the packet was queued */
		if (!t->npkts) {
			t->flow = flow;
			t->path = r;
			t->segment = len;
		} else if (len > t->segment || t->bytes + len > ROCE_DATAGRAM || !same_way(t, flow, &r)) {
			return;
		}
		list_del(&p->link);
		rp->ntx--;
		train_add(t, p, &r);
		roce_tap(rp, p, &r, true);
		if (len < t->segment)
			return;
	}
}

static void put_int(struct msghdr *m, int level, int type, int value)
{
	struct cmsghdr *c = (struct cmsghdr *)((u8 *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &value, sizeof(int));
	m->msg_controllen += CMSG_SPACE(sizeof(int));
}

static void put_segment(struct msghdr *m, u16 segment)
{
	struct cmsghdr *c = (struct cmsghdr *)((u8 *)m->msg_control + m->msg_controllen);

	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	m->msg_controllen += CMSG_SPACE(sizeof(segment));
}

/*
 * Is the flow's socket connected to the destination? It is connected after OTHER_TRAINS trains in a row to one other
 * destination.
 */
static bool flow_connected(struct roce_flow *f, const struct wire_gid *dst, const union ip_sockaddr *to, socklen_t len)
{
	if (likely(wire_gid_equal(&f->peer, dst))) {
		f->other_trains = 0;
		return true;
	}
	if (++f->other_trains < OTHER_TRAINS || wire_gid_is_multicast(dst))
		return false;
	f->other_trains = 0;
	if (connect(f->fd.fd, &to->sa, len))
		return false;
	f->peer = *dst;
	return true;
}

/* A socket option, since the TTL rarely changes: a control message per train would cost a route lookup. */
static void flow_set_ttl(struct roce_flow *f, int ttl, bool v4)
{
	if (likely(f->ttl == ttl))
		return;
	f->ttl = ttl;
	setsockopt(f->fd.fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_UNICAST_HOPS, &ttl, sizeof(ttl));
	setsockopt(f->fd.fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MULTICAST_TTL : IPV6_MULTICAST_HOPS, &ttl,
		   sizeof(ttl));
}

static int train_send(struct train *t)
{
	u8 control[2 * CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	bool v4 = wire_gid_is_v4(&t->path.dst);
	union ip_sockaddr to;
	struct msghdr m = { .msg_name = &to, .msg_iov = t->iov, .msg_control = control };

	m.msg_namelen = roce_sockaddr_set(&to, &t->path.dst, WIRE_ROCE_PORT, t->flow->ep->scope);
	if (flow_connected(t->flow, &t->path.dst, &to, m.msg_namelen)) {
		m.msg_name = NULL;
		m.msg_namelen = 0;
	}
	piece_end(t);
	m.msg_iovlen = t->niov;
	if (t->npkts > 1)
		put_segment(&m, (u16)t->segment);
	if (t->path.tos)
		put_int(&m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, t->path.tos);
	flow_set_ttl(t->flow, t->path.ttl ? t->path.ttl : ROCE_TTL, v4);
	if (sendmsg(t->flow->fd.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno != ECONNREFUSED) /* an ICMP error of an earlier packet: no socket at the destination */
		return -errno;
	return sendmsg(t->flow->fd.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Returns the packets to the head of the queue, in order. */
static void train_return(struct roce_port *rp, struct train *t)
{
	while (t->npkts) {
		list_add(rp->tx.next, &t->pkt[--t->npkts]->link);
		rp->ntx++;
	}
}

static void train_free(struct train *t)
{
	while (t->npkts)
		wire_packet_free(t->pkt[--t->npkts]);
}

/* False: the socket is full; EPOLLOUT is armed. */
static bool run_train(struct roce_port *rp, struct train *t)
{
	int err;

	train_fill(rp, t);
	err = train_send(t);
	if (err == -EAGAIN || err == -ENOBUFS) {
		train_return(rp, t);
		if (!t->flow->fd.loop)
			loop_fd_add(rp->loop, &t->flow->fd, EPOLLOUT);
		return false;
	}
	if ((err == -EIO || err == -EINVAL) && t->npkts > 1) { /* an interface that does not support GSO trains */
		rp->no_gso = true;
		train_return(rp, t);
		return true;
	}
	rp->counter[err ? ROCE_CTR_SEND_ERROR : ROCE_CTR_SENT] += t->npkts;
	rp->counter[ROCE_CTR_SENT_BYTES] += err ? 0 : t->bytes;
	train_free(t);
	return true;
}

void roce_socket_run(struct roce_port *rp)
{
	static struct train train;

	while (!list_empty(&rp->tx) && run_train(rp, &train))
		;
}

/* Sends zero-copy packets now; copies the payload of those for which the socket is full. */
void roce_flush_zcopy(struct wire_port *w)
{
	struct roce_port *rp = container_of(w, struct roce_port, wire);
	struct wire_packet *p, *tmp;

	rp->link->run(rp);
	list_for_each_safe (p, tmp, &rp->tx, link) {
		if (wire_packet_own(p))
			continue;
		list_del(&p->link);
		rp->ntx--;
		wire_packet_free(p); /* handled as a lost packet */
	}
}

void roce_send_run(struct roce_port *rp)
{
	rp->link->run(rp);
	if (!rp->want_ready || rp->ntx > ROCE_QUEUE / 2)
		return;
	rp->want_ready = false;
	if (rp->wire.data.ready)
		rp->wire.data.ready(rp->wire.data.ctx);
	if (rp->wire.mad.ready)
		rp->wire.mad.ready(rp->wire.mad.ctx);
}
