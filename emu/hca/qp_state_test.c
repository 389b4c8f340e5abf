// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of qp_state.c: every cell of the transition table for each type with each attribute, and the values. */
#include "emu/hca/fixture.h"

#define D   (BIT(HCA_QPT_SMI) | BIT(HCA_QPT_GSI) | BIT(HCA_QPT_UD))
#define U   BIT(HCA_QPT_UD)
#define M   (BIT(HCA_QPT_SMI) | BIT(HCA_QPT_GSI))
#define R   BIT(HCA_QPT_RC)
#define C   BIT(HCA_QPT_UC)
#define ALL (D | R | C)

/* Each attribute has a letter, see bit_of(). */
static const char letters[] = "scnapoqvmtrRdxAiyDGCN";

/* The transitions of the verbs chapter, by type; a cell without a row is forbidden. */
static const struct {
	const char *from_to; /* state letters: 0 RESET, I INIT, R RTR, S RTS, D SQD, E SQE, X ERR */
	u32 types;
	const char *required, *optional;
} cells[] = {
	{ "00", ALL, "", "" },           { "I0", ALL, "", "" },
	{ "R0", ALL, "", "" },           { "S0", ALL, "", "" },
	{ "D0", ALL, "", "" },           { "E0", ALL, "", "" },
	{ "X0", ALL, "", "" },           { "IX", ALL, "", "" },
	{ "RX", ALL, "", "" },           { "SX", ALL, "", "" },
	{ "DX", ALL, "", "" },           { "EX", ALL, "", "" },
	{ "XX", ALL, "", "" },           { "0I", M, "pq", "" },
	{ "0I", U, "poq", "" },          { "0I", R | C, "apo", "" },
	{ "II", M, "", "pq" },           { "II", U, "", "poq" },
	{ "II", R | C, "", "apo" },      { "IR", D, "", "pq" },
	{ "IR", C, "vmdN", "Aap" },      { "IR", R, "vmdNDi", "Aap" },
	{ "RS", D, "y", "cq" },          { "RS", C, "y", "cAaG" },
	{ "RS", R, "trRyx", "cAaGi" },   { "SS", D, "", "cq" },
	{ "SS", C, "", "cAaG" },         { "SS", R, "", "cAaGi" },
	{ "SD", ALL, "", "n" },          { "DS", D, "", "cq" },
	{ "DS", C, "", "cAaG" },         { "DS", R, "", "cAaGi" },
	{ "DD", D, "", "pq" },           { "DD", C, "", "vAapG" },
	{ "DD", R, "", "ovtrRxDAapiG" }, { "ES", D, "", "cq" },
	{ "ES", C, "", "ca" },           { "ES", R, "", "" },
};

static u32 bit_of(char l)
{
	static const struct {
		char l;
		u32 bit;
	} map[] = {
		{ 's', HCA_QP_STATE },
		{ 'c', HCA_QP_CUR_STATE },
		{ 'n', HCA_QP_EN_SQD_ASYNC_NOTIFY },
		{ 'a', HCA_QP_ACCESS_FLAGS },
		{ 'p', HCA_QP_PKEY_INDEX },
		{ 'o', HCA_QP_PORT },
		{ 'q', HCA_QP_QKEY },
		{ 'v', HCA_QP_AV },
		{ 'm', HCA_QP_PATH_MTU },
		{ 't', HCA_QP_TIMEOUT },
		{ 'r', HCA_QP_RETRY_CNT },
		{ 'R', HCA_QP_RNR_RETRY },
		{ 'd', HCA_QP_RQ_PSN },
		{ 'x', HCA_QP_MAX_QP_RD_ATOMIC },
		{ 'A', HCA_QP_ALT_PATH },
		{ 'i', HCA_QP_MIN_RNR_TIMER },
		{ 'y', HCA_QP_SQ_PSN },
		{ 'D', HCA_QP_MAX_DEST_RD_ATOMIC },
		{ 'G', HCA_QP_PATH_MIG_STATE },
		{ 'C', HCA_QP_CAP },
		{ 'N', HCA_QP_DEST_QPN },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].l == l)
			return map[i].bit;
	return 0;
}

