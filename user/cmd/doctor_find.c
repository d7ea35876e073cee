/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_find.c - turns facts into findings: what prevents a recording, what it would miss, what it would cost,
 * and what can be done about each.
 */

#include "base/sandbox.h"
#include "base/units.h"
#include "cmd/doctor.h"
#include "heaptap/abi.h"
#include "alloc/allocators.h"
#include "proc/runtime_kind.h"

#define NAMED_CNT 3 /* items named of a list */

/* Sentences are built in parts; text that does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void say(struct doctor_finding *f, const char *fmt,
						      ...)
{
	size_t len = strlen(f->what);
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->what + len, sizeof(f->what) - len, fmt, args);
	va_end(args);
}

/* Call once per name to build "a, b, c and 4 more". */
static void say_name(struct doctor_finding *f, uint32_t nth, uint32_t cnt, const char *name)
{
	if (nth < NAMED_CNT)
		say(f, "%s%s", nth ? ", " : "", name);
	else if (nth == NAMED_CNT)
		say(f, " and %u more", cnt - NAMED_CNT);
}

/* More can be said of the finding until the next one is added. */
static struct doctor_finding *add(struct doctor_report *r, enum doctor_level level,
				  const char *what, const char *advice)
{
	struct doctor_finding f = { .level = level };
	size_t at;

	say(&f, "%s", what);
	snprintf(f.advice, sizeof(f.advice), "%s", advice);
	if (level > r->verdict)
		r->verdict = level;
	if (vec_push(&r->findings, f)) {
		r->find_err = -ENOMEM;
		return &r->no_room;
	}
	/* gravest first, in the order of arrival within a level */
	for (at = r->findings.cnt - 1; at > 0 && r->findings.data[at - 1].level < level; at--)
		r->findings.data[at] = r->findings.data[at - 1];
	r->findings.data[at] = f;
	return &r->findings.data[at];
}

double doctor_site_ns(const struct doctor_report *r, const struct alloc_site *site)
{
	double ns;

	if (!r->has_costs)
		return 0;
	ns = site->placement.is_emulated ? r->costs.emulated_ns : r->costs.stepped_ns;
	/* in session mode, returns are armed for sampled calls only: too few to count */
	if (site->needs_return && r->mode != ATTACH_SESSION)
		ns += r->costs.return_ns;
	return ns;
}

double doctor_pair_ns(const struct doctor_report *r, const struct alloc_file *af)
{
	double alloc_ns = 0, free_ns = 0;
	const struct alloc_site *site;

	vec_each(&af->sites, site) {
		if (!strcmp(site->row->name, "malloc"))
			alloc_ns = doctor_site_ns(r, site);
		else if (!strcmp(site->row->name, "free"))
			free_ns = doctor_site_ns(r, site);
	}
	return alloc_ns && free_ns ? alloc_ns + free_ns : 0;
}

const size_t doctor_sharing_process_cnts[DOCTOR_SHARING_CNTS] = { 1, 10, 30, 300 };

double doctor_sharing_ns(const struct doctor_report *r, enum sharing sharing, size_t process_cnt)
{
	const struct plan_input in = {
		.process_cnt = process_cnt,
		.has_session = r->mode == ATTACH_SESSION,
		.costs = { r->costs.emulated_ns, r->costs.return_ns },
	};

	if (!r->has_costs || (sharing == SHARING_EVENT && !r->features.shared_events))
		return 0;
	return plan_hit_ns(&in, sharing);
}

bool doctor_has_feature(const struct doctor_report *r, const struct feature_info *info)
{
	return *(const bool *)((const char *)&r->features + info->offset);
}

