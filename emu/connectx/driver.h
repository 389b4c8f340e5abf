/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A minimal driver of the ConnectX, for tests and hostile programs: issues commands, creates objects and posts
 * requests, in one megabyte of memory. The includer defines the access to the adapter: struct driver with the members
 * used here, driver_addr() of its memory, driver_poke() and driver_poke64().
 */
#ifndef MUSLIN_CONNECTX_DRIVER_H
#define MUSLIN_CONNECTX_DRIVER_H

#include "emu/connectx/format.h"

/* Offsets in the driver's memory. */
#define AT_QUEUE   0x0000u
#define AT_IN      0x2000u
#define AT_OUT     0x12000u
#define AT_EQ      0x30000u
#define AT_CQ      0x32000u
#define AT_WQ      0x40000u /* one page per queue pair or SRQ */
#define AT_RECORDS 0x50000u /* 64 bytes per queue */
#define AT_DATA    0x60000u
#define BOX        1024u
#define BOX_DATA   512u

#define LOG_EQ 4
#define LOG_CQ 4
#define LOG_SQ 4
#define LOG_RQ 2

#define STATUS_NOT_DELIVERED 0x100 /* ORed with the delivery status */

static inline void driver_boxes(struct driver *d, u32 at, u32 len, const u8 *data)
{
	u32 n, i;

	for (i = 0, n = 16; n < len; i++, n += BOX_DATA) {
		u8 *box = d->c.mem + at + i * BOX;

		memset(box, 0, BOX);
		if (data)
			memcpy(box, data + n, min(len - n, BOX_DATA));
		wire_store(box + 560, 8, n + BOX_DATA < len ? driver_addr(at + (i + 1) * BOX) : 0);
		wire_store(box + 568, 4, i);
		box[573] = 7;
	}
}

/* Fills entry 0 of the command queue with d->in. */
static inline u8 *driver_entry(struct driver *d, u32 in_len, u32 out_len)
{
	u8 *e = d->c.mem + AT_QUEUE;

	memset(e, 0, 64);
	e[0] = 7;
	wire_store(e + 4, 4, in_len);
	memcpy(e + 16, d->in, 16);
	wire_store(e + 8, 8, in_len > 16 ? driver_addr(AT_IN) : 0);
	wire_store(e + 48, 8, out_len > 16 ? driver_addr(AT_OUT) : 0);
	wire_store(e + 56, 4, out_len);
	e[60] = 7;
	e[63] = 1;
	driver_boxes(d, AT_IN, in_len, d->in);
	driver_boxes(d, AT_OUT, out_len, NULL);
	return e;
}

/*
 * Rings the command doorbell and reads the output. Returns the status, or the delivery status; -1: the adapter still
 * owns the entry.
 */
static inline int driver_ring(struct driver *d, u32 out_len)
{
	const u8 *e = d->c.mem + AT_QUEUE;
	u32 n, i;

	driver_poke(d, 0x18, 1);
	if (e[63] & 1)
		return -1;
	if (e[63])
		return STATUS_NOT_DELIVERED | e[63] >> 1;
	memcpy(d->out, e + 32, 16);
	for (i = 0, n = 16; n < out_len; i++, n += BOX_DATA)
		memcpy(d->out + n, d->c.mem + AT_OUT + i * BOX, min(out_len - n, BOX_DATA));
	return d->out[0];
}

static inline int driver_command(struct driver *d, u16 op, u16 modifier, u32 in_len, u32 out_len)
{
	wire_store(d->in, 2, op);
	wire_store(d->in + 6, 2, modifier);
	driver_entry(d, in_len, out_len);
	return driver_ring(d, out_len);
}

/* Appends the address of a queue's page to a command; returns the command's length. */
static inline u32 driver_page(struct driver *d, u32 at, u32 page)
{
	wire_store(d->in + at, 8, driver_addr(page));
	return at + 8;
}

