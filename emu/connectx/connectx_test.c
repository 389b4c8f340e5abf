// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ConnectX with a driver that does as the kernel's does, and with one that writes invalid mailboxes, queues,
 * records and registers.
 */
#include "emu/connectx/fixture.h"
#include "emu/lib/clock.h"
#include "emu/lib/log.h"
#include "emu/lib/row.h"

static struct driver d;

static u32 u24(const u8 *p)
{
	return (u32)wire_load(p, 3);
}

/* Whether @e is the successful completion of a send request. */
static bool sent(const u8 *e, u8 op, u32 qpn, u32 index)
{
	return e && e[63] >> 4 == 0 && e[56] == op && u24(e + 57) == qpn && wire_load(e + 60, 2) == index;
}

static bool failed(const u8 *e, bool receive, u8 syndrome)
{
	return e && e[63] >> 4 == (receive ? 14 : 13) && e[55] == syndrome;
}

static void segment(void)
{
	u32 health;

	row(1, "firmware 12.28.2302, command interface 5, 32 entries of 64 bytes",
	    driver_peek(&d, 0) == (28 << 16 | 12) && driver_peek(&d, 4) == (5 << 16 | 2302) &&
		    (driver_peek(&d, 0x14) & 0xff) == 0x56 && driver_peek(&d, 0x1fc) == 1u << 30);
	health = driver_peek(&d, 0x1010);
	row(2, "the timer runs", driver_peek(&d, 0x1004) != driver_peek(&d, 0x1004) && health < 1u << 24);
}

static void commands(void)
{
	memset(d.in, 0, sizeof(d.in));
	row(3, "no objects before INIT_HCA",
	    !driver_command(&d, 0x104, 0, 16, 16) && driver_command(&d, 0x800, 0, 16, 16) == CX_BAD_SYS_STATE);
	row(4, "an unknown command",
	    driver_command(&d, 0x9ff, 0, 16, 16) == CX_BAD_OP && driver_counter(&d, "unknown_commands") == 1);
	row(5, "general capabilities",
	    !driver_command(&d, 0x100, 1, 16, CX_BYTES_query_hca_cap_out) && cx_get(d.out + 16, cmd_hca_cap, rc) &&
		    cx_get(d.out + 16, cmd_hca_cap, log_bf_reg_size) == 9);
	row(57, "a request of the kernel's largest queue pairs: a registration's segments, 30 SGEs",
	    cx_get(d.out + 16, cmd_hca_cap, max_wqe_sz_sq) >= 192 + 30 * 16);
	row(6, "of a kind that it has not",
	    driver_command(&d, 0x100, 0x41, 16, CX_BYTES_query_hca_cap_out) == CX_BAD_PARAM);
	row(7, "too short a response buffer", driver_command(&d, 0x100, 1, 16, 64) == CX_BAD_OUTP_LEN);
	row(8, "too few bytes of a command", driver_command(&d, 0x500, 0, 16, 16) == CX_BAD_INP_LEN);
	row(9, "the board",
	    !driver_command(&d, 0x101, 0, 16, CX_BYTES_query_adapter_out) &&
		    !memcmp(d.out + 16 + 240, "MUS0000000001", 13));
	row(127, "the driver is asked for no pages at its start",
	    !driver_command(&d, 0x107, 2, 16, 16) && !cx_get(d.out, query_pages_out, num_pages));
	row(128, "and may give some, or take them back",
	    !driver_command(&d, 0x108, 1, 16, 16) && !driver_command(&d, 0x108, 2, 16, 16));
	row(129, "ISSI 0", !driver_command(&d, 0x10b, 0, 16, 16));
	cx_set(d.in, set_issi_in, current_issi, 1);
	row(130, "an ISSI that QUERY_ISSI does not report", driver_command(&d, 0x10b, 0, 16, 16) == CX_BAD_PARAM);
	memset(d.in, 0, sizeof(d.in));
	row(144, "INIT_HCA", !driver_command(&d, 0x102, 0, 16, 16));
	cx_set(d.in, mad_ifc_in, port, 1);
	d.in[17] = 1;
	d.in[19] = 1;
	row(10, "MAD_IFC",
	    !driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) && d.out[16 + 3] == 0x81);
	d.in[17] = 9;
	row(11, "a MAD without a response",
	    driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) == CX_BAD_PKT);
}

