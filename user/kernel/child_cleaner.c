/* SPDX-License-Identifier: MIT */
/* child_cleaner.c - see child_cleaner.h. */
#include "kernel/child_cleaner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/vec.h"
#include "kernel/attach.h"

/* A link that comes or goes holds every fork of the machine up for a moment: in a storm of forks some
 * 25 a second do. */
#define AT_ONCE_CAP 3

struct cleaning {
	struct attach_request req; /* with copies of what it refers to */
	pthread_t thread;
	bool has_thread;
	bool is_done; /* atomic */
};

struct child_cleaner {
	VEC(struct cleaning *) under_way;
};

int child_cleaner_new(struct child_cleaner **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void free_cleaning(struct cleaning *one)
{
	if (one->has_thread)
		pthread_join(one->thread, NULL);
	if (one->req.file_fd >= 0)
		close(one->req.file_fd);
	free((void *)one->req.sites);
	free(one);
}

void child_cleaner_wait(struct child_cleaner *c)
{
	while (c->under_way.cnt)
		free_cleaning(c->under_way.data[--c->under_way.cnt]);
}

void child_cleaner_free(struct child_cleaner *c)
{
	if (!c)
		return;
	child_cleaner_wait(c);
	vec_release(&c->under_way);
	free(c);
}

bool child_cleaner_has_room(struct child_cleaner *c)
{
	for (size_t i = c->under_way.cnt; i-- > 0;) {
		struct cleaning *one = c->under_way.data[i];

		if (!__atomic_load_n(&one->is_done, __ATOMIC_ACQUIRE))
			continue;
		c->under_way.data[i] = c->under_way.data[--c->under_way.cnt];
		free_cleaning(one);
	}
	return c->under_way.cnt < AT_ONCE_CAP;
}

static void *clean(void *arg)
{
	struct cleaning *one = arg;
	struct attach_links *links = NULL;

	/* Nobody can be told of a failure, and the next fork tries again. */
	if (!attach_links_new(&links))
		(void)attach_add(links, &one->req);
	attach_links_free(links);
	__atomic_store_n(&one->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static int copy_request(const struct attach_request *req, struct attach_request *ret)
{
	struct attach_site *sites = calloc(req->site_cnt + 1, sizeof(*sites));

	if (!sites)
		return -ENOMEM;
	*ret = *req;
	memcpy(sites, req->sites, req->site_cnt * sizeof(*sites));
	ret->sites = sites;
	ret->file_fd = fcntl(req->file_fd, F_DUPFD_CLOEXEC, 0);
	return ret->file_fd < 0 ? -errno : 0;
}

int child_cleaner_ask(struct child_cleaner *c, const struct attach_request *req)
{
	struct cleaning *one = calloc(1, sizeof(*one));
	int err;

	if (!one)
		return -ENOMEM;
	one->req.file_fd = -1;
	err = copy_request(req, &one->req);
	if (!err)
		err = vec_push(&c->under_way, one);
	if (err) {
		free_cleaning(one);
		return err;
	}
	one->has_thread = !thread_start(&one->thread, clean, one);
	if (!one->has_thread)
		clean(one);
	return 0;
}
