/* SPDX-License-Identifier: MIT */
/*
 * test_features.c - what the booted kernel can do, found by doing it: attaches a counting program
 * to a function of its own in each way that the profiler knows and calls it a known number of
 * times. The first thing to look at when the other tests fail on a kernel. TAP on stdout.
 *
 * A way that the kernel does not have is skipped only when the kernel is too old to have it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../tools/bench/uprobe_link.h"

#define CALLS 1009

/* An emulated first instruction, and a body that no compiler can fold away. */
void probed_function(void);
__asm__(".text\n"
	".globl probed_function\n"
	".type probed_function, @function\n"
	"probed_function:\n"
#ifdef __x86_64__
	"	push %rbp\n"
	"	pop %rbp\n"
#else
	"	nop\n"
#endif
	"	ret\n"
	".size probed_function, . - probed_function\n");

struct way {
	const char *name;
	enum ul_how how;
	int session_ret;
	uint64_t hits; /* that CALLS calls must make */
	int since_major, since_minor;
};

static const struct way ways[] = {
	{ "perf_event uprobe", UL_PERF, 0, CALLS, 5, 15 },
	{ "uprobe_multi", UL_MULTI, 0, CALLS, 6, 6 },
	{ "uprobe session, entry only", UL_SESSION, 1, CALLS, 6, 13 },
	{ "uprobe session, entry and return", UL_SESSION, 0, 2 * CALLS, 6, 13 },
};

static int kernel_is_at_least(const struct utsname *u, int major, int minor)
{
	int have_major = 0, have_minor = 0;

	if (sscanf(u->release, "%d.%d", &have_major, &have_minor) != 2)
		return 1;
	return have_major > major || (have_major == major && have_minor >= minor);
}

static int count_hits(const struct way *way, uint64_t *ret_hits)
{
	struct ul_link link;
	char path[512];
	uint64_t off;
	int counter_fd, err;

	err = ul_locate((const void *)probed_function, path, sizeof(path), &off);
	if (err)
		return err;
	counter_fd = ul_counter_open();
	if (counter_fd < 0)
		return counter_fd;
	err = ul_attach(way->how, path, off, getpid(), counter_fd, way->session_ret, &link);
	if (!err) {
		for (int i = 0; i < CALLS; i++)
			probed_function();
		ul_detach(&link);
		probed_function();
		err = ul_counter_read(counter_fd, ret_hits);
	}
	close(counter_fd);
	return err;
}

int main(void)
{
	size_t cnt = sizeof(ways) / sizeof(ways[0]);
	struct utsname u;
	struct stat st;
	int failed = 0;

	uname(&u);
	printf("# %s %s\n", u.sysname, u.release);
	printf("1..%zu\n", cnt + 1);
	if (stat("/sys/kernel/btf/vmlinux", &st)) {
		printf("not ok 1 - BTF: %s\n", strerror(errno));
		failed = 1;
	} else {
		printf("ok 1 - BTF, %ld bytes\n", (long)st.st_size);
	}
	for (size_t i = 0; i < cnt; i++) {
		const struct way *way = &ways[i];
		uint64_t hits = 0;
		int err = count_hits(way, &hits);

		if (err && !kernel_is_at_least(&u, way->since_major, way->since_minor)) {
			printf("ok %zu - %s # SKIP not in this kernel (%s), since %d.%d\n", i + 2,
			       way->name, strerror(-err), way->since_major, way->since_minor);
		} else if (err) {
			printf("not ok %zu - %s: %s\n", i + 2, way->name, strerror(-err));
			failed = 1;
		} else if (hits != way->hits) {
			printf("not ok %zu - %s: %lu hits instead of %lu\n", i + 2, way->name,
			       (unsigned long)hits, (unsigned long)way->hits);
			failed = 1;
		} else {
			printf("ok %zu - %s: %lu hits\n", i + 2, way->name, (unsigned long)hits);
		}
	}
	return failed;
}
