// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The command interface: a queue of 32 entries in guest memory, and a doorbell with a bit for each. An entry has the
 * first 16 bytes of input and of output; the rest is in lists of mailboxes of 512 bytes. All input is copied before it
 * is parsed.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/log.h"

#define IN_MAX     ((1u << 23) + 4096u) /* CREATE_MKEY with a million pages */
#define OUT_MAX    (1u << 16)
#define TYPE_PCI   7
#define IN_OUT_MIN 8u  /* bytes: opcode and modifier, or status and syndrome */
#define HEAD       16u /* bytes in the entry */
#define BOX_DATA   512u
#define OWNER_HW   1
#define SYNDROME   0x6d75u /* of all failures; only the status differs */
#define BOX_MASK   0x1ffull

enum delivery {
	DELIVERED = 0,
	TOKEN_ERR = 2,
	BLOCK_ERR = 3,
	OUT_PTR_ERR = 4,
	IN_PTR_ERR = 5,
	FIRMWARE_ERR = 6,
	IN_LENGTH_ERR = 7,
	OUT_LENGTH_ERR = 8,
	DESCRIPTOR_ERR = 0x10,
};

struct entry {
	u8 type, reserved[3];
	__be32 in_len;
	__be64 in_box;
	u8 in[HEAD], out[HEAD];
	__be64 out_box;
	__be32 out_len;
	u8 token, signature, reserved2, status_owner;
};
static_assert(sizeof(struct entry) == 64, "an entry of the command queue");

struct box {
	u8 data[BOX_DATA];
	u8 reserved[48];
	__be64 next;
	__be32 number;
	u8 reserved2, token, control_signature, signature;
};
static_assert(sizeof(struct box) == 576, "a mailbox");

/* ---- commands without state, and those that only allocate a number ---- */

static int no_effect(struct connectx *d, const struct cx_cmd *c)
{
	return CX_OK;
}

/* The adapter needs no pages from the driver. */
static int query_pages(struct connectx *d, const struct cx_cmd *c)
{
	cx_set(c->out, query_pages_out, num_pages, 0);
	return CX_OK;
}

static int enable_hca(struct connectx *d, const struct cx_cmd *c)
{
	d->enabled = true;
	d->log_uar_page = d->issi = 0;
	return CX_OK;
}

static int disable_hca(struct connectx *d, const struct cx_cmd *c)
{
	cx_stop(d);
	d->enabled = false;
	return CX_OK;
}

static int init_hca(struct connectx *d, const struct cx_cmd *c)
{
	return cx_start(d);
}

/* All profiles: a driver that requests a forced teardown has not destroyed its objects. */
static int teardown_hca(struct connectx *d, const struct cx_cmd *c)
{
	cx_stop(d);
	return CX_OK;
}

static int alloc_pd(struct connectx *d, const struct cx_cmd *c)
{
	u32 pdn;
	int err = hca_pd_alloc(d->verbs.ctx, &pdn);

	if (!err)
		cx_set(c->out, alloc_pd_out, pd, pdn);
	return err;
}

static int dealloc_pd(struct connectx *d, const struct cx_cmd *c)
{
	return cx_destroyed(hca_pd_free(d->verbs.ctx, (u32)cx_get(c->in, dealloc_pd_in, pd)));
}

static int alloc_xrcd(struct connectx *d, const struct cx_cmd *c)
{
	u32 n;
	int err = hca_xrcd_alloc(d->verbs.ctx, &n);

	if (!err)
		cx_set(c->out, alloc_xrcd_out, xrcd, n);
	return err;
}

static int dealloc_xrcd(struct connectx *d, const struct cx_cmd *c)
{
	return cx_destroyed(hca_xrcd_free(d->verbs.ctx, (u32)cx_get(c->in, dealloc_xrcd_in, xrcd)));
}

/* ---- the table ---- */

/* Phases of a driver's start: ENABLE_HCA enables the HCA, INIT_HCA initializes it. */
enum hca_phase {
	DISABLED,
	ENABLED,
	INITIALIZED,
};

