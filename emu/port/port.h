/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seam between a channel adapter's transport and its link: one struct per CA port, in which the link layer (the
 * fabric, or a UDP port) keeps what the SMA was told, and through which packets pass both ways. Neither side sees
 * the other.
 */
#ifndef MUSLIN_PORT_H
#define MUSLIN_PORT_H

#include "emu/packet/packet.h"
#include "emu/wire/gid.h"

#define WIRE_PORT_GIDS  16
#define WIRE_PORT_PKEYS 64

struct wire_port;

enum wire_link_layer {
	WIRE_LINK_IB,
	WIRE_LINK_ETHERNET
};

/*
 * PortInfo as far as both sides of the seam read it. The link layer owns it, for a CA's port in wire_port.attr; it is stored nowhere
 * else. A kernel programmer knows the union below as struct_group_tagged().
 */
#define WIRE_PORTINFO_FIELDS                                                                                     \
	u8 state;      /* PortState, 1 Down ... 4 Active */                                                      \
	u8 phys_state; /* PortPhysicalState */                                                                   \
	u8 lmc;                                                                                                  \
	u8 sm_sl;                                                                                                \
	u16 lid;                                                                                                 \
	u16 sm_lid;                                                                                              \
	u8 mtu_cap, mtu_active; /* IBTA codes 1..5; the active one is NeighborMTU */                             \
	u8 width_active, width_supported, width_enabled;                                                         \
	u8 speed_active, speed_supported, speed_enabled;             /* LinkSpeed codes (SDR 1, DDR 2, QDR 4) */ \
	u8 speed_ext_active, speed_ext_supported, speed_ext_enabled; /* LinkSpeedExt (FDR 1 ... XDR 32) */       \
	u8 fdr10_active, fdr10_supported, fdr10_enabled;             /* of MLNXExtendedPortInfo */               \
	u8 subnet_timeout;                                                                                       \
	u32 cap_mask;                                                                                            \
	u16 pkey_violations, qkey_violations, mkey_violations;

struct wire_portinfo {
	WIRE_PORTINFO_FIELDS
};

/* What subnet management has set (PortInfo, GUIDInfo, P_KeyTable). Written by the link layer only. */
struct wire_port_attr {
	enum wire_link_layer link_layer;
	union {
		struct {
			WIRE_PORTINFO_FIELDS
		};
		struct wire_portinfo info;
	};
	u8 max_vl; /* VLCap code */
	u8 init_type_reply;
	struct wire_gid gid[WIRE_PORT_GIDS]; /* zero: empty */
	bool dcqcn;                          /* Ethernet: congestion control is an option of the port */
	u64 kbps;                            /* Ethernet: of a simulated link; 0: as the speed says */
	u8 roce_version; /* of RoCE, which connections are made by; 0: as the table's order has it */
	u8 gids;         /* entries in use by number: GUIDCap */
	struct wire_l2 gid_l2[WIRE_PORT_GIDS]; /* on Ethernet */
	u8 gid_net[WIRE_PORT_GIDS];            /* bits of the address that are its network's; 0: not known */
	u8 mac[6];                 /* of the network interface that an Ethernet port is tied to; zero: none */
	u32 netdev_mtu;            /* of that interface */
	u16 pkey[WIRE_PORT_PKEYS]; /* 0: empty */
	u16 pkeys;                 /* entries: NodeInfo:PartitionCap */
};

enum wire_port_event { /* in the order of the kernel's asynchronous events, which the user raises from them */
	WIRE_PORT_ACTIVE,
	WIRE_PORT_ERR,
	WIRE_PORT_LID_CHANGE,
	WIRE_PORT_PKEY_CHANGE,
	WIRE_PORT_SM_CHANGE,
	WIRE_PORT_CLIENT_REREGISTER,
	WIRE_PORT_GID_CHANGE,
};

/* A violation seen by the transport, which the link layer counts and reports by trap (10.2.4, 10.9.4, 13.4.9). */
struct wire_port_violation {
	bool qkey; /* false: P_Key (trap 257), true: Q_Key (trap 258) */
	u32 key;
	u8 sl;
	u16 slid, dlid;
	u32 sqp, dqp;
	struct wire_gid sgid, dgid; /* zero where the packet had no GRH */
};

/* Implemented by the link layer. */
struct wire_port_ops {
	/*
	 * Sends @p, with LRH complete but for VL, which the link layer derives from the SL. Takes the packet and returns 0,
	 * also where it must be dropped (link down). -EAGAIN: no credits for this SL; the caller keeps the packet, and
	 * every user's ready() is called when to try again.
	 */
	int (*send)(struct wire_port *port, struct wire_packet *p);
	/* Sends packets with zero-copy payload at once, or copies their payload. NULL where wire_port.zcopy is never set. */
	void (*flush_zcopy)(struct wire_port *port);
	/* Sets and clears PortInfo:CapabilityMask bits that belong to software (IsSM, IsCommunicationManagement...). */
	void (*set_cap)(struct wire_port *port, u32 set, u32 clear);
	void (*violation)(struct wire_port *port, const struct wire_port_violation *v);
	/*
	 * The adapter has members of @mgid from now on, or (@member false) none any more. NULL where the link's management is
	 * told by others. 0 or -errno.
	 */
	int (*group)(struct wire_port *port, const struct wire_gid *mgid, bool member);
	/*
	 * Entry @index of the GID table, by the manager of the addresses of an Ethernet port; a zero @gid empties it. 0, or
	 * -EINVAL. NULL: the link layer fills the table itself.
	 */
	int (*set_gid)(struct wire_port *port, u8 index, const struct wire_gid *gid, const struct wire_l2 *l2);
};

