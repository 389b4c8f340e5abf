// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Streams with io_uring: the same results, and fallback to plain system calls if it is not permitted or fails. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

static const struct mpa_terms plain = { .initiator = true, .ird = 4, .ord = 4 };

/* May this process create an io_uring? Sandboxes of containers often forbid it. */
static bool permitted(void)
{
	struct io_uring u;

	if (io_uring_queue_init(4, &u, IORING_SETUP_R_DISABLED))
		return false;
	io_uring_queue_exit(&u);
	return true;
}

static void open_pair(enum siw_uring uring)
{
	options = siw_options_default;
	options.uring = uring;
	terms = plain;
	open_both();
	pattern(a.mem, SIZE);
}

/* Posts WRITEs, READs and SENDs in both directions. */
static u32 work(void)
{
	struct hca_cqe c;
	u32 i, ok = 0;

	for (i = 0; i < 8; i++) {
		memset(b.mem, 0, SIZE);
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, b.rkey, at(&b, 0));
		post(&b, HCA_WR_RDMA_WRITE, 0, 0, 100, a.rkey, at(&a, 0));
		ok += next(&a, &c) == 0 && next(&b, &c) == 0 && !memcmp(a.mem + 100, b.mem + 100, SIZE - 100);
		pattern(a.mem, SIZE);
		post_recv(&b, 0, SIZE);
		post(&a, HCA_WR_SEND, 0, 0, 50000 + i, 0, 0);
		ok += next(&a, &c) == 0 && next(&b, &c) == 0 && c.byte_len == 50000 + i;
		ok += !memcmp(a.mem, b.mem, 50000 + i);
		post(&b, HCA_WR_RDMA_READ, 0, SIZE / 2, 200000, a.rkey, at(&a, 0));
		ok += next(&b, &c) == 0 && !memcmp(a.mem, b.mem + SIZE / 2, 200000);
	}
	return ok;
}

static u64 calls(void)
{
	return siw_counter(a.hca, SIW_CTR_URING) + siw_counter(b.hca, SIW_CTR_URING);
}

static void test_ways(void)
{
	open_pair(SIW_URING_ON);
	row(10, "messages by io_uring", work() == 32);
	row(11, "io_uring is used where it is permitted", permitted() == (calls() > 0));
	close_both();
	open_pair(SIW_URING_AUTO);
	row(12, "io_uring for more than one stream only", work() == 32);
	close_both();
	open_pair(SIW_URING_OFF);
	row(13, "io_uring off", work() == 32 && !calls());
	close_both();
}

static void test_refused(void)
{
	struct rlimit was, none;
	struct siw *siw;

	getrlimit(RLIMIT_NOFILE, &was);
	open_pair(SIW_URING_OFF);
	none = was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	options.uring = SIW_URING_ON;
	siw_set_options(a.hca, &options);
	siw_set_options(b.hca, &options);
	setrlimit(RLIMIT_NOFILE, &was);
	siw = hca_transport_data(a.hca);
	row(20, "io_uring is not permitted: plain calls", !siw->uring && work() == 32 && !calls());
	close_both();
}

/* Replaces the descriptors of the rings by others. */
static u32 break_rings(void)
{
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[64], name[64] = "";
	u32 n = 0;

	for (fd = 0; fd < 64; fd++) {
		memset(name, 0, sizeof(name));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "io_uring") && dup2(null, fd) == fd)
			n++;
	}
	close(null);
	return n;
}

static void test_broken(void)
{
	const struct siw *siw;
	u64 before;
	u32 n;

	open_pair(SIW_URING_ON);
	row(30, "io_uring before its failure", work() == 32);
	before = calls();
	n = break_rings();
	row(31, "io_uring fails", n == (permitted() ? 2 : 0));
	siw = hca_transport_data(a.hca);
	row(32, "plain calls after a failure of io_uring", work() == 32 && !siw->uring && calls() <= before + 2);
	close_both();
}

