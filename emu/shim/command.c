// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Device files: open(), read(), write() and ioctl(). The daemon executes commands; doorbells are bits in shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_mad.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define ANSWER_MAX    2048 /* bytes; no command has a longer response */
#define OPTION_MAX    2048
#define EVENT_WAIT_US 1000000
#define EVENT_POLL_US 100
#define CLOSE_WAIT_US 100000

#define UMAD_WRITE_MIN 36 /* bytes after the header of a record: headers of the MAD and of RMPP */
#define UMAD_AGENTS    32 /* a file: IB_UMAD_MAX_AGENTS */

static struct shim_file *file_new(enum uv_kind kind, unsigned int unit)
{
	struct shim_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->kind = kind;
	f->unit = unit;
	f->fd = f->kick = -1;
	memset(f->rpc, 0xff, sizeof(f->rpc)); /* -1 */
	f->pid = getpid();
	f->event_wait = EVENT_WAIT_US;
	f->umad_hdr = sizeof(struct ib_user_mad_hdr_old);
	return f;
}

/* Maps the doorbells, and starts a copy thread if the daemon requests it. */
static int uverbs_setup(struct shim_file *f, const struct uv_opened *opened)
{
	f->kick = shim_private_add(f->kick);
	if (f->kick < 0)
		return f->kick;
	f->shared = mmap(NULL, UV_SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->shared == MAP_FAILED) {
		f->shared = NULL;
		return -ENOMEM;
	}
	shim_poll_watch(f->shared);
	return opened->copy ? shim_copy_start(f->kind, f->unit, f->cookie) : 0;
}

static void file_drop(struct shim_file *f)
{
	if (f->shared) {
		shim_poll_unwatch(f->shared);
		munmap(f->shared, UV_SHARED_SIZE);
	}
	if (f->fd >= 0)
		REAL(close)(f->fd);
	if (f->kick >= 0)
		shim_private_close(f->kick);
	if (f->rpc[0] >= 0)
		shim_private_close(f->rpc[0]);
	free(f);
}

static int file_open(enum uv_kind kind, unsigned int unit, int flags)
{
	struct shim_file *f = file_new(kind, unit);
	struct uv_opened opened = { 0 };
	int fds[2] = { -1, -1 }, fd, err = -ENOMEM;

	if (f)
		err = shim_connect(kind, unit, 0, fds, &f->rpc[0], &opened);
	if (!err) {
		f->cookie = opened.cookie;
		f->fd = fds[0];
		f->kick = fds[1];
		if (kind == UV_RDMA_CM) {
			f->kick = REAL(fcntl)(f->fd, F_DUPFD_CLOEXEC, 0);
			f->kick = f->kick < 0 ? -errno : shim_private_add(f->kick);
			err = f->kick < 0 ? f->kick : 0;
		}
		if (kind == UV_UVERBS)
			err = uverbs_setup(f, &opened);
	}
	fd = fds[0];
	if (!err && !(flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	if (!err && flags & O_NONBLOCK && kind != UV_UVERBS)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!err)
		err = shim_file_add(fd, f);
	if (!err)
		return fd;
	if (f)
		file_drop(f);
	return shim_result(err);
}

int shim_open(enum uv_kind kind, unsigned int unit, int flags)
{
	int cancel, fd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = file_open(kind, unit, flags);
	pthread_setcancelstate(cancel, NULL);
	return fd;
}

/* False: the program has closed the eventfd by an inline system call; the number may mean another file. */
static bool command_ring_doorbell(struct shim_file *f, uint32_t handle)
{
	struct uv_shared *s = f->shared;
	uint64_t one = 1;

	shim_poll_posted();
	__atomic_fetch_or(&s->doorbell[handle / 64], 1ull << handle % 64, __ATOMIC_SEQ_CST);
	/* Pairs with the daemon's exchange of @rung, after which it reads the doorbells. */
	__atomic_exchange_n(&s->rung, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&s->asleep, __ATOMIC_SEQ_CST))
		return true;
	if (!shim_private_same(f->kick))
		return false;
	(void)!REAL(write)(f->kick, &one, sizeof(one)); /* if the eventfd is full, the daemon will wake */
	return true;
}

/*
 * POST_SEND and REQ_NOTIFY_CQ through shared memory. Returns 1: done; 0: the daemon must execute the command; -1 with
 * errno.
 */
