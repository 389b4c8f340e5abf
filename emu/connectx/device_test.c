// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stops the adapter (Bus Master Enable, the interface state, a reset), and how much of its work a turn of the loop
 * takes.
 */
#include "emu/connectx/frame.h"

#define CONFIG       VFIO_PCI_CONFIG_REGION_INDEX
#define SEVERITY     0x238
#define SYNDROME     0x23c
#define DOORBELL     0x18
#define QUEUE_LOW    0x14
#define LOG_LARGE_SQ 8 /* four pages of send blocks */

static void bus_master(bool on)
{
	client_write(&d.c, CONFIG, 4, on ? 6 : 2, 2);
}

/* Posts NOP @index of the queue pair in page @n. */
static void post_nop(u32 n, u32 qpn, u32 index)
{
	driver_control(driver_wqe(&d, n, index), qpn, index, CX_OP_NOP, 16);
	driver_posted(&d, n, qpn, index + 1);
}

static bool pair(u32 *a, u32 *b)
{
	return !driver_qp(&d, CX_QP_RC, 0, 0, a) && !driver_qp(&d, CX_QP_RC, 1, 0, b) && !driver_connect(&d, *a, *b) &&
	       !driver_connect(&d, *b, *a);
}

/* The adapter has used these queues before, so it has pointers to them. */
static void without_bus_master(void)
{
	u32 a, b;

	row(1, "a driver with two queue pairs", !driver_start(&d) && pair(&a, &b));
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	post_nop(0, a, 0);
	row(2, "a completion and its event", driver_poll(&d) && driver_event(&d));
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	bus_master(false);
	post_nop(0, a, 1);
	row(3, "without Bus Master Enable no completion is written", !driver_poll(&d));
	bus_master(true);
	driver_posted(&d, 0, a, 2);
	row(5, "with it the request is executed", driver_poll(&d) && driver_event(&d));
	bus_master(false);
	d.dev->map_epoch += UINT32_MAX; /* as if it had been cleared so many times more */
	post_nop(0, a, 2);
	row(6, "no completion by pointers of 4,294,967,296 unmappings ago", !driver_poll(&d));
	bus_master(true);
	driver_posted(&d, 0, a, 3);
	row(7, "but by new ones", driver_poll(&d) != NULL);
	bus_master(false);
	driver_poke64(&d, d.uar * 4096ull + 0x20, (u64)(d.cqe - 1) << 32 | d.cqn);
	row(4, "without it no event is written, which is an internal error",
	    !driver_event(&d) && driver_peek(&d, 0x23c) == CX_SYNDROME_EQ_ERR << 16);
	bus_master(true);
	driver_set_queue(&d);
	row(8, "and ends as the driver starts again", !driver_start(&d) && !driver_peek(&d, 0x23c));
}

/* Puts a write to the BAR into the socket. */
static void write_put(u64 off, u64 v, u32 bytes)
{
	struct {
		u64 off;
		u32 region, count;
		u64 v;
	} m = { off, 0, bytes, v };

	client_put(&d.c, VFIO_CMD_REGION_WRITE, VFIO_FLAG_NO_REPLY, &m, 16 + bytes, NULL, 0);
}

/* The same for a command doorbell. */
static void ring_put(u32 bits)
{
	write_put(DOORBELL, htobe32(bits), 4);
}

static void read_put(u64 off)
{
	struct {
		u64 off;
		u32 region, count;
	} m = { off, 0, 4 };

	client_put(&d.c, VFIO_CMD_REGION_READ, VFIO_FLAG_NO_REPLY, &m, sizeof(m), NULL, 0);
}

/* Makes all entries of the command queue commands without an effect. */
static void commands_fill(u16 op)
{
	u32 i;

	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in, 2, op);
	driver_entry(&d, 16, 16);
	for (i = 1; i < CX_SLOTS; i++)
		memcpy(d.c.mem + AT_QUEUE + i * 64, d.c.mem + AT_QUEUE, 64);
}

