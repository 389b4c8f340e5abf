// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reliable multi-packet protocol (13.6), both directions, with the window, timers and responses of the kernel's
 * mad_rmpp.c.
 *
 * Sender: sends segments up to the new-window-last of the receiver's ACKs (1 initially); an ACK timeout restarts after
 * the last acknowledged one. The last ACK ends the send, or starts the wait for the response. Receiver: identifies a
 * message by source, class, version, method and TID. It acknowledges the first segment, the last one of each window,
 * duplicates, and the last one. A complete message is remembered for a while, because its last ACK may be lost.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/mad_internal.h"

bool rmpp_class(u8 mgmt_class)
{
	return mgmt_class == MAD_CLASS_DEV_MGT || wire_mad_class_has_rmpp(mgmt_class);
}

u32 rmpp_hdr_len(u8 mgmt_class)
{
	if (mgmt_class == MAD_CLASS_SUBN_ADM)
		return 56;
	return wire_mad_is_vendor2_class(mgmt_class) ? MAD_VENDOR2_DATA : MAD_GMP_DATA;
}

static u32 seg_data(u8 mgmt_class)
{
	return MAD_SIZE - rmpp_hdr_len(mgmt_class);
}

/* ---- control packets ---- */

/* A control packet in response to @mad: its headers with the R bit inverted, and a new RMPP header. */
static void rmpp_control(struct mad_agent *a, const u8 *mad, const struct mad_addr *to, enum wire_rmpp_type type,
			 u8 status, u32 seg, u32 newwin)
{
	u8 ctl[MAD_SIZE] = { 0 };

	memcpy(ctl, mad, rmpp_hdr_len(wire_mad_get_class(mad)));
	ctl[3] ^= MAD_METHOD_RESP;
	memset(ctl + MAD_HDR_SIZE, 0, RMPP_HDR_SIZE);
	wire_set(ctl, RMPP_VERSION, RMPP_VERSION_1);
	wire_set(ctl, RMPP_TYPE, type);
	wire_set(ctl, RMPP_FLAGS, RMPP_FLAG_ACTIVE);
	wire_set(ctl, RMPP_STATUS, status);
	wire_set(ctl, RMPP_SEGMENT, seg);
	wire_set(ctl, RMPP_NEW_WINDOW, newwin);
	(void)mad_port_xmit(a->mp, a->reg.qpn, ctl, to); /* on failure as good as lost */
}

static void rmpp_nack(struct mad_agent *a, const u8 *mad, const struct mad_addr *to, enum wire_rmpp_status status)
{
	a->mp->counter[MAD_CTR_RMPP_ABORTED]++;
	rmpp_control(a, mad, to, status == RMPP_STATUS_RESX ? RMPP_TYPE_STOP : RMPP_TYPE_ABORT, status, 0, 0);
}

/* ---- receiving ---- */

struct rmpp_recv {
	struct list link;
	struct mad_agent *agent;
	struct mad_addr from;
	struct loop_timer timer;
	bool complete;
	u32 seg_num;  /* all segments up to here were received */
	u32 last_ack; /* the last segment acknowledged */
	u32 newwin;
	u32 repwin;         /* window that the peer opened for the response: double-sided transfer, 13.6.6.3 */
	u64 ahead;          /* bit n: segment seg_num + 1 + n was received */
	u32 last_seg;       /* 0: unknown */
	u32 last_len;       /* bytes of data in it */
	u32 cap, bytes;     /* segments, and their memory */
	u8 *data;           /* headers, then segments' data, room for cap segments */
	u8 first[MAD_SIZE]; /* the headers, after data was passed to the agent */
};

static void recv_free(struct rmpp_recv *v)
{
	loop_timer_cancel(&v->timer);
	list_del(&v->link);
	v->agent->nrecvs--;
	v->agent->recv_bytes -= v->bytes;
	free(v->data);
	free(v);
}

