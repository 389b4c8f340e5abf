// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fabrics with several daemons (muslin up --shards): finds the daemon of a place, and merges the results of all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/ctl/ctl.h"

struct rundir cli_place;

unsigned int cli_shards(void)
{
	char path[RUNDIR_PATH_MAX];
	FILE *f = fopen(rundir_path(&cli_run, RUNDIR_SHARDS, path), "re");
	unsigned int n = 1;

	if (!f)
		return 1;
	if (fscanf(f, "%u", &n) != 1 || !n || n > CLI_SHARDS_MAX)
		n = 1;
	fclose(f);
	return n;
}

void cli_shard_rundir(unsigned int shard, struct rundir *r)
{
	char name[RUNDIR_NAME_MAX + 12], err[512];

	snprintf(name, sizeof(name), shard ? "%s.%u" : "%s", cli_run.name, shard);
	if (rundir_open(r, name, err, sizeof(err)))
		cli_fail(CLI_ERROR, "%s", err);
}

/* Connects to a daemon; negative, with a message in @err: it has died with its nodes, and the others continue. */
static int shard_try_connect(unsigned int shard, char *err, size_t err_len)
{
	char path[RUNDIR_PATH_MAX];
	struct rundir r;
	int sock;

	cli_shard_rundir(shard, &r);
	sock = ctl_connect(rundir_path(&r, RUNDIR_CONTROL, path));
	if (sock < 0)
		snprintf(err, err_len, "daemon %s, which runs a part of fabric %s, is not up: %s", r.name, cli_run.name,
			 strerror(-sock));
	return sock;
}

/*
 * Sends @req on @sock; NULL with a message in @err. *died: the daemon ended before it responded, so that it counts as
 * one that is not up.
 */
static json_t *shard_call(int sock, const json_t *req, bool *died, char *err, size_t err_len)
{
	json_t *result = ctl_call(sock, req, -1, err, err_len);

	*died = !result && errno == ECONNRESET && cli_shards() > 1;
	return result;
}

/* No daemon is up: the message of a fabric that is not. */
static void shard_none(char *err, size_t err_len)
{
	int sock = cli_try_connect(err, err_len);

	if (sock < 0)
		return;
	close(sock);
	snprintf(err, err_len, "fabric %s has just been started; try again", cli_run.name);
}

int cli_try_shard(unsigned int shard)
{
	char err[1024];

	return shard_try_connect(shard, err, sizeof(err));
}

int cli_connect_shard(unsigned int shard)
{
	char err[1024];
	int sock = shard_try_connect(shard, err, sizeof(err));

	if (sock < 0)
		cli_fail(CLI_ERROR, "%s", err);
	return sock;
}

int cli_connect_next(unsigned int *shard, bool any)
{
	unsigned int n = cli_shards();
	char err[1024];
	int sock;

	if (n == 1)
		return *shard ? -1 : cli_connect();
	for (; *shard < n; ++*shard) {
		sock = shard_try_connect(*shard, err, sizeof(err));
		if (sock >= 0)
			return sock;
		fprintf(stderr, "muslin: %s\n", err);
	}
	if (any)
		return -1;
	shard_none(err, sizeof(err));
	cli_fail(CLI_ERROR, "%s", err);
}

json_t *cli_request_next(unsigned int *shard, const json_t *req, bool any, char *err, size_t err_len)
{
	struct rundir r;
	json_t *result;
	bool died;
	int sock;

	for (;; ++*shard) {
		*err = 0;
		sock = cli_connect_next(shard, any);
		if (sock < 0)
			return NULL;
		result = shard_call(sock, req, &died, err, err_len);
		close(sock);
		if (!died)
			return result;
		cli_shard_rundir(*shard, &r);
		fprintf(stderr, "muslin: daemon %s: %s\n", r.name, err);
	}
}

/*
 * Connects to the daemon that has the node of @place, and sets cli_place; -1: none that is up has it. *first is a
 * connection to one that is up, in that case, or -1.
 */
