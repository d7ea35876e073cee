/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_text.c - the doctor's report for people: what can be recorded; obstacles and losses, and what to do
 * about them; the facts in a few lines; then tables, of which only rows that lack something are shown without -v.
 */
#include <linux/capability.h>

#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "base/err.h"
#include "base/printable.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/doctor.h"
#include "tap/tap_code.h"

/*
 * The sections of the text. Columns are as wide as their cells; of a name in the
 * first one that does not fit its end is shown; the last one is wrapped. Any cell may have names of any bytes.
 */

#define CELLS_MAX 6
#define GAP 2 /* columns between cells, and before the first */
#define FIRST_MIN 10 /* columns of a first cell that is cut */
#define LAST_MIN 13 /* columns that are kept for the last cell, if it is as wide */

/* A line of the text. A section is a title, perhaps the heads of its columns, and its rows, their cells separated by
 * tabs: two, if there are no heads. More can be written to the stream until the next line is put. */
enum doctor_line {
	DOCTOR_TITLE = 1,
	DOCTOR_HEAD,
	DOCTOR_FACT,
	DOCTOR_DETAIL, /* shown with -v only */
};

struct row {
	enum doctor_line line;
	char *cell[CELLS_MAX];
};

struct section {
	char *title; /* NULL: none yet */
	size_t cell_cnt;
	VEC(struct row) rows;
};

/* Each line of the stream is its kind, its text, and a 0. */
__attribute__((format(printf, 3, 4))) static void doctor_put(FILE *page, enum doctor_line line,
							     const char *fmt, ...)
{
	va_list args;

	if (ftell(page))
		fputc('\0', page);
	fputc((int)line, page);
	va_start(args, fmt);
	vfprintf(page, fmt, args);
	va_end(args);
}

static void split(char *text, size_t cnt, struct row *ret)
{
	for (size_t i = 0; i < CELLS_MAX; i++) {
		char *end = i + 1 < cnt ? strchr(text, '\t') : NULL;

		ret->cell[i] = text;
		text = end ? end + 1 : text + strlen(text);
		if (end)
			*end = '\0';
		make_printable(ret->cell[i]);
	}
}

/* Write words from column `at` on, further lines indented by `indent`. */
static void write_wrapped(FILE *out, int columns, int at, int indent, const char *text)
{
	const char *between = "";

	while (*(text += strspn(text, " "))) {
		int len = (int)word_with_unit(text);

		if (*between && at + 1 + len > columns) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
			between = "";
		}
		at += fprintf(out, "%s%.*s", between, len, text);
		text += len;
		between = " ";
	}
	fputc('\n', out);
}

static void write_row(const struct row *row, size_t last, const int *width, int columns, FILE *out)
{
	int at = GAP;

	while (last && !row->cell[last][0])
		last--;
	fprintf(out, "%*s", GAP, "");
	for (size_t i = 0; i < last; i++) {
		int len = (int)strlen(row->cell[i]);

		if (len > width[i])
			fprintf(out, "...%s%*s", row->cell[i] + len - width[i] + 3, GAP, "");
		else
			fprintf(out, "%-*s", width[i] + GAP, row->cell[i]);
		at += width[i] + GAP;
	}
	write_wrapped(out, columns, at, at, row->cell[last]);
}

/* The first column has what the others leave. */
static void set_widths(const struct section *s, int columns, int width[CELLS_MAX])
{
	const struct row *row;
	int left = columns - GAP;

	vec_each(&s->rows, row)
		for (size_t i = 0; i < s->cell_cnt; i++)
			if ((int)strlen(row->cell[i]) > width[i])
				width[i] = (int)strlen(row->cell[i]);
	if (width[s->cell_cnt - 1] > LAST_MIN)
		width[s->cell_cnt - 1] = LAST_MIN;
	for (size_t i = 1; i < s->cell_cnt; i++)
		left -= width[i] + GAP;
	if (width[0] > left)
		width[0] = left > FIRST_MIN ? left : FIRST_MIN;
}

