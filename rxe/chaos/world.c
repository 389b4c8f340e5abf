// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two adapters in virtual time, a wire between them that drops, duplicates, corrupts, delays and refuses packets, and
 * programs whose memory has a copy of its expected contents (the shadow). Each DMA must lie in a region that is
 * registered at that time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/packet/header.h"
#include "rxe/chaos/chaos_internal.h"
#include "rxe/rxe.h"

struct chaos_world chaos;

struct flight {
	struct list link;
	u64 due;
	struct chaos_host *to;
	struct wire_packet *p;
};

u64 chaos_now(void)
{
	return loop_now(chaos.loop).ns;
}

void chaos_run(u64 ns)
{
	loop_run_idle(chaos.loop, chaos_now() + ns);
}

/* The wire */

static u32 draw(u32 n)
{
	return (u32)(rng_next(&chaos.rng) % n);
}

static void flights_arm(void)
{
	if (list_empty(&chaos.flights))
		loop_timer_cancel(&chaos.arrival);
	else
		loop_timer_set(chaos.loop, &chaos.arrival, list_first(&chaos.flights, struct flight, link)->due);
}

static void flight_drop(struct flight *f)
{
	list_del(&f->link);
	wire_packet_free(f->p);
	free(f);
}

/* Sorted by the time of arrival, then of departure. */
static void flight_add(struct chaos_host *to, struct wire_packet *p, u64 delay)
{
	struct flight *f = calloc(1, sizeof(*f)), *at;
	struct list *before = &chaos.flights;

	if (!f)
		abort();
	f->due = chaos_now() + delay;
	f->to = to;
	f->p = p;
	list_for_each (at, &chaos.flights, link)
		if (at->due > f->due) {
			before = &at->link;
			break;
		}
	list_add(before, &f->link);
}

static void on_arrival(struct loop_timer *t, struct now now)
{
	u32 n;

	/* a bounded number at once: the transports run in between */
	for (n = 0; n < 16 && !list_empty(&chaos.flights); n++) {
		struct flight *f = list_first(&chaos.flights, struct flight, link);
		struct wire_port *port = &f->to->port;
		struct wire_packet *p = f->p;

		if (f->due > now.ns)
			break;
		list_del(&f->link);
		free(f);
		if (port->data.receive(port->data.ctx, p))
			chaos_fail("the engine refuses a packet");
	}
	flights_arm();
}

static struct chaos_host *destination(const struct wire_packet *p)
{
	if (chaos.ethernet) {
		const struct wire_grh *grh = wire_packet_grh(p);

		return wire_gid_equal(&grh->dgid, &chaos.host[1].port.attr.gid[0]) ? &chaos.host[1] : &chaos.host[0];
	}
	return &chaos.host[wire_lrh_dlid(wire_packet_lrh(p)) == 2];
}

static void packet_print(const struct chaos_host *from, const struct chaos_host *to, const struct wire_packet *p)
{
	const struct wire_bth *bth = wire_packet_bth(p);

	fprintf(stderr, "%llu: host %d to %d: opcode %#x QPN %#x PSN %#x, %u bytes\n", (unsigned long long)chaos_now(),
		(int)(from - chaos.host), (int)(to - chaos.host), wire_packet_bth(p)->opcode, wire_bth_qpn(bth),
		wire_bth_psn(bth), p->len);
}

static int wire_send(struct wire_port *port, struct wire_packet *p)
{
	struct chaos_host *from = container_of(port, struct chaos_host, port), *to = destination(p);
	u32 qpn = wire_bth_qpn(wire_packet_bth(p));
	const struct chaos_wire *w = &chaos.wire;
	u64 delay = 0;

	if (from->is_busy)
		return -EAGAIN;
	if (chaos.verbose)
		packet_print(from, to, p);
	if (!chaos.spared(qpn, (u32)(to - chaos.host))) {
		if (chaos_now() < chaos.down_until || draw(1000) < w->lose) {
			wire_packet_free(p);
			return 0;
		}
		if (draw(1000) < w->damage)
			p->flags |= WIRE_PKT_BAD_ICRC;
		if (draw(1000) < w->late)
			delay = 1000 + draw(60000);
		if (draw(1000) < w->repeat && wire_packet_own(p))
			flight_add(to, wire_packet_clone(p), delay + draw(2) * draw(20000));
	}
	flight_add(to, p, delay);
	flights_arm();
	return 0;
}

