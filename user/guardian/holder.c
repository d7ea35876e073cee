/* SPDX-License-Identifier: MIT */
/*
 * holder.c - see guardian_priv.h.
 *
 * One loop: handles main's requests and the closer's results. It never waits for main: results that main does
 * not take stay in the closer. Main is gone when the socket is closed or when its process has ended, whichever
 * comes first (another child of main may still have a copy of main's end).
 *
 * It opens only the definitions in tracefs, /proc/self/fd/N and main's stat; it parses nothing of a target, and never
 * touches its memory: a visitor does (tap/visit.h). When main is stopped, nobody sees to the cost of probes: then it
 * takes all links and taps out, and tells main, who reads it when it goes on.
 */
#include "guardian/guardian_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/fd.h"
#include "base/thread.h"
#include "base/vec.h"
#include "kernel/attach.h"
#include "kernel/uprobe_events.h"
#include "proc/proc_text.h"
#include "tap/tap.h"

#define NAME "heaptap-guard"
/* How often main is looked at, while something is held, and how often in a row it must be found stopped. */
#define MAIN_LOOK_MS 200
#define MAIN_STOPPED_LOOKS 2
#define MAIN_TRACED_LOOKS 10

struct holder {
	int fd, main_fd;
	struct hmap links, events; /* number -> pointer */
	struct held_taps taps; /* a tap has the number of its links */
	struct uprobe_events *definitions;
	struct closer *closer;
	pid_t main_pid;
	int stopped_cnt; /* how often in a row main was found stopped */
	uint64_t looked_ns; /* at main, the last time */
	bool owes_stopped; /* main is to be told that it was */
	struct wire_request head;
	union wire_body body;
	int fds[WIRE_FDS_CAP];
	size_t fd_cnt;
	struct err why, why_late;
	struct wire_reply news; /* to be sent when it has tickets */
};

/* Protection from being killed by accident. */

/* Overwrite the arguments, which ps shows and in which `pkill -f` for main's arguments would find us: fields 48
 * and 49 of stat. */
static void hide_arguments(void)
{
	char text[1024], *at;
	unsigned long begin, end;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	at = strrchr(text, ')'); /* field 2 */
	for (int i = 2; i < 48 && at; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %lu %lu", &begin, &end) != 2 || end <= begin)
		return;
	memset((void *)begin, 0, end - begin);
	snprintf((char *)begin, end - begin, NAME);
}

static void set_oom_score(void)
{
	static const char score[] = "-1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, score, sizeof(score) - 1) < 0)
		errno = 0; /* not allowed: then as likely a victim as main */
	close(fd);
}

/* Make room for links; main raises its own limit later. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Close all descriptors but fd. 0 to 2 stay open, so that no library takes a link for them. */
static int close_all_but(int fd)
{
	int null_fd = null_fd_open();

	if (null_fd < 0)
		return null_fd;
	for (int i = 0; i < 3; i++)
		if (i != fd)
			dup2(null_fd, i);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	for (int i = 3; i < fd; i++)
		close(i);
	syscall(__NR_close_range, fd + 1, ~0U, 0);
	return fd;
}

static void stand_apart(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, NAME);
	hide_arguments();
	set_oom_score();
	raise_file_limit();
	if (chdir("/"))
		errno = 0; /* then a file system stays busy */
	thread_take_precedence(); /* probes that wait to be taken out slow others down */
}

/*
 * Requests.
 */

