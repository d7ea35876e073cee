/* SPDX-License-Identifier: MIT */
/*
 * uprobe_events.c - see uprobe_events.h.
 *
 * The file uprobe_events takes one command for each write: "p:GROUP/NAME PATH:OFFSET" defines an entry, "r:..."
 * a return, "-:GROUP/NAME" removes. It must never be opened with O_TRUNC, which would remove the definitions of
 * all programs. The kernel resolves PATH at the write, so a file is named by its descriptor, /proc/self/fd/N:
 * the meaning of its path here does not matter.
 */
#include "kernel/uprobe_events.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/vec.h"
#include "kernel/attach.h"
#include "kernel/privileges.h"
#include "proc/process.h"

#define GROUP_PREFIX "heaptap_"
#define LIST "uprobe_events"

struct uprobe_events {
	int dir_fd; /* of tracefs */
	struct uprobe_owner own;
	char group[UPROBE_EVENT_NAME_BYTES];
	uint64_t next_id;
	uint64_t defined_cnt;
};

static int identify_own(struct uprobe_owner *ret)
{
	struct process_info info;
	struct stat ns;
	int err = process_glance(NULL, getpid(), &info);

	if (err)
		return err;
	if (stat("/proc/self/ns/pid", &ns))
		return -errno;
	*ret = (struct uprobe_owner){ getpid(), info.start_time_ticks, ns.st_ino };
	return 0;
}

/* Checked with the effective capabilities, which plain access() would leave out. */
static bool has_list(int dir_fd)
{
	return !faccessat(dir_fd, LIST, W_OK, AT_EACCESS);
}

/* Mount tracefs outside of every mount table. */
static int mount_privately(void)
{
	int fs_fd = fsopen("tracefs", FSOPEN_CLOEXEC), dir_fd;

	if (fs_fd < 0)
		return -errno;
	if (fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		dir_fd = -errno;
	else if ((dir_fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, 0)) < 0)
		dir_fd = -errno;
	close(fs_fd);
	return dir_fd;
}

static int open_tracefs(struct err *why)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	const char *forbidden = NULL;
	int dir_fd, err = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		dir_fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd >= 0 && has_list(dir_fd))
			return dir_fd;
		if (dir_fd >= 0 && errno != ENOENT && !forbidden) {
			forbidden = places[i];
			err = -errno;
		}
		if (dir_fd >= 0)
			close(dir_fd);
	}
	dir_fd = mount_privately();
	if (dir_fd < 0 && forbidden)
		return err_set_os(why, err, "cannot write to %s/" LIST, forbidden);
	if (dir_fd < 0)
		return err_set_os(why, dir_fd, "tracefs is not mounted and cannot be");
	if (has_list(dir_fd))
		return dir_fd;
	close(dir_fd);
	return err_set(why, -ENOTSUP,
		       "tracefs has no " LIST " that can be written: needs CONFIG_UPROBE_EVENTS");
}

/* Can a perf event be opened? 0, or the error of perf_event_open(). */
static int try_perf_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Definitions do nothing without perf events. */
static int open_usable(struct err *why)
{
	int err = try_perf_event();

	if (!err)
		return open_tracefs(why);
	return err_set(why, err, "perf events cannot be opened: %s%s", strerror(-err),
		       privileges_perf_advice(err));
}

bool uprobe_events_are_there(void)
{
	int dir_fd = open_usable(NULL);

	if (dir_fd >= 0)
		close(dir_fd);
	return dir_fd >= 0;
}

static int command(const struct uprobe_events *ue, const char *text)
{
	size_t bytes = strlen(text);
	int fd = openat(ue->dir_fd, LIST, O_WRONLY | O_APPEND | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, bytes) != (ssize_t)bytes)
		err = -errno;
	close(fd);
	return err;
}

/* Read the digits at *text, which moves on behind them. */
static bool take_number(const char **text, uint64_t *ret)
{
	uint64_t n = 0;
	const char *begin = *text;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		if (n > UINT64_MAX / 10 - 1)
			return false;
		n = n * 10 + (uint64_t)(**text - '0');
	}
	*ret = n;
	return *text != begin;
}

int uprobe_event_owner(const char *line, struct uprobe_owner *ret, const char **ret_name,
		       size_t *ret_name_len)
{
	const char *group = strchr(line, ':'), *c;
	uint64_t pid;

	if (!group || strncmp(++group, GROUP_PREFIX, strlen(GROUP_PREFIX)))
		return -ENOENT;
	c = group + strlen(GROUP_PREFIX);
	if (!take_number(&c, &pid) || !pid || pid > INT32_MAX || *c++ != '_' ||
	    !take_number(&c, &ret->start_time_ticks) || *c++ != '_' ||
	    !take_number(&c, &ret->pid_namespace) || *c != '/')
		return -ENOENT;
	ret->pid = (pid_t)pid;
	*ret_name = group;
	*ret_name_len = strcspn(group, " \t\n");
	return 0;
}

/* An owner in another pid namespace cannot be checked: it is taken to be alive. A zombie's parent may never
 * collect it; a guardian's main thread is the last of its threads to end. */
static bool is_of_dead(const struct uprobe_events *ue, const struct uprobe_owner *owner)
{
	struct process_info info;
	int err;

	if (owner->pid_namespace != ue->own.pid_namespace)
		return false;
	err = process_glance(NULL, owner->pid, &info);
	return err ? err == -ESRCH :
		     info.is_zombie || info.start_time_ticks != owner->start_time_ticks;
}

