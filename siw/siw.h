/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The iWARP transport engine: RDMAP over DDP over MPA over the machine's TCP. RC queue pairs only. */
#ifndef MUSLIN_SIW_H
#define MUSLIN_SIW_H

#include "emu/fault/fault.h"
#include "emu/hca/engine.h"
#include "siw/mpa_negotiate.h"

/* For hca_set_transport(). */
extern const struct hca_transport siw_transport;

/* @err: 0: orderly close; -errno: reset, or a protocol error. Must not destroy the queue pair. */
typedef void siw_closed_fn(void *ctx, int err);

/*
 * Attaches a TCP stream to the queue pair, in INIT, RTR or RTS, after MPA negotiation of @terms; @early are @len bytes
 * of the stream that were received already. Takes ownership of @fd, which is non-blocking, also after an error: -EINVAL
 * (no such queue pair, its state, or it has a stream), -ENOMEM.
 */
int siw_qp_attach(struct hca *hca, u32 qpn, int fd, const struct mpa_terms *terms, const u8 *early, u32 len,
		  siw_closed_fn *closed, void *ctx);

/* Counters of all connections of an adapter, besides those of verbs. */
#define SIW_COUNTERS(C)                                                                                        \
	C(FPDU_SENT, "iwarp_fpdus_sent")                                                                       \
	C(FPDU_RECEIVED, "iwarp_fpdus_received")                                                               \
	C(BYTES_SENT, "iwarp_bytes_sent") /* of TCP streams in RDMA mode */                                    \
	C(BYTES_RECEIVED, "iwarp_bytes_received")                                                              \
	C(FAULTS, "iwarp_faults") /* FPDUs and MPA frames on which a fault acted */                            \
	C(CRC, "iwarp_crc_errors")                                                                             \
	C(LENGTH, "iwarp_length_errors")                                                                       \
	C(DDP_TAGGED, "iwarp_tagged_errors")     /* STag, bounds, version */                                   \
	C(DDP_UNTAGGED, "iwarp_untagged_errors") /* queue, MSN, offset, no buffer, too long */                 \
	C(RDMAP, "iwarp_rdmap_errors")           /* opcode, version, rights */                                 \
	C(TERMINATE_SENT, "iwarp_terminates_sent")                                                             \
	C(TERMINATE_RECEIVED, "iwarp_terminates_received")                                                     \
	C(RESET, "iwarp_connections_lost")                                                                     \
	C(START, "iwarp_start_errors")                  /* no MPA frame, or a reply that does not match */     \
	C(START_TIMEOUT, "iwarp_start_timeouts")        /* half-open connections that timed out */             \
	C(FALLBACK, "iwarp_fallbacks")                  /* retries with revision 1, which the peer requires */ \
	C(HALF_OPEN_DROPPED, "iwarp_half_open_dropped") /* dropped for new ones */                             \
	C(HALF_CLOSED_ABORT, "iwarp_ends_unanswered")   /* half-closed streams that the peer did not close */  \
	C(REJECT, "iwarp_rejects_sent")                                                                        \
	C(URING, "iwarp_uring_calls") /* each for several streams */
#define SIW_COUNTER_ENUM(name, str) SIW_CTR_##name,
enum siw_counter {
	SIW_COUNTERS(SIW_COUNTER_ENUM) SIW_CTR_NUM
};
#undef SIW_COUNTER_ENUM
u64 siw_counter(struct hca *hca, enum siw_counter c);
const char *siw_counter_name(enum siw_counter c);

/* Options of connection establishment, by host. */
struct siw_options {
	u8 revision;  /* of MPA, 1 or 2 */
	bool crc;     /* request CRCs; they are used if one side requests them (RFC 5044, 7.1) */
	bool markers; /* request markers in received FPDUs; they are sent if the peer requests them */
	bool rtr_zero, rtr_write,
		rtr_read; /* RTR messages that the initiator offers; none: not peer-to-peer (RFC 6581, 9.2) */
	u64 start_ns;     /* time-out of the peer's MPA frame */
	enum siw_uring {
		SIW_URING_AUTO, /* if more than one stream is ready */
		SIW_URING_ON,
		SIW_URING_OFF
	} uring; /* io_uring, if permitted */
};
extern const struct siw_options siw_options_default;
/* Also creates the io_uring: call it before the daemon's seccomp filter, and before the first stream. */
void siw_set_options(struct hca *hca, const struct siw_options *o);

/* A port for the adapter: up, with the GUID's station address as its GID. NULL: out of memory. */
struct wire_port *siw_port_create(const char *name, u64 guid, u32 mtu);
void siw_port_destroy(struct wire_port *w); /* NULL is ignored */

/*
 * Calls @capture with each FPDU and each MPA request or reply as an Ethernet frame, valid during the call. NULL: no
 * capture.
 */
typedef void siw_capture_fn(void *ctx, const u8 *frame, u32 len, bool out);
void siw_set_capture(struct hca *hca, siw_capture_fn *capture, void *ctx);

/* Sets the adapter's link down, which stops its streams, or up. */
void siw_set_up(struct hca *hca, bool up);

/* Faults of its TCP streams, a target of the fault engine. Remove them before the adapter. */
extern const struct fault_target siw_fault_target;
struct fault_set *siw_faults(struct hca *hca);

#endif
