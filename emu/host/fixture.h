/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of emu/host: one HCA with the real engine on a port in loopback, and an opened uverbs file whose
 * program is an idle child process, so that writes to the program's memory do not hit the test.
 */
#ifndef MUSLIN_HOST_FIXTURE_H
#define MUSLIN_HOST_FIXTURE_H

#include <assert.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emu/hca/bring.h"
#include "emu/host/context.h"
#include "rxe/rxe.h"

#define DESK_LID    7
#define DESK_ARENA  65536u
#define DESK_STEP   (50 * NSEC_PER_USEC)
#define DESK_SOCKET "/tmp/uverbs-test-%d" /* of the server, with the process ID of the test */

static u8 desk_arena[DESK_ARENA] __attribute__((aligned(4096))); /* memory of the program: the child's copy */

struct desk {
	struct loop *loop;
	struct wire_port port;
	struct list wire; /* packets in loopback */
	struct loop_task deliver;
	struct uv_server *server;
	struct uv_host host;
	struct uv_file file;
	struct uv_process process;
	int memfd, kick;
	u8 *base; /* the program's mapping of the file */
};

static inline int desk_send(struct wire_port *port, struct wire_packet *p)
{
	struct desk *d = container_of(port, struct desk, port);

	list_add(&d->wire, &p->link);
	loop_task_queue(d->loop, &d->deliver);
	return 0;
}

static inline void desk_deliver(struct loop_task *t, struct now now)
{
	struct desk *d = container_of(t, struct desk, deliver);
	struct list batch;

	list_init(&batch);
	list_splice(&batch, &d->wire);
	while (!list_empty(&batch)) {
		struct wire_packet *p = list_first(&batch, struct wire_packet, link);

		list_del(&p->link);
		d->port.data.receive(d->port.data.ctx, p);
	}
}

static inline void desk_violation(struct wire_port *port, const struct wire_port_violation *v)
{
	port->attr.qkey_violations++;
}

static inline struct uv_host *desk_find(void *arg, const char *name)
{
	return &((struct desk *)arg)->host;
}

static inline pid_t desk_program(void)
{
	static pid_t pid;
	pid_t parent = getpid();

	if (pid)
		return pid;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent had ended before */
		_exit(0);
	for (;;)
		pause();
}

/* Opens the file; closes the previous one. */
static inline void desk_open(struct desk *d)
{
	static const struct wire_port_ops wire = { .send = desk_send, .violation = desk_violation };
	struct hca_config cfg = { .name = "t", .node_guid = 1, .nports = 1, .seed = 1 };
	char path[64];

	memset(d, 0, sizeof(*d));
	cfg.ports = d->host.port;
	d->loop = loop_create_virtual();
	list_init(&d->wire);
	loop_task_init(&d->deliver, desk_deliver);
	d->port = (struct wire_port){ .ops = &wire, .num = 1 };
	d->port.attr = (struct wire_port_attr){
		.state = 4, .lid = DESK_LID, .mtu_cap = 5, .mtu_active = 5, .gids = 1, .pkeys = 1, .pkey = { 0xffff }
	};
	d->port.attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, DESK_LID);
	d->host = (struct uv_host){ .name = "t", .nports = 1, .port = { &d->port } };
	d->host.hca = hca_create(d->loop, &cfg);
	hca_set_transport(d->host.hca, &rxe_transport);
	snprintf(path, sizeof(path), DESK_SOCKET, (int)getpid());
	d->server = uv_server_create(d->loop, path, path, desk_find, d);
	assert(d->server);
	d->file = (struct uv_file){ .server = d->server, .host = &d->host, .ops = &uverbs_file_ops };
	uv_process_init(&d->process, d->loop, desk_program());
	d->file.process = d->file.opener = &d->process;
	if (uverbs_file_ops.open(&d->file, 0, &d->memfd, &d->kick))
		abort();
	d->base = mmap(NULL, UV_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d->memfd, 0);
	assert(d->base != MAP_FAILED);
}

