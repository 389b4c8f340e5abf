// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of rdma_cm: what each command returns in each state of an RC ID, and the Q_Keys of datagrams. The values
 * are those of the kernel's cma.c and ucma.c. An ID is brought to the state anew for each command.
 */
#include "emu/host/ucma_fixture.h"
#include "emu/lib/row.h"
#include "emu/wire/sa.h"

#define OWN   0x0a000001
#define OTHER 0x0a000009 /* nobody has it */
#define PORT  7471

static ssize_t call(struct ucma_fixture *f, u32 cmd, const void *body, size_t len, u16 out)
{
	ssize_t n = command(f, 0, cmd, body, len, out, -1);

	return n < 0 ? n : 0;
}

static u32 create_in(struct ucma_fixture *f, u16 ps)
{
	struct rdma_ucm_create_id cmd = { .uid = 0x77, .ps = ps };
	u32 id;

	call(f, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), 4);
	memcpy(&id, f->out, sizeof(id));
	return id;
}

static u32 create(struct ucma_fixture *f)
{
	return create_in(f, RDMA_PS_TCP);
}

/* ---- commands ---- */

static ssize_t bind_to(struct ucma_fixture *f, u32 id, u32 addr)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(addr) };

	memcpy(&cmd.addr, &in, sizeof(in));
	return call(f, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

static ssize_t resolve_to(struct ucma_fixture *f, u32 id, u32 addr)
{
	struct rdma_ucm_resolve_addr cmd = { .id = id, .timeout_ms = 500, .dst_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(addr) };

	memcpy(&cmd.dst_addr, &in, sizeof(in));
	return call(f, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

static ssize_t do_bind(struct ucma_fixture *f, u32 id)
{
	return bind_to(f, id, 0);
}

static ssize_t do_resolve_addr(struct ucma_fixture *f, u32 id)
{
	return resolve_to(f, id, OWN);
}

static ssize_t do_resolve_route(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 1000 };

	return call(f, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static ssize_t do_resolve_route_0(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id };

	return call(f, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static ssize_t do_set_path(struct ucma_fixture *f, u32 id)
{
	struct ib_path_rec_data rec = { .flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL };
	struct rdma_ucm_cmd_hdr hdr = { .cmd = RDMA_USER_CM_CMD_SET_OPTION, .in = sizeof(struct rdma_ucm_set_option) };
	struct rdma_ucm_set_option opt = {
		.id = id, .level = RDMA_OPTION_IB, .optname = RDMA_OPTION_IB_PATH, .optlen = sizeof(rec)
	};
	struct sa_path path = { .dgid = f->c.b.port.attr.gid[0],
				.sgid = f->c.a.port.attr.gid[0],
				.dlid = f->c.b.port.attr.lid,
				.slid = f->c.a.port.attr.lid,
				.mtu = WIRE_MTU_2048,
				.pkey = WIRE_PKEY_DEFAULT_FULL };
	u8 buf[sizeof(hdr) + sizeof(opt) + sizeof(rec)];
	size_t len = 0;
	int fd = -1;
	ssize_t n;

	sa_path_put_record(&path, (u8 *)rec.path_rec);
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), &opt, sizeof(opt));
	memcpy(buf + sizeof(hdr) + sizeof(opt), &rec, sizeof(rec));
	n = ucma_file_ops.command(&f->file[0], buf, sizeof(buf), -1, f->out, &len, &fd);
	return n < 0 ? n : 0;
}

static ssize_t do_listen(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_listen cmd = { .id = id };

	return call(f, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

static ssize_t do_connect(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_connect cmd = { .id = id, .conn_param.valid = 1 };

	return call(f, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

static ssize_t do_accept(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_accept cmd = { .id = id, .uid = 0x77, .conn_param = { .valid = 1, .qp_num = 5 } };

	return call(f, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

static ssize_t do_accept_rep(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return call(f, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

static ssize_t do_reject(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_reject cmd = { .id = id };

	return call(f, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0);
}

static ssize_t do_disconnect(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return call(f, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0);
}

static ssize_t notify(struct ucma_fixture *f, u32 id, u32 event)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = event };

	return call(f, RDMA_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), 0);
}

static ssize_t do_comm_est(struct ucma_fixture *f, u32 id)
{
	return notify(f, id, HCA_EVENT_COMM_EST);
}

static ssize_t do_path_mig(struct ucma_fixture *f, u32 id)
{
	return notify(f, id, HCA_EVENT_PATH_MIG);
}

static ssize_t do_other_event(struct ucma_fixture *f, u32 id)
{
	return notify(f, id, HCA_EVENT_PATH_MIG + 1);
}

static ssize_t do_join(struct ucma_fixture *f, u32 id)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000106) };
	struct rdma_ucm_join_ip_mcast cmd = { .id = id };

	memcpy(&cmd.addr, &in, sizeof(in));
	return call(f, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &cmd, sizeof(cmd), 4);
}

static ssize_t do_migrate(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_migrate_id cmd = { .id = id };
	ssize_t n = command(f, 1, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), 4, f->fd[0]);

	return n < 0 ? n : 0;
}

static ssize_t qp_attr(struct ucma_fixture *f, u32 id, u32 state)
{
	struct rdma_ucm_init_qp_attr cmd = { .id = id, .qp_state = state };

	return call(f, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(struct ib_uverbs_qp_attr));
}

static ssize_t do_attr_init(struct ucma_fixture *f, u32 id)
{
	return qp_attr(f, id, HCA_QPS_INIT);
}

static ssize_t do_attr_rtr(struct ucma_fixture *f, u32 id)
{
	return qp_attr(f, id, HCA_QPS_RTR);
}

static ssize_t do_attr_rts(struct ucma_fixture *f, u32 id)
{
	return qp_attr(f, id, HCA_QPS_RTS);
}

static ssize_t do_attr_err(struct ucma_fixture *f, u32 id)
{
	return qp_attr(f, id, HCA_QPS_ERR);
}

#define COMMANDS(C)        \
	C(bind)            \
	C(resolve_addr)    \
	C(resolve_route)   \
	C(resolve_route_0) \
	C(set_path)        \
	C(listen)          \
	C(connect)         \
	C(accept)          \
	C(accept_rep)      \
	C(reject)          \
	C(disconnect)      \
	C(comm_est)        \
	C(path_mig)        \
	C(other_event)     \
	C(join)            \
	C(migrate)         \
	C(attr_init)       \
	C(attr_rtr)        \
	C(attr_rts)        \
	C(attr_err)
#define COMMAND(name) { #name, do_##name },
static const struct {
	const char *name;
	ssize_t (*fn)(struct ucma_fixture *f, u32 id);
} commands[] = { COMMANDS(COMMAND) };

/* ---- states ---- */

static void read_event(struct ucma_fixture *f, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event cmd = { 0 };

	call(f, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*ev));
	memcpy(ev, f->out, sizeof(*ev));
}

static bool event_is(struct ucma_fixture *f, u32 type, int status)
{
	struct rdma_ucm_event_resp ev;

	read_event(f, &ev);
	return ev.event == type && (int)ev.status == status;
}

static u32 to_idle(struct ucma_fixture *f)
{
	return create(f);
}

static u32 to_bound_any(struct ucma_fixture *f)
{
	u32 id = create(f);

	bind_to(f, id, 0);
	return id;
}

static u32 to_bound(struct ucma_fixture *f)
{
	u32 id = create(f);

	bind_to(f, id, OWN);
	return id;
}

static u32 to_addr_query(struct ucma_fixture *f)
{
	u32 id = create(f);

	resolve_to(f, id, OTHER);
	return id;
}

static u32 to_addr_error(struct ucma_fixture *f)
{
	u32 id = to_addr_query(f);

	cable_run(&f->c, 1000);
	return id;
}

static u32 to_addr_resolved(struct ucma_fixture *f)
{
	u32 id = create(f);

	resolve_to(f, id, OWN);
	cable_run(&f->c, 10);
	return id;
}

static u32 to_route_resolved(struct ucma_fixture *f)
{
	u32 id = to_addr_resolved(f);

	do_set_path(f, id);
	return id;
}

static u32 to_listen(struct ucma_fixture *f)
{
	u32 id = to_bound(f);

	do_listen(f, id);
	return id;
}

static u32 to_request(struct ucma_fixture *f)
{
	struct rdma_ucm_event_resp ev;

	to_listen(f);
	peer_connect(f, PORT);
	read_event(f, &ev);
	return ev.id;
}

static u32 to_rep_sent(struct ucma_fixture *f)
{
	u32 id = to_request(f);

	do_accept(f, id);
	return id;
}

static u32 to_established(struct ucma_fixture *f)
{
	u32 id = to_rep_sent(f);

	do_comm_est(f, id);
	return id;
}

static u32 to_disconnected(struct ucma_fixture *f)
{
	u32 id = to_established(f);

	peer_destroy(f, 0);
	cable_run(&f->c, 10);
	return id;
}

static ssize_t do_unplug(struct ucma_fixture *f, u32 id)
{
	rdma_host_unplug(f->rdma, true);
	return 0;
}

/* In the order of COMMANDS. E: EINVAL, C: EISCONN, X: ENXIO, N: ENETUNREACH, 0: success. */
static const struct {
	const char *want, *name;
	u32 (*make)(struct ucma_fixture *f);
	ssize_t (*then)(struct ucma_fixture *f, u32 id); /* NULL: nothing */
} states[] = {
	/* bind set_path accept_rep comm_est join
	 *   addr  listen  reject    path_mig  migrate
	 *     route connect disconnect other   attributes */
	{ "0 0 E E E 0 E E E E E E E E E 0 E E E E", "idle", to_idle },
	{ "E 0 E E E 0 E E E E E E E E E 0 E E E E", "bound to any address", to_bound_any },
	{ "E 0 E E E 0 E E E E E E E E E 0 0 0 0 0", "bound", to_bound },
	{ "E E E E E E E E E E E E E E E 0 E E E E", "address query", to_addr_query },
	{ "E 0 E E E 0 E E E E E E E E E 0 E E E E", "address error", to_addr_error },
	{ "E E 0 E 0 E E E E E E E E E E 0 0 0 0 0", "address resolved", to_addr_resolved },
	{ "E E E E E E E E E E E E E E E 0 0 0 0 0", "route query", to_addr_resolved, do_resolve_route },
	{ "E E E E E E 0 E E E E E E E E 0 0 0 0 0", "route resolved", to_route_resolved },
	{ "E E E E E E E E E 0 0 E E E E 0 0 E E E", "REQ sent", to_route_resolved, do_connect },
	{ "E E E E E E E E E E E E E E E 0 E E E E", "listening on any address", to_bound_any, do_listen },
	{ "E E E E E E E E E E 0 E E E E 0 E E E E", "listening", to_listen },
	{ "E E E E E E E 0 E 0 0 E E E E 0 0 0 0 E", "REQ received", to_request },
	{ "E E E E E E E E E 0 0 0 E E E 0 0 0 0 E", "REP sent", to_rep_sent },
	{ "E E E E E E E E E E 0 C 0 E E 0 0 0 0 E", "established", to_established },
	{ "E E E E E E E E E E 0 E E E E 0 E E E E", "rejected", to_request, do_reject },
	{ "E E E E E E E E E E 0 E E E E 0 E E E E", "DREQ sent", to_established, do_disconnect },
	{ "E E E E E E E E E E 0 E E E E 0 E E E E", "disconnected", to_disconnected },
	{ "X X X X X X X X X X X X X X X X X X X X", "of a removed device", to_established, do_unplug },
	{ "E N E E E 0 E E E E E E E E E 0 E E E E", "of no device, when one is removed", to_bound_any, do_unplug },
};

static void test_state(size_t s, size_t c)
{
	char want = states[s].want[2 * c], got;
	struct ucma_fixture f;
	ssize_t n;
	u32 id;

	fixture_open(&f);
	id = states[s].make(&f);
	if (states[s].then)
		states[s].then(&f, id);
	n = commands[c].fn(&f, id);
	got = n == -EINVAL ? 'E' : n == -EISCONN ? 'C' : n == -ENXIO ? 'X' : n == -ENETUNREACH ? 'N' : n ? '?' : '0';
	if (got != want)
		printf("%s: %zd\n", commands[c].name, n);
	row_of(states[s].name, commands[c].name, got == want);
	fixture_close(&f);
}

/* The address of an ID, which is any address until another is resolved. */
static u32 source_of(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_query cmd = { .id = id, .option = RDMA_USER_CM_QUERY_ADDR };
	struct rdma_ucm_query_addr_resp resp;
	struct sockaddr_in in;

	call(f, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), sizeof(resp));
	memcpy(&resp, f->out, sizeof(resp));
	memcpy(&in, &resp.src_addr, sizeof(in));
	return resp.port_num ? ~0u : ntohl(in.sin_addr.s_addr);
}

static void test_address_error(void)
{
	struct ucma_fixture f;
	u32 id;

	fixture_open(&f);
	id = to_addr_error(&f);
	row(0, "after ADDR_ERROR the ID has no device and no address", source_of(&f, id) == 0);
	fixture_close(&f);
}

/* As with the kernel's addr_handler(), the ID gets its device and its address together with the event. */
static void test_address_query(void)
{
	static const struct {
		const char *name;
		u32 to, before, after; /* ~0: it has a device */
	} rows[] = {
		{ "the own address", OWN, 0, ~0u },
		{ "nobody's address", OTHER, 0, 0 },
		{ "127.0.0.1, which binds a device at once", INADDR_LOOPBACK, ~0u, ~0u },
		{ "any address, too", 0, ~0u, ~0u },
	};
	struct ucma_fixture f;
	size_t i;
	u32 id;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fixture_open(&f);
		id = create(&f);
		row(0, rows[i].name, !resolve_to(&f, id, rows[i].to) && source_of(&f, id) == rows[i].before);
		cable_run(&f.c, 1000);
		row(0, rows[i].name, source_of(&f, id) == rows[i].after);
		fixture_close(&f);
	}
	fixture_open(&f);
	id = create(&f);
	resolve_to(&f, id, OWN);
	rdma_host_unplug(f.rdma, true);
	cable_run(&f.c, 10);
	row(0, "the device is removed meanwhile", event_is(&f, RDMA_EVENT_ADDR_ERROR, -ENODEV));
	fixture_close(&f);
}

/* ---- attributes of queue pairs ---- */

static struct ib_uverbs_qp_attr attr_of(struct ucma_fixture *f, u32 id, u32 state)
{
	struct ib_uverbs_qp_attr attr = { 0 };

	if (!qp_attr(f, id, state))
		memcpy(&attr, f->out, sizeof(attr));
	return attr;
}

/* As the kernel's cma.c: those of a port for any state before REQ, and then those of the connection. */
static void test_attributes(void)
{
	const u32 port = HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT, rc = port | HCA_QP_ACCESS_FLAGS;
	struct rdma_ucm_connect connect = { .conn_param = { .valid = 1, .responder_resources = 3 } };
	struct ib_uverbs_qp_attr attr;
	struct ucma_fixture f;
	u32 id;

	fixture_open(&f);
	id = to_bound(&f);
	attr = attr_of(&f, id, HCA_QPS_RTR);
	row(0, "of a bound ID for RTR", attr.qp_attr_mask == rc && attr.rq_psn && !attr.qp_access_flags);
	attr = attr_of(&f, id, HCA_QPS_ERR);
	row(0, "for the error state", attr.qp_attr_mask == rc && attr.qp_state == HCA_QPS_ERR && !attr.rq_psn);
	f.c.a.port.attr.pkey[0] = 0x8123;
	row(0, "its partition is gone", qp_attr(&f, id, HCA_QPS_INIT) == -ENOENT);
	fixture_close(&f);
	fixture_open(&f);
	connect.id = id = to_route_resolved(&f);
	row(0, "connect", !call(&f, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0));
	attr = attr_of(&f, id, HCA_QPS_INIT);
	row(0, "after REQ the access rights are known",
	    attr.qp_attr_mask == rc && attr.qp_access_flags == (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ |
								HCA_ACCESS_REMOTE_ATOMIC));
	fixture_close(&f);
	fixture_open(&f);
	id = create_in(&f, RDMA_PS_UDP);
	bind_to(&f, id, OWN);
	attr = attr_of(&f, id, HCA_QPS_RTS);
	row(0, "of datagrams for RTS",
	    attr.qp_attr_mask == (port | HCA_QP_QKEY) && attr.qkey == 0x01234567 && !attr.sq_psn);
	id = create_in(&f, RDMA_PS_IPOIB);
	bind_to(&f, id, OWN);
	row(0, "without a broadcast group there is no Q_Key", qp_attr(&f, id, HCA_QPS_INIT) == -EADDRNOTAVAIL);
	fixture_close(&f);
}

/* ---- groups on Ethernet ---- */

static ssize_t join_v6(struct ucma_fixture *f, u32 id)
{
	struct rdma_ucm_join_ip_mcast cmd = { .id = id, .addr.sin6_family = AF_INET6 };

	memcpy(&cmd.addr.sin6_addr, (u8[16]){ 0xff, 0x0e, [15] = 7 }, 16);
	return call(f, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &cmd, sizeof(cmd), 4);
}

/* As the kernel's cma_iboe_join_multicast(): RoCEv1 makes an MGID of an IPv4 address, RoCEv2 has no groups of IPv6. */
static void test_ethernet_groups(void)
{
	static const struct {
		const char *name;
		u8 version;
		ssize_t (*join)(struct ucma_fixture *f, u32 id);
		ssize_t want;
		u8 mgid0, hop_limit;
	} rows[] = {
		{ "IPv4, RoCEv1", 1, do_join, 0, 0xff, 1 },
		{ "IPv6, RoCEv1", 1, join_v6, 0, 0xff, 1 },
		{ "IPv4, RoCEv2", 2, do_join, 0, 0, 64 },
		{ "IPv6, RoCEv2", 2, join_v6, -524 },
	};
	struct rdma_ucm_event_resp ev;
	struct ucma_fixture f;
	size_t i;
	u32 id;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fixture_open(&f);
		f.c.a.port.attr.link_layer = WIRE_LINK_ETHERNET;
		f.c.a.port.attr.roce_version = rows[i].version;
		id = create_in(&f, RDMA_PS_UDP);
		bind_to(&f, id, OWN);
		row(0, rows[i].name, rows[i].join(&f, id) == rows[i].want);
		cable_run(&f.c, 10);
		if (!rows[i].want) {
			read_event(&f, &ev);
			row(0, rows[i].name,
			    ev.event == RDMA_EVENT_MULTICAST_JOIN && ev.param.ud.ah_attr.grh.dgid[0] == rows[i].mgid0 &&
				    ev.param.ud.ah_attr.grh.hop_limit == rows[i].hop_limit);
		}
		f.c.a.port.attr.link_layer = WIRE_LINK_IB;
		fixture_close(&f);
	}
}

