/* SPDX-License-Identifier: MIT */
/*
 * tap_memory - a program that takes away, or mutes, memory that a tap needs.
 *
 *	tap_memory HOW [FILE]
 *
 * When told to "do" it (text: before it is ready):
 *
 *	text	lays the first page of FILE over that of malloc()
 *	code, data	over the first page of the tap's code, or of its data
 *	other	the same as code, for a FILE that is answered
 *	unmap, protect, move	unmaps the tap's memory, allows nobody to use it, has it elsewhere
 *	uffd-data, uffd-heap	who reads the first page of the tap's data, or of the heap, waits for an answer that nobody
 *			gives
 *
 * It allocates only when it is told to go, since what leads to the tap leads nowhere meanwhile.
 */
#include "tap_target.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096UL

struct range {
	unsigned long start, end;
};

static const char *how;
static int file_fd = -1;

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : NULL;
}

/* What lies at the tap: its code is a memory file of heaptap, its data the memory without a name behind it. */
static void find_tap(struct range *code, struct range *data)
{
	static char text[1 << 16];
	struct range r;
	size_t n = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY);

	*code = *data = (struct range){ 0, 0 };
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	text[n] = '\0';
	for (const char *line = text, *next; line; line = next) {
		const char *name, *end;

		next = next_line(line);
		end = next ? next : line + strlen(line);
		if (sscanf(line, "%lx-%lx", &r.start, &r.end) != 2)
			continue;
		name = strstr(line, "/memfd:heaptap");
		if (name && name < end) {
			if (!code->start)
				code->start = r.start;
			code->end = r.end;
		} else if (code->end && r.start == code->end && !data->start) {
			*data = r;
		}
	}
	if (!data->start)
		bad("no memory of a tap is found");
}

static void lay(unsigned long addr, int prot)
{
	void *at = (void *)(addr & ~(PAGE_BYTES - 1));

	if (mmap(at, PAGE_BYTES, prot, MAP_PRIVATE | MAP_FIXED, file_fd, 0) != at)
		bad("mmap");
}

static void mute(unsigned long addr)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range = { addr & ~(PAGE_BYTES - 1), PAGE_BYTES },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		bad("userfaultfd");
	if (madvise((void *)(uintptr_t)reg.range.start, PAGE_BYTES, MADV_DONTNEED))
		bad("madvise");
}

static void act(void)
{
	struct range code, data;
	size_t bytes;
	void *at;

	if (!strcmp(how, "text"))
		return;
	find_tap(&code, &data);
	at = (void *)code.start;
	bytes = data.end - code.start;
	if (!strcmp(how, "code") || !strcmp(how, "other"))
		lay(code.start, PROT_READ | PROT_EXEC);
	else if (!strcmp(how, "data"))
		lay(data.start, PROT_READ | PROT_WRITE);
	else if (!strcmp(how, "unmap") && munmap(at, bytes))
		bad("munmap");
	else if (!strcmp(how, "protect") && mprotect(at, bytes, PROT_NONE))
		bad("mprotect");
	else if (!strcmp(how, "unread") &&
		 mprotect((void *)((unsigned long)&malloc & ~(PAGE_BYTES - 1)), PAGE_BYTES,
			  PROT_EXEC))
		bad("mprotect");
	else if (!strcmp(how, "move") && mremap(at, code.end - code.start, code.end - code.start,
						MREMAP_MAYMOVE | MREMAP_FIXED,
						(void *)(code.start - (1UL << 30))) == MAP_FAILED)
		bad("mremap");
	else if (!strcmp(how, "uffd-data"))
		mute(data.start);
	else if (!strcmp(how, "uffd-heap"))
		mute((unsigned long)malloc(100));
}

int main(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "";
	if (argc > 2 && (file_fd = open(argv[2], O_RDONLY)) < 0)
		bad(argv[2]);
	if (!strcmp(how, "text"))
		lay((unsigned long)&malloc, PROT_READ | PROT_EXEC);
	be_ready();
	obey(act);
}
