// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The thread that copies between the daemon and one client process. It may block without limit (see dma.c), so it is
 * detached, refers only to its mover and its current move, and is never joined: when the file of the process is closed
 * while the thread blocks, the thread frees the mover when it returns.
 *
 * A process that ends, or executes another program, loses its memory before its files are closed. To an adapter, which
 * has pinned it, the memory is there until the kernel destroys the queue pairs with their file: so moves that find none
 * remain pending until then, and the peers get no answer instead of an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/mover.h"
#include "emu/host/protected.h"
#include "emu/lib/clock.h"
#include "emu/lib/passed.h"
#include "emu/lib/thread.h"

#define IOVS 512

#define SPIN_NS (30 * NSEC_PER_USEC) /* spin time of each side before it sleeps */

struct uv_mover {
	/* used by the loop only */
	struct uv_process *process;
	struct loop_poller poller;
	struct loop_fd woken;
	/* shared, under the lock; ndone is also read without it */
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct list todo, over, lost; /* lost: without memory */
	struct hca_move *current;
	u32 ntodo, ndone;
	bool asleep, closed;
	/* constant */
	pid_t pid;
	int wake; /* eventfd */
	int sock; /* to the copy thread of the process, or -1: process_vm_readv() works */
	u8 *staging;
	/* used by the thread only */
	int mem;   /* /proc/PID/mem: refers to the memory of the program that the process executed when it was opened */
	bool gone; /* the process has no memory any more, or another program's */
};

/* Spins until the other thread sets *@what, at most until @until. */
static void mover_spin(const u32 *what, u64 until)
{
	while (!__atomic_load_n(what, __ATOMIC_ACQUIRE) && clock_read() < until)
		sched_yield();
}

static struct {
	pthread_mutex_t lock;
	u32 n;
	pid_t pid[UV_MOVERS];
} threads = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool thread_count_add(pid_t pid)
{
	u32 i, same = 0;
	bool ok;

	pthread_mutex_lock(&threads.lock);
	for (i = 0; i < threads.n; i++)
		same += threads.pid[i] == pid;
	ok = threads.n < UV_MOVERS && same < UV_MOVERS_PROCESS;
	if (ok)
		threads.pid[threads.n++] = pid;
	pthread_mutex_unlock(&threads.lock);
	return ok;
}

static void thread_count_remove(pid_t pid)
{
	u32 i;

	pthread_mutex_lock(&threads.lock);
	for (i = 0; i < threads.n && threads.pid[i] != pid;)
		i++;
	if (i < threads.n)
		threads.pid[i] = threads.pid[--threads.n];
	pthread_mutex_unlock(&threads.lock);
}

static void mover_free(struct uv_mover *mv)
{
	if (mv->sock >= 0)
		close(mv->sock);
	if (mv->staging)
		munmap(mv->staging, UV_COPY_SIZE);
	if (mv->wake >= 0)
		close(mv->wake);
	if (mv->mem >= 0)
		close(mv->mem);
	pthread_cond_destroy(&mv->work);
	pthread_cond_destroy(&mv->done);
	pthread_mutex_destroy(&mv->lock);
	free(mv);
}

/* On the worker thread, with process_vm_readv() and process_vm_writev() */

/* After execve() the old memory, which the file refers to, has an end at each address. */
static bool vm_replaced(const struct uv_mover *mv, u64 addr)
{
	u8 byte;

	return mv->mem >= 0 && pread(mv->mem, &byte, 1, (off_t)addr) == 0;
}

/* Segments [from, to) of @m, whose bytes begin at @data. */
static bool vm_run(struct uv_mover *mv, const struct hca_move *m, u32 from, u32 to, u8 *data, bool write)
{
	struct iovec remote[IOVS], local = { .iov_base = data };
	u32 n = 0, i;
	ssize_t len;

	for (i = from; i < to; i++) {
		void *addr = (void *)(uintptr_t)m->seg[i].addr;

		local.iov_len += m->seg[i].len;
		if (n && (u8 *)remote[n - 1].iov_base + remote[n - 1].iov_len == addr)
			remote[n - 1].iov_len += m->seg[i].len;
		else
			remote[n++] = (struct iovec){ addr, m->seg[i].len };
	}
	len = write ? process_vm_writev(mv->pid, &local, 1, remote, n, 0)
		    : process_vm_readv(mv->pid, &local, 1, remote, n, 0);
	mv->gone = len < 0 && (errno == ESRCH || (errno == EFAULT && vm_replaced(mv, m->seg[from].addr)));
	return len == (ssize_t)local.iov_len;
}

/* Through the process's copy thread and the staging memory */

static bool copy_request(struct uv_mover *mv, const struct uv_copy *c)
{
	size_t len = offsetof(struct uv_copy, seg) + c->n * sizeof(c->seg[0]);
	int32_t result;

	mv->gone = send(mv->sock, c, len, MSG_NOSIGNAL) < 0 || recv(mv->sock, &result, sizeof(result), 0) <= 0;
	return !mv->gone && !result;
}

