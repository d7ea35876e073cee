/* SPDX-License-Identifier: MIT */
/* test_rows_reader.c - a child reads what is resident of another process, beside its parent; what it cannot read is unknown. */
#include "child.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "proc/reader.h"
#include "record/rows_reader.h"

static struct reader *by_reader;

#define MAPPED_BYTES (48 << 20)
#define NO_PROCESS 4000000
#define MAPPING_CNT 40000
#define MOST_NS (6 * NS_PER_S)

/* It has so much, as one mapping, or as many. */
static void map(size_t cnt)
{
	const size_t page = 4096, bytes = cnt > 1 ? cnt * page : MAPPED_BYTES;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, bytes);
	for (size_t i = 1; i < cnt; i += 2)
		if (mprotect(p + i * page, page, PROT_READ))
			_exit(1);
}

/* A process that has mapped that, and waits. */
static pid_t start_with(size_t mapping_cnt)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		map(mapping_cnt);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static pid_t start(void)
{
	return start_with(1);
}

static void wait_for(struct rows_reader *r)
{
	while (!rows_reader_work(r))
		usleep(1000);
}

TEST(test_reads)
{
	struct rows_reader r = { 0 };
	pid_t pid = start();
	int64_t sum = 0, unowned = 0;

	rows_reader_begin(&r, pid, MAPPED_BYTES, MOST_NS, NULL);
	wait_for(&r);
	assert_true(r.is_over && !r.child.child);
	if (!r.answer.is_known)
		fail_msg("not known: %s", r.answer.why);
	for (uint32_t i = 0; i < r.answer.row_cnt; i++) {
		sum += r.answer.rows[i].bytes;
		if (r.answer.rows[i].kind == RESIDENT_UNOWNED)
			unowned += r.answer.rows[i].bytes;
	}
	assert_int_equal(sum, r.answer.rss_bytes);
	assert_true(unowned >= MAPPED_BYTES);
	end_child(pid);
}

static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	assert_int_equal(kind, ROWS_READER_JOB);
	assert_int_equal(fd, -1);
	return rows_reader_run_job(args, args_bytes, out_fd);
}

/* For serve the reader's child reads: main has no child, and does not wait for it. */
TEST(test_reads_by_job)
{
	struct rows_reader r = { 0 };
	pid_t pid = start();
	int64_t sum = 0;

	assert_int_equal(reader_start(READER_PATIENT_MS, run_job, &by_reader), 0);
	assert_false(rows_reader_is_at_work(&r));
	rows_reader_begin_job(&r, by_reader, getuid(), pid, MAPPED_BYTES);
	assert_true(rows_reader_is_at_work(&r));
	wait_for(&r);
	assert_true(r.is_over && !r.is_late && !rows_reader_is_at_work(&r));
	if (!r.answer.is_known)
		fail_msg("not known: %s", r.answer.why);
	for (uint32_t i = 0; i < r.answer.row_cnt; i++)
		sum += r.answer.rows[i].bytes;
	assert_int_equal(sum, r.answer.rss_bytes);
	assert_true(sum >= MAPPED_BYTES);
	assert_true(r.answer.cpu_ns && r.answer.cpu_ns < 10 * NS_PER_S);
	rows_reader_begin_job(&r, by_reader, getuid(), NO_PROCESS, 0);
	wait_for(&r);
	assert_true(!r.answer.is_known && strstr(r.answer.why, "4000000"));
	/* one that is stopped does not answer in time; the others still do */
	rows_reader_begin_job(&r, by_reader, getuid(), pid, MAPPED_BYTES);
	r.deadline_ns = 0;
	assert_true(rows_reader_work(&r));
	assert_true(r.is_late || r.answer.is_known);
	reader_end(by_reader);
	end_child(pid);
}

TEST(test_is_unknown)
{
	struct rows_reader r = { 0 };
	struct resident_reading reading;
	pid_t pid;

	rows_reader_read(NO_PROCESS, NULL, NS_PER_S, &reading);
	assert_false(reading.is_known);
	rows_reader_begin(&r, NO_PROCESS, 0, MOST_NS, NULL);
	wait_for(&r);
	assert_false(r.answer.is_known);
	assert_string_equal(r.answer.why, reading.why);
	assert_says(r.answer.why, "4000000");

	/* one that was not begun, and one that is given up */
	memset(&r, 0, sizeof(r));
	rows_reader_give_up(&r, "it ended");
	assert_string_equal(r.answer.why, "it ended");
	assert_true(rows_reader_work(&r));
	pid = start();
	rows_reader_begin(&r, pid, MAPPED_BYTES, MOST_NS, NULL);
	rows_reader_give_up(&r, "enough");
	assert_true(r.is_over && !r.answer.is_known);
	wait_for(&r);
	rows_reader_give_up(&r, "too late");
	assert_string_equal(r.answer.why, "enough");
	end_child(pid);
}

/* The size is known at once, and stays known if the rows cannot be read in time. */
TEST(test_size_alone)
{
	struct rows_reader r = { 0 };
	pid_t pid = start_with(MAPPING_CNT);

	rows_reader_begin(&r, pid, MAPPED_BYTES, NS_PER_S / 10, NULL);
	wait_for(&r);
	assert_false(r.answer.is_known);
	assert_says(r.answer.why, "too many mappings to read them in time");
	assert_int_equal(r.answer.rss_bytes, MAPPED_BYTES);
	rows_reader_begin(&r, pid, MAPPED_BYTES, MOST_NS, NULL);
	rows_reader_give_up(&r, "the recording ended before the reading");
	assert_false(r.answer.is_known);
	assert_int_equal(r.answer.rss_bytes, MAPPED_BYTES);
	end_child(pid);
}

/* A child that answers too much, or something else, or nothing at all. */
TEST(test_does_not_believe)
{
	static const struct {
		size_t bytes;
		bool closes;
		const char *why;
	} cases[] = {
		{ 0, true, "crashed" },
		{ 100, true, "crashed" },
		{ sizeof(struct resident_reading), true, "contradict" },
		{ 3 * sizeof(struct resident_reading), false, "in time" },
		{ 100, false, "in time" },
	};

	each_case(c, cases) {
		struct rows_reader r = { .deadline_ns = now_ns() + NS_PER_S / 5 };
		pid_t pid = start();
		char byte = '\x7f';
		int fd[2];

		assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
		r.child = (struct sandbox_reading){ .child = pid, .fd = fd[0] };
		for (size_t k = 0; k < c->bytes; k++)
			assert_int_equal(write(fd[1], &byte, 1), 1);
		if (c->closes)
			close(fd[1]);
		wait_for(&r);
		assert_false(r.answer.is_known);
		if (!strstr(r.answer.why, c->why))
			fail_msg("case %zu: %s", (size_t)(c - cases), r.answer.why);
		if (!c->closes)
			close(fd[1]);
	}
}

RUN_TESTS()
