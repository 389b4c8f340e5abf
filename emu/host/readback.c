// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads back unread bytes from an application's end of a socket pair. A recv() of the application holds the lock of
 * that end while it copies to memory, which may block without limit (see dma.c), and MSG_DONTWAIT of another reader
 * waits for the lock. So a thread reads, and the loop waits for it for a short time, shorter for a while after a late
 * thread. A late thread is abandoned, and the next read starts a new one.
 */
#include "emu/host/readback.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/clock.h"
#include "emu/lib/list.h"
#include "emu/lib/thread.h"

#define WAIT_NS (200 * NSEC_PER_MSEC) /* a ready thread is scheduled within this time even on a busy machine */
#define BRIEF_NS \
	(2 * NSEC_PER_MSEC) /* for LATE_NS after a late read, so that no program can block the loop repeatedly */
#define LATE_NS       (10 * NSEC_PER_SEC)
#define LATE_MOST     4 /* blocked threads of a program; with more of them nothing of it is read back */
#define LATE_PROGRAMS 8 /* with as many late programs all waits are brief */

/* A thread and its read. Under the lock, except @bytes, which only the thread uses until the read is done. */
struct reader {
	pthread_cond_t work, done;
	enum {
		READ_IDLE,
		READ_WANTED,
		READ_RUNNING,
		READ_DONE
	} state;
	bool abandoned; /* owned by the thread, and in the list late */
	struct list link;
	pid_t program;
	int fd;
	size_t len;
	u8 bytes[READBACK_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reader *reader; /* the idle one; used by the loop only */
static struct list late = { &late, &late };
static struct {
	pid_t program;
	u64 until;              /* CLOCK_MONOTONIC, ns */
} late_programs[LATE_PROGRAMS]; /* used by the loop only */

static void reader_free(struct reader *r)
{
	pthread_cond_destroy(&r->work);
	pthread_cond_destroy(&r->done);
	free(r);
}

static void *reader_thread(void *arg)
{
	struct reader *r = arg;
	ssize_t n;

	pthread_mutex_lock(&lock);
	while (!r->abandoned) {
		if (r->state != READ_WANTED) {
			pthread_cond_wait(&r->work, &lock);
			continue;
		}
		r->state = READ_RUNNING;
		pthread_mutex_unlock(&lock);
		r->len = 0;
		while (r->len < sizeof(r->bytes) &&
		       (n = recv(r->fd, r->bytes + r->len, sizeof(r->bytes) - r->len, MSG_DONTWAIT)) > 0)
			r->len += (size_t)n;
		close(r->fd);
		pthread_mutex_lock(&lock);
		r->state = READ_DONE;
		pthread_cond_signal(&r->done);
	}
	list_del(&r->link);
	pthread_mutex_unlock(&lock);
	reader_free(r);
	return NULL;
}

static struct reader *reader_create(void)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_cond_init(&r->work, NULL);
	thread_cond_init(&r->done);
	if (!thread_detached(reader_thread, r))
		return r;
	reader_free(r);
	return NULL;
}

static u32 late_of(pid_t program)
{
	const struct reader *r;
	u32 n = 0;

	list_for_each (r, &late, link)
		n += r->program == program;
	return n;
}

/* How long the loop waits for a read of @program. */
static u64 wait_ns(pid_t program, u64 now)
{
	u32 i, n = 0;

	for (i = 0; i < LATE_PROGRAMS; i++) {
		if (now >= late_programs[i].until)
			continue;
		n++;
		if (late_programs[i].program == program)
			return BRIEF_NS;
	}
	return n < LATE_PROGRAMS ? WAIT_NS : BRIEF_NS;
}

static void program_late(pid_t program, u64 now)
{
	u32 i, at = 0;

	for (i = 0; i < LATE_PROGRAMS; i++) {
		if (late_programs[i].program == program) {
			at = i;
			break;
		}
		if (late_programs[i].until < late_programs[at].until)
			at = i;
	}
	late_programs[at].program = program;
	late_programs[at].until = now + LATE_NS;
}

ssize_t uv_readback(int app, pid_t program, u8 *to)
{
	u64 now = clock_read(), ns = now + wait_ns(program, now);
	struct timespec until = { .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	ssize_t n = -EAGAIN;
	int fd;

	if (!reader)
		reader = reader_create();
	fd = reader ? fcntl(app, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0)
		return n;
	pthread_mutex_lock(&lock);
	if (late_of(program) < LATE_MOST) {
		reader->fd = fd;
		reader->state = READ_WANTED;
		pthread_cond_signal(&reader->work);
		while (reader->state != READ_DONE && pthread_cond_timedwait(&reader->done, &lock, &until) != ETIMEDOUT)
			;
	}
	switch (reader->state) {
	case READ_DONE:
		n = (ssize_t)reader->len;
		memcpy(to, reader->bytes, reader->len);
		break;
	case READ_RUNNING:
		n = -ETIMEDOUT;
		program_late(program, clock_read());
		reader->abandoned = true;
		reader->program = program;
		list_add(&late, &reader->link);
		reader = NULL;
		break;
	default: /* it has not started */
		close(fd);
	}
	if (reader)
		reader->state = READ_IDLE;
	pthread_mutex_unlock(&lock);
	return n;
}

u32 uv_unread(int app)
{
	int n;

	return ioctl(app, SIOCINQ, &n) || n < 0 ? 0 : (u32)n;
}
