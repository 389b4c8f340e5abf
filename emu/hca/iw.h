/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of a transport that makes them itself, over TCP: iWARP. The transport offers these calls to whoever manages
 * connections by address, as the kernel's drivers offer theirs to iw_cm.
 */
#ifndef MUSLIN_HCA_IW_H
#define MUSLIN_HCA_IW_H

#include "emu/hca/hca.h"
#include "emu/wire/ip.h"

struct hca_iw_conn;
struct hca_iw_listener;

struct hca_iw_addr {
	struct ip_addr ip;
	u16 port;
	u32 scope; /* of a link-local address: its interface */
};

struct hca_iw_param {
	u32 qpn;     /* in INIT; comes to RTS with the connection */
	u8 ird, ord; /* READs from the peer, and to it, at a time */
	const u8 *data;
	u16 data_len;
};

enum hca_iw_event_type {
	HCA_IW_REQUEST,     /* at a listener */
	HCA_IW_REPLY,       /* to hca_iw_ops.connect: connected, or not */
	HCA_IW_ESTABLISHED, /* at the accepting side */
	HCA_IW_CLOSED       /* connected before. Of a request that is withdrawn, accept and reject tell: -ECONNRESET */
};

/* Pointers are valid during the call. */
struct hca_iw_event {
	enum hca_iw_event_type type;
	int status; /* REPLY: 0; -ECONNREFUSED, with data where the peer's program refused; -ECONNRESET, -ETIMEDOUT, -EPROTO... */
	struct hca_iw_addr local, remote;
	u8 ird, ord; /* own, as agreed; of a REQUEST: the most that the peer allows */
	const u8 *data;
	u16 data_len;
};

/*
 * Never called before the call that it answers has returned. A REQUEST comes with a new @conn: 0, and it is the listener's owner's,
 * who has called hca_iw_ops.own(); -errno: it is refused. Must not destroy @conn, nor the queue pair.
 */
typedef int hca_iw_event_fn(void *ctx, struct hca_iw_conn *conn, const struct hca_iw_event *ev);

struct hca_iw_ops {
	/* @src: port 0: any; it is filled in. 0, or -errno: -EINVAL: the queue pair; what the machine's TCP says. */
	int (*connect)(struct hca *hca, struct hca_iw_addr *src, const struct hca_iw_addr *dst,
		       const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx, struct hca_iw_conn **conn);
	/* Listens at addresses of the machine: all or none. */
	int (*listen)(struct hca *hca, const struct hca_iw_addr *addr, u32 n, hca_iw_event_fn *fn, void *ctx,
		      struct hca_iw_listener **l);
	void (*unlisten)(struct hca_iw_listener *l);
	void (*own)(struct hca_iw_conn *conn, hca_iw_event_fn *fn, void *ctx);
	/* Of a request. -EINVAL: the queue pair, or too much private data; -ECONNRESET: the peer has gone. */
	int (*accept)(struct hca_iw_conn *conn, const struct hca_iw_param *p);
	int (*reject)(struct hca_iw_conn *conn, const u8 *data, u16 len);
	/* What TCP has taken still arrives; CLOSED follows. -EINVAL: it is not connected. */
	int (*disconnect)(struct hca_iw_conn *conn);
	void (*destroy)(struct hca_iw_conn *conn); /* a connection goes on without its owner */
};

/* NULL: the adapter's transport has no such connections. */
const struct hca_iw_ops *hca_iw(const struct hca *hca);

#endif
