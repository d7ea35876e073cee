/* SPDX-License-Identifier: MIT */
/* debug_source.c - see debug_source.h. */
#include "serve/debug_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "elf/debug_only.h"
#include "elf/elf_file.h"
#include "symbol/debug_files.h"
#include "track/files.h"

static const struct track_file *find_file(const struct track_files *files, const char *build_id)
{
	for (size_t i = 0; files && i < track_files_cnt(files); i++) {
		const struct track_file *file = track_files_at(files, i);

		if (file && file->fd >= 0 && !file->is_vdso &&
		    !strcmp(file->build_id_hex, build_id))
			return file;
	}
	return NULL;
}

static bool has_dwarf(const struct elf_file *ef)
{
	const struct elf_section_head *heads;
	size_t cnt;

	heads = elf_file_section_heads(ef, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(heads[i].name, ".debug_info") || !strcmp(heads[i].name, ".zdebug_info"))
			return true;
	return false;
}

/* fd is taken over, whatever comes of it. */
static int reduce(struct elf_file *ef, int fd, struct debug_only **ret, int *ret_fd)
{
	int err = fd < 0 ? fd : debug_only_new(ef, ret);

	if (!err)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

static int reduce_separate(const struct track_file *file, struct debug_only **ret, int *ret_fd)
{
	char path[PATH_MAX];
	struct elf_file *ef;
	int fd = debug_files_open_id(file->build_id_hex, file->root, path), err;

	if (fd < 0)
		return fd;
	err = elf_file_open_fd(fd, &ef);
	if (err) {
		close(fd);
		return err;
	}
	err = reduce(ef, fd, ret, ret_fd);
	elf_file_close(ef);
	return err;
}

int debug_source_open(const struct track_files *files, const char *build_id,
		      struct debug_only **ret, int *ret_fd)
{
	const struct track_file *file = find_file(files, build_id);
	struct elf_file *ef;
	int err, fd;

	if (!file)
		return -ENOENT;
	err = elf_file_open_fd(file->fd, &ef);
	if (err)
		return err;
	err = has_dwarf(ef) ? -ENOENT : reduce_separate(file, ret, ret_fd);
	if (err && err != -EMFILE && err != -ENFILE && err != -ENOMEM) {
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		err = reduce(ef, fd < 0 ? -errno : fd, ret, ret_fd);
	}
	elf_file_close(ef);
	return err;
}
