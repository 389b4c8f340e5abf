// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Traces: captures of ports, each of which ends with its client connection. A port of the fabric may be in several
 * captures. An Ethernet port, and the port of a host on sockets, have one function that gets their frames, which passes
 * them to all captures of the port.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/passed.h"

/*
 * A port that is captured as frames, by one or more traces: an Ethernet port, or that of a host that is not on the
 * fabric.
 */
struct trace_point {
	struct list link; /* in daemon.trace_points */
	struct eth_end *end;
	struct host *host;
	struct list ends; /* of traces */
};

struct trace_end {
	struct list link; /* in trace_point.ends */
	struct trace_point *point;
	struct fabric_capture *capture;
	u32 interface;
};

struct trace {
	struct daemon *d;
	struct fabric_capture *capture;
	int fd;
	struct loop_task task;
	struct ctl_client *client;
	struct trace_end *ends;
	u32 nends;
};

static void trace_frame(void *arg, const u8 *frame, u32 len, bool out)
{
	const struct trace_point *point = arg;
	const struct trace_end *te;

	list_for_each (te, &point->ends, link)
		fabric_capture_frame(te->capture, te->interface, frame, len, out);
}

/* Sets the function that gets the frames of the port; NULL: none. */
static void trace_point_set(const struct trace_point *point,
			    void (*frame)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx)
{
	if (point->end)
		eth_end_set_capture(point->end, frame, ctx);
	else if (point->host->siw)
		siw_set_capture(point->host->uv.hca, frame, ctx);
	else
		roce_port_set_tap(point->host->roce, frame, ctx);
}

static struct trace_point *trace_point_get(struct daemon *d, struct eth_end *end, struct host *host)
{
	struct trace_point *point;

	list_for_each (point, &d->trace_points, link)
		if (point->end == end && point->host == host)
			return point;
	point = calloc(1, sizeof(*point));
	if (!point)
		return NULL;
	point->end = end;
	point->host = host;
	list_init(&point->ends);
	list_add(&d->trace_points, &point->link);
	trace_point_set(point, trace_frame, point);
	return point;
}

static void trace_end_remove(struct trace_end *te)
{
	struct trace_point *point = te->point;

	list_del(&te->link);
	if (!list_empty(&point->ends))
		return;
	trace_point_set(point, NULL, NULL);
	list_del(&point->link);
	free(point);
}

static void trace_leave_ends(struct trace *t)
{
	while (t->nends)
		trace_end_remove(&t->ends[--t->nends]);
}

static void trace_stop(void *arg)
{
	struct trace *t = arg;

	loop_task_cancel(&t->task);
	trace_leave_ends(t);
	free(t->ends);
	fabric_capture_stop(t->capture);
	passed_close(t->fd, 0);
	free(t);
}

/* The reader has closed, or has all. The capture may be in use up the call stack, so a task ends it. */
static void trace_done(void *arg)
{
	struct trace *t = arg;

	loop_task_queue(t->d->loop, &t->task);
}

static void trace_reap(struct loop_task *task, struct now now)
{
	struct trace *t = container_of(task, struct trace, task);

	ctl_client_on_close(t->client, NULL, NULL);
	trace_stop(t);
}

/* Captures one port as Ethernet frames: @end, or that of @host. False: no memory. */
static bool trace_add_frames(struct trace *t, struct eth_end *end, struct host *host, const char *name, u32 num)
{
	int interface = fabric_capture_add_frames(t->capture, name, num);
	struct trace_point *point = interface < 0 ? NULL : trace_point_get(t->d, end, host);
	struct trace_end *te = &t->ends[t->nends];

	if (!point)
		return false;
	*te = (struct trace_end){ .point = point, .capture = t->capture, .interface = (u32)interface };
	list_add(&point->ends, &te->link);
	t->nends++;
	return true;
}

/* Captures the port of a host that is not on the fabric. */
static json_t *trace_add_host(struct trace *t, struct ctl_client *c, struct fabric_node *n)
{
	struct host *h = daemon_host_of(t->d, n);

	if (!h)
		return ctl_error(c, "host %s does not exist; see `muslin log`", fabric_node_name(n));
	t->ends = calloc(1, sizeof(*t->ends));
	if (!t->ends || !trace_add_frames(t, NULL, h, fabric_node_name(n), 1))
		return ctl_error(c, "%s:1: no memory", fabric_node_name(n));
	return json_pack("[s+]", fabric_node_name(n), ":1");
}

