// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parser of partition files in the format of OpenSM's partitions.conf.
 *
 *   [name][=0xpkey] [, indx0] [, ipoib] [, defmember=full|limited|both] [, group flag]... : members and groups ;
 *
 * Members are separated by commas; "mgid=GID[, group flag]..." ends at the end of its line. '#' starts a comment.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "sm/partition.h"

#define PKEY_DEFAULT   0x7fff
#define PARTITIONS_MAX 32767
#define WORD_MAX       128

struct scan {
	const char *p, *file;
	u32 line;
	char *err;
	size_t err_len;
	struct sm_partitions *ps;
	u32 cur; /* index of the current partition */
	u8 defmember;
	bool failed;
	char word[WORD_MAX];
};

static bool partition_fail(struct scan *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->failed)
		return false;
	s->failed = true;
	n = snprintf(s->err, s->err_len, "%s:%u: ", s->file, s->line);
	if (n < 0 || (size_t)n >= s->err_len)
		return false;
	va_start(ap, fmt);
	vsnprintf(s->err + n, s->err_len - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* Skips blanks and comments; also newlines, if @lines. */
static void partition_skip(struct scan *s, bool lines)
{
	for (;; s->p++) {
		if (*s->p == '#')
			while (*s->p && *s->p != '\n')
				s->p++;
		if (*s->p == '\n' && lines)
			s->line++;
		else if (!*s->p || *s->p == '\n' || !isspace((unsigned char)*s->p))
			return;
	}
}

/* Reads a word, possibly empty, up to one of the characters of @stop, without trailing blanks. */
static bool partition_word(struct scan *s, const char *stop)
{
	size_t n = 0;

	while (*s->p && *s->p != '\n' && *s->p != '#' && !strchr(stop, *s->p)) {
		if (n == WORD_MAX - 1)
			return partition_fail(s, "this word is too long");
		s->word[n++] = *s->p++;
	}
	while (n && isspace((unsigned char)s->word[n - 1]))
		n--;
	s->word[n] = 0;
	return true;
}

static bool partition_eat(struct scan *s, char c)
{
	if (*s->p != c)
		return false;
	s->p++;
	return true;
}

static bool partition_number(struct scan *s, const char *what, u64 max, u64 *v)
{
	char *end;

	errno = 0;
	*v = strtoull(s->word, &end, 0);
	if (!s->word[0] || *end || s->word[0] == '-' || errno)
		return partition_fail(s, "%s: '%s' is not a number", what, s->word);
	if (*v > max)
		return partition_fail(s, "%s: %s is too large, at most 0x%llx", what, s->word, (unsigned long long)max);
	return true;
}

static bool prefix_of(const char *word, const char *full)
{
	return word[0] && !strncasecmp(word, full, strlen(word));
}

static bool partition_membership(struct scan *s, u8 *m)
{
	if (prefix_of(s->word, "full"))
		*m = SM_MEMBER_FULL;
	else if (prefix_of(s->word, "limited"))
		*m = SM_MEMBER_LIMITED;
	else if (prefix_of(s->word, "both"))
		*m = SM_MEMBER_BOTH;
	else
		return partition_fail(s, "membership is full, limited or both, not '%s'", s->word);
	return true;
}

/* Appends a zeroed element to *array and increments *n. NULL: out of memory. The capacity is a power of two. */
static void *partition_append(struct scan *s, void *array, u32 *n, size_t size)
{
	void **p = array, *more;

	if (!(*n & (*n - 1))) {
		more = realloc(*p, (*n ? 2 * *n : 1) * size);
		if (!more) {
			partition_fail(s, "out of memory");
			return NULL;
		}
		*p = more;
	}
	return memset((u8 *)*p + (*n)++ * size, 0, size);
}

/* ---- group flags ---- */

static bool set_mtu(struct scan *s, struct sm_group_flags *f, u64 v)
{
	if (!wire_mtu_bytes((u8)v))
		return partition_fail(s, "mtu: %s is not an MTU code (1: 256 ... 5: 4096)", s->word);
	f->mtu = (u8)v;
	f->mtu_set = true;
	return true;
}

static bool set_rate(struct scan *s, struct sm_group_flags *f, u64 v)
{
	if (!wire_rate_mbps((u8)v))
		return partition_fail(s, "rate: %s is not a rate code (2: 2.5 Gb/s, 3: 10 ...)", s->word);
	f->rate = (u8)v;
	f->rate_set = true;
	return true;
}

static bool set_sl(struct scan *s, struct sm_group_flags *f, u64 v)
{
	f->sl = (u8)v;
	f->sl_set = true;
	return true;
}

static bool set_scope(struct scan *s, struct sm_group_flags *f, u64 v)
{
	if (!v)
		return partition_fail(s, "scope: 0 is reserved");
	f->scopes |= BIT(v);
	return true;
}

static bool set_qkey(struct scan *s, struct sm_group_flags *f, u64 v)
{
	f->qkey = (u32)v;
	return true;
}

static bool set_tclass(struct scan *s, struct sm_group_flags *f, u64 v)
{
	f->tclass = (u8)v;
	return true;
}

static bool set_flow(struct scan *s, struct sm_group_flags *f, u64 v)
{
	f->flow = (u32)v;
	return true;
}

static const struct {
	const char *name;
	u64 max;
	bool (*set)(struct scan *s, struct sm_group_flags *f, u64 v);
} group_flags[] = {
	{ "mtu", 5, set_mtu },
	{ "rate", 63, set_rate },
	{ "sl", 15, set_sl },
	{ "scope", 15, set_scope },
	{ "q_key", 0xffffffff, set_qkey },
	{ "tclass", 255, set_tclass },
	{ "flowlabel", 0xfffff, set_flow },
};

/* Is the word a group flag? If so, reads its value. */
static bool group_flag(struct scan *s, struct sm_group_flags *f, bool *known)
{
	u32 i;
	u64 v;

	*known = false;
	for (i = 0; i < ARRAY_SIZE(group_flags); i++)
		if (!strcasecmp(s->word, group_flags[i].name))
			break;
	if (i == ARRAY_SIZE(group_flags))
		return true;
	*known = true;
	if (!partition_eat(s, '='))
		return partition_fail(s, "%s needs a value: %s=N", group_flags[i].name, group_flags[i].name);
	do {
		partition_skip(s, false);
		if (!partition_word(s, ",:;=") || !partition_number(s, group_flags[i].name, group_flags[i].max, &v) ||
		    !group_flags[i].set(s, f, v))
			return false;
		partition_skip(s, false);
		if (group_flags[i].set != set_scope || *s->p != ',')
			break;
		/* scope=2,5: a bare number after the comma continues the list */
		{
			const char *q = s->p + 1;

			while (*q == ' ' || *q == '\t')
				q++;
			if (!isdigit((unsigned char)*q))
				break;
		}
		s->p++;
	} while (true);
	return true;
}

/* ---- partition definition, before the colon ---- */

static struct sm_partition *by_name(const struct sm_partitions *ps, const char *name)
{
	u32 i;

	for (i = 0; name[0] && i < ps->n; i++)
		if (!strcmp(ps->part[i].name, name))
			return &ps->part[i];
	return NULL;
}

/* Selects the partition with that key, or with that name if no key is given; creates it if it does not exist. */
static bool partition_get(struct scan *s, const char *name, u16 pkey)
{
	struct sm_partitions *ps = s->ps;
	const struct sm_partition *known = pkey ? sm_partitions_find(ps, pkey) : by_name(ps, name);
	struct sm_partition *p;

	if (known) {
		s->cur = (u32)(known - ps->part);
		return true;
	}
	if (ps->n == PARTITIONS_MAX)
		return partition_fail(s, "too many partitions");
	p = partition_append(s, &ps->part, &ps->n, sizeof(*p));
	if (!p)
		return false;
	s->cur = ps->n - 1;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->pkey = pkey;
	return true;
}

static bool name_and_key(struct scan *s)
{
	char name[64];
	u16 key = 1;
	u64 v = 0;

	if (!partition_word(s, ",:;="))
		return false;
	if (strlen(s->word) >= sizeof(name))
		return partition_fail(s, "the name '%s' is too long", s->word);
	memcpy(name, s->word, strlen(s->word) + 1);
	partition_skip(s, false);
	if (partition_eat(s, '=')) {
		partition_skip(s, false);
		if (!partition_word(s, ",:;=") || !partition_number(s, "P_Key", 0xffff, &v))
			return false;
		if (!(v & 0x7fff))
			return partition_fail(s, "P_Key 0x%04llx is invalid", (unsigned long long)v);
	} else if (!strcasecmp(name, "Default")) {
		v = PKEY_DEFAULT;
	} else if (!name[0]) {
		return partition_fail(s, "a partition needs a name or a P_Key");
	}
	if (!partition_get(s, name, v & 0x7fff))
		return false;
	if (!s->ps->part[s->cur].pkey) {
		while (key < PKEY_DEFAULT && sm_partitions_find(s->ps, key))
			key++;
		s->ps->part[s->cur].pkey = key;
	}
	return true;
}

static bool header_flag(struct scan *s)
{
	struct sm_partition *p = &s->ps->part[s->cur];
	bool known;

	if (!partition_word(s, ",:;="))
		return false;
	partition_skip(s, false);
	if (!strcasecmp(s->word, "ipoib"))
		p->ipoib = true;
	else if (!strcasecmp(s->word, "indx0"))
		p->index0 = true;
	else if (!strcasecmp(s->word, "defmember")) {
		if (!partition_eat(s, '='))
			return partition_fail(s, "defmember needs a value: defmember=full");
		partition_skip(s, false);
		return partition_word(s, ",:;=") && partition_membership(s, &s->defmember);
	} else {
		if (!group_flag(s, &p->flags, &known))
			return false;
		return known || partition_fail(s, "'%s' is not known here", s->word);
	}
	return true;
}

static bool partition_header(struct scan *s)
{
	s->defmember = SM_MEMBER_LIMITED;
	if (!name_and_key(s))
		return false;
	for (partition_skip(s, true); partition_eat(s, ','); partition_skip(s, true)) {
		partition_skip(s, true);
		if (!header_flag(s))
			return false;
	}
	if (partition_eat(s, ':') || *s->p == ';')
		return true;
	return partition_fail(
		s, *s->p ? "expected ',' or ':' before '%.10s'" : "the definition ends without ':' and ';'", s->p);
}

/* ---- members and groups, after the colon ---- */

static const struct {
	const char *name;
	u8 whom;
} whom_names[] = {
	{ "ALL", SM_WHOM_ALL },
	{ "ALL_CAS", SM_WHOM_CAS },
	{ "ALL_SWITCHES", SM_WHOM_SWITCHES },
	{ "ALL_ROUTERS", SM_WHOM_ROUTERS },
	{ "ALL_VCAS", SM_WHOM_VCAS },
	{ "SELF", SM_WHOM_SELF },
};

static bool partition_member(struct scan *s)
{
	struct sm_partition *p = &s->ps->part[s->cur];
	struct sm_partition_member m = { .membership = s->defmember }, *at;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(whom_names) && strcasecmp(s->word, whom_names[i].name); i++)
		;
	if (i < ARRAY_SIZE(whom_names))
		m.whom = whom_names[i].whom;
	else if (!isdigit((unsigned char)s->word[0]))
		return partition_fail(s,
				      "a member is a port GUID, as ibstat prints it, or ALL, ALL_CAS, ALL_SWITCHES, "
				      "ALL_ROUTERS, ALL_VCAS or SELF, not '%s'",
				      s->word);
	else if (!partition_number(s, "port GUID", ~0ull, &m.guid))
		return false;
	partition_skip(s, false);
	if (partition_eat(s, '=')) {
		partition_skip(s, false);
		if (!partition_word(s, ",:;=") || !partition_membership(s, &m.membership))
			return false;
	}
	at = partition_append(s, &p->members, &p->nmembers, sizeof(m));
	if (at)
		*at = m;
	return at;
}

