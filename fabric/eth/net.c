// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The Ethernet network object: switches and stations by name, accessors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/eth/eth_internal.h"

const char *eth_counter_name(enum eth_counter c)
{
	static const char *const names[] = { ETH_COUNTERS(COUNTER_NAME) };

	return c < ETH_CTR_NUM ? names[c] : "?";
}

u64 eth_end_counter(const struct eth_end *end, enum eth_counter c)
{
	return c < ETH_CTR_NUM ? end->counter[c] : 0;
}

struct eth *eth_create(struct loop *loop, u64 seed)
{
	struct eth *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->loop = loop;
	fault_set_init(&e->faults, &eth_fault_target, loop, e, seed + 1);
	return e;
}

void eth_destroy(struct eth *e)
{
	u32 i, k;

	if (!e)
		return;
	for (i = 0; i < e->nstations; i++)
		e->station[i]->port.roce = e->station[i]->port.nic = (struct ether_user){ 0 };
	e->watch = NULL;
	fault_set_fini(&e->faults);
	/* Queued frames refer to their ingress ends: flush all queues before any end is freed. */
	for (i = 0; i < e->nsw; i++)
		for (k = 0; k < e->sw[i]->nends; k++) {
			e->sw[i]->end[k]->port.roce = e->sw[i]->end[k]->port.nic = (struct ether_user){ 0 };
			eth_end_set_up(e->sw[i]->end[k], false);
		}
	for (i = 0; i < e->nstations; i++)
		eth_end_destroy(e->station[i]);
	for (i = 0; i < e->nsw; i++) {
		struct eth_switch *sw = e->sw[i];

		loop_timer_cancel(&sw->sweep);
		eth_switch_forget(sw, NULL);
		free(sw->table);
		for (k = 0; k < sw->nends; k++)
			eth_end_destroy(sw->end[k]);
		free(sw);
	}
	free(e->station);
	free(e->sw);
	free(e);
}

/* Makes room for one more pointer; false: out of memory. */
static bool list_grow(void *list, u32 n)
{
	void **p = list, *more = realloc(*p, (n + 1) * sizeof(void *));

	if (more)
		*p = more;
	return more;
}

struct eth_switch *eth_switch_add(struct eth *e, const char *name, u64 age_ns)
{
	struct eth_switch *sw = list_grow(&e->sw, e->nsw) ? calloc(1, sizeof(*sw)) : NULL;

	if (!sw)
		return NULL;
	sw->e = e;
	sw->age_ns = age_ns ? age_ns : ETH_AGE_NS;
	snprintf(sw->name, sizeof(sw->name), "%s", name);
	sw->mac[0] = 0x02;
	wire_store(sw->mac + 2, 4, e->nsw + 1);
	if (eth_switch_init(sw)) {
		free(sw);
		return NULL;
	}
	e->sw[e->nsw++] = sw;
	return sw;
}

struct eth_switch *eth_switch_find(const struct eth *e, const char *name)
{
	u32 i;

	for (i = 0; i < e->nsw; i++)
		if (!strcmp(e->sw[i]->name, name))
			return e->sw[i];
	return NULL;
}

/* Adds the switch's next port. */
static struct eth_end *add_port(struct eth_switch *sw, const struct eth_link_config *cfg)
{
	struct eth_end *end = sw->nends < ETH_PORTS_MAX ? eth_end_create(sw->e, cfg) : NULL;

	if (!end)
		return NULL;
	end->sw = sw;
	sw->end[sw->nends++] = end;
	end->num = sw->nends;
	snprintf(end->port.name, sizeof(end->port.name), "%.56s:%u", sw->name, end->num);
	return end;
}

int eth_cable_add(struct eth_switch *a, struct eth_switch *b, const struct eth_link_config *cfg)
{
	struct eth_end *x, *y;

	if (a->nends >= ETH_PORTS_MAX || b->nends >= ETH_PORTS_MAX - (a == b))
		return -ENOSPC;
	x = add_port(a, cfg);
	y = x ? add_port(b, cfg) : NULL;
	if (!y && x) {
		a->nends--;
		eth_end_destroy(x);
	}
	if (!y)
		return -ENOMEM;
	x->peer = y;
	y->peer = x;
	return 0;
}

