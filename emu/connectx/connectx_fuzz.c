// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: an initialized driver, then items of its input: commands, doorbells, writes to its queues and to the BAR,
 * resets.
 */
#include "emu/connectx/fixture.h"
#include "emu/lib/log.h"

enum {
	FUZZ_COMMAND,
	FUZZ_DOORBELL,
	FUZZ_BAR,
	FUZZ_MEMORY,
	FUZZ_ENTRY, /* raw entry of the command queue */
	FUZZ_UNMAP,
	FUZZ_RESET,
	FUZZ_ITEMS
};

static void fuzz_item(struct driver *d, u32 kind, u32 arg, const u8 *data, u32 len)
{
	switch (kind) {
	case FUZZ_COMMAND:
		memset(d->in, 0, sizeof(d->in));
		memcpy(d->in, data, min(len, (u32)sizeof(d->in)));
		driver_entry(d, max(min(len, (u32)sizeof(d->in)), 16u), 16 + arg * 64);
		driver_ring(d, 16);
		break;
	case FUZZ_DOORBELL:
		driver_poke64(d, d->uar * 4096ull + (arg & 3) * 0x20 + (arg & 4 ? 0x800 : 0), wire_load(data, 8));
		break;
	case FUZZ_BAR:
		client_write(&d->c, 0, wire_load(data, 4) % (1 << 25), wire_load(data + 4, 4), 1 + arg % 8);
		break;
	case FUZZ_MEMORY:
		memcpy(d->c.mem + wire_load(data, 4) % (CLIENT_MEM - 65536), data + 4, max(len, 4u) - 4);
		break;
	case FUZZ_ENTRY:
		memcpy(d->c.mem + AT_QUEUE, data, min(len, 64u));
		driver_ring(d, 16);
		break;
	case FUZZ_UNMAP:
		client_unmap(&d->c, CLIENT_IOVA, CLIENT_MEM, 0);
		break;
	default:
		client_call(&d->c, VFIO_CMD_DEVICE_RESET, NULL, 0);
		driver_start(d);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 item[65536 + 8];
	static struct driver d;

	log_level = LOG_ERROR;
	if ((!d.dev && driver_create(&d)) || driver_attach(&d) || driver_start(&d))
		abort();
	/* One byte: kind of the item; one: its argument; two: length. */
	while (size >= 4) {
		u32 n = min((u32)(data[2] | data[3] << 8), (u32)size - 4);

		memset(item, 0, 16);
		memcpy(item, data + 4, n);
		memset(item + n, 0, 8);
		fuzz_item(&d, data[0] % FUZZ_ITEMS, data[1], item, n);
		data += 4 + n;
		size -= 4 + n;
	}
	loop_run_idle(d.loop, 0);
	client_close(&d.c);
	return 0;
}
