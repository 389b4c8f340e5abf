/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's side of host mode: device files that programs have opened through the shim. */
#ifndef MUSLIN_UVERBS_SERVER_H
#define MUSLIN_UVERBS_SERVER_H

#include <sys/types.h>

#include "emu/hca/hca.h"
#include "emu/mad/mad.h"
#include "emu/uverbs/proto.h"

#define UV_PORTS      2
#define UV_TREE_FILES 512 /* of a host's sysfs tree */

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
	struct ucma_host *cm; /* NULL: no rdma_cm */
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

struct umad_port;
struct ucma_host;
struct uv_server;
struct uv_file;

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
	/* The program has no descriptor left of what it got by a command: @inode names it. */
	void (*closed)(struct uv_file *f, u64 inode);
	void (*close)(struct uv_file *f);
	/* The device is gone. Descriptors stay, and give what the kernel gives on such. May be NULL. */
	void (*revoke)(struct uv_file *f);
};

#define UV_WINDOWS 64

/* A part of a program's memory that is mapped here, too. */
struct uv_window {
	u64 addr, len;
	u8 *base;
};

/* A program whose memory we read and write. */
struct uv_process {
	pid_t pid;
	bool gone;   /* it has ended, or does not answer: what is at its addresses is no longer its memory */
	int copy;    /* the socket of its thread that copies for us, or -1: process_vm_readv() works */
	u8 *staging; /* what passes through that thread: UV_COPY_SIZE bytes */
	struct uv_window window[UV_WINDOWS];
	u32 nwindows, last; /* last: where the latest move was */
};

struct uv_file {
	struct uv_server *server;
	struct uv_host *host;
	const struct uv_file_ops *ops;
	struct uv_process process; /* that opened it */
	void *priv;
};

/*
 * Listens at @path. @find gives the host of a name (made when it is first used), NULL: unknown. @tree is the folder under which
 * each host's sysfs tree is made. NULL with errno.
 */
struct uv_server *uv_server_create(struct loop *loop, const char *path, const char *tree,
				   struct uv_host *(*find)(void *arg, const char *name), void *arg);
void uv_server_destroy(struct uv_server *s);
/* The host's device goes (@gone), with all files that are open on it, or another one comes in its place. 0 or -errno. */
int uv_server_unplug(struct uv_server *s, struct uv_host *host, bool gone);
void uv_server_register(struct uv_server *s, enum uv_kind kind, const struct uv_file_ops *ops);
struct loop *uv_server_loop(const struct uv_server *s);
const char *uv_server_tree(const struct uv_server *s);

extern const struct uv_file_ops uverbs_file_ops;
extern const struct uv_file_ops umad_file_ops, issm_file_ops, ucma_file_ops;

/* sysfs.c: writes what has changed of the host's tree. 0 or -errno. */
int uv_sysfs_refresh(struct uv_host *host, const char *tree);
/* The tree with the device and the one without change places. */
int uv_sysfs_exchange(const char *name, const char *tree);

/* window.c */
/* What is at these addresses is mapped here no more. */
void uv_window_drop(struct uv_process *p, u64 addr, u64 len);
/* Maps what @fd has from @offset on as the memory there. 0 or -errno; the descriptor stays the caller's. */
int uv_window_add(struct uv_process *p, u64 addr, u64 len, int fd, u64 offset);
/* The bytes, as far as all of them are mapped; or NULL. */
u8 *uv_window_at(struct uv_process *p, u64 addr, u64 len);

/* dma.c: the context is a struct uv_process. */
extern const struct hca_dma_ops uv_process_dma;
/* Whether @word stands at @addr of the process, as far as we may look. */
bool uv_process_probe(const struct uv_process *p, u64 addr, u64 word);
/* Takes over @sock for copies; *memfd is the program's end of what passes (the caller closes it). 0 or -errno. */
int uv_process_copy_by(struct uv_process *p, int sock, int *memfd);
void uv_process_close(struct uv_process *p);

#endif
