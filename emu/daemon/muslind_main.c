// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslind(8): creates a fabric, detaches, and runs until a signal or `muslin down`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/daemon/daemon.h"
#include "emu/daemon/manager_fault.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/lib/rlimit.h"
#include "emu/smhost/sm_mad.h"

static const struct rundir *claimed; /* directory that a failed start removes */
/* The starting process waits here for a byte, its exit status. EOF: the daemon was killed. */
static int ready = -1;

static void muslind_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void muslind_fail(const char *fmt, ...)
{
	va_list ap;

	if (claimed)
		rundir_abandon(claimed);
	fputs("muslin: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (ready >= 0)
		(void)!write(ready, "\1", 1);
	exit(1);
}

static void muslind_background(const char *name)
{
	char status = 1;
	int pipe[2];
	pid_t pid;

	if (pipe2(pipe, O_CLOEXEC))
		muslind_fail("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		muslind_fail("fork: %s", strerror(errno));
	if (pid) {
		close(pipe[1]);
		if (read(pipe[0], &status, 1) != 1)
			fprintf(stderr, "muslin: the daemon of fabric %s was killed while it started\n", name);
		_exit(status);
	}
	close(pipe[0]);
	ready = pipe[1];
	setsid();
	pid = fork();
	if (pid < 0)
		muslind_fail("fork: %s", strerror(errno));
	if (pid)
		_exit(0);
}

/* Redirects standard output and error to the log. */
static void muslind_detach(const struct rundir *run)
{
	char path[RUNDIR_PATH_MAX];
	int log = open(rundir_path(run, RUNDIR_LOG, path), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	int null;

	if (log < 0)
		muslind_fail("%s: %s", path, strerror(errno));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		muslind_fail("/dev/null: %s", strerror(errno));
	if (chdir("/") || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		muslind_fail("cannot detach: %s", strerror(errno));
	close(log);
	close(null);
	if (write(ready, "", 1) != 1) { /* `muslin up` was interrupted */
		(void)unlink(path);
		muslind_fail("the starting process has ended");
	}
	close(ready);
	ready = -1;
}

static struct fabric_topology *muslind_load(const char *topology)
{
	char err[512] = "out of memory";
	struct fabric_topology *t =
		topology ? fabric_topology_open(topology, err, sizeof(err)) : fabric_topology_default();
	const char *line, *end;

	if (!t)
		muslind_fail("%s", err);
	for (line = t->warning; line; line = *end ? end + 1 : NULL) {
		end = strchrnul(line, '\n');
		fprintf(stderr, "muslin: warning: %.*s\n", (int)(end - line), line);
	}
	return t;
}

/* --keep-lids: the LMC is the maximum in the topology, unless given on the command line. */
static void keep_lids(struct daemon *d, struct fabric_topology *mine)
{
	/* the same for all shards */
	int lmc = fabric_topology_keep_lids(d->whole ?: mine);

	if (lmc < 0)
		muslind_fail("--keep-lids: the topology gives no LIDs");
	mine->keep_lids = true;
	d->opt.lmc = d->opt.lmc ? d->opt.lmc : (u8)lmc;
}

static void on_signal(struct loop_fd *w, u32 events, struct now now)
{
	struct daemon *d = container_of(w, struct daemon, signals);

	log_at(LOG_INFO, "", "exits on a signal");
	loop_stop(d->loop);
}

static void watch_signals(struct daemon *d)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	if (d->opt.foreground)
		signal(SIGCHLD, SIG_IGN); /* as a container's init process it inherits orphans */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	d->signals = (struct loop_fd){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .fn = on_signal };
	if (d->signals.fd < 0 || loop_fd_add(d->loop, &d->signals, EPOLLIN))
		muslind_fail("signalfd: %s", strerror(errno));
}

/* The --hold peer has exited. */
static void on_hold(struct loop_fd *w, u32 events, struct now now)
{
	struct daemon *d = container_of(w, struct daemon, hold);

	log_at(LOG_INFO, "", "the peer of --hold has closed");
	loop_fd_del(w);
	loop_stop(d->loop);
}

/* Raises the descriptor limit for thousands of files; new files are private to the user. */
static void muslind_limit(void)
{
	rlimit_raise_files();
	passed_reserve();
	umask(077);
}

static struct uv_host *find_host(void *arg, const char *name)
{
	struct host *h = daemon_host_get(arg, name);

	return h && h->uv.hca ? &h->uv : NULL;
}

static void start_fabric(struct daemon *d, struct fabric_topology *topo)
{
	char why[512];
	int err;

	list_init(&d->faults);
	list_init(&d->trace_points);
	d->fault_id = d->opt.shards ? d->opt.shard + 1 - d->opt.shards : 0;
	d->loop = loop_create();
	manager_faults_init(d);
	d->fabric = d->loop ? fabric_create(d->loop, topo, d->opt.seed) : NULL;
	err = d->fabric ? daemon_ether_create(d, topo) : 0;
	if (err)
		muslind_fail("%s", d->failure[0] ? d->failure : strerror(-err));
	if (d->fabric && topo->ntrunks) {
		d->trunks = trunk_set_create(d->loop, d->fabric, topo, why, sizeof(why));
		if (!d->trunks)
			muslind_fail("%s", why);
		if (!d->opt.shards && fabric_node_count(d->fabric))
			d->fault_seed = fabric_node_guid(fabric_node(d->fabric, 0));
	}
	fabric_topology_destroy(topo);
	if (!d->fabric)
		muslind_fail("the fabric cannot be created: %s", strerror(errno));
	if (daemon_shard_whole(d))
		muslind_fail("out of memory");
	d->started = loop_now(d->loop).ns;
	d->hosts = calloc(fabric_node_count(d->fabric), sizeof(*d->hosts));
	if (!d->hosts)
		muslind_fail("out of memory");
}

/* Creates the subnet manager before detaching, in order to report invalid options; it is
 * started after the log is open. */
static void make_manager(struct daemon *d)
{
	char err[512];

	if (d->opt.no_sm || !daemon_manager_needed(d) || !daemon_shard_has_manager(d))
		return;
	if (daemon_manager_create(d, err, sizeof(err)))
		muslind_fail("%s", err);
}

static void start_servers(struct daemon *d)
{
	char path[RUNDIR_PATH_MAX], tree[RUNDIR_PATH_MAX];

	d->server = uv_server_create(d->loop, rundir_path(&d->run, RUNDIR_HOSTS, path),
				     rundir_path(&d->run, RUNDIR_TREE, tree), find_host, d);
	if (!d->server)
		muslind_fail("%s: %s", path, strerror(errno));
	d->control = ctl_server_create(d->loop, rundir_path(&d->run, RUNDIR_CONTROL, path), daemon_commands, d);
	if (!d->control)
		muslind_fail("%s: %s", path, strerror(errno));
	if (daemon_addresses_write(d))
		muslind_fail("%s: the hosts' addresses cannot be written: %s", tree, strerror(errno));
}

static enum daemon_net net_of(const struct daemon *d)
{
	enum daemon_net net = DAEMON_NET_NONE;
	u32 i;

	if (d->trunks)
		net = trunk_set_has_tcp(d->trunks) || daemon_shard_has_tcp(d) ? DAEMON_NET_TCP : DAEMON_NET_UDP;
	for (i = 0; net != DAEMON_NET_TCP && i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);

		if (daemon_host_is_iwarp(n))
			return DAEMON_NET_TCP;
		if (fabric_node_binding(n))
			net = DAEMON_NET_UDP;
	}
	return net;
}

static void muslind_stop(struct daemon *d)
{
	ctl_server_destroy(d->control);
	daemon_faults_destroy(d);
	daemon_timeline_destroy(d);
	trunk_set_destroy(d->trunks); /* takes its links down, while the hosts that get the events exist */
	uv_server_destroy(d->server);
	loop_timer_cancel(&d->manager_start);
	sm_mad_destroy(d->manager);
	free(d->partitions);
	free(d->lfts);
	daemon_hosts_destroy(d);
	daemon_ether_destroy(d);
	fabric_destroy(d->fabric);
	fabric_topology_destroy(d->whole);
	loop_fd_del(&d->signals);
	loop_fd_del(&d->hold);
	close(d->signals.fd);
	loop_destroy(d->loop);
}

int main(int argc, char **argv)
{
	static struct daemon d;
	struct fabric_topology *topo;
	int lock, err;
	char why[512];

	daemon_options_parse(&d.opt, argc, argv);
	if (daemon_shard_rundir(&d.run, d.opt.name, d.opt.shard, why, sizeof(why)))
		muslind_fail("%s", why);
	topo = muslind_load(d.opt.topology);
	if (d.opt.shards || d.opt.join) {
		d.whole = muslind_load(d.opt.topology);
		if (daemon_shard_topology(&d, topo, why, sizeof(why)))
			muslind_fail("%s", why);
	}
	if (!d.opt.partitions && topo->partition_file) { /* the command line has priority */
		d.opt.partitions = realpath(topo->partition_file, NULL) ?: strdup(topo->partition_file);
		d.opt.partitions_place = strdup(topo->partition_place);
	}
	if (d.opt.keep_lids)
		keep_lids(&d, topo);
	muslind_limit();
	if (!d.opt.foreground)
		muslind_background(d.run.name);
	lock = rundir_claim(&d.run);
	if (lock == -EBUSY)
		muslind_fail(
			"fabric %s is running already; stop it with `muslin down --name %s`, or choose another --name",
			d.run.name, d.run.name);
	if (lock < 0)
		muslind_fail("%s: cannot make the run directory: %s; set MUSLIN_RUNDIR", d.run.dir, strerror(-lock));
	claimed = &d.run;
	start_fabric(&d, topo);
	watch_signals(&d);
	d.hold = (struct loop_fd){ .fd = d.opt.hold, .fn = on_hold };
	if (d.opt.hold >= 0 && loop_fd_add(d.loop, &d.hold, EPOLLIN))
		muslind_fail("--hold %d: %s", d.opt.hold, strerror(errno));
	if (!daemon_hosts_start(&d))
		muslind_fail("%s", d.failure);
	start_servers(&d);
	if (daemon_shard_write(&d))
		muslind_fail("%s: %s", d.run.dir, strerror(errno));
	make_manager(&d);
	daemon_guests_return(&d); /* a start that fails keeps the sockets */
	if (rundir_sign(lock))
		muslind_fail("%s: the process id cannot be written", d.run.dir);
	if (ready >= 0)
		muslind_detach(&d.run);
	log_at(LOG_INFO, "", "fabric %s: %u %s", d.run.name, fabric_node_count(d.fabric),
	       plural(fabric_node_count(d.fabric), "node", "nodes"));
	if (d.manager)
		daemon_shard_start_manager(&d);
	err = passed_signal_init();
	if (err)
		log_at(LOG_INFO, "", "a client may delay others by its eventfd: no AIO: %s", strerror(-err));
	daemon_confine(net_of(&d));
	err = loop_run(d.loop);
	if (err)
		log_at(LOG_ERROR, "", "the loop failed: %s", strerror(-err));
	muslind_stop(&d);
	if (!daemon_shard_leaves_others(&d))
		rundir_remove(&d.run);
	return err != 0;
}
