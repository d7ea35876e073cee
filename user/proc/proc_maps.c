/* SPDX-License-Identifier: MIT */
/*
 * proc_maps.c - the mappings of a process: reads, parses and searches /proc/TID/maps, and opens the files
 * behind it.
 *
 * Promises: a line that is not a maps line makes the parse fail, it is never half understood; an opened file is
 * a regular file and, as far as can be told, the mapped one.
 *
 * Does not promise one instant: the kernel takes its lock once per read(2), so a process that maps and unmaps
 * meanwhile may show neither the old nor the new state as a whole.
 *
 * /proc/TID works for every thread, not only for the main thread. So a process whose main thread has ended can
 * still be read.
 */
#include "proc/facts.h"

#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "proc/proc_text.h"

/* MAPS_TEXT_BYTES_CAP: 2.5 million mappings of 100 bytes; the kernel's default limit is 65530 mappings. */
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#define MAPS_TEXT_BYTES_CAP ((size_t)256 << 20)

static const char deleted_suffix[] = " (deleted)";

/* Parse hexadecimal digits up to `end`; *pp moves behind it. */
static bool parse_hex(char **pp, char end, uint64_t *ret)
{
	uint64_t v = 0;
	char *p = *pp;
	int digits = 0;

	for (; digits <= 16; p++, digits++) {
		int d;

		if (*p >= '0' && *p <= '9')
			d = *p - '0';
		else if (*p >= 'a' && *p <= 'f')
			d = *p - 'a' + 10;
		else
			break;
		v = v << 4 | (unsigned int)d;
	}
	if (digits == 0 || digits > 16 || *p != end)
		return false;
	*pp = p + 1;
	*ret = v;
	return true;
}

/* Parse decimal digits; *pp moves to the first other byte. */
static bool parse_dec(char **pp, uint64_t *ret)
{
	uint64_t v = 0;
	char *p = *pp;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (p == *pp)
		return false;
	*pp = p;
	*ret = v;
	return true;
}

