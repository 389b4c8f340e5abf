// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One end of an Ethernet link: transmit queues by priority, and receive. Each hop of a frame is a separate task of the
 * loop, which bounds the depth of the stack.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/ip.h"
#include "fabric/eth/eth_internal.h"

#define BURST      64 /* frames that an end sends in one run of its task */
#define GAP_BYTES  24 /* preamble, FCS and interpacket gap (802.3, 4.4.2) */
#define LOSSLESS_X 16 /* PAUSE limits lossless queues at the ingress; this factor is the hard limit */

struct eth_frame *eth_frame_create(struct wire_buf *buf, u8 class, struct eth_end *from)
{
	struct eth_frame *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->buf = buf;
	f->class = class;
	f->from = from;
	if (from)
		eth_pause_account(from, class, buf->size);
	return f;
}

static void eth_frame_unaccount(struct eth_frame *f)
{
	if (f->from)
		eth_pause_release(f->from, f->class, f->buf->size);
	f->from = NULL;
}

void eth_frame_free(struct eth_frame *f)
{
	eth_frame_unaccount(f);
	wire_buf_put(f->buf);
	free(f);
}

static void eth_frames_free(struct list *frames)
{
	while (!list_empty(frames)) {
		struct eth_frame *f = list_first(frames, struct eth_frame, link);

		list_del(&f->link);
		eth_frame_free(f);
	}
}

void eth_end_kick(struct eth_end *end)
{
	loop_task_queue(end->e->loop, &end->task);
}

bool eth_frame_may_mark(const struct eth_frame *f)
{
	struct ether_header h;

	return ether_header_get(&h, f->buf->data, f->buf->size) &&
	       wire_ip_may_mark(f->buf->data + h.size, f->buf->size - h.size, h.type);
}

bool eth_frame_own(struct eth_frame *f, u32 size)
{
	struct wire_buf *own = wire_buf_alloc(size);

	if (!own)
		return false;
	memcpy(own->data, f->buf->data, size);
	wire_buf_put(f->buf);
	f->buf = own;
	return true;
}

bool eth_frame_mark(struct eth_frame *f)
{
	struct ether_header h;

	if (!eth_frame_own(f, f->buf->size))
		return false;
	ether_header_get(&h, f->buf->data, f->buf->size);
	wire_ip_mark(f->buf->data + h.size, h.type);
	return true;
}

void eth_end_queue(struct eth_end *end, struct wire_buf *buf, u8 class, struct eth_end *from)
{
	u32 most = eth_queue(end) * (from && eth_class_lossless(from, class) ? LOSSLESS_X : 1);
	struct eth_frame *f;

	if (!end->port.up || end->bytes + buf->size > most) {
		eth_count(end, end->port.up ? ETH_CTR_TX_DROPPED : ETH_CTR_TX_DOWN);
		wire_buf_put(buf);
		return;
	}
	f = eth_frame_create(buf, class, from);
	if (!f) {
		wire_buf_put(buf);
		return;
	}
	f->since = eth_now(end->e);
	list_add(&end->q[class], &f->link);
	end->bytes += buf->size;
	eth_end_kick(end);
}

/* Transmits a frame; a frame on the link does not count for flow control. */
static void eth_end_transmit(struct eth_end *end, struct eth_frame *f)
{
	eth_count(end, ETH_CTR_TX_FRAMES);
	end->counter[ETH_CTR_TX_BYTES] += f->buf->size;
	if (end->capture)
		end->capture(end->capture_ctx, f->buf->data, f->buf->size, true);
	eth_frame_unaccount(f);
	if (fault_pass(&end->peer->hooks, f, 0))
		eth_end_receive(end->peer, f);
}

void eth_end_send_now(struct eth_end *end, struct wire_buf *buf)
{
	struct eth_frame *f = end->port.up ? eth_frame_create(buf, 0, NULL) : NULL;

	if (f)
		eth_end_transmit(end, f);
	else
		wire_buf_put(buf);
}

/* The head of the highest priority that is not paused. *wait: end of the earliest pause. */
static struct eth_frame *eth_end_next_frame(struct eth_end *end, u64 now, u64 *wait)
{
	u32 c = ETH_CLASSES;

