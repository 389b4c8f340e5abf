/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HCA faults, a target of the fault engine: actions and keys as in muslin-fault(5). */
#ifndef MUSLIN_HCA_FAULT_H
#define MUSLIN_HCA_FAULT_H

#include "emu/fault/fault.h"
#include "emu/hca/hca.h"

/* The fault whose owner does the rest: closes the device's open files and takes its links down. */
#define HCA_FAULT_UNPLUG "unplug"

extern const struct fault_target hca_fault_target;
struct fault_set *hca_faults(struct hca *hca);

#endif
