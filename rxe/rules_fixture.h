/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of rules, one row per clause: requests between the sides of rxe_fixture.h, and what both sides observe. */
#ifndef MUSLIN_RXE_RULES_FIXTURE_H
#define MUSLIN_RXE_RULES_FIXTURE_H

#include "rxe/rxe_fixture.h"

#define PSN 1000

static inline struct hca_qp *qp_of(const struct side *s)
{
	return hca_qp_lookup(s->hca, s->qpn);
}

static inline u64 address(const struct side *s, u32 off)
{
	return (u64)(uintptr_t)(s->mem + off);
}

/* @n bytes at @off of both sides' memory. */
static inline struct hca_send_wr request_at(u8 opcode, u32 off, u32 n, u64 token)
{
	struct hca_send_wr wr = request(opcode, n);

	wr.token = token;
	wr.remote_addr += off;
	wr.sge[0].addr += off;
	return wr;
}

static inline void post(u8 opcode, u32 off, u32 n, u64 token)
{
	struct hca_send_wr wr = request_at(opcode, off, n, token);

	hca_soft_post_send(a.wq, &wr);
}

static inline void post_bad_write(u64 token)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 0, 64, token);

	wr.rkey ^= 0x5500;
	hca_soft_post_send(a.wq, &wr);
}

static inline void recv_at(struct hca_soft_wq *wq, u32 off, u32 n, u64 token)
{
	struct hca_recv_wr wr = { .token = token, .num_sge = 1, .sge = { { address(&b, off), n, b.lkey } } };

	hca_soft_post_recv(wq, &wr);
}

static inline void unmap(const struct side *s, u32 off, u32 n)
{
	unmapped = address(s, off);
	unmapped_len = n;
}

static inline void step(u64 us)
{
	loop_run_idle(loop, loop_now(loop).ns + us * NSEC_PER_USEC);
}

/* The next completion of @s has @token and @status. */
static inline bool is_next(struct side *s, u64 token, u8 status)
{
	struct hca_cqe cqe = next(s);

	return cqe.status == status && cqe.token == token;
}

static inline bool is_quiet(struct side *s)
{
	return next(s).status == 255;
}

/* Number of ACKs or NAKs with @syndrome and @psn sent by @from. */
static inline u32 acks(const struct side *from, u8 syndrome, u32 psn)
{
	u32 i, n = 0;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		n += passed[i].from == from && passed[i].opcode == WIRE_RC_ACK && passed[i].syndrome == syndrome &&
		     passed[i].psn == psn;
	return n;
}

#define NAK(code) (WIRE_AETH_NAK | (code))

struct rule {
	const char *what;
	enum hca_qp_type type;
	bool (*ok)(void);
};

static inline void run_rules(int first, const struct rule *r, u32 n, u8 layer)
{
	link_layer = layer;
	for (; n; n--, r++) {
		start(r->type, 5, PSN);
		row(first++, r->what, r->ok());
		stop();
	}
}

/* Replaces b's QP by one of @type on an SRQ, which is returned. */
static inline struct hca_soft_wq *shared_queue(enum hca_qp_type type)
{
	struct hca_srq_attr attr = { .max_wr = 8, .max_sge = 1 };
	struct hca_qp_init init = { .type = type,
				    .pdn = b.pdn,
				    .send_cqn = hca_soft_cq_number(b.cq),
				    .recv_cqn = hca_soft_cq_number(b.cq),
				    .max_send_wr = 8,
				    .max_send_sge = 1 };
	struct hca_soft_wq *srq;

	hca_soft_srq_create(b.ctx, b.pdn, &attr, &srq);
	init.srqn = hca_soft_wq_number(srq);
	hca_soft_wq_destroy(b.wq);
	hca_soft_qp_create(b.ctx, &init, &b.wq);
	b.qpn = hca_soft_wq_number(b.wq);
	return srq;
}

/* Gives b its QP back. */
static inline void shared_queue_end(struct hca_soft_wq *srq, enum hca_qp_type type)
{
	hca_soft_wq_destroy(b.wq);
	hca_soft_wq_destroy(srq);
	qp_make(&b, type);
}

#endif
