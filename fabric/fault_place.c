// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Places of faults on links and nodes: parsing, and their fault hooks. */
#include "fabric/fault_internal.h"

static struct fabric_node *fault_find_node(struct fabric *f, const char *place, u32 *num, char *err, size_t err_len)
{
	const char *port;
	struct fabric_node *n = fabric_place_find(f, place, &port);
	u64 v;

	*num = 0;
	if (!n) {
		spec_refuse(err, err_len,
			    fabric_node_matches(f, place, NULL, 0) > 1
				    ? "%.80s: more than one node has this name, use the GUID"
				    : "%.80s: there is no such node",
			    place);
		return NULL;
	}
	if (!port)
		return n;
	if (!spec_number(port, 255, &v) || !v || v > n->nports) {
		spec_refuse(err, err_len, "%.80s: the ports of %s are 1 to %u", place, n->name, n->nports);
		return NULL;
	}
	*num = (u32)v;
	return n;
}

struct fabric_port *fault_find_port(struct fabric *f, const char *place, char *err, size_t err_len)
{
	u32 num;
	struct fabric_node *n = fault_find_node(f, place, &num, err, err_len);

	if (!n)
		return NULL;
	if (!num && !n->sw && n->nports == 1)
		num = 1;
	if (num)
		return &n->ports[num];
	spec_refuse(err, err_len, "%.80s: which port? Use %s:1 to %s:%u", place, n->name, n->name, n->nports);
	return NULL;
}

int fault_place(struct fault *base, const char *place, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	bool wired = false, all = !strcmp(place, FAULT_PLACE_ALL);
	u32 num, i;

	ft->f = base->set->owner;
	if (fault_given(base, FAULT_DIR) && (all || !fault_sees_packets(base)))
		return spec_refuse(err, err_len, "dir: %s",
				   all ? "the place all has no direction" : "no packets are matched");
	if (all)
		return fault_next_port(ft, NULL) ? 0 : spec_refuse(err, err_len, "all: there is no InfiniBand link");
	ft->node = fault_find_node(ft->f, place, &num, err, err_len);
	if (!ft->node)
		return -EINVAL;
	ft->port = num ? &ft->node->ports[num] : NULL;
	for (i = num ? num : 1; i <= (num ? num : ft->node->nports); i++)
		wired |= ft->node->ports[i].peer != NULL;
	return wired ? 0 : spec_refuse(err, err_len, "%.80s: it has no cable", place);
}

struct fabric_port *fault_next_port(const struct fabric_fault *ft, struct fabric_port *p)
{
	const struct fabric_node *last = ft->node ? ft->node : &ft->f->nodes[ft->f->nnodes - 1];

	if (ft->port)
		return p || !ft->port->peer ? NULL : ft->port;
	p = p ? p + 1 : ft->node ? ft->node->ports : ft->f->port_pool;
	while (p <= &last->ports[last->nports] && !p->peer)
		p++;
	return p <= &last->ports[last->nports] ? p : NULL;
}

/*
 * One hook at the receiving end of each direction; a cable between two ports of the same place has one hook at each
 * end.
 */
int fault_attach_place(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;
	int err = 0;

	fault_for_each_port (ft, p) {
		bool inner = !ft->node || (!ft->port && p->peer->node == ft->node);

		if (ft->ft.dir != PICK_OUT || inner)
			err = fault_attach(&ft->ft, &p->hooks, p);
		if (!err && ft->ft.dir != PICK_IN && !inner)
			err = fault_attach(&ft->ft, &p->peer->hooks, p->peer);
		if (err)
			break;
	}
	return err;
}

void fault_rewire(struct fabric *f)
{
	struct fault *ft;

	list_for_each (ft, &f->faults.faults, link)
		if (!list_empty(&ft->hooks)) {
			fault_detach(ft);
			fault_attach_place(ft);
		}
}

int fault_one_port(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (!ft->port && ft->node && !ft->node->sw && ft->node->nports == 1)
		ft->port = &ft->node->ports[1];
	if (!ft->port)
		return spec_refuse(err, err_len, "%s: it needs one port as its place", base->kind->name);
	return 0;
}

int fault_whole_node(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (!ft->node || ft->port)
		return spec_refuse(err, err_len, "%s: it needs a node as its place", base->kind->name);
	return 0;
}
