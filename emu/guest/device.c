// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attributes of the device and its ports, and its registration with ib_core. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_user_rxe.h>

#include "emu/guest/compat.h"
#include "emu/guest/muslin.h"

#define MAX_MESSAGE (1u << 31)
#define RXE_ABI     2 /* of rdma_user_rxe.h */

static int fetch_port(struct ib_device *ibdev, u32 port, struct muslin_port_answer *p)
{
	struct muslin_object in = { .number = port };

	return mu_command(to_mu_dev(ibdev), MUSLIN_QUERY_PORT, &in, sizeof(in), p, sizeof(*p));
}

static int query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *a)
{
	struct muslin_port_answer p;
	int err = fetch_port(ibdev, port, &p);

	if (err)
		return err;
	a->state = p.state;
	a->phys_state = p.phys_state;
	a->max_mtu = p.mtu_cap;
	a->active_mtu = p.mtu_active;
	a->gid_tbl_len = MUSLIN_GIDS;
	a->pkey_tbl_len = p.pkeys;
	a->port_cap_flags = p.cap_mask;
	a->max_msg_sz = MAX_MESSAGE;
	a->bad_pkey_cntr = p.pkey_violations;
	a->qkey_viol_cntr = p.qkey_violations;
	a->lid = p.lid;
	a->lmc = p.lmc;
	a->sm_lid = p.sm_lid;
	a->sm_sl = p.sm_sl;
	a->subnet_timeout = p.subnet_timeout;
	a->init_type_reply = p.init_type_reply;
	a->max_vl_num = p.max_vl;
	a->active_width = p.width_active;
	a->active_speed = p.speed;
	if (p.ethernet)
		mu_netdev_port(to_mu_dev(ibdev), port, a);
	return 0;
}

static int query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	struct muslin_port_answer p;
	int err = index < 0 || index >= MUSLIN_GIDS ? -EINVAL : fetch_port(ibdev, port, &p);

	if (err)
		return err;
	memcpy(gid->raw, p.gid[index], sizeof(gid->raw));
	/* The core uses the prefix of the last GID, even if that has no GUID. */
	if (!gid->global.interface_id)
		memcpy(gid->raw, p.gid[0], sizeof(gid->global.subnet_prefix));
	return 0;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	struct muslin_port_answer p;
	int err = index >= MUSLIN_PKEYS ? -EINVAL : fetch_port(ibdev, port, &p);

	if (!err)
		*pkey = p.pkey[index];
	return err;
}

static bool is_ethernet(struct ib_device *ibdev, u32 port)
{
	return to_mu_dev(ibdev)->eth[port - 1].here;
}

static int get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *im)
{
	struct ib_port_attr attr = {};
	int err;

	im->core_cap_flags = is_ethernet(ibdev, port) ? RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP
						      : RDMA_CORE_PORT_IBA_IB;
	err = ib_query_port(ibdev, port, &attr);
	if (err)
		return err;
	im->pkey_tbl_len = attr.pkey_tbl_len;
	im->gid_tbl_len = attr.gid_tbl_len;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return is_ethernet(ibdev, port) ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

/* From kernel 7.2 on @udata is NULL if ib_core itself is the caller. */
static int query_device(struct ib_device *ibdev, struct ib_device_attr *a, struct ib_udata *udata)
{
	const struct muslin_hello_answer *h = &to_mu_dev(ibdev)->hello;

	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->fw_ver = 1;
	a->sys_image_guid = cpu_to_be64(h->sys_image_guid);
	a->vendor_id = 0xffffff; /* as rdma_rxe, whose provider in rdma-core drives the device */
	a->max_mr_size = h->max_mr_size;
	a->page_size_cap = SZ_4K | SZ_64K | SZ_2M | SZ_1G;
	a->max_qp = h->max_qp;
	a->max_qp_wr = h->max_qp_wr;
	a->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR | IB_DEVICE_AUTO_PATH_MIG |
			      IB_DEVICE_CHANGE_PHY_PORT | IB_DEVICE_SRQ_RESIZE | IB_DEVICE_PORT_ACTIVE_EVENT |
			      IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_MEM_MGT_EXTENSIONS |
			      IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (h->features & MUSLIN_FEATURE_UD_CSUM)
		a->device_cap_flags |= IB_DEVICE_UD_IP_CSUM;
	if (h->features & MUSLIN_FEATURE_UD_LSO)
		a->kernel_cap_flags |= IBK_UD_TSO;
	a->max_send_sge = h->max_sge;
	a->max_recv_sge = h->max_sge;
	a->max_sge_rd = h->max_sge;
	a->max_cq = h->max_cq;
	a->max_cqe = h->max_cqe;
	a->max_mr = h->max_mr;
	a->max_mw = h->max_mw;
	a->max_pd = h->max_pd;
	a->max_qp_rd_atom = h->max_rd_atom;
	a->max_qp_init_rd_atom = h->max_rd_atom;
	a->max_res_rd_atom = h->max_rd_atom * h->max_qp;
	a->atomic_cap = IB_ATOMIC_HCA;
	a->max_mcast_grp = h->max_mcast_grp;
	a->max_mcast_qp_attach = h->max_mcast_qp_attach;
	a->max_total_mcast_qp_attach = h->max_mcast_grp * h->max_mcast_qp_attach;
	a->max_ah = h->max_ah;
	a->max_srq = h->max_srq;
	a->max_srq_wr = h->max_srq_wr;
	a->max_srq_sge = h->max_srq_sge;
	a->max_fast_reg_page_list_len = MUSLIN_REG_PAGES;
	a->max_pkeys = MUSLIN_PKEYS;
	a->local_ca_ack_delay = h->local_ca_ack_delay;
	return 0;
}

static int modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *m)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, m->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static int modify_port(struct ib_device *ibdev, u32 port, int mask, struct ib_port_modify *m)
{
	struct muslin_set_cap in = { .port = port, .set = m->set_port_cap_mask, .clear = m->clr_port_cap_mask };
	struct muslin_answer out;

	if (mask & ~IB_PORT_RESET_QKEY_CNTR)
		return -EOPNOTSUPP;
	return mu_command(to_mu_dev(ibdev), MUSLIN_SET_CAP, &in, sizeof(in), &out, sizeof(out));
}

