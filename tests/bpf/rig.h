/* SPDX-License-Identifier: MIT */
/*
 * rig.h - the BPF tests' target: a forked child that performs steps when it is told to.
 *
 * The child inherits the test's code, so a step is a function; results go through shared memory.
 * Between two steps the child only reads and writes its socket and allocates nothing.
 *
 * A test program ends with RUN_RIG_TESTS(), which runs each TEST() in the best attach mode that
 * the kernel has and, in turn, in one of the others; with TESTS_WHOLE=1 (make check-all) in every one.
 */
#ifndef HT_TESTS_BPF_RIG_H
#define HT_TESTS_BPF_RIG_H

#include "../unit/unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../unit/whole.h"
#include "base/clock.h"
#include "base/err.h"
#include "guardian/guardian.h"
#include "heaptap/sum.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "alloc/allocators.h"
#include "proc/events.h"
#include "track/files.h"
#include "track/tracker.h"

typedef void (*rig_step)(volatile uint64_t *out);

struct rig_options {
	enum attach_mode mode;
	uint64_t rate_bytes;
	uint32_t live_cap, stack_cap;
	bool is_one_of_many; /* the engine is made for several targets (--follow) */
};

#define RIG_OUT_CNT 4096
struct rig {
	struct track_policy policy;
	struct guardian *guardian;
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	volatile uint64_t *out; /* shared with the child */
	pid_t pid;
	int fd;
	struct ht_event events[64];
	size_t event_cnt;
};

static inline void rig_on_event(void *ctx, const struct ht_event *event)
{
	struct rig *rig = ctx;

	if (rig->event_cnt < 64)
		rig->events[rig->event_cnt++] = *event;
	if (rig->tracker)
		tracker_on_event(rig->tracker, event);
}

static int rig_child_fd; /* in the child: where the steps come from */

static inline void rig_child(int fd, volatile uint64_t *out)
{
	rig_step step;

	rig_child_fd = fd;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &step, sizeof(step)) == sizeof(step)) {
		step(out);
		if (write(fd, "", 1) != 1)
			break;
	}
	_exit(0);
}

/* Run one step in the child and wait for its end. */
static inline void rig_do(struct rig *rig, rig_step step)
{
	char done;

	assert_int_equal(write(rig->fd, &step, sizeof(step)), sizeof(step));
	assert_int_equal(read(rig->fd, &done, 1), 1);
}

/* Deliver the events that are there, and work them off. */
static inline void rig_settle(struct rig *rig)
{
	assert_int_equal(engine_events_drain(rig->engine), 0);
	assert_int_equal(tracker_work(rig->tracker), 0);
}

/* ... when it has mapped a file that is not known. */
static inline void rig_settle_mapped(struct rig *rig)
{
	const struct process_events_map map = { .pid = rig->pid, .time_ns = now_ns(), .path = "" };

	tracker_on_mmap(rig->tracker, &map);
	rig_settle(rig);
}

/* Make the child. */
static inline void rig_start(struct rig *rig)
{
	int pair[2];

	memset(rig, 0, sizeof(*rig));
	rig->out = mmap(NULL, RIG_OUT_CNT * sizeof(uint64_t), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(rig->out != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	rig->pid = fork();
	assert_true(rig->pid >= 0);
	if (!rig->pid) {
		close(pair[0]);
		rig_child(pair[1], rig->out);
	}
	close(pair[1]);
	rig->fd = pair[0];
}

/* Record the child. */
static inline void rig_attach(struct rig *rig, const struct rig_options *opts)
{
	const struct engine_ops ops = { .on_event = rig_on_event };
	const struct engine_options engine_opts = {
		.mode = opts->mode,
		.live_cap = opts->live_cap,
		.stack_cap = opts->stack_cap,
		.only_tgid = opts->is_one_of_many ? 0 : rig->pid,
		.keeps_peak = true,
	};
	struct kernel_features features;
	struct err why = { 0 };

	assert_int_equal(guardian_start(&rig->guardian), 0);
	rig->policy = (struct track_policy){ .follow = opts->is_one_of_many,
					     .reclaim_grace_ns = 50 * 1000000 };
	assert_int_equal(kernel_features_probe(&features), 0);
	if (engine_open(&engine_opts, &features, &ops, rig, &rig->engine, &why))
		fail_msg("engine_open: %s", why.text);
	assert_int_equal(engine_set_rate(rig->engine, 0, opts->rate_bytes, UINT64_MAX), 0);
	assert_int_equal(track_files_new(rig->engine, &rig->policy, &rig->files), 0);
	assert_int_equal(tracker_new(rig->engine, rig->guardian, rig->files, &rig->policy,
				     &rig->tracker),
			 0);
	assert_int_equal(tracker_add(rig->tracker, rig->pid), 0);
	assert_true(tracker_counts(rig->tracker).probes.site_cnt > 0);
}

static inline void rig_close(struct rig *rig)
{
	kill(rig->pid, SIGKILL);
	waitpid(rig->pid, NULL, 0);
	close(rig->fd);
	tracker_free(rig->tracker);
	track_files_free(rig->files);
	engine_close(rig->engine);
	guardian_end(rig->guardian);
	munmap((void *)rig->out, RIG_OUT_CNT * sizeof(uint64_t));
}

static inline void rig_release(void *rig)
{
	rig_close(rig);
	free(rig);
}

/* A child that is recorded until the test ends; unit_drop() closes it before. */
static inline struct rig *rig_open_with(const struct rig_options *opts)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig_start(rig);
	rig_attach(rig, opts);
	return unit_keep(rig, rig_release);
}

static inline struct rig *rig_open(enum attach_mode mode, uint64_t rate_bytes, uint32_t live_cap,
				   uint32_t stack_cap)
{
	return rig_open_with(&(struct rig_options){ mode, rate_bytes, live_cap, stack_cap, false });
}

struct rig_sum {
	uint64_t cnt, bytes;
	struct ht_live last;
};

static inline int rig_add_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct rig_sum *sum = ctx;

	sum->cnt++;
	sum->bytes += v->size_bytes;
	sum->last = *v;
	return 0;
}

