// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NETLINK_RDMA: requests of RDMA_NL_NLDEV that read (rdma/rdma_netlink.h), as the kernel's nldev.c answers them. A socket is one end of
 * a pair, of which the daemon has the other; requests come as writes, answers go into the pair. What the program does not read fills the
 * pair, and further requests fail with ENOBUFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/hca/iw.h"
#include "emu/host/context.h"
#include "emu/host/sysfs.h"
#include "emu/host/ucma.h"
#include "emu/lib/passed.h"

#define SOCKET_BUFFER (1 << 20)
#define ANSWER_MAX    4096      /* the buffer that libmnl's users have */
#define ENTRY_MAX     384       /* of a table: an id of rdma_cm has two addresses */
#define RANGE_ROOM    128       /* for a range of queue pairs, and what follows it in an entry */
#define LOOKS_MAX     (1 << 18) /* at queue pairs, for the SRQs of an answer: those after them are listed without */
#define DEVICE_INDEX  0
#define UVERBS_ABI    1
#define UVERBS_MAJOR  231

/* A request, and the message of its answer that is being made. */
struct nldev_call {
	struct uv_host *host;
	struct uv_server *server;
	int sock;
	const struct nlmsghdr *req;
	const struct nlattr *attr[RDMA_NLDEV_ATTR_MAX];
	bool dump;
	union {
		struct nlmsghdr hdr;
		u8 buf[ANSWER_MAX];
	} out;
	u32 looks;
	u32 table; /* where the table of objects in this message begins, 0: there is none */
	int err;   /* of sending */
};

/* Messages */

static void out_begin(struct nldev_call *c, u16 type)
{
	c->out.hdr = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
					.nlmsg_type = type,
					.nlmsg_flags = c->dump ? NLM_F_MULTI : 0,
					.nlmsg_seq = c->req->nlmsg_seq,
					.nlmsg_pid = c->req->nlmsg_pid };
}

static void out_raw(struct nldev_call *c, const void *data, u32 len)
{
	u8 *at = c->out.buf + c->out.hdr.nlmsg_len;

	assert(c->out.hdr.nlmsg_len + NLMSG_ALIGN(len) <= ANSWER_MAX);
	memset(at, 0, NLMSG_ALIGN(len));
	memcpy(at, data, len);
	c->out.hdr.nlmsg_len += NLMSG_ALIGN(len);
}

static void out_put(struct nldev_call *c, u16 type, const void *data, u32 len)
{
	struct nlattr a = { .nla_len = (u16)(NLA_HDRLEN + len), .nla_type = type };

	out_raw(c, &a, sizeof(a));
	out_raw(c, data, len);
}

static void out_u8(struct nldev_call *c, u16 type, u8 v)
{
	out_put(c, type, &v, sizeof(v));
}

static void out_u32(struct nldev_call *c, u16 type, u32 v)
{
	out_put(c, type, &v, sizeof(v));
}

static void out_u64(struct nldev_call *c, u16 type, u64 v)
{
	out_put(c, type, &v, sizeof(v));
}

static void out_string(struct nldev_call *c, u16 type, const char *s)
{
	out_put(c, type, s, (u32)strlen(s) + 1);
}

static u32 nest_begin(struct nldev_call *c, u16 type)
{
	u32 at = c->out.hdr.nlmsg_len;

	out_put(c, type, "", 0);
	return at;
}