static void find_machine(struct doctor_report *r)
{
	const bool suffices = kernel_features_suffice(&r->features);

	if (!suffices)
		add(r, DOCTOR_BLOCK, r->features.why.text,
		    r->privileges.in_user_namespace ?
			    "in a user namespace even root has none of these rights: run heaptap "
			    "on the host" :
			    "");
	else if (r->features.has_blind_multi)
		add(r, DOCTOR_NOTE,
		    "attaching takes longer on this kernel: its uprobe_multi sees only one thread "
		    "of a process (fixed in 6.10 and later stable kernels), so perf events are "
		    "used",
		    "");
	if (suffices && !r->features.uprobe_session)
		add(r, DOCTOR_NOTE,
		    "recording costs more on this kernel: there are no uprobe sessions (Linux "
		    "6.13), so every allocation pays for a return probe, sampled or not",
		    "");
	if (r->missing_capabilities[0])
		say(add(r, DOCTOR_LIMIT, "missing capabilities: ",
			"run heaptap as root, or give them to it (setcap, or systemd's "
			"AmbientCapabilities)"),
		    "%s", r->missing_capabilities);
	if (!sandbox_is_whole())
		add(r, DOCTOR_LIMIT, SANDBOX_NOT_WHOLE,
		    "use a kernel with CONFIG_SECCOMP_FILTER, or record only programs that you "
		    "trust");
	if (!strcmp(r->privileges.lockdown, "confidentiality"))
		add(r, DOCTOR_BLOCK,
		    "the kernel is locked down (confidentiality): it refuses BPF programs that "
		    "read its memory, as heaptap's do",
		    "boot with lockdown=integrity or without it");
}

static struct heap_kind heap_kind_of(const struct doctor_report *r)
{
	struct heap_kind kind = r->heap;
	const struct survey_file *file;

	kind.file_cnt = r->survey->files.cnt;
	vec_each(&r->survey->files, file) {
		kind.unread_cnt += file->open_err != 0;
		kind.is_go |= file->is_go;
		if (!strcmp(file->path, r->info.exe)) {
			kind.is_static = file->is_static;
			kind.has_names = file->symbol_cnt > 0;
		}
	}
	return kind;
}

/* There is nothing to probe: say why that may be, and what to do instead. */
static void find_no_allocator(struct doctor_report *r, const struct heap_kind *kind)
{
	struct heap_words words = { .what = "" };
	size_t len;

	heap_words_none(kind, &words);
	len = strlen(words.advice);
	if (!kind->is_go && (!kind->is_static || kind->has_names))
		snprintf(words.advice + len, sizeof(words.advice) - len,
			 "; -v lists the functions that were looked for");
	add(r, DOCTOR_BLOCK, words.what, words.advice);
}

static void find_stepped(struct doctor_report *r, const struct survey_file *file)
{
	const struct alloc_site *site;
	struct doctor_finding *f;
	uint32_t cnt = 0, nth = 0;
	char each[UNITS_BUF];

	vec_each(&file->alloc->sites, site)
		cnt += !site->placement.is_emulated;
	if (!cnt)
		return;
	f = add(r, DOCTOR_LIMIT, "recording costs more: ",
		"nothing is missing. This matters if they are called often; --rate does not "
		"change it");
	say(f, "%u of %zu probes in %s are single-stepped", cnt, file->alloc->sites.cnt,
	    file->path);
	if (r->has_costs)
		say(f, ", about %s a call",
		    format_duration((uint64_t)r->costs.stepped_ns, each, sizeof(each)));
	say(f, ": ");
	vec_each(&file->alloc->sites, site)
		if (!site->placement.is_emulated)
			say_name(f, nth++, cnt, site->symbol);
}

/* Other probes on the same functions, or remains of them: nothing shows which. */
static void find_probed(struct doctor_report *r, const struct survey_file *file)
{
	struct doctor_finding *f;
	uint32_t nth = 0;

	if (!file->probed_cnt)
		return;
	f = add(r, DOCTOR_NOTE, "another tool's breakpoints, or remains of them, are in ",
		"if another heaptap, bpftrace, perf or a debugger uses them, the process pays "
		"for both: end that tool before you measure costs. If a killed tool left them, "
		"the next recording removes them");
	say(f, "%s: ", file->path);
	for (size_t i = 0; i < file->alloc->sites.cnt; i++)
		if (file->is_probed[i])
			say_name(f, nth++, file->probed_cnt, file->alloc->sites.data[i].symbol);
}

