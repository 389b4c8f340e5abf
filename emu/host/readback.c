// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Takes back what an application has not read from its end of a socket pair. A recv() of the application holds the lock of that end
 * while it copies to memory, which may block without limit (see dma.c), and MSG_DONTWAIT of another reader waits for the lock. So a
 * detached thread reads, and the loop waits for it a short time.
 */
#include "emu/host/readback.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STACK     (256u << 10)
#define WAIT_NS   (200 * NSEC_PER_MSEC) /* a ready thread gets its time within this on a busy machine, too */
#define LATE_MOST 4 /* threads that are blocked; then nothing is read back, and nothing is waited for */

struct readback {
	pthread_cond_t done;
	bool finished, abandoned;
	int fd;
	size_t len;
	u8 bytes[READBACK_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u32 late;

static void readback_free(struct readback *r)
{
	close(r->fd); /* a copy of the daemon's own */
	pthread_cond_destroy(&r->done);
	free(r);
}

static void *readback_thread(void *arg)
{
	struct readback *r = arg;
	bool abandoned;
	ssize_t n;

	while (r->len < sizeof(r->bytes) &&
	       (n = recv(r->fd, r->bytes + r->len, sizeof(r->bytes) - r->len, MSG_DONTWAIT)) > 0)
		r->len += (size_t)n;
	pthread_mutex_lock(&lock);
	r->finished = true;
	abandoned = r->abandoned;
	late -= abandoned;
	pthread_cond_signal(&r->done);
	pthread_mutex_unlock(&lock);
	if (abandoned)
		readback_free(r);
	return NULL;
}

static struct readback *readback_start(int app)
{
	struct readback *r = calloc(1, sizeof(*r));
	pthread_condattr_t clock;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;
	int err;

	if (!r)
		return NULL;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&r->done, &clock);
	pthread_condattr_destroy(&clock);
	r->fd = fcntl(app, F_DUPFD_CLOEXEC, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	err = r->fd < 0 ? EMFILE : pthread_create(&t, &attr, readback_thread, r);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return r;
	if (r->fd >= 0)
		close(r->fd);
	pthread_cond_destroy(&r->done);
	free(r);
	return NULL;
}

static bool readback_wait(struct readback *r)
{
	struct timespec until;
	bool finished;
	u64 ns;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns = (u64)until.tv_sec * NSEC_PER_SEC + (u64)until.tv_nsec + WAIT_NS;
	until = (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	pthread_mutex_lock(&lock);
	while (!r->finished && pthread_cond_timedwait(&r->done, &lock, &until) != ETIMEDOUT)
		;
	finished = r->finished;
	if (!finished) {
		r->abandoned = true; /* it is the thread's */
		late++;
	}
	pthread_mutex_unlock(&lock);
	return finished;
}

ssize_t uv_readback(int app, u8 *to)
{
	struct readback *r;
	bool refused;
	ssize_t n;

	pthread_mutex_lock(&lock);
	refused = late >= LATE_MOST;
	pthread_mutex_unlock(&lock);
	r = refused ? NULL : readback_start(app);
	if (!r)
		return -EAGAIN;
	if (!readback_wait(r))
		return -ETIMEDOUT;
	n = (ssize_t)r->len;
	memcpy(to, r->bytes, r->len);
	readback_free(r);
	return n;
}

u32 uv_unread(int app)
{
	int n;

	return ioctl(app, SIOCINQ, &n) || n < 0 ? 0 : (u32)n;
}
