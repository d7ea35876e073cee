/* SPDX-License-Identifier: MIT */
/* rows_reader.c - see rows_reader.h. */
#include "record/rows_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "explain/explain.h"
#include "proc/reader.h"

/* A GiB of small blocks takes 0.5 s, and more on a busy machine. */
#define READ_NS (2 * NS_PER_S)
#define READ_PER_GIB_NS NS_PER_S
#define READ_MOST_NS (6 * NS_PER_S)
/* A child that is on its way has this much more. */
#define ANSWER_NS (2 * NS_PER_S)
#define CHILD_CPU_S 10
/* Of a job: for a heap of 24 GiB, where each bit of a map is for 16 bytes. */
#define JOB_DATA_BYTES (256ULL << 20)

struct job {
	pid_t pid;
	uint64_t limit_ns;
	struct resident_pins *pins; /* only of a child that shares the memory of this process */
};

static int read_and_answer(void *arg)
{
	const struct job *job = arg;
	struct resident_reading reading;

	explain_read(job->pid, job->pins, job->limit_ns, &reading);
	return write_all(STDOUT_FILENO, &reading, sizeof(reading)) ? 1 : 0;
}

static void end_child(struct rows_reader *r)
{
	if (r->is_job)
		close(r->child.fd);
	else
		sandbox_end_reading(&r->child);
	r->is_job = false;
}

static void set_unknown(struct rows_reader *r, const char *why)
{
	r->is_over = true;
	memset(&r->answer, 0, sizeof(r->answer));
	r->answer.rss_bytes = r->rss_bytes;
	snprintf(r->answer.why, sizeof(r->answer.why), "%s", why);
}

static uint64_t limit_ns(uint64_t rss_bytes)
{
	uint64_t ns =
		READ_NS + (uint64_t)((double)rss_bytes / (1ULL << 30) * (double)READ_PER_GIB_NS);

	return ns < READ_MOST_NS ? ns : READ_MOST_NS;
}

static struct job begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns)
{
	struct job job = { .pid = pid, .limit_ns = limit_ns(rss_bytes) };

	if (job.limit_ns > most_ns)
		job.limit_ns = most_ns;
	*r = (struct rows_reader){ .deadline_ns = now_ns() + job.limit_ns + ANSWER_NS,
				   .rss_bytes = rss_bytes };
	return job;
}

void rows_reader_begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns,
		       struct resident_pins *pins)
{
	struct job job = begin(r, pid, rss_bytes, most_ns);
	int err;

	job.pins = pins;
	err = sandbox_begin_reading(read_and_answer, &job, CHILD_CPU_S, &r->child);
	if (err)
		set_unknown(r, strerror(-err));
}

void rows_reader_begin_job(struct rows_reader *r, uint32_t uid, pid_t pid, uint64_t rss_bytes)
{
	struct job job = begin(r, pid, rss_bytes, UINT64_MAX);
	int err = reader_run_job(uid, ROWS_READER_JOB, -1, &job, sizeof(job), CHILD_CPU_S,
				 &r->child.fd);

	r->is_job = !err;
	if (!err && fcntl(r->child.fd, F_SETFL, O_NONBLOCK)) {
		err = -errno;
		end_child(r);
	}
	if (err)
		set_unknown(r, strerror(-err));
}

int rows_reader_run_job(const void *args, size_t args_bytes, int out_fd)
{
	struct resident_reading reading;
	struct job job;

	if (args_bytes != sizeof(job) || sandbox_seal_reading(getppid(), JOB_DATA_BYTES))
		return 1;
	memcpy(&job, args, sizeof(job));
	explain_read(job.pid, NULL, job.limit_ns, &reading);
	return write_all(out_fd, &reading, sizeof(reading)) ? 1 : 0;
}

bool rows_reader_is_at_work(const struct rows_reader *r)
{
	return r->child.child || r->is_job;
}

/* The child may have been taken over by what it read. */
static void finish(struct rows_reader *r)
{
	end_child(r);
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
	if (!rows_reader_is_at_work(r))
		return true;
	if (take(r)) {
		finish(r);
	} else if (r->byte_cnt == sizeof(r->bytes) || now_ns() >= r->deadline_ns) {
		rows_reader_give_up(r, "it did not respond in time");
		r->is_late = true;
	}
	return !rows_reader_is_at_work(r);
}

void rows_reader_give_up(struct rows_reader *r, const char *why)
{
	if (r->is_over)
		return;
	end_child(r);
	set_unknown(r, why);
}
