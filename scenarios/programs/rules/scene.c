// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs a rule: sets up requester and responder, posts its request, and waits for the results of both sides. */
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S 3.0 /* time-out in seconds of expected results */

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* A second pair of connections, whose messages arrive after all packets sent before. */
static struct ibv_qp *courier[2];
static struct ibv_cq *courier_cq[2];

static unsigned knob(unsigned value, unsigned normal)
{
	return value == ZERO ? 0 : value ? value : normal;
}

void wrong(struct scene *s, const char *fmt, ...)
{
	size_t n = strlen(s->why);
	va_list ap;

	if (n && n < sizeof(s->why))
		n += (size_t)snprintf(s->why + n, sizeof(s->why) - n, "; ");
	va_start(ap, fmt);
	if (n < sizeof(s->why))
		vsnprintf(s->why + n, sizeof(s->why) - n, fmt, ap);
	va_end(ap);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

const char *state_name(unsigned state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < ARRAY_LEN(names) ? names[state] : "no state";
}

const char *type_name(enum ibv_qp_type type)
{
	return type == IBV_QPT_UC ? "UC" : type == IBV_QPT_UD ? "UD" : "RC";
}

const char *op_name(enum ibv_wr_opcode op)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE with immediate",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidate",
		[IBV_WR_BIND_MW] = "bind",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidate",
	};

	return (unsigned)op < ARRAY_LEN(names) && names[op] ? names[op] : "unknown operation";
}

uint8_t *region(struct end *e)
{
	return e->mem + MARGIN;
}

/* Queue pairs */

int required(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;

	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR && !ud)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	return IBV_QP_STATE;
}

void qp_attr(struct scene *s, enum side at, struct ibv_qp_attr *a, const struct knobs *k, uint32_t dest_qpn)
{
	const struct end *e = &s->end[at], *peer = &s->end[!at];

	*a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = e->port,
		.qkey = k->qkey ? k->qkey : QKEY,
		.qp_access_flags = knob(k->access, REMOTE),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = knob(s->rule->knob[!at].psn, PSN_DEF),
		.sq_psn = knob(k->psn, PSN_DEF),
		.max_rd_atomic = (uint8_t)knob(k->rd_atomic, 4),
		.max_dest_rd_atomic = (uint8_t)knob(k->dest_rd_atomic, 4),
		.min_rnr_timer = (uint8_t)knob(k->min_rnr_timer, 1),
		.timeout = (uint8_t)knob(k->timeout, 14),
		.retry_cnt = (uint8_t)knob(k->retry, 7),
		.rnr_retry = (uint8_t)knob(k->rnr_retry, 7),
		.ah_attr = { .dlid = peer->attr.lid, .port_num = e->port },
	};
	if (k->grh) {
		a->ah_attr.is_global = 1;
		a->ah_attr.grh = (struct ibv_global_route){ .dgid = peer->gid, .hop_limit = 8 };
	}
}

int qp_modify(struct scene *s, enum side at, struct ibv_qp *qp, enum ibv_qp_state to, const struct knobs *k,
	      uint32_t dest_qpn)
{
	struct ibv_qp_attr a;
	int mask = required(qp->qp_type, state_of(qp), to);

	qp_attr(s, at, &a, k, dest_qpn);
	a.qp_state = to;
	return ibv_modify_qp(qp, &a, mask);
}

void qp_connect(struct scene *s, enum side at, struct ibv_qp *qp, uint32_t dest_qpn, unsigned upto,
		const struct knobs *k)
{
	enum ibv_qp_state to;
	int err = 0;

	if (upto == IBV_QPS_RESET)
		return;
	for (to = IBV_QPS_INIT; to <= IBV_QPS_RTS && to <= upto && !err; to++)
		err = qp_modify(s, at, qp, to, k, dest_qpn);
	if (!err && (upto == IBV_QPS_SQD || upto == IBV_QPS_ERR))
		err = qp_modify(s, at, qp, upto, k, dest_qpn);
	if (err)
		wrong(s, "the set-up fails: %s", strerror(err));
}

