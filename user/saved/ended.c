/* SPDX-License-Identifier: MIT */
/*
 * ended.c - see saver_priv.h.
 */
#include "saved/saver_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/vec.h"
#include "saved/rules.h"
#include "track/tracker.h"

#define ENDED_CAP 64
/* How long the samples of an ended process are held when no CPU time is left to spend. */
#define ENDED_WAIT_NS (2 * NS_PER_S)
#define LOG_BURST 10
#define LOG_EVERY_NS (10 * NS_PER_S)

struct saved_ended {
	VEC(struct saved_job) jobs;
	uint64_t skipped_cnt;
	struct log_limit log;
};

int saved_ended_new(struct saved_ended **ret)
{
	struct saved_ended *ke = calloc(1, sizeof(*ke));

	if (!ke)
		return -ENOMEM;
	ke->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = LOG_BURST };
	*ret = ke;
	return 0;
}

void saved_ended_free(struct saved_ended *ke)
{
	if (!ke)
		return;
	vec_release(&ke->jobs);
	free(ke);
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
	if (saved_job_need(job) != KEEP_NEED_DEATH || !log_limit_allows(&ke->log, now_ns()))
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

	for (size_t i = 1; i < ke->jobs.cnt; i++) {
		const struct saved_job *a = &ke->jobs.data[i], *b = &ke->jobs.data[least];

		if (saved_job_need(a) != saved_job_need(b) ?
			    saved_job_need(a) < saved_job_need(b) :
			    a->usage.inuse_bytes < b->usage.inuse_bytes)
			least = i;
	}
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

size_t saved_ended_cnt(const struct saved_ended *ke)
{
	return ke->jobs.cnt;
}

const struct saved_job *saved_ended_at(const struct saved_ended *ke, size_t i)
{
	return &ke->jobs.data[i];
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

void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, struct saved_credit *credit,
			   uint64_t now_ns)
{
	for (size_t i = ke->jobs.cnt; i-- > 0;) {
		const struct saved_job *job = &ke->jobs.data[i];

		if (now_ns >= job->queued_ns + ENDED_WAIT_NS &&
		    !saved_credit_is_left(credit, now_ns, saved_job_need(job)))
			skip(ke, t, i, "profiles of others have used up the CPU time for that");
	}
}

uint64_t saved_ended_skipped_cnt(const struct saved_ended *ke)
{
	return ke->skipped_cnt;
}
