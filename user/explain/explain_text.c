/* SPDX-License-Identifier: MIT */
/* explain/explain_text.c - an explanation for people: the verdict, then the rows. Fits a screen unless all is wanted. */
#include "explain/explain.h"

#include "base/printable.h"
#include "base/units.h"
#include "explain/explain_priv.h"

#define SMALL_SHARE 0.005 /* rows below are one line... */
#define ROWS_SHOWN 10 /* ... and so are those after so many */
#define LINE_BYTES 1024

static const char *bytes_of(double bytes, char buf[UNITS_BUF])
{
	return format_bytes(bytes, buf, UNITS_BUF);
}

/* Names are the process's choice. */
static void print_line(char *line, FILE *out)
{
	make_printable(line);
	fprintf(out, "%s\n", line);
}

/* Break a text between words. */
static void print_wrapped(const char *text, int columns, FILE *out)
{
	char copy[LINE_BYTES];
	const char *at = copy;
	int used = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	make_printable(copy);
	while (*(at += strspn(at, " "))) {
		int len = (int)word_with_unit(at);

		if (used && used + 1 + len > columns) {
			fputc('\n', out);
			used = 0;
		}
		used += fprintf(out, "%s%.*s", used ? " " : "", len, at);
		at += len;
	}
	if (used)
		fputc('\n', out);
}

/* As many of the largest parts as the line has room for. */
static void add_parts(const struct row *row, char *line, int columns)
{
	char bytes[UNITS_BUF], part[LINE_BYTES];

	for (size_t i = 0; i < ROW_PARTS && row->parts[i].bytes && row->part_cnt > 1; i++) {
		const char *name = row->parts[i].name, *base = strrchr(name, '/');

		bytes_of((double)row->parts[i].bytes, bytes);
		snprintf(part, sizeof(part), "%s%s%s%s", i ? ", " : ": ", base ? base + 1 : name,
			 name[0] ? " " : "", bytes);
		if (strlen(line) + strlen(part) > (size_t)columns)
			return;
		memcpy(line + strlen(line), part, strlen(part) + 1);
	}
}

static void add_blocks(const struct explanation *x, enum row_kind kind, char *line)
{
	char cnt[UNITS_BUF];

	if (kind == ROW_JE_LIVE)
		add_text(line, LINE_BYTES, ": %s",
			 format_count((double)x->jemalloc.sum.live_cnt, cnt, sizeof(cnt)));
	if (kind == ROW_LIVE)
		add_text(line, LINE_BYTES, ": %s",
			 format_count((double)x->glibc.sum.cnt[HEAP_LIVE], cnt, sizeof(cnt)));
	if (kind == ROW_LIVE && x->glibc.mmapped.cnt[HEAP_LIVE])
		add_text(line, LINE_BYTES, ", %s of them mmapped",
			 format_count((double)x->glibc.mmapped.cnt[HEAP_LIVE], cnt, sizeof(cnt)));
}

static const char *change_of(double bytes, char buf[UNITS_BUF])
{
	char text[UNITS_BUF];

	snprintf(buf, UNITS_BUF, "%s%s", bytes > 0 ? "+" : "", bytes_of(bytes, text));
	return buf;
}

/* With a second look, the change has a column of its own. */
static void begin_row(const struct explanation *x, char *line, double bytes, double change,
		      const char *label)
{
	double rss = x->rows.rss_bytes ? (double)x->rows.rss_bytes : 1;
	char text[UNITS_BUF], percent[UNITS_BUF], changed[UNITS_BUF + 1] = "";

	format_percent(fabs(bytes) / rss, percent + 1, sizeof(percent) - 1);
	percent[0] = '-';
	if (x->change.is_known)
		change_of(change, changed);
	snprintf(line, LINE_BYTES, "%12s %5s %%%*s  %s", bytes_of(bytes, text),
		 percent + (bytes >= 0), x->change.is_known ? 13 : 0, changed, label);
}

static void print_rows(const struct explanation *x, int columns, bool is_verbose, FILE *out)
{
	double rss = x->rows.rss_bytes ? (double)x->rows.rss_bytes : 1, small = 0, small_change = 0;
	char line[LINE_BYTES];
	int small_cnt = 0, shown = 0;

	for (size_t i = 0; i < ROW_CNT; i++) {
		const struct row *row = &x->rows.list[i];
		double bytes = (double)row->bytes, change = (double)x->change.rows[row->kind];

		if (!row->bytes && change == 0)
			continue;
		if (!is_verbose && fabs(change) < rss * SMALL_SHARE &&
		    (shown >= ROWS_SHOWN || fabs(bytes) < rss * SMALL_SHARE)) {
			small += bytes;
			small_change += change;
			small_cnt++;
			continue;
		}
		shown++;
		begin_row(x, line, bytes, change, row_label(row->kind));
		add_blocks(x, row->kind, line);
		add_parts(row, line, columns);
		print_line(line, out);
	}
	if (small_cnt) {
		char label[64];

		snprintf(label, sizeof(label), "%d smaller rows (-v shows them)", small_cnt);
		begin_row(x, line, small, small_change,
			  small_cnt > 1 ? label : "a smaller row (-v shows it)");
		print_line(line, out);
	}
	begin_row(x, line, (double)x->rows.rss_bytes, (double)x->change.rss_bytes, "total (RSS)");
	print_line(line, out);
}

