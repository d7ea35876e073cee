/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_verbose.c - doctor's additional text with -v: every probed function, mapped file, feature and
 * privilege. Fits 80 columns as far as paths allow.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/units.h"
#include "cmd/doctor_page.h"
#include "alloc/allocators.h"
#include "tap/tap_code.h"

/* Print a path in exactly `width` columns; of a long one, the end. */
static void print_path(const struct page *to, const char *name, int width)
{
	char path[PATH_MAX];
	int len;

	snprintf(path, sizeof(path), "%s", name);
	make_printable(path);
	len = (int)strlen(path);
	if (len > width)
		fprintf(to->out, "...%s", path + len - (width - 3));
	else
		fprintf(to->out, "%-*s", width, path);
}

struct text {
	char text[512];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->text + t->len, sizeof(t->text) - t->len, fmt, args);
	va_end(args);
	if (n > 0)
		t->len += (size_t)n < sizeof(t->text) - t->len ? (size_t)n : 0;
}

static void print_site(const struct doctor_report *r, const struct alloc_site *site, bool is_probed,
		       const struct page *to)
{
	const struct placement *p = &site->placement;
	char cost[UNITS_BUF] = "?", how[160];
	double ns = doctor_site_ns(r, site);
	int at;

	if (ns)
		format_duration((uint64_t)ns, cost, sizeof(cost));
	if (p->is_emulated)
		snprintf(how, sizeof(how), "emulated%s%s", p->skips_null ? ", past NULL check" : "",
			 is_probed ? " (probed)" : "");
	else
		snprintf(how, sizeof(how), "single-stepped: %s%s", p->why,
			 is_probed ? " (probed)" : "");
	at = fprintf(to->out, "    %-22.22s +%-4llu %-20.20s %8s  ", site->symbol,
		     (unsigned long long)(p->vaddr - site->fn_vaddr), p->insn, cost);
	page_wrapped(to, at, at, how);
}

/* "8d 15 5c 7f 2c -> e9 .. .. .. ..": where the jump leads is known only in a process. */
static void add_change(struct text *t, const uint8_t *insn, uint8_t off, uint8_t cnt)
{
	const uint8_t target_bytes = cnt < TAP_LONG_JUMP_BYTES - 1 ? 1 : 4;

	for (uint8_t i = off; i < off + cnt; i++)
		add_text(t, "%02x ", insn[i]);
	add_text(t, "->");
	if (cnt > target_bytes)
		add_text(t, " %02x", target_bytes == 1 ? 0xeb : 0xe9);
	for (uint8_t i = 0; i < target_bytes; i++)
		add_text(t, " ..");
}

static void add_gap(struct text *t, const struct alloc_site *site, uint64_t gap_vaddr)
{
	if (gap_vaddr)
		add_text(t, " and %d bytes at %+lld", TAP_LONG_JUMP_BYTES,
			 (long long)(gap_vaddr - site->fn_vaddr));
}

/* What changes, what the way in touches, and what is to be known. */
static void add_spot(struct text *t, const struct alloc_site *site)
{
	const struct tap_spot *tap = &site->tap;
	uint8_t off, cnt;

	tap_spot_changed(tap, &off, &cnt);
	add_change(t, tap->insn.bytes, off, cnt);
	add_gap(t, site, tap->gap_vaddr);
	if (tap->branch_vaddr) {
		tap_branch_changed(tap, &off, &cnt);
		add_text(t, "; +%llu: ", (unsigned long long)(tap->branch_vaddr - site->fn_vaddr));
		add_change(t, tap->branch.bytes, off, cnt);
		add_gap(t, site, tap->branch_gap_vaddr);
	}
	add_text(t, tap->uses_scratch ? "; saves r10 r11 (16 bytes of stack)" : "; uses r10 r11");
	if (tap->flags_insn)
		add_text(t, ", tests again");
	if (tap->is_watched)
		add_text(t, "; another tool's breakpoint here would hide calls");
}

