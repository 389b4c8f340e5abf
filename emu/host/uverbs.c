// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The uverbs device file: shared memory, doorbells, and the command table. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/host/command.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"

static_assert((int)UV_ARM_NEXT == VERBS_ARM_NEXT && (int)UV_ARM_SOLICITED == VERBS_ARM_SOLICITED, "arming of CQs");

#define AGAIN_MOST 16 /* deferrals of one command */

/* Doorbells */

static void ring_one(struct verbs_qp *qp)
{
	hca_qp_doorbell(qp->verbs->ctx, qp->qpn);
}

static u32 take_doorbells(struct uverbs *u)
{
	return verbs_doorbells(&u->verbs, &u->shared->rung, u->shared->doorbell, UV_HANDLES / 64, ring_one);
}

void uv_catch_up(struct uverbs *u)
{
	take_doorbells(u);
	verbs_requests_run(uv_server_loop(u->file->server));
}

/* Limits the deferrals: other QPs of the context may keep posting. */
bool uv_call_defer(struct uv_call *c)
{
	struct uv_file *f = c->u->file;
	u64 until;

	uv_catch_up(c->u);
	until = hca_ctx_transfers(c->u->verbs.ctx);
	if (!until || f->again == AGAIN_MOST)
		return false;
	f->deferral = (struct uv_deferral){ .until = until, .again = f->again + 1 };
	return true;
}

static u32 on_poll(struct loop_poller *p, struct now now)
{
	struct uverbs *u = container_of(p, struct uverbs, poller);
	u32 n;

	if (u->revoked)
		return 0;
	n = take_doorbells(u);
	return n + verbs_poll_recv(&u->verbs, uv_server_loop(u->file->server), &u->poll_timer, now);
}

static bool on_sleep(struct loop_poller *p, bool asleep)
{
	struct uverbs *u = container_of(p, struct uverbs, poller);

	__atomic_store_n(&u->shared->asleep, asleep, __ATOMIC_SEQ_CST);
	return asleep && __atomic_load_n(&u->shared->rung, __ATOMIC_SEQ_CST);
}

static void on_kick(struct loop_fd *w, u32 events, struct now now)
{
	u64 n;

	passed_take(w->fd, &n); /* the poller reads the doorbells */
}

/* Its expiry makes the loop run the poller. */
static void on_poll_timer(struct loop_timer *t, struct now now) {}

/* Open and close */

