// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lists this machine's connected SMC sockets with their mode, as smcss does. */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/smc_diag.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SMC_ACTIVE 1

int main(void)
{
	static const char *const modes[] = { "SMCR", "TCP", "SMCD" };
	struct {
		struct nlmsghdr h;
		struct smc_diag_req r;
	} request = { .h = { .nlmsg_len = sizeof(request),
			     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		      .r = { .diag_family = PF_SMC } };
	static char buf[65536];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	ssize_t n;

	if (fd < 0 || send(fd, &request, sizeof(request), 0) != sizeof(request)) {
		perror("smc_mode");
		return 1;
	}
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		struct nlmsghdr *h;

		for (h = (struct nlmsghdr *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			const struct smc_diag_msg *m = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return 1;
			if (m->diag_state == SMC_ACTIVE && m->diag_mode < sizeof(modes) / sizeof(modes[0]))
				printf("%d %d %s\n", ntohs(m->id.idiag_sport), ntohs(m->id.idiag_dport),
				       modes[m->diag_mode]);
		}
	}
	return 1;
}
