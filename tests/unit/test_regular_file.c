/* SPDX-License-Identifier: MIT */
/*
 * test_regular_file.c - files of others are opened without waiting for them.
 *
 * A write lease makes open() wait until its holder lets go, or for /proc/sys/fs/lease-break-time.
 */
#include "unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "elf/elf_file.h"
#include "proc/launch.h"
#include "proc/process.h"
#include "temp_folder.h"

/* No open takes longer, on a machine that does other things too. */
#define AT_ONCE_NS (3 * NS_PER_S)

/* A child that maps the file and has a write lease on it; it ends when its input does. */
static pid_t lease(const char *path, int *ret_fd)
{
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int fd = open(path, O_RDWR);
		void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

		close(go[1]);
		/* SIGIO stays what it is: whoever asks for the file would end this process */
		byte = map != MAP_FAILED && !fcntl(fd, F_SETLEASE, F_WRLCK);
		_exit(write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*ret_fd = go[1];
	if (!byte) { /* a file system without leases */
		close(go[1]);
		waitpid(pid, NULL, 0);
		return 0;
	}
	return pid;
}

static void end(pid_t pid, int fd)
{
	int status = -1;

	close(fd);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

TEST_WITH(test_kinds, new_folder, remove_folder)
{
	const struct temp_folder *t = *state;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/fifo", t->path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(regular_file_open(path), -ENOEXEC);
	assert_int_equal(regular_file_open("/dev/zero"), -ENOEXEC);
	assert_int_equal(regular_file_open(t->path), -ENOEXEC);
	snprintf(path, sizeof(path), "%s/none", t->path);
	assert_int_equal(regular_file_open(path), -ENOENT);
	fd = keep_fd(regular_file_open("/proc/self/exe"));
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static int open_as_mapped(pid_t pid, const char *path)
{
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	int fd = -ESRCH;

	assert_int_equal(proc_maps_read(NULL, pid, 0, &maps), 0);
	vec_each(&maps.maps, m)
		if (!strcmp(m->path, path))
			fd = process_open_map(NULL, pid, 0, m, NULL);
	proc_maps_release(&maps);
	return fd;
}

TEST_WITH(test_lease, new_folder, remove_folder)
{
	struct script_line line;
	struct elf_file *ef = NULL;
	const struct temp_folder *t = *state;
	uint64_t start;
	char path[512];
	pid_t pid;
	int fd, go;

	snprintf(path, sizeof(path), "%s/leased", t->path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "\177ELF", 4), 4);
	if (geteuid() == 0) /* a file of root's is opened without a look */
		assert_int_equal(fchown(fd, 65534, 65534), 0);
	close(fd);
	pid = lease(path, &go);
	if (!pid) {
		skip();
	}
	start = now_ns();
	assert_int_equal(regular_file_open(path), -EAGAIN);
	assert_int_equal(elf_file_open(path, &ef), -EAGAIN);
	assert_int_equal(script_line_read(path, &line), -EAGAIN);
	assert_int_equal(open_as_mapped(pid, path), -EAGAIN);
	assert_true(now_ns() - start < AT_ONCE_NS);
	end(pid, go);
	fd = regular_file_open(path); /* later it can be had */
	assert_true(fd >= 0);
	close(fd);
}

RUN_TESTS()
