// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Index of the communication IDs by what the peer has chosen: its CA's GUID with its communication ID or QPN, and the
 * request ID of a SIDR_REQ. Each REQ and SIDR_REQ is looked up, since it may be a duplicate, or the REQ of a peer that
 * reuses a connected QP (IBTA 12.9.8.3.1). The number of lists grows with that of IDs.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/cm/cm_internal.h"

#define PEERS_FIRST 64

static struct list *peer_list(struct list *lists, u32 n, u64 ca_guid, u32 number)
{
	return &lists[((ca_guid ^ number) * 0x9e3779b97f4a7c15ull) >> 32 & (n - 1)];
}

static void peer_index(struct cm_id *id, struct list *lists, u32 n)
{
	list_add(peer_list(lists, n, id->remote_ca_guid, id->remote_id), &id->by_id);
	if (id->qp_known)
		list_add(peer_list(lists + n, n, id->remote_ca_guid, id->qp.remote_qpn), &id->by_qpn);
}

static struct list *peer_lists(u32 n)
{
	struct list *lists = malloc(2 * n * sizeof(*lists));
	u32 i;

	for (i = 0; lists && i < 2 * n; i++)
		list_init(&lists[i]);
	return lists;
}

int cm_peers_init(struct cm *cm)
{
	cm->npeers = PEERS_FIRST;
	cm->peers = peer_lists(cm->npeers);
	return cm->peers ? 0 : -ENOMEM;
}

/* Doubles the lists. Without memory those that exist become longer. */
static void peers_grow(struct cm *cm)
{
	struct list *lists = peer_lists(2 * cm->npeers);
	struct cm_id *id;
	u32 i;

	if (!lists)
		return;
	table_for_each (&cm->ids, i, id) {
		if (list_empty(&id->by_id))
			continue;
		list_del(&id->by_id);
		list_del(&id->by_qpn);
		peer_index(id, lists, 2 * cm->npeers);
	}
	free(cm->peers);
	cm->peers = lists;
	cm->npeers *= 2;
}

static void peer_add(struct cm_id *id)
{
	struct cm *cm = id->cm;

	if (cm->nindexed++ >= cm->npeers)
		peers_grow(cm);
	peer_index(id, cm->peers, cm->npeers);
}

void cm_peer_known(struct cm_id *id)
{
	cm_peer_forget(id);
	id->qp_known = true;
	peer_add(id);
}

void cm_peer_add_sidr(struct cm_id *id)
{
	peer_add(id);
}

void cm_peer_forget(struct cm_id *id)
{
	if (!list_empty(&id->by_id))
		id->cm->nindexed--;
	list_del(&id->by_id);
	list_del(&id->by_qpn);
	id->qp_known = false;
}

struct cm_id *cm_peer_find(const struct cm *cm, u64 ca_guid, u32 remote_id, u32 remote_qpn)
{
	struct cm_id *id;

	list_for_each (id, peer_list(cm->peers, cm->npeers, ca_guid, remote_id), by_id)
		if (id->qp_known && id->remote_ca_guid == ca_guid && id->remote_id == remote_id)
			return id;
	list_for_each (id, peer_list(cm->peers + cm->npeers, cm->npeers, ca_guid, remote_qpn), by_qpn)
		if (id->remote_ca_guid == ca_guid && id->qp.remote_qpn == remote_qpn)
			return id;
	return NULL;
}

/* Identifies the sender by LID and GID: on Ethernet every LID is 0. */
struct cm_id *cm_peer_find_sidr(const struct cm *cm, u32 request_id, const struct mad_addr *from)
{
	struct cm_id *id;

	list_for_each (id, peer_list(cm->peers, cm->npeers, 0, request_id), by_id)
		if (id->state == CM_ST_SIDR_REQ_RCVD && id->remote_id == request_id && id->peer.lid == from->lid &&
		    id->peer.grh == from->grh && (!from->grh || wire_gid_equal(&id->peer.gid, &from->gid)))
			return id;
	return NULL;
}
