// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Event queues: completion events of CQs, asynchronous events, and completions of commands. Entries of 64 bytes with an
 * owner bit, which changes at each wrap.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/log.h"

#define ENTRY   64u
#define DATA_AT 32
#define INDEX   0xffffffu

/* Subtypes of an event of a port. */
enum port_change {
	PORT_DOWN = 1,
	PORT_ACTIVE = 4,
	PORT_LID = 6,
	PORT_PKEY = 7,
	PORT_GUID = 8,
	PORT_REREGISTER = 9,
};
static_assert(PORT_REREGISTER < CX_PORT_EVENTS, "one event for each");

static bool eq_room(const struct cx_eq *eq)
{
	return ((eq->pi - eq->ci) & INDEX) < BIT(eq->log_size);
}

/*
 * The driver cannot know which event it does not get, and would wait for that of a CQ without end: so this is an
 * internal error, with the syndrome that the adapter's health buffer has for it.
 */
static void eq_fail(struct connectx *d, const struct cx_eq *eq)
{
	cx_count(d, CX_CTR_EVENTS_LOST);
	if (d->fatal)
		return;
	log_at(LOG_WARN, d->cfg.name, "the guest's event queue %u is not in its memory: internal error", eq->eqn);
	cx_fatal(d, CX_SYNDROME_EQ_ERR);
}

static void event_fill(u8 *entry, const struct cx_event *e)
{
	u8 *data = entry + DATA_AT;

	entry[1] = e->type;
	switch (e->type) {
	case CX_EVENT_INTERNAL_ERROR:
		break;
	case CX_EVENT_COMMAND:
		wire_store(data, 4, e->number);
		break;
	case CX_EVENT_CQ_ERROR:
		wire_store(data, 4, e->number);
		data[11] = e->code;
		break;
	case CX_EVENT_PAGE_FAULT:
		entry[3] = e->code;
		memcpy(data, container_of(e, const struct cx_page_fault, event)->data, CX_FAULT_DATA);
		break;
	case CX_EVENT_PORT_CHANGE:
		entry[3] = e->code;
		data[8] = 1 << 4;
		break;
	default: /* a CQ, an SRQ, or a queue pair, whose type of queue is 0 */
		wire_store(data + 24, 4, e->number);
	}
}

/* There is room for it. */
static void eq_put(struct connectx *d, struct cx_eq *eq, const struct cx_event *e)
{
	u8 *p = cx_buf_at(d, &eq->buf, (eq->pi & (BIT(eq->log_size) - 1)) * ENTRY, ENTRY);

	if (!p) {
		eq_fail(d, eq);
		return;
	}
	memset(p, 0, ENTRY - 1);
	event_fill(p, e);
	__atomic_store_n(p + ENTRY - 1, (u8)(eq->pi >> eq->log_size & 1), __ATOMIC_RELEASE);
	eq->pi++;
}

static void eq_interrupt(struct connectx *d, struct cx_eq *eq)
{
	if (!eq->armed)
		return;
	eq->armed = false;
	vfio_irq(d->vfio, eq->vector);
}

/* False: there is no room, or others wait for it. */
static bool event_try(struct connectx *d, struct cx_eq *eq, const struct cx_event *e)
{
	if (!eq_room(eq) || eq->due_commands || !list_empty(&eq->due))
		return false;
	eq_put(d, eq, e);
	eq_interrupt(d, eq);
	return true;
}

static void event_put(struct connectx *d, struct cx_eq *eq, struct cx_event *e, u8 type, u8 code, u32 number)
{
	e->type = type;
	e->code = code;
	e->number = number;
	list_del(&e->link);
	if (!event_try(d, eq, e))
		list_add(&eq->due, &e->link);
}

void cx_events_init(struct cx_event *e, u32 n)
{
	while (n--)
		list_init(&e[n].link);
}

void cx_events_forget(struct cx_event *e, u32 n)
{
	while (n--)
		list_del(&e[n].link);
}

static void eq_catch_up(struct connectx *d, struct cx_eq *eq)
{
	if (eq->due_commands && eq_room(eq)) {
		struct cx_event e = { .type = CX_EVENT_COMMAND, .number = eq->due_commands };

		eq->due_commands = 0;
		eq_put(d, eq, &e);
	}
	while (!list_empty(&eq->due) && eq_room(eq)) {
		struct cx_event *e = list_first(&eq->due, struct cx_event, link);

		list_del(&e->link);
		eq_put(d, eq, e);
	}
}

/* EQ doorbell: the driver has consumed entries, and with @arm requests an interrupt for the next one. */
void cx_eq_doorbell(struct connectx *d, u32 uar, u32 value, bool arm)
{
	struct cx_eq *eq = value >> 24 < CX_EQS ? d->eq[value >> 24] : NULL;

	if (!eq || eq->uar != uar || ((eq->pi - value) & INDEX) > BIT(eq->log_size)) {
		cx_count(d, CX_CTR_BAD_DOORBELLS);
		return;
	}
	eq->ci = value & INDEX;
	eq_catch_up(d, eq);
	if (!arm)
		return;
	eq->armed = true;
	if ((eq->pi & INDEX) != eq->ci)
		eq_interrupt(d, eq);
}

