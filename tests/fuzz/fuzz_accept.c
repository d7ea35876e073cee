/* SPDX-License-Identifier: MIT */
/* fuzz_accept.c - Accept headers, label values, and control groups and mounts of any content. */
#include "fuzz.h"

#include "http/pages.h"
#include "proc/cgroup.h"

static void check_label(const char *value)
{
	static const struct metric_family family = { "a", METRIC_GAUGE, NULL, "A." };
	char *text = NULL;
	size_t text_bytes;
	struct metric_text m = { .out = open_memstream(&text, &text_bytes) };
	const char *c;

	if (!m.out)
		return;
	m.family = &family;
	metric_begin(&m);
	metric_label(&m, "x", value);
	metric_value(&m, 1);
	fclose(m.out);
	/* One line, whose quote ends with the value: a{x="..."} 1 */
	if (!*value) {
		if (strcmp(text, "a 1\n"))
			abort();
		free(text);
		return;
	}
	if (strncmp(text, "a{x=\"", 5))
		abort();
	for (c = text + 5; *c && *c != '"'; c++) {
		if (*c == '\n' || (*c == '\\' && !strchr("\\\"n", *++c)))
			abort();
	}
	if (strcmp(c, "\"} 1\n"))
		abort();
	free(text);
}

/* Nothing leads out of the mount, seen from its root or from a container. */
static void check_dir(const struct cgroup_mount *mount, const char *text)
{
	static const char *const origins[] = { "", "/a/b" };
	struct cgroup_mount seen = *mount;
	char dir[CGROUP_PATH_BYTES];

	for (size_t i = 0; i < 2; i++) {
		snprintf(seen.origin, sizeof(seen.origin), "%s", origins[i]);
		if (!cgroup_memory_dir(&seen, text, dir) &&
		    (strlen(dir) >= sizeof(dir) || strncmp(dir, seen.point, strlen(seen.point)) ||
		     strstr(dir + strlen(seen.point), "/..")))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = fuzz_text(data, bytes);
	struct cgroup_mount mount = { .point = "/sys/fs/cgroup", .root = "/", .is_v2 = true };

	metric_format_choose(text);
	check_label(text);
	for (int i = 0; i < 3; i++) {
		check_dir(&mount, text);
		mount.is_v2 = false;
		if (i == 1 && cgroup_mount_find(text, &mount))
			break;
	}
	free(text);
	return 0;
}