static void wire_flush_zcopy(struct wire_port *port)
{
	struct flight *f;

	list_for_each (f, &chaos.flights, link)
		if (!wire_packet_own(f->p))
			abort();
}

static void wire_violation(struct wire_port *port, const struct wire_port_violation *v) {}

static const struct wire_port_ops wire_ops = { .send = wire_send,
					       .flush_zcopy = wire_flush_zcopy,
					       .violation = wire_violation };

void chaos_wire_forget(const struct chaos_host *to, u32 qpn)
{
	struct flight *f, *tmp;

	list_for_each_safe (f, tmp, &chaos.flights, link)
		if (f->to == to && wire_bth_qpn(wire_packet_bth(f->p)) == qpn)
			flight_drop(f);
	flights_arm();
}

void chaos_wire_down(u64 ns)
{
	chaos.down_until = chaos_now() + ns;
}

static void on_free(struct loop_timer *t, struct now now)
{
	struct chaos_host *h = container_of(t, struct chaos_host, busy);

	h->is_busy = false;
	h->port.data.ready(h->port.data.ctx);
}

void chaos_wire_busy(struct chaos_host *h, u64 ns)
{
	if (h->is_busy)
		return;
	h->is_busy = true;
	loop_timer_set(chaos.loop, &h->busy, chaos_now() + ns);
}

/* DMA */

static bool registered(const struct chaos_prog *p, u32 off, u32 len)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(p->mr); i++)
		if (p->mr[i].live && off >= p->mr[i].base && off + len <= p->mr[i].base + p->mr[i].len)
			return true;
	return false;
}

/* NULL: it cannot be accessed. */
static u8 *dma_at(struct chaos_prog *p, u64 addr, u32 len, const char *what)
{
	u64 off = addr - p->va;

	if (!p->ctx)
		chaos_fail("%s of a program that has ended", what);
	if (addr < p->va || off > CHAOS_ARENA || len > CHAOS_ARENA - off || !registered(p, (u32)off, len))
		chaos_fail("%s of %u bytes at %#llx of program %u, where no region is registered", what, len,
			   (unsigned long long)off, p->index);
	if (p->unmapped_len && off < p->unmapped + p->unmapped_len && off + len > p->unmapped)
		return NULL;
	return p->mem + off;
}

static int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	for (; n; n--, seg++) {
		const u8 *at = dma_at(dma, seg->addr, seg->len, "a read");

		if (!at)
			return -EFAULT;
		memcpy(seg->local, at, seg->len);
	}
	return 0;
}

static int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	for (; n; n--, seg++) {
		u8 *at = dma_at(dma, seg->addr, seg->len, "a write");

		if (!at)
			return -EFAULT;
		memcpy(at, seg->local, seg->len);
	}
	return 0;
}

static void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	return dma_at(dma, addr, len, "a pointer");
}

static const struct hca_dma_ops dma_ops = { .read = dma_read, .write = dma_write, .direct = dma_direct };

/* Programs */

static void on_event(void *fe, const struct hca_event *ev)
{
	chaos.event(fe, ev);
}

bool chaos_mr_reg(struct chaos_prog *p, u32 half)
{
	struct chaos_mr *mr = &p->mr[half];

	if (mr->live)
		return false;
	mr->base = half * CHAOS_HALF;
	mr->len = CHAOS_HALF;
	if (hca_mr_reg(p->ctx, p->pdn, p->va + mr->base, p->va + mr->base, mr->len, 0x1f, &mr->lkey, &mr->rkey))
		chaos_fail("a region cannot be registered");
	mr->live = true;
	mr->epoch++;
	return true;
}

void chaos_mr_dereg(struct chaos_prog *p, u32 half)
{
	int err = hca_mr_dereg(p->ctx, p->mr[half].lkey);

	if (err)
		chaos_fail("deregistration: %d", err);
	p->mr[half].live = false;
	p->mr[half].epoch++;
}

