/* SPDX-License-Identifier: MIT */
/*
 * cmd_doctor_text.c - the doctor's report for people: the verdict in one line, what is in the way
 * and what to do about it, then the facts. Fits 100 columns as far as paths allow.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd_doctor.h"
#include "target/allocators.h"

#define COLUMNS 100

/* Words of text from column `at` on, further lines indented by `indent`. */
static void print_wrapped(FILE *out, int at, int indent, const char *text)
{
	bool is_first = true;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (len && !is_first && at + 1 + len > COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
			is_first = true;
		}
		if (len) {
			fprintf(out, "%s%.*s", is_first ? "" : " ", len, text);
			at += len + !is_first;
			is_first = false;
		}
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* "  name         text", wrapped. */
static void print_field(FILE *out, const char *name, const char *text)
{
	fprintf(out, "  %-13s", name);
	print_wrapped(out, 15, 15, text);
}

/* A path in exactly `width` columns; of a long one the end is shown. */
static void print_path(FILE *out, const char *path, int width)
{
	int len = (int)strlen(path);

	if (len > width)
		fprintf(out, "...%s", path + len - (width - 3));
	else
		fprintf(out, "%-*s", width, path);
}

static void print_verdict(const struct doctor_report *r, FILE *out)
{
	uint32_t limit_cnt = doctor_cnt(r, DOCTOR_LIMIT);
	const char *on = r->has_process ? "this process" : "on this machine";

	if (r->verdict == DOCTOR_BLOCK) {
		char line[640];

		snprintf(line, sizeof(line), "heaptap can record %s: no: %s", on,
			 r->findings.data[0].what);
		print_wrapped(out, 0, 2, line);
	} else if (limit_cnt) {
		fprintf(out, "heaptap can record %s: with limits (%u)\n", on, limit_cnt);
	} else {
		fprintf(out, "heaptap can record %s: yes\n", on);
	}
}

static void print_findings(const struct doctor_report *r, FILE *out)
{
	static const char *const names[] = {
		[DOCTOR_NOTE] = "note",
		[DOCTOR_LIMIT] = "limit",
		[DOCTOR_BLOCK] = "blocks",
	};
	const struct doctor_finding *f;

	/* the verdict has said the first already, if it is what prevents everything */
	if (!r->findings.cnt ||
	    (r->findings.cnt == 1 && r->verdict == DOCTOR_BLOCK && !r->findings.data[0].advice[0]))
		return;
	fprintf(out, "\n%s\n",
		r->verdict == DOCTOR_NOTE ? "Good to know" :
					    "What would be missing, and what to do");
	vec_each(&r->findings, f) {
		fprintf(out, "  %-7s", names[f->level]);
		print_wrapped(out, 9, 9, f->what);
		if (f->advice[0]) {
			fprintf(out, "%9s-> ", "");
			print_wrapped(out, 12, 12, f->advice);
		}
	}
}

static void print_memory(const struct doctor_report *r, FILE *out)
{
	const struct process_info *info = &r->info;
	char rss[UNITS_BUF], other[UNITS_BUF], line[256];
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "%s resident",
			       format_bytes((double)info->rss_bytes, rss, sizeof(rss)));
	if (info->pss_bytes)
		len += (size_t)snprintf(line + len, sizeof(line) - len, ", %s of it its own share",
					format_bytes((double)info->pss_bytes, other,
						     sizeof(other)));
	if (info->address_limit_bytes)
		snprintf(line + len, sizeof(line) - len, ", address space limited to %s",
			 format_bytes((double)info->address_limit_bytes, other, sizeof(other)));
	print_field(out, "memory", line);
	if (r->process_err)
		return;
	print_field(out, "",
		    "What it allocated before heaptap attaches stays unknown: a profile counts "
		    "from then on (\"since attach\"). To see everything, start it with 'heaptap "
		    "record -- CMD'.");
}

