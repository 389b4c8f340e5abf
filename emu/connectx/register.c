// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Access registers of the adapter (ACCESS_REG): the port's capability mask, and the versions of the firmware. */
#include "emu/connectx/connectx_internal.h"

#define REG_WRITE 0  /* modifier of ACCESS_REG */
#define REG_DATA  16 /* bytes of the command before the register */
#define PCAP_PORT 17 /* bytes, in the command */
#define PCAP_MASK 20

#define MFRL_REBOOT   BIT(6) /* level of a reset */
#define MCQS_BOOT_IMG 1      /* identifier of the firmware's image, which is the only component */
#define MCQI_VERSION  1      /* type of information */

/*
 * PCAP: reads or writes the port's capability mask, in which the driver may only change the bits of software, such as
 * IsSM while issm is open.
 */
static int pcap_access(struct connectx *d, const struct cx_cmd *c)
{
	struct wire_port *w = hca_port(d->cfg.hca, d->cfg.port);
	u32 want = (u32)wire_load(c->in + PCAP_MASK, 4) & WIRE_PORT_CAPS_SOFTWARE;
	u32 have = w->attr.cap_mask & WIRE_PORT_CAPS_SOFTWARE;

	if (c->in[PCAP_PORT] != 1)
		return CX_BAD_PARAM;
	if (c->op_mod == REG_WRITE) {
		if (c->in_len < PCAP_MASK + 4)
			return CX_BAD_INP_LEN;
		d->caps_set = (d->caps_set | (want & ~have)) & want;
		w->ops->set_cap(w, want & ~have, have & ~want);
	}
	c->out[PCAP_PORT] = 1;
	wire_store(c->out + PCAP_MASK, 4, w->attr.cap_mask);
	return CX_OK;
}

/* MCAM: which registers of management there are. Groups of registers and of features that are not known have none. */
static int mcam_access(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *in = c->in + REG_DATA;
	u8 *mask = cx_ptr(c->out + REG_DATA, mcam_reg, mng_access_reg_cap_mask);

	cx_set(c->out + REG_DATA, mcam_reg, feature_group, cx_get(in, mcam_reg, feature_group));
	cx_set(c->out + REG_DATA, mcam_reg, access_reg_group, cx_get(in, mcam_reg, access_reg_group));
	if (!cx_get(in, mcam_reg, access_reg_group)) {
		cx_set(mask, mcam_access_reg, mcqi, 1);
		cx_set(mask, mcam_access_reg, mcqs, 1);
	}
	return CX_OK;
}

/* MFRL: how a new image of the firmware is activated. Without this answer Linux's driver logs an error. */
static int mfrl_access(struct connectx *d, const struct cx_cmd *c)
{
	cx_set(c->out + REG_DATA, mfrl_reg, reset_level, MFRL_REBOOT);
	return CX_OK;
}

/* MCQS: the state of a component. The image is idle: no other one is stored. */
static int mcqs_access(struct connectx *d, const struct cx_cmd *c)
{
	if (cx_get(c->in + REG_DATA, mcqs_reg, component_index))
		return CX_BAD_PARAM;
	cx_set(c->out + REG_DATA, mcqs_reg, last_index_flag, 1);
	cx_set(c->out + REG_DATA, mcqs_reg, identifier, MCQS_BOOT_IMG);
	return CX_OK;
}

/* MCQI: the version of a component. */
static int mcqi_access(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *in = c->in + REG_DATA;
	u8 *out = c->out + REG_DATA;

	if (cx_get(in, mcqi_reg, component_index) || cx_get(in, mcqi_reg, info_type) != MCQI_VERSION ||
	    cx_get(in, mcqi_reg, data_size) < CX_BYTES_mcqi_version)
		return CX_BAD_PARAM;
	cx_set(out, mcqi_reg, info_type, MCQI_VERSION);
	cx_set(out, mcqi_reg, info_size, CX_BYTES_mcqi_version);
	cx_set(out, mcqi_reg, data_size, CX_BYTES_mcqi_version);
	cx_set(cx_ptr(out, mcqi_reg, data), mcqi_version, version, CX_FW_VERSION);
	return CX_OK;
}

/* The node keeps the description of the topology, not the one that rdma-ndd of the guest writes. */
static int no_effect(struct connectx *d, const struct cx_cmd *c)
{
	return CX_OK;
}

static const struct {
	u32 id;
	cx_command *access;
	bool read_only;
} registers[] = {
	{ 0x5001, pcap_access },       { 0x6001, no_effect }, /* node description */
	{ 0x7004, no_effect },                                /* host endianness */
	{ 0x9028, mfrl_access, true }, { 0x9060, mcqs_access, true },
	{ 0x9061, mcqi_access, true }, { 0x907f, mcam_access, true },
};

int cx_access_reg(struct connectx *d, const struct cx_cmd *c)
{
	u32 id = (u32)cx_get(c->in, access_register_in, register_id), i;

	for (i = 0; i < ARRAY_SIZE(registers); i++)
		if (registers[i].id == id)
			return registers[i].read_only && c->op_mod == REG_WRITE ? CX_BAD_PARAM
										: registers[i].access(d, c);
	return CX_BAD_PARAM;
}
