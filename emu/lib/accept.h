/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accepting connections where descriptors may run out. One that can be neither accepted nor refused would stay in the listener's
 * queue, and the loop would look at it for ever.
 */
#ifndef MUSLIN_LIB_ACCEPT_H
#define MUSLIN_LIB_ACCEPT_H

struct accept_listener {
	int fd;    /* listens, non-blocking or watched by a loop */
	int spare; /* given up for a moment when no descriptors are left */
};

void accept_init(struct accept_listener *l, int fd);
void accept_fini(struct accept_listener *l); /* does not close fd */
/* A connected descriptor with SOCK_CLOEXEC and @flags; or -errno: -EMFILE or -ENFILE when the caller was turned away. */
int accept_next(struct accept_listener *l, int flags);

#endif
