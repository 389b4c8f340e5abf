// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin top: live rates of links. */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/lib/types.h"

struct rate {
	char name[80];
	const char *state;
	double out, in, packets; /* Gb/s, Gb/s, packets per second */
};

/* A sample: rows of name, state, words out and in, packets out and in. */
static json_t *top_sample(void)
{
	return cli_request_all(json_pack("{s:s}", "command", "rates"));
}

/* 0 for a port that is new, or whose counters were reset, as those of a daemon that was started again. */
static double row_diff(const json_t *before, const json_t *after, size_t column)
{
	json_int_t then = json_integer_value(json_array_get(before, column)),
		   now = json_integer_value(json_array_get(after, column));

	return before && now > then ? (double)(now - then) : 0;
}

static int top_busier(const void *a, const void *b)
{
	const struct rate *x = a, *y = b;

	return x->packets < y->packets ? 1 : x->packets > y->packets ? -1 : strcmp(x->name, y->name);
}

/* The rates between two samples, in descending order; NULL: none. */
static struct rate *top_rates(const json_t *before, const json_t *after, double dt)
{
	size_t n = json_array_size(after), i;
	struct rate *r = calloc(n ? n : 1, sizeof(*r));
	json_t *by_name = json_object(), *row;

	if (!r || !by_name)
		cli_fail(CLI_ERROR, "out of memory");
	json_array_foreach(before, i, row) json_object_set(by_name, json_string_value(json_array_get(row, 0)), row);
	json_array_foreach(after, i, row)
	{
		const json_t *old = json_object_get(by_name, json_string_value(json_array_get(row, 0)));

		snprintf(r[i].name, sizeof(r[i].name), "%s", json_string_value(json_array_get(row, 0)));
		r[i].state = json_string_value(json_array_get(row, 1));
		r[i].out = row_diff(old, row, 2) * 32 / dt / 1e9;
		r[i].in = row_diff(old, row, 3) * 32 / dt / 1e9;
		r[i].packets = (row_diff(old, row, 4) + row_diff(old, row, 5)) / dt;
	}
	json_decref(by_name);
	qsort(r, n, sizeof(*r), top_busier);
	return r;
}

/* Prints a line, truncated to the terminal's width (0: no limit); with a port's state @at this column (0: none). */
static void top_line(int columns, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void top_line(int columns, size_t at, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (columns > 0 && columns < (int)sizeof(text))
		text[columns] = 0;
	cli_line(text, at);
}

/* @rows: lines for ports, 0: all. */
static void print_rates(const json_t *before, const json_t *after, double dt, size_t rows, int columns)
{
	struct rate *r = top_rates(before, after, dt);
	size_t n = json_array_size(after), i;
	int width = 28;

	for (i = 0; i < n && (!rows || i < rows); i++)
		width = max(width, (int)strlen(r[i].name));
	if (columns) /* the rates are visible even if the name is long */
		width = min(width, max(columns - 48, 8));
	top_line(columns, 0, "%-*s %-7s %9s %9s %11s", width, "port", "state", "out Gb/s", "in Gb/s", "packets/s");
	for (i = 0; i < n && (!rows || i < rows); i++)
		top_line(columns, (size_t)width + 1, "%-*.*s %-7s %9.3f %9.3f %11.0f", width, width, r[i].name,
			 r[i].state, r[i].out, r[i].in, r[i].packets);
	if (rows && n > rows)
		top_line(columns, 0, "... and %zu %s more", n - rows, plural(n - rows, "port", "ports"));
	free(r);
}

static struct termios top_cooked;

static void top_restore(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &top_cooked);
}

static void top_signal(int sig)
{
	top_restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Reads keys immediately, without echo, until exit. False: not a terminal. */
static bool top_keys(void)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &top_cooked))
		return false;
	raw = top_cooked;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	atexit(top_restore);
	signal(SIGINT, top_signal);
	signal(SIGTERM, top_signal);
	return !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Waits for @seconds. True: q was typed. */
static bool top_wait(double seconds, bool keys)
{
	double end = cli_seconds() + seconds, left;
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	while ((left = end - cli_seconds()) > 0) {
		if (!keys) {
			cli_sleep(left);
			continue;
		}
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return true;
	}
	return false;
}

int cli_top(int argc, char **argv)
{
	double interval = 1, count = 0, then, now;
	bool tty = isatty(STDOUT_FILENO), keys;
	struct winsize size = { .ws_row = 0 };
	json_t *before, *after;
	int i;

	for (i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--interval"))
			interval = cli_positive(argv[i], argv[i + 1], 3600);
		else if (!strcmp(argv[i], "-n"))
			count = cli_positive(argv[i], argv[i + 1], 1e9);
		else
			cli_fail(CLI_USAGE, "usage: muslin top [--name FABRIC] [-n COUNT] [--interval SECONDS]");
	}
	keys = tty && top_keys();
	before = top_sample();
	then = cli_seconds();
	while (!fflush(stdout) && !top_wait(interval, keys)) {
		after = top_sample();
		now = cli_seconds();
		if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
			size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
		if (tty)
			printf("\033[H\033[2J");
		/* Three lines are used by the header, the count of omitted ports, and the cursor. */
		print_rates(before, after, now - then, tty ? (size_t)max(size.ws_row - 3, 1) : 0,
			    tty ? size.ws_col : 0);
		json_decref(before);
		before = after;
		then = now;
		if (count > 0 && --count <= 0)
			break;
	}
	json_decref(before);
	return CLI_OK;
}
