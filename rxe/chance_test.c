// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random requests in both directions over a wire that drops, duplicates and reorders packets, against the rules of
 * verbs: each request completes once and in order, success means that its bytes are in memory, an error is followed by
 * flushes only, an atomic is executed once, and no memory leaks. The test prints a seed that fails; chance_test SEED
 * [COUNT] runs it again.
 */
#include "rxe/rxe_fixture.h"

#define SLOTS    24u
#define SLOT     16384u
#define OPS      120u
#define SOURCE   0u /* offset of the areas in a side's memory */
#define TARGET   (SLOTS * SLOT)
#define RESULT   (2 * SLOTS * SLOT)
#define INBOX    (3 * SLOTS * SLOT)
#define STILL    (4 * SLOTS * SLOT) /* never changes */
#define LENGTH   (2 * SIZE - 4096 - STILL)
#define COUNT    (2 * SIZE - 8)
#define MESSAGES (1u << 12)

struct op {
	u8 opcode;
	u32 len, from; /* from: source of a READ, in the constant area */
	u8 seed;
	bool bad;
};

/* State of a side in the model. */
struct party {
	struct side *s, *peer;
	struct op op[MESSAGES];
	u32 posted, done, recvs, received;
	u32 message[MESSAGES], messages; /* requests that consume a receive of the peer, in order */
	u32 messages_done, added;
	u32 window, key; /* a window's key; key: its value after all posted requests */
	bool bound, failed, recv_failed;
};

static struct rng rng;
static struct party parties[2];
static bool clean; /* this seed has no invalid request */
static const char *wrong;

static u32 pick(u32 n)
{
	return (u32)(rng_next(&rng) % n);
}

static void expect(bool ok, const char *what)
{
	if (!ok && !wrong)
		wrong = what;
}

static u64 at(const struct side *s, u32 off)
{
	return (u64)(uintptr_t)(s->mem + off);
}

static u8 byte_of(u8 seed, u32 i)
{
	return (u8)(seed + i * 5 + i / 256);
}

static bool is_filled(const u8 *p, u8 seed, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (p[i] != byte_of(seed, i))
			return false;
	return true;
}

static void fill(u8 *p, u8 seed, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		p[i] = byte_of(seed, i);
}

static bool takes_recv(u8 opcode)
{
	return opcode == HCA_WR_SEND || opcode == HCA_WR_SEND_WITH_IMM || opcode == HCA_WR_RDMA_WRITE_WITH_IMM;
}

static void post_recvs(struct party *t, u32 n)
{
	for (; n && t->recvs - t->received < SLOTS; n--) {
		struct hca_recv_wr wr = { .token = t->recvs,
					  .num_sge = 1,
					  .sge = { { at(t->s, INBOX + t->recvs % SLOTS * SLOT), SLOT, t->s->lkey } } };

		if (!clean && !pick(200))
			wr.sge[0].length = 8;
		hca_soft_post_recv(t->s->wq, &wr);
		t->recvs++;
	}
}

static u8 pick_opcode(enum hca_qp_type type)
{
	static const u8 all[] = { HCA_WR_SEND,       HCA_WR_SEND_WITH_IMM,        HCA_WR_RDMA_WRITE,
				  HCA_WR_RDMA_WRITE, HCA_WR_RDMA_WRITE_WITH_IMM,  HCA_WR_RDMA_READ,
				  HCA_WR_RDMA_READ,  HCA_WR_ATOMIC_FETCH_AND_ADD, HCA_WR_BIND_MW };

	return all[pick(type == HCA_QPT_UC ? 5 : ARRAY_SIZE(all))];
}

/* Binds and invalidates a window by turns. */
static void window_op(struct party *t, struct hca_send_wr *wr)
{
	if (t->bound) {
		wr->opcode = HCA_WR_LOCAL_INV;
		wr->rkey = t->key;
	} else {
		wr->mw_rkey = t->key;
		wr->mr_lkey = t->window;
		wr->access = HCA_ACCESS_REMOTE_READ;
		wr->bind_addr = at(t->s, STILL);
		wr->bind_len = 4096;
		t->key = wr->reg_key = (t->key & ~0xffu) | (u8)(t->key + 1);
	}
	wr->num_sge = 0;
	t->bound = !t->bound;
}

