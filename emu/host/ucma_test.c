// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the rdma_cm device file: errors of invalid commands, readiness while events are queued, ids of
 * other files, unread requests. */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "emu/host/ucma_fixture.h"
#include "emu/lib/row.h"

static u32 create(struct ucma_fixture *f, u16 ps)
{
	struct rdma_ucm_create_id cmd = { .uid = 0x1000 + ps, .ps = ps, .qp_type = HCA_QPT_RC };
	struct rdma_ucm_create_id_resp resp = { 0 };

	command(f, 0, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp), -1);
	memcpy(&resp, f->out, min(f->out_len, sizeof(resp)));
	return resp.id;
}

static struct rdma_ucm_bind bind_to(u32 id, u32 addr, u16 port)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr) };

	memcpy(&cmd.addr, &in, sizeof(in));
	return cmd;
}

static ssize_t try_bind(struct ucma_fixture *f, u32 id, u32 addr, u16 port)
{
	struct rdma_ucm_bind cmd = bind_to(id, addr, port);
	ssize_t n = command(f, 0, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0, -1);

	return n < 0 ? n : 0;
}

/* ---- checks of requests ---- */

static const struct {
	const char *name;
	u32 cmd;
	size_t len;
	u16 out;
	ssize_t want;
} checks[] = {
	{ "no such command", 25, 64, 64, -EINVAL },
	{ "RESOLVE_IB_SERVICE", 23, 64, 64, -ENOSYS },
	{ "a far command", 0xffffffff, 64, 64, -EINVAL },
	{ "GET_OPTION is not there", RDMA_USER_CM_CMD_GET_OPTION, 64, 64, -ENOSYS },
	{ "CREATE_ID cut", RDMA_USER_CM_CMD_CREATE_ID, 8, 64, -EINVAL },
	{ "CREATE_ID without room", RDMA_USER_CM_CMD_CREATE_ID, 24, 0, -ENOSPC },
	{ "CREATE_ID, port space 0", RDMA_USER_CM_CMD_CREATE_ID, 24, 4, -EINVAL },
	{ "BIND cut", RDMA_USER_CM_CMD_BIND, 16, 0, -EINVAL },
	{ "CONNECT cut", RDMA_USER_CM_CMD_CONNECT, 200, 0, -EINVAL },
	{ "GET_EVENT, no event", RDMA_USER_CM_CMD_GET_EVENT, 8, 512, -EAGAIN },
	{ "GET_EVENT without room", RDMA_USER_CM_CMD_GET_EVENT, 8, 16, -ENOSPC },
	{ "DESTROY_ID of an unknown id", RDMA_USER_CM_CMD_DESTROY_ID, 16, 4, -ENOENT },
	{ "LISTEN of an unknown id", RDMA_USER_CM_CMD_LISTEN, 8, 0, -ENOENT },
	{ "QUERY of an unknown id", RDMA_USER_CM_CMD_QUERY, 16, 400, -ENOENT },
	{ "LEAVE_MCAST of an unknown id", RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 4, -ENOENT },
	{ "MIGRATE_ID without a file", RDMA_USER_CM_CMD_MIGRATE_ID, 16, 4, -ENOENT },
};

static void test_checks(struct ucma_fixture *f)
{
	static const u8 zero[512];
	ssize_t n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		n = command(f, 0, checks[i].cmd, zero, checks[i].len, checks[i].out, -1);
		if (n != checks[i].want)
			printf("%s: %zd\n", checks[i].name, n);
		row(0, checks[i].name, n == checks[i].want && f->out_len == 0);
	}
}

/* ---- states and addresses ---- */

