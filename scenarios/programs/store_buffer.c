// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether barriers of a guest order its accesses for this machine, on which doorbells and interrupts of shared memory
 * rely: of two sides that each write a word and then read the other's, one sees the other's write.
 *
 *     store_buffer MEMORY ROUNDS      MEMORY: the file of the memory of a guest that runs store_buffer.S
 *
 * Prints in how many rounds neither saw it.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "must.h"

/* Addresses of words in the guest's memory, each in a cache line of its own */
enum {
	ROUND = 0x1000,
	X = 0x1080,
	Y = 0x1100,
	READ = 0x1180,
	DONE = 0x1200
};

static volatile uint32_t *word(void *memory, int address)
{
	return (volatile uint32_t *)((char *)memory + address);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc == 3 ? (uint32_t)atoi(argv[2]) : 0, missed = 0, i, delay, seen;
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
	void *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(m != MAP_FAILED, "the guest's memory");
	for (i = 1; i <= rounds; i++) {
		*word(m, ROUND) = i;
		for (delay = i * 7 % 200; delay; delay--)
			__asm__ volatile(""); /* both sides reach it at different times */
		*word(m, Y) = i;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		seen = *word(m, X);
		while (*word(m, DONE) != i) {
			*word(m, ROUND) = i; /* the guest's firmware may have cleared it */
			sched_yield();
		}
		missed += seen != i && *word(m, READ) != i;
	}
	printf("%u\n", missed);
	return 0;
}
