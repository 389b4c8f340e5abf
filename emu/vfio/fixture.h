/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests and hostile programs: a client with one megabyte of memory, and a device with a BAR of 64 KiB that stores
 * writes and does DMA. The server runs on the client's loop; a client of another process's server has none, and waits
 * for replies.
 */
#ifndef MUSLIN_VFIO_FIXTURE_H
#define MUSLIN_VFIO_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "emu/vfio/vfio_internal.h"

#define CLIENT_MEM  (1u << 20)
#define CLIENT_IOVA 0x100000000ull
#define DEV_BAR     65536u
#define DEV_TABLE   0x2000
#define DEV_PBA     0x3000
#define DEV_VECTORS 8
#define DEV_DMA     0x100 /* a write of an address here reads 8 bytes there, and writes them reversed after them */
#define DEV_RAISE   0x108 /* a write of a vector here raises it */

struct device {
	struct vfio_server *s;
	u8 reg[DEV_BAR];
	u32 resets, unmaps;
	int dma; /* result of the last DMA */
	u64 unmapped, unmapped_last;
	bool reset_dma; /* the last reset found memory at CLIENT_IOVA */
};

static inline void dev_read(void *ctx, u32 bar, u64 off, void *buf, u32 len)
{
	memcpy(buf, ((struct device *)ctx)->reg + off, len);
}

static inline void dev_move(struct device *d, u64 addr)
{
	u8 in[8], out[8];
	u32 i;

	d->dma = vfio_dma_read(d->s, addr, in, sizeof(in));
	for (i = 0; i < sizeof(in); i++)
		out[i] = in[7 - i];
	if (!d->dma)
		d->dma = vfio_dma_write(d->s, addr + 8, out, sizeof(out));
}

static inline void dev_write(void *ctx, u32 bar, u64 off, const void *buf, u32 len)
{
	struct device *d = ctx;
	u64 v = 0;

	memcpy(d->reg + off, buf, len);
	memcpy(&v, buf, min(len, (u32)sizeof(v)));
	if (off == DEV_DMA)
		dev_move(d, v);
	else if (off == DEV_RAISE)
		vfio_irq(d->s, (u32)v);
}

static inline void dev_reset(void *ctx)
{
	struct device *d = ctx;

	memset(d->reg, 0, sizeof(d->reg));
	d->resets++;
	d->reset_dma = vfio_dma(d->s, CLIENT_IOVA, 1, false);
}

static inline void dev_unmap(void *ctx, u64 iova, u64 last)
{
	struct device *d = ctx;

	d->unmaps++;
	d->unmapped = iova;
	d->unmapped_last = last;
}

static const struct vfio_ops dev_ops = {
	.read = dev_read, .write = dev_write, .reset = dev_reset, .dma_unmap = dev_unmap
};

static inline struct vfio_server *dev_create(struct device *d, struct loop *loop, const char *path)
{
	struct vfio_config cfg = {
		.name = "t",
		.vendor = 0x15b3,
		.device = 0x1013,
		.subvendor = 0x15b3,
		.subdevice = 8,
		.class_code = 0x020700,
		.revision = 3,
		.bar[0] = { .size = DEV_BAR, .mem64 = true, .prefetchable = true },
		.vectors = DEV_VECTORS,
		.msix_table = DEV_TABLE,
		.msix_pba = DEV_PBA,
		.vendor_cap = 0x18,
	};

	memset(d, 0, sizeof(*d));
	d->s = vfio_server_create(loop, path, &cfg, &dev_ops, d);
	return d->s;
}

struct client {
	struct loop *loop;
	int fd, memfd, event[DEV_VECTORS];
	u8 *mem;
	/* the last reply */
	struct vfio_hdr hdr;
	union vfio_payload in;
};

static inline void client_path(char *path, size_t size)
{
	snprintf(path, size, "/tmp/vfio-test-%d.sock", getpid());
}

#define CLIENT_WAIT 5 /* seconds for a reply of another process */
static inline void client_turn(struct client *c)
{
	if (c->loop)
		loop_run_idle(c->loop, 0);
}

static inline int client_open(struct client *c, struct loop *loop, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_sec = CLIENT_WAIT };

	memset(c, 0, sizeof(*c));
	c->loop = loop;
	memset(c->event, -1, sizeof(c->event));
	c->memfd = memfd_create("guest", MFD_CLOEXEC);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (c->memfd < 0 || ftruncate(c->memfd, CLIENT_MEM) || connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	c->mem = mmap(NULL, CLIENT_MEM, PROT_READ | PROT_WRITE, MAP_SHARED, c->memfd, 0);
	client_turn(c);
	return c->mem == MAP_FAILED ? -ENOMEM : 0;
}

