/* SPDX-License-Identifier: MIT */
/* exec_hold.c - see exec_hold.h. */
#include "guardian/exec_hold.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guardian/guardian_priv.h"

#define ANSWER_TIMEOUT_MS 10000

struct exec_hold {
	int fd;
};

int exec_hold_new(struct guardian *g, struct exec_hold **ret)
{
	struct exec_hold *h = calloc(1, sizeof(*h));
	int pair[2], err;

	if (!h)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		free(h);
		return err;
	}
	h->fd = pair[0];
	err = guardian_start_tracer(g, pair[1]);
	close(pair[1]);
	if (err) {
		exec_hold_free(h);
		return err;
	}
	*ret = h;
	return 0;
}

void exec_hold_free(struct exec_hold *h)
{
	if (!h)
		return;
	close(h->fd);
	free(h);
}

int exec_hold_fd(const struct exec_hold *h)
{
	return h->fd;
}

static int ask(const struct exec_hold *h, const struct wire_hold_request *r)
{
	ssize_t n;

	do {
		n = send(h->fd, r, sizeof(*r), MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -EPIPE : 0;
}

static int receive(const struct exec_hold *h, int timeout_ms, struct wire_hold_news *ret)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, timeout_ms) <= 0)
		return -EAGAIN;
	do {
		n = recv(h->fd, ret, sizeof(*ret), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n == sizeof(*ret) ? 0 : -EPIPE;
}

int exec_hold_begin(struct exec_hold *h, pid_t pid, bool is_family)
{
	const struct wire_hold_request r = { .kind = WIRE_HOLD_SEIZE,
					     .tid = pid,
					     .is_family = is_family };
	struct wire_hold_news news;
	int err = ask(h, &r);

	if (!err)
		err = receive(h, ANSWER_TIMEOUT_MS, &news);
	if (err)
		return err;
	return news.kind == WIRE_HOLD_SEIZED ? news.err : -EPROTO;
}

int exec_hold_next(struct exec_hold *h, struct exec_hold_stop *ret)
{
	struct wire_hold_news news;
	int err = receive(h, 0, &news);

	if (err)
		return err;
	*ret = (struct exec_hold_stop){
		.tid = news.tid,
		.is_exec = news.kind == WIRE_HELD_EXEC,
		.until_ns = news.until_ns,
		.serial = news.serial,
	};
	return 0;
}

void exec_hold_resume(struct exec_hold *h, const struct exec_hold_stop *stop)
{
	const struct wire_hold_request r = { .kind = WIRE_HOLD_GO, .serial = stop->serial };

	(void)ask(h, &r); /* when the tracer is gone, nobody is held */
}

void exec_hold_detach(struct exec_hold *h, pid_t pid)
{
	const struct wire_hold_request r = { .kind = WIRE_HOLD_LET_GO, .tid = pid };

	(void)ask(h, &r);
}