/* Commands on another port, virtual port or function than the driver's own, after the same of its own. */
static void selectors(void)
{
	static const struct {
		u16 op, modifier;
		const char *name;
		struct wire_field field;
		u8 own, other;
	} fields[] = {
		{ 0x50d, 0, "MAD_IFC of port", CX_FIELD(mad_ifc_in, port), 1, 0 },
		{ 0x50d, 0, "MAD_IFC of port", CX_FIELD(mad_ifc_in, port), 1, 2 },
		{ 0x762, 0, "HCA vport context of port", CX_FIELD(query_hca_vport_context_in, port_num), 0, 2 },
		{ 0x762, 0, "HCA vport context of port", CX_FIELD(query_hca_vport_context_in, port_num), 1, 15 },
		{ 0x762, 0, "HCA vport context", CX_FIELD(query_hca_vport_context_in, other_vport), 0, 1 },
		{ 0x100, 1, "capabilities", CX_FIELD(query_hca_cap_in, other_function), 0, 1 },
		{ 0x109, 0, "SET_HCA_CAP", CX_FIELD(set_hca_cap_in, other_function), 0, 1 },
		{ 0x107, 1, "pages", CX_FIELD(query_pages_in, function_id), 0, 1 },
		{ 0x108, 1, "MANAGE_PAGES", CX_FIELD(manage_pages_in, function_id), 0, 1 },
		{ 0x104, 0, "ENABLE_HCA", CX_FIELD(enable_hca_in, function_id), 0, 1 },
		{ 0x805, 1, "PCAP of port", { 16 * 8 + 8, 8 }, 1, 0 }, /* in the register */
		{ 0x805, 0, "PCAP of port", { 16 * 8 + 8, 8 }, 1, 2 },
		{ 0x105, 0, "DISABLE_HCA", CX_FIELD(disable_hca_in, function_id), 0, 1 },
	};
	u32 i, other;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		for (other = 0; other < 2; other++) {
			memset(d.in, 0, sizeof(d.in));
			d.in[17] = fields[i].op == 0x50d; /* the management class of a MAD */
			cx_set(d.in, access_register_in, register_id, fields[i].op == 0x805 ? 0x5001 : 0);
			wire_set(d.in, fields[i].field, other ? fields[i].other : fields[i].own);
			row_of(fields[i].name, other ? "of another" : "its own",
			       driver_command(&d, fields[i].op, fields[i].modifier, CX_BYTES_create_qp_in,
					      CX_BYTES_query_hca_cap_out) == (other ? CX_BAD_PARAM : CX_OK));
		}
	}
}

/* Entries of the command queue and their mailboxes that violate the format. */
static void invalid_entries(void)
{
	u8 *e;

	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in, 2, 0x100);
	d.in[7] = 1;
	e = driver_entry(&d, 16, CX_BYTES_query_hca_cap_out);
	e[0] = 3;
	row(12, "an entry of another type", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 0x10));
	e = driver_entry(&d, 4, 16);
	row(13, "shorter than a command can be", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 7));
	e = driver_entry(&d, 16, 16);
	wire_store(e + 56, 4, 1u << 30);
	row(14, "a response buffer longer than any response", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 8));
	e = driver_entry(&d, 1024, 16);
	wire_store(e + 8, 8, driver_addr(AT_IN) + 8);
	row(15, "a box that is not aligned", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 5));
	driver_entry(&d, 1024, 16);
	d.c.mem[AT_IN + BOX + 573]++;
	row(16, "a box of another command", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 2));
	driver_entry(&d, 1024, 16);
	d.c.mem[AT_IN + BOX + 571]++;
	row(17, "a box that has another number", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 3));
	e = driver_entry(&d, 2048, 16);
	wire_store(d.c.mem + AT_IN + 560, 8, driver_addr(AT_IN));
	row(18, "a list of boxes that ends in itself", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 3));
	driver_entry(&d, 16, CX_BYTES_query_hca_cap_out);
	wire_store(d.c.mem + AT_OUT + 560, 8, 1ull << 60);
	row(19, "no memory for the response", driver_ring(&d, 16) == (STATUS_NOT_DELIVERED | 4));
	driver_poke(&d, 0x10, 0xffffffff);
	driver_poke(&d, 0x18, 0xffffffff);
	row(20, "a queue where no memory is", driver_counter(&d, "undelivered_commands") == 8 + 32);
	driver_poke(&d, 0x10, (u32)(driver_addr(AT_QUEUE) >> 32));
}

/* ACCESS_REG: writes the port's capability mask to PCAP. */
static int pcap_write(u32 mask)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, access_register_in, register_id, 0x5001);
	d.in[17] = 1; /* local port */
	wire_store(d.in + 20, 4, mask);
	return driver_command(&d, 0x805, 0, 32, 32);
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
		{ 0x806, "ATTACH_TO_MCG" }, { 0x807, "DETACH_FROM_MCG" },
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

static void create_objects(void)
{
	u32 cqn, key;

	row(21, "the driver starts", !driver_start(&d) && connectx_in_use(d.dev));
	row(29, "capabilities that software sets",
	    !pcap_write(1 << 16 | 1 << 2 | 1 << 1) && d.port.attr.cap_mask == (1 << 16 | 1 << 1));
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, create_eq_in, eq_context_entry), eqc, uar_page, d.uar);
	row(22, "an event queue without pages",
	    driver_command(&d, 0x301, 0, CX_BYTES_create_eq_in, 16) == CX_BAD_PARAM);
	cx_set(d.in, destroy_eq_in, eq_number, d.eqn);
	row(23, "an event queue in use stays", driver_command(&d, 0x302, 0, 16, 16) == CX_BAD_RES_STATE);
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, create_cq_in, cq_context), cqc, c_eqn_or_apu_element, 31);
	row(24, "a CQ of no event queue",
	    driver_command(&d, 0x400, 0, driver_page(&d, CX_AT_create_cq_in_pas / 8, AT_CQ), 16) == CX_BAD_RES);
	row(25, "a CQ larger than its pages", driver_cq(&d, 12, &cqn) == CX_BAD_PARAM);
	row(26, "a CQ larger than any", driver_cq(&d, 31, &cqn) == CX_BAD_PARAM);
	missing_objects();
	missing_parts();
	memset(d.in, 0, sizeof(d.in));
	row(27, "a key of a million pages and more",
	    driver_mkey(&d, 1, false, 0, 0, 100, &key) == CX_OK &&
		    (cx_set(cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry), mkc, translations_octword_size,
			    1u << 24),
		     driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16)) == CX_BAD_PARAM);
	memset(d.in, 0, sizeof(d.in));
	row(28, "a key that reaches beyond its pages",
	    driver_mkey(&d, 1, true, 0, 3 * 4096 + 1, 2, &key) == CX_BAD_PARAM);
}

