// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-demand paging: regions whose pages come and go while they are registered. Each access is to what the program has
 * at the address then. (The kernel's and libibverbs' words; IBTA has none.)
 */
#include "rules.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define RIGHTS                                                                                              \
	(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define HOLE  (64ul << 20) /* other mappings do not reach its lower end */
#define PAGES 8192ul
#define LEN   64u

/* Addresses without memory. */
static uint8_t *hole_new(void)
{
	uint8_t *at = mmap(NULL, HOLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	munmap(at, HOLE);
	return at;
}

static void pages_map(struct scene *s, uint8_t *at)
{
	EXPECT(s, mmap(at, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

static bool is_zero(const uint8_t *at)
{
	static const uint8_t zeroes[LEN];

	return !memcmp(at, zeroes, LEN);
}

/* A request for @at of the responder, whose status is @status. */
static void transfer(struct scene *s, enum ibv_wr_opcode op, const struct ibv_mr *mr, const uint8_t *at)
{
	unsigned done = s->end[REQ].got_send;

	post_ok(s, REQ, (struct req){ .op = op, .len = LEN, .rkey = mr->rkey, .raddr = (uintptr_t)at });
	EXPECT(s, wait_send(s, REQ, done + 1));
}

static struct ibv_mr *hole_reg(struct scene *s, enum side at, uint8_t *hole)
{
	struct ibv_mr *mr = extra_mr(s, &s->end[at], s->end[at].pd, hole, HOLE, RIGHTS);

	EXPECT(s, mr);
	return mr;
}

static void pages_later(struct scene *s)
{
	uint8_t *hole = hole_new();
	struct ibv_mr *mr = hole_reg(s, RESP, hole);

	pages_map(s, hole);
	transfer(s, IBV_WR_RDMA_WRITE, mr, hole);
	EXPECT(s, !memcmp(hole, region(&s->end[REQ]), LEN));
	munmap(hole, PAGES);
}

/* @arg: the pages were registered before, as other regions are: pinned, or shared with the daemon. */
static void pages_replaced(struct scene *s)
{
	uint8_t *at = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = s->rule->arg ? ibv_reg_mr(b->pd, at, PAGES, RIGHTS & ~IBV_ACCESS_ON_DEMAND) : NULL;

	EXPECT(s, !mr || !ibv_dereg_mr(mr));
	mr = extra_mr(s, b, b->pd, at, PAGES, RIGHTS);
	transfer(s, IBV_WR_RDMA_WRITE, mr, at);
	EXPECT(s, !memcmp(at, region(&s->end[REQ]), LEN));
	pages_map(s, at);
	EXPECT(s, is_zero(at));
	transfer(s, IBV_WR_RDMA_WRITE, mr, at);
	EXPECT(s, !memcmp(at, region(&s->end[REQ]), LEN));
	transfer(s, IBV_WR_RDMA_READ, mr, at);
	EXPECT(s, !memcmp(at, region(&s->end[REQ]) + INBOX, LEN) && !is_zero(at));
	pages_map(s, at);
	transfer(s, IBV_WR_RDMA_READ, mr, at);
	EXPECT(s, is_zero(region(&s->end[REQ]) + INBOX));
	munmap(at, PAGES);
}

static void remote_hole(struct scene *s)
{
	uint8_t *hole = hole_new();

	post_ok(s, REQ,
		(struct req){ .op = (enum ibv_wr_opcode)s->rule->arg,
			      .len = LEN,
			      .rkey = hole_reg(s, RESP, hole)->rkey,
			      .raddr = (uintptr_t)hole });
}

static void local_hole(struct scene *s)
{
	uint8_t *hole = hole_new();
	struct ibv_sge sge = { (uintptr_t)hole, LEN, hole_reg(s, REQ, hole)->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = (enum ibv_wr_opcode)s->rule->arg,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)region(&s->end[RESP]), s->end[RESP].mr->rkey } },
			   *bad;

	EXPECT(s, !ibv_post_send(s->end[REQ].qp, &wr, &bad));
}

static void readonly(struct scene *s)
{
	uint8_t *at = mmap(NULL, PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = extra_mr(s, &s->end[RESP], s->end[RESP].pd, at, PAGES, RIGHTS);

	EXPECT(s, mr);
	transfer(s, IBV_WR_RDMA_READ, mr, at);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = LEN, .rkey = mr->rkey, .raddr = (uintptr_t)at });
}

static void whole_space(struct scene *s)
{
	uint8_t *at = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = extra_mr(s, &s->end[RESP], s->end[RESP].pd, NULL, SIZE_MAX, RIGHTS);
	uint64_t number = 40;

	EXPECT(s, mr);
	transfer(s, IBV_WR_RDMA_WRITE, mr, at);
	EXPECT(s, !memcmp(at, region(&s->end[REQ]), LEN));
	transfer(s, IBV_WR_RDMA_READ, mr, at);
	post_ok(s, REQ,
		(struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD,
			      .len = 8,
			      .rkey = mr->rkey,
			      .raddr = (uintptr_t)&number,
			      .add = 2 });
	EXPECT(s, wait_send(s, REQ, 3) && number == 42);
	munmap(at, PAGES);
}

static void recv_post(struct scene *s, uint8_t *at)
{
	struct ibv_sge sge = { (uintptr_t)at, LEN, hole_reg(s, RESP, at)->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	EXPECT(s, !ibv_post_recv(s->end[RESP].qp, &wr, &bad));
}

static void recv_hole(struct scene *s)
{
	recv_post(s, hole_new());
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = LEN });
}

static void recv_later(struct scene *s)
{
	uint8_t *hole = hole_new();

	recv_post(s, hole);
	pages_map(s, hole);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = LEN });
	EXPECT(s, wait_recv(s, RESP, 1) && !memcmp(hole, region(&s->end[REQ]), LEN));
	munmap(hole, PAGES);
}

