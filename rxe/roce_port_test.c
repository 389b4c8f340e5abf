// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A RoCEv2 port with one connected queue pair, and a peer on a plain UDP socket that sends what it likes, each packet with a right
 * ICRC: a row per wrong input, with what is answered and what is counted.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/hca/soft_queue.h"
#include "emu/lib/row.h"
#include "rxe/internal.h"
#include "rxe/roce_internal.h"

#define PEER_QPN 0x777
#define PSN      100
#define SIZE     65536

static struct loop *loop;
static struct roce_port *port;
static struct hca *hca;
static struct hca_ctx *ctx;
static struct hca_soft_cq *cq;
static struct hca_soft_wq *wq;
static u32 pdn, qpn, lkey, rkey;
static u8 mem[SIZE];
static struct wire_gid own, peer, stranger;
static int peer_fd, stranger_fd;
static u16 peer_sport, stranger_sport;

static void on_event(void *fe, const struct hca_event *ev) {}

/* The peer receives at 4791, as everyone does, and sends from there, too. */
static int open_peer(const struct wire_gid *gid, u16 *sport)
{
	union ip_sockaddr a;
	socklen_t len = roce_sockaddr_set(&a, gid, WIRE_ROCE_PORT, 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, &a.sa, len)) {
		perror("the peer's address");
		exit(1);
	}
	*sport = WIRE_ROCE_PORT;
	return fd;
}

static void open_port(void)
{
	u32 net = 127u << 24 | ((u32)getpid() & 0xffff) << 8;
	struct roce_config cfg = { .loop = loop, .name = "t", .node_guid = 1, .port_guid = 2, .naddr = 1, .seed = 1 };
	struct hca_config hcfg = { .name = "t", .node_guid = 1, .nports = 1, .seed = 1 };
	struct wire_port *ports[1];

	own = cfg.addr[0] = wire_gid_from_v4(net | 201);
	peer = wire_gid_from_v4(net | 202);
	stranger = wire_gid_from_v4(net | 203);
	port = roce_port_create(&cfg);
	if (!port) {
		perror("the port");
		exit(1);
	}
	ports[0] = roce_port_wire(port);
	hcfg.ports = ports;
	hca = hca_create(loop, &hcfg);
	hca_set_transport(hca, &rxe_transport);
	ctx = hca_ctx_create(hca, &hca_local_dma, NULL, on_event, NULL);
	hca_pd_alloc(ctx, &pdn);
	hca_mr_reg(ctx, pdn, (u64)(uintptr_t)mem, (u64)(uintptr_t)mem, SIZE, 0xf, &lkey, &rkey);
	hca_soft_cq_create(ctx, 64, NULL, NULL, &cq);
	peer_fd = open_peer(&peer, &peer_sport);
	stranger_fd = open_peer(&stranger, &stranger_sport);
}

static void open_qp(void)
{
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .pdn = pdn,
				    .send_cqn = hca_soft_cq_number(cq),
				    .recv_cqn = hca_soft_cq_number(cq),
				    .max_send_wr = 8,
				    .max_recv_wr = 8,
				    .max_send_sge = 1,
				    .max_recv_sge = 1 };
	struct hca_qp_attr attr = { .state = HCA_QPS_INIT,
				    .port = 1,
				    .access = 0xf,
				    .path_mtu = WIRE_MTU_1024,
				    .dest_qpn = PEER_QPN,
				    .rq_psn = PSN,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .av = { .port = 1, .grh = true, .dgid = peer } };

	hca_soft_qp_create(ctx, &init, &wq);
	qpn = hca_soft_wq_number(wq);
	hca_qp_modify(ctx, qpn, &attr, HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	attr.state = HCA_QPS_RTR;
	if (hca_qp_modify(ctx, qpn, &attr,
			  HCA_QP_STATE | HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
				  HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER))
		printf("the queue pair does not come to RTR\n");
}

static u64 counter(enum hca_counter c)
{
	return hca_counter(hca, 1, c);
}

/* One packet of a peer, and what stands in it. */
struct sent {
	u8 opcode;
	u32 qpn, psn, len, dmalen, rkey;
	u64 va;
	u16 pkey;
	bool stranger;
	u8 fill; /* of the payload; 0: 0x5a */
	u8 flags;
};

