/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The preload library: what its files share. */
#ifndef MUSLIN_SHIM_H
#define MUSLIN_SHIM_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "emu/host/proto.h"

#define SHIM_PATH_MAX 4096
#define SHIM_CHANNEL  UV_KINDS /* a completion channel: only its end is of interest */
#define SHIM_RPCS     16       /* connections of a file in a process */

/* An opened device file, by the application's descriptor. */
struct shim_file {
	enum uv_kind kind;
	unsigned int unit;
	int fd;             /* that it was opened with */
	int rpc[SHIM_RPCS]; /* its connections to the daemon, then -1 */
	unsigned int busy;  /* a bit for each: it carries a request */
	int kick; /* uverbs: the daemon's eventfd. rdma_cm: the file again, to wait for events when fd is closed already */
	ino_t inode; /* of fd: tells whether the number still means this file */
	dev_t dev;
	pid_t pid;                /* whose connections they are */
	uint64_t cookie;          /* by which a child attaches */
	struct uv_shared *shared; /* uverbs only */
	struct {
		unsigned int port, groups; /* of its address; a bit for each group */
		int type;
	} netlink;
	struct shim_file *parent; /* of a channel: the uverbs file; NULL when that is closed */
	pid_t event_thread;       /* rdma_cm: thread of the last GET_EVENT; 0: none yet */
	unsigned int event_wait;  /* rdma_cm: us that DESTROY_ID and LEAVE_MCAST wait for other threads */
	unsigned int refs; /* descriptors, and calls under way: a close does not end what another thread waits in */
};

