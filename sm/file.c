// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a configuration file: partitions, or forwarding tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sm/partition.h"

#define FILE_MAX (16u << 20)

static char *file_read(const char *path, char *err, size_t err_len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text;
	size_t n;

	if (!f || fstat(fileno(f), &st)) {
		snprintf(err, err_len, "%s: %s", path, strerror(errno));
		if (f)
			fclose(f);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		snprintf(err, err_len, "%s: expected a regular file of at most 16 MiB", path);
		fclose(f);
		return NULL;
	}
	text = calloc(1, (size_t)st.st_size + 1);
	n = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
	if (!text || ferror(f))
		snprintf(err, err_len, "%s: %s", path, strerror(errno ?: ENOMEM));
	if (text && ferror(f)) {
		free(text);
		text = NULL;
	} else if (text && strlen(text) != n) {
		snprintf(err, err_len, "%s: not a text file", path);
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

char *sm_file_read(const char *path, const char *place, char *err, size_t err_len)
{
	char why[400], *text = file_read(path, why, sizeof(why));

	if (!text)
		snprintf(err, err_len, "%s%s%s", place ?: "", place ? ": " : "", why);
	return text;
}
