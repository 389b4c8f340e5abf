// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Generations of a connection. Each begins with new queue pairs and ends when an end requests the next one: after an
 * error, at random, or in order (closing), when nothing is in flight and both ends have received everything.
 */
#include "chaos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static const struct head *head(void)
{
	return &file->head;
}

bool end_is_rc(const struct end *e)
{
	return e->type != CONN_UC && e->type != CONN_UD;
}

static bool by_cm(const struct end *e)
{
	return e->type == CONN_CM || e->type == CONN_IWARP;
}

static void go(struct end *e, enum end_state state)
{
	e->state = state;
	e->since = now_ms();
}

static uint32_t epoch(uint32_t proc)
{
	return head()->epoch[head()->proc[proc].host];
}

static bool peer_killed(const struct end *e)
{
	return head()->proc[e->peer].kills != e->his->incarnation;
}

uint32_t end_excuses(const struct end *e)
{
	uint32_t ex = e->conn->excuse[e->gen % GENS];

	if (e->conn->want != e->gen)
		ex |= STOPPED;
	if ((e->his->made >= e->gen || e->his->drained >= e->gen) && peer_killed(e))
		ex |= KILLED;
	else if (e->his->made < e->gen && head()->proc[e->peer].kills != file->proc[e->peer].incarnation)
		ex |= KILLED;
	if (e->epoch[0] & 1 || e->epoch[1] & 1 || e->epoch[0] != epoch(prog.index) || e->epoch[1] != epoch(e->peer))
		ex |= LOST;
	if (by_cm(e) && e->state <= READY && (e->sm_epoch & 1 || e->sm_epoch != head()->sm_epoch))
		ex |= LOST;
	return ex;
}

void end_excuse(struct end *e, uint32_t excuse)
{
	e->conn->excuse[e->gen % GENS] |= excuse;
}

static void want_next(struct conn_shared *c, uint32_t gen)
{
	uint32_t had = gen;

	c->excuse[(gen + GENS / 2) % GENS] = 0;
	atomic_compare_exchange_strong(&c->want, &had, gen + 1);
}

void end_stop(struct end *e)
{
	want_next(e->conn, e->gen);
}

void end_init(struct end *e, uint32_t conn, uint32_t side)
{
	int flags = MAP_ANONYMOUS | (chance(300) ? MAP_SHARED : MAP_PRIVATE);

	e->conn = &file->conn[conn];
	e->index = conn;
	e->side = side;
	e->type = head()->conn[conn].type;
	e->peer = head()->conn[conn].proc[!side];
	e->mine = &e->conn->end[side];
	e->his = &e->conn->end[!side];
	e->mem = mmap(NULL, END_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (e->mem == MAP_FAILED)
		wrong(e, "no memory");
	e->recvs = e->mem + LOCAL_BYTES;
	e->target = e->recvs + RECV_BYTES;
	e->target += -(uintptr_t)e->target & 4095; /* the words after it stay aligned */
	go(e, GONE);
	if (prog.incarnation) {
		uint32_t gen = e->conn->want;

		want_next(e->conn, gen);
		e->mine->drained = gen;
		e->mine->checked = gen;
	}
}

/* ---- creation ---- */

static struct ibv_cq *cq_make(struct end *e, bool *own)
{
	struct ibv_cq *cq;

	*own = chance(600);
	if (!*own)
		return prog.cq;
	cq = ibv_create_cq(prog.ctx, 2 * RING, e, prog.channel, 0);
	if (!cq)
		wrong(e, "create_cq: %s", strerror(errno));
	return cq;
}

static void regions_make(struct end *e)
{
	int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (e->type != CONN_IWARP)
		remote |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	e->mr = ibv_reg_mr(prog.pd, e->mem, END_BYTES, e->type == CONN_IWARP ? remote : IBV_ACCESS_LOCAL_WRITE);
	e->target_mr = ibv_reg_mr(prog.pd, e->target, TARGET_BYTES + WORDS * 8, remote);
	if (!e->mr || !e->target_mr)
		wrong(e, "reg_mr: %s", strerror(errno));
	if (end_is_rc(e) && e->type != CONN_IWARP) {
		e->mw = ibv_alloc_mw(prog.pd, IBV_MW_TYPE_2);
		if (!e->mw)
			wrong(e, "alloc_mw: %s", strerror(errno));
		e->mw_rkey = e->mw->rkey;
	}
	e->mw_state = MW_IDLE;
	e->mw_stale = 0;
}

static void queues_make(struct end *e)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = RECVS, .max_sge = 2 } };

	e->scq = cq_make(e, &e->own_cq);
	e->rcq = e->scq;
	e->own_rcq = false;
	if (chance(300))
		e->rcq = cq_make(e, &e->own_rcq);
	if (e->type != CONN_UC && chance(250)) {
		e->srq = ibv_create_srq(prog.pd, &attr);
		if (!e->srq)
			wrong(e, "create_srq: %s", strerror(errno));
	}
}

