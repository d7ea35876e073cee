/* SPDX-License-Identifier: MIT */
/* test_saved.c - saved profiles: when one is taken, which one goes, names, the folder. */
#include "unit.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "kernel/reclaim.h"
#include "heaptap/abi.h"
#include "record/saver_priv.h"
#include "temp_folder.h"
#include "track/tracker_priv.h"

#define MIB (1024.0 * 1024)

TEST(test_growth)
{
	static const struct {
		double inuse, kept;
		uint64_t rate;
		bool has_grown;
	} cases[] = {
		{ 0, 0, 1, false },
		{ 1, 0, 1, true }, /* the first */
		{ 1, 0, 64 << 10, true },
		{ 104, 100, 1, false },
		{ 105, 100, 1, true },
		{ 90, 100, 1, false },
		{ 10.4 * MIB, 10 * MIB, 64 << 10, false },
		{ 10.5 * MIB, 10 * MIB, 64 << 10, true },
		/* 5 %, but two samples of 64 KiB may be noise */
		{ 1.1 * MIB, 1 * MIB, 64 << 10, false },
		{ 1.125 * MIB, 1 * MIB, 64 << 10, true },
	};

	each_case(c, cases)
		assert_int_equal(saved_has_grown(c->inuse, c->kept, c->rate), c->has_grown);
}

/* A process that always has a reason, looked at five times a second: when is it taken? */
TEST(test_pace)
{
	static const unsigned wanted_s[] = { 0, 1, 3, 7, 15, 25, 35 };
	struct saved_pace p = { 0 };
	uint64_t begin = 1000 * NS_PER_S, now = begin;
	size_t taken = 0;

	for (; taken < sizeof(wanted_s) / sizeof(*wanted_s); now += NS_PER_S / 5) {
		if (!saved_pace_allows(&p, now))
			continue;
		saved_pace_take(&p, now);
		assert_int_equal((now - begin) / NS_PER_S, wanted_s[taken++]);
	}
	/* after a rest it begins again */
	now += 30 * NS_PER_S;
	assert_true(saved_pace_allows(&p, now));
	saved_pace_take(&p, now);
	assert_false(saved_pace_allows(&p, now + NS_PER_S - 1));
	assert_true(saved_pace_allows(&p, now + NS_PER_S));
}

/* Who always has a reason takes a part of one CPU, whatever a batch costs; a death may take more than others. */
TEST(test_rest)
{
	static const uint64_t costs_ns[] = { NS_PER_S / 100, NS_PER_S / 4, 30 * NS_PER_S };
	static const uint64_t batches[] = {
		[KEEP_DEATH] = 33, [KEEP_NEAR_LIMIT] = 18, [KEEP_ENDED] = 6, [KEEP_AT_PEAK] = 6
	}; /* in 200 times the cost */

	for (size_t i = 0; i < 12; i++) {
		enum saved_class of = (enum saved_class)(i % 4);
		uint64_t cost_ns = costs_ns[i / 4], begin_ns = 5 * NS_PER_S, cnt = 0;
		struct saved_rest r = { 0 };

		assert_true(saved_rest_is_over(&r, begin_ns, of));
		for (uint64_t now_ns = begin_ns; now_ns < begin_ns + 199 * cost_ns;
		     now_ns += cost_ns / 10) {
			if (!saved_rest_is_over(&r, now_ns, of))
				continue;
			now_ns += cost_ns;
			cnt++;
			r = (struct saved_rest){ cost_ns, now_ns, of == KEEP_ENDED };
		}
		assert_in_range(cnt, batches[of], batches[of] + 1);
		/* an end after others waits no longer than it has to */
		r.had_ended = false;
		assert_true(saved_rest_is_over(&r, r.end_ns + 10 * cost_ns, KEEP_ENDED));
	}
}

