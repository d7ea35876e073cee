/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - finds the cgroup that a user names, and whether a process is in it, from /proc and mountinfo (see
 * cgroup.h).
 *
 * A line of mountinfo is "ID PARENT DEV ROOT MOUNTPOINT OPTIONS [TAGS...] - TYPE SOURCE SUPER": for a cgroup mount,
 * ROOT is the cgroup that MOUNTPOINT shows, and SUPER has the controllers of v1. Both paths have blanks and
 * backslashes as octal escapes.
 */
#include "proc/cgroup.h"

#include <dirent.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/vec.h"
#include "proc/proc_text.h"

#define FIELD_BYTES 4096
/* Limit of folders to look at: a host with many containers has thousands. */
#define FOLDERS_CAP 50000

/* A cgroup mount; root is as seen from the hierarchy's root. */
struct shown {
	char root[FIELD_BYTES], point[FIELD_BYTES], controllers[256];
};

/* Read the field that begins at *at, up to a blank or the end of the line. false: too long. */
static bool read_field(const char **at, char *buf, size_t buf_bytes)
{
	size_t n = 0;

	while (**at && **at != ' ' && **at != '\n') {
		char c = *(*at)++;

		if (c == '\\' && (*at)[0] >= '0' && (*at)[0] <= '3' && (*at)[1] >= '0' &&
		    (*at)[1] <= '7' && (*at)[2] >= '0' && (*at)[2] <= '7') {
			c = (char)(((*at)[0] - '0') << 6 | ((*at)[1] - '0') << 3 |
				   ((*at)[2] - '0'));
			*at += 3;
		}
		if (n + 1 >= buf_bytes)
			return false;
		buf[n++] = c;
	}
	buf[n] = '\0';
	while (**at == ' ')
		(*at)++;
	return true;
}

static bool skip_fields(const char **at, int cnt)
{
	while (cnt-- > 0) {
		*at += strcspn(*at, " \n");
		if (**at != ' ')
			return false;
		(*at)++;
	}
	return true;
}

/* Parse a line of mountinfo; false: not a cgroup mount. */
static bool parse_mount(const char *line, struct shown *ret)
{
	char type[16];

	if (!skip_fields(&line, 3) || !read_field(&line, ret->root, sizeof(ret->root)) ||
	    !read_field(&line, ret->point, sizeof(ret->point)) || ret->root[0] != '/' ||
	    ret->point[0] != '/')
		return false;
	while (*line && *line != '\n' && strncmp(line, "- ", 2))
		if (!skip_fields(&line, 1))
			return false;
	if (strncmp(line, "- ", 2))
		return false;
	line += 2;
	if (!read_field(&line, type, sizeof(type)) || !skip_fields(&line, 1))
		return false;
	ret->controllers[0] = '\0';
	if (!strcmp(type, "cgroup2"))
		return true;
	return !strcmp(type, "cgroup") &&
	       read_field(&line, ret->controllers, sizeof(ret->controllers));
}

/* Its next part is "..". */
bool cgroup_is_outside(const char *path)
{
	return !strncmp(path, "/..", 3) && (!path[3] || path[3] == '/');
}

int cgroup_absolute(const char *origin, const char *path, char *ret, size_t ret_bytes)
{
	size_t used = strcmp(origin, "/") ? strlen(origin) : 0;
	int n;

	for (; cgroup_is_outside(path); path += 3) {
		while (used && origin[used - 1] != '/')
			used--;
		if (!used)
			return -EINVAL;
		used--;
	}
	if (!strcmp(path, "/"))
		path = "";
	n = snprintf(ret, ret_bytes, "%.*s%s", (int)used, origin, used || *path ? path : "/");
	return (size_t)n < ret_bytes ? 0 : -ENAMETOOLONG;
}

static bool make_absolute(const char *origin, struct shown *m)
{
	char root[FIELD_BYTES];

	if (cgroup_absolute(origin, m->root, root, sizeof(root)))
		return false;
	memcpy(m->root, root, strlen(root) + 1);
	return true;
}

