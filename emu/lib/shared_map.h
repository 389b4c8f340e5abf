/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mapped memory that a client shares by a descriptor. Access to truncated memory raises SIGBUS, which would end the
 * daemon: zeroed anonymous memory replaces it, and the client is disconnected.
 */
#ifndef MUSLIN_LIB_SHARED_MAP_H
#define MUSLIN_LIB_SHARED_MAP_H

#include <sys/types.h>

#include "emu/lib/list.h"

#define SHARED_MAP_MAX (1ull << 40) /* bytes per owner: addresses are limited, and files may be sparse */

/* The owner of the memory. */
struct shared_owner {
	int sock;
	pid_t pid;
	bool lost;  /* some of it was truncated: the socket has been shut down */
	u64 mapped; /* bytes */
};

struct shared_map {
	struct list link;
	struct shared_owner *owner;
	u8 *map;
	u64 map_len;
	u8 *ptr; /* to the requested range */
};

/*
 * Maps @size bytes at @offset of the file, shared. 0 or -errno: -EINVAL: beyond the end of the file, or not a file in
 * memory; -ENOSPC: the owner's limit. Does not keep @fd. @owner must outlive the map.
 */
int shared_map_init(struct shared_map *m, struct shared_owner *owner, int fd, u64 offset, u64 size, bool write);
void shared_map_fini(struct shared_map *m);

#endif
