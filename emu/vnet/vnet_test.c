// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The card against a driver that obeys, and one that does not. */
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/vnet/fixture.h"

static struct card c;

/* The driver sends a chain of @len bytes, of which the header is as it stands: how many frames leave. */
static u32 sends(u32 len)
{
	u32 before = c.nsent;
	u16 used = front_used(&c.f, CARD_TX);

	front_post(&c.f, CARD_TX, FRONT_DATA, len, 0, 0);
	if (front_used(&c.f, CARD_TX) != (u16)(used + 1))
		return ~0u; /* a chain always comes back */
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

/* Buffers of the receive queue have no part that the driver writes. */
static void offer(u16 head, u32 len)
{
	front_fill(front_desc(&c.f, CARD_RX, head), CARD_IN, len, 2, 0);
	front_offer(&c.f, CARD_RX, head);
}

static void test_receive(void)
{
	const u8 *at = c.f.mem + CARD_IN;
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
	row(36, "just long enough", card_arrive(&c, 60) == 1 && vnet_counter(c.net, VNET_CTR_RX) == 2);
	offer(FRONT_NUM, 60);
	row(37, "a ring that makes no sense", card_arrive(&c, 60) == 1);
	row(38, "holds nobody up", card_arrive(&c, 60) == 1 && vnet_counter(c.net, VNET_CTR_RX_NOBODY) == 2);
}

static void test_life(void)
{
	front_close(&c.f);
	row(40, "a guest that is gone", card_arrive(&c, 60) == 1);
	row(41, "and comes again", !card_attach(&c) && card_arrive(&c, 60) == -EAGAIN);
	c.full = true;
	memset(c.f.mem + FRONT_DATA, 0, CARD_HEAD);
	front_post(&c.f, CARD_TX, FRONT_DATA, CARD_HEAD + 60, 0, 0);
	c.resumed = 0;
	front_close(&c.f);
	c.full = false;
	row(42, "what waited goes with it", c.resumed == 1);
	c.nsent = 0;
	c.station.nic.ready(c.station.nic.ctx);
	row(43, "both ways", !c.nsent);
}

/* What the card has said to its monitor since; the socket is empty then. */
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

static void test_carrier(void)
{
	int fd[2];

	c.station.nic.link(c.station.nic.ctx, false); /* nobody to be told */
	row(50, "a monitor is greeted", !monitor_pair(fd, "net0") && said(fd[0], HELLO));
	c.station.nic.link(c.station.nic.ctx, false);
	row(51, "a cable is pulled", said(fd[0], LINK("false")));
	c.station.nic.link(c.station.nic.ctx, true);
	row(52, "and plugged", said(fd[0], LINK("true")));
	row(53, "its answers do not matter", write(fd[0], "{\"return\": {}}\n", 15) == 15);
	loop_run_idle(c.loop, 0);
	close(fd[0]);
	loop_run_idle(c.loop, 0);
	c.station.nic.link(c.station.nic.ctx, false); /* it has gone */
	c.station.up = false;
	row(54, "one that comes to a dead link", !monitor_pair(fd, "net0") && said(fd[0], HELLO LINK("false")));
	c.station.up = true;
	close(fd[0]);
	row(55, "a name that is none", monitor_pair(fd, "net0\"") == -EINVAL && !recv(fd[0], &fd[1], 1, 0));
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
	test_receive();
	test_life();
	test_carrier();
	card_destroy(&c);
	return rows_end();
}
