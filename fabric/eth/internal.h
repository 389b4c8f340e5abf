/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to simulated Ethernet, by the file that implements each part. */
#ifndef MUSLIN_FABRIC_ETH_INTERNAL_H
#define MUSLIN_FABRIC_ETH_INTERNAL_H

#include "emu/lib/list.h"
#include "fabric/eth/eth.h"

/* A frame on its way. */
struct eth_frame {
	struct list link;
	struct wire_buf *buf;
	struct eth_end *from; /* on whose books it stands while it waits in a switch or at a station; NULL: nobody's */
	u64 since;            /* ns: waits for the link from then on */
	u64 when;             /* held by a fault until then, ns */
	u64 after;            /* ... or until so many others have passed */
	u8 class;
	bool bad_fcs;
};

/* One end of a link. What waits here is on its way to the other end. */
struct eth_end {
	struct eth *e;
	struct eth_switch *sw; /* NULL: a station */
	u32 num;
	struct eth_end *peer;
	struct eth_link_config cfg;
	struct ether_port port; /* a station's */
	bool want_ready;

	/* end.c: sending */
	struct list q[ETH_CLASSES];
	u32 bytes;
	u64 busy_until; /* with a rate: when the next one may leave */
	struct loop_task task;
	struct loop_timer timer; /* the link is free again, or a pause is over */

	/* flow control, on both sides */
	u64 paused_until[ETH_CLASSES]; /* by the other end's word */
	u64 waits_since;               /* a class waits for the end of a pause; 0: none */
	u32 rx_bytes[ETH_CLASSES];     /* that came in here and still wait somewhere in this node */
	u8 xoff;                       /* classes that the other end has been told to stop */
	u8 storm;                      /* by a fault: classes that the other end is told to stop for ever */
	struct loop_timer refresh;

	/* a station's: what its last user had no room for */
	struct list held;
	u32 held_bytes;

	struct list faults; /* eth_tap: of frames that arrive here */
	void (*tap)(void *ctx, const u8 *frame, u32 len, bool out);
	void *tap_ctx;
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
	u64 seed;
	u32 faults_armed;
	struct eth_switch **sw;
	u32 nsw;
	struct eth_end **station;
	u32 nstations;
	struct list faults;
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
struct eth_end *eth_end_create(struct eth *e, const struct eth_link_config *cfg);
void eth_end_destroy(struct eth_end *end);
/* Queues a frame that is on the books of @from (or nobody's); takes the reference. */
void eth_end_queue(struct eth_end *end, struct wire_buf *buf, u8 class, struct eth_end *from);
bool eth_end_full(const struct eth_end *end);
/* Past every queue: what flow control sends. Takes the reference. */
void eth_end_send_now(struct eth_end *end, struct wire_buf *buf);
void eth_end_kick(struct eth_end *end);
/* A frame has arrived here, after faults; takes it. */
void eth_end_arrive(struct eth_end *end, struct eth_frame *f);
struct eth_frame *eth_frame_create(struct wire_buf *buf, u8 class, struct eth_end *from);
void eth_frame_free(struct eth_frame *f); /* and off the books */

/* pause.c */
/* The priority of a frame: its tag's, or what its DSCP says. */
u8 eth_frame_class(const u8 *frame, u32 len);
bool eth_class_lossless(const struct eth_end *end, u8 class);
void eth_pause_charge(struct eth_end *end, u8 class, u32 len);
void eth_pause_release(struct eth_end *end, u8 class, u32 len);
bool eth_pause_frame(struct eth_end *end, const u8 *frame, u32 len); /* true: it was flow control's, and is done */
bool eth_paused(const struct eth_end *end, u8 class, u64 now);
void eth_pause_storm(struct eth_end *end, u8 classes); /* 0: it ends */
void eth_pause_refresh(struct loop_timer *t, struct now now);

/* switch.c: forwards; takes the reference. */
void eth_switch_receive(struct eth_end *in, struct wire_buf *buf, u8 class);
void eth_switch_forget(struct eth_switch *sw, const struct eth_end *end); /* NULL: everybody */
void eth_switch_sweep(struct loop_timer *t, struct now now);
int eth_switch_init(struct eth_switch *sw);

/* fault.c: a frame is about to arrive at @end. */
void eth_fault_pass(struct eth_end *end, struct eth_frame *f);
void eth_faults_destroy(struct eth *e);

#endif
