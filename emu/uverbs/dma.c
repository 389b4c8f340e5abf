// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory of another process: where it is mapped here (window.c) as any other, else by process_vm_readv and process_vm_writev, or, where those are refused, by a thread of that
 * process which copies between its memory and a shared memfd when it is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emu/uverbs/server.h"

#define IOVS           1024 /* IOV_MAX */
#define COPY_TIMEOUT_S 1    /* a thread that is stopped must not stop us */

static int move_direct(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, bool write)
{
	static struct iovec local[IOVS], remote[IOVS];

	while (n) {
		u32 nl, nr, i, took = hca_dma_iov(seg, n, local, &nl, remote, &nr);
		ssize_t want = 0, got;

		for (i = 0; i < nl; i++)
			want += (ssize_t)local[i].iov_len;
		got = write ? process_vm_writev(p->pid, local, nl, remote, nr, 0)
			    : process_vm_readv(p->pid, local, nl, remote, nr, 0);
		if (got != want)
			return -EFAULT;
		seg += took;
		n -= took;
	}
	return 0;
}

/* Has the thread move the segments of @c, which stand in the staging memory. */
static int copy_run(struct uv_process *p, const struct uv_copy *c)
{
	size_t len = offsetof(struct uv_copy, seg) + c->n * sizeof(c->seg[0]);
	int32_t result;

	if (send(p->copy, c, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(p->copy, &result, sizeof(result), 0) != (ssize_t)sizeof(result)) {
		p->gone = true;
		return -EFAULT;
	}
	return result ? -EFAULT : 0;
}

static void stage(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, u32 skip, u32 total, bool in)
{
	u32 off = 0, len;

	for (; off < total && n; seg++, n--, skip = 0) {
		len = min(seg->len - skip, total - off);
		if (in)
			memcpy(p->staging + off, (u8 *)seg->local + skip, len);
		else
			memcpy((u8 *)seg->local + skip, p->staging + off, len);
		off += len;
	}
}

static int move_by_copy(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, bool write)
{
	static struct uv_copy c;
	u32 skip = 0; /* bytes of the first segment that are done */
	int err;

	while (n) {
		const struct hca_dma_seg *first = seg;
		u32 left = n, first_skip = skip, total = 0;

		for (c.n = 0; n && c.n < UV_COPY_SEGS && total < UV_COPY_SIZE;) {
			u32 len = min(seg->len - skip, UV_COPY_SIZE - total);

			c.seg[c.n++] = (struct uv_copy_seg){ seg->addr + skip, len };
			total += len;
			skip += len;
			if (skip == seg->len) {
				seg++;
				n--;
				skip = 0;
			}
		}
		c.write = write;
		if (write)
			stage(p, first, left, first_skip, total, true);
		err = copy_run(p, &c);
		if (err)
			return err;
		if (!write)
			stage(p, first, left, first_skip, total, false);
	}
	return 0;
}

/* Moves those segments at the beginning that are mapped here; returns how many. */
static u32 move_mapped(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, bool write)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u8 *at = uv_window_at(p, seg[i].addr, seg[i].len);

		if (!at)
			break;
		if (write)
			memcpy(at, seg[i].local, seg[i].len);
		else
			memcpy(seg[i].local, at, seg[i].len);
	}
	return i;
}

static u32 count_unmapped(struct uv_process *p, const struct hca_dma_seg *seg, u32 n)
{
	u32 i;

	for (i = 0; i < n && (!p->nwindows || !uv_window_at(p, seg[i].addr, seg[i].len));)
		i++;
	return i;
}

static int move(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, bool write)
{
	u32 some;
	int err = 0;

	if (p->gone)
		return -EFAULT;
	for (; n && !err; seg += some, n -= some) {
		some = move_mapped(p, seg, n, write);
		if (some)
			continue;
		some = count_unmapped(p, seg, n);
		err = p->copy >= 0 ? move_by_copy(p, seg, some, write) : move_direct(p, seg, some, write);
	}
	return err;
}

static void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	struct uv_process *p = dma;

	return p->gone ? NULL : uv_window_at(p, addr, len);
}

static int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move(dma, seg, n, false);
}

static int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move(dma, seg, n, true);
}

/* The first and the last byte can be read: what registration finds out cheaply. */
static int dma_check(void *dma, u64 addr, u64 len, bool write)
{
	u8 byte;
	struct hca_dma_seg first = { addr, 1, &byte }, last = { addr + len - 1, 1, &byte };

	if (!len)
		return 0;
	return dma_read(dma, &first, 1) || dma_read(dma, &last, 1) ? -EFAULT : 0;
}

const struct hca_dma_ops uv_process_dma = {
	.read = dma_read, .write = dma_write, .check = dma_check, .direct = dma_direct
};

bool uv_process_probe(const struct uv_process *p, u64 addr, u64 word)
{
	u64 got;
	struct iovec local = { &got, sizeof(got) }, remote = { (void *)(uintptr_t)addr, sizeof(got) };

	return p->pid > 0 && process_vm_readv(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(got) && got == word;
}

int uv_process_copy_by(struct uv_process *p, int sock, int *memfd)
{
	const struct timeval timeout = { .tv_sec = COPY_TIMEOUT_S };
	int fd = memfd_create("copies", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *m;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, UV_COPY_SIZE) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)))
		goto failed;
	m = mmap(NULL, UV_COPY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		goto failed;
	p->staging = m;
	p->copy = sock;
	*memfd = fd;
	return 0;

failed:
	close(fd);
	return -EIO;
}

void uv_process_close(struct uv_process *p)
{
	p->gone = true;
	uv_window_drop(p, 0, ~0ull);
	if (p->copy >= 0)
		close(p->copy);
	if (p->staging)
		munmap(p->staging, UV_COPY_SIZE);
	p->copy = -1;
	p->staging = NULL;
}
