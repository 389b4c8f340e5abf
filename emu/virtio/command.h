/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Handlers of the guest driver's commands. */
#ifndef MUSLIN_VIRTIO_COMMAND_H
#define MUSLIN_VIRTIO_COMMAND_H

#include "emu/virtio/virtio_internal.h"

/* @in: the command's structure, @len bytes; @out: the response's, zeroed; the caller sets its status. 0 or -errno. */
typedef int vd_command(struct vdev *d, const void *in, u32 len, void *out);

/* object.c */
vd_command vd_cq_create, vd_cq_resize, vd_cq_destroy;
vd_command vd_qp_create, vd_qp_modify, vd_qp_query, vd_qp_destroy;
vd_command vd_srq_create, vd_srq_resize, vd_srq_set_limit, vd_srq_query, vd_srq_destroy;

#endif
