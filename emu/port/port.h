/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between a channel adapter's transport and its link: one struct per CA port, with the attributes that
 * the SM has set through the link layer's SMA (the fabric, or a UDP port), and through which packets pass in both
 * directions. Neither side depends on the other.
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
 * The PortInfo members that both sides read. The link layer owns them, for a CA's port in wire_port.attr; they are
 * stored nowhere else. The union below corresponds to the kernel's struct_group_tagged().
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

/* Attributes set by subnet management (PortInfo, GUIDInfo, P_KeyTable). Written by the link layer only. */
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
	bool dcqcn;                          /* Ethernet: whether the port has congestion control */
	u64 kbps;                            /* Ethernet: rate of a simulated link; 0: according to the speed */
	u8 roce_version; /* RoCE version for connections; 0: of the first matching entry of the GID table */
	u8 gids;         /* entries in use: GUIDCap */
	struct wire_l2 gid_l2[WIRE_PORT_GIDS]; /* on Ethernet */
	u8 gid_net[WIRE_PORT_GIDS];            /* prefix length of the address's network; 0: unknown */
	u8 mac[6];                             /* of an Ethernet port's network interface; zero: none */
	u32 netdev_mtu;                        /* of that interface */
	u16 pkey[WIRE_PORT_PKEYS];             /* 0: empty */
	u16 pkeys;                             /* entries: NodeInfo:PartitionCap */
};

enum wire_port_event { /* in the order in which users raise the kernel's asynchronous events */
	WIRE_PORT_ACTIVE,
	WIRE_PORT_ERR,
	WIRE_PORT_LID_CHANGE,
	WIRE_PORT_PKEY_CHANGE,
	WIRE_PORT_SM_CHANGE,
	WIRE_PORT_CLIENT_REREGISTER,
	WIRE_PORT_GID_CHANGE,
	WIRE_PORT_INIT, /* the link has trained, possibly with another port: for the manager, no asynchronous event */
};

/* A violation detected by the transport, which the link layer counts and reports by a trap (10.2.4, 10.9.4, 13.4.9). */
struct wire_port_violation {
	bool qkey; /* false: P_Key (trap 257), true: Q_Key (trap 258) */
	u32 key;
	u8 sl;
	u16 slid, dlid;
	u32 sqp, dqp;
	struct wire_gid sgid, dgid; /* zero if the packet had no GRH */
};

/*
 * That of a received packet whose P_Key or Q_Key is @key. QPs are those of DETH and BTH: a packet of a connected queue
 * pair has no source QP, and the destination of a multicast one is no QP.
 */
struct wire_port_violation wire_port_violation_of(const struct wire_packet *p, bool qkey, u32 key);

/* Implemented by the link layer. */
struct wire_port_ops {
	/*
	 * Sends @p with a complete LRH, except VL, which the link layer derives from the SL. Takes the packet and
	 * returns 0, even if it drops it (link down). -EAGAIN: no credits for this SL; the caller keeps the packet,
	 * and every user's ready() is called when to retry.
	 */
	int (*send)(struct wire_port *port, struct wire_packet *p);
	/* Sends packets with zero-copy payload immediately, or copies their payload. NULL if
	 * wire_port.zcopy is never set. */
	void (*flush_zcopy)(struct wire_port *port);
	/* Sets and clears PortInfo:CapabilityMask bits that belong to software (IsSM, IsCommunicationManagement...). */
	void (*set_cap)(struct wire_port *port, u32 set, u32 clear);
	void (*violation)(struct wire_port *port, const struct wire_port_violation *v);
	/*
	 * The adapter now has members of @mgid, or (@member false) has none. NULL if the link does not need it. 0 or
	 * -errno.
	 */
	int (*group)(struct wire_port *port, const struct wire_gid *mgid, bool member);
	/*
	 * Sets entry @index of an Ethernet port's GID table; a zero @gid clears it. 0, or -EINVAL. NULL: the link
	 * layer manages the table itself.
	 */
	int (*set_gid)(struct wire_port *port, u8 index, const struct wire_gid *gid, const struct wire_l2 *l2);
	/*
	 * Does send() to @dlid read the payload before it returns, if it takes the packet? Then the payload may be in
	 * memory of a program although wire_port.zcopy is not set. NULL: never.
	 */
	bool (*reads_payload)(struct wire_port *port, u16 dlid);
};

