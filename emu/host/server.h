/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's side of host mode: device files that programs have opened through the shim. */
#ifndef MUSLIN_HOST_SERVER_H
#define MUSLIN_HOST_SERVER_H

#include <sys/types.h>

#include "emu/hca/hca.h"
#include "emu/host/proto.h"
#include "emu/ipoib/ipif.h"
#include "emu/mad/mad.h"

#define UV_PORTS      2
#define UV_TREE_FILES 1024 /* of a host's sysfs tree, and links */

/* A host of the fabric as its programs see it. The owner keeps it until the server is gone. */
struct uv_host {
	const char *name;
	const char *device; /* "muslin0", "rxe0" */
	/* The network interface of the Ethernet port's GID with that index; NULL: the port is no Ethernet's. */
	const char *(*gid_netdev)(const struct uv_host *host, u32 gid);
	struct hca *hca;
	u8 nports;
	struct wire_port *port[UV_PORTS];
	struct mad_port *mad[UV_PORTS];
	struct umad_port *umad[UV_PORTS];
	struct ucma_host *cm;        /* NULL: no rdma_cm */
	struct ipif *ipif[UV_PORTS]; /* of use on InfiniBand */
	/* Name and value of the nth counter of a port for sysfs; NULL past the end. */
	const char *(*counter)(struct uv_host *host, u8 port, u32 n, u64 *value);
	void *owner;
	bool gone;                  /* its device was unplugged: nothing can be opened */
	u64 written[UV_TREE_FILES]; /* sysfs.c's: hashes of what its files hold */
};

/* Is its device shown as those of the kernel's own drivers for Ethernet, rdma_rxe and siw, which have no firmware and no board? */
static inline bool uv_host_is_soft(const struct uv_host *h)
{
	return h->port[0]->attr.link_layer == WIRE_LINK_ETHERNET;
}

#define UV_FW_VERSION "1.0.0"
/* device.c: IBV_DEVICE_* */
u32 uv_device_caps(const struct uv_host *h);

struct umad_port;
struct ucma_host;
struct uv_server;
struct uv_file;

/* Defers the response of a command until memory moves are done (hca_ctx_moved()). */
struct uv_deferral {
	u64 until; /* their last serial; 0: it need not wait */
	u32 mr;    /* the region that is registered then, or was not; 0: none */
	u32 again; /* the command is executed again then, for the n-th time; 0: it has been executed */
};

/* A kind of device file. */
struct uv_file_ops {
	/* 0 and *fd (which the application gets; the caller closes its copy), or -errno. @extra: one more for the shim, or -1. */
	int (*open)(struct uv_file *f, u32 unit, int *fd, int *extra);
	/*
	 * A write to the file; @fd is a descriptor that came along or -1, and stays the caller's. *out_len is the room at @out, and what
	 * was used. *out_fd: a descriptor for the application (the caller closes it), preset to -1. Returns what write() returns.
	 */
	ssize_t (*command)(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			   int *out_fd);
	/* @arg of @len bytes is in and out. */
	int (*ioctl)(struct uv_file *f, u32 request, void *arg, size_t len);
	/* May the response be sent? *result is the result of the command, and may become an error. NULL: never deferred. */
	bool (*ready)(struct uv_file *f, const struct uv_deferral *h, ssize_t *result);
	/* The program has no descriptor left of what it got by a command: @inode names it. */
	void (*closed)(struct uv_file *f, u64 inode);
	void (*close)(struct uv_file *f);
	/* The device was removed. Descriptors stay open and fail as the kernel's do. May be NULL. */
	void (*revoke)(struct uv_file *f);
};

#define UV_MAPPINGS 64

/* A mapping: memory of a program that is mapped into the daemon, too. */
struct uv_mapping {
	u64 addr, len;
	u8 *base;
};

struct uv_mover;

/* A process whose memory is read and written: process.c, dma.c. */
struct uv_process {
	struct list link; /* of its file */
	struct loop *loop;
	struct uv_server *server; /* NULL in tests */
	pid_t pid;
	struct loop_fd death; /* a pidfd, -1 where there is no such thing */
	u32 users;            /* connections, and regions that it has registered */
	bool heap;
	bool gone;              /* it has exited: its addresses must not be accessed */
	bool needs_copy;        /* process_vm_readv() is denied: a thread of the process copies */
	int copy;               /* the socket of that thread until the mover has it, else -1 */
	u8 *staging;            /* what passes through that thread: UV_COPY_SIZE bytes */
	struct uv_mover *mover; /* NULL until memory is moved that is not mapped here */
	u32 moves, writes;      /* under way; the writes of them */
	u64 credit, credit_at;  /* ns that the loop may still wait for it, as of then */
	struct uv_mapping mapping[UV_MAPPINGS];
	u32 nmappings, last; /* last: the most recently used mapping */
};

