// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin(1): command line, and the small commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/ctl/ctl.h"

struct rundir cli_run;

void cli_fail(enum cli_exit status, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("muslin: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

int cli_try_connect(char *err, size_t err_len)
{
	char path[RUNDIR_PATH_MAX];
	int sock = ctl_connect(rundir_path(&cli_run, RUNDIR_CONTROL, path));

	if (sock >= 0)
		return sock;
	if (sock == -ECONNREFUSED)
		snprintf(err, err_len,
			 "fabric %s is not up: its daemon has died; see `muslin log --name %s`, and start it again "
			 "with `muslin up --name %s`",
			 cli_run.name, cli_run.name, cli_run.name);
	else if (sock != -ENOENT)
		snprintf(err, err_len, "%s: %s", path, strerror(-sock));
	else if (strcmp(cli_run.name, "default"))
		snprintf(
			err, err_len,
			"fabric %s is not up; start it with `muslin up --name %s` (`muslin list` names those that are)",
			cli_run.name, cli_run.name);
	else
		snprintf(err, err_len, "no fabric is up; start one with `muslin up`");
	return sock;
}

int cli_connect(void)
{
	char err[1024];
	int sock = cli_try_connect(err, sizeof(err));

	if (sock < 0)
		cli_fail(CLI_ERROR, "%s", err);
	return sock;
}

json_t *cli_request(int sock, json_t *req)
{
	char err[1024];
	json_t *result = ctl_call(sock, req, -1, err, sizeof(err));

	json_decref(req);
	if (!result)
		cli_fail(CLI_ERROR, "%s", err);
	return result;
}

void cli_beside(char *path, size_t size, const char *const *places)
{
	char self[RUNDIR_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int i;

	self[n > 0 ? n : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	for (i = 0; places[i]; i++) {
		snprintf(path, size, "%s%s%s", *places[i] == '/' ? "" : self, *places[i] == '/' ? "" : "/", places[i]);
		if (!access(path, R_OK))
			return;
	}
	cli_fail(CLI_ERROR, "%s/%s is missing: build it with `make`, or install again", self, places[0]);
}

const char *cli_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ?: "";
}

long long cli_number(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

const char *cli_node_id(const json_t *node, char *text, size_t size)
{
	const char *binding = cli_text(node, "binding");

	if (*binding)
		snprintf(text, size, "%.*s", (int)strcspn(binding, " "), binding);
	else
		snprintf(text, size, "lid %lld", cli_number(node, "lid"));
	return text;
}

double cli_positive(const char *option, const char *text, double max)
{
	char *end;
	double v = strtod(text ? text : "", &end);

	if (!text)
		cli_fail(CLI_USAGE, "%s: missing number", option);
	if (end == text || *end || !(v > 0 && v <= max))
		cli_fail(CLI_USAGE, "%s %s: not a number above 0, up to %.10g", option, text, max);
	return v;
}

double cli_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void cli_sleep(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds,
			       .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&ts, NULL);
}

static int cmd_list(int argc, char **argv)
{
	char **names;
	int n, i;

	if (argc > 1)
		cli_fail(CLI_USAGE, "usage: muslin list");
	n = rundir_list(&cli_run, &names);
	for (i = 0; i < n; i++) {
		struct rundir r;
		char err[256];
		pid_t pid;

		if (!names[i] || rundir_open(&r, names[i], err, sizeof(err)))
			continue;
		pid = rundir_daemon(&r);
		if (pid)
			printf("%-24s pid %d\n", names[i], pid);
		free(names[i]);
	}
	free(names);
	return CLI_OK;
}

/* The logs of all daemons, open at the end of what has been printed. */
struct logs {
	struct rundir run[CLI_SHARDS_MAX];
	int fd[CLI_SHARDS_MAX];
	unsigned int n, last; /* number of logs; the one printed last */
};

/* Opens those that exist. False: none does. */
static bool log_open(struct logs *l)
{
	char path[RUNDIR_PATH_MAX];
	unsigned int i;
	bool any = false;

	l->n = cli_shards();
	l->last = l->n;
	for (i = 0; i < l->n; i++) {
		cli_shard_rundir(i, &l->run[i]);
		l->fd[i] = open(rundir_path(&l->run[i], RUNDIR_LOG, path), O_RDONLY | O_CLOEXEC);
		any = any || l->fd[i] >= 0;
	}
	return any;
}

/* Prints what was added, of several logs with their names. False: standard output has failed. */
static bool log_print(struct logs *l)
{
	char buf[16384];
	unsigned int i;
	ssize_t n;

	for (i = 0; i < l->n; i++) {
		while (l->fd[i] >= 0 && (n = read(l->fd[i], buf, sizeof(buf))) > 0) {
			if (l->n > 1 && l->last != i)
				printf("==> %s <==\n", l->run[i].name);
			l->last = i;
			if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
				return false;
		}
	}
	return !fflush(stdout);
}

static bool log_grows(const struct logs *l)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (rundir_daemon(&l->run[i]))
			return true;
	return false;
}

static int cmd_log(int argc, char **argv)
{
	bool follow = argc == 2 && !strcmp(argv[1], "-f"), alive;
	char path[RUNDIR_PATH_MAX];
	static struct logs l;

	if (argc > 2 || (argc == 2 && !follow))
		cli_fail(CLI_USAGE, "usage: muslin log [--name FABRIC] [-f]");
	if (!log_open(&l)) {
		if (errno == ENOENT && rundir_daemon(&cli_run))
			cli_fail(CLI_ERROR,
				 "fabric %s is in the foreground; its log is what it writes to standard error",
				 cli_run.name);
		if (errno == ENOENT)
			close(cli_connect()); /* fails with a message */
		cli_fail(CLI_ERROR, "%s: %s", rundir_path(&cli_run, RUNDIR_LOG, path), strerror(errno));
	}
	do {
		alive = log_grows(&l);
		if (!log_print(&l))
			return CLI_ERROR;
		if (follow && alive)
			cli_sleep(0.1);
	} while (follow && alive);
	return CLI_OK;
}

static int cmd_link(int argc, char **argv)
{
	json_t *req;

	if (argc != 3 || (strcmp(argv[2], "up") && strcmp(argv[2], "down")))
		cli_fail(CLI_USAGE, "usage: muslin link [--name FABRIC] NODE[:PORT] up|down");
	req = json_pack("{s:s, s:s, s:s}", "command", "link", "place", argv[1], "state", argv[2]);
	json_decref(cli_request(cli_connect_place(argv[1]), req));
	return CLI_OK;
}

static int cmd_mode(int argc, char **argv)
{
	json_t *req, *mode;

	if (argc < 2 || argc > 3)
		cli_fail(CLI_USAGE, "usage: muslin mode [--name FABRIC] HOST [v1|v2]");
	req = json_pack("{s:s, s:s}", "command", "mode", "name", argv[1]);
	if (argc == 3)
		json_object_set_new(req, "mode", json_string(argv[2]));
	mode = cli_request(cli_connect_place(argv[1]), req);
	if (argc == 2)
		puts(json_string_value(mode));
	json_decref(mode);
	return CLI_OK;
}

/* Polls until the subnet manager has set the P_Key tables of all ports. */
static void wait_swept(int sock)
{
	json_t *st, *sm;
	bool busy, failed;

	do {
		cli_sleep(0.02);
		st = cli_request(sock, json_pack("{s:s}", "command", "status"));
		sm = json_object_get(st, "manager");
		busy = json_is_true(json_object_get(sm, "sweeping"));
		failed = cli_number(sm, "sweep_errors") != 0;
		json_decref(st);
	} while (busy);
	if (failed)
		cli_fail(CLI_ERROR,
			 "not all ports have the new P_Key tables yet; the subnet manager retries, see `muslin log`");
}

static int cmd_partitions(int argc, char **argv)
{
	char *file = argc == 2 ? realpath(argv[1], NULL) : NULL;
	json_t *req = json_pack("{s:s}", "command", "partitions");
	int sock;

	if (argc > 2)
		cli_fail(CLI_USAGE, "usage: muslin partitions [--name FABRIC] [FILE]");
	if (argc == 2 && !file)
		cli_fail(CLI_ERROR, "%s: %s", argv[1], strerror(errno));
	if (file)
		json_object_set_new(req, "file", json_string(file));
	sock = cli_connect_place("sm");
	json_decref(cli_request(sock, req));
	wait_swept(sock);
	close(sock);
	free(file);
	return CLI_OK;
}

static int cmd_help(int argc, char **argv);

static int cmd_version(int argc, char **argv)
{
	if (argc > 1)
		cli_fail(CLI_USAGE, "usage: muslin --version");
	puts("muslin " MUSLIN_VERSION);
	return CLI_OK;
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments, *what; /* NULL: hidden from `muslin help` */
	bool own_help;                /* it handles --help itself */
	bool no_fabric;               /* it needs no run directory */
} commands[] = {
	{ "up", cli_up, "[--seed N] [--shards N | --join SHARD] [TOPOLOGY]", "start a fabric; see `muslin up --help`",
	  true },
	{ "down", cli_down, "", "stop it", false },
	{ "run", cli_exec, "HOST [--] PROGRAM [ARGUMENT...]", "run a program on a host", false },
	{ "env", cli_env, "[--json] HOST", "the environment of `run`, for a shell: eval \"$(muslin env h1)\"", false },
	{ "cdi", cli_cdi, "[-w FILE]", "the hosts as devices of containers, for podman and Docker", false },
	{ "vm", cli_vm, "HOST [OPTION...] [-- PROGRAM...]", "boot a guest on a host; see `muslin vm --help`", true },
	{ "cp", cli_cp, "FILE... HOST:PATH | HOST:PATH FILE", "copy files to or from a running guest", false },
	{ "show", cli_show, "[--json] [--counters] [NODE]", "nodes, ports, LIDs, states, rates, addresses", false },
	{ "show", cli_show, "--topology | --svg", "the fabric in the format of ibnetdiscover, or drawn", false },
	{ "trace", cli_trace,
	  "[-w FILE [-C MB [-W FILES]]] [-c COUNT] [--duration SECONDS] [-s BYTES] NODE[:PORT] [KEY=VALUE...]",
	  "capture packets as pcapng, all or those that match", false },
	{ "link", cmd_link, "NODE[:PORT] up|down", "set a link up or down", false },
	{ "mode", cmd_mode, "HOST [v1|v2]", "RoCE version of new connections", false },
	{ "partitions", cmd_partitions, "[FILE]", "reload the subnet manager's partitions", false },
	{ "fault", cli_fault, "add PLACE FAULT [KEY=VALUE...]", "inject a fault; see muslin-fault(5)", false },
	{ "fault", cli_fault, "list [--json] | clear [ID|PLACE|all]", "armed faults and their hits; remove faults",
	  false },
	{ "top", cli_top, "[-n COUNT] [--interval SECONDS]", "live rates of all links; q quits", false },
	{ "metrics", cli_metrics, "[NODE | --listen [ADDRESS:]PORT]", "counters for Prometheus", false },
	{ "timeline", cli_timeline, "[--start]", "events since the start, as JSON", false },
	{ "console", cli_console, "", "ibsim's Link, ReLink, Unlink, Clear, Error from stdin", false },
	{ "log", cmd_log, "[-f]", "the daemon's log", false },
	{ "list", cmd_list, "", "fabrics that are up", false },
	{ "help", cmd_help, "[COMMAND]", "usage of all commands, or of one", false, true },
	{ "version", cmd_version, "", "the version", false, true },
	{ "--help", cmd_help, NULL, NULL, false, true },
	{ "-h", cmd_help, NULL, NULL, false, true },
	{ "--version", cmd_version, NULL, NULL, false, true },
	{ "-V", cmd_version, NULL, NULL, false, true },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Prints the lines of one command, or of all. False: no such command. */
static bool muslin_usage(FILE *out, const char *name)
{
	bool any = false;
	size_t i;

	if (!name)
		fputs("usage: muslin COMMAND [--name FABRIC] ...\n", out);
	for (i = 0; i < COMMANDS; i++) {
		const struct command *c = &commands[i];
		int width = (int)(strlen(c->name) + 1 + strlen(c->arguments ? c->arguments : ""));

		if (!c->what || (name && strcmp(name, c->name)))
			continue;
		any = true;
		fprintf(out, "  %s%s%s", c->name, *c->arguments ? " " : "", c->arguments);
		if (width > 42)
			fprintf(out, "\n%45s", "");
		else
			fprintf(out, "%*s", 43 - width + !*c->arguments, "");
		fprintf(out, "%s\n", c->what);
	}
	if (!name)
		fputs("Without --name the fabric is $MUSLIN_NAME, or \"default\". See muslin(1).\n", out);
	return any;
}

static int cmd_help(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : NULL;

	if (argc > 2)
		cli_fail(CLI_USAGE, "usage: muslin help [COMMAND]");
	if (!muslin_usage(stdout, name))
		cli_fail(CLI_USAGE, "no command \"%s\"; `muslin help` lists them", name);
	return CLI_OK;
}

/*
 * Removes "--name FABRIC" and "--name=FABRIC" from the arguments that may have options: for `run` those before the
 * host, since the rest belongs to the program.
 */
static const char *take_name(int *argc, char **argv)
{
	const char *name = getenv("MUSLIN_NAME");
	bool run = false;
	int i = 1, k, n;

	while (i < *argc) {
		n = !strcmp(argv[i], "--name") ? 2 : !strncmp(argv[i], "--name=", 7) ? 1 : 0;
		if (n) {
			name = n == 1 ? argv[i] + 7 : i + 1 < *argc ? argv[i + 1] : "";
			if (!*name)
				cli_fail(CLI_USAGE, "--name: missing FABRIC");
			for (k = i; k + n <= *argc; k++)
				argv[k] = argv[k + n];
			*argc -= n;
			continue;
		}
		if (!strcmp(argv[i], "--") || run)
			break;
		run = i == 1 && (!strcmp(argv[i], "run") || !strcmp(argv[i], "vm"));
		i++;
	}
	return name && *name ? name : "default";
}

/* Opens the standard descriptors that are closed: a socket in the place of one would get what is printed. */
static void open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* The exit status of a command with @status, whose output may be lost, as on a full disk. */
static int finish(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (errno != EPIPE)
		fprintf(stderr, "muslin: standard output: %s\n", errno ? strerror(errno) : "not all could be written");
	return CLI_ERROR;
}

int main(int argc, char **argv)
{
	const char *name = take_name(&argc, argv);
	char err[512];
	size_t i;
	int rc;

	open_standard();
	if (argc < 2) {
		muslin_usage(stderr, NULL);
		return CLI_USAGE;
	}
	for (i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, argv[1]))
			continue;
		if (argc == 3 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")) && !commands[i].own_help)
			return finish(cmd_help(2, argv));
		rc = commands[i].no_fabric ? 0 : rundir_open(&cli_run, name, err, sizeof(err));
		if (rc)
			cli_fail(rc == -EINVAL ? CLI_USAGE : CLI_ERROR, "%s", err);
		return finish(commands[i].run(argc - 1, argv + 1));
	}
	cli_fail(CLI_USAGE, "no command \"%s\"; `muslin help` lists them", argv[1]);
}
