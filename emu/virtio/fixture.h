/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: a device with an HCA of two unconnected ports, the second Ethernet, and its driver. */
#ifndef MUSLIN_VIRTIO_FIXTURE_H
#define MUSLIN_VIRTIO_FIXTURE_H

#include <time.h>

#include "emu/lib/clock.h"
#include "emu/virtio/vhost/fixture.h"
#include "emu/virtio/virtio_internal.h"
#include "rxe/rxe.h"

#define GUEST_SHARED 0x40000
#define GUEST_IN     0x60000
#define GUEST_OUT    0x68000

struct guest {
	struct loop *loop;
	struct wire_port port[2];
	struct hca *hca;
	struct mad_port *mad[2];
	struct wire_l2 sent; /* of the last packet sent */
	u32 nsent;
	struct vdev *dev;
	u32 lkey; /* in the SGE of guest_send_to() */
	char path[64];
	struct front f;
};

static inline int guest_send(struct wire_port *port, struct wire_packet *p)
{
	struct guest *g = container_of(port - (port->num - 1), struct guest, port[0]);

	g->sent = p->l2;
	g->nsent++;
	wire_packet_free(p);
	return 0;
}

static inline void guest_cap(struct wire_port *port, u32 set, u32 clear)
{
	port->attr.cap_mask = (port->attr.cap_mask & ~clear) | set;
}

static inline int guest_set_gid(struct wire_port *port, u8 index, const struct wire_gid *gid, const struct wire_l2 *l2)
{
	port->attr.gid[index] = *gid;
	port->attr.gid_l2[index] = *l2;
	return 0;
}

static const struct wire_port_ops guest_port_ops = { .send = guest_send, .set_cap = guest_cap };
static const struct wire_port_ops guest_eth_ops = { .send = guest_send,
						    .set_cap = guest_cap,
						    .set_gid = guest_set_gid };

static inline int guest_create(struct guest *g)
{
	struct wire_port *ports[2] = { &g->port[0], &g->port[1] };
	struct hca_config cfg = { .name = "t", .node_guid = 0x1234, .nports = 2, .ports = ports, .seed = 7 };
	struct vdev_config vc = { .name = "t", .nports = 2 };

	memset(g, 0, sizeof(*g));
	g->port[0].ops = &guest_port_ops;
	g->port[0].num = 1;
	g->port[0].attr = (struct wire_port_attr){
		.state = 4, .lid = 1, .mtu_cap = 4, .mtu_active = 4, .gids = 2, .pkeys = 64, .pkey = { 0xffff }
	};
	g->port[0].attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 1);
	g->port[1].ops = &guest_eth_ops;
	g->port[1].num = 2;
	g->port[1].attr = (struct wire_port_attr){ .link_layer = WIRE_LINK_ETHERNET,
						   .state = 4,
						   .mtu_cap = 5,
						   .mtu_active = 5,
						   .gids = WIRE_PORT_GIDS,
						   .mac = { 2, 0, 0, 0, 0, 9 },
						   .pkeys = 1,
						   .pkey = { 0xffff } };
	g->loop = loop_create();
	g->hca = hca_create(g->loop, &cfg);
	hca_set_transport(g->hca, &rxe_transport);
	vc.hca = g->hca;
	vc.mad[0] = g->mad[0] = mad_port_create(g->loop, &g->port[0]);
	vc.mad[1] = g->mad[1] = mad_port_create(g->loop, &g->port[1]);
	front_path(g->path, sizeof(g->path));
	g->dev = vdev_create(g->loop, g->path, &vc);
	return g->dev ? 0 : -errno;
}

static inline void guest_destroy(struct guest *g)
{
	vdev_destroy(g->dev);
	mad_port_destroy(g->mad[0]);
	mad_port_destroy(g->mad[1]);
	hca_destroy(g->hca);
	loop_destroy(g->loop);
}

static inline int guest_attach(struct guest *g)
{
	int err = front_open(&g->f, g->loop, g->path);

	if (!err)
		front_start(&g->f, MUSLIN_VQS);
	return err;
}