static u32 commands_left(void)
{
	u32 i, n = 0;

	for (i = 0; i < CX_SLOTS; i++)
		n += d.c.mem[AT_QUEUE + i * 64 + 63] & 1;
	return n;
}

/* One turn of the guest's socket. */
static void turn(void)
{
	d.dev->vfio->client.ops->readable(&d.dev->vfio->client);
}

static void command_turns(void)
{
	u32 i;

	commands_fill(0x80d);
	for (i = 0; i < 16; i++)
		ring_put(~0u);
	turn();
	row(10, "many doorbells in a turn execute no more commands than one",
	    commands_left() >= CX_SLOTS - CX_COMMANDS);
	loop_run_idle(d.loop, 0);
	row(11, "the others follow", !commands_left());
	commands_fill(0x80d);
	for (i = 0; i < CX_SLOTS; i++)
		ring_put(1u << i);
	turn();
	row(12, "nor with a doorbell for each", commands_left() >= CX_SLOTS - CX_COMMANDS);
	loop_run_idle(d.loop, 0);
	row(13, "these follow, too", !commands_left());
	commands_fill(0x501); /* of no queue pair */
	cx_resume_later(d.dev);
	ring_put(~0u);
	turn();
	row(14, "nor where commands run tasks, one of which begins the next turn",
	    commands_left() >= CX_SLOTS - CX_COMMANDS);
	loop_run_idle(d.loop, 0);
	row(15, "which follows", !commands_left());
}

/*
 * Creates a queue pair for memory key requests, whose send queue has 256 blocks from page 4 on; with @receives, a
 * receive queue of 256 entries is there, and the send queue behind it. It has no protection domain, as mlx5's.
 */
static int umr_qp(bool receives, u32 *qpn)
{
	u8 *qpc = cx_ptr(d.in, create_qp_in, qpc);
	u32 at = CX_AT_create_qp_in_pas / 8, i;
	int status;

	memset(d.in, 0, sizeof(d.in));
	cx_set(qpc, qpc, st, CX_QP_UMR);
	cx_set(qpc, qpc, uar_page, d.uar);
	cx_set(qpc, qpc, log_sq_size, LOG_LARGE_SQ);
	cx_set(qpc, qpc, rq_type, receives ? 0 : 3);
	cx_set(qpc, qpc, log_rq_size, LOG_LARGE_SQ);
	cx_set(qpc, qpc, cqn_snd, d.cqn);
	cx_set(qpc, qpc, cqn_rcv, d.cqn);
	cx_set(qpc, qpc, dbr_addr, driver_addr(AT_RECORDS + 64 + 4 * 64));
	for (i = 0; i < 5; i++)
		at = driver_page(&d, at, AT_WQ + (4 + i) * 4096);
	status = driver_command(&d, 0x500, 0, at, 16);
	*qpn = (u32)cx_get(d.out, create_qp_out, qpn);
	memset(d.in, 0, sizeof(d.in));
	status |= driver_modify(&d, 0x502, *qpn, 0);
	status |= driver_modify(&d, 0x503, *qpn, 0);
	return status | driver_modify(&d, 0x504, *qpn, 0);
}

/* Creates a key of 65,536 ranges, none of which is set. */
static int large_key(u32 *key)
{
	int status;

	memset(d.in, 0, sizeof(d.in));
	status = driver_mkey(&d, 2, false, 0, 0, 4, key);
	cx_set(cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry), mkc, translations_octword_size, 1 << 16);
	cx_set(d.in, create_mkey_in, translations_octword_actual_size, 0);
	status |= driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16);
	*key = (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
	return status;
}

