/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_text.c - the doctor's report for people: what can be recorded; obstacles and losses, and what to do
 * about them; then the facts in a few lines. Fits 80 columns as far as paths allow. cmd/doctor_verbose.c has what
 * -v adds.
 */
#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "base/units.h"
#include "cmd/doctor_page.h"
#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "tap/tap_code.h"

#define COLUMNS_DEFAULT 100
#define NAMED_CNT 3 /* items named of a list */

/* A line of a field's text, built in parts; text that does not fit is cut. */
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

/* Write what goes before the nth item: "a, b, c and 4 more". False: the item is not named. */
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

/* Print what a recording would have, and its cost. */
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
		if (file->alloc && pair_ns && cost_cnt < NAMED_CNT)
			add(&cost, "%sabout %s (%s)", cost_cnt++ ? ", " : "",
			    format_duration((uint64_t)pair_ns, ns, sizeof(ns)),
			    file->alloc->family);
	}
	add(&what,
	    "what %s hands out once heaptap is attached. What it holds before that stays unknown; "
	    "'heaptap record -- COMMAND' sees everything",
	    names.text);
	page_field(to, "recorded", what.text);
	if (cost_cnt) {
		add(&cost, " for a malloc and its free that are not sampled");
		page_field(to, "cost", cost.text);
	}
	fprintf(to->out, "  %-13sheaptap record -p %d -d 30s\n", "command", r->pid);
}

static void print_advice(const char *advice, const struct page *to)
{
	fprintf(to->out, "%9s-> ", "");
	page_wrapped(to, 12, 12, advice);
}

static void print_verdict(const struct doctor_report *r, const struct page *to)
{
	uint32_t limit_cnt = doctor_cnt(r, DOCTOR_LIMIT);
	const char *on = r->has_process ? "this process" : "on this machine";
	char line[640];

	if (r->verdict == DOCTOR_BLOCK) {
		snprintf(line, sizeof(line), "heaptap can record %s: no: %s", on,
			 r->findings.data[0].what);
		page_wrapped(to, 0, 2, line);
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
		page_field(to, "a process", "heaptap doctor -p PID tells of one");
}

/* Leave out the first obstacle that prevents everything: the verdict has told it. */
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
		page_wrapped(to, 9, 9, f->what);
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
		page_field(to, "executable", info->exe);
	add(&l, "uid %u, %u thread%s, ", info->uid, info->thread_cnt,
	    info->thread_cnt == 1 ? "" : "s");
	if (info->is_main_thread_gone)
		add(&l, "its main thread has ended, others live");
	else
		add(&l, "%s", state_name(info->state));
	add(&l, "%s", info->is_32bit ? ", 32-bit" : "");
	page_field(to, "runs as", l.text);
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
	page_field(to, "memory", l.text);
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
	page_field(to, "confinement",
		   l.len ? l.text : "none (no container, no own pid namespace, no seccomp)");
}

static void print_sampler_line(const struct survey *s, const struct page *to)
{
	struct line l = { 0 };
	const struct survey_file *file;
	uint32_t cnt = 0, nth = 0;

	vec_each(&s->files, file)
		cnt += file->sampler != NULL;
	if (!cnt)
		return;
	vec_each(&s->files, file)
		if (file->sampler && add_separator(&l, nth++, cnt))
			add(&l, "%s in %s: %s", file->sampler->provider, file->path,
			    file->sampler->problem[0] ?
				    file->sampler->problem :
			    file->sampler->is_whole ?
				    "read instead of its allocator when it is on" :
				    "read with --source usdt");
	page_field(to, "samplers", l.text);
}

/* Can its allocators be tapped? Objections of the process itself show only in the attempt. */
static void print_tap_line(const struct survey *s, const struct page *to)
{
	struct err why;
	const struct survey_file *file;
	uint32_t cnt = 0, problem_cnt = 0, nth = 0;
	struct line l = { 0 };

	vec_each(&s->files, file) {
		cnt += file->alloc != NULL;
		problem_cnt += file->alloc && tap_code_check(file->alloc, &why);
	}
	if (!cnt)
		return;
	if (!problem_cnt)
		add(&l, "possible (heaptap record --tap)");
	vec_each(&s->files, file) {
		char missed[160] = "";

		if (file->alloc && !problem_cnt)
			tap_code_missed(file->alloc, missed, sizeof(missed));
		if (missed[0])
			add(&l, "; not sampled is what these allocate: %s", missed);
	}
	vec_each(&s->files, file)
		if (file->alloc && tap_code_check(file->alloc, &why) &&
		    add_separator(&l, nth++, problem_cnt))
			add(&l, "not possible: %s (%s)", why.text, file->path);
	page_field(to, "tap", l.text);
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
				add(&l, "%s in %s%s", page_tag_format(tag, format), file->path,
				    tag->problem.text[0] ? " (left out)" : "");
	page_field(to, "tags",
		   cnt ? l.text : "none: include heaptap/scope.h to see who the memory is for");
}

/* Print how many of the readable files with code have what a stack needs. */
static void print_stacks_line(const struct survey *s, const struct page *to)
{
	uint32_t cnt = 0, row_cnt = 0, name_cnt = 0, line_cnt = 0;
	const struct survey_file *file;
	struct line l = { 0 };

	vec_each(&s->files, file) {
		if (file->open_err || !file->has_code || !strcmp(file->path, PAGE_VDSO))
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
	page_field(to, "stacks", l.text);
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
	print_sampler_line(r->survey, to);
	print_tap_line(r->survey, to);
	print_tags_line(r->survey, to);
	print_stacks_line(r->survey, to);
}

static bool lacks_feature(const struct doctor_report *r, const struct feature_info *info)
{
	return doctor_tries_feature(r, info) && !doctor_has_feature(r, info);
}

/* Print one line for a kernel that has everything, and one more for each missing feature. */
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
	page_field(to, "kernel", l.text);
	for (size_t i = 0; i < cnt; i++) {
		struct line one = { 0 };

		if (!lacks_feature(r, &infos[i]))
			continue;
		add(&one, "%s%s%s: %s", infos[i].name, infos[i].since[0] ? ", in Linux " : "",
		    infos[i].since, infos[i].without);
		page_field(to, "", one.text);
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
		page_field(to, "a hit costs", l.text);
	}
	l = (struct line){ 0 };
	add(&l, "uid %u%s", p->uid,
	    r->missing_capabilities[0] ? ", some are missing: see below" :
	    p->in_user_namespace       ? ", in a user namespace, where they do not count" :
					 ", all that are needed");
	page_field(to, "privileges", l.text);
}
void doctor_print_text(const struct doctor_report *r, FILE *out)
{
	const struct page page = { out, r->columns ? r->columns : COLUMNS_DEFAULT }, *to = &page;

	print_verdict(r, to);
	print_findings(r, to);
	print_process(r, to);
	print_machine(r, to);
	if (r->is_verbose && r->survey)
		page_survey(r, to);
	if (r->is_verbose)
		page_kernel(r, to);
	if (r->is_verbose || r->missing_capabilities[0])
		page_privileges(r, to);
	if (!r->is_verbose)
		fprintf(out, "\n-v shows every %skernel feature and privilege.\n",
			r->survey ? "probed function, mapped file, " : "");
}
