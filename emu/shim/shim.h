/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the preload library, by implementing file. */
#ifndef MUSLIN_SHIM_H
#define MUSLIN_SHIM_H

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "emu/host/proto.h"

#define SHIM_PATH_MAX 4096
#define SHIM_CHANNEL  UV_KINDS /* a completion or event channel: only its close is reported */
#define SHIM_RPCS     16       /* connections of a file in a process */

/* An open device file, shared by all descriptors of the application that refer to it. */
struct ib_uverbs_ioctl_hdr;

struct shim_file {
	enum uv_kind kind;
	unsigned int unit;
	int fd;             /* its first descriptor, which may be closed */
	int rpc[SHIM_RPCS]; /* connections to the daemon, then -1 */
	unsigned int busy;  /* bit mask of connections with a request in progress */
	/* uverbs: the daemon's eventfd. rdma_cm: a duplicate of fd, to wait for events after fd is closed. */
	int kick;
	ino_t inode; /* of fd, to detect that the number means another file */
	dev_t dev;
	pid_t pid;                /* process that made the connections */
	uint64_t cookie;          /* for uv_open.attach in a child */
	struct uv_shared *shared; /* uverbs only */
	struct {
		unsigned int port, groups; /* port ID of its address, bit mask of its groups */
		int type;
		bool received; /* since the daemon was last asked for more */
	} netlink;
	struct shim_file *parent; /* channel: the uverbs file; NULL after it is closed */
	size_t event_size;        /* channel: of its events */
	size_t umad_hdr;          /* umad: size of the header of records */
	bool umad_used;           /* umad: an agent was registered */
	pid_t event_thread;       /* rdma_cm: thread of the last GET_EVENT; 0: none yet */
	unsigned int event_wait;  /* rdma_cm: us that DESTROY_ID and LEAVE_MCAST wait for other threads */
	/* Descriptors and calls in progress: a close does not free the file while another thread waits in a call. */
	unsigned int refs;
};

/* A function of the libraries after this one; found before main(). */
struct shim_symbol {
	const char *name;
	void *found;
};

