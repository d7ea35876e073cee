/* SPDX-License-Identifier: MIT */
/*
 * uprobe_link.c - see uprobe_link.h. Raw bpf(2) for the uprobe_multi link, because its arguments
 * are younger than the headers of Debian 12; everything else through libbpf.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uprobe_link.h"

/* include/uapi/linux/bpf.h of 6.6 and 6.13 */
#define ATTACH_UPROBE_MULTI 48
#define ATTACH_UPROBE_SESSION 57

struct uprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t reserved;
};
_Static_assert(sizeof(struct uprobe_multi_attr) == 64, "union bpf_attr, link_create.uprobe_multi");

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

static int load_program(enum ul_how how, int counter_fd, int ret)
{
	const struct bpf_insn empty[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, ret),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	/* r1 = &map[0].value; lock *(u64 *)r1 += 1; return ret */
	const struct bpf_insn counting[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, counter_fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, ret),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd;

	if (how == UL_MULTI)
		opts.expected_attach_type = ATTACH_UPROBE_MULTI;
	else if (how == UL_SESSION)
		opts.expected_attach_type = ATTACH_UPROBE_SESSION;
	if (counter_fd >= 0)
		fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ul_count", "Dual MIT/GPL", counting,
				   sizeof(counting) / sizeof(counting[0]), &opts);
	else
		fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ul_empty", "Dual MIT/GPL", empty,
				   sizeof(empty) / sizeof(empty[0]), &opts);
	return fd < 0 ? -errno : fd;
}

static int attach_multi(enum ul_how how, const char *path, uint64_t off, pid_t pid, int prog_fd)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = prog_fd,
		.attach_type = how == UL_SESSION ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&off,
		.cnt = 1,
		.pid = pid,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/* The dynamic number of the perf event type "uprobe". */
static int uprobe_event_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -ENOENT;

	if (!f)
		return -errno;
	if (fscanf(f, "%d", &type) != 1)
		type = -EINVAL;
	fclose(f);
	return type;
}

static int attach_perf(const char *path, uint64_t off, pid_t pid, int prog_fd)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type = uprobe_event_type();
	int fd, err;

	if (type < 0)
		return type;
	attr.type = type;
	attr.config1 = (uintptr_t)path;
	attr.config2 = off;
	fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int ul_attach(enum ul_how how, const char *path, uint64_t off, pid_t pid, int counter_fd,
	      int session_ret, struct ul_link *link)
{
	int prog_fd = load_program(how, counter_fd, how == UL_SESSION ? session_ret : 0);
	int fd;

	if (prog_fd < 0)
		return prog_fd;
	if (how == UL_PERF)
		fd = attach_perf(path, off, pid, prog_fd);
	else
		fd = attach_multi(how, path, off, pid, prog_fd);
	if (fd < 0) {
		close(prog_fd);
		return fd;
	}
	link->prog_fd = prog_fd;
	link->link_fd = how == UL_PERF ? -1 : fd;
	link->perf_fd = how == UL_PERF ? fd : -1;
	return 0;
}

void ul_detach(struct ul_link *link)
{
	if (link->link_fd >= 0)
		close(link->link_fd);
	if (link->perf_fd >= 0)
		close(link->perf_fd);
	close(link->prog_fd);
}

int ul_counter_open(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ul_counter", sizeof(uint32_t),
				sizeof(uint64_t), 1, NULL);

	return fd < 0 ? -errno : fd;
}

int ul_counter_read(int counter_fd, uint64_t *ret)
{
	uint32_t key = 0;

	return bpf_map_lookup_elem(counter_fd, &key, ret) ? -errno : 0;
}

int ul_locate(const void *addr, char *path, size_t path_cap, uint64_t *ret_off)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t cap = 0;
	int err = -ENOENT;

	if (!f)
		return -errno;
	while (err == -ENOENT && getline(&line, &cap, f) > 0) {
		unsigned long start, end, off;
		char *name = strchr(line, '/');

		if (!name || sscanf(line, "%lx-%lx %*s %lx", &start, &end, &off) != 3)
			continue;
		if ((uintptr_t)addr < start || (uintptr_t)addr >= end)
			continue;
		name[strcspn(name, "\n")] = '\0';
		err = (size_t)snprintf(path, path_cap, "%s", name) < path_cap ? 0 : -ENAMETOOLONG;
		*ret_off = (uintptr_t)addr - start + off;
	}
	free(line);
	fclose(f);
	return err;
}
