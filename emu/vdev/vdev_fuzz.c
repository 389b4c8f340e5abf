// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: commands of a driver, each a length and its bytes, then the doorbell area and the rings as what is left says. */
#include "emu/lib/log.h"
#include "emu/vdev/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct guest g;
	size_t i;

	if (!g.dev) {
		log_level = LOG_ERROR;
		if (guest_create(&g))
			abort();
	}
	if (guest_attach(&g) || guest_hello(&g))
		abort();
	while (size > 2 && data[0]) {
		size_t len = min(size - 2, (size_t)data[0] + (data[1] & 3) * 256u);

		if (data[1] & 4)
			guest_ring(&g, 0x20000 + (data[1] >> 4) * 0x2000u, data[1] & 8 ? 9 : 6);
		if (len)
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