void rmpp_agent_fini(struct mad_agent *a)
{
	while (!list_empty(&a->rmpp_recvs))
		recv_free(list_first(&a->rmpp_recvs, struct rmpp_recv, link));
}

static void recv_expired(struct loop_timer *t, struct now now)
{
	struct rmpp_recv *v = container_of(t, struct rmpp_recv, timer);

	if (!v->complete)
		rmpp_nack(v->agent, v->first, &v->from, RMPP_STATUS_T2L);
	recv_free(v);
}

static void recv_arm(struct rmpp_recv *v, u32 ms)
{
	struct loop *loop = v->agent->mp->loop;

	loop_timer_set(loop, &v->timer, loop_now(loop).ns + ms * NSEC_PER_MSEC);
}

static struct rmpp_recv *recv_find(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	struct rmpp_recv *v;

	list_for_each (v, &a->rmpp_recvs, link)
		if (wire_mad_get_tid(v->first) == wire_mad_get_tid(mad) && memcmp(v->first + 1, mad + 1, 3) == 0 &&
		    v->from.lid == from->lid && v->from.qpn == from->qpn)
			return v;
	return NULL;
}

/* Frees a slot by discarding the oldest complete message; false if all are incomplete, or one source has too many. */
static bool recv_make_room(struct mad_agent *a, const struct mad_addr *from)
{
	struct rmpp_recv *v;
	u32 n = 0;

	list_for_each (v, &a->rmpp_recvs, link)
		n += !v->complete && v->from.lid == from->lid && v->from.grh == from->grh &&
		     (!from->grh || wire_gid_equal(&v->from.gid, &from->gid));
	if (n >= RMPP_SOURCE_MAX)
		return false;
	if (a->nrecvs < RMPP_RECVS_MAX)
		return true;
	list_for_each (v, &a->rmpp_recvs, link)
		if (v->complete) {
			recv_free(v);
			return true;
		}
	return false;
}

static struct rmpp_recv *recv_create(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	struct rmpp_recv *v = recv_make_room(a, from) ? calloc(1, sizeof(*v)) : NULL;

	if (!v)
		return NULL;
	v->agent = a;
	v->from = *from;
	v->timer.fn = recv_expired;
	v->newwin = 1;
	v->repwin = 1;
	memcpy(v->first, mad, MAD_SIZE);
	list_add(&a->rmpp_recvs, &v->link);
	a->nrecvs++;
	return v;
}

static void rmpp_ack(struct rmpp_recv *v)
{
	v->last_ack = v->seg_num;
	rmpp_control(v->agent, v->first, &v->from, RMPP_TYPE_ACK, 0, v->seg_num, v->newwin);
}

static bool recv_reserve(struct rmpp_recv *v, u32 seg)
{
	u8 class = wire_mad_get_class(v->first);
	u32 cap, bytes;
	u8 *p;

	if (seg <= v->cap)
		return true;
	if (seg > RMPP_SEGS_MAX)
		return false;
	cap = min(max(seg, v->cap * 2), (u32)RMPP_SEGS_MAX);
	bytes = rmpp_hdr_len(class) + cap * seg_data(class);
	if (v->agent->recv_bytes - v->bytes + bytes > RMPP_RECV_BYTES_MAX)
		return false;
	p = realloc(v->data, bytes);
	if (!p)
		return false;
	v->agent->recv_bytes += bytes - v->bytes;
	v->bytes = bytes;
	if (!v->data)
		memcpy(p, v->first, rmpp_hdr_len(class));
	v->data = p;
	v->cap = cap;
	return true;
}

/* Bytes of data in the last segment: its PayloadLength includes the class header. */
static u32 last_len(const u8 *mad)
{
	u32 class_hdr = rmpp_hdr_len(wire_mad_get_class(mad)) - MAD_RMPP_HDR_END, len = wire_get(mad, RMPP_PAYLOAD_LEN);

	if (len > RMPP_SEG_PAYLOAD)
		return seg_data(wire_mad_get_class(mad));
	return len > class_hdr ? len - class_hdr : 0;
}

