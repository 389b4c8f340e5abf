// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses of trunks: socket addresses of their texts, and names that a thread resolves. */
#include <arpa/inet.h>
#include <netdb.h>

#include "emu/lib/row.h"
#include "fabric/trunk/trunk_internal.h"

static const struct {
	const char *text;
	bool listen;
	int rc, family;
	const char *host; /* as inet_ntop() writes it */
} rows[] = {
	{ "/tmp/t", true, 0, AF_UNIX, NULL },
	{ "127.0.0.2:4000", true, 0, AF_INET, "127.0.0.2" },
	{ "127.0.0.2:4000", false, 0, AF_INET, "127.0.0.2" },
	{ "[::1]:4000", false, 0, AF_INET6, "::1" },
	{ "localhost:4000", false, EAI_NONAME, 0, NULL },
	{ "*:4000", false, EAI_FAIL, 0, NULL },
	{ "no..name:4000", true, EAI_NONAME, 0, NULL },
};

static bool host_is(const struct trunk_address *at, const char *host)
{
	char text[INET6_ADDRSTRLEN] = "";
	bool v4 = at->sa.sa_family == AF_INET;

	inet_ntop(at->sa.sa_family, v4 ? (const void *)&at->in.sin_addr : &at->in6.sin6_addr, text, sizeof(text));
	return !strcmp(text, host) && ntohs(v4 ? at->in.sin_port : at->in6.sin6_port) == 4000;
}

static void test_read(void)
{
	struct trunk_addresses a;
	u32 i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rc = trunk_address_read(rows[i].text, rows[i].listen, &a);
		row_of(rows[i].text, gai_strerror(rc),
		       rc == rows[i].rc && (rc || a.at[0].sa.sa_family == rows[i].family) &&
			       (!rows[i].host || host_is(&a.at[0], rows[i].host)));
	}
	rc = trunk_address_read("*:4000", true, &a);
	row_of("*:4000", "any address", !rc && (host_is(&a.at[0], "::") || host_is(&a.at[0], "0.0.0.0")));
}

static struct loop *loop;
static struct trunk_addresses found;

static void on_done(void *ctx, const struct trunk_addresses *a)
{
	found = *a;
	loop_stop(loop);
}

static void test_resolve(void)
{
	struct trunk_resolve *r;

	loop = loop_create();
	row_of("localhost:4000", "starts", trunk_resolve_start(loop, "localhost:4000", on_done, NULL) != NULL);
	loop_run(loop);
	row_of("localhost:4000", "is a loopback address",
	       found.n && !found.error && (host_is(&found.at[0], "127.0.0.1") || host_is(&found.at[0], "::1")));
	trunk_resolve_start(loop, "no..name:4000", on_done, NULL);
	loop_run(loop);
	row_of("no..name:4000", gai_strerror(found.error), !found.n && found.error == EAI_NONAME);
	r = trunk_resolve_start(loop, "localhost:4000", on_done, NULL);
	trunk_resolve_cancel(r);
	loop_destroy(loop); /* the thread may end later */
	row_of("localhost:4000", "is cancelled", !found.n);
}

int main(void)
{
	test_read();
	test_resolve();
	return rows_end();
}
