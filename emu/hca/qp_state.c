// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The state machine of queue pairs (10.3.1) and modify. One table has the required and optional attributes of each
 * transition (11.2.5, as in Linux); another checks each attribute's value.
 */
#include <errno.h>

#include "emu/hca/hca_internal.h"
#include "emu/wire/field.h"

#define PKEY   HCA_QP_PKEY_INDEX
#define PORT   HCA_QP_PORT
#define QKEY   HCA_QP_QKEY
#define ACC    HCA_QP_ACCESS_FLAGS
#define CUR    HCA_QP_CUR_STATE
#define ALT    HCA_QP_ALT_PATH
#define MIG    HCA_QP_PATH_MIG_STATE
#define RNRT   HCA_QP_MIN_RNR_TIMER
#define NOTIFY HCA_QP_EN_SQD_ASYNC_NOTIFY

#define QPS   (HCA_QPS_ERR + 1)
#define TYPES (HCA_QPT_UD + 1)

struct transition {
	bool valid;
	u32 req[TYPES], opt[TYPES];
};

/* The same for the datagram types; the port of SMI and GSI QPs is fixed at creation. */
#define DATAGRAM(field, mask) .field[HCA_QPT_SMI] = (mask), .field[HCA_QPT_GSI] = (mask), .field[HCA_QPT_UD] = (mask)

static const struct transition transitions[QPS][QPS] = {
	[HCA_QPS_RESET] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_INIT] = {
			.valid = true,
			.req = {
				[HCA_QPT_SMI] = PKEY | QKEY,
				[HCA_QPT_GSI] = PKEY | QKEY,
				[HCA_QPT_UD] = PKEY | PORT | QKEY,
				[HCA_QPT_UC] = PKEY | PORT | ACC,
				[HCA_QPT_RC] = PKEY | PORT | ACC,
			},
		},
	},
	[HCA_QPS_INIT] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
		[HCA_QPS_INIT] = {
			.valid = true,
			.opt = {
				[HCA_QPT_SMI] = PKEY | QKEY,
				[HCA_QPT_GSI] = PKEY | QKEY,
				[HCA_QPT_UD] = PKEY | PORT | QKEY,
				[HCA_QPT_UC] = PKEY | PORT | ACC,
				[HCA_QPT_RC] = PKEY | PORT | ACC,
			},
		},
		[HCA_QPS_RTR] = {
			.valid = true,
			.req[HCA_QPT_UC] = HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN,
			.req[HCA_QPT_RC] = HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
					   HCA_QP_MAX_DEST_RD_ATOMIC | RNRT,
			DATAGRAM(opt, PKEY | QKEY),
			.opt[HCA_QPT_UC] = ALT | ACC | PKEY,
			.opt[HCA_QPT_RC] = ALT | ACC | PKEY,
		},
	},
	[HCA_QPS_RTR] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
		[HCA_QPS_RTS] = {
			.valid = true,
			DATAGRAM(req, HCA_QP_SQ_PSN),
			.req[HCA_QPT_UC] = HCA_QP_SQ_PSN,
			.req[HCA_QPT_RC] = HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_SQ_PSN |
					   HCA_QP_MAX_QP_RD_ATOMIC,
			DATAGRAM(opt, CUR | QKEY),
			.opt[HCA_QPT_UC] = CUR | ALT | ACC | MIG,
			.opt[HCA_QPT_RC] = CUR | ALT | ACC | MIG | RNRT,
		},
	},
	[HCA_QPS_RTS] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
		[HCA_QPS_RTS] = {
			.valid = true,
			DATAGRAM(opt, CUR | QKEY),
			.opt[HCA_QPT_UC] = CUR | ACC | ALT | MIG,
			.opt[HCA_QPT_RC] = CUR | ACC | ALT | MIG | RNRT,
		},
		[HCA_QPS_SQD] = {
			.valid = true,
			DATAGRAM(opt, NOTIFY),
			.opt[HCA_QPT_UC] = NOTIFY,
			.opt[HCA_QPT_RC] = NOTIFY,
		},
	},
	[HCA_QPS_SQD] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
		[HCA_QPS_RTS] = {
			.valid = true,
			DATAGRAM(opt, CUR | QKEY),
			.opt[HCA_QPT_UC] = CUR | ALT | ACC | MIG,
			.opt[HCA_QPT_RC] = CUR | ALT | ACC | MIG | RNRT,
		},
		[HCA_QPS_SQD] = {
			.valid = true,
			DATAGRAM(opt, PKEY | QKEY),
			.opt[HCA_QPT_UC] = HCA_QP_AV | ALT | ACC | PKEY | MIG,
			.opt[HCA_QPT_RC] = PORT | HCA_QP_AV | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY |
					   HCA_QP_MAX_QP_RD_ATOMIC | HCA_QP_MAX_DEST_RD_ATOMIC | ALT | ACC | PKEY |
					   RNRT | MIG,
		},
	},
	[HCA_QPS_SQE] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
		[HCA_QPS_RTS] = {
			.valid = true,
			DATAGRAM(opt, CUR | QKEY),
			.opt[HCA_QPT_UC] = CUR | ACC,
		},
	},
	[HCA_QPS_ERR] = {
		[HCA_QPS_RESET] = { .valid = true },
		[HCA_QPS_ERR] = { .valid = true },
	},
};