static void fill_eths(struct wire_packet *p, const struct sent *s)
{
	const struct wire_opcode *op = wire_opcode(s->opcode);

	if (op->eths & BIT(WIRE_ETH_RETH)) {
		struct wire_reth *h = rxe_eth(p, WIRE_ETH_RETH);

		h->va = cpu_to_be64(s->va);
		h->rkey = cpu_to_be32(s->rkey);
		h->dmalen = cpu_to_be32(s->dmalen);
	}
}

/* The frame that has it, with that number in its IPv4 header; its length. */
static int frame_of(const struct sent *s, u16 id, u8 *frame, u32 size)
{
	struct wire_packet *p = wire_packet_alloc();
	const struct wire_opcode *op = wire_opcode(s->opcode);
	struct wire_roce r = { .src = s->stranger ? stranger : peer, .dst = own, .id = id, .ttl = 64 };
	int n;

	r.sport = s->stranger ? stranger_sport : peer_sport;
	p->flags = s->flags;
	p->has_lrh = 1;
	p->bth_off = 48;
	p->hdr_len = 48 + op->hdr_len;
	p->buf = wire_buf_alloc(s->len ? s->len : 1);
	memset(p->buf->data, s->fill ? s->fill : 0x5a, s->len);
	p->data = p->buf->data;
	p->len = s->len;
	wire_bth_fill((struct wire_bth *)(p->hdr + 48), s->opcode, false, -s->len & 3, s->pkey ? s->pkey : 0xffff,
		      s->qpn ? s->qpn : qpn, true, s->psn);
	fill_eths(p, s);
	n = wire_roce_frame(p, &r, frame, size);
	wire_packet_free(p);
	return n;
}

#define HEADERS 42 /* Ethernet, IPv4, UDP */

static void send_packet(const struct sent *s)
{
	union ip_sockaddr to;
	socklen_t len = roce_sockaddr_set(&to, &own, WIRE_ROCE_PORT, 0);
	u8 frame[WIRE_ROCE_FRAME];
	int n = frame_of(s, 0, frame, sizeof(frame));

	if (n < 0 ||
	    sendto(s->stranger ? stranger_fd : peer_fd, frame + HEADERS, (size_t)n - HEADERS, 0, &to.sa, len) < 0)
		perror("sendto");
	loop_run_idle(loop, 0);
}

/* The syndrome of the ACK or NAK that has come, -1: none has. */
static int answer(u32 *psn)
{
	u8 b[256];
	ssize_t n = recv(peer_fd, b, sizeof(b), MSG_DONTWAIT);
	const struct wire_bth *bth = (const struct wire_bth *)b;

	if (n < 20 || bth->opcode != WIRE_RC_ACK || wire_bth_qpn(bth) != PEER_QPN)
		return -1;
	*psn = wire_bth_psn(bth);
	return wire_aeth_syndrome((const struct wire_aeth *)(b + sizeof(*bth)));
}

#define NAKS(code) (WIRE_AETH_NAK | WIRE_NAK_##code)
#define ACK        31
#define NONE       (-1)

