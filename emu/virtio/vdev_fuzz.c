// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: commands of a driver, each a length and its bytes (1: a reset, an end), then doorbells and
 * rings from the rest of the input. */
#include "emu/lib/log.h"
#include "emu/virtio/fixture.h"

static void interrupt_with(struct guest *g, u8 what)
{
	static const u32 requests[] = { VHOST_GET_VRING_BASE, VHOST_RESET_OWNER, VHOST_SET_VRING_ENABLE };
	u32 queue[2] = { (what >> 3) % MUSLIN_VQS, 0 };

	if (what % 8 < ARRAY_SIZE(requests))
		front_send(&g->f, requests[what % 8], 0, queue, sizeof(queue), -1);
	else if (what % 8 == 3)
		guest_hello(g);
	else if (what % 8 == 4)
		front_memory(&g->f, FRONT_MEM >> (what >> 5));
	else
		front_queue(&g->f, queue[0]);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct guest g;
	size_t i;

	log_level = LOG_ERROR;
	if ((!g.dev && guest_create(&g)) || guest_attach(&g) || guest_hello(&g))
		abort();
	while (size > 2 && data[0]) {
		size_t len = min(size - 2, (size_t)data[0] + (data[1] & 3) * 256u);

		if (data[1] & 4)
			guest_ring(&g, 0x20000 + (data[1] >> 4) * 0x2000u, data[1] & 8 ? 9 : 6);
		if (len == 1)
			interrupt_with(&g, data[2]);
		else if (len)
			guest_command(&g, data + 2, (u32)len);
		data += 2 + len;
		size -= 2 + len;
	}
	for (i = 0; i < size; i++)
		g.f.mem[GUEST_SHARED + (i * 61) % sizeof(struct muslin_shared)] = data[i];
	for (i = 0; i < size; i++)
		g.f.mem[0x20000 + (i * 4093) % 0x20000] = data[size - 1 - i];
	for (i = 0; i < MUSLIN_VQS; i++)
		front_kick(&g.f, (u32)i);
	front_close(&g.f);
	return 0;
}
