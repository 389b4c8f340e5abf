// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Accesses to regions: config space, the MSI-X pages of a BAR, the area that the guest maps; the device handles the
 * rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Memory of the area, if the access is entirely within it. */
static u8 *area_at(const struct vfio_server *s, u32 bar, u64 off, u32 len)
{
	const struct vfio_bar *b = &s->cfg.bar[bar];

	if (off < b->area_off || off - b->area_off >= b->area_len || len > b->area_len - (off - b->area_off))
		return NULL;
	return s->area[bar].ptr + (off - b->area_off);
}

int vfio_region_read(struct vfio_server *s, u32 region, u64 off, u8 *data, u32 len)
{
	const u8 *area;

	if (!region_has(s, region, off, len))
		return -EINVAL;
	if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
		memcpy(data, s->config + off, len);
		return 0;
	}
	s->counters[VFIO_CTR_REGION_READS]++;
	area = area_at(s, region, off, len);
	if (is_msix(s, region, off, len))
		msix_read(s, off, data, len);
	else if (area)
		memcpy(data, area, len);
	else
		s->ops->read(s->dev, region, off, data, len);
	return 0;
}

int vfio_region_write(struct vfio_server *s, u32 region, u64 off, const u8 *data, u32 len)
{
	u8 *area;

	if (!region_has(s, region, off, len))
		return -EINVAL;
	if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
		vfio_config_write(s, (u32)off, data, len);
		return 0;
	}
	s->counters[VFIO_CTR_REGION_WRITES]++;
	area = area_at(s, region, off, len);
	if (is_msix(s, region, off, len))
		return 0;
	if (area)
		memcpy(area, data, len);
	else
		s->ops->write(s->dev, region, off, data, len);
	return 0;
}

/* Creates a file of the whole BAR's size, so that offsets are those in the BAR; only the area is allocated. */
static int area_init(struct vfio_server *s, u32 bar)
{
	const struct vfio_bar *b = &s->cfg.bar[bar];
	int fd = memfd_create("bar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	if (fd < 0)
		return -errno;
	s->area[bar].fd = fd;
	/* The client has the file, too: it must not resize it. */
	if (ftruncate(fd, (off_t)b->size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	p = mmap(NULL, b->area_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)b->area_off);
	if (p == MAP_FAILED)
		return -errno;
	s->area[bar].ptr = p;
	return 0;
}

int vfio_region_init(struct vfio_server *s)
{
	int err = 0;
	u32 i;

	for (i = 0; i < VFIO_BARS; i++)
		s->area[i].fd = -1;
	for (i = 0; i < VFIO_BARS && !err; i++)
		err = s->cfg.bar[i].area_len ? area_init(s, i) : 0;
	return err;
}

void vfio_region_fini(struct vfio_server *s)
{
	u32 i;

	for (i = 0; i < VFIO_BARS; i++) {
		if (s->area[i].ptr)
			munmap(s->area[i].ptr, s->cfg.bar[i].area_len);
		if (s->area[i].fd >= 0)
			close(s->area[i].fd);
	}
}

void *vfio_area(const struct vfio_server *s, u32 bar)
{
	return bar < VFIO_BARS ? s->area[bar].ptr : NULL;
}
