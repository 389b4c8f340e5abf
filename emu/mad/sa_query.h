/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asynchronous queries to subnet administration from one CA port: paths, and membership of multicast groups. */
#ifndef MUSLIN_MAD_SA_QUERY_H
#define MUSLIN_MAD_SA_QUERY_H

#include "emu/mad/mad.h"

struct sa_client;
struct sa_query;

/* A PathRecord in host order. IBTA 15.2.5.16. The codes are IBTA's, selectors removed. */
struct sa_path {
	struct wire_gid dgid, sgid;
	u16 dlid, slid;
	bool reversible;
	u32 flow_label;
	u8 hop_limit, traffic_class;
	u16 pkey;
	u8 sl, mtu, rate, packet_life; /* packet_life: 4.096 us * 2^n */
	u8 roce;                       /* on Ethernet: RoCE version, 0: the port's default. Not in the record */
};

/* Do packets of the path have a GRH? As in ib_core, on Ethernet, and with a hop limit. */
static inline bool sa_path_has_grh(const struct sa_path *p, const struct wire_port *port)
{
	return p->hop_limit || wire_port_is_ethernet(port);
}

/* Conversion from and to the PATHREC_SIZE bytes of a PathRecord at @a. */
void sa_path_get_record(const u8 *a, struct sa_path *p);
void sa_path_put_record(const struct sa_path *p, u8 *a);

/* An MCMemberRecord in host order. IBTA 15.2.5.17. */
struct sa_mcmember {
	struct wire_gid mgid, port_gid;
	u32 qkey, flow_label;
	u16 mlid, pkey;
	u8 mtu, rate, packet_life;
	u8 mtu_sel, rate_sel, life_sel; /* enum wire_sa_selector; used in requests only */
	u8 traffic_class, sl, hop_limit, scope, join_state;
};

/* @status: 0, MAD_TIMED_OUT, -ENETUNREACH (no SM known), -EINVAL (the SA rejected it: @sa_status is its MAD status),
 * or -ENOENT (no such path or group). @path is valid if status is 0. The query has been freed when this is called. */
typedef void sa_path_fn(void *ctx, int status, u16 sa_status, const struct sa_path *path);
typedef void sa_mcast_fn(void *ctx, int status, u16 sa_status, const struct sa_mcmember *rec);

/* @mp must outlive the client. NULL if out of memory. */
struct sa_client *sa_client_create(struct loop *loop, struct mad_port *mp);
/* Outstanding queries end without callback; groups are left, with a message to the SA if possible. */
void sa_client_destroy(struct sa_client *c);

/*
 * One reversible path from @sgid to @dgid in partition @pkey (0: any); @service_id 0, @traffic_class -1: wildcard.
 * @timeout_ms 0: 3 tries of 2000 ms; otherwise one third of it per try. The callback is not called before this
 * returns. NULL if out of memory.
 */
struct sa_query *sa_path_get_service(struct sa_client *c, const struct wire_gid *sgid, const struct wire_gid *dgid,
				     u16 pkey, u64 service_id, int traffic_class, u32 timeout_ms, sa_path_fn *cb,
				     void *ctx);
void sa_query_cancel(struct sa_query *q); /* no callback; frees q */

/*
 * A membership of (this port, MGID). The first join of a group sends a request to the SA; later ones share its result;
 * the last leave sends a delete. Lives until sa_mcast_leave(), also after a failed callback.
 */
struct sa_mcast;

/*
 * Joins @want->mgid with @want->join_state (1 full, 2 non-member, 4 send-only) from @want->port_gid. @comp: SA_COMP()
 * bits of enum wire_mcmember_comp for the other fields of @want that are to be used (PKEY, QKEY, SL, MTU with
 * MTU_SEL...); MGID, PORT_GID and JOIN_STATE are implied. With a zero MGID the SA chooses one. The callback is called
 * once; again with an error if the SA refuses the member in sa_client_rejoin().
 */
struct sa_mcast *sa_mcast_join(struct sa_client *c, const struct sa_mcmember *want, u64 comp, sa_mcast_fn *cb,
			       void *ctx);
void sa_mcast_leave(struct sa_mcast *m); /* no callback; frees m */
/* The group as last joined (a rejoin may change the MLID); valid after a callback with status 0. */
const struct sa_mcmember *sa_mcast_record(const struct sa_mcast *m);
/* After WIRE_PORT_CLIENT_REREGISTER, WIRE_PORT_SM_CHANGE or WIRE_PORT_LID_CHANGE: rejoins every group, retrying
 * until the SA responds. The callbacks of members that it refuses are called with its status; they are members no more.
 * */
void sa_client_rejoin(struct sa_client *c);

#endif
