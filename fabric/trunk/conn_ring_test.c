// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of connections with rings: hostile rings and descriptors, wake-ups and credits. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include "emu/lib/passed.h"
#include "emu/lib/passed_fixture.h"
#include "fabric/trunk/pair_fixture.h"

static void ring_violation(int i, int fd, struct trunk_ring *r)
{
	static u8 bytes[sizeof(struct wire_lrh) + 4];
	u64 *head = (u64 *)r->shared;
	struct trunk_ring other;

	switch (i) {
	case 0:
		*head = TRUNK_RING + 1;
		break;
	case 1:
		*head = (u64)-4;
		break;
	case 2: /* longer than what is there */
		raw_peer_put(r, TRUNK_KEEPALIVE, 0, bytes, 0);
		((struct trunk_head *)(void *)(trunk_ring_reserve(r, 4, &(bool){ false }) - sizeof(struct trunk_head)))
			->len = cpu_to_be16(8);
		break;
	case 3:
		raw_peer_put(r, TRUNK_HELLO, 0, bytes, 8);
		break;
	case 4: /* a ring in a ring */
		raw_peer_put(r, TRUNK_RING_OPEN, 0, &(__be32){ cpu_to_be32(TRUNK_RING) }, 4);
		break;
	case 5: /* a second ring */
		raw_peer_ring(fd, &other, TRUNK_RING);
		trunk_ring_destroy(&other);
		break;
	case 6: /* beside the ring */
		raw_peer_send(fd, TRUNK_KEEPALIVE, 0, bytes, 0);
		break;
	case 7: /* nothing but what is to be skipped: zeros */
		*head = TRUNK_RING;
		break;
	}
	test_run(0);
}

