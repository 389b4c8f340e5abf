// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: any frames, from any station, into switches whose links have flow control: a length of two bytes, a port, then
 * the frame.
 */
#include "fabric/eth/eth_internal.h"
#include <stdlib.h>

#define STATIONS 4

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static int receive(void *ctx, struct wire_buf *frame)
{
	return frame->size < ETHER_SIZE ? abort(), 0 : 1;
}

static void build(struct eth *e, struct eth_end **st)
{
	struct eth_link_config cfg = { .pfc = 0xf, .queue = 8000, .trunk = { 1, 2, 3 }, .ntrunk = 3, .mtu = 2000 };
	struct eth_switch *sw = eth_switch_add(e, "sw", 0);
	u8 mac[ETHER_ALEN] = { 2 };
	u32 i;

	for (i = 0; i < STATIONS; i++) {
		cfg.vlan = (u16)(1 + (i & 1));
		cfg.pause = i == 2;
		mac[5] = (u8)i;
		st[i] = eth_station_add(sw, "station", mac, &cfg);
		eth_station_port(st[i])->nic.receive = receive;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct loop *loop = loop_create_virtual();
	struct eth *e = eth_create(loop, 1);
	struct eth_end *st[STATIONS];
	struct wire_buf *buf;
	u32 len;

	for (build(e, st); size > 3; data += 3 + len, size -= 3 + len) {
		len = (u32)min((size_t)wire_load(data, 2), size - 3);
		buf = wire_buf_alloc(len);
		memcpy(buf->data, data + 3, len);
		wire_buf_put(ether_port_send(eth_station_port(st[data[2] % STATIONS]), buf) ? buf : NULL);
		loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_USEC);
	}
	loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_SEC);
	eth_destroy(e);
	loop_destroy(loop);
	return 0;
}
