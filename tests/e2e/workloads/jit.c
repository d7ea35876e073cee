/* SPDX-License-Identifier: MIT */
/*
 * jit.c - makes code at run time, says its names in the ways that perf reads, and allocates from it.
 *
 * E2E_MODE: map (the default): a piece of code with a frame pointer and a small one without, in a map;
 * bare: the same without names; reuse: memory is given to other code, which a map says; dump: names, a
 * move and a change of code in a jitdump. E2E_PAUSE_MS: after a change, until it is used.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "ledger.h"

#ifndef __x86_64__
#error "no code for this machine"
#endif

#define CODE_BYTES 64
#define CNT 100

/* Each calls its first argument with its second: with a frame pointer; without one. */
static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48,
				  0x89, 0xf7, 0xff, 0xd0, 0x90, 0x5d, 0xc3 };
static const uint8_t small[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89,
				 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };

typedef void *(*code_fn)(void *(*fn)(size_t), size_t bytes);
static uint8_t *area;
static int names_fd = -1;

HELPER void *get_block(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : "+r"(block)); /* no tail call */
	return block;
}

static void allocate(const char *site, uint8_t *code, size_t bytes)
{
	union {
		uint8_t *code;
		code_fn fn;
	} call = { code };

	for (int i = 0; i < CNT; i++)
		led_alloc(site, call.fn(get_block, bytes), bytes);
}

static void must(int ok)
{
	if (!ok)
		_exit(3);
}

static void say_map(const char *site, const uint8_t *code)
{
	char line[128];
	int len =
		snprintf(line, sizeof(line), "%lx %x %s\n", (unsigned long)code, CODE_BYTES, site);

	if (names_fd < 0) {
		char path[64];

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		names_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	}
	must(write(names_fd, line, (size_t)len) == len);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

struct dump_header {
	uint32_t magic, version, bytes, machine, reserved, pid;
	uint64_t time, flags;
};

static void open_dump(void)
{
	struct dump_header h = { 0x4a695444, 1, sizeof(h), 62, 0, (uint32_t)getpid(), now(), 0 };
	char path[64];

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	names_fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(write(names_fd, &h, sizeof(h)) == sizeof(h));
	must(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, names_fd, 0) != MAP_FAILED);
}

struct load {
	uint32_t id, bytes;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, addr, code_bytes, code_index;
};

static void say_load(const char *site, uint8_t *code, uint64_t index)
{
	uint8_t record[256];
	size_t name_bytes = strlen(site) + 1;
	struct load l = { 0,
			  0,
			  now(),
			  (uint32_t)getpid(),
			  (uint32_t)getpid(),
			  (uintptr_t)code,
			  (uintptr_t)code,
			  CODE_BYTES,
			  index };

	l.bytes = (uint32_t)(sizeof(l) + name_bytes + CODE_BYTES);
	memcpy(record, &l, sizeof(l));
	memcpy(record + sizeof(l), site, name_bytes);
	memcpy(record + sizeof(l) + name_bytes, code, CODE_BYTES);
	must(write(names_fd, record, l.bytes) == (ssize_t)l.bytes);
}

struct move {
	uint32_t id, bytes;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, old_addr, new_addr, code_bytes, code_index;
};

static void say_move(uint8_t *from, uint8_t *to, uint64_t index)
{
	struct move m = { 1,
			  sizeof(m),
			  now(),
			  (uint32_t)getpid(),
			  (uint32_t)getpid(),
			  (uintptr_t)to,
			  (uintptr_t)from,
			  (uintptr_t)to,
			  CODE_BYTES,
			  index };

	must(write(names_fd, &m, sizeof(m)) == sizeof(m));
}

static void pause_ms(void)
{
	const char *ms = getenv("E2E_PAUSE_MS");

	usleep((ms ? atoi(ms) : 1000) * 1000);
}

static uint8_t *put(int place, const uint8_t *code, size_t bytes)
{
	memcpy(area + place * CODE_BYTES, code, bytes);
	return area + place * CODE_BYTES;
}

static void run_map(int has_names)
{
	uint8_t *a = put(0, framed, sizeof(framed)), *b = put(1, small, sizeof(small));

	if (has_names) {
		say_map("site_framed", a);
		say_map("py::site_small:/srv/app.py", b);
	}
	pause_ms();
	allocate("site_framed", a, 1009);
	allocate("site_small", b, 2003);
}

static void run_reuse(void)
{
	uint8_t *a = put(0, framed, sizeof(framed)), *b = put(1, framed, sizeof(framed));

	say_map("site_before", a);
	say_map("site_beside", b);
	pause_ms();
	allocate("site_before", a, 1009);
	allocate("site_beside", b, 1013);
	say_map("site_after", a);
	pause_ms();
	allocate("site_after", a, 1019);
	allocate("site_beside", b, 1021);
}

static void run_dump(void)
{
	uint8_t *a = put(0, framed, sizeof(framed)), *b = put(1, small, sizeof(small));

	open_dump();
	say_load("site_loaded", a, 1);
	pause_ms();
	allocate("site_loaded", a, 1009);
	say_move(a, b, 1);
	say_load("site_after", a, 2);
	pause_ms();
	allocate("site_loaded", b, 1013);
	allocate("site_after", a, 1019);
}

int main(void)
{
	const char *mode = getenv("E2E_MODE");
	char path[64];

	mode = mode ? mode : "map";
	area = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	must(area != MAP_FAILED);
	e2e_ready();
	if (!strcmp(mode, "reuse"))
		run_reuse();
	else if (!strcmp(mode, "dump"))
		run_dump();
	else
		run_map(strcmp(mode, "bare") != 0);
	e2e_done();
	snprintf(path, sizeof(path), strcmp(mode, "dump") ? "/tmp/perf-%d.map" : "/tmp/jit-%d.dump",
		 getpid());
	unlink(path);
	return 0;
}
