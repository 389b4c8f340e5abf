/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors that clients pass on local sockets (SCM_RIGHTS), and the sockets themselves: received without
 * truncation, and closed by threads if close() may block.
 */
#ifndef MUSLIN_LIB_PASSED_H
#define MUSLIN_LIB_PASSED_H

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "emu/lib/types.h"

#define PASSED_MAX           253  /* descriptors per message: SCM_MAX_FD of the kernel */
#define PASSED_THREADS       1024 /* closing threads */
#define PASSED_THREADS_OWNER 4    /* per client process */
#define PASSED_OWNER_MOST    512  /* waiting descriptors of a client process, at which it is disconnected */
#define PASSED_UNMAP_LARGE   (16u << 20)

enum passed_kind {
	PASSED_OTHER,
	PASSED_EVENTFD,
	PASSED_PIPE,
	PASSED_MEMORY, /* a file of tmpfs or hugetlbfs, such as a memfd */
	PASSED_SOCKET
};

struct passed_stats {
	u64 closed;  /* by threads; includes mappings */
	u64 delayed; /* had to wait because all threads allowed for the client were blocked */
	u32 waiting; /* not yet closed */
};

/* The process of the peer of @sock; 0: unknown. */
pid_t passed_owner(int sock);
/*
 * recvmsg() with MSG_DONTWAIT and MSG_CMSG_CLOEXEC, by one thread of the process. Stores the message's first
 * descriptors, at most @max, in @fds and their number in *nfds; closes the others. Returns the number of bytes, or -1
 * with errno.
 */
ssize_t passed_recv(int sock, const struct iovec *iov, int *fds, u32 max, u32 *nfds);
/*
 * The same for a socket whose messages have no descriptors: those of one that has are closed, and -1 with EBADMSG is
 * returned. The caller receives no more then: closing them may take long.
 */
ssize_t passed_recv_none(int sock, const struct iovec *iov);
/* By its name in /proc: fstat() would call the file system, which may be a program that never responds. */
enum passed_kind passed_kind(int fd);
/* Identifies the socket of @fd among all sockets; 0: not a socket. */
u64 passed_socket(int fd);
/* Closes a descriptor that @owner has passed; -1: no effect. Never blocks. */
void passed_close(int fd, pid_t owner);
/*
 * Adds 1 to a client's eventfd. Never blocks after passed_signal_init(), called once by the process that signals, which
 * returns -errno if the kernel has no AIO: then a client blocks the caller if it fills the counter at the right moment.
 */
int passed_signal_init(void);
void passed_signal(int fd);
/* Takes the counter of an eventfd that a client shares. 0, or -errno: -EAGAIN if it is 0. Never blocks. */
int passed_take(int fd, u64 *n);
/* Closes a socket connected to @owner, with the descriptors in its queue. Never blocks. */
void passed_close_socket(int sock, pid_t owner);
/*
 * Unmaps memory that @owner has shared. This may free its pages, which takes 0.1 s or more per GiB: if it is large, a
 * thread does it.
 */
void passed_unmap(void *at, size_t len, pid_t owner);
/* Whether @owner has so many descriptors still to be closed that it must not pass more. */
bool passed_refused(pid_t owner);
/*
 * Reserved descriptors: passed_reserve() lowers the soft limit of the process so that those of a message fit above it;
 * they can be used between begin and end.
 */
void passed_reserve(void);
/* Counts descriptors that no message has brought: of a new connection, of a thread. By the thread of passed_recv(). */
void passed_opened(void);
void passed_reserve_begin(struct rlimit *before);
void passed_reserve_end(const struct rlimit *before);
void passed_stats(struct passed_stats *st);

#endif
