// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The output of `muslin show`: JSON, and the format of ibnetdiscover. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/wire/smp.h"

static json_t *show_hex(u64 v, int digits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%0*llx", digits, (unsigned long long)v);
	return json_string(text);
}

static json_t *counters_json(const struct fabric_port *p)
{
	json_t *o = json_object();
	u32 i;

	for (i = 0; i < FABRIC_CTR_NUM; i++)
		json_object_set_new(o, fabric_counter_name((enum fabric_counter)i),
				    json_integer((json_int_t)fabric_port_counter(p, (enum fabric_counter)i)));
	return o;
}

static json_t *port_json(const struct fabric_port *p, bool counters)
{
	struct fabric_port_info info;
	json_t *o = json_object();

	fabric_port_info(p, &info);
	json_object_set_new(o, "num", json_integer(info.num));
	json_object_set_new(o, "guid", show_hex(info.guid, 16));
	json_object_set_new(o, "state", json_string(wire_port_state_name(info.state)));
	json_object_set_new(o, "phys_state", json_string(wire_phys_state_name(info.phys_state)));
	json_object_set_new(o, "lid", json_integer(info.lid));
	json_object_set_new(o, "sm_lid", json_integer(info.sm_lid));
	json_object_set_new(o, "lmc", json_integer(info.lmc));
	json_object_set_new(o, "mtu", json_integer(wire_mtu_bytes(info.mtu)));
	if (info.lanes) {
		json_object_set_new(o, "width", json_integer(info.lanes));
		json_object_set_new(o, "speed", json_string(wire_speed_name(info.speed)));
		json_object_set_new(o, "rate",
				    json_real(strtod(wire_rate_name(wire_link_rate(info.speed, info.lanes)), NULL)));
	}
	if (info.unplugged)
		json_object_set_new(o, "unplugged", json_true());
	if (info.peer) {
		json_object_set_new(o, "peer", json_string(fabric_node_name(info.peer)));
		json_object_set_new(o, "peer_port", json_integer(info.peer_port));
	}
	if (counters)
		json_object_set_new(o, "counters", counters_json(p));
	return o;
}

static json_t *ip_json(const char *text, u8 len, bool lengths)
{
	return lengths ? json_sprintf("%s/%u", text, len) : json_string(text);
}

json_t *daemon_show_port_ips(const struct fabric_node *n, u32 port, bool lengths)
{
	static const u8 none[16];
	const struct fabric_ip *ip = fabric_ca_ip(n, port);
	json_t *ips = json_array();
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;

	if (!ip)
		return ips;
	v4.s_addr = htonl(ip->v4);
	if (ip->v4 && inet_ntop(AF_INET, &v4, text, sizeof(text)))
		json_array_append_new(ips, ip_json(text, ip->v4_len, lengths));
	if (memcmp(ip->v6, none, sizeof(none)) && inet_ntop(AF_INET6, ip->v6, text, sizeof(text)))
		json_array_append_new(ips, ip_json(text, ip->v6_len, lengths));
	return ips;
}

json_t *daemon_show_ips(const struct fabric_node *n)
{
	json_t *ips = json_array(), *some;
	u32 i;

	for (i = 1; i <= fabric_node_ports(n); i++) {
		some = daemon_show_port_ips(n, i, false);
		json_array_extend(ips, some);
		json_decref(some);
	}
	return ips;
}

static bool is_ca(const struct fabric_node *n)
{
	return fabric_node_type(n) == NODE_TYPE_CA;
}

static json_t *node_json(struct daemon *d, const struct fabric_node *n, bool counters)
{
	const char *binding = fabric_node_binding(n);
	json_t *o = json_object(), *ports = binding ? daemon_host_ports_json(d, n, counters) : json_array();
	struct fabric_port_info first;
	char desc[65];
	u32 i;

	fabric_port_info(fabric_node_port(n, is_ca(n)), &first);
	fabric_node_desc(n, desc);
	json_object_set_new(o, "name", json_string(fabric_node_name(n)));
	json_object_set_new(o, "type", json_string(is_ca(n) ? "ca" : "switch"));
	json_object_set_new(o, "guid", show_hex(fabric_node_guid(n), 16));
	json_object_set_new(o, "description", json_string(desc) ?: json_string("?"));
	json_object_set_new(o, "lid", json_integer(first.lid));
	json_object_set_new(o, "link_layer", json_string(binding ? "Ethernet" : "InfiniBand"));
	if (binding)
		json_object_set_new(o, "binding", json_string(binding));
	for (i = is_ca(n); i <= fabric_node_ports(n) && !binding; i++)
		json_array_append_new(ports, port_json(fabric_node_port(n, i), counters));
	json_object_set_new(o, "ports", ports);
	json_object_set_new(o, "ips", daemon_show_ips(n));
	return o;
}

