// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Performance management agent of a port (IBTA 16.1). */
#include "emu/wire/pma.h"

#include "fabric/fabric_internal.h"

struct pma {
	struct fabric_node *n;
	struct fabric_port *self;
	u8 *d;
	bool set;
	u32 first, last; /* ports that PortSelect selects */
};

/* A counter field of an attribute, its counter, and the CounterSelect bit that clears it. */
struct row {
	u16 bit, width;
	u8 counter;
	u8 select; /* bit of CounterSelect; 32 + bit of CounterSelect2 */
};

/* An attribute, its handler, and the arguments of the handler. */
struct attr {
	u16 id;
	void (*fn)(struct pma *q, const struct attr *a);
	u32 n; /* pma_rows: number of rows; vl_counters: enum fabric_vl_counter; no_counters: bytes */
	const struct row *rows;
	struct wire_field field; /* pma_rows: CounterSelect2, if any; vl_counters: field of VL 0 */
	bool get_only, any_port; /* @any_port: PortSelect is ignored */
};

static const struct row counters_rows[] = {
	{ 32, 16, FABRIC_CTR_SYMBOL_ERRORS, 0 },
	{ 48, 8, FABRIC_CTR_LINK_RECOVERIES, 1 },
	{ 56, 8, FABRIC_CTR_LINK_DOWNED, 2 },
	{ 64, 16, FABRIC_CTR_RCV_ERRORS, 3 },
	{ 80, 16, FABRIC_CTR_RCV_REMOTE_PHYS_ERRORS, 4 },
	{ 96, 16, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS, 5 },
	{ 112, 16, FABRIC_CTR_XMIT_DISCARDS, 6 },
	{ 128, 8, FABRIC_CTR_XMIT_CONSTRAINT_ERRORS, 7 },
	{ 136, 8, FABRIC_CTR_RCV_CONSTRAINT_ERRORS, 8 },
	{ 152, 4, FABRIC_CTR_LINK_INTEGRITY_ERRORS, 9 },
	{ 156, 4, FABRIC_CTR_OVERRUN_ERRORS, 10 },
	{ 160, 16, FABRIC_CTR_QP1_DROPPED, 33 },
	{ 176, 16, FABRIC_CTR_VL15_DROPPED, 11 },
	{ 192, 32, FABRIC_CTR_XMIT_DATA, 12 },
	{ 224, 32, FABRIC_CTR_RCV_DATA, 13 },
	{ 256, 32, FABRIC_CTR_XMIT_PKTS, 14 },
	{ 288, 32, FABRIC_CTR_RCV_PKTS, 15 },
	{ 320, 32, FABRIC_CTR_XMIT_WAIT, 32 },
};

static const struct row ext_rows[] = {
	{ 64, 64, FABRIC_CTR_XMIT_DATA, 0 },
	{ 128, 64, FABRIC_CTR_RCV_DATA, 1 },
	{ 192, 64, FABRIC_CTR_XMIT_PKTS, 2 },
	{ 256, 64, FABRIC_CTR_RCV_PKTS, 3 },
	{ 320, 64, FABRIC_CTR_UC_XMIT_PKTS, 4 },
	{ 384, 64, FABRIC_CTR_UC_RCV_PKTS, 5 },
	{ 448, 64, FABRIC_CTR_MC_XMIT_PKTS, 6 },
	{ 512, 64, FABRIC_CTR_MC_RCV_PKTS, 7 },
	{ 576, 64, FABRIC_CTR_SYMBOL_ERRORS, 32 },
	{ 640, 64, FABRIC_CTR_LINK_RECOVERIES, 33 },
	{ 704, 64, FABRIC_CTR_LINK_DOWNED, 34 },
	{ 768, 64, FABRIC_CTR_RCV_ERRORS, 35 },
	{ 832, 64, FABRIC_CTR_RCV_REMOTE_PHYS_ERRORS, 36 },
	{ 896, 64, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS, 37 },
	{ 960, 64, FABRIC_CTR_XMIT_DISCARDS, 38 },
	{ 1024, 64, FABRIC_CTR_XMIT_CONSTRAINT_ERRORS, 39 },
	{ 1088, 64, FABRIC_CTR_RCV_CONSTRAINT_ERRORS, 40 },
	{ 1152, 64, FABRIC_CTR_LINK_INTEGRITY_ERRORS, 41 },
	{ 1216, 64, FABRIC_CTR_OVERRUN_ERRORS, 42 },
	{ 1280, 64, FABRIC_CTR_VL15_DROPPED, 43 },
	{ 1344, 64, FABRIC_CTR_XMIT_WAIT, 44 },
	{ 1408, 64, FABRIC_CTR_QP1_DROPPED, 45 },
};

