// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The application's descriptors that are device files. A number is believed only while its process and inode agree. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define FDS 65536

static struct shim_file *files[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct shim_file *shim_file_get(int fd)
{
	struct shim_file *f;
	struct stat st;

	if (fd < 0 || fd >= FDS)
		return NULL;
	f = __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE);
	if (!f)
		return NULL;
	if (REAL(fstat)(fd, &st) || st.st_ino != f->inode || st.st_dev != f->dev)
		return NULL;
	return f;
}

void shim_file_add(int fd, struct shim_file *f)
{
	struct stat st;

	if (fd < 0 || fd >= FDS || REAL(fstat)(fd, &st))
		return;
	f->inode = st.st_ino;
	f->dev = st.st_dev;
	pthread_mutex_lock(&lock);
	f->refs++;
	__atomic_store_n(&files[fd], f, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

void shim_file_dup(int from, int to)
{
	struct shim_file *f = shim_file_get(from);

	if (f && to >= 0)
		shim_file_add(to, f);
}

/* A child of vfork shares our memory but not our descriptors: what it closes is still open here. */
void shim_file_forget(int fd)
{
	struct shim_file *f = shim_file_get(fd);

	if (!f || f->pid != getpid())
		return;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&files[fd], NULL, __ATOMIC_RELEASE);
	if (--f->refs) {
		pthread_mutex_unlock(&lock);
		return;
	}
	pthread_mutex_unlock(&lock);
	if (f->shared)
		munmap(f->shared, UV_SHARED_SIZE);
	if (f->kick >= 0)
		REAL(close)(f->kick);
	REAL(close)(f->rpc);
	free(f);
}
