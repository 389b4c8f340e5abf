/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams of one CA port: QP0 and QP1 with agents, request/response matching, timeouts and RMPP, as the
 * kernel's ib_mad for umad users. Used by umad, the SM, the CM and the SA client.
 */
#ifndef MUSLIN_MAD_H
#define MUSLIN_MAD_H

#include "emu/lib/loop.h"
#include "emu/port/port.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"

#define MAD_TIMED_OUT (-110) /* status of a request without response: -ETIMEDOUT */

struct mad_port;
struct mad_agent;

/* Registration of an agent; class 0: it only sends, and receives responses to its own requests. */
struct mad_agent_reg {
	u8 qpn; /* 0 or 1 */
	u8 mgmt_class, class_version;
	u8 oui[3];       /* for vendor classes 0x30-0x4f */
	u8 rmpp_version; /* 1: the MAD layer implements RMPP for this agent; 0: the agent gets single MADs */
	bool user_rmpp;  /* the agent gets single MADs, also with rmpp_version 1 */
	u64 methods[2];  /* bit n: unsolicited MADs with method n */
	void *ctx;
	/*
	 * Receives a MAD: a response to the agent's request (@cookie as given to mad_send) or an unsolicited one
	 * (cookie NULL). With RMPP @data is the reassembled message: headers once, then all data; @len bytes in all.
	 * Valid during the call.
	 */
	void (*recv)(void *ctx, const u8 *data, u32 len, const struct mad_addr *addr, void *cookie);
	/* A request or RMPP message has ended without a response: @status is MAD_TIMED_OUT or another -errno; @data
	 * is the MAD as sent. Also called with 0 after a send without timeout. May be NULL. */
	void (*sent)(void *ctx, const u8 *data, u32 len, int status, void *cookie);
};

/* Becomes port->mad. @port must outlive it. NULL if out of memory. */
struct mad_port *mad_port_create(struct loop *loop, struct wire_port *port);
void mad_port_destroy(struct mad_port *mp);
struct wire_port *mad_port_wire(const struct mad_port *mp);

/* 0 and *agent; -EINVAL for an invalid class or method mask, -EBUSY if another agent has one of the methods. */
int mad_agent_register(struct mad_port *mp, const struct mad_agent_reg *reg, struct mad_agent **agent);
/* Cancels the agent's requests without calling sent(). */
void mad_agent_unregister(struct mad_agent *agent);
/* The upper 32 bits of the TIDs of this agent's requests: unique per port. */
u32 mad_agent_tid_high(const struct mad_agent *agent);

/*
 * Sends a copy of @data. Requests get the agent's upper TID bits, except those of the CM class, where all messages of
 * an exchange share the caller's TID (12.6.5: REP carries the TID of REQ). @len may exceed 256 if the agent uses RMPP
 * and the MAD is RMPP-active. @timeout_ms 0: no response is expected; otherwise the response or a timeout after
 * @retries retransmissions is reported with @cookie. Returns 0 or -errno (-EINVAL, -ENOMEM, -ENETDOWN).
 */
int mad_send(struct mad_agent *agent, const u8 *data, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
	     void *cookie);
/* Cancels every request and RMPP message of the agent that was sent with @cookie, without calling sent(). */
void mad_cancel(struct mad_agent *agent, const void *cookie);

/*
 * A user of QP0 or QP1 with its own MAD layer: receives single MADs for which there is no agent, and sends any MAD.
 * NULL: removes the user. mad_port_send_raw() takes MADs of 256 bytes from a kernel's MAD layer, and reverts the
 * directed-route step in @mad that such a layer has done; 0 or -errno as mad_send().
 */
struct mad_raw {
	void *ctx;
	void (*recv)(void *ctx, const u8 *mad, const struct mad_addr *from);
};
void mad_port_set_raw(struct mad_port *mp, u8 qpn, const struct mad_raw *raw);
/*
 * The response to a request for which there is no agent: "method and attribute not supported", as the kernel's ib_mad
 * has it. Makes @mad (256 bytes) the response; false: it is no Get or Set, and has none.
 */
bool mad_answer_unsupported(u8 *mad);
int mad_port_send_raw(struct mad_port *mp, u8 qpn, u8 *mad, const struct mad_addr *to);
/* The GRH of a received MAD. */
void mad_port_grh(const struct mad_port *mp, const struct mad_addr *from, struct wire_grh *grh);
#define MAD_PACKET \
	(sizeof(struct wire_bth) + sizeof(struct wire_deth) + MAD_SIZE + WIRE_ICRC_LEN) /* bytes after the GRH */

/* Counters of the port. */
#define MAD_COUNTERS(C)                                                                              \
	C(SENT, "mad_sent")                                                                          \
	C(RECEIVED, "mad_received")                                                                  \
	C(MALFORMED, "mad_malformed") /* not 256 bytes, wrong base version, class on the wrong QP */ \
	C(PKEY_BAD, "mad_pkey_violations")                                                           \
	C(QKEY_BAD, "mad_qkey_violations")                                                           \
	C(NO_AGENT, "mad_no_agent")                                                                  \
	C(UNSUPPORTED, "mad_answered_unsupported")                                                   \
	C(UNMATCHED, "mad_unmatched_responses")                                                      \
	C(TIMEOUTS, "mad_timeouts")                                                                  \
	C(RESENT, "mad_resent")                                                                      \
	C(TX_DROPPED, "mad_send_queue_overflow")                                                     \
	C(RMPP_ABORTED, "mad_rmpp_aborted")                                                          \
	C(RMPP_DUPLICATES, "mad_rmpp_duplicates")                                                    \
	C(RMPP_REFUSED, "mad_rmpp_refused") /* too many or too long messages */                      \
	C(REFUSED, "mad_send_refused")      /* too many outstanding requests, or bytes of them */
#define MAD_COUNTER_ENUM(name, str) MAD_CTR_##name,
enum mad_counter {
	MAD_COUNTERS(MAD_COUNTER_ENUM) MAD_CTR_NUM
};
#undef MAD_COUNTER_ENUM
u64 mad_port_counter(const struct mad_port *mp, enum mad_counter c);
const char *mad_counter_name(enum mad_counter c);

/* Port events for users of the mad_port: fn is called after the port's attributes changed. */
struct mad_watch {
	struct list link;
	void (*fn)(struct mad_watch *w, enum wire_port_event event);
};
void mad_port_watch(struct mad_port *mp, struct mad_watch *w);
void mad_port_unwatch(struct mad_watch *w);

#endif
