// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Netlink sockets of NETLINK_RDMA (nldev.c) and NETLINK_ROUTE (rtnl.c). A socket is one end of a pair, of which the daemon has the other;
 * requests come as writes, answers go into the pair. What the program does not read fills the pair, and further requests fail with
 * ENOBUFS.
 */
#include "emu/host/netlink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed.h"

#define SOCKET_BUFFER (1 << 20)

static const struct {
	int protocol;
	nl_answer_fn *answer;
} families[] = { { NETLINK_ROUTE, rtnl_answer }, { NETLINK_RDMA, nldev_answer } };

struct nl_socket {
	int fd;
	nl_answer_fn *answer;
};

/* Messages */

static struct nlmsghdr *message(struct nl_call *c)
{
	return (void *)(c->out.buf + c->msg);
}

void nl_begin(struct nl_call *c, u16 type)
{
	assert(nl_has_room(c, NLMSG_HDRLEN));
	c->msg = c->len;
	*message(c) = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
					 .nlmsg_type = type,
					 .nlmsg_flags = c->dump ? NLM_F_MULTI : 0,
					 .nlmsg_seq = c->req->nlmsg_seq,
					 .nlmsg_pid = c->portid };
	c->len += NLMSG_HDRLEN;
}

void nl_raw(struct nl_call *c, const void *data, u32 len)
{
	u8 *at = c->out.buf + c->len;

	assert(nl_has_room(c, NLMSG_ALIGN(len)));
	memset(at, 0, NLMSG_ALIGN(len));
	memcpy(at, data, len);
	c->len += NLMSG_ALIGN(len);
	message(c)->nlmsg_len = c->len - c->msg;
}

void nl_put(struct nl_call *c, u16 type, const void *data, u32 len)
{
	struct nlattr a = { .nla_len = (u16)(NLA_HDRLEN + len), .nla_type = type };

	nl_raw(c, &a, sizeof(a));
	nl_raw(c, data, len);
}

void nl_put_u8(struct nl_call *c, u16 type, u8 v)
{
	nl_put(c, type, &v, sizeof(v));
}

void nl_put_u16(struct nl_call *c, u16 type, u16 v)
{
	nl_put(c, type, &v, sizeof(v));
}

void nl_put_u32(struct nl_call *c, u16 type, u32 v)
{
	nl_put(c, type, &v, sizeof(v));
}

void nl_put_u64(struct nl_call *c, u16 type, u64 v)
{
	nl_put(c, type, &v, sizeof(v));
}

void nl_put_string(struct nl_call *c, u16 type, const char *s)
{
	nl_put(c, type, s, (u32)strlen(s) + 1);
}

u32 nl_nest_begin(struct nl_call *c, u16 type)
{
	u32 at = c->len;

	nl_put(c, type, "", 0);
	return at;
}

void nl_nest_end(struct nl_call *c, u32 at)
{
	u16 len = (u16)(c->len - at);

	memcpy(c->out.buf + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

bool nl_has_room(const struct nl_call *c, u32 len)
{
	return c->len + len <= NL_ANSWER_MAX;
}

void nl_send(struct nl_call *c)
{
	if (c->len && !c->err && send(c->sock, c->out.buf, c->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		c->err = -ENOBUFS;
	c->len = c->msg = 0;
}

/* The acknowledgement (0) or the error of a request, or the end of a dump. */
static void end(struct nl_call *c, int result)
{
	struct nlmsgerr e = { .error = result, .msg = *c->req };
	bool done = c->dump && !result;

	if (!nl_has_room(c, NLMSG_HDRLEN + sizeof(e)))
		nl_send(c);
	nl_begin(c, done ? NLMSG_DONE : NLMSG_ERROR);
	message(c)->nlmsg_flags |= done ? 0 : NLM_F_CAPPED;
	nl_raw(c, &e, done ? sizeof(e.error) : sizeof(e));
	nl_send(c);
}

/* Attributes of requests */

void nl_attrs(const struct nl_call *c, u32 header, const struct nlattr **attr, u32 n)
{
	const u8 *at = (const u8 *)c->req + NLMSG_HDRLEN, *end = (const u8 *)c->req + c->req->nlmsg_len;
	const struct nlattr *a;
	u16 type;

	memset(attr, 0, n * sizeof(*attr));
	at += min((long)NLMSG_ALIGN(header), (long)(end - at));
	while (end - at >= NLA_HDRLEN) {
		a = (const void *)at;
		if (a->nla_len < NLA_HDRLEN || a->nla_len > end - at)
			return;
		type = a->nla_type & NLA_TYPE_MASK;
		if (type < n)
			attr[type] = a;
		at += min((long)NLA_ALIGN(a->nla_len), (long)(end - at));
	}
}

u32 nl_u32(const struct nlattr *a, u32 none)
{
	u32 v = none;

	if (a && nl_len(a) >= sizeof(v))
		memcpy(&v, nl_data(a), sizeof(v));
	return v;
}

bool nl_is(const struct nlattr *a, const char *text)
{
	size_t len = strlen(text);

	return a && strnlen(nl_data(a), nl_len(a)) == len && !memcmp(nl_data(a), text, len);
}

/* The socket */

/* @in begins with the address of the socket, which has a struct sockaddr_nl's size: requests behind it are aligned. */
static ssize_t netlink_command(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			       int *out_fd)
{
	const struct nl_socket *s = f->priv;
	struct nl_call c = { .host = f->host, .server = f->server, .sock = s->fd };
	const u8 *at = in, *last = at + in_len;
	struct sockaddr_nl own;
	struct nlmsghdr hdr;
	int result;

	*out_len = 0;
	if (in_len < sizeof(own))
		return -EINVAL;
	memcpy(&own, in, sizeof(own));
	at += sizeof(own);
	c.portid = own.nl_pid;
	while (!c.err && last - at >= (long)sizeof(hdr)) {
		c.req = (const void *)at;
		hdr = *c.req;
		if (hdr.nlmsg_len < sizeof(hdr) || hdr.nlmsg_len > last - at)
			break;
		at += min((long)NLMSG_ALIGN(hdr.nlmsg_len), (long)(last - at));
		if (!(hdr.nlmsg_flags & NLM_F_REQUEST) || hdr.nlmsg_type < NLMSG_MIN_TYPE)
			continue;
		c.dump = (hdr.nlmsg_flags & NLM_F_DUMP) != 0;
		result = s->answer(&c);
		if (result || c.dump || hdr.nlmsg_flags & NLM_F_ACK)
			end(&c, result);
		nl_send(&c);
	}
	return c.err ? c.err : (ssize_t)in_len;
}

/* @unit: the protocol. */
static int netlink_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	int size = SOCKET_BUFFER, fds[2];
	struct nl_socket *s;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(families) && families[i].protocol != (int)unit;)
		i++;
	if (i == ARRAY_SIZE(families))
		return -EPROTONOSUPPORT;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		free(s);
		return -errno;
	}
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*s = (struct nl_socket){ fds[0], families[i].answer };
	f->priv = s;
	*fd = fds[1];
	return 0;
}

static void netlink_close(struct uv_file *f)
{
	struct nl_socket *s = f->priv;

	passed_close_socket(s->fd, 0);
	free(s);
}

const struct uv_file_ops netlink_file_ops = { .open = netlink_open,
					      .command = netlink_command,
					      .close = netlink_close };
