/* SPDX-License-Identifier: MIT */
/* targets.c - see targets.h. */
#include "record/targets.h"

#include <signal.h>

#include "base/err.h"
#include "base/log.h"
#include "base/printable.h"
#include "kernel/engine.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "track/tracker.h"

/*
 * Memory is refused (not just slow, or paid for by the OOM killer) for three reasons: the address space limit of
 * the process; the commit limit of a machine that does not overcommit; and, on one that does, a request larger than
 * the machine.
 */

/* What a process may take between two looks; with less left, no throwing function is probed. */
#define MARGIN_BYTES (64ULL << 20)

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Return the address space in use. */
static uint64_t address_space_bytes(pid_t pid)
{
	uint64_t pages = 0;
	char text[64];

	proc_read_start(pid, text, sizeof(text), "statm");
	sscanf(text, "%" SCNu64, &pages);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* vm.overcommit_memory = 2: the kernel accounts for every byte of address space. */
static int never_overcommits(void)
{
	FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &mode) != 1)
		mode = 0;
	fclose(f);
	return mode == 2;
}

static uint64_t commit_left_bytes(void)
{
	uint64_t limit_kib = UINT64_MAX >> 10, committed_kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[256];

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CommitLimit: %" SCNu64, &limit_kib) != 1 &&
		    sscanf(line, "Committed_AS: %" SCNu64, &committed_kib) != 1)
			continue;
	}
	fclose(f);
	return minus(limit_kib, committed_kib) << 10;
}

uint64_t throw_limit_bytes(pid_t pid, uint64_t address_limit_bytes)
{
	uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), left;

	if (address_limit_bytes) {
		left = minus(address_limit_bytes, address_space_bytes(pid));
		limit = left < limit ? left : limit;
	}
	if (never_overcommits()) {
		left = commit_left_bytes();
		limit = left < limit ? left : limit;
	}
	return minus(limit, MARGIN_BYTES);
}

#define LOOK_CNT 8 /* processes checked in one call */
#define EXEC_LOOKS 20
#define EXEC_PAUSE_US 5000
#define NAMED_CNT 3 /* names shown of a list */

void targets_release(struct targets *t)
{
	struct target *one;

	vec_each(&t->list, one)
		free(one->exe);
	vec_release(&t->list);
}

static bool targets_have(const struct targets *t, pid_t pid)
{
	const struct target *one;

	vec_each(&t->list, one)
		if (one->pid == pid)
			return true;
	return false;
}

static int add(struct targets *t, struct target *one, const char *comm, const char *exe)
{
	int err;

	snprintf(one->comm, sizeof(one->comm), "%s", comm);
	one->exe = strdup(exe);
	err = one->exe ? vec_push(&t->list, *one) : -ENOMEM;
	if (err)
		free(one->exe);
	return err;
}

/* Add one that runs and was checked. */
static int targets_add(struct targets *t, const struct process_info *info)
{
	struct target one = {
		.pid = info->pid,
		.seccomp = info->seccomp,
		.catches_sigsys = info->catches_sigsys,
		.is_main_thread_gone = info->is_main_thread_gone,
		.rss_begin_bytes = info->rss_bytes,
		.rss_bytes = info->rss_bytes,
		.file_begin_bytes = info->file_bytes,
		.file_bytes = info->file_bytes,
		.throw_limit_bytes = throw_limit_bytes(info->pid, info->address_limit_bytes),
	};

	heap_kind_read(t->reader, info, &one.heap);
	return add(t, &one, info->comm, info->exe);
}

int targets_add_launched(struct targets *t, pid_t pid, const char *path)
{
	struct target one = { .pid = pid, .throw_limit_bytes = throw_limit_bytes(pid, 0) };
	const char *slash = strrchr(path, '/');

	return add(t, &one, slash ? slash + 1 : path, path);
}

