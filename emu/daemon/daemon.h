/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the daemon: options, hosts, control requests. */
#ifndef MUSLIN_DAEMON_H
#define MUSLIN_DAEMON_H

#include <net/if.h>

#include "emu/connectx/connectx.h"
#include "emu/ctl/ctl.h"
#include "emu/ctl/rundir.h"
#include "emu/daemon/ethernet.h"
#include "emu/host/server.h"
#include "emu/rdmacm/rdmacm.h"
#include "emu/virtio/net/vnet.h"
#include "emu/virtio/vdev.h"
#include "fabric/fabric.h"
#include "fabric/trunk/trunk.h"
#include "rxe/roce/roce.h"
#include "siw/siw.h"

/* A host of the fabric, created at its first use, because there may be thousands. */
struct host {
	struct uv_host uv;
	struct fabric_node *node;
	struct roce_port *roce;        /* if not on the fabric; NULL */
	struct ether_station *station; /* on simulated Ethernet; NULL */
	struct wire_port *siw;         /* if the port is iWARP; NULL */
	struct siw_options iwarp;
	char netdev[IF_NAMESIZE]; /* of an iWARP port, or of the host's own; else empty */
	struct rdma_host *rdma;
	struct vdev *vdev;            /* NULL before the first guest */
	struct connectx *connectx[2]; /* as vdev: one function per InfiniBand port */
	struct fault_set firmware;    /* faults of all ConnectX functions */
	struct vnet *card;            /* as vdev */
	u32 drivers;                  /* guest drivers that use the ports */
};

struct sm_mad;

struct daemon_options {
	const char *name, *topology; /* topology NULL: the default */
	int hold;                    /* pipe: the daemon ends when the other end is closed; -1: none */
	bool foreground;
	u64 seed;
	/* options of the embedded subnet manager */
	bool no_sm, qos, apm;
	const char *sm_host, *partitions, *routing; /* NULL: the first host, none, auto */
	const char *partitions_place;               /* "file:line" of the topology that gives them; NULL */
	const char *lfts;                           /* file of static forwarding tables; NULL */
	bool keep_lids;                             /* use the LIDs and the LMC of the topology */
	u8 lmc, priority, packet_life;
	u32 sweep;         /* seconds from one light sweep to the next; 0: the default */
	u64 subnet_prefix; /* 0: the default */
	u32 shard, shards; /* number of this daemon, and number of daemons that share the topology; 0: not shared */
	const char *join;  /* the shard of the topology that this daemon runs; NULL: --shards, or the whole */
};

struct daemon {
	struct daemon_options opt;
	struct rundir run;
	struct loop *loop;
	struct fabric *fabric;
	struct trunk_set *trunks;
	struct fabric_topology *whole; /* the topology of all shards, also with --join; NULL: not shared */
	struct uv_server *server;
	struct ctl_server *control;
	struct loop_fd signals, hold;
	struct host **hosts;             /* by index of the node */
	struct sm_mad *manager;          /* NULL with --no-sm */
	struct loop_timer manager_start; /* when the trunks are up; so many are not, since that time */
	u32 trunks_down;
	u64 trunks_since;
	u64 started;        /* loop clock, ns */
	char *partitions;   /* text of the partition file; NULL */
	char *lfts;         /* text of the file of forwarding tables; NULL */
	struct list faults; /* armed ones */
	struct list trace_points;
	struct fault_set manager_faults, second_managers;
	u32 nfaults, fault_id;
	u64 fault_seed; /* added to default seeds of faults: its own in each daemon that numbers faults by itself */
	struct timeline *timeline;  /* NULL: not recording */
	struct daemon_ether *ether; /* NULL: no Ethernet */
	char failure[300];          /* why a host or station could not be created */
};

/* options.c: fills in @opt from the command line; exits on an error. */
void daemon_options_parse(struct daemon_options *opt, int argc, char **argv);

/*
 * binding.c: the addresses that a host outside the fabric is bound to: up to ROCE_ADDRS of the machine's, or those of
 * interfaces. Returns how many, or -errno. @option is called first for each word: 1: it was an option; 0: it was not;
 * or -errno.
 */
int daemon_binding_read(const struct fabric_node *node, struct wire_gid *addr,
			int (*option)(void *arg, const char *word), void *arg);
struct fabric_ip daemon_binding_ip(const struct wire_gid *addr, u32 n);
#define DAEMON_BINDING_NETDEV "eth0"
/*
 * The addresses of the binding, if they are on an interface of the host's own. Returns how many; 0: they are the
 * machine's.
 */
u32 daemon_binding_own(const char *binding, struct ip_addr addr[ROCE_ADDRS]);
/* Sets @netdev, and MAC address and MTU of the port, if the host has an interface of its own. */
void daemon_binding_interface(const struct fabric_node *node, char netdev[IF_NAMESIZE], struct wire_port_attr *a);

