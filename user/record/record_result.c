/* SPDX-License-Identifier: MIT */
/*
 * record_result.c - the end of a recording: writes the profile and its page, prints the largest rows and the losses,
 * and explains a recording in which nothing was sampled (see record_result.h).
 */
#include "record/record_result.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/units.h"
#include "proc/runtime_kind.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/recording.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "record/targets.h"
#include "report/report.h"
#include "record/profile_build.h"
#include "record/recording_notes.h"
#include "record/scope_labels.h"
#include "record/snapshot.h"
#include "track/files.h"
#include "track/session.h"
#include "track/tracker.h"

#define COMMAND_BYTES 256

/* Write the same recording with other options: "heaptap record --rate 1 -- ls -l". */
static void command(const struct nothing *n, const char *options, char buf[static COMMAND_BYTES])
{
	char program[COMMAND_BYTES - 64];

	if (n->argv)
		snprintf(buf, COMMAND_BYTES, "heaptap record %s -- %s", options,
			 recording_program_text(n->argv, program, sizeof(program)));
	else
		snprintf(buf, COMMAND_BYTES, "heaptap record %s -p %s", options, n->pids);
}

static int explain_no_allocator(const struct nothing *n, const char *name,
				char buf[static NOTHING_BYTES])
{
	struct heap_words words = { 0 };

	heap_words_none(n->heap, &words);
	snprintf(buf, NOTHING_BYTES,
		 "nothing could be recorded of %s: %s (looked for " HEAP_KIND_LOOKED_FOR "); %s",
		 name, words.what, words.advice);
	return -ENODATA;
}

/* They are there: nothing is said of what the process has. */
static int explain_failed(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES])
{
	char again[COMMAND_BYTES];

	command(n, "-v", again);
	snprintf(
		buf, NOTHING_BYTES,
		"nothing could be recorded of %s: %zu probe site%s or files could not be probed (%s); to "
		"try again, with details: %s",
		name, n->failed_cnt, n->failed_cnt == 1 ? "" : "s", n->failed_why, again);
	return -ENODATA;
}

static void explain_no_sampler(const struct nothing *n, const char *name,
			       char buf[static NOTHING_BYTES])
{
	char again[COMMAND_BYTES];

	command(n, "--source probes", again);
	snprintf(buf, NOTHING_BYTES, "nothing was recorded: %s %s; to probe its allocator: %s",
		 name,
		 n->site_cnt ?
			 "has a sampler that reported nothing (is it switched on?)" :
			 "has no sampler of its own (looked for USDT probes of otel_memory and "
			 "ddheap)",
		 again);
}

static void explain_too_little(const struct nothing *n, const char *name,
			       char buf[static NOTHING_BYTES])
{
	char calls[UNITS_BUF], rate[UNITS_BUF], most[UNITS_BUF], all[COMMAND_BYTES];

	command(n, "--rate 1", all);
	/* Allocating more than three times the rate without a sample happens once in twenty times. */
	snprintf(buf, NOTHING_BYTES,
		 "nothing was sampled: %s called its allocator %s time%s, for less than about %s "
		 "in all (one sample is taken per %s); to record every call: %s",
		 name, format_count((double)n->call_cnt, calls, sizeof(calls)),
		 n->call_cnt == 1 ? "" : "s",
		 format_bytes(3.0 * (double)n->rate_bytes, most, sizeof(most)),
		 format_bytes((double)n->rate_bytes, rate, sizeof(rate)), all);
}

static void explain_tapped(const struct nothing *n, const char *name, const char *duration,
			   char buf[static NOTHING_BYTES])
{
	char late[UNITS_BUF], rate[UNITS_BUF], most[UNITS_BUF], all[COMMAND_BYTES];

	command(n, "--rate 1", all);
	format_duration(n->late_ns, late, sizeof(late));
	format_bytes((double)n->rate_bytes, rate, sizeof(rate));
	/* See explain_too_little(). */
	format_bytes(3.0 * (double)n->rate_bytes, most, sizeof(most));
	if (n->late_ns >= n->duration_ns / 4)
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s ran for %s, %s of that before it was tapped; to "
			 "record it from the beginning, use probes: %s",
			 name, duration, late, all);
	else
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s allocated less than about %s in %s%s (one "
			 "sample is taken per %s); to record every call: %s",
			 name, most, duration, n->is_partly_tapped ? " in tapped functions" : "",
			 rate, all);
}

