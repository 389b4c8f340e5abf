/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA connection management by address, as the kernel's rdma_cm, on the communication manager and the IPoIB endpoints
 * of a host. Event types, port spaces, statuses and -errno are the kernel's (rdma/rdma_cma.h).
 */
#ifndef MUSLIN_RDMACM_H
#define MUSLIN_RDMACM_H

#include <infiniband/ib.h>
#include <netinet/in.h>

#include "emu/cm/cm.h"
#include "emu/ipoib/ipif.h"

#define RDMA_PORTS 8

struct rdma_host;
struct rdma_id;
struct rdma_mcast;

/* An address of any supported family: AF_INET, AF_INET6, AF_IB; AF_UNSPEC: none. */
union rdma_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
};
u32 rdma_sockaddr_len(const union rdma_sockaddr *a); /* 0 for none and for an unknown family */

enum rdma_space { /* RDMA_PS_* */
	RDMA_SPACE_IPOIB = 0x0002,
	RDMA_SPACE_TCP = 0x0106,
	RDMA_SPACE_UDP = 0x0111,
	RDMA_SPACE_IB = 0x013f,
};

enum rdma_event_type { /* RDMA_CM_EVENT_* */
	RDMA_EVENT_ADDR_RESOLVED,
	RDMA_EVENT_ADDR_ERROR,
	RDMA_EVENT_ROUTE_RESOLVED,
	RDMA_EVENT_ROUTE_ERROR,
	RDMA_EVENT_CONNECT_REQUEST,
	RDMA_EVENT_CONNECT_RESPONSE,
	RDMA_EVENT_CONNECT_ERROR,
	RDMA_EVENT_UNREACHABLE,
	RDMA_EVENT_REJECTED,
	RDMA_EVENT_ESTABLISHED,
	RDMA_EVENT_DISCONNECTED,
	RDMA_EVENT_DEVICE_REMOVAL,
	RDMA_EVENT_MULTICAST_JOIN,
	RDMA_EVENT_MULTICAST_ERROR,
	RDMA_EVENT_ADDR_CHANGE,
	RDMA_EVENT_TIMEWAIT_EXIT
};

/* Connection parameters that one side sends to the other. Also the response to a datagram service request. */
struct rdma_conn {
	u64 owner;     /* of the own QP, hca_qp_owner(), if the user may connect it; 0: it may not */
	u32 qpn, qkey; /* qkey 0: the port space's */
	u8 responder_resources, initiator_depth, retry_count, rnr_retry_count;
	bool flow_control, srq;
	const u8 *data;
	u8 data_len;
};

/* Pointers are valid during the call. */
struct rdma_event {
	enum rdma_event_type type;
	int status; /* 0, -errno, or the reason of a REJ, or the status of a SIDR_REP */
	struct rdma_conn conn;
	struct hca_av av;         /* datagrams and groups */
	struct rdma_id *request;  /* CONNECT_REQUEST: the new id */
	struct rdma_mcast *mcast; /* MULTICAST_* */
};

/* @ctx is the id's; for a CONNECT_REQUEST the listener's, and a result other than 0 rejects it and frees the
 * new id. Must not destroy @id. */
typedef int rdma_event_fn(void *ctx, struct rdma_id *id, const struct rdma_event *ev);

struct rdma_host_config {
	struct loop *loop;
	struct hca *hca;
	u8 nports;
	struct mad_port *mp[RDMA_PORTS];
	struct ip_addr v4[RDMA_PORTS], v6[RDMA_PORTS]; /* zero: none */
	u8 v4_len[RDMA_PORTS], v6_len[RDMA_PORTS];
	bool apm; /* connections propose alternate paths if ports have several LIDs */
	u64 seed;
};

