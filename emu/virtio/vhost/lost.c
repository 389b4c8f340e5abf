// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SIGBUS handler: access to guest memory whose file was truncated raises SIGBUS, which would end the daemon. Zeroed anonymous
 * memory replaces it, and the connection ends as when the guest disconnects.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "emu/virtio/vhost/vhost_internal.h"

static struct list devices = { &devices, &devices }; /* whose guests may have shared memory */

/* Async-signal-safe: mmap and shutdown are bare calls, and the list does not change where memory of guests is touched. */
static bool take_over(struct vhost *v, const u8 *at)
{
	u32 i;

	for (i = 0; i < v->nregions; i++) {
		const struct vhost_region *r = &v->region[i];
		u8 *begin = vhost_region_begin(r);

		if (at < begin || at >= begin + r->map_len)
			continue;
		if (mmap(begin, r->map_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			return false;
		v->lost = true;
		shutdown(v->conn.fd, SHUT_RDWR);
		return true;
	}
	return false;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	struct vhost *v;

	list_for_each (v, &devices, lost_link) {
		if (take_over(v, info->si_addr)) {
			errno = saved;
			return;
		}
	}
	signal(sig, SIG_DFL); /* not guest memory: the default action */
}

void vhost_lost_watch(struct vhost *v)
{
	struct sigaction sa = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	if (list_empty(&devices))
		sigaction(SIGBUS, &sa, NULL);
	list_add(&devices, &v->lost_link);
}

void vhost_lost_unwatch(struct vhost *v)
{
	list_del(&v->lost_link);
}
