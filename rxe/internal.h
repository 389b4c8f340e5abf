/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's own state, by the file that implements each part. */
#ifndef MUSLIN_RXE_INTERNAL_H
#define MUSLIN_RXE_INTERNAL_H

#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/dcqcn.h"
#include "rxe/rxe.h"

#define RXE_PORTS         4
#define RXE_QPN_MULTICAST 0xffffff
#define RXE_WQES          256         /* send requests pulled and not completed, per QP */
#define RXE_WINDOW        512         /* packets sent and not acknowledged, per QP */
#define RXE_ACK_EVERY     64          /* AckReq at least every so many packets */
#define RXE_CHUNK         65536u      /* application memory is read in pieces of this size */
#define RXE_HOLD          512         /* packets ahead of their turn that a responder holds, per QP */
#define RXE_HOLD_BYTES    (32u << 20) /* of their payloads, of all QPs of an adapter together */
#define RXE_RESOURCES     128         /* READs and atomics that a responder remembers */
#define RXE_KEPT          256         /* buffers that the batch of writes points into */
#define RXE_BUDGET        60          /* packets a QP sends before the next one has its turn */

enum wqe_state {
	WQE_POSTED,
	WQE_SENT,
	WQE_DONE
};

/* A send request that was pulled. */
struct rxe_wqe {
	u64 token;
	u8 opcode, flags, state;
	u16 num_sge, pkey_index;
	u32 imm, rkey, length, first_psn, npkts;
	u64 remote_addr, compare_add, swap;
	u32 remote_qpn, remote_qkey;
	u16 lso_mss;            /* UD: bytes a segment; 0: no packet to be cut */
	u16 lso_hdr;            /* that many bytes of headers stand in chunk before the payload */
	u32 got;                /* READ: response bytes placed */
	struct wire_buf *chunk; /* bytes of the message from chunk_off on */
	u32 chunk_off;
	u8 status; /* a local error found when it was pulled: completed in its turn */
	struct hca_av av;
	struct hca_send_wr *local; /* BIND_MW, LOCAL_INV, REG_MR; owned */
	struct hca_sge sge[HCA_MAX_SGE];
};

/* What the responder owes, in the order of PSNs. */
struct rxe_resource {
	bool atomic;
	u32 first_psn, npkts, sent; /* sent: responses out */
	u64 va, orig;
	u32 rkey, length, msn;
	struct wire_buf *chunk;
	u32 chunk_off;
};

/* A part of one that is to be sent again. */
struct rxe_again {
	u32 index; /* the resource's */
	u32 at, n; /* its next packet, and how many */
};

struct rxe;

/* How fast a requester sends where there are no credits. */
struct rxe_window {
	bool on, sampling;
	bool gap; /* the missing responses are asked for already */
	u8 backoff;
	u32 window, credit, sample_psn;
	u64 srtt, sample_ns, began; /* of the acknowledge time-out */
};

/* Does the responder at the other end hold what comes behind a gap? */
enum rxe_holds {
	RXE_HOLDS_UNKNOWN,
	RXE_HOLDS,
	RXE_HOLDS_NOT
};

struct rxe_qp {
	struct hca_qp *qp;
	struct rxe *rxe;
	struct list work;  /* on rxe->work while it has something to send */
	struct list dirty; /* on rxe->dirty while a commit is due */

	/* requester */
	struct rxe_wqe *wqes;          /* RXE_WQES of them, from RTS on */
	u32 wq_head, wq_next, wq_tail; /* pulled, next to send, oldest not completed */
	u32 pkt_next;                  /* packet of wqes[wq_next] to send next */
	u32 psn, una, max_psn;         /* next PSN to send, oldest not acknowledged, one past the highest ever sent */
	u64 *ahead;                    /* bits of the READ responses behind a gap that are in their places, by PSN */
	u32 nahead, asked_to;          /* asked: the gap up to that PSN is asked for */
	bool asked;
	u32 rd_out; /* READs and atomics in flight */
	u8 retries, rnr_retries;
	bool rnr_wait, drained, sqd;
	struct rxe_window win;
	u8 holds;                /* enum rxe_holds */
	bool hole_due, hole_out; /* one packet is to be sent again, or was and is not acknowledged */
	u32 hole;                /* its PSN */
	u32 gaps;                /* found by a peer that holds nothing */
	struct loop_timer timer; /* acknowledge time-out, or the RNR wait */
	struct loop_timer pace;  /* waits for the static rate */
	u64 paced_until;         /* ns of the loop's clock */
	bool paced;              /* it has waited for its rate, a short while ago */
	struct dcqcn *dcqcn;     /* from the first notification on */
	u64 cnp_after;           /* ns: no notification goes back before that */

