// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of the table of descriptors: numbers up to the largest one, which RLIMIT_NOFILE seldom permits. So the
 * descriptors of the process are an array of this file, and the other files of the library are represented by functions
 * that record their calls.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/shim/shim.h"

#define OPEN_MAX_ROWS 64
#define ROWS(a)       (sizeof(a) / sizeof((a)[0]))

static struct {
	int fd;
	ino_t inode; /* 0: closed */
} opened[OPEN_MAX_ROWS];
static int dup_to;          /* the next number of F_DUPFD */
static unsigned int closed; /* channels that were reported */

static ino_t *inode_of(int fd)
{
	int i;

	for (i = 0; i < OPEN_MAX_ROWS; i++)
		if (opened[i].inode && opened[i].fd == fd)
			return &opened[i].inode;
	return NULL;
}

static void fd_open(int fd, ino_t inode)
{
	int i;

	for (i = 0; opened[i].inode; i++)
		;
	opened[i].fd = fd;
	opened[i].inode = inode;
}

static int fd_close(int fd)
{
	ino_t *inode = inode_of(fd);

	if (inode)
		*inode = 0;
	return inode ? 0 : -1;
}

static int fd_fcntl(int fd, int cmd, ...)
{
	ino_t *inode = inode_of(fd);

	if (!inode)
		return -1;
	fd_open(dup_to, *inode);
	return dup_to;
}

/* ---- the other files of the library ---- */

void *shim_real(struct shim_symbol *s)
{
	return strcmp(s->name, "close") ? (void *)fd_fcntl : (void *)fd_close;
}

int shim_fstat(int fd, struct stat *st)
{
	const ino_t *inode = inode_of(fd);

	*st = (struct stat){ .st_ino = inode ? *inode : 0 };
	return inode ? 0 : -1;
}

bool shim_own_process(void)
{
	return true;
}

int shim_call(struct shim_file *f, const struct shim_request *req)
{
	closed += req->op == UV_CLOSED;
	return 0;
}

int shim_connect(enum uv_kind kind, unsigned int unit, uint64_t attach, int fds[2], int *rpc, struct uv_opened *got)
{
	return -EIO;
}

int shim_copy_start(enum uv_kind kind, unsigned int unit, uint64_t cookie)
{
	return 0;
}

bool shim_share_lock(void)
{
	return true;
}

void shim_share_unlock(void) {}

int shim_share_move(int fd, int to)
{
	return -EBUSY;
}

void shim_poll_unwatch(struct uv_shared *s) {}

void shim_rpc_lock(void) {}

void shim_rpc_unlock(void) {}

/* ---- rows ---- */

static const int numbers[] = { 0, 3, 511, 65535, 65536, 65537, 131071, 131072, 1048575, 1 << 30, INT_MAX };

static struct shim_file *file_new(enum uv_kind kind, struct shim_file *parent)
{
	struct shim_file *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->kind = kind;
	f->event_size = kind == SHIM_CHANNEL ? 8 : 0;
	f->pid = getpid();
	f->parent = parent;
	f->kick = -1;
	memset(f->rpc, 0xff, sizeof(f->rpc));
	return f;
}

static void test_files(void)
{
	struct shim_file *f, *got;
	size_t i;

	for (i = 0; i < ROWS(numbers); i++) {
		int fd = numbers[i], to = fd ? fd - 1 : 70000;

		fd_open(fd, 5);
		f = file_new(UV_UMAD, NULL);
		row(fd, "an opened file", !shim_file_add(fd, f));
		got = shim_file_get(fd);
		row(fd, "is found", got == f);
		shim_file_put(got);
		fd_open(to, 5);
		shim_file_dup(fd, to);
		shim_file_forget(fd);
		fd_close(fd);
		got = shim_file_get(to);
		row(fd, "its duplicate is found after the close", !shim_file_get(fd) && got == f);
		shim_file_put(got);
		fd_open(to, 6);
		got = shim_file_get_entry(to);
		row(fd, "its number means another file now",
		    got == f && !shim_file_get(to) && !shim_file_verify(got, to));
		fd_open(to, 5);
		shim_file_forget_range((unsigned int)to, ~0u);
		row(fd, "and not after a close_range()", !shim_file_get(to));
		fd_close(to);
	}
}

static void test_private(void)
{
	size_t i;

	for (i = 0; i < ROWS(numbers); i++) {
		int fd = numbers[i];
		struct shim_file *f = file_new(UV_RDMA_CM, NULL);

		dup_to = fd;
		fd_open(1000, 6);
		row(fd, "a private descriptor", shim_private_add(1000) == fd && shim_private(fd));
		row(fd, "is found in a range",
		    shim_private_next(0, ~0u) == fd && (!fd || shim_private_next(0, (unsigned int)fd - 1) == -1) &&
			    (fd == INT_MAX || shim_private_next((unsigned int)fd + 1, ~0u) == -1));
		f->rpc[0] = fd;
		fd_open(7, 8);
		row(fd, "a file with it", !shim_file_add(7, f));
		dup_to = 100000;
		row(fd, "it moves", !shim_private_move(fd) && f->rpc[0] == 100000 && !shim_private(fd));
		shim_file_forget(7);
		fd_close(7);
		row(fd, "it is closed with its file", !shim_private(100000) && !inode_of(100000));
	}
}

static void test_channels(void)
{
	size_t i;

	for (i = 0; i < ROWS(numbers); i++) {
		int fd = numbers[i];
		struct shim_file *f = file_new(UV_UVERBS, NULL);

		closed = 0;
		fd_open(9, 10);
		fd_open(fd, 11);
		shim_file_add(9, f);
		shim_file_add(fd, file_new(SHIM_CHANNEL, f));
		row(fd, "a channel", shim_channel(fd) && !shim_file_get(fd));
		row(fd, "the size of its events", shim_event_exceeds(fd, 7) && !shim_event_exceeds(fd, 8));
		shim_file_forget(fd);
		row(fd, "its close is reported", closed == 1);
		shim_file_add(fd, file_new(SHIM_CHANNEL, f));
		shim_file_forget(9);
		shim_file_forget(fd);
		row(fd, "but not after the close of its file", closed == 1);
		fd_close(9);
		fd_close(fd);
	}
}

int main(void)
{
	test_files();
	test_private();
	test_channels();
	return rows_end();
}
