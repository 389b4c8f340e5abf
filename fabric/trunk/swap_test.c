// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Swap faults of cables of two daemons: trunks that are suspended, added and removed. */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "emu/lib/clock.h"
#include "fabric/fault.h"
#include "fabric/trunk/trunk_fixture.h"

#define SHAPE "leafs 2 spines %u hosts 2"

static struct side side[2];     /* h1, h2, leaf1, spine1 are in the first one, h3, h4, leaf2, spine2 in the second */
static char shape[80], key[64]; /* the file of the key; "": no key */
static struct fabric_topology *whole;
static struct fault *armed[2];
static u32 far; /* the next shard to which a swap needs a trunk and gets none, plus 1; 0: none */

static char *address(void *ctx, u32 shard)
{
	char path[sizeof(test_path) + 2];

	snprintf(path, sizeof(path), "%s.%u", test_path, shard);
	return strdup(path);
}

static int cable_add(void *ctx, struct fabric_remote *r, const struct fabric_end *own, const struct fabric_end *peer,
		     char *err, size_t err_len)
{
	struct side *s = ctx;
	struct fabric_topology_trunk tt = { .listen = s == &side[0],
					    .peer_guid = peer->node->guid,
					    .peer_port = peer->num,
					    .address = address(NULL, 0),
					    .key = *key ? key : NULL };
	int rc = trunk_set_add(s->set, r, own->node->guid, &tt, err, err_len);

	free(tt.address);
	if (!rc && far && !--far) {
		trunk_set_remove(s->set, r);
		rc = -ENOMEM;
	}
	return rc;
}

static void cable_remove(void *ctx, struct fabric_remote *r)
{
	trunk_set_remove(((struct side *)ctx)->set, r);
}

static void cable_suspend(void *ctx, struct fabric_remote *r, bool suspended)
{
	trunk_set_suspend(((struct side *)ctx)->set, r, suspended);
}

static const struct fabric_cable_ops cable_ops = { .add = cable_add, .remove = cable_remove, .suspend = cable_suspend };

static void swap_begin(u32 i)
{
	struct fabric_shard at = { .index = i, .count = 2, .address = address };
	struct side *s = &side[i];
	char err[300];
	u32 k;

	s->topo = fabric_topology_parse(shape, strlen(shape), "test", err, sizeof(err));
	fabric_topology_shard(s->topo, &at, err, sizeof(err));
	for (k = 0; *key && k < s->topo->ntrunks; k++)
		s->topo->trunks[k].key = strdup(key);
	s->f = fabric_create(test_loop, s->topo, 1);
	side_connect(s);
	fabric_set_whole(s->f, whole, i);
	fabric_set_cables(s->f, &cable_ops, s);
}

static void swap_start_with(u32 spines)
{
	char err[300];

	snprintf(test_path, sizeof(test_path), "/tmp/muslin-swap-%d", getpid());
	snprintf(shape, sizeof(shape), SHAPE, spines);
	test_loop = loop_create_virtual();
	whole = fabric_topology_parse(shape, strlen(shape), "test", err, sizeof(err));
	fabric_topology_assign(whole, 2);
	swap_begin(0);
	swap_begin(1);
	test_run(NSEC_PER_SEC);
}

static void swap_start(void)
{
	swap_start_with(1);
}

static void swap_stop(void)
{
	side_stop(&side[1]);
	side_stop(&side[0]);
	fabric_topology_destroy(whole);
	loop_destroy(test_loop);
	test_loop = NULL;
}

static bool arm(u32 i, const char *text)
{
	char err[300];

	armed[i] = fault_add(fabric_faults(side[i].f), text, err, sizeof(err));
	if (!armed[i])
		printf("%s: %s\n", text, err);
	return armed[i];
}

static bool refused(u32 i, const char *text, const char *why)
{
	char err[300] = "";
	struct fault *ft = fault_add(fabric_faults(side[i].f), text, err, sizeof(err));

	if (ft || !strstr(err, why))
		printf("%s: %s\n", text, ft ? "armed" : err);
	return !ft && strstr(err, why);
}

/* Is the port's link up, and to that port? */
static bool up(u32 i, const char *node, u32 num, const char *peer, u32 peer_num)
{
	struct fabric_port *p = fabric_node_port(fabric_node_find(side[i].f, node), num);

	return p->info->state == PORT_STATE_INIT && !strcmp(p->peer->node->name, peer) && p->peer->num == peer_num;
}

