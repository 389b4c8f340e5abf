// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Addresses of trunks, and resolution of a peer's name by getaddrinfo(), which may block: a detached thread calls it.
 * The thread refers only to its request, which the last one to use it frees.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emu/lib/host_port.h"
#include "emu/lib/thread.h"
#include "fabric/trunk/trunk_internal.h"

struct trunk_resolve {
	/* used by the loop only */
	struct loop_fd w;
	trunk_resolve_fn done;
	void *ctx;
	/* written by the thread before the event */
	struct trunk_addresses found;
	/* shared */
	int event;
	u32 refs;
	char address[];
};

/* By getaddrinfo() with @flags; as trunk_address_read(). */
static int address_look_up(const char *text, int flags, struct trunk_addresses *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags }, *all, *i;
	char host[HOST_MAX];
	const char *port = host_port_split(text, host, sizeof(host));
	int rc = port ? getaddrinfo(host, port, &hints, &all) : EAI_NONAME;

	a->n = 0;
	if (rc)
		return rc;
	for (i = all; i && a->n < TRUNK_ADDRESSES; i = i->ai_next) {
		struct trunk_address *at = &a->at[a->n];

		if (i->ai_family != AF_INET && i->ai_family != AF_INET6)
			continue;
		at->len = min(i->ai_addrlen, (socklen_t)sizeof(at->in6));
		memcpy(&at->sa, i->ai_addr, at->len);
		a->n++;
	}
	freeaddrinfo(all);
	return a->n ? 0 : EAI_NONAME;
}

/* "*:PORT": all addresses of the machine, of both families if it has IPv6. */
static void address_any(const char *port, struct trunk_address *at)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	if (fd >= 0) {
		at->in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						 .sin6_addr = IN6ADDR_ANY_INIT,
						 .sin6_port = htons((u16)strtoul(port, NULL, 10)) };
		at->len = sizeof(at->in6);
		return;
	}
	at->in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((u16)strtoul(port, NULL, 10)) };
	at->len = sizeof(at->in);
}

int trunk_address_read(const char *text, bool listen, struct trunk_addresses *a)
{
	memset(a, 0, sizeof(*a));
	if (text[0] == '/') {
		a->n = 1;
		a->at[0].un.sun_family = AF_UNIX;
		snprintf(a->at[0].un.sun_path, sizeof(a->at[0].un.sun_path), "%s", text);
		a->at[0].len = sizeof(a->at[0].un);
		return 0;
	}
	if (text[0] == '*' && text[1] == ':') { /* the C library takes it as the loopback address */
		if (!listen)
			return EAI_FAIL;
		a->n = 1;
		address_any(text + 2, &a->at[0]);
		return 0;
	}
	return address_look_up(text, listen ? AI_PASSIVE : AI_NUMERICHOST, a);
}

static void resolve_put(struct trunk_resolve *r)
{
	if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL))
		return;
	close(r->event);
	free(r);
}

static void *resolve_thread(void *arg)
{
	struct trunk_resolve *r = arg;

	r->found.error = address_look_up(r->address, 0, &r->found);
	eventfd_write(r->event, 1);
	resolve_put(r);
	return NULL;
}

static void on_resolved(struct loop_fd *w, u32 events, struct now now)
{
	struct trunk_resolve *r = container_of(w, struct trunk_resolve, w);
	struct trunk_addresses found = r->found;
	trunk_resolve_fn done = r->done;
	void *ctx = r->ctx;

	trunk_resolve_cancel(r);
	done(ctx, &found);
}

struct trunk_resolve *trunk_resolve_start(struct loop *loop, const char *address, trunk_resolve_fn done, void *ctx)
{
	size_t len = strlen(address) + 1;
	struct trunk_resolve *r = calloc(1, sizeof(*r) + len);

	if (!r)
		return NULL;
	memcpy(r->address, address, len);
	r->done = done;
	r->ctx = ctx;
	r->refs = 2;
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->w = (struct loop_fd){ .fd = r->event, .fn = on_resolved };
	if (r->event < 0) {
		free(r);
		return NULL;
	}
	if (loop_fd_add(loop, &r->w, EPOLLIN) || thread_detached(resolve_thread, r)) {
		r->refs = 1;
		trunk_resolve_cancel(r);
		return NULL;
	}
	return r;
}

void trunk_resolve_cancel(struct trunk_resolve *r)
{
	loop_fd_del(&r->w);
	resolve_put(r);
}
