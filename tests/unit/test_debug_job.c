/* SPDX-License-Identifier: MIT */
/* test_debug_job.c - a reduced file comes out of the job as debug_only.h makes it; what is no such file is told apart. */
#include "unit.h"

#include "elf/debug_only.h"
#include "elf/elf_file.h"
#include "proc/reader.h"
#include "serve/debuginfo_upload.h"
#include "serve/pushes.h"
#include "track/file.h"

static struct reader *by_reader;

static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	return kind == DEBUG_JOB ? debug_job_run(fd, args, args_bytes, out_fd) : 1;
}

TEST(the_file_comes_through_a_pipe)
{
	struct track_file file = { .path = (char *)"/proc/self/exe", .root = (char *)"" };
	struct debug_only *d = NULL;
	struct debuginfo_file got;
	struct elf_file *ef = NULL;
	uint8_t *want, *is;
	size_t at = 0;
	ssize_t n;

	file.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open_fd(file.fd, &ef), 0);
	assert_int_equal(debug_only_new(ef, &d), 0);
	elf_file_close(ef);
	assert_int_equal(debug_job_start(by_reader, &file, &got), 0);
	assert_true(got.bytes == debug_only_bytes(d) && got.hash == debug_only_hash(d));
	want = malloc(got.bytes);
	is = malloc(got.bytes + 1);
	assert_int_equal(debug_only_read(d, file.fd, 0, want, got.bytes), got.bytes);
	while ((n = read(got.fd, is + at, got.bytes + 1 - at)) > 0)
		at += (size_t)n;
	assert_int_equal(at, got.bytes);
	assert_memory_equal(is, want, at);
	close(got.fd);
	close(file.fd);
	debug_only_free(d);
	free(want);
	free(is);
}

TEST(who_stops_reading_ends_the_job)
{
	struct track_file file = { .path = (char *)"/proc/self/exe", .root = (char *)"" };
	struct debuginfo_file got;

	file.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	/* more of them than there may be at once */
	for (int i = 0; i < 3 * READER_JOBS_OF_USER_CAP; i++) {
		int err = debug_job_start(by_reader, &file, &got);

		for (int k = 0; k < 200 && err == -EAGAIN; k++) {
			usleep(10000);
			err = debug_job_start(by_reader, &file, &got);
		}
		assert_int_equal(err, 0);
		close(got.fd);
	}
	close(file.fd);
}

TEST(what_has_no_names)
{
	struct track_file file = { .path = (char *)"/etc/passwd", .root = (char *)"" };
	struct debuginfo_file got;

	file.fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_int_equal(debug_job_start(by_reader, &file, &got), -ENODATA);
	close(file.fd);
}

static int set_up(void **state)
{
	return reader_start(READER_PATIENT_MS, run_job, &by_reader);
}

static int tear_down(void **state)
{
	reader_end(by_reader);
	return 0;
}

RUN_TESTS_WITH(set_up, tear_down)