/* A request that sets none of the key's ranges takes the time of a check of all. */
static void large_key_turns(u32 qpn)
{
	u64 before = driver_counter(&d, "memory_key_requests");
	u32 key, i, at = 1u << LOG_LARGE_SQ;
	u8 *w;

	row(23, "a large key", !large_key(&key));
	for (i = 0; i < 4; i++, at += 2) {
		w = d.c.mem + AT_WQ + 4 * 4096 + (size_t)(at % (1u << LOG_LARGE_SQ)) * 64;
		memset(w, 0, 128);
		driver_control(w, qpn, at, CX_OP_UMR, 128);
		wire_store(w + 12, 4, key);
		w[16] = 0x80; /* inline */
	}
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64 + 4, 4, at);
	cx_qp_doorbell(d.dev, d.uar, qpn);
	row(24, "one request for it is a turn's work", driver_counter(&d, "memory_key_requests") == before + 1);
	loop_run_idle(d.loop, 0);
	row(25, "the others follow, and succeed",
	    driver_counter(&d, "memory_key_requests") == before + 4 && !driver_counter(&d, "bad_memory_key_requests"));
}

static void key_request_turns(void)
{
	u64 before;
	u32 qpn, i;

	row(20, "a queue pair for memory key requests", !umr_qp(false, &qpn));
	/* The CQ has room for 16. */
	((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->ignore_overrun = true;
	for (i = 0; i < 1u << LOG_LARGE_SQ; i++)
		driver_control(d.c.mem + AT_WQ + 4 * 4096 + (size_t)i * 64, qpn, i, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64 + 4, 4, 1u << LOG_LARGE_SQ);
	before = driver_counter(&d, "memory_key_requests");
	for (i = 0; i < 8; i++)
		cx_qp_doorbell(d.dev, d.uar, qpn);
	row(21, "many doorbells in a turn execute no more requests than one",
	    driver_counter(&d, "memory_key_requests") == before + VERBS_SPECIAL_TURN);
	loop_run_idle(d.loop, 0);
	row(22, "the others follow", driver_counter(&d, "memory_key_requests") == before + (1u << LOG_LARGE_SQ));
	large_key_turns(qpn);
}

/* 2ERR flushes the receives of a special queue pair, too. */
static void flush_turns(void)
{
	struct cx_cq *cq;
	u32 qpn, n = 1u << LOG_LARGE_SQ;

	memset(d.c.mem + AT_RECORDS + 64 + 4 * 64, 0, 8);
	row(26, "one with receives", !driver_start(&d) && !umr_qp(true, &qpn));
	cq = table_get(&d.dev->verbs.cqs, d.cqn);
	cq->ignore_overrun = true;
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64, 4, n);
	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in, 2, 0x507);
	cx_set(d.in, rst2init_qp_in, qpn, qpn);
	driver_entry(&d, 16, 16);
	ring_put(1);
	turn();
	row(27, "2ERR flushes no more of them than a turn has requests", cq->pi == VERBS_SPECIAL_TURN);
	loop_run_idle(d.loop, 0);
	row(28, "the others follow", cq->pi == n);
}

/* Posts NOPs for a queue pair for memory key requests, more than the CQ has room for. */
static void special_overrun(void)
{
	u32 qpn, gsi, i;
	const u8 *e;

	memset(d.c.mem + AT_RECORDS + 64 + 4 * 64, 0, 8);
	row(70, "special queue pairs of a CQ",
	    !driver_start(&d) && !umr_qp(false, &qpn) && !driver_qp(&d, CX_QP_GSI, 0, 0, &gsi) &&
		    !driver_connect(&d, gsi, 0));
	for (i = 0; i < 1u << LOG_LARGE_SQ; i++)
		driver_control(d.c.mem + AT_WQ + 4 * 4096 + (size_t)i * 64, qpn, i, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64 + 4, 4, 1u << LOG_LARGE_SQ);
	cx_qp_doorbell(d.dev, d.uar, qpn);
	loop_run_idle(d.loop, 0);
	for (i = 0; driver_poll(&d); i++)
		;
	row(71, "a completion that finds no room does not overwrite one", i == 1u << LOG_CQ);
	e = driver_event(&d);
	row(72, "but is an error of the CQ", e && e[1] == CX_EVENT_CQ_ERROR && wire_load(e + 32, 4) == d.cqn);
	for (i = 0; i < 2; i++) {
		e = driver_event(&d);
		row(73, "and of each of its queue pairs",
		    e && e[1] == CX_EVENT_WQ_CATASTROPHIC && wire_load(e + 32 + 24, 4) == (i ? gsi : qpn) &&
			    cx_qp_get(d.dev, i ? gsi : qpn)->qp.special.state == HCA_QPS_ERR);
	}
	row(74, "once", !driver_event(&d));
}

