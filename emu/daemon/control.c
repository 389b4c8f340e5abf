// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests of the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce.h"

#define COUNTERS_NODES_MAX 1000

static const char *text_of(const json_t *req, const char *key)
{
	return json_string_value(json_object_get(req, key));
}

static json_t *unknown_node(struct daemon *d, struct ctl_client *c, const char *name, bool host)
{
	const struct fabric_node *match[4];
	const char *like[4];
	u32 n = fabric_node_matches(d->fabric, name, match, ARRAY_SIZE(match)), i;
	char text[4 * (FABRIC_NAME_MAX + 24)] = "";
	size_t at = 0;

	for (i = 0; n > 1 && i < min(n, (u32)ARRAY_SIZE(match)); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s0x%016llx", i ? ", " : "",
				       (unsigned long long)fabric_node_guid(match[i]));
	if (n > 1)
		return ctl_error(c, "%u nodes of fabric %s have the name \"%.64s\": use the GUID, %s%s", n, d->run.name,
				 name, text, n > ARRAY_SIZE(match) ? ", ..." : "");
	n = daemon_names_like(d, name, host, like, ARRAY_SIZE(like));
	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", like[i]);
	return ctl_error(c, "fabric %s has no %s \"%.64s\"%s%s; `muslin show` lists all", d->run.name,
			 host ? "host" : "node", name, n ? ", but " : "", text);
}

/* Parses "leaf1" or "leaf1:5" to the node, and the port number (0: none given). NULL after an error. */
static struct fabric_node *find_place(struct daemon *d, struct ctl_client *c, const char *place, u32 *num)
{
	const char *port;
	struct fabric_node *n = fabric_place_find(d->fabric, place, &port);
	char name[FABRIC_NAME_MAX + 1], err[200], *end;

	*num = 0;
	if (!n && daemon_ether_no_port(d, place, err, sizeof(err))) {
		ctl_error(c, "%s", err);
		return NULL;
	}
	if (!n) {
		snprintf(name, sizeof(name), "%.*s", (int)(port ? port - 1 - place : FABRIC_NAME_MAX), place);
		unknown_node(d, c, name, false);
		return NULL;
	}
	if (!port)
		return n;
	*num = (u32)strtoul(port, &end, 10);
	if (*port && !*end && *num && fabric_node_port(n, *num))
		return n;
	ctl_error(c, "%s has no port \"%.20s\": they are 1 to %u", fabric_node_name(n), port, fabric_node_ports(n));
	return NULL;
}

/* "counters": true, or "few" to omit those of large fabrics. */
static bool wants_counters(const struct daemon *d, const json_t *req, const char *only)
{
	const char *when = text_of(req, "counters");

	if (when && !strcmp(when, "few"))
		return only || fabric_node_count(d->fabric) <= COUNTERS_NODES_MAX;
	return json_is_true(json_object_get(req, "counters"));
}

static json_t *cmd_show(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *name = text_of(req, "node");
	const struct fabric_node *n;
	char *text;
	json_t *o;

	n = name ? fabric_node_find(d->fabric, name) : NULL;
	if (name && !n && !daemon_ether_has(d, name))
		return unknown_node(d, c, name, false);
	if (n)
		name = fabric_node_name(n);
	if (!json_is_true(json_object_get(req, "topology")))
		return daemon_show(d, name, wants_counters(d, req, name));
	text = daemon_topology_text(d);
	o = text ? json_string(text) : NULL;
	free(text);
	return o ?: ctl_error(c, "out of memory");
}

/* Whether the node of the place is in this daemon: commands use it to find the daemon of a place. */
static json_t *cmd_has(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = text_of(req, "place"), *port;

	if (!place)
		return ctl_error(c, "missing place");
	return json_boolean(fabric_place_find(d->fabric, place, &port));
}

/* `muslin top`: for each cabled port the name, state, and counters sent and received, in words and packets. */
static json_t *cmd_rates(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	return daemon_show_rates(arg);
}

static json_t *cmd_status(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	return daemon_show_status(arg);
}

/* The host that the request names, created at its first use; NULL with *error. */
static struct host *host_of(struct daemon *d, struct ctl_client *c, const json_t *req, json_t **error)
{
	const char *name = text_of(req, "name");
	struct fabric_node *n = name ? fabric_node_find(d->fabric, name) : NULL;
	bool ca = n && fabric_node_type(n) == NODE_TYPE_CA;
	struct host *h = ca ? daemon_host_of(d, n) : NULL;