static void test_ring_violations(void)
{
	struct trunk_ring r;
	int i, fd;

	for (i = 0; i < 8; i++) {
		bool ends = i != 7;

		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = raw_peer_train();
		raw_peer_ring(fd, &r, TRUNK_RING);
		row(200 + i, "it has a ring",
		    side_state(&a) == PORT_STATE_INIT && side_counter(&a, TRUNK_CTR_RINGS) == 1);
		ring_violation(i, fd, &r);
		row(210 + i, "it is disconnected when it has to be",
		    side_state(&a) == (ends ? PORT_STATE_DOWN : PORT_STATE_INIT) &&
			    side_counter(&a, TRUNK_CTR_VIOLATIONS) == ends);
		close(fd);
		trunk_ring_destroy(&r);
		test_run(0);
		fd = raw_peer_train();
		raw_peer_ring(fd, &r, i % 2 ? TRUNK_RING : 2 * TRUNK_RING);
		row(220 + i, "the next one is welcome, with a ring of the right size",
		    side_state(&a) == (i % 2 ? PORT_STATE_INIT : PORT_STATE_DOWN));
		trunk_ring_destroy(&r);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

/* A ring in a part of a page of hugetlbfs, of which there may be none; it is truncated in any case. */
static void test_ring_huge(void)
{
	int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB), fd;
	struct trunk_ring r;

	if (huge < 0 || ftruncate(huge, 2 << 20))
		return; /* the kernel has no hugetlbfs */
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = raw_peer_train();
	close(trunk_ring_create(&r));
	raw_peer_ring_open(fd, TRUNK_RING, (int[]){ huge, r.event }, 2);
	ftruncate(huge, 0);
	trunk_ring_signal(&r);
	test_run(0);
	row(246, "the peer with it is disconnected", side_state(&a) == PORT_STATE_DOWN);
	close(huge);
	close(fd);
	trunk_ring_destroy(&r);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* Open descriptors of the kinds that are passed for rings; those of sockets are closed by a thread, some time later. */
static u32 ring_descriptors(void)
{
	char path[300], name[32];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	u32 n = 0;

	while ((e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, name, sizeof(name) - 1);
		name[max(len, (ssize_t)0)] = 0;
		n += !strncmp(name, "/memfd:trunk", 12) || !strncmp(name, "anon_inode:[eventfd]", 20) ||
		     !strncmp(name, "pipe:", 5);
	}
	closedir(d);
	return n;
}

/* Wrong descriptors of a ring. */
static void test_ring_descriptors(void)
{
	static const struct {
		int n;
		const char *what;
		char kinds[4]; /* of the descriptors: memfd, eventfd, pipe */
	} rows[] = {
		{ 360, "none", "" },
		{ 361, "the memfd alone", "m" },
		{ 362, "the eventfd alone", "e" },
		{ 363, "their order", "em" },
		{ 364, "a pipe to wake it", "mp" },
		{ 365, "no memory", "pe" },
		{ 366, "one more, which is closed", "mep" },
	};
	struct trunk_ring r;
	int p[2], fds[3], fd;
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bool ends = strcmp(rows[i].kinds, "mep");
		int memfd = trunk_ring_create(&r);
		u32 before;

		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = raw_peer_train();
		if (pipe2(p, O_CLOEXEC))
			abort();
		before = ring_descriptors();
		for (n = 0; rows[i].kinds[n]; n++)
			fds[n] = rows[i].kinds[n] == 'm' ? memfd : rows[i].kinds[n] == 'e' ? r.event : p[0];
		raw_peer_ring_open(fd, TRUNK_RING, fds, n);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, TRUNK_CTR_VIOLATIONS) == ends && side_counter(&a, TRUNK_CTR_RINGS) == !ends);
		close(fd);
		test_run(0);
		row(367, "none is left open", ring_descriptors() == before);
		close(memfd);
		close(p[0]);
		close(p[1]);
		trunk_ring_destroy(&r);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

/* Passes @n copies of a descriptor with one byte of a message that never ends. */
static void raw_peer_pass(int fd, int what, u32 n)
{
	RIGHTS_CONTROL(control, PASSED_MAX) = { 0 };
	struct iovec iov = { &(u8){ TRUNK_HELLO }, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[PASSED_MAX];
	u32 i;

	for (i = 0; i < n; i++)
		fds[i] = what;
	rights_put(&msg, control, fds, n);
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != 1)
		perror("descriptors");
	test_run(0);
}

/* A peer that has proved nothing passes descriptors, of which the first ones occupy all threads that may close them. */
static void test_descriptors_wait(void)
{
	int peer[PASSED_THREADS_OWNER], null = open("/dev/null", O_RDONLY | O_CLOEXEC), slow, fd, i;
	struct passed_stats st;
	char c;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = raw_peer_connect();
	for (i = 0; i < PASSED_THREADS_OWNER; i++) {
		slow = slow_socket(&peer[i]);
		raw_peer_pass(fd, slow, 1); /* which is closed when others are passed */
		close(slow);
	}
	raw_peer_pass(fd, null, 1);
	raw_peer_pass(fd, null, PASSED_MAX);
	raw_peer_pass(fd, null, PASSED_MAX);
	row(368, "some may wait", recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	raw_peer_pass(fd, null, PASSED_MAX);
	passed_stats(&st);
	row(369, "a peer with more of them is disconnected",
	    recv(fd, &c, 1, MSG_DONTWAIT) == 0 && side_counter(&a, TRUNK_CTR_VIOLATIONS) == 1 &&
		    st.waiting <= PASSED_OWNER_MOST + 2 * PASSED_MAX);
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		close(peer[i]);
	close(fd);
	close(null);
	do {
		poll(NULL, 0, 1);
		passed_stats(&st);
	} while (st.waiting);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* The peer wakes the daemon all the time. */
static void test_ring_wakes(void)
{
	struct trunk_ring r;
	u32 i, more = 0;
	int fd;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = raw_peer_train();
	raw_peer_ring(fd, &r, TRUNK_RING);
	for (i = 0; i < 1000; i++) {
		trunk_ring_signal(&r);
		test_run(0);
	}
	row(241, "1,000 wake-ups without a message", side_state(&a) == PORT_STATE_INIT);
	row(242, "its counter is full, and does not block: the next one is lost to the peer alone",
	    write(r.event, &(u64){ ~0ull - 1001 }, sizeof(u64)) == sizeof(u64) && (trunk_ring_signal(&r), true));
	test_run(0);
	for (i = 0; i < 2 * TRUNK_SILENCE / NSEC_PER_SEC; i++) {
		read(r.event, &(u64){ 0 }, sizeof(u64));
		trunk_ring_signal(&r);
		test_run(NSEC_PER_SEC);
		more += side_state(&a) == PORT_STATE_INIT;
	}
	row(243, "they do not show that it is alive",
	    more >= TRUNK_SILENCE / NSEC_PER_SEC - 1 && more <= TRUNK_SILENCE / NSEC_PER_SEC &&
		    side_counter(&a, TRUNK_CTR_TIMEOUTS) == 1);
	trunk_ring_destroy(&r);
	close(fd);
	test_run(NSEC_PER_SEC);
	fd = raw_peer_train();
	raw_peer_ring(fd, &r, TRUNK_RING);
	trunk_ring_signal(&r);
	row(245, "another one", side_state(&a) == PORT_STATE_INIT);
	close(fd);
	test_run(0);
	row(244, "whose end is seen at once", side_state(&a) == PORT_STATE_DOWN);
	trunk_ring_destroy(&r);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* The shared member of the reader of @r: it sleeps, and needs a wake-up. */
static u32 *ring_asleep(struct trunk_ring *r)
{
	return (u32 *)((u64 *)r->shared + 9);
}

/* Signals to the reader of @r since the last call; the daemon never reads the eventfd. */
static u64 ring_signals(struct trunk_ring *r)
{
	u64 n = 0;

	return read(r->event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Two daemons with a ring in each direction, and addresses. */
static void rings_start(void)
{
	u32 i;

	trunk_start("", "");
	bring_up();
	for (i = 0; i < 2; i++) {
		send_many(&h1, 3, 0, 64, TRUNK_RING_AFTER);
		send_many(&h101, 1, 0, 64, TRUNK_RING_AFTER);
		test_run(0);
	}
	row(329, "there are rings", a.set->trunks[0].conn->tx.shared && b.set->trunks[0].conn->tx.shared);
}

/* A flush wakes a sleeping reader if, and only if, something was written since the last one. */
static void test_ring_announced(void)
{
	struct trunk_conn *c;
	u32 *asleep;

	rings_start();
	c = a.set->trunks[0].conn;
	asleep = ring_asleep(&c->tx);
	ring_signals(&c->tx);
	*asleep = 1;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(330, "nothing was written: the reader sleeps on", *asleep && !ring_signals(&c->tx));
	c->send_alive = true;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(331, "a message wakes it", !*asleep && ring_signals(&c->tx) == 1);
	*asleep = 1;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(332, "and does so once", *asleep == 1 && !ring_signals(&c->tx));
	trunk_stop();
}

/* Packets from h1 to h101, which the other daemon reads from its ring. True: it has something to send then. */
static bool reader_responds(u32 len, u32 n)
{
	struct trunk_conn *c = b.set->trunks[0].conn;

	send_many(&h1, 3, 0, len, n);
	while (loop_run_tasks(test_loop))
		; /* the poller reads */
	trunk_conn_poll(&b.set->poller, loop_now(test_loop));
	return c->flush.queued;
}

/* Credits are sent in steps: a short packet queues no task. */
static void test_credit_steps(void)
{
	struct trunk_session *s;
	u32 before, i;
	bool none = true;

	rings_start();
	s = &b.set->trunks[0].s;
	test_run(NSEC_PER_SEC / 2);
	before = s->fccl[0];
	i = (TRUNK_FLOW_STEP - (s->abr[0] + FABRIC_REMOTE_BLOCKS - before)) / 2; /* of two blocks, with headers */
	while (--i)
		none = none && !reader_responds(64, 1);
	row(333, "a short packet queues no credits",
	    none && s->fccl[0] == before && h101.packets > TRUNK_FLOW_STEP / 3);
	row(334, "a step of them is sent", reader_responds(64, 3) && s->send_flow);
	test_run(0);
	row(335, "they are sent once",
	    s->fccl[0] == s->abr[0] + FABRIC_REMOTE_BLOCKS && !s->send_flow && no_credits_in_use());
	row(336, "one long train likewise", reader_responds(4096, 10));
	trunk_stop();
}

static const u8 positive = WIRE_AETH_ACK, nak = WIRE_AETH_NAK | WIRE_NAK_PSN_SEQ;

/*
 * The peer sleeps, and a packet is written for it: an acknowledgement with @syndrome, or (NULL) a request. True: it
 * sleeps on.
 */
static bool sleeps_on(const u8 *syndrome)
{
	struct trunk_conn *c = a.set->trunks[0].conn;
	struct wire_packet *p = test_packet(1, 3, 0, 0, 1, 0xffff);
	u64 before = c->tx.at;

	if (syndrome) {
		p->hdr_len += sizeof(struct wire_aeth);
		wire_bth_fill(wire_packet_bth(p), WIRE_RC_ACK, false, 0, 0xffff, 17, false, 1);
		wire_aeth_fill(wire_packet_aeth(p), *syndrome, 1);
	}
	*ring_asleep(&c->tx) = 1;
	if (wire_port_send(h1.port, p))
		wire_packet_free(p);
	while (loop_run_tasks(test_loop))
		;
	row(337, "it is in the ring", c->tx.at > before);
	return *ring_asleep(&c->tx);
}

/* The daemon polls after @ns: does the peer sleep on? */
static bool sleeps_after(u64 ns)
{
	struct trunk_conn *c = a.set->trunks[0].conn;

	trunk_conn_poll(&a.set->poller, (struct now){ loop_now(test_loop).ns + ns });
	return *ring_asleep(&c->tx);
}

/* The peer sleeps on for acknowledgements alone, but not for long. */
static void test_ring_acks(void)
{
	struct trunk_conn *c;
	u64 until;
	u32 i;

	rings_start();
	c = a.set->trunks[0].conn;
	row(340, "a request wakes it", !sleeps_on(NULL));
	row(341, "a NAK likewise", !sleeps_on(&nak));
	row(342, "an ACK does not", sleeps_on(&positive) && sleeps_after(2 * NSEC_PER_USEC));
	until = c->ack_until;
	row(343, "nor does a second one, which delays the first one no further",
	    sleeps_on(&positive) && c->ack_until == until && sleeps_after(2 * NSEC_PER_USEC));
	row(344, "the request behind them wakes it", !sleeps_on(NULL) && !c->ack_until);
	row(345, "without a request, time does", sleeps_on(&positive) && !sleeps_after(5 * NSEC_PER_USEC));
	sleeps_on(&positive);
	trunk_conn_sleep(&a.set->poller, true);
	row(346, "or the sleep of this daemon", !*ring_asleep(&c->tx) && !c->ack_until);
	trunk_conn_sleep(&a.set->poller, false);
	c->send_alive = true;
	sleeps_on(&positive);
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(347, "or a message other than a packet", !*ring_asleep(&c->tx));
	sleeps_on(NULL);
	for (i = 0; i < ACK_DELAY_UNPAIRED; i++) {
		sleeps_on(&positive);
		sleeps_after(5 * NSEC_PER_USEC);
	}
	row(348, "where no requests follow, an ACK wakes it at once", !sleeps_on(&positive));
	for (i = 1; i < ACK_DELAY_RETRY && !sleeps_on(&positive); i++)
		;
	row(349, "except one now and then", i == ACK_DELAY_RETRY - 1 && !sleeps_after(5 * NSEC_PER_USEC));
	row(350, "after a request it sleeps on again", !sleeps_on(NULL) && sleeps_on(&positive));
	*ring_asleep(&c->tx) = 0;
	row(351, "one that is awake has it at once, and nobody is woken later",
	    trunk_conn_poll(&b.set->poller, loop_now(test_loop)) && !sleeps_after(5 * NSEC_PER_USEC) && !c->ack_until);
	trunk_stop();
}

/* A packet wakes a peer that sleeps already, before the flush; a flush finds one that has gone to sleep since. */
static void test_ring_early(void)
{
	struct trunk_conn *c;
	u64 before;

	rings_start();
	c = a.set->trunks[0].conn;
	before = c->tx.at;
	*ring_asleep(&c->tx) = 1;
	send_many(&h1, 3, 0, 64, 1);
	while (c->tx.at == before && loop_run_tasks(test_loop))
		;
	row(353, "a packet wakes it at once", c->tx.at > before && !*ring_asleep(&c->tx) && !c->flush.queued);
	before = c->tx.at;
	send_many(&h1, 3, 0, 64, 1);
	while (c->tx.at == before && loop_run_tasks(test_loop))
		;
	*ring_asleep(&c->tx) = 1;
	row(354, "one that goes to sleep now", c->tx.at > before && c->flush.queued);
	loop_run_tasks(test_loop);
	row(355, "is woken by the flush", !*ring_asleep(&c->tx));
	trunk_stop();
}

/* A reader that does not read, and then has an invalid index. */
static void test_ring_reader(void)
{
	u64 *tail;

	trunk_start("", "");
	bring_up();
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	row(230, "packets go by a ring in each direction",
	    a.set->trunks[0].conn->tx.shared && b.set->trunks[0].conn->rx.shared &&
		    side_counter(&a, TRUNK_CTR_RINGS) == 2 && h101.packets == 80);
	tail = (u64 *)a.set->trunks[0].conn->tx.shared + 8;
	row(231, "the index of the reader", *tail == a.set->trunks[0].conn->tx.at);
	list_del(&b.set->trunks[0].conn->rings); /* it does not read any more */
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	row(234, "the ring is full, and packets wait",
	    !list_empty(&a.set->trunks[0].s.packets) && h101.packets == 80 && !side_counter(&a, TRUNK_CTR_VIOLATIONS));
	*tail += 2 * TRUNK_RING;
	test_run(0);
	row(232, "it is disconnected", side_counter(&a, TRUNK_CTR_VIOLATIONS) == 1);
	test_run(NSEC_PER_SEC);
	row(233, "and trains again", at(PORT_STATE_INIT) && !b.set->trunks[0].conn->rx.shared);
	trunk_stop();
}

/* Payload that is not the low byte of the PSN */
static u32 wrong_payloads;

static int receive_psn(void *ctx, struct wire_packet *p)
{
	u8 want = (u8)wire_bth_psn(wire_packet_bth(p));
	u32 i, wrong = 0;

	for (i = 0; i < p->len; i++)
		wrong += p->data[i] != want;
	wrong_payloads += wrong != 0;
	return test_receive(ctx, p);
}

/* Sends 4 KiB of a program's memory, which the program overwrites afterwards. */
static int send_zcopy(u16 dlid, u32 psn)
{
	static u8 memory[4096];
	struct wire_packet *p = test_packet(1, dlid, 0, 0, psn, 0xffff);
	int err;

	memset(memory, (u8)psn, sizeof(memory));
	p->data = memory;
	p->len = sizeof(memory);
	p->flags |= WIRE_PKT_ZCOPY;
	wire_lrh_set_words(wire_packet_lrh(p), wire_packet_link_len(p) / 4);
	err = wire_port_send(h1.port, p);
	if (err)
		wire_packet_free(p);
	memset(memory, 0xee, sizeof(memory));
	return err;
}

/* Sends from @psn on until the port has no space. Returns the next PSN. */
static u32 fill_zcopy(u32 psn)
{
	while (psn < 1000 && !send_zcopy(3, psn))
		psn++;
	return psn;
}

/* Zero-copy sends: the ring gets the payload within the call, or the sender waits for space. */
static void test_zcopy(void)
{
	struct trunk_conn *c;
	u32 psn = 1, first;
	u64 ready;

	rings_start();
	h101.port->data.receive = receive_psn;
	h101.packets = h101.order_errors = wrong_payloads = 0;
	c = a.set->trunks[0].conn;
	row(370, "to the other daemon only",
	    h1.port->ops->reads_payload(h1.port, 3) && !h1.port->ops->reads_payload(h1.port, 2) &&
		    !h1.port->ops->reads_payload(h1.port, 1) && !h1.port->ops->reads_payload(h1.port, 0xc000));
	first = psn;
	psn = fill_zcopy(psn);
	row(371, "as much as the ring holds, without a queue",
	    psn - first > TRUNK_RING / 4096 / 2 && psn - first < TRUNK_RING / 4096 && list_empty(&c->active) &&
		    !a.f->flight.n);
	ready = h1.ready;
	test_run(0);
	row(372, "then the sender waits for space", h1.ready == ready + 1 && !c->wants_space);
	psn = fill_zcopy(psn);
	test_run(0);
	row(373, "all arrive", h101.packets == psn - first && !h101.order_errors && !wrong_payloads);

	row(374, "behind a packet in flight", !test_send(&h1, 3, 0, 64, psn) && a.f->flight.n == 1);
	first = h101.packets;
	send_zcopy(3, ++psn);
	test_run(0);
	row(375, "it is copied and overtakes none",
	    h101.packets == first + 2 && !h101.order_errors && wrong_payloads == 1);
	wrong_payloads = 0; /* of the 64 bytes */
	psn++;

	list_del(&b.set->trunks[0].conn->rings); /* it does not read any more */
	first = psn;
	psn = fill_zcopy(psn);
	ready = h1.ready;
	test_run(0);
	row(376, "a reader that does not read", h1.ready == ready && c->wants_space);
	test_run(TRUNK_FULL);
	row(377, "is not waited for without a limit", h1.ready == ready + 1 && !c->wants_space && c->stuck);
	row(378, "then packets are copied", !send_zcopy(3, psn));
	test_run(0);
	row(381, "and queued", !list_empty(&a.set->trunks[0].s.packets));
	ready = h101.packets;
	list_add(&b.set->rings, &b.set->trunks[0].conn->rings);
	test_run(0);
	row(379, "until it reads again",
	    h101.packets == ready + psn + 1 - first && !h101.order_errors && !wrong_payloads && !c->stuck);
	test_run(NSEC_PER_SEC);
	row(380, "credits return", no_credits_in_use());

	list_del(&b.set->trunks[0].conn->rings);
	fill_zcopy(1);
	*((u64 *)c->tx.shared + 8) += 2 * TRUNK_RING;
	test_run(0);
	for (psn = 1; psn < 100 && !c->ended; psn++)
		send_zcopy(3, psn);
	row(382, "an invalid index of the reader while the sender waits", c->ended && psn < 10);
	test_run(0);
	row(383, "it is disconnected",
	    side_counter(&a, TRUNK_CTR_VIOLATIONS) == 1 && !h1.port->ops->reads_payload(h1.port, 3));
	trunk_stop();
}

int main(void)
{
	u32 live = wire_packet_live();

	log_level = LOG_ERROR;
	test_ring_violations();
	test_ring_huge();
	test_ring_descriptors();
	test_descriptors_wait();
	test_ring_wakes();
	test_ring_announced();
	test_credit_steps();
	test_ring_acks();
	test_ring_early();
	test_ring_reader();
	test_zcopy();
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}
