// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A small storage initiator: several connections share a completion queue, and a work request's ID is the address of
 * the request, which belongs to its connection.
 *
 *     flicker serve PORT            flicker send HOST PORT COUNT careless|careful
 *
 * A failed connection is destroyed and opened again, repeatedly while the peer's port goes down and up. `careless`
 * frees its requests at once: completions of the destroyed queue pair in the shared completion queue refer to freed
 * memory, and the program crashes. `careful` polls the completions of all its requests first.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "rc.h"

#define CONNECTIONS 2
#define REQUESTS    8

static const struct rc_options options = { .port = 1, .timeout = 10, .retries = 2, .rnr_retries = 7 };

struct connection;

struct request {
	struct connection *owner;
	unsigned slot;
	bool busy;
};

/* In pages of its own, which are unmapped on free, so that a later access crashes. */
struct connection {
	struct rc rc;
	bool failed;
	unsigned busy;
	struct request req[REQUESTS];
};

static unsigned done, made;

static struct connection *connection_make(struct rc_device *dev, char **argv, unsigned place)
{
	struct connection *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned i;

	if (c == MAP_FAILED)
		die("no memory");
	rc_connect(&c->rc, dev, rc_dial(argv[0], argv[1]), &options);
	for (i = 0; i < REQUESTS; i++)
		c->req[i] = (struct request){ .owner = c, .slot = place * REQUESTS + i };
	made++;
	return c;
}

/* Receives of this program are never used; their IDs are small numbers. */
static void completed(const struct ibv_wc *wc)
{
	struct request *r = (struct request *)(uintptr_t)wc->wr_id;

	if (wc->wr_id < RC_DEPTH)
		return;
	r->busy = false;
	r->owner->busy--;
	if (wc->status == IBV_WC_SUCCESS)
		done++;
	else
		r->owner->failed = true;
}

static void connection_end(struct connection *c, bool careful)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	if (careful) {
		ibv_modify_qp(c->rc.qp, &a, IBV_QP_STATE);
		while (c->busy && rc_wait(c->rc.dev, &wc, 5000))
			completed(&wc);
		while (rc_wait(c->rc.dev, &wc, 0))
			completed(&wc);
	}
	rc_close(&c->rc);
	mprotect(c, sizeof(*c), PROT_NONE);
}

static void submit(struct connection *c)
{
	unsigned i;

	for (i = 0; i < REQUESTS; i++) {
		struct request *r = &c->req[i];

		if (r->busy || rc_post_send(&c->rc, r->slot, 64, (uintptr_t)r))
			continue;
		r->busy = true;
		c->busy++;
	}
}

static void run(struct rc_device *dev, char **argv, unsigned count, bool careful)
{
	struct connection *c[CONNECTIONS];
	struct ibv_wc wc;
	unsigned i;

	for (i = 0; i < CONNECTIONS; i++)
		c[i] = connection_make(dev, argv, i);
	while (done < count) {
		for (i = 0; i < CONNECTIONS; i++) {
			if (c[i]->failed) {
				connection_end(c[i], careful);
				c[i] = connection_make(dev, argv, i);
			}
			submit(c[i]);
		}
		if (rc_wait(dev, &wc, 1000))
			completed(&wc);
	}
	for (i = 0; i < CONNECTIONS; i++)
		connection_end(c[i], true);
	printf("done %u, connections %u\n", done, made);
}

/* Sends no answer and ignores received messages. */
static void serve(struct rc_device *dev, const char *port)
{
	struct pollfd p[RC_DEPTH] = { { .fd = rc_listen(port), .events = POLLIN } };
	struct rc rc[RC_DEPTH];
	struct ibv_wc wc;
	unsigned n = 1, i;
	char byte;

	for (;;) {
		poll(p, n, 1);
		if (p[0].revents && n < RC_DEPTH) {
			rc_connect(&rc[n], dev, rc_accept(p[0].fd), &options);
			p[n] = (struct pollfd){ .fd = rc[n].sock, .events = POLLIN };
			n++;
		}
		while (rc_wait(dev, &wc, 0))
			for (i = 1; i < n && wc.status == IBV_WC_SUCCESS; i++)
				if (rc[i].qp->qp_num == wc.qp_num)
					rc_post_recv(&rc[i], (unsigned)wc.wr_id);
		for (i = 1; i < n; i++)
			if (recv(rc[i].sock, &byte, 1, MSG_DONTWAIT) == 0) {
				rc_close(&rc[i]);
				rc[i] = rc[--n];
				p[i] = p[n];
			}
	}
}

int main(int argc, char **argv)
{
	struct rc_device dev;

	rc_device_open(&dev);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(&dev, argv[2]);
	else if (argc == 6 && !strcmp(argv[1], "send"))
		run(&dev, argv + 2, (unsigned)atoi(argv[4]), !strcmp(argv[5], "careful"));
	else
		die("flicker serve PORT | send HOST PORT COUNT careless|careful");
	return 0;
}
