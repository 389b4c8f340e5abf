// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Terminate (RFC 5040, 4.8, 7): a row per rule that a peer violates, with the error that ends the stream; and which
 * headers of the segment in error the Terminate returns, by error.
 */
#include <errno.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

#define TAGGED   (DDP_TAGGED | DDP_LAST | DDP_VERSION)
#define UNTAGGED (DDP_LAST | DDP_VERSION)
#define RDMAP(o) (RDMAP_VERSION | RDMAP_##o)
#define LENGTH   9000 /* of a payload that is received in parts */

/* An invalid FPDU, and the error in the Terminate that answers it. */
struct bad {
	const char *what;
	u8 ddp, rdmap;
	u32 w[4]; /* tagged: STag, high and low half of the offset; untagged: STag, queue, MSN, offset */
	u32 payload;
	enum iwarp_error answer;
	bool recv; /* a receive of 16 bytes is posted */
	u32 len;   /* of the ULPDU, 0: the correct length */
	bool bad_crc;
};

#define MEM     0xffffffff /* replaced by the address of the memory */
#define RKEY    0xfffffffe
#define RO_RKEY 0xfffffffd

static const struct bad bads[] = {
	{ "a wrong CRC", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_CRC, true, 0, true },
	{ "a ULPDU of one byte", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_LENGTH, true, 1 },
	{ "truncated untagged header", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_LENGTH, true, 10 },
	{ "truncated tagged header", TAGGED, RDMAP(WRITE), { RKEY, 0, MEM }, 4, MPA_ERR_LENGTH, false, 10 },
	{ "DDP version 0", DDP_LAST, RDMAP(SEND), { 0, 0, 1, 0 }, 4, DDP_ERR_U_VERSION, true },
	{ "tagged, version 2", DDP_TAGGED | DDP_LAST | 2, RDMAP(WRITE), { RKEY, 0, MEM }, 4, DDP_ERR_T_VERSION },
	{ "RDMAP version 0", UNTAGGED, RDMAP_SEND, { 0, 0, 1, 0 }, 4, RDMAP_ERR_VERSION, true },
	{ "queue 3", UNTAGGED, RDMAP(SEND), { 0, 3, 1, 0 }, 4, DDP_ERR_U_QN, true },
	{ "a past MSN", UNTAGGED, RDMAP(SEND), { 0, 0, 0, 0 }, 4, DDP_ERR_U_MSN, true },
	{ "a future MSN", UNTAGGED, RDMAP(SEND), { 0, 0, 2, 0 }, 4, DDP_ERR_U_MSN, true },
	{ "MO beyond the bytes received", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 4 }, 4, DDP_ERR_U_MO, true },
	{ "no receive", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 0 }, 4, DDP_ERR_U_NO_BUFFER },
	{ "a message longer than the receive", UNTAGGED, RDMAP(SEND), { 0, 0, 1, 0 }, 20, DDP_ERR_U_TOO_LONG, true },
	{ "SEND on queue 1", UNTAGGED, RDMAP(SEND), { 0, 1, 1, 0 }, 4, RDMAP_ERR_OPCODE, true },
	{ "an untagged WRITE", UNTAGGED, RDMAP(WRITE), { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, true },
	{ "a tagged SEND", TAGGED, RDMAP(SEND), { RKEY, 0, MEM }, 4, RDMAP_ERR_OPCODE },
	{ "opcode 8", UNTAGGED, RDMAP_VERSION | 8, { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, true },
	{ "WRITE to an invalid STag", TAGGED, RDMAP(WRITE), { 0x77777700, 0, MEM }, 4, DDP_ERR_T_STAG },
	{ "a WRITE to a region that is read only", TAGGED, RDMAP(WRITE), { RO_RKEY, 0, MEM }, 4, RDMAP_ERR_ACCESS },
	{ "a WRITE outside the region", TAGGED, RDMAP(WRITE), { RKEY, 0, 16 }, 4, DDP_ERR_T_BOUNDS },
	{ "READ response without a request", TAGGED, RDMAP(READ_RESPONSE), { RKEY, 0, MEM }, 4, RDMAP_ERR_OPCODE },
	{ "READ request of an invalid length", UNTAGGED, RDMAP(READ_REQUEST), { 0, 1, 1, 0 }, 4, DDP_ERR_U_MO },
	{ "READ of an invalid STag", UNTAGGED, RDMAP(READ_REQUEST), { 0, 1, 1, 0 }, 28, RDMAP_ERR_STAG },
	{ "Invalidate of an invalid STag",
	  UNTAGGED,
	  RDMAP(SEND_INV),
	  { 0x77777700, 0, 1, 0 },
	  4,
	  RDMAP_ERR_CANNOT_INVALIDATE,
	  true },
};

static enum siw_counter counter_of(enum iwarp_error err)
{
	if (err == MPA_ERR_CRC)
		return SIW_CTR_CRC;
	if (err == MPA_ERR_LENGTH)
		return SIW_CTR_LENGTH;
	return err >= DDP_ERR_U_QN ? SIW_CTR_DDP_UNTAGGED : err >= DDP_ERR_T_STAG ? SIW_CTR_DDP_TAGGED : SIW_CTR_RDMAP;
}

static u32 bad_word(const struct side *s, u32 v)
{
	return v == RKEY ? s->rkey : v == RO_RKEY ? s->ro_rkey : v;
}

static u32 bad_build(const struct side *s, const struct bad *t, u8 *p)
{
	bool tagged = t->ddp & DDP_TAGGED;
	u32 hdr = tagged ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged);
	u32 ulpdu = t->len ? t->len : hdr - IWARP_LEN_SIZE + t->payload, body = iwarp_fpdu_len(ulpdu) - IWARP_CRC_SIZE,
	    i;
	struct iwarp_ctrl c = { .len = cpu_to_be16((u16)ulpdu), .ddp = t->ddp, .rdmap = t->rdmap };
	__le32 crc;

	memset(p, 1, 128);
	memcpy(p, &c, sizeof(c));
	for (i = 0; i < (tagged ? 3 : 4); i++) {
		__be32 w = cpu_to_be32(bad_word(s, t->w[i]));

		memcpy(p + sizeof(c) + 4 * i, &w, sizeof(w));
	}
	if (tagged && t->w[2] == MEM) {
		__be64 to = cpu_to_be64(at(s, 0));

		memcpy(p + sizeof(c) + 4, &to, sizeof(to));
	}
	crc = iwarp_crc(p, body, true);
	memcpy(p + body, &crc, sizeof(crc));
	p[body] ^= t->bad_crc;
	return body + IWARP_CRC_SIZE;
}