static void post_op(struct party *t, enum hca_qp_type type)
{
	u32 i = t->posted, slot = i % SLOTS * SLOT;
	struct op *op = &t->op[i % MESSAGES];
	struct hca_send_wr wr = { .token = i, .num_sge = 1, .imm = i, .rkey = t->peer->rkey };

	*op = (struct op){ .opcode = pick_opcode(type), .seed = (u8)pick(256), .bad = !clean && !pick(150) };
	op->len = pick(4) ? pick(SLOT) : pick(300);
	wr.opcode = op->opcode;
	if (op->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD) {
		op->len = 8;
		wr.compare_add = 1;
	}
	wr.remote_addr = at(t->peer, TARGET + slot);
	wr.sge[0] = (struct hca_sge){ at(t->s, SOURCE + slot), op->len, t->s->lkey };
	if (op->opcode == HCA_WR_RDMA_READ || op->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD) {
		op->from = pick(LENGTH - SLOT);
		wr.remote_addr = at(t->peer, op->opcode == HCA_WR_RDMA_READ ? STILL + op->from : COUNT);
		wr.sge[0].addr = at(t->s, RESULT + slot);
		wr.flags = pick(4) ? 0 : HCA_SEND_FENCE;
	} else {
		fill(t->s->mem + SOURCE + slot, op->seed, op->len);
	}
	if (op->bad && pick(2))
		wr.rkey ^= 0x5500;
	else if (op->bad)
		wr.sge[0].lkey ^= 0x5500;
	if (op->opcode == HCA_WR_BIND_MW)
		window_op(t, &wr);
	if (takes_recv(op->opcode))
		t->message[t->messages++ % MESSAGES] = i;
	t->added += op->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD;
	expect(!hca_soft_post_send(t->s->wq, &wr), "a request is taken");
	t->posted++;
}

static void sent_one(struct party *t, const struct hca_cqe *cqe, enum hca_qp_type type)
{
	const struct op *op = &t->op[t->done % MESSAGES];
	u32 slot = t->done % SLOTS * SLOT;

	expect(cqe->token == t->done, "requests complete once and in order");
	t->done++;
	if (cqe->status) {
		expect(!t->failed || cqe->status == HCA_WC_WR_FLUSH_ERR, "an error is followed by flushes");
		expect(!clean, "no request fails");
		t->failed = true;
		return;
	}
	expect(!t->failed, "no request succeeds after an error");
	expect(!op->bad || !op->len || op->opcode == HCA_WR_BIND_MW || takes_recv(op->opcode) || type == HCA_QPT_UC,
	       "a wrong request fails");
	t->messages_done += takes_recv(op->opcode);
	if (type == HCA_QPT_UC)
		return;
	if (op->opcode == HCA_WR_RDMA_READ)
		expect(!memcmp(t->s->mem + RESULT + slot, t->peer->mem + STILL + op->from, op->len),
		       "what a READ has read");
	if (op->opcode == HCA_WR_RDMA_WRITE || op->opcode == HCA_WR_RDMA_WRITE_WITH_IMM)
		expect(is_filled(t->peer->mem + TARGET + slot, op->seed, op->len), "what a WRITE has written");
}

static void received_one(struct party *t, const struct party *from, const struct hca_cqe *cqe, enum hca_qp_type type)
{
	u32 i = from->message[t->received % MESSAGES];
	const struct op *op = &from->op[i % MESSAGES];

	expect(cqe->token == t->received, "receives complete once and in order");
	t->received++;
	if (cqe->status) {
		expect(!clean, "no receive fails");
		expect(type == HCA_QPT_UC || !t->recv_failed || cqe->status == HCA_WC_WR_FLUSH_ERR,
		       "a receive that fails is followed by flushes");
		t->recv_failed = true;
		return;
	}
	if (type == HCA_QPT_UC) /* messages are lost */
		return;
	expect(!t->recv_failed && t->received <= from->messages, "a receive is of a message");
	expect(cqe->byte_len == op->len, "its length");
	expect(!(cqe->flags & HCA_WC_WITH_IMM) || cqe->imm == i, "its immediate");
	expect(op->opcode == HCA_WR_RDMA_WRITE_WITH_IMM ||
		       is_filled(t->s->mem + INBOX + (u32)cqe->token % SLOTS * SLOT, op->seed, op->len),
	       "its bytes");
}

static void poll_party(u32 i, enum hca_qp_type type)
{
	struct party *t = &parties[i];
	struct hca_cqe cqe;

	while (hca_soft_cq_poll(t->s->cq, &cqe, 1)) {
		if (cqe.opcode & HCA_WC_RECV)
			received_one(t, &parties[!i], &cqe, type);
		else
			sent_one(t, &cqe, type);
	}
}

/* Moves the QP to SQD, and back when it is drained. */
static void drain(struct party *t)
{
	struct hca_qp_attr attr, to = { .state = HCA_QPS_SQD };

	if (hca_qp_query(t->s->ctx, t->s->qpn, &attr))
		return;
	if (attr.state == HCA_QPS_SQD && !attr.sq_draining) {
		to.state = HCA_QPS_RTS;
		expect(!hca_qp_modify(t->s->ctx, t->s->qpn, &to, HCA_QP_STATE), "SQD to RTS");
	} else if (attr.state == HCA_QPS_RTS && !pick(40)) {
		expect(!hca_qp_modify(t->s->ctx, t->s->qpn, &to, HCA_QP_STATE), "RTS to SQD");
	}
}