/* Registers two separate ranges by request 7 of @a; @b writes across the gap. */
static void gaps(u32 a, u32 b)
{
	u32 key;
	u8 *w, *s;

	memset(d.in, 0, sizeof(d.in));
	row(46, "a key for pieces", !driver_mkey(&d, 2, false, 0, 0, 4, &key));
	w = driver_wqe(&d, 0, 7);
	memset(w, 0, 64 * 4);
	driver_control(w, a, 7, CX_OP_UMR, 192);
	wire_store(w + 12, 4, key);
	w[16] = 0xa0;
	wire_store(w + 20, 2, 4);
	wire_store(w + 24, 8, 1 << 0 | 1 << 6 | 1 << 18 | 1 << 20 | 1 << 29);
	cx_set(w + 64, mkc, lw, 1);
	cx_set(w + 64, mkc, rw, 1);
	cx_set(w + 64, mkc, start_addr, 0x9000);
	cx_set(w + 64, mkc, len, 8);
	driver_data(driver_data(w + 128, 4, d.lkey, driver_addr(AT_DATA + 0x5002)), 4, d.lkey,
		    driver_addr(AT_DATA + 0x5102));
	driver_data(w + 160, 0x80000000, 0x40000, 0x209e2143); /* left in the queue, behind the ranges */
	driver_posted(&d, 0, a, 10);
	row(47, "of ranges of another key", sent(driver_poll(&d), CX_OP_UMR, a, 7));
	s = driver_control(driver_wqe(&d, 1, 1), b, 1, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x9000 + 1);
	wire_store(s + 8, 4, key);
	driver_data(s + 16, 6, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 2);
	row(48, "a write to both",
	    sent(driver_poll(&d), CX_OP_WRITE, b, 1) && !memcmp(d.c.mem + AT_DATA + 0x5003, "nee", 3) &&
		    !memcmp(d.c.mem + AT_DATA + 0x5102, "dle", 3));
}

/* Sends inline bytes and a data segment in one request, as UCX does. */
static void header(u32 b)
{
	u8 *s = driver_control(driver_wqe(&d, 1, 2), b, 2, CX_OP_WRITE, 64);

	memset(d.c.mem + AT_DATA + 0x6000, 0, 16);
	wire_store(s, 8, driver_addr(AT_DATA + 0x6000));
	wire_store(s + 8, 4, d.lkey);
	wire_store(s + 16, 4, 1u << 31 | 3);
	memcpy(s + 20, "two", 3);
	driver_data(s + 32, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 3);
	row(49, "inline bytes, then a data segment",
	    sent(driver_poll(&d), CX_OP_WRITE, b, 2) && !memcmp(d.c.mem + AT_DATA + 0x6000, "twoneedle", 10));
}

/* Connects queue pairs @a and @b, with queues in pages 0 and 1. */
static void connect_pair(u32 *a, u32 *b)
{
	row(30, "two queue pairs", !driver_qp(&d, CX_QP_RC, 0, 0, a) && !driver_qp(&d, CX_QP_RC, 1, 0, b));
	row(31, "connected", !driver_connect(&d, *a, *b) && !driver_connect(&d, *b, *a));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_qp_in, qpn, *a);
	row(32, "QUERY_QP",
	    !driver_command(&d, 0x50b, 0, 16, CX_BYTES_query_qp_out) &&
		    cx_get(cx_ptr(d.out, query_qp_out, qpc), qpc, state) == 3 &&
		    cx_get(cx_ptr(d.out, query_qp_out, qpc), qpc, remote_qpn) == *b &&
		    cx_get(cx_ptr(d.out, query_qp_out, qpc), qpc, rre) &&
		    cx_get(cx_ptr(cx_ptr(d.out, query_qp_out, qpc), qpc, primary_address_path), ads, rlid) == 1);
}

