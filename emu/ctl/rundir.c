// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The run directory. The daemon holds a lock on its pid file while it runs. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/ctl/rundir.h"

#define CLAIM_TRIES 100
#define CLAIM_US    10000

static bool name_valid(const char *name)
{
	const char *p;

	if (!*name || *name == '.' || *name == '-' || strlen(name) >= RUNDIR_NAME_MAX)
		return false;
	for (p = name; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("._-+", *p))
			return false;
	}
	return true;
}

/* It need not exist: rundir_claim() makes it. */
static int base_check(const struct rundir *r, char *err, size_t err_len)
{
	struct stat st;
	int e;

	if (lstat(r->base, &st)) {
		e = errno;
		snprintf(err, err_len, "%s: %s; set MUSLIN_RUNDIR", r->base, strerror(e));
		return e == ENOENT ? 0 : -e;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077) {
		snprintf(err, err_len,
			 "%s: is not a directory of yours alone (mode 0700); remove it or set MUSLIN_RUNDIR", r->base);
		return -EPERM;
	}
	return 0;
}

int rundir_open(struct rundir *r, const char *name, char *err, size_t err_len)
{
	const char *own = getenv("MUSLIN_RUNDIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	char cwd[RUNDIR_PATH_MAX] = "";
	int n;

	if (!name_valid(name)) {
		snprintf(err, err_len,
			 "\"%.60s\" cannot name a fabric: a name has letters, digits, '.', '_', '+' and '-', does not "
			 "begin with '.' or '-', and has at most %d characters",
			 name, RUNDIR_NAME_MAX - 1);
		return -EINVAL;
	}
	strcpy(r->name, name);
	if (own && *own != '/' && *own && !getcwd(cwd, sizeof(cwd)))
		cwd[0] = 0;
	r->own = own && *own;
	if (r->own)
		n = snprintf(r->base, sizeof(r->base), "%s%s%s", cwd, *cwd ? "/" : "", own);
	else if (xdg && *xdg == '/')
		n = snprintf(r->base, sizeof(r->base), "%s/muslin", xdg);
	else
		n = snprintf(r->base, sizeof(r->base), "/tmp/muslin-%u", geteuid());
	if (n + strlen(name) + sizeof("//" RUNDIR_CONTROL) > sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(err, err_len, "%.60s...: too long a path for sockets; set MUSLIN_RUNDIR to a shorter one",
			 r->base);
		return -ENAMETOOLONG;
	}
	snprintf(r->dir, sizeof(r->dir), "%.400s/%s", r->base, name);
	return base_check(r, err, err_len);
}

const char *rundir_path(const struct rundir *r, const char *file, char *path)
{
	snprintf(path, RUNDIR_PATH_MAX, "%.460s/%s", r->dir, file);
	return path;
}

pid_t rundir_daemon(const struct rundir *r)
{
	char path[RUNDIR_PATH_MAX], text[16] = "";
	int fd = open(rundir_path(r, RUNDIR_PID, path), O_RDONLY | O_CLOEXEC);
	pid_t pid = 0;

	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) && read(fd, text, sizeof(text) - 1) > 0)
		pid = atoi(text);
	close(fd);
	return pid;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path) && errno != ENOENT ? -1 : 0;
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Files of a daemon, without its log and RUNDIR_GUESTS, which are there after a crash. */
static void remove_files(const struct rundir *r)
{
	static const char *const files[] = { RUNDIR_CONTROL, RUNDIR_HOSTS, RUNDIR_TREE, RUNDIR_SHARDS, RUNDIR_TRUNK };
	char path[RUNDIR_PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		remove_tree(rundir_path(r, files[i], path));
}

static int make_dir(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int rundir_claim(const struct rundir *r)
{
	char path[RUNDIR_PATH_MAX];
	unsigned int tries = 0;
	int fd, err;

	err = make_dir(r->dir);
	if (err == -ENOENT) {
		err = make_dir(r->base);
		err = err ? err : make_dir(r->dir);
	}
	if (err)
		return err;
	fd = open(rundir_path(r, RUNDIR_PID, path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/*
	 * A killed daemon releases its lock after its AIO context, which takes some 30 ms, and longer on a busy
	 * machine.
	 */
	while ((err = flock(fd, LOCK_EX | LOCK_NB)) && errno == EWOULDBLOCK && tries++ < CLAIM_TRIES)
		usleep(CLAIM_US);
	if (err) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		close(fd);
		return err;
	}
	remove_files(r);
	return fd;
}

int rundir_sign(int fd)
{
	return ftruncate(fd, 0) || dprintf(fd, "%d\n", getpid()) < 0 ? -errno : 0;
}

/* Fails if other fabrics' directories are in it. */
static void remove_base(const struct rundir *r)
{
	if (!r->own)
		(void)rmdir(r->base);
}

void rundir_remove(const struct rundir *r)
{
	remove_tree(r->dir);
	remove_base(r);
}

void rundir_abandon(const struct rundir *r)
{
	char path[RUNDIR_PATH_MAX];

	remove_files(r);
	(void)unlink(rundir_path(r, RUNDIR_PID, path));
	if (!rmdir(r->dir)) /* fails if a daemon that crashed has left files */
		remove_base(r);
}

static int is_fabric(const struct dirent *e)
{
	return name_valid(e->d_name);
}

int rundir_list(const struct rundir *r, char ***names)
{
	struct dirent **found;
	int n = scandir(r->base, &found, is_fabric, alphasort), i;

	*names = NULL;
	if (n < 0)
		return 0;
	*names = calloc((size_t)n + 1, sizeof(char *));
	for (i = 0; i < n; i++) {
		if (*names)
			(*names)[i] = strdup(found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return *names ? n : 0;
}
