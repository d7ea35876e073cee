/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - see saver_priv.h.
 */
#include "saved/saver_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "saved/rules.h"
#include "track/tracker.h"

#define ENDED_CAP 64
/* How long the samples of an ended process are held when it is not the turn of its profile. */
#define ENDED_WAIT_NS (2 * NS_PER_S)
#define LOG_BURST 10
#define LOG_EVERY_NS (10 * NS_PER_S)

void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image)
{
	u->inuse_bytes = image->inuse_bytes_8 > 0 ? (double)image->inuse_bytes_8 / 256 : 0;
	u->peak_bytes = (double)image->peak_bytes_8 / 256;
	u->peak_ns = image->peak_ns;
}

enum saved_class saved_job_class(const struct saved_job *j)
{
	switch (j->name.reason) {
	case KEEP_OOM:
	case KEEP_SIGNAL:
		return KEEP_DEATH;
	case KEEP_LIMIT:
		return KEEP_NEAR_LIMIT;
	case KEEP_PEAK:
		return KEEP_AT_PEAK;
	default:
		return KEEP_ENDED;
	}
}

bool saved_job_has_inuse(const struct saved_job *j)
{
	return !j->budget.is_known || j->budget.view.has_inuse;
}

bool saved_job_is_last(const struct saved_job *j)
{
	return j->name.reason >= KEEP_OOM;
}

int saved_job_by_worth(const void *a, const void *b)
{
	const struct saved_job *x = a, *y = b;

	if (saved_job_class(x) != saved_job_class(y))
		return (int)saved_job_class(x) - (int)saved_job_class(y);
	return (x->usage.inuse_bytes < y->usage.inuse_bytes) -
	       (x->usage.inuse_bytes > y->usage.inuse_bytes);
}

void saved_ended_init(struct saved_ended *ke)
{
	ke->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = LOG_BURST };
}

static void del(struct saved_ended *ke, size_t i)
{
	ke->jobs.data[i] = ke->jobs.data[--ke->jobs.cnt];
}

static void count_skipped(struct saved_ended *ke, const struct saved_job *job, const char *why)
{
	char words[64];
	uint64_t more;

	ke->skipped_cnt++;
	if (saved_job_class(job) != KEEP_DEATH || !log_limit_allows(&ke->log, now_ns()))
		return;
	more = log_limit_left_out(&ke->log);
	log_warn("serve: PID %d (%s), %s: no profile of its end is kept: %s%s", job->name.pid,
		 job->name.comm, saved_reason_words(&job->name, words, sizeof(words)), why,
		 more ? "; nor were some before it" : "");
}

static void skip(struct saved_ended *ke, struct tracker *t, size_t i, const char *why)
{
	const struct saved_job *job = &ke->jobs.data[i];

	tracker_unpin_image(t, job->name.pid, job->generation);
	count_skipped(ke, job, why);
	del(ke, i);
}

static size_t least_worth(const struct saved_ended *ke)
{
	size_t least = 0;

	for (size_t i = 1; i < ke->jobs.cnt; i++)
		if (saved_job_by_worth(&ke->jobs.data[i], &ke->jobs.data[least]) > 0)
			least = i;
	return least;
}

void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job)
{
	if (ke->jobs.cnt == ENDED_CAP)
		skip(ke, t, least_worth(ke), "too many have ended at once");
	if (vec_reserve(&ke->jobs, ke->jobs.cnt + 1) ||
	    tracker_pin_image(t, job->name.pid, job->generation)) {
		count_skipped(ke, job, "no memory");
		return;
	}
	ke->jobs.data[ke->jobs.cnt++] = *job;
}

void saved_ended_take(struct saved_ended *ke, const struct saved_job *job)
{
	for (size_t i = 0; i < ke->jobs.cnt; i++) {
		const struct saved_job *e = &ke->jobs.data[i];

		if (e->name.pid == job->name.pid && e->generation == job->generation) {
			del(ke, i);
			return;
		}
	}
}

void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, uint64_t now_ns)
{
	for (size_t i = ke->jobs.cnt; i-- > 0;)
		if (now_ns >= ke->jobs.data[i].queued_ns + ENDED_WAIT_NS)
			skip(ke, t, i, "profiles of others took too long");
}