	if (!name)
		*error = ctl_error(c, "missing host");
	else if (!ca)
		*error = unknown_node(d, c, name, true);
	else if (!h)
		*error = ctl_error(c, "host %s cannot be created; see `muslin log`", name);
	return h;
}

/* `muslin run`: creates the host. */
static json_t *cmd_host(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	json_t *error = NULL;
	struct host *h = host_of(d, c, req, &error);
	int err;

	if (!h)
		return error;
	if (!h->uv.hca)
		return ctl_error(c, "host %s has only a network card, for a guest: `muslin vm %s`", h->uv.name,
				 h->uv.name);
	err = uv_sysfs_refresh(&h->uv, uv_server_tree(d->server));
	if (err)
		return ctl_error(c, "the tree of host %s cannot be written: %s", h->uv.name, strerror(-err));
	return json_pack("{s:s, s:o}", "name", h->uv.name, "ips", daemon_show_ips(h->node));
}

/*
 * `muslin vm`: creates the host's devices for a guest. With a QMP socket and the name "netdev" of the card's network
 * end, the card's carrier follows the link.
 */
static json_t *cmd_vm(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	json_t *error = NULL;
	struct host *h = host_of(d, c, req, &error);
	int err;

	if (!h)
		return error;
	err = daemon_guest_create(d, h);
	if (err)
		return ctl_error(c, "host %s: no device for a guest: %s", h->uv.name, strerror(-err));
	if (daemon_guest_present(h))
		return ctl_error(c, "host %s has a guest already", h->uv.name);
	if (*fd >= 0 && text_of(req, "netdev") && daemon_guest_monitor(h, *fd, text_of(req, "netdev")))
		*fd = -1;
	return daemon_guest_json(h);
}

static json_t *cmd_link(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = text_of(req, "place"), *state = text_of(req, "state");
	struct fabric_node *n;
	struct eth_end *end;
	u32 num;
	int err;
	bool all;

	if (!place || !state || (strcmp(state, "up") && strcmp(state, "down")))
		return ctl_error(c, "a link needs a \"place\" and a \"state\", up or down");
	end = daemon_ether_place(d, place, &all);
	if (end) {
		if (all)
			return ctl_error(c, "which port of %s? Use %s:1, or another one", place, place);
		eth_end_set_up(end, !strcmp(state, "up"));
		log_at(LOG_INFO, place, "the link is set %s", state);
		return json_true();
	}
	n = find_place(d, c, place, &num);
	if (!n)
		return NULL;
	if (!num && fabric_node_type(n) == NODE_TYPE_CA && fabric_node_ports(n) == 1)
		num = 1;
	if (!num)
		return ctl_error(c, "which port of %s? Use %s:1 to %s:%u", place, place, place, fabric_node_ports(n));
	err = fabric_node_binding(n) ? daemon_host_set_link(d, n, !strcmp(state, "up"))
	      : strcmp(state, "up")  ? fabric_link_unplug(fabric_node_port(n, num))
				     : fabric_link_plug(fabric_node_port(n, num));
	if (err == -ENOLINK)
		return ctl_error(c, "port %u of %s has no cable", num, fabric_node_name(n));
	if (err)
		return ctl_error(c, "%s: %s", place, strerror(-err));
	log_at(LOG_INFO, fabric_node_name(n), "the link of port %u is set %s", num, state);
	return json_true();
}

/* The default RoCE mode of a host's port (configfs default_roce_mode). */
static json_t *cmd_mode(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	const char *name = text_of(req, "name"), *mode = text_of(req, "mode");
	struct host *h = name ? daemon_host_get(arg, name) : NULL;
	int err;

	if (!h || !h->roce)
		return ctl_error(c, "%s is not a host with a RoCE port", name ?: "?");
	if (mode && strcmp(mode, "v1") && strcmp(mode, "v2"))
		return ctl_error(c, "a mode is v1 or v2, not \"%s\"", mode);
	err = mode ? roce_port_set_version(h->roce, strcmp(mode, "v1") ? 2 : 1) : 0;
	if (err == -EPERM)
		return ctl_error(c, "%s: its guest configures addresses and RoCE mode", name);
	if (err)
		return ctl_error(c, "%s: a port on UDP sockets has RoCE v2 only", name);
	return json_string(roce_port_wire(h->roce)->attr.roce_version == 1 ? "v1" : "v2");
}

