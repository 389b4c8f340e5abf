// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin up and down: start a daemon and wait for its subnet, and stop one. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/lib/types.h"

#define POLL_SECONDS 0.02
#define UP_PATIENCE  30.0 /* seconds without a further Active port */
#define DOWN_WAIT    10   /* seconds */
#define SHOWN_HOSTS  16

static bool up_before;                  /* the fabric was up before: this command fails */
static volatile sig_atomic_t up_signal; /* that has interrupted `muslin up` */
static bool up_killed; /* a starting process was killed: its daemon, which is ours, may run nevertheless */

static void on_signal(int sig)
{
	up_signal = sig;
}

/* Those that the caller ignores, as a shell does for background commands, remain ignored. */
static void up_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction old;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &(struct sigaction){ .sa_handler = on_signal }, NULL);
}

static bool has_option(int argc, char **argv, const char *option)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], option))
			return true;
	}
	return false;
}

static pid_t daemon_spawn(int argc, char **argv)
{
	static const char *const places[] = { "muslind", "../sbin/muslind", NULL };
	char program[RUNDIR_PATH_MAX + 64];
	pid_t pid;

	cli_beside(program, sizeof(program), places);
	setenv("MUSLIN_NAME", cli_run.name, 1);
	fflush(stdout);
	pid = has_option(argc, argv, "--foreground") ? 0 : fork();
	if (pid < 0)
		cli_fail(CLI_ERROR, "fork: %s", strerror(errno));
	if (!pid) {
		argv[0] = program;
		execv(program, argv);
		cli_fail(CLI_ERROR, "%s: %s", program, strerror(errno));
	}
	return pid;
}

/* Its exit status, when it runs in the background or has failed. */
static int daemon_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	up_killed = !up_before;
	if (!up_signal)
		fprintf(stderr, "muslin: the daemon was killed by signal %d\n", WTERMSIG(status));
	return CLI_ERROR;
}

/* Removes "--shards N" or "--shards=N" from the arguments. Returns the number; 0: not given. */
static unsigned int take_shards(int *argc, char **argv)
{
	unsigned int n = 0;
	int i, k, words;
	char *end;

	for (i = 1; i < *argc; i++) {
		const char *value = NULL;

		words = 0;
		if (!strcmp(argv[i], "--shards")) {
			if (i + 1 == *argc)
				cli_fail(CLI_USAGE, "--shards: missing number");
			value = argv[i + 1];
			words = 2;
		} else if (!strncmp(argv[i], "--shards=", 9)) {
			value = argv[i] + 9;
			words = 1;
		}
		if (!words)
			continue;
		n = (unsigned int)strtoul(value, &end, 10);
		if (end == value || *end || n < 1 || n > CLI_SHARDS_MAX)
			cli_fail(CLI_USAGE, "--shards %s: not a number from 1 to %d", value, CLI_SHARDS_MAX);
		for (k = i; k + words <= *argc; k++)
			argv[k] = argv[k + words];
		*argc -= words;
		i--;
	}
	return n;
}

/* A daemon that has got SIGTERM. */
struct ending {
	pid_t pid;
	int process; /* a pidfd; -1 if not supported */
	double start;
};

static struct ending down_begin(pid_t pid)
{
	struct ending e = { pid, (int)syscall(SYS_pidfd_open, pid, 0), cli_seconds() };

	kill(pid, SIGTERM);
	return e;
}

/*
 * Its pid file goes first: until the last thread is gone, which may have to wait for the end of AIO, the process has
 * open files in the run directory, whose file system is busy. Waits until the end of @patience, in seconds since the
 * start.
 */
static void down_wait_process(const struct ending *e, double patience)
{
	struct pollfd p = { .fd = e->process, .events = POLLIN };
	double left = e->start + patience - cli_seconds();

	if (e->process < 0)
		return;
	poll(&p, 1, left > 0 ? (int)(left * 1000) : 0);
	close(e->process);
}

/* Waits for the end of a daemon, and kills one that does not end. False: it was killed. */
static bool down_wait(const struct rundir *r, const struct ending *e)
{
	bool ended;

	while (rundir_daemon(r) == e->pid && cli_seconds() - e->start < DOWN_WAIT)
		cli_sleep(POLL_SECONDS);
	ended = rundir_daemon(r) != e->pid;
	if (!ended) {
		kill(e->pid, SIGKILL);
		fprintf(stderr, "muslin: fabric %s did not exit within %d s and was killed\n", r->name, DOWN_WAIT);
		cli_sleep(POLL_SECONDS);
	}
	down_wait_process(e, ended ? DOWN_WAIT : DOWN_WAIT + 1);
	if (!ended || !rundir_daemon(r)) /* it had been killed, and was still exiting */
		rundir_remove(r);
	return ended;
}

static void stop_shard(unsigned int shard)
{
	struct rundir r;
	struct ending e;
	pid_t pid;

	cli_shard_rundir(shard, &r);
	pid = rundir_daemon(&r);
	if (!pid)
		return;
	e = down_begin(pid);
	down_wait(&r, &e);
}

