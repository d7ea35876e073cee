/* SPDX-License-Identifier: MIT */
/*
 * reader.c - main's side of the reader, see reader.h. The other side is reader_process.c.
 *
 * One process can take from main only the wait for one answer. A user may have many processes, so the time lost
 * in waiting lately makes the wait shorter, down to LEAST_WAIT_MS, which is 50 times what an answer takes. A
 * reader that computes, or waits for a processor, is waited for longer: a busy machine is not the process's
 * doing.
 */
#include "proc/reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/proc_text.h"
#include "proc/reader_priv.h"

#define LEAST_WAIT_MS 5
/* Share of the time that may be lost in waiting; LOST_CAP_NS: how much of it at once. */
#define LOST_PER_S 0.1
#define LOST_CAP_NS (400 * NS_PER_MS)
/* The wait for a reader that runs is so many times as long. */
#define RUNNING_WAITS 5

/* Processes that did not answer lately. */
#define STUCK_CAP 64
#define STUCK_FIRST_NS (1 * NS_PER_S)
#define STUCK_LAST_NS (600 * NS_PER_S)
/* Readers that were killed and have not ended yet. At this number nothing is read any more. */
#define GIVEN_UP_CAP 32

struct stuck {
	pid_t pid;
	/* A glance waits only for a process that executes a program: one whose files or memory do not answer is still
	 * glanced at. */
	bool is_glance;
	uint64_t until_ns, wait_ns;
};

struct reader {
	pid_t pid;
	pid_t owner; /* process that started the reader, and may use it */
	int fd; /* -1: no reader runs */
	uint32_t wait_ms;
	reader_job_fn job;
	struct stuck stuck[STUCK_CAP];
	size_t stuck_cnt;
	pid_t given_up[GIVEN_UP_CAP];
	size_t given_up_cnt;
	uint64_t ever_given_up;
	double lost_ns; /* lost in waiting, lately */
	uint64_t lost_since_ns;
	struct log_limit log;
};

static int start(struct reader *r)
{
	int pair[2], err = 0;
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->pid = fork();
	if (!r->pid)
		reader_process_run(pair[1], parent, r->job);
	if (r->pid < 0)
		err = -errno;
	close(pair[1]);
	if (err)
		close(pair[0]);
	else
		r->fd = pair[0];
	return err;
}

int reader_start(uint32_t wait_ms, reader_job_fn job, struct reader **ret)
{
	struct reader *r = malloc(sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct reader){
		.owner = getpid(),
		.fd = -1,
		.wait_ms = wait_ms,
		.job = job,
		.log = { .every_ns = 60 * NS_PER_S, .burst = 5 },
	};
	err = start(r);
	if (err)
		free(r);
	else
		*ret = r;
	return err;
}

/* Reap killed readers that have ended meanwhile. */
static void reap_given_up(struct reader *r)
{
	for (size_t i = r->given_up_cnt; i-- > 0;)
		if (waitpid(r->given_up[i], NULL, WNOHANG))
			r->given_up[i] = r->given_up[--r->given_up_cnt];
}

/* Kill the reader. It is not waited for: it may hang in the kernel. */
static void give_up(struct reader *r)
{
	kill(r->pid, SIGKILL);
	close(r->fd);
	r->fd = -1;
	if (r->given_up_cnt < GIVEN_UP_CAP)
		r->given_up[r->given_up_cnt++] = r->pid;
	r->pid = 0;
	reap_given_up(r);
}

void reader_end(struct reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		give_up(r);
	for (int i = 0; i < 20 && r->given_up_cnt; i++) {
		poll(NULL, 0, 1);
		reap_given_up(r);
	}
	free(r);
}

bool reader_is_ours(const struct reader *r)
{
	return r && r->owner == getpid();
}

pid_t reader_pid(const struct reader *r)
{
	return r && r->fd >= 0 ? r->pid : 0;
}

uint64_t reader_lost_cnt(const struct reader *r)
{
	return r->ever_given_up;
}

/* Processes that do not answer. */