static int command_doorbell(struct shim_file *f, const struct ib_uverbs_cmd_hdr *hdr, const void *body, size_t len)
{
	if (!f->shared)
		return 0;
	if (hdr->command == IB_USER_VERBS_CMD_POST_SEND && len >= sizeof(struct ib_uverbs_post_send)) {
		const struct ib_uverbs_post_send *cmd = body;
		uint32_t h = cmd->qp_handle;

		if (h >= UV_HANDLES || cmd->wr_count || __atomic_load_n(&f->shared->check_posts, __ATOMIC_RELAXED))
			return 0;
		if (!(__atomic_load_n(&f->shared->ready[h / 64], __ATOMIC_ACQUIRE) & 1ull << h % 64))
			return 0;
		if (command_ring_doorbell(f, h))
			return 1;
		errno = EBADF;
		return -1;
	}
	if (hdr->command == IB_USER_VERBS_CMD_REQ_NOTIFY_CQ && len >= sizeof(struct ib_uverbs_req_notify_cq)) {
		const struct ib_uverbs_req_notify_cq *cmd = body;

		if (cmd->cq_handle >= UV_HANDLES)
			return 0;
		uv_arm(&f->shared->arm[cmd->cq_handle], cmd->solicited_only);
		/* Before the program polls again; the daemon has the same fence after a completion. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return 1;
	}
	return 0;
}

bool shim_is_doorbell(const struct shim_file *f, const void *buf, size_t len)
{
	const struct ib_uverbs_cmd_hdr *hdr = buf;

	if (!f->shared || len < sizeof(*hdr) || hdr->in_words * 4u != len)
		return false;
	if (hdr->command == IB_USER_VERBS_CMD_POST_SEND)
		return len == sizeof(*hdr) + sizeof(struct ib_uverbs_post_send) &&
		       hdr->out_words * 4u == sizeof(struct ib_uverbs_post_send_resp);
	return hdr->command == IB_USER_VERBS_CMD_REQ_NOTIFY_CQ && !hdr->out_words &&
	       len == sizeof(*hdr) + sizeof(struct ib_uverbs_req_notify_cq);
}

/* Buffer of the response, and the descriptor among the arguments of the command. */
struct reply {
	void *to;
	size_t room;
	int fd;
	bool channel; /* the response has an event channel */
};

/* Its response has the channel of asynchronous events. */
static bool is_get_context(const void *command)
{
	return ((const struct ib_uverbs_cmd_hdr *)command)->command == IB_USER_VERBS_CMD_GET_CONTEXT;
}

static void verbs_reply(const uint8_t *buf, size_t len, struct reply *r)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex = { 0 };
	size_t at = sizeof(hdr), channel;
	uint64_t to = 0;

	memcpy(&hdr, buf, sizeof(hdr));
	r->room = (size_t)hdr.out_words * 4;
	channel = at + offsetof(struct ib_uverbs_create_cq, comp_channel);
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
		if (len < at + sizeof(ex))
			return;
		memcpy(&ex, buf + at, sizeof(ex));
		to = ex.response;
		r->room = ((size_t)hdr.out_words + ex.provider_out_words) * 8;
		channel = at + sizeof(ex) + offsetof(struct ib_uverbs_ex_create_cq, comp_channel);
	} else if (len >= at + sizeof(to) && hdr.out_words) {
		memcpy(&to, buf + at, sizeof(to));
	}
	r->to = (void *)(uintptr_t)to;
	if ((hdr.command & 0xff) == IB_USER_VERBS_CMD_CREATE_CQ && len >= channel + 4)
		memcpy(&r->fd, buf + channel, 4);
	r->channel = hdr.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL || is_get_context(buf);
}

static void cm_reply(const uint8_t *buf, size_t len, struct reply *r)
{
	const struct rdma_ucm_cmd_hdr *hdr = (const void *)buf;
	size_t at = sizeof(*hdr);
	uint64_t to = 0;

	if (hdr->cmd == RDMA_USER_CM_CMD_CREATE_ID)
		at += offsetof(struct rdma_ucm_create_id, response);
	if (len >= at + 8)
		memcpy(&to, buf + at, 8);
	r->to = (void *)(uintptr_t)to;
	r->room = hdr->out;
	if (hdr->cmd == RDMA_USER_CM_CMD_MIGRATE_ID && len >= sizeof(*hdr) + sizeof(struct rdma_ucm_migrate_id))
		memcpy(&r->fd, buf + sizeof(*hdr) + offsetof(struct rdma_ucm_migrate_id, fd), 4);
}

