// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The hosts of the fabric: adapter, transport and management layer, created at a host's first use. */
#include <errno.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/host/ucma.h"
#include "emu/host/umad.h"
#include "emu/lib/log.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce.h"
#include "rxe/rxe.h"

#define HOSTS_AT_START 512 /* nodes, up to which all hosts are created at start */

static const char *gid_netdev(const struct uv_host *uv, u32 gid)
{
	const struct host *h = container_of(uv, struct host, uv);

	return *h->netdev ? h->netdev : roce_port_device(h->roce, gid);
}

static bool is_roce(const struct host *h, u8 port)
{
	return h->roce && roce_port_wire(h->roce)->num == port;
}

/* Counters of the port's management layer, of the host's connection manager, and of the port's IPoIB endpoint. */
static const char *management_counter(const struct host *h, u8 port, u32 n, u64 *value)
{
	if (n < MAD_CTR_NUM) {
		*value = mad_port_counter(h->uv.mad[port - 1], (enum mad_counter)n);
		return mad_counter_name((enum mad_counter)n);
	}
	n -= MAD_CTR_NUM;
	if (n < UMAD_CTR_NUM) {
		*value = umad_port_counter(h->uv.umad[port - 1], (enum umad_counter)n);
		return umad_counter_name((enum umad_counter)n);
	}
	n -= UMAD_CTR_NUM;
	if (n < CM_CTR_NUM) {
		*value = cm_counter(rdma_host_cm(h->rdma), (enum cm_counter)n);
		return cm_counter_name((enum cm_counter)n);
	}
	if (n > CM_CTR_NUM || is_roce(h, port) || !h->uv.ipif[port - 1])
		return NULL;
	*value = ipif_malformed(h->uv.ipif[port - 1]);
	return "ipoib_malformed";
}

static const char *port_counter(struct uv_host *uv, u8 port, u32 n, u64 *value)
{
	const struct host *h = container_of(uv, struct host, uv);
	const struct fabric_port *p = fabric_node_port(uv->owner, port);
	u32 own = is_roce(h, port) ? ROCE_CTR_NUM : FABRIC_CTR_NUM;

	if (n >= own)
		return management_counter(h, port, n - own, value);
	if (is_roce(h, port)) {
		*value = roce_port_counter(h->roce, (enum roce_counter)n);
		return roce_counter_name((enum roce_counter)n);
	}
	if (!p)
		return NULL;
	*value = fabric_port_counter(p, (enum fabric_counter)n);
	return fabric_counter_name((enum fabric_counter)n);
}

static void port_neighbours(const struct uv_host *uv, u8 port, uv_neighbour_fn *fn, void *arg)
{
	const struct host *h = container_of(uv, struct host, uv);

	if (is_roce(h, port + 1))
		roce_port_neighbours(h->roce, fn, arg);
	else if (uv->ipif[port])
		ipif_neighbours(uv->ipif[port], fn, arg);
}

/* Options of a RoCE host besides its addresses. */
struct options {
	double loss, marking; /* probabilities, for sent packets */
	bool dcqcn;
};

static int set_option(void *arg, const char *word)
{
	struct options *o = arg;

	if (!strncmp(word, "loss=", 5))
		o->loss = strtod(word + 5, NULL);
	else if (!strncmp(word, "ce=", 3))
		o->marking = strtod(word + 3, NULL);
	else if (!strcmp(word, "dcqcn"))
		o->dcqcn = true;
	else if (!strcmp(word, "mode=v1"))
		return -EPROTONOSUPPORT; /* RoCE v1 is not UDP: it needs Ethernet */
	else if (strcmp(word, "mode=v2"))
		return 0;
	return 1;
}

/* A host whose port is on the machine's network. */
static int bind_roce(struct daemon *d, struct host *h)
{
	struct roce_config cfg = { .loop = d->loop, .name = h->uv.name, .seed = d->opt.seed };
	struct options o = { .loss = 0 };
	int n = daemon_binding_read(h->node, cfg.addr, set_option, &o);
	struct fabric_ip ip;

	if (n < 0)
		return n;
	cfg.naddr = (u32)n;
	cfg.node_guid = cfg.port_guid = roce_guid(&cfg.addr[0]);
	h->roce = roce_port_create(&cfg);
	if (!h->roce)
		return -errno;
	daemon_binding_interface(h->node, h->netdev, &roce_port_wire(h->roce)->attr);
	roce_port_set_loss(h->roce, o.loss);
	roce_port_set_marking(h->roce, o.marking);
	roce_port_set_dcqcn(h->roce, o.dcqcn);
	ip = daemon_binding_ip(cfg.addr, cfg.naddr);
	fabric_node_bind(h->node, cfg.node_guid, &ip);
	h->uv.gid_netdev = gid_netdev;
	return 0;
}

