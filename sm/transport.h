/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interface between the subnet manager and a MAD layer: sending, and its callbacks. */
#ifndef MUSLIN_SM_TRANSPORT_H
#define MUSLIN_SM_TRANSPORT_H

#include "emu/lib/types.h"
#include "emu/wire/mad.h"

struct sm;

/*
 * Implemented by the MAD layer (emu/smhost/sm_mad.c, umad_main.c). These functions must not call back.
 *
 * The transport registers agents for SubnLID (Get, Set, Trap), SubnDR (Get, Set) and SubnAdm (all requests of 15.2.2),
 * does RMPP for SubnAdm, and passes received MADs to sm_receive(). It changes only the upper 32 bits of a request's
 * TID.
 */
struct sm_transport_ops {
	/*
	 * Sends @mad of @len bytes (copied; 256, or more for an RMPP message: headers once, then all data) by the agent
	 * of its class. With @timeout_ms a response is expected: sm_receive() gets it with @cookie, or sm_sent()
	 * reports the timeout after @retries retries. An RMPP message has as many retries of segments without an ACK.
	 * Returns 0, or -errno: then neither is called.
	 */
	int (*send)(void *transport, const u8 *mad, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
		    void *cookie);
	void (*set_is_sm)(void *transport, bool on); /* PortInfo:CapabilityMask.IsSM of the own port */
	u64 (*port_guid)(void *transport);
};

/*
 * A response to a request (@cookie as sent) or an unsolicited MAD (NULL). @data, of @len bytes, is valid during the
 * call.
 */
void sm_receive(struct sm *sm, const u8 *data, u32 len, const struct mad_addr *from, void *cookie);
/* A request with a cookie ended without a response: @status is a negative errno. Calls without a cookie are ignored. */
void sm_sent(struct sm *sm, int status, void *cookie);

#endif
