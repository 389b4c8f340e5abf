// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a guest's kernel sets of its ports: GIDs, with MADs of an Ethernet port, and capabilities. */
#include "emu/lib/row.h"
#include "emu/virtio/fixture.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"
#include "emu/wire/opcode.h"

static struct muslin_gid gid_add(u8 index, u8 version, u16 vlan)
{
	return (struct muslin_gid){
		.cmd = { .op = MUSLIN_GID_ADD },
		.port = 2,
		.index = index,
		.version = version,
		.mac = { 2, 0, 0, 0, 0, 9 },
		.vlan = vlan,
		.gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};
}

static void test_gids(struct guest *g)
{
	const struct muslin_port_answer *p = (const void *)(g->f.mem + GUEST_OUT);
	static const struct wire_gid none;
	struct muslin_gid add = gid_add(3, 2, 7);
	const struct wire_port_attr *a = &g->port[1].attr;

	row(100, "an Ethernet port",
	    guest_object(g, MUSLIN_QUERY_PORT, 2, 0) == 0 && p->ethernet && !memcmp(p->mac, add.mac, 6));
	row(101, "a GID", guest_command(g, &add, sizeof(add)) == 0 && !memcmp(a->gid[3].raw, add.gid, 16));
	row(102, "on its VLAN",
	    a->gid_l2[3].vlan == 7 && a->gid_l2[3].version == 2 && !memcmp(a->gid_l2[3].mac, add.mac, 6));
	row(103, "that is deleted",
	    guest_object(g, MUSLIN_GID_DEL, 2, 3) == 0 && wire_gid_equal(&a->gid[3], &none) && !a->gid_l2[3].vlan);
	add.port = 1;
	row(104, "not on InfiniBand", guest_command(g, &add, sizeof(add)) == -EOPNOTSUPP);
	row(105, "nor taken from it", guest_object(g, MUSLIN_GID_DEL, 1, 0) == -EOPNOTSUPP);
	add.port = 3;
	row(106, "no such port", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(MUSLIN_GIDS, 2, 0);
	row(107, "no such index",
	    guest_command(g, &add, sizeof(add)) == -EINVAL &&
		    guest_object(g, MUSLIN_GID_DEL, 2, MUSLIN_GIDS) == -EINVAL);
	add = gid_add(0, 3, 0);
	row(108, "no such version", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 4095);
	row(109, "no such VLAN", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 0);
	add.mac[0] = 1;
	row(110, "a group's address", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 0);
	memset(add.gid, 0, sizeof(add.gid));
	row(111, "no GID at all", guest_command(g, &add, sizeof(add)) == -EINVAL);
}

/* A MAD from 10.0.0.2 to QP1 of the Ethernet port. */
static void receive_mad(struct guest *g, u8 version, u16 vlan)
{
	struct rxe_queue_buf *rq = (void *)(g->f.mem + 0x30000);
	struct rxe_recv_wqe *w = (void *)(rq->data + (rq->producer_index & 3) * 128);
	struct wire_packet *p = wire_packet_alloc();
	struct wire_grh *grh = (void *)(p->hdr + 8);
	struct wire_bth *bth = (void *)(p->hdr + 48);

	w->dma.num_sge = 1;
	w->dma.sge[0] = (struct rxe_sge){ .addr = FRONT_DATA, .length = 512, .lkey = g->lkey };
	rq->producer_index = (rq->producer_index + 1) & 3;
	memset(p->hdr, 0, sizeof(p->hdr));
	p->grh_off = 8;
	p->bth_off = 48;
	p->hdr_len = 48 + sizeof(*bth) + sizeof(struct wire_deth);
	p->buf = wire_buf_alloc(256);
	memset(p->buf->data, 0, 256);
	p->buf->data[0] = 1;
	p->buf->data[1] = MAD_CLASS_PERF;
	p->data = p->buf->data;
	p->len = 256;
	p->l2 = (struct wire_l2){ .mac = { 2, 0, 0, 0, 0, 8 }, .vlan = vlan, .version = version };
	wire_grh_set_ver_tc_flow(grh, 0, 0);
	grh->sgid = wire_gid_make(0, 0xffff0a000002ull);
	grh->dgid = wire_gid_make(0, 0xffff0a000001ull);
	wire_bth_fill(bth, WIRE_UD_SEND_ONLY, false, 0, 0xffff, 1, false, 0);
	wire_deth_fill((struct wire_deth *)(bth + 1), 0x80010000, 1);
	g->port[1].mad.receive(g->port[1].mad.ctx, p);
}

/* Whether the completion is as expected, and the 40 bytes before the MAD have @first at @off. */
static bool received(struct guest *g, u16 tag, u32 off, u8 first)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	struct ib_uverbs_wc *wc = (void *)(cq->data + (cq->consumer_index & 3) * 64);
	bool ok =
		cq->producer_index != cq->consumer_index && !wc->status && wc->wc_flags & HCA_WC_GRH && wc->slid == tag;

	cq->consumer_index = cq->producer_index;
	return ok && g->f.mem[FRONT_DATA + off] == first && g->f.mem[FRONT_DATA + 40] == 1;
}