static void test_binding(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP), b = create(f, RDMA_PS_TCP), c = create(f, RDMA_PS_UDP),
	    d = create(f, RDMA_PS_TCP), e = create(f, RDMA_PS_TCP);
	struct rdma_ucm_listen listen = { .id = a };
	struct rdma_ucm_bind cmd = bind_to(b, 0, 0);
	struct rdma_ucm_resolve_ip resolve = { .id = e, .timeout_ms = 100 };

	row(0, "ids", a && b && c && d && e);
	row(0, "bind to the own address", try_bind(f, a, 0x0a000001, 7471) == 0);
	row(0, "bound twice", try_bind(f, a, 0x0a000001, 7472) == -EINVAL);
	row(0, "the port is taken", try_bind(f, b, 0x0a000001, 7471) == -EADDRINUSE);
	row(0, "the port is taken, for any address", try_bind(f, b, 0, 7471) == -EADDRNOTAVAIL);
	row(0, "the same port in another space", try_bind(f, c, 0x0a000001, 7471) == 0);
	row(0, "a stranger's address", try_bind(f, b, 0x0a000002, 7471) == -EADDRNOTAVAIL);
	cmd.addr_size = 3;
	row(0, "an address cut short", command(f, 0, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0, -1) == -EINVAL);
	cmd.addr_size = 4000;
	row(0, "an address too long", command(f, 0, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0, -1) == -EINVAL);
	resolve.dst_addr = (struct sockaddr_in6){ .sin6_family = AF_INET };
	resolve.src_addr.sin6_family = AF_IB;
	row(0, "RESOLVE_IP with a source that is no IP address",
	    command(f, 0, RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve), 0, -1) == -EINVAL);
	row(0, "port 0 gets one", try_bind(f, d, 0, 0) == 0);
	row(0, "listen", command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) > 0);
	row(0, "listen twice", command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) == -EINVAL);
}

/* The port number of the id's device; 0: none. */
static u32 port_of(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_query cmd = { .id = id, .option = RDMA_USER_CM_QUERY_ADDR };
	struct rdma_ucm_query_addr_resp resp;

	command(f, 0, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), sizeof(resp), -1);
	memcpy(&resp, f->out, sizeof(resp));
	return resp.port_num;
}

static void test_loopback(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP), b = create(f, RDMA_PS_TCP), c = create(f, RDMA_PS_TCP);

	row(0, "bind to a loopback address", try_bind(f, a, INADDR_LOOPBACK, 7481) == 0);
	row(0, "a loopback address attaches no device", port_of(f, a) == 0);
	row(0, "its port is that of any address", try_bind(f, b, 0x0a000001, 7481) == -EADDRNOTAVAIL);
	row(0, "bind to the own address", try_bind(f, c, 0x0a000001, 7482) == 0);
	row(0, "the own address attaches a device", port_of(f, c) == 1);
}

static void test_states(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	struct rdma_ucm_connect connect = { .id = a };
	struct rdma_ucm_resolve_route route = { .id = a, .timeout_ms = 100 };
	struct rdma_ucm_accept accept = { .id = a };
	struct rdma_ucm_disconnect disconnect = { .id = a };
	struct rdma_ucm_init_qp_attr attr = { .id = a, .qp_state = HCA_QPS_INIT };
	struct rdma_ucm_notify notify = { .id = a, .event = HCA_EVENT_COMM_EST };
	struct rdma_ucm_reject reject = { .id = a, .reason = 5 };

	row(0, "connect without parameters",
	    command(f, 0, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0, -1) == -EINVAL);
	connect.conn_param.valid = 1;
	row(0, "connect before the route",
	    command(f, 0, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0, -1) == -EINVAL);
	row(0, "route before the address",
	    command(f, 0, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0, -1) == -EINVAL);
	row(0, "accept of an idle id",
	    command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) == -EINVAL);
	row(0, "disconnect of an idle id",
	    command(f, 0, RDMA_USER_CM_CMD_DISCONNECT, &disconnect, sizeof(disconnect), 0, -1) == -EINVAL);
	row(0, "attributes without a device",
	    command(f, 0, RDMA_USER_CM_CMD_INIT_QP_ATTR, &attr, sizeof(attr), 200, -1) == -EINVAL);
	row(0, "notify of an idle id",
	    command(f, 0, RDMA_USER_CM_CMD_NOTIFY, &notify, sizeof(notify), 0, -1) == -EINVAL);
	row(0, "a reason that users have not",
	    command(f, 0, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0, -1) == -EINVAL);
	row(0, "another file's id",
	    command(f, 1, RDMA_USER_CM_CMD_DISCONNECT, &disconnect, sizeof(disconnect), 0, -1) == -EINVAL);
}

