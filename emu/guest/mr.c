// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver's memory regions and windows. */
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "emu/guest/compat.h"
#include "emu/guest/muslin.h"

struct ib_mr *mu_get_dma_mr(struct ib_pd *pd, int access)
{
	struct mu_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = mu_object(to_mu_dev(pd->device), MUSLIN_MR_DMA, to_mu_pd(pd)->pdn, access, &mr->ib.lkey, NULL);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ib.rkey = mr->ib.lkey;
	return &mr->ib;
}

static void free_lists(struct muslin_mr_reg *in, u32 n)
{
	while (n--)
		kfree(phys_to_virt(in->list[n]));
	kvfree(in);
}

/* Allocates the command with its pages of addresses; ERR_PTR. */
static struct muslin_mr_reg *describe(struct ib_umem *umem, unsigned long pgsz, u32 *lists)
{
	size_t npages = ib_umem_num_dma_blocks(umem, pgsz);
	u32 n = DIV_ROUND_UP(npages, MUSLIN_LIST_ADDRS), i = 0;
	struct ib_block_iter iter;
	struct muslin_mr_reg *in;
	u64 *list = NULL;

	if (n > MUSLIN_LISTS_MAX)
		return ERR_PTR(-ENOMEM);
	in = kvzalloc(struct_size(in, list, n), GFP_KERNEL);
	if (!in)
		return ERR_PTR(-ENOMEM);
	/* clang-format off */
	rdma_umem_for_each_dma_block(umem, &iter, pgsz) {
		if (i % MUSLIN_LIST_ADDRS == 0) {
			list = kmalloc_array(MUSLIN_LIST_ADDRS, sizeof(*list), GFP_KERNEL);
			if (!list) {
				free_lists(in, i / MUSLIN_LIST_ADDRS);
				return ERR_PTR(-ENOMEM);
			}
			in->list[i / MUSLIN_LIST_ADDRS] = virt_to_phys(list);
		}
		list[i++ % MUSLIN_LIST_ADDRS] = rdma_block_iter_dma_address(&iter);
	}
	/* clang-format on */
	in->npages = i;
	in->page_shift = ilog2(pgsz);
	*lists = n;
	return in;
}

static int reg_umem(struct mu_mr *mr, struct ib_pd *pd, u64 len, u64 iova, int access)
{
	unsigned long pgsz = ib_umem_find_best_pgsz(mr->umem, SZ_4K | SZ_64K | SZ_2M | SZ_1G, iova);
	struct muslin_number out = {};
	struct muslin_mr_reg *in;
	u32 lists;
	int err;

	if (!pgsz)
		return -EINVAL;
	in = describe(mr->umem, pgsz, &lists);
	if (IS_ERR(in))
		return PTR_ERR(in);
	in->pdn = to_mu_pd(pd)->pdn;
	in->access = access & ~IB_ZERO_BASED;
	in->iova = iova;
	in->length = len;
	err = mu_command(to_mu_dev(pd->device), MUSLIN_MR_REG, in, struct_size(in, list, lists), &out, sizeof(out));
	free_lists(in, lists);
	mr->ib.lkey = out.number;
	mr->ib.rkey = out.arg;
	return err;
}

static struct ib_mr *reg_user_mr(MU_REG_USER_MR_ARGS)
{
	struct mu_mr *mr;
	int err;

	if (MU_REG_USER_MR_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	if (access & IB_ZERO_BASED) {
		if (start % PAGE_SIZE)
			return ERR_PTR(-EOPNOTSUPP);
		iova = 0;
	}
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = mu_umem_get(pd->device, start, len, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto free_mr;
	}
	err = reg_umem(mr, pd, len, iova, access);
	if (err)
		goto release;
	mr->ib.length = len;
	mr->ib.iova = iova;
	return &mr->ib;

release:
	ib_umem_release(mr->umem);
free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

const struct ib_device_ops mu_mr_ops = { .reg_user_mr = reg_user_mr };

struct ib_mr *mu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg)
{
	struct mu_mr *mr;
	int err = -ENOMEM;

	if (type != IB_MR_TYPE_MEM_REG || max_sg > MUSLIN_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->list = kcalloc(MUSLIN_REG_PAGES, sizeof(*mr->list), GFP_KERNEL);
	if (!mr->list)
		goto free_mr;
	err = mu_object(to_mu_dev(pd->device), MUSLIN_MR_ALLOC, to_mu_pd(pd)->pdn, max_sg, &mr->ib.lkey, NULL);
	if (err)
		goto free_list;
	mr->ib.rkey = mr->ib.lkey;
	mr->max_pages = max_sg;
	return &mr->ib;

free_list:
	kfree(mr->list);
free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct mu_mr *mr = to_mu_mr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->list[mr->npages++] = addr;
	return 0;
}

int mu_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	to_mu_mr(ibmr)->npages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

int mu_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct mu_mr *mr = to_mu_mr(ibmr);
	int err = mu_object(to_mu_dev(ibmr->device), MUSLIN_MR_FREE, ibmr->lkey, 0, NULL, NULL);

	if (err == -EBUSY)
		return err; /* memory windows are bound to it */
	if (mr->umem)
		ib_umem_release(mr->umem);
	kfree(mr->list);
	kfree(mr);
	return 0;
}

int mu_alloc_mw(struct ib_mw *mw, struct ib_udata *udata)
{
	return mu_object(to_mu_dev(mw->device), MUSLIN_MW_ALLOC, to_mu_pd(mw->pd)->pdn, mw->type, &mw->rkey, NULL);
}

int mu_dealloc_mw(struct ib_mw *mw)
{
	return mu_object(to_mu_dev(mw->device), MUSLIN_MW_FREE, mw->rkey, 0, NULL, NULL);
}
