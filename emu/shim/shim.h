/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The preload library: what its files share. */
#ifndef MUSLIN_SHIM_SHIM_H
#define MUSLIN_SHIM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "emu/uverbs/proto.h"

#define SHIM_PATH_MAX 4096

/* An opened device file, by the application's descriptor. */
struct shim_file {
	enum uv_kind kind;
	int fd, rpc, kick;
	ino_t inode; /* of fd: tells whether the number still means this file */
	dev_t dev;
	pid_t pid;
	struct uv_shared *shared; /* uverbs only */
	unsigned int refs;        /* descriptors */
};

/* The libc's own function of that name. */
#define REAL(name)                                  \
	({                                          \
		static __typeof__(&name) real_fn;   \
		if (!real_fn)                       \
			real_fn = shim_real(#name); \
		real_fn;                            \
	})
void *shim_real(const char *name);

/* path.c: the path to use instead; @buf of SHIM_PATH_MAX bytes. *dev: the kind of device file that it names, or UV_KINDS. */
const char *shim_path(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit);
bool shim_active(void);  /* the program runs on a host of a fabric */
void shim_refresh(void); /* the tree is brought up to date */

/* rpc.c */
int shim_connect(enum uv_kind kind, unsigned int unit, int fds[2], int *rpc);
/* Sends a request and waits for its answer. Returns its result (-errno); @out_len: room, then what came; *fd: one that came. */
int shim_call(int rpc, enum uv_op op, unsigned int arg, const void *in, size_t in_len, int in_fd, void *out,
	      size_t *out_len, int *fd);

/* table.c */
struct shim_file *shim_file_get(int fd); /* NULL: not ours */
void shim_file_add(int fd, struct shim_file *f);
void shim_file_dup(int from, int to);
void shim_file_forget(int fd);

/* command.c */
int shim_open(enum uv_kind kind, unsigned int unit, int flags);
ssize_t shim_write(struct shim_file *f, const void *buf, size_t len);
ssize_t shim_read(struct shim_file *f, void *buf, size_t len);
int shim_ioctl(struct shim_file *f, unsigned long request, void *arg);

/* addr.c */
/* Is it a host of the fabric? Then @to is the address that stands for it. */
bool shim_addr_out(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len);
/* The address that stands for this host. */
bool shim_addr_own(struct sockaddr_storage *to, sa_family_t family);
/* Turns an address that stands for a host back into that host's. */
void shim_addr_in(struct sockaddr *sa, socklen_t len);

#endif
