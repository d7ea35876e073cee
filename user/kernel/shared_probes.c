/* SPDX-License-Identifier: MIT */
/*
 * shared_probes.c - see shared_probes.h.
 *
 * A program that is set on one perf event of a tracefs uprobe runs for all perf events of that definition: it
 * belongs to the definition, and setting it on a second event is an error. It goes when the event goes that it
 * was set on. So it is set on an event of none of the recorded processes: the event of our own child, which has
 * ended since. A list entry without an address space remains; no hit matches it, and it costs one comparison.
 *
 * Adding a process means, for each of its events: walking all mappings of the file, in all processes, and
 * looking at the text of all added processes. Not so for an event that is to be enabled by an exec: the kernel
 * puts it into the list and leaves the breakpoints to another event (trace_uprobe.c,
 * trace_uprobe_filter_add()). For the return event of a site, that other event is the site's entry event; so
 * adding the return event costs next to nothing.
 *
 * The events stay disabled. That keeps them out of the context switches of their process. Programs run all the
 * same: they belong to the definition and run before the kernel looks whether an event is enabled.
 */
#include "kernel/shared_probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "kernel/attach.h"
#include "kernel/uprobe_events.h"

#define UNDEFINE_TRIES 50
#define UNDEFINE_WAIT_NS 10000000

struct site {
	struct uprobe_event event;
	uint64_t off;
	bool is_return;
	bool has_breakpoint; /* set by another event of the same process */
};

struct shared_probes {
	struct uprobe_events *ue;
	VEC(struct site) sites;
	struct attach_links *programs;
};

static int open_event(const struct uprobe_event *event, pid_t tid, bool has_breakpoint)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = event->id,
		.disabled = 1,
		.enable_on_exec = has_breakpoint,
	};
	int fd = syscall(__NR_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Set a program on an event. The link keeps the event that it is on. */
static int set_program(struct shared_probes *sp, const struct uprobe_event *event, pid_t anchor,
		       int prog_fd, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int event_fd = open_event(event, anchor, false), link_fd;

	if (event_fd < 0)
		return event_fd;
	link_fd = bpf_link_create(prog_fd, event_fd, BPF_PERF_EVENT, &opts);
	close(event_fd);
	return link_fd < 0 ? link_fd : attach_links_take(sp->programs, link_fd);
}

static int add_site(struct shared_probes *sp, const struct attach_request *req,
		    const struct attach_site *site, pid_t anchor)
{
	const struct uprobe_site where = {
		.file_fd = req->file_fd,
		.off = site->off,
		.semaphore_off = site->semaphore_off,
		.is_return = req->kind == ATTACH_RETURN,
	};
	struct site new = { .off = site->off, .is_return = where.is_return };
	int err = uprobe_events_define(sp->ue, &where, &new.event);

	if (err)
		return err;
	err = vec_push(&sp->sites, new);
	if (err) {
		uprobe_events_undefine(sp->ue, &new.event);
		return err;
	}
	return set_program(sp, &new.event, anchor, req->prog_fd, site->cookie);
}

static bool has_entry_event(const struct shared_probes *sp, uint64_t off)
{
	const struct site *site;

	vec_each(&sp->sites, site)
		if (site->off == off && !site->is_return)
			return true;
	return false;
}

/* A process of its own that waits for our end, or for a message. It must not be killed, because it has a copy
 * of every link until it has closed them (kernel/attach.c). clone without an exit signal, because the end of a
 * child is news to our callers. */
struct anchor {
	pid_t pid;
	int fd; /* closing it ends the process */
};

static void __attribute__((noreturn)) run_anchor(int fd)
{
	char byte;

	if (fd)
		syscall(__NR_dup3, fd, 0, O_CLOEXEC);
	syscall(__NR_close_range, 1, ~0U, 0);
	while (syscall(__NR_read, 0, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int start_anchor(struct anchor *ret)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	ret->pid = syscall(__NR_clone, 0, NULL, NULL, NULL, 0);
	if (!ret->pid)
		run_anchor(ends[0]);
	if (ret->pid < 0)
		err = -errno;
	close(ends[0]);
	ret->fd = ends[1];
	if (err)
		close(ends[1]);
	return err;
}

static void end_anchor(const struct anchor *a)
{
	close(a->fd);
	while (waitpid(a->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

int shared_probes_new(struct uprobe_events *ue, const struct attach_request *reqs, size_t req_cnt,
		      struct shared_probes **ret)
{
	struct shared_probes *sp = calloc(1, sizeof(*sp));
	struct site *site;
	struct anchor anchor = { -1, -1 };
	int err;

	if (!sp)
		return -ENOMEM;
	sp->ue = ue;
	err = attach_links_new(&sp->programs);
	if (err)
		goto out;
	err = start_anchor(&anchor);
	if (err)
		goto out;
	for (size_t i = 0; i < req_cnt && !err; i++)
		for (size_t k = 0; k < reqs[i].site_cnt && !err; k++)
			err = add_site(sp, &reqs[i], &reqs[i].sites[k], anchor.pid);
	end_anchor(&anchor);
	vec_each(&sp->sites, site)
		site->has_breakpoint = site->is_return && has_entry_event(sp, site->off);
out:
	if (err)
		shared_probes_free(sp);
	else
		*ret = sp;
	return err;
}

int shared_probes_add(const struct shared_probes *sp, pid_t tid, struct attach_links *links)
{
	size_t before = attach_links_cnt(links);
	const struct site *site;
	int err = 0;

	vec_each(&sp->sites, site) {
		int fd = open_event(&site->event, tid, site->has_breakpoint);

		err = fd < 0 ? fd : attach_links_take(links, fd);
		if (err)
			break;
	}
	if (err)
		attach_links_cut(links, before);
	return err;
}

/* An event may end later than its close: wait a little, and leave the definition to the next start when that
 * takes too long. Nothing is attached to it then. */
static void undefine(struct shared_probes *sp, const struct uprobe_event *event, int *tries_left)
{
	const struct timespec wait = { .tv_nsec = UNDEFINE_WAIT_NS };

	while (uprobe_events_undefine(sp->ue, event) == -EBUSY && (*tries_left)-- > 0)
		nanosleep(&wait, NULL);
}

void shared_probes_free(struct shared_probes *sp)
{
	const struct site *site;
	int tries_left = UNDEFINE_TRIES;

	if (!sp)
		return;
	attach_links_free(sp->programs);
	vec_each(&sp->sites, site)
		undefine(sp, &site->event, &tries_left);
	vec_release(&sp->sites);
	free(sp);
}
