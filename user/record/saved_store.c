/* SPDX-License-Identifier: MIT */
/* saved_store.c - see saver_priv.h. */
#include <dirent.h>
#include <sys/file.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/folder.h"
#include "heaptap/abi.h"
#include "record/saver_priv.h"

#define SUFFIX ".pb.gz"
/* Years 1 to 9999, so that a year has four digits. */
#define EPOCH_MIN_S (-62135596800LL)
#define EPOCH_MAX_S 253402300799LL

static const struct {
	const char *text; /* followed by a number, if words has one */
	const char *words;
} reasons[] = {
	[KEEP_PEAK] = { "peak", "peak" },
	[KEEP_LIMIT] = { "limit", "near its memory limit" },
	[KEEP_OOM] = { "oom", "out of memory" },
	[KEEP_SIGNAL] = { "signal", "ended by signal " },
	[KEEP_EXIT] = { "exit", "exited with status " },
	[KEEP_EXEC] = { "exec", "executed another program" },
	[KEEP_GONE] = { "gone", "no longer tracked, or its end was not seen" },
};
#define REASON_CNT (sizeof(reasons) / sizeof(*reasons))

void saved_name_set_end(struct saved_name *n, uint32_t exit_status)
{
	uint32_t signal = exit_status & 0x7f;

	n->code = 0;
	if (exit_status & HT_EXIT_OOM) {
		n->reason = KEEP_OOM;
	} else if (signal) {
		n->reason = KEEP_SIGNAL;
		n->code = signal;
	} else {
		n->reason = KEEP_EXIT;
		n->code = exit_status >> 8 & 0xff;
	}
}

static void put_reason(const struct saved_name *n, const char *text, char *buf, size_t buf_bytes)
{
	if (n->reason == KEEP_SIGNAL || n->reason == KEEP_EXIT)
		snprintf(buf, buf_bytes, "%s%u", text, n->code);
	else
		snprintf(buf, buf_bytes, "%s", text);
}

char *saved_reason_words(const struct saved_name *n, char *buf, size_t buf_bytes)
{
	put_reason(n, reasons[n->reason].words, buf, buf_bytes);
	return buf;
}

