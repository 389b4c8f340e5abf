// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words of commands: values and errors as rows. */
#include "emu/lib/spec.h"

#include "emu/lib/row.h"

struct target {
	bool flag;
	u8 small;
	u64 time, rate;
	u32 chance, range[2];
	char text[SPEC_TEXT_MAX];
};

static const struct spec_field fields[] = {
	SPEC_FIELD("flag", SPEC_FLAG, target, flag),
	SPEC_FIELD("small", SPEC_U8, target, small, .max = 15),
	SPEC_FIELD("time", SPEC_TIME, target, time),
	SPEC_FIELD("rate", SPEC_RATE, target, rate),
	SPEC_FIELD("chance", SPEC_CHANCE, target, chance),
	SPEC_FIELD("range", SPEC_RANGE, target, range, .max = 0xffffff),
	SPEC_FIELD("text", SPEC_TEXT, target, text),
	{ .name = NULL },
};

static const struct {
	const char *line, *err; /* err NULL: valid */
	struct target want;
} rows[] = {
	{ "flag small=15", NULL, { .flag = true, .small = 15 } },
	{ "  small=0x0a\ttime=1.5ms ", NULL, { .small = 10, .time = 1500000 } },
	{ "time=2s rate=2.5G", NULL, { .time = 2000000000, .rate = 2500000000ull } },
	{ "chance=50%", NULL, { .chance = 0x80000000 } },
	{ "chance=1", NULL, { .chance = 0xffffffff } },
	{ "range=5", NULL, { .range = { 5, 5 } } },
	{ "range=5-0xff", NULL, { .range = { 5, 255 } } },
	{ "text='a b' flag", NULL, { .flag = true, .text = "a b" } },
	{ "", NULL, { .flag = false } },
	{ "flga", "flga: there is no \"flga\"; there are: flag small= time= rate= chance= range= text=", { 0 } },
	{ "small=16", "small=16: small takes a number up to 15", { 0 } },
	{ "small=-1", "small=-1: small takes a number up to 15", { 0 } },
	{ "small", "small: small takes a value", { 0 } },
	{ "flag=1", "flag=1: flag takes no value", { 0 } },
	{ "flag flag", "flag: duplicate flag", { 0 } },
	{ "time=5", "time=5: time takes a time such as 50us, 2ms or 1.5s", { 0 } },
	{ "time=-5ms", "time=-5ms: time takes a time such as 50us, 2ms or 1.5s", { 0 } },
	{ "rate=0", "rate=0: rate takes a rate in bit/s such as 100M or 2.5G", { 0 } },
	{ "chance=101%", "chance=101%: chance takes a chance such as 1% or 0.01", { 0 } },
	{ "range=9-5", "range=9-5: range takes a number or a range such as 5-9 up to 16777215", { 0 } },
	{ "text=", "text=: text takes a shorter text", { 0 } },
	{ "text='a b", "text=a b: a quote does not end", { 0 } },
	{ "=", "=: there is no \"\"; there are: flag small= time= rate= chance= range= text=", { 0 } },
};

static bool line_ok(u32 i)
{
	struct target got = { 0 };
	char err[200] = "";
	struct spec_words w = { .n = 0 };
	u64 seen = 0;
	u32 k;
	int rc = spec_split(&w, rows[i].line, err, sizeof(err));

	for (k = 0; !rc && k < w.n; k++)
		rc = spec_word(fields, ARRAY_SIZE(fields), &got, &seen, w.word[k], err, sizeof(err));
	if (rows[i].err)
		return rc && !strcmp(err, rows[i].err);
	return !rc && got.flag == rows[i].want.flag && got.small == rows[i].want.small &&
	       got.time == rows[i].want.time && got.rate == rows[i].want.rate && got.chance == rows[i].want.chance &&
	       !memcmp(got.range, rows[i].want.range, sizeof(got.range)) && !strcmp(got.text, rows[i].want.text);
}

static void test_rows(void)
{
	static const struct {
		const char *name;
		int n;
	} rows[] = { { "one", 1 }, { "two", 2 }, { NULL, 3 }, { "four", 4 } };
	char text[16] = "all:";
	size_t at;

	row(90, "the row of a name", SPEC_ROW(rows, "two") == &rows[1]);
	row(91, "none has it", !SPEC_ROW(rows, "tw"));
	row(92, "a row without a name is the end", !SPEC_ROW(rows, "four"));
	at = SPEC_NAMES(text, strlen(text), sizeof(text), rows);
	row(93, "their names", !strcmp(text, "all: one two") && at == strlen(text));
	at = SPEC_NAMES(text, 0, 5, rows);
	row(94, "as many as there is room for", !strcmp(text, "one ") && at > 5);
}

int main(void)
{
	u32 i;

	test_rows();
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		row((int)i, rows[i].line, line_ok(i));
	return rows_end();
}
