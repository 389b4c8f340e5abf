// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Streams that are over on this side: closing them at once would make TCP answer what still comes by a reset, and that
 * may overtake at the peer what was sent last. So they stay, half closed, until the peer closes too, or a short time is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "siw/internal.h"

#define LINGER_NS (1000ull * 1000 * 1000)

struct siw_linger {
	struct list link; /* siw.lingering, the oldest first */
	struct siw *siw;
	struct loop_fd fd;
	struct loop_timer timer;
};

static void end(struct siw_linger *l)
{
	loop_fd_del(&l->fd);
	loop_timer_cancel(&l->timer);
	close(l->fd.fd);
	list_del(&l->link);
	l->siw->nlingering--;
	free(l);
}

static void give_up(struct siw_linger *l)
{
	l->siw->counter[SIW_CTR_LINGER]++;
	end(l);
}

static void on_time(struct loop_timer *t, struct now now)
{
	give_up(container_of(t, struct siw_linger, timer));
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	static u8 waste[65536];
	ssize_t n = recv(w->fd, waste, sizeof(waste), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		end(container_of(w, struct siw_linger, fd));
}

void siw_linger(struct siw *siw, int fd)
{
	struct siw_linger *l = shutdown(fd, SHUT_WR) ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		close(fd);
		return;
	}
	if (siw->nlingering == SIW_LINGERING)
		give_up(list_first(&siw->lingering, struct siw_linger, link));
	l->siw = siw;
	l->fd = (struct loop_fd){ .fd = fd, .fn = on_fd };
	l->timer.fn = on_time;
	list_add(&siw->lingering, &l->link);
	siw->nlingering++;
	loop_timer_set(siw->loop, &l->timer, loop_now(siw->loop).ns + LINGER_NS);
	if (loop_fd_add(siw->loop, &l->fd, EPOLLIN))
		end(l);
}

void siw_linger_end(struct siw *siw)
{
	while (!list_empty(&siw->lingering))
		end(list_first(&siw->lingering, struct siw_linger, link));
}
