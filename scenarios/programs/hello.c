// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A handshake after connection establishment: the client sends a message, which shows the server that it is ready.
 *
 *     hello serve PORT BYTES|imm           hello send HOST PORT BYTES|imm
 *
 * 0 bytes work on adapters that support empty messages. Some virtual ones drop these silently; then one byte, or
 * immediate data, works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

static const struct rc_options options = { .port = 1, .timeout = 14, .retries = 7, .rnr_retries = 7 };

static int send_hello(struct rc *rc, const char *what)
{
	struct ibv_sge sge = { .addr = (uintptr_t)rc->dev->buf,
			       .length = (unsigned)atoi(what),
			       .lkey = rc->dev->mr->lkey };
	bool imm = !strcmp(what, "imm");
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = sge.length != 0,
				  .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND },
			   *bad;

	return ibv_post_send(rc->qp, &wr, &bad);
}

int main(int argc, char **argv)
{
	bool server = argc == 4 && !strcmp(argv[1], "serve");
	struct rc_device dev;
	struct ibv_wc wc;
	struct rc rc;

	if (!server && (argc != 5 || strcmp(argv[1], "send")))
		die("hello serve PORT BYTES|imm | send HOST PORT BYTES|imm");
	rc_device_open(&dev);
	rc_connect(&rc, &dev, server ? rc_accept(rc_listen(argv[2])) : rc_dial(argv[2], argv[3]), &options);
	if (!server && send_hello(&rc, argv[4]))
		die("post_send failed");
	if (!rc_wait(&dev, &wc, 3000)) {
		printf("%s\n", server ? "nobody has said hello" : "the hello was not acknowledged");
		return 1;
	}
	printf("%s: %s\n", server ? "hello" : "sent", ibv_wc_status_str(wc.status));
	return wc.status != IBV_WC_SUCCESS;
}