static const struct {
	const char *name;
	u32 level, optname, optlen;
	size_t extra;
	ssize_t want;
} options[] = {
	{ "TOS", RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 1, 1 },
	{ "TOS of four bytes", RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, 4, -EINVAL },
	{ "REUSEADDR", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 4, 1 },
	{ "REUSEADDR without its value", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 0, -EINVAL },
	{ "ACK_TIMEOUT", RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 1, 1 },
	{ "an unknown option", RDMA_OPTION_ID, 9, 4, 4, -ENOSYS },
	{ "an unknown level", 7, 0, 1, 1, -ENOSYS },
	{ "a path too early", RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 72, 72, -EINVAL },
	{ "a path cut short", RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 71, 71, -EINVAL },
};

/* The value is @v in the first of @extra bytes. */
static ssize_t set_option(struct ucma_fixture *f, u32 id, u32 level, u32 optname, u32 optlen, u8 v, size_t extra)
{
	struct rdma_ucm_set_option opt = { .id = id, .level = level, .optname = optname, .optlen = optlen };
	struct rdma_ucm_cmd_hdr hdr = { .cmd = RDMA_USER_CM_CMD_SET_OPTION, .in = sizeof(opt) };
	u8 buf[256] = { 0 };
	size_t len = 0;
	int fd = -1;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), &opt, sizeof(opt));
	buf[sizeof(hdr) + sizeof(opt)] = v;
	return ucma_file_ops.command(&f->file[0], buf, sizeof(hdr) + sizeof(opt) + extra, -1, f->out, &len, &fd);
}

static void test_options(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		ssize_t n =
			set_option(f, a, options[i].level, options[i].optname, options[i].optlen, 0, options[i].extra);

		row(0, options[i].name, options[i].want < 0 ? n == options[i].want : n > 0);
	}
}

static ssize_t set_reuse(struct ucma_fixture *f, u32 id, bool on)
{
	ssize_t n = set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, on, 4);

	return n < 0 ? n : 0;
}

static ssize_t try_listen(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_listen cmd = { .id = id };
	ssize_t n = command(f, 0, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0, -1);

	return n < 0 ? n : 0;
}

static ssize_t destroy(struct ucma_fixture *f, int file, u32 id)
{
	struct rdma_ucm_destroy_id cmd = { .id = id };

	return command(f, file, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), 4, -1);
}

static void test_reuse(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP), b = create(f, RDMA_PS_TCP);

	row(0, "REUSEADDR on and off before bind", !set_reuse(f, a, true) && !set_reuse(f, a, false));
	row(0, "on", !set_reuse(f, a, true) && !set_reuse(f, b, true));
	row(0, "two ids are bound to one address",
	    !try_bind(f, a, 0x0a000001, 7483) && !try_bind(f, b, 0x0a000001, 7483));
	row(0, "on while bound", !set_reuse(f, a, true));
	row(0, "not off while bound", set_reuse(f, a, false) == -EINVAL);
	row(0, "no listener while the port is shared", try_listen(f, a) == -EADDRINUSE);
	row(0, "a listener then", destroy(f, 0, b) > 0 && !try_listen(f, a));
	row(0, "not on of a listener", set_reuse(f, a, true) == -EINVAL);
	row(0, "not off of a listener", set_reuse(f, a, false) == -EINVAL);
	b = create(f, RDMA_PS_TCP);
	row(0, "a listener's port is not shared",
	    !set_reuse(f, b, true) && try_bind(f, b, 0x0a000001, 7483) == -EADDRINUSE);
}