	/* responder */
	u32 epsn, msn;
	u8 last_op; /* flags that the next packet must continue: WIRE_OPF_SEND, _WRITE or 0 */
	bool nak_sent, ack_due, comm_est, uc_drop;
	bool mig_refused;          /* a migration request by a wrong path was told */
	u32 ooo_psn;               /* the last PSN that was out of sequence */
	struct wire_packet **held; /* RXE_HOLD of them, by PSN, from the first gap on */
	u32 nheld;
	u8 nak;         /* syndrome of a NAK that waits for the commit, 0: none */
	bool recv_held; /* recv is a pulled request */
	struct hca_recv_wr recv;
	u32 recv_off, msg_len;
	u64 wr_va; /* WRITE: where the next byte goes, how many may come */
	u32 wr_rkey, wr_left, wr_len;
	struct rxe_resource *res; /* RXE_RESOURCES */
	u32 res_head, res_next, res_tail;
	struct rxe_again *again; /* RXE_RESOURCES, from the first one on; sent before what is owed for the first time */
	u32 again_head, again_tail;
	struct hca_cqe *comps; /* receive completions that wait; there is room for that of a held request */
	u32 ncomps, comps_cap;
	bool dma_failed, read_failed;
};

struct rxe {
	struct hca *hca;
	struct loop *loop;
	struct list work, dirty, blocked; /* blocked: had work when their port had no credits */
	struct loop_task tx_task, commit_task;
	struct hca_batch *rd, *wr;
	struct wire_buf *kept[RXE_KEPT]; /* the batch of writes points into them */
	u32 nkept, wr_bytes;
	u32 ahead;                      /* bytes of payload that responders hold */
	struct list pending[RXE_PORTS]; /* packets that the link did not take */
};

/* core.c: flushes what the engine holds and moves the QP to ERR; @event as of hca_qp_fail() */
void rxe_qp_error(struct rxe_qp *rq, int event);

/* frame.c */
struct wire_packet *rxe_frame(struct hca_qp *qp, const struct hca_av *av, u16 pkey, u8 opcode, u32 dqpn, u32 psn,
			      u32 len, bool se, bool ackreq);
void *rxe_eth(struct wire_packet *p, enum wire_eth eth);
void rxe_payload(struct wire_packet *p, struct wire_buf *buf, u32 off, u32 len);
void rxe_borrow(struct wire_packet *p, const u8 *data, u32 len);
bool rxe_send(struct rxe *rxe, u8 port, struct wire_packet *p); /* false: the port is blocked now */
bool rxe_blocked(const struct rxe *rxe, u8 port);
u16 rxe_pkey(const struct hca_qp *qp, u16 index);

/* memory.c */
int rxe_sges_span(struct hca_qp *qp, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access, void *local,
		  bool write, struct rxe_qp *owner);
/* Adds what @rkey gives of a range to the batch; without @local it only checks the key. 0, or an hca_key_error. */
int rxe_remote_move(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access, void *local, bool write);
/*
 * Where those bytes lie, when they are mapped in one piece and the port of the queue pair works on memory of programs. NULL: not
 * so. @access as for hca_key_local() and hca_key_remote().
 */
u8 *rxe_sges_direct(struct rxe_qp *rq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access);
u8 *rxe_remote_direct(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access);
void rxe_keep(struct rxe *rxe, struct wire_buf *buf);
void rxe_keep_payload(struct rxe *rxe, const struct wire_packet *p);
void rxe_commit(struct rxe *rxe);
void rxe_dirty(struct rxe_qp *rq);

