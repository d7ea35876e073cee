/* SPDX-License-Identifier: MIT */
/*
 * cmd_doctor_text.c - the doctor's report for people: what can be recorded, what is in the way or would
 * be missing and what to do about it, then the facts in a few lines. Verbose, then every probed
 * function, mapped file, feature and privilege. Fits 80 columns as far as paths allow.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/units.h"
#include "cmd_doctor.h"
#include "target/allocators.h"

#define COLUMNS_DEFAULT 100
#define NAMED_CNT 3 /* of a list, this many are named */
#define VDSO "[vdso]"

struct page {
	FILE *out;
	int columns;
};

/* Words of text from column `at` on, further lines indented by `indent`. */
static void print_wrapped(const struct page *to, int at, int indent, const char *names)
{
	char *copy = strdup(names);
	const char *text = copy ? copy : "";
	bool is_first = true;

	if (copy)
		make_printable(copy);
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (len && !is_first && at + 1 + len > to->columns) {
			fprintf(to->out, "\n%*s", indent, "");
			at = indent;
			is_first = true;
		}
		if (len) {
			fprintf(to->out, "%s%.*s", is_first ? "" : " ", len, text);
			at += len + !is_first;
			is_first = false;
		}
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', to->out);
	free(copy);
}

/* "  name         text", wrapped. */
static void print_field(const struct page *to, const char *name, const char *text)
{
	fprintf(to->out, "  %-13s", name);
	print_wrapped(to, 15, 15, text);
}

/* A path in exactly `width` columns; of a long one the end is shown. */
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

/* A line of a field's text, built in parts; what does not fit is cut. */
struct line {
	char text[768];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, fmt, args);
	va_end(args);
	if (n > 0)
		l->len += (size_t)n;
	if (l->len >= sizeof(l->text))
		l->len = sizeof(l->text) - 1;
}

/* Before the nth of a list: "a, b, c and 4 more". False: it is not named. */
static bool add_separator(struct line *l, uint32_t nth, uint32_t cnt)
{
	if (nth == NAMED_CNT)
		add(l, " and %u more", cnt - NAMED_CNT);
	else if (nth && nth < NAMED_CNT)
		add(l, ", ");
	return nth < NAMED_CNT;
}

static uint32_t allocator_cnt(const struct doctor_report *r)
{
	const struct survey_file *file;
	uint32_t cnt = 0;

	vec_each(&r->survey->files, file)
		cnt += file->alloc != NULL;
	return cnt;
}

/* What a recording would have, and would cost. */
static void print_prospect(const struct doctor_report *r, const struct page *to)
{
	struct line names = { 0 }, what = { 0 }, cost = { 0 };
	const struct survey_file *file;
	char ns[UNITS_BUF];
	uint32_t nth = 0, cost_cnt = 0;

	vec_each(&r->survey->files, file) {
		double pair_ns = file->alloc ? doctor_pair_ns(r, file->alloc) : 0;

		if (file->alloc && add_separator(&names, nth++, allocator_cnt(r)))
			add(&names, "%s (%s)", file->alloc->family, file->path);
		if (pair_ns && cost_cnt < NAMED_CNT)
			add(&cost, "%sabout %s (%s)", cost_cnt++ ? ", " : "",
			    format_duration((uint64_t)pair_ns, ns, sizeof(ns)),
			    file->alloc->family);
	}
	add(&what,
	    "what %s hands out once heaptap is attached. What the process holds before that stays "
	    "unknown; 'heaptap record -- COMMAND' sees everything",
	    names.text);
	print_field(to, "recorded", what.text);
	if (cost_cnt) {
		add(&cost, " for a malloc and its free that are not sampled");
		print_field(to, "cost", cost.text);
	}
	fprintf(to->out, "  %-13sheaptap record -p %d -d 30s\n", "command", r->pid);
}

static void print_advice(const char *advice, const struct page *to)
{
	fprintf(to->out, "%9s-> ", "");
	print_wrapped(to, 12, 12, advice);
}