static u32 mask_of(const char *s)
{
	u32 m = 0;

	for (; *s; s++)
		m |= bit_of(*s);
	return m;
}

static bool expected(u8 from, u8 to, u32 type, u32 *req, u32 *opt)
{
	static const char states[] = "0IRSDEX";
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cells); i++)
		if (cells[i].from_to[0] == states[from] && cells[i].from_to[1] == states[to] &&
		    (cells[i].types & BIT(type))) {
			*req = mask_of(cells[i].required);
			*opt = mask_of(cells[i].optional);
			return true;
		}
	return false;
}

/* Checks one cell for one type: no attributes, each one added to the required ones, each required one omitted. */
static void check_cell(u8 from, u8 to, u32 type)
{
	u32 req = 0, opt = 0, i;
	bool valid = expected(from, to, type, &req, &opt);
	int n = 1000 + from * 100 + to * 10 + (int)type;

	row(n, "the transition", hca_qp_transition_ok(type, from, to, HCA_QP_STATE | req) == valid);
	for (i = 1; letters[i]; i++) {
		u32 bit = bit_of(letters[i]);

		row(n, "an attribute more",
		    hca_qp_transition_ok(type, from, to, HCA_QP_STATE | req | bit) == (valid && ((req | opt) & bit)));
		if (req & bit)
			row(n, "a required one missing",
			    !hca_qp_transition_ok(type, from, to, HCA_QP_STATE | (req & ~bit)));
	}
}

static void check_cells(void)
{
	u8 from, to;
	u32 type;

	for (from = 0; from <= HCA_QPS_ERR; from++)
		for (to = 0; to <= HCA_QPS_ERR; to++)
			for (type = 0; type <= HCA_QPT_UD; type++)
				check_cell(from, to, type);
	row(1, "no such state", !hca_qp_transition_ok(HCA_QPT_RC, 0, 7, HCA_QP_STATE));
	row(2, "no such state", !hca_qp_transition_ok(HCA_QPT_RC, 7, 0, HCA_QP_STATE));
	row(3, "no such type", !hca_qp_transition_ok(7, 0, 0, HCA_QP_STATE));
	row(4, "no such attribute", !hca_qp_transition_ok(HCA_QPT_RC, 0, 0, HCA_QP_STATE | 1u << 24));
}

