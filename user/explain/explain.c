/* SPDX-License-Identifier: MIT */
/* explain/explain.c - see explain/explain.h. */
#include "explain/explain.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "explain/target.h"
#include "explain/type_files.h"
#include "proc/process.h"

/* The heaps, and then the rows, which get what the heaps leave. */
static int explain_heaps(struct explanation *x, struct memory *m)
{
	struct python_pools python;
	int err = glibc_find(m, &x->maps, &x->glibc);

	if (!err)
		err = glibc_walk(m, &x->maps, &x->glibc);
	if (!err)
		err = jemalloc_read(m, &x->maps, &x->jemalloc);
	if (err)
		return err;
	python_pools_read(m, &x->maps, &python);
	return rows_fill(&x->rows, m, &x->maps, &x->glibc, &x->jemalloc, &python);
}

static int explain_with_types(struct explanation *x, pid_t tid, struct memory *m)
{
	struct open_file *files = NULL;
	struct type_files files_of;
	int err = type_files_open(tid, &files, &files_of);

	if (!err)
		err = types_new(m, &x->maps, &files_of, &x->types);
	x->glibc.types = x->jemalloc.types = x->types;
	if (!err)
		err = explain_heaps(x, m);
	if (!err)
		types_finish(x->types);
	type_files_close(files);
	return err;
}

/* tid: a thread that lives; the main one may have ended. */
static int explain_memory(struct explanation *x, pid_t tid, bool wants_types, uint64_t deadline_ns,
			  struct err *why)
{
	struct target *t = NULL;
	int err = target_read_mappings(tid, deadline_ns, &x->maps);

	if (!err)
		err = target_open(tid, &x->maps, deadline_ns, &t);
	if (err) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without an error it was opened */
		return err == -ESRCH ?
			       err_set(why, err, "process %d (%s) has just ended", x->pid,
				       x->comm) :
		       err == -ETIMEDOUT ?
			       err_set(why, err,
				       "process %d (%s) has too many mappings to read them in time",
				       x->pid, x->comm) :
			       err_set_os(why, err, "the memory of process %d (%s) may not be read",
					  x->pid, x->comm);
	err = wants_types ? explain_with_types(x, tid, target_memory(t)) :
			    explain_heaps(x, target_memory(t));
	if (err)
		err_set(why, err, "out of memory");
	else if (!target_is_there(t))
		err = err_set(
			why, -ESRCH,
			"process %d (%s) ended, or executed another program, while it was read",
			x->pid, x->comm);
	target_close(t);
	return err;
}

int explain_process(pid_t pid, bool wants_types, uint64_t limit_ns, struct explanation *ret,
		    struct err *why)
{
	uint64_t start_ns = now_ns();
	struct process_info info;
	int err = process_glance(pid, &info);

	memset(ret, 0, sizeof(*ret));
	if (sysconf(_SC_PAGESIZE) != MEMORY_PAGE)
		return err_set(why, -ENOTSUP, "explain knows pages of 4 KiB only");
	if (err)
		return err_set(why, err, "there is no process %d (ps -e lists them)", pid);
	/* No file of the process is opened here, which may wait for ever. Only if its main thread has ended, a living one is looked for. */
	info.live_tid = pid;
	if (info.is_zombie && process_info_read(pid, &info))
		return err_set(why, -ESRCH, "process %d has just ended", pid);
	err = process_check(&info, why);
	if (err)
		return err;
	ret->pid = pid;
	ret->start_time_ticks = info.start_time_ticks;
	ret->looked_ns = start_ns;
	memcpy(ret->comm, info.comm, sizeof(ret->comm));
	err = explain_memory(ret, info.live_tid, wants_types, start_ns + limit_ns, why);
	if (err)
		return err;
	/* that no thread lives of a process with several is not so: in this glibc their ids are elsewhere */
	if (info.thread_cnt > 1 && ret->rows.dead_stack_cnt == ret->rows.stack_cnt)
		ret->rows.dead_stack_cnt = ret->rows.dead_stack_bytes = 0;
	verdict_find(&ret->verdict, pid, &ret->rows, &ret->glibc, &ret->jemalloc);
	ret->took_ns = now_ns() - start_ns;
	return 0;
}

void explain_release(struct explanation *x)
{
	types_free(x->types);
	glibc_release(&x->glibc);
	mappings_release(&x->maps);
}
