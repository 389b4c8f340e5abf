// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiving a train in the midst of a long message: a look at its first header, and if the user of the port says where the
 * message goes on, headers and tails come to buffers of ours and the payloads to where they belong. See place.c for why that
 * may be done.
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

/* A train that is in its pieces. */
struct placing {
	struct wire_roce r;
	struct wire_packet first; /* its headers */
	u32 len, segment, n, head,
		payload; /* bytes in all, and of each packet; packets that are placed; bytes of their parts */
	u8 *at;
	u8 heads[ROCE_SEGMENTS][HEAD_MAX], tails[ROCE_SEGMENTS][WIRE_ICRC_LEN];
	struct iovec iov[3 * ROCE_SEGMENTS + 1];
	struct wire_packet *pkt[ROCE_SEGMENTS]; /* those that are in their places */
	struct wire_buf *other[ROCE_SEGMENTS];  /* what came instead */
	struct wire_buf *rest;                  /* what follows them */
};

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

/* Looks at the next datagram or train. False: there is none, or none of which a part can be placed. */
static bool peek(struct roce_endpoint *ep, struct placing *t)
{
	const struct wire_port_user *u = &ep->port->wire.data;
	struct iovec iov = { t->heads[0], HEAD_MAX };
	union ip_sockaddr from;
	struct msghdr m = message(&from, &iov, 1);
	ssize_t got = recvmsg(ep->rx.fd, &m, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (got <= 0 || !u->place)
		return false;
	t->len = t->segment = (u32)got;
	if (!roce_origin(ep, &m, &t->r, &t->segment) || t->len < LEAST * t->segment ||
	    !wire_roce_peek(&t->first, t->heads[0], min(t->len, (u32)HEAD_MAX), t->segment, &t->r))
		return false;
	t->head = t->first.hdr_len - t->first.bth_off;
	t->payload = t->first.len;
	t->n = min(t->len / t->segment, (u32)ROCE_SEGMENTS);
	if (t->payload != t->segment - t->head - WIRE_ICRC_LEN) /* there is padding */
		return false;
	t->n = u->place(u->ctx, &t->first, t->n, &t->at);
	return t->n >= LEAST;
}

static u32 put_iov(struct placing *t)
{
	u32 i, n = 0;

	for (i = 0; i < t->n; i++) {
		t->iov[n++] = (struct iovec){ t->heads[i], t->head };
		t->iov[n++] = (struct iovec){ t->at + i * t->payload, t->payload };
		t->iov[n++] = (struct iovec){ t->tails[i], WIRE_ICRC_LEN };
	}
	t->iov[n++] = (struct iovec){ t->rest->data, t->rest->size };
	return n;
}

/* Is the nth packet what follows those before it? */
static bool follows(const struct placing *t, u32 n)
{
	const struct wire_bth *bth = (const struct wire_bth *)t->heads[n],
			      *first = (const struct wire_bth *)(t->first.hdr + t->first.bth_off);

	return bth->opcode == first->opcode && wire_bth_qpn(bth) == wire_bth_qpn(first) && !wire_bth_pad(bth) &&
	       wire_bth_psn(bth) == wire_psn_add(wire_bth_psn(first), n);
}

/* The bytes of the nth packet in one piece. What was there instead of it was the program's own. */
static struct wire_buf *take_out(struct placing *t, u32 n)
{
	struct wire_buf *buf = wire_buf_alloc(t->segment);
	u8 *at = t->at + n * t->payload;

	if (buf) {
		memcpy(buf->data, t->heads[n], t->head);
		memcpy(buf->data + t->head, at, t->payload);
		memcpy(buf->data + t->head + t->payload, t->tails[n], WIRE_ICRC_LEN);
	}
	memset(at, 0, t->payload);
	return buf;
}

static void sort_out(struct placing *t, u32 n)
{
	t->other[n] = NULL;
	t->pkt[n] = NULL;
	if (follows(t, n))
		t->pkt[n] = wire_roce_parse_pieces(t->heads[n], t->at + n * t->payload, t->tails[n], t->segment, &t->r);
	if (!t->pkt[n])
		t->other[n] = take_out(t, n);
}

static void take(struct roce_port *rp, struct placing *t, u32 n)
{
	if (t->pkt[n]) {
		roce_count(rp, ROCE_CTR_PLACED);
		roce_parsed(rp, t->pkt[n], &t->r);
	} else if (t->other[n]) {
		roce_take(rp, t->other[n], 0, t->segment, &t->r);
		wire_buf_put(t->other[n]);
	}
}

/* First all that is not what it was taken for is taken out: behind a gap the places are those of other packets of the train. */
static void take_all(struct roce_endpoint *ep, struct placing *t)
{
	u32 i, off, rest = t->len - t->n * t->segment;
	u16 id = t->r.id;

	for (i = 0; i < t->n; i++, t->r.id++)
		sort_out(t, i);
	for (i = 0, t->r.id = id; i < t->n; i++, t->r.id++)
		take(ep->port, t, i);
	for (off = 0; off < rest; off += t->segment, t->r.id++)
		roce_take(ep->port, t->rest, off, min(t->segment, rest - off), &t->r);
}

/* Something else was next after all (the first one's checksum was wrong): its bytes in one piece. */
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

bool roce_place(struct roce_endpoint *ep)
{
	static struct placing t;
	union ip_sockaddr from;
	struct wire_roce r;
	struct msghdr m;
	u32 niov, segment;
	ssize_t got;

	if (!peek(ep, &t))
		return false;
	t.rest = wire_buf_alloc(t.len - t.n * t.segment + 1);
	if (!t.rest)
		return false;
	niov = put_iov(&t);
	m = message(&from, t.iov, niov);
	got = recvmsg(ep->rx.fd, &m, MSG_DONTWAIT);
	segment = got > 0 ? (u32)got : 0;
	if (got > 0 && roce_origin(ep, &m, &r, &segment) && (u32)got == t.len && segment == t.segment &&
	    wire_gid_equal(&r.src, &t.r.src) && r.sport == t.r.sport) {
		t.r = r;
		take_all(ep, &t);
	} else if (got > 0) {
		take_other(ep, &t, niov, (u32)got, &m);
	}
	wire_buf_put(t.rest);
	return got > 0;
}
