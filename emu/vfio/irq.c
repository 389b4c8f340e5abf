// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MSI-X vectors. QEMU has the MSI-X table and implements the masks; a vector without an eventfd from QEMU is not in
 * use. Pending bits are the PBA, which QEMU reads from here.
 */
#include "emu/lib/passed.h"
#include "emu/vfio/vfio_internal.h"

static bool irq_ready(const struct vfio_server *s, u32 vector)
{
	return s->vector[vector] >= 0 && vfio_bus_master(s);
}

void vfio_irq(struct vfio_server *s, u32 vector)
{
	if (vector >= s->cfg.vectors)
		return;
	if (!irq_ready(s, vector)) {
		s->counters[VFIO_CTR_MASKED_INTERRUPTS]++;
		s->pending |= BIT_ULL(vector);
		return;
	}
	s->counters[VFIO_CTR_INTERRUPTS]++;
	passed_signal(s->vector[vector]);
}

void vfio_irq_deliver(struct vfio_server *s)
{
	u64 left = s->pending;

	while (left) {
		u32 vector = (u32)__builtin_ctzll(left);

		left &= left - 1;
		if (!irq_ready(s, vector))
			continue;
		s->pending &= ~BIT_ULL(vector);
		vfio_irq(s, vector);
	}
}

void vfio_irq_set_fd(struct vfio_server *s, u32 vector, int fd)
{
	passed_close(s->vector[vector], s->client.pid);
	s->vector[vector] = fd;
}