/* host.c: the host with that name; NULL: no such host, or out of memory. */
struct host *daemon_host_get(struct daemon *d, const char *name);
struct host *daemon_host_of(struct daemon *d, struct fabric_node *n);
/*
 * Creates the hosts that are needed at start. False, with the reason in the daemon's @failure: one that must exist does
 * not.
 */
bool daemon_hosts_start(struct daemon *d);
bool daemon_host_is_iwarp(const struct fabric_node *n);
void daemon_hosts_destroy(struct daemon *d);
/* Up to @max names of hosts (@hosts) or nodes that are similar to @name. Returns how many. */
u32 daemon_names_like(const struct daemon *d, const char *name, bool hosts, const char **like, u32 max);
/* control.c: these as text for a message, ", but h1, h2"; empty if there are none. */
void daemon_like_text(const struct daemon *d, const char *name, bool host, char *text, size_t len);

/* manager.c: whether there is an InfiniBand fabric. */
bool daemon_manager_needed(const struct daemon *d);
/*
 * manager.c: creates the embedded subnet manager; daemon_manager_start() starts it. 0, or -errno with a message in
 * @err: "file:line: ..." for invalid partitions.
 */
int daemon_manager_create(struct daemon *d, char *err, size_t err_len);
void daemon_manager_start(struct daemon *d); /* logs why it cannot */
/* What the command line says of subnet managers, and the files that the embedded one has read, whose text is of @d. */
struct sm_config daemon_manager_config(const struct daemon *d);
/*
 * manager.c: loads the subnet manager's partitions from the file @path; NULL: the command line's file. 0, or -errno
 * with a message in @err.
 */
int daemon_manager_partitions(struct daemon *d, const char *path, char *err, size_t err_len);
json_t *daemon_manager_json(const struct daemon *d); /* null with --no-sm, or after a kill fault */
/* manager_fault.c: attaches the subnet manager's faults to the responses of its SA. */
void daemon_manager_watch(struct daemon *d);

/* guests.c: creates the host's devices for a guest, which listen from now on. 0 or -errno. */
int daemon_guest_create(struct daemon *d, struct host *h);
void daemon_guest_destroy(struct host *h);
/* Sets the QMP socket of the guest's QEMU, where the host's card is @netdev. True: it has taken
 * @fd; false: there is no card. */
bool daemon_guest_monitor(struct host *h, int fd, const char *netdev);
void daemon_guests_return(struct daemon *d);
bool daemon_guest_infiniband(const struct host *h); /* whether its guest may have a ConnectX */
bool daemon_guest_present(const struct host *h);
json_t *daemon_guest_json(const struct host *h); /* parameters for QEMU */

/* show.c: the fabric as JSON; @only: one node, or NULL. */
json_t *daemon_show(struct daemon *d, const char *only, bool counters); /* @only: a node, also of Ethernet; NULL: all */
json_t *daemon_show_ips(const struct fabric_node *n);
/* Such as "10.0.0.1", with @lengths "10.0.0.1/8". */
json_t *daemon_show_port_ips(const struct fabric_node *n, u32 port, bool lengths);
json_t *daemon_show_rates(struct daemon *d); /* [name, state, words out, in, packets out, in] of each port */
json_t *daemon_show_status(struct daemon *d);
/* The fabric in the format of ibnetdiscover. The caller frees the string; NULL if out of memory. */
char *daemon_topology_text(struct daemon *d);

/* ports.c */
struct daemon_traffic {
	u64 sent, received; /* bytes */
	u64 sent_packets, received_packets;
};
/* Traffic of a host's first port, on any link. */
struct daemon_traffic daemon_host_traffic(struct daemon *d, const struct fabric_node *n);
/* An array with the port of a host that is not on the fabric. */
json_t *daemon_host_ports_json(struct daemon *d, const struct fabric_node *n, bool counters);
/* Adds the Ethernet switches, or the one named @only, to the array of nodes. */
void daemon_ether_nodes_json(const struct daemon *d, json_t *nodes, const char *only, bool counters);
u32 daemon_ether_links(const struct daemon *d);
/* Adds the ports of all links that are not InfiniBand's to *ports, and those that are up to *active. */
void daemon_other_ports_count(struct daemon *d, u32 *ports, u32 *active);
/* Sets the link of a host on sockets. 0, or -ENOLINK: not such a host. */
int daemon_host_set_link(struct daemon *d, const struct fabric_node *n, bool up);

/* control.c */
extern const struct ctl_command daemon_commands[];
/* Parses "leaf1" or "leaf1:5" to the node, and the port number (0: none given). NULL after an error to @c. */
struct fabric_node *daemon_place(struct daemon *d, struct ctl_client *c, const char *place, u32 *num);

/*
 * trace.c: starts a capture that ends with the connection; and ends the connection's one, whose descriptor is closed
 * when the reader has got all packets before that.
 */
json_t *daemon_trace_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);
json_t *daemon_untrace_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);