/* Is it a command that has a pointer to the value of an option? @opt: its parameters. */
static bool has_option(const void *buf, size_t len, struct rdma_ucm_set_option *opt)
{
	const struct rdma_ucm_cmd_hdr *hdr = buf;

	if (len < sizeof(*hdr) + sizeof(*opt) || len != sizeof(*hdr) + hdr->in || len > OPTION_MAX ||
	    hdr->cmd != RDMA_USER_CM_CMD_SET_OPTION)
		return false;
	memcpy(opt, hdr + 1, sizeof(*opt));
	return opt->optlen <= OPTION_MAX - len && opt->optval;
}

/* Appends the value to the command. */
static ON_LARGE_STACK int call_with_option(struct shim_file *f, struct shim_request *req,
					   const struct rdma_ucm_set_option *opt)
{
	uint8_t both[OPTION_MAX];

	memcpy(both, req->in, req->in_len);
	memcpy(both + req->in_len, (const void *)(uintptr_t)opt->optval, opt->optlen);
	req->in = both;
	req->in_len += opt->optlen;
	return shim_call(f, req);
}

static void channel_watch(struct shim_file *parent, int fd, bool async)
{
	struct shim_file *f = file_new(SHIM_CHANNEL, 0);

	if (!f)
		return; /* the daemon keeps it until the file is closed */
	f->parent = parent;
	f->event_size = async ? sizeof(struct ib_uverbs_async_event_desc) : sizeof(struct ib_uverbs_comp_event_desc);
	if (shim_file_add(fd, f))
		free(f);
}

/*
 * REG_MR: checks the memory, and lets the daemon map it if possible (share.c); with on-demand paging there need be
 * none.
 * 0 or -errno.
 */
static int memory_begin(struct shim_file *f, const void *buf, size_t len)
{
	const uint32_t writes = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
				IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_MW_BIND;
	const struct ib_uverbs_cmd_hdr *hdr = buf;
	struct ib_uverbs_reg_mr cmd;
	int err;

	if (hdr->command != IB_USER_VERBS_CMD_REG_MR || len < sizeof(*hdr) + sizeof(cmd))
		return 0;
	memcpy(&cmd, hdr + 1, sizeof(cmd));
	if (cmd.access_flags & IB_UVERBS_ACCESS_ON_DEMAND)
		return 0;
	err = shim_access(cmd.start, cmd.length, cmd.access_flags & writes);
	if (!err)
		shim_share(f, cmd.start, cmd.length);
	return err;
}

/* Closes a completion channel that the daemon has created, and whose descriptor did not arrive. */
static void channel_undo(struct shim_file *f, const uint8_t *out)
{
	uint32_t number;
	uint64_t inode;

	memcpy(&number, out, sizeof(number));
	inode = number; /* those of sockets have 32 bits */
	if (inode)
		shim_call(f, &(struct shim_request){ .op = UV_CLOSED, .in = &inode, .in_len = sizeof(inode) });
}

static bool is_get_event(const struct shim_file *f, const void *command)
{
	return f->kind == UV_RDMA_CM && ((const struct rdma_ucm_cmd_hdr *)command)->cmd == RDMA_USER_CM_CMD_GET_EVENT;
}

/*
 * The socket has bytes while the daemon has events. They are taken before GET_EVENT, and the daemon puts one back if
 * there are more: to take them itself, the daemon would have to wait for a thread (emu/host/readback.c).
 */
static void event_bytes_take(struct shim_file *f)
{
	int saved = errno;
	char byte = 0;

	if (!shim_private_same(f->kick))
		return;
	while (REAL(recvfrom)(f->kick, &byte, 1, MSG_DONTWAIT, NULL, NULL) > 0)
		;
	errno = saved;
}

static ssize_t command_forward(struct shim_file *f, const void *buf, size_t len, unsigned int flags)
{
	struct reply r = { .fd = -1 };
	uint8_t out[ANSWER_MAX];
	size_t out_len = sizeof(out);
	int fd = -1, result = shim_file_connect(f);
	struct shim_request req = { .op = UV_WRITE,
				    .arg = flags,
				    .in = buf,
				    .in_len = len,
				    .in_fd = &r.fd,
				    .out = out,
				    .out_len = &out_len,
				    .fd = &fd };
	struct rdma_ucm_set_option opt;

	memset(out, 0, sizeof(uint32_t));
	if (f->kind == UV_UVERBS && !result)
		result = memory_begin(f, buf, len);
	if (!result && is_get_event(f, buf))
		event_bytes_take(f);
	if (f->kind == UV_UVERBS)
		verbs_reply(buf, len, &r);
	else
		cm_reply(buf, len, &r);
	if (!result && f->kind == UV_RDMA_CM && has_option(buf, len, &opt))
		result = call_with_option(f, &req, &opt);
	else if (!result)
		result = shim_call(f, &req);
	if (result < 0) {
		if (r.channel && out_len >= sizeof(uint32_t))
			channel_undo(f, out);
		return shim_result(result);
	}
	if (fd >= 0 && out_len >= 4)
		memcpy(out, &fd, 4); /* the first member of the response is the descriptor */
	if (fd >= 0 && r.channel)
		channel_watch(f, fd, is_get_context(buf));
	if (r.to && out_len)
		memcpy(r.to, out, out_len < r.room ? out_len : r.room);
	return result;
}

