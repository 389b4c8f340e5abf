// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Captures: pcapng with one interface for each port, of link type ERF, whose type 21 is an InfiniBand packet from LRH
 * to VCRC. Blocks are written through a bounded buffer; packets that do not fit are dropped and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/packet/match.h"
#include "fabric/fabric_internal.h"

#define PENDING_MAX         (8u << 20) /* bytes not yet written */
#define BUFFER_SIZE         (2 * PENDING_MAX)
#define FLUSH_SIZE          (64u << 10)     /* bytes that are written at once... */
#define FLUSH_NS            (NSEC_PER_MSEC) /* ... or after this time */
#define LINKTYPE_ERF        197
#define LINKTYPE_ETHERNET   1
#define ERF_TYPE_INFINIBAND 21
#define ERF_HEADER          16
#define SNAP_MAX            0xffff

enum {
	BLOCK_SHB = 0x0a0d0d0a,
	BLOCK_IDB = 1,
	BLOCK_EPB = 6
};
enum {
	OPT_IF_NAME = 2,
	OPT_IF_TSRESOL = 9,
	OPT_EPB_FLAGS = 2
};

/* Selects packets, by the keys that faults have, too. */
struct selection {
	struct wire_match match;
	u64 given;
};

static const struct spec_field selection_fields[] = { WIRE_MATCH_SPEC(0, selection, match) };

/* A port in a capture. */
struct fabric_capture_point {
	struct fabric_capture_point *next; /* of the port */
	struct fabric_capture *capture;
	struct fabric_port *port;
	u32 interface;
};

struct fabric_capture {
	struct fabric *f;
	struct selection selection;
	u32 snap; /* snap length: bytes of a packet */
	int fd;
	bool closed; /* nothing is written any more */
	bool ending; /* closed when all is written */
	bool polls;
	bool full; /* waits for EPOLLOUT */
	struct loop_fd watch;
	struct loop_task flush;
	struct loop_timer flush_timer;
	void (*done)(void *ctx);
	void *ctx;
	struct fabric_capture_point **points; /* by interface number; NULL: of frames */
	u32 npoints;
	struct fabric_capture_stats stats;
	u64 epoch; /* wall clock minus loop clock */
	u8 *buf;
	u32 head, len; /* pending output: buf[head], len bytes, linear */
};

/*
 * The buffer is linear: when it is full the unwritten rest is moved to the front, which costs no more than the bytes
 * written since the last move. The bytes are not initialized.
 */
static u8 *capture_reserve(struct fabric_capture *c, u32 n)
{
	u8 *at;

	if (c->closed || c->len + n > PENDING_MAX)
		return NULL;
	if (c->head + c->len + n > BUFFER_SIZE) {
		memmove(c->buf, c->buf + c->head, c->len);
		c->head = 0;
	}
	at = c->buf + c->head + c->len;
	c->len += n;
	return at;
}

static void capture_close(struct fabric_capture *c)
{
	if (c->closed)
		return;
	c->closed = true;
	c->len = 0;
	loop_fd_del(&c->watch);
	loop_timer_cancel(&c->flush_timer);
	if (c->done)
		c->done(c->ctx);
}

static void capture_drain(struct fabric_capture *c)
{
	bool full;

	/* O_NONBLOCK is shared by all users of the open file, and any of them may have cleared it. */
	if (c->len && !c->closed)
		fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
	while (c->len && !c->closed) {
		ssize_t n = write(c->fd, c->buf + c->head, c->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			capture_close(c);
			return;
		}
		c->head += (u32)n;
		c->len -= (u32)n;
	}
	if (!c->len)
		c->head = 0;
	if (!c->len && c->ending)
		capture_close(c);
	if (c->closed)
		return;
	loop_timer_cancel(&c->flush_timer);
	full = c->polls && c->len;
	if (full != c->full)
		loop_fd_mod(&c->watch, full ? EPOLLOUT : 0);
	c->full = full;
}

static void on_writable(struct loop_fd *w, u32 events, struct now now)
{
	struct fabric_capture *c = container_of(w, struct fabric_capture, watch);

	if (events & (EPOLLERR | EPOLLHUP))
		capture_close(c);
	else
		capture_drain(c);
}

static void on_flush(struct loop_task *t, struct now now)
{
	capture_drain(container_of(t, struct fabric_capture, flush));
}

static void on_flush_timer(struct loop_timer *t, struct now now)
{
	capture_drain(container_of(t, struct fabric_capture, flush_timer));
}

/* Packets are written in batches: a write costs system calls, and wakes the reader. */
static void capture_batch(struct fabric_capture *c)
{
	if (c->full)
		return;
	if (c->len >= FLUSH_SIZE)
		loop_task_queue(c->f->loop, &c->flush);
	else if (!loop_timer_armed(&c->flush_timer))
		loop_timer_set(c->f->loop, &c->flush_timer, loop_now(c->f->loop).ns + FLUSH_NS);
}

static void capture_put16(u8 *d, u32 at, u16 v)
{
	memcpy(d + at, &v, 2);
}