/* Fills why with a sentence. */
static int check_now(struct reader *reader, pid_t pid, struct process_info *info, struct err *why)
{
	struct err what;
	int err = process_info_read(reader, pid, info);

	if (err == -ESRCH)
		err_set(why, err, "no process with PID %d (ps -e lists them)", pid);
	else if (err)
		err_set_os(why, err, "cannot read /proc/%d", pid);
	if (err)
		return err;
	err = process_check_probing(info, &what);
	return err ? err_set(why, err, "cannot record PID %d: %s", pid, what.text) : 0;
}

bool target_may_return(pid_t pid, int *looks)
{
	if (kill(pid, 0) || ++*looks > EXEC_LOOKS)
		return false;
	usleep(EXEC_PAUSE_US);
	return true;
}

static int check_one(struct reader *reader, pid_t pid, struct process_info *info, struct err *why)
{
	int looks = 0, err = check_now(reader, pid, info, why);

	while (err == -ESRCH && target_may_return(pid, &looks))
		err = check_now(reader, pid, info, why);
	return err;
}

int targets_check(struct targets *t, const pid_t *pids, size_t cnt, size_t named_cnt)
{
	struct process_info info;
	struct err why = { 0 };
	int err = 0, last_err = -ESRCH;

	for (size_t i = 0; i < cnt; i++) {
		err = check_one(t->reader, pids[i], &info, &why);
		if (!err)
			err = targets_add(t, &info);
		if (!err || (err == -ESRCH && i >= named_cnt)) /* it has just ended */
			continue;
		if (err == -ENOMEM || i < named_cnt)
			break;
		log_warn("record: left out: %s", why.text);
		last_err = err;
		err = 0;
	}
	if (err && err != -ESRCH) {
		log_error("record: %s", err == -ENOMEM ? "out of memory" : why.text);
		return err;
	}
	if (err == -ESRCH && t->list.cnt < named_cnt) {
		log_error("record: %s", why.text);
		return err;
	}
	if (!t->list.cnt) {
		log_error("record: none of the matching processes can be recorded");
		return last_err;
	}
	return 0;
}

/* Started programs are often scripts that execute the program that is meant. */
static void note_exec(struct reader *reader, struct target *one, const struct process_info *info)
{
	const struct heap_kind before = one->heap;
	char *exe;

	if (!info->exe[0] || !strcmp(info->exe, one->exe))
		return;
	exe = strdup(info->exe);
	if (!exe)
		return;
	free(one->exe);
	one->exe = exe;
	memcpy(one->comm, info->comm, sizeof(one->comm));
	heap_kind_read(reader, info, &one->heap);
	one->has_other_heap |=
		one->heap.is_go != before.is_go || one->heap.runtime != before.runtime;
}

void targets_refresh(struct targets *t)
{
	size_t cnt = t->list.cnt < LOOK_CNT ? t->list.cnt : LOOK_CNT;
	struct process_info info;

	for (size_t i = 0; i < cnt; i++) {
		struct target *one = &t->list.data[t->next++ % t->list.cnt];

		if (process_info_read(t->reader, one->pid, &info))
			continue;
		if (info.rss_bytes) {
			one->rss_bytes = info.rss_bytes;
			one->file_bytes = info.file_bytes;
		}
		one->throw_limit_bytes = throw_limit_bytes(one->pid, info.address_limit_bytes);
		note_exec(t->reader, one, &info);
	}
}

uint64_t targets_throw_limit(const struct targets *t)
{
	uint64_t limit = UINT64_MAX;
	const struct target *one;

	vec_each(&t->list, one)
		if (one->throw_limit_bytes < limit)
			limit = one->throw_limit_bytes;
	return limit;
}

static bool is_first_of_name(const struct targets *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(t->list.data[k].comm, t->list.data[i].comm))
			return false;
	return true;
}

