// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Path check of received packets (IBTA 9.6.1), and automatic path migration (17.2.8). The consumer loads an alternate
 * path and sets REARM. A packet of the peer without MigReq means that the peer has an alternate path, too: ARMED. The
 * side that migrates sends MigReq on the alternate path, and its peer migrates when it receives that.
 */
#include "rxe/rxe_internal.h"

void rxe_migrate(struct rxe_qp *rq)
{
	rq->req.retries = rq->qp->attr.retry_cnt;
	hca_qp_migrate(rq->qp);
}

/* RoCE packets are addressed by GIDs only (A17.4.3). */
static bool path_gids_match(const struct wire_port *port, const struct wire_packet *p, const struct hca_av *av)
{
	const struct wire_grh *grh = wire_packet_grh(p);

	return av->grh && wire_gid_equal(&grh->sgid, &av->dgid) &&
	       wire_gid_equal(&grh->dgid, &port->attr.gid[av->sgid_index % WIRE_PORT_GIDS]);
}

static bool path_matches(const struct hca_qp *qp, const struct wire_packet *p, u8 port, const struct hca_av *av,
			 u8 av_port)
{
	const struct wire_port *wp = hca_port(qp->hca, port);

	if (port != av_port)
		return false;
	if (wp->attr.link_layer == WIRE_LINK_ETHERNET)
		return path_gids_match(wp, p, av);
	return wire_lrh_slid(wire_packet_lrh(p)) == av->dlid;
}

bool rxe_path_is(const struct rxe_qp *rq, const struct wire_packet *p, u8 port)
{
	return path_matches(rq->qp, p, port, &rq->qp->attr.av, rq->qp->attr.port);
}

/* MigReq by a path that is not the alternate path: 17.2.8.1.2. */
static bool migration_reject(struct rxe_qp *rq)
{
	if (!rq->mig_refused)
		hca_qp_event(rq->qp, HCA_EVENT_PATH_MIG_ERR);
	rq->mig_refused = true;
	return false;
}

bool rxe_path_accepts(struct rxe_qp *rq, struct wire_packet *p, u8 port)
{
	const struct hca_qp *qp = rq->qp;
	struct hca_qp_attr *a = &rq->qp->attr;
	bool request = wire_bth_migreq(wire_packet_bth(p));
	bool armed = a->path_mig_state == HCA_MIG_ARMED;

	if (armed && request && path_matches(qp, p, port, &a->alt_av, a->alt_port)) {
		if (!rxe_pkey_accepts(qp, p, port, a->alt_pkey_index))
			return false;
		rxe_migrate(rq);
		return true;
	}
	if (!path_matches(qp, p, port, &a->av, a->port))
		return armed && request ? migration_reject(rq) : false;
	if (!rxe_pkey_accepts(qp, p, port, a->pkey_index))
		return false;
	if (a->path_mig_state == HCA_MIG_REARM && !request)
		a->path_mig_state = HCA_MIG_ARMED;
	return true;
}