TEST(test_limit)
{
	static const struct {
		uint64_t used, limit, events;
		bool is_reached, is_near;
	} steps[] = {
		{ 50, 100, 7, false, false }, /* events before the first look are not new */
		{ 89, 100, 7, false, false },
		{ 90, 100, 7, true, true },
		{ 95, 100, 7, false, true }, /* said once */
		{ 88, 100, 7, false, true }, /* not far enough back */
		{ 91, 100, 7, false, true },
		{ 84, 100, 7, false, false },
		{ 93, 100, 7, true, true },
		{ 99, 100, 8, true, true }, /* the kernel has told of it */
		{ 99, 100, 8, false, true },
		{ 10, 100, 9, true, false }, /* also of a cgroup that is far from it now */
		{ 99, 0, 9, false, false }, /* the limit was taken away */
	};
	struct saved_limit l = { 0 };

	each_case(c, steps) {
		assert_int_equal(saved_limit_reached(&l, c->used, c->limit, c->events, 0.9),
				 c->is_reached);
		assert_int_equal(l.is_near, c->is_near);
	}
}

TEST(test_victim)
{
	static const size_t order[] = { 3, 2, 4, 1, 0 };
	struct saved_candidate c[] = {
		{ KEEP_RANK_RUNS, 20, 0 },	  { KEEP_RANK_ENDED, 50, 1 },
		{ KEEP_RANK_ENDED_WELL, 300, 2 }, { KEEP_RANK_ENDED_WELL, 200, 3 },
		{ KEEP_RANK_ENDED, 40, 4 },
	};

	qsort(c, 5, sizeof(*c), saved_candidate_order);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(c[i].idx, order[i]);
}

TEST(test_names)
{
	static const struct {
		struct saved_name name;
		const char *file;
	} cases[] = {
		{ { "server", 4711, KEEP_OOM, 0, 1769851812250 },
		  "20260131T093012.250Z-4711-server-oom.pb.gz" },
		{ { "a b/c-d", 1, KEEP_EXIT, 255, 1 },
		  "19700101T000000.001Z-1-a_b_c_d-exit255.pb.gz" },
		{ { "..", 2, KEEP_SIGNAL, 11, 0 }, "19700101T000000.000Z-2-..-signal11.pb.gz" },
		{ { "", 3, KEEP_PEAK, 0, 0 }, "19700101T000000.000Z-3-_-peak.pb.gz" },
		{ { "\xff\n\x01'\"$`;", 2147483647, KEEP_EXEC, 0, 951782400999 },
		  "20000229T000000.999Z-2147483647-________-exec.pb.gz" },
		{ { "sixteen-letters+", 9, KEEP_LIMIT, 0, 951782400999 },
		  "20000229T000000.999Z-9-sixteen_letters+-limit.pb.gz" },
	};

	each_case(c, cases) {
		char file[KEEP_NAME_BYTES];
		struct saved_name back;

		saved_name_format(&c->name, file);
		assert_string_equal(file, c->file);
		assert_int_equal(saved_name_parse(file, &back), 0);
		assert_int_equal(back.pid, c->name.pid);
		assert_int_equal(back.reason, c->name.reason);
		assert_int_equal(back.code, c->name.code);
		assert_int_equal(back.taken_epoch_ms, c->name.taken_epoch_ms);
	}
}

