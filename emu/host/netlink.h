/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Netlink sockets of programs: requests, and the messages that answer them. */
#ifndef MUSLIN_HOST_NETLINK_H
#define MUSLIN_HOST_NETLINK_H

#include <linux/netlink.h>

#include "emu/host/server.h"

#define NL_ANSWER_MAX 4096 /* bytes of a datagram: the buffer that libmnl's users have */

struct nl_socket;

/* Where a turn of a dump begins: at an object of a file, both by numbers that grow along the dump. */
struct nl_position {
	u64 file;
	u32 object;
};

/* A request on a socket, and the datagram of its answer that is being made. */
struct nl_call {
	struct uv_host *host;
	struct uv_server *server;
	struct nl_socket *socket;
	u32 portid; /* of the socket, by which programs know their answers; 0 in events */
	const struct nlmsghdr *req;
	bool dump, more;             /* more: the dump is not at its end, the next turn begins at @next */
	struct nl_position at, next; /* at: where this turn of the dump begins */
	u32 cost;                    /* of the work since the loop last did other work */
	union {
		struct nlmsghdr first;
		u8 buf[NL_ANSWER_MAX];
	} out;
	u32 len, msg; /* of the datagram, and where its last message begins */
	int err;      /* of sending */
};

/* A family. The answer of a request that it refuses or that it has not to answer otherwise: 0 or -errno. */
typedef int nl_answer_fn(struct nl_call *c);
nl_answer_fn nldev_answer, rtnl_answer;

/*
 * The events of NETLINK_ROUTE about the interfaces of a port: RTM_NEWLINK, and with @addresses RTM_NEWADDR, or
 * (@removed) RTM_DELLINK and RTM_DELADDR. @groups: a bit for each RTNLGRP_* that the socket is a member of.
 */
void rtnl_events(struct nl_call *c, u32 groups, const struct wire_port *port, bool addresses, bool removed);

/* Messages. Nothing is sent before nl_send(), which ends the datagram. */
void nl_begin(struct nl_call *c, u16 type);
void nl_raw(struct nl_call *c, const void *data, u32 len);
void nl_put(struct nl_call *c, u16 type, const void *data, u32 len);
void nl_put_u8(struct nl_call *c, u16 type, u8 v);
void nl_put_u16(struct nl_call *c, u16 type, u16 v);
void nl_put_u32(struct nl_call *c, u16 type, u32 v);
void nl_put_u64(struct nl_call *c, u16 type, u64 v);
void nl_put_string(struct nl_call *c, u16 type, const char *s);
u32 nl_nest_begin(struct nl_call *c, u16 type);
void nl_nest_end(struct nl_call *c, u32 at);
bool nl_has_room(const struct nl_call *c, u32 len);
void nl_send(struct nl_call *c);

/*
 * Turns of a dump. A dump calls nl_due() before each object, and passes over the object where it returns false: an
 * earlier turn has sent the object, or (c->more) a later turn will.
 */
bool nl_due(struct nl_call *c, u64 file, u32 object);

/*
 * The attributes of the request behind its header of @header bytes, by their type up to @n. What is malformed ends
 * them.
 */
void nl_attrs(const struct nl_call *c, u32 header, const struct nlattr **attr, u32 n);
static inline const void *nl_data(const struct nlattr *a)
{
	return (const u8 *)a + NLA_HDRLEN;
}
static inline u32 nl_len(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}
u32 nl_u32(const struct nlattr *a, u32 none); /* @none: there is no attribute, or it is too short */
bool nl_is(const struct nlattr *a, const char *text);

#endif