static void send_and_inline_write(u32 a, u32 b)
{
	const u8 *e;
	u8 *w, *s;

	driver_recv(&d, 1, 0, 256, driver_addr(AT_DATA + 4096));
	memcpy(d.c.mem + AT_DATA, "needle", 7);
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	w = driver_wqe(&d, 0, 0);
	driver_data(driver_control(w, a, 0, CX_OP_SEND, 32), 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, a, 1);
	e = driver_poll(&d);
	row(33, "the receive's completion", e && e[63] >> 4 == 2 && wire_load(e + 44, 4) == 7 && u24(e + 57) == b);
	row(34, "its bytes", !memcmp(d.c.mem + AT_DATA + 4096, "needle", 7));
	row(35, "the send's", sent(driver_poll(&d), CX_OP_SEND, a, 0) && !driver_poll(&d));
	e = driver_event(&d);
	row(36, "an event for the armed CQ, with an interrupt",
	    e && e[1] == CX_EVENT_COMP && wire_load(e + 32 + 24, 4) == d.cqn && client_raised(&d.c, 1) == 1);

	w = driver_wqe(&d, 0, 1);
	s = driver_control(w, a, 1, CX_OP_WRITE, 48);
	wire_store(s, 8, driver_addr(AT_DATA + 8192));
	wire_store(s + 8, 4, d.lkey);
	wire_store(s + 16, 4, 1u << 31 | 6);
	memcpy(s + 20, "thread", 6);
	driver_posted(&d, 0, a, 2);
	row(37, "an inline RDMA write",
	    sent(driver_poll(&d), CX_OP_WRITE, a, 1) && !memcmp(d.c.mem + AT_DATA + 8192, "thread", 6));
	row(38, "no event: it is not armed", !driver_event(&d));
}

/* Registers a page by a memory key request of @a; @b writes to it; the key is invalidated. Returns the key. */
static u32 register_page(u32 a, u32 b)
{
	u32 key;
	u8 *w, *s;

	memset(d.in, 0, sizeof(d.in));
	row(39, "a key for registrations", !driver_mkey(&d, 1, false, 0, 0, 2, &key));
	w = driver_wqe(&d, 0, 2);
	memset(w, 0, 256);
	driver_control(w, a, 2, CX_OP_UMR, 144);
	wire_store(w + 12, 4, (key & ~0xffu) | 0x77);
	w[16] = 0xa0; /* inline, must be free */
	wire_store(w + 20, 2, 4);
	wire_store(w + 24, 8, 1ull << 0 | 1 << 1 | 1 << 6 | 1 << 13 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 29);
	cx_set(w + 64, mkc, lw, 1);
	cx_set(w + 64, mkc, rw, 1);
	cx_set(w + 64, mkc, mkey_7_0, 0x77);
	cx_set(w + 64, mkc, start_addr, 0x5000);
	cx_set(w + 64, mkc, len, 100);
	cx_set(w + 64, mkc, log_page_size, 12);
	wire_store(w + 128, 8, driver_addr(AT_DATA + 0x3000));
	driver_posted(&d, 0, a, 5);
	row(40, "registered", sent(driver_poll(&d), CX_OP_UMR, a, 2));
	key = (key & ~0xffu) | 0x77;
	w = driver_wqe(&d, 1, 0);
	s = driver_control(w, b, 0, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x5000 + 4);
	wire_store(s + 8, 4, key);
	driver_data(s + 16, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 1);
	row(41, "the peer writes to it",
	    sent(driver_poll(&d), CX_OP_WRITE, b, 0) && !memcmp(d.c.mem + AT_DATA + 0x3000 + 4, "needle", 7));
	w = driver_wqe(&d, 0, 5);
	memset(w, 0, 128);
	driver_control(w, a, 5, CX_OP_UMR, 128);
	wire_store(w + 12, 4, key);
	w[16] = 0x80;
	wire_store(w + 24, 8, 1 << 29);
	cx_set(w + 64, mkc, free, 1);
	driver_posted(&d, 0, a, 7);
	row(42, "invalidated", sent(driver_poll(&d), CX_OP_UMR, a, 5));
	return key;
}

/* Posts request number @index, a NOP of @a, without its doorbell. */
static void post_record(u32 a, u32 index)
{
	driver_control(driver_wqe(&d, 0, index), a, index, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, index + 1);
}

/* Requests of a queue with a recent doorbell are found by its record, until the loop sleeps. */
static void record_polled(u32 a)
{
	struct loop_poller *p = &d.dev->poller;

	cx_qp_doorbell(d.dev, d.uar, a);
	row(120, "a doorbell without a request", !p->poll(p, loop_now(d.loop)));
	post_record(a, 10);
	row(121, "a request without a doorbell, once",
	    p->poll(p, loop_now(d.loop)) == 1 && !p->poll(p, loop_now(d.loop)));
	loop_run_idle(d.loop, 0);
	row(122, "is executed", sent(driver_poll(&d), CX_OP_NOP, a, 10));
	post_record(a, 11);
	loop_run_idle(d.loop, 0);
	row(123, "not after the loop has slept", !driver_poll(&d));
	driver_posted(&d, 0, a, 12);
	row(124, "before its doorbell", sent(driver_poll(&d), CX_OP_NOP, a, 11));
}

/* A request that the driver copies to the UAR (BlueFlame), in writes of 8 bytes as QEMU's: the first is the doorbell. */
static void blueflame(u32 a)
{
	u64 bad = driver_counter(&d, "bad_doorbells"), rung = driver_counter(&d, "doorbells");
	u8 *w = driver_wqe(&d, 0, 12);
	u64 part;
	u32 i;

	memset(w, 0xff, CX_WQE_BB);
	driver_control(w, a, 12, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, 13);
	for (i = 0; i < CX_WQE_BB; i += sizeof(part)) {
		memcpy(&part, w + i, sizeof(part));
		client_write(&d.c, 0, d.uar * 4096ull + 0x900 + i, part, sizeof(part));
	}
	loop_run_idle(d.loop, 0);
	row(125, "is executed once", sent(driver_poll(&d), CX_OP_NOP, a, 12) && !driver_poll(&d));
	row(126, "by one doorbell",
	    driver_counter(&d, "doorbells") == rung + 1 && driver_counter(&d, "bad_doorbells") == bad);
}