/* Captures one Ethernet port, or all ports of a switch. */
static json_t *trace_add_ether(struct trace *t, struct ctl_client *c, struct eth_end *end, bool all)
{
	struct eth_switch *sw = all ? eth_switch_find(daemon_ether_net(t->d), eth_end_name(end)) : NULL;
	u32 i, n = sw ? eth_switch_ports(sw) : 1;
	json_t *ports = json_array();
	char text[FABRIC_NAME_MAX + 8];

	t->ends = calloc(n, sizeof(*t->ends));
	for (i = 0; t->ends && i < n; i++) {
		struct eth_end *e = sw ? eth_switch_port(sw, i + 1) : end;

		if (!trace_add_frames(t, e, NULL, eth_end_name(e), eth_end_num(e)))
			break;
		snprintf(text, sizeof(text), "%s:%u", eth_end_name(e), eth_end_num(e));
		json_array_append_new(ports, json_string(text));
	}
	if (t->ends && i == n)
		return ports;
	json_decref(ports);
	return ctl_error(c, "%s: no memory", eth_end_name(end));
}

static json_t *trace_add_ports(struct trace *t, struct ctl_client *c, const struct fabric_node *n, u32 num)
{
	json_t *ports = json_array();
	struct fabric_port_info info;
	char text[FABRIC_NAME_MAX + 8];
	u32 i;

	for (i = num ? num : 1; i <= (num ? num : fabric_node_ports(n)); i++) {
		fabric_port_info(fabric_node_port(n, i), &info);
		if (!num && !info.peer)
			continue;
		if (fabric_capture_add(t->capture, fabric_node_port(n, i))) {
			json_decref(ports);
			return ctl_error(c, "%s:%u: no memory", fabric_node_name(n), i);
		}
		snprintf(text, sizeof(text), "%s:%u", fabric_node_name(n), i);
		json_array_append_new(ports, json_string(text));
	}
	return ports;
}

static enum fabric_capture_of trace_of(const struct eth_end *end, const struct fabric_node *n)
{
	if (end)
		return FABRIC_CAPTURE_ROCE;
	if (!fabric_node_binding(n))
		return FABRIC_CAPTURE_PACKETS;
	return daemon_host_is_iwarp(n) ? FABRIC_CAPTURE_TCP : FABRIC_CAPTURE_ROCE;
}

/* Starts a capture to *fd, and takes ownership of it. NULL with errno. */
static struct trace *trace_start(struct daemon *d, struct ctl_client *c, int *fd)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t)
		t->capture = fabric_capture_start(d->fabric, *fd, trace_done, t);
	if (!t || !t->capture) {
		free(t);
		return NULL;
	}
	t->d = d;
	t->client = c;
	t->fd = *fd;
	*fd = -1;
	loop_task_init(&t->task, trace_reap);
	return t;
}

json_t *daemon_trace_command(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = json_string_value(json_object_get(req, "place"));
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
	n = end ? NULL : daemon_place(d, c, place, &num);
	if (!n && !end)
		return NULL;
	t = trace_start(d, c, fd);
	if (!t)
		return ctl_error(c, "a trace cannot start: %s", strerror(errno));
	if (fabric_capture_select(t->capture, (u32)snap, json_string_value(json_object_get(req, "filter")),
				  trace_of(end, n), err, sizeof(err))) {
		trace_stop(t);
		return ctl_error(c, "%s", err);
	}
	ports = end                      ? trace_add_ether(t, c, end, all)
		: fabric_node_binding(n) ? trace_add_host(t, c, n)
					 : trace_add_ports(t, c, n, num);
	if (!ports) {
		trace_stop(t);
		return NULL;
	}
	ctl_client_on_close(c, trace_stop, t);
	return ports;
}

json_t *daemon_untrace_command(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct trace *t = ctl_client_close_arg(c);
	struct fabric_capture_stats st;

	if (!t)
		return ctl_error(c, "this connection has no trace");
	fabric_capture_stats(t->capture, &st);
	trace_leave_ends(t);
	fabric_capture_end(t->capture);
	return json_pack("{s:I, s:I}", "packets", (json_int_t)st.packets, "dropped", (json_int_t)st.dropped);
}
