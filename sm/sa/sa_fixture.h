/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of subnet administration: requests by MADs, and their responses, on the subnet of sm_fixture.h. */
#ifndef MUSLIN_SM_SA_FIXTURE_H
#define MUSLIN_SM_SA_FIXTURE_H

#include "sm/sm_fixture.h"

struct query {
	u8 method;
	u16 attr;
	u64 comp, key;
	u8 data[200];
};

static inline struct query query_of(u8 method, u16 attr, u64 comp)
{
	return (struct query){ .method = method, .attr = attr, .comp = comp };
}

static inline void query_put(const struct query *a, u8 *mad)
{
	wire_set(mad, MAD_BASE_VERSION, 1);
	wire_set(mad, MAD_CLASS, MAD_CLASS_SUBN_ADM);
	wire_set(mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_SA);
	wire_set(mad, MAD_METHOD, a->method);
	wire_set(mad, MAD_TID, 77);
	wire_set(mad, MAD_ATTR_ID, a->attr);
	wire_set(mad, SA_SM_KEY, a->key);
	wire_set(mad, SA_COMP_MASK, a->comp);
	memcpy(mad + SA_DATA, a->data, sizeof(a->data));
}

/* The status of the response; -1: none. @from: the node whose LID is the requester's. */
static inline int request(struct fake *f, const struct query *a, int from)
{
	struct mad_addr addr = { .lid = fake_lid(f, from), .qpn = 1 };
	u8 mad[MAD_SIZE] = { 0 };
	u32 before = f->nsent;

	query_put(a, mad);
	sm_receive(f->sm, mad, MAD_SIZE, &addr, NULL);
	fake_run(f, 10);
	return f->nsent == before ? -1 : (int)wire_get(f->sent, MAD_STATUS);
}

static inline u32 records(const struct fake *f)
{
	u32 stride = (u32)wire_get(f->sent, SA_ATTR_OFFSET) * 8;

	return stride ? (f->sent_len - SA_DATA) / stride : 0;
}

static inline const u8 *record(const struct fake *f, u32 i)
{
	return f->sent + SA_DATA + i * wire_get(f->sent, SA_ATTR_OFFSET) * 8;
}

static inline struct wire_gid gid_of(int node)
{
	return wire_gid_make(WIRE_GID_PREFIX_DEFAULT, FAKE_GUID(node) + (node >= 4));
}

static inline struct query inform_query(u8 subscribe, u16 trap)
{
	struct query a = query_of(MAD_METHOD_SET, SA_ATTR_INFORM_INFO, 0);

	wire_set(a.data, INFORMINFO_LID_BEGIN, INFORMINFO_ALL_LIDS);
	wire_set(a.data, INFORMINFO_IS_GENERIC, 1);
	wire_set(a.data, INFORMINFO_SUBSCRIBE, subscribe);
	wire_set(a.data, INFORMINFO_TYPE, INFORMINFO_ALL_TYPES);
	wire_set(a.data, INFORMINFO_TRAP_NUMBER, trap);
	wire_set(a.data, INFORMINFO_QPN, 1);
	wire_set(a.data, INFORMINFO_PRODUCER_TYPE, INFORMINFO_ALL_PRODUCERS);
	return a;
}

#endif