static json_t *cmd_partitions(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	char err[512];

	return daemon_manager_partitions(arg, text_of(req, "file"), err, sizeof(err)) ? ctl_error(c, "%s", err)
										      : json_true();
}

/* A captured Ethernet port; or the port of a host that is not on the fabric, without @end. */
struct trace_end {
	struct trace *t;
	struct eth_end *end;
	u32 interface;
};

/* A capture; ends with its client connection. */
struct trace {
	struct daemon *d;
	struct fabric_capture *capture;
	int fd;
	struct loop_task task;
	struct ctl_client *client;
	struct host *host; /* if not on the fabric, captured as frames; NULL */
	struct trace_end of_host;
	struct trace_end *ends;
	u32 nends;
};

static void trace_frame(void *arg, const u8 *frame, u32 len, bool out)
{
	struct trace_end *te = arg;

	fabric_capture_frame(te->t->capture, te->interface, frame, len, out);
}

/* Sets the capture callback (Ethernet frames) of a host that is not on the fabric; NULL: none. */
static void set_tap(struct host *h, void (*tap)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx)
{
	if (h->siw)
		siw_set_capture(h->uv.hca, tap, ctx);
	else
		roce_port_set_tap(h->roce, tap, ctx);
}

static void trace_end(void *arg)
{
	struct trace *t = arg;
	u32 i;

	loop_task_cancel(&t->task);
	for (i = 0; i < t->nends; i++)
		eth_end_set_capture(t->ends[i].end, NULL, NULL);
	free(t->ends);
	if (t->host)
		set_tap(t->host, NULL, NULL);
	fabric_capture_stop(t->capture);
	passed_close(t->fd, 0);
	free(t);
}

/* The reader has closed. The capture may be in use up the call stack, so a task ends it. */
static void trace_failed(void *arg)
{
	struct trace *t = arg;

	loop_task_queue(t->d->loop, &t->task);
}

static void trace_reap(struct loop_task *task, struct now now)
{
	struct trace *t = container_of(task, struct trace, task);

	ctl_client_on_close(t->client, NULL, NULL);
	trace_end(t);
}

/* Captures the port of a host that is not on the fabric, as Ethernet frames. */
static json_t *trace_add_host(struct trace *t, struct ctl_client *c, struct fabric_node *n)
{
	struct host *h = daemon_host_of(t->d, n);
	int interface;

	if (!h)
		return ctl_error(c, "host %s does not exist; see `muslin log`", fabric_node_name(n));
	if (h->siw ? siw_captured(h->uv.hca) : roce_port_tapped(h->roce))
		return ctl_error(c, "%s:1 has a trace already", fabric_node_name(n));
	interface = fabric_capture_add_frames(t->capture, fabric_node_name(n), 1);
	if (interface < 0)
		return ctl_error(c, "%s:1: no memory", fabric_node_name(n));
	t->host = h;
	t->of_host = (struct trace_end){ .t = t, .interface = (u32)interface };
	set_tap(h, trace_frame, &t->of_host);
	return json_pack("[s+]", fabric_node_name(n), ":1");
}

/* Captures one Ethernet port; 0 or -errno. */
static int trace_add_end(struct trace *t, struct eth_end *end)
{
	struct trace_end *te = &t->ends[t->nends];
	int interface;

	if (eth_end_captured(end))
		return -EBUSY;
	interface = fabric_capture_add_frames(t->capture, eth_end_name(end), eth_end_num(end));
	if (interface < 0)
		return interface;
	*te = (struct trace_end){ .t = t, .end = end, .interface = (u32)interface };
	t->nends++;
	eth_end_set_capture(end, trace_frame, te);
	return 0;
}

/* Captures one Ethernet port, or all ports of a switch. */
static json_t *trace_add_ether(struct trace *t, struct ctl_client *c, struct eth_end *end, bool all)
{
	struct eth_switch *sw = all ? eth_switch_find(daemon_ether_net(t->d), eth_end_name(end)) : NULL;
	u32 i, n = sw ? eth_switch_ports(sw) : 1;
	json_t *ports = json_array();
	char text[FABRIC_NAME_MAX + 8];
	int err = 0;

	t->ends = calloc(n, sizeof(*t->ends));
	for (i = 0; t->ends && i < n && !err; i++) {
		struct eth_end *e = sw ? eth_switch_port(sw, i + 1) : end;

		err = trace_add_end(t, e);
		snprintf(text, sizeof(text), "%s:%u", eth_end_name(e), eth_end_num(e));
		json_array_append_new(ports, json_string(text));
	}
	if (t->ends && !err)
		return ports;
	json_decref(ports);
	return ctl_error(c, err == -EBUSY ? "%s has a trace already" : "%s: no memory", eth_end_name(end));
}

