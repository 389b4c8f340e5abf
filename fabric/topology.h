/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Topology of a fabric, parsed from the format of ibnetdiscover or from the short form. */
#ifndef MUSLIN_FABRIC_TOPOLOGY_H
#define MUSLIN_FABRIC_TOPOLOGY_H

#include "emu/wire/gid.h"

#define FABRIC_NAME_MAX         64
#define FABRIC_DESC_MAX         65 /* NodeDescription and a NUL */
#define FABRIC_NO_PEER          (~0u)
#define FABRIC_SWITCH_PORTS_MAX 254
#define FABRIC_CA_PORTS_MAX     8
#define FABRIC_DELAY_DEFAULT    (~0ull)
#define FABRIC_SHARD_LINES_MAX  4096

/* IP addresses of a CA port, for rdma_cm; host order. */
struct fabric_ip {
	u32 v4;
	u8 v4_len;
	u8 v6[16];
	u8 v6_len;
	u32 v4_line, v6_line; /* that give them; 0: assigned */
};

struct fabric_topology_port {
	u32 peer; /* index of the peer's node; FABRIC_NO_PEER: not wired */
	u32 line; /* line of the link in the file */
	u64 guid; /* of a CA's port; 0: node GUID + number */
	u8 peer_port;
	u8 lanes;      /* 1, 2, 4, 8, 12 */
	u8 speed;      /* enum wire_speed */
	u8 lmc;        /* of lid */
	u16 lid;       /* LID of a CA's port, or of port 0 of a switch, in the file; 0: none */
	bool disabled; /* PortPhysicalState Disabled at the start */
	u64 delay_ps;  /* propagation delay of its cable; FABRIC_DELAY_DEFAULT: propagation_ps */
};

struct fabric_topology_node {
	char name[FABRIC_NAME_MAX]; /* unique; used in commands */
	char desc[FABRIC_DESC_MAX]; /* the initial NodeDescription, NUL-terminated */
	char *id;                   /* id in the file ("S-0002c9..."); NULL in the short form */
	u8 type;                    /* enum wire_node_type */
	u8 nports;
	bool enhanced_port0; /* of a switch: SwitchInfo.EnhancedPort0 */
	u16 devid;
	u32 vendid, line;
	u32 shard; /* index of the line "shard" that names it */
	u64 guid, sysguid;
	struct fabric_topology_port *ports; /* [1..nports], [0] is port 0 of a switch */
	struct fabric_ip *ip;               /* [1..nports] of a CA; NULL for a switch */
	char *binding; /* of a host not on the fabric: "roce ADDRESS...", "ether SWITCH", "nic SWITCH"; or NULL */
};

/* A trunk: a cable to a port of another daemon. */
struct fabric_topology_trunk {
	u32 node, line; /* index; in the file */
	u8 port;
	bool listen;   /* waits for the other daemon; else connects to it */
	char *address; /* path of a Unix socket, or ADDRESS:PORT of TCP */
	char *key;     /* file with the shared key; NULL: none */
	bool tls;
	u64 peer_guid;                   /* of the peer's node; 0: of any */
	u8 peer_port, peer_type;         /* 0: of any */
	char peer_name[FABRIC_NAME_MAX]; /* "": unknown */
};

/* A line "shard": one of the daemons, on any machine, among which the nodes are distributed. */
struct fabric_topology_shard {
	char name[FABRIC_NAME_MAX];
	u32 line;
	char *address; /* at which the others reach it; NULL: it connects to all others */
	char *key;     /* as of a trunk, for the connections to this address */
	bool tls;
	bool manager; /* runs the embedded subnet manager */
};

struct fabric_ether;

struct fabric_topology {
	struct fabric_topology_node *nodes;
	u32 nnodes;
	u8 mtu;    /* MTUCap code of every port */
	u8 vl_cap; /* VLCap code of every port */
	struct fabric_topology_trunk *trunks;
	u32 ntrunks;
	struct fabric_topology_shard *shards; /* in the order of their lines */
	u32 nshards;                          /* 0: no such lines; else each node is in one shard */
	char *partition_file;                 /* as given in the topology, or NULL */
	char *partition_place;                /* "file:line" that gives it, or NULL */
	char *warning;                        /* assumptions of the parser, "file:line: ..." lines; NULL */
	bool keep_lids;             /* for fabric_create(): ports have the LIDs and LMCs of the file from the start */
	bool timed;                 /* links have rates and delays in time; see fabric/timing.c */
	u64 propagation_ps;         /* of each cable */
	u64 switch_ps;              /* from a switch's input to its output */
	struct fabric_ether *ether; /* NULL: no Ethernet */
};

/*
 * Parses @text of @len bytes; @file is its name in errors. Returns a topology that the caller destroys, or NULL and one
 * line "file:line: message" in @err (of @err_len bytes).
 */
struct fabric_topology *fabric_topology_parse(const char *text, size_t len, const char *file, char *err,
					      size_t err_len);
/* Reads the file @path and parses it. */
struct fabric_topology *fabric_topology_load(const char *path, char *err, size_t err_len);
/* @topology is the path of a file or, if no such file exists, a text in the short form. */
struct fabric_topology *fabric_topology_open(const char *topology, char *err, size_t err_len);
#define FABRIC_SHARDS_MAX 64
/* One of several daemons to which the leafs of a topology are distributed. */
struct fabric_shard {
	u32 index, count;
	char *(*address)(void *ctx, u32 shard); /* where that shard listens for trunks; the caller frees it */
	void *ctx;
};
/* Sets the shard of each node for @count daemons, as fabric_topology_shard() distributes them. 0 or -ENOMEM. */
int fabric_topology_assign(struct fabric_topology *t, u32 count);
s64 fabric_topology_shard_find(const struct fabric_topology *t, const char *name); /* index of that line; -1: none */
/* Reduces @t to the nodes of one shard, and a trunk for each cable to another one. 0, or -errno and a line in @err. */
int fabric_topology_shard(struct fabric_topology *t, const struct fabric_shard *at, char *err, size_t err_len);
/*
 * The same for the shard of the line "shard" with that name: of two shards with cables between them that of the earlier
 * line listens. GUIDs, addresses and port numbers are those of the whole topology, so that all daemons agree on them.
 */
int fabric_topology_join(struct fabric_topology *t, const char *name, char *err, size_t err_len);
/*
 * Of a trunk from shard @own to shard @to of the lines: sets who listens, address, key and TLS, which the caller frees.
 * 0, or -errno and a line in @err: the one that would have to listen has no address.
 */
int fabric_topology_carrier(const struct fabric_topology *t, u32 own, u32 to, struct fabric_topology_trunk *tt,
			    char *err, size_t err_len);
/*
 * Merges @n topologies, whose names in errors are @file, into the first one: the two ends of each trunk, by their
 * addresses and peers, become a cable. The caller destroys the others. 0, or negative with a line in @err: a trunk has
 * no other end, or the topologies do not fit.
 */
int fabric_topology_merge(struct fabric_topology *const *t, const char *const *file, u32 n, char *err, size_t err_len);
/* Two leafs, two spines, four hosts at each leaf. NULL: out of memory. */
struct fabric_topology *fabric_topology_default(void);
/* Of a port of a CA, or port 0 of a switch. */
u64 fabric_topology_port_guid(const struct fabric_topology_node *n, u32 num);
/* Sets keep_lids. Returns the highest LMC of the file's ports, or -ENOENT if the file gives no LIDs. */
int fabric_topology_keep_lids(struct fabric_topology *t);
void fabric_topology_destroy(struct fabric_topology *t); /* NULL is ignored */

#endif
