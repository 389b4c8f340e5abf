// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* NETLINK_RDMA: read requests of RDMA_NL_NLDEV (rdma/rdma_netlink.h), with the answers of the kernel's nldev.c. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/hca/iw.h"
#include "emu/host/context.h"
#include "emu/host/interface.h"
#include "emu/host/netlink.h"
#include "emu/host/ucma.h"

#define ENTRY_MAX    384 /* table entry: an rdma_cm id has two addresses */
#define RANGE_SIZE   20  /* a range of queue pairs */
#define RANGE_ROOM   128 /* a range of queue pairs, and the rest of its entry */
#define DEVICE_INDEX 0
#define UVERBS_ABI   1
#define UVERBS_MAJOR 231

struct nldev_call {
	struct nl_call *nl;
	const struct nlattr *attr[RDMA_NLDEV_ATTR_MAX];
	u32 table; /* offset of the table of objects in this message; 0: none */
};

static u32 attr_u32(const struct nldev_call *c, u32 type, u32 none)
{
	return nl_u32(c->attr[type], none);
}

/* A request for one device must name it; a dump may. */
static int device_check(const struct nldev_call *c)
{
	u32 index = attr_u32(c, RDMA_NLDEV_ATTR_DEV_INDEX, c->nl->dump ? DEVICE_INDEX : ~0u);

	if (!c->nl->dump && !c->attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return -EINVAL;
	return index == DEVICE_INDEX && !c->nl->host->removed ? 0 : -EINVAL;
}

static int port_check(const struct nldev_call *c)
{
	u32 port = attr_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, 0);

	return port && port <= c->nl->host->nports ? (int)port : -EINVAL;
}

static void put_device(struct nldev_call *c)
{
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_DEV_INDEX, DEVICE_INDEX);
	nl_put_string(c->nl, RDMA_NLDEV_ATTR_DEV_NAME, c->nl->host->device);
}

/* Devices and ports */

static int answer_device(struct nldev_call *c)
{
	const struct uv_host *h = c->nl->host;
	bool ethernet = wire_port_is_ethernet(h->port[0]);

	nl_begin(c->nl, c->nl->req->nlmsg_type);
	put_device(c);
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_PORT_INDEX, h->nports);
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_CAP_FLAGS, uv_device_caps(h));
	if (!uv_host_is_soft(h))
		nl_put_string(c->nl, RDMA_NLDEV_ATTR_FW_VERSION, UV_FW_VERSION);
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_NODE_GUID, hca_node_guid(h->hca));
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, hca_sys_image_guid(h->hca));
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, hca_iw(h->hca) ? 4 : 1); /* RDMA_NODE_RNIC, RDMA_NODE_IB_CA */
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	nl_put_string(c->nl, RDMA_NLDEV_ATTR_DEV_PROTOCOL, hca_iw(h->hca) ? "iw" : ethernet ? "roce" : "ib");
	nl_send(c->nl);
	return 0;
}

static u32 netdev_index(const struct uv_host *h, const char *name)
{
	struct uv_interface list[UV_INTERFACES];
	u32 n = uv_interfaces(h, list), i;
	char path[64], text[16] = "";
	ssize_t got;
	int fd;

	for (i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return list[i].index;
	snprintf(path, sizeof(path), "/sys/class/net/%.15s/ifindex", name); /* of the machine */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return got > 0 ? (u32)strtoul(text, NULL, 10) : 0;
}

static void answer_one_port(struct nldev_call *c, u32 port)
{
	const struct uv_host *h = c->nl->host;
	const struct wire_port_attr *a = &h->port[port - 1]->attr;
	const char *netdev;

	nl_begin(c->nl, c->nl->req->nlmsg_type);
	put_device(c);
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (a->link_layer != WIRE_LINK_ETHERNET) {
		nl_put_u64(c->nl, RDMA_NLDEV_ATTR_CAP_FLAGS, a->cap_mask);
		nl_put_u64(c->nl, RDMA_NLDEV_ATTR_SUBNET_PREFIX, wire_gid_prefix(&a->gid[0]));
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_LID, a->lid);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_SM_LID, a->sm_lid);
		nl_put_u8(c->nl, RDMA_NLDEV_ATTR_LMC, a->lmc);
	}
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_PORT_STATE, a->state);
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, a->phys_state);
	if (a->link_layer == WIRE_LINK_ETHERNET && h->gid_netdev) {
		netdev = h->gid_netdev(h, 0);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_NDEV_INDEX, netdev_index(h, netdev));
		nl_put_string(c->nl, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	}
	nl_send(c->nl);
}