struct ibv_qp *qp_make(struct scene *s, enum side at, enum ibv_qp_type type, const struct knobs *k)
{
	struct end *e = &s->end[at];
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.cap = { knob(k->send_wr, 32), knob(k->recv_wr, 32), knob(k->send_sge, 4), knob(k->recv_sge, 4),
			 knob(k->max_inline, 64) },
		.sq_sig_all = k->sig == 1,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (!qp)
		wrong(s, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_UNKNOWN };
	struct ibv_qp_init_attr init;

	return ibv_query_qp(qp, &a, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : a.qp_state;
}

/* Memory */

struct ibv_mr *extra_mr(struct scene *s, struct end *e, struct ibv_pd *pd, void *at, size_t len, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, len, (int)access);

	if (!mr || e->extras == ARRAY_LEN(e->extra)) {
		wrong(s, "ibv_reg_mr: %s", strerror(errno));
		return e->mr;
	}
	return e->extra[e->extras++] = mr;
}

/* Address and key of @len bytes at @off of the region of @e, with the error @ref. */
static void refer(struct scene *s, struct end *e, enum ref ref, unsigned off, unsigned len, bool remote, uint64_t *addr,
		  uint32_t *key)
{
	struct ibv_mr *mr = e->mr;
	unsigned all = IBV_ACCESS_LOCAL_WRITE | REMOTE;

	*addr = (uintptr_t)region(e) + off;
	*key = remote ? mr->rkey : mr->lkey;
	switch (ref) {
	case REF_NO_KEY:
		*key = 0xdeadbe00u;
		break;
	case REF_STALE:
		*key ^= 0x55;
		break;
	case REF_DEREGD:
		mr = ibv_reg_mr(e->pd, region(e), REGION, (int)all);
		if (mr) {
			*key = remote ? mr->rkey : mr->lkey;
			ibv_dereg_mr(mr);
		}
		break;
	case REF_OTHER_PD:
		mr = extra_mr(s, e, e->other_pd, region(e), REGION, all);
		*key = remote ? mr->rkey : mr->lkey;
		break;
	case REF_NO_RIGHT:
		mr = extra_mr(s, e, e->pd, region(e), REGION, remote ? IBV_ACCESS_LOCAL_WRITE : 0);
		*key = mr->lkey; /* as the R_Key of the region would be */
		break;
	case REF_BELOW:
		*addr = (uintptr_t)region(e) - 8;
		break;
	case REF_BEYOND:
		*addr = (uintptr_t)region(e) + REGION - len + 8;
		break;
	case REF_OUTSIDE:
		*addr = (uintptr_t)region(e) + REGION + 8;
		break;
	case REF_WRAPS:
		*addr = UINT64_MAX - 7;
		break;
	case REF_UNALIGNED:
		*addr += 1;
		break;
	default:
		break;
	}
}

/* Posting */

