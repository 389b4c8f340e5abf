// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of umad.c: ioctls, records both ways, timeouts, large messages, slow readers, IsSM. */
#include "emu/host/umad.h"

#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed_fixture.h"
#include "emu/mad/fixture.h"

#define CLASS MAD_CLASS_SUBN_ADM
#define HDR   64

struct record {
	struct ib_user_mad_hdr hdr;
	u8 mad[70000];
};
static struct record rec;

struct app {
	struct umad_port *port;
	struct umad_file *file;
	int fd;
};

/* Its records have the header without the P_Key index. */
static void app_open_old(struct cable *c, struct app *a)
{
	a->port = umad_port_create(c->loop, c->ma);
	if (umad_file_open(a->port, &a->file, &a->fd))
		abort();
	fcntl(a->fd, F_SETFL, O_NONBLOCK);
}

static void app_open(struct cable *c, struct app *a)
{
	app_open_old(c, a);
	umad_file_ioctl(a->file, IB_USER_MAD_ENABLE_PKEY, NULL, 0);
}

static bool app_close(struct app *a, bool ok)
{
	umad_file_close(a->file);
	umad_port_destroy(a->port);
	close(a->fd);
	return ok;
}

static int app_register(struct app *a, u8 qpn, u8 class, u8 version, u8 rmpp, u32 *id)
{
	struct ib_user_mad_reg_req req = {
		.qpn = qpn,
		.mgmt_class = class,
		.mgmt_class_version = version,
		.rmpp_version = rmpp,
		.oui = { 0, 0x14, 5 },
	};
	int r;

	req.method_mask[0] = 0x40006;
	r = umad_file_ioctl(a->file, IB_USER_MAD_REGISTER_AGENT, &req, sizeof(req));
	*id = req.id;
	return r;
}

static bool app_write(struct app *a, u32 id, const u8 *mad, u32 len, u32 timeout, u32 retries)
{
	static struct record out;

	memset(&out, 0, HDR);
	out.hdr.id = id;
	out.hdr.timeout_ms = timeout;
	out.hdr.retries = retries;
	out.hdr.qpn = cpu_to_be32(wire_mad_is_smp_class(mad[1]) ? 0 : 1);
	out.hdr.lid = cpu_to_be16(2);
	memcpy(out.mad, mad, len);
	return write(a->fd, &out, HDR + len) == (ssize_t)(HDR + len);
}

static ssize_t app_read(struct app *a)
{
	memset(&rec, 0, sizeof(rec));
	return read(a->fd, &rec, sizeof(rec));
}

static u32 bad_writes(const struct app *a)
{
	return umad_port_counter(a->port, UMAD_CTR_BAD_WRITES);
}

/* ---- ioctls ---- */

static bool ioctls(struct cable *c)
{
	struct ib_user_mad_reg_req req = { 0 };
	struct app a;
	u32 id, other, i;

	app_open(c, &a);
	CHECK(umad_file_ioctl(a.file, 0x12345678, NULL, 0) == -ENOTTY);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_REGISTER_AGENT, &req, 10) == -EFAULT);
	CHECK(app_register(&a, 1, CLASS, 2, 1, &id) == 0 && id == 0);
	CHECK(app_register(&a, 1, CLASS, 2, 1, &other) == -EINVAL);
	CHECK(app_register(&a, 2, CLASS, 2, 1, &other) == -EINVAL);
	CHECK(app_register(&a, 1, 0, 0, 0, &other) == 0 && other == 1);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_ENABLE_PKEY, NULL, 0) == -EINVAL);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_UNREGISTER_AGENT, &id, 4) == 0);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_UNREGISTER_AGENT, &id, 4) == -EINVAL);
	id = 32;
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_UNREGISTER_AGENT, &id, 4) == -EINVAL);
	CHECK(app_register(&a, 1, CLASS, 2, 1, &id) == 0 && id == 0);
	for (i = 2; i < 32; i++)
		CHECK(app_register(&a, 1, 0, 0, 0, &id) == 0 && id == i);
	CHECK(app_register(&a, 1, 0, 0, 0, &id) == -ENOMEM);
	return app_close(&a, true);
}

