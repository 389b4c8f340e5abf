// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of the vfio-user protocol, a table by command. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/lib/recording.h"
#include "emu/vfio/vfio_internal.h"

#define IRQ_DATA (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_DATA_EVENTFD)

static_assert(sizeof(struct vfio_hdr) == 16 && sizeof(struct vfio_write_one) == 24, "wire");
static_assert(sizeof(((union vfio_payload *)0)->region) == sizeof(struct vfio_region_info), "wire");

/* Returns the length of the reply in s->in; less than 0: rejected. */
typedef int handler(struct vfio_server *s);

static u32 payload_size(const struct vfio_server *s)
{
	return s->hdr.size - (u32)sizeof(s->hdr);
}

/*
 * The client's capabilities are ignored: they only limit the server's messages, of which there are none besides
 * replies.
 */
static int version(struct vfio_server *s)
{
	u32 len = payload_size(s) - (u32)offsetof(union vfio_payload, version.json);
	const char *json = s->in.version.json;
	json_t *caps = NULL;

	if (s->negotiated || s->in.version.major)
		return -EINVAL;
	if (len) {
		caps = json[len - 1] ? NULL : json_loads(json, 0, NULL);
		if (!json_is_object(caps)) {
			json_decref(caps);
			return -EINVAL;
		}
		json_decref(caps);
	}
	s->negotiated = true;
	s->in.version.minor = 0;
	return (int)offsetof(union vfio_payload, version.json) + 1 +
	       snprintf(s->in.version.json, sizeof(s->in.version.json),
			"{\"capabilities\":{\"max_msg_fds\":%d,\"max_data_xfer_size\":%d,\"pgsizes\":%d,"
			"\"max_dma_maps\":%d,\"write_multiple\":true}}",
			VFIO_FDS_MAX, VFIO_ACCESS_MAX, VFIO_PAGE, VFIO_MAPS_MAX);
}

static int dma_map(struct vfio_server *s)
{
	s->counters[VFIO_CTR_DMA_MAPS]++;
	return vfio_map_add(s, s->in.map.iova, s->in.map.size, s->in.map.offset,
			    s->in.map.flags & VFIO_DMA_MAP_FLAG_WRITE, s->nfds ? s->fds[0] : -1);
}

static int dma_unmap(struct vfio_server *s)
{
	u64 iova = s->in.unmap.iova, size = s->in.unmap.size;
	bool all = s->in.unmap.flags & VFIO_DMA_UNMAP_FLAG_ALL;
	int err;

	s->counters[VFIO_CTR_DMA_UNMAPS]++;
	if (s->in.unmap.flags & ~(u32)VFIO_DMA_UNMAP_FLAG_ALL || all != !size || (all && iova))
		return -EINVAL;
	err = vfio_map_remove(s, iova, all ? ~0ull : iova + (size - 1), &s->in.unmap.size);
	return err ? err : (int)sizeof(s->in.unmap);
}

static int device_get_info(struct vfio_server *s)
{
	s->in.info.argsz = sizeof(s->in.info);
	s->in.info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	s->in.info.regions = VFIO_PCI_NUM_REGIONS;
	s->in.info.irqs = VFIO_PCI_NUM_IRQS;
	return sizeof(s->in.info);
}

static int get_region_info(struct vfio_server *s)
{
	u32 index = s->in.region.index;

	if (index >= VFIO_PCI_NUM_REGIONS || s->in.region.argsz < sizeof(s->in.region))
		return -EINVAL;
	memset(&s->in.region, 0, sizeof(s->in.region));
	s->in.region.argsz = sizeof(s->in.region);
	s->in.region.index = index;
	s->in.region.size = vfio_region_size(s, index);
	if (s->in.region.size)
		s->in.region.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	return sizeof(s->in.region);
}

