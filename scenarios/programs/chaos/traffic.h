/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Traffic of an end: declarations shared by its files. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "chaos.h"

#define BIT(n)    (1u << (n))
#define ALL_PARTS ((1u << TARGETS) - 1)

/* Byte @i of the message @id. */
static inline uint8_t pattern(uint32_t id, uint32_t i)
{
	return (uint8_t)((id + (i >> 2) * 0x85ebca6bu) * 0x9e3779b1u >> (i & 3) * 8);
}

static inline void pattern_fill(uint8_t *at, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		at[i] = pattern(id, i);
}

static inline uint64_t wr_id(const struct end *e, bool recv, uint32_t seq)
{
	return (uint64_t)e->index << 48 | (uint64_t)e->side << 56 | (uint64_t)(e->gen & 0xffff) << 32 |
	       (uint64_t)recv << 31 | (seq & 0x7fffffff);
}

static inline bool is_atomic(uint8_t opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline uint8_t *msg_local(const struct end *e, const struct msg *m)
{
	return e->mem + (size_t)m->slot * SLOT;
}

/* completions.c */
bool end_may_lose(const struct end *e);
void msg_unsure(struct end *e, const struct msg *m);

/* requests.c: false: nothing to do */
bool end_has_slot(const struct end *e);
struct msg *msg_new(struct end *e, uint8_t opcode);
int msg_sges(const struct end *e, const struct msg *m, struct ibv_sge *sge, bool one);
void msg_post(struct end *e, struct msg *m, struct ibv_send_wr *wr);
uint32_t msg_length(uint32_t max);
bool end_may_send(const struct end *e);
void end_stream_add(struct end *e, struct msg *m, const struct sent *s);
bool op_send(struct end *e);
bool op_write(struct end *e);
void read_post(struct end *e, uint32_t off, uint32_t len);
bool op_read(struct end *e);
bool op_atomic(struct end *e);
bool op_bind(struct end *e);

/* wrong.c */
bool op_bad(struct end *e);

#endif
