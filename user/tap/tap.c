/* SPDX-License-Identifier: MIT */
/*
 * tap.c - see tap.h.
 *
 * Data from the process is not trusted but compared with known values: the bytes at its sites with those of the
 * file, the result of a system call with the address that was asked for.
 */
#include "tap/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "tap/threads.h"
#include "tap/tap_priv.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif
#define VDSO_BYTES_CAP (64 * 1024)

struct tap {
	pid_t pid;
	int mem_fd; /* its memory as it was: after an exec nothing can be read */
	uint64_t code_addr;
	struct tap_header header;
};

static int read_at(const struct tap *t, uint64_t addr, void *buf, size_t bytes)
{
	ssize_t n = pread(t->mem_fd, buf, bytes, (off_t)addr);

	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EFAULT;
}

static int write_at(const struct tap *t, uint64_t addr, const void *buf, size_t bytes)
{
	ssize_t n = pwrite(t->mem_fd, buf, bytes, (off_t)addr);

	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EFAULT;
}

static int open_fd(pid_t pid, int64_t fd)
{
	char path[64];
	int opened;

	snprintf(path, sizeof(path), "/proc/%d/fd/%lld", pid, (long long)fd);
	opened = open(path, O_RDWR | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

static int open_mapped(pid_t pid, uint64_t addr)
{
	char path[96];
	int opened;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)addr,
		 (unsigned long long)addr + TAP_CODE_BYTES);
	opened = open(path, O_RDWR | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

static int open_memory(pid_t pid)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Memory.
 */

static uint64_t find_syscall(const struct tap *t, const struct tap_order *order)
{
	size_t bytes = order->vdso_bytes < VDSO_BYTES_CAP ? order->vdso_bytes : VDSO_BYTES_CAP;
	uint8_t *text = malloc(bytes + 1);
	uint64_t found = 0;

	if (text && !read_at(t, order->vdso_addr, text, bytes))
		for (size_t i = 0; i + 1 < bytes && !found; i++)
			if (text[i] == 0x0f && text[i + 1] == 0x05)
				found = order->vdso_addr + i;
	free(text);
	return found;
}

/* An executable memory file: some kernels require the flag, older ones do not know it. */
static int64_t new_memfd(const struct tap *t, struct threads *th)
{
	static const char name[16] = TAP_NAME;
	uint64_t name_addr = threads_scratch_addr(th);
	int64_t fd;
	int err = write_at(t, name_addr, name, sizeof(name));

	if (err)
		return err;
	fd = threads_call(th, SYS_memfd_create, name_addr, MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
	if (fd == -EINVAL)
		fd = threads_call(th, SYS_memfd_create, name_addr, MFD_CLOEXEC, 0, 0, 0, 0);
	return fd;
}

static int write_code(const struct tap_order *order, int64_t fd)
{
	int own = open_fd(order->pid, fd), err = 0;

	if (own < 0)
		return own;
	if (pwrite(own, order->code.bytes, TAP_CODE_BYTES, 0) != TAP_CODE_BYTES)
		err = errno ? -errno : -EIO;
	close(own);
	return err;
}

static int check_mapped(int64_t got, uint64_t addr, const char *what, struct err *why)
{
	if (got == (int64_t)addr)
		return 0;
	if (got == -EEXIST || got >= 0)
		return -EEXIST; /* before 4.17 MAP_FIXED_NOREPLACE is a hint */
	return err_set(why, (int)got, "the process may not map memory for %s (mmap: %s)", what,
		       strerror((int)-got));
}

/* Map code and data, both or none. */
static int map_both(const struct tap_order *order, struct threads *th, int64_t fd, struct err *why)
{
	const uint64_t data_addr = order->code_addr + TAP_CODE_BYTES;
	int64_t got;
	int err;

	got = threads_call(th, SYS_mmap, data_addr, TAP_DATA_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	err = check_mapped(got, data_addr, "data", why);
	if (err)
		return err;
	got = threads_call(th, SYS_madvise, data_addr, TAP_DATA_BYTES, MADV_WIPEONFORK, 0, 0, 0);
	err = (int)got;
	if (err) {
		err_set(why, err, "its memory cannot be kept from forked children (madvise: %s)",
			strerror(-err));
	} else {
		got = threads_call(th, SYS_mmap, order->code_addr, TAP_CODE_BYTES,
				   PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
				   (uint64_t)fd, 0);
		err = check_mapped(got, order->code_addr, "code", why);
	}
	if (err)
		threads_call(th, SYS_munmap, data_addr, TAP_DATA_BYTES, 0, 0, 0, 0);
	return err;
}

static void unmap_both(const struct tap_order *order, struct threads *th)
{
	threads_call(th, SYS_munmap, order->code_addr, TAP_BYTES, 0, 0, 0, 0);
}

static int map_new(const struct tap_order *order, struct threads *th, const struct tap *t,
		   struct err *why)
{
	int64_t fd = new_memfd(t, th);
	int err;

	if (fd < 0)
		return err_set(why, (int)fd,
			       "the process may not make a memory file (memfd_create: %s)%s",
			       strerror((int)-fd),
			       fd == -EACCES ? "; see the sysctl vm.memfd_noexec" : "");
	err = write_code(order, fd);
	if (err)
		err_set_os(why, err, "its memory file cannot be written");
	else
		err = map_both(order, th, fd, why);
	threads_call(th, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return err;
}

/* Most of the data is zero already; all of it where a fork has wiped it. Pages that are only read take no
 * memory. */
static int wipe_data(const struct tap *t, uint64_t data_addr)
{
	static const uint8_t nothing[4096];
	uint8_t there[sizeof(nothing)];
	int err = 0;

	for (size_t at = 0; at < TAP_DATA_BYTES && !err; at += sizeof(nothing)) {
		err = read_at(t, data_addr + at, there, sizeof(there));
		if (!err && memcmp(there, nothing, sizeof(there)) != 0)
			err = write_at(t, data_addr + at, nothing, sizeof(nothing));
	}
	return err;
}

static bool is_same_code(int fd, const struct tap_order *order)
{
	const struct tap_header *wanted = tap_code_header(&order->code);
	struct tap_code *there = malloc(sizeof(*there));
	struct tap_header *h;
	bool is_same = false;

	if (there && pread(fd, there->bytes, TAP_CODE_BYTES, 0) == TAP_CODE_BYTES) {
		h = (struct tap_header *)there->bytes;
		h->owner_pid = wanted->owner_pid;
		h->owner_start = wanted->owner_start;
		is_same = !memcmp(there->bytes, order->code.bytes, TAP_CODE_BYTES);
	}
	free(there);
	return is_same;
}

/* Write the owner into the file and into the process's memory, which has its own page where probes were. */
static int write_owner(const struct tap *t, int fd, const struct tap_order *order)
{
	const struct tap_header *wanted = tap_code_header(&order->code);
	int err;

	if (pwrite(fd, wanted, sizeof(*wanted), 0) != sizeof(*wanted))
		return errno ? -errno : -EIO;
	err = write_at(t, order->code_addr + offsetof(struct tap_header, owner_pid),
		       &wanted->owner_pid, sizeof(wanted->owner_pid));
	return err ? err :
		     write_at(t, order->code_addr + offsetof(struct tap_header, owner_start),
			      &wanted->owner_start, sizeof(wanted->owner_start));
}

/*
 * Use the memory of a tap that was taken out: its code must be the same except for the owner. It is compared in
 * the file, because the memory of a forked child still has the breakpoints of its parent's probes.
 */
static int use_mapped(const struct tap_order *order, const struct tap *t, struct err *why)
{
	int fd = open_mapped(order->pid, order->code_addr), err = 0;

	if (fd < 0)
		return err_set_os(why, fd, "its code cannot be opened");
	if (!is_same_code(fd, order) || wipe_data(t, order->code_addr + TAP_CODE_BYTES))
		err = err_set(why, -EEXIST, "memory of another version's tap is there");
	else if (write_owner(t, fd, order))
		err = err_set(why, -EIO, "its code cannot be written");
	close(fd);
	return err;
}

/*
 * The allocator's bytes.
 */

static bool header_is_known(const struct tap_header *h)
{
	if (h->magic != TAP_MAGIC || h->version != TAP_VERSION || h->header_bytes != sizeof(*h) ||
	    !h->patch_cnt || h->patch_cnt > TAP_PATCHES_CAP)
		return false;
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		if (h->patch[i].byte_cnt > TAP_PATCH_CAP)
			return false;
	return true;
}

static int compare_sites(const struct tap *t, struct err *why)
{
	uint8_t there[TAP_PATCH_CAP];

	for (uint32_t i = 0; i < t->header.patch_cnt; i++) {
		const struct tap_patch *p = &t->header.patch[i];
		int err = read_at(t, p->addr, there, p->byte_cnt);

		if (err)
			return err_set_os(why, err, "its allocator's code cannot be read");
		if (!memcmp(there, p->original, p->byte_cnt))
			continue;
		if (!memcmp(there, p->patched, p->byte_cnt))
			return err_set(why, -EBUSY, "it is tapped already");
		return err_set(why, -EBUSY,
			       "its allocator's code is not that of the file at 0x%llx: another "
			       "tool's breakpoint?",
			       (unsigned long long)p->addr);
	}
	return 0;
}

/* Restore the first cnt patches, from the last one back: a short jump goes before the long jump that it leads
 * to. */
static int restore_sites(struct tap *t, struct threads *th, uint32_t cnt)
{
	uint8_t there[TAP_PATCH_CAP];
	int err = 0, first_err = 0;

	while (cnt--) {
		const struct tap_patch *p = &t->header.patch[cnt];
		int32_t off;

		err = read_at(t, p->addr, there, p->byte_cnt);
		if (!err && !memcmp(there, p->patched, p->byte_cnt)) {
			err = write_at(t, p->addr, p->original, p->byte_cnt);
			/* A thread between the two jumps goes on at their destination. */
			memcpy(&off, p->patched + 1, sizeof(off));
			if (!err && cnt + 1 < t->header.patch_cnt && p[1].byte_cnt == TAP_HOP_BYTES)
				threads_move_pc(th, p->addr,
						p->addr + p->byte_cnt + (uint64_t)(int64_t)off);
		}
		if (!first_err)
			first_err = err;
	}
	return first_err;
}

static int patch_sites(struct tap *t, struct threads *th, struct err *why)
{
	for (uint32_t i = 0; i < t->header.patch_cnt; i++) {
		const struct tap_patch *p = &t->header.patch[i];
		int err = write_at(t, p->addr, p->patched, p->byte_cnt);

		if (!err)
			continue;
		restore_sites(t, th, i);
		return err_set_os(why, err, "its allocator's code may not be written");
	}
	return 0;
}

/* Does the owner of the tap still exist? A killed owner may leave its guardian behind for a moment: that does
 * no harm. */
static bool has_owner(const struct tap_header *h)
{
	char path[48], text[1024], *at;
	unsigned long long start = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", h->owner_pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* field 2 */
	for (int i = 2; i < 22 && at; i++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %llu", &start) == 1 && start == h->owner_start;
}

/*
 * Take out taps whose owner is gone, or is gone_pid. Other taps of own_pid are left alone. The header is the
 * process's word: at worst the process has its own bytes changed, which it could change itself.
 */
static int clear_old(const struct tap *t, struct threads *th, const uint64_t *old_addr,
		     uint32_t cnt, pid_t own_pid, pid_t gone_pid, uint32_t *ret_cnt,
		     struct err *why)
{
	struct tap old = { .pid = t->pid, .mem_fd = t->mem_fd };
	uint8_t there[TAP_PATCH_CAP];
	int err;

	*ret_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct tap_patch *first = &old.header.patch[0];

		if (read_at(t, old_addr[i], &old.header, sizeof(old.header)) ||
		    !header_is_known(&old.header) ||
		    read_at(t, first->addr, there, first->byte_cnt) ||
		    memcmp(there, first->patched, first->byte_cnt) != 0)
			continue; /* it is out */
		if (old.header.owner_pid != gone_pid && has_owner(&old.header)) {
			if (old.header.owner_pid == own_pid)
				continue; /* of another file */
			return err_set(why, -EBUSY, "it is tapped by another heaptap, PID %d",
				       old.header.owner_pid);
		}
		err = restore_sites(&old, th, old.header.patch_cnt);
		if (err)
			return err_set_os(why, err,
					  "what a killed heaptap left cannot be taken out");
		++*ret_cnt;
	}
	return 0;
}

/*
 * Visits.
 */

struct work {
	struct tap *tap;
	pid_t gone_pid; /* process that no longer holds taps with its name; 0: none */
	/* To put a tap in. */
	const struct tap_order *order;
	/* To clear. */
	const uint64_t *old_addr;
	uint32_t old_cnt;
};

static int put_in_stopped(const struct work *w, struct threads *th, struct err *why)
{
	const struct tap_order *order = w->order;
	struct tap *t = w->tap;
	uint64_t syscall_addr;
	uint32_t old_cnt;
	int err = clear_old(t, th, order->old_addr, order->old_cnt, t->header.owner_pid,
			    w->gone_pid, &old_cnt, why);

	if (!err)
		err = compare_sites(t, why);
	if (err)
		return err;
	if (order->is_mapped) {
		err = use_mapped(order, t, why);
		return err ? err : patch_sites(t, th, why);
	}
	syscall_addr = find_syscall(t, order);
	if (!syscall_addr)
		return err_set(why, -ENOTSUP, "there is no system call instruction in its vdso");
	err = threads_begin_calls(th, syscall_addr);
	if (err == -EPERM)
		return err_set(why, err,
			       "a seccomp filter watches its system calls, and may not be "
			       "suspended (CAP_SYS_ADMIN)");
	if (err)
		return err_set_os(why, err, "none of its threads can make a call now");
	err = map_new(order, th, t, why);
	if (!err) {
		err = patch_sites(t, th, why);
		if (err)
			unmap_both(order, th);
	}
	threads_end_calls(th);
	return err;
}

/* Put a tap in, and take it out again when the process that asked for it is gone: nobody else would. */
static int put_in(void *ctx, struct threads *th, struct visit_answer *a)
{
	struct work *w = ctx;
	int err = put_in_stopped(w, th, &a->why);

	if (!err && visit_is_orphan(a)) {
		restore_sites(w->tap, th, w->tap->header.patch_cnt);
		err = -ESRCH;
	}
	return err;
}

static int clear(void *ctx, struct threads *th, struct visit_answer *a)
{
	struct work *w = ctx;

	return clear_old(w->tap, th, w->old_addr, w->old_cnt, 0, w->gone_pid, &a->cleared_cnt,
			 &a->why);
}

static int restore(void *ctx, struct threads *th, struct visit_answer *a)
{
	struct work *w = ctx;

	(void)a;
	return restore_sites(w->tap, th, w->tap->header.patch_cnt);
}

static struct tap_result result_of(const struct visit_answer *a)
{
	return (struct tap_result){ .stopped_ns = a->stopped_ns, .thread_cnt = a->thread_cnt };
}

static int take_out(struct tap *t, struct tap_result *result)
{
	struct work w = { .tap = t };
	struct visit_answer a;
	int err = visit_process(t->pid, restore, &w, &a);

	*result = result_of(&a);
	return err;
}

static int put_in_and_open(const struct tap_order *order, struct tap *t, bool is_first, int *ret_fd,
			   struct tap_result *result, struct err *why)
{
	struct work w = { .tap = t,
			  .order = order,
			  .gone_pid = is_first ? t->header.owner_pid : 0 };
	struct tap_result of_undo;
	struct visit_answer a;
	int err = visit_process(t->pid, put_in, &w, &a);

	*result = result_of(&a);
	if (err) {
		err_set(why, err, "%s", a.why.text);
	} else {
		*ret_fd = open_mapped(order->pid, order->code_addr);
		if (*ret_fd < 0)
			err = err_set(why, -EIO, "its code cannot be opened: %s",
				      strerror(-*ret_fd));
	}
	if (err == -EIO) /* it may be in */
		take_out(t, &of_undo);
	return err;
}

int tap_put_in(const struct tap_order *order, bool is_first, struct tap **ret, int *ret_fd,
	       struct tap_result *result, struct err *why)
{
	struct tap *t = calloc(1, sizeof(*t));
	int err;

	*result = (struct tap_result){ 0 };
	if (!t)
		return -ENOMEM;
	t->pid = order->pid;
	t->code_addr = order->code_addr;
	t->header = *tap_code_header(&order->code);
	t->mem_fd = open_memory(order->pid);
	err = t->mem_fd < 0 ? err_set_os(why, t->mem_fd, "its memory cannot be opened") :
			      put_in_and_open(order, t, is_first, ret_fd, result, why);
	if (err)
		tap_free(t);
	else
		*ret = t;
	return err;
}

int tap_clear(pid_t pid, const uint64_t *old_addr, uint32_t cnt, pid_t gone_pid, uint32_t *ret_cnt,
	      struct err *why)
{
	struct tap t = { .pid = pid, .mem_fd = open_memory(pid) };
	struct work w = { .tap = &t, .old_addr = old_addr, .old_cnt = cnt, .gone_pid = gone_pid };
	struct visit_answer a;
	int err;

	*ret_cnt = 0;
	if (t.mem_fd < 0)
		return err_set_os(why, t.mem_fd, "its memory cannot be opened");
	err = visit_process(pid, clear, &w, &a);
	*ret_cnt = a.cleared_cnt;
	if (err)
		err_set(why, err, "%s", a.why.text);
	close(t.mem_fd);
	return err;
}

static uint64_t data_at(const struct tap *t, size_t off)
{
	return t->header.data_addr + off;
}

pid_t tap_pid(const struct tap *t)
{
	return t->pid;
}

int tap_set_rate(struct tap *t, uint64_t rate_bytes)
{
	uint64_t seed;

	/* Threads take their seeds from it at their first draw: no two processes must draw the same. */
	if (rate_bytes && getrandom(&seed, sizeof(seed), 0) == sizeof(seed)) {
		int err = write_at(t, data_at(t, offsetof(struct tap_data, seed)), &seed,
				   sizeof(seed));

		if (err)
			return err;
	}
	return write_at(t, data_at(t, offsetof(struct tap_data, rate_bytes)), &rate_bytes,
			sizeof(rate_bytes));
}

int tap_read_lost(const struct tap *t, struct tap_lost *ret)
{
	struct tap_data d;
	int err = read_at(t, data_at(t, 0), &d, offsetof(struct tap_data, slot));

	if (!err)
		*ret = (struct tap_lost){ d.dropped_cnt, d.failed_cnt };
	return err;
}

int tap_take_out(struct tap *t, struct tap_result *result)
{
	struct tap_header there;
	int err;

	*result = (struct tap_result){ 0 };
	/* Without its memory, the tap is gone, too. */
	if (read_at(t, t->code_addr, &there, sizeof(there)) || there.magic != TAP_MAGIC)
		return 0;
	tap_set_rate(t, 0);
	err = take_out(t, result);
	return err == -ESRCH ? 0 : err;
}

void tap_free(struct tap *t)
{
	if (!t)
		return;
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	free(t);
}
