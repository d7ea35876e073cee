/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - see cgroup.h.
 *
 * A line of mountinfo is "ID PARENT DEV ROOT MOUNTPOINT OPTIONS [TAGS...] - TYPE SOURCE SUPER": for a
 * cgroup mount, ROOT is the cgroup that MOUNTPOINT shows, and SUPER has the controllers of v1. Both
 * paths have blanks and backslashes as octal escapes.
 */
#include "proc/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "proc/cgroup_origin.h"
#include "proc/cgroup_free.h"
#include "proc/proc_text.h"

#define FIELD_BYTES 4096

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

static bool make_absolute(const char *origin, struct shown *m)
{
	char root[FIELD_BYTES];

	if (cgroup_absolute(origin, m->root, root, sizeof(root)))
		return false;
	memcpy(m->root, root, strlen(root) + 1);
	return true;
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

bool cgroup_holds(const struct cgroup_place *place, const char *proc_cgroup)
{
	const char *line = proc_cgroup;

	while (*line) {
		/* "hierarchy:controllers:path"; one matching controller is enough */
		const char *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
		bool is_hierarchy = second != NULL;

		if (second && place->controllers) {
			size_t len = strcspn(first + 1, ",:");

			is_hierarchy = place->controllers[0] ? len && is_listed(place->controllers,
										first + 1, len) :
							       !len;
		}
		if (is_hierarchy && is_at(place, second + 1, (size_t)(end - second - 1)))
			return true;
		line = end;
		line += *line == '\n';
	}
	return false;
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
	if (cgroup_free_find_mount(&mount))
		mount.origin[0] = '\0';
	err = cgroup_parse(text, mountinfo, mount.origin, &place);
	if (err) {
		err_set(why, err, err == -EINVAL ? "'%s' is no path of a cgroup" : "out of memory",
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
