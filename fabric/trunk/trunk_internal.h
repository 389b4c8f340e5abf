/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Trunks: messages of a connection, and declarations by the file that implements them. */
#ifndef MUSLIN_TRUNK_INTERNAL_H
#define MUSLIN_TRUNK_INTERNAL_H

#include <netinet/in.h>
#include <sys/un.h>

#include "emu/lib/accept.h"
#include "emu/lib/shared_map.h"
#include "emu/lib/socket_path.h"
#include "emu/packet/ack_delay.h"
#include "emu/wire/smp.h"
#include "fabric/trunk/tls.h"
#include "fabric/trunk/trunk.h"

#define TRUNK_VERSION    4
#define TRUNK_MAGIC      "muslinTK"
#define TRUNK_NONCE_SIZE 16
#define TRUNK_MAC_SIZE   32
#define TRUNK_DATA_VLS   15
#define TRUNK_LINKS      65536u /* trunks of a connection */
#define TRUNK_MSG_MAX    (WIRE_HDR_MAX + WIRE_MTU_MAX)
#define TRUNK_SILENCE    (15 * NSEC_PER_SEC)    /* without a message: the peer is dead */
#define TRUNK_MISSED     (2500 * NSEC_PER_MSEC) /* the same; and then a connection that proves the key replaces it */
#define TRUNK_PING       (1 * NSEC_PER_SEC)
#define TRUNK_LATE       (1 * NSEC_PER_SEC) /* a timer that is so late: the daemon was stopped */
#define TRUNK_HELLO_TIME (5 * NSEC_PER_SEC) /* limit for the handshake */
#define TRUNK_REFUSED_TIME \
	(1 * NSEC_PER_SEC) /* until the listener closes a connection without a trunk that it has refused */
#define TRUNK_REFUSED_WAIT  (5 * NSEC_PER_SEC)   /* until a trunk that the listener has refused tries again */
#define TRUNK_SWAPPED_WAIT  (10 * NSEC_PER_MSEC) /* the same, while only one end has a swap: the first time, ... */
#define TRUNK_SWAPPED_MAX   (1 * NSEC_PER_SEC)   /* ... and at most */
#define TRUNK_SWAP_LOST     (5 * NSEC_PER_SEC)   /* without the peer of a trunk that a swap has added: the swap ends */
#define TRUNK_UNKNOWN       256          /* a listener's connections without a trunk; one more replaces another one */
#define TRUNK_UNKNOWN_LOCAL 1024         /* on a Unix socket, to which only programs of the user connect */
#define TRUNK_REQUESTS      16           /* hellos that wait for AUTH on a connection without a ready trunk */
#define TRUNK_READ          (256u << 10) /* bytes read from a socket in one turn; what they cause is sent at once */
#define TRUNK_RING_READ     (64u << 10)  /* bytes read from a ring in one turn */
#define TRUNK_SNDBUF        (1 << 20)    /* of a Unix socket, as far as the system permits */
#define TRUNK_WRITE         (1u << 20)   /* bytes written to a connection in one turn */
#define TRUNK_CHANGES       500          /* limit of changes of the peer's end of a link in a second */
#define TRUNK_CHANGES_SENT  200          /* of this end that are sent in a second */
#define TRUNK_SMPS          1024         /* limit of queued VL15 packets of a trunk: VL15 has no credits */
#define TRUNK_FLOW_STEP     512          /* freed blocks after which credits are sent */
#define TRUNK_RING          (256u << 10) /* bytes of a ring: a power of 2 */
#define TRUNK_FULL          (20 * NSEC_PER_MSEC) /* for which senders wait if the reader of a full ring frees nothing */
#define TRUNK_RING_AFTER    16                   /* packets that a connection sends before it creates a ring */

/*
 * Messages: a head, and @len bytes. Integers are big-endian. Each trunk of a connection has a link number, which the
 * connecting daemon chooses. Messages of the connection itself, which are KEEPALIVE and RING_OPEN, have number 0.
 */