/* The libc's function of that name; NULL: there is none. */
#define REAL(name)                                                                                                \
	({                                                                                                        \
		static struct shim_symbol real_symbol __attribute__((section("shim_symbols"))) = { #name, NULL }; \
		(__typeof__(&name))shim_real(&real_symbol);                                                       \
	})
/* Return value of a libc call: @result, or -1 with errno if it is -errno. */
static inline int shim_result(int result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}
void *shim_real(struct shim_symbol *s); /* symbol.c: as dlsym(RTLD_NEXT) */

/*
 * lock.c: locks that a thread may take again, in a handler of a signal. Zero: not locked, as a child sets those that it
 * has inherited.
 */
struct shim_lock {
	uint32_t owner, again; /* again: how often the owner has taken it besides */
};
void shim_lock(struct shim_lock *l);
bool shim_lock_try(struct shim_lock *l); /* false: some thread has it, perhaps this one */
bool shim_lock_is_own(const struct shim_lock *l);
void shim_unlock(struct shim_lock *l);
struct timespec;
/* Waits while the word has this value, until a time of CLOCK_MONOTONIC or without limit (NULL), or a signal. */
void shim_futex_wait(const uint32_t *word, uint32_t seen, const struct timespec *until);
void shim_futex_wake(const uint32_t *word, int threads);

/* hooks_stat.c: system calls, without translation; errno is set. */
int shim_fstatat(int dir, const char *path, struct stat *st, int flags);
int shim_fstat(int fd, struct stat *st);

/*
 * Most calls have paths that stay as they are, perhaps in a handler of a signal or a thread with a small stack: buffers
 * of SHIM_PATH_MAX bytes are in functions that those do not call.
 */
#define ON_LARGE_STACK __attribute__((noinline))
bool shim_may_translate(const char *path); /* path.c: false: shim_look() returns @path */
/*
 * path.c: returns the path to use instead; @buf of SHIM_PATH_MAX bytes. *dev: the kind of device file that it names, or
 * UV_KINDS. Updates the tree first.
 */
const char *shim_look(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit);
/* The same for a path relative to the directory @dir, which may be the root. */
const char *shim_look_at(int dir, const char *path, char *buf, enum uv_kind *dev, unsigned int *unit);
/* Translates a path in the tree, in place, to the path that programs use. May be NULL. */
char *shim_seen(char *path);
bool shim_has_netdevs(void); /* the host has network interfaces of its own */
bool shim_active(void);      /* the program runs on a host of a fabric */

/* rpc.c */
/* Opens a file, or attaches to the open file with cookie @attach. 0 or -errno; fds are -1 if the response has none. */
int shim_connect(enum uv_kind kind, unsigned int unit, uint64_t attach, int fds[2], int *rpc, struct uv_opened *opened);
struct shim_request {
	enum uv_op op;
	unsigned int arg;
	const void *in;
	size_t in_len;
	const int *in_fd; /* passed to the daemon; NULL, or one below 0: none */
	void *out;
	size_t *out_len; /* size of @out, then of the response */
	int *fd;         /* a descriptor of the response, or -1; may be NULL */
};
/* Sends a request and waits for the response. Returns its result (-errno). */
int shim_call(struct shim_file *f, const struct shim_request *req);
int shim_call_on(int rpc, const struct shim_request *req); /* the same on a connection that only the caller uses */
void shim_rpc_lock(void); /* new requests wait; waits up to 100 ms for those of other threads */
void shim_rpc_unlock(void);
void shim_rpc_child(void); /* in the child, no thread has the lock */

/* table.c */
/* Returns a reference, to be released by shim_file_put(). NULL: not a device file of ours. */
struct shim_file *shim_file_get(int fd);
/*
 * The same in two steps: the file that had this number last, and NULL, with the reference dropped, if the program has
 * closed it since by an inline system call. The second step is a system call.
 */
struct shim_file *shim_file_get_entry(int fd);
struct shim_file *shim_file_verify(struct shim_file *f, int fd);
void shim_file_put(struct shim_file *f);        /* may be NULL */
bool shim_channel(int fd);                      /* it is a completion or event channel */
bool shim_event_exceeds(int fd, size_t len);    /* it is one whose events have more than @len bytes */
int shim_file_add(int fd, struct shim_file *f); /* 0, -ENOMEM */
void shim_file_dup(int from, int to);
void shim_file_forget(int fd);
/* Removes all from @first to @last. */
void shim_file_forget_range(unsigned int first, unsigned int last);
/*
 * In a child, makes a new connection at first use. 0; -EBADF in a child of vfork(), where the file is its parent's;
 * -errno.
 */
int shim_file_connect(struct shim_file *f);
/* Private descriptors of the library: the application does not know them; only the library closes them. */
int shim_private_add(int fd); /* may change the number; -ENOMEM: it is closed */
void shim_private_close(int fd);
bool shim_private(int fd);
/* The same in a child of vfork(), too. False: the program has closed it by an inline system call. */
bool shim_private_same(int fd);
/* Moves the descriptor to another number, since the application uses this one. 0 or -errno. */
int shim_private_move(int fd);
/* The next private descriptor in [first, last], or -1. */
int shim_private_next(unsigned int first, unsigned int last);
bool shim_table_used(void); /* a device file, or a private descriptor, has been opened */

void shim_table_lock(void);
void shim_table_unlock(void);
void shim_table_child(void);

/* hooks_fork.c: false in a child of vfork(), whose memory is its parent's but whose descriptors are not. */
bool shim_own_process(void);

/* command.c */
int shim_open(enum uv_kind kind, unsigned int unit, int flags);
void shim_await_reader(struct shim_file *f); /* before one of its descriptors is closed */
/* Whether these are a POST_SEND or REQ_NOTIFY_CQ, by which rdma-core rings doorbells. No other data look like one. */
bool shim_is_doorbell(const struct shim_file *f, const void *buf, size_t len);
/* @fd: one of its descriptors. The one that it was opened with may be closed, or another file. */
ssize_t shim_write(struct shim_file *f, int fd, const void *buf, size_t len);
int shim_ioctl(struct shim_file *f, unsigned long request, void *arg);

/* hooks_fd.c: executes a system call that closes or duplicates descriptors as that function. False: it is another. */
bool shim_fd_syscall(long number, const long *a, long *result);

/* umad.c */
ssize_t shim_umad_read(int fd, void *buf, size_t len, size_t hdr); /* @hdr: size of the header of its records */
void shim_umad_lock(void);                                         /* no read examines a record */
void shim_umad_unlock(void);
void shim_umad_child(void);

/* addr.c */
/* Is it an address of the fabric? @to: the loopback address to use instead. */
bool shim_addr_out(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len);
bool shim_addr_other(const struct sockaddr *sa, socklen_t len); /* it is an address of another host of the fabric */
bool shim_addr_is_ip(const struct sockaddr *sa, socklen_t len);
struct in6_addr shim_addr_v6(const struct sockaddr *sa); /* converts an IP address; IPv4 is mapped */
struct in6_addr shim_addr_v4_mapped(const void *v4);     /* from the 4 bytes of an IPv4 address */
/* Finds the address of a host by name, of @family or any (AF_UNSPEC), and the name by address, or NULL. */
bool shim_addr_of_name(const char *name, int family, struct in6_addr *addr);
const char *shim_addr_name(const struct in6_addr *addr);
/* Finds the nth address of an interface of this host, and its prefix length. */
bool shim_addr_of_netdev(const char *netdev, size_t n, struct in6_addr *addr, unsigned int *len);
/* Finds the loopback address, for sockets of @family, of this host's first IPv4 or IPv6 address. False: it has none. */
bool shim_addr_own(struct sockaddr_storage *to, sa_family_t family, bool v4);
/* Translates the loopback address of a host to the address of the host; IPv4 in an IPv6 socket is mapped. */
void shim_addr_in(struct sockaddr *sa, socklen_t len);

/* hooks_bind.c */
/* Is ::1 the address of a listener that bind() has moved from :: to this host's address? @to: that address. */
bool shim_bind_localhost(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len);

/* hooks_netlink.c: sockets of NETLINK_RDMA and NETLINK_ROUTE, to which the daemon responds */
bool shim_netlink(int fd);
int shim_netlink_bind(int fd, const struct sockaddr *addr, socklen_t len);
int shim_netlink_name(int fd, struct sockaddr *addr, socklen_t *len, bool own); /* @own, or the kernel's; always 0 */
ssize_t shim_netlink_send(int fd, const struct msghdr *msg);
/*
 * After receiving from @fd returned @got: whether to try again, since there was nothing (EAGAIN) and the daemon has
 * been asked for what it held back while the socket was full. Keeps errno.
 */
bool shim_netlink_more(int fd, ssize_t got);

/* netdev.c: the network interfaces of the host besides lo, as its sysfs tree has them */
#define SHIM_NETDEVS 32
struct shim_netdev {
	char name[IF_NAMESIZE];
	unsigned int index, flags, mtu, type, len;
	unsigned char addr[20], broadcast[20];
};
size_t shim_netdev_list(struct shim_netdev list[SHIM_NETDEVS]);
/* Finds an interface by name, or if @name is NULL, by index. */
bool shim_netdev_find(const char *name, unsigned int index, struct shim_netdev *dev);
/* hooks_netdev.c: sets @buf, of SHIM_PATH_MAX bytes, to the path of this host's /proc/net/if_inet6. */
bool shim_netdev_inet6(char *buf);
/* Executes an ioctl() request on an interface. False: the kernel must; *result: 0 or -errno. */
bool shim_netdev_ioctl(unsigned long request, void *arg, int *result);

/* poll.c: called for opened and closed uverbs files, and doorbells */
void shim_poll_watch(struct uv_shared *s);
void shim_poll_unwatch(struct uv_shared *s); /* before its page is unmapped */
void shim_poll_child(void);
void shim_poll_posted(void);

/* share.c: shares memory with the daemon, if possible, before it is registered on the file. */
#define SHIM_MEMORY "muslin-memory"
void shim_share(struct shim_file *f, uint64_t addr, uint64_t len);
/*
 * The parent takes a snapshot of its shared memory before a fork; the child maps it. False, only without @wait: another
 * thread has the lock, and there is no snapshot. Otherwise the parent calls shim_share_forked() after the fork.
 */
bool shim_share_fork(bool wait);
void shim_share_forked(void);
void shim_share_child(void);
/* Does RLIMIT_FSIZE permit a memfd of that size, in bytes? Beyond it SIGXFSZ ends the program. */
bool shim_memfd_permitted(unsigned long long size);
/* No call uses the descriptors of shared files. False: a call does that a handler of a signal has interrupted. */
bool shim_share_lock(void);
void shim_share_unlock(void);
/* Changes the descriptor of a shared file, with the lock. 0; -EBUSY: it is none. */
int shim_share_move(int fd, int to);

/* wipe.c: ranges of offsets in shared files of which a child gets zeroes. @file: index in share.c. 0 or -ENOMEM. */
int shim_wipe_add(int file, unsigned long long start, unsigned long long end);
int shim_wipe_remove(int file, unsigned long long start, unsigned long long end);
/* The next part of [*start, *end) that is in a range, from range *i on. False: none. */
bool shim_wipe_next(unsigned int *i, int file, unsigned long long *start, unsigned long long *end);

/* access.c: may the region be registered, with rights to write to it? 0 or -EFAULT. */
int shim_access(uint64_t addr, uint64_t len, bool write);
/* Populates the pages; false: they are not mapped, or do not permit it. */
bool shim_prefetch(uint64_t addr, uint64_t len, bool write);
/* advise.c: executes UVERBS_METHOD_ADVISE_MR. 0 or -errno. */
int shim_advise(struct shim_file *f, const struct ib_uverbs_ioctl_hdr *h);

/* copy.c: starts a thread that copies for the daemon, for the file with the cookie. 0 or -errno. */
int shim_copy_start(enum uv_kind kind, unsigned int unit, uint64_t cookie);
int shim_thread_start(void *(*fn)(void *), void *arg); /* detached, with all signals blocked. 0 or -errno */

/* reach.c */
int shim_reach(void); /* a new connection to the daemon, a private descriptor; or -errno */

#endif
