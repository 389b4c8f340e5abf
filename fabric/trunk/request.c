// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests: hellos at a listener whose senders have not proved the trunk's key yet. As a request socket of TCP leaves
 * its listener free for others, a request leaves its trunk: this gets the first connection whose HMAC is right.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "fabric/trunk/trunk_internal.h"

bool trunk_request_open(struct trunk *t, struct trunk_conn *c, u32 number, const struct trunk_hello *theirs)
{
	struct trunk_request *r = calloc(1, sizeof(*r));
	struct trunk_number *n = NULL;

	if (r && getrandom(r->mine.nonce, sizeof(r->mine.nonce), 0) == sizeof(r->mine.nonce))
		n = trunk_number_add(c, number);
	if (!n) {
		free(r);
		return false;
	}
	n->request = r;
	r->trunk = t;
	r->conn = c;
	r->number = number;
	r->since = loop_now(t->set->loop).ns;
	r->replaces = t->conn ? t->ctr[TRUNK_CTR_CONNECTED] : 0;
	r->theirs = *theirs;
	trunk_message_fill_hello(t, &r->mine);
	list_add(&t->requests, &r->link);
	list_add(&c->respond, &r->respond);
	if (c->nlinks == 1 && !c->refused)
		trunk_conn_set_timer(c, TRUNK_HELLO_TIME);
	trunk_conn_flush_later(c);
	return true;
}

void trunk_request_close(struct trunk_request *r)
{
	trunk_number_remove(r->conn, r->number);
	list_del(&r->link);
	list_del(&r->respond);
	free(r);
}

bool trunk_request_is_open(const struct trunk *t, const struct trunk_conn *c)
{
	const struct trunk_request *r;

	list_for_each (r, &t->requests, link)
		if (r->conn == c)
			return true;
	return false;
}