/* Is name in a list that is separated by ','? */
static bool is_listed(const char *list, const char *name, size_t len)
{
	while (*list) {
		size_t one = strcspn(list, ",");

		if (one == len && !memcmp(list, name, len))
			return true;
		list += one;
		list += *list == ',';
	}
	return false;
}

/* Version 1 where its memory controller is mounted. */
int cgroup_mount_find(const char *text, struct cgroup_mount *ret)
{
	struct shown *m = malloc(sizeof(*m));
	int err = m ? -ENOENT : -ENOMEM;

	while (m && *text) {
		bool is_one = parse_mount(text, m), is_v2 = is_one && !m->controllers[0];

		text += strcspn(text, "\n");
		text += *text == '\n';
		if (!is_one || (is_v2 ? !err : !is_listed(m->controllers, "memory", 6)) ||
		    strlen(m->root) >= sizeof(ret->root) || strlen(m->point) >= sizeof(ret->point))
			continue;
		memcpy(ret->root, m->root, strlen(m->root) + 1);
		memcpy(ret->point, m->point, strlen(m->point) + 1);
		ret->origin[0] = '\0';
		ret->is_v2 = is_v2;
		err = 0;
		if (!is_v2)
			break;
	}
	free(m);
	return err;
}

/* Find the next cgroup mount; NULL: there is none. */
static const char *next_mount(const char *at, const char *origin, struct shown *ret)
{
	while (*at) {
		bool is_one = parse_mount(at, ret) && make_absolute(origin, ret);

		at += strcspn(at, "\n");
		at += *at == '\n';
		if (is_one)
			return at;
	}
	return NULL;
}