/* The libc's own function of that name. */
#define REAL(name)                                  \
	({                                          \
		static __typeof__(&name) real_fn;   \
		if (!real_fn)                       \
			real_fn = shim_real(#name); \
		real_fn;                            \
	})
void *shim_real(const char *name);   /* symbol.c: as dlsym(RTLD_NEXT) */
void *shim_global(const char *name); /* as dlsym(RTLD_DEFAULT) */

/* hooks_stat.c: of the kernel, without a redirection; errno is set. */
int shim_fstatat(int dir, const char *path, struct stat *st, int flags);
int shim_fstat(int fd, struct stat *st);

/*
 * path.c: the path to use instead; @buf of SHIM_PATH_MAX bytes. *dev: the kind of device file that it names, or UV_KINDS. The tree is
 * brought up to date first.
 */
const char *shim_look(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit);
/* The same for a path at the folder @dir, which may be the root. */
const char *shim_look_at(int dir, const char *path, char *buf, enum uv_kind *dev, unsigned int *unit);
/* A path that leads into the tree becomes, in place, that which programs see. May be NULL. */
char *shim_seen(char *path);
bool shim_has_netdevs(void); /* the host has network interfaces of its own */
bool shim_active(void);      /* the program runs on a host of a fabric */

/* rpc.c */
/* Opens a file, or with @attach one that is open already. 0 or -errno; descriptors are -1 where none came. */
int shim_connect(enum uv_kind kind, unsigned int unit, uint64_t attach, int fds[2], int *rpc, struct uv_opened *opened);
/* Sends a request and waits for its answer. Returns its result (-errno); @out_len: room, then what came; *fd: one that came. */
int shim_call(struct shim_file *f, enum uv_op op, unsigned int arg, const void *in, size_t in_len, int in_fd, void *out,
	      size_t *out_len, int *fd);
/* The same on a connection that only the caller uses. */
int shim_call_on(int rpc, enum uv_op op, unsigned int arg, const void *in, size_t in_len, int in_fd, void *out,
		 size_t *out_len, int *fd);
void shim_rpc_lock(void); /* no request begins; waits a while for those of other threads to end */
void shim_rpc_unlock(void);
void shim_rpc_child(void); /* no thread of the child holds the lock */

/* table.c */
struct shim_file *shim_file_get(int fd); /* NULL: not a device file of ours. To be put when the call is done. */
void shim_file_put(struct shim_file *f); /* may be NULL */
bool shim_channel(int fd);               /* of events, by the daemon */
void shim_file_add(int fd, struct shim_file *f);
void shim_file_dup(int from, int to);
void shim_file_forget(int fd);
/* Removes all from @first to @last. */
void shim_file_forget_range(unsigned int first, unsigned int last);
/* A child makes a connection of its own at first use. 0; -EBADF in a child of vfork, where the file is its parent's; -errno. */
int shim_file_connect(struct shim_file *f);
/* Descriptors of our own, which the application does not know: moved out of its way and closed by us alone. */
int shim_private_add(int fd);
void shim_private_close(int fd);
bool shim_private(int fd);
/* Gives it another number, since the application wants this one. 0 or -errno. */
int shim_private_move(int fd);
/* The next private descriptor in [first, last], or -1. */
int shim_private_next(unsigned int first, unsigned int last);

void shim_table_lock(void);
void shim_table_unlock(void);
void shim_table_child(void);

/* hooks_fork.c: false in a child of vfork, whose memory is its parent's but whose descriptors are not. */
bool shim_own_process(void);

/* command.c */
int shim_open(enum uv_kind kind, unsigned int unit, int flags);
/* @fd: one of its descriptors. The one that it was opened with may be closed, or another file. */
ssize_t shim_write(struct shim_file *f, int fd, const void *buf, size_t len);
ssize_t shim_read(const struct shim_file *f, int fd, void *buf, size_t len);
int shim_ioctl(struct shim_file *f, unsigned long request, void *arg);

/* addr.c */
/* Is it a host of the fabric? @to is its loopback address. */
bool shim_addr_out(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len);
bool shim_addr_other(const struct sockaddr *sa, socklen_t len); /* of another host of the fabric */
bool shim_addr_is_ip(const struct sockaddr *sa, socklen_t len);
struct in6_addr shim_addr_v6(const struct sockaddr *sa); /* of an IP address; IPv4 is mapped */
struct in6_addr shim_addr_v4_mapped(const void *v4);     /* of the 4 bytes of an IPv4 address */
/* The address of the fabric's host of that name, of @family or any (AF_UNSPEC), and the name of one of that address, or NULL. */
bool shim_addr_of_name(const char *name, int family, struct in6_addr *addr);
const char *shim_addr_name(const struct in6_addr *addr);
/* The nth address of the interface of this host, and the bits of it that are its network's. */
bool shim_addr_of_netdev(const char *netdev, size_t n, struct in6_addr *addr, unsigned int *len);
/* The loopback address, for sockets of @family, of this host's first IPv4 or IPv6 address. False: it has none. */
bool shim_addr_own(struct sockaddr_storage *to, sa_family_t family, bool v4);
/* Translates the loopback address of a host to the address of the host; IPv4 in an IPv6 socket is mapped. */
void shim_addr_in(struct sockaddr *sa, socklen_t len);

/* hooks_bind.c */
/* Is a connection to ::1 one to a listener on :: of this host that bind() has bound elsewhere? @to: where. */
bool shim_bind_localhost(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len);

/* hooks_netlink.c: sockets of NETLINK_RDMA and NETLINK_ROUTE that the daemon answers */
bool shim_netlink(int fd);
int shim_netlink_bind(int fd, const struct sockaddr *addr, socklen_t len);
int shim_netlink_name(int fd, struct sockaddr *addr, socklen_t *len, bool own); /* its own, or the kernel's; always 0 */
ssize_t shim_netlink_send(int fd, const struct msghdr *msg);

/* netdev.c: the network interfaces of the host besides lo, as its sysfs tree has them */
#define SHIM_NETDEVS 32
struct shim_netdev {
	char name[IF_NAMESIZE];
	unsigned int index, flags, mtu, type, len;
	unsigned char addr[20], broadcast[20];
};
size_t shim_netdev_list(struct shim_netdev list[SHIM_NETDEVS]);
/* That of the name, or, where it is NULL, with that index. */
bool shim_netdev_find(const char *name, unsigned int index, struct shim_netdev *dev);
/* hooks_netdev.c: @buf, of SHIM_PATH_MAX bytes, becomes the path of this host's /proc/net/if_inet6. */
bool shim_netdev_inet6(char *buf);
/* A request of sockets about an interface. False: it is the kernel's; *result: 0 or -errno. */
bool shim_netdev_ioctl(unsigned long request, void *arg, int *result);

/* poll.c: opened and closed uverbs files, and doorbells */
void shim_poll_watch(struct uv_shared *s);
void shim_poll_unwatch(struct uv_shared *s);
void shim_poll_posted(void);

/* share.c: lets the daemon map what is about to be registered on the file, where that can be done. */
#define SHIM_MEMORY "muslin-memory"
void shim_share(struct shim_file *f, uint64_t addr, uint64_t len);
/*
 * Around a fork: the parent takes a snapshot of its shared memory, which becomes the child's. False without @wait: another thread is at
 * work there, and there is no snapshot; otherwise the parent calls shim_share_forked() afterwards.
 */
bool shim_share_fork(bool wait);
void shim_share_forked(void);
void shim_share_child(void);
int shim_share_move(int fd, int to); /* the descriptor of a shared file has another number. 0; -EBUSY: it is none */

/* copy.c: a thread that serves the daemon's copies for the file of that cookie. 0 or -errno. */
int shim_copy_start(enum uv_kind kind, unsigned int unit, uint64_t cookie);

#endif
