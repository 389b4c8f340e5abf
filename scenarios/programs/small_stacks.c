// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stacks that are large enough for the kernel's device: a thread with the smallest stack (PTHREAD_STACK_MIN) opens
 * files and registers memory, and a handler of a signal on an alternate stack of 8 KiB, the usual size, opens files.
 * Prints a line for each.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"

#define ALTERNATE 8192
#define BYTES     65536

static struct ibv_context *context;

static void use_files(void)
{
	int fd = open("/", O_RDONLY | O_CLOEXEC);
	struct stat st;

	must(fd >= 0 && !close(fd) && !stat("/", &st) && !access("/", F_OK), "/");
}

static void *register_memory(void *arg)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	use_files();
	must(pd && ibv_reg_mr(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	return NULL;
}

static void on_signal(int number)
{
	use_files();
}

/* The pages below it cannot be accessed. */
static void *stack_create(void)
{
	char *p = mmap(NULL, 4 * ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p != MAP_FAILED && !mprotect(p, 3 * ALTERNATE, PROT_NONE), "stack");
	return p + 3 * ALTERNATE;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t alternate = { .ss_sp = stack_create(), .ss_size = ALTERNATE };
	struct ibv_device **list = ibv_get_device_list(NULL);
	pthread_attr_t attr;
	pthread_t thread;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	must(!!context, "ibv_open_device");
	pthread_attr_init(&attr);
	must(!pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN), "stack size");
	must(!pthread_create(&thread, &attr, register_memory, NULL) && !pthread_join(thread, NULL), "thread");
	puts("a thread");
	fflush(stdout);
	must(!sigaltstack(&alternate, NULL) && !sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1), "signal");
	puts("a handler of a signal");
	return 0;
}
