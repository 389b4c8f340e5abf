// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topologies in both formats: the resulting nodes and links, and errors with their line. */
#include <stdio.h>
#include <string.h>

#include "emu/lib/row.h"
#include "emu/wire/smp.h"
#include "fabric/topology.h"

static struct fabric_topology *parse(const char *text, char err[200])
{
	return fabric_topology_parse(text, strlen(text), "f", err, 200);
}

static const struct {
	const char *text;
	u32 nodes, links; /* link ends */
} good[] = {
	{ "leafs 2 spines 2 hosts 4\n", 12, 24 },
	{ "leafs=2 spines=2 hosts=4", 12, 24 },
	{ "leafs 1 hosts 2\n", 3, 4 },
	{ "# two rails\nleafs 2 spines 1 hosts 2\nports 2\n", 7, 20 },
	{ "leafs 2 spines 2 hosts 1 links 3\n", 6, 28 },
	{ "ring 4\nhosts 2\n", 12, 24 },
	{ "fattree k=4 levels=3\n", 36, 96 },
	{ "fattree k=4 levels=2\n", 14, 32 },
	{ "mtu 2048 vls 8 speed 4xEDR\nleafs 1 hosts 1\nhost h1 ip 192.168.1.1/24\n", 2, 2 },
	{ "Switch 4 \"s\"\n[1] \"a\"[1]\nHca 1 \"a\"\n", 2, 2 },
	{ "switchguid=0x1(1)\nSwitch\t8 \"S-1\"\t# \"leaf one\" base port 0 lid 3 lmc 0\n[2](f)\t\"H-2\"[1](3)\t# "
	  "\"h\" lid 4 4xEDR\n"
	  "caguid=0x2\nCa\t2 \"H-2\"\t# \"h\"\n[1](3)\t\"S-1\"[2]\t# lid 4 lmc 0 \"leaf one\" lid 3 4xEDR\n#muslin ip "
	  "\"h\" 10.1.2.3\n",
	  2, 2 },
	{ "host r1 roce 127.0.0.2\n", 1, 0 },
	{ "rails 2 hosts 3 spines 2 units 2\n", 6 + 4 + 2, 2 * (12 + 8) },
	{ "dragonfly groups=9 switches=4 hosts=2 globals=2\n", 36 + 72, 2 * (72 + 9 * 6 + 36) },
	{ "dragonfly groups 3 switches 2 hosts 1 globals 2\n", 6 + 6, 2 * (6 + 3 + 6) },
	{ "switch a 4\nhost b ports 2\ncable a:1 b:1 4xNDR\ncable a:2 b:2 2xNDR delay 25ns disabled # x\n", 2, 4 },
	{ "rates enforced propagation 25ns switch-latency 0.13us leafs 1 hosts 1\n", 2, 2 },
	{ "ethernet a ecn 2m\nhost x ether a ip 10.9.0.1 queue 2097152\n", 1, 0 },
	{ "ethernet a queue 64k ecn 128k pfc 3\nhost x ether a ip 10.9.0.1\n", 1, 0 },
	{ "Chassis 1 (guid 0x1)\nSwitch 4 \"s\"\n[1][ext 3] \"a\"[1] s=4 w=2 v=4\nCa 1 \"a\"\n#muslin rates enforced\n",
	  2, 2 },
	{ "host w1 iwarp 127.0.0.2 ::1 mpa=1 crc=on markers=on rtr=read uring=off start=200ms\n", 1, 0 },
	{ "leafs 1 hosts 2 first 101\ntrunk leaf101:9 listen [::1]:4000 peer 0x2c9:7 # a comment\n", 3, 4 },
	{ "leafs 1 hosts 2\ntrunk leaf1:7 to 192.0.2.1:4000 key /k\ntrunk leaf1:9 to /t\n", 3, 4 },
	{ "leafs 1 hosts 2\ntrunk leaf1:7 to 127.0.0.1:4000 key /k tls on\ntrunk leaf1:9 to /t key /k tls off\n", 3,
	  4 },
	{ "leafs 1 hosts 2\ntrunk leaf1:7 listen *:4000 key /k\n", 3, 4 },
	{ "Switch 4 \"s 1\"\n[1] \"a\"[1]\nCa 1 \"a\"\n#muslin trunk \"s 1:4\" to /t\n", 2, 2 },
	{ "leafs 1 hosts 2\nhost r1 roce 127.0.0.2 ::1\nhost r2 roce eth0 # all of it\n", 5, 4 },
	{ "leafs 2 spines 1 hosts 2\nshard a listen /t nodes leaf1 h[12] spine* # one\nshard b sm nodes leaf2 h[34]\n",
	  7, 12 },
	{ "shard a listen spine:4000 key /k nodes s\nshard b nodes h*\nswitch s 4\nhost h1 ports 1\ncable h1:1 s:1\n",
	  2, 2 },
	{ "Switch 4 \"s 1\"\n[1] \"a\"[1]\nCa 1 \"a\"\n#muslin shard x listen /t nodes \"s 1\"\n#muslin shard y nodes "
	  "a\n",
	  2, 2 },
	/* One address on several networks: two subnets, two VLANs, two Ethernets, InfiniBand and Ethernet. */
	{ "switch a 2\nswitch b 2\nhost h ports 1\nhost i ports 1\ncable a:1 h:1\ncable b:1 i:1\nip h 10.1.0.1\n"
	  "ip i 10.1.0.1\n",
	  4, 4 },
	{ "ethernet a\nhost r ether a ip 10.9.0.1@5\nhost s ether a ip 10.9.0.1@6\n", 2, 0 },
	{ "ethernet a\nethernet b\nethernet a b trunk 6\nhost r ether a vlan 5 ip 10.9.0.1\n"
	  "host s ether b vlan 5 ip 10.9.0.1\n",
	  2, 0 },
	{ "leafs 1 hosts 1\nethernet a\nhost r ether a ip 10.0.0.1\nhost s roce 127.0.0.2\n", 4, 2 },
	/* Two cables, of which no VLAN uses both. */
	{ "ethernet a\nethernet b\nethernet a b trunk 5\nethernet a b vlan 2 trunk 6\nhost r ether a ip 10.9.0.1\n", 1,
	  0 },
	/* Descriptions of dumps that cannot name a host: its identifier does. */
	{ "Switch 4 \"s\"\n[1] \"H-1\"[1]\n[2] \"H-2\"[1]\nCa 1 \"H-1\" # \"..\"\nCa 1 \"H-2\" # \".. mlx5_0\"\n", 3,
	  4 },
	/* One name of an interface on two machines. */
	{ "host r roce eth0\nhost s roce eth0\nshard a nodes r\nshard b nodes s\n", 2, 0 },
};

