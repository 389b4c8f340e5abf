// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Address handles with values that an Ethernet port ignores. Prints END. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	static const struct {
		unsigned short dlid;
		unsigned flow_label;
	} rows[] = { { 0, 0 }, { 2, 0 }, { 0xc000, 0 }, { 2, ~0u }, { 0xc000, ~0u } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	union ibv_gid gid;
	unsigned i;

	if (!pd || ibv_query_gid(ctx, 1, 0, &gid))
		return 1;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_ah_attr a = { .dlid = rows[i].dlid, .is_global = 1, .port_num = 1 };
		struct ibv_ah *ah;

		a.grh.dgid = gid;
		a.grh.hop_limit = 64;
		a.grh.flow_label = rows[i].flow_label;
		ah = ibv_create_ah(pd, &a);
		if (!ah) {
			printf("DLID %x, flow label %x: %s\n", rows[i].dlid, rows[i].flow_label, strerror(errno));
			return 1;
		}
		ibv_destroy_ah(ah);
	}
	puts("END");
	return 0;
}
