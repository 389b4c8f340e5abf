// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: any frame at a RoCE port's station: ARP, neighbour discovery, echo, RoCE of both versions. Frames that it sends
 * must be valid.
 */
#include <stdlib.h>

#include "emu/packet/roce.h"
#include "rxe/roce/roce.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static int send_frame(struct ether_port *port, struct wire_buf *frame)
{
	if (frame->size < ETHER_MIN || memcmp(frame->data + ETHER_SRC, port->mac, ETHER_ALEN))
		abort();
	wire_buf_put(frame);
	return 0;
}

static int take(void *ctx, struct wire_packet *p)
{
	wire_packet_free(p->len <= WIRE_MTU_MAX && p->grh_off ? p : NULL);
	return 0;
}

static struct ether_port *station(void)
{
	static const struct ether_ops ops = { .send = send_frame };
	static struct ether_port port = { .ops = &ops, .mac = { 2, 0x6d, 0x75, 0, 0, 1 }, .mtu = 9000, .up = true };
	struct roce_config cfg = { .loop = loop_create(), .name = "r1", .naddr = 1, .ether = &port };
	struct roce_port *rp;

	cfg.addr[0] = wire_gid_from_v4(0x0a010001);
	rp = roce_port_create(&cfg);
	roce_port_wire(rp)->data.receive = roce_port_wire(rp)->mad.receive = take;
	return &port;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct ether_port *port;
	struct wire_buf *buf;

	if (size < ETHER_SIZE || size > 9000)
		return 0;
	port = port ?: station();
	buf = wire_buf_alloc((u32)size);
	memcpy(buf->data, data, size);
	port->roce.receive(port->roce.ctx, buf);
	wire_buf_put(buf);
	return 0;
}
