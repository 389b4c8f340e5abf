/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of tests: two adapters with a queue pair each, and streams whose other end is a socket of the test. */
#ifndef MUSLIN_SIW_FIXTURE_H
#define MUSLIN_SIW_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "emu/hca/bring.h"
#include "emu/hca/soft_queue.h"
#include "siw/siw_internal.h"

#define SIZE (1u << 20)
#define MS   (1000ull * 1000)

struct side {
	struct wire_port port;
	struct hca *hca;
	struct hca_ctx *ctx;
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 pdn, qpn, lkey, rkey, ro_rkey;
	int closed; /* 1: not closed */
	u8 *mem;
	struct siw_qp *qp;
};

static struct loop *loop;
static struct siw_options options = { .revision = 2,
				      .rtr_write = true,
				      .rtr_read = true,
				      .uring = SIW_URING_OFF,
				      .start_ns = 10ull * 1000 * 1000 * 1000 };
static struct side a, b;

static inline int drop_packet(struct wire_port *port, struct wire_packet *p)
{
	wire_packet_free(p);
	return 0;
}

static const struct wire_port_ops port_ops = { .send = drop_packet };

static inline void on_event(void *fe, const struct hca_event *ev) {}

static inline void on_closed(void *ctx, int err)
{
	((struct side *)ctx)->closed = err;
}

static inline void to_rts(struct side *s)
{
	struct hca_qp_attr attr = { .port = 1,
				    .access = 0xf,
				    .path_mtu = WIRE_MTU_1024,
				    .max_rd_atomic = 4,
				    .max_dest_rd_atomic = 4,
				    .av = { .port = 1 } };

	if (bring_to(hca_qp_lookup(s->hca, s->qpn), attr, HCA_QPS_RTS))
		printf("the queue pair does not come to RTS\n");
}

static const struct hca_dma_ops *dma = &hca_local_dma;

static inline void side_open(struct side *s, u16 n)
{
	struct wire_port *ports[1] = { &s->port };
	struct hca_config cfg = { .name = "t", .node_guid = n, .nports = 1, .ports = ports, .seed = n };
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .max_send_wr = 300,
				    .max_recv_wr = 300,
				    .max_send_sge = 4,
				    .max_recv_sge = 4,
				    .max_inline = 256,
				    .sq_sig_all = true };
	u32 lkey;

	memset(s, 0, sizeof(*s));
	s->closed = 1;
	s->port.ops = &port_ops;
	s->port.num = 1;
	s->port.attr = (struct wire_port_attr){
		.state = 4, .mtu_cap = 5, .mtu_active = 5, .gids = 1, .pkeys = 1, .pkey = { 0xffff }
	};
	s->hca = hca_create(loop, &cfg);
	hca_set_transport(s->hca, &siw_transport);
	siw_set_options(s->hca, &options);
	s->ctx = hca_ctx_create(s->hca, dma, NULL, on_event, s);
	hca_pd_alloc(s->ctx, &s->pdn);
	s->mem = calloc(1, SIZE);
	hca_mr_reg(s->ctx, s->pdn, (u64)(uintptr_t)s->mem, (u64)(uintptr_t)s->mem, SIZE, 0xf, &s->lkey, &s->rkey);
	hca_mr_reg(s->ctx, s->pdn, (u64)(uintptr_t)s->mem, (u64)(uintptr_t)s->mem, SIZE, HCA_ACCESS_REMOTE_READ, &lkey,
		   &s->ro_rkey);
	hca_soft_cq_create(s->ctx, 1024, NULL, NULL, &s->cq);
	init.pdn = s->pdn;
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(s->cq);
	hca_soft_qp_create(s->ctx, &init, &s->wq);
	s->qpn = hca_soft_wq_number(s->wq);
	to_rts(s);
}

static inline void side_close(struct side *s)
{
	hca_soft_wq_destroy(s->wq);
	hca_soft_cq_destroy(s->cq);
	hca_ctx_destroy(s->ctx);
	hca_destroy(s->hca);
	free(s->mem);
}

static struct mpa_terms terms = { .crc = true, .initiator = true, .ird = 4, .ord = 4 };

static inline void pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		abort();
}