int nothing_explain(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES])
{
	char duration[UNITS_BUF], again[COMMAND_BYTES];

	format_duration(n->duration_ns, duration, sizeof(duration));
	if (!n->site_cnt && n->failed_cnt)
		return explain_failed(n, name, buf);
	if (n->is_usdt && !n->call_cnt && !n->paused_cnt) {
		explain_no_sampler(n, name, buf);
		return n->site_cnt ? 0 : -ENODATA;
	}
	if (!n->call_cnt && n->unseen) {
		snprintf(buf, NOTHING_BYTES, "nothing was recorded of %s: %s", name, n->unseen);
		return n->site_cnt ? 0 : -ENODATA;
	}
	if (!n->site_cnt)
		return explain_no_allocator(n, name, buf);
	if (n->paused_cnt) {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was recorded: %s has paused the recording (heaptap_pause_all)",
			 name);
	} else if (n->probes_went_out) {
		command(n, "--max-overhead off -d 10s", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: the overhead limit stopped the recording of %s; "
			 "without a limit: %s",
			 name, again);
	} else if (!n->call_cnt && n->is_untapped) {
		command(n, "--rate 1", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s %s when the recording ended, after %s; to record "
			 "it %s, use probes: %s",
			 name,
			 n->is_tapped ? "was tapped only in part (not all of its programs or "
					"processes)" :
					"was not tapped yet",
			 duration, n->argv ? "from the beginning" : "at once", again);
	} else if (n->is_tapped && !n->heap->own.what) {
		explain_tapped(n, name, duration, buf);
	} else if (!n->call_cnt && n->heap->own.what) {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s did not call malloc in %s. %s; %s", name,
			 duration, n->heap->own.what, n->heap->own.advice);
	} else if (!n->call_cnt) {
		command(n, n->argv ? "--follow" : "-d 5m", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s made no malloc calls in %s; %s: %s", name,
			 duration,
			 n->argv ? "to record its children, too" :
				   "record it while it works, or for longer",
			 again);
	} else if (n->rate_bytes > 1) {
		explain_too_little(n, name, buf);
	} else {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: none of the %llu allocator calls of %s returned "
			 "memory",
			 (unsigned long long)n->call_cnt, name);
	}
	return 0;
}

/* For all names of a recording; names not known by then are left out. */
#define NAMES_NS (120 * NS_PER_S)

struct result {
	struct result_options opts;
	struct out_file *out, *page; /* page: NULL: none is wanted */
};

static void default_name(const struct targets *targets, char name[static OUT_FILE_NAME_BYTES])
{
	const struct target *first = &targets->list.data[0];

	out_file_default_name(first->comm, first->pid,
			      (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S), name);
}

/* The page's name beside the profile's: x.html for x.pb.gz. */
static void page_name(const char *output, char name[static PATH_MAX])
{
	size_t len = strlen(output);

	if (len > 6 && !strcmp(output + len - 6, ".pb.gz"))
		len -= 6;
	snprintf(name, PATH_MAX, "%.*s.html", (int)len, output);
}

int result_open(const struct result_options *opts, const struct targets *targets,
		struct result **ret)
{
	struct result *res = calloc(1, sizeof(*res));
	char name[OUT_FILE_NAME_BYTES], beside[PATH_MAX];
	const char *output = opts->stdout_fd < 0 && opts->output ? opts->output : name;
	const char *page = opts->page;
	struct err why = { .text = "out of memory" };
	struct stat st;
	int err;

	if (!res)
		return -ENOMEM;
	res->opts = *opts;
	default_name(targets, name);
	if (opts->stdout_fd >= 0)
		err = out_file_open_stdout(opts->stdout_fd, &res->out);
	else
		err = out_file_open(output, opts->replaces, " with -o FILE", &res->out, &why);
	if (!page && opts->opens && !err && !stat(output, &st) && !S_ISREG(st.st_mode)) {
		err = err_set(&why, -EINVAL,
			      "--open needs --html FILE, because '%s' is not a regular file",
			      output);
	} else if (!page && opts->opens) {
		page_name(output, beside);
		page = beside;
	}
	if (!err && page)
		err = out_file_open(page, opts->replaces, " with --html FILE", &res->page, &why);
	if (err) {
		log_error("record: %s", why.text);
		result_close(res);
		return err;
	}
	*ret = res;
	return 0;
}

