// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests: matching of responses, retransmission, timeout. */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/mad_internal.h"

#define DATA_MAX (RMPP_SEGS_MAX * 128u) /* above the size of any table, below the limit of the segment count */

void mad_req_arm(struct mad_req *r, u32 timeout_ms)
{
	loop_timer_set(r->agent->mp->loop, &r->timer, loop_now(r->agent->mp->loop).ns + timeout_ms * NSEC_PER_MSEC);
}

void mad_req_free(struct mad_req *r)
{
	loop_timer_cancel(&r->timer);
	list_del(&r->link);
	list_del(&r->done);
	r->agent->nreqs--;
	r->agent->req_bytes -= r->len;
	free(r);
}

void mad_req_end(struct mad_req *r, int status)
{
	struct mad_agent *a = r->agent;

	/* sent() may unregister the agent or cancel by cookie: the request must not be on any list. */
	loop_timer_cancel(&r->timer);
	list_del(&r->link);
	list_del(&r->done);
	a->nreqs--;
	a->req_bytes -= r->len;
	if (status == MAD_TIMED_OUT)
		a->mp->counter[MAD_CTR_TIMEOUTS]++;
	if (a->reg.sent)
		a->reg.sent(a->reg.ctx, r->data, r->len, status, r->cookie);
	free(r);
}

static void request_expired(struct loop_timer *t, struct now now)
{
	struct mad_req *r = container_of(t, struct mad_req, timer);
	struct mad_port *mp = r->agent->mp;

	if (!r->retries_left) {
		mad_req_end(r, MAD_TIMED_OUT);
		return;
	}
	r->retries_left--;
	if (r->rmpp) {
		if (!rmpp_send_retry(r)) {
			mad_req_end(r, MAD_TIMED_OUT);
			return;
		}
	} else {
		/* If the P_Key is no longer in the table, this is a lost packet. */
		(void)mad_port_xmit(mp, r->agent->reg.qpn, r->data, &r->to);
		mad_req_arm(r, r->timeout_ms);
	}
	mp->counter[MAD_CTR_RESENT]++;
}

/*
 * Whether @mad from @from belongs to the exchange of @r. A response to a request may come from any address of the
 * manager, so only the presence of a GRH is compared; an RMPP acknowledgement of a response must come from the LID or
 * GID to which the response was sent.
 */
static bool same_peer(const struct mad_req *r, const u8 *mad, const struct mad_addr *from)
{
	bool sent_resp = wire_mad_is_response(wire_mad_get_method(r->data)),
	     got_resp = wire_mad_is_response(wire_mad_get_method(mad));

	if (sent_resp == got_resp)
		return false;
	if (wire_mad_get_class(mad) == MAD_CLASS_SUBN_DIRECTED)
		return true;
	if (r->to.grh != from->grh)
		return false;
	if (got_resp)
		return true;
	return from->grh ? wire_gid_equal(&r->to.gid, &from->gid) : r->to.lid == from->lid;
}

struct mad_req *mad_req_find(struct mad_agent *a, const u8 *mad, const struct mad_addr *from)
{
	struct mad_req *r;

	list_for_each (r, &a->reqs, link)
		if (wire_mad_get_tid(r->data) == wire_mad_get_tid(mad) &&
		    wire_mad_get_class(r->data) == wire_mad_get_class(mad) && same_peer(r, mad, from))
			return r;
	return NULL;
}

static struct mad_req *req_create(struct mad_agent *a, const u8 *data, u32 len, const struct mad_addr *to, void *cookie)
{
	struct mad_req *r;

	if (a->nreqs >= MAD_REQS_MAX || a->req_bytes + len > MAD_BYTES_MAX) {
		a->mp->counter[MAD_CTR_REFUSED]++;
		return NULL;
	}
	r = calloc(1, sizeof(*r) + max(len, (u32)MAD_SIZE));
	if (!r)
		return NULL;
	memcpy(r->data, data, len);
	r->len = len;
	r->agent = a;
	r->to = *to;
	r->cookie = cookie;
	r->timer.fn = request_expired;
	list_init(&r->done);
	list_add(&a->reqs, &r->link);
	a->nreqs++;
	a->req_bytes += len;
	if (!wire_mad_is_response(wire_mad_get_method(data)) && wire_mad_get_class(data) != MAD_CLASS_CM)
		wire_set(r->data, MAD_TID_HIGH, a->tid_high);
	return r;
}

int mad_send(struct mad_agent *a, const u8 *data, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
	     void *cookie)
{
	/* An active RMPP header makes it an RMPP message; the layer fills in version and type, as in the kernel. */
	bool rmpp = a->reg.rmpp_version && len >= MAD_RMPP_HDR_END && rmpp_active(data);
	struct mad_req *r;
	int err;

	if (len < MAD_HDR_SIZE || len > (rmpp ? DATA_MAX : MAD_SIZE) ||
	    (rmpp && len < rmpp_hdr_len(wire_mad_get_class(data))))
		return -EINVAL;
	if (to->qpn == MAD_QPN_SMI && a->reg.qpn != MAD_QPN_SMI)
		return -EINVAL;
	r = req_create(a, data, len, to, cookie);
	if (!r)
		return -ENOMEM;
	r->timeout_ms = timeout_ms;
	r->retries = r->retries_left = retries;
	if (rmpp) {
		r->rmpp = true;
		rmpp_send_start(r);
		return 0;
	}
	err = mad_port_xmit(a->mp, a->reg.qpn, r->data, &r->to);
	if (err) {
		mad_req_free(r);
		return err;
	}
	if (timeout_ms)
		mad_req_arm(r, timeout_ms);
	else
		list_add(&a->mp->done, &r->done);
	return 0;
}

void mad_cancel(struct mad_agent *a, const void *cookie)
{
	struct mad_req *r, *tmp;

	list_for_each_safe (r, tmp, &a->reqs, link)
		if (r->cookie == cookie)
			mad_req_free(r);
}
