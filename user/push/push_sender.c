/* SPDX-License-Identifier: MIT */
/* push_sender.c - see push_sender.h. */
#include "push/push_sender.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"

struct push_sender {
	pthread_mutex_t lock; /* protects queue */
	struct push_queue *queue;
	pthread_t thread;
	bool has_thread;
	int end_fd; /* readable: the thread must end */
};

static void *run(void *arg)
{
	struct push_sender *s = arg;
	struct pollfd fds[] = { { push_queue_fd(s->queue), POLLIN, 0 }, { s->end_fd, POLLIN, 0 } };

	for (;;) {
		int n = poll(fds, 2, -1);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && fds[1].revents)
			break;
		pthread_mutex_lock(&s->lock);
		push_queue_run(s->queue);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

int push_sender_open(const struct push_queue_options *opts, struct push_sender **ret)
{
	struct push_sender *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->end_fd = eventfd(0, EFD_CLOEXEC);
	err = s->end_fd < 0 ? -errno : push_queue_open(opts, &s->queue);
	if (!err)
		err = thread_start(&s->thread, run, s);
	s->has_thread = !err;
	if (err)
		push_sender_close(s);
	else
		*ret = s;
	return err;
}

void push_sender_close(struct push_sender *s)
{
	const uint64_t one = 1;

	if (!s)
		return;
	if (s->has_thread && write(s->end_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->thread, NULL);
	push_queue_close(s->queue);
	if (s->end_fd >= 0)
		close(s->end_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void push_sender_set_identity(struct push_sender *s, const struct push_http_options *opts)
{
	pthread_mutex_lock(&s->lock);
	push_queue_set_identity(s->queue, opts);
	pthread_mutex_unlock(&s->lock);
}

int push_sender_take(struct push_sender *s, uint8_t *body, size_t bytes)
{
	int err;

	pthread_mutex_lock(&s->lock);
	err = push_queue_take(s->queue, body, bytes);
	pthread_mutex_unlock(&s->lock);
	return err;
}

void push_sender_stats(struct push_sender *s, struct push_queue_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	push_queue_stats(s->queue, ret);
	pthread_mutex_unlock(&s->lock);
}