static void test_ends(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };
	struct hca_cqe c;

	open_pair(SIW_URING_ON);
	post_recv(&b, 0, 64);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, b.rkey, at(&b, 0));
	hca_qp_modify(a.ctx, a.qpn, &attr, HCA_QP_STATE);
	row(40, "the queue pair enters ERR with operations queued", next(&a, &c) == HCA_WC_WR_FLUSH_ERR);
	row(41, "its peer's stream is closed", next(&b, &c) == HCA_WC_WR_FLUSH_ERR && b.closed <= 0);
	close_both();
	open_pair(SIW_URING_ON);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, b.rkey, at(&b, 0));
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, SIZE, a.rkey ^ 0x5500, at(&a, 0));
	row(42, "Terminate between streams of io_uring",
	    next(&b, &c) >= 0 && a.closed == -EPROTO && siw_counter(b.hca, SIW_CTR_TERMINATE_RECEIVED) == 1);
	close_both();
}

/* A receive is queued for the payload of a WRITE through a window, with a LOCAL_INV of the window behind it. */
static void test_revoked(void)
{
	enum {
		HERE = 100,
		LEN = 20000
	};
	static const u8 ones[LEN + 8] = { [0 ... LEN + 7] = 1 };
	struct hca_send_wr bind = { .opcode = HCA_WR_BIND_MW, .access = HCA_ACCESS_REMOTE_WRITE, .bind_len = LEN },
			   inv = { .opcode = HCA_WR_LOCAL_INV };
	struct iwarp_tagged t = { .c = { .len = cpu_to_be16(sizeof(t) - IWARP_LEN_SIZE + LEN),
					 .ddp = DDP_TAGGED | DDP_VERSION | DDP_LAST,
					 .rdmap = RDMAP_VERSION | RDMAP_WRITE } };
	struct hca_cqe c;
	u32 rkey;
	int fd;

	options = siw_options_default;
	options.uring = SIW_URING_ON;
	terms = plain;
	fd = open_raw();
	bind.bind_addr = at(&a, 0);
	hca_mr_reg(a.ctx, a.pdn, at(&a, 0), at(&a, 0), LEN, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND, &bind.mr_lkey,
		   &rkey);
	hca_mw_alloc(a.ctx, a.pdn, 2, &bind.mw_rkey);
	bind.reg_key = (bind.mw_rkey & ~0xffu) | (u8)(bind.mw_rkey + 1);
	hca_soft_post_send(a.wq, &bind);
	inv.rkey = bind.reg_key;
	row(50, "a window", next(&a, &c) == 0);
	t.stag = cpu_to_be32(inv.rkey);
	t.to = cpu_to_be64(at(&a, 0));
	row(51, "the first bytes of a WRITE",
	    send(fd, &t, sizeof(t), 0) == sizeof(t) && send(fd, ones, HERE, 0) == HERE && next(&a, &c) < 0 &&
		    a.mem[HERE - 1] == 1);
	row(52, "the rest", send(fd, ones, LEN + 4 - HERE, 0) == LEN + 4 - HERE);
	if (a.qp->siw->uring)
		siw_uring_queue_op(a.qp, false);
	hca_soft_post_send(a.wq, &inv);
	row(53, "the window is invalidated", next(&a, &c) == 0 && c.opcode == HCA_WC_LOCAL_INV);
	row(54, "no data are placed after that", !a.mem[HERE] && !a.mem[LEN - 1]);
	row(55, "the peer gets a Terminate", answered(fd, DDP_ERR_T_STAG) && a.closed == -EPROTO);
	side_close(&a);
	close(fd);
}

/* A CQ whose program polls: it writes to its memory as soon as LOCAL_INV completes. */
static u8 *reused;
static u32 reused_len;

static int polled_complete(void *fe, const struct hca_cqe *cqe)
{
	if (cqe->opcode == HCA_WC_LOCAL_INV && !cqe->status)
		memset(reused, 0xee, reused_len);
	return 0;
}

