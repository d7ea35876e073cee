/* SPDX-License-Identifier: MIT */
/*
 * push_spool.c - see push_queue.h.
 *
 * The list of waiting requests is in memory: sequence number, size and, for those not in a file, the bytes. A
 * file's name is its sequence number in 16 hexadecimal digits and ".push"; its content is a header and the request.
 * Numbers rise for ever, across processes.
 */
#include "serve/push_queue.h"

#include <dirent.h>
#include <sys/file.h>
#include <zlib.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/vec.h"

#define NAME_BYTES 32
#define SUFFIX ".push"
#define NEW_PREFIX ".heaptap-push-"
/* A folder with more files than this is not ours, or something went wrong: the rest are left alone. */
#define SCAN_MAX 100000

static const char magic[8] = "heaptap1";

struct file_header {
	char magic[8];
	uint64_t bytes;
	uint32_t crc;
	uint32_t reserved;
};

struct entry {
	uint64_t seq;
	size_t bytes;
	uint8_t *data; /* NULL: in a file */
};

struct push_spool {
	struct push_spool_options opts; /* without dir, which is NULL */
	int dir_fd; /* -1: none */
	VEC(struct entry) entries; /* the oldest first, from `head` on */
	size_t head;
	uint64_t next_seq;
	uint64_t memory_bytes;
	struct push_spool_stats stats;
};

static void file_name(uint64_t seq, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%016" PRIx64 SUFFIX, seq);
}

static bool parse_name(const char *name, uint64_t *ret_seq)
{
	char again[NAME_BYTES];

	if (strspn(name, "0123456789abcdef") != 16)
		return false;
	*ret_seq = strtoull(name, NULL, 16);
	file_name(*ret_seq, again);
	return !strcmp(name, again);
}

static struct entry *first_entry(const struct push_spool *s)
{
	return s->head < s->entries.cnt ? &s->entries.data[s->head] : NULL;
}

/* If there is a folder, entries in files come before those in memory. */
static struct entry *first_in_memory(const struct push_spool *s)
{
	struct entry *e;

	for (e = first_entry(s); e && e < s->entries.data + s->entries.cnt; e++)
		if (e->data)
			return e;
	return NULL;
}

/* Take the entry out of the counts; free its bytes or remove its file. */
static void discard(struct push_spool *s, struct entry *e)
{
	char name[NAME_BYTES];

	if (e->data) {
		s->memory_bytes -= e->bytes;
	} else {
		file_name(e->seq, name);
		unlinkat(s->dir_fd, name, 0);
	}
	free(e->data);
	e->data = NULL;
	s->stats.cnt--;
	s->stats.bytes -= e->bytes;
}

static void remove_first(struct push_spool *s)
{
	discard(s, first_entry(s));
	s->head++;
	/* Reuse the room of removed entries before the list grows. */
	if (s->head >= 64 && s->head * 2 >= s->entries.cnt) {
		memmove(s->entries.data, s->entries.data + s->head,
			(s->entries.cnt - s->head) * sizeof(*s->entries.data));
		s->entries.cnt -= s->head;
		s->head = 0;
	}
}

bool push_spool_drop(struct push_spool *s, uint64_t seq)
{
	const struct entry *e = first_entry(s);

	if (!e || e->seq != seq)
		return false;
	remove_first(s);
	return true;
}

static void drop_oldest(struct push_spool *s)
{
	s->stats.dropped_cnt++;
	remove_first(s);
}

static int write_file(const struct push_spool *s, const struct entry *e)
{
	struct file_header h = { .bytes = e->bytes };
	char name[NAME_BYTES];
	struct new_file f;
	int err = new_file_open(s->dir_fd, NEW_PREFIX, &f);

	if (err)
		return err;
	memcpy(h.magic, magic, sizeof(magic));
	h.crc = crc32_z(crc32_z(0, NULL, 0), e->data, e->bytes);
	file_name(e->seq, name);
	err = write_all(f.fd, &h, sizeof(h));
	if (!err)
		err = write_all(f.fd, e->data, e->bytes);
	if (!err)
		err = new_file_commit(&f, name, true);
	if (err)
		new_file_drop(&f);
	return err;
}

static int to_disk(struct push_spool *s, struct entry *e)
{
	int err = write_file(s, e);

	if (err)
		return err;
	s->memory_bytes -= e->bytes;
	free(e->data);
	e->data = NULL;
	return 0;
}

void push_spool_settle(struct push_spool *s)
{
	if (s->dir_fd < 0)
		return;
	for (size_t i = s->head; i < s->entries.cnt; i++)
		if (s->entries.data[i].data)
			to_disk(s, &s->entries.data[i]);
}

static bool is_full(const struct push_spool *s, size_t more)
{
	return s->stats.cnt + 1 > s->opts.cnt_max || s->stats.bytes + more > s->opts.bytes_max;
}

/* Drop an entry that is in memory, behind those in files. */
static void drop_at(struct push_spool *s, struct entry *e)
{
	size_t i = (size_t)(e - s->entries.data);

	s->stats.dropped_cnt++;
	discard(s, e);
	memmove(e, e + 1, (s->entries.cnt - i - 1) * sizeof(*e));
	s->entries.cnt--;
}

/*
 * Memory is full: move the oldest entries in it to files. If there is no room on disk, drop the oldest entry of
 * all; if nothing can be written anyhow, keep the files and drop the oldest entry in memory.
 */
