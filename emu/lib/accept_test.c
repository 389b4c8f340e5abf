// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections when no descriptors are left. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/accept.h"
#include "emu/lib/row.h"

int main(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct accept_listener l;
	struct rlimit few;
	socklen_t len = sizeof(sa);
	struct pollfd p;
	char c;
	int fd, got, client[3], taken[64], n = 0, i;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The kernel chooses the name. */
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa.sun_family)) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&sa, &len))
		return 1;
	accept_init(&l, fd);
	row(1, "no client", accept_next(&l, 0) == -EAGAIN);
	for (i = 0; i < 3; i++) {
		client[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(client[i], (struct sockaddr *)&sa, len))
			return 1;
	}
	got = accept_next(&l, SOCK_NONBLOCK);
	row(2, "the first", got >= 0 && fcntl(got, F_GETFL) & O_NONBLOCK);
	getrlimit(RLIMIT_NOFILE, &few);
	few.rlim_cur = 48;
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 64 && (taken[n] = dup(0)) >= 0)
		n++;
	row(3, "the second finds no descriptor left", accept_next(&l, 0) == -EMFILE);
	row(4, "and learns it", recv(client[1], &c, 1, MSG_DONTWAIT) == 0);
	row(5, "so does the third", accept_next(&l, 0) == -EMFILE && recv(client[2], &c, 1, MSG_DONTWAIT) == 0);
	p = (struct pollfd){ .fd = fd, .events = POLLIN };
	row(6, "the listener is quiet", poll(&p, 1, 0) == 0);
	while (n)
		close(taken[--n]);
	close(client[0]);
	client[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	row(7, "a later one is taken",
	    !connect(client[0], (struct sockaddr *)&sa, len) && (got = accept_next(&l, 0)) >= 0);
	accept_fini(&l);
	return rows_end();
}
