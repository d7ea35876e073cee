/* SPDX-License-Identifier: MIT */
/* own_cost.c - see own_cost.h. */
#include "serve/own_cost.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "metrics/view.h"
#include "proc/process.h"

/* What a link in /proc/self/fd begins with. What none fits is of the last kind. */
static const struct kind {
	const char *name, *prefix;
} kinds[OWN_FD_KIND_CNT] = {
	{ "link", "anon_inode:bpf_link" },
	{ "perf_event", "anon_inode:[perf_event]" },
	{ "map", "anon_inode:bpf-map" },
	{ "program", "anon_inode:bpf-prog" },
	{ "socket", "socket:" },
	{ "file", "/" },
	{ "other", "" },
};

static size_t kind_of(int dir_fd, const char *name)
{
	char text[64] = "";
	size_t i = 0;

	if (readlinkat(dir_fd, name, text, sizeof(text) - 1) < 0)
		return OWN_FD_KIND_CNT - 1;
	while (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
		i++;
	return i;
}

int own_fds_count(struct serve_named ret[static OWN_FD_KIND_CNT])
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return -errno;
	for (size_t i = 0; i < OWN_FD_KIND_CNT; i++)
		ret[i] = (struct serve_named){ .name = kinds[i].name };
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != dirfd(dir))
			ret[kind_of(dirfd(dir), entry->d_name)].value++;
	closedir(dir);
	return 0;
}

void own_cost_read(struct serve_own *ret)
{
	struct process_info info;

	ret->cpu_seconds = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / (double)NS_PER_S;
	ret->rss_bytes = process_glance(getpid(), &info) ? NAN : (double)info.rss_bytes;
}