static u32 links(const struct fabric_topology *t)
{
	u32 i, p, n = 0;

	for (i = 0; i < t->nnodes; i++)
		for (p = 1; p <= t->nodes[i].nports; p++)
			n += t->nodes[i].ports[p].peer != FABRIC_NO_PEER;
	return n;
}

/* TLS is the default where the peer is not of this machine. */
static void test_trunk_tls(void)
{
	static const struct {
		const char *text;
		bool tls;
	} rows[] = {
		{ "192.0.2.1:4000 key /k", true },
		{ "192.0.2.1:4000 key /k tls off", false },
		{ "0.0.0.0:4000 tls off key /k", false },
		{ "0.0.0.0:4000 key /k", true },
		{ "spine:4000 key /k", true },
		{ "127.0.0.1:4000 key /k", false },
		{ "127.0.0.1:4000 tls on key /k", true },
		{ "[::1]:4000 key /k", false },
		{ "/t key /k", false },
	};
	char text[200], err[200];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fabric_topology *t;

		snprintf(text, sizeof(text), "leafs 1 hosts 1\ntrunk leaf1:2 to %s\n", rows[i].text);
		t = parse(text, err);
		row_of(rows[i].text, "TLS", t && t->trunks[0].tls == rows[i].tls);
		fabric_topology_destroy(t);
	}
}

static void test_good(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		char err[200] = "";
		struct fabric_topology *t = parse(good[i].text, err);

		row(1 + (int)i, err[0] ? err : good[i].text,
		    t && t->nnodes == good[i].nodes && links(t) == good[i].links);
		fabric_topology_destroy(t);
	}
}

#define LONG_63 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define STATION "ethernet a\nhost r ether a ip 10.9.0.1\nethernet b\nethernet c\n"

