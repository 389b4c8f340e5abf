// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The server with a conforming client and with a misbehaving one: messages, memory, regions, vectors, resets,
 * connections.
 */
#include "emu/lib/passed.h"
#include "emu/vfio/fixture.h"

#include "emu/lib/row.h"

#define CONFIG VFIO_PCI_CONFIG_REGION_INDEX
#define RW     (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

static struct device dev;
static char path[64];

static u64 counter(enum vfio_counter c)
{
	return vfio_counter(dev.s, c);
}

static void test_messages(struct client *c)
{
	u32 info[4] = { 16 }, irq[4] = { 16, 0, VFIO_PCI_MSIX_IRQ_INDEX, 0 }, region[8] = { 32, 0, 0 };
	int n = client_hello(c);

	row(1, "versions", n > 4 && !c->in.version.major && !c->in.version.json[n - 5] && vfio_connected(dev.s));
	row(2, "the reply fits QEMU's buffer", strstr(c->in.version.json, "\"write_multiple\":true") && n < 190);
	row(15, "as many DMA regions as a machine may have with KVM and virtio-mem, or with an IOMMU",
	    strstr(c->in.version.json, "\"max_dma_maps\":65535,") != NULL);
	row(3, "a second version is refused", client_hello(c) == -EINVAL);
	row(4, "device",
	    client_call(c, VFIO_CMD_DEVICE_GET_INFO, info, sizeof(info)) == 16 &&
		    c->in.info.flags == (VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET) && c->in.info.regions == 9 &&
		    c->in.info.irqs == 5);
	row(5, "vectors",
	    client_call(c, VFIO_CMD_DEVICE_GET_IRQ_INFO, irq, sizeof(irq)) == 16 && c->in.irq.count == DEV_VECTORS &&
		    c->in.irq.flags == VFIO_IRQ_INFO_EVENTFD);
	irq[2] = VFIO_PCI_INTX_IRQ_INDEX;
	row(6, "no other interrupts",
	    client_call(c, VFIO_CMD_DEVICE_GET_IRQ_INFO, irq, sizeof(irq)) == 16 && !c->in.irq.count);
	irq[2] = VFIO_PCI_ERR_IRQ_INDEX;
	row(16, "nor error recovery, which QEMU may request",
	    client_call(c, VFIO_CMD_DEVICE_GET_IRQ_INFO, irq, sizeof(irq)) == -EOPNOTSUPP &&
		    counter(VFIO_CTR_BAD_MESSAGES) == 1);
	irq[2] = 5;
	row(7, "nor what is not there", client_call(c, VFIO_CMD_DEVICE_GET_IRQ_INFO, irq, sizeof(irq)) == -EINVAL);
	row(8, "a BAR",
	    client_call(c, VFIO_CMD_DEVICE_GET_REGION_INFO, region, sizeof(region)) == 32 &&
		    c->in.region.size == DEV_BAR &&
		    c->in.region.flags == (VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE));
	region[2] = VFIO_PCI_ROM_REGION_INDEX;
	row(9, "no ROM",
	    client_call(c, VFIO_CMD_DEVICE_GET_REGION_INFO, region, sizeof(region)) == 32 && !c->in.region.size);
	region[2] = 9;
	row(10, "a region that is not there",
	    client_call(c, VFIO_CMD_DEVICE_GET_REGION_INFO, region, sizeof(region)) == -EINVAL);
	row(11, "an unknown command",
	    client_call(c, 99, NULL, 0) == -EOPNOTSUPP && counter(VFIO_CTR_BAD_MESSAGES) == 4);
	row(12, "one that is not offered", client_call(c, 6, region, 16) == -EOPNOTSUPP);
	row(13, "one that is too short", client_call(c, VFIO_CMD_DMA_MAP, region, 8) == -EINVAL);
	client_send(c, 99, VFIO_FLAG_NO_REPLY, NULL, 0, NULL, 0);
	row(14, "no reply where none is requested", client_reply(c) == -EPIPE && vfio_connected(dev.s));
}

