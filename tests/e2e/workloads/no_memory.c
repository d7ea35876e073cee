/* SPDX-License-Identifier: MIT */
/*
 * no_memory.c - to be preloaded into heaptap, built with -shared: while the file $E2E_NO_MEMORY exists, its event loop finds
 * the kernel without memory.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int epoll_wait(int fd, struct epoll_event *events, int cnt, int ms)
{
	static int (*real)(int, struct epoll_event *, int, int);
	const char *path = getenv("E2E_NO_MEMORY");
	int n;

	if (!real)
		real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
	n = real(fd, events, cnt, ms < 0 || ms > 100 ? 100 : ms);
	if (!path || access(path, F_OK))
		return n;
	errno = ENOMEM;
	return -1;
}