char *saved_time_text(int64_t epoch_s, int ms, char buf[static KEEP_TIME_BYTES])
{
	time_t t = epoch_s;
	size_t used;
	struct tm tm;

	if (epoch_s < EPOCH_MIN_S || epoch_s > EPOCH_MAX_S || !gmtime_r(&t, &tm))
		memset(&tm, 0, sizeof(tm));
	used = (size_t)snprintf(buf, KEEP_TIME_BYTES, "%04u%02u%02uT%02u%02u%02u",
				(unsigned)(tm.tm_year + 1900) % 10000,
				(unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100,
				(unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
				(unsigned)tm.tm_sec % 100);
	if (ms < 0)
		snprintf(buf + used, KEEP_TIME_BYTES - used, "Z");
	else
		snprintf(buf + used, KEEP_TIME_BYTES - used, ".%03uZ", (unsigned)ms % 1000);
	return buf;
}

static char safe_char(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	    c == '.' || c == '_' || c == '+')
		return c;
	return '_';
}

/* At most KEEP_COMM_BYTES with the final zero. */
static void safe_comm(const char *comm, char *ret)
{
	size_t n = strnlen(comm, KEEP_COMM_BYTES - 1);

	for (size_t i = 0; i < n; i++)
		ret[i] = safe_char(comm[i]);
	if (!n)
		ret[0] = '_';
	ret[n ? n : 1] = '\0';
}

void saved_name_format(const struct saved_name *n, char buf[static KEEP_NAME_BYTES])
{
	char comm[KEEP_COMM_BYTES], reason[24], taken[KEEP_TIME_BYTES];
	int64_t ms = n->taken_epoch_ms;

	safe_comm(n->comm, comm);
	put_reason(n, reasons[n->reason].text, reason, sizeof(reason));
	snprintf(buf, KEEP_NAME_BYTES, "%s-%u-%s-%s" SUFFIX,
		 saved_time_text(ms / 1000, (int)(ms % 1000), taken), (unsigned)n->pid, comm,
		 reason);
}

/* Accepts more than names of ours: formatting what was read finds that. */
int saved_name_parse(const char *file, struct saved_name *ret)
{
	char reason[8], again[KEEP_NAME_BYTES];
	struct saved_name n = { 0 };
	unsigned long pid, code = 0;
	struct tm tm = { 0 };
	int ms;

	if (sscanf(file, "%4d%2d%2dT%2d%2d%2d.%3dZ-%10lu-%16[^-]-%7[a-z]%10lu", &tm.tm_year,
		   &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &pid, n.comm,
		   reason, &code) < 10)
		return -EINVAL;
	while (n.reason < REASON_CNT && strcmp(reason, reasons[n.reason].text))
		n.reason++;
	if (n.reason == REASON_CNT)
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	n.taken_epoch_ms = timegm(&tm) * 1000 + ms;
	n.pid = (pid_t)pid;
	n.code = (uint32_t)code;
	saved_name_format(&n, again);
	if (strcmp(file, again))
		return -EINVAL;
	*ret = n;
	return 0;
}

/* Name while it is being written; '.' because our names never begin with it. */
#define NEW_PREFIX ".heaptap-kept-"
#define COPY_BYTES (64 << 10)

static bool is_same(const struct saved_name *a, const struct saved_name *b)
{
	char x[KEEP_NAME_BYTES], y[KEEP_NAME_BYTES];

	saved_name_format(a, x);
	saved_name_format(b, y);
	return !strcmp(x, y);
}

static void count(struct saved_store *s, const struct kept_file *f, int sign)
{
	s->stats.cnt += (size_t)sign;
	s->stats.bytes += (uint64_t)sign * f->bytes;
	if (f->fd >= 0) {
		s->stats.memory_cnt += (size_t)sign;
		s->stats.memory_bytes += (uint64_t)sign * f->bytes;
	}
}

/* Remove the file; its entry is still in the list. */
static void discard(struct saved_store *s, const struct kept_file *f)
{
	char name[KEEP_NAME_BYTES];

	count(s, f, -1);
	if (f->fd >= 0) {
		close(f->fd);
	} else {
		saved_name_format(&f->name, name);
		unlinkat(s->dir_fd, name, 0);
	}
}

static bool is_over(const struct saved_store *s, bool of_memory)
{
	uint64_t memory_max = s->bytes_max < KEEP_MEMORY_MAX ? s->bytes_max : KEEP_MEMORY_MAX;

	if (of_memory)
		return s->stats.memory_bytes > memory_max ||
		       s->stats.memory_cnt > KEEP_MEMORY_FILES_MAX;
	return s->stats.cnt > s->file_max || s->stats.bytes > s->bytes_max;
}

int saved_candidate_order(const void *a, const void *b)
{
	const struct saved_candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->taken_epoch_ms > y->taken_epoch_ms) - (x->taken_epoch_ms < y->taken_epoch_ms);
}

/* Remove some of the files in memory, or of all: there may be many, if an earlier process kept more. */
static int make_room(struct saved_store *s, bool of_memory)
{
	VEC(struct saved_candidate) candidates = { 0 };
	bool *is_gone = calloc(s->files.cnt + 1, sizeof(*is_gone));
	size_t left = 0;
	int err = is_gone ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->files.cnt && !err; i++) {
		const struct kept_file *f = &s->files.data[i];
		const struct saved_candidate c = { f->rank, f->name.taken_epoch_ms, i };

		if (!of_memory || f->fd >= 0)
			err = vec_push(&candidates, c);
	}
	if (err || !candidates.cnt)
		goto out;
	vec_sort(&candidates, saved_candidate_order);
	for (size_t i = 0; i < candidates.cnt && is_over(s, of_memory); i++) {
		is_gone[candidates.data[i].idx] = true;
		discard(s, &s->files.data[candidates.data[i].idx]);
		s->stats.removed_cnt++;
	}
	for (size_t i = 0; i < s->files.cnt; i++)
		if (!is_gone[i])
			s->files.data[left++] = s->files.data[i];
	s->files.cnt = left;
