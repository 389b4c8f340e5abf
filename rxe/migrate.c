// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Automatic path migration, IBTA 17.2.8. The consumer loads an alternate path and sets REARM. A packet of the peer's
 * without MigReq tells that the peer has one, too: ARMED. Then whoever gives up its path goes on by the other one and
 * says so with MigReq, and its peer follows.
 */
#include "rxe/internal.h"

void rxe_migrate(struct rxe_qp *rq)
{
	struct hca_qp_attr *a = &rq->qp->attr;

	a->av = a->alt_av;
	a->port = a->alt_port ? a->alt_port : a->port;
	a->pkey_index = a->alt_pkey_index;
	a->timeout = a->alt_timeout;
	a->path_mig_state = HCA_MIG_MIGRATED;
	rq->retries = a->retry_cnt;
	hca_qp_event(rq->qp, HCA_EVENT_PATH_MIG);
}

/* A17.4.3: addresses are GIDs alone. */
static bool gids_fit(const struct wire_port *port, const struct wire_packet *p, const struct hca_av *av)
{
	const struct wire_grh *grh = (const struct wire_grh *)(p->hdr + p->grh_off);

	return av->grh && wire_gid_equal(&grh->sgid, &av->dgid) &&
	       wire_gid_equal(&grh->dgid, &port->attr.gid[av->sgid_index % WIRE_PORT_GIDS]);
}

static bool by_path(const struct hca_qp *qp, const struct wire_packet *p, u8 port, const struct hca_av *av, u8 av_port)
{
	const struct wire_port *wp = hca_port(qp->hca, port);

	if (port != av_port)
		return false;
	if (wp->attr.link_layer == WIRE_LINK_ETHERNET)
		return gids_fit(wp, p, av);
	return wire_lrh_slid((const struct wire_lrh *)p->hdr) == av->dlid;
}

bool rxe_path_is(const struct rxe_qp *rq, const struct wire_packet *p, u8 port)
{
	return by_path(rq->qp, p, port, &rq->qp->attr.av, rq->qp->attr.port);
}

static bool pkey_fits(const struct hca_qp *qp, const struct wire_packet *p, u8 port, u16 index)
{
	const struct wire_port *wp = hca_port(qp->hca, port);
	const struct wire_bth *bth = (const struct wire_bth *)(p->hdr + p->bth_off);

	if (index < WIRE_PORT_PKEYS && wire_pkey_match(wp->attr.pkey[index], wire_bth_pkey(bth)))
		return true;
	hca_count(qp->hca, port, HCA_CNT_PKEY_MISMATCH);
	return false;
}

/* MigReq, by a path that is none of ours: 17.2.8.1.2. */
static bool refuse(struct rxe_qp *rq)
{
	if (!rq->mig_refused)
		hca_qp_event(rq->qp, HCA_EVENT_PATH_MIG_ERR);
	rq->mig_refused = true;
	return false;
}

bool rxe_path_accepts(struct rxe_qp *rq, const struct wire_packet *p, u8 port)
{
	const struct hca_qp *qp = rq->qp;
	struct hca_qp_attr *a = &rq->qp->attr;
	bool request = wire_bth_migreq((const struct wire_bth *)(p->hdr + p->bth_off));
	bool armed = a->path_mig_state == HCA_MIG_ARMED;

	if (armed && request && by_path(qp, p, port, &a->alt_av, a->alt_port)) {
		if (!pkey_fits(qp, p, port, a->alt_pkey_index))
			return false;
		rxe_migrate(rq);
		return true;
	}
	if (!by_path(qp, p, port, &a->av, a->port))
		return armed && request ? refuse(rq) : false;
	if (!pkey_fits(qp, p, port, a->pkey_index))
		return false;
	if (a->path_mig_state == HCA_MIG_REARM && !request)
		a->path_mig_state = HCA_MIG_ARMED;
	return true;
}
