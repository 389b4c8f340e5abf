/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Topology builder, used by the parsers of both topology formats. */
#ifndef MUSLIN_FABRIC_BUILD_H
#define MUSLIN_FABRIC_BUILD_H

#include <stdio.h>

#include "fabric/topology.h"

/* Hash table of strings or GUIDs to node numbers. */
struct fabric_index {
	u64 *hash;
	u32 *node;
	u32 cap, used;
};

struct fabric_build {
	struct fabric_topology *t;
	struct fabric_index names, ids, guids, port_guids;
	const char *file;
	char *err;
	size_t err_len;
	u32 line;
	u8 lanes, speed; /* of the following links */
	u32 first;       /* number of the first switch and host of a shape; 0: 1 */
	bool disabled;   /* of the following links */
	u64 delay_ps;    /* of the following links */
	u32 warnings;
	struct fabric_build_pattern *patterns; /* of the shards */
	u32 npatterns;
};

/* Names of nodes that are in a shard, as for fnmatch(3). */
struct fabric_build_pattern {
	u32 line, shard;
	char name[FABRIC_NAME_MAX];
};

/* How the peer of a trunk is trusted. */
struct fabric_build_trust {
	char *key; /* file; NULL: none */
	bool tls, tls_given;
};

/* Tokens of one line: words, or quoted strings. */
struct fabric_line {
	const char *p, *end;
};

/* build.c */
int fabric_build_error(struct fabric_build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a node; one of @name and @id may be NULL. Returns its number, or negative (reported). */
s64 fabric_build_node(struct fabric_build *b, u8 type, const char *id, u32 nports);
/* Whether a node of the short form, or a @host, may have this name. 0, or negative (reported). */
int fabric_build_name_check(struct fabric_build *b, const char *name, bool host);
int fabric_build_name(struct fabric_build *b, u32 node, const char *name);
int fabric_build_guid(struct fabric_build *b, u32 node, u64 guid);
int fabric_build_port_guid(struct fabric_build *b, u32 node, u8 port, u64 guid);
/* Appends a zeroed element to *list and increments *n. NULL: out of memory. The capacity is a power of two. */
void *fabric_build_append(void *list, u32 *n, size_t size);
s64 fabric_build_find_id(struct fabric_build *b, const char *id);
s64 fabric_build_find_name(struct fabric_build *b, const char *name);
int fabric_build_link(struct fabric_build *b, u32 a, u32 ap, u32 z, u32 zp);
/* "4xHDR" -> lanes and speed: 1; 0: another word; negative: an invalid speed or width (reported). */
int fabric_build_rate(struct fabric_build *b, const char *word, u8 *lanes, u8 *speed);
/* Adds a line to fabric_topology.warning. */
void fabric_build_warn(struct fabric_build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "NODE:PORT", where NODE may be in quotes. 0, or negative (reported). */
int fabric_build_place(struct fabric_build *b, struct fabric_line *l, u32 *node, u32 *port);

/* option.c: options of the whole fabric, and lines about one port or cable */
bool fabric_option_known(const char *word);
int fabric_option_set(struct fabric_build *b, const char *word, const char *value);
int fabric_option_cable(struct fabric_build *b, struct fabric_line *l);   /* the words after "cable" */
int fabric_option_disable(struct fabric_build *b, struct fabric_line *l); /* and after "disable" */

/* ip NAME ADDR[/LEN] [ADDR6[/LEN]], the words after "ip". NAME may be "h1" or "h1:2". */
int fabric_build_ip(struct fabric_build *b, struct fabric_line *l);
/*
 * topology_address.c: assigns addresses to the ports without configured ones, and checks all. 0, or negative
 * (reported).
 */
int fabric_build_addresses(struct fabric_build *b);
/*
 * A host that is not on the fabric: @kind is roce or iwarp; the words of @l are its addresses, or one interface of the
 * machine.
 */
int fabric_build_bound(struct fabric_build *b, const char *name, const char *kind, struct fabric_line *l);
/* The same with @binding as it is. Returns its number, or negative (reported). */
s64 fabric_build_bound_node(struct fabric_build *b, const char *name, const char *binding);
/* topology_ether.c: the words after "ethernet", and after "host NAME KIND" where @kind is ether, nic or tap. */
int fabric_build_ethernet(struct fabric_build *b, struct fabric_line *l);
int fabric_build_station(struct fabric_build *b, const char *name, const char *kind, struct fabric_line *l);
/* Checks the whole: loops of cables, and MAC addresses. 0, or negative (reported). */
int fabric_build_ether_check(struct fabric_build *b);
/* topology_trunk.c: the words after "trunk": NODE:PORT to|listen ADDRESS [peer GUID[:PORT]] [key FILE] [tls on|off]. */
int fabric_build_trunk(struct fabric_build *b, struct fabric_line *l);
/*
 * "key FILE" and "tls on|off" of a trunk or shard: 1, 0 if @word is another one, or negative (reported; @usage: the
 * line's form).
 */
int fabric_build_trust(struct fabric_build *b, const char *usage, const char *word, struct fabric_line *l,
		       struct fabric_build_trust *trust);
/* Checks the address, with the defaults of what the line did not give. 0, or negative (reported). */
int fabric_build_address(struct fabric_build *b, const char *address, struct fabric_build_trust *trust);
/* topology_shard.c: the words after "shard": NAME [listen ADDRESS] [key FILE] [tls on|off] [sm] nodes PATTERN... */
int fabric_build_shard(struct fabric_build *b, struct fabric_line *l);
/* Puts each node into its shard, when all of them are known. 0, or negative (reported). */
int fabric_build_shards(struct fabric_build *b);
/* Reads the next word (or quoted string) of the line; false at its end. */
bool fabric_line_word(struct fabric_line *l, char *word, size_t size);
bool fabric_line_next(const char **p, const char *end, struct fabric_line *l);

/* shape.c, netfile.c: parsers of the two formats. 0, or negative with the error reported. */
bool fabric_shape_match(const char *text, size_t len);
int fabric_shape_parse(struct fabric_build *b, const char *text, size_t len);
int fabric_netfile_parse(struct fabric_build *b, const char *text, size_t len);

#endif