/* Modifies one attribute in @state. */
static const struct {
	int n;
	enum hca_qp_state state;
	u32 mask;
	u16 off, size;
	u32 value;
	int err;
} values[] = {
#define F(f) offsetof(struct hca_qp_attr, f), sizeof(((struct hca_qp_attr *)0)->f)
	{ 10, HCA_QPS_INIT, HCA_QP_PORT, F(port), 2, 0 },
	{ 11, HCA_QPS_INIT, HCA_QP_PORT, F(port), 0, -EINVAL },
	{ 12, HCA_QPS_INIT, HCA_QP_PORT, F(port), 3, -EINVAL },
	{ 13, HCA_QPS_INIT, HCA_QP_PKEY_INDEX, F(pkey_index), 3, 0 },
	{ 14, HCA_QPS_INIT, HCA_QP_PKEY_INDEX, F(pkey_index), 4, -EINVAL },
	{ 15, HCA_QPS_INIT, HCA_QP_ACCESS_FLAGS, F(access), 0xf, 0 },
	{ 16, HCA_QPS_INIT, HCA_QP_ACCESS_FLAGS, F(access), 1u << 31, -EINVAL },
	{ 17, HCA_QPS_SQD, HCA_QP_TIMEOUT, F(timeout), 31, 0 },
	{ 18, HCA_QPS_SQD, HCA_QP_TIMEOUT, F(timeout), 32, -EINVAL },
	{ 19, HCA_QPS_SQD, HCA_QP_RETRY_CNT, F(retry_cnt), 8, -EINVAL },
	{ 20, HCA_QPS_SQD, HCA_QP_RNR_RETRY, F(rnr_retry), 8, -EINVAL },
	{ 21, HCA_QPS_SQD, HCA_QP_MIN_RNR_TIMER, F(min_rnr_timer), 31, 0 },
	{ 22, HCA_QPS_SQD, HCA_QP_MIN_RNR_TIMER, F(min_rnr_timer), 32, -EINVAL },
	{ 23, HCA_QPS_SQD, HCA_QP_MAX_QP_RD_ATOMIC, F(max_rd_atomic), 128, 0 },
	{ 24, HCA_QPS_SQD, HCA_QP_MAX_QP_RD_ATOMIC, F(max_rd_atomic), 129, -EINVAL },
	{ 25, HCA_QPS_SQD, HCA_QP_MAX_DEST_RD_ATOMIC, F(max_dest_rd_atomic), 128, 0 },
	{ 26, HCA_QPS_SQD, HCA_QP_MAX_DEST_RD_ATOMIC, F(max_dest_rd_atomic), 129, -EINVAL },
	{ 27, HCA_QPS_SQD, HCA_QP_AV, F(av.sl), 15, 0 },
	{ 28, HCA_QPS_SQD, HCA_QP_AV, F(av.sl), 16, -EINVAL },
	{ 29, HCA_QPS_SQD, HCA_QP_AV, F(av.dlid), 0xbfff, 0 },
	{ 30, HCA_QPS_SQD, HCA_QP_AV, F(av.dlid), 0xc000, -EINVAL },
	{ 31, HCA_QPS_SQD, HCA_QP_AV, F(av.port), 3, -EINVAL },
	{ 32, HCA_QPS_SQD, HCA_QP_AV, F(av.grh), 1, 0 },
	{ 33, HCA_QPS_SQD, HCA_QP_AV, F(av.static_rate), 1, -EINVAL },
	{ 34, HCA_QPS_SQD, HCA_QP_AV, F(av.static_rate), 2, 0 },
	{ 35, HCA_QPS_SQD, HCA_QP_AV, F(av.src_path_bits), 128, -EINVAL },
	{ 36, HCA_QPS_SQD, HCA_QP_ALT_PATH, F(alt_port), 2, -EINVAL }, /* differs from the address vector's port */
	{ 37, HCA_QPS_SQD, HCA_QP_ALT_PATH, F(alt_port), 3, -EINVAL },
	{ 38, HCA_QPS_SQD, HCA_QP_ALT_PATH, F(alt_pkey_index), 4, -EINVAL },
	{ 39, HCA_QPS_SQD, HCA_QP_ALT_PATH, F(alt_timeout), 32, -EINVAL },
	{ 40, HCA_QPS_SQD, HCA_QP_ALT_PATH, F(alt_timeout), 31, 0 },
	{ 41, HCA_QPS_RTS, HCA_QP_PATH_MIG_STATE, F(path_mig_state), HCA_MIG_MIGRATED, 0 },
	{ 42, HCA_QPS_RTS, HCA_QP_PATH_MIG_STATE, F(path_mig_state), HCA_MIG_REARM,
	  -EINVAL }, /* without alternate path */
	{ 43, HCA_QPS_RTS, HCA_QP_PATH_MIG_STATE | HCA_QP_ALT_PATH, F(path_mig_state), HCA_MIG_REARM, 0 },
	{ 44, HCA_QPS_RTS, HCA_QP_PATH_MIG_STATE | HCA_QP_ALT_PATH, F(path_mig_state), HCA_MIG_ARMED, -EINVAL },
	{ 45, HCA_QPS_RTS, HCA_QP_CUR_STATE, F(cur_state), HCA_QPS_RTS, 0 },
	{ 46, HCA_QPS_RTS, HCA_QP_CUR_STATE, F(cur_state), HCA_QPS_SQE, -EINVAL },
};

static void check_values(struct fixture *f, struct hca_soft_wq *wq)
{
	struct hca_qp_attr a, q;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		u32 qpn = hca_soft_wq_number(wq);

		row(values[i].n, "the way there", !fixture_move(f, wq, values[i].state));
		a = fixture_attr();
		memcpy((u8 *)&a + values[i].off, &values[i].value, values[i].size);
		row(values[i].n, "the value", hca_qp_modify(f->ctx, qpn, &a, values[i].mask) == values[i].err);
		hca_qp_query(f->ctx, qpn, &q);
		if (!values[i].err && values[i].mask != HCA_QP_CUR_STATE)
			row(values[i].n, "is kept",
			    !memcmp((u8 *)&q + values[i].off, &values[i].value, values[i].size));
	}
}

