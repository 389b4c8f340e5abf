// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin timeline: the recorded events and traffic of all daemons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/cli.h"

static int event_earlier(const void *a, const void *b)
{
	double x = json_number_value(json_array_get(*(json_t *const *)a, 0)),
	       y = json_number_value(json_array_get(*(json_t *const *)b, 0));

	return x < y ? -1 : x > y;
}

/* Sorts the events of several daemons by time. */
static void timeline_sort(json_t *events)
{
	size_t n = json_array_size(events), i;
	json_t **e = calloc(n + 1, sizeof(json_t *));

	for (i = 0; e && i < n; i++)
		e[i] = json_incref(json_array_get(events, i));
	if (e)
		qsort(e, n, sizeof(json_t *), event_earlier);
	for (i = 0; e && i < n; i++)
		json_array_set_new(events, i, e[i]);
	free(e);
}

/* When the first of the daemons began to record. */
static double timeline_begin(void)
{
	json_t *t = cli_request_all(json_pack("{s:s, s:b}", "command", "timeline", "began", true)),
	       *began = json_object_get(t, "began"), *when;
	double first = json_number_value(json_array_get(began, 0));
	size_t i;

	if (!json_array_size(began))
		cli_fail(CLI_ERROR, "no timeline is recorded; start one with `muslin timeline --start`");
	json_array_foreach(began, i, when)
	{
		if (json_number_value(when) < first)
			first = json_number_value(when);
	}
	json_decref(t);
	return first;
}

int cli_timeline(int argc, char **argv)
{
	bool start = argc == 2 && !strcmp(argv[1], "--start");
	json_t *t;

	if (argc > 1 && !start)
		cli_fail(CLI_USAGE, "usage: muslin timeline [--name FABRIC] [--start]");
	if (start) {
		json_decref(cli_request_all(json_pack("{s:s, s:b}", "command", "timeline", "start", true)));
		return CLI_OK;
	}
	t = cli_request_all(json_pack("{s:s, s:f}", "command", "timeline", "since", timeline_begin()));
	timeline_sort(json_object_get(t, "events"));
	json_dumpf(t, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(t);
	return CLI_OK;
}
