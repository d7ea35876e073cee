/* SPDX-License-Identifier: MIT */
/* targets.c - see targets.h. */
#include "record/targets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "record/throw_limit.h"
#include "proc/process.h"

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

bool targets_have(const struct targets *t, pid_t pid)
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

int targets_add(struct targets *t, const struct process_info *info)
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

	heap_kind_read(info, &one.heap);
	return add(t, &one, info->comm, info->exe);
}

int targets_add_launched(struct targets *t, pid_t pid, const char *path)
{
	struct target one = { .pid = pid, .throw_limit_bytes = throw_limit_bytes(pid, 0) };
	const char *slash = strrchr(path, '/');

	return add(t, &one, slash ? slash + 1 : path, path);
}

/* Fills why with a sentence. */
static int check_now(pid_t pid, struct process_info *info, struct err *why)
{
	struct err what;
	int err = process_info_read(pid, info);

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

static int check_one(pid_t pid, struct process_info *info, struct err *why)
{
	int looks = 0, err = check_now(pid, info, why);

	while (err == -ESRCH && target_may_return(pid, &looks))
		err = check_now(pid, info, why);
	return err;
}

int targets_check(struct targets *t, const pid_t *pids, size_t cnt, size_t named_cnt)
{
	struct process_info info;
	struct err why = { 0 };
	int err = 0, last_err = -ESRCH;

	for (size_t i = 0; i < cnt; i++) {
		err = check_one(pids[i], &info, &why);
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

void targets_drop(struct targets *t, pid_t pid)
{
	for (size_t i = 0; i < t->list.cnt; i++) {
		if (t->list.data[i].pid != pid)
			continue;
		free(t->list.data[i].exe);
		memmove(&t->list.data[i], &t->list.data[i + 1],
			(t->list.cnt - i - 1) * sizeof(*t->list.data));
		t->list.cnt--;
		return;
	}
}

/* Started programs are often scripts that execute the program that is meant. */
static void note_exec(struct target *one, const struct process_info *info)
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
	heap_kind_read(info, &one->heap);
	one->has_other_heap |=
		one->heap.is_go != before.is_go || one->heap.runtime != before.runtime;
}

void targets_refresh(struct targets *t)
{
	size_t cnt = t->list.cnt < LOOK_CNT ? t->list.cnt : LOOK_CNT;
	struct process_info info;

	for (size_t i = 0; i < cnt; i++) {
		struct target *one = &t->list.data[t->next++ % t->list.cnt];

		if (process_info_read(one->pid, &info))
			continue;
		if (info.rss_bytes) {
			one->rss_bytes = info.rss_bytes;
			one->file_bytes = info.file_bytes;
		}
		one->throw_limit_bytes = throw_limit_bytes(one->pid, info.address_limit_bytes);
		note_exec(one, &info);
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

uint64_t targets_rss_begin(const struct targets *t)
{
	const struct target *one;
	uint64_t sum = 0;

	vec_each(&t->list, one)
		sum += one->rss_begin_bytes;
	return sum;
}

uint64_t targets_rss(const struct targets *t)
{
	const struct target *one;
	uint64_t sum = 0;

	vec_each(&t->list, one)
		sum += one->rss_bytes;
	return sum;
}

int64_t targets_rss_file_growth(const struct targets *t)
{
	const struct target *one;
	int64_t sum = 0;

	vec_each(&t->list, one)
		sum += (int64_t)one->file_bytes - (int64_t)one->file_begin_bytes;
	return sum;
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
	size_t shown_cnt = 0, len;

	if (t->list.cnt == 1) {
		snprintf(buf, TARGETS_NAME_BYTES, "PID %d (%s)", t->list.data[0].pid,
			 t->list.data[0].comm);
		return;
	}
	len = (size_t)snprintf(buf, TARGETS_NAME_BYTES, "%zu processes (", t->list.cnt);
	for (size_t i = 0; i < t->list.cnt && shown_cnt <= NAMED_CNT; i++) {
		if (!is_first_of_name(t, i))
			continue;
		len += (size_t)snprintf(buf + len, TARGETS_NAME_BYTES - len, "%s%s",
					shown_cnt ? ", " : "",
					shown_cnt < NAMED_CNT ? t->list.data[i].comm : "...");
		shown_cnt++;
	}
	snprintf(buf + len, TARGETS_NAME_BYTES - len, ")");
}

void targets_pids(const struct targets *t, char buf[static TARGETS_NAME_BYTES])
{
	const size_t spare = 16; /* for one more, and a note that there are more */
	const struct target *one;
	size_t len = 0;

	vec_each(&t->list, one) {
		if (len + spare > TARGETS_NAME_BYTES) {
			snprintf(buf + len, TARGETS_NAME_BYTES - len, ",...");
			return;
		}
		len += (size_t)snprintf(buf + len, TARGETS_NAME_BYTES - len, "%s%d", len ? "," : "",
					one->pid);
	}
}
