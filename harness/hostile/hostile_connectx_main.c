// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile driver of a ConnectX, in a guest as root, where no driver of the kernel uses the function: hostile-connectx
 * DEVICE MODE [SEED]. DEVICE is the function's directory in sysfs. It writes random values to commands, queues,
 * doorbell records and the BAR, or resets the function while it works; then it uses the function correctly. Exits with
 * 0 if that still works.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/clock.h"

#define WILD_NS   1500000000ull
#define ANSWER_NS (5 * NSEC_PER_SEC)
#define BAR_BYTES (1u << 25)
#define MEM_BYTES (1u << 21) /* a huge page, with contiguous physical addresses */
#define DOORBELL  0x18
#define HEALTH    0x1010

/* In config space. */
#define COMMAND        0x04
#define COMMAND_ON     0x6 /* memory, bus master */
#define COMMAND_NO_DMA 0x2
#define DEVICE_CONTROL 0x68
#define FLR            0x8000

struct driver {
	struct {
		u8 *mem;
	} c;
	volatile u8 *bar;
	u16 lid;
	bool privileged, offload;
	u8 in[8192], out[8192];
	u32 eqn, cqn, pdn, uar, lkey;
	u32 user_index;
	u32 eqe, cqe;
};

static struct driver d;
static u64 physical;
static int config;

static u64 driver_addr(u32 at)
{
	return physical + at;
}

/* Writes a register. A command is complete, or has timed out, on return. */
static void driver_poke(struct driver *dr, u64 off, u32 v)
{
	u64 end = clock_read() + ANSWER_NS;

	*(volatile u32 *)(dr->bar + off) = htobe32(v);
	while (off == DOORBELL && __atomic_load_n(dr->c.mem + 63, __ATOMIC_ACQUIRE) & 1 && clock_read() < end)
		usleep(20);
}

static void driver_poke64(struct driver *dr, u64 off, u64 v)
{
	*(volatile u64 *)(dr->bar + off) = htobe64(v);
}

#include "harness/hostile/honest.h"

static void driver_kick(void)
{
	*(volatile u32 *)(d.bar + DOORBELL) = htobe32(1);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

static void config_write(u32 off, u16 value)
{
	if (pwrite(config, &value, sizeof(value), off) != sizeof(value))
		fail("config space");
}

static void map_device(const char *folder)
{
	int fd = open_in(folder, "resource0", O_RDWR);

	config = open_in(folder, "config", O_RDWR);
	config_write(COMMAND, COMMAND_ON);
	d.bar = mmap(NULL, BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (d.bar == MAP_FAILED)
		fail("the BAR");
	close(fd);
}

static void map_memory(void)
{
	u64 entry = 0;
	int fd = open_in("/proc/sys/vm", "nr_hugepages", O_WRONLY);

	if (write(fd, "4", 1) != 1)
		fail("nr_hugepages");
	close(fd);
	d.c.mem = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (d.c.mem == MAP_FAILED)
		fail("a huge page");
	memset(d.c.mem, 0, MEM_BYTES);
	fd = open_in("/proc/self", "pagemap", O_RDONLY);
	if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)d.c.mem / 4096 * 8)) != sizeof(entry))
		fail("pagemap");
	close(fd);
	physical = (entry & ((1ull << 55) - 1)) * 4096;
}

/*
 * Replaces the key of all memory by one of the program's own page, so that random requests do not overwrite the guest's
 * kernel.
 */
static void driver_limit(void)
{
	u32 i, all = d.lkey >> 8;

	memset(d.in, 0, sizeof(d.in));
	for (i = 0; i < MEM_BYTES / 4096; i++)
		wire_store(d.in + CX_BYTES_create_mkey_in + 8 * i, 8, driver_addr(i * 4096));
	must(driver_mkey(&d, 1, true, driver_addr(0), MEM_BYTES, MEM_BYTES / 4096, &d.lkey), "a key");
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_mkey_in, mkey_index, all);
	must(driver_command(&d, 0x202, 0, 16, 16), "the end of a key");
}

/*
 * 8 random bytes of a field. Addresses are the program's own or beyond all memory, and small numbers are in the first
 * page, so that the guest's kernel survives.
 */
static u64 wild(void)
{
	switch (draw() % 8) {
	case 0:
		return driver_addr(draw() % (MEM_BYTES / 2));
	case 1:
		return driver_addr(draw() % (MEM_BYTES / 8192) * 4096);
	case 2:
		return htobe64(driver_addr(draw() % (MEM_BYTES / 8192) * 4096));
	case 3:
		return draw() % 4096;
	case 4:
		return htobe64(draw() % 4096);
	case 5:
		return 0;
	default:
		return ((u64)draw() << 33 ^ draw()) | 1ull << 62 | 1ull << 6;
	}
}

static void scribble(u32 at, u32 bytes, u32 times)
{
	while (times--) {
		u64 v = wild();

		memcpy(d.c.mem + at + draw() % (bytes / 8) * 8, &v, sizeof(v));
	}
}

