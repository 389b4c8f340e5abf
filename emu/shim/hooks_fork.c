// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Child processes with their own memory. fork() runs the handlers that are registered here. _Fork(), clone() without
 * CLONE_VM and syscall() with the numbers of fork and clone do not, and are hooked. A child of vfork() or posix_spawn()
 * shares our memory until it calls exec: nothing is done for it. A fork by an inline system call is detected later, by
 * a page that the kernel clears in the child: such a child has its own table and copy from its first hooked call on.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/shim/shim.h"

/* glibc implements pthread_atfork() with it. Other C libraries, which are not supported (symbol.c), do not have it. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

static pid_t owner;
/* 1; the kernel clears it in a child with its own memory (MADV_WIPEONFORK). NULL: not supported. */
static unsigned int *same_memory;

static void child_begin(void)
{
	owner = getpid();
	if (same_memory)
		*same_memory = 1;
	shim_rpc_child();
	shim_table_child();
	shim_umad_child();
	shim_share_child();
	shim_poll_child();
}

bool shim_own_process(void)
{
	if (!owner || getpid() == owner)
		return true;
	if (!same_memory || *same_memory)
		return false;
	child_begin();
	return true;
}

/* Before fork(): waits for calls of other threads, so that the child has consistent state. */
static void before_fork(void)
{
	shim_share_fork(true);
	shim_rpc_lock();
	shim_table_lock();
	shim_umad_lock();
}

static void after_fork(void)
{
	shim_umad_unlock();
	shim_table_unlock();
	shim_rpc_unlock();
	shim_share_forked();
}

/*
 * Handlers before fork() are called in reverse order of registration. Another library may have a lock when it calls us:
 * an allocator that calls madvise(), or a cache that registers memory. So ours are registered before those of all
 * libraries, to take our locks after theirs.
 */
static void handlers_register(void)
{
	static bool done;

	if (!done && REAL(__register_atfork)) {
		done = true;
		REAL(__register_atfork)(before_fork, after_fork, child_begin, __dso_handle);
	}
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
	handlers_register();
	return REAL(__register_atfork)(prepare, parent, child, object);
}

__attribute__((constructor)) static void start(void)
{
	long page = sysconf(_SC_PAGESIZE);

	owner = getpid();
	same_memory = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (same_memory == MAP_FAILED || REAL(madvise)(same_memory, (size_t)page, MADV_WIPEONFORK))
		same_memory = NULL;
	else
		*same_memory = 1;
	handlers_register();
}

/* After _Fork(), clone() and syscall(), which signal handlers may call: does not wait for other threads. */
static long forked(long pid, bool prepared)
{
	int saved = errno;

	if (!pid)
		child_begin();
	else if (prepared)
		shim_share_forked();
	errno = saved;
	return pid;
}

pid_t _Fork(void)
{
	bool prepared = shim_share_fork(false);

	return (pid_t)forked(REAL(_Fork)(), prepared);
}

struct clone_start {
	int (*fn)(void *arg);
	void *arg;
};

static int clone_child(void *arg)
{
	struct clone_start s = *(struct clone_start *)arg;

	child_begin();
	return s.fn(s.arg);
}

int clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...)
{
	struct clone_start s = { fn, arg };
	void *tls, *ptid, *ctid;
	bool prepared;
	va_list ap;

	va_start(ap, arg);
	ptid = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	ctid = va_arg(ap, void *);
	va_end(ap);
	if (flags & CLONE_VM || !fn)
		return REAL(clone)(fn, stack, flags, arg, ptid, tls, ctid);
	prepared = shim_share_fork(false);
	return (int)forked(REAL(clone)(clone_child, stack, flags, &s, ptid, tls, ctid), prepared);
}

/* Does the system call create a child with its own memory, which returns here as its parent does? */
static bool forks(long number, const long *a)
{
	const struct clone_args *args = (const void *)a[0];

	switch (number) {
#ifdef SYS_fork
	case SYS_fork:
		return true;
#endif
	case SYS_clone:
		return !(a[0] & CLONE_VM) && !a[1];
	case SYS_clone3:
		return args && (size_t)a[1] >= CLONE_ARGS_SIZE_VER0 && !(args->flags & CLONE_VM) && !args->stack;
	default:
		return false;
	}
}

long syscall(long number, ...)
{
	long a[6], result;
	bool prepared;
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (shim_fd_syscall(number, a, &result))
		return result;
	if (!forks(number, a))
		return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	prepared = shim_share_fork(false);
	return forked(REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]), prepared);
}
