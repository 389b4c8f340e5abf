// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the rdma_cm device file: what wrong commands get, events and their level, ids between files. */
#include <poll.h>

#include "emu/lib/row.h"
#include "emu/uverbs/ucma_fixture.h"

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

/* ---- the door ---- */

static const struct {
	const char *name;
	u32 cmd;
	size_t len;
	u16 out;
	ssize_t want;
} doors[] = {
	{ "no such command", 23, 64, 64, -EINVAL },
	{ "a far command", 0xffffffff, 64, 64, -EINVAL },
	{ "GET_OPTION is not there", RDMA_USER_CM_CMD_GET_OPTION, 64, 64, -ENOSYS },
	{ "CREATE_ID cut", RDMA_USER_CM_CMD_CREATE_ID, 8, 64, -EINVAL },
	{ "CREATE_ID without room", RDMA_USER_CM_CMD_CREATE_ID, 24, 0, -ENOSPC },
	{ "CREATE_ID, port space 0", RDMA_USER_CM_CMD_CREATE_ID, 24, 4, -EINVAL },
	{ "BIND cut", RDMA_USER_CM_CMD_BIND, 16, 0, -EINVAL },
	{ "CONNECT cut", RDMA_USER_CM_CMD_CONNECT, 200, 0, -EINVAL },
	{ "GET_EVENT, nothing waits", RDMA_USER_CM_CMD_GET_EVENT, 8, 512, -EAGAIN },
	{ "GET_EVENT without room", RDMA_USER_CM_CMD_GET_EVENT, 8, 16, -ENOSPC },
	{ "DESTROY_ID of nobody", RDMA_USER_CM_CMD_DESTROY_ID, 16, 4, -ENOENT },
	{ "LISTEN of nobody", RDMA_USER_CM_CMD_LISTEN, 8, 0, -ENOENT },
	{ "QUERY of nobody", RDMA_USER_CM_CMD_QUERY, 16, 400, -ENOENT },
	{ "LEAVE_MCAST of nobody", RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 4, -ENOENT },
	{ "MIGRATE_ID without a file", RDMA_USER_CM_CMD_MIGRATE_ID, 16, 4, -ENOENT },
};

static void test_doors(struct ucma_fixture *f)
{
	static const u8 zero[512];
	ssize_t n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(doors); i++) {
		n = command(f, 0, doors[i].cmd, zero, doors[i].len, doors[i].out, -1);
		if (n != doors[i].want)
			printf("%s: %zd\n", doors[i].name, n);
		row(0, doors[i].name, n == doors[i].want && f->out_len == 0);
	}
}

/* ---- states and addresses ---- */

static void test_binding(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP), b = create(f, RDMA_PS_TCP), c = create(f, RDMA_PS_UDP),
	    d = create(f, RDMA_PS_TCP);
	struct rdma_ucm_listen listen = { .id = a };
	struct rdma_ucm_bind cmd = bind_to(b, 0, 0);

	row(0, "ids", a && b && c && d);
	row(0, "bind to the own address", try_bind(f, a, 0x0a000001, 7471) == 0);
	row(0, "bound twice", try_bind(f, a, 0x0a000001, 7472) == -EINVAL);
	row(0, "the port is taken", try_bind(f, b, 0x0a000001, 7471) == -EADDRINUSE);
	row(0, "the port is taken by a wildcard", try_bind(f, b, 0, 7471) == -EADDRINUSE);
	row(0, "the same port in another space", try_bind(f, c, 0x0a000001, 7471) == 0);
	row(0, "a stranger's address", try_bind(f, b, 0x0a000002, 7471) == -EADDRNOTAVAIL);
	cmd.addr_size = 3;
	row(0, "an address cut short", command(f, 0, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0, -1) == -EINVAL);
	cmd.addr_size = 4000;
	row(0, "an address too long", command(f, 0, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0, -1) == -EINVAL);
	row(0, "port 0 gets one", try_bind(f, d, 0, 0) == 0);
	row(0, "listen", command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) > 0);
	row(0, "listen twice", command(f, 0, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, -1) == -EINVAL);
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
	row(0, "accept of nothing", command(f, 0, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0, -1) == -EINVAL);
	row(0, "disconnect of nothing",
	    command(f, 0, RDMA_USER_CM_CMD_DISCONNECT, &disconnect, sizeof(disconnect), 0, -1) == -EINVAL);
	row(0, "attributes without a device",
	    command(f, 0, RDMA_USER_CM_CMD_INIT_QP_ATTR, &attr, sizeof(attr), 200, -1) == -EINVAL);
	row(0, "notify of nothing", command(f, 0, RDMA_USER_CM_CMD_NOTIFY, &notify, sizeof(notify), 0, -1) == -EINVAL);
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

static void test_options(struct ucma_fixture *f)
{
	u32 a = create(f, RDMA_PS_TCP);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		struct rdma_ucm_set_option opt = {
			.id = a, .level = options[i].level, .optname = options[i].optname, .optlen = options[i].optlen
		};
		struct rdma_ucm_cmd_hdr hdr = { .cmd = RDMA_USER_CM_CMD_SET_OPTION, .in = sizeof(opt) };
		u8 buf[256] = { 0 };
		size_t len = 0;
		int fd = -1;
		ssize_t n;

		memcpy(buf, &hdr, sizeof(hdr));
		memcpy(buf + sizeof(hdr), &opt, sizeof(opt));
		n = ucma_file_ops.command(&f->file[0], buf, sizeof(hdr) + sizeof(opt) + options[i].extra, -1, f->out,
					  &len, &fd);
		row(0, options[i].name, options[i].want < 0 ? n == options[i].want : n > 0);
	}
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
	struct rdma_ucm_event_resp ev;
	char byte;

	resolve(f, a, 0x0a000001);
	resolve(f, b, 0x0a000009);
	cable_run(&f->c, 100);
	row(0, "the own address is resolved", readable(f->fd[0]) && get_event(f, 0, &ev) == RDMA_EVENT_ADDR_RESOLVED);
	row(0, "the event names the id", ev.id == a && ev.uid == 0x1000 + RDMA_PS_TCP && ev.status == 0);
	row(0, "nothing waits", !readable(f->fd[0]) && get_event(f, 0, &ev) == ~0u);
	cable_run(&f->c, 1000);
	row(0, "a stranger is not", readable(f->fd[0]));
	row(0, "the application takes the byte", recv(f->fd[0], &byte, 1, MSG_DONTWAIT) == 1);
	row(0, "the event is still there", get_event(f, 0, &ev) == RDMA_EVENT_ADDR_ERROR && ev.id == b);
	row(0, "with its status", (int)ev.status == -ETIMEDOUT);
	row(0, "destroy counts what was told",
	    command(f, 0, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), 4, -1) > 0 && f->out[0] == 1);
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
	row(0, "the old file does not know it",
	    command(f, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, f->fd[0]) == -EINVAL);
	close(other[0]);
	close(other[1]);
}

int main(void)
{
	static void (*const tests[])(struct ucma_fixture * f) = { test_doors,   test_binding, test_states,
								  test_options, test_events,  test_migration };
	struct ucma_fixture f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		fixture_open(&f);
		tests[i](&f);
		fixture_close(&f);
	}
	return rows_end();
}
