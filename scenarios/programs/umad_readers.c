// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads, or (with an argument) processes, read one umad file, half of them with room for a single MAD. As with the
 * kernel's, each read returns a whole record, or ENOSPC with the first MAD of a longer one, which stays. Meanwhile the
 * process forks.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAD     256
#define HDR     sizeof(struct ib_user_mad_hdr)
#define BATCH   32
#define SENT    1000
#define READERS 6

static int fd;
static struct {
	unsigned int got, small, torn; /* records; those of one MAD; those that were not whole */
} * seen;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *reader(void *arg)
{
	size_t room = *(size_t *)arg;
	struct ib_user_mad_hdr *hdr = malloc(room);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (__atomic_load_n(&seen->got, __ATOMIC_SEQ_CST) < SENT && poll(&p, 1, 1000) == 1) {
		n = read(fd, hdr, room);
		if (n < 0 && (errno == EAGAIN || errno == ENOSPC))
			continue;
		if (n < 0)
			die("read");
		if (n != (ssize_t)hdr->length || hdr->status)
			__atomic_fetch_add(&seen->torn, 1, __ATOMIC_SEQ_CST);
		if (n == HDR + MAD)
			__atomic_fetch_add(&seen->small, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&seen->got, 1, __ATOMIC_SEQ_CST);
	}
	free(hdr);
	return NULL;
}

/* SubnAdmGet(ClassPortInfo), or SubnAdmGetTable(NodeRecord), whose response has several MADs. */
static void request(unsigned int agent, unsigned int lid, unsigned int number)
{
	struct {
		struct ib_user_mad_hdr hdr;
		unsigned char mad[MAD];
	} r = { .hdr = { .id = agent, .timeout_ms = 5000, .qpn = htobe32(1), .lid = htobe16(lid) } };

	memcpy(r.mad, (unsigned char[]){ 1, 3, 2, number % 2 ? 0x12 : 0x01 }, 4);
	memcpy(r.mad + 12, &number, sizeof(number)); /* of the TID */
	r.mad[17] = number % 2 ? 0x11 : 0x01;
	if (write(fd, &r, sizeof(r)) != sizeof(r))
		die("write");
}

/* A child of the process whose other threads read. */
static void child(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
}

static pid_t reader_process(size_t *room)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	reader(room);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct ib_user_mad_reg_req agent = { .qpn = 1, .mgmt_class = 3, .mgmt_class_version = 2, .rmpp_version = 1 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
	size_t room[2] = { HDR + MAD, 1 << 20 };
	struct ibv_port_attr port;
	pthread_t t[READERS];
	pid_t pid[READERS];
	unsigned int i;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		die("mmap");

	fd = open("/dev/infiniband/umad0", O_RDWR | O_NONBLOCK);
	if (fd < 0 || !c || ibv_query_port(c, 1, &port))
		die("open");
	if (ioctl(fd, IB_USER_MAD_ENABLE_PKEY) || ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &agent))
		die("agent");
	for (i = 0; i < READERS; i++) {
		if (argc > 1)
			pid[i] = reader_process(&room[i % 2]);
		else
			pthread_create(&t[i], NULL, reader, &room[i % 2]);
	}
	for (i = 0; i < SENT; i++) {
		while (i - __atomic_load_n(&seen->got, __ATOMIC_SEQ_CST) >= BATCH &&
		       !__atomic_load_n(&seen->torn, __ATOMIC_SEQ_CST))
			usleep(100);
		child();
		request(agent.id, port.sm_lid, i);
	}
	for (i = 0; i < READERS; i++) {
		if (argc > 1)
			waitpid(pid[i], NULL, 0);
		else
			pthread_join(t[i], NULL);
	}
	printf("%u records, %u of one MAD, %u torn\n", seen->got, seen->small, seen->torn);
	return 0;
}