bool hca_qp_transition_ok(enum hca_qp_type type, u8 from, u8 to, u32 mask)
{
	const struct transition *t;
	u32 req, opt;

	if (from >= QPS || to >= QPS || !hca_qp_type_valid(type))
		return false;
	if ((mask & HCA_QP_CUR_STATE) && (from < HCA_QPS_RTR || from > HCA_QPS_SQE))
		return false;
	t = &transitions[from][to];
	/* XRC is RC without a responder, or without a requester: the attributes of the
	 * missing one are optional (annex A14) */
	req = t->req[type >= HCA_QPT_XRC_INI ? HCA_QPT_RC : type];
	opt = t->opt[type >= HCA_QPT_XRC_INI ? HCA_QPT_RC : type] | req;
	if (type == HCA_QPT_XRC_INI)
		req &= ~(u32)(HCA_QP_MAX_DEST_RD_ATOMIC | RNRT);
	else if (type == HCA_QPT_XRC_TGT)
		req &= ~(u32)(HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC);
	return t->valid && (mask & req) == req && !(mask & ~(opt | HCA_QP_STATE));
}

/* Checks an address vector: field limits (12.7), GID index of the port. DLID and path bits are
 * ignored on Ethernet, as in ib_core. */
int hca_av_check(const struct hca *hca, const struct hca_av *av, bool multicast_ok)
{
	const struct wire_port_attr *port;
	bool ib;

	if (!hca_port_valid(hca, av->port) || av->sl > 15)
		return -EINVAL;
	if (av->static_rate && !wire_rate_mbps(av->static_rate))
		return -EINVAL;
	port = hca_port_attr(hca, av->port);
	ib = port->link_layer == WIRE_LINK_IB;
	if (ib && (av->src_path_bits > 127 || (!multicast_ok && wire_lid_is_multicast(av->dlid))))
		return -EINVAL;
	if (!av->grh)
		return ib ? 0 : -EINVAL;
	if (av->sgid_index >= min(port->gids, WIRE_PORT_GIDS))
		return -EINVAL;
	return wire_gid_is_zero(&port->gid[av->sgid_index]) ? -EINVAL : 0;
}

void hca_av_normalize(const struct hca *hca, struct hca_av *av)
{
	av->flow_label &= 0xfffff;
	if (hca_port_attr(hca, av->port)->link_layer != WIRE_LINK_IB)
		av->dlid = av->src_path_bits = 0;
}

/* The port that the QP will have after the modify. */
static u8 port_after(const struct hca_qp *qp, const struct hca_qp_attr *attr, u32 mask)
{
	return mask & HCA_QP_PORT ? attr->port : qp->attr.port;
}

static bool pkey_index_ok(const struct hca *hca, u8 port, u16 index)
{
	return hca_port_valid(hca, port) && index < hca_port_attr(hca, port)->pkeys;
}

