// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of wqe.c: which entries are valid, and their decoded requests. */
#include <errno.h>
#include <string.h>

#include "emu/lib/row.h"
#include "emu/verbs/wqe.h"

static union {
	struct rxe_send_wqe send;
	struct rxe_recv_wqe recv;
	u8 room[4096];
} entry;

static const struct {
	u32 n;
	const char *what;
	enum hca_qp_type type;
	u32 opcode, flags, num_sge, length;
	int want;
} sends[] = {
	{ 1, "send", HCA_QPT_RC, HCA_WR_SEND, HCA_SEND_SIGNALED, 2, 0, 1 },
	{ 2, "as many SGEs as there may be", HCA_QPT_RC, HCA_WR_SEND, 0, 3, 0, 1 },
	{ 3, "one more", HCA_QPT_RC, HCA_WR_SEND, 0, 4, 0, -EINVAL },
	{ 4, "a wild count", HCA_QPT_RC, HCA_WR_SEND, 0, ~0u, 0, -EINVAL },
	{ 5, "inline", HCA_QPT_UC, HCA_WR_RDMA_WRITE, HCA_SEND_INLINE, 0, 64, 1 },
	{ 6, "one byte too many", HCA_QPT_UC, HCA_WR_RDMA_WRITE, HCA_SEND_INLINE, 0, 65, -EINVAL },
	{ 7, "a wild length", HCA_QPT_UC, HCA_WR_RDMA_WRITE, HCA_SEND_INLINE, 0, ~0u, -EINVAL },
	{ 8, "the last opcode", HCA_QPT_RC, HCA_WR_SEND_WITH_INV, 0, 1, 0, 1 },
	{ 9, "beyond it", HCA_QPT_RC, HCA_WR_SEND_WITH_INV + 1, 0, 1, 0, -EINVAL },
	{ 10, "an opcode that would wrap", HCA_QPT_RC, 0x102, 0, 1, 0, -EINVAL },
	{ 11, "atomic write", HCA_QPT_RC, 15, 0, 0, 0, 1 },
	{ 12, "not on UC", HCA_QPT_UC, 15, 0, 0, 0, -EINVAL },
	{ 13, "datagram", HCA_QPT_UD, HCA_WR_SEND, 0, 1, 0, 1 },
	{ 14, "datagram of a special QP", HCA_QPT_GSI, HCA_WR_SEND, 0, 1, 0, 1 },
};

static void test_sends(void)
{
	static struct hca_send_wr wr;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sends); i++) {
		struct wqe_limits limits = { .type = sends[i].type, .max_sge = 3, .max_inline = 64 };

		memset(&entry, 0, sizeof(entry));
		memset(&wr, 0xff, sizeof(wr));
		entry.send.wr.wr_id = i + 100;
		entry.send.wr.opcode = sends[i].opcode;
		entry.send.wr.send_flags = sends[i].flags | 1u << 30;
		entry.send.dma.num_sge = sends[i].num_sge;
		entry.send.dma.length = sends[i].length;
		row(sends[i].n, sends[i].what,
		    wqe_send(&wr, &entry.send, entry.send.dma.inline_data, &limits) == sends[i].want);
		row(sends[i].n, "the token comes in any case", wr.token == i + 100);
		row(sends[i].n, "no flag that there is not", !(wr.flags & ~(HCA_SEND_INLINE | HCA_SEND_SIGNALED)));
	}
}

static void test_fields(void)
{
	static struct hca_send_wr wr;
	struct wqe_limits limits = { .type = HCA_QPT_RC, .max_sge = 3, .max_inline = 64 };
	struct rxe_send_wr *w = &entry.send.wr;

	memset(&entry, 0, sizeof(entry));
	w->opcode = HCA_WR_BIND_MW;
	w->wr.mw.addr = 0x1000;
	w->wr.mw.length = 5;
	w->wr.mw.access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_READ;
	wqe_send(&wr, &entry.send, entry.send.dma.inline_data, &limits);
	row(20, "a window's bounds", wr.bind_addr == 0x1000 && wr.bind_len == 5);
	row(21, "local write has no effect in a window", wr.access == HCA_ACCESS_REMOTE_READ);

	memset(&entry, 0, sizeof(entry));
	w->opcode = 15;
	w->wr.rdma.remote_addr = 0x1004;
	row(22, "an atomic write is aligned",
	    wqe_send(&wr, &entry.send, entry.send.dma.inline_data, &limits) == -EINVAL);

	limits.type = HCA_QPT_UD;
	memset(&entry, 0, sizeof(entry));
	w->opcode = HCA_WR_SEND_WITH_IMM;
	w->ex.imm_data = cpu_to_be32(0x01020304);
	w->wr.ud.remote_qpn = 0xff000005;
	w->wr.ud.pkey_index = 3;
	wqe_send(&wr, &entry.send, entry.send.dma.inline_data, &limits);
	row(23, "a QPN has 24 bits", wr.remote_qpn == 5);
	row(24, "P_Key index and immediate", wr.pkey_index == 3 && wr.imm == 0x01020304);
}

static void test_recvs(void)
{
	static struct hca_recv_wr wr;

	memset(&entry, 0, sizeof(entry));
	entry.recv.wr_id = 7;
	entry.recv.dma.num_sge = 2;
	entry.recv.dma.sge[1] = (struct rxe_sge){ .addr = 1, .length = 2, .lkey = 3 };
	row(30, "a receive", wqe_recv(&wr, &entry.recv, entry.recv.dma.sge, 2) == 1 && wr.num_sge == 2);
	row(31, "its second SGE", wr.sge[1].addr == 1 && wr.sge[1].length == 2 && wr.sge[1].lkey == 3);
	row(32, "one too many", wqe_recv(&wr, &entry.recv, entry.recv.dma.sge, 1) == -EINVAL && wr.token == 7);
}

static void test_completions(void)
{
	struct hca_cqe cqe = { .token = 9, .imm = 0x0a0b0c0d, .flags = HCA_WC_WITH_IMM };

	row(40, "an immediate is the wire's bytes", be32_to_cpu(wqe_completion(&cqe).ex.imm_data) == 0x0a0b0c0d);
	cqe.flags = HCA_WC_WITH_INVALIDATE;
	row(41, "a key is a number", wqe_completion(&cqe).ex.invalidate_rkey == 0x0a0b0c0d);
}

int main(void)
{
	test_sends();
	test_fields();
	test_recvs();
	test_completions();
	return rows_end();
}
