/* SPDX-License-Identifier: MIT */
/* cgroup_memory.c - see cgroup_memory.h. */
#include "proc/cgroup_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/cgroup_origin.h"

/* Version 1 has no word for "unlimited": it shows the largest number of whole pages. No real limit is that
 * large. */
#define V1_UNLIMITED (1ULL << 62)

/* A piece of text, not terminated. */
struct span {
	const char *text;
	size_t len;
};

static bool span_is(struct span s, const char *want)
{
	return s.len == strlen(want) && !memcmp(s.text, want, s.len);
}

/* Is one of the words between commas equal to want? */
static bool span_has_word(struct span s, const char *want)
{
	while (s.len) {
		const char *comma = memchr(s.text, ',', s.len);
		struct span word = { s.text, comma ? (size_t)(comma - s.text) : s.len };

		if (span_is(word, want))
			return true;
		s.len -= word.len + (comma ? 1 : 0);
		s.text += word.len + (comma ? 1 : 0);
	}
	return false;
}

/* Return the next field of the line; fields are separated by blanks. */
static struct span next_field(struct span *line)
{
	struct span field;

	while (line->len && *line->text == ' ') {
		line->text++;
		line->len--;
	}
	field.text = line->text;
	while (line->len && *line->text != ' ') {
		line->text++;
		line->len--;
	}
	field.len = (size_t)(line->text - field.text);
	return field;
}

/* Get the next line of *text without its end; false: there is none. */
static bool next_line(const char **text, struct span *ret)
{
	if (!**text)
		return false;
	ret->text = *text;
	ret->len = strcspn(*text, "\n");
	*text += ret->len;
	if (**text)
		(*text)++;
	return true;
}

/* Blanks in paths are escaped; mounts with such a path are ignored. */
static bool set_path(char ret[static CGROUP_PATH_BYTES], struct span path)
{
	if (path.len >= CGROUP_PATH_BYTES || memchr(path.text, '\\', path.len))
		return false;
	memcpy(ret, path.text, path.len);
	ret[path.len] = '\0';
	return true;
}

/* proc_pid_mountinfo(5): id parent dev root point options [tags]... - type source superoptions */
static bool parse_mount(struct span line, struct cgroup_mount *ret)
{
	struct span root, point, field, super;

	for (int i = 0; i < 3; i++)
		next_field(&line);
	root = next_field(&line);
	point = next_field(&line);
	do
		field = next_field(&line);
	while (field.len && !span_is(field, "-"));
	field = next_field(&line);
	next_field(&line);
	super = next_field(&line);
	ret->is_v2 = span_is(field, "cgroup2");
	if (!ret->is_v2 && !(span_is(field, "cgroup") && span_has_word(super, "memory")))
		return false;
	return set_path(ret->root, root) && set_path(ret->point, point);
}

int cgroup_mount_find(const char *text, struct cgroup_mount *ret)
{
	struct cgroup_mount mount;
	bool is_found = false;
	struct span line;

	while (next_line(&text, &line)) {
		if (!parse_mount(line, &mount) || (is_found && mount.is_v2))
			continue;
		mount.origin[0] = '\0';
		*ret = mount;
		is_found = true;
		if (!mount.is_v2)
			break;
	}
	return is_found ? 0 : -ENOENT;
}

/* "hierarchy:controllers:path"; version 2 has number 0 and no controllers. */
static bool parse_group(struct span line, bool is_v2, struct span *ret)
{
	const char *first = memchr(line.text, ':', line.len), *second;
	struct span controllers;

	if (!first)
		return false;
	controllers.text = first + 1;
	second = memchr(controllers.text, ':', line.len - (size_t)(controllers.text - line.text));
	if (!second)
		return false;
	controllers.len = (size_t)(second - controllers.text);
	ret->text = second + 1;
	ret->len = line.len - (size_t)(ret->text - line.text);
	if (is_v2)
		return first == line.text + 1 && *line.text == '0' && !controllers.len;
	return span_has_word(controllers, "memory");
}

int cgroup_memory_path(const struct cgroup_mount *mount, const char *text,
		       char ret[static CGROUP_PATH_BYTES])
{
	struct span line, path = { 0 };

	while (next_line(&text, &line) && !parse_group(line, mount->is_v2, &path))
		path.len = 0;
	if (!path.len || path.text[0] != '/' || path.len >= CGROUP_PATH_BYTES)
		return -ENOENT;
	memcpy(ret, path.text, path.len);
	ret[path.len] = '\0';
	return 0;
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

static int read_number(const char *dir, const char *name, uint64_t *ret)
{
	char path[CGROUP_PATH_BYTES + 32], text[64], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ENODATA;
	text[n] = '\0';
	if (!strcmp(text, "max\n")) {
		*ret = CGROUP_UNLIMITED;
		return 0;
	}
	*ret = strtoull(text, &end, 10);
	return end == text ? -EINVAL : 0;
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
			if (bytes < least && bytes < V1_UNLIMITED) {
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
