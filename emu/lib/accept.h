/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * accept() when the process may run out of descriptors. A connection that is neither accepted nor rejected would stay
 * in the listener's queue and keep the loop busy.
 */
#ifndef MUSLIN_LIB_ACCEPT_H
#define MUSLIN_LIB_ACCEPT_H

struct accept_listener {
	int fd;    /* listening; non-blocking or watched by a loop */
	int spare; /* closed temporarily when no descriptors are left */
};

void accept_init(struct accept_listener *l, int fd);
void accept_fini(struct accept_listener *l); /* does not close fd */
/* A connected descriptor with SOCK_CLOEXEC and @flags; or -errno: -EMFILE or -ENFILE if the connection was rejected. */
int accept_next(struct accept_listener *l, int flags);

#endif