/* Main waits for the answer, so there is room or will be, unless main ends. */
static void answer(const struct holder *h, struct wire_reply *reply)
{
	struct pollfd p[] = { { .fd = h->fd, .events = POLLOUT },
			      { .fd = h->main_fd, .events = POLLIN } };

	reply->kind = WIRE_ANSWER;
	while (send(h->fd, reply, sizeof(*reply), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN && !p[1].revents)
		poll(p, 2, -1);
}

static void drop_fds(struct holder *h)
{
	while (h->fd_cnt)
		close(h->fds[--h->fd_cnt]);
}

static struct attach_request request_of(const struct holder *h, size_t part, size_t first_site)
{
	const struct wire_part *p = &h->head.parts[part];

	return (struct attach_request){
		.file_fd = h->fds[0],
		.pid = p->pid,
		.mode = p->mode,
		.kind = p->kind,
		.prog_fd = h->fds[1 + part],
		.sites = h->body.sites + first_site,
		.site_cnt = p->site_cnt,
		.cancel_fd = h->main_fd,
	};
}

static int remember(struct hmap *map, uint64_t number, void *what)
{
	return hmap_put(map, &number, (uintptr_t)what);
}

static void *look_up(const struct hmap *map, uint64_t number)
{
	const uint64_t *value = hmap_get(map, &number);

	return value ? (void *)(uintptr_t)*value : NULL;
}

static void *forget(struct hmap *map, uint64_t number)
{
	void *what = look_up(map, number);

	hmap_del(map, &number);
	return what;
}

/* Enter the links, or after an error take out those that exist. */
static int enter(struct holder *h, struct attach_links *links, int err)
{
	if (!err)
		err = remember(&h->links, h->head.id, links);
	if (err)
		attach_links_free(links);
	return err;
}

static int attach(struct holder *h)
{
	const struct attach_request req = request_of(h, 0, 0);
	struct attach_links *links = NULL;
	int err = attach_links_new(&links);

	return err ? err : enter(h, links, attach_add(links, &req));
}

static int add_to_events(struct holder *h)
{
	const struct shared_probes *sp = look_up(&h->events, h->head.events_id);
	struct attach_links *links = NULL;
	int err = sp ? attach_links_new(&links) : -ENOENT;

	return err ? err : enter(h, links, shared_probes_add(sp, h->head.pid, links));
}

/* Put a tap in. Nothing is sampled before its probes are in. */
static int tap(struct holder *h, struct wire_reply *reply)
{
	const struct tap_order *order = &h->body.tap.order;
	struct attach_request req = request_of(h, 0, 0);
	struct attach_links *links = NULL;
	struct tap_lost lost;
	int err = held_taps_put_in(&h->taps, h->head.id, order, &req.file_fd, &reply->tap, &h->why);

	if (err)
		return err;
	err = attach_links_new(&links);
	if (!err)
		err = enter(h, links, attach_add(links, &req));
	if (err)
		err_set_os(&h->why, err, "its code cannot be probed");
	if (!err)
		err = held_taps_set(&h->taps, h->head.id, order->rate_bytes, &lost);
	if (err) {
		held_taps_take_out(&h->taps, h->head.id);
		attach_links_free(forget(&h->links, h->head.id));
	}
	return err;
}

static void detach(struct holder *h)
{
	struct attach_links *all = NULL, *links;
	int err = attach_links_new(&all);

	for (size_t i = 0; i < h->head.id_cnt; i++) {
		held_taps_take_out(&h->taps, h->body.ids[i]);
		links = forget(&h->links, h->body.ids[i]);
		if (links && !err)
			err = attach_links_move(links, all);
		attach_links_free(links); /* links without room */
	}
	closer_close(h->closer, all, h->head.ticket);
}

static void clean(struct holder *h)
{
	const struct attach_request req = request_of(h, 0, 0);

	closer_clean(h->closer, &req, h->head.ticket);
	h->fd_cnt = 0; /* the closer owns the descriptors now */
}

static int open_events(struct holder *h, struct wire_reply *reply)
{
	size_t removed_cnt = 0;
	int err = h->definitions ? 0 : uprobe_events_open(&h->definitions, &removed_cnt, &h->why);

	reply->cnt = removed_cnt;
	return err;
}

static int new_events(struct holder *h)
{
	struct attach_request reqs[WIRE_PARTS_CAP];
	struct shared_probes *sp = NULL;
	size_t site = 0;
	int err;

	for (size_t i = 0; i < h->head.part_cnt; i++) {
		reqs[i] = request_of(h, i, site);
		site += reqs[i].site_cnt;
	}
	err = h->definitions ? shared_probes_new(h->definitions, reqs, h->head.part_cnt, &sp) :
			       -ENOTSUP;
	if (!err)
		err = remember(&h->events, h->head.events_id, sp);
	if (err)
		shared_probes_free(sp);
	return err;
}

static int start_tracer(struct holder *h)
{
	int fd = h->fd_cnt ? h->fds[0] : -1;

	h->fd_cnt = 0; /* the tracer owns it now */
	return fd < 0 ? -EMFILE : tracer_start(fd, h->main_fd);
}

static void handle(struct holder *h)
{
	struct wire_reply reply = { .err = -EINVAL };

	h->why.text[0] = '\0';
	switch (h->head.kind) {
	case WIRE_ATTACH:
		reply.err = attach(h);
		break;
	case WIRE_DETACH:
		detach(h);
		return;
	case WIRE_CLEAN:
		clean(h);
		return;
	case WIRE_OPEN_EVENTS:
		reply.err = open_events(h, &reply);
		break;
	case WIRE_NEW_EVENTS:
		reply.err = new_events(h);
		break;
	case WIRE_ADD_TO_EVENTS:
		reply.err = add_to_events(h);
		break;
	case WIRE_TAP:
		reply.err = tap(h, &reply);
		break;
	case WIRE_SET_TAP:
		reply.err = held_taps_set(&h->taps, h->head.id, h->head.rate_bytes, &reply.lost);
		break;
	case WIRE_START_TRACER:
		reply.err = start_tracer(h);
		break;
	case WIRE_FREE_EVENTS:
		shared_probes_free(forget(&h->events, h->head.events_id));
		return;
	}
	if (reply.err)
		snprintf(reply.why, sizeof(reply.why), "%.*s", (int)sizeof(reply.why) - 1,
			 h->why.text);
	answer(h, &reply);
}

static void take_fds(struct holder *h, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	h->fd_cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(h->fds, CMSG_DATA(c), h->fd_cnt * sizeof(int));
}

/* Main is trusted; this detects another version of it, or a full table of descriptors. */
static int check(const struct holder *h, size_t bytes)
{
	size_t site_cnt = 0, body_bytes = bytes - sizeof(h->head);

	if (bytes < sizeof(h->head) || h->head.part_cnt > WIRE_PARTS_CAP)
		return -EPROTO;
	if (h->head.part_cnt && h->fd_cnt != 1 + h->head.part_cnt)
		return -EMFILE;
	for (size_t i = 0; i < h->head.part_cnt; i++)
		site_cnt += h->head.parts[i].site_cnt;
	return body_bytes == site_cnt * sizeof(struct attach_site) +
				       h->head.id_cnt * sizeof(uint64_t) +
				       h->head.order_cnt * sizeof(struct tap_order) ?
		       0 :
		       -EPROTO;
}

static void refuse(struct holder *h, int err)
{
	struct wire_reply reply = { .err = err };

	if (h->head.kind == WIRE_CLEAN || h->head.kind == WIRE_DETACH)
		closer_close(h->closer, NULL, h->head.ticket);
	else if (h->head.kind != WIRE_FREE_EVENTS)
		answer(h, &reply);
}

/* false: main is gone. */
static bool receive(struct holder *h)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(h->fds))];
	} control;
	struct iovec iov[] = { { &h->head, sizeof(h->head) }, { &h->body, sizeof(h->body) } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	ssize_t n = recvmsg(h->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int err;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	take_fds(h, &msg);
	err = check(h, (size_t)n);
	if (err)
		refuse(h, err);
	else
		handle(h);
	drop_fds(h);
	return true;
}

/* Report done tickets. Main may be slow to take the message. */
static void tell_done(struct holder *h)
{
	if (!h->news.cnt)
		h->news.cnt = closer_take_done(h->closer, h->news.tickets, WIRE_TICKETS_CAP);
	h->news.kind = WIRE_OUT;
	if (h->news.cnt && send(h->fd, &h->news, sizeof(h->news), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		h->news.cnt = 0;
}

/*
 * Is main stopped (Ctrl-Z, SIGSTOP, a debugger)? It sees to the cost of what is held: nobody does while it is stopped.
 * A tracer such as strace stops it for moments only.
 */
static bool is_main_stopped(struct holder *h)
{
	char text[512], *at;

	if (!h->links.cnt || now_ns() - h->looked_ns < MAIN_LOOK_MS * NS_PER_MS / 2)
		return false;
	h->looked_ns = now_ns();
	proc_read_start(h->main_pid, text, sizeof(text), "stat");
	at = strrchr(text, ')');
	h->stopped_cnt =
		at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't') ? h->stopped_cnt + 1 : 0;
	return h->stopped_cnt >= (at && at[2] == 'T' ? MAIN_STOPPED_LOOKS : MAIN_TRACED_LOOKS);
}

/* Take all links and taps out. */
static void drop_all(struct holder *h)
{
	struct attach_links *all = NULL, *links;
	const void *key;
	uint64_t value;
	size_t pos = 0;
	int err = attach_links_new(&all);

	held_taps_take_all_out(&h->taps);
	while (hmap_next(&h->links, &pos, &key, &value)) {
		links = (void *)(uintptr_t)value;
		if (!err)
			err = attach_links_move(links, all);
		attach_links_free(links);
	}
	hmap_release(&h->links);
	hmap_init(&h->links, sizeof(uint64_t));
	attach_links_free(all);
	closer_wait(h->closer);
}

static void tell_stopped(struct holder *h)
{
	const struct wire_reply reply = { .kind = WIRE_STOPPED };

	h->stopped_cnt = 0;
	h->owes_stopped = send(h->fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) < 0;
}

/* For the next poll(), in ms. */
static int pause_of(const struct holder *h, int late_ms)
{
	if (late_ms >= 0 && (!h->links.cnt || late_ms < MAIN_LOOK_MS))
		return late_ms;
	return h->links.cnt ? MAIN_LOOK_MS : -1;
}

static void serve(struct holder *h)
{
	struct pollfd p[] = { { .fd = h->fd },
			      { .fd = closer_fd(h->closer) },
			      { .fd = h->main_fd, .events = POLLIN } };
	uint64_t late_ns = 0;
	int ready, late_ms;

	for (;;) {
		p[0].events = h->news.cnt || h->owes_stopped ? POLLIN | POLLOUT : POLLIN;
		p[1].events = h->news.cnt ? 0 : POLLIN;
		late_ms = h->taps.late.cnt ? h->taps.late_pause_ms : -1;
		ready = poll(p, 3, pause_of(h, late_ms));
		if (late_ms < 0)
			late_ns = now_ns();
		if (late_ms >= 0 && now_ns() - late_ns > (uint64_t)late_ms * NS_PER_MS) {
			held_taps_try_late(&h->taps);
			late_ns = now_ns();
		}
		if (is_main_stopped(h)) {
			drop_all(h);
			tell_stopped(h);
		}
		if (ready <= 0)
			continue;
		if (p[2].revents)
			return;
		if (h->owes_stopped && (p[0].revents & POLLOUT))
			tell_stopped(h);
		if (p[1].revents || (p[0].revents & POLLOUT))
			tell_done(h);
		if ((p[0].revents & ~POLLOUT) && !receive(h))
			return;
	}
}

/* Sockets of others would never be seen to end. */
static void close_all_but_taps(const struct holder *h)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		const int fd = atoi(e->d_name);
		bool is_kept = fd < 3 || fd == dirfd(d);

		for (size_t i = 0; i < h->taps.late.cnt; i++)
			is_kept |= fd == tap_fd(h->taps.late.data[i]);
		if (!is_kept)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* What could not be taken out is left to a process that does only that; main is told. */
static void leave_late(struct holder *h)
{
	struct wire_reply reply = { .kind = WIRE_LEFT, .cnt = h->taps.late.cnt };
	pid_t child = fork();

	if (!child) {
		close_all_but_taps(h);
		setsid();
		thread_take_precedence();
		held_taps_finish(&h->taps);
		_exit(0);
	}
	reply.err = child;
	snprintf(reply.why, sizeof(reply.why), "PID %d: %.*s", tap_pid(h->taps.late.data[0]),
		 (int)sizeof(reply.why) - 32, h->why_late.text);
	send(h->fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Take everything out, and wait until it is out. */
static void let_go(struct holder *h)
{
	const void *key;
	uint64_t value;
	size_t pos = 0;

	drop_all(h);
	while (hmap_next(&h->events, &pos, &key, &value))
		shared_probes_free((void *)(uintptr_t)value);
	uprobe_events_close(h->definitions);
	if (h->taps.late.cnt) /* now that a copy of this process keeps no link */
		leave_late(h);
}

void holder_run(int fd)
{
	/* Nobody waits for visitors. Not SIG_IGN: the tracer is woken by SIGCHLD. */
	const struct sigaction no_zombies = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	struct holder *h = calloc(1, sizeof(*h));
	pid_t parent = getppid();

	stand_apart();
	fd = close_all_but(fd);
	if (!h || fd < 0 || closer_new(&h->closer))
		_exit(1);
	sigaction(SIGCHLD, &no_zombies, NULL);
	h->fd = fd;
	h->main_pid = parent;
	h->main_fd = (int)syscall(__NR_pidfd_open, parent, 0); /* -1: the socket must be enough */
	hmap_init(&h->links, sizeof(uint64_t));
	hmap_init(&h->events, sizeof(uint64_t));
	held_taps_init(&h->taps, &h->why_late);
	if (getppid() == parent)
		serve(h);
	let_go(h);
	_exit(0);
}