static json_t *guest_counters_json(const struct vdev *v)
{
	json_t *o = json_object();
	u32 i;

	for (i = 0; i < VDEV_CTR_NUM; i++)
		json_object_set_new(o, vdev_counter_name((enum vdev_counter)i),
				    json_integer((json_int_t)vdev_counter(v, (enum vdev_counter)i)));
	return o;
}

static json_t *card_counters_json(const struct vnet *n)
{
	json_t *o = json_object();
	u32 i;

	for (i = 0; i < VNET_CTR_NUM; i++)
		json_object_set_new(o, vnet_counter_name((enum vnet_counter)i),
				    json_integer((json_int_t)vnet_counter(n, (enum vnet_counter)i)));
	return o;
}

/* ConnectX functions, with nonzero counters only: there is one per command. */
static json_t *connectx_json(const struct host *h, bool counters)
{
	json_t *functions = json_array(), *o, *all;
	const char *name;
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(h->connectx); i++) {
		const struct connectx *x = h->connectx[i];

		if (!x)
			continue;
		o = json_pack("{s:b}", "driver", connectx_in_use(x));
		all = json_object();
		for (n = 0; counters && (name = connectx_counter_name(n)); n++)
			if (connectx_counter(x, n))
				json_object_set_new(all, name, json_integer((json_int_t)connectx_counter(x, n)));
		json_object_set_new(o, "counters", all);
		json_array_append_new(functions, o);
	}
	return functions;
}

/* The devices of the present or previous guest: an adapter, a network card, or both. */
static json_t *guest_json(const struct host *h, bool counters)
{
	json_t *o = json_pack("{s:o}", "connectx", connectx_json(h, counters));

	if (h->vdev)
		json_object_set_new(o, "driver", json_boolean(vdev_in_use(h->vdev)));
	if (counters && h->vdev)
		json_object_set_new(o, "counters", guest_counters_json(h->vdev));
	if (counters && h->card)
		json_object_set_new(o, "card", json_pack("{s:o}", "counters", card_counters_json(h->card)));
	return o;
}

/* Counts of the verbs objects of the host's adapter, by type. */
static json_t *objects_json(const struct hca *hca)
{
	json_t *o = json_object();
	u32 i;

	for (i = 0; hca_object_name(i); i++)
		json_object_set_new(o, hca_object_name(i), json_integer(hca_object_count(hca, i)));
	return o;
}

static bool lid_is_here(const struct daemon *d, u16 lid)
{
	struct fabric_port_info info;
	u32 i, j;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);

		for (j = is_ca(n); j <= fabric_node_ports(n); j++) {
			fabric_port_info(fabric_node_port(n, j), &info);
			if (info.lid == lid)
				return true;
		}
	}
	return false;
}

/* Is a trunk up to a daemon that commands of this fabric do not ask? */
static bool trunk_leads_out(const struct daemon *d)
{
	return d->trunks && !d->opt.shards && trunk_set_links_down(d->trunks) < fabric_remote_count(d->fabric);
}

/*
 * The master SM: the port with IsSM whose LID is the SM LID of the ports. Of one in another daemon only the LID is
 * known, by which Active ports name it. null: there is none.
 */
static json_t *sm_json(struct daemon *d)
{
	struct fabric_port_info info;
	u16 other = 0;
	u32 i, j;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);

		for (j = 1; j <= fabric_node_ports(n); j++) {
			fabric_port_info(fabric_node_port(n, j), &info);
			if (is_ca(n) && info.cap_mask & WIRE_PORT_CAP_IS_SM && info.lid && info.lid == info.sm_lid)
				return json_pack("{s:s, s:i, s:i}", "host", fabric_node_name(n), "port", (int)j, "lid",
						 (int)info.lid);
			if (info.state == PORT_STATE_ACTIVE && info.sm_lid)
				other = info.sm_lid;
		}
	}
	return other && trunk_leads_out(d) && !lid_is_here(d, other) ? json_pack("{s:i}", "lid", (int)other)
								     : json_null();
}

/* Descriptors passed by clients, and sockets to clients. */
static json_t *passed_json(void)
{
	struct passed_stats st;

	passed_stats(&st);
	return json_pack("{s:I, s:I, s:i}", "closed", (json_int_t)st.closed, "delayed", (json_int_t)st.delayed,
			 "waiting", (int)st.waiting);
}

/* The shard with the subnet manager, if it is that of another daemon. */
static json_t *manager_shard_json(const struct daemon *d)
{
	const char *name = daemon_shard_manager_elsewhere(d);

	return name ? json_string(name) : json_null();
}