/* Commands of all opcodes, with any input, invalid mailbox addresses, and random entries. */
static void commands(void)
{
	u64 end = clock_read() + WILD_NS;
	u32 n, i, in_len, out_len;
	u8 *e;

	for (n = 0; clock_read() < end; n++) {
		if (n % 64 == 0)
			start();
		in_len = draw() % 4 ? 16 + draw() % 600 : 16 + draw() % 7000;
		out_len = draw() % 4 ? 16 + draw() % 600 : draw() % 7000;
		for (i = 8; i < in_len; i += 8) {
			u64 v = draw() % 3 ? 0 : wild();

			memcpy(d.in + i, &v, sizeof(v));
		}
		wire_store(d.in, 4, (draw() % 4 ? 0x100 * (1 + draw() % 8) + draw() % 16 : draw() % 0x1000) << 16);
		wire_store(d.in + 4, 4, draw() % 4);
		wire_store(d.in + 8, 4, draw() % 3 ? draw() % 64 : draw());
		e = driver_entry(&d, in_len, out_len);
		if (draw() % 4 == 0)
			scribble(AT_IN, 8 * BOX, 8);
		if (draw() % 4 == 0)
			scribble(AT_OUT, 8 * BOX, 8);
		if (draw() % 8 == 0)
			e[draw() % 63] = (u8)draw();
		driver_poke(&d, DOORBELL, draw() % 4 ? 1 : draw() | 1);
	}
}

/* Overwrites requests, doorbell records, completions and events while doorbells ring. */
static void queues(void)
{
	u64 end = clock_read() + WILD_NS;
	u32 n, i;

	while (clock_read() < end) {
		start();
		for (n = 0; n < 100; n++) {
			scribble(AT_WQ, QPS * 4096, 64);
			scribble(AT_EQ, AT_WQ - AT_EQ, 8);
			for (i = 0; i < QPS; i++) {
				/* often a request with a known opcode, and a possibly valid size */
				wire_store(driver_wqe(&d, i, draw()), 4, draw() % 16 << 8 | draw() % 0x26);
				wire_store(driver_wqe(&d, i, draw()) + 4, 4, qpn[i] << 8 | draw() % 64);
				wire_store(d.c.mem + AT_RECORDS + 64 + i * 64, 4, draw() % 5 ? draw() % 8 : draw());
				driver_posted(&d, i, qpn[i], draw() % 5 ? draw() % 32 : draw());
			}
			if (draw() % 8 == 0)
				wire_store(d.c.mem + AT_RECORDS, 4, draw());
			driver_arm_eq(&d);
			driver_arm_cq(&d, draw() & 1);
		}
	}
}

/* Writes all words of the BAR, the doorbells of all pages first, in all sizes. */
static void bar(void)
{
	u64 end = clock_read() + WILD_NS;
	u32 at;

	start();
	while (clock_read() < end) {
		at = draw() % 4 ? (draw() % 8 ? d.uar : draw() % (BAR_BYTES / 4096)) * 4096 + draw() % 4096
				: draw() % (draw() % 2 ? 0x6000 : BAR_BYTES);
		at &= ~7u;
		if (at >= 0x4000 && at < 0x6000)
			continue; /* QEMU's MSI-X table */
		switch (draw() % 4) {
		case 0:
			*(volatile u64 *)(d.bar + at) = wild();
			break;
		case 1:
			*(volatile u32 *)(d.bar + at + draw() % 2 * 4) = draw();
			break;
		case 2:
			*(volatile u16 *)(d.bar + at + draw() % 4 * 2) = (u16)draw();
			break;
		default:
			state += d.bar[at + draw() % 8];
		}
	}
}

/* Rings all doorbells of a function that must not write to memory now. */
static void no_dma(const char *when)
{
	static u8 before[MEM_BYTES / 2];

	(void)*(volatile u32 *)(d.bar + HEALTH); /* behind the write to config space */
	memcpy(before, d.c.mem, sizeof(before));
	*(volatile u32 *)(d.bar + DOORBELL) = htobe32(~0u);
	driver_poke64(&d, d.uar * 4096ull + 0x800, (u64)qpn[0] << 8);
	driver_arm_eq(&d);
	(void)*(volatile u32 *)(d.bar + HEALTH);
	usleep(1000);
	if (!memcmp(before, d.c.mem, sizeof(before)))
		return;
	wrong++;
	printf("memory is written %s\n", when);
}

/* Function level resets, and Bus Master Enable that is cleared and set, during requests and a command. */
static void resets(void)
{
	u64 end = clock_read() + WILD_NS;
	u32 n;

	for (n = 0; n < 8 || clock_read() < end; n++) {
		start();
		post_all();
		if (n % 4 < 2) {
			config_write(COMMAND, COMMAND_NO_DMA);
			no_dma("without Bus Master Enable");
			config_write(COMMAND, COMMAND_ON);
			if (n % 2)
				post_all();
		}
		if (n % 4) {
			config_write(DEVICE_CONTROL, FLR);
			config_write(COMMAND, COMMAND_ON);
			no_dma("after a function level reset");
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} modes[] = { { "commands", commands }, { "queues", queues }, { "bar", bar }, { "resets", resets } };
	u32 i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 2 && i < ARRAY_SIZE(modes) && strcmp(modes[i].name, argv[2]);)
		i++;
	if (argc < 3 || i == ARRAY_SIZE(modes)) {
		fprintf(stderr, "usage: hostile-connectx DEVICE commands|queues|bar|resets [SEED]\n");
		return 2;
	}
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	map_device(argv[1]);
	map_memory();
	honest();
	modes[i].fn();
	honest();
	printf("%s: done, %u wrong\n", argv[2], wrong);
	return wrong != 0;
}
