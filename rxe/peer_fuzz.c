// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: a peer that sends any requests and responses to a queue pair with requests of its own. Input: the type and the
 * memory of the queue pair, then steps of 5 bytes. Checks the memory beside the region, and that each posted request
 * completes once and in order.
 */
#include "rxe/rules_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define REGION 32768u
#define GUARD  4096u
#define DEPTH  64u

static u32 region_lkey, region_rkey, window, posted[2], polled[2];
static struct hca_soft_wq *shared;

static u32 offset(u8 x)
{
	return SIZE + (x & 0x80 ? REGION - (x & 0x7f) * 8u : x * 256u);
}

static void region_open(void)
{
	hca_mr_dereg(b.ctx, b.lkey);
	if (hca_mr_reg(b.ctx, b.pdn, address(&b, SIZE), address(&b, SIZE), REGION, 0x1f, &region_lkey, &region_rkey))
		abort();
	memset(b.mem + SIZE - GUARD, 0xee, GUARD);
	memset(b.mem + SIZE + REGION, 0xee, GUARD);
}

static bool is_filled(const u8 *at)
{
	return at[0] == 0xee && !memcmp(at, at + 1, GUARD - 1);
}

static void poll_all(void)
{
	struct hca_cqe c;

	while (hca_soft_cq_poll(b.cq, &c, 1)) {
		u32 q = c.opcode & HCA_WC_RECV ? 1 : 0;

		if (c.token != polled[q] && (!q || !shared))
			abort();
		if (++polled[q] > posted[q])
			abort();
	}
}

/* Mostly the next request expected, or around the first PSN of both directions. */
static u32 psn_of(u8 x)
{
	u32 base = x & 0x80 ? PSN : ((struct rxe_qp *)qp_of(&b)->transport)->resp.epsn;

	return (base + (x & 0x7f) - 32) & WIRE_PSN_MASK;
}

static struct wire_packet *forged(const u8 *d)
{
	static const u16 lens[] = { 256, 0, 1, 8, 255, 257, 1024, 4096 };
	struct hca_av path = {
		.dlid = 2, .port = 1, .grh = link_layer == WIRE_LINK_ETHERNET, .dgid = b.port.attr.gid[0]
	};
	u32 len = lens[d[3] & 7], psn = psn_of(d[2]);
	const struct wire_opcode *o;
	u8 op = d[1] % 24;
	struct wire_packet *p;
	struct wire_buf *buf;

	if (op == 0x15)
		op = WIRE_CNP;
	o = wire_opcode(op == WIRE_CNP ? op : op | (u8)rxe_transport_of(qp_of(&a)));
	if (!o)
		return NULL;
	if (!(o->flags & WIRE_OPF_PAYLOAD))
		len = 0;
	p = rxe_frame_to(qp_of(&a), &path, b.qpn, o->op, psn, len);
	if (!p)
		abort();
	if (o->offset[WIRE_ETH_DETH])
		wire_deth_fill(wire_packet_deth(p), d[4] & 1 ? 0 : 0x1234, a.qpn);
	if (o->offset[WIRE_ETH_XRC] && shared)
		wire_packet_xrceth(p)->srqn = cpu_to_be32(hca_soft_wq_number(shared) ^ (d[3] & 0x80 ? 1 : 0));
	if (o->offset[WIRE_ETH_RETH])
		*wire_packet_reth(p) =
			(struct wire_reth){ .va = cpu_to_be64(address(&b, offset(d[4]))),
					    .rkey = cpu_to_be32(d[3] & 8 ? window : region_rkey),
					    .dmalen = cpu_to_be32(lens[d[3] >> 4 & 7] * 4u + (d[3] >> 7)) };
	if (o->offset[WIRE_ETH_ATOMIC])
		*wire_packet_atomic_eth(p) =
			(struct wire_atomic_eth){ .va = cpu_to_be64(address(&b, offset(d[4]))),
						  .rkey = cpu_to_be32(d[3] & 8 ? window : region_rkey),
						  .swap_add = cpu_to_be64(d[3]) };
	if (o->offset[WIRE_ETH_AETH])
		wire_aeth_fill(wire_packet_aeth(p), d[4], d[3]);
	if (o->offset[WIRE_ETH_IETH])
		wire_packet_ieth(p)->rkey = cpu_to_be32(d[3] & 8 ? window : region_rkey);
	if (!len)
		return p;
	buf = wire_buf_alloc(len);
	memset(buf->data, d[2], len);
	rxe_payload(p, buf, 0, len);
	wire_buf_put(buf);
	return p;
}