static inline void client_close(struct client *c)
{
	u32 i;

	for (i = 0; i < DEV_VECTORS; i++)
		if (c->event[i] >= 0)
			close(c->event[i]);
	close(c->fd);
	close(c->memfd);
	munmap(c->mem, CLIENT_MEM);
	client_turn(c);
}

/* The server does not see it before its loop runs. */
static inline bool client_put(struct client *c, u16 command, u32 flags, const void *data, u32 size, const int *fds,
			      u32 nfds)
{
	struct vfio_hdr hdr = { 77, command, (u32)sizeof(hdr) + size, flags, 0 };
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { (void *)(uintptr_t)data, size } };
	RIGHTS_CONTROL(control, VFIO_FDS_MAX) = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	rights_put(&msg, control, fds, nfds);
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static inline void client_send(struct client *c, u16 command, u32 flags, const void *data, u32 size, const int *fds,
			       u32 nfds)
{
	if (client_put(c, command, flags, data, size, fds, nfds))
		client_turn(c);
}

/* Receives the reply in c->hdr and c->in. Returns the length of its payload, or its error; -EPIPE: there is none. */
static inline int client_reply(struct client *c)
{
	struct iovec iov[2] = { { &c->hdr, sizeof(c->hdr) }, { &c->in, sizeof(c->in) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n = recvmsg(c->fd, &msg, c->loop ? MSG_DONTWAIT : 0);

	if (n < (ssize_t)sizeof(c->hdr) || c->hdr.size != n || !(c->hdr.flags & VFIO_FLAG_REPLY) || c->hdr.id != 77)
		return -EPIPE;
	return c->hdr.flags & VFIO_FLAG_ERROR ? -(int)c->hdr.error : (int)(n - (ssize_t)sizeof(c->hdr));
}

static inline int client_call(struct client *c, u16 command, const void *data, u32 size)
{
	client_send(c, command, 0, data, size, NULL, 0);
	return client_reply(c);
}

#define CLIENT_HELLO "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":16}}"
static inline int client_hello(struct client *c)
{
	return client_call(c, VFIO_CMD_VERSION, CLIENT_HELLO, sizeof(CLIENT_HELLO));
}

static inline int client_map(struct client *c, u64 iova, u64 size, u64 offset, u32 flags, int fd)
{
	struct {
		u32 argsz, flags;
		u64 offset, iova, size;
	} m = { sizeof(m), flags, offset, iova, size };

	client_send(c, VFIO_CMD_DMA_MAP, 0, &m, sizeof(m), &fd, fd >= 0);
	return client_reply(c);
}

static inline int client_unmap(struct client *c, u64 iova, u64 size, u32 flags)
{
	struct {
		u32 argsz, flags;
		u64 iova, size;
	} m = { sizeof(m), flags, iova, size };

	return client_call(c, VFIO_CMD_DMA_UNMAP, &m, sizeof(m));
}

static inline int client_write(struct client *c, u32 region, u64 off, u64 v, u32 len)
{
	struct {
		u64 off;
		u32 region, count;
		u64 v;
	} m = { off, region, len, v };

	return client_call(c, VFIO_CMD_REGION_WRITE, &m, 16 + min(len, 8u));
}

/* Returns the value; ~0: error. */
static inline u64 client_read(struct client *c, u32 region, u64 off, u32 len)
{
	struct {
		u64 off;
		u32 region, count;
	} m = { off, region, len };
	u64 v = 0;

	if (client_call(c, VFIO_CMD_REGION_READ, &m, sizeof(m)) != (int)(16 + len))
		return ~0ull;
	memcpy(&v, c->in.access.data, min(len, (u32)sizeof(v)));
	return v;
}

static inline int client_set_irqs(struct client *c, u32 flags, u32 index, u32 start, u32 count, const int *fds,
				  u32 nfds)
{
	u32 m[5] = { sizeof(m), flags, index, start, count };

	client_send(c, VFIO_CMD_DEVICE_SET_IRQS, 0, m, sizeof(m), fds, nfds);
	return client_reply(c);
}

/* Sets eventfds for all vectors. */
static inline int client_events(struct client *c)
{
	u32 i;

	for (i = 0; i < DEV_VECTORS; i++)
		if (c->event[i] < 0)
			c->event[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return client_set_irqs(c, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_PCI_MSIX_IRQ_INDEX, 0,
			       DEV_VECTORS, c->event, DEV_VECTORS);
}

static inline u64 client_raised(struct client *c, u32 vector)
{
	u64 n = 0;

	return read(c->event[vector], &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Does what a driver does at its start: memory, vectors, Bus Master Enable. */
static inline bool client_start(struct client *c)
{
	return client_hello(c) > 0 &&
	       !client_map(c, CLIENT_IOVA, CLIENT_MEM, 0, VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, c->memfd) &&
	       !client_events(c) && client_write(c, VFIO_PCI_CONFIG_REGION_INDEX, 4, 6, 2) == 16;
}

#endif
