// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Zero-copy receive (zcopy) on UDP sockets: peeks at the first header of the next GRO train, calls the user of the port
 * by wire_port_user.zcopy for the memory of that message, and receives headers and ICRCs to local buffers and payloads
 * directly to that memory. rxe/zcopy.c explains why this is permitted. After some trains in a row that continued the
 * train before them, the next train is predicted without a peek.
 *
 * The train may contain packets of other connections of the same peer, or miss PSNs. Unexpected packets are copied out
 * and their bytes in the memory are zeroed, so that no data of other connections remains there.
 */
#include <netinet/udp.h>
#include <sys/socket.h>

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce/roce_internal.h"

#define HEAD_MAX      64
#define TRAIN_MIN     2 /* packets: a shorter train is not worth the peek */
#define PREDICT_AFTER 4 /* trains in a row that were as expected, before prediction */

/* A train that is scattered to local buffers and program memory. */
struct zcopy_train {
	const struct roce_endpoint *of; /* address that received it */
	struct wire_roce r;
	struct wire_packet first; /* its headers */
	u32 len, segment, n, head,
		payload; /* bytes of the train, of a packet; packets received by zero-copy; bytes of their parts */
	u8 *at;
	u8 small[ROCE_SEGMENTS * (HEAD_MAX + WIRE_ICRC_LEN)]; /* head and tail of each packet in turn */
	struct iovec iov[2 * ROCE_SEGMENTS + 2];
	struct wire_packet *pkt[ROCE_SEGMENTS]; /* received by zero-copy */
	struct wire_buf *other[ROCE_SEGMENTS];  /* copied out */
	struct wire_buf *rest;                  /* bytes after those packets */
};

static u8 *head_of(struct zcopy_train *t, u32 n)
{
	return t->small + n * (t->head + WIRE_ICRC_LEN);
}

static u8 *tail_of(struct zcopy_train *t, u32 n)
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

/* Gets the memory of the message from the transport. False: not eligible for zero-copy. */
static bool zcopy_target(struct roce_endpoint *ep, struct zcopy_train *t)
{
	const struct wire_port_user *u = &ep->port->wire.data;

	t->head = t->first.hdr_len - t->first.bth_off;
	t->payload = t->first.len;
	t->n = min(t->len / t->segment, (u32)ROCE_SEGMENTS);
	if (t->payload != t->segment - t->head - WIRE_ICRC_LEN) /* the packet has padding */
		return false;
	t->n = u->zcopy(u->ctx, &t->first, t->n, &t->at);
	return t->n >= TRAIN_MIN;
}