/* Print where a tap goes, what it changes, or why there is none. */
static void print_tap(const struct alloc_file *alloc, const struct page *to)
{
	const struct alloc_site *site;

	fprintf(to->out, "    %-22s %-5s %-20s\n", "tapped function", "at", "bytes");
	vec_each(&alloc->sites, site) {
		const struct tap_spot *tap = &site->tap;
		enum tap_use use = tap_use_of(site, NULL);
		struct text t = { 0 };
		int at;

		if (use == TAP_USE_NOTHING)
			add_text(&t, "none, its blocks are not sampled: %s",
				 tap->vaddr ?
					 "it may throw, and no other function gives such blocks" :
					 tap->why);
		else if (tap->vaddr)
			add_spot(&t, site);
		else
			add_text(&t, "none: %s%s", tap->why,
				 use == TAP_USE_INSIDE ? " (what it calls is tapped)" : "");
		if (use == TAP_USE_FREES)
			add_text(&t, "; what it gives is not sampled: it may throw");
		at = tap->vaddr ? fprintf(to->out, "    %-22.22s %+-5lld ", site->symbol,
					  (long long)(tap->vaddr - site->fn_vaddr)) :
				  fprintf(to->out, "    %-22.22s       ", site->symbol);
		page_wrapped(to, at, at, t.text);
	}
}

static void print_allocator(const struct doctor_report *r, const struct survey_file *file,
			    const struct page *to)
{
	double pair_ns = doctor_pair_ns(r, file->alloc);
	char cost[UNITS_BUF], line[512];
	size_t i;

	snprintf(line, sizeof(line), "%s in %s%s", file->alloc->family, file->path,
		 file->is_deleted ? " (deleted)" : "");
	fprintf(to->out, "  ");
	page_wrapped(to, 2, 4, line);
	if (pair_ns) {
		format_duration((uint64_t)pair_ns, cost, sizeof(cost));
		fprintf(to->out, "    a malloc and free that are not sampled cost about %s more\n",
			cost);
	}
	fprintf(to->out, "    %-22s %-5s %-20s %8s  %s\n", "function", "at", "instruction",
		"a call", "how");
	for (i = 0; i < file->alloc->sites.cnt; i++)
		print_site(r, &file->alloc->sites.data[i], file->is_probed && file->is_probed[i],
			   to);
	print_tap(file->alloc, to);
}

/* Print the whole table, so that nobody has to guess what "known" means. */
static void print_looked_for(const struct page *to)
{
	size_t row_cnt, prefix_cnt, i, len = 0, cap = 64;
	const char *const *prefixes = alloc_prefixes(&prefix_cnt);
	const struct alloc_row *rows = alloc_table(&row_cnt);
	char *line;

	for (i = 0; i < row_cnt; i++)
		cap += strlen(rows[i].name) + 1;
	for (i = 0; i < prefix_cnt; i++)
		cap += strlen(prefixes[i]) + 1;
	line = calloc(1, cap);
	if (!line)
		return;
	for (i = 0; i < row_cnt; i++)
		len += (size_t)snprintf(line + len, cap - len, "%s ", rows[i].name);
	fprintf(to->out, "  none found. Functions that were looked for:\n    ");
	page_wrapped(to, 4, 4, line);
	for (i = 0, len = 0, line[0] = '\0'; i < prefix_cnt; i++)
		if (prefixes[i][0])
			len += (size_t)snprintf(line + len, cap - len, "%s ", prefixes[i]);
	fprintf(to->out, "  and the same with these prefixes:\n    ");
	page_wrapped(to, 4, 4, line);
	free(line);
}

static void print_allocators(const struct doctor_report *r, const struct page *to)
{
	const struct survey_file *file;
	bool found = false;

	fprintf(to->out, "\nAllocators\n");
	vec_each(&r->survey->files, file) {
		if (!file->alloc)
			continue;
		found = true;
		print_allocator(r, file, to);
	}
	if (!found)
		print_looked_for(to);
}

/* The key names belong to the process, not to the file. */
static void describe_otel(const struct survey *s, char *line, size_t line_bytes)
{
	if (s->otel_keys_err == -EPROTO)
		snprintf(line, line_bytes, "key names not readable");
	else if (s->otel_keys_err)
		snprintf(line, line_bytes, "no key names published");
	else
		snprintf(line, line_bytes, "%zu key name%s", s->otel_key_cnt,
			 s->otel_key_cnt == 1 ? "" : "s");
}

