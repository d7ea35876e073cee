/* SPDX-License-Identifier: MIT */
/* test_push_spool.c - the spool: order, bounds, files, damaged ones, full disks, other processes. */
#include "child.h"

#include <dirent.h>
#include <sys/mount.h>

#include "serve/push_queue.h"
#include "temp_folder.h"

static struct push_spool *open_spool(const char *dir, size_t cnt_max, uint64_t bytes_max,
				     uint64_t memory)
{
	const struct push_spool_options opts = { dir, cnt_max, bytes_max, memory };
	struct push_spool *s;

	assert_int_equal(push_spool_open(&opts, &s), 0);
	return s;
}

/* Request n: its bytes tell its number. */
static int add(struct push_spool *s, uint8_t n, size_t bytes)
{
	uint8_t *data = malloc(bytes);

	memset(data, n, bytes);
	return push_spool_add(s, data, bytes);
}

/* The oldest one's number, which goes; -1: none. */
static int take(struct push_spool *s)
{
	uint8_t *data;
	uint64_t seq;
	size_t n;
	int number;

	if (push_spool_first(s, &data, &n, &seq))
		return -1;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(data[i], data[0]);
	number = data[0];
	free(data);
	assert_true(push_spool_drop(s, seq));
	return number;
}

static size_t file_cnt(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *d;
	size_t n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir)))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

TEST(first_in_first_out)
{
	struct push_spool *s = open_spool(NULL, 1000, 1 << 20, 0);
	struct push_spool_stats stats;

	assert_int_equal(take(s), -1);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 200; i++)
			assert_int_equal(add(s, i, 10 + i), 0);
		for (int i = 0; i < 200; i++)
			assert_int_equal(take(s), i);
	}
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 0);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(stats.dropped_cnt, 0);
	push_spool_close(s);
}

TEST(the_oldest_go_first)
{
	struct push_spool *s = open_spool(NULL, 3, 1 << 20, 0);
	struct push_spool_stats stats;

	for (int i = 0; i < 10; i++)
		assert_int_equal(add(s, i, 10), 0);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 3);
	assert_int_equal(stats.bytes, 30);
	assert_int_equal(stats.dropped_cnt, 7);
	assert_int_equal(take(s), 7);
	push_spool_close(s);
	s = open_spool(NULL, 100, 100, 0);
	assert_int_equal(add(s, 1, 60), 0);
	assert_int_equal(add(s, 2, 40), 0);
	assert_int_equal(add(s, 3, 41), 0);
	assert_int_equal(add(s, 4, 101), -E2BIG);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 2);
	assert_int_equal(stats.dropped_cnt, 2);
	assert_int_equal(take(s), 2);
	assert_int_equal(take(s), 3);
	push_spool_close(s);
}

/* The one under way is dropped for room: its end must not take the next one with it. */
TEST(one_that_went_while_it_was_sent)
{
	struct push_spool *s = open_spool(NULL, 2, 1 << 20, 0);
	uint8_t *data;
	uint64_t seq;
	size_t n;

	add(s, 1, 10);
	add(s, 2, 10);
	assert_int_equal(push_spool_first(s, &data, &n, &seq), 0);
	add(s, 3, 10);
	assert_int_equal(data[0], 1);
	free(data);
	assert_false(push_spool_drop(s, seq));
	assert_int_equal(take(s), 2);
	assert_int_equal(take(s), 3);
	push_spool_close(s);
}

TEST_WITH(memory_first_then_files, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	struct push_spool *s = open_spool(f->path, 100, 1 << 20, 100);
	struct push_spool_stats stats;

	for (int i = 0; i < 3; i++)
		assert_int_equal(add(s, i, 30), 0);
	assert_int_equal(file_cnt(f->path), 0);
	assert_int_equal(add(s, 3, 30), 0); /* the oldest goes to its file */
	assert_int_equal(file_cnt(f->path), 1);
	push_spool_settle(s);
	assert_int_equal(file_cnt(f->path), 4);
	assert_int_equal(add(s, 4, 30), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(file_cnt(f->path), 0);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 0);
	assert_int_equal(stats.bytes, 0);
	push_spool_close(s);
}

TEST_WITH(a_later_process_goes_on, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	struct push_spool *s = open_spool(f->path, 100, 1 << 20, 1 << 20);
	struct push_spool_stats stats;
	struct stat st;
	char path[128];

	for (int i = 0; i < 20; i++)
		assert_int_equal(add(s, i, 1000 * i + 1), 0);
	assert_int_equal(take(s), 0);
	push_spool_close(s);
	assert_int_equal(file_cnt(f->path), 19);
	snprintf(path, sizeof(path), "%s/0000000000000001.push", f->path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	s = open_spool(f->path, 10, 1 << 20, 1 << 20);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 10);
	assert_int_equal(stats.dropped_cnt, 9);
	assert_int_equal(add(s, 20, 5), 0);
	for (int i = 11; i <= 20; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), -1);
	push_spool_close(s);
	assert_int_equal(file_cnt(f->path), 0);
}

