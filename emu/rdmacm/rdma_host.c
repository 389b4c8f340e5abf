// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connection management of a host: an SA client and an IPoIB endpoint for each port, and a communication manager. */
#include <errno.h>
#include <stdlib.h>

#include "emu/rdmacm/rdma_internal.h"
#include "emu/wire/smp.h"

struct cm *rdma_host_cm(const struct rdma_host *h)
{
	return h->cm;
}

u64 rdma_host_node_guid(const struct rdma_host *h)
{
	return hca_node_guid(h->hca);
}

struct ipif *rdma_host_ipif(const struct rdma_host *h, u8 port)
{
	return port && port <= h->nports ? h->port[port - 1].ip : NULL;
}

struct rdma_port *rdma_host_port_of(struct rdma_host *h, const struct ip_addr *a)
{
	u8 i;

	for (i = 0; i < h->nports && !h->unplugged; i++)
		if (ipif_has(h->port[i].ip, a))
			return &h->port[i];
	return NULL;
}

struct rdma_port *rdma_host_port_by_gid(struct rdma_host *h, const struct wire_gid *gid)
{
	u8 i, n;

	for (i = 0; i < h->nports && !h->unplugged; i++)
		for (n = 0; n < h->port[i].wire->attr.gids; n++)
			if (wire_gid_equal(&h->port[i].wire->attr.gid[n], gid))
				return &h->port[i];
	return NULL;
}

struct rdma_port *rdma_host_active(struct rdma_host *h)
{
	u8 i;

	for (i = 0; i < h->nports; i++)
		if (h->port[i].wire->attr.state == PORT_STATE_ACTIVE)
			return &h->port[i];
	return &h->port[0];
}

/* As the kernel's clients: rejoins the groups after events that may have lost the memberships. */
static void host_on_event(struct mad_watch *w, enum wire_port_event event)
{
	struct rdma_port *p = container_of(w, struct rdma_port, watch);

	if (event == WIRE_PORT_CLIENT_REREGISTER || event == WIRE_PORT_SM_CHANGE || event == WIRE_PORT_LID_CHANGE ||
	    event == WIRE_PORT_ACTIVE)
		sa_client_rejoin(p->sa);
	ipif_event(p->ip, event);
}

static int port_add(struct rdma_host *h, const struct rdma_host_config *cfg, u8 i)
{
	struct rdma_port *p = &h->port[i];
	struct ipif_config ip = {
		.loop = h->loop,
		.hca = h->hca,
		.mp = cfg->mp[i],
		.v4 = cfg->v4[i],
		.v6 = cfg->v6[i],
		.v4_len = cfg->v4_len[i],
		.v6_len = cfg->v6_len[i],
	};

	p->num = i + 1;
	p->wire = mad_port_wire(cfg->mp[i]);
	p->sa = ip.sa = sa_client_create(h->loop, cfg->mp[i]);
	p->ip = p->sa ? ipif_create(&ip) : NULL;
	if (!p->ip)
		return -ENOMEM;
	p->watch.fn = host_on_event;
	mad_port_watch(cfg->mp[i], &p->watch);
	return cm_port_add(h->cm, p->num, cfg->mp[i]);
}

struct rdma_host *rdma_host_create(const struct rdma_host_config *cfg)
{
	struct rdma_host *h = calloc(1, sizeof(*h));
	u32 i;

	if (!h)
		return NULL;
	h->loop = cfg->loop;
	h->hca = cfg->hca;
	h->iw = hca_iw(cfg->hca);
	h->apm = cfg->apm;
	h->rng.state = cfg->seed;
	list_init(&h->ids);
	for (i = 0; i < RDMA_OWNERS; i++)
		list_init(&h->owners[i]);
	h->cm = cm_create(h->loop, hca_node_guid(h->hca), hca_caps(h->hca)->local_ca_ack_delay, rng_next(&h->rng));
	if (!h->cm)
		goto err;
	for (i = 0; i < min((u32)cfg->nports, (u32)RDMA_PORTS); i++) {
		h->nports++;
		if (port_add(h, cfg, i))
			goto err;
	}
	return h;
err:
	rdma_host_destroy(h);
	return NULL;
}

void rdma_host_unplug(struct rdma_host *h, bool unplugged)
{
	struct rdma_id *id, *tmp;

	h->unplugged = unplugged;
	list_for_each_safe (id, tmp, &h->ids, link)
		if (unplugged && id->port)
			(void)rdma_id_notify(id, RDMA_EVENT_DEVICE_REMOVAL, 0);
}

void rdma_host_destroy(struct rdma_host *h)
{
	u8 i;

	if (!h)
		return;
	cm_destroy(h->cm);
	for (i = 0; i < h->nports; i++) {
		if (h->port[i].watch.fn)
			mad_port_unwatch(&h->port[i].watch);
		ipif_destroy(h->port[i].ip);
		sa_client_destroy(h->port[i].sa);
	}
	free(h);
}
