/* SPDX-License-Identifier: MIT */
/*
 * push_sender.h - a push queue (push_queue.h) and the thread that runs it.
 *
 * A request takes several exchanges of packets with the destination. In the event loop each of them would wait for
 * a turn, and turns are long while probes are put into new processes, or when the profiled processes leave little
 * CPU: then pushes come faster than they are sent. The thread mostly sleeps, so it is woken at once.
 *
 * All functions may be called from one thread, at any time; none waits for the network.
 */
#ifndef HT_PUSH_SENDER_H
#define HT_PUSH_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include "push/push_queue.h"

struct push_sender;

/* As push_queue_open(); -EAGAIN: no more threads. */
int push_sender_open(const struct push_queue_options *opts, struct push_sender **ret);
/* As push_queue_close(); NULL is fine. */
void push_sender_close(struct push_sender *s);

/* As the functions of the queue. */
void push_sender_set_identity(struct push_sender *s, const struct push_http_options *opts);
int push_sender_take(struct push_sender *s, uint8_t *body, size_t bytes);
void push_sender_stats(struct push_sender *s, struct push_queue_stats *ret);

#endif