/* A section of which nothing is shown has no title either; the first one is the verdict. */
static void write_section(struct section *s, bool is_first, int columns, FILE *out)
{
	int width[CELLS_MAX] = { 0 };
	const struct row *row;

	if (is_first || (s->rows.cnt && s->rows.data[s->rows.cnt - 1].line != DOCTOR_HEAD)) {
		if (!is_first)
			fputc('\n', out);
		make_printable(s->title);
		write_wrapped(out, columns, 0, GAP, s->title);
		set_widths(s, columns, width);
		vec_each(&s->rows, row)
			write_row(row, s->cell_cnt - 1, width, columns, out);
	}
	s->rows.cnt = 0;
	s->cell_cnt = 2;
}

/* Write what was put, of which text is changed: 0 or -ENOMEM. */
static int doctor_write_page(char *text, size_t bytes, int columns, bool is_verbose, FILE *out)
{
	struct section s = { .cell_cnt = 2 };
	bool is_first = true;
	int err = 0;

	for (char *at = text, *next; at < text + bytes && !err; at = next) {
		struct row row = { .line = (enum doctor_line) * at++ };

		next = at + strlen(at) + 1;
		if (row.line == DOCTOR_TITLE) {
			if (s.title)
				write_section(&s, is_first, columns, out);
			is_first = !s.title;
			s.title = at;
			continue;
		}
		if (row.line == DOCTOR_HEAD) {
			s.cell_cnt = 1;
			for (const char *c = at; (c = strchr(c, '\t')); c++)
				s.cell_cnt++;
		}
		split(at, s.cell_cnt, &row);
		if (row.line != DOCTOR_DETAIL || is_verbose)
			err = vec_push(&s.rows, row);
	}
	if (s.title)
		write_section(&s, is_first, columns, out);
	vec_release(&s.rows);
	return err;
}

#define COLUMNS_DEFAULT 100
#define NAMED_CNT 3 /* items named of a list */
#define VDSO "[vdso]"

#define put_title(page, ...) doctor_put(page, DOCTOR_TITLE, __VA_ARGS__)
#define put_head(page, ...) doctor_put(page, DOCTOR_HEAD, __VA_ARGS__)
#define put_fact(page, ...) doctor_put(page, DOCTOR_FACT, __VA_ARGS__)
#define put_detail(page, ...) doctor_put(page, DOCTOR_DETAIL, __VA_ARGS__)

static const char *plural(size_t cnt)
{
	return cnt == 1 ? "" : "s";
}

static char *duration(double ns, char buf[UNITS_BUF])
{
	return format_duration((uint64_t)ns, buf, UNITS_BUF);
}

static char *size(double bytes, char buf[UNITS_BUF])
{
	return format_bytes(bytes, buf, UNITS_BUF);
}

/* Write what goes before the nth item of a list. False: the item is not named. */
static bool put_separator(FILE *page, uint32_t nth)
{
	fputs(nth && nth < NAMED_CNT ? ", " : "", page);
	return nth < NAMED_CNT;
}

/* "a, b, c" and 4 more */
static void put_rest(FILE *page, uint32_t cnt)
{
	if (cnt > NAMED_CNT)
		fprintf(page, " and %u more", cnt - NAMED_CNT);
}

/* What a recording would have, and its cost. */
static void put_prospect(const struct doctor_report *r, FILE *page)
{
	const struct survey_file *file;
	char ns[UNITS_BUF];
	uint32_t nth = 0, cost_cnt = 0;

	put_fact(page, "recorded\tallocations of ");
	vec_each(&r->survey->files, file)
		if (file->alloc && put_separator(page, nth++))
			fprintf(page, "%s (%s)", file->alloc->family, file->path);
	put_rest(page, nth);
	fprintf(page,
		" from the attach on; earlier ones are not seen ('heaptap record -- COMMAND' sees "
		"all)");
	vec_each(&r->survey->files, file) {
		double pair_ns = file->alloc ? doctor_pair_ns(r, file->alloc) : 0;

		if (!file->alloc || !pair_ns)
			continue;
		if (!cost_cnt)
			put_fact(page, "cost\t");
		if (put_separator(page, cost_cnt++))
			fprintf(page, "about %s (%s)", duration(pair_ns, ns), file->alloc->family);
	}
	put_rest(page, cost_cnt);
	if (cost_cnt)
		fprintf(page, " for a malloc and a free that are not sampled");
	put_fact(page, "command\theaptap record -p %d -d 30s", (int)r->pid);
}

