// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Subnet administration (IBTA 15.4): validates requests, dispatches them by attribute and method, and sends the
 * responses with the records of the handler.
 */
#include <stdlib.h>

#include "sm/sa/sa_internal.h"

#define DEFERRED_MAX      16384 /* join responses that wait for the MFTs */
#define RECORDS_MAX_BYTES (32u << 20)
#define RMPP_RETRIES      3 /* of segments without an ACK, as OpenSM */

/* ---- records ---- */

void sm_sa_size(struct sa_call *c, u32 size)
{
	c->size = size;
	c->stride = wire_sa_stride(size);
}

static bool sa_grow(struct sa_call *c)
{
	u32 cap = c->cap ? c->cap * 2 : 1024;
	u8 *out;

	if (SA_DATA + (c->nrecords + 1) * c->stride <= c->cap)
		return true;
	while (cap < SA_DATA + (c->nrecords + 1) * c->stride)
		cap *= 2;
	out = cap > RECORDS_MAX_BYTES ? NULL : realloc(c->out, cap);
	if (!out) {
		c->status = SA_STATUS_NO_RESOURCES;
		return false;
	}
	c->out = out;
	c->cap = cap;
	return true;
}

bool sm_sa_emit(struct sa_call *c, const u8 *rec)
{
	u8 *at;

	if (c->status || !sa_grow(c))
		return false;
	at = c->out + SA_DATA + c->nrecords++ * c->stride;
	memcpy(at, rec, c->size);
	memset(at + c->size, 0, c->stride - c->size);
	return true;
}

static bool sa_same(const u8 *a, const u8 *b, struct wire_field f)
{
	if (f.width <= 64)
		return wire_get(a, f) == wire_get(b, f);
	return memcmp(wire_cbytes(a, f), wire_cbytes(b, f), f.width / 8) == 0;
}

bool sm_sa_match(const struct sa_call *c, const u8 *rec, const struct sa_field *fields, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (sm_sa_comp(c, fields[i].comp) && !sa_same(rec, c->query, WIRE_AT(fields[i].at, fields[i].field)))
			return false;
	return true;
}

bool sm_sa_may_see(const struct sa_call *c, const struct sm_port *p)
{
	const struct sm_port *end = sm_node_is_switch(p->node) ? &p->node->ports[0] : p;

	return c->trusted || (c->requester && (c->requester == end || sm_pkey_common(c->requester, end)));
}

/* ---- ClassPortInfo ---- */

