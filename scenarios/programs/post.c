// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages by a program that checks the result of ibv_post_send():
 *
 *     post serve PORT           post send HOST PORT COUNT
 *
 * Reports and omits messages that could not be posted; exactly the others must arrive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

static const struct rc_options options = { .port = 1, .timeout = 14, .retries = 7, .rnr_retries = 7 };

static void serve(struct rc_device *dev, const char *port)
{
	unsigned number;
	struct ibv_wc wc;
	struct rc rc;

	rc_connect(&rc, dev, rc_accept(rc_listen(port)), &options);
	printf("received");
	while (rc_wait(dev, &wc, 1500) && wc.status == IBV_WC_SUCCESS) {
		memcpy(&number, dev->buf + (RC_DEPTH + wc.wr_id) * RC_SIZE, sizeof(number));
		printf(" %u", number);
		rc_post_recv(&rc, (unsigned)wc.wr_id);
	}
	printf("\n");
}

static void send_all(struct rc_device *dev, const char *host, const char *port, unsigned count)
{
	unsigned i, posted = 0, done = 0;
	struct ibv_wc wc;
	struct rc rc;
	int err;

	rc_connect(&rc, dev, rc_dial(host, port), &options);
	for (i = 1; i <= count && i < RC_DEPTH; i++) {
		memcpy(dev->buf + (size_t)i * RC_SIZE, &i, sizeof(i));
		err = rc_post_send(&rc, i, 64, i);
		if (err)
			printf("post %u: %s\n", i, strerror(err));
		posted += !err;
	}
	while (done < posted && rc_wait(dev, &wc, 5000) && wc.status == IBV_WC_SUCCESS)
		done++;
	printf("posted %u, completed %u%s\n", posted, done, rc_wait(dev, &wc, 100) ? " and more" : "");
}

int main(int argc, char **argv)
{
	struct rc_device dev;

	rc_device_open(&dev);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(&dev, argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "send"))
		send_all(&dev, argv[2], argv[3], (unsigned)atoi(argv[4]));
	else
		die("post serve PORT | send HOST PORT COUNT");
	return 0;
}