uint32_t doctor_cnt(const struct doctor_report *r, enum doctor_level level)
{
	const struct doctor_finding *f;
	uint32_t cnt = 0;

	vec_each(&r->findings, f)
		cnt += f->level == level;
	return cnt;
}

static void put_verdict(const struct doctor_report *r, FILE *page)
{
	uint32_t limit_cnt = doctor_cnt(r, DOCTOR_LIMIT);
	const char *what = r->pid ? "this process" : "on this machine";

	if (r->verdict == DOCTOR_BLOCK) {
		put_title(page, "Cannot record %s: ", what);
		fputs(r->findings.data[0].what, page);
		if (r->findings.data[0].advice[0])
			put_fact(page, "\t-> %s", r->findings.data[0].advice);
		return;
	}
	put_title(page, "heaptap can record %s: ", what);
	if (limit_cnt)
		fprintf(page, "with limits (%u)", limit_cnt);
	else
		fprintf(page, "yes");
	if (r->survey)
		put_prospect(r, page);
	else
		put_fact(page, "a process\theaptap doctor -p PID");
}

/* Leave out the first obstacle that prevents everything: the verdict has told it. */
static void put_findings(const struct doctor_report *r, FILE *page)
{
	static const char *const names[] = {
		[DOCTOR_NOTE] = "note",
		[DOCTOR_LIMIT] = "limit",
		[DOCTOR_BLOCK] = "blocks",
	};

	put_title(page, r->verdict == DOCTOR_NOTE  ? "Good to know" :
			r->verdict == DOCTOR_LIMIT ? "What would be missing, and what to do" :
						     "Besides");
	for (size_t i = r->verdict == DOCTOR_BLOCK; i < r->findings.cnt; i++) {
		const struct doctor_finding *f = &r->findings.data[i];

		put_fact(page, "%s\t%s", names[f->level], f->what);
		if (f->advice[0])
			put_fact(page, "\t-> %s", f->advice);
	}
}

static const char *state_name(const struct process_info *info)
{
	static const struct {
		char state;
		const char *name;
	} names[] = {
		{ 'R', "running" },  { 'S', "sleeping" },
		{ 'I', "sleeping" }, { 'D', "waiting for the disk" },
		{ 'T', "stopped" },  { 't', "stopped by a debugger" },
		{ 'Z', "ended" },
	};

	if (info->is_main_thread_gone)
		return "its main thread has ended, others run";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].state == info->state)
			return names[i].name;
	return "in an unknown state";
}

static void put_memory(const struct process_info *info, FILE *page)
{
	char bytes[UNITS_BUF];

	put_fact(page, "memory\t%s resident", size((double)info->rss_bytes, bytes));
	if (info->pss_bytes)
		fprintf(page, ", PSS %s", size((double)info->pss_bytes, bytes));
	if (info->address_limit_bytes)
		fprintf(page, ", address space limited to %s",
			size((double)info->address_limit_bytes, bytes));
}

static void put_confinement(const struct process_info *info, FILE *page)
{
	static const char *const modes[] = { "", "seccomp (strict)", "seccomp filter" };
	const char *between = "";

	put_fact(page, "confinement\t");
	if (info->container_id[0]) {
		fprintf(page, "container %s", info->container_id);
		between = ", ";
	}
	if (info->in_pid_namespace) {
		fprintf(page, "%sown pid namespace", between);
		between = ", ";
	}
	if (info->seccomp > 0 && info->seccomp <= 2)
		fprintf(page, "%s%s", between, modes[info->seccomp]);
	else if (!between[0])
		fprintf(page, "none (no container, no own pid namespace, no seccomp)");
}

static void put_samplers(const struct survey *s, FILE *page)
{
	const struct survey_file *file;

	vec_each(&s->files, file)
		if (file->sampler)
			put_fact(page, "sampler\t%s in %s: %s", file->sampler->provider, file->path,
				 file->sampler->problem[0] ?
					 file->sampler->problem :
				 file->sampler->is_whole ?
					 "read instead of the allocator when it reports samples" :
					 "read with --source usdt");
}

