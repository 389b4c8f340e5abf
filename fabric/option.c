// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of both topology formats: of the whole fabric, cables and disabled ports. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/spec.h"
#include "emu/wire/smp.h"
#include "fabric/build.h"

static int set_mtu(struct fabric_build *b, const char *val)
{
	u64 n;

	b->t->mtu = spec_number(val, 4096, &n) ? wire_mtu_code((u32)n) : 0;
	if (!b->t->mtu || wire_mtu_bytes(b->t->mtu) != n)
		return fabric_build_error(b, "mtu is 256, 512, 1024, 2048 or 4096, not \"%.40s\"", val);
	return 0;
}

static int set_vls(struct fabric_build *b, const char *val)
{
	static const u8 count[] = { 0, 1, 2, 4, 8, 15 };
	u64 n;
	u8 code = spec_number(val, 15, &n) ? 1 : ARRAY_SIZE(count);

	for (; code < ARRAY_SIZE(count); code++)
		if (count[code] == n) {
			b->t->vl_cap = code;
			return 0;
		}
	return fabric_build_error(b, "vls is 1, 2, 4, 8 or 15, not \"%.40s\"", val);
}

static int set_speed(struct fabric_build *b, const char *val)
{
	int got = fabric_build_rate(b, val, &b->lanes, &b->speed);

	return got ? min(got, 0) : fabric_build_error(b, "speed is like 4xHDR, not \"%.40s\"", val);
}

static int set_partitions(struct fabric_build *b, const char *val)
{
	free(b->t->partition_file);
	free(b->t->partition_place);
	b->t->partition_file = strdup(val);
	if (asprintf(&b->t->partition_place, "%s:%u", b->file, b->line) < 0)
		b->t->partition_place = NULL;
	return b->t->partition_file && b->t->partition_place ? 0 : fabric_build_error(b, "out of memory");
}

static int set_rates(struct fabric_build *b, const char *val)
{
	bool enforced = !strcmp(val, "enforced");

	if (!enforced && strcmp(val, "nominal") != 0)
		return fabric_build_error(b, "rates are enforced or nominal, not \"%.40s\"", val);
	b->t->timed = enforced;
	return 0;
}

/* Parses "130ns", up to a second, to ps. */
static int option_time(struct fabric_build *b, const char *word, const char *val, u64 *ps)
{
	static const struct {
		const char *unit;
		double ps;
	} units[] = { { "ps", 1 }, { "ns", 1e3 }, { "us", 1e6 }, { "ms", 1e9 } };
	char *end;
	double v = strtod(val, &end);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(units) && end != val; i++)
		if (!strcmp(end, units[i].unit) && v >= 0 && v * units[i].ps <= 1e12) {
			*ps = (u64)(v * units[i].ps + 0.5);
			return 0;
		}
	return fabric_build_error(b, "%s is a time up to 1000ms, such as 130ns, not \"%.40s\"", word, val);
}

static int set_propagation(struct fabric_build *b, const char *val)
{
	return option_time(b, "propagation", val, &b->t->propagation_ps);
}

static int set_switch_latency(struct fabric_build *b, const char *val)
{
	return option_time(b, "switch-latency", val, &b->t->switch_ps);
}

static const struct {
	const char *word;
	int (*set)(struct fabric_build *b, const char *val);
} options[] = {
	{ "mtu", set_mtu },
	{ "vls", set_vls },
	{ "speed", set_speed },
	{ "partition-file", set_partitions },
	{ "partitions", set_partitions },
	{ "rates", set_rates },
	{ "propagation", set_propagation },
	{ "switch-latency", set_switch_latency },
};

bool fabric_option_known(const char *word)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(word, options[i].word))
			return true;
	return false;
}

int fabric_option_set(struct fabric_build *b, const char *word, const char *value)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(word, options[i].word))
			return options[i].set(b, value);
	return fabric_build_error(b, "\"%.40s\" is not known", word);
}

int fabric_option_cable(struct fabric_build *b, struct fabric_line *l)
{
	u8 lanes = b->lanes, speed = b->speed;
	char word[64], value[64];
	u32 n[2], p[2];
	int err = fabric_build_place(b, l, &n[0], &p[0]), got;

	err = err ? err : fabric_build_place(b, l, &n[1], &p[1]);
	while (!err && fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		got = fabric_build_rate(b, word, &b->lanes, &b->speed);
		if (got)
			err = min(got, 0);
		else if (!strcmp(word, "disabled"))
			b->disabled = true;
		else if (!strcmp(word, "delay") && fabric_line_word(l, value, sizeof(value)))
			err = option_time(b, word, value, &b->delay_ps);
		else
			err = fabric_build_error(
				b, "\"%.40s\": a cable has a rate such as 4xNDR, delay TIME, and may be disabled",
				word);
	}
	err = err ? err : fabric_build_link(b, n[0], p[0], n[1], p[1]);
	b->lanes = lanes;
	b->speed = speed;
	b->disabled = false;
	b->delay_ps = FABRIC_DELAY_DEFAULT;
	return err;
}

int fabric_option_disable(struct fabric_build *b, struct fabric_line *l)
{
	u32 n, p;
	int err = fabric_build_place(b, l, &n, &p);

	if (!err)
		b->t->nodes[n].ports[p].disabled = true;
	return err;
}
