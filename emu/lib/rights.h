/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that pass along with a message on a local socket (SCM_RIGHTS). The preload library takes it, too: C's types alone. */
#ifndef MUSLIN_LIB_RIGHTS_H
#define MUSLIN_LIB_RIGHTS_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIGHTS_SPACE(n) CMSG_SPACE((n) * sizeof(int))
/* A buffer for @n of them, where the headers in it may lie. */
#define RIGHTS_CONTROL(name, n) _Alignas(struct cmsghdr) char name[RIGHTS_SPACE(n)]

/* The message takes @n of @fds along; @control is a RIGHTS_CONTROL for @n, all zero. */
static inline void rights_put(struct msghdr *m, void *control, const int *fds, unsigned int n)
{
	struct cmsghdr *c;

	if (!n)
		return;
	m->msg_control = control;
	m->msg_controllen = RIGHTS_SPACE(n);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
}

/* The first @max that came with the message, which are the caller's now; the others are closed. How many. */
static inline unsigned int rights_get(struct msghdr *m, int *fds, unsigned int max)
{
	unsigned int got = 0, n, i;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (got < max)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	return got;
}

#endif
