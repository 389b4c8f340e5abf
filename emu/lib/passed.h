/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors that clients pass on local sockets (SCM_RIGHTS), and the sockets themselves: received without truncation, and closed
 * by threads where close() may block.
 */
#ifndef MUSLIN_LIB_PASSED_H
#define MUSLIN_LIB_PASSED_H

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "emu/lib/types.h"

#define PASSED_MAX           253  /* descriptors of a message: SCM_MAX_FD of the kernel */
#define PASSED_THREADS       1024 /* that close */
#define PASSED_THREADS_OWNER 4    /* for one client process */
#define PASSED_OWNER_MOST    512  /* descriptors of a client process that wait: then it is disconnected */
#define PASSED_UNMAP_LARGE   (16u << 20)

enum passed_kind {
	PASSED_OTHER,
	PASSED_EVENTFD,
	PASSED_PIPE,
	PASSED_MEMORY, /* a file of tmpfs or hugetlbfs, such as a memfd */
	PASSED_SOCKET
};

struct passed_stats {
	u64 closed;  /* by threads, and mappings */
	u64 delayed; /* waited, as all threads that their client may use were blocked */
	u32 waiting; /* not closed yet */
};

/* The process at the other end of @sock; 0: unknown. */
pid_t passed_owner(int sock);
/*
 * recvmsg() with MSG_DONTWAIT and MSG_CMSG_CLOEXEC. The first descriptors of the message are put into @fds, @max of them at most,
 * and *nfds counts them; the others are closed. Bytes, or -1 with errno.
 */
ssize_t passed_recv(int sock, const struct iovec *iov, int *fds, u32 max, u32 *nfds);
/* By the name that the kernel gives it: fstat() would ask the file system, which may be a program's that never answers. */
enum passed_kind passed_kind(int fd);
/* Identifies the socket of @fd among all sockets; 0: no socket. */
u64 passed_socket(int fd);
/* Closes a descriptor that @owner has passed; -1: none. Never blocks. */
void passed_close(int fd, pid_t owner);
/* Adds 1 to a client's eventfd, unless it takes no more. Never blocks: any process that shares it may have cleared O_NONBLOCK. */
void passed_signal(int fd);
/* Closes a socket whose other end @owner has, with the descriptors in its queue. Never blocks. */
void passed_close_socket(int sock, pid_t owner);
/*
 * Unmaps memory that @owner has shared. When nobody else has it, its pages are freed then, which takes 0.1 s and more for each GiB: a
 * thread does it where it is large.
 */
void passed_unmap(void *at, size_t len, pid_t owner);
/* Are there so many descriptors of @owner still to be closed that it must not pass more? */
bool passed_refused(pid_t owner);
/*
 * Descriptors in reserve: passed_reserve() lowers the soft limit of the process so that those of a message fit above it, and between
 * begin and end they can be used.
 */
void passed_reserve(void);
void passed_reserve_begin(struct rlimit *before);
void passed_reserve_end(const struct rlimit *before);
void passed_stats(struct passed_stats *st);

#endif
