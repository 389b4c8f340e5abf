// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Automatic path migration (IBTA 17.2.8): messages one by one over the first ports of two adapters, with the path
 * between their second ports as the alternate.
 *
 *     apm serve PORT            apm send HOST PORT COUNT [plain]
 *
 * `plain` sets no alternate path. The server reports messages that are out of order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

static const struct rc_options options = { .port = 1, .timeout = 13, .retries = 3, .rnr_retries = 7 };

/* 17.2.8: REARM. It becomes ARMED when traffic shows that the peer has its alternate path, too. */
static void load_alternate(struct rc *rc)
{
	struct ibv_qp_attr a = {
		.path_mig_state = IBV_MIG_REARM,
		.alt_port_num = 2,
		.alt_timeout = options.timeout,
		.alt_ah_attr = { .dlid = rc->peer_lid[1], .port_num = 2 },
	};
	int err = ibv_modify_qp(rc->qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);

	if (err)
		die("the alternate path: %s", strerror(err));
}

static void report(struct rc *rc)
{
	static const char *const states[] = {
		[IBV_MIG_MIGRATED] = "MIGRATED", [IBV_MIG_REARM] = "REARM", [IBV_MIG_ARMED] = "ARMED"
	};
	struct ibv_qp_init_attr init;
	struct ibv_async_event ev;
	struct ibv_qp_attr a;

	if (ibv_query_qp(rc->qp, &a, IBV_QP_PATH_MIG_STATE | IBV_QP_PORT, &init))
		die("query_qp: %s", strerror(errno));
	printf("%s, port %u\n", states[a.path_mig_state], a.port_num);
	fcntl(rc->dev->ctx->async_fd, F_SETFL, O_NONBLOCK);
	while (!ibv_get_async_event(rc->dev->ctx, &ev)) {
		printf("event: %s\n", ibv_event_type_str(ev.event_type));
		ibv_ack_async_event(&ev);
	}
}

static void serve(struct rc_device *dev, const char *port)
{
	unsigned next = 0, number;
	char want = 'p';
	struct ibv_wc wc;
	struct rc rc;

	rc_connect(&rc, dev, rc_accept(rc_listen(port)), &options);
	if (read(rc.sock, &want, 1) == 1 && want == 'a')
		load_alternate(&rc);
	while (rc_wait(dev, &wc, 1500) && wc.status == IBV_WC_SUCCESS) {
		memcpy(&number, dev->buf + (RC_DEPTH + wc.wr_id) * RC_SIZE, sizeof(number));
		if (number != next++)
			printf("message %u in the place of %u\n", number, next - 1);
		rc_post_recv(&rc, (unsigned)wc.wr_id);
	}
	printf("received %u\n", next);
	report(&rc);
}

static int send_all(struct rc_device *dev, char **argv, unsigned count, bool plain)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	unsigned i;
	struct rc rc;

	rc_connect(&rc, dev, rc_dial(argv[0], argv[1]), &options);
	if (!plain)
		load_alternate(&rc);
	if (write(rc.sock, plain ? "p" : "a", 1) != 1)
		die("the peer has disconnected");
	for (i = 0; i < count && wc.status == IBV_WC_SUCCESS; i++) {
		memcpy(dev->buf, &i, sizeof(i));
		if (rc_post_send(&rc, 0, 64, i))
			die("post_send: %s", strerror(errno));
		if (!rc_wait(dev, &wc, 10000))
			die("no completion of message %u", i);
	}
	printf("sent %u, the last with status %d: %s\n", i, wc.status, ibv_wc_status_str(wc.status));
	report(&rc);
	return wc.status != IBV_WC_SUCCESS;
}

int main(int argc, char **argv)
{
	struct rc_device dev;

	rc_device_open(&dev);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(&dev, argv[2]);
	else if (argc >= 5 && !strcmp(argv[1], "send"))
		return send_all(&dev, argv + 2, (unsigned)atoi(argv[4]), argc > 5);
	else
		die("apm serve PORT | send HOST PORT COUNT [plain]");
	return 0;
}