static int get_irq_info(struct vfio_server *s)
{
	u32 index = s->in.irq.index;

	if (index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	if (index == VFIO_PCI_ERR_IRQ_INDEX)
		return -EOPNOTSUPP; /* a number of 0 makes QEMU warn */
	s->in.irq.argsz = sizeof(s->in.irq);
	s->in.irq.count = index == VFIO_PCI_MSIX_IRQ_INDEX ? s->cfg.vectors : 0;
	s->in.irq.flags = s->in.irq.count ? VFIO_IRQ_INFO_EVENTFD : 0;
	return sizeof(s->in.irq);
}

/* One descriptor per vector; without descriptors, the vectors get none. */
static int set_eventfds(struct vfio_server *s, u32 start, u32 count)
{
	u32 i;

	if (s->nfds && s->nfds != count)
		return -EINVAL;
	/* Only an eventfd is sure not to block; a pipe, a socket or a device might. */
	for (i = 0; i < s->nfds; i++)
		if (passed_kind(s->fds[i]) != PASSED_EVENTFD)
			return -EINVAL;
	for (i = 0; i < count; i++) {
		if (s->nfds)
			fcntl(s->fds[i], F_SETFL, O_NONBLOCK);
		vfio_irq_set_fd(s, start + i, s->nfds ? s->fds[i] : -1);
	}
	s->nfds = 0;
	vfio_irq_deliver(s);
	return 0;
}

static int set_irqs(struct vfio_server *s)
{
	u32 flags = s->in.set.flags, start = s->in.set.start, count = s->in.set.count, i;

	if (s->in.set.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	if (s->in.set.index != VFIO_PCI_MSIX_IRQ_INDEX)
		return count ? -EINVAL : 0; /* QEMU disables interrupt types that the device does not have */
	if (start > s->cfg.vectors || count > s->cfg.vectors - start || !(flags & VFIO_IRQ_SET_ACTION_TRIGGER))
		return -EINVAL;
	switch (flags & IRQ_DATA) {
	case VFIO_IRQ_SET_DATA_NONE:
		for (i = 0; i < s->cfg.vectors && !count; i++)
			vfio_irq_set_fd(s, i, -1);
		for (i = 0; i < count; i++)
			vfio_irq(s, start + i);
		return 0;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		return set_eventfds(s, start, count);
	default:
		return -EINVAL;
	}
}

static int region_read(struct vfio_server *s)
{
	u64 off = s->in.access.offset;
	u32 count = s->in.access.count;
	int err = vfio_region_read(s, s->in.access.region, off, s->in.access.data, count);

	return err ? err : (int)(offsetof(union vfio_payload, access.data) + count);
}

static int region_write(struct vfio_server *s)
{
	u32 count = s->in.access.count;
	int err = -EINVAL;

	if (count == payload_size(s) - offsetof(union vfio_payload, access.data))
		err = vfio_region_write(s, s->in.access.region, s->in.access.offset, s->in.access.data, count);
	return err ? err : (int)offsetof(union vfio_payload, access.data);
}

static int region_write_multi(struct vfio_server *s)
{
	u64 n = s->in.multi.n, i;
	int err = 0;

	if (n > ARRAY_SIZE(s->in.multi.one) || payload_size(s) != 8 + n * sizeof(s->in.multi.one[0]))
		return -EINVAL;
	for (i = 0; i < n; i++) {
		const struct vfio_write_one *w = &s->in.multi.one[i];

		if (w->count > sizeof(w->data) || vfio_region_write(s, w->region, w->offset, w->data, w->count))
			err = -EINVAL;
	}
	return err ? err : (int)sizeof(s->in.multi.n);
}

static int device_reset(struct vfio_server *s)
{
	vfio_server_reset(s);
	return 0;
}

static const struct {
	handler *fn;
	u32 min; /* minimum payload that the handler requires */
} commands[VFIO_COMMANDS] = {
	[VFIO_CMD_VERSION] = { version, 4 },
	[VFIO_CMD_DMA_MAP] = { dma_map, 32 },
	[VFIO_CMD_DMA_UNMAP] = { dma_unmap, 24 },
	[VFIO_CMD_DEVICE_GET_INFO] = { device_get_info, 16 },
	[VFIO_CMD_DEVICE_GET_REGION_INFO] = { get_region_info, 32 },
	[VFIO_CMD_DEVICE_GET_IRQ_INFO] = { get_irq_info, 16 },
	[VFIO_CMD_DEVICE_SET_IRQS] = { set_irqs, 20 },
	[VFIO_CMD_REGION_READ] = { region_read, 16 },
	[VFIO_CMD_REGION_WRITE] = { region_write, 16 },
	[VFIO_CMD_DEVICE_RESET] = { device_reset, 0 },
	[VFIO_CMD_REGION_WRITE_MULTI] = { region_write_multi, 8 },
};

/* A full socket ends the connection: the client does not read its replies. */
static int message_reply(struct vfio_server *s, int got)
{
	u32 size = got > 0 ? (u32)got : 0;
	struct vfio_hdr hdr = { s->hdr.id, s->hdr.command, (u32)sizeof(hdr) + size, VFIO_FLAG_REPLY, 0 };
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { &s->in, size } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (got < 0) {
		hdr.flags |= VFIO_FLAG_ERROR;
		hdr.error = (u32)-got;
	}
	return sendmsg(s->client.conn.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)hdr.size ? 0 : -EPIPE;
}

/* In a build with RECORD=1: what QEMU sends, as items of the fuzzer's input, which has two bits for descriptors. */
static void message_record(const struct vfio_server *s)
{
#ifdef VFIO_RECORD
	static struct recording recording = { .variable = "MUSLIN_VFIO_RECORD" };
	u8 kind = (u8)(s->hdr.command << 4 | min(s->nfds, 3u));

	recording_item(&recording, kind, (u8)s->hdr.flags, NULL, 0, &s->in, payload_size(s));
#endif
}

int vfio_message(struct vfio_server *s)
{
	u16 c = s->hdr.command;
	bool known = c < VFIO_COMMANDS && commands[c].fn;
	int got = -EOPNOTSUPP;

	if (s->hdr.flags & VFIO_FLAG_TYPE || (!s->negotiated && c != VFIO_CMD_VERSION))
		return -EBADMSG;
	message_record(s);
	if (known)
		got = payload_size(s) < commands[c].min ? -EINVAL : commands[c].fn(s);
	if (got < 0 && !(known && got == -EOPNOTSUPP)) {
		s->counters[VFIO_CTR_BAD_MESSAGES]++;
		log_at(LOG_DEBUG, s->client.path, "vfio-user command %u is refused: %d", c, got);
	}
	if (!(s->hdr.flags & VFIO_FLAG_NO_REPLY) && message_reply(s, got))
		return -EPIPE;
	return s->negotiated ? 0 : -EBADMSG;
}
