/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delayed ACK of a carrier of packets (RoCEv2 sockets, trunks): which packets may be delayed, and when it pays. A
 * program often responds to a received message at once, and its request is then sent, or the peer woken, together with
 * the ACK. After ACK_DELAY_UNPAIRED ACKs in a row without such a request, most of the following ones are not delayed.
 */
#ifndef MUSLIN_PACKET_ACK_DELAY_H
#define MUSLIN_PACKET_ACK_DELAY_H

#include "emu/packet/header.h"

#define ACK_DELAY_UNPAIRED 4  /* after so many delayed ACKs in a row without a request ... */
#define ACK_DELAY_RETRY    64 /* ... one ACK of so many is delayed */

struct ack_delay {
	u32 unpaired, passed; /* ACKs without a request, in a row; ACKs not delayed since */
};

/* Only a positive ACK may be delayed, no NAK. */
static inline bool ack_delay_permits(const struct wire_packet *p)
{
	return p->bth_off + sizeof(struct wire_bth) + sizeof(struct wire_aeth) <= p->hdr_len &&
	       wire_packet_bth(p)->opcode == WIRE_RC_ACK &&
	       wire_aeth_type(wire_aeth_syndrome(wire_packet_aeth(p))) == WIRE_AETH_ACK;
}

/* Is the next ACK to be delayed? */
static inline bool ack_delay_begin(struct ack_delay *d)
{
	if (d->unpaired >= ACK_DELAY_UNPAIRED && ++d->passed < ACK_DELAY_RETRY)
		return false;
	d->passed = 0;
	return true;
}

/* A request has been sent: the program responds. */
static inline void ack_delay_paired(struct ack_delay *d)
{
	d->unpaired = 0;
}

/* A delayed ACK got no request in time. */
static inline void ack_delay_unpaired(struct ack_delay *d)
{
	d->unpaired += d->unpaired < ACK_DELAY_UNPAIRED;
}

#endif
