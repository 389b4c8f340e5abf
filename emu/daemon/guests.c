// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Devices of a host for its guest: an HCA, by vhost-user or as a ConnectX by vfio-user, and a network card. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/log.h"

static int local_mad(void *arg, u8 port, u8 *mad, bool ignore_mkey)
{
	return fabric_ca_mad(((struct host *)arg)->node, port, mad, ignore_mkey);
}

/* While a guest's driver is active, the guest uses the addresses. */
static void guests_present(void *arg, bool here)
{
	struct host *h = arg;
	u8 i;

	h->drivers += here ? 1 : -1u;
	for (i = 1; i <= h->uv.nports; i++) {
		struct ipif *ip = rdma_host_ipif(h->rdma, i);

		if (ip)
			ipif_mute(ip, h->drivers);
	}
}

/* The length of socket paths is limited: uses the host's number, not its name. */
static int socket_path(struct daemon *d, const struct host *h, const char *suffix, char *path)
{
	char dir[RUNDIR_PATH_MAX];
	u32 n;

	if (mkdir(rundir_path(&d->run, RUNDIR_GUESTS, dir), 0700) && errno != EEXIST)
		return -errno;
	for (n = 0; d->hosts[n] != h;)
		n++;
	snprintf(path, RUNDIR_PATH_MAX, "%.480s/%u%s", dir, n, suffix);
	return 0;
}

static int make_adapter(struct daemon *d, struct host *h)
{
	struct vdev_config cfg = { .name = h->uv.name,
				   .hca = h->uv.hca,
				   .nports = h->uv.nports,
				   .local_mad = local_mad,
				   .present = guests_present,
				   .arg = h };
	char path[RUNDIR_PATH_MAX];
	int err = socket_path(d, h, "", path);
	u8 i;

	if (err)
		return err;
	for (i = 0; i < h->uv.nports; i++)
		cfg.mad[i] = h->uv.mad[i];
	h->vdev = vdev_create(d->loop, path, &cfg);
	return h->vdev ? 0 : -errno;
}

/* Only InfiniBand ports have a ConnectX function. */
static int make_connectx(struct daemon *d, struct host *h, u8 i)
{
	struct connectx_config cfg = { .name = h->uv.name,
				       .hca = h->uv.hca,
				       .port = i + 1,
				       .mad = h->uv.mad[i],
				       .faults = &h->firmware,
				       .local_mad = local_mad,
				       .present = guests_present,
				       .arg = h };
	char path[RUNDIR_PATH_MAX];
	int err = socket_path(d, h, i ? "x2" : "x", path);

	if (err)
		return err;
	h->connectx[i] = connectx_create(d->loop, path, &cfg);
	return h->connectx[i] ? 0 : -errno;
}

bool daemon_guest_infiniband(const struct host *h)
{
	return h->uv.hca && !h->roce && !h->station && !h->siw;
}

int daemon_guest_create(struct daemon *d, struct host *h)
{
	u8 i;

	char path[RUNDIR_PATH_MAX];
	int err = 0;

	if (h->siw)
		return -EOPNOTSUPP; /* the guest's driver does not support iWARP; `muslin vm` says so */
	if (!h->vdev && h->uv.hca)
		err = make_adapter(d, h);
	for (i = 0; i < h->uv.nports && daemon_guest_infiniband(h) && !err; i++)
		if (!h->connectx[i])
			err = make_connectx(d, h, i);
	if (err || h->card || !h->station || h->station->cfg.kind != FABRIC_ETHER_NIC)
		return err;
	err = socket_path(d, h, "n", path);
	if (err)
		return err;
	h->card = vnet_create(d->loop, path, eth_station_port(h->station->end));
	return h->card ? 0 : -errno;
}

void daemon_guest_destroy(struct host *h)
{
	u8 i;

	vdev_destroy(h->vdev);
	for (i = 0; i < ARRAY_SIZE(h->connectx); i++)
		connectx_destroy(h->connectx[i]);
	vnet_destroy(h->card);
}

