// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of an HCA. Those of work requests and completions look at each as it passes (hca_next_send, hca_next_recv,
 * the completion queues); what would fail a QP in the midst of its transport's work is done by a task.
 */
#include "emu/hca/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/hca/internal.h"
#include "emu/lib/spec.h"

enum field {
	F_QPN,
	F_QUEUE,
	F_PICK,
	F_STATUS = F_PICK + PICK_FIELDS,
	F_OBJECT,
	F_ERRNO,
	F_NAME,
	F_PORT,
	F_PROFILE,
	F_CAPS, /* the first of them */
};
#define CHOICE   PICK_KEYS(F_PICK)
#define CAP_KEYS (~0ull << F_PROFILE)

enum queue {
	QUEUE_BOTH,
	QUEUE_SEND,
	QUEUE_RECV
};

struct action {
	const char *name;
	u64 allowed, required;
	void (*start)(struct hca_fault *ft); /* at once, where no packet or request sets it off */
	void (*stop)(struct hca_fault *ft);
	enum hca_fault_hook hook; /* where it looks */
};

struct hca_fault {
	struct hca *hca;
	struct list link;
	const struct action *action;
	u64 given;
	struct pick pick;
	u32 qpn[2], err;
	u64 seed;
	u8 queue, status, object, event, port, profile;
	struct hca_caps caps;
};

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

