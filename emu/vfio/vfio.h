/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server of a PCI device over vfio-user: the socket that QEMU's vfio-user-pci connects to, config space, MSI-X and the guest's memory.
 * What the device does is given by callbacks. One client at a time; further connections are rejected until it disconnects.
 *
 * Config space, with the PCI Express and MSI-X capabilities, and the MSI-X table and PBA are the server's: no callback sees them. DMA and
 * interrupts work only while the guest has set Bus Master Enable.
 */
#ifndef MUSLIN_VFIO_H
#define MUSLIN_VFIO_H

#include "emu/lib/loop.h"

#define VFIO_BARS        6
#define VFIO_VECTORS_MAX 64
#define VFIO_ACCESS_MAX  4096 /* bytes of one read or write; a driver's are of 1, 2, 4 or 8 */

struct vfio_server;

/* A 64-bit BAR takes two indices; the second one has no size. */
struct vfio_bar {
	u64 size; /* a power of 2, at least 4096; 0: none */
	bool mem64, prefetchable;
	/*
	 * These bytes (whole pages) are memory that the guest maps: its accesses there give no callback, the device polls vfio_area().
	 * 0: none. The first read()s and write()s of other bytes of the BAR cost the guest more then.
	 */
	u64 area_off, area_len;
};

struct vfio_config {
	const char *name; /* of the device, for messages; must outlive the server */
	u16 vendor, device, subvendor, subdevice;
	u32 class_code; /* 0x020700: base class, subclass, interface */
	u8 revision;
	struct vfio_bar bar[VFIO_BARS];
	u32 vectors; /* of MSI-X, 1 to VFIO_VECTORS_MAX */
	u8 msix_bar;
	u32 msix_table, msix_pba; /* offsets in it of two pages that hold nothing else */
	u8 vendor_cap;            /* bytes of a vendor-specific capability, which reads as 0; up to 64; 0: none */
};

/*
 * Little endian data as the guest's CPU sees it: @buf is what the access moves, @len bytes at @off, all within the BAR. @off and @len are
 * a peer's and need not be aligned. An op may not destroy the server.
 */
struct vfio_ops {
	void (*read)(void *dev, u32 bar, u64 off, void *buf, u32 len);
	void (*write)(void *dev, u32 bar, u64 off, const void *buf, u32 len);
	/* Function level reset, reset of the guest, or of QEMU for it: as after power-on. DMA has ended when it returns. */
	void (*reset)(void *dev);
	/* What is there up to @last goes: all pointers and work that refer to it are dropped before this returns. NULL: none is kept. */
	void (*dma_unmap)(void *dev, u64 iova, u64 last);
	/* The client comes or goes. When it has gone, all memory is unmapped (no dma_unmap comes), and a reset follows. May be NULL. */
	void (*present)(void *dev, bool here);
};

/* Listens at @path. NULL with errno. @ops and @dev must outlive it; *cfg is copied. The path is removed when it is destroyed. */
struct vfio_server *vfio_server_create(struct loop *loop, const char *path, const struct vfio_config *cfg,
				       const struct vfio_ops *ops, void *dev);
/* No op is called. */
void vfio_server_destroy(struct vfio_server *s);
bool vfio_connected(const struct vfio_server *s);
const char *vfio_path(const struct vfio_server *s);

/* Memory of the BAR's area, zeroed at a reset. NULL: it has none. */
void *vfio_area(const struct vfio_server *s, u32 bar);

/* Guest memory at @iova, until the next return to the loop or dma_unmap(); NULL unless all of it lies in one region with that right. */
void *vfio_dma(const struct vfio_server *s, u64 iova, u64 len, bool write);
/* The same for as much of it as one region holds: *len is cut. NULL: nothing there. */
void *vfio_dma_part(const struct vfio_server *s, u64 iova, u64 *len, bool write);
/* Copies of any length, across regions. 0, or -EFAULT with an unknown part done. */
int vfio_dma_read(struct vfio_server *s, u64 iova, void *buf, u64 len);
int vfio_dma_write(struct vfio_server *s, u64 iova, const void *buf, u64 len);

/* Raises the vector, unless the guest has MSI-X off or has masked it: then it is pending. */
void vfio_irq(struct vfio_server *s, u32 vector);

/* Exits of the guest first, then what its QEMU did wrong. */
#define VFIO_COUNTERS(C)                          \
	C(REGION_READS, "region_reads")           \
	C(REGION_WRITES, "region_writes")         \
	C(INTERRUPTS, "interrupts")               \
	C(MASKED_INTERRUPTS, "masked_interrupts") \
	C(RESETS, "resets")                       \
	C(DMA_MAPS, "dma_maps")                   \
	C(DMA_UNMAPS, "dma_unmaps")               \
	C(BAD_ADDRESSES, "bad_addresses")         \
	C(BAD_MESSAGES, "vfio_bad_messages")      \
	C(LOST_MEMORY, "vfio_lost_memory")        \
	C(REFUSED, "vfio_refused_connections")
#define VFIO_COUNTER_ENUM(name, str) VFIO_CTR_##name,
enum vfio_counter {
	VFIO_COUNTERS(VFIO_COUNTER_ENUM) VFIO_CTR_NUM
};
#undef VFIO_COUNTER_ENUM
const char *vfio_counter_name(enum vfio_counter c);
u64 vfio_counter(const struct vfio_server *s, enum vfio_counter c);

#endif
