/* SPDX-License-Identifier: MIT */
/*
 * tap_steps.c - see tap_priv.h.
 *
 * Data from the process is not trusted but compared with known values: the bytes at its sites with those of the
 * file, what a descriptor leads to with what it should be (tap_files.c).
 */
#include "tap/tap_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "proc/proc_text.h"

#define VDSO_BYTES_CAP (64 * 1024)
/* A signal's frame is that near to the stack pointer of its handler, or is not found. */
#define STACK_BYTES (64 * 1024)
#define USER_CS 0x33
#define WRITE_BYTES_CAP 4096
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

_Static_assert(offsetof(struct tap_data, set) - offsetof(struct tap_data, filter) ==
		       offsetof(struct tap_seeds, set),
	       "seeds are written as they are");
_Static_assert(sizeof(struct tap_seeds) % WRITE_BYTES_CAP == 0, "written in parts of this size");

/*
 * Returns the number of bytes that can be read, or -errno. A page may wait for a file that does not answer (FUSE). A read
 * of /proc/PID/mem has the lock of the process's memory meanwhile: who probes its libraries then waits for that lock, and
 * every fork() of the machine waits for him. process_vm_readv() waits without it.
 */
static ssize_t read_some(const struct tap_work *w, uint64_t addr, void *buf, size_t bytes)
{
	struct iovec local = { .iov_base = buf, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = bytes };
	ssize_t n = process_vm_readv(w->live_tid, &local, 1, &remote, 1, 0);

	if (n < 0 && errno == EFAULT &&
	    !tap_page_may_block(w, addr)) /* code that may only be executed */
		n = pread(w->mem_fd, buf, bytes, (off_t)addr);
	return n < 0 ? -errno : n;
}

static int read_at(const struct tap_work *w, uint64_t addr, void *buf, size_t bytes)
{
	ssize_t n = read_some(w, addr, buf, bytes);

	return n == (ssize_t)bytes ? 0 : n < 0 ? (int)n : -EFAULT;
}

/* Only this writes to code. The pages are read before, because it waits for them with the lock: see above. */
static int write_at(const struct tap_work *w, uint64_t addr, const void *buf, size_t bytes)
{
	uint8_t there[WRITE_BYTES_CAP];
	int err = bytes <= sizeof(there) ? read_at(w, addr, there, bytes) : -EINVAL;
	ssize_t n;

	if (err)
		return err;
	n = pwrite(w->mem_fd, buf, bytes, (off_t)addr);
	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EFAULT;
}

static int open_memory(struct tap_work *w, struct err *why)
{
	w->live_tid = threads_live_tid(w->pid);
	if (!w->live_tid)
		return err_set(why, -ESRCH, "it has ended");
	w->mem_fd = proc_open(w->live_tid, O_RDWR, "mem");
	if (w->mem_fd < 0)
		return err_set_os(why, w->mem_fd == -ENOENT ? -ESRCH : w->mem_fd,
				  "its memory cannot be opened");
	return 0;
}

/* Now that the threads are stopped: the process may have executed another program since it was opened, and then the memory
 * is that of another process, which runs. */
static int renew_memory(struct tap_work *w, struct err *why)
{
	close(w->mem_fd);
	return open_memory(w, why);
}

/* Hand the file to the owner of the tap, locked: so others see that it has one. */
static int hand_over(struct tap_work *w, struct err *why)
{
	int err = flock(w->file_fd, LOCK_SH | LOCK_NB) ? -errno : visit_send_fd(w->file_fd);

	return err ? err_set_os(why, err, "the file of the tap's code cannot be locked") : 0;
}

/*
 * Taps that are there.
 */

enum tap_state { STATE_OUT, STATE_NOBODYS, STATE_OWN, STATE_OTHERS };

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

static bool is_own_file(const struct tap_work *w, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; w->own && i < w->own->cnt; i++)
		if (w->own->ino[i] == st.st_ino)
			return true;
	return false;
}