out:
	vec_release(&candidates);
	free(is_gone);
	return err;
}

static void saved_bounds(struct saved_store *s)
{
	if (is_over(s, true) && make_room(s, true))
		return;
	if (is_over(s, false))
		make_room(s, false);
}

void saved_store_set_bounds(struct saved_store *s, size_t file_max, uint64_t bytes_max)
{
	s->file_max = file_max;
	s->bytes_max = bytes_max;
	saved_bounds(s);
}

enum saved_rank saved_rank_of(const struct saved_name *n)
{
	return n->reason == KEEP_EXEC || (n->reason == KEEP_EXIT && !n->code) ?
		       KEEP_RANK_ENDED_WELL :
		       KEEP_RANK_ENDED;
}

static int load_one(struct saved_store *s, const char *file)
{
	struct kept_file f = { .inuse_bytes = -1, .fd = -1 };
	struct stat st;
	int err;

	if (new_file_is_left(file, NEW_PREFIX)) {
		unlinkat(s->dir_fd, file, 0); /* left by a process that was killed while writing */
		return 0;
	}
	if (saved_name_parse(file, &f.name) || fstatat(s->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return 0;
	f.bytes = (uint64_t)st.st_size;
	f.rank = saved_rank_of(&f.name);
	err = vec_push(&s->files, f);
	if (!err)
		count(s, &f, 1);
	return err;
}

static int each_file(struct saved_store *s, int (*fn)(struct saved_store *s, const char *file))
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(dir)))
		err = fn(s, entry->d_name);
	closedir(dir);
	return err;
}

static int load(struct saved_store *s)
{
	int err = each_file(s, load_one);

	vec_sort_by(&s->files, name.taken_epoch_ms);
	saved_bounds(s);
	return err;
}

static int try_to_write(const struct saved_store *s)
{
	struct new_file f;
	int err = new_file_open(s->dir_fd, NEW_PREFIX, &f);

	if (!err)
		new_file_drop(&f);
	return err;
}

static int open_dir(struct saved_store *s, const char *dir, struct err *why)
{
	struct err folder_why = { 0 };
	int err = folder_open(dir, FOLDER_OURS, &s->dir_fd, &folder_why);

	if (folder_why.text[0])
		return err_set(why, err,
			       "cannot save profiles in '%s': %s; it must be a folder that only "
			       "its owner can write to (chmod go-w, chown)",
			       dir, folder_why.text);
	if (err)
		return err_set_os(why, err,
				  "cannot create or open the folder '%s' for saved profiles", dir);
	err = try_to_write(s);
	if (err)
		return err_set_os(why, err, "cannot write to the folder '%s' for saved profiles",
				  dir);
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB))
		return err_set(why, -errno,
			       "'%s' is in use by another process that saves "
			       "profiles",
			       dir);
	err = load(s);
	return err ? err_set_os(why, err,
				"cannot read the folder '%s' of saved "
				"profiles",
				dir) :
		     0;
}

int saved_store_open(const char *dir, size_t file_max, uint64_t bytes_max, struct saved_store **ret,
		     struct err *why)
{
	struct saved_store *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return err_set(why, -ENOMEM, "out of memory");
	s->file_max = file_max;
	s->bytes_max = bytes_max;
	s->dir_fd = -1;
	if (dir)
		err = open_dir(s, dir, why);
	if (err)
		saved_store_close(s);
	else
		*ret = s;
	return err;
}