static inline void open_both(void)
{
	int fds[2];

	side_open(&a, 1);
	side_open(&b, 2);
	pair(fds);
	siw_qp_attach(a.hca, a.qpn, fds[0], &terms, NULL, 0, on_closed, &a);
	siw_qp_attach(b.hca, b.qpn, fds[1], &terms, NULL, 0, on_closed, &b);
}

static inline void close_both(void)
{
	side_close(&a);
	side_close(&b);
}

static inline void post_recv(struct side *s, u32 off, u32 len)
{
	struct hca_recv_wr wr = { .token = 100, .num_sge = 1 };

	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)(s->mem + off), len, s->lkey };
	hca_soft_post_recv(s->wq, &wr);
}

static inline void post(struct side *s, u8 opcode, u8 flags, u32 off, u32 len, u32 rkey, u64 raddr)
{
	struct hca_send_wr wr = { .token = opcode, .opcode = opcode, .flags = flags, .num_sge = 1, .rkey = rkey };

	wr.imm = rkey;
	wr.remote_addr = raddr;
	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)(s->mem + off), len, s->lkey };
	hca_soft_post_send(s->wq, &wr);
}

/* The next completion's status; -1: none. */
static inline int next(struct side *s, struct hca_cqe *c)
{
	loop_run_idle(loop, 0);
	return hca_soft_cq_poll(s->cq, c, 1) ? c->status : -1;
}

static inline void later(u64 ns)
{
	loop_run_idle(loop, loop_now(loop).ns + ns);
}

static inline u64 at(const struct side *s, u32 off)
{
	return (u64)(uintptr_t)(s->mem + off);
}

static inline void pattern(u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = (u8)(i * 7 + (i >> 8));
}

/* Attaches a stream whose other end is a socket of the test. */
static inline int open_raw(void)
{
	int fds[2];

	side_open(&a, 1);
	pair(fds);
	siw_qp_attach(a.hca, a.qpn, fds[0], &terms, NULL, 0, on_closed, &a);
	a.qp = hca_qp_lookup(a.hca, a.qpn)->transport;
	return fds[1];
}

/* Writes one FPDU; the payload is a pattern that continues at offset @from. */
static inline u32 fpdu_build(u8 *at, const struct iwarp_ctrl *c, const void *rest, u32 rest_len, u32 from, u32 payload)
{
	u32 ulpdu = sizeof(*c) - IWARP_LEN_SIZE + rest_len + payload, body = iwarp_fpdu_len(ulpdu) - IWARP_CRC_SIZE;
	struct iwarp_ctrl ctrl = *c;
	__le32 crc;

	ctrl.len = cpu_to_be16((u16)ulpdu);
	memset(at, 0, body);
	memcpy(at, &ctrl, sizeof(ctrl));
	memcpy(at + sizeof(ctrl), rest, rest_len);
	for (; payload; payload--, from++)
		at[body - iwarp_pad(ulpdu) - payload] = (u8)(from * 7 + 1);
	crc = iwarp_crc(at, body, terms.crc);
	memcpy(at + body, &crc, sizeof(crc));
	return body + IWARP_CRC_SIZE;
}

static inline u32 send_build(u8 *at, u32 msn, u32 mo, u32 payload, bool last)
{
	const struct iwarp_untagged u = { .c = { .ddp = DDP_VERSION | (last ? DDP_LAST : 0),
						 .rdmap = RDMAP_VERSION | RDMAP_SEND },
					  .msn = cpu_to_be32(msn),
					  .mo = cpu_to_be32(mo) };

	return fpdu_build(at, &u.c, &u.inv_stag, sizeof(u) - sizeof(u.c), mo, payload);
}

static inline bool answered(int fd, enum iwarp_error err)
{
	struct iwarp_terminate t;

	return recv(fd, &t, sizeof(t), MSG_DONTWAIT) == sizeof(t) && t.u.c.rdmap == (RDMAP_VERSION | RDMAP_TERMINATE) &&
	       be32_to_cpu(t.u.qn) == DDP_QN_TERMINATE && (t.layer_type << 8 | t.code) == (int)err;
}

static inline struct fault *arm(const struct side *s, const char *text)
{
	char err[300] = "";
	struct fault *ft = fault_add(siw_faults(s->hca), text, err, sizeof(err));

	if (!ft)
		printf("%s: %s\n", text, err);
	return ft;
}

#endif
