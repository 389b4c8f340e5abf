// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Netlink sockets of NETLINK_RDMA (nldev.c) and NETLINK_ROUTE (rtnl.c). A socket is one end of a pair, of which the
 * daemon has the other; requests come as writes, answers and events go into the pair. What the program does not read
 * fills the pair, then a queue, and further requests fail with ENOBUFS.
 *
 * A dump of many objects takes turns: a turn ends after TURN_COST, and the next one begins when the program has read
 * what there is. As in the kernel a socket has one such dump at a time. A write of many requests takes turns, too: its
 * result is deferred to the last one.
 */
#include "emu/host/netlink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed.h"

#define SOCKET_BUFFER (1 << 20)
#define QUEUE_MAX \
	(256 << 10) /* bytes: more than a turn, or all interfaces, addresses, routes and neighbours of a host */
#define TURN_COST    4096
#define REQUEST_COST 64
#define OBJECT_COST  8 /* of an object that is sent; 1 of one that is not */

static const struct {
	int protocol;
	nl_answer_fn *answer;
} families[] = { { NETLINK_ROUTE, rtnl_answer }, { NETLINK_RDMA, nldev_answer } };

struct nl_datagram {
	struct list link;
	u32 len;
	u8 data[];
};

/* A port of the host, whose events go to a socket. */
struct nl_port {
	struct mad_watch watch;
	struct nl_socket *socket;
	u8 port;
};