static bool is_topology(void)
{
	u32 i, p;

	for (i = 0; i < whole->nnodes; i++) {
		const struct fabric_topology_node *n = &whole->nodes[i];

		for (p = 1; p <= n->nports; p++)
			if (n->ports[p].peer != FABRIC_NO_PEER &&
			    !up(n->shard, n->name, p, whole->nodes[n->ports[p].peer].name, n->ports[p].peer_port))
				return false;
	}
	return true;
}

/* None: a suspended trunk, or one that a fault has removed, does not count as a wrong peer. */
static u64 refusals(void)
{
	u64 n = 0;
	u32 i, k;

	for (i = 0; i < 2; i++)
		for (k = TRUNK_CTR_REFUSED_HELLO; k <= TRUNK_CTR_REFUSED_BY_PEER; k++)
			n += side_counter(&side[i], (enum trunk_counter)k);
	return n;
}

static const struct {
	const char *lines[2], *what;
	struct {
		u32 side;
		const char *node;
		u32 num;
		const char *peer;
		u32 peer_num;
	} now[4];
} swaps[] = {
	{ { "h2 swap with=h4", "h4 swap with=h2" },
	  "two hosts",
	  { { 0, "h2", 1, "leaf2", 2 },
	    { 1, "leaf2", 2, "h2", 1 },
	    { 1, "h4", 1, "leaf1", 2 },
	    { 0, "leaf1", 2, "h4", 1 } } },
	{ { "spine1:2 swap with=leaf1:1", "leaf2:3 swap with=h1" },
	  "the trunk, and a cable of one daemon",
	  { { 0, "spine1", 2, "h1", 1 },
	    { 0, "h1", 1, "spine1", 2 },
	    { 0, "leaf1", 1, "leaf2", 3 },
	    { 1, "leaf2", 3, "leaf1", 1 } } },
	{ { "h1:1 swap with=leaf2:3", "leaf2:3 swap with=h1:1" },
	  "the trunk and a cable, by their other ends",
	  { { 0, "h1", 1, "spine1", 2 },
	    { 0, "spine1", 2, "h1", 1 },
	    { 0, "leaf1", 1, "leaf2", 3 },
	    { 1, "leaf2", 3, "leaf1", 1 } } },
};

static void test_swaps(void)
{
	u32 i, k, order;
	bool ok;

	swap_start();
	row(0, "the topology", is_topology());
	/* In both orders of the daemons, and so that stand-ins are used again. */
	for (i = 0; i < 2 * ARRAY_SIZE(swaps); i++) {
		order = i & 1;
		ok = arm(order, swaps[i / 2].lines[order]) && arm(!order, swaps[i / 2].lines[!order]);
		test_run(NSEC_PER_SEC);
		for (k = 0; k < 4 && ok; k++)
			ok = up(swaps[i / 2].now[k].side, swaps[i / 2].now[k].node, swaps[i / 2].now[k].num,
				swaps[i / 2].now[k].peer, swaps[i / 2].now[k].peer_num);
		row(10 + (int)i, swaps[i / 2].what, ok);
		fault_remove(armed[order]);
		test_run(50 * NSEC_PER_MSEC);
		row(20 + (int)i, "cleared in one daemon, it ends in the other one",
		    is_topology() && !armed[!order]->applied);
		fault_remove(armed[!order]);
		test_run(NSEC_PER_SEC);
		row(30 + (int)i, "again as in the topology", is_topology());
	}
	row(40, "no peer was refused in the end", side_counter(&side[0], TRUNK_CTR_REFUSED_BUSY) == 0);
	ok = arm(0, "h2 swap with=h4 for=100ms") && arm(1, "h4 swap with=h2 for=100ms");
	test_run(50 * NSEC_PER_MSEC);
	row(41, "for=", ok && up(0, "h2", 1, "leaf2", 2));
	test_run(NSEC_PER_SEC);
	row(42, "has ended", is_topology());
	fault_remove(armed[0]);
	fault_remove(armed[1]);
	row(43, "and no effect when it is cleared", is_topology());
	swap_stop();
}