static const struct {
	const char *text, *err;
} bad[] = {
	{ "", "f:1: no nodes" },
	{ "ethernet sw1\nhost t tap sw1 tap0\n", "f:3: no nodes: it needs an InfiniBand switch" },
	{ "leafs 2 spines x hosts 4\n", "f:1: spines is a number" },
	{ "leafs 2\nspines 2\nhots 4\n", "f:3: \"hots\" is not known" },
	{ "leafs 2 spines 2 hosts 4\n\nmtu 1000\n", "f:3: mtu is" },
	{ "leafs 2 spines 2 hosts 4 mtu 2048b\n", "f:1: mtu is" },
	{ "leafs 2 spines 2 hosts 4 vls 3\n", "f:1: vls is" },
	{ "leafs 2 spines 2 hosts 4 vls 8-15\n", "f:1: vls is" },
	{ "leafs 2 spines 2 hosts 4 speed 4x\n", "f:1: speed is" },
	{ "mtu 2048\n", "f:1: unknown shape" },
	{ "ring 2\n", "f:1: a ring has" },
	{ "fattree k=5\n", "f:1: a fat tree" },
	{ "fattree k=4 links 2\n", "f:1: links: a fat tree of 3 levels" },
	{ "ring 4\nleafs 2\n", "f:2: \"leafs\" does not belong" },
	{ "leafs 2 spines 1\nhosts 1 leafs 2\n", "f:2: \"leafs\" is given twice (line 1)" },
	{ "\033[31m\n", "f:1: \"?[31m\" is not understood" },
	{ "ethernet sw1\nhost a ether sw1 ip 10.0.0.1/24@5000\n", "f:2: \"10.0.0.1/24@5000\" is not" },
	{ "leafs 2 hosts 1\n", "f:1: leafs, spines" },
	{ "leafs 1 hosts 200 spines 100\n", "f:1: a node of this type" },
	{ "leafs 1 hosts 1\nhost h2 ip 10.0.0.1\n", "f:2: there is no host \"h2\"" },
	{ "leafs 1 hosts 1\nhost h1:1a ip 10.0.0.1\n", "f:2: \"h1\" has ports 1 to 1" },
	{ "leafs 1 hosts 1\nhost h1 ip 10.0.0\n", "f:2: \"10.0.0\" is not an IP address" },
	{ "leafs 1 hosts 1\nhost h1\n", "f:2: expected host" },
	{ "host r1 roce ::1 loss=2\n", "f:1: loss is from 0 to 1" },
	{ "host r1 roce ::1 ce=-0.1\n", "f:1: ce is from 0 to 1, not \"-0.1\"" },
	{ "host r1 roce ::1 loss=\n", "f:1: loss is from 0 to 1, not \"\"" },
	{ "host r1 roce ::1 mode=v3\n", "f:1: \"mode=v3\": expected mode=v2, dcqcn" },
	{ "host r1 roce dcqcn\n", "f:1: roce needs an address" },
	{ "host w1 iwarp ::1 start=-5ms\n", "f:1: \"start=-5ms\": expected mpa=1|2" },
	{ "host w1 iwarp ::1 uring=yes\n", "f:1: \"uring=yes\": expected mpa=1|2" },
	{ "host w1 iwarp ::1 mpa=3\n", "f:1: \"mpa=3\": expected mpa=1|2" },
	{ "host w1 iwarp crc=on\n", "f:1: iwarp needs an address" },
	{ "host r1 roce\n", "f:1: roce needs an address" },
	{ "host r1 roce 127.0.0.2/8\n", "f:1: \"127.0.0.2/8\": an address of the machine" },
	{ "host r1 roce 300.0.0.1:5\n", "f:1: \"300.0.0.1:5\" is neither an IP address nor an interface" },
	{ "host r1 roce ::1\nhost r1 roce ::2\n", "f:2: " },
	{ "leafs 1 hosts 1\nhost h1 roce 127.0.0.2\n", "f:2: " },
	{ "Switch 4 \"s\"\n[1] \"a\"[1]\n", "f:2: there is no node \"a\"" },
	{ "Switch 4 \"s\"\n[5] \"a\"[1]\n", "f:2: \"s\" has ports 1 to 4" },
	{ "Switch 4 \"s\"\n[1] \"a\"[1]\n[2] \"a\"[1]\nCa 1 \"a\"\n",
	  "f:3: port 1 of \"a\" is wired already (line 2)" },
	{ "Switch 4 \"s\"\n[1] \"a\"[2]\nCa 1 \"a\"\n", "f:2: \"a\" has ports 1 to 1, not 2" },
	{ "Switch 4 \"s\"\n\nSwitch 4 \"s\"\n", "f:3: node \"s\" exists already (line 1)" },
	{ "switchguid=0x7\nSwitch 4 \"s\"\nswitchguid=0x7\nSwitch 4 \"t\"\n",
	  "f:4: GUID 0x0000000000000007 is that of \"s\"" },
	{ "Switch 4 \"s\"\nCa 1 \"a\"\n[1](5) \"s\"[1]\nCa 1 \"b\"\n[1](5) \"s\"[2]\n",
	  "f:5: port GUID 0x0000000000000005 is" },
	{ "[1] \"a\"[1]\n", "f:1: a port before any node" },
	{ "Switch x \"s\"\n", "f:1: the number of ports" },
	{ "Switch 300 \"s\"\n", "f:1: a node of this type" },
	{ "Switch 4 s\n", "f:1: the node's name" },
	{ "Switch 4 \"s\"\n[1 \"a\"[1]\n", "f:2: port 1: the peer's name" },
	{ "Switch 4 \"s\"\n[1] \"a\"\n", "f:2: port 1: the peer's port" },
	{ "Switch 4 \"s\"\n[1] \"s\"[1]\n", "f:2: port 1 is wired to itself" },
	{ "bogus line\n", "f:1: \"bogus\" is not understood" },
	{ "Switch 4 \"s\"\n[1] \"a\"[1] # \"a\" lid 1 8xFOO\nCa 1 \"a\"\n",
	  "f:2: \"8xFOO\" is not a rate: speeds are" },
	{ "Switch 4 \"s\"\n[1] \"a\"[1] # \"a\" lid 1 3xQDR\nCa 1 \"a\"\n", "f:2: \"3xQDR\": a link has 1, 2" },
	{ "Switch 4 \"s\"\n[1] \"a\"[1] # \"a\" lid 1 12xXDR\nCa 1 \"a\"\n", "f:2: \"12xXDR\" is not a rate" },
	{ "Switch 4 \"s\"\n[1] \"a\"[1] w=3\nCa 1 \"a\"\n", "f:2: \"w=3\": widths are" },
	{ "Switch 4 \"s\"\n#muslin disable s:5\n", "f:2: \"s\" has ports 1 to 4, not 5" },
	{ "Switch 4 \"s\"\n#muslin rates fast\n", "f:2: rates are enforced or nominal" },
	{ "ring 4\nspines 2\n", "f:2: \"spines\" does not belong to the shape of line 1" },
	{ "hosts 4\nswitch s 4\n", "f:1: \"hosts\" belongs to a shape" },
	{ "dragonfly groups 9 switches 2 hosts 1 globals 2\n", "f:1: a dragonfly has" },
	{ "rails 2 hosts 2\n", "f:1: rails, hosts" },
	{ "switch a 4\ncable a:1 b:1\n", "f:2: there is no node \"b\"" },
	{ "switch a 4\ncable a:1 a:9\n", "f:2: \"a\" has ports 1 to 4, not 9" },
	{ "switch a 4\ncable a:1 a\n", "f:2: \"a\" is not a port" },
	{ "switch a 4\ncable a:1 a:2 4xFOO\n", "f:2: \"4xFOO\" is not a rate" },
	{ "switch a 4\ncable a:1 a:2 slow\n", "f:2: \"slow\": a cable has" },
	{ "switch a 4\ncable a:1 a:2 delay 5\n", "f:2: delay is a time" },
	{ "switch a\n", "f:1: the number of ports" },
	{ "leafs 1 hosts 1 rates fast\n", "f:1: rates are enforced or nominal" },
	{ "Switch 4 \"s\"\n#muslin ip \"x\" 10.0.0.1\n", "f:2: there is no host \"x\"" },
	{ "Switch 4 \"s\"\n#muslin iq\n", "f:2: expected #muslin ip" },
	{ "leafs 1 hosts 1 first 0\n", "f:1: ports, links and first are at least 1" },
	{ "leafs 1 hosts 1 first 5000\n", "f:1: first is a number up to 4095" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 from /t\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1 to /t\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf2:2 to /t\n", "f:2: there is no node \"leaf2\"" },
	{ "leafs 1 hosts 1\ntrunk leaf1:1 to /t\n", "f:2: port 1 of \"leaf1\" is wired already (line 1)" },
	{ "leafs 1 hosts 1\ntrunk leaf1:255 to /t\n", "f:2: \"leaf1\" has no port \"255\"" },
	{ "leafs 1 hosts 1\ntrunk leaf1:x to /t\n", "f:2: \"leaf1\" has no port \"x\"" },
	{ "leafs 1 hosts 1\ntrunk h1:2 to /t\n", "f:2: \"h1\" has ports 1 to 1, not 2" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to /t\ntrunk leaf1:2 to /u\n", "f:3: leaf1:2 has a trunk already" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to here\n", "f:2: \"here\": an address of a trunk" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to 127.0.0.1:x\n", "f:2: \"127.0.0.1:x\": an address of a trunk" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to 192.0.2.1:4000\n", "f:2: a trunk at \"192.0.2.1:4000\", which is not" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to /t peer 0\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to /t peer 7:300\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to /t key\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to [::1]:1 key /k tls maybe\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to [::1]:1 key /k tls on tls off\n", "f:2: expected trunk NODE:PORT" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to [::1]:1 tls on\n",
	  "f:2: tls on: it needs an address of TCP and: key FILE" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to /t key /k tls on\n", "f:2: tls on: it needs an address of TCP and" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to 192.0.2.1:1 tls off\n", "f:2: a trunk at \"192.0.2.1:1\", which is not" },
	{ "leafs 1 hosts 1\ntrunk leaf1:2 to *:4000 key /k\n", "f:2: \"*:4000\" is an address to listen at" },
	{ "leafs 1 hosts 1\nshard\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a leaf1 h1\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a nodes\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a listen nodes h1\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a listen /t listen /u nodes *\n", "f:2: expected shard NAME" },
	{ "leafs 1 hosts 1\nshard a key /k nodes *\n", "f:2: key and tls are of connections to this shard" },
	{ "leafs 1 hosts 1\nshard a listen a:4000 nodes *\n", "f:2: a trunk at \"a:4000\", which is not" },
	{ "leafs 1 hosts 1\nshard a listen *:4000 key /k nodes *\n", "f:2: \"*:4000\": the other shards need" },
	{ "leafs 1 hosts 1\nshard a listen here nodes *\n", "f:2: \"here\": an address of a trunk" },
	{ "leafs 1 hosts 1\nshard a nodes *\nshard a nodes *\n", "f:3: there is a shard \"a\" already (line 2)" },
	{ "leafs 1 hosts 1\nshard a sm listen /t nodes h1\nshard b sm nodes leaf1\n",
	  "f:3: shard \"a\" has the subnet manager already (line 2)" },
	{ "leafs 1 hosts 1\nshard a nodes * h2\n", "f:2: there is no node \"h2\"" },
	{ "leafs 1 hosts 1\n\nshard a listen /t nodes leaf1\nshard b nodes h1 leaf*\n",
	  "f:4: \"leaf1\" is in shard \"a\" already (line 3)" },
	{ "shard a nodes s\nswitch s 4\nhost h1 ports 1\n", "f:3: \"h1\" is in no shard" },
	{ "leafs 1 hosts 1\nshard a nodes leaf1\nshard b nodes h1\n",
	  "f:2: shard \"a\" needs listen ADDRESS: \"h1\" of the later shard \"b\" is cabled to its \"leaf1\"" },
	{ "Switch 4 \"s\"\n#muslin shard a nodes t\n", "f:2: there is no node \"t\"" },
	{ "leafs 1 hosts 2\nip h1 10.1.0.1\nip h2 10.1.0.1\n",
	  "f:3: 10.1.0.1 of h2:1 is the address of h1:1 on the same network (line 2)" },
	{ "leafs 1 hosts 2\nip h1 10.0.0.2\n",
	  "f:2: 10.0.0.2 of h1:1 is the address that h2:1 on the same network has by default" },
	{ "leafs 1 hosts 2\nip h1 fd00::2\n", "f:2: fd00::2 of h1:1 is the address that h2:1" },
	{ "leafs 1 hosts 1\nports 2\nip h1:2 10.0.0.1\n", "f:3: 10.0.0.1 of h1:2 is the address that h1:1" },
	{ "ethernet a\nethernet b\nhost r ether a ip 10.9.0.1\n\nhost s ether b ip 10.9.0.1\nethernet a b\n",
	  "f:5: 10.9.0.1 of s is the address of r on the same network (line 3)" },
	{ "ethernet a\nhost r ether a ip 10.9.0.1@5\nhost s ether a vlan 5 ip 10.9.0.1\n", "f:3: 10.9.0.1 of s" },
	{ "host r roce 127.0.0.2\nhost s iwarp 127.0.0.3 127.0.0.2\n", "f:2: 127.0.0.2 of s is the address of r" },
	{ "host w1 iwarp lo\n\nhost w2 iwarp 127.0.0.2 crc=on lo\n",
	  "f:3: the interface lo of w2 is that of w1 (line 1)" },
	{ "host r roce dcqcn eth0\nhost s roce dcqcn eth1\nhost t iwarp eth1\n",
	  "f:3: the interface eth1 of t is that of s (line 2)" },
	/* Names: of 63 characters at most; that of a host is a directory's. */
	{ "switch " LONG_63 "x 4\n", "f:1: the name \"" },
	{ "ethernet " LONG_63 "x\n", "f:1: the name \"" },
	{ "leafs 1 hosts 1\nhost " LONG_63 "x ports 1\n", "f:2: the name \"" },
	{ "leafs 1 hosts 1\nhost ../x ports 1\n", "f:2: \"../x\": a host has a directory" },
	{ "leafs 1 hosts 1\nhost .. ports 1\n", "f:2: \"..\": a host has a directory" },
	{ "host a/b roce 127.0.0.2\n", "f:1: \"a/b\": a host has a directory" },
	{ "ethernet e\nhost a/b ether e ip 10.9.0.1\n", "f:2: \"a/b\": a host has a directory" },
	/* Addresses of no host */
	{ "leafs 1 hosts 1\nhost h1 ip 0.0.0.0\n", "f:2: \"0.0.0.0\" is not an address of one host" },
	{ "leafs 1 hosts 1\nhost h1 ip 255.255.255.255\n", "f:2: \"255.255.255.255\" is not an address of one" },
	{ "leafs 1 hosts 1\nhost h1 ip 224.0.0.1\n", "f:2: \"224.0.0.1\" is not an address of one" },
	{ "leafs 1 hosts 1\nhost h1 ip 127.0.0.1/8\n", "f:2: \"127.0.0.1/8\" is not an address of one" },
	{ "leafs 1 hosts 1\nhost h1 ip ::\n", "f:2: \"::\" is not an address of one" },
	{ "leafs 1 hosts 1\nhost h1 ip ff02::1\n", "f:2: \"ff02::1\" is not an address of one" },
	{ "leafs 1 hosts 1\nhost h1 ip 10.0.0.9 10.0.0.10\n", "f:2: \"10.0.0.10\": a port has one IPv4 and" },
	{ "leafs 1 hosts 1\nhost h1 ip fd00::9 fd00::8\n", "f:2: \"fd00::8\": a port has one IPv4 and" },
	{ "ethernet e\nhost a ether e ip 0.0.0.0\n", "f:2: \"0.0.0.0\" is not an address" },
	/* Ethernet: cables, values, MAC addresses and interfaces */
	{ "ethernet a\nethernet a b\n", "f:2: Ethernet switch \"a\" exists already, and \"b\", for a cable, is none" },
	{ "ethernet a\nethernet a a\n", "f:2: a cable from \"a\" to itself" },
	{ STATION "ethernet a b\n\nethernet a b\n", "f:7: this cable closes a loop in VLAN 1" },
	{ STATION "ethernet a b trunk 5\nethernet b c trunk 5,6\nethernet c a vlan 2 trunk 5\n",
	  "f:7: this cable closes a loop in VLAN 5" },
	{ STATION "ethernet a b vlan 5\nethernet b a vlan 6\n", "f:6: this cable closes a loop in VLAN 1" },
	{ "ethernet a mtu 100\n", "f:1: mtu: \"100\" is not a valid value; expected bytes from 576 to 65000" },
	{ "ethernet a queue 64k ecn 65537\n",
	  "f:1: ecn 65537 is more than the queue of 65536 bytes, so that no frame" },
	{ "ethernet a ecn 64k\n\nhost x ether a ip 10.9.0.1 queue 8k\n",
	  "f:3: ecn 65536 is more than the queue of 8192" },
	{ "ethernet a\nethernet b\nethernet a b ecn 2m\n", "f:3: ecn 2097152 is more than the queue of 1048576" },
	{ "ethernet a\nhost x ether a ip 10.9.0.1 mac 2:0:0:0:0:1\nhost y ether a ip 10.9.0.2 mac 2:0:0:0:0:1\n",
	  "f:3: the MAC address of y is that of x (line 2)" },
	{ "ethernet a\nhost t tap a sixteen-letters-\n", "f:2: tap needs the name of an interface, of up to 15" },
};

