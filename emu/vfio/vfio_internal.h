/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private state of the server, and the protocol's messages (vfio-user 0.0: structures of linux/vfio.h after a header).
 */
#ifndef MUSLIN_VFIO_INTERNAL_H
#define MUSLIN_VFIO_INTERNAL_H

#include <linux/vfio.h>

#include "emu/lib/client_socket.h"
#include "emu/vfio/vfio.h"

#define VFIO_MAPS_MAX   65535 /* DMA regions of a client, as of the kernel's VFIO */
#define VFIO_FILES_MAX  256   /* mappings of files of a client's memory; a process has 65530 */
#define VFIO_FDS_MAX    16    /* descriptors of a message */
#define VFIO_MSG_MAX    8192  /* payload bytes of a message */
#define VFIO_TURN       2560  /* bytes of one client per turn: 64 doorbells */
#define VFIO_CONFIG_LEN 4096
#define VFIO_PAGE       4096 /* unit of DMA regions */

enum vfio_command {
	VFIO_CMD_VERSION = 1,
	VFIO_CMD_DMA_MAP = 2,
	VFIO_CMD_DMA_UNMAP = 3,
	VFIO_CMD_DEVICE_GET_INFO = 4,
	VFIO_CMD_DEVICE_GET_REGION_INFO = 5,
	VFIO_CMD_DEVICE_GET_IRQ_INFO = 7,
	VFIO_CMD_DEVICE_SET_IRQS = 8,
	VFIO_CMD_REGION_READ = 9,
	VFIO_CMD_REGION_WRITE = 10,
	VFIO_CMD_DEVICE_RESET = 13,
	VFIO_CMD_REGION_WRITE_MULTI = 15,
	VFIO_COMMANDS
};

#define VFIO_FLAG_TYPE     0xfu
#define VFIO_FLAG_REPLY    0x1u
#define VFIO_FLAG_NO_REPLY 0x10u
#define VFIO_FLAG_ERROR    0x20u

struct vfio_hdr {
	u16 id, command;
	u32 size, flags, error;
};

struct vfio_write_one {
	u64 offset;
	u32 region, count;
	u8 data[8];
};

union vfio_payload {
	struct {
		u16 major, minor;
		char json[VFIO_MSG_MAX - 4];
	} version;
	struct {
		u32 argsz, flags;
		u64 offset, iova, size;
	} map;
	struct {
		u32 argsz, flags;
		u64 iova, size;
	} unmap;
	struct {
		u32 argsz, flags, regions, irqs;
	} info;
	struct {
		u32 argsz, flags, index, cap_offset;
		u64 size, offset;
	} region;
	struct {
		u32 argsz, flags, index, count;
	} irq;
	struct {
		u32 argsz, flags, index, start, count;
	} set;
	struct {
		u64 offset;
		u32 region, count;
		u8 data[VFIO_MSG_MAX - 16];
	} access;
	struct {
		u64 n;
		struct vfio_write_one one[(VFIO_MSG_MAX - 8) / sizeof(struct vfio_write_one)];
	} multi;
};

/*
 * A file of the client's memory, mapped once for all regions in it: behind an IOMMU each page is a region. @from: the
 * file's offset where the mapping begins.
 */
struct vfio_file {
	struct list link;
	dev_t dev;
	ino_t ino;
	u64 from, size;
	bool write;
	u32 refs;
	struct shared_map memory;
};

struct vfio_map {
	u64 iova, size;
	bool write;
	struct vfio_file *file; /* NULL: memory that the client does not share, such as ROMs */
	u8 *ptr;
};

struct vfio_server {
	struct vfio_config cfg;
	const struct vfio_ops *ops;
	void *dev;
	struct client_socket client;
	bool negotiated; /* VERSION was received */
	u8 config[VFIO_CONFIG_LEN], writable[VFIO_CONFIG_LEN];
	struct vfio_map *map[VFIO_MAPS_MAX]; /* by address */
	u32 nmaps;
	const struct vfio_map *last; /* that of the last access, a shared one; NULL without Bus Master Enable */
	struct list files;
	u32 nfiles;
	int vector[VFIO_VECTORS_MAX]; /* eventfds; -1 */
	u64 pending;                  /* bit mask of pending vectors: the PBA */
	u64 counters[VFIO_CTR_NUM];
	/* received bytes: messages, of which the last one may be incomplete; @fds are that one's */
	u8 queue[sizeof(struct vfio_hdr) + sizeof(union vfio_payload)];
	u32 queued;
	/* the message that is handled; its answer takes its place */
	struct vfio_hdr hdr;
	union vfio_payload in;
	int fds[VFIO_FDS_MAX];
	u32 nfds;
};

/* config.c: config space */
void vfio_config_init(struct vfio_server *s);
void vfio_config_reset(struct vfio_server *s);
void vfio_config_write(struct vfio_server *s, u32 off, const u8 *data, u32 len);

/* dma.c: the client's memory */
int vfio_map_add(struct vfio_server *s, u64 iova, u64 size, u64 offset, bool write, int fd);
/* Removes all regions from @iova to @last; -EINVAL if one is only partly inside. */
int vfio_map_remove(struct vfio_server *s, u64 iova, u64 last, u64 *removed);
void vfio_map_clear(struct vfio_server *s);

/* irq.c: MSI-X vectors */
void vfio_irq_set_fd(struct vfio_server *s, u32 vector, int fd); /* takes @fd; -1: none */
void vfio_irq_deliver(struct vfio_server *s);                    /* raises pending vectors that are ready */

/* region.c: accesses to regions; 0, or -EINVAL: outside of the device's regions */
int vfio_region_read(struct vfio_server *s, u32 region, u64 off, u8 *data, u32 len);
int vfio_region_write(struct vfio_server *s, u32 region, u64 off, const u8 *data, u32 len);
u64 vfio_region_size(const struct vfio_server *s, u32 region);

/* server.c: any reset of the function */
void vfio_server_reset(struct vfio_server *s);

/* message.c: answers s->hdr with s->in. 0; -errno: the connection ends. */
int vfio_message(struct vfio_server *s);

#endif