static void test_errors(void)
{
	u8 fpdu[128];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bads); i++) {
		const struct bad *t = &bads[i];
		int fd = open_raw();
		u32 n = bad_build(&a, t, fpdu);
		bool ok;

		if (t->recv)
			post_recv(&a, 0, 16);
		ok = send(fd, fpdu, n, 0) == (ssize_t)n;
		loop_run_idle(loop, 0);
		row(100 + (int)i, t->what,
		    ok && answered(fd, t->answer) && siw_counter(a.hca, counter_of(t->answer)) == 1 &&
			    a.closed == -EPROTO);
		side_close(&a);
		close(fd);
	}
}

static struct iwarp_untagged untagged(u8 ddp, u8 rdmap, u32 qn, u32 payload)
{
	return (struct iwarp_untagged){
		.c = { .len = cpu_to_be16((u16)(sizeof(struct iwarp_untagged) - IWARP_LEN_SIZE + payload)),
		       .ddp = ddp,
		       .rdmap = rdmap },
		.inv_stag = cpu_to_be32(0x77777700),
		.qn = cpu_to_be32(qn),
		.msn = cpu_to_be32(1),
	};
}

static struct iwarp_tagged tagged(u32 stag, u32 payload)
{
	return (struct iwarp_tagged){
		.c = { .len = cpu_to_be16((u16)(sizeof(struct iwarp_tagged) - IWARP_LEN_SIZE + payload)),
		       .ddp = TAGGED,
		       .rdmap = RDMAP(WRITE) },
		.stag = cpu_to_be32(stag),
		.to = cpu_to_be64(at(&a, 0)),
	};
}