static void test_bad(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		char err[200] = "";
		struct fabric_topology *t = parse(bad[i].text, err);

		row(100 + (int)i, err[0] ? err : bad[i].text, !t && !strncmp(err, bad[i].err, strlen(bad[i].err)));
		fabric_topology_destroy(t);
	}
}

/* A dump in the format of ibnetdiscover: descriptions with blanks and quotes, FDR10, an unknown speed. */
static const char dump[] =
	"switchguid=0x10(10)\nSwitch\t8 \"S-0000000000000010\"\t\t# \"Core \"two\" - rack 12\" enhanced port 0 lid 7 "
	"lmc 0\n"
	"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"node002 mlx5_0\" lid 12 4xFDR10\n"
	"[2]\t\"H-0000000000000030\"[1](31) \t\t# \"node003 mlx5_0\" lid 16 2xHDR\n"
	"[3]\t\"H-0000000000000040\"[1](41) \t\t# \"node003 mlx5_1\" lid 20 4x???\n"
	"[4]\t\"H-0000000000000050\"[1](51) \t\t# \"MT25408 ConnectX\" lid 24 4xXDR\n"
	"[5]\t\"H-0000000000000060\"[1](61) \t\t# \"MT25408 ConnectX\" lid 28\n"
	"caguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"node002 mlx5_0\"\n"
	"[1](21) \t\"S-0000000000000010\"[1]\t\t# lid 12 lmc 2 \"Core \"two\" - rack 12\" lid 7 4xFDR10\n"
	"caguid=0x30\nCa\t1 \"H-0000000000000030\"\t\t# \"node003 mlx5_0\"\n"
	"caguid=0x40\nCa\t1 \"H-0000000000000040\"\t\t# \"node003 mlx5_1\"\n"
	"caguid=0x50\nCa\t1 \"H-0000000000000050\"\t\t# \"MT25408 ConnectX\"\n"
	"caguid=0x60\nCa\t1 \"H-0000000000000060\"\t\t# \"MT25408 ConnectX\"\n#muslin ip \"node002 mlx5_0\" 10.1.1.1\n";