/* ---- events ---- */

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static u32 get_event(struct ucma_fixture *f, int file, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event cmd = { 0 };
	ssize_t n = command(f, file, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*ev), -1);

	memset(ev, 0xff, sizeof(*ev));
	if (n > 0)
		memcpy(ev, f->out, sizeof(*ev));
	return n > 0 ? ev->event : ~0u;
}

static void resolve(struct ucma_fixture *f, u32 id, u32 addr)
{
	struct rdma_ucm_resolve_addr cmd = { .id = id, .timeout_ms = 500, .dst_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(addr) };

	memcpy(&cmd.dst_addr, &in, sizeof(in));
	row(0, "resolve", command(f, 0, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0, -1) > 0);
}

static void test_events(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP), b = create(f, RDMA_PS_TCP);
	struct rdma_ucm_destroy_id destroy = { .id = b };
	struct rdma_ucm_get_event want = { 0 };
	struct rdma_ucm_event_resp ev;
	char byte;

	resolve(f, a, 0x0a000001);
	resolve(f, b, 0x0a000009);
	cable_run(&f->c, 100);
	row(0, "the own address is resolved", readable(f->fd[0]) && get_event(f, 0, &ev) == RDMA_EVENT_ADDR_RESOLVED);
	row(0, "the event names the id", ev.id == a && ev.uid == 0x1000 + RDMA_PS_TCP && ev.status == 0);
	row(0, "no event", !readable(f->fd[0]) && get_event(f, 0, &ev) == ~0u);
	cable_run(&f->c, 1000);
	row(0, "a stranger is not", readable(f->fd[0]));
	row(0, "the application takes the byte", recv(f->fd[0], &byte, 1, MSG_DONTWAIT) == 1);
	row(0, "and gets no event for want of room",
	    command(f, 0, RDMA_USER_CM_CMD_GET_EVENT, &want, sizeof(want), 1, -1) == -ENOSPC && readable(f->fd[0]));
	row(0, "the event is still there", get_event(f, 0, &ev) == RDMA_EVENT_ADDR_ERROR && ev.id == b);
	row(0, "with its status", (int)ev.status == -ETIMEDOUT);
	row(0, "destroy counts the reported events",
	    command(f, 0, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), 4, -1) > 0 && f->out[0] == 1);
	destroy.id = create(f, RDMA_PS_TCP);
	resolve(f, (u32)destroy.id, 0x0a000001);
	cable_run(&f->c, 100);
	f->file[0].flags = UV_KEEP_EVENTS;
	row(0, "no destroy with unread events, on request",
	    command(f, 0, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), 4, -1) == -EAGAIN &&
		    get_event(f, 0, &ev) == RDMA_EVENT_ADDR_RESOLVED && ev.id == destroy.id);
	row(0, "none is left", command(f, 0, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), 4, -1) > 0);
	f->file[0].flags = 0;
}

static void test_leave(struct ucma_fixture *f)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000105) };
	struct rdma_ucm_join_ip_mcast join = { .id = create(f, RDMA_PS_UDP), .uid = 77 };
	struct rdma_ucm_destroy_id destroy = { .id = join.id }, leave = { 0 };
	struct rdma_ucm_event_resp ev;

	resolve(f, join.id, 0x0a000001);
	cable_run(&f->c, 100);
	get_event(f, 0, &ev);
	memcpy(&join.addr, &in, sizeof(in));
	row(0, "a join", command(f, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), 4, -1) > 0);
	memcpy(&leave.id, f->out, 4);
	cable_run(&f->c, 100000);
	f->file[0].flags = UV_KEEP_EVENTS;
	row(0, "no leave with unread events, on request",
	    command(f, 0, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), 4, -1) == -EAGAIN);
	row(0, "the group's event",
	    get_event(f, 0, &ev) == RDMA_EVENT_MULTICAST_ERROR && ev.id == leave.id && ev.uid == 77);
	row(0, "none of the group is left",
	    command(f, 0, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), 4, -1) > 0 && f->out[0] == 1);
	f->file[0].flags = 0;
	command(f, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), 4, -1);
	memcpy(&leave.id, f->out, 4);
	cable_run(&f->c, 100000);
	row(0, "otherwise it discards them",
	    command(f, 0, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), 4, -1) > 0 && !f->out[0] &&
		    get_event(f, 0, &ev) == ~0u);
	command(f, 0, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), 4, -1);
}