static void class_port_info(struct sa_call *c)
{
	u8 info[CPI_SIZE] = { 0 };

	wire_set(info, CPI_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(info, CPI_CLASS_VERSION, MAD_CLASS_VERSION_SA);
	wire_set(info, CPI_CAP_MASK,
		 SA_CAP_OPTIONAL_RECORDS | SA_CAP_UD_MULTICAST | SA_CAP_MULTI_PATH | SA_CAP_PORT_INFO_CAP_MASK_MATCH |
			 CPI_CAP_HAS_CAP_MASK2);
	wire_set(info, CPI_CAP_MASK2,
		 SA_CAP2_FULL_PORT_INFO_RECORD | SA_CAP2_EXT_SPEEDS | SA_CAP2_SEND_ONLY_FULL_MEMBER);
	wire_set(info, CPI_RESP_TIME, 16); /* 268 ms */
	sm_sa_size(c, sizeof(info));
	sm_sa_emit(c, info);
}

/* ---- dispatch ---- */

enum kind {
	KIND_GET = 1,
	KIND_TABLE = 2,
	KIND_SET = 4,
	KIND_DELETE = 8,
	KIND_MULTI = 16
};

static const struct handler {
	u16 attr;
	u8 kinds;
	u16 size; /* minimum length of the attribute in a request, and of a record unless fn() sets another */
	void (*fn)(struct sa_call *c);
} handlers[] = {
	{ SA_ATTR_CLASS_PORT_INFO, KIND_GET, 0, class_port_info },
	{ SA_ATTR_NODE_RECORD, KIND_GET | KIND_TABLE, NODEREC_SIZE, sm_sa_node_record },
	{ SA_ATTR_PORT_INFO_RECORD, KIND_GET | KIND_TABLE, PORTINFOREC_SIZE, sm_sa_port_info_record },
	{ SA_ATTR_SWITCH_INFO_RECORD, KIND_GET | KIND_TABLE, SWITCHINFOREC_SIZE, sm_sa_switch_info_record },
	{ SA_ATTR_LINK_RECORD, KIND_GET | KIND_TABLE, LINKREC_SIZE, sm_sa_link_record },
	{ SA_ATTR_SM_INFO_RECORD, KIND_GET | KIND_TABLE, SMINFOREC_SIZE, sm_sa_sm_info_record },
	{ SA_ATTR_GUID_INFO_RECORD, KIND_GET | KIND_TABLE, GUIDINFOREC_SIZE, sm_sa_guid_info_record },
	{ SA_ATTR_PKEY_TABLE_RECORD, KIND_GET | KIND_TABLE, PKEYREC_SIZE, sm_sa_pkey_record },
	{ SA_ATTR_LFT_RECORD, KIND_GET | KIND_TABLE, LFTREC_SIZE, sm_sa_lft_record },
	{ SA_ATTR_MFT_RECORD, KIND_GET | KIND_TABLE, MFTREC_SIZE, sm_sa_mft_record },
	{ SA_ATTR_SL_TO_VL_RECORD, KIND_GET | KIND_TABLE, SLTOVLREC_SIZE, sm_sa_sl2vl_record },
	{ SA_ATTR_VL_ARB_RECORD, KIND_GET | KIND_TABLE, VLARBREC_SIZE, sm_sa_vlarb_record },
	{ SA_ATTR_PATH_RECORD, KIND_GET | KIND_TABLE, PATHREC_SIZE, sm_sa_path_record },
	{ SA_ATTR_MULTI_PATH_RECORD, KIND_MULTI, MULTIPATHREC_HDR_SIZE, sm_sa_multi_path_record },
	{ SA_ATTR_MCMEMBER_RECORD, KIND_GET | KIND_TABLE, MCMEMBER_SIZE, sm_sa_mcmember_get },
	{ SA_ATTR_MCMEMBER_RECORD, KIND_SET, MCMEMBER_SIZE, sm_sa_mcmember_join },
	{ SA_ATTR_MCMEMBER_RECORD, KIND_DELETE, MCMEMBER_SIZE, sm_sa_mcmember_leave },
	{ SA_ATTR_SERVICE_RECORD, KIND_GET | KIND_TABLE, SERVICEREC_SIZE, sm_sa_service_get },
	{ SA_ATTR_SERVICE_RECORD, KIND_SET, SERVICEREC_SIZE, sm_sa_service_set },
	{ SA_ATTR_SERVICE_RECORD, KIND_DELETE, SERVICEREC_SIZE, sm_sa_service_delete },
	{ SA_ATTR_INFORM_INFO, KIND_SET, INFORMINFO_SIZE, sm_sa_inform_set },
	{ SA_ATTR_INFORM_INFO_RECORD, KIND_GET | KIND_TABLE, INFORMINFOREC_SIZE, sm_sa_inform_record },
};

static u8 kind_of(u8 method)
{
	switch (method) {
	case MAD_METHOD_GET:
		return KIND_GET;
	case MAD_METHOD_SET:
		return KIND_SET;
	case SA_METHOD_GET_TABLE:
		return KIND_TABLE;
	case SA_METHOD_GET_MULTI:
		return KIND_MULTI;
	case SA_METHOD_DELETE:
		return KIND_DELETE;
	default:
		return 0;
	}
}

static bool multi_packet(u8 method)
{
	return method == SA_METHOD_GET_TABLE || method == SA_METHOD_GET_MULTI;
}

static void sa_handle(struct sa_call *c)
{
	const struct handler *h = handlers, *end = handlers + ARRAY_SIZE(handlers);
	u16 attr = wire_get(c->mad, MAD_ATTR_ID);
	u8 kind = kind_of(c->method);

	while (h < end && (h->attr != attr || !(h->kinds & kind)))
		h++;
	if (wire_get(c->mad, MAD_CLASS_VERSION) != MAD_CLASS_VERSION_SA)
		c->status = MAD_STATUS_BAD_VERSION;
	else if (!kind)
		c->status = MAD_STATUS_BAD_METHOD;
	else if (h == end)
		c->status = MAD_STATUS_BAD_METHOD_ATTR;
	else if (c->query_len < h->size)
		c->status = SA_STATUS_REQ_INVALID;
	else if (!c->requester && !c->trusted)
		c->status = SA_STATUS_REQ_INVALID;
	if (c->status)
		return;
	sm_sa_size(c, h->size);
	h->fn(c);
	if (c->status || multi_packet(c->method))
		return;
	/* 15.2.2: Get has exactly one record; a table may be empty. */
	if (!c->nrecords)
		c->status = SA_STATUS_NO_RECORDS;
	else if (c->nrecords > 1)
		c->status = SA_STATUS_TOO_MANY_RECORDS;
}

/* ---- responses ---- */

struct deferred {
	struct list link;
	struct mad_addr to;
	u32 len, computed; /* sent when trees were computed after that (sm.mcast_computed), and their MFTs are set */
	u8 mad[];
};

/* Sets the response headers from those of the request. */
static u32 sa_finish(struct sa_call *c)
{
	bool rmpp = multi_packet(c->method) && !c->status;
	u32 len = SA_DATA + c->nrecords * c->stride;
	u8 *h = c->out;

	memcpy(h, c->mad, SA_DATA);
	memset(h + MAD_HDR_SIZE, 0, RMPP_HDR_SIZE);
	wire_set(h, MAD_METHOD, c->method == MAD_METHOD_SET ? MAD_METHOD_GET_RESP : c->method | MAD_METHOD_RESP);
	wire_set(h, MAD_STATUS, c->status);
	wire_set(h, SA_ATTR_OFFSET, c->nrecords ? c->stride / 8 : 0);
	if (rmpp) {
		wire_set(h, RMPP_VERSION, RMPP_VERSION_1);
		wire_set(h, RMPP_TYPE, RMPP_TYPE_DATA);
		wire_set(h, RMPP_FLAGS, RMPP_FLAG_ACTIVE);
		return len;
	}
	if (len < MAD_SIZE)
		memset(h + len, 0, MAD_SIZE - len);
	if (c->status) /* an error returns the attribute of the request */
		memcpy(h + SA_DATA, c->query, min(c->query_len, (u32)SA_DATA_SIZE));
	return MAD_SIZE;
}

static void sa_send(struct sm *sm, const u8 *mad, u32 len, const struct mad_addr *to)
{
	(void)sm->ops->send(sm->transport, mad, len, to, 0, RMPP_RETRIES, NULL); /* the requester retries a lost MAD */
}

static void sa_defer_response(struct sm *sm, const struct sa_call *c, u32 len)
{
	struct deferred *h = sm->ndeferred < DEFERRED_MAX ? malloc(sizeof(*h) + len) : NULL;

	if (!h) { /* dropped: the requester retries */
		sm->st.sa_deferred_dropped++;
		return;
	}
	sm->ndeferred++;
	h->to = *c->from;
	h->len = len;
	h->computed = sm->mcast_computed - !c->wait->dirty;
	memcpy(h->mad, c->out, len);
	list_add(&sm->deferred, &h->link);
}

/* The tables of the latest trees are set: sends the responses that were deferred before these were computed. */
static void sa_flush(struct sm *sm)
{
	struct deferred *h, *tmp;

	list_for_each_safe (h, tmp, &sm->deferred, link) {
		if (h->computed == sm->mcast_computed)
			return; /* and so are those behind it */
		list_del(&h->link);
		sm->ndeferred--;
		sa_send(sm, h->mad, h->len, &h->to);
		free(h);
	}
}

/*
 * The requesters repeat their requests at the SA of the next master after its client reregistration (14.4.11). What
 * they request and withdraw there would be unknown here, when this manager is the master again.
 */
static void sa_resign(struct sm *sm)
{
	struct deferred *h, *tmp;

	sm_inform_drop_all(sm);
	sm_service_fini(sm);

	list_for_each_safe (h, tmp, &sm->deferred, link) {
		list_del(&h->link);
		sm->ndeferred--;
		sm->st.sa_deferred_dropped++;
		free(h);
	}
}

static void sa_receive(struct sm *sm, const u8 *data, u32 len, const struct mad_addr *from)
{
	struct sa_call c = { .sm = sm, .mad = data, .len = len, .from = from, .method = wire_get(data, MAD_METHOD) };
	u64 key = len < SA_DATA ? 0 : wire_get(data, SA_SM_KEY);

	if (len < SA_DATA || !sm_is_master(sm))
		return;
	sm->st.sa_requests++;
	if (key && key != sm->cfg.sa_key) { /* discarded, so that guessing a key gives no information (15.4.1.2) */
		sm->st.sa_errors++;
		sm->st.sa_key_errors++;
		sm_log_peer(sm, LOG_WARN, from->lid, "a request from LID %u has a wrong SM_Key", from->lid);
		return;
	}
	c.requester = sm_port_by_lid(sm, from->lid);
	c.trusted = sm->cfg.sa_key && wire_get(data, SA_SM_KEY) == sm->cfg.sa_key;
	c.comp = wire_get(data, SA_COMP_MASK);
	c.query = data + SA_DATA;
	c.query_len = len - SA_DATA;
	c.out = malloc(MAD_SIZE);
	if (!c.out)
		return;
	c.cap = MAD_SIZE;
	sa_handle(&c);
	if (c.status) {
		sm->st.sa_errors++;
		c.nrecords = 0;
		sm_log(sm, LOG_DEBUG, "%s of %s from LID %u: %s", wire_mad_method_name(c.method),
		       wire_sa_attr_name(wire_get(data, MAD_ATTR_ID)), from->lid, wire_sa_status_name(c.status));
	}
	len = sa_finish(&c);
	if (c.wait && !c.status)
		sa_defer_response(sm, &c, len);
	else
		sa_send(sm, c.out, len, from);
	free(c.out);
}

/* ---- init and fini ---- */

static void sa_init(struct sm *sm)
{
	list_init(&sm->deferred);
	sm_service_init(sm);
	list_init(&sm->subscribers);
	list_init(&sm->reports);
}

static void sa_fini(struct sm *sm)
{
	sa_resign(sm);
	sm_service_fini(sm);
	sm_inform_fini(sm);
}

const struct sm_sa_ops sm_sa = {
	.init = sa_init,
	.fini = sa_fini,
	.receive = sa_receive,
	.flush = sa_flush,
	.resign = sa_resign,
	.forget_port = sm_inform_forget_port,
	.report = sm_inform_report,
	.report_sent = sm_inform_report_sent,
};
