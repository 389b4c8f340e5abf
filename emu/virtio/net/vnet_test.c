// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The card with a conforming driver and with a misbehaving one. */
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed_fixture.h"
#include "emu/lib/row.h"
#include "emu/virtio/net/fixture.h"
#include "emu/wire/inet.h"

static struct card c;

/* The driver sends a chain of @len bytes with the present header; returns the number of frames sent. */
static u32 sends(u32 len)
{
	u32 before = c.nsent;
	u16 used = front_used(&c.f, CARD_TX);

	front_post(&c.f, CARD_TX, FRONT_DATA, len, 0, 0);
	if (front_used(&c.f, CARD_TX) != (u16)(used + 1))
		return ~0u; /* a chain must always be used */
	return c.nsent - before;
}

static void test_out(void)
{
	u8 *data = c.f.mem + FRONT_DATA;

	memset(data, 0, CARD_HEAD);
	memset(data + CARD_HEAD, 0x33, 2000);
	row(1, "a frame", sends(CARD_HEAD + 60) == 1 && c.sent->size == 60 && c.sent->data[59] == 0x33);
	row(2, "with an interrupt", front_called(&c.f, CARD_TX));
	row(3, "the longest", sends(CARD_HEAD + 1518) == 1);
	row(4, "one longer", sends(CARD_HEAD + 1519) == 0);
	row(5, "the shortest", sends(CARD_HEAD + 14) == 1);
	row(6, "one shorter", sends(CARD_HEAD + 13) == 0);
	row(7, "not even a header", sends(CARD_HEAD - 1) == 0 && sends(1) == 0);
	data[0] = 1;
	row(8, "a checksum to be made", sends(CARD_HEAD + 60) == 0);
	data[0] = 0;
	data[1] = 1;
	row(9, "a packet to be cut", sends(CARD_HEAD + 60) == 0);
	data[1] = 0;
	row(10, "each counted", vnet_counter(c.net, VNET_CTR_TX_BAD) == 6 && vnet_counter(c.net, VNET_CTR_TX) == 3);
	c.full = true;
	row(11, "to a full link", sends(CARD_HEAD + 61) == 0);
	front_post(&c.f, CARD_TX, FRONT_DATA, CARD_HEAD + 62, 0, 0);
	c.full = false;
	c.station.nic.ready(c.station.nic.ctx);
	loop_run_idle(c.loop, 0);
	row(12, "which has room again", c.nsent == 5 && c.sent->size == 62);
}

/* Offload requests for a TCP frame with @payload bytes, and the frames sent; none if inconsistent. */
static const struct {
	int n;
	const char *what;
	bool tagged, v6;
	u8 flags, gso;
	u32 payload, mss;
	int start; /* of the checksum, relative to the correct offset */
	u32 frames;
} wishes[] = {
	{ 60, "a checksum", false, false, 1, 0, 100, 0, 0, 1 },
	{ 61, "a checksum behind a tag", true, true, 1, 0, 1001, 0, 0, 1 },
	{ 62, "one that is in the addresses", false, false, 1, 0, 100, 0, -30, 0 },
	{ 63, "one behind the frame", false, false, 1, 0, 100, 0, 1000, 0 },
	{ 64, "an unknown wish", false, false, 2, 0, 100, 0, 0, 0 },
	{ 65, "to be cut", false, false, 1, 1, 30000, 1460, 0, 21 },
	{ 66, "with a tag", true, false, 1, 1, 4000, 1000, 0, 4 },
	{ 67, "of IPv6", false, true, 1, 4, 65000, 1440, 0, 46 },
	{ 68, "of IPv6 with a tag", true, true, 1, 4, 2881, 1440, 0, 3 },
	{ 69, "less than a segment", false, false, 1, 1, 60, 1460, 0, 1 },
	{ 70, "without a payload", false, false, 1, 1, 0, 1460, 0, 1 },
	{ 71, "into more than the link carries", false, false, 1, 1, 30000, 1461, 0, 0 },
	{ 72, "into nothing", false, false, 1, 1, 30000, 0, 0, 0 },
	{ 73, "without checksums", false, false, 0, 1, 30000, 1460, 0, 0 },
	{ 74, "as the other family", false, false, 1, 4, 30000, 1440, 0, 0 },
	{ 75, "as UDP", false, false, 1, 3, 30000, 1460, 0, 0 },
	{ 76, "with headers elsewhere", false, false, 1, 1, 30000, 1460, 8, 0 },
	{ 77, "with headers behind the frame", false, false, 1, 1, 100, 1460, 60000, 0 },
};