static ssize_t try_join(struct ucma_fixture *f, u32 id)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000106) };
	struct rdma_ucm_join_ip_mcast join = { .id = id, .uid = 78 };
	ssize_t n;

	memcpy(&join.addr, &in, sizeof(in));
	n = command(f, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), 4, -1);
	return n < 0 ? n : 0;
}

/* As in the kernel, only an id that is bound or has resolved an address may join. */
static void test_join_states(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_UDP), b = create(f, RDMA_PS_UDP), c = create(f, RDMA_PS_UDP);
	struct rdma_ucm_listen listen = { .id = b };
	struct rdma_ucm_connect connect = { .id = a, .conn_param.valid = 1 };
	struct rdma_ucm_event_resp ev;

	row(0, "no join of an idle id", try_join(f, a) == -EINVAL);
	row(0, "nor without a device", !try_bind(f, c, 0, 7484) && try_join(f, c) == -EINVAL);
	row(0, "a join of a bound id", !try_bind(f, b, 0x0a000001, 7485) && !try_join(f, b));
	row(0, "not of a listener",
	    command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) > 0 && try_join(f, b) == -EINVAL);
	resolve(f, a, 0x0a000009);
	row(0, "not while the address is resolved", try_join(f, a) == -EINVAL);
	cable_run(&f->c, 1000);
	row(0, "the address is unknown", get_event(f, 0, &ev) == RDMA_EVENT_ADDR_ERROR);
	resolve(f, a, 0x0a000001);
	cable_run(&f->c, 10);
	row(0, "the address is resolved", get_event(f, 0, &ev) == RDMA_EVENT_ADDR_RESOLVED);
	row(0, "a join then", !try_join(f, a));
	row(0, "a route",
	    set_option(f, a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 72,
		       IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL, 72) > 0);
	row(0, "no join with a route", try_join(f, a) == -EINVAL);
	row(0, "connect", command(f, 0, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0, -1) > 0);
	row(0, "no join of a connected id", try_join(f, a) == -EINVAL);
}

static void test_own_events(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	struct ucma_write_event cmd = { .id = a, .event = UCMA_EVENT_USER, .status = 7, .arg = 0x1122334455667788 };
	struct rdma_ucm_event_resp ev;
	u64 arg;

	row(0, "an event of the application", command(f, 0, UCMA_CMD_WRITE_CM_EVENT, &cmd, sizeof(cmd), 0, -1) > 0);
	row(0, "is read back", readable(f->fd[0]) && get_event(f, 0, &ev) == UCMA_EVENT_USER && ev.id == a);
	memcpy(&arg, &ev.param, sizeof(arg));
	row(0, "with status and argument", ev.status == 7 && arg == cmd.arg && !readable(f->fd[0]));
	cmd.event = RDMA_EVENT_ESTABLISHED;
	row(0, "not an event of the CM",
	    command(f, 0, UCMA_CMD_WRITE_CM_EVENT, &cmd, sizeof(cmd), 0, -1) == -EINVAL && !readable(f->fd[0]));
	cmd = (struct ucma_write_event){ .id = a + 1000, .event = UCMA_EVENT_USER };
	row(0, "not of a stranger's id", command(f, 0, UCMA_CMD_WRITE_CM_EVENT, &cmd, sizeof(cmd), 0, -1) == -ENOENT);
}

static void test_migration(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	struct rdma_ucm_migrate_id cmd = { .id = a };
	struct rdma_ucm_event_resp ev;
	int other[2];

	resolve(f, a, 0x0a000001);
	cable_run(&f->c, 100);
	row(0, "no rdma_cm file",
	    !pipe(other) && command(f, 1, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, other[0]) == -EINVAL);
	row(0, "an id moves", command(f, 1, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, f->fd[0]) > 0);
	row(0, "its events with it",
	    !readable(f->fd[0]) && readable(f->fd[1]) && get_event(f, 1, &ev) == RDMA_EVENT_ADDR_RESOLVED &&
		    ev.id == a);
	row(0, "the old file does not have it",
	    command(f, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, f->fd[0]) == -EINVAL);
	close(other[0]);
	close(other[1]);
}

