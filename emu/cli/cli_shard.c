// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fabrics with several daemons (muslin up --shards): finds the daemon of a place, and merges the results of all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
	if (fscanf(f, "%u", &n) != 1 || !n)
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

/* Connects to a daemon; negative: it has died with its nodes, and the others continue. Of the first with a message in @err. */
static int shard_try_connect(unsigned int shard, char *err, size_t err_len)
{
	char path[RUNDIR_PATH_MAX];
	struct rundir r;

	if (!shard)
		return cli_try_connect(err, err_len);
	cli_shard_rundir(shard, &r);
	return ctl_connect(rundir_path(&r, RUNDIR_CONTROL, path));
}

/* The same; exits if the first is not up. */
static int shard_connect(unsigned int shard)
{
	return shard ? shard_try_connect(shard, NULL, 0) : cli_connect();
}

int cli_connect_shard(unsigned int shard)
{
	int sock = shard_connect(shard);

	if (sock < 0)
		cli_fail(CLI_ERROR, "daemon %s.%u, which runs a part of fabric %s, is not up: %s", cli_run.name, shard,
			 cli_run.name, strerror(-sock));
	return sock;
}

int cli_connect_place(const char *place)
{
	unsigned int n = cli_shards(), i;
	bool has = false;
	json_t *answer;
	int sock;

	cli_place = cli_run;
	for (i = 0; n > 1 && i < n && !has; i++) {
		sock = shard_connect(i);
		if (sock < 0)
			continue;
		answer = cli_request(sock, json_pack("{s:s, s:s}", "command", "has", "place", place));
		has = json_is_true(answer);
		json_decref(answer);
		if (!has) {
			close(sock);
			continue;
		}
		cli_shard_rundir(i, &cli_place);
		return sock;
	}
	return cli_connect(); /* with several daemons it reports the error for the place */
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
	unsigned int n = cli_shards(), i;
	json_t *sum = NULL, *more;
	int sock;

	for (i = 0; i < n; i++) {
		sock = shard_try_connect(i, err, err_len);
		if (sock < 0 && i)
			continue;
		more = sock < 0 ? NULL : ctl_call(sock, req, -1, err, err_len);
		if (sock >= 0)
			close(sock);
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
	unsigned int n = cli_shards(), i;
	json_t *result = NULL;
	bool refused = false;
	char later[1] = ""; /* the message of the first one is reported */
	int sock;

	for (i = 0; i < n && !result; i++) {
		sock = shard_try_connect(i, err, err_len);
		if (sock < 0 && !i)
			break;
		if (sock < 0)
			continue;
		result = ctl_call(sock, req, -1, refused ? later : err, refused ? sizeof(later) : err_len);
		refused = true;
		close(sock);
	}
	json_decref(req);
	return result;
}
