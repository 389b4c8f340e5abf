/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A guest's HCA as a ConnectX-4 adapter, for the guest's mlx5 drivers: one PCI function with one InfiniBand port. */
#ifndef MUSLIN_CONNECTX_H
#define MUSLIN_CONNECTX_H

#include "emu/fault/fault.h"
#include "emu/hca/hca.h"
#include "emu/mad/mad.h"

struct connectx;

struct connectx_config {
	const char *name; /* of the host, for messages; must outlive the device */
	struct hca *hca;
	u8 port; /* port of the HCA that is port 1 of the function */
	struct mad_port *mad;
	struct fault_set *faults; /* of the firmware; may be NULL */
	/* The port's agents process @mad; the reply replaces it. 1: reply, 0: no agent. */
	int (*local_mad)(void *arg, u8 port, u8 *mad, bool ignore_mkey);
	/* A guest's driver starts or stops using the port. May be NULL. */
	void (*present)(void *arg, bool here);
	void *arg;
};

/* Listens at @path for a vfio-user client. NULL with errno set. The HCA and the MAD port must outlive it. */
struct connectx *connectx_create(struct loop *loop, const char *path, const struct connectx_config *cfg);
void connectx_destroy(struct connectx *d);
const char *connectx_path(const struct connectx *d);
/* Whether a guest's driver is active. */
bool connectx_in_use(const struct connectx *d);
/* Whether a client is connected, whose guest may still boot. */
bool connectx_connected(const struct connectx *d);

/* Faults of the firmware, a target of the fault engine: actions and keys as in muslin-fault(5). */
extern const struct fault_target connectx_fault_target;

/*
 * Counters of the vfio-user transport, of the device, and of each command: name of the nth (NULL past the end), and
 * value.
 */
const char *connectx_counter_name(u32 n);
u64 connectx_counter(const struct connectx *d, u32 n);

#endif