/* On-demand paging is of regions, but programs pass the rights of their regions, and the kernel accepts it. */
static bool check_access(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	const u32 known = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ |
			  HCA_ACCESS_REMOTE_ATOMIC | HCA_ACCESS_MW_BIND | HCA_ACCESS_FLUSH_GLOBAL |
			  HCA_ACCESS_FLUSH_PERSISTENT | HCA_ACCESS_ON_DEMAND | 0x3ff00000;

	return !(a->access & ~known);
}

static bool check_pkey(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return pkey_index_ok(qp->hca, port_after(qp, a, mask), a->pkey_index);
}

static bool check_port(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return hca_port_valid(qp->hca, a->port);
}

static bool check_av(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return !hca_av_check(qp->hca, &a->av, false);
}

static bool check_mtu(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	u8 port = port_after(qp, a, mask);

	return wire_mtu_bytes(a->path_mtu) && hca_port_valid(qp->hca, port) &&
	       a->path_mtu <= hca_port_attr(qp->hca, port)->mtu_cap;
}

static bool check_rd_atomic(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return a->max_rd_atomic <= qp->hca->caps.max_qp_init_rd_atom;
}

static bool check_dest_rd_atomic(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return a->max_dest_rd_atomic <= qp->hca->caps.max_qp_rd_atom;
}

static bool check_alt(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	return pkey_index_ok(qp->hca, a->alt_port, a->alt_pkey_index) && a->alt_timeout <= 31 &&
	       !hca_av_check(qp->hca, &a->alt_av, false) && a->alt_av.port == a->alt_port;
}

/* A consumer sets MIGRATED or REARM; only the CI sets ARMED (17.2.8). REARM requires an alternate path. */
static bool check_mig(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	bool alt = (mask & HCA_QP_ALT_PATH) || container_of(qp, const struct hca_qp_priv, qp)->alt_loaded;

	return a->path_mig_state == HCA_MIG_MIGRATED || (a->path_mig_state == HCA_MIG_REARM && alt);
}

/* One row per attribute: the check of its value, and the bytes of struct hca_qp_attr that it covers. */
#define FIELD(f)                                                                      \
	{                                                                             \
		offsetof(struct hca_qp_attr, f), sizeof(((struct hca_qp_attr *)0)->f) \
	}
static const struct {
	u32 bit;
	bool (*ok)(const struct hca_qp *qp, const struct hca_qp_attr *a, u32 mask);
	struct {
		u16 off, size;
	} field[4];
	u32 max; /* maximum of the field, if it is one number; 0: any, or as ok() says */
} attributes[] = {
	{ HCA_QP_EN_SQD_ASYNC_NOTIFY, NULL, { FIELD(en_sqd_async_notify) } },
	{ HCA_QP_ACCESS_FLAGS, check_access, { FIELD(access) } },
	{ HCA_QP_PORT, check_port, { FIELD(port) } },
	{ HCA_QP_PKEY_INDEX, check_pkey, { FIELD(pkey_index) } },
	{ HCA_QP_QKEY, NULL, { FIELD(qkey) } },
	{ HCA_QP_AV, check_av, { FIELD(av) } },
	{ HCA_QP_PATH_MTU, check_mtu, { FIELD(path_mtu) } },
	{ HCA_QP_TIMEOUT, NULL, { FIELD(timeout) }, 31 },
	{ HCA_QP_RETRY_CNT, NULL, { FIELD(retry_cnt) }, 7 },
	{ HCA_QP_RNR_RETRY, NULL, { FIELD(rnr_retry) }, 7 },
	{ HCA_QP_RQ_PSN, NULL, { FIELD(rq_psn) } },
	{ HCA_QP_MAX_QP_RD_ATOMIC, check_rd_atomic, { FIELD(max_rd_atomic) } },
	{ HCA_QP_ALT_PATH, check_alt, { FIELD(alt_av), FIELD(alt_pkey_index), FIELD(alt_port), FIELD(alt_timeout) } },
	{ HCA_QP_MIN_RNR_TIMER, NULL, { FIELD(min_rnr_timer) }, 31 },
	{ HCA_QP_SQ_PSN, NULL, { FIELD(sq_psn) } },
	{ HCA_QP_MAX_DEST_RD_ATOMIC, check_dest_rd_atomic, { FIELD(max_dest_rd_atomic) } },
	{ HCA_QP_PATH_MIG_STATE, check_mig, { FIELD(path_mig_state) } },
	{ HCA_QP_DEST_QPN, NULL, { FIELD(dest_qpn) }, 0xffffff },
};

