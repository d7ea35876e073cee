/* SPDX-License-Identifier: MIT */
/* cgroup_memory.c - see cgroup.h. */
#include "proc/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "proc/proc_text.h"

/* Larger "limits" are none: v1 shows LONG_MAX rounded down to pages. */
#define LIMIT_MAX ((uint64_t)1 << 62)
/* The cache is read only above this share of a limit: memory.stat is the expensive file. */
#define STAT_SHARE 0.5
#define FILE_BYTES_MAX (64 << 10)

/* A folder of the hierarchy. */
struct level {
	char *dir;
	uint64_t limit_bytes; /* 0: none */
};

struct cgroup_room {
	bool is_v2;
	VEC(struct level) levels; /* the process's own first */
};

/* Return the next line of *text, without its end; *text moves behind it. NULL: there is none. */
static const char *next_line(const char **text, size_t *ret_bytes)
{
	const char *line = *text;

	if (!*line)
		return NULL;
	*ret_bytes = strcspn(line, "\n");
	*text = line + *ret_bytes + (line[*ret_bytes] == '\n');
	return line;
}

/* Read a file of at most bytes_max as text, which the caller frees; NULL: it cannot be read. */
static char *read_text(const char *path, size_t bytes_max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd >= 0 ? malloc(bytes_max + 1) : NULL;
	size_t used = 0;
	ssize_t n = 0;

	while (text && used < bytes_max && (n = read(fd, text + used, bytes_max - used)) > 0)
		used += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (text && n < 0) {
		free(text);
		return NULL;
	}
	if (text)
		text[used] = '\0';
	return text;
}

int cgroup_memory_dir(const struct cgroup_mount *mount, const char *text,
		      char ret[static CGROUP_PATH_BYTES])
{
	size_t root_len = strcmp(mount->root, "/") ? strlen(mount->root) : 0;
	char told[CGROUP_PATH_BYTES], whole[CGROUP_PATH_BYTES];
	const char *path;
	int n;

	if (cgroup_memory_path(mount, text, told) ||
	    cgroup_absolute(mount->origin, told, whole, sizeof(whole)) ||
	    strncmp(whole, mount->root, root_len) != 0)
		return -ENOENT;
	path = whole + root_len;
	/* A name that only begins like the root is another group. A path leads out of a namespace only at its
	 * beginning: nothing leads out of the mount. */
	if ((*path && *path != '/') || strstr(path, "/.."))
		return -ENOENT;
	if (!strcmp(path, "/"))
		path = ""; /* the topmost group */
	n = snprintf(ret, CGROUP_PATH_BYTES, "%s%s", mount->point, path);
	return n < CGROUP_PATH_BYTES ? 0 : -ENOENT;
}

int cgroup_room_find_dir(const struct cgroup_mount *mount, pid_t pid,
			 char ret[static CGROUP_PATH_BYTES])
{
	char *text;
	int err = proc_text_read(pid, "cgroup", &text);

	if (err)
		return -ENOENT;
	err = cgroup_memory_dir(mount, text, ret);
	free(text);
	return err;
}

static int add_level(struct cgroup_room *c, const char *dir, size_t bytes)
{
	struct level level = { .dir = strndup(dir, bytes) };

	if (!level.dir)
		return -ENOMEM;
	if (vec_push(&c->levels, level)) {
		free(level.dir);
		return -ENOMEM;
	}
	return 0;
}

int cgroup_room_open(const struct cgroup_mount *mount, const char *dir, struct cgroup_room **ret)
{
	size_t least = strlen(mount->point), bytes = strlen(dir);
	struct cgroup_room *c;
	int err = 0;

	if (bytes < least || access(dir, X_OK))
		return -ENOENT;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->is_v2 = mount->is_v2;
	/* From the folder itself up to the mount point. */
	while (!err && bytes >= least) {
		err = add_level(c, dir, bytes);
		while (bytes && dir[--bytes] != '/')
			;
		if (!bytes)
			break;
	}
	if (err) {
		cgroup_room_close(c);
		return err;
	}
	cgroup_room_refresh(c);
	*ret = c;
	return 0;
}

void cgroup_room_close(struct cgroup_room *c)
{
	struct level *l;

	if (!c)
		return;
	vec_each(&c->levels, l)
		free(l->dir);
	vec_release(&c->levels);
	free(c);
}

static char *read_file(const char *dir, const char *name, size_t bytes_max)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return NULL;
	return read_text(path, bytes_max);
}

/* A file with one number, or "max": CGROUP_UNLIMITED. -ENOENT: it is not there, or has none. */
static int read_number(const char *dir, const char *name, uint64_t *ret)
{
	char *text = read_file(dir, name, 64), *end = text;
	unsigned long long n = CGROUP_UNLIMITED;
	bool is_max = text && !strcmp(text, "max\n");

	errno = 0;
	if (text && !is_max && text[0] != '-')
		n = strtoull(text, &end, 10);
	if (!is_max && (end == text || errno)) {
		free(text);
		return -ENOENT;
	}
	free(text);
	*ret = n;
	return 0;
}

