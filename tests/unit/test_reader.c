/* SPDX-License-Identifier: MIT */
/*
 * test_reader.c - what is read by another process is what is read directly, and nobody waits for one who
 * does not answer.
 *
 * Such a one is a child with a page that a userfaultfd has, and that is never filled.
 */
#include "child.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "proc/process.h"
#include "proc/reader_priv.h"

#define WAIT_MS 100
/* On a machine that does other things too. */
#define SOON_NS (3 * NS_PER_S)

static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	char text[16] = "";

	if (kind == 2)
		for (;;)
			pause();
	if (fd >= 0 && pread(fd, text, 4, 0) != 4)
		return 1;
	return write(out_fd, args, args_bytes) == (ssize_t)args_bytes &&
			       write(out_fd, text, strlen(text)) == (ssize_t)strlen(text) ?
		       0 :
		       1;
}

static struct reader *by_reader;

static int begin(void **state)
{
	return reader_start(WAIT_MS, run_job, &by_reader);
}

static int end(void **state)
{
	reader_end(by_reader);
	by_reader = NULL;
	return 0;
}

static bool is_reader(pid_t pid)
{
	char path[64], comm[32] = "", state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%31[^)]) %c", comm, &state) != 2)
		comm[0] = '\0';
	fclose(f);
	return !strcmp(comm, "heaptap-reader") && state != 'Z';
}

/* The child that is called heaptap-reader, and has had the time to call itself so; not `but`, which may have been killed and
 * not be dead yet. */
static pid_t find_reader_but(pid_t but)
{
	char path[64];
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	for (int tries = 0; tries < 200 && !pid; tries++) {
		FILE *list = fopen(path, "re");

		assert_non_null(list);
		while (fscanf(list, "%d", &pid) == 1 && (pid == but || !is_reader(pid)))
			pid = 0;
		fclose(list);
		if (!pid)
			usleep(10000);
	}
	return pid;
}

static pid_t find_reader(void)
{
	return find_reader_but(0);
}

static const char secret[] = "what is in memory";

/* The kernel does not have to copy a page that is shared with a forked process. */
TEST_WITH(it_copies_nothing, begin, end)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0, exclusive = 1ULL << 56, present = 1ULL << 63;
	char c = 0;
	pid_t child;

	assert_true(page != MAP_FAILED && fd >= 0);
	*page = 7;
	child = start_idle();
	assert_int_equal(process_memory_read(by_reader, getpid(), (uintptr_t)page, &c, 1), 0);
	assert_int_equal(c, 7);
	assert_int_equal(pread(fd, &entry, 8, (off_t)((uintptr_t)page / 4096 * 8)), 8);
	end_child(child);
	assert_true((entry & (present | exclusive)) == present);
	close(fd);
	munmap(page, 4096);
}

TEST_WITH(it_reads_the_same, begin, end)
{
	struct process_info away, here, image;
	struct proc_maps maps;
	struct file_facts facts;
	const struct proc_map *m;
	char buf[sizeof(secret)] = "", *large, *env;
	size_t bytes, cnt;
	int fd;

	assert_true(reader_is_ours(by_reader));
	assert_int_equal(process_info_read(by_reader, getpid(), &away), 0);
	assert_int_equal(process_image_read(by_reader, getpid(), &image), 0);
	assert_int_equal(process_image_read(by_reader, 1 << 30, &here), -ESRCH);
	assert_int_equal(proc_maps_read(by_reader, getpid(), 0, &maps), 0);
	assert_int_equal(
		process_memory_read(by_reader, getpid(), (uintptr_t)secret, buf, sizeof(buf)), 0);
	assert_string_equal(buf, secret);
	/* more than goes into a message */
	large = malloc(1 << 20);
	assert_non_null(large);
	m = proc_maps_find(&maps, (uintptr_t)secret);
	assert_non_null(m);
	memset(large, 7, 1 << 20);
	assert_int_equal(process_memory_read(by_reader, getpid(), (uintptr_t)large, large, 1 << 20),
			 0);
	assert_int_equal(large[(1 << 20) - 1], 7);
	free(large);
	assert_int_equal(process_memory_read(by_reader, getpid(), 4096, buf, 8), -EFAULT);
	fd = process_open_map(by_reader, getpid(), 0, m, &facts);
	assert_true(fd >= 0);
	assert_true(facts.bytes > 1000);
	assert_false(facts.is_foreign);
	close(fd);
	assert_int_equal(process_read_environ(by_reader, getpid(), &env, &bytes), 0);
	assert_true(bytes > 0 && env[bytes - 1] == '\0');
	free(env);
	assert_int_equal(process_has_own_root(by_reader, getpid()), 0);
	cnt = maps.maps.cnt;
	proc_maps_release(&maps);
	assert_int_equal(process_info_read(by_reader, 1 << 30, &here), -ESRCH);
	assert_int_equal(proc_maps_read(by_reader, 1 << 30, 0, &maps), -ESRCH);

	reader_end(by_reader);
	by_reader = NULL;
	assert_int_equal(process_info_read(NULL, getpid(), &here), 0);
	assert_string_equal(here.exe, away.exe);
	assert_string_equal(here.exe, image.exe);
	assert_int_equal(here.live_tid, image.live_tid);
	assert_string_equal(here.comm, away.comm);
	assert_true(here.start_time_ticks == away.start_time_ticks && here.uid == away.uid);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	/* a sanitizer maps some dozens more for its own needs */
	assert_true(maps.maps.cnt + 200 > cnt && cnt + 200 > maps.maps.cnt);
	proc_maps_release(&maps);
	assert_int_equal(begin(NULL), 0);
}