static void get_fw(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u", to_mu_dev(ibdev)->hello.version);
}

static int alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *uctx) {}

static void disassociate_ucontext(struct ib_ucontext *uctx) {}

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "muslin\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%x\n", MUSLIN_ABI_VERSION);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "muslin\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *attrs[] = { &dev_attr_hca_type.attr, &dev_attr_hw_rev.attr, &dev_attr_board_id.attr, NULL };
static const struct attribute_group group = { .attrs = attrs };

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE, /* selects rdma-core's rxe provider */
	.uverbs_abi_ver = RXE_ABI,
	.device_group = &group,

	.alloc_mr = mu_alloc_mr,
	.alloc_mw = mu_alloc_mw,
	.alloc_pd = mu_alloc_pd,
	.alloc_ucontext = alloc_ucontext,
	.attach_mcast = mu_attach_mcast,
	.create_ah = mu_create_ah,
	.create_qp = mu_create_qp,
	.create_srq = mu_create_srq,
	.create_user_ah = mu_create_user_ah,
	.dealloc_mw = mu_dealloc_mw,
	.dealloc_pd = mu_dealloc_pd,
	.dealloc_ucontext = dealloc_ucontext,
	.dereg_mr = mu_dereg_mr,
	.destroy_ah = mu_destroy_ah,
	.destroy_cq = mu_destroy_cq,
	.destroy_qp = mu_destroy_qp,
	.destroy_srq = mu_destroy_srq,
	.detach_mcast = mu_detach_mcast,
	.disassociate_ucontext = disassociate_ucontext,
	.get_dev_fw_str = get_fw,
	.get_dma_mr = mu_get_dma_mr,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.map_mr_sg = mu_map_mr_sg,
	.mmap = mu_mmap,
	.mmap_free = mu_mmap_free,
	.modify_device = modify_device,
	.modify_port = modify_port,
	.modify_qp = mu_modify_qp,
	.modify_srq = mu_modify_srq,
	.poll_cq = mu_poll_cq,
	.post_recv = mu_post_recv,
	.post_send = mu_post_send,
	.post_srq_recv = mu_post_srq_recv,
	.process_mad = mu_process_mad,
	.query_ah = mu_query_ah,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = mu_query_qp,
	.query_srq = mu_query_srq,
	.req_notify_cq = mu_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, mu_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, mu_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, mu_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, mu_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, mu_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, mu_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, mu_ucontext, ib),
};

static int fetch_link_layers(struct mu_dev *dev)
{
	struct muslin_port_answer p;
	u32 port;
	int err;

	for (port = 1; port <= dev->hello.ports; port++) {
		err = fetch_port(&dev->ib, port, &p);
		if (err)
			return err;
		dev->eth[port - 1].here = p.ethernet;
		ether_addr_copy(dev->eth[port - 1].mac, p.mac);
	}
	return 0;
}

int mu_register(struct mu_dev *dev)
{
	struct ib_device *ib = &dev->ib;
	int err = fetch_link_layers(dev);

	if (err)
		return err;
	ib->dev.parent = dev->vdev->dev.parent;
	ib->node_type = RDMA_NODE_IB_CA;
	ib->node_guid = cpu_to_be64(dev->hello.node_guid);
	ib->phys_port_cnt = dev->hello.ports;
	ib->num_comp_vectors = MUSLIN_VECTORS;
	ib->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) | BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	strscpy(ib->node_desc, dev->hello.name, sizeof(ib->node_desc));
	ib_set_device_ops(ib, &ops);
	ib_set_device_ops(ib, &mu_cq_ops);
	ib_set_device_ops(ib, &mu_mr_ops);
	ib_set_device_ops(ib, &mu_netdev_ops);
	err = ib_register_device(ib, "muslin%d", dev->vdev->dev.parent);
	if (err)
		return err;
	err = mu_netdev_start(dev);
	if (err)
		ib_unregister_device(ib);
	return err;
}

void mu_unregister(struct mu_dev *dev)
{
	mu_netdev_stop(dev);
	ib_unregister_device(&dev->ib);
}