static void capture_put32(u8 *d, u32 at, u32 v)
{
	memcpy(d + at, &v, 4);
}

static void capture_block(u8 *d, u32 type, u32 len)
{
	capture_put32(d, 0, type);
	capture_put32(d, 4, len);
	capture_put32(d, len - 4, len);
}

static int section_header(struct fabric_capture *c)
{
	u8 *d = capture_reserve(c, 28);

	if (!d)
		return -ENOMEM;
	memset(d, 0, 28);
	capture_block(d, BLOCK_SHB, 28);
	capture_put32(d, 8, 0x1a2b3c4d);
	capture_put16(d, 12, 1);
	capture_put32(d, 16, ~0u);
	capture_put32(d, 20, ~0u);
	return 0;
}

static int interface_block(struct fabric_capture *c, const char *node, u32 num, u16 linktype)
{
	char name[FABRIC_NAME_MAX + 8];
	u32 n = (u32)snprintf(name, sizeof(name), "%s:%u", node, num), pad = (n + 3) & ~3u;
	u32 len = 16 + 4 + pad + 8 + 4 + 4;
	u8 *d = capture_reserve(c, len);

	if (!d)
		return -ENOMEM;
	memset(d, 0, len);
	capture_block(d, BLOCK_IDB, len);
	capture_put16(d, 8, linktype);
	if (c->snap < SNAP_MAX)
		capture_put32(d, 12, c->snap + (linktype == LINKTYPE_ERF ? ERF_HEADER : 0));
	capture_put16(d, 16, OPT_IF_NAME);
	capture_put16(d, 18, (u16)n);
	memcpy(d + 20, name, n);
	capture_put16(d, 20 + pad, OPT_IF_TSRESOL);
	capture_put16(d, 22 + pad, 1);
	d[24 + pad] = 9;
	return 0;
}

struct fabric_capture *fabric_capture_start(struct fabric *f, int fd, void (*done)(void *ctx), void *ctx)
{
	struct fabric_capture *c = calloc(1, sizeof(*c));
	struct timespec ts;

