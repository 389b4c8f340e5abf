/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs that the engine does not know: QP0 and QP1 of a user with a MAD layer of its own. They transfer single
 * MADs between its queues and the port; MADs for agents in the daemon are dispatched to them. A front end may have
 * others with the same states, turns and completions, such as queue pairs for memory key requests.
 */
#ifndef MUSLIN_VERBS_SPECIAL_H
#define MUSLIN_VERBS_SPECIAL_H

#include "emu/hca/hca.h"

struct mad_port;
struct verbs;
struct verbs_cq;
struct verbs_qp;

#define VERBS_SPECIAL_TURN 64u /* requests of a special queue pair per turn of the loop */

enum verbs_mad_count {
	VERBS_MAD_OUT,
	VERBS_MAD_IN,
	VERBS_MAD_DROPPED,
};

/* Part of struct verbs_qp. */
struct verbs_special {
	struct list link;     /* the specials of its struct verbs */
	struct mad_port *mad; /* NULL: not for MADs */
	u32 pdn;              /* with @mad */
	u8 port, state;       /* enum hca_qp_state */
	bool sig_all;
	u16 pkey_index;
	u32 qkey;
	u32 turn;  /* requests since the last turn began */
	bool more; /* the turn is used up: requests may remain for the next one */
};

struct verbs_special_ops {
	struct mad_port *(*mad)(const struct verbs *v, u8 port); /* MAD layer of the port; NULL: no such port */
	u32 qpn;                                                 /* of QP0; QP1 has the next one */
	void (*count)(struct verbs *v, enum verbs_mad_count c);
	void (*event)(struct verbs *v, const struct hca_event *ev);
	void (*resume)(struct verbs *v); /* queues a task that calls verbs_specials_resume() */
	/* Executes or flushes the next request of a queue pair that is not for MADs. False: none is left. */
	bool (*request)(struct verbs_qp *qp);
};

/* A queue pair with its CQs becomes a special one, in RESET. */
void verbs_special_add(struct verbs_qp *qp);
/* QP0 or QP1 of init->port. 0, -EINVAL: no such port or PD, -EBUSY: the port has one. */
int verbs_special_create(struct verbs_qp *qp, const struct hca_qp_init *init);
/* No callback follows. */
void verbs_special_remove(struct verbs_qp *qp);
void verbs_specials_remove(struct verbs *v);
int verbs_special_modify(struct verbs_qp *qp, const struct hca_qp_attr *a, u32 mask);
void verbs_special_query(const struct verbs_qp *qp, struct hca_qp_attr *a);

/* Its doorbell: executes or flushes requests, as many as the turn allows. */
void verbs_special_run(struct verbs_qp *qp);
/* The next turn of those that have used up theirs. */
void verbs_specials_resume(struct verbs *v);
/*
 * Receives have no doorbell: verbs_specials_poll() flushes those that are posted to queue pairs in ERR and returns how
 * many, while verbs_specials_in_error().
 */
bool verbs_specials_in_error(const struct verbs *v);
u32 verbs_specials_poll(struct verbs *v);
/*
 * Completes a send request. One that fails stops the send queue until SQE2RTS, or, if the queue pair is not for MADs,
 * all of it (10.3.1).
 */
void verbs_special_sent(struct verbs_qp *qp, u64 token, u8 status, bool signaled);
/* Moves it to ERR, with HCA_EVENT_QP_FATAL. The next turn flushes it: it may be executing a request now. */
void verbs_special_fail(struct verbs_qp *qp);
/*
 * At HCA_EVENT_CQ_ERR: the special queue pairs of the CQ enter ERR, each with its event, as those that the engine knows
 * (11.6.3). The next turn flushes them: one may be executing a request now.
 */
void verbs_specials_cq_failed(struct verbs *v, const struct verbs_cq *cq);

#endif
