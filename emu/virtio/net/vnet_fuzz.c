// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: the input writes both rings and their buffers, kicks for chains, and sends frames to the card. */
#include "emu/lib/log.h"
#include "emu/virtio/net/fixture.h"

/* Descriptors and available ring of each queue, then the buffers. */
static size_t place(size_t i)
{
	static const size_t at[] = { 0, 1024, FRONT_QSIZE, FRONT_QSIZE + 1024 };

	return i < 1024 ? at[i / 256] + i % 256 : FRONT_DATA + (i - 1024) % 65536;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct card c;
	size_t i;

	if (!c.net) {
		log_level = LOG_ERROR;
		if (card_create(&c))
			abort();
	}
	if (card_attach(&c))
		abort();
	c.full = size && data[0] & 1;
	for (i = 0; i < size; i++)
		c.f.mem[place(i)] = data[i];
	front_kick(&c.f, CARD_TX);
	front_kick(&c.f, CARD_RX);
	for (i = 0; i < 4; i++)
		card_arrive(&c, 14 + (u32)(size * 37 + i * 511) % 3000);
	c.full = false;
	c.station.nic.ready(c.station.nic.ctx);
	loop_run_idle(c.loop, 0);
	front_close(&c.f);
	return 0;
}
