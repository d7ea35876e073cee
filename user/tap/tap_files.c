/* SPDX-License-Identifier: MIT */
/*
 * tap_files.c - memory files of a process, see tap_priv.h.
 *
 * A descriptor is a number that the process gave, and another process may share its table of descriptors
 * and change what is behind the number. So what is opened is proved first (O_PATH opens nothing): a memory file
 * of the kernel's own file system for them, which no path leads to, with the random name that was chosen for this
 * visit, and empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/facts.h"
#include "proc/proc_text.h"
#include "tap/tap_priv.h"

int tap_find_device(struct tap_work *w)
{
	int fd = memfd_create(TAP_NAME, MFD_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else
		w->shm_dev = st.st_dev;
	close(fd);
	return err;
}

/* Its name, by the link in our own table: the target of a link in another's is not looked at. */
static int read_name(int fd, char *buf, size_t buf_bytes)
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, buf, buf_bytes - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* The name first: asking a file of another kind for its state may wait for ever. */
static bool is_memory_file(const struct tap_work *w, int fd, const char *name, off_t bytes)
{
	char link[128], wanted[128];
	struct stat st;

	snprintf(wanted, sizeof(wanted), "/memfd:%s", name);
	return !read_name(fd, link, sizeof(link)) && !strncmp(link, wanted, strlen(wanted)) &&
	       !fstat(fd, &st) && st.st_dev == w->shm_dev && S_ISREG(st.st_mode) && !st.st_nlink &&
	       st.st_size == bytes;
}

/* Not waiting: the process may have a lease on its file (F_SETLEASE). */
static int reopen(int fd, int flags)
{
	char path[48];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, flags | O_NONBLOCK | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

int tap_open_proved(const struct tap_work *w, int seen, int flags, const char *name, off_t bytes)
{
	int fd;

	if (seen < 0)
		return seen;
	fd = is_memory_file(w, seen, name, bytes) ? reopen(seen, flags) : -EPERM;
	close(seen);
	return fd;
}

static int open_map_file(const struct tap_work *w, uint64_t start_addr, uint64_t end_addr)
{
	return proc_open(w->live_tid, O_PATH, "map_files/%llx-%llx", (unsigned long long)start_addr,
			 (unsigned long long)end_addr);
}

int tap_open_mapped(const struct tap_work *w, uint64_t addr, int flags)
{
	return tap_open_proved(w, open_map_file(w, addr, addr + TAP_CODE_BYTES), flags, TAP_NAME,
			       TAP_FILE_BYTES);
}

/* The accessor may wait for the file system's answer, without a lock of the process. */
static bool map_may_wait(const struct tap_work *w, const struct proc_map *m)
{
	struct statfs fs;
	bool may = true;
	int fd;

	if (!m->ino)
		return false;
	fd = open_map_file(w, m->start_addr, m->end_addr);
	if (fd < 0)
		return true;
	may = fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC;
	close(fd);
	return may;
}

bool tap_page_may_block(const struct tap_work *w, uint64_t addr)
{
	struct proc_maps maps = { 0 };
	const struct proc_map *m = NULL;
	char *text = NULL;
	bool may = true;

	if (proc_maps_text_here(w->pid, w->live_tid, &text))
		return true;
	if (!proc_maps_parse(text, &maps)) {
		m = proc_maps_find(&maps, addr);
		may = !m || map_may_wait(w, m);
		proc_maps_release(&maps);
	}
	return may;
}
