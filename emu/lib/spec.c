// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words of the form key=value: splitting, lookup and conversion, with errors that name the word. */
#include "emu/lib/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int spec_refuse(char *err, size_t err_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, err_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Copies one word without its quotes. Returns the position after it, or NULL: unterminated quote. */
static const char *take_word(const char *text, char **to)
{
	char quote = 0;

	for (; *text && (quote || !isspace((u8)*text)); text++) {
		if (quote ? *text == quote : *text == '"' || *text == '\'')
			quote = quote ? 0 : *text;
		else
			*(*to)++ = *text;
	}
	*(*to)++ = 0;
	return quote ? NULL : text;
}

const char *spec_quote(const char *word)
{
	return !strpbrk(word, " \t") ? "" : strchr(word, '\'') ? "\"" : "'";
}

int spec_split(struct spec_words *w, const char *text, char *err, size_t err_len)
{
	char *to;

	w->n = 0;
	to = w->text;
	if (strlen(text) >= sizeof(w->text) - SPEC_WORDS_MAX) {
		snprintf(err, err_len, "%.20s...: too long", text);
		return -EINVAL;
	}
	for (;;) {
		while (isspace((u8)*text))
			text++;
		if (!*text)
			return 0;
		if (w->n == SPEC_WORDS_MAX) {
			snprintf(err, err_len, "%.40s: more than %d words", text, SPEC_WORDS_MAX);
			return -EINVAL;
		}
		w->word[w->n] = to;
		text = take_word(text, &to);
		if (!text) {
			snprintf(err, err_len, "%.40s: a quote does not end", w->word[w->n]);
			return -EINVAL;
		}
		w->n++;
	}
}