	*wait = 0;
	while (c--) {
		if (list_empty(&end->q[c]))
			continue;
		if (end->paused_until[c] <= now)
			return list_first(&end->q[c], struct eth_frame, link);
		*wait = *wait ? min(*wait, end->paused_until[c]) : end->paused_until[c];
	}
	return NULL;
}

static void eth_station_ready(struct eth_end *end)
{
	if (!end->want_ready || end->bytes > eth_queue(end) / 2)
		return;
	end->want_ready = false;
	if (end->port.roce.ready)
		end->port.roce.ready(end->port.roce.ctx);
	if (end->port.nic.ready)
		end->port.nic.ready(end->port.nic.ctx);
}

static void eth_end_run(struct eth_end *end)
{
	u64 now = eth_now(end->e), wait = 0, begin;
	struct eth_frame *f;
	u32 n;

	for (n = 0; n < BURST && end->busy_until <= now; n++) {
		f = eth_end_next_frame(end, now, &wait);
		if (!f)
			break;
		list_del(&f->link);
		end->bytes -= f->buf->size;
		/* The transmission starts when the link is free and not paused, not when the (late) timer runs. */
		begin = max(max(end->busy_until, f->since), end->paused_until[f->class]);
		if (end->rate)
			end->busy_until = begin + (f->buf->size + GAP_BYTES) * 8 * NSEC_PER_SEC / end->rate;
		/* At dequeue: marking at enqueue reports congestion later, and with senders that alternate only to
		 * the last one. */
		if (end->sw && end->cfg.ecn && end->bytes >= end->cfg.ecn && eth_frame_may_mark(f) && eth_frame_mark(f))
			eth_count(end, ETH_CTR_TX_MARKED);
		eth_end_transmit(end, f);
	}
	if (wait && !end->waits_since) {
		end->waits_since = now;
	} else if (!wait && end->waits_since) {
		end->counter[ETH_CTR_PAUSED_US] += (now - end->waits_since) / NSEC_PER_USEC;
		end->waits_since = 0;
	}
	if (end->bytes && end->busy_until > now)
		wait = end->busy_until;
	if (wait)
		loop_timer_set(end->e->loop, &end->timer, wait);
	else if (end->bytes)
		eth_end_kick(end);
	eth_station_ready(end);
}

static void end_on_task(struct loop_task *t, struct now now)
{
	eth_end_run(container_of(t, struct eth_end, task));
}

static void end_on_timer(struct loop_timer *t, struct now now)
{
	eth_end_run(container_of(t, struct eth_end, timer));
}

/* Stations */

static void station_receive(struct eth_end *end, struct wire_buf *buf, u8 class)
{
	struct ether_port *p = &end->port;
	struct eth_frame *f = NULL;

	if (p->roce.receive && p->roce.receive(p->roce.ctx, buf))
		return;
	if (!p->nic.receive || (list_empty(&end->held) && p->nic.receive(p->nic.ctx, buf) != -EAGAIN))
		return;
	if (end->held_bytes + buf->size <= eth_queue(end))
		f = eth_frame_create(wire_buf_get(buf), class, end);
	if (!f) {
		eth_count(end, ETH_CTR_RX_DROPPED);
		return;
	}
	list_add(&end->held, &f->link);
	end->held_bytes += buf->size;
}

static void station_resume(struct ether_port *port)
{
	struct eth_end *end = container_of(port, struct eth_end, port);

	while (!list_empty(&end->held)) {
		struct eth_frame *f = list_first(&end->held, struct eth_frame, link);

		if (port->nic.receive && port->nic.receive(port->nic.ctx, f->buf) == -EAGAIN)
			return;
		list_del(&f->link);
		end->held_bytes -= f->buf->size;
		eth_frame_free(f);
	}
}

static int station_send(struct ether_port *port, struct wire_buf *buf)
{
	struct eth_end *end = container_of(port, struct eth_end, port);

	if (end->bytes >= eth_queue(end) && port->up) {
		end->want_ready = true;
		return -EAGAIN;
	}
	if (buf->size < ETHER_SIZE || buf->size > port->mtu + ETHER_SIZE + ETHER_TAG_SIZE) {
		eth_count(end, ETH_CTR_TX_DROPPED);
		wire_buf_put(buf);
		return 0;
	}
	eth_end_queue(end, buf, eth_frame_class(buf->data, buf->size), NULL);
	return 0;
}

