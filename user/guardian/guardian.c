/* SPDX-License-Identifier: MIT */
/*
 * guardian.c - main's side of the guardian: its life, messages and tickets; see guardian.h. What it is asked for:
 * requests.c. The other side: holder.c.
 *
 * A function that waits for an answer handles news that come before it. No answer for a minute counts as the
 * guardian's end: it is stopped then, and nobody may wait for it for ever.
 */
#include "guardian/guardian.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/vec.h"
#include "guardian/guardian_priv.h"

#define ANSWER_TIMEOUT_MS 60000
#define SAID_AFTER_MS 3000 /* the user is told that it takes long */
/* At the end: it takes everything out by itself and ends, also when nobody waits any more. The kernel takes one
 * process's probes out at a time, machine-wide, so it may take long through no fault of ours. */
#define END_TIMEOUT_MS 1000
#define END_LEAST_MS 300 /* ... of that, after other work */
#define EXIT_TIMEOUT_MS 500 /* after that */
/* One that was killed before is the reason of the end, which nobody else waits for: what it left is removed first. */
#define KILLED_END_TIMEOUT_MS 2500
/* It may be in the kernel for as long: who is told to end (SIGTERM, Ctrl-C) has this for all answers together. */
#define LAST_ANSWERS_MS 400
#define LOOK_MS 100
#define SEND_TRIES 100 /* in a second */
#define SEND_PAUSE_US 10000
#define UNSENT_TRIES 1000 /* in ten seconds */

struct under_way {
	uint64_t ticket;
	bool is_cleaning;
};

/* A detach that could not be sent: the kernel had no memory. */
struct unsent {
	uint64_t ticket; /* it is under way, too: so it does not count as out */
	uint32_t cnt;
	uint64_t ids[WIRE_IDS_CAP];
};

struct guardian {
	pid_t pid;
	/* stays open when the guardian is lost, so that those who wait for it learn of that */
	int fd;
	bool is_lost;
	bool has_dropped; /* it has taken everything out, because this process was stopped */
	bool is_given_up; /* it may still exist, and take out what it holds */
	uint64_t end_ns; /* nobody waits for it after this; 0: not set yet */
	uint64_t told_ns; /* when this process was first seen to be told to end; 0: not yet */
	uint64_t last_number; /* of ids and tickets */
	void (*on_wait)(void *ctx);
	void *on_wait_ctx;
	uint64_t on_wait_ns; /* when it was called last */
	VEC(struct under_way) under_way; /* always has room for one more */
	VEC(struct unsent) unsent; /* tried again by guardian_work(), in that order */
};

static int start(struct guardian *g)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	g->pid = fork();
	if (!g->pid) {
		close(pair[0]);
		holder_run(pair[1]);
	}
	if (g->pid < 0)
		err = -errno;
	close(pair[1]);
	if (err)
		close(pair[0]);
	else
		g->fd = pair[0];
	g->is_lost = err;
	return err;
}

int guardian_start(struct guardian **ret)
{
	struct guardian *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->fd = -1;
	err = vec_reserve(&g->under_way, 1);
	if (!err)
		err = start(g);
	if (err)
		guardian_end(g);
	else
		*ret = g;
	return err;
}

bool guardian_is_lost(const struct guardian *g)
{
	return g->is_lost;
}

bool guardian_take_dropped(struct guardian *g)
{
	bool has_dropped = g->has_dropped;

	g->has_dropped = false;
	return has_dropped;
}

