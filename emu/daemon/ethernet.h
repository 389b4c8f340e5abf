/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's Ethernet: the network of the topology, and its stations. */
#ifndef MUSLIN_DAEMON_ETHERNET_H
#define MUSLIN_DAEMON_ETHERNET_H

#include <jansson.h>

#include "fabric/fabric.h"
#include "fabric/topology_ether.h"

struct daemon;

struct ether_station {
	struct fabric_ether_station cfg;
	struct eth_end *end;
	struct eth_tap_device *tap; /* for a TAP */
};

/* Creates the network; 0 or -errno. No effect without Ethernet in the topology. */
int daemon_ether_create(struct daemon *d, const struct fabric_topology *topo);
void daemon_ether_destroy(struct daemon *d);
/* The station of a host; NULL: none. */
struct ether_station *daemon_ether_station(const struct daemon *d, const struct fabric_node *n);
/* All stations, by number. */
u32 daemon_ether_stations(const struct daemon *d);
const struct eth_end *daemon_ether_station_end(const struct daemon *d, u32 i);
/* For faults; NULL without Ethernet. */
struct eth *daemon_ether_net(const struct daemon *d);
/* The host on the fabric whose card is the station @end; NULL: it is no such station. */
const struct fabric_node *daemon_ether_card_host(const struct daemon *d, const struct eth_end *end);
/* The end at an Ethernet place, of a host by any of its names; NULL: none. *all: it is a switch without a port. */
struct eth_end *daemon_ether_place(const struct daemon *d, const char *place, bool *all);
/* Whether there is a switch or a station with that name. */
bool daemon_ether_has(const struct daemon *d, const char *name);
/*
 * Whether the node of @place is of the Ethernet, and has no such port; then there is a message in @err, which may be
 * NULL.
 */
bool daemon_ether_no_port(const struct daemon *d, const char *place, char *err, size_t err_len);
/* Switches with their ports, and stations; null without Ethernet. @only: a switch or a station, or NULL. */
json_t *daemon_ether_json(const struct daemon *d, const char *only, bool counters);

#endif