static void test_swaps_refused(void)
{
	swap_start();
	row(50, "packets", refused(0, "h1 swap with=h3 nth=1", "takes no keys of packets"));
	row(51, "one cable", refused(0, "spine1:2 swap with=leaf2:3", "the other end of the same cable"));
	row(52, "the same port", refused(0, "spine1:2 swap with=spine1:2", "the same port"));
	row(53, "no port", refused(0, "h1 swap with=leaf2", "which port?"));
	row(54, "no such port", refused(0, "h1 swap with=leaf2:9", "the ports of leaf2 are 1 to 3"));
	row(55, "no node", refused(0, "h1 swap with=h9", "there is no such node"));
	far = 2;
	row(56, "no trunk for the second cable", refused(0, "h1 swap with=h3", ""));
	row(57, "has no effect", arm(0, "h1 swap with=h3") && arm(1, "h3 swap with=h1"));
	test_run(NSEC_PER_SEC);
	row(58, "swapped", up(0, "h1", 1, "leaf2", 1) && up(1, "h3", 1, "leaf1", 1));
	row(59, "twice", refused(0, "h1 swap with=h4", "the cable of h1:1 is swapped already"));
	row(60, "its peer, too", refused(0, "leaf1:1 swap with=leaf1:2", "swapped already"));
	fabric_set_cables(side[0].f, NULL, NULL);
	row(61, "without trunks for faults", refused(0, "h2 swap with=h4", "has no trunk"));
	fabric_set_cables(side[0].f, &cable_ops, &side[0]);
	swap_stop(); /* while it is armed */
}

/* A daemon that has no such fault refuses the trunk; the other one tries again. */
static void test_half_a_swap(void)
{
	swap_start();
	arm(1, "h4 swap with=h2");
	test_run(3 * NSEC_PER_SEC);
	row(70, "no link", !up(1, "h4", 1, "leaf1", 2) && up(0, "h2", 1, "leaf1", 2) && !refusals());
	arm(0, "h2 swap with=h4");
	test_run(NSEC_PER_SEC);
	row(71, "the other half", up(1, "h4", 1, "leaf1", 2) && up(0, "h2", 1, "leaf2", 2));
	fault_remove(armed[0]);
	fault_remove(armed[1]);
	test_run(NSEC_PER_SEC);
	row(72, "cleared", is_topology());
	swap_stop();
}

/* A daemon that dies loses its part of a fault: that of the other one ends when it is back. */
static void test_deaths(void)
{
	static const struct {
		const char *what, *lines[2];
		u32 spines, side;
		const char *node;
		u32 num;
		const char *peer;
		u32 peer_num;
	} rows[] = {
		{ "two hosts", { "h2 swap with=h4", "h4 swap with=h2" }, 2, 0, "h2", 1, "leaf2", 2 },
		{ "a trunk and a host",
		  { "spine1:2 swap with=leaf1:1", "leaf2:3 swap with=h1" },
		  2,
		  1,
		  "leaf2",
		  3,
		  "leaf1",
		  1 },
		{ "two trunks, which become cables of each daemon",
		  { "leaf1:4 swap with=leaf2:3", "leaf2:3 swap with=leaf1:4" },
		  2,
		  0,
		  "leaf1",
		  4,
		  "spine1",
		  2 },
	};
	u32 i, dead;
	bool ok;

	for (i = 0; i < 4 * ARRAY_SIZE(rows); i++) {
		dead = i & 1;
		if (!(i & 2))
			key_file(key, sizeof(key), "a key of both sides\n");
		swap_start_with(rows[i / 4].spines);
		ok = arm(0, rows[i / 4].lines[0]) && arm(1, rows[i / 4].lines[1]);
		test_run(2 * NSEC_PER_SEC);
		row(100 + (int)i, rows[i / 4].what,
		    ok && up(rows[i / 4].side, rows[i / 4].node, rows[i / 4].num, rows[i / 4].peer,
			     rows[i / 4].peer_num));
		side_stop(&side[dead]);
		test_run(3 * NSEC_PER_SEC);
		row(120 + (int)i, "while it restarts, the other one keeps it", armed[!dead]->applied);
		swap_begin(dead);
		test_run(3 * NSEC_PER_SEC);
		row(140 + (int)i, "when it is back, it ends", is_topology() && !armed[!dead]->applied && !refusals());
		fault_remove(armed[!dead]);
		test_run(NSEC_PER_SEC);
		row(160 + (int)i, "and can be cleared", is_topology());
		ok = arm(0, rows[i / 4].lines[0]) && arm(1, rows[i / 4].lines[1]);
		test_run(2 * NSEC_PER_SEC);
		row(180 + (int)i, "and armed again",
		    ok && up(rows[i / 4].side, rows[i / 4].node, rows[i / 4].num, rows[i / 4].peer,
			     rows[i / 4].peer_num));
		swap_stop();
		unlink(key);
		key[0] = 0;
	}
}