static struct ibv_qp_init_attr qp_attrs(struct end *e)
{
	return (struct ibv_qp_init_attr){
		.qp_context = e,
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.qp_type = e->type == CONN_UC   ? IBV_QPT_UC
			   : e->type == CONN_UD ? IBV_QPT_UD
						: IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = e->srq ? 0 : RECVS,
			 .max_send_sge = 3,
			 .max_recv_sge = e->srq ? 0 : 2,
			 .max_inline_data = e->type == CONN_IWARP ? 0 : INLINE },
	};
}

static void qp_make(struct end *e)
{
	struct ibv_qp_init_attr init = qp_attrs(e);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = QKEY,
				 .qp_access_flags =
					 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, err;

	e->qp = ibv_create_qp(prog.pd, &init);
	if (!e->qp)
		wrong(e, "create_qp: %s", strerror(errno));
	e->qpn = e->qp->qp_num;
	err = ibv_modify_qp(e->qp, &a, mask | (e->type == CONN_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (err)
		wrong(e, "modify_qp to INIT: %s", strerror(err));
}

static struct ibv_ah_attr path(const struct end *e)
{
	struct ibv_ah_attr ah = { .dlid = e->his->lid, .port_num = 1 };

	if (prog.port.link_layer == IBV_LINK_LAYER_ETHERNET || e->gen % 4 == 3) {
		ah.is_global = 1;
		ah.grh = (struct ibv_global_route){ .dgid = e->his->gid, .hop_limit = 64 };
	}
	return ah;
}

static void qp_connect(struct end *e)
{
	static const enum ibv_mtu mtus[] = { IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_1024 };
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtus[(e->gen + e->index) % 4],
		.dest_qp_num = e->his->qpn,
		.rq_psn = e->his->psn,
		.sq_psn = e->mine->psn,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 5,
		.ah_attr = path(e),
		.timeout = 18, /* 1 s: a busy machine may not schedule the daemon for a tenth of it */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int mask = IBV_QP_STATE, rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, err;

	if (e->type == CONN_RC)
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	err = ibv_modify_qp(e->qp, &a, mask | (e->type == CONN_UD ? 0 : rtr));
	if (err)
		wrong(e, "modify_qp to RTR: %s", strerror(err));
	a.qp_state = IBV_QPS_RTS;
	mask |= IBV_QP_SQ_PSN;
	if (e->type == CONN_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	err = ibv_modify_qp(e->qp, &a, mask);
	if (err)
		wrong(e, "modify_qp to RTS: %s", strerror(err));
	if (e->type == CONN_UD) {
		struct ibv_ah_attr ah = path(e);

		e->ah = ibv_create_ah(prog.pd, &ah);
		if (!e->ah)
			wrong(e, "create_ah: %s", strerror(errno));
	}
}

/* ---- rdma_cm ---- */

static void cm_must(struct end *e, int err, const char *what)
{
	if (err && !end_excuses(e))
		wrong(e, "%s: %s", what, strerror(errno));
	if (err)
		end_stop(e);
}

static struct sockaddr_in address(uint32_t proc, uint32_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, head()->proc[proc].ip, &sin.sin_addr);
	return sin;
}

static void cm_listen(struct end *e)
{
	struct sockaddr_in sin = address(prog.index, 0);

	e->channel = rdma_create_event_channel();
	if (!e->channel)
		wrong(e, "no event channel: %s", strerror(errno));
	fcntl(e->channel->fd, F_SETFL, fcntl(e->channel->fd, F_GETFL) | O_NONBLOCK);
	e->established = false;
	if (e->side)
		return;
	if (rdma_create_id(e->channel, &e->listener, e, RDMA_PS_TCP) ||
	    rdma_bind_addr(e->listener, (struct sockaddr *)&sin) || rdma_listen(e->listener, 4))
		wrong(e, "cannot listen: %s", strerror(errno));
	e->mine->tcp_port = ntohs(rdma_get_src_port(e->listener));
}

/* False: the peer has ended the connection meanwhile. */
static bool cm_qp_make(struct end *e)
{
	struct ibv_qp_init_attr init = qp_attrs(e);
	int err = rdma_create_qp(e->id, prog.pd, &init);

	cm_must(e, err, "rdma_create_qp");
	if (err)
		return false;
	e->qp = e->id->qp;
	e->qpn = e->qp->qp_num;
	while (traffic_fill(e))
		;
	return true;
}

static void cm_event(struct end *e, struct rdma_cm_event *ev)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7
	};

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		cm_must(e, rdma_resolve_route(e->id, 3000), "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (e->state == DRAIN)
			break;
		if (e->id->verbs->device != prog.ctx->device && e->id->verbs != prog.ctx)
			wrong(e, "another device");
		if (cm_qp_make(e))
			cm_must(e, rdma_connect(e->id, &param), "rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* The peer was killed, or is late; a QP that is made in DRAIN would not be moved to the error state. */
		if (e->id || e->state == DRAIN) {
			if (!end_excuses(e))
				wrong(e, "a second CONNECT_REQUEST");
			rdma_reject(ev->id, NULL, 0);
			rdma_destroy_id(ev->id);
			break;
		}
		e->id = ev->id;
		if (cm_qp_make(e))
			cm_must(e, rdma_accept(e->id, &param), "rdma_accept");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		e->established = true;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		if (!end_excuses(e))
			wrong(e, "%s, status %d, without an excuse", rdma_event_str(ev->event), ev->status);
		end_stop(e);
	}
}

static bool cm_events(struct end *e)
{
	struct rdma_cm_event *ev, copy;

	if (!e->channel || rdma_get_cm_event(e->channel, &ev))
		return false;
	copy = *ev;
	rdma_ack_cm_event(ev); /* an id with unacknowledged events cannot be destroyed */
	cm_event(e, &copy);
	return true;
}

static bool cm_connect(struct end *e)
{
	struct sockaddr_in sin;

	if (!e->side || e->id)
		return false;
	sin = address(e->peer, e->his->tcp_port);
	if (rdma_create_id(e->channel, &e->id, e, RDMA_PS_TCP))
		wrong(e, "rdma_create_id: %s", strerror(errno));
	cm_must(e, rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&sin, 3000), "rdma_resolve_addr");
	return true;
}