/* Virtual time does not advance while the mover, which uses real time, is busy. */
static inline void desk_complete_moves(struct desk *d)
{
	while (d->process.moves) {
		loop_run_idle(d->loop, loop_now(d->loop).ns);
		sched_yield();
	}
}

static inline void desk_run(struct desk *d, u64 ns)
{
	u64 at = loop_now(d->loop).ns, end = at + ns;

	while (at < end) {
		at = min(at + DESK_STEP, end);
		loop_run_idle(d->loop, at);
		desk_complete_moves(d);
	}
}

static inline void desk_close(struct desk *d)
{
	uverbs_file_ops.close(&d->file);
	uv_process_fini(&d->process);
	desk_run(d, NSEC_PER_MSEC);
	munmap(d->base, UV_FILE_SIZE);
	close(d->memfd);
	close(d->kick);
	uv_server_destroy(d->server);
	hca_destroy(d->host.hca);
	loop_destroy(d->loop);
	assert(!wire_packet_live());
}

/* As write() of all of @in. Returns its result; closes *out_fd. */
static inline ssize_t desk_write(struct desk *d, const void *in, size_t len, void *out, size_t out_len)
{
	int out_fd = -1;
	ssize_t n = uverbs_file_ops.command(&d->file, in, len, -1, out, &out_len, &out_fd);

	desk_complete_moves(d);
	if (out_fd >= 0)
		close(out_fd);
	return n;
}

/* A command of the plain form: @body begins with the response's address, which is unused. */
static inline ssize_t desk_command(struct desk *d, u32 number, const void *body, size_t len, void *out, size_t out_len)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = number,
					 .in_words = (u16)((sizeof(hdr) + len) / 4),
					 .out_words = (u16)(out_len / 4) };
	u8 in[1024];

	assert(len <= sizeof(in) - sizeof(hdr));
	memcpy(in, &hdr, sizeof(hdr));
	memcpy(in + sizeof(hdr), body, len);
	return desk_write(d, in, sizeof(hdr) + len, out, out_len);
}

/* Objects whose rings can be written, created by commands. */
struct desk_objects {
	u32 pd, cq, srq, lkey, rkey;
	u32 qp[4], qpn[4]; /* RC, its peer, UD, RC with the SRQ */
	u32 ah;
	struct mminfo ring[10]; /* CQ, SRQ, two for each of the first three QPs, one of the last; the shared page */
};

#define DESK_DO(d, number, in, out)                                                      \
	do {                                                                             \
		if (desk_command(d, number, &(in), sizeof(in), &(out), sizeof(out)) < 0) \
			abort();                                                         \
	} while (0)

static inline void desk_qp_ready(struct desk *d, u32 handle, u32 peer, enum hca_qp_type type)
{
	struct ib_uverbs_modify_qp m = { .qp_handle = handle,
					 .path_mtu = 3,
					 .qkey = 1,
					 .dest_qp_num = peer,
					 .qp_access_flags = 0xf,
					 .port_num = 1,
					 .max_rd_atomic = 4,
					 .max_dest_rd_atomic = 4,
					 .min_rnr_timer = 1,
					 .timeout = 8,
					 .retry_cnt = 1,
					 .rnr_retry = 1 };
	u32 out;
	u8 to;

	m.dest.dlid = DESK_LID;
	m.dest.port_num = 1;
	for (to = HCA_QPS_INIT; to <= HCA_QPS_RTS; to++) {
		m.qp_state = to;
		m.attr_mask = HCA_QP_STATE | bring_mask(type, to);
		if (desk_command(d, IB_USER_VERBS_CMD_MODIFY_QP, &m, sizeof(m), &out, 0) < 0)
			abort();
	}
}

