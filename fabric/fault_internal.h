/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fault target of InfiniBand links and nodes: keys, and declarations shared by its files. */
#ifndef MUSLIN_FABRIC_FAULT_INTERNAL_H
#define MUSLIN_FABRIC_FAULT_INTERNAL_H

#include <errno.h>

#include "fabric/fabric_internal.h"
#include "fabric/fault.h"

/* Keys of this target, in the order of the table in fault_target.c. */
enum fabric_fault_key {
	FAULT_WHAT = FAULT_OWN,
	FAULT_LANES,
	FAULT_SPEED,
	FAULT_WITH,
	FAULT_LID,
	FAULT_PORT,
	FAULT_OFF,
	FAULT_INDEX,
	FAULT_PKEY,
	FAULT_LANE,
	FAULT_MTU,
	FAULT_END
};
static_assert(FAULT_END <= 64, "one bit for each key");

struct fabric_fault {
	struct fault ft; /* must be first */
	struct fabric *f;
	struct fabric_node *node; /* NULL: every link */
	struct fabric_port *port; /* NULL: every port of the node */
	/* Values of keys */
	u32 lid, num, index, pkey;
	u8 lanes, speed, lane, mtu;
	bool off;
	char with[SPEC_TEXT_MAX];
	/* Of faults that change links, nodes or tables */
	struct fabric_port *other; /* swap: with= */
	/* swap of cables of several daemons: their four ends, by fabric_whole_cables(); of each, if it is here, ... */
	struct fabric_end end[4];
	struct fabric_remote *first[4], *now[4]; /* ... its trunk before and now; NULL: the other end is here, too */
	bool across;
	bool swaps;                                    /* the cables of this daemon */
	const struct fabric_node *like;                /* guid: with=, a node of this daemon, ... */
	const struct fabric_topology_node *like_whole; /* ... or of another one */
	u64 old, old_port_guid;                        /* the values before the fault */
};

static inline struct fabric_fault *fabric_fault(struct fault *ft)
{
	return container_of(ft, struct fabric_fault, ft);
}

/* fault_place.c */
int fault_place(struct fault *base, const char *place, char *err, size_t err_len);
/* The port of "h1" or "leaf1:5"; NULL and a line in @err. */
struct fabric_port *fault_find_port(struct fabric *f, const char *place, char *err, size_t err_len);
/* The port of the place after @p (NULL: the first), in the order of the fabric; all have cables. NULL: none. */
struct fabric_port *fault_next_port(const struct fabric_fault *ft, struct fabric_port *p);
#define fault_for_each_port(ft, p) for (p = fault_next_port(ft, NULL); p; p = fault_next_port(ft, p))
int fault_attach_place(struct fault *base);
void fault_rewire(struct fabric *f); /* attaches the hooks again after cables were swapped */
/* Checks of the place: 0, or -EINVAL with a message in @err. */
int fault_one_port(struct fault *base, char *err, size_t err_len);
int fault_whole_node(struct fault *base, char *err, size_t err_len);

/* fault_packet.c, fault_state.c, fault_table.c; each table ends with a row without a name */
extern const struct fault_packet_ops fault_packet_ops;
extern const struct fault_kind fault_packet_kinds[], fault_state_kinds[], fault_table_kinds[];
void fault_set_link(struct fault *base, bool up);
void fault_retrain(struct fabric_port *p);

#endif
