// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs sequences of random operations, each in a world of its own. A sequence that fails is minimised (delta debugging)
 * and written to a file, which --replay runs again.
 *
 * usage: chaos_test [--seed N] [--ops N] [--seconds N] [--length N] [--without KIND]... [--replay FILE [--verbose]]
 * [--out FILE]
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rxe/chaos/chaos_internal.h"

#define BATCH      64 /* sequences that a process runs */
#define HUNG       5  /* seconds after which a sequence has failed */
#define EXIT_WRONG 3
#ifdef __SANITIZE_ADDRESS__
#define OPS 30000 /* of the same sequences: make test runs both */
#else
#define OPS 100000
#endif

/* Shared with the process that runs sequences, so that its position is known when it crashes. */
struct shared {
	struct chaos_stats stats;
	u64 seed;
	u32 at; /* operation */
	char text[600];
};

static struct shared *shared;
struct chaos_stats *chaos_stats;

void chaos_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(shared->text, sizeof(shared->text), fmt, ap);
	va_end(ap);
	_exit(EXIT_WRONG);
}

static void sequence_run(const struct chaos_list *l)
{
	u32 i;

	chaos_world_open(l->seed);
	chaos_model_open(l->seed);
	for (i = 0; i < l->n; i++) {
		shared->at = i;
		chaos_model_run(&l->op[i]);
	}
	shared->at = l->n;
	chaos_model_close();
	chaos_world_close();
	chaos_stats->sequences++;
}

static u64 seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec;
}

/* Result of a child process; shared->text has the first failure. False: no failure. */
static bool child_failed(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	if (WIFSIGNALED(status))
		snprintf(shared->text, sizeof(shared->text), "%s",
			 WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != EXIT_WRONG)
		snprintf(shared->text, sizeof(shared->text), "the process exits with %d (a sanitizer?)",
			 WEXITSTATUS(status));
	return true;
}

static pid_t child_start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	return pid;
}

static bool list_fails(const struct chaos_list *l, bool quiet)
{
	pid_t pid = child_start();

	if (!pid) {
		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		alarm(HUNG);
		sequence_run(l);
		_exit(0);
	}
	return child_failed(pid);
}

/* A copy of @l without @n operations from @at. */
static struct chaos_list without(const struct chaos_list *l, u32 at, u32 n)
{
	struct chaos_list s = { .seed = l->seed, .n = l->n - n, .op = malloc((l->n - n + 1) * sizeof(*s.op)) };

	if (!s.op)
		abort();
	memcpy(s.op, l->op, at * sizeof(*s.op));
	memcpy(s.op + at, l->op + at + n, (l->n - at - n) * sizeof(*s.op));
	return s;
}

/* Removes parts, from half of the list down to one operation, while the list still fails. */
static void shrink(struct chaos_list *l)
{
	u32 part, at, before;

	do {
		before = l->n;
		for (part = l->n / 2; part; part /= 2)
			for (at = 0; at + part <= l->n;) {
				struct chaos_list s = without(l, at, part);

				if (list_fails(&s, true)) {
					chaos_list_free(l);
					*l = s;
				} else {
					chaos_list_free(&s);
					at += part;
				}
			}
	} while (l->n < before);
}

static void report(struct chaos_list *l, const char *out)
{
	u32 i, n = l->n;

	printf("seed %" PRIu64 ", operation %u of %u: %s\n", (uint64_t)l->seed, shared->at, n, shared->text);
	l->n = min(n, shared->at + 1); /* later operations were not executed */
	if (!list_fails(l, true))
		l->n = n;
	shrink(l);
	list_fails(l, false);
	printf("the shortest sequence has %u operations: %s\n", l->n, shared->text);
	for (i = 0; i < l->n; i++)
		printf("  %s %u %#" PRIx64 "\n", chaos_kind_name(l->op[i].kind), l->op[i].conn, (uint64_t)l->op[i].r);
	if (chaos_list_save(l, out))
		perror(out);
	else
		printf("run it again: chaos_test --replay %s\n", out);
}

static bool batch_fails(u64 seed, u32 length)
{
	pid_t pid = child_start();
	u32 i;

	if (pid)
		return child_failed(pid);
	for (i = 0; i < BATCH; i++) {
		struct chaos_list l;

		alarm(HUNG);
		shared->seed = seed + i;
		chaos_list_make(&l, seed + i, length);
		sequence_run(&l);
		chaos_list_free(&l);
	}
	exit(0); /* runs the leak check */
}

static int replay(const char *path)
{
	struct chaos_list l;
	int err = chaos_list_load(&l, path);
	bool fails;

	if (err) {
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
		return 2;
	}
	fails = list_fails(&l, false);
	chaos_list_free(&l);
	if (fails)
		printf("operation %u: %s\n", shared->at, shared->text);
	return fails;
}

static int run(u64 seed, u64 ops, u64 seconds, u32 length, const char *out)
{
	u64 end = seconds_now() + seconds;
	bool failed = false;

	while (!failed && (seconds ? seconds_now() < end : chaos_stats->ops < ops)) {
		failed = batch_fails(seed, length);
		seed += BATCH;
	}
	if (failed) {
		struct chaos_list l;

		chaos_list_make(&l, shared->seed, length);
		report(&l, out);
		chaos_list_free(&l);
	}
	printf("%" PRIu64 " sequences, %" PRIu64 " operations: %" PRIu64 " requests and %" PRIu64
	       " receives posted, %" PRIu64 " completions, %" PRIu64 " of them errors, %" PRIu64 " programs killed%s\n",
	       (uint64_t)chaos_stats->sequences, (uint64_t)chaos_stats->ops, (uint64_t)chaos_stats->requests,
	       (uint64_t)chaos_stats->receives, (uint64_t)chaos_stats->completions, (uint64_t)chaos_stats->errors,
	       (uint64_t)chaos_stats->kills, failed ? ", and a failure" : ", all clean");
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "seed", 1, NULL, 's' },    { "ops", 1, NULL, 'n' },
						 { "seconds", 1, NULL, 't' }, { "length", 1, NULL, 'l' },
						 { "replay", 1, NULL, 'r' },  { "out", 1, NULL, 'o' },
						 { "verbose", 0, NULL, 'v' }, { "without", 1, NULL, 'w' },
						 { NULL, 0, NULL, 0 } };
	u64 seed = 1, ops = OPS, seconds = 0;
	const char *file = NULL, *out = "chaos.ops";
	u32 length = 300;
	int c;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	chaos_stats = &shared->stats;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			ops = strtoull(optarg, NULL, 0);
		else if (c == 't')
			seconds = strtoull(optarg, NULL, 0);
		else if (c == 'l')
			length = (u32)strtoul(optarg, NULL, 0);
		else if (c == 'r')
			file = optarg;
		else if (c == 'o')
			out = optarg;
		else if (c == 'v')
			chaos.verbose = true;
		else if (c == 'w' && !chaos_kind_without(optarg))
			continue;
		else
			return 2;
	}
	return file ? replay(file) : run(seed, ops, seconds, length, out);
}