static struct stuck *find_stuck(struct reader *r, pid_t pid, bool is_glance)
{
	for (size_t i = 0; i < r->stuck_cnt; i++)
		if (r->stuck[i].pid == pid && r->stuck[i].is_glance == is_glance)
			return &r->stuck[i];
	return NULL;
}

static void note_stuck(struct reader *r, pid_t pid, bool is_glance, uint64_t now)
{
	struct stuck *s = find_stuck(r, pid, is_glance);

	if (!s && r->stuck_cnt == STUCK_CAP) { /* replace the one that would be released first */
		s = &r->stuck[0];
		for (size_t i = 1; i < STUCK_CAP; i++)
			s = r->stuck[i].until_ns < s->until_ns ? &r->stuck[i] : s;
		*s = (struct stuck){ .pid = pid, .is_glance = is_glance };
	} else if (!s) {
		s = &r->stuck[r->stuck_cnt++];
		*s = (struct stuck){ .pid = pid, .is_glance = is_glance };
	}
	/* Some reads of a process may work and others not, so only the time since the last failure counts. */
	if (now - s->until_ns > STUCK_LAST_NS)
		s->wait_ns = 0;
	s->wait_ns = s->wait_ns ? s->wait_ns * 4 : STUCK_FIRST_NS;
	if (s->wait_ns > STUCK_LAST_NS)
		s->wait_ns = STUCK_LAST_NS;
	s->until_ns = now + s->wait_ns;
	r->ever_given_up++;
	if (log_limit_allows(&r->log, now))
		log_warn("cannot read PID %d: a page, a file or a lock of its address space does "
			 "not respond; retrying in %llu s",
			 pid, (unsigned long long)(s->wait_ns / NS_PER_S));
}

static bool is_stuck(struct reader *r, pid_t pid, bool is_glance, uint64_t now)
{
	const struct stuck *s = find_stuck(r, pid, is_glance);

	return s && now < s->until_ns;
}

/*
 * Waiting.
 */

static double lost_ns(const struct reader *r, uint64_t now)
{
	double lost = r->lost_ns - (double)(now - r->lost_since_ns) * LOST_PER_S;

	return lost > 0 ? lost : 0;
}

static void note_lost(struct reader *r, uint64_t begin_ns, uint64_t now)
{
	r->lost_ns = lost_ns(r, now) + (double)(now - begin_ns);
	r->lost_since_ns = now;
}

static int wait_ms(const struct reader *r, uint64_t now)
{
	double left_ms = ((double)LOST_CAP_NS - lost_ns(r, now)) / NS_PER_MS;

	if (r->wait_ms >= READER_PATIENT_MS || left_ms > r->wait_ms)
		return (int)r->wait_ms;
	return left_ms > LEAST_WAIT_MS ? (int)left_ms : LEAST_WAIT_MS;
}

/* Does the reader compute, or wait for a processor? */
static bool is_running(const struct reader *r)
{
	char *text, *close;
	bool yes;

	if (proc_text_read(r->pid, "stat", &text))
		return false;
	close = strrchr(text, ')');
	yes = close && close[1] == ' ' && close[2] == 'R';
	free(text);
	return yes;
}

/* -ETIMEDOUT: nothing came. */
static int await(const struct reader *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	int n, left = RUNNING_WAITS, ms = wait_ms(r, now_ns());

	do {
		n = poll(&p, 1, ms);
	} while ((n < 0 && errno == EINTR) || (!n && --left && is_running(r)));
	return n > 0 ? 0 : -ETIMEDOUT;
}

/*
 * A call.
 */

