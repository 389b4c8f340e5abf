// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports other than InfiniBand's (RoCE on UDP, stations and switches of the simulated Ethernet, iWARP) for `muslin
 * show`, timeline, top and metrics: state, peer, rate, and traffic counters with the names of the fabric's.
 */
#include <errno.h>

#include "emu/daemon/daemon.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce.h"

/* A host's one port outside the fabric, or an end of Ethernet. */
struct other_port {
	const struct eth_end *end; /* NULL: on sockets */
	struct roce_port *roce;
	struct hca *iwarp;
};

static bool other_port_of(struct daemon *d, const struct fabric_node *n, struct other_port *p)
{
	const struct host *h = fabric_node_binding(n) ? daemon_host_get(d, fabric_node_name(n)) : NULL;

	*p = (struct other_port){ .end = h && h->station ? h->station->end : NULL };
	if (h && !p->end && h->siw)
		p->iwarp = h->uv.hca;
	else if (h && !p->end)
		p->roce = h->roce;
	return p->end || p->iwarp || p->roce;
}

static struct daemon_traffic traffic_of(const struct other_port *p)
{
	if (p->end)
		return (struct daemon_traffic){ eth_end_counter(p->end, ETH_CTR_TX_BYTES),
						eth_end_counter(p->end, ETH_CTR_RX_BYTES),
						eth_end_counter(p->end, ETH_CTR_TX_FRAMES),
						eth_end_counter(p->end, ETH_CTR_RX_FRAMES) };
	if (p->iwarp)
		return (struct daemon_traffic){ siw_counter(p->iwarp, SIW_CTR_BYTES_SENT),
						siw_counter(p->iwarp, SIW_CTR_BYTES_RECEIVED),
						siw_counter(p->iwarp, SIW_CTR_FPDU_SENT),
						siw_counter(p->iwarp, SIW_CTR_FPDU_RECEIVED) };
	return (struct daemon_traffic){ roce_port_counter(p->roce, ROCE_CTR_SENT_BYTES),
					roce_port_counter(p->roce, ROCE_CTR_RECEIVED_BYTES),
					roce_port_counter(p->roce, ROCE_CTR_SENT),
					roce_port_counter(p->roce, ROCE_CTR_RECEIVED) };
}

struct daemon_traffic daemon_host_traffic(struct daemon *d, const struct fabric_node *n)
{
	const struct fabric_port *port = fabric_node_port(n, 1);
	struct other_port p;

	if (!fabric_node_binding(n))
		return (struct daemon_traffic){ 4 * fabric_port_counter(port, FABRIC_CTR_XMIT_DATA),
						4 * fabric_port_counter(port, FABRIC_CTR_RCV_DATA),
						fabric_port_counter(port, FABRIC_CTR_XMIT_PKTS),
						fabric_port_counter(port, FABRIC_CTR_RCV_PKTS) };
	return other_port_of(d, n, &p) ? traffic_of(&p) : (struct daemon_traffic){ 0 };
}

static void counter_set(json_t *o, const char *name, u64 value)
{
	json_object_set_new(o, name, json_integer((json_int_t)value));
}

static json_t *other_counters_json(const struct other_port *p)
{
	struct daemon_traffic t = traffic_of(p);
	json_t *o = json_object();
	u32 i;

	counter_set(o, fabric_counter_name(FABRIC_CTR_XMIT_DATA), t.sent / 4); /* in words, as InfiniBand counters */
	counter_set(o, fabric_counter_name(FABRIC_CTR_RCV_DATA), t.received / 4);
	counter_set(o, fabric_counter_name(FABRIC_CTR_XMIT_PKTS), t.sent_packets);
	counter_set(o, fabric_counter_name(FABRIC_CTR_RCV_PKTS), t.received_packets);
	for (i = 0; p->end && i < ETH_CTR_NUM; i++)
		counter_set(o, eth_counter_name((enum eth_counter)i), eth_end_counter(p->end, (enum eth_counter)i));
	for (i = 0; p->roce && i < ROCE_CTR_NUM; i++)
		counter_set(o, roce_counter_name((enum roce_counter)i),
			    roce_port_counter(p->roce, (enum roce_counter)i));
	for (i = 0; p->iwarp && i < SIW_CTR_NUM; i++)
		counter_set(o, siw_counter_name((enum siw_counter)i), siw_counter(p->iwarp, (enum siw_counter)i));
	return o;
}

/* NULL: an end of Ethernet, which has no port of a transport. */
static const struct wire_port *other_port_wire(const struct other_port *p)
{
	return p->iwarp ? hca_port(p->iwarp, 1) : p->roce ? roce_port_wire(p->roce) : NULL;
}

static bool other_port_up(const struct other_port *p)
{
	return p->end ? eth_end_up(p->end) : other_port_wire(p)->attr.state == PORT_STATE_ACTIVE;
}

static json_t *other_port_json(const struct other_port *p, bool counters)
{
	const struct eth_end *peer = p->end ? eth_end_peer(p->end) : NULL;
	const struct wire_port *w = other_port_wire(p);
	bool up = other_port_up(p);
	json_t *o = json_pack("{s:i, s:s, s:s, s:i, s:i}", "num", p->end ? (int)eth_end_num(p->end) : 1, "state",
			      wire_port_state_name(up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN), "phys_state",
			      wire_phys_state_name(up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED), "lid", 0, "mtu",
			      (int)(p->end ? eth_end_mtu(p->end) : wire_mtu_bytes(w->attr.mtu_active)));

	if (peer) {
		json_object_set_new(o, "peer", json_string(eth_end_name(peer)));
		json_object_set_new(o, "peer_port", json_integer(eth_end_num(peer)));
	}
	if (p->end && eth_end_rate(p->end))
		json_object_set_new(o, "rate", json_real((double)eth_end_rate(p->end) / 1e9));
	if (counters)
		json_object_set_new(o, "counters", other_counters_json(p));
	return o;
}

json_t *daemon_host_ports_json(struct daemon *d, const struct fabric_node *n, bool counters)
{
	json_t *ports = json_array();
	struct other_port p;

	if (other_port_of(d, n, &p))
		json_array_append_new(ports, other_port_json(&p, counters));
	return ports;
}

/* A port of an Ethernet switch. A host on the fabric is not named as its card is. */
static json_t *switch_port_json(const struct daemon *d, const struct eth_end *end, bool counters)
{
	const struct fabric_node *host = daemon_ether_card_host(d, eth_end_peer(end));
	json_t *o = other_port_json(&(struct other_port){ .end = end }, counters);

	if (host)
		json_object_set_new(o, "peer_node", json_string(fabric_node_name(host)));
	return o;
}

void daemon_ether_nodes_json(const struct daemon *d, json_t *nodes, const char *only, bool counters)
{
	struct eth *net = daemon_ether_net(d);
	u32 i, k;

	for (i = 0; net && i < eth_switch_count(net); i++) {
		struct eth_switch *sw = eth_switch_at(net, i);
		json_t *ports = json_array();

		for (k = 1; k <= eth_switch_ports(sw); k++)
			json_array_append_new(ports, switch_port_json(d, eth_switch_port(sw, k), counters));
		if (only && strcmp(eth_switch_name(sw), only))
			json_decref(ports);
		else
			json_array_append_new(nodes, json_pack("{s:s, s:s, s:s, s:i, s:o, s:[]}", "name",
							       eth_switch_name(sw), "type", "switch", "link_layer",
							       "Ethernet", "lid", 0, "ports", ports, "ips"));
	}
}

u32 daemon_ether_links(const struct daemon *d)
{
	struct eth *net = daemon_ether_net(d);
	u32 i, k, n = 0;

	for (i = 0; net && i < eth_switch_count(net); i++) {
		struct eth_switch *sw = eth_switch_at(net, i);

		for (k = 1; k <= eth_switch_ports(sw); k++) /* a cable between switches has two ports */
			n += eth_switch_find(net, eth_end_name(eth_end_peer(eth_switch_port(sw, k)))) ? 1 : 2;
	}
	return n / 2;
}

static void count_port(bool up, u32 *ports, u32 *active)
{
	++*ports;
	*active += up;
}

void daemon_other_ports_count(struct daemon *d, u32 *ports, u32 *active)
{
	struct eth *net = daemon_ether_net(d);
	struct other_port p;
	u32 i, k;

	for (i = 0; i < fabric_node_count(d->fabric); i++) /* Ethernet's are below, with the cards of fabric hosts */
		if (other_port_of(d, fabric_node(d->fabric, i), &p) && !p.end)
			count_port(other_port_up(&p), ports, active);
	for (i = 0; i < daemon_ether_stations(d); i++)
		count_port(eth_end_up(daemon_ether_station_end(d, i)), ports, active);
	for (i = 0; net && i < eth_switch_count(net); i++)
		for (k = 1; k <= eth_switch_ports(eth_switch_at(net, i)); k++)
			count_port(eth_end_up(eth_switch_port(eth_switch_at(net, i), k)), ports, active);
}

int daemon_host_set_link(struct daemon *d, const struct fabric_node *n, bool up)
{
	struct other_port p;

	if (!other_port_of(d, n, &p))
		return -ENOLINK;
	if (p.iwarp)
		siw_set_up(p.iwarp, up);
	else if (p.roce)
		roce_port_set_up(p.roce, up);
	else
		return -ENOLINK;
	return 0;
}
