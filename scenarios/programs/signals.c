// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Signals during rdma_get_cm_event(): it continues to wait after a handler with SA_RESTART, and fails with EINTR after
 * one without. Argument: an IP address of the network that no host has, whose resolution takes as long as the program
 * wants. Prints the results.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "must.h"

#define RESOLVE_MS 1000
#define PERIOD_US  50000

static volatile sig_atomic_t signals;

static void on_alarm(int number)
{
	signals++;
}

static void wait_for_event(const char *address, int flags)
{
	struct itimerval period = { { 0, PERIOD_US }, { 0, PERIOD_US } }, none = { 0 };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int failed;

	must(channel && inet_pton(AF_INET, address, &to.sin_addr) == 1, "ADDRESS");
	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "id");
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVE_MS), "resolve");
	signals = 0;
	must(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &period, NULL), "timer");
	failed = rdma_get_cm_event(channel, &event);
	setitimer(ITIMER_REAL, &none, NULL);
	printf("%s: %s\n", signals ? "signals" : "no signal", failed ? strerror(errno) : rdma_event_str(event->event));
	if (!failed)
		rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	must(argc == 2, "ADDRESS");
	wait_for_event(argv[1], SA_RESTART);
	wait_for_event(argv[1], 0);
	return 0;
}