/* Transition to RTR with one attribute changed. */
static int to_rtr(struct fixture *f, struct hca_soft_wq *wq, u8 mtu, u32 dest, u32 psn, const struct hca_av *av)
{
	struct hca_qp_attr a = fixture_attr();

	fixture_move(f, wq, HCA_QPS_INIT);
	a.path_mtu = mtu;
	a.dest_qpn = dest;
	a.rq_psn = psn;
	a.av = *av;
	return bring_to(hca_qp_lookup(f->hca, hca_soft_wq_number(wq)), a, HCA_QPS_RTR);
}

static void check_rtr(struct fixture *f, struct hca_soft_wq *wq)
{
	struct hca_av av = { .dlid = 2, .port = 1 }, grh = { .dlid = 2, .port = 1, .grh = true, .sgid_index = 1 };
	struct hca_qp_attr q;

	row(60, "MTU of the port", !to_rtr(f, wq, 4, 1, 0, &av));
	row(61, "MTU above the port's", to_rtr(f, wq, 5, 1, 0, &av) == -EINVAL);
	row(62, "MTU code 0", to_rtr(f, wq, 0, 1, 0, &av) == -EINVAL);
	row(63, "MTU code 6", to_rtr(f, wq, 6, 1, 0, &av) == -EINVAL);
	row(64, "QPN of 24 bits", !to_rtr(f, wq, 1, 0xffffff, 0, &av));
	row(65, "QPN of 25 bits", to_rtr(f, wq, 1, 0x1000000, 0, &av) == -EINVAL);
	row(66, "an empty GID", to_rtr(f, wq, 1, 1, 0, &grh) == -EINVAL);
	grh.sgid_index = 2;
	row(67, "a GID past the table", to_rtr(f, wq, 1, 1, 0, &grh) == -EINVAL);
	grh.sgid_index = 0;
	row(68, "a GID of the port", !to_rtr(f, wq, 1, 1, 0, &grh));
	grh.flow_label = ~0u;
	row(69, "a flow label is taken by its 20 bits", !to_rtr(f, wq, 1, 1, 0, &grh));
	hca_qp_query(f->ctx, hca_soft_wq_number(wq), &q);
	row(73, "a flow label is taken by its 20 bits", q.av.flow_label == 0xfffff);
	grh.dlid = 0xc000;
	row(74, "a multicast LID", to_rtr(f, wq, 1, 1, 0, &grh) == -EINVAL);
	f->port[0].attr.link_layer = WIRE_LINK_ETHERNET;
	grh.src_path_bits = 128;
	row(75, "an Ethernet port ignores LID and path bits", !to_rtr(f, wq, 1, 1, 0, &grh));
	hca_qp_query(f->ctx, hca_soft_wq_number(wq), &q);
	row(76, "an Ethernet port ignores LID and path bits", !q.av.dlid && !q.av.src_path_bits);
	f->port[0].attr.link_layer = WIRE_LINK_IB;
	row(70, "a PSN is taken by its 24 bits", !to_rtr(f, wq, 1, 1, 0xff000001, &av));
	hca_qp_query(f->ctx, hca_soft_wq_number(wq), &q);
	row(71, "a PSN is taken by its 24 bits", q.rq_psn == 1 && q.state == HCA_QPS_RTR && q.cur_state == HCA_QPS_RTR);
	fixture_move(f, wq, HCA_QPS_RESET);
	hca_qp_query(f->ctx, hca_soft_wq_number(wq), &q);
	row(72, "RESET clears the attributes", q.rq_psn == 0 && q.dest_qpn == 0 && q.state == HCA_QPS_RESET);
}

