/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the trunk room: the messages of a trunk's stream, its trunks, listeners and connections. */
#ifndef MUSLIN_TRUNK_INTERNAL_H
#define MUSLIN_TRUNK_INTERNAL_H

#include <netinet/in.h>
#include <sys/un.h>

#include "emu/lib/accept.h"
#include "emu/lib/shared_map.h"
#include "emu/packet/header.h"
#include "emu/wire/smp.h"
#include "fabric/trunk/tls.h"
#include "fabric/trunk/trunk.h"

#define TRUNK_VERSION       1
#define TRUNK_MAGIC         "muslinTK"
#define TRUNK_NONCE_SIZE    16
#define TRUNK_MAC_SIZE      32
#define TRUNK_DATA_VLS      15
#define TRUNK_MSG_MAX       (WIRE_HDR_MAX + WIRE_MTU_MAX)
#define TRUNK_SILENCE       (15 * NSEC_PER_SEC) /* without a message: the peer is gone */
#define TRUNK_PING          (1 * NSEC_PER_SEC)
#define TRUNK_HELLO_TIME    (5 * NSEC_PER_SEC) /* from the connection to the end of the hello */
#define TRUNK_UNKNOWN       256         /* connections of a listener before their hello; one more replaces the oldest */
#define TRUNK_UNKNOWN_LOCAL 1024        /* on a Unix socket, which only the user's own programs reach */
#define TRUNK_READ          (64u << 10) /* bytes from one connection in its turn */
#define TRUNK_SNDBUF        (1 << 20)   /* of a Unix socket, as far as the system permits */
#define TRUNK_WRITE         (1u << 20)  /* likewise to it */
#define TRUNK_CHANGES       500         /* of the peer's end of the link in a second */
#define TRUNK_SMPS          1024        /* packets of VL15, which has no credits, that wait to be sent */
#define TRUNK_FLOW_STEP     512         /* blocks that have come free before the peer is told */
#define TRUNK_RING          (256u << 10) /* bytes of a ring: a power of 2 */
#define TRUNK_UNREAD        64           /* wake-ups by the socket beside a ring until it is read */
#define TRUNK_RING_AFTER    16           /* data packets of a connection before it gets one */

/* Messages: a head, and so many bytes. Integers are big-endian. */
enum trunk_type {
	TRUNK_SKIP,   /* in a ring: the next message begins at its start */
	TRUNK_HELLO,  /* struct trunk_hello: the first message of each side; that who listens answers */
	TRUNK_AUTH,   /* HMAC of both hellos, where there is a key: first of that who connects */
	TRUNK_REFUSE, /* struct trunk_refuse, the last message */
	TRUNK_LINK,   /* struct trunk_link */
	TRUNK_FLOW,   /* struct trunk_flow for one or more VLs */
	TRUNK_PACKET, /* LRH to pad; the CRCs are not sent, but whether they are wrong: enum wire_packet_flags in flags */
	TRUNK_KEEPALIVE, /* nothing; also wakes up the peer, who then looks at its rings */
	TRUNK_RING_OPEN, /* struct trunk_ring_open, with the memfd of a ring, in which all that follows is but keepalives */
	TRUNK_TYPES
};

struct trunk_head {
	u8 type, flags;
	__be16 len;
};
static_assert(sizeof(struct trunk_head) == 4, "head of a message");

struct trunk_hello {
	u8 magic[8];
	__be16 version;
	u8 port;      /* of the sender's node */
	u8 peer_port; /* wanted; 0: any */
	u8 type;      /* enum wire_node_type */
	u8 pad[3];
	__be64 guid, peer_guid; /* of the nodes; peer_guid 0: any */
	u8 nonce[TRUNK_NONCE_SIZE];
	char name[FABRIC_NAME_MAX];
};
static_assert(sizeof(struct trunk_hello) == 112, "hello");

enum trunk_refusal {
	TRUNK_BAD_HELLO = 1,
	TRUNK_BAD_VERSION,
	TRUNK_BAD_KEY,
	TRUNK_BAD_PORT,
	TRUNK_BUSY,
	TRUNK_BAD_TLS /* one end uses TLS, and the other one does not */
};

struct trunk_refuse {
	u8 why; /* enum trunk_refusal */
	u8 pad;
	__be16 version; /* the one that is spoken here */
};
static_assert(sizeof(struct trunk_refuse) == 4, "refuse");