/* Groups of IPoIB (signatures 0x401b and 0x601b) have the partition's key, which overrides the file (RFC 4391, 4). */
static void put_pkey(struct wire_gid *mgid, u16 pkey)
{
	u16 sig = (u16)(mgid->raw[2] << 8 | mgid->raw[3]);

	if ((sig != 0x401b && sig != 0x601b) || mgid->raw[4] || mgid->raw[5])
		return;
	mgid->raw[4] = (pkey | 0x8000) >> 8;
	mgid->raw[5] = pkey & 0xff;
}

static bool partition_group(struct scan *s)
{
	struct sm_partition *p = &s->ps->part[s->cur];
	struct sm_partition_group g = { .flags = p->flags }, *at;
	bool known;

	partition_skip(s, false);
	if (!partition_eat(s, '='))
		return partition_fail(s, "mgid needs a value: mgid=GID");
	partition_skip(s, false);
	if (!partition_word(s, ", \t;"))
		return false;
	if (inet_pton(AF_INET6, s->word, g.mgid.raw) != 1)
		return partition_fail(s, "'%s' is not a GID", s->word);
	if (!wire_gid_is_multicast(&g.mgid))
		return partition_fail(s, "'%s' is not a multicast GID", s->word);
	put_pkey(&g.mgid, p->pkey);
	for (partition_skip(s, false); *s->p == ','; partition_skip(s, false)) {
		s->p++;
		partition_skip(s, false);
		if (*s->p == '\n' || *s->p == ';' || !*s->p)
			break;
		if (!partition_word(s, ",:;="))
			return false;
		partition_skip(s, false);
		if (!group_flag(s, &g.flags, &known))
			return false;
		if (!known)
			return partition_fail(s, "'%s' is not a flag of a multicast group", s->word);
	}
	if (*s->p && *s->p != '\n' && *s->p != ';')
		return partition_fail(s, "expected ',' or the end of the line before '%.10s'", s->p);
	at = partition_append(s, &p->groups, &p->ngroups, sizeof(g));
	if (at)
		*at = g;
	return at;
}

