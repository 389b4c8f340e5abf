/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Simulated Ethernet: declarations by the file that implements them. */
#ifndef MUSLIN_FABRIC_ETH_ETH_INTERNAL_H
#define MUSLIN_FABRIC_ETH_ETH_INTERNAL_H

#include "emu/lib/list.h"
#include "fabric/eth/eth.h"

/* A frame in a queue or on a link. */
struct eth_frame {
	struct list link;
	struct wire_buf *buf;
	struct eth_end *from; /* ingress end whose rx_bytes count it for flow control; NULL: none */
	u64 since;            /* ns: time of enqueue */
	u8 class;
	bool bad_fcs;
};

/* One end of a link with its transmit queues. */
struct eth_end {
	struct eth *e;
	struct eth_switch *sw; /* NULL: a station */
	u32 num;
	struct eth_end *peer;
	struct eth_link_config cfg;
	struct ether_port port; /* of a station */
	bool want_ready;
	bool unplugged; /* by eth_end_set_up(), at both ends of the link */
	u32 pulled;     /* number of faults at this end that keep the link down */
	u64 rate;       /* transmit rate, bit/s: that of cfg, or less by a fault; 0: no transmission time */

	/* end.c: transmit */
	struct list q[ETH_CLASSES];
	u32 bytes;
	u64 busy_until; /* end of the current transmission, with a rate */
	struct loop_task task;
	struct loop_timer timer; /* the link is free, or a pause has ended */

	/* flow control, on both sides */
	u64 paused_until[ETH_CLASSES]; /* by the peer's PAUSE frames */
	u64 waits_since;               /* start of a wait for the end of a pause; 0: none */
	u32 rx_bytes[ETH_CLASSES];     /* received here and still queued in this node */
	u8 xoff;                       /* classes for which the peer was sent XOFF */
	u8 storm;                      /* storm fault: classes with permanent XOFF */
	struct loop_timer refresh;

	/* station: receive backlog of its user */
	struct list held;
	u32 held_bytes;

	struct fault_point hooks; /* faults of the receive direction */
	void (*capture)(void *ctx, const u8 *frame, u32 len, bool out);
	void *capture_ctx;
	u64 counter[ETH_CTR_NUM];
};

struct eth_entry;

struct eth_switch {
	struct eth *e;
	char name[ETH_NAME_MAX];
	u64 age_ns;
	u8 mac[ETHER_ALEN];
	struct eth_end *end[ETH_PORTS_MAX]; /* [num - 1] */
	u32 nends;
	struct list *table; /* TABLE_BUCKETS of struct eth_entry */
	u32 nentries;
	struct loop_timer sweep;
};

struct eth {
	struct loop *loop;
	struct eth_switch **sw;
	u32 nsw;
	struct eth_end **station;
	u32 nstations;
	struct fault_set faults;
	void (*watch)(void *ctx, const struct eth_end *end);
	void *watch_ctx;
	struct eth_end *(*names)(void *ctx, const char *name); /* NULL: stations have no other names */
	void *names_ctx;
};

static inline void eth_count(struct eth_end *end, enum eth_counter c)
{
	end->counter[c]++;
}

static inline u64 eth_now(const struct eth *e)
{
	return loop_now(e->loop).ns;
}

static inline u32 eth_queue(const struct eth_end *end)
{
	return end->cfg.queue ? end->cfg.queue : ETH_QUEUE;
}

/* end.c */
void eth_link_cut(struct eth_end *end);    /* sets the link down, until eth_link_update() */
void eth_link_update(struct eth_end *end); /* call after a change of @pulled or @unplugged, at either end */
struct eth_end *eth_end_create(struct eth *e, const struct eth_link_config *cfg);
void eth_end_destroy(struct eth_end *end);
/* Queues a frame that @from (or NULL) accounts for flow control; consumes the reference. */
void eth_end_queue(struct eth_end *end, struct wire_buf *buf, u8 class, struct eth_end *from);
/* Sends a flow control frame ahead of all queues. Consumes the reference. */
void eth_end_send_now(struct eth_end *end, struct wire_buf *buf);
void eth_end_kick(struct eth_end *end);
/* Receives a frame, after faults; consumes it. */
void eth_end_receive(struct eth_end *end, struct eth_frame *f);
struct eth_frame *eth_frame_create(struct wire_buf *buf, u8 class, struct eth_end *from);
void eth_frame_free(struct eth_frame *f); /* and removes it from the flow control accounting */
/* Moves the first @size bytes of a frame that flow control does not account for to a buffer of its own. False: no
 * memory, the frame is unchanged. */
bool eth_frame_own(struct eth_frame *f, u32 size);
/* ECN (RFC 3168, section 5): whether the frame is ECN-capable and not marked CE; then eth_frame_mark() marks it. */
bool eth_frame_may_mark(const struct eth_frame *f);
bool eth_frame_mark(struct eth_frame *f); /* false: no memory */

/* pause.c */
/* The priority of a frame: PCP of its tag, or by DSCP. */
u8 eth_frame_class(const u8 *frame, u32 len);
bool eth_class_lossless(const struct eth_end *end, u8 class);
void eth_pause_account(struct eth_end *end, u8 class, u32 len);
void eth_pause_release(struct eth_end *end, u8 class, u32 len);
bool eth_pause_frame(struct eth_end *end, const u8 *frame, u32 len); /* true: a MAC control frame, handled */
void eth_pause_storm(struct eth_end *end, u8 classes);               /* 0: ends the storm */
void eth_pause_refresh(struct loop_timer *t, struct now now);

/* switch.c: forwards; consumes the reference. */
void eth_switch_receive(struct eth_end *in, struct wire_buf *buf, u8 class);
void eth_switch_forget(struct eth_switch *sw, const struct eth_end *end); /* NULL: all */
int eth_switch_init(struct eth_switch *sw);

#endif
