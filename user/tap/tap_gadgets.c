/* SPDX-License-Identifier: MIT */
/*
 * tap_gadgets.c - see tap_priv.h.
 *
 * Every C library has getpid(), a system call and a return, and the function to which signal handlers return. A program
 * without a shared one has them beside its allocator. They are looked for in the file, so that no page of it becomes
 * resident in the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc_text.h"
#include "tap/tap_priv.h"

#define TEXT_BYTES_CAP (8 << 20)

static const uint8_t syscall_ret[TAP_SYSCALL_BYTES] = { 0x0f, 0x05, 0xc3 };
static const uint8_t sigreturn[TAP_SIGRETURN_BYTES] = {
	0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05
};

bool tap_are_gadgets(const uint8_t *call, const uint8_t *back)
{
	return !memcmp(call, syscall_ret, sizeof(syscall_ret)) &&
	       !memcmp(back, sigreturn, sizeof(sigreturn));
}

static bool is_c_library(const char *path)
{
	static const char *const names[] = { "libc.so", "libc-", "libc.musl-", "ld-musl-" };
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; slash && i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(slash + 1, names[i], strlen(names[i])))
			return true;
	return false;
}

struct range {
	unsigned long start_addr, end_addr, off;
};

static uint64_t find(const uint8_t *text, size_t bytes, const uint8_t *what, size_t what_bytes,
		     uint64_t addr)
{
	const uint8_t *found = memmem(text, bytes, what, what_bytes);

	return found ? addr + (uint64_t)(found - text) : 0;
}

static void look_in(struct tap_work *w, const struct range *r)
{
	const size_t mapped = r->end_addr - r->start_addr;
	const size_t bytes = mapped < TEXT_BYTES_CAP ? mapped : TEXT_BYTES_CAP;
	int fd = proc_open(w->live_tid, O_RDONLY | O_NONBLOCK, "map_files/%lx-%lx", r->start_addr,
			   r->end_addr);
	uint8_t *text = fd < 0 ? NULL : malloc(bytes);
	ssize_t n = text ? pread(fd, text, bytes, (off_t)r->off) : 0;

	if (n > 0) {
		struct tap_gadgets g = {
			find(text, (size_t)n, syscall_ret, sizeof(syscall_ret), r->start_addr),
			find(text, (size_t)n, sigreturn, sizeof(sigreturn), r->start_addr),
		};
		if (g.syscall_addr && g.sigreturn_addr)
			w->gadgets = g;
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

void tap_find_gadgets(struct tap_work *w)
{
	const uint64_t allocator_addr = w->header->patch[0].addr;
	FILE *f = proc_fopen(w->live_tid, "maps");
	char line[512], path[512];
	struct range r;

	w->gadgets = (struct tap_gadgets){ 0 };
	while (f && !w->gadgets.sigreturn_addr && fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %*2cx%*c %lx %*s %*s %511[^\n]", &r.start_addr,
			   &r.end_addr, &r.off, path) < 3)
			continue;
		if (is_c_library(path) ||
		    (allocator_addr >= r.start_addr && allocator_addr < r.end_addr))
			look_in(w, &r);
	}
	if (f)
		fclose(f);
}
