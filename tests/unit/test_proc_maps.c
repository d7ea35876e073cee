/* SPDX-License-Identifier: MIT */
/* test_proc_maps.c - maps texts are understood, broken ones refused, mapped files opened. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "proc/process.h"

#define GOLDEN_DIR "tests/golden/maps/"

/* NULL when it cannot be read; the caller frees. */
static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	char *text = calloc(1, 65536);

	assert_non_null(text);
	if (fd < 0 || read(fd, text, 65535) < 0) {
		free(text);
		text = NULL;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

/* What was understood, one mapping a line, in words of our own. */
static char *print_maps(const struct proc_maps *maps)
{
	const struct proc_map *m;
	size_t bytes;
	char *text;
	FILE *f = open_memstream(&text, &bytes);

	vec_each(&maps->maps, m) {
		const char *p;

		fprintf(f, "%llx+%llx %c%c%c off=%llx dev=%u:%u ino=%llu %s\"",
			(unsigned long long)m->start_addr,
			(unsigned long long)(m->end_addr - m->start_addr), m->is_read ? 'r' : '-',
			m->is_write ? 'w' : '-', m->is_exec ? 'x' : '-', (unsigned long long)m->off,
			m->dev >> 20, m->dev & 0xfffff, (unsigned long long)m->ino,
			m->is_deleted ? "deleted " : "");
		for (p = m->path; *p; p++) {
			if (*p == '\n')
				fputs("<newline>", f);
			else
				fputc(*p, f);
		}
		fputs("\"\n", f);
	}
	fclose(f);
	return text;
}

TEST(test_golden)
{
	struct proc_maps maps;
	char *text = read_file(GOLDEN_DIR "server.maps");
	char *expected = read_file(GOLDEN_DIR "server.expected"), *got;

	assert_non_null(text);
	assert_non_null(expected);
	assert_int_equal(proc_maps_parse(text, &maps), 0);
	got = print_maps(&maps);
	assert_string_equal(got, expected);
	free(got);
	free(expected);
	proc_maps_release(&maps);
}

TEST(test_broken_texts)
{
	static const struct {
		const char *name, *text;
		int err;
	} cases[] = {
		{ "empty", "", 0 },
		{ "no newline at the end", "1000-2000 r-xp 0 08:01 5 /a", 0 },
		{ "no path", "1000-2000 r-xp 0 08:01 5\n", 0 },
		{ "empty line", "\n", -EINVAL },
		{ "words", "hello world\n", -EINVAL },
		{ "end before start", "2000-1000 r-xp 0 08:01 5 /a\n", -EINVAL },
		{ "empty range", "1000-1000 r-xp 0 08:01 5 /a\n", -EINVAL },
		{ "17 digits", "11111111111111111-2 r-xp 0 08:01 5 /a\n", -EINVAL },
		{ "short permissions", "1000-2000 r-x", -EINVAL },
		{ "cut in the middle", "1000-2000 r-xp 0 08:", -EINVAL },
		{ "no inode", "1000-2000 r-xp 0 08:01 \n", -EINVAL },
		{ "inode too large", "1000-2000 r-xp 0 08:01 18446744073709551616 /a\n", -EINVAL },
		{ "junk after the inode", "1000-2000 r-xp 0 08:01 5x /a\n", -EINVAL },
		{ "major too large", "1000-2000 r-xp 0 1000:01 5 /a\n", -EINVAL },
		{ "second line broken", "1000-2000 r-xp 0 08:01 5 /a\n3000\n", -EINVAL },
	};

	each_case(c, cases) {
		struct proc_maps maps = { 0 };
		int err = proc_maps_parse(strdup(c->text), &maps);

		if (err != c->err)
			fail_msg("%s: %d, not %d", c->name, err, c->err);
		if (!err)
			proc_maps_release(&maps);
	}
}

TEST(test_find)
{
	static const char text[] = "1000-2000 r-xp 0 08:01 5 /a\n"
				   "2000-3000 r-xp 0 08:01 6 /b\n"
				   "5000-6000 r-xp 0 08:01 7 /c\n";
	static const char unsorted[] = "5000-6000 r-xp 0 08:01 7 /c\n"
				       "2000-3000 r-xp 0 08:01 6 /b\n"
				       "1000-2000 r-xp 0 08:01 5 /a\n";
	static const struct {
		uint64_t addr, ino; /* 0 = none */
	} cases[] = {
		{ 0, 0 },      { 0xfff, 0 },  { 0x1000, 5 }, { 0x1fff, 5 },
		{ 0x2000, 6 }, { 0x2fff, 6 }, { 0x3000, 0 }, { 0x4fff, 0 },
		{ 0x5000, 7 }, { 0x5fff, 7 }, { 0x6000, 0 }, { UINT64_MAX, 0 },
	};
	const char *const texts[] = { text, unsorted };
	struct proc_maps maps;
	size_t t;

	for (t = 0; t < 2; t++) {
		assert_int_equal(proc_maps_parse(strdup(texts[t]), &maps), 0);
		each_case(c, cases) {
			const struct proc_map *m = proc_maps_find(&maps, c->addr);

			assert_int_equal(m ? m->ino : 0, c->ino);
		}
		proc_maps_release(&maps);
	}
}

/* What process_open_map() returns can be opened, but not read as it is. */
static int read_mapped(const struct proc_map *m, void *buf, size_t bytes)
{
	int path_fd = process_open_map(NULL, getpid(), 0, m, NULL), fd;

	assert_true(path_fd >= 0);
	assert_int_equal(read(path_fd, buf, bytes), -1);
	fd = regular_file_reopen(path_fd);
	close(path_fd);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, bytes), bytes);
	return fd;
}

