/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The iWARP transport engine: RDMAP over DDP over MPA over the machine's TCP. RC queue pairs only. */
#ifndef MUSLIN_SIW_SIW_H
#define MUSLIN_SIW_SIW_H

#include "emu/hca/engine.h"
#include "siw/mpa.h"

/* Give it to hca_set_transport(). */
extern const struct hca_transport siw_transport;

/* @err: 0, the peer has closed in order; -errno: it has not, or broke the protocol. Must not destroy the queue pair. */
typedef void siw_closed_fn(void *ctx, int err);

/*
 * Gives the queue pair, which is in RTR or RTS, the stream whose MPA start is over, as @terms say; @early are bytes that came
 * behind the start. @fd is non-blocking and the queue pair's from now on, also after an error: -EINVAL (no such queue pair,
 * its state, or it has one), -ENOMEM.
 */
int siw_qp_attach(struct hca *hca, u32 qpn, int fd, const struct mpa_terms *terms, const u8 *early, u32 len,
		  siw_closed_fn *closed, void *ctx);

/* What happened on all connections of the adapter beside the counters of the verbs. */
#define SIW_COUNTERS(C)                                                                              \
	C(FPDU_SENT, "iwarp_fpdus_sent")                                                             \
	C(FPDU_RECEIVED, "iwarp_fpdus_received")                                                     \
	C(CRC, "iwarp_crc_errors")                                                                   \
	C(LENGTH, "iwarp_length_errors")                                                             \
	C(DDP_TAGGED, "iwarp_tagged_errors")     /* STag, bounds, version */                         \
	C(DDP_UNTAGGED, "iwarp_untagged_errors") /* queue, MSN, offset, no buffer, too long */       \
	C(RDMAP, "iwarp_rdmap_errors")           /* opcode, version, rights */                       \
	C(TERMINATE_SENT, "iwarp_terminates_sent")                                                   \
	C(TERMINATE_RECEIVED, "iwarp_terminates_received")                                           \
	C(RESET, "iwarp_connections_lost")                                                           \
	C(START, "iwarp_start_errors")           /* no MPA frame, or not what was agreed */          \
	C(START_TIMEOUT, "iwarp_start_timeouts") /* peers half open for too long */                  \
	C(OLDER, "iwarp_fallbacks")              /* to revision 1, which is all that the peer has */ \
	C(CROWDED, "iwarp_half_open_dropped")    /* gave way to newcomers */                         \
	C(LINGER, "iwarp_ends_unanswered")       /* streams whose peer did not close them, too */    \
	C(REJECT, "iwarp_rejects_sent")                                                              \
	C(URING, "iwarp_uring_calls") /* each for some streams */
#define SIW_COUNTER_ENUM(name, str) SIW_CTR_##name,
enum siw_counter {
	SIW_COUNTERS(SIW_COUNTER_ENUM) SIW_CTR_NUM
};
#undef SIW_COUNTER_ENUM
u64 siw_counter(struct hca *hca, enum siw_counter c);
const char *siw_counter_name(enum siw_counter c);

/* How connections are made; each host has its own. */
struct siw_options {
	u8 revision;  /* of MPA, 1 or 2 */
	bool crc;     /* ask for CRCs; without it there are some where the peer asks */
	bool markers; /* ask for markers in what comes; they are sent to whoever asks */
	bool rtr_zero, rtr_write,
		rtr_read; /* what the initiator offers to send first; none: not peer to peer (RFC 6581, 7) */
	u64 start_ns;     /* for the peer to send its frame */
	enum siw_uring {
		SIW_URING_AUTO, /* where more than one stream has something to do */
		SIW_URING_ON,
		SIW_URING_OFF
	} uring; /* io_uring, where it is permitted */
};
extern const struct siw_options siw_options_default;
/* Makes the ring for io_uring, too: before the daemon gives up the call for that, and before the first stream. */
void siw_set_options(struct hca *hca, const struct siw_options *o);

/* A port for the adapter: up, with the GUID's station address as its GID. NULL without memory. */
struct wire_port *siw_port_create(const char *name, u64 guid, u32 mtu);
void siw_port_destroy(struct wire_port *w); /* NULL is harmless */

/* @tap sees each FPDU and each frame of a start as an Ethernet frame, valid during the call. NULL: nobody looks. */
typedef void siw_tap_fn(void *ctx, const u8 *frame, u32 len, bool out);
void siw_set_tap(struct hca *hca, siw_tap_fn *tap, void *ctx);
bool siw_tapped(struct hca *hca);

#endif
