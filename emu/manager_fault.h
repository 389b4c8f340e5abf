/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Faults of the embedded subnet manager: place sm; and one manager more on a host. Actions and keys: muslin-fault(5). */
#ifndef MUSLIN_EMU_MANAGER_FAULT_H
#define MUSLIN_EMU_MANAGER_FAULT_H

#include "emu/daemon.h"
#include "emu/lib/pick.h"

#define MANAGER_FAULT_PLACE "sm"

struct manager_fault;

/* Is "@place @action" one of these? */
bool manager_fault_concerns(struct daemon *d, const char *place, const char *action);
/*
 * Arms "PLACE ACTION [key=value...]". NULL and one line in @err, which names the word that is wrong; then nothing has
 * been armed. @seed: what chance is drawn from, unless a key says another.
 */
struct manager_fault *manager_fault_add(struct daemon *d, const char *text, u64 seed, char *err, size_t err_len);
void manager_fault_remove(struct manager_fault *ft);
const struct pick *manager_fault_pick(const struct manager_fault *ft);
bool manager_fault_applied(const struct manager_fault *ft);

#endif
