// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Batched system calls by io_uring, where permitted: all streams that send or receive in an iteration of the loop share
 * one call. No operation may block, so all are complete when the call returns, and the ring keeps no pointer. A single
 * stream uses the plain system call, which costs less.
 *
 * The ring is created before the daemon's seccomp filter, and is restricted to send and receive.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "siw/siw_internal.h"

#define OPS 16 /* operations per call */

struct siw_uring_queue {
	struct siw *siw;
	struct io_uring uring;
	struct loop_task task;
	struct list in, out; /* queue pairs with a receive or send to be queued */
};

struct op {
	struct siw_qp *sq; /* NULL: its stream was closed */
	bool send;
	int result;
	u32 room;
	struct msghdr msg;
	struct siw_train train; /* receive: only its iovecs are used */
};

/* Operations of the current call. */
static struct op ops[OPS];
static u32 nops;
static bool collecting; /* they are being prepared, and have not run */

static void op_add(struct siw_qp *sq, bool send, u32 niov, u32 room)
{
	struct op *op = &ops[nops++];

	op->sq = sq;
	op->send = send;
	op->result = -EAGAIN;
	op->room = room;
	op->msg = (struct msghdr){ .msg_iov = op->train.iov, .msg_iovlen = niov };
}

/* Receives first: built FPDUs must not change before they are sent. */
static void ops_collect(struct siw_uring_queue *r)
{
	u32 room;

	nops = 0;
	collecting = true;
	while (!list_empty(&r->in) && nops < OPS) {
		struct siw_qp *sq = list_first(&r->in, struct siw_qp, want_receive);
		int n;

		list_del(&sq->want_receive);
		n = siw_input_prepare(sq, ops[nops].train.iov, SIW_PIECES, &room);
		if (n)
			op_add(sq, false, (u32)n, room);
	}
	while (!list_empty(&r->out) && nops < OPS) {
		struct siw_qp *sq = list_first(&r->out, struct siw_qp, want_send);
		struct siw_train *t = &ops[nops].train;

		list_del(&sq->want_send);
		if (siw_send_prepare(sq, t) > 0)
			op_add(sq, true, t->niov, 0);
	}
	collecting = false;
}

void siw_uring_revoke(void)
{
	u32 i;

	for (i = 0; i < nops && collecting; i++) {
		struct op *op = &ops[i];
		struct siw_qp *sq = op->sq;

		if (!sq || !(op->send ? op->train.nfpdus : sq->direct))
			continue;
		if (op->send) /* rolls back its FPDUs with zero-copy payload */
			siw_train_sent(sq, &op->train, 0);
		op->sq = NULL;
		siw_uring_queue_op(sq, op->send);
	}
}

