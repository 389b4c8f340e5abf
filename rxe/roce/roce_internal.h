/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RoCE port (IBTA annexes A16, A17): declarations shared by its files. */
#ifndef MUSLIN_RXE_ROCE_ROCE_INTERNAL_H
#define MUSLIN_RXE_ROCE_ROCE_INTERNAL_H

#include "emu/lib/rng.h"
#include "emu/packet/ack_delay.h"
#include "emu/packet/roce.h"
#include "emu/port/netdev.h"
#include "emu/wire/neigh.h"
#include "rxe/roce/roce.h"

#define ROCE_FLOWS    4   /* source ports of an address, by which ECMP routers distinguish flows */
#define ROCE_QUEUE    512 /* packets in the send queue before backpressure to the transport */
#define ROCE_SEGMENTS 64  /* packets of equal length in a UDP GSO train */
#define ROCE_DATAGRAM 65000
#define ROCE_TRAIN    65536 /* bytes of a UDP GRO train, at most */
#define ROCE_RECVS    8     /* datagrams, or trains of them, per recvmmsg() */
#define ROCE_CONTROL  256   /* bytes of control messages of a datagram */
#define ROCE_TTL      64
#define ROCE_GROUPS   16 /* multicast groups of a port in its lifetime */

struct roce_flow {
	struct roce_endpoint *ep;
	struct loop_fd fd;
	u16 sport;
	int ttl;              /* of the socket; 0: not set */
	struct wire_gid peer; /* that the socket is connected to, which saves a route lookup per send; zero: none */
	u32 other_trains;     /* trains in a row to other destinations */
};

/* One address of the port. */
struct roce_endpoint {
	struct roce_port *port;
	struct wire_gid gid;
	char device[IF_NAMESIZE];
	u32 mtu, scope;
	u32 single;                      /* datagrams received one at a time, in a row */
	bool mid_message;                /* the last packet was a First or Middle one */
	bool next_known;                 /* next_psn is valid */
	u32 next_psn, sure;              /* PSN expected of the next train; trains in a row that were as expected */
	const struct roce_endpoint *own; /* of a multicast group: the member address */
	struct loop_fd rx;
	struct roce_flow flow[ROCE_FLOWS];
};

/* Link layer of a port: UDP sockets, or an Ethernet station. */
struct roce_link {
	int (*open)(struct roce_port *rp,
		    const struct roce_config *cfg); /* GIDs and MTU of rp->wire, too; 0 or -errno */
	void (*close)(struct roce_port *rp);        /* also after open() has failed */
	/* Finds addresses and VLAN for @p; false: none. */
	bool (*route)(struct roce_port *rp, const struct wire_packet *p, struct wire_roce *r);
	/* Sends the queue rp->tx until the link is full. */
	void (*run)(struct roce_port *rp);
	int (*group)(struct roce_port *rp, const struct wire_gid *mgid, bool member); /* NULL: it receives all groups */
	const char *(*device)(const struct roce_port *rp, u32 gid); /* network interface of the GID with that index */
};
extern const struct roce_link roce_socket_link, roce_ether_link;

/* A delayed ACK, which waits for a request to be piggybacked on. */
struct roce_ack {
	struct wire_packet *p; /* NULL: none */
	u64 until;
	struct ack_delay delay;
	struct loop_poller poller;
};

struct roce_port {
	struct wire_port wire;
	struct loop *loop;
	const struct roce_link *link;
	struct roce_endpoint ep[ROCE_ADDRS]; /* with sockets */
	u32 neps;
	struct roce_endpoint group[ROCE_GROUPS]; /* with sockets: multicast sockets, created at start */
	struct ether_port *ether;                /* with a station */
	bool managed; /* a guest manages its addresses, and responds to ARP and ND for them */
	struct fault_set faults;
	struct fault_point hooks[2]; /* receive and transmit fault hooks */
	bool unplugged, down;        /* with sockets: set by roce_port_set_up(); no packet passes */
	u32 pulled;                  /* number of faults that keep the link down */
	struct list neighbours;
	u32 nneighbours;
	struct list tx;
	u32 ntx;
	struct roce_ack ack;
	struct loop_task task;
	bool want_ready, no_gso;
	struct wire_buf *rx[ROCE_RECVS];
	struct rng rng;
	u64 loss, marking; /* probabilities, of 2^32 */
	void (*tap)(void *ctx, const u8 *frame, u32 len, bool out);
	void *tap_ctx;
	u64 counter[ROCE_CTR_NUM];
};

/* roce.c: sets the port's MTU from the link's, in bytes. */
void roce_port_set_mtu(struct roce_port *rp, u32 bytes);
void roce_link_changed(struct roce_port *rp, bool up); /* sets the port's state and notifies its users */
void roce_link_update(struct roce_port *rp);           /* unplugged or pulled has changed */

