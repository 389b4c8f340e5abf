/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fault target: InfiniBand links and nodes, with the actions and keys of muslin-fault(5). */
#ifndef MUSLIN_FABRIC_FAULT_H
#define MUSLIN_FABRIC_FAULT_H

#include "emu/fault/fault.h"
#include "fabric/fabric.h"

extern const struct fault_target fabric_fault_target;
struct fault_set *fabric_faults(struct fabric *f);

#endif