static const struct hca_cq_ops polled_ops = { .complete = polled_complete };

/* A send is queued for the response to a READ of a region, with a LOCAL_INV of the region by another queue pair. */
static void test_revoked_response(void)
{
	enum {
		LEN = 20480
	};
	static u8 got[LEN + 64];
	struct iwarp_read r = { .u = { .c = { .len = cpu_to_be16(sizeof(r) - IWARP_LEN_SIZE),
					      .ddp = DDP_VERSION | DDP_LAST,
					      .rdmap = RDMAP_VERSION | RDMAP_READ_REQUEST },
				       .qn = cpu_to_be32(DDP_QN_READ),
				       .msn = cpu_to_be32(1) },
				.size = cpu_to_be32(LEN) };
	struct hca_qp_init init = { .type = HCA_QPT_RC, .max_send_wr = 8, .max_send_sge = 1, .sq_sig_all = true };
	struct hca_send_wr reg = { .opcode = HCA_WR_REG_MR,
				   .access = HCA_ACCESS_REMOTE_READ,
				   .bind_len = LEN,
				   .npages = LEN / 4096,
				   .page_shift = 12 },
			   inv = { .opcode = HCA_WR_LOCAL_INV };
	static const u8 no_crc[IWARP_CRC_SIZE];
	u64 pages[LEN / 4096];
	struct hca_soft_wq *wq;
	struct hca_cqe c;
	u32 cqn, i;
	int fd, fds[2];
	ssize_t n;

	options = siw_options_default;
	options.uring = SIW_URING_ON;
	terms = plain;
	fd = open_raw();
	reg.bind_addr = (at(&a, 0) | 4095) + 1;
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = reg.bind_addr + 4096 * i;
	reg.pages = pages;
	hca_mr_alloc(a.ctx, a.pdn, reg.npages, &reg.reg_key);
	hca_soft_post_send(a.wq, &reg);
	row(60, "a region", next(&a, &c) == 0);
	reused = (u8 *)(uintptr_t)reg.bind_addr;
	reused_len = LEN;
	memset(reused, 1, LEN);

	hca_cq_create(a.ctx, &polled_ops, NULL, &cqn);
	init.pdn = a.pdn;
	init.send_cqn = init.recv_cqn = cqn;
	hca_soft_qp_create(a.ctx, &init, &wq);
	i = a.qpn;
	a.qpn = hca_soft_wq_number(wq);
	to_rts(&a);
	pair(fds);
	siw_qp_attach(a.hca, a.qpn, fds[0], &plain, NULL, 0, on_closed, &a);
	a.qpn = i;
	loop_run_idle(loop, 0);

	r.source_stag = cpu_to_be32(reg.reg_key);
	r.source_to = cpu_to_be64(reg.bind_addr);
	row(61, "a READ request",
	    send(fd, &r, sizeof(r), 0) == sizeof(r) && send(fd, no_crc, sizeof(no_crc), 0) == sizeof(no_crc));
	siw_input_run(a.qp);
	inv.rkey = reg.reg_key;
	hca_soft_post_send(wq, &inv);
	loop_run_idle(loop, 0);
	row(62, "the region is invalidated", reused[0] == 0xee);
	n = recv(fd, got, sizeof(got), MSG_DONTWAIT | MSG_PEEK);
	/* Single bytes of that value may be in the Terminate: of the address, or the key. */
	row(63, "no data are sent that were written after that", n > 0 && !memmem(got, (size_t)n, reused, 16));
	row(64, "the peer gets a Terminate", answered(fd, RDMAP_ERR_STAG) && a.closed == -EPROTO);
	hca_soft_wq_destroy(wq);
	side_close(&a);
	close(fd);
	close(fds[1]);
}

int main(void)
{
	loop = loop_create_virtual();
	test_ways();
	test_refused();
	test_broken();
	test_ends();
	test_revoked();
	test_revoked_response();
	loop_destroy(loop);
	return rows_end();
}
