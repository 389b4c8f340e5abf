/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of the MAD layer. */
#ifndef MUSLIN_MAD_INTERNAL_H
#define MUSLIN_MAD_INTERNAL_H

#include "emu/lib/loop.h"
#include "emu/mad/mad.h"
#include "emu/wire/mad.h"

#define MAD_REQS_MAX          16384                         /* outstanding requests of one agent */
#define MAD_TX_MAX            8192                          /* packets of one QP queued for credits */
#define MAD_RMPP_HDR_END      36                            /* MAD and RMPP headers */
#define RMPP_SEG_PAYLOAD      (MAD_SIZE - MAD_RMPP_HDR_END) /* counted by PayloadLength: class header and data */
#define RMPP_WINDOW           64
#define RMPP_SEGS_MAX         65536        /* per message */
#define RMPP_RECVS_MAX        1024         /* incoming or remembered messages of one agent */
#define RMPP_SOURCE_MAX       64           /* of these, incomplete ones from one LID */
#define RMPP_RECV_BYTES_MAX   (64u << 20)  /* of incoming messages of one agent */
#define RMPP_TURN             256          /* segments of a message per turn, whatever the window */
#define MAD_BYTES_MAX         (256u << 20) /* of outstanding requests and messages of one agent */
#define RMPP_ACK_TIMEOUT_MS   2000         /* if the path's packet lifetime is unknown */
#define RMPP_TOTAL_TIMEOUT_MS 40000        /* limit for an incomplete message */
#define RMPP_REMEMBER_MS      10000        /* for a complete message, because its last ACK may be lost */

struct mad_port {
	struct loop *loop;
	struct wire_port *wire;
	struct list agents;
	struct list tx[2]; /* packets of QP0 and QP1 */
	u32 tx_len[2];
	struct list more; /* messages with an open window that have used up their turn */
	u32 psn[2];
	struct list done; /* requests whose sent() callback with status 0 is due */
	struct list watches;
	struct loop_task pump;
	u32 last_tid_high;
	struct mad_raw raw[2];
	u64 counter[MAD_CTR_NUM];
};

struct mad_agent {
	struct list link; /* mad_port.agents */
	struct mad_port *mp;
	struct mad_agent_reg reg;
	u32 tid_high;
	struct list reqs;
	u32 nreqs;
	u64 req_bytes, recv_bytes;
	struct list rmpp_recvs;
	u32 nrecvs;
};

/* A MAD or RMPP message from mad_send() until its response, or until it is sent if it needs none. */
struct mad_req {
	struct list link; /* mad_agent.reqs */
	struct list done; /* mad_port.done; an RMPP message: mad_port.more */
	struct mad_agent *agent;
	struct mad_addr to;
	u32 timeout_ms, retries, retries_left;
	void *cookie;
	struct loop_timer timer;
	bool rmpp;
	u32 hdr_len, seg_count, seg_num, last_ack, newwin; /* RMPP: segments are counted from 1 */
	u32 len;
	u8 data[]; /* at least MAD_SIZE bytes */
};

/* port.c: sends one MAD (256 bytes) from QP @qpn. 0, -EINVAL (P_Key index), -ENOMEM; dropped and
 * counted if too many are queued. */
int mad_port_xmit(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *to);

/* agent.c */
void mad_agent_receive(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *from);

/* request.c */
struct mad_req *mad_req_find(struct mad_agent *agent, const u8 *mad, const struct mad_addr *from);
void mad_req_free(struct mad_req *r);
void mad_req_end(struct mad_req *r, int status); /* frees, then calls sent() */
void mad_req_arm(struct mad_req *r, u32 timeout_ms);

/* rmpp.c */
struct rmpp_msg { /* a complete message; the receiver must free() data */
	u8 *data;
	u32 len;
};
u32 rmpp_hdr_len(u8 mgmt_class); /* headers before the data of a segment */
bool rmpp_class(u8 mgmt_class);
static inline bool rmpp_active(const u8 *mad)
{
	return rmpp_class(wire_mad_get_class(mad)) && (wire_get(mad, RMPP_FLAGS) & RMPP_FLAG_ACTIVE);
}
/* Handles an active RMPP packet for an agent with RMPP. True and *msg if it completes a message. */
bool rmpp_receive(struct mad_agent *agent, const u8 *mad, const struct mad_addr *from, struct rmpp_msg *msg);
void rmpp_send_start(struct mad_req *r);
void rmpp_send_more(struct mad_req *r);
bool rmpp_send_retry(struct mad_req *r); /* false: every segment is acknowledged, only the response is missing */
void rmpp_agent_fini(struct mad_agent *agent);

#endif
