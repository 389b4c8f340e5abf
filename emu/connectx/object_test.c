// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Objects that the adapter does not create, since they are too large or use others that do not exist, and those that it
 * keeps, since others use them. Parameters of a transition that are optional.
 */
#include "emu/connectx/frame.h"

/* As many event queues as the capabilities say, and a CQ of the last one. */
static void event_queues(void)
{
	u32 first, eqn = 0, cqn, n = 1;

	row(90, "an event queue", !driver_start(&d));
	first = d.eqn;
	while (!driver_eq(&d, &eqn)) {
		d.eqn = eqn;
		n++;
	}
	row(91, "and all others", !driver_cq(&d, LOG_CQ, &cqn) && !driver_command_on(&d, 0x401, cqn));
	d.eqn = first;
	row(92, "are what the capabilities say",
	    !driver_command(&d, 0x100, 1, 16, CX_BYTES_query_hca_cap_out) &&
		    n == 1u << cx_get(cx_ptr(d.out, query_hca_cap_out, capability), cmd_hca_cap, log_max_eq));
}

/* The limits that a driver finds are those of the HCA, for each of whose objects there must be a number. */
static void numbers(void)
{
	const struct hca_caps *caps = hca_caps(d.hca);

	row(93, "a number for each object",
	    d.dev->verbs.cqs.last >= caps->max_cq && d.dev->verbs.srqs.last >= caps->max_srq &&
		    d.dev->verbs.qps.last >= caps->max_qp + CX_OWN_QPNS);
}

/* A queue pair, its CQ, and what they are of. */
static void in_use(void)
{
	u32 qpn;

	row(1, "a queue pair", !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn));
	row(2, "its protection domain is in use", driver_command_on(&d, 0x801, d.pdn) == CX_BAD_RES_STATE);
	row(3, "its CQ", driver_command_on(&d, 0x401, d.cqn) == CX_BAD_RES_STATE);
	row(4, "the CQ's event queue", driver_command_on(&d, 0x302, d.eqn) == CX_BAD_RES_STATE);
	row(5, "the queue pair ends", !driver_command_on(&d, 0x501, qpn));
	row(6, "then its CQ may", !driver_command_on(&d, 0x401, d.cqn));
	row(7, "and the event queue", !driver_command_on(&d, 0x302, d.eqn));
	row(8, "a key is of the domain", driver_command_on(&d, 0x801, d.pdn) == CX_BAD_RES_STATE);
	row(9, "without it the domain ends",
	    !driver_command_on(&d, 0x202, d.lkey >> 8) && !driver_command_on(&d, 0x801, d.pdn));
}

/* Allocates all UARs that are left; the last one's number, 0: there was none. */
static u32 uars_alloc(void)
{
	u32 last = 0;

	while (!driver_command_on(&d, 0x802, 0))
		last = (u32)cx_get(d.out, alloc_uar_out, uar);
	return last;
}

/* A UAR that is deallocated keeps its number until no queue has doorbells in it. */
static void uars(void)
{
	u32 qpn[3], cqn, i;

	row(20, "a queue pair of each kind",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn[0]) && !driver_qp(&d, CX_QP_GSI, 1, 0, &qpn[1]) &&
		    !driver_qp(&d, CX_QP_UMR, 2, 0, &qpn[2]));
	row(22, "a CQ that is not created", driver_cq(&d, 12, &cqn) == CX_BAD_PARAM);
	row(21, "the UAR of all queues is deallocated", !driver_command_on(&d, 0x803, d.uar));
	row(29, "it is no more", driver_command_on(&d, 0x803, d.uar) == CX_BAD_RES);
	row(31, "for another queue", driver_qp(&d, CX_QP_RC, 3, 0, &cqn) == CX_BAD_RES);
	row(32, "all others are allocated", uars_alloc() && !uars_alloc());
	for (i = 0; i < 3; i++) {
		row(23, "a queue pair ends", !driver_command_on(&d, 0x501, qpn[i]));
		row(24, "others keep its number", !uars_alloc());
	}
	row(25, "the CQ ends", !driver_command_on(&d, 0x401, d.cqn));
	row(26, "the event queue keeps it", !uars_alloc());
	row(27, "the event queue ends", !driver_command_on(&d, 0x302, d.eqn));
	row(28, "nothing uses the UAR, whose number is free", uars_alloc() == d.uar);
	row(30, "the driver leaves one that is in use",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, qpn) && !driver_command_on(&d, 0x103, 0) &&
		    !driver_objects(&d));
	row(33, "and one that is deallocated",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, qpn) && !driver_command_on(&d, 0x803, d.uar) &&
		    !driver_command_on(&d, 0x103, 0) && !driver_objects(&d));
}

