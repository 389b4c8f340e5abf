/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A guest's HCA as a ConnectX-4 adapter, which the guest's own mlx5 drivers know: one function with one InfiniBand port. */
#ifndef MUSLIN_CONNECTX_H
#define MUSLIN_CONNECTX_H

#include "emu/fault/fault.h"
#include "emu/hca/hca.h"
#include "emu/mad/mad.h"

struct connectx;

struct connectx_config {
	const char *name; /* of the host, for messages; must outlive the device */
	struct hca *hca;
	u8 port; /* of the HCA: port 1 of the function */
	struct mad_port *mad;
	struct fault_set *faults; /* of the firmware; may be NULL */
	/* Processes @mad by the port's agents, reply in place: 1: reply, 0: no agent. */
	int (*local_mad)(void *arg, u8 port, u8 *mad);
	/* A guest's driver begins or ends to use the port. May be NULL. */
	void (*present)(void *arg, bool here);
	void *arg;
};

/* Listens at @path for a vfio-user client. NULL with errno. The HCA and the MAD port must outlive it. */
struct connectx *connectx_create(struct loop *loop, const char *path, const struct connectx_config *cfg);
void connectx_destroy(struct connectx *d);
const char *connectx_path(const struct connectx *d);
/* A guest's driver is at work. */
bool connectx_in_use(const struct connectx *d);

/* Faults of the firmware, a target of the fault engine: actions and keys as in muslin-fault(5). */
extern const struct fault_target connectx_fault_target;

/* Counters of the transport, of the device, and of each command that has come: the name of the nth (NULL past the end), and its value. */
const char *connectx_counter_name(u32 n);
u64 connectx_counter(const struct connectx *d, u32 n);

#endif