static void test_dump(void)
{
	char err[200] = "";
	struct fabric_topology *t = parse(dump, err);
	const struct fabric_topology_node *n = t ? t->nodes : NULL;

	row(300, t ? "a dump" : err, t && t->nnodes == 6 && links(t) == 10);
	if (!t)
		return;
	row(301, n[0].name, !strcmp(n[0].name, "Core \"two\" - rack 12") && n[0].ports[0].lid == 7);
	row(302, n[1].name, !strcmp(n[1].name, "node002") && !strcmp(n[1].desc, "node002 mlx5_0"));
	row(303, n[2].name, !strcmp(n[2].name, "node003-mlx5_0") && !strcmp(n[3].name, "node003-mlx5_1"));
	row(304, n[5].name, !strcmp(n[5].name, "H-0000000000000060") && !strcmp(n[5].desc, "MT25408 ConnectX"));
	row(305, "FDR10", n[1].ports[1].speed == WIRE_SPEED_FDR10 && n[0].ports[1].speed == WIRE_SPEED_FDR10);
	row(306, "half width", n[2].ports[1].lanes == 2 && n[2].ports[1].speed == WIRE_SPEED_HDR);
	row(307, "a speed unknown to ibnetdiscover", n[3].ports[1].speed == WIRE_SPEED_SDR);
	row(308, "XDR", n[4].ports[1].speed == WIRE_SPEED_XDR);
	row(309, "LID and LMC", n[1].ports[1].lid == 12 && n[1].ports[1].lmc == 2);
	row(310, t->warning ? t->warning : "no warning",
	    t->warning && !strcmp(t->warning, "f:5: the speed of \"4x???\" is not known: it is taken as SDR\n"
					      "f:7: port 5 has no width and speed: it is taken as 4xHDR"));
	row(313, "enhanced port 0", n[0].enhanced_port0 && !n[1].enhanced_port0);
	row(311, "an address by the description", n[1].ip[1].v4 == 0x0a010101);
	fabric_topology_destroy(t);
}

