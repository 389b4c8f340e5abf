/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The communication manager of a host: connections (REQ, REP, RTU, DREQ, DREP, REJ, MRA), their alternate
 * paths (LAP, APR) and service ID resolution (SIDR), over all its ports. IBTA volume 1, chapter 12. Host order.
 */
#ifndef MUSLIN_CM_H
#define MUSLIN_CM_H

#include "emu/mad/sa_query.h"
#include "emu/wire/cm.h"

struct cm;
struct cm_id;
struct cm_listener;

enum cm_transport {
	CM_RC = CM_TRANSPORT_RC,
	CM_UC = CM_TRANSPORT_UC
};

/* Contents of a REQ. IBTA 12.6.5. */
struct cm_req {
	u64 service_id;
	struct sa_path path; /* as seen from this side */
	u8 port;             /* own port number */
	u16 pkey;
	enum cm_transport transport;
	u64 remote_ca_guid;                      /* received only */
	u32 qpn, psn;                            /* the sender's */
	u8 responder_resources, initiator_depth; /* the sender's */
	u8 retry_count, rnr_retry_count;         /* 0 - 7 */
	u8 response_timeout, max_retries;        /* code of 4.096 us * 2^n and count, for CM messages of both sides */
	bool flow_control, srq;
	const u8 *data;
	u8 data_len; /* at most CM_REQ_PRIVATE_DATA_LEN */
};

/* IBTA 12.6.8. */
struct cm_rep {
	u32 qpn, psn;
	u8 responder_resources, initiator_depth, rnr_retry_count;
	bool flow_control, srq;
	const u8 *data;
	u8 data_len; /* at most CM_REP_PRIVATE_DATA_LEN */
};

/* IBTA 12.11. */
struct cm_sidr_req {
	u64 service_id;
	struct sa_path path;
	u8 port;
	u16 pkey;
	u8 response_timeout, max_retries;
	const u8 *data;
	u8 data_len; /* at most CM_SIDR_REQ_PRIVATE_DATA_LEN */
};

struct cm_sidr_rep {
	u8 status; /* enum wire_cm_sidr_status */
	u32 qpn, qkey;
	const u8 *data;
	u8 data_len; /* at most CM_SIDR_REP_PRIVATE_DATA_LEN */
};

/* An alternate path for automatic path migration. IBTA 12.8. */
struct cm_alternate {
	struct sa_path path; /* as seen from this side */
	u8 port;             /* own port number */
	u8 ack_timeout;      /* set by the communication manager */
};

enum cm_event_type {
	CM_EVENT_REQ,       /* to a listener */
	CM_EVENT_REQ_ERROR, /* REQ timeout */
	CM_EVENT_REP,
	CM_EVENT_REP_ERROR, /* REP timeout */
	CM_EVENT_RTU,
	CM_EVENT_REJ,
	CM_EVENT_DREQ,
	CM_EVENT_DREQ_ERROR, /* DREQ timeout */
	CM_EVENT_DREP,
	CM_EVENT_TIMEWAIT_EXIT, /* the QP may be reused (12.9.8.4) */
	CM_EVENT_SIDR_REQ,      /* to a listener */
	CM_EVENT_SIDR_REP,
	CM_EVENT_SIDR_ERROR,
	CM_EVENT_LAP,       /* the peer proposes an alternate path: call cm_send_apr() when it is loaded */
	CM_EVENT_APR,       /* response to the LAP: reason, enum wire_cm_apr_status */
	CM_EVENT_LAP_ERROR, /* LAP timeout */
	CM_EVENTS
};

/* Pointers are valid during the call. */
struct cm_event {
	enum cm_event_type type;
	const struct cm_req *req;
	const struct cm_rep *rep;
	const struct cm_sidr_req *sidr_req;
	const struct cm_sidr_rep *sidr_rep;
	const struct cm_alternate *alternate; /* LAP, APR */
	u16 reason;                           /* REJ: enum wire_cm_rej_reason */
	const u8 *data;                       /* private data of any message */
	u8 data_len;
};

/* May destroy @id. */
typedef void cm_event_fn(void *ctx, struct cm_id *id, const struct cm_event *ev);
/*
 * A REQ or SIDR_REQ for the listener. 0: the listener's owner owns the new @id and calls cm_id_own() before the next
 * message; -ENOENT: not for this listener, try the next; other -errno: the CM sends REJ or SIDR_REP.
 */
