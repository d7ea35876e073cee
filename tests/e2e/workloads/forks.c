/* SPDX-License-Identifier: MIT */
/*
 * forks.c - a program with children. E2E_MODE=plain: a child is forked before and one after the
 * work; both allocate at the parent's sites, and each writes what a malloc and free cost it, as
 * "COST <who> <ns>" (E2E_COST_MS: how long it waits for a cost without probes, 3000). =follow: two children that account for themselves, as "EXPECT" lines with
 * "PID <pid>" before them, and stay alive; E2E_CHILD_DELAY_MS: before they begin. =storm: 200 short-lived children while the parent works.
 * =vfork: the same with vfork and exec.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "ledger.h"

SITE void *site_parent(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_both(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_child(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void work(int n)
{
	for (int i = 0; i < n; i++) {
		site_parent(907);
		site_both(911);
		free(led_free(site_both(919)));
	}
}

static double ms_between(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) * 1e3 + (b->tv_nsec - a->tv_nsec) / 1e6;
}

/* Processor time of this process: a child's begins with it. */
static double cpu_ms(void)
{
	const struct timespec zero = { 0 };
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return ms_between(&zero, &now);
}

/* No pair costs as much without a probe, and none as little with one. */
#define PROBED_NS 200

/*
 * The best of many rounds: noise only adds. They go on for some time, because the breakpoints that a
 * child inherits are gone when the kernel has waited for a grace period or two; on a busy machine that is
 * long: for at most so much of its own processor time while the best is one of a probe. Who takes them out gets no
 * more of a busy processor.
 */
static double pair_cost_ns(double most_ms)
{
	struct timespec begin, a, b = { 0 };
	double best = 1e9;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int round = 0;
	     round < 40 || ms_between(&begin, &b) < 250 || (best > PROBED_NS && cpu_ms() < most_ms);
	     round++) {
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int i = 0; i < 500; i++)
			free(OPAQUE(malloc(64)));
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns = ms_between(&a, &b) * 1e6 / 500;
		if (ns < best)
			best = ns;
	}
	return best;
}

static void say_cost(const char *who, double most_ms)
{
	char line[64];

	snprintf(line, sizeof(line), "COST %s %.1f\n", who, pair_cost_ns(most_ms));
	e2e_say(line);
}

/* pipe of which the child waits for the end, so that it lives as long as it is told to */
static int hold[2];
/* pipe into which a child writes when it has said its cost: it is measured in the time of the recording */
static int said[2];

static pid_t child(const char *name)
{
	const char *most_ms = getenv("E2E_COST_MS");
	pid_t pid = fork();
	char c;

	if (pid)
		return pid;
	alarm(900);
	close(hold[1]);
	for (int i = 0; i < 1000; i++) {
		void *p = malloc(911);

		if (i % 2)
			free(p);
	}
	site_both(929);
	site_child(937);
	say_cost(name, most_ms ? atof(most_ms) : 3000);
	if (write(said[1], name, 1) != 1 || read(hold[0], &c, 1) < 0)
		_exit(3);
	_exit(0);
}

static pid_t followed_child(int id)
{
	pid_t pid;
	char line[64], name[16], c;

	pid = fork();
	if (pid)
		return pid;
	alarm(900);
	close(hold[1]);
	memset(led_rows, 0, sizeof(led_rows));
	snprintf(name, sizeof(name), "child%d", id);
	led_name_thread(name);
	if (getenv("E2E_CHILD_DELAY_MS"))
		usleep(1000 * strtol(getenv("E2E_CHILD_DELAY_MS"), NULL, 10));
	for (int i = 0; i < 101 * id; i++)
		site_child(941);
	for (int i = 0; i < 11; i++)
		free(led_free(site_both(947 + id)));
	site_both(953);
	snprintf(line, sizeof(line), "PID %d\n", (int)getpid());
	e2e_say(line);
	e2e_print_ledger();
	snprintf(line, sizeof(line), "END %d\n", (int)getpid());
	e2e_say(line);
	if (read(hold[0], &c, 1) < 0)
		_exit(3);
	_exit(0);
}

static void storm(bool with_vfork)
{
	for (int i = 0; i < 200; i++) {
		pid_t pid = with_vfork ? vfork() : fork();
		int status;

		if (!pid) {
			if (with_vfork)
				execl("/bin/true", "true", (char *)NULL);
			else
				for (int k = 0; k < 50; k++)
					free(OPAQUE(malloc(967)));
			_exit(0);
		}
		if (pid < 0)
			led_die("forks: no child\n");
		work(3);
		waitpid(pid, &status, 0);
		if (status) {
			dprintf(2, "forks: child %d ended with status %x\n", i, status);
			_exit(97);
		}
	}
}

int main(void)
{
	const char *mode = getenv("E2E_MODE");
	pid_t pid[2] = { 0, 0 };
	int status, bad = 0, said_cnt = 0;
	char c;

	if (!mode || pipe(hold) || pipe(said))
		led_die("forks: E2E_MODE is not set\n");
	e2e_ready();
	if (!strcmp(mode, "plain")) {
		pid[0] = child("early");
		usleep(300000);
		work(101);
		pid[1] = child("late");
		usleep(300000);
		say_cost("parent", 0);
		close(said[1]);
		while (read(said[0], &c, 1) == 1)
			if (++said_cnt == 2)
				break;
	} else if (!strcmp(mode, "follow")) {
		work(53);
		pid[0] = followed_child(1);
		usleep(300000);
		pid[1] = followed_child(2);
		work(53);
		usleep(1500000);
		dprintf(1, "PID %d\n", (int)getpid());
	} else {
		storm(!strcmp(mode, "vfork"));
	}
	e2e_done();
	close(hold[1]);
	for (int i = 0; i < 2; i++)
		if (pid[i] && (waitpid(pid[i], &status, 0) < 0 || status))
			bad = 1;
	return bad;
}