static void recv_store(struct rmpp_recv *v, const u8 *mad, u32 seg)
{
	u32 hdr = rmpp_hdr_len(wire_mad_get_class(mad)), size = seg_data(wire_mad_get_class(mad));

	memcpy(v->data + hdr + (size_t)(seg - 1) * size, mad + hdr, size);
	v->ahead |= BIT_ULL(seg - v->seg_num - 1);
	if (wire_get(mad, RMPP_FLAGS) & RMPP_FLAG_LAST) {
		v->last_seg = seg;
		v->last_len = last_len(mad);
	}
	while (v->ahead & 1) {
		v->ahead >>= 1;
		v->seg_num++;
	}
}

static void recv_complete(struct rmpp_recv *v, struct rmpp_msg *msg)
{
	u8 class = wire_mad_get_class(v->first);

	msg->data = v->data;
	msg->len = rmpp_hdr_len(class) + (v->last_seg - 1) * seg_data(class) + v->last_len;
	v->data = NULL;
	v->agent->recv_bytes -= v->bytes;
	v->bytes = 0;
	v->complete = true;
	rmpp_ack(v);
	recv_arm(v, RMPP_REMEMBER_MS);
}

/* Handles segment @seg of a known message. True if it completes it. */
static bool recv_segment(struct rmpp_recv *v, const u8 *mad, u32 seg, struct rmpp_msg *msg)
{
	struct mad_port *mp = v->agent->mp;

	if (v->complete || seg <= v->last_ack) {
		mp->counter[MAD_CTR_RMPP_DUPLICATES]++;
		rmpp_ack(v);
		return false;
	}
	if (seg > v->newwin || seg <= v->seg_num || (v->last_seg && seg > v->last_seg) ||
	    (v->ahead & BIT_ULL(seg - v->seg_num - 1))) {
		mp->counter[MAD_CTR_RMPP_DUPLICATES]++;
		return false;
	}
	if (!recv_reserve(v, seg)) {
		mp->counter[MAD_CTR_RMPP_REFUSED]++;
		rmpp_nack(v->agent, v->first, &v->from, RMPP_STATUS_RESX);
		recv_free(v);
		return false;
	}
	recv_store(v, mad, seg);
	if (v->seg_num == v->last_seg) {
		recv_complete(v, msg);
		return true;
	}
	if (v->seg_num == v->newwin) {
		v->newwin += RMPP_WINDOW;
		rmpp_ack(v);
	}
	return false;
}

static bool recv_data(struct mad_agent *a, const u8 *mad, const struct mad_addr *from, struct rmpp_msg *msg)
{
	bool first = wire_get(mad, RMPP_FLAGS) & RMPP_FLAG_FIRST;
	u32 seg = wire_get(mad, RMPP_SEGMENT);
	struct rmpp_recv *v;

	if (wire_get(mad, RMPP_STATUS)) {
		rmpp_nack(a, mad, from, RMPP_STATUS_BAD_STATUS);
		return false;
	}
	if (first != (seg == 1)) {
		rmpp_nack(a, mad, from, RMPP_STATUS_BAD_SEG);
		return false;
	}
	v = recv_find(a, mad, from);
	if (!v && !first)
		return false; /* its first segment was lost: the sender retransmits it */
	if (!v) {
		v = recv_create(a, mad, from);
		if (!v) {
			a->mp->counter[MAD_CTR_RMPP_REFUSED]++;
			rmpp_nack(a, mad, from, RMPP_STATUS_RESX);
			return false;
		}
		recv_arm(v, RMPP_TOTAL_TIMEOUT_MS);
	}
	return recv_segment(v, mad, seg, msg);
}

/* ---- sending ---- */

/* PayloadLength: the first segment has that of all segments, the last one its own, both
 * including a class header per segment. */
