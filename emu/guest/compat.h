/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Differences between the supported kernels, 6.1 to 7.2. The only file with checks of the version. */
#ifndef MUSLIN_GUEST_COMPAT_H
#define MUSLIN_GUEST_COMPAT_H

#include <linux/version.h>
#include <linux/virtio_config.h>
#include <rdma/ib_verbs.h>

static inline int mu_find_vqs(struct virtio_device *vdev, unsigned int n, struct virtqueue *vqs[],
			      vq_callback_t *callbacks[], const char *const names[])
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct virtqueue_info info[16] = {};
	unsigned int i;

	if (n > ARRAY_SIZE(info))
		return -EINVAL;
	for (i = 0; i < n; i++) {
		info[i].name = names[i];
		info[i].callback = callbacks[i];
	}
	return virtio_find_vqs(vdev, n, vqs, info, NULL);
#else
	return virtio_find_vqs(vdev, n, vqs, callbacks, names, NULL);
#endif
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define MU_CREATE_CQ_ARGS  struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs
#define MU_CREATE_CQ_UDATA (attrs ? &attrs->driver_udata : NULL)
#else
#define MU_CREATE_CQ_ARGS  struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata
#define MU_CREATE_CQ_UDATA udata
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define MU_RESIZE_CQ_OP   resize_user_cq
#define MU_RESIZE_CQ_ARGS struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata
#else
#define MU_RESIZE_CQ_OP   resize_cq
#define MU_RESIZE_CQ_ARGS struct ib_cq *ibcq, int cqe, struct ib_udata *udata
#endif

/* The handle is for TLP processing hints, which only drivers of PCI devices use. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define MU_REG_USER_MR_ARGS \
	struct ib_pd *pd, u64 start, u64 len, u64 iova, int access, struct ib_dmah *dmah, struct ib_udata *udata
#define MU_REG_USER_MR_DMAH dmah
#else
#define MU_REG_USER_MR_ARGS struct ib_pd *pd, u64 start, u64 len, u64 iova, int access, struct ib_udata *udata
#define MU_REG_USER_MR_DMAH false
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define mu_umem_get ib_umem_get_va
#else
#define mu_umem_get ib_umem_get
#endif

#endif