/* The part of path below folder: "" or "/..."; NULL: path is not in it. */
static const char *below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (len && folder[len - 1] == '/')
		len--; /* the root */
	if (strncmp(path, folder, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

static bool has_dot_dot(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at += 2)
		if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

/* Join head and tail of a path, with one '/' between them and none at the end. */
static char *join(const char *head, const char *tail)
{
	size_t len = strlen(head);
	char *path;

	while (len && head[len - 1] == '/')
		len--;
	while (*tail == '/')
		tail++;
	if (asprintf(&path, "%.*s/%s", (int)len, head, tail) < 0)
		return NULL;
	len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	return path;
}

int cgroup_parse(const char *text, const char *mountinfo, const char *origin,
		 struct cgroup_place *ret)
{
	struct shown *mount;
	const char *at = mountinfo, *rest;
	int err = -ENOMEM;

	if (!text[0] || has_dot_dot(text))
		return -EINVAL;
	*ret = (struct cgroup_place){ 0 };
	mount = malloc(sizeof(*mount));
	if (!mount)
		return -ENOMEM;
	ret->origin = strdup(origin);
	if (!ret->origin)
		goto out;
	while ((at = next_mount(at, origin, mount))) {
		rest = below(text, mount->point);
		if (!rest)
			continue;
		ret->path = join(mount->root, rest);
		ret->controllers = strdup(mount->controllers);
		if (ret->path && ret->controllers)
			err = 0;
		goto out;
	}
	ret->path = join("", text);
	if (ret->path)
		err = 0;
out:
	if (err)
		cgroup_release(ret);
	free(mount);
	return err;
}

int cgroup_each_folder(const struct cgroup_place *place, const char *mountinfo,
		       int (*fn)(void *ctx, const char *folder), void *ctx)
{
	struct shown *mount = malloc(sizeof(*mount));
	const char *at = mountinfo, *rest;
	int err = mount ? 0 : -ENOMEM;

	while (!err && (at = next_mount(at, place->origin, mount))) {
		char *folder;

		rest = below(place->path, mount->root);
		if (!rest || (place->controllers && strcmp(place->controllers, mount->controllers)))
			continue;
		folder = join(mount->point, rest);
		err = folder ? fn(ctx, folder) : -ENOMEM;
		free(folder);
	}
	free(mount);
	return err;
}

/* Does the path, len characters of a line, lead to the place or below it? */
static bool is_at(const struct cgroup_place *place, const char *path, size_t len)
{
	size_t place_len = strcmp(place->path, "/") ? strlen(place->path) : 0;
	char told[FIELD_BYTES], whole[FIELD_BYTES];

	if (place->origin[0]) {
		snprintf(told, sizeof(told), "%.*s", (int)len, path);
		if (len >= sizeof(told) ||
		    cgroup_absolute(place->origin, told, whole, sizeof(whole)))
			return false;
		path = whole;
		len = strlen(whole);
	}
	return len >= place_len && !memcmp(path, place->path, place_len) &&
	       (len == place_len || path[place_len] == '/');
}

bool cgroup_next_line(const char **text, struct cgroup_line *ret)
{
	while (**text) {
		const char *line = *text, *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

		*text = end + (*end == '\n');
		if (!second)
			continue;
		*ret = (struct cgroup_line){ first + 1, (size_t)(second - first - 1), second + 1,
					     (size_t)(end - second - 1) };
		return true;
	}
	return false;
}

/* Has a line of /proc/PID/cgroup one of these controllers? "": is it of version 2? */
static bool is_hierarchy(const struct cgroup_line *l, const char *controllers)
{
	size_t len = 0;

	if (!controllers[0])
		return !l->controllers_len;
	while (len < l->controllers_len && l->controllers[len] != ',')
		len++;
	return len && is_listed(controllers, l->controllers, len);
}

bool cgroup_holds(const struct cgroup_place *place, const char *proc_cgroup)
{
	struct cgroup_line l;

	while (cgroup_next_line(&proc_cgroup, &l))
		if ((!place->controllers || is_hierarchy(&l, place->controllers)) &&
		    is_at(place, l.path, l.path_len))
			return true;
	return false;
}

struct search {
	char at[PATH_MAX]; /* the folder being looked at */
	size_t point_len; /* length of the mount point in `at` */
	const char *own;
	int left; /* number of folders that may still be looked at */
};

static bool has_us(const struct search *s)
{
	char path[PATH_MAX];
	bool is_there = false;
	char *line = NULL;
	size_t cap = 0;
	FILE *in;

	if ((size_t)snprintf(path, sizeof(path), "%s%s/cgroup.procs", s->at, s->own) >=
	    sizeof(path))
		return false;
	in = fopen(path, "re");
	if (!in)
		return false;
	while (!is_there && getline(&line, &cap, in) > 0)
		is_there = strtol(line, NULL, 10) == getpid();
	free(line);
	fclose(in);
	return is_there;
}

/* depth: how far below this folder the wanted ones are. true: s->at is the wanted one. */
static bool search(struct search *s, int depth)
{
	size_t len = strlen(s->at);
	struct dirent *entry;
	bool is_found = false;
	DIR *dir;

	if (!depth)
		return has_us(s);
	dir = opendir(s->at);
	while (dir && !is_found && s->left > 0 && (entry = readdir(dir))) {
		size_t name_len = strlen(entry->d_name);

		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, "..") || len + 1 + name_len >= sizeof(s->at))
			continue;
		s->left--;
		s->at[len] = '/';
		memcpy(s->at + len + 1, entry->d_name, name_len + 1);
		is_found = search(s, depth - 1);
		if (!is_found)
			s->at[len] = '\0';
	}
	if (dir)
		closedir(dir);
	return is_found;
}

int cgroup_origin_find(const char *point, const char *root, const char *own, char *ret,
		       size_t ret_bytes)
{
	struct search s = { .own = strcmp(own, "/") ? own : "", .left = FOLDERS_CAP };
	int depth = 0;

	for (; cgroup_is_outside(root); root += 3)
		depth++;
	/* The mount may show a part of the hierarchy only. */
	if (!depth || *root || cgroup_is_outside(own) || strlen(point) >= sizeof(s.at))
		return -ENOENT;
	s.point_len = strlen(point);
	memcpy(s.at, point, s.point_len + 1);
	if (!search(&s, depth))
		return -ENOENT;
	if (strlen(s.at + s.point_len) >= ret_bytes)
		return -ENAMETOOLONG;
	memcpy(ret, s.at + s.point_len, strlen(s.at + s.point_len) + 1);
	return 0;
}