static void post_send(const u8 *d)
{
	static const u8 opcodes[] = { HCA_WR_SEND,          HCA_WR_RDMA_WRITE,
				      HCA_WR_RDMA_READ,     HCA_WR_ATOMIC_CMP_AND_SWP,
				      HCA_WR_SEND_WITH_IMM, HCA_WR_BIND_MW,
				      HCA_WR_LOCAL_INV,     HCA_WR_RDMA_WRITE_WITH_IMM };
	struct hca_send_wr wr = { .opcode = opcodes[d[1] & 7], .token = posted[0], .num_sge = 1 };

	if (posted[0] - polled[0] == DEPTH)
		return;
	wr.remote_addr = address(&a, 0);
	wr.rkey = a.rkey;
	wr.flags = HCA_SEND_SIGNALED | (d[1] & 0x80 ? HCA_SEND_FENCE : 0);
	wr.sge[0] = (struct hca_sge){ address(&b, offset(d[2])),
				      wr.opcode == HCA_WR_ATOMIC_CMP_AND_SWP ? 8 : d[3] * 64u, region_lkey };
	wr.remote_qpn = a.qpn;
	wr.remote_qkey = 0x1234;
	wr.av = (struct hca_av){
		.dlid = 1, .port = 1, .grh = link_layer == WIRE_LINK_ETHERNET, .dgid = a.port.attr.gid[0]
	};
	if (wr.opcode == HCA_WR_BIND_MW) {
		wr.num_sge = 0;
		wr.mw_rkey = window;
		wr.reg_key = window = (window & ~0xffu) | (u8)(window + 1);
		wr.mr_lkey = region_lkey;
		wr.access = 0xe;
		wr.bind_addr = address(&b, SIZE + 1024);
		wr.bind_len = 4096;
	}
	if (wr.opcode == HCA_WR_LOCAL_INV) {
		wr.num_sge = 0;
		wr.rkey = wr.imm = d[2] & 1 ? region_rkey : window;
	}
	posted[0] += !hca_soft_post_send(b.wq, &wr);
}

static void post_receive(const u8 *d)
{
	struct hca_recv_wr wr = { .token = posted[1], .num_sge = 1 + (d[1] & 1) };

	wr.sge[0] = (struct hca_sge){ address(&b, offset(d[2])), d[3] * 8u, region_lkey };
	wr.sge[1] = (struct hca_sge){ address(&b, offset(d[4])), d[3] * 32u, region_lkey };
	posted[1] += !hca_soft_post_recv(shared ?: b.wq, &wr);
}

static void modify(const u8 *d)
{
	struct hca_qp_attr attr = { .state = d[1] & 1 ? HCA_QPS_ERR : HCA_QPS_SQD };
	struct hca_qp *qp = qp_of(&b);

	if (d[1] & 2 && qp->state == HCA_QPS_SQD)
		attr.state = HCA_QPS_RTS;
	hca_qp_modify(b.ctx, b.qpn, &attr, HCA_QP_STATE);
	if (attr.state != HCA_QPS_ERR || !(d[1] & 4))
		return;
	run();
	poll_all();
	attr.state = HCA_QPS_RESET;
	hca_qp_modify(b.ctx, b.qpn, &attr, HCA_QP_STATE);
	polled[0] = posted[0];
	if (!shared)
		polled[1] = posted[1];
	move(&b, &a, 1, PSN);
}

/* The link layer copies payloads before it has checked their packets. */
static void zero_copy(const u8 *d)
{
	struct wire_packet *p = forged(d);
	u32 n;
	u8 *at;

	if (!p)
		return;
	n = b.port.data.zcopy(b.port.data.ctx, p, 1 + d[4] % 8, &at);
	if (n)
		memset(at, d[4], (size_t)n * p->len);
	arrive(&b, p);
}