/* Sends the FPDU with the @n bytes of headers and payload at @p. */
static void fpdu_send(int fd, const void *p, u32 n)
{
	u8 fpdu[128] = { 0 };
	__le32 crc;

	memcpy(fpdu, p, n);
	crc = iwarp_crc(fpdu, n, true);
	memcpy(fpdu + n, &crc, sizeof(crc));
	(void)!send(fd, fpdu, n + IWARP_CRC_SIZE, 0);
	loop_run_idle(loop, 0);
}

/* The stream ends with a Terminate of @err, HdrCt @headers, and the @n bytes at @p. */
static bool terminated(int fd, enum iwarp_error err, u8 headers, const void *p, u32 n)
{
	u8 got[256];
	ssize_t len = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	const struct iwarp_terminate *t = &iwarp_hdr(got)->terminate;

	return len == (ssize_t)(sizeof(*t) + n + IWARP_CRC_SIZE) &&
	       be16_to_cpu(t->u.c.len) == sizeof(*t) - IWARP_LEN_SIZE + n && t->headers == headers &&
	       (t->layer_type << 8 | t->code) == (int)err && !memcmp(t + 1, p, n);
}

static bool untagged_error(u8 ddp, u8 rdmap, u32 qn, enum iwarp_error err, u8 headers, u32 n)
{
	int fd = open_raw();
	const struct iwarp_read r = { .u = untagged(ddp, rdmap, qn, sizeof(r) - sizeof(r.u)),
				      .source_stag = cpu_to_be32(0x77777700),
				      .size = cpu_to_be32(4) };
	bool ok;

	if (err == RDMAP_ERR_CANNOT_INVALIDATE)
		post_recv(&a, 0, 64);
	fpdu_send(fd, &r, sizeof(r));
	ok = terminated(fd, err, headers, &r, n);
	side_close(&a);
	close(fd);
	return ok;
}

