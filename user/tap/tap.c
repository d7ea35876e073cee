/* SPDX-License-Identifier: MIT */
/*
 * tap.c - see tap.h. What a visit does, from the visitor's side; and the owner's side of a tap, which has the
 * control page mapped itself.
 */
#include "tap/tap.h"

#include <errno.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "tap/tap_priv.h"
#include "tap/threads.h"
#include "tap/visit.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif
#define HWCAP2_FSGSBASE 2
/* Without CAP_SYS_ADMIN it cannot be read, and counts as one that does not. */
#define FORBIDDEN "its seccomp filter does not allow the system calls that put a tap in"

struct tap {
	pid_t pid;
	int file_fd; /* of its code; keeps the lock */
	struct tap_control *control;
	uint64_t ino;
	struct tap_header header;
};

/*
 * Put in: the visitor.
 */

struct put_in {
	struct tap_work work; /* the first member: the steps take it for their ctx */
	uint64_t syscall_addr, sigreturn_addr;
};

static int read_by_step(void *ctx, uint64_t addr, uint64_t *ret)
{
	struct visit *v = ctx;
	int err;

	v->shared->arg[0] = addr;
	err = visit_do(v, tap_step_read);
	*ret = v->shared->result;
	return err;
}

static int exchange_by_step(void *ctx, uint64_t addr, void *bytes, size_t cnt)
{
	struct visit *v = ctx;
	int err;

	v->shared->arg[0] = addr;
	v->shared->arg[1] = cnt;
	memcpy(v->shared->bytes, bytes, cnt);
	err = visit_do(v, tap_step_exchange);
	if (!err)
		memcpy(bytes, v->shared->bytes, cnt);
	return err;
}

/* Why the call was not made, or has not come to an end; 0: got is its result. -ETIME: no code has changed, and
 * the thread may run in a moment. */
static int call_error(int64_t got, struct err *why)
{
	if (got == -ETIMEDOUT)
		return err_set(why, -ETIME,
			       "its threads do not run: is its cgroup frozen (docker pause)?");
	if (got == -EFAULT)
		return err_set(why, -EFAULT,
			       "a signal arrived instead of the result of a system call");
	if (got == -EOPNOTSUPP)
		return err_set(why, -EPERM, FORBIDDEN);
	return got == -ESRCH ? err_set(why, -ESRCH, "it has ended") : 0;
}

/* An executable memory file: some kernels require the flag, older ones do not know it. Its name is below the stack of
 * the calling thread, where something else may be if that stack is small: it is there again afterwards. */