static bool partition_properties(struct scan *s)
{
	bool more = true, is_group;

	for (partition_skip(s, true); *s->p && *s->p != ';'; partition_skip(s, true)) {
		if (!more)
			return partition_fail(s, "expected ',' or ';' before '%.10s'", s->p);
		if (!partition_word(s, ",:;=\t "))
			return false;
		is_group = !strcasecmp(s->word, "mgid");
		if (!(is_group ? partition_group(s) : partition_member(s)))
			return false;
		partition_skip(s, false);
		more = is_group;
		if (*s->p == '\n') /* OpenSM's own example omits the comma at the end of a line */
			more = true;
		if (partition_eat(s, ','))
			more = true;
	}
	return partition_eat(s, ';') ||
	       partition_fail(s, "the definition of '%s' does not end with ';'", s->ps->part[s->cur].name);
}

/* ---- create and destroy ---- */

struct sm_partitions *sm_partitions_parse(const char *text, const char *file, char *err, size_t err_len)
{
	struct scan s = { .p = text ? text : "",
			  .file = file ? file : "partitions.conf",
			  .line = 1,
			  .err = err,
			  .err_len = err_len };

	struct sm_partition_member *all;

	if (err_len)
		err[0] = 0;
	s.ps = calloc(1, sizeof(*s.ps));
	if (!s.ps || !partition_get(&s, "Default", PKEY_DEFAULT)) {
		partition_fail(&s, "out of memory");
		sm_partitions_destroy(s.ps);
		return NULL;
	}
	/* All ports are members of the default partition. The file may change the membership: the last entry counts. */
	s.ps->part[0].ipoib = !text;
	all = partition_append(&s, &s.ps->part[0].members, &s.ps->part[0].nmembers, sizeof(*all));
	if (all)
		*all = (struct sm_partition_member){ .whom = SM_WHOM_ALL,
						     .membership = text ? SM_MEMBER_LIMITED : SM_MEMBER_FULL };
	for (partition_skip(&s, true); text && *s.p; partition_skip(&s, true))
		if (!partition_header(&s) || !(partition_eat(&s, ';') || partition_properties(&s)))
			break;
	if (s.failed) {
		sm_partitions_destroy(s.ps);
		return NULL;
	}
	return s.ps;
}

void sm_partitions_destroy(struct sm_partitions *ps)
{
	u32 i;

	if (!ps)
		return;
	for (i = 0; i < ps->n; i++) {
		free(ps->part[i].members);
		free(ps->part[i].groups);
	}
	free(ps->part);
	free(ps);
}

const struct sm_partition *sm_partitions_find(const struct sm_partitions *ps, u16 pkey)
{
	u32 i;

	for (i = 0; i < ps->n; i++)
		if (ps->part[i].pkey == (pkey & 0x7fff))
			return &ps->part[i];
	return NULL;
}