bool daemon_guest_monitor(struct host *h, int fd, const char *netdev)
{
	int err = h->card ? vnet_set_monitor(h->card, fd, netdev) : 0;

	if (err)
		log_at(LOG_WARN, h->uv.name, "the carrier of its network card cannot be set: %s", strerror(-err));
	return h->card;
}

/* The host of a socket by its file name: the number; *end: the suffix. */
static struct host *previous_host(struct daemon *d, const char *name)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	if (end == name || n >= fabric_node_count(d->fabric))
		return NULL;
	return daemon_host_get(d, fabric_node_name(fabric_node(d->fabric, (u32)n)));
}

/* Recreates devices of a previous daemon: running guests reconnect to the devices of their hosts. */
void daemon_guests_return(struct daemon *d)
{
	char path[RUNDIR_PATH_MAX];
	DIR *dir = opendir(rundir_path(&d->run, RUNDIR_GUESTS, path));
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct host *h = *e->d_name == '.' ? NULL : previous_host(d, e->d_name);

		if (*e->d_name != '.' && (!h || daemon_guest_create(d, h)))
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

bool daemon_guest_present(const struct host *h)
{
	u8 i;

	for (i = 0; i < ARRAY_SIZE(h->connectx); i++)
		if (h->connectx[i] && connectx_connected(h->connectx[i]))
			return true;
	return (h->vdev && vdev_connected(h->vdev)) || (h->card && vnet_in_use(h->card));
}

/* "ADDRESS/LENGTH", with "@VLAN" if tagged. */
static json_t *card_ips(const struct fabric_ether_station *s)
{
	json_t *ips = json_array();
	char ip[IP_ADDR_STRLEN], text[IP_ADDR_STRLEN + 16];
	u32 i;
	int n;

	for (i = 0; i < s->naddr; i++) {
		n = snprintf(text, sizeof(text), "%s/%u", ip_addr_str(&s->addr[i], ip), s->len[i]);
		if (s->vlan[i])
			snprintf(text + n, sizeof(text) - (size_t)n, "@%u", s->vlan[i]);
		json_array_append_new(ips, json_string(text));
	}
	return ips;
}

static json_t *card_json(const struct host *h)
{
	const struct ether_port *p;
	char mac[24];

	if (!h->card)
		return json_null();
	p = eth_station_port(h->station->end);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->mac[0], p->mac[1], p->mac[2], p->mac[3],
		 p->mac[4], p->mac[5]);
	return json_pack("{s:s, s:s, s:i, s:o}", "socket", vnet_path(h->card), "mac", mac, "mtu", (int)p->mtu, "ips",
			 card_ips(&h->station->cfg));
}

static json_t *connectx_json(const struct host *h)
{
	json_t *paths = json_array();
	u8 i;

	for (i = 0; i < ARRAY_SIZE(h->connectx); i++)
		if (h->connectx[i])
			json_array_append_new(paths, json_string(connectx_path(h->connectx[i])));
	return paths;
}

/* A list for each port that has an interface of IPoIB. */
static json_t *port_ips(const struct host *h)
{
	json_t *ips = json_array();
	u8 i;

	for (i = 1; h->vdev && !fabric_node_binding(h->node) && i <= h->uv.nports; i++)
		json_array_append_new(ips, daemon_show_port_ips(h->node, i, true));
	return ips;
}

json_t *daemon_guest_json(const struct host *h)
{
	json_t *socket = h->vdev ? json_string(vdev_path(h->vdev)) : json_null();

	return json_pack("{s:s, s:o, s:i, s:o, s:o, s:o}", "name", h->uv.name, "socket", socket, "queues", VDEV_QUEUES,
			 "connectx", connectx_json(h), "ips", port_ips(h), "card", card_json(h));
}
