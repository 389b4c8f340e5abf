// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fault target: iWARP streams. A fault counts the FPDUs that a stream receives, and acts before the selected one is
 * processed: on the TCP connection (a reset, a half-close, a stall of both directions, a delay or a rate of received
 * data), on the FPDU (a flipped bit), or on the adapter's link. truncate counts the FPDUs that are sent, others MPA
 * requests and replies.
 */
#include <errno.h>
#include <sys/socket.h>

#include "siw/siw_internal.h"

enum {
	SIW_FAULT_RST = 1,
	SIW_FAULT_HALF_CLOSE,
	SIW_FAULT_STALL,
	SIW_FAULT_DELAY,
	SIW_FAULT_RATE,
	SIW_FAULT_CORRUPT,
	SIW_FAULT_REJECT, /* this and the following: of MPA frames */
	SIW_FAULT_GARBLE,
	SIW_FAULT_TRUNCATE,
};
enum siw_fault_key {
	SIW_WHAT = FAULT_OWN,
	SIW_END,
};

struct siw_fault {
	struct fault ft; /* must be first */
	u64 busy_until;  /* rate */
	u8 end;          /* truncate: 0: RST, 1: FIN */
};

static bool concerns_qpn(const struct fault *ft, u32 qpn)
{
	return !(ft->given & FAULT_MATCH_KEY(QPN)) || (qpn >= ft->match.qpn[0] && qpn <= ft->match.qpn[1]);
}

static bool concerns_stream(const struct fault *ft, const void *ctx)
{
	const struct siw_qp *sq = ctx;

	return ft->kind->at < SIW_FAULT_REJECT && concerns_qpn(ft, sq->qp->qpn);
}

/* An FPDU that is about to be sent. */
struct sent_fpdu {
	const struct siw_qp *sq;
	u32 len;
};

static bool concerns_sent(const struct fault *ft, const void *ctx)
{
	const struct sent_fpdu *f = ctx;

	return f->len > ft->bytes && concerns_qpn(ft, f->sq->qp->qpn);
}

u32 siw_fault_sent(struct siw_qp *sq, u32 len)
{
	const struct sent_fpdu f = { sq, len };
	struct fault *ft = fault_at(&sq->siw->faults, SIW_FAULT_TRUNCATE, concerns_sent, &f);

	if (!ft)
		return len;
	siw_count(sq, SIW_CTR_FAULTS);
	sq->cut = container_of(ft, struct siw_fault, ft)->end ? SIW_CUT_FIN : SIW_CUT_RST;
	return fault_given(ft, FAULT_BYTES) ? ft->bytes : len / 2;
}

static void stream_resume(struct siw_qp *sq)
{
	siw_fault_forget(sq);
	sq->pause.passed = true;
	siw_stream_resume(sq);
}

static void pause_on_timer(struct loop_timer *t, struct now now)
{
	stream_resume(container_of(t, struct siw_qp, pause.timer));
}

/* Pauses the stream until @until (ns); 0: until the fault is cleared. */
static void stream_pause(struct siw_qp *sq, const struct fault *ft, u64 until)
{
	struct siw *siw = sq->siw;

	loop_fd_del(&sq->fd);
	sq->pause.fault = ft;
	sq->pause.send = ft->kind->at == SIW_FAULT_STALL;
	sq->pause.timer.fn = pause_on_timer;
	list_add(&siw->paused, &sq->pause.link);
	if (until)
		loop_timer_set(siw->loop, &sq->pause.timer, until);
}

void siw_fault_forget(struct siw_qp *sq)
{
	if (!sq->pause.fault)
		return;
	list_del(&sq->pause.link);
	loop_timer_cancel(&sq->pause.timer);
	sq->pause.fault = NULL;
	sq->pause.send = false;
}

/* Flips one bit: the CRC, if used, detects it. */
static void fpdu_corrupt(struct fault *ft, u8 *p, u32 ulpdu)
{
	u32 head = iwarp_hdr(p)->ctrl.ddp & DDP_TAGGED ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged),
	    end = ulpdu + IWARP_LEN_SIZE, from = IWARP_LEN_SIZE, at;
	u64 n = rng_next(&ft->rng);

	if (ft->what == FAULT_PAYLOAD)
		from = head;
	else
		end = min(end, head);
	at = from + (fault_given(ft, FAULT_OFFSET) ? ft->offset : (u32)(n >> 8) % max(end - min(end, from), 1u));
	if (at < end)
		p[at] ^= (u8)(1 << (n & 7));
}

static u64 rate_end(struct fault *base, u64 now, u32 len)
{
	struct siw_fault *ft = container_of(base, struct siw_fault, ft);

	ft->busy_until = max(ft->busy_until, now) + len * 8ull * NSEC_PER_SEC / base->rate;
	return ft->busy_until;
}

