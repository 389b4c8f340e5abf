// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * muslin-sm: the subnet manager as a separate program, on the port that libibumad opens.
 *
 * A thread blocks in umad_recv(), since descriptors of ibsim's preload library cannot be polled, and passes the MADs
 * through a pipe to the loop. Everything else runs in the main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/option.h"
#include "emu/lib/version.h"
#include "emu/wire/mad.h"
#include "emu/wire/sa.h"
#include "emu/wire/smp.h"
#include "sm/partition.h"
#include "sm/sa/sa.h"

#define PENDING_HASH 4096
#define MESSAGE_MAX  (4u << 20) /* longest RMPP request to the SA */
#define TICK_MS      200

enum agent {
	AGENT_LID,
	AGENT_DIRECTED,
	AGENT_SA,
	AGENTS
};

/* An outstanding request. */
struct pending {
	struct list link; /* by hash of the TID */
	u32 tid;
	u64 until; /* when the port should have reported a timeout */
	void *cookie;
};

struct port {
	struct loop *loop;
	struct sm *sm;
	umad_port_t info;
	int id, agent[AGENTS], issm, pipe[2];
	struct list pending[PENDING_HASH];
	struct loop_fd received, signals;
	const char *partitions; /* file; NULL: none */
	struct loop_timer tick;
	bool failed;
};

static const struct {
	int mgmt_class, version, rmpp;
	u8 methods[8]; /* terminated by 0 */
} agents[AGENTS] = {
	[AGENT_LID] = { MAD_CLASS_SUBN_LID,
			MAD_CLASS_VERSION_SUBN,
			0,
			{ MAD_METHOD_GET, MAD_METHOD_SET, MAD_METHOD_TRAP, MAD_METHOD_REPORT,
			  MAD_METHOD_TRAP_REPRESS } },
	[AGENT_DIRECTED] = { MAD_CLASS_SUBN_DIRECTED, MAD_CLASS_VERSION_SUBN, 0, { MAD_METHOD_GET, MAD_METHOD_SET } },
	[AGENT_SA] = { MAD_CLASS_SUBN_ADM,
		       MAD_CLASS_VERSION_SA,
		       1,
		       { MAD_METHOD_GET, MAD_METHOD_SET, SA_METHOD_GET_TABLE, SA_METHOD_GET_TRACE_TABLE,
			 SA_METHOD_GET_MULTI, SA_METHOD_DELETE } },
};

/* ---- outstanding requests, and the link ---- */

static int umad_port_remember(struct port *p, u32 tid, u32 timeout_ms, u32 retries, void *cookie)
{
	struct pending *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->tid = tid;
	w->cookie = cookie;
	w->until = loop_now(p->loop).ns + ((u64)timeout_ms * (retries + 1) + 1000) * NSEC_PER_MSEC;
	list_add(&p->pending[tid % PENDING_HASH], &w->link);
	return 0;
}

/* Removes the request with this TID; returns its cookie, or NULL if there is none. */
static void *umad_port_take(struct port *p, u32 tid)
{
	struct pending *w;
	void *cookie;

	list_for_each (w, &p->pending[tid % PENDING_HASH], link)
		if (w->tid == tid) {
			cookie = w->cookie;
			list_del(&w->link);
			free(w);
			return cookie;
		}
	return NULL;
}

/* Reports timeouts that the port does not report, as with ibsim. */
static void umad_port_expire(struct port *p, struct now now)
{
	struct pending *w, *tmp;
	struct list late;
	u32 i;

	list_init(&late);
	for (i = 0; i < PENDING_HASH; i++)
		list_for_each_safe (w, tmp, &p->pending[i], link)
			if (now.ns >= w->until) {
				list_del(&w->link);
				list_add(&late, &w->link);
			}
	list_for_each_safe (w, tmp, &late, link) {
		list_del(&w->link);
		sm_sent(p->sm, -ETIMEDOUT, w->cookie);
		free(w);
	}
}

/*
 * The own port is Active after a sweep. In Init its link has trained again, and may lead to another node, of which no
 * trap tells the subnet manager. There is no event for this state: libibverbs has one for Active, which only a sweep
 * makes the port.
 */
static void umad_port_check_link(struct port *p)
{
	char path[256], state[16] = "";
	struct sm_status st;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/state", p->info.ca_name, p->info.portnum);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	sm_status(p->sm, &st);
	if (read(fd, state, sizeof(state) - 1) > 0 && atoi(state) == PORT_STATE_INIT && st.subnet_up && !st.sweeping)
		sm_link_trained(p->sm);
	close(fd);
}

static void on_tick(struct loop_timer *t, struct now now)
{
	struct port *p = container_of(t, struct port, tick);

	umad_port_expire(p, now);
	umad_port_check_link(p);
	loop_timer_set(p->loop, t, now.ns + TICK_MS * NSEC_PER_MSEC);
}