/* However long it takes: the loop reads the clock at the end, and runs timers by it. */
static void run_for(u64 ns)
{
	u64 end = clock_read() + ns;

	while (clock_read() < end) {
		usleep(1000);
		loop_run_idle(d.loop, 0);
	}
	loop_run_idle(d.loop, 0);
	loop_run_idle(d.loop, 0);
}

/* A request that completes, with the CQ armed before. Returns its event. */
static const u8 *moderated_nop(u32 a, u32 index)
{
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	post_record(a, index);
	driver_posted(&d, 0, a, index + 1);
	return sent(driver_poll(&d), CX_OP_NOP, a, index) ? driver_event(&d) : NULL;
}

static int modify_cq(u32 select, u32 period, u32 count)
{
	u8 *ctx = cx_ptr(d.in, modify_cq_in, cq_context);

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_cq_in, cqn, d.cqn);
	cx_set(d.in, modify_cq_in, modify_field_select_resize_field_select, select);
	cx_set(ctx, cqc, cq_period, period);
	cx_set(ctx, cqc, cq_max_count, count);
	return driver_command(&d, 0x403, 0, CX_BYTES_modify_cq_in, 16);
}

static u32 queried_count(void)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_cq_in, cqn, d.cqn);
	driver_command(&d, 0x402, 0, 16, CX_BYTES_query_cq_out);
	return (u32)cx_get(cx_ptr(d.out, query_cq_out, cq_context), cqc, cq_max_count);
}

/*
 * Events wait for a count of completions or for the period after the last event. On a busy machine the period may have passed at any
 * row: the tries end when it has not.
 */
static void moderation(u32 a)
{
	u32 i = 13, tries = 0;

	while (driver_event(&d))
		;
	row(151, "MODIFY_CQ of period and count", !modify_cq(3, 4095, 2));
	row(152, "the first event, a period after the last",
	    (run_for(5 * NSEC_PER_MSEC), moderated_nop(a, i++) != NULL));
	while (moderated_nop(a, i++) && ++tries < 1000)
		;
	row(153, "one completion has no event yet", tries < 1000);
	run_for(5 * NSEC_PER_MSEC);
	row(154, "but a period after the last", driver_event(&d) && !driver_event(&d));
	for (tries = 0; tries < 1000 && moderated_nop(a, i++); tries++)
		;
	row(155, "the second one has it by the count", tries < 1000 && moderated_nop(a, i++));
	row(156, "a field that is not selected is kept", !modify_cq(1, 0, 7) && queried_count() == 2);
	row(157, "without a period each completion has an event",
	    moderated_nop(a, i) && moderated_nop(a, i + 1) && moderated_nop(a, i + 2));
}

/* A WRITE of @b with the invalidated @key fails, and the queue pair enters ERR. */
static void write_by_invalid_key(u32 b, u32 key)
{
	const u8 *e;
	u8 *w, *s;

	w = driver_wqe(&d, 1, 3);
	s = driver_control(w, b, 3, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x5000 + 4);
	wire_store(s + 8, 4, key);
	driver_data(s + 16, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 4);
	row(43, "then the peer may not", failed(driver_poll(&d), false, 0x13));
	while ((e = driver_event(&d)))
		row_of("events of the failure", "of the queue pair's",
		       e[1] == CX_EVENT_WQ_ACCESS || e[1] == CX_EVENT_WQ_CATASTROPHIC);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_qp_in, qpn, b);
	row(44, "and its queue pair is in error",
	    !driver_command(&d, 0x50b, 0, 16, CX_BYTES_query_qp_out) &&
		    cx_get(cx_ptr(d.out, query_qp_out, qpc), qpc, state) == 6);
	driver_posted(&d, 1, b, 5);
	row(45, "what is posted now is flushed", failed(driver_poll(&d), false, 0x05));
}

static void data(void)
{
	u32 a, b, key;

	connect_pair(&a, &b);
	send_and_inline_write(a, b);
	key = register_page(a, b);
	gaps(a, b);
	header(b);
	record_polled(a);
	blueflame(a);
	moderation(a);
	write_by_invalid_key(b, key);
}

