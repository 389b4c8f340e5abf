// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a program sends on sockets of NETLINK_RDMA and NETLINK_ROUTE. Input: length of a message in two bytes, the top
 * bit for NETLINK_ROUTE, then its bytes; repeated.
 */
#include <sys/socket.h>

#include "emu/host/fixture.h"
#include "emu/host/netlink.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static bool address(const struct uv_host *host, u32 n, struct uv_address *a)
{
	*a = (struct uv_address){ .ip = n ? (struct ip_addr){ { 0xfd, [15] = 1 } } : ip_addr_v4(0x0a000001),
				  .len = n ? 64 : 8,
				  .port = 1,
				  .netdev = "eth0" };
	return n < 2;
}

static void neighbours(const struct uv_host *host, u8 port, uv_neighbour_fn *fn, void *arg)
{
	const struct ip_addr a = ip_addr_v4(0x0a000002);

	fn(arg, &a, 0, (const u8 *)"\2\0\0\0\0\2", 6);
}

static const char *gid_netdev(const struct uv_host *host, u32 gid)
{
	return "eth0";
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const int protocols[] = { NETLINK_RDMA, NETLINK_ROUTE };
	u32 in[1024] = { AF_NETLINK, 7 }, out[1024]; /* aligned as the server's buffers */
	const size_t head = sizeof(struct sockaddr_nl);
	struct uv_file f[2];
	int fd[2], extra = -1, out_fd = -1;
	size_t n, out_len;
	struct desk d;
	u32 i;

	desk_open(&d);
	d.host.device = "muslin0";
	if (size && data[0] & 1) { /* has an interface */
		d.port.attr.link_layer = WIRE_LINK_ETHERNET;
		d.port.attr.mac[5] = 1;
	}
	d.host.gid_netdev = gid_netdev;
	d.host.address = address;
	d.host.neighbours = neighbours;
	for (i = 0; i < 2; i++) {
		f[i] = (struct uv_file){ .server = d.server, .host = &d.host };
		assert(!netlink_file_ops.open(&f[i], (u32)protocols[i], &fd[i], &extra));
	}
	for (; size > 2; data += n, size -= n) {
		n = min((size_t)(data[0] | (data[1] & 0x7f) << 8), sizeof(in) - head);
		i = data[1] >> 7;
		data += 2, size -= 2;
		n = min(n, size);
		memcpy((u8 *)in + head, data, n);
		f[i].again = 0;
		do { /* a turn at a time, as the server does */
			f[i].deferral = (struct uv_deferral){ 0 };
			out_len = sizeof(out);
			netlink_file_ops.command(&f[i], in, head + n, -1, out, &out_len, &out_fd);
			f[i].again = f[i].deferral.again;
		} while (f[i].again);
		if (n & 8)
			desk_run(&d, 1);
		while (n & 4 && recv(fd[i], out, sizeof(out), MSG_DONTWAIT) > 0)
			continue;
	}
	for (i = 0; i < 2; i++) {
		netlink_file_ops.close(&f[i]);
		close(fd[i]);
	}
	desk_close(&d);
	return 0;
}
