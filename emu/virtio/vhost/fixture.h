/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests: a front end with one memory region at guest address 0, and drivers of its queues. The back end runs on
 * the front's loop; without a loop it is another process, and the front end waits for responses.
 */
#ifndef MUSLIN_VHOST_FIXTURE_H
#define MUSLIN_VHOST_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "emu/virtio/vhost/vhost_internal.h"

#define FRONT_MEM   (1u << 20)
#define FRONT_NUM   16
#define FRONT_QSIZE 4096 /* of a queue's rings: descriptors, avail at 1024, used at 2048 */
#define FRONT_DATA  65536

struct front {
	struct loop *loop;
	int fd, memfd, kick[VHOST_QUEUES_MAX], call[VHOST_QUEUES_MAX];
	u8 *mem;
	u16 avail[VHOST_QUEUES_MAX], desc[VHOST_QUEUES_MAX];
};

static inline void front_path(char *path, size_t size)
{
	snprintf(path, size, "/tmp/vhost-test-%d.sock", getpid());
}

/* Runs the back end's due work. */
static inline void front_turn(struct front *f)
{
	if (f->loop)
		loop_run_idle(f->loop, 0);
}

static inline int front_open(struct front *f, struct loop *loop, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval timeout = { .tv_sec = 5 };

	memset(f, 0, sizeof(*f));
	f->loop = loop;
	memset(f->kick, -1, sizeof(f->kick));
	memset(f->call, -1, sizeof(f->call));
	f->memfd = memfd_create("guest", MFD_CLOEXEC);
	f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (f->memfd < 0 || ftruncate(f->memfd, FRONT_MEM) || connect(f->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(f->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	f->mem = mmap(NULL, FRONT_MEM, PROT_READ | PROT_WRITE, MAP_SHARED, f->memfd, 0);
	front_turn(f);
	return f->mem == MAP_FAILED ? -ENOMEM : 0;
}

static inline void front_close(struct front *f)
{
	u32 i;

	for (i = 0; i < VHOST_QUEUES_MAX; i++) {
		if (f->kick[i] >= 0)
			close(f->kick[i]);
		if (f->call[i] >= 0)
			close(f->call[i]);
	}
	close(f->fd);
	close(f->memfd);
	munmap(f->mem, FRONT_MEM);
	front_turn(f);
}

static inline void front_send(struct front *f, u32 request, u32 flags, const void *payload, u32 size, int fd)
{
	struct vhost_hdr hdr = { request, VHOST_MSG_VERSION | flags, size };
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { (void *)(uintptr_t)payload, size } };
	RIGHTS_CONTROL(control, 1) = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	rights_put(&msg, control, &fd, fd >= 0);
	if (sendmsg(f->fd, &msg, MSG_NOSIGNAL | (f->loop ? MSG_DONTWAIT : 0)) >= 0)
		front_turn(f);
}

/* The reply's payload in @v; returns its length, or -1 if there is no reply. */
static inline int front_reply(struct front *f, void *v, u32 size)
{
	struct vhost_hdr hdr;
	u8 rest[512];
	int flags = f->loop ? MSG_DONTWAIT : 0;
	ssize_t n;

	if (recv(f->fd, &hdr, sizeof(hdr), flags) != sizeof(hdr))
		return -1;
	n = hdr.size ? recv(f->fd, rest, min((size_t)hdr.size, sizeof(rest)), flags) : 0;
	if (n > 0)
		memcpy(v, rest, min((size_t)n, (size_t)size));
	return (int)n;
}

static inline u64 front_get(struct front *f, u32 request)
{
	u64 v = ~0ull;

	front_send(f, request, 0, NULL, 0, -1);
	front_reply(f, &v, sizeof(v));
	return v;
}

#define FRONT_USER 0x7f0000000000 /* address of the memory in the front end */

static inline void front_memory_at(struct front *f, u64 size, u64 user)
{
	struct {
		u32 n, padding;
		struct vhost_mem_region r;
	} m = { .n = 1, .r = { .gpa = 0, .size = size, .user = user } };

	front_send(f, VHOST_SET_MEM_TABLE, 0, &m, sizeof(m), f->memfd);
}

static inline void front_memory(struct front *f, u64 size)
{
	front_memory_at(f, size, FRONT_USER);
}

/* The same with an empty memory table. */
static inline void front_no_memory(struct front *f)
{
	u32 none[2] = { 0, 0 };

	front_send(f, VHOST_SET_MEM_TABLE, 0, none, sizeof(none), -1);
}

static inline void front_addr(struct front *f, u32 q, u64 desc, u64 avail, u64 used)
{
	struct {
		u32 index, flags;
		u64 desc, used, avail, log;
	} addr = { q, 0, desc, used, avail, 0 };

	front_send(f, VHOST_SET_VRING_ADDR, 0, &addr, sizeof(addr), -1);
}

static inline u8 *front_ring(struct front *f, u32 q)
{
	return f->mem + (size_t)q * FRONT_QSIZE;
}

static inline void front_queue_at(struct front *f, u32 q, u64 at)
{
	u32 state[2] = { q, FRONT_NUM }, base[2] = { q, 0 };
	u64 index = q;

	if (f->kick[q] >= 0) {
		close(f->kick[q]);
		close(f->call[q]);
	}
	f->kick[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->call[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memset(front_ring(f, q), 0, FRONT_QSIZE);
	f->avail[q] = f->desc[q] = 0;
	front_send(f, VHOST_SET_VRING_NUM, 0, state, sizeof(state), -1);
	front_send(f, VHOST_SET_VRING_BASE, 0, base, sizeof(base), -1);
	front_addr(f, q, at, at + 1024, at + 2048);
	front_send(f, VHOST_SET_VRING_CALL, 0, &index, sizeof(index), f->call[q]);
	front_send(f, VHOST_SET_VRING_KICK, 0, &index, sizeof(index), f->kick[q]);
}

static inline void front_queue(struct front *f, u32 q)
{
	front_queue_at(f, q, FRONT_USER + (u64)q * FRONT_QSIZE);
}

/* Sets features, memory and @queues queues. */
static inline void front_start(struct front *f, u32 queues)
{
	u64 features = front_get(f, VHOST_GET_FEATURES), protocol = front_get(f, VHOST_GET_PROTOCOL_FEATURES);
	u32 q;

	front_send(f, VHOST_SET_FEATURES, 0, &features, sizeof(features), -1);
	front_send(f, VHOST_SET_PROTOCOL_FEATURES, 0, &protocol, sizeof(protocol), -1);
	front_memory(f, FRONT_MEM);
	for (q = 0; q < queues; q++)
		front_queue(f, q);
}

static inline struct vring_desc_le *front_desc(struct front *f, u32 q, u32 i)
{
	return (struct vring_desc_le *)(void *)front_ring(f, q) + i;
}

static inline void front_fill(struct vring_desc_le *d, u64 addr, u32 len, u16 flags, u16 next)
{
	*d = (struct vring_desc_le){ cpu_to_le64(addr), cpu_to_le32(len), cpu_to_le16(flags), cpu_to_le16(next) };
}

static inline void front_kick(struct front *f, u32 q)
{
	u64 one = 1;

	if (write(f->kick[q], &one, sizeof(one)) == sizeof(one))
		front_turn(f);
}

/* Offers the chain that begins at descriptor @head, and kicks. */
static inline void front_offer(struct front *f, u32 q, u16 head)
{
	struct vring_avail_le *a = (struct vring_avail_le *)(void *)(front_ring(f, q) + 1024);

	a->ring[f->avail[q]++ % FRONT_NUM] = cpu_to_le16(head);
	a->idx = cpu_to_le16(f->avail[q]);
	front_kick(f, q);
}

/* Posts @out_len bytes at @out to be read, then @in_len bytes of room at @in, and kicks. */
static inline void front_post(struct front *f, u32 q, u64 out, u32 out_len, u64 in, u32 in_len)
{
	front_fill(front_desc(f, q, 0), out, out_len, in_len ? 1 : 0, 1);
	front_fill(front_desc(f, q, 1), in, in_len, 2, 0);
	front_offer(f, q, 0);
}

static inline u16 front_used(struct front *f, u32 q)
{
	return le16_to_cpu(((struct vring_used_le *)(void *)(front_ring(f, q) + 2048))->idx);
}

static inline bool front_called(struct front *f, u32 q)
{
	u64 n;

	return read(f->call[q], &n, sizeof(n)) == sizeof(n);
}

#endif
