// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Accesses to regions: config space, the MSI-X pages of a BAR; the device handles the rest. */
#include <errno.h>

#include "emu/vfio/vfio_internal.h"

#define PAGE 4096u

u64 vfio_region_size(const struct vfio_server *s, u32 region)
{
	if (region < VFIO_BARS)
		return s->cfg.bar[region].size;
	return region == VFIO_PCI_CONFIG_REGION_INDEX ? VFIO_CONFIG_LEN : 0;
}

static bool region_has(const struct vfio_server *s, u32 region, u64 off, u32 len)
{
	u64 size = vfio_region_size(s, region);

	return len && len <= VFIO_ACCESS_MAX && off < size && len <= size - off;
}

/* Does the access overlap the page? */
static bool in_page(u64 off, u32 len, u32 page)
{
	return off < page + PAGE && off + len > page;
}

static bool is_msix(const struct vfio_server *s, u32 bar, u64 off, u32 len)
{
	return bar == s->cfg.msix_bar && (in_page(off, len, s->cfg.msix_table) || in_page(off, len, s->cfg.msix_pba));
}

/* Reads pending bits; the MSI-X table is in QEMU and reads as 0 here. */
static void msix_read(const struct vfio_server *s, u64 off, u8 *data, u32 len)
{
	u32 i;

	memset(data, 0, len);
	for (i = 0; i < len; i++) {
		u64 at = off + i - s->cfg.msix_pba;

		if (off + i >= s->cfg.msix_pba && at < sizeof(s->pending))
			data[i] = (u8)(s->pending >> 8 * at);
	}
}

int vfio_region_read(struct vfio_server *s, u32 region, u64 off, u8 *data, u32 len)
{
	if (!region_has(s, region, off, len))
		return -EINVAL;
	if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
		memcpy(data, s->config + off, len);
		return 0;
	}
	s->counters[VFIO_CTR_REGION_READS]++;
	if (is_msix(s, region, off, len))
		msix_read(s, off, data, len);
	else
		s->ops->read(s->dev, region, off, data, len);
	return 0;
}

int vfio_region_write(struct vfio_server *s, u32 region, u64 off, const u8 *data, u32 len)
{
	if (!region_has(s, region, off, len))
		return -EINVAL;
	if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
		vfio_config_write(s, (u32)off, data, len);
		return 0;
	}
	s->counters[VFIO_CTR_REGION_WRITES]++;
	if (!is_msix(s, region, off, len))
		s->ops->write(s->dev, region, off, data, len);
	return 0;
}
