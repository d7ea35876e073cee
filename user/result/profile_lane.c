/* SPDX-License-Identifier: MIT */
/* profile_lane.c - see profile_lane.h. */
#include "result/profile_lane.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* States of a file before there is a result. */
#define NOT_BEGUN 1
#define BEGUN 2

struct lane_news {
	_Atomic uint64_t begun_ns; /* of the file being made */
	_Atomic int err[LANE_FILES_CAP];
};

int profile_lane_init(struct profile_lane *l, enum lane_kind kind)
{
	struct lane_news *news = mmap(NULL, sizeof(*news), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (news == MAP_FAILED)
		return -ENOMEM;
	*l = (struct profile_lane){ .kind = kind, .news = news };
	return 0;
}

void profile_lane_release(struct profile_lane *l)
{
	if (!l->news)
		return;
	worker_kill(&l->worker);
	munmap(l->news, sizeof(*l->news));
	l->news = NULL;
}

size_t profile_lane_cap(const struct profile_lane *l)
{
	return l->kind == LANE_QUICK ? LANE_FILES_CAP : 1;
}

struct work {
	struct profile_lane *lane;
	lane_make_fn make;
	void *ctx;
};

/* Runs in the child. Stop after a slow file, so that the others do not wait for more of that kind: they are made
 * later. */
static int make_files(void *ctx)
{
	const struct work *work = ctx;
	struct lane_news *news = work->lane->news;
	int failed_cnt = 0, err = 0;

	for (size_t i = 0; i < work->lane->file_cnt && err != -ETIME; i++) {
		news->begun_ns = now_ns();
		news->err[i] = BEGUN;
		err = work->make(work->ctx, i);
		news->err[i] = err;
		failed_cnt += err != 0;
	}
	return failed_cnt > 0;
}

int profile_lane_start(struct profile_lane *l, size_t file_cnt, uint64_t moment_ns,
		       lane_make_fn make, void *ctx)
{
	/* Somebody waits for a quick file, and its time is bounded. With less than its share of a busy processor it
	 * would be taken for slow, and would wait behind slow ones. */
	const struct worker_options opts = { .moment_ns = moment_ns,
					     .is_urgent = l->kind == LANE_QUICK };
	struct work work = { l, make, ctx };

	l->file_cnt = file_cnt;
	l->news->begun_ns = now_ns();
	for (size_t i = 0; i < file_cnt; i++)
		l->news->err[i] = NOT_BEGUN;
	return worker_start(&l->worker, &opts, make_files, &work);
}

bool profile_lane_is_at_work(const struct profile_lane *l)
{
	return l->worker.pid;
}

bool profile_lane_check(struct profile_lane *l)
{
	if (l->worker.pid && l->kind == LANE_QUICK &&
	    now_ns() > l->news->begun_ns + LANE_QUICK_FILE_NS)
		worker_stop(&l->worker);
	return worker_check(&l->worker);
}

bool profile_lane_reap(struct profile_lane *l, uint64_t *ret_ns)
{
	uint64_t began_ns = l->worker.began_ns, cpu_ns;

	if (!worker_reap(&l->worker, "making profiles", &cpu_ns))
		return false;
	*ret_ns = now_ns() - began_ns;
	return true;
}

enum lane_result profile_lane_result(const struct profile_lane *l, size_t i, int *ret_err)
{
	int err = l->news->err[i];
	bool is_stopped = l->worker.was_stopped;

	*ret_err = err <= 0 ? err : -EINTR;
	/* On a busy machine a child may be stopped before it reaches its first file. */
	if (l->kind == LANE_QUICK &&
	    (err == -ETIME || (is_stopped && (err == BEGUN || (err == NOT_BEGUN && !i)))))
		return LANE_TOO_SLOW;
	/* A child that ends by itself before it does anything would do so again. */
	return err == NOT_BEGUN && (is_stopped || l->news->err[0] != NOT_BEGUN) ? LANE_NOT_BEGUN :
										  LANE_OVER;
}

static size_t find(const struct slow_processes *s, pid_t pid, uint32_t generation)
{
	size_t i = 0;

	while (i < SLOW_PROCESSES_CAP && !(s->known[i].is_slow && s->known[i].pid == pid &&
					   s->known[i].generation == generation))
		i++;
	return i;
}

void slow_processes_set(struct slow_processes *s, pid_t pid, uint32_t generation, bool is_slow)
{
	size_t i = find(s, pid, generation);

	if (i == SLOW_PROCESSES_CAP && !is_slow)
		return;
	if (i == SLOW_PROCESSES_CAP)
		i = s->next++ % SLOW_PROCESSES_CAP;
	s->known[i].pid = pid;
	s->known[i].generation = generation;
	s->known[i].is_slow = is_slow;
}

bool slow_processes_has(const struct slow_processes *s, pid_t pid, uint32_t generation)
{
	return find(s, pid, generation) < SLOW_PROCESSES_CAP;
}