static void shared_receive(void)
{
	u8 *ctx = cx_ptr(d.in, create_srq_in, srq_context_entry), *w;
	u32 a, b, srqn, i;
	const u8 *e;

	memset(d.in, 0, sizeof(d.in));
	memset(d.c.mem + AT_WQ + 4 * 4096, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, dbr_addr, driver_addr(AT_RECORDS + 64 + 4 * 64));
	row(50, "an SRQ",
	    !driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 4 * 4096), 16));
	srqn = (u32)cx_get(d.out, create_srq_out, srqn);
	row(51, "a queue pair with it",
	    !driver_qp(&d, CX_QP_RC, 2, 0, &a) && !driver_qp(&d, CX_QP_RC, 3, srqn, &b) && !driver_connect(&d, a, b) &&
		    !driver_connect(&d, b, a));
	/* Entry 0 is linked to entry 2. */
	for (i = 0; i < 3; i += 2) {
		w = d.c.mem + AT_WQ + 4 * 4096 + i * 64;
		wire_store(w + 2, 2, i + 2);
		driver_data(driver_data(w + 16, 16, d.lkey, driver_addr(AT_DATA + 0x4000 + i * 16)), 0, 0x100, 0);
	}
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64, 4, 2);
	for (i = 0; i < 2; i++)
		driver_data(driver_control(driver_wqe(&d, 2, i), a, i, CX_OP_SEND, 32), 7, d.lkey,
			    driver_addr(AT_DATA));
	driver_posted(&d, 2, a, 2);
	for (i = 0; (e = driver_poll(&d));) {
		if (e[63] >> 4 != 2)
			continue;
		row_of("a shared receive", "by its entry's number",
		       wire_load(e + 32, 4) == srqn && wire_load(e + 60, 2) == 2 * i);
		i++;
	}
	row(52, "two of them", i == 2 && !memcmp(d.c.mem + AT_DATA + 0x4000 + 32, "needle", 7));
	memset(d.in, 0, sizeof(d.in));
	row(55, "a set of counters", !driver_command(&d, 0x771, 0, 16, 16));
	driver_data(driver_control(driver_wqe(&d, 2, 2), a, 2, CX_OP_SEND, 32), 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 2, a, 3);
	cx_set(d.in, query_q_counter_in, counter_set_id, cx_get(d.out, alloc_q_counter_out, counter_set_id));
	row(56, "counts a send that finds no receive",
	    !driver_command(&d, 0x773, 0, CX_BYTES_query_q_counter_in, CX_BYTES_query_q_counter_out) &&
		    cx_get(d.out, query_q_counter_out, out_of_buffer) > 0);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, arm_rq_in, srq_number, srqn);
	cx_set(d.in, arm_rq_in, lwm, 2);
	row(53, "its limit", !driver_command(&d, 0x703, 1, 16, 16));
	cx_set(d.in, destroy_srq_in, srqn, srqn);
	row(54, "in use it stays", driver_command(&d, 0x701, 0, 16, 16) == CX_BAD_RES_STATE);
}

static int xrcd_free(u32 xrcd)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, dealloc_xrcd_in, xrcd, xrcd);
	return driver_command(&d, 0x80f, 0, 16, 16);
}

/* Polls until a completion of a receive, or if @receive is false, of a request; NULL: none. */
static const u8 *xrc_poll(bool receive)
{
	const u8 *e;

	while ((e = driver_poll(&d)))
		if (receive == (e[63] >> 4 == 2))
			return e;
	return NULL;
}

static void xrc(void)
{
	u8 *ctx = cx_ptr(d.in, create_srq_in, srq_context_entry), *ring = d.c.mem + AT_WQ + 8 * 4096, *w;
	u32 xrcd, srqn, ini, tgt;
	const u8 *e;

	memset(d.in, 0, sizeof(d.in));
	row(110, "an XRC domain", !driver_command(&d, 0x80e, 0, 16, 16));
	xrcd = (u32)cx_get(d.out, alloc_xrcd_out, xrcd);
	memset(ring, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, xrcd, xrcd);
	cx_set(ctx, srqc, dbr_addr, driver_addr(AT_RECORDS + 64 + 8 * 64));
	row(111, "an XRC SRQ without a CQ is refused",
	    driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 8 * 4096), 16) ==
		    CX_BAD_RES);
	cx_set(ctx, srqc, cqn, d.cqn);
	row(112, "an XRC SRQ",
	    !driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 8 * 4096), 16));
	srqn = (u32)cx_get(d.out, create_srq_out, srqn);
	row(113, "a target without its domain is refused", driver_qp(&d, CX_QP_XRC, 10, xrcd + 1, &tgt) == CX_BAD_RES);
	row(114, "an initiator and a target",
	    !driver_qp(&d, CX_QP_XRC, 9, 0, &ini) && !driver_qp(&d, CX_QP_XRC, 10, xrcd, &tgt) &&
		    !driver_connect(&d, ini, tgt) && !driver_connect(&d, tgt, ini));
	row(115, "the domain is busy", xrcd_free(xrcd) == CX_BAD_RES_STATE);
	driver_data(driver_data(ring + 16, 16, d.lkey, driver_addr(AT_DATA + 0x6000)), 0, 0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 8 * 64, 4, 1);
	w = d.c.mem + AT_WQ + 9 * 4096;
	wire_store(driver_control(w, ini, 0, CX_OP_SEND, 48), 4, srqn);
	driver_data(w + 32, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 9, ini, 1);
	e = xrc_poll(true);
	row(116, "a SEND is received by the SRQ that it names",
	    e && wire_load(e + 32, 4) == srqn && (wire_load(e + 56, 4) & 0xffffff) == tgt &&
		    !memcmp(d.c.mem + AT_DATA + 0x6000, "needle", 7));
	while (driver_poll(&d))
		;
	driver_control(w + 64, ini, 1, CX_OP_SEND, 16);
	driver_posted(&d, 9, ini, 2);
	row(117, "a request that names none fails", failed(xrc_poll(false), false, 0x02));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_qp_in, qpn, tgt);
	row(118, "the target ends", !driver_command(&d, 0x501, 0, 16, 16) && xrcd_free(xrcd) == CX_BAD_RES_STATE);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_srq_in, srqn, srqn);
	row(119, "and the SRQ, and the domain", !driver_command(&d, 0x701, 0, 16, 16) && !xrcd_free(xrcd));
}

