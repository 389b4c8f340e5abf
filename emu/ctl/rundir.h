/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The directory of a fabric's sockets, log and tree, under the user's run directory. */
#ifndef MUSLIN_CTL_RUNDIR_H
#define MUSLIN_CTL_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "emu/lib/version.h"

#define RUNDIR_PATH_MAX 512
#define RUNDIR_NAME_MAX 48

#define RUNDIR_CONTROL "control.sock"
#define RUNDIR_HOSTS   "host.sock" /* for programs on hosts */
#define RUNDIR_PID     "pid"       /* locked by the running daemon */
#define RUNDIR_LOG     "log"
#define RUNDIR_TREE    "tree"
#define RUNDIR_SHARDS  "shards"     /* number of the fabric's daemons; missing: one */
#define RUNDIR_TRUNK   "trunk.sock" /* for the other shards */
#define RUNDIR_GUESTS  "vm"         /* sockets of the hosts' devices for guests, kept after a crash of the daemon */

struct rundir {
	char base[RUNDIR_PATH_MAX];
	char dir[RUNDIR_PATH_MAX];
	char name[RUNDIR_NAME_MAX];
	bool own; /* @base is $MUSLIN_RUNDIR, which only the user removes */
};

/*
 * Finds the run directory ($MUSLIN_RUNDIR, $XDG_RUNTIME_DIR/muslin, or /tmp/muslin-UID), creates it if missing, and
 * checks that only the user has access. @name is the fabric's. 0, or -errno with a message in @err.
 */
int rundir_open(struct rundir *r, const char *name, char *err, size_t err_len);
/* Writes the path of @file in the fabric's directory to @path of RUNDIR_PATH_MAX bytes; returns @path. */
const char *rundir_path(const struct rundir *r, const char *file, char *path);
/* The pid of the fabric's daemon, 0 if none is running. */
pid_t rundir_daemon(const struct rundir *r);
/*
 * For the daemon: creates the directory, removes files of a dead daemon except RUNDIR_GUESTS, and locks. Returns a
 * descriptor that holds the lock until it is closed, or -errno: -EBUSY if a daemon is running.
 */
int rundir_claim(const struct rundir *r);
/* Writes the process ID to the claimed file @fd. */
int rundir_sign(int fd);
/* Removes the fabric's directory, and the run directory if it is empty. */
void rundir_remove(const struct rundir *r);
/*
 * For a daemon whose start has failed: undoes rundir_claim(), and removes the files of this start. RUNDIR_GUESTS and
 * the log of a daemon that crashed before stay for the next start.
 */
void rundir_abandon(const struct rundir *r);
/* The names of fabrics with a directory, sorted; the caller frees each and the array. */
int rundir_list(const struct rundir *r, char ***names);

#endif