/* The kernel writes a newline in a path as \012 and leaves every other byte alone. */
static void unescape_newlines(char *path)
{
	char *in, *out;

	for (in = out = path; *in; out++) {
		if (!strncmp(in, "\\012", 4)) {
			*out = '\n';
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

static bool strip_deleted(char *path)
{
	size_t len = strlen(path), suffix_len = sizeof(deleted_suffix) - 1;

	if (len <= suffix_len || strcmp(path + len - suffix_len, deleted_suffix))
		return false;
	path[len - suffix_len] = '\0';
	return true;
}

/* "start-end rwxp off major:minor ino   path", without its newline. */
static bool parse_line(char *p, struct proc_map *ret)
{
	uint64_t major, minor;

	memset(ret, 0, sizeof(*ret));
	if (!parse_hex(&p, '-', &ret->start_addr) || !parse_hex(&p, ' ', &ret->end_addr) ||
	    ret->end_addr <= ret->start_addr)
		return false;
	if (strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	ret->is_read = p[0] == 'r';
	ret->is_write = p[1] == 'w';
	ret->is_exec = p[2] == 'x';
	p += 5;
	if (!parse_hex(&p, ' ', &ret->off) || !parse_hex(&p, ':', &major) ||
	    !parse_hex(&p, ' ', &minor) || !parse_dec(&p, &ret->ino))
		return false;
	if (major >= 1 << 12 || minor >= 1 << 20)
		return false;
	ret->dev = (uint32_t)(major << 20 | minor);
	if (*p && *p != ' ')
		return false;
	while (*p == ' ')
		p++;
	unescape_newlines(p);
	ret->is_deleted = strip_deleted(p);
	ret->path = p;
	return true;
}

int proc_maps_parse(char *text, struct proc_maps *ret)
{
	struct proc_maps maps = { .text = text };
	bool is_sorted = true;
	char *line, *next;
	int err;

	for (line = text; *line; line = next) {
		struct proc_map map;
		char *nl = strchr(line, '\n');

		next = nl ? nl + 1 : line + strlen(line);
		if (nl)
			*nl = '\0';
		err = -EINVAL;
		if (!parse_line(line, &map))
			goto out;
		if (maps.maps.cnt && map.start_addr < maps.maps.data[maps.maps.cnt - 1].start_addr)
			is_sorted = false;
		err = vec_push(&maps.maps, map);
		if (err)
			goto out;
	}
	if (!is_sorted)
		vec_sort_by(&maps.maps, start_addr);
	*ret = maps;
	return 0;
out:
	proc_maps_release(&maps);
	return err;
}

int proc_maps_text_here(pid_t pid, pid_t tid, char **ret)
{
	char name[32];
	size_t bytes;

	if (pid <= 0)
		return -ESRCH;
	snprintf(name, sizeof(name), "task/%d/maps", tid > 0 ? tid : pid);
	return proc_text_read_all(pid, name, MAPS_TEXT_BYTES_CAP, ret, &bytes);
}

void proc_maps_release(struct proc_maps *m)
{
	if (!m)
		return;
	vec_release(&m->maps);
	free(m->text);
	m->text = NULL;
}

const struct proc_map *proc_maps_find(const struct proc_maps *m, uint64_t addr)
{
	size_t low = vec_first_behind(&m->maps, start_addr, addr);

	/* the last mapping that starts at or below addr */
	if (low == 0 || addr >= m->maps.data[low - 1].end_addr)
		return NULL;
	return &m->maps.data[low - 1];
}

/* Does another user than root serve the file system with this device, as the thread tid sees it mounted? -errno: not
 * known */
static int is_served_by_other(dev_t dev, pid_t tid)
{
	char *text, *line, *next, device[32];
	bool is_foreign = true; /* a file system that is not found has an unknown server */
	int err = proc_text_read(tid, "mountinfo", &text);

	if (err)
		return err;
	/* proc_pid_mountinfo(5): "36 35 98:0 /root /mount options... - type source super-options" */
	snprintf(device, sizeof(device), " %u:%u ", major(dev), minor(dev));
	for (line = text; line && *line; line = next) {
		const char *owner;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!strstr(line, device))
			continue;
		owner = strstr(line, "user_id=");
		/* virtiofs: the machine's host serves it */
		is_foreign = owner ? strtoul(owner + strlen("user_id="), NULL, 10) != 0 :
				     !strstr(line, " - virtiofs ");
		break;
	}
	free(text);
	return is_foreign;
}

int file_facts_read(int fd, pid_t tid, struct file_facts *ret)
{
	struct statfs fs;
	struct stat st;
	int foreign = 0;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	if (fs.f_type == FUSE_SUPER_MAGIC)
		foreign = is_served_by_other(st.st_dev, tid);
	if (foreign < 0)
		return foreign;
	*ret = (struct file_facts){
		.bytes = (uint64_t)st.st_size,
		.disk_bytes = (uint64_t)st.st_blocks * 512,
		.changed_s = st.st_ctim.tv_sec,
		.changed_ns = st.st_ctim.tv_nsec,
		.is_foreign = foreign,
	};
	return 0;
}

/* How a file may be opened, and what was found. */
struct opening {
	pid_t tid; /* the thread that sees the file */
	bool refuses_foreign;
	struct file_facts facts; /* of the opened file */
};

/*
 * Check that the file of an O_PATH descriptor can be opened, and return another such descriptor. An open file of FUSE
 * is not passed on: each close of it waits for its server, in whatever process has it then.
 */
static int check_opening(int path_fd, struct opening *o)
{
	int err = file_facts_read(path_fd, o->tid, &o->facts), fd;

	if (!err && o->refuses_foreign && o->facts.is_foreign)
		err = -EREMOTE;
	if (err)
		return err;
	fd = regular_file_reopen(path_fd);
	if (fd < 0)
		return fd;
	close(fd);
	fd = fcntl(path_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int open_map_files(struct opening *o, const struct proc_map *map)
{
	char path[96];
	int path_fd, fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", o->tid,
		 (unsigned long long)map->start_addr, (unsigned long long)map->end_addr);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	fd = check_opening(path_fd, o);
	close(path_fd);
	return fd;
}

/*
 * Is the file at path_fd the mapped one? st_dev does not help: on btrfs and overlayfs it is made up per
 * subvolume or mount, while maps shows the superblock's. The inode helps, except on overlayfs, where (until
 * 6.8) maps shows the inode of the layer below: there the path must be enough, and callers that know a build id
 * compare it.
 */
static bool is_mapped_file(int path_fd, const struct proc_map *map)
{
	struct statfs fs;
	struct stat st;

	if (fstat(path_fd, &st))
		return false;
	if (st.st_ino == map->ino)
		return true;
	return !fstatfs(path_fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* RESOLVE_IN_ROOT: an absolute symlink of the target must not lead into our own root. */
static int open_in_root(struct opening *o, const struct proc_map *map)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int root_fd, path_fd, fd;
	char root[64];

	snprintf(root, sizeof(root), "/proc/%d/root", o->tid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	path_fd = (int)syscall(SYS_openat2, root_fd, map->path, &how, sizeof(how));
	fd = path_fd < 0 ? -errno : 0;
	close(root_fd);
	if (path_fd < 0)
		return fd;
	fd = is_mapped_file(path_fd, map) ? check_opening(path_fd, o) : -ESTALE;
	close(path_fd);
	return fd;
}

static int open_map(struct opening *o, const struct proc_map *map)
{
	int fd = open_map_files(o, map);

	/* ENOEXEC: found, but not a regular file. EAGAIN: it is leased. EPERM: needs CAP_SYS_ADMIN or
	 * CAP_CHECKPOINT_RESTORE. ENOENT: the mapping has been split or merged since. */
	if (fd >= 0 || fd == -ENOEXEC || fd == -EAGAIN || fd == -EREMOTE)
		return fd;
	if (map->is_deleted)
		return -ESTALE;
	return open_in_root(o, map);
}

int process_open_map_here(pid_t pid, pid_t tid, const struct proc_map *map, bool refuses_foreign,
			  struct file_facts *ret)
{
	struct opening o = { .tid = tid > 0 ? tid : pid, .refuses_foreign = refuses_foreign };
	int fd;

	if (map->path[0] != '/' || map->ino == 0)
		return -ENOENT;
	fd = open_map(&o, map);
	if (fd >= 0 && ret)
		*ret = o.facts;
	return fd;
}

static int read_own_maps(struct proc_maps *ret)
{
	char *text;
	int err = proc_maps_text_here(getpid(), 0, &text);

	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): with 0 it was set */
	return err ? err : proc_maps_parse(text, ret);
}

int process_mapped_inode(int fd, uint32_t *ret_dev, uint64_t *ret_ino)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	const struct proc_map *map;
	struct proc_maps maps = { 0 };
	int err;

	if (page == MAP_FAILED)
		return -errno;
	err = read_own_maps(&maps);
	if (err)
		goto out;
	map = proc_maps_find(&maps, (uintptr_t)page);
	if (map) {
		*ret_dev = map->dev;
		*ret_ino = map->ino;
	} else {
		err = -ENOENT;
	}
	proc_maps_release(&maps);
out:
	munmap(page, 1);
	return err;
}