static void print_confinement(const struct process_info *info, FILE *out)
{
	static const char *const modes[] = { "", "seccomp (strict)", "seccomp filter" };
	char line[256] = "";
	size_t len = 0;

	if (info->container_id[0])
		len = (size_t)snprintf(line, sizeof(line), "container %s", info->container_id);
	if (info->in_pid_namespace)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%sown pid namespace",
					len ? ", " : "");
	if (info->seccomp > 0 && info->seccomp <= 2)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s", len ? ", " : "",
					modes[info->seccomp]);
	print_field(out, "confinement",
		    len ? line : "none (no container, no own pid namespace, no seccomp)");
}

static void print_process(const struct doctor_report *r, FILE *out)
{
	const struct process_info *info = &r->info;
	char line[256];

	if (!r->has_info)
		return;
	fprintf(out, "\nProcess %d (%s)\n", r->pid, info->comm);
	if (info->exe[0])
		print_field(out, "executable", info->exe);
	snprintf(line, sizeof(line), "uid %u, %u thread%s, state %c%s%s", info->uid,
		 info->thread_cnt, info->thread_cnt == 1 ? "" : "s", info->state,
		 info->is_main_thread_gone ? " (its main thread has ended, others live)" : "",
		 info->is_32bit ? ", 32-bit" : "");
	print_field(out, "runs as", line);
	if (info->is_kernel_thread || info->is_zombie)
		return;
	print_memory(r, out);
	print_confinement(info, out);
}

static void print_site(const struct doctor_report *r, const struct alloc_site *site, bool is_probed,
		       FILE *out)
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
	at = fprintf(out, "    %-22.22s +%-4llu %-20.20s %8s  ", site->symbol,
		     (unsigned long long)(p->vaddr - site->fn_vaddr), p->insn, cost);
	print_wrapped(out, at, at, how);
}

static void print_allocator(const struct doctor_report *r, const struct survey_file *file,
			    FILE *out)
{
	double pair_ns = doctor_pair_ns(r, file->alloc);
	char cost[UNITS_BUF], line[512];
	size_t i;

	snprintf(line, sizeof(line), "%s in %s%s", file->alloc->family, file->path,
		 file->is_deleted ? " (deleted)" : "");
	fprintf(out, "  ");
	print_wrapped(out, 2, 4, line);
	if (pair_ns) {
		format_duration((uint64_t)pair_ns, cost, sizeof(cost));
		fprintf(out, "    a malloc and free that are not sampled cost about %s more\n",
			cost);
	}
	fprintf(out, "    %-22s %-5s %-20s %8s  %s\n", "function", "at", "instruction", "a call",
		"how");
	for (i = 0; i < file->alloc->sites.cnt; i++)
		print_site(r, &file->alloc->sites.data[i], file->is_probed && file->is_probed[i],
			   out);
}

/* The whole table, so that nobody has to guess what "known" means. */
static void print_looked_for(FILE *out)
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
	fprintf(out, "  none found. Functions that were looked for:\n    ");
	print_wrapped(out, 4, 4, line);
	for (i = 0, len = 0, line[0] = '\0'; i < prefix_cnt; i++)
		if (prefixes[i][0])
			len += (size_t)snprintf(line + len, cap - len, "%s ", prefixes[i]);
	fprintf(out, "  and the same with these prefixes:\n    ");
	print_wrapped(out, 4, 4, line);
	free(line);
}

