// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of ownership: foreign and unknown numbers, objects in use, address handles, multicast,
 * events, destruction of a context. */
#include "emu/hca/fixture.h"

static struct fixture f;
static struct hca_ctx *thief;
static struct hca_soft_cq *cq;
static struct hca_soft_wq *ud;
static struct hca_srq_attr srq_attr = { .max_wr = 4, .max_sge = 1 };

static struct hca_qp_init init_qp(void)
{
	u32 cqn = hca_soft_cq_number(cq);

	return (struct hca_qp_init){ .type = HCA_QPT_UD,
				     .pdn = f.pdn,
				     .send_cqn = cqn,
				     .recv_cqn = cqn,
				     .max_send_wr = 1,
				     .max_recv_wr = 1,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .port = 1 };
}

static void check_foreign(void)
{
	struct hca_av av = { .dlid = 2, .port = 1 }, out;
	struct hca_qp_attr attr = fixture_attr();
	u32 qpn = hca_soft_wq_number(ud), lkey, rkey, mw, n, ahn, srqn;
	struct hca_soft_wq *srq;

	hca_mr_reg(f.ctx, f.pdn, 0x1000, 0x1000, 16, HCA_ACCESS_LOCAL_WRITE, &lkey, &rkey);
	hca_mw_alloc(f.ctx, f.pdn, 1, &mw);
	hca_soft_srq_create(f.ctx, f.pdn, &srq_attr, &srq);
	srqn = hca_soft_wq_number(srq);
	hca_ah_create(f.ctx, f.pdn, &av, &ahn);
	row(1, "PD", hca_pd_free(thief, f.pdn) == -ENOENT);
	row(2, "MR in a foreign PD", hca_mr_reg(thief, f.pdn, 0, 0, 1, 0, &n, &rkey) == -EINVAL);
	row(3, "MR", hca_mr_dereg(thief, lkey) == -ENOENT);
	row(4, "MW", hca_mw_free(thief, mw) == -ENOENT);
	row(5, "MR as MW", hca_mw_free(f.ctx, lkey) == -ENOENT);
	row(6, "MW as MR", hca_mr_dereg(f.ctx, mw) == -ENOENT);
	row(7, "CQ", hca_cq_destroy(thief, hca_soft_cq_number(cq)) == -ENOENT);
	row(8, "SRQ", hca_srq_destroy(thief, srqn) == -ENOENT && hca_srq_set_limit(thief, srqn, 1) == -EINVAL);
	row(9, "QP", hca_qp_destroy(thief, qpn) == -ENOENT);
	row(10, "QP's query", hca_qp_query(thief, qpn, &attr) == -EINVAL);
	row(11, "QP's modify", hca_qp_modify(thief, qpn, &attr, HCA_QP_STATE) == -EINVAL);
	row(12, "AH", hca_ah_destroy(thief, ahn) == -ENOENT && hca_ah_av(thief, qpn, ahn, &out) == -EINVAL);
	row(13, "AH in a foreign PD", hca_ah_create(thief, f.pdn, &av, &n) == -EINVAL);
	hca_qp_doorbell(thief, qpn);
	hca_qp_recv_doorbell(thief, qpn);
	hca_qp_doorbell(f.ctx, 0xffffffff);
	row(14, "PD in use", hca_pd_free(f.ctx, f.pdn) == -EBUSY);
	row(15, "AH of the QP's PD", !hca_ah_av(f.ctx, qpn, ahn, &out) && out.dlid == 2);
	row(16, "given back",
	    !hca_mr_dereg(f.ctx, lkey) && !hca_mw_free(f.ctx, mw) && !hca_ah_destroy(f.ctx, ahn) &&
		    !hca_soft_wq_destroy(srq));
	row(17, "twice", hca_ah_destroy(f.ctx, ahn) == -ENOENT && hca_ah_av(f.ctx, qpn, ahn, &out) == -EINVAL);
}

static void check_ah(void)
{
	struct hca_av av = { .dlid = 0xc000, .port = 2 }, out;
	u32 pdn, ahn;

	hca_pd_alloc(f.ctx, &pdn);
	row(20, "a multicast LID", !hca_ah_create(f.ctx, pdn, &av, &ahn));
	row(21, "of another PD than the QP", hca_ah_av(f.ctx, hca_soft_wq_number(ud), ahn, &out) == -EINVAL);
	row(22, "PD in use", hca_pd_free(f.ctx, pdn) == -EBUSY);
	row(23, "number 0", hca_ah_av(f.ctx, hca_soft_wq_number(ud), 0, &out) == -EINVAL);
	hca_ah_destroy(f.ctx, ahn);
	row(24, "PD free", !hca_pd_free(f.ctx, pdn));
	av.port = 3;
	row(25, "no such port", hca_ah_create(f.ctx, f.pdn, &av, &ahn) == -EINVAL);
}