static void nest_end(struct nldev_call *c, u32 at)
{
	u16 len = (u16)(c->out.hdr.nlmsg_len - at);

	memcpy(c->out.buf + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

static bool out_has_room(const struct nldev_call *c)
{
	return c->out.hdr.nlmsg_len + ENTRY_MAX <= ANSWER_MAX;
}

static void out_send(struct nldev_call *c)
{
	if (!c->err && send(c->sock, c->out.buf, c->out.hdr.nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		c->err = -ENOBUFS;
}

/* The acknowledgement (0) or the error of a request, or the end of a dump. */
static void out_end(struct nldev_call *c, int result)
{
	struct nlmsgerr e = { .error = result, .msg = *c->req };

	out_begin(c, c->dump && !result ? NLMSG_DONE : NLMSG_ERROR);
	c->out.hdr.nlmsg_flags |= c->dump && !result ? 0 : NLM_F_CAPPED;
	out_raw(c, &e, c->dump && !result ? sizeof(e.error) : sizeof(e));
	out_send(c);
}

/* Attributes of requests */

static u32 attr_u32(const struct nldev_call *c, u32 type, u32 none)
{
	const struct nlattr *a = c->attr[type];
	u32 v = none;

	if (a && a->nla_len >= NLA_HDRLEN + sizeof(v))
		memcpy(&v, (const u8 *)a + NLA_HDRLEN, sizeof(v));
	return v;
}

static bool attr_is(const struct nldev_call *c, u32 type, const char *text)
{
	const struct nlattr *a = c->attr[type];
	size_t len = a ? a->nla_len - NLA_HDRLEN : 0;

	return a && strnlen((const char *)a + NLA_HDRLEN, len) == strlen(text) &&
	       !memcmp((const u8 *)a + NLA_HDRLEN, text, strlen(text));
}

static void attrs_parse(struct nldev_call *c)
{
	const u8 *at = (const u8 *)c->req + NLMSG_HDRLEN, *end = (const u8 *)c->req + c->req->nlmsg_len;
	const struct nlattr *a;
	u16 type;

	while (end - at >= NLA_HDRLEN) {
		a = (const void *)at;
		if (a->nla_len < NLA_HDRLEN || a->nla_len > end - at)
			return;
		type = a->nla_type & NLA_TYPE_MASK;
		if (type < ARRAY_SIZE(c->attr))
			c->attr[type] = a;
		at += min((long)NLA_ALIGN(a->nla_len), (long)(end - at));
	}
}

/* A request for one device names it; one for a dump of all may. */
static int device_check(const struct nldev_call *c)
{
	u32 index = attr_u32(c, RDMA_NLDEV_ATTR_DEV_INDEX, c->dump ? DEVICE_INDEX : ~0u);

	if (!c->dump && !c->attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return -EINVAL;
	return index == DEVICE_INDEX && !c->host->gone ? 0 : -EINVAL;
}

static int port_check(const struct nldev_call *c)
{
	u32 port = attr_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, 0);

	return port && port <= c->host->nports ? (int)port : -EINVAL;
}

static void put_device(struct nldev_call *c)
{
	out_u32(c, RDMA_NLDEV_ATTR_DEV_INDEX, DEVICE_INDEX);
	out_string(c, RDMA_NLDEV_ATTR_DEV_NAME, c->host->device);
}

/* Devices and ports */

static int answer_device(struct nldev_call *c)
{
	const struct uv_host *h = c->host;
	bool ethernet = wire_port_is_ethernet(h->port[0]);

	out_begin(c, c->req->nlmsg_type);
	put_device(c);
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, h->nports);
	out_u64(c, RDMA_NLDEV_ATTR_CAP_FLAGS, uv_device_caps(h));
	if (!uv_host_is_soft(h))
		out_string(c, RDMA_NLDEV_ATTR_FW_VERSION, UV_FW_VERSION);
	out_u64(c, RDMA_NLDEV_ATTR_NODE_GUID, hca_node_guid(h->hca));
	out_u64(c, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, hca_sys_image_guid(h->hca));
	out_u8(c, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, hca_iw(h->hca) ? 4 : 1); /* RDMA_NODE_RNIC, RDMA_NODE_IB_CA */
	out_u8(c, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	out_string(c, RDMA_NLDEV_ATTR_DEV_PROTOCOL, hca_iw(h->hca) ? "iw" : ethernet ? "roce" : "ib");
	out_send(c);
	return 0;
}

/* Each port before it has one interface. */
static u32 netdev_index(const struct uv_host *h, u32 port, const char *name)
{
	char path[64], text[16] = "";
	ssize_t n;
	int fd;

	if (uv_sysfs_has_netdevs(h))
		return UV_NETDEV_FIRST + port - 1;
	snprintf(path, sizeof(path), "/sys/class/net/%.15s/ifindex", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 ? (u32)strtoul(text, NULL, 10) : 0;
}

static void answer_one_port(struct nldev_call *c, u32 port)
{
	const struct uv_host *h = c->host;
	const struct wire_port_attr *a = &h->port[port - 1]->attr;
	const char *netdev;

	out_begin(c, c->req->nlmsg_type);
	put_device(c);
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (a->link_layer != WIRE_LINK_ETHERNET) {
		out_u64(c, RDMA_NLDEV_ATTR_CAP_FLAGS, a->cap_mask);
		out_u64(c, RDMA_NLDEV_ATTR_SUBNET_PREFIX, wire_gid_prefix(&a->gid[0]));
		out_u32(c, RDMA_NLDEV_ATTR_LID, a->lid);
		out_u32(c, RDMA_NLDEV_ATTR_SM_LID, a->sm_lid);
		out_u8(c, RDMA_NLDEV_ATTR_LMC, a->lmc);
	}
	out_u8(c, RDMA_NLDEV_ATTR_PORT_STATE, a->state);
	out_u8(c, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, a->phys_state);
	if (a->link_layer == WIRE_LINK_ETHERNET && h->gid_netdev) {
		netdev = h->gid_netdev(h, 0);
		out_u32(c, RDMA_NLDEV_ATTR_NDEV_INDEX, netdev_index(h, port, netdev));
		out_string(c, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	}
	out_send(c);
}

static int answer_port(struct nldev_call *c)
{
	int port = c->dump ? 0 : port_check(c);
	u32 i;

	if (c->dump && !c->attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return -EINVAL;
	for (i = 1; c->dump && i <= c->host->nports; i++)
		answer_one_port(c, i);
	if (port > 0)
		answer_one_port(c, (u32)port);
	return port < 0 ? port : 0;
}

static int answer_system(struct nldev_call *c)
{
	out_begin(c, c->req->nlmsg_type);
	out_u8(c, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1); /* shared */
	out_u8(c, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	out_send(c);
	return 0;
}

/* Device files by the name of their kind. Those of ports have the port's number. */
static int answer_chardev(struct nldev_call *c)
{
	static const struct {
		const char *type;
		bool device, port;
		u32 major, minor, abi;
	} kinds[] = {
		{ "uverbs", true, false, UVERBS_MAJOR, 192, UVERBS_ABI },
		{ "umad", true, true, UVERBS_MAJOR, 0, IB_USER_MAD_ABI_VERSION },
		{ "issm", true, true, UVERBS_MAJOR, 64, IB_USER_MAD_ABI_VERSION },
		{ "rdma_cm", false, false, 10, 58, RDMA_USER_CM_ABI_VERSION },
	};
	int port = 1, err = 0;
	char name[16];
	u32 k;

	for (k = 0; k < ARRAY_SIZE(kinds) && !attr_is(c, RDMA_NLDEV_ATTR_CHARDEV_TYPE, kinds[k].type);)
		k++;
	if (!c->attr[RDMA_NLDEV_ATTR_CHARDEV_TYPE])
		return -EINVAL;
	if (k == ARRAY_SIZE(kinds))
		return -EOPNOTSUPP;
	if (kinds[k].device)
		err = device_check(c);
	if (!err && kinds[k].port)
		port = port_check(c);
	if (err || port < 0)
		return err ? err : port;
	if (kinds[k].port && !c->host->umad[port - 1])
		return -EOPNOTSUPP;
	snprintf(name, sizeof(name), kinds[k].device ? "%s%u" : "%s", kinds[k].type, port - 1u);
	out_begin(c, c->req->nlmsg_type);
	if (kinds[k].device)
		put_device(c);
	out_u64(c, RDMA_NLDEV_ATTR_CHARDEV, makedev(kinds[k].major, kinds[k].minor + (u32)port - 1));
	out_u64(c, RDMA_NLDEV_ATTR_CHARDEV_ABI, kinds[k].abi);
	out_string(c, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	if (!strcmp(kinds[k].type, "uverbs")) /* of all our devices the provider is librxe */
		out_u32(c, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, RDMA_DRIVER_RXE);
	out_send(c);
	return 0;
}

/* Resources */

static u32 objects_of(const struct hca *hca, const char *kind)
{
	const char *name;
	u32 i;

	for (i = 0; (name = hca_object_name(i)); i++)
		if (!strcmp(name, kind))
			return hca_object_count(hca, i);
	return 0;
}

static void put_summary(struct nldev_call *c, const char *name, u64 count)
{
	u32 entry = nest_begin(c, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	out_string(c, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	out_u64(c, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	nest_end(c, entry);
}

static int answer_resources(struct nldev_call *c)
{
	const struct uv_host *h = c->host;
	u32 table;

	out_begin(c, c->req->nlmsg_type);
	put_device(c);
	table = nest_begin(c, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_summary(c, "pd", objects_of(h->hca, "pd"));
	put_summary(c, "cq", objects_of(h->hca, "cq"));
	put_summary(c, "qp", objects_of(h->hca, "qp"));
	put_summary(c, "cm_id", h->cm ? ucma_host_ids(h->cm) : 0);
	put_summary(c, "mr", objects_of(h->hca, "mr"));
	put_summary(c, "ctx", objects_of(h->hca, "contexts"));
	put_summary(c, "srq", objects_of(h->hca, "srq"));
	nest_end(c, table);
	out_send(c);
	return 0;
}

/*
 * Lists of objects of programs, with the attributes that nldev.c gives a reader without CAP_NET_ADMIN: no keys. Those of the management layer
 * belong to no process. A message has as many entries as it has room for.
 */
static u32 entry_begin(struct nldev_call *c, u16 table, u16 entry)
{
	if (!c->table) {
		out_begin(c, c->req->nlmsg_type);
		put_device(c);
		c->table = nest_begin(c, table);
	}
	return nest_begin(c, entry);
}

static void table_end(struct nldev_call *c)
{
	if (!c->table)
		return;
	nest_end(c, c->table);
	c->table = 0;
	out_send(c);
}

/* False: the socket takes no more. */
static bool entry_end(struct nldev_call *c, u32 entry, pid_t pid)
{
	out_u32(c, RDMA_NLDEV_ATTR_RES_PID, (u32)pid);
	nest_end(c, entry);
	if (!out_has_room(c))
		table_end(c);
	return !c->err;
}

/* One uverbs file in a list. */
struct file_list {
	struct nldev_call *c;
	struct uverbs *u;
	u32 ctxn;
	pid_t pid;
};

static bool put_qp(const struct file_list *l, const struct verbs_qp *qp)
{
	struct nldev_call *c = l->c;
	u32 entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	bool connected = qp->limits.type == HCA_QPT_RC || qp->limits.type == HCA_QPT_UC;
	struct hca_qp_attr a = { 0 };
	struct verbs_qp *same;

	verbs_qp_query(&l->u->verbs, qp->handle, &a, &same);
	if (a.port)
		out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, a.port);
	out_u32(c, RDMA_NLDEV_ATTR_RES_LQPN, qp->qpn);
	if (connected) {
		out_u32(c, RDMA_NLDEV_ATTR_RES_RQPN, a.dest_qpn);
		out_u32(c, RDMA_NLDEV_ATTR_RES_RQ_PSN, a.rq_psn);
	}
	out_u32(c, RDMA_NLDEV_ATTR_RES_SQ_PSN, a.sq_psn);
	if (connected)
		out_u8(c, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, a.path_mig_state);
	out_u8(c, RDMA_NLDEV_ATTR_RES_TYPE, qp->limits.type);
	out_u8(c, RDMA_NLDEV_ATTR_RES_STATE, a.state);
	return entry_end(c, entry, l->pid);
}

static void put_qps(struct file_list *l)
{
	const struct verbs_qp *qp;
	u32 i;

	table_for_each (&l->u->verbs.qps, i, qp)
		if (!put_qp(l, qp))
			return;
}

static void put_cqs(struct file_list *l)
{
	struct nldev_call *c = l->c;
	struct verbs_cq *cq;
	u32 i, entry;

	table_for_each (&l->u->verbs.cqs, i, cq) {
		entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY);
		out_u32(c, RDMA_NLDEV_ATTR_RES_CQE, container_of(cq, struct uv_cq, cq)->ring.ring.mask);
		out_u64(c, RDMA_NLDEV_ATTR_RES_USECNT, hca_cq_resource(l->u->verbs.ctx, cq->cqn).users + cq->specials);
		out_u32(c, RDMA_NLDEV_ATTR_RES_CQN, cq->cqn);
		out_u32(c, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
		if (!entry_end(c, entry, l->pid))
			return;
	}
}

static void put_range(struct nldev_call *c, u32 first, u32 last)
{
	u32 entry;

	if (!first || c->out.hdr.nlmsg_len + RANGE_ROOM > ANSWER_MAX)
		return;
	entry = nest_begin(c, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	if (first == last) {
		out_u32(c, RDMA_NLDEV_ATTR_RES_LQPN, first);
	} else {
		out_u32(c, RDMA_NLDEV_ATTR_MIN_RANGE, first);
		out_u32(c, RDMA_NLDEV_ATTR_MAX_RANGE, last);
	}
	nest_end(c, entry);
}

/* The queue pairs of an SRQ by ranges of their numbers; rdma(8) shows no SRQ without that table. */
static void put_srq_qps(struct file_list *l, u32 srqn, u32 users)
{
	struct nldev_call *c = l->c;
	u32 table = nest_begin(c, RDMA_NLDEV_ATTR_RES_QP), first = 0, last = 0, i;
	const struct verbs_qp *qp;

	table_for_each (&l->u->verbs.qps, i, qp) {
		if (!users || c->looks++ >= LOOKS_MAX)
			break;
		if (hca_qp_srqn(l->u->verbs.ctx, qp->qpn) != srqn)
			continue;
		users--;
		if (first && qp->qpn != last + 1) {
			put_range(c, first, last);
			first = 0;
		}
		first = first ? first : qp->qpn;
		last = qp->qpn;
	}
	put_range(c, first, last);
	nest_end(c, table);
}

static void put_srqs(struct file_list *l)
{
	struct nldev_call *c = l->c;
	const struct verbs_srq *srq;
	struct hca_resource r;
	u32 i, entry;

	table_for_each (&l->u->verbs.srqs, i, srq) {
		r = hca_srq_resource(l->u->verbs.ctx, srq->srqn);
		entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY);
		out_u32(c, RDMA_NLDEV_ATTR_RES_SRQN, srq->srqn);
		out_u8(c, RDMA_NLDEV_ATTR_RES_TYPE, IB_UVERBS_SRQT_BASIC);
		out_u32(c, RDMA_NLDEV_ATTR_RES_PDN, r.pdn);
		put_srq_qps(l, srq->srqn, r.users);
		if (!entry_end(c, entry, l->pid))
			return;
	}
}

static bool put_pd(void *arg, const struct hca_resource *r)
{
	const struct file_list *l = arg;
	u32 entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY);

	out_u64(l->c, RDMA_NLDEV_ATTR_RES_USECNT, r->users);
	out_u32(l->c, RDMA_NLDEV_ATTR_RES_PDN, r->pdn);
	out_u32(l->c, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
	return entry_end(l->c, entry, l->pid);
}

static void put_pds(struct file_list *l)
{
	hca_pd_each(l->u->verbs.ctx, put_pd, l);
}

static bool put_mr(void *arg, const struct hca_resource *r)
{
	const struct file_list *l = arg;
	u32 entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY);

	out_u64(l->c, RDMA_NLDEV_ATTR_RES_MRLEN, r->len);
	out_u32(l->c, RDMA_NLDEV_ATTR_RES_MRN, r->num);
	out_u32(l->c, RDMA_NLDEV_ATTR_RES_PDN, r->pdn);
	return entry_end(l->c, entry, l->pid);
}

static void put_mrs(struct file_list *l)
{
	hca_mr_each(l->u->verbs.ctx, put_mr, l);
}

static void put_ctx(struct file_list *l)
{
	u32 entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY);

	out_u32(l->c, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
	entry_end(l->c, entry, l->pid);
}

static const struct {
	u32 op;
	void (*put)(struct file_list *l);
} lists[] = {
	{ RDMA_NLDEV_CMD_RES_QP_GET, put_qps },  { RDMA_NLDEV_CMD_RES_CQ_GET, put_cqs },
	{ RDMA_NLDEV_CMD_RES_MR_GET, put_mrs },  { RDMA_NLDEV_CMD_RES_PD_GET, put_pds },
	{ RDMA_NLDEV_CMD_RES_CTX_GET, put_ctx }, { RDMA_NLDEV_CMD_RES_SRQ_GET, put_srqs },
};

static void put_file(void *arg, struct uv_file *f)
{
	struct nldev_call *c = arg;
	struct uverbs *u = f->priv;
	struct file_list l = { c, u, (u32)f->owner, f->opener->pid };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists) && !u->revoked && !c->err; i++)
		if (lists[i].op == RDMA_NL_GET_OP(c->req->nlmsg_type))
			lists[i].put(&l);
	table_end(c);
}

static int answer_list(struct nldev_call *c)
{
	if (!c->dump)
		return -EOPNOTSUPP;
	uv_server_each_file(c->server, c->host, &uverbs_file_ops, put_file, c);
	return 0;
}

static void put_address(struct nldev_call *c, u16 type, const union rdma_sockaddr *a)
{
	struct sockaddr_storage ss = { 0 };

	if (!a->sa.sa_family)
		return;
	memcpy(&ss, a, rdma_sockaddr_len(a));
	out_put(c, type, &ss, sizeof(ss));
}

static bool put_cm_id(void *arg, const struct rdma_id *id, u32 num, pid_t pid)
{
	struct nldev_call *c = arg;
	u32 entry;

	if (!rdma_id_port(id)) /* bound to no device */
		return true;
	entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, rdma_id_port(id));
	if (rdma_id_qpn(id)) {
		out_u32(c, RDMA_NLDEV_ATTR_RES_LQPN, rdma_id_qpn(id));
		out_u8(c, RDMA_NLDEV_ATTR_RES_TYPE, rdma_id_qp_type(id));
	}
	out_u32(c, RDMA_NLDEV_ATTR_RES_PS, rdma_id_space(id));
	out_u8(c, RDMA_NLDEV_ATTR_RES_STATE, rdma_id_state(id));
	put_address(c, RDMA_NLDEV_ATTR_RES_SRC_ADDR, rdma_id_src(id));
	put_address(c, RDMA_NLDEV_ATTR_RES_DST_ADDR, rdma_id_dst(id));
	out_u32(c, RDMA_NLDEV_ATTR_RES_CM_IDN, num);
	return entry_end(c, entry, pid);
}

static int answer_cm_ids(struct nldev_call *c)
{
	if (!c->dump)
		return -EOPNOTSUPP;
	if (c->host->cm)
		ucma_host_each(c->host->cm, put_cm_id, c);
	table_end(c);
	return 0;
}

/* Counters of a port, those of sysfs in hw_counters. */
static int answer_counters(struct nldev_call *c)
{
	int port = port_check(c);
	const char *name;
	u32 n, table, entry;

	if (c->dump)
		return -EOPNOTSUPP;
	if (port < 0)
		return port;
	out_begin(c, c->req->nlmsg_type);
	put_device(c);
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, (u32)port);
	table = nest_begin(c, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (n = 0; (name = hca_counter_name(n)) && out_has_room(c); n++) {
		entry = nest_begin(c, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		out_string(c, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
		out_u64(c, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, hca_counter(c->host->hca, (u8)port, n));
		nest_end(c, entry);
	}
	nest_end(c, table);
	out_send(c);
	return 0;
}

/* The socket */

static const struct {
	int (*answer)(struct nldev_call *c);
	bool device; /* the request is about one */
	bool admin;  /* CAP_NET_ADMIN, which no program has here */
} commands[] = {
	[RDMA_NLDEV_CMD_GET] = { answer_device, .device = true },
	[RDMA_NLDEV_CMD_SET] = { .admin = true },
	[RDMA_NLDEV_CMD_NEWLINK] = { .admin = true },
	[RDMA_NLDEV_CMD_DELLINK] = { .admin = true },
	[RDMA_NLDEV_CMD_PORT_GET] = { answer_port, .device = true },
	[RDMA_NLDEV_CMD_SYS_GET] = { answer_system },
	[RDMA_NLDEV_CMD_SYS_SET] = { .admin = true },
	[RDMA_NLDEV_CMD_RES_GET] = { answer_resources, .device = true },
	[RDMA_NLDEV_CMD_RES_QP_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = { answer_cm_ids, .device = true },
	[RDMA_NLDEV_CMD_RES_CQ_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_RES_MR_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_RES_PD_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_GET_CHARDEV] = { answer_chardev },
	[RDMA_NLDEV_CMD_RES_CTX_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = { answer_list, .device = true },
	[RDMA_NLDEV_CMD_STAT_SET] = { .admin = true },
	[RDMA_NLDEV_CMD_STAT_GET] = { answer_counters, .device = true },
	[RDMA_NLDEV_CMD_STAT_DEL] = { .admin = true },
};

static int nldev_answer(struct nldev_call *c)
{
	u32 op = RDMA_NL_GET_OP(c->req->nlmsg_type);
	int err = 0;

	if (RDMA_NL_GET_CLIENT(c->req->nlmsg_type) != RDMA_NL_NLDEV)
		return -EINVAL;
	if (op < ARRAY_SIZE(commands) && commands[op].admin)
		return -EPERM;
	if (op >= ARRAY_SIZE(commands) || !commands[op].answer)
		return -EOPNOTSUPP;
	if (commands[op].device)
		err = device_check(c);
	if (err && c->dump && !c->attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return 0; /* a dump of no devices */
	return err ? err : commands[op].answer(c);
}

static ssize_t nldev_command(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			     int *out_fd)
{
	struct nldev_call c = { .host = f->host, .server = f->server, .sock = (int)(intptr_t)f->priv };
	const u8 *at = in, *end = at + in_len;
	struct nlmsghdr hdr;
	int result;

	*out_len = 0;
	while (!c.err && end - at >= (long)sizeof(hdr)) {
		c.req = (const void *)at;
		hdr = *c.req;
		if (hdr.nlmsg_len < sizeof(hdr) || hdr.nlmsg_len > end - at)
			break;
		at += min((long)NLMSG_ALIGN(hdr.nlmsg_len), (long)(end - at));
		if (!(hdr.nlmsg_flags & NLM_F_REQUEST) || hdr.nlmsg_type < NLMSG_MIN_TYPE)
			continue;
		memset(c.attr, 0, sizeof(c.attr));
		attrs_parse(&c);
		c.dump = (hdr.nlmsg_flags & NLM_F_DUMP) != 0;
		result = nldev_answer(&c);
		if (result || c.dump || hdr.nlmsg_flags & NLM_F_ACK)
			out_end(&c, result);
	}
	return c.err ? c.err : (ssize_t)in_len;
}

static int nldev_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	int size = SOCKET_BUFFER, fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	f->priv = (void *)(intptr_t)fds[0];
	*fd = fds[1];
	return 0;
}

static void nldev_close(struct uv_file *f)
{
	passed_close_socket((int)(intptr_t)f->priv, 0);
}

const struct uv_file_ops nldev_file_ops = { .open = nldev_open, .command = nldev_command, .close = nldev_close };