static inline int driver_cq(struct driver *d, u32 log_size, u32 *cqn)
{
	u8 *ctx = cx_ptr(d->in, create_cq_in, cq_context);
	int status;

	memset(d->in, 0, sizeof(d->in));
	memset(d->c.mem + AT_CQ, 0xf1, 4096);
	cx_set(ctx, cqc, log_cq_size, log_size);
	cx_set(ctx, cqc, uar_page, d->uar);
	cx_set(ctx, cqc, c_eqn_or_apu_element, d->eqn);
	cx_set(ctx, cqc, dbr_addr, driver_addr(AT_RECORDS));
	status = driver_command(d, 0x400, 0, driver_page(d, CX_AT_create_cq_in_pas / 8, AT_CQ), 16);
	*cqn = (u32)cx_get(d->out, create_cq_out, cqn);
	return status;
}

/* Creates a memory key; its entries must be in d->in after the context. */
static inline int driver_mkey(struct driver *d, u32 mode, bool ready, u64 base, u64 len, u32 entries, u32 *key)
{
	u8 *mkc = cx_ptr(d->in, create_mkey_in, memory_key_mkey_entry);
	u32 octowords = mode == 1 ? (entries + 1) / 2 : entries;
	int status;

	cx_set(mkc, mkc, free, !ready);
	cx_set(mkc, mkc, umr_en, 1);
	cx_set(mkc, mkc, access_mode_1_0, mode);
	cx_set(mkc, mkc, lr, 1);
	cx_set(mkc, mkc, lw, 1);
	cx_set(mkc, mkc, rr, 1);
	cx_set(mkc, mkc, rw, 1);
	cx_set(mkc, mkc, a, 1);
	cx_set(mkc, mkc, qpn, CX_ANY_QPN);
	cx_set(mkc, mkc, mkey_7_0, 0x5a);
	cx_set(mkc, mkc, pd, d->pdn);
	cx_set(mkc, mkc, start_addr, base);
	cx_set(mkc, mkc, len, len);
	cx_set(mkc, mkc, length64, !mode);
	cx_set(mkc, mkc, translations_octword_size, octowords);
	cx_set(d->in, create_mkey_in, translations_octword_actual_size, octowords);
	status = driver_command(d, 0x200, 0, CX_BYTES_create_mkey_in + octowords * 16, 16);
	*key = (u32)cx_get(d->out, create_mkey_out, mkey_index) << 8 | 0x5a;
	return status;
}

static inline int driver_eq(struct driver *d, u32 *eqn)
{
	u8 *ctx = cx_ptr(d->in, create_eq_in, eq_context_entry);
	int status;

	memset(d->in, 0, sizeof(d->in));
	memset(d->c.mem + AT_EQ, 1, 4096);
	cx_set(ctx, eqc, log_eq_size, LOG_EQ);
	cx_set(ctx, eqc, uar_page, d->uar);
	cx_set(ctx, eqc, intr, 1);
	wire_store(cx_ptr(d->in, create_eq_in, event_bitmask), 8, ~(1ull << CX_EVENT_COMMAND));
	status = driver_command(d, 0x301, 0, driver_page(d, CX_AT_create_eq_in_pas / 8, AT_EQ), 16);
	*eqn = (u32)cx_get(d->out, create_eq_out, eq_number);
	return status;
}

/* Initializes the HCA and creates the objects that others need. */
static inline int driver_start(struct driver *d)
{
	int status = 0;

	d->eqe = d->cqe = 0;
	memset(d->in, 0, sizeof(d->in));
	status |= driver_command(d, 0x104, 0, 16, 16);
	status |= driver_command(d, 0x102, 0, 16, 16);
	status |= driver_command(d, 0x802, 0, 16, 16);
	d->uar = (u32)cx_get(d->out, alloc_uar_out, uar);
	status |= driver_command(d, 0x800, 0, 16, 16);
	d->pdn = (u32)cx_get(d->out, alloc_pd_out, pd);
	memset(d->c.mem + AT_RECORDS, 0, 64);
	status |= driver_eq(d, &d->eqn);
	status |= driver_cq(d, LOG_CQ, &d->cqn);
	memset(d->in, 0, sizeof(d->in));
	status |= driver_mkey(d, 0, true, 0, 0, 0, &d->lkey);
	return status;
}