static inline void guest_pause(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/*
 * Executes a command of @len bytes. Returns the status; the response is at GUEST_OUT. -ETIMEDOUT: no response from the
 * device in the other process.
 */
static inline int guest_command(struct guest *g, const void *in, u32 len)
{
	u16 before = front_used(&g->f, MUSLIN_VQ_COMMAND);
	u64 end = clock_read() + 5 * NSEC_PER_SEC;

	memcpy(g->f.mem + GUEST_IN, in, len);
	memset(g->f.mem + GUEST_OUT, 0xff, 2048);
	front_post(&g->f, MUSLIN_VQ_COMMAND, GUEST_IN, len, GUEST_OUT, 2048);
	while (!g->f.loop && front_used(&g->f, MUSLIN_VQ_COMMAND) == before) {
		if (clock_read() > end)
			return -ETIMEDOUT;
		guest_pause(20);
	}
	return *(s32 *)(void *)(g->f.mem + GUEST_OUT);
}

static inline int guest_hello(struct guest *g)
{
	struct muslin_hello hello = {
		.cmd = { .op = MUSLIN_HELLO },
		.magic = MUSLIN_CONFIG_MAGIC,
		.version = MUSLIN_ABI_VERSION,
		.shared = GUEST_SHARED,
	};

	return guest_command(g, &hello, sizeof(hello));
}

static inline const struct muslin_number *guest_number(const struct guest *g)
{
	return (const void *)(g->f.mem + GUEST_OUT);
}

static inline int guest_object(struct guest *g, u32 op, u32 number, u32 arg)
{
	struct muslin_object in = { .cmd = { .op = op }, .number = number, .arg = arg };

	return guest_command(g, &in, sizeof(in));
}

/* A PD with a region of all memory, which has g->lkey. */
static inline u32 guest_make_pd(struct guest *g)
{
	u32 pd;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	guest_object(g, MUSLIN_MR_DMA, pd, HCA_ACCESS_LOCAL_WRITE);
	g->lkey = guest_number(g)->number;
	return pd;
}

static inline int guest_free_pd(struct guest *g, u32 pd)
{
	return guest_object(g, MUSLIN_MR_FREE, g->lkey, 0) ?: guest_object(g, MUSLIN_PD_FREE, pd, 0);
}

/* A ring of @slots entries of 1 << @log2 bytes in the pages from @gpa on, followed by its page list. */
static inline struct muslin_ring guest_ring_of(struct guest *g, u32 gpa, u32 log2, u32 slots)
{
	u32 bytes = (u32)offsetof(struct rxe_queue_buf, data) + (slots << log2), n = (bytes + 4095) / 4096, i;
	u64 *list = (u64 *)(void *)(g->f.mem + gpa + n * 4096u);

	memset(g->f.mem + gpa, 0, n * 4096u);
	for (i = 0; i < n; i++)
		list[i] = gpa + i * 4096u;
	return (struct muslin_ring){ .pages = gpa + n * 4096u, .npages = n, .log2_elem = log2, .slots = slots };
}

static inline struct muslin_ring guest_ring(struct guest *g, u32 gpa, u32 log2)
{
	return guest_ring_of(g, gpa, log2, 4);
}

static inline struct muslin_cq_create guest_cq(struct guest *g, u32 ring)
{
	return (struct muslin_cq_create){ .cmd = { .op = MUSLIN_CQ_CREATE }, .ring = guest_ring(g, ring, 6) };
}

/* A kernel QP for three requests of one SGE each, with rings at @sq and @rq. */
static inline struct muslin_qp_create guest_qp(struct guest *g, u32 type, u32 pdn, u32 cq, u32 sq, u32 rq)
{
	return (struct muslin_qp_create){
		.cmd = { .op = MUSLIN_QP_CREATE },
		.type = type,
		.flags = MUSLIN_QP_KERNEL | MUSLIN_QP_SIG_ALL,
		.pdn = pdn,
		.send_cq = cq,
		.recv_cq = cq,
		.max_send_wr = 3,
		.max_recv_wr = 3,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.sq = guest_ring(g, sq, 9),
		.rq = guest_ring(g, rq, 7),
	};
}

static inline u32 guest_make_cq(struct guest *g)
{
	struct muslin_cq_create cq = guest_cq(g, 0x20000);

	return guest_command(g, &cq, sizeof(cq)) ? 0 : guest_number(g)->number;
}

static inline u32 guest_make_qp(struct guest *g, u32 type, u32 pdn, u32 cq, u32 port)
{
	struct muslin_qp_create qp = guest_qp(g, type, pdn, cq, 0x28000, 0x30000);

	qp.port = port;
	return guest_command(g, &qp, sizeof(qp)) ? 0 : guest_number(g)->number;
}

static inline int guest_move_qp(struct guest *g, u32 qp, u8 state, u32 mask)
{
	struct muslin_qp_modify m = { .cmd = { .op = MUSLIN_QP_MODIFY }, .handle = qp, .mask = HCA_QP_STATE | mask };

	m.attr.state = state;
	m.attr.port = 1;
	m.attr.qkey = 0x80010000;
	return guest_command(g, &m, sizeof(m));
}

/* Brings a QP of datagrams to RTS. @init: further attributes with INIT. */
static inline int guest_start_qp(struct guest *g, u32 qp, u32 init)
{
	return guest_move_qp(g, qp, HCA_QPS_INIT, init | HCA_QP_PKEY_INDEX | HCA_QP_QKEY)
		       ?: guest_move_qp(g, qp, HCA_QPS_RTR, 0) ?: guest_move_qp(g, qp, HCA_QPS_RTS, HCA_QP_SQ_PSN);
}

static inline int guest_start_special(struct guest *g, u32 qp)
{
	return guest_start_qp(g, qp, 0);
}

/* A UD QP in RTS. Returns its handle; 0: there is none. */
static inline u32 guest_make_ud(struct guest *g, u32 pdn, u32 cq)
{
	u32 qp = guest_make_qp(g, HCA_QPT_UD, pdn, cq, 0);

	return guest_start_qp(g, qp, HCA_QP_PORT) ? 0 : qp;
}

/* The status of the next completion; -1: none. */
static inline int guest_completed(struct guest *g)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	u32 at = cq->consumer_index & 3;

	if ((cq->producer_index & 3) == at)
		return -1;
	cq->consumer_index = (at + 1) & 3;
	return (int)((struct ib_uverbs_wc *)(void *)(cq->data + at * 64))->status;
}

