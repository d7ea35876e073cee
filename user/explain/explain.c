/* SPDX-License-Identifier: MIT */
/* explain/explain.c - see explain/explain.h. */
#include "explain/explain.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "explain/target.h"
#include "proc/process.h"

static int explain_memory(struct explanation *x, uint64_t deadline_ns, struct err *why)
{
	struct target *t = NULL;
	struct memory *m;
	int err = target_read_mappings(x->pid, deadline_ns, &x->maps);

	if (!err)
		err = target_open(x->pid, &x->maps, deadline_ns, &t);
	if (err) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without an error it was opened */
		return err_set_os(why, err, "the memory of process %d (%s) may not be read", x->pid,
				  x->comm);
	m = target_memory(t);
	err = glibc_find(m, &x->maps, &x->glibc);
	if (!err)
		err = glibc_walk(m, &x->maps, &x->glibc);
	if (!err)
		err = rows_fill(&x->rows, m, &x->maps, &x->glibc);
	if (err)
		err_set(why, err, "out of memory");
	target_close(t);
	return err;
}

int explain_process(pid_t pid, uint64_t limit_ns, struct explanation *ret, struct err *why)
{
	uint64_t start_ns = now_ns();
	struct process_info info;
	int err = process_info_read(pid, &info);

	memset(ret, 0, sizeof(*ret));
	if (err)
		return err_set(why, err, "there is no process %d: see 'ps -e' for those there are",
			       pid);
	err = process_check(&info, why);
	if (err)
		return err;
	ret->pid = pid;
	memcpy(ret->comm, info.comm, sizeof(ret->comm));
	err = explain_memory(ret, start_ns + limit_ns, why);
	if (!err && !ret->rows.rss_bytes)
		err = err_set(why, -ESRCH, "process %d (%s) has just ended", pid, info.comm);
	if (err)
		return err;
	verdict_find(&ret->verdict, pid, &ret->rows, &ret->glibc);
	ret->took_ns = now_ns() - start_ns;
	return 0;
}

void explain_release(struct explanation *x)
{
	glibc_release(&x->glibc);
	mappings_release(&x->maps);
}