/* gettid() is not in glibc 2.28. */
static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/*
 * Commands and close() calls that invalidate what the thread that reads events (@f's last caller of GET_EVENT) has been
 * woken for. In the kernel the window is a few microseconds, here a context switch between three processes. So they
 * wait for that thread, for a bounded time.
 */

/* The thread that reads events, or 0: there is none, it is the caller, or it has ended. */
static pid_t event_reader(const struct shim_file *f)
{
	pid_t reader = __atomic_load_n(&f->event_thread, __ATOMIC_RELAXED);

	return reader && reader != thread_id() && !syscall(SYS_tgkill, getpid(), reader, 0) ? reader : 0;
}

/*
 * DESTROY_ID discards unread events of the id, LEAVE_MCAST those of the group. A thread that poll() has woken for such
 * an event calls GET_EVENT next, and blocks forever if another thread has discarded the event meanwhile: rping of
 * rdma-core 65 does both. So these commands wait until that thread has read the events. A thread that never reads them
 * delays the first such command by EVENT_WAIT_US, later ones by less.
 */
static ssize_t command_destroy(struct shim_file *f, const void *buf, size_t len)
{
	pid_t reader = event_reader(f);
	unsigned int us;
	ssize_t n;

	for (us = 0; reader && us < f->event_wait; us += EVENT_POLL_US) {
		n = command_forward(f, buf, len, UV_KEEP_EVENTS);
		if (n >= 0 || errno != EAGAIN)
			return n;
		usleep(EVENT_POLL_US);
	}
	if (us)
		f->event_wait /= 4;
	return command_forward(f, buf, len, 0);
}

/* Whether thread @tid of this process executes or waits for a processor. */
static bool thread_is_runnable(pid_t tid)
{
	char path[sizeof("/proc/self/task//stat") + 10], stat[64];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = REAL(read)(fd, stat, sizeof(stat) - 1);
	REAL(close)(fd);
	stat[n < 0 ? 0 : n] = '\0';
	state = strrchr(stat, ')'); /* the end of the name */
	return state && !strncmp(state, ") R", 3);
}

/*
 * Before the program closes a descriptor of @f. A thread that has read an event, acknowledged it and not yet called
 * GET_EVENT again gets EBADF after the close: rping then ends with status 255. So the close waits while that thread is
 * runnable, for CLOSE_WAIT_US at most.
 */
void shim_await_reader(struct shim_file *f)
{
	pid_t reader = f->kind == UV_RDMA_CM ? event_reader(f) : 0;
	unsigned int us;
	int cancel;

	if (!reader)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the caller has a reference to the file */
	for (us = 0; us < CLOSE_WAIT_US && thread_is_runnable(reader); us += EVENT_POLL_US)
		usleep(EVENT_POLL_US);
	pthread_setcancelstate(cancel, NULL);
}

/*
 * The file whose event this thread waits for. A thread that is cancelled there does not return to the hook, which would
 * release the file: its end does.
 */
static __thread struct shim_file *awaited;
static __thread bool awaited_is_released;
extern int __cxa_thread_atexit_impl(void (*fn)(void *arg), void *arg, void *object)
	__attribute__((weak)); /* musl has none, and loads this library, too, for a message */
extern void *__dso_handle __attribute__((visibility("hidden")));

static void awaited_release(void *arg)
{
	struct shim_file *f = awaited;

	awaited = NULL;
	shim_file_put(f);
}

/*
 * @cancel: the state of cancellation that the program has set. GET_EVENT of the kernel continues after a handler of a
 * signal with SA_RESTART; recv() does so, poll() does not.
 */
