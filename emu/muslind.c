// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon: one fabric, its hosts' adapters, and the sockets by which programs and the command line reach it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/uverbs/server.h"
#include "emu/uverbs/umad.h"
#include "emu/wire/smp.h"
#include "fabric/fabric.h"
#include "rxe/rxe.h"

struct daemon {
	struct loop *loop;
	struct fabric *fabric;
	struct uv_server *server;
	struct loop_fd listener, signals;
	char dir[256];
	struct uv_host **hosts; /* by node index; made when first used */
};

static struct daemon d;

/* Hosts */

static const char *host_counter(struct uv_host *h, u8 port, u32 n, u64 *value)
{
	if (n >= FABRIC_CTR_NUM)
		return NULL;
	*value = fabric_port_counter(fabric_node_port(h->owner, port), (enum fabric_counter)n);
	return fabric_counter_name((enum fabric_counter)n);
}

static struct uv_host *host_create(struct fabric_node *n)
{
	struct uv_host *h = calloc(1, sizeof(*h));
	struct hca_config cfg = { .name = fabric_node_name(n), .node_guid = fabric_node_guid(n), .seed = fabric_node_guid(n) };
	u8 i;

	if (!h)
		return NULL;
	h->name = fabric_node_name(n);
	h->owner = n;
	h->counter = host_counter;
	h->nports = fabric_node_ports(n) < UV_PORTS ? fabric_node_ports(n) : UV_PORTS;
	for (i = 0; i < h->nports; i++)
		h->port[i] = fabric_ca_port(n, i + 1u);
	cfg.sys_image_guid = fabric_node_sysguid(n);
	cfg.nports = h->nports;
	cfg.ports = h->port;
	h->hca = hca_create(d.loop, &cfg);
	if (!h->hca || hca_set_transport(h->hca, &rxe_transport))
		die("host %s: no memory", h->name);
	for (i = 0; i < h->nports; i++) {
		h->mad[i] = mad_port_create(d.loop, h->port[i]);
		h->umad[i] = h->mad[i] ? umad_port_create(d.loop, h->mad[i]) : NULL;
		if (!h->umad[i])
			die("host %s: no memory", h->name);
	}
	return h;
}

static struct uv_host *host_find(void *arg, const char *name)
{
	u32 i;

	for (i = 0; i < fabric_node_count(d.fabric); i++) {
		struct fabric_node *n = fabric_node(d.fabric, i);

		if (fabric_node_type(n) != NODE_TYPE_CA || strcmp(fabric_node_name(n), name))
			continue;
		if (!d.hosts[i]) {
			d.hosts[i] = host_create(n);
			if (d.hosts[i])
				uv_sysfs_refresh(d.hosts[i], uv_server_tree(d.server));
		}
		return d.hosts[i];
	}
	return NULL;
}

static void host_destroy(struct uv_host *h)
{
	u8 i;

	for (i = 0; i < h->nports; i++) {
		umad_port_destroy(h->umad[i]);
		mad_port_destroy(h->mad[i]);
	}
	hca_destroy(h->hca);
	free(h);
}

/* Control: a line of text in, a line of JSON out, one a connection. */

static json_t *port_json(const struct fabric_port *p)
{
	struct fabric_port_info info;
	json_t *o = json_object(), *c = json_object();
	u32 i;

	fabric_port_info(p, &info);
	json_object_set_new(o, "num", json_integer(info.num));
	json_object_set_new(o, "state", json_string(wire_port_state_name(info.state)));
	json_object_set_new(o, "phys_state", json_string(wire_phys_state_name(info.phys_state)));
	json_object_set_new(o, "lid", json_integer(info.lid));
	json_object_set_new(o, "width", json_integer(info.lanes));
	json_object_set_new(o, "speed", json_string(wire_speed_name(info.speed)));
	if (info.peer) {
		json_object_set_new(o, "peer", json_string(fabric_node_name(info.peer)));
		json_object_set_new(o, "peer_port", json_integer(info.peer_port));
	}
	for (i = 0; i < FABRIC_CTR_NUM; i++)
		json_object_set_new(c, fabric_counter_name((enum fabric_counter)i),
				    json_integer((json_int_t)fabric_port_counter(p, (enum fabric_counter)i)));
	json_object_set_new(o, "counters", c);
	return o;
}

static json_t *node_json(const struct fabric_node *n)
{
	json_t *o = json_object(), *ports = json_array(), *ips = json_array();
	bool ca = fabric_node_type(n) == NODE_TYPE_CA;
	const struct fabric_ip *ip = ca ? fabric_ca_ip(n, 1) : NULL;
	char text[32];
	u32 i;

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)fabric_node_guid(n));
	json_object_set_new(o, "name", json_string(fabric_node_name(n)));
	json_object_set_new(o, "type", json_string(ca ? "ca" : "switch"));
	json_object_set_new(o, "guid", json_string(text));
	for (i = ca ? 1 : 0; i <= fabric_node_ports(n); i++)
		json_array_append_new(ports, port_json(fabric_node_port(n, i)));
	json_object_set_new(o, "ports", ports);
	if (ip && ip->v4) {
		snprintf(text, sizeof(text), "%u.%u.%u.%u", ip->v4 >> 24, ip->v4 >> 16 & 255, ip->v4 >> 8 & 255, ip->v4 & 255);
		json_array_append_new(ips, json_string(text));
	}
	json_object_set_new(o, "ips", ips);
	return o;
}

