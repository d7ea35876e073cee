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
#include "base/units.h"
#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"
#include "record/recorder.h"
#include "snapshot/profile_build.h"
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

static int comment_command(struct profile *p, const struct result_options *opts)
{
	char line[1024] = "";
	size_t used = 0;

	for (int i = 0; i < opts->command_argc && used < sizeof(line); i++)
		used += snprintf(line + used, sizeof(line) - used, " %s", opts->command_argv[i]);
	return profile_comment(p, "command: heaptap%s", line);
}

static int comment_target(struct profile *p, const struct recorder_facts *f)
{
	char elapsed[UNITS_BUF];
	int err = profile_comment(p, "target: PID %d (%.*s) %s", f->pid, (int)sizeof(f->comm),
				  f->comm, f->exe);

	if (!err)
		err = profile_comment(p, "recorded for %s, until %s",
				      format_duration(f->end_ns - f->begin_ns, elapsed,
						      sizeof(elapsed)),
				      f->end_reason);
	if (!err)
		err = profile_comment(p, f->was_started ?
						 "recorded since the program was started" :
						 "allocations before attach are not included");
	return err;
}

static int comment_source(struct profile *p, const struct recorder_facts *f)
{
	char rate[UNITS_BUF];
	int err = profile_comment(p, "source: uprobe (%s), %zu sites, %zu of them single-stepped",
				  attach_mode_name(f->mode), f->site_cnt, f->stepped_cnt);

	if (!err && f->rate_bytes <= 1)
		err = profile_comment(p, "rate: every allocation (exact)");
	else if (!err)
		err = profile_comment(p, "rate: one sample per %s allocated on the average",
				      format_bytes(f->rate_bytes, rate, sizeof(rate)));
	if (!err && f->overhead >= 0)
		err = profile_comment(p, "achieved overhead: %.2f %% of the target's CPU time",
				      100 * f->overhead);
	if (!err && !f->site_cnt)
		err = profile_comment(p, "no known allocator was found: looked for malloc, "
					 "jemalloc, tcmalloc, mimalloc, operator new");
	return err;
}

/* Every counter, one line each: "ledger: <name> <value> (<meaning>)". */
static int comment_ledger(struct profile *p, const uint64_t stats[HT_STAT_CNT],
			  const struct recorder_facts *f)
{
#define STAT_NAME(id, name, meaning) name,
#define STAT_MEANING(id, name, meaning) meaning,
	static const char *const name[] = { HT_STATS(STAT_NAME) };
	static const char *const meaning[] = { HT_STATS(STAT_MEANING) };
	int err = 0;

	for (size_t i = 0; i < HT_STAT_CNT && !err; i++)
		err = profile_comment(p, "ledger: %s %llu (%s)", name[i],
				      (unsigned long long)stats[i], meaning[i]);
	if (!err && f->throwing_cnt)
		err = profile_comment(p,
				      "ledger: throwing_sites %zu (operator new not probed: it may "
				      "throw, see --probe-throwing-new)",
				      f->throwing_cnt);
	if (!err && f->failed_cnt)
		err = profile_comment(p,
				      "ledger: failed_sites %zu (probe sites that could not be "
				      "attached)",
				      f->failed_cnt);
	return err;
}

static int add_comments(const struct result *res, struct profile *p, const struct recorder_facts *f,
			const struct snapshot *s)
{
	int err = profile_comment(p, "heaptap %s", HEAPTAP_VERSION);

	if (!err)
		err = comment_command(p, &res->opts);
	if (!err)
		err = comment_target(p, f);
	if (!err)
		err = comment_source(p, f);
	return err ? err : comment_ledger(p, s->stats, f);
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

static void say_end(const struct result *res, const struct recorder_facts *f)
{
	if (f->exit_status >= 0 && WIFEXITED(f->exit_status))
		log_info("record: the program exited with status %d", WEXITSTATUS(f->exit_status));
	else if (f->exit_status >= 0 && WIFSIGNALED(f->exit_status))
		log_info("record: the program was ended by signal %d (%s)",
			 WTERMSIG(f->exit_status), strsignal(WTERMSIG(f->exit_status)));
	log_info("wrote %s; look at it with: heaptap report %s, or go tool pprof %s", res->path,
		 res->path, res->path);
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
		.symbols = { .lines = !res->opts.no_lines, .demangle = true },
		.on_progress = log_get_level() >= LOG_INFO ? on_symbols : NULL,
	};
	size_t instance_cnt;
	int err;

	tracker_instances(recorder_tracker(r), &instance_cnt);
	opts.label_processes = f->follow || instance_cnt > 1;
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
		.row_cap = res->opts.top_cnt,
		.frame_cap = 12,
	};
	struct recorder_facts f;
	struct profile *p = NULL;
	int err;

	recorder_facts(r, &f);
	err = build(res, r, &f, &p);
	if (!err) {
		p->time_ns = f.end_epoch_ns;
		err = add_comments(res, p, &f, s);
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
	say_end(res, &f);
out:
	profile_free(p);
	return err;
}
