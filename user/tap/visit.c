/* SPDX-License-Identifier: MIT */
/* visit.c - see tap_priv.h. */
#include "tap/tap_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "tap/threads.h"

__attribute__((format(printf, 3, 4))) static int fail(struct visit_answer *a, int err,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->why, sizeof(a->why), format, args);
	va_end(args);
	return err;
}

static int stop(pid_t pid, struct threads **ret, struct visit_answer *a)
{
	int err = threads_stop(pid, ret);

	if (err == -ESRCH)
		return fail(a, err, "it has ended");
	if (err == -ETIMEDOUT)
		return fail(a, err, "a thread of it did not stop within 0.2 s");
	if (err)
		return fail(a, err, "it cannot be stopped: %s%s", strerror(-err),
			    err == -EPERM ? " (is it being debugged or traced?)" : "");
	return 0;
}

static int run(pid_t pid, visit_fn work, void *ctx, struct visit_answer *a)
{
	struct threads *th = NULL;
	int err = stop(pid, &th, a);

	if (err)
		return err;
	err = work(ctx, th, a);
	a->thread_cnt = (uint32_t)threads_cnt(th);
	a->stopped_ns = threads_resume(th);
	return err;
}

bool visit_is_orphan(const struct visit_answer *a)
{
	return getppid() != a->asker;
}

int visit_process(pid_t pid, visit_fn work, void *ctx, struct visit_answer *ret)
{
	struct visit_answer *a;
	pid_t child;

	*ret = (struct visit_answer){ 0 };
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a == MAP_FAILED)
		return fail(ret, -errno, "no memory to stop it by: %s", strerror(errno));
	*a = (struct visit_answer){ .err = -EIO, .asker = getpid() };
	child = fork();
	if (!child) {
		thread_be_prompt();
		a->err = run(pid, work, ctx, a);
		_exit(0);
	}
	if (child < 0)
		a->err = fail(a, -errno, "no process to stop it by: %s", strerror(errno));
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	*ret = *a;
	munmap(a, sizeof(*a));
	if (ret->err == -EIO && !ret->why[0])
		fail(ret, -EIO, "the process of heaptap that stops it was killed");
	return ret->err;
}