/* Can its allocators be tapped? Objections of the process itself show only in the attempt. */
static void put_tap(const struct survey *s, FILE *page)
{
	const struct survey_file *file;
	uint32_t cnt = 0, problem_cnt = 0, nth = 0;
	struct err why;

	vec_each(&s->files, file) {
		cnt += file->alloc != NULL;
		problem_cnt += file->alloc && tap_code_check(file->alloc, &why);
	}
	if (!cnt)
		return;
	put_fact(page, "tap\t%s", problem_cnt ? "" : "possible (heaptap record --tap)");
	vec_each(&s->files, file) {
		char missed[160] = "";

		if (file->alloc && !problem_cnt)
			tap_code_missed(file->alloc, missed, sizeof(missed));
		if (missed[0])
			fprintf(page, "; calls to these are not sampled: %s", missed);
		if (file->alloc && tap_code_check(file->alloc, &why) && put_separator(page, nth++))
			fprintf(page, "not possible: %s (%s)", why.text, file->path);
	}
	put_rest(page, nth);
}

/* How many of the readable files with code have what a stack needs. */
static void put_stacks_line(const struct survey *s, FILE *page)
{
	uint32_t cnt = 0, row_cnt = 0, name_cnt = 0, line_cnt = 0;
	const struct survey_file *file;

	vec_each(&s->files, file) {
		if (file->open_err || !file->has_code || !strcmp(file->path, VDSO))
			continue;
		cnt++;
		row_cnt += file->row_cnt > 0;
		name_cnt += file->has_symtab || file->has_mini_symtab;
		line_cnt += file->debug != SURVEY_DEBUG_NONE;
	}
	put_fact(page,
		 "stacks\t%u file%s with code: %u with unwind tables, %u with all function names, "
		 "%u with source lines",
		 cnt, plural(cnt), row_cnt, name_cnt, line_cnt);
}

static void put_process(const struct doctor_report *r, FILE *page)
{
	const struct process_info *info = &r->info;

	put_title(page, "Process %d (%s)", (int)r->pid, info->comm);
	if (info->exe[0])
		put_fact(page, "executable\t%s", info->exe);
	put_fact(page, "runs as\tuid %u, %u thread%s, %s%s", info->uid, info->thread_cnt,
		 plural(info->thread_cnt), state_name(info), info->is_32bit ? ", 32-bit" : "");
	if (info->is_kernel_thread || info->is_zombie)
		return;
	put_memory(info, page);
	put_confinement(info, page);
	if (!r->survey)
		return;
	put_samplers(r->survey, page);
	put_tap(r->survey, page);
	put_stacks_line(r->survey, page);
}

/* When no BPF program can be loaded, nothing else can be tried. */
static bool lacks_feature(const struct doctor_report *r, const struct feature_info *info)
{
	const bool is_tried = r->features.bpf ||
			      info->offset == offsetof(struct kernel_features, btf) ||
			      (info->offset == offsetof(struct kernel_features, bpf) &&
			       !r->missing_capabilities[0]);

	return is_tried && !doctor_has_feature(r, info);
}

static void put_machine(const struct doctor_report *r, FILE *page)
{
	char emulated[UNITS_BUF], stepped[UNITS_BUF], ret[UNITS_BUF];
	const struct privileges *p = &r->privileges;
	const struct feature_info *infos;
	size_t cnt, missing_cnt = 0;

	infos = kernel_feature_infos(&cnt);
	for (size_t i = 0; i < cnt; i++)
		missing_cnt += lacks_feature(r, &infos[i]);
	put_title(page, "Machine");
	put_fact(page, "kernel\tLinux %s, %s, %ld CPU%s", r->uts.release, r->uts.machine,
		 r->cpu_cnt, plural((size_t)r->cpu_cnt));
	if (!r->features.bpf)
		fprintf(page, ", its features cannot be tested");
	else if (missing_cnt)
		fprintf(page, ", %zu feature%s missing: see below", missing_cnt,
			plural(missing_cnt));
	else
		fprintf(page, ", all features");
	if (r->has_costs)
		put_fact(page,
			 "a hit costs\t%s on an emulated instruction, %s on a single-stepped one, "
			 "%s more for a return (measured now)",
			 duration(r->costs.emulated_ns, emulated),
			 duration(r->costs.stepped_ns, stepped), duration(r->costs.return_ns, ret));
	if (r->has_mode)
		put_detail(page, "attached by\t%s", attach_mode_name(r->mode));
	put_fact(page, "privileges\tuid %u%s", p->uid,
		 r->missing_capabilities[0] ? ", some are missing: see below" :
		 p->in_user_namespace	    ? ", in a user namespace, where they do not count" :
					      ", all that are needed");
}

