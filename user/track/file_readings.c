/* SPDX-License-Identifier: MIT */
/* file_readings.c - see files_priv.h. */
#include "track/files_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "track/file_job.h"

#define PIPE_BYTES (1 << 20) /* so that few turns are needed; a larger pipe saves no work */
#define SAID_BYTES_CAP (512ULL << 20) /* enough for the tables of 2 GB of text */
#define BYTES_AT_ONCE (64ULL << 20)
/* A job ends itself in time, unless it hangs in the kernel. */
#define DUE_NS_BASE (7 * NS_PER_S)
#define DUE_BYTES_PER_S (16ULL << 20)
#define DUE_BYTES_MAX (64ULL << 30) /* a file with holes may have any size */

bool file_readings_have_room(const struct file_readings *rs, uint32_t uid)
{
	struct file_reading **r;
	size_t of_user = 0;

	vec_each(&rs->list, r)
		of_user += (*r)->uid == uid;
	return rs->list.cnt < FILE_READINGS_CAP && of_user < FILE_READINGS_OF_USER_CAP;
}

int file_readings_start(struct file_readings *rs, const struct file_reading *fresh,
			const struct file_source *source, const struct alloc_options *opts)
{
	struct file_reading *r, **other;
	uint64_t bytes = fresh->facts.bytes;
	int err;

	vec_each(&rs->list, other)
		bytes += (*other)->facts.bytes;
	/* Reading takes time linear in these bytes. A file that is larger is read alone. */
	if (!file_readings_have_room(rs, fresh->uid) || (rs->list.cnt && bytes > BYTES_AT_ONCE))
		return -EBUSY;
	r = malloc(sizeof(*r));
	if (!r || vec_reserve(&rs->list, rs->list.cnt + 1)) {
		free(r);
		return -ENOMEM;
	}
	*r = *fresh;
	err = file_job_start(r->uid, r->fd, r->facts.bytes, source, opts, &r->said_fd);
	if (err) {
		free(r);
		return err;
	}
	(void)fcntl(r->said_fd, F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(r->said_fd, F_SETFL, O_NONBLOCK);
	r->due_ns = now_ns() + file_reading_limit_ns(r->facts.bytes);
	rs->list.data[rs->list.cnt++] = r;
	return 0;
}

uint64_t file_reading_limit_ns(uint64_t file_bytes)
{
	if (file_bytes > DUE_BYTES_MAX)
		file_bytes = DUE_BYTES_MAX;
	return DUE_NS_BASE + file_bytes / DUE_BYTES_PER_S * NS_PER_S;
}

void file_reading_free(struct file_reading *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	close(r->said_fd);
	free(r->path);
	free(r->root);
	vec_release(&r->said);
	free(r);
}

void file_readings_release(struct file_readings *rs)
{
	struct file_reading **r;

	vec_each(&rs->list, r)
		file_reading_free(*r);
	vec_release(&rs->list);
}

/* Take in what has come so far. */
static void take(struct file_reading *r)
{
	ssize_t n;

	do {
		if (r->said.cnt > SAID_BYTES_CAP ||
		    vec_reserve(&r->said, r->said.cnt + PIPE_BYTES)) {
			r->is_over = true; /* and incomplete */
			r->said.cnt = 0;
			return;
		}
		n = read(r->said_fd, r->said.data + r->said.cnt, PIPE_BYTES);
		if (n > 0)
			r->said.cnt += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	r->is_over = n == 0 || errno != EAGAIN;
}

static struct file_reading *take_over(struct file_readings *rs, uint64_t now)
{
	for (size_t i = 0; i < rs->list.cnt; i++) {
		struct file_reading *r = rs->list.data[i];

		if (!r->is_over && now < r->due_ns)
			continue;
		rs->list.data[i] = rs->list.data[--rs->list.cnt];
		return r;
	}
	return NULL;
}

struct file_reading *file_readings_next(struct file_readings *rs, int wait_ms)
{
	uint64_t until_ns = now_ns() + (uint64_t)wait_ms * NS_PER_MS, now;
	struct pollfd p[FILE_READINGS_CAP];
	struct file_reading *over;

	while (!(over = take_over(rs, now = now_ns())) && rs->list.cnt) {
		int left_ms = now < until_ns ? (int)((until_ns - now) / NS_PER_MS) + 1 : 0;
		int n;

		for (size_t i = 0; i < rs->list.cnt; i++)
			p[i] = (struct pollfd){ .fd = rs->list.data[i]->said_fd, .events = POLLIN };
		n = poll(p, rs->list.cnt, wait_ms ? left_ms : 0);
		for (size_t i = 0; i < rs->list.cnt; i++)
			if (n > 0 && p[i].revents)
				take(rs->list.data[i]);
		if (n <= 0 && !left_ms)
			return NULL;
	}
	return over;
}