/* In order: the queue pair's next PSN is @next. */
static const struct {
	const char *what;
	struct sent s;
	int syndrome;
	u32 next;
	enum hca_counter counter;
} rows[] = {
	{ "a WRITE is acknowledged",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 1, 0 },
	  ACK,
	  PSN + 1,
	  HCA_CNT_RCVD_PKTS },
	{ "the same again (replayed) is acknowledged, not done",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 1, 0 },
	  ACK,
	  PSN + 1,
	  HCA_CNT_DUPLICATE_REQUEST },
	{ "one from before is a duplicate, too",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN - 50, 64, 64, 1, 0 },
	  ACK,
	  PSN + 1,
	  HCA_CNT_DUPLICATE_REQUEST },
	{ "a gap is refused",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 3, 64, 64, 1, 0 },
	  NAKS(PSN_SEQ),
	  PSN + 1,
	  HCA_CNT_OUT_OF_SEQUENCE },
	{ "what follows it (reordered) is not refused again",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 4, 64, 64, 1, 0 },
	  NONE,
	  PSN + 1,
	  HCA_CNT_RCVD_PKTS },
	{ "the next round's packet is",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 3, 64, 64, 1, 0 },
	  NAKS(PSN_SEQ),
	  PSN + 1,
	  HCA_CNT_OUT_OF_SEQUENCE },
	{ "a PSN half a circle ahead is one from before",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 0x800001, 64, 64, 1, 0 },
	  ACK,
	  PSN + 1,
	  HCA_CNT_DUPLICATE_REQUEST },
	{ "a queue pair that is not there",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0x123456, PSN + 1, 64, 64, 1, 0 },
	  NONE,
	  PSN + 1,
	  HCA_CNT_WRONG_QP },
	{ "a stranger with the right numbers (spoofed)",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 1, 64, 64, 1, 0, 0, true },
	  NONE,
	  PSN + 1,
	  HCA_CNT_WRONG_QP },
	{ "another partition",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 1, 64, 64, 1, 0, 0x8001 },
	  NONE,
	  PSN + 1,
	  HCA_CNT_PKEY_MISMATCH },
	{ "a packet of UC",
	  { .opcode = WIRE_UC_WRITE_ONLY, 0, PSN + 1, 64, 64, 1, 0 },
	  NONE,
	  PSN + 1,
	  HCA_CNT_WRONG_QP },
	{ "and then the one that is due; one that is held asks for the next",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 1, 64, 64, 1, 0 },
	  NAKS(PSN_SEQ),
	  PSN + 2,
	  HCA_CNT_RCVD_PKTS },
	{ "which comes, and those that were held with it",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + 2, 64, 64, 1, 0 },
	  ACK,
	  PSN + 5,
	  HCA_CNT_RCVD_PKTS },
	{ "a SEND without a receive",
	  { .opcode = WIRE_RC_SEND_ONLY, 0, PSN + 5, 64 },
	  WIRE_AETH_RNR_NAK | 1,
	  PSN + 5,
	  HCA_CNT_SEND_RNR_ERR },
};