/* Path of a process's memory cgroup in the kernel's form; text: its /proc/PID/cgroup. Pure. -ENOENT: it has none. */
static int cgroup_memory_path(const struct cgroup_mount *mount, const char *text,
			      char ret[static CGROUP_PATH_BYTES])
{
	struct cgroup_line l;

	while (cgroup_next_line(&text, &l)) {
		char controllers[128];

		snprintf(controllers, sizeof(controllers), "%.*s", (int)l.controllers_len,
			 l.controllers);
		if (mount->is_v2 ? controllers[0] : !is_listed(controllers, "memory", 6))
			continue;
		if (l.path[0] != '/' || l.path_len >= CGROUP_PATH_BYTES)
			break;
		memcpy(ret, l.path, l.path_len);
		ret[l.path_len] = '\0';
		return 0;
	}
	return -ENOENT;
}

/* Find the origin of a mount that begins outside of our namespace. */
static void find_origin(struct cgroup_mount *mount)
{
	char own[CGROUP_PATH_BYTES], *text;

	if (proc_text_read(0, "cgroup", &text))
		return;
	if (!cgroup_memory_path(mount, text, own) &&
	    !cgroup_origin_find(mount->point, mount->root, own, mount->origin,
				sizeof(mount->origin)))
		snprintf(mount->root, sizeof(mount->root), "/");
	free(text);
}

int cgroup_find_mount(struct cgroup_mount *ret)
{
	char *text;
	int err = proc_text_read(0, "mountinfo", &text);

	if (err)
		return -ENOENT;
	err = cgroup_mount_find(text, ret);
	free(text);
	if (!err && cgroup_is_outside(ret->root))
		find_origin(ret);
	return err;
}

static int is_folder(void *ctx, const char *folder)
{
	struct stat st;

	(void)ctx;
	return !stat(folder, &st) && S_ISDIR(st.st_mode);
}

int cgroup_find(const char *text, struct cgroup_place *ret, struct err *why)
{
	struct cgroup_mount mount;
	struct cgroup_place place;
	char *mountinfo = NULL;
	int err = proc_text_read(0, "mountinfo", &mountinfo);

	if (err)
		return err_set_os(why, err, "cannot read /proc/self/mountinfo");
	/* Container runtimes put a process at the same place in all hierarchies. */
	if (cgroup_find_mount(&mount))
		mount.origin[0] = '\0';
	err = cgroup_parse(text, mountinfo, mount.origin, &place);
	if (err) {
		err_set(why, err,
			err == -EINVAL ? "'%s' is not the path of a "
					 "cgroup" :
					 "out of memory",
			text);
		goto out;
	}
	*ret = place;
	if (cgroup_each_folder(&place, mountinfo, is_folder, NULL) == 1)
		goto out;
	err = err_set(why, -ENOENT,
		      "there is no cgroup '%s': give its folder below /sys/fs/cgroup, or its path "
		      "as in /proc/PID/cgroup",
		      text);
out:
	free(mountinfo);
	return err;
}

void cgroup_release(struct cgroup_place *place)
{
	free(place->path);
	free(place->controllers);
	free(place->origin);
	*place = (struct cgroup_place){ 0 };
}

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

/* Read a file of at most bytes_max as text, which the caller frees; NULL: it cannot be read. */
static char *read_file(const char *dir, const char *name, size_t bytes_max)
{
	char path[PATH_MAX], *text;
	ssize_t n = -1;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = malloc(bytes_max + 1);
	if (text)
		n = read_full(fd, text, bytes_max);
	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
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