enum trunk_link_flags {
	TRUNK_LINK_TRAINS = 1 << 0,
	TRUNK_LINK_UNPLUGGED = 1 << 1,
	TRUNK_LINK_PULLED = 1 << 2,
	TRUNK_LINK_CABLE = 1 << 3, /* the cable was plugged or pulled: as UNPLUGGED says */
	TRUNK_LINK_WAKE = 1 << 4,
};

/*
 * The state of the sender's end. @epoch changes each time that the link goes down or its values change. A link comes up at an
 * end when the peer trains and has acknowledged the present epoch; it goes down when the peer's epoch changes.
 */
struct trunk_link {
	__be32 epoch, ack;
	u8 flags, width, speed, speed_ext, lanes_limit, speed_limit, pad[2];
};
static_assert(sizeof(struct trunk_link) == 16, "link");

/* IBTA 7.9.4: blocks received on the VL since the connection, and free ones of its buffer; their sum is FCCL. */
struct trunk_flow {
	u8 vl, pad;
	__be16 free;
	__be32 abr;
};
static_assert(sizeof(struct trunk_flow) == 8, "flow");

struct trunk_ring_open {
	__be32 size; /* of data */
};
static_assert(sizeof(struct trunk_ring_open) == 4, "ring");

/* One direction of a connection in shared memory, as one side sees it. */
struct trunk_ring {
	struct trunk_ring_shared *shared; /* NULL: there is none */
	u64 at, other;                    /* this side's index, and the peer's as far as it was read */
	bool own;
	struct shared_map map; /* not own */
};