static const struct {
	int n;
	u16 off, size;
	u32 value;
	int err;
} creations[] = {
#define F(f) offsetof(struct hca_qp_init, f), sizeof(((struct hca_qp_init *)0)->f)
	{ 30, F(type), HCA_QPT_RC, 0 },
	{ 31, F(type), 5, -EINVAL },
	{ 32, F(pdn), 99, -EINVAL },
	{ 33, F(send_cqn), 99, -EINVAL },
	{ 34, F(recv_cqn), 0, -EINVAL },
	{ 35, F(srqn), 99, -EINVAL },
	{ 36, F(max_send_wr), 1 << 14, 0 },
	{ 37, F(max_send_wr), (1 << 14) + 1, -EINVAL },
	{ 38, F(max_recv_wr), (1 << 14) + 1, -EINVAL },
	{ 39, F(max_send_sge), HCA_MAX_SGE + 1, -EINVAL },
	{ 40, F(max_recv_sge), HCA_MAX_SGE + 1, -EINVAL },
	{ 41, F(max_inline), HCA_MAX_INLINE, 0 },
	{ 42, F(max_inline), HCA_MAX_INLINE + 1, -EINVAL },
	{ 43, F(qpn), 1, -EINVAL },
};

static void check_qp(void)
{
	struct hca_qp_init init;
	struct hca_soft_wq *wq;
	u32 i, first;

	for (i = 0; i < ARRAY_SIZE(creations); i++) {
		int err;

		init = init_qp();
		memcpy((u8 *)&init + creations[i].off, &creations[i].value, creations[i].size);
		err = hca_soft_qp_create(f.ctx, &init, &wq);
		row(creations[i].n, "creation", err == creations[i].err);
		if (!err)
			hca_soft_wq_destroy(wq);
	}
	init = init_qp();
	hca_soft_qp_create(f.ctx, &init, &wq);
	first = hca_soft_wq_number(wq);
	row(50, "a number of 24 bits, not 0 or 1", first > 1 && first < 0xffffff);
	hca_soft_wq_destroy(wq);
	row(51, "gone", !hca_qp_lookup(f.hca, first));
	for (i = 0; i < 1000; i++) {
		hca_soft_qp_create(f.ctx, &init, &wq);
		if (hca_soft_wq_number(wq) == first)
			row(52, "a number is not reused soon", false);
		hca_soft_wq_destroy(wq);
	}
	init.qpn = first;
	row(53, "a number of one's choice", !hca_soft_qp_create(f.ctx, &init, &wq) && hca_soft_wq_number(wq) == first);
	init.qpn = hca_soft_wq_number(ud);
	struct hca_soft_wq *second;
	row(54, "a number in use", hca_soft_qp_create(f.ctx, &init, &second) == -EBUSY);
	hca_soft_wq_destroy(wq);
}

static void count_qp(struct hca_qp *qp, void *arg)
{
	++*(u32 *)arg;
}

static u32 members(u8 port, const struct wire_gid *mgid)
{
	u32 calls = 0, n = hca_mcast_for_each(f.hca, port, mgid, 0xc001, count_qp, &calls);

	return n == calls ? n : ~0u;
}