static enum hca_phase hca_phase(const struct connectx *d)
{
	return d->verbs.ctx ? INITIALIZED : d->enabled ? ENABLED : DISABLED;
}

static const struct {
	u16 op;
	const char *name;
	cx_command *fn;
	u16 in, out;         /* minimum lengths in bytes */
	enum hca_phase from; /* in an earlier phase: BAD_SYS_STATE */
} commands[] = {
	{ 0x100, "QUERY_HCA_CAP", cx_query_hca_cap, 8, CX_BYTES_query_hca_cap_out, ENABLED },
	{ 0x101, "QUERY_ADAPTER", cx_query_adapter, 8, CX_BYTES_query_adapter_out, ENABLED },
	{ 0x102, "INIT_HCA", init_hca, 8, 8, ENABLED },
	{ 0x103, "TEARDOWN_HCA", teardown_hca, 8, 8, ENABLED },
	{ 0x104, "ENABLE_HCA", enable_hca, 8, 8, DISABLED },
	{ 0x105, "DISABLE_HCA", disable_hca, 8, 8, DISABLED },
	{ 0x107, "QUERY_PAGES", query_pages, 8, 8, ENABLED },
	{ 0x108, "MANAGE_PAGES", no_effect, 8, 8, ENABLED },
	{ 0x109, "SET_HCA_CAP", cx_set_hca_cap, 8, 8, ENABLED },
	{ 0x10a, "QUERY_ISSI", cx_query_issi, 8, CX_BYTES_query_issi_out, ENABLED },
	{ 0x10b, "SET_ISSI", cx_set_issi, 16, 8, ENABLED },
	{ 0x10d, "SET_DRIVER_VERSION", no_effect, 8, 8, ENABLED },
	{ 0x200, "CREATE_MKEY", cx_create_mkey, CX_BYTES_create_mkey_in, 8, INITIALIZED },
	{ 0x201, "QUERY_MKEY", cx_query_mkey, 8, CX_BYTES_query_mkey_out, INITIALIZED },
	{ 0x202, "DESTROY_MKEY", cx_destroy_mkey, 8, 8, INITIALIZED },
	{ 0x203, "QUERY_SPECIAL_CONTEXTS", cx_special_contexts, 8, 8, INITIALIZED },
	{ 0x204, "PAGE_FAULT_RESUME", cx_page_fault_resume, CX_BYTES_page_fault_resume_in, 8, INITIALIZED },
	{ 0x301, "CREATE_EQ", cx_create_eq, CX_BYTES_create_eq_in, 8, INITIALIZED },
	{ 0x302, "DESTROY_EQ", cx_destroy_eq, 8, 8, INITIALIZED },
	{ 0x303, "QUERY_EQ", cx_query_eq, 8, CX_BYTES_query_eq_out, INITIALIZED },
	{ 0x400, "CREATE_CQ", cx_create_cq, CX_BYTES_create_cq_in, 8, INITIALIZED },
	{ 0x401, "DESTROY_CQ", cx_destroy_cq, 8, 8, INITIALIZED },
	{ 0x402, "QUERY_CQ", cx_query_cq, 8, CX_BYTES_query_cq_out, INITIALIZED },
	{ 0x403, "MODIFY_CQ", cx_modify_cq, CX_BYTES_modify_cq_in, 8, INITIALIZED },
	{ 0x500, "CREATE_QP", cx_create_qp, CX_BYTES_create_qp_in, 8, INITIALIZED },
	{ 0x501, "DESTROY_QP", cx_destroy_qp, 8, 8, INITIALIZED },
	{ 0x502, "RST2INIT_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x503, "INIT2RTR_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x504, "RTR2RTS_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x505, "RTS2RTS_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x506, "SQERR2RTS_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x507, "2ERR_QP", cx_modify_qp, 8, 8, INITIALIZED },
	{ 0x50a, "2RST_QP", cx_modify_qp, 8, 8, INITIALIZED },
	{ 0x50b, "QUERY_QP", cx_query_qp, 8, CX_BYTES_query_qp_out, INITIALIZED },
	{ 0x50c, "SQD_RTS_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x50d, "MAD_IFC", cx_mad_ifc, CX_BYTES_mad_ifc_in, CX_BYTES_mad_ifc_out, INITIALIZED },
	{ 0x50e, "INIT2INIT_QP", cx_modify_qp, CX_BYTES_rst2init_qp_in, 8, INITIALIZED },
	{ 0x700, "CREATE_SRQ", cx_create_srq, CX_BYTES_create_srq_in, 8, INITIALIZED },
	{ 0x701, "DESTROY_SRQ", cx_destroy_srq, 8, 8, INITIALIZED },
	{ 0x702, "QUERY_SRQ", cx_query_srq, 8, CX_BYTES_query_srq_out, INITIALIZED },
	{ 0x703, "ARM_RQ", cx_arm_rq, 8, 8, INITIALIZED },
	{ 0x705, "CREATE_XRC_SRQ", cx_create_xrc_srq, CX_BYTES_create_xrc_srq_in, 8, INITIALIZED },
	{ 0x706, "DESTROY_XRC_SRQ", cx_destroy_xrc_srq, 8, 8, INITIALIZED },
	{ 0x707, "QUERY_XRC_SRQ", cx_query_xrc_srq, 8, CX_BYTES_query_xrc_srq_out, INITIALIZED },
	{ 0x708, "ARM_XRC_SRQ", cx_arm_xrc_srq, 8, 8, INITIALIZED },
	{ 0x762, "QUERY_HCA_VPORT_CONTEXT", cx_query_vport, 8, CX_BYTES_query_hca_vport_context_out, INITIALIZED },
	/* Its counters are all 0: the capabilities (vnic_env_*) offer none. */
	{ 0x76f, "QUERY_VNIC_ENV", no_effect, 16, CX_BYTES_query_vnic_env_out, INITIALIZED },
	{ 0x771, "ALLOC_Q_COUNTER", cx_alloc_q_counter, 8, 8, INITIALIZED },
	{ 0x772, "DEALLOC_Q_COUNTER", cx_dealloc_q_counter, 8, 8, INITIALIZED },
	{ 0x773, "QUERY_Q_COUNTER", cx_query_q_counter, CX_BYTES_query_q_counter_in, CX_BYTES_query_q_counter_out,
	  INITIALIZED },
	{ 0x800, "ALLOC_PD", alloc_pd, 8, 8, INITIALIZED },
	{ 0x801, "DEALLOC_PD", dealloc_pd, 8, 8, INITIALIZED },
	{ 0x802, "ALLOC_UAR", cx_alloc_uar, 8, 8, INITIALIZED },
	{ 0x803, "DEALLOC_UAR", cx_dealloc_uar, 8, 8, INITIALIZED },
	{ 0x805, "ACCESS_REG", cx_access_reg, 8, 8, ENABLED },
	{ 0x806, "ATTACH_TO_MCG", cx_attach_mcg, CX_BYTES_attach_to_mcg_in, 8, INITIALIZED },
	{ 0x807, "DETACH_FROM_MCG", cx_detach_mcg, CX_BYTES_attach_to_mcg_in, 8, INITIALIZED },
	{ 0x80d, "NOP", no_effect, 8, 8, DISABLED },
	{ 0x80e, "ALLOC_XRCD", alloc_xrcd, 8, 8, INITIALIZED },
	{ 0x80f, "DEALLOC_XRCD", dealloc_xrcd, 8, 8, INITIALIZED },
	{ 0x90c, "CREATE_RMP", cx_create_rmp, CX_BYTES_create_rmp_in, 8, INITIALIZED },
	{ 0x90d, "MODIFY_RMP", cx_modify_rmp, CX_BYTES_modify_rmp_in, 8, INITIALIZED },
	{ 0x90e, "DESTROY_RMP", cx_destroy_rmp, 8, 8, INITIALIZED },
	{ 0x90f, "QUERY_RMP", cx_query_rmp, 8, CX_BYTES_query_rmp_out, INITIALIZED },
	{ 0x939, "ALLOC_FLOW_COUNTER", cx_alloc_flow_counter, 16, 16, INITIALIZED },
	{ 0x93a, "DEALLOC_FLOW_COUNTER", cx_dealloc_flow_counter, 16, 8, INITIALIZED },
	{ 0x93b, "QUERY_FLOW_COUNTER", cx_query_flow_counter, CX_BYTES_query_flow_counter_in,
	  CX_BYTES_query_flow_counter_out + CX_BYTES_traffic_counter, INITIALIZED },
};

/*
 * Fields that name a port, a virtual port or a function. The function has one port, number 1, which a driver need not
 * name where the field is for adapters of two ports; it manages no other function or virtual port (vport_group_manager
 * is 0).
 */
static const struct {
	u16 op;
	struct wire_field field;
	u8 least, most;
} selectors[] = {
	{ 0x100, CX_FIELD(query_hca_cap_in, other_function), 0, 0 },
	{ 0x104, CX_FIELD(enable_hca_in, function_id), 0, 0 },
	{ 0x105, CX_FIELD(disable_hca_in, function_id), 0, 0 },
	{ 0x107, CX_FIELD(query_pages_in, function_id), 0, 0 },
	{ 0x108, CX_FIELD(manage_pages_in, function_id), 0, 0 },
	{ 0x109, CX_FIELD(set_hca_cap_in, other_function), 0, 0 },
	{ 0x50d, CX_FIELD(mad_ifc_in, port), 1, 1 },
	{ 0x762, CX_FIELD(query_hca_vport_context_in, other_vport), 0, 0 },
	{ 0x762, CX_FIELD(query_hca_vport_context_in, port_num), 0, 1 },
	{ 0x76f, CX_FIELD(query_vnic_env_in, other_vport), 0, 0 },
};

static bool selects_this_function(const struct cx_cmd *c)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(selectors); i++) {
		u64 v = wire_get(c->in, selectors[i].field);

		if (selectors[i].op == c->op && (v < selectors[i].least || v > selectors[i].most))
			return false;
	}
	return true;
}

