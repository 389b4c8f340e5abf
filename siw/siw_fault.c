// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iWARP streams as a target of the fault engine. A fault counts the FPDUs that a stream receives, and acts on the TCP connection before
 * the one that it picks is processed: a reset, a half-close, a stall of both directions, or a delay of what is received.
 */
#include <errno.h>
#include <sys/socket.h>

#include "siw/siw_internal.h"

enum {
	SIW_FAULT_RST = 1,
	SIW_FAULT_HALF_CLOSE,
	SIW_FAULT_STALL,
	SIW_FAULT_DELAY
};

static bool concerns_stream(const struct fault *ft, const void *ctx)
{
	const struct siw_qp *sq = ctx;
	u32 qpn = sq->qp->qpn;

	return !(ft->given & FAULT_MATCH_KEY(QPN)) || (qpn >= ft->match.qpn[0] && qpn <= ft->match.qpn[1]);
}

static void stream_resume(struct siw_qp *sq)
{
	siw_fault_forget(sq);
	if (loop_fd_add(sq->siw->loop, &sq->fd, EPOLLIN | (sq->epollout ? EPOLLOUT : 0))) {
		siw_qp_close(sq, -errno, HCA_EVENT_QP_FATAL);
		return;
	}
	sq->pause.passed = true;
	siw_input_bytes(sq);
	siw_kick(sq);
	hca_flush(sq->siw->hca);
}

static void pause_on_timer(struct loop_timer *t, struct now now)
{
	stream_resume(container_of(t, struct siw_qp, pause.timer));
}

static void stream_pause(struct siw_qp *sq, const struct fault *ft)
{
	struct siw *siw = sq->siw;

	loop_fd_del(&sq->fd);
	sq->pause.fault = ft;
	sq->pause.send = ft->kind->at == SIW_FAULT_STALL;
	sq->pause.timer.fn = pause_on_timer;
	list_add(&siw->paused, &sq->pause.link);
	if (ft->time)
		loop_timer_set(siw->loop, &sq->pause.timer, loop_now(siw->loop).ns + ft->time);
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

int siw_fault_fpdu(struct siw_qp *sq)
{
	const struct fault *ft;

	if (sq->pause.passed) {
		sq->pause.passed = false;
		return 1;
	}
	ft = fault_at(&sq->siw->faults, FAULT_AT_ANY, concerns_stream, sq);
	if (!ft)
		return 1;
	switch (ft->kind->at) {
	case SIW_FAULT_RST:
		sq->reset = true;
		siw_qp_close(sq, -ECONNRESET, -1);
		return -1;
	case SIW_FAULT_HALF_CLOSE:
		shutdown(sq->fd.fd, SHUT_WR);
		return 1;
	default:
		stream_pause(sq, ft);
		return 0;
	}
}

/* Streams that wait for this fault go on. */
static void pause_undo(struct fault *ft)
{
	struct siw *siw = hca_transport_data(ft->set->owner);
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

#define STREAM_KEYS (FAULT_PICK_KEYS | FAULT_MATCH_KEY(QPN) | BIT_ULL(FAULT_FOR))
static const struct fault_kind stream_kinds[] = {
	{ .name = "rst", .at = SIW_FAULT_RST, .allowed = STREAM_KEYS },
	{ .name = "half-close", .at = SIW_FAULT_HALF_CLOSE, .allowed = STREAM_KEYS },
	{ .name = "stall", .at = SIW_FAULT_STALL, .undo = pause_undo, .allowed = STREAM_KEYS | BIT_ULL(FAULT_TIME) },
	{ .name = "delay",
	  .at = SIW_FAULT_DELAY,
	  .undo = pause_undo,
	  .allowed = STREAM_KEYS,
	  .required = BIT_ULL(FAULT_TIME) },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { stream_kinds, NULL };
const struct fault_target siw_fault_target = {
	.of = "of an iWARP host ",
	.kinds = kinds,
	.size = sizeof(struct fault),
};

struct fault_set *siw_faults(struct hca *hca)
{
	return &((struct siw *)hca_transport_data(hca))->faults;
}
