/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the daemon: options, hosts, control requests. */
#ifndef MUSLIN_DAEMON_H
#define MUSLIN_DAEMON_H

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
#include "siw/siw.h"

/* One host of the fabric: made when it is first used, for there may be thousands. */
struct host {
	struct uv_host uv;
	struct fabric_node *node;
	struct roce_port *roce;        /* of a host that is not on the fabric; NULL */
	struct ether_station *station; /* on simulated Ethernet; NULL */
	struct wire_port *siw;         /* of one whose port is iWARP; NULL */
	struct siw_options iwarp;
	char netdev[16]; /* its interface */
	struct rdma_host *rdma;
	struct vdev *vdev;            /* NULL until a guest is wanted */
	struct connectx *connectx[2]; /* likewise: a function for each InfiniBand port */
	struct fault_set firmware;    /* faults of all its functions */
	struct vnet *card;            /* likewise */
	u32 drivers;                  /* of guests that use the ports */
};

struct sm_mad;

struct daemon_options {
	const char *name, *topology; /* topology NULL: the default one */
	int hold;                    /* pipe: the daemon ends when the other end is closed; -1: none */
	bool foreground;
	u64 seed;
	/* the embedded subnet manager */
	bool no_sm, qos, apm;
	const char *sm_host, *partitions, *routing; /* NULL: the first host, none, auto */
	const char *lfts;                           /* file of static forwarding tables; NULL */
	bool keep_lids;                             /* the LIDs and the LMC of the topology */
	u8 lmc, priority, packet_life;
	u64 subnet_prefix; /* 0: the default one */
	u32 shard, shards; /* this daemon, of so many that hold the topology; 0: it holds it all */
};

struct daemon {
	struct daemon_options opt;
	struct rundir run;
	struct loop *loop;
	struct fabric *fabric;
	struct trunk_set *trunks;
	struct fabric_topology *whole; /* of all shards; NULL: there is one */
	struct uv_server *server;
	struct ctl_server *control;
	struct loop_fd signals, hold;
	struct host **hosts;    /* by index of the node */
	struct sm_mad *manager; /* NULL with --no-sm */
	u64 started;            /* loop clock, ns */
	char *partitions;       /* text of the partition file; NULL */
	char *lfts;             /* text of the file of forwarding tables; NULL */
	struct list faults;     /* armed ones */
	struct fault_set manager_faults, second_managers;
	u32 nfaults, fault_id;
	struct timeline *timeline;  /* NULL: nothing is recorded */
	struct daemon_ether *ether; /* NULL: there is none */
};

/* options.c: fills @opt from the command line; ends the program when it is wrong. */
void daemon_options_parse(struct daemon_options *opt, int argc, char **argv);

/*
 * binding.c: what a host beside the fabric is bound to: addresses of the machine, up to ROCE_ADDRS, or interfaces with theirs. How
 * many, or -errno. @option is shown each word first: 1: it is an option, and taken; 0: it is none; or -errno.
 */
int daemon_binding_read(const struct fabric_node *node, struct wire_gid *addr,
			int (*option)(void *arg, const char *word), void *arg);
struct fabric_ip daemon_binding_ip(const struct wire_gid *addr, u32 n);

/* host.c: the host of that name, NULL: the fabric has none, or there is no memory. */
struct host *daemon_host_get(struct daemon *d, const char *name);
struct host *daemon_host_of(struct daemon *d, struct fabric_node *n);
/* Makes the hosts that must be there at once. NULL, or the name of one that cannot be made; the log says why. */
const char *daemon_hosts_start(struct daemon *d);
bool daemon_host_is_iwarp(const struct fabric_node *n);
void daemon_hosts_destroy(struct daemon *d);
/* Up to @max names of hosts (@hosts) or of nodes that look like @name. Returns how many. */
u32 daemon_names_like(const struct daemon *d, const char *name, bool hosts, const char **like, u32 max);

/* manager.c: is there an InfiniBand fabric? */
bool daemon_manager_needed(const struct daemon *d);
/*
 * manager.c: the embedded subnet manager, which sm_mad_start() lets run. 0, or -errno with a line in @err: "file:line: ..."
 * for wrong partitions.
 */
int daemon_manager_create(struct daemon *d, char *err, size_t err_len);
/*
 * manager.c: the manager takes its partitions from the file @path, NULL: from the one of the command line. 0, or -errno with a line
 * in @err.
 */