/*
 * Capabilities that software sets are the guest's: IsSM, CommunicationManagement. Another user of the port has set one.
 */
static void test_caps(struct guest *g)
{
	struct muslin_set_cap set = { .cmd = { .op = MUSLIN_SET_CAP }, .port = 1, .set = 1 << 1 | 1 << 16 };
	u32 *mask = &g->port[0].attr.cap_mask;

	*mask = 1 << 16;
	row(150, "capabilities", !guest_command(g, &set, sizeof(set)) && *mask == (1 << 1 | 1 << 16));
	guest_hello(g);
	row(151, "the guest's go with it", *mask == 1 << 16);
	set.set = 0;
	set.clear = 1 << 16;
	guest_command(g, &set, sizeof(set));
	*mask = 1 << 16;
	guest_hello(g);
	row(152, "those that it has cleared are no longer its own", *mask == 1 << 16);
	set.set = 1 << 3;
	row(153, "one of the hardware", guest_command(g, &set, sizeof(set)) == -EINVAL);
	set.port = 0;
	row(154, "no port", guest_command(g, &set, sizeof(set)) == -EINVAL);
}

static void test_ethernet(struct guest *g)
{
	static const struct muslin_av av = {
		.port = 2, .grh = 1, .sgid_index = 4, .sl = 5, .dmac = { 2, 0, 0, 0, 0, 8 }, .dgid = { [15] = 1 }
	};
	struct muslin_gid add[] = { gid_add(2, 1, 0), gid_add(3, 2, 0), gid_add(4, 2, 7) };
	u32 pd, cq, qp, i;

	for (i = 0; i < ARRAY_SIZE(add); i++)
		guest_command(g, &add[i], sizeof(add[i]));
	pd = guest_make_pd(g);
	cq = guest_make_cq(g);
	qp = guest_make_qp(g, HCA_QPT_GSI, pd, cq, 2);
	guest_start_special(g, qp);
	row(120, "a MAD out", guest_send_to(g, qp, HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_SUCCESS);
	row(121, "on the GID's VLAN", g->sent.version == 2 && g->sent.vlan == (5 << WIRE_VLAN_PRIO_SHIFT | 7));
	row(122, "to the station", !memcmp(g->sent.mac, av.dmac, 6));
	receive_mad(g, 2, 0);
	row(123, "a MAD in has the IPv4 header", received(g, 0, 20, 0x45));
	receive_mad(g, 2, 3 << WIRE_VLAN_PRIO_SHIFT | 7);
	row(124, "one from a VLAN has its tag", received(g, 3 << WIRE_VLAN_PRIO_SHIFT | 7, 20, 0x45));
	receive_mad(g, 1, 0);
	row(125, "RoCE v1 has a GRH", received(g, 0, 0, 0x60));
	guest_object(g, MUSLIN_QP_DESTROY, qp, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cq, 0);
	guest_free_pd(g, pd);
	guest_hello(g);
	row(126, "GIDs go with the guest", wire_gid_is_zero(&g->port[1].attr.gid[3]));
}

int main(void)
{
	struct guest g;

	if (guest_create(&g) || guest_attach(&g) || guest_hello(&g)) {
		row(0, "no device", false);
		return rows_end();
	}
	test_gids(&g);
	test_ethernet(&g);
	test_caps(&g);
	front_close(&g.f);
	guest_destroy(&g);
	return rows_end();
}
