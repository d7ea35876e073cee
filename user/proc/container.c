/* SPDX-License-Identifier: MIT */
/*
 * container.c - the id of a container, from a cgroup path: see facts.h.
 *
 * Nothing in the kernel is called a container. Runtimes agree that the id, 64 lower-case hexadecimal digits,
 * stands in the last part of the cgroup path:
 *   /docker/ID                                     docker, cgroupfs driver
 *   /system.slice/docker-ID.scope                  docker, systemd driver
 *   /kubepods/burstable/podUID/ID                  kubernetes
 *   /kubepods.slice/.../cri-containerd-ID.scope    containerd, cri-o, podman (libpod-)
 *   /ecs/TASK/TASK-NUMBER                          32 digits, a dash, a number
 *   /lxc.payload.NAME, /lxc/NAME, /machine.slice/machine-NAME.scope
 * A conmon scope holds the monitor of a container, not the container.
 *
 * A process that is seen from inside its own cgroup namespace shows "/": then there is no id in it, and none is
 * made up. The mounts of the process may still tell:
 *   /etc/hostname  from  .../docker/containers/ID/hostname                      docker
 *                        .../overlay-containers/ID/userdata/hostname            podman, cri-o
 *                        .../io.containerd.grpc.v1.cri/sandboxes/ID/hostname    containerd
 *   /              from  /var/lib/machines/NAME                                 systemd-nspawn
 *                        .../lxc/NAME/rootfs                                    lxc
 */
#include "proc/facts.h"

#include "base/err.h"
#include "base/printable.h"
#include "proc/cgroup.h"

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
	make_printable(buf); /* a container may choose any names for cgroups */
}

static bool has_prefix(const char *p, size_t len, const char *prefix)
{
	return len > strlen(prefix) && !strncmp(p, prefix, strlen(prefix));
}

/* Find an id in one part of the path; before is the part before it. */
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

/* Find the id in the last part of the path that names a container. */
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
	struct cgroup_line l;

	buf[0] = '\0';
	while (cgroup_next_line(&text, &l))
		if (id_of_path(l.path, l.path_len, buf))
			return;
}

/* Split a line of mountinfo into its first fields; false: there are fewer. */
static bool find_fields(const char *line, size_t len, const char *ret[6], size_t ret_len[6])
{
	for (size_t i = 0; i < 6; i++) {
		const char *blank = memchr(line, ' ', len);

		ret[i] = line;
		ret_len[i] = blank ? (size_t)(blank - line) : len;
		if (!blank && i < 5)
			return false;
		if (blank) {
			len -= ret_len[i] + 1;
			line = blank + 1;
		}
	}
	return true;
}

static bool is_one_of(const char *p, size_t len, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (strlen(names[i]) == len && !memcmp(p, names[i], len))
			return true;
	return false;
}

/* The folder name between "before" and "after" in a path; NULL: there is none. */
static const char *find_between(const char *path, size_t len, const char *before, const char *after,
				size_t *ret_len)
{
	const char *at = memmem(path, len, before, strlen(before)), *end = path + len;

	if (!at)
		return NULL;
	at += strlen(before);
	*ret_len = 0;
	while (at + *ret_len < end && at[*ret_len] != '/')
		(*ret_len)++;
	if ((size_t)(end - at) - *ret_len != strlen(after) ||
	    memcmp(at + *ret_len, after, strlen(after)) || !*ret_len)
		return NULL;
	return at;
}

static bool id_of_mount(const char *line, size_t len, char buf[static CONTAINER_ID_BYTES])
{
	static const char *const own[] = { "/etc/hostname", "/etc/hosts", "/etc/resolv.conf",
					   "/run/.containerenv" };
	const char *field[6], *id;
	size_t field_len[6], id_len;

	if (!find_fields(line, len, field, field_len))
		return false;
	/* 3: the path on the file system; 4: where it is mounted */
	if (is_one_of(field[4], field_len[4], own, ARRAY_CNT(own))) {
		id = find_hex_run(field[3], field_len[3], 64);
		if (id)
			set_id(buf, id, 64);
		return id;
	}
	if (field_len[4] != 1 || field[4][0] != '/')
		return false;
	id = find_between(field[3], field_len[3], "/machines/", "", &id_len);
	if (!id)
		id = find_between(field[3], field_len[3], "/lxc/", "/rootfs", &id_len);
	if (id)
		set_id(buf, id, id_len);
	return id;
}

void container_id_from_mountinfo(const char *text, char buf[static CONTAINER_ID_BYTES])
{
	buf[0] = '\0';
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (id_of_mount(text, len, buf))
			return;
		text += len;
		text += *text == '\n';
	}
}

/* Skip "docker://", with which Kubernetes writes ids. */
static const char *skip_scheme(const char *given)
{
	const char *at = strstr(given, "://");

	return at ? at + 3 : given;
}

bool container_id_matches(const char *id, const char *given)
{
	given = skip_scheme(given);
	return given[0] && !strncmp(id, given, strlen(given));
}

int container_check_given(const char *given, struct err *why)
{
	size_t len = strlen(skip_scheme(given));

	if (len && len < CONTAINER_ID_BYTES && !strpbrk(skip_scheme(given), "/ \t\n"))
		return 0;
	return err_set(why, -EINVAL,
		       "'%s' is not a container id: give the id or its beginning, or for lxc and "
		       "systemd-nspawn the name",
		       given);
}
