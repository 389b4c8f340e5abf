/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What differs between the kernels that the module builds for: 6.1 and 6.12. Nothing else looks at versions. */
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

#endif
