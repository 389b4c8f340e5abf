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
#define UV_TREE_FILES 1024 /* files and links in a host's sysfs tree */

/* An IP address of an interface of a host. */
struct uv_address {
	struct ip_addr ip;
	u32 len; /* bits of its network's */
	u8 port; /* of the host */
	char netdev[16];
};

/* A neighbour of a port, as ARP or neighbour discovery has found it: its hardware address is @len bytes. */
typedef void uv_neighbour_fn(void *arg, const struct ip_addr *ip, u16 vlan, const u8 *hw, u32 len);

/* A host of the fabric as its programs see it. The owner keeps it until the server is destroyed. */
struct uv_host {
	const char *name;
	const char *device; /* "muslin0", "rxe0" */
	/* The network interface of the Ethernet port's GID with that index; NULL: not an Ethernet port. */
	const char *(*gid_netdev)(const struct uv_host *host, u32 gid);
	struct hca *hca;
	u8 nports;
	struct wire_port *port[UV_PORTS];
	struct mad_port *mad[UV_PORTS];
	struct umad_port *umad[UV_PORTS];
	struct ucma_host *cm;        /* NULL: no rdma_cm */
	struct ipif *ipif[UV_PORTS]; /* used on InfiniBand only */
	/* The nth IP address of its own interfaces; false past the end. NULL: there are none. */
	bool (*address)(const struct uv_host *host, u32 n, struct uv_address *a);
	/* Each neighbour of the port of that index. NULL: there are none. */
	void (*neighbours)(const struct uv_host *host, u8 port, uv_neighbour_fn *fn, void *arg);
	/* Name and value of the nth counter of a port for sysfs; NULL past the end. */
	const char *(*counter)(struct uv_host *host, u8 port, u32 n, u64 *value);
	void *owner;
	bool removed;               /* the device was unplugged: opens fail */
	u64 written[UV_TREE_FILES]; /* for sysfs.c: hashes of the files' contents */
};

/* Whether the device appears as one of rdma_rxe or siw, which have no firmware and no board. */
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

/*
 * Defers the response of a command until memory moves are done (hca_ctx_moved()), or until the next turn of a netlink
 * socket.
 */
struct uv_deferral {
	u64 until; /* serial of the last move; 0: do not wait */
	u32 mr;    /* the region whose registration the moves complete; 0: none */
	u32 again; /* not 0: the command is executed again then, with that number in uv_file.again */
};

/* A kind of device file. */
struct uv_file_ops {
	/* 0 and *fd (for the application; the caller closes its copy), or -errno. @extra:
	 * another one for the shim, or -1. */
	int (*open)(struct uv_file *f, u32 unit, int *fd, int *extra);
	/*
	 * A write to the file; @fd is a passed descriptor or -1, owned by the caller. *out_len: in, the size of @out;
	 * out, the bytes used. *out_fd: a descriptor for the application (the caller closes it), preset to -1. Returns
	 * the result of write().
	 */
	ssize_t (*command)(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			   int *out_fd);
	/* @arg, of @len bytes, is read and written. A netlink socket: @request is the mask of its groups. */
	int (*ioctl)(struct uv_file *f, u32 request, void *arg, size_t len);
	/* Whether the response to the process may be sent. *result is the result of the command; may be set to an
	 * error. NULL: never deferred. */
	bool (*ready)(struct uv_file *f, const struct uv_deferral *h, ssize_t *result);
	/* The program has closed all descriptors of the file with @inode that a command returned. */
	void (*closed)(struct uv_file *f, u64 inode);
	void (*close)(struct uv_file *f);
	/* The device was removed. Descriptors stay open and fail as in the kernel. May be NULL. */
	void (*revoke)(struct uv_file *f);
};

#define UV_MAPPINGS 64

/* A mapping: memory of a program that is also mapped into the daemon. */
struct uv_mapping {
	u64 addr, len;
	u8 *base;
};

struct uv_mover;

/* A process whose memory is read and written: process.c, dma.c. */
struct uv_process {
	struct list link; /* on the list of its file */
	struct loop *loop;
	struct uv_server *server; /* NULL in tests */
	pid_t pid;
	struct loop_fd death; /* a pidfd; -1 if not supported */
	u32 users;            /* connections, and memory regions */
	bool heap;
	bool exited;            /* it has exited: its addresses must not be accessed */
	bool needs_copy;        /* process_vm_readv() is denied: a thread of the process copies */
	int copy;               /* the socket of that thread until the mover takes it over, else -1 */
	u8 *staging;            /* UV_COPY_SIZE bytes shared with that thread */
	struct uv_mover *mover; /* NULL before the first move of unmapped memory */
	u32 moves, writes;      /* pending moves, and the writes among them */
	u64 credit, credit_at;  /* ns for which the loop may wait for it, at the time credit_at */
	struct uv_mapping mapping[UV_MAPPINGS];
	u32 nmappings, last; /* last: the most recently used mapping */
};

