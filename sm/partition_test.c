// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of partitions.conf: what it may say, and where it is wrong. The default partition has everybody as limited member
 * besides what is written, as OpenSM has it.
 */
#include <stdio.h>

#include "sm/partition.h"

static u32 passed, failed;

static void row(const char *name, bool ok)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL %s\n", name);
}

static const struct {
	const char *name, *text;
	u32 line; /* of the error; 0: none */
	u32 partitions;
	u16 pkey; /* one that is looked at */
	u32 members;
	bool ipoib;
} rows[] = {
	{ "nothing", "", 0, 1, 0x7fff, 1, false },
	{ "comments", "# only\n\n   # comments\n", 0, 1, 0x7fff, 1, false },
	{ "the usual first line", "Default=0x7fff, ipoib : ALL=full ;\n", 0, 1, 0x7fff, 2, true },
	{ "what Red Hat's guide shows",
	  "Default=0x7fff, rate=3, mtu=4, scope=2, defmember=full:\n        ALL, ALL_SWITCHES=full;\n"
	  "Default=0x7fff, ipoib, rate=3, mtu=4, scope=2:\n\tmgid=ff12:401b::ffff:ffff\t# IPv4 Broadcast address\n"
	  "\tmgid=ff12:401b::1\t\t# IPv4 All Hosts group\n\tmgid=ff12:601b::1\t\t# IPv6 All Hosts group\n\tALL=full, "
	  "ALL_SWITCHES=full;\n"
	  "ib0_2=0x0002, rate=7, mtu=4, scope=2, defmember=full:\n        ALL, ALL_SWITCHES=full;\n",
	  0, 2, 0x0002, 2, false },
	{ "members by GUID", "blue=0x8001 : 0x1051=full, 0x1061=limited, 0x1071 ;\n", 0, 2, 0x0001, 3, false },
	{ "both memberships", "x=5 : ALL=both ;", 0, 2, 5, 1, false },
	{ "without members", "x=5 ;\n", 0, 2, 5, 0, false },
	{ "a partition twice adds up", "x=5 : 0x1 ;\ny=5 : 0x2 ;\n", 0, 2, 5, 2, false },
	{ "SELF and CAs", "x=6 : SELF=full, ALL_CAS=limited ;\n", 0, 2, 6, 2, false },
	{ "no end", "x=5 : ALL\n", 2, 0, 0, 0, false },
	{ "no end, later", "Default=0x7fff : ALL ;\n\nx=5 : ALL", 3, 0, 0, 0, false },
	{ "P_Key is no number", "x=five : ALL ;\n", 1, 0, 0, 0, false },
	{ "P_Key too large", "x=0x12345 : ALL ;\n", 1, 0, 0, 0, false },
	{ "no such membership", "\nx=5 : ALL=half ;\n", 2, 0, 0, 0, false },
	{ "no such flag", "x=5, fast : ALL ;\n", 1, 0, 0, 0, false },
	{ "a member that is none", "x=5 :\n  h1 ;\n", 2, 0, 0, 0, false },
	{ "a wrong MGID", "x=5 :\n  mgid=fe80::1\n  ALL ;\n", 2, 0, 0, 0, false },
	{ "an MTU that there is not", "x=5, mtu=99 : ALL ;\n", 1, 0, 0, 0, false },
};

static void one(size_t i)
{
	char err[256] = "", want[32];
	struct sm_partitions *ps = sm_partitions_parse(rows[i].text, "p.conf", err, sizeof(err));
	const struct sm_partition *p = ps ? sm_partitions_find(ps, rows[i].pkey) : NULL;
	bool ok;

	snprintf(want, sizeof(want), "p.conf:%u: ", rows[i].line);
	if (rows[i].line)
		ok = !ps && !strncmp(err, want, strlen(want));
	else
		ok = ps && ps->n == rows[i].partitions && p && p->nmembers == rows[i].members &&
		     p->ipoib == rows[i].ipoib;
	if (!ok)
		printf("%s: \"%s\", %u partitions, %u members\n", rows[i].name, err, ps ? ps->n : 0,
		       p ? p->nmembers : 0);
	row(rows[i].name, ok);
	sm_partitions_destroy(ps);
}

int main(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		one(i);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