static void check_mcast(void)
{
	struct wire_gid mgid = wire_gid_make(0xff12401bffff0000ull, 1), uni = wire_gid_make(1, 1),
			other = wire_gid_make(0xff12401bffff0000ull, 2);
	struct hca_soft_wq *rc = fixture_qp(&f, HCA_QPT_RC, cq, 0), *ud2 = fixture_qp(&f, HCA_QPT_UD, cq, 0);
	u32 qpn = hca_soft_wq_number(ud), qpn2 = hca_soft_wq_number(ud2), i;

	fixture_move(&f, ud, HCA_QPS_RTR);
	fixture_move(&f, ud2, HCA_QPS_RTR);
	row(60, "an RC QP", hca_mcast_attach(f.ctx, hca_soft_wq_number(rc), &mgid, 0xc001) == -EINVAL);
	row(61, "a unicast GID", hca_mcast_attach(f.ctx, qpn, &uni, 0xc001) == -EINVAL);
	row(62, "a unicast LID", hca_mcast_attach(f.ctx, qpn, &mgid, 5) == -EINVAL);
	row(63, "another's QP", hca_mcast_attach(thief, qpn, &mgid, 0xc001) == -EINVAL);
	row(64, "no member of the group", members(1, &mgid) == 0);
	row(65, "attach", !hca_mcast_attach(f.ctx, qpn, &mgid, 0xc001) && members(1, &mgid) == 1);
	row(66, "again", !hca_mcast_attach(f.ctx, qpn, &mgid, 0xc001) && members(1, &mgid) == 1);
	row(67, "by another LID", hca_mcast_attach(f.ctx, qpn, &mgid, 0xc002) == -EINVAL);
	row(68, "a second", !hca_mcast_attach(f.ctx, qpn2, &mgid, 0xc001) && members(1, &mgid) == 2);
	row(69, "through the other port", members(2, &mgid) == 0);
	row(70, "another group", members(1, &other) == 0);
	row(71, "attached: busy", hca_qp_destroy(f.ctx, qpn) == -EBUSY);
	row(72, "detach by another LID", hca_mcast_detach(f.ctx, qpn, &mgid, 0xc002) == -EINVAL);
	row(73, "detach", !hca_mcast_detach(f.ctx, qpn, &mgid, 0xc001) && members(1, &mgid) == 1);
	row(74, "once", hca_mcast_detach(f.ctx, qpn, &mgid, 0xc001) == -EINVAL);
	hca_mcast_detach(f.ctx, qpn2, &mgid, 0xc001);
	mgid = wire_gid_make(0, 0xffffe1020304ull);
	row(77, "an IPv4 group, which has no LID", !hca_mcast_attach(f.ctx, qpn, &mgid, 0) && members(1, &mgid) == 1);
	hca_mcast_detach(f.ctx, qpn, &mgid, 0);
	mgid = wire_gid_make(0, 0xffff0a020304ull);
	row(78, "an IPv4 host", hca_mcast_attach(f.ctx, qpn, &mgid, 0) == -EINVAL);
	for (i = 0; i < 300; i++) {
		mgid = wire_gid_make(0xff12401bffff0000ull, i);
		hca_mcast_attach(f.ctx, qpn2, &mgid, 0xc001);
	}
	row(75, "many groups", members(1, &mgid) == 1 && f.hca->mcast_groups == 300);
	for (i = 0; i < 300; i++) {
		mgid = wire_gid_make(0xff12401bffff0000ull, i);
		hca_mcast_detach(f.ctx, qpn2, &mgid, 0xc001);
	}
	row(76, "none", f.hca->mcast_groups == 0 && !hca_soft_wq_destroy(ud2));
	hca_soft_wq_destroy(rc);
}

static void check_events(void)
{
	static const enum hca_event_type types[] = { HCA_EVENT_PORT_ACTIVE, HCA_EVENT_PORT_ERR,
						     HCA_EVENT_LID_CHANGE,  HCA_EVENT_PKEY_CHANGE,
						     HCA_EVENT_SM_CHANGE,   HCA_EVENT_CLIENT_REREGISTER,
						     HCA_EVENT_GID_CHANGE };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		memset(f.events, 0, sizeof(f.events));
		f.port[1].data.event(f.port[1].data.ctx, i);
		row(80 + (int)i, "a port's event", f.events[types[i]] == 1 && f.last.number == 2 && !f.last.fe);
	}
	f.port[1].data.event(f.port[1].data.ctx, 99);
	row(90, "an unknown one is dropped", f.last.type == HCA_EVENT_GID_CHANGE);
	row(91, "each counter has a name", hca_counter_name(HCA_COUNTERS - 1) && !hca_counter_name(HCA_COUNTERS));
	row(92, "no such port, no counter",
	    hca_counter(f.hca, 3, 0) == 0 && !hca_port(f.hca, 3) && !hca_port(f.hca, 0));
}