enum trunk_type {
	TRUNK_SKIP,      /* in a ring: the next message is at the start of the ring */
	TRUNK_HELLO,     /* struct trunk_hello: first message of a trunk in each direction; the listener responds */
	TRUNK_AUTH,      /* HMAC of both hellos, if the trunk has a key; the connecting daemon sends it first */
	TRUNK_REFUSE,    /* struct trunk_refuse: last message of a trunk */
	TRUNK_LINK,      /* struct trunk_link */
	TRUNK_FLOW,      /* struct trunk_flow for one or more VLs */
	TRUNK_PACKET,    /* LRH to pad bytes, without CRCs; flags: enum wire_packet_flags */
	TRUNK_KEEPALIVE, /* without a body */
	TRUNK_RING_OPEN, /* struct trunk_ring_open, with memfd and eventfd of the ring for all further messages */
	TRUNK_TYPES
};

struct trunk_head {
	u8 type, flags;
	__be16 len;
	__be32 link; /* number */
};
static_assert(sizeof(struct trunk_head) == 8, "head of a message");

struct trunk_hello {
	u8 magic[8];
	__be16 version;
	u8 port;      /* of the sender's node */
	u8 peer_port; /* that the sender expects; 0: any */
	u8 type;      /* enum wire_node_type */
	u8 flags;     /* enum trunk_hello_flags */
	u8 pad[2];
	__be64 guid, peer_guid; /* of the sender's node, and of the node that it expects; 0: any */
	u8 nonce[TRUNK_NONCE_SIZE];
	char name[FABRIC_NAME_MAX];
};
static_assert(sizeof(struct trunk_hello) == 112, "hello");

/*
 * A fault that swaps cables suspends trunks and adds others, in each daemon by a command of its own. So that a daemon
 * that has died and is back, or whose fault has been cleared, does not leave the others alone with theirs, the
 * connecting end of a suspended trunk asks for the other one's state, by hellos that are always refused.
 */
enum trunk_hello_flags {
	TRUNK_HELLO_SUSPENDED = 1 << 0,
	TRUNK_HELLO_ADDED = 1 << 1
};

enum trunk_refusal {
	TRUNK_BAD_HELLO = 1,
	TRUNK_BAD_VERSION,
	TRUNK_BAD_KEY,
	TRUNK_BAD_PORT,
	TRUNK_BUSY,
	TRUNK_BAD_TLS,  /* of the connection: one end uses TLS, and the other one does not */
	TRUNK_SWAPPED,  /* a fault has put the sender's end of the cable into another port; it is not counted */
	TRUNK_UNSWAPPED /* to a flag of the hello: no fault of the sender has; nor is this one */
};

struct trunk_refuse {
	u8 why; /* enum trunk_refusal */
	u8 pad;
	__be16 version; /* of the sender */
};
static_assert(sizeof(struct trunk_refuse) == 4, "refuse");

enum trunk_link_flags {
	TRUNK_LINK_TRAINS = 1 << 0,
	TRUNK_LINK_UNPLUGGED = 1 << 1,
	TRUNK_LINK_PULLED = 1 << 2,
	TRUNK_LINK_CABLE = 1 << 3, /* the cable was plugged or pulled: see UNPLUGGED */
	TRUNK_LINK_WAKE = 1 << 4,
};

/*
 * The state of the sender's end. @epoch changes whenever the sender's link goes down or its values change. The link
 * comes up at an end when the peer trains and has acknowledged the current epoch; it goes down when the peer's epoch
 * changes.
 */
struct trunk_link {
	__be32 epoch, ack;
	u8 flags, width, speed, speed_ext, lanes_limit, speed_limit, fdr10, pad;
};
static_assert(sizeof(struct trunk_link) == 16, "link");

/* IBTA 7.9.4: blocks received on the VL since the handshake, and free blocks of its buffer. Their sum is FCCL. */
struct trunk_flow {
	u8 vl, pad;
	__be16 free;
	__be32 abr;
};
static_assert(sizeof(struct trunk_flow) == 8, "flow");

struct trunk_ring_open {
	__be32 size; /* of the ring's data */
};
static_assert(sizeof(struct trunk_ring_open) == 4, "ring");

