// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Client side of the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/ctl/ctl.h"
#include "emu/lib/rights.h"

int ctl_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int send_line(int sock, const char *text, size_t len, int fd)
{
	RIGHTS_CONTROL(control, 1) = { 0 };

	while (len) {
		struct iovec iov = { (void *)(uintptr_t)text, len };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		rights_put(&msg, control, &fd, fd >= 0);
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		fd = -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads up to the newline: the caller frees the string; NULL with errno (0: the daemon has closed). */
static char *read_line(int sock)
{
	size_t cap = 65536, len = 0;
	char *buf = malloc(cap);

	while (buf) {
		ssize_t n = read(sock, buf + len, cap - len - 1);
		char *bigger;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : 0;
			break;
		}
		len += (size_t)n;
		buf[len] = 0;
		if (buf[len - 1] == '\n')
			return buf;
		if (len < cap - 1)
			continue;
		bigger = realloc(buf, cap * 2);
		if (!bigger)
			break;
		buf = bigger;
		cap *= 2;
	}
	free(buf);
	return NULL;
}

json_t *ctl_call(int sock, const json_t *req, int fd, char *err, size_t err_len)
{
	char *text = json_dumps(req, JSON_COMPACT), *line = NULL;
	json_t *answer = NULL, *result = NULL;
	json_error_t je;
	int error = 0;
	size_t n;

	snprintf(err, err_len, "out of memory");
	if (!text)
		return NULL;
	n = strlen(text);
	text[n] = '\n'; /* replaces the NUL: the length is passed separately */
	if (send_line(sock, text, n + 1, fd) || !(line = read_line(sock))) {
		snprintf(err, err_len, "the daemon has closed the connection (see `muslin log`)");
		error = ECONNRESET;
		goto out;
	}
	answer = json_loads(line, 0, &je);
	if (!answer) {
		snprintf(err, err_len, "invalid JSON in the daemon's response: %s", je.text);
		goto out;
	}
	if (json_is_true(json_object_get(answer, "ok")))
		result = json_incref(json_object_get(answer, "result"));
	else
		snprintf(err, err_len, "%s", json_string_value(json_object_get(answer, "error")) ?: "refused");
out:
	json_decref(answer);
	free(line);
	free(text);
	errno = error;
	return result;
}
