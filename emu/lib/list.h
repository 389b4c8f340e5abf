/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Intrusive doubly linked list, circular with a head. */
#ifndef MUSLIN_LIB_LIST_H
#define MUSLIN_LIB_LIST_H

#include "emu/lib/types.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Appends @n at the tail of @head. */
static inline void list_add(struct list *head, struct list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* Unlinks @n and leaves it empty, so that a second list_del() has no effect. */
static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Moves everything from @from to the tail of @to; @from becomes empty. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(l, type, member)    container_of(l, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)
#define list_for_each(pos, head, member)                                                       \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))
/* The entry may be unlinked or freed in the body. */
#define list_for_each_safe(pos, tmp, head, member)                        \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),    \
	    tmp = list_entry(pos->member.next, __typeof__(*pos), member); \
	     &pos->member != (head); pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