TEST(test_foreign_names)
{
	static const char *const names[] = {
		"",
		"-",
		"notes.txt",
		"20260131T093012.250Z-4711-server-oom.pb.gz.bak",
		"20260131T093012.250Z-4711-server-oom.pb",
		"20260131T093012.250Z-4711-server-oomy.pb.gz",
		"20260131T093012.250Z-4711-server-oom7.pb.gz",
		"20260131T093012.250Z-4711-server-peak7.pb.gz",
		"20260131T093012.250Z-04711-server-oom.pb.gz",
		"20260131T093012.250Z--4711-server-oom.pb.gz",
		"20260131T093012.250Z-4294967297-server-oom.pb.gz",
		"20260231T093012.250Z-4711-server-oom.pb.gz",
		"20260131T086000.250Z-4711-server-oom.pb.gz",
		"20261331T093012.250Z-4711-server-oom.pb.gz",
		"20260131T093012Z-4711-server-oom.pb.gz",
		"20260131T093012.25Z-4711-server-oom.pb.gz",
		" 20260131T093012.250Z-4711-server-oom.pb.gz",
		"20260131T093012.250Z-4711-ser ver-oom.pb.gz",
		"20260131T093012.250Z-4711-../x-oom.pb.gz",
		"20260131T093012.250Z-4711--oom.pb.gz",
		"20260131T093012.250Z-4711-server-exit.pb.gz",
		"20260131T093012.250Z-4711-server-exit+3.pb.gz",
		"20260131T093012.250Z-4711-server-exit99999999999.pb.gz",
		"20260131T093012.250Z-4711-a_very_long_name_of_a_process-oom.pb.gz",
		"server-4711-20260131T081500Z-oom-20260131T093012.250Z.pb.gz",
		"----------",
	};
	struct saved_name n;

	each_case(c, names)
		assert_int_equal(saved_name_parse(*c, &n), -EINVAL);
}

TEST(test_ends)
{
	static const struct {
		uint32_t status;
		enum saved_reason reason;
		uint32_t code;
	} cases[] = {
		{ 0, KEEP_EXIT, 0 },
		{ 0x300, KEEP_EXIT, 3 },
		{ 9, KEEP_SIGNAL, 9 },
		{ 0x80 | 11, KEEP_SIGNAL, 11 }, /* with a core */
		{ 9 | HT_EXIT_OOM, KEEP_OOM, 0 },
	};
	struct saved_name n = { 0 };

	each_case(c, cases) {
		saved_name_set_end(&n, c->status);
		assert_int_equal(n.reason, c->reason);
		assert_int_equal(n.code, c->code);
	}
}

/* The store */

static struct err why;

static struct saved_store *open_store(struct temp_folder *f, bool has_dir, size_t file_max,
				      uint64_t bytes_max)
{
	struct saved_store *s;

	if (saved_store_open(has_dir ? f->path : NULL, file_max, bytes_max, &s, &why))
		fail_msg("%s", why.text);
	return s;
}

static int new_file(size_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(write(fd, "x", 1), 1);
	return fd;
}

static struct saved_name name_of(pid_t pid, enum saved_reason reason, int64_t ms)
{
	return (struct saved_name){
		.comm = "test", .pid = pid, .reason = reason, .taken_epoch_ms = ms
	};
}

static void add(struct saved_store *s, const struct saved_name *n, size_t bytes,
		enum saved_rank rank)
{
	int fd = new_file(bytes), err = 0;

	if (s->dir_fd >= 0)
		err = saved_store_write(s, n, fd);
	assert_int_equal(err, 0);
	assert_int_equal(saved_store_add(s, n, fd, err, 1000, rank), 0);
}

static bool has(const struct saved_store *s, pid_t pid)
{
	const struct kept_file *f;

	vec_each(&s->files, f)
		if (f->name.pid == pid)
			return true;
	return false;
}

static off_t fetched_bytes(const struct saved_store *s, size_t i)
{
	struct stat st;
	int fd;

	assert_true(i < s->files.cnt);
	fd = saved_store_fetch(s, &s->files.data[i]);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_size;
}

