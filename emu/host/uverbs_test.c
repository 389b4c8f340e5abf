// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of uverbs.c: opening the device file while the daemon has few descriptors left; kicks; the refusal of XRC;
 * completion vectors; responses without room for the provider's part.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/resource.h>

#include "emu/host/command.h"
#include "emu/host/fixture.h"
#include "emu/lib/row.h"

#define LIMIT 256
#define NEEDS 4 /* descriptors of an open file: memory and eventfd, of the daemon and for the program */

static int taken[LIMIT];

/* Uses all descriptors that are free, after the first @n. Returns how many of them are in use then. */
static u32 take_all(u32 n)
{
	while (n < LIMIT && (taken[n] = dup(0)) >= 0)
		n++;
	return n;
}

/* Closes all after the first @n. */
static void release(u32 n, u32 all)
{
	for (; n < all; n++)
		close(taken[n]);
}

static void test_few_descriptors(void)
{
	struct rlimit limit, few;
	int fd = -1, kick = -1, err;
	struct uv_file file;
	struct desk d;
	u32 n, all;

	desk_open(&d);
	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit){ LIMIT, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	all = take_all(0);
	for (n = 0; n <= NEEDS; n++) {
		file = (struct uv_file){ .server = d.server, .host = &d.host, .opener = &d.process };
		release(all - n, all);
		err = uverbs_file_ops.open(&file, 0, &fd, &kick);
		if (n == NEEDS)
			break;
		row(1 + (int)n, "too few descriptors: the open fails", err == -EMFILE);
		row(11 + (int)n, "and has closed all that it had opened", take_all(all - n) == all);
	}
	row(20, "it succeeds with one more", !err && fd >= 0 && kick >= 0);
	uverbs_file_ops.close(&file);
	close(fd);
	close(kick);
	release(0, all - NEEDS);
	setrlimit(RLIMIT_NOFILE, &limit);
	desk_close(&d);
}

/* As where the program reads its kick between the loop's epoll_wait() and read(). */
static void test_kick(void)
{
	struct uverbs *u;
	struct desk d;

	desk_open(&d);
	u = d.file.priv;
	fcntl(d.kick, F_SETFL, 0);
	alarm(10);
	u->kicked.fn(&u->kicked, EPOLLIN, loop_now(d.loop));
	alarm(0);
	row(29, "a kick that the program has taken back", true);
	desk_close(&d);
}

/* Executes the command. Returns its result, and sets @text to what was logged meanwhile. */
static ssize_t logged_command(struct desk *d, u32 number, const void *body, size_t len, char *text, size_t size)
{
	int fds[2], old = dup(STDERR_FILENO);
	u8 out[64];
	ssize_t n, result;

	if (pipe2(fds, O_NONBLOCK) || dup2(fds[1], STDERR_FILENO) < 0)
		abort();
	result = desk_command(d, number, body, len, out, sizeof(out));
	n = read(fds[0], text, size - 1);
	text[n > 0 ? n : 0] = 0;
	dup2(old, STDERR_FILENO);
	close(old);
	close(fds[0]);
	close(fds[1]);
	return result;
}

static void test_xrc(void)
{
	static const struct ib_uverbs_open_xrcd xrcd = { .fd = (u32)-1 };
	static const struct ib_uverbs_create_xsrq xrc = { .max_wr = 1, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_XRC };
	static const struct ib_uverbs_create_xsrq tags = { .max_wr = 1, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_TM };
	static const struct ib_uverbs_create_qp target = { .qp_type = IB_UVERBS_QPT_XRC_TGT };
	static const struct {
		u32 number;
		const void *body;
		size_t len;
		bool xrc;
	} rows[] = {
		{ IB_USER_VERBS_CMD_OPEN_XRCD, &xrcd, sizeof(xrcd), true },
		{ IB_USER_VERBS_CMD_CREATE_XSRQ, &xrc, sizeof(xrc), true },
		{ IB_USER_VERBS_CMD_CREATE_XSRQ, &tags, sizeof(tags), false },
		{ IB_USER_VERBS_CMD_OPEN_QP, &target, sizeof(target), false },
	};
	struct ib_uverbs_create_qp qp = { .qp_type = IB_UVERBS_QPT_XRC_TGT };
	struct desk_objects o;
	char text[1024];
	ssize_t result;
	struct desk d;
	u32 i;

	desk_open(&d);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		result = logged_command(&d, rows[i].number, rows[i].body, rows[i].len, text, sizeof(text));
		row(30 + (int)i, "not supported", result == -EOPNOTSUPP);
		row(40 + (int)i, "the log says why, of XRC alone",
		    !strstr(text, "guest with --model connectx") != rows[i].xrc);
	}
	desk_make(&d, &o);
	qp.pd_handle = o.pd;
	qp.send_cq_handle = qp.recv_cq_handle = o.cq;
	result = logged_command(&d, IB_USER_VERBS_CMD_CREATE_QP, &qp, sizeof(qp), text, sizeof(text));
	row(50, "nor are its queue pairs", result == -EOPNOTSUPP && strstr(text, ": XRC is not in"));
	desk_close(&d);
}