#define RMPP IB_USER_MAD_USER_RMPP
static const struct {
	const char *name;
	struct ib_user_mad_reg_req2 req;
	int result;
	u32 flags; /* afterwards */
} reg2_rows[] = {
	{ "send only", { .qpn = 1 }, 0, 0 },
	{ "SA with RMPP", { .qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 2, .rmpp_version = 1 }, 0, 0 },
	{ "SA with its own RMPP",
	  { .qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 2, .rmpp_version = 1, .flags = RMPP },
	  0,
	  RMPP },
	{ "its own RMPP of version 2",
	  { .qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 2, .rmpp_version = 2, .flags = RMPP },
	  -EINVAL,
	  RMPP },
	{ "its own RMPP in a class without",
	  { .qpn = 1, .mgmt_class = 4, .mgmt_class_version = 1, .rmpp_version = 1, .flags = RMPP },
	  -EINVAL,
	  RMPP },
	{ "an unknown flag", { .qpn = 1, .flags = RMPP << 1 }, -EINVAL, IB_USER_MAD_REG_FLAGS_CAP },
	{ "no such QP", { .qpn = 0x101 }, -EINVAL, 0 },
	{ "vendor", { .qpn = 1, .mgmt_class = 0x32, .mgmt_class_version = 1, .oui = 0x1405 }, 0, 0 },
	{ "vendor without OUI", { .qpn = 1, .mgmt_class = 0x32, .mgmt_class_version = 1 }, -EINVAL, 0 },
	{ "OUI of 25 bits", { .qpn = 1, .mgmt_class = 0x32, .mgmt_class_version = 1, .oui = 0x1001405 }, -EINVAL, 0 },
};

static bool ioctl_register2(struct cable *c)
{
	struct ib_user_mad_reg_req2 req;
	bool ok = true;
	struct app a;
	u32 i;
	int r;

	app_open(c, &a);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req) - 1) == -EFAULT);
	for (i = 0; i < ARRAY_SIZE(reg2_rows); i++) {
		req = reg2_rows[i].req;
		req.id = 77;
		r = umad_file_ioctl(a.file, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req));
		if (r != reg2_rows[i].result || req.flags != reg2_rows[i].flags || req.id != (r ? 77 : 0)) {
			printf("registration %u (%s): %d, flags %u, id %u\n", i + 1, reg2_rows[i].name, r, req.flags,
			       req.id);
			ok = false;
		}
		if (!r)
			umad_file_ioctl(a.file, IB_USER_MAD_UNREGISTER_AGENT, &req.id, sizeof(req.id));
	}
	return app_close(&a, ok);
}

/* ---- records ---- */

static bool request_and_response(struct cable *c)
{
	struct seen server = { .then = seen_answer };
	u8 mad[MAD_SIZE];
	struct app a;
	u32 id;

	app_open(c, &a);
	seen_register(c->mb, &server, 4, 1, 0);
	app_register(&a, 1, 4, 1, 0, &id);
	mad_fill(mad, 4, 1, 1, 0x12, 0x777);
	CHECK(app_write(&a, id, mad, MAD_SIZE, 100, 2));
	cable_run(c, 1);
	CHECK(server.recvs == 1 && app_read(&a) == HDR + MAD_SIZE);
	CHECK(rec.hdr.id == id && rec.hdr.status == 0 && rec.hdr.length == HDR + MAD_SIZE);
	CHECK(be32_to_cpu(rec.hdr.qpn) == 1 && be16_to_cpu(rec.hdr.lid) == 2 && !rec.hdr.grh_present);
	CHECK(rec.mad[3] == 0x81 && rec.mad[100] == 42 && (u32)wire_get(rec.mad, MAD_TID) == 0x777);
	cable_run(c, 1000);
	CHECK(app_read(&a) == -1 && errno == EAGAIN);
	free(server.data);
	return app_close(&a, true);
}

static bool timeout_record(struct cable *c)
{
	u8 mad[MAD_SIZE];
	struct app a;
	u32 id;

	app_open(c, &a);
	app_register(&a, 1, 4, 1, 0, &id);
	mad_fill(mad, 4, 1, MAD_METHOD_REPORT, 0x12, 0x777);
	CHECK(app_write(&a, id, mad, MAD_SIZE, 100, 2));
	cable_run(c, 290);
	CHECK(app_read(&a) == -1 && errno == EAGAIN);
	cable_run(c, 20);
	CHECK(app_read(&a) == HDR + 24 && rec.hdr.status == ETIMEDOUT && rec.hdr.id == id);
	CHECK(rec.hdr.timeout_ms == 100 && be16_to_cpu(rec.hdr.lid) == 2);
	CHECK(rec.mad[3] == MAD_METHOD_REPORT && (u32)wire_get(rec.mad, MAD_TID) == 0x777);
	CHECK(umad_port_counter(a.port, UMAD_CTR_TIMEOUTS) == 1);
	return app_close(&a, true);
}

