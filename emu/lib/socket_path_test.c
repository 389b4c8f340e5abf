// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Paths of sockets: each process removes its own one. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/lib/socket_path.h"

static int stream_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int main(void)
{
	int one = stream_socket(), other = stream_socket(), third = stream_socket();
	struct socket_path p = { 0 }, q = { 0 };
	char path[64], longest[200];

	snprintf(path, sizeof(path), "/tmp/muslin-socket-path-%d", getpid());
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	socket_path_unlink(&p);
	row(1, "too long", socket_path_bind(&p, one, longest) == -ENAMETOOLONG && !p.path[0]);
	row(2, "it is bound", !socket_path_bind(&p, one, path) && !access(path, F_OK));
	row(3, "taken, which is no reason to remove it",
	    socket_path_bind(&q, other, path) == -EADDRINUSE && (socket_path_unlink(&q), !access(path, F_OK)));
	socket_path_unlink(&p);
	row(4, "removed", access(path, F_OK) && errno == ENOENT);
	row(5, "bound by another one", !socket_path_bind(&q, other, path));
	socket_path_unlink(&p);
	row(6, "which stays when the first one ends again", !access(path, F_OK));
	unlink(path);
	row(7, "replaced by a third one", !socket_path_bind(&p, third, path));
	socket_path_unlink(&q);
	row(8, "which stays, too", !access(path, F_OK));
	socket_path_unlink(&p);
	row(9, "until it ends", access(path, F_OK) && errno == ENOENT);
	close(one);
	close(other);
	close(third);
	return rows_end();
}