void saved_store_close(struct saved_store *s)
{
	struct kept_file *f;

	if (!s)
		return;
	vec_each(&s->files, f)
		if (f->fd >= 0)
			close(f->fd);
	vec_release(&s->files);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s);
}

static int copy_all(int from, int to)
{
	char *buf = malloc(COPY_BYTES);
	off_t at = 0;
	ssize_t n;
	int err = buf ? 0 : -ENOMEM;

	while (!err && (n = pread(from, buf, COPY_BYTES, at)) != 0) {
		err = n < 0 ? -errno : write_all(to, buf, (size_t)n);
		at += n;
	}
	free(buf);
	return err;
}

int saved_store_write(const struct saved_store *s, const struct saved_name *name, int fd)
{
	char file[KEEP_NAME_BYTES];
	struct new_file f;
	int err = new_file_open(s->dir_fd, NEW_PREFIX, &f);

	if (err)
		return err;
	saved_name_format(name, file);
	err = copy_all(fd, f.fd);
	if (!err && fsync(f.fd))
		err = -errno;
	if (!err)
		err = new_file_commit(&f, file, true);
	if (err) {
		new_file_drop(&f);
	} else if (fsync(s->dir_fd) && errno != EINVAL) { /* not every file system syncs folders */
		err = -errno;
		unlinkat(s->dir_fd, file, 0); /* it stays in memory, and counts there */
	}
	return err;
}

static int remove_left(struct saved_store *s, const char *file)
{
	if (new_file_is_left(file, NEW_PREFIX))
		unlinkat(s->dir_fd, file, 0);
	return 0;
}

bool saved_store_recover(struct saved_store *s, const struct saved_name *name)
{
	char file[KEEP_NAME_BYTES];
	size_t cnt = s->files.cnt;

	if (s->dir_fd < 0)
		return false;
	each_file(s, remove_left);
	saved_name_format(name, file);
	if (load_one(s, file) || s->files.cnt == cnt)
		return false;
	s->stats.added_cnt++;
	saved_bounds(s);
	return true;
}

int saved_store_add(struct saved_store *s, const struct saved_name *name, int fd, int write_err,
		    double inuse_bytes, enum saved_rank rank)
{
	struct kept_file f = { .name = *name, .inuse_bytes = inuse_bytes, .rank = rank, .fd = fd };
	struct stat st;
	int err = fstat(fd, &st) ? -errno : 0;

	f.bytes = err ? 0 : (uint64_t)st.st_size;
	if (s->dir_fd >= 0 && write_err)
		s->stats.unwritten_cnt++;
	if (s->dir_fd >= 0 && !write_err) {
		close(fd);
		f.fd = -1;
	}
	if (!err)
		err = vec_push(&s->files, f);
	if (err) {
		if (f.fd >= 0)
			close(f.fd);
		return err;
	}
	s->stats.added_cnt++;
	count(s, &f, 1);
	saved_bounds(s);
	return 0;
}

void saved_store_drop(struct saved_store *s, const struct saved_name *name)
{
	for (size_t i = 0; i < s->files.cnt; i++) {
		if (!is_same(&s->files.data[i].name, name))
			continue;
		discard(s, &s->files.data[i]);
		memmove(&s->files.data[i], &s->files.data[i + 1],
			(s->files.cnt - i - 1) * sizeof(*s->files.data));
		s->files.cnt--;
		return;
	}
}

void saved_store_set_rank(struct saved_store *s, pid_t pid, enum saved_rank rank)
{
	struct kept_file *f;

	vec_each(&s->files, f)
		if (f->name.pid == pid && f->rank == KEEP_RANK_RUNS)
			f->rank = rank;
}

int saved_store_fetch(const struct saved_store *s, const struct kept_file *f)
{
	char file[KEEP_NAME_BYTES];
	int fd;

	if (f->fd >= 0) {
		fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	} else {
		saved_name_format(&f->name, file);
		fd = openat(s->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	return fd < 0 ? -errno : fd;
}