TEST(test_own_maps)
{
	const struct proc_map *m;
	struct proc_maps maps;
	struct stat st, exe;
	char buf[16];
	int fd;

	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	m = proc_maps_find(&maps, (uint64_t)(uintptr_t)test_own_maps);
	assert_non_null(m);
	assert_true(m->is_exec);
	fd = read_mapped(m, buf, 4);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	assert_int_equal(st.st_ino, exe.st_ino);
	assert_memory_equal(buf,
			    "\x7f"
			    "ELF",
			    4);
	close(fd);
	m = proc_maps_find(&maps, (uint64_t)(uintptr_t)&maps); /* the stack */
	assert_non_null(m);
	assert_int_equal(process_open_map(NULL, getpid(), 0, m, NULL), -ENOENT);
	proc_maps_release(&maps);
}

TEST(test_mapped_inode)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ends[2];
	const struct proc_map *m;
	struct proc_maps maps;
	uint32_t dev = 0;
	uint64_t ino = 0;

	assert_true(fd >= 0);
	assert_int_equal(process_mapped_inode(fd, &dev, &ino), 0);
	close(fd);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	m = proc_maps_find(&maps, (uint64_t)(uintptr_t)test_mapped_inode);
	assert_non_null(m);
	assert_int_equal(dev, m->dev);
	assert_int_equal(ino, m->ino);
	proc_maps_release(&maps);

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(process_mapped_inode(ends[0], &dev, &ino), -ENODEV);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(process_mapped_inode(-1, &dev, &ino), -EBADF);
}

TEST(test_no_memory_no_maps)
{
	struct proc_maps maps;
	pid_t zombie = fork();

	if (zombie == 0)
		_exit(0);
	waitid(P_PID, (id_t)zombie, NULL, WEXITED | WNOWAIT);
	assert_int_equal(proc_maps_read(NULL, zombie, 0, &maps), -ESRCH);
	waitpid(zombie, NULL, 0);
	assert_int_equal(proc_maps_read(NULL, zombie, 0, &maps), -ESRCH);
}

static char file_path[] = "/tmp/heaptap-test-maps-XXXXXX";

/* Map a page of the file and give its entry. */
static const struct proc_map *map_file(int fd, struct proc_maps *maps)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_true(mem != MAP_FAILED);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, maps), 0);
	return proc_maps_find(maps, (uint64_t)(uintptr_t)mem);
}

/* It takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static bool can_use_map_files(const struct proc_map *m)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)m->start_addr, (unsigned long long)m->end_addr);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The old file is opened through map_files, never the new one of the same name. */
TEST(test_replaced_file)
{
	int fd = keep_fd(mkstemp(file_path)), other_fd, got;
	const struct proc_map *m;
	struct proc_map moved;
	struct proc_maps maps;
	char buf[4] = "";

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	m = map_file(fd, &maps);
	assert_non_null(m);
	assert_string_equal(m->path, file_path);
	assert_int_equal(unlink(file_path), 0);
	other_fd = open(file_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(other_fd >= 0);
	assert_int_equal(write(other_fd, "new", 3), 3);
	close(other_fd);
	got = process_open_map(NULL, getpid(), 0, m, NULL);
	if (can_use_map_files(m)) {
		assert_true(got >= 0);
		close(got);
		close(read_mapped(m, buf, 3));
		assert_string_equal(buf, "old");
	} else {
		assert_int_equal(got, -ESTALE);
	}
	/* a range that map_files does not know: only the name is left, and it is another file */
	moved = *m;
	moved.end_addr += 0x1000;
	assert_int_equal(process_open_map(NULL, getpid(), 0, &moved, NULL), -ESTALE);
	proc_maps_release(&maps);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	m = proc_maps_find(&maps, moved.start_addr);
	assert_non_null(m);
	assert_true(m->is_deleted);
	assert_string_equal(m->path, file_path);
	proc_maps_release(&maps);
	unlink(file_path);
}

/* By name, when the range is not in map_files, and devices never. */
TEST(test_by_name_and_devices)
{
	int fd = open("/proc/self/exe", O_RDONLY), got;
	const struct proc_map *m;
	struct proc_maps maps;
	struct proc_map moved;

	m = map_file(fd, &maps);
	assert_non_null(m);
	moved = *m;
	moved.end_addr += 0x1000;
	got = process_open_map(NULL, getpid(), 0, &moved, NULL);
	assert_true(got >= 0);
	close(got);
	close(fd);
	proc_maps_release(&maps);
	fd = open("/dev/zero", O_RDONLY);
	m = map_file(fd, &maps);
	assert_non_null(m);
	got = process_open_map(NULL, getpid(), 0, m, NULL);
	/* depends on the kernel whether it shows as a file at all */
	assert_true(got == -ENOEXEC || got == -ENOENT);
	close(fd);
	proc_maps_release(&maps);
}

RUN_TESTS()
