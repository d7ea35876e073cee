/* SPDX-License-Identifier: MIT */
/*
 * test_jit_names.c - what programs say of code that they made at run time: the two file formats, names of
 * runtimes, which file is believed, and the name of an address in each period.
 */
#include "unit.h"

#include "proc/jit_entry.h"
#include "proc/process.h"
#include "track/file.h"
#include "track/files.h"
#include "track/jit_code.h"

struct seen {
	char text[4096];
	int cnt;
};

static int on_entry(void *ctx, const struct jit_entry *e)
{
	struct seen *seen = ctx;
	size_t len = strlen(seen->text);

	seen->cnt++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%llx-%llx %.*s\n",
		 (unsigned long long)e->start_addr, (unsigned long long)e->end_addr,
		 e->name ? (int)(e->name_len < 60 ? e->name_len : 60) : 1, e->name ? e->name : "-");
	return 0;
}

static int file_of(const void *data, size_t bytes)
{
	char path[] = "/tmp/heaptap-jit-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, data, bytes), bytes);
	return fd;
}

TEST(test_map)
{
	static const char text[] =
		"1000 10 plain\n"
		"0x00007f0000002000 0x0000000000000020 void java.Name(int, a b)\r\n"
		"\n"
		"zz 10 no number\n"
		"1000 0 empty\n"
		"1000 10\n"
		"1000\n"
		"12345678901234567 10 too long\n"
		"ffffffffffffffff 10 beyond the end\n"
		"DEAD  5   JS:~f /x.js:1:2\n"
		"3000 10 not yet writ";
	struct seen seen = { 0 };
	int fd = keep_fd(file_of(text, sizeof(text) - 1));
	uint64_t off = 0;

	assert_int_equal(jit_map_read(fd, &off, UINT64_MAX, on_entry, &seen), 0);
	assert_string_equal(seen.text, "1000-1010 plain\n"
				       "7f0000002000-7f0000002020 void java.Name(int, a b)\n"
				       "dead-deb2 JS:~f /x.js:1:2\n");
	assert_int_equal(off, strstr(text, "3000") - text);
	/* The rest of the last line, and one more. */
	assert_int_equal(lseek(fd, 0, SEEK_END), sizeof(text) - 1);
	assert_int_equal(write(fd, "ten\n4000 4 x\n", 13), 13);
	seen = (struct seen){ 0 };
	assert_int_equal(jit_map_read(fd, &off, UINT64_MAX, on_entry, &seen), 0);
	assert_string_equal(seen.text, "3000-3010 not yet written\n4000-4004 x\n");
}

/* A line that is longer than the buffer hides neither the next one, nor is its end taken for a line. */
TEST(test_long_line)
{
	size_t bytes = 3 * JIT_BUF_BYTES;
	char *text = unit_keep(malloc(bytes), free);
	struct seen seen = { 0 };
	uint64_t off = 0;
	int fd;

	assert_non_null(text);
	memset(text, 'x', bytes);
	memcpy(text, "1000 10 a", 9);
	memcpy(text + 2 * JIT_BUF_BYTES + 100, " 5000 10 no line", 16);
	memcpy(text + bytes - 20, "\n2000 10 next line\n\n", 20);
	fd = keep_fd(file_of(text, bytes));
	/* In small steps, and so from the middle of the line on. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(jit_map_read(fd, &off, 1, on_entry, &seen), 0);
	assert_string_equal(seen.text, "2000-2010 next line\n");
}

struct dump_header {
	uint32_t magic, version, bytes, machine, reserved, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, bytes;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, addr, to[3];
	char name[16];
};

TEST(test_dump)
{
	struct {
		struct dump_header h;
		struct record load, move, odd;
	} d = {
		.h = { 0x4a695444, 1, sizeof(struct dump_header), 62, 0, 1, 0, 0 },
		.load = { 0, sizeof(struct record), 5, 1, 1, 0x1000, 0x1000, { 0x10, 7 }, "" },
		.move = { 1, 64, 6, 1, 1, 0x2000, 0x1000, { 0x2000, 0x10, 7 }, "" },
	};
	uint8_t file[sizeof(d)];
	struct seen seen = { 0 };
	uint64_t off = 0;
	int fd;

	/* After code_index comes the name: to[2] is its beginning. */
	memcpy(&d.load.to[2], "loaded\0\0", 8);
	memcpy(file, &d, sizeof(d.h) + sizeof(d.load));
	memcpy(file + sizeof(d.h) + sizeof(d.load), &d.move, 64);
	/* A record that says that it has more bytes than there are. */
	d.odd.bytes = 4096;
	memcpy(file + sizeof(d.h) + sizeof(d.load) + 64, &d.odd, 16);
	fd = file_of(file, sizeof(d.h) + sizeof(d.load) + 64 + 16);
	assert_int_equal(jit_dump_read(fd, &off, UINT64_MAX, on_entry, &seen), 0);
	assert_string_equal(seen.text, "1000-1010 loaded\n2000-2010 -\n");
	assert_int_equal(off, sizeof(d.h) + sizeof(d.load) + 64);
	close(fd);

	/* One of no bytes would be read for ever. */
	d.odd.bytes = 0;
	memcpy(file + sizeof(d.h) + sizeof(d.load) + 64, &d.odd, 16);
	fd = file_of(file, sizeof(d.h) + sizeof(d.load) + 64 + 16);
	off = 0;
	assert_int_equal(jit_dump_read(fd, &off, UINT64_MAX, on_entry, &seen), -EBADMSG);
	close(fd);
	fd = file_of("no dump, but as long as the header of one", 41);
	off = 0;
	assert_int_equal(jit_dump_read(fd, &off, UINT64_MAX, on_entry, &seen), -EBADMSG);
	close(fd);
}