int daemon_manager_partitions(struct daemon *d, const char *path, char *err, size_t err_len);
json_t *daemon_manager_json(const struct daemon *d); /* null with --no-sm, or while it is dead */
/* manager_fault.c: attaches its faults to the responses of the subnet manager. */
void daemon_manager_watch(struct daemon *d);

/* guests.c: the host's devices for a guest, which listen from now on. 0 or -errno. */
int daemon_guest_create(struct daemon *d, struct host *h);
void daemon_guest_destroy(struct host *h);
/* The monitor of the guest's machine, where the host's card is @netdev. True: it has taken @fd; false: there is no card. */
bool daemon_guest_monitor(struct host *h, int fd, const char *netdev);
void daemon_guests_return(struct daemon *d);
bool daemon_guest_infiniband(const struct host *h); /* may its guest have a ConnectX? */
bool daemon_guest_here(const struct host *h);
json_t *daemon_guest_json(const struct host *h); /* parameters for QEMU */

/* show.c: the fabric as JSON; @only: one node, or NULL. */
json_t *daemon_show(struct daemon *d, const char *only,
		    bool counters); /* @only: a node, or of the Ethernet; NULL: all */
json_t *daemon_show_ips(const struct fabric_node *n);
json_t *daemon_show_rates(struct daemon *d); /* [name, state, words out, in, packets out, in] of each port */
json_t *daemon_show_status(struct daemon *d);
/* The fabric in the format of ibnetdiscover. A string that the caller frees; NULL without memory. */
char *daemon_topology_text(struct daemon *d);

/* ports.c */
struct daemon_traffic {
	u64 sent, received; /* bytes */
	u64 sent_packets, received_packets;
};
/* Of a host's first port, whatever its link is. */
struct daemon_traffic daemon_host_traffic(struct daemon *d, const struct fabric_node *n);
/* The port of a host that is not on the fabric, in an array. */
json_t *daemon_host_ports_json(struct daemon *d, const struct fabric_node *n, bool counters);
/* Adds the switches of Ethernet, or that which is called @only, to the array of nodes. */
void daemon_ether_nodes_json(const struct daemon *d, json_t *nodes, const char *only, bool counters);
u32 daemon_ether_links(const struct daemon *d);
/* The link of a host on sockets. 0, or -ENOLINK: the host is another. */
int daemon_host_set_link(struct daemon *d, const struct fabric_node *n, bool up);

/* control.c */
extern const struct ctl_command daemon_commands[];

/* shard.c: daemons that hold a topology together; the first one has the fabric's name, the others NAME.1, NAME.2... */
int daemon_shard_rundir(struct rundir *r, const char *name, u32 shard, char *err,
			size_t err_len); /* as rundir_open() */
/* Leaves in @topo what this daemon holds. 0, or -errno and a line in @err. */
int daemon_shard_topology(struct daemon *d, struct fabric_topology *topo, char *err, size_t err_len);
bool daemon_shard_has_manager(const struct daemon *d); /* may the embedded subnet manager be in this one? */
int daemon_shard_write(const struct daemon *d);        /* how many there are, for commands. 0, or -1 with errno */
json_t *daemon_trunks_json(const struct daemon *d, const char *only);
json_t *daemon_trunks_refused_json(const struct daemon *d); /* peers of all trunks */

/* addresses.c: what the shim makes of the hosts' IP addresses. 0 or -errno. */
int daemon_addresses_write(struct daemon *d);

/* fault_list.c */
json_t *daemon_fault_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);
void daemon_faults_destroy(struct daemon *d);
/* A host where a fault of hosts is said to be; NULL and a line in @err. */
struct host *daemon_fault_host(struct daemon *d, const char *place, char *err, size_t err_len);

/* timeline.c */
json_t *daemon_timeline_command(void *arg, struct ctl_client *c, const json_t *req, int *fd);
/* @kind: "port", "sm" or "fault"; stays. */
void daemon_timeline_note(struct daemon *d, const char *kind, const char *text);
void daemon_timeline_destroy(struct daemon *d);

/* iwarp.c: gives the host an iWARP port as its line of the topology says. 0 or -errno. */
int daemon_iwarp_bind(struct daemon *d, struct host *h);

/* confine.c: drops privileges and system calls, depending on the transports of its hosts. */
enum daemon_net {
	DAEMON_NET_NONE,
	DAEMON_NET_UDP, /* sockets are made beforehand, and connected at work; or trunks on local sockets */
	DAEMON_NET_TCP,
};
void daemon_confine(enum daemon_net net);

#endif
