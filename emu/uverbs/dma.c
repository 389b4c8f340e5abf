// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of another process by process_vm_readv and process_vm_writev. */
#include <errno.h>
#include <sys/uio.h>

#include "emu/uverbs/server.h"

#define IOVS 512 /* below IOV_MAX */

/* Adjacent segments of the application become one: that side pays per page. */
static int move(const struct uv_process *proc, const struct hca_dma_seg *seg, u32 n, bool write)
{
	struct iovec local[IOVS], remote[IOVS];

	while (n) {
		u32 nl = 0, nr = 0;
		ssize_t want = 0, got;

		for (; n && nl < IOVS; n--, seg++) {
			local[nl++] = (struct iovec){ seg->local, seg->len };
			want += seg->len;
			if (nr && (u64)(uintptr_t)remote[nr - 1].iov_base + remote[nr - 1].iov_len == seg->addr)
				remote[nr - 1].iov_len += seg->len;
			else
				remote[nr++] = (struct iovec){ (void *)(uintptr_t)seg->addr, seg->len };
		}
		got = write ? process_vm_writev(proc->pid, local, nl, remote, nr, 0)
			    : process_vm_readv(proc->pid, local, nl, remote, nr, 0);
		if (got != want)
			return -EFAULT;
	}
	return 0;
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

const struct hca_dma_ops uv_process_dma = { .read = dma_read, .write = dma_write, .check = dma_check };