/* Implemented by the receivers of packets: the transport (QPN >= 2, multicast) and the MAD layer (QP0, QP1). */
struct wire_port_user {
	void *ctx;
	/* A packet with a valid LRH..BTH. Ownership passes, unless -EAGAIN: the port keeps it, credits stay taken, and
	 * wire_port_resume() must follow. */
	int (*receive)(void *ctx, struct wire_packet *p);
	/*
	 * Zero-copy receive. @head has the headers of the next packet, whose payload has not been received and whose ICRC has not been
	 * checked; up to @n - 1 packets of the same length may follow. Returns how many of their payloads may be received directly
	 * to memory, back to back at *@at; 0: none. Packets that are valid then come by receive(), one by one. May be NULL.
	 */
	u32 (*zcopy)(void *ctx, const struct wire_packet *head, u32 n, u8 **at);
	void (*ready)(void *ctx);                             /* credits came back; may be NULL */
	void (*event)(void *ctx, enum wire_port_event event); /* attr has changed; may be NULL */
};

struct wire_port {
	const struct wire_port_ops *ops;
	void (*resume)(struct wire_port *port); /* by the link layer: delivers what a user refused */
	struct wire_port_attr attr;
	u64 node_guid, port_guid;
	char name[64]; /* host name of the fabric, for messages */
	u8 num;        /* port number of the CA, 1..n */
	bool zcopy; /* zero-copy: packets may reference memory of programs; ops->flush_zcopy() follows in the same turn */
	struct wire_port_user data, mad;
	struct wire_port_user watch; /* event alone */
};

#define WIRE_PORT_CAP_IS_SM (1u << 1)
/* IsSM, IsCommunicationManagement, IsSNMPTunneling, IsDeviceManagement, IsVendorClass: those that software may set. */
#define WIRE_PORT_CAPS_SOFTWARE (1u << 1 | 1u << 16 | 1u << 17 | 1u << 19 | 1u << 20)

static inline bool wire_port_is_ethernet(const struct wire_port *port)
{
	return port->attr.link_layer == WIRE_LINK_ETHERNET;
}

/*
 * The index of @gid in the port's table; 0 where it is not there. On Ethernet it may stand there more than once: then the one of
 * that @version of RoCE, 0: of the port's default.
 */
static inline u8 wire_port_gid_index(const struct wire_port *port, const struct wire_gid *gid, u8 version)
{
	u8 i, n = min(port->attr.gids, (u8)WIRE_PORT_GIDS), found = n;

	if (!version)
		version = port->attr.roce_version;
	for (i = n; i--;)
		if (wire_gid_equal(&port->attr.gid[i], gid) &&
		    (found == n || port->attr.gid_l2[found].version != version ||
		     port->attr.gid_l2[i].version == version))
			found = i;
	return found == n ? 0 : found;
}

/* The index in the port's table of the first P_Key of @pkey's partition; 0 where there is none. */
static inline u16 wire_port_pkey_index(const struct wire_port *port, u16 pkey)
{
	u16 i;

	for (i = 0; i < min(port->attr.pkeys, (u16)WIRE_PORT_PKEYS); i++)
		if ((port->attr.pkey[i] & WIRE_PKEY_BASE) == (pkey & WIRE_PKEY_BASE))
			return i;
	return 0;
}

/* What packets of the port's GID @index have below the network header, but for the other station. */
static inline struct wire_l2 wire_port_l2(const struct wire_port *port, u8 index, u8 sl, const u8 mac[6])
{
	struct wire_l2 l2 = port->attr.gid_l2[index % WIRE_PORT_GIDS];

	memcpy(l2.mac, mac, sizeof(l2.mac));
	if (l2.vlan)
		l2.vlan |= (u16)((sl & 7) << WIRE_VLAN_PRIO_SHIFT);
	return l2;
}

/* Tells all users of an event. */
static inline void wire_port_event(struct wire_port *port, enum wire_port_event event)
{
	const struct wire_port_user *const users[] = { &port->data, &port->mad, &port->watch };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(users); i++)
		if (users[i]->event)
			users[i]->event(users[i]->ctx, event);
}

static inline int wire_port_send(struct wire_port *port, struct wire_packet *p)
{
	return port->ops->send(port, p);
}

#endif