static json_t *do_show(void)
{
	json_t *o = json_object(), *nodes = json_array();
	u32 i;

	for (i = 0; i < fabric_node_count(d.fabric); i++)
		json_array_append_new(nodes, node_json(fabric_node(d.fabric, i)));
	json_object_set_new(o, "nodes", nodes);
	return o;
}

static json_t *error_json(const char *what, const char *about)
{
	char text[600];

	snprintf(text, sizeof(text), "%s%s%s", what, *about ? ": " : "", about);
	return json_pack("{s:s}", "error", text);
}

static json_t *do_link(const char *args)
{
	char name[FABRIC_NAME_MAX + 1], how[8];
	struct fabric_node *n;
	struct fabric_port *p;
	u32 num;
	int err;

	if (sscanf(args, "%64[^: ]:%u %7s", name, &num, how) != 3 || (strcmp(how, "up") && strcmp(how, "down")))
		return error_json("usage: link NODE:PORT up|down", "");
	n = fabric_node_find(d.fabric, name);
	p = n ? fabric_node_port(n, num) : NULL;
	if (!p)
		return error_json("no such port", args);
	err = strcmp(how, "up") ? fabric_link_unplug(p) : fabric_link_plug(p);
	return err ? error_json(strerror(-err), args) : json_object();
}

static json_t *do_host(const char *name)
{
	return host_find(NULL, name) ? json_object() : error_json("no such host", name);
}

static void on_control(struct loop_fd *w, u32 events, struct now now)
{
	char line[512];
	ssize_t n = recv(w->fd, line, sizeof(line) - 1, MSG_DONTWAIT);
	json_t *o = NULL;
	char *text;

	if (n > 0) {
		line[n] = 0;
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "show"))
			o = do_show();
		else if (!strncmp(line, "link ", 5))
			o = do_link(line + 5);
		else if (!strncmp(line, "host ", 5))
			o = do_host(line + 5);
		else
			o = error_json("unknown command", line);
		text = json_dumps(o, JSON_COMPACT);
		if (text && send(w->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			log_at(LOG_WARN, "control", "an answer was not taken: %s", strerror(errno));
		free(text);
		json_decref(o);
	}
	loop_fd_del(w);
	close(w->fd);
	free(w);
}

static void on_connect(struct loop_fd *w, u32 events, struct now now)
{
	struct loop_fd *c = calloc(1, sizeof(*c));
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC), size = 8 << 20;

	if (fd < 0 || !c) {
		free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*c = (struct loop_fd){ .fd = fd, .fn = on_control };
	if (loop_fd_add(d.loop, c, EPOLLIN)) {
		close(fd);
		free(c);
	}
}

static void control_listen(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/control.sock", d.dir) >= (int)sizeof(sa.sun_path))
		die("%s: the path is too long for a socket; set MUSLIN_RUNDIR to a shorter one", d.dir);
	unlink(sa.sun_path);
	d.listener = (struct loop_fd){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .fn = on_connect };
	if (bind(d.listener.fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(d.listener.fd, 16))
		die("%s: %s", sa.sun_path, strerror(errno));
	loop_fd_add(d.loop, &d.listener, EPOLLIN);
}

static void on_signal(struct loop_fd *w, u32 events, struct now now)
{
	loop_stop(d.loop);
}

static void signals_watch(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	d.signals = (struct loop_fd){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .fn = on_signal };
	loop_fd_add(d.loop, &d.signals, EPOLLIN);
}

/* usage: muslind RUN-FOLDER [TOPOLOGY]; says "ready" on standard output. */
int main(int argc, char **argv)
{
	struct fabric_topology *topo;
	char err[512], path[512], tree[512];
	u32 i;

	if (argc < 2 || argc > 3)
		die("usage: muslind RUN-FOLDER [TOPOLOGY]");
	snprintf(d.dir, sizeof(d.dir), "%s", argv[1]);
	topo = argc > 2 ? fabric_topology_load(argv[2], err, sizeof(err)) : fabric_topology_default();
	if (!topo) {
		fprintf(stderr, "muslin: %s\n", argc > 2 ? err : "no memory");
		return 1;
	}
	d.loop = loop_create();
	d.fabric = d.loop ? fabric_create(d.loop, topo, 1) : NULL;
	if (!d.fabric)
		die("cannot create the fabric: %s", strerror(errno));
	fabric_topology_destroy(topo);
	d.hosts = calloc(fabric_node_count(d.fabric), sizeof(struct uv_host *));
	snprintf(path, sizeof(path), "%s/host.sock", d.dir);
	snprintf(tree, sizeof(tree), "%s/tree", d.dir);
	signals_watch();
	control_listen();
	d.server = uv_server_create(d.loop, path, tree, host_find, NULL);
	if (!d.hosts || !d.server)
		die("%s: %s", path, strerror(errno));
	printf("ready\n");
	fflush(stdout);
	loop_run(d.loop);
	uv_server_destroy(d.server);
	for (i = 0; i < fabric_node_count(d.fabric); i++) {
		if (d.hosts[i])
			host_destroy(d.hosts[i]);
	}
	fabric_destroy(d.fabric);
	snprintf(path, sizeof(path), "%s/control.sock", d.dir);
	unlink(path);
	return 0;
}