static void test_unplugged(void)
{
	struct ucma_fixture f;
	u32 id;

	fixture_open(&f);
	rdma_host_unplug(f.rdma, true);
	id = create(&f);
	row(0, "a removed device has no address", bind_to(&f, id, OWN) == -EADDRNOTAVAIL);
	row(0, "and is not that of 127.0.0.1", resolve_to(&f, id, INADDR_LOOPBACK) == -ENODEV);
	rdma_host_unplug(f.rdma, false);
	row(0, "until it is back", !resolve_to(&f, id, OWN) && !bind_to(&f, create(&f), OWN));
	fixture_close(&f);
}

/* ---- the Q_Key of datagrams ---- */

static u32 peer_qkey;

static int peer_sidr(void *ctx, struct cm_id *cm, const struct cm_event *ev)
{
	struct cm_sidr_rep rep = { .status = CM_SIDR_OK, .qpn = 9, .qkey = peer_qkey };

	cm_id_own(cm, NULL, NULL);
	(void)cm_send_sidr_rep(cm, &rep);
	cm_id_destroy(cm);
	return 0;
}

/* Connects; the peer's response has @qkey. @init: the ID has the port space's Q_Key before. Returns the event. */
static struct rdma_ucm_event_resp connect_datagrams(u32 qkey, bool init)
{
	struct rdma_ucm_init_qp_attr attr = { .qp_state = HCA_QPS_INIT };
	struct rdma_ucm_event_resp ev;
	struct cm_listener *listener;
	struct ucma_fixture f;
	u32 id;

