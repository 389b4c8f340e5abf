// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A client process, as the owner of memory. Each process that uses a device file has its own, with the process ID that
 * the kernel reports for its connection: memory that a child registers on an inherited file is the child's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emu/host/mover.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"

/* The kernel has closed its files before: those that no other process has are closed here, too, before its memory. */
static void on_death(struct loop_fd *w, u32 events, struct now now)
{
	struct uv_process *p = container_of(w, struct uv_process, death);

	loop_fd_del(w);
	uv_process_get(p);
	if (p->server)
		uv_server_exited(p->server, p);
	uv_process_end(p);
	if (p->server)
		uv_server_moved(p->server);
	uv_process_put(p);
}

/* Reads an address that no process has: the kernel checks the permission and accesses no memory. */
static bool process_reachable(pid_t pid)
{
	u8 byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)(~(uintptr_t)0 - 4095), 1 };

	return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT;
}

void uv_process_init(struct uv_process *p, struct loop *loop, pid_t pid)
{
	*p = (struct uv_process){ .loop = loop, .pid = pid, .copy = -1, .users = 1 };
	list_init(&p->link);
	p->needs_copy = !process_reachable(pid);
	p->death = (struct loop_fd){ .fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .fn = on_death };
	if (p->death.fd >= 0 && loop_fd_add(loop, &p->death, EPOLLIN))
		log_at(LOG_DEBUG, "", "the exit of process %d will be detected late", (int)pid);
}

struct uv_process *uv_process_create(struct uv_server *s, struct list *of, pid_t pid)
{
	struct uv_process *p;

	list_for_each (p, of, link) {
		if (p->pid != pid || p->exited)
			continue;
		uv_process_get(p);
		return p;
	}
	p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	uv_process_init(p, uv_server_loop(s), pid);
	p->server = s;
	p->heap = true;
	list_add(of, &p->link);
	return p;
}

void uv_process_get(struct uv_process *p)
{
	p->users++;
}

void uv_process_put(struct uv_process *p)
{
	if (--p->users)
		return;
	uv_process_fini(p);
	if (p->heap)
		free(p);
}

int uv_process_copy_by(struct uv_process *p, int sock, int *memfd)
{
	int fd;
	void *m;

	if (!p->needs_copy || p->copy >= 0 || p->mover)
		return -EINVAL;
	fd = memfd_create("copies", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, UV_COPY_SIZE) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		goto failed;
	m = mmap(NULL, UV_COPY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		goto failed;
	p->staging = m;
	p->copy = sock;
	*memfd = fd;
	return 0;

failed:
	close(fd);
	return -EIO;
}

void uv_process_end(struct uv_process *p)
{
	struct uv_mover *mover = p->mover;

	p->exited = true;
	p->mover = NULL;
	uv_mapping_remove(p, 0, ~0ull);
	if (mover)
		uv_mover_destroy(mover);
	p->moves = p->writes = 0;
	if (p->copy >= 0)
		passed_close_socket(p->copy, p->pid);
	if (p->staging)
		munmap(p->staging, UV_COPY_SIZE);
	p->copy = -1;
	p->staging = NULL;
}

void uv_process_fini(struct uv_process *p)
{
	uv_process_end(p);
	loop_fd_del(&p->death);
	if (p->death.fd >= 0)
		close(p->death.fd);
	list_del(&p->link);
}
