/* SPDX-License-Identifier: MIT */
/*
 * test_room.c - where there is no room: who waits for it is followed when there is, and what could not
 * be entered leaves nothing behind.
 */
#include "rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/follow.h"
#include "proc/select.h"

#define WAITING_CNT 8
#define TRIES_PER_SCAN 4
#define SCAN_CNT 6
#define LIMIT_NS (60 * NS_PER_S)
/* Beyond what the kernel gives out. */
#define NOBODY (1 << 30)

/*
 * Memory that is not there: the allocation of this number, counted while it is set, fails.
 */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t cnt, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

static bool is_counted;
static uint64_t alloc_cnt, failing_alloc;

static bool is_to_fail(void)
{
	return is_counted && ++alloc_cnt == failing_alloc;
}

void *malloc(size_t bytes)
{
	return is_to_fail() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t cnt, size_t bytes)
{
	return is_to_fail() ? NULL : __libc_calloc(cnt, bytes);
}

void *realloc(void *p, size_t bytes)
{
	return is_to_fail() ? NULL : __libc_realloc(p, bytes);
}

/* As `serve` does: several targets, each with probes of its own, none of them followed yet. */
static void open_engine(struct rig *rig, enum attach_mode mode)
{
	const struct engine_ops ops = { .on_event = rig_on_event };
	const struct engine_options engine_opts = {
		.mode = mode,
		.live_cap = 1000,
		.stack_cap = 1000,
	};
	struct kernel_features features;
	struct err why = { 0 };

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(guardian_start(&rig->guardian), 0);
	assert_int_equal(kernel_features_probe(&features), 0);
	if (engine_open(&engine_opts, &features, &ops, rig, &rig->engine, &why))
		fail_msg("engine_open: %s", why.text);
	assert_int_equal(engine_set_rate(rig->engine, 0, 4096, UINT64_MAX), 0);
	assert_int_equal(track_files_new(rig->engine, &rig->policy, &rig->files), 0);
	assert_int_equal(tracker_new(rig->engine, rig->guardian, rig->files, &rig->policy,
				     &rig->tracker),
			 0);
}

static void close_engine(struct rig *rig)
{
	tracker_free(rig->tracker);
	track_files_free(rig->files);
	engine_close(rig->engine);
	guardian_end(rig->guardian);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* Where messages go meanwhile. */
struct messages {
	FILE *file;
	int saved_fd;
};

static void messages_begin(struct messages *m)
{
	m->file = tmpfile();
	assert_non_null(m->file);
	m->saved_fd = dup(STDERR_FILENO);
	dup2(fileno(m->file), STDERR_FILENO);
}

/* How many there were so far that say this. */
static size_t messages_cnt(struct messages *m, const char *what)
{
	char line[512];
	size_t cnt = 0;

	rewind(m->file);
	while (fgets(line, sizeof(line), m->file))
		cnt += strstr(line, what) != NULL;
	return cnt;
}

static void messages_end(struct messages *m)
{
	dup2(m->saved_fd, STDERR_FILENO);
	close(m->saved_fd);
	fclose(m->file);
}

/* Targets until there is no room for more: their number. */
static pid_t fill_targets(struct rig *rig)
{
	const struct ht_target target = { .flags = HT_TARGET_OFF };
	pid_t cnt = 0;
	int err;

	while (!(err = engine_put_target(rig->engine, NOBODY + cnt, &target)))
		cnt++;
	assert_int_equal(err, -E2BIG);
	return cnt;
}

static size_t followed_cnt(const struct rig *rig, const pid_t *pids, size_t cnt)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++)
		n += tracker_follows(rig->tracker, pids[i]);
	return n;
}

/* Scans, as once in a while, until so many of them are followed. */
static void await_followed(struct rig *rig, struct follow *f, const pid_t *pids, size_t cnt)
{
	uint64_t end_ns = now_ns() + LIMIT_NS;

	while (followed_cnt(rig, pids, WAITING_CNT) < cnt && now_ns() < end_ns) {
		usleep(20000);
		assert_int_equal(follow_scan(f), 0);
	}
	assert_int_equal(followed_cnt(rig, pids, WAITING_CNT), cnt);
	assert_int_equal(follow_refused_cnt(f), WAITING_CNT - cnt);
}