json_t *daemon_show(struct daemon *d, const char *only, bool counters)
{
	json_t *o = json_object(), *nodes = json_array();
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);
		const struct host *h = d->hosts[i];
		json_t *o;

		if (only && strcmp(fabric_node_name(n), only))
			continue;
		o = node_json(d, n, counters);
		if (h && !h->uv.hca)
			json_object_set_new(o, "adapter", json_false());
		if (h && (h->vdev || h->card))
			json_object_set_new(o, "guest", guest_json(h, counters));
		if (h && h->uv.hca && counters)
			json_object_set_new(o, "objects", objects_json(h->uv.hca));
		json_array_append_new(nodes, o);
	}
	daemon_ether_nodes_json(d, nodes, only, counters);
	json_object_set_new(o, "name", json_string(d->run.name));
	json_object_set_new(o, "log_suppressed", json_integer((json_int_t)log_suppressed_total()));
	json_object_set_new(o, "passed_descriptors", passed_json());
	json_object_set_new(o, "sm", sm_json(d));
	json_object_set_new(o, "manager", daemon_manager_json(d));
	json_object_set_new(o, "manager_shard", manager_shard_json(d));
	json_object_set_new(o, "nodes", nodes);
	json_object_set_new(o, "trunks", daemon_trunks_json(d, only));
	json_object_set_new(o, "trunks_refused", daemon_trunks_refused_json(d));
	json_object_set_new(o, "ethernet", daemon_ether_json(d, only, counters));
	return o;
}

static void rates_add(json_t *all, const char *node, u32 port, const char *state, const json_int_t words[4])
{
	char name[FABRIC_NAME_MAX + 8];

	snprintf(name, sizeof(name), "%s:%u", node, port);
	json_array_append_new(all,
			      json_pack("[s, s, I, I, I, I]", name, state, words[0], words[1], words[2], words[3]));
}

/* Adds the few ports other than InfiniBand's, from the data of `show`. */
static void rates_add_ports(json_t *all, const char *node, const json_t *ports)
{
	static const char *const of[] = { "port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets" };
	const json_t *p;
	json_int_t words[4];
	size_t i, k;

	json_array_foreach(ports, i, p)
	{
		for (k = 0; k < ARRAY_SIZE(of); k++)
			words[k] = json_integer_value(json_object_get(json_object_get(p, "counters"), of[k]));
		rates_add(all, node, (u32)json_integer_value(json_object_get(p, "num")),
			  json_string_value(json_object_get(p, "state")) ?: "?", words);
	}
}

json_t *daemon_show_rates(struct daemon *d)
{
	static const enum fabric_counter of[] = { FABRIC_CTR_XMIT_DATA, FABRIC_CTR_RCV_DATA, FABRIC_CTR_XMIT_PKTS,
						  FABRIC_CTR_RCV_PKTS };
	json_t *all = json_array(), *nodes = json_array(), *node, *ports;
	struct fabric_port_info info;
	json_int_t words[4];
	size_t at;
	u32 i, p, k;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);

		if (fabric_node_binding(n)) {
			ports = daemon_host_ports_json(d, n, true);
			rates_add_ports(all, fabric_node_name(n), ports);
			json_decref(ports);
			continue;
		}
		for (p = 1; p <= fabric_node_ports(n); p++) {
			const struct fabric_port *port = fabric_node_port(n, p);

			fabric_port_info(port, &info);
			for (k = 0; k < ARRAY_SIZE(of); k++)
				words[k] = (json_int_t)fabric_port_counter(port, of[k]);
			if (info.peer)
				rates_add(all, fabric_node_name(n), p, wire_port_state_name(info.state), words);
		}
	}
	daemon_ether_nodes_json(d, nodes, NULL, true);
	json_array_foreach(nodes, at, node)
		rates_add_ports(all, json_string_value(json_object_get(node, "name")), json_object_get(node, "ports"));
	json_decref(nodes);
	return all;
}

/*
 * Ends of the port's cable to count in this daemon. Of a trunk these are both, or none if another daemon of this fabric
 * counts them.
 */
static u32 cable_ends(const struct daemon *d, const struct fabric_node *n, const struct fabric_port_info *info)
{
	if (!info->trunk)
		return 1;
	return d->opt.shards && strcmp(fabric_node_name(n), fabric_node_name(info->peer)) > 0 ? 0 : 2;
}

/*
 * Progress of subnet bring-up: numbers of ports, and the names of some that are not Active. "linked": all ports with a
 * link of any kind, with those of links that were set down.
 */
