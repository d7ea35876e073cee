/* SPDX-License-Identifier: MIT */
/* link_closer.c - see link_closer.h. */
#include "kernel/link_closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/thread.h"
#include "kernel/attach.h"

struct link_closer {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	struct attach_links *waiting; /* NULL: none */
	bool is_busy, is_ending;
};

static void *run(void *arg)
{
	struct link_closer *c = arg;
	struct attach_links *links;

	thread_be_prompt(); /* not to wait behind the very programs that it relieves */
	pthread_mutex_lock(&c->lock);
	while (c->waiting || !c->is_ending) {
		links = c->waiting;
		if (!links) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->waiting = NULL;
		c->is_busy = true;
		pthread_mutex_unlock(&c->lock);
		attach_links_free(links);
		pthread_mutex_lock(&c->lock);
		c->is_busy = false;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int link_closer_new(struct link_closer **ret)
{
	struct link_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	*ret = c;
	return 0;
}

void link_closer_free(struct link_closer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_ending = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void link_closer_take(struct link_closer *c, struct attach_links *links)
{
	if (!links)
		return;
	/* Who never lets go of a process needs none. */
	if (!c->has_thread)
		c->has_thread = !thread_start(&c->thread, run, c);
	pthread_mutex_lock(&c->lock);
	if (c->has_thread && !c->waiting) {
		c->waiting = links;
		links = NULL;
	} else if (c->has_thread) {
		attach_links_move(links, c->waiting); /* what has no room is closed here */
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	attach_links_free(links);
}

void link_closer_wait(struct link_closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->waiting || c->is_busy)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