static ssize_t event_wait(struct shim_file *f, int cancel)
{
	char byte;
	ssize_t n;

	if (!awaited_is_released)
		awaited_is_released = !__cxa_thread_atexit_impl(awaited_release, NULL, &__dso_handle);
	awaited = f;
	pthread_setcancelstate(cancel, NULL);
	n = recv(f->kick, &byte, 1, MSG_PEEK);
	if (n < 0 && errno == ECONNRESET)
		n = 0; /* the daemon has ended: so says the next command */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	awaited = NULL;
	return n;
}

static ssize_t file_write(struct shim_file *f, int fd, const void *buf, size_t len, int cancel)
{
	const struct ib_uverbs_cmd_hdr *hdr = buf;
	bool fits = len <= UV_MESSAGE_MAX - sizeof(struct uv_request);
	ssize_t n;
	int done;

	if (f->kind == UV_ISSM)
		return shim_result(-EINVAL);
	if (f->kind == UV_UMAD) {
		/* Other errors are not reported: the daemon does not respond. */
		if (len < f->umad_hdr + UMAD_WRITE_MIN || ((const struct ib_user_mad_hdr *)buf)->id >= UMAD_AGENTS)
			return shim_result(-EINVAL);
		n = send(fd, buf, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EPIPE)
			errno = EIO; /* the device was removed */
		return n;
	}
	if (f->kind == UV_NETLINK && !fits)
		return shim_result(-EMSGSIZE);
	if (f->kind == UV_NETLINK) /* the daemon writes the netlink responses to the socket before it returns */
		return shim_result(shim_call(f, &(struct shim_request){ .op = UV_WRITE, .in = buf, .in_len = len }));
	if (len < sizeof(*hdr) || !fits)
		return shim_result(-EINVAL);
	done = f->kind == UV_UVERBS ? command_doorbell(f, hdr, hdr + 1, len - sizeof(*hdr)) : 0;
	if (done)
		return done < 0 ? -1 : (ssize_t)len;
	if (f->kind == UV_RDMA_CM &&
	    (hdr->command == RDMA_USER_CM_CMD_DESTROY_ID || hdr->command == RDMA_USER_CM_CMD_LEAVE_MCAST))
		return command_destroy(f, buf, len);
	if (is_get_event(f, buf))
		__atomic_store_n(&f->event_thread, thread_id(), __ATOMIC_RELAXED);
	for (;;) {
		n = command_forward(f, buf, len, 0);
		if (n >= 0 || errno != EAGAIN || !is_get_event(f, buf) || fcntl(f->kick, F_GETFL) & O_NONBLOCK)
			return n;
		if (event_wait(f, cancel) < 0)
			return -1;
	}
}

/* Cancels no thread but in event_wait(): it would leave locks and connections in use. */
ssize_t shim_write(struct shim_file *f, int fd, const void *buf, size_t len)
{
	int cancel;
	ssize_t n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	n = file_write(f, fd, buf, len, cancel);
	pthread_setcancelstate(cancel, NULL);
	return n;
}

/* Of the commands that rdma-core has by ioctl() it uses write() for those that it has there, too. */
static bool is_advise(const struct ib_uverbs_ioctl_hdr *h)
{
	return h->object_id == UVERBS_OBJECT_MR && h->method_id == UVERBS_METHOD_ADVISE_MR;
}

/* Of the records after a successful ioctl: with the P_Key index if that is enabled or REGISTER_AGENT2 comes first. */
static void umad_header(struct shim_file *f, unsigned long request)
{
	bool second = request == IB_USER_MAD_REGISTER_AGENT2;

	if (request == IB_USER_MAD_ENABLE_PKEY || (second && !f->umad_used))
		f->umad_hdr = sizeof(struct ib_user_mad_hdr);
	if (request == IB_USER_MAD_REGISTER_AGENT || second)
		f->umad_used = true;
}

int shim_ioctl(struct shim_file *f, unsigned long request, void *arg)
{
	size_t len = arg ? _IOC_SIZE(request) : 0; /* ENABLE_PKEY has no argument */
	struct shim_request req = {
		.op = UV_IOCTL, .arg = (unsigned int)request, .in = arg, .in_len = len, .out = arg, .out_len = &len
	};
	int result;

	if (f->kind == UV_UVERBS && request == RDMA_VERBS_IOCTL && is_advise(arg))
		return shim_result(shim_file_connect(f) ?: shim_advise(f, arg));
	if (f->kind != UV_UMAD)
		return shim_result(-ENOTTY);
	result = shim_call(f, &req);
	if (!result)
		umad_header(f, request);
	return shim_result(result);
}