static void test_config(struct client *c)
{
	u32 resets = dev.resets;
	u8 all[16 + 4096];
	u64 off = 0;

	row(20, "identity", client_read(c, CONFIG, 0, 4) == 0x101315b3 && client_read(c, CONFIG, 8, 4) == 0x02070003);
	client_write(c, CONFIG, 0, 0, 4);
	row(21, "stays", client_read(c, CONFIG, 0, 4) == 0x101315b3 && client_read(c, CONFIG, 0x2c, 4) == 0x000815b3);
	client_write(c, CONFIG, 0x10, ~0ull, 8);
	row(22, "the size of a 64-bit BAR", client_read(c, CONFIG, 0x10, 8) == 0xffffffffffff000cull);
	row(23, "capabilities: PCI Express, MSI-X, vendor-specific",
	    client_read(c, CONFIG, 0x34, 1) == 0x60 && client_read(c, CONFIG, 0x60, 2) == 0x9c10 &&
		    client_read(c, CONFIG, 0x9c, 4) == (0xa811 | (DEV_VECTORS - 1) << 16) &&
		    client_read(c, CONFIG, 0xa0, 8) == (DEV_TABLE | (u64)DEV_PBA << 32) &&
		    client_read(c, CONFIG, 0xa8, 8) == 0x180009);
	client_write(c, CONFIG, 4, 6, 2);
	client_write(c, CONFIG, 0x9e, 0x8000, 2);
	row(24, "command and MSI-X control",
	    client_read(c, CONFIG, 4, 2) == 6 && client_read(c, CONFIG, 0x9e, 2) == 0x8007);
	client_write(c, CONFIG, 0x68, 0xa810, 2);
	row(25, "a function level reset",
	    dev.resets == resets + 1 && !client_read(c, CONFIG, 4, 2) && !client_read(c, CONFIG, 0x68, 2) &&
		    client_read(c, CONFIG, 0x9e, 2) == 7);
	row(26, "past the end", client_read(c, CONFIG, 4096, 1) == ~0ull && client_read(c, CONFIG, 4095, 2) == ~0ull);
	memcpy(all, &off, 8);
	memcpy(all + 8, (u32[2]){ CONFIG, 4096 }, 8);
	row(27, "all of it at once", client_call(c, VFIO_CMD_REGION_READ, all, 16) == 16 + 4096);
}

/* Bytes that are mapped with one more region, at @mib. */
static u64 file_mapped(struct client *c, u64 mib)
{
	u64 before = dev.s->client.memory.mapped;

	client_map(c, mib << 20, 4096, 0, RW, c->memfd);
	return dev.s->client.memory.mapped - before;
}

/* Maps a region of each of many files, until that is refused. */
static u32 files_mapped(struct client *c)
{
	u32 n;
	int fd, err = 0;

	for (n = 0; !err; n += !err) {
		fd = memfd_create("file", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, 4096))
			abort();
		err = client_map(c, (u64)n << 20, 4096, 0, RW, fd);
		close(fd);
	}
	return err == -ENOSPC ? n : 0;
}