static void one(const u8 *d)
{
	struct wire_packet *p;

	switch (d[0] & 15) {
	case 0:
		post_send(d);
		break;
	case 1:
		post_receive(d);
		break;
	case 2:
		step(d[1] * (d[2] & 0x80 ? 1000u : 1u));
		break;
	case 3:
		modify(d);
		break;
	case 4:
		late_side = d[1] & 1 ? &b : NULL;
		only_writes_late = d[1] & 2;
		break;
	case 5:
		late_end();
		step(1);
		break;
	case 6:
		drop_all = d[1] & 1;
		break;
	case 7:
		unmap(&b, offset(d[1]), d[2] * 16u);
		break;
	case 8:
		poll_all();
		break;
	case 9:
		if (!hca_mr_dereg(b.ctx, region_lkey) && hca_mr_reg(b.ctx, b.pdn, address(&b, SIZE), address(&b, SIZE),
								    REGION, 0x1f, &region_lkey, &region_rkey))
			abort();
		break;
	case 10:
		zero_copy(d);
		break;
	default:
		p = forged(d);
		if (p)
			arrive(&b, p);
		if (!(d[0] & 0x80))
			step(0);
	}
	if (late_count > 48)
		late_end();
}

/* Packets are delivered at once. */
static void flush_zcopy(struct wire_port *port) {}

static const struct wire_port_ops zcopy_ops = { .send = wire_send,
						.violation = wire_violation,
						.flush_zcopy = flush_zcopy };

static void open_sides(u8 how)
{
	static const enum hca_qp_type types[] = { HCA_QPT_RC, HCA_QPT_UC, HCA_QPT_XRC_TGT, HCA_QPT_RC };
	enum hca_qp_type type = how & 8 ? HCA_QPT_UD : types[how & 3];

	link_layer = how & 4 ? WIRE_LINK_ETHERNET : WIRE_LINK_IB;
	loop = loop_create_virtual();
	side_init(&a, 1);
	side_init(&b, 2);
	shared = NULL;
	if (type == HCA_QPT_XRC_TGT) {
		struct hca_srq_attr attr = { .max_wr = 16, .max_sge = 2, .cqn = hca_soft_cq_number(b.cq) };

		if (hca_xrcd_alloc(b.ctx, &b.xrcdn))
			abort();
		attr.xrcdn = b.xrcdn;
		if (hca_soft_srq_create(b.ctx, b.pdn, &attr, &shared))
			abort();
	}
	qp_make(&a, type == HCA_QPT_XRC_TGT ? HCA_QPT_XRC_INI : type);
	qp_make(&b, type);
	if (type == HCA_QPT_RC && how & 1)
		shared = shared_queue(type);
	region_open();
	b.port.zcopy = how & 16;
	b.port.ops = &zcopy_ops;
	if (hca_mw_alloc(b.ctx, b.pdn, 2, &window) || move(&a, &b, 1, PSN) || move(&b, &a, 1, PSN))
		abort();
	memset(posted, 0, sizeof(posted));
	memset(polled, 0, sizeof(polled));
	unmapped_len = 0;
	drop_all = false;
}

static void close_sides(void)
{
	side_fini(&a);
	hca_soft_wq_destroy(b.wq);
	if (shared)
		hca_soft_wq_destroy(shared);
	hca_soft_cq_destroy(b.cq);
	hca_ctx_destroy(b.ctx);
	hca_destroy(b.hca);
	free(b.mem);
	loop_destroy(loop);
}

/* Each request completes, if need be with an error. */
static void flush(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };

	late_end();
	run();
	hca_qp_modify(b.ctx, b.qpn, &attr, HCA_QP_STATE);
	run();
	poll_all();
	if (polled[0] != posted[0] || (!shared && polled[1] != posted[1])) {
		printf("sends completed %u of %u, receives %u of %u\n", polled[0], posted[0], polled[1], posted[1]);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!size || size > 400)
		return 0;
	open_sides(data[0]);
	for (data++, size--; size >= 5; data += 5, size -= 5)
		one(data);
	flush();
	if (!is_filled(b.mem + SIZE - GUARD) || !is_filled(b.mem + SIZE + REGION))
		abort();
	close_sides();
	if (wire_packet_live())
		abort();
	return 0;
}