static json_t *trace_add_ports(struct trace *t, struct ctl_client *c, const struct fabric_node *n, u32 num)
{
	json_t *ports = json_array();
	struct fabric_port_info info;
	char text[FABRIC_NAME_MAX + 8];
	u32 i;
	int err;

	for (i = num ? num : 1; i <= (num ? num : fabric_node_ports(n)); i++) {
		fabric_port_info(fabric_node_port(n, i), &info);
		if (!num && !info.peer)
			continue;
		err = fabric_capture_add(t->capture, fabric_node_port(n, i));
		if (err) {
			json_decref(ports);
			return ctl_error(c, err == -EBUSY ? "%s:%u has a trace already" : "%s:%u: no memory",
					 fabric_node_name(n), i);
		}
		snprintf(text, sizeof(text), "%s:%u", fabric_node_name(n), i);
		json_array_append_new(ports, json_string(text));
	}
	return ports;
}

static json_t *cmd_trace(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = text_of(req, "place");
	struct fabric_node *n;
	struct eth_end *end;
	json_int_t snap = json_integer_value(json_object_get(req, "snap"));
	struct trace *t;
	char err[512];
	json_t *ports;
	u32 num = 0;
	bool all;

	if (!place || *fd < 0)
		return ctl_error(c, "a trace needs a \"place\" and a descriptor");
	if (passed_kind(*fd) != PASSED_PIPE && passed_kind(*fd) != PASSED_SOCKET)
		return ctl_error(c, "a trace needs a pipe or a socket: writing to a file may block the daemon");
	if (snap < 0 || snap > 0xffff)
		return ctl_error(c, "a packet is cut to at most 65535 bytes");
	if (ctl_client_close_arg(c))
		return ctl_error(c, "this connection has a trace");
	end = daemon_ether_place(d, place, &all);
	n = end ? NULL : find_place(d, c, place, &num);
	if (!n && !end)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (t)
		t->capture = fabric_capture_start(d->fabric, *fd, trace_failed, t);
	if (!t || !t->capture) {
		free(t);
		return ctl_error(c, "a trace cannot start: %s", strerror(errno));
	}
	t->d = d;
	t->client = c;
	t->fd = *fd;
	*fd = -1;
	loop_task_init(&t->task, trace_reap);
	if (fabric_capture_select(t->capture, (u32)snap, text_of(req, "filter"), end || fabric_node_binding(n), err,
				  sizeof(err))) {
		trace_end(t);
		return ctl_error(c, "%s", err);
	}
	ports = end                      ? trace_add_ether(t, c, end, all)
		: fabric_node_binding(n) ? trace_add_host(t, c, n)
					 : trace_add_ports(t, c, n, num);
	if (!ports) {
		trace_end(t);
		return NULL;
	}
	ctl_client_on_close(c, trace_end, t);
	return ports;
}

/* Ends the connection's capture: flushes as far as possible and closes its descriptor. */
static json_t *cmd_untrace(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct trace *t = ctl_client_close_arg(c);
	struct fabric_capture_stats st;

	if (!t)
		return ctl_error(c, "this connection has no trace");
	fabric_capture_stats(t->capture, &st);
	ctl_client_on_close(c, NULL, NULL);
	trace_end(t);
	return json_pack("{s:I, s:I}", "packets", (json_int_t)st.packets, "dropped", (json_int_t)st.dropped);
}

const struct ctl_command daemon_commands[] = {
	{ "show", cmd_show },
	{ "has", cmd_has },
	{ "rates", cmd_rates },
	{ "status", cmd_status },
	{ "host", cmd_host },
	{ "link", cmd_link },
	{ "mode", cmd_mode },
	{ "trace", cmd_trace },
	{ "untrace", cmd_untrace },
	{ "fault", daemon_fault_command },
	{ "timeline", daemon_timeline_command },
	{ "vm", cmd_vm },
	{ "partitions", cmd_partitions },
	{ NULL, NULL },
};