TEST(test_dump_path)
{
	assert_true(jit_is_dump_path("/home/u/.debug/jit/jit-4711.dump"));
	assert_true(jit_is_dump_path("/tmp/jit-1.dump"));
	assert_false(jit_is_dump_path("/tmp/jit-.dump"));
	assert_false(jit_is_dump_path("/tmp/jit-1.dumps"));
	assert_false(jit_is_dump_path("/tmp/perf-1.map"));
	assert_false(jit_is_dump_path(""));
}

TEST(test_names)
{
	static const struct {
		const char *name, *function, *file;
		uint32_t line;
	} names[] = {
		{ "JS:*fn /srv/a b.js:12:34", "fn", "/srv/a b.js", 12 },
		{ "JS:~ /srv/a.js:1:1", "(anonymous)", "/srv/a.js", 1 },
		{ "JS:^processTimers node:internal/timers:496:23", "processTimers",
		  "node:internal/timers", 496 },
		{ "LazyCompile:~fn file.js:7", "fn", "file.js", 7 },
		{ "Function:fn", "fn", "", 0 },
		{ "Builtin:CallFunction", "Builtin:CallFunction", "", 0 },
		{ "py::work:/srv/app.py", "work", "/srv/app.py", 0 },
		{ "py::Class.method:<frozen os>", "Class.method", "<frozen os>", 0 },
		{ "py::", "py::", "", 0 },
		{ "void Direct.work(int)", "void Direct.work(int)", "", 0 },
		{ "a::b:c d:1:2", "a::b:c d:1:2", "", 0 },
		{ "JS:", "(anonymous)", "", 0 },
	};

	each_case(c, names) {
		char *name = strdup(c->name);
		struct jit_name parts;

		jit_name_split(name, &parts);
		assert_string_equal(parts.function, c->function);
		assert_string_equal(parts.file, c->file);
		assert_int_equal(parts.line, c->line);
		free(name);
	}
}