static u32 payload_len(const struct mad_req *r, u32 seg, u32 data)
{
	u32 class_hdr = r->hdr_len - MAD_RMPP_HDR_END;

	if (seg == 1)
		return r->len - r->hdr_len + r->seg_count * class_hdr;
	return seg == r->seg_count ? data + class_hdr : 0;
}

static void send_segment(struct mad_req *r, u32 seg)
{
	u32 size = MAD_SIZE - r->hdr_len, off = r->hdr_len + (seg - 1) * size;
	u32 data = min(size, r->len - off);
	u8 mad[MAD_SIZE] = { 0 };

	memcpy(mad, r->data, r->hdr_len);
	memcpy(mad + r->hdr_len, r->data + off, data);
	wire_set(mad, RMPP_VERSION, RMPP_VERSION_1);
	wire_set(mad, RMPP_TYPE, RMPP_TYPE_DATA);
	wire_set(mad, RMPP_FLAGS,
		 RMPP_FLAG_ACTIVE | (seg == 1 ? RMPP_FLAG_FIRST : 0) | (seg == r->seg_count ? RMPP_FLAG_LAST : 0));
	wire_set(mad, RMPP_STATUS, 0);
	wire_set(mad, RMPP_SEGMENT, seg);
	wire_set(mad, RMPP_PAYLOAD_LEN, payload_len(r, seg, data));
	(void)mad_port_xmit(r->agent->mp, r->agent->reg.qpn, mad, &r->to);
}

/* Sends segments within the RMPP window while the send queue has space. */
void rmpp_send_more(struct mad_req *r)
{
	struct mad_port *mp = r->agent->mp;
	u32 budget = RMPP_TURN;

	list_del(&r->done);
	while (r->seg_num < r->seg_count && r->seg_num < r->newwin) {
		if (!budget-- || mp->tx_len[r->agent->reg.qpn] >= MAD_TX_MAX / 2) {
			list_add(&mp->more, &r->done);
			loop_task_queue(mp->loop, &mp->pump);
			break;
		}
		send_segment(r, ++r->seg_num);
	}
	mad_req_arm(r, r->timeout_ms && r->timeout_ms < RMPP_ACK_TIMEOUT_MS ? r->timeout_ms : RMPP_ACK_TIMEOUT_MS);
}

/* The response to an RMPP request starts with the window that the requester has opened. */
static u32 first_window(const struct mad_req *r)
{
	const struct rmpp_recv *v;

	list_for_each (v, &r->agent->rmpp_recvs, link)
		if (v->complete && wire_mad_get_tid(v->first) == wire_mad_get_tid(r->data) &&
		    wire_mad_get_class(v->first) == wire_mad_get_class(r->data) &&
		    (wire_mad_get_method(v->first) ^ MAD_METHOD_RESP) == wire_mad_get_method(r->data) &&
		    v->from.lid == r->to.lid)
			return v->repwin;
	return 1;
}

void rmpp_send_start(struct mad_req *r)
{
	u32 size = seg_data(wire_mad_get_class(r->data));

	r->hdr_len = rmpp_hdr_len(wire_mad_get_class(r->data));
	r->seg_count = max((r->len - r->hdr_len + size - 1) / size, 1u);
	r->newwin = first_window(r);
	rmpp_send_more(r);
}

bool rmpp_send_retry(struct mad_req *r)
{
	if (r->last_ack == r->seg_count)
		return false;
	r->seg_num = r->last_ack;
	rmpp_send_more(r);
	return true;
}

static struct mad_req *send_find(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	struct mad_req *r = mad_req_find(a, mad, from);

	return r && r->rmpp ? r : NULL;
}

static void abort_send(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	struct mad_req *r = send_find(a, mad, from);

	if (!r || r->last_ack == r->seg_count)
		return;
	a->mp->counter[MAD_CTR_RMPP_ABORTED]++;
	mad_req_end(r, -ECONNABORTED);
}

