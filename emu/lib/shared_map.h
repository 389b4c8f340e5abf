/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that a client shares by a descriptor, mapped. Access to memory whose file was truncated raises SIGBUS, which would end the
 * daemon: zeroed anonymous memory replaces it, and the client's connection ends.
 */
#ifndef MUSLIN_LIB_SHARED_MAP_H
#define MUSLIN_LIB_SHARED_MAP_H

#include <sys/types.h>

#include "emu/lib/list.h"

#define SHARED_MAP_MAX (1ull << 40) /* bytes of an owner: addresses are limited, and files may be sparse */

/* Whose memory it is. */
struct shared_owner {
	int sock;
	pid_t pid;
	bool lost;  /* some of it: the socket is shut down */
	u64 mapped; /* bytes */
};

struct shared_map {
	struct list link;
	struct shared_owner *owner;
	u8 *map;
	u64 map_len;
	u8 *ptr; /* to the wanted part */
};

/*
 * Maps @size bytes at @offset of the file, shared. 0 or -errno: -EINVAL: out of the file, or its pages do not come from memory; -ENOSPC:
 * the owner's limit. Does not keep @fd. @owner must outlive the map.
 */
int shared_map_init(struct shared_map *m, struct shared_owner *owner, int fd, u64 offset, u64 size, bool write);
void shared_map_fini(struct shared_map *m);

#endif
