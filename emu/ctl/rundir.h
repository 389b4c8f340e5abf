/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a fabric keeps its sockets, log and tree: a folder under the user's run directory. */
#ifndef MUSLIN_CTL_RUNDIR_H
#define MUSLIN_CTL_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "emu/lib/version.h"

#define RUNDIR_PATH_MAX 512
#define RUNDIR_NAME_MAX 48

#define RUNDIR_CONTROL "control.sock"
#define RUNDIR_HOSTS   "host.sock" /* of the programs that run on hosts */
#define RUNDIR_PID     "pid"       /* locked by the daemon for as long as it lives */
#define RUNDIR_LOG     "log"
#define RUNDIR_TREE    "tree"
#define RUNDIR_SHARDS  "shards"     /* how many daemons hold the fabric; missing: one */
#define RUNDIR_TRUNK   "trunk.sock" /* of the other shards */
#define RUNDIR_GUESTS  "vm"         /* sockets of the hosts' devices for guests, which outlive a daemon that dies */

struct rundir {
	char base[RUNDIR_PATH_MAX];
	char dir[RUNDIR_PATH_MAX];
	char name[RUNDIR_NAME_MAX];
	bool own; /* @base is $MUSLIN_RUNDIR, which is the user's to remove */
};

/*
 * Finds the run directory ($MUSLIN_RUNDIR, $XDG_RUNTIME_DIR/muslin, or /tmp/muslin-UID), makes it when missing, and sees that it
 * belongs to the user alone. @name is the fabric's. 0, or -errno with one line in @err.
 */
int rundir_open(struct rundir *r, const char *name, char *err, size_t err_len);
/* The path of @file in the fabric's folder, in @path of RUNDIR_PATH_MAX bytes, which is returned. */
const char *rundir_path(const struct rundir *r, const char *file, char *path);
/* The fabric's daemon, 0 when none is alive. */
pid_t rundir_daemon(const struct rundir *r);
/*
 * For the daemon: makes the folder, removes what a dead daemon has left but for RUNDIR_GUESTS, and locks. A descriptor that holds the lock until it is
 * closed, or -errno: -EBUSY when a daemon is alive.
 */
int rundir_claim(const struct rundir *r);
/* Writes the process id into the claimed file @fd. */
int rundir_sign(int fd);
/* Removes the fabric's folder, and the run directory with the last one. */
void rundir_remove(const struct rundir *r);
/* The names of fabrics that have a folder, sorted; the caller frees each and the array. */
int rundir_list(const struct rundir *r, char ***names);

#endif