void chaos_prog_start(struct chaos_prog *p)
{
	u32 i, lkey;

	p->gen++;
	memset(p->taken, 0, sizeof(p->taken));
	memset(p->taken, 1, CHAOS_FIRST_UNIT);
	memset(p->word, 0, sizeof(p->word));
	p->unmapped_len = 0;
	for (i = 0; i < CHAOS_ARENA; i++)
		p->mem[i] = (u8)(i * 13 + p->index * 7 + (i >> 8));
	memset(p->mem, 0, CHAOS_WORDS);
	memcpy(p->shadow, p->mem, CHAOS_ARENA);
	p->ctx = hca_ctx_create(p->host->hca, &dma_ops, p, on_event, p);
	if (!p->ctx || hca_pd_alloc(p->ctx, &p->pdn) || hca_pd_alloc(p->ctx, &p->other_pdn))
		chaos_fail("a program cannot start");
	for (i = 0; i < 2; i++) {
		p->mr[i].live = false;
		chaos_mr_reg(p, i);
	}
	if (hca_mr_reg(p->ctx, p->other_pdn, p->va, p->va, CHAOS_HALF, 0xf, &lkey, &p->other_rkey))
		chaos_fail("a region cannot be registered");
}

void chaos_prog_kill(struct chaos_prog *p)
{
	struct hca_ctx *ctx = p->ctx;

	hca_ctx_destroy(ctx);
	p->ctx = NULL;
}

void chaos_prog_check(struct chaos_prog *p)
{
	u32 i, k;

	for (i = CHAOS_FIRST_UNIT; i < CHAOS_UNITS; i++) {
		const u8 *m = p->mem + i * CHAOS_UNIT, *s = p->shadow + i * CHAOS_UNIT;

		if (p->taken[i] || !memcmp(m, s, CHAOS_UNIT))
			continue;
		for (k = 0; m[k] == s[k];)
			k++;
		chaos_fail("byte %#x of program %u has changed, which no request names", i * CHAOS_UNIT + k, p->index);
	}
}

/* Areas */

u8 chaos_byte(u32 id, u32 i)
{
	u32 x = id * 2654435761u;

	return (u8)((x >> 24) + i * (1 + 2 * (x >> 8 & 63)) + (i >> 8) * 31);
}

bool chaos_area_get(struct chaos_prog *p, u32 len, u64 r, struct chaos_area *a)
{
	u32 units = len / CHAOS_UNIT + 1, i, k, first = CHAOS_FIRST_UNIT;
	u32 span = CHAOS_UNITS - first;

	for (i = 0; i < span; i++) {
		u32 at = first + (u32)((r + i) % span), half = at >= CHAOS_UNITS / 2;

		if (at + units > CHAOS_UNITS || (!half && at + units > CHAOS_UNITS / 2) || !p->mr[half].live)
			continue;
		for (k = 0; k < units && !p->taken[at + k];)
			k++;
		if (k < units)
			continue;
		memset(p->taken + at, 1, units);
		*a = (struct chaos_area){ p,
					  p->gen,
					  at,
					  units,
					  at * CHAOS_UNIT + (u32)(r >> 32) % (units * CHAOS_UNIT - len),
					  len,
					  half,
					  p->mr[half].epoch };
		return true;
	}
	return false;
}

u64 chaos_area_va(const struct chaos_area *a)
{
	return a->prog->va + a->off;
}

static bool area_mapped(const struct chaos_area *a)
{
	return a->prog && a->prog->ctx && a->prog->gen == a->gen;
}

u8 *chaos_area_mem(const struct chaos_area *a)
{
	return area_mapped(a) ? a->prog->mem + a->off : NULL;
}

bool chaos_area_key_valid(const struct chaos_area *a)
{
	return !a->prog || (area_mapped(a) && a->prog->mr[a->mr].epoch == a->epoch);
}

void chaos_area_fill(const struct chaos_area *a, u32 id)
{
	u32 i;

	for (i = 0; i < a->len; i++)
		a->prog->mem[a->off + i] = a->prog->shadow[a->off + i] = chaos_byte(id, i);
}

