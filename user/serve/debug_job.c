/* SPDX-License-Identifier: MIT */
/* debug_job.c - see pushes.h. */
#include "serve/pushes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sandbox.h"
#include "elf/debug_only.h"
#include "elf/elf_file.h"
#include "proc/reader.h"
#include "push/push_message.h"
#include "symbol/debug_files.h"
#include "track/file.h"

#define DATA_BYTES (256ULL << 20) /* for section tables; the contents are read a piece at a time */
#define MAP_BYTES (16ULL << 30) /* two files are mapped as a whole */
#define PIECE_BYTES 65536
#define PIPE_BYTES (1 << 20)
/* The longest request, and the wait for it. */
#define WALL_S (20 * 60)
/* The reader counts jobs by user: uploads are a user of their own. */
#define UPLOADS (UINT32_MAX - 1)

struct debug_args {
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	char root[64];
};

/* The job's answer: this, then the bytes. */
struct debug_head {
	int32_t err;
	uint32_t reserved;
	uint64_t bytes, hash;
};

/*
 * In the job.
 */

static bool has_dwarf(const struct elf_file *ef)
{
	return elf_file_find(ef, ".debug_info") || elf_file_find(ef, ".zdebug_info");
}

static int reduce(int fd, bool needs_dwarf, struct debug_only **ret)
{
	struct elf_file *ef = NULL;
	int err = fd < 0 ? -ENODATA : elf_file_open_fd(fd, &ef);

	if (err)
		return err;
	err = needs_dwarf && !has_dwarf(ef) ? -ENODATA : debug_only_new(ef, ret);
	elf_file_close(ef);
	return err;
}

/* Reduce the best of the two, of which it returns the descriptor. */
static int reduce_best(int fd, int separate_fd, struct debug_only **ret, int *ret_fd)
{
	int err = reduce(fd, true, ret);

	*ret_fd = fd;
	if (err && err != -ENOMEM) {
		*ret_fd = separate_fd;
		err = reduce(separate_fd, false, ret);
	}
	if (err && err != -ENOMEM) {
		*ret_fd = fd;
		err = reduce(fd, false, ret);
	}
	return err;
}

static int send_bytes(const struct debug_only *d, int fd, int out_fd)
{
	static uint8_t piece[PIECE_BYTES];
	uint64_t at = 0;
	ssize_t n;

	while ((n = debug_only_read(d, fd, at, piece, sizeof(piece))) > 0) {
		int err = write_all(out_fd, piece, (size_t)n);

		if (err)
			return err;
		at += (uint64_t)n;
	}
	return (int)n;
}

int debug_job_run(int fd, const void *raw, size_t raw_bytes, int out_fd)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES, .map_bytes = MAP_BYTES };
	struct debug_head head = { 0 };
	struct debug_only *d = NULL;
	struct debug_args args;
	char path[PATH_MAX];
	int separate_fd, best_fd = -1;

	if (raw_bytes != sizeof(args))
		return 1;
	memcpy(&args, raw, sizeof(args));
	args.build_id_hex[sizeof(args.build_id_hex) - 1] = args.root[sizeof(args.root) - 1] = '\0';
	separate_fd = debug_files_open_id(args.build_id_hex, args.root, path);
	if (sandbox_seal(getppid(), &limits))
		return 1;
	head.err = reduce_best(fd, separate_fd, &d, &best_fd);
	if (!head.err) {
		head.bytes = debug_only_bytes(d);
		head.hash = debug_only_hash(d);
	}
	if (write_all(out_fd, &head, sizeof(head)) || head.err)
		return 1;
	return send_bytes(d, best_fd, out_fd) ? 1 : 0; /* the process ends, and frees the rest */
}

/*
 * In main.
 */

/* A pipe is written in one piece if it has room: so the head is there, or not. */
static int read_head(int fd, struct debug_head *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, READER_PROMPT_MS) <= 0)
		return -EAGAIN;
	n = read(fd, ret, sizeof(*ret));
	if (n != sizeof(*ret))
		return n < 0 ? -errno : -ENODATA; /* it could not be read */
	if (ret->err && ret->err != -ENOMEM)
		return -ENODATA;
	return ret->err;
}

int debug_job_start(const struct track_file *file, struct debuginfo_file *ret)
{
	struct debug_args args = { 0 };
	struct debug_head head;
	int fd, err;

	snprintf(args.build_id_hex, sizeof(args.build_id_hex), "%s", file->build_id_hex);
	snprintf(args.root, sizeof(args.root), "%s", file->root);
	err = reader_run_job(UPLOADS, DEBUG_JOB, file->fd, &args, sizeof(args), WALL_S, &fd);
	if (err)
		return err == -EBUSY || err == -ETIMEDOUT ? -EAGAIN : err;
	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	err = read_head(fd, &head);
	if (err) {
		close(fd);
		return err;
	}
	*ret = (struct debuginfo_file){ .fd = fd, .bytes = head.bytes, .hash = head.hash };
	return 0;
}
