/* SPDX-License-Identifier: MIT */
/* visit.c - see tap_priv.h. */
#include "tap/tap_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"
#include "tap/threads.h"

static int stop(pid_t pid, struct threads **ret, struct err *why)
{
	int err = threads_stop(pid, ret);

	if (err == -ESRCH)
		return err_set(why, err, "it has ended");
	if (err == -ETIMEDOUT)
		return err_set(why, err, "a thread of it did not stop within 0.2 s");
	if (err)
		return err_set(why, err, "it cannot be stopped: %s%s", strerror(-err),
			       err == -EPERM ? " (is it being debugged or traced?)" : "");
	return 0;
}

static int run(pid_t pid, visit_fn work, void *ctx, struct visit_answer *a)
{
	struct threads *th = NULL;
	int err = stop(pid, &th, &a->why);

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
		return err_set_os(&ret->why, -errno, "no memory to stop it by");
	*a = (struct visit_answer){ .err = -EIO, .asker = getpid() };
	child = fork();
	if (!child) {
		thread_be_prompt();
		a->err = run(pid, work, ctx, a);
		_exit(0);
	}
	if (child < 0)
		a->err = err_set_os(&a->why, -errno, "no process to stop it by");
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	*ret = *a;
	munmap(a, sizeof(*a));
	if (ret->err == -EIO && !ret->why.text[0])
		err_set(&ret->why, -EIO, "the process of heaptap that stops it was killed");
	return ret->err;
}
