/* SPDX-License-Identifier: MIT */
/* build_id_files.c - see debug_files.h. */
#include "symbol/debug_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "elf/elf_file.h"

enum part { PART_ID, PART_PATH, PART_NAME };

/* Files with names and lines come first. */
static const struct {
	const char *folder;
	enum part part;
	const char *suffix;
} places[] = {
	{ "/.build-id/", PART_ID, ".debug" },
	{ "/usr/lib/debug/.build-id/", PART_ID, ".debug" },
	{ "/usr/lib/debug", PART_PATH, ".debug" },
	{ "", PART_PATH, ".debug" },
	{ "/", PART_NAME, ".debug" },
	{ "/.build-id/", PART_ID, "" },
	{ "", PART_PATH, "" },
	{ "/", PART_NAME, "" },
};

bool build_id_files_is_debug(unsigned nth)
{
	return nth < sizeof(places) / sizeof(*places) && places[nth].suffix[0];
}

int build_id_files_check(int fd, const char *build_id_hex)
{
	char found[2 * BUILD_ID_BYTES_CAP + 1];
	struct elf_file *ef = NULL;

	if (elf_file_open_fd(fd, &ef))
		return -ENOENT;
	elf_file_build_id_hex(ef, found);
	elf_file_close(ef);
	return strcmp(found, build_id_hex) ? -ENOENT : 0;
}

/* It becomes a part of a path, and comes from a profile, which is not trusted. */
static bool is_build_id(const char *text)
{
	size_t len = strlen(text);

	return len > 2 && len <= 2 * BUILD_ID_BYTES_CAP &&
	       text[strspn(text, "0123456789abcdef")] == '\0';
}

/* false for a path that leads out of the folder. */
static bool is_inside(const char *path)
{
	return path[0] == '/' && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/.."));
}

int build_id_files_open(const char *dir, const char *build_id_hex, const char *path, unsigned nth,
			char *ret_path)
{
	const char *slash = strrchr(path, '/');
	int fd, len, err;

	if (nth >= sizeof(places) / sizeof(*places))
		return -ERANGE;
	if (!is_build_id(build_id_hex) || (places[nth].part != PART_ID && !is_inside(path)))
		return -ENOENT;
	if (places[nth].part == PART_ID)
		len = snprintf(ret_path, PATH_MAX, "%s%s%.2s/%s%s", dir, places[nth].folder,
			       build_id_hex, build_id_hex + 2, places[nth].suffix);
	else
		len = snprintf(ret_path, PATH_MAX, "%s%s%s%s", dir, places[nth].folder,
			       places[nth].part == PART_PATH ? path : slash + 1,
			       places[nth].suffix);
	if (len >= PATH_MAX)
		return -ENOENT;
	fd = regular_file_open(ret_path);
	if (fd < 0)
		return -ENOENT;
	err = build_id_files_check(fd, build_id_hex);
	if (err)
		close(fd);
	return err ? err : fd;
}
