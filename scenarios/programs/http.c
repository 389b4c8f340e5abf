// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An HTTP/1.0 server for one file, with socket calls that the preload library of rsockets supports in all versions (no
 * accept4(), no select()): http ADDRESS PORT FILE
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads up to the empty line. */
static void request_receive(int s)
{
	char request[4096];
	size_t n = 0;
	ssize_t got;

	do {
		got = recv(s, request + n, sizeof(request) - 1 - n, 0);
		if (got <= 0)
			errx(1, "the request ended");
		n += (size_t)got;
		request[n] = 0;
	} while (!strstr(request, "\r\n\r\n"));
}

static void all_send(int s, const char *data, size_t len)
{
	ssize_t sent;

	for (; len; data += sent, len -= (size_t)sent) {
		sent = send(s, data, len, 0);
		if (sent <= 0)
			err(1, "send");
	}
}

int main(int argc, char **argv)
{
	static char data[16 << 20], rest[1];
	struct sockaddr_in a = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd, c;
	struct pollfd p = { .events = POLLIN };
	ssize_t len;
	char head[128];

	if (argc != 4 || inet_pton(AF_INET, argv[1], &a.sin_addr) != 1)
		errx(2, "usage: http ADDRESS PORT FILE");
	a.sin_port = htons((unsigned short)atoi(argv[2]));
	fd = open(argv[3], O_RDONLY);
	len = fd < 0 ? -1 : read(fd, data, sizeof(data));
	if (len < 0)
		err(1, "%s", argv[3]);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 4))
		err(1, "listen");
	printf("listening\n");
	fflush(stdout);
	c = accept(s, NULL, NULL);
	if (c < 0)
		err(1, "accept");
	request_receive(c);
	snprintf(head, sizeof(head), "HTTP/1.0 200 OK\r\nContent-Length: %zd\r\n\r\n", len);
	all_send(c, head, strlen(head));
	all_send(c, data, (size_t)len);
	shutdown(c, SHUT_WR);
	/* A client that exits without close() sends a DREQ alone, which ends rpoll() but not a blocked rrecv(). */
	p.fd = c;
	while (poll(&p, 1, 10000) > 0 && recv(c, rest, sizeof(rest), 0) > 0)
		;
	close(c);
	printf("END\n");
	return 0;
}