bool spec_number(const char *text, u64 max, u64 *value)
{
	char *end;

	if (!isdigit((u8)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !errno && !*end && *value <= max;
}

struct unit {
	const char *name;
	double factor;
};

/* Parses a number followed by one of @units. */
static bool scaled(const char *text, const struct unit *units, double max, double *value)
{
	char *end;
	double v;

	if (!isdigit((u8)*text) || (text[1] | 32) == 'x')
		return false;
	v = strtod(text, &end);
	for (; units->name; units++) {
		if (strcasecmp(units->name, end))
			continue;
		*value = v * units->factor;
		return *value <= max;
	}
	return false;
}

static const struct unit times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 }, { NULL, 0 },
};
static const struct unit rates[] = {
	{ "", 1 },       { "k", 1e3 },    { "M", 1e6 },    { "G", 1e9 },
	{ "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 }, { NULL, 0 },
};
static const struct unit chances[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };

static bool set_number(const struct spec_field *f, void *to, const char *value)
{
	static const u64 most[] = {
		[SPEC_U8] = 0xff, [SPEC_U16] = 0xffff, [SPEC_U32] = 0xffffffff, [SPEC_U64] = ~0ull
	};
	u64 v;

	if (!spec_number(value, f->max ? f->max : most[f->type], &v))
		return false;
	if (f->type == SPEC_U8)
		*(u8 *)to = (u8)v;
	else if (f->type == SPEC_U16)
		*(u16 *)to = (u16)v;
	else if (f->type == SPEC_U32)
		*(u32 *)to = (u32)v;
	else
		*(u64 *)to = v;
	return true;
}

static bool set_range(const struct spec_field *f, void *to, const char *value)
{
	const char *dash = strchr(value, '-');
	u64 max = f->max ? f->max : 0xffffffff, lo, hi;
	char first[32];

	if (dash && (size_t)(dash - value) >= sizeof(first))
		return false;
	snprintf(first, sizeof(first), "%.*s", dash ? (int)(dash - value) : 31, value);
	if (!spec_number(first, max, &lo) || !spec_number(dash ? dash + 1 : value, max, &hi) || lo > hi)
		return false;
	((u32 *)to)[0] = (u32)lo;
	((u32 *)to)[1] = (u32)hi;
	return true;
}

static bool set_scaled(const struct spec_field *f, void *to, const char *value)
{
	bool chance = f->type == SPEC_CHANCE;
	double v;

	if (!scaled(value, f->type == SPEC_TIME ? times : chance ? chances : rates, chance ? 1 : 1e18, &v))
		return false;
	if (chance)
		*(u32 *)to = v >= 1 ? 0xffffffff : (u32)(v * 4294967296.0);
	else
		*(u64 *)to = (u64)v;
	return chance || f->type == SPEC_TIME || v >= 1;
}

static bool set_name(const struct spec_field *f, u8 *to, const char *value)
{
	size_t len = strlen(value), n;
	const char *name = f->names;

	for (*to = 0;; ++*to, name += n + 1) {
		n = strcspn(name, "|");
		if (n == len && !strncmp(name, value, n))
			return true;
		if (!name[n])
			return false;
	}
}

static const char *const wants[] = {
	[SPEC_U8] = "a number",
	[SPEC_U16] = "a number",
	[SPEC_U32] = "a number",
	[SPEC_U64] = "a number",
	[SPEC_TIME] = "a time such as 50us, 2ms or 1.5s",
	[SPEC_RATE] = "a rate in bit/s such as 100M or 2.5G",
	[SPEC_CHANCE] = "a chance such as 1% or 0.01",
	[SPEC_RANGE] = "a number or a range such as 5-9",
	[SPEC_TEXT] = "a shorter text",
};

static bool set(const struct spec_field *f, void *to, const char *value)
{
	switch (f->type) {
	case SPEC_FLAG:
		*(bool *)to = true;
		return true;
	case SPEC_TEXT:
		return *value && snprintf(to, SPEC_TEXT_MAX, "%s", value) < SPEC_TEXT_MAX;
	case SPEC_RANGE:
		return set_range(f, to, value);
	case SPEC_NAME:
		return set_name(f, to, value);
	case SPEC_OTHER:
		return f->parse(to, value);
	case SPEC_TIME:
	case SPEC_RATE:
	case SPEC_CHANCE:
		return set_scaled(f, to, value);
	default:
		return set_number(f, to, value);
	}
}

static int refuse_value(const struct spec_field *f, const char *word, char *err, size_t err_len)
{
	const char *what = f->wants ? f->wants : wants[f->type];

	if (f->max)
		return spec_refuse(err, err_len, "%.60s: %s takes %s up to %llu", word, f->name, what,
				   (unsigned long long)f->max);
	return spec_refuse(err, err_len, "%.60s: %s takes %s", word, f->name, what);
}

/* Lists the valid keys. */
static int refuse_key(const struct spec_field *fields, u32 n, const char *word, int len, char *err, size_t err_len)
{
	char keys[400] = "";
	size_t at = 0;
	u32 i;

	for (i = 0; i < n && at < sizeof(keys); i++)
		if (fields[i].name)
			at += (size_t)snprintf(keys + at, sizeof(keys) - at, " %s%s", fields[i].name,
					       fields[i].type == SPEC_FLAG ? "" : "=");
	return spec_refuse(err, err_len, "%.60s: there is no \"%.*s\"; there %s%s", word, len, word,
			   at ? "are:" : "are no keys", keys);
}

static bool is_zero(const struct spec_field *f, const void *value)
{
	return f->type == SPEC_CHANCE || f->type == SPEC_U32 ? !*(const u32 *)value : !*(const u64 *)value;
}

int spec_word(const struct spec_field *fields, u32 n, void *to, u64 *seen, const char *word, char *err, size_t err_len)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);
	void *value;
	u32 i;

	for (i = 0; i < n && (!fields[i].name || strncmp(fields[i].name, word, len) || fields[i].name[len]); i++)
		;
	if (i == n)
		return refuse_key(fields, n, word, (int)min(len, (size_t)40), err, err_len);
	if (*seen & BIT_ULL(i))
		return spec_refuse(err, err_len, "%.60s: duplicate %s", word, fields[i].name);
	if (!eq != (fields[i].type == SPEC_FLAG))
		return spec_refuse(err, err_len, "%.60s: %s takes %s value", word, fields[i].name, eq ? "no" : "a");
	value = (char *)to + fields[i].offset;
	if (!set(&fields[i], value, eq ? eq + 1 : ""))
		return refuse_value(&fields[i], word, err, err_len);
	if (fields[i].nonzero && is_zero(&fields[i], value))
		return spec_refuse(err, err_len, "%.60s: it would never fire", word);
	*seen |= BIT_ULL(i);
	return 0;
}

int spec_words(const struct spec_field *fields, u32 n, void *to, u64 *seen, const struct spec_words *w, u32 first,
	       char *err, size_t err_len)
{
	int rc = 0;
	u32 i;

	for (i = first; i < w->n && !rc; i++)
		rc = spec_word(fields, n, to, seen, w->word[i], err, err_len);
	return rc;
}

void spec_take(struct spec_field *to, const struct spec_field *from, u32 n, u64 taken)
{
	u32 i;

	for (i = 0; i < n; i++) {
		to[i] = from[i];
		if (!(taken & BIT_ULL(i)))
			to[i].name = NULL;
	}
}

int spec_keys(const struct spec_field *fields, u32 n, const char *action, u64 given, u64 required, char *err,
	      size_t err_len)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (required & ~given & BIT_ULL(i))
			return spec_refuse(err, err_len, "%s: it needs %s=", action, fields[i].name);
	return 0;
}

static const char *row_name(const void *rows, u32 i, size_t size)
{
	return *(const char *const *)((const u8 *)rows + i * size);
}

const void *spec_row(const void *rows, u32 n, size_t size, const char *name)
{
	u32 i;

	for (i = 0; i < n && row_name(rows, i, size); i++)
		if (!strcmp(row_name(rows, i, size), name))
			return (const u8 *)rows + i * size;
	return NULL;
}

size_t spec_names(char *text, size_t at, size_t len, const void *rows, u32 n, size_t size)
{
	u32 i;

	for (i = 0; i < n && row_name(rows, i, size) && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%s%s", at ? " " : "", row_name(rows, i, size));
	return at;
}