static void party_init(struct party *t, struct side *s, struct side *peer)
{
	u32 i, rkey;

	*t = (struct party){ .s = s, .peer = peer };
	for (i = 0; i < LENGTH; i++)
		s->mem[STILL + i] = (u8)rng_next(&rng);
	memset(s->mem + COUNT, 0, 8);
	hca_mr_reg(s->ctx, s->pdn, at(s, 0), at(s, 0), 2 * SIZE, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND,
		   &t->window, &rkey);
	hca_mw_alloc(s->ctx, s->pdn, 2, &t->key);
}

static bool finished(const struct party *t)
{
	return t->done == t->posted;
}

static void play(enum hca_qp_type type)
{
	u32 turn, i;
	u64 end;

	for (turn = 0; turn < 4000 && !wrong && (parties[0].posted < OPS || parties[1].posted < OPS); turn++) {
		for (i = 0; i < 2; i++) {
			struct party *t = &parties[i];

			while (t->posted < OPS && t->posted - t->done < SLOTS && pick(3))
				post_op(t, type);
			if (pick(3))
				post_recvs(t, pick(4));
			drain(t);
		}
		loop_run_idle(loop, loop_now(loop).ns + pick(30) * NSEC_PER_USEC);
		poll_party(0, type);
		poll_party(1, type);
	}
	end = loop_now(loop).ns + 300 * NSEC_PER_SEC;
	while (!wrong && loop_now(loop).ns < end && !(finished(&parties[0]) && finished(&parties[1]))) {
		for (i = 0; i < 2; i++) {
			post_recvs(&parties[i], 4);
			drain(&parties[i]);
		}
		loop_run_idle(loop, loop_now(loop).ns + 5 * NSEC_PER_MSEC);
		poll_party(0, type);
		poll_party(1, type);
	}
}

static void check_end(enum hca_qp_type type)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct party *t = &parties[i];
		u64 count;

		expect(finished(t), "every request completes");
		memcpy(&count, t->peer->mem + COUNT, 8);
		expect(clean && type == HCA_QPT_RC ? count == t->added : count <= t->added, "atomics count once");
		expect(type == HCA_QPT_UC || t->messages_done <= parties[!i].received, "what was sent was received");
	}
}

static bool chance_ok(u64 seed)
{
	static const u8 kinds[] = { HCA_QPT_RC, HCA_QPT_RC, HCA_QPT_RC, HCA_QPT_UC };
	enum hca_qp_type type;
	u32 i;

	rng = (struct rng){ seed };
	wrong = NULL;
	type = kinds[pick(ARRAY_SIZE(kinds))];
	clean = type == HCA_QPT_RC && pick(3);
	link_layer = pick(2) ? WIRE_LINK_ETHERNET : WIRE_LINK_IB;
	start(type, (u8)(1 + pick(5)), pick(2) ? 0xffffff - pick(200) : pick(1 << 24));
	for (i = 0; i < 2; i++) {
		struct hca_qp *qp = hca_qp_lookup(i ? b.hca : a.hca, i ? b.qpn : a.qpn);

		qp->attr.rnr_retry = 7;
		qp->attr.retry_cnt = 7;
		((struct rxe_qp *)qp->transport)->req.retries = 7;
		((struct rxe_qp *)qp->transport)->req.rnr_retries = 7;
		party_init(&parties[i], i ? &b : &a, i ? &a : &b);
	}
	chance.rng = (struct rng){ seed ^ 0x5a5a };
	chance.lost = pick(2) ? pick(40) : 0;
	chance.twice = pick(2) ? pick(100) : 0;
	chance.late = pick(2) ? pick(100) : 0;
	chance.most = 1000000;
	play(type);
	check_end(type);
	expect(sent < chance.most, "all packets are delivered");
	chance.lost = chance.twice = chance.late = 0;
	chance.most = 0;
	stop();
	expect(!wire_packet_live(), "none is left");
	return !wrong;
}

int main(int argc, char **argv)
{
	u64 first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, n = argc > 1 ? 1 : 300;
	char what[128];
	u64 i;

	if (argc > 2)
		n = strtoull(argv[2], NULL, 0);
	for (i = first; i < first + n; i++) {
		bool ok = chance_ok(i);

		snprintf(what, sizeof(what), "seed %llu: %s", (unsigned long long)i, wrong ? wrong : "");
		row(0, what, ok);
	}
	return rows_end();
}