/* One that exits, or was killed, may be in the kernel for seconds, which closes its events. false: it goes on. */
static bool reap(const struct guardian *g, uint64_t end_ns)
{
	int fd = (int)syscall(SYS_pidfd_open, g->pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ns();

	while (fd >= 0 && now < end_ns && poll(&p, 1, (int)((end_ns - now) / NS_PER_MS) + 1) < 0)
		now = now_ns();
	if (fd >= 0)
		close(fd);
	return waitpid(g->pid, NULL, WNOHANG) != 0;
}

/* Nothing is under way any more: probes are out, or were left. Shut down, so that a live guardian sees EOF. */
static int lose(struct guardian *g)
{
	if (g->fd >= 0)
		shutdown(g->fd, SHUT_RDWR);
	g->is_lost = true;
	g->under_way.cnt = 0;
	g->unsent.cnt = 0;
	return -EPIPE;
}

static void part(struct guardian *g)
{
	lose(g);
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

static void note_left(const struct wire_reply *reply)
{
	char next[96] = "to remove them: heaptap doctor --remove-tap";

	if (reply->err > 0)
		snprintf(next, sizeof(next), "process %d retries for ten minutes", reply->err);
	log_warn("%llu tap%s could not be removed yet (%.*s); %s", (unsigned long long)reply->cnt,
		 reply->cnt == 1 ? "" : "s", (int)sizeof(reply->why), reply->why, next);
}

void guardian_while_waiting(struct guardian *g, void (*fn)(void *ctx), void *ctx)
{
	g->on_wait = fn;
	g->on_wait_ctx = ctx;
}

/* Many short waits in a row count like a long one. */
static void tell_waiting(struct guardian *g)
{
	const uint64_t now = now_ns();

	if (!g->on_wait || now < g->on_wait_ns + LOOK_MS * NS_PER_MS)
		return;
	g->on_wait_ns = now;
	g->on_wait(g->on_wait_ctx);
}

static bool is_out_of_time(struct guardian *g, uint64_t now)
{
	if (!loop_is_told_to_end())
		g->told_ns = 0;
	else if (!g->told_ns)
		g->told_ns = now;
	return (g->end_ns && now >= g->end_ns) ||
	       (g->told_ns && now >= g->told_ns + LAST_ANSWERS_MS * NS_PER_MS);
}

bool guardian_has_time(struct guardian *g)
{
	return !is_out_of_time(g, now_ns());
}

/* -EAGAIN: nothing happened in that time; -ECANCELED: this process is to end. */
static int wait_for(struct guardian *g, short events, int timeout_ms)
{
	const uint64_t begin_ns = now_ns();
	struct pollfd p = { .fd = g->fd, .events = events };
	int waited_ms = 0, slice_ms = timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;

	if (timeout_ms && is_out_of_time(g, begin_ns)) /* many short waits in a row */
		slice_ms = 0;
	tell_waiting(g);
	while (poll(&p, 1, slice_ms) <= 0) {
		const uint64_t now = now_ns();

		waited_ms = (int)((now - begin_ns) / NS_PER_MS);
		if (waited_ms >= timeout_ms)
			return -EAGAIN;
		if (is_out_of_time(g, now))
			return -ECANCELED;
		tell_waiting(g);
	}
	return 0;
}

/* Wait until it has ended. false: it goes on. */
static bool await_end(struct guardian *g)
{
	struct wire_reply reply;

	while (!wait_for(g, POLLIN, END_TIMEOUT_MS)) {
		if (recv(g->fd, &reply, sizeof(reply), 0) != sizeof(reply))
			return true;
		if (reply.kind == WIRE_LEFT) /* other news are dropped */
			note_left(&reply);
	}
	return false;
}

void guardian_begin_end(struct guardian *g)
{
	const uint64_t now = now_ns();
	const bool is_killed = g->is_lost && !g->is_given_up;

	if (!g->end_ns)
		g->end_ns = now + (is_killed ? KILLED_END_TIMEOUT_MS : END_TIMEOUT_MS) * NS_PER_MS;
	else if (g->end_ns < now + END_LEAST_MS * NS_PER_MS)
		g->end_ns = now + END_LEAST_MS * NS_PER_MS;
}

void guardian_end(struct guardian *g)
{
	if (!g)
		return;
	if (!g->is_lost && g->fd >= 0) {
		if (!g->end_ns)
			guardian_begin_end(g);
		shutdown(g->fd, SHUT_WR);
		g->is_given_up = !await_end(g);
	}
	part(g);
	if (g->pid > 0 &&
	    !reap(g, (g->end_ns ? g->end_ns : now_ns()) + EXIT_TIMEOUT_MS * NS_PER_MS))
		log_warn("some probes are not removed yet, because the kernel or a process does "
			 "not respond; process %d goes on removing them, and then ends",
			 g->pid);
	vec_release(&g->under_way);
	vec_release(&g->unsent);
	free(g);
}

const char *guardian_lost_why(const struct guardian *g)
{
	return g->is_given_up ? "the kernel did not finish with the probes in time" :
				"the process that holds the probes was killed";
}

int guardian_restart(struct guardian *g)
{
	uint64_t end_ns = now_ns() + END_TIMEOUT_MS * NS_PER_MS;

	if (g->is_given_up) /* it goes on by itself */
		return -EBUSY;
	part(g);
	reap(g, g->end_ns && g->end_ns < end_ns ? g->end_ns : end_ns);
	g->pid = 0;
	if (g->end_ns)
		guardian_begin_end(g); /* the new one has some time */
	return start(g);
}

uint64_t guardian_new_number(struct guardian *g)
{
	return ++g->last_number;
}

pid_t guardian_pid(const struct guardian *g)
{
	return g->pid;
}

int guardian_fd(const struct guardian *g)
{
	return g->fd;
}

static void note_out(struct guardian *g, const struct wire_reply *reply)
{
	for (size_t i = 0; i < reply->cnt && i < WIRE_TICKETS_CAP; i++) {
		for (size_t k = g->under_way.cnt; k-- > 0;) {
			if (g->under_way.data[k].ticket != reply->tickets[i])
				continue;
			g->under_way.data[k] = g->under_way.data[--g->under_way.cnt];
			break;
		}
	}
}

/* Return 1 for an answer, which is in *ret; 0 for news; -EAGAIN: nothing came in that time. */
static int receive(struct guardian *g, int timeout_ms, struct wire_reply *ret)
{
	ssize_t n;
	int err;

	if (g->is_lost)
		return -EPIPE;
	err = wait_for(g, POLLIN, timeout_ms);
	if (err == -ECANCELED) {
		g->is_given_up = true;
		return lose(g);
	}
	if (err)
		return err;
	do {
		n = recv(g->fd, ret, sizeof(*ret), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(*ret))
		return lose(g);
	if (ret->kind == WIRE_ANSWER)
		return 1;
	if (ret->kind == WIRE_LEFT)
		note_left(ret);
	else if (ret->kind == WIRE_STOPPED)
		g->has_dropped = true;
	else
		note_out(g, ret);
	return 0;
}

/* Wait for the next message; returns as receive(). */
static int await(struct guardian *g, struct wire_reply *ret)
{
	int err = receive(g, SAID_AFTER_MS, ret);

	if (err != -EAGAIN)
		return err;
	log_warn(
		"waiting for the kernel, which attaches and removes the probes of all programs one "
		"at a time: another profiler (heaptap, bpftrace, perf) may keep it busy");
	err = receive(g, ANSWER_TIMEOUT_MS - SAID_AFTER_MS, ret);
	if (err != -EAGAIN)
		return err;
	log_error(
		"heaptap-guard (PID %d) did not respond for 60 s, because the kernel does not finish with "
		"the probes: giving up",
		g->pid);
	g->is_given_up = true;
	return lose(g);
}

/*
 * Requests.
 */

/* It may be in the kernel, or there is no memory for a message at the moment. */
static bool is_sent_later(struct guardian *g, int *tries_left)
{
	if (errno == EINTR)
		return true;
	if (errno == EAGAIN)
		return !wait_for(g, POLLOUT, ANSWER_TIMEOUT_MS);
	if ((errno != ENOMEM && errno != ENOBUFS) || !(*tries_left)--)
		return false;
	usleep(SEND_PAUSE_US);
	return true;
}

static int send_request_trying(struct guardian *g, struct guardian_request *r, int tries_left)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(r->fds))];
	} control = { 0 };
	struct iovec iov[2 + WIRE_PARTS_CAP] = { { &r->head, sizeof(r->head) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1 + r->body_cnt };
	ssize_t n;

	if (g->is_lost)
		return -EPIPE;
	memcpy(iov + 1, r->body, r->body_cnt * sizeof(*iov));
	if (r->fd_cnt) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(r->fd_cnt * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(r->fd_cnt * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), r->fds, r->fd_cnt * sizeof(int));
	}
	do {
		n = sendmsg(g->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && is_sent_later(g, &tries_left));
	if (n < 0 && errno != EPIPE && errno != ECONNRESET)
		return -errno; /* a bad descriptor, no memory */
	return n < 0 ? lose(g) : 0;
}