/* Modifies the queue pair to RESET, and to RTS again, with empty queues. */
static bool again(u32 n, u32 qpn, u32 peer)
{
	memset(d.in, 0, sizeof(d.in));
	if (driver_modify(&d, 0x50a, qpn, 0))
		return false;
	memset(d.c.mem + AT_RECORDS + 64 + n * 64, 0, 8);
	return !driver_connect(&d, qpn, peer);
}

static void hostile_queues(void)
{
	u64 bad = driver_counter(&d, "bad_doorbells");
	u32 a, b, key, i;
	u8 *w;

	row(60, "two more",
	    !driver_qp(&d, CX_QP_RC, 5, 0, &a) && !driver_qp(&d, CX_QP_RC, 6, 0, &b) && !driver_connect(&d, a, b) &&
		    !driver_connect(&d, b, a));
	driver_poke64(&d, (d.uar + 1) * 4096ull + 0x800, (u64)a << 8);
	driver_poke64(&d, d.uar * 4096ull + 0x800, 0xabcdef00);
	driver_poke64(&d, d.uar * 4096ull + 0x20, 0xffffff);
	driver_poke(&d, d.uar * 4096ull + 0x40, 31u << 24);
	driver_poke(&d, d.uar * 4096ull + 0x40, d.eqn << 24 | 0x800000);
	client_write(&d.c, 0, d.uar * 4096ull + 0x801, 0, 3);
	row(61, "doorbells of other pages, of no object, unaligned", driver_counter(&d, "bad_doorbells") == bad + 6);
	w = driver_wqe(&d, 5, 0);
	memset(w, 0xff, 1024);
	driver_posted(&d, 5, a, 5);
	row(62, "a request of a kind that is not", failed(driver_poll(&d), false, 0x02));
	while (driver_poll(&d))
		;
	row(63, "its queue pair again", again(5, a, b));
	memset(w, 0, 1024);
	driver_posted(&d, 5, a, 1);
	row(64, "a request of no size", failed(driver_poll(&d), false, 0x02));
	row(65, "again", again(5, a, b));
	driver_posted(&d, 5, a, 0x8000);
	row(66, "more requests than the queue has room for", failed(driver_poll(&d), false, 0x02));
	row(67, "again", again(5, a, b));
	driver_data(driver_control(w, a, 0, CX_OP_SEND, 32), 100, d.lkey ^ 1, driver_addr(AT_DATA));
	driver_posted(&d, 5, a, 1);
	row(68, "a key of another variant", failed(driver_poll(&d), false, 0x04));
	/* A user queue pair must not register physical pages, not even for a key of its own. */
	memset(d.in, 0, sizeof(d.in));
	row(69, "a key", !driver_mkey(&d, 1, false, 0, 0, 2, &key));
	row(70, "a program's queue pair", again(5, a, b));
	cx_qp_get(d.dev, a)->privileged = false;
	memset(w, 0, 256);
	driver_control(w, a, 0, CX_OP_UMR, 144);
	wire_store(w + 12, 4, key);
	w[16] = 0x80;
	wire_store(w + 20, 2, 1);
	wire_store(w + 24, 8, 1 << 0 | 1 << 6 | 1 << 29);
	cx_set(w + 64, mkc, len, 100);
	driver_posted(&d, 5, a, 3);
	row(71, "may not register physical pages", failed(driver_poll(&d), false, 0x06));
	/* The CQ is not polled from here on. */
	row(72, "again", again(5, a, b));
	while (driver_event(&d))
		;
	driver_arm_eq(&d);
	for (i = 0; i < 40; i++) {
		driver_control(driver_wqe(&d, 5, i), a, i, CX_OP_NOP, 16);
		driver_posted(&d, 5, a, i + 1);
	}
	{
		const u8 *e = driver_event(&d);

		row(73, "a CQ overruns", e && e[1] == CX_EVENT_CQ_ERROR && wire_load(e + 32, 4) == d.cqn);
	}
}

static const char *const wrong_faults[][2] = {
	{ "t command-status", "command-status: it needs status=" },
	{ "t command-status status=LOC_PROT_ERR", "a command's status such as BAD_RES" },
	{ "t command-delay command=CREATE_QP", "command-delay: it needs time=" },
	{ "t command-timeout command=CREATE_THING", "a command such as CREATE_QP" },
	{ "t health", "health: it needs syndrome= or stopped" },
	{ "t health stopped rfr", "rfr: a request for a reset needs syndrome=" },
	{ "t health syndrome=COLD", "a syndrome such as FW_ERR" },
	{ "t melt", "of a ConnectX there are command-status command-delay command-timeout health" },
};

static struct fault *arm(const char *line)
{
	char err[512] = "";
	struct fault *ft = fault_add(&d.faults, line, err, sizeof(err));

	row_of(line, *err ? err : "armed", ft != NULL);
	return ft;
}

