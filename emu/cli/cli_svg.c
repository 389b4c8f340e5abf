// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * muslin show --svg: the fabric drawn in layers. Hosts are at the bottom, a switch is one layer above its lowest
 * neighbour; within a layer nodes are near the middle of their lower neighbours, so that few lines cross.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/cli.h"

#define BOX_WIDTH  84
#define BOX_HEIGHT 34
#define GAP_X      22
#define GAP_Y      120
#define LAYERS_MAX 64

struct drawn {
	const json_t *json;
	const char *name;
	int layer; /* -1: not yet placed */
	double want, x;
};

static struct drawn *svg_find(struct drawn *d, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(d[i].name, name))
			return &d[i];
	return NULL;
}

/* Whether the port's cable goes to the network card of a host on the fabric, whose own ports do not include it. */
static bool svg_is_card(const json_t *port)
{
	return *cli_text(port, "peer_node");
}

static struct drawn *svg_peer(struct drawn *d, size_t n, const json_t *port)
{
	return svg_find(d, n, cli_text(port, svg_is_card(port) ? "peer_node" : "peer"));
}

/* The lowest layer among a switch's placed neighbours; -1: none. */
static int svg_below(struct drawn *d, size_t n, const struct drawn *sw)
{
	const struct drawn *peer;
	int low = -1;
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(sw->json, "ports"), i, p)
	{
		peer = svg_peer(d, n, p);
		if (peer && peer->layer >= 0 && (low < 0 || peer->layer < low))
			low = peer->layer;
	}
	return low;
}

/* Returns the number of layers. */
static int svg_layers(struct drawn *d, size_t n)
{
	int layer, top = 1;
	bool more = true;
	size_t i;

	for (i = 0; i < n; i++)
		d[i].layer = strcmp(cli_text(d[i].json, "type"), "ca") ? -1 : 0;
	for (layer = 1; more && layer < LAYERS_MAX; layer++) {
		more = false;
		for (i = 0; i < n; i++) {
			if (d[i].layer >= 0 || svg_below(d, n, &d[i]) != layer - 1)
				continue;
			d[i].layer = layer;
			more = true;
		}
		top += more;
	}
	for (i = 0; i < n; i++)
		if (d[i].layer < 0)
			d[i].layer = top;
	return top + 1;
}

static double middle_of_lower(struct drawn *d, size_t n, const struct drawn *of)
{
	double sum = 0, count = 0;
	const struct drawn *peer;
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(of->json, "ports"), i, p)
	{
		peer = svg_peer(d, n, p);
		if (!peer || peer->layer >= of->layer)
			continue;
		sum += peer->x;
		count++;
	}
	return count > 0 ? sum / count : 0;
}

static int by_want(const void *a, const void *b)
{
	const struct drawn *x = *(const struct drawn *const *)a, *y = *(const struct drawn *const *)b;

	return x->want < y->want ? -1 : x->want > y->want ? 1 : strcmp(x->name, y->name);
}

/* Places hosts in the order of their switches, and each switch in the middle of its lower
 * neighbours. Returns the width. */
static double svg_place(struct drawn *d, size_t n, int nlayers)
{
	struct drawn **row = calloc(n, sizeof(*row));
	double width = 0, left;
	size_t i, k;
	int layer;

	for (i = 0; i < n; i++) {
		json_t *port = json_array_get(json_object_get(d[i].json, "ports"), 0);
		struct drawn *leaf = d[i].layer ? NULL : svg_peer(d, n, port);

		d[i].want = leaf ? (double)(leaf - d) : (double)n;
	}
	for (layer = 0; row && layer < nlayers; layer++) {
		for (i = 0, k = 0; i < n; i++) {
			if (d[i].layer != layer)
				continue;
			if (layer)
				d[i].want = middle_of_lower(d, n, &d[i]);
			row[k++] = &d[i];
		}
		qsort(row, k, sizeof(struct drawn *), by_want);
		width = width < (double)k * (BOX_WIDTH + GAP_X) ? (double)k * (BOX_WIDTH + GAP_X) : width;
		left = width / (double)(k ? k : 1);
		for (i = 0; i < k; i++)
			row[i]->x = left * ((double)i + 0.5);
	}
	free(row);
	return width;
}