static inline void desk_qp_make(struct desk *d, struct desk_objects *o, u32 i)
{
	struct ib_uverbs_create_qp in = { .pd_handle = o->pd,
					  .send_cq_handle = o->cq,
					  .recv_cq_handle = o->cq,
					  .max_send_wr = 8,
					  .max_recv_wr = 8,
					  .max_send_sge = 3,
					  .max_recv_sge = 3,
					  .max_inline_data = 64,
					  .qp_type = i == 2 ? HCA_QPT_UD : HCA_QPT_RC };
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct rxe_create_qp_resp rxe;
	} __attribute__((packed)) out = { 0 };

	in.is_srq = i == 3;
	in.srq_handle = o->srq;
	DESK_DO(d, IB_USER_VERBS_CMD_CREATE_QP, in, out);
	o->qp[i] = out.core.qp_handle;
	o->qpn[i] = out.core.qpn;
	o->ring[2 + 2 * i] = out.rxe.sq_mi;
	if (i < 3)
		o->ring[3 + 2 * i] = out.rxe.rq_mi;
}

static inline void desk_make(struct desk *d, struct desk_objects *o)
{
	struct ib_uverbs_alloc_pd pd_in = { 0 };
	struct ib_uverbs_alloc_pd_resp pd;
	struct ib_uverbs_reg_mr mr_in = { .start = (u64)(uintptr_t)desk_arena,
					  .length = DESK_ARENA,
					  .hca_va = (u64)(uintptr_t)desk_arena,
					  .access_flags = 0xf };
	struct ib_uverbs_reg_mr_resp mr;
	struct ib_uverbs_create_cq cq_in = { .cqe = 15, .comp_channel = -1 };
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct rxe_create_cq_resp rxe;
	} __attribute__((packed)) cq;
	struct ib_uverbs_create_srq srq_in = { .max_wr = 8, .max_sge = 2 };
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct rxe_create_srq_resp rxe;
	} __attribute__((packed)) srq;
	struct ib_uverbs_create_ah ah_in = { .attr = { .dlid = DESK_LID, .port_num = 1 } };
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct rxe_create_ah_resp rxe;
	} __attribute__((packed)) ah;
	u32 i;

	DESK_DO(d, IB_USER_VERBS_CMD_ALLOC_PD, pd_in, pd);
	ah_in.pd_handle = srq_in.pd_handle = mr_in.pd_handle = o->pd = pd.pd_handle;
	DESK_DO(d, IB_USER_VERBS_CMD_REG_MR, mr_in, mr);
	DESK_DO(d, IB_USER_VERBS_CMD_CREATE_CQ, cq_in, cq);
	DESK_DO(d, IB_USER_VERBS_CMD_CREATE_SRQ, srq_in, srq);
	DESK_DO(d, IB_USER_VERBS_CMD_CREATE_AH, ah_in, ah);
	o->lkey = mr.lkey;
	o->rkey = mr.rkey;
	o->cq = cq.core.cq_handle;
	o->srq = srq.core.srq_handle;
	o->ah = ah.rxe.ah_num;
	o->ring[0] = cq.rxe.mi;
	o->ring[1] = srq.rxe.mi;
	o->ring[9] = (struct mminfo){ .size = sizeof(struct uv_shared) };
	for (i = 0; i < 4; i++)
		desk_qp_make(d, o, i);
	desk_qp_ready(d, o->qp[0], o->qpn[1], HCA_QPT_RC);
	desk_qp_ready(d, o->qp[1], o->qpn[0], HCA_QPT_RC);
	desk_qp_ready(d, o->qp[2], 0, HCA_QPT_UD);
	desk_qp_ready(d, o->qp[3], o->qpn[3], HCA_QPT_RC);
}

static inline void desk_ring(struct desk *d, u32 handle)
{
	struct uv_shared *s = (struct uv_shared *)d->base;

	__atomic_fetch_or(&s->doorbell[handle / 64 % (UV_HANDLES / 64)], 1ull << handle % 64, __ATOMIC_RELEASE);
	__atomic_store_n(&s->rung, 1, __ATOMIC_SEQ_CST);
}

#endif
