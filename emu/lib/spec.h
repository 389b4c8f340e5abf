/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of the form key=value, as in commands: a table describes each key and the field for its value. */
#ifndef MUSLIN_LIB_SPEC_H
#define MUSLIN_LIB_SPEC_H

#include "emu/lib/types.h"

#define SPEC_WORDS_MAX 64

enum spec_type {
	SPEC_FLAG, /* bool; no value */
	SPEC_U8,   /* numbers, decimal or 0x..., up to max (0: maximum of the type) */
	SPEC_U16,
	SPEC_U32,
	SPEC_U64,
	SPEC_TIME,   /* u64 ns: "50us", "1.5ms", "2s" */
	SPEC_RATE,   /* u64 bit/s: "100M", "2.5G" */
	SPEC_CHANCE, /* u32 in 2^-32: "1%", "0.01" */
	SPEC_RANGE,  /* u32[2]: "5" or "5-9" */
	SPEC_TEXT,   /* char[SPEC_TEXT_MAX] */
	SPEC_NAME,   /* u8: index into names */
	SPEC_OTHER,  /* converted by parse() */
};
#define SPEC_TEXT_MAX 128

struct spec_field {
	const char *name;
	enum spec_type type;
	size_t offset;
	u64 max;
	bool (*parse)(void *to, const char *value); /* SPEC_OTHER */
	const char *names;                          /* SPEC_NAME: "zero|one|two" */
	const char *wants;                          /* SPEC_NAME, SPEC_OTHER: description of a valid value */
	bool nonzero;                               /* 0 is invalid: a fault would never fire */
};

#define SPEC_FIELD(name_, type_, strct, member, ...)                                                      \
	{                                                                                                 \
		.name = (name_), .type = (type_), .offset = offsetof(struct strct, member), ##__VA_ARGS__ \
	}

/* The words of a line. Quotes ("..." or '...') enclose blanks. */
struct spec_words {
	char text[SPEC_WORDS_MAX * 64];
	char *word[SPEC_WORDS_MAX];
	u32 n;
};

/* Splits @text. 0, or -EINVAL and a message in @err: too long, or unterminated quote. */
int spec_split(struct spec_words *w, const char *text, char *err, size_t err_len);
/* What encloses @word in a line, before and after it: "" without blanks. */
const char *spec_quote(const char *word);
/*
 * Stores the value of one word in @to according to the table of @n <= 64 fields, and sets its bit in *seen. Fields
 * without name do not exist. 0, or -EINVAL and a message in @err that names the word: unknown key (with the valid
 * ones), value missing or invalid, given twice.
 */
int spec_word(const struct spec_field *fields, u32 n, void *to, u64 *seen, const char *word, char *err, size_t err_len);
/* The same for all words from @first on. */
int spec_words(const struct spec_field *fields, u32 n, void *to, u64 *seen, const struct spec_words *w, u32 first,
	       char *err, size_t err_len);
/* Copies @n fields, without the names of those whose bit is not in @taken: they do not exist. */
void spec_take(struct spec_field *to, const struct spec_field *from, u32 n, u64 taken);
/* Checks that @given has all fields that @action needs (@required: bits of fields); or -EINVAL and a message. */
int spec_keys(const struct spec_field *fields, u32 n, const char *action, u64 given, u64 required, char *err,
	      size_t err_len);
/*
 * The row named @name in a table of @n rows of @size bytes, each beginning with its name; a row without name
 * terminates the table. NULL: none.
 */
const void *spec_row(const void *rows, u32 n, size_t size, const char *name);
#define SPEC_ROW(table, name) spec_row(table, ARRAY_SIZE(table), sizeof((table)[0]), name)
/* Appends the names of the rows, separated by blanks, after the @at bytes of text in @text of @len bytes.
 * Returns the length of the text. */
size_t spec_names(char *text, size_t at, size_t len, const void *rows, u32 n, size_t size);
#define SPEC_NAMES(text, at, len, table) spec_names(text, at, len, table, ARRAY_SIZE(table), sizeof((table)[0]))
/* Formats the error message. Returns -EINVAL. */
int spec_refuse(char *err, size_t err_len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* For SPEC_OTHER: a number up to @max; false: invalid. */
bool spec_number(const char *text, u64 max, u64 *value);

#endif