/* One direction of a connection in shared memory, as one daemon accesses it. */
struct trunk_ring {
	struct trunk_ring_shared *shared; /* NULL: the ring does not exist */
	u64 at, other;                    /* own index, and the peer's index as last read */
	u64 announced;                    /* of the writer: @at when it last checked whether the reader sleeps */
	bool own;                         /* created here: by the writer */
	int event;                        /* eventfd that wakes the reader, if the ring exists */
	struct shared_map map;            /* of the reader */
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

static inline bool trunk_address_equal(const struct trunk_address *a, const struct trunk_address *b)
{
	return a->len == b->len && !memcmp(&a->sa, &b->sa, a->len);
}

#define TRUNK_ADDRESSES 8 /* of a name that are tried, in turn */
struct trunk_addresses {
	struct trunk_address at[TRUNK_ADDRESSES];
	u32 n;
	int error; /* of getaddrinfo(); 0: none */
};

struct trunk_listener {
	struct trunk_set *set;
	struct trunk_address at;
	struct accept_listener accept;
	struct loop_fd w;
	struct socket_path path; /* of a Unix socket, ... */
	struct loop_timer busy;  /* ... at which another process begins to listen */
	bool tls;
	char *address;       /* as text */
	u32 ntrunks;         /* 0: those of a swap that has ended; it does not listen */
	struct list unknown; /* connections without a trunk */
	u32 nunknown;
};

/* The trunks that connect to one address, with the same key if they use TLS, share a connection. */
struct trunk_connector {
	struct list link; /* in trunk_set.connectors */
	struct trunk_set *set;
	struct trunk_address at;       /* of a name: of the last attempt */
	bool named, unresolved;        /* the address is a name; which the last attempt did not resolve */
	struct trunk_resolve *resolve; /* in progress; NULL */
	u32 attempts;                  /* at addresses of the name */
	char *address;                 /* as text */
	bool tls;
	struct trunk_tls_key tls_key; /* if it uses TLS */
	struct list trunks;
	u32 ntrunks;
	struct trunk_conn *conn; /* NULL: not connected */
	struct loop_timer retry;
	u64 wait, since; /* loop clock, ns: the next retry's delay; when a trunk became ready first */
};

/*
 * Bytes that are sent before packets: the rest of a message, and messages of trunks other than packets, of which one
 * trunk has up to TRUNK_SEND_MAX at a time.
 */
#define TRUNK_TAIL_REST (sizeof(struct trunk_head) + TRUNK_MSG_MAX)
#define TRUNK_TAIL_MAX  (TRUNK_TAIL_REST + (16u << 10))
#define TRUNK_SEND_MAX  512

/* A link number of a connection: of a trunk, or of a request. */
struct trunk_number {
	u32 number;
	struct trunk *trunk;
	struct trunk_request *request;
};

struct trunk_conn {
	struct list link;  /* in trunk_listener.unknown */
	struct list rings; /* in trunk_set.rings, if it has one */
	struct trunk_set *set;
	struct trunk_listener *listener;   /* NULL: this daemon connected */
	struct trunk_connector *connector; /* NULL: this daemon accepted, ... */
	u64 source;                        /* ... from this address, network of IPv6, or process */
	struct trunk_number *links;        /* by their numbers */
	u32 nlinks, links_max;             /* entries of @links; and for how many it has memory */
	u32 next_number;                   /* of a connector */
	u32 nopen, nready;                 /* trunks of the connection; of these, in TRUNK_READY */
	u32 nhello;             /* of a connector: trunks that have sent a hello and are not in TRUNK_READY */
	struct list respond;    /* requests whose hellos are to be answered */
	struct loop_fd w, wake; /* the socket; the eventfd of rx */
	struct loop_task flush;
	struct loop_timer timer;
	bool connecting;
	struct trunk_tls *tls; /* NULL: none */
	bool local;            /* a Unix socket */
	bool blocked;          /* waits for EPOLLOUT */
	bool ended;            /* the flush task destroys it */
	bool refused;          /* has got a refusal */
	u64 heard, spoken;     /* loop clock, ns */
	/* to be sent */
	u8 tail[TRUNK_TAIL_MAX];
	u32 tail_len;
	struct list active; /* trunks with messages to send */
	bool send_alive;
	u32 by_socket; /* packets sent on the socket, up to TRUNK_RING_AFTER */
	struct trunk_ring tx, rx;
	bool wants_space; /* senders wait for space in tx, ... */
	bool stuck;       /* ... or have waited for TRUNK_FULL, since when there was none */
	struct loop_timer full;
	/* written to tx since it was checked for a sleeping reader */
	bool urgent;      /* something for which a flush has to wake it; or else acknowledgements, for which ... */
	u64 ack_until;    /* ... it is woken at this time of the loop's clock, ns; 0: none */
	u64 unread_since; /* loop clock, ns: the peer, which does not sleep, has not read all of tx; 0: it has */
	struct ack_delay ack_delay;
	struct shared_owner owner; /* of rx */
	int passed[2];             /* the descriptors received last */
	u32 npassed;
	/* received part of an incomplete message */
	u8 part[sizeof(struct trunk_head) + TRUNK_MSG_MAX];
	u32 part_len;
};

enum trunk_state {
	TRUNK_CLOSED,
	TRUNK_WAITS_HELLO,
	TRUNK_WAITS_AUTH,
	TRUNK_READY
};

/* A hello at a listener whose sender has not proved the key of @trunk. */
struct trunk_request {
	struct trunk *trunk;
	struct trunk_conn *conn;
	u32 number;   /* of the link */
	u64 since;    /* loop clock, ns */
	u64 replaces; /* number of the trunk's session that its peer has left silent; 0: it had none */
	struct trunk_hello mine, theirs;
	struct list link;    /* in trunk.requests */
	struct list respond; /* in trunk_conn.respond, until its hello has been answered */
};

/* A trunk's state on its connection. */
struct trunk_session {
	enum trunk_state state;
	u32 number; /* of the link */
	struct trunk_hello mine, theirs;
	bool hello_begun; /* of a connector: the hello is to be sent, or has been sent */
	/* to be sent */
	struct list active; /* in trunk_conn.active */
	struct list packets;
	u32 smps;
	bool send_hello, send_auth, send_link, send_flow;
	bool wake; /* flag of the next TRUNK_LINK */
	/* link */
	u32 epoch, peer_epoch;
	bool link_sent, link_received;
	u32 cable_epoch; /* in which a change of the cable was sent that the peer has not acknowledged; 0: none */
	/* credits, in blocks since the handshake; fccl: as last sent */
	u32 sent[TRUNK_DATA_VLS], abr[TRUNK_DATA_VLS], fccl[TRUNK_DATA_VLS];
};

struct trunk {
	struct trunk_set *set;
	struct fabric_remote *remote;
	struct trunk_listener *listener;   /* NULL: it connects */
	struct trunk_connector *connector; /* NULL: it listens */
	struct list sibling;               /* in trunk_connector.trunks */
	struct list extra;                 /* in trunk_set.extra */
	bool added;                        /* by a fault that swaps cables */
	bool suspended;                    /* by one that has swapped its cable, ... */
	bool peer_suspended;               /* ... and so is the peer's end */
	bool swap_ended;                   /* at the peer's end alone: a task ends it here */
	struct trunk_address at;           /* len 0: a name, resolved at each attempt to connect */
	char *address;
	char *key_path; /* NULL: no key */
	u8 *key;
	size_t key_len;
	bool tls;
	struct trunk_tls_key tls_key;
	u64 guid, peer_guid;
	u8 port, peer_port, type;
	char name[FABRIC_NAME_MAX];
	struct trunk_conn *conn; /* NULL: no session */
	struct trunk_session s;
	struct list requests;    /* at its listener, of any connections */
	struct loop_timer retry; /* after a refusal */
	struct loop_timer lost;  /* of a trunk that was added: since the session's end */
	u64 swapped_wait;        /* ns: the next delay after TRUNK_SWAPPED and TRUNK_UNSWAPPED */
	bool cable;              /* plugged or pulled here, which has not been sent to the peer ... */
	bool unplugged;          /* ... or was the last such change sent: pulled */
	u32 changes;             /* of the peer's end of the link in this second, on any connection ... */
	u64 changes_since;       /* ... which began at this time of the loop's clock, ns */
	u32 changes_sent;        /* of this end likewise ... */
	u64 sent_since;          /* ... */
	struct loop_timer paced; /* a change waits for the next second */
	u64 ctr[TRUNK_CTR_NUM];
};

struct trunk_set {
	struct loop *loop;
	struct fabric *fabric;
	struct trunk *trunks;
	u32 ntrunks;
	struct list extra;      /* trunks of faults that have swapped cables */
	struct loop_task swaps; /* ends some of these faults */
	struct trunk **by_port; /* all trunks by GUID and port number */
	u32 nby_port;
	u64 *guids; /* of the fabric's nodes, sorted */
	struct trunk_listener *listeners;
	u32 nlisteners;
	struct list connectors;
	struct list rings; /* connections that have one */
	struct loop_poller poller;
	bool tcp;
	bool running; /* created: the loop must not block */
	u64 ctr[TRUNK_CTR_NUM];
};

/* trunk.c */
/* Counts @n changes of the peer's end of the link. False: there are more than TRUNK_CHANGES in this second. */
bool trunk_count_changes(struct trunk *t, u32 n);
void trunk_swap_ended(struct trunk *t); /* at the other end of a trunk that a swap has suspended or added here */

/* match.c */
/* The trunk without a connection to which a hello on @c belongs; NULL with the reason. */
struct trunk *trunk_match(const struct trunk_conn *c, const struct trunk_hello *h, enum trunk_refusal *why);
/*
 * May the peer that has sent hello @h on @c replace the trunk's session, when it has proved the key? That is one of the
 * same port, by a peer that has been silent: the machine of the peer has vanished without an end of its connection.
 */
bool trunk_may_replace(const struct trunk *t, const struct trunk_conn *c, const struct trunk_hello *h);
/* Does a node here have this GUID? Then no node of another daemon may have it. */
bool trunk_guid_is_here(const struct trunk_set *s, u64 guid);
/* Sort trunks, and the GUIDs of nodes, for these lookups. False: no memory. */
bool trunk_match_sort(struct trunk_set *s);
void trunk_match_sort_guids(struct trunk_set *s);
void trunk_match_remove(struct trunk_set *s, const struct trunk *t);

/* connector.c */
/* Adds the trunk to the connector of its address, and of its key if it uses TLS. False: no memory. */
bool trunk_connector_add(struct trunk *t);
void trunk_connector_opened(struct trunk_connector *k); /* its connection is established */
void trunk_connector_lost(struct trunk_connector *k);   /* its connection is closed */
void trunk_connector_restart(struct trunk *t);          /* of a trunk that has been suspended or resumed */
void trunk_connector_put(struct trunk *t);              /* of a trunk that is removed */
void trunk_connector_destroy(struct trunk_connector *k);
/* A trunk that connects has been refused: tries again in TRUNK_REFUSED_WAIT, or @soon, and then in twice the time. */
void trunk_refused(struct trunk *t, bool soon);

/* listener.c */
/* The listener at the trunk's address, which it shares with others. NULL with a line in @err. */
struct trunk_listener *trunk_listener_get(struct trunk_set *s, const struct trunk *t, char *err, size_t err_len);
void trunk_listener_put(struct trunk_listener *l); /* by its trunk, which does not listen any more */
void trunk_listener_close(struct trunk_listener *l);

/* resolve.c */
/*
 * The socket address of @text, the path of a socket or HOST:PORT. To @listen there, the host may be a name, which is
 * resolved and may block, or * for all addresses of the machine; else it is a numeric one. 0, or getaddrinfo()'s error:
 * EAI_NONAME if it is a name.
 */
int trunk_address_read(const char *text, bool listen, struct trunk_addresses *a);
typedef void (*trunk_resolve_fn)(void *ctx, const struct trunk_addresses *found);
/* Resolves HOST:PORT without blocking, and calls @done once, unless it is cancelled before. NULL: out of resources. */
struct trunk_resolve *trunk_resolve_start(struct loop *loop, const char *address, trunk_resolve_fn done, void *ctx);
void trunk_resolve_cancel(struct trunk_resolve *r);

/* number.c */
/* One that is not in use, and was last used as long ago as possible: messages of its last session may arrive late. */
u32 trunk_number_next(struct trunk_conn *c);
struct trunk_number *trunk_number_search(const struct trunk_conn *c, u32 number);
/* NULL: no memory, or an invalid number, or one in use. Pointers to other numbers become invalid. */
struct trunk_number *trunk_number_add(struct trunk_conn *c, u32 number);
void trunk_number_remove(struct trunk_conn *c, u32 number); /* which is in use */
/* NULL: a number that is not in use. Without gaps, each number is its own index. */
static inline struct trunk_number *trunk_number_find(const struct trunk_conn *c, u32 number)
{
	return number < c->nlinks && c->links[number].number == number ? &c->links[number]
								       : trunk_number_search(c, number);
}

/* request.c */
bool trunk_request_open(struct trunk *t, struct trunk_conn *c, u32 number, const struct trunk_hello *theirs);
void trunk_request_close(struct trunk_request *r);
bool trunk_request_is_open(const struct trunk *t, const struct trunk_conn *c); /* on @c */

/* session.c */
/* Adds the trunk to the connection, with the peer's @number, or (of a connector) one of its own. False: no memory. */
bool trunk_session_open(struct trunk *t, struct trunk_conn *c, u32 number);
void trunk_session_close(struct trunk *t); /* takes the link down */
void trunk_session_ready(struct trunk *t); /* after the handshake */
void trunk_session_change(struct trunk *t, enum fabric_remote_change what);
void trunk_session_send(struct trunk *t, struct wire_packet *p);
enum fabric_remote_payload trunk_session_payload(struct trunk *t, bool wait); /* as fabric_remote_ops.payload */
/* ABR, or the free blocks of the input buffer, have changed for a data VL: sends credits if they are due. */
void trunk_session_credits(struct trunk *t, u8 vl);
void trunk_session_flush_later(struct trunk *t);
bool trunk_session_owes(const struct trunk *t); /* has something to send */
/* Puts the trunk's messages other than packets into the tail. False: the tail has no space for them. */
bool trunk_session_tell(struct trunk *t);

/* conn.c */
struct trunk_conn *trunk_conn_create(struct trunk_set *set, int fd, bool local); /* NULL: no memory; closes @fd */
void trunk_conn_destroy(struct trunk_conn *c);
void trunk_conn_start(struct trunk_conn *c); /* of a connector */
void trunk_conn_put(struct trunk_conn *c, enum trunk_type type, u32 number, const void *body, u32 len);
void trunk_conn_flush_later(struct trunk_conn *c);
void trunk_conn_end(struct trunk_conn *c); /* its task destroys it */
void trunk_conn_set_timer(struct trunk_conn *c, u64 ns);
const char *trunk_conn_name(const struct trunk_conn *c);             /* for log messages: of its first trunk */
void trunk_conn_count(struct trunk_conn *c, enum trunk_counter ctr); /* for each of its trunks */
/* Puts messages of no trunk into the tail, up to its space. */
void trunk_conn_tell(struct trunk_conn *c);
/* Removes trunks without messages from the first @n active ones, and appends the others. */
void trunk_conn_rotate(struct trunk_conn *c, u32 n);
/* The packet, or at least its first byte, is in the socket or the ring. Frees it. */
void trunk_conn_packet_sent(struct trunk *t, struct wire_packet *p);
static inline struct trunk_head trunk_packet_head(const struct trunk *t, const struct wire_packet *p, u32 len)
{
	return (struct trunk_head){
		.type = TRUNK_PACKET, .flags = p->flags, .len = cpu_to_be16((u16)len), .link = cpu_to_be32(t->s.number)
	};
}

/* conn_ring.c */
void trunk_conn_ring_open(struct trunk_conn *c);  /* the socket has accepted all earlier messages */
void trunk_conn_ring_flush(struct trunk_conn *c); /* puts all that waits into the ring, up to its space */
bool trunk_conn_ring_packet(struct trunk *t, struct wire_packet *p); /* false: there is no space in the ring */
void trunk_conn_has_ring(struct trunk_conn *c);
/* Senders wait for space in the ring, until fabric_remote_ready(). False: they have waited for TRUNK_FULL. */
bool trunk_conn_wait_space(struct trunk_conn *c);
/* Of trunk_set.poller: the rings of all connections. */
u32 trunk_conn_poll(struct loop_poller *p, struct now now);
bool trunk_conn_sleep(struct loop_poller *p, bool asleep);

/*
 * message.c: processes a received message of @len bytes. @body has at least the first WIRE_HDR_MAX bytes; @shared has
 * all of them, and the peer may change them at any time. False: the connection has ended.
 */
bool trunk_message(struct trunk_conn *c, const struct trunk_head *h, const u8 *body, const u8 *shared, u32 len);
bool trunk_message_violation(struct trunk_conn *c, const char *what); /* false */
void trunk_message_end(struct trunk *t, enum trunk_refusal why);      /* ends its session, and tells the peer */
/* Refuses the trunk or the request of a link number, or the number itself. False: the connection has ended. */
bool trunk_message_refuse(struct trunk_conn *c, u32 number, enum trunk_refusal why);
void trunk_message_fill_hello(const struct trunk *t, struct trunk_hello *h); /* except for its nonce */
bool trunk_message_flow_due(const struct trunk *t, u8 vl);                   /* must TRUNK_FLOW be sent for the VL? */
/* Put one message into the tail, which has space for it. */
void trunk_message_respond(struct trunk_request *r); /* to its hello */
void trunk_message_hello(struct trunk *t);
void trunk_message_auth(struct trunk *t);
void trunk_message_link(struct trunk *t);
/* Is the link's message a change, of which this second has had TRUNK_CHANGES_SENT? */
bool trunk_message_link_waits(const struct trunk *t);
void trunk_message_flow(struct trunk *t);

/* ring.c: a ring of a connection. The writer's memfd, which the caller owns, or -1 with errno. */
int trunk_ring_create(struct trunk_ring *r);
/* The reader's; 0 or -errno. Does not keep @fd; owns @event, which is an eventfd, if it returns 0. */
int trunk_ring_map(struct trunk_ring *r, struct shared_owner *owner, int fd, int event);
void trunk_ring_destroy(struct trunk_ring *r); /* no effect if it does not exist */
/* Space for @len bytes; NULL: none, or (@bad) the reader's index is invalid. trunk_ring_write() must follow. */
u8 *trunk_ring_reserve(struct trunk_ring *r, u32 len, bool *bad);
void trunk_ring_write(struct trunk_ring *r, u32 len);
/* Does the reader need a signal for what was written since the last call? One call must follow each write. */
bool trunk_ring_wakes_reader(struct trunk_ring *r);
void trunk_ring_signal(struct trunk_ring *r); /* wakes the reader. Never blocks. */
/* A hint without a barrier: may miss that the reader has just gone to sleep. */
bool trunk_ring_reader_sleeps(const struct trunk_ring *r);
/* Are there messages that the reader has not processed, although it does not sleep? */
bool trunk_ring_unread(const struct trunk_ring *r);
/* Is there space for @len bytes? Also true if the reader's index is invalid. */
bool trunk_ring_fits(struct trunk_ring *r, u32 len);
/* Is there space for any message? Also true if the reader's index is invalid. */
bool trunk_ring_has_space(const struct trunk_ring *r);
/* The writer requests a wake-up when there is space, or no longer does; true: there is space. */
bool trunk_ring_wait_space(struct trunk_ring *r, bool wait);
/* The body of the next message, and a copy of its head in @h; NULL: there is none, or (@bad) an invalid one. */
const u8 *trunk_ring_next(struct trunk_ring *r, struct trunk_head *h, bool *bad);
void trunk_ring_read(struct trunk_ring *r, u32 len);
/* Frees what was read. True: the writer waits for space and needs a wake-up. */
bool trunk_ring_free(struct trunk_ring *r);
/* The reader requests a signal when there are messages, or no longer does; true: there are messages. */
bool trunk_ring_sleep(struct trunk_ring *r, bool asleep);

/* At the trunk, or (NULL) at the set. */
static inline void trunk_count(struct trunk_set *s, struct trunk *t, enum trunk_counter ctr, u64 n)
{
	if (t)
		t->ctr[ctr] += n;
	else
		s->ctr[ctr] += n;
}

#endif
