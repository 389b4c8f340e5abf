// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command interface: queries, what a command selects, and entries and mailboxes that violate the format. */
#include "emu/connectx/frame.h"

static bool is_issi(u32 issi)
{
	return !driver_command(&d, 0x10a, 0, 16, CX_BYTES_query_issi_out) &&
	       cx_get(d.out, query_issi_out, current_issi) == issi &&
	       cx_get(d.out, query_issi_out, supported_issi_dw0) == 3;
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
	row(62, "CQs as large as the HCA's, whose drivers leave one entry free",
	    !driver_command(&d, 0x100, 1, 16, CX_BYTES_query_hca_cap_out) &&
		    BIT(cx_get(d.out + 16, cmd_hca_cap, log_max_cq_sz)) > hca_caps(d.hca)->max_cqe);
	row(7, "too short a response buffer", driver_command(&d, 0x100, 1, 16, 64) == CX_BAD_OUTP_LEN);
	row(8, "too few bytes of a command", driver_command(&d, 0x500, 0, 16, 16) == CX_BAD_INP_LEN);
	row(9, "the board",
	    !driver_command(&d, 0x101, 0, 16, CX_BYTES_query_adapter_out) &&
		    !memcmp(d.out + 16 + 240, "MUS0000000001", 13));
	row(127, "the driver is asked for no pages at its start",
	    !driver_command(&d, 0x107, 2, 16, 16) && !cx_get(d.out, query_pages_out, num_pages));
	row(128, "and may give some, or take them back",
	    !driver_command(&d, 0x108, 1, 16, 16) && !driver_command(&d, 0x108, 2, 16, 16));
	row(129, "ISSI 0", !driver_command(&d, 0x10b, 0, 16, 16) && is_issi(0));
	cx_set(d.in, set_issi_in, current_issi, 1);
	row(147, "ISSI 1", !driver_command(&d, 0x10b, 0, 16, 16) && is_issi(1));
	cx_set(d.in, set_issi_in, current_issi, 2);
	row(130, "an ISSI that QUERY_ISSI does not report",
	    driver_command(&d, 0x10b, 0, 16, 16) == CX_BAD_PARAM && is_issi(1));
	row(148, "ends when the HCA is enabled again", !driver_command_on(&d, 0x104, 0) && is_issi(0));
	memset(d.in, 0, sizeof(d.in));
	row(144, "INIT_HCA", !driver_command(&d, 0x102, 0, 16, 16));
	row(24, "the virtual port's state and GUIDs",
	    !driver_command(&d, 0x762, 0, 16, CX_BYTES_query_hca_vport_context_out) &&
		    cx_get(d.out + 16, hca_vport_context, port_state) == 4 &&
		    cx_get(d.out + 16, hca_vport_context, vport_state) == 4 &&
		    cx_get(d.out + 16, hca_vport_context, node_guid) == 0x1234 &&
		    cx_get(d.out + 16, hca_vport_context, system_image_guid) == 0x1235);
	cx_set(d.in, mad_ifc_in, port, 1);
	d.in[17] = 1;
	d.in[19] = 1;
	row(10, "MAD_IFC",
	    !driver_command(&d, 0x50d, 1, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) && d.out[16 + 3] == 0x81);
	row(22, "one that does not ignore the M_Key",
	    driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) == CX_BAD_PKT);
	wire_store(d.in + 16 + 24, 8, 1);
	row(23, "with the M_Key", !driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out));
	d.in[17] = 9;
	row(26, "a class without an agent",
	    !driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) && d.out[16 + 3] == 0x81 &&
		    wire_load(d.out + 16 + 4, 2) == MAD_STATUS_BAD_METHOD_ATTR);
	d.in[19] = 7;
	row(11, "a MAD without a response",
	    driver_command(&d, 0x50d, 0, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) == CX_BAD_PKT);
}

/*
 * The function's port is 1 for the driver, and 2 at its host: in MADs that name it, whose modifier may have other bits.
 */
