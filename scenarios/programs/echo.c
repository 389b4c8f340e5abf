// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plain sockets, for a preload library that turns them into rsockets. `echo server IP PORT` returns received data;
 * `echo client IP PORT` sends 50 messages, compares the responses and prints END.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "must.h"

#define MESSAGE  20000
#define MESSAGES 50

static char out[MESSAGE], in[MESSAGE];

static void send_all(int s, const char *p, size_t n)
{
	while (n) {
		ssize_t sent = send(s, p, n, 0);

		must(sent > 0, "send");
		p += sent;
		n -= (size_t)sent;
	}
}

static void server(const struct sockaddr_in *at)
{
	int s = socket(AF_INET, SOCK_STREAM, 0), d;
	ssize_t n;

	must(!bind(s, (const void *)at, sizeof(*at)) && !listen(s, 1), "bind, listen");
	puts("listening");
	fflush(stdout);
	d = accept(s, NULL, NULL);
	must(d >= 0, "accept");
	while ((n = recv(d, in, sizeof(in), 0)) > 0)
		send_all(d, in, (size_t)n);
	close(d);
}

static void client(const struct sockaddr_in *to)
{
	int s = socket(AF_INET, SOCK_STREAM, 0), i;
	size_t got;
	ssize_t n;

	must(!connect(s, (const void *)to, sizeof(*to)), "connect");
	for (i = 0; i < MESSAGES; i++) {
		memset(out, i + 1, sizeof(out));
		send_all(s, out, sizeof(out));
		for (got = 0; got < sizeof(in); got += (size_t)n) {
			n = recv(s, in + got, sizeof(in) - got, 0);
			must(n > 0, "recv");
		}
		must(!memcmp(in, out, sizeof(in)), "compare");
	}
	shutdown(s, SHUT_RDWR);
	close(s);
	puts("END");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	if (argc != 4 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)
		return 2;
	a.sin_port = htons((unsigned short)atoi(argv[3]));
	if (!strcmp(argv[1], "server"))
		server(&a);
	else
		client(&a);
	return 0;
}