/* Say whose it is. */
static int refuse_others(const struct tap_work *w, uint64_t code_addr, struct err *why)
{
	int fd = tap_open_mapped(w, code_addr, O_RDONLY);
	struct tap_control control = { 0 };
	bool is_read =
		fd >= 0 && pread(fd, &control, sizeof(control), TAP_CODE_BYTES) == sizeof(control);

	if (fd >= 0)
		close(fd);
	return is_read ? err_set(why, -EBUSY, "it is tapped by another heaptap, PID %lld",
				 (long long)control.owner_pid) :
			 err_set(why, -EBUSY, "it is tapped by another heaptap");
}

static enum tap_state owner_of(const struct tap_work *w, uint64_t code_addr,
			       const struct tap_header *h)
{
	enum tap_state state = STATE_NOBODYS;
	uint64_t mark;
	int fd;

	if (read_at(w, h->data_addr, &mark, sizeof(mark)) || mark != TAP_MAGIC)
		return STATE_NOBODYS; /* a fork has brought it */
	fd = tap_open_mapped(w, code_addr, O_RDONLY);
	if (fd < 0)
		return STATE_NOBODYS; /* it only looks like a tap */
	if (flock(fd, LOCK_EX | LOCK_NB))
		state = is_own_file(w, fd) ? STATE_OWN : STATE_OTHERS;
	close(fd);
	return state;
}

/* A jump from the gap to its site, whose instruction is there again. */
static void make_way_back(const struct tap_patch *p, uint8_t *ret)
{
	int32_t off = (int32_t)(p->site_addr - (p->addr + p->byte_cnt));

	ret[0] = 0xe9;
	memcpy(ret + 1, &off, sizeof(off));
}

/* A short jump into a gap says nothing: each tap of the same allocator has the same. */
static bool is_hop(const struct tap_header *h, uint32_t i)
{
	return i && h->patch[i - 1].is_gap && !h->patch[i].is_gap;
}

/* The tap whose code is at this address; *ret: its header, as the process has it. */
static enum tap_state look_at(const struct tap_work *w, uint64_t code_addr, struct tap_header *ret)
{
	uint8_t there[TAP_PATCH_CAP], way_back[TAP_PATCH_CAP];
	bool has_way_back = false;

	if (read_at(w, code_addr, ret, sizeof(*ret)) || !header_is_known(ret))
		return STATE_OUT;
	for (uint32_t i = 0; i < ret->patch_cnt; i++) {
		const struct tap_patch *p = &ret->patch[i];

		if (read_at(w, p->addr, there, p->byte_cnt))
			continue;
		if (!is_hop(ret, i) && !memcmp(there, p->patched, p->byte_cnt))
			return owner_of(w, code_addr, ret);
		make_way_back(p, way_back);
		has_way_back |= p->is_gap && !memcmp(there, way_back, p->byte_cnt);
	}
	/* Who could not take it out wholly may be gone by now. */
	return has_way_back && owner_of(w, code_addr, ret) == STATE_NOBODYS ? STATE_NOBODYS :
									      STATE_OUT;
}

/*
 * The allocator's bytes.
 */

/* Is this file of the process already tapped by the same owner? */
static bool is_tapped_by_owner(const struct tap_work *w)
{
	struct tap_header h;

	for (uint32_t i = 0; i < w->old_cnt; i++)
		if (look_at(w, w->old_addr[i], &h) == STATE_OWN && h.patch_cnt &&
		    h.patch[0].addr == w->header->patch[0].addr)
			return true;
	return false;
}

static int compare_sites(const struct tap_work *w, struct err *why)
{
	uint8_t there[TAP_PATCH_CAP];

	for (uint32_t i = 0; i < w->header->patch_cnt; i++) {
		const struct tap_patch *p = &w->header->patch[i];
		int err = read_at(w, p->addr, there, p->byte_cnt);

		if (err) /* it executes another program just now: that of the old one is gone */
			return err_set(why, -EAGAIN, "its allocator's code cannot be read: %s",
				       strerror(-err));
		if (!memcmp(there, p->original, p->byte_cnt))
			continue;
		if (is_tapped_by_owner(w))
			return err_set(why, -EALREADY, "it is tapped already");
		if (!memcmp(there, p->patched, p->byte_cnt))
			return err_set(why, -EBUSY, "it is tapped already");
		return err_set(why, -EBUSY,
			       "its allocator's code at 0x%llx differs from its file: another "
			       "tool's breakpoint?",
			       (unsigned long long)p->addr);
	}
	return 0;
}