static void make_room_in_memory(struct push_spool *s, size_t more)
{
	struct entry *e = first_in_memory(s);

	for (; e && s->memory_bytes + more > s->opts.memory_bytes_max; e = first_in_memory(s)) {
		int err = to_disk(s, e);

		if (!err)
			continue;
		s->stats.unwritten_cnt++;
		if (e == first_entry(s) || err == -ENOSPC || err == -EDQUOT)
			drop_oldest(s);
		else
			drop_at(s, e);
	}
}

int push_spool_add(struct push_spool *s, uint8_t *data, size_t bytes)
{
	struct entry e = { .bytes = bytes, .data = data };

	if (bytes > s->opts.bytes_max || !s->opts.cnt_max) {
		free(data);
		s->stats.dropped_cnt++;
		return -E2BIG;
	}
	while (first_entry(s) && is_full(s, bytes))
		drop_oldest(s);
	if (s->dir_fd >= 0)
		make_room_in_memory(s, bytes);
	e.seq = s->next_seq;
	if (vec_push(&s->entries, e)) {
		free(data);
		s->stats.dropped_cnt++;
		return -ENOMEM;
	}
	s->next_seq++;
	s->memory_bytes += bytes;
	s->stats.cnt++;
	s->stats.bytes += bytes;
	return 0;
}

static int read_all(int fd, void *to, size_t n)
{
	ssize_t got = read_full(fd, to, n);

	return got < 0 ? (int)got : (size_t)got < n ? -EBADMSG : 0;
}

/* Errors that open() and read() give, or -EBADMSG: the file is of no use. */
static int load(const struct push_spool *s, const struct entry *e, uint8_t **ret)
{
	struct file_header h;
	char name[NAME_BYTES];
	uint8_t *data = NULL;
	int fd, err;

	file_name(e->seq, name);
	fd = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = read_all(fd, &h, sizeof(h));
	if (!err && (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.bytes != e->bytes))
		err = -EBADMSG;
	if (!err) {
		data = malloc(e->bytes + 1);
		err = data ? read_all(fd, data, e->bytes) : -ENOMEM;
	}
	close(fd);
	if (!err && crc32_z(crc32_z(0, NULL, 0), data, e->bytes) != h.crc)
		err = -EBADMSG;
	if (err) {
		free(data);
		return err;
	}
	*ret = data;
	return 0;
}

static int copy_bytes(const struct entry *e, uint8_t **ret)
{
	uint8_t *copy = malloc(e->bytes + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, e->data, e->bytes);
	*ret = copy;
	return 0;
}

int push_spool_first(struct push_spool *s, uint8_t **ret, size_t *ret_bytes, uint64_t *ret_seq)
{
	const struct entry *e;

	while ((e = first_entry(s))) {
		int err = e->data ? copy_bytes(e, ret) : load(s, e, ret);

		if (!err) {
			*ret_bytes = e->bytes;
			*ret_seq = e->seq;
			return 0;
		}
		if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
			return err;
		s->stats.corrupt_cnt++;
		remove_first(s);
	}
	return -ENOENT;
}

static int scan_one(struct push_spool *s, const char *name)
{
	struct entry e = { 0 };
	struct stat st;

	/* An unfinished file: its process is gone, as the folder is ours. */
	if (new_file_is_left(name, NEW_PREFIX)) {
		unlinkat(s->dir_fd, name, 0);
		return 0;
	}
	if (!parse_name(name, &e.seq))
		return 0;
	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct file_header)) {
		s->stats.corrupt_cnt++;
		unlinkat(s->dir_fd, name, 0);
		return 0;
	}
	e.bytes = st.st_size - sizeof(struct file_header);
	if (vec_push(&s->entries, e))
		return -ENOMEM;
	s->stats.cnt++;
	s->stats.bytes += e.bytes;
	return 0;
}

static int scan(struct push_spool *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && s->entries.cnt < SCAN_MAX && (d = readdir(dir)))
		err = scan_one(s, d->d_name);
	closedir(dir);
	if (err || !s->entries.cnt)
		return err;
	vec_sort_by(&s->entries, seq);
	s->next_seq = s->entries.data[s->entries.cnt - 1].seq + 1;
	while (first_entry(s) &&
	       (s->stats.cnt > s->opts.cnt_max || s->stats.bytes > s->opts.bytes_max))
		drop_oldest(s);
	return 0;
}

static int open_dir(struct push_spool *s, const char *dir)
{
	int err = folder_open(dir, FOLDER_OURS, &s->dir_fd, NULL);

	if (err)
		return err;
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (faccessat(s->dir_fd, ".", W_OK, AT_EACCESS) < 0)
		return -errno;
	return scan(s);
}

int push_spool_open(const struct push_spool_options *opts, struct push_spool **ret)
{
	struct push_spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->opts.dir = NULL;
	s->dir_fd = -1;
	err = opts->dir ? open_dir(s, opts->dir) : 0;
	if (err) {
		push_spool_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

void push_spool_close(struct push_spool *s)
{
	if (!s)
		return;
	push_spool_settle(s);
	for (size_t i = s->head; i < s->entries.cnt; i++)
		free(s->entries.data[i].data);
	vec_release(&s->entries);
	if (s->dir_fd >= 0) {
		/* Unlock explicitly: a forked child may have a copy of the descriptor, which would hold the lock. */
		flock(s->dir_fd, LOCK_UN);
		close(s->dir_fd);
	}
	free(s);
}

void push_spool_stats(const struct push_spool *s, struct push_spool_stats *ret)
{
	*ret = s->stats;
}
