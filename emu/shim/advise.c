// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ibv_advise_mr(3): prefetch of ranges of regions with on-demand paging, which rdma-core has as an ioctl() alone. The
 * daemon checks the keys; the pages are the program's own.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <stddef.h>
#include <string.h>

#include "emu/shim/shim.h"

/* False: the attribute is not among them. */
static bool attr_get(const struct ib_uverbs_ioctl_hdr *h, unsigned int id, struct ib_uverbs_attr *a)
{
	unsigned int i;

	for (i = 0; i < h->num_attrs; i++) {
		*a = h->attrs[i];
		if (a->attr_id == id)
			return true;
	}
	return false;
}

static int advise(struct shim_file *f, struct uv_advise *a)
{
	size_t len = 0;
	unsigned int i;
	int err = shim_call(
		f, &(struct shim_request){ .op = UV_IOCTL,
					   .arg = (unsigned int)RDMA_VERBS_IOCTL,
					   .in = a,
					   .in_len = offsetof(struct uv_advise, sge) + a->n * sizeof(a->sge[0]),
					   .out = a,
					   .out_len = &len });

	for (i = 0; i < a->n && !err && a->advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; i++)
		if (!shim_prefetch(a->sge[i].addr, a->sge[i].length,
				   a->advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE))
			err = a->flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH ? -EFAULT : 0; /* else nobody waits for it */
	return err;
}

int shim_advise(struct shim_file *f, const struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr pd, advice, flags, list;
	const struct ib_uverbs_sge *sge;
	struct uv_advise a;
	size_t n;
	int err = 0;

	if (h->length != sizeof(*h) + h->num_attrs * sizeof(h->attrs[0]) ||
	    !attr_get(h, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, &pd) || !attr_get(h, UVERBS_ATTR_ADVISE_MR_ADVICE, &advice) ||
	    !attr_get(h, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags) || !attr_get(h, UVERBS_ATTR_ADVISE_MR_SGE_LIST, &list) ||
	    !list.len || list.len % sizeof(*sge))
		return -EINVAL;
	sge = (const struct ib_uverbs_sge *)(uintptr_t)list.data;
	a = (struct uv_advise){ .pd = (uint32_t)pd.data,
				.advice = (uint32_t)advice.data,
				.flags = (uint32_t)flags.data };
	for (n = list.len / sizeof(*sge); n && !err; n -= a.n, sge += a.n) {
		a.n = (uint32_t)(n < UV_ADVISE_MAX ? n : UV_ADVISE_MAX);
		memcpy(a.sge, sge, a.n * sizeof(*sge));
		err = advise(f, &a);
	}
	return err;
}