	if (!c)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &ts);
	c->epoch = (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec - loop_now(f->loop).ns;
	c->buf = malloc(BUFFER_SIZE);
	c->f = f;
	c->fd = fd;
	c->snap = SNAP_MAX;
	c->done = done;
	c->ctx = ctx;
	c->watch.fd = fd;
	c->watch.fn = on_writable;
	loop_task_init(&c->flush, on_flush);
	c->flush_timer.fn = on_flush_timer;
	if (!c->buf || section_header(c)) {
		free(c->buf);
		free(c);
		return NULL;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	c->polls = !loop_fd_add(f->loop, &c->watch, 0); /* a regular file cannot be polled */
	return c;
}

int fabric_capture_select(struct fabric_capture *c, u32 snap, const char *words, enum fabric_capture_of of, char *err,
			  size_t err_len)
{
	static const u64 keys[] = {
		[FABRIC_CAPTURE_PACKETS] = ~0ull,
		[FABRIC_CAPTURE_ROCE] = ~WIRE_MATCH_LRH_KEYS(0),
		[FABRIC_CAPTURE_TCP] = WIRE_MATCH_FRAME_KEYS(0),
	};
	struct spec_field fields[ARRAY_SIZE(selection_fields)];
	struct selection *s = &c->selection;
	struct spec_words w = { .n = 0 };
	int rc;

	c->snap = snap ? min(snap, (u32)SNAP_MAX) : SNAP_MAX;
	if (!words)
		return 0;
	spec_take(fields, selection_fields, ARRAY_SIZE(fields), keys[of]);
	rc = spec_split(&w, words, err, err_len);
	rc = rc ?: spec_words(fields, ARRAY_SIZE(fields), s, &s->given, &w, 0, err, err_len);
	return rc ?: wire_match_start(&s->match, s->given, 0, of != FABRIC_CAPTURE_PACKETS, err, err_len);
}

/* @point NULL: an interface of frames that the caller adds (Ethernet). */
static int add_interface(struct fabric_capture *c, struct fabric_capture_point *point, const char *node, u32 num)
{
	struct fabric_capture_point **points =
		realloc(c->points, (c->npoints + 1) * sizeof(struct fabric_capture_point *));
	int err;

	if (!points)
		return -ENOMEM;
	c->points = points;
	err = interface_block(c, node, num, point ? LINKTYPE_ERF : LINKTYPE_ETHERNET);
	if (err)
		return err;
	points[c->npoints++] = point;
	loop_task_queue(c->f->loop, &c->flush);
	return 0;
}

int fabric_capture_add(struct fabric_capture *c, struct fabric_port *p)
{
	struct fabric_capture_point **at = &p->captures, *point;

	for (; *at; at = &(*at)->next)
		if ((*at)->capture == c)
			return -EBUSY;
	point = calloc(1, sizeof(*point));
	if (!point)
		return -ENOMEM;
	*point = (struct fabric_capture_point){ .capture = c, .port = p, .interface = c->npoints };
	if (add_interface(c, point, p->node->name, p->num)) {
		free(point);
		return -ENOMEM;
	}
	*at = point;
	return 0;
}

int fabric_capture_add_frames(struct fabric_capture *c, const char *node, u32 num)
{
	int err = add_interface(c, NULL, node, num);

	return err ? err : (int)c->npoints - 1;
}

/* ERF header: timestamp in 2^-32 s, little endian; type, flags; big-endian lengths of the record, and on the link. */
static void erf_header(u8 *d, u64 ns, u32 kept, u32 len)
{
	u64 stamp = (ns / NSEC_PER_SEC) << 32 | ((ns % NSEC_PER_SEC) << 32) / NSEC_PER_SEC;
	u32 rlen = kept + ERF_HEADER;

	memset(d, 0, ERF_HEADER);
	memcpy(d, &stamp, 8);
	d[8] = ERF_TYPE_INFINIBAND;
	d[9] = 4; /* variable record length */
	d[10] = rlen >> 8;
	d[11] = rlen;
	d[14] = len >> 8;
	d[15] = len;
}

/*
 * Reserves a packet block with @kept bytes, of a packet of @len, for the caller to fill; NULL: no space, the packet is
 * dropped before its bytes are copied.
 */
static u8 *packet_block(struct fabric_capture *c, u32 interface, u64 ns, u32 kept, u32 len, bool out)
{
	u32 pad = (kept + 3) & ~3u, size = 28 + pad + 12 + 4;
	u8 *d = capture_reserve(c, size);

	if (!d) {
		c->stats.dropped++;
		return NULL;
	}
	capture_block(d, BLOCK_EPB, size);
	capture_put32(d, 8, interface);
	capture_put32(d, 12, ns >> 32);
	capture_put32(d, 16, (u32)ns);
	capture_put32(d, 20, kept);
	capture_put32(d, 24, len);
	memset(d + 28 + kept, 0, pad - kept);
	capture_put16(d, 28 + pad, OPT_EPB_FLAGS);
	capture_put16(d, 30 + pad, 4);
	capture_put32(d, 32 + pad, out ? 2 : 1);
	capture_put32(d, 36 + pad, 0); /* end of the options */
	c->stats.packets++;
	capture_batch(c);
	return d + 28;
}

static void point_capture(const struct fabric_capture_point *point, const struct wire_packet *p, bool out)
{
	struct fabric_capture *c = point->capture;
	u32 len = wire_packet_link_len(p) + WIRE_VCRC_LEN, kept = min(len, c->snap);
	u64 ns = loop_now(c->f->loop).ns + c->epoch;
	u8 *d;

	if (c->selection.given && !wire_match_test(&c->selection.match, p))
		return;
	d = packet_block(c, point->interface, ns, kept + ERF_HEADER, len + ERF_HEADER, out);
	if (!d)
		return;
	erf_header(d, ns, kept, len);
	if (kept == len)
		wire_packet_serialize(p, d + ERF_HEADER, len);
	else
		wire_packet_serialize_start(p, d + ERF_HEADER, kept);
}

void fabric_capture_packet(const struct fabric_port *at, const struct wire_packet *p, bool out)
{
	const struct fabric_capture_point *point;

	for (point = at->captures; point; point = point->next)
		point_capture(point, p, out);
}

void fabric_capture_frame(struct fabric_capture *c, u32 interface, const u8 *frame, u32 len, bool out)
{
	u32 kept = min(len, c->snap);
	u8 *d;

	if (c->selection.given && !wire_match_frame(&c->selection.match, frame, len))
		return;
	d = packet_block(c, interface, loop_now(c->f->loop).ns + c->epoch, kept, len, out);
	if (d)
		memcpy(d, frame, kept);
}

void fabric_capture_forget(struct fabric_port *p)
{
	struct fabric_capture_point *point;

	while ((point = p->captures)) {
		p->captures = point->next;
		point->capture->points[point->interface] = NULL;
		free(point);
	}
}

static void point_remove(struct fabric_capture_point *point)
{
	struct fabric_capture_point **at = &point->port->captures;

	while (*at != point)
		at = &(*at)->next;
	*at = point->next;
	free(point);
}

void fabric_capture_stats(const struct fabric_capture *c, struct fabric_capture_stats *st)
{
	*st = c->stats;
}

static void capture_leave_ports(struct fabric_capture *c)
{
	u32 i;

	for (i = 0; i < c->npoints; i++) {
		if (c->points[i])
			point_remove(c->points[i]);
		c->points[i] = NULL;
	}
}

void fabric_capture_end(struct fabric_capture *c)
{
	capture_leave_ports(c);
	c->ending = true;
	loop_task_queue(c->f->loop, &c->flush);
}

void fabric_capture_stop(struct fabric_capture *c)
{
	capture_leave_ports(c);
	c->done = NULL;
	capture_drain(c);
	loop_fd_del(&c->watch);
	loop_timer_cancel(&c->flush_timer);
	loop_task_cancel(&c->flush);
	wire_match_free(&c->selection.match);
	free(c->points);
	free(c->buf);
	free(c);
}
