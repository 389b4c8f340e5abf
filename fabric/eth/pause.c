// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flow control of an Ethernet link: PAUSE (802.3 annex 31B), which stops all traffic, and priority flow control
 * (802.1Qbb), which stops single priorities. rx_bytes counts the frames of a priority received at an end and still
 * queued in its node. Above the XOFF threshold the end sends XOFF to its peer, below the XON threshold it sends XON,
 * both as frames.
 */
#include "emu/wire/ip.h"
#include "fabric/eth/eth_internal.h"

#define OP_PAUSE     0x0001
#define OP_PFC       0x0101
#define QUANTA_MAX   0xffffu
#define QUANTUM_BITS 512
#define RATE_ASSUMED (10 * NSEC_PER_SEC) /* of links without a rate: 10 Gb/s */
#define ALL          0xff

static const u8 group[ETHER_ALEN] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

u8 eth_frame_class(const u8 *frame, u32 len)
{
	struct ether_header h;

	if (!ether_header_get(&h, frame, len))
		return 0;
	if (h.tagged)
		return (u8)(h.tci >> 13);
	if (h.type == WIRE_INET_IP4 && len - h.size >= IP4_SIZE)
		return frame[h.size + IP4_TOS] >> 5;
	if (h.type == WIRE_INET_IP6 && len - h.size >= IP6_SIZE)
		return (u8)(wire_get(frame + h.size, IP6_TCLASS) >> 5);
	return 0;
}

bool eth_class_lossless(const struct eth_end *end, u8 class)
{
	return end->cfg.pause || end->cfg.pfc & BIT(class);
}

static u64 quantum_ns(const struct eth_end *end)
{
	u64 rate = end->cfg.rate ? end->cfg.rate : RATE_ASSUMED;

	return max(QUANTUM_BITS * NSEC_PER_SEC / rate, 1ull);
}

/* Sends PAUSE or PFC for the classes of @mask with @quanta; 0 is XON. */
static void pause_send(struct eth_end *end, u8 mask, u16 quanta)
{
	struct ether_header h = { .type = ETHERTYPE_FLOW };
	struct wire_buf *buf = wire_buf_alloc(ETHER_MIN);
	bool pfc = end->cfg.pfc && !end->cfg.pause;
	u8 *p;
	u32 c;

	if (!buf)
		return;
	memset(buf->data, 0, ETHER_MIN);
	memcpy(h.dst, group, ETHER_ALEN);
	memcpy(h.src, end->sw ? end->sw->mac : end->port.mac, ETHER_ALEN);
	p = buf->data + ether_header_put(&h, buf->data);
	wire_store(p, 2, pfc ? OP_PFC : OP_PAUSE);
	if (pfc)
		wire_store(p + 2, 2, mask);
	else
		wire_store(p + 2, 2, quanta);
	for (c = 0; pfc && c < ETH_CLASSES; c++)
		wire_store(p + 4 + 2 * c, 2, mask & BIT(c) ? quanta : 0);
	eth_count(end, ETH_CTR_TX_PAUSE);
	eth_end_send_now(end, buf);
}

static void pause_arm_refresh(struct eth_end *end)
{
	loop_timer_set(end->e->loop, &end->refresh, eth_now(end->e) + quantum_ns(end) * QUANTA_MAX / 2);
}

/* Sends XOFF again before the pause expires, while it applies. */
void eth_pause_refresh(struct loop_timer *t, struct now now)
{
	struct eth_end *end = container_of(t, struct eth_end, refresh);
	u8 stopped = end->xoff | end->storm;

	if (!stopped)
		return;
	pause_send(end, stopped, QUANTA_MAX);
	pause_arm_refresh(end);
}

static u8 pause_mask(const struct eth_end *end, u8 class)
{
	return end->cfg.pause ? ALL : (u8)BIT(class);
}

static u32 pause_rx_bytes(const struct eth_end *end, u8 class)
{
	u32 c, sum = 0;

	if (!end->cfg.pause)
		return end->rx_bytes[class];
	for (c = 0; c < ETH_CLASSES; c++)
		sum += end->rx_bytes[c];
	return sum;
}

void eth_pause_account(struct eth_end *end, u8 class, u32 len)
{
	u8 mask = pause_mask(end, class);

	end->rx_bytes[class] += len;
	if (!eth_class_lossless(end, class) || end->xoff & BIT(class) ||
	    pause_rx_bytes(end, class) < eth_queue(end) / 4)
		return;
	end->xoff |= mask;
	pause_send(end, mask, QUANTA_MAX);
	pause_arm_refresh(end);
}

void eth_pause_release(struct eth_end *end, u8 class, u32 len)
{
	u8 mask = pause_mask(end, class);

	end->rx_bytes[class] -= min(len, end->rx_bytes[class]);
	if (!(end->xoff & BIT(class)) || pause_rx_bytes(end, class) > eth_queue(end) / 8)
		return;
	end->xoff &= ~mask;
	if (mask & ~end->storm)
		pause_send(end, mask & ~end->storm, 0);
}

void eth_pause_storm(struct eth_end *end, u8 classes)
{
	u8 ended = end->storm & ~classes & ~end->xoff;

	end->storm = classes;
	if (ended)
		pause_send(end, ended, 0);
	if (!classes)
		return;
	pause_send(end, classes, QUANTA_MAX);
	pause_arm_refresh(end);
}

bool eth_pause_frame(struct eth_end *end, const u8 *frame, u32 len)
{
	const u8 *p = frame + ETHER_SIZE;
	u64 now = eth_now(end->e);
	u16 op;
	u32 c;

	if (ether_type(frame) != ETHERTYPE_FLOW)
		return false;
	op = len >= ETHER_MIN ? (u16)wire_load(p, 2) : 0;
	if (op != OP_PAUSE && op != OP_PFC) /* MAC control frames are never forwarded (802.1Q, 8.6.3) */
		return true;
	eth_count(end, ETH_CTR_RX_PAUSE);
	for (c = 0; c < ETH_CLASSES; c++) {
		if (op == OP_PFC && !(wire_load(p + 2, 2) & BIT(c)))
			continue;
		if (op == OP_PFC ? !(end->cfg.pfc & BIT(c)) : !end->cfg.pause)
			continue; /* not enabled on the link */
		end->paused_until[c] = now + wire_load(op == OP_PFC ? p + 4 + 2 * c : p + 2, 2) * quantum_ns(end);
	}
	eth_end_kick(end);
	return true;
}
