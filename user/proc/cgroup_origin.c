/* SPDX-License-Identifier: MIT */
/* cgroup_origin.c - see cgroup_origin.h. */
#include "proc/cgroup_origin.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of folders to look at: a host with many containers has thousands. */
#define FOLDERS_CAP 50000

/* Is the next part of a path ".."? */
static bool is_up(const char *at)
{
	return !strncmp(at, "/..", 3) && (!at[3] || at[3] == '/');
}

bool cgroup_is_outside(const char *path)
{
	return is_up(path);
}

int cgroup_absolute(const char *origin, const char *path, char *ret, size_t ret_bytes)
{
	size_t used = strcmp(origin, "/") ? strlen(origin) : 0;
	int n;

	for (; is_up(path); path += 3) {
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

	for (; is_up(root); root += 3)
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
