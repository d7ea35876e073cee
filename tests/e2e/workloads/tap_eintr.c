/* SPDX-License-Identifier: MIT */
/*
 * tap_eintr - many threads, each in another system call that a signal can end, and all that these calls answer.
 *
 * Three threads for each call that has a time limit or none (table): one whose call ends by its limit only, one whose call
 * never ends, and one that gets signals, from another process: SIGUSR1, whose handler ends the call (EINTR), and SIGUSR2,
 * whose handler has SA_RESTART, where it ends some. The other process sends one when the thread is asleep in its call, and
 * looks what becomes of it: the call returned, was begun again, or nothing happened within 3 s. A stop by a tap happens in
 * between, and must not be seen.
 *
 * When told to "do" it, says what was seen so far, "SET <call> <signal> <what>", and COUNT <calls> <signals>: what is to
 * be compared with a run without stops. Calls may last longer than their limit, but not shorter (SHORT).
 */
#include "tap_target.h"
#include "tap_eintr_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#define WAITERS_CAP 200
#define SEEN_CAP 6
#define AWAIT_US 3000000L
#define SLEEP_TRIES 4000

enum outcome { RETURNED, RESTARTED, NOTHING };

struct seen {
	int signal, outcome, err, is_short;
	long ret;
	unsigned cnt;
};

/* Shared with the process that sends. */
struct waiter {
	pid_t tid;
	int call, gets_signals;
	volatile unsigned returned_cnt, handled_cnt;
	long ret;
	int err;
	struct seen seen[SEEN_CAP];
};
struct shared {
	unsigned waiter_cnt;
	volatile unsigned call_cnt, sent_cnt;
	struct waiter waiter[WAITERS_CAP];
};

static struct shared *all;
static __thread struct waiter *self;

static void see(struct waiter *w, struct seen s)
{
	for (int i = 0; i < SEEN_CAP; i++) {
		struct seen *t = &w->seen[i];

		if (t->cnt && (t->signal != s.signal || t->outcome != s.outcome ||
			       t->ret != s.ret || t->err != s.err || t->is_short != s.is_short))
			continue;
		s.cnt = t->cnt + 1;
		*t = s;
		return;
	}
}

static void on_signal(int sig)
{
	(void)sig;
	if (self)
		self->handled_cnt++;
}

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Who gets signals leaves the account to the sender, unless nobody has sent one. */
static void *wait_always(void *arg)
{
	struct waiter *w = arg;
	const struct call *call = &calls[w->call];
	struct call_state state = { .is_set = 0 };

	self = w;
	if (call->set_up)
		call->set_up(&state);
	w->tid = (pid_t)syscall(SYS_gettid);
	for (;;) {
		unsigned handled = w->handled_cnt;
		long began = now_us(), ret;

		errno = 0;
		ret = call->make(&state);
		w->ret = ret;
		w->err = ret < 0 ? errno : 0;
		__atomic_fetch_add(&all->call_cnt, 1, __ATOMIC_RELAXED);
		if (!w->gets_signals || w->handled_cnt == handled)
			see(w, (struct seen){ .err = w->err,
					      .ret = ret,
					      .is_short = now_us() - began <
							  call->limit_ms * 1000L - 1000 });
		__atomic_fetch_add(&w->returned_cnt, 1, __ATOMIC_RELEASE);
		if (call->limit_ms == 0)
			nap_us(20000);
	}
	return NULL;
}

/* Of a sleeping thread it is the number of its call. Stopped ones have it as well. */
static int is_asleep(const struct waiter *w, pid_t pid)
{
	char path[64], text[64] = "";
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)w->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && atol(text) == calls[w->call].nr && text[0] != 'r';
}

static int await_asleep(const struct waiter *w, pid_t pid)
{
	for (int i = 0; i < SLEEP_TRIES; i++) {
		if (is_asleep(w, pid))
			return 1;
		usleep(50);
	}
	return 0;
}

static void send_one(struct waiter *w, pid_t pid, int sig)
{
	unsigned returned = w->returned_cnt, handled = w->handled_cnt;
	struct seen s = { .signal = sig, .outcome = NOTHING };
	long end;

	if (!await_asleep(w, pid) || w->returned_cnt != returned)
		return;
	syscall(SYS_tgkill, pid, w->tid, sig);
	end = now_us() + AWAIT_US; /* the wait for its sleep may have been long */
	all->sent_cnt++;
	while (now_us() < end && s.outcome == NOTHING) {
		if (w->returned_cnt != returned)
			s = (struct seen){
				.signal = sig, .outcome = RETURNED, .ret = w->ret, .err = w->err
			};
		else if (w->handled_cnt != handled && is_asleep(w, pid))
			/* looked at once more: it may have returned meanwhile, and be in the next one */
			s.outcome = w->returned_cnt == returned ? RESTARTED : NOTHING;
		else
			usleep(20);
	}
	see(w, s);
}

/* Those which the kernel begins again by itself are not what a stop endangers: they get a signal more rarely. */
static int is_begun_again(const struct waiter *w)
{
	for (int i = 0; i < SEEN_CAP && w->seen[i].cnt; i++)
		if (w->seen[i].outcome == RESTARTED)
			return 1;
	return 0;
}

static void send_always(pid_t pid)
{
	unsigned random = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "eintr-sender");
	while (getppid() == pid) {
		struct waiter *w = &all->waiter[(random >> 8) % all->waiter_cnt];

		random = random * 1103515245 + 12345;
		if (!w->gets_signals || !w->tid || (is_begun_again(w) && (random >> 24 & 7)))
			continue;
		send_one(w, pid, random >> 30 & 1 ? SIGUSR1 : SIGUSR2);
		usleep(random >> 16 & 127);
	}
	_exit(0);
}

static void say_seen(void)
{
	static const char *const word[] = { "returned", "restarted", "NOTHING" };

	for (unsigned i = 0; i < all->waiter_cnt; i++) {
		const struct waiter *w = &all->waiter[i];

		for (int j = 0; j < SEEN_CAP && w->seen[j].cnt; j++) {
			const struct seen *s = &w->seen[j];

			say("SET %s %s %s", calls[w->call].name,
			    s->signal == SIGUSR1 ? "SIGUSR1" :
						   (s->signal == SIGUSR2 ? "SIGUSR2" : "-"),
			    word[s->outcome]);
			if (s->outcome == RETURNED)
				say(" %ld %s", s->ret, s->err ? strerrorname_np(s->err) : "-");
			say(s->is_short ? " SHORT\n" : "\n");
		}
	}
	say("COUNT %u %u\n", all->call_cnt, all->sent_cnt);
}

static void add_waiter(int call, int gets_signals)
{
	struct waiter *w = &all->waiter[all->waiter_cnt];

	if (all->waiter_cnt == WAITERS_CAP)
		bad("too many");
	w->call = call;
	w->gets_signals = gets_signals;
	all->waiter_cnt++;
	begin(wait_always, w);
}

int main(void)
{
	struct sigaction ends = { .sa_handler = on_signal };
	struct sigaction restarts = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pid_t pid = getpid();

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		bad("mmap");
	sigaction(SIGUSR1, &ends, NULL);
	sigaction(SIGUSR2, &restarts, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (unshare(CLONE_NEWIPC))
		bad("unshare");
	block_awaited();
	for (int i = 0; calls[i].name; i++) {
		add_waiter(i, 0);
		if (calls[i].limit_ms < 0)
			add_waiter(i, 1);
	}
	begin(allocate, (void *)1);
	nap_us(100000);
	be_ready();
	if (!fork())
		send_always(pid);
	obey(say_seen);
}