static bool parse_event(void *to, const char *value)
{
	static const char *const names[] = {
		[HCA_EVENT_DEVICE_FATAL] = "DEVICE_FATAL",
		[HCA_EVENT_PORT_ACTIVE] = "PORT_ACTIVE",
		[HCA_EVENT_PORT_ERR] = "PORT_ERR",
		[HCA_EVENT_LID_CHANGE] = "LID_CHANGE",
		[HCA_EVENT_PKEY_CHANGE] = "PKEY_CHANGE",
		[HCA_EVENT_SM_CHANGE] = "SM_CHANGE",
		[HCA_EVENT_CLIENT_REREGISTER] = "CLIENT_REREGISTER",
		[HCA_EVENT_GID_CHANGE] = "GID_CHANGE",
	};

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

/* Kinds of poorer adapters. What a profile does not name it leaves. */
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
#define EVENTS                       "an event such as PORT_ERR, DEVICE_FATAL or SM_CHANGE"
static const struct spec_field fields[] = {
	[F_QPN] = KEY("qpn", SPEC_RANGE, qpn, .max = 0xffffff),
	[F_QUEUE] = KEY("queue", SPEC_OTHER, queue, BY(parse_queue, "send, recv or both")),
	PICK_SPEC(F_PICK, hca_fault, pick, seed),
	[F_STATUS] = KEY("status", SPEC_OTHER, status, BY(parse_status, STATUSES)),
	[F_OBJECT] = KEY("object", SPEC_OTHER, object, BY(parse_object, "pd, mr, mw, cq, srq, qp or ah")),
	[F_ERRNO] =
		KEY("errno", SPEC_OTHER, err, BY(parse_errno, "ENOMEM, EINVAL, EPERM, EFAULT, EBUSY, EIO or ENOSPC")),
	[F_NAME] = KEY("name", SPEC_OTHER, event, BY(parse_event, EVENTS)),
	[F_PORT] = KEY("port", SPEC_U8, port),
	[F_PROFILE] = KEY("profile", SPEC_OTHER, profile, BY(parse_profile, "no-srq, one-read, few-qps or plain")),
	[F_CAPS] = KEY("max_qp", SPEC_U32, caps.max_qp, .max = 1 << 16),
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
};
static_assert(ARRAY_SIZE(fields) <= 64, "one bit for each key");

/* Hooks */

static bool concerns(const struct hca_fault *ft, u32 qpn)
{
	return !(ft->given & BIT_ULL(F_QPN)) || (qpn >= ft->qpn[0] && qpn <= ft->qpn[1]);
}

/* The first fault of the hook that chooses this; NULL: none. */
static struct hca_fault *chosen(struct hca *hca, enum hca_fault_hook hook, const struct hca_qp *qp, u8 queue)
{
	struct hca_fault *ft;

	if (qp->type <= HCA_QPT_GSI) /* management goes on */
		return NULL;
	list_for_each (ft, &hca->faults, link)
		if (ft->action->hook == hook && concerns(ft, qp->qpn) && (!ft->queue || ft->queue == queue) &&
		    pick_next(&ft->pick))
			return ft;
	return NULL;
}

static bool posts_fail(const struct hca *hca)
{
	const struct hca_fault *ft;

	list_for_each (ft, &hca->faults, link)
		if (ft->action->hook == HCA_FAULT_POST)
			return true;
	return false;
}

static void tell_posts(struct hca *hca)
{
	struct hca_ctx *ctx;

	list_for_each (ctx, &hca->ctxs, link)
		if (ctx->posts)
			ctx->posts(ctx->fe, posts_fail(hca));
}

void hca_ctx_watch_posts(struct hca_ctx *ctx, void (*fn)(void *fe, bool asked))
{
	ctx->posts = fn;
	fn(ctx->fe, posts_fail(ctx->hca));
}

int hca_qp_post(struct hca_ctx *ctx, u32 qpn)
{
	const struct hca_qp *qp = hca_qp_get(ctx, qpn);
	const struct hca_fault *ft = qp ? chosen(ctx->hca, HCA_FAULT_POST, qp, QUEUE_SEND) : NULL;

	if (!ft)
		return 0;
	return ft->err ? -(int)ft->err : -ENOMEM;
}

/* The QP goes to the error state as soon as nobody is at work on it. */
static void fail_later(struct hca_qp *qp)
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

bool hca_fault_send(struct hca_qp *qp)
{
	if (chosen(qp->hca, HCA_FAULT_STUCK, qp, QUEUE_SEND))
		return false;
	if (chosen(qp->hca, HCA_FAULT_ERROR, qp, QUEUE_SEND))
		fail_later(qp);
	return true;
}

bool hca_fault_recv(struct hca_qp *qp)
{
	return !chosen(qp->hca, HCA_FAULT_RNR, qp, QUEUE_RECV);
}

bool hca_fault_complete(struct hca_qp *qp, struct hca_cqe *cqe)
{
	u8 queue = cqe->opcode & HCA_WC_RECV ? QUEUE_RECV : QUEUE_SEND;
	struct hca_fault *ft;

	if (cqe->status != HCA_WC_SUCCESS)
		return true;
	ft = chosen(qp->hca, HCA_FAULT_COMPLETE, qp, queue);
	if (ft) {
		cqe->status = ft->status;
		cqe->byte_len = 0;
		fail_later(qp);
	}
	return !chosen(qp->hca, HCA_FAULT_OVERRUN, qp, queue);
}

int hca_fault_refuse(struct hca *hca, enum hca_object object)
{
	struct hca_fault *ft;

	list_for_each (ft, &hca->faults, link) {
		if (ft->action->hook == HCA_FAULT_FATAL)
			return -EIO;
		if (ft->action->hook == HCA_FAULT_REFUSE && ft->object == object && pick_next(&ft->pick))
			return ft->err ? -(int)ft->err : -ENOMEM;
	}
	return 0;
}

/* What happens at once */

static void fail_all(struct hca_fault *ft)
{
	struct hca_qp *qp;
	u32 i;

	table_for_each (&ft->hca->qps, i, qp)
		if (concerns(ft, qp->qpn) && qp->type >= HCA_QPT_RC && qp->state != HCA_QPS_RESET)
			fail_later(qp);
}

static void raise_event(struct hca *hca, u8 event, u8 port)
{
	struct hca_ctx *ctx, *tmp;

	list_for_each_safe (ctx, tmp, &hca->ctxs, link)
		hca_ctx_event(ctx, (enum hca_event_type)event, port, NULL);
}

static void error_start(struct hca_fault *ft)
{
	if (ft->given & CHOICE)
		return;
	pick_next(&ft->pick);
	fail_all(ft);
	ft->pick.count = ft->pick.hits; /* once */
}

/* The files that are open on the device go by the hand of their owner. */
static void unplug_start(struct hca_fault *ft)
{
	pick_next(&ft->pick);
	raise_event(ft->hca, HCA_EVENT_DEVICE_FATAL, 0);
	fail_all(ft);
}

static void fatal_start(struct hca_fault *ft)
{
	pick_next(&ft->pick);
	fail_all(ft);
	raise_event(ft->hca, HCA_EVENT_DEVICE_FATAL, 0);
}

static void event_start(struct hca_fault *ft)
{
	pick_next(&ft->pick);
	raise_event(ft->hca, ft->event, ft->event == HCA_EVENT_DEVICE_FATAL ? 0 : ft->port ? ft->port : 1);
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

/* What the faults that are armed leave of the device. */
static void caps_sum(struct hca *hca)
{
	const struct hca_fault *ft;
	u32 i;

	hca->caps = hca_caps_default;
	list_for_each (ft, &hca->faults, link) {
		if (ft->given & BIT_ULL(F_PROFILE))
			caps_of_profile(&hca->caps, ft->profile);
		for (i = F_CAPS; i < ARRAY_SIZE(fields); i++) {
			size_t at = fields[i].offset, size = fields[i].type == SPEC_U8    ? 1
							     : fields[i].type == SPEC_U32 ? 4
											  : 8;

			if (ft->given & BIT_ULL(i))
				memcpy((char *)&hca->caps + at - offsetof(struct hca_fault, caps),
				       (const char *)ft + at, size);
		}
	}
}

static void caps_start(struct hca_fault *ft)
{
	pick_next(&ft->pick);
	caps_sum(ft->hca);
}

/* A queue that was stuck is served again. */
static void stuck_stop(struct hca_fault *ft)
{
	struct hca_qp *qp;
	u32 i;

	table_for_each (&ft->hca->qps, i, qp)
		if (concerns(ft, qp->qpn))
			hca_qp_doorbell(qp->ctx, qp->qpn);
}

static const struct action actions[] = {
	{ .name = "complete",
	  .hook = HCA_FAULT_COMPLETE,
	  .required = BIT_ULL(F_STATUS),
	  .allowed = CHOICE | BIT_ULL(F_QPN) | BIT_ULL(F_QUEUE) },
	{ .name = "overrun", .hook = HCA_FAULT_OVERRUN, .allowed = CHOICE | BIT_ULL(F_QPN) | BIT_ULL(F_QUEUE) },
	{ .name = "error", .hook = HCA_FAULT_ERROR, .start = error_start, .allowed = CHOICE | BIT_ULL(F_QPN) },
	{ .name = "stuck", .hook = HCA_FAULT_STUCK, .stop = stuck_stop, .allowed = CHOICE | BIT_ULL(F_QPN) },
	{ .name = "rnr", .hook = HCA_FAULT_RNR, .allowed = CHOICE | BIT_ULL(F_QPN) },
	{ .name = "refuse",
	  .hook = HCA_FAULT_REFUSE,
	  .required = BIT_ULL(F_OBJECT),
	  .allowed = CHOICE | BIT_ULL(F_ERRNO) },
	{ .name = "post", .hook = HCA_FAULT_POST, .allowed = CHOICE | BIT_ULL(F_QPN) | BIT_ULL(F_ERRNO) },
	{ .name = "fatal", .hook = HCA_FAULT_FATAL, .start = fatal_start },
	{ .name = HCA_FAULT_UNPLUG, .hook = HCA_FAULT_FATAL, .start = unplug_start },
	{ .name = "event", .start = event_start, .required = BIT_ULL(F_NAME), .allowed = BIT_ULL(F_PORT) },
	{ .name = "caps", .start = caps_start, .allowed = CAP_KEYS },
};

bool hca_fault_action(const char *name)
{
	return SPEC_ROW(actions, name);
}

void hca_fault_actions(char *text, size_t len)
{
	SPEC_NAMES(text, 0, len, actions);
}

static int check(const struct hca_fault *ft, char *err, size_t err_len)
{
	const struct action *a = ft->action;
	int rc = spec_keys(fields, ARRAY_SIZE(fields), a->name, ft->given, a->allowed, a->required, err, err_len);

	if (rc)
		return rc;
	if (a->start == caps_start && !ft->given)
		return spec_refuse(err, err_len, "caps: it needs profile= or at least one of max_qp= and the like");
	if (ft->given & BIT_ULL(F_PORT) && !hca_port_valid(ft->hca, ft->port))
		return spec_refuse(err, err_len, "port=%u: the ports are 1 to %u", ft->port, hca_nports(ft->hca));
	return 0;
}

static int read_words(struct hca_fault *ft, const struct spec_words *w, char *err, size_t err_len)
{
	ft->action = w->n ? SPEC_ROW(actions, w->word[0]) : NULL;
	if (!ft->action)
		return spec_refuse(err, err_len, "%.40s: there is no such fault", w->n ? w->word[0] : "");
	return spec_words(fields, ARRAY_SIZE(fields), ft, &ft->given, w, 1, err, err_len) ?: check(ft, err, err_len);
}

struct hca_fault *hca_fault_add(struct hca *hca, const char *text, u64 seed, char *err, size_t err_len)
{
	struct hca_fault *ft = calloc(1, sizeof(*ft));
	struct spec_words words = { .n = 0 };
	struct rng rng;

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	ft->hca = hca;
	if (spec_split(&words, text, err, err_len) || read_words(ft, &words, err, err_len) ||
	    pick_start(&ft->pick, ft->given, F_PICK, ft->seed, seed, &rng, err, err_len)) {
		free(ft);
		return NULL;
	}
	list_add(&hca->faults, &ft->link);
	tell_posts(hca);
	if (ft->action->start)
		ft->action->start(ft);
	return ft;
}

void hca_fault_remove(struct hca_fault *ft)
{
	list_del(&ft->link);
	if (ft->action->stop)
		ft->action->stop(ft);
	caps_sum(ft->hca);
	tell_posts(ft->hca);
	free(ft);
}

const struct pick *hca_fault_pick(const struct hca_fault *ft)
{
	return &ft->pick;
}