/* ---- requests ---- */

#define LISTEN_PORT 7471

static u32 listen_on(struct ucma_fixture *f, u64 uid)
{
	struct rdma_ucm_create_id cmd = { .uid = uid, .ps = RDMA_PS_TCP, .qp_type = HCA_QPT_RC };
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_listen listen = { .backlog = 4 };

	command(f, 0, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp), -1);
	memcpy(&resp, f->out, sizeof(resp));
	listen.id = resp.id;
	row(0, "listen",
	    !try_bind(f, resp.id, 0x0a000001, LISTEN_PORT) &&
		    command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) > 0);
	return resp.id;
}

static ssize_t migrate(struct ucma_fixture *f, int to, u32 id, int from_fd)
{
	struct rdma_ucm_migrate_id cmd = { .id = id };

	return command(f, to, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, from_fd);
}

/* As in the kernel since 5.10, commands find the id of a request whose event is unread. */
static void test_unread_request(struct ucma_fixture *f)
{
	struct rdma_ucm_init_qp_attr attr = { .qp_state = HCA_QPS_RTR };
	struct rdma_ucm_accept accept = { .conn_param = { .valid = 1, .qp_num = 5 } };
	struct rdma_ucm_query query = { .option = RDMA_USER_CM_QUERY_ADDR };
	struct rdma_ucm_reject reject = { 0 };
	u32 listener = listen_on(f, 0x55), request = listener + 1;
	struct rdma_ucm_event_resp ev;

	attr.id = accept.id = query.id = reject.id = request;
	peer_connect(f, LISTEN_PORT);
	row(0, "a request is reported", readable(f->fd[0]));
	row(0, "its attributes before GET_EVENT",
	    command(f, 0, RDMA_USER_CM_CMD_INIT_QP_ATTR, &attr, sizeof(attr), 512, -1) > 0);
	row(0, "its addresses", command(f, 0, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), 512, -1) > 0);
	row(0, "accept", command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) > 0);
	row(0, "the event", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST && ev.id == request && ev.uid == 0x55);
	row(0, "destroyed", destroy(f, 0, request) > 0 && destroy(f, 0, request) == -ENOENT);
	cable_run(&f->c, 10);
	row(0, "the peer gets a REJ", f->rejected == 1);
	reject.id = ++request;
	peer_connect(f, LISTEN_PORT);
	row(0, "reject before GET_EVENT", command(f, 0, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0, -1) > 0);
	cable_run(&f->c, 10);
	row(0, "the next peer gets a REJ", f->rejected == 2);
	row(0, "destroyed before GET_EVENT", destroy(f, 0, request) > 0);
	row(0, "the event remains", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST && ev.id == request);
	row(0, "not its id", destroy(f, 0, request) == -ENOENT);
	peer_connect(f, LISTEN_PORT);
	request = f->host.cm->ctxs.first;
	while (!table_get(&f->host.cm->ctxs, request) || request == listener)
		request++;
	row(0, "it moves before GET_EVENT", migrate(f, 1, request, f->fd[0]) > 0 && destroy(f, 1, request) > 0);
	row(0, "the event does not", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST && ev.id == request);
}

static void test_unread_request_ends(struct ucma_fixture *f)
{
	u32 listener = listen_on(f, 0x55);

	peer_connect(f, LISTEN_PORT);
	peer_connect(f, LISTEN_PORT);
	peer_destroy(f, 0);
	row(0, "the listener is destroyed with its unread requests",
	    destroy(f, 0, listener) > 0 && !readable(f->fd[0]));
	cable_run(&f->c, 10);
	row(0, "the other peer gets a REJ", f->rejected == 1);
}