/* Do these words of a stack have the form in which the kernel saves rip, rflags and the segments for a signal
 * handler? Bit 1 of rflags is always set. */
static bool is_saved_pc(const uint64_t *words)
{
	return (words[1] & 2) && !(words[1] >> 32) && (words[2] & 0xffff) == USER_CS;
}

static void note_user(const struct tap_header *h, uint64_t addr, bool *used)
{
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		used[i] |= h->patch[i].is_gap && h->patch[i].addr == addr;
}

/* In which gaps does a thread stand, or will a signal handler return to? The kernel has put that on the stack of the
 * handler. */
static void find_users(const struct tap_work *w, const struct tap_header *h,
		       const struct visit_shared *s, bool *used)
{
	static uint64_t words[STACK_BYTES / sizeof(uint64_t)];

	for (uint32_t i = 0; i < s->place_cnt && !s->is_over; i++) {
		ssize_t n = read_some(w, s->place[i].sp & ~7ULL, words, sizeof(words));

		note_user(h, s->place[i].pc, used);
		for (ssize_t k = 0; k + 2 < n / (ssize_t)sizeof(*words); k++)
			if (is_saved_pc(words + k))
				note_user(h, words[k], used);
	}
}

/* Another tool has put its byte, or the file's, over the first byte of ours: put back the others. A breakpoint that
 * is there stays, its owner will restore the file's byte. */
static int restore_mixed(const struct tap_work *w, const struct tap_patch *p, const uint8_t *there,
			 struct err *why)
{
	bool is_breakpoint = there[0] == 0xcc;

	if ((there[0] != p->original[0] && !is_breakpoint) ||
	    (memcmp(there + 1, p->patched + 1, p->byte_cnt - 1U) != 0 &&
	     memcmp(there + 1, p->original + 1, p->byte_cnt - 1U) != 0))
		return err_set(why, -EUCLEAN,
			       "its allocator's code at 0x%llx was changed by another tool while "
			       "it was tapped, and is left as it is",
			       (unsigned long long)p->addr);
	return write_at(w, p->addr + is_breakpoint, p->original + is_breakpoint,
			p->byte_cnt - (size_t)is_breakpoint);
}

static int restore_patch(const struct tap_work *w, const struct tap_patch *p, bool is_used,
			 struct err *why)
{
	uint8_t there[TAP_PATCH_CAP], way_back[TAP_PATCH_CAP];
	int err = read_at(w, p->addr, there, p->byte_cnt);

	if (err || !memcmp(there, p->original, p->byte_cnt))
		return err;
	if (p->is_gap) {
		make_way_back(p, way_back);
		if (is_used) {
			err = write_at(w, p->addr, way_back, p->byte_cnt);
			return err ? err :
				     err_set(why, -EAGAIN,
					     "a thread is in the changed code, or a signal "
					     "handler returns to it");
		}
		if (!memcmp(there, way_back, p->byte_cnt))
			return write_at(w, p->addr, p->original, p->byte_cnt);
	}
	if (!memcmp(there, p->patched, p->byte_cnt))
		return write_at(w, p->addr, p->original, p->byte_cnt);
	return restore_mixed(w, p, there, why);
}

/* Restore the first cnt patches, from the last one back: a short jump goes before the long jump that it leads to.
 * What can be restored is, whatever fails. */
static int restore_sites(const struct tap_work *w, const struct tap_header *h, uint32_t cnt,
			 const struct visit_shared *s, struct err *why)
{
	bool used[TAP_PATCHES_CAP] = { false };
	int err, first_err = 0;

	find_users(w, h, s, used);
	while (cnt-- && !s->is_over) {
		err = restore_patch(w, &h->patch[cnt], used[cnt], why);
		/* What somebody else has changed is left, and does not hide that more is to be done. */
		if (err && (!first_err || first_err == -EUCLEAN))
			first_err = err;
	}
	return first_err;
}