static const struct row rcv_err_rows[] = {
	{ 32, 16, FABRIC_CTR_RCV_ERRORS, 0 },     { 48, 16, FABRIC_CTR_RCV_MALFORMED, 1 },
	{ 64, 16, FABRIC_CTR_OVERRUN_ERRORS, 2 }, { 80, 16, FABRIC_CTR_RCV_DLID_MAPPING, 3 },
	{ 96, 16, FABRIC_CTR_RCV_VL_MAPPING, 4 }, { 112, 16, FABRIC_CTR_RCV_LOOPING, 5 },
};

static const struct row discard_rows[] = {
	{ 32, 16, FABRIC_CTR_XMIT_INACTIVE, 0 },
	{ 48, 16, FABRIC_CTR_XMIT_NEIGHBOR_MTU, 1 },
	{ 64, 16, FABRIC_CTR_XMIT_LIFETIME, 2 },
	{ 80, 16, FABRIC_CTR_XMIT_HOQ, 3 },
};

static const struct row op_rcv_rows[] = {
	{ 32, 32, FABRIC_CTR_RCV_PKTS, 0 },
	{ 64, 32, FABRIC_CTR_RCV_DATA, 1 },
};

static bool pma_selected(const struct pma *q, const struct row *r, struct wire_field select2)
{
	if (r->select >= 32)
		return select2.width && (wire_get(q->d, select2) >> (r->select - 32) & 1);
	return wire_get(q->d, PMA_COUNTER_SELECT) >> r->select & 1;
}

/*
 * Reads one counter, and sets it to *@set unless that is NULL. The 32-bit attributes report the difference from a base,
 * so that clearing PortCounters does not clear PortCountersExtended and vice versa (IBTA 16.1.4.11).
 */
static u64 pma_counter(struct fabric_port *p, u8 which, bool narrow, const u64 *set)
{
	u64 *c = &p->ctr[which], *base = &p->ctr_base[which], shown;

	if (which == FABRIC_CTR_XMIT_WAIT)
		fabric_arb_update_wait(p);
	shown = *c - *base;
	if (set && narrow) {
		*base = *c - *set;
	} else if (set) {
		*c = *set;
		*base = *c - shown;
	}
	return narrow ? *c - *base : *c;
}

/* Writes the sum of each row over the ports, saturated at the width of its field. */
static void pma_rows(struct pma *q, const struct attr *a)
{
	const struct row *r;
	u32 port;

	for (r = a->rows; r < a->rows + a->n; r++) {
		u64 most = r->width == 64 ? ~0ull : (1ull << r->width) - 1, sum = 0;
		u64 value = wire_get(q->d, WIRE_FIELD(r->bit, r->width));
		bool set = q->set && pma_selected(q, r, a->field);

		for (port = q->first; port <= q->last; port++)
			sum += pma_counter(&q->n->ports[port], r->counter, r->width < 64, set ? &value : NULL);
		wire_set(q->d, WIRE_FIELD(r->bit, r->width), min(sum, most));
	}
}

static void no_counters(struct pma *q, const struct attr *a)
{
	memset(q->d + 4, 0, a->n);
}

/* Writes a counter of each VL, saturated at the width of its field. */
static void vl_counters(struct pma *q, const struct attr *a)
{
	u32 vl, port, sel = wire_get(q->d, PMA_COUNTER_SELECT);

	for (vl = 0; vl < 16; vl++) {
		u64 sum = 0;

		for (port = q->first; port <= q->last; port++) {
			u64 *counter = fabric_vl_counter(&q->n->ports[port], vl, a->n);

			if (counter && q->set && (sel & BIT(vl)))
				*counter = 0;
			sum += counter ? *counter : 0;
		}
		wire_set(q->d, WIRE_FIELD(a->field.bit + a->field.width * vl, a->field.width),
			 min(sum, BIT_ULL(a->field.width) - 1));
	}
}

static void class_port_info(struct pma *q, const struct attr *a)
{
	memset(q->d, 0, PMA_DATA_SIZE);
	wire_set(q->d, CPI_BASE_VERSION, 1);
	wire_set(q->d, CPI_CLASS_VERSION, MAD_CLASS_VERSION_PERF);
	wire_set(q->d, CPI_CAP_MASK,
		 (q->n->sw ? PMA_CAP_ALL_PORT_SELECT : 0) | PMA_CAP_EXT_WIDTH | PMA_CAP_XMIT_WAIT |
			 PMA_CAP_QP1_DROPPED);
	wire_set(q->d, CPI_CAP_MASK2, PMA_CAP2_ADDITIONAL_EXT_COUNTERS);
	wire_set(q->d, CPI_RESP_TIME, 16);
}

