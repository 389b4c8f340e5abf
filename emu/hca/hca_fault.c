// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The HCA as a target of the fault engine. Hooks in hca_next_send(), hca_next_recv() and the completion queues apply
 * faults of work requests and completions. A task fails QPs, because the transport may be processing one of them.
 */
#include "emu/hca/hca_fault.h"

#include <errno.h>

#include "emu/hca/hca_internal.h"

enum hca_fault_key {
	F_QUEUE = FAULT_OWN,
	F_STATUS,
	F_OBJECT,
	F_ERRNO,
	F_NAME,
	F_PORT,
	F_PROFILE,
	F_CAPS, /* the first of them */
	F_OPCODE = F_CAPS + 16,
};
#define QUEUES   (FAULT_PICK_KEYS | FAULT_MATCH_KEY(QPN))
#define CHOICE   (QUEUES | BIT_ULL(F_OPCODE))
#define CAP_KEYS ((~0ull << F_PROFILE) & (BIT_ULL(F_OPCODE) - 1))

enum queue {
	QUEUE_BOTH,
	QUEUE_SEND,
	QUEUE_RECV
};

struct hca_fault {
	struct fault ft; /* must be the first member */
	u64 opcodes;     /* bits of send_op() and recv_op() */
	u32 err;
	u8 queue, status, object, event, port, profile;
	struct hca_caps caps;
};

static struct hca_fault *hca_fault(struct fault *ft)
{
	return container_of(ft, struct hca_fault, ft);
}

static const struct hca_fault *hca_fault_const(const struct fault *ft)
{
	return container_of(ft, const struct hca_fault, ft);
}

/* Names of values */

static bool parse_name(void *to, const char *value, const char *const *names, u8 n)
{
	u8 i;

	for (i = 0; i < n; i++)
		if (names[i] && !strcasecmp(names[i], value)) {
			*(u8 *)to = i;
			return true;
		}
	return false;
}