static inline socklen_t roce_sockaddr_set(union ip_sockaddr *a, const struct wire_gid *gid, u16 port, u32 scope)
{
	struct ip_addr ip = ip_addr_of_gid(gid);

	return ip_sockaddr_set(&a->sa, &ip, port, scope);
}

/* roce_socket.c: sets the options of a receive socket; @v4: of that family. */
void roce_socket_options(int fd, bool v4);

/* roce_group.c */
void roce_groups_open(struct roce_port *rp);
void roce_groups_close(struct roce_port *rp);
int roce_group(struct roce_port *rp, const struct wire_gid *mgid, bool member);

/* roce_fault.c: applies the armed faults to a sent packet. False: it was consumed, or the link is down. */
bool roce_fault_sent(struct roce_port *rp, struct wire_packet *p);
/* Receives a packet with the headers @r through the armed faults; consumes it. */
void roce_fault_arrived(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r);
static inline bool roce_faulty(const struct roce_port *rp)
{
	return unlikely(!fault_set_empty(&rp->faults) || rp->down);
}

/* roce_send.c */
void roce_queue(struct roce_port *rp, struct wire_packet *p); /* to the link, after all faults */
int roce_send(struct wire_port *w, struct wire_packet *p);
void roce_flush_zcopy(struct wire_port *w);
void roce_send_run(struct roce_port *rp);
/* ECN (RFC 3168, section 5): whether @p is ECN-capable and not marked CE; then roce_mark() marks and counts it. */
bool roce_may_mark(const struct wire_packet *p);
void roce_mark(struct roce_port *rp, struct wire_packet *p);
bool roce_socket_route(struct roce_port *rp, const struct wire_packet *p, struct wire_roce *r);
void roce_socket_run(struct roce_port *rp);
void roce_tap(struct roce_port *rp, const struct wire_packet *p, const struct wire_roce *r, bool out);

/* roce_ack.c: delayed ACKs; with sockets only. */
void roce_ack_open(struct roce_port *rp);
void roce_ack_close(struct roce_port *rp);
bool roce_ack_delay(struct roce_port *rp, struct wire_packet *p); /* true: @p is a delayed ACK now, owned by the port */
/* Queues @p and the delayed ACK: the ACK after a request (piggybacked), but before any other packet. */
void roce_ack_piggyback(struct roce_port *rp, struct wire_packet *p);

/* roce_recv.c */
void roce_recv(struct roce_endpoint *ep);
/* Source of a datagram, and the length of each datagram of a train; false: no source address. */
bool roce_origin(const struct roce_endpoint *ep, struct msghdr *m, struct wire_roce *r, u32 *segment);
void roce_recv_train(struct roce_endpoint *ep, struct wire_buf *buf, u32 len, struct msghdr *m);
void roce_parsed(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r); /* NULL: invalid, see errno */
void roce_arrived(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r); /* after all faults */
/* Receives the @len bytes at @off in @buf, from BTH to ICRC; @r: their addresses. */
void roce_recv_packet(struct roce_port *rp, struct wire_buf *buf, u32 off, u32 len, const struct wire_roce *r);

/* roce_zcopy.c: zero-copy receive of a train. */
enum roce_zcopy {
	ROCE_ZCOPY_DONE,
	ROCE_ZCOPY_NONE,  /* the next train is not eligible for zero-copy */
	ROCE_ZCOPY_EMPTY, /* nothing to receive */
};
enum roce_zcopy roce_zcopy_recv(struct roce_endpoint *ep);

/* roce_ether.c: sends a frame without a tag, or with that one; 0, or -EAGAIN: the link is full, the frame is lost. */
int roce_ether_frame(struct roce_port *rp, const u8 *dst, u16 tci, u16 type, const u8 *payload, u32 len);
/* Index of @gid on that VLAN if it is an address of the port; else -1. */
int roce_ether_own(const struct roce_port *rp, const struct wire_gid *gid, u16 vlan);

/* roce_neigh.c: ARP and neighbour discovery of a station. */
enum roce_answer {
	ROCE_SEND,        /* the station is known */
	ROCE_PENDING,     /* the packet waits for address resolution, which queues it again */
	ROCE_UNREACHABLE, /* address resolution failed */
};
/* Resolves the MAC address of @r->dst; @p waits while the resolution is pending. */
enum roce_answer roce_neigh_find(struct roce_port *rp, const struct wire_roce *r, struct wire_packet *p,
				 u8 mac[ETHER_ALEN]);
/* Handles a frame other than RoCE: ARP, neighbour discovery, echo. */
void roce_neigh_frame(struct roce_port *rp, const struct ether_header *h, const u8 *payload, u32 len);
void roce_neigh_flush(struct roce_port *rp); /* all of them */

static inline void roce_count(struct roce_port *rp, enum roce_counter c)
{
	rp->counter[c]++;
}

#endif
