// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A small transfer engine: batches of messages over a connection that is opened once and reused.
 *
 *     rebuild serve PORT             rebuild send HOST PORT BATCHES keep|rebuild
 *
 * `keep` is a common error of such engines: while a port is down it waits for PORT_ACTIVE, and then continues with its
 * queue pair, which stays in the error state. `rebuild` destroys a queue pair whose work has failed, and connects to
 * the peer again.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rc.h"

#define BATCH 8

static const struct rc_options options = { .port = 1, .timeout = 12, .retries = 4, .rnr_retries = 7 };

static bool hung_up(int sock)
{
	char byte;

	return recv(sock, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Polls flushed completions of a destroyed queue pair. */
static void forget(struct rc_device *dev)
{
	struct ibv_wc wc;

	while (rc_wait(dev, &wc, 0))
		;
}

static void serve(struct rc_device *dev, const char *port)
{
	int listener = rc_listen(port);
	unsigned received = 0;
	struct ibv_wc wc;

	for (;;) {
		struct rc rc;

		rc_connect(&rc, dev, rc_accept(listener), &options);
		while (!hung_up(rc.sock))
			while (rc_wait(dev, &wc, 20) && wc.status == IBV_WC_SUCCESS) {
				printf("received %u\n", ++received);
				rc_post_recv(&rc, (unsigned)wc.wr_id);
			}
		rc_close(&rc);
		forget(dev);
	}
}

/* Sends one batch; returns the number of messages that succeeded. */
static unsigned transfer(struct rc *rc)
{
	unsigned i, done = 0;
	struct ibv_wc wc;

	for (i = 0; i < BATCH; i++)
		if (rc_post_send(rc, i, 64, i))
			return done;
	for (i = 0; i < BATCH && rc_wait(rc->dev, &wc, 20000); i++) {
		done += wc.status == IBV_WC_SUCCESS;
		if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR)
			printf("failed: %s\n", ibv_wc_status_str(wc.status));
	}
	return done;
}

static void wait_active(struct rc_device *dev)
{
	struct ibv_port_attr attr;

	do
		poll(NULL, 0, 50);
	while (ibv_query_port(dev->ctx, 1, &attr) || attr.state != IBV_PORT_ACTIVE);
	printf("the port is active\n");
}

static int send_all(struct rc_device *dev, char **argv, bool rebuild)
{
	unsigned batches = (unsigned)atoi(argv[2]), done = 0, bad = 0;
	struct rc rc;

	rc_connect(&rc, dev, rc_dial(argv[0], argv[1]), &options);
	while (done < batches && bad < 10) {
		if (transfer(&rc) == BATCH) {
			done++;
			poll(NULL, 0, 5);
			continue;
		}
		bad++;
		wait_active(dev);
		if (!rebuild)
			continue;
		rc_close(&rc);
		forget(dev);
		rc_connect(&rc, dev, rc_dial(argv[0], argv[1]), &options);
	}
	printf("%u batches, %u failed\n", done, bad);
	return done < batches;
}

int main(int argc, char **argv)
{
	struct rc_device dev;

	rc_device_open(&dev);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(&dev, argv[2]);
	else if (argc == 6 && !strcmp(argv[1], "send"))
		return send_all(&dev, argv + 2, !strcmp(argv[5], "rebuild"));
	else
		die("rebuild serve PORT | send HOST PORT BATCHES keep|rebuild");
	return 0;
}
