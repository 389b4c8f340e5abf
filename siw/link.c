// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Link state of an iWARP adapter, set by faults and commands: while it is down the daemon neither reads nor writes its
 * TCP connections, and new ones wait. TCP keeps established connections; a host that is killed resets them.
 */
#include <errno.h>

#include "emu/wire/smp.h"
#include "siw/siw_internal.h"

void siw_stream_resume(struct siw_qp *sq)
{
	struct siw *siw = sq->siw;

	if (siw->down || sq->fd.loop)
		return;
	if (loop_fd_add(siw->loop, &sq->fd, EPOLLIN)) {
		siw_qp_close(sq, -errno, HCA_EVENT_QP_FATAL);
		return;
	}
	siw_watch(sq);
	if (!sq->write_due)
		siw_input_bytes(sq);
	siw_kick(sq);
	hca_flush(siw->hca);
}

static void streams_resume(struct siw *siw)
{
	struct list all;

	list_init(&all);
	list_splice(&all, &siw->streams);
	while (!list_empty(&all)) {
		struct siw_qp *sq = list_first(&all, struct siw_qp, link);

		list_del(&sq->link);
		list_add(&siw->streams, &sq->link);
		if (!sq->pause.fault)
			siw_stream_resume(sq);
	}
}

void siw_link_update(struct siw *siw)
{
	struct wire_port *w = hca_port(siw->hca, 1);
	bool down = siw->unplugged || siw->pulled;
	struct siw_qp *sq;

	if (siw->down == down)
		return;
	siw->down = down;
	w->attr.state = down ? PORT_STATE_DOWN : PORT_STATE_ACTIVE;
	w->attr.phys_state = down ? PHYS_STATE_DISABLED : PHYS_STATE_LINK_UP;
	siw_conns_watch(siw, !down);
	if (down)
		list_for_each (sq, &siw->streams, link)
			loop_fd_del(&sq->fd);
	wire_port_event(w, down ? WIRE_PORT_ERR : WIRE_PORT_ACTIVE);
	if (!down)
		streams_resume(siw);
}

void siw_set_up(struct hca *hca, bool up)
{
	struct siw *siw = hca_transport_data(hca);

	siw->unplugged = !up;
	siw_link_update(siw);
}

void siw_link_kill(struct siw *siw)
{
	siw_conns_reset(siw);
	while (!list_empty(&siw->streams)) {
		struct siw_qp *sq = list_first(&siw->streams, struct siw_qp, link);

		sq->reset = true;
		siw_qp_close(sq, -ECONNRESET, -1);
	}
}