u32 cx_command_total(void)
{
	return ARRAY_SIZE(commands);
}

const char *cx_command_name(u32 n)
{
	return n < ARRAY_SIZE(commands) ? commands[n].name : NULL;
}

u16 cx_command_op(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcasecmp(commands[i].name, name))
			return commands[i].op;
	}
	return 0;
}

static int status_of(int err)
{
	switch (err) {
	case -EINVAL:
	case -EFAULT:
	case -EEXIST:
		return CX_BAD_PARAM;
	case -ENOENT:
		return CX_BAD_RES;
	case -EBUSY:
		return CX_RES_BUSY;
	case -ENOMEM:
	case -ENOSPC:
		return CX_LIM;
	case -EOPNOTSUPP:
		return CX_BAD_OP;
	default:
		return err < 0 ? CX_INT_ERR : err;
	}
}

static int command_run(struct connectx *d, const struct cx_cmd *c)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].op != c->op)
			continue;
		d->command_count[i]++;
		if (c->in_len < commands[i].in)
			return CX_BAD_INP_LEN;
		if (c->out_len < commands[i].out)
			return CX_BAD_OUTP_LEN;
		if (hca_phase(d) < commands[i].from)
			return CX_BAD_SYS_STATE;
		if (!selects_this_function(c))
			return CX_BAD_PARAM;
		return status_of(commands[i].fn(d, c));
	}
	cx_count(d, CX_CTR_UNKNOWN_COMMANDS);
	return CX_BAD_OP;
}

