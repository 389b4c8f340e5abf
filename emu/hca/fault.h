/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Faults of an HCA: what a device does wrong on purpose. Actions and keys: muslin-fault(5). */
#ifndef MUSLIN_HCA_FAULT_H
#define MUSLIN_HCA_FAULT_H

#include "emu/hca/hca.h"
#include "emu/lib/pick.h"

struct hca_fault;

/* The one of which its owner does the rest: the files that are open on the device, and its links. */
#define HCA_FAULT_UNPLUG "unplug"

bool hca_fault_action(const char *name);        /* is there one of that name? */
void hca_fault_actions(char *text, size_t len); /* the names of all */
/*
 * Arms the fault "ACTION [key=value...]". NULL and one line in @err, which names the word that is wrong; then nothing
 * has been armed. @seed: what chance is drawn from, unless a key says another.
 */
struct hca_fault *hca_fault_add(struct hca *hca, const char *text, u64 seed, char *err, size_t err_len);
void hca_fault_remove(struct hca_fault *ft);
const struct pick *hca_fault_pick(const struct hca_fault *ft); /* matches and hits */

#endif
