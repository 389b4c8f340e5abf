// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of netlink sockets: dumps and writes that take turns, the queue of what is not read, events. */
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include "emu/host/netlink.h"
#include "emu/host/program_fixture.h"
#include "emu/lib/row.h"
#include "emu/wire/smp.h"

#define PDS      3000u
#define REQUESTS 2000u

#define LIST_PDS ((RDMA_NL_NLDEV << 10) + RDMA_NLDEV_CMD_RES_PD_GET)

static struct desk d;

static const char *gid_netdev(const struct uv_host *host, u32 gid)
{
	return "eth0";
}

static bool address(const struct uv_host *host, u32 n, struct uv_address *a)
{
	*a = (struct uv_address){ .ip = ip_addr_v4(0x0a000001), .len = 8, .port = 1, .netdev = "eth0" };
	return !n;
}

/* A write of @n equal requests. */
static u32 message(u8 *buf, u16 type, u16 flags, u32 n)
{
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK, .nl_pid = 7 };
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;
	} req = { .h = { sizeof(req), type, (u16)(flags | NLM_F_REQUEST), 5, 0 } };
	u32 i;

	if (type == LIST_PDS)
		req.h.nlmsg_len = sizeof(req.h);
	memcpy(buf, &own, sizeof(own));
	for (i = 0; i < n; i++)
		memcpy(buf + sizeof(own) + i * req.h.nlmsg_len, &req, req.h.nlmsg_len);
	return (u32)sizeof(own) + n * req.h.nlmsg_len;
}

/* What was read: messages by type, errors, and objects in lists. */
struct seen {
	u32 messages, new_links, del_links, new_addresses, del_addresses, done, errors, objects;
	int error;
};

static u32 objects_in(const u8 *at, u32 len)
{
	struct nlattr a;
	u32 n = 0, inner;

	for (; len >= sizeof(a); at += NLA_ALIGN(a.nla_len), len -= min(len, (u32)NLA_ALIGN(a.nla_len))) {
		memcpy(&a, at, sizeof(a));
		if (a.nla_type != RDMA_NLDEV_ATTR_RES_PD)
			continue;
		for (inner = sizeof(a); inner + sizeof(a) <= a.nla_len; n++) {
			struct nlattr e;

			memcpy(&e, at + inner, sizeof(e));
			inner += NLA_ALIGN(e.nla_len);
		}
	}
	return n;
}