static void print_verdict(const struct doctor_report *r, const struct page *to)
{
	uint32_t limit_cnt = doctor_cnt(r, DOCTOR_LIMIT);
	const char *on = r->has_process ? "this process" : "on this machine";
	char line[640];

	if (r->verdict == DOCTOR_BLOCK) {
		snprintf(line, sizeof(line), "heaptap can record %s: no: %s", on,
			 r->findings.data[0].what);
		print_wrapped(to, 0, 2, line);
		if (r->findings.data[0].advice[0])
			print_advice(r->findings.data[0].advice, to);
		return;
	}
	if (limit_cnt)
		fprintf(to->out, "heaptap can record %s: with limits (%u)\n", on, limit_cnt);
	else
		fprintf(to->out, "heaptap can record %s: yes\n", on);
	if (r->survey)
		print_prospect(r, to);
	else
		print_field(to, "a process", "heaptap doctor -p PID tells of one");
}

/* Without the first that prevents everything, which the verdict has told. */
static void print_findings(const struct doctor_report *r, const struct page *to)
{
	static const char *const names[] = {
		[DOCTOR_NOTE] = "note",
		[DOCTOR_LIMIT] = "limit",
		[DOCTOR_BLOCK] = "blocks",
	};
	size_t i = r->verdict == DOCTOR_BLOCK;

	if (i >= r->findings.cnt)
		return;
	fprintf(to->out, "\n%s\n",
		r->verdict == DOCTOR_NOTE  ? "Good to know" :
		r->verdict == DOCTOR_LIMIT ? "What would be missing, and what to do" :
					     "Besides");
	for (; i < r->findings.cnt; i++) {
		const struct doctor_finding *f = &r->findings.data[i];

		fprintf(to->out, "  %-7s", names[f->level]);
		print_wrapped(to, 9, 9, f->what);
		if (f->advice[0])
			print_advice(f->advice, to);
	}
}

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "waiting for the disk";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
		return "ended";
	default:
		return "in an unknown state";
	}
}

static void print_who(const struct process_info *info, const struct page *to)
{
	struct line l = { 0 };

	if (info->exe[0])
		print_field(to, "executable", info->exe);
	add(&l, "uid %u, %u thread%s, ", info->uid, info->thread_cnt,
	    info->thread_cnt == 1 ? "" : "s");
	if (info->is_main_thread_gone)
		add(&l, "its main thread has ended, others live");
	else
		add(&l, "%s", state_name(info->state));
	add(&l, "%s", info->is_32bit ? ", 32-bit" : "");
	print_field(to, "runs as", l.text);
}

static void print_memory(const struct process_info *info, const struct page *to)
{
	struct line l = { 0 };
	char bytes[UNITS_BUF];

	add(&l, "%s resident", format_bytes((double)info->rss_bytes, bytes, sizeof(bytes)));
	if (info->pss_bytes)
		add(&l, ", its own share %s",
		    format_bytes((double)info->pss_bytes, bytes, sizeof(bytes)));
	if (info->address_limit_bytes)
		add(&l, ", address space limited to %s",
		    format_bytes((double)info->address_limit_bytes, bytes, sizeof(bytes)));
	print_field(to, "memory", l.text);
}

static void print_confinement(const struct process_info *info, const struct page *to)
{
	static const char *const modes[] = { "", "seccomp (strict)", "seccomp filter" };
	struct line l = { 0 };

	if (info->container_id[0])
		add(&l, "container %s", info->container_id);
	if (info->in_pid_namespace)
		add(&l, "%sown pid namespace", l.len ? ", " : "");
	if (info->seccomp > 0 && info->seccomp <= 2)
		add(&l, "%s%s", l.len ? ", " : "", modes[info->seccomp]);
	print_field(to, "confinement",
		    l.len ? l.text : "none (no container, no own pid namespace, no seccomp)");
}

static const char *tag_format(const struct survey_tag *tag, char buf[24])
{
	snprintf(buf, 24, "%s",
		 tag->kind == HT_TAG_OTEL   ? "OpenTelemetry" :
		 tag->kind == HT_TAG_CUSTOM ? "custom labels" :
					      "scope.h");
	if (tag->has_descriptor)
		snprintf(buf, 24, "scope.h %u.%u", SCOPE_DESCRIPTOR_MAJOR, tag->descriptor.minor);
	return buf;
}

static void print_tags_line(const struct survey *s, const struct page *to)
{
	struct line l = { 0 };
	const struct survey_file *file;
	const struct survey_tag *tag;
	uint32_t cnt = 0, nth = 0;
	char format[24];

	vec_each(&s->files, file)
		cnt += file->tags.all.cnt;
	vec_each(&s->files, file)
		vec_each(&file->tags.all, tag)
			if (add_separator(&l, nth++, cnt))
				add(&l, "%s in %s%s", tag_format(tag, format), file->path,
				    tag->problem[0] ? " (left out)" : "");
	print_field(to, "tags",
		    cnt ? l.text : "none: include heaptap/scope.h to see who the memory is for");
}