/* Addresses, tag, IP and TCP headers, as a kernel fills them for a card with offloads. Returns the offset of TCP. */
static u32 headers(u8 *p, bool tagged, bool v6, u32 payload)
{
	u32 ip = tagged ? 18 : 14, tcp = ip + (v6 ? 40 : 20), sum = 20 + payload + WIRE_INET_TCP;

	memset(p, 0x11, tcp + 20);
	if (tagged)
		wire_store(p + 12, 4, (u64)ETHERTYPE_VLAN << 16 | 7);
	wire_store(p + ip - 2, 2, v6 ? WIRE_INET_IP6 : WIRE_INET_IP4);
	p[ip] = v6 ? 0x60 : 0x45;
	wire_store(p + ip + (v6 ? 4 : 2), 2, 20 + payload + (v6 ? 0 : 20));
	p[ip + (v6 ? 6 : 9)] = WIRE_INET_TCP;
	if (!v6) {
		wire_store(p + ip + 6, 2, 0);
		wire_store(p + ip + 10, 2, 0);
		wire_store(p + ip + 10, 2, wire_inet_fold(wire_inet_sum(0, p + ip, 20)));
	}
	p[tcp + 12] = 0x50;
	sum = wire_inet_sum(sum, p + ip + (v6 ? 8 : 12), v6 ? 32 : 8);
	wire_store(p + tcp + 16, 2, (u16)~wire_inet_fold(sum));
	return tcp;
}

/* Whether the last frame sent is complete with valid checksums. */
static bool whole(bool tagged, u32 size)
{
	u32 l2 = tagged ? 16 : 12;
	u8 p[2048];

	if (!c.sent || c.sent->size != size)
		return false;
	memcpy(p, c.sent->data + l2, 2);
	memset(p + 2, 0, 2);
	memcpy(p + 4, c.sent->data + l2 + 2, size - l2 - 2);
	return wire_inet_ok(p, size - l2 + 2);
}

static void test_wishes(void)
{
	u8 *data = c.f.mem + FRONT_DATA;
	u32 i, tcp, last, frames;

	for (i = 0; i < ARRAY_SIZE(wishes); i++) {
		tcp = headers(data + CARD_HEAD, wishes[i].tagged, wishes[i].v6, wishes[i].payload);
		memset(data, 0, CARD_HEAD);
		data[0] = wishes[i].flags;
		data[1] = wishes[i].gso;
		*(__le16 *)(data + 4) = cpu_to_le16(wishes[i].mss);
		*(__le16 *)(data + 6) = cpu_to_le16((int)tcp + wishes[i].start);
		*(__le16 *)(data + 8) = cpu_to_le16(16);
		frames = sends(CARD_HEAD + tcp + 20 + wishes[i].payload);
		last = wishes[i].payload - (wishes[i].frames ? wishes[i].frames - 1 : 0) * wishes[i].mss;
		row(wishes[i].n, wishes[i].what,
		    frames == wishes[i].frames && (!frames || whole(wishes[i].tagged, tcp + 20 + last)));
	}
	tcp = headers(data + CARD_HEAD, false, false, 3000);
	data[0] = data[1] = 1;
	*(__le16 *)(data + 4) = cpu_to_le16(1000);
	*(__le16 *)(data + 6) = cpu_to_le16(tcp);
	c.full = true;
	row(78, "none while the link is full", sends(CARD_HEAD + tcp + 3020) == 0);
	c.full = false;
	frames = c.nsent;
	c.station.nic.ready(c.station.nic.ctx);
	loop_run_idle(c.loop, 0);
	row(79, "all when it has room again", c.nsent - frames == 3 && whole(false, tcp + 1020));
	c.full = true;
	front_post(&c.f, CARD_TX, FRONT_DATA, CARD_HEAD + tcp + 3020, 0, 0); /* pending when the guest disconnects */
	memset(data, 0, CARD_HEAD);
	c.full = false;
	c.station.nic.ready(c.station.nic.ctx);
	loop_run_idle(c.loop, 0);
}