void result_close(struct result *res)
{
	if (!res)
		return;
	out_file_free(res->page);
	out_file_free(res->out);
	free(res);
}

static void on_symbols(void *ctx, const char *file, size_t done, size_t total)
{
	(void)ctx;
	log_status("symbols: %zu of %zu addresses, reading %s", done, total, file);
}

/* True if labels must distinguish several processes, or several images of one. */
static bool labels_processes(const struct recorder *r, const struct recorder_facts *f)
{
	return f->follow || tracker_instances(recorder_session(r)->tracker)->list.cnt > 1;
}

/* Of several processes the rows are unknown: the reason says those of one. */
static int tell_of_several(const struct recorder_facts *f, struct resident_reading *ret)
{
	char words[RESIDENT_WORDS];
	struct profile *p;
	int err = profile_new(&p);

	if (err)
		return err;
	err = resident_rows_set(p, f->rows_begin, f->rows_end);
	resident_words(p, words);
	words[0] = 'r';
	*ret = (struct resident_reading){ .why = "several processes were recorded" };
	if (f->rows_end->is_known)
		snprintf(ret->why, sizeof(ret->why),
			 "several processes were recorded; the largest, PID %d (%.16s): %.300s",
			 f->rows_of->pid, f->rows_of->comm, words);
	profile_free(p);
	return err;
}

static int add_notes(const struct result_options *opts, struct profile *p,
		     const struct recorder_facts *f, const struct recorder *r)
{
	const struct tracker *t = recorder_session(r)->tracker;
	const struct snapshot *s = f->snapshot;
	struct resident_reading of_several;
	struct recording_facts facts = {
		.command_argv = opts->command_argv,
		.command_argc = opts->command_argc,
		.tracker = t,
		.governor = recorder_session(r)->governor,
		.main_pid = f->pid,
		.end_reason = f->end_reason,
		.was_started = f->was_started,
		.program_argv = f->was_started ? opts->program_argv : NULL,
		.follows_children = f->follow,
		.is_over = !tracker_running_cnt(t),
		.begin_ns = f->begin_epoch_ns,
		.end_ns = f->end_epoch_ns,
		.duration_ns = f->end_ns - f->begin_ns,
		.peak_ns = !s->peak_ns		    ? 0 :
			   s->peak_ns > f->begin_ns ? (int64_t)(s->peak_ns - f->begin_ns) :
						      1,
		.unrecorded_cnt = f->unrecorded_cnt,
		.rss_begin_bytes = f->rss_begin_bytes,
		.rss_end_bytes = f->rss_bytes,
		.rss_file_growth_bytes = f->rss_file_growth_bytes,
		.rows_begin = f->rows_begin,
		.rows_end = f->rows_end,
		.exec_held = s->exec_held.data,
		.exec_held_cnt = s->exec_held.cnt,
		.mode = f->mode,
		.says_sites = true,
		.rate_bytes = f->rate_bytes,
		.stats = s->stats,
	};
	const struct scope_notes_options scopes = {
		.labels = opts->labels,
		.by_process = labels_processes(r, f),
		.epoch_off_ns = f->end_epoch_ns - (int64_t)f->end_ns,
	};
	int err = 0;

	if (f->rows_of && f->rows_end) {
		err = tell_of_several(f, &of_several);
		facts.rows_begin = facts.rows_end = &of_several;
	}
	if (!err)
		err = recording_notes_add(&facts, p);
	if (!err && facts.rows_end)
		err = pinned_notes_add(s, facts.rows_end, p);
	return err ? err : scope_notes_add(s, recorder_session(r)->engine, t, &scopes, p);
}