typedef int cm_request_fn(void *ctx, struct cm_id *id, const struct cm_event *ev);

/* @ca_guid: of the HCA; @ack_delay: its Local CA ACK Delay code; @seed: for IDs and PSNs. NULL if out of memory. */
struct cm *cm_create(struct loop *loop, u64 ca_guid, u8 ack_delay, u64 seed);
/* All ids must be destroyed. IDs in timewait are freed. */
void cm_destroy(struct cm *cm);
/* Adds port @num: registers for class 0x07 at @mp, which must outlive the CM. 0, -EBUSY, -ENOMEM. */
int cm_port_add(struct cm *cm, u8 num, struct mad_port *mp);

/* A new communication ID. NULL if out of memory. */
struct cm_id *cm_id_create(struct cm *cm, cm_event_fn *fn, void *ctx);
void cm_id_own(struct cm_id *id, cm_event_fn *fn, void *ctx);
/*
 * Ends the communication as its state requires (12.9.7): REJ, DREQ or DREP. No further events; the timewait of a
 * connection continues without an owner.
 */
void cm_id_destroy(struct cm_id *id);

/* Listens for requests with (service ID & @mask) == @service_id. -EINVAL, -ENOMEM. */
int cm_listen(struct cm *cm, u64 service_id, u64 mask, cm_request_fn *fn, void *ctx, struct cm_listener **listener);
void cm_unlisten(struct cm_listener *l);

/* 0, -EINVAL if the state or an argument does not allow it, -ENODEV if there is no such port. */
int cm_send_req(struct cm_id *id, const struct cm_req *req);
int cm_send_rep(struct cm_id *id, const struct cm_rep *rep);
int cm_send_rtu(struct cm_id *id, const u8 *data, u8 len);
int cm_send_rej(struct cm_id *id, u16 reason, const u8 *data, u8 len);
int cm_send_dreq(struct cm_id *id, const u8 *data, u8 len);
int cm_send_drep(struct cm_id *id, const u8 *data, u8 len);
/* Sends LAP: proposes an alternate path of an established connection; active side only. */
int cm_send_lap(struct cm_id *id, const struct cm_alternate *alt);
/* Responds to a LAP. @status: enum wire_cm_apr_status. */
int cm_send_apr(struct cm_id *id, u8 status);
/* The QP has received a packet (COMM_EST): handled as an RTU. -EISCONN if already established. */
int cm_established(struct cm_id *id);
/* The QP has migrated to the alternate path (PATH_MIG). -EINVAL unless established, or if an APR is outstanding. */
int cm_migrated(struct cm_id *id);
int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req *req);
int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_rep *rep);

/* QP attributes as far as known from the messages, with negotiated access rights and MTU. 12.9.8. */
struct cm_qp {
	struct sa_path path;
	u8 port, local_ack_timeout, retry_count, rnr_retry;
	u32 remote_qpn, rq_psn, sq_psn;
	u8 responder_resources, initiator_depth; /* own */
	enum cm_transport transport;
};
/* 0; -EINVAL outside a connection, from REQ to DREQ, and with @remote before the peer's REQ or REP. */
int cm_id_qp(const struct cm_id *id, bool remote, struct cm_qp *qp);

/* A random PSN. */
u32 cm_psn(struct cm *cm);

#define CM_COUNTERS(C)                                                                  \
	C(SENT, "cm_sent")                                                              \
	C(RECEIVED, "cm_received")                                                      \
	C(RETRIES, "cm_retries")                                                        \
	C(TIMEOUTS, "cm_timeouts")                                                      \
	C(DUPLICATES, "cm_duplicates")                                                  \
	C(UNEXPECTED, "cm_unexpected") /* unexpected in this state, or without an ID */ \
	C(STALE, "cm_stale")                                                            \
	C(REJECTED, "cm_rejects_sent")                                                  \
	C(MALFORMED, "cm_malformed")
#define CM_COUNTER_ENUM(name, str) CM_CTR_##name,
enum cm_counter {
	CM_COUNTERS(CM_COUNTER_ENUM) CM_CTR_NUM
};
#undef CM_COUNTER_ENUM
u64 cm_counter(const struct cm *cm, enum cm_counter c);
const char *cm_counter_name(enum cm_counter c);

#endif