/* Of the files with code that could be read: how many have what a stack needs. */
static void print_stacks_line(const struct survey *s, const struct page *to)
{
	uint32_t cnt = 0, row_cnt = 0, name_cnt = 0, line_cnt = 0;
	const struct survey_file *file;
	struct line l = { 0 };

	vec_each(&s->files, file) {
		if (file->open_err || !file->has_code || !strcmp(file->path, VDSO))
			continue;
		cnt++;
		row_cnt += file->row_cnt > 0;
		name_cnt += file->has_symtab || file->has_mini_symtab;
		line_cnt += file->debug != SURVEY_DEBUG_NONE;
	}
	add(&l,
	    "%u file%s with code: %u with unwind tables, %u with all function names, %u with source "
	    "lines",
	    cnt, cnt == 1 ? "" : "s", row_cnt, name_cnt, line_cnt);
	print_field(to, "stacks", l.text);
}

static void print_process(const struct doctor_report *r, const struct page *to)
{
	const struct process_info *info = &r->info;

	if (!r->has_info)
		return;
	fprintf(to->out, "\nProcess %d (%s)\n", r->pid, info->comm);
	print_who(info, to);
	if (info->is_kernel_thread || info->is_zombie)
		return;
	print_memory(info, to);
	print_confinement(info, to);
	if (!r->survey)
		return;
	print_tags_line(r->survey, to);
	print_stacks_line(r->survey, to);
}

/* Without a BPF program that can be loaded nothing else can be tried. */
static bool is_tried(const struct doctor_report *r, const struct feature_info *info)
{
	return r->features.bpf || info->offset == offsetof(struct kernel_features, btf) ||
	       (info->offset == offsetof(struct kernel_features, bpf) &&
		!r->missing_capabilities[0]);
}

static bool lacks_feature(const struct doctor_report *r, const struct feature_info *info)
{
	return is_tried(r, info) && !doctor_has_feature(r, info);
}

/* One line for a kernel that has everything, one more for each feature that it lacks. */
static void print_kernel_lines(const struct doctor_report *r, const struct page *to)
{
	struct line l = { 0 };
	const struct feature_info *infos;
	size_t cnt, missing_cnt = 0;

	infos = kernel_feature_infos(&cnt);
	for (size_t i = 0; i < cnt; i++)
		missing_cnt += lacks_feature(r, &infos[i]);
	add(&l, "Linux %s, %s, %ld CPU%s", r->uts.release, r->uts.machine, r->cpu_cnt,
	    r->cpu_cnt == 1 ? "" : "s");
	if (!r->features.bpf)
		add(&l, ", its features cannot be tried");
	else if (!missing_cnt)
		add(&l, ", all features");
	add(&l, missing_cnt ? "; it lacks" : "");
	print_field(to, "kernel", l.text);
	for (size_t i = 0; i < cnt; i++) {
		struct line one = { 0 };

		if (!lacks_feature(r, &infos[i]))
			continue;
		add(&one, "%s%s%s: %s", infos[i].name, infos[i].since[0] ? ", in Linux " : "",
		    infos[i].since, infos[i].without);
		print_field(to, "", one.text);
	}
}

static void print_machine(const struct doctor_report *r, const struct page *to)
{
	char emulated[UNITS_BUF], stepped[UNITS_BUF], ret[UNITS_BUF];
	const struct privileges *p = &r->privileges;
	struct line l = { 0 };

	fprintf(to->out, "\nMachine\n");
	print_kernel_lines(r, to);
	if (r->has_costs) {
		add(&l,
		    "%s on an emulated instruction, %s on a single-stepped one, %s more for a return "
		    "(measured now)",
		    format_duration((uint64_t)r->costs.emulated_ns, emulated, sizeof(emulated)),
		    format_duration((uint64_t)r->costs.stepped_ns, stepped, sizeof(stepped)),
		    format_duration((uint64_t)r->costs.return_ns, ret, sizeof(ret)));
		print_field(to, "a hit costs", l.text);
	}
	l = (struct line){ 0 };
	add(&l, "uid %u%s", p->uid,
	    r->missing_capabilities[0] ? ", some are missing: see below" :
	    p->in_user_namespace       ? ", in a user namespace, where they do not count" :
					 ", all that are needed");
	print_field(to, "privileges", l.text);
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
	print_wrapped(to, at, at, how);
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
	print_wrapped(to, 2, 4, line);
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
}