static void op_put(struct siw_uring_queue *r, u32 i)
{
	struct io_uring_sqe *e = io_uring_get_sqe(&r->uring); /* cannot fail: the queue has an entry per operation */
	struct op *op = &ops[i];

	if (op->send)
		io_uring_prep_sendmsg(e, op->sq->fd.fd, &op->msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		io_uring_prep_recvmsg(e, op->sq->fd.fd, &op->msg, MSG_DONTWAIT);
	io_uring_sqe_set_data64(e, i);
}

/* -errno: the ring is unusable; operations without a result were not executed. */
static int ops_submit(struct siw_uring_queue *r, u32 n)
{
	struct io_uring_cqe *e;
	u32 given, i;
	int err = 0;

	for (given = 0; given < n && !err;) {
		int got = io_uring_submit(&r->uring);

		if (got > 0)
			given += (u32)got;
		else if (got != -EINTR)
			err = got ? got : -EIO;
	}
	for (i = 0; i < given;) {
		int got = io_uring_wait_cqe(&r->uring, &e);

		if (got == -EINTR)
			continue;
		if (got)
			return got;
		ops[io_uring_cqe_get_data64(e)].result = e->res;
		io_uring_cqe_seen(&r->uring, e);
		i++;
	}
	return err;
}

static void op_run_alone(struct op *op)
{
	int fd = op->sq->fd.fd;
	ssize_t n = op->send ? sendmsg(fd, &op->msg, MSG_DONTWAIT | MSG_NOSIGNAL) : recvmsg(fd, &op->msg, MSG_DONTWAIT);

	op->result = n < 0 ? -errno : (int)n;
}

static int ops_run(struct siw_uring_queue *r)
{
	struct siw *siw = r->siw;
	struct op *one = NULL;
	u32 n = 0, i;

	for (i = 0; i < nops; i++)
		if (ops[i].sq) {
			one = &ops[i];
			n++;
		}
	if (n == 1 && siw->options.uring == SIW_URING_AUTO)
		op_run_alone(one);
	if (!n || (n == 1 && siw->options.uring == SIW_URING_AUTO))
		return 0;
	for (i = 0; i < nops; i++)
		if (ops[i].sq)
			op_put(r, i);
	siw->counter[SIW_CTR_URING]++;
	return ops_submit(r, n);
}

/* Sends first: their FPDUs may have to be built again from the start. */
static void ops_finish(struct siw_uring_queue *r)
{
	struct op *op;

	for (op = ops; op < ops + nops; op++)
		if (op->sq && op->send && siw_send_done(op->sq, &op->train, op->result))
			siw_kick(op->sq);
	for (op = ops; op < ops + nops; op++)
		if (op->sq && !op->send && siw_input_received(op->sq, op->room, op->result))
			siw_uring_queue_op(op->sq, false);
	nops = 0;
}

/* Disables io_uring; the loop reports streams with unread bytes again. */
static void uring_disable(struct siw_uring_queue *r, int err)
{
	struct siw *siw = r->siw;

	log_at(LOG_WARN, "iwarp", "io_uring failed, using plain system calls: %s", strerror(-err));
	siw->uring = NULL;
	while (!list_empty(&r->in))
		list_del(r->in.next);
	while (!list_empty(&r->out)) {
		struct siw_qp *sq = list_first(&r->out, struct siw_qp, want_send);

		list_del(&sq->want_send);
		siw_kick(sq);
	}
	siw_uring_destroy(r);
}

static bool uring_idle(const struct siw_uring_queue *r)
{
	return list_empty(&r->in) && list_empty(&r->out);
}

static void on_task(struct loop_task *t, struct now now)
{
	struct siw_uring_queue *r = container_of(t, struct siw_uring_queue, task);
	struct siw *siw = r->siw;
	int err = 0;
	u32 round;

	for (round = 0; round < SIW_ROUNDS && !err && !uring_idle(r); round++) {
		ops_collect(r);
		err = ops_run(r);
		ops_finish(r);
	}
	hca_flush(siw->hca);
	if (err)
		uring_disable(r, err);
	else if (!uring_idle(r))
		loop_task_queue(siw->loop, t);
	else
		loop_task_cancel(t);
}

void siw_uring_queue_op(struct siw_qp *sq, bool send)
{
	struct siw_uring_queue *r = sq->siw->uring;
	struct list *link = send ? &sq->want_send : &sq->want_receive;

	if (!list_empty(link))
		return;
	list_add(send ? &r->out : &r->in, link);
	loop_task_queue(r->siw->loop, &r->task);
}

void siw_uring_remove(struct siw_qp *sq)
{
	u32 i;

	list_del(&sq->want_receive);
	list_del(&sq->want_send);
	for (i = 0; i < nops; i++)
		if (ops[i].sq == sq)
			ops[i].sq = NULL;
}

/* Permits only the operations used here. By system call, since not every liburing exports its functions for this. */
static int restrict_to_messages(int fd)
{
	struct io_uring_restriction only[] = {
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SENDMSG },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_RECVMSG },
	};

	if (syscall(__NR_io_uring_register, fd, IORING_REGISTER_RESTRICTIONS, only, ARRAY_SIZE(only)) < 0 ||
	    syscall(__NR_io_uring_register, fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) < 0)
		return -errno;
	return 0;
}

struct siw_uring_queue *siw_uring_create(struct siw *siw)
{
	struct siw_uring_queue *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return NULL;
	err = io_uring_queue_init(OPS, &r->uring, IORING_SETUP_R_DISABLED);
	if (!err) {
		err = restrict_to_messages(r->uring.ring_fd);
		if (err)
			io_uring_queue_exit(&r->uring);
	}
	if (err) { /* disabled by sysctl, an old kernel, or a sandbox */
		log_at(LOG_INFO, "iwarp", "io_uring is not available, using plain system calls: %s", strerror(-err));
		free(r);
		return NULL;
	}
	r->siw = siw;
	loop_task_init(&r->task, on_task);
	list_init(&r->in);
	list_init(&r->out);
	return r;
}

void siw_uring_destroy(struct siw_uring_queue *r)
{
	if (!r)
		return;
	loop_task_cancel(&r->task);
	io_uring_queue_exit(&r->uring);
	free(r);
}
