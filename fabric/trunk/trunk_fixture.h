/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of the tests and the fuzz target: two fabrics of one loop with trunks, and a peer that sends raw bytes. */
#ifndef MUSLIN_TRUNK_FIXTURE_H
#define MUSLIN_TRUNK_FIXTURE_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/rights.h"
#include "fabric/fabric_fixture.h"
#include "fabric/trunk/trunk_internal.h"

#define PEER_GUID 0x0002c90406400010ull /* of leaf101 */
#define OWN_GUID  0x0002c90400000010ull /* of leaf1 */

struct side {
	struct fabric *f;
	struct fabric_topology *topo;
	struct trunk_set *set;
};

static char test_path[64];
/* TLS on the Unix socket, which delivers at once, instead of TCP; options of all trunks */
static bool test_tls;
static char test_options[80];

static inline void side_connect(struct side *s)
{
	char err[300];

	s->set = trunk_set_create(test_loop, s->f, s->topo, err, sizeof(err));
	if (!s->set) {
		printf("%s\n", err);
		exit(1);
	}
}

/* A fabric of @shape whose leaf has a trunk at port 9; @how: to or listen; @more: options of the trunk. */
static inline void side_start_at(struct side *s, const char *shape, const char *leaf, const char *how,
				 const char *address, const char *more)
{
	char text[8000], err[300];
	u32 i;

	snprintf(text, sizeof(text), "%s\ntrunk %s:9 %s %s %s %s\n", shape, leaf, how, address, test_options, more);
	if (!test_loop)
		test_loop = loop_create_virtual();
	s->topo = fabric_topology_parse(text, strlen(text), "test", err, sizeof(err));
	if (!s->topo) {
		printf("%s\n", err);
		exit(1);
	}
	for (i = 0; i < s->topo->ntrunks; i++)
		s->topo->trunks[i].tls = test_tls;
	s->f = fabric_create(test_loop, s->topo, 1);
	side_connect(s);
}

/* On a Unix socket */
static inline void side_start(struct side *s, const char *shape, const char *leaf, const char *how, const char *more)
{
	snprintf(test_path, sizeof(test_path), "/tmp/muslin-trunk-%d", getpid());
	side_start_at(s, shape, leaf, how, test_path, more);
}

static inline void side_stop(struct side *s)
{
	trunk_set_destroy(s->set);
	fabric_destroy(s->f);
	fabric_topology_destroy(s->topo);
}

static inline struct fabric_port *side_port(struct side *s)
{
	return fabric_remote_local(fabric_remote(s->f, 0));
}

static inline u8 side_state(struct side *s)
{
	return side_port(s)->info->state;
}

static inline u64 side_counter(struct side *s, enum trunk_counter c)
{
	return trunk_counter(s->set, 0, c) + trunk_set_counter(s->set, c);
}

/* The timer expires in a daemon that was stopped when it was due. */
static inline void test_run_late(struct loop_timer *timer)
{
	struct now now = loop_now(test_loop);

	loop_timer_cancel(timer);
	timer->when = now.ns - TRUNK_LATE;
	timer->fn(timer, now);
}

static inline u32 connectors(const struct trunk_set *s)
{
	const struct trunk_connector *k;
	u32 n = 0;

	list_for_each (k, &s->connectors, link)
		n++;
	return n;
}

static inline void key_file(char *path, size_t size, const char *key)
{
	FILE *f;

	snprintf(path, size, "/tmp/muslin-key-%d-%zu", getpid(), strlen(key));
	f = fopen(path, "we");
	fchmod(fileno(f), 0600);
	fputs(key, f);
	fclose(f);
}

/* Connects as a peer that is not a fabric. */
static inline int raw_peer_connect_to(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		perror(path);
	return fd;
}

static inline int raw_peer_connect(void)
{
	return raw_peer_connect_to(test_path);
}

static inline void raw_peer_send(int fd, u8 type, u8 flags, const void *body, u32 len)
{
	u8 m[sizeof(struct trunk_head) + 0x10000];
	struct trunk_head h = { .type = type, .flags = flags, .len = cpu_to_be16((u16)len) };

	memcpy(m, &h, sizeof(h));
	memcpy(m + sizeof(h), body, len);
	if (send(fd, m, sizeof(h) + len, MSG_NOSIGNAL) < 0)
		return; /* the daemon may have refused it already */
	test_run(0);
}

static inline struct trunk_hello raw_peer_hello(void)
{
	struct trunk_hello h = { .version = cpu_to_be16(TRUNK_VERSION),
				 .port = 9,
				 .type = NODE_TYPE_SWITCH,
				 .guid = cpu_to_be64(PEER_GUID) };

	memcpy(h.magic, TRUNK_MAGIC, sizeof(h.magic));
	snprintf(h.name, sizeof(h.name), "raw peer");
	return h;
}

/* Sends a hello and trains the link. */
static inline int raw_peer_train(void)
{
	struct trunk_link l = { .epoch = cpu_to_be32(1),
				.ack = cpu_to_be32(1),
				.flags = TRUNK_LINK_TRAINS,
				.width = LINK_WIDTH_4X | LINK_WIDTH_1X,
				.speed = LINK_SPEED_QDR,
				.speed_ext = LINK_SPEED_EXT_DISABLE };
	struct trunk_hello h = raw_peer_hello();
	int fd = raw_peer_connect();

	raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	raw_peer_send(fd, TRUNK_LINK, 0, &l, sizeof(l));
	return fd;
}

/* Opens a ring of @size bytes with @n descriptors. */
static inline void raw_peer_ring_open(int fd, u32 size, const int *fds, u32 n)
{
	struct {
		struct trunk_head head;
		struct trunk_ring_open body;
	} m = { { .type = TRUNK_RING_OPEN, .len = cpu_to_be16(sizeof(m.body)) }, { cpu_to_be32(size) } };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	RIGHTS_CONTROL(control, 3) = { 0 };

	rights_put(&msg, control, fds, n);
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != (ssize_t)sizeof(m))
		perror("ring");
	test_run(0);
}

/* Creates a ring in @r and passes it; the link has been trained. */
static inline void raw_peer_ring(int fd, struct trunk_ring *r, u32 size)
{
	int memfd = trunk_ring_create(r);

	raw_peer_ring_open(fd, size, (int[]){ memfd, r->event }, 2);
	close(memfd);
}

/* Puts a message into the ring. */
static inline void raw_peer_put(struct trunk_ring *r, u8 type, u8 flags, const void *body, u32 len)
{
	struct trunk_head h = { .type = type, .flags = flags, .len = cpu_to_be16((u16)len) };
	bool bad;
	u8 *to = trunk_ring_reserve(r, (u32)sizeof(h) + len, &bad);

	if (!to)
		return;
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), body, len);
	trunk_ring_write(r, (u32)sizeof(h) + len);
}

#endif
