// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files from which a program gets events, used directly: poll(), and reads with other sizes than the libraries have.
 * Each line of output names a case in which they act as the kernel's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "must.h"

#define ALL (POLLIN | POLLOUT | POLLPRI | POLLRDHUP)

static void check(const char *what, int ok)
{
	printf("%s%s\n", what, ok ? "" : ": no");
	fflush(stdout);
	if (!ok)
		exit(1);
}

static int polled(int fd)
{
	struct pollfd p = { .fd = fd, .events = ALL };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

static int polled_by_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT }, got = { 0 };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	must(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
	must(epoll_wait(ep, &got, 1, 0) >= 0 && !close(ep), "epoll_wait");
	return (int)got.events;
}

/* Reads as many bytes as there are. 0, or errno. */
static int refused(int fd, size_t len)
{
	char buf[256];

	return read(fd, buf, len) < 0 ? errno : 0;
}

/* Writes a record of umad. 0, or errno. */
static int write_refused(int fd, size_t len, unsigned int agent)
{
	unsigned int record[80] = { agent };

	return write(fd, record, len) < 0 ? errno : 0;
}

static int nonblocking(int fd, int on)
{
	return !fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0);
}

static struct ibv_context *context;
static struct ibv_pd *pd;

/* A queue pair in ERR: a receive is flushed, or with @srq, LAST_WQE_REACHED is raised. */
static void qp_fail(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(qp && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "queue pair");
	must(srq || !ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	attr.qp_state = IBV_QPS_ERR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
}

/* @size: of an event; @raise: raises one. */
static void events(const char *name, int fd, size_t size, void (*raise)(void))
{
	char what[100], buf[256];

	snprintf(what, sizeof(what), "%s: poll() without an event", name);
	check(what, !polled(fd) && !polled_by_epoll(fd));
	snprintf(what, sizeof(what), "%s: a short read without an event", name);
	check(what, nonblocking(fd, 1) && refused(fd, size - 1) == EAGAIN && nonblocking(fd, 0));
	raise();
	raise();
	must(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 10000) == 1, "an event");
	snprintf(what, sizeof(what), "%s: poll() with an event", name);
	check(what, polled(fd) == POLLIN && polled_by_epoll(fd) == EPOLLIN);
	snprintf(what, sizeof(what), "%s: a read of fewer bytes than an event has", name);
	check(what, refused(fd, size - 1) == EINVAL && refused(fd, 1) == EINVAL && refused(fd, 0) == EINVAL);
	snprintf(what, sizeof(what), "%s: a read with room for several", name);
	check(what, read(fd, buf, sizeof(buf)) == (ssize_t)size && read(fd, buf, size) == (ssize_t)size && !polled(fd));
}

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;

static void complete(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	qp_fail(cq, NULL);
	must(poll(&p, 1, 10000) == 1, "a completion event");
}

static void fail_async(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	must(!!srq, "ibv_create_srq");
	qp_fail(cq, srq);
}

/* GET_EVENT is a write(); there is no read(). @addr: of this host. */
static void connection_manager(const char *addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct rdma_event_channel *ec = rdma_create_event_channel();
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC), edges;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *id2;

	must(ec && !rdma_create_id(ec, &id, NULL, RDMA_PS_TCP) && !rdma_create_id(ec, &id2, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, ec->fd, &edge), "epoll_ctl");
	must(inet_pton(AF_INET, addr, &sin.sin_addr) == 1, addr);
	check("rdma_cm: poll() without an event", !polled(ec->fd) && !polled_by_epoll(ec->fd));
	check("rdma_cm: a read without an event", refused(ec->fd, 1) == EINVAL);
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 2000), "rdma_resolve_addr");
	must(poll(&(struct pollfd){ .fd = ec->fd, .events = POLLIN }, 1, 10000) == 1, "an event");
	check("rdma_cm: poll() with an event", polled(ec->fd) == POLLIN && polled_by_epoll(ec->fd) == EPOLLIN);
	check("rdma_cm: a read", refused(ec->fd, 1) == EINVAL && polled(ec->fd) == POLLIN);
	edges = epoll_wait(ep, &got, 1, 10000) == 1 && !epoll_wait(ep, &got, 1, 0);
	must(!rdma_resolve_addr(id2, NULL, (struct sockaddr *)&sin, 2000), "rdma_resolve_addr");
	check("rdma_cm: an edge for each event", edges && epoll_wait(ep, &got, 1, 10000) == 1);
	must(!rdma_get_cm_event(ec, &event), "rdma_get_cm_event");
	check("rdma_cm: an event", event->event == RDMA_CM_EVENT_ADDR_RESOLVED && polled(ec->fd) == POLLIN);
	must(!rdma_get_cm_event(ec, &event), "rdma_get_cm_event");
	check("rdma_cm: the last one", event->event == RDMA_CM_EVENT_ADDR_RESOLVED && !polled(ec->fd));
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int umad = open("/dev/infiniband/umad0", O_RDWR), issm = open("/dev/infiniband/issm0", O_RDWR);

	must(argc > 1 && umad >= 0 && issm >= 0, "the host's address; umad0; issm0");
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	channel = pd ? ibv_create_comp_channel(context) : NULL;
	cq = channel ? ibv_create_cq(context, 10, NULL, channel, 0) : NULL;
	must(!!cq, "completion queue");
	events("completion channel", channel->fd, sizeof(struct ib_uverbs_comp_event_desc), complete);
	events("asynchronous events", context->async_fd, sizeof(struct ib_uverbs_async_event_desc), fail_async);
	check("uverbs: a read", refused(context->cmd_fd, 8) == EINVAL);
	check("umad: poll() without a MAD", polled(umad) == POLLOUT && polled_by_epoll(umad) == EPOLLOUT);
	check("umad: a short write, and one of an agent that there is not",
	      write_refused(umad, 50, 0) == EINVAL && write_refused(umad, 320, 32) == EINVAL);
	check("issm: a read and a write",
	      refused(issm, 8) == EINVAL && write(issm, "12345678", 8) < 0 && errno == EINVAL);
	connection_manager(argv[1]);
	return 0;
}