static bool fetches(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static unsigned cut(struct ibv_sge *sge, uint64_t addr, unsigned len, uint32_t key, unsigned n)
{
	unsigned part, i;

	if (!n)
		n = len ? 1 : 0;
	for (i = 0; i < n; i++) {
		part = i + 1 < n ? len / n : len - (n - 1) * (len / n);
		sge[i] = (struct ibv_sge){ .addr = addr, .length = part, .lkey = key };
		addr += part;
	}
	return n;
}

int post(struct scene *s, enum side from, struct req r)
{
	struct end *e = &s->end[from], *peer = &s->end[!from];
	bool atomic = fetches(r.op) && r.op != IBV_WR_RDMA_READ;
	struct ibv_send_wr wr = { .wr_id = r.id, .opcode = r.op }, *bad;
	struct ibv_sge sge[32];
	uint64_t addr, raddr;
	uint32_t lkey, rkey;

	if (atomic && !r.len)
		r.len = 8;
	refer(s, e, r.local, r.off + (fetches(r.op) ? INBOX : 0), r.len, false, &addr, &lkey);
	refer(s, peer, r.remote, r.off, r.len, true, &raddr, &rkey);
	if (r.rkey)
		rkey = r.rkey;
	if (r.raddr)
		raddr = r.raddr;
	wr.send_flags = (r.flags & ~UNSIGNALED) | (r.flags & UNSIGNALED ? 0 : IBV_SEND_SIGNALED);
	wr.sg_list = sge;
	wr.num_sge = (int)cut(sge, addr, r.len, lkey, r.nsge);
	if (r.op == IBV_WR_SEND_WITH_INV || r.op == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = r.rkey;
	else
		wr.imm_data = htobe32(0x01020304);
	if (e->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = r.ah ? r.ah : e->ah;
		wr.wr.ud.remote_qpn = r.qpn ? r.qpn : peer->qpn;
		wr.wr.ud.remote_qkey = r.qkey ? r.qkey : QKEY;
	} else if (atomic) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = r.add;
		wr.wr.atomic.swap = r.swap;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

void post_ok(struct scene *s, enum side from, struct req r)
{
	int err = post(s, from, r);

	if (err)
		wrong(s, "ibv_post_send: %s", strerror(err));
}

int post_recv(struct scene *s, enum side at, struct recv r)
{
	struct end *e = &s->end[at];
	struct ibv_recv_wr wr = { .wr_id = r.id }, *bad;
	struct ibv_sge sge[32];
	unsigned len = knob(r.len, SLOT);
	uint64_t addr;
	uint32_t key;

	refer(s, e, r.ref, INBOX + (unsigned)(r.id % (REGION / 2 / SLOT)) * SLOT, len, false, &addr, &key);
	wr.sg_list = sge;
	wr.num_sge = (int)cut(sge, addr, len, key, r.nsge);
	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

void post_recvs(struct scene *s, enum side at, unsigned n, struct recv r)
{
	int err;

	for (; n; n--, r.id++) {
		err = post_recv(s, at, r);
		if (err)
			wrong(s, "posting a receive: %s", strerror(err));
	}
}

/* Results */

static void collect_cq(struct ibv_cq *cq, struct ibv_wc *wc, unsigned *got, unsigned max)
{
	int n;

	while (cq && *got < max && (n = ibv_poll_cq(cq, (int)(max - *got), wc + *got)) > 0)
		*got += (unsigned)n;
}

static void collect_events(struct end *e)
{
	struct ibv_async_event ev;

	while (e->events < ARRAY_LEN(e->ev) && !ibv_get_async_event(e->ctx, &ev)) {
		e->ev[e->events++] = ev;
		ibv_ack_async_event(&ev);
	}
}

static void collect(struct end *e)
{
	collect_cq(e->scq, e->swc, &e->got_send, ARRAY_LEN(e->swc));
	collect_cq(e->rcq, e->rwc, &e->got_recv, ARRAY_LEN(e->rwc));
	collect_events(e);
}

bool wait_send(struct scene *s, enum side at, unsigned n)
{
	double end = now() + WAIT_S;

	for (collect(&s->end[at]); s->end[at].got_send < n && now() < end; collect(&s->end[at]))
		nap();
	return s->end[at].got_send >= n;
}

bool wait_recv(struct scene *s, enum side at, unsigned n)
{
	double end = now() + WAIT_S;

	for (collect(&s->end[at]); s->end[at].got_recv < n && now() < end; collect(&s->end[at]))
		nap();
	return s->end[at].got_recv >= n;
}

static bool has_event(const struct end *e, unsigned type)
{
	unsigned i;

	for (i = 0; i < e->events; i++)
		if (e->ev[i].event_type == type)
			return true;
	return false;
}

bool wait_event(struct scene *s, enum side at, enum ibv_event_type type)
{
	struct end *e = &s->end[at];
	double end = now() + WAIT_S;

	for (collect(e); !has_event(e, type) && now() < end; collect(e))
		nap();
	return has_event(e, type);
}

bool wait_event_unpolled(struct scene *s, enum side at, enum ibv_event_type type)
{
	struct end *e = &s->end[at];
	double end = now() + WAIT_S;

	for (collect_events(e); !has_event(e, type) && now() < end; collect_events(e))
		nap();
	return has_event(e, type);
}

bool wait_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	double end = now() + WAIT_S;

	while (state_of(qp) != state && now() < end)
		nap();
	return state_of(qp) == state;
}

unsigned drained(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	unsigned n = 0;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		n++;
	return n;
}

/* An empty WRITE from each side, which follows all packets of this side, and whose ACK follows those of the other. */
void wait_delivered(struct scene *s)
{
	int i;

	for (i = 0; i < 4; i++) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED }, *bad;
		double end = now() + WAIT_S;
		struct ibv_wc wc;
		int n = 0;

		if (ibv_post_send(courier[i % 2], &wr, &bad)) {
			wrong(s, "the courier cannot send");
			return;
		}
		while (!(n = ibv_poll_cq(courier_cq[i % 2], 1, &wc)) && now() < end)
			nap();
		if (n != 1 || wc.status)
			wrong(s, "the courier did not arrive");
	}
	collect(&s->end[REQ]);
	collect(&s->end[RESP]);
}

unsigned long counter(struct scene *s, enum side at, const char *name)
{
	char path[512], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/ports/%u/hw_counters/%s", s->end[at].ctx->device->ibdev_path, s->end[at].port,
		 name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		wrong(s, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return strtoul(text, NULL, 10);
}

struct ibv_ah *ah_to(struct scene *s, enum side from, struct ibv_pd *pd)
{
	struct end *e = &s->end[from], *peer = &s->end[!from];
	struct ibv_ah_attr a = { .dlid = peer->attr.lid, .port_num = e->port };
	struct ibv_ah *ah;

	if (s->rule->knob[from].grh) {
		a.is_global = 1;
		a.grh = (struct ibv_global_route){ .dgid = peer->gid, .hop_limit = 8 };
	}
	ah = ibv_create_ah(pd, &a);
	if (!ah)
		wrong(s, "ibv_create_ah: %s", strerror(errno));
	return ah;
}

/* Run of a rule */

static void end_open(struct scene *s, enum side at)
{
	const struct rule *r = s->rule;
	const struct knobs *k = &r->knob[at];
	struct end *e = &s->end[at];
	unsigned i;

	e->got_send = e->got_recv = e->events = e->extras = 0;
	e->qp = NULL;
	e->srq = NULL;
	e->ah = NULL;
	e->chan = NULL;
	for (i = 0; i < MEMORY; i++)
		e->mem[i] = (uint8_t)(at == REQ ? i * 7 + i / 251 + 3 : i * 5 + i / 239 + 0x80);
	if (k->event)
		e->chan = ibv_create_comp_channel(e->ctx);
	if (e->chan)
		fcntl(e->chan->fd, F_SETFL, fcntl(e->chan->fd, F_GETFL) | O_NONBLOCK);
	e->scq = ibv_create_cq(e->ctx, (int)knob(k->cqe, 64), NULL, e->chan, 0);
	e->rcq = ibv_create_cq(e->ctx, (int)knob(k->cqe, 64), NULL, e->chan, 0);
	e->mr = ibv_reg_mr(e->pd, region(e), REGION,
			   (int)knob(k->mr_access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | REMOTE));
	if (!e->scq || !e->rcq || !e->mr)
		wrong(s, "no CQ or region: %s", strerror(errno));
	if (k->srq) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = k->srq, .max_sge = knob(k->recv_sge, 4) } };

		e->srq = ibv_create_srq(e->pd, &init);
		if (!e->srq)
			wrong(s, "ibv_create_srq: %s", strerror(errno));
	}
	if (!r->bare)
		e->qp = qp_make(s, at, r->type, k);
	e->qpn = e->qp ? e->qp->qp_num : 0;
}