static void find_allocators(struct doctor_report *r)
{
	const struct heap_kind kind = heap_kind_of(r);
	const struct survey_file *file;
	struct heap_words heap = { .what = "" };
	char words[ALLOC_UNSEEN_WORDS];
	bool found = false;

	vec_each(&r->survey->files, file) {
		if (!file->alloc)
			continue;
		found = true;
		find_stepped(r, file);
		find_probed(r, file);
	}
	/* allocators whose functions have no names */
	vec_each(&r->survey->files, file)
		if (file->unseen.kind != ALLOC_UNSEEN_NONE)
			say(add(r, DOCTOR_LIMIT, "",
				file->unseen.kind == ALLOC_UNSEEN_FOREIGN ?
					"run the program from another file system" :
					"use a build that keeps its symbols, or install its debug "
					"file (found by build id). Heap in use is at least the "
					"number shown"),
			    "%.300s %s", file->path, alloc_unseen_words(&file->unseen, words));
	if (!found)
		find_no_allocator(r, &kind);
	else if (heap_words_partial(&kind, &heap))
		add(r, DOCTOR_LIMIT, heap.what, heap.advice);
}

/* Report files for which `is` holds as one finding. */
static void find_files(struct doctor_report *r, enum doctor_level level, const char *what,
		       bool (*is)(const struct survey_file *file), const char *advice)
{
	const struct survey_file *file;
	struct doctor_finding *f;
	uint32_t cnt = 0, nth = 0;

	vec_each(&r->survey->files, file)
		cnt += is(file);
	if (!cnt)
		return;
	f = add(r, level, what, advice);
	vec_each(&r->survey->files, file)
		if (is(file))
			say_name(f, nth++, cnt, file->path);
}

static bool is_unreadable(const struct survey_file *file)
{
	return file->open_err != 0;
}

static bool has_no_rows(const struct survey_file *file)
{
	return !file->open_err && file->has_code && !file->row_cnt;
}

static bool has_exported_names_only(const struct survey_file *file)
{
	return !file->open_err && file->has_code && !file->has_symtab && !file->has_mini_symtab &&
	       strcmp(file->path, "[vdso]");
}

static bool has_names_but_no_lines(const struct survey_file *file)
{
	return !file->open_err && !has_exported_names_only(file) &&
	       file->debug == SURVEY_DEBUG_NONE && strcmp(file->path, "[vdso]");
}

/* Where stacks end, and what to do about it. */
static void runtime_words_stacks(const struct runtime *r, struct runtime_words *ret)
{
	*ret = (struct runtime_words){ 0 };
	if (!r->has_jit)
		return;
	if (r->kind == RUNTIME_JAVA && !r->was_told) {
		ret->what = "stacks end in compiled Java code: this JVM was started without frame "
			    "pointers";
		ret->advice = "start it with -XX:+PreserveFramePointer";
	} else if (r->kind == RUNTIME_LUAJIT) {
		ret->what = "stacks end in compiled Lua code: LuaJIT has no frame pointers";
		ret->advice = "no option helps; totals, and frames up to there, are right";
	} else if (r->kind == RUNTIME_NONE) {
		ret->what = "stacks end at JIT-compiled code built without frame pointers";
		ret->advice = "totals are not affected";
	}
}

/* Which functions have no names. */
static void runtime_words_names(const struct runtime *r, struct runtime_words *ret)
{
	*ret = (struct runtime_words){ 0 };
	if (r->kind == RUNTIME_JAVA && r->has_jit && !r->has_names) {
		ret->what = "Java's functions have no names yet";
		ret->advice = "heaptap record --jvm-perfmap asks the JVM for them (17 or later)";
	} else if (r->kind == RUNTIME_NODE && r->has_jit && !r->has_names) {
		ret->what = "JavaScript's functions have no names";
		ret->advice = "start it with --perf-basic-prof --interpreted-frames-native-stack";
	} else if (r->kind == RUNTIME_NODE && r->has_jit && !r->was_told) {
		ret->what = "JavaScript's functions have no names until they are compiled";
		ret->advice = "start it with --interpreted-frames-native-stack as well";
	} else if (r->kind == RUNTIME_PYTHON && !r->has_names) {
		ret->what = "stacks have the interpreter's functions, not Python's";
		ret->advice = "start it with -X perf or PYTHONPERFSUPPORT=1 (Python 3.12 or later)";
	} else if (r->kind == RUNTIME_NONE && r->has_jit && !r->has_names) {
		ret->what = "JIT-compiled functions have no names";
		ret->advice = "have the runtime write /tmp/perf-PID.map or a jitdump";
	}
}

