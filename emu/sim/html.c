// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The result of a simulation as an HTML page, with SVG plots. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emu/sim/sim.h"

#define WIDTH  720
#define HEIGHT 200
#define LEFT   60
#define BOTTOM 30

struct point {
	double x, y;
};

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* Escapes text: names come from topologies. */
static void put_text(FILE *out, const char *text)
{
	for (; text && *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else
			fputc(*text, out);
	}
}

static double at_x(double x, double x0, double x1)
{
	return LEFT + (x1 > x0 ? (x - x0) / (x1 - x0) : 0) * (WIDTH - LEFT - 10);
}

static double at_y(double y, double top)
{
	return HEIGHT - BOTTOM - (top > 0 ? y / top : 0) * (HEIGHT - BOTTOM - 10);
}

static void plot_begin(FILE *out, const char *title, const char *x, const char *y)
{
	fprintf(out, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>\n", title, WIDTH, HEIGHT,
		title);
	fprintf(out, "<path class=\"axis\" d=\"M%d 10V%dH%d\"/>\n", LEFT, HEIGHT - BOTTOM, WIDTH - 10);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", WIDTH - 10, HEIGHT - 4, x);
	fprintf(out, "<text x=\"4\" y=\"10\">%s</text>\n", y);
}

/* Labels of the axes; @log: x is the logarithm of the labelled value. */
static void plot_scale(FILE *out, double x0, double x1, double top, bool log)
{
	double x[3] = { x0, (x0 + x1) / 2, x1 };
	u32 i;

	for (i = 0; i < 3; i++)
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
			at_x(x[i], x0, x1) - (i == 2 ? 12 : 0), HEIGHT - BOTTOM + 14, log ? pow(10, x[i]) : x[i]);
	for (i = 0; i < 3; i++)
		fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT - 4,
			at_y(top * i / 2, top) + 4, top * i / 2);
}

static void plot_line(FILE *out, const struct point *p, size_t n, double x0, double x1, double top, const char *name)
{
	size_t i;

	fprintf(out, "<path class=\"%s\" d=\"", name);
	for (i = 0; i < n; i++)
		fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', at_x(p[i].x, x0, x1), at_y(p[i].y, top));
	fprintf(out, "\"/>\n");
}

static double highest(const struct point *p, size_t n)
{
	double most = 0;
	size_t i;

	for (i = 0; i < n; i++)
		most = max(most, p[i].y);
	return most;
}

/* Plots a value per slice over time, with a line at the start of each failure. */
static void plot_slices(FILE *out, const json_t *r, const char *title, const char *unit, const char *key, double scale)
{
	const json_t *slices = json_object_get(r, "slices"), *v;
	size_t n = json_array_size(slices), i;
	struct point *p = sim_alloc(n + 1, sizeof(*p));
	double end;

	json_array_foreach(slices, i, v) p[i] = (struct point){ number(v, "at"), number(v, key) * scale };
	end = n > 1 ? p[n - 1].x + p[1].x : 1;
	plot_begin(out, title, "seconds", unit);
	plot_scale(out, 0, end, highest(p, n), false);
	json_array_foreach(json_object_get(r, "reconvergence"), i, v)
	{
		const char *kind = json_string_value(json_object_get(v, "kind"));

		fprintf(out, "<path class=\"%s\" d=\"M%.1f 10V%d\"><title>", kind, at_x(number(v, "at"), 0, end),
			HEIGHT - BOTTOM);
		put_text(out, json_string_value(json_object_get(v, "first")));
		fprintf(out, "</title></path>\n");
	}
	plot_line(out, p, n, 0, end, highest(p, n), "line");
	fprintf(out, "</svg>\n");
	free(p);
}

static void plot_latency(FILE *out, const json_t *r)
{
	const json_t *cdf = json_object_get(r, "latency_distribution"), *v;
	size_t n = json_array_size(cdf), i;
	struct point *p = sim_alloc(n + 1, sizeof(*p));

	json_array_foreach(cdf, i, v)
	{
		double us = json_number_value(json_array_get(v, 0)) * 1e6;

		p[i].x = log10(us > 1e-3 ? us : 1e-3);
		p[i].y = json_number_value(json_array_get(v, 1));
	}
	plot_begin(out, "Latency", "microseconds (logarithmic)", "share of the packets");
	if (n) {
		double x0 = floor(p[0].x), x1 = max(ceil(p[n - 1].x), x0 + 1);

		plot_scale(out, x0, x1, 1, true);
		plot_line(out, p, n, x0, x1, 1, "line");
	}
	fprintf(out, "</svg>\n");
	free(p);
}

