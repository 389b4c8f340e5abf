/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subnet administration: declarations shared by its files. */
#ifndef MUSLIN_SM_SA_INTERNAL_H
#define MUSLIN_SM_SA_INTERNAL_H

#include "sm/sm_internal.h"

/* A bit of a component mask and its field, in an attribute that starts @at bytes into the record. */
struct sa_field {
	u8 comp, at;
	struct wire_field field;
};

/* A request and its response: records of equal size. */
struct sa_call {
	struct sm *sm;
	const u8 *mad; /* as received */
	u32 len;
	const struct mad_addr *from;
	struct sm_port *requester; /* NULL: unknown in the subnet */
	bool trusted;              /* the request has the SM_Key */
	u8 method;
	u64 comp;
	const u8 *query; /* the attribute, of @query_len bytes */
	u32 query_len;
	u8 *out; /* headers, then records */
	u32 nrecords, cap, size, stride;
	u32 pairs; /* port pairs evaluated for paths */
	u16 status;
	const struct sm_group *wait; /* the response waits for the MFTs of that group; NULL: it does not */
};

/* sa.c */
void sm_sa_size(struct sa_call *c, u32 size);      /* of a record, if not that of the request; before the first */
bool sm_sa_emit(struct sa_call *c, const u8 *rec); /* false: no room for more */
bool sm_sa_match(const struct sa_call *c, const u8 *rec, const struct sa_field *fields, u32 n);
/* May the requester see this port? They share a partition, or it has the SM_Key (15.4.1.2). */
bool sm_sa_may_see(const struct sa_call *c, const struct sm_port *p);
static inline bool sm_sa_comp(const struct sa_call *c, u32 comp)
{
	return c->comp & SA_COMP(comp);
}

/* Handlers; they set c->status of the response. */
void sm_sa_node_record(struct sa_call *c);
void sm_sa_port_info_record(struct sa_call *c);
void sm_sa_switch_info_record(struct sa_call *c);
void sm_sa_link_record(struct sa_call *c);
void sm_sa_sm_info_record(struct sa_call *c);
void sm_sa_guid_info_record(struct sa_call *c);
void sm_sa_pkey_record(struct sa_call *c);
void sm_sa_lft_record(struct sa_call *c);
void sm_sa_mft_record(struct sa_call *c);
void sm_sa_sl2vl_record(struct sa_call *c);
void sm_sa_vlarb_record(struct sa_call *c);
void sm_sa_path_record(struct sa_call *c);
void sm_sa_multi_path_record(struct sa_call *c);
void sm_sa_mcmember_get(struct sa_call *c);
void sm_sa_mcmember_join(struct sa_call *c);
void sm_sa_mcmember_leave(struct sa_call *c);
void sm_sa_service_get(struct sa_call *c);
void sm_sa_service_set(struct sa_call *c);
void sm_sa_service_delete(struct sa_call *c);
void sm_sa_inform_set(struct sa_call *c);
void sm_sa_inform_record(struct sa_call *c);

/* sa_service.c */
void sm_service_init(struct sm *sm);
void sm_service_fini(struct sm *sm); /* drops all services */

/* sa_inform.c */
bool sm_inform_report_sent(struct sm *sm, void *cookie); /* false: @cookie is not a Report */
/* The operations of sm_sa_ops. */
void sm_inform_report(struct sm *sm, const u8 *notice, const struct sm_port *port, const struct sm_group *group);
void sm_inform_drop_all(struct sm *sm); /* subscriptions */
void sm_inform_fini(struct sm *sm);
void sm_inform_forget_port(struct sm *sm, struct sm_port *p);

#endif
