/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults: what a fabric does wrong on purpose. A fault is one line, PLACE ACTION [key=value...]; the actions and keys
 * are those of muslin-fault(5). Faults at one place act in the order in which they were armed.
 */
#ifndef MUSLIN_FABRIC_FAULT_H
#define MUSLIN_FABRIC_FAULT_H

#include "emu/lib/pick.h"
#include "fabric/fabric.h"

struct fabric_fault;

/* Is there an action of that name? */
bool fabric_fault_action(const char *name);
void fabric_fault_actions(char *text, size_t len); /* the names of all */
/*
 * Arms the fault that @text says. NULL and one line in @err, which names the word that is wrong; then nothing has been
 * armed. What is random comes from the fabric's seed and the number of faults armed before, or from the key seed.
 */
struct fabric_fault *fabric_fault_add(struct fabric *f, const char *text, char *err, size_t err_len);
/* Undoes what it did to links, nodes and tables, lets go what it holds, and frees it. */
void fabric_fault_remove(struct fabric_fault *ft);

struct fabric_fault_info {
	const struct pick *pick; /* matches, hits, which ones, and the digest of all decisions */
	bool applied;            /* a link, node or table is altered now */
	u32 held;                /* packets that it holds now */
};
void fabric_fault_info(const struct fabric_fault *ft, struct fabric_fault_info *info);

#endif