/* Where the probe is and what a call costs; where a tap would be, or why there is none. */
static void put_site(const struct doctor_report *r, const struct alloc_site *site, bool is_probed,
		     FILE *page)
{
	const struct placement *p = &site->placement;
	const struct tap_spot *tap = &site->tap;
	const enum tap_use use = tap_use_of(site, NULL);
	double ns = doctor_site_ns(r, site);
	char cost[UNITS_BUF] = "?";

	put_detail(page, "%.22s\t+%llu\t%.20s\t%s\t", site->symbol,
		   (unsigned long long)(p->vaddr - site->fn_vaddr), p->insn,
		   ns ? duration(ns, cost) : cost);
	if (tap->vaddr)
		fprintf(page, "%+lld", (long long)(tap->vaddr - site->fn_vaddr));
	fprintf(page, "\t%s%s%s", p->is_emulated ? "emulated" : "single-stepped: ",
		!p->is_emulated ? p->why :
		p->skips_null	? ", past NULL check" :
				  "",
		is_probed ? " (probed)" : "");
	if (use == TAP_USE_NOTHING)
		fprintf(page, "; a tap does not sample its blocks: %s",
			tap->vaddr ? "it may throw, and there is no nothrow variant" : tap->why);
	else if (!tap->vaddr)
		fprintf(page, "; no tap: %s%s", tap->why,
			use == TAP_USE_INSIDE ? " (the function that it calls is tapped)" : "");
	else if (use == TAP_USE_FREES)
		fprintf(page, "; a tap does not sample it: it may throw");
	if (tap->is_watched)
		fprintf(page, "; another tool's breakpoint there would hide calls from the tap");
}

/* The whole table, so that nobody has to guess what "known" means. */
static void put_looked_for(FILE *page)
{
	size_t row_cnt, prefix_cnt;
	const char *const *prefixes = alloc_prefixes(&prefix_cnt);
	const struct alloc_row *rows = alloc_table(&row_cnt);

	put_title(page, "Allocators: none found");
	put_detail(page, "looked for\t");
	for (size_t i = 0; i < row_cnt; i++)
		fprintf(page, "%s ", rows[i].name);
	put_detail(page, "with prefix\t");
	for (size_t i = 0; i < prefix_cnt; i++)
		fprintf(page, "%s ", prefixes[i]);
}

static void put_allocators(const struct doctor_report *r, FILE *page)
{
	const struct survey_file *file;
	bool found = false;

	vec_each(&r->survey->files, file) {
		if (!file->alloc)
			continue;
		found = true;
		put_title(page, "Allocator %s in %s%s", file->alloc->family, file->path,
			  file->is_deleted ? " (deleted)" : "");
		put_head(page, "function\tat\tinstruction\ta call\ttap\thow");
		for (size_t i = 0; i < file->alloc->sites.cnt; i++)
			put_site(r, &file->alloc->sites.data[i],
				 file->is_probed && file->is_probed[i], page);
	}
	if (!found)
		put_looked_for(page);
}

/* "12 nodes, 1 overflow, 3 truncations"; the key names belong to the process, not to the file. */
static void put_tag_says(const struct survey *s, const struct survey_tag *tag, FILE *page)
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

	if (tag->problem.text[0])
		fprintf(page, "see above");
	else if (tag->kind == HT_TAG_OTEL && s->otel_keys_err)
		fputs(s->otel_keys_err == -EPROTO ? "key names not readable" :
						    "no key names published",
		      page);
	else if (tag->kind == HT_TAG_OTEL)
		fprintf(page, "%zu key name%s", s->otel_key_cnt, plural(s->otel_key_cnt));
	if (!tag->has_descriptor)
		return;
	fprintf(page, "%s%u node%s", doctor_is_paused(tag) ? "paused, " : "", node_cnt,
		plural(node_cnt));
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (counters[i].cnt)
			fprintf(page, ", %u %s%s", counters[i].cnt, counters[i].what,
				plural(counters[i].cnt));
}

