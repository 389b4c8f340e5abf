// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of the event streams: more events than fit in the socket are all read, in order; also those of many queue pairs.
 * A read returns one event, a write fails without a signal, and
 * poll() never reports the stream as writable.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/host/fixture.h"
#include "emu/lib/row.h"

#define MANY 5000u

struct event {
	u64 key;
	u32 type, reserved;
};

static char objects[MANY]; /* their addresses stand for objects */

static bool put(struct uv_events *e, u32 object, u32 type)
{
	struct event ev = { .key = object, .type = type };

	return uv_events_put(e, &objects[object], &ev, sizeof(ev));
}

/* Reads until no more events come while the loop runs; counts events in order of their
 * keys. *end: end of the stream. */
static u32 read_all(struct loop *loop, int fd, u32 first, bool *end)
{
	struct event ev;
	ssize_t size;
	u32 n = 0;

	for (;;) {
		size = recv(fd, &ev, sizeof(ev), MSG_DONTWAIT);
		*end = size == 0;
		if (size < 0 && n == MANY)
			return n;
		if (size != (ssize_t)sizeof(ev)) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			if (*end)
				return n;
			loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_MSEC);
			if (!poll(&p, 1, 0))
				return n;
			continue;
		}
		n += ev.key == first + n;
	}
}

static void test_many(struct loop *loop)
{
	struct uv_events e;
	bool end;
	u32 i, ok = 0;

	row(1, "opened", !uv_events_open(&e, loop, 1));
	for (i = 0; i < MANY; i++)
		ok += put(&e, i, 1);
	row(2, "each is taken", ok == MANY);
	row(3, "more than fit in the socket", !list_empty(&e.queued));
	row(4, "one that is queued is not queued twice", !put(&e, MANY - 1, 1));
	row(5, "one of another type is", put(&e, MANY - 1, 2));
	row(6, "and removed with its object",
	    uv_events_forget(&e, &objects[MANY - 1], MANY - 1, sizeof(struct event)) == 2);
	row(7, "as one that lies in the socket", uv_events_forget(&e, &objects[0], 0, sizeof(struct event)) == 1);
	row(8, "the others are read in order", read_all(loop, e.theirs, 1, &end) == MANY - 2);
	row(9, "none is left", list_empty(&e.queued) && !end);
	row(10, "then events go straight again", put(&e, 0, 1) && list_empty(&e.queued));
	uv_events_close(&e);
}

static void test_end(struct loop *loop)
{
	struct uv_events e;
	bool end;
	u32 i;

	uv_events_open(&e, loop, 1);
	for (i = 0; i < MANY; i++)
		put(&e, i, 1);
	uv_events_end(&e);
	row(20, "no event is accepted after the end", !put(&e, 0, 3));
	row(21, "events before it are read", read_all(loop, e.theirs, 0, &end) == MANY && end);
	uv_events_close(&e);
	uv_events_open(&e, loop, 1);
	for (i = 0; i < MANY; i++)
		put(&e, i, 1);
	uv_events_close(&e);
	row(22, "a stream is closed with events queued", e.ours < 0 && e.theirs < 0);
}

/* As the kernel's files: a program may offer more room than one event needs. */
static void test_program(struct loop *loop)
{
	struct event ev[4] = { 0 };
	struct pollfd all = { .events = POLLIN | POLLOUT | POLLRDHUP };
	struct uv_events e;

	uv_events_open(&e, loop, 1);
	all.fd = e.theirs;
	put(&e, 0, 1);
	put(&e, 1, 1);
	row(23, "a read returns one event",
	    recv(e.theirs, ev, sizeof(ev), MSG_DONTWAIT) == (ssize_t)sizeof(*ev) && !ev[0].key);
	row(24, "and the next one",
	    recv(e.theirs, ev, sizeof(ev), MSG_DONTWAIT) == (ssize_t)sizeof(*ev) && ev[0].key == 1);
	row(26, "poll() reports neither", poll(&all, 1, 0) == 0);
	put(&e, 0, 1);
	row(27, "but an event", poll(&all, 1, 0) == 1 && all.revents == POLLIN);
	signal(SIGPIPE, SIG_DFL);
	row(25, "a write fails", write(e.theirs, ev, sizeof(ev)) < 0 && errno == EPIPE);
	uv_events_end(&e);
	row(28, "an event from before the end is read",
	    recv(e.theirs, ev, sizeof(ev), MSG_DONTWAIT) == (ssize_t)sizeof(*ev) && !ev[0].key);
	row(29, "then there is none", !recv(e.theirs, ev, sizeof(ev), MSG_DONTWAIT));
	uv_events_close(&e);
}