/* hca_qp_load_alternate() accepts only the owner's queue pair. */
static void check_alternate(struct fixture *f, struct hca_soft_wq *wq)
{
	struct hca_ctx *other = hca_ctx_create(f->hca, &hca_local_dma, NULL, NULL, NULL);
	u64 own = hca_ctx_serial(f->ctx), stranger = hca_ctx_serial(other);
	struct hca_av av = { .dlid = 3, .port = 1 };
	u32 qpn = hca_soft_wq_number(wq);
	struct hca_qp_attr q;

	fixture_move(f, wq, HCA_QPS_RTS);
	row(100, "owners differ", own && stranger && own != stranger && hca_qp_owner(f->hca, qpn) == own);
	row(101, "no queue pair, no owner", hca_qp_owner(f->hca, 0xfffff0) == 0);
	row(102, "an alternate path by a stranger",
	    hca_qp_load_alternate(f->hca, stranger, qpn, &av, 0, 14) == -EINVAL);
	row(103, "alternate path by another owner", hca_qp_load_alternate(f->hca, 0, qpn, &av, 0, 14) == -EINVAL);
	hca_qp_query(f->ctx, qpn, &q);
	row(104, "nothing was loaded", q.alt_av.dlid == 0);
	row(105, "by the owner", !hca_qp_load_alternate(f->hca, own, qpn, &av, 0, 14));
	hca_qp_query(f->ctx, qpn, &q);
	row(106, "it is loaded", q.alt_av.dlid == 3);
	hca_ctx_destroy(other);
}

static void iwarp_modified(struct hca_qp *qp, enum hca_qp_state from, u32 mask) {}

/* What rdma_cm returns for iWARP: the port and access flags for INIT and RTR, and the port alone for RTS. */
static void check_iwarp(struct fixture *f, struct hca_soft_wq *wq)
{
	static const struct hca_iw_ops connections;
	static const struct hca_transport iwarp = { .iw = &connections, .modified = iwarp_modified };
	static const struct {
		const char *name;
		enum hca_qp_state to, then;
		u32 mask;
		int want;
	} rows[] = {
		{ "nothing for RTS", HCA_QPS_RTS, HCA_QPS_RESET, HCA_QP_PORT, 0 },
		{ "INIT without a P_Key", HCA_QPS_INIT, HCA_QPS_INIT, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS,
		  0 },
		{ "and with one", HCA_QPS_INIT, HCA_QPS_INIT,
		  HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS | HCA_QP_PKEY_INDEX, 0 },
		{ "RTR without a path", HCA_QPS_RTR, HCA_QPS_RTR, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS, 0 },
		{ "RTR again", HCA_QPS_RTR, HCA_QPS_RTR, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS, 0 },
		{ "nothing for RTS, in RTR", HCA_QPS_RTS, HCA_QPS_RTR, HCA_QP_PORT, 0 },
		{ "RTS without a connection", HCA_QPS_RTS, HCA_QPS_RTR, HCA_QP_STATE, -EINVAL },
	};
	struct hca_qp *qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	size_t i;

	f->hca->transport = &iwarp;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hca_qp_attr a = { .state = rows[i].to, .port = 1, .access = HCA_ACCESS_REMOTE_WRITE };
		int err = hca_qp_modify(f->ctx, qp->qpn, &a, rows[i].mask);

		row(110, rows[i].name, err == rows[i].want && qp->state == rows[i].then);
	}
	hca_qp_establish(qp, 1, 1);
	row(111, "the connection gives access rights",
	    qp->state == HCA_QPS_RTS && qp->attr.access == (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ));
	f->hca->transport = NULL;
}

int main(void)
{
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct fixture f;
	u32 type, state;

	check_cells();
	fixture_init(&f);
	hca_soft_cq_create(f.ctx, 64, NULL, NULL, &cq);
	for (type = 0; type <= HCA_QPT_UD; type++) {
		wq = fixture_qp(&f, type, cq, 0);
		for (state = 0; state <= HCA_QPS_ERR; state++)
			row(80 + (int)state, "each state is reached",
			    !fixture_move(&f, wq, state) &&
				    hca_qp_lookup(f.hca, hca_soft_wq_number(wq))->state == state);
		hca_soft_wq_destroy(wq);
	}
	wq = fixture_qp(&f, HCA_QPT_RC, cq, 0);
	check_values(&f, wq);
	check_rtr(&f, wq);
	check_alternate(&f, wq);
	hca_soft_wq_destroy(wq);
	wq = fixture_qp(&f, HCA_QPT_RC, cq, 0);
	check_iwarp(&f, wq);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
	fixture_fini(&f);
	return rows_end();
}
