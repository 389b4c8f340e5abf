// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The environment of a program on a host: for `muslin run`, as lines for a shell (muslin env), and as a file of the
 * Container Device Interface (muslin cdi), by which podman and Docker add it to a container of any image.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/cli/cli.h"

#define SHIM      "libmuslin-shim.so"
#define INSIDE    "/run/muslin" /* directory in a container */
#define CDI_CLASS "muslin.dev/hca"

#define ASAN_ORDER "verify_asan_link_order"

static const char *const variables[] = { "MUSLIN_NAME",   "MUSLIN_RUNDIR", "MUSLIN_HOST", "MUSLIN_TREE",
					 "MUSLIN_SOCKET", "LD_PRELOAD",    "ASAN_OPTIONS" };

/* Finds the preload library. */
static void library_find(char path[RUNDIR_PATH_MAX])
{
	static const char *const places[] = { SHIM, "../lib/muslin/" SHIM, "../lib64/muslin/" SHIM,
					      MUSLIN_LIBDIR "/" SHIM, NULL };
	char found[RUNDIR_PATH_MAX], *real;

	cli_beside(found, sizeof(found), places);
	real = realpath(found, NULL);
	snprintf(path, RUNDIR_PATH_MAX, "%s", real ? real : found);
	free(real);
}

/*
 * Appends the shim to the user's LD_PRELOAD, so that calls pass through the user's libraries first, as they would
 * before libc. Removes a shim of an outer `muslin run`.
 */
static void set_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char shim[RUNDIR_PATH_MAX], *mine = strdup(old ? old : ""), *all = NULL, *at, *save, *more;

	library_find(shim);
	if (strpbrk(shim, " :"))
		cli_fail(CLI_ERROR, "%s: LD_PRELOAD does not support paths with blanks or colons; install elsewhere",
			 shim);
	for (at = mine ? strtok_r(mine, " :", &save) : NULL; at; at = strtok_r(NULL, " :", &save)) {
		const char *base = strrchr(at, '/');

		if (!strcmp(base ? base + 1 : at, SHIM))
			continue;
		if (asprintf(&more, "%s%s:", all ? all : "", at) < 0)
			cli_fail(CLI_ERROR, "out of memory");
		free(all);
		all = more;
	}
	if (!mine || asprintf(&more, "%s%s", all ? all : "", shim) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	setenv("LD_PRELOAD", more, 1);
	free(more);
	free(all);
	free(mine);
}

/*
 * gcc's AddressSanitizer, unless linked statically, ends a program in which a preloaded library comes before its own.
 * The shim does not depend on that order. Later options override earlier ones: those of the user come last.
 */
static void set_asan_options(void)
{
	const char *old = getenv("ASAN_OPTIONS");
	char *all;

	if (old && strstr(old, ASAN_ORDER))
		return;
	if (asprintf(&all, ASAN_ORDER "=0%s%s", old && *old ? ":" : "", old ? old : "") < 0)
		cli_fail(CLI_ERROR, "out of memory");
	setenv("ASAN_OPTIONS", all, 1);
	free(all);
}

void cli_env_set(const char *host)
{
	char path[RUNDIR_PATH_MAX];
	int sock = cli_connect_place(host);
	json_t *answer = cli_request(sock, json_pack("{s:s, s:s}", "command", "host", "name", host));

	close(sock);
	setenv("MUSLIN_NAME", cli_run.name, 1);
	setenv("MUSLIN_HOST", cli_text(answer, "name"), 1); /* @host may be a GUID, or a part of the node description */
	json_decref(answer);
	setenv("MUSLIN_SOCKET", rundir_path(&cli_place, RUNDIR_HOSTS, path), 1);
	setenv("MUSLIN_TREE", rundir_path(&cli_place, RUNDIR_TREE, path), 1);
	setenv("MUSLIN_RUNDIR", cli_run.base, 1);
	set_preload();
	set_asan_options();
}

/* Prints one quoted word for a shell. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

int cli_env(int argc, char **argv)
{
	static const char usage[] = "usage: muslin env [--name FABRIC] [--json] HOST";
	const char *host = NULL;
	bool json = false;
	json_t *o;
	size_t i;

	for (i = 1; i < (size_t)argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (argv[i][0] == '-' || host)
			cli_fail(CLI_USAGE, "%s", usage);
		else
			host = argv[i];
	}
	if (!host)
		cli_fail(CLI_USAGE, "%s", usage);
	cli_env_set(host);
	o = json_object();
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		json_object_set_new(o, variables[i], json_string(getenv(variables[i])));
		if (json)
			continue;
		printf("export %s=", variables[i]);
		print_quoted(getenv(variables[i]));
		putchar('\n');
	}
	if (json) {
		json_dumpf(o, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
	}
	json_decref(o);
	return CLI_OK;
}

/* Whether the specification allows the name for a device. */
static bool cdi_name_valid(const char *name)
{
	const char *p;

	if (!isalnum((unsigned char)*name) || !isalnum((unsigned char)name[strlen(name) - 1]))
		return false;
	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-.:", *p))
			return false;
	return true;
}