static int answer_port(struct nldev_call *c)
{
	int port = c->nl->dump ? 0 : port_check(c);
	u32 i;

	if (c->nl->dump && !c->attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return -EINVAL;
	for (i = 1; c->nl->dump && i <= c->nl->host->nports; i++)
		answer_one_port(c, i);
	if (port > 0)
		answer_one_port(c, (u32)port);
	return port < 0 ? port : 0;
}

static int answer_system(struct nldev_call *c)
{
	nl_begin(c->nl, c->nl->req->nlmsg_type);
	nl_put_u8(c->nl, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1); /* shared */
	nl_put_u8(c->nl, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	nl_send(c->nl);
	return 0;
}

/* Device files by the name of their kind, per-port ones with the port number. */
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

	for (k = 0; k < ARRAY_SIZE(kinds) && !nl_is(c->attr[RDMA_NLDEV_ATTR_CHARDEV_TYPE], kinds[k].type);)
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
	if (kinds[k].port && !c->nl->host->umad[port - 1])
		return -EOPNOTSUPP;
	snprintf(name, sizeof(name), kinds[k].device ? "%s%u" : "%s", kinds[k].type, port - 1u);
	nl_begin(c->nl, c->nl->req->nlmsg_type);
	if (kinds[k].device)
		put_device(c);
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_CHARDEV, makedev(kinds[k].major, kinds[k].minor + (u32)port - 1));
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_CHARDEV_ABI, kinds[k].abi);
	nl_put_string(c->nl, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	if (!strcmp(kinds[k].type, "uverbs")) /* all devices of muslin use librxe */
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, RDMA_DRIVER_RXE);
	nl_send(c->nl);
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
	u32 entry = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	nl_put_string(c->nl, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	nl_put_u64(c->nl, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	nl_nest_end(c->nl, entry);
}

static int answer_resources(struct nldev_call *c)
{
	const struct uv_host *h = c->nl->host;
	u32 table;

	nl_begin(c->nl, c->nl->req->nlmsg_type);
	put_device(c);
	table = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_summary(c, "pd", objects_of(h->hca, "pd"));
	put_summary(c, "cq", objects_of(h->hca, "cq"));
	put_summary(c, "qp", objects_of(h->hca, "qp"));
	put_summary(c, "cm_id", h->cm ? ucma_host_ids(h->cm) : 0);
	put_summary(c, "mr", objects_of(h->hca, "mr"));
	put_summary(c, "ctx", objects_of(h->hca, "contexts"));
	put_summary(c, "srq", objects_of(h->hca, "srq"));
	nl_nest_end(c->nl, table);
	nl_send(c->nl);
	return 0;
}

/*
 * Lists of programs' objects, with the attributes that nldev.c gives a reader without CAP_NET_ADMIN: no keys. Objects
 * of the management layer have no process. As many entries per message as fit.
 */
static u32 entry_begin(struct nldev_call *c, u16 table, u16 entry)
{
	if (!c->table) {
		nl_begin(c->nl, c->nl->req->nlmsg_type);
		put_device(c);
		c->table = nl_nest_begin(c->nl, table);
	}
	return nl_nest_begin(c->nl, entry);
}

static void table_end(struct nldev_call *c)
{
	if (!c->table)
		return;
	nl_nest_end(c->nl, c->table);
	c->table = 0;
	nl_send(c->nl);
}

static void entry_end(struct nldev_call *c, u32 entry, pid_t pid)
{
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_PID, (u32)pid);
	nl_nest_end(c->nl, entry);
	if (!nl_has_room(c->nl, ENTRY_MAX))
		table_end(c);
}

/* One uverbs file in a list. */
struct file_list {
	struct nldev_call *c;
	struct uverbs *u;
	u32 ctxn;
	pid_t pid;
	u32 n; /* objects looked at, where they have no place in a table */
};

/* Whether the object @n of the file is to be put now; false with nl->more: the turn is over. */
static bool is_due(const struct file_list *l, u32 n)
{
	return nl_due(l->c->nl, l->u->file->owner, n);
}

static void put_qp(const struct file_list *l, const struct verbs_qp *qp)
{
	struct nldev_call *c = l->c;
	u32 entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	bool connected = qp->limits.type == HCA_QPT_RC || qp->limits.type == HCA_QPT_UC;
	struct hca_qp_attr a = { 0 };
	struct verbs_qp *same;

	verbs_qp_query(&l->u->verbs, qp->handle, &a, &same);
	if (a.port)
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_PORT_INDEX, a.port);
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_LQPN, qp->qpn);
	if (connected) {
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_RQPN, a.dest_qpn);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_RQ_PSN, a.rq_psn);
	}
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_SQ_PSN, a.sq_psn);
	if (connected)
		nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, a.path_mig_state);
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_TYPE, qp->limits.type);
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_STATE, a.state);
	entry_end(c, entry, l->pid);
}