int siw_fault_fpdu(struct siw_qp *sq, u8 *p, u32 len, u32 ulpdu)
{
	u64 now = loop_now(sq->siw->loop).ns;
	struct fault *ft;

	if (sq->pause.passed) {
		sq->pause.passed = false;
		return 1;
	}
	fault_trigger(&sq->siw->faults, concerns_stream, sq);
	ft = fault_at(&sq->siw->faults, FAULT_AT_ANY, concerns_stream, sq);
	if (!ft)
		return 1;
	siw_count(sq, SIW_CTR_FAULTS);
	switch (ft->kind->at) {
	case SIW_FAULT_RST:
		sq->reset = true;
		siw_qp_close(sq, -ECONNRESET, -1);
		return -1;
	case SIW_FAULT_HALF_CLOSE:
		shutdown(sq->fd.fd, SHUT_WR);
		return 1;
	case SIW_FAULT_CORRUPT:
		fpdu_corrupt(ft, p, ulpdu);
		return 1;
	case SIW_FAULT_RATE:
		stream_pause(sq, ft, rate_end(ft, now, len));
		return 0;
	default:
		stream_pause(sq, ft, ft->time || ft->jitter ? now + fault_delay_time(ft) : 0);
		return 0;
	}
}

static bool mpa_fault(struct siw *siw, u8 at)
{
	bool hit = unlikely(!fault_set_empty(&siw->faults)) && fault_at(&siw->faults, at, NULL, NULL);

	siw->counter[SIW_CTR_FAULTS] += hit;
	return hit;
}

bool siw_fault_rejects(struct siw *siw)
{
	return mpa_fault(siw, SIW_FAULT_REJECT);
}

bool siw_fault_corrupts_frame(struct siw *siw)
{
	return mpa_fault(siw, SIW_FAULT_GARBLE);
}

/* The link */

static struct siw *siw_of(const struct fault *ft)
{
	return hca_transport_data(ft->set->owner);
}

static void siw_fault_link(struct fault *ft, bool up)
{
	siw_of(ft)->pulled += up ? -1u : 1u;
	siw_link_update(siw_of(ft));
}

static void kill_apply(struct fault *ft)
{
	siw_link_kill(siw_of(ft));
	siw_fault_link(ft, false);
}

/* Resumes the streams that this fault has paused. */
static void pause_undo(struct fault *ft)
{
	struct siw *siw = siw_of(ft);
	struct siw_qp *sq, *tmp;
	struct list all;

	list_init(&all);
	list_for_each_safe (sq, tmp, &siw->paused, pause.link)
		if (sq->pause.fault == ft) {
			list_del(&sq->pause.link);
			list_add(&all, &sq->pause.link);
		}
	while (!list_empty(&all))
		stream_resume(list_first(&all, struct siw_qp, pause.link));
}

#define TRIGGER     (FAULT_PICK_KEYS | FAULT_MATCH_KEY(QPN))
#define STREAM_KEYS (TRIGGER | BIT_ULL(FAULT_FOR))
static const struct fault_kind stream_kinds[] = {
	{ .name = "rst", .at = SIW_FAULT_RST, .allowed = STREAM_KEYS },
	{ .name = "half-close", .at = SIW_FAULT_HALF_CLOSE, .allowed = STREAM_KEYS },
	{ .name = "stall", .at = SIW_FAULT_STALL, .undo = pause_undo, .allowed = STREAM_KEYS | BIT_ULL(FAULT_TIME) },
	{ .name = "delay",
	  .at = SIW_FAULT_DELAY,
	  .prepare = fault_check_delay,
	  .undo = pause_undo,
	  .allowed = STREAM_KEYS | BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_JITTER) },
	{ .name = "rate",
	  .at = SIW_FAULT_RATE,
	  .undo = pause_undo,
	  .allowed = STREAM_KEYS,
	  .required = BIT_ULL(FAULT_RATE) },
	{ .name = "corrupt",
	  .at = SIW_FAULT_CORRUPT,
	  .allowed = STREAM_KEYS | BIT_ULL(SIW_WHAT) | BIT_ULL(FAULT_OFFSET) },
	{ .name = "truncate",
	  .at = SIW_FAULT_TRUNCATE,
	  .allowed = STREAM_KEYS | BIT_ULL(FAULT_BYTES) | BIT_ULL(SIW_END) },
	{ .name = "reject", .at = SIW_FAULT_REJECT, .allowed = FAULT_PICK_KEYS | BIT_ULL(FAULT_FOR) },
	{ .name = "garble", .at = SIW_FAULT_GARBLE, .allowed = FAULT_PICK_KEYS | BIT_ULL(FAULT_FOR) },
	{ FAULT_KIND_DOWN(TRIGGER) },
	{ FAULT_KIND_FLAP(TRIGGER) },
	{ .name = "kill", .apply = kill_apply, .undo = fault_down_undo, .allowed = STREAM_KEYS },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { stream_kinds, NULL };
static const struct spec_field keys[] = {
	[SIW_WHAT - FAULT_OWN] =
		SPEC_FIELD("what", SPEC_NAME, fault, what, .names = "payload|header", .wants = "payload or header"),
	[SIW_END - FAULT_OWN] = SPEC_FIELD("end", SPEC_NAME, siw_fault, end, .names = "rst|fin", .wants = "rst or fin"),
};
const struct fault_target siw_fault_target = {
	.of = "of an iWARP host ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct siw_fault),
	.trigger = TRIGGER,
	.mtu = SIW_FPDU,
	.link = siw_fault_link,
};

struct fault_set *siw_faults(struct hca *hca)
{
	return &((struct siw *)hca_transport_data(hca))->faults;
}
