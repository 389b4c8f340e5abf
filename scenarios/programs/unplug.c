// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Watches its adapter, and prints the results of file descriptors and calls of a program when the adapter is unplugged:
 *
 *     unplug
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rc.h"

int main(void)
{
	struct ibv_comp_channel *channel;
	struct ibv_async_event ev;
	struct rc_device dev;
	struct ibv_cq *cq;
	void *ctx;
	int n;

	rc_device_open(&dev);
	channel = ibv_create_comp_channel(dev.ctx);
	cq = channel ? ibv_create_cq(dev.ctx, 4, NULL, channel, 0) : NULL;
	if (!cq || ibv_req_notify_cq(cq, 0))
		die("no CQ with a channel");
	printf("watching\n");
	while (!ibv_get_async_event(dev.ctx, &ev)) {
		printf("event: %s\n", ibv_event_type_str(ev.event_type));
		ibv_ack_async_event(&ev);
	}
	printf("no more events: %s\n", strerror(errno));
	if (ibv_get_cq_event(channel, &cq, &ctx))
		printf("completion channel: %s\n", strerror(errno));
	if (!ibv_alloc_pd(dev.ctx))
		printf("alloc_pd: %s\n", strerror(errno));
	printf("close: %d\n", ibv_close_device(dev.ctx));
	if (ibv_get_device_list(&n))
		printf("devices: %d\n", n);
	else
		printf("devices: %s\n", strerror(errno));
	return 0;
}