/* Destroys everything; each call must succeed, since no object is in use. */
static void end_close(struct scene *s, struct end *e)
{
	int err = 0;

	if (e->ah)
		err |= ibv_destroy_ah(e->ah);
	if (e->qp)
		err |= ibv_destroy_qp(e->qp);
	if (e->srq)
		err |= ibv_destroy_srq(e->srq);
	while (e->extras)
		err |= ibv_dereg_mr(e->extra[--e->extras]);
	if (e->mr)
		err |= ibv_dereg_mr(e->mr);
	if (e->scq)
		err |= ibv_destroy_cq(e->scq);
	if (e->rcq)
		err |= ibv_destroy_cq(e->rcq);
	if (e->chan)
		err |= ibv_destroy_comp_channel(e->chan);
	if (err)
		wrong(s, "an object cannot be destroyed: %s", strerror(err));
	e->scq = e->rcq = NULL;
	e->mr = NULL;
}

static unsigned listed(const unsigned char *list)
{
	unsigned n = 0;

	while (n < LISTED && list[n])
		n++;
	return n;
}

static void connect_both(struct scene *s)
{
	struct end *a = &s->end[REQ], *b = &s->end[RESP];
	const struct knobs *k = s->rule->knob;

	if (!a->qp || !b->qp)
		return;
	qp_connect(s, REQ, a->qp, b->qp->qp_num, k[REQ].upto ? k[REQ].upto - 1 : IBV_QPS_RTS, &k[REQ]);
	qp_connect(s, RESP, b->qp, a->qp->qp_num, k[RESP].upto ? k[RESP].upto - 1 : IBV_QPS_RTS, &k[RESP]);
	if (s->rule->type == IBV_QPT_UD) {
		a->ah = ah_to(s, REQ, a->pd);
		b->ah = ah_to(s, RESP, b->pd);
	}
}