/* Destruction of a context with objects of all kinds in use. */
static void check_end(void)
{
	struct wire_gid mgid = wire_gid_make(0xff12401bffff0000ull, 1);
	struct hca_av av = { .dlid = 2, .port = 1 };
	struct hca_soft_wq *srq, *wq;
	struct hca_cqe cqe = { .token = 1 };
	struct hca_send_wr bind;
	u32 lkey, rkey, mw, ahn, qpn, events;

	wq = fixture_qp(&f, HCA_QPT_UD, cq, 0);
	qpn = hca_soft_wq_number(wq);
	hca_soft_srq_create(f.ctx, f.pdn, &srq_attr, &srq);
	hca_ah_create(f.ctx, f.pdn, &av, &ahn);
	hca_mr_reg(f.ctx, f.pdn, 0, 0, 16, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND, &lkey, &rkey);
	hca_mw_alloc(f.ctx, f.pdn, 2, &mw);
	memset(&bind, 0, sizeof(bind));
	bind.mw_rkey = mw;
	bind.mr_lkey = lkey;
	bind.bind_len = 16;
	bind.access = HCA_ACCESS_REMOTE_READ;
	row(100, "a window", !hca_mw_bind(hca_qp_lookup(f.hca, qpn), &bind));
	fixture_move(&f, wq, HCA_QPS_RTS);
	hca_mcast_attach(f.ctx, qpn, &mgid, 0xc001);
	hca_complete_send(hca_qp_lookup(f.hca, qpn), &cqe, HCA_WR_SEND);
	memset(f.events, 0, sizeof(f.events));
	hca_ctx_destroy(f.ctx);
	for (events = 0, ahn = 0; ahn < ARRAY_SIZE(f.events); ahn++)
		events += f.events[ahn];
	row(101, "in silence", events == 0);
	row(102, "with all it had",
	    !f.hca->qps.used && !f.hca->cqs.used && !f.hca->srqs.used && !f.hca->keys.mrs && !f.hca->keys.mws &&
		    f.hca->pds.used == 0 && !f.hca->mcast_groups);
	loop_run_idle(f.loop, 0);
	hca_soft_wq_orphan(wq);
	hca_soft_wq_orphan(srq);
	hca_soft_wq_orphan(ud);
	hca_soft_cq_orphan(cq);
	row(103, "queues are freed after it",
	    !hca_soft_wq_destroy(wq) && !hca_soft_wq_destroy(srq) && !hca_soft_wq_destroy(ud) &&
		    !hca_soft_cq_destroy(cq));
}

/* Objects that rdma(8) lists */

static struct hca_resource listed[8];
static u32 nlisted, list_max;

static bool list_one(void *arg, const struct hca_resource *r)
{
	listed[nlisted++] = *r;
	return nlisted < list_max;
}

static u32 list_of(bool (*each)(const struct hca_ctx *ctx, hca_resource_fn *fn, void *arg), u32 max)
{
	nlisted = 0;
	list_max = max;
	each(f.ctx, list_one, NULL);
	return nlisted;
}

static void check_lists(void)
{
	u32 pdn, lkey, rkey, mw, before = list_of(hca_pd_each, 8), mrs = list_of(hca_mr_each, 8), cqn;

	hca_pd_alloc(f.ctx, &pdn);
	hca_mr_reg(f.ctx, pdn, 0, 0, 16, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_READ, &lkey, &rkey);
	hca_mw_alloc(f.ctx, pdn, 2, &mw);
	row(110, "a PD with its users",
	    list_of(hca_pd_each, 8) == before + 1 && listed[before].pdn == pdn && listed[before].users == 2);
	row(111, "a region, no window",
	    list_of(hca_mr_each, 8) == mrs + 1 && listed[mrs].pdn == pdn && listed[mrs].len == 16);
	row(112, "whose number is not that of its keys", listed[mrs].num != lkey >> 8 || !f.hca->keys.first);
	row(113, "until the reader has enough", list_of(hca_pd_each, 1) == 1);
	cqn = hca_soft_cq_number(cq);
	row(114, "a CQ with its users", hca_cq_resource(f.ctx, cqn).users && !hca_cq_resource(thief, cqn).users);
	hca_mw_free(f.ctx, mw);
	hca_mr_dereg(f.ctx, lkey);
	hca_pd_free(f.ctx, pdn);
	row(115, "destroyed objects", list_of(hca_pd_each, 8) == before && list_of(hca_mr_each, 8) == mrs);
}

int main(void)
{
	fixture_init(&f);
	thief = hca_ctx_create(f.hca, &hca_local_dma, NULL, NULL, NULL);
	hca_soft_cq_create(f.ctx, 16, NULL, NULL, &cq);
	ud = fixture_qp(&f, HCA_QPT_UD, cq, 0);
	check_foreign();
	check_lists();
	check_ah();
	check_qp();
	check_mcast();
	check_events();
	check_end();
	fixture_fini(&f);
	return rows_end();
}