/* "12 nodes, 1 overflow, 3 truncations" */
static void describe_scopes(const struct survey_tag *tag, char *line, size_t line_bytes)
{
	const struct scope_descriptor *d = &tag->descriptor;
	const struct {
		const char *what;
		uint32_t cnt;
	} counters[] = {
		{ "overflow", d->overflows },
		{ "underflow", d->underflows },
		{ "truncation", d->truncations },
	};
	uint32_t node_cnt = doctor_node_cnt(tag);
	size_t len, i;

	if (!tag->has_descriptor)
		return;
	len = (size_t)snprintf(line, line_bytes, "%s%u node%s",
			       doctor_is_paused(tag) ? "paused, " : "", node_cnt,
			       node_cnt == 1 ? "" : "s");
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (counters[i].cnt)
			len += (size_t)snprintf(line + len, line_bytes - len, ", %u %s%s",
						counters[i].cnt, counters[i].what,
						counters[i].cnt == 1 ? "" : "s");
}

/* Columns left for a file's path. */
static int path_columns(const struct page *to)
{
	return to->columns - 56;
}

static void print_tag(const struct doctor_report *r, const struct survey_file *file,
		      const struct survey_tag *tag, const struct page *to)
{
	static const char *const modes[] = {
		[HT_TLS_NOT_READY] = "not ready",
		[HT_TLS_STATIC] = "static TLS",
		[HT_TLS_DTV] = "DTV",
		[HT_TLS_REGISTRY] = "registry",
	};
	const char *how = tag->problem.text[0] ? "left out" : modes[tag->tls_mode];
	char format[24], line[128] = "";
	int at;

	if (tag->problem.text[0])
		snprintf(line, sizeof(line), "see above");
	else if (tag->kind == HT_TAG_OTEL)
		describe_otel(r->survey, line, sizeof(line));
	else if (tag->kind == HT_TAG_SCOPE)
		describe_scopes(tag, line, sizeof(line));
	fprintf(to->out, "  ");
	print_path(to, file->path, path_columns(to));
	at = 2 + path_columns(to) +
	     fprintf(to->out, "  %-13s  %-*s", page_tag_format(tag, format), line[0] ? 12 : 0, how);
	page_wrapped(to, at, at, line);
}

static void print_tags(const struct doctor_report *r, const struct page *to)
{
	const struct survey_file *file;
	const struct survey_tag *tag;
	bool found = false;

	fprintf(to->out, "\nTags\n");
	vec_each(&r->survey->files, file) {
		vec_each(&file->tags.all, tag) {
			if (!found)
				fprintf(to->out, "  %-*s  %-13s  %-10s  %s\n", path_columns(to),
					"file", "format", "found by", "says");
			found = true;
			print_tag(r, file, tag, to);
		}
	}
	if (!found)
		fprintf(to->out, "  none: include heaptap/scope.h to see who the memory is for\n");
}

static const char *lines_of(const struct survey_file *file)
{
	switch (file->debug) {
	case SURVEY_DEBUG_OWN:
		return "in the file";
	case SURVEY_DEBUG_SEPARATE:
		return "debug file";
	default:
		return "no";
	}
}

static void print_stack_file(const struct survey_file *file, const struct page *to)
{
	char text[UNITS_BUF], rows[UNITS_BUF + 8] = "frame pointers", cnt[UNITS_BUF];

	fprintf(to->out, "  ");
	print_path(to, file->path, path_columns(to));
	if (file->open_err) {
		fprintf(to->out, "  cannot be read: %s\n", strerror(-file->open_err));
		return;
	}
	if (file->row_cnt)
		snprintf(rows, sizeof(rows), "%s rows",
			 format_count(file->row_cnt, cnt, sizeof(cnt)));
	fprintf(to->out, " %10s  %-14s  %-8s  %s\n",
		format_bytes((double)file->exec_bytes, text, sizeof(text)), rows,
		file->has_symtab || file->has_mini_symtab ? "all" :
		file->symbol_cnt			  ? "exported" :
							    "none",
		lines_of(file));
}

static void print_stacks(const struct doctor_report *r, const struct page *to)
{
	const struct survey *s = r->survey;
	const struct survey_file *file;
	char size[UNITS_BUF];

	fprintf(to->out, "\nStacks\n  %-*s %10s  %-14s  %-8s  %s\n", path_columns(to), "file",
		"text", "unwound by", "names", "lines");
	vec_each(&s->files, file)
		print_stack_file(file, to);
	if (s->jit_area_cnt)
		fprintf(to->out, "  %-*s %10s  %-14s  %-8s  no\n", path_columns(to),
			"(no file: JIT)", format_bytes((double)s->jit_bytes, size, sizeof(size)),
			"frame pointers",
			s->has_jit_map	? "perf map" :
			s->has_jit_dump ? "jitdump" :
					  "none");
}