static void test_unread_request_moves(struct ucma_fixture *f)
{
	u32 listener = listen_on(f, 0x55);
	struct rdma_ucm_event_resp ev;

	peer_connect(f, LISTEN_PORT);
	peer_connect(f, LISTEN_PORT);
	row(0, "the listener moves", migrate(f, 1, listener, f->fd[0]) > 0);
	row(0, "its requests with it", !readable(f->fd[0]) && get_event(f, 1, &ev) == RDMA_EVENT_CONNECT_REQUEST);
	row(0, "an id that was read moves back", migrate(f, 0, ev.id, f->fd[1]) > 0);
	row(0, "and is the other file's no more", destroy(f, 1, ev.id) == -EINVAL && destroy(f, 0, ev.id) > 0);
}

static void test_uid_zero(struct ucma_fixture *f)
{
	struct rdma_ucm_event_resp ev;

	listen_on(f, 0);
	peer_connect(f, LISTEN_PORT);
	peer_destroy(f, 0);
	row(0, "a listener with uid 0 gets requests",
	    get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST && ev.uid == 0 && ev.id);
	row(0, "what becomes of one before accept is not reported", !readable(f->fd[0]));
	row(0, "its id", destroy(f, 0, ev.id) > 0);
	peer_connect(f, LISTEN_PORT);
	peer_destroy(f, 1);
}

static void test_backlog(struct ucma_fixture *f)
{
	struct rdma_ucm_event_resp ev;
	int i;

	listen_on(f, 0x55);
	for (i = 0; i < 6; i++)
		peer_connect(f, LISTEN_PORT);
	cable_run(&f->c, 10);
	row(0, "what is beyond the backlog of 4 is rejected", f->rejected == 2);
	for (i = 0; i < 4; i++)
		row(i, "within", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST);
	peer_connect(f, LISTEN_PORT);
	cable_run(&f->c, 10);
	row(0, "read requests do not count", f->rejected == 2 && get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST);
}

/* The peer does not wait for what the application could not send. */
static void test_accept_fails(struct ucma_fixture *f)
{
	struct rdma_ucm_accept accept = {
		.uid = 0x77, .conn_param = { .valid = 1, .qp_num = 5, .private_data_len = CM_REP_PRIVATE_DATA_LEN + 1 }
	};
	struct rdma_ucm_event_resp ev;

	listen_on(f, 0x55);
	peer_connect(f, LISTEN_PORT);
	row(0, "a request", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST);
	accept.id = ev.id;
	row(0, "accept with more private data than a REP has",
	    command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) == -EINVAL);
	cable_run(&f->c, 10);
	row(0, "the peer gets a REJ", f->rejected == 1);
	accept.conn_param.private_data_len = 0;
	row(0, "the request is over",
	    command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) == -EINVAL);
}

/* rdma_cm does not report the private data of an RTU. */
static void test_answers_to_rep(struct ucma_fixture *f)
{
	static const struct {
		const char *name;
		u16 answer;
		u32 event;
		u8 len;
	} rows[] = {
		{ "an RTU", CM_ATTR_RTU, RDMA_EVENT_ESTABLISHED, 0 },
		{ "a REJ", CM_ATTR_REJ, RDMA_EVENT_REJECTED, CM_REJ_PRIVATE_DATA_LEN },
	};
	static const u8 data[CM_REJ_PRIVATE_DATA_LEN] = { 1, 2, 3 };
	struct rdma_ucm_accept accept = { .uid = 0x77, .conn_param = { .valid = 1, .qp_num = 5 } };
	struct rdma_ucm_event_resp ev;
	size_t i;

	listen_on(f, 0x55);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f->rep_answer = rows[i].answer;
		peer_connect(f, LISTEN_PORT);
		row((int)i, "a request", get_event(f, 0, &ev) == RDMA_EVENT_CONNECT_REQUEST);
		accept.id = ev.id;
		row((int)i, "accepted", command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) > 0);
		cable_run(&f->c, 10);
		row((int)i, rows[i].name,
		    get_event(f, 0, &ev) == rows[i].event && ev.param.conn.private_data_len == rows[i].len &&
			    !memcmp(ev.param.conn.private_data, data, rows[i].len));
	}
}