static void test_hand_made(void)
{
	char err[200] = "";
	struct fabric_topology *t = parse("switch \"core x\" 4\nhost b ports 2\nrates enforced\nswitch-latency 0.13us\n"
					  "cable \"core x\":1 b:1 4xNDR delay 25ns\ncable b:2 \"core x\":2 disabled\n"
					  "disable \"core x\":4\n",
					  err);
	const struct fabric_topology_node *n = t ? t->nodes : NULL;

	row(320, t ? "cables by hand" : err, t && t->nnodes == 2 && links(t) == 4);
	if (!t)
		return;
	row(321, "a rate", n[0].ports[1].lanes == 4 && n[0].ports[1].speed == WIRE_SPEED_NDR);
	row(322, "the default again", n[0].ports[2].speed == WIRE_SPEED_HDR);
	row(323, "a delay", n[1].ports[1].delay_ps == 25000 && n[0].ports[2].delay_ps == FABRIC_DELAY_DEFAULT);
	row(324, "disabled", n[0].ports[4].disabled && n[1].ports[2].disabled && !n[1].ports[1].disabled);
	row(325, "time", t->timed && t->switch_ps == 130000);
	fabric_topology_destroy(t);
}

static void test_details(void)
{
	char err[200];
	struct fabric_topology *t = parse(good[10].text, err);

	row(200, "names are the descriptions",
	    t && !strcmp(t->nodes[0].name, "leaf one") && !strcmp(t->nodes[1].name, "h"));
	row(201, "port GUIDs", t && t->nodes[1].ports[1].guid == 3);
	row(202, "widths and speeds",
	    t && t->nodes[1].ports[1].lanes == 4 && t->nodes[1].ports[1].speed == WIRE_SPEED_EDR);
	row(203, "an address in a remark", t && t->nodes[1].ip[1].v4 == 0x0a010203 && t->nodes[1].ip[1].v4_line == 7);
	fabric_topology_destroy(t);
	t = fabric_topology_default();
	row(204, "the default names its hosts",
	    t && !strcmp(t->nodes[4].name, "h1") && !strcmp(t->nodes[11].name, "h8"));
	row(205, "and gives them addresses",
	    t && t->nodes[4].ip[1].v4 == 0x0a000001 && t->nodes[4].ip[1].v6[0] == 0xfd);
	fabric_topology_destroy(t);
	t = parse("fattree k=36 levels=3\n", err);
	row(206, "11,664 hosts and 1,620 switches", t && t->nnodes == 11664 + 1620);
	fabric_topology_destroy(t);
	t = fabric_topology_load("/nonexistent/x", err, sizeof(err));
	row(207, "a file that is not there", !t && !strncmp(err, "/nonexistent/x: No such", 23));
	t = fabric_topology_open("/nonexistent/ring 3", err, sizeof(err));
	row(209, "a file that is not there, with a blank in its name", !t && strstr(err, "ring 3: No such"));
	t = fabric_topology_open("leafs 2 spines 2 hosts 4", err, sizeof(err));
	row(210, t ? "the short form as an argument" : err, t && t->nnodes == 12);
	fabric_topology_destroy(t);
	t = fabric_topology_open("ring=3", err, sizeof(err));
	row(211, t ? "one word of it" : err, t && t->nnodes == 6);
	fabric_topology_destroy(t);
	t = fabric_topology_open("leafz 2 spines 2", err, sizeof(err));
	row(213, err, !t && !strncmp(err, "topology:1: ", 12));
	t = fabric_topology_open("leafs 2 spines", err, sizeof(err));
	row(212, "a wrong one names the line", !t && !strncmp(err, "topology:1: ", 12));
	t = fabric_topology_load("scenarios/topologies/two-leafs.net", err, sizeof(err));
	row(208, t ? "the scenarios' file" : err, !t || (t->nnodes == 12 && links(t) == 24));
	fabric_topology_destroy(t);
}

