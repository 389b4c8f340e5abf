/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rdma_cm device file: the kernel's rdma_user_cm.h, version 4.
 *
 * The application's descriptor is one end of a socket pair that is readable while events are queued. GET_EVENT returns
 * -EAGAIN if there is none; the shim waits if the file is in blocking mode. The value of SET_OPTION, which the kernel
 * would read from the application's memory, follows the command.
 */
#ifndef MUSLIN_HOST_UCMA_H
#define MUSLIN_HOST_UCMA_H

#include "emu/rdmacm/rdmacm.h"

struct ucma_host;

/* State shared by the rdma_cm files of a host, for uv_host.cm. @rdma must outlive it. NULL if out of memory. */
struct ucma_host *ucma_host_create(struct rdma_host *rdma);
void ucma_host_destroy(struct ucma_host *h);  /* files must be closed; NULL is allowed */
u32 ucma_host_ids(const struct ucma_host *h); /* how many exist */
/*
 * Calls @fn with each id from number @first on, its number and the process that opened its file, until it returns
 * false.
 */
typedef bool ucma_id_fn(void *arg, const struct rdma_id *id, u32 num, pid_t pid);
void ucma_host_each(const struct ucma_host *h, u32 first, ucma_id_fn *fn, void *arg);

#endif
