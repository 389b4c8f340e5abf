/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket: one JSON object a line each way. A request is {"command": NAME, ...}, its answer
 * {"ok": true, "result": ...} or {"ok": false, "error": TEXT}, in the order of the requests. A request may carry one
 * descriptor (SCM_RIGHTS). A client that does not read its answers is not read from.
 */
#ifndef MUSLIN_CTL_H
#define MUSLIN_CTL_H

#include <jansson.h>

#include "emu/lib/loop.h"

#define CTL_LINE_MAX    65536 /* bytes of a request, newline included */
#define CTL_CLIENTS_MAX 128
#define CTL_LINES_TURN  4 /* requests of one client before others have their turn */

struct ctl_server;
struct ctl_client;

struct ctl_command {
	const char *name;
	/*
	 * @req is borrowed. *fd is a descriptor that came with the request, or -1; who keeps it sets it to -1. Returns the
	 * result (ownership passes), or NULL after ctl_error().
	 */
	json_t *(*run)(void *arg, struct ctl_client *c, const json_t *req, int *fd);
};

/*
 * Listens at @path with mode 0600; @commands ends with a NULL name and outlives the server, as @arg does, which is given to
 * each. NULL with errno. With @path NULL it does not listen.
 */
struct ctl_server *ctl_server_create(struct loop *loop, const char *path, const struct ctl_command *commands,
				     void *arg);
void ctl_server_destroy(struct ctl_server *s);
/* Serves a connected stream socket; takes @fd. 0, -ENOMEM, -EMFILE: @fd has been closed. */
int ctl_server_attach(struct ctl_server *s, int fd);

/* Says why a command fails, in one line without newline. Returns NULL, for the handler to return. */
json_t *ctl_error(struct ctl_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Calls @fn once when the client goes away, instead of what was set before; NULL: nothing. */
void ctl_client_on_close(struct ctl_client *c, void (*fn)(void *arg), void *arg);
/* What was set last; NULL: nothing. */
void *ctl_client_close_arg(const struct ctl_client *c);

/* For clients, blocking. Connects to the socket at @path: a descriptor, or -errno. */
int ctl_connect(const char *path);
/*
 * Sends @req, with @fd when it is not -1, and waits for the answer. Returns its result (the caller's), or NULL with one line
 * in @err.
 */
json_t *ctl_call(int sock, const json_t *req, int fd, char *err, size_t err_len);

#endif