struct nl_socket {
	int fd;
	nl_answer_fn *answer;
	struct uv_file *file;
	struct list queue;
	u32 queued; /* bytes in it */
	struct loop_fd writable;
	struct loop_timer turn;
	struct {
		struct nlmsghdr req; /* without attributes; nlmsg_len 0: there is none */
		u32 portid;
		struct nl_position next;
	} dump;
	bool due; /* the rest of one deferred write may be handled */
	u32 groups;
	struct nl_port port[UV_PORTS];
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
					 .nlmsg_flags = c->dump && type != NLMSG_ERROR ? NLM_F_MULTI : 0,
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

/* Sending */

static bool socket_send(const struct nl_socket *s, const void *data, u32 len)
{
	return send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

static int queue_add(struct nl_socket *s, const void *data, u32 len)
{
	struct nl_datagram *d = s->queued + len <= QUEUE_MAX ? malloc(sizeof(*d) + len) : NULL;

	if (!d)
		return -ENOBUFS;
	if (list_empty(&s->queue) && loop_fd_add(uv_server_loop(s->file->server), &s->writable, EPOLLOUT)) {
		free(d);
		return -ENOBUFS;
	}
	d->len = len;
	memcpy(d->data, data, len);
	list_add(&s->queue, &d->link);
	s->queued += len;
	return 0;
}

static void queue_remove(struct nl_socket *s, struct nl_datagram *d)
{
	s->queued -= d->len;
	list_del(&d->link);
	free(d);
	if (list_empty(&s->queue))
		loop_fd_del(&s->writable);
}

static void queue_clear(struct nl_socket *s)
{
	while (!list_empty(&s->queue))
		queue_remove(s, list_first(&s->queue, struct nl_datagram, link));
}

void nl_send(struct nl_call *c)
{
	struct nl_socket *s = c->socket;

	if (c->len && !c->err && !(list_empty(&s->queue) && socket_send(s, c->out.buf, c->len)))
		c->err = queue_add(s, c->out.buf, c->len);
	c->len = c->msg = 0;
}

bool nl_due(struct nl_call *c, u64 file, u32 object)
{
	if (file < c->at.file || (file == c->at.file && object < c->at.object))
		return false;
	if (!c->more && (c->cost >= TURN_COST || c->err)) {
		c->more = true;
		c->next = (struct nl_position){ file, object };
	}
	c->cost += c->more ? 0 : OBJECT_COST;
	return !c->more;
}

/*
 * The acknowledgement (0) or the error of a request, which has the request unless that is too long; or the end of a
 * dump, in a datagram of its own, as the kernel's (RTNL_FLAG_DUMP_SPLIT_NLM_DONE): programs look for it in the first
 * message.
 */
static void end(struct nl_call *c, int result)
{
	bool done = c->dump && !result, whole = result && c->req->nlmsg_len <= NL_ANSWER_MAX / 2;
	u32 copied = done ? 0 : whole ? c->req->nlmsg_len : NLMSG_HDRLEN;

	if (done || !nl_has_room(c, NLMSG_HDRLEN + (u32)sizeof(result) + NLMSG_ALIGN(copied)))
		nl_send(c);
	nl_begin(c, done ? NLMSG_DONE : NLMSG_ERROR);
	message(c)->nlmsg_flags |= done || whole ? 0 : NLM_F_CAPPED;
	nl_raw(c, &result, sizeof(result));
	nl_raw(c, c->req, copied);
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

/* A turn in the next iteration of the loop. Not a task: commands of other files may run tasks before they end. */
static void turn_set(struct nl_socket *s)
{
	struct loop *loop = uv_server_loop(s->file->server);

	loop_timer_set(loop, &s->turn, loop_now(loop).ns + 1);
}

/* May the next part of a dump be sent? */
static bool dump_due(const struct nl_socket *s)
{
	return s->dump.req.nlmsg_len && list_empty(&s->queue);
}

static void dump_next(struct nl_socket *s)
{
	if (dump_due(s))
		turn_set(s);
}

static void dump_end(struct nl_call *c, int result)
{
	struct nl_socket *s = c->socket;

	s->dump.req.nlmsg_len = 0;
	if (!c->more || result || c->err) {
		end(c, result);
		return;
	}
	s->dump.req = *c->req;
	s->dump.req.nlmsg_len = NLMSG_HDRLEN;
	s->dump.portid = c->portid;
	s->dump.next = c->next;
	dump_next(s);
}

static void dump_turn(struct nl_socket *s)
{
	const struct nlmsghdr req = s->dump.req;
	struct nl_call c = { .host = s->file->host,
			     .server = s->file->server,
			     .socket = s,
			     .portid = s->dump.portid,
			     .req = &req,
			     .dump = true,
			     .at = s->dump.next };

	dump_end(&c, s->answer(&c));
	nl_send(&c);
}

static void on_turn(struct loop_timer *t, struct now now)
{
	struct nl_socket *s = container_of(t, struct nl_socket, turn);

	if (dump_due(s))
		dump_turn(s);
	s->due = true;
	uv_server_moved(s->file->server);
	s->due = false;
}

static void queue_send(struct nl_socket *s)
{
	struct nl_datagram *d, *tmp;

	list_for_each_safe (d, tmp, &s->queue, link) {
		if (!socket_send(s, d->data, d->len))
			return;
		queue_remove(s, d);
	}
}

static void on_writable(struct loop_fd *w, u32 events, struct now now)
{
	struct nl_socket *s = container_of(w, struct nl_socket, writable);

	if (events & (EPOLLHUP | EPOLLERR)) { /* the program has closed its end */
		s->dump.req.nlmsg_len = 0;
		queue_clear(s);
		return;
	}
	queue_send(s);
	dump_next(s);
}

/* Handles a message. */
static void request(struct nl_call *c, const struct nlmsghdr *hdr)
{
	struct nl_socket *s = c->socket;
	int result;

	c->cost += REQUEST_COST;
	c->dump = (hdr->nlmsg_flags & NLM_F_DUMP) != 0;
	c->more = false;
	if (c->dump && s->dump.req.nlmsg_len) {
		end(c, -EBUSY);
		return;
	}
	result = s->answer(c);
	if (c->dump)
		dump_end(c, result);
	else if (result || hdr->nlmsg_flags & NLM_F_ACK)
		end(c, result);
	nl_send(c);
}

/*
 * @in begins with the address of the socket, which has a struct sockaddr_nl's size: requests behind it are aligned.
 * @f->again: the offset of the first message that is not yet handled.
 */
static ssize_t netlink_command(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			       int *out_fd)
{
	struct nl_socket *s = f->priv;
	struct nl_call c = { .host = f->host, .server = f->server, .socket = s };
	const u8 *at = in, *last = at + in_len;
	struct sockaddr_nl own;
	struct nlmsghdr hdr;

	*out_len = 0;
	if (f->again) { /* other deferred writes have the next turns */
		s->due = false;
		turn_set(s);
	}
	if (in_len < sizeof(own))
		return -EINVAL;
	if (in_len == sizeof(own))
		return -ENODATA;
	memcpy(&own, in, sizeof(own));
	at += max((size_t)f->again, sizeof(own));
	c.portid = own.nl_pid;
	while (!c.err && last - at >= (long)sizeof(hdr)) {
		if (c.cost >= TURN_COST) {
			f->deferral = (struct uv_deferral){ .until = 1, .again = (u32)(at - (const u8 *)in) };
			turn_set(s);
			break;
		}
		c.req = (const void *)at;
		hdr = *c.req;
		if (hdr.nlmsg_len < sizeof(hdr) || hdr.nlmsg_len > last - at)
			break;
		at += min((long)NLMSG_ALIGN(hdr.nlmsg_len), (long)(last - at));
		if (hdr.nlmsg_flags & NLM_F_REQUEST && hdr.nlmsg_type >= NLMSG_MIN_TYPE)
			request(&c, &hdr);
		else
			c.cost++;
	}
	return c.err ? c.err : (ssize_t)in_len;
}

static bool netlink_ready(struct uv_file *f, const struct uv_deferral *h, ssize_t *result)
{
	const struct nl_socket *s = f->priv;

	return s->due;
}

/* Events */

static void events_send(struct nl_socket *s, const struct wire_port *port, bool addresses, bool removed)
{
	static const struct nlmsghdr none;
	struct nl_call c = { .host = s->file->host, .server = s->file->server, .socket = s, .req = &none };

	rtnl_events(&c, s->groups, port, addresses, removed);
	nl_send(&c);
}

static void on_port_event(struct mad_watch *w, enum wire_port_event event)
{
	const struct nl_port *p = container_of(w, struct nl_port, watch);

	if (event == WIRE_PORT_ACTIVE || event == WIRE_PORT_ERR)
		events_send(p->socket, p->socket->file->host->port[p->port], false, false);
}

/*
 * The groups of which the socket is a member are @groups now. The program also calls it when it has read all that there
 * is: as with a kernel, what was queued and the next part of a dump are there when it reads again.
 */
static int netlink_ioctl(struct uv_file *f, u32 groups, void *arg, size_t len)
{
	struct nl_socket *s = f->priv;

	s->groups = s->answer == rtnl_answer ? groups : 0;
	queue_send(s);
	if (dump_due(s))
		dump_turn(s);
	return 0;
}

static void plugged_one(void *arg, struct uv_file *f)
{
	const bool *removed = arg;
	u8 i;

	for (i = 0; i < f->host->nports; i++)
		events_send(f->priv, f->host->port[i], true, *removed);
}

void netlink_plugged(struct uv_server *s, const struct uv_host *host, bool removed)
{
	uv_server_each_file(s, host, &netlink_file_ops, plugged_one, &removed);
}

/* Opening and closing */

static void watch_ports(struct nl_socket *s)
{
	const struct uv_host *h = s->file->host;
	u8 i;

	for (i = 0; i < UV_PORTS; i++) {
		s->port[i] = (struct nl_port){ .watch.fn = on_port_event, .socket = s, .port = i };
		list_init(&s->port[i].watch.link);
		if (i < h->nports && h->mad[i] && s->answer == rtnl_answer)
			mad_port_watch(h->mad[i], &s->port[i].watch);
	}
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
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		free(s);
		return -errno;
	}
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	s->fd = fds[0];
	s->answer = families[i].answer;
	s->file = f;
	list_init(&s->queue);
	s->writable = (struct loop_fd){ .fd = s->fd, .fn = on_writable };
	s->turn.fn = on_turn;
	watch_ports(s);
	f->priv = s;
	*fd = fds[1];
	return 0;
}

static void netlink_close(struct uv_file *f)
{
	struct nl_socket *s = f->priv;
	u8 i;

	for (i = 0; i < UV_PORTS; i++)
		mad_port_unwatch(&s->port[i].watch);
	loop_timer_cancel(&s->turn);
	queue_clear(s);
	passed_close_socket(s->fd, 0);
	free(s);
}

const struct uv_file_ops netlink_file_ops = { .open = netlink_open,
					      .command = netlink_command,
					      .ioctl = netlink_ioctl,
					      .ready = netlink_ready,
					      .close = netlink_close };
