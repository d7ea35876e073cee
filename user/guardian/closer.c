/* SPDX-License-Identifier: MIT */
/* closer.c - see guardian_priv.h. */
#include "guardian/guardian_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/vec.h"
#include "kernel/attach.h"

/* At most so many threads wait for grace periods; further jobs wait for one of them. */
#define THREADS_CAP 8

struct job {
	struct attach_links *links; /* NULL: none */
	struct attach_request req; /* without sites: none */
	uint64_t ticket;
};

struct closer {
	int done_fd;
	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t idle; /* no thread is left */
	VEC(struct job) waiting;
	VEC(uint64_t) done; /* has room for everything under way */
	size_t under_way_cnt; /* jobs that wait or are being done */
	size_t thread_cnt;
};

int closer_new(struct closer **ret)
{
	struct closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->done_fd < 0) {
		int err = -errno;

		free(c);
		return err;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->idle, NULL);
	*ret = c;
	return 0;
}

void closer_free(struct closer *c)
{
	if (!c)
		return;
	closer_wait(c);
	close(c->done_fd);
	pthread_cond_destroy(&c->idle);
	pthread_mutex_destroy(&c->lock);
	vec_release(&c->waiting);
	vec_release(&c->done);
	free(c);
}

static void clean(const struct attach_request *req)
{
	struct attach_links *links = NULL;

	/* A failure cannot be reported, and the next fork tries again. */
	if (!attach_links_new(&links))
		(void)attach_add(links, req);
	attach_links_free(links);
	close(req->file_fd);
	close(req->prog_fd);
	free((void *)req->sites);
}

/* Take one job to clean, or all jobs to close: their links are moved into those of the first. */
static struct job take(struct closer *c, uint64_t *tickets, size_t cap, size_t *ret_cnt)
{
	struct job first = c->waiting.data[0];
	size_t kept = 0, cnt = 0;

	for (size_t i = 0; i < c->waiting.cnt; i++) {
		struct job *j = &c->waiting.data[i];
		bool is_taken = !i || (first.links && j->links && cnt < cap);

		if (!is_taken) {
			c->waiting.data[kept++] = *j;
			continue;
		}
		tickets[cnt++] = j->ticket;
		if (i) {
			attach_links_move(j->links, first.links);
			attach_links_free(j->links); /* links without room are closed here */
		}
	}
	c->waiting.cnt = kept;
	*ret_cnt = cnt;
	return first;
}

static void report(struct closer *c, const uint64_t *tickets, size_t cnt)
{
	const uint64_t one = 1;

	for (size_t i = 0; i < cnt; i++)
		c->done.data[c->done.cnt++] = tickets[i];
	c->under_way_cnt -= cnt;
	if (write(c->done_fd, &one, sizeof(one)) < 0)
		return; /* it is full of the same news */
}

static void do_unlocked(struct closer *c, struct job *j)
{
	pthread_mutex_unlock(&c->lock);
	if (j->req.site_cnt)
		clean(&j->req);
	attach_links_free(j->links);
	pthread_mutex_lock(&c->lock);
}

static void work_off(struct closer *c)
{
	uint64_t tickets[64];
	size_t cnt;

	while (c->waiting.cnt) {
		struct job j = take(c, tickets, sizeof(tickets) / sizeof(*tickets), &cnt);

		do_unlocked(c, &j);
		report(c, tickets, cnt);
	}
}

static void *run(void *arg)
{
	struct closer *c = arg;

	pthread_mutex_lock(&c->lock);
	work_off(c);
	if (!--c->thread_cnt)
		pthread_cond_broadcast(&c->idle);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Add a job. Without memory or a thread for it, it is done before this returns. */
static void add_job(struct closer *c, struct job *j)
{
	pthread_t thread;

	pthread_mutex_lock(&c->lock);
	while (vec_reserve(&c->done,
			   c->done.cnt + c->under_way_cnt + 1)) { /* its ticket is awaited */
		pthread_mutex_unlock(&c->lock);
		usleep(1000);
		pthread_mutex_lock(&c->lock);
	}
	c->under_way_cnt++;
	if (vec_push(&c->waiting, *j)) {
		do_unlocked(c, j);
		report(c, &j->ticket, 1);
	} else if (c->thread_cnt < THREADS_CAP && !thread_start(&thread, run, c)) {
		pthread_detach(thread);
		c->thread_cnt++;
	} else if (!c->thread_cnt) {
		work_off(c);
	}
	pthread_mutex_unlock(&c->lock);
}

void closer_close(struct closer *c, struct attach_links *links, uint64_t ticket)
{
	struct job j = { .links = links, .ticket = ticket };

	add_job(c, &j);
}

void closer_clean(struct closer *c, const struct attach_request *req, uint64_t ticket)
{
	struct attach_site *sites = calloc(req->site_cnt + 1, sizeof(*sites));
	struct job j = { .req = *req, .ticket = ticket };

	if (sites) {
		memcpy(sites, req->sites, req->site_cnt * sizeof(*sites));
		j.req.sites = sites;
	} else { /* without memory, cleaning is left out */
		close(req->file_fd);
		close(req->prog_fd);
		j.req.site_cnt = 0;
	}
	add_job(c, &j);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): they are the job's, which is copied */
}

void closer_wait(struct closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->thread_cnt)
		pthread_cond_wait(&c->idle, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

int closer_fd(const struct closer *c)
{
	return c->done_fd;
}

size_t closer_take_done(struct closer *c, uint64_t *tickets, size_t cap)
{
	uint64_t news;
	size_t cnt = 0;

	pthread_mutex_lock(&c->lock);
	while (cnt < cap && c->done.cnt)
		tickets[cnt++] = c->done.data[--c->done.cnt];
	if (!c->done.cnt && read(c->done_fd, &news, sizeof(news)) < 0)
		news = 0; /* there was none */
	pthread_mutex_unlock(&c->lock);
	return cnt;
}