/* These end the queue pair, each has its own. */
static const struct {
	const char *what;
	struct sent s;
	int syndrome;
	enum hca_counter counter;
} fatal[] = {
	{ "a wrong R_Key",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 2, 0 },
	  NAKS(REMOTE_ACCESS),
	  HCA_CNT_REMOTE_ACCESS_ERR },
	{ "an address outside the region",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 1, SIZE - 63 },
	  NAKS(REMOTE_ACCESS),
	  HCA_CNT_REMOTE_ACCESS_ERR },
	{ "a DMA length of 4 GiB",
	  { .opcode = WIRE_RC_WRITE_FIRST, 0, PSN, 1024, 0xffffffff, 1, 0 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
	{ "more than the path MTU",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 2048, 2048, 1, 0 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
	{ "less than the DMA length",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 128, 1, 0 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
	{ "a first packet that is short",
	  { .opcode = WIRE_RC_WRITE_FIRST, 0, PSN, 64, 2048, 1, 0 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
	{ "a middle without a first",
	  { .opcode = WIRE_RC_WRITE_MIDDLE, 0, PSN, 1024 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
	{ "a READ with a wrong R_Key",
	  { .opcode = WIRE_RC_READ_REQUEST, 0, PSN, 0, 64, 2, 0 },
	  NAKS(REMOTE_ACCESS),
	  HCA_CNT_REMOTE_ACCESS_ERR },
	{ "a READ of 4 GiB",
	  { .opcode = WIRE_RC_READ_REQUEST, 0, PSN, 0, 0xffffffff, 1, 0 },
	  NAKS(INVALID_REQUEST),
	  HCA_CNT_REMOTE_INV_REQ_ERR },
};

/* In the tables an R_Key of 1 is the region's, 2 a wrong one, and addresses count from the region. */
static struct sent resolve(struct sent s)
{
	s.rkey = s.rkey == 1 ? rkey : rkey ^ 0x5500;
	s.va += (u64)(uintptr_t)mem;
	s.psn &= 0xffffff;
	return s;
}

static void close_qp(void)
{
	struct hca_cqe c;

	hca_soft_wq_destroy(wq);
	while (hca_soft_cq_poll(cq, &c, 1))
		;
}

static void test_stream(void)
{
	struct hca_qp_attr attr;
	u32 i, psn = 0;

	open_qp();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sent s = resolve(rows[i].s);
		u64 before = counter(rows[i].counter);
		int got = NONE, more;

		send_packet(&s);
		while ((more = answer(&psn)) != NONE) /* the last one counts */
			got = more;
		hca_qp_query(ctx, qpn, &attr);
		row(1 + (int)i, rows[i].what,
		    got == rows[i].syndrome && counter(rows[i].counter) == before + 1 && attr.rq_psn == rows[i].next);
	}
	row(30, "what was acknowledged is in place", mem[0] == 0x5a && mem[63] == 0x5a && !mem[64]);
	close_qp();
}

static void test_fatal(void)
{
	struct hca_qp_attr attr;
	u32 i, psn = 0;

	for (i = 0; i < ARRAY_SIZE(fatal); i++) {
		struct sent s = resolve(fatal[i].s);
		u64 before = counter(fatal[i].counter);
		int got;

		open_qp();
		send_packet(&s);
		got = answer(&psn);
		hca_qp_query(ctx, qpn, &attr);
		row(40 + (int)i, fatal[i].what,
		    got == fatal[i].syndrome && psn == PSN && counter(fatal[i].counter) == before + 1 &&
			    attr.state == HCA_QPS_ERR);
		close_qp();
	}
}

/*
 * A WRITE of nine packets. The first is sent alone; then comes a train as each row has it, of packets by their place in the message,
 * whose payload is that number. Then the rest is sent until all is there.
 */
#define MTU  1024
#define MOST 8

static const struct train_row {
	const char *what;
	u8 n, place[MOST]; /* 0xff: what comes next on another queue pair, of the same place */
	u8 bad;            /* the packet of the train whose ICRC is wrong, counted from 1 */
	u8 placed, next;   /* how many are placed at once; the place of the message that is due after the train */
	u8 then;           /* and after that one has come */
	bool stranger;
} trains[] = {
	{ "a train is placed", 6, { 1, 2, 3, 4, 5, 6 }, 0, 6, 7, 8, false },
	{ "all but the last packet are", 8, { 1, 2, 3, 4, 5, 6, 7, 8 }, 0, 7, 9, 9, false },
	{ "what comes behind a gap is held", 5, { 1, 2, 4, 5, 6 }, 0, 2, 3, 7, false },
	{ "two gaps", 5, { 1, 3, 5, 6, 7 }, 0, 1, 2, 4, false },
	{ "packets that were exchanged", 5, { 1, 3, 2, 4, 5 }, 0, 3, 6, 7, false },
	{ "one with a wrong ICRC is lost", 5, { 1, 2, 3, 4, 5 }, 3, 4, 3, 6, false },
	{ "the first one has it", 5, { 1, 2, 3, 4, 5 }, 1, 4, 1, 6, false },
	{ "one twice", 5, { 1, 2, 2, 3, 4 }, 0, 2, 5, 6, false },
	{ "packets for somebody else among them", 5, { 1, 0xff, 2, 0xff, 3 }, 0, 1, 4, 5, false },
	{ "a train that is not the next one", 4, { 2, 3, 4, 5 }, 0, 0, 1, 6, false },
	{ "a stranger's train", 4, { 1, 2, 3, 4 }, 0, 0, 1, 2, true },
};

static struct sent nth(u32 place)
{
	struct sent s = { .opcode = place == 8 ? WIRE_RC_WRITE_LAST : WIRE_RC_WRITE_MIDDLE,
			  .psn = PSN + place,
			  .len = MTU,
			  .dmalen = 9 * MTU,
			  .rkey = 1,
			  .fill = (u8)(place + 1) };

	if (!place)
		s.opcode = WIRE_RC_WRITE_FIRST;
	return resolve(s);
}

static void send_train(const struct train_row *t)
{
	u8 frame[WIRE_ROCE_FRAME], all[MOST * 2 * MTU], control[CMSG_SPACE(sizeof(u16))] = { 0 };
	struct iovec iov = { all, 0 };
	union ip_sockaddr to;
	struct msghdr m = { .msg_name = &to, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *c = (struct cmsghdr *)control;
	u16 segment = 12 + MTU + WIRE_ICRC_LEN, i;

	m.msg_namelen = roce_sockaddr_set(&to, &own, WIRE_ROCE_PORT, 0);
	m.msg_controllen = CMSG_SPACE(sizeof(segment));
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(segment)), IPPROTO_UDP, UDP_SEGMENT };
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	for (i = 0; i < t->n; i++) {
		struct sent s = nth(t->place[i] == 0xff ? i + 1 : t->place[i]);

		s.stranger = t->stranger;
		s.qpn = t->place[i] == 0xff ? qpn ^ 0x10 : 0;
		s.flags = t->bad == i + 1 ? WIRE_PKT_BAD_ICRC : 0;
		if (frame_of(&s, i, frame, sizeof(frame)) != HEADERS + segment)
			printf("a packet of another length\n");
		memcpy(all + iov.iov_len, frame + HEADERS, segment);
		iov.iov_len += segment;
	}
	if (sendmsg(t->stranger ? stranger_fd : peer_fd, &m, 0) < 0)
		perror("sendmsg");
	loop_run_idle(loop, 0);
}

/*
 * Does the memory hold the message up to @place, and what it held before behind the message? Between them there may be nothing
 * but that, zeroes, and what belongs there; in the last packet's place nothing new.
 */
static bool holds(u32 place)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		u8 want = (u8)(i / MTU + 1);
		bool old = mem[i] == 0xee, good = i < 9 * MTU && mem[i] == want;

		if (i < place * MTU ? !good : i < 8 * MTU ? !old && !good && mem[i] : !old)
			return false;
	}
	return true;
}

static void test_trains(void)
{
	struct hca_qp_attr attr;
	u32 i, place, psn;

	for (i = 0; i < ARRAY_SIZE(trains); i++) {
		const struct train_row *t = &trains[i];
		u64 before = roce_port_counter(port, ROCE_CTR_PLACED), icrc = roce_port_counter(port, ROCE_CTR_ICRC);
		struct sent s = nth(0);
		bool ok;

		memset(mem, 0xee, sizeof(mem));
		open_qp();
		send_packet(&s);
		send_train(t);
		hca_qp_query(ctx, qpn, &attr);
		ok = holds(t->next) && attr.rq_psn == (u32)PSN + t->next &&
		     roce_port_counter(port, ROCE_CTR_PLACED) == before + t->placed &&
		     roce_port_counter(port, ROCE_CTR_ICRC) == icrc + !!t->bad;
		for (place = t->next; place < 9; place++) {
			s = nth(place);
			send_packet(&s);
			hca_qp_query(ctx, qpn, &attr);
			ok &= place > t->next || (attr.rq_psn == (u32)PSN + t->then && holds(t->then));
		}
		row(100 + (int)i, t->what, ok && holds(9));
		while (answer(&psn) >= 0)
			;
		close_qp();
	}
}

static void test_port(void)
{
	struct sent smp = { .opcode = WIRE_UD_SEND_ONLY, 0, 1, 256 };
	struct wire_packet *p = wire_packet_alloc();
	u64 before = roce_port_counter(port, ROCE_CTR_REFUSED);

	smp.qpn = 1 << 24; /* QP0, of 24 bits */
	send_packet(&smp);
	row(60, "QP0 is not there", roce_port_counter(port, ROCE_CTR_REFUSED) == before + 1);
	p->has_lrh = 1;
	p->bth_off = 8;
	p->hdr_len = 20;
	before = roce_port_counter(port, ROCE_CTR_UNROUTED);
	row(61, "a packet without GRH goes nowhere",
	    wire_port_send(roce_port_wire(port), p) == 0 && roce_port_counter(port, ROCE_CTR_UNROUTED) == before + 1);
	row(62, "two machines' GUIDs differ", roce_guid(&own) != roce_guid(&peer));
	row(63, "an interface that is not there", netdev_addrs("nosuch0", &(struct ip_addr){ 0 }, 1) == -ENODEV);
}

int main(void)
{
	loop = loop_create();
	open_port();
	test_stream();
	test_fatal();
	test_trains();
	test_port();
	hca_soft_cq_destroy(cq);
	hca_ctx_destroy(ctx);
	hca_destroy(hca);
	roce_port_destroy(port);
	loop_destroy(loop);
	row(70, "nothing leaks", wire_packet_live() == 0);
	close(peer_fd);
	close(stranger_fd);
	return rows_end();
}
