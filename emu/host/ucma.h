/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rdma_cm device file: the kernel's rdma_user_cm.h, version 4.
 *
 * The application's descriptor is one end of a socket pair that is readable while events wait. GET_EVENT answers -EAGAIN
 * when there is none, and the shim waits where the file is a blocking one. The value of SET_OPTION, which the kernel would
 * read from the application's memory, follows the command.
 */
#ifndef MUSLIN_HOST_UCMA_H
#define MUSLIN_HOST_UCMA_H

#include "emu/rdmacm/rdmacm.h"

struct ucma_host;

/* What the rdma_cm files of a host share; goes into uv_host.cm. @rdma must outlive it. NULL without memory. */
struct ucma_host *ucma_host_create(struct rdma_host *rdma);
void ucma_host_destroy(struct ucma_host *h);  /* files must be closed; NULL is harmless */
u32 ucma_host_ids(const struct ucma_host *h); /* how many exist */
/* Calls @fn with each id, its number and the process that has opened its file, until it returns false. */
typedef bool ucma_id_fn(void *arg, const struct rdma_id *id, u32 num, pid_t pid);
void ucma_host_each(const struct ucma_host *h, ucma_id_fn *fn, void *arg);

#endif