static void put_tag(const struct survey *s, const struct survey_file *file,
		    const struct survey_tag *tag, FILE *page)
{
	static const char *const modes[] = {
		[HT_TLS_NOT_READY] = "not ready",
		[HT_TLS_STATIC] = "static TLS",
		[HT_TLS_DTV] = "DTV",
		[HT_TLS_REGISTRY] = "registry",
	};

	put_fact(page, "%s\t%s", file->path,
		 tag->kind == HT_TAG_OTEL   ? "OpenTelemetry" :
		 tag->kind == HT_TAG_CUSTOM ? "custom labels" :
					      "scope.h");
	if (tag->has_descriptor)
		fprintf(page, " %u.%u", SCOPE_DESCRIPTOR_MAJOR, tag->descriptor.minor);
	fprintf(page, "\t%s\t", tag->problem.text[0] ? "left out" : modes[tag->tls_mode]);
	put_tag_says(s, tag, page);
}

static void put_tags(const struct survey *s, FILE *page)
{
	const struct survey_file *file;
	const struct survey_tag *tag;
	bool found = false;

	vec_each(&s->files, file)
		found |= file->tags.all.cnt > 0;
	if (!found)
		put_fact(page, "tags\tnone: include heaptap/scope.h to see what the memory is "
			       "for");
	put_title(page, "Tags");
	put_head(page, "file\tformat\tfound by\tsays");
	vec_each(&s->files, file)
		vec_each(&file->tags.all, tag)
			put_tag(s, file, tag, page);
}

static void put_stacks(const struct survey *s, FILE *page)
{
	static const char *const lines[] = {
		[SURVEY_DEBUG_NONE] = "no",
		[SURVEY_DEBUG_OWN] = "in the file",
		[SURVEY_DEBUG_SEPARATE] = "debug file",
	};
	const struct survey_file *file;
	char text[UNITS_BUF], rows[UNITS_BUF + 8];

	put_title(page, "Stacks");
	put_head(page, "file\ttext\tunwound by\tnames\tlines");
	vec_each(&s->files, file) {
		if (file->open_err) {
			put_detail(page, "%s\tcannot be read: %s", file->path,
				   strerror(-file->open_err));
			continue;
		}
		snprintf(rows, sizeof(rows), "%s rows",
			 format_count(file->row_cnt, text, sizeof(text)));
		put_detail(page, "%s\t%s\t%s\t%s\t%s", file->path,
			   size((double)file->exec_bytes, text),
			   file->row_cnt ? rows : "frame pointers",
			   file->has_symtab || file->has_mini_symtab ? "all" :
			   file->symbol_cnt			     ? "exported" :
								       "none",
			   lines[file->debug]);
	}
	if (s->jit_area_cnt)
		put_detail(page, "(no file: JIT)\t%s\tframe pointers\t%s\tno",
			   size((double)s->jit_bytes, text),
			   s->has_jit_map  ? "perf map" :
			   s->has_jit_dump ? "jitdump" :
					     "none");
}

static void put_features(const struct doctor_report *r, FILE *page)
{
	const struct feature_info *infos;
	size_t cnt;

	put_title(page, "Kernel features");
	put_head(page, "feature\there\tsince\twithout it");
	infos = kernel_feature_infos(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		bool is_missing = lacks_feature(r, &infos[i]);

		doctor_put(page, is_missing ? DOCTOR_FACT : DOCTOR_DETAIL, "%s\t%s\t%s\t%s",
			   infos[i].name,
			   is_missing			    ? "NO" :
			   doctor_has_feature(r, &infos[i]) ? "yes" :
							      "?",
			   infos[i].since, infos[i].without);
	}
}

