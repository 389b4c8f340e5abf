// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sendmmsg() to this host's own address given as an argument, and recvmmsg(): the messages arrive, from that address.
 * Prints END.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define N 4

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, from[N];
	struct mmsghdr out[N] = { 0 }, in[N] = { 0 };
	struct iovec iov[N], room[N];
	static char text[N][8], got[N][8];
	socklen_t len = sizeof(at);
	int rx = socket(AF_INET, SOCK_DGRAM, 0), tx = socket(AF_INET, SOCK_DGRAM, 0), i, n, sent;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1)
		return 2;
	if (bind(rx, (void *)&at, sizeof(at)) || getsockname(rx, (void *)&at, &len)) {
		perror("bind");
		return 1;
	}
	for (i = 0; i < N; i++) {
		snprintf(text[i], sizeof(text[i]), "no %d", i);
		iov[i] = (struct iovec){ text[i], strlen(text[i]) };
		out[i].msg_hdr = (struct msghdr){
			.msg_name = &at, .msg_namelen = sizeof(at), .msg_iov = &iov[i], .msg_iovlen = 1
		};
		room[i] = (struct iovec){ got[i], sizeof(got[i]) - 1 };
		in[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i], .msg_namelen = sizeof(from[i]), .msg_iov = &room[i], .msg_iovlen = 1
		};
	}
	sent = sendmmsg(tx, out, N, 0);
	n = sent == N ? recvmmsg(rx, in, N, 0, NULL) : -1;
	if (n != N) {
		fprintf(stderr, "sent %d, got %d\n", sent, n);
		return 1;
	}
	for (i = 0; i < N; i++) {
		if (out[i].msg_len != 4 || in[i].msg_len != 4 || strcmp(got[i], text[i]) ||
		    from[i].sin_addr.s_addr != at.sin_addr.s_addr) {
			fprintf(stderr, "%d: \"%s\" of %u bytes from %s\n", i, got[i], in[i].msg_len,
				inet_ntoa(from[i].sin_addr));
			return 1;
		}
	}
	puts("END");
	return 0;
}
