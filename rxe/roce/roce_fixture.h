/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixture of tests: a RoCEv2 port with one connected queue pair, and a peer and a stranger on plain UDP sockets that
 * send arbitrary packets with a correct ICRC.
 */
#ifndef MUSLIN_RXE_ROCE_ROCE_FIXTURE_H
#define MUSLIN_RXE_ROCE_ROCE_FIXTURE_H

#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/hca/bring.h"
#include "emu/hca/soft_queue.h"
#include "rxe/roce/roce_internal.h"
#include "rxe/rxe_internal.h"

#define PEER_QPN  0x777
#define PEER_VA   0x10000
#define PEER_RKEY 0x77
#define PSN       100
#define SIZE      65536
#define GUARD     4096 /* bytes after the registered region */

static struct loop *loop;
static struct roce_port *port;
static struct hca *hca;
static struct hca_ctx *ctx;
static struct hca_soft_cq *cq;
static struct hca_soft_wq *wq;
static u32 pdn, qpn, lkey, rkey;
static u8 mem[SIZE + GUARD];
static struct wire_gid own, peer, stranger;
static int peer_fd, stranger_fd;
static u16 peer_sport, stranger_sport;

static void on_event(void *fe, const struct hca_event *ev) {}

/* The peer receives at port 4791, and sends from there, too. */
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
	struct roce_config cfg = { .name = "t", .node_guid = 1, .port_guid = 2, .naddr = 1, .seed = 1 };
	struct hca_config hcfg = { .name = "t", .node_guid = 1, .nports = 1, .seed = 1 };
	struct wire_port *ports[1];

	loop = cfg.loop = loop_create();
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
	struct hca_qp_attr attr = { .port = 1,
				    .access = 0xf,
				    .path_mtu = WIRE_MTU_1024,
				    .dest_qpn = PEER_QPN,
				    .rq_psn = PSN,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .av = { .port = 1, .grh = true, .dgid = peer } };

	hca_soft_qp_create(ctx, &init, &wq);
	qpn = hca_soft_wq_number(wq);
	if (bring_to(hca_qp_lookup(hca, qpn), attr, HCA_QPS_RTR))
		printf("the queue pair does not come to RTR\n");
}

/* The queue pair's own requests start with the same PSN, and are not retransmitted by a time-out. */
static void start_sending(void)
{
	struct hca_qp_attr attr = { .sq_psn = PSN, .max_rd_atomic = 1, .retry_cnt = 7 };

	if (bring_to(hca_qp_lookup(hca, qpn), attr, HCA_QPS_RTS))
		printf("the queue pair does not come to RTS\n");
}

/* Posts a READ of @len bytes to the start of the region. */
static void post_read(u32 len)
{
	struct hca_send_wr wr = { .opcode = HCA_WR_RDMA_READ, .flags = HCA_SEND_SIGNALED, .num_sge = 1 };

	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)mem, len, lkey };
	wr.remote_addr = PEER_VA;
	wr.rkey = PEER_RKEY;
	if (hca_soft_post_send(wq, &wr))
		printf("the READ cannot be posted\n");
	loop_run_idle(loop, 0);
}

static u64 counter(enum hca_counter c)
{
	return hca_counter(hca, 1, c);
}

/* One packet of a peer, and its header fields. */
struct sent {
	u8 opcode;
	u32 qpn, psn, len, dmalen, rkey;
	u64 va;
	u16 pkey;
	bool stranger;
	u8 fill; /* of the payload; 0: 0x5a */
	u8 flags, syndrome;
};

static void fill_eths(struct wire_packet *p, const struct sent *s)
{
	const struct wire_opcode *op = wire_opcode(s->opcode);

	if (op->eths & BIT(WIRE_ETH_RETH)) {
		struct wire_reth *h = wire_packet_reth(p);

		h->va = cpu_to_be64(s->va);
		h->rkey = cpu_to_be32(s->rkey);
		h->dmalen = cpu_to_be32(s->dmalen);
	}
	if (op->eths & BIT(WIRE_ETH_AETH))
		wire_aeth_fill(wire_packet_aeth(p), s->syndrome, 0);
}

