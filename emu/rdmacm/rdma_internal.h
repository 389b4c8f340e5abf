/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to rdma_cm. */
#ifndef MUSLIN_RDMACM_RDMA_INTERNAL_H
#define MUSLIN_RDMACM_RDMA_INTERNAL_H

#include "emu/hca/iw.h"
#include "emu/lib/rng.h"
#include "emu/rdmacm/rdmacm.h"

#define RDMA_UDP_QKEY         0x01234567u
#define RDMA_RESPONSE_TIMEOUT 20 /* code: 4.3 s */
#define RDMA_CM_RETRIES       15
#define RDMA_OWNERS           1024

enum rdma_state {
	RDMA_IDLE,
	RDMA_BOUND,
	RDMA_ADDR_QUERY,
	RDMA_ADDR_RESOLVED,
	RDMA_ROUTE_QUERY,
	RDMA_ROUTE_RESOLVED,
	RDMA_CONNECT,
	RDMA_DISCONNECT,
	RDMA_LISTEN,
};

struct rdma_port {
	u8 num;
	struct wire_port *wire;
	struct sa_client *sa;
	struct ipif *ip;
	struct mad_watch watch;
};

struct rdma_host {
	struct loop *loop;
	struct hca *hca;
	struct cm *cm;
	const struct hca_iw_ops *iw; /* iWARP connection operations; NULL: InfiniBand CM */
	struct rng rng;
	bool apm;
	bool unplugged; /* no device */
	u8 nports;
	struct rdma_port port[RDMA_PORTS];
	struct list ids;
	struct list owners[RDMA_OWNERS]; /* of port numbers: by the number modulo RDMA_OWNERS */
};

struct rdma_id {
	struct list link; /* rdma_host.ids */
	struct rdma_host *host;
	enum rdma_space ps;
	enum hca_qp_type type;
	enum rdma_state state;
	rdma_event_fn *fn;
	void *ctx;
	union rdma_sockaddr src, dst;
	struct rdma_port *port; /* NULL: not bound */
	struct {                /* what src and port become when the address is resolved */
		union rdma_sockaddr src;
		struct rdma_port *port;
	} found;
	struct list port_link; /* rdma_host.owners, while the port number of src is taken in the port space */
	bool chosen_port;      /* chosen by the user; otherwise any port may be used */
	bool reuse, v6only;
	u8 tos, ack_timeout;
	bool ack_timeout_set;
	struct wire_gid dgid;
	struct sa_path path;
	bool has_path;
	u32 psn, qkey, qpn;
	u64 owner; /* of qpn */
	struct cm_id *cm;
	struct cm_listener *listener;
	struct hca_iw_conn *iw;
	struct hca_iw_listener *iw_listener;
	struct ipif_query *resolving;
	struct sa_query *routing;
	struct loop_task later; /* reports results from the loop */
	struct list mcasts;
};

struct rdma_mcast {
	struct list link; /* rdma_id.mcasts */
	struct rdma_id *id;
	void *ctx;
	union rdma_sockaddr addr;
	struct sa_mcast *mcast;
	u8 join_state;
	struct loop_timer later; /* retries while the link has no broadcast group */
	u32 waits;
};

/* rdma_addr.c */
bool rdma_sockaddr_is_ip(const union rdma_sockaddr *a);
struct ip_addr rdma_sockaddr_ip(const union rdma_sockaddr *a);
void rdma_sockaddr_set_ip(union rdma_sockaddr *a, const struct ip_addr *ip, u16 port);
bool rdma_sockaddr_is_any(const union rdma_sockaddr *a);
bool rdma_sockaddr_is_loopback(const union rdma_sockaddr *a);
u16 rdma_sockaddr_port(const union rdma_sockaddr *a); /* host order */
void rdma_sockaddr_set_port(union rdma_sockaddr *a, u16 port);
/* Without the port. */
bool rdma_sockaddr_same(const union rdma_sockaddr *a, const union rdma_sockaddr *b);

/* rdma_id.c */
int rdma_id_notify(struct rdma_id *id, enum rdma_event_type type, int status);
/* Reports ADDR_RESOLVED or ROUTE_RESOLVED, according to @querying, and sets that state, from the loop. */
void rdma_id_resolved_later(struct rdma_id *id, enum rdma_state querying);
/* Ends the resolution of an address: with @status 0 the ID gets what was found. */
void rdma_addr_resolved(struct rdma_id *id, int status);
struct hca_av rdma_path_av(const struct rdma_port *p, const struct sa_path *path);
struct rdma_port *rdma_host_port_of(struct rdma_host *h, const struct ip_addr *a); /* port with the address; NULL */
struct rdma_port *rdma_host_port_by_gid(struct rdma_host *h, const struct wire_gid *gid);
struct rdma_port *rdma_host_active(struct rdma_host *h); /* the first port that is up, or the first of all */
u32 rdma_id_space_qkey(const struct rdma_id *id);

/* rdma_request.c: a listener's requests */
cm_request_fn rdma_id_requested;
#define RDMA_IP_OFFSET CM_IP_HDR_SIZE
u8 rdma_id_data_offset(const struct rdma_id *id);
void rdma_id_put_header(const struct rdma_id *id, u8 *p);

/* rdma_connect.c */
cm_event_fn rdma_id_connected;
void rdma_id_disconnected(struct rdma_id *id, int status);

/* rdma_iw.c: as in rdmacm.h, for ids on a host with iw */
int rdma_iw_listen(struct rdma_id *id);
int rdma_iw_connect(struct rdma_id *id, const struct rdma_conn *conn);
int rdma_iw_accept(struct rdma_id *id, const struct rdma_conn *conn);
int rdma_iw_reject(struct rdma_id *id, const u8 *data, u8 len);
int rdma_iw_disconnect(struct rdma_id *id);
void rdma_iw_destroy(struct rdma_id *id);
int rdma_iw_qp_attr(const struct rdma_id *id, enum hca_qp_state state, struct hca_qp_attr *a, u32 *mask);

#endif