static void svg_escape(const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '&')
			printf("&#%d;", *text);
		else
			putchar(*text);
	}
}

static void svg_line(struct drawn *d, size_t n, const struct drawn *from, const json_t *port, double height)
{
	const struct drawn *to = svg_peer(d, n, port);
	const char *state = cli_text(port, "state");
	bool down = !strcmp(state, "Down");

	if (!to)
		return;
	if (!svg_is_card(port) &&
	    (to < from || (to == from && cli_number(port, "peer_port") < cli_number(port, "num"))))
		return; /* the other end draws it */
	printf("<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\" stroke=\"%s\" stroke-width=\"1.6\"%s><title>",
	       from->x, height - from->layer * GAP_Y, to->x, height - to->layer * GAP_Y,
	       !strcmp(state, "Active") ? "#2a7d4f"
	       : down                   ? "#c0392b"
					: "#c98a1b",
	       down ? " stroke-dasharray=\"5 4\"" : "");
	svg_escape(from->name);
	printf(":%lld - ", cli_number(port, "num"));
	svg_escape(cli_text(port, "peer"));
	printf(":%lld %s</title></line>\n", cli_number(port, "peer_port"), state);
}

static void svg_box(const struct drawn *b, double height)
{
	const char *ip = json_string_value(json_array_get(json_object_get(b->json, "ips"), 0));
	bool host = !strcmp(cli_text(b->json, "type"), "ca");
	double y = height - b->layer * GAP_Y;

	printf("<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" stroke=\"#34495e\"/>\n",
	       b->x - BOX_WIDTH / 2.0, y - BOX_HEIGHT / 2.0, BOX_WIDTH, BOX_HEIGHT, host ? 3 : 12,
	       host ? "#eef3f8" : "#dfe8d8");
	printf("<text x=\"%.0f\" y=\"%.0f\">", b->x, y - 2);
	svg_escape(b->name);
	if (strcmp(cli_text(b->json, "link_layer"), "Ethernet"))
		printf("</text><text x=\"%.0f\" y=\"%.0f\" class=\"lid\">lid %lld</text>\n", b->x, y + 11,
		       cli_number(b->json, "lid"));
	else
		printf("</text><text x=\"%.0f\" y=\"%.0f\" class=\"lid\">%s</text>\n", b->x, y + 11,
		       ip ? ip : "Ethernet");
}

int cli_svg(const json_t *shown)
{
	json_t *nodes = json_object_get(shown, "nodes"), *p;
	size_t n = json_array_size(nodes), i, k;
	struct drawn *d = calloc(n ? n : 1, sizeof(*d));
	double width, height;
	int nlayers;

	if (!d)
		cli_fail(CLI_ERROR, "out of memory");
	for (i = 0; i < n; i++) {
		d[i].json = json_array_get(nodes, i);
		d[i].name = cli_text(d[i].json, "name");
	}
	nlayers = svg_layers(d, n);
	width = svg_place(d, n, nlayers);
	for (i = 0, nlayers = 0; i < n; i++)
		nlayers = nlayers > d[i].layer ? nlayers : d[i].layer;
	height = nlayers * GAP_Y + BOX_HEIGHT;
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 %d %.0f %.0f\" width=\"%.0f\">\n", -4, width,
	       height + BOX_HEIGHT / 2.0 + 8, width);
	printf("<style>text{font:12px sans-serif;text-anchor:middle}text.lid{font-size:9px;fill:#667}</style>\n");
	for (i = 0; i < n; i++)
		json_array_foreach(json_object_get(d[i].json, "ports"), k, p) svg_line(d, n, &d[i], p, height);
	for (i = 0; i < n; i++)
		svg_box(&d[i], height);
	printf("</svg>\n");
	free(d);
	return CLI_OK;
}
