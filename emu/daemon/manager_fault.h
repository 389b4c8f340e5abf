/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Faults of the embedded subnet manager, place sm, and a second manager on a host: targets of the fault engine. */
#ifndef MUSLIN_DAEMON_MANAGER_FAULT_H
#define MUSLIN_DAEMON_MANAGER_FAULT_H

#include "emu/daemon/daemon.h"
#include "emu/fault/fault.h"

#define MANAGER_FAULT_PLACE "sm"

extern const struct fault_target second_manager_target;
void manager_faults_init(struct daemon *d); /* d->manager_faults, d->second_managers */

#endif