void chaos_area_put(struct chaos_area *a, u32 id, u32 len, bool exact, bool any, const char *what)
{
	struct chaos_prog *p = a->prog;
	u32 i;

	if (!area_mapped(a)) {
		a->prog = NULL;
		return;
	}
	for (i = 0; i < len; i++) {
		u8 *s = &p->shadow[a->off + i], m = p->mem[a->off + i], want = chaos_byte(id, i);

		if (!any && m != want && (exact || m != *s))
			chaos_fail("%s: byte %u of %u of message %u in program %u at %#x is %#x instead of %#x", what,
				   i, len, id, p->index, a->off, m, want);
		*s = m;
	}
	for (i = a->unit * CHAOS_UNIT; i < (a->unit + a->units) * CHAOS_UNIT; i++)
		if (p->mem[i] != p->shadow[i])
			chaos_fail("%s: byte %#x of program %u beside the %u bytes of message %u at %#x has changed",
				   what, i, p->index, len, id, a->off);
	memset(p->taken + a->unit, 0, a->units);
	a->prog = NULL;
}

/* The world */

static void host_open(u32 n, bool zcopy)
{
	struct chaos_host *h = &chaos.host[n];
	struct wire_port *ports[1] = { &h->port };
	struct hca_config cfg = { .name = "t", .node_guid = n + 1, .nports = 1, .ports = ports, .seed = n + 1 };
	u32 i;

	h->port = (struct wire_port){ .ops = &wire_ops, .num = 1, .zcopy = zcopy };
	h->port.attr = (struct wire_port_attr){
		.link_layer = chaos.ethernet ? WIRE_LINK_ETHERNET : WIRE_LINK_IB,
		.state = 4,
		.lid = (u16)(n + 1),
		.mtu_cap = 5,
		.mtu_active = 5,
		.width_active = 2,
		.speed_ext_active = 4,
		.gids = 1,
		.pkeys = 2,
		.pkey = { 0xffff, 0x8001 },
	};
	h->port.attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, n + 1);
	h->busy = (struct loop_timer){ .fn = on_free };
	h->is_busy = false;
	h->hca = hca_create(chaos.loop, &cfg);
	hca_set_transport(h->hca, &rxe_transport);
	for (i = 0; i < CHAOS_PROGS; i++) {
		struct chaos_prog *p = &h->prog[i];

		*p = (struct chaos_prog){ .host = h, .index = n * CHAOS_PROGS + i };
		p->va = 0x100000000ull * (p->index + 1);
		p->mem = malloc(CHAOS_ARENA);
		p->shadow = malloc(CHAOS_ARENA);
		if (!p->mem || !p->shadow)
			abort();
		chaos_prog_start(p);
	}
}

static void host_close(struct chaos_host *h)
{
	u32 i;

	for (i = 0; i < CHAOS_PROGS; i++) {
		chaos_prog_check(&h->prog[i]);
		if (h->prog[i].ctx)
			chaos_prog_kill(&h->prog[i]);
		free(h->prog[i].mem);
		free(h->prog[i].shadow);
	}
	loop_timer_cancel(&h->busy);
	hca_destroy(h->hca);
}

void chaos_world_open(u64 seed)
{
	struct rng rng = { seed ^ 0x6368616f73 };
	bool zcopy;

	chaos.loop = loop_create_virtual();
	chaos.wire = (struct chaos_wire){ 0 };
	chaos.rng.state = seed;
	chaos.down_until = 0;
	list_init(&chaos.flights);
	chaos.arrival = (struct loop_timer){ .fn = on_arrival };
	chaos.ethernet = rng_next(&rng) & 1;
	zcopy = rng_next(&rng) & 1;
	host_open(0, zcopy);
	host_open(1, zcopy);
}

void chaos_world_close(void)
{
	host_close(&chaos.host[0]);
	host_close(&chaos.host[1]);
	while (!list_empty(&chaos.flights))
		flight_drop(list_first(&chaos.flights, struct flight, link));
	loop_timer_cancel(&chaos.arrival);
	loop_destroy(chaos.loop);
	if (wire_packet_live())
		chaos_fail("%u packets or buffers are left", wire_packet_live());
}