static bool copy_run(struct uv_mover *mv, const struct hca_move *m, u32 from, u32 to, u8 *data, bool write)
{
	struct uv_copy c = { .write = write };
	u32 i = from, skip = 0; /* bytes of segment i already copied */

	while (i < to) {
		u32 total = 0;

		for (c.n = 0; i < to && c.n < UV_COPY_SEGS && total < UV_COPY_SIZE;) {
			u32 len = min(m->seg[i].len - skip, UV_COPY_SIZE - total);

			c.seg[c.n++] = (struct uv_copy_seg){ m->seg[i].addr + skip, len };
			total += len;
			skip += len;
			if (skip == m->seg[i].len) {
				i++;
				skip = 0;
			}
		}
		if (write)
			memcpy(mv->staging, data, total);
		if (!copy_request(mv, &c))
			return false;
		if (!write)
			memcpy(data, mv->staging, total);
		data += total;
	}
	return true;
}

static bool mover_run(struct uv_mover *mv, const struct hca_move *m, u32 from, u32 to, u8 *data, bool write)
{
	return mv->sock >= 0 ? copy_run(mv, m, from, to, data, write) : vm_run(mv, m, from, to, data, write);
}

/* Segment @i alone. Its region was registered with rights that the program may have removed from its pages since. */
static bool segment_run(struct uv_mover *mv, const struct hca_move *m, u32 i, u8 *data, bool write)
{
	const struct hca_move_seg *s = &m->seg[i];

	if (mover_run(mv, m, i, i + 1, data, write))
		return true;
	if (mv->gone || mv->mem < 0 || s->on_demand)
		return false;
	return write ? uv_protected_write(mv->mem, mv->pid, s->addr, data, s->len)
		     : uv_protected_read(mv->mem, s->addr, data, s->len);
}

/* When segments fail together, tries each one to find those that fail. */
static void move_run(struct uv_mover *mv, struct hca_move *m)
{
	bool write = m->op == HCA_MOVE_WRITE;
	u8 *data = m->data;
	u32 from = 0, to, bytes, i;

	for (; from < m->n && !mv->gone; from = to, data += bytes) {
		for (to = from, bytes = 0; to < m->n && to - from < IOVS; to++)
			bytes += m->seg[to].len;
		if (mover_run(mv, m, from, to, data, write))
			continue;
		for (i = from, bytes = 0; i < to && !mv->gone; bytes += m->seg[i++].len)
			m->seg[i].failed = !segment_run(mv, m, i, data + bytes, write);
	}
}

/* Not atomic with respect to the process; only shared memory can be. */
static void atomic_run(struct uv_mover *mv, struct hca_move *m)
{
	u64 before, after;

	m->seg[0].failed = !segment_run(mv, m, 0, m->data, false);
	if (m->seg[0].failed)
		return;
	memcpy(&before, m->data, sizeof(before));
	after = hca_atomic_value(m->op == HCA_MOVE_CMP_SWAP, before, m->compare_add, m->swap);
	if (after != before)
		m->seg[0].failed = !segment_run(mv, m, 0, (u8 *)&after, true);
}

static void *mover_thread(void *arg)
{
	struct uv_mover *mv = arg;
	char path[32];

	if (mv->sock < 0) {
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)mv->pid);
		mv->mem = open(path, O_RDWR | O_CLOEXEC);
	}
	pthread_mutex_lock(&mv->lock);
	for (;;) {
		struct hca_move *m;

		if (list_empty(&mv->todo) && !mv->closed) {
			pthread_mutex_unlock(&mv->lock);
			mover_spin(&mv->ntodo, clock_read() + SPIN_NS);
			pthread_mutex_lock(&mv->lock);
		}
		while (list_empty(&mv->todo) && !mv->closed)
			pthread_cond_wait(&mv->work, &mv->lock);
		if (mv->closed)
			break;
		m = mv->current = list_first(&mv->todo, struct hca_move, link);
		list_del(&m->link);
		mv->ntodo--;
		pthread_mutex_unlock(&mv->lock);
		if (hca_move_abandoned(m))
			; /* the program's memory is no longer the adapter's */
		else if (m->op >= HCA_MOVE_FETCH_ADD)
			atomic_run(mv, m);
		else
			move_run(mv, m);
		pthread_mutex_lock(&mv->lock);
		mv->current = NULL;
		if (mv->closed) { /* the context has been destroyed */
			free(m);
			break;
		}
		if (mv->gone) {
			list_add(&mv->lost, &m->link);
			continue;
		}
		list_add(&mv->over, &m->link);
		__atomic_store_n(&mv->ndone, mv->ndone + 1, __ATOMIC_SEQ_CST);
		pthread_cond_signal(&mv->done);
		if (__atomic_load_n(&mv->asleep, __ATOMIC_SEQ_CST))
			eventfd_write(mv->wake, 1);
	}
	pthread_mutex_unlock(&mv->lock);
	thread_count_remove(mv->pid);
	mover_free(mv);
	return NULL;
}

