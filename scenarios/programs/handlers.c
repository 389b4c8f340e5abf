// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Handlers of signals that interrupt calls on a device: they call functions that signal-safety(7) permits. Prints
 * "KIND: ok" for "descriptors" (which the handler duplicates and closes, as the program does) and "forks" (the handler
 * forks while the program registers memory; its child exits).
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

#define SECONDS 3
#define BYTES   (1u << 20)

static struct ibv_context *context;
static struct ibv_pd *pd;
static volatile sig_atomic_t signals;

static void use_descriptors(void)
{
	int fd = dup(context->cmd_fd);
	struct stat st;

	must(fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode) && !close(fd), "dup");
}

static void on_descriptors(int number)
{
	int saved = errno;

	use_descriptors();
	signals++;
	errno = saved;
}

static void on_forks(int number)
{
	int saved = errno, status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	must(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "fork");
	signals++;
	errno = saved;
}

static void register_memory(void)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE);

	must(mr && !ibv_dereg_mr(mr) && !munmap(p, BYTES), "ibv_reg_mr");
}

int main(int argc, char **argv)
{
	int forks = argc == 2 && !strcmp(argv[1], "forks");
	struct sigaction action = { .sa_handler = forks ? on_forks : on_descriptors, .sa_flags = SA_RESTART };
	struct itimerval period = { { 0, forks ? 3000 : 50 }, { 0, forks ? 3000 : 50 } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	time_t end = time(NULL) + SECONDS;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	must(!!pd, "ibv_open_device");
	must(!sigaction(SIGPROF, &action, NULL) && !setitimer(ITIMER_PROF, &period, NULL), "timer");
	while (time(NULL) < end)
		forks ? register_memory() : use_descriptors();
	memset(&period, 0, sizeof(period));
	setitimer(ITIMER_PROF, &period, NULL);
	printf("%s: %s\n", argv[1], signals ? "ok" : "no signal");
	return 0;
}