/* A page of its memory is where *ret_addr says. 0: not allowed here. */
static pid_t start_mute(uint64_t *ret_addr)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct uffdio_api api = { .api = UFFD_API };
		struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
		int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
		uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t addr = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		reg.range.start = (uintptr_t)page;
		reg.range.len = 4096;
		if (fd >= 0 && page != MAP_FAILED && !ioctl(fd, UFFDIO_API, &api) &&
		    !ioctl(fd, UFFDIO_REGISTER, &reg))
			addr = (uintptr_t)page;
		if (write(ready[1], &addr, sizeof(addr)) != sizeof(addr))
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], ret_addr, sizeof(*ret_addr)), sizeof(*ret_addr));
	close(ready[0]);
	if (*ret_addr)
		return pid;
	end_child(pid);
	return 0;
}

TEST_WITH(nobody_waits_for_one_who_does_not_answer, begin, end)
{
	uint64_t addr, begin_ns, first_ns;
	struct process_info info;
	char buf[8];
	pid_t mute = start_mute(&addr), reader = find_reader();

	if (!mute)
		skip();
	assert_true(reader > 0);
	begin_ns = now_ns();
	assert_int_equal(process_memory_read(by_reader, mute, addr, buf, sizeof(buf)), -ETIMEDOUT);
	first_ns = now_ns() - begin_ns;
	assert_true(first_ns >= WAIT_MS * NS_PER_MS && first_ns < SOON_NS);
	assert_int_equal(reader_lost_cnt(by_reader), 1);
	/* He is left alone for a while... */
	begin_ns = now_ns();
	assert_int_equal(process_info_read(by_reader, mute, &info), -ETIMEDOUT);
	assert_true(now_ns() - begin_ns < WAIT_MS * NS_PER_MS);
	/* ... and others are read. */
	assert_int_equal(process_info_read(by_reader, getpid(), &info), 0);
	assert_true(find_reader_but(reader) > 0);
	/* He is tried again. */
	usleep(1100000);
	assert_int_equal(process_info_read(by_reader, mute, &info), 0);
	end_child(mute);
}

/* Each takes less than the one before: together they take a bounded share of the time. */
TEST_WITH(many_take_no_more_than_a_share, begin, end)
{
	enum { CNT = 30 };
	pid_t mute[CNT];
	uint64_t addr, begin_ns, took_ns = 0;
	char buf[8];

	for (int i = 0; i < CNT; i++) {
		mute[i] = start_mute(&addr);
		if (!mute[i])
			skip();
		begin_ns = now_ns();
		assert_int_equal(process_memory_read(by_reader, mute[i], addr, buf, sizeof(buf)),
				 -ETIMEDOUT);
		took_ns += now_ns() - begin_ns;
		end_child(mute[i]);
	}
	assert_true(took_ns < CNT * WAIT_MS * NS_PER_MS / 2);
}

TEST_WITH(one_that_was_killed_is_replaced, begin, end)
{
	struct process_info info;
	pid_t reader = find_reader();

	assert_true(reader > 0);
	assert_int_equal(kill(reader, SIGKILL), 0);
	assert_int_equal(process_info_read(by_reader, getpid(), &info), 0);
	assert_true(find_reader_but(reader) > 0);
}

TEST_WITH(a_child_reads_for_itself, begin, end)
{
	struct process_info info;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(reader_is_ours(by_reader) || process_info_read(by_reader, getpid(), &info) ||
		      info.pid != getpid());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(process_info_read(by_reader, getpid(), &info), 0);
	assert_int_equal(info.pid, getpid());
}

static size_t read_all(int fd, char *buf, size_t bytes)
{
	size_t cnt = 0;
	ssize_t n;

	while ((n = read(fd, buf + cnt, bytes - cnt)) > 0)
		cnt += (size_t)n;
	close(fd);
	return cnt;
}

TEST_WITH(jobs, begin, end)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), said, held[READER_JOBS_OF_USER_CAP];
	uint64_t begin_ns = now_ns();
	char buf[64] = "";

	assert_int_equal(reader_run_job(by_reader, 1, 1, fd, "arguments ", 10, 5, &said), 0);
	close(fd);
	assert_int_equal(read_all(said, buf, sizeof(buf)), 14);
	assert_memory_equal(buf, "arguments \177ELF", 14);
	/* Nobody runs more than his share, and those end that do not end themselves. */
	for (size_t i = 0; i < READER_JOBS_OF_USER_CAP; i++)
		assert_int_equal(reader_run_job(by_reader, 7, 2, -1, "", 0, 1, &held[i]), 0);
	assert_int_equal(reader_run_job(by_reader, 7, 1, -1, "", 0, 1, &said), -EBUSY);
	assert_int_equal(reader_run_job(by_reader, 8, 1, -1, "x", 1, 1, &said), 0);
	assert_int_equal(read_all(said, buf, sizeof(buf)), 1);
	for (size_t i = 0; i < READER_JOBS_OF_USER_CAP; i++)
		assert_int_equal(read_all(held[i], buf, sizeof(buf)), 0);
	assert_true(now_ns() - begin_ns < SOON_NS);
}

RUN_TESTS()