struct cx_eq *cx_eq_of_type(struct connectx *d, u32 type)
{
	u32 i;

	for (i = 0; i < CX_EQS; i++) {
		if (d->eq[i] && d->eq[i]->mask & BIT_ULL(type))
			return d->eq[i];
	}
	return NULL;
}

void cx_event_comp(struct connectx *d, struct cx_cq *cq)
{
	struct cx_eq *eq = d->eq[cq->eqn];

	cx_count(d, CX_CTR_COMP_EVENTS);
	if (eq)
		event_put(d, eq, &cq->completion, CX_EVENT_COMP, 0, cq->cq.handle);
}

void cx_event_page_fault(struct connectx *d, struct cx_page_fault *pf, u8 subtype)
{
	event_put(d, cx_eq_of_type(d, CX_EVENT_PAGE_FAULT), &pf->event, CX_EVENT_PAGE_FAULT, subtype, 0);
}

/* One event is enough for all commands that have completed when there is room. */
void cx_event_command(struct connectx *d, struct cx_eq *eq, u32 vector)
{
	struct cx_event e = { .type = CX_EVENT_COMMAND, .number = vector };

	if (!event_try(d, eq, &e))
		eq->due_commands |= vector;
}

/* Types of the HCA's events. */
static const struct {
	u8 type, subtype;
} events[] = {
	/* There is no event for a new SM; for this one the driver reads the SM's LID, too. */
	[HCA_EVENT_CQ_ERR] = { CX_EVENT_CQ_ERROR },
	[HCA_EVENT_QP_FATAL] = { CX_EVENT_WQ_CATASTROPHIC },
	[HCA_EVENT_QP_REQ_ERR] = { CX_EVENT_WQ_INVALID_REQUEST },
	[HCA_EVENT_QP_ACCESS_ERR] = { CX_EVENT_WQ_ACCESS },
	[HCA_EVENT_COMM_EST] = { CX_EVENT_COMM_EST },
	[HCA_EVENT_SQ_DRAINED] = { CX_EVENT_SQ_DRAINED },
	[HCA_EVENT_PATH_MIG] = { CX_EVENT_PATH_MIG },
	[HCA_EVENT_PATH_MIG_ERR] = { CX_EVENT_PATH_MIG_FAILED },
	[HCA_EVENT_DEVICE_FATAL] = { CX_EVENT_INTERNAL_ERROR },
	[HCA_EVENT_PORT_ACTIVE] = { CX_EVENT_PORT_CHANGE, PORT_ACTIVE },
	[HCA_EVENT_PORT_ERR] = { CX_EVENT_PORT_CHANGE, PORT_DOWN },
	[HCA_EVENT_LID_CHANGE] = { CX_EVENT_PORT_CHANGE, PORT_LID },
	[HCA_EVENT_PKEY_CHANGE] = { CX_EVENT_PORT_CHANGE, PORT_PKEY },
	[HCA_EVENT_SM_CHANGE] = { CX_EVENT_PORT_CHANGE, PORT_LID },
	[HCA_EVENT_SRQ_ERR] = { CX_EVENT_SRQ_CATASTROPHIC },
	[HCA_EVENT_SRQ_LIMIT_REACHED] = { CX_EVENT_SRQ_LIMIT },
	[HCA_EVENT_QP_LAST_WQE_REACHED] = { CX_EVENT_LAST_WQE },
	[HCA_EVENT_CLIENT_REREGISTER] = { CX_EVENT_PORT_CHANGE, PORT_REREGISTER },
	[HCA_EVENT_GID_CHANGE] = { CX_EVENT_PORT_CHANGE, PORT_GUID },
};

static_assert(!(HCA_EVENT_QP_LAST_WQE_REACHED % CX_QP_EVENTS) && HCA_EVENT_QP_FATAL &&
		      (int)HCA_EVENT_PATH_MIG_ERR < CX_QP_EVENTS,
	      "events of queue pairs");

/* The event of the object concerned, and its number; NULL: it is of another port. */
static struct cx_event *event_of(struct connectx *d, const struct hca_event *ev, u8 code, u32 *number)
{
	struct cx_srq *srq;
	struct cx_cq *cq;
	struct cx_qp *qp;

	switch (ev->type) {
	case HCA_EVENT_CQ_ERR:
		cq = ev->fe;
		*number = cq->cq.handle;
		return &cq->failure;
	case HCA_EVENT_SRQ_ERR:
	case HCA_EVENT_SRQ_LIMIT_REACHED:
		srq = ev->fe;
		*number = srq->srq.handle;
		return &srq->event[ev->type % CX_SRQ_EVENTS];
	case HCA_EVENT_DEVICE_FATAL:
		return &d->fatal_event;
	default:
		break;
	}
	qp = ev->fe;
	if (!qp)
		return ev->number == d->cfg.port ? &d->port_event[code] : NULL;
	*number = qp->qpn;
	return &qp->event[ev->type % CX_QP_EVENTS];
}

