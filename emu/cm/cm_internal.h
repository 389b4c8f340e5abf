/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the communication manager, grouped by implementing file. */
#ifndef MUSLIN_CM_INTERNAL_H
#define MUSLIN_CM_INTERNAL_H

#include "emu/cm/cm.h"
#include "emu/lib/rng.h"
#include "emu/lib/table.h"

#define CM_PORTS         8
#define CM_SERVICES      1024
#define CM_SERVICE_ORDER 24 /* code of the service timeout in sent MRAs: 69 s */

/* IBTA 12.9.5, 12.9.6, with the MRA's states kept apart by side. */
#define CM_STATES(S)                                            \
	S(IDLE)                                                 \
	S(REQ_SENT)                                             \
	S(MRA_REQ_RCVD) /* the peer has sent MRA for the REQ */ \
	S(REQ_RCVD)                                             \
	S(MRA_REQ_SENT) /* this side has sent MRA */            \
	S(REP_SENT)                                             \
	S(MRA_REP_RCVD)                                         \
	S(REP_RCVD)                                             \
	S(MRA_REP_SENT)                                         \
	S(ESTABLISHED)                                          \
	S(DREQ_SENT)                                            \
	S(DREQ_RCVD)                                            \
	S(TIMEWAIT)                                             \
	S(SIDR_REQ_SENT)                                        \
	S(SIDR_REQ_RCVD)
#define CM_STATE_ENUM(name) CM_ST_##name,
enum cm_state {
	CM_STATES(CM_STATE_ENUM) CM_ST_NUM
};
#undef CM_STATE_ENUM

/* State of the alternate path, beside that of the connection. 12.9. */
enum cm_lap {
	CM_LAP_IDLE,
	CM_LAP_SENT,
	CM_LAP_RCVD,
	CM_LAP_ANSWERED, /* by an APR, which is resent for a duplicate LAP */
};

struct cm_port {
	struct cm *cm;
	u8 num;
	struct mad_port *mp;
	struct mad_agent *agent;
};

struct cm {
	struct loop *loop;
	u64 ca_guid;
	u8 ack_delay;
	struct rng rng;
	struct cm_port port[CM_PORTS];
	u8 nports;
	struct table ids;   /* by slot; the communication ID adds a random part */
	struct list *peers; /* npeers lists of cm_id.by_id, then npeers lists of cm_id.by_qpn */
	u32 npeers, nindexed;
	u32 id_salt;
	struct list services[CM_SERVICES]; /* listeners of one service ID, by its hash */
	struct list ranges;                /* listeners of several service IDs */
	u64 counter[CM_CTR_NUM];
};

struct cm_listener {
	struct list link;
	u64 service_id, mask;
	cm_request_fn *fn;
	void *ctx;
};

struct cm_id {
	struct cm *cm;
	struct cm_port *port; /* NULL before the first message */
	enum cm_state state;
	u32 slot, local_id, remote_id;
	u64 tid, service_id;
	cm_event_fn *fn; /* NULL: no owner */
	void *ctx;
	struct mad_addr peer;
	struct cm_qp qp;
	bool qp_known, passive;
	struct list by_id, by_qpn; /* cm.peers: of a peer's connection or SIDR request */
	u32 local_qpn;
	u64 remote_ca_guid;
	u8 response_timeout, max_retries;
	enum cm_lap lap;
	u64 lap_tid; /* of the latest LAP */
	u8 apr_status;
	struct cm_alternate alternate; /* the proposed one */
	bool alternate_loaded;         /* both sides have agreed on it */
	/* the message awaiting its response, or resent for a duplicate */
	u8 mad[MAD_SIZE];
	u8 tries;
	struct loop_timer timer;
};

/* cm.c */
struct cm_id *cm_id_find(const struct cm *cm, u32 local_id);
struct cm_id *cm_id_new(struct cm *cm);
void cm_id_free(struct cm_id *id);
void cm_id_notify(struct cm_id *id, const struct cm_event *ev);
void cm_id_enter(struct cm_id *id, enum cm_state state);
void cm_id_timewait(struct cm_id *id); /* reports TIMEWAIT_EXIT at the end */
/* Passes @id to the listeners of the service ID. 0: accepted, -ENOENT: no listener, or a listener's error. */
int cm_offer(struct cm_id *id, u64 service_id, const struct cm_event *ev);
const char *cm_state_name(enum cm_state s);

