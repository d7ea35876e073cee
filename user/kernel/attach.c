/* SPDX-License-Identifier: MIT */
/*
 * attach.c - see attach.h.
 *
 * libbpf 1.1 knows perf_event uprobes; multi and session links are made by bpf(2) directly. Files are named
 * /proc/self/fd/N: the kernel resolves the magic link to the very inode that was opened through the target's
 * view, whatever its path means here.
 */
#include "kernel/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/vec.h"
#include "kernel/uapi.h"

struct link {
	int fd;
	bool is_member; /* one process's event of probes that stay: nobody waits for its close */
};

struct attach_links {
	VEC(struct link) fds; /* of links, and of perf events after that of their link */
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

int attach_links_new(struct attach_links **ret)
{
	struct attach_links *links = calloc(1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	*ret = links;
	return 0;
}

/*
 * Closing
 * -------
 * Detaching a probe waits for grace periods, tens of milliseconds in which nothing is done. One grace period
 * serves everything that waits for it, so many probes (perf: two descriptors a site) are closed by several
 * threads, one for each that waits: a thread costs more than most closes. A link keeps the event it sits on, so the
 * order does not matter.
 */
#define CLOSERS_CAP 32

struct closing {
	const struct link *fds;
	size_t cnt;
	size_t next;
};

static void *close_some(void *arg)
{
	struct closing *c = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->cnt)
		close(c->fds[i].fd);
	return NULL;
}

/* All are detached when this returns. */
void attach_links_cut(struct attach_links *links, size_t cnt)
{
	struct closing c = { .fds = links->fds.data + cnt, .cnt = links->fds.cnt - cnt };
	pthread_t thread[CLOSERS_CAP];
	size_t thread_cnt = 0, waiting_cnt = 0;

	for (size_t i = 0; i < c.cnt; i++)
		waiting_cnt += !c.fds[i].is_member;
	while (thread_cnt + 1 < waiting_cnt && thread_cnt < CLOSERS_CAP &&
	       !thread_start(&thread[thread_cnt], close_some, &c))
		thread_cnt++;
	close_some(&c);
	while (thread_cnt)
		pthread_join(thread[--thread_cnt], NULL);
	links->fds.cnt = cnt;
}

int attach_links_move(struct attach_links *from, struct attach_links *to)
{
	int err = vec_reserve(&to->fds, to->fds.cnt + from->fds.cnt);

	if (err)
		return err;
	for (size_t i = 0; i < from->fds.cnt; i++)
		to->fds.data[to->fds.cnt++] = from->fds.data[i];
	from->fds.cnt = 0;
	return 0;
}

void attach_links_free(struct attach_links *links)
{
	if (!links)
		return;
	attach_links_cut(links, 0);
	vec_release(&links->fds);
	free(links);
}

static int compare_links(const void *a, const void *b)
{
	return ((const struct link *)a)->fd - ((const struct link *)b)->fd;
}

/*
 * The child of attach_links_free_later(): closes all other descriptors, then the links. The last process to
 * close a descriptor waits for the grace periods, so the parent must close first: until then it holds the other
 * end of the pipe. If another process has inherited that end, the child does not wait longer than a second.
 */
static void close_as_child(struct attach_links *links, const int pipe_fds[2])
{
	struct pollfd parent_is_done = { .fd = pipe_fds[0] };
	unsigned int next = 0;
	const struct link *link;
	sigset_t all;

	/* the child in between is not waited for */
	if (syscall(__NR_clone, 0, NULL, NULL, NULL, 0))
		_exit(0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	thread_take_precedence();
	close(pipe_fds[1]);
	poll(&parent_is_done, 1, 1000);
	qsort(links->fds.data, links->fds.cnt, sizeof(*links->fds.data), compare_links);
	vec_each(&links->fds, link) {
		if ((unsigned int)link->fd > next)
			syscall(__NR_close_range, next, link->fd - 1, 0);
		next = link->fd + 1;
	}
	syscall(__NR_close_range, next, ~0U, 0);
	vec_each(&links->fds, link)
		close(link->fd);
	_exit(0);
}

/*
 * A process and not a thread: a task that is killed, or ends, while it takes a probe out leaves it in (with a
 * fatal signal the kernel no longer reaches a text), and that must not depend on our fate. clone without an
 * exit signal, because the end of a child is news to our callers.
 */
void attach_links_free_later(struct attach_links *links)
{
	const struct link *link;
	int status, pipe_fds[2];
	pid_t pid;

	if (!links)
		return;
	if (pipe2(pipe_fds, O_CLOEXEC)) {
		attach_links_free(links);
		return;
	}
	pid = syscall(__NR_clone, 0, NULL, NULL, NULL, 0);
	if (!pid)
		close_as_child(links, pipe_fds);
	if (pid > 0 && waitpid(pid, &status, __WALL) == pid && !status) {
		vec_each(&links->fds, link)
			close(link->fd);
		links->fds.cnt = 0;
	}
	attach_links_free(links);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

size_t attach_links_cnt(const struct attach_links *links)
{
	return links->fds.cnt;
}

static int take(struct attach_links *links, struct link link)
{
	int err = vec_push(&links->fds, link);

	if (err)
		close(link.fd);
	return err;
}

int attach_links_take(struct attach_links *links, int fd)
{
	return take(links, (struct link){ .fd = fd });
}

int attach_links_take_member(struct attach_links *links, int fd)
{
	return take(links, (struct link){ .fd = fd, .is_member = true });
}

/* Sites in the form that bpf(2) wants: one array per member. */
struct site_arrays {
	uint64_t *off, *cookie, *semaphore_off;
	bool has_semaphores;
};

static int multi_link(const struct attach_request *req, const struct site_arrays *sites)
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
	attr.offsets = (uintptr_t)sites->off;
	attr.cookies = (uintptr_t)sites->cookie;
	if (sites->has_semaphores)
		attr.ref_ctr_offsets = (uintptr_t)sites->semaphore_off;
	attr.cnt = req->site_cnt;
	attr.pid = req->pid;
	fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int multi_add(struct attach_links *links, const struct attach_request *req)
{
	uint64_t *words = calloc(3 * req->site_cnt, sizeof(*words));
	struct site_arrays sites = { .off = words };
	int fd;

	if (!words)
		return -ENOMEM;
	sites.cookie = words + req->site_cnt;
	sites.semaphore_off = sites.cookie + req->site_cnt;
	for (size_t i = 0; i < req->site_cnt; i++) {
		sites.off[i] = req->sites[i].off;
		sites.cookie[i] = req->sites[i].cookie;
		sites.semaphore_off[i] = req->sites[i].semaphore_off;
		sites.has_semaphores |= sites.semaphore_off[i] != 0;
	}
	fd = multi_link(req, &sites);
	free(words);
	return fd < 0 ? fd : attach_links_take(links, fd);
}

/* Dynamic PMUs get their number at boot. */
static int perf_uprobe_type(void)
{
	FILE *f = fopen(PERF_UPROBE_TYPE_FILE, "re");
	int type;

	if (!f)
		return -errno;
	if (fscanf(f, "%d", &type) != 1)
		type = -EIO;
	fclose(f);
	return type;
}

static int perf_uprobe_open(const struct attach_request *req, const struct attach_site *site)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type = perf_uprobe_type(), fd;
	char path[64];

	if (type < 0)
		return type;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", req->file_fd);
	attr.type = type;
	/* format/retprobe: config:0, format/ref_ctr_offset: config:32-63 */
	attr.config = (req->kind == ATTACH_RETURN) | site->semaphore_off << 32;
	attr.config1 = (uintptr_t)path;
	attr.config2 = site->off;
	fd = syscall(__NR_perf_event_open, &attr, req->pid ? req->pid : -1, req->pid ? -1 : 0, -1,
		     PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int perf_add_one(struct attach_links *links, const struct attach_request *req,
			const struct attach_site *site)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = site->cookie);
	int event_fd = perf_uprobe_open(req, site), link_fd, err;

	if (event_fd < 0)
		return event_fd;
	err = attach_links_take(links, event_fd);
	if (err)
		return err;
	link_fd = bpf_link_create(req->prog_fd, event_fd, BPF_PERF_EVENT, &opts);
	if (link_fd < 0)
		return link_fd;
	err = attach_links_take(links, link_fd);
	if (err)
		return err;
	return ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static bool is_cancelled(const struct attach_request *req)
{
	struct pollfd p = { .fd = req->cancel_fd, .events = POLLIN };

	return req->cancel_fd && poll(&p, 1, 0) > 0;
}

static int perf_add(struct attach_links *links, const struct attach_request *req)
{
	int err = 0;

	for (size_t i = 0; i < req->site_cnt && !err; i++)
		err = is_cancelled(req) ? -ECANCELED : perf_add_one(links, req, &req->sites[i]);
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
		attach_links_cut(links, before);
	return err;
}
