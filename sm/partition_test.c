// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Parser of partitions.conf: the partitions of valid texts, and the errors of invalid ones. */
#include <stdio.h>

#include "emu/lib/row.h"
#include "emu/wire/sa.h"
#include "sm/partition.h"

/* Prints the partitions as "name=key[i][x] members | groups; ..." */
static void describe(const struct sm_partitions *ps, char *out, size_t len)
{
	static const char whom[] = { 'g', '*', 'c', 's', 'r', 'v', 'm' };
	const struct sm_partition *p;
	size_t at = 0;
	u32 i, k;

	out[0] = 0;
	for (i = 0; i < ps->n; i++) {
		p = &ps->part[i];
		at += (size_t)snprintf(out + at, len - at, "%s%s=%x%s%s", i ? ";" : "", p->name, p->pkey,
				       p->ipoib ? "i" : "", p->index0 ? "x" : "");
		for (k = i ? 0 : 1; k < p->nmembers; k++) { /* skips the implicit member of the default partition */
			at += (size_t)snprintf(out + at, len - at, " %c", whom[p->members[k].whom]);
			if (p->members[k].whom == SM_WHOM_GUID)
				at += (size_t)snprintf(out + at, len - at, "%llx",
						       (unsigned long long)p->members[k].guid);
			at += (size_t)snprintf(out + at, len - at, "%c", " lfb"[p->members[k].membership]);
		}
		for (k = 0; k < p->ngroups; k++)
			at += (size_t)snprintf(out + at, len - at, " @%02x%02x:%02x%02x/m%ur%us%u",
					       p->groups[k].mgid.raw[0], p->groups[k].mgid.raw[1],
					       p->groups[k].mgid.raw[4], p->groups[k].mgid.raw[5],
					       p->groups[k].flags.mtu, p->groups[k].flags.rate, p->groups[k].flags.sl);
	}
}

static const struct {
	const char *text, *want;
} good[] = {
	{ "", "Default=7fff" },
	{ "# nothing but a comment\n", "Default=7fff" },
	{ "Default=0x7fff : ALL=full;", "Default=7fff *f" },
	{ "Default=0x7fff,ipoib:ALL=full;\n", "Default=7fffi *f" },
	{ "Default=0xffff , ipoib : ALL=full , SELF=full ;", "Default=7fffi *f mf" },
	{ "Blue=0x2 : ALL;", "Default=7fff;Blue=2 *l" },
	{ "Blue=0x2, defmember=full : ALL, 0x10=limited;", "Default=7fff;Blue=2 *f g10l" },
	{ "Blue=2,defmember=both:0x10;", "Default=7fff;Blue=2 g10b" },
	{ "Blue=0x8002, indx0 : ALL_CAS=full, ALL_SWITCHES;", "Default=7fff;Blue=2x cf sl" },
	{ "=0x3 : ALL_ROUTERS=full, ALL_VCAS;", "Default=7fff;=3 rf vl" },
	{ "Blue : 0x1;\nRed : 0x2;", "Default=7fff;Blue=1 g1l;Red=2 g2l" },
	{ "Blue=7 : 0x1;\nBlue=7 : 0x2=full;", "Default=7fff;Blue=7 g1l g2f" },
	{ "Blue=7;", "Default=7fff;Blue=7" },
	{ "Blue=7, ipoib, rate=3, mtu=4, scope=2 : ALL=f;", "Default=7fff;Blue=7i *f" },
	{ "Blue=7 :\n 0x1 = full, # one\n 0x2,\n 0x3;\n", "Default=7fff;Blue=7 g1f g2l g3l" },
	{ "Blue=7 : mgid=ff12::1, mtu=5, rate=7, sl=3\n ALL=full;", "Default=7fff;Blue=7 *f @ff12:0000/m5r7s3" },
	{ "Blue=7 : mgid=ff12:401b::1\n ALL;", "Default=7fff;Blue=7 *l @ff12:8007/m0r0s0" },
	/* The example in an RDMA network guide of a Linux distribution. */
	{ "# For reference:\n# IPv4 IANA reserved multicast addresses:\n#   http://www.iana.org/\n"
	  "Default=0x7fff, rate=3, mtu=4, scope=2, defmember=full:\n"
	  "        ALL, ALL_SWITCHES=full;\n"
	  "Default=0x7fff, ipoib, rate=3, mtu=4, scope=2:\n"
	  "        mgid=ff12:401b::ffff:ffff       # IPv4 Broadcast address\n"
	  "        mgid=ff12:401b::1               # IPv4 All Hosts group\n"
	  "        mgid=ff12:401b::2               # IPv4 All Routers group\n"
	  "        mgid=ff12:401b::16              # IPv4 IGMP group\n"
	  "        mgid=ff12:601b::1               # IPv6 All Hosts group\n"
	  "        ALL=full, ALL_SWITCHES=full;\n"
	  "ib0_2=0x0002, rate=7, mtu=4, scope=2, defmember=full:\n"
	  "        ALL, ALL_SWITCHES=full;\n",
	  "Default=7fffi *f sf *f sf @ff12:ffff/m4r3s0 @ff12:ffff/m4r3s0 @ff12:ffff/m4r3s0 @ff12:ffff/m4r3s0 "
	  "@ff12:ffff/m4r3s0;ib0_2=2 *f sf" },
};