TEST_WITH(test_store_bounds, new_folder, remove_folder)
{
	for (int has_dir = 0; has_dir < 2; has_dir++) {
		struct saved_store *s = open_store(*state, has_dir, 3, 1000);
		struct saved_name n;

		for (pid_t pid = 1; pid <= 5; pid++) {
			n = name_of(pid, KEEP_PEAK, 1000 + pid);
			add(s, &n, 100, pid == 1 ? KEEP_RANK_RUNS : KEEP_RANK_ENDED);
		}
		assert_true(has(s, 1) && has(s, 4) && has(s, 5) && !has(s, 2) && !has(s, 3));
		assert_int_equal(fetched_bytes(s, 0), 100);
		/* it ends well, and so is worth least */
		saved_store_set_rank(s, 1, KEEP_RANK_ENDED_WELL);
		saved_store_set_rank(s, 4, KEEP_RANK_ENDED_WELL); /* of an earlier one */
		n = name_of(6, KEEP_SIGNAL, 2000);
		add(s, &n, 800, KEEP_RANK_ENDED);
		assert_true(!has(s, 1) && has(s, 6));
		assert_int_equal(s->stats.cnt, 3);
		assert_int_equal(s->stats.bytes, 1000);
		assert_int_equal(s->stats.removed_cnt, 3);
		assert_int_equal(s->stats.added_cnt, 6);
		assert_int_equal(s->stats.memory_cnt, has_dir ? 0 : 3);
		/* bytes bind, too: one that is larger than all there may be goes itself */
		n = name_of(7, KEEP_SIGNAL, 3000);
		add(s, &n, 1001, KEEP_RANK_ENDED);
		assert_int_equal(s->stats.cnt, 0);
		assert_int_equal(s->stats.bytes, 0);
		saved_store_close(s);
	}
}

/* They become narrower, and wider, while files are kept. */
TEST_WITH(test_store_other_bounds, new_folder, remove_folder)
{
	for (int has_dir = 0; has_dir < 2; has_dir++) {
		struct saved_store *s = open_store(*state, has_dir, 5, 1000);
		struct saved_name n;

		for (pid_t pid = 1; pid <= 5; pid++) {
			n = name_of(pid, KEEP_PEAK, 1000 + pid);
			add(s, &n, 100, KEEP_RANK_ENDED);
		}
		saved_store_set_bounds(s, 4, 1000);
		assert_true(!has(s, 1) && has(s, 2) && has(s, 5));
		saved_store_set_bounds(s, 4, 250);
		assert_true(!has(s, 3) && has(s, 4) && has(s, 5));
		assert_int_equal(s->stats.removed_cnt, 3);
		saved_store_set_bounds(s, 10, 1000);
		n = name_of(6, KEEP_PEAK, 2000);
		add(s, &n, 800, KEEP_RANK_ENDED);
		assert_true(has(s, 4) && has(s, 5) && has(s, 6));
		saved_store_close(s);
	}
}

TEST_WITH(test_store_drop, new_folder, remove_folder)
{
	struct saved_store *s = open_store(*state, true, 10, 1000);
	struct saved_name a = name_of(1, KEEP_PEAK, 1), b = name_of(1, KEEP_PEAK, 2);

	add(s, &a, 10, KEEP_RANK_RUNS);
	add(s, &b, 20, KEEP_RANK_RUNS);
	saved_store_drop(s, &a);
	assert_int_equal(fetched_bytes(s, 0), 20);
	assert_int_equal(s->stats.cnt, 1);
	assert_int_equal(s->stats.removed_cnt, 0);
	saved_store_close(s);
}

/* What an earlier process left counts; what is not ours is neither counted nor touched. */
TEST_WITH(test_store_again, new_folder, remove_folder)
{
	static const char *const foreign[] = { "notes.txt", ".heaptap-kept-notes.tmp",
					       ".heaptap-0123456789abcdef.tmp" };
	static const char stale[] = ".heaptap-kept-0123456789abcdef.tmp";
	struct temp_folder *f = *state;
	struct saved_store *s = open_store(f, true, 10, 1000), *other;
	char path[256];
	struct stat st;

	for (pid_t pid = 1; pid <= 4; pid++) {
		const struct saved_name n = name_of(pid, pid == 3 ? KEEP_EXIT : KEEP_OOM, 10 - pid);

		add(s, &n, 10, KEEP_RANK_RUNS);
	}
	assert_int_equal(saved_store_open(f->path, 10, 1000, &other, &why), -EWOULDBLOCK);
	assert_says(why.text, "in use by another process");
	saved_store_close(s);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", f->path, foreign[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	snprintf(path, sizeof(path), "%s/%s", f->path, stale);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	/* a link under a name of ours is not ours */
	snprintf(path, sizeof(path), "%s/19700101T000000.008Z-8-test-oom.pb.gz", f->path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	s = open_store(f, true, 2, 1000);
	assert_true(has(s, 1) && has(s, 2) && !has(s, 3) && !has(s, 4) && !has(s, 8));
	assert_int_equal(lstat(path, &st), 0);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", f->path, foreign[i]);
		assert_int_equal(stat(path, &st), 0);
	}
	snprintf(path, sizeof(path), "%s/%s", f->path, stale);
	assert_int_equal(stat(path, &st), -1);
	saved_store_close(s);
}