/* A driver whose pages have 64 KiB has UARs of that size. */
static void large_uars(void)
{
	u8 *cap = cx_ptr(d.in, set_hca_cap_in, capability);
	u32 qpn = 0, other = 0;

	driver_command_on(&d, 0x105, 0);
	row(80, "a driver", !driver_command_on(&d, 0x104, 0));
	memset(d.in, 0, sizeof(d.in));
	cx_set(cap, cmd_hca_cap, log_uar_page_sz, 9);
	row(81, "that cannot have pages of 2 MiB", driver_command(&d, 0x109, 0, 4112, 16) == CX_BAD_PARAM);
	cx_set(cap, cmd_hca_cap, log_uar_page_sz, 4);
	row(82, "has pages of 64 KiB", !driver_command(&d, 0x109, 0, 4112, 16) && !driver_command_on(&d, 0x102, 0));
	row(83, "two UARs",
	    !driver_command_on(&d, 0x802, 0) && (other = (u32)cx_get(d.out, alloc_uar_out, uar)) &&
		    !driver_command_on(&d, 0x802, 0));
	d.uar = (u32)cx_get(d.out, alloc_uar_out, uar);
	row(84, "are in the BAR", d.uar == other + 1 && other << 16 >= CX_UARS_AT && d.uar << 16 < 1u << 25);
	d.eqe = d.cqe = 0;
	driver_command_on(&d, 0x800, 0);
	d.pdn = (u32)cx_get(d.out, alloc_pd_out, pd);
	row(85, "a queue pair",
	    !driver_eq(&d, &d.eqn) && !driver_cq(&d, LOG_CQ, &d.cqn) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) &&
		    !driver_connect(&d, qpn, qpn));
	driver_control(driver_wqe(&d, 0, 0), qpn, 0, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, 1);
	driver_poke64(&d, (u64)other << 16 | 0x800, (u64)qpn << 8);
	row(86, "its doorbell is not in another UAR", !driver_poll(&d));
	driver_poke64(&d, (u64)d.uar << 16 | 0x800, (u64)qpn << 8);
	row(87, "but in its own", driver_poll(&d) != NULL);
	driver_poke64(&d, (u64)d.uar << 16 | 0x20, d.cqn);
	row(88, "as that of its CQ", driver_event(&d) != NULL);
	driver_command_on(&d, 0x105, 0);
	row(89, "a driver with other pages follows", !driver_start(&d) && d.uar == CX_UARS_AT >> CX_UAR_SHIFT);
}

/* The rights of a queue pair, as bits of the mask of optional parameters. */
static u32 qp_rights(u32 qpn)
{
	const u8 *qpc = driver_qp_context(&d, qpn);

	if (!qpc)
		return 0;
	return (u32)(cx_get(qpc, qpc, rre) << 1 | cx_get(qpc, qpc, rae) << 2 | cx_get(qpc, qpc, rwe) << 3);
}

/* Sets the rights @bits by @command, in whose context all have the value @on. */
static bool set_rights(u16 command, u32 qpn, u32 bits, bool on)
{
	u8 *qpc = cx_ptr(d.in, rst2init_qp_in, qpc), *path = cx_ptr(qpc, qpc, primary_address_path);

	memset(d.in, 0, sizeof(d.in));
	cx_set(path, ads, vhca_port_num, 1);
	cx_set(path, ads, rlid, d.lid);
	cx_set(qpc, qpc, mtu, 3);
	cx_set(qpc, qpc, remote_qpn, qpn);
	cx_set(qpc, qpc, rre, on);
	cx_set(qpc, qpc, rae, on);
	cx_set(qpc, qpc, rwe, on);
	return !driver_modify(&d, command, qpn, bits);
}

/* Each of the bits 1 to 3 sets a right and leaves the others; RST2INIT and INIT2RTR set all. */
static void rights(void)
{
	const u32 all = 0xe;
	u32 qpn, bit;

	row(40, "a queue pair", !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn));
	row(41, "RST2INIT sets all rights", set_rights(0x502, qpn, 0, true) && qp_rights(qpn) == all);
	row(42, "INIT2RTR", set_rights(0x503, qpn, 0, false) && qp_rights(qpn) == 0);
	row(43, "RTR2RTS sets one", set_rights(0x504, qpn, BIT(3), true) && qp_rights(qpn) == BIT(3));
	row(44, "RTS2RTS sets none", set_rights(0x505, qpn, 0, true) && qp_rights(qpn) == BIT(3));
	row(45, "or all", set_rights(0x505, qpn, all, true) && qp_rights(qpn) == all);
	for (bit = 2; bit <= 8; bit <<= 1) {
		row(46, "or takes one away", set_rights(0x505, qpn, bit, false) && qp_rights(qpn) == (all & ~bit));
		row(47, "and gives it back", set_rights(0x505, qpn, bit, true) && qp_rights(qpn) == all);
	}
}

