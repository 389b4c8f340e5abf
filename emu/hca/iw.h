/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of an iWARP transport, over TCP: the calls that the transport offers to the connection manager, as
 * drivers do in struct ib_device_ops (iw_connect, iw_accept...).
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
	u32 scope; /* interface index of a link-local address */
};

struct hca_iw_param {
	u64 owner;   /* hca_qp_owner(): a QP of another context is rejected */
	u32 qpn;     /* in INIT; the connection moves it to RTS */
	u8 ird, ord; /* outstanding inbound and outbound READs */
	const u8 *data;
	u16 data_len;
};

enum hca_iw_event_type {
	HCA_IW_REQUEST,     /* at a listener */
	HCA_IW_REPLY,       /* result of hca_iw_ops.connect */
	HCA_IW_ESTABLISHED, /* at the accepting side */
	HCA_IW_CLOSED       /* of an established connection; accept(), reject() of a withdrawn request: -ECONNRESET */
};

/* Pointers are valid during the call. */
struct hca_iw_event {
	enum hca_iw_event_type type;
	int status; /* REPLY: 0; -ECONNREFUSED, with data if the peer rejected; -ECONNRESET, -ETIMEDOUT, -EPROTO... */
	struct hca_iw_addr local, remote;
	u8 ird, ord; /* own, as negotiated; REQUEST: the peer's limits */
	const u8 *data;
	u16 data_len;
};

/*
 * Never called before the call whose result it reports has returned. REQUEST has a new @conn: call hca_iw_ops.own()
 * and return 0 to take it, or return -errno to reject it. Must not destroy @conn or the queue pair.
 */
typedef int hca_iw_event_fn(void *ctx, struct hca_iw_conn *conn, const struct hca_iw_event *ev);

struct hca_iw_ops {
	/* @src: port 0: any, then filled in. 0; -EINVAL: invalid queue pair; or -errno of TCP. */
	int (*connect)(struct hca *hca, struct hca_iw_addr *src, const struct hca_iw_addr *dst,
		       const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx, struct hca_iw_conn **conn);
	/* Listens at all addresses; if one fails, at none. */
	int (*listen)(struct hca *hca, const struct hca_iw_addr *addr, u32 n, hca_iw_event_fn *fn, void *ctx,
		      struct hca_iw_listener **l);
	void (*unlisten)(struct hca_iw_listener *l);
	void (*own)(struct hca_iw_conn *conn, hca_iw_event_fn *fn, void *ctx);
	/* Accepts a REQUEST. -EINVAL: invalid queue pair, or too much private data;
	 * -ECONNRESET: the peer has closed. */
	int (*accept)(struct hca_iw_conn *conn, const struct hca_iw_param *p);
	int (*reject)(struct hca_iw_conn *conn, const u8 *data, u16 len);
	/* Closes in order: bytes that TCP has accepted are delivered; CLOSED follows. -EINVAL: not connected. */
	int (*disconnect)(struct hca_iw_conn *conn);
	void (*destroy)(struct hca_iw_conn *conn); /* closes an established connection */
};

/* NULL: the transport has no connections of its own. */
const struct hca_iw_ops *hca_iw(const struct hca *hca);

#endif