/* peer.c: index by what the peer has chosen */
int cm_peers_init(struct cm *cm);     /* 0, -ENOMEM */
void cm_peer_known(struct cm_id *id); /* sets qp_known: remote_id, remote_ca_guid and qp.remote_qpn are the peer's */
void cm_peer_forget(struct cm_id *id);
void cm_peer_add_sidr(struct cm_id *id); /* a SIDR_REQ with remote_id was received */
/* The connection with that remote communication ID of that CA, or else with that QPN; NULL. 12.9.8.3.1. */
struct cm_id *cm_peer_find(const struct cm *cm, u64 ca_guid, u32 remote_id, u32 remote_qpn);
/* The received SIDR_REQ with that request ID from that address that has no response; NULL. */
struct cm_id *cm_peer_find_sidr(const struct cm *cm, u32 request_id, const struct mad_addr *from);

/* message.c: formats */
void cm_mad_init(u8 *mad, u16 attr, u64 tid);
void cm_mad_ids(u8 *mad, const struct cm_id *id);
void cm_mad_req(u8 *mad, const struct cm_id *id, const struct cm_req *req);
void cm_mad_rep(u8 *mad, const struct cm_id *id, const struct cm_rep *rep);
void cm_mad_rej(u8 *mad, u32 local_id, u32 remote_id, u8 message, u16 reason, u64 ca_guid);
void cm_mad_private(u8 *mad, struct wire_field f, const u8 *data, u8 len);
void cm_req_parse(const u8 *mad, struct cm_req *req);
void cm_rep_parse(const u8 *mad, struct cm_rep *rep);
/* The fields of a path in a message: of REQ's primary one, of LAP's alternate one. */
struct cm_path_fields {
	struct wire_field local_lid, remote_lid, local_gid, remote_gid, flow_label, rate, tclass, hop_limit, sl,
		subnet_local, ack_timeout;
};
extern const struct cm_path_fields cm_req_path, cm_lap_path;
void cm_path_put(u8 *mad, const struct cm_path_fields *f, const struct sa_path *p, u8 ack_timeout);
/* The path with both ends exchanged: the peer's local part is the remote part
 * here. Other fields of @p do not change. */
void cm_path_get(const u8 *mad, const struct cm_path_fields *f, struct sa_path *p);
/* The address for MADs to the path's other end. */
struct mad_addr cm_path_addr(const struct cm_port *p, const struct sa_path *path);
/* The local port with the GID of the path's own end; NULL: none. */
const struct cm_port *cm_path_port(const struct cm *cm, const struct sa_path *path);
bool cm_path_lid_is_own(const struct cm_port *p, const struct sa_path *path);
/* The RoCE version by which a MAD was received; responses use the same. 0: not on Ethernet. */
u8 cm_roce_version(const struct cm_port *p, const struct mad_addr *from);
u8 cm_ack_timeout(u8 ca_ack_delay, u8 packet_life);

/* send.c: sending and retransmission of messages */
int cm_send(struct cm_id *id, const u8 *mad);    /* once */
int cm_send_wait(struct cm_id *id, u64 wait_ns); /* id->mad; retransmits until cm_answered() */
void cm_answered(struct cm_id *id);              /* stops the retransmission */
void cm_wait_longer(struct cm_id *id, u64 ns);   /* extends the wait for the response, from now on */
u64 cm_response_ns(const struct cm_id *id);
void cm_reply_once(struct cm_port *p, const struct mad_addr *to, const u8 *mad);

/* connect.c: sets the port and path before the first message. 0, -ENODEV. */
int cm_id_begin(struct cm_id *id, u8 port, const struct sa_path *path, u64 service_id, u8 response_timeout,
		u8 max_retries);

/* state.c */
void cm_receive(struct cm_port *p, const u8 *mad, const struct mad_addr *from);
void cm_timed_out(struct cm_id *id); /* id->mad timed out */

/* alternate.c: an event of type CM_EVENTS means none */
struct cm_event cm_on_lap(struct cm_id *id, const u8 *mad);
struct cm_event cm_on_apr(struct cm_id *id, const u8 *mad);

/* sidr.c */
void cm_sidr_receive(struct cm_port *p, const u8 *mad, const struct mad_addr *from);

#define cm_count(cm, name) ((cm)->counter[CM_CTR_##name]++)

#endif
