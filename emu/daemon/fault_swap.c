// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults that exchange cables of several daemons: each of these daemons arms a part, with a line that begins with an
 * end of a cable there.
 */
#include <stdio.h>
#include <string.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/spec.h"

/*
 * A fault that exchanges cables of several daemons: the ends of these, by fabric_whole_cables(), and the words of its
 * line. False: it is another one, or is refused when it is added.
 */
static bool swap_cables(struct daemon *d, const char *text, struct spec_words *w, struct fabric_end end[4])
{
	char err[200];
	u32 k, i;

	if (!d->whole || spec_split(w, text, err, sizeof(err)))
		return false;
	for (k = 2; k < w->n && strncmp(w->word[k], "with=", 5); k++)
		;
	if (k >= w->n || strcmp(w->word[1], "swap") ||
	    fabric_whole_cables(d->fabric, w->word[0], w->word[k] + 5, end, err, sizeof(err)))
		return false;
	for (i = 1; i < 4 && end[i].node->shard == end[0].node->shard; i++)
		;
	return i < 4;
}

static bool end_is(const struct fabric_end *a, const struct fabric_end *b)
{
	return a->node == b->node && a->num == b->num;
}

bool daemon_swap_is_same(struct daemon *d, const char *a, const char *b)
{
	struct fabric_end x[4], y[4];
	struct spec_words w;
	u32 i;

	if (!swap_cables(d, a, &w, x) || !swap_cables(d, b, &w, y))
		return false;
	for (i = 0; i < 4 && !(end_is(&x[0], &y[i]) && end_is(&x[2], &y[i ^ 2])); i++)
		;
	return i < 4;
}

/* The line of @w with the places of two ends instead. NULL: too long. */
static json_t *swap_part(const struct spec_words *w, const struct fabric_end *place, const struct fabric_end *with)
{
	const char *quote = spec_quote(place->node->name);
	char line[sizeof(w->text)], word[FABRIC_NAME_MAX + 16];
	size_t at;
	u32 i;

	at = (size_t)snprintf(line, sizeof(line), "%s%s:%u%s", quote, place->node->name, place->num, quote);
	for (i = 1; i < w->n && at < sizeof(line); i++) {
		bool is_with = !strncmp(w->word[i], "with=", 5);

		snprintf(word, sizeof(word), "with=%s:%u", with->node->name, with->num);
		quote = spec_quote(is_with ? word : w->word[i]);
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s%s%s", quote, is_with ? word : w->word[i],
				       quote);
	}
	return at < sizeof(line) ? json_string(line) : NULL;
}

json_t *daemon_swap_parts(struct daemon *d, const char *text)
{
	json_t *parts = json_array();
	struct fabric_end end[4];
	struct spec_words w;
	u32 shard, i, n = d->opt.shards;
	json_t *part;

	if (d->opt.join)
		n = d->whole->nshards;
	for (shard = 0; swap_cables(d, text, &w, end) && shard < n; shard++) {
		for (i = 0; i < 4 && end[i].node->shard != shard; i++)
			;
		if (i == 4)
			continue;
		part = json_pack("{s:i, s:o}", "shard", (int)shard, "fault",
				 i ? swap_part(&w, &end[i], &end[i ^ 2]) : json_string(text));
		if (d->opt.join)
			json_object_set_new(part, "name", json_string(d->whole->shards[shard].name));
		json_array_append_new(parts, part);
	}
	return parts;
}
