// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The trunk of a hello, by the GUIDs and port numbers of both ends. */
#include <stdlib.h>

#include "fabric/trunk/trunk_internal.h"

static int guid_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

void trunk_match_sort_guids(struct trunk_set *s)
{
	u32 i, n = fabric_node_count(s->fabric);

	for (i = 0; i < n; i++)
		s->guids[i] = fabric_node_guid(fabric_node(s->fabric, i));
	qsort(s->guids, n, sizeof(*s->guids), guid_compare);
}

bool trunk_guid_is_here(const struct trunk_set *s, u64 guid)
{
	return bsearch(&guid, s->guids, fabric_node_count(s->fabric), sizeof(guid), guid_compare) != NULL;
}

static int port_compare(const struct trunk *t, u64 guid, u8 port)
{
	return t->guid != guid ? (t->guid < guid ? -1 : 1) : (int)t->port - (int)port;
}

static int by_port_compare(const void *a, const void *b)
{
	const struct trunk *x = *(struct trunk *const *)a, *y = *(struct trunk *const *)b;

	return port_compare(x, y->guid, y->port);
}

bool trunk_match_sort(struct trunk_set *s)
{
	struct trunk **by_port, *t;
	u32 n = s->ntrunks, i;

	list_for_each (t, &s->extra, extra)
		n++;
	by_port = realloc(s->by_port, (n + 1) * sizeof(*by_port));
	if (!by_port)
		return false;
	s->by_port = by_port;
	for (i = 0; i < s->ntrunks; i++)
		by_port[i] = &s->trunks[i];
	list_for_each (t, &s->extra, extra)
		by_port[i++] = t;
	s->nby_port = n;
	qsort(by_port, n, sizeof(*by_port), by_port_compare);
	return true;
}

void trunk_match_remove(struct trunk_set *s, const struct trunk *t)
{
	u32 i, n = 0;

	for (i = 0; i < s->nby_port; i++)
		if (s->by_port[i] != t)
			s->by_port[n++] = s->by_port[i];
	s->nby_port = n;
}

/* The index in by_port of the first trunk whose GUID and port number are not lower. */
static u32 trunk_lower_bound(const struct trunk_set *s, u64 guid, u8 port)
{
	u32 low = 0, high = s->nby_port;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (port_compare(s->by_port[mid], guid, port) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool trunk_may_replace(const struct trunk *t, const struct trunk_conn *c, const struct trunk_hello *h)
{
	return t->key && t->conn != c && t->s.theirs.guid == h->guid && t->s.theirs.port == h->port &&
	       loop_now(t->set->loop).ns - t->conn->heard >= TRUNK_MISSED;
}

struct trunk *trunk_match(const struct trunk_conn *c, const struct trunk_hello *h, enum trunk_refusal *why)
{
	u64 guid = be64_to_cpu(h->guid), wanted = be64_to_cpu(h->peer_guid);
	const struct trunk_set *s = c->set;
	struct trunk *requested = NULL;
	u32 i;

	*why = TRUNK_BAD_PORT;
	if (trunk_guid_is_here(s, guid))
		return NULL;
	for (i = wanted ? trunk_lower_bound(s, wanted, h->peer_port) : 0; i < s->nby_port; i++) {
		struct trunk *t = s->by_port[i];

		if (wanted && (t->guid != wanted || (h->peer_port && h->peer_port != t->port)))
			break;
		if (t->listener != c->listener || (h->peer_port && h->peer_port != t->port) ||
		    (t->peer_guid && t->peer_guid != guid) || (t->peer_port && t->peer_port != h->port))
			continue;
		*why = TRUNK_BUSY;
		if ((t->conn && !trunk_may_replace(t, c, h)) || trunk_request_is_open(t, c))
			continue;
		if (list_empty(&t->requests) && !t->conn)
			return t;
		if (!requested)
			requested = t;
	}
	return requested;
}