static void act(struct scene *s)
{
	const struct rule *r = s->rule;
	int err;

	if (r->recvs)
		post_recvs(s, RESP, r->recvs, r->recv);
	if (r->action) {
		r->action(s);
		return;
	}
	err = post(s, REQ, r->send);
	if (err != r->err)
		wrong(s, "ibv_post_send: expected %s, got %s", strerror(r->err), strerror(err));
}

void scene_run(struct scene *s, const struct rule *rule)
{
	static struct rule copy;
	unsigned long before[COUNTED];
	unsigned i;

	copy = *rule;
	if (copy.type != IBV_QPT_UC && copy.type != IBV_QPT_UD)
		copy.type = IBV_QPT_RC;
	s->rule = &copy;
	s->why[0] = 0;
	s->user = NULL;
	end_open(s, REQ);
	end_open(s, RESP);
	compare_begin(s);
	connect_both(s);
	for (i = 0; i < COUNTED && copy.counted[i].name; i++)
		before[i] = counter(s, copy.counted[i].side, copy.counted[i].name);
	if (!s->why[0]) {
		act(s);
		wait_send(s, REQ, listed(copy.req));
		wait_recv(s, RESP, listed(copy.resp));
		for (i = 0; i < 2; i++)
			if (copy.event[i])
				wait_event(s, i, copy.event[i] - 1);
		compare_states(s);
		wait_delivered(s);
		compare(s, before);
		if (copy.check)
			copy.check(s);
	}
	end_close(s, &s->end[REQ]);
	end_close(s, &s->end[RESP]);
}

static void die(const char *what)
{
	printf("FAIL %s: %s\n", what, strerror(errno));
	exit(2);
}

static void end_init(struct end *e, struct ibv_device *dev, uint8_t port)
{
	e->port = port;
	e->ctx = ibv_open_device(dev);
	if (!e->ctx)
		die("ibv_open_device");
	e->pd = ibv_alloc_pd(e->ctx);
	e->other_pd = ibv_alloc_pd(e->ctx);
	if (ibv_query_port(e->ctx, port, &e->attr) || ibv_query_gid(e->ctx, port, 0, &e->gid))
		die("ibv_query_port");
	fcntl(e->ctx->async_fd, F_SETFL, fcntl(e->ctx->async_fd, F_GETFL) | O_NONBLOCK);
	e->mem = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!e->pd || !e->other_pd || e->mem == MAP_FAILED)
		die("no PD or memory");
}

void scene_init(struct scene *s)
{
	static const struct rule any;
	struct ibv_device **all = ibv_get_device_list(NULL);
	static const struct knobs none;
	int i;

	if (!all || !all[0])
		die("no RDMA device");
	s->rule = &any;
	for (i = 0; i < 2; i++) {
		end_init(&s->end[i], all[0], (uint8_t)(i + 1));
		courier_cq[i] = s->end[i].scq = s->end[i].rcq = ibv_create_cq(s->end[i].ctx, 16, NULL, NULL, 0);
		courier[i] = qp_make(s, i, IBV_QPT_RC, &none);
	}
	for (i = 0; i < 2; i++)
		qp_connect(s, i, courier[i], courier[!i]->qp_num, IBV_QPS_RTS, &none);
	if (s->why[0])
		die(s->why);
	ibv_free_device_list(all);
}