/* A chain that is segmented into thousands of frames must not starve others. */
static void test_turn(void)
{
	u8 *data = c.f.mem + FRONT_DATA;
	u32 tcp = headers(data + CARD_HEAD, false, false, 3000), before;

	memset(data, 0, CARD_HEAD);
	data[0] = data[1] = 1;
	*(__le16 *)(data + 4) = cpu_to_le16(1);
	*(__le16 *)(data + 6) = cpu_to_le16(tcp);
	*(__le16 *)(data + 8) = cpu_to_le16(16);
	c.full = true;
	row(86, "a packet to be cut into segments of one byte", sends(CARD_HEAD + tcp + 3020) == 0);
	c.full = false;
	before = c.nsent;
	c.station.nic.ready(c.station.nic.ctx);
	row(87, "leaves in turns", c.nsent - before > 0 && c.nsent - before <= 256);
	loop_run_idle(c.loop, 0);
	row(88, "and as a whole", c.nsent - before == 3000);
}

/* Buffers of the receive queue are device-writable only. */
static void offer(u16 head, u32 len)
{
	front_fill(front_desc(&c.f, CARD_RX, head), CARD_IN, len, 2, 0);
	front_offer(&c.f, CARD_RX, head);
}

static void test_receive(void)
{
	const u8 *at = c.f.mem + CARD_IN;
	u64 before = vnet_counter(c.net, VNET_CTR_RX);
	u16 used;

	row(30, "no buffer", card_arrive(&c, 60) == -EAGAIN && !c.resumed);
	offer(3, 2000);
	row(31, "now there is one", c.resumed == 1);
	used = front_used(&c.f, CARD_RX);
	row(32, "a frame", card_arrive(&c, 60) == 1 && front_used(&c.f, CARD_RX) == (u16)(used + 1));
	row(33, "behind its header",
	    at[10] == 1 && !at[0] && !at[11] && at[CARD_HEAD] == 0x5a && at[CARD_HEAD + 59] == 0x5a);
	row(34, "with an interrupt", front_called(&c.f, CARD_RX));
	offer(4, CARD_HEAD + 59);
	row(35, "a buffer too short", card_arrive(&c, 60) == 1 && vnet_counter(c.net, VNET_CTR_RX_TOO_LONG) == 1);
	offer(4, CARD_HEAD + 60);
	row(36, "just long enough", card_arrive(&c, 60) == 1 && vnet_counter(c.net, VNET_CTR_RX) == before + 2);
	offer(FRONT_NUM, 60);
	row(37, "an invalid ring", card_arrive(&c, 60) == 1);
	row(38, "does not block the link", card_arrive(&c, 60) == 1 && vnet_counter(c.net, VNET_CTR_RX_NO_DRIVER) == 2);
}

/* Receives a TCP frame with the byte at @damaged corrupted; returns the flags that the driver gets. */
static int flags_of(bool tagged, bool v6, u32 damaged)
{
	struct wire_buf *frame = wire_buf_alloc(200);
	u32 tcp = headers(frame->data, tagged, v6, 0), l4;

	frame->size = tcp + 20;
	l4 = wire_inet_sum(0, frame->data + tcp, 20);
	wire_store(frame->data + tcp + 16, 2, wire_inet_fold(l4));
	if (damaged)
		frame->data[damaged] ^= 1;
	offer(5, 2000);
	if (c.station.nic.receive(c.station.nic.ctx, frame) != 1)
		return -1;
	wire_buf_put(frame);
	loop_run_idle(c.loop, 0);
	return c.f.mem[CARD_IN];
}

