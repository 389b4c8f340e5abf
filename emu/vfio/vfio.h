/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Server of a PCI device over vfio-user: the socket that QEMU's vfio-user-pci connects to, config space, MSI-X and the
 * guest's memory. The device implements its function by callbacks. One client at a time; further connections are
 * rejected until it disconnects.
 *
 * The server handles config space, with the PCI Express and MSI-X capabilities, and the MSI-X table and PBA, without
 * callbacks. DMA and interrupts work only while the guest has set Bus Master Enable.
 */
#ifndef MUSLIN_VFIO_H
#define MUSLIN_VFIO_H

#include "emu/lib/loop.h"

#define VFIO_BARS        6
#define VFIO_VECTORS_MAX 64
#define VFIO_ACCESS_MAX  4096 /* bytes of one read or write; a driver's have 1, 2, 4 or 8 */

struct vfio_server;

/* A 64-bit BAR has two indices; the second one has no size. */
struct vfio_bar {
	u64 size; /* a power of 2, at least 4096; 0: none */
	bool mem64, prefetchable;
};

struct vfio_config {
	const char *name; /* for messages; must outlive the server */
	u16 vendor, device, subvendor, subdevice;
	u32 class_code; /* 0x020700: base class, subclass, interface */
	u8 revision;
	struct vfio_bar bar[VFIO_BARS];
	u32 vectors; /* MSI-X vectors, 1 to VFIO_VECTORS_MAX */
	u8 msix_bar;
	u32 msix_table, msix_pba; /* offsets in the BAR of two pages that contain nothing else */
	/* Length of a vendor-specific capability, which reads as 0: up to 64; 0: none. */
	u8 vendor_cap;
};

/*
 * Data is little endian, as the guest's CPU accesses it: @buf has the @len bytes at @off, all within the BAR. @off and
 * @len are from the client and need not be aligned. An op must not destroy the server.
 */
struct vfio_ops {
	void (*read)(void *dev, u32 bar, u64 off, void *buf, u32 len);
	void (*write)(void *dev, u32 bar, u64 off, const void *buf, u32 len);
	/*
	 * Function level reset, or reset of the guest by itself or by QEMU: state as after power-on. DMA must have
	 * ended on return. After the client has disconnected, all memory is unmapped (without dma_unmap()), and a reset
	 * follows.
	 */
	void (*reset)(void *dev);
	/*
	 * The client unmaps the regions from @iova to @last, or the guest clears Bus Master Enable (then these are all
	 * addresses): the device must drop all pointers and work that refer to them. NULL: it has none.
	 */
	void (*dma_unmap)(void *dev, u64 iova, u64 last);
};

/*
 * Listens at @path. NULL with errno set. @ops and @dev must outlive it; *cfg is copied. vfio_server_destroy() removes
 * the path.
 */
struct vfio_server *vfio_server_create(struct loop *loop, const char *path, const struct vfio_config *cfg,
				       const struct vfio_ops *ops, void *dev);
/* Calls no op. */
void vfio_server_destroy(struct vfio_server *s);
bool vfio_connected(const struct vfio_server *s);
const char *vfio_path(const struct vfio_server *s);
/* Whether the guest has set Bus Master Enable. */
bool vfio_bus_master(const struct vfio_server *s);

/*
 * Guest memory at @iova, valid until the next return to the loop or dma_unmap(); NULL unless all @len bytes are in one
 * region with that right.
 */
void *vfio_dma(struct vfio_server *s, u64 iova, u64 len, bool write);
/* Copies of any length, across regions. 0, or -EFAULT after an unspecified part. */
int vfio_dma_read(struct vfio_server *s, u64 iova, void *buf, u64 len);
int vfio_dma_write(struct vfio_server *s, u64 iova, const void *buf, u64 len);

/* Raises the vector; it is pending while it has no eventfd or Bus Master Enable is clear. */
void vfio_irq(struct vfio_server *s, u32 vector);

/* First the exits of the guest, then errors of its QEMU. */
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
