// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Guest memory: the DMA regions that the client shares, sorted by address. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

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

static struct vfio_file *file_find(const struct vfio_server *s, const struct stat *st, u64 offset, u64 size, bool write)
{
	struct vfio_file *f;

	list_for_each (f, &s->files, link) {
		if (f->dev == st->st_dev && f->ino == st->st_ino && f->write == write && f->from <= offset &&
		    offset - f->from < f->size && size <= f->size - (offset - f->from))
			return f;
	}
	return NULL;
}

/* Maps the whole file; where that is too large, the part. */
static int file_map(struct vfio_server *s, struct vfio_file *f, int fd, u64 offset, u64 size)
{
	int err = shared_map_init(&f->memory, &s->client.memory, fd, 0, f->size, f->write);

	if (err != -ENOSPC && err != -ENOMEM)
		return err;
	f->from = offset;
	f->size = size;
	return shared_map_init(&f->memory, &s->client.memory, fd, offset, size, f->write);
}

/* The mapped file with the bytes from @offset on, with a reference. */
static int file_get(struct vfio_server *s, int fd, u64 offset, u64 size, bool write, struct vfio_file **file)
{
	struct vfio_file *f;
	struct stat st;
	int err;

	/* Of other files than memory the loop must not wait even for fstat() (shared_map_init()). */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st))
		return -EINVAL;
	if (offset + size < offset || (u64)st.st_size < offset + size)
		return -EINVAL;
	f = file_find(s, &st, offset, size, write);
	if (!f) {
		if (s->nfiles == VFIO_FILES_MAX)
			return -ENOSPC;
		f = calloc(1, sizeof(*f));
		if (!f)
			return -ENOMEM;
		*f = (struct vfio_file){ .dev = st.st_dev, .ino = st.st_ino, .size = (u64)st.st_size, .write = write };
		err = file_map(s, f, fd, offset, size);
		if (err) {
			free(f);
			return err;
		}
		list_add(&s->files, &f->link);
		s->nfiles++;
	}
	f->refs++;
	*file = f;
	return 0;
}

static void file_put(struct vfio_server *s, struct vfio_file *f)
{
	if (--f->refs)
		return;
	list_del(&f->link);
	s->nfiles--;
	shared_map_fini(&f->memory);
	free(f);
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
	*m = (struct vfio_map){ .iova = iova, .size = size, .write = write };
	err = fd >= 0 ? file_get(s, fd, offset, size, write, &m->file) : 0;
	if (err) {
		free(m);
		return err;
	}
	if (m->file)
		m->ptr = m->file->memory.ptr + (offset - m->file->from);
	memmove(&s->map[at + 1], &s->map[at], (s->nmaps - at) * sizeof(s->map[0]));
	s->map[at] = m;
	s->nmaps++;
	return 0;
}

static void map_free(struct vfio_server *s, struct vfio_map *m)
{
	if (m->file)
		file_put(s, m->file);
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
	s->last = NULL;
	for (; to > from; to--) {
		map_free(s, s->map[to - 1]);
		memmove(&s->map[to - 1], &s->map[to], (s->nmaps - to) * sizeof(s->map[0]));
		s->nmaps--;
	}
	return 0;
}

void vfio_map_clear(struct vfio_server *s)
{
	s->last = NULL;
	while (s->nmaps)
		map_free(s, s->map[--s->nmaps]);
}

/* As vfio_dma(), for the part that is in one region: *len is reduced. NULL: unmapped. */
static void *dma_part(struct vfio_server *s, u64 iova, u64 *len, bool write)
{
	const struct vfio_map *m = s->last;
	u64 off;

	if (unlikely(!m || iova - m->iova >= m->size)) {
		u32 at = map_at(s, iova);

		m = at < s->nmaps ? s->map[at] : NULL;
		if (!m || m->iova > iova || !m->file || !vfio_bus_master(s))
			return NULL;
		s->last = m;
	}
	if (unlikely(write && !m->write))
		return NULL;
	off = iova - m->iova;
	*len = min(*len, m->size - off);
	return m->ptr + off;
}

void *vfio_dma(struct vfio_server *s, u64 iova, u64 len, bool write)
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