/*
 * PortSamplesControl: there is no sampler; reports the tick of PortXmitWait (TickUnit 0 is one link symbol time: 16
 * here).
 */
static void samples_control(struct pma *q, const struct attr *a)
{
	u8 port = wire_get(q->d, PORTSAMPLES_PORT_SELECT);

	memset(q->d, 0, PMA_DATA_SIZE);
	wire_set(q->d, PORTSAMPLES_PORT_SELECT, port);
	wire_set(q->d, PORTSAMPLES_TICK, 15);
	wire_set(q->d, PORTSAMPLES_COUNTER_WIDTH, 2);
	wire_set(q->d, PORTSAMPLES_STATUS, PMA_SAMPLE_DONE);
}

#define ROWS(r) ARRAY_SIZE(r), r
static const struct attr attrs[] = {
	{ PMA_ATTR_CLASS_PORT_INFO, class_port_info, .get_only = true, .any_port = true },
	{ PMA_ATTR_PORT_SAMPLES_CONTROL, samples_control },
	{ PMA_ATTR_PORT_COUNTERS, pma_rows, ROWS(counters_rows), PORTCOUNTERS_SELECT2 },
	{ PMA_ATTR_PORT_COUNTERS_EXT, pma_rows, ROWS(ext_rows), PORTCOUNTERSEXT_SELECT2 },
	{ PMA_ATTR_PORT_RCV_ERROR_DETAILS, pma_rows, ROWS(rcv_err_rows) },
	{ PMA_ATTR_PORT_XMIT_DISCARD_DETAILS, pma_rows, ROWS(discard_rows) },
	{ PMA_ATTR_PORT_OP_RCV_COUNTERS, pma_rows, ROWS(op_rcv_rows) },
	/* Credits are counters here, without flow control packets: the counts are zero. */
	{ PMA_ATTR_PORT_FLOW_CTL_COUNTERS, no_counters, 8 },
	{ PMA_ATTR_PORT_VL_OP_PACKETS, vl_counters, FABRIC_VL_PKTS, .field = PORTVLOPPKTS_VL(0) },
	{ PMA_ATTR_PORT_VL_OP_DATA, vl_counters, FABRIC_VL_WORDS, .field = PORTVLOPDATA_VL(0) },
	{ PMA_ATTR_PORT_VL_XMIT_WAIT, vl_counters, FABRIC_VL_WAIT, .field = PORTVLXMITWAIT_VL(0) },
	{ PMA_ATTR_SW_PORT_VL_CONGESTION, no_counters, 32 },
};

/* Sets the range of ports from PortSelect; false: invalid. */
static bool select_ports(struct pma *q)
{
	u8 port = wire_get(q->d, PMA_PORT_SELECT);

	q->first = q->last = port;
	if (port == PMA_PORT_ALL) {
		if (!q->n->sw)
			q->first = q->last = q->self->num;
		else
			q->first = 1, q->last = q->n->nports;
		return true;
	}
	if (!q->n->sw)
		return port && port == q->self->num;
	return port <= q->n->nports;
}

static u16 pma_dispatch(struct pma *q, u16 attr)
{
	const struct attr *a = attrs;

	while (a < attrs + ARRAY_SIZE(attrs) && a->id != attr)
		a++;
	if (a == attrs + ARRAY_SIZE(attrs) || (q->set && a->get_only))
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (!a->any_port && !select_ports(q))
		return MAD_STATUS_BAD_VALUE;
	a->fn(q, a);
	return 0;
}

bool fabric_pma_request(struct fabric_port *self, u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);
	struct pma q = { .n = self->node, .self = self, .d = mad + PMA_DATA, .set = method == MAD_METHOD_SET };
	u16 status;

	if (method == MAD_METHOD_TRAP_REPRESS)
		return false;
	if (wire_get(mad, MAD_BASE_VERSION) != MAD_BASE_VERSION_1 ||
	    wire_get(mad, MAD_CLASS_VERSION) != MAD_CLASS_VERSION_PERF)
		status = MAD_STATUS_BAD_VERSION;
	else if (method != MAD_METHOD_GET && method != MAD_METHOD_SET)
		status = MAD_STATUS_BAD_METHOD;
	else
		status = pma_dispatch(&q, wire_get(mad, MAD_ATTR_ID));
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_METHOD, method == MAD_METHOD_SET ? MAD_METHOD_GET_RESP : method | MAD_METHOD_RESP);
	wire_set(mad, MAD_STATUS, status);
	return true;
}