static bool refused_writes(struct cable *c)
{
	u8 mad[MAD_SIZE + 1] = { 0 };
	struct app a;
	u32 id, n = 0;

	app_open(c, &a);
	app_register(&a, 1, 4, 1, 0, &id);
	mad_fill(mad, 4, 1, MAD_METHOD_REPORT, 0x12, 0x777);
	app_write(&a, id, mad, 35, 0, 0); /* too short */
	cable_run(c, 1);
	CHECK(bad_writes(&a) == ++n);
	CHECK(write(a.fd, mad, 0) == 0); /* an empty record is not the end of the file */
	cable_run(c, 1);
	n = bad_writes(&a);
	app_write(&a, 5, mad, MAD_SIZE, 0, 0); /* no such agent */
	cable_run(c, 1);
	CHECK(bad_writes(&a) == ++n);
	app_write(&a, 99, mad, MAD_SIZE, 0, 0);
	cable_run(c, 1);
	CHECK(bad_writes(&a) == ++n);
	app_write(&a, id, mad, MAD_SIZE + 1, 0, 0); /* too long without RMPP */
	cable_run(c, 1);
	CHECK(bad_writes(&a) == ++n && c->a.sent == 0);
	app_write(&a, id, mad, MAD_SIZE, 1000, 0);
	app_write(&a, id, mad, MAD_SIZE, 1000, 0); /* a duplicate TID */
	cable_run(c, 1);
	CHECK(bad_writes(&a) == ++n && c->a.sent == 1);
	return app_close(&a, true);
}

static bool unsolicited(struct cable *c)
{
	struct seen sender = { 0 };
	struct mad_addr to = TO_LID(1);
	u8 mad[MAD_SIZE];
	struct app a;
	u32 id, other;

	app_open(c, &a);
	seen_register(c->mb, &sender, 4, 1, 0);
	app_register(&a, 1, 0, 0, 0, &other);
	app_register(&a, 1, 4, 1, 0, &id);
	mad_fill(mad, 4, 1, 1, 0x12, 0x777);
	to.grh = true;
	to.gid = c->a.port.attr.gid[0];
	to.flow_label = 0x54321;
	mad_send(sender.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	cable_run(c, 1);
	CHECK(app_read(&a) == HDR + MAD_SIZE && rec.hdr.id == id && id == 1);
	CHECK(rec.hdr.grh_present && be32_to_cpu(rec.hdr.flow_label) == 0x54321 && rec.hdr.hop_limit == 0xff);
	CHECK(memcmp(rec.hdr.gid, c->b.port.attr.gid[0].raw, 16) == 0);
	return app_close(&a, true);
}

static bool old_header(struct cable *c)
{
	struct ib_user_mad_reg_req2 later = { .qpn = 1 };
	struct ib_user_mad_hdr_old *old;
	struct seen server = { .then = seen_answer };
	u8 buf[56 + MAD_SIZE] = { 0 };
	struct app a;
	u32 id;

	app_open_old(c, &a);
	seen_register(c->mb, &server, 4, 1, 0);
	app_register(&a, 1, 4, 1, 0, &id);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_REGISTER_AGENT2, &later, sizeof(later)) == 0);
	mad_fill(buf + 56, 4, 1, 1, 0x12, 0x777);
	old = (void *)buf;
	old->qpn = cpu_to_be32(1);
	old->lid = cpu_to_be16(2);
	old->timeout_ms = 100;
	CHECK(write(a.fd, buf, sizeof(buf)) == sizeof(buf));
	cable_run(c, 1);
	CHECK(app_read(&a) == 56 + MAD_SIZE);
	old = (void *)&rec;
	CHECK(old->length == 56 + MAD_SIZE && ((u8 *)&rec)[56 + 3] == 0x81);
	free(server.data);
	return app_close(&a, true);
}

/* ---- RMPP ---- */

static u32 table_len;

