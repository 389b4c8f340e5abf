// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile QEMU: speaks vfio-user to the ConnectX of a host, and violates the protocol: hostile-qemu SOCKET MODE
 * [SEED]. Exits with 0 if the device works for a correct one afterwards.
 */
#include <signal.h>
#include <sys/wait.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/clock.h"
#include "emu/vfio/fixture.h"

#define ANSWER_NS (5 * NSEC_PER_SEC)
#define DOORBELL  0x18
#define TIMES     60
#define PAGE      4096u
#define RW        (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
#define WILD_IOVA (1ull << 40)

struct driver {
	struct client c;
	u16 lid;
	bool privileged, offload;
	u8 in[8192], out[8192];
	u32 eqn, cqn, pdn, uar, lkey;
	u32 user_index;
	u32 eqe, cqe;
};

static struct driver d;
static const char *socket_path;

static u64 driver_addr(u32 at)
{
	return CLIENT_IOVA + at;
}

static void driver_poke(struct driver *dr, u64 off, u32 v)
{
	u64 end = clock_read() + ANSWER_NS;

	client_write(&dr->c, 0, off, htobe32(v), 4);
	while (off == DOORBELL && __atomic_load_n(dr->c.mem + 63, __ATOMIC_ACQUIRE) & 1 && clock_read() < end)
		usleep(20);
}

static void driver_poke64(struct driver *dr, u64 off, u64 v)
{
	client_write(&dr->c, 0, off, htobe64(v), 8);
}

#include "harness/hostile/honest.h"

static void driver_limit(void) {}

static void driver_kick(void)
{
	client_write(&d.c, 0, DOORBELL, htobe32(1), 4);
}

/* Connects as QEMU does. The daemon may not have seen the end of the last connection yet, and end this one then. */
static void connect_qemu(void)
{
	u64 end = clock_read() + ANSWER_NS;

	for (;;) {
		if (!client_open(&d.c, NULL, socket_path) && client_start(&d.c))
			return;
		client_close(&d.c);
		if (clock_read() > end)
			break;
		usleep(1000);
	}
	printf("the device accepts no connection\n");
	exit(1);
}

static void connect_and_start(void)
{
	connect_qemu();
	start();
}

/* Messages of any command, length and flags with any descriptors, and bytes that are no message. */
static void messages(void)
{
	static u8 bytes[1024];
	u32 n, i;

	for (n = 0; n < 2 * TIMES; n++) {
		if (n % 4 == 0)
			connect_and_start();
		else if (n % 4 == 1)
			connect_qemu();
		else if (client_open(&d.c, NULL, socket_path))
			continue;
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (u8)(draw() % 3 ? draw() % 9 : draw());
		for (i = 0; i < 1 + draw() % 6; i++) {
			int fds[4] = { d.c.memfd, d.c.fd, d.c.memfd, d.c.fd };

			client_put(&d.c, (u16)(draw() % (VFIO_COMMANDS + 3)), draw() % 4 ? 0 : draw() % 64, bytes,
				   draw() % sizeof(bytes), fds, draw() % 3 ? 0 : 1 + draw() % ARRAY_SIZE(fds));
		}
		if (n % 3 == 0 && send(d.c.fd, bytes, draw() % sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			wrong += errno != EPIPE && errno != ECONNRESET && errno != EAGAIN;
		client_close(&d.c);
	}
}

/* The connection ends within a message, at each byte of it, while the device works. */
static void cut(void)
{
	struct {
		struct vfio_hdr hdr;
		u64 off;
		u32 region, count, value;
	} __attribute__((packed)) m = { { 1, VFIO_CMD_REGION_WRITE, sizeof(m), 0, 0 }, DOORBELL, 0, 4, htobe32(1) };
	u32 len;

	for (len = 1; len < sizeof(m); len++) {
		connect_and_start();
		post_all();
		if (send(d.c.fd, &m, len, MSG_NOSIGNAL) != (ssize_t)len)
			wrong++;
		client_close(&d.c);
	}
}

/* Maps and unmaps a part of memory, also that of the queues, while the device works. */
static void map_once(u32 n)
{
	u64 iova = WILD_IOVA + draw() % 512 * PAGE;

	switch (n % 4) {
	case 0:
		client_map(&d.c, iova, PAGE << draw() % 4, draw() % 128 * PAGE, draw() % 4, d.c.memfd);
		break;
	case 1:
		client_unmap(&d.c, iova, PAGE << draw() % 4, 0);
		break;
	case 2:
		client_map(&d.c, draw() % 2 ? CLIENT_IOVA + draw() % CLIENT_MEM : iova, draw(), draw(), RW,
			   draw() % 2 ? d.c.fd : d.c.memfd);
		break;
	default:
		client_unmap(&d.c, CLIENT_IOVA, CLIENT_MEM, 0);
		post_all();
		client_map(&d.c, CLIENT_IOVA, CLIENT_MEM, 0, RW, d.c.memfd);
	}
}

static void maps(void)
{
	u32 n, i;

	for (n = 0; n < TIMES / 4; n++) {
		connect_and_start();
		for (i = 0; i < 32; i++) {
			post_all();
			map_once(draw());
		}
		client_close(&d.c);
	}
}

/* The file of the memory becomes shorter while the device works; this program does not touch it any more. */
static void shrunk(void)
{
	u32 n;

	for (n = 0; n < TIMES; n++) {
		connect_and_start();
		post_all();
		if (ftruncate(d.c.memfd, n & 1 ? 0 : AT_WQ))
			wrong++;
		driver_kick();
		client_close(&d.c);
	}
}

/* SIGKILL while a process maps memory and the device works. */
static void killed(void)
{
	u32 n;

	for (n = 0; n < TIMES; n++) {
		int ready[2], status;
		char c;
		pid_t pid;

		if (pipe(ready))
			exit(1);
		pid = fork();
		if (!pid) {
			close(ready[0]);
			connect_and_start();
			close(ready[1]);
			for (;;) {
				post_all();
				map_once(draw());
			}
		}
		close(ready[1]);
		if (read(ready[0], &c, 1)) {
			/* closed by the child: it is at work */
		}
		close(ready[0]);
		usleep(draw() % 3000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		wrong += !WIFSIGNALED(status);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} modes[] = {
		{ "messages", messages }, { "cut", cut }, { "maps", maps }, { "shrunk", shrunk }, { "killed", killed }
	};
	u32 i;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 2 && i < ARRAY_SIZE(modes) && strcmp(modes[i].name, argv[2]);)
		i++;
	if (argc < 3 || i == ARRAY_SIZE(modes)) {
		fprintf(stderr, "usage: hostile-qemu SOCKET messages|cut|maps|shrunk|killed [SEED]\n");
		return 2;
	}
	socket_path = argv[1];
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	modes[i].fn();
	connect_qemu();
	honest();
	client_close(&d.c);
	printf("%s: done, %u wrong\n", argv[2], wrong);
	return wrong != 0;
}