static void print_beside(const struct explanation *x, int columns, FILE *out)
{
	const struct rows *r = &x->rows;
	char bytes[UNITS_BUF], zeros[UNITS_BUF], text[LINE_BYTES] = "";

	if (r->swap_bytes)
		add_text(text, LINE_BYTES, "Not in RSS: %s swapped out. ",
			 bytes_of((double)r->swap_bytes, bytes));
	if (r->hugetlb_bytes)
		add_text(text, LINE_BYTES, "Not in RSS: %s in pages of hugetlbfs. ",
			 bytes_of((double)r->hugetlb_bytes, bytes));
	if (r->forked_bytes >= 1 << 20)
		add_text(text, LINE_BYTES, "Shared with a forked process: %s. ",
			 bytes_of((double)r->forked_bytes, bytes));
	if (r->huge_bytes)
		add_text(text, LINE_BYTES, "In huge pages: %s, about %s of it zeros. ",
			 bytes_of((double)r->huge_bytes, bytes),
			 bytes_of((double)r->huge_zero_bytes, zeros));
	print_wrapped(text, columns, out);
}

static size_t proved_cnt(const struct glibc *g, size_t *ret_used)
{
	const struct glibc_arena *a;
	size_t cnt = 0;

	*ret_used = 0;
	vec_each(&g->arenas, a) {
		*ret_used += a->system_bytes != 0;
		cnt += a->is_proved;
	}
	return cnt;
}

static void print_malloc(const struct explanation *x, int columns, FILE *out)
{
	const struct glibc *g = &x->glibc;
	const struct glibc_arena *a;
	size_t used, proved = proved_cnt(g, &used), told = 0;
	char text[LINE_BYTES], took[UNITS_BUF];

	format_duration(x->took_ns, took, sizeof(took));
	if (g->is_unread)
		snprintf(text, sizeof(text),
			 "The heap of glibc's malloc could not be read (%s). Its memory is in "
			 "other rows.",
			 g->why);
	else if (!g->main_arena)
		snprintf(
			text, sizeof(text),
			"No glibc malloc in use was found, so there are no malloc rows. Read in %s.",
			took);
	else
		snprintf(text, sizeof(text),
			 "glibc malloc: %zu of %zu arenas read and verified in %s.", proved, used,
			 took);
	print_wrapped(text, columns, out);
	vec_each(&g->arenas, a) {
		if (a->is_proved || !a->system_bytes || told++ >= 2)
			continue;
		snprintf(text, sizeof(text), "Arena %#llx could not be verified: %s.",
			 (unsigned long long)a->addr, a->why);
		print_wrapped(text, columns, out);
	}
	if (told > 2)
		fprintf(out, "%zu more arenas could not be verified.\n", told - 2);
}

static void print_jemalloc(const struct explanation *x, int columns, FILE *out)
{
	char text[LINE_BYTES], b[3][UNITS_BUF];

	for (size_t i = 0; i < x->jemalloc.tree_cnt; i++) {
		const struct jemalloc_tree *t = &x->jemalloc.trees[i];

		if (t->is_proved)
			snprintf(text, sizeof(text),
				 "jemalloc (%s): %s in active pages, read and verified. Retained "
				 "address space: %s, %s of it resident.",
				 t->version, bytes_of((double)t->sum.active_bytes, b[0]),
				 bytes_of((double)t->sum.retained_bytes, b[1]),
				 bytes_of((double)t->sum.retained, b[2]));
		else
			snprintf(text, sizeof(text),
				 "jemalloc at %#llx could not be verified (%s). Its memory is in "
				 "other rows.",
				 (unsigned long long)t->root, t->why);
		print_wrapped(text, columns, out);
	}
	if (x->jemalloc.is_mapped && !x->jemalloc.tree_cnt)
		print_wrapped(
			"jemalloc is loaded, but its heap was not found: it is not in use, or not "
			"a known version.",
			columns, out);
}

/* Allocators whose structures are not known. */
static void print_unread(const struct explanation *x, int columns, FILE *out)
{
	static const char *const names[] = { "/libtcmalloc", "/libmimalloc" };
	const struct mapping *map;
	char text[LINE_BYTES];
	bool is_told[2] = { false };

	vec_each(&x->maps.list, map) {
		const char *file = strrchr(map->map.path, '/');

		for (int i = 0; i < 2 && file; i++) {
			if (is_told[i] || strncmp(file, names[i], strlen(names[i])) != 0)
				continue;
			is_told[i] = true;
			snprintf(
				text, sizeof(text),
				"%.60s is loaded. heaptap does not read its heap: it is in the rows for brk and "
				"anonymous memory.",
				file + 1);
			make_printable(text);
			print_wrapped(text, columns, out);
		}
	}
}

