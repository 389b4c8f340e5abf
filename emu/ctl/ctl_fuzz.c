// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sends bytes to the control socket, as a client. */
#include <sys/socket.h>
#include <unistd.h>

#include "emu/ctl/ctl.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

static json_t *cmd_echo(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	json_t *v = json_object_get(req, "value");

	return v ? json_incref(v) : ctl_error(c, "no value in %s", json_string_value(json_object_get(req, "command")));
}

static const struct ctl_command commands[] = { { "echo", cmd_echo }, { NULL, NULL } };

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	static struct loop *loop;
	static struct ctl_server *server;
	char sink[4096];
	int sv[2];

	if (!loop) {
		loop = loop_create();
		server = ctl_server_create(loop, NULL, commands, NULL);
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) || ctl_server_attach(server, sv[1]))
		return 0;
	while (len) {
		size_t n = min(len, (size_t)data[0] + 1);

		if (send(sv[0], data, n, MSG_NOSIGNAL) < 0)
			break;
		loop_run_idle(loop, 0);
		while (recv(sv[0], sink, sizeof(sink), 0) > 0)
			;
		data += n;
		len -= n;
	}
	close(sv[0]);
	loop_run_idle(loop, 0);
	return 0;
}