static int patch_sites(const struct tap_work *w, const struct visit_shared *s, struct err *why)
{
	struct err of_undo = { 0 };

	for (uint32_t i = 0; i < w->header->patch_cnt && !s->is_over; i++) {
		const struct tap_patch *p = &w->header->patch[i];
		int err = write_at(w, p->addr, p->patched, p->byte_cnt);

		if (!err)
			continue;
		/* A part of it may be written. */
		if (write_at(w, p->addr, p->original, p->byte_cnt) ||
		    restore_sites(w, w->header, i, s, &of_undo))
			return err_set(why, -EIO, "%s", /* some of it is in */
				       of_undo.text[0] ? of_undo.text :
							 "its allocator's code cannot be "
							 "restored");
		return err_set_os(why, err, "its allocator's code cannot be written");
	}
	return 0;
}

/*
 * Clear.
 */

int tap_step_clear(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	struct tap_header h;
	int err = renew_memory(w, &s->why);

	s->result = 0;
	for (uint32_t i = 0; i < w->old_cnt && !err; i++) {
		enum tap_state state = look_at(w, w->old_addr[i], &h);

		if (state == STATE_OTHERS)
			return refuse_others(w, w->old_addr[i], &s->why);
		if (state != STATE_NOBODYS)
			continue;
		err = restore_sites(w, &h, h.patch_cnt, s, &s->why);
		if (err && !s->why.text[0])
			err_set_os(&s->why, err, "the tap of a killed heaptap cannot be removed");
		s->result++;
	}
	return err;
}

int tap_step_prepare_clear(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	struct tap_header h;
	int err = open_memory(w, &s->why);
	bool is_any = false;

	if (!err)
		err = tap_find_device(w);
	for (uint32_t i = 0; i < w->old_cnt && !err; i++)
		is_any |= look_at(w, w->old_addr[i], &h) != STATE_OUT;
	s->result = 0;
	return err ? err : is_any ? 0 : -EALREADY;
}

/*
 * Put in.
 */

static uint64_t find_syscall(const struct tap_work *w)
{
	const struct tap_order *order = w->order;
	size_t bytes = order->vdso_bytes < VDSO_BYTES_CAP ? order->vdso_bytes : VDSO_BYTES_CAP;
	uint8_t *text = malloc(bytes + 1);
	uint64_t found = 0;

	if (text && !read_at(w, order->vdso_addr, text, bytes))
		for (size_t i = 0; i + 1 < bytes && !found; i++)
			if (text[i] == 0x0f && text[i + 1] == 0x05)
				found = order->vdso_addr + i;
	free(text);
	return found;
}

/* The stub returns to addresses that it has pushed. */
static int check_shadow_stack(const struct tap_work *w, struct err *why)
{
	FILE *f = proc_fopen(w->live_tid, "status");
	bool has_one = false;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		has_one |= !strncmp(line, "x86_Thread_features:", 20) && strstr(line, "shstk");
	if (f)
		fclose(f);
	return has_one ? err_set(why, -ENOTSUP, "it has a shadow stack (CET)") : 0;
}

int tap_step_prepare(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	uint64_t random;
	int err = open_memory(w, &s->why);

	if (!err)
		err = check_shadow_stack(w, &s->why);
	if (!err)
		err = tap_find_device(w);
	if (!err && getrandom(&random, sizeof(random), 0) != sizeof(random))
		err = -EIO;
	if (err)
		return err;
	snprintf(w->name, sizeof(w->name), TAP_NAME "%016llx", (unsigned long long)random);
	/* Reads the pages of its allocator: one that does not answer is met before anything is stopped. */
	err = compare_sites(w, &s->why);
	if (err == -EBUSY)
		err = 0; /* perhaps an old tap, which is looked at later */
	tap_find_gadgets(w);
	w->vdso_syscall_addr = find_syscall(w);
	if (!err && !w->vdso_syscall_addr)
		err = err_set(&s->why, -ENOTSUP, "its vdso has no system call instruction");
	return err;
}

/* The code of a tap that was taken out must be that of this one. It is compared in the file, because the memory may
 * still have the breakpoints of probes. */
static bool is_same_code(int fd, const struct tap_order *order)
{
	struct tap_code *there = malloc(sizeof(*there));
	bool is_same = there && pread(fd, there->bytes, TAP_CODE_BYTES, 0) == TAP_CODE_BYTES &&
		       !memcmp(there->bytes, order->code.bytes, TAP_CODE_BYTES);

	free(there);
	return is_same;
}

/* Use the memory of a tap that was taken out. A forked child shares the file with its parent: it gets one of its
 * own. */
