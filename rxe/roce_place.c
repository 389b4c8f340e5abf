// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiving a train in the midst of a long message: a look at its first header, and if the user of the port says where the
 * message goes on, headers and tails come to buffers of ours and the payloads to where they belong. See place.c for why that
 * may be done. When some trains in a row were what follows the one before, the next is taken for that without a look.
 *
 * The train may hold packets of other connections, too, by the same peer, or have gaps. What is not what it was taken for is
 * copied out, and zeroes are left where it was: nobody finds what was sent to others.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce_internal.h"

#define HEAD_MAX 64
#define LEAST    2 /* packets for which it is worth the look */
#define SURE     4 /* trains in a row that went on as expected */

/* A train that is in its pieces. */
struct placing {
	const struct roce_endpoint *of; /* where it came */
	struct wire_roce r;
	struct wire_packet first; /* its headers */
	u32 len, segment, n, head,
		payload; /* bytes in all, and of each packet; packets that are placed; bytes of their parts */
	u8 *at;
	u8 small[ROCE_SEGMENTS * (HEAD_MAX + WIRE_ICRC_LEN)]; /* head and tail of each packet in turn */
	struct iovec iov[2 * ROCE_SEGMENTS + 2];
	struct wire_packet *pkt[ROCE_SEGMENTS]; /* those that are in their places */
	struct wire_buf *other[ROCE_SEGMENTS];  /* what came instead */
	struct wire_buf *rest;                  /* what follows them */
};

static u8 *head_of(struct placing *t, u32 n)
{
	return t->small + n * (t->head + WIRE_ICRC_LEN);
}

static u8 *tail_of(struct placing *t, u32 n)
{
	return head_of(t, n) + t->head;
}

static struct msghdr message(union ip_sockaddr *from, struct iovec *iov, size_t n)
{
	static u8 control[ROCE_CONTROL] __attribute__((aligned(8)));

	return (struct msghdr){ .msg_name = from,
				.msg_namelen = sizeof(*from),
				.msg_iov = iov,
				.msg_iovlen = n,
				.msg_control = control,
				.msg_controllen = sizeof(control) };
}

/* Does the first packet's message say where it goes on? */
static bool find_place(struct roce_endpoint *ep, struct placing *t)
{
	const struct wire_port_user *u = &ep->port->wire.data;

	t->head = t->first.hdr_len - t->first.bth_off;
	t->payload = t->first.len;
	t->n = min(t->len / t->segment, (u32)ROCE_SEGMENTS);
	if (t->payload != t->segment - t->head - WIRE_ICRC_LEN) /* there is padding */
		return false;
	t->n = u->place(u->ctx, &t->first, t->n, &t->at);
	return t->n >= LEAST;
}

/* Looks at the next datagram or train. */
static enum roce_placed peek(struct roce_endpoint *ep, struct placing *t)
{
	u8 head[HEAD_MAX];
	struct iovec iov = { head, HEAD_MAX };
	union ip_sockaddr from;
	struct msghdr m = message(&from, &iov, 1);
	ssize_t got = recvmsg(ep->rx.fd, &m, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (got < 0)
		return ROCE_NOTHING;
	t->len = t->segment = (u32)got;
	if (got && ep->port->wire.data.place && roce_origin(ep, &m, &t->r, &t->segment) &&
	    t->len >= LEAST * t->segment &&
	    wire_roce_peek(&t->first, head, min(t->len, (u32)HEAD_MAX), t->segment, &t->r) && find_place(ep, t))
		return ROCE_PLACED;
	return ROCE_ELSEWHERE;
}

static struct wire_bth *first_bth(struct placing *t)
{
	return (struct wire_bth *)(t->first.hdr + t->first.bth_off);
}

/* What comes next, if all goes on as it did with the last train, which @t still is. */
static bool guess(struct roce_endpoint *ep, struct placing *t)
{
	if (t->of != ep || !ep->next_known || ep->sure < SURE)
		return false;
	wire_bth_set_psn(first_bth(t), ep->next_psn);
	t->len = ROCE_SEGMENTS * t->segment;
	t->r.id = 0;
	return find_place(ep, t);
}

static void learn(struct roce_endpoint *ep, struct placing *t)
{
	u32 psn = wire_bth_psn((const struct wire_bth *)head_of(t, 0));

	if (ep->next_known)
		ep->sure = psn == ep->next_psn ? ep->sure + 1 : 0;
	ep->next_psn = wire_psn_add(psn, t->len / t->segment);
	ep->next_known = true;
	t->of = ep;
}

/* Heads and tails between two payloads are one piece. */
static u32 put_iov(struct placing *t)
{
	u32 i, n = 0;

	t->iov[n++] = (struct iovec){ t->small, t->head };
	for (i = 0; i < t->n; i++) {
		t->iov[n++] = (struct iovec){ t->at + i * t->payload, t->payload };
		t->iov[n++] = (struct iovec){ tail_of(t, i), WIRE_ICRC_LEN + (i + 1 < t->n ? t->head : 0) };
	}
	t->iov[n++] = (struct iovec){ t->rest->data, t->rest->size };
	return n;
}

/* Is the nth packet what follows those before it? */
static bool follows(struct placing *t, u32 n)
{
	const struct wire_bth *bth = (const struct wire_bth *)head_of(t, n), *first = first_bth(t);

	return bth->opcode == first->opcode && wire_bth_qpn(bth) == wire_bth_qpn(first) && !wire_bth_pad(bth) &&
	       wire_bth_psn(bth) == wire_psn_add(wire_bth_psn(first), n);
}

/* The bytes of the nth packet, of which @len came, in one piece. What was there instead of it was the program's own. */
static struct wire_buf *take_out(struct placing *t, u32 n, u32 len)
{
	struct wire_buf *buf = wire_buf_alloc(t->segment);
	u8 *at = t->at + n * t->payload;