struct cx_pages cx_command_pages(const struct cx_cmd *c, u32 at, u32 log_page_size, u32 page_offset)
{
	return (struct cx_pages){
		.list = c->in + at,
		.n = c->in_len > at ? (c->in_len - at) / (u32)sizeof(u64) : 0,
		.log_page_size = log_page_size,
		.page_offset = page_offset,
	};
}

/* ---- the queue ---- */

/* Reads @len bytes of input from the mailbox list, after the HEAD bytes in the entry. */
static enum delivery boxes_read(struct connectx *d, const struct entry *e, u8 *in, u32 len)
{
	u64 at = be64_to_cpu(e->in_box);
	u32 done, n;
	struct box box;

	for (done = HEAD, n = 0; done < len; n++) {
		u32 part = min(len - done, BOX_DATA);

		if (!at || at & BOX_MASK || vfio_dma_read(d->vfio, at, &box, sizeof(box)))
			return IN_PTR_ERR;
		if (box.token != e->token)
			return TOKEN_ERR;
		if (be32_to_cpu(box.number) != n)
			return BLOCK_ERR;
		memcpy(in + done, box.data, part);
		done += part;
		at = be64_to_cpu(box.next);
	}
	return DELIVERED;
}

static u8 xor_bytes(const void *p, size_t n)
{
	const u8 *b = p;
	u8 x = 0;

	while (n--)
		x ^= *b++;
	return x;
}