void targets_name(const struct targets *t, char buf[static TARGETS_NAME_BYTES])
{
	size_t shown_cnt = 0;

	if (t->list.cnt == 1) {
		snprintf(buf, TARGETS_NAME_BYTES, "PID %d (%s)", t->list.data[0].pid,
			 t->list.data[0].comm);
		return;
	}
	snprintf(buf, TARGETS_NAME_BYTES, "%zu processes (", t->list.cnt);
	for (size_t i = 0; i < t->list.cnt && shown_cnt <= NAMED_CNT; i++) {
		if (!is_first_of_name(t, i))
			continue;
		text_add(buf, TARGETS_NAME_BYTES, "%s%s", shown_cnt ? ", " : "",
			 shown_cnt < NAMED_CNT ? t->list.data[i].comm : "...");
		shown_cnt++;
	}
	text_add(buf, TARGETS_NAME_BYTES, ")");
}

#define ROUNDS 100 /* for a family that grows faster than this reads it, events report the rest */

struct family {
	struct engine *engine;
	struct tracker *tracker;
	struct targets *targets;
	VEC(pid_t) left_out;
};

static bool is_left_out(const struct family *f, pid_t pid)
{
	const pid_t *one;

	vec_each(&f->left_out, one)
		if (*one == pid)
			return true;
	return false;
}

static int leave_out(struct family *f, const struct process_info *info, const char *why)
{
	log_warn("record: left out: %s", why);
	return vec_push(&f->left_out, info->pid);
}

static int add_child(struct family *f, pid_t pid)
{
	struct process_info info;
	struct err why;
	int err = process_info_read(f->targets->reader, pid, &info);

	if (err || info.is_zombie)
		return err == -ENOMEM ? err : 0; /* it has ended */
	if (process_check_probing(&info, &why))
		return leave_out(f, &info, why.text);
	err = tracker_add(f->tracker, pid);
	if (err == -ESRCH || err == -ENOENT) {
		tracker_remove(f->tracker, pid);
		return 0;
	}
	return err ? err : targets_add(f->targets, &info);
}

/*
 * A child appears in /proc a moment before its fork is reported; then the kernel's side makes its target anew, with
 * another generation.
 */
static bool was_made_anew(const struct family *f, pid_t pid)
{
	struct ht_target target;

	return !engine_get_target(f->engine, pid, &target) &&
	       target.generation / HT_GENERATION_STEP !=
		       tracker_generation(f->tracker, pid) / HT_GENERATION_STEP;
}

static int look_at(struct family *f, pid_t pid, bool *has_news)
{
	struct process_info info;
	struct ht_target target;

	if (pid == getpid() || process_glance(f->targets->reader, pid, &info) || info.is_zombie ||
	    info.tgid != pid)
		return 0;
	if (tracker_follows(f->tracker, pid)) {
		if (!targets_have(f->targets, pid) || !was_made_anew(f, pid))
			return 0;
		tracker_remove(f->tracker, pid);
		*has_news = true;
		return tracker_add(f->tracker, pid);
	}
	/* it has a target, but is not followed: its fork is being reported */
	if (!tracker_follows(f->tracker, info.ppid) || is_left_out(f, pid) ||
	    !engine_get_target(f->engine, pid, &target))
		return 0;
	*has_news = true;
	return add_child(f, pid);
}

static int look(struct family *f, bool *has_news)
{
	struct process_list all;
	const pid_t *pid;
	int err = engine_events_drain(f->engine);

	*has_news = false;
	if (!err)
		err = process_list_read(&all);
	if (err)
		return err;
	vec_each(&all.pids, pid) {
		err = look_at(f, *pid, has_news);
		if (err == -ESRCH || err == -ENOENT)
			err = 0; /* it has ended meanwhile */
		if (err)
			break;
	}
	process_list_release(&all);
	return err;
}

int family_add(struct engine *e, struct tracker *t, struct targets *targets)
{
	struct family f = { .engine = e, .tracker = t, .targets = targets };
	bool has_news = true;
	int err = 0;

	for (int i = 0; i < ROUNDS && has_news && !err; i++)
		err = look(&f, &has_news);
	vec_release(&f.left_out);
	return err;
}