/* Aborts a transaction: sends ABORT to the peer, and ends the send. */
static void fail_send(struct mad_agent *a, const u8 *mad, const struct mad_addr *from, enum wire_rmpp_status status)
{
	rmpp_nack(a, mad, from, status);
	abort_send(a, mad, from);
}

static void last_ack_came(struct mad_req *r, const u8 *mad, const struct mad_addr *from)
{
	struct mad_agent *a = r->agent;

	if (!r->timeout_ms) {
		mad_req_end(r, 0);
		return;
	}
	mad_req_arm(r, r->timeout_ms);
	rmpp_control(a, mad, from, RMPP_TYPE_ACK, 0, 0, RMPP_WINDOW); /* opens the window for the response */
}

static void recv_ack(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	u32 seg = wire_get(mad, RMPP_SEGMENT), newwin = wire_get(mad, RMPP_NEW_WINDOW);
	struct rmpp_recv *v;
	struct mad_req *r;

	if (wire_get(mad, MAD_STATUS)) { /* a returned ACK: the peer has no agent, and would return the next, too */
		abort_send(a, mad, from);
		return;
	}
	if (wire_get(mad, RMPP_STATUS)) {
		fail_send(a, mad, from, RMPP_STATUS_BAD_STATUS);
		return;
	}
	if (newwin < seg) {
		fail_send(a, mad, from, RMPP_STATUS_W2S);
		return;
	}
	r = send_find(a, mad, from);
	if (!r) {
		v = seg ? NULL : recv_find(a, mad, from);
		if (v && v->complete)
			v->repwin = newwin;
		return;
	}
	if (r->last_ack == r->seg_count) {
		if (r->timeout_ms) /* the ACK that opened the window was lost */
			rmpp_control(a, mad, from, RMPP_TYPE_ACK, 0, 0, RMPP_WINDOW);
		return;
	}
	if (seg > r->seg_count || seg > r->newwin) {
		fail_send(a, mad, from, RMPP_STATUS_S2B);
		return;
	}
	if (newwin < r->newwin || seg < r->last_ack)
		return; /* older than an ACK already received */
	if (seg > r->last_ack)
		r->retries_left = r->retries;
	r->last_ack = seg;
	r->seg_num = max(r->seg_num, seg);
	r->newwin = newwin;
	if (seg == r->seg_count)
		last_ack_came(r, mad, from);
	else if (r->seg_num < newwin)
		rmpp_send_more(r);
}

static void recv_stop_or_abort(struct mad_agent *a, const u8 *mad, const struct mad_addr *from, bool stop)
{
	u8 status = wire_get(mad, RMPP_STATUS);
	struct rmpp_recv *v = recv_find(a, mad, from);

	if (stop ? status != RMPP_STATUS_RESX : status < RMPP_STATUS_T2L || status > RMPP_STATUS_UNSPEC)
		rmpp_nack(a, mad, from, RMPP_STATUS_BAD_STATUS);
	if (v && !v->complete)
		recv_free(v); /* the sender aborted */
	abort_send(a, mad, from);
}

bool rmpp_receive(struct mad_agent *a, const u8 *mad, const struct mad_addr *from, struct rmpp_msg *msg)
{
	u8 type = wire_get(mad, RMPP_TYPE);

	if (wire_get(mad, RMPP_VERSION) != RMPP_VERSION_1) {
		fail_send(a, mad, from, RMPP_STATUS_BAD_VERSION);
		return false;
	}
	switch (type) {
	case RMPP_TYPE_DATA:
		return recv_data(a, mad, from, msg);
	case RMPP_TYPE_ACK:
		recv_ack(a, mad, from);
		return false;
	case RMPP_TYPE_STOP:
	case RMPP_TYPE_ABORT:
		recv_stop_or_abort(a, mad, from, type == RMPP_TYPE_STOP);
		return false;
	default:
		fail_send(a, mad, from, RMPP_STATUS_BAD_TYPE);
		return false;
	}
}