/* ---- states ---- */

static void end_make(struct end *e, uint32_t gen)
{
	struct end_shared *m = e->mine;

	e->gen = gen;
	e->failed = e->closing_read = e->armed[0] = e->armed[1] = false;
	e->sqd = e->armed_at[0] = e->armed_at[1] = 0;
	e->epoch[0] = epoch(prog.index);
	e->epoch[1] = epoch(e->peer);
	e->sm_epoch = head()->sm_epoch;
	e->blocked = 0;
	traffic_reset(e);
	regions_make(e);
	queues_make(e);
	if (by_cm(e))
		cm_listen(e);
	else
		qp_make(e);
	if (!by_cm(e))
		while (traffic_fill(e))
			;
	m->incarnation = prog.incarnation;
	m->qpn = e->qpn;
	m->psn = draw(1 << 24);
	m->rkey = e->target_mr->rkey;
	m->target = (uintptr_t)e->target;
	m->lid = prog.port.lid;
	m->gid = prog.gid;
	m->made = gen;
	file->head.proc[prog.index].opens++;
	go(e, MADE);
}

static void destroyed(struct end *e, int err, const char *what)
{
	if (err)
		wrong(e, "%s: %s", what, strerror(err < 0 ? errno : err));
}

/* The channel's CQ events have been received and acknowledged one by one. */
static void end_destroy(struct end *e)
{
	if (e->id) {
		if (e->qp)
			rdma_destroy_qp(e->id);
		destroyed(e, rdma_destroy_id(e->id), "rdma_destroy_id");
	} else if (e->qp) {
		destroyed(e, ibv_destroy_qp(e->qp), "destroy_qp");
	}
	if (e->listener)
		destroyed(e, rdma_destroy_id(e->listener), "rdma_destroy_id of the listener");
	if (e->channel)
		rdma_destroy_event_channel(e->channel);
	if (e->srq)
		destroyed(e, ibv_destroy_srq(e->srq), "destroy_srq");
	if (e->ah)
		destroyed(e, ibv_destroy_ah(e->ah), "destroy_ah");
	if (e->mw)
		destroyed(e, ibv_dealloc_mw(e->mw), "dealloc_mw");
	if (e->target_mr)
		destroyed(e, ibv_dereg_mr(e->target_mr), "dereg_mr");
	destroyed(e, ibv_dereg_mr(e->mr), "dereg_mr");
	traffic_poll(e); /* polls received messages of an SRQ; no event is left */
	if (e->own_rcq)
		destroyed(e, ibv_destroy_cq(e->rcq), "destroy_cq");
	if (e->own_cq)
		destroyed(e, ibv_destroy_cq(e->scq), "destroy_cq");
	e->qp = NULL;
	e->qpn = 0;
	e->id = e->listener = NULL;
	e->channel = NULL;
	e->srq = NULL;
	e->ah = NULL;
	e->mw = NULL;
	e->mr = e->target_mr = NULL;
	e->scq = e->rcq = NULL;
	e->own_cq = e->own_rcq = false;
}

