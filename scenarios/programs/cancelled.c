// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that are cancelled in a call: what the call has locked or opened is released. Prints "KIND: ok" for
 * "events" (threads that wait for an event of rdma_cm), "registrations", "completions", "addresses" (connect()),
 * "interfaces" (a file that lists them) and "close" (of a channel that another thread reads events of).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "must.h"

#define TIMES 20
#define BYTES 65536

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static pthread_barrier_t begun;

static struct ibv_mr *registered(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return ibv_reg_mr(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void *wait_for_event(void *events)
{
	struct rdma_cm_event *event;

	pthread_barrier_wait(&begun);
	rdma_get_cm_event(events, &event);
	return NULL;
}

/* It is cancelled before the call. */
static void *wait_for_registration(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&begun);
	pthread_setcancelstate(state, NULL);
	registered();
	return NULL;
}

static void connect_to_nothing(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(1),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno == ECONNREFUSED, "connect");
	close(fd);
}

static void open_interfaces(void)
{
	FILE *f = fopen("/proc/net/if_inet6", "re");

	must(f && !fclose(f), "if_inet6");
}

/* It is cancelled before the call. */
static void *call_first(void *arg)
{
	pthread_barrier_wait(&begun);
	pthread_cancel(pthread_self());
	((void (*)(void))arg)();
	return NULL;
}

static void *wait_for_completion(void *arg)
{
	struct ibv_cq *cq;
	void *context_of_cq;

	pthread_barrier_wait(&begun);
	ibv_get_cq_event(channel, &cq, &context_of_cq);
	return NULL;
}

static pthread_t thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, fn, arg), "pthread_create");
	pthread_barrier_wait(&begun);
	return t;
}

static void events(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7999) };
	struct rdma_event_channel *e;
	struct rdma_cm_id *id;
	int i, before = 0;
	pthread_t t;

	for (i = 0; i < TIMES; i++) {
		e = rdma_create_event_channel();
		must(e && !rdma_create_id(e, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
		must(!rdma_bind_addr(id, (struct sockaddr *)&any) && !rdma_listen(id, 1), "rdma_listen");
		t = thread(wait_for_event, e);
		pthread_cancel(t);
		pthread_join(t, NULL);
		rdma_destroy_id(id);
		rdma_destroy_event_channel(e);
		before = i ? before : descriptors();
	}
	must(descriptors() == before, "descriptors are left");
}

static void registrations(void)
{
	pthread_t t;
	int i;

	must(!!registered(), "ibv_reg_mr"); /* shared with the daemon, which other threads cannot begin */
	for (i = 0; i < TIMES; i++) {
		t = thread(wait_for_registration, NULL);
		pthread_cancel(t);
		pthread_barrier_wait(&begun);
		pthread_join(t, NULL);
	}
	must(!!registered(), "ibv_reg_mr");
}

static void completions(void)
{
	pthread_t t = thread(wait_for_completion, NULL);

	pthread_cancel(t);
	pthread_join(t, NULL);
	must(!ibv_destroy_comp_channel(channel) && !!registered(), "ibv_destroy_comp_channel");
}

static void addresses(void)
{
	pthread_join(thread(call_first, connect_to_nothing), NULL);
	connect_to_nothing();
}

static void interfaces(void)
{
	pthread_join(thread(call_first, open_interfaces), NULL);
	open_interfaces();
}

static volatile int ended;

/* Runs on, so that a close() waits for it. */
static void *read_events(void *events)
{
	struct rdma_cm_event *event;

	must(rdma_get_cm_event(events, &event) && errno == EAGAIN, "rdma_get_cm_event");
	pthread_barrier_wait(&begun);
	while (!ended)
		;
	return NULL;
}

static void *close_channel(void *events)
{
	pthread_barrier_wait(&begun);
	pthread_cancel(pthread_self());
	close(((struct rdma_event_channel *)events)->fd);
	return NULL;
}

static void listen_on(struct rdma_event_channel *events)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7996) };
	struct rdma_cm_id *id;

	must(events && !rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_bind_addr(id, (struct sockaddr *)&any) && !rdma_listen(id, 1), "rdma_listen");
}

/* A thread that is cancelled in close() before it has closed the descriptor leaves that to others. */
static void close_of_channel(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	pthread_t reader;

	listen_on(events);
	must(!fcntl(events->fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
	reader = thread(read_events, events);
	pthread_join(thread(close_channel, events), NULL);
	ended = 1;
	pthread_join(reader, NULL);
	close(events->fd);
	listen_on(rdma_create_event_channel());
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "events", events },       { "registrations", registrations }, { "completions", completions },
		      { "addresses", addresses }, { "interfaces", interfaces },       { "close", close_of_channel } };
	size_t i;

	alarm(60); /* a lock that is not released */
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	must(!!context, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	must(pd && channel, "ibv_alloc_pd");
	pthread_barrier_init(&begun, NULL, 2);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc != 2 || strcmp(argv[1], kinds[i].name))
			continue;
		kinds[i].run();
		printf("%s: ok\n", argv[1]);
	}
	return 0;
}