static void test_memory(struct client *c)
{
	int sock;
	u32 i;

	for (i = 0; i < 8; i++)
		c->mem[i] = c->mem[4096 - 4 + i] = (u8)('a' + i);
	client_map(c, CLIENT_IOVA, 4096, 0, RW, c->memfd);
	client_map(c, CLIENT_IOVA + 4096, 4096, 4096, RW, c->memfd);
	client_write(c, 0, DEV_DMA, CLIENT_IOVA, 8);
	row(30, "none without Bus Master Enable", dev.dma == -EFAULT && !vfio_dma(dev.s, CLIENT_IOVA, 1, false));
	client_write(c, CONFIG, 4, 4, 2);
	client_write(c, 0, DEV_DMA, CLIENT_IOVA, 8);
	row(31, "there and back", !dev.dma && !memcmp(c->mem + 8, "hgfedcba", 8));
	client_write(c, 0, DEV_DMA, CLIENT_IOVA + 4096 - 4, 8);
	row(32, "across regions", !dev.dma && !memcmp(c->mem + 4096 + 4, "hgfedcba", 8));
	row(33, "a pointer within one of them",
	    vfio_dma(dev.s, CLIENT_IOVA + 4088, 8, true) && !vfio_dma(dev.s, CLIENT_IOVA + 4088, 9, true));
	row(34, "one over another",
	    client_map(c, CLIENT_IOVA + 8191, 4096, 0, RW, c->memfd) == -EEXIST &&
		    client_map(c, CLIENT_IOVA - 1, 2, 0, RW, c->memfd) == -EEXIST);
	row(35, "beyond its file",
	    client_map(c, 0, 8192, CLIENT_MEM - 4096, RW, c->memfd) == -EINVAL &&
		    client_map(c, 0, 4096, ~0ull - 4095, RW, c->memfd) == -EINVAL);
	row(36, "an empty one, and one around the end",
	    client_map(c, 0, 0, 0, RW, c->memfd) == -EINVAL && client_map(c, ~0ull, 2, 0, RW, c->memfd) == -EINVAL);
	row(47, "more than a client may have",
	    !ftruncate(c->memfd, 2ll << 40) &&
		    client_map(c, 1ull << 41, (1ull << 40) - 4096, 4096, RW, c->memfd) == -ENOSPC &&
		    client_map(c, 1ull << 33, 4096, (2ll << 40) - 4096, RW, c->memfd) == 0 &&
		    client_unmap(c, 1ull << 33, 4096, 0) == 24 && !ftruncate(c->memfd, CLIENT_MEM));
	row(130, "one that is not of whole pages",
	    client_map(c, (1ull << 33) + 8, 4096, 0, RW, c->memfd) == -EINVAL &&
		    client_map(c, 1ull << 33, 4100, 0, RW, c->memfd) == -EINVAL);
	row(133, "nor of those of its file", client_map(c, 1ull << 33, 4096, 4098, RW, c->memfd) == -EINVAL);
	dev.unmaps = 0;
	client_write(c, CONFIG, 4, 0, 2);
	row(131, "Bus Master Enable is cleared: the device is told, once",
	    dev.unmaps == 1 && !dev.unmapped && dev.unmapped_last == ~0ull && !vfio_dma(dev.s, CLIENT_IOVA, 1, false));
	client_write(c, CONFIG, 4, 0, 2);
	client_write(c, CONFIG, 4, 4, 2);
	row(132, "and its pointers are valid again once it is set",
	    dev.unmaps == 1 && vfio_dma(dev.s, CLIENT_IOVA, 1, false));
	row(48, "regions of one file are mapped once",
	    !file_mapped(c, 5) && !file_mapped(c, 6) && client_unmap(c, 5 << 20, 4096, 0) == 24 &&
		    vfio_dma(dev.s, 6 << 20, 1, true) && client_unmap(c, 6 << 20, 4096, 0) == 24);
	dev.unmaps = 0;
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* another one: a thread closes it, maybe late */
	row(37, "no memory, but a socket", client_map(c, 0, 4096, 0, RW, sock) == -EINVAL);
	close(sock);
	row(38, "what is not shared is there, and cannot be reached",
	    !client_map(c, 0, 4096, 0, RW, -1) && !vfio_dma(dev.s, 0, 1, false));
	row(39, "what may only be read",
	    !client_map(c, 8192, 4096, 0, VFIO_DMA_MAP_FLAG_READ, c->memfd) && vfio_dma(dev.s, 8192, 4096, false) &&
		    !vfio_dma(dev.s, 8192, 1, true) && vfio_dma_write(dev.s, 8192, "x", 1) == -EFAULT);
	row(40, "a region is not cut", client_unmap(c, CLIENT_IOVA, 8191, 0) == -EINVAL && !dev.unmaps);
	row(41, "two are unmapped, and the device is notified",
	    client_unmap(c, CLIENT_IOVA, 8192, 0) == 24 && c->in.unmap.size == 8192 && dev.unmaps == 1 &&
		    dev.unmapped == CLIENT_IOVA && dev.unmapped_last == CLIENT_IOVA + 8191 &&
		    !vfio_dma(dev.s, CLIENT_IOVA, 1, false));
	row(42, "none is left to unmap", client_unmap(c, CLIENT_IOVA, 8192, 0) == 24 && !c->in.unmap.size);
	row(43, "flags",
	    client_unmap(c, 0, 4096, VFIO_DMA_UNMAP_FLAG_ALL) == -EINVAL && client_unmap(c, 0, 4096, 1) == -EINVAL &&
		    client_unmap(c, 0, 0, 0) == -EINVAL);
	row(44, "all are unmapped",
	    client_unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL) == 24 && c->in.unmap.size == 8192 &&
		    !vfio_dma(dev.s, 8192, 1, false));
	for (i = 0; i < VFIO_MAPS_MAX; i++)
		client_map(c, (u64)(VFIO_MAPS_MAX - i) * 8192, 4096, 0, RW, c->memfd);
	row(45, "the limit of regions",
	    vfio_dma(dev.s, 8192, 4096, true) && vfio_dma(dev.s, 8192 * VFIO_MAPS_MAX, 1, true) &&
		    !vfio_dma(dev.s, 4096, 1, true) && client_map(c, 0, 4096, 0, RW, c->memfd) == -ENOSPC);
	client_unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL);
	row(49, "the limit of files", files_mapped(c) == VFIO_FILES_MAX);
	row(46, "the last byte of all addresses",
	    client_unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL) == 24 &&
		    !client_map(c, ~0ull - 4095, 4096, 0, RW, c->memfd) && vfio_dma(dev.s, ~0ull, 1, true) &&
		    vfio_dma_write(dev.s, ~0ull, "xy", 2) == -EFAULT &&
		    client_unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL) == 24 && c->in.unmap.size == 4096);
}