/* ---- send ---- */

static void set_addr(void *umad, const struct mad_addr *to)
{
	ib_mad_addr_t grh = { 0 };

	umad_set_addr(umad, to->lid, (int)to->qpn, to->sl,
		      (int)(to->qpn && !to->qkey ? MAD_QKEY_WELL_KNOWN : to->qkey));
	umad_set_pkey(umad, to->pkey_index);
	umad_get_mad_addr(umad)->path_bits = to->path_bits;
	if (!to->grh)
		return;
	memcpy(grh.gid, to->gid.raw, sizeof(grh.gid));
	grh.grh_present = 1;
	grh.flow_label = (__force __be32)to->flow_label; /* in host order in this call */
	grh.hop_limit = to->hop_limit;
	grh.traffic_class = to->traffic_class;
	grh.gid_index = to->gid_index;
	umad_set_grh(umad, &grh);
}

static int port_send(void *transport, const u8 *mad, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
		     void *cookie)
{
	struct port *p = transport;
	u32 tid = wire_get(mad, MAD_TID) & 0xffffffff;
	enum agent agent = 0;
	void *umad;
	int err;

	umad = calloc(1, umad_size() + max(len, (u32)MAD_SIZE));
	if (!umad)
		return -ENOMEM;
	memcpy(umad_get_mad(umad), mad, len);
	set_addr(umad, to);
	while (agent < AGENT_SA && agents[agent].mgmt_class != wire_mad_get_class(mad))
		agent++;
	err = umad_send(p->id, p->agent[agent], umad, (int)max(len, (u32)MAD_SIZE), (int)timeout_ms, (int)retries);
	free(umad);
	if (err)
		return err < 0 ? err : -EIO;
	return timeout_ms ? umad_port_remember(p, tid, timeout_ms, retries, cookie) : 0;
}

/* The kernel clears the bit when the file is closed. */
static void set_is_sm(void *transport, bool on)
{
	struct port *p = transport;
	char path[256];

	if (!on && p->issm >= 0) {
		close(p->issm);
		p->issm = -1;
	} else if (on && p->issm < 0) {
		if (!umad_get_issm_path(p->info.ca_name, p->info.portnum, path, sizeof(path)))
			p->issm = open(path, O_NONBLOCK | O_CLOEXEC);
		if (p->issm < 0)
			log_at(LOG_WARN, "sm", "IsSM cannot be set: %s", strerror(errno));
	}
}

static u64 port_guid(void *transport)
{
	struct port *p = transport;

	return be64toh((__force u64)p->info.port_guid);
}

static const struct sm_transport_ops ops = { .send = port_send, .set_is_sm = set_is_sm, .port_guid = port_guid };

/* ---- receive ---- */

static struct mad_addr from_umad(void *umad)
{
	const ib_mad_addr_t *a = umad_get_mad_addr(umad);
	struct mad_addr from = {
		.qpn = be32toh((__force u32)a->qpn),
		.qkey = be32toh((__force u32)a->qkey),
		.lid = be16toh((__force u16)a->lid),
		.pkey_index = a->pkey_index,
		.sl = a->sl,
		.path_bits = a->path_bits,
	};

	if (!a->grh_present)
		return from;
	from.grh = true;
	from.hop_limit = a->hop_limit;
	from.traffic_class = a->traffic_class;
	from.gid_index = a->gid_index;
	from.flow_label = be32toh((__force u32)a->flow_label);
	memcpy(from.gid.raw, a->gid, sizeof(from.gid.raw));
	return from;
}

/* A message from the receive thread. */
struct message {
	u32 len; /* of the MAD; status != 0: of the failed request */
	int status;
	u8 umad[]; /* followed by the MAD */
};

static void umad_port_deliver(struct port *p, struct message *m)
{
	const u8 *mad = umad_get_mad(m->umad);
	struct mad_addr from = from_umad(m->umad);
	void *cookie = NULL;

	if (m->len < MAD_HDR_SIZE)
		return;
	if (m->status || wire_mad_is_response(wire_mad_get_method(mad))) {
		cookie = umad_port_take(p, wire_get(mad, MAD_TID) & 0xffffffff);
		if (!cookie)
			return; /* a late response, or a failed send of a response */
	}
	if (m->status)
		sm_sent(p->sm, -m->status, cookie);
	else
		sm_receive(p->sm, mad, m->len, &from, cookie);
}