/*
 * shard.c: daemons that share a topology. With --shards the first one has the fabric's name, the others are NAME.1,
 * NAME.2...; with --join each is a fabric of its machine.
 */
/* As rundir_open(). */
int daemon_shard_rundir(struct rundir *r, const char *name, u32 shard, char *err, size_t err_len);
/* Reduces @topo to the part of this daemon. 0, or -errno and a message in @err. */
int daemon_shard_topology(struct daemon *d, struct fabric_topology *topo, char *err, size_t err_len);
int daemon_shard_whole(struct daemon *d);              /* so that faults find nodes of the others. 0 or -ENOMEM */
bool daemon_shard_has_manager(const struct daemon *d); /* may the embedded subnet manager be in this one? */
/* The name of a host of any shard whose first InfiniBand port has a link. NULL: none, or no shards. */
const char *daemon_shard_linked_host(const struct daemon *d);
bool daemon_shard_is_node(const struct daemon *d, const char *name); /* of any shard; false without shards */
bool daemon_shard_has_tcp(const struct daemon *d);                   /* may a trunk that a fault adds be on TCP? */
int daemon_shard_write(const struct daemon *d); /* how many there are, for commands. 0, or -1 with errno */
/*
 * Is it the first one, and do others run? Then its directory remains, by which commands know them, as if it had been
 * killed.
 */
bool daemon_shard_leaves_others(const struct daemon *d);
/*
 * Starts the subnet manager, of a shard when the trunks are up: a sweep of a part of the subnet would have to be
 * repeated.
 */
void daemon_shard_start_manager(struct daemon *d);
/* With --join: the name of the shard that runs the subnet manager, if it is another one; else NULL. */
const char *daemon_shard_manager_elsewhere(const struct daemon *d);
json_t *daemon_trunks_json(const struct daemon *d, const char *only);
json_t *daemon_trunks_refused_json(const struct daemon *d); /* peers of all trunks */

/* addresses.c: writes the shim's map of the hosts' IP addresses. 0 or -errno. */
int daemon_addresses_write(struct daemon *d);
/* The nth IP address of the host's own interfaces; false past the end. */
bool daemon_address(const struct uv_host *uv, u32 n, struct uv_address *a);

/* fault_list.c */
json_t *daemon_fault_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);
void daemon_faults_destroy(struct daemon *d);

/* fault_place.c */
bool daemon_place_is_all(const char *place);
bool daemon_place_exists(struct daemon *d, const char *place); /* is it a node, or a port of one? */
/* Has no node the name of the place? More than one may have it. */
bool daemon_place_is_unknown(struct daemon *d, const char *place);
/* The node of a place, by any of its names, and the port number (0: none given). */
const struct fabric_node *daemon_place_node(struct daemon *d, const char *place, u32 *port);
json_t *daemon_place_refuse(struct daemon *d, struct ctl_client *c, const char *place); /* an unknown one */
/* The host at the place of a host fault; NULL and a message in @err. */
struct host *daemon_fault_host(struct daemon *d, const char *place, char *err, size_t err_len);
/* The fault set of the target that has the action, at the place; NULL and a message in @err. */
struct fault_set *daemon_fault_set(struct daemon *d, const char *place, const char *action, char *err, size_t err_len);
void daemon_fault_refuse(struct daemon *d, const char *place, const char *action, char *err, size_t err_len);
/* What the place "all" means: the kinds of links. */
#define DAEMON_LINK_KINDS 4
struct daemon_link_kind {
	const struct fault_target *target;
	const char *links;
};
extern const struct daemon_link_kind daemon_link_kinds[DAEMON_LINK_KINDS];
/*
 * Fault set number @i of all links of the kind: 0 has those of a network, the others that of the host at each node.
 * NULL: none.
 */
struct fault_set *daemon_fault_links(struct daemon *d, const struct fault_target *target, u32 i);

/* fault_swap.c */
/*
 * An array of the lines and daemons, in the order of the latter, that @text needs; empty: the line is for one daemon.
 * With --join, the daemons have names.
 */
json_t *daemon_swap_parts(struct daemon *d, const char *text);
/* Do two lines exchange the same cables, each named by one of its ends? */
bool daemon_swap_is_same(struct daemon *d, const char *a, const char *b);

/* timeline.c */
json_t *daemon_timeline_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);
/* Records an event. @kind: "port", "sm" or "fault"; must be static. */
void daemon_timeline_note(struct daemon *d, const char *kind, const char *text);
void daemon_timeline_destroy(struct daemon *d);

/* iwarp_host.c: creates the host's iWARP port according to its topology line. 0 or -errno. */
int daemon_iwarp_bind(struct daemon *d, struct host *h);

/* confine.c: drops privileges and system calls, depending on the transports of the hosts. */
enum daemon_net {
	DAEMON_NET_NONE,
	DAEMON_NET_UDP, /* sockets are created before confinement and connected later; or trunks on local sockets */
	DAEMON_NET_TCP,
};
void daemon_confine(enum daemon_net net);

#endif
