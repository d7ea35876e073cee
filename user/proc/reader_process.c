/* SPDX-License-Identifier: MIT */
/*
 * reader_process.c - see reader_priv.h.
 *
 * Keeps nothing of what it reads, because it may be killed at any moment. It parses only /proc's own texts;
 * files of others are parsed in a job, which is a process of its own.
 */
#include "proc/reader_priv.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/sandbox.h"
#include "base/thread.h"
#include "proc/jit_entry.h"
#include "proc/proc_text.h"

#define NO_CPU_LIMIT UINT64_MAX

struct job {
	pid_t pid;
	uint32_t uid;
};

struct reading {
	int fd;
	reader_job_fn run;
	struct job jobs[READER_JOBS_CAP];
	size_t job_cnt;
};

struct request {
	struct reader_request head;
	const uint8_t *text; /* head.text_bytes bytes */
	int fd; /* -1: none came */
};

/* Send an answer. Closes the descriptor that is sent with it. */
static void answer(const struct reading *r, struct reader_answer *a, const void *bytes, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(fd))];
	} control = { 0 };
	struct iovec iov[2] = { { a, sizeof(*a) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1 };

	if (bytes && a->bytes <= READER_INLINE_BYTES) {
		a->is_inline = 1;
		iov[msg.msg_iovlen++] = (struct iovec){ (void *)bytes, a->bytes };
	} else if (bytes) {
		fd = memfd_create("heaptap", MFD_CLOEXEC);
		if (fd < 0 || write_all(fd, bytes, a->bytes))
			a->err = -ENOMEM;
	}
	if (fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	if (sendmsg(r->fd, &msg, MSG_NOSIGNAL) < 0)
		_exit(0); /* main is gone */
	if (fd >= 0)
		close(fd);
}

static void answer_error(const struct reading *r, int err)
{
	struct reader_answer a = { .err = err };

	answer(r, &a, NULL, -1);
}

/* Send bytes, and free them. */
static void answer_bytes(const struct reading *r, int err, char *bytes, size_t cnt)
{
	struct reader_answer a = { .err = err, .bytes = cnt };

	answer(r, &a, err ? NULL : bytes, -1);
	free(bytes);
}

static void answer_fd(const struct reading *r, int fd, const struct file_facts *facts)
{
	struct reader_answer a = { .err = fd < 0 ? fd : 0 };

	if (facts)
		a.facts = *facts;
	answer(r, &a, NULL, fd);
}

static void read_info(const struct reading *r, pid_t pid, int (*read)(pid_t, struct process_info *))
{
	struct process_info info = { 0 };
	struct reader_answer a = { .err = read(pid, &info), .bytes = sizeof(info) };

	answer(r, &a, &info, -1);
}

static void read_maps(const struct reading *r, pid_t pid, pid_t tid)
{
	char *text = NULL;
	int err = proc_maps_text_here(pid, tid, &text);

	answer_bytes(r, err, text, err ? 0 : strlen(text) + 1);
}

static void read_text(const struct reading *r, const struct request *q)
{
	char *text = NULL;
	size_t bytes = 0;
	int err = proc_text_read_all(q->head.pid, (const char *)q->text, PROC_TEXT_BYTES_CAP, &text,
				     &bytes);

	answer_bytes(r, err, text, bytes);
}

static void read_memory(const struct reading *r, const struct reader_request *q)
{
	char *buf = q->memory.bytes <= READER_BYTES_CAP ? malloc(q->memory.bytes + 1) : NULL;
	int err = buf ? process_memory_here(q->tid, q->memory.addr, buf, q->memory.bytes) : -ENOMEM;

	answer_bytes(r, err, buf, q->memory.bytes);
}

static void read_root(const struct reading *r, pid_t tid)
{
	answer_error(r, process_root_here(tid));
}

static void open_map(const struct reading *r, const struct request *q)
{
	const struct proc_map map = {
		.start_addr = q->head.map.start_addr,
		.end_addr = q->head.map.end_addr,
		.off = q->head.map.off,
		.ino = q->head.map.ino,
		.dev = q->head.map.dev,
		.is_deleted = q->head.map.is_deleted,
		.path = (const char *)q->text,
	};
	struct file_facts facts = { 0 };

	answer_fd(r,
		  process_open_map_here(q->head.pid, q->head.tid, &map, q->head.map.refuses_foreign,
					&facts),
		  &facts);
}

static void open_jit_map(const struct reading *r, const struct request *q)
{
	const struct process_info info = {
		.start_time_ticks = q->head.jit.start_time_ticks,
		.uid = q->head.jit.uid,
		.ns_pid = q->head.jit.ns_pid,
	};

	answer_fd(r, jit_map_open(NULL, (const char *)q->text, &info), NULL);
}

/*
 * Jobs.
 */

static void reap(struct reading *r)
{
	for (size_t i = r->job_cnt; i-- > 0;)
		if (waitpid(r->jobs[i].pid, NULL, WNOHANG))
			r->jobs[i] = r->jobs[--r->job_cnt];
}

static bool has_room(const struct reading *r, uint32_t uid)
{
	size_t of_user = 0;

	for (size_t i = 0; i < r->job_cnt; i++)
		of_user += r->jobs[i].uid == uid;
	return r->job_cnt < READER_JOBS_CAP && of_user < READER_JOBS_OF_USER_CAP;
}

static _Noreturn void run_job(const struct reading *r, const struct request *q, pid_t parent,
			      int out_fd)
{
	const int keep[] = { out_fd, q->fd };
	int fd = -1;

	thread_use_short_slices(); /* as main is: a program that was just executed may end soon */
	/* The wall clock ends a job that waits for an unreadable file; its computing has limits of its own. */
	alarm(q->head.job.wall_s);
	(void)prctl(PR_SET_NAME, "heaptap-analyse");
	if (sandbox_begin(parent, keep, q->fd >= 0 ? 2 : 1, q->head.job.wall_s))
		_exit(1);
	if (q->fd >= 0) {
		fd = regular_file_reopen(q->fd);
		if (fd < 0)
			_exit(1);
		close(q->fd);
	}
	_exit(r->run(q->head.job.kind, fd, q->text, q->head.text_bytes, out_fd));
}

static void start_job(struct reading *r, const struct request *q)
{
	pid_t parent = getpid(), pid;
	int pipe_fd[2];

	reap(r);
	if (!r->run || !has_room(r, q->head.job.uid)) {
		answer_error(r, r->run ? -EBUSY : -ENOSYS);
		return;
	}
	if (pipe2(pipe_fd, O_CLOEXEC)) {
		answer_error(r, -errno);
		return;
	}
	pid = fork();
	if (!pid)
		run_job(r, q, parent, pipe_fd[1]);
	close(pipe_fd[1]);
	if (pid < 0) {
		close(pipe_fd[0]);
		answer_error(r, -EAGAIN);
		return;
	}
	r->jobs[r->job_cnt++] = (struct job){ pid, q->head.job.uid };
	answer_fd(r, pipe_fd[0], NULL);
}

static void serve(struct reading *r, const struct request *q)
{
	switch (q->head.op) {
	case READ_INFO:
		read_info(r, q->head.pid, process_info_here);
		break;
	case READ_IMAGE:
		read_info(r, q->head.pid, process_image_here);
		break;
	case READ_GLANCE:
		read_info(r, q->head.pid, process_glance_here);
		break;
	case READ_MAPS:
		read_maps(r, q->head.pid, q->head.tid);
		break;
	case READ_TEXT:
		read_text(r, q);
		break;
	case READ_MEMORY:
		read_memory(r, &q->head);
		break;
	case READ_ROOT:
		read_root(r, q->head.tid);
		break;
	case OPEN_MAP:
		open_map(r, q);
		break;
	case OPEN_JIT_MAP:
		open_jit_map(r, q);
		break;
	case RUN_JOB:
		start_job(r, q);
		break;
	default:
		answer_error(r, -EINVAL);
	}
}

static void receive(const struct reading *r, uint8_t *buf, size_t buf_bytes, struct request *ret)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { buf, buf_bytes };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	const struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(ret->head))
		_exit(0); /* main is gone */
	memcpy(&ret->head, buf, sizeof(ret->head));
	ret->text = buf + sizeof(ret->head);
	if (ret->head.text_bytes != (size_t)n - sizeof(ret->head))
		_exit(1);
	c = CMSG_FIRSTHDR(&msg);
	ret->fd = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&ret->fd, CMSG_DATA(c), sizeof(ret->fd));
}

void reader_process_run(int fd, pid_t parent, reader_job_fn job)
{
	static uint8_t buf[sizeof(struct reader_request) + READER_ARGS_BYTES_CAP];
	struct reading r = { .fd = fd, .run = job };
	struct request q;

	(void)prctl(PR_SET_NAME, "heaptap-reader");
	if (sandbox_begin(parent, &fd, 1, NO_CPU_LIMIT))
		_exit(1);
	(void)sandbox_keep_reading(); /* else it keeps those of main */
	thread_use_short_slices();
	for (;;) {
		receive(&r, buf, sizeof(buf), &q);
		serve(&r, &q);
		if (q.fd >= 0)
			close(q.fd);
	}
}