static void on_received(struct loop_fd *w, u32 events, struct now now)
{
	struct port *p = container_of(w, struct port, received);
	struct message *batch[64];
	ssize_t n, i;

	n = read(w->fd, batch, sizeof(batch));
	if (n <= 0) {
		log_at(LOG_ERROR, "sm", "the port has failed");
		p->failed = true;
		loop_stop(p->loop);
		return;
	}
	for (i = 0; i < n / (ssize_t)sizeof(*batch); i++) {
		umad_port_deliver(p, batch[i]);
		free(batch[i]);
	}
}

/* Reads one message; NULL: the port has failed. Messages that do not fit are read again into a larger buffer. */
static struct message *umad_port_receive(int port)
{
	u32 room = MAD_SIZE;
	struct message *m;
	int len, n;

	while (true) {
		m = calloc(1, sizeof(*m) + umad_size() + room);
		if (!m)
			return NULL;
		len = (int)room;
		n = umad_recv(port, m->umad, &len, -1);
		if (n >= 0) {
			m->len = (u32)max(len, 0);
			m->status = umad_status(m->umad);
			if (m->len > room)
				m->len = room;
			return m;
		}
		free(m);
		if (n == -ENOSPC && len > (int)room && len <= (int)MESSAGE_MAX)
			room = (u32)len;
		else if (n != -EINTR && n != -EAGAIN && n != -ETIMEDOUT && n != -EWOULDBLOCK)
			return NULL;
	}
}

static void *umad_port_reader(void *arg)
{
	struct port *p = arg;
	struct message *m;

	while ((m = umad_port_receive(p->id)))
		if (write(p->pipe[1], &m, sizeof(m)) != sizeof(m)) {
			free(m);
			break;
		}
	close(p->pipe[1]);
	return NULL;
}

/* ---- start ---- */

static void register_agents(struct port *p)
{
	u32 i, k;

	for (i = 0; i < AGENTS; i++) {
		long mask[16 / sizeof(long)] = { 0 };

		for (k = 0; k < ARRAY_SIZE(agents[i].methods) && agents[i].methods[k]; k++)
			mask[0] |= 1l << agents[i].methods[k];
		p->agent[i] = umad_register(p->id, agents[i].mgmt_class, agents[i].version, (u8)agents[i].rmpp, mask);
		if (p->agent[i] < 0)
			die("class 0x%02x of %s port %d: %s; does another subnet manager run there?",
			    agents[i].mgmt_class, p->info.ca_name, p->info.portnum, strerror(-p->agent[i]));
	}
}

/* The port with that GUID; 0: the first InfiniBand port. */
static void find_port(struct port *p, u64 guid)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int n, i, k;

	if (umad_init() < 0)
		die("no management devices: is this an RDMA host?");
	n = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	for (i = 0; i < n; i++)
		for (k = 0; k < UMAD_CA_MAX_PORTS; k++) {
			if (umad_get_port(names[i], k, &p->info))
				continue;
			if (k == p->info.portnum && strcmp(p->info.link_layer, "Ethernet") &&
			    (guid ? port_guid(p) == guid : p->info.port_guid != 0))
				return;
			umad_release_port(&p->info);
		}
	if (guid)
		die("there is no port with GUID 0x%016llx", (unsigned long long)guid);
	die("there is no InfiniBand port");
}