/* Builds the packet's frame with @id as IPv4 identification; returns its length. */
static int frame_of(const struct sent *s, u16 id, u8 *frame, u32 size)
{
	struct wire_packet *p = wire_packet_alloc();
	const struct wire_opcode *op = wire_opcode(s->opcode);
	struct wire_roce r = { .src = s->stranger ? stranger : peer, .dst = own, .id = id, .ttl = 64 };
	int n;

	r.sport = s->stranger ? stranger_sport : peer_sport;
	p->flags = s->flags;
	p->bth_off = 48;
	p->hdr_len = 48 + op->hdr_len;
	p->buf = wire_buf_alloc(s->len ? s->len : 1);
	memset(p->buf->data, s->fill ? s->fill : 0x5a, s->len);
	p->data = p->buf->data;
	p->len = s->len;
	wire_bth_fill(wire_packet_bth(p), s->opcode, false, -s->len & 3, s->pkey ? s->pkey : 0xffff,
		      s->qpn ? s->qpn : qpn, true, s->psn);
	fill_eths(p, s);
	n = wire_roce_frame(p, &r, frame, size);
	wire_packet_free(p);
	return n;
}

#define HEADERS 42 /* Ethernet, IPv4, UDP */

/* Packets of one sender and one length, sent as one train. */
struct sending {
	u8 bytes[65536];
	u32 len, n;
	u16 segment;
	bool stranger;
};

static void send_all(struct sending *s)
{
	u8 control[CMSG_SPACE(sizeof(u16))] = { 0 };
	struct iovec iov = { s->bytes, s->len };
	union ip_sockaddr to;
	struct msghdr m = { .msg_name = &to, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *c = (struct cmsghdr *)control;

	m.msg_namelen = roce_sockaddr_set(&to, &own, WIRE_ROCE_PORT, 0);
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(u16)), IPPROTO_UDP, UDP_SEGMENT };
	memcpy(CMSG_DATA(c), &s->segment, sizeof(u16));
	m.msg_controllen = s->n > 1 ? CMSG_SPACE(sizeof(u16)) : 0;
	if (s->n && sendmsg(s->stranger ? stranger_fd : peer_fd, &m, 0) < 0)
		perror("sendmsg");
	s->len = s->n = 0;
	loop_run_idle(loop, 0);
}

/* Sends the packets before it if it cannot be in one train with them. */
static void put_packet(struct sending *to, const struct sent *s)
{
	u8 frame[WIRE_ROCE_FRAME];
	u32 len = (u32)frame_of(s, (u16)to->n, frame, sizeof(frame)) - HEADERS;

	if (to->n && (len != to->segment || to->stranger != s->stranger || to->len + len > ROCE_DATAGRAM ||
		      to->n == ROCE_SEGMENTS)) {
		send_all(to);
		frame_of(s, 0, frame, sizeof(frame));
	}
	memcpy(to->bytes + to->len, frame + HEADERS, len);
	to->len += len;
	to->n++;
	to->segment = (u16)len;
	to->stranger = s->stranger;
}

static void send_packet(const struct sent *s)
{
	static struct sending one;

	put_packet(&one, s);
	send_all(&one);
}

#define NONE    (-1)
#define NOTHING (-2)

/* The syndrome of the received ACK or NAK; NONE: another packet; NOTHING: no packet. */
static int answer(u32 *psn)
{
	u8 b[256];
	ssize_t n = recv(peer_fd, b, sizeof(b), MSG_DONTWAIT);
	const struct wire_bth *bth = (const struct wire_bth *)b;

	if (n < 0)
		return NOTHING;
	if (n < 20 || bth->opcode != WIRE_RC_ACK || wire_bth_qpn(bth) != PEER_QPN)
		return NONE;
	*psn = wire_bth_psn(bth);
	return wire_aeth_syndrome((const struct wire_aeth *)(b + sizeof(*bth)));
}

/* Do the first @n packets of 1024 bytes contain the fill byte of their place, counted from 1? */
static bool is_filled(u32 n)
{
	u32 i;

	for (i = 0; i < n * 1024; i++)
		if (mem[i] != (u8)(i / 1024 + 1))
			return false;
	return true;
}

static void close_qp(void)
{
	struct hca_cqe c;
	u32 psn;

	hca_soft_wq_destroy(wq);
	while (hca_soft_cq_poll(cq, &c, 1))
		;
	while (answer(&psn) != NOTHING)
		;
}

#endif