/* The whole table, so that nobody has to guess what "known" means. */
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
	print_wrapped(to, 4, 4, line);
	for (i = 0, len = 0, line[0] = '\0'; i < prefix_cnt; i++)
		if (prefixes[i][0])
			len += (size_t)snprintf(line + len, cap - len, "%s ", prefixes[i]);
	fprintf(to->out, "  and the same with these prefixes:\n    ");
	print_wrapped(to, 4, 4, line);
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

/* The key names are the process's, not the file's. */
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

/* What the other columns leave for a file's path. */
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
	const char *how = tag->problem[0] ? "left out" : modes[tag->tls_mode];
	char format[24], line[128] = "";
	int at;

	if (tag->problem[0])
		snprintf(line, sizeof(line), "see above");
	else if (tag->kind == HT_TAG_OTEL)
		describe_otel(r->survey, line, sizeof(line));
	else if (tag->kind == HT_TAG_SCOPE)
		describe_scopes(tag, line, sizeof(line));
	fprintf(to->out, "  ");
	print_path(to, file->path, path_columns(to));
	at = 2 + path_columns(to) +
	     fprintf(to->out, "  %-13s  %-*s", tag_format(tag, format), line[0] ? 12 : 0, how);
	print_wrapped(to, at, at, line);
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
			"nothing", "none");
}

/* What `heaptap serve` chooses from, for a library that so many followed processes use. */
static void print_ways(const struct doctor_report *r, const struct page *to)
{
	const size_t *cnt = doctor_way_process_cnts;
	char ns[UNITS_BUF];

	fprintf(to->out, "\n  ways to attach, ns a hit of one of  %7zu %7zu %7zu %7zu  processes\n",
		cnt[0], cnt[1], cnt[2], cnt[3]);
	for (enum plan_way way = PLAN_OWN; way <= PLAN_ALL; way++) {
		fprintf(to->out, "  %-5s  %-26s ", plan_way_name(way),
			way == PLAN_OWN	  ? "links of each process" :
			way == PLAN_EVENT ? "an event that they share" :
					    "one link; others pay too");
		for (size_t i = 0; i < DOCTOR_WAY_CNTS; i++) {
			double value = doctor_way_ns(r, way, cnt[i]);

			snprintf(ns, sizeof(ns), "%.0f", value);
			fprintf(to->out, " %7s", value > 0 ? ns : "-");
		}
		fputc('\n', to->out);
	}
}

static void print_kernel(const struct doctor_report *r, const struct page *to)
{
	const struct feature_info *infos;
	size_t cnt, i;

	fprintf(to->out, "\nKernel features\n  %-15s  %-4s  %-5s  %s\n", "feature", "here", "since",
		"if it is missing");
	infos = kernel_feature_infos(&cnt);
	for (i = 0; i < cnt; i++) {
		fprintf(to->out, "  %-15s  %-4s  %-5s  ", infos[i].name,
			!is_tried(r, &infos[i])		 ? "?" :
			doctor_has_feature(r, &infos[i]) ? "yes" :
							   "NO",
			infos[i].since);
		print_wrapped(to, 32, 32, infos[i].without);
	}
	if (r->has_mode)
		print_field(to, "attached by", attach_mode_name(r->mode));
	if (r->has_costs)
		print_ways(r, to);
}

/* These restrict only those who lack a capability. */
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

static void print_privileges(const struct doctor_report *r, const struct page *to)
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
		print_wrapped(to, 35, 35, infos[i].purpose);
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

void doctor_print_text(const struct doctor_report *r, FILE *out)
{
	const struct page page = { out, r->columns ? r->columns : COLUMNS_DEFAULT }, *to = &page;

	print_verdict(r, to);
	print_findings(r, to);
	print_process(r, to);
	print_machine(r, to);
	if (r->is_verbose && r->survey) {
		print_allocators(r, to);
		print_tags(r, to);
		print_stacks(r, to);
	}
	if (r->is_verbose)
		print_kernel(r, to);
	if (r->is_verbose || r->missing_capabilities[0])
		print_privileges(r, to);
	if (!r->is_verbose)
		fprintf(out, "\n-v shows every %skernel feature and privilege.\n",
			r->survey ? "probed function, mapped file, " : "");
}
