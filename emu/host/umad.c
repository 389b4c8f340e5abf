// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The umad and issm device files: agents and MAD records as in the kernel's user_mad.c, over the MAD layer. */
#include "emu/host/umad.h"
#include "emu/lib/passed.h"
#include "emu/lib/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/wire/mad.h"

#define AGENTS           32 /* per file: IB_UMAD_MAX_AGENTS */
#define HDR              sizeof(struct ib_user_mad_hdr)
#define HDR_OLD          sizeof(struct ib_user_mad_hdr_old)
#define WRITE_MIN        36 /* MAD and RMPP headers */
#define READS_PER_WAKEUP 64
#define QUEUED_MAX       (64u << 20) /* bytes of unread records */
#define SOCKET_BUFFER    (4 << 20)
#define SENDS_MAX        4096 /* outstanding requests; further writes block */
static_assert(sizeof(struct ib_user_mad_hdr) == 64 && sizeof(struct ib_user_mad_hdr_old) == 56, "record headers");

struct umad_port {
	struct loop *loop;
	struct mad_port *mp;
	struct list files;
	bool issm_open;
	u64 counter[UMAD_CTR_NUM];
};

struct umad_agent {
	struct umad_file *file;
	struct mad_agent *mad; /* NULL: slot unused */
	bool rmpp;
};

struct umad_file {
	struct list link; /* umad_port.files */
	struct umad_port *port;
	struct loop_fd sock;
	bool pkey_index, used; /* ENABLE_PKEY was called; an agent was registered before it was called */
	struct umad_agent agent[AGENTS];
	struct list sends; /* without response: struct umad_send */
	u32 nsends;
	struct list records; /* not yet in the socket, which is full */
	u32 queued;          /* cost of records */
};

/* An outstanding MAD of the application. */
struct umad_send {
	struct list link; /* umad_file.sends */
	struct umad_agent *agent;
	struct ib_user_mad_hdr hdr;
	u8 mad[MAD_HDR_SIZE];
};

/* A record for the application; a large one is in a memfd. */
struct umad_record {
	struct list link;
	int memfd;
	u32 len, cost; /* bytes in data; bytes counted against QUEUED_MAX */
	u8 data[];
};

const char *umad_counter_name(enum umad_counter c)
{
	static const char *const names[] = { UMAD_COUNTERS(COUNTER_NAME) };

	return c < UMAD_CTR_NUM ? names[c] : "?";
}

u64 umad_port_counter(const struct umad_port *p, enum umad_counter c)
{
	return c < UMAD_CTR_NUM ? p->counter[c] : 0;
}

static size_t hdr_size(const struct umad_file *f)
{
	return f->pkey_index ? HDR : HDR_OLD;
}

/* ---- records to the application ---- */

static void record_free(struct umad_file *f, struct umad_record *r)
{
	list_del(&r->link);
	f->queued -= r->cost;
	if (r->memfd >= 0)
		close(r->memfd);
	free(r);
}