struct eth_end *eth_station_add(struct eth_switch *sw, const char *name, const u8 mac[ETHER_ALEN],
				const struct eth_link_config *cfg)
{
	struct eth *e = sw->e;
	struct eth_end *end, *port;

	errno = ENOSPC;
	if (sw->nends >= ETH_PORTS_MAX)
		return NULL;
	errno = ENOMEM;
	end = list_grow(&e->station, e->nstations) ? eth_end_create(e, cfg) : NULL;
	port = end ? add_port(sw, cfg) : NULL;
	if (!port) {
		eth_end_destroy(end);
		return NULL;
	}
	end->peer = port;
	port->peer = end;
	memcpy(end->port.mac, mac, ETHER_ALEN);
	snprintf(end->port.name, sizeof(end->port.name), "%s", name);
	e->station[e->nstations++] = end;
	return end;
}

struct ether_port *eth_station_port(struct eth_end *end)
{
	return &end->port;
}

static struct eth_end *station_find(const struct eth *e, const char *name)
{
	u32 i;

	for (i = 0; i < e->nstations; i++)
		if (!strcmp(e->station[i]->port.name, name))
			return e->station[i];
	return e->names ? e->names(e->names_ctx, name) : NULL;
}

void eth_set_names(struct eth *e, struct eth_end *(*fn)(void *ctx, const char *name), void *ctx)
{
	e->names = fn;
	e->names_ctx = ctx;
}

struct eth_end *eth_find(const struct eth *e, const char *place)
{
	struct eth_switch *sw = eth_switch_find(e, place);
	struct eth_end *end = sw ? eth_switch_port(sw, 1) : station_find(e, place);
	const char *colon = strrchr(place, ':');
	char name[ETH_NAME_MAX], *rest;
	unsigned long num;

	if (end || sw)
		return end;
	if (!colon || (size_t)(colon - place) >= sizeof(name))
		return NULL;
	num = strtoul(colon + 1, &rest, 10);
	snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
	if (rest == colon + 1 || *rest || !num || num > ETH_PORTS_MAX)
		return NULL;
	sw = eth_switch_find(e, name);
	return sw ? eth_switch_port(sw, (u32)num) : num == 1 ? station_find(e, name) : NULL;
}

u32 eth_switch_count(const struct eth *e)
{
	return e->nsw;
}

struct eth_switch *eth_switch_at(const struct eth *e, u32 i)
{
	return i < e->nsw ? e->sw[i] : NULL;
}

const char *eth_switch_name(const struct eth_switch *sw)
{
	return sw->name;
}

u32 eth_switch_ports(const struct eth_switch *sw)
{
	return sw->nends;
}

struct eth_end *eth_switch_port(const struct eth_switch *sw, u32 num)
{
	return num && num <= sw->nends ? sw->end[num - 1] : NULL;
}

const char *eth_end_name(const struct eth_end *end)
{
	return end->sw ? end->sw->name : end->port.name;
}

u32 eth_end_num(const struct eth_end *end)
{
	return end->num;
}

struct eth_end *eth_end_peer(const struct eth_end *end)
{
	return end->peer;
}

u64 eth_end_rate(const struct eth_end *end)
{
	return end->rate;
}

u32 eth_end_mtu(const struct eth_end *end)
{
	return end->port.mtu;
}

void eth_watch(struct eth *e, void (*fn)(void *ctx, const struct eth_end *end), void *ctx)
{
	e->watch = fn;
	e->watch_ctx = ctx;
}

bool eth_end_up(const struct eth_end *end)
{
	return end->port.up;
}

void eth_end_set_capture(struct eth_end *end, void (*capture)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx)
{
	end->capture = capture;
	end->capture_ctx = ctx;
}