/* Resets the adapter by the interface's state, and enables it. 0, or another state of the interface than disabled. */
static u32 driver_poke_reset(void)
{
	u32 state;

	driver_poke(&d, QUEUE_LOW, (u32)driver_addr(AT_QUEUE) | 0x700);
	state = driver_peek(&d, QUEUE_LOW) & 0x700;
	driver_poke(&d, QUEUE_LOW, (u32)driver_addr(AT_QUEUE));
	return state ^ 0x100;
}

/* A driver that reads a request for a reset (RFR) stops using the adapter; its commands end nevertheless. */
static void stop(void)
{
	struct fault *ft = driver_fault(&d, "t health syndrome=FW_ERR rfr");

	commands_fill(0x80d);
	read_put(SEVERITY);
	ring_put(~0u);
	loop_run_idle(d.loop, 0);
	row(30, "the driver has stopped", !connectx_in_use(d.dev));
	row(31, "all commands have ended", !commands_left());
	row(33, "the request stays", ft->applied && driver_peek(&d, SEVERITY) && driver_peek(&d, SYNDROME));
	row(34, "until the driver resets the adapter, whose interface is not disabled",
	    !(driver_peek(&d, QUEUE_LOW) & 0x700) && !driver_poke_reset());
	row(35, "without it the driver starts",
	    !ft->applied && !driver_peek(&d, SEVERITY) && !driver_peek(&d, SYNDROME) && !driver_start(&d));
	fault_remove(ft);
	ft = driver_fault(&d, "t health syndrome=HIGH_TEMP");
	row(36, "a syndrome without a request stays", !driver_poke_reset() && ft->applied && driver_peek(&d, SYNDROME));
	fault_remove(ft);
}

/* What a driver read before it started does not stop it. */
static void stop_before_start(void)
{
	struct fault *ft = driver_fault(&d, "t health syndrome=FW_ERR rfr");

	memset(d.in, 0, sizeof(d.in));
	driver_command(&d, 0x104, 0, 16, 16);
	read_put(SEVERITY);
	wire_store(d.in, 2, 0x102);
	driver_entry(&d, 16, 16);
	ring_put(1);
	loop_run_idle(d.loop, 0);
	row(32, "INIT_HCA after a request for a reset", connectx_in_use(d.dev));
	fault_remove(ft);
}

static void interface(void)
{
	u32 a, b, low = (u32)driver_addr(AT_QUEUE);

	row(40, "a driver", !driver_start(&d) && pair(&a, &b));
	driver_poke(&d, QUEUE_LOW, low | 0x100);
	row(41, "that disables the interface leaves no objects", !driver_objects(&d) && !connectx_in_use(d.dev));
	row(42, "and reads so, with the queue's address that it keeps",
	    (driver_peek(&d, QUEUE_LOW) & ~0xffu) == ((u32)driver_addr(AT_QUEUE) | 0x100));
	driver_poke(&d, QUEUE_LOW, low);
	row(43, "it starts again", !driver_start(&d) && pair(&a, &b) && !(driver_peek(&d, QUEUE_LOW) & 0x700));
	driver_poke(&d, QUEUE_LOW, low | 0x700);
	row(44, "a software reset leaves none, and the interface disabled",
	    !driver_objects(&d) && (driver_peek(&d, QUEUE_LOW) & 0x700) == 0x100);
	driver_poke(&d, QUEUE_LOW, low);
	row(45, "after it the driver starts", !driver_start(&d) && !driver_nop(&d));
	client_write(&d.c, VFIO_PCI_CONFIG_REGION_INDEX, 0x68, 0x8000, 2);
	row(46, "a function level reset leaves none", !driver_objects(&d) && !connectx_in_use(d.dev));
	row(47, "and the interface disabled, for the driver to find", (driver_peek(&d, QUEUE_LOW) & 0x700) == 0x100);
	bus_master(true);
	driver_poke(&d, 0x10, (u32)(driver_addr(AT_QUEUE) >> 32));
	driver_poke(&d, QUEUE_LOW, low);
	row(48, "it restarts the adapter", !driver_start(&d) && !driver_nop(&d));
}