/* Starts the daemons [from, to) of @n at once. Their exit status; those that have started are in *@started. */
static int start_shards(unsigned int from, unsigned int to, unsigned int n, int argc, char **argv,
			unsigned long long *started)
{
	char **with = calloc((size_t)argc + 3, sizeof(char *)), which[32];
	int status = 0, failed;
	pid_t pid[CLI_SHARDS_MAX];
	unsigned int i;

	if (!with)
		cli_fail(CLI_ERROR, "out of memory");
	with[0] = argv[0];
	with[1] = "--shard";
	with[2] = which;
	for (i = from; i < to; i++) {
		snprintf(which, sizeof(which), "%u/%u", i, n);
		memcpy(with + 3, argv + 1, (size_t)argc * sizeof(char *));
		pid[i] = daemon_spawn(argc + 2, with);
	}
	for (i = from; i < to; i++) {
		failed = daemon_wait(pid[i]);
		status = failed ? failed : status;
		*started |= failed ? 0 : 1ull << i;
	}
	free(with);
	return status;
}

/* The first one, which says what is wrong with the command line, and then the others. */
static int start_all_shards(unsigned int n, int argc, char **argv)
{
	unsigned long long started = 0;
	int status = start_shards(0, 1, n, argc, argv, &started);
	unsigned int i;

	if (!status)
		status = start_shards(1, n, n, argc, argv, &started);
	for (i = n; status && i--;) /* the first one last */
		if (started & 1ull << i || up_killed)
			stop_shard(i);
	return status;
}

/* Ends by the signal; if the daemons are @ours, takes them down first. */
static void up_interrupted(bool ours)
{
	char *down[] = { "down", NULL };

	signal(up_signal, SIG_DFL);
	if (ours && rundir_daemon(&cli_run)) {
		fprintf(stderr, "muslin: interrupted; takes fabric %s down\n", cli_run.name);
		cli_down(1, down);
	}
	raise(up_signal);
}

static void start_daemons(int argc, char **argv)
{
	unsigned int n = take_shards(&argc, argv);
	bool ends =
		has_option(argc, argv, "--help") || has_option(argc, argv, "-h") || has_option(argc, argv, "--version");
	int status;

	if (n > 1 && has_option(argc, argv, "--foreground"))
		cli_fail(CLI_USAGE, "--shards starts several daemons, which cannot all be in the foreground");
	up_before = rundir_daemon(&cli_run) != 0;
	up_catch_signals();
	status = n > 1 && !ends ? start_all_shards(n, argc, argv) : daemon_wait(daemon_spawn(argc, argv));
	if (up_signal)
		up_interrupted(!status || up_killed);
	if (status || ends)
		exit(status);
}

static void print_hosts(void)
{
	json_t *shown = cli_request_all(json_pack("{s:s}", "command", "show")), *n;
	size_t i;

	json_array_foreach(json_object_get(shown, "nodes"), i, n)
	{
		char id[24];
		const char *ip = json_string_value(json_array_get(json_object_get(n, "ips"), 0));

		if (!strcmp(cli_text(n, "type"), "ca"))
			printf("  %-12s %-9s %s\n", cli_text(n, "name"), cli_node_id(n, id, sizeof(id)), ip ?: "");
	}
	json_decref(shown);
}

