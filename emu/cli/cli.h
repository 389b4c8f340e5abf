/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the commands of muslin(1). */
#ifndef MUSLIN_CLI_H
#define MUSLIN_CLI_H

#include <jansson.h>

#include "emu/ctl/rundir.h"

#define CLI_SHARDS_MAX 64 /* daemons of a fabric */

enum cli_exit {
	CLI_OK,
	CLI_ERROR,
	CLI_USAGE
};

extern struct rundir cli_run; /* of the fabric that the command uses */

/* Exits with a line "muslin: ..." on standard error. */
void cli_fail(enum cli_exit status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
/* Connects to the fabric's daemon: a descriptor, or -errno with a message in @err. */
int cli_try_connect(char *err, size_t err_len);
/* The same; exits if none is running. */
int cli_connect(void);
/* Sends @req (taken) on @sock and returns the result; on an error exits with the daemon's message. */
json_t *cli_request(int sock, json_t *req);
/* cli_shard.c: number of daemons of the fabric. */
unsigned int cli_shards(void);
void cli_shard_rundir(unsigned int shard, struct rundir *r); /* run directory of that daemon */
int cli_try_shard(unsigned int shard);                       /* -1: that daemon is not up */
int cli_connect_shard(unsigned int shard);                   /* exits if that daemon is not up */
/*
 * Connects to the first daemon from *shard on that is up, and sets *shard; writes a line about each that is not. -1:
 * there is none; exits unless @any is true, which says that the caller has had one before.
 */
int cli_connect_next(unsigned int *shard, bool any);
/*
 * The response of the first daemon from *shard on that is up, and does not die before it responds; as
 * cli_connect_next(). NULL: there is none, or it refuses the request, with a message in @err, which is empty else.
 */
json_t *cli_request_next(unsigned int *shard, const json_t *req, bool any, char *err, size_t err_len);
extern struct rundir cli_place; /* run directory of the daemon of the last cli_connect_place() */
/*
 * Connects to the daemon that has the node of @place; if none has, to one that reports that, after a line about each
 * daemon that is not up.
 */
int cli_connect_place(const char *place);
/*
 * Sends @req (taken) to all daemons that are up; merges their results. NULL, with a message in @err: an error, or none
 * is.
 */
json_t *cli_try_all(json_t *req, char *err, size_t err_len);
/* The same; exits on an error. */
json_t *cli_request_all(json_t *req);
/*
 * Sends @req (taken) to one daemon after the other, until one has a result. NULL, with the message of the first one
 * that is up in @err, or none is up.
 */
json_t *cli_request_any(json_t *req, char *err, size_t err_len);
/* The path of an installed file: the first of @places (NULL-terminated; absolute, or relative to the
 * program's directory) that exists. */
void cli_beside(char *path, size_t size, const char *const *places);
const char *cli_text(const json_t *o, const char *key); /* "" if missing */
long long cli_number(const json_t *o, const char *key); /* 0 if missing */
/* The argument @text of @option, above 0 and up to @max; exits if it is not, or NULL. */
double cli_positive(const char *option, const char *text, double max);
/* Short identification of a node in a list: "lid 5"; its binding, such as "roce", if its port is not InfiniBand. */
const char *cli_node_id(const json_t *node, char *text, size_t size);
/*
 * Prints a line of @text. @at: where a port's state is, which has a colour on a terminal, unless NO_COLOR is in the
 * environment; 0: none.
 */
void cli_line(const char *text, size_t at);
/* Sets the environment of a program on @host, with the preload library; exits if there is no such host. */
void cli_env_set(const char *host);
double cli_seconds(void); /* CLOCK_MONOTONIC */
void cli_sleep(double seconds);

/* The commands: each returns the exit status of main(). argv[0] is the command's name. */
int cli_vm(int argc, char **argv);
int cli_cp(int argc, char **argv);
int cli_up(int argc, char **argv);
int cli_down(int argc, char **argv);
int cli_exec(int argc, char **argv);
int cli_env(int argc, char **argv);
int cli_cdi(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_metrics(int argc, char **argv);
int cli_timeline(int argc, char **argv);
int cli_svg(const json_t *shown); /* draws the result of `show` */
int cli_fault(int argc, char **argv);
int cli_console(int argc, char **argv);

#endif
