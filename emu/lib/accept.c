// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* accept() when the process may run out of descriptors. */
#include "emu/lib/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed.h"

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void accept_init(struct accept_listener *l, int fd)
{
	l->fd = fd;
	l->spare = open_spare();
}

void accept_fini(struct accept_listener *l)
{
	if (l->spare >= 0)
		close(l->spare);
	l->spare = -1;
}

/* Rejects the next connection: accepts it with a descriptor of the reserve, or else the spare one, and closes it. */
static void accept_refuse(struct accept_listener *l)
{
	struct rlimit limit;
	int fd;

	passed_reserve_begin(&limit);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	passed_reserve_end(&limit);
	if (fd < 0) {
		accept_fini(l);
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	}
	if (fd >= 0)
		passed_close_socket(fd, passed_owner(fd));
}

int accept_next(struct accept_listener *l, int flags)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | flags), err = errno;

	if (fd < 0 && (err == EMFILE || err == ENFILE))
		accept_refuse(l);
	if (fd >= 0)
		passed_opened();
	if (l->spare < 0)
		l->spare = open_spare();
	return fd < 0 ? -err : fd;
}