static int send_call(const struct reader *r, const struct reader_call *c)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov[2] = { { (void *)&c->head, sizeof(c->head) },
				{ (void *)c->text, c->head.text_bytes } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (c->fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), &c->fd, sizeof(int));
	}
	return sendmsg(r->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Take the bytes that came with the head, or those in the file that came with it. */
static int take_bytes(struct reader_call *c, const uint8_t *body, size_t body_bytes)
{
	size_t done = 0;

	if (c->answer.is_inline ? c->answer.bytes != body_bytes :
				  c->answer.bytes > READER_BYTES_CAP || c->ret_fd < 0)
		return -EPROTO;
	c->bytes = malloc(c->answer.bytes + 1);
	if (!c->bytes)
		return -ENOMEM;
	c->bytes[c->answer.bytes] = '\0';
	if (c->answer.is_inline) {
		memcpy(c->bytes, body, body_bytes);
		return 0;
	}
	while (done < c->answer.bytes) {
		ssize_t n = pread(c->ret_fd, c->bytes + done, c->answer.bytes - done, (off_t)done);

		if (n <= 0)
			return -EPROTO;
		done += (size_t)n;
	}
	close(c->ret_fd);
	c->ret_fd = -1;
	return 0;
}

static int receive(const struct reader *r, struct reader_call *c)
{
	static uint8_t body[READER_INLINE_BYTES];
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov[2] = { { &c->answer, sizeof(c->answer) }, { body, sizeof(body) } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	const struct cmsghdr *control_head;
	ssize_t n;

	do {
		n = recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(c->answer))
		return -EPIPE;
	control_head = CMSG_FIRSTHDR(&msg);
	if (control_head && control_head->cmsg_type == SCM_RIGHTS)
		memcpy(&c->ret_fd, CMSG_DATA(control_head), sizeof(int));
	if (c->answer.err > 0)
		return -EPROTO;
	if (c->answer.err || !c->answer.bytes)
		return c->answer.err;
	return take_bytes(c, body, (size_t)n - sizeof(c->answer));
}

static int exchange(struct reader *r, struct reader_call *c)
{
	uint64_t begin_ns;
	int err = r->fd < 0 ? start(r) : 0;

	if (err)
		return err;
	err = send_call(r, c);
	if (err)
		return err == -EPIPE || err == -ECONNRESET ? -EPIPE : err;
	begin_ns = now_ns();
	err = await(r);
	if (err) {
		note_lost(r, begin_ns, now_ns());
		return err;
	}
	return receive(r, c);
}

void reader_call_release(struct reader_call *c)
{
	free(c->bytes);
	c->bytes = NULL;
	if (c->ret_fd >= 0)
		close(c->ret_fd);
	c->ret_fd = -1;
}

int reader_call(struct reader *r, struct reader_call *c, pid_t pid)
{
	bool is_glance = c->head.op == READ_GLANCE;
	int err = -EPIPE;

	if (pid && is_stuck(r, pid, is_glance, now_ns()))
		return -ETIMEDOUT;
	reap_given_up(r);
	if (r->given_up_cnt == GIVEN_UP_CAP)
		return -ETIMEDOUT;
	if (c->head.op == OPEN_MAP)
		c->head.map.refuses_foreign = r->wait_ms < READER_PATIENT_MS;
	c->ret_fd = -1;
	/* Somebody may have killed the reader: try once more, with a new one. */
	for (int tries = 2; tries && err == -EPIPE; tries--) {
		err = exchange(r, c);
		if (err == -EPIPE || err == -ETIMEDOUT || err == -EPROTO)
			if (r->fd >= 0)
				give_up(r);
	}
	/* A job is started at once, whatever its file does: then it is the machine that is slow. */
	if (err == -ETIMEDOUT && pid)
		note_stuck(r, pid, is_glance, now_ns());
	if (err)
		reader_call_release(c);
	return err;
}

int reader_run_job(struct reader *reader, uint32_t uid, uint32_t kind, int fd, const void *args,
		   size_t args_bytes, uint32_t wall_s, int *ret_fd)
{
	struct reader_call c = { .head = { .op = RUN_JOB,
					   .text_bytes = (uint32_t)args_bytes,
					   .job = { .uid = uid, .kind = kind, .wall_s = wall_s } },
				 .text = args,
				 .fd = fd };
	int err;

	if (args_bytes > READER_ARGS_BYTES_CAP)
		return -E2BIG;
	err = reader_call(reader, &c, 0);
	if (err)
		return err;
	*ret_fd = c.ret_fd;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a job has no bytes but what comes through the descriptor */
	return c.ret_fd >= 0 ? 0 : -EPROTO;
}
