/* SPDX-License-Identifier: MIT */
/* jit_map.c - reads the map of perf: "START BYTES name", in hexadecimal, one line for each piece of code. */
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/units.h"
#include "proc/jit_entry.h"
#include "proc/reader_priv.h"

/* *pp moves behind the blanks after the number. */
static bool parse_hex(const char **pp, const char *end, uint64_t *ret)
{
	const char *p = *pp;
	uint64_t v = 0;
	int digits = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; p < end && digits <= 16 && hex_digit(*p) >= 0; p++, digits++)
		v = v << 4 | (uint64_t)hex_digit(*p);
	if (!digits || digits > 16 || p == end || *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	*pp = p;
	*ret = v;
	return true;
}

static bool parse_line(const char *line, size_t len, struct jit_entry *ret)
{
	const char *p = line, *end = line + len;
	uint64_t bytes;

	if (end > line && end[-1] == '\r')
		end--;
	if (!parse_hex(&p, end, &ret->start_addr) || !parse_hex(&p, end, &bytes) || !bytes ||
	    p == end)
		return false;
	if (__builtin_add_overflow(ret->start_addr, bytes, &ret->end_addr))
		return false;
	ret->name = p;
	ret->name_len = (size_t)(end - p);
	if (ret->name_len > JIT_NAME_BYTES_CAP)
		ret->name_len = JIT_NAME_BYTES_CAP;
	return true;
}

/* Take the whole lines in buf, which was read from *off. Of a line longer than buf, the rest is left out. */
static int take_lines(const char *buf, size_t len, uint64_t *off, bool *in_long_line,
		      jit_entry_fn fn, void *ctx)
{
	size_t pos = 0;
	int err = 0;

	while (pos < len && !err) {
		const char *nl = memchr(buf + pos, '\n', len - pos);
		struct jit_entry e = { .at = *off + pos };

		if (!nl)
			break;
		if (!*in_long_line && parse_line(buf + pos, (size_t)(nl - buf) - pos, &e))
			err = fn(ctx, &e);
		*in_long_line = false;
		pos = (size_t)(nl - buf) + 1;
	}
	if (!pos && len == JIT_BUF_BYTES) {
		*in_long_line = true;
		pos = len;
	}
	*off += pos;
	return err;
}

/* Did an earlier call end in the middle of a line that was too long? */
static bool is_in_line(int fd, uint64_t off)
{
	char c;

	return off && pread(fd, &c, 1, (off_t)off - 1) == 1 && c != '\n';
}

int jit_map_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx)
{
	uint64_t begin = *off;
	bool in_long_line = is_in_line(fd, *off);
	char *buf = malloc(JIT_BUF_BYTES);
	int err = buf ? 0 : -ENOMEM;

	while (!err && *off - begin < bytes_cap) {
		uint64_t before = *off;
		ssize_t n = pread(fd, buf, JIT_BUF_BYTES, (off_t)*off);

		if (n < 0 && errno != EINTR)
			err = -errno;
		if (n == 0)
			break;
		if (n > 0)
			err = take_lines(buf, (size_t)n, off, &in_long_line, fn, ctx);
		if (n > 0 && *off == before) /* the last line is being written */
			break;
	}
	free(buf);
	return err;
}

/* Start time of the process, on the wall clock. */
static uint64_t start_epoch_ns(const struct process_info *info)
{
	uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

	return boot_ns + info->start_time_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The map of an earlier process with the same pid is older. One second of tolerance, because clocks may be set. */
static int check_map(int path_fd, const struct process_info *info)
{
	struct stat st;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != info->uid))
		return -EPERM;
	if ((uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec + NS_PER_S <
	    start_epoch_ns(info))
		return -ESTALE;
	return 0;
}

static int open_by_reader(struct reader *reader, const char *root, const struct process_info *info)
{
	struct reader_call c = { .head = { .op = OPEN_JIT_MAP,
					   .text_bytes = (uint32_t)strlen(root) + 1,
					   .jit = { .start_time_ticks = info->start_time_ticks,
						    .uid = info->uid,
						    .ns_pid = info->ns_pid } },
				 .text = root,
				 .fd = -1 };
	int err = reader_call(reader, &c, info->tgid);

	if (err)
		return err;
	return c.ret_fd >= 0 ? c.ret_fd : -EPROTO;
}

int jit_map_open(struct reader *reader, const char *root, const struct process_info *info)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT };
	struct file_facts facts;
	char name[64], self[64];
	int root_fd, path_fd, fd;

	if (reader_is_ours(reader))
		return open_by_reader(reader, root, info);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "tmp/perf-%d.map", info->ns_pid);
	path_fd = (int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how));
	fd = path_fd < 0 ? -errno : check_map(path_fd, info);
	close(root_fd);
	if (path_fd < 0)
		return fd;
	/* The file is read again and again, by a process that it must not delay. */
	if (!fd && (file_facts_read(path_fd, 0, &facts) || facts.is_foreign))
		fd = -EPERM;
	if (!fd) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		/* do not wait until a lease of the process is broken */
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(path_fd);
	return fd;
}