/* Posts a send request in the next slot and rings; returns the status of the completion. */
static inline int guest_send_to(struct guest *g, u32 qp, u32 opcode, u32 num_sge, u64 addr, const struct muslin_av *av)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);
	struct rxe_queue_buf *sq = (void *)(g->f.mem + 0x28000);
	u32 at = sq->producer_index & 3;
	struct rxe_send_wqe *w = (void *)(sq->data + at * 512);

	memset(w, 0, 512);
	w->wr.opcode = opcode;
	w->wr.wr.ud.remote_qpn = 1;
	w->wr.wr.ud.remote_qkey = 0x80010000;
	memcpy(&w->wr.wr.ud.av, av, sizeof(*av));
	w->dma.num_sge = num_sge;
	w->dma.sge[0] = (struct rxe_sge){ .addr = addr, .length = 256, .lkey = g->lkey };
	sq->producer_index = (at + 1) & 3;
	sh->doorbell[qp / 64] |= 1ull << (qp % 64);
	sh->rung = 1;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	return guest_completed(g);
}

static inline int guest_send_one(struct guest *g, u32 qp, u32 opcode, u32 num_sge, u64 addr)
{
	static const struct muslin_av av = { .dlid = 9, .port = 1 };

	return guest_send_to(g, qp, opcode, num_sge, addr, &av);
}

#endif