struct uv_file {
	struct uv_server *server;
	struct uv_host *host;
	const struct uv_file_ops *ops;
	u64 owner;      /* hca_ctx_serial() of a uverbs file's context, otherwise 0 */
	u64 ring_bytes; /* of the queues made on it */
	struct uv_process *opener;
	struct uv_process *process;  /* of the current command */
	struct uv_deferral deferral; /* set by that command */
	u32 again;                   /* how often that command was deferred */
	void *priv;
};

/*
 * Listens at @path. @find gives the host of a name (made when it is first used), NULL: unknown. @tree is the folder under which
 * each host's sysfs tree is made. NULL with errno.
 */
struct uv_server *uv_server_create(struct loop *loop, const char *path, const char *tree,
				   struct uv_host *(*find)(void *arg, const char *name), void *arg);
void uv_server_destroy(struct uv_server *s);
/* Removes the host's device and revokes its open files (@gone), or adds it again. 0 or -errno. */
int uv_server_unplug(struct uv_server *s, struct uv_host *host, bool gone);
/* Does a process that uses @f also use the uverbs file whose context has that serial number, on the same host? */
bool uv_file_shares_process(const struct uv_file *f, u64 owner);
/* Each open file of that kind on the host. */
void uv_server_each_file(struct uv_server *s, const struct uv_host *host, const struct uv_file_ops *ops,
			 void (*fn)(void *arg, struct uv_file *f), void *arg);
struct loop *uv_server_loop(const struct uv_server *s);
const char *uv_server_tree(const struct uv_server *s);

extern const struct uv_file_ops uverbs_file_ops;
extern const struct uv_file_ops umad_file_ops, issm_file_ops, ucma_file_ops, nldev_file_ops;

/* sysfs.c: writes what has changed of the host's tree. 0 or -errno. */
int uv_sysfs_refresh(struct uv_host *host, const char *tree);
/* The tree with the device and the one without change places. */
int uv_sysfs_exchange(const struct uv_host *host, const char *tree);

/* mapping.c */
/* Unmaps the mappings that overlap these addresses. */
void uv_mapping_remove(struct uv_process *p, u64 addr, u64 len);
/* Maps @fd from @offset on as the memory at @addr. 0 or -errno; the caller keeps the descriptor. */
int uv_mapping_add(struct uv_process *p, u64 addr, u64 len, int fd, u64 offset);
/* The address in the daemon; NULL unless all bytes are in one mapping. */
u8 *uv_mapping_at(struct uv_process *p, u64 addr, u64 len);

/* Bytes of queues of the process that has opened the file, on all its files; no more than UV_RINGS_MOST are given. */
#define UV_RINGS_MOST (512ull << 20)
u64 uv_server_rings(const struct uv_file *file);
/* Moves are done: sends the responses that were deferred for them. */
void uv_server_moved(struct uv_server *s);

/* dma.c: the context is a struct uv_process. */
extern const struct hca_dma_ops uv_process_dma;
/* A move that dma.c has begun is done. */
void uv_process_moved(struct uv_process *p, struct hca_move *m);

/* process.c: that of @pid in the list @of, with one user more, or a new one with one user; NULL: no memory. */
struct uv_process *uv_process_create(struct uv_server *s, struct list *of, pid_t pid);
void uv_process_get(struct uv_process *p);
void uv_process_put(struct uv_process *p); /* the last one ends it */
void uv_process_init(struct uv_process *p, struct loop *loop, pid_t pid);
/* Nothing of its memory is touched from now on; moves under way fail. */
void uv_process_end(struct uv_process *p);
void uv_process_fini(struct uv_process *p);
/* Takes over @sock for copies; *memfd is the program's end of what passes (the caller closes it). 0 or -errno. */
int uv_process_copy_by(struct uv_process *p, int sock, int *memfd);

#endif