/* Other than the objects above, a set of counters may be deallocated while a queue pair uses it. */
static void counters(void)
{
	u8 *qpc = cx_ptr(d.in, rst2init_qp_in, qpc);
	u32 qpn, set;

	row(60, "a queue pair",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_command_on(&d, 0x771, 0));
	set = (u32)cx_get(d.out, alloc_q_counter_out, counter_set_id);
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(qpc, qpc, primary_address_path), ads, vhca_port_num, 1);
	cx_set(qpc, qpc, counter_set_id, set);
	row(61, "with a set", !driver_modify(&d, 0x502, qpn, 0));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, dealloc_q_counter_in, counter_set_id, set);
	row(62, "which is deallocated", !driver_command(&d, 0x772, 0, 16, 16));
	row(63, "once", driver_command(&d, 0x772, 0, 16, 16) == CX_BAD_RES);
	row(64, "before the queue pair is destroyed",
	    !driver_command_on(&d, 0x50a, qpn) && !driver_command_on(&d, 0x501, qpn));
}

/* Flow counters may be allocated, but count nothing: there are no flow tables. */
static u8 flow_counter(u16 op, u32 bit, u32 id)
{
	memset(d.in, 0, sizeof(d.in));
	wire_set(d.in, WIRE_FIELD(bit, 32), id);
	return driver_command(&d, op, 0, 32, 32);
}

static void flow_counters(void)
{
	u32 query = CX_AT_query_flow_counter_in_flow_counter_id,
	    dealloc = CX_AT_dealloc_flow_counter_in_flow_counter_id;
	u32 id, n = 0;

	row(110, "a flow counter", !driver_start(&d) && !flow_counter(0x939, query, 0));
	id = (u32)cx_get(d.out, alloc_flow_counter_out, flow_counter_id);
	row(111, "counts nothing",
	    id && !flow_counter(0x93b, query, id) && !wire_load(d.out + 16, 8) && !wire_load(d.out + 24, 8));
	cx_set(d.in, query_flow_counter_in, num_of_counters, 4);
	row(112, "several are not queried at once", driver_command(&d, 0x93b, 0, 32, 80) == CX_BAD_PARAM);
	row(113, "it is deallocated", !flow_counter(0x93a, dealloc, id));
	row(114, "once", flow_counter(0x93a, dealloc, id) == CX_BAD_RES);
	row(115, "and not queried again", flow_counter(0x93b, query, id) == CX_BAD_RES);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, alloc_flow_counter_in, flow_counter_bulk, 1);
	row(116, "several are not allocated at once", driver_command(&d, 0x939, 0, 16, 16) == CX_BAD_PARAM);
	while (!flow_counter(0x939, query, 0))
		n++;
	row(117, "there is a limit", n == CX_FLOW_COUNTERS && d.out[0] == CX_LIM);
	row(118, "a driver that starts has none", !driver_start(&d) && flow_counter(0x93b, query, id) == CX_BAD_RES);
}

/* A number that no object has. */
#define NO_OBJECT 0xfffff0

static void missing_objects(void)
{
	static const struct {
		u16 op;
		const char *name;
	} commands[] = {
		{ 0x202, "DESTROY_MKEY" },  { 0x302, "DESTROY_EQ" },      { 0x401, "DESTROY_CQ" },
		{ 0x501, "DESTROY_QP" },    { 0x701, "DESTROY_SRQ" },     { 0x772, "DEALLOC_Q_COUNTER" },
		{ 0x801, "DEALLOC_PD" },    { 0x803, "DEALLOC_UAR" },     { 0x80f, "DEALLOC_XRCD" },
		{ 0x201, "QUERY_MKEY" },    { 0x303, "QUERY_EQ" },        { 0x402, "QUERY_CQ" },
		{ 0x50b, "QUERY_QP" },      { 0x702, "QUERY_SRQ" },       { 0x703, "ARM_RQ" },
		{ 0x403, "MODIFY_CQ" },     { 0x502, "RST2INIT_QP" },     { 0x50a, "2RST_QP" },
		{ 0x806, "ATTACH_TO_MCG" }, { 0x807, "DETACH_FROM_MCG" }, { 0x93a, "DEALLOC_FLOW_COUNTER" },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		memset(d.in, 0, sizeof(d.in));
		wire_store(d.in + 8, 4, NO_OBJECT);
		row_of(commands[i].name, "of no object",
		       driver_command(&d, commands[i].op, 0, CX_BYTES_create_qp_in, CX_BYTES_query_mkey_out) ==
			       CX_BAD_RES);
	}
}