/* Whether BAD_SYS_STATE is the answer to the commands that need an enabled or an initialized HCA where it is none. */
static bool refused(bool enabled, bool initialized)
{
	static const struct {
		u16 op;
		bool initialized; /* for commands of an initialized HCA */
	} commands[] = {
		{ 0x100 },       { 0x101 },       { 0x107 },       { 0x108 },       { 0x109 },       { 0x10a },
		{ 0x10b },       { 0x10d },       { 0x805 },       { 0x200, true }, { 0x203, true }, { 0x301, true },
		{ 0x400, true }, { 0x500, true }, { 0x50d, true }, { 0x700, true }, { 0x762, true }, { 0x771, true },
		{ 0x800, true }, { 0x802, true }, { 0x80e, true },
	};
	bool ok = true;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		bool allowed = commands[i].initialized ? initialized : enabled;

		memset(d.in, 0, sizeof(d.in));
		ok &= (driver_command(&d, commands[i].op, 0, CX_BYTES_create_qp_in, CX_BYTES_query_hca_cap_out) !=
		       CX_BAD_SYS_STATE) == allowed;
	}
	return ok;
}

/* ENABLE_HCA and INIT_HCA, TEARDOWN_HCA and DISABLE_HCA: which commands are allowed between them. */
static void phases(void)
{
	u32 low = (u32)driver_addr(AT_QUEUE), addr = (u32)(driver_addr(AT_QUEUE) >> 32);

	driver_poke(&d, QUEUE_LOW, low | 0x700);
	driver_poke(&d, QUEUE_LOW, low);
	row(100, "before ENABLE_HCA", refused(false, false));
	row(101, "neither is INIT_HCA allowed", driver_command_on(&d, 0x102, 0) == CX_BAD_SYS_STATE);
	row(102, "nor TEARDOWN_HCA", driver_command_on(&d, 0x103, 0) == CX_BAD_SYS_STATE);
	row(103, "ENABLE_HCA", !driver_command_on(&d, 0x104, 0) && refused(true, false));
	row(104, "INIT_HCA", !driver_command_on(&d, 0x102, 0) && refused(true, true));
	row(75, "TEARDOWN_HCA", !driver_command_on(&d, 0x103, 0) && refused(true, false));
	row(76, "DISABLE_HCA", !driver_command_on(&d, 0x105, 0) && refused(false, false));
	row(77, "DISABLE_HCA without TEARDOWN_HCA leaves no objects",
	    !driver_start(&d) && !driver_command_on(&d, 0x105, 0) && !driver_objects(&d) && refused(false, false));
	row(78, "a driver that finds an initialized HCA starts", !driver_start(&d) && !driver_start(&d));
	driver_poke(&d, QUEUE_LOW, low | 0x100);
	row(79, "the interface is disabled: no command is executed", driver_nop(&d) == -1);
	driver_poke(&d, QUEUE_LOW, low);
	row(80, "nor afterwards, without a doorbell", d.c.mem[AT_QUEUE + 63] & 1);
	row(81, "and the HCA is disabled", refused(false, false) && !driver_start(&d));
	client_write(&d.c, VFIO_PCI_CONFIG_REGION_INDEX, 0x68, 0x8000, 2);
	bus_master(true);
	driver_poke(&d, 0x10, addr);
	row(82, "after a reset a doorbell finds no command queue", driver_nop(&d) == -1);
	driver_poke(&d, QUEUE_LOW, low);
	row(83, "and the HCA disabled", refused(false, false) && !driver_start(&d));
	cx_fatal(d.dev, CX_SYNDROME_INTERNAL);
	row(84, "after an internal error no command is executed", driver_nop(&d) == -1 && !connectx_in_use(d.dev));
	driver_poke(&d, QUEUE_LOW, low);
	row(85, "until the driver starts", !driver_start(&d) && !driver_nop(&d));
}

