/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of the form key=value, as commands take them: a table says what each key is and where its value goes. */
#ifndef MUSLIN_LIB_SPEC_H
#define MUSLIN_LIB_SPEC_H

#include "emu/lib/types.h"

#define SPEC_WORD_MAX  512
#define SPEC_WORDS_MAX 64

enum spec_type {
	SPEC_FLAG, /* bool; no value */
	SPEC_U8,   /* numbers, decimal or 0x..., up to max (0: the type's own) */
	SPEC_U16,
	SPEC_U32,
	SPEC_U64,
	SPEC_TIME,   /* u64 ns: "50us", "1.5ms", "2s" */
	SPEC_RATE,   /* u64 bit/s: "100M", "2.5G" */
	SPEC_CHANCE, /* u32 in 2^-32: "1%", "0.01" */
	SPEC_RANGE,  /* u32[2]: "5" or "5-9" */
	SPEC_TEXT,   /* char[SPEC_TEXT_MAX] */
	SPEC_NAME,   /* u8: which of names */
	SPEC_OTHER,  /* by parse() */
};
#define SPEC_TEXT_MAX 128

struct spec_field {
	const char *name;
	enum spec_type type;
	size_t offset;
	u64 max;
	bool (*parse)(void *to, const char *value); /* SPEC_OTHER */
	const char *names;                          /* SPEC_NAME: "zero|one|two" */
	const char *wants;                          /* SPEC_NAME, SPEC_OTHER: what a value looks like */
	bool nonzero;                               /* a fault would never fire with 0 */
};

#define SPEC_FIELD(name_, type_, strct, member, ...)                                                      \
	{                                                                                                 \
		.name = (name_), .type = (type_), .offset = offsetof(struct strct, member), ##__VA_ARGS__ \
	}

/* The words of a line. A word may hold blanks between quotes ("..." or '...'). */
struct spec_words {
	char text[SPEC_WORDS_MAX * 64];
	char *word[SPEC_WORDS_MAX];
	u32 n;
};

/* Splits @text. 0, or -EINVAL and one line in @err: too long, or a quote that does not end. */
int spec_split(struct spec_words *w, const char *text, char *err, size_t err_len);
/*
 * Puts one word into @to by the table of @n <= 64 fields, of which those without a name do not exist, and its bit into *seen. 0, or
 * -EINVAL and one line in @err that names the word: unknown key (with those that there are), value missing or wrong, said twice.
 */
int spec_word(const struct spec_field *fields, u32 n, void *to, u64 *seen, const char *word, char *err, size_t err_len);
/* The same with all words from @first on. */
int spec_words(const struct spec_field *fields, u32 n, void *to, u64 *seen, const struct spec_words *w, u32 first,
	       char *err, size_t err_len);
/* Copies @n fields. Those whose bit is not in @taken lose their name: they do not exist. */
void spec_take(struct spec_field *to, const struct spec_field *from, u32 n, u64 taken);
/* @given has all that @action needs (@required: bits of fields); or -EINVAL and a line. */
int spec_keys(const struct spec_field *fields, u32 n, const char *action, u64 given, u64 required, char *err,
	      size_t err_len);
/*
 * Of a table of @n rows of @size bytes, each of which begins with its name, or which a row without one ends: the row of that name,
 * NULL: there is none.
 */
const void *spec_row(const void *rows, u32 n, size_t size, const char *name);
#define SPEC_ROW(table, name) spec_row(table, ARRAY_SIZE(table), sizeof((table)[0]), name)
/* Their names behind the @at bytes of text that are in @text of @len bytes, with blanks between. How many bytes are there then. */
size_t spec_names(char *text, size_t at, size_t len, const void *rows, u32 n, size_t size);
#define SPEC_NAMES(text, at, len, table) spec_names(text, at, len, table, ARRAY_SIZE(table), sizeof((table)[0]))
/* Writes the line, which names what is wrong. -EINVAL. */
int spec_refuse(char *err, size_t err_len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* For SPEC_OTHER: a number up to @max; false: it is none. */
bool spec_number(const char *text, u64 max, u64 *value);

#endif
