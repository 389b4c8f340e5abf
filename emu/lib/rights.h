/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passing descriptors with a message on a local socket (SCM_RIGHTS). Also used by the
 * preload library: only C's own types. */
#ifndef MUSLIN_LIB_RIGHTS_H
#define MUSLIN_LIB_RIGHTS_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIGHTS_SPACE(n) CMSG_SPACE((n) * sizeof(int))
/* A suitably aligned control buffer for @n descriptors. */
#define RIGHTS_CONTROL(name, n) _Alignas(struct cmsghdr) char name[RIGHTS_SPACE(n)]

/* Attaches @n descriptors of @fds to the message; @control is a zeroed RIGHTS_CONTROL for @n. */
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

/* Takes the first @max descriptors of the message, now owned by the caller; closes the others. Returns how many. */
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
