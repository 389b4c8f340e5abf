// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Closes an event channel while another thread, which has just acknowledged an event, is still on its way to the next
 * rdma_get_cm_event(): as rping does. That call must not fail, but wait. Prints "waits". Argument: an IP address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

#define BUSY_US  20000
#define LATER_US 200000

static atomic_bool is_read;

static void be_busy(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void *events(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;

	must(!rdma_get_cm_event(channel, &event), "event");
	must(event->event == RDMA_CM_EVENT_ADDR_RESOLVED, rdma_event_str(event->event));
	is_read = true;
	be_busy(BUSY_US);
	rdma_ack_cm_event(event); /* rdma_destroy_id() waits for it */
	be_busy(BUSY_US);
	rdma_get_cm_event(channel, &event);
	fprintf(stderr, "returned: %s\n", strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_event_channel copy; /* rdma_destroy_event_channel() frees the other */
	struct rdma_cm_id *id;
	pthread_t thread;

	must(channel && argc == 2 && inet_pton(AF_INET, argv[1], &to.sin_addr) == 1, "ADDRESS");
	copy = *channel;
	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "id");
	must(!pthread_create(&thread, NULL, events, &copy), "thread");
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), "resolve");
	while (!is_read)
		usleep(100);
	must(!rdma_destroy_id(id), "destroy");
	rdma_destroy_event_channel(channel);
	usleep(LATER_US);
	puts("waits");
	return 0;
}