static char *shard_address(void *ctx, u32 shard)
{
	char text[32];

	snprintf(text, sizeof(text), "/shard%u", shard);
	return strdup(text);
}

static struct fabric_topology *shard_of(const char *text, u32 index, u32 count, char err[200])
{
	struct fabric_shard at = { .index = index, .count = count, .address = shard_address };
	struct fabric_topology *t = parse(text, err);

	if (t && !fabric_topology_shard(t, &at, err, 200))
		return t;
	fabric_topology_destroy(t);
	return NULL;
}

/* All shards together have all nodes; each cable is in one of them or is a trunk of two, with matching ends. */
static void test_shards(void)
{
	static const struct {
		const char *text;
		u32 count, nodes, links;
	} rows[] = {
		{ "leafs 2 spines 2 hosts 4", 2, 12, 24 },
		{ "leafs 3 spines 1 hosts 2 links 2", 2, 10, 24 },
		{ "fattree k=8", 4, 208, 768 },
		{ "ring 7 hosts 2", 3, 21, 42 },
		{ "leafs 4 spines 2 hosts 2 ports 2", 4, 14, 48 },
	};
	u32 i, s, k, j;
	char err[200];

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fabric_topology *t[8] = { NULL };
		u32 nodes = 0, wired = 0, fit = 0, least = ~0u;

		for (s = 0; s < rows[i].count; s++) {
			t[s] = shard_of(rows[i].text, s, rows[i].count, err);
			nodes += t[s] ? t[s]->nnodes : 0;
			wired += t[s] ? links(t[s]) + t[s]->ntrunks : 0;
			least = min(least, t[s] ? t[s]->nnodes : 0);
		}
		row(300 + (int)i, rows[i].text,
		    nodes == rows[i].nodes && wired == rows[i].links && least >= nodes / rows[i].count / 2);
		for (wired = s = 0; s < rows[i].count && t[s]; s++)
			for (k = 0; k < t[s]->ntrunks; k++) {
				const struct fabric_topology_trunk *a = &t[s]->trunks[k], *b;
				const struct fabric_topology *o = t[a->address[6] - '0'];

				wired++;
				if (a->listen) {
					fit += a->address[6] - '0' == (int)s;
					continue;
				}
				for (j = 0; j < o->ntrunks; j++) {
					b = &o->trunks[j];
					fit += b->listen && o->nodes[b->node].guid == a->peer_guid &&
					       b->port == a->peer_port && b->peer_port == a->port &&
					       b->peer_guid == t[s]->nodes[a->node].guid;
				}
			}
		row(320 + (int)i, "both ends of its trunks", wired && fit == wired);
		for (s = 0; s < rows[i].count; s++)
			fabric_topology_destroy(t[s]);
	}
	row(340, "too few leafs",
	    !shard_of("leafs 1 hosts 9", 0, 2, err) && strstr(err, "fewer leaf switches") &&
		    strstr(err, "cannot be split into shards")); /* by which pytest's plugin knows it */
	row(341, "trunks of its own",
	    !shard_of("leafs 2 spines 1 hosts 9\ntrunk leaf1:99 to /t", 0, 2, err) && strstr(err, "trunks of its own"));
	row(342, "Ethernet", !shard_of("leafs 2 spines 1 hosts 9\nethernet sw1", 0, 2, err) && strstr(err, "Ethernet"));
}

/* Three shards by lines: names, GUIDs and addresses of the whole, and trunks whose ends agree. */
static void test_join(void)
{
	static const char text[] = "leafs 2 spines 1 hosts 2\n"
				   "shard core listen spine:4000 key /k nodes spine1\n"
				   "shard one listen 127.0.0.1:4001 nodes leaf1 h1 h2\n"
				   "shard two sm nodes leaf2 h3 h4\n"
				   "cable h2:1 leaf1:2\n"; /* again */
	static const struct {
		const char *name, *address;
		u32 nodes, links, trunks;
		bool listen, key, tls;
	} rows[] = {
		{ "core", "*:4000", 1, 0, 2, true, true, true },
		{ "one", "spine:4000", 3, 4, 1, false, true, true },
		{ "two", "spine:4000", 3, 4, 1, false, true, true },
	};
	struct fabric_topology *t[ARRAY_SIZE(rows)], *whole;
	char err[200] = "";
	u32 i, k, same = 0;

	whole = parse(text, err);
	row(400, whole ? "shards" : err, whole && whole->nshards == 3 && whole->nnodes == 7);
	for (i = 0; i < ARRAY_SIZE(rows) && whole; i++) {
		t[i] = parse(text, err);
		row_of(rows[i].name, "joins", !fabric_topology_join(t[i], rows[i].name, err, sizeof(err)));
		row_of(rows[i].name, "has its nodes",
		       t[i]->nnodes == rows[i].nodes && links(t[i]) == rows[i].links &&
			       t[i]->ntrunks == rows[i].trunks);
		for (k = 0; k < t[i]->ntrunks; k++) {
			const struct fabric_topology_trunk *tt = &t[i]->trunks[k];

			row_of(rows[i].name, tt->address,
			       !strcmp(tt->address, rows[i].address) && tt->listen == rows[i].listen &&
				       !tt->key == !rows[i].key && tt->tls == rows[i].tls);
		}
		row_of(rows[i].name, "manager", t[i]->shards[i].manager == (i == 2));
	}
	if (!whole)
		return;
	row(401, "the peers",
	    !strcmp(t[0]->trunks[1].peer_name, "leaf2") && t[0]->trunks[1].port == 2 &&
		    t[0]->trunks[1].peer_guid == t[2]->nodes[0].guid &&
		    t[0]->trunks[1].peer_port == t[2]->trunks[0].port &&
		    t[2]->trunks[0].peer_guid == t[0]->nodes[0].guid && t[2]->trunks[0].peer_port == 2);
	for (k = 0; k < t[2]->nnodes; k++)
		for (i = 0; i < whole->nnodes; i++)
			same += !strcmp(t[2]->nodes[k].name, whole->nodes[i].name) &&
				t[2]->nodes[k].guid == whole->nodes[i].guid &&
				(!t[2]->nodes[k].ip || t[2]->nodes[k].ip[1].v4 == whole->nodes[i].ip[1].v4);
	row(402, "GUIDs and addresses of the whole", same == 3);
	row(403, "an unknown name",
	    fabric_topology_join(whole, "three", err, sizeof(err)) && strstr(err, "no shard \"three\""));
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		fabric_topology_destroy(t[i]);
	fabric_topology_destroy(whole);
	whole = fabric_topology_default();
	row(404, "no lines", fabric_topology_join(whole, "a", err, sizeof(err)) && strstr(err, "no lines"));
	fabric_topology_destroy(whole);
	whole = parse("leafs 1 hosts 1\nshard a sm nodes *\ntrunk leaf1:9 to /t\n", err);
	row(405, "trunks of its own",
	    fabric_topology_join(whole, "a", err, sizeof(err)) && strstr(err, "trunks of its own"));
	fabric_topology_destroy(whole);
}

