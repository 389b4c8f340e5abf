// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Paths of sockets: each process removes its own one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/lib/socket_path.h"

static int stream_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static bool is_reachable(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = stream_socket();
	bool ok;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	ok = !connect(fd, (struct sockaddr *)&sa, sizeof(sa));
	close(fd);
	return ok;
}

/* Listens when @go is closed, reports whether it does, and dies when @stop is closed, without removing the path. */
static void child_listen(const char *path, int go, int report, int stop)
{
	struct socket_path p;
	int fd = stream_socket();
	char c;

	if (read(go, &c, 1))
		_exit(1);
	c = (char)-socket_path_listen(&p, fd, path, 128, true);
	if (write(report, &c, 1) != 1 || read(stop, &c, 1))
		_exit(1);
	_exit(0);
}

/* Processes start at the same path, which a dead one has left: exactly one of them has it. */
static void test_at_once(const char *path)
{
	enum {
		CHILDREN = 8,
		ROUNDS = 100
	};
	int go[2], report[2], stop[2], round, i, listening = 0, in_use = 0, reachable = 0;
	char c;

	for (round = 0; round < ROUNDS; round++) {
		if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC) || pipe2(stop, O_CLOEXEC))
			exit(1);
		for (i = 0; i < CHILDREN; i++)
			if (!fork()) {
				close(go[1]);
				close(stop[1]);
				child_listen(path, go[0], report[1], stop[0]);
			}
		close(go[0]);
		close(go[1]);
		for (i = 0; i < CHILDREN && read(report[0], &c, 1) == 1; i++) {
			listening += !c;
			in_use += c == EADDRINUSE;
		}
		reachable += is_reachable(path);
		close(stop[0]);
		close(stop[1]);
		close(report[0]);
		close(report[1]);
		while (wait(NULL) > 0)
			;
	}
	row(20, "one of them listens", listening == ROUNDS && in_use == (CHILDREN - 1) * ROUNDS);
	row(21, "at the path", reachable == ROUNDS);
}

/* What is no socket of a dead process stays. */
static void test_listen(const char *path)
{
	char file[80];
	struct socket_path p, q;
	int one = stream_socket(), other = stream_socket(), lock;

	snprintf(file, sizeof(file), "%s.lock", path);
	row(30, "it listens", !socket_path_listen(&p, one, path, 4, true) && is_reachable(path));
	row(31, "the lock is removed", access(file, F_OK) && errno == ENOENT);
	row(32, "another one", socket_path_listen(&q, other, path, 4, true) == -EADDRINUSE && is_reachable(path));
	close(one);
	row(33, "its socket is stale",
	    !is_reachable(path) && !socket_path_listen(&q, other, path, 4, true) && is_reachable(path));
	socket_path_unlink(&q);
	close(other);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	one = stream_socket();
	row(35, "a file", socket_path_listen(&p, one, path, 4, true) == -EADDRINUSE && !access(path, F_OK));
	unlink(path);
	lock = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	flock(lock, LOCK_EX);
	row(36, "the lock is held for longer",
	    socket_path_listen(&p, one, path, 4, true) == -EBUSY && access(path, F_OK));
	row(38, "and not waited for", socket_path_listen(&p, one, path, 4, false) == -EBUSY && access(path, F_OK));
	close(lock);
	row(37, "or was left", !socket_path_listen(&p, one, path, 4, true) && access(file, F_OK));
	socket_path_unlink(&p);
	close(one);
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
	test_listen(path);
	test_at_once(path);
	unlink(path);
	return rows_end();
}