static void test_received(void)
{
	static const struct {
		const char *what;
		u8 ddp, rdmap;
		u32 qn;
		enum iwarp_error err;
		u8 headers;
		u32 n;
	} rows[] = {
		{ "SEND without a receive: length and DDP header", UNTAGGED, RDMAP(SEND), 0, DDP_ERR_U_NO_BUFFER,
		  TERM_LENGTH | TERM_DDP, 20 },
		{ "an STag that cannot be invalidated", UNTAGGED, RDMAP(SEND_INV), 0, RDMAP_ERR_CANNOT_INVALIDATE,
		  TERM_LENGTH | TERM_DDP, 20 },
		{ "READ of an invalid STag: the RDMAP header, too", UNTAGGED, RDMAP(READ_REQUEST), 1, RDMAP_ERR_STAG,
		  TERM_LENGTH | TERM_DDP | TERM_RDMAP, 48 },
		{ "an unknown queue", UNTAGGED, RDMAP(READ_REQUEST), 3, DDP_ERR_U_QN, TERM_LENGTH | TERM_DDP, 20 },
		{ "an unknown opcode: no headers", UNTAGGED, RDMAP_VERSION | 8, 0, RDMAP_ERR_OPCODE },
		{ "an unknown version of RDMAP: no headers", UNTAGGED, RDMAP_SEND, 0, RDMAP_ERR_VERSION },
		{ "an unknown version of DDP: no headers", DDP_LAST, RDMAP(SEND), 0, DDP_ERR_U_VERSION },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		row(1 + (int)i, rows[i].what,
		    untagged_error(rows[i].ddp, rows[i].rdmap, rows[i].qn, rows[i].err, rows[i].headers, rows[i].n));
}

static void test_tagged(void)
{
	int fd = open_raw();
	struct {
		struct iwarp_tagged t;
		u8 payload[4];
	} w = { .t = tagged(0x77777700, 4) };

	fpdu_send(fd, &w, sizeof(w));
	row(20, "WRITE to an invalid STag",
	    terminated(fd, DDP_ERR_T_STAG, TERM_LENGTH | TERM_DDP, &w, sizeof(struct iwarp_tagged)));
	side_close(&a);
	close(fd);
}

/* The error is found when the headers have left the buffer. */
static void test_late(void)
{
	static u8 payload[LENGTH];
	struct iwarp_tagged t;
	int fd;

	terms.crc = false;
	fd = open_raw();
	t = tagged(a.rkey, LENGTH);
	(void)!send(fd, &t, sizeof(t), 0);
	loop_run_idle(loop, 0);
	(void)!send(fd, payload, 400, 0);
	loop_run_idle(loop, 0);
	hca_mr_dereg(a.ctx, a.lkey);
	(void)!send(fd, payload, 400, 0);
	loop_run_idle(loop, 0);
	row(30, "an STag that is invalidated before the rest of a WRITE",
	    terminated(fd, DDP_ERR_T_STAG, TERM_LENGTH | TERM_DDP, &t, sizeof(t)));
	side_close(&a);
	close(fd);
	terms.crc = true;
}

/* The READ request has been received; its response cannot be built. */
static void test_response(void)
{
	int fd = open_raw();
	const struct iwarp_read r = { .u = untagged(UNTAGGED, RDMAP(READ_REQUEST), DDP_QN_READ,
						    sizeof(r) - sizeof(r.u)),
				      .sink_stag = cpu_to_be32(5),
				      .sink_to = cpu_to_be64(1ull << 40),
				      .size = cpu_to_be32(64),
				      .source_stag = cpu_to_be32(a.rkey),
				      .source_to = cpu_to_be64(at(&a, 0)) };
	struct iwarp_read same = r;

	same.u.inv_stag = 0; /* reserved */
	a.qp->pause.send = true;
	fpdu_send(fd, &r, sizeof(r));
	hca_mr_dereg(a.ctx, a.lkey);
	a.qp->pause.send = false;
	siw_kick(a.qp);
	loop_run_idle(loop, 0);
	row(40, "a READ whose source is deregistered before the response",
	    terminated(fd, RDMAP_ERR_STAG, TERM_LENGTH | TERM_DDP | TERM_RDMAP, &same, sizeof(same)));
	side_close(&a);
	close(fd);
}

/* Depths of READs that were negotiated to be 0 (RFC 6581, 9.1). */
static void test_depths(void)
{
	struct hca_cqe c;
	int fd;

	terms.ird = terms.ord = 0;
	row(50, "READ with an IRD of 0",
	    untagged_error(UNTAGGED, RDMAP(READ_REQUEST), DDP_QN_READ, DDP_ERR_U_NO_BUFFER, TERM_LENGTH | TERM_DDP,
			   20));
	fd = open_raw();
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	post(&a, HCA_WR_RDMA_READ, 0, 0, 4, 7, 0);
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	row(51, "READ with an ORD of 0: the SEND before it", next(&a, &c) == HCA_WC_SUCCESS);
	row(52, "the READ is not sent",
	    next(&a, &c) == HCA_WC_LOC_QP_OP_ERR && c.opcode == HCA_WC_RDMA_READ && a.qp->fd.fd < 0);
	row(53, "the SEND after it is flushed", next(&a, &c) == HCA_WC_WR_FLUSH_ERR);
	side_close(&a);
	close(fd);
	terms.ird = terms.ord = 4;
}

int main(void)
{
	loop = loop_create_virtual();
	test_errors();
	test_received();
	test_tagged();
	test_late();
	test_response();
	test_depths();
	loop_destroy(loop);
	return rows_end();
}