static int shard_find_place(const char *place, int *first)
{
	json_t *req = json_pack("{s:s, s:s}", "command", "has", "place", place), *answer;
	unsigned int n = cli_shards(), i;
	char err[1024];
	bool has, died;
	int sock;

	*first = -1;
	for (i = 0; i < n; i++) {
		sock = shard_try_connect(i, err, sizeof(err));
		if (sock < 0)
			continue;
		answer = shard_call(sock, req, &died, err, sizeof(err));
		if (!answer && !died)
			cli_fail(CLI_ERROR, "%s", err);
		if (died) {
			close(sock);
			continue;
		}
		has = json_is_true(answer);
		json_decref(answer);
		if (!has && *first < 0) {
			*first = sock;
			continue;
		}
		if (*first >= 0)
			close(has ? *first : sock);
		if (has) {
			json_decref(req);
			cli_shard_rundir(i, &cli_place);
			return sock;
		}
	}
	json_decref(req);
	return -1;
}

int cli_connect_place(const char *place)
{
	unsigned int n = cli_shards(), i;
	char err[1024];
	int sock, first;

	cli_place = cli_run;
	if (n == 1)
		return cli_connect();
	sock = shard_find_place(place, &first);
	if (sock >= 0)
		return sock;
	/* The first one reports the error for the place, which a daemon that is not up may have. */
	for (i = 0; i < n; i++) {
		sock = shard_try_connect(i, err, sizeof(err));
		if (sock < 0)
			fprintf(stderr, "muslin: %s\n", err);
		else
			close(sock);
	}
	if (first < 0) {
		shard_none(err, sizeof(err));
		cli_fail(CLI_ERROR, "%s", err);
	}
	return first;
}

/* Does the object have counts of each daemon? That of the subnet manager has values of its one daemon. */
static bool shard_counts(const char *key)
{
	return !strcmp(key, "trunks_refused") || !strcmp(key, "passed_descriptors");
}

/* Merges @more into @sum: lists are joined, numbers of ports and nodes added, other members kept. */
static void shard_merge(json_t *sum, json_t *more)
{
	const char *key;
	json_t *v, *mine;

	if (json_is_array(sum))
		json_array_extend(sum, more);
	json_object_foreach(more, key, v)
	{
		mine = json_object_get(sum, key);
		if (json_is_array(mine))
			json_array_extend(mine, v);
		else if (json_is_object(mine) && shard_counts(key))
			shard_merge(mine, v);
		else if (json_is_object(mine) && json_is_object(v))
			json_object_update_missing(mine, v);
		else if (json_is_integer(mine))
			json_object_set_new(sum, key, json_integer(json_integer_value(mine) + json_integer_value(v)));
		else if (!mine || json_is_null(mine))
			json_object_set(sum, key, v);
	}
}

json_t *cli_try_all(json_t *req, char *err, size_t err_len)
{
	unsigned int n = cli_shards(), up = 0, i;
	json_t *sum = NULL, *more;
	bool died;
	int sock;

	for (i = 0; i < n; i++) {
		sock = shard_try_connect(i, err, err_len);
		if (sock < 0)
			continue;
		more = shard_call(sock, req, &died, err, err_len);
		close(sock);
		up += !died;
		if (died)
			continue;
		if (!more) {
			json_decref(sum);
			sum = NULL;
			break;
		}
		if (sum) {
			shard_merge(sum, more);
			json_decref(more);
		} else {
			sum = more;
		}
	}
	if (!up)
		shard_none(err, err_len);
	json_decref(req);
	return sum;
}

json_t *cli_request_all(json_t *req)
{
	char err[1024];
	json_t *sum = cli_try_all(req, err, sizeof(err));

	if (!sum)
		cli_fail(CLI_ERROR, "%s", err);
	return sum;
}

json_t *cli_request_any(json_t *req, char *err, size_t err_len)
{
	unsigned int n = cli_shards(), up = 0, i;
	json_t *result = NULL;
	char later[1] = ""; /* the message of the first one is reported */
	char dead[1024];
	bool died;
	int sock;

	for (i = 0; i < n && !result; i++) {
		sock = shard_try_connect(i, dead, sizeof(dead));
		if (sock < 0)
			continue;
		result = shard_call(sock, req, &died, up ? later : err, up ? sizeof(later) : err_len);
		up += !died;
		close(sock);
	}
	if (!up)
		shard_none(err, err_len);
	json_decref(req);
	return result;
}
