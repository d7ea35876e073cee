/* SPDX-License-Identifier: MIT */
/* rows_reader.c - see rows_reader.h. */
#include "record/rows_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "explain/reading.h"

/* A GiB of small blocks takes 0.5 s, and more on a busy machine. */
#define READ_NS (2 * NS_PER_S)
#define READ_PER_GIB_NS NS_PER_S
/* A child that is on its way has this much more. */
#define ANSWER_NS (2 * NS_PER_S)
#define CHILD_CPU_S 10

struct job {
	pid_t pid;
	uint64_t limit_ns;
};

static int read_and_answer(void *arg)
{
	const struct job *job = arg;
	struct resident_reading reading;

	explain_read(job->pid, job->limit_ns, &reading);
	return write_all(STDOUT_FILENO, &reading, sizeof(reading)) ? 1 : 0;
}

static void set_unknown(struct rows_reader *r, const char *why)
{
	r->is_over = true;
	memset(&r->answer, 0, sizeof(r->answer));
	r->answer.rss_bytes = r->rss_bytes;
	snprintf(r->answer.why, sizeof(r->answer.why), "%s", why);
}

void rows_reader_begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns)
{
	struct job job = { .pid = pid,
			   .limit_ns = READ_NS + (uint64_t)((double)rss_bytes / (1ULL << 30) *
							    (double)READ_PER_GIB_NS) };
	int err;

	if (job.limit_ns > most_ns)
		job.limit_ns = most_ns;
	*r = (struct rows_reader){ .deadline_ns = now_ns() + job.limit_ns + ANSWER_NS,
				   .rss_bytes = rss_bytes };
	err = sandbox_begin_reading(read_and_answer, &job, CHILD_CPU_S, &r->child);
	if (err)
		set_unknown(r, strerror(-err));
}

/* The child may have been taken over by what it read. */
static void finish(struct rows_reader *r)
{
	sandbox_end_reading(&r->child);
	r->is_over = true;
	memcpy(&r->answer, r->bytes, sizeof(r->answer));
	if (r->byte_cnt != sizeof(r->answer))
		set_unknown(r, sandbox_reading_error(-EIO));
	else if (resident_reading_check(&r->answer))
		set_unknown(r, "its rows contradict each other");
	else if (!r->answer.is_known)
		r->answer.rss_bytes = r->rss_bytes;
}

/* true: to the end. */
static bool take(struct rows_reader *r)
{
	while (r->byte_cnt < sizeof(r->bytes)) {
		ssize_t n =
			read(r->child.fd, r->bytes + r->byte_cnt, sizeof(r->bytes) - r->byte_cnt);

		if (!n)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
		r->byte_cnt += n < 0 ? 0 : (size_t)n;
	}
	return false;
}

bool rows_reader_work(struct rows_reader *r)
{
	if (!r->child.child)
		return true;
	if (take(r))
		finish(r);
	else if (r->byte_cnt == sizeof(r->bytes) || now_ns() >= r->deadline_ns)
		rows_reader_give_up(r, "it did not answer in time");
	return !r->child.child;
}

void rows_reader_give_up(struct rows_reader *r, const char *why)
{
	if (r->is_over)
		return;
	sandbox_end_reading(&r->child);
	set_unknown(r, why);
}
