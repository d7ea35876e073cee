/* SPDX-License-Identifier: MIT */
/*
 * container.c - container id from a cgroup path.
 *
 * Nothing in the kernel is called a container; what runtimes agree on is that the id, 64 lower-case
 * hexadecimal digits, stands in the last part of the cgroup path:
 *   /docker/ID                                     docker, cgroupfs driver
 *   /system.slice/docker-ID.scope                  docker, systemd driver
 *   /kubepods/burstable/podUID/ID                  kubernetes
 *   /kubepods.slice/.../cri-containerd-ID.scope    containerd, cri-o, podman (libpod-)
 *   /ecs/TASK/TASK-NUMBER                          32 digits, a dash, a number
 *   /lxc.payload.NAME, /lxc/NAME, /machine.slice/machine-NAME.scope
 * A conmon scope holds the monitor of a container, not the container.
 *
 * A process that is seen from inside its own cgroup namespace shows "/": then there is nothing
 * to be found, and nothing is made up.
 */
#include "target/container.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A run of exactly `digits` hexadecimal digits in [p, p + len); NULL when there is none. */
static const char *find_hex_run(const char *p, size_t len, size_t digits)
{
	size_t i, run = 0;

	for (i = 0; i <= len; i++) {
		if (i < len && is_hex(p[i])) {
			run++;
			continue;
		}
		if (run == digits)
			return p + i - run;
		run = 0;
	}
	return NULL;
}

static void set_id(char buf[static CONTAINER_ID_BYTES], const char *id, size_t len)
{
	if (len >= CONTAINER_ID_BYTES)
		len = CONTAINER_ID_BYTES - 1;
	memcpy(buf, id, len);
	buf[len] = '\0';
}

static bool has_prefix(const char *p, size_t len, const char *prefix)
{
	return len > strlen(prefix) && !strncmp(p, prefix, strlen(prefix));
}

/* One part of the path; before is the part before it. */
static bool id_of_part(const char *p, size_t len, const char *before, size_t before_len,
		       char buf[static CONTAINER_ID_BYTES])
{
	static const char scope[] = ".scope";
	const char *hex;
	size_t scope_len = sizeof(scope) - 1;

	if (memmem(p, len, "conmon", 6))
		return false;
	hex = find_hex_run(p, len, 64);
	if (hex) {
		set_id(buf, hex, 64);
		return true;
	}
	hex = find_hex_run(p, len, 32);
	if (hex == p && len > 33 && p[32] == '-' && before_len == 32 && !memcmp(p, before, 32)) {
		set_id(buf, p, len);
		return true;
	}
	if (has_prefix(p, len, "lxc.payload.")) {
		set_id(buf, p + 12, len - 12);
		return true;
	}
	if (before_len == 3 && !memcmp(before, "lxc", 3)) {
		set_id(buf, p, len);
		return true;
	}
	if (has_prefix(p, len, "machine-") && len > 8 + scope_len &&
	    !memcmp(p + len - scope_len, scope, scope_len)) {
		set_id(buf, p + 8, len - 8 - scope_len);
		return true;
	}
	return false;
}

/* The last part of the path that names a container. */
static bool id_of_path(const char *path, size_t len, char buf[static CONTAINER_ID_BYTES])
{
	const char *before = path, *end = path + len;
	size_t before_len = 0;
	bool found = false;

	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t part_len = (size_t)((slash ? slash : end) - path);

		if (part_len && id_of_part(path, part_len, before, before_len, buf))
			found = true;
		before = path;
		before_len = part_len;
		path += part_len + 1;
	}
	return found;
}

void container_id_from_cgroup(const char *text, char buf[static CONTAINER_ID_BYTES])
{
	buf[0] = '\0';
	while (*text) {
		size_t len = strcspn(text, "\n");
		/* "hierarchy:controllers:path"; named hierarchies have a '=' but no ':' */
		const char *first = memchr(text, ':', len);
		const char *second =
			first ? memchr(first + 1, ':', len - (size_t)(first + 1 - text)) : NULL;

		if (second && id_of_path(second + 1, len - (size_t)(second + 1 - text), buf))
			return;
		text += len;
		if (*text)
			text++;
	}
}