struct trunk_address {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

struct trunk_listener {
	struct trunk_set *set;
	const char *address; /* of the first trunk that listens there */
	struct trunk_address at;
	struct accept_listener accept;
	struct loop_fd w;
	bool bound, tls;
	struct list unknown; /* connections before their hello */
	u32 nunknown;
};

enum trunk_conn_state {
	TRUNK_CONNECTING,
	TRUNK_WAITS_HELLO,
	TRUNK_WAITS_AUTH,
	TRUNK_READY
};

/* Bytes that are sent before anything else: the rest of a message, and messages of the handshake. */
#define TRUNK_TAIL_MAX (TRUNK_MSG_MAX + 1024)

struct trunk_conn {
	struct list link;  /* in trunk_listener.unknown */
	struct list rings; /* in trunk_set.rings, when it has one */
	struct trunk_set *set;
	struct trunk *trunk; /* NULL: not known yet */
	struct trunk_listener *listener;
	struct loop_fd w;
	struct loop_task flush;
	struct loop_timer timer;
	enum trunk_conn_state state;
	struct trunk_tls *tls; /* NULL: none */
	bool local;            /* a Unix socket */
	bool blocked;          /* waits for EPOLLOUT */
	bool ended;            /* to be destroyed by the flush task */
	u64 heard, spoken;     /* loop clock, ns */
	struct trunk_hello mine, theirs;
	/* to be sent */
	u8 tail[TRUNK_TAIL_MAX];
	u32 tail_len;
	struct list packets;
	u32 smps;
	bool tell_link, tell_flow, tell_alive;
	bool wake;     /* to be told with the link */
	u32 by_socket; /* data packets that the socket has taken: TRUNK_RING_AFTER */
	struct trunk_ring tx, rx;
	struct shared_owner owner; /* of rx */
	int passed;                /* the descriptor that came last; -1: none */
	u32 unread;                /* wake-ups by the socket beside a ring since it was read */
	/* received, of a message that is not whole */
	u8 part[sizeof(struct trunk_head) + TRUNK_MSG_MAX];
	u32 part_len;
	/* link */
	u32 epoch, peer_epoch;
	u32 changes; /* of the peer's epoch, in this second */
	bool link_told, heard_link;
	bool plugged; /* the first word on the cable is ours */
	/* credits, in blocks since the connection */
	u32 sent[TRUNK_DATA_VLS], abr[TRUNK_DATA_VLS], told[TRUNK_DATA_VLS]; /* told: FCCL */
};

struct trunk {
	struct trunk_set *set;
	struct fabric_remote *remote;
	struct trunk_listener *listener; /* NULL: it connects */
	struct trunk_address at;
	char *address;
	u8 *key;
	size_t key_len;
	bool tls;
	struct trunk_tls_key tls_key;
	u64 guid, peer_guid;
	u8 port, peer_port, type;
	char name[FABRIC_NAME_MAX];
	struct trunk_conn *conn; /* NULL: not connected */
	struct loop_timer retry;
	u64 wait;
	bool cable; /* plugged or pulled here, and the peer was not told: that counts more than what it says */
	u64 ctr[TRUNK_CTR_NUM];
};

struct trunk_set {
	struct loop *loop;
	struct fabric *fabric;
	struct trunk *trunks;
	u32 ntrunks;
	struct trunk_listener *listeners;
	u32 nlisteners;
	struct list rings; /* connections that have one */
	struct loop_poller poller;
	bool tcp;
	u64 ctr[TRUNK_CTR_NUM];
};

/* trunk.c */
/* The trunk which a hello that came to @l means; NULL and why not. */
struct trunk *trunk_match(struct trunk_listener *l, const struct trunk_hello *h, enum trunk_refusal *why);
/* Has a node here this GUID? Then no node of another daemon may have it. */
bool trunk_guid_is_here(const struct trunk_set *s, u64 guid);
void trunk_lost(struct trunk *t); /* its connection is gone */

/* conn.c */
struct trunk_conn *trunk_conn_create(struct trunk_set *set, int fd, bool local); /* NULL: no memory; closes @fd */
void trunk_conn_destroy(struct trunk_conn *c);
void trunk_conn_start(struct trunk_conn *c); /* of a trunk that connects: says hello */
void trunk_conn_change(struct trunk_conn *c, enum fabric_remote_change what);
void trunk_conn_send(struct trunk_conn *c, struct wire_packet *p);
void trunk_conn_credits(struct trunk_conn *c);
/* Of trunk_set.poller: the rings of all connections. */
u32 trunk_conn_poll(struct loop_poller *p, struct now now);
bool trunk_conn_sleep(struct loop_poller *p, bool asleep);

/*
 * message.c: @len bytes of a message that came. @body has the first WIRE_HDR_MAX ones at least; @shared is where all are, and may change
 * meanwhile. False: the connection has to end.
 */
bool trunk_message(struct trunk_conn *c, const struct trunk_head *h, const u8 *body, const u8 *shared, u32 len);
bool trunk_message_violation(struct trunk_conn *c, const char *what); /* false */
void trunk_message_hello(struct trunk_conn *c);
void trunk_conn_refuse(struct trunk_conn *c, enum trunk_refusal why);
/* What is to be told of link and credits, put into the tail, which has room for it. */
void trunk_message_link(struct trunk_conn *c);
void trunk_message_flow(struct trunk_conn *c);

/* conn.c, for message.c */
void trunk_conn_put(struct trunk_conn *c, enum trunk_type type, const void *body, u32 len);
void trunk_conn_flush_later(struct trunk_conn *c);
void trunk_conn_drop_packets(struct trunk_conn *c);
void trunk_conn_end(struct trunk_conn *c); /* its task destroys it */
void trunk_conn_ready(struct trunk_conn *c);
void trunk_conn_has_ring(struct trunk_conn *c);

/* ring.c: a ring of a connection. The writer's memfd, which is the caller's, or -1 with errno. */
int trunk_ring_create(struct trunk_ring *r);
/* The reader's; 0 or -errno. Does not keep @fd. */
int trunk_ring_map(struct trunk_ring *r, struct shared_owner *owner, int fd);
void trunk_ring_destroy(struct trunk_ring *r); /* harmless when there is none */
/* Where @len bytes may be put; NULL: there is no space, or (@bad) the reader's index cannot be. trunk_ring_write() must follow. */
u8 *trunk_ring_reserve(struct trunk_ring *r, u32 len, bool *bad);
void trunk_ring_write(struct trunk_ring *r, u32 len);
/* After trunk_ring_write(): the reader is to be woken up by a keepalive. */
bool trunk_ring_wakes_reader(struct trunk_ring *r);
/* For any message; also true when the reader's index cannot be. */
bool trunk_ring_has_space(const struct trunk_ring *r);
/* The writer wants a keepalive, or no longer, when there is space; true: there is. */
bool trunk_ring_wait_space(struct trunk_ring *r, bool wait);
/* The body of the next message, of which @h is a copy; NULL: there is none, or (@bad) none that can be. */
const u8 *trunk_ring_next(struct trunk_ring *r, struct trunk_head *h, bool *bad);
void trunk_ring_read(struct trunk_ring *r, u32 len);
/* What was read is free. True: the writer is to be woken up. */
bool trunk_ring_free(struct trunk_ring *r);
/* The reader wants to be woken up, or no longer; true: there is something. */
bool trunk_ring_sleep(struct trunk_ring *r, bool asleep);

static inline void trunk_count(struct trunk_conn *c, enum trunk_counter ctr, u64 n)
{
	if (c->trunk)
		c->trunk->ctr[ctr] += n;
	else
		c->set->ctr[ctr] += n;
}

#endif