static void open_port(struct port *p, u64 guid)
{
	find_port(p, guid);
	p->id = umad_open_port(p->info.ca_name, p->info.portnum);
	if (p->id < 0)
		die("%s port %d: %s", p->info.ca_name, p->info.portnum, strerror(-p->id));
	register_agents(p);
	p->issm = -1;
	if (pipe2(p->pipe, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
}

/* Reloads the partitions; keeps the old ones after an error. */
static void read_partitions(struct port *p)
{
	char err[512], *text = p->partitions ? sm_file_read(p->partitions, NULL, err, sizeof(err)) : NULL;

	if (!p->partitions)
		return;
	if (!text || sm_set_partitions(p->sm, text, p->partitions, err, sizeof(err)))
		log_at(LOG_ERROR, "sm", "%s", err);
	free(text);
}

static void on_signal(struct loop_fd *w, u32 events, struct now now)
{
	struct port *p = container_of(w, struct port, signals);
	struct signalfd_siginfo got;

	while (read(w->fd, &got, sizeof(got)) == sizeof(got)) {
		if (got.ssi_signo == SIGHUP)
			read_partitions(p);
		else
			loop_stop(p->loop);
	}
}

static void start_loop(struct port *p)
{
	sigset_t set;
	u32 i;

	for (i = 0; i < PENDING_HASH; i++)
		list_init(&p->pending[i]);
	p->loop = loop_create();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = (struct loop_fd){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .fn = on_signal };
	p->received = (struct loop_fd){ .fd = p->pipe[0], .fn = on_received };
	p->tick.fn = on_tick;
	if (!p->loop || p->signals.fd < 0 || loop_fd_add(p->loop, &p->signals, EPOLLIN) ||
	    loop_fd_add(p->loop, &p->received, EPOLLIN))
		die("no event loop: %s", strerror(errno));
	loop_timer_set(p->loop, &p->tick, loop_now(p->loop).ns + TICK_MS * NSEC_PER_MSEC);
}

/* ---- options ---- */

static void options_usage(FILE *out)
{
	fputs("usage: muslin-sm [-g GUID] [-p PRIORITY] [-P PARTITIONS] [-R auto|minhop|updn] [-s SECONDS]\n"
	      "                 [-t MILLISECONDS] [-r RETRIES] [--lmc N] [--qos] [-v]\n",
	      out);
}

struct options {
	u64 guid;
	const char *partitions;
	struct sm_config cfg;
};

enum {
	OPT_LMC = 256,
	OPT_QOS,
	OPT_VERSION
};

static const struct option long_options[] = {
	{ "guid", required_argument, NULL, 'g' },
	{ "priority", required_argument, NULL, 'p' },
	{ "partitions", required_argument, NULL, 'P' },
	{ "routing", required_argument, NULL, 'R' },
	{ "sweep", required_argument, NULL, 's' },
	{ "timeout", required_argument, NULL, 't' },
	{ "retries", required_argument, NULL, 'r' },
	{ "lmc", required_argument, NULL, OPT_LMC },
	{ "qos", no_argument, NULL, OPT_QOS },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void options_parse_option(struct options *o, int id)
{
	switch (id) {
	case 'g':
		o->guid = option_number("muslin-sm", "-g", 1, UINT64_MAX);
		break;
	case 'p':
		o->cfg.priority = (u8)option_number("muslin-sm", "-p", 0, 15);
		break;
	case 'P':
		o->partitions = optarg;
		break;
	case 'R':
		o->cfg.routing = optarg;
		break;
	case 's':
		o->cfg.sweep_ms = (u32)option_number("muslin-sm", "-s", 1, 86400) * 1000;
		break;
	case 't':
		o->cfg.timeout_ms = (u32)option_number("muslin-sm", "-t", 1, 60000);
		break;
	case 'r':
		o->cfg.retries = (u32)option_number("muslin-sm", "-r", 1, 100);
		break;
	case OPT_LMC:
		o->cfg.lmc = (u8)option_number("muslin-sm", "--lmc", 0, 7);
		break;
	case OPT_QOS:
		o->cfg.qos = true;
		break;
	case 'v':
		log_level = LOG_DEBUG;
		break;
	case OPT_VERSION:
		puts("muslin-sm " MUSLIN_VERSION);
		exit(0);
	case 'h':
		options_usage(stdout);
		exit(0);
	default:
		options_usage(stderr);
		exit(OPTION_USAGE);
	}
}

static void options_parse(struct options *o, int argc, char **argv)
{
	const char *unknown = option_unknown(argc, argv, long_options);
	int id;

	if (unknown)
		fprintf(stderr, "muslin-sm: %s: no such option\n", unknown);
	o->cfg.window = 32; /* real switches and ibsim receive so many without loss */
	while (!unknown && (id = getopt_long(argc, argv, "g:p:P:R:s:t:r:vh", long_options, NULL)) != -1)
		options_parse_option(o, id);
	if (!unknown && optind == argc)
		return;
	options_usage(stderr);
	exit(OPTION_USAGE);
}

static struct sm *make_sm(struct port *p, struct options *o)
{
	char err[512] = "", *text = NULL;
	struct sm *sm;

	if (o->partitions) {
		text = sm_file_read(o->partitions, NULL, err, sizeof(err));
		if (!text)
			die("%s", err);
	}
	o->cfg.sa = &sm_sa;
	o->cfg.partitions = text;
	o->cfg.partitions_file = o->partitions;
	p->partitions = o->partitions;
	o->cfg.seed = port_guid(p);
	sm = sm_create(p->loop, &ops, p, &o->cfg, err, sizeof(err));
	free(text);
	if (!sm)
		die("%s", err);
	return sm;
}

int main(int argc, char **argv)
{
	static struct options o;
	static struct port p;
	pthread_t thread;
	int err;

	options_parse(&o, argc, argv);
	open_port(&p, o.guid);
	start_loop(&p);
	p.sm = make_sm(&p, &o);
	err = pthread_create(&thread, NULL, umad_port_reader, &p);
	if (err)
		die("no thread: %s", strerror(err));
	log_at(LOG_INFO, "sm", "on %s port %d, GUID 0x%016llx", p.info.ca_name, p.info.portnum,
	       (unsigned long long)port_guid(&p));
	sm_start(p.sm);
	err = loop_run(p.loop);
	sm_stop(p.sm);
	/* The thread may block in a read that cannot be cancelled: the exit frees its memory. */
	return err || p.failed;
}