/* Link numbers are used again when those after them have been. */
static void test_many_swaps(void)
{
	struct trunk_conn *c;
	u32 i;

	swap_start();
	c = side[1].set->trunks[0].connector->conn;
	c->next_number = TRUNK_LINKS - 5;
	for (i = 0; i < 10; i++) {
		arm(0, "h2 swap with=h4");
		arm(1, "h4 swap with=h2");
		test_run(10 * NSEC_PER_MSEC);
		fault_remove(armed[0]);
		fault_remove(armed[1]);
	}
	test_run(NSEC_PER_SEC);
	row(80, "one that is in use is left out", c->next_number > TRUNK_LINKS && is_topology());
	row(81, "on one connection", side[1].set->trunks[0].connector->conn == c && c->nlinks == 1 && !refusals());
	swap_stop();
}

/* Messages that arrive for a trunk that has been suspended, or suspended and resumed, while they were in flight. */
static void test_suspended_in_a_handshake(void)
{
	struct trunk_hello hello = raw_peer_hello();
	struct fabric_remote *r;
	struct trunk_conn *c;
	u32 number;

	swap_start();
	arm(0, "h2 swap with=h4"); /* whose trunks keep the connection */
	arm(1, "h4 swap with=h2");
	test_run(NSEC_PER_SEC);
	r = fabric_remote(side[1].f, 0);
	c = side[1].set->trunks[0].connector->conn;
	number = side[1].set->trunks[0].s.number;
	trunk_set_suspend(side[1].set, r, true);
	row(85, "the response to a hello",
	    trunk_message(c, &(struct trunk_head){ .type = TRUNK_HELLO, .link = cpu_to_be32(number) }, (u8 *)&hello,
			  (u8 *)&hello, sizeof(hello)));
	trunk_set_suspend(side[1].set, r, false);
	test_run(NSEC_PER_SEC);
	trunk_set_suspend(side[1].set, r, true);
	trunk_set_suspend(side[1].set, r, false);
	fabric_link_unplug(fabric_node_port(fabric_node_find(side[0].f, "spine1"), 2)); /* of the session before */
	fabric_link_plug(fabric_node_port(fabric_node_find(side[0].f, "spine1"), 2));
	test_run(NSEC_PER_SEC);
	row(86, "one of an earlier session",
	    side[1].set->trunks[0].connector->conn == c && !refusals() &&
		    !side_counter(&side[1], TRUNK_CTR_VIOLATIONS));
	row(87, "the link is up", up(1, "leaf2", 3, "spine1", 2));
	swap_stop();
}

/* A trunk is suspended while a peer, whose end of the cable is so already, has not proved the key. */
static void test_suspended_with_a_request(void)
{
	struct trunk_hello h = raw_peer_hello();
	struct {
		struct trunk_head head;
		struct trunk_hello body;
	} response;
	struct {
		struct trunk_head head;
		struct trunk_refuse body;
	} refusal;
	struct trunk *t;
	int fd;

	key_file(key, sizeof(key), "a key of both sides\n");
	swap_start();
	t = &side[0].set->trunks[0];
	h.guid = cpu_to_be64(t->peer_guid);
	h.port = t->peer_port;
	h.peer_guid = cpu_to_be64(t->guid);
	h.peer_port = t->port;
	h.flags = TRUNK_HELLO_SUSPENDED;
	side_stop(&side[1]);
	test_run(0);
	fd = raw_peer_connect_to(t->address);
	raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	row(88, "a request", !list_empty(&t->requests));
	arm(0, "spine1:2 swap with=h1");
	test_run(0);
	row(89, "is refused because of the swap, which is not counted",
	    recv(fd, &response, sizeof(response), 0) == sizeof(response) &&
		    recv(fd, &refusal, sizeof(refusal), 0) == sizeof(refusal) && refusal.body.why == TRUNK_SWAPPED &&
		    !side_counter(&side[0], TRUNK_CTR_REFUSED_BUSY));
	close(fd);
	swap_begin(1);
	swap_stop();
	unlink(key);
	key[0] = 0;
}

