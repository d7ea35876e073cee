/* SPDX-License-Identifier: MIT */
/* test_guardian.c - a guardian that is killed, one that answers late, and one that cannot be written to. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "guardian/guardian.h"
#include "guardian/guardian_priv.h"
#include "kernel/attach.h"
#include "tap/tap.h"

/* Instead of libc's: the kernel may have no memory for a message. */
static int failures_left;
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (failures_left) {
		failures_left--;
		errno = failures_left % 2 ? ENOMEM : ENOBUFS;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static bool has_news(const struct guardian *g)
{
	struct pollfd p = { .fd = guardian_fd(g), .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents && !(p.revents & POLLNVAL);
}

struct waiting {
	struct guardian *guardian;
	int calls_left;
};

static void on_wait(void *ctx)
{
	struct waiting *w = ctx;

	if (!--w->calls_left)
		kill(guardian_pid(w->guardian), SIGCONT);
}

/* It goes on only when the waiting process has been told several times that it waits. */
TEST(test_late)
{
	struct waiting w = { .calls_left = 4 };
	struct tap_lost lost;

	assert_int_equal(guardian_start(&w.guardian), 0);
	assert_int_equal(kill(guardian_pid(w.guardian), SIGSTOP), 0);
	guardian_while_waiting(w.guardian, on_wait, &w);
	assert_int_equal(guardian_set_tap(w.guardian, 4711, 0, &lost), -ENOENT);
	assert_int_equal(w.calls_left, 0);
	guardian_while_waiting(w.guardian, NULL, NULL);
	guardian_end(w.guardian);
}

/* In a child: the guardian answers, but late each time. */
static void slow_down(pid_t guardian)
{
	for (;;) {
		kill(guardian, SIGSTOP);
		usleep(50000);
		kill(guardian, SIGCONT);
		usleep(1000);
	}
}

/* Told to end, this process does not wait long for the answers to all its requests together. */
TEST(test_told_to_end)
{
	struct guardian *g = NULL;
	struct tap_lost lost;
	uint64_t begin_ns;
	sigset_t set;
	pid_t pid;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	assert_int_equal(guardian_start(&g), 0);
	pid = fork();
	if (!pid)
		slow_down(guardian_pid(g));
	assert_int_equal(raise(SIGTERM), 0);
	begin_ns = now_ns();
	do {
		err = guardian_set_tap(g, 4711, 0, &lost);
	} while (err == -ENOENT && now_ns() - begin_ns < 5 * NS_PER_S);
	assert_int_equal(err, -EPIPE);
	assert_in_range(now_ns() - begin_ns, 400 * NS_PER_MS, 3 * NS_PER_S);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sigwaitinfo(&set, NULL), SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* nor for its end; it may have ended by now, as nobody asks it any more */
	pid = guardian_pid(g);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	begin_ns = now_ns();
	guardian_begin_end(g);
	guardian_end(g);
	assert_true(now_ns() - begin_ns < 2500 * NS_PER_MS);
	kill(pid, SIGCONT);
}

/* Whoever learns of it first, the loop that waits for news does, too. */
TEST(test_killed)
{
	struct attach_site site = { .off = 1 };
	struct attach_request req = { .site_cnt = 1, .sites = &site, .mode = ATTACH_MULTI };
	struct guardian *g = NULL;
	int err = 0;

	assert_int_equal(guardian_start(&g), 0);
	assert_false(guardian_is_lost(g));
	assert_int_equal(guardian_work(g), 0);
	req.file_fd = req.prog_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(req.file_fd >= 0);
	assert_int_equal(kill(guardian_pid(g), SIGKILL), 0);
	for (int i = 0; i < 1000 && !err; i++) {
		err = guardian_clean(g, &req);
		usleep(1000);
	}
	assert_int_equal(err, -EPIPE);
	assert_true(guardian_is_lost(g));
	assert_true(has_news(g));
	assert_int_equal(guardian_work(g), -EPIPE);
	assert_true(guardian_is_detached(g, 12345));

	assert_int_equal(guardian_restart(g), 0);
	assert_false(guardian_is_lost(g));
	assert_false(has_news(g));
	assert_int_equal(guardian_work(g), 0);
	guardian_end(g);
	close(req.file_fd);
}

/* What cannot be sent is sent later, and is not taken for done. */
TEST(test_no_memory)
{
	const uint64_t unknown = 4711;
	struct guardian *g = NULL;
	struct tap_lost lost;
	uint64_t ticket;

	assert_int_equal(guardian_start(&g), 0);
	failures_left = 3;
	assert_int_equal(guardian_set_tap(g, unknown, 0, &lost), -ENOENT); /* an answer */
	failures_left = 3;
	ticket = guardian_detach(g, &unknown, 1);
	assert_int_equal(failures_left, 0);
	assert_true(ticket != 0);
	guardian_wait_detached(g, ticket);
	/* not for a while: then it is not out, and sent as soon as it can be */
	failures_left = 1000;
	ticket = guardian_detach(g, &unknown, 1);
	assert_true(ticket != 0);
	assert_false(guardian_is_detached(g, ticket));
	failures_left = 2;
	guardian_wait_detached(g, ticket);
	assert_true(guardian_is_detached(g, ticket));
	/* for good: then it is said */
	failures_left = 1000;
	assert_int_equal(guardian_set_tap(g, unknown, 0, &lost), -ENOMEM);
	failures_left = 0;
	assert_false(guardian_is_lost(g));
	assert_int_equal(guardian_set_tap(g, unknown, 0, &lost), -ENOENT);
	guardian_end(g);
}

RUN_TESTS()
