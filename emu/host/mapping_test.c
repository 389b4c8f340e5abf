// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mappings of a program's memory: which are accepted, which are rejected, and lookups. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/host/server.h"

#define AT   0x100000ull /* the program's address */
#define SIZE 0x10000ull

enum file {
	MEMFD,
	UNSEALED,
	PLAIN,
	DIRECTORY,
	FILES
};

static int files[FILES];

static void open_files(void)
{
	files[MEMFD] = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	files[UNSEALED] = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	files[PLAIN] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	files[DIRECTORY] = open("/", O_RDONLY | O_CLOEXEC);
	assert(!ftruncate(files[MEMFD], 4 * SIZE) && !ftruncate(files[UNSEALED], 4 * SIZE));
	assert(!fcntl(files[MEMFD], F_ADD_SEALS, F_SEAL_SHRINK));
}

static const struct {
	const char *what;
	u64 addr, len, offset;
	enum file file;
	int result;
} adds[] = {
	{ "1 a memfd that cannot shrink", AT, SIZE, 0, MEMFD, 0 },
	{ "2 its end", AT, SIZE, 3 * SIZE, MEMFD, 0 },
	{ "3 beyond its end", AT, SIZE, 3 * SIZE + 4096, MEMFD, -EINVAL },
	{ "4 an offset beyond its end", AT, SIZE, 1ull << 40, MEMFD, -EINVAL },
	{ "5 an offset that is no page's", AT, SIZE, 100, MEMFD, -EINVAL },
	{ "6 nothing", AT, 0, 0, MEMFD, -EINVAL },
	{ "7 more than there is", AT, 1ull << 50, 0, MEMFD, -EINVAL },
	{ "8 around the end of addresses", ~0ull - 4095, SIZE, 0, MEMFD, -EINVAL },
	{ "9 a memfd that can shrink", AT, SIZE, 0, UNSEALED, -EINVAL },
	{ "10 a plain file", AT, SIZE, 0, PLAIN, -EINVAL },
	{ "11 a directory", AT, SIZE, 0, DIRECTORY, -EINVAL },
};

static void test_adds(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(adds); i++) {
		struct uv_process p = { .copy = -1 };
		int got = uv_mapping_add(&p, adds[i].addr, adds[i].len, files[adds[i].file], adds[i].offset);

		printf("  %s: %d\n", adds[i].what, got);
		assert(got == adds[i].result && p.nmappings == !got);
		uv_mapping_remove(&p, 0, ~0ull);
		assert(!p.nmappings);
	}
}

static const struct {
	u64 addr, len;
	bool found;
} lookups[] = {
	{ AT, SIZE, true },
	{ AT + 1, SIZE - 1, true },
	{ AT + SIZE - 1, 1, true },
	{ AT + SIZE, 1, false },
	{ AT - 1, 2, false },
	{ AT + 1, SIZE, false },
	{ AT + 2 * SIZE, SIZE, true },
	{ AT, 3 * SIZE, false },
	{ AT + 5, ~0ull, false },
	{ 0, 1, false },
};

static void test_lookups(void)
{
	struct uv_process p = { .copy = -1 };
	u32 i;

	assert(!uv_mapping_at(&p, AT, 1));
	assert(!uv_mapping_add(&p, AT, SIZE, files[MEMFD], 0));
	assert(!uv_mapping_add(&p, AT + 2 * SIZE, SIZE, files[MEMFD], SIZE));
	for (i = 0; i < ARRAY_SIZE(lookups); i++)
		assert(!!uv_mapping_at(&p, lookups[i].addr, lookups[i].len) == lookups[i].found);
	assert(pwrite(files[MEMFD], "x", 1, SIZE + 7) == 1);
	assert(*uv_mapping_at(&p, AT + 2 * SIZE + 7, 1) == 'x');
	uv_mapping_remove(&p, AT + SIZE - 1, 2); /* overlaps only the first */
	assert(p.nmappings == 1 && !uv_mapping_at(&p, AT, 1) && uv_mapping_at(&p, AT + 2 * SIZE, 1));
	uv_mapping_remove(&p, 0, ~0ull);
}

static void test_number_is_bounded(void)
{
	struct uv_process p = { .copy = -1 };
	u32 i;

	for (i = 0; i < UV_MAPPINGS; i++)
		assert(!uv_mapping_add(&p, AT + i * SIZE, SIZE, files[MEMFD], 0));
	assert(uv_mapping_add(&p, AT + i * SIZE, SIZE, files[MEMFD], 0) == -ENOSPC);
	uv_mapping_remove(&p, 0, ~0ull);
}

/*
 * Segments within mappings are moved immediately; one outside, across an edge, or of a region with on-demand paging is
 * not.
 */
static void test_moves(void)
{
	static u8 memory[3 * SIZE] __attribute__((aligned(SIZE))), out[3 * SIZE];
	struct uv_process p = { .copy = -1, .pid = getpid() };
	u64 at = (u64)(uintptr_t)memory;
	const struct hca_dma_seg seg[] = { { at + SIZE, 200, false, out }, { at + SIZE + 300, 50, false, out + 600 } },
				 outside = { at, 100, false, out }, across = { at + SIZE - 96, 300, false, out },
				 paged = { at + SIZE, 200, true, out };

	assert(mmap(memory + SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, files[MEMFD], 0) ==
	       memory + SIZE);
	assert(!uv_mapping_add(&p, at + SIZE, SIZE, files[MEMFD], 0));
	memset(memory, 'a', SIZE);
	memset(memory + SIZE, 'b', SIZE);
	assert(!uv_process_dma.read(&p, seg, ARRAY_SIZE(seg)));
	assert(out[0] == 'b' && out[199] == 'b' && !out[200] && out[600] == 'b');
	assert(uv_process_dma.read(&p, &outside, 1) == -EAGAIN && uv_process_dma.read(&p, &across, 1) == -EAGAIN);
	assert(uv_process_dma.read(&p, &paged, 1) == -EAGAIN && uv_process_dma.write(&p, &paged, 1) == -EAGAIN);
	memset(out, 'c', sizeof(out));
	assert(!uv_process_dma.write(&p, seg, ARRAY_SIZE(seg)));
	assert(memory[SIZE - 1] == 'a' && memory[SIZE] == 'c' && memory[SIZE + 349] == 'c');
	assert(uv_process_dma.write(&p, &outside, 1) == -EAGAIN && memory[0] == 'a');
	p.writes = 1; /* a write to other memory is pending, and must complete first */
	assert(uv_process_dma.write(&p, seg, 1) == -EAGAIN && !uv_process_dma.direct(&p, at + SIZE, 8, true));
	p.writes = 0;
	assert(uv_process_dma.direct(&p, at + SIZE, 8, true) && !uv_process_dma.direct(&p, at, 8, true));
	p.exited = true;
	assert(uv_process_dma.read(&p, seg, 1) == -EFAULT && !uv_process_dma.direct(&p, at + SIZE, 8, true));
	uv_mapping_remove(&p, 0, ~0ull);
}

int main(void)
{
	open_files();
	test_adds();
	test_lookups();
	test_number_is_bounded();
	test_moves();
	printf("mappings: all rows passed\n");
	return 0;
}
