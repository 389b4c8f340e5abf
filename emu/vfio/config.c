// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Config space of an endpoint: header, PCI Express, MSI-X and vendor-specific capability (PCI Local Bus 3.0 6.1, 6.8.2;
 * PCI Express 2.0 7.8).
 */
#include "emu/vfio/vfio_internal.h"

#define COMMAND        0x04
#define COMMAND_MEMORY 0x0002
#define COMMAND_MASTER 0x0004
#define COMMAND_BITS   (COMMAND_MEMORY | COMMAND_MASTER | 0x0540) /* parity, SERR#, INTx disable */
#define STATUS         0x06
#define STATUS_CAPS    0x0010
#define BAR            0x10
#define BAR_MEM64      0x4
#define BAR_PREFETCH   0x8
#define CAPS           0x34
#define INTERRUPT_LINE 0x3c

#define EXP           0x60
#define EXP_DEVCTL    (EXP + 0x08)
#define EXP_LNKCTL    (EXP + 0x10)
#define EXP_DEVCTL2   (EXP + 0x28)
#define EXP_FLR       0x8000
#define EXP_VERSION   2
#define EXP_DEVCAP    0x10008000u /* function level reset; role-based errors */
#define EXP_LINK      0x83        /* x8, 8 GT/s */
#define EXP_LNKCAP    (EXP_LINK | 0x400u)
#define EXP_LNKCAP2   0x0eu /* 2.5, 5 and 8 GT/s */
#define MSIX          0x9c
#define MSIX_CTL      (MSIX + 2)
#define MSIX_CTL_BITS 0xc000 /* enable, mask all */
#define VENDOR        0xa8

static void put16(u8 *at, u16 v)
{
	at[0] = (u8)v;
	at[1] = (u8)(v >> 8);
}

static void put32(u8 *at, u32 v)
{
	put16(at, (u16)v);
	put16(at + 2, (u16)(v >> 16));
}

static u16 get16(const u8 *at)
{
	return (u16)(at[0] | at[1] << 8);
}

static void config_put_bars(struct vfio_server *s)
{
	u32 i;

	for (i = 0; i < VFIO_BARS; i++) {
		const struct vfio_bar *b = &s->cfg.bar[i];

		if (!b->size)
			continue;
		put32(s->config + BAR + 4 * (size_t)i,
		      (b->mem64 ? BAR_MEM64 : 0) | (b->prefetchable ? BAR_PREFETCH : 0));
		put32(s->writable + BAR + 4 * (size_t)i, (u32) ~(b->size - 1));
		if (b->mem64)
			put32(s->writable + BAR + 4 * (size_t)i + 4, (u32)(~(b->size - 1) >> 32));
	}
}

void vfio_config_init(struct vfio_server *s)
{
	const struct vfio_config *cfg = &s->cfg;
	u8 *c = s->config, *w = s->writable;

	put16(c, cfg->vendor);
	put16(c + 2, cfg->device);
	put16(w + COMMAND, COMMAND_BITS);
	put16(c + STATUS, STATUS_CAPS);
	put32(c + 8, cfg->class_code << 8 | cfg->revision);
	w[0x0c] = w[INTERRUPT_LINE] = 0xff; /* cache line size */
	config_put_bars(s);
	put16(c + 0x2c, cfg->subvendor);
	put16(c + 0x2e, cfg->subdevice);
	c[CAPS] = EXP;

	c[EXP] = 0x10;
	c[EXP + 1] = MSIX;
	put16(c + EXP + 2, EXP_VERSION);
	put32(c + EXP + 4, EXP_DEVCAP);
	put16(w + EXP_DEVCTL, 0x7fff); /* FLR reads as 0 */
	put32(c + EXP + 0x0c, EXP_LNKCAP);
	put16(w + EXP_LNKCTL, 0x01c3);
	put16(c + EXP_LNKCTL + 2, EXP_LINK);
	put16(w + EXP_DEVCTL2, 0x001f);
	put32(c + EXP + 0x2c, EXP_LNKCAP2);

	c[MSIX] = 0x11;
	put16(c + MSIX_CTL, (u16)(cfg->vectors - 1));
	put16(w + MSIX_CTL, MSIX_CTL_BITS);
	put32(c + MSIX + 4, cfg->msix_table | cfg->msix_bar);
	put32(c + MSIX + 8, cfg->msix_pba | cfg->msix_bar);
	if (!cfg->vendor_cap)
		return;
	c[MSIX + 1] = VENDOR;
	c[VENDOR] = 0x09;
	c[VENDOR + 2] = cfg->vendor_cap;
}

/* Clears all writable bits. */
void vfio_config_reset(struct vfio_server *s)
{
	u32 i;

	s->last = NULL;
	for (i = 0; i < VFIO_CONFIG_LEN; i++)
		s->config[i] &= (u8)~s->writable[i];
}

bool vfio_bus_master(const struct vfio_server *s)
{
	return get16(s->config + COMMAND) & COMMAND_MASTER;
}

/*
 * The caller has checked that the bytes are within config space. Without Bus Master Enable the device must not use the
 * pointers to guest memory that it has.
 */
void vfio_config_write(struct vfio_server *s, u32 off, const u8 *data, u32 len)
{
	bool flr = false, master = vfio_bus_master(s);
	u32 i;

	for (i = 0; i < len; i++, off++) {
		s->config[off] = (u8)((s->config[off] & ~s->writable[off]) | (data[i] & s->writable[off]));
		flr |= off == EXP_DEVCTL + 1 && data[i] & EXP_FLR >> 8;
	}
	if (!vfio_bus_master(s))
		s->last = NULL;
	if (flr) {
		vfio_server_reset(s);
		return;
	}
	if (master && !vfio_bus_master(s) && s->ops->dma_unmap)
		s->ops->dma_unmap(s->dev, 0, ~0ull);
	vfio_irq_deliver(s);
}
