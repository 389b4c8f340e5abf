// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line: starts and ends fabrics, runs programs on their hosts, shows them. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USAGE 2

static char base[200], dir[300];
static const char *name = "default";

static void fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "muslin: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(status);
}

/* The run directory belongs to its user alone. */
static void dirs_make(void)
{
	const char *run = getenv("MUSLIN_RUNDIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (run)
		snprintf(base, sizeof(base), "%s", run);
	else if (xdg)
		snprintf(base, sizeof(base), "%s/muslin", xdg);
	else
		snprintf(base, sizeof(base), "/tmp/muslin-%u", getuid());
	if ((mkdir(base, 0700) && errno != EEXIST) || lstat(base, &st))
		fail(1, "%s: %s", base, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || st.st_mode & 077)
		fail(1, "%s: is not a folder of yours alone; remove it or set MUSLIN_RUNDIR", base);
	snprintf(dir, sizeof(dir), "%s/%s", base, name);
}

static const char *in_dir(const char *file)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return path;
}

static int control_connect(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", in_dir("control.sock")) >= (int)sizeof(sa.sun_path))
		fail(1, "%s: the path is too long for a socket; set MUSLIN_RUNDIR to a shorter one", dir);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	close(fd);
	return -1;
}

/* Sends a command and returns the answer; ends the program with the daemon's own words when there is an error. */
static json_t *ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static json_t *ask(const char *fmt, ...)
{
	char line[512];
	int fd = control_connect(), n;
	json_error_t err;
	va_list ap;
	json_t *o;

	if (fd < 0)
		fail(1, "no fabric '%s' is up; start it with: muslin up --name %s", name, name);
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(line) || send(fd, line, (size_t)n, MSG_NOSIGNAL) != n)
		fail(1, "the daemon does not listen");
	o = json_loadfd(fd, 0, &err);
	close(fd);
	if (!o)
		fail(1, "the daemon's answer: %s; see muslin log", err.text);
	if (json_object_get(o, "error"))
		fail(1, "%s", json_string_value(json_object_get(o, "error")));
	return o;
}

/* The programs stand side by side; the shim beside them or in ../lib/muslin. */
static void beside(char *path, size_t size, const char *file)
{
	char self[400];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	snprintf(path, size, "%s/%s", self, file);
	if (access(path, R_OK))
		snprintf(path, size, "%s/../lib/muslin/%s", self, file);
}

static pid_t daemon_pid(void)
{
	FILE *f = fopen(in_dir("pid"), "re");
	int pid = 0;

	if (f) {
		if (fscanf(f, "%d", &pid) != 1)
			pid = 0;
		fclose(f);
	}
	return pid;
}

static void pid_write(pid_t pid)
{
	FILE *f = fopen(in_dir("pid"), "we");

	if (!f || fprintf(f, "%d\n", pid) < 0 || fclose(f))
		fail(1, "%s: %s", in_dir("pid"), strerror(errno));
}