static void put_qps(struct file_list *l)
{
	const struct verbs_qp *qp;
	u32 i;

	table_for_each (&l->u->verbs.qps, i, qp)
		if (is_due(l, i))
			put_qp(l, qp);
}

static void put_cqs(struct file_list *l)
{
	struct nldev_call *c = l->c;
	struct verbs_cq *cq;
	u32 i, entry;

	table_for_each (&l->u->verbs.cqs, i, cq) {
		if (!is_due(l, i))
			continue;
		entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_CQE, container_of(cq, struct uv_cq, cq)->ring.ring.mask);
		nl_put_u64(c->nl, RDMA_NLDEV_ATTR_RES_USECNT,
			   hca_cq_resource(l->u->verbs.ctx, cq->cqn).users + cq->specials);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_CQN, cq->cqn);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
		entry_end(c, entry, l->pid);
	}
}

static void put_range(struct nldev_call *c, u32 first, u32 last)
{
	u32 entry;

	if (!first || !nl_has_room(c->nl, RANGE_ROOM))
		return;
	entry = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	if (first == last) {
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_LQPN, first);
	} else {
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_MIN_RANGE, first);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_MAX_RANGE, last);
	}
	nl_nest_end(c->nl, entry);
}

/* The queue pairs of an SRQ as ranges of numbers; rdma(8) shows no SRQ without that table. */
static void put_srq_qps(struct file_list *l, u32 srqn, u32 users)
{
	struct nldev_call *c = l->c;
	u32 table = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_RES_QP), first = 0, last = 0, i;
	const struct verbs_qp *qp;

	table_for_each (&l->u->verbs.qps, i, qp) {
		if (!users)
			break;
		c->nl->cost++;
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
	nl_nest_end(c->nl, table);
}

static void put_srqs(struct file_list *l)
{
	struct nldev_call *c = l->c;
	const struct verbs_srq *srq;
	struct hca_resource r;
	u32 i, entry;

	table_for_each (&l->u->verbs.srqs, i, srq) {
		if (!is_due(l, i))
			continue;
		r = hca_srq_resource(l->u->verbs.ctx, srq->srqn);
		if (!nl_has_room(c->nl, (u32)min((u64)r.users * RANGE_SIZE, (u64)NL_ANSWER_MAX / 2) + ENTRY_MAX))
			table_end(c); /* for more of its ranges */
		entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_SRQN, srq->srqn);
		nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_TYPE, IB_UVERBS_SRQT_BASIC);
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_PDN, r.pdn);
		put_srq_qps(l, srq->srqn, r.users);
		entry_end(c, entry, l->pid);
	}
}

static bool put_pd(void *arg, const struct hca_resource *r)
{
	struct file_list *l = arg;
	u32 entry;

	if (!is_due(l, l->n++))
		return !l->c->nl->more;
	entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY);
	nl_put_u64(l->c->nl, RDMA_NLDEV_ATTR_RES_USECNT, r->users);
	nl_put_u32(l->c->nl, RDMA_NLDEV_ATTR_RES_PDN, r->pdn);
	nl_put_u32(l->c->nl, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
	entry_end(l->c, entry, l->pid);
	return true;
}

static void put_pds(struct file_list *l)
{
	hca_pd_each(l->u->verbs.ctx, put_pd, l);
}

static bool put_mr(void *arg, const struct hca_resource *r)
{
	struct file_list *l = arg;
	u32 entry;

	if (!is_due(l, l->n++))
		return !l->c->nl->more;
	entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
	nl_put_u64(l->c->nl, RDMA_NLDEV_ATTR_RES_MRLEN, r->len);
	nl_put_u32(l->c->nl, RDMA_NLDEV_ATTR_RES_MRN, r->num);
	nl_put_u32(l->c->nl, RDMA_NLDEV_ATTR_RES_PDN, r->pdn);
	entry_end(l->c, entry, l->pid);
	return true;
}

static void put_mrs(struct file_list *l)
{
	hca_mr_each(l->u->verbs.ctx, put_mr, l);
}