/* Implemented by the receivers of packets: the transport (QPN >= 2, multicast) and the MAD layer (QP0, QP1). */
struct wire_port_user {
	void *ctx;
	/* A packet with a valid LRH..BTH. Ownership passes, unless -EAGAIN is returned: then the port keeps it, its
	 * credits remain in use, and wire_port.resume() must follow. */
	int (*receive)(void *ctx, struct wire_packet *p);
	/*
	 * Zero-copy receive. @head has the headers of the next packet, whose payload has not been received and whose
	 * ICRC has not been checked; up to @n - 1 packets of the same length may follow. Returns how many of their
	 * payloads may be received directly to memory, contiguously from *@at on; 0: none. Valid packets are then
	 * passed to receive(), one by one. May be NULL.
	 */
	u32 (*zcopy)(void *ctx, const struct wire_packet *head, u32 n, u8 **at);
	void (*ready)(void *ctx);                             /* credits are available again; may be NULL */
	void (*event)(void *ctx, enum wire_port_event event); /* attr has changed; may be NULL */
};

struct wire_port {
	const struct wire_port_ops *ops;
	void (*resume)(struct wire_port *port); /* by the link layer: delivers packets refused by receive() */
	struct wire_port_attr attr;
	u64 node_guid, port_guid;
	char name[64]; /* host name of the fabric, for messages */
	u8 num;        /* port number of the CA, 1..n */
	bool zcopy;    /* packets may reference memory of programs; ops->flush_zcopy() follows in the same iteration */
	struct wire_port_user data, mad;
	struct wire_port_user watch; /* events only */
};

#define WIRE_PORT_CAP_IS_SM (1u << 1)
/* Bits that software may set: IsSM, IsCommunicationManagement, IsSNMPTunneling, IsDeviceManagement, IsVendorClass. */
#define WIRE_PORT_CAPS_SOFTWARE (1u << 1 | 1u << 16 | 1u << 17 | 1u << 19 | 1u << 20)

static inline bool wire_port_is_ethernet(const struct wire_port *port)
{
	return port->attr.link_layer == WIRE_LINK_ETHERNET;
}

/*
 * The index of @gid in the port's table; 0 if it is not there. On Ethernet it may be there more than once: then the
 * entry of that RoCE @version (0: of the port's default).
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

/*
 * The index of the P_Key of @pkey's partition in the port's table: of the full member's, if it has both, as the
 * kernel's ib_find_pkey(); -1 if there is none.
 */
static inline int wire_port_pkey_find(const struct wire_port *port, u16 pkey)
{
	int n = min(port->attr.pkeys, (u16)WIRE_PORT_PKEYS), limited = -1, i;

	for (i = 0; i < n; i++) {
		if ((port->attr.pkey[i] ^ pkey) & WIRE_PKEY_BASE)
			continue;
		if (port->attr.pkey[i] & WIRE_PKEY_FULL)
			return i;
		limited = limited < 0 ? i : limited;
	}
	return limited;
}

/* The same; 0 if there is none. */
static inline u16 wire_port_pkey_index(const struct wire_port *port, u16 pkey)
{
	return (u16)max(wire_port_pkey_find(port, pkey), 0);
}

/* The index of the first P_Key in the port's table that matches the @pkey of a packet (10.9.3); -1: none. */
static inline int wire_port_pkey_match(const struct wire_port *port, u16 pkey)
{
	int i;

	for (i = 0; i < WIRE_PORT_PKEYS; i++)
		if (wire_pkey_match(port->attr.pkey[i], pkey))
			return i;
	return -1;
}

/* The Layer 2 header fields of packets with the port's GID @index to the station @mac. */
static inline struct wire_l2 wire_port_l2(const struct wire_port *port, u8 index, u8 sl, const u8 mac[6])
{
	struct wire_l2 l2 = port->attr.gid_l2[index % WIRE_PORT_GIDS];

	memcpy(l2.mac, mac, sizeof(l2.mac));
	if (l2.vlan)
		l2.vlan |= (u16)((sl & 7) << WIRE_VLAN_PRIO_SHIFT);
	return l2;
}

/* Reports an event to all users. */
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