/* The daemon with its log as standard error; it says "ready", or prints why not. */
static void daemon_start(const char *topology)
{
	char program[512], line[16] = "";
	int log = open(in_dir("log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), out[2];
	pid_t pid;

	beside(program, sizeof(program), "muslind");
	if (log < 0 || pipe2(out, O_CLOEXEC))
		fail(1, "%s: %s", in_dir("log"), strerror(errno));
	pid = fork();
	if (pid < 0)
		fail(1, "fork: %s", strerror(errno));
	if (!pid) {
		setsid();
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
		dup2(out[1], 1);
		dup2(log, 2);
		execl(program, program, dir, topology, (char *)NULL);
		fprintf(stderr, "%s: %s\n", program, strerror(errno));
		_exit(1);
	}
	close(out[1]);
	pid_write(pid);
	if (read(out[0], line, sizeof(line) - 1) > 0 && !strncmp(line, "ready", 5))
		return;
	waitpid(pid, NULL, 0);
	log = open(in_dir("log"), O_RDONLY | O_CLOEXEC);
	for (ssize_t n; (n = read(log, program, sizeof(program))) > 0;)
		fwrite(program, 1, (size_t)n, stderr);
	exit(1);
}

static int cmd_up(int argc, char **argv)
{
	int fd = control_connect();

	if (argc > 1)
		fail(USAGE, "usage: muslin up [--name FABRIC] [TOPOLOGY]");
	if (fd >= 0)
		fail(1, "fabric '%s' is running already; end it with: muslin down --name %s", name, name);
	if (mkdir(dir, 0700) && errno != EEXIST)
		fail(1, "%s: %s", dir, strerror(errno));
	daemon_start(argc ? argv[0] : NULL);
	printf("fabric '%s' is up; no subnet manager runs yet: muslin run HOST -- opensm\n", name);
	return 0;
}

static void remove_tree(const char *path)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(1);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int cmd_down(int argc, char **argv)
{
	const struct timespec tick = { .tv_nsec = 10000000 };
	int i, fd = control_connect();
	pid_t pid = daemon_pid();

	if (fd < 0)
		fail(1, "no fabric '%s' is up", name);
	if (pid > 0)
		kill(pid, SIGTERM);
	close(fd);
	for (i = 0; i < 500 && pid > 0 && !kill(pid, 0); i++)
		nanosleep(&tick, NULL);
	remove_tree(dir);
	return 0;
}

static int cmd_run(int argc, char **argv)
{
	char shim[512], preload[1024], path[512];
	const char *old = getenv("LD_PRELOAD"), *host;

	if (argc < 2)
		fail(USAGE, "usage: muslin run [--name FABRIC] HOST [--] PROGRAM [ARGUMENT...]");
	host = *argv++;
	if (!strcmp(*argv, "--"))
		argv++;
	if (!*argv)
		fail(USAGE, "run %s: which program?", host);
	json_decref(ask("host %s", host));
	beside(shim, sizeof(shim), "libmuslin-shim.so");
	snprintf(preload, sizeof(preload), "%s%s%s", shim, old ? ":" : "", old ? old : "");
	setenv("LD_PRELOAD", preload, 1);
	setenv("MUSLIN_HOST", host, 1);
	snprintf(path, sizeof(path), "%s/host.sock", dir);
	setenv("MUSLIN_SOCKET", path, 1);
	snprintf(path, sizeof(path), "%s/tree", dir);
	setenv("MUSLIN_TREE", path, 1);
	execvp(*argv, argv);
	fail(errno == ENOENT ? 127 : 126, "%s: %s", *argv, strerror(errno));
}

static const char *text_of(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void show_node(json_t *n)
{
	json_t *p, *ip = json_array_get(json_object_get(n, "ips"), 0);
	size_t i;

	printf("%-8s %-12s %s %s\n", text_of(n, "type"), text_of(n, "name"), text_of(n, "guid"),
	       ip ? json_string_value(ip) : "");
	json_array_foreach(json_object_get(n, "ports"), i, p) {
		if (!*text_of(p, "peer"))
			continue;
		printf("    port %-3lld lid %-6lld %-10s %-10s %lldx %-4s -- %s:%lld\n",
		       (long long)json_integer_value(json_object_get(p, "num")),
		       (long long)json_integer_value(json_object_get(p, "lid")), text_of(p, "state"), text_of(p, "phys_state"),
		       (long long)json_integer_value(json_object_get(p, "width")), text_of(p, "speed"), text_of(p, "peer"),
		       (long long)json_integer_value(json_object_get(p, "peer_port")));
	}
}

static int cmd_show(int argc, char **argv)
{
	json_t *o = ask("show"), *n;
	size_t i;

	if (argc && !strcmp(argv[0], "--json")) {
		json_dumpf(o, stdout, JSON_INDENT(1));
		printf("\n");
	} else {
		json_array_foreach(json_object_get(o, "nodes"), i, n) {
			if (!argc || !strcmp(argv[0], text_of(n, "name")))
				show_node(n);
		}
	}
	json_decref(o);
	return 0;
}

static int cmd_link(int argc, char **argv)
{
	if (argc != 2)
		fail(USAGE, "usage: muslin link [--name FABRIC] NODE:PORT up|down");
	json_decref(ask("link %s %s", argv[0], argv[1]));
	return 0;
}

static int cmd_log(int argc, char **argv)
{
	execlp("cat", "cat", "--", in_dir("log"), (char *)NULL);
	fail(1, "cat: %s", strerror(errno));
}

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv);
} commands[] = {
	{ "up", cmd_up },     { "down", cmd_down }, { "run", cmd_run },
	{ "show", cmd_show }, { "link", cmd_link }, { "log", cmd_log },
};

int main(int argc, char **argv)
{
	size_t i;

	if (getenv("MUSLIN_NAME"))
		name = getenv("MUSLIN_NAME");
	if (argc > 3 && !strcmp(argv[2], "--name")) {
		name = argv[3];
		argv[3] = argv[1];
		argv += 2;
		argc -= 2;
	}
	if (strchr(name, '/') || !*name || *name == '.')
		fail(USAGE, "'%s' cannot name a fabric", name);
	dirs_make();
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].fn(argc - 2, argv + 2);
	}
	fail(USAGE, "usage: muslin up|down|run|show|link|log [--name FABRIC] ...; see muslin(1)");
}