	if (buf) {
		memcpy(buf->data, head_of(t, n), t->head);
		memcpy(buf->data + t->head, at, t->payload);
		memcpy(buf->data + t->head + t->payload, tail_of(t, n), WIRE_ICRC_LEN);
	}
	if (len > t->head)
		memset(at, 0, min(t->payload, len - t->head));
	return buf;
}

/* Of the nth packet: the train may be shorter than it was taken for, and its last packet than the others. */
static u32 bytes_of(const struct placing *t, u32 n)
{
	return min(t->segment, t->len - n * t->segment);
}

static void sort_out(struct placing *t, u32 n)
{
	t->other[n] = NULL;
	t->pkt[n] = NULL;
	if (bytes_of(t, n) == t->segment && follows(t, n))
		t->pkt[n] =
			wire_roce_parse_pieces(head_of(t, n), t->at + n * t->payload, tail_of(t, n), t->segment, &t->r);
	if (!t->pkt[n])
		t->other[n] = take_out(t, n, bytes_of(t, n));
}

static void take(struct roce_port *rp, struct placing *t, u32 n)
{
	if (t->pkt[n]) {
		roce_count(rp, ROCE_CTR_PLACED);
		roce_parsed(rp, t->pkt[n], &t->r);
	} else if (t->other[n]) {
		roce_take(rp, t->other[n], 0, bytes_of(t, n), &t->r);
		wire_buf_put(t->other[n]);
	}
}

/* First all that is not what it was taken for is taken out: behind a gap the places are those of other packets of the train. */
static void take_all(struct roce_endpoint *ep, struct placing *t)
{
	u32 n = min((t->len + t->segment - 1) / t->segment, t->n), i, off, rest = t->len - min(t->len, n * t->segment);
	u16 id = t->r.id;

	for (i = 0; i < n; i++, t->r.id++)
		sort_out(t, i);
	for (i = 0, t->r.id = id; i < n; i++, t->r.id++)
		take(ep->port, t, i);
	for (off = 0; off < rest; off += t->segment, t->r.id++)
		roce_take(ep->port, t->rest, off, min(t->segment, rest - off), &t->r);
}

/* From somebody else, or in other lengths: its bytes in one piece. */
static void take_other(struct roce_endpoint *ep, struct placing *t, u32 niov, u32 len, struct msghdr *m)
{
	struct wire_buf *buf = wire_buf_alloc(len);
	u32 i, off = 0, part;

	for (i = 0; i < niov && off < len; i++, off += part) {
		part = min(len - off, (u32)t->iov[i].iov_len);
		if (buf)
			memcpy(buf->data + off, t->iov[i].iov_base, part);
		memset(t->iov[i].iov_base, 0, part);
	}
	if (buf)
		roce_take_train(ep, buf, len, m);
	wire_buf_put(buf);
}

/* What has come, of the lengths that it was taken for? */
static bool is_alike(const struct roce_endpoint *ep, struct placing *t, struct msghdr *m, u32 len)
{
	struct wire_roce r;
	u32 segment = len;

	if (m->msg_flags & MSG_TRUNC || !roce_origin(ep, m, &r, &segment) || segment != t->segment ||
	    !wire_gid_equal(&r.src, &t->r.src) || r.sport != t->r.sport)
		return false;
	t->r = r;
	t->len = len;
	return true;
}

/* @t says where it goes. */
static enum roce_placed receive(struct roce_endpoint *ep, struct placing *t)
{
	u32 niov = put_iov(t);
	union ip_sockaddr from;
	struct msghdr m = message(&from, t->iov, niov);
	ssize_t got = recvmsg(ep->rx.fd, &m, MSG_DONTWAIT);

	if (got < 0)
		return ROCE_NOTHING;
	if (is_alike(ep, t, &m, (u32)got)) {
		learn(ep, t);
		take_all(ep, t);
	} else {
		ep->sure = 0;
		take_other(ep, t, niov, (u32)got, &m);
	}
	return ROCE_PLACED;
}

enum roce_placed roce_place(struct roce_endpoint *ep)
{
	static struct placing t;
	enum roce_placed placed = guess(ep, &t) ? ROCE_PLACED : peek(ep, &t);

	if (placed != ROCE_PLACED)
		return placed;
	t.rest = wire_buf_alloc(ROCE_TRAIN);
	if (!t.rest)
		return ROCE_ELSEWHERE;
	placed = receive(ep, &t);
	wire_buf_put(t.rest);
	return placed;
}