void cx_event_raise(void *fe, const struct hca_event *ev)
{
	struct connectx *d = fe;
	struct cx_event *e;
	struct cx_eq *eq;
	u32 number = 0;
	u8 type, code;

	if (ev->type >= ARRAY_SIZE(events) || !events[ev->type].type || d->fatal)
		return;
	type = events[ev->type].type;
	code = ev->type == HCA_EVENT_CQ_ERR ? cx_cq_error(ev->fe) : events[ev->type].subtype;
	e = event_of(d, ev, code, &number);
	if (!e)
		return;
	if (ev->type == HCA_EVENT_DEVICE_FATAL)
		cx_fatal(d, CX_SYNDROME_INTERNAL);
	eq = cx_eq_of_type(d, type);
	if (eq)
		event_put(d, eq, e, type, code, number);
	else
		cx_count(d, CX_CTR_EVENTS_LOST);
	if (ev->type == HCA_EVENT_CQ_ERR)
		verbs_specials_cq_failed(&d->verbs, ev->fe);
}

/* ---- commands ---- */

static void eq_destroy(struct connectx *d, struct cx_eq *eq)
{
	while (!list_empty(&eq->due))
		list_del(eq->due.next);
	cx_uar_use(d, eq->uar, -1);
	cx_buf_destroy(d, &eq->buf);
	d->eq[eq->eqn] = NULL;
	free(eq);
}

void cx_eq_destroy_all(struct connectx *d)
{
	u32 i;

	for (i = 0; i < CX_EQS; i++) {
		if (d->eq[i])
			eq_destroy(d, d->eq[i]);
	}
}

int cx_create_eq(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *ctx = cx_cptr(c->in, create_eq_in, eq_context_entry);
	struct cx_pages pages = cx_command_pages(c, CX_AT_create_eq_in_pas / 8, (u32)cx_get(ctx, eqc, log_page_size),
						 (u32)cx_get(ctx, eqc, page_offset));
	u32 n, log_size = (u32)cx_get(ctx, eqc, log_eq_size), vector = (u32)cx_get(ctx, eqc, intr);
	struct cx_eq *eq;
	int err;

	for (n = 1; n < CX_EQS && d->eq[n];)
		n++;
	if (n == CX_EQS)
		return CX_LIM;
	if (log_size > 22 || vector >= CX_VECTORS)
		return CX_BAD_PARAM;
	if (!cx_uar_exists(d, (u32)cx_get(ctx, eqc, uar_page)))
		return CX_BAD_RES;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -ENOMEM;
	list_init(&eq->due);
	err = cx_buf_create(d, &eq->buf, &pages, (u64)ENTRY << log_size, true);
	if (err) {
		free(eq);
		return err;
	}
	eq->eqn = n;
	eq->log_size = (u8)log_size;
	eq->vector = vector;
	eq->uar = (u32)cx_get(ctx, eqc, uar_page);
	cx_uar_use(d, eq->uar, 1);
	eq->mask = wire_load(cx_cptr(c->in, create_eq_in, event_bitmask), 8);
	memcpy(eq->eqc, ctx, sizeof(eq->eqc));
	d->eq[n] = eq;
	cx_set(c->out, create_eq_out, eq_number, n);
	return CX_OK;
}

static struct cx_eq *eq_of(struct connectx *d, const struct cx_cmd *c)
{
	u32 n = (u32)cx_get(c->in, destroy_eq_in, eq_number);

	return n < CX_EQS ? d->eq[n] : NULL;
}

int cx_destroy_eq(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_eq *eq = eq_of(d, c);
	struct cx_cq *cq;
	bool faults;
	u32 i;

	if (!eq)
		return CX_BAD_RES;
	table_for_each (&d->verbs.cqs, i, cq) {
		if (cq->eqn == eq->eqn)
			return CX_BAD_RES_STATE;
	}
	faults = eq->mask & BIT_ULL(CX_EVENT_PAGE_FAULT);
	eq_destroy(d, eq);
	if (faults)
		cx_page_faults_fail(d);
	return CX_OK;
}

int cx_query_eq(struct connectx *d, const struct cx_cmd *c)
{
	const struct cx_eq *eq = eq_of(d, c);
	u8 *ctx = cx_ptr(c->out, query_eq_out, eq_context_entry);

	if (!eq)
		return CX_BAD_RES;
	memcpy(ctx, eq->eqc, sizeof(eq->eqc));
	cx_set(ctx, eqc, st, eq->armed ? 9 : 0xa);
	cx_set(ctx, eqc, consumer_counter, eq->ci);
	cx_set(ctx, eqc, producer_counter, eq->pi);
	return CX_OK;
}