struct uv_file {
	struct uv_server *server;
	struct uv_host *host;
	const struct uv_file_ops *ops;
	u64 owner;      /* hca_ctx_serial() of a uverbs file's context, otherwise 0 */
	u64 ring_bytes; /* of its queues, that the daemon has written */
	struct uv_process *opener;
	struct uv_process *process;  /* of the current command */
	struct uv_deferral deferral; /* set by that command */
	u32 again;                   /* uv_deferral.again of that command's last deferral; 0: the command is new */
	u32 flags;                   /* its enum uv_write_flag */
	void *priv;
};

/*
 * Listens at @path. @find returns the host of a name (creating it at the first use), NULL: unknown. @tree is the
 * directory in which each host's sysfs tree is created. NULL with errno set.
 */
struct uv_server *uv_server_create(struct loop *loop, const char *path, const char *tree,
				   struct uv_host *(*find)(void *arg, const char *name), void *arg);
void uv_server_destroy(struct uv_server *s);
/* Removes the host's device and revokes its open files (@removed), or adds it again. 0 or -errno. */
int uv_server_unplug(struct uv_server *s, struct uv_host *host, bool removed);
/* Whether a process that uses @f also uses the uverbs file whose context has that serial number, on the same host. */
bool uv_file_shares_process(const struct uv_file *f, u64 owner);
/* Calls @fn for each open file of that kind on the host. */
void uv_server_each_file(struct uv_server *s, const struct uv_host *host, const struct uv_file_ops *ops,
			 void (*fn)(void *arg, struct uv_file *f), void *arg);
struct loop *uv_server_loop(const struct uv_server *s);
const char *uv_server_tree(const struct uv_server *s);

extern const struct uv_file_ops uverbs_file_ops;
extern const struct uv_file_ops umad_file_ops, issm_file_ops, ucma_file_ops, netlink_file_ops;

/* netlink.c: the events of a device that is there, before it is removed (@removed) or after it was added. */
void netlink_plugged(struct uv_server *s, const struct uv_host *host, bool removed);

/* sysfs.c: updates changed files of the host's tree. 0 or -errno. */
int uv_sysfs_refresh(struct uv_host *host, const char *tree);
/* Exchanges the tree with the device and the one without. */
int uv_sysfs_exchange(const struct uv_host *host, const char *tree);

/* mapping.c */
/* Unmaps the mappings that overlap the addresses. */
void uv_mapping_remove(struct uv_process *p, u64 addr, u64 len);
/* Maps @fd from @offset on as the memory at @addr. 0 or -errno. The caller owns the descriptor. */
int uv_mapping_add(struct uv_process *p, u64 addr, u64 len, int fd, u64 offset);
/* The address in the daemon; NULL unless all bytes are in one mapping. */
u8 *uv_mapping_at(struct uv_process *p, u64 addr, u64 len);

/* ring_bytes of all files of the process that opened the file; UV_RINGS_MOST is the limit. */
#define UV_RINGS_MOST (512ull << 20)
u64 uv_server_rings(const struct uv_file *file);
/* Sends the deferred responses that are ready: after moves, and in the turn of a netlink socket. */
void uv_server_moved(struct uv_server *s);
/* The process has exited: closes those of its connections that no other process has inherited. */
void uv_server_exited(struct uv_server *s, const struct uv_process *p);

/* dma.c: the context is a struct uv_process. */
extern const struct hca_dma_ops uv_process_dma;
/* Handles a move of dma.c that is done. */
void uv_process_moved(struct uv_process *p, struct hca_move *m);

/* process.c: the process of @pid in the list @of, with one more user, or a new one with
 * one user. NULL if out of memory. */
struct uv_process *uv_process_create(struct uv_server *s, struct list *of, pid_t pid);
void uv_process_get(struct uv_process *p);
void uv_process_put(struct uv_process *p); /* frees it with the last user */
void uv_process_init(struct uv_process *p, struct loop *loop, pid_t pid);
/* Accesses its memory no more; pending moves fail. */
void uv_process_end(struct uv_process *p);
void uv_process_fini(struct uv_process *p);
/* Takes over @sock for copies; *memfd is the shared memory for the program (the caller closes it). 0 or -errno. */
int uv_process_copy_by(struct uv_process *p, int sock, int *memfd);

#endif