static void up_fail(const json_t *st)
{
	json_t *waiting = json_object_get(st, "waiting"), *w;
	char text[512] = "";
	size_t i, at = 0;

	json_array_foreach(waiting, i, w) at +=
		(size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", json_string_value(w));
	cli_fail(CLI_ERROR,
		 "the subnet is not up: %lld of %lld ports are Active, not %s...; see `muslin log --name %s`; the "
		 "fabric runs until `muslin down --name %s`",
		 cli_number(st, "active"), cli_number(st, "ports"), text, cli_run.name, cli_run.name);
}

/* Ports of a daemon that has ended will not be Active. */
static void up_check_daemons(void)
{
	struct rundir r;
	unsigned int i;

	for (i = 0; i < cli_shards(); i++) {
		cli_shard_rundir(i, &r);
		if (!rundir_daemon(&r))
			cli_fail(CLI_ERROR,
				 "daemon %s has ended; see `muslin log --name %s`; the others run until `muslin down "
				 "--name %s`",
				 r.name, cli_run.name, cli_run.name);
	}
}

/* Prints a progress line on a terminal. */
static void up_progress(const json_t *st, double start)
{
	static double last;

	if (!isatty(STDERR_FILENO) || (cli_seconds() - start < 1 && st) || (st && cli_seconds() - last < 0.3))
		return;
	last = cli_seconds();
	if (st)
		fprintf(stderr, "\r%lld of %lld ports are Active ", cli_number(st, "active"), cli_number(st, "ports"));
	else
		fprintf(stderr, "\r%40s\r", "");
}

/* Polls until all cabled ports are Active; fails without progress for UP_PATIENCE. */
static json_t *wait_up(void)
{
	double start = cli_seconds(), last_change = start, requested, took;
	long long active = -1;
	json_t *st;

	for (;;) {
		requested = cli_seconds();
		st = cli_request_all(json_pack("{s:s}", "command", "status"));
		if (json_is_true(json_object_get(json_object_get(st, "manager"), "up")) &&
		    cli_number(st, "active") == cli_number(st, "ports")) {
			up_progress(NULL, start);
			return st;
		}
		up_progress(st, start);
		if (up_signal)
			up_interrupted(true);
		up_check_daemons();
		if (cli_number(st, "active") != active)
			last_change = cli_seconds();
		active = cli_number(st, "active");
		if (cli_seconds() - last_change > UP_PATIENCE)
			up_fail(st);
		took = cli_seconds() - requested; /* the daemons' time, a tenth of which they may spend on answers */
		cli_sleep(took < POLL_SECONDS / 10 ? POLL_SECONDS
			  : took < POLL_SECONDS    ? 10 * took
						   : 10 * POLL_SECONDS);
		json_decref(st);
	}
}

/* The master subnet manager: on a host of this fabric, beyond a trunk, or the embedded one, whose port has no link. */
static void print_manager_place(const json_t *st, double seconds)
{
	const json_t *sm = json_object_get(st, "sm");

	printf("; subnet up after %.2f s, its manager is ", seconds);
	if (json_object_get(sm, "host"))
		printf("on %s\n", cli_text(sm, "host"));
	else if (json_is_object(sm))
		printf("beyond a trunk, lid %lld\n", cli_number(sm, "lid"));
	else
		printf("on %s, whose port has no link\n", cli_text(json_object_get(st, "manager"), "host"));
}

int cli_up(int argc, char **argv)
{
	double start = cli_seconds();
	long long hosts, switches, links;
	json_t *st;

	start_daemons(argc, argv);
	st = cli_request_all(json_pack("{s:s}", "command", "status"));
	if (json_is_object(json_object_get(st, "manager"))) {
		json_decref(st);
		st = wait_up();
	}
	hosts = cli_number(st, "hosts");
	switches = cli_number(st, "switches");
	links = cli_number(st, "links");
	printf("fabric %s: %lld %s, %lld %s, %lld %s", cli_run.name, hosts, plural(hosts, "host", "hosts"), switches,
	       plural(switches, "switch", "switches"), links, plural(links, "link", "links"));
	if (json_is_object(json_object_get(st, "manager")))
		print_manager_place(st, cli_seconds() - start);
	else if (json_is_string(json_object_get(st, "manager_shard")))
		printf("; its subnet manager is in shard %s\n", cli_text(st, "manager_shard"));
	else if (json_is_true(json_object_get(st, "trunks")))
		printf("; no embedded subnet manager: a manager beyond a trunk, or on a host, configures the subnet\n");
	else if (cli_number(st, "ports"))
		printf("; no subnet manager yet: muslin run HOST -- muslin-sm, or opensm, see muslin(1)\n");
	else
		printf("\n");
	if (hosts <= SHOWN_HOSTS)
		print_hosts();
	json_decref(st);
	return CLI_OK;
}

/*
 * Ends the daemons, all at once: one that ends later than others is busy with their links, which go down; the subnet
 * manager computes routes without them. @first: the first daemon, which is not awaited; its pid is 0 if it is not up. A
 * daemon that has died before is no error. False: one had to be killed.
 */
static bool down_shards(unsigned int n, struct ending *first, unsigned int *up)
{
	static struct rundir r[CLI_SHARDS_MAX];
	struct ending e[CLI_SHARDS_MAX] = { 0 };
	bool ended = true;
	unsigned int i;
	pid_t pid;

	for (i = 1; i < n; i++) {
		cli_shard_rundir(i, &r[i]);
		pid = rundir_daemon(&r[i]);
		*up += pid != 0;
		if (pid)
			e[i] = down_begin(pid);
		else
			rundir_remove(&r[i]);
	}
	if (first->pid)
		*first = down_begin(first->pid);
	for (i = 1; i < n; i++)
		if (e[i].pid && !down_wait(&r[i], &e[i]))
			ended = false;
	return ended;
}

int cli_down(int argc, char **argv)
{
	unsigned int up = 0;
	struct ending first;
	bool ended;

	if (argc > 1)
		cli_fail(CLI_USAGE, "usage: muslin down [--name FABRIC]");
	/* It leaves its directory, by which the others are known, while they are up. */
	first = (struct ending){ .pid = rundir_daemon(&cli_run) };
	ended = down_shards(cli_shards(), &first, &up);
	if (!first.pid && !up) {
		if (access(cli_run.dir, F_OK))
			cli_connect(); /* fails with a message */
		rundir_remove(&cli_run);
		cli_fail(CLI_ERROR, "fabric %s was not up; removed its stale files", cli_run.name);
	}
	first.start = cli_seconds();
	if (!first.pid)
		rundir_remove(&cli_run);
	else if (!down_wait(&cli_run, &first))
		ended = false;
	return ended ? CLI_OK : CLI_ERROR;
}