static void drain_begin(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	int err;

	end_stop(e);
	if (e->id && e->established && chance(500))
		rdma_disconnect(e->id); /* to the error state, too; the peer may have done so */
	err = e->qp ? ibv_modify_qp(e->qp, &a, IBV_QP_STATE) : 0;
	if (err && e->type != CONN_IWARP)
		wrong(e, "modify_qp to ERR: %s", strerror(err));
	go(e, DRAIN);
}

static bool drain_step(struct end *e)
{
	bool sends = traffic_expects(e), recvs = e->qp && !e->srq && e->rq_head != e->rq_tail;

	if (sends || recvs) {
		if (now_ms() - e->since > BOUND * 1000)
			wrong(e, "in the error state %u sends and %u receives have not completed",
			      e->sq_head - e->sq_tail, e->rq_head - e->rq_tail);
		return false;
	}
	traffic_abandon(e);
	end_destroy(e);
	e->mine->drained = e->gen;
	go(e, GONE);
	return true;
}

static bool gone_step(struct end *e)
{
	uint32_t want = e->conn->want;

	if (e->gen && e->mine->checked < e->gen) { /* both have drained: written data is in memory */
		if (e->his->drained < e->gen && !peer_killed(e))
			return false;
		traffic_check_target(e);
		e->mine->checked = e->gen;
	}
	if (prog.finishing)
		return false;
	if (e->mine->checked < want - 1)
		e->mine->drained = e->mine->checked = want - 1;
	if (e->his->checked < want - 1)
		return false;
	end_make(e, want);
	return true;
}

static bool both_at(const struct end *e, const struct end_shared *s)
{
	return s->made >= e->gen;
}

static void leave(struct end *e)
{
	end_excuse(e, STOPPED);
	drain_begin(e);
}

/* All sent messages have been received. */
static bool quiet_step(struct end *e)
{
	uint32_t ex = end_excuses(e) & ~STOPPED;

	if (e->his->quiet < e->gen)
		return false;
	if (e->his->sent != e->mine->received && !ex && now_ms() - e->since > 20000)
		wrong(e, "of %u messages that the peer has sent %u came", e->his->sent, e->mine->received);
	if (e->his->sent != e->mine->received && !ex)
		return false;
	drain_begin(e);
	return true;
}

bool end_step(struct end *e)
{
	bool busy = cm_events(e);

	if (e->state == GONE)
		return gone_step(e) || busy;
	if (e->state == DRAIN)
		return drain_step(e) || busy;
	if (e->state == QUIET && e->his->quiet >= e->gen)
		return quiet_step(e) || busy;
	if (e->conn->want != e->gen) {
		drain_begin(e);
		return true;
	}
	switch (e->state) {
	case MADE:
		if (prog.finishing) {
			leave(e);
			return true;
		}
		if (!both_at(e, e->his))
			return busy;
		if (!by_cm(e))
			qp_connect(e);
		else if (cm_connect(e) || !e->established)
			return busy;
		e->mine->ready = e->gen;
		go(e, READY);
		return true;
	case READY:
		if (e->his->ready >= e->gen)
			go(e, OPEN);
		else if (prog.finishing)
			leave(e);
		else
			return busy;
		return true;
	case OPEN:
		if (e->conn->closing != e->gen && !prog.finishing)
			return busy;
		e->conn->closing = e->gen;
		go(e, CLOSING);
		return true;
	case CLOSING:
		if (!e->closing_read)
			traffic_closing_read(e);
		if (e->sq_head != e->sq_tail)
			return busy;
		e->mine->quiet = e->gen;
		go(e, QUIET);
		return true;
	default:
		return busy;
	}
}