/* Print the choices of `heaptap serve` for a library that several followed processes use. */
static void print_sharings(const struct doctor_report *r, const struct page *to)
{
	const size_t *cnt = doctor_sharing_process_cnts;
	char ns[UNITS_BUF];

	fprintf(to->out, "\n  ways to attach, ns a hit of one of  %7zu %7zu %7zu %7zu  processes\n",
		cnt[0], cnt[1], cnt[2], cnt[3]);
	for (enum sharing sharing = SHARING_OWN; sharing <= SHARING_ALL; sharing++) {
		fprintf(to->out, "  %-5s  %-26s ", sharing_name(sharing),
			sharing == SHARING_OWN	 ? "links of each process" :
			sharing == SHARING_EVENT ? "an event that they share" :
						   "one link; others pay too");
		for (size_t i = 0; i < DOCTOR_SHARING_CNTS; i++) {
			double value = doctor_sharing_ns(r, sharing, cnt[i]);

			snprintf(ns, sizeof(ns), "%.0f", value);
			fprintf(to->out, " %7s", value > 0 ? ns : "-");
		}
		fputc('\n', to->out);
	}
}

void page_kernel(const struct doctor_report *r, const struct page *to)
{
	const struct feature_info *infos;
	size_t cnt, i;

	fprintf(to->out, "\nKernel features\n  %-15s  %-4s  %-5s  %s\n", "feature", "here", "since",
		"if it is missing");
	infos = kernel_feature_infos(&cnt);
	for (i = 0; i < cnt; i++) {
		fprintf(to->out, "  %-15s  %-4s  %-5s  ", infos[i].name,
			!doctor_tries_feature(r, &infos[i]) ? "?" :
			doctor_has_feature(r, &infos[i])    ? "yes" :
							      "NO",
			infos[i].since);
		page_wrapped(to, 32, 32, infos[i].without);
	}
	if (r->has_mode)
		page_field(to, "attached by", attach_mode_name(r->mode));
	if (r->has_costs)
		print_sharings(r, to);
}

/* A sysctl restricts only processes without the capability. */
static void print_sysctl(const struct privileges *p, const struct page *to, const char *name,
			 int value, int capability, const char *capability_name)
{
	char number[16] = "none";

	if (value != INT_MIN)
		snprintf(number, sizeof(number), "%d", value);
	fprintf(to->out, "  %-25s  %-4s  %s %s\n", name, number,
		privileges_have(p, capability) ? "does not matter with" : "matters without",
		capability_name);
}

void page_privileges(const struct doctor_report *r, const struct page *to)
{
	const struct privileges *p = &r->privileges;
	const struct capability_info *infos;
	size_t cnt, i;

	fprintf(to->out, "\nPrivileges of heaptap: uid %u%s\n", p->uid,
		p->in_user_namespace ? ", in a user namespace (they do not count)" : "");
	infos = capability_infos(&cnt);
	for (i = 0; i < cnt; i++) {
		fprintf(to->out, "  %-25s  %-4s  ", infos[i].name,
			privileges_have(p, infos[i].number) ? "yes" : "NO");
		page_wrapped(to, 35, 35, infos[i].purpose);
	}
	fprintf(to->out, "  %-25s  %s\n", "kernel lockdown",
		p->lockdown[0] ? p->lockdown : "none, or securityfs is not mounted");
	if (p->perf_event_paranoid > PERF_EVENT_PARANOID_PERFMON)
		print_sysctl(p, to, "perf_event_paranoid", p->perf_event_paranoid, CAP_SYS_ADMIN,
			     "CAP_SYS_ADMIN");
	else
		print_sysctl(p, to, "perf_event_paranoid", p->perf_event_paranoid, CAP_PERFMON,
			     "CAP_PERFMON");
	print_sysctl(p, to, "unprivileged_bpf_disabled", p->unprivileged_bpf_disabled, CAP_BPF,
		     "CAP_BPF");
	print_sysctl(p, to, "yama ptrace_scope", p->ptrace_scope, CAP_SYS_PTRACE, "CAP_SYS_PTRACE");
	fprintf(to->out, "  %-25s  %-4d  does not matter: no kernel address is used\n",
		"kptr_restrict", p->kptr_restrict);
}

void page_survey(const struct doctor_report *r, const struct page *to)
{
	print_allocators(r, to);
	print_tags(r, to);
	print_stacks(r, to);
}