/* A program may take any of the completion vectors that the device has told. */
static void test_vectors(void)
{
	static const struct {
		u32 vector;
		bool good;
	} rows[] = { { 0, true }, { 1, true }, { UV_VECTORS - 1, true }, { UV_VECTORS, false }, { (u32)-1, false } };
	struct ib_uverbs_create_cq cq = { .cqe = 3, .comp_channel = -1 };
	ssize_t result;
	struct desk d;
	u8 out[64];
	u32 i;

	desk_open(&d);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cq.comp_vector = rows[i].vector;
		result = desk_command(&d, IB_USER_VERBS_CMD_CREATE_CQ, &cq, sizeof(cq), out, sizeof(out));
		row(90 + (int)i, "a CQ has a vector that exists", rows[i].good ? result > 0 : result == -EINVAL);
	}
	desk_close(&d);
}

/* A command fails before it creates an object, or replaces the ring of one. */
static void test_no_room(void)
{
	struct ib_uverbs_create_cq cq = { .cqe = 3, .comp_channel = -1 };
	struct ib_uverbs_resize_cq resize = { .cqe = 300 };
	struct ib_uverbs_create_qp qp = { .max_send_wr = 1, .qp_type = IB_UVERBS_QPT_RC };
	struct ib_uverbs_create_srq srq = { .max_wr = 3, .max_sge = 1 };
	struct ib_uverbs_create_ah ah = { .attr = { .dlid = 1, .port_num = 1 } };
	const struct {
		u32 number;
		const void *body;
		size_t len, room;
	} rows[] = {
		{ IB_USER_VERBS_CMD_CREATE_CQ, &cq, sizeof(cq),
		  sizeof(struct ib_uverbs_create_cq_resp) + sizeof(struct rxe_create_cq_resp) },
		{ IB_USER_VERBS_CMD_RESIZE_CQ, &resize, sizeof(resize),
		  sizeof(struct ib_uverbs_resize_cq_resp) + sizeof(struct rxe_resize_cq_resp) },
		{ IB_USER_VERBS_CMD_CREATE_QP, &qp, sizeof(qp),
		  sizeof(struct ib_uverbs_create_qp_resp) + sizeof(struct rxe_create_qp_resp) },
		{ IB_USER_VERBS_CMD_CREATE_SRQ, &srq, sizeof(srq),
		  sizeof(struct ib_uverbs_create_srq_resp) + sizeof(struct rxe_create_srq_resp) },
		{ IB_USER_VERBS_CMD_CREATE_AH, &ah, sizeof(ah),
		  sizeof(struct ib_uverbs_create_ah_resp) + sizeof(struct rxe_create_ah_resp) },
	};
	const struct uverbs *u;
	struct desk_objects o;
	struct desk d;
	u8 out[64];
	u64 used;
	u32 i;

	desk_open(&d);
	desk_make(&d, &o);
	qp.pd_handle = srq.pd_handle = ah.pd_handle = o.pd;
	qp.send_cq_handle = qp.recv_cq_handle = resize.cq_handle = o.cq;
	u = d.file.priv;
	used = u->used;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		row(60 + (int)i, "no room for the provider's part",
		    desk_command(&d, rows[i].number, rows[i].body, rows[i].len, out, rows[i].room - 4) == -EINVAL);
		row(70 + (int)i, "and no new ring", u->used == used && list_empty(&u->free_areas));
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		row(80 + (int)i, "room",
		    desk_command(&d, rows[i].number, rows[i].body, rows[i].len, out, rows[i].room) > 0);
	desk_close(&d);
}

int main(void)
{
	test_few_descriptors(); /* before the others, whose movers close descriptors after their processes have ended */
	test_xrc();
	test_vectors();
	test_no_room();
	test_kick();
	return rows_end();
}
