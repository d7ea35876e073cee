/* SPDX-License-Identifier: MIT */
/* result.c - see result.h. */
#include "record/result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "base/units.h"
#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"
#include "record/recorder.h"
#include "snapshot/profile_build.h"
#include "snapshot/recording_notes.h"
#include "snapshot/scope_notes.h"
#include "snapshot/snapshot.h"
#include "track/tracker.h"

struct result {
	struct result_options opts;
	char path[PATH_MAX];
	char temp_path[PATH_MAX];
	int fd; /* of the temporary file; -1 when it is gone */
};

int result_open(const struct result_options *opts, pid_t pid, struct result **ret)
{
	struct result *res = calloc(1, sizeof(*res));
	struct stat st;
	int err;

	if (!res)
		return -ENOMEM;
	res->opts = *opts;
	if (opts->output)
		snprintf(res->path, sizeof(res->path), "%s", opts->output);
	else
		snprintf(res->path, sizeof(res->path), "heaptap-%d.pb.gz", pid);
	if (snprintf(res->temp_path, sizeof(res->temp_path), "%s.%d.tmp", res->path, getpid()) >=
	    (int)sizeof(res->temp_path)) {
		log_error("record: output path too long");
		free(res);
		return -ENAMETOOLONG;
	}
	if (!stat(res->path, &st) && !S_ISREG(st.st_mode)) {
		/* A device or a pipe is written to directly. */
		snprintf(res->temp_path, sizeof(res->temp_path), "%s", res->path);
		res->fd = S_ISDIR(st.st_mode) ? -1 : open(res->path, O_WRONLY | O_CLOEXEC);
		err = S_ISDIR(st.st_mode) ? -EISDIR : res->fd < 0 ? -errno : 0;
	} else {
		res->fd = open(res->temp_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		err = res->fd < 0 ? -errno : 0;
	}
	if (err) {
		log_error("record: cannot write '%s': %s; choose another file with -o FILE",
			  res->path, strerror(-err));
		free(res);
		return err;
	}
	*ret = res;
	return 0;
}

static bool is_temporary(const struct result *res)
{
	return strcmp(res->path, res->temp_path) != 0;
}

void result_close(struct result *res)
{
	if (!res)
		return;
	if (res->fd >= 0) {
		close(res->fd);
		if (is_temporary(res))
			unlink(res->temp_path);
	}
	free(res);
}

static void on_symbols(void *ctx, const char *file, size_t done, size_t total)
{
	(void)ctx;
	log_status("symbols: %zu of %zu addresses, reading %s", done, total, file);
}

/* Several processes, or several images of one, are told apart. */
static bool labels_processes(const struct recorder *r, const struct recorder_facts *f)
{
	size_t instance_cnt;

	tracker_instances(recorder_tracker(r), &instance_cnt);
	return f->follow || instance_cnt > 1;
}

static int add_notes(const struct result *res, struct profile *p, const struct recorder_facts *f,
		     const struct recorder *r)
{
	const struct tracker *t = recorder_tracker(r);
	const struct snapshot *s = recorder_snapshot(r);
	const struct recording_facts facts = {
		.command_argv = res->opts.command_argv,
		.command_argc = res->opts.command_argc,
		.tracker = t,
		.governor = recorder_governor(r),
		.main_pid = f->pid,
		.end_reason = f->end_reason,
		.was_started = f->was_started,
		.is_over = !tracker_running_cnt(t),
		.begin_ns = f->begin_epoch_ns,
		.end_ns = f->end_epoch_ns,
		.duration_ns = f->end_ns - f->begin_ns,
		.rss_end_bytes = f->rss_bytes,
		.mode = f->mode,
		.says_sites = true,
		.rate_bytes = f->rate_bytes,
		.stats = s->stats,
	};
	const struct scope_notes_options scopes = {
		.labels = res->opts.labels,
		.by_process = labels_processes(r, f),
		.epoch_off_ns = f->end_epoch_ns - (int64_t)f->end_ns,
	};
	int err = recording_notes_add(&facts, p);

	return err ? err : scope_notes_add(s, recorder_engine(r), t, &scopes, p);
}

/* What was lost and matters to who reads the numbers, on stderr whatever the verbosity. */
static void say_losses(const uint64_t stats[HT_STAT_CNT], const struct recorder_facts *f)
{
	uint64_t cut = 0, all = stats[HT_STAT_END_COMPLETE];
	char bytes[UNITS_BUF];

	for (int id = HT_STAT_END_NO_MAPPING; id <= HT_STAT_END_BAD_CFA; id++)
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
	if (stats[HT_STAT_SCRATCH_BUSY])
		log_warn("record: %llu samples were lost: no scratch space",
			 (unsigned long long)stats[HT_STAT_SCRATCH_BUSY]);
	if (cut * 100 > all)
		log_warn("record: %.1f %% of the stacks are cut short; the profile's comments say "
			 "why",
			 100.0 * cut / all);
}

static bool has_scopes(const struct snapshot *s)
{
	const struct snapshot_scope *scope;

	vec_each(&s->scopes, scope)
		if (scope->key.node)
			return true;
	return false;
}

static void say_end(const struct result *res, const struct recorder_facts *f,
		    const struct snapshot *s)
{
	if (f->exit_status >= 0 && WIFEXITED(f->exit_status))
		log_info("record: the program exited with status %d", WEXITSTATUS(f->exit_status));
	else if (f->exit_status >= 0 && WIFSIGNALED(f->exit_status))
		log_info("record: the program was ended by signal %d (%s)",
			 WTERMSIG(f->exit_status), strsignal(WTERMSIG(f->exit_status)));
	log_info("wrote %s; look at it with: heaptap report %s, or go tool pprof %s", res->path,
		 res->path, res->path);
	if (has_scopes(s))
		log_info("it tells scopes apart: heaptap report --by scope %s", res->path);
}

static int write_file(struct result *res, const struct profile *p)
{
	int err = pprof_write(p, res->fd);

	if (!err && close(res->fd))
		err = -errno;
	else if (err)
		close(res->fd);
	res->fd = -1;
	if (!err && is_temporary(res) && rename(res->temp_path, res->path))
		err = -errno;
	if (err) {
		log_error("record: cannot write '%s': %s", res->path, strerror(-err));
		if (is_temporary(res))
			unlink(res->temp_path);
	}
	return err;
}

static int build(const struct result *res, const struct recorder *r, const struct recorder_facts *f,
		 struct profile **ret)
{
	struct profile_build_options opts = {
		.rate_bytes = f->rate_bytes,
		.keep_allocator_frames = res->opts.keep_allocator_frames,
		.labels = res->opts.labels,
		.group_threads = res->opts.group_threads,
		.symbols = { .lines = !res->opts.no_lines, .demangle = true },
		.on_progress = log_get_level() >= LOG_INFO ? on_symbols : NULL,
	};
	int err;

	opts.label_processes = labels_processes(r, f);
	err = profile_build(recorder_snapshot(r), recorder_engine(r), recorder_files(r),
			    recorder_tracker(r), &opts, ret);
	log_status_end();
	return err;
}

int result_write(struct result *res, const struct recorder *r)
{
	const struct snapshot *s = recorder_snapshot(r);
	const struct report_options report = {
		.by = REPORT_BY_STACK,
		.by_is_default = true,
		.row_cap = res->opts.top_cnt,
		.lines = res->opts.top_cnt <= REPORT_ROWS ? REPORT_SCREEN_LINES : 0,
		.columns = (size_t)terminal_columns(STDOUT_FILENO, REPORT_COLUMNS_MIN,
						    REPORT_COLUMNS_MAX),
		.has_color = terminal_has_color(TERMINAL_COLOR_AUTO),
		.path = res->path,
		.is_new = true,
	};
	struct recorder_facts f;
	struct profile *p = NULL;
	int err;

	recorder_facts(r, &f);
	err = build(res, r, &f, &p);
	if (!err) {
		p->time_ns = f.end_epoch_ns;
		err = add_notes(res, p, &f, r);
	}
	if (err) {
		log_error("record: cannot build the profile: %s", strerror(-err));
		goto out;
	}
	err = write_file(res, p);
	if (err)
		goto out;
	if (res->opts.top_cnt)
		err = report_write(p, &report, stdout);
	fflush(stdout);
	say_losses(s->stats, &f);
	say_end(res, &f, s);
out:
	profile_free(p);
	return err;
}