/* A host whose port @num is a station of the simulated Ethernet; a guest's kernel configures the addresses itself. */
static int bind_station(struct daemon *d, struct host *h, u8 num)
{
	const struct fabric_ether_station *s = &h->station->cfg;
	struct roce_config cfg = {
		.loop = d->loop,
		.name = h->uv.name,
		.node_guid = fabric_node_guid(h->node),
		.port_guid = fabric_node_guid(h->node) + (num > 1 ? num : 0u),
		.num = num,
		.seed = d->opt.seed,
		.ether = eth_station_port(h->station->end),
		.v1 = s->v1,
	};
	u32 i;

	for (i = 0; i < s->naddr && s->kind == FABRIC_ETHER_ROCE; i++, cfg.naddr++) {
		cfg.addr[i] = wire_gid_from_bytes(s->addr[i].raw);
		cfg.vlan[i] = s->vlan[i];
		cfg.net[i] = s->len[i];
	}
	h->roce = roce_port_create(&cfg);
	if (!h->roce)
		return -errno;
	roce_port_set_dcqcn(h->roce, s->dcqcn);
	h->uv.gid_netdev = gid_netdev;
	h->uv.nports = num;
	return 0;
}

/* Creates the port of a host that is not on the fabric. */
static int bind_port(struct daemon *d, struct host *h)
{
	if (daemon_host_is_iwarp(h->node))
		return daemon_iwarp_bind(d, h);
	h->uv.device = "rxe0";
	if (!h->station)
		return bind_roce(d, h);
	if (h->station->cfg.kind == FABRIC_ETHER_ROCE || h->station->cfg.roce)
		return bind_station(d, h, 1);
	h->uv.nports = 0; /* only a network card */
	return 0;
}

/* Adds a RoCE port, on the network card of the guest, to a host of the fabric. */
static int bind_second(struct daemon *d, struct host *h)
{
	if (!h->station || !h->station->cfg.roce)
		return 0;
	return h->uv.nports < UV_PORTS ? bind_station(d, h, h->uv.nports + 1) : -ENOSPC;
}

static int create_hca(struct daemon *d, struct host *h)
{
	struct hca_config cfg = {
		.name = h->uv.name,
		.node_guid = fabric_node_guid(h->node),
		.sys_image_guid = fabric_node_sysguid(h->node),
		.nports = h->uv.nports,
		.ports = h->uv.port,
		.seed = d->opt.seed,
	};

	h->uv.hca = hca_create(d->loop, &cfg);
	if (!h->uv.hca)
		return -errno;
	if (!h->siw)
		return hca_set_transport(h->uv.hca, &rxe_transport);
	if (hca_set_transport(h->uv.hca, &siw_transport))
		return -ENOMEM;
	siw_set_options(h->uv.hca, &h->iwarp);
	return 0;
}

/* Creates connection management, with the IP addresses of the topology. */
static int create_rdma(struct daemon *d, struct host *h)
{
	struct rdma_host_config cfg = {
		.loop = d->loop,
		.hca = h->uv.hca,
		.nports = h->uv.nports,
		.apm = d->opt.apm,
		.seed = d->opt.seed ^ fabric_node_guid(h->node) ^ 1,
	};
	u8 i;

	for (i = 0; i < h->uv.nports; i++) {
		const struct fabric_ip *ip = fabric_ca_ip(h->node, i + 1u);

		cfg.mp[i] = h->uv.mad[i];
		if (!ip) /* a guest's card: the guest has the addresses */
			continue;
		cfg.v4[i] = ip_addr_v4(ip->v4);
		cfg.v4_len[i] = ip->v4_len;
		memcpy(cfg.v6[i].raw, ip->v6, sizeof(ip->v6));
		cfg.v6_len[i] = ip->v6_len;
	}
	h->rdma = rdma_host_create(&cfg);
	for (i = 0; h->rdma && i < h->uv.nports; i++)
		h->uv.ipif[i] = rdma_host_ipif(h->rdma, i + 1);
	h->uv.cm = h->rdma ? ucma_host_create(h->rdma) : NULL;
	return h->uv.cm ? 0 : -ENOMEM;
}

static void host_destroy(struct host *h)
{
	u8 i;

	daemon_guest_destroy(h);
	fault_set_fini(&h->firmware);
	ucma_host_destroy(h->uv.cm);
	rdma_host_destroy(h->rdma);
	for (i = 0; i < h->uv.nports; i++) {
		if (h->uv.umad[i])
			umad_port_destroy(h->uv.umad[i]);
		if (h->uv.mad[i])
			mad_port_destroy(h->uv.mad[i]);
	}
	if (h->uv.hca)
		hca_destroy(h->uv.hca);
	roce_port_destroy(h->roce);
	siw_port_destroy(h->siw);
	free(h);
}

static int create_port(struct daemon *d, struct host *h, u8 num)
{
	u8 i = num - 1;

	h->uv.port[i] = h->siw ? h->siw : is_roce(h, num) ? roce_port_wire(h->roce) : fabric_ca_port(h->node, num);
	h->uv.mad[i] = mad_port_create(d->loop, h->uv.port[i]);
	if (!h->uv.mad[i])
		return -ENOMEM;
	if (h->siw) /* iWARP has no MADs */
		return 0;
	h->uv.umad[i] = umad_port_create(d->loop, h->uv.mad[i]);
	return h->uv.umad[i] ? 0 : -ENOMEM;
}