/* The choices of `heaptap serve` for a library that several followed processes use. */
static void put_sharings(const struct doctor_report *r, FILE *page)
{
	static const char *const what[] = {
		[SHARING_OWN] = "links of each process",
		[SHARING_EVENT] = "one event that they share",
		[SHARING_ALL] = "one link; others pay too",
	};

	put_title(page, "Ways to attach: ns per hit, by number of processes");
	put_head(page, "way\twhat");
	for (size_t i = 0; i < DOCTOR_SHARING_CNTS; i++)
		fprintf(page, "\t%zu", doctor_sharing_process_cnts[i]);
	for (enum sharing way = SHARING_OWN; way <= SHARING_ALL; way++) {
		put_detail(page, "%s\t%s", sharing_name(way), what[way]);
		for (size_t i = 0; i < DOCTOR_SHARING_CNTS; i++) {
			double ns = doctor_sharing_ns(r, way, doctor_sharing_process_cnts[i]);

			fprintf(page, ns > 0 ? "\t%.0f" : "\t-", ns);
		}
	}
}

static void put_privileges(const struct doctor_report *r, FILE *page)
{
	const struct privileges *p = &r->privileges;
	const bool wants_admin = p->perf_event_paranoid > PERF_EVENT_PARANOID_PERFMON;
	/* one restricts only processes without the capability */
	const struct {
		const char *name, *capability;
		int value, number;
	} sysctls[] = {
		{ "perf_event_paranoid", wants_admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON",
		  p->perf_event_paranoid, wants_admin ? CAP_SYS_ADMIN : CAP_PERFMON },
		{ "unprivileged_bpf_disabled", "CAP_BPF", p->unprivileged_bpf_disabled, CAP_BPF },
		{ "yama ptrace_scope", "CAP_SYS_PTRACE", p->ptrace_scope, CAP_SYS_PTRACE },
	};
	const struct capability_info *infos;
	size_t cnt, i;

	put_title(page, "Privileges of heaptap: uid %u%s", p->uid,
		  p->in_user_namespace ? ", in a user namespace (they do not count)" : "");
	put_head(page, "privilege\there\tpurpose");
	infos = capability_infos(&cnt);
	for (i = 0; i < cnt; i++) {
		bool has = privileges_have(p, infos[i].number);

		doctor_put(page, !has && r->missing_capabilities[0] ? DOCTOR_FACT : DOCTOR_DETAIL,
			   "%s\t%s\t%s", infos[i].name, has ? "yes" : "NO", infos[i].purpose);
	}
	put_detail(page, "kernel lockdown\t%s\t%s", p->lockdown[0] ? p->lockdown : "none",
		   p->lockdown[0] ? "" : "or securityfs is not mounted");
	for (i = 0; i < sizeof(sysctls) / sizeof(*sysctls); i++) {
		put_detail(page, "%s\t", sysctls[i].name);
		fprintf(page, sysctls[i].value == INT_MIN ? "none" : "%d", sysctls[i].value);
		fprintf(page, "\t%s %s",
			privileges_have(p, sysctls[i].number) ? "not needed with" :
								"matters without",
			sysctls[i].capability);
	}
	put_detail(page, "kptr_restrict\t%d\tnot needed: no kernel address is used",
		   p->kptr_restrict);
}

static void put_all(const struct doctor_report *r, FILE *page)
{
	put_verdict(r, page);
	put_findings(r, page);
	if (r->has_info)
		put_process(r, page);
	if (r->survey)
		put_tags(r->survey, page);
	put_machine(r, page);
	if (r->survey) {
		put_allocators(r, page);
		put_stacks(r->survey, page);
	}
	put_features(r, page);
	if (r->has_costs)
		put_sharings(r, page);
	put_privileges(r, page);
}

void doctor_print_text(const struct doctor_report *r, FILE *out)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *page = open_memstream(&text, &bytes);

	if (page)
		put_all(r, page);
	if (!page || fclose(page) ||
	    doctor_write_page(text, bytes, r->columns ? r->columns : COLUMNS_DEFAULT, r->is_verbose,
			      out))
		fprintf(out, "Incomplete: out of memory.\n");
	free(text);
	if (!r->is_verbose)
		fprintf(out, "\n-v shows every %skernel feature and privilege.\n",
			r->survey ? "probed function, mapped file, " : "");
}