static int nop(void)
{
	memset(d.in, 0, sizeof(d.in));
	return driver_command(&d, 0x80d, 0, 16, 16);
}

static void firmware_faults(void)
{
	const u8 *e;
	struct fault *ft;
	char err[512];
	u64 until;
	u32 i;

	row(89, "a driver", !driver_attach(&d));
	e = d.c.mem + AT_QUEUE;
	for (i = 0; i < ARRAY_SIZE(wrong_faults); i++)
		row_of(wrong_faults[i][0], wrong_faults[i][1],
		       !fault_add(&d.faults, wrong_faults[i][0], err, sizeof(err)) && strstr(err, wrong_faults[i][1]));
	ft = arm("t command-status command=NOP status=LIM_ERR nth=2");
	row(90, "the second NOP has a status, and no other command",
	    !nop() && !driver_command(&d, 0x104, 0, 16, 16) && nop() == CX_LIM && !nop() && ft->pick.hits == 1);
	fault_remove(ft);
	ft = arm("t command-delay time=200ms first=1");
	row(91, "a late command is the adapter's until then", nop() == -1);
	driver_poke(&d, 0x18, 1);
	row(92, "whatever is rung", e[63] & 1);
	run_for(400 * NSEC_PER_MSEC);
	row(93, "and then done, once", !(e[63] & 1) && ft->pick.hits == 1 && !nop());
	fault_remove(ft);
	ft = arm("t command-delay time=200ms");
	row(94, "a reset forgets it",
	    nop() == -1 && client_call(&d.c, VFIO_CMD_DEVICE_RESET, NULL, 0) == 0 && !driver_objects(&d));
	fault_remove(ft);
	run_for(400 * NSEC_PER_MSEC);
	row(95, "permanently", e[63] & 1);
	client_close(&d.c);
	row(103, "the next driver", !driver_attach(&d) && !nop());
	e = d.c.mem + AT_QUEUE;
	ft = arm("t command-delay time=200ms");
	row(141, "a command is late", nop() == -1);
	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE) | 0x100);
	fault_remove(ft);
	run_for(400 * NSEC_PER_MSEC);
	row(142, "and is not executed any more when the interface is off", e[63] & 1);
	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE));
	row(143, "the next one is", !nop());
	ft = arm("t command-timeout command=NOP count=1");
	row(96, "one that never ends", nop() == -1);
	fault_remove(ft);
	row(97, "and the next one", !nop());
	ft = arm("t health syndrome=HIGH_TEMP rfr");
	row(98, "the health buffer", driver_peek(&d, 0x23c) == 0x10 << 16 && driver_peek(&d, 0x238) == 1u << 31);
	row(104, "by bytes", client_read(&d.c, 0, 0x23d, 1) == 0x10 && client_read(&d.c, 0, 0x238, 1) == 0x80);
	fault_remove(ft);
	row(99, "is cleared", !driver_peek(&d, 0x23c) && !driver_peek(&d, 0x238));
	until = clock_read() + 300 * NSEC_PER_MSEC;
	ft = arm("t health stopped for=300ms");
	i = driver_peek(&d, 0x1010);
	run_for(250 * NSEC_PER_MSEC);
	row(100, "the counter stops", driver_peek(&d, 0x1010) == i || clock_read() > until);
	run_for(100 * NSEC_PER_MSEC);
	row(101, "and continues", driver_peek(&d, 0x1010) > i);
	fault_remove(ft);
	row(102, "a driver starts again", !driver_start(&d));
}

static void end(void)
{
	row(80, "there are objects", driver_objects(&d) > 8);
	memset(d.in, 0, sizeof(d.in));
	row(81, "a graceful end",
	    !driver_command(&d, 0x103, 0, 16, 16) && !driver_objects(&d) && !connectx_in_use(d.dev));
	row(87, "clears its capabilities", !d.port.attr.cap_mask);
	row(82, "and a restart", !driver_start(&d));
	client_call(&d.c, VFIO_CMD_DEVICE_RESET, NULL, 0);
	row(83, "a reset ends all", !driver_objects(&d) && !connectx_in_use(d.dev));
	driver_poke(&d, 0x18, 1);
	driver_poke64(&d, d.uar * 4096ull + 0x800, 0x100);
	row(84, "earlier doorbells have no effect", !driver_objects(&d));
	client_close(&d.c);
	row(85, "the next guest starts", !driver_attach(&d) && !driver_start(&d));
	client_close(&d.c);
	row(86, "a disconnected guest leaves no objects", !driver_objects(&d) && !connectx_in_use(d.dev));
	memset(d.in, 0, sizeof(d.in));
	row(134, "capabilities before INIT_HCA",
	    !driver_attach(&d) && !driver_command(&d, 0x104, 0, 16, 16) && !pcap_write(1 << 1) && d.port.attr.cap_mask);
	client_close(&d.c);
	row(135, "end with the guest, too", !d.port.attr.cap_mask);
}

int main(void)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("connectx_test");
		return 1;
	}
	segment();
	commands();
	selectors();
	invalid_entries();
	create_objects();
	data();
	shared_receive();
	xrc();
	hostile_queues();
	end();
	firmware_faults();
	driver_destroy(&d);
	return rows_end();
}