/* What their heaps count, beside what is resident of them. */
static void print_runtimes(const struct explanation *x, int columns, FILE *out)
{
	const struct java_heap *java = &x->runtimes.java;
	const struct go_heap *go = &x->runtimes.go;
	const struct v8_heap *v8 = &x->runtimes.v8;
	char text[LINE_BYTES] = "", b[3][UNITS_BUF];

	if (java->resident)
		add_text(text, LINE_BYTES, "Java heap: %s reserved, %s committed, ",
			 bytes_of((double)java->reserved, b[0]),
			 bytes_of((double)java->committed, b[1]));
	if (java->resident && java->used)
		add_text(text, LINE_BYTES, "%s in use as the JVM last counted. ",
			 bytes_of((double)java->used, b[0]));
	else if (java->resident)
		add_text(text, LINE_BYTES, "in use unknown until its next garbage collection. ");
	if (go->arena_cnt)
		add_text(text, LINE_BYTES,
			 "Go heap: %s in spans in use, %s free, %s of it resident. ",
			 bytes_of((double)go->span_bytes, b[0]),
			 bytes_of((double)go->idle_bytes, b[1]), bytes_of((double)go->free, b[2]));
	if (v8->page_cnt)
		add_text(text, LINE_BYTES,
			 "V8: %llu pages of %llu %s, at most %s of them allocated. ",
			 (unsigned long long)v8->page_cnt, (unsigned long long)v8->isolate_cnt,
			 v8->isolate_cnt == 1 ? "isolate" : "isolates",
			 bytes_of((double)v8->allocated, b[0]));
	print_wrapped(text, columns, out);
}

static void print_compared(const struct glibc *g, FILE *out)
{
	const struct glibc_parameters *p = &g->parameters;
	const struct glibc_arena *a;

	fprintf(out, "\n%-16s %11s %11s %11s %9s %9s %9s %9s\n", "arena", "live", "blocks", "free",
		"trimmable", "pinned", "kept", "differs");
	vec_each(&g->arenas, a) {
		const struct heap_sum *s = &a->sum;
		char b[5][UNITS_BUF];
		char differs[UNITS_BUF] = "-";

		if (!a->is_proved)
			continue;
		if (a->bins_are_read)
			snprintf(differs, sizeof(differs), "%lld",
				 (long long)(s->cnt[HEAP_FREE] - a->walked_fast_cnt - a->bin_cnt));
		fprintf(out, "%#-16llx %11s %11llu %11s %9s %9s %9s %9s\n",
			(unsigned long long)a->addr, bytes_of((double)s->bytes[HEAP_LIVE], b[0]),
			(unsigned long long)s->cnt[HEAP_LIVE],
			bytes_of((double)(s->bytes[HEAP_FREE] + s->bytes[HEAP_CACHED]), b[1]),
			bytes_of((double)s->trim, b[2]), bytes_of((double)s->pinned, b[3]),
			bytes_of((double)s->kept, b[4]), differs);
	}
	fprintf(out,
		"differs: free chunks in the heap minus those in bins; 0 if it did not allocate "
		"during the reading; -: unknown\n");
	if (p->is_known)
		fprintf(out, "mmapped blocks: %llu found, %llu counted by malloc\n",
			(unsigned long long)g->mmapped.cnt[HEAP_LIVE],
			(unsigned long long)p->mmapped_cnt);
	fprintf(out, "cached by threads: %llu blocks found%s\n",
		(unsigned long long)g->sum.cnt[HEAP_CACHED],
		g->cache_key ? "" : "; their key is unknown, so they count as live");
}

void explain_print_notes(const struct explanation *x, int columns, FILE *out)
{
	print_beside(x, columns, out);
	print_malloc(x, columns, out);
	print_jemalloc(x, columns, out);
	print_runtimes(x, columns, out);
	print_unread(x, columns, out);
}

void explain_print_text(const struct explanation *x, int columns, bool is_verbose, FILE *out)
{
	char line[LINE_BYTES], rss[UNITS_BUF];

	snprintf(line, sizeof(line), "%s (PID %d): %s resident", x->comm, x->pid,
		 bytes_of((double)x->rows.rss_bytes, rss));
	print_line(line, out);
	print_wrapped(x->verdict.text, columns, out);
	print_wrapped(x->change.text, columns, out);
	print_wrapped(x->verdict.advice, columns, out);
	fprintf(out, "\n");
	print_rows(x, columns, is_verbose, out);
	fprintf(out, "\n");
	explain_print_notes(x, columns, out);
	if (is_verbose && x->glibc.main_arena)
		print_compared(&x->glibc, out);
	if (is_verbose)
		explain_print_blocks(x, columns, out);
}