static enum delivery boxes_write(struct connectx *d, const struct entry *e, const u8 *out, u32 len)
{
	u64 at = be64_to_cpu(e->out_box);
	u32 done;
	struct box box;

	for (done = HEAD; done < len;) {
		u32 part = min(len - done, BOX_DATA);
		size_t control = offsetof(struct box, reserved);

		if (!at || at & BOX_MASK || vfio_dma_read(d->vfio, at, &box, sizeof(box)))
			return OUT_PTR_ERR;
		if (box.token != e->token)
			return TOKEN_ERR;
		memcpy(box.data, out + done, part);
		box.control_signature = 0;
		box.control_signature =
			(u8)~xor_bytes((u8 *)&box + control, offsetof(struct box, control_signature) - control);
		box.signature = 0;
		box.signature = (u8)~xor_bytes(&box, sizeof(box));
		if (vfio_dma_write(d->vfio, at, &box, sizeof(box)))
			return OUT_PTR_ERR;
		done += part;
		at = be64_to_cpu(box.next);
	}
	return DELIVERED;
}

/* Executes the command of an entry; with a @fault, it fails with that status instead. */
static enum delivery entry_run(struct connectx *d, struct entry *e, u8 fault)
{
	u32 in_len = be32_to_cpu(e->in_len), out_len = be32_to_cpu(e->out_len);
	struct cx_cmd c = { .in_len = in_len, .out_len = out_len };
	enum delivery how;
	u8 *in, *out;
	int status;

	if (e->type != TYPE_PCI)
		return DESCRIPTOR_ERR;
	if (in_len < IN_OUT_MIN || in_len > IN_MAX)
		return IN_LENGTH_ERR;
	if (out_len < IN_OUT_MIN || out_len > OUT_MAX)
		return OUT_LENGTH_ERR;
	in = calloc(1, in_len + CX_IN_SLACK);
	out = calloc(1, out_len + CX_IN_SLACK);
	if (!in || !out) {
		how = FIRMWARE_ERR;
		goto out;
	}
	memcpy(in, e->in, HEAD);
	how = boxes_read(d, e, in, in_len);
	if (how)
		goto out;
	c.in = in;
	c.out = out;
	c.op = (u16)wire_load(in, 2);
	c.op_mod = (u16)wire_load(in + 6, 2);
	cx_count(d, CX_CTR_COMMANDS);
	cx_corpus_command(in, in_len, out_len);
	status = fault ?: command_run(d, &c);
	if (status) {
		cx_count(d, CX_CTR_BAD_COMMANDS);
		log_at(LOG_DEBUG, d->cfg.name, "the guest's command %#x (%#x): status %#x", c.op, c.op_mod, status);
		memset(out, 0, out_len);
		out[0] = (u8)status;
		wire_store(out + 4, 4, SYNDROME);
	}
	memcpy(e->out, out, HEAD);
	how = boxes_write(d, e, out, out_len);
out:
	free(in);
	free(out);
	return how;
}

