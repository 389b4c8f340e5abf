// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Guest memory: the DMA regions that the client shares, sorted by address. */
#include <errno.h>
#include <stdlib.h>

#include "emu/vfio/vfio_internal.h"

/* Index of the first region that ends after @iova: it contains the address, or is the next one. */
static u32 map_at(const struct vfio_server *s, u64 iova)
{
	u32 from = 0, to = s->nmaps;

	while (from < to) {
		u32 mid = (from + to) / 2;
		const struct vfio_map *m = s->map[mid];

		if (m->iova <= iova && iova - m->iova >= m->size)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

int vfio_map_add(struct vfio_server *s, u64 iova, u64 size, u64 offset, bool write, int fd)
{
	u32 at = map_at(s, iova);
	struct vfio_map *m;
	int err;

	if (!size || iova + (size - 1) < iova)
		return -EINVAL;
	if (at < s->nmaps && s->map[at]->iova <= iova + (size - 1))
		return -EEXIST;
	/* As announced ("pgsizes"): an aligned guest address is an aligned pointer. Without a file there is none. */
	if ((iova | size | (fd >= 0 ? offset : 0)) % VFIO_PAGE)
		return -EINVAL;
	if (s->nmaps == VFIO_MAPS_MAX)
		return -ENOSPC;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = (struct vfio_map){ .iova = iova, .size = size, .write = write, .mapped = fd >= 0 };
	err = m->mapped ? shared_map_init(&m->memory, &s->client.memory, fd, offset, size, write) : 0;
	if (err) {
		free(m);
		return err;
	}
	memmove(&s->map[at + 1], &s->map[at], (s->nmaps - at) * sizeof(s->map[0]));
	s->map[at] = m;
	s->nmaps++;
	return 0;
}

static void map_free(struct vfio_map *m)
{
	if (m->mapped)
		shared_map_fini(&m->memory);
	free(m);
}

static bool map_within(const struct vfio_map *m, u64 iova, u64 last)
{
	return m->iova >= iova && m->iova + (m->size - 1) <= last;
}

int vfio_map_remove(struct vfio_server *s, u64 iova, u64 last, u64 *removed)
{
	u32 from = map_at(s, iova), to;

	*removed = 0;
	if (last < iova)
		return -EINVAL;
	for (to = from; to < s->nmaps && s->map[to]->iova <= last; to++) {
		if (!map_within(s->map[to], iova, last))
			return -EINVAL;
		*removed += s->map[to]->size;
	}
	if (to == from)
		return 0;
	if (s->ops->dma_unmap)
		s->ops->dma_unmap(s->dev, iova, last);
	for (; to > from; to--) {
		map_free(s->map[to - 1]);
		memmove(&s->map[to - 1], &s->map[to], (s->nmaps - to) * sizeof(s->map[0]));
		s->nmaps--;
	}
	return 0;
}

void vfio_map_clear(struct vfio_server *s)
{
	while (s->nmaps)
		map_free(s->map[--s->nmaps]);
}

/* As vfio_dma(), for the part that is in one region: *len is reduced. NULL: unmapped. */
static void *dma_part(const struct vfio_server *s, u64 iova, u64 *len, bool write)
{
	u32 at = map_at(s, iova);
	const struct vfio_map *m = at < s->nmaps ? s->map[at] : NULL;
	u64 off;

	if (!m || m->iova > iova || !m->mapped || (write && !m->write) || !vfio_bus_master(s))
		return NULL;
	off = iova - m->iova;
	*len = min(*len, m->size - off);
	return m->memory.ptr + off;
}

void *vfio_dma(const struct vfio_server *s, u64 iova, u64 len, bool write)
{
	u64 part = len;
	void *p = dma_part(s, iova, &part, write);

	return part == len ? p : NULL;
}

static int dma_copy(struct vfio_server *s, u64 iova, u8 *to, const u8 *from, u64 len)
{
	while (len) {
		u64 part = len;
		void *p = dma_part(s, iova, &part, from != NULL);

		if (!p) {
			s->counters[VFIO_CTR_BAD_ADDRESSES]++;
			return -EFAULT;
		}
		if (from) {
			memcpy(p, from, part);
			from += part;
		} else {
			memcpy(to, p, part);
			to += part;
		}
		iova += part;
		len -= part;
	}
	return 0;
}

int vfio_dma_read(struct vfio_server *s, u64 iova, void *buf, u64 len)
{
	return dma_copy(s, iova, buf, NULL, len);
}

int vfio_dma_write(struct vfio_server *s, u64 iova, const void *buf, u64 len)
{
	return dma_copy(s, iova, NULL, buf, len);
}