static const struct {
	const char *text, *want; /* want: start of the error */
} bad[] = {
	{ "Blue=0x8zz9 : ALL;", "p.conf:1: P_Key: '0x8zz9' is not a number" },
	{ "\n\nBlue=0x10000 : ALL;", "p.conf:3: P_Key: 0x10000 is too large" },
	{ "Blue=0x8000 : ALL;", "p.conf:1: P_Key 0x8000 is invalid" },
	{ "Blue=2 : ALL", "p.conf:1: the definition of 'Blue' does not end with ';'" },
	{ "Blue=2", "p.conf:1: the definition ends without" },
	{ "Blue=2, nonsense : ALL;", "p.conf:1: 'nonsense' is not known here" },
	{ "Blue=2 :\n h1=full;", "p.conf:2: a member is a port GUID, as ibstat prints it, or ALL, ALL_CAS," },
	{ "Blue=2 : 0x1g=full;", "p.conf:1: port GUID: '0x1g' is not a number" },
	{ "Blue=2 : 0x1=owner;", "p.conf:1: membership is full, limited or both" },
	{ "Blue=2, defmember : ALL;", "p.conf:1: defmember needs a value" },
	{ "Blue=2, mtu=9 : ALL;", "p.conf:1: mtu: 9 is too large" },
	{ "Blue=2, rate=1 : ALL;", "p.conf:1: rate: 1 is not a rate code" },
	{ "Blue=2, scope=0 : ALL;", "p.conf:1: scope: 0 is reserved" },
	{ "Blue=2, sl : ALL;", "p.conf:1: sl needs a value" },
	{ "Blue=2 : mgid=fe80::1\n ALL;", "p.conf:1: 'fe80::1' is not a multicast GID" },
	{ "Blue=2 : mgid=xyz\n ALL;", "p.conf:1: 'xyz' is not a GID" },
	{ "Blue=2 : mgid=ff12::1, colour=3\n ALL;", "p.conf:1: 'colour' is not a flag" },
	{ ": ALL;", "p.conf:1: a partition needs a name or a P_Key" },
	{ "Blue=2 : 0x1 0x2;", "p.conf:1: " },
};

static void test_good(u32 i)
{
	char err[256], out[1024];
	struct sm_partitions *ps = sm_partitions_parse(good[i].text, "p.conf", err, sizeof(err));

	if (!ps) {
		row(i, err, false);
		return;
	}
	describe(ps, out, sizeof(out));
	row(i, out, !strcmp(out, good[i].want));
	sm_partitions_destroy(ps);
}

static void test_bad(u32 i)
{
	char err[256] = "";
	struct sm_partitions *ps = sm_partitions_parse(bad[i].text, "p.conf", err, sizeof(err));

	row(100 + i, ps ? "it was taken" : err, !ps && !strncmp(err, bad[i].want, strlen(bad[i].want)));
	sm_partitions_destroy(ps);
}

/* Without a file all ports are full members and IPoIB works; a file replaces that. */
static void test_default(void)
{
	char err[64];
	struct sm_partitions *none = sm_partitions_parse(NULL, NULL, err, sizeof(err));
	struct sm_partitions *empty = sm_partitions_parse("", NULL, err, sizeof(err));

	row(200, "no file", none && none->part[0].ipoib && none->part[0].members[0].membership == SM_MEMBER_FULL);
	row(201, "an empty file",
	    empty && !empty->part[0].ipoib && empty->part[0].members[0].membership == SM_MEMBER_LIMITED);
	row(202, "found by either P_Key", sm_partitions_find(none, 0xffff) == &none->part[0]);
	sm_partitions_destroy(none);
	sm_partitions_destroy(empty);
}

int main(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		test_good(i);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		test_bad(i);
	test_default();
	return rows_end();
}