/* The value of a line "KEY VALUE"; 0 when it is not there. */
static uint64_t value_of(const char *text, const char *key)
{
	size_t key_bytes = strlen(key), n;
	const char *line;

	while (text && (line = next_line(&text, &n)))
		if (n > key_bytes && !memcmp(line, key, key_bytes) && line[key_bytes] == ' ')
			return strtoull(line + key_bytes + 1, NULL, 10);
	return 0;
}

static uint64_t read_limit(const struct level *l, bool is_v2)
{
	uint64_t max = 0, high = 0;

	if (read_number(l->dir, is_v2 ? "memory.max" : "memory.limit_in_bytes", &max) ||
	    max >= LIMIT_MAX)
		max = 0;
	if (is_v2 && !read_number(l->dir, "memory.high", &high) && high && high < LIMIT_MAX &&
	    (!max || high < max))
		max = high;
	return max;
}

void cgroup_room_refresh(struct cgroup_room *c)
{
	struct level *l;

	vec_each(&c->levels, l)
		l->limit_bytes = read_limit(l, c->is_v2);
}

static uint64_t read_events(const struct level *l, bool is_v2)
{
	char *text = read_file(l->dir, is_v2 ? "memory.events.local" : "memory.oom_control", 4096);
	uint64_t cnt;

	/* memory.events.local exists since Linux 5.2; memory.events sums up the events of all groups below. */
	if (is_v2 && !text)
		text = read_file(l->dir, "memory.events", 4096);
	cnt = value_of(text, "oom_kill");
	if (is_v2)
		cnt += value_of(text, "high") + value_of(text, "oom");
	free(text);
	return cnt;
}

static uint64_t read_cache(const struct level *l, bool is_v2)
{
	char *text = read_file(l->dir, "memory.stat", FILE_BYTES_MAX);
	uint64_t bytes = value_of(text, is_v2 ? "inactive_file" : "total_inactive_file");

	free(text);
	return bytes;
}

static int read_level(const struct cgroup_room *c, const struct level *l,
		      struct cgroup_room_reading *ret)
{
	int err = read_number(l->dir, c->is_v2 ? "memory.current" : "memory.usage_in_bytes",
			      &ret->usage_bytes);
	uint64_t cache = 0;

	if (err)
		return err;
	ret->limit_bytes = l->limit_bytes;
	if (l->limit_bytes && (double)ret->usage_bytes >= (double)l->limit_bytes * STAT_SHARE)
		cache = read_cache(l, c->is_v2);
	ret->working_bytes = cache < ret->usage_bytes ? ret->usage_bytes - cache : 0;
	return 0;
}

static bool is_nearer(const struct cgroup_room_reading *a, const struct cgroup_room_reading *b)
{
	return (double)a->working_bytes * (double)b->limit_bytes >
	       (double)b->working_bytes * (double)a->limit_bytes;
}

int cgroup_room_read(const struct cgroup_room *c, struct cgroup_room_reading *ret)
{
	struct cgroup_room_reading best = { 0 }, r;
	const struct level *l;
	uint64_t event_cnt = 0;

	vec_each(&c->levels, l) {
		if (!l->limit_bytes)
			continue;
		event_cnt += read_events(l, c->is_v2);
		if (!read_level(c, l, &r) && (!best.limit_bytes || is_nearer(&r, &best)))
			best = r;
	}
	/* The root of v2 has no memory.current. */
	if (!best.limit_bytes && read_level(c, &c->levels.data[0], &best) &&
	    access(c->levels.data[0].dir, X_OK))
		return -ENOENT;
	best.event_cnt = event_cnt;
	*ret = best;
	return 0;
}

int cgroup_memory_limit(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes,
			char ret_dir[static CGROUP_PATH_BYTES])
{
	const char *name = mount->is_v2 ? "memory.max" : "memory.limit_in_bytes";
	uint64_t least = CGROUP_UNLIMITED, bytes = 0;
	char at[CGROUP_PATH_BYTES];
	bool is_read = false;

	if (strlen(dir) >= sizeof(at) || strlen(dir) < strlen(mount->point))
		return -ENODATA;
	memcpy(at, dir, strlen(dir) + 1);
	memcpy(ret_dir, at, strlen(at) + 1);
	while (strlen(at) >= strlen(mount->point)) {
		char *slash = strrchr(at, '/');

		if (!read_number(at, name, &bytes)) {
			is_read = true;
			if (bytes < least && bytes < LIMIT_MAX) {
				least = bytes;
				memcpy(ret_dir, at, strlen(at) + 1);
			}
		}
		if (!slash)
			break;
		*slash = '\0';
	}
	*ret_bytes = least;
	return is_read ? 0 : -ENODATA;
}

int cgroup_memory_usage(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes)
{
	return read_number(dir, mount->is_v2 ? "memory.current" : "memory.usage_in_bytes",
			   ret_bytes);
}
