// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory table of a guest: regions that the front end shares (SET_MEM_TABLE). */
#include <errno.h>

#include "emu/virtio/vhost/vhost_internal.h"

static int region_map(struct vhost *v, struct vhost_region *r, const struct vhost_mem_region *m, int fd)
{
	if (m->gpa + m->size < m->gpa || m->user + m->size < m->user)
		return -EINVAL;
	/* An aligned guest address is an aligned pointer. */
	if ((m->gpa ^ m->offset) % VHOST_PAGE)
		return -EINVAL;
	r->gpa = m->gpa;
	r->size = m->size;
	r->user = m->user;
	return shared_map_init(&r->map, &v->client.memory, fd, m->offset, m->size, true);
}

void vhost_memory_clear(struct vhost *v)
{
	u32 i;

	for (i = 0; i < v->nregions; i++)
		shared_map_fini(&v->region[i].map);
	v->nregions = 0;
}

/* The new table replaces the old one; if any region fails there is none. */
int vhost_memory_set(struct vhost *v, const struct vhost_mem_region *m, u32 n, int *fds, u32 nfds)
{
	u32 i;
	int err;

	vhost_memory_clear(v);
	if (n > VHOST_REGIONS_MAX || n != nfds)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		err = region_map(v, &v->region[i], &m[i], fds[i]);
		if (err) {
			vhost_memory_clear(v);
			return err;
		}
		v->nregions++;
	}
	return 0;
}

void *vhost_memory_part(const struct vhost *v, u64 gpa, u64 *len)
{
	u32 i;

	for (i = 0; i < v->nregions; i++) {
		const struct vhost_region *r = &v->region[i];
		u64 off = gpa - r->gpa;

		if (gpa < r->gpa || off >= r->size)
			continue;
		if (*len > r->size - off)
			*len = r->size - off;
		return r->map.ptr + off;
	}
	return NULL;
}

void *vhost_memory(const struct vhost *v, u64 gpa, u64 len)
{
	u64 part = len;
	void *p = vhost_memory_part(v, gpa, &part);

	return part == len ? p : NULL;
}

void *vhost_memory_user(const struct vhost *v, u64 user, u64 len)
{
	u32 i;

	for (i = 0; i < v->nregions; i++) {
		const struct vhost_region *r = &v->region[i];
		u64 off = user - r->user;

		if (user >= r->user && off < r->size && len <= r->size - off)
			return r->map.ptr + off;
	}
	return NULL;
}