static int check_values(const struct hca_qp *qp, const struct hca_qp_attr *attr, u32 mask)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(attributes); i++) {
		const u8 *value = (const u8 *)attr + attributes[i].field[0].off;

		if (!(mask & attributes[i].bit))
			continue;
		if (attributes[i].ok && !attributes[i].ok(qp, attr, mask))
			return -EINVAL;
		if (attributes[i].max && wire_member_load(value, attributes[i].field[0].size) > attributes[i].max)
			return -EINVAL;
	}
	return 0;
}

static void copy_values(struct hca_qp *qp, const struct hca_qp_attr *attr, u32 mask)
{
	u32 i, f;

	for (i = 0; i < ARRAY_SIZE(attributes); i++) {
		if (!(mask & attributes[i].bit))
			continue;
		for (f = 0; f < ARRAY_SIZE(attributes[i].field) && attributes[i].field[f].size; f++)
			memcpy((u8 *)&qp->attr + attributes[i].field[f].off,
			       (const u8 *)attr + attributes[i].field[f].off, attributes[i].field[f].size);
	}
	qp->attr.rq_psn &= 0xffffff;
	qp->attr.sq_psn &= 0xffffff;
	if (mask & HCA_QP_AV)
		hca_av_normalize(qp->hca, &qp->attr.av);
	if (!(mask & HCA_QP_ALT_PATH))
		return;
	hca_av_normalize(qp->hca, &qp->attr.alt_av);
	hca_qp_priv(qp)->alt_loaded = true;
}

static void qp_error_list_add(struct hca_qp *qp)
{
	if (list_empty(&qp->in_error))
		list_add(&qp->ctx->in_error, &qp->in_error);
}

/* Restores the attributes of creation; the front end drops posted requests. */
static void qp_reset(struct hca_qp *qp)
{
	u8 port = qp->type <= HCA_QPT_GSI ? qp->attr.port : 0;

	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.port = port;
	hca_qp_priv(qp)->alt_loaded = false;
	hca_mw_unbind_qp(qp);
	list_del(&qp->in_error);
}

static void enter_state(struct hca_qp *qp, enum hca_qp_state to, u32 mask)
{
	enum hca_qp_state from = qp->state;

	qp->state = to;
	qp->attr.state = to;
	if (to == HCA_QPS_RESET)
		qp_reset(qp);
	if (to == HCA_QPS_ERR)
		qp_error_list_add(qp);
	if (qp->hca->transport)
		qp->hca->transport->modified(qp, from, mask);
	if (to == HCA_QPS_RESET)
		hca_page_faults_forget(qp);
	if (to == HCA_QPS_RESET && qp->ops->reset)
		qp->ops->reset(qp->fe);
	if (to == HCA_QPS_ERR)
		hca_qp_flush(qp);
}

void hca_qp_migrate(struct hca_qp *qp)
{
	struct hca_qp_attr *a = &qp->attr;

	a->av = a->alt_av;
	a->port = a->alt_port ? a->alt_port : a->port;
	a->pkey_index = a->alt_pkey_index;
	a->timeout = a->alt_timeout;
	a->path_mig_state = HCA_MIG_MIGRATED;
	hca_qp_event(qp, HCA_EVENT_PATH_MIG);
}

/* A consumer that sets MIGRATED in state ARMED requests the migration (17.2.8); in REARM it withdraws its REARM. */
static bool requests_migration(const struct hca_qp *qp, const struct hca_qp_attr *attr, u32 mask)
{
	return mask & HCA_QP_PATH_MIG_STATE && attr->path_mig_state == HCA_MIG_MIGRATED &&
	       qp->attr.path_mig_state == HCA_MIG_ARMED && !(mask & HCA_QP_AV);
}