/* Called from the loop thread. */

static u32 on_poll(struct loop_poller *p, struct now now)
{
	struct uv_mover *mv = container_of(p, struct uv_mover, poller);
	struct uv_process *process = mv->process;
	struct list over;
	u32 n = 0;

	if (!__atomic_load_n(&mv->ndone, __ATOMIC_SEQ_CST))
		return 0;
	list_init(&over);
	pthread_mutex_lock(&mv->lock);
	list_splice(&over, &mv->over);
	mv->ndone = 0;
	pthread_mutex_unlock(&mv->lock);
	uv_process_get(process);
	for (; !list_empty(&over); n++) {
		struct hca_move *m = list_first(&over, struct hca_move, link);

		list_del(&m->link);
		uv_process_moved(process, m);
	}
	if (process->server)
		uv_server_moved(process->server);
	uv_process_put(process);
	return n;
}

static bool on_sleep(struct loop_poller *p, bool asleep)
{
	struct uv_mover *mv = container_of(p, struct uv_mover, poller);

	__atomic_store_n(&mv->asleep, asleep, __ATOMIC_SEQ_CST);
	return asleep && __atomic_load_n(&mv->ndone, __ATOMIC_SEQ_CST);
}

/* The poller handles finished moves. */
static void on_wake(struct loop_fd *w, u32 events, struct now now)
{
	eventfd_t v;

	eventfd_read(w->fd, &v);
}

struct uv_mover *uv_mover_create(struct uv_process *p)
{
	struct uv_mover *mv = calloc(1, sizeof(*mv));
	bool counted;

	if (!mv)
		return NULL;
	mv->process = p;
	mv->pid = p->pid;
	mv->sock = mv->mem = -1;
	mv->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	list_init(&mv->todo);
	list_init(&mv->over);
	list_init(&mv->lost);
	pthread_mutex_init(&mv->lock, NULL);
	pthread_cond_init(&mv->work, NULL);
	thread_cond_init(&mv->done);
	mv->woken = (struct loop_fd){ .fd = mv->wake, .fn = on_wake };
	mv->poller = (struct loop_poller){ .poll = on_poll, .sleep = on_sleep };
	if (mv->wake < 0 || loop_fd_add(p->loop, &mv->woken, EPOLLIN)) {
		mover_free(mv);
		return NULL;
	}
	mv->sock = p->copy; /* before the thread starts */
	mv->staging = p->staging;
	counted = thread_count_add(mv->pid);
	if (!counted || thread_detached(mover_thread, mv)) {
		if (counted)
			thread_count_remove(mv->pid);
		loop_fd_del(&mv->woken);
		mv->sock = -1;
		mv->staging = NULL;
		mover_free(mv);
		return NULL;
	}
	passed_opened();
	p->copy = -1;
	p->staging = NULL;
	loop_poller_add(p->loop, &mv->poller);
	return mv;
}

void uv_mover_push(struct uv_mover *mv, struct hca_move *m)
{
	pthread_mutex_lock(&mv->lock);
	list_add(&mv->todo, &m->link);
	__atomic_store_n(&mv->ntodo, mv->ntodo + 1, __ATOMIC_SEQ_CST);
	pthread_cond_signal(&mv->work);
	pthread_mutex_unlock(&mv->lock);
}

bool uv_mover_wait(struct uv_mover *mv, u64 deadline)
{
	const struct timespec until = { .tv_sec = (time_t)(deadline / NSEC_PER_SEC),
					.tv_nsec = (long)(deadline % NSEC_PER_SEC) };
	bool done;

	mover_spin(&mv->ndone, min(deadline, clock_read() + SPIN_NS));
	pthread_mutex_lock(&mv->lock);
	while (!mv->ndone && pthread_cond_timedwait(&mv->done, &mv->lock, &until) != ETIMEDOUT)
		;
	done = mv->ndone;
	if (done) {
		list_del(mv->over.next);
		mv->ndone = 0;
	}
	pthread_mutex_unlock(&mv->lock);
	return done;
}

void uv_mover_destroy(struct uv_mover *mv)
{
	struct hca_move *current, *m;
	struct list rest;

	loop_poller_del(&mv->poller);
	loop_fd_del(&mv->woken);
	list_init(&rest);
	pthread_mutex_lock(&mv->lock);
	list_splice(&rest, &mv->over);
	list_splice(&rest, &mv->lost);
	list_splice(&rest, &mv->todo);
	current = mv->current;
	if (current)
		hca_move_abandon(current); /* the thread frees it */
	mv->closed = true;
	if (mv->sock >= 0)
		shutdown(mv->sock, SHUT_RDWR);
	pthread_cond_signal(&mv->work);
	pthread_mutex_unlock(&mv->lock);
	while (!list_empty(&rest)) {
		m = list_first(&rest, struct hca_move, link);
		list_del(&m->link);
		hca_move_abandon(m);
		free(m);
	}
}
