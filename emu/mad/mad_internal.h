/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the MAD layer share. */
#ifndef MUSLIN_MAD_INTERNAL_H
#define MUSLIN_MAD_INTERNAL_H

#include "emu/lib/loop.h"
#include "emu/mad/mad.h"
#include "emu/wire/mad.h"

#define MAD_REQS_MAX          16384                         /* requests of one agent under way */
#define MAD_TX_MAX            8192                          /* packets of one QP that wait for credits */
#define MAD_RMPP_HDR_END      36                            /* MAD and RMPP headers */
#define RMPP_SEG_PAYLOAD      (MAD_SIZE - MAD_RMPP_HDR_END) /* what PayloadLength counts: class header and data */
#define RMPP_WINDOW           64
#define RMPP_SEGS_MAX         65536       /* of one message */
#define RMPP_RECVS_MAX        1024        /* messages of one agent that come in, or are remembered */
#define RMPP_SOURCE_MAX       64          /* of which this many may be under way from one LID */
#define RMPP_RECV_BYTES_MAX   (64u << 20) /* of messages of one agent that come in */
#define RMPP_TURN             256 /* segments of a message before others have their turn, whatever window is open */
#define MAD_BYTES_MAX         (256u << 20) /* of requests and messages of one agent under way */
#define RMPP_ACK_TIMEOUT_MS   2000         /* while the path's packet lifetime is not known */
#define RMPP_TOTAL_TIMEOUT_MS 40000        /* a message that does not end */
#define RMPP_REMEMBER_MS      10000        /* a complete message, whose last ACK may get lost */

struct mad_port {
	struct loop *loop;
	struct wire_port *wire;
	struct list agents;
	struct list tx[2]; /* packets of QP0 and QP1 */
	u32 tx_len[2];
	struct list more; /* messages whose window is open and whose turn was over */
	u32 psn[2];
	struct list done; /* requests whose sent() is due with status 0 */
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

/* A MAD or RMPP message on its way, until it is answered, or needs no answer. */
struct mad_req {
	struct list link; /* mad_agent.reqs */
	struct list done; /* mad_port.done; of a message, mad_port.more */
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

/* port.c: one MAD (256 bytes) from QP @qpn. 0, -EINVAL (P_Key index), -ENOMEM; dropped and counted when too many wait. */
int mad_port_xmit(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *to);

/* agent.c */
void mad_agent_receive(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *from);

/* request.c */
struct mad_req *mad_req_find(struct mad_agent *agent, const u8 *mad, const struct mad_addr *from);
void mad_req_free(struct mad_req *r);
void mad_req_end(struct mad_req *r, int status); /* frees, then calls sent() */
void mad_req_arm(struct mad_req *r, u32 timeout_ms);

/* rmpp.c */
struct rmpp_msg { /* a whole message; data is the taker's to free() */
	u8 *data;
	u32 len;
};
u32 rmpp_hdr_len(u8 mgmt_class); /* headers before the data of a segment */
bool rmpp_class(u8 mgmt_class);
static inline bool rmpp_active(const u8 *mad)
{
	return rmpp_class(wire_mad_get_class(mad)) && (wire_get(mad, RMPP_FLAGS) & RMPP_FLAG_ACTIVE);
}
/* Takes an active RMPP packet of an agent that lets the layer do RMPP. True and *msg when it completes a message. */
bool rmpp_receive(struct mad_agent *agent, const u8 *mad, const struct mad_addr *from, struct rmpp_msg *msg);
void rmpp_send_start(struct mad_req *r);
void rmpp_send_more(struct mad_req *r);
bool rmpp_send_retry(struct mad_req *r); /* false: every segment is acknowledged, only the response is missing */
void rmpp_agent_fini(struct mad_agent *agent);

#endif
