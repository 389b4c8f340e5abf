/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the commands of muslin(1). */
#ifndef MUSLIN_CLI_H
#define MUSLIN_CLI_H

#include <jansson.h>

#include "emu/ctl/rundir.h"

enum cli_exit {
	CLI_OK,
	CLI_ERROR,
	CLI_USAGE
};

extern struct rundir cli_run; /* of the fabric that the command is about */

/* Ends the program with a line "muslin: ..." on standard error. */
void cli_fail(enum cli_exit status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
/* A connection to the fabric's daemon; ends the program when none is up. */
int cli_connect(void);
/* Sends @req (taken) on @sock and returns the result; on an error ends the program with the daemon's message. */
json_t *cli_ask(int sock, json_t *req);
/* cli_shard.c: how many daemons hold the fabric. */
unsigned int cli_shards(void);
void cli_shard_rundir(unsigned int shard, struct rundir *r); /* where that daemon has its files */
int cli_connect_shard(unsigned int shard);
extern struct rundir cli_place; /* where the daemon of the last cli_connect_place() has its files */
/* A connection to the daemon that has the node of @place. */
int cli_connect_place(const char *place);
/* Asks all of them, as cli_ask(), and joins their answers. */
json_t *cli_ask_all(json_t *req);
/* The path of an installed file: the first of @places (NULL at the end; absolute, or relative to the program's folder) that exists. */
void cli_beside(char *path, size_t size, const char *const *places);
const char *cli_text(const json_t *o, const char *key); /* "" where there is none */
long long cli_number(const json_t *o, const char *key); /* 0 where there is none */
/* What tells a node from others in a list: "lid 5"; of a port that is not InfiniBand's what it is bound to, "roce". */
const char *cli_node_id(const json_t *node, char *text, size_t size);
/* Sets the environment of a program on @host, with the preload library; ends the program where there is no such host. */
void cli_env_set(const char *host);
double cli_seconds(void); /* CLOCK_MONOTONIC */
void cli_sleep(double seconds);

/* The commands: what main() returns. argv[0] is the command's name. */
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