static void find_stacks(struct doctor_report *r)
{
	struct runtime_words words;

	find_files(r, DOCTOR_LIMIT,
		   "files that could not be read; stacks may end in them, and their allocators "
		   "are not seen: ",
		   is_unreadable,
		   "run heaptap as root (CAP_SYS_ADMIN) and outside the process's container");
	find_files(r, DOCTOR_LIMIT,
		   "files without unwind tables (.eh_frame); stacks may end in them if they have "
		   "no frame pointers either: ",
		   has_no_rows,
		   "build with -fasynchronous-unwind-tables or -fno-omit-frame-pointer");
	find_files(r, DOCTOR_NOTE, "only exported functions have names: ", has_exported_names_only,
		   "install the -dbgsym (-debuginfo) packages, or keep the symbols");
	find_files(r, DOCTOR_NOTE, "function names but no source lines: ", has_names_but_no_lines,
		   "build with -g, or install the -dbgsym (-debuginfo) packages");
	runtime_words_stacks(&r->survey->runtime, &words);
	if (words.what)
		add(r, DOCTOR_LIMIT, words.what, words.advice);
	runtime_words_names(&r->survey->runtime, &words);
	if (words.what)
		add(r, DOCTOR_NOTE, words.what, words.advice);
}

bool doctor_is_paused(const struct survey_tag *tag)
{
	return tag->has_descriptor && tag->tls_mode != HT_TLS_NOT_READY &&
	       tag->descriptor.flags & HT_TAG_PAUSES_ALL;
}

uint32_t doctor_node_cnt(const struct survey_tag *tag)
{
	return tag->descriptor.node_cnt ? tag->descriptor.node_cnt - 1 : 0;
}

static void find_tags(struct doctor_report *r)
{
	const struct survey_file *file;
	const struct survey_tag *tag;
	uint32_t source_cnt = 0;

	vec_each(&r->survey->files, file)
		vec_each(&file->tags.all, tag) {
			source_cnt += !tag->problem.text[0];
			if (tag->problem.text[0])
				say(add(r, DOCTOR_LIMIT, "the tags of ",
					tag->kind == HT_TAG_SCOPE ?
						"the rest is recorded; build it with the "
						"heaptap/scope.h of this heaptap, or use a newer "
						"heaptap" :
						"the rest is recorded"),
				    "%s are left out: %s", file->path, tag->problem.text);
			else if (doctor_is_paused(tag))
				say(add(r, DOCTOR_LIMIT, "no allocation is recorded now: ",
					"it must call heaptap_unpause_all() first"),
				    "%s has paused the recording (heaptap_pause_all)", file->path);
		}
	if (source_cnt > HT_TAG_SOURCES_CAP)
		say(add(r, DOCTOR_LIMIT, "some allocations will lack their scope or labels: ", ""),
		    "its files have %u sources of tags, and heaptap reads %d per process",
		    source_cnt, HT_TAG_SOURCES_CAP);
	if (r->survey->otel_keys_err == -EPROTO)
		add(r, DOCTOR_LIMIT,
		    "labels of threads will be called key-1, key-2, ...: OpenTelemetry's process "
		    "context has an unknown format or version",
		    "");
}

int doctor_find(struct doctor_report *r)
{
	find_machine(r);
	if (r->pid && r->process_err) {
		add(r, DOCTOR_BLOCK, r->process_why.text, "");
	} else if (r->pid) {
		find_allocators(r);
		find_tags(r);
		find_stacks(r);
		if (r->info.seccomp && r->seccomp_kills_returns)
			add(r, DOCTOR_BLOCK,
			    "recording could kill it: it runs under seccomp, and on this kernel a "
			    "return probe ends with a system call that a strict filter may forbid",
			    "update the kernel: 6.14 or later, or a stable one with that fix");
	}
	return r->find_err;
}
