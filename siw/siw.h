/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The iWARP transport engine: RDMAP over DDP over MPA over the machine's TCP. RC queue pairs only. */
#ifndef MUSLIN_SIW_H
#define MUSLIN_SIW_H

#include "emu/fault/fault.h"
#include "emu/hca/engine.h"
#include "siw/mpa_negotiate.h"

/* Give it to hca_set_transport(). */
extern const struct hca_transport siw_transport;

/* @err: 0: orderly close; -errno: reset, or a protocol error. Must not destroy the queue pair. */
typedef void siw_closed_fn(void *ctx, int err);

/*
 * Attaches to the queue pair, in INIT, RTR or RTS, a TCP stream after MPA startup with the terms negotiated; @early are @len bytes of the
 * stream that were received already. The queue pair owns @fd, which is non-blocking, also after an error: -EINVAL (no such queue pair, its
 * state, or it has a stream), -ENOMEM.
 */
int siw_qp_attach(struct hca *hca, u32 qpn, int fd, const struct mpa_terms *terms, const u8 *early, u32 len,
		  siw_closed_fn *closed, void *ctx);

/* Counters of all connections of an adapter, beside those of verbs. */
#define SIW_COUNTERS(C)                                                                                     \
	C(FPDU_SENT, "iwarp_fpdus_sent")                                                                    \
	C(FPDU_RECEIVED, "iwarp_fpdus_received")                                                            \
	C(BYTES_SENT, "iwarp_bytes_sent") /* of TCP streams in RDMA mode */                                 \
	C(BYTES_RECEIVED, "iwarp_bytes_received")                                                           \
	C(FAULTS, "iwarp_faults") /* FPDUs and MPA frames that a fault has touched */                       \
	C(CRC, "iwarp_crc_errors")                                                                          \
	C(LENGTH, "iwarp_length_errors")                                                                    \
	C(DDP_TAGGED, "iwarp_tagged_errors")     /* STag, bounds, version */                                \
	C(DDP_UNTAGGED, "iwarp_untagged_errors") /* queue, MSN, offset, no buffer, too long */              \
	C(RDMAP, "iwarp_rdmap_errors")           /* opcode, version, rights */                              \
	C(TERMINATE_SENT, "iwarp_terminates_sent")                                                          \
	C(TERMINATE_RECEIVED, "iwarp_terminates_received")                                                  \
	C(RESET, "iwarp_connections_lost")                                                                  \
	C(START, "iwarp_start_errors")                  /* no MPA frame, or not what was agreed */          \
	C(START_TIMEOUT, "iwarp_start_timeouts")        /* peers half open for too long */                  \
	C(FALLBACK, "iwarp_fallbacks")                  /* to revision 1, which is all that the peer has */ \
	C(HALF_OPEN_DROPPED, "iwarp_half_open_dropped") /* gave way to newcomers */                         \
	C(HALF_CLOSED_ABORT, "iwarp_ends_unanswered")   /* streams whose peer did not close them, too */    \
	C(REJECT, "iwarp_rejects_sent")                                                                     \
	C(URING, "iwarp_uring_calls") /* each for some streams */
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
		rtr_read; /* what the initiator offers to send first; none: not peer to peer (RFC 6581, 9.2) */
	u64 start_ns;     /* for the peer to send its frame */
	enum siw_uring {
		SIW_URING_AUTO, /* if more than one stream is ready */
		SIW_URING_ON,
		SIW_URING_OFF
	} uring; /* io_uring, where it is permitted */
};
extern const struct siw_options siw_options_default;
/* Also creates the queue for io_uring: before the daemon's seccomp filter, and before the first stream. */
void siw_set_options(struct hca *hca, const struct siw_options *o);

/* A port for the adapter: up, with the GUID's station address as its GID. NULL without memory. */
struct wire_port *siw_port_create(const char *name, u64 guid, u32 mtu);
void siw_port_destroy(struct wire_port *w); /* NULL: nothing */

/* @capture gets each FPDU and each MPA request or reply as an Ethernet frame, valid during the call. NULL: none. */
typedef void siw_capture_fn(void *ctx, const u8 *frame, u32 len, bool out);
void siw_set_capture(struct hca *hca, siw_capture_fn *capture, void *ctx);
bool siw_captured(struct hca *hca);

/* The adapter's link goes down, and streams stand still, or up. */
void siw_set_up(struct hca *hca, bool up);

/* Faults of its TCP streams, a target of the fault engine. They must be removed before the adapter. */
extern const struct fault_target siw_fault_target;
struct fault_set *siw_faults(struct hca *hca);

#endif