/*
 * Creates a queue pair with its queues in page @n: 4 receives of up to 4 SGEs, 16 send blocks. @srqn: for XRC, the
 * domain of a target; 0: an initiator, whose send queue begins the page.
 */
static inline int driver_qp(struct driver *d, u32 service, u32 n, u32 srqn, u32 *qpn)
{
	u8 *qpc = cx_ptr(d->in, create_qp_in, qpc);
	bool xrc = service == CX_QP_XRC;
	int status;

	memset(d->in, 0, sizeof(d->in));
	memset(d->c.mem + AT_WQ + n * 4096, 0, 4096);
	memset(d->c.mem + AT_RECORDS + 64 + n * 64, 0, 64);
	cx_set(qpc, qpc, st, service);
	cx_set(qpc, qpc, pd, d->pdn);
	cx_set(qpc, qpc, uar_page, d->uar);
	cx_set(qpc, qpc, user_index, d->user_index ? d->user_index : CX_NO_INDEX);
	cx_set(qpc, qpc, log_rq_size, LOG_RQ);
	cx_set(qpc, qpc, log_rq_stride, 2);
	cx_set(qpc, qpc, log_sq_size, LOG_SQ);
	cx_set(qpc, qpc, rq_type, srqn || xrc ? 1 : 0);
	cx_set(qpc, qpc, no_sq, srqn && xrc);
	cx_set(qpc, qpc, ulp_stateless_offload_mode, d->offload);
	cx_set(qpc, qpc, xrcd, xrc ? srqn : 0);
	cx_set(qpc, qpc, srqn_rmpn_xrqn, srqn);
	cx_set(qpc, qpc, cqn_snd, d->cqn);
	cx_set(qpc, qpc, cqn_rcv, d->cqn);
	cx_set(qpc, qpc, dbr_addr, driver_addr(AT_RECORDS + 64 + n * 64));
	status = driver_command(d, 0x500, 0, driver_page(d, CX_AT_create_qp_in_pas / 8, AT_WQ + n * 4096), 16);
	*qpn = (u32)cx_get(d->out, create_qp_out, qpn);
	return status;
}

static inline int driver_qp_destroy(struct driver *d, u32 qpn)
{
	memset(d->in, 0, sizeof(d->in));
	cx_set(d->in, destroy_qp_in, qpn, qpn);
	return driver_command(d, 0x501, 0, 16, 16);
}

/* Creates an SRQ in page 4, of 4 receives of up to 3 SGEs. @record: address of its doorbell record. */
static inline int driver_srq(struct driver *d, u64 record, u32 *srqn)
{
	u8 *ctx = cx_ptr(d->in, create_srq_in, srq_context_entry);
	int status;

	memset(d->in, 0, sizeof(d->in));
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d->pdn);
	cx_set(ctx, srqc, dbr_addr, record);
	status = driver_command(d, 0x700, 0, driver_page(d, CX_AT_create_srq_in_pas / 8, AT_WQ + 4 * 4096), 16);
	*srqn = (u32)cx_get(d->out, create_srq_out, srqn);
	return status;
}

static inline int driver_modify(struct driver *d, u16 op, u32 qpn, u32 optional)
{
	cx_set(d->in, rst2init_qp_in, qpn, qpn);
	cx_set(d->in, rst2init_qp_in, opt_param_mask, optional);
	return driver_command(d, op, 0, CX_BYTES_rst2init_qp_in, 16);
}

/* QUERY_QP: its context, in d->out. NULL: the command failed. */
static inline const u8 *driver_qp_context(struct driver *d, u32 qpn)
{
	memset(d->in, 0, sizeof(d->in));
	cx_set(d->in, query_qp_in, qpn, qpn);
	return driver_command(d, 0x50b, 0, 16, CX_BYTES_query_qp_out) ? NULL : cx_ptr(d->out, query_qp_out, qpc);
}

