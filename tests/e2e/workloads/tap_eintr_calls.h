/* SPDX-License-Identifier: MIT */
/*
 * tap_eintr_calls.h - system calls that wait, for tap_eintr.c: how each is made so that it waits, with a limit or without.
 *
 * All by their number, since the sender looks for it in /proc.
 */
#ifndef E2E_TAP_EINTR_CALLS_H
#define E2E_TAP_EINTR_CALLS_H

#include "tap_eintr_files.h"

#define MAKE(name) static long name(struct call_state *s)

struct call {
	const char *name;
	long nr;
	int limit_ms; /* FOR_EVER: none; 0: it does not wait */
	void (*set_up)(struct call_state *s);
	long (*make)(struct call_state *s);
};

/* The calls. */
static char sink[65536];

MAKE(epoll_wait_limited)
{
	struct epoll_event e;
	return syscall(SYS_epoll_wait, s->fd[0], &e, 1, LIMIT_MS);
}
MAKE(epoll_wait_ever)
{
	struct epoll_event e;
	return syscall(SYS_epoll_wait, s->fd[0], &e, 1, -1);
}
MAKE(epoll_pwait_limited)
{
	struct epoll_event e;
	uint64_t mask = 0;

	return syscall(SYS_epoll_pwait, s->fd[0], &e, 1, LIMIT_MS, &mask, 8);
}
MAKE(epoll_pwait_ever)
{
	struct epoll_event e;
	uint64_t mask = 0;

	return syscall(SYS_epoll_pwait, s->fd[0], &e, 1, -1, &mask, 8);
}
MAKE(epoll_pwait2_limited)
{
	struct epoll_event e;
	uint64_t mask = 0;

	return syscall(SYS_epoll_pwait2, s->fd[0], &e, 1, &limit_ts, &mask, 8);
}
MAKE(epoll_pwait2_ever)
{
	struct epoll_event e;
	uint64_t mask = 0;

	return syscall(SYS_epoll_pwait2, s->fd[0], &e, 1, NULL, &mask, 8);
}
static long do_poll(struct call_state *s, int ms)
{
	struct pollfd p = { s->fd[0], POLLIN, 0 };

	return syscall(SYS_poll, &p, 1, ms);
}
MAKE(poll_limited)
{
	return do_poll(s, LIMIT_MS);
}
MAKE(poll_ever)
{
	return do_poll(s, -1);
}
static long do_ppoll(struct call_state *s, const struct timespec *limit)
{
	struct pollfd p = { s->fd[0], POLLIN, 0 };
	struct timespec ts = limit_ts;
	uint64_t mask = 0;

	return syscall(SYS_ppoll, &p, 1, limit ? &ts : NULL, &mask, 8);
}
MAKE(ppoll_limited)
{
	return do_ppoll(s, &limit_ts);
}
MAKE(ppoll_ever)
{
	return do_ppoll(s, NULL);
}
MAKE(select_limited)
{
	struct timeval limit = { 0, LIMIT_MS * 1000 };

	(void)s;
	return syscall(SYS_select, 0, NULL, NULL, NULL, &limit);
}
MAKE(select_ever)
{
	(void)s;
	return syscall(SYS_select, 0, NULL, NULL, NULL, NULL);
}
static long do_pselect(int is_limited)
{
	struct timespec ts = limit_ts;
	uint64_t mask = 0;
	struct {
		const void *set;
		size_t bytes;
	} arg = { &mask, 8 };

	return syscall(SYS_pselect6, 0, NULL, NULL, NULL, is_limited ? &ts : NULL, &arg);
}
MAKE(pselect_limited)
{
	(void)s;
	return do_pselect(1);
}
MAKE(pselect_ever)
{
	(void)s;
	return do_pselect(0);
}
MAKE(nanosleep_limited)
{
	(void)s;
	return syscall(SYS_nanosleep, &limit_ts, NULL);
}
MAKE(clock_relative)
{
	(void)s;
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &limit_ts, NULL);
}
MAKE(clock_absolute)
{
	struct timespec end = end_of(CLOCK_MONOTONIC);

	(void)s;
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}
MAKE(futex_limited)
{
	return syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, s->word, &limit_ts, NULL, 0);
}
MAKE(futex_ever)
{
	return syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, s->word, NULL, NULL, 0);
}
MAKE(futex_bitset_limited)
{
	struct timespec end = end_of(CLOCK_MONOTONIC);

	return syscall(SYS_futex, &s->word, FUTEX_WAIT_BITSET_PRIVATE, s->word, &end, NULL, 1);
}
MAKE(futex_pi_limited)
{
	struct timespec end = end_of(CLOCK_REALTIME);

	return syscall(SYS_futex, &s->word, FUTEX_LOCK_PI_PRIVATE, 0, &end, NULL, 0);
}
MAKE(futex_pi_ever)
{
	return syscall(SYS_futex, &s->word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}
MAKE(futex_requeue_limited)
{
	struct timespec end = end_of(CLOCK_MONOTONIC);

	return syscall(SYS_futex, &s->word2, FUTEX_WAIT_REQUEUE_PI_PRIVATE, s->word2, &end,
		       &s->word, 0);
}
MAKE(futex_requeue_ever)
{
	return syscall(SYS_futex, &s->word2, FUTEX_WAIT_REQUEUE_PI_PRIVATE, s->word2, NULL,
		       &s->word, 0);
}
static long do_waitv(struct call_state *s, int is_limited)
{
	struct timespec end = end_of(CLOCK_MONOTONIC);
	struct {
		uint64_t value, addr;
		uint32_t flags, reserved;
	} one = { s->word, (uintptr_t)&s->word, 2 | 128, 0 }; /* 32 bits, private */

	return syscall(SYS_futex_waitv, &one, 1, 0, is_limited ? &end : NULL, CLOCK_MONOTONIC);
}
MAKE(futex_waitv_limited)
{
	return do_waitv(s, 1);
}
MAKE(futex_waitv_ever)
{
	return do_waitv(s, 0);
}
static long do_semaphore(struct call_state *s, long nr, const struct timespec *limit)
{
	struct sembuf down = { 0, -1, 0 };

	return syscall(nr, s->id, &down, 1, limit);
}
MAKE(semtimedop_limited)
{
	return do_semaphore(s, SYS_semtimedop, &limit_ts);
}
MAKE(semop_ever)
{
	return do_semaphore(s, SYS_semop, NULL);
}
MAKE(msgrcv_ever)
{
	return syscall(SYS_msgrcv, s->id, sink, 64, 0, 0);
}
MAKE(msgsnd_ever)
{
	struct {
		long kind;
		char text[4096];
	} m = { 1, "" };

	return syscall(SYS_msgsnd, s->id, &m, sizeof(m.text), 0);
}
MAKE(mq_receive_limited)
{
	struct timespec end = end_of(CLOCK_REALTIME);

	return syscall(SYS_mq_timedreceive, s->fd[0], s->text, 16, NULL, &end);
}
MAKE(mq_receive_ever)
{
	return syscall(SYS_mq_timedreceive, s->fd[0], s->text, 16, NULL, NULL);
}
MAKE(mq_send_limited)
{
	struct timespec end = end_of(CLOCK_REALTIME);

	return syscall(SYS_mq_timedsend, s->fd[0], s->text, 1, 0, &end);
}
MAKE(mq_send_ever)
{
	return syscall(SYS_mq_timedsend, s->fd[0], s->text, 1, 0, NULL);
}
MAKE(read_ever)
{
	return syscall(SYS_read, s->fd[0], s->text, sizeof(s->text));
}
MAKE(read_signal)
{
	return syscall(SYS_read, s->fd[0], sink, sizeof(struct signalfd_siginfo));
}
MAKE(read_inotify)
{
	return syscall(SYS_read, s->fd[0], sink, 4096);
}
MAKE(write_ever)
{
	return syscall(SYS_write, s->fd[1], s->text, sizeof(s->text));
}
MAKE(write_event)
{
	const uint64_t much = 0xfffffffffffffffeULL;

	return syscall(SYS_write, s->fd[0], &much, 8);
}
MAKE(read_timer)
{
	const struct itimerspec once = { { 0, 0 }, limit_ts };

	MUST(timerfd_settime(s->fd[0], 0, &once, NULL));
	return syscall(SYS_read, s->fd[0], s->text, 8);
}
MAKE(accept_ever)
{
	return syscall(SYS_accept4, s->fd[0], NULL, NULL, 0);
}
MAKE(connect_ever)
{
	return syscall(SYS_connect, s->fd[1], &s->address, sizeof(s->address));
}
static long do_receive(struct call_state *s, long nr)
{
	struct iovec part = { s->text, sizeof(s->text) };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };

	return nr == SYS_recvmsg ? syscall(nr, s->fd[0], &m.msg_hdr, 0) :
				   syscall(nr, s->fd[0], &m, 1, 0, NULL);
}
MAKE(recvmsg_ever)
{
	return do_receive(s, SYS_recvmsg);
}
MAKE(recvmmsg_ever)
{
	return do_receive(s, SYS_recvmmsg);
}
static long do_events(struct call_state *s, long nr, const struct timespec *limit)
{
	struct io_event e;
	struct timespec ts = limit_ts;

	return syscall(nr, s->context, 1, 1, &e, limit ? &ts : NULL, NULL);
}
MAKE(io_getevents_limited)
{
	return do_events(s, SYS_io_getevents, &limit_ts);
}
MAKE(io_getevents_ever)
{
	return do_events(s, SYS_io_getevents, NULL);
}
MAKE(io_pgetevents_limited)
{
	return do_events(s, SYS_io_pgetevents, &limit_ts);
}
MAKE(io_pgetevents_ever)
{
	return do_events(s, SYS_io_pgetevents, NULL);
}
MAKE(uring_limited)
{
	struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&limit_ts };

	return syscall(SYS_io_uring_enter, s->fd[0], 0, 1,
		       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg));
}
MAKE(uring_ever)
{
	return syscall(SYS_io_uring_enter, s->fd[0], 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}
static long do_sigtimedwait(const struct timespec *limit)
{
	uint64_t mask = 1ULL << (AWAITED_SIGNAL - 1);

	return syscall(SYS_rt_sigtimedwait, &mask, NULL, limit, 8);
}
MAKE(sigtimedwait_limited)
{
	(void)s;
	return do_sigtimedwait(&limit_ts);
}
MAKE(sigtimedwait_ever)
{
	(void)s;
	return do_sigtimedwait(NULL);
}
MAKE(sigsuspend_ever)
{
	uint64_t mask = 0;

	(void)s;
	return syscall(SYS_rt_sigsuspend, &mask, 8);
}
MAKE(pause_ever)
{
	(void)s;
	return syscall(SYS_pause);
}
MAKE(wait4_ever)
{
	return syscall(SYS_wait4, s->child, NULL, 0, NULL);
}
MAKE(waitid_ever)
{
	return syscall(SYS_waitid, P_PID, s->child, NULL, WEXITED, NULL);
}
MAKE(flock_ever)
{
	return syscall(SYS_flock, s->fd[0], LOCK_EX);
}
MAKE(setlkw_ever)
{
	struct flock lock = whole_file();

	return syscall(SYS_fcntl, s->fd[0], F_SETLKW, &lock);
}
MAKE(ofd_setlkw_ever)
{
	struct flock lock = whole_file();

	return syscall(SYS_fcntl, s->fd[0], F_OFD_SETLKW, &lock);
}
MAKE(open_ever)
{
	return syscall(SYS_openat, AT_FDCWD, s->text, O_RDONLY | O_CLOEXEC, 0);
}
MAKE(splice_ever)
{
	return syscall(SYS_splice, s->fd[0], NULL, s->id, NULL, 4096, 0);
}
SET_UP(set_splice)
{
	int to[2];

	set_pipe(s);
	MUST(pipe2(to, O_CLOEXEC));
	s->id = to[1];
}
MAKE(tee_ever)
{
	return syscall(SYS_tee, s->fd[0], s->id, 4096, 0);
}
/* Of more than 256 bytes a stop may leave some, as the manual of getrandom(2) says of signals. */
MAKE(getrandom_now)
{
	(void)s;
	return syscall(SYS_getrandom, sink, 256, 0);
}
MAKE(sync_range)
{
	return syscall(SYS_sync_file_range, s->fd[0], 0, 4096, 7);
}

static const struct call calls[] = {
	{ "epoll_wait", SYS_epoll_wait, LIMIT_MS, set_epoll, epoll_wait_limited },
	{ "epoll_wait_ever", SYS_epoll_wait, FOR_EVER, set_epoll, epoll_wait_ever },
	{ "epoll_pwait", SYS_epoll_pwait, LIMIT_MS, set_epoll, epoll_pwait_limited },
	{ "epoll_pwait_ever", SYS_epoll_pwait, FOR_EVER, set_epoll, epoll_pwait_ever },
	{ "epoll_pwait2", SYS_epoll_pwait2, LIMIT_MS, set_epoll, epoll_pwait2_limited },
	{ "epoll_pwait2_ever", SYS_epoll_pwait2, FOR_EVER, set_epoll, epoll_pwait2_ever },
	{ "poll", SYS_poll, LIMIT_MS, set_pipe, poll_limited },
	{ "poll_ever", SYS_poll, FOR_EVER, set_pipe, poll_ever },
	{ "ppoll", SYS_ppoll, LIMIT_MS, set_pipe, ppoll_limited },
	{ "ppoll_ever", SYS_ppoll, FOR_EVER, set_pipe, ppoll_ever },
	{ "select", SYS_select, LIMIT_MS, NULL, select_limited },
	{ "select_ever", SYS_select, FOR_EVER, NULL, select_ever },
	{ "pselect6", SYS_pselect6, LIMIT_MS, NULL, pselect_limited },
	{ "pselect6_ever", SYS_pselect6, FOR_EVER, NULL, pselect_ever },
	{ "nanosleep", SYS_nanosleep, LIMIT_MS, NULL, nanosleep_limited },
	{ "clock_nanosleep", SYS_clock_nanosleep, LIMIT_MS, NULL, clock_relative },
	{ "clock_nanosleep_absolute", SYS_clock_nanosleep, LIMIT_MS, NULL, clock_absolute },
	{ "futex", SYS_futex, LIMIT_MS, NULL, futex_limited },
	{ "futex_ever", SYS_futex, FOR_EVER, NULL, futex_ever },
	{ "futex_bitset", SYS_futex, LIMIT_MS, NULL, futex_bitset_limited },
	{ "futex_pi", SYS_futex, LIMIT_MS, set_pi, futex_pi_limited },
	{ "futex_pi_ever", SYS_futex, FOR_EVER, set_pi, futex_pi_ever },
	{ "futex_requeue", SYS_futex, LIMIT_MS, set_pi, futex_requeue_limited },
	{ "futex_requeue_ever", SYS_futex, FOR_EVER, set_pi, futex_requeue_ever },
	{ "futex_waitv", SYS_futex_waitv, LIMIT_MS, NULL, futex_waitv_limited },
	{ "futex_waitv_ever", SYS_futex_waitv, FOR_EVER, NULL, futex_waitv_ever },
	{ "semtimedop", SYS_semtimedop, LIMIT_MS, set_semaphore, semtimedop_limited },
	{ "semop", SYS_semop, FOR_EVER, set_semaphore, semop_ever },
	{ "msgrcv", SYS_msgrcv, FOR_EVER, set_queue, msgrcv_ever },
	{ "msgsnd", SYS_msgsnd, FOR_EVER, set_full_queue, msgsnd_ever },
	{ "mq_timedreceive", SYS_mq_timedreceive, LIMIT_MS, set_mq, mq_receive_limited },
	{ "mq_receive", SYS_mq_timedreceive, FOR_EVER, set_mq, mq_receive_ever },
	{ "mq_timedsend", SYS_mq_timedsend, LIMIT_MS, set_full_mq, mq_send_limited },
	{ "mq_send", SYS_mq_timedsend, FOR_EVER, set_full_mq, mq_send_ever },
	{ "read_pipe", SYS_read, FOR_EVER, set_pipe, read_ever },
	{ "write_pipe", SYS_write, FOR_EVER, set_full_pipe, write_ever },
	{ "read_eventfd", SYS_read, FOR_EVER, set_event, read_ever },
	{ "write_eventfd", SYS_write, FOR_EVER, set_full_event, write_event },
	{ "read_timerfd", SYS_read, LIMIT_MS, set_timer, read_timer },
	{ "read_timerfd_ever", SYS_read, FOR_EVER, set_timer, read_ever },
	{ "read_signalfd", SYS_read, FOR_EVER, set_signalfd, read_signal },
	{ "read_inotify", SYS_read, FOR_EVER, set_inotify, read_inotify },
	{ "read_socket", SYS_read, FOR_EVER, set_socket, read_ever },
	{ "read_socket_limited", SYS_read, LIMIT_MS, set_limited_socket, read_ever },
	{ "write_socket", SYS_write, FOR_EVER, set_full_socket, write_ever },
	{ "write_socket_limited", SYS_write, LIMIT_MS, set_limited_full_socket, write_ever },
	{ "accept", SYS_accept4, FOR_EVER, set_listener, accept_ever },
	{ "accept_limited", SYS_accept4, LIMIT_MS, set_limited_listener, accept_ever },
	{ "connect", SYS_connect, FOR_EVER, set_full_backlog, connect_ever },
	{ "recvmsg", SYS_recvmsg, FOR_EVER, set_socket, recvmsg_ever },
	{ "recvmsg_limited", SYS_recvmsg, LIMIT_MS, set_limited_socket, recvmsg_ever },
	{ "recvmmsg", SYS_recvmmsg, FOR_EVER, set_socket, recvmmsg_ever },
	{ "recvmmsg_limited", SYS_recvmmsg, LIMIT_MS, set_limited_socket, recvmmsg_ever },
	{ "io_getevents", SYS_io_getevents, LIMIT_MS, set_aio, io_getevents_limited },
	{ "io_getevents_ever", SYS_io_getevents, FOR_EVER, set_aio, io_getevents_ever },
	{ "io_pgetevents", SYS_io_pgetevents, LIMIT_MS, set_aio, io_pgetevents_limited },
	{ "io_pgetevents_ever", SYS_io_pgetevents, FOR_EVER, set_aio, io_pgetevents_ever },
	{ "io_uring_enter", SYS_io_uring_enter, LIMIT_MS, set_uring, uring_limited },
	{ "io_uring_enter_ever", SYS_io_uring_enter, FOR_EVER, set_uring, uring_ever },
	{ "sigtimedwait", SYS_rt_sigtimedwait, LIMIT_MS, NULL, sigtimedwait_limited },
	{ "sigtimedwait_ever", SYS_rt_sigtimedwait, FOR_EVER, NULL, sigtimedwait_ever },
	{ "sigsuspend", SYS_rt_sigsuspend, FOR_EVER, NULL, sigsuspend_ever },
	{ "pause", SYS_pause, FOR_EVER, NULL, pause_ever },
	{ "wait4", SYS_wait4, FOR_EVER, set_child, wait4_ever },
	{ "waitid", SYS_waitid, FOR_EVER, set_child, waitid_ever },
	{ "flock", SYS_flock, FOR_EVER, set_locked, flock_ever },
	{ "fcntl_setlkw", SYS_fcntl, FOR_EVER, set_ofd_locked, setlkw_ever },
	{ "fcntl_ofd_setlkw", SYS_fcntl, FOR_EVER, set_ofd_locked, ofd_setlkw_ever },
	{ "open_fifo", SYS_openat, FOR_EVER, set_fifo, open_ever },
	{ "splice", SYS_splice, FOR_EVER, set_splice, splice_ever },
	{ "tee", SYS_tee, FOR_EVER, set_splice, tee_ever },
	{ "getrandom", SYS_getrandom, 0, NULL, getrandom_now },
	{ "sync_file_range", SYS_sync_file_range, 0, set_file, sync_range },
	{ NULL, 0, 0, NULL, NULL },
};

#endif
