/* SPDX-License-Identifier: MIT */
/*
 * process_memory.c - bytes of another process's memory.
 *
 * One system call without a file descriptor; where it is missing or forbidden (a kernel without
 * CROSS_MEMORY_ATTACH, a seccomp filter of a container around us) the process's mem file, which
 * goes by the same permissions.
 */
#include "proc/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proc/reader.h"

static int read_mem_file(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	char path[64];
	ssize_t n;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = pread(fd, buf, bytes, (off_t)addr);
	if (n < 0)
		err = errno == EIO ? -EFAULT : -errno;
	else if ((size_t)n != bytes)
		err = -EFAULT;
	close(fd);
	return err;
}

int process_memory_read(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	struct iovec local = { .iov_base = buf, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = bytes };
	ssize_t n;

	if (addr > INT64_MAX || bytes > INT64_MAX - addr)
		return -EFAULT;
	if (reader_is_on())
		return reader_memory(tid, addr, buf, bytes);
	n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		return read_mem_file(tid, addr, buf, bytes);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EFAULT;
}
