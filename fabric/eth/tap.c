// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ethernet station that is a TAP network interface of the machine: frames of its kernel enter the simulated Ethernet.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fabric/eth/eth.h"

#define ROUNDS 64 /* frames in one call of the event handler */

struct eth_tap_device {
	struct ether_port *station;
	struct loop_fd fd;
	struct wire_buf *held; /* frame for which the link had no space */
	u64 lost;
};

static void tap_transmit(struct eth_tap_device *t)
{
	static u8 frame[ETHER_MTU_MAX + ETHER_SIZE + ETHER_TAG_SIZE];
	ssize_t n;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		n = t->held ? 0 : read(t->fd.fd, frame, sizeof(frame));
		if (n >= ETHER_SIZE)
			t->held = wire_buf_alloc((u32)n);
		if (!t->held)
			break;
		if (n)
			memcpy(t->held->data, frame, (size_t)n);
		if (ether_port_send(t->station, t->held))
			break; /* the link is full; tap_on_ready() follows */
		t->held = NULL;
	}
	loop_fd_mod(&t->fd, t->held ? 0 : EPOLLIN);
}

static void tap_on_readable(struct loop_fd *w, u32 events, struct now now)
{
	tap_transmit(container_of(w, struct eth_tap_device, fd));
}

static void tap_on_ready(void *ctx)
{
	tap_transmit(ctx);
}

/* Frames to an interface that is down are lost. */
static int tap_on_frame(void *ctx, struct wire_buf *frame)
{
	struct eth_tap_device *t = ctx;

	t->lost += write(t->fd.fd, frame->data, frame->size) < 0;
	return 1;
}

static int tap_open_tun(const char *name)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (!ioctl(fd, TUNSETIFF, &req))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct eth_tap_device *eth_tap_open(struct loop *loop, const char *name, struct ether_port *station)
{
	struct eth_tap_device *t = calloc(1, sizeof(*t));
	int fd = t ? tap_open_tun(name) : -ENOMEM;

	if (fd < 0) {
		free(t);
		errno = -fd;
		return NULL;
	}
	t->station = station;
	t->fd = (struct loop_fd){ .fd = fd, .fn = tap_on_readable };
	station->nic = (struct ether_user){ .ctx = t, .receive = tap_on_frame, .ready = tap_on_ready };
	if (!loop_fd_add(loop, &t->fd, EPOLLIN))
		return t;
	eth_tap_close(t);
	errno = ENOMEM;
	return NULL;
}

void eth_tap_close(struct eth_tap_device *t)
{
	if (!t)
		return;
	t->station->nic = (struct ether_user){ 0 };
	loop_fd_del(&t->fd);
	close(t->fd.fd);
	wire_buf_put(t->held);
	free(t);
}
