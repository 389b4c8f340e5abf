// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The adapter's firmware as a target of the fault engine: commands that fail, are delayed or time out, and the health
 * buffer that the driver polls.
 */
#include "emu/connectx/connectx_internal.h"
#include "emu/lib/clock.h"

enum firmware_key {
	F_COMMAND = FAULT_OWN,
	F_STATUS,
	F_SYNDROME,
	F_RFR,
	F_STOPPED,
};

struct firmware_fault {
	struct fault ft; /* must be first */
	u64 since;       /* time of activation */
	u16 op;          /* 0: any command */
	u8 status, syndrome;
	bool rfr, stopped;
};

static struct firmware_fault *firmware_fault(struct fault *ft)
{
	return container_of(ft, struct firmware_fault, ft);
}

static const struct firmware_fault *firmware_fault_const(const struct fault *ft)
{
	return container_of(ft, const struct firmware_fault, ft);
}

struct firmware_name {
	const char *name;
	u8 value;
};

static bool parse_name(u8 *to, const char *value, const struct firmware_name *names, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (!strcasecmp(names[i].name, value)) {
			*to = names[i].value;
			return true;
		}
	}
	return false;
}

static bool parse_status(void *to, const char *value)
{
	static const struct firmware_name names[] = {
		{ "INTERNAL_ERR", CX_INT_ERR },
		{ "BAD_OP", CX_BAD_OP },
		{ "BAD_PARAM", CX_BAD_PARAM },
		{ "BAD_SYS_STATE", CX_BAD_SYS_STATE },
		{ "BAD_RES", CX_BAD_RES },
		{ "RES_BUSY", CX_RES_BUSY },
		{ "LIM_ERR", CX_LIM },
		{ "BAD_RES_STATE", CX_BAD_RES_STATE },
		{ "NO_RES_ERR", CX_NO_RES },
		{ "BAD_QP_STATE", CX_BAD_QP_STATE },
		{ "BAD_PKT", CX_BAD_PKT },
		{ "BAD_SIZE", CX_BAD_SIZE },
		{ "BAD_INP_LEN", CX_BAD_INP_LEN },
		{ "BAD_OUTP_LEN", CX_BAD_OUTP_LEN },
	};

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

static bool parse_syndrome(void *to, const char *value)
{
	static const struct firmware_name names[] = {
		{ "FW_ERR", 0x1 },        { "IRISC_ERR", 0x7 },  { "HW_UNRECOVERABLE_ERR", 0x8 }, { "CRC_ERR", 0x9 },
		{ "FETCH_PCI_ERR", 0xa }, { "HW_FTL_ERR", 0xb }, { "EQ_OVERRUN_ERR", 0xc },       { "EQ_ERR", 0xd },
		{ "EQ_INV", 0xe },        { "FFSER_ERR", 0xf },  { "HIGH_TEMP", 0x10 },
	};

	return parse_name(to, value, names, ARRAY_SIZE(names));
}

static bool parse_command(void *to, const char *value)
{
	*(u16 *)to = cx_command_op(value);
	return *(u16 *)to;
}

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, firmware_fault, member, ##__VA_ARGS__)
#define BY(fn, text)                 .parse = fn, .wants = text
#define OWN(key)                     [F_##key - FAULT_OWN]
static const struct spec_field keys[] = {
	OWN(COMMAND) =
		KEY("command", SPEC_OTHER, op, BY(parse_command, "a command such as CREATE_QP or QUERY_HCA_CAP")),
	OWN(STATUS) =
		KEY("status", SPEC_OTHER, status, BY(parse_status, "a command's status such as BAD_RES or LIM_ERR")),
	OWN(SYNDROME) = KEY("syndrome", SPEC_OTHER, syndrome,
			    BY(parse_syndrome, "a syndrome such as FW_ERR, HW_UNRECOVERABLE_ERR or HIGH_TEMP")),
	OWN(RFR) = KEY("rfr", SPEC_FLAG, rfr),
	OWN(STOPPED) = KEY("stopped", SPEC_FLAG, stopped),
};

static int health_check(struct fault *ft, char *err, size_t err_len)
{
	if (fault_given(ft, F_RFR) && !fault_given(ft, F_SYNDROME))
		return spec_refuse(err, err_len, "rfr: a request for a reset needs syndrome=");
	if (!fault_given(ft, F_SYNDROME) && !fault_given(ft, F_STOPPED))
		return spec_refuse(err, err_len, "health: it needs syndrome= or stopped");
	return 0;
}

static void health_apply(struct fault *ft)
{
	firmware_fault(ft)->since = clock_read();
}

#define COMMANDS (FAULT_PICK_KEYS | BIT_ULL(F_COMMAND))
static const struct fault_kind firmware_kinds[] = {
	{ .name = "command-status", .at = CX_FATE_FAILS, .required = BIT_ULL(F_STATUS), .allowed = COMMANDS },
	{ .name = "command-delay", .at = CX_FATE_LATE, .required = BIT_ULL(FAULT_TIME), .allowed = COMMANDS },
	{ .name = "command-timeout", .at = CX_FATE_LOST, .allowed = COMMANDS },
	{ .name = "health",
	  .prepare = health_check,
	  .apply = health_apply,
	  .allowed = BIT_ULL(F_SYNDROME) | BIT_ULL(F_RFR) | BIT_ULL(F_STOPPED) | BIT_ULL(FAULT_FOR) },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { firmware_kinds, NULL };

const struct fault_target connectx_fault_target = {
	.of = "of a ConnectX ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct firmware_fault),
};

static bool concerns_command(const struct fault *ft, const void *op)
{
	return !fault_given(ft, F_COMMAND) || firmware_fault_const(ft)->op == *(const u16 *)op;
}

enum cx_fate cx_fault_command(struct connectx *d, u16 op, u8 *status, u64 *delay)
{
	const struct fault *ft = d->cfg.faults ? fault_at(d->cfg.faults, FAULT_AT_ANY, concerns_command, &op) : NULL;

	if (!ft)
		return CX_FATE_GOES;
	*status = firmware_fault_const(ft)->status;
	*delay = ft->time;
	return (enum cx_fate)ft->kind->at;
}

struct cx_health cx_fault_health(const struct connectx *d)
{
	struct cx_health h = { .now = clock_read() };
	const struct fault *ft;

	if (!d->cfg.faults)
		return h;
	list_for_each (ft, &d->cfg.faults->faults, link) {
		const struct firmware_fault *f = firmware_fault_const(ft);

		if (ft->kind->apply != health_apply || !ft->applied)
			continue;
		if (f->syndrome)
			h.syndrome = f->syndrome;
		h.rfr |= f->rfr;
		if (f->stopped)
			h.now = min(h.now, f->since);
	}
	return h;
}

void cx_fault_reset(struct connectx *d)
{
	struct fault *ft;

	if (!d->cfg.faults)
		return;
	list_for_each (ft, &d->cfg.faults->faults, link) {
		if (ft->kind->apply != health_apply || !ft->applied || !firmware_fault(ft)->rfr)
			continue;
		loop_timer_cancel(&ft->timer);
		fault_end(ft);
	}
}