static int undefine(const struct uprobe_events *ue, const char *name, size_t name_len)
{
	char text[2 * UPROBE_EVENT_NAME_BYTES + 8];

	snprintf(text, sizeof(text), "-:%.*s\n", (int)name_len, name);
	return command(ue, text);
}

static size_t remove_dead(const struct uprobe_events *ue)
{
	int fd = openat(ue->dir_fd, LIST, O_RDONLY | O_CLOEXEC);
	FILE *list = fd < 0 ? NULL : fdopen(fd, "r");
	struct uprobe_owner owner;
	size_t cap = 0, cnt = 0, name_len;
	const char *name;
	char *line = NULL;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	/* The list may be read while it changes: the kernel gives it out from a position. Lines that are
	 * skipped for that reason are met at the next start. */
	while (getline(&line, &cap, list) > 0) {
		if (uprobe_event_owner(line, &owner, &name, &name_len) || !is_of_dead(ue, &owner))
			continue;
		cnt += !undefine(ue, name, name_len);
	}
	free(line);
	fclose(list);
	return cnt;
}

int uprobe_events_open(struct uprobe_events **ret, size_t *ret_removed_cnt, struct err *why)
{
	struct uprobe_events *ue = calloc(1, sizeof(*ue));
	size_t removed_cnt;
	int err;

	if (!ue)
		return -ENOMEM;
	err = identify_own(&ue->own);
	if (err) {
		err_set_os(why, err, "cannot read /proc/self");
		free(ue);
		return err;
	}
	ue->dir_fd = open_usable(why);
	if (ue->dir_fd < 0) {
		err = ue->dir_fd;
		free(ue);
		return err;
	}
	snprintf(ue->group, sizeof(ue->group), GROUP_PREFIX "%d_%" PRIu64 "_%" PRIu64, ue->own.pid,
		 ue->own.start_time_ticks, ue->own.pid_namespace);
	removed_cnt = remove_dead(ue);
	if (ret_removed_cnt)
		*ret_removed_cnt = removed_cnt;
	*ret = ue;
	return 0;
}

/* Remove definitions whose undefining failed because their events had not ended yet: by their group. */
static void remove_own(const struct uprobe_events *ue)
{
	for (uint64_t i = 0; i < ue->next_id; i++) {
		char name[2 * UPROBE_EVENT_NAME_BYTES];

		snprintf(name, sizeof(name), "%s/e%" PRIu64, ue->group, i);
		undefine(ue, name, strlen(name));
	}
}

void uprobe_events_close(struct uprobe_events *ue)
{
	if (!ue)
		return;
	if (ue->defined_cnt)
		remove_own(ue);
	close(ue->dir_fd);
	free(ue);
}

static int read_id(const struct uprobe_events *ue, const char *name, uint64_t *ret)
{
	char path[2 * UPROBE_EVENT_NAME_BYTES + 16], text[32];
	ssize_t n;
	int fd, err = 0;

	snprintf(path, sizeof(path), "events/%s/%s/id", ue->group, name);
	fd = openat(ue->dir_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0) {
		err = n < 0 ? -errno : -EIO;
	} else {
		text[n] = '\0';
		*ret = strtoull(text, NULL, 10);
	}
	close(fd);
	return err;
}

/* -EBUSY: something is attached to it. */
static int undefine_event(struct uprobe_events *ue, const struct uprobe_event *event)
{
	char name[2 * UPROBE_EVENT_NAME_BYTES];
	int err;

	snprintf(name, sizeof(name), "%s/%s", ue->group, event->name);
	err = undefine(ue, name, strlen(name));
	if (!err)
		ue->defined_cnt--;
	return err;
}

static int define_event(struct uprobe_events *ue, const struct uprobe_site *site,
			struct uprobe_event *ret)
{
	char text[256], semaphore[32] = "";
	struct uprobe_event event = { 0 };
	int err;

	if (site->semaphore_off)
		snprintf(semaphore, sizeof(semaphore), "(0x%" PRIx64 ")", site->semaphore_off);
	snprintf(event.name, sizeof(event.name), "e%" PRIu64, ue->next_id);
	snprintf(text, sizeof(text), "%c:%s/%s /proc/self/fd/%d:0x%" PRIx64 "%s\n",
		 site->is_return ? 'r' : 'p', ue->group, event.name, site->file_fd, site->off,
		 semaphore);
	err = command(ue, text);
	if (err)
		return err;
	ue->next_id++;
	ue->defined_cnt++;
	err = read_id(ue, event.name, &event.id);
	if (err)
		undefine_event(ue, &event);
	else
		*ret = event;
	return err;
}

/*
 * Probes that processes share.
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
	int err = define_event(sp->ue, &where, &new.event);

	if (err)
		return err;
	err = vec_push(&sp->sites, new);
	if (err) {
		undefine_event(sp->ue, &new.event);
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

		err = fd < 0 ? fd : attach_links_take_member(links, fd);
		if (err)
			break;
	}
	if (err)
		attach_links_cut(links, before);
	return err;
}

/* An event may end later than its close: wait a little, and leave the definition to the next start when that
 * takes too long. Nothing is attached to it then. */
static void undefine_patiently(struct shared_probes *sp, const struct uprobe_event *event,
			       int *tries_left)
{
	const struct timespec wait = { .tv_nsec = UNDEFINE_WAIT_NS };

	while (undefine_event(sp->ue, event) == -EBUSY && (*tries_left)-- > 0)
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
		undefine_patiently(sp, &site->event, &tries_left);
	vec_release(&sp->sites);
	free(sp);
}