/* Two topologies as one: the cables that their trunks become, as NODE:PORT of one end, or the error. */
static void test_merge(void)
{
#define ONE "leafs 1 hosts 1\n"
#define TWO "leafs 1 hosts 1 first 101\n"
	static const struct {
		const char *text[2], *err;
		u8 peer_port; /* of port 5 of leaf1 */
	} rows[] = {
		{ { ONE "trunk leaf1:5 listen /t", TWO "trunk leaf101:7 to /t" }, NULL, 7 },
		{ { ONE "trunk leaf1:5 to /t", TWO "trunk leaf101:7 listen /t" }, NULL, 7 },
		{ { ONE "trunk leaf1:5 listen *:4 key k", TWO "trunk leaf101:7 to x:4 key k" }, NULL, 7 },
		{ { ONE "trunk leaf1:5 listen [::]:4 key k", TWO "trunk leaf101:7 to 192.0.2.1:4 key k" }, NULL, 7 },
		{ { ONE "trunk leaf1:5 listen /t\ntrunk leaf1:6 listen /t",
		    TWO "trunk leaf101:7 to /t\ntrunk leaf101:8 to /t peer 0x2c90400000010:5" },
		  NULL,
		  8 },
		{ { ONE "trunk leaf1:5 listen /t peer 0x2c90406400010:8\ntrunk leaf1:6 listen /t",
		    TWO "trunk leaf101:7 to /t\ntrunk leaf101:8 to /t" },
		  NULL,
		  8 },
		{ { ONE "trunk leaf1:5 listen 127.0.0.1:4", TWO "trunk leaf101:7 to 127.0.0.2:4" },
		  "a:2: no trunk of the other given topologies is the other end of leaf1:5, which listens at" },
		{ { ONE "trunk leaf1:5 listen *:4 key k", TWO "trunk leaf101:7 to x:5 key k" }, "a:2: no trunk" },
		{ { ONE "trunk leaf1:5 listen /t", TWO "trunk leaf101:7 to /t peer 0x7" }, "a:2: no trunk" },
		{ { ONE "trunk leaf1:5 listen /t\ntrunk leaf1:6 to /t", TWO }, "a:2: no trunk" },
		{ { ONE, TWO "\ntrunk leaf101:7 to /t" }, "b:3: no trunk" },
		{ { ONE, ONE }, "\"h1\" and \"h1\" of two topologies have the same name" },
		{ { ONE, "switchguid=0x2c90400000010\nSwitch 4 \"x\"\n" },
		  "\"leaf1\" and \"x\" of two topologies have the same GUID" },
		{ { ONE, TWO "mtu 2048" }, "b: mtu, vls" },
		{ { ONE, TWO "ethernet sw1" }, "b: topologies with Ethernet" },
	};
	static const char *const file[] = { "a", "b" };
	char err[200];
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fabric_topology *t[2] = { parse(rows[i].text[0], err), parse(rows[i].text[1], err) };
		int rc = t[0] && t[1] ? fabric_topology_merge(t, file, 2, err, sizeof(err)) : -1;
		const struct fabric_topology_port *p = rc || rows[i].err ? NULL : &t[0]->nodes[0].ports[5];

		if (rows[i].err)
			row(500 + (int)i, err, rc && !strncmp(err, rows[i].err, strlen(rows[i].err)));
		else
			row(500 + (int)i, rc ? err : rows[i].text[0],
			    p && p->peer == 2 && p->peer_port == rows[i].peer_port && t[0]->nnodes == 4 &&
				    !t[0]->ntrunks && t[0]->nodes[2].ports[p->peer_port].peer == 0);
		for (k = 0; k < 2; k++)
			fabric_topology_destroy(t[k]);
	}
}

int main(void)
{
	test_good();
	test_trunk_tls();
	test_bad();
	test_details();
	test_shards();
	test_join();
	test_merge();
	test_dump();
	test_hand_made();
	return rows_end();
}
