/* SPDX-License-Identifier: MIT */
/*
 * attach.c - see attach.h.
 *
 * libbpf 1.1 knows perf_event uprobes; the multi and session links are made by bpf(2) directly.
 * Files are named /proc/self/fd/N: the kernel resolves the magic link to the very inode that was
 * opened through the target's view, whatever its path means here.
 */
#include "kernel/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "kernel/features.h"
#include "kernel/uapi.h"

struct attach_links {
	VEC(int) fds; /* link fds, and perf event fds after their link's */
};

static const char *const mode_names[] = {
	[ATTACH_AUTO] = "auto",
	[ATTACH_SESSION] = "session",
	[ATTACH_MULTI] = "multi",
	[ATTACH_PERF] = "perf",
};

const char *attach_mode_name(enum attach_mode mode)
{
	return mode_names[mode];
}

int attach_mode_parse(const char *name, enum attach_mode *ret)
{
	for (size_t i = 0; i < sizeof(mode_names) / sizeof(*mode_names); i++) {
		if (!strcmp(name, mode_names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

int attach_mode_choose(const struct kernel_features *f, enum attach_mode wanted,
		       enum attach_mode *ret)
{
	const bool has[] = {
		[ATTACH_SESSION] = f->uprobe_session,
		[ATTACH_MULTI] = f->uprobe_multi,
		[ATTACH_PERF] = f->perf_uprobe,
	};

	if (wanted != ATTACH_AUTO) {
		if (!has[wanted])
			return -ENOTSUP;
		*ret = wanted;
		return 0;
	}
	for (enum attach_mode m = ATTACH_SESSION; m <= ATTACH_PERF; m++) {
		if (has[m]) {
			*ret = m;
			return 0;
		}
	}
	return -ENOTSUP;
}

int attach_links_new(struct attach_links **ret)
{
	struct attach_links *links = calloc(1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	*ret = links;
	return 0;
}

/* Newest first, so that a link goes before the event it sits on. */
static void close_down_to(struct attach_links *links, size_t cnt)
{
	while (links->fds.cnt > cnt)
		close(links->fds.data[--links->fds.cnt]);
}

void attach_links_free(struct attach_links *links)
{
	if (!links)
		return;
	close_down_to(links, 0);
	vec_release(&links->fds);
	free(links);
}

size_t attach_links_cnt(const struct attach_links *links)
{
	return links->fds.cnt;
}

static int add_fd(struct attach_links *links, int fd)
{
	int err = vec_push(&links->fds, fd);

	if (err)
		close(fd);
	return err;
}

static int multi_link(const struct attach_request *req, const uint64_t *offs,
		      const uint64_t *cookies)
{
	struct uapi_link_create_uprobe_multi attr = { 0 };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", req->file_fd);
	attr.prog_fd = req->prog_fd;
	attr.attach_type = req->kind == ATTACH_ENTRY_DECIDES ? UAPI_TRACE_UPROBE_SESSION :
							       UAPI_TRACE_UPROBE_MULTI;
	if (req->kind == ATTACH_RETURN)
		attr.multi_flags = UAPI_F_UPROBE_MULTI_RETURN;
	attr.path = (uintptr_t)path;
	attr.offsets = (uintptr_t)offs;
	attr.cookies = (uintptr_t)cookies;
	attr.cnt = req->site_cnt;
	attr.pid = req->pid;
	fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int multi_add(struct attach_links *links, const struct attach_request *req)
{
	uint64_t *offs = calloc(req->site_cnt, sizeof(*offs));
	uint64_t *cookies = calloc(req->site_cnt, sizeof(*cookies));
	int fd = -ENOMEM;

	if (offs && cookies) {
		for (size_t i = 0; i < req->site_cnt; i++) {
			offs[i] = req->sites[i].off;
			cookies[i] = req->sites[i].cookie;
		}
		fd = multi_link(req, offs, cookies);
	}
	free(offs);
	free(cookies);
	return fd < 0 ? fd : add_fd(links, fd);
}

/* Dynamic PMUs get their number at boot. */
static int perf_uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type;

	if (!f)
		return -errno;
	if (fscanf(f, "%d", &type) != 1)
		type = -EIO;
	fclose(f);
	return type;
}

static int perf_uprobe_open(const struct attach_request *req, uint64_t off)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type = perf_uprobe_type(), fd;
	char path[64];

	if (type < 0)
		return type;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", req->file_fd);
	attr.type = type;
	attr.config = req->kind == ATTACH_RETURN; /* format/retprobe: config:0 */
	attr.config1 = (uintptr_t)path;
	attr.config2 = off;
	fd = syscall(__NR_perf_event_open, &attr, req->pid ? req->pid : -1, req->pid ? -1 : 0, -1,
		     PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int perf_add_one(struct attach_links *links, const struct attach_request *req,
			const struct attach_site *site)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = site->cookie);
	int event_fd = perf_uprobe_open(req, site->off), link_fd, err;

	if (event_fd < 0)
		return event_fd;
	err = add_fd(links, event_fd);
	if (err)
		return err;
	link_fd = bpf_link_create(req->prog_fd, event_fd, BPF_PERF_EVENT, &opts);
	if (link_fd < 0)
		return link_fd;
	err = add_fd(links, link_fd);
	if (err)
		return err;
	return ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int perf_add(struct attach_links *links, const struct attach_request *req)
{
	int err = 0;

	for (size_t i = 0; i < req->site_cnt && !err; i++)
		err = perf_add_one(links, req, &req->sites[i]);
	return err;
}

int attach_add(struct attach_links *links, const struct attach_request *req)
{
	size_t before = links->fds.cnt;
	int err;

	if (!req->site_cnt)
		return 0;
	err = req->mode == ATTACH_PERF ? perf_add(links, req) : multi_add(links, req);
	if (err)
		close_down_to(links, before);
	return err;
}

int attach_clean_children(const struct attach_request *req)
{
	struct attach_links *links = NULL;
	int err = attach_links_new(&links);

	if (!err)
		err = attach_add(links, req);
	attach_links_free(links);
	return err;
}
