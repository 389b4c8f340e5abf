/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket: one JSON object per line in each direction. A request is {"command": NAME, ...}, its response
 * {"ok": true, "result": ...} or {"ok": false, "error": TEXT}, in the order of the requests. A request may carry one
 * descriptor (SCM_RIGHTS). The server does not read from a client that does not read its responses.
 */
#ifndef MUSLIN_CTL_H
#define MUSLIN_CTL_H

#include <jansson.h>

#include "emu/lib/loop.h"

#define CTL_LINE_MAX    65536 /* bytes per request, newline included */
#define CTL_CLIENTS_MAX 128
#define CTL_LINES_TURN  4 /* requests of a client per turn */

struct ctl_server;
struct ctl_client;

struct ctl_command {
	const char *name;
	/*
	 * @req is borrowed. *fd is a descriptor passed with the request, or -1; a handler that keeps it sets it to -1.
	 * Returns the result (ownership passes), or NULL after ctl_error().
	 */
	json_t *(*run)(void *arg, struct ctl_client *c, const json_t *req, int *fd);
};

/*
 * Listens at @path with mode 0600. @commands is terminated by a NULL name; it and @arg, which is passed to each
 * command, outlive the server. NULL with errno set. With @path NULL it does not listen.
 */
struct ctl_server *ctl_server_create(struct loop *loop, const char *path, const struct ctl_command *commands,
				     void *arg);
void ctl_server_destroy(struct ctl_server *s);
/* Serves a connected stream socket; takes @fd. 0, -ENOMEM, -EMFILE: @fd has been closed. */
int ctl_server_attach(struct ctl_server *s, int fd);

/* Sets the error message of a command, one line without newline. Returns NULL, for the handler to return. */
json_t *ctl_error(struct ctl_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the function that is called once when the client disconnects; NULL: none. */
void ctl_client_on_close(struct ctl_client *c, void (*fn)(void *arg), void *arg);
/* The argument set last; NULL: none. */
void *ctl_client_close_arg(const struct ctl_client *c);

/* For clients, blocking. Connects to the socket at @path: a descriptor, or -errno. */
int ctl_connect(const char *path);
/*
 * Sends @req, with @fd if it is not -1, and waits for the response. Returns its result, owned by the caller, or NULL
 * with a message in @err, and ECONNRESET in errno if the daemon has closed the connection.
 */
json_t *ctl_call(int sock, const json_t *req, int fd, char *err, size_t err_len);

#endif