/* 0; -EAGAIN if the buffer is full; another error if the application has closed. */
static int record_send(struct umad_file *f, struct umad_record *r)
{
	RIGHTS_CONTROL(control, 1) = { 0 };
	struct iovec iov = { .iov_base = r->data, .iov_len = r->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	rights_put(&msg, control, &r->memfd, r->memfd >= 0);
	return sendmsg(f->sock.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void sock_watch(struct umad_file *f)
{
	if (f->sock.loop)
		loop_fd_mod(&f->sock, (f->nsends < SENDS_MAX ? EPOLLIN : 0) | (list_empty(&f->records) ? 0 : EPOLLOUT));
}

static void records_flush(struct umad_file *f)
{
	struct umad_record *r, *tmp;

	list_for_each_safe (r, tmp, &f->records, link) {
		int err = record_send(f, r);

		if (err == -EAGAIN || err == -ENOBUFS)
			break;
		f->port->counter[err ? UMAD_CTR_DROPPED : UMAD_CTR_RECORDS]++;
		record_free(f, r);
	}
	sock_watch(f);
}

static bool write_all(int fd, const void *p, size_t len)
{
	const u8 *b = p;
	ssize_t n;

	for (; len; b += n, len -= (size_t)n) {
		n = write(fd, b, len);
		if (n <= 0)
			return false;
	}
	return true;
}

static int record_memfd(const void *hdr, size_t hdr_len, const void *data, u32 len)
{
	int fd = memfd_create("umad", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (write_all(fd, hdr, hdr_len) && write_all(fd, data, len) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return fd;
	close(fd);
	return -1;
}

static struct umad_record *record_create(const void *hdr, size_t hdr_len, const u8 *data, u32 len)
{
	bool large = hdr_len + len > UMAD_RECORD_INLINE;
	u32 inline_len = large ? MAD_SIZE : len;
	struct umad_record *r = malloc(sizeof(*r) + hdr_len + inline_len);

	if (!r)
		return NULL;
	list_init(&r->link);
	r->len = hdr_len + inline_len;
	r->cost = hdr_len + len;
	memcpy(r->data, hdr, hdr_len);
	memcpy(r->data + hdr_len, data, inline_len);
	r->memfd = large ? record_memfd(hdr, hdr_len, data, len) : -1;
	if (large && r->memfd < 0) {
		free(r);
		return NULL;
	}
	return r;
}

static void record_queue(struct umad_file *f, const struct ib_user_mad_hdr *hdr, const u8 *data, u32 len)
{
	struct umad_record *r = f->queued < QUEUED_MAX ? record_create(hdr, hdr_size(f), data, len) : NULL;

	if (!r) {
		f->port->counter[UMAD_CTR_DROPPED]++;
		return;
	}
	list_add(&f->records, &r->link);
	f->queued += r->cost;
	records_flush(f);
}

/* ---- callbacks of the MAD layer ---- */

static void send_free(struct umad_send *s)
{
	struct umad_file *f = s->agent->file;

	list_del(&s->link);
	free(s);
	if (f->nsends-- == SENDS_MAX)
		sock_watch(f);
}

static void hdr_from_addr(struct ib_user_mad_hdr *h, const struct mad_addr *a)
{
	h->qpn = cpu_to_be32(a->qpn);
	h->lid = cpu_to_be16(a->lid);
	h->sl = a->sl;
	h->path_bits = a->path_bits;
	h->pkey_index = a->pkey_index;
	h->grh_present = a->grh;
	if (!a->grh)
		return;
	h->gid_index = a->gid_index;
	h->hop_limit = a->hop_limit;
	h->traffic_class = a->traffic_class;
	memcpy(h->gid, a->gid.raw, sizeof(h->gid));
	h->flow_label = cpu_to_be32(a->flow_label);
}

static u32 agent_id(const struct umad_agent *a)
{
	return a - a->file->agent;
}

static void agent_recv(void *ctx, const u8 *data, u32 len, const struct mad_addr *from, void *cookie)
{
	struct umad_agent *a = ctx;
	struct ib_user_mad_hdr hdr = { .id = agent_id(a), .length = hdr_size(a->file) + len };

	if (cookie)
		send_free(cookie);
	hdr_from_addr(&hdr, from);
	record_queue(a->file, &hdr, data, len);
}

/* Completes a request without response: the record has the header as written, and the
 * common header of the MAD as sent. */
static void agent_sent(void *ctx, const u8 *data, u32 len, int status, void *cookie)
{
	struct umad_agent *a = ctx;
	struct umad_send *s = cookie;

	if (status == MAD_TIMED_OUT) {
		a->file->port->counter[UMAD_CTR_TIMEOUTS]++;
		s->hdr.id = agent_id(a);
		s->hdr.status = ETIMEDOUT;
		record_queue(a->file, &s->hdr, data, MAD_HDR_SIZE);
	}
	send_free(s);
}

/* ---- records from the application ---- */

static bool same_destination(const struct ib_user_mad_hdr *a, const struct ib_user_mad_hdr *b)
{
	if (!a->grh_present && !b->grh_present)
		return a->lid == b->lid;
	return a->grh_present && b->grh_present && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

/* Outstanding requests with the same TID cannot be distinguished, nor can
 * responses with the same TID to one address. */
static bool is_duplicate(const struct umad_file *f, const struct ib_user_mad_hdr *hdr, const u8 *mad)
{
	bool resp = wire_mad_is_response(wire_get(mad, MAD_METHOD));
	const struct umad_send *s;

	list_for_each (s, &f->sends, link) {
		if (wire_get(s->mad, MAD_TID) != wire_get(mad, MAD_TID) ||
		    wire_get(s->mad, MAD_CLASS) != wire_get(mad, MAD_CLASS) ||
		    wire_mad_is_response(wire_get(s->mad, MAD_METHOD)) != resp)
			continue;
		if (!resp || same_destination(hdr, &s->hdr))
			return true;
	}
	return false;
}

static struct mad_addr addr_from_hdr(const struct umad_file *f, const struct ib_user_mad_hdr *h)
{
	struct mad_addr to = {
		.qpn = be32_to_cpu(h->qpn),
		.qkey = MAD_QKEY_WELL_KNOWN, /* as the kernel, which ignores the header's Q_Key */
		.lid = be16_to_cpu(h->lid),
		.sl = h->sl,
		.path_bits = h->path_bits,
		.pkey_index = f->pkey_index ? h->pkey_index : 0,
		.grh = h->grh_present,
	};

	if (to.grh) {
		to.gid = wire_gid_from_bytes(h->gid);
		to.gid_index = h->gid_index;
		to.hop_limit = h->hop_limit;
		to.traffic_class = h->traffic_class;
		to.flow_label = be32_to_cpu(h->flow_label);
	}
	return to;
}

/* Handles a record of @len bytes, written by one write() of the application. */
static int record_take(struct umad_file *f, u8 *data, size_t len)
{
	struct ib_user_mad_hdr hdr = { 0 };
	u8 *mad = data + hdr_size(f);
	struct umad_agent *a;
	struct umad_send *s;
	struct mad_addr to;
	int err;

	if (len < hdr_size(f) + WRITE_MIN)
		return -EINVAL;
	memcpy(&hdr, data, hdr_size(f));
	if (hdr.id >= AGENTS)
		return -EINVAL;
	a = &f->agent[hdr.id];
	if (!a->mad)
		return -EIO;
	to = addr_from_hdr(f, &hdr);
	if (!wire_mad_is_response(wire_get(mad, MAD_METHOD)))
		wire_set(mad, MAD_TID_HIGH, mad_agent_tid_high(a->mad));
	/* An agent that does RMPP itself sends many segments under one TID. */
	if ((a->rmpp || !wire_mad_class_has_rmpp(wire_get(mad, MAD_CLASS)) ||
	     !(wire_get(mad, RMPP_FLAGS) & RMPP_FLAG_ACTIVE)) &&
	    is_duplicate(f, &hdr, mad))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	f->nsends++;
	s->agent = a;
	s->hdr = hdr;
	memcpy(s->mad, mad, MAD_HDR_SIZE);
	list_add(&f->sends, &s->link);
	err = mad_send(a->mad, mad, (u32)(len - hdr_size(f)), &to, hdr.timeout_ms, hdr.retries, s);
	if (err)
		send_free(s);
	return err;
}

/* False: nothing to read; with @closed, all records have been read. */
static bool read_record(struct umad_file *f, bool closed)
{
	u8 small[1024], *buf = small;
	struct iovec iov;
	ssize_t len, got;
	int err = -EINVAL;
	bool refused;

	if (f->nsends >= SENDS_MAX && !closed) {
		sock_watch(f);
		return false;
	}
	len = recv(f->sock.fd, small, 1, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	if (len < 0 || (len == 0 && closed)) {
		if (len == 0 || (errno != EAGAIN && errno != EINTR))
			loop_fd_del(&f->sock); /* the application has closed its end; the server will close the file */
		return false;
	}
	if (len > (ssize_t)sizeof(small))
		buf = len <= UMAD_WRITE_MAX ? malloc((size_t)len) : NULL;
	iov = (struct iovec){ buf ?: small, buf ? (size_t)len : 1 };
	got = passed_recv_none(f->sock.fd, &iov);
	refused = got < 0 && errno == EBADMSG;
	if (got == len && buf)
		err = record_take(f, buf, (size_t)len);
	else if (!buf)
		err = -ENOMEM;
	if (buf != small)
		free(buf);
	f->port->counter[UMAD_CTR_WRITES]++;
	if (err) {
		f->port->counter[UMAD_CTR_BAD_WRITES]++;
		log_at(LOG_DEBUG, mad_port_wire(f->port->mp)->name, "umad: a write of %zd bytes is rejected: %s", len,
		       strerror(-err));
	}
	if (!refused)
		return true;
	shutdown(f->sock.fd, SHUT_RDWR);
	loop_fd_del(&f->sock);
	return false;
}

static void sock_event(struct loop_fd *w, u32 events, struct now now)
{
	struct umad_file *f = container_of(w, struct umad_file, sock);
	int i;

	if (events & EPOLLOUT)
		records_flush(f);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		for (i = 0; i < READS_PER_WAKEUP && read_record(f, events & EPOLLHUP); i++)
			;
}

/* ---- ioctls ---- */

static int agent_add(struct umad_file *f, struct mad_agent_reg *reg, u32 *id)
{
	struct umad_agent *a = NULL;
	u32 i;
	int err;

	for (i = 0; i < AGENTS && !a; i++)
		if (!f->agent[i].mad)
			a = &f->agent[i];
	if (!a)
		return -ENOMEM;
	reg->recv = agent_recv;
	reg->sent = agent_sent;
	reg->ctx = a;
	err = mad_agent_register(f->port->mp, reg, &a->mad);
	if (err)
		return err == -EBUSY ? -EINVAL : err; /* the kernel's error for a method in use */
	a->file = f;
	a->rmpp = reg->rmpp_version && !reg->user_rmpp;
	f->used = true;
	*id = agent_id(a);
	return 0;
}

static int register_agent(struct umad_file *f, void *arg)
{
	struct ib_user_mad_reg_req req;
	struct mad_agent_reg reg = { 0 };
	int err;

	memcpy(&req, arg, sizeof(req));
	if (req.qpn > MAD_QPN_GSI)
		return -EINVAL;
	reg.qpn = req.qpn;
	reg.mgmt_class = req.mgmt_class;
	reg.class_version = req.mgmt_class_version;
	memcpy(reg.oui, req.oui, sizeof(reg.oui));
	reg.rmpp_version = req.rmpp_version;
	memcpy(reg.methods, req.method_mask, sizeof(reg.methods));
	err = agent_add(f, &reg, &req.id);
	if (!err)
		memcpy(arg, &req, sizeof(req));
	return err;
}

/* The QPN and the OUI are 32 bits here, and the first agent of a file enables the header with the P_Key index. */
static int register_agent2(struct umad_file *f, void *arg)
{
	struct ib_user_mad_reg_req2 req;
	struct mad_agent_reg reg = { 0 };
	bool first = !f->used;
	int err;

	memcpy(&req, arg, sizeof(req));
	if (req.qpn > MAD_QPN_GSI)
		return -EINVAL;
	if (req.flags & ~(u32)IB_USER_MAD_REG_FLAGS_CAP) {
		req.flags = IB_USER_MAD_REG_FLAGS_CAP;
		memcpy(arg, &req, sizeof(req));
		return -EINVAL;
	}
	if (req.mgmt_class && req.oui >> 24)
		return -EINVAL;
	reg.qpn = (u8)req.qpn;
	reg.mgmt_class = req.mgmt_class;
	reg.class_version = req.mgmt_class_version;
	reg.oui[0] = (u8)(req.oui >> 16);
	reg.oui[1] = (u8)(req.oui >> 8);
	reg.oui[2] = (u8)req.oui;
	reg.rmpp_version = req.rmpp_version;
	reg.user_rmpp = req.flags & IB_USER_MAD_USER_RMPP;
	memcpy(reg.methods, req.method_mask, sizeof(reg.methods));
	err = agent_add(f, &reg, &req.id);
	if (err)
		return err;
	f->pkey_index |= first;
	memcpy(arg, &req, sizeof(req));
	return 0;
}

static void agent_close(struct umad_agent *a)
{
	struct umad_send *s, *tmp;

	list_for_each_safe (s, tmp, &a->file->sends, link)
		if (s->agent == a)
			send_free(s);
	mad_agent_unregister(a->mad);
	a->mad = NULL;
}

static int unregister_agent(struct umad_file *f, void *arg)
{
	u32 id;

	memcpy(&id, arg, sizeof(id));
	if (id >= AGENTS || !f->agent[id].mad)
		return -EINVAL;
	agent_close(&f->agent[id]);
	return 0;
}

static int enable_pkey(struct umad_file *f, void *arg)
{
	if (f->used)
		return -EINVAL;
	f->pkey_index = true;
	return 0;
}

static const struct {
	u32 request;
	size_t size;
	int (*fn)(struct umad_file *f, void *arg);
} ioctls[] = {
	{ IB_USER_MAD_REGISTER_AGENT, sizeof(struct ib_user_mad_reg_req), register_agent },
	{ IB_USER_MAD_REGISTER_AGENT2, sizeof(struct ib_user_mad_reg_req2), register_agent2 },
	{ IB_USER_MAD_UNREGISTER_AGENT, sizeof(u32), unregister_agent },
	{ IB_USER_MAD_ENABLE_PKEY, 0, enable_pkey },
};

int umad_file_ioctl(struct umad_file *f, u32 request, void *arg, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ioctls); i++)
		if (ioctls[i].request == request)
			return len < ioctls[i].size ? -EFAULT : ioctls[i].fn(f, arg);
	return -ENOTTY;
}

/* ---- open and close ---- */

struct umad_port *umad_port_create(struct loop *loop, struct mad_port *mp)
{
	struct umad_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->loop = loop;
	p->mp = mp;
	list_init(&p->files);
	return p;
}

void umad_port_destroy(struct umad_port *p)
{
	if (!p)
		return;
	while (!list_empty(&p->files))
		umad_file_close(list_first(&p->files, struct umad_file, link));
	umad_issm_close(p);
	free(p);
}

int umad_file_open(struct umad_port *p, struct umad_file **file, int *app_fd)
{
	struct umad_file *f = calloc(1, sizeof(*f));
	int size = SOCKET_BUFFER, fds[2], err, i;

	if (!f)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
		free(f);
		return err;
	}
	for (i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* as much as the system allows */
	f->port = p;
	f->sock = (struct loop_fd){ .fd = fds[0], .fn = sock_event };
	list_init(&f->sends);
	list_init(&f->records);
	err = loop_fd_add(p->loop, &f->sock, EPOLLIN);
	if (err) {
		close(fds[0]);
		close(fds[1]);
		free(f);
		return err;
	}
	list_add(&p->files, &f->link);
	*file = f;
	*app_fd = fds[1];
	return 0;
}

void umad_file_close(struct umad_file *f)
{
	u32 i;

	for (i = 0; i < AGENTS; i++)
		if (f->agent[i].mad)
			agent_close(&f->agent[i]);
	while (!list_empty(&f->records))
		record_free(f, list_first(&f->records, struct umad_record, link));
	loop_fd_del(&f->sock);
	passed_close_socket(f->sock.fd, 0);
	list_del(&f->link);
	free(f);
}

/* ---- issm ---- */

int umad_issm_open(struct umad_port *p)
{
	struct wire_port *w = mad_port_wire(p->mp);

	if (p->issm_open)
		return -EAGAIN;
	p->issm_open = true;
	w->ops->set_cap(w, WIRE_PORT_CAP_IS_SM, 0);
	return 0;
}

void umad_issm_close(struct umad_port *p)
{
	struct wire_port *w = mad_port_wire(p->mp);

	if (!p->issm_open)
		return;
	p->issm_open = false;
	w->ops->set_cap(w, 0, WIRE_PORT_CAP_IS_SM);
}