static const struct ether_ops station_ops = { .send = station_send, .resume = station_resume };

/* Receive */

void eth_end_receive(struct eth_end *end, struct eth_frame *f)
{
	struct wire_buf *buf = f->buf;
	bool length_ok = buf->size >= ETHER_SIZE && buf->size <= end->port.mtu + ETHER_SIZE + ETHER_TAG_SIZE;
	u8 class;

	if (!end->port.up || f->bad_fcs || !length_ok) {
		if (end->port.up)
			eth_count(end, f->bad_fcs ? ETH_CTR_RX_FCS : ETH_CTR_RX_SHORT);
		eth_frame_free(f);
		return;
	}
	free(f);
	eth_count(end, ETH_CTR_RX_FRAMES);
	end->counter[ETH_CTR_RX_BYTES] += buf->size;
	if (ether_is_multicast(buf->data))
		eth_count(end, ETH_CTR_RX_MULTICAST);
	if (end->capture)
		end->capture(end->capture_ctx, buf->data, buf->size, false);
	if (!eth_pause_frame(end, buf->data, buf->size)) {
		class = eth_frame_class(buf->data, buf->size);
		if (end->sw) {
			eth_switch_receive(end, buf, class);
			return;
		}
		station_receive(end, buf, class);
	}
	wire_buf_put(buf);
}

/* Create, destroy, link state */

struct eth_end *eth_end_create(struct eth *e, const struct eth_link_config *cfg)
{
	struct eth_end *end = calloc(1, sizeof(*end));
	u32 c;

	if (!end)
		return NULL;
	end->e = e;
	end->cfg = *cfg;
	if (!end->cfg.vlan)
		end->cfg.vlan = 1;
	end->num = 1;
	end->port.ops = &station_ops;
	end->port.mtu = cfg->mtu ? cfg->mtu : ETHER_MTU;
	end->port.rate = end->rate = cfg->rate;
	end->port.up = true;
	for (c = 0; c < ETH_CLASSES; c++)
		list_init(&end->q[c]);
	list_init(&end->held);
	loop_task_init(&end->task, end_on_task);
	end->timer.fn = end_on_timer;
	end->refresh.fn = eth_pause_refresh;
	return end;
}

static void eth_end_flush(struct eth_end *end)
{
	u32 c;

	for (c = 0; c < ETH_CLASSES; c++)
		eth_frames_free(&end->q[c]);
	eth_frames_free(&end->held);
	end->bytes = end->held_bytes = 0;
	loop_timer_cancel(&end->timer);
	loop_timer_cancel(&end->refresh);
	loop_task_cancel(&end->task);
}

void eth_end_destroy(struct eth_end *end)
{
	if (!end)
		return;
	eth_end_flush(end);
	free(end);
}

static void eth_end_set_link(struct eth_end *end, bool up)
{
	struct ether_port *p = &end->port;

	p->up = up;
	eth_end_flush(end);
	fault_lose_held(&end->hooks);
	memset(end->paused_until, 0, sizeof(end->paused_until));
	end->xoff = 0;
	end->busy_until = 0;
	if (end->sw && !up)
		eth_switch_forget(end->sw, end);
	if (p->roce.link)
		p->roce.link(p->roce.ctx, up);
	if (p->nic.link)
		p->nic.link(p->nic.ctx, up);
	eth_station_ready(end);
	if (end->e->watch)
		end->e->watch(end->e->watch_ctx, end);
}

static void eth_link_set(struct eth_end *end, bool up)
{
	if (end->port.up == up)
		return;
	eth_end_set_link(end, up);
	eth_end_set_link(end->peer, up);
}

void eth_link_cut(struct eth_end *end)
{
	eth_link_set(end, false);
}

void eth_link_update(struct eth_end *end)
{
	eth_link_set(end, !end->unplugged && !end->pulled && !end->peer->pulled);
}

void eth_end_set_up(struct eth_end *end, bool up)
{
	end->unplugged = end->peer->unplugged = !up;
	eth_link_update(end);
}