static int use_mapped(struct tap_work *w, struct visit_shared *s)
{
	uint64_t mark = 0;

	w->file_fd = tap_open_mapped(w, w->order->code_addr, O_RDWR);
	if (w->file_fd < 0 || !is_same_code(w->file_fd, w->order))
		return err_set(&s->why, -EEXIST,
			       "the place for the tap is in use by a tap of another version");
	if (read_at(w, w->header->data_addr, &mark, sizeof(mark)))
		return err_set(&s->why, -EEXIST, "the data of its earlier tap is gone");
	if (mark != TAP_MAGIC || (fcntl(w->file_fd, F_GET_SEALS) & SEALS) != SEALS) {
		close(w->file_fd);
		w->file_fd = -1;
		s->result = TAP_FILE_REPLACE;
		return 0;
	}
	s->result = TAP_FILE_THERE;
	return hand_over(w, &s->why);
}

/* Who is in the slow path is known by its thread pointer. One that does not point to itself is no C library's, and may be
 * that of several threads. */
static int check_thread_pointers(const struct tap_work *w, const struct visit_shared *s,
				 struct err *why)
{
	uint64_t self;

	for (uint32_t i = 0; i < s->place_cnt; i++) {
		uint64_t tp = s->place[i].tp;

		if (tp == THREAD_TP_UNKNOWN ||
		    (tp && !read_at(w, tp, &self, sizeof(self)) && self == tp))
			continue;
		/* Perhaps it is just ending: tried again. */
		return err_set(why, -EAGAIN,
			       "one of its threads has no thread pointer of a C library");
	}
	return 0;
}

/* They were read from a file: are they in the memory, too? */
static bool has_gadgets(const struct tap_work *w)
{
	const struct tap_gadgets *g = &w->gadgets;
	uint8_t call[TAP_SYSCALL_BYTES], sigreturn[TAP_SIGRETURN_BYTES];

	return g->sigreturn_addr && !read_at(w, g->syscall_addr, call, sizeof(call)) &&
	       !read_at(w, g->sigreturn_addr, sigreturn, sizeof(sigreturn)) &&
	       tap_are_gadgets(call, sigreturn);
}

int tap_step_check(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	bool has_way_back;
	int err = tap_step_clear(w, s);

	if (!err)
		err = compare_sites(w, &s->why);
	if (!err)
		err = check_thread_pointers(w, s, &s->why);
	has_way_back = !err && has_gadgets(w);
	s->arg[0] = has_way_back ? w->gadgets.syscall_addr : w->vdso_syscall_addr;
	s->arg[1] = has_way_back ? w->gadgets.sigreturn_addr : 0;
	s->result = TAP_FILE_NEW;
	if (!err && w->order->is_mapped)
		err = use_mapped(w, s);
	return err;
}

int tap_step_read(void *work, struct visit_shared *s)
{
	return read_at(work, s->arg[0], &s->result, sizeof(s->result));
}

int tap_step_exchange(void *work, struct visit_shared *s)
{
	const struct tap_work *w = work;
	uint8_t there[THREADS_FRAME_CAP];
	int err = s->arg[1] <= sizeof(there) ? read_at(w, s->arg[0], there, s->arg[1]) : -EINVAL;

	if (!err)
		err = write_at(w, s->arg[0], s->bytes, s->arg[1]);
	if (!err)
		memcpy(s->bytes, there, s->arg[1]);
	return err;
}

int tap_step_name(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	int err = read_at(w, s->arg[0], w->below, sizeof(w->below));

	return err ? err : write_at(w, s->arg[0], w->name, sizeof(w->name));
}

int tap_step_name_back(void *work, struct visit_shared *s)
{
	const struct tap_work *w = work;

	return write_at(w, s->arg[0], w->below, sizeof(w->below));
}

int tap_step_fill(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	struct stat st;
	int fd = tap_open_proved(w, proc_open(w->live_tid, O_PATH, "fd/%lld", (long long)s->arg[0]),
				 O_RDWR, w->name, 0);

	if (fd < 0)
		return err_set(&s->why, fd,
			       fd == -EPERM ? "its memory file was replaced by another file" :
					      "its memory file cannot be opened");
	w->file_fd = fd;
	if (ftruncate(fd, TAP_FILE_BYTES) ||
	    pwrite(fd, w->order->code.bytes, TAP_CODE_BYTES, 0) != TAP_CODE_BYTES ||
	    fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) || fstat(fd, &st) ||
	    st.st_size != TAP_FILE_BYTES)
		return err_set_os(&s->why, errno ? -errno : -EIO,
				  "its memory file cannot be written");
	return hand_over(w, &s->why);
}