static bool modify(struct desk *d, u32 handle, u8 state, u32 mask)
{
	struct ib_uverbs_modify_qp m = { .qp_handle = handle, .attr_mask = mask, .qp_state = state, .port_num = 1 };
	u32 out;

	return desk_command(d, IB_USER_VERBS_CMD_MODIFY_QP, &m, sizeof(m), &out, 0) >= 0;
}

/* Each queue pair of an SRQ raises LAST_WQE_REACHED on its transition to ERR. 10.3.1.7, 11.6.3.1. */
static void test_last_wqe_reached(void)
{
	static struct {
		struct ib_uverbs_create_qp_resp core;
		struct rxe_create_qp_resp rxe;
	} __attribute__((packed)) qp[1000];
	struct ib_uverbs_get_context context = { 0 };
	struct ib_uverbs_get_context_resp resp;
	struct ib_uverbs_create_qp in = { .max_send_wr = 1, .max_send_sge = 1, .qp_type = HCA_QPT_RC, .is_srq = 1 };
	struct ib_uverbs_destroy_qp destroy = { 0 };
	struct ib_uverbs_destroy_qp_resp destroyed;
	struct ib_uverbs_async_event_desc ev;
	const struct uverbs *u;
	struct desk_objects o;
	u32 i, n = 0, reported = 0;
	struct desk d;

	desk_open(&d);
	u = d.file.priv;
	DESK_DO(&d, IB_USER_VERBS_CMD_GET_CONTEXT, context, resp);
	desk_make(&d, &o);
	in.pd_handle = o.pd;
	in.send_cq_handle = in.recv_cq_handle = o.cq;
	in.srq_handle = o.srq;
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		in.user_handle = 0x1000 + i;
		DESK_DO(&d, IB_USER_VERBS_CMD_CREATE_QP, in, qp[i]);
		n += modify(&d, qp[i].core.qp_handle, HCA_QPS_INIT,
			    HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS) &&
		     modify(&d, qp[i].core.qp_handle, HCA_QPS_ERR, HCA_QP_STATE);
	}
	row(30, "queue pairs in ERR", n == ARRAY_SIZE(qp));
	for (n = 0; n < ARRAY_SIZE(qp) / 2; n++) {
		if (recv(u->async.theirs, &ev, sizeof(ev), MSG_DONTWAIT) != (ssize_t)sizeof(ev)) {
			desk_run(&d, NSEC_PER_MSEC);
			if (recv(u->async.theirs, &ev, sizeof(ev), MSG_DONTWAIT) != (ssize_t)sizeof(ev))
				break;
		}
		if (ev.element != 0x1000 + n || ev.event_type != HCA_EVENT_QP_LAST_WQE_REACHED)
			break;
	}
	row(31, "the first half is read", n == ARRAY_SIZE(qp) / 2);
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		destroy.qp_handle = qp[i].core.qp_handle;
		DESK_DO(&d, IB_USER_VERBS_CMD_DESTROY_QP, destroy, destroyed);
		reported += destroyed.events_reported;
	}
	row(32, "the other half was removed with its queue pairs", reported == ARRAY_SIZE(qp) / 2);
	row(33, "none is left", recv(u->async.theirs, &ev, sizeof(ev), MSG_DONTWAIT) < 0);
	desk_close(&d);
}

int main(void)
{
	struct loop *loop = loop_create_virtual();

	test_many(loop);
	test_end(loop);
	test_program(loop);
	loop_destroy(loop);
	test_last_wqe_reached();
	return rows_end();
}