/* Report on stderr, whatever the verbosity, the losses that matter to readers of the numbers. */
static void say_losses(const struct recorder_facts *f)
{
	const uint64_t *stats = f->snapshot->stats;
	uint64_t cut = 0, all = stats[HT_STAT_END_COMPLETE];
	char bytes[UNITS_BUF];

	for (int id = HT_STAT_END_NO_MAPPING; id < HT_STAT_END_COMPLETE + HT_END_CNT; id++)
		cut += stats[id];
	all += cut;
	if (stats[HT_STAT_LIVE_FULL])
		log_warn("record: the live map was full (%u samples): %llu samples, about %s, were "
			 "not tracked; use a larger --max-live or --rate",
			 f->live_cap, (unsigned long long)stats[HT_STAT_LIVE_FULL],
			 format_bytes(stats[HT_STAT_LIVE_FULL_BYTES], bytes, sizeof(bytes)));
	if (stats[HT_STAT_STACKS_FULL])
		log_warn("record: the stack map was full: %llu samples have no stack; use a larger "
			 "--max-stacks",
			 (unsigned long long)stats[HT_STAT_STACKS_FULL]);
	if (stats[HT_STAT_SHARE_LIVE] || stats[HT_STAT_SHARE_STACKS])
		log_warn("record: a process used up its share of the tables: %llu samples were not "
			 "tracked, %llu have no stack; use a larger --max-live, --max-stacks or "
			 "--rate",
			 (unsigned long long)stats[HT_STAT_SHARE_LIVE],
			 (unsigned long long)stats[HT_STAT_SHARE_STACKS]);
	if (stats[HT_STAT_SCRATCH_BUSY])
		log_warn("record: %llu samples were lost: no scratch space",
			 (unsigned long long)stats[HT_STAT_SCRATCH_BUSY]);
	if (cut * 100 > all)
		log_warn("record: %.1f %% of the stacks are truncated; heaptap report --notes "
			 "says why",
			 100.0 * cut / all);
}

/* What is known of the processes. */
static void set_instances(const struct recorder *r, struct nothing *n)
{
	const struct tracker *t = recorder_session(r)->tracker;
	bool has_untapped = false;
	const struct track_instance *inst;

	vec_each(&tracker_instances(t)->list, inst) {
		if (inst->unseen[0] && !n->unseen)
			n->unseen = inst->unseen;
		n->is_tapped |= inst->is_tapped;
		n->is_partly_tapped |= inst->tap_missed[0] != '\0';
		has_untapped |= inst->is_tap_awaited && !inst->is_tapped && !inst->is_tap_refused &&
				!inst->is_tap_of_other;
		if (inst->is_tapped && inst->tap_late_ns > n->late_ns)
			n->late_ns = inst->tap_late_ns;
	}
	n->is_untapped = has_untapped;
}

/* "12,13", for -p; "12,13,..." when there are many. */
static void targets_pids(const struct targets *t, char buf[static TARGETS_NAME_BYTES])
{
	const size_t spare = 16; /* for one more, and a note that there are more */
	const struct target *one;
	size_t len = 0;

	vec_each(&t->list, one) {
		if (len + spare > TARGETS_NAME_BYTES) {
			snprintf(buf + len, TARGETS_NAME_BYTES - len, ",...");
			return;
		}
		len += (size_t)snprintf(buf + len, TARGETS_NAME_BYTES - len, "%s%d", len ? "," : "",
					one->pid);
	}
}

/* Say why nothing was sampled, and what to do. -ENODATA: nothing could have been. */
static int say_nothing(const struct result_options *opts, const struct recorder *r,
		       const struct recorder_facts *f)
{
	const struct targets *targets = recorder_targets(r);
	const struct snapshot *s = f->snapshot;
	char name[TARGETS_NAME_BYTES], pids[TARGETS_NAME_BYTES], text[NOTHING_BYTES];
	struct heap_kind heap = targets->list.data[0].heap;
	struct nothing n = {
		.heap = &heap,
		.site_cnt = f->site_cnt,
		.failed_cnt = f->failed_cnt,
		.failed_why = f->failed_why,
		.call_cnt = s->stats[HT_STAT_HITS_ALLOC],
		.paused_cnt = s->stats[HT_STAT_PAUSED],
		.rate_bytes = f->rate_bytes,
		.is_usdt = f->source == SOURCE_USDT,
		.probes_went_out = f->probes_went_out,
		.argv = f->was_started ? opts->program_argv : NULL,
		.pids = pids,
		.duration_ns = f->end_ns - f->begin_ns,
	};
	struct track_files_counts files;
	int err;

	/* The number is of all processes, but shown as of one. */
	track_files_counts(recorder_session(r)->files, &files);
	heap.unread_cnt = files.unread_cnt;
	if (heap.unread_cnt > heap.file_cnt)
		heap.unread_cnt = heap.file_cnt;
	set_instances(r, &n);
	targets_name(targets, name);
	targets_pids(targets, pids);
	err = nothing_explain(&n, name, text);
	log_msg(err ? LOG_ERROR : LOG_WARN, "record: %s", text);
	return err;
}