/* Another process begins to listen at the path of a new listener: the loop does not wait for it. */
static void test_busy_path(void)
{
	struct fabric_end peer = { .num = 1 };
	struct fabric_topology_trunk tt = { .listen = true, .peer_port = 1 };
	struct fabric_remote *r;
	char path[80], file[90], err[300];
	int lock, rc;
	u64 start;

	swap_start();
	snprintf(path, sizeof(path), "%s.busy", test_path);
	snprintf(file, sizeof(file), "%s.lock", path);
	lock = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	flock(lock, LOCK_EX);
	peer.node = fabric_whole_find(side[0].f, "h3");
	tt.peer_guid = peer.node->guid;
	tt.address = path;
	r = fabric_remote_take(fabric_node_port(fabric_node_find(side[0].f, "h1"), 1), &peer);
	start = clock_read();
	rc = trunk_set_add(side[0].set, r, 1, &tt, err, sizeof(err));
	test_run(100 * NSEC_PER_MSEC);
	row(90, "it is not waited for", !rc && clock_read() - start < 500 * NSEC_PER_MSEC && access(path, F_OK));
	unlink(file);
	close(lock);
	test_run(100 * NSEC_PER_MSEC);
	row(91, "it listens later", !access(path, F_OK));
	trunk_set_remove(side[0].set, r);
	fabric_remote_give_back(r);
	swap_stop();
	row(92, "and no longer", access(path, F_OK));
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);

static pthread_mutex_t resolves = PTHREAD_MUTEX_INITIALIZER; /* a thread that resolves a name waits for it */

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	if (!(hints->ai_flags & AI_NUMERICHOST)) {
		pthread_mutex_lock(&resolves);
		pthread_mutex_unlock(&resolves);
	}
	return __real_getaddrinfo(node, service, hints, res);
}

/* A trunk of h1 that connects to @address. */
static struct trunk_connector *trunk_to(char *address, struct fabric_remote **r)
{
	struct fabric_end peer = { .node = fabric_whole_find(side[0].f, "h3"), .num = 1 };
	struct fabric_topology_trunk tt = { .peer_guid = peer.node->guid, .peer_port = 1, .address = address };
	char err[300];

	*r = fabric_remote_take(fabric_node_port(fabric_node_find(side[0].f, "h1"), 1), &peer);
	if (trunk_set_add(side[0].set, *r, 1, &tt, err, sizeof(err)))
		abort();
	trunk_set_suspend(side[0].set, *r, false);
	test_run(0);
	return list_first(&side[0].set->extra, struct trunk, extra)->connector;
}

static void trunk_remove(struct fabric_remote *r)
{
	trunk_set_remove(side[0].set, r);
	fabric_remote_give_back(r);
	test_run(0);
}

/* Threads of this process. */
static u64 threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) ? 0 : st.st_nlink;
}

/* A swap ends before its trunk has a connection. */
static void test_removed_while_it_connects(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client[4];
	socklen_t len = sizeof(at);
	struct trunk_connector *k;
	struct fabric_remote *r;
	char address[40];
	u64 before;
	u32 i;

	swap_start();
	before = threads();
	pthread_mutex_lock(&resolves);
	k = trunk_to("localhost:1", &r);
	row(93, "a name is resolved", k->resolve != NULL);
	trunk_remove(r);
	row(94, "and no longer", !k->resolve);
	pthread_mutex_unlock(&resolves);
	while (threads() > before)
		sched_yield();
	test_run(0);
	row(95, "nor does it connect", !k->conn && !k->unresolved);

	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 0) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		abort();
	for (i = 0; i < ARRAY_SIZE(client); i++) { /* until the listener accepts no more */
		client[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(client[i], (struct sockaddr *)&at, sizeof(at));
	}
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	k = trunk_to(address, &r);
	row(96, "it connects", k->conn && k->conn->connecting);
	trunk_remove(r);
	row(97, "and no longer", !k->conn && !refusals());
	for (i = 0; i < ARRAY_SIZE(client); i++)
		close(client[i]);
	close(listener);
	swap_stop();
}

int main(void)
{
	log_level = LOG_ERROR;
	test_swaps();
	test_swaps_refused();
	test_half_a_swap();
	test_deaths();
	test_many_swaps();
	test_suspended_in_a_handshake();
	test_suspended_with_a_request();
	test_busy_path();
	test_removed_while_it_connects();
	return rows_end();
}
