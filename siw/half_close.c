// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Half-closed TCP streams: closing a socket with unread data makes TCP send a reset, which may overtake the last data
 * sent, such as a Terminate (RFC 5040, 7). So the stream is shut down for writing, and drained until the peer closes or
 * a time-out expires.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "siw/siw_internal.h"

#define HALF_CLOSE_NS (1000ull * 1000 * 1000)

struct siw_half_close {
	struct list link; /* siw.half_closed, oldest first */
	struct siw *siw;
	struct loop_fd fd;
	struct loop_timer timer;
};

static void half_close_free(struct siw_half_close *l)
{
	loop_fd_del(&l->fd);
	loop_timer_cancel(&l->timer);
	close(l->fd.fd);
	list_del(&l->link);
	l->siw->nhalf_closed--;
	free(l);
}

static void half_close_abort(struct siw_half_close *l)
{
	l->siw->counter[SIW_CTR_HALF_CLOSED_ABORT]++;
	half_close_free(l);
}

static void on_time(struct loop_timer *t, struct now now)
{
	half_close_abort(container_of(t, struct siw_half_close, timer));
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	static u8 waste[65536];
	ssize_t n = recv(w->fd, waste, sizeof(waste), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		half_close_free(container_of(w, struct siw_half_close, fd));
}

void siw_half_close(struct siw *siw, int fd)
{
	struct siw_half_close *l = shutdown(fd, SHUT_WR) ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		close(fd);
		return;
	}
	if (siw->nhalf_closed == SIW_HALF_CLOSED_MAX)
		half_close_abort(list_first(&siw->half_closed, struct siw_half_close, link));
	l->siw = siw;
	l->fd = (struct loop_fd){ .fd = fd, .fn = on_fd };
	l->timer.fn = on_time;
	list_add(&siw->half_closed, &l->link);
	siw->nhalf_closed++;
	loop_timer_set(siw->loop, &l->timer, loop_now(siw->loop).ns + HALF_CLOSE_NS);
	if (loop_fd_add(siw->loop, &l->fd, EPOLLIN))
		half_close_free(l);
}

void siw_half_close_destroy(struct siw *siw)
{
	while (!list_empty(&siw->half_closed))
		half_close_free(list_first(&siw->half_closed, struct siw_half_close, link));
}
