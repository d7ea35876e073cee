/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_json.c - the doctor's report for programs: one JSON object with the facts of the text. Bytes and
 * nanoseconds are plain numbers; unknown values are null.
 */

#include "base/err.h"
#include "base/json.h"
#include "base/sandbox.h"
#include "cmd/doctor.h"
#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "tap/tap_code.h"

static void put_number(struct json *j, const char *name, double value, bool is_known)
{
	json_number(j, name, 0, is_known ? value : NAN);
}

static void put_findings(struct json *j, const struct doctor_report *r)
{
	static const char *const levels[] = {
		[DOCTOR_NOTE] = "note",
		[DOCTOR_LIMIT] = "limit",
		[DOCTOR_BLOCK] = "block",
	};
	const struct doctor_finding *f;

	json_begin(j, "findings", '[');
	vec_each(&r->findings, f) {
		json_begin(j, NULL, '{');
		json_text(j, "level", levels[f->level]);
		json_text(j, "what", f->what);
		json_text(j, "advice", f->advice);
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* Write ns per hit by number of processes followed at one library. */
static void put_sharings(struct json *j, const struct doctor_report *r)
{
	json_begin(j, "way_hit_ns", '{');
	for (enum sharing sharing = SHARING_OWN; sharing <= SHARING_ALL; sharing++) {
		json_begin(j, sharing_name(sharing), '{');
		for (size_t i = 0; i < DOCTOR_SHARING_CNTS; i++) {
			double ns = doctor_sharing_ns(r, sharing, doctor_sharing_process_cnts[i]);
			char cnt[24];

			snprintf(cnt, sizeof(cnt), "%zu", doctor_sharing_process_cnts[i]);
			put_number(j, cnt, ns, ns > 0);
		}
		json_end(j, '}');
	}
	json_end(j, '}');
}

static void put_kernel(struct json *j, const struct doctor_report *r)
{
	const struct feature_info *infos;
	size_t cnt, i;

	json_begin(j, "kernel", '{');
	json_text(j, "release", r->uts.release);
	json_text(j, "machine", r->uts.machine);
	json_uint(j, "cpus", (uint64_t)r->cpu_cnt);
	json_begin(j, "features", '{');
	infos = kernel_feature_infos(&cnt);
	for (i = 0; i < cnt; i++)
		json_bool(j, infos[i].name, doctor_has_feature(r, &infos[i]));
	json_end(j, '}');
	json_text(j, "attach_mode", r->has_mode ? attach_mode_name(r->mode) : NULL);
	put_number(j, "emulated_hit_ns", r->costs.emulated_ns, r->has_costs);
	put_number(j, "stepped_hit_ns", r->costs.stepped_ns, r->has_costs);
	put_number(j, "return_hit_ns", r->costs.return_ns, r->has_costs);
	put_sharings(j, r);
	json_end(j, '}');
}

static void put_privileges(struct json *j, const struct privileges *p)
{
	const struct capability_info *infos;
	size_t cnt, i;

	json_begin(j, "privileges", '{');
	json_uint(j, "uid", p->uid);
	json_bool(j, "user_namespace", p->in_user_namespace);
	json_begin(j, "capabilities", '{');
	infos = capability_infos(&cnt);
	for (i = 0; i < cnt; i++)
		json_bool(j, infos[i].name, privileges_have(p, infos[i].number));
	json_end(j, '}');
	json_text(j, "lockdown", p->lockdown);
	json_bool(j, "system_call_filters", sandbox_is_whole());
	put_number(j, "perf_event_paranoid", p->perf_event_paranoid,
		   p->perf_event_paranoid != INT_MIN);
	put_number(j, "kptr_restrict", p->kptr_restrict, p->kptr_restrict != INT_MIN);
	put_number(j, "unprivileged_bpf_disabled", p->unprivileged_bpf_disabled,
		   p->unprivileged_bpf_disabled != INT_MIN);
	put_number(j, "ptrace_scope", p->ptrace_scope, p->ptrace_scope != INT_MIN);
	json_end(j, '}');
}

static void put_process(struct json *j, const struct doctor_report *r)
{
	const struct process_info *info = &r->info;
	const char state[2] = { info->state, '\0' };

	json_begin(j, "process", '{');
	json_uint(j, "pid", r->pid);
	json_text(j, "comm", info->comm);
	json_text(j, "exe", info->exe);
	json_text(j, "state", state);
	json_uint(j, "uid", info->uid);
	json_uint(j, "threads", info->thread_cnt);
	json_bool(j, "main_thread_gone", info->is_main_thread_gone);
	json_bool(j, "kernel_thread", info->is_kernel_thread);
	json_bool(j, "zombie", info->is_zombie);
	json_bool(j, "bits32", info->is_32bit);
	json_uint(j, "rss_bytes", info->rss_bytes);
	put_number(j, "pss_bytes", (double)info->pss_bytes, info->pss_bytes != 0);
	put_number(j, "address_limit_bytes", (double)info->address_limit_bytes,
		   info->address_limit_bytes != 0);
	json_text(j, "container_id", info->container_id);
	json_bool(j, "pid_namespace", info->in_pid_namespace);
	json_uint(j, "seccomp", (uint64_t)info->seccomp);
	json_end(j, '}');
}

/* Write where the tap would go, but not why a function needs none. */
static void put_tap(struct json *j, const struct alloc_site *site)
{
	const struct tap_spot *tap = &site->tap;
	const int gap_cnt = !!tap->gap_vaddr + !!tap->branch_gap_vaddr;
	uint8_t off, cnt, branch_cnt;

	tap_branch_changed(tap, &off, &branch_cnt);
	tap_spot_changed(tap, &off, &cnt);
	json_begin(j, "tap", '{');
	put_number(j, "offset_in_function", (double)(tap->vaddr - site->fn_vaddr), tap->vaddr);
	put_number(j, "bytes",
		   cnt + (tap->branch_vaddr ? branch_cnt : 0) + gap_cnt * TAP_LONG_JUMP_BYTES,
		   tap->vaddr);
	json_text(j, "problem", tap->vaddr ? "" : tap->why);
	json_end(j, '}');
}

static void put_site(struct json *j, const struct doctor_report *r, const struct alloc_site *site,
		     bool is_probed)
{
	const struct placement *p = &site->placement;
	double ns = doctor_site_ns(r, site);

	json_begin(j, NULL, '{');
	json_text(j, "symbol", site->symbol);
	json_uint(j, "offset_in_function", p->vaddr - site->fn_vaddr);
	json_uint(j, "file_offset", site->probe_off);
	json_text(j, "instruction", p->insn);
	json_bool(j, "emulated", p->is_emulated);
	json_bool(j, "after_null_check", p->skips_null);
	json_text(j, "why_not_emulated", p->why);
	json_bool(j, "needs_return", site->needs_return);
	json_bool(j, "probed_by_others", is_probed);
	put_number(j, "cost_ns", ns, ns > 0);
	put_tap(j, site);
	json_end(j, '}');
}

static void put_allocator(struct json *j, const struct doctor_report *r,
			  const struct survey_file *file)
{
	double pair_ns = doctor_pair_ns(r, file->alloc);
	struct err why = { 0 };
	size_t i;

	tap_code_check(file->alloc, &why);
	json_begin(j, "allocator", '{');
	json_text(j, "family", file->alloc->family);
	put_number(j, "pair_cost_ns", pair_ns, pair_ns > 0);
	json_text(j, "tap_problem", why.text);
	json_begin(j, "sites", '[');
	for (i = 0; i < file->alloc->sites.cnt; i++)
		put_site(j, r, &file->alloc->sites.data[i], file->is_probed && file->is_probed[i]);
	json_end(j, ']');
	json_end(j, '}');
}

/* Facts that only heaptap/scope.h's descriptor has. */
static void put_scopes(struct json *j, const struct survey_tag *tag)
{
	const struct scope_descriptor *d = &tag->descriptor;

	if (tag->has_descriptor)
		json_format(j, "abi", "\"%u.%u\"", SCOPE_DESCRIPTOR_MAJOR, d->minor);
	else
		json_null(j, "abi");
	put_number(j, "nodes", doctor_node_cnt(tag), tag->has_descriptor);
	put_number(j, "overflows", d->overflows, tag->has_descriptor);
	put_number(j, "underflows", d->underflows, tag->has_descriptor);
	put_number(j, "truncations", d->truncations, tag->has_descriptor);
	json_bool(j, "paused", doctor_is_paused(tag));
}

static void put_tag(struct json *j, const struct survey_tag *tag)
{
	static const char *const formats[] = {
		[HT_TAG_SCOPE] = "scope.h",
		[HT_TAG_OTEL] = "opentelemetry",
		[HT_TAG_CUSTOM] = "custom_labels",
	};
	static const char *const modes[] = {
		[HT_TLS_NOT_READY] = "not_ready",
		[HT_TLS_STATIC] = "static",
		[HT_TLS_DTV] = "dtv",
		[HT_TLS_REGISTRY] = "registry",
	};

	json_begin(j, NULL, '{');
	json_text(j, "format", formats[tag->kind]);
	json_text(j, "problem", tag->problem.text);
	json_text(j, "found_by", tag->problem.text[0] ? NULL : modes[tag->tls_mode]);
	put_number(j, "tls_offset", (double)tag->tls_off,
		   tag->tls_mode == HT_TLS_STATIC || tag->tls_mode == HT_TLS_DTV);
	put_number(j, "tls_module", (double)tag->tls_module, tag->tls_mode == HT_TLS_DTV);
	if (tag->kind == HT_TAG_SCOPE)
		put_scopes(j, tag);
	json_end(j, '}');
}

static void put_file(struct json *j, const struct doctor_report *r, const struct survey_file *file)
{
	static const char *const debug[] = {
		[SURVEY_DEBUG_NONE] = "none",
		[SURVEY_DEBUG_OWN] = "own",
		[SURVEY_DEBUG_SEPARATE] = "separate",
	};
	const struct survey_tag *tag;

	json_begin(j, NULL, '{');
	json_text(j, "path", file->path);
	json_bool(j, "deleted", file->is_deleted);
	json_text(j, "build_id", file->build_id);
	json_uint(j, "text_bytes", file->exec_bytes);
	json_text(j, "error", file->open_err ? strerror(-file->open_err) : "");
	json_uint(j, "unwind_rows", file->row_cnt);
	json_uint(j, "unsupported_unwind_rows", file->unsupported_row_cnt);
	json_uint(j, "symbols", file->symbol_cnt);
	json_bool(j, "symbol_table", file->has_symtab || file->has_mini_symtab);
	json_text(j, "debug_info", debug[file->debug]);
	json_bool(j, "go", file->is_go);
	if (file->alloc)
		put_allocator(j, r, file);
	if (file->sampler) {
		json_begin(j, "sampler", '{');
		json_text(j, "provider", file->sampler->provider);
		json_text(j, "problem", file->sampler->problem);
		json_bool(j, "whole_program", file->sampler->is_whole);
		json_end(j, '}');
	}
	json_begin(j, "tags", '[');
	vec_each(&file->tags.all, tag)
		put_tag(j, tag);
	json_end(j, ']');
	json_end(j, '}');
}

static void put_survey(struct json *j, const struct doctor_report *r)
{
	const struct survey *s = r->survey;
	const struct survey_file *file;
	size_t row_cnt, prefix_cnt;
	const struct alloc_row *rows = alloc_table(&row_cnt);
	const char *const *prefixes = alloc_prefixes(&prefix_cnt);

	json_begin(j, "files", '[');
	vec_each(&s->files, file)
		put_file(j, r, file);
	json_end(j, ']');
	json_uint(j, "jit_areas", s->jit_area_cnt);
	json_uint(j, "jit_bytes", s->jit_bytes);
	json_bool(j, "jit_map", s->has_jit_map);
	json_bool(j, "jit_dump", s->has_jit_dump);
	json_bool(j, "was_probed_before", s->has_uprobes_area);
	put_number(j, "otel_key_names", (double)s->otel_key_cnt, !s->otel_keys_err);
	json_begin(j, "looked_for", '[');
	for (size_t i = 0; i < row_cnt; i++)
		json_text(j, NULL, rows[i].name);
	json_end(j, ']');
	json_begin(j, "prefixes", '[');
	for (size_t i = 0; i < prefix_cnt; i++)
		json_text(j, NULL, prefixes[i]);
	json_end(j, ']');
}

void doctor_print_json(const struct doctor_report *r, FILE *out)
{
	static const char *const verdicts[] = {
		[DOCTOR_NOTE] = "yes",
		[DOCTOR_LIMIT] = "limits",
		[DOCTOR_BLOCK] = "no",
	};
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	json_text(&j, "can_record", verdicts[r->verdict]);
	put_findings(&j, r);
	put_kernel(&j, r);
	put_privileges(&j, &r->privileges);
	if (r->has_info)
		put_process(&j, r);
	if (r->survey)
		put_survey(&j, r);
	json_end(&j, '}');
	fputc('\n', out);
}