static void say_end(const struct result *res, const struct recorder_facts *f, int write_err)
{
	const char *path = out_file_path(res->out);

	if (f->exit_status >= 0 && WIFEXITED(f->exit_status))
		log_info("record: the program exited with status %d", WEXITSTATUS(f->exit_status));
	else if (f->exit_status >= 0 && WIFSIGNALED(f->exit_status))
		log_info("record: the program was ended by signal %d (%s)",
			 WTERMSIG(f->exit_status), strsignal(WTERMSIG(f->exit_status)));
	if (res->opts.stdout_fd >= 0 || write_err)
		return;
	if (!f->snapshot->stats[HT_STAT_SAMPLES]) {
		log_info("wrote %s, which has no samples%s", path,
			 res->page ? ", and no page" : "");
		return;
	}
	if (!res->opts.top_cnt) /* otherwise the report has said it */
		log_info("wrote %s; to read it: heaptap report %s, or go tool pprof %s", path, path,
			 path);
}

static void say_unwritten(const char *path, int err)
{
	struct rlimit limit;
	char bytes[UNITS_BUF];

	if (err == -EFBIG && !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		log_error("record: cannot write '%s': no file may be larger than %s here (ulimit "
			  "-f); the profile is lost",
			  path, format_bytes(limit.rlim_cur, bytes, sizeof(bytes)));
	else
		log_error("record: cannot write '%s': %s; the profile is lost", path,
			  strerror(-err));
}

static int write_file(struct result *res, const struct profile *p)
{
	char wanted[PATH_MAX];
	int err = pprof_write(p, out_file_fd(res->out));

	snprintf(wanted, sizeof(wanted), "%s", out_file_path(res->out));
	if (!err)
		err = out_file_commit(res->out);
	if (err)
		say_unwritten(wanted, err);
	else if (strcmp(wanted, out_file_path(res->out)) != 0)
		log_warn("record: another program has created '%s', which stays as it is: the "
			 "profile is in '%s'",
			 wanted, out_file_path(res->out));
	return err;
}

static int build(const struct result_options *wanted, const struct recorder *r,
		 const struct recorder_facts *f, struct profile **ret)
{
	struct profile_build_options opts = {
		.rate_bytes = f->rate_bytes,
		.keep_allocator_frames = wanted->keep_allocator_frames,
		.labels = wanted->labels,
		.group_threads = wanted->group_threads,
		.history = f->history,
		.begin_ns = f->begin_ns,
		.symbols = { .lines = !wanted->no_lines,
			     .demangle = true,
			     .end_ns = now_ns() + NAMES_NS },
		.on_progress = log_get_level() >= LOG_INFO ? on_symbols : NULL,
	};
	int err;

	opts.label_processes = labels_processes(r, f);
	err = profile_build(f->snapshot, recorder_session(r)->engine, recorder_session(r)->files,
			    recorder_session(r)->tracker, &opts, ret);
	log_status_end();
	return err;
}

/* The standard output is a started program's, or the profile's. */
static FILE *shown_on(const struct result_options *opts)
{
	return opts->stdout_fd >= 0 || opts->program_argv ? stderr : stdout;
}

/* Print the largest rows, and below them what grows. */
static int show(const struct result *res, struct profile *p, struct report_options *opts)
{
	FILE *out = shown_on(&res->opts);
	char grows[REPORT_GROWS_BUF];
	int err = report_grows(p, grows);

	(void)report_move(p, opts, NULL); /* where the peak is not known, there is the end */
	if (res->opts.is_quiet)
		return err;
	if (!err && res->opts.top_cnt) {
		opts->lines -= opts->lines && *grows;
		err = report_write(p, opts, out);
	}
	if (!err && *grows)
		fprintf(out, "%s\n", grows);
	fflush(out);
	return err;
}

static void show_page(const struct result *res)
{
	const char *path = out_file_path(res->page);
	bool is_open = false;
	struct err why;

	if (res->opts.opens) {
		is_open = !out_file_browse(res->page, &why);
		if (!is_open)
			log_warn("record: cannot open '%s': %s", path, why.text);
	}
	if (!res->opts.is_quiet)
		fprintf(shown_on(&res->opts), "saved %s: %s\n", path,
			is_open ? "opened in a browser" : "open it in a browser");
}

/* p: at the moment that was shown. */
static int write_page(struct result *res, const struct profile *p)
{
	const struct report_options html = { .by = REPORT_BY_STACK, .format = REPORT_HTML };
	const char *path = out_file_path(res->page);
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	int err = f ? report_write(p, &html, f) : -ENOMEM;

	if (f && fclose(f) && !err)
		err = -ENOMEM;
	if (!err)
		err = write_all(out_file_fd(res->page), text, bytes);
	if (!err && res->opts.opens)
		out_file_give(res->page);
	if (!err)
		err = out_file_commit(res->page);
	if (err)
		log_error("record: cannot write '%s': %s", path, strerror(-err));
	else
		show_page(res);
	free(text);
	return err;
}

int result_profile(const struct result_options *opts, const struct recorder *r,
		   struct profile **ret)
{
	struct recorder_facts f;
	struct profile *p = NULL;
	int err;

	recorder_facts(r, &f);
	err = build(opts, r, &f, &p);
	if (!err) {
		p->time_ns = f.end_epoch_ns;
		err = add_notes(opts, p, &f, r);
	}
	if (err) {
		log_error("record: cannot build the profile: %s", strerror(-err));
		profile_free(p);
		return err;
	}
	*ret = p;
	return 0;
}

/* Without samples there is no report that would say what is resident. */
static void say_resident(const struct profile *p)
{
	char words[RESIDENT_WORDS], why[RESIDENT_WORDS];

	resident_words(p, words);
	resident_why_words(p, why);
	if (words[0])
		log_info("record: %s%s%s", words, *why ? "; " : "", why);
}

int result_explain(const struct result_options *opts, const struct recorder *r,
		   const struct profile *p)
{
	char words[WITNESS_WORDS];
	struct recorder_facts f;
	struct witness w;

	recorder_facts(r, &f);
	witness_find(p, &w);
	if (w.is_unexplained && (opts->is_quiet || !f.snapshot->stats[HT_STAT_SAMPLES]))
		log_warn("record: %s", witness_words(&w, words)); /* no report says it */
	if (!f.snapshot->stats[HT_STAT_SAMPLES])
		say_resident(p);
	say_losses(&f);
	return f.snapshot->stats[HT_STAT_SAMPLES] ? 0 : say_nothing(opts, r, &f);
}

int result_write(struct result *res, const struct recorder *r)
{
	int shown_fd = fileno(shown_on(&res->opts));
	struct report_options report = {
		.by = REPORT_BY_STACK,
		.by_is_default = true,
		.row_cap = res->opts.top_cnt,
		.lines = res->opts.top_cnt <= REPORT_ROWS ? REPORT_SCREEN_LINES : 0,
		.columns =
			(size_t)terminal_columns(shown_fd, REPORT_COLUMNS_MIN, REPORT_COLUMNS_MAX),
		.has_color = terminal_has_color(shown_fd, TERMINAL_COLOR_AUTO),
		.is_new = true,
	};
	struct recorder_facts f;
	struct profile *p = NULL;
	bool has_samples;
	int err, write_err, nothing_err = 0;

	recorder_facts(r, &f);
	err = result_profile(&res->opts, r, &p);
	if (err)
		return err;
	/* If it cannot be written, it can still be shown. */
	write_err = write_file(res, p);
	nothing_err = result_explain(&res->opts, r, p);
	if (res->opts.stdout_fd < 0 && !write_err)
		report.path = out_file_path(res->out);
	has_samples = f.snapshot->stats[HT_STAT_SAMPLES] > 0;
	if (has_samples)
		err = show(res, p, &report);
	if (has_samples && !err && res->page)
		err = write_page(res, p);
	say_end(res, &f, write_err);
	err = write_err ? write_err : err ? err : nothing_err;
	profile_free(p);
	return err;
}