bool daemon_host_is_iwarp(const struct fabric_node *n)
{
	return fabric_node_binding(n) && !strncmp(fabric_node_binding(n), "iwarp ", 6);
}

/*
 * Says why, with the words of the topology line that the error may be about; also in the log, unless the start fails.
 */
static void host_failed(struct daemon *d, const struct host *h, int err)
{
	const char *binding = fabric_node_binding(h->node), *hint = "";

	if (err == -EADDRNOTAVAIL || err == -ENODEV)
		hint = "; these must be addresses, or an interface, of this machine";
	else if (err == -EADDRINUSE)
		hint = "; another host, fabric or program has a port there";
	else if (err == -EPROTONOSUPPORT)
		hint = "; RoCE v1 has no UDP, but works between stations of an Ethernet (host NAME ether SWITCH)";
	snprintf(d->failure, sizeof(d->failure), "host %s%s%s cannot be created: %s%s", h->uv.name, binding ? " " : "",
		 binding ?: "", strerror(-err), hint);
	if (!binding || d->server)
		log_at(LOG_ERROR, "", "%s", d->failure);
}

static struct host *host_create(struct daemon *d, struct fabric_node *n)
{
	struct host *h = calloc(1, sizeof(*h));
	int err;
	u8 i;

	if (!h) {
		snprintf(d->failure, sizeof(d->failure), "out of memory");
		return NULL;
	}
	h->node = n;
	fault_set_init(&h->firmware, &connectx_fault_target, d->loop, h, d->opt.seed);
	h->uv.name = fabric_node_name(n);
	h->uv.owner = n;
	h->uv.counter = port_counter;
	h->uv.address = daemon_address;
	h->uv.neighbours = port_neighbours;
	h->uv.nports = min(fabric_node_ports(n), (u8)UV_PORTS);
	h->uv.device = "muslin0";
	h->station = daemon_ether_station(d, n);
	err = fabric_node_binding(n) ? bind_port(d, h) : bind_second(d, h);
	if (err)
		goto err_destroy;
	if (!h->uv.nports)
		return h;
	for (i = 0; i < h->uv.nports; i++) {
		err = create_port(d, h, i + 1);
		if (err)
			goto err_destroy;
	}
	err = create_hca(d, h);
	err = err ? err : create_rdma(d, h);
	if (err)
		goto err_destroy;
	return h;

err_destroy:
	host_failed(d, h, err);
	host_destroy(h);
	return NULL;
}

struct host *daemon_host_of(struct daemon *d, struct fabric_node *n)
{
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		if (fabric_node(d->fabric, i) != n)
			continue;
		if (!d->hosts[i])
			d->hosts[i] = host_create(d, n);
		return d->hosts[i];
	}
	return NULL;
}

/*
 * Creates all hosts at start, so that each responds on its IP addresses, unless there are too many. Those with sockets
 * on the machine's network must be created now: the confined daemon may open none.
 */
bool daemon_hosts_start(struct daemon *d)
{
	u32 i, n = fabric_node_count(d->fabric);

	for (i = 0; i < n; i++) {
		struct fabric_node *node = fabric_node(d->fabric, i);

		if (fabric_node_type(node) == NODE_TYPE_CA && (n <= HOSTS_AT_START || fabric_node_binding(node)))
			if (!daemon_host_of(d, node) && fabric_node_binding(node))
				return false;
	}
	return true;
}

struct host *daemon_host_get(struct daemon *d, const char *name)
{
	struct fabric_node *n = fabric_node_find(d->fabric, name);

	return n && fabric_node_type(n) == NODE_TYPE_CA ? daemon_host_of(d, n) : NULL;
}

void daemon_hosts_destroy(struct daemon *d)
{
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		if (d->hosts[i])
			host_destroy(d->hosts[i]);
	}
	free(d->hosts);
}

/* Levenshtein distance of names up to FABRIC_NAME_MAX. */
static u32 host_distance(const char *a, const char *b)
{
	u32 row[FABRIC_NAME_MAX + 1], n = (u32)strnlen(b, FABRIC_NAME_MAX), i, j, diagonal, above;

	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= n; j++) {
			above = row[j];
			row[j] = min(min(row[j - 1], above) + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

u32 daemon_names_like(const struct daemon *d, const char *name, bool hosts, const char **like, u32 max)
{
	const struct fabric_topology *all = d->opt.shards ? d->whole : NULL; /* commands reach all daemons */
	u32 i, far, n = 0, count = all ? all->nnodes : fabric_node_count(d->fabric);

	for (far = 0; far <= 2; far++) {
		for (i = 0; i < count && n < max; i++) {
			const struct fabric_node *node = all ? NULL : fabric_node(d->fabric, i);
			u8 type = all ? all->nodes[i].type : fabric_node_type(node);
			const char *own = all ? all->nodes[i].name : fabric_node_name(node);

			if ((!hosts || type == NODE_TYPE_CA) && host_distance(own, name) == far)
				like[n++] = own;
		}
	}
	return n;
}