static bool reached(void)
{
	return vfio_dma(dev.s, CLIENT_IOVA, 4096, true);
}

/* One write to config space clears Bus Master Enable and resets the function. */
static int clear_and_reset(struct client *c)
{
	struct {
		u64 off;
		u32 region, count;
		u8 data[0x66];
	} m = { 4, CONFIG, 0x66, { [0x65] = 0x80 } };

	return client_call(c, VFIO_CMD_REGION_WRITE, &m, 16 + sizeof(m.data));
}

/* Accesses to the region of the access before, which the server finds without a search. */
static void test_last_region(struct client *c)
{
	u8 byte = 0;

	client_map(c, CLIENT_IOVA, 4096, 0, RW, c->memfd);
	row(134, "it is unmapped", reached() && client_unmap(c, CLIENT_IOVA, 4096, 0) == 24 && !reached());
	c->mem[0] = 'a';
	c->mem[8192] = 'b';
	row(135, "and mapped with other bytes",
	    !client_map(c, CLIENT_IOVA, 4096, 8192, RW, c->memfd) && reached() &&
		    !vfio_dma_read(dev.s, CLIENT_IOVA, &byte, 1) && byte == 'b');
	row(136, "what is around it",
	    !vfio_dma(dev.s, CLIENT_IOVA - 1, 1, false) && reached() &&
		    !vfio_dma(dev.s, CLIENT_IOVA + 4096, 1, false) && !vfio_dma(dev.s, 0, 1, false));
	row(137, "the guest resets the function",
	    reached() && client_write(c, CONFIG, 0x68, 0x8000, 2) == 16 && !reached());
	row(138, "the client resets it",
	    client_write(c, CONFIG, 4, 4, 2) == 16 && reached() && !client_call(c, VFIO_CMD_DEVICE_RESET, NULL, 0) &&
		    !reached());
	row(139, "and its driver starts again", client_write(c, CONFIG, 4, 4, 2) == 16 && reached());
	row(140, "Bus Master Enable is cleared", client_write(c, CONFIG, 4, 0, 2) == 16 && !reached());
	client_write(c, CONFIG, 4, 4, 2);
	row(141, "together with a reset", reached() && clear_and_reset(c) == 16 && !dev.reset_dma && !reached());
	client_unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL);
	client_write(c, CONFIG, 4, 4, 2);
}