/*
 * An iWARP queue pair that is not connected needs no attributes: its connection sets them (RFC 5040, 5044). Those that
 * rdma_cm returns for it are the port and the access flags.
 */
static bool transition_ok(const struct hca_qp *qp, enum hca_qp_state to, u32 mask)
{
	const u32 known = HCA_QP_STATE | PORT | ACC;

	if (hca_iw(qp->hca) && mask == PORT)
		return true;
	if (hca_iw(qp->hca) && !(mask & ~known) && qp->state <= HCA_QPS_RTR &&
	    (to == HCA_QPS_INIT || to == HCA_QPS_RTR))
		return transitions[qp->state][to].valid || qp->state == to;
	return hca_qp_transition_ok(qp->type, qp->state, to, mask);
}

int hca_qp_modify(struct hca_ctx *ctx, u32 qpn, const struct hca_qp_attr *attr, u32 mask)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);
	enum hca_qp_state to;
	bool migrate;

	if (!qp)
		return -EINVAL;
	if ((mask & HCA_QP_CUR_STATE) && attr->cur_state != qp->state)
		return -EINVAL;
	to = mask & HCA_QP_STATE ? attr->state : qp->state;
	if (!transition_ok(qp, to, mask) || check_values(qp, attr, mask))
		return -EINVAL;
	migrate = requests_migration(qp, attr, mask);
	copy_values(qp, attr, mask);
	if (migrate)
		hca_qp_migrate(qp);
	if (to == HCA_QPS_SQD && !(mask & HCA_QP_EN_SQD_ASYNC_NOTIFY) && qp->state != to)
		qp->attr.en_sqd_async_notify = false; /* must be requested each time (10.3.1) */
	enter_state(qp, to, mask);
	return 0;
}

int hca_qp_load_alternate(struct hca *hca, u64 owner, u32 qpn, const struct hca_av *av, u16 pkey_index, u8 timeout)
{
	const struct hca_qp *qp = hca_qp_lookup(hca, qpn);
	struct hca_qp_attr attr = {
		.path_mig_state = HCA_MIG_REARM,
		.alt_av = *av,
		.alt_port = av->port,
		.alt_pkey_index = pkey_index,
		.alt_timeout = timeout,
	};

	return qp && qp->ctx->serial == owner
		       ? hca_qp_modify(qp->ctx, qpn, &attr, HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE)
		       : -EINVAL;
}

int hca_qp_query(struct hca_ctx *ctx, u32 qpn, struct hca_qp_attr *attr)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (!qp)
		return -EINVAL;
	*attr = qp->attr;
	if (qp->hca->transport && qp->hca->transport->query)
		qp->hca->transport->query(qp, attr);
	attr->state = attr->cur_state = qp->state;
	return 0;
}

void hca_qp_force_error(struct hca_qp *qp)
{
	if (qp->state != HCA_QPS_RESET && qp->state != HCA_QPS_ERR)
		enter_state(qp, HCA_QPS_ERR, HCA_QP_STATE);
}

/* rdma_cm sets no access rights before a connection: as with irdma and siw, those of regions and windows decide. */
void hca_qp_establish(struct hca_qp *qp, u8 ird, u8 ord)
{
	qp->attr.access |= HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ;
	qp->state = HCA_QPS_RTS;
	qp->attr.state = HCA_QPS_RTS;
	qp->attr.max_dest_rd_atomic = ird;
	qp->attr.max_rd_atomic = ord;
	if (qp->ops->established)
		qp->ops->established(qp->fe);
}

void hca_qp_fail(struct hca_qp *qp, enum hca_qp_state to, int event)
{
	if (qp->state == HCA_QPS_RESET)
		return;
	if (qp->state != HCA_QPS_ERR) {
		qp->state = to;
		qp->attr.state = to;
		if (to == HCA_QPS_ERR)
			qp_error_list_add(qp);
	}
	hca_qp_flush(qp);
	if (event >= 0)
		hca_qp_event(qp, event);
}
