// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs the rules of one subject: rules [--list] SUBJECT [PART-OF-A-NAME]. Prints a line for each rule; --list runs
 * none.
 */
#include "rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct subject subjects[] = {
	{ "states", states_rules }, { "requests", requests_rules },
	{ "order", order_rules },   { "datagrams", datagrams_rules },
	{ "srq", srq_rules },       { "windows", windows_rules },
	{ "cq", cq_rules },         { "objects", objects_rules },
	{ "paging", paging_rules },
};

static struct rule *table;
static unsigned nrules;

void rule_add(struct rule rule, const char *fmt, ...)
{
	va_list ap;
	char *name;

	va_start(ap, fmt);
	if (vasprintf(&name, fmt, ap) < 0)
		abort();
	va_end(ap);
	table = reallocarray(table, nrules + 1, sizeof(*table));
	if (!table)
		abort();
	rule.name = name;
	table[nrules++] = rule;
}

/* Rule names are unique. */
static void check_names(void)
{
	unsigned i, j;

	for (i = 0; i < nrules; i++)
		for (j = 0; j < i; j++)
			if (!strcmp(table[i].name, table[j].name)) {
				printf("FAIL %s | duplicate name\n", table[i].name);
				exit(2);
			}
}

int main(int argc, char **argv)
{
	static struct scene scene;
	bool list = argc > 1 && !strcmp(argv[1], "--list");
	unsigned i;

	argc -= list;
	argv += list;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 1 && i < ARRAY_LEN(subjects); i++)
		if (!strcmp(argv[1], subjects[i].name))
			subjects[i].rules();
	if (!nrules) {
		fprintf(stderr, "usage: rules [--list] SUBJECT [PART-OF-A-NAME]\n");
		return 2;
	}
	check_names();
	for (i = 0; list && i < nrules; i++)
		printf("%s | %s%s%s\n", table[i].name, table[i].clause, table[i].cannot ? " | " : "",
		       table[i].cannot ?: "");
	if (list)
		return 0;
	scene_init(&scene);
	for (i = 0; i < nrules; i++) {
		if (argc > 2 && !strstr(table[i].name, argv[2]))
			continue;
		if (table[i].cannot) {
			printf("CANNOT %s | %s | %s\n", table[i].name, table[i].clause, table[i].cannot);
			continue;
		}
		scene_run(&scene, &table[i]);
		printf("%s %s | %s%s%s\n", scene.why[0] ? "FAIL" : "HOLDS", table[i].name, table[i].clause,
		       scene.why[0] ? " | " : "", scene.why);
	}
	printf("END\n");
	return 0;
}