/* A command that the queue pair's state does not allow has no effect. */
static void refused_transition(void)
{
	u64 record;
	u32 a, b;

	row(50, "two queue pairs", pair(&a, &b));
	record = cx_qp_get(d.dev, a)->record.addr;
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, rst2init_qp_in, qpc), qpc, dbr_addr, driver_addr(AT_DATA));
	cx_set(cx_ptr(cx_ptr(d.in, rst2init_qp_in, qpc), qpc, primary_address_path), ads, vhca_port_num, 1);
	row(51, "RST2INIT of one in RTS", driver_modify(&d, 0x502, a, 0) == CX_BAD_QP_STATE);
	row(52, "leaves its doorbell record", cx_qp_get(d.dev, a)->record.addr == record);
	post_nop(0, a, 0);
	row(53, "and its service", driver_poll(&d) != NULL);
	memset(d.in, 0, sizeof(d.in));
	row(54, "SQERR2RTS of one in RTS", driver_modify(&d, 0x506, a, 0) == CX_BAD_QP_STATE);
	memset(d.c.mem + AT_RECORDS + 64 + 4 * 64, 0, 8);
	row(55, "a queue pair for memory key requests in ERR", !umr_qp(false, &a) && !driver_modify(&d, 0x507, a, 0));
	row(56, "does not become ready to send",
	    driver_modify(&d, 0x504, a, 0) == CX_BAD_QP_STATE && cx_qp_get(d.dev, a)->qp.special.state == HCA_QPS_ERR);
	row(57, "before it is reset",
	    !driver_modify(&d, 0x50a, a, 0) && !driver_modify(&d, 0x502, a, 0) && !driver_modify(&d, 0x503, a, 0) &&
		    !driver_modify(&d, 0x504, a, 0));
	row(58, "2ERR of one in RESET",
	    !driver_modify(&d, 0x50a, a, 0) && driver_modify(&d, 0x507, a, 0) == CX_BAD_QP_STATE);
}

/* Puts the doorbell of request 0 of queue pair @qpn, in page 0, and that of command @op into the socket. */
static void doorbells_put(u32 qpn, u32 blocks, u16 op, u32 in_len)
{
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, blocks);
	write_put(d.uar * 4096ull + 0x800, htobe64((u64)qpn << 8), 8);
	wire_store(d.in, 2, op);
	driver_entry(&d, in_len, 16);
	ring_put(1);
	loop_run_idle(d.loop, 0);
}

static u32 receives(void)
{
	const u8 *e;
	u32 n = 0;

	while ((e = driver_poll(&d)))
		n += e[63] >> 4 == 2;
	return n;
}

/* A SEND and a command that ends its queue pair. */
static u32 send_and_end(u16 op)
{
	u32 a, b;

	if (!pair(&a, &b))
		return 0;
	driver_recv(&d, 1, 0, 64, driver_addr(AT_DATA + 4096));
	driver_data(driver_control(driver_wqe(&d, 0, 0), a, 0, CX_OP_SEND, 32), 8, d.lkey, driver_addr(AT_DATA));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_qp_in, qpn, a);
	doorbells_put(a, 1, op, 16);
	return receives();
}