/* window.c */
void rxe_window_reset(struct rxe_qp *rq);
u32 rxe_window_size(const struct rxe_qp *rq);    /* packets that may be unacknowledged */
bool rxe_window_ackreq(const struct rxe_qp *rq); /* for the packet at the cursor */
void rxe_window_sent(struct rxe_qp *rq, u32 psn);
void rxe_window_begin(struct rxe_qp *rq); /* the acknowledge time-out of what is sent begins now (9.7.6.1.3) */
void rxe_window_acked(struct rxe_qp *rq, u32 una, u32 n);
void rxe_window_lost(struct rxe_qp *rq);
u64 rxe_window_timeout(const struct rxe_qp *rq);
bool rxe_window_due(const struct rxe_qp *rq); /* a retry that is made now counts */
bool rxe_window_early(struct rxe_qp *rq);     /* the time-out that has come is none that counts as a retry */

/* The requester: wqe.c, requester.c, retry.c, response.c, read.c */
void rxe_req_kick(struct rxe_qp *rq);
bool rxe_req_run(struct rxe_qp *rq); /* true: more to do */
void rxe_req_complete(struct rxe_qp *rq);
/* The next bytes of the response that is expected to begin with @psn: how many packets of @len fit, short of the last one. */
u32 rxe_req_place(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at);
void rxe_req_response(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
void rxe_req_reset(struct rxe_qp *rq);
void rxe_req_flush(struct rxe_qp *rq);
void rxe_req_timer(struct loop_timer *t, struct now now);

/* migrate.c */
void rxe_migrate(struct rxe_qp *rq); /* to the alternate path */
/* Does the packet come by a path of this QP, with its P_Key? It may arm the alternate path, or take it. */
bool rxe_path_accepts(struct rxe_qp *rq, const struct wire_packet *p, u8 port);
bool rxe_path_is(const struct rxe_qp *rq, const struct wire_packet *p,
		 u8 port); /* by its primary path, nothing changes */

/* hold.c */
void rxe_hold_ahead(struct rxe_qp *rq, const struct wire_packet *p, u32 psn); /* @psn lies ahead of its turn */
struct wire_packet *rxe_hold_take(struct rxe_qp *rq);                         /* the one whose turn it is, or NULL */
void rxe_hold_skip(struct rxe_qp *rq, u32 psn, u32 n); /* drops those, whose turn will not come */
void rxe_hold_drop(struct rxe_qp *rq);                 /* all of them */

/* place.c: of struct hca_transport */
u32 rxe_place(struct hca *hca, u8 port, const struct wire_packet *head, u32 n, u8 **at);

/* pace.c */
u32 rxe_pace_link(const struct rxe_qp *rq); /* Mb/s of the port */
bool rxe_pace_wait(struct rxe_qp *rq);      /* true: too early, the queue pair is kicked when it is time */
/* @bytes have left towards a destination with that static rate (0: any). */
void rxe_pace_sent(struct rxe_qp *rq, u8 static_rate, u32 bytes);

/* congestion.c */
void rxe_cc_mark(const struct rxe_qp *rq, struct wire_packet *p); /* says that it may be marked */
void rxe_cc_received(struct rxe_qp *rq, struct wire_packet *p);   /* tells the peer when it was */
void rxe_cc_notified(struct rxe_qp *rq);
u64 rxe_cc_rate(struct rxe_qp *rq, u32 bytes); /* kb/s after those were sent; 0: nothing holds it */
void rxe_cc_reset(struct rxe_qp *rq);

/* The responder: responder.c, resource.c */
void rxe_resp_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
u32 rxe_resp_place(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at); /* the same of a WRITE */
bool rxe_resp_run(struct rxe_qp *rq);                                    /* READ responses; true: more to do */
void rxe_resp_commit(struct rxe_qp *rq);
void rxe_resp_reset(struct rxe_qp *rq);

/* ud.c */
void rxe_ud_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op);
bool rxe_ud_run(struct rxe_qp *rq);
/* A datagram to a group that leaves also goes to the group's other members on the same port. */
void rxe_ud_loop_back(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
/* receive side, shared by responder.c and ud.c */
int rxe_recv_get(struct rxe_qp *rq); /* 1, 0 none, -EINVAL completed in error already */
void rxe_recv_complete(struct rxe_qp *rq, struct hca_cqe *cqe);

#endif