static json_t *cdi_mount(const char *from, const char *to)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", from, "containerPath", to, "options", "ro", "nosuid",
			 "nodev", "bind");
}

/* Makes the mounted files accessible to all users: containers have their own ones. The run
 * directory itself remains private. */
static void cdi_permit(void)
{
	static const struct {
		const char *file;
		mode_t mode;
	} parts[] = { { RUNDIR_HOSTS, 0666 }, { RUNDIR_TREE, 0755 }, { RUNDIR_TREE "/addresses", 0644 } };
	char path[RUNDIR_PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (chmod(rundir_path(&cli_place, parts[i].file, path), parts[i].mode) && errno != ENOENT)
			cli_fail(CLI_ERROR, "%s: %s", path, strerror(errno));
}

/* Uses the socket and the tree of the daemon that has the host. */
static json_t *cdi_device(const char *name, const char *host)
{
	char sock[RUNDIR_PATH_MAX], tree[RUNDIR_PATH_MAX];

	close(cli_connect_place(host));
	cdi_permit();
	return json_pack("{s:s, s:{s:[o], s:[o, o]}}", "name", name, "containerEdits", "env",
			 json_sprintf("MUSLIN_HOST=%s", host), "mounts",
			 cdi_mount(rundir_path(&cli_place, RUNDIR_HOSTS, sock), INSIDE "/" RUNDIR_HOSTS),
			 cdi_mount(rundir_path(&cli_place, RUNDIR_TREE, tree), INSIDE "/" RUNDIR_TREE));
}

/* *digit: the name of a device begins with one. */
static json_t *cdi_devices(bool *digit)
{
	json_t *shown = cli_request_all(json_pack("{s:s}", "command", "show")), *devices = json_array(), *n;
	bool first = !strcmp(cli_run.name, "default");
	char name[256];
	size_t i;

	*digit = false;
	json_array_foreach(json_object_get(shown, "nodes"), i, n)
	{
		if (strcmp(cli_text(n, "type"), "ca") || json_is_false(json_object_get(n, "adapter")))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", first ? "" : cli_run.name, first ? "" : ".",
			 cli_text(n, "name"));
		if (cdi_name_valid(name)) {
			json_array_append_new(devices, cdi_device(name, cli_text(n, "name")));
			*digit |= isdigit((unsigned char)*name) != 0;
		} else {
			fprintf(stderr,
				"muslin: host \"%s\" is left out: a device's name has letters, digits and _-.: only, "
				"and begins and ends with a letter or digit\n",
				cli_text(n, "name"));
		}
	}
	json_decref(shown);
	if (!json_array_size(devices))
		cli_fail(CLI_ERROR, "fabric %s has no host with an adapter that can name a device", cli_run.name);
	return devices;
}

static json_t *cdi_edits(void)
{
	char shim[RUNDIR_PATH_MAX];

	library_find(shim);
	return json_pack("{s:[s, s, s], s:[o]}", "env", "LD_PRELOAD=" INSIDE "/" SHIM,
			 "MUSLIN_SOCKET=" INSIDE "/" RUNDIR_HOSTS, "MUSLIN_TREE=" INSIDE "/" RUNDIR_TREE, "mounts",
			 cdi_mount(shim, INSIDE "/" SHIM));
}

/* Creates the file atomically: container engines watch the directory. */
static void cdi_write(const json_t *spec, const char *file)
{
	char *part;
	int err;

	if (asprintf(&part, "%s.part", file) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	if (json_dump_file(spec, part, JSON_INDENT(1) | JSON_PRESERVE_ORDER) || chmod(part, 0644) ||
	    rename(part, file)) {
		err = errno;
		(void)unlink(part);
		cli_fail(CLI_ERROR, "%s: %s", file, strerror(err));
	}
	free(part);
}

int cli_cdi(int argc, char **argv)
{
	const char *file = argc == 3 && !strcmp(argv[1], "-w") ? argv[2] : NULL;
	json_t *spec, *devices;
	bool digit;

	if (argc != 1 && !file)
		cli_fail(CLI_USAGE, "usage: muslin cdi [--name FABRIC] [-w FILE]");
	devices = cdi_devices(&digit);
	/* The oldest version of the specification that allows this, as old engines know no newer one. */
	spec = json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", digit ? "0.5.0" : "0.3.0", "kind", CDI_CLASS, "devices",
			 devices, "containerEdits", cdi_edits());
	if (!spec)
		cli_fail(CLI_ERROR, "a path or a name of the fabric is not UTF-8");
	if (file) {
		cdi_write(spec, file);
	} else {
		json_dumpf(spec, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
	}
	json_decref(spec);
	return CLI_OK;
}