/* AF_IB addresses have service ID ranges: one that includes the port spaces would receive
 * the requests of all listeners. */
static void test_service_ranges(struct ucma_fixture *f)
{
	static const struct {
		u64 sid, mask;
		ssize_t want;
	} rows[] = {
		{ 0x1000000000000ace, ~0ull, 0 },
		{ 0x1000000000000000, 0xffffffffffff0000, 0 },
		{ 0, 0, -EADDRINUSE },
		{ 0x0000000000000000, 0xfffffffff0000000, -EADDRINUSE },
		{ 0x0000000001000000, 0xffffffffff000000, -EADDRINUSE },
		{ 0x0000000001061234, ~0ull, 0 }, /* a TCP port */
		{ 0x0000000001061234, ~0ull, -EADDRNOTAVAIL },
	};
	struct rdma_ucm_bind bind = { .addr_size = sizeof(struct sockaddr_ib) };
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct rdma_ucm_listen listen = { 0 };
	ssize_t n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bind.id = listen.id = create(f, RDMA_PS_IB);
		ib.sib_sid = (__force __typeof__(ib.sib_sid))cpu_to_be64(rows[i].sid);
		ib.sib_sid_mask = (__force __typeof__(ib.sib_sid_mask))cpu_to_be64(rows[i].mask);
		memcpy(&bind.addr, &ib, sizeof(ib));
		n = command(f, 0, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0, -1);
		n = n < 0 ? n : command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1);
		row((int)i, "a range of service IDs", rows[i].want ? n == rows[i].want : n > 0);
	}
}

/* RESOLVE_ROUTE fails before the address is resolved, i.e. before its event is queued. */
static void test_order(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	struct rdma_ucm_resolve_route route = { .id = a, .timeout_ms = 100 };

	resolve(f, a, 0x0a000001);
	row(0, "the route before the event",
	    command(f, 0, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0, -1) == -EINVAL);
	cable_run(&f->c, 10);
	row(0, "and after", command(f, 0, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0, -1) > 0);
}

/* A program has got the descriptor from another one, and writes to it without the preload library's knowledge. */
static void test_received(struct ucma_fixture *f)
{
	struct rdma_ucm_cmd_hdr get = { .cmd = RDMA_USER_CM_CMD_GET_EVENT };

	signal(SIGPIPE, SIG_DFL);
	row(0, "a command on a received descriptor fails", write(f->fd[0], &get, sizeof(get)) < 0 && errno == EPIPE);
}

static void test_many_ids(struct ucma_fixture *f)
{
	u32 ok = 0, i, last = 0;

	for (i = 0; i < 28232; i++) {
		last = create(f, RDMA_PS_TCP);
		ok += !try_bind(f, last, 0, 0);
	}
	row(0, "each ephemeral port is given once", ok == 28232);
	i = create(f, RDMA_PS_TCP);
	row(0, "and then none", try_bind(f, i, 0, 0) == -EADDRNOTAVAIL);
	row(0, "until one is free", destroy(f, 0, last) > 0 && !try_bind(f, i, 0, 0));
}

int main(void)
{
	static void (*const tests[])(struct ucma_fixture * f) = { test_checks,
								  test_binding,
								  test_loopback,
								  test_states,
								  test_options,
								  test_reuse,
								  test_events,
								  test_leave,
								  test_join_states,
								  test_own_events,
								  test_migration,
								  test_unread_request,
								  test_unread_request_ends,
								  test_unread_request_moves,
								  test_uid_zero,
								  test_backlog,
								  test_accept_fails,
								  test_answers_to_rep,
								  test_service_ranges,
								  test_order,
								  test_received,
								  test_many_ids };
	struct ucma_fixture f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		fixture_open(&f);
		tests[i](&f);
		fixture_close(&f);
	}
	return rows_end();
}
