// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports on Ethernet. The daemon reports the MAC address of the port's network interface, which may be added or removed
 * at any time. The kernel's RoCE GID management derives the port's GIDs from the interface's addresses, and the driver
 * passes them on; the interface's carrier is the port's state.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "emu/guest/muslin.h"

static bool ready(const struct net_device *nd)
{
	return netif_running(nd) && netif_carrier_ok(nd);
}

void mu_netdev_port(struct mu_dev *dev, u32 port, struct ib_port_attr *a)
{
	const struct net_device *nd;
	enum ib_mtu mtu = IB_MTU_256;
	bool active = false;

	rcu_read_lock();
	nd = rcu_dereference(dev->eth[port - 1].netdev);
	if (nd) {
		mtu = iboe_get_mtu(READ_ONCE(nd->mtu));
		active = ready(nd);
	}
	rcu_read_unlock();
	a->active_mtu = min_t(u32, a->max_mtu, max_t(u32, mtu, IB_MTU_256));
	a->state = active ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	a->phys_state = active ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	a->ip_gids = true;
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct muslin_gid in = {
		.port = attr->port_num,
		.index = attr->index,
		.version = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP ? 2 : 1,
	};
	struct muslin_answer out;
	u16 vlan;
	int err = rdma_read_gid_l2_fields(attr, &vlan, in.mac);

	if (err)
		return err;
	if (vlan < VLAN_N_VID)
		in.vlan = vlan;
	memcpy(in.gid, attr->gid.raw, sizeof(in.gid));
	return mu_command(to_mu_dev(attr->device), MUSLIN_GID_ADD, &in, sizeof(in), &out, sizeof(out));
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return mu_object(to_mu_dev(attr->device), MUSLIN_GID_DEL, attr->port_num, attr->index, NULL, NULL);
}

/* For consumers that query the driver instead of ib_core: SMC does (smc_pnet_find_rdma_dev). */
static struct net_device *get_netdev(struct ib_device *ib, u32 port)
{
	struct mu_dev *dev = to_mu_dev(ib);
	struct net_device *nd;

	rcu_read_lock();
	nd = rcu_dereference(dev->eth[port - 1].netdev);
	dev_hold(nd);
	rcu_read_unlock();
	return nd;
}

const struct ib_device_ops mu_netdev_ops = { .add_gid = add_gid, .del_gid = del_gid, .get_netdev = get_netdev };

/* The kernel scans the addresses of an interface when it is added, possibly before it is known to be the port's. */
static void rescan(struct work_struct *work)
{
	rdma_roce_rescan_device(&container_of(work, struct mu_dev, rescan)->ib);
}

static void raise_port_event(struct mu_dev *dev, struct mu_eth *e, bool up)
{
	struct ib_event ev = {
		.device = &dev->ib,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = e - dev->eth + 1,
	};

	if (e->up == up)
		return;
	e->up = up;
	ib_dispatch_event(&ev);
}

static void attach(struct mu_dev *dev, struct mu_eth *e, struct net_device *nd)
{
	if (rtnl_dereference(e->netdev) || ib_device_set_netdev(&dev->ib, nd, e - dev->eth + 1))
		return;
	rcu_assign_pointer(e->netdev, nd);
	queue_work(mu_queue, &dev->rescan);
}

/* RCU readers of the pointer finish before the interface is freed. */
static void detach(struct mu_dev *dev, struct mu_eth *e)
{
	RCU_INIT_POINTER(e->netdev, NULL);
	raise_port_event(dev, e, false);
	ib_device_set_netdev(&dev->ib, NULL, e - dev->eth + 1);
}

static void notice(struct mu_dev *dev, struct mu_eth *e, struct net_device *nd, unsigned long event)
{
	if (event == NETDEV_REGISTER && nd->type == ARPHRD_ETHER && ether_addr_equal(nd->perm_addr, e->mac))
		attach(dev, e, nd);
	if (rtnl_dereference(e->netdev) != nd)
		return;
	if (event == NETDEV_UNREGISTER)
		detach(dev, e);
	else if (event == NETDEV_UP || event == NETDEV_DOWN || event == NETDEV_CHANGE)
		raise_port_event(dev, e, ready(nd));
}

/* Called with the rtnetlink lock held. */
static int on_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct mu_dev *dev = container_of(nb, struct mu_dev, netdev_nb);
	u32 i;

	for (i = 0; i < dev->hello.ports; i++)
		if (dev->eth[i].here)
			notice(dev, &dev->eth[i], netdev_notifier_info_to_dev(ptr), event);
	return NOTIFY_DONE;
}

/* Existing interfaces are reported as if they were registered now. */
int mu_netdev_start(struct mu_dev *dev)
{
	INIT_WORK(&dev->rescan, rescan);
	dev->netdev_nb.notifier_call = on_event;
	return register_netdevice_notifier(&dev->netdev_nb);
}

void mu_netdev_stop(struct mu_dev *dev)
{
	unregister_netdevice_notifier(&dev->netdev_nb);
	cancel_work_sync(&dev->rescan);
}
