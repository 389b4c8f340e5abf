// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs that the HCA does not know: QP0 and QP1, and UMR queue pairs, which execute memory key requests. MADs of
 * commands.
 */
#include "emu/connectx/connectx_internal.h"
#include "emu/wire/mad.h"
#include "emu/wire/pma.h"
#include "emu/wire/smp.h"

static struct mad_port *special_mad(const struct verbs *v, u8 port)
{
	return container_of(v, const struct connectx, verbs)->cfg.mad;
}

static void special_count(struct verbs *v, enum verbs_mad_count c)
{
	static const enum cx_counter counters[] = { [VERBS_MAD_OUT] = CX_CTR_MADS_OUT,
						    [VERBS_MAD_IN] = CX_CTR_MADS_IN,
						    [VERBS_MAD_DROPPED] = CX_CTR_MADS_DROPPED };

	cx_count(cx_of(v), counters[c]);
}

static void special_event(struct verbs *v, const struct hca_event *ev)
{
	cx_event_raise(cx_of(v), ev);
}

static void special_resume(struct verbs *v)
{
	cx_resume_later(cx_of(v));
}

/* Executes or flushes the next request of a UMR queue pair. */
static bool umr_request(struct verbs_qp *base)
{
	static u8 wqe[CX_WQE_BB * (CX_WQE_BBS + 1)] __attribute__((aligned(8)));
	struct connectx *d = cx_of(base->verbs);
	u16 index = 0;
	int got = cx_sq_take(cx_qp_of(base), wqe, &index);
	u8 status;

	if (!got)
		return false;
	base->special.turn++;
	if (got > 0)
		base->special.turn += cx_umr_bytes(d, wqe, (u32)got) / CX_TURN_UMR;
	if (base->special.state != HCA_QPS_RTS)
		status = HCA_WC_WR_FLUSH_ERR;
	else
		status = got < 0 ? HCA_WC_LOC_QP_OP_ERR : cx_umr_run(d, wqe, (u32)got);
	verbs_special_sent(base, CX_TOKEN(index, got > 0 ? wqe[3] : 0), status, true);
	return true;
}

const struct verbs_special_ops cx_special_ops = {
	.mad = special_mad,
	.qpn = CX_QPN_SMI,
	.count = special_count,
	.event = special_event,
	.resume = special_resume,
	.request = umr_request,
};

/*
 * Translates the port number in a MAD: the function's port is 1, whatever its number at the host, and the driver's MADs
 * and their responses use that. Directed-route SMPs are not translated: their port numbers are the node's.
 */
static void mad_set_port(u8 *mad, u8 from, u8 to)
{
	u8 *data = mad + MAD_GMP_DATA;
	u64 attr = wire_get(mad, MAD_ATTR_ID), modifier = wire_get(mad, MAD_ATTR_MOD);

	switch (wire_get(mad, MAD_CLASS)) {
	case MAD_CLASS_SUBN_LID:
		if ((attr == SMP_ATTR_PORT_INFO || attr == SMP_ATTR_MLNX_EXT_PORT_INFO) &&
		    (modifier & PORTINFO_MOD_PORT_MASK) == from)
			wire_set(mad, MAD_ATTR_MOD, (modifier & ~(u64)PORTINFO_MOD_PORT_MASK) | to);
		break;
	case MAD_CLASS_PERF:
		if (attr != PMA_ATTR_CLASS_PORT_INFO && wire_get(data, PMA_PORT_SELECT) == from)
			wire_set(data, PMA_PORT_SELECT, to);
		break;
	default:
		break;
	}
}

#define IGNORE_MKEY BIT(0) /* in the modifier: the MAD is the driver's own, not a user's or a peer's */

/*
 * MAD_IFC: the port's agents process the MAD, as the adapter's firmware does. The driver passes those of
 * vendor-specific classes and of congestion control, too, of which there are no agents, and would not let ib_mad
 * respond to them. An SMP without a response has a wrong M_Key.
 */
int cx_mad_ifc(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *in = cx_cptr(c->in, mad_ifc_in, mad);
	u8 *mad = cx_ptr(c->out, mad_ifc_out, response_mad_packet);

	memcpy(mad, in, MAD_SIZE);
	mad_set_port(mad, 1, d->cfg.port);
	if (d->cfg.local_mad(d->cfg.arg, d->cfg.port, mad, c->op_mod & IGNORE_MKEY) > 0) {
		mad_set_port(mad, d->cfg.port, 1);
		return CX_OK;
	}
	memcpy(mad, in, MAD_SIZE);
	return !wire_mad_is_smp_class(wire_mad_get_class(mad)) && mad_answer_unsupported(mad) ? CX_OK : CX_BAD_PKT;
}
