/* SPDX-License-Identifier: MIT */
/* timed_close.c - see timed_close.h. */
#include "kernel/timed_close.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "kernel/attach.h"

struct timed_close {
	struct attach_links *links;
	uint64_t stay_ns;
	struct timed_close_edges edges;
	pthread_t thread;
	bool has_own_thread, has_thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* is_hurried */
	bool is_hurried;
	bool is_done; /* atomic */
};

int process_cpu_clock_ns(pid_t pid, uint64_t *ret_ns)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return -ESRCH;
	*ret_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

static void sleep_until(struct timed_close *c, uint64_t when_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(when_ns / NS_PER_S),
			       .tv_nsec = (long)(when_ns % NS_PER_S) };
	int err = 0;

	pthread_mutex_lock(&c->lock);
	while (!c->is_hurried && !err)
		err = pthread_cond_timedwait(&c->wake, &c->lock, &ts);
	pthread_mutex_unlock(&c->lock);
}

/* It must not wait behind the very program that it relieves. Without the right to it goes on as it is. */
static void be_punctual(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

static void *run(void *arg)
{
	struct timed_close *c = arg;
	uint64_t begin_ns;

	if (c->has_own_thread)
		be_punctual();
	begin_ns = now_ns();
	if (c->edges.begin)
		c->edges.begin(c->edges.arg);
	sleep_until(c, begin_ns + c->stay_ns);
	if (c->edges.end)
		c->edges.end(c->edges.arg);
	attach_links_free(c->links);
	__atomic_store_n(&c->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void init_wait(struct timed_close *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
}

int timed_close_start(struct attach_links *links, uint64_t stay_ns,
		      const struct timed_close_edges *edges, struct timed_close **ret)
{
	struct timed_close *c = calloc(1, sizeof(*c));

	if (!c) {
		attach_links_free(links);
		return -ENOMEM;
	}
	c->links = links;
	c->stay_ns = stay_ns;
	if (edges)
		c->edges = *edges;
	init_wait(c);
	c->has_own_thread = true;
	c->has_thread = !thread_start(&c->thread, run, c);
	if (!c->has_thread) {
		c->has_own_thread = false;
		c->is_hurried = true;
		run(c);
	}
	*ret = c;
	return 0;
}

bool timed_close_is_done(const struct timed_close *c)
{
	return __atomic_load_n(&c->is_done, __ATOMIC_ACQUIRE);
}

void timed_close_free(struct timed_close *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_hurried = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