static void put_ctx(struct file_list *l)
{
	u32 entry;

	if (!is_due(l, 0))
		return;
	entry = entry_begin(l->c, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY);
	nl_put_u32(l->c->nl, RDMA_NLDEV_ATTR_RES_CTXN, l->ctxn);
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
	struct file_list l = { c, u, (u32)f->owner, f->opener->pid, 0 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists) && !u->revoked && !c->nl->more && f->owner >= c->nl->at.file; i++)
		if (lists[i].op == RDMA_NL_GET_OP(c->nl->req->nlmsg_type))
			lists[i].put(&l);
	table_end(c);
}

static int answer_list(struct nldev_call *c)
{
	if (!c->nl->dump)
		return -EOPNOTSUPP;
	uv_server_each_file(c->nl->server, c->nl->host, &uverbs_file_ops, put_file, c);
	return 0;
}

static void put_address(struct nldev_call *c, u16 type, const union rdma_sockaddr *a)
{
	struct sockaddr_storage ss = { 0 };

	if (!a->sa.sa_family)
		return;
	memcpy(&ss, a, rdma_sockaddr_len(a));
	nl_put(c->nl, type, &ss, sizeof(ss));
}

static bool put_cm_id(void *arg, const struct rdma_id *id, u32 num, pid_t pid)
{
	struct nldev_call *c = arg;
	u32 entry;

	if (!nl_due(c->nl, 0, num))
		return !c->nl->more;
	if (!rdma_id_port(id)) /* not bound to a device */
		return true;
	entry = entry_begin(c, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_PORT_INDEX, rdma_id_port(id));
	if (rdma_id_qpn(id)) {
		nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_LQPN, rdma_id_qpn(id));
		nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_TYPE, rdma_id_qp_type(id));
	}
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_PS, rdma_id_space(id));
	nl_put_u8(c->nl, RDMA_NLDEV_ATTR_RES_STATE, rdma_id_state(id));
	put_address(c, RDMA_NLDEV_ATTR_RES_SRC_ADDR, rdma_id_src(id));
	put_address(c, RDMA_NLDEV_ATTR_RES_DST_ADDR, rdma_id_dst(id));
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_RES_CM_IDN, num);
	entry_end(c, entry, pid);
	return true;
}

static int answer_cm_ids(struct nldev_call *c)
{
	if (!c->nl->dump)
		return -EOPNOTSUPP;
	if (c->nl->host->cm)
		ucma_host_each(c->nl->host->cm, c->nl->at.object, put_cm_id, c);
	table_end(c);
	return 0;
}

/* Counters of a port, as in sysfs hw_counters. */
static int answer_counters(struct nldev_call *c)
{
	int port = port_check(c);
	const char *name;
	u32 n, table, entry;

	if (c->nl->dump)
		return -EOPNOTSUPP;
	if (port < 0)
		return port;
	nl_begin(c->nl, c->nl->req->nlmsg_type);
	put_device(c);
	nl_put_u32(c->nl, RDMA_NLDEV_ATTR_PORT_INDEX, (u32)port);
	table = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (n = 0; (name = hca_counter_name(n)) && nl_has_room(c->nl, ENTRY_MAX); n++) {
		entry = nl_nest_begin(c->nl, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		nl_put_string(c->nl, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
		nl_put_u64(c->nl, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
			   hca_counter(c->nl->host->hca, (u8)port, n));
		nl_nest_end(c->nl, entry);
	}
	nl_nest_end(c->nl, table);
	nl_send(c->nl);
	return 0;
}

/* Requests */

static const struct {
	int (*answer)(struct nldev_call *c);
	bool device; /* the request names a device */
	bool admin;  /* requires CAP_NET_ADMIN, which no program has here */
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

int nldev_answer(struct nl_call *nl)
{
	u32 op = RDMA_NL_GET_OP(nl->req->nlmsg_type);
	struct nldev_call c = { .nl = nl };
	int err = 0;

	if (RDMA_NL_GET_CLIENT(nl->req->nlmsg_type) != RDMA_NL_NLDEV)
		return -EINVAL;
	if (op < ARRAY_SIZE(commands) && commands[op].admin)
		return -EPERM;
	if (op >= ARRAY_SIZE(commands) || !commands[op].answer)
		return -EOPNOTSUPP;
	nl_attrs(nl, 0, c.attr, ARRAY_SIZE(c.attr));
	if (commands[op].device)
		err = device_check(&c);
	if (err && nl->dump && !c.attr[RDMA_NLDEV_ATTR_DEV_INDEX])
		return 0; /* a dump without devices */
	return err ? err : commands[op].answer(&c);
}