int guardian_send(struct guardian *g, struct guardian_request *r)
{
	return send_request_trying(g, r, SEND_TRIES);
}

static struct guardian_request detach_request(const uint64_t *ids, size_t cnt, uint64_t ticket)
{
	return (struct guardian_request){
		.head = { .kind = WIRE_DETACH, .id_cnt = (uint32_t)cnt, .ticket = ticket },
		.body = { { (void *)ids, cnt * sizeof(*ids) } },
		.body_cnt = 1,
	};
}

/* Stops at the first that cannot be sent now, either. */
static void send_unsent(struct guardian *g)
{
	size_t done = 0;

	for (; done < g->unsent.cnt; done++) {
		const struct unsent *u = &g->unsent.data[done];
		struct guardian_request r = detach_request(u->ids, u->cnt, u->ticket);

		if (send_request_trying(g, &r, 0)) /* lost: there are none any more */
			break;
	}
	if (!done || done > g->unsent.cnt)
		return;
	g->unsent.cnt -= done;
	memmove(g->unsent.data, g->unsent.data + done, g->unsent.cnt * sizeof(*g->unsent.data));
}

int guardian_work(struct guardian *g)
{
	struct wire_reply reply;
	int err;

	send_unsent(g);
	do {
		err = receive(g, 0, &reply);
	} while (err >= 0);
	return err == -EAGAIN ? 0 : err;
}