static void print_allocators(const struct doctor_report *r, FILE *out)
{
	const struct survey_file *file;
	bool found = false;

	fprintf(out, "\nAllocators\n");
	vec_each(&r->survey->files, file) {
		if (!file->alloc)
			continue;
		found = true;
		print_allocator(r, file, out);
	}
	if (!found)
		print_looked_for(out);
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

static void print_tag(const struct doctor_report *r, const struct survey_file *file,
		      const struct survey_tag *tag, FILE *out)
{
	static const char *const modes[] = {
		[HT_TLS_NOT_READY] = "not ready",
		[HT_TLS_STATIC] = "static TLS",
		[HT_TLS_DTV] = "DTV",
		[HT_TLS_REGISTRY] = "registry",
	};
	const char *how = tag->problem[0] ? "left out" : modes[tag->tls_mode];
	char format[24] = "scope.h", line[128] = "";
	int at;

	if (tag->kind == HT_TAG_OTEL)
		snprintf(format, sizeof(format), "OpenTelemetry");
	else if (tag->kind == HT_TAG_CUSTOM)
		snprintf(format, sizeof(format), "custom labels");
	else if (tag->has_descriptor)
		snprintf(format, sizeof(format), "scope.h %u.%u", SCOPE_DESCRIPTOR_MAJOR,
			 tag->descriptor.minor);
	if (tag->problem[0])
		snprintf(line, sizeof(line), "see above");
	else if (tag->kind == HT_TAG_OTEL)
		describe_otel(r->survey, line, sizeof(line));
	else if (tag->kind == HT_TAG_SCOPE)
		describe_scopes(tag, line, sizeof(line));
	fprintf(out, "  ");
	print_path(out, file->path, 44);
	at = 2 + 44 + fprintf(out, "  %-13s  %-*s", format, line[0] ? 12 : 0, how);
	print_wrapped(out, at, at, line);
}

static void print_tags(const struct doctor_report *r, FILE *out)
{
	const struct survey_file *file;
	const struct survey_tag *tag;
	bool found = false;

	fprintf(out, "\nTags\n");
	vec_each(&r->survey->files, file) {
		vec_each(&file->tags.all, tag) {
			if (!found)
				fprintf(out, "  %-44s  %-13s  %-10s  %s\n", "file", "format",
					"found by", "says");
			found = true;
			print_tag(r, file, tag, out);
		}
	}
	if (!found)
		fprintf(out, "  none: include heaptap/scope.h to see who the memory is for\n");
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

static void print_stack_file(const struct survey_file *file, FILE *out)
{
	char text[UNITS_BUF], rows[UNITS_BUF + 8] = "frame pointers", cnt[UNITS_BUF];

	fprintf(out, "  ");
	print_path(out, file->path, 44);
	if (file->open_err) {
		fprintf(out, "  cannot be read: %s\n", strerror(-file->open_err));
		return;
	}
	if (file->row_cnt)
		snprintf(rows, sizeof(rows), "%s rows",
			 format_count(file->row_cnt, cnt, sizeof(cnt)));
	fprintf(out, " %10s  %-14s  %-8s  %s\n",
		format_bytes((double)file->exec_bytes, text, sizeof(text)), rows,
		file->has_symtab || file->has_mini_symtab ? "all" :
		file->symbol_cnt			  ? "exported" :
							    "none",
		lines_of(file));
}

static void print_stacks(const struct doctor_report *r, FILE *out)
{
	const struct survey *s = r->survey;
	const struct survey_file *file;
	char size[UNITS_BUF];

	fprintf(out, "\nStacks\n  %-44s %10s  %-14s  %-8s  %s\n", "file", "text", "unwound by",
		"names", "lines");
	vec_each(&s->files, file)
		print_stack_file(file, out);
	if (s->jit_area_cnt)
		fprintf(out, "  %-44s %10s  %-14s  %-8s  no\n", "(without a file: JIT)",
			format_bytes((double)s->jit_bytes, size, sizeof(size)), "frame pointers",
			s->has_jit_map ? "perf map" : "none");
}

/* What `heaptap serve` chooses from, for a library that so many followed processes use. */
static void print_ways(const struct doctor_report *r, FILE *out)
{
	const size_t *cnt = doctor_way_process_cnts;
	char ns[UNITS_BUF];

	fprintf(out, "\n  ways to attach, ns a hit of one of  %7zu %7zu %7zu %7zu  processes\n",
		cnt[0], cnt[1], cnt[2], cnt[3]);
	for (enum plan_way way = PLAN_OWN; way <= PLAN_ALL; way++) {
		fprintf(out, "  %-5s  %-26s ", plan_way_name(way),
			way == PLAN_OWN	  ? "links of each process" :
			way == PLAN_EVENT ? "an event that they share" :
					    "one link; others pay too");
		for (size_t i = 0; i < DOCTOR_WAY_CNTS; i++) {
			double value = doctor_way_ns(r, way, cnt[i]);

			snprintf(ns, sizeof(ns), "%.0f", value);
			fprintf(out, " %7s", value > 0 ? ns : "-");
		}
		fputc('\n', out);
	}
}

static void print_kernel(const struct doctor_report *r, FILE *out)
{
	char emulated[UNITS_BUF], stepped[UNITS_BUF], ret[UNITS_BUF], line[256];
	const struct feature_info *infos;
	size_t cnt, i;

	fprintf(out, "\nKernel %s, %s, %ld CPU%s\n  %-15s  %-4s  %-5s  %s\n", r->uts.release,
		r->uts.machine, r->cpu_cnt, r->cpu_cnt == 1 ? "" : "s", "feature", "here", "since",
		"if it is missing");
	infos = kernel_feature_infos(&cnt);
	for (i = 0; i < cnt; i++) {
		bool has = *((const char *)&r->features + infos[i].offset);

		fprintf(out, "  %-15s  %-4s  %-5s  ", infos[i].name, has ? "yes" : "NO",
			infos[i].since);
		print_wrapped(out, 30, 30, infos[i].without);
	}
	if (r->has_mode)
		print_field(out, "attached by", attach_mode_name(r->mode));
	if (!r->has_costs)
		return;
	snprintf(line, sizeof(line),
		 "%s on an emulated instruction, %s on a single-stepped one, %s more for a return "
		 "(measured now)",
		 format_duration((uint64_t)r->costs.emulated_ns, emulated, sizeof(emulated)),
		 format_duration((uint64_t)r->costs.stepped_ns, stepped, sizeof(stepped)),
		 format_duration((uint64_t)r->costs.return_ns, ret, sizeof(ret)));
	print_field(out, "a hit costs", line);
	print_ways(r, out);
}

/* These restrict only those who lack a capability. */
static void print_sysctl(const struct privileges *p, FILE *out, const char *name, int value,
			 int capability, const char *capability_name)
{
	char number[16] = "none";

	if (value != INT_MIN)
		snprintf(number, sizeof(number), "%d", value);
	fprintf(out, "  %-25s  %-4s  %s %s\n", name, number,
		privileges_have(p, capability) ? "does not matter with" : "matters without",
		capability_name);
}

static void print_privileges(const struct doctor_report *r, FILE *out)
{
	const struct privileges *p = &r->privileges;
	const struct capability_info *infos;
	size_t cnt, i;

	fprintf(out, "\nPrivileges of heaptap: uid %u%s\n", p->uid,
		p->in_user_namespace ?
			", in a user namespace (its capabilities do not count here)" :
			"");
	infos = capability_infos(&cnt);
	for (i = 0; i < cnt; i++)
		fprintf(out, "  %-25s  %-4s  %s\n", infos[i].name,
			privileges_have(p, infos[i].number) ? "yes" : "NO", infos[i].purpose);
	fprintf(out, "  %-25s  %s\n", "kernel lockdown",
		p->lockdown[0] ? p->lockdown : "none, or securityfs is not mounted");
	if (p->perf_event_paranoid > PERF_EVENT_PARANOID_PERFMON)
		print_sysctl(p, out, "perf_event_paranoid", p->perf_event_paranoid, CAP_SYS_ADMIN,
			     "CAP_SYS_ADMIN");
	else
		print_sysctl(p, out, "perf_event_paranoid", p->perf_event_paranoid, CAP_PERFMON,
			     "CAP_PERFMON");
	print_sysctl(p, out, "unprivileged_bpf_disabled", p->unprivileged_bpf_disabled, CAP_BPF,
		     "CAP_BPF");
	print_sysctl(p, out, "yama ptrace_scope", p->ptrace_scope, CAP_SYS_PTRACE,
		     "CAP_SYS_PTRACE");
	fprintf(out, "  %-25s  %-4d  does not matter: no kernel address is used\n", "kptr_restrict",
		p->kptr_restrict);
}

void doctor_print_text(const struct doctor_report *r, FILE *out)
{
	print_verdict(r, out);
	print_findings(r, out);
	print_process(r, out);
	if (r->survey) {
		print_allocators(r, out);
		print_tags(r, out);
		print_stacks(r, out);
	}
	print_kernel(r, out);
	print_privileges(r, out);
}