static void test_checked(void)
{
	row(80, "checksums that are right", flags_of(false, false, 0) == 2 && flags_of(true, true, 0) == 2);
	row(81, "a damaged header of IP", flags_of(false, false, 22) == 0);
	row(82, "of TCP", flags_of(false, false, 40) == 0 && flags_of(false, true, 60) == 0);
	row(83, "of Ethernet, which has no checksum here", flags_of(false, false, 3) == 2);
	row(84, "no IP", flags_of(false, false, 12) == 0);
}

static void test_life(void)
{
	front_close(&c.f);
	row(40, "a guest has disconnected", card_arrive(&c, 60) == 1);
	row(41, "and connects again", !card_attach(&c) && card_arrive(&c, 60) == -EAGAIN);
	c.full = true;
	memset(c.f.mem + FRONT_DATA, 0, CARD_HEAD);
	front_post(&c.f, CARD_TX, FRONT_DATA, CARD_HEAD + 60, 0, 0);
	c.resumed = 0;
	front_close(&c.f);
	c.full = false;
	row(42, "queued frames are dropped with it", c.resumed == 1);
	c.nsent = 0;
	c.station.nic.ready(c.station.nic.ctx);
	row(43, "both ways", !c.nsent);
}

/* Whether the card has sent @text, and no more, to its monitor. */
static bool said(int fd, const char *text)
{
	char got[512];
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	got[max(n, (ssize_t)0)] = 0;
	return !strcmp(got, text);
}

#define HELLO       "{\"execute\": \"qmp_capabilities\"}\n"
#define LINK(state) "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"net0\", \"up\": " state "}}\n"

static int monitor_pair(int *fd, const char *netdev)
{
	return socketpair(AF_UNIX, SOCK_STREAM, 0, fd) ? -errno : vnet_set_monitor(c.net, fd[1], netdev);
}

static bool disconnected(int fd)
{
	char byte;

	loop_run_idle(c.loop, 0);
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void test_carrier(void)
{
	int fd[2];

	c.station.nic.link(c.station.nic.ctx, false); /* without a monitor */
	row(50, "a monitor: capabilities are negotiated", !monitor_pair(fd, "net0") && said(fd[0], HELLO));
	c.station.nic.link(c.station.nic.ctx, false);
	row(51, "the link goes down", said(fd[0], LINK("false")));
	c.station.nic.link(c.station.nic.ctx, true);
	row(52, "and up", said(fd[0], LINK("true")));
	row(53, "its responses are ignored", write(fd[0], "{\"return\": {}}\n", 15) == 15);
	loop_run_idle(c.loop, 0);
	close(fd[0]);
	loop_run_idle(c.loop, 0);
	c.station.nic.link(c.station.nic.ctx, false); /* the monitor has disconnected */
	c.station.up = false;
	row(54, "one opened while the link is down", !monitor_pair(fd, "net0") && said(fd[0], HELLO LINK("false")));
	c.station.up = true;
	row(57, "one that passes a descriptor is disconnected", pass(fd[0], &fd[0], 1) && disconnected(fd[0]));
	close(fd[0]);
	row(55, "an invalid name", monitor_pair(fd, "net0\"") == -EINVAL && !recv(fd[0], &fd[1], 1, 0));
	close(fd[0]);
	row(56, "nor this", monitor_pair(fd, "") == -EINVAL);
	close(fd[0]);
}

int main(void)
{
	if (card_create(&c) || card_attach(&c)) {
		row(0, "no card", false);
		return rows_end();
	}
	test_out();
	test_wishes();
	test_turn();
	test_checked();
	test_receive();
	test_life();
	test_carrier();
	card_destroy(&c);
	return rows_end();
}
