// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program of the random verbs: opens its HCA, and executes random operations until each program has completed its
 * number.
 *
 * usage: chaos FILE SLOT
 */
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct file *file;
struct prog prog;

void wrong(const struct end *e, const char *fmt, ...)
{
	static const char *const types[] = { "RC", "UC", "UD", "RC by CM", "iWARP" };
	static const char *const states[] = { "gone", "made", "ready", "open", "closing", "quiet", "drain" };
	va_list ap;

	printf("wrong: program %u, operation %u: ", prog.index, file->head.proc[prog.index].ops);
	if (e)
		printf("connection %u (%s) end %u generation %u, %s, excuses %#x: ", e->index, types[e->type], e->side,
		       e->gen, states[e->state], end_excuses(e));
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(3);
}

uint32_t draw(uint32_t n)
{
	prog.rng ^= prog.rng << 13;
	prog.rng ^= prog.rng >> 7;
	prog.rng ^= prog.rng << 17;
	return (uint32_t)((prog.rng >> 11) % n);
}

bool chance(uint32_t per_mille)
{
	return draw(1000) < per_mille;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void count_op(void)
{
	file->head.proc[prog.index].ops++;
}

bool without(uint32_t kind)
{
	return file->head.without & kind;
}

static void prog_open(void)
{
	int n = 0;
	struct ibv_context **all = rdma_get_devices(&n); /* the contexts that rdma_cm uses */
	struct proc_shared *ps = &file->proc[prog.index];
	struct ibv_mr *mr;

	prog.ctx = all && n ? all[0] : NULL;
	if (!prog.ctx || ibv_query_port(prog.ctx, 1, &prog.port) || ibv_query_gid(prog.ctx, 1, 0, &prog.gid))
		wrong(NULL, "no RDMA device: %s", strerror(errno));
	rdma_free_devices(all);
	prog.pd = ibv_alloc_pd(prog.ctx);
	prog.other_pd = ibv_alloc_pd(prog.ctx);
	prog.channel = ibv_create_comp_channel(prog.ctx);
	prog.cq = ibv_create_cq(prog.ctx, 2 * CONNS * RING, NULL, NULL, 0);
	prog.spare = mmap(NULL, SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!prog.pd || !prog.other_pd || !prog.channel || !prog.cq || prog.spare == MAP_FAILED)
		wrong(NULL, "no protection domain or completion queue: %s", strerror(errno));
	fcntl(prog.channel->fd, F_SETFL, fcntl(prog.channel->fd, F_GETFL) | O_NONBLOCK);
	fcntl(prog.ctx->async_fd, F_SETFL, fcntl(prog.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	mr = ibv_reg_mr(prog.pd, prog.spare, SLOT,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	prog.other_mr = ibv_reg_mr(prog.other_pd, prog.spare, SLOT,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	prog.no_rights = ibv_reg_mr(prog.pd, prog.spare, SLOT, 0);
	if (!mr || !prog.other_mr || !prog.no_rights)
		wrong(NULL, "no memory region: %s", strerror(errno));
	ps->revoked = mr->rkey;
	prog.revoked_lkey = mr->lkey;
	ps->other_pd = prog.other_mr->rkey;
	ps->no_rights = prog.no_rights->rkey;
	ps->addr = (uintptr_t)prog.spare;
	if (ibv_dereg_mr(mr))
		wrong(NULL, "dereg_mr: %s", strerror(errno));
	ps->incarnation = prog.incarnation;
}

static void prog_close(void)
{
	int i;

	objects_close();
	for (i = 0; i < SLOT; i++)
		if (prog.spare[i])
			wrong(NULL, "byte %d of memory whose keys are wrong has changed", i);
	if (ibv_dereg_mr(prog.other_mr) || ibv_dereg_mr(prog.no_rights) || ibv_destroy_cq(prog.cq) ||
	    ibv_destroy_comp_channel(prog.channel) || ibv_dealloc_pd(prog.pd) || ibv_dealloc_pd(prog.other_pd))
		wrong(NULL, "what is not in use cannot be destroyed: %s", strerror(errno));
}

static struct end *end_of(const struct ibv_qp *qp)
{
	uint32_t i;

	for (i = 0; i < prog.ends; i++)
		if (prog.end[i]->qp == qp)
			return prog.end[i];
	return NULL;
}

static bool async_events(void)
{
	struct ibv_async_event ev;
	struct end *e;

	if (ibv_get_async_event(prog.ctx, &ev))
		return false;
	switch (ev.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		e = end_of(ev.element.qp);
		if (!e && !objects_is_qp(ev.element.qp))
			wrong(NULL, "%s of a queue pair that is not there", ibv_event_type_str(ev.event_type));
		if (e && !end_excuses(e))
			wrong(e, "%s without an excuse", ibv_event_type_str(ev.event_type));
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		e = end_of(ev.element.qp);
		if (!e && !objects_is_qp(ev.element.qp))
			wrong(NULL, "%s of a queue pair that is not there", ibv_event_type_str(ev.event_type));
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		wrong(NULL, "%s", ibv_event_type_str(ev.event_type));
	default: /* port events */
		break;
	}
	ibv_ack_async_event(&ev);
	return true;
}

static bool all_done(void)
{
	uint32_t i;

	if (file->head.stop)
		return true;
	for (i = 0; i < file->head.procs; i++)
		if (!file->head.proc[i].done)
			return false;
	return true;
}

/* One round over all ends. False: there was nothing to do. */
static bool round_run(void)
{
	bool busy = async_events(), gone = true;
	uint32_t i;

	busy |= traffic_poll_all();
	for (i = 0; i < prog.ends; i++) {
		struct end *e = prog.end[i];

		busy |= end_step(e);
		if (e->state >= OPEN && e->state <= QUIET)
			busy |= traffic_fill(e);
		traffic_late(e);
		gone &= e->state == GONE;
	}
	if (prog.finishing && gone)
		return false;
	if (!prog.finishing && file->head.proc[prog.index].ops < file->head.ops) {
		struct end *e = prog.end[draw(prog.ends)];

		if (e->state == OPEN)
			busy |= traffic_op(e);
		if (chance(3))
			objects_op();
	}
	return busy;
}

static bool all_gone(void)
{
	uint32_t i;

	for (i = 0; i < prog.ends; i++)
		if (prog.end[i]->state != GONE)
			return false;
	return true;
}

static void run(void)
{
	struct timespec nap = { .tv_nsec = 200000 };

	while (!prog.finishing || !all_gone()) {
		if (!round_run())
			nanosleep(&nap, NULL);
		if (file->head.proc[prog.index].ops >= file->head.ops)
			file->head.proc[prog.index].done = 1;
		prog.finishing = all_done();
	}
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
	uint32_t i, side;

	file = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (argc == 2 && !strcmp(argv[1], "size")) {
		printf("%zu\n", sizeof(struct file));
		return 0;
	}
	if (file == MAP_FAILED) {
		fprintf(stderr, "usage: chaos FILE SLOT: %s\n", strerror(errno));
		return 2;
	}
	close(fd);
	prog.index = (uint32_t)atoi(argv[2]);
	prog.incarnation = file->head.proc[prog.index].kills;
	prog.rng = (file->head.seed + 1) * 0x9e3779b97f4a7c15ull ^ (prog.index + 1) * 0xc2b2ae3d27d4eb4full ^
		   (prog.incarnation + 1) * 0x165667b19e3779f9ull;
	for (i = 0; i < 8; i++)
		draw(2);
	prog_open();
	for (i = 0; i < file->head.conns; i++) { /* the first generation is 1 */
		uint32_t none = 0;

		atomic_compare_exchange_strong(&file->conn[i].want, &none, 1);
	}
	for (i = 0; i < file->head.conns; i++)
		for (side = 0; side < 2; side++) {
			if (file->head.conn[i].proc[side] != prog.index)
				continue;
			prog.end[prog.ends] = calloc(1, sizeof(struct end));
			if (!prog.end[prog.ends])
				wrong(NULL, "no memory");
			end_init(prog.end[prog.ends++], i, side);
		}
	run();
	prog_close();
	printf("clean\n");
	return 0;
}