static int memory_create(struct uverbs *u)
{
	u->memfd = memfd_create("uverbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (u->memfd < 0)
		return -errno;
	if (ftruncate(u->memfd, UV_FILE_SIZE) ||
	    fcntl(u->memfd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ||
	    fcntl(u->memfd, F_SETFL, O_APPEND))
		return -errno;
	u->base = mmap(NULL, UV_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, u->memfd, 0);
	if (u->base == MAP_FAILED) {
		u->base = NULL;
		return -errno;
	}
	u->shared = (struct uv_shared *)u->base;
	u->used = UV_SHARED_SIZE;
	static_assert(sizeof(struct uv_shared) <= UV_SHARED_SIZE, "the rings begin behind it");
	return 0;
}

static int kick_create(struct uverbs *u)
{
	u->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return u->kick < 0 ? -errno : 0;
}

/* The program's descriptors of the memory and the eventfd. */
static int descriptors_copy(const struct uverbs *u, int *memory, int *kick)
{
	int err;

	*memory = fcntl(u->memfd, F_DUPFD_CLOEXEC, 0);
	if (*memory < 0)
		return -errno;
	*kick = fcntl(u->kick, F_DUPFD_CLOEXEC, 0);
	if (*kick >= 0)
		return 0;
	err = -errno;
	close(*memory);
	return err;
}

static void uverbs_free(struct uverbs *u)
{
	if (u->verbs.ctx)
		hca_ctx_destroy(u->verbs.ctx);
	if (u->base)
		munmap(u->base, UV_FILE_SIZE);
	if (u->memfd >= 0)
		close(u->memfd);
	if (u->kick >= 0)
		close(u->kick);
	uv_areas_free(u);
	free(u);
}

static const struct verbs_ops uv_verbs_ops = {
	.cq_size = sizeof(struct uv_cq),
	.qp_size = sizeof(struct uv_qp),
	.srq_size = sizeof(struct uv_srq),
	.cq_init = uv_cq_init,
	.cq_fini = uv_cq_fini,
	.qp_init = uv_qp_init,
	.qp_fini = uv_qp_fini,
	.srq_init = uv_srq_init,
	.srq_fini = uv_srq_fini,
	.srq_posted = uv_srq_posted,
	.cq = &uv_cq_ops,
	.qp = &uv_qp_wq_ops,
	.srq = &uv_srq_wq_ops,
};

/* Requests posted before the check was enabled are accepted. */
static void on_posts(void *fe, bool check)
{
	struct uverbs *u = fe;
	struct uv_qp *qp;
	u32 i;

	if (check && !u->check_posts)
		table_for_each (&u->verbs.qps, i, qp)
			uv_sq_post_result(qp, true);
	u->check_posts = check;
	__atomic_store_n(&u->shared->check_posts, check, __ATOMIC_SEQ_CST);
}

static int file_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	struct uverbs *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->file = f;
	u->memfd = u->kick = u->async.ours = u->async.theirs = -1;
	list_init(&u->free_areas);
	list_init(&u->channels);
	verbs_init(&u->verbs, &uv_verbs_ops, f->host->hca, 0, UV_HANDLES - 1);
	err = memory_create(u);
	if (!err)
		err = kick_create(u);
	u->verbs.ctx = err ? NULL : hca_ctx_create(f->host->hca, &uv_process_dma, f->opener, uv_async_event, u);
	if (!err)
		err = u->verbs.ctx ? descriptors_copy(u, fd, extra) : -ENOMEM;
	if (err) {
		uverbs_free(u);
		return err;
	}
	f->owner = hca_ctx_serial(u->verbs.ctx);
	u->poller = (struct loop_poller){ .poll = on_poll, .sleep = on_sleep };
	u->kicked = (struct loop_fd){ .fd = u->kick, .fn = on_kick };
	u->poll_timer.fn = on_poll_timer;
	loop_poller_add(uv_server_loop(f->server), &u->poller);
	loop_fd_add(uv_server_loop(f->server), &u->kicked, EPOLLIN);
	hca_ctx_watch_posts(u->verbs.ctx, on_posts);
	f->priv = u;
	return 0;
}

static void file_close(struct uv_file *f)
{
	struct uverbs *u = f->priv;

	loop_poller_del(&u->poller);
	loop_fd_del(&u->kicked);
	loop_timer_cancel(&u->poll_timer);
	if (u->verbs.ctx)
		hca_ctx_destroy(u->verbs.ctx);
	u->verbs.ctx = NULL;
	verbs_fini(&u->verbs);
	while (!list_empty(&u->channels))
		uv_channel_free(u, list_first(&u->channels, struct uv_events, link));
	uv_events_close(&u->async);
	uverbs_free(u);
}

/* As in the kernel's ib_uverbs: commands fail with EIO, and so do reads of events once all have been read. */
static void file_revoke(struct uv_file *f)
{
	struct uverbs *u = f->priv;
	struct uv_events *e;

	if (u->revoked)
		return;
	u->revoked = true;
	memset(u->shared->ready, 0, sizeof(u->shared->ready));
	hca_ctx_destroy(u->verbs.ctx);
	u->verbs.ctx = NULL;
	list_for_each (e, &u->channels, link)
		uv_events_end(e);
	uv_events_end(&u->async);
}

static void file_closed(struct uv_file *f, u64 inode)
{
	struct uverbs *u = f->priv;
	struct uv_events *e;

	list_for_each (e, &u->channels, link) {
		if (e->inode != inode)
			continue;
		e->closed = true;
		if (!e->users)
			uv_channel_free(u, e);
		return;
	}
}

/* Commands: [number] of the plain and of the extended form. */

static const struct uv_command commands[] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] = { uv_get_context, sizeof(struct ib_uverbs_get_context_resp) },
	[IB_USER_VERBS_CMD_QUERY_DEVICE] = { uv_query_device, sizeof(struct ib_uverbs_query_device_resp) },
	[IB_USER_VERBS_CMD_QUERY_PORT] = { uv_query_port, sizeof(struct ib_uverbs_query_port_resp) },
	[IB_USER_VERBS_CMD_ALLOC_PD] = { uv_alloc_pd, sizeof(struct ib_uverbs_alloc_pd_resp) },
	[IB_USER_VERBS_CMD_DEALLOC_PD] = { uv_dealloc_pd, 0 },
	[IB_USER_VERBS_CMD_CREATE_AH] = { uv_create_ah, sizeof(struct ib_uverbs_create_ah_resp),
					  sizeof(struct rxe_create_ah_resp) },
	[IB_USER_VERBS_CMD_DESTROY_AH] = { uv_destroy_ah, 0 },
	[IB_USER_VERBS_CMD_REG_MR] = { uv_reg_mr, sizeof(struct ib_uverbs_reg_mr_resp) },
	[IB_USER_VERBS_CMD_DEREG_MR] = { uv_dereg_mr, 0 },
	[IB_USER_VERBS_CMD_ALLOC_MW] = { uv_alloc_mw, sizeof(struct ib_uverbs_alloc_mw_resp) },
	[IB_USER_VERBS_CMD_DEALLOC_MW] = { uv_dealloc_mw, 0 },
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] = { uv_create_channel,
						    sizeof(struct ib_uverbs_create_comp_channel_resp) },
	[IB_USER_VERBS_CMD_CREATE_CQ] = { uv_create_cq, sizeof(struct ib_uverbs_create_cq_resp),
					  sizeof(struct rxe_create_cq_resp) },
	[IB_USER_VERBS_CMD_RESIZE_CQ] = { uv_resize_cq, sizeof(struct ib_uverbs_resize_cq_resp),
					  sizeof(struct rxe_resize_cq_resp) },
	[IB_USER_VERBS_CMD_DESTROY_CQ] = { uv_destroy_cq, sizeof(struct ib_uverbs_destroy_cq_resp) },
	[IB_USER_VERBS_CMD_REQ_NOTIFY_CQ] = { uv_req_notify_cq, 0 },
	[IB_USER_VERBS_CMD_CREATE_QP] = { uv_create_qp, sizeof(struct ib_uverbs_create_qp_resp),
					  sizeof(struct rxe_create_qp_resp) },
	[IB_USER_VERBS_CMD_QUERY_QP] = { uv_query_qp, sizeof(struct ib_uverbs_query_qp_resp) },
	[IB_USER_VERBS_CMD_MODIFY_QP] = { uv_modify_qp, 0 },
	[IB_USER_VERBS_CMD_DESTROY_QP] = { uv_destroy_qp, sizeof(struct ib_uverbs_destroy_qp_resp) },
	[IB_USER_VERBS_CMD_POST_SEND] = { uv_post_send, sizeof(struct ib_uverbs_post_send_resp) },
	[IB_USER_VERBS_CMD_ATTACH_MCAST] = { uv_attach_mcast, 0 },
	[IB_USER_VERBS_CMD_DETACH_MCAST] = { uv_detach_mcast, 0 },
	[IB_USER_VERBS_CMD_CREATE_SRQ] = { uv_create_srq, sizeof(struct ib_uverbs_create_srq_resp),
					   sizeof(struct rxe_create_srq_resp) },
	[IB_USER_VERBS_CMD_MODIFY_SRQ] = { uv_modify_srq, 0 },
	[IB_USER_VERBS_CMD_QUERY_SRQ] = { uv_query_srq, sizeof(struct ib_uverbs_query_srq_resp) },
	[IB_USER_VERBS_CMD_CREATE_XSRQ] = { uv_create_xsrq, sizeof(struct ib_uverbs_create_srq_resp),
					    sizeof(struct rxe_create_srq_resp) },
	[IB_USER_VERBS_CMD_DESTROY_SRQ] = { uv_destroy_srq, sizeof(struct ib_uverbs_destroy_srq_resp) },
};

