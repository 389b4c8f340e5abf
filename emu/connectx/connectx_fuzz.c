// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: an initialized driver, then items of its input: commands, doorbells, writes to its queues and to the BAR,
 * resets. Some were recorded from a guest's driver (corpus.c): its addresses are folded into this driver's memory, and
 * numbers of queue pairs and UARs that do not exist here mean the last queue pair that was created, and the driver's
 * UAR.
 */
#include "emu/connectx/fixture.h"
#include "emu/connectx/fuzz_items.h"
#include "emu/lib/log.h"

static_assert(FUZZ_MEM == CLIENT_MEM - 65536, "an item's data, which may be 64 KiB, end in the client's memory");

static u32 last_qpn;

static void fold(u8 *in, u32 at, u32 len)
{
	u64 addr = at + 8 <= len ? wire_load(in + at, 8) : 0;

	if (addr && addr < FUZZ_GUEST_END)
		wire_store(in + at, 8, driver_addr(FUZZ_FOLD(addr)));
}

#define UAR_AT(format, context, type) ((CX_AT_##format##_##context + CX_AT_##type##_uar_page) / 8)
static void fold_command(const struct driver *d, u8 *in, u32 len)
{
	static const struct {
		u16 op;
		u32 record, pages, uar; /* offsets; 0: there is none */
	} commands[] = {
		{ 0x200, 0, CX_BYTES_create_mkey_in },
		{ 0x301, 0, CX_AT_create_eq_in_pas / 8, UAR_AT(create_eq_in, eq_context_entry, eqc) },
		{ 0x400, (CX_AT_create_cq_in_cq_context + CX_AT_cqc_dbr_addr) / 8, CX_AT_create_cq_in_pas / 8,
		  UAR_AT(create_cq_in, cq_context, cqc) },
		{ 0x403, 0, CX_AT_modify_cq_in_pas / 8 },
		{ 0x500, (CX_AT_create_qp_in_qpc + CX_AT_qpc_dbr_addr) / 8, CX_AT_create_qp_in_pas / 8,
		  UAR_AT(create_qp_in, qpc, qpc) },
		{ 0x502, (CX_AT_rst2init_qp_in_qpc + CX_AT_qpc_dbr_addr) / 8, CX_BYTES_rst2init_qp_in },
		{ 0x700, (CX_AT_create_srq_in_srq_context_entry + CX_AT_srqc_dbr_addr) / 8,
		  CX_AT_create_srq_in_pas / 8 },
		{ 0x705, (CX_AT_create_xrc_srq_in_xrc_srq_context_entry + CX_AT_srqc_dbr_addr) / 8,
		  CX_AT_create_xrc_srq_in_pas / 8 },
		{ 0x90c, (CX_AT_create_rmp_in_ctx + CX_AT_rmpc_wq + CX_AT_wq_dbr_addr) / 8, CX_BYTES_create_rmp_in },
	};
	u32 i, at;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].op != wire_load(in, 2))
			continue;
		if (commands[i].record)
			fold(in, commands[i].record, len);
		for (at = commands[i].pages; at < len; at += 8)
			fold(in, at, len);
		at = commands[i].uar;
		if (at && at + 3 <= len && !cx_uar_exists(d->dev, (u32)wire_load(in + at, 3)))
			wire_store(in + at, 3, d->uar);
	}
}

static void command(struct driver *d, u32 arg, const u8 *data, u32 len)
{
	u32 n = min(len, (u32)sizeof(d->in)), op;

	memset(d->in, 0, sizeof(d->in));
	memcpy(d->in, data, n);
	op = (u32)wire_load(d->in, 2);
	fold_command(d, d->in, n);
	if (op > 0x500 && op < 0x50f && last_qpn && !cx_qp_get(d->dev, (u32)cx_get(d->in, rst2init_qp_in, qpn)))
		cx_set(d->in, rst2init_qp_in, qpn, last_qpn);
	driver_entry(d, max(n, 16u), 16 + arg * 64);
	if (!driver_ring(d, 16) && op == 0x500)
		last_qpn = (u32)cx_get(d->out, create_qp_out, qpn);
}

/* The doorbell of a send queue has its QPN. */
static u64 doorbell(const struct driver *d, u32 arg, u64 value)
{
	if (arg & 4 && last_qpn && d->dev->verbs.ctx && !cx_qp_get(d->dev, (u32)(value >> 8) & CX_ANY_QPN))
		return (value & ~((u64)CX_ANY_QPN << 8)) | last_qpn << 8;
	return value;
}

static void fuzz_item(struct driver *d, u32 kind, u32 arg, const u8 *data, u32 len)
{
	switch (kind) {
	case FUZZ_COMMAND:
		command(d, arg, data, len);
		break;
	case FUZZ_DOORBELL:
		driver_poke64(d, d->uar * 4096ull + (arg & 3) * 0x20 + (arg & 4 ? 0x800 : 0),
			      doorbell(d, arg, wire_load(data, 8)));
		break;
	case FUZZ_BAR:
		client_write(&d->c, 0, wire_load(data, 4) % (1 << 25), wire_load(data + 4, 4), 1 + arg % 8);
		break;
	case FUZZ_MEMORY:
		memcpy(d->c.mem + wire_load(data, 4) % FUZZ_MEM, data + 4, max(len, 4u) - 4);
		break;
	case FUZZ_ENTRY:
		memcpy(d->c.mem + AT_QUEUE, data, min(len, 64u));
		driver_ring(d, 16);
		break;
	case FUZZ_UNMAP:
		client_unmap(&d->c, CLIENT_IOVA, CLIENT_MEM, 0);
		break;
	default:
		client_call(&d->c, VFIO_CMD_DEVICE_RESET, NULL, 0);
		client_write(&d->c, VFIO_PCI_CONFIG_REGION_INDEX, 4, 6, 2);
		driver_set_queue(d);
		driver_start(d);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 item[65536 + 8];
	static struct driver d;

	log_level = LOG_ERROR;
	last_qpn = 0;
	if ((!d.dev && driver_create(&d)) || driver_attach(&d) || driver_start(&d))
		abort();
	/* One byte: kind of the item; one: its argument; two: length. */
	while (size >= 4) {
		u32 n = min((u32)(data[2] | data[3] << 8), (u32)size - 4);

		memset(item, 0, 16);
		memcpy(item, data + 4, n);
		memset(item + n, 0, 8);
		fuzz_item(&d, data[0] % FUZZ_ITEMS, data[1], item, n);
		data += 4 + n;
		size -= 4 + n;
	}
	loop_run_idle(d.loop, 0);
	client_close(&d.c);
	return 0;
}