static void test_regions(struct client *c)
{
	struct {
		u64 n;
		struct vfio_write_one w[4];
	} m = { 4,
		{ { 0x200, 0, 4, "abcd" },
		  { 0x204, 0, 8, { 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l' } },
		  { DEV_BAR, 0, 4, "" },
		  { 0x20c, 0, 4, "mnop" } } };
	u64 bad = counter(VFIO_CTR_BAD_MESSAGES);

	client_write(c, 0, 0x400, 0x1122334455667788, 8);
	row(50, "what is written is read", client_read(c, 0, 0x400, 8) == 0x1122334455667788);
	row(51, "past the end",
	    client_write(c, 0, DEV_BAR - 4, 1, 8) == -EINVAL && client_read(c, 0, ~0ull, 8) == ~0ull);
	row(52, "no bytes, too many, another BAR",
	    client_write(c, 0, 0, 0, 0) == -EINVAL && client_read(c, 0, 0, VFIO_ACCESS_MAX + 1) == ~0ull &&
		    client_read(c, 1, 0, 4) == ~0ull);
	row(53, "a count that the message does not have", client_write(c, 0, 0, 0, 64) == -EINVAL);
	client_send(c, VFIO_CMD_REGION_WRITE_MULTI, VFIO_FLAG_NO_REPLY, &m, sizeof(m), NULL, 0);
	row(54, "a burst, of which the wrong one is left out",
	    !memcmp(dev.reg + 0x200, "abcdefghijklmnop", 16) && counter(VFIO_CTR_BAD_MESSAGES) == bad + 7);
	m.n = 1ull << 61;
	row(55, "a burst of more than it has",
	    client_call(c, VFIO_CMD_REGION_WRITE_MULTI, &m, sizeof(m)) == -EINVAL && vfio_connected(dev.s));
	client_write(c, 0, DEV_TABLE, 1, 4);
	row(56, "the MSI-X pages are not the device's", !dev.reg[DEV_TABLE] && !client_read(c, 0, DEV_PBA - 2, 4));
}

static void test_vectors(struct client *c)
{
	u32 trigger = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, msix = VFIO_PCI_MSIX_IRQ_INDEX;
	int pipes[2];

	client_write(c, CONFIG, 4, 4, 2);
	client_write(c, 0, DEV_RAISE, 3, 4);
	row(60, "pending without an eventfd", client_read(c, 0, DEV_PBA, 8) == 8);
	row(61, "raised by it", !client_events(c) && client_raised(c, 3) == 1 && !client_read(c, 0, DEV_PBA, 8));
	client_write(c, 0, DEV_RAISE, 7, 4);
	row(62, "raised", client_raised(c, 7) == 1 && !client_raised(c, 0));
	client_write(c, CONFIG, 4, 0, 2);
	client_write(c, 0, DEV_RAISE, 0, 4);
	row(63, "not without Bus Master Enable", !client_raised(c, 0) && client_read(c, 0, DEV_PBA, 8) == 1);
	client_write(c, CONFIG, 4, 4, 2);
	row(64, "raised when it is set", client_raised(c, 0) == 1 && counter(VFIO_CTR_MASKED_INTERRUPTS) == 2);
	client_write(c, 0, DEV_RAISE, DEV_VECTORS, 4);
	row(65, "a vector that is not there", !client_read(c, 0, DEV_PBA, 8));
	row(66, "none from now on", !client_set_irqs(c, trigger, msix, 2, 2, NULL, 0));
	client_write(c, 0, DEV_RAISE, 2, 4);
	row(67, "is pending", !client_raised(c, 2) && client_read(c, 0, DEV_PBA, 8) == 4);
	row(68, "the client raises",
	    !client_set_irqs(c, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, msix, 4, 2, NULL, 0) &&
		    client_raised(c, 4) && client_raised(c, 5) && !client_raised(c, 6));
	row(69, "beyond the last",
	    client_set_irqs(c, trigger, msix, 7, 2, c->event, 2) == -EINVAL &&
		    client_set_irqs(c, trigger, msix, ~0u, 2, c->event, 2) == -EINVAL);
	row(70, "too few descriptors", client_set_irqs(c, trigger, msix, 0, 4, c->event, 2) == -EINVAL);
	row(71, "no eventfd", !pipe(pipes) && client_set_irqs(c, trigger, msix, 0, 1, pipes + 1, 1) == -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	row(72, "masks and other interrupts are QEMU's",
	    client_set_irqs(c, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, msix, 0, 1, NULL, 0) == -EINVAL &&
		    client_set_irqs(c, trigger, VFIO_PCI_INTX_IRQ_INDEX, 0, 1, c->event, 1) == -EINVAL &&
		    !client_set_irqs(c, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_PCI_INTX_IRQ_INDEX,
				     0, 0, NULL, 0));
	client_write(c, CONFIG, 0x68, 0x8000, 2);
	client_write(c, CONFIG, 4, 4, 2);
	client_write(c, 0, DEV_RAISE, 1, 4);
	row(73, "a reset by the guest keeps the eventfds and clears pending bits",
	    client_raised(c, 1) == 1 && !client_read(c, 0, DEV_PBA, 8));
	row(74, "all off",
	    !client_set_irqs(c, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, msix, 0, 0, NULL, 0));
	client_write(c, 0, DEV_RAISE, 1, 4);
	row(75, "is off", !client_raised(c, 1));
	row(76, "a reset",
	    !client_call(c, VFIO_CMD_DEVICE_RESET, NULL, 0) && !client_read(c, 0, DEV_PBA, 8) &&
		    !client_read(c, CONFIG, 4, 2));
}

/* Each case closes its connection; the next client starts with a reset device. */
static void test_hostile(struct loop *loop)
{
	static const struct {
		int n;
		const char *what;
		struct vfio_hdr hdr;
		bool hello;
	} cases[] = {
		{ 80, "no version first", { 1, VFIO_CMD_DEVICE_RESET, 16, 0, 0 }, false },
		{ 81, "less than a header", { 1, VFIO_CMD_DEVICE_RESET, 15, 0, 0 }, true },
		{ 82, "more than a message may have", { 1, VFIO_CMD_REGION_WRITE, 16 + VFIO_MSG_MAX + 1, 0, 0 }, true },
		{ 83, "4 GiB", { 1, VFIO_CMD_REGION_WRITE, ~0u, 0, 0 }, true },
		{ 84, "a reply without a request", { 1, VFIO_CMD_DEVICE_RESET, 16, VFIO_FLAG_REPLY, 0 }, true },
	};
	struct client c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		client_open(&c, loop, path);
		if (cases[i].hello)
			client_hello(&c);
		if (send(c.fd, &cases[i].hdr, sizeof(cases[i].hdr), MSG_NOSIGNAL) > 0)
			loop_run_idle(loop, 0);
		row(cases[i].n, cases[i].what, !client_socket_connected(&dev.s->client));
		client_close(&c);
	}
	client_open(&c, loop, path);
	row(85, "another version",
	    client_call(&c, VFIO_CMD_VERSION, "\1\0\0\0{}", 7) == -EINVAL && !client_socket_connected(&dev.s->client));
	client_close(&c);
	client_open(&c, loop, path);
	row(86, "no JSON",
	    client_call(&c, VFIO_CMD_VERSION, "\0\0\0\0{]", 7) == -EINVAL && !client_socket_connected(&dev.s->client));
	client_close(&c);
	client_open(&c, loop, path);
	row(87, "JSON without an end", client_call(&c, VFIO_CMD_VERSION, "\0\0\0\0{}", 6) == -EINVAL);
	client_close(&c);
}

/* The messages below wait in the socket until the loop runs. */
static void write_put(struct client *c, u64 off, u64 v, u32 len)
{
	struct {
		u64 off;
		u32 region, count;
		u64 v;
	} m = { off, 0, len, v };

	if (!client_put(c, VFIO_CMD_REGION_WRITE, VFIO_FLAG_NO_REPLY, &m, 16 + len, NULL, 0))
		abort();
}

static void map_put(struct client *c, u64 iova, int fd)
{
	struct {
		u32 argsz, flags;
		u64 offset, iova, size;
	} m = { sizeof(m), RW, 0, iova, 4096 };

	if (!client_put(c, VFIO_CMD_DMA_MAP, VFIO_FLAG_NO_REPLY, &m, sizeof(m), &fd, fd >= 0))
		abort();
}

/* The first byte there; -1: no memory. */
static int byte_at(u64 iova)
{
	const u8 *p = vfio_dma(dev.s, iova, 1, false);

	return p ? *p : -1;
}

/* Messages that are received together, and in parts. */
static void test_stream(struct loop *loop)
{
	enum {
		SIZE = 40,
		WRITES = VFIO_TURN / SIZE
	};
	struct vfio_hdr hdr = { 1, VFIO_CMD_REGION_WRITE, SIZE, VFIO_FLAG_NO_REPLY, 0 };
	u8 one[SIZE] = { 0 };
	int other = memfd_create("other", MFD_CLOEXEC);
	bool early = false;
	struct client c;
	u64 before;
	u32 i;

	client_open(&c, loop, path);
	if (!client_start(&c) || ftruncate(other, 4096) || pwrite(other, "o", 1, 0) != 1)
		abort();
	c.mem[0] = 'c';
	write_put(&c, 0x500, 1, 8);
	write_put(&c, 0x508, 2, 8);
	write_put(&c, 0x500, 3, 8);
	loop_run_idle(loop, 0);
	row(120, "several, in their order", dev.reg[0x500] == 3 && dev.reg[0x508] == 2);
	memcpy(one, &hdr, sizeof(hdr));
	memcpy(one + 16, (u32[]){ 0x600, 0, 0, 8, 0x55 }, 20);
	for (i = 0; i < SIZE; i++) {
		early |= dev.reg[0x600];
		if (send(c.fd, one + i, 1, MSG_NOSIGNAL) == 1)
			loop_run_idle(loop, 0);
	}
	row(121, "a byte at a time", !early && dev.reg[0x600] == 0x55);
	before = counter(VFIO_CTR_REGION_WRITES);
	for (i = 0; i < 3 * WRITES; i++)
		write_put(&c, 0x500, i, 8);
	row(122, "others have their turn",
	    !dev.s->client.ops->readable(&dev.s->client) && counter(VFIO_CTR_REGION_WRITES) == before + WRITES);
	loop_run_idle(loop, 0);
	row(123, "the rest follows", counter(VFIO_CTR_REGION_WRITES) == before + 3 * (u64)WRITES);
	write_put(&c, 0x500, 0, 8);
	map_put(&c, 1 << 20, c.memfd);
	map_put(&c, 2 << 20, -1);
	map_put(&c, 3 << 20, other);
	loop_run_idle(loop, 0);
	row(124, "each has its own descriptors",
	    byte_at(1 << 20) == 'c' && byte_at(2 << 20) < 0 && byte_at(3 << 20) == 'o');
	for (i = 0; i < WRITES - 1; i++)
		write_put(&c, 0x500, 0, 8);
	map_put(&c, 4 << 20, -1);
	map_put(&c, 5 << 20, c.memfd);
	loop_run_idle(loop, 0);
	row(125, "one without, of which a read ends within", byte_at(4 << 20) < 0 && byte_at(5 << 20) == 'c');
	for (i = 0; i < WRITES - 1; i++)
		write_put(&c, 0x500, 0, 8);
	map_put(&c, 6 << 20, c.memfd);
	map_put(&c, 7 << 20, other);
	loop_run_idle(loop, 0);
	row(126, "one with a descriptor, of which a read ends within",
	    byte_at(6 << 20) == 'c' && byte_at(7 << 20) == 'o');
	for (i = 0; i < WRITES; i++)
		write_put(&c, 0x500, 0, i < 2 ? 4 : 8);
	map_put(&c, 8 << 20, c.memfd);
	map_put(&c, 9 << 20, other);
	loop_run_idle(loop, 0);
	row(127, "whose header a read ends within", byte_at(8 << 20) == 'c' && byte_at(9 << 20) == 'o');
	close(other);
	client_close(&c);
}

/* Somebody who sends for ever and never reads is at the end when the socket is full; the loop comes back in between. */
static void test_flood(struct loop *loop)
{
	u8 buf[16 * 64];
	struct client c;
	u32 i, sent = 0;

	for (i = 0; i < sizeof(buf); i += 16)
		memcpy(buf + i, &(struct vfio_hdr){ 1, VFIO_CMD_DEVICE_RESET, 16, 0, 0 }, 16);
	client_open(&c, loop, path);
	client_hello(&c);
	while (vfio_connected(dev.s) && sent < 64u << 20) {
		ssize_t n = send(c.fd, buf, sizeof(buf), MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (u32)n : 0;
		loop_run_idle(loop, 0);
	}
	row(90, "a client that reads no replies", !vfio_connected(dev.s) && sent > 4096);
	client_close(&c);
}

/* What @c receives after the device's socket is closed, which a thread does: 0 at the end of the stream, or -errno. */
static int client_end_of_stream(struct client *c)
{
	struct passed_stats st;
	u8 buf[64];
	ssize_t n;

	do
		passed_stats(&st);
	while (st.waiting && !usleep(1000));
	do
		n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
	while (n > 0);
	return n ? -errno : 0;
}

static void test_coming_and_going(struct loop *loop)
{
	struct client c, other;
	u32 resets, i;

	client_open(&c, loop, path);
	if (!client_start(&c))
		abort();
	for (i = 0; i < 100; i++)
		write_put(&c, 0x500, i, 8);
	client_socket_disconnect(&dev.s->client);
	row(99, "disconnected with messages unread: the end of the stream", !client_end_of_stream(&c));
	client_close(&c);

	client_open(&c, loop, path);
	row(100, "a driver starts", client_start(&c) && vfio_connected(dev.s) && reached());
	client_open(&other, loop, path);
	row(101, "a second client is refused", client_hello(&other) == -EPIPE && counter(VFIO_CTR_REFUSED) == 1);
	client_close(&other);
	resets = dev.resets;
	client_close(&c);
	row(102, "it disconnects: memory and vectors are released",
	    dev.resets == resets + 1 && !vfio_connected(dev.s) && !vfio_dma(dev.s, CLIENT_IOVA, 1, false) &&
		    dev.s->vector[0] < 0);
	client_open(&c, loop, path);
	row(103, "and connects again", client_start(&c) && vfio_dma(dev.s, CLIENT_IOVA, 1, true));
	row(104, "memory is cut short", !ftruncate(c.memfd, 0));
	client_write(&c, 0, DEV_DMA, CLIENT_IOVA, 8);
	row(105, "only the connection is closed",
	    !vfio_connected(dev.s) && counter(VFIO_CTR_LOST_MEMORY) == 1 && !dev.dma);
	client_close(&c);
}

int main(void)
{
	struct loop *loop = loop_create();
	struct client c;

	client_path(path, sizeof(path));
	if (!loop || !dev_create(&dev, loop, path) || client_open(&c, loop, path))
		return 1;
	test_messages(&c);
	test_config(&c);
	test_memory(&c);
	test_last_region(&c);
	test_regions(&c);
	test_vectors(&c);
	client_close(&c);
	test_hostile(loop);
	test_stream(loop);
	test_flood(loop);
	test_coming_and_going(loop);
	vfio_server_destroy(dev.s);
	loop_destroy(loop);
	return rows_end();
}