/* Most of the data is zero already; all of it where a fork has wiped it. Pages that are only read take no
 * memory. */
static int wipe_data(const struct tap_work *w)
{
	static const uint8_t nothing[4096];
	uint8_t there[sizeof(nothing)];
	int err = 0;

	for (size_t at = 0; at < TAP_DATA_BYTES && !err; at += sizeof(nothing)) {
		err = read_at(w, w->header->data_addr + at, there, sizeof(there));
		if (!err && memcmp(there, nothing, sizeof(there)) != 0)
			err = write_at(w, w->header->data_addr + at, nothing, sizeof(nothing));
	}
	return err;
}

/* Write an address into the list of peers of the data at data_addr, if it is not there. */
static int add_peer(const struct tap_work *w, uint64_t data_addr, uint64_t peer_addr)
{
	const uint64_t list_addr = data_addr + offsetof(struct tap_data, peer_addr);
	uint64_t peers[TAP_PEERS_CAP];
	int err = read_at(w, list_addr, peers, sizeof(peers));

	for (size_t i = 0; i < TAP_PEERS_CAP && !err; i++) {
		if (peers[i] == peer_addr)
			return 0;
		if (!peers[i])
			return write_at(w, list_addr + i * sizeof(*peers), &peer_addr,
					sizeof(peer_addr));
	}
	return err;
}

/* The owner's taps of other files of the process: a call from one of these files into another is no allocation of its
 * own. */
static int make_peers(const struct tap_work *w)
{
	struct tap_header h;
	int err = 0;

	for (uint32_t i = 0; i < w->old_cnt && !err; i++) {
		if (look_at(w, w->old_addr[i], &h) != STATE_OWN)
			continue;
		err = add_peer(w, h.data_addr, w->header->data_addr);
		if (!err)
			err = add_peer(w, w->header->data_addr, h.data_addr);
	}
	return err;
}

/* All of it is zero until now, and mostly stays so. */
static int write_seeds(const struct tap_work *w)
{
	static const uint8_t nothing[WRITE_BYTES_CAP];
	const uint64_t addr = w->header->data_addr + offsetof(struct tap_data, filter);
	const uint8_t *from = (const uint8_t *)w->seeds;
	int err = 0;

	for (size_t at = 0; from && at < sizeof(*w->seeds) && !err; at += sizeof(nothing))
		if (memcmp(from + at, nothing, sizeof(nothing)) != 0)
			err = write_at(w, addr + at, from + at, sizeof(nothing));
	return err;
}

int tap_step_change(void *work, struct visit_shared *s)
{
	static const uint64_t mark = TAP_MAGIC;
	struct tap_work *w = work;
	int err = w->order->is_mapped ? wipe_data(w) : 0;

	if (!err)
		err = make_peers(w);
	if (!err)
		err = write_seeds(w);
	if (!err)
		err = write_at(w, w->header->data_addr + offsetof(struct tap_data, mark), &mark,
			       sizeof(mark));
	if (err)
		return err_set_os(&s->why, err, "the tap's data cannot be written");
	return patch_sites(w, s, &s->why);
}

/*
 * Take out.
 */

int tap_step_prepare_out(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	uint8_t there[TAP_PATCH_CAP];
	int err = open_memory(w, &s->why);

	for (uint32_t i = 0; i < w->header->patch_cnt && !err; i++) {
		const struct tap_patch *p = &w->header->patch[i];

		if (!read_at(w, p->addr, there, p->byte_cnt) &&
		    memcmp(there, p->original, p->byte_cnt) != 0)
			return 0;
	}
	return err == -ESRCH ? -EALREADY : err ? err : -EALREADY;
}

int tap_step_change_back(void *work, struct visit_shared *s)
{
	struct tap_work *w = work;
	int err = renew_memory(w, &s->why);

	return err ? err : restore_sites(w, w->header, w->header->patch_cnt, s, &s->why);
}