static void port_of_host(void)
{
	static const struct {
		u16 attr;
		u32 modifier, at_host;
	} mads[] = {
		{ 0x15, 1, 2 }, /* PortInfo */
		{ 0x15, 0x80000001, 0x80000002 },
		{ 0xff90, 1, 2 }, /* MLNXExtendedPortInfo */
		{ 0x14, 1, 1 },   /* GUIDInfo, block 1 */
	};
	u32 i;

	d.dev->cfg.port = 2;
	for (i = 0; i < ARRAY_SIZE(mads); i++) {
		memset(d.in, 0, sizeof(d.in));
		cx_set(d.in, mad_ifc_in, port, 1);
		d.in[16] = d.in[17] = d.in[18] = d.in[19] = 1;
		wire_store(d.in + 16 + 16, 2, mads[i].attr);
		wire_store(d.in + 16 + 20, 4, mads[i].modifier);
		row(25, "a MAD of the function's port",
		    !driver_command(&d, 0x50d, 1, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out) &&
			    d.modifier == mads[i].at_host && wire_load(d.out + 16 + 20, 4) == mads[i].modifier);
	}
	d.dev->cfg.port = 1;
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
		{ 0x50d, 1, "MAD_IFC of port", CX_FIELD(mad_ifc_in, port), 1, 0 },
		{ 0x50d, 1, "MAD_IFC of port", CX_FIELD(mad_ifc_in, port), 1, 2 },
		{ 0x762, 0, "HCA vport context of port", CX_FIELD(query_hca_vport_context_in, port_num), 0, 2 },
		{ 0x762, 0, "HCA vport context of port", CX_FIELD(query_hca_vport_context_in, port_num), 1, 15 },
		{ 0x762, 0, "HCA vport context", CX_FIELD(query_hca_vport_context_in, other_vport), 0, 1 },
		{ 0x76f, 0, "vNIC's counters", CX_FIELD(query_vnic_env_in, other_vport), 0, 1 },
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

/* ACCESS_REG: writes the port's capability mask to PCAP, or reads it. */
static int pcap_write(u32 mask)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, access_register_in, register_id, 0x5001);
	d.in[17] = 1; /* local port */
	wire_store(d.in + 20, 4, mask);
	return driver_command(&d, 0x805, 0, 32, 32);
}

static u32 pcap_read(void)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, access_register_in, register_id, 0x5001);
	d.in[17] = 1;
	return driver_command(&d, 0x805, 1, 36, 36) || d.out[17] != 1 ? 0 : (u32)wire_load(d.out + 20, 4);
}

/* Those that software has set end with its driver, also before INIT_HCA. */
static void capabilities(void)
{
	row(21, "the driver starts", !driver_start(&d));
	row(29, "capabilities that software sets",
	    !pcap_write(1 << 16 | 1 << 2 | 1 << 1) && d.port.attr.cap_mask == (1 << 16 | 1 << 1));
	row(88, "and reads", pcap_read() == (1 << 16 | 1 << 1));
	row(87, "are cleared by TEARDOWN_HCA", !driver_command_on(&d, 0x103, 0) && !d.port.attr.cap_mask);
	client_close(&d.c);
	row(134, "capabilities before INIT_HCA",
	    !driver_attach(&d) && !driver_command_on(&d, 0x104, 0) && !pcap_write(1 << 1) && d.port.attr.cap_mask);
	client_close(&d.c);
	row(135, "end with the guest, too", !d.port.attr.cap_mask);
}

static int reg_read(u32 id, u32 at, u32 value)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, access_register_in, register_id, id);
	wire_store(d.in + 16 + at, 4, value);
	return driver_command(&d, 0x805, 1, 16 + 72, 16 + 24 + CX_BYTES_mcqi_version);
}

/* As the driver's devlink info: which registers there are, the image among the components, its version. */
static void firmware_version(void)
{
	static const struct {
		const char *name;
		u32 id, at, value; /* a word of the register */
	} invalid[] = {
		{ "a second component", 0x9060, 0, 1 },
		{ "the version of a second component", 0x9061, 0, 1 },
		{ "no room for the version", 0x9061, 20, 4 },
		{ "an unknown register", 0x9063, 0, 0 },
	};
	u8 *out = d.out + 16;
	u32 i;

	row(136, "the driver starts", !driver_attach(&d) && !driver_start(&d));
	row(137, "MCAM: MCQI and MCQS", !reg_read(0x907f, 0, 0) && out[11] == 3);
	row(138, "MCAM: no register of the next group", !reg_read(0x907f, 0, 1) && !out[11]);
	row(139, "MCQS: the image is the last component", !reg_read(0x9060, 0, 0) && out[0] == 0x80 && out[7] == 1);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, access_register_in, register_id, 0x9061);
	cx_set(d.in + 16, mcqi_reg, info_type, 1);
	cx_set(d.in + 16, mcqi_reg, data_size, CX_BYTES_mcqi_version);
	row(140, "MCQI: its version is that of the initialization segment",
	    !driver_command(&d, 0x805, 1, 16 + 24, 16 + 24 + CX_BYTES_mcqi_version) &&
		    (u32)wire_load(cx_ptr(out, mcqi_reg, data) + 4, 4) == driver_peek(&d, 0x230));
	row(141, "MFRL: another image is activated by a reboot", !reg_read(0x9028, 0, 0) && out[7] == BIT(6));
	for (i = 0; i < ARRAY_SIZE(invalid); i++)
		row_of("refused", invalid[i].name,
		       reg_read(invalid[i].id, invalid[i].at, invalid[i].value) == CX_BAD_PARAM);
	client_close(&d.c);
}

PARTS(commands, port_of_host, selectors, invalid_entries, capabilities, firmware_version)