static void answer_table(struct seen *s)
{
	u8 *m = calloc(1, 56 + table_len);
	u32 i;

	memcpy(m, s->mad, 56);
	m[3] |= 0x80;
	wire_set(m, RMPP_VERSION, 1);
	wire_set(m, RMPP_TYPE, RMPP_TYPE_DATA);
	wire_set(m, RMPP_FLAGS, RMPP_FLAG_ACTIVE);
	for (i = 0; i < table_len; i++)
		m[56 + i] = i * 3;
	mad_send(s->agent, m, 56 + table_len, &s->from, 0, 3, NULL);
	free(m);
}

static bool get_table(struct cable *c, struct app *a, struct seen *server, u32 len)
{
	u8 mad[MAD_SIZE];
	u32 id;

	app_open(c, a);
	server->then = answer_table;
	table_len = len;
	seen_register(c->mb, server, CLASS, 2, 1);
	app_register(a, 1, CLASS, 2, 1, &id);
	mad_fill(mad, CLASS, 2, 0x12, 0x11, 9);
	if (!app_write(a, id, mad, MAD_SIZE, 1000, 0))
		return false;
	cable_run(c, 1);
	return true;
}

/* An agent with its own RMPP, the first of a file: the header has the P_Key index, and each segment is a record. */
static bool segments_by_register2(struct cable *c)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 2, .rmpp_version = 1, .flags = RMPP
	};
	struct seen server = { .then = answer_table };
	u8 mad[MAD_SIZE];
	struct app a;
	u32 i;

	app_open_old(c, &a);
	table_len = 300; /* of two segments */
	seen_register(c->mb, &server, CLASS, 2, 1);
	CHECK(umad_file_ioctl(a.file, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req)) == 0);
	mad_fill(mad, CLASS, 2, 0x12, 0x11, 9);
	CHECK(app_write(&a, req.id, mad, MAD_SIZE, 1000, 0));
	cable_run(c, 1);
	for (i = 1; i <= 2; i++) {
		CHECK(app_read(&a) == HDR + MAD_SIZE && rec.hdr.length == HDR + MAD_SIZE);
		CHECK(wire_get(rec.mad, RMPP_TYPE) == RMPP_TYPE_DATA && wire_get(rec.mad, RMPP_DATA1) == i);
		memcpy(mad, rec.mad, sizeof(mad));
		wire_set(mad, MAD_METHOD, wire_get(mad, MAD_METHOD) ^ 0x80); /* to the sender, 13.6.2 */
		wire_set(mad, RMPP_TYPE, RMPP_TYPE_ACK);
		wire_set(mad, RMPP_FLAGS, RMPP_FLAG_ACTIVE);
		wire_set(mad, RMPP_NEW_WINDOW, 1 + i);
		CHECK(app_write(&a, req.id, mad, MAD_SIZE, 0, 0)); /* two under one TID are no duplicates */
		cable_run(c, 1);
	}
	CHECK(app_read(&a) == -1 && errno == EAGAIN && bad_writes(&a) == 0);
	free(server.data);
	return app_close(&a, true);
}

static bool table(struct cable *c)
{
	struct seen server = { 0 };
	struct app a;
	u32 i;

	CHECK(get_table(c, &a, &server, 30000));
	CHECK(app_read(&a) == HDR + 56 + 30000 && rec.hdr.length == HDR + 56 + 30000);
	for (i = 0; i < 30000; i++)
		CHECK(rec.mad[56 + i] == (u8)(i * 3));
	free(server.data);
	return app_close(&a, true);
}

static bool large_table_by_memfd(struct cable *c)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &rec, .iov_len = sizeof(rec) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct seen server = { 0 };
	struct app a;
	u8 last;
	int fd;

	CHECK(get_table(c, &a, &server, 500000));
	CHECK(recvmsg(a.fd, &msg, 0) == HDR + 256 && CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	CHECK(rec.hdr.length == HDR + 56 + 500000);
	CHECK(lseek(fd, 0, SEEK_END) == HDR + 56 + 500000);
	CHECK(pread(fd, &last, 1, HDR + 56 + 499999) == 1 && last == (u8)(499999 * 3));
	close(fd);
	free(server.data);
	return app_close(&a, true);
}

