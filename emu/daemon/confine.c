// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Confinement of the running daemon: no_new_privs and a seccomp filter. It executes and traces no programs, and opens
 * local sockets only, unless its hosts use TCP; system calls that are not on the list fail with EPERM.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/log.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(ARCH) && !defined(__SANITIZE_ADDRESS__)

/* The data path first: a kernel without the cache for seccomp decisions evaluates the filter from the top. */
static const u16 allowed[] = {
	__NR_process_vm_readv,
	__NR_process_vm_writev,
	__NR_read,
	__NR_preadv2,
	__NR_write,
	__NR_sendmsg,
	__NR_recvmsg,
	__NR_sendmmsg,
	__NR_recvmmsg,
	__NR_epoll_pwait,
#ifdef __NR_epoll_pwait2
	__NR_epoll_pwait2,
#endif
	__NR_epoll_ctl,
	__NR_sendto,
	__NR_recvfrom,
	__NR_futex,
	__NR_io_submit,
	__NR_io_getevents,
	__NR_sched_yield,
	__NR_clock_gettime,
	/* memory */
	__NR_mmap,
	__NR_munmap,
	__NR_mremap,
	__NR_mprotect,
	__NR_madvise,
	__NR_brk,
	__NR_memfd_create,
	__NR_getrandom,
	/* files: sysfs tree, log, removal of sockets */
	__NR_openat,
	__NR_close,
	__NR_close_range,
	__NR_fstat,
	__NR_newfstatat,
	__NR_statx,
	__NR_lseek,
	__NR_pread64,
	__NR_pwrite64,
	__NR_readv,
	__NR_writev,
	__NR_ftruncate,
	__NR_fallocate,
	__NR_mkdirat,
	__NR_unlinkat,
	__NR_symlinkat,
	__NR_readlinkat,
	__NR_renameat,
	__NR_renameat2,
	__NR_linkat,
	__NR_faccessat,
	__NR_faccessat2,
	__NR_fchmod,
	__NR_fchmodat,
	__NR_utimensat,
	__NR_getdents64,
	__NR_fsync,
	__NR_flock,
	__NR_getcwd,
	__NR_chdir,
	__NR_fchdir,
	__NR_umask,
	__NR_statfs,
	__NR_fstatfs,
	/* descriptors and local sockets */
	__NR_fcntl,
	__NR_dup,
	__NR_dup3,
	__NR_pipe2,
	__NR_eventfd2,
	__NR_timerfd_create,
	__NR_timerfd_settime,
	__NR_signalfd4,
	__NR_epoll_create1,
	__NR_ppoll,
	__NR_socketpair,
	__NR_bind,
	__NR_listen,
	__NR_accept4,
	__NR_shutdown,
	__NR_setsockopt,
	__NR_getsockopt,
	__NR_getsockname,
	__NR_getpeername,
	__NR_ioctl,
	/* its own process, and liveness of programs */
	__NR_getpid,
	__NR_gettid,
	__NR_getuid,
	__NR_geteuid,
	__NR_getgid,
	__NR_getegid,
	__NR_uname,
	__NR_sysinfo,
	__NR_prlimit64,
	__NR_pidfd_open,
	__NR_kill,
	__NR_tgkill,
	__NR_rt_sigaction,
	__NR_rt_sigprocmask,
	__NR_rt_sigreturn,
	__NR_restart_syscall,
	__NR_clock_nanosleep,
	__NR_nanosleep,
	__NR_exit,
	__NR_exit_group,
	__NR_set_robust_list,
	__NR_rseq,
	__NR_membarrier,
	__NR_sched_getaffinity,
#ifdef __x86_64__ /* older forms, missing on newer architectures */
	__NR_epoll_wait,
	__NR_open,
	__NR_stat,
	__NR_lstat,
	__NR_mkdir,
	__NR_rmdir,
	__NR_unlink,
	__NR_symlink,
	__NR_readlink,
	__NR_rename,
	__NR_access,
	__NR_chmod,
	__NR_dup2,
	__NR_pipe,
	__NR_poll,
	__NR_time,
	__NR_gettimeofday,
#endif
};

/* For a daemon whose hosts have sockets on addresses of the machine; io_uring rings exist already, and are
 * only used for send and receive. */
static const u16 allowed_net[] = { __NR_connect, __NR_io_uring_enter };

#define LOAD(field)           (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define GIVE(value)           (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, value)
#define SKIP_UNLESS(value, n) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)

/* The low word of an argument is first: the machines of ARCH are little-endian. */
static u32 write_filter(struct sock_filter *f, enum daemon_net net)
{
	static const u32 families[] = { AF_UNIX, AF_INET, AF_INET6 };
	bool tcp = net == DAEMON_NET_TCP;
	u32 n = 0, extra = net ? ARRAY_SIZE(allowed_net) : 0, i;

	f[n++] = LOAD(arch);
	f[n++] = SKIP_UNLESS(ARCH, 2);
	f[n++] = LOAD(nr);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32 */
	f[n++] = GIVE(SECCOMP_RET_ERRNO | EPERM);
	for (i = 0; i < ARRAY_SIZE(allowed) + extra; i++) {
		f[n++] = SKIP_UNLESS(i < ARRAY_SIZE(allowed) ? allowed[i] : allowed_net[i - ARRAY_SIZE(allowed)], 1);
		f[n++] = GIVE(SECCOMP_RET_ALLOW);
	}
	/* Allows threads, but no processes. The C library uses clone() if clone3(), whose flags a
	 * filter cannot read, does not exist. */
	f[n++] = SKIP_UNLESS(__NR_clone3, 1);
	f[n++] = GIVE(SECCOMP_RET_ERRNO | ENOSYS);
	f[n++] = SKIP_UNLESS(__NR_clone, 4);
	f[n++] = LOAD(args[0]);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	f[n++] = GIVE(SECCOMP_RET_ALLOW);
	f[n++] = GIVE(SECCOMP_RET_ERRNO | EPERM);
	f[n++] = SKIP_UNLESS(__NR_socket, tcp ? 7 : 3);
	f[n++] = LOAD(args[0]);
	for (i = 0; i < (tcp ? ARRAY_SIZE(families) : 1u); i++) {
		f[n++] = SKIP_UNLESS(families[i], 1);
		f[n++] = GIVE(SECCOMP_RET_ALLOW);
	}
	f[n++] = GIVE(SECCOMP_RET_ERRNO | EPERM);
	return n;
}

static int filter_calls(enum daemon_net net)
{
	static struct sock_filter f[2 * (ARRAY_SIZE(allowed) + ARRAY_SIZE(allowed_net)) + 32];
	struct sock_fprog prog = { .len = (u16)write_filter(f, net), .filter = f };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}
#else
static int filter_calls(enum daemon_net net) /* sanitizers use further system calls */
{
	return 0;
}
#endif

void daemon_confine(enum daemon_net net)
{
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		log_at(LOG_WARN, "", "no_new_privs cannot be set: %s", strerror(errno));
		return;
	}
	err = filter_calls(net); /* a sandbox may forbid a second filter */
	if (err)
		log_at(LOG_INFO, "", "runs without a seccomp filter: %s", strerror(-err));
}
