/* SPDX-License-Identifier: MIT */
/*
 * fuzz_push_spool.c - a folder of what waits to be pushed, in which anything has happened.
 *
 * The input is what is done, one byte and its arguments each: added, taken, dropped, closed and opened again;
 * files written, cut off, changed, replaced by links and FIFOs. What comes out of a folder that nobody touched
 * is what went in, the oldest first.
 */
#include "fuzz.h"

#include <dirent.h>

#include "serve/push_queue.h"

#define CNT_MAX 8
#define BYTES_MAX 4096
#define STEPS_CAP 64

enum { ADD, TAKE, DROP, SETTLE, AGAIN, WRITE, CUT, REPLACE, DO_CNT };

static char folder[] = "/tmp/heaptap-fuzz-spool-XXXXXX";
static int dir_fd = -1;

struct run {
	struct push_spool *spool;
	const uint8_t *data;
	size_t bytes;
	uint64_t seq; /* of what was taken last */
	bool is_touched; /* by others */
	uint8_t next, oldest; /* what is added is filled with its number */
};

static void empty(void)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	const struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (unlinkat(dir_fd, d->d_name, 0) && errno == EISDIR)
			unlinkat(dir_fd, d->d_name, AT_REMOVEDIR);
	closedir(dir);
}

static void remove_folder(void)
{
	empty();
	rmdir(folder);
}

static uint8_t take_byte(struct run *r)
{
	if (!r->bytes)
		return 0;
	r->bytes--;
	return *r->data++;
}

static void reopen(struct run *r)
{
	const struct push_spool_options opts = { folder, CNT_MAX, BYTES_MAX, BYTES_MAX / 4 };

	push_spool_close(r->spool);
	r->spool = NULL;
	if (push_spool_open(&opts, &r->spool))
		abort();
}

static size_t bytes_of(uint8_t number)
{
	return (size_t)number * 7 % 1200;
}

static void add(struct run *r)
{
	size_t bytes = bytes_of(r->next);
	uint8_t *p = malloc(bytes + 1);

	if (!p)
		abort();
	memset(p, r->next, bytes);
	if (push_spool_add(r->spool, p, bytes))
		abort();
	r->next++;
}

/* false: there is none. */
static bool take(struct run *r)
{
	uint8_t *p = NULL;
	size_t bytes;
	int err = push_spool_first(r->spool, &p, &bytes, &r->seq);

	if (err && err != -ENOENT)
		abort();
	if (!err && bytes > BYTES_MAX)
		abort();
	if (!err && !r->is_touched) {
		struct push_spool_stats stats;

		push_spool_stats(r->spool, &stats);
		r->oldest = (uint8_t)(r->next - stats.cnt);
		if (bytes != bytes_of(r->oldest))
			abort();
		for (size_t i = 0; i < bytes; i++)
			if (p[i] != r->oldest)
				abort();
	}
	free(p);
	return !err;
}

/* "0000000000000003.push", of low numbers, or another one. */
static void name_of(struct run *r, char name[static 64])
{
	uint8_t which = take_byte(r);

	if (which < 32)
		snprintf(name, 64, "%016x.push", which);
	else if (which < 40)
		snprintf(name, 64, ".heaptap-push-%016x.tmp", which);
	else
		snprintf(name, 64, "%.*s.push", (int)(r->bytes < 20 ? r->bytes : 20), r->data);
}

/* Its first bytes are sound where the input wants that. */
static void write_file(struct run *r)
{
	size_t bytes = take_byte(r);
	bool is_ours = take_byte(r) % 2;
	char name[64];
	int fd;

	name_of(r, name);
	if (bytes > r->bytes)
		bytes = r->bytes;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	if (write(fd, "heaptap1", is_ours ? 8 : 0) < 0 || write(fd, r->data, bytes) < 0)
		abort();
	close(fd);
	r->data += bytes;
	r->bytes -= bytes;
}

static void cut(struct run *r)
{
	char name[64];
	int fd;

	name_of(r, name);
	fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (take_byte(r) % 2) {
		if (pwrite(fd, "x", 1, take_byte(r)) < 0 && errno != EINVAL && errno != EPIPE &&
		    errno != ESPIPE)
			abort();
	} else if (ftruncate(fd, take_byte(r)) && errno != EINVAL) {
		abort();
	}
	close(fd);
}

static void replace(struct run *r)
{
	char name[64];

	name_of(r, name);
	unlinkat(dir_fd, name, 0);
	switch (take_byte(r) % 4) {
	case 0:
		(void)!symlinkat("/etc/passwd", dir_fd, name);
		break;
	case 1:
		(void)!mkfifoat(dir_fd, name, 0600);
		break;
	case 2:
		(void)!mkdirat(dir_fd, name, 0700);
		break;
	default:
		break; /* gone */
	}
}

static void run_step(struct run *r)
{
	int what = take_byte(r) % DO_CNT;
	struct push_spool_stats stats;

	if (what >= WRITE)
		r->is_touched = true;
	switch (what) {
	case ADD:
		add(r);
		break;
	case TAKE:
		take(r);
		break;
	case DROP:
		push_spool_drop(r->spool, r->seq);
		break;
	case SETTLE:
		push_spool_settle(r->spool);
		break;
	case AGAIN:
		reopen(r);
		break;
	case WRITE:
		write_file(r);
		break;
	case CUT:
		cut(r);
		break;
	default:
		replace(r);
	}
	push_spool_stats(r->spool, &stats);
	if (stats.cnt > CNT_MAX || stats.bytes > BYTES_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct run r = { .data = data, .bytes = bytes };
	struct push_spool_stats stats;
	size_t i;

	if (dir_fd < 0) {
		if (!mkdtemp(folder))
			abort();
		dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		atexit(remove_folder);
	}
	reopen(&r);
	for (i = 0; i < STEPS_CAP && r.bytes; i++)
		run_step(&r);
	/* All of it can be taken, and then there is nothing. */
	for (i = 0; take(&r); i++)
		if (i > CNT_MAX || !push_spool_drop(r.spool, r.seq))
			abort();
	push_spool_stats(r.spool, &stats);
	if (stats.cnt || stats.bytes)
		abort();
	push_spool_close(r.spool);
	empty();
	return 0;
}