json_t *daemon_show_status(struct daemon *d)
{
	u32 i, j, hosts = 0, switches = d->ether ? eth_switch_count(daemon_ether_net(d)) : 0, wired = 0, active = 0;
	u32 linked = 0, linked_active, ends = 0;
	json_t *waiting = json_array();
	struct fabric_port_info info;
	char text[FABRIC_NAME_MAX + 40];

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);

		hosts += is_ca(n);
		switches += !is_ca(n);
		for (j = 1; j <= fabric_node_ports(n); j++) {
			fabric_port_info(fabric_node_port(n, j), &info);
			/* Does not count links to other daemons, unless they are started together. */
			if (!info.peer || info.disabled || (info.trunk && !info.lanes && !d->opt.shards))
				continue;
			linked++;
			if (info.unplugged)
				continue;
			wired++;
			ends += cable_ends(d, n, &info);
			active += info.state == PORT_STATE_ACTIVE;
			if (info.state == PORT_STATE_ACTIVE || json_array_size(waiting) >= 4)
				continue;
			snprintf(text, sizeof(text), "%s:%u %s", fabric_node_name(n), j,
				 wire_port_state_name(info.state));
			json_array_append_new(waiting, json_string(text));
		}
	}
	linked_active = active;
	daemon_other_ports_count(d, &linked, &linked_active);
	return json_pack("{s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:f}", "name", d->run.name,
			 "trunks", d->trunks && !d->opt.shards, "hosts", (int)hosts, "switches", (int)switches, "links",
			 (int)(ends / 2 + daemon_ether_links(d)), "ports", (int)wired, "active", (int)active, "linked",
			 (int)linked, "linked_active", (int)linked_active, "waiting", waiting, "sm", sm_json(d),
			 "manager", daemon_manager_json(d), "manager_shard", manager_shard_json(d), "uptime",
			 (double)(loop_now(d->loop).ns - d->started) / (double)NSEC_PER_SEC);
}

static void print_id(FILE *out, const struct fabric_node *n)
{
	fprintf(out, "\"%c-%016llx\"", is_ca(n) ? 'H' : 'S', (unsigned long long)fabric_node_guid(n));
}

/*
 * As ibnetdiscover, with the peer's LID, preceded by the own LID on the line of a CA port. @whole: the text includes
 * the peers of trunks; otherwise such a cable is a comment.
 */
static void print_links(FILE *out, const struct fabric_node *n, bool whole)
{
	struct fabric_port_info info, peer;
	char desc[65];
	u32 i;

	for (i = 1; i <= fabric_node_ports(n); i++) {
		fabric_port_info(fabric_node_port(n, i), &info);
		if (!info.peer)
			continue;
		fprintf(out, "%s[%u]", info.trunk && !whole ? "# trunk: " : "", i);
		if (is_ca(n))
			fprintf(out, "(%llx)", (unsigned long long)info.guid);
		fprintf(out, "\t");
		print_id(out, info.peer);
		fprintf(out, "[%u]", info.peer_port);
		fabric_port_info(fabric_node_port(info.peer, info.peer_port), &peer);
		if (is_ca(info.peer))
			fprintf(out, "(%llx)",
				(unsigned long long)(info.trunk ? peer.guid + info.peer_port : peer.guid));
		fprintf(out, "\t\t# ");
		if (is_ca(n))
			fprintf(out, "lid %u lmc %u ", info.lid, info.lmc);
		fabric_node_desc(info.peer, desc);
		fprintf(out, "\"%s\" lid %u", desc, peer.lid);
		if (info.lanes)
			fprintf(out, " %ux%s", info.lanes, wire_speed_name(info.speed));
		fprintf(out, "\n");
	}
}

static void print_node(FILE *out, const struct fabric_node *n, bool whole)
{
	struct fabric_port_info info;
	const char *kind = is_ca(n) ? "ca" : "switch";
	char desc[65];

	fabric_port_info(fabric_node_port(n, is_ca(n)), &info);
	fprintf(out, "\nvendid=0x%x\ndevid=0x%x\nsysimgguid=0x%llx\n%sguid=0x%llx", fabric_node_vendor(n),
		fabric_node_device(n), (unsigned long long)fabric_node_sysguid(n), kind,
		(unsigned long long)fabric_node_guid(n));
	if (!is_ca(n))
		fprintf(out, "(%llx)", (unsigned long long)fabric_node_guid(n));
	fprintf(out, "\n%s\t%u ", is_ca(n) ? "Ca" : "Switch", fabric_node_ports(n));
	print_id(out, n);
	fabric_node_desc(n, desc);
	fprintf(out, "\t\t# \"%s\"", desc);
	if (!is_ca(n))
		fprintf(out, " %s port 0 lid %u lmc %u", fabric_node_enhanced_port0(n) ? "enhanced" : "base", info.lid,
			info.lmc);
	fprintf(out, "\n");
	print_links(out, n, whole);
}

char *daemon_topology_text(struct daemon *d)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	u32 i;

	if (!out)
		return NULL;
	fprintf(out, "# muslin: fabric %s\n", d->run.name);
	for (i = 0; i < fabric_node_count(d->fabric); i++)
		if (!fabric_node_binding(fabric_node(d->fabric, i))) /* else it is not of the InfiniBand subnet */
			print_node(out, fabric_node(d->fabric, i), d->opt.shards);
	fclose(out);
	return text;
}
