// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `muslin run`: runs a program on a host, with the preload library; warns about programs that ignore the library. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "emu/cli/cli.h"

#define SHIM     "libmuslin-shim.so"
#define SEGMENTS 256 /* of the examined program */

/* The file that execvp() would run; false: none. */
static bool program_find(const char *name, char *path, size_t size)
{
	const char *dir = getenv("PATH");
	size_t n;

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && !access(path, X_OK);
	for (; dir && *dir; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		if (snprintf(path, size, "%.*s/%s", (int)n, dir, name) < (int)size && !access(path, X_OK))
			return true;
	}
	return false;
}

/* Whether it is an ELF program without a dynamic linker. */
static bool is_static(const char *path)
{
	static Elf64_Phdr segment[SEGMENTS];
	int fd = open(path, O_RDONLY | O_CLOEXEC), i;
	bool elf = false, interpreter = false;
	Elf64_Ehdr head;
	ssize_t n;

	if (fd < 0)
		return false;
	if (read(fd, &head, sizeof(head)) == sizeof(head) && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
	    head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(*segment) && head.e_phnum <= SEGMENTS) {
		n = pread(fd, segment, head.e_phnum * sizeof(*segment), (off_t)head.e_phoff);
		elf = n == (ssize_t)(head.e_phnum * sizeof(*segment));
	}
	for (i = 0; elf && i < head.e_phnum; i++)
		interpreter |= segment[i].p_type == PT_INTERP;
	close(fd);
	return elf && !interpreter;
}

/*
 * Do the options of env(1) in @argv remove LD_PRELOAD? They end at an assignment or at the program's name. Short ones
 * may share a word; the argument of -u, -C and -S is the rest of the word or the next one.
 */
static bool env_drops_preload(char **argv)
{
	const char *option, *unset;

	while (*++argv && **argv == '-' && strcmp(*argv, "--")) {
		if (!strcmp(*argv, "-") || !strcmp(*argv, "--ignore-environment"))
			return true;
		option = *argv + 1;
		if (*option == '-') {
			unset = strncmp(*argv, "--unset=", 8) ? NULL : *argv + 8;
		} else {
			option += strcspn(option, "iuCS");
			if (*option == 'i')
				return true;
			if (*option && !option[1] && !*++argv)
				return false;
			unset = *option != 'u' ? NULL : option[1] ? option + 1 : *argv;
		}
		if (unset && !strcmp(unset, "LD_PRELOAD"))
			return true;
	}
	return false;
}

/* The reason why the dynamic linker or the program itself ignores LD_PRELOAD; NULL: none. */
static const char *drops_preload(char **argv, const char *path)
{
	static const char *const others[] = { "sudo", "su", "doas", "pkexec", "runuser" };
	const char *base = strrchr(*argv, '/');
	struct stat st;
	size_t i;

	base = base ? base + 1 : *argv;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(base, others[i]))
			return "clears the environment";
	if (!strcmp(base, "env") && env_drops_preload(argv))
		return "removes LD_PRELOAD from the environment";
	if (stat(path, &st))
		return NULL;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) || (st.st_mode & S_ISGID && st.st_gid != getgid()))
		return "has a set-user-ID or set-group-ID bit";
	if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has file capabilities";
	return is_static(path) ? "is statically linked" : NULL;
}

/*
 * Appends the directories where distributions have opensm and infiniband-diags, which are not in the PATH of each user.
 */
static void path_add_sbin(void)
{
	static const char *const dirs[] = { "/usr/local/sbin", "/usr/sbin", "/sbin" };
	char *path = getenv("PATH") ? strdup(getenv("PATH")) : NULL, *more;
	size_t i, len;

	for (i = 0; path && i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		const char *at = path;

		len = strlen(dirs[i]);
		while ((at = strstr(at, dirs[i])) && ((at > path && at[-1] != ':') || (at[len] && at[len] != ':')))
			at += len;
		if (at)
			continue;
		if (asprintf(&more, "%s:%s", path, dirs[i]) < 0)
			cli_fail(CLI_ERROR, "out of memory");
		free(path);
		path = more;
	}
	if (path)
		setenv("PATH", path, 1);
	free(path);
}

int cli_exec(int argc, char **argv)
{
	char path[RUNDIR_PATH_MAX];
	const char *host = argc > 1 ? argv[1] : NULL, *why;
	char **program = argv + 2;
	int err;

	if (argc > 2 && !strcmp(*program, "--"))
		program++;
	if (argc < 3 || !*program)
		cli_fail(CLI_USAGE, "usage: muslin run [--name FABRIC] HOST [--] PROGRAM [ARGUMENT...]");
	if (program == argv + 2 && **program == '-')
		cli_fail(CLI_USAGE, "%s: options are before the host: muslin run [--name FABRIC] HOST [--] PROGRAM",
			 *program);
	cli_env_set(host);
	path_add_sbin();
	why = program_find(*program, path, sizeof(path)) ? drops_preload(program, path) : NULL;
	if (why)
		fprintf(stderr,
			"muslin: warning: %s %s, so that it does not load " SHIM " and will find no RDMA device\n",
			*program, why);
	execvp(*program, program);
	err = errno;
	fprintf(stderr, "muslin: %s: %s\n", *program, strerror(err));
	return err == ENOENT ? 127 : 126;
}
