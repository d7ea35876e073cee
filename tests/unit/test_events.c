/* SPDX-License-Identifier: MIT */
/* test_events.c - executable mappings of other processes are reported, soon, and only those. */
#include "unit.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "proc/events.h"

/* Part of glibc, and nothing links against it. */
#define RARE_LIBRARY "libBrokenLocale.so.1"

struct seen {
	pid_t pid;
	const char *path_part;
	uint32_t cnt, code_cnt;
	uint64_t time_ns, mapped_ns, ino, bytes;
	uint32_t dev;
	uint64_t lost;
};

static void on_mmap(void *ctx, const struct process_events_map *map)
{
	struct seen *seen = ctx;

	if (map->pid != seen->pid || !strstr(map->path, seen->path_part))
		return;
	if (!seen->cnt++) {
		seen->time_ns = now_ns();
		seen->mapped_ns = map->time_ns;
		seen->ino = map->ino;
		seen->dev = map->dev;
		seen->bytes = map->bytes;
	}
}

static void on_code(void *ctx, pid_t pid)
{
	struct seen *seen = ctx;

	seen->code_cnt += pid == seen->pid;
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct seen *seen = ctx;

	seen->lost += cnt;
}

static const struct process_events_ops ops = { .on_mmap = on_mmap,
					       .on_code = on_code,
					       .on_lost = on_lost };

/* Until it has been seen, or for timeout_ms. */
static void wait_for(struct process_events *ev, struct seen *seen, int timeout_ms)
{
	uint64_t end_ns = now_ns() + (uint64_t)timeout_ms * 1000000u;

	while (!seen->cnt && now_ns() < end_ns) {
		struct pollfd pfd = { .fd = process_events_fd(ev), .events = POLLIN };
		int left_ms = (int)((end_ns - now_ns()) / 1000000u) + 1;

		/* woken, not polling: a fd that never becomes readable fails the test */
		if (poll(&pfd, 1, left_ms) > 0)
			assert_int_equal(process_events_drain(ev), 0);
	}
}

static struct process_events *open_or_skip(struct seen *seen)
{
	struct process_events *ev = NULL;
	int err = process_events_open(&ops, seen, &ev);

	if (err == -EACCES || err == -EPERM)
		skip();
	assert_int_equal(err, 0);
	return ev;
}

/* A child that waits for a byte, runs fn, and waits to be told to end. */
struct child {
	pid_t pid;
	int to_child, from_child;
};

static struct child start_child(uint64_t (*fn)(void))
{
	int down[2], up[2];
	struct child child;
	uint64_t result;
	char byte;

	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(down[1]);
		if (read(down[0], &byte, 1) == 1) {
			result = fn();
			if (write(up[1], &result, sizeof(result)) != sizeof(result))
				_exit(1);
		}
		while (read(down[0], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	child.to_child = down[1];
	child.from_child = up[0];
	return child;
}

static uint64_t child_run(struct child *child)
{
	uint64_t result = 0;

	assert_int_equal(write(child->to_child, "g", 1), 1);
	assert_int_equal(read(child->from_child, &result, sizeof(result)), sizeof(result));
	return result;
}

static void child_end(struct child *child)
{
	close(child->to_child);
	close(child->from_child);
	waitpid(child->pid, NULL, 0);
}

/* The time at which it asked for the library. */
static uint64_t do_dlopen(void)
{
	uint64_t start_ns = now_ns();

	return dlopen(RARE_LIBRARY, RTLD_NOW) ? start_ns : 0;
}

TEST(test_dlopen_is_seen)
{
	struct seen seen = { .path_part = RARE_LIBRARY };
	struct process_events *ev = open_or_skip(&seen);
	struct child child = start_child(do_dlopen);
	uint64_t start_ns;
	double ms;

	seen.pid = child.pid;
	start_ns = child_run(&child);
	if (!start_ns) {
		child_end(&child);
		process_events_close(ev);
		skip();
	}
	wait_for(ev, &seen, 2000);
	child_end(&child);
	process_events_close(ev);
	assert_int_equal(seen.cnt, 1); /* its text, not its data */
	ms = (double)(seen.time_ns - start_ns) / 1e6;
	printf("# dlopen seen after %.2f ms\n", ms);
	assert_true(ms < 500);
	assert_in_range(seen.mapped_ns, start_ns, seen.time_ns);
}

static char map_path[] = "/tmp/heaptap-test-events-XXXXXX";

/* Three mappings of one file: read-only, private executable, made executable later. And memory, twice. */
static uint64_t do_mappings(void)
{
	int fd = open(map_path, O_RDONLY);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *late;

	if (mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
	    mmap(NULL, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 0;
	late = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (late == MAP_FAILED || mprotect(late, page, PROT_READ | PROT_EXEC))
		return 0;
	if (mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		return 0;
	late = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (late == MAP_FAILED || mprotect(late, page, PROT_READ | PROT_EXEC))
		return 0;
	return 1;
}

TEST(test_only_executable_files)
{
	struct seen seen = { .path_part = "heaptap-test-events" };
	struct process_events *ev = open_or_skip(&seen);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct child child;
	struct stat st;
	int fd;

	fd = mkstemp(map_path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page)), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	child = start_child(do_mappings);
	seen.pid = child.pid;
	assert_int_equal(child_run(&child), 1);
	wait_for(ev, &seen, 2000);
	process_events_drain(ev);
	child_end(&child);
	unlink(map_path);
	process_events_close(ev);
	assert_int_equal(seen.cnt, 2);
	assert_int_equal(seen.code_cnt, 2);
	assert_int_equal(seen.ino, st.st_ino);
	assert_int_equal(seen.bytes, 2 * page);
}

/* 20 000 mappings while nobody reads: far more than the ring holds. */
static uint64_t do_storm(void)
{
	int i, fd = open("/proc/self/exe", O_RDONLY);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (i = 0; i < 20000; i++) {
		void *p = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			return 0;
		munmap(p, page);
	}
	return 1;
}

TEST(test_losses_are_told)
{
	struct seen seen = { .path_part = "test_events" };
	struct process_events *ev = open_or_skip(&seen);
	struct child child = start_child(do_storm);
	uint32_t first_cnt;

	seen.pid = child.pid;
	assert_int_equal(child_run(&child), 1);
	wait_for(ev, &seen, 2000);
	first_cnt = seen.cnt;
	assert_true(first_cnt > 100);
	/* the kernel tells of a loss with the next record that fits */
	child_end(&child);
	child = start_child(do_dlopen);
	seen.pid = child.pid;
	seen.cnt = 0;
	seen.path_part = "";
	child_run(&child);
	child_end(&child);
	/* which CPU it ran on is not ours to say: keep them all busy for a moment */
	for (int i = 0; i < 200 && !seen.lost; i++) {
		child = start_child(do_dlopen);
		child_run(&child);
		child_end(&child);
		process_events_drain(ev);
	}
	process_events_close(ev);
	assert_true(seen.lost > 0);
	printf("# %u records read, %llu told as lost\n", first_cnt, (unsigned long long)seen.lost);
}

RUN_TESTS()
