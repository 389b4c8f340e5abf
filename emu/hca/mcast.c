// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Multicast attachments, hashed by MGID (10.5.2). */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"
#include "emu/packet/roce.h"

#define BUCKETS 64

struct attachment {
	struct hca_qp *qp;
	u16 mlid;
};

struct group {
	struct list link;
	struct wire_gid mgid;
	u32 n, cap, clients; /* queue pairs; room for them; those that are not the daemon's own */
	struct attachment *at;
};

static struct list *bucket(struct hca *hca, const struct wire_gid *mgid)
{
	u64 h = (wire_gid_guid(mgid) ^ wire_gid_prefix(mgid)) * 0x9e3779b97f4a7c15ull;

	return &hca->mcast[h >> 58];
}

static struct group *group_find(struct hca *hca, const struct wire_gid *mgid)
{
	struct group *g;
	struct list *b;

	if (!hca->mcast)
		return NULL;
	b = bucket(hca, mgid);
	list_for_each (g, b, link)
		if (wire_gid_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

static struct attachment *find_qp(struct group *g, const struct hca_qp *qp)
{
	u32 i;

	for (i = 0; i < g->n; i++)
		if (g->at[i].qp == qp)
			return &g->at[i];
	return NULL;
}

/* Updates the group membership of the link of one port. */
static int update_port(struct hca *hca, u8 num, const struct wire_gid *mgid, bool member)
{
	struct wire_port *port = hca_port(hca, num);

	return port->ops && port->ops->group ? port->ops->group(port, mgid, member)
					     : 0; /* ports of tests may lack ops */
}

static void leave_ports(struct hca *hca, u8 last, const struct wire_gid *mgid)
{
	u8 i;

	for (i = 1; i <= last; i++)
		update_port(hca, i, mgid, false);
}

static int join_ports(struct hca *hca, const struct wire_gid *mgid)
{
	int err;
	u8 i;

	for (i = 1; i <= hca->nports; i++) {
		err = update_port(hca, i, mgid, true);
		if (err) {
			leave_ports(hca, i - 1, mgid);
			return err;
		}
	}
	return 0;
}

static int group_make(struct hca *hca, const struct wire_gid *mgid, struct group **out)
{
	struct group *g;
	int err;
	u32 i;

	if (!hca->mcast) {
		hca->mcast = calloc(BUCKETS, sizeof(*hca->mcast));
		if (!hca->mcast)
			return -ENOMEM;
		for (i = 0; i < BUCKETS; i++)
			list_init(&hca->mcast[i]);
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	err = join_ports(hca, mgid);
	if (err) {
		free(g);
		return err;
	}
	g->mgid = *mgid;
	list_add(bucket(hca, mgid), &g->link);
	*out = g;
	return 0;
}

static void drop_if_empty(struct hca *hca, struct group *g)
{
	if (g->n)
		return;
	leave_ports(hca, hca->nports, &g->mgid);
	list_del(&g->link);
	free(g->at);
	free(g);
}

/* Whether one more queue pair of a client is within the limits, which leave out the daemon's own groups. */
static bool within_limits(const struct hca *hca, const struct group *g)
{
	if (g && g->clients)
		return g->clients < hca->caps.max_mcast_qp_attach;
	return hca->mcast_groups < hca->caps.max_mcast_grp;
}

static int append(struct group *g, struct hca_qp *qp, u16 mlid)
{
	if (g->n == g->cap) {
		u32 cap = g->cap ? 2 * g->cap : 4;
		struct attachment *at = realloc(g->at, cap * sizeof(*at));

		if (!at)
			return -ENOMEM;
		g->at = at;
		g->cap = cap;
	}
	g->at[g->n++] = (struct attachment){ .qp = qp, .mlid = mlid };
	hca_qp_priv(qp)->mcast_groups++;
	if (!qp->ctx->internal)
		qp->hca->mcast_groups += !g->clients++;
	return 0;
}

static void take_out(struct hca *hca, struct group *g, struct attachment *at)
{
	hca_qp_priv(at->qp)->mcast_groups--;
	if (!at->qp->ctx->internal)
		hca->mcast_groups -= !--g->clients;
	memmove(at, at + 1, (size_t)(&g->at[g->n] - (at + 1)) * sizeof(*at));
	g->n--;
	drop_if_empty(hca, g);
}

/* Attaching again is harmless. -EINVAL: not a UD QP, not a multicast GID, or attached by another MLID. */
int hca_mcast_attach(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);
	struct attachment *at;
	struct group *g;
	int err;

	if (!qp || qp->type != HCA_QPT_UD || !wire_gid_is_group(mgid) || (mlid && !wire_lid_is_multicast(mlid)))
		return -EINVAL;
	g = group_find(ctx->hca, mgid);
	at = g ? find_qp(g, qp) : NULL;
	if (at)
		return at->mlid == mlid ? 0 : -EINVAL;
	if (!ctx->internal && !within_limits(ctx->hca, g))
		return -ENOMEM;
	err = g ? 0 : group_make(ctx->hca, mgid, &g);
	if (err)
		return err;
	err = append(g, qp, mlid);
	if (err)
		drop_if_empty(ctx->hca, g);
	return err;
}

int hca_mcast_detach(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);
	struct group *g = qp ? group_find(ctx->hca, mgid) : NULL;
	struct attachment *at = g ? find_qp(g, qp) : NULL;

	if (!at || at->mlid != mlid)
		return -EINVAL;
	take_out(ctx->hca, g, at);
	return 0;
}

void hca_mcast_forget(struct hca_qp *qp)
{
	struct group *g, *tmp;
	u32 i;

	for (i = 0; i < BUCKETS && hca_qp_priv(qp)->mcast_groups; i++)
		list_for_each_safe (g, tmp, &qp->hca->mcast[i], link) {
			struct attachment *at = find_qp(g, qp);

			if (at)
				take_out(qp->hca, g, at);
		}
}

void hca_mcast_fini(struct hca *hca)
{
	free(hca->mcast);
	hca->mcast = NULL;
}

/* By MGID only; @mlid is not compared. */
u32 hca_mcast_for_each(struct hca *hca, u8 port, const struct wire_gid *mgid, u16 mlid,
		       void (*fn)(struct hca_qp *qp, void *arg), void *arg)
{
	struct group *g = group_find(hca, mgid);
	u32 i, n = 0;

	for (i = 0; g && i < g->n; i++)
		if (g->at[i].qp->attr.port == port) {
			fn(g->at[i].qp, arg);
			n++;
		}
	return n;
}
