/* SPDX-License-Identifier: MIT */
/*
 * debug_files.c - finds and checks separate debug files.
 *
 * The paths come from the target, and the search runs with the profiler's rights. So below a target's root
 * nothing may lead out of it (symbolic links are resolved inside that root), only regular files are opened for
 * reading, and a file is used only when it proves to be the requested debug file.
 */
#include "symbol/debug_files.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <zlib.h>

#include "base/fd.h"
#include "elf/elf_budget.h"
#include "elf/elf_file.h"

#define DEBUG_DIR "/usr/lib/debug"
/* A shorter build id is not unique enough to be a file name: xx/yy... */
#define BUILD_ID_BYTES_MIN 2

/* O_PATH descriptor of path below root (needs Linux 5.6; the rest of heaptap needs a later one). */
static int locate(const char *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int root_fd, fd;

	if (!root[0]) {
		fd = open(path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return fd;
}

/* Open for reading; never opens a device or a fifo. */
static int open_regular(const char *root, const char *path)
{
	int path_fd = locate(root, path), fd;

	if (path_fd < 0)
		return path_fd;
	fd = regular_file_reopen(path_fd);
	close(path_fd);
	return fd;
}

/* Somebody waits while the file is read; and it may be sparse, of any size. */
#define CRC_FILE_BYTES_CAP (1LL << 30)
#define CRC_BYTES_PER_STEP 16

/* May ef cost that, and as much again for the rest of its reading? If so, the cost is charged. */
static bool is_affordable(const struct elf_file *ef, uint64_t bytes)
{
	const struct elf_budget *b = elf_file_budget(ef);
	uint64_t steps = bytes / CRC_BYTES_PER_STEP;

	return steps <= (b->steps_cap - b->steps) / 2 && elf_file_step(ef, steps);
}

static bool has_crc(const struct elf_file *ef, int fd, uint32_t want)
{
	uLong crc = crc32(0, NULL, 0);
	struct stat st;
	uint8_t *buf;
	off_t off = 0;
	ssize_t n = 0;

	if (fstat(fd, &st) || st.st_size > CRC_FILE_BYTES_CAP ||
	    !is_affordable(ef, (uint64_t)st.st_size))
		return false;
	buf = malloc(1 << 16);
	if (!buf)
		return false;
	/* The file may have grown meanwhile. */
	while (off < st.st_size && (n = pread(fd, buf, 1 << 16, off)) > 0) {
		crc = crc32(crc, buf, (uInt)n);
		off += n;
	}
	free(buf);
	return n >= 0 && off == st.st_size && (uint32_t)crc == want;
}

int build_id_check(int fd, const char *build_id_hex)
{
	char found[2 * BUILD_ID_BYTES_CAP + 1];
	struct elf_file *ef = NULL;

	if (elf_file_open_fd(fd, &ef))
		return -ENOENT;
	elf_file_build_id_hex(ef, found);
	elf_file_close(ef);
	return strcmp(found, build_id_hex) ? -ENOENT : 0;
}

static int open_with_build_id(const char *root, const char *path, const char *build_id_hex)
{
	int fd = open_regular(root, path);

	if (fd < 0 || !build_id_check(fd, build_id_hex))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Search the target's root, then the host. */
int debug_files_open_id(const char *build_id_hex, const char *root, char *ret_path)
{
	size_t len = strlen(build_id_hex);
	int fd;

	if (len < 2 * BUILD_ID_BYTES_MIN || len > 2 * BUILD_ID_BYTES_CAP || len % 2 ||
	    build_id_hex[strspn(build_id_hex, "0123456789abcdef")])
		return -ENOENT;
	snprintf(ret_path, PATH_MAX, DEBUG_DIR "/.build-id/%.2s/%s.debug", build_id_hex,
		 build_id_hex + 2);
	fd = open_with_build_id(root, ret_path, build_id_hex);
	if (fd < 0 && root[0])
		fd = open_with_build_id("", ret_path, build_id_hex);
	return fd < 0 ? -ENOENT : fd;
}

/* The directory of an absolute path, without the slash at its end. */
static void directory_of(const char *name, char *dir, size_t dir_bytes)
{
	const char *slash = strrchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	if (name[0] != '/' || n >= dir_bytes)
		n = 0;
	memcpy(dir, name, n);
	dir[n] = '\0';
}

/* "NAME\0" padded to 4, then the CRC in the file's byte order. */
static bool read_debuglink(struct elf_file *ef, const char **ret_name, uint32_t *ret_crc)
{
	struct elf_section sec;
	size_t len, crc_off;

	if (elf_file_section(ef, ".gnu_debuglink", &sec) != 0 || !sec.data)
		return false;
	len = strnlen((const char *)sec.data, sec.bytes);
	crc_off = (len + 1 + 3) & ~(size_t)3;
	if (len == 0 || len == sec.bytes || sec.bytes < 4 || crc_off > sec.bytes - 4)
		return false;
	/* A bare file name, by definition of the section. */
	if (memchr(sec.data, '/', len))
		return false;
	memcpy(ret_crc, sec.data + crc_off, 4);
	*ret_name = (const char *)sec.data;
	return true;
}

static int by_debuglink(struct elf_file *ef, const char *name, const char *root, char *path)
{
	static const struct {
		const char *prefix, *between;
		bool on_host; /* also searched when the target has a root of its own */
	} places[] = {
		{ "", "", false },
		{ "", "/.debug", false },
		{ DEBUG_DIR, "", true },
	};
	char dir[PATH_MAX / 2];
	const char *link;
	uint32_t crc;

	if (!read_debuglink(ef, &link, &crc))
		return -ENOENT;
	directory_of(name, dir, sizeof(dir));
	for (size_t i = 0; i < 2 * ARRAY_CNT(places); i++) {
		bool host = i >= ARRAY_CNT(places);
		size_t p = i % (ARRAY_CNT(places));
		int fd;

		if (host && (!root[0] || !places[p].on_host))
			continue;
		if ((size_t)snprintf(path, PATH_MAX, "%s%s%s/%s", places[p].prefix, dir,
				     places[p].between, link) >= PATH_MAX)
			continue;
		fd = open_regular(host ? "" : root, path);
		if (fd < 0)
			continue;
		if (has_crc(ef, fd, crc))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

int debug_files_open(struct elf_file *ef, const char *name, const char *root, char *ret_path)
{
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	int fd;

	elf_file_build_id_hex(ef, build_id_hex);
	fd = debug_files_open_id(build_id_hex, root, ret_path);
	return fd >= 0 ? fd : by_debuglink(ef, name, root, ret_path);
}

int debug_files_load(struct elf_file *ef, const char *name, const char *root, struct elf_file **ret)
{
	char found[PATH_MAX];
	int fd = debug_files_open(ef, name, root, found), err;

	if (fd < 0)
		return -ENOENT;
	err = elf_file_open_fd(fd, ret);
	close(fd);
	return err == -ENOMEM ? err : err ? -ENOENT : 0;
}

/* The section has "PATH\0" and the build id of the shared file. */
int debug_files_open_alt(struct elf_file *ef, const char *name, const char *root)
{
	char dir[PATH_MAX / 2], path[PATH_MAX];
	struct elf_section sec;
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	const char *link;
	size_t len;
	int fd;

	if (elf_file_section(ef, ".gnu_debugaltlink", &sec) != 0 || !sec.data)
		return -ENOENT;
	link = (const char *)sec.data;
	len = strnlen(link, sec.bytes);
	if (len == 0 || len >= sec.bytes || len >= PATH_MAX / 2)
		return -ENOENT;
	elf_build_id_to_hex(sec.data + len + 1, sec.bytes - len - 1, build_id_hex);
	fd = debug_files_open_id(build_id_hex, root, path);
	if (fd >= 0)
		return fd;
	directory_of(name, dir, sizeof(dir));
	if (link[0] == '/')
		snprintf(path, sizeof(path), "%s", link);
	else
		snprintf(path, sizeof(path), "%s/%s", dir, link);
	fd = open_with_build_id(root, path, build_id_hex);
	/* A debug file on the host links to the host. */
	if (fd < 0 && root[0])
		fd = open_with_build_id("", path, build_id_hex);
	return fd < 0 ? -ENOENT : fd;
}
