// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An rdma_cm ID bound to 127.0.0.1 has no device. Prints END. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

int main(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&a)) {
		perror("bind");
		return 1;
	}
	puts(id->verbs ? "has a device" : "END");
	rdma_destroy_id(id);
	return 0;
}