/* Peeks at the next datagram or train. */
static enum roce_zcopy train_peek(struct roce_endpoint *ep, struct zcopy_train *t)
{
	u8 head[HEAD_MAX];
	struct iovec iov = { head, HEAD_MAX };
	union ip_sockaddr from;
	struct msghdr m = message(&from, &iov, 1);
	ssize_t got = recvmsg(ep->rx.fd, &m, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (got < 0)
		return ROCE_ZCOPY_EMPTY;
	t->len = t->segment = (u32)got;
	if (got && ep->port->wire.data.zcopy && roce_origin(ep, &m, &t->r, &t->segment) &&
	    t->len >= TRAIN_MIN * t->segment &&
	    wire_roce_peek(&t->first, head, min(t->len, (u32)HEAD_MAX), t->segment, &t->r) && zcopy_target(ep, t))
		return ROCE_ZCOPY_DONE;
	return ROCE_ZCOPY_NONE;
}

static struct wire_bth *first_bth(struct zcopy_train *t)
{
	return wire_packet_bth(&t->first);
}

/* Predicts the next train from the last one, which @t still describes. */
static bool train_predict(struct roce_endpoint *ep, struct zcopy_train *t)
{
	if (t->of != ep || !ep->next_known || ep->sure < PREDICT_AFTER)
		return false;
	wire_bth_set_psn(first_bth(t), ep->next_psn);
	t->len = ROCE_SEGMENTS * t->segment;
	t->r.id = 0;
	return zcopy_target(ep, t);
}

static void expect_update(struct roce_endpoint *ep, struct zcopy_train *t)
{
	u32 psn = wire_bth_psn((const struct wire_bth *)head_of(t, 0));

	if (ep->next_known)
		ep->sure = psn == ep->next_psn ? ep->sure + 1 : 0;
	ep->next_psn = wire_psn_add(psn, t->len / t->segment);
	ep->next_known = true;
	t->of = ep;
}

/* The tail of a packet and the head of the next one are one iovec. */
static u32 iov_fill(struct zcopy_train *t)
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

/* Does the nth packet continue the message of those before it? */
static bool packet_follows(struct zcopy_train *t, u32 n)
{
	const struct wire_bth *bth = (const struct wire_bth *)head_of(t, n), *first = first_bth(t);

	return bth->opcode == first->opcode && wire_bth_qpn(bth) == wire_bth_qpn(first) && !wire_bth_pad(bth) &&
	       wire_bth_psn(bth) == wire_psn_add(wire_bth_psn(first), n);
}

/*
 * Copies out the nth packet, of which @len bytes were received, to one buffer, and zeroes its bytes in program memory.
 */
static struct wire_buf *zcopy_copy_out(struct zcopy_train *t, u32 n, u32 len)
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

/* Length of the nth packet: the train may be shorter than expected, and its last packet shorter than the others. */
static u32 packet_bytes(const struct zcopy_train *t, u32 n)
{
	return min(t->segment, t->len - n * t->segment);
}

static void packet_check(struct zcopy_train *t, u32 n)
{
	t->other[n] = NULL;
	t->pkt[n] = NULL;
	if (packet_bytes(t, n) == t->segment && packet_follows(t, n))
		t->pkt[n] =
			wire_roce_parse_pieces(head_of(t, n), t->at + n * t->payload, tail_of(t, n), t->segment, &t->r);
	if (!t->pkt[n])
		t->other[n] = zcopy_copy_out(t, n, packet_bytes(t, n));
}

static void packet_receive(struct roce_port *rp, struct zcopy_train *t, u32 n)
{
	if (t->pkt[n]) {
		roce_count(rp, ROCE_CTR_PLACED);
		roce_parsed(rp, t->pkt[n], &t->r);
	} else if (t->other[n]) {
		roce_recv_packet(rp, t->other[n], 0, packet_bytes(t, n), &t->r);
		wire_buf_put(t->other[n]);
	}
}

/*
 * Unexpected packets are copied out first: after a missing PSN, their bytes are in the memory of other packets of the
 * train.
 */
static void train_receive(struct roce_endpoint *ep, struct zcopy_train *t)
{
	u32 n = min((t->len + t->segment - 1) / t->segment, t->n), i, off, rest = t->len - min(t->len, n * t->segment);
	u16 id = t->r.id;

	for (i = 0; i < n; i++, t->r.id++)
		packet_check(t, i);
	for (i = 0, t->r.id = id; i < n; i++, t->r.id++)
		packet_receive(ep->port, t, i);
	for (off = 0; off < rest; off += t->segment, t->r.id++)
		roce_recv_packet(ep->port, t->rest, off, min(t->segment, rest - off), &t->r);
}

/* A train of another sender, or with other lengths: copied out to one buffer. */
static void train_copy_out(struct roce_endpoint *ep, struct zcopy_train *t, u32 niov, u32 len, struct msghdr *m)
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
		roce_recv_train(ep, buf, len, m);
	wire_buf_put(buf);
}

/* Does the received train have the expected sender and packet length? */
static bool train_matches(const struct roce_endpoint *ep, struct zcopy_train *t, struct msghdr *m, u32 len)
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

/* Receives the train to the iovecs of @t. */
static enum roce_zcopy zcopy_recvmsg(struct roce_endpoint *ep, struct zcopy_train *t)
{
	u32 niov = iov_fill(t);
	union ip_sockaddr from;
	struct msghdr m = message(&from, t->iov, niov);
	ssize_t got = recvmsg(ep->rx.fd, &m, MSG_DONTWAIT);

	if (got < 0)
		return ROCE_ZCOPY_EMPTY;
	if (train_matches(ep, t, &m, (u32)got)) {
		expect_update(ep, t);
		train_receive(ep, t);
	} else {
		ep->sure = 0;
		train_copy_out(ep, t, niov, (u32)got, &m);
	}
	return ROCE_ZCOPY_DONE;
}

enum roce_zcopy roce_zcopy_recv(struct roce_endpoint *ep)
{
	static struct zcopy_train t;
	enum roce_zcopy placed = train_predict(ep, &t) ? ROCE_ZCOPY_DONE : train_peek(ep, &t);

	if (placed != ROCE_ZCOPY_DONE)
		return placed;
	t.rest = wire_buf_alloc(ROCE_TRAIN);
	if (!t.rest)
		return ROCE_ZCOPY_NONE;
	placed = zcopy_recvmsg(ep, &t);
	wire_buf_put(t.rest);
	return placed;
}
