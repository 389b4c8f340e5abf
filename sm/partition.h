/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Partition configuration in the format of OpenSM's partitions.conf. */
#ifndef MUSLIN_SM_PARTITION_H
#define MUSLIN_SM_PARTITION_H

#include "emu/wire/gid.h"

enum sm_membership {
	SM_MEMBER_LIMITED = 1,
	SM_MEMBER_FULL = 2,
	SM_MEMBER_BOTH = 3
};

/* Member keywords other than GUIDs. */
enum sm_whom {
	SM_WHOM_GUID,
	SM_WHOM_ALL,
	SM_WHOM_CAS,
	SM_WHOM_SWITCHES,
	SM_WHOM_ROUTERS,
	SM_WHOM_VCAS,
	SM_WHOM_SELF
};

struct sm_partition_member {
	u64 guid;
	u8 whom, membership;
};

/* Attributes of a multicast group of the partition; codes as in MCMemberRecord. */
struct sm_group_flags {
	u8 mtu, rate, sl, tclass;
	u32 qkey, flow;
	u16 scopes; /* bit n: scope n */
	bool mtu_set, rate_set, sl_set;
};

struct sm_partition_group {
	struct wire_gid mgid;
	struct sm_group_flags flags;
};

struct sm_partition {
	char name[64];
	u16 pkey; /* the low 15 bits */
	bool ipoib, index0;
	struct sm_group_flags flags;
	struct sm_partition_member *members;
	u32 nmembers;
	struct sm_partition_group *groups;
	u32 ngroups;
};

struct sm_partitions {
	struct sm_partition *part; /* [0] is the default partition, 0x7fff */
	u32 n;
};

/*
 * Parses @text; @file is its name in errors. A definition that repeats a P_Key adds to it. Returns an object that the
 * caller destroys, or NULL with "file:line: message" in @err. NULL @text gives the default partition with all ports as
 * full members.
 */
struct sm_partitions *sm_partitions_parse(const char *text, const char *file, char *err, size_t err_len);
/*
 * The text of the file, which the caller frees; NULL with one line in @err. @place: "file:line" that names it, or NULL.
 */
char *sm_file_read(const char *path, const char *place, char *err, size_t err_len);
void sm_partitions_destroy(struct sm_partitions *ps); /* NULL is ignored */
const struct sm_partition *sm_partitions_find(const struct sm_partitions *ps, u16 pkey);

#endif