/* Commands that create a queue pair, an SRQ or a key of an object that does not exist. */
static void missing_parts(void)
{
	static const struct {
		const char *name;
		struct wire_field field;
		bool shared; /* an SRQ is to be used */
	} parts[] = {
		{ "a send CQ", CX_FIELD(qpc, cqn_snd), false },      { "a receive CQ", CX_FIELD(qpc, cqn_rcv), false },
		{ "a protection domain", CX_FIELD(qpc, pd), false }, { "an SRQ", CX_FIELD(qpc, srqn_rmpn_xrqn), true },
		{ "a UAR", CX_FIELD(qpc, uar_page), false },
	};
	u8 *qpc = cx_ptr(d.in, create_qp_in, qpc), *srqc = cx_ptr(d.in, create_srq_in, srq_context_entry);
	u32 service[] = { CX_QP_RC, CX_QP_GSI, CX_QP_UMR }, pdn = d.pdn, i, k, key;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		for (k = 0; k < ARRAY_SIZE(service) && (!k || !parts[i].shared); k++) {
			if (service[k] == CX_QP_UMR && i && i != ARRAY_SIZE(parts) - 1)
				continue; /* it receives nothing, and has no domain */
			memset(d.in, 0, sizeof(d.in));
			cx_set(qpc, qpc, st, service[k]);
			cx_set(qpc, qpc, pd, d.pdn);
			cx_set(qpc, qpc, uar_page, d.uar);
			cx_set(qpc, qpc, rq_type, parts[i].shared);
			cx_set(qpc, qpc, cqn_snd, d.cqn);
			cx_set(qpc, qpc, cqn_rcv, d.cqn);
			wire_set(qpc, parts[i].field, NO_OBJECT);
			row_of("CREATE_QP without", parts[i].name,
			       driver_command(&d, 0x500, 0, driver_page(&d, CX_AT_create_qp_in_pas / 8, AT_WQ), 16) ==
				       CX_BAD_RES);
		}
	}
	d.uar++;
	row_of("CREATE_CQ without", "a UAR", driver_cq(&d, LOG_CQ, &key) == CX_BAD_RES);
	row_of("CREATE_EQ without", "a UAR", driver_eq(&d, &key) == CX_BAD_RES);
	d.uar--;
	memset(d.in, 0, sizeof(d.in));
	cx_set(srqc, srqc, log_srq_size, 2);
	cx_set(srqc, srqc, log_rq_stride, 2);
	cx_set(srqc, srqc, pd, NO_OBJECT);
	row_of("CREATE_SRQ without", "a protection domain",
	       driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ), 16) == CX_BAD_RES);
	cx_set(srqc, srqc, pd, d.pdn);
	cx_set(srqc, srqc, xrcd, NO_OBJECT);
	cx_set(srqc, srqc, cqn, d.cqn);
	row_of("CREATE_SRQ without", "an XRC domain",
	       driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ), 16) == CX_BAD_RES);
	memset(d.in, 0, sizeof(d.in));
	d.pdn = NO_OBJECT;
	row_of("CREATE_MKEY without", "a protection domain", driver_mkey(&d, 0, true, 0, 0, 0, &key) == CX_BAD_RES);
	d.pdn = pdn;
}

static void refused(void)
{
	u32 cqn, key;

	row(10, "the driver starts", !driver_start(&d) && connectx_in_use(d.dev));
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, create_eq_in, eq_context_entry), eqc, uar_page, d.uar);
	row(100, "an event queue without pages",
	    driver_command(&d, 0x301, 0, CX_BYTES_create_eq_in, 16) == CX_BAD_PARAM);
	cx_set(d.in, destroy_eq_in, eq_number, d.eqn);
	row(101, "an event queue in use stays", driver_command(&d, 0x302, 0, 16, 16) == CX_BAD_RES_STATE);
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, create_cq_in, cq_context), cqc, c_eqn_or_apu_element, 31);
	row(102, "a CQ of no event queue",
	    driver_command(&d, 0x400, 0, driver_page(&d, CX_AT_create_cq_in_pas / 8, AT_CQ), 16) == CX_BAD_RES);
	row(103, "a CQ larger than its pages", driver_cq(&d, 12, &cqn) == CX_BAD_PARAM);
	row(104, "a CQ larger than any", driver_cq(&d, 31, &cqn) == CX_BAD_PARAM);
	memset(d.in, 0, sizeof(d.in));
	row(105, "a key of a million pages and more",
	    driver_mkey(&d, 1, false, 0, 0, 100, &key) == CX_OK &&
		    (cx_set(cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry), mkc, translations_octword_size,
			    1u << 24),
		     cx_set(d.in, create_mkey_in, translations_octword_actual_size, 0),
		     driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16)) == CX_BAD_PARAM);
	memset(d.in, 0, sizeof(d.in));
	row(106, "a key that reaches beyond its pages",
	    driver_mkey(&d, 1, true, 0, 3 * 4096 + 1, 2, &key) == CX_BAD_PARAM);
}

PARTS(refused, missing_objects, missing_parts, in_use, uars, rights, counters, flow_counters, event_queues, numbers,
      large_uars)