static inline struct rig_sum rig_live(struct rig *rig)
{
	struct rig_sum sum = { 0 };

	assert_int_equal(engine_each_live(rig->engine, rig_add_live, &sum), 0);
	return sum;
}

static inline uint64_t rig_stat(struct rig *rig, int id)
{
	uint64_t stats[HT_STAT_CNT];

	assert_int_equal(engine_read_stats(rig->engine, stats), 0);
	return stats[id];
}

static inline int rig_add_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct ht_total *sum = ctx;

	sum->alloc_samples += v->alloc_samples;
	ht_sum_merge(&sum->alloc_objects_16, &v->alloc_objects_16);
	ht_sum_merge(&sum->alloc_bytes_8, &v->alloc_bytes_8);
	sum->alloc_variance.fine += v->alloc_variance.fine;
	sum->alloc_variance.coarse += v->alloc_variance.coarse;
	sum->free_samples += v->free_samples;
	ht_sum_merge(&sum->free_objects_16, &v->free_objects_16);
	return 0;
}

static inline struct ht_total rig_totals(struct rig *rig)
{
	struct ht_total sum = { 0 };

	assert_int_equal(engine_each_total(rig->engine, rig_add_total, &sum), 0);
	return sum;
}

/* Hidden from the compiler, which knows malloc. */
static void *(*volatile rig_malloc)(size_t) = malloc;

/* In the child: the recursion is not made a loop, so each depth is a stack of its own. */
static __attribute__((noinline, unused)) void *rig_alloc_below(int depth, size_t bytes)
{
	void *block = depth ? rig_alloc_below(depth - 1, bytes) : rig_malloc(bytes);

	asm volatile("" : "+r"(block));
	return block;
}

/* For a test that does not go through the modes: what the kernel has best. */
static inline enum attach_mode rig_best_mode(void)
{
	struct kernel_features features;
	enum attach_mode best;

	if (geteuid())
		skip();
	assert_int_equal(kernel_features_probe(&features), 0);
	assert_int_equal(kernel_features_choose_mode(&features, ATTACH_AUTO, &best), 0);
	return best;
}

/* In a test: the mode that it is to use. */
static inline enum attach_mode rig_mode(void **state)
{
	return (enum attach_mode)(uintptr_t)*state;
}

static inline void rig_skip(void **state)
{
	skip();
}

static inline int rig_run(const char *file)
{
	static const enum attach_mode modes[] = { ATTACH_SESSION, ATTACH_MULTI, ATTACH_PERF };
	static char names[UNIT_TESTS_CAP][64];
	struct CMUnitTest all[UNIT_TESTS_CAP] = { 0 };
	struct kernel_features f = { 0 };
	enum attach_mode got;
	size_t n = 0, had_cnt = 0;

	if (!geteuid())
		kernel_features_probe(&f);
	for (size_t m = 0; m < 3; m++) {
		bool has_mode = !kernel_features_choose_mode(&f, modes[m], &got);

		for (size_t i = 0; i < unit_test_cnt && n < UNIT_TESTS_CAP; i++) {
			if (has_mode && had_cnt && (i + had_cnt) % 2 && !is_whole())
				continue;
			snprintf(names[n], sizeof(names[n]), "%s: %s", attach_mode_name(modes[m]),
				 unit_tests[i].name);
			all[n] = unit_tests[i];
			all[n].name = names[n];
			if (!has_mode)
				all[n].test_func = rig_skip;
			all[n].initial_state = (void *)(uintptr_t)modes[m];
			n++;
		}
		had_cnt += has_mode;
	}
	memcpy(unit_tests, all, sizeof(all));
	unit_test_cnt = n;
	return unit_main(file, NULL, NULL);
}

/* main() of a program that runs its tests in attach modes. */
#define RUN_RIG_TESTS()                   \
	int main(void)                    \
	{                                 \
		return rig_run(__FILE__); \
	}

#endif