static const struct uv_command ex_commands[] = {
	[IB_USER_VERBS_CMD_QUERY_DEVICE] = { uv_ex_query_device, 0 },
	[IB_USER_VERBS_CMD_CREATE_CQ] = { uv_ex_create_cq, sizeof(struct ib_uverbs_ex_create_cq_resp),
					  sizeof(struct rxe_create_cq_resp) },
	[IB_USER_VERBS_CMD_CREATE_QP] = { uv_ex_create_qp, 0, sizeof(struct rxe_create_qp_resp) },
	[IB_USER_VERBS_CMD_MODIFY_QP] = { uv_ex_modify_qp, 0 },
};

static bool call_parse(struct uv_call *c, const void *in, size_t len, const struct uv_command **cmd)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t n = sizeof(hdr), unit = 4;
	u32 number;

	if (len < n)
		return false;
	memcpy(&hdr, in, sizeof(hdr));
	number = hdr.command & 0xff;
	c->out_core = c->out_room = (size_t)hdr.out_words * 4;
	*cmd = NULL;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
		if (len < n + sizeof(ex))
			return false;
		memcpy(&ex, (const u8 *)in + n, sizeof(ex));
		n += sizeof(ex);
		unit = 8;
		c->ex = true;
		c->out_core = (size_t)hdr.out_words * 8;
		c->out_room = c->out_core + (size_t)ex.provider_out_words * 8;
		c->in_core = (size_t)hdr.in_words * 8;
		if (len != n + (hdr.in_words + (size_t)ex.provider_in_words) * unit)
			return false;
		if (number < ARRAY_SIZE(ex_commands) && ex_commands[number].fn)
			*cmd = &ex_commands[number];
	} else {
		if (hdr.command & ~0xffu || len != hdr.in_words * unit)
			return false;
		if (number < ARRAY_SIZE(commands) && commands[number].fn)
			*cmd = &commands[number];
	}
	c->in = (const u8 *)in + n;
	c->in_len = len - n;
	return true;
}

