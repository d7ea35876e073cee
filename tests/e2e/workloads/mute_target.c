/* SPDX-License-Identifier: MIT */
/*
 * mute_target.c - a process that lays a file over something that others read of it.
 *
 *   mute_target map FILE           maps it as code
 *   mute_target descriptor FILE    over the page of its scope descriptor
 *   mute_target args FILE          over the page of its arguments
 *
 * To be linked with -z now: what it calls after that is not looked up in the page that it lost.
 * It says READY, does it when it is told to, says DONE, and waits for its end. Run by root it becomes a user of
 * no rights first.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <heaptap/scope.h>

#define NOBODY 65534
#define PAGE_BYTES 4096
#define CODE_BYTES (16 * PAGE_BYTES)

static void *page_of(const void *p)
{
	return (void *)((uintptr_t)p & ~(uintptr_t)(PAGE_BYTES - 1));
}

static void lay(const char *what, const char *path, char **argv)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map = MAP_FAILED;

	if (!strcmp(what, "map"))
		map = mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	else if (!strcmp(what, "descriptor"))
		map = mmap(page_of(&heaptap_scope_v1), PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_FIXED, fd, 0);
	else if (!strcmp(what, "args"))
		map = mmap(page_of(argv[0]), PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_FIXED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
}

/* Far below the arguments and the frames beside them, which may be in the page that is lost. */
static __attribute__((noinline)) int run(char **argv)
{
	volatile char apart[16 * PAGE_BYTES];
	char line[64], what[32], path[512];

	apart[0] = apart[sizeof(apart) - 1] = 0;
	snprintf(what, sizeof(what), "%s", argv[1]);
	snprintf(path, sizeof(path), "%s", argv[2]);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	lay(what, path, argv);
	/* The page of the descriptor has other variables as well: nothing uses them from here on. */
	if (write(STDOUT_FILENO, "DONE\n", 5) != 5)
		_exit(1);
	while (read(STDIN_FILENO, line, sizeof(line)) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	heaptap_push("request");
	heaptap_pop();
	if (!getuid() && (setgid(NOBODY) || setuid(NOBODY)))
		return 1;
	prctl(PR_SET_DUMPABLE, 1);
	puts("READY");
	fflush(stdout);
	return run(argv);
}