TEST_WITH(test_store_refused, new_folder, remove_folder)
{
	struct temp_folder *f = *state;
	struct saved_store *s;

	assert_int_equal(chmod(f->path, 0770), 0);
	assert_int_equal(saved_store_open(f->path, 10, 1000, &s, &why), -EPERM);
	assert_says(why.text, "others can change the files");
	assert_int_equal(chmod(f->path, 0755), 0);
	assert_int_equal(saved_store_open(f->path, 10, 1000, &s, &why), 0);
	saved_store_close(s);
	assert_int_equal(saved_store_open("/nowhere/at/all", 10, 1000, &s, &why), -ENOENT);
	assert_true(saved_store_open("/proc/self/fdinfo", 10, 1000, &s, &why) < 0);
}

/* Each in memory is an open descriptor. */
TEST_WITH(test_store_memory, new_folder, remove_folder)
{
	struct saved_store *s = open_store(*state, false, 1000, 1 << 20);

	for (pid_t pid = 1; pid <= KEEP_MEMORY_FILES_MAX + 10; pid++) {
		const struct saved_name n = name_of(pid, KEEP_PEAK, pid);

		add(s, &n, 1, KEEP_RANK_ENDED);
	}
	assert_int_equal(s->stats.cnt, KEEP_MEMORY_FILES_MAX);
	assert_int_equal(s->stats.removed_cnt, 10);
	assert_true(!has(s, 10) && has(s, 11));
	saved_store_close(s);
}

/* What the folder would not take is kept in memory, and counted. */
TEST_WITH(test_store_unwritten, new_folder, remove_folder)
{
	struct saved_store *s = open_store(*state, true, 10, 1000);
	const struct saved_name n = name_of(1, KEEP_OOM, 1);

	assert_int_equal(saved_store_add(s, &n, new_file(30), -ENOSPC, 1, KEEP_RANK_ENDED), 0);
	assert_int_equal(s->stats.unwritten_cnt, 1);
	assert_int_equal(s->stats.memory_cnt, 1);
	assert_int_equal(s->stats.memory_bytes, 30);
	assert_int_equal(fetched_bytes(s, 0), 30);
	saved_store_close(s);
}

/* A child that was killed: half a file, a whole one that it had no time to tell of, nothing. */
TEST_WITH(test_store_recover, new_folder, remove_folder)
{
	struct temp_folder *f = *state;
	struct saved_name half = name_of(1, KEEP_EXEC, 1), whole = name_of(2, KEEP_EXEC, 2),
			  none = name_of(3, KEEP_EXEC, 3);
	struct saved_store *s = open_store(f, true, 10, 1000), *later;
	char path[256];
	int fd = keep_fd(new_file(30));

	snprintf(path, sizeof(path), "%s/.heaptap-kept-0123456789abcdef.tmp", f->path);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(saved_store_write(s, &whole, fd), 0);
	assert_false(saved_store_recover(s, &half));
	assert_int_equal(access(path, F_OK), -1);
	assert_true(saved_store_recover(s, &whole));
	assert_false(saved_store_recover(s, &none));
	assert_int_equal(s->stats.cnt, 1);
	assert_int_equal(s->stats.bytes, 30);
	assert_int_equal(s->stats.memory_cnt, 0);
	assert_int_equal(fetched_bytes(s, 0), 30);
	saved_store_close(s);
	/* In memory there is nothing to recover. */
	later = open_store(f, false, 10, 1000);
	assert_false(saved_store_recover(later, &whole));
	saved_store_close(later);
}