static bool slow_reader(struct cable *c)
{
	struct seen sender = { 0 };
	struct mad_addr to = TO_LID(1);
	u8 mad[MAD_SIZE];
	struct app a;
	u32 id, i;

	app_open(c, &a);
	seen_register(c->mb, &sender, 4, 1, 0);
	app_register(&a, 1, 4, 1, 0, &id);
	for (i = 0; i < 5000; i++) {
		mad_fill(mad, 4, 1, 1, 0x12, i);
		mad_send(sender.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	}
	cable_run(c, 1);
	for (i = 0; i < 5000; i++) {
		if (app_read(&a) < 0) {
			CHECK(errno == EAGAIN);
			cable_run(c, 1);
			CHECK(app_read(&a) == HDR + MAD_SIZE);
		}
		CHECK((u32)wire_get(rec.mad, MAD_TID) == i);
	}
	CHECK(umad_port_counter(a.port, UMAD_CTR_RECORDS) == 5000);
	return app_close(&a, true);
}

static bool application_goes(struct cable *c)
{
	u8 mad[MAD_SIZE];
	struct app a;
	u32 id;

	app_open(c, &a);
	app_register(&a, 1, 4, 1, 0, &id);
	mad_fill(mad, 4, 1, MAD_METHOD_REPORT, 0x12, 0x777);
	app_write(&a, id, mad, MAD_SIZE, 100, 2);
	close(a.fd);
	a.fd = -1;
	cable_run(c, 1000);
	CHECK(umad_port_counter(a.port, UMAD_CTR_DROPPED) == 1);
	return app_close(&a, true);
}

/* A sender without responses blocks at the limit; each of its requests is reported in the end. */
static bool many_requests(struct cable *c)
{
	u32 id, i, told = 0;
	u8 mad[MAD_SIZE];
	struct app a;

	app_open(c, &a);
	app_register(&a, 1, 4, 1, 0, &id);
	for (i = 0; i < 6000; i++) {
		mad_fill(mad, 4, 1, MAD_METHOD_REPORT, 0x12, i);
		if (!app_write(&a, id, mad, MAD_SIZE, 1000, 0)) {
			CHECK(errno == EAGAIN);
			cable_run(c, 0);
			if (!app_write(&a, id, mad, MAD_SIZE, 1000, 0))
				break;
		}
	}
	cable_run(c, 0);
	CHECK(umad_port_counter(a.port, UMAD_CTR_WRITES) == 4096 && i > 4096);
	while (app_read(&a) > 0 || (cable_run(c, 1000), app_read(&a) > 0))
		told += rec.hdr.status == ETIMEDOUT;
	CHECK(told == i && umad_port_counter(a.port, UMAD_CTR_WRITES) == i && !bad_writes(&a));
	return app_close(&a, true);
}

/* No write of a program has descriptors: with one, the file accepts no more. */
static bool descriptors(struct cable *c)
{
	struct app a;
	u8 byte;

	app_open(c, &a);
	CHECK(pass(a.fd, &a.fd, 1));
	cable_run(c, 0);
	CHECK(bad_writes(&a) == 1);
	CHECK(read(a.fd, &byte, 1) == 0 && send(a.fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	return app_close(&a, true);
}

static bool issm(struct cable *c)
{
	struct umad_port *p = umad_port_create(c->loop, c->ma);

	CHECK(umad_issm_open(p) == 0 && (c->a.port.attr.cap_mask & WIRE_PORT_CAP_IS_SM));
	CHECK(umad_issm_open(p) == -EAGAIN);
	umad_issm_close(p);
	CHECK(!(c->a.port.attr.cap_mask & WIRE_PORT_CAP_IS_SM));
	CHECK(umad_issm_open(p) == 0);
	umad_port_destroy(p);
	CHECK(!(c->a.port.attr.cap_mask & WIRE_PORT_CAP_IS_SM));
	return true;
}

static const struct row rows[] = {
	{ "ioctls", ioctls },
	{ "registrations with flags", ioctl_register2 },
	{ "request and response", request_and_response },
	{ "timeout", timeout_record },
	{ "rejected writes", refused_writes },
	{ "unsolicited, with GRH", unsolicited },
	{ "old header", old_header },
	{ "table by RMPP", table },
	{ "large table", large_table_by_memfd },
	{ "segments", segments_by_register2 },
	{ "slow reader", slow_reader },
	{ "application disconnects", application_goes },
	{ "many requests", many_requests },
	{ "descriptors", descriptors },
	{ "issm", issm },
};

int main(void)
{
	return rows_run(rows, ARRAY_SIZE(rows));
}
