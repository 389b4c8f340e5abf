// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: memory of a front end with three queues, then its messages. */
#include "emu/virtio/vhost/fixture.h"

static struct vhost *dev;

static void config(void *ctx, u8 *c) {}
static void event(void *ctx, u32 queue) {}
static void memory(void *ctx) {}

static void kick(void *ctx, u32 queue)
{
	struct vhost_chain c;
	u8 buf[64] = { 0 };

	while (vhost_pop(dev, queue, &c) > 0) {
		vhost_chain_read(&c, 0, buf, sizeof(buf));
		vhost_push(dev, queue, c.head, vhost_chain_write(&c, 0, buf, sizeof(buf)));
	}
	vhost_signal(dev, queue);
}

static const struct vhost_ops ops = {
	.queues = 3, .config = config, .kick = kick, .start = event, .stop = event, .memory = memory
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct loop *loop;
	static char path[64];
	size_t rings = min(size, (size_t)3 * FRONT_QSIZE);
	struct front f;
	u32 q;

	if (!loop) {
		front_path(path, sizeof(path));
		loop = loop_create();
		dev = vhost_create(loop, path, &ops, NULL);
	}
	if (!dev || front_open(&f, loop, path))
		abort();
	front_start(&f, 3);
	memcpy(f.mem, data, rings);
	for (q = 0; q < 3; q++)
		front_kick(&f, q);
	if (size > rings && send(f.fd, data + rings, size - rings, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		loop_run_idle(loop, 0);
	front_close(&f);
	return 0;
}