static bool parse_queue(void *to, const char *value)
{
	static const char *const names[] = { "both", "send", "recv" };

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

static bool parse_status(void *to, const char *value)
{
	static const char *const names[] = {
		[HCA_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[HCA_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[HCA_WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
		[HCA_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[HCA_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[HCA_WC_MW_BIND_ERR] = "MW_BIND_ERR",
		[HCA_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[HCA_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[HCA_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[HCA_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[HCA_WC_REM_OP_ERR] = "REM_OP_ERR",
		[HCA_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[HCA_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[HCA_WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
		[HCA_WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
		[HCA_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
		[HCA_WC_INV_EECN_ERR] = "INV_EECN_ERR",
		[HCA_WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
		[HCA_WC_FATAL_ERR] = "FATAL_ERR",
		[HCA_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
		[HCA_WC_GENERAL_ERR] = "GENERAL_ERR",
	};
	static_assert(ARRAY_SIZE(names) == HCA_WC_STATUSES, "one name for each status");

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

static bool parse_object(void *to, const char *value)
{
	static const char *const names[] = { "pd", "mr", "mw", "cq", "srq", "qp", "ah" };
	static_assert(ARRAY_SIZE(names) == HCA_OBJECTS, "one name for each kind of object");

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

static bool parse_errno(void *to, const char *value)
{
	static const struct {
		const char *name;
		u32 err;
	} names[] = { { "ENOMEM", ENOMEM }, { "EINVAL", EINVAL }, { "EPERM", EPERM },   { "EFAULT", EFAULT },
		      { "EBUSY", EBUSY },   { "EIO", EIO },       { "ENOSPC", ENOSPC }, { "EOPNOTSUPP", EOPNOTSUPP } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, value)) {
			*(u32 *)to = names[i].err;
			return true;
		}
	return false;
}

/*
 * Opcodes are bits: of a send, by its work request (so that SEND and SEND with immediate differ, which complete alike),
 * and of a receive, by its completion.
 */
#define OP(opcode)  BIT_ULL(HCA_WR_##opcode)
#define OP_RECV     BIT_ULL(HCA_WR_OPCODES)
#define OP_RECV_IMM BIT_ULL(HCA_WR_OPCODES + 1)
#define OP_RECVS    (OP_RECV | OP_RECV_IMM)

static u64 recv_op(u8 completion)
{
	return completion == HCA_WC_RECV_RDMA_WITH_IMM ? OP_RECV_IMM : OP_RECV;
}

static u64 send_op(u8 opcode)
{
	return opcode < HCA_WR_OPCODES ? BIT_ULL(opcode) : 0;
}

/* Parses a list such as "write,read". */
static bool parse_opcodes(void *to, const char *value)
{
	static const struct {
		const char *name;
		u64 bits;
	} names[] = { { "send", OP(SEND) | OP(SEND_WITH_IMM) | OP(SEND_WITH_INV) },
		      { "send_imm", OP(SEND_WITH_IMM) },
		      { "send_inv", OP(SEND_WITH_INV) },
		      { "write", OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) },
		      { "write_imm", OP(RDMA_WRITE_WITH_IMM) },
		      { "read", OP(RDMA_READ) },
		      { "atomic", OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD) },
		      { "comp_swap", OP(ATOMIC_CMP_AND_SWP) },
		      { "fetch_add", OP(ATOMIC_FETCH_AND_ADD) },
		      { "bind_mw", OP(BIND_MW) },
		      { "local_inv", OP(LOCAL_INV) },
		      { "reg_mr", OP(REG_MR) },
		      { "recv", OP_RECV },
		      { "recv_imm", OP_RECV_IMM } };
	u64 *bits = to;
	size_t n;
	u32 i;

	for (*bits = 0;; value += n + 1) {
		n = strcspn(value, ",");
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (strlen(names[i].name) == n && !strncmp(names[i].name, value, n))
				break;
		if (i == ARRAY_SIZE(names))
			return false;
		*bits |= names[i].bits;
		if (!value[n])
			return true;
	}
}

static bool parse_event(void *to, const char *value)
{
	static const char *const names[] = {
		[HCA_EVENT_QP_FATAL] = "QP_FATAL",           [HCA_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
		[HCA_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR", [HCA_EVENT_DEVICE_FATAL] = "DEVICE_FATAL",
		[HCA_EVENT_PORT_ACTIVE] = "PORT_ACTIVE",     [HCA_EVENT_PORT_ERR] = "PORT_ERR",
		[HCA_EVENT_LID_CHANGE] = "LID_CHANGE",       [HCA_EVENT_PKEY_CHANGE] = "PKEY_CHANGE",
		[HCA_EVENT_SM_CHANGE] = "SM_CHANGE",         [HCA_EVENT_CLIENT_REREGISTER] = "CLIENT_REREGISTER",
		[HCA_EVENT_GID_CHANGE] = "GID_CHANGE",
	};

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

/* Profiles of less capable adapters. A limit that a profile does not name is unchanged. */
#define CAP(member, value)                                                                         \
	{                                                                                          \
		offsetof(struct hca_caps, member), sizeof(((struct hca_caps *)0)->member), (value) \
	}
static const struct {
	const char *name;
	struct {
		size_t at, size;
		u32 value;
	} cap[8];
} profiles[] = {
	{ "no-srq", { CAP(max_srq, 0) } },
	{ "one-read", { CAP(max_qp_rd_atom, 1), CAP(max_qp_init_rd_atom, 1) } },
	{ "few-qps", { CAP(max_qp, 4), CAP(max_cq, 8), CAP(max_mr, 16) } },
	{ "plain",
	  { CAP(max_srq, 0), CAP(max_qp_rd_atom, 1), CAP(max_qp_init_rd_atom, 1), CAP(max_sge, 1), CAP(max_qp_wr, 64),
	    CAP(max_mw, 0), CAP(max_mcast_grp, 0) } },
};

static bool parse_profile(void *to, const char *value)
{
	u8 i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profiles[i].name, value)) {
			*(u8 *)to = i;
			return true;
		}
	return false;
}

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, hca_fault, member, ##__VA_ARGS__)
#define BY(fn, text)                 .parse = fn, .wants = text
#define STATUSES                     "a completion status such as LOC_PROT_ERR or RETRY_EXC_ERR"
#define EVENTS                       "an event such as PORT_ERR, DEVICE_FATAL, SM_CHANGE or QP_FATAL"
#define OPCODES                                                                                                        \
	"send, send_imm, send_inv, write, write_imm, read, atomic, comp_swap, fetch_add, bind_mw, local_inv, reg_mr, " \
	"recv, recv_imm, or several, separated by commas"
#define OWN(key) [F_##key - FAULT_OWN]
static const struct spec_field keys[] = {
	OWN(QUEUE) = KEY("queue", SPEC_OTHER, queue, BY(parse_queue, "send, recv or both")),
	OWN(STATUS) = KEY("status", SPEC_OTHER, status, BY(parse_status, STATUSES)),
	OWN(OBJECT) = KEY("object", SPEC_OTHER, object, BY(parse_object, "pd, mr, mw, cq, srq, qp or ah")),
	OWN(ERRNO) = KEY("errno", SPEC_OTHER, err,
			 BY(parse_errno, "ENOMEM, EINVAL, EPERM, EFAULT, EBUSY, EIO, ENOSPC or EOPNOTSUPP")),
	OWN(NAME) = KEY("name", SPEC_OTHER, event, BY(parse_event, EVENTS)),
	OWN(PORT) = KEY("port", SPEC_U8, port),
	OWN(PROFILE) = KEY("profile", SPEC_OTHER, profile, BY(parse_profile, "no-srq, one-read, few-qps or plain")),
	OWN(CAPS) = KEY("max_qp", SPEC_U32, caps.max_qp, .max = 1 << 16),
	KEY("max_qp_wr", SPEC_U32, caps.max_qp_wr, .max = 1 << 14),
	KEY("max_sge", SPEC_U32, caps.max_sge, .max = HCA_MAX_SGE),
	KEY("max_cq", SPEC_U32, caps.max_cq, .max = 1 << 16),
	KEY("max_cqe", SPEC_U32, caps.max_cqe, .max = 1 << 18),
	KEY("max_mr", SPEC_U32, caps.max_mr, .max = 1 << 18),
	KEY("max_mr_size", SPEC_U64, caps.max_mr_size, .max = 1ull << 46),
	KEY("max_pd", SPEC_U32, caps.max_pd, .max = 1 << 15),
	KEY("max_srq", SPEC_U32, caps.max_srq, .max = 1 << 15),
	KEY("max_srq_wr", SPEC_U32, caps.max_srq_wr, .max = 1 << 15),
	KEY("max_mw", SPEC_U32, caps.max_mw, .max = 1 << 16),
	KEY("max_ah", SPEC_U32, caps.max_ah, .max = 1 << 16),
	KEY("max_mcast_grp", SPEC_U32, caps.max_mcast_grp, .max = 8192),
	KEY("max_qp_rd_atom", SPEC_U8, caps.max_qp_rd_atom, .max = 128),
	KEY("max_qp_init_rd_atom", SPEC_U8, caps.max_qp_init_rd_atom, .max = 128),
	KEY("max_inline", SPEC_U32, caps.max_inline, .max = HCA_MAX_INLINE),
	OWN(OPCODE) = KEY("opcode", SPEC_OTHER, opcodes, BY(parse_opcodes, OPCODES)),
};
static_assert(FAULT_OWN + ARRAY_SIZE(keys) == F_OPCODE + 1, "limits of capabilities are between F_CAPS and F_OPCODE");
static_assert(FAULT_OWN + ARRAY_SIZE(keys) <= 64, "one bit for each key");

/* Hooks */

/* Faults that do not name the daemon's own queue pairs do not apply to them. */
static bool concerns_qp(const struct fault *ft, const struct hca_qp *qp)
{
	if (!(ft->given & FAULT_MATCH_KEY(QPN)))
		return !qp->ctx->internal;
	return qp->qpn >= ft->match.qpn[0] && qp->qpn <= ft->match.qpn[1];
}

struct queue_of {
	const struct hca_qp *qp;
	u64 opcodes;
	u8 queue;
};

/* error and event count sends, unless opcode= names receives. */
static bool concerns_queue(const struct fault *ft, const void *ctx)
{
	const struct queue_of *q = ctx;
	u8 queue = hca_fault_const(ft)->queue, at = ft->kind->at;

	if (q->queue == QUEUE_RECV && (at == HCA_FAULT_ERROR || at == HCA_FAULT_EVENT) && !fault_given(ft, F_OPCODE))
		return false;
	return concerns_qp(ft, q->qp) && (!queue || queue == q->queue) &&
	       (!fault_given(ft, F_OPCODE) || hca_fault_const(ft)->opcodes & q->opcodes);
}

/* The first fault of the hook that selects this work request or completion; NULL: none. */
static const struct hca_fault *chosen(struct hca *hca, enum hca_fault_hook hook, const struct hca_qp *qp, u8 queue,
				      u64 opcodes)
{
	struct queue_of q = { qp, opcodes, queue };
	struct fault *ft;

	if (qp->type <= HCA_QPT_GSI) /* management QPs are exempt */
		return NULL;
	ft = fault_at(&hca->faults, hook, concerns_queue, &q);
	return ft ? hca_fault(ft) : NULL;
}

static bool any_armed(const struct hca *hca, enum hca_fault_hook hook)
{
	const struct fault *ft;

	list_for_each (ft, &hca->faults.faults, link)
		if (ft->kind->at == hook)
			return true;
	return false;
}

void hca_ctx_set_internal(struct hca_ctx *ctx)
{
	ctx->internal = true;
}

void hca_ctx_watch_posts(struct hca_ctx *ctx, void (*fn)(void *fe, bool wanted))
{
	ctx->posts = fn;
	fn(ctx->fe, any_armed(ctx->hca, HCA_FAULT_POST));
}

int hca_qp_post(struct hca_ctx *ctx, u32 qpn, u64 opcodes)
{
	const struct hca_qp *qp = hca_qp_get(ctx, qpn);
	const struct hca_fault *ft = qp ? chosen(ctx->hca, HCA_FAULT_POST, qp, QUEUE_SEND, opcodes) : NULL;

	if (!ft)
		return 0;
	return ft->err ? -(int)ft->err : -ENOMEM;
}

static bool event_of_qp(u8 event)
{
	return event == HCA_EVENT_QP_FATAL || event == HCA_EVENT_QP_REQ_ERR || event == HCA_EVENT_QP_ACCESS_ERR;
}

void hca_qp_fail_later(struct hca_qp *qp)
{
	struct hca_qp_priv *priv = hca_qp_priv(qp);

	if (!list_empty(&priv->failing))
		return;
	list_add(&qp->hca->failing, &priv->failing);
	loop_task_queue(qp->hca->loop, &qp->hca->fault_task);
}

void hca_fault_run(struct loop_task *t, struct now now)
{
	struct hca *hca = container_of(t, struct hca, fault_task);

	while (!list_empty(&hca->failing)) {
		struct hca_qp_priv *priv = list_first(&hca->failing, struct hca_qp_priv, failing);

		list_del(&priv->failing);
		hca_qp_force_error(&priv->qp);
		hca_qp_event(&priv->qp, HCA_EVENT_QP_FATAL);
	}
	hca_flush(hca);
}

bool hca_fault_stuck(struct hca_qp *qp)
{
	return chosen(qp->hca, HCA_FAULT_STUCK, qp, QUEUE_SEND, 0);
}

static void raise_event(struct hca *hca, u8 event, u8 port)
{
	struct hca_ctx *ctx, *tmp;

	list_for_each_safe (ctx, tmp, &hca->ctxs, link)
		hca_ctx_event(ctx, (enum hca_event_type)event, port, NULL);
}

/* Raises the event for the QP of the selected work request (NULL: none), its port, or the device. */
static void event_raise(struct hca *hca, const struct hca_fault *ft, struct hca_qp *qp)
{
	if (event_of_qp(ft->event))
		hca_qp_event(qp, (enum hca_event_type)ft->event);
	else
		raise_event(hca, ft->event,
			    ft->event == HCA_EVENT_DEVICE_FATAL ? 0
			    : ft->port                          ? ft->port
			    : qp                                ? qp->attr.port
								: 1);
}

/* error and event at a work request, or at a completed receive. */
static void request_faults(struct hca_qp *qp, u8 queue, u64 opcode)
{
	const struct hca_fault *ft;

	if (chosen(qp->hca, HCA_FAULT_ERROR, qp, queue, opcode))
		hca_qp_fail_later(qp);
	ft = chosen(qp->hca, HCA_FAULT_EVENT, qp, queue, opcode);
	if (ft)
		event_raise(qp->hca, ft, qp);
}

void hca_fault_sent(struct hca_qp *qp, const struct hca_send_wr *wr)
{
	request_faults(qp, QUEUE_SEND, send_op(wr->opcode));
}

bool hca_fault_recv(struct hca_qp *qp)
{
	return !chosen(qp->hca, HCA_FAULT_RNR, qp, QUEUE_RECV, 0);
}

static enum hca_fault_cqe completion_faults(struct hca_qp *qp, struct hca_cqe *cqe, u8 queue, u64 opcode)
{
	const struct hca_fault *ft = chosen(qp->hca, HCA_FAULT_COMPLETE, qp, queue, opcode);

	if (ft) {
		cqe->status = ft->status;
		cqe->byte_len = 0;
		hca_qp_fail_later(qp);
	}
	if (chosen(qp->hca, HCA_FAULT_OVERRUN, qp, queue, opcode))
		return HCA_FAULT_CQE_OVERRUN;
	return chosen(qp->hca, HCA_FAULT_LOSE, qp, queue, opcode) ? HCA_FAULT_CQE_LOST : HCA_FAULT_CQE_GOES;
}

enum hca_fault_cqe hca_fault_complete_send(struct hca_qp *qp, struct hca_cqe *cqe, u8 opcode)
{
	if (cqe->status != HCA_WC_SUCCESS)
		return HCA_FAULT_CQE_GOES;
	return completion_faults(qp, cqe, QUEUE_SEND, send_op(opcode));
}

enum hca_fault_cqe hca_fault_complete_recv(struct hca_qp *qp, struct hca_cqe *cqe)
{
	if (cqe->status != HCA_WC_SUCCESS)
		return HCA_FAULT_CQE_GOES;
	request_faults(qp, QUEUE_RECV, recv_op(cqe->opcode));
	return completion_faults(qp, cqe, QUEUE_RECV, recv_op(cqe->opcode));
}

static bool concerns_object(const struct fault *ft, const void *object)
{
	return hca_fault_const(ft)->object == *(const enum hca_object *)object;
}

int hca_fault_refuse(struct hca *hca, enum hca_object object)
{
	struct fault *ft;

	if (any_armed(hca, HCA_FAULT_FATAL))
		return -EIO;
	ft = fault_at(&hca->faults, HCA_FAULT_REFUSE, concerns_object, &object);
	return !ft ? 0 : hca_fault(ft)->err ? -(int)hca_fault(ft)->err : -ENOMEM;
}

/* Immediate faults */

static void fail_all(struct fault *ft)
{
	struct hca *hca = ft->set->owner;
	struct hca_qp *qp;
	u32 i;

	table_for_each (&hca->qps, i, qp)
		if (concerns_qp(ft, qp) && qp->type >= HCA_QPT_RC && qp->state != HCA_QPS_RESET)
			hca_qp_fail_later(qp);
}

static void error_apply(struct fault *ft)
{
	fail_all(ft);
	ft->pick.count = ft->pick.hits; /* once */
}

/*
 * DEVICE_FATAL first: an adapter that stops reports no events of its queue pairs. The owner of an unplugged device
 * closes its open files.
 */
static void fatal_apply(struct fault *ft)
{
	raise_event(ft->set->owner, HCA_EVENT_DEVICE_FATAL, 0);
	fail_all(ft);
}

static void event_apply(struct fault *base)
{
	event_raise(base->set->owner, hca_fault(base), NULL);
}

static void caps_of_profile(struct hca_caps *caps, u8 profile)
{
	u64 value;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(profiles[profile].cap) && profiles[profile].cap[i].size; i++) {
		value = profiles[profile].cap[i].value;
		memcpy((char *)caps + profiles[profile].cap[i].at, &value, profiles[profile].cap[i].size);
	}
}

/* Recomputes the device's capabilities from the armed faults. */
static void caps_sum(struct hca *hca)
{
	const struct fault *base;
	u32 i;

	hca->caps = hca_caps_default;
	list_for_each (base, &hca->faults.faults, link) {
		const struct hca_fault *ft = hca_fault_const(base);

		if (fault_given(base, F_PROFILE))
			caps_of_profile(&hca->caps, ft->profile);
		for (i = F_CAPS; i < F_OPCODE; i++) {
			const struct spec_field *f = &keys[i - FAULT_OWN];
			size_t size = f->type == SPEC_U8 ? 1 : f->type == SPEC_U32 ? 4 : 8;

			if (fault_given(base, i))
				memcpy((char *)&hca->caps + f->offset - offsetof(struct hca_fault, caps),
				       (const char *)ft + f->offset, size);
		}
	}
}

static int caps_check(struct fault *ft, char *err, size_t err_len)
{
	if (!ft->given)
		return spec_refuse(err, err_len, "caps: it needs profile= or at least one of max_qp= and the like");
	return 0;
}

/* An opcode of a queue that the fault does not act on would never match. */
static int opcode_check(struct fault *base, char *err, size_t err_len)
{
	const struct hca_fault *ft = hca_fault(base);
	bool post = base->kind->at == HCA_FAULT_POST;

	if (!fault_given(base, F_OPCODE))
		return 0;
	if ((post || ft->queue == QUEUE_SEND) && ft->opcodes & OP_RECVS)
		return spec_refuse(err, err_len, "opcode: a receive is no %s", post ? "call that posts sends" : "send");
	if (ft->queue == QUEUE_RECV && ft->opcodes & ~OP_RECVS)
		return spec_refuse(err, err_len, "opcode: a send is no receive: those are recv and recv_imm");
	return 0;
}

static int error_check(struct fault *ft, char *err, size_t err_len)
{
	if (fault_given(ft, F_OPCODE) && !(ft->given & FAULT_PICK_KEYS))
		return spec_refuse(err, err_len, "error: which work request? It needs nth=, every= or the like");
	return 0;
}

static int event_check(struct fault *ft, char *err, size_t err_len)
{
	struct hca *hca = ft->set->owner;
	u8 port = hca_fault(ft)->port;

	if (fault_given(ft, F_PORT) && !hca_port_valid(hca, port))
		return spec_refuse(err, err_len, "port=%u: the ports are 1 to %u", port, hca_nports(hca));
	if (ft->given & (CHOICE & ~FAULT_PICK_KEYS) && !(ft->given & FAULT_PICK_KEYS))
		return spec_refuse(err, err_len, "event: which work request? It needs nth=, every= or the like");
	if (event_of_qp(hca_fault(ft)->event) && !(ft->given & FAULT_PICK_KEYS))
		return spec_refuse(err, err_len, "event: an event of a queue pair needs nth=, every= or the like");
	return 0;
}

/* Resumes a stuck queue. */
static void stuck_undo(struct fault *ft)
{
	struct hca *hca = ft->set->owner;
	struct hca_qp *qp;
	u32 i;

	table_for_each (&hca->qps, i, qp)
		if (concerns_qp(ft, qp))
			hca_qp_doorbell(qp->ctx, qp->qpn);
}

static const struct fault_kind hca_kinds[] = {
	{ .name = "complete",
	  .at = HCA_FAULT_COMPLETE,
	  .prepare = opcode_check,
	  .required = BIT_ULL(F_STATUS),
	  .allowed = CHOICE | BIT_ULL(F_QUEUE) },
	{ .name = "lose", .at = HCA_FAULT_LOSE, .prepare = opcode_check, .allowed = CHOICE | BIT_ULL(F_QUEUE) },
	{ .name = "overrun", .at = HCA_FAULT_OVERRUN, .prepare = opcode_check, .allowed = CHOICE | BIT_ULL(F_QUEUE) },
	{ .name = "error", .at = HCA_FAULT_ERROR, .apply = error_apply, .prepare = error_check, .allowed = CHOICE },
	{ .name = "stuck", .at = HCA_FAULT_STUCK, .undo = stuck_undo, .allowed = QUEUES },
	{ .name = "rnr", .at = HCA_FAULT_RNR, .allowed = QUEUES },
	{ .name = "refuse",
	  .at = HCA_FAULT_REFUSE,
	  .required = BIT_ULL(F_OBJECT),
	  .allowed = FAULT_PICK_KEYS | BIT_ULL(F_ERRNO) },
	{ .name = "post", .at = HCA_FAULT_POST, .prepare = opcode_check, .allowed = CHOICE | BIT_ULL(F_ERRNO) },
	{ .name = "fatal", .at = HCA_FAULT_FATAL, .apply = fatal_apply },
	{ .name = HCA_FAULT_UNPLUG, .at = HCA_FAULT_FATAL, .apply = fatal_apply },
	{ .name = "event",
	  .at = HCA_FAULT_EVENT,
	  .apply = event_apply,
	  .prepare = event_check,
	  .required = BIT_ULL(F_NAME),
	  .allowed = CHOICE | BIT_ULL(F_PORT) },
	{ .name = "caps", .prepare = caps_check, .allowed = CAP_KEYS },
	{ .name = NULL },
};

static void faults_changed(struct fault_set *set)
{
	struct hca *hca = set->owner;
	struct hca_ctx *ctx;

	caps_sum(hca);
	list_for_each (ctx, &hca->ctxs, link)
		if (ctx->posts)
			ctx->posts(ctx->fe, any_armed(hca, HCA_FAULT_POST));
}

static const struct fault_kind *const kinds[] = { hca_kinds, NULL };
const struct fault_target hca_fault_target = {
	.of = "of an HCA ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct hca_fault),
	.changed = faults_changed,
};

struct fault_set *hca_faults(struct hca *hca)
{
	return &hca->faults;
}
