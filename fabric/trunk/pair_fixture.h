/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of tests of trunks: two fabrics with trunks between them, which SMPs bring up. */
#ifndef MUSLIN_TRUNK_PAIR_FIXTURE_H
#define MUSLIN_TRUNK_PAIR_FIXTURE_H

#include "fabric/trunk/trunk_fixture.h"

static struct side a, b;
static struct test_host h1, h2, h101;

static inline bool at(u8 state)
{
	return side_state(&a) == state && side_state(&b) == state;
}

static inline void trunk_start(const char *options_a, const char *options_b)
{
	side_start(&a, "leafs 1 hosts 2 vls 15", "leaf1", "listen", options_a);
	side_start(&b, "leafs 1 hosts 2 vls 15 first 101", "leaf101", "to", options_b);
	test_fabric = b.f;
	test_attach(&h101, "h101");
	test_fabric = a.f;
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_run(NSEC_PER_SEC);
}

/* From here on trunks use TLS, with a key in a file whose name @path gets. */
static inline void tls_begin(char *path, size_t size)
{
	key_file(path, size, "a key of both sides\n");
	snprintf(test_options, sizeof(test_options), "key %s", path);
	test_tls = true;
}

static inline void tls_end(const char *path)
{
	test_tls = false;
	test_options[0] = 0;
	unlink(path);
}

static inline void trunk_stop(void)
{
	side_stop(&b);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* LIDs: 1 and 2 are h1 and h2, 3 is h101; 100 and 101 the switches. Configured by SMPs from h1 across the trunk. */
static inline void bring_up(void)
{
	static const struct {
		const char *path;
		u32 port;
		u16 lid;
	} ports[] = { { "", 1, 1 },   { "\1", 1, 0 },    { "\1\2", 1, 2 },    { "\1", 2, 0 },
		      { "\1", 9, 0 }, { "\1\11", 9, 0 }, { "\1\11\1", 1, 3 }, { "\1\11", 1, 0 } };
	static const char *const sw[] = { "\1", "\1\11" };
	static const u8 lft[2][4] = { { LFT_PORT_NONE, 1, 2, 9 }, { LFT_PORT_NONE, 9, 9, 1 } };
	u8 d[SMP_DATA_SIZE];
	u32 i, s;

	for (i = 0; i < 2; i++) {
		test_port_set(&h1, sw[i], 0, (u16)(100 + i), 0);
		memset(d, 0, sizeof(d));
		wire_set(d, SWITCHINFO_LFT_TOP, 127);
		wire_set(d, SWITCHINFO_LIFE_TIME, 18);
		test_smp(&h1, sw[i], MAD_METHOD_SET, SMP_ATTR_SWITCH_INFO, 0, d);
		memset(d, LFT_PORT_NONE, sizeof(d));
		memcpy(d, lft[i], sizeof(lft[i]));
		test_smp(&h1, sw[i], MAD_METHOD_SET, SMP_ATTR_LFT, 0, d);
	}
	for (s = PORT_STATE_ARMED; s <= PORT_STATE_ACTIVE; s++)
		for (i = 0; i < ARRAY_SIZE(ports); i++)
			test_port_set(&h1, ports[i].path, ports[i].port, ports[i].lid, (u8)s);
}

static inline bool no_credits_in_use(void)
{
	u32 used = 0, vl;

	for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
		used += side_port(&a)->rx_blocks[vl] + side_port(&b)->rx_blocks[vl] +
			side_port(&a)->peer->rx_blocks[vl] + side_port(&b)->peer->rx_blocks[vl];
	/* Credits of up to half a buffer are not sent while the sender has enough. */
	return used < TRUNK_FLOW_STEP * 2 * TRUNK_DATA_VLS;
}

static inline u32 send_many(struct test_host *from, u16 dlid, u8 sl, u32 len, u32 n)
{
	u32 i, sent = 0;

	for (i = 0; i < n; i++)
		sent += !test_send(from, dlid, sl, len, i);
	return sent;
}

/* Sends a packet whose payload is not a multiple of 4. */
static inline void send_padded(struct test_host *from, u16 dlid, u32 len)
{
	struct wire_packet *p = test_packet(from->port->attr.lid, dlid, 0, (len + 3) & ~3u, 1, 0xffff);

	wire_packet_truncate(p, len);
	row(19, "it is sent", !wire_port_send(from->port, p));
}

#endif