static int64_t new_file(struct visit *v, struct err *why)
{
	const uint64_t name_addr = threads_scratch_addr(v->threads);
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int64_t fd;
	int err;

	v->shared->arg[0] = name_addr;
	err = visit_do(v, tap_step_name);
	if (err)
		return err_set_os(why, err, "its stack cannot be written");
	fd = threads_call(v->threads, SYS_memfd_create, name_addr, flags | MFD_EXEC, 0, 0, 0, 0);
	if (fd == -EINVAL)
		fd = threads_call(v->threads, SYS_memfd_create, name_addr, flags, 0, 0, 0, 0);
	v->shared->arg[0] = name_addr;
	err = visit_do(v, tap_step_name_back);
	if (err && fd >= 0) {
		threads_call(v->threads, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
		return err;
	}
	if (fd >= 0)
		return fd;
	err = call_error(fd, why);
	return err ? err :
		     err_set(why, (int)fd,
			     "the process may not make a memory file (memfd_create: %s)%s",
			     strerror((int)-fd),
			     fd == -EACCES ? "; see the sysctl vm.memfd_noexec" : "");
}

static int check_mapped(int64_t got, uint64_t addr, const char *what, struct err *why)
{
	int err;

	if (got == (int64_t)addr)
		return 0;
	if (got == -EEXIST || got >= 0)
		return -EEXIST; /* before 4.17 MAP_FIXED_NOREPLACE is a hint */
	err = call_error(got, why);
	return err ? err :
		     err_set(why, (int)got, "the process may not map memory for %s (mmap: %s)",
			     what, strerror((int)-got));
}

static void unmap(struct visit *v, uint64_t addr, uint64_t bytes)
{
	threads_call(v->threads, SYS_munmap, addr, bytes, 0, 0, 0, 0);
}

static int map_data(struct visit *v, uint64_t addr, struct err *why)
{
	int64_t got =
		threads_call(v->threads, SYS_mmap, addr, TAP_DATA_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	int err = check_mapped(got, addr, "data", why);

	if (err)
		return err;
	got = threads_call(v->threads, SYS_madvise, addr, TAP_DATA_BYTES, MADV_WIPEONFORK, 0, 0, 0);
	if (!got)
		return 0;
	unmap(v, addr, TAP_DATA_BYTES);
	err = call_error(got, why);
	return err ? err :
		     err_set(why, (int)got,
			     "its memory cannot be kept from forked children (madvise: %s)",
			     strerror((int)-got));
}

static int map_file(struct visit *v, uint64_t addr, int64_t fd, int fixed, struct err *why)
{
	int64_t got = threads_call(v->threads, SYS_mmap, addr, TAP_CODE_BYTES,
				   PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, (uint64_t)fd, 0);
	int err = check_mapped(got, addr, "code", why);

	if (err)
		return err;
	got = threads_call(v->threads, SYS_mmap, addr + TAP_CODE_BYTES, TAP_CONTROL_BYTES,
			   PROT_READ | PROT_WRITE, MAP_SHARED | fixed, (uint64_t)fd,
			   TAP_CODE_BYTES);
	err = check_mapped(got, addr + TAP_CODE_BYTES, "its counters", why);
	if (err && fixed != MAP_FIXED)
		unmap(v, addr, TAP_CODE_BYTES);
	return err;
}

/* Map the file; if it replaces that of a parent, in its place. */
static int map_all(struct visit *v, const struct tap_order *order, int64_t fd, bool is_replaced,
		   struct err *why)
{
	const uint64_t data_addr = order->code_addr + TAP_FILE_BYTES;
	int err = is_replaced ? 0 : map_data(v, data_addr, why);

	if (err)
		return err;
	err = map_file(v, order->code_addr, fd, is_replaced ? MAP_FIXED : MAP_FIXED_NOREPLACE, why);
	if (err && !is_replaced)
		unmap(v, data_addr, TAP_DATA_BYTES);
	return err;
}

static int make_file(struct visit *v, const struct tap_order *order, bool is_replaced,
		     struct err *why)
{
	int64_t fd = new_file(v, why);
	int err;

	if (fd < 0)
		return (int)fd;
	v->shared->arg[0] = (uint64_t)fd;
	err = visit_do(v, tap_step_fill);
	if (!err)
		err = map_all(v, order, fd, is_replaced, why);
	threads_call(v->threads, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return err;
}

static int begin_calls(struct visit *v, const struct put_in *p, struct err *why)
{
	const struct threads_calls how = { p->syscall_addr, p->sigreturn_addr, read_by_step,
					   exchange_by_step, v };
	int err = threads_begin_calls(v->threads, &how);

	if (err == -EPERM)
		return err_set(why, err, FORBIDDEN);
	if (err == -EOPNOTSUPP)
		return err_set(why, err,
			       "it handles its system calls itself (syscall user dispatch, as "
			       "Wine does)");
	if (err == -EAGAIN)
		return err_set(why, err,
			       "none of its threads can make a system call now: all are blocked "
			       "(frozen cgroup, vfork())");
	return err ? err_set_os(why, err, "its threads cannot make a system call") : 0;
}

static int change(struct visit *v, struct err *why)
{
	int err = visit_do(v, tap_step_change);

	if (!err && visit_is_alone(v)) { /* nobody else would take it out */
		visit_do(v, tap_step_change_back);
		err = err_set(why, -ESRCH, "heaptap has ended");
	}
	return err;
}

static int put_in_new(struct visit *v, const struct put_in *p, bool is_replaced, struct err *why)
{
	const struct tap_order *order = p->work.order;
	int err = begin_calls(v, p, why);

	if (err)
		return err;
	err = make_file(v, order, is_replaced, why);
	if (!err) /* after an error, too, it stays mapped: other taps may know it as a peer, or a patch lead there */
		err = change(v, why);
	if (err && !v->accessor_err && !why->text[0])
		*why = v->shared->why; /* the end of the calls is a step, too */
	threads_end_calls(v->threads);
	/* Jumps of the parent lead there, and half of it may be replaced: it counts as one that may be in. */
	return is_replaced && err == -ETIME ? -ETIMEDOUT : err;
}

static int put_in_stopped(void *ctx, struct visit *v, struct err *why)
{
	struct put_in *p = ctx;
	enum tap_file_need need;
	int err;

	err = visit_do(v, tap_step_check);
	if (err)
		return err;
	p->syscall_addr = v->shared->arg[0];
	p->sigreturn_addr = v->shared->arg[1];
	need = (enum tap_file_need)v->shared->result;
	return need == TAP_FILE_THERE ? change(v, why) :
					put_in_new(v, p, need == TAP_FILE_REPLACE, why);
}

/*
 * Take out, and clear: the visitor.
 */

/* A thread between the two jumps goes on where they lead. One that cannot be moved there has to leave first. */
static int move_threads(const struct visit *v, const struct tap_header *h, bool only_look)
{
	for (uint32_t i = 0; i < h->patch_cnt; i++) {
		const struct tap_patch *p = &h->patch[i];
		int32_t off;

		if (!p->is_gap)
			continue;
		memcpy(&off, p->patched + 1, sizeof(off));
		if (only_look && threads_has_pinned_at(v->threads, p->addr))
			return -EAGAIN;
		if (!only_look)
			threads_move_pc(v->threads, p->addr,
					p->addr + p->byte_cnt + (uint64_t)(int64_t)off);
	}
	return 0;
}

static int take_out_stopped(void *ctx, struct visit *v, struct err *why)
{
	const struct tap_work *w = ctx;
	int err = move_threads(v, w->header, true);

	if (err)
		return err_set(why, err, "a thread sleeps in the code that has to be restored");
	err = visit_do(v, tap_step_change_back);
	move_threads(v, w->header, false);
	return err;
}

static int clear_stopped(void *ctx, struct visit *v, struct err *why)
{
	(void)ctx;
	(void)why;
	return visit_do(v, tap_step_clear);
}

/*
 * The owner.
 */

static struct tap_result result_of(const struct visit_report *r)
{
	return (struct tap_result){ .stopped_ns = r->stopped_ns, .thread_cnt = r->thread_cnt };
}

static struct tap *new_tap(const struct tap_order *order)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pid = order->pid;
	t->file_fd = -1;
	t->header = *tap_code_header(&order->code);
	return t;
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? st.st_ino : 0;
}

/* The tap is in: -EIO if it cannot be used. The file is sealed: it cannot become shorter than what is mapped. */
static int map_control(struct tap *t)
{
	struct stat st;
	void *p;

	if (t->file_fd < 0 || fstat(t->file_fd, &st) || st.st_size != TAP_FILE_BYTES)
		return -EIO;
	p = mmap(NULL, TAP_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t->file_fd,
		 TAP_CODE_BYTES);
	if (p == MAP_FAILED)
		return -EIO;
	t->control = p;
	*t->control = (struct tap_control){ .owner_pid = getppid() }; /* the guardian's parent */
	return 0;
}

/* NULL: there are none, or they cannot be had. */
static void *map_seeds(const struct tap_order *order, int fd)
{
	void *p = order->has_seeds ?
			  mmap(NULL, sizeof(struct tap_seeds), PROT_READ, MAP_SHARED, fd, 0) :
			  MAP_FAILED;

	return p == MAP_FAILED ? NULL : p;
}

int tap_put_in(const struct tap_order *order, const struct tap_files *own, struct tap **ret,
	       int *ret_fd, struct tap_result *result, struct err *why)
{
	static const struct visit_work work = { tap_step_prepare, put_in_stopped };
	struct tap *t = new_tap(order);
	struct put_in p = { .work = { .pid = order->pid,
				      .order = order,
				      .own = own,
				      .old_addr = order->old_addr,
				      .old_cnt = order->old_cnt,
				      .mem_fd = -1,
				      .file_fd = -1 } };
	struct visit_report report;
	void *seeds;
	int err;

	*result = (struct tap_result){ 0 };
	if (!t)
		return -ENOMEM;
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		tap_free(t);
		return err_set(why, -ENOTSUP, "the processor or the kernel has no rdfsbase");
	}
	seeds = map_seeds(order, *ret_fd);
	if (order->has_seeds && !seeds) {
		tap_free(t);
		return err_set(why, -ENOMEM, "no memory for the table of its sampled blocks");
	}
	p.work.seeds = seeds;
	p.work.header = &t->header;
	err = visit_process(order->pid, &work, &p, &report, &t->file_fd);
	if (seeds)
		munmap(seeds, sizeof(struct tap_seeds));
	*result = result_of(&report);
	t->ino = inode_of(t->file_fd);
	if (err)
		err_set(why, err, "%s", report.why.text);
	else
		err = map_control(t);
	if (err == -EIO && !why->text[0])
		err_set(why, err, "its memory file cannot be mapped");
	if (!err)
		*ret_fd = t->file_fd;
	if (err == -EIO || err == -ETIMEDOUT) { /* it may be in */
		*ret = t;
	} else if (err) {
		tap_free(t);
	} else {
		*ret = t;
	}
	return err;
}

int tap_clear(pid_t pid, const uint64_t *old_addr, uint32_t cnt, uint32_t *ret_cnt, struct err *why)
{
	static const struct visit_work work = { tap_step_prepare_clear, clear_stopped };
	struct tap_work w = {
		.pid = pid, .old_addr = old_addr, .old_cnt = cnt, .mem_fd = -1, .file_fd = -1
	};
	struct visit_report report;
	int err = visit_process(pid, &work, &w, &report, NULL);

	*ret_cnt = (uint32_t)report.result;
	return err && err != -EALREADY ? err_set(why, err, "%s", report.why.text) : 0;
}

pid_t tap_pid(const struct tap *t)
{
	return t->pid;
}

int tap_fd(const struct tap *t)
{
	return t->file_fd;
}

uint64_t tap_ino(const struct tap *t)
{
	return t->ino;
}

int tap_set_rate(struct tap *t, uint64_t rate_bytes)
{
	uint64_t seed;

	if (!t->control)
		return -EIO;
	/* Threads take their seeds from it at their first draw: no two processes must draw the same. */
	if (rate_bytes && getrandom(&seed, sizeof(seed), 0) == sizeof(seed))
		__atomic_store_n(&t->control->seed, seed, __ATOMIC_RELAXED);
	__atomic_store_n(&t->control->rate_bytes, rate_bytes, __ATOMIC_RELEASE);
	return 0;
}

void tap_read_lost(const struct tap *t, struct tap_lost *ret)
{
	*ret = (struct tap_lost){ 0 };
	if (t->control)
		*ret = (struct tap_lost){
			__atomic_load_n(&t->control->dropped_cnt, __ATOMIC_RELAXED),
			__atomic_load_n(&t->control->failed_cnt, __ATOMIC_RELAXED),
		};
}

int tap_take_out(struct tap *t, struct tap_result *result, struct err *why)
{
	static const struct visit_work work = { tap_step_prepare_out, take_out_stopped };
	struct tap_work w = { .pid = t->pid, .header = &t->header, .mem_fd = -1, .file_fd = -1 };
	struct visit_report report;
	int err;

	tap_set_rate(t, 0);
	err = visit_process(t->pid, &work, &w, &report, NULL);
	*result = result_of(&report);
	if (err)
		err_set(why, err, "%s", report.why.text);
	return err == -ESRCH || err == -EALREADY ? 0 : err;
}

void tap_free(struct tap *t)
{
	if (!t)
		return;
	if (t->control)
		munmap(t->control, TAP_CONTROL_BYTES);
	if (t->file_fd >= 0)
		close(t->file_fd);
	free(t);
}