/* Modifies it to RTS, connected to @peer of the same port. */
static inline int driver_connect(struct driver *d, u32 qpn, u32 peer)
{
	u8 *qpc = cx_ptr(d->in, rst2init_qp_in, qpc), *path = cx_ptr(qpc, qpc, primary_address_path);
	int status;

	memset(d->in, 0, sizeof(d->in));
	cx_set(path, ads, vhca_port_num, 1);
	cx_set(path, ads, rlid, d->lid);
	cx_set(path, ads, ack_timeout, 14);
	cx_set(qpc, qpc, rlky, d->privileged);
	cx_set(qpc, qpc, rwe, 1);
	cx_set(qpc, qpc, rre, 1);
	cx_set(qpc, qpc, rae, 1);
	cx_set(qpc, qpc, mtu, 3);
	cx_set(qpc, qpc, remote_qpn, peer);
	cx_set(qpc, qpc, q_key, 0x11);
	cx_set(qpc, qpc, retry_count, 7);
	cx_set(qpc, qpc, rnr_retry, 7);
	status = driver_modify(d, 0x502, qpn, 0);
	status |= driver_modify(d, 0x503, qpn, 0);
	return status | driver_modify(d, 0x504, qpn, 0);
}

/* Send block @index of the queue pair in page @n. */
static inline u8 *driver_wqe(struct driver *d, u32 n, u32 index)
{
	return d->c.mem + AT_WQ + n * 4096 + (64u << LOG_RQ) + index % (1u << LOG_SQ) * 64;
}

/* Writes the control segment of a signaled request of @bytes. */
static inline u8 *driver_control(u8 *wqe, u32 qpn, u32 index, u8 op, u32 bytes)
{
	wire_store(wqe, 4, index << 8 | op);
	wire_store(wqe + 4, 4, qpn << 8 | bytes / 16);
	wqe[11] = 2 << 2;
	return wqe + 16;
}

static inline u8 *driver_data(u8 *seg, u32 bytes, u32 lkey, u64 addr)
{
	wire_store(seg, 4, bytes);
	wire_store(seg + 4, 4, lkey);
	wire_store(seg + 8, 8, addr);
	return seg + 16;
}

/* Rings the doorbell for send requests up to @index. */
static inline void driver_posted(struct driver *d, u32 n, u32 qpn, u32 index)
{
	wire_store(d->c.mem + AT_RECORDS + 64 + n * 64 + 4, 4, index);
	driver_poke64(d, d->uar * 4096ull + 0x800, (u64)index << 40 | qpn << 8);
}

/* Posts receive number @index. */
static inline void driver_recv(struct driver *d, u32 n, u32 index, u32 bytes, u64 addr)
{
	u8 *wqe = d->c.mem + AT_WQ + n * 4096 + index % (1u << LOG_RQ) * 64;

	driver_data(driver_data(wqe, bytes, d->lkey, addr), 0, 0x100, 0);
	wire_store(d->c.mem + AT_RECORDS + 64 + n * 64, 4, index + 1);
}

/* Consumes the next completion; NULL: none. */
static inline const u8 *driver_poll(struct driver *d)
{
	const u8 *e = d->c.mem + AT_CQ + d->cqe % (1u << LOG_CQ) * 64;

	if (e[63] >> 4 == 0xf || (e[63] & 1) != (d->cqe >> LOG_CQ & 1))
		return NULL;
	d->cqe++;
	wire_store(d->c.mem + AT_RECORDS, 4, d->cqe);
	return e;
}

/* Consumes the next event; NULL: none. */
static inline const u8 *driver_event(struct driver *d)
{
	const u8 *e = d->c.mem + AT_EQ + d->eqe % (1u << LOG_EQ) * 64;

	if ((e[63] & 1) != (d->eqe >> LOG_EQ & 1))
		return NULL;
	d->eqe++;
	return e;
}

static inline void driver_arm_eq(struct driver *d)
{
	driver_poke(d, d->uar * 4096ull + 0x40, d->eqn << 24 | (d->eqe & 0xffffff));
}

static inline void driver_arm_cq(struct driver *d, bool solicited)
{
	driver_poke64(d, d->uar * 4096ull + 0x20, (u64)((solicited ? 1u << 24 : 0) | d->cqe) << 32 | d->cqn);
}

#endif