/* A datagram to a group, and a command by which its sender leaves the group. */
static u32 send_and_detach(void)
{
	static const u8 mgid[16] = { 0xff, 0x12, [15] = 1 };
	u8 wqe[2 * CX_WQE_BB] = { 0 }, *s;
	u32 qpn, i;

	if (driver_qp(&d, CX_QP_UD, 0, 0, &qpn) || driver_connect(&d, qpn, 0))
		return 0;
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, attach_to_mcg_in, qpn, qpn);
	memcpy(cx_ptr(d.in, attach_to_mcg_in, multicast_gid), mgid, sizeof(mgid));
	row(62, "a queue pair in a multicast group", !driver_command(&d, 0x806, 0, CX_BYTES_attach_to_mcg_in, 16));
	driver_recv(&d, 0, 0, 256, driver_addr(AT_DATA + 4096));
	s = driver_control(wqe, qpn, 0, CX_OP_SEND, 80);
	wire_store(s, 4, 0x11);
	wire_store(s + 8, 4, 1u << 31 | CX_ANY_QPN);
	wire_store(s + 14, 2, 0xc001);
	wire_store(s + 28, 4, 1u << 30);
	memcpy(s + 32, mgid, sizeof(mgid));
	driver_data(s + 48, 8, d.lkey, driver_addr(AT_DATA));
	for (i = 0; i < 2; i++)
		memcpy(driver_wqe(&d, 0, i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	doorbells_put(qpn, 2, 0x807, CX_BYTES_attach_to_mcg_in);
	return receives();
}

/* Doorbells and commands that arrive together are obeyed in their order. */
static void posted_before(void)
{
	row(60, "a SEND whose queue pair is reset behind its doorbell is received", send_and_end(0x50a) == 1);
	row(61, "or destroyed", send_and_end(0x501) == 1);
	row(64, "or enters the error state", send_and_end(0x507) == 1);
	row(63, "a datagram whose queue pair leaves the group behind its doorbell is received", send_and_detach() == 1);
}

static void segment(void)
{
	u32 health;

	row(98, "firmware 12.28.2302, command interface 5, 32 entries of 64 bytes",
	    driver_peek(&d, 0) == (28 << 16 | 12) && driver_peek(&d, 4) == (5 << 16 | 2302) &&
		    (driver_peek(&d, 0x14) & 0xff) == 0x56 && driver_peek(&d, 0x1fc) == 1u << 30);
	health = driver_peek(&d, 0x1010);
	row(99, "the timer runs", driver_peek(&d, 0x1004) != driver_peek(&d, 0x1004) && health < 1u << 24);
}

/* A driver that tears the adapter down, is reset, or whose QEMU ends leaves no objects. */
static void end(void)
{
	row(88, "there are objects", !driver_start(&d) && driver_objects(&d));
	row(89, "a graceful end", !driver_command_on(&d, 0x103, 0) && !driver_objects(&d) && !connectx_in_use(d.dev));
	row(90, "and a restart", !driver_start(&d));
	client_call(&d.c, VFIO_CMD_DEVICE_RESET, NULL, 0);
	row(91, "a reset ends all", !driver_objects(&d) && !connectx_in_use(d.dev));
	driver_poke(&d, 0x18, 1);
	driver_poke64(&d, d.uar * 4096ull + 0x800, 0x100);
	row(92, "earlier doorbells have no effect", !driver_objects(&d));
	client_close(&d.c);
	row(93, "the next guest starts", !driver_attach(&d) && !driver_start(&d));
	client_close(&d.c);
	row(94, "a disconnected guest leaves no objects", !driver_objects(&d) && !connectx_in_use(d.dev));
}

PARTS(segment, without_bus_master, command_turns, key_request_turns, flush_turns, special_overrun, stop,
      stop_before_start, interface, phases, refused_transition, posted_before, end)