/* Reads at most @most datagrams of those that are there. */
static void look(struct program *p, struct seen *s, u32 most)
{
	union {
		struct nlmsghdr h;
		u8 bytes[8192];
	} buf;
	ssize_t n, at;

	while (most-- && (n = recv(p->fd, &buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		for (at = 0; at + NLMSG_HDRLEN <= n;) {
			struct nlmsghdr h;

			memcpy(&h, buf.bytes + at, sizeof(h));
			s->messages++;
			s->new_links += h.nlmsg_type == RTM_NEWLINK;
			s->del_links += h.nlmsg_type == RTM_DELLINK;
			s->new_addresses += h.nlmsg_type == RTM_NEWADDR;
			s->del_addresses += h.nlmsg_type == RTM_DELADDR;
			s->done += h.nlmsg_type == NLMSG_DONE;
			s->errors += h.nlmsg_type == NLMSG_ERROR;
			if (h.nlmsg_type == NLMSG_ERROR)
				memcpy(&s->error, buf.bytes + at + NLMSG_HDRLEN, sizeof(s->error));
			if (h.nlmsg_type == LIST_PDS)
				s->objects += objects_in(buf.bytes + at + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN);
			at += NLMSG_ALIGN(h.nlmsg_len);
		}
	}
}

/* Reads while the loop runs, until nothing more comes. */
static void look_all(struct program *p, struct seen *s)
{
	u32 before;

	do {
		before = s->messages;
		desk_run(&d, 1000);
		look(p, s, ~0u);
	} while (s->messages != before);
}

static void test_dump(void)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = IB_USER_VERBS_CMD_ALLOC_PD };
	static u8 buf[UV_MESSAGE_MAX];
	struct program verbs, nl;
	struct seen s = { 0 };
	struct ib_uverbs_alloc_pd pd = { 0 };
	u32 len, i, ok = 0;

	program_open(&verbs, &d, UV_UVERBS, 0);
	program_open(&nl, &d, UV_NETLINK, NETLINK_RDMA);
	hdr.in_words = (sizeof(hdr) + sizeof(pd)) / 4;
	hdr.out_words = sizeof(struct ib_uverbs_alloc_pd_resp) / 4;
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), &pd, sizeof(pd));
	for (i = 0; i < PDS; i++)
		ok += program_call(&verbs, UV_WRITE, 0, buf, sizeof(hdr) + sizeof(pd)) > 0;
	row(1, "objects", ok == PDS);
	len = message(buf, LIST_PDS, NLM_F_DUMP, 1);
	program_request(nl.rpc, UV_WRITE, 0, buf, len);
	for (i = 0; i < 10 && program_result(&nl) == -EINPROGRESS; i++)
		loop_run_idle(d.loop, loop_now(d.loop).ns);
	look(&nl, &s, ~0u);
	row(2, "one turn of the dump", s.objects > 100 && s.objects < PDS && !s.done);
	row(3, "a second dump meanwhile: busy", program_call(&nl, UV_WRITE, 0, buf, len) == (int)len);
	look_all(&nl, &s);
	row(4, "each object once", s.objects == PDS && s.done == 1);
	row(5, "and one error", s.errors == 1 && s.error == -EBUSY);
	s = (struct seen){ 0 };
	for (i = 0; i < 20; i++) { /* nobody reads: a dump at a time, and the others are refused */
		if (program_call(&nl, UV_WRITE, 0, buf, len) < 0)
			break;
	}
	desk_run(&d, NSEC_PER_MSEC);
	look_all(&nl, &s);
	row(6, "a reader that comes late gets whole dumps", s.done && s.objects == s.done * PDS);
	program_call(&nl, UV_WRITE, 0, buf, len);
	shutdown(nl.fd, SHUT_RDWR);
	desk_run(&d, NSEC_PER_MSEC);
	row(7, "a dump ends with its reader", true);
	program_close(&nl);
	program_close(&verbs);
}

static void test_requests(void)
{
	static u8 buf[UV_MESSAGE_MAX];
	struct program nl, again;
	struct seen s = { 0 };
	u32 len, i;
	int result = -EINPROGRESS, other = -EINPROGRESS;

	program_open(&nl, &d, UV_NETLINK, NETLINK_ROUTE);
	program_open(&again, &d, UV_NETLINK, NETLINK_ROUTE);
	len = message(buf, RTM_GETLINK, 0, REQUESTS); /* of no interface */
	program_request(nl.rpc, UV_WRITE, 0, buf, len);
	program_request(again.rpc, UV_WRITE, 0, buf, len);
	loop_run_idle(d.loop, loop_now(d.loop).ns);
	look(&nl, &s, ~0u);
	row(20, "some requests of a write in a turn",
	    s.errors && s.errors < REQUESTS / 4 && program_result(&nl) == result);
	for (i = 0; i < 1000 && (result == -EINPROGRESS || other == -EINPROGRESS); i++) {
		desk_run(&d, 1);
		look(&nl, &s, ~0u);
		result = result == -EINPROGRESS ? program_result(&nl) : result;
		other = other == -EINPROGRESS ? program_result(&again) : other;
	}
	row(21, "all are answered", s.errors == REQUESTS && s.error == -EINVAL && result == (int)len);
	row(22, "another socket that nobody reads", other == -ENOBUFS || other == (int)len);
	s = (struct seen){ 0 };
	for (i = 0; i < 10 && program_call(&again, UV_WRITE, 0, buf, len) == (int)len;)
		i++;
	row(23, "it is full at last", i < 10);
	look_all(&again, &s);
	row(24, "what was answered is there", s.errors > 500 && s.error == -EINVAL);
	row(25, "and the socket works", program_call(&again, UV_WRITE, 0, buf, message(buf, RTM_GETLINK, 0, 1)) > 0);
	row(26, "an empty message", program_call(&again, UV_WRITE, 0, buf, sizeof(struct sockaddr_nl)) == -ENODATA);
	program_request(nl.rpc, UV_WRITE, 0, buf, message(buf, RTM_GETLINK, 0, REQUESTS));
	loop_run_idle(d.loop, loop_now(d.loop).ns);
	program_close(&nl); /* while its write is deferred */
	program_close(&again);
}