/* Who waits is tried again, told of once, and not all of them each time. */
static void check_tries(struct rig *rig, struct follow *f)
{
	enum log_level level = log_get_level();
	struct messages m;
	size_t before;

	log_set_level(LOG_DEBUG);
	messages_begin(&m);
	assert_int_equal(follow_scan(f), 0);
	before = messages_cnt(&m, "no room");
	for (int i = 0; i < SCAN_CNT; i++) {
		size_t now;

		usleep(100000);
		assert_int_equal(follow_scan(f), 0);
		now = messages_cnt(&m, "no room");
		assert_in_range(now - before, 0, TRIES_PER_SCAN);
		before = now;
	}
	messages_end(&m);
	log_set_level(level);
	assert_true(before > WAITING_CNT);
	assert_int_equal(follow_refused_cnt(f), WAITING_CNT);
	assert_int_equal(tracker_counts(rig->tracker).followed_cnt, 0);
}

TEST(test_waits_for_room)
{
	const struct select_options select = { .has_pids = true };
	struct select_rules *rules = NULL;
	struct follow *f = NULL;
	struct messages m;
	struct rig rig;
	struct err why = { 0 };
	pid_t pids[WAITING_CNT];
	struct follow_options opts = { .pids = pids, .pid_cnt = WAITING_CNT };

	open_engine(&rig, rig_mode(state));
	for (size_t i = 0; i < WAITING_CNT; i++)
		pids[i] = start_child();
	assert_int_equal(select_rules_new(&select, &rules, &why), 0);
	opts.rules = rules;
	assert_int_equal(follow_new(rig.engine, rig.tracker, &opts, &f), 0);
	assert_int_equal(fill_targets(&rig), HT_TARGETS_CAP);

	messages_begin(&m);
	assert_int_equal(follow_scan(f), 0);
	assert_int_equal(follow_scan(f), 0);
	assert_int_equal(messages_cnt(&m, "no room"), WAITING_CNT);
	messages_end(&m);
	check_tries(&rig, f);

	assert_int_equal(engine_del_target(rig.engine, NOBODY), 0);
	await_followed(&rig, f, pids, 1);
	for (pid_t i = 1; i < WAITING_CNT; i++)
		assert_int_equal(engine_del_target(rig.engine, NOBODY + i), 0);
	await_followed(&rig, f, pids, WAITING_CNT);
	assert_int_equal(tracker_counts(rig.tracker).followed_cnt, WAITING_CNT);
	assert_int_equal(tracker_counts(rig.tracker).ended_cnt, 0);

	for (size_t i = 0; i < WAITING_CNT; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	follow_free(f);
	select_rules_free(rules);
	close_engine(&rig);
}

/* Reads a file with files of its own; which of the allocations meanwhile is to fail. */
static int read_file(struct rig *rig, uint64_t failing, uint32_t *ret_id)
{
	static const struct track_policy policy;
	struct track_files *files = NULL;
	struct track_file *file = NULL;
	int err;

	assert_int_equal(track_files_new(rig->engine, &policy, &files), 0);
	alloc_cnt = 0;
	failing_alloc = failing;
	is_counted = true;
	err = track_files_get_path(files, "/bin/sh", &file);
	is_counted = false;
	if (!err) {
		assert_non_null(file);
		*ret_id = file->id;
		assert_int_equal(engine_del_inode(rig->engine, file->ino, file->dev), 0);
		engine_del_file(rig->engine, file->id);
	}
	track_files_free(files);
	return err;
}

/* A file is entered last: the last allocations of reading it are those of that. */
TEST(test_file_without_memory)
{
	uint32_t first_id = 0, id = 0;
	struct rig rig;
	uint64_t cnt;

	open_engine(&rig, rig_mode(state));
	assert_int_equal(read_file(&rig, 0, &first_id), 0); /* the engine's tables grow */
	assert_int_equal(read_file(&rig, 0, &id), 0);
	assert_int_equal(id, first_id);
	cnt = alloc_cnt;
	assert_true(cnt > 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(read_file(&rig, cnt - i, &id), -ENOMEM);
	assert_int_equal(read_file(&rig, 0, &id), 0);
	assert_int_equal(id, first_id);
	close_engine(&rig);
}

RUN_RIG_TESTS()