/* A root folder with a /tmp. */
static void make_root(char *root, char *path, size_t path_bytes, const struct process_info *info)
{
	char tmp[64];

	strcpy(root, "/tmp/heaptap-root-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(tmp, sizeof(tmp), "%s/tmp", root);
	assert_int_equal(mkdir(tmp, 0755), 0);
	snprintf(path, path_bytes, "%s/perf-%d.map", tmp, info->ns_pid);
}

static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(test_which_file)
{
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	char root[64], path[128], command[160];
	struct process_info info;
	int fd;

	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	assert_int_equal(info.ns_pid, getpid());
	info.ns_pid = 1; /* as in a container */
	make_root(root, path, sizeof(path), &info);
	assert_int_equal(jit_map_open(NULL, root, &info), -ENOENT);
	write_map(path, "1000 10 x\n");
	fd = jit_map_open(NULL, root, &info);
	assert_true(fd >= 0);
	close(fd);
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(jit_map_open(NULL, root, &info), -EPERM);
		info.uid = 65534;
		fd = jit_map_open(NULL, root, &info);
		assert_true(fd >= 0);
		close(fd);
	}
	/* Of a process that had the number before. */
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(jit_map_open(NULL, root, &info), -ESTALE);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_true(jit_map_open(NULL, root, &info) < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_true(jit_map_open(NULL, root, &info) < 0);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

static void expect_name(struct jit_code *c, uint32_t period, uint64_t addr, const char *name)
{
	const char *found;

	assert_int_equal(jit_code_names(c, period, &addr, 1, &found), 0);
	if (name)
		assert_string_equal(found, name);
	else
		assert_null(found);
}

/* Looks until it has looked. */
static bool look(struct jit_code *c)
{
	usleep(JIT_REFRESH_NS / 1000 + 10000);
	return jit_code_refresh(c);
}

TEST(test_periods)
{
	char path[64];
	struct process_info info;
	static const uint64_t several[] = { 0x1044, 0x1ff8, 0x2004, 0x3004 };
	struct jit_code *c = NULL, *child = NULL;
	const char *names[4] = { NULL };
	uint64_t end;

	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(jit_code_new(NULL, &info, NULL, &c), 0);
	expect_name(c, 0, 0x1008, NULL);
	/* What was there before is no change. */
	write_map(path, "1000 100 oldest\n1000 100 first\n2000 100 other\n");
	assert_false(look(c));
	expect_name(c, 0, 0x1008, "first");
	expect_name(c, 0, 0x1100, NULL);
	expect_name(c, 0, 0x3000, NULL);
	write_map(path, "3000 40 new\n");
	assert_false(look(c)); /* new memory is no change */
	expect_name(c, 0, 0x3000, "new");
	assert_int_equal(jit_code_period(c, 0x1000, &end), 0);

	write_map(path, "1000 80 second\n");
	assert_true(look(c));
	assert_int_equal(jit_code_period(c, 0x1008, &end), 1);
	assert_int_equal(end, 0x1080);
	assert_int_equal(jit_code_period(c, 0x1090, &end), 0);
	assert_int_equal(jit_code_period(c, 0xfff, &end), 0);
	assert_int_equal(end, 0x1000);
	expect_name(c, 0, 0x1008, "first");
	expect_name(c, 0, 0x1010, "first"); /* asked for now */
	expect_name(c, 1, 0x1008, "second");
	expect_name(c, 1, 0x1010, "second");
	expect_name(c, 0, 0x1090, "first");

	write_map(path, "1040 80 third\n");
	assert_true(look(c));
	assert_int_equal(jit_code_period(c, 0x1008, &end), 1);
	assert_int_equal(end, 0x1040);
	assert_int_equal(jit_code_period(c, 0x1040, &end), 2);
	assert_int_equal(end, 0x10c0);
	expect_name(c, 1, 0x1044, "second");
	expect_name(c, 2, 0x1044, "third");
	/* A forked process has what its parent had then. */
	info.ns_pid = 1;
	assert_int_equal(jit_code_new(NULL, &info, c, &child), 0);
	expect_name(child, 0, 0x1044, "third");
	expect_name(child, 0, 0x8000, NULL);
	/* asked for together, what nobody knows between what the parent does */
	assert_int_equal(jit_code_names(child, 0, several, 4, names), 0);
	assert_string_equal(names[0], "third");
	assert_null(names[1]);
	assert_string_equal(names[2], "other");
	assert_string_equal(names[3], "new");
	write_map(path, "1040 10 fourth\n");
	assert_true(look(c));
	expect_name(c, 3, 0x1048, "fourth");
	expect_name(child, 0, 0x1048, "third");
	jit_code_unref(child);
	/* Who was sampled before a name was written. */
	write_map(path, "5000 40 late\n5000 40 later\n");
	expect_name(c, 0, 0x5000, "late");

	/* A JVM writes its map anew each time. */
	assert_int_equal(truncate(path, 0), 0);
	write_map(path, "7000 10 whole\n");
	look(c);
	expect_name(c, 0, 0x7000, "whole");
	expect_name(c, 1, 0x1008, "second"); /* was asked for in time */
	unlink(path);
	jit_code_unref(c);
}

/* A program may call its code what it likes: the names end up on terminals. */
TEST(test_symbols)
{
	static const uint64_t addrs[] = { 0x1004, 0x2004, 0x9000 };
	const struct symbol_options opts = { 0 };
	struct track_file file = { .is_jit = true };
	struct symbol_result *sym = NULL;
	struct process_info info;
	char path[64];

	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	write_map(path, "1000 10 JS:*a\x1b[2J\xff /x.js:7:1\n2000 10 void A.b(int)\n");
	assert_int_equal(jit_code_new(NULL, &info, NULL, &file.jit), 0);
	assert_int_equal(file_symbolize(&opts, &file, NULL, addrs, 3, &sym), 0);
	assert_int_equal(sym->first[3], 3);
	assert_null(strpbrk(sym->frames[0].name, "\x1b\xff"));
	assert_int_equal(strncmp(sym->frames[0].name, "a?[2J", 5), 0);
	assert_string_equal(sym->frames[0].file, "/x.js");
	assert_int_equal(sym->frames[0].line, 7);
	assert_null(strchr(sym->frames[0].system_name, 0x1b));
	assert_string_equal(sym->frames[1].name, "void A.b(int)");
	assert_string_equal(sym->frames[2].name, "[jit]+0x9000");
	symbol_result_free(sym);
	unlink(path);
	jit_code_unref(file.jit);
}

/* However much code is given away, what is kept of it has a bound. */
TEST(test_many_changes)
{
	char path[64], line[64];
	struct process_info info;
	struct jit_code *c = NULL;
	uint64_t end, addr = 0x100000;
	uint32_t piece_cnt = 0;

	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(jit_code_new(NULL, &info, NULL, &c), 0);
	write_map(path, "100000 100000 all\n");
	assert_false(look(c));
	for (int i = 0; i < 3000; i++) {
		snprintf(line, sizeof(line), "%x 40 f%d\n", 0x100000 + i * 0x100, i);
		write_map(path, line);
	}
	assert_true(look(c));
	for (; addr < 0x200000; addr = end, piece_cnt++)
		jit_code_period(c, addr, &end);
	assert_in_range(piece_cnt, 1, 300);
	assert_int_equal(jit_code_period(c, 0x100010, &end), 1);
	expect_name(c, 1, 0x100010, "f0");
	expect_name(c, 0, 0x100010, "all");
	unlink(path);
	jit_code_unref(c);
}

RUN_TESTS()