static void event(enum wire_port_event e, u8 state)
{
	d.port.attr.state = state;
	wire_port_event(&d.port, e);
	desk_run(&d, 1);
}

static void test_events(void)
{
	struct program nl, deaf;
	struct seen s = { 0 };

	program_open(&nl, &d, UV_NETLINK, NETLINK_ROUTE);
	program_open(&deaf, &d, UV_NETLINK, NETLINK_ROUTE);
	event(WIRE_PORT_ERR, PORT_STATE_DOWN);
	look(&nl, &s, ~0u);
	row(40, "no events without a group", !s.messages);
	row(41, "membership", !program_call(&nl, UV_IOCTL, RTMGRP_LINK, NULL, 0));
	event(WIRE_PORT_ACTIVE, PORT_STATE_ACTIVE);
	event(WIRE_PORT_LID_CHANGE, PORT_STATE_ACTIVE);
	look(&nl, &s, ~0u);
	row(42, "an event of the link", s.messages == 1 && s.new_links == 1);
	uv_server_unplug(d.server, &d.host, true);
	look(&nl, &s, ~0u);
	row(43, "the device goes", s.messages == 2 && s.del_links == 1);
	program_call(&nl, UV_IOCTL, RTMGRP_LINK | RTMGRP_IPV4_IFADDR, NULL, 0);
	event(WIRE_PORT_ERR, PORT_STATE_DOWN);
	look(&nl, &s, ~0u);
	row(44, "no events of a removed device", s.messages == 2);
	uv_server_unplug(d.server, &d.host, false);
	look(&nl, &s, ~0u);
	row(45, "and comes, with its address", s.messages == 4 && s.new_links == 2 && s.new_addresses == 1);
	uv_server_unplug(d.server, &d.host, true);
	uv_server_unplug(d.server, &d.host, false);
	look(&nl, &s, ~0u);
	row(46, "which goes first", s.messages == 8 && s.del_links == 2 && s.del_addresses == 1);
	program_call(&nl, UV_IOCTL, 0, NULL, 0);
	event(WIRE_PORT_ACTIVE, PORT_STATE_ACTIVE);
	look(&nl, &s, ~0u);
	row(47, "none after it has left", s.messages == 8);
	s = (struct seen){ 0 };
	look(&deaf, &s, ~0u);
	row(48, "none for others", !s.messages);
	program_close(&nl);
	program_close(&deaf);
	event(WIRE_PORT_ERR, PORT_STATE_DOWN);
}

int main(void)
{
	struct mad_port *mad;

	desk_open(&d);
	mad = mad_port_create(d.loop, &d.port);
	d.port.attr.link_layer = WIRE_LINK_ETHERNET;
	d.port.attr.mac[5] = 1;
	d.host.device = "muslin0";
	d.host.mad[0] = mad;
	d.host.gid_netdev = gid_netdev;
	d.host.address = address;
	test_dump();
	test_requests();
	test_events();
	mad_port_destroy(mad);
	d.port.mad = (struct wire_port_user){ 0 };
	desk_close(&d);
	return rows_end();
}