static void plot_links(FILE *out, const json_t *r)
{
	const json_t *links = json_object_get(r, "links"), *sorted = json_object_get(links, "sorted"), *v;
	size_t n = json_array_size(sorted), i;
	struct point *p = sim_alloc(n + 1, sizeof(*p));

	json_array_foreach(sorted, i, v) p[i] =
		(struct point){ number(links, "directions") * (double)i / (double)n, json_number_value(v) * 100 };
	plot_begin(out, "Link utilisation", "directions of links, the busiest first", "%");
	plot_scale(out, 0, number(links, "directions"), 100, false);
	plot_line(out, p, n, 0, number(links, "directions"), 100, "line");
	fprintf(out, "</svg>\n<table><tr><th>port</th><th>to</th><th>%%</th></tr>\n");
	json_array_foreach(json_object_get(links, "busiest"), i, v)
	{
		if (i >= 20)
			break;
		fprintf(out, "<tr><td>");
		put_text(out, json_string_value(json_object_get(v, "port")));
		fprintf(out, "</td><td>");
		put_text(out, json_string_value(json_object_get(v, "to")));
		fprintf(out, "</td><td>%.1f</td></tr>\n", number(v, "utilisation") * 100);
	}
	fprintf(out, "</table>\n");
	free(p);
}

static void table_vls(FILE *out, const json_t *r)
{
	static const char *const keys[] = { "p50", "p90", "p99", "p99.9", "max" };
	const json_t *v;
	size_t i, k;

	fprintf(out, "<h2>Virtual lanes</h2>\n<table><tr><th>VL</th><th>packets</th><th>bytes</th>");
	for (k = 0; k < ARRAY_SIZE(keys); k++)
		fprintf(out, "<th>%s, us</th>", keys[k]);
	fprintf(out, "<th>PortVLXmitWait</th></tr>\n");
	json_array_foreach(json_object_get(r, "vls"), i, v)
	{
		fprintf(out, "<tr><td>%.0f</td><td>%.0f</td><td>%.0f</td>", number(v, "vl"), number(v, "packets"),
			number(v, "bytes"));
		for (k = 0; k < ARRAY_SIZE(keys); k++)
			fprintf(out, "<td>%.3f</td>", number(v, keys[k]) * 1e6);
		fprintf(out, "<td>%.0f</td></tr>\n", number(v, "xmit_wait"));
	}
	fprintf(out, "</table>\n");
}

static void table_failures(FILE *out, const json_t *r)
{
	const json_t *all = json_object_get(r, "reconvergence"), *v, *t, *name;
	size_t i, k;

	fprintf(out, "<h2>Reconvergence</h2>\n");
	if (!json_array_size(all)) {
		fprintf(out, "<p>No link has failed.</p>\n");
		return;
	}
	fprintf(out,
		"<table><tr><th>at, s</th><th>what</th><th>first port</th><th>ports</th><th>new routes after, ms</th>"
		"<th>discarded</th></tr>\n");
	json_array_foreach(all, i, v)
	{
		t = json_object_get(v, "reconvergence_seconds");
		fprintf(out, "<tr><td>%.6f</td><td>%s</td><td>", number(v, "at"),
			json_string_value(json_object_get(v, "kind")));
		put_text(out, json_string_value(json_object_get(v, "first")));
		fprintf(out, "</td><td><details><summary>%.0f</summary>", number(v, "ports"));
		json_array_foreach(json_object_get(v, "names"), k, name)
		{
			fputs(k ? ", " : "", out);
			put_text(out, json_string_value(name));
		}
		fprintf(out, "</details></td><td>");
		if (json_is_number(t))
			fprintf(out, "%.3f", json_number_value(t) * 1e3);
		else
			fprintf(out, "not before the end");
		fprintf(out, "</td><td>%.0f</td></tr>\n", number(v, "discarded"));
	}
	fprintf(out, "</table>\n");
}

int sim_report_html(const char *path, const json_t *r)
{
	FILE *out = fopen(path, "we");
	char *text = NULL;
	size_t len;
	FILE *summary;
	int err;

	if (!out)
		return -errno;
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>muslin-sim</title>\n<style>\n"
		"body{font:14px sans-serif;max-width:%dpx;margin:2em auto;color:#222}\nh2{font-size:1.1em}\n"
		"svg{width:100%%;font-size:10px}\n.axis,.line,.failure,.repair{fill:none;stroke:#888}\n"
		".line{stroke:#06c;stroke-width:1.5}\n.failure{stroke:#c00}\n.repair{stroke:#080;stroke-dasharray:3}\n"
		"td,th{padding:1px 8px;text-align:right}\npre{background:#f4f4f4;padding:8px;overflow:auto}\n</style>\n"
		"<h1>muslin-sim</h1>\n",
		WIDTH + 60);
	summary = open_memstream(&text, &len);
	if (summary) {
		sim_report_text(summary, r);
		fclose(summary);
		fprintf(out, "<pre>");
		put_text(out, text);
		fprintf(out, "</pre>\n");
		free(text);
	}
	plot_slices(out, r, "Throughput", "Gb/s", "gbps", 1);
	plot_slices(out, r, "Mean latency", "us", "latency_mean", 1e6);
	plot_latency(out, r);
	plot_links(out, r);
	table_vls(out, r);
	table_failures(out, r);
	fprintf(out, "</html>\n");
	err = ferror(out);
	return fclose(out) || err ? -EIO : 0;
}