static void reg_part_of_space(struct scene *s)
{
	struct ibv_mr *mr = ibv_reg_mr(s->end[REQ].pd, s->rule->arg ? (void *)4096 : NULL,
				       s->rule->arg ? SIZE_MAX - 4096 : SIZE_MAX, (int)s->rule->arg2);

	EXPECT(s, !mr && errno == EINVAL);
	if (mr)
		ibv_dereg_mr(mr);
}

/* ibv_advise_mr() as newer rdma-cores have it for rxe: 0 or errno. */
static int advise(struct scene *s, unsigned advice, unsigned flags, uint32_t lkey, const uint8_t *at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)at, len, lkey };
	const struct ibv_pd *pd = s->end[REQ].pd;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[4];
	} c = {
		.hdr = { .length = sizeof(c),
			 .object_id = UVERBS_OBJECT_MR,
			 .method_id = UVERBS_METHOD_ADVISE_MR,
			 .num_attrs = 4 },
		.attr = { { .attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE, .data = pd->handle },
			  { .attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE, .len = 8, .data = advice },
			  { .attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS, .len = 4, .data = flags },
			  { .attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST, .len = sizeof(sge), .data = (uintptr_t)&sge } },
	};

	return ioctl(pd->context->cmd_fd, RDMA_VERBS_IOCTL, &c) ? errno : 0;
}

static void prefetch(struct scene *s)
{
	const unsigned plain = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, write = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		       no_fault = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush = IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	uint8_t *hole = hole_new(), *readonly;
	uint32_t key = hole_reg(s, REQ, hole)->lkey;
	unsigned char there[2];

	pages_map(s, hole);
	readonly = mmap(hole + PAGES, PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT(s, !advise(s, write, flush, key, hole, PAGES) && !mincore(hole, PAGES, there) && there[0] && there[1]);
	EXPECT(s,
	       !advise(s, plain, flush, key, readonly, PAGES) && advise(s, write, flush, key, readonly, 1) == EFAULT);
	EXPECT(s, !advise(s, plain, 0, key, hole + 2 * PAGES, 1)); /* nobody waits for it */
	EXPECT(s, advise(s, plain, flush, key, hole + 2 * PAGES, 1) == EFAULT);
	EXPECT(s, !advise(s, no_fault, flush, key, hole + 2 * PAGES, 1));
	EXPECT(s,
	       advise(s, plain, flush, key, hole - 1, 2) == EFAULT && advise(s, plain, flush, ~key, hole, 1) == EFAULT);
	EXPECT(s, advise(s, plain, flush, s->end[REQ].mr->lkey, region(&s->end[REQ]), 1) == EFAULT);
	EXPECT(s,
	       advise(s, plain, 2, key, hole, 1) == EINVAL && advise(s, no_fault + 1, 0, key, hole, 1) == EOPNOTSUPP);
	munmap(hole, 2 * PAGES);
}

#define REG  "ibv_reg_mr(3): IBV_ACCESS_ON_DEMAND"
#define LOST .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_FATAL) }

static const struct rule rules[] = {
	{ "memory may be mapped after its registration", REG, .action = pages_later, .data_any = true, .req = { OK } },
	{ "pages may be replaced", REG, .action = pages_replaced, .data_any = true, .req = { OK, OK, OK, OK } },
	{ "pages that were in a pinned region may be replaced", REG, .action = pages_replaced, .arg = 1,
	  .data_any = true, .req = { OK, OK, OK, OK } },
	{ "an RDMA WRITE to a page that is not there is a remote operation error", "9.7.5.2: remote operational error",
	  .action = remote_hole, .arg = IBV_WR_RDMA_WRITE, .req = { ST(REM_OP_ERR) }, LOST },
	{ "an RDMA READ of a page that is not there is a remote operation error", "9.7.5.2: remote operational error",
	  .action = remote_hole, .arg = IBV_WR_RDMA_READ, .req = { ST(REM_OP_ERR) }, LOST },
	{ "an RDMA WRITE to a page that is read-only is a remote operation error", "9.7.5.2: remote operational error",
	  .action = readonly, .data_any = true, .req = { OK, ST(REM_OP_ERR) }, LOST },
	{ "a payload that is not there is a local protection error", "11.6.2: local protection error",
	  .action = local_hole, .arg = IBV_WR_RDMA_WRITE, .req = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "an RDMA READ into a page that is not there is a local protection error", "11.6.2: local protection error",
	  .action = local_hole, .arg = IBV_WR_RDMA_READ, .req = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "a receive into a page that is not there is a local protection error", "11.6.2: local protection error",
	  .action = recv_hole, .req = { ST(REM_OP_ERR) }, .resp = { ST(LOC_PROT_ERR) }, LOST },
	{ "a region may have the whole address space", REG, .action = whole_space, .data_any = true,
	  .req = { OK, OK, OK } },
	{ "a receive may be posted before its memory is mapped", REG, .action = recv_later, .data_any = true,
	  .req = { OK }, .resp = { OK } },
	{ "pages are prefetched", "ibv_advise_mr(3)", .action = prefetch },
	{ "a region of the whole address space without on-demand paging is not registered", "11.2.8.2: invalid length",
	  .bare = true, .action = reg_part_of_space, .arg2 = IBV_ACCESS_LOCAL_WRITE },
	{ "a region of nearly the whole address space is not registered", "11.2.8.2: invalid length", .bare = true,
	  .action = reg_part_of_space, .arg = 1, .arg2 = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND },
};

void paging_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rules); i++)
		rule_add(rules[i], "%s", rules[i].name);
}