static void late_timer_set(struct connectx *d)
{
	u64 first = UINT64_MAX;
	u32 i;

	for (i = 0; i < CX_SLOTS; i++) {
		if (d->late & BIT(i))
			first = min(first, d->late_until[i]);
	}
	if (d->late)
		loop_timer_set(d->loop, &d->late_timer, first);
	else
		loop_timer_cancel(&d->late_timer);
}

static void command_delay(struct connectx *d, u32 index, u64 until)
{
	d->late |= BIT(index);
	d->late_until[index] = until;
	late_timer_set(d);
}

void cx_commands_late(struct loop_timer *t, struct now now)
{
	struct connectx *d = container_of(t, struct connectx, late_timer);
	u32 i, over = 0;

	for (i = 0; i < CX_SLOTS; i++) {
		if (d->late & BIT(i) && d->late_until[i] <= now.ns)
			over |= BIT(i);
	}
	d->late &= ~over;
	d->waited |= over;
	d->due |= over;
	late_timer_set(d);
	cx_commands(d);
}

/* Discards all pending commands, at a reset or when the driver turns the interface off. */
void cx_commands_forget(struct connectx *d)
{
	d->due = d->late = d->waited = d->turn = 0;
	loop_timer_cancel(&d->late_timer);
	loop_task_cancel(&d->resume_task);
}

static void command_serve(struct connectx *d, u32 index)
{
	u64 at = d->command_queue + index * sizeof(struct entry);
	struct cx_eq *eq = cx_eq_of_type(d, CX_EVENT_COMMAND);
	u32 eqn = eq ? eq->eqn : 0;
	bool waited = d->waited & BIT(index);
	u8 fault_status = CX_OK;
	enum delivery how;
	struct entry e;
	u64 delay = 0;

	d->waited &= ~BIT(index);
	/* Without share=on QEMU passes no file, or one of which the guest has a private copy: zeros. */
	if (vfio_dma_read(d->vfio, at, &e, sizeof(e)) || !(e.status_owner & OWNER_HW)) {
		if (!d->counter[CX_CTR_UNDELIVERED])
			log_at(LOG_WARN, d->cfg.name,
			       "the guest's commands are not in memory that QEMU shares (share=on)");
		cx_count(d, CX_CTR_UNDELIVERED);
		return;
	}
	switch (waited ? CX_FATE_GOES : cx_fault_command(d, (u16)wire_load(e.in, 2), &fault_status, &delay)) {
	case CX_FATE_LATE:
		command_delay(d, index, loop_now(d->loop).ns + delay);
		return;
	case CX_FATE_LOST:
		return;
	default:
		break;
	}
	d->turn += min(be32_to_cpu(e.in_len), IN_MAX) / CX_TURN_BYTES;
	how = entry_run(d, &e, fault_status);
	if (how)
		cx_count(d, CX_CTR_UNDELIVERED);
	e.status_owner = (u8)(how << 1);
	e.signature = 0;
	e.signature = (u8)~xor_bytes(&e, sizeof(e));
	/* The owner bit is in the last byte, which is written last. */
	vfio_dma_write(d->vfio, at, &e, sizeof(e) - 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	vfio_dma_write(d->vfio, at + sizeof(e) - 1, &e.status_owner, 1);
	/* The command may have destroyed the event queue. The driver polls for the command that creates it. */
	if (eq && d->eq[eqn] == eq)
		cx_event_command(d, eq, BIT(index));
}

static bool serving;

bool cx_commands_serving(void)
{
	return serving;
}

/*
 * Budget per turn, however many doorbells the turn has: many commands, and long mailbox lists, must not starve others.
 * A driver that waits for each command has it executed by its doorbell.
 */
void cx_commands(struct connectx *d)
{
	serving = true;
	while (d->due && d->turn < CX_COMMANDS) {
		u32 i = (u32)__builtin_ctz(d->due);

		d->due &= ~BIT(i);
		d->turn++;
		command_serve(d, i);
	}
	serving = false;
	if (d->turn >= CX_COMMANDS)
		cx_resume_later(d);
}