/* Does the command create an object of XRC (IBTA A14)? */
static bool call_wants_xrc(const struct uv_call *c, u32 number)
{
	struct ib_uverbs_ex_create_qp ex = { 0 };
	struct ib_uverbs_create_xsrq srq;
	struct ib_uverbs_create_qp qp;

	switch (number) {
	case IB_USER_VERBS_CMD_OPEN_XRCD:
		return true;
	case IB_USER_VERBS_CMD_CREATE_XSRQ:
		return !uv_call_in(c, &srq, sizeof(srq)) && srq.srq_type == IB_UVERBS_SRQT_XRC;
	case IB_USER_VERBS_CMD_CREATE_QP:
		if (c->ex)
			uv_call_in_some(c, &ex, sizeof(ex));
		else if (!uv_call_in(c, &qp, sizeof(qp)))
			ex.qp_type = qp.qp_type;
		return ex.qp_type == IB_UVERBS_QPT_XRC_INI || ex.qp_type == IB_UVERBS_QPT_XRC_TGT;
	default:
		return false;
	}
}

static void file_refused(const struct uv_file *f, const struct uv_call *c, u32 number, int err)
{
	if (err == -EOPNOTSUPP && call_wants_xrc(c, number))
		log_from(LOG_WARN, f->host->name, (u64)f->opener->pid,
			 "process %d: XRC is not in the rxe provider's ABI: use a guest with --model connectx",
			 f->opener->pid);
	else
		log_at(LOG_DEBUG, f->host->name, "uverbs command %u: %s", number, strerror(-err));
}

static ssize_t file_command(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			    int *out_fd)
{
	struct uv_call c = { .u = f->priv, .fd = fd, .out = out, .out_fd = -1 };
	const struct uv_command *cmd;
	size_t room = *out_len;
	u32 number;
	int err;

	*out_len = 0;
	if (c.u->revoked) { /* the program may reuse its memory then: after a move that had begun */
		f->deferral.until = f->process->moves;
		return f->deferral.until ? 0 : -EIO;
	}
	if (!call_parse(&c, in, in_len, &cmd))
		return -EINVAL;
	memcpy(&number, in, sizeof(number)); /* the header's first word, whose other bits are flags */
	number &= 0xff;
	if (!cmd) {
		file_refused(f, &c, number, -EOPNOTSUPP);
		return -EOPNOTSUPP;
	}
	if (c.out_room > room)
		return -EINVAL;
	if (c.out_core < cmd->min_out)
		return -ENOSPC;
	if (c.out_room < (c.ex ? c.out_core : cmd->min_out) + cmd->driver_out)
		return -EINVAL; /* as rdma_rxe, before it creates an object */
	memset(out, 0, c.out_room);
	err = cmd->fn(&c);
	if (err) {
		file_refused(f, &c, number, err);
		return err;
	}
	*out_len = c.out_room;
	*out_fd = c.out_fd;
	return (ssize_t)in_len;
}

static int file_ioctl(struct uv_file *f, u32 request, void *arg, size_t len)
{
	struct uverbs *u = f->priv;
	struct uv_advise a;

	if (request != (u32)RDMA_VERBS_IOCTL)
		return -ENOTTY;
	if (u->revoked)
		return -EIO;
	memcpy(&a, arg, min(len, sizeof(a)));
	if (len < offsetof(struct uv_advise, sge) || a.n > UV_ADVISE_MAX ||
	    len != offsetof(struct uv_advise, sge) + a.n * sizeof(a.sge[0]))
		return -EINVAL;
	return uv_advise_mr(u, &a);
}

static bool file_ready(struct uv_file *f, const struct uv_deferral *h, ssize_t *result)
{
	const struct uverbs *u = f->priv;
	int err;

	if (u->revoked) {
		*result = -EIO;
		return !f->process->moves;
	}
	if (!hca_ctx_moved(u->verbs.ctx, h->until))
		return false;
	err = h->mr ? hca_mr_registered(u->verbs.ctx, h->mr) : 0;
	if (err)
		*result = err;
	return true;
}

const struct uv_file_ops uverbs_file_ops = {
	.open = file_open,
	.command = file_command,
	.ioctl = file_ioctl,
	.ready = file_ready,
	.closed = file_closed,
	.close = file_close,
	.revoke = file_revoke,
};