static void write_at(const char *dir, const char *name, off_t at, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
	close(fd);
}

TEST_WITH(damaged_files_are_passed_over, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	struct push_spool *s = open_spool(f->path, 100, 1 << 20, 1 << 20);
	struct push_spool_stats stats;
	char path[128];

	for (int i = 0; i < 6; i++)
		assert_int_equal(add(s, i, 100), 0);
	push_spool_close(s);
	write_at(f->path, "0000000000000000.push", 60, "x"); /* the content */
	write_at(f->path, "0000000000000001.push", 0, "y"); /* the magic */
	write_at(f->path, "0000000000000002.push", 124, "longer");
	snprintf(path, sizeof(path), "%s/0000000000000003.push", f->path);
	assert_int_equal(truncate(path, 50), 0);
	snprintf(path, sizeof(path), "%s/0000000000000004.push", f->path);
	assert_int_equal(truncate(path, 3), 0);
	snprintf(path, sizeof(path), "%s/0000000000000009.push", f->path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	write_at(f->path, ".heaptap-push-0123456789abcdef.tmp", 0, "half");
	write_at(f->path, "README", 0, "not ours");
	s = open_spool(f->path, 100, 1 << 20, 1 << 20);
	assert_int_equal(take(s), 5);
	assert_int_equal(take(s), -1);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.corrupt_cnt, 6);
	assert_int_equal(stats.cnt, 0);
	assert_int_equal(stats.bytes, 0);
	push_spool_close(s);
	assert_int_equal(file_cnt(f->path), 1); /* README */
}

TEST_WITH(one_process_at_a_time, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	const struct push_spool_options opts = { f->path, 10, 1000, 1000 };
	struct push_spool *s = open_spool(f->path, 10, 1000, 1000), *second = NULL;
	pid_t child;

	assert_int_equal(push_spool_open(&opts, &second), -EBUSY);
	/* A child that was forked meanwhile, and has a copy of all descriptors, does not hold it. */
	child = start_idle();
	push_spool_close(s);
	assert_int_equal(push_spool_open(&opts, &second), 0);
	end_child(child);
	push_spool_close(second);
}

TEST(folders_that_are_none)
{
	struct push_spool_options opts = { "/nonexistent/spool", 10, 1000, 1000 };
	struct push_spool *s = NULL;

	assert_int_equal(push_spool_open(&opts, &s), -ENOENT);
	opts.dir = "/etc/passwd";
	assert_int_equal(push_spool_open(&opts, &s), -ENOTDIR);
	assert_null(s);
}

/* Root only: a file system of 64 KiB. */
TEST_WITH(a_full_disk, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	struct push_spool_stats stats;
	struct push_spool *s;
	int number, last = -1;

	if (mount("none", f->path, "tmpfs", MS_NODEV, "size=64k,mode=700"))
		skip();
	s = open_spool(f->path, 1000, 1 << 20, 30000);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(add(s, i, 10000), 0);
		push_spool_stats(s, &stats);
		/* One that comes takes the place of one, not of all. */
		assert_true(stats.cnt >= (i < 7 ? (size_t)i + 1 : 7));
	}
	push_spool_settle(s);
	push_spool_stats(s, &stats);
	/* What the disk and the memory hold is there, all else is counted; nothing is half. */
	assert_in_range(stats.cnt, 7, 9);
	assert_int_equal(stats.cnt + stats.dropped_cnt, 40);
	assert_true(stats.unwritten_cnt > 0);
	assert_int_equal(stats.bytes, stats.cnt * 10000);
	for (size_t i = 0; i < stats.cnt; i++) {
		number = take(s);
		assert_true(number > last);
		last = number;
	}
	assert_int_equal(last, 39);
	assert_int_equal(take(s), -1);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.corrupt_cnt, 0);
	push_spool_close(s);
	assert_int_equal(file_cnt(f->path), 0);
	assert_int_equal(umount(f->path), 0);
}

/* Root only. Nothing is won by forgetting what is there already. */
TEST_WITH(a_disk_that_cannot_be_written, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	struct push_spool_stats stats;
	struct push_spool *s;

	if (mount("none", f->path, "tmpfs", MS_NODEV, "size=64k,mode=700"))
		skip();
	s = open_spool(f->path, 1000, 1 << 20, 30);
	for (int i = 0; i < 5; i++)
		assert_int_equal(add(s, i, 10), 0); /* two are in files */
	assert_int_equal(mount("none", f->path, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	for (int i = 5; i < 10; i++)
		assert_int_equal(add(s, i, 10), 0);
	push_spool_stats(s, &stats);
	assert_int_equal(stats.cnt, 5);
	assert_int_equal(stats.bytes, 50);
	assert_int_equal(stats.dropped_cnt, 5);
	assert_int_equal(stats.unwritten_cnt, 5);
	assert_int_equal(mount("none", f->path, NULL, MS_REMOUNT, NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(take(s), i);
	for (int i = 7; i < 10; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), -1);
	push_spool_close(s);
	assert_int_equal(umount(f->path), 0);
}

RUN_TESTS()