	fixture_open(&f);
	peer_qkey = qkey;
	cm_listen(f.peer, wire_cm_service_id(RDMA_PS_UDP, 7), ~0ull, peer_sidr, &f, &listener);
	attr.id = id = create_in(&f, RDMA_PS_UDP);
	resolve_to(&f, id, OWN);
	cable_run(&f.c, 10);
	read_event(&f, &ev);
	do_set_path(&f, id);
	read_event(&f, &ev);
	if (init)
		call(&f, RDMA_USER_CM_CMD_INIT_QP_ATTR, &attr, sizeof(attr), sizeof(struct ib_uverbs_qp_attr));
	row(0, "connect", do_connect(&f, id) == 0);
	cable_run(&f.c, 10);
	read_event(&f, &ev);
	cm_unlisten(listener);
	fixture_close(&f);
	return ev;
}

static void test_qkey(void)
{
	static const struct {
		const char *name;
		u32 qkey;
		bool init;
		u32 event;
		int status;
	} rows[] = {
		{ "the port space's Q_Key", 0x01234567, true, RDMA_EVENT_ESTABLISHED, 0 },
		{ "another Q_Key", 0x77, true, RDMA_EVENT_ADDR_ERROR, -EINVAL },
		{ "another Q_Key, which the ID takes", 0x77, false, RDMA_EVENT_ESTABLISHED, 0 },
		{ "Q_Key 0", 0, false, RDMA_EVENT_ADDR_ERROR, -EINVAL },
	};
	struct rdma_ucm_event_resp ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ev = connect_datagrams(rows[i].qkey, rows[i].init);
		row(0, rows[i].name, ev.event == rows[i].event && (int)ev.status == rows[i].status);
	}
}

int main(void)
{
	size_t s, c;

	for (s = 0; s < ARRAY_SIZE(states); s++)
		for (c = 0; c < ARRAY_SIZE(commands); c++)
			test_state(s, c);
	test_address_error();
	test_address_query();
	test_attributes();
	test_ethernet_groups();
	test_unplugged();
	test_qkey();
	return rows_end();
}