TEST(test_worth)
{
	static const enum saved_reason order[] = { KEEP_OOM, KEEP_SIGNAL, KEEP_LIMIT, KEEP_EXIT,
						   KEEP_PEAK };
	struct saved_job jobs[5] = { 0 };

	for (size_t i = 0; i < 5; i++) {
		/* What comes later holds more, which does not count for so much. */
		jobs[4 - i].name = name_of(7, order[i], 0);
		jobs[4 - i].usage.inuse_bytes = i < 2 ? 2 - (double)i : 100 * (double)i;
	}
	qsort(jobs, 5, sizeof(*jobs), saved_job_by_worth);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(jobs[i].name.reason, order[i]);
}

/* Two ends of one process by exec in one batch, and another one at once: three files. */
TEST(test_batch_names)
{
	struct saved_job jobs[2] = { { .fd = -1 }, { .fd = -1 } };
	char files[3][KEEP_NAME_BYTES];
	struct saved_batch batch = { 0 }, *b = &batch;

	jobs[0].name = jobs[1].name = name_of(7, KEEP_EXEC, 0);
	for (size_t turn = 0; turn < 2; turn++) {
		saved_batch_set(b, jobs, 2 - turn);
		assert_int_equal(saved_batch_open_files(b, 5 * (int64_t)NS_PER_S), 0);
		for (size_t i = 0; i < b->job_cnt; i++)
			saved_name_format(&b->jobs[i].name, files[2 * turn + i]);
		saved_batch_clear(b);
	}
	assert_string_not_equal(files[0], files[1]);
	assert_string_not_equal(files[0], files[2]);
	assert_string_not_equal(files[1], files[2]);
	/* A clock that was set back is believed. */
	saved_batch_set(b, jobs, 1);
	assert_int_equal(saved_batch_open_files(b, NS_PER_S), 0);
	assert_int_equal(b->jobs[0].name.taken_epoch_ms, 1000);
	saved_batch_clear(b);
}

static void add_ended(struct saved_ended *ke, struct tracker *t, enum saved_reason reason, int cnt)
{
	static pid_t pid;

	for (int i = 0; i < cnt; i++) {
		const struct saved_job job = { .name = { .pid = ++pid, .reason = reason },
					       .usage = { .inuse_bytes = i } };

		saved_ended_add(ke, t, &job);
	}
}

/* What waits is held in the maps. Of many that end well, those wait that are worth most and are made at once. */
TEST(test_waiting)
{
	static const struct reclaim_ops none;
	struct saved_ended ke = { 0 };
	struct tracker t = { 0 };
	const struct saved_job *j;

	hmap_init(&t.pinned, sizeof(uint64_t));
	assert_int_equal(reclaim_new(NULL, &none, NULL, 0, &t.reclaim), 0);
	saved_ended_init(&ke);
	add_ended(&ke, &t, KEEP_EXIT, 100);
	assert_int_equal(ke.jobs.cnt, KEEP_BATCH_CAP);
	assert_int_equal(ke.skipped_cnt, 100 - KEEP_BATCH_CAP);
	vec_each(&ke.jobs, j)
		assert_true(j->usage.inuse_bytes >= 100 - KEEP_BATCH_CAP);
	add_ended(&ke, &t, KEEP_SIGNAL, 40); /* evidence: all wait, and nobody goes for them */
	assert_int_equal(ke.jobs.cnt, KEEP_BATCH_CAP + 40);
	add_ended(&ke, &t, KEEP_EXIT, 1);
	assert_int_equal(ke.jobs.cnt, KEEP_BATCH_CAP + 40);
	assert_int_equal(t.pinned.cnt, ke.jobs.cnt);
	vec_release(&ke.jobs);
	hmap_release(&t.pinned);
	reclaim_free(t.reclaim);
}

RUN_TESTS()