int guardian_exchange(struct guardian *g, struct guardian_request *r, struct wire_reply *reply)
{
	int err = guardian_send(g, r);

	while (!err)
		err = await(g, reply);
	if (err < 0) { /* news may be in it */
		reply->cnt = 0;
		reply->why[0] = '\0';
		return err;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): it was filled */
	return reply->err;
}

/* The ticket of a request that is not waited for. */
static uint64_t new_ticket(struct guardian *g)
{
	if (vec_reserve(&g->under_way, g->under_way.cnt + 1))
		guardian_wait_all_detached(g); /* leaves room */
	return ++g->last_number;
}

static void note_under_way(struct guardian *g, uint64_t ticket, bool is_cleaning)
{
	g->under_way.data[g->under_way.cnt++] = (struct under_way){ ticket, is_cleaning };
}

int guardian_send_clean(struct guardian *g, struct guardian_request *r)
{
	int err;

	r->head.ticket = new_ticket(g);
	err = guardian_send(g, r);
	if (!err)
		note_under_way(g, r->head.ticket, true);
	return err;
}

/* A detach that is given up would leave probes that count as out. */
static int detach_later(struct guardian *g, const uint64_t *ids, size_t cnt, uint64_t ticket)
{
	struct unsent u = { .ticket = ticket, .cnt = (uint32_t)cnt };
	int err;

	memcpy(u.ids, ids, cnt * sizeof(*ids));
	err = vec_push(&g->unsent, u);
	if (!err)
		note_under_way(g, ticket, false);
	return err;
}

uint64_t guardian_detach(struct guardian *g, const uint64_t *ids, size_t cnt)
{
	uint64_t ticket = 0;
	size_t part_cnt;
	int err;

	for (; cnt; ids += part_cnt, cnt -= part_cnt) {
		uint64_t own = new_ticket(g);
		struct guardian_request r;

		part_cnt = cnt < WIRE_IDS_CAP ? cnt : WIRE_IDS_CAP;
		r = detach_request(ids, part_cnt, own);
		err = guardian_send(g, &r);
		if (err == -EPIPE) /* they are out: it has ended */
			continue;
		if (!err)
			note_under_way(g, own, false);
		else
			err = detach_later(g, ids, part_cnt, own);
		if (!err)
			ticket = own;
		else
			log_error(
				"guardian: cannot remove %zu probes or taps: %s; they stay until heaptap ends",
				part_cnt, strerror(-err));
	}
	return ticket;
}

bool guardian_is_detached(struct guardian *g, uint64_t ticket)
{
	const struct under_way *u;

	if (!ticket)
		return true;
	guardian_work(g);
	vec_each(&g->under_way, u)
		if (u->ticket <= ticket)
			return false;
	return true;
}

void guardian_wait_detached(struct guardian *g, uint64_t ticket)
{
	struct wire_reply reply;
	int tries_left = UNSENT_TRIES;

	while (!guardian_is_detached(g, ticket)) {
		if (!g->unsent.cnt) {
			if (await(g, &reply) < 0)
				return;
		} else if (tries_left--) {
			usleep(SEND_PAUSE_US);
		} else {
			log_error(
				"guardian: cannot remove probes: out of memory; they stay until heaptap ends");
			return;
		}
	}
}

void guardian_wait_all_detached(struct guardian *g)
{
	guardian_wait_detached(g, g->last_number);
}

size_t guardian_cleaning_cnt(struct guardian *g)
{
	const struct under_way *u;
	size_t cnt = 0;

	guardian_work(g);
	vec_each(&g->under_way, u)
		cnt += u->is_cleaning;
	return cnt;
}