/* Everything in @cfg is copied or must outlive it. NULL: out of memory, or the CM class has an agent already. */
struct rdma_host *rdma_host_create(const struct rdma_host_config *cfg);
void rdma_host_destroy(struct rdma_host *h); /* ids must be destroyed; NULL is allowed */
/* The device was removed: reports DEVICE_REMOVAL to each id bound to it. Or it is back. */
void rdma_host_unplug(struct rdma_host *h, bool unplugged);
struct cm *rdma_host_cm(const struct rdma_host *h);
struct ipif *rdma_host_ipif(const struct rdma_host *h, u8 port);
u64 rdma_host_node_guid(const struct rdma_host *h);

struct rdma_id *rdma_id_create(struct rdma_host *h, enum rdma_space ps, enum hca_qp_type type, rdma_event_fn *fn,
			       void *ctx); /* NULL if out of memory */
void rdma_id_destroy(struct rdma_id *id);
void rdma_id_set_ctx(struct rdma_id *id, void *ctx);

int rdma_id_bind(struct rdma_id *id, const union rdma_sockaddr *addr);
int rdma_id_resolve_addr(struct rdma_id *id, const union rdma_sockaddr *src, const union rdma_sockaddr *dst,
			 u32 timeout_ms);
int rdma_id_resolve_route(struct rdma_id *id, u32 timeout_ms);
/* Sets a path that the caller has obtained otherwise, as if the route were resolved. */
int rdma_id_set_path(struct rdma_id *id, const struct sa_path *path);
int rdma_id_listen(struct rdma_id *id);
int rdma_id_connect(struct rdma_id *id, const struct rdma_conn *conn);
int rdma_id_accept(struct rdma_id *id, const struct rdma_conn *conn); /* @conn NULL: the active side sends the RTU */
int rdma_id_reject(struct rdma_id *id, u16 reason, const u8 *data, u8 len);
int rdma_id_disconnect(struct rdma_id *id);
/* The program reports an event of its queue pair: COMM_EST, PATH_MIG. */
int rdma_id_event(struct rdma_id *id, enum hca_event_type event);
/* Attributes for hca_qp_modify() to @state (INIT, RTR, RTS) with their mask. */
int rdma_id_qp_attr(struct rdma_id *id, enum hca_qp_state state, struct hca_qp_attr *attr, u32 *mask);

int rdma_id_set_reuse(struct rdma_id *id, bool on);  /* -EINVAL if it listens, or is bound and loses it */
int rdma_id_set_v6only(struct rdma_id *id, bool on); /* -EINVAL if bound */
void rdma_id_set_tos(struct rdma_id *id, u8 tos);
int rdma_id_set_ack_timeout(struct rdma_id *id, u8 code); /* -EINVAL unless RC */

enum hca_qp_type rdma_id_qp_type(const struct rdma_id *id);
enum rdma_space rdma_id_space(const struct rdma_id *id);
u8 rdma_id_state(const struct rdma_id *id); /* the kernel's enum rdma_cm_state */
u32 rdma_id_qpn(const struct rdma_id *id);  /* 0: none yet */
const union rdma_sockaddr *rdma_id_src(const struct rdma_id *id);
const union rdma_sockaddr *rdma_id_dst(const struct rdma_id *id);
u8 rdma_id_port(const struct rdma_id *id); /* 0: not bound */
u16 rdma_id_pkey(const struct rdma_id *id);
u64 rdma_id_service(const struct rdma_id *id, const union rdma_sockaddr *a);
void rdma_id_gids(const struct rdma_id *id, struct wire_gid *sgid, struct wire_gid *dgid); /* zero if unknown */
const struct sa_path *rdma_id_path(const struct rdma_id *id);                              /* NULL if not resolved */

/* Joins the group of @addr; events refer to the result. NULL with *err set. */
struct rdma_mcast *rdma_mcast_join(struct rdma_id *id, const union rdma_sockaddr *addr, bool send_only, void *ctx,
				   int *err);
void rdma_mcast_leave(struct rdma_mcast *m);
void *rdma_mcast_ctx(const struct rdma_mcast *m);

#endif
