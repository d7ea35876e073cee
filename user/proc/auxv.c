/* SPDX-License-Identifier: MIT */
/* auxv.c - see process.h. */
#include "proc/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define ENTRIES_CAP 64 /* the kernel gives out some 25 */

int auxv_value(pid_t pid, uint64_t type, uint64_t *ret)
{
	Elf64_auxv_t entries[ENTRIES_CAP];
	char path[32];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, entries, sizeof(entries));
	err = n < 0 ? -errno : -ENOENT;
	close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(entries[0]); i++) {
		if (entries[i].a_type != type)
			continue;
		*ret = entries[i].a_un.a_val;
		return 0;
	}
	return err;
}
