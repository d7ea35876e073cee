/* SPDX-License-Identifier: MIT */
/*
 * push_once.c - pushes a profile to a target, as heaptap does it, and says what came of it.
 *
 *	push_once [--count N] [--every MS] [--seconds N] [--timeout MS] [--token-file F]
 *		  [--basic-file F] [--tenant T] [--ca F] [--spool DIR] [--spool-count N]
 *		  [--spool-bytes N] [--label NAME=VALUE]... [--now] [--failures N] TARGET [PROFILE]
 *
 * Adds PROFILE --count times (1), --every ms (0), and ends when nothing waits any more, when --failures
 * tries have failed, or after --seconds (20); without PROFILE it only sends what the spool's folder has. The last line is what
 * the queue counted. The longest time that one turn of the loop took shows whether anything waited.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "serve/push_http.h"
#include "serve/push_queue.h"

#define LABELS_MAX 16

struct args {
	struct push_queue_options queue;
	struct push_label labels[LABELS_MAX];
	size_t label_cnt;
	unsigned long count, every_ms, seconds, failures; /* failures 0: any number */
	const char *profile;
	bool is_now; /* real servers do not take old profiles */
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "push_once: %s: %s\n", what, why);
	exit(2);
}

static void add_label(struct args *a, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || a->label_cnt == LABELS_MAX)
		die(text, "not NAME=VALUE, or too many");
	*equals = 0;
	a->labels[a->label_cnt++] = (struct push_label){ text, equals + 1 };
}

static void parse_args(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{ "count", 1, 0, 'c' },
		{ "every", 1, 0, 'e' },
		{ "seconds", 1, 0, 's' },
		{ "timeout", 1, 0, 't' },
		{ "token-file", 1, 0, 'T' },
		{ "basic-file", 1, 0, 'B' },
		{ "tenant", 1, 0, 'o' },
		{ "ca", 1, 0, 'C' },
		{ "spool", 1, 0, 'd' },
		{ "spool-count", 1, 0, 'n' },
		{ "spool-bytes", 1, 0, 'b' },
		{ "label", 1, 0, 'l' },
		{ "now", 0, 0, 'N' },
		{ "failures", 1, 0, 'f' },
		{ 0 },
	};
	struct err why;
	int opt;

	a->count = 1;
	a->seconds = 20;
	a->queue = push_queue_defaults;
	a->queue.retry_min_ns = 50 * NS_PER_MS;
	a->queue.retry_max_ns = 400 * NS_PER_MS;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (opt) {
		case 'c':
			a->count = number;
			break;
		case 'e':
			a->every_ms = number;
			break;
		case 's':
			a->seconds = number;
			break;
		case 't':
			a->queue.http.timeout_ns = number * NS_PER_MS;
			break;
		case 'T':
			a->queue.http.identity.token_file = optarg;
			break;
		case 'B':
			a->queue.http.identity.basic_file = optarg;
			break;
		case 'o':
			a->queue.http.identity.tenant = optarg;
			break;
		case 'C':
			a->queue.http.identity.ca_file = optarg;
			break;
		case 'd':
			a->queue.spool.dir = optarg;
			break;
		case 'n':
			a->queue.spool.cnt_max = number;
			break;
		case 'b':
			a->queue.spool.bytes_max = number;
			break;
		case 'l':
			add_label(a, optarg);
			break;
		case 'N':
			a->is_now = true;
			break;
		case 'f':
			a->failures = number;
			break;
		default:
			exit(2);
		}
	}
	if (optind == argc)
		die("usage", "push_once [OPTION]... TARGET [PROFILE]");
	if (push_target_parse(argv[optind], &a->queue.http.target, &why))
		die("target", why.text);
	a->profile = argv[optind + 1];
}

static struct profile *read_profile(const char *path)
{
	struct err why = { 0 };
	struct profile *p;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		die(path, strerror(errno));
	err = pprof_read(fd, &p, &why);
	if (err)
		die(path, err == -EBADMSG ? why.text : strerror(-err));
	close(fd);
	return p;
}

static void print_stats(const struct push_queue *q, const struct push_lost *lost,
			uint64_t longest_ns)
{
	struct push_queue_stats s;

	push_queue_stats(q, &s);
	printf("added=%llu sent=%llu refused=%llu failed=%llu waiting=%zu dropped=%llu "
	       "unwritten=%llu corrupt=%llu folded_series=%zu folded_rows=%zu cut=%zu "
	       "longest_ms=%llu last_error=%s\n",
	       (unsigned long long)s.added_cnt, (unsigned long long)s.sent_cnt,
	       (unsigned long long)s.refused_cnt, (unsigned long long)s.failed_cnt, s.spool.cnt,
	       (unsigned long long)s.spool.dropped_cnt, (unsigned long long)s.spool.unwritten_cnt,
	       (unsigned long long)s.spool.corrupt_cnt, lost->folded_series, lost->folded_rows,
	       lost->cut_stacks, (unsigned long long)(longest_ns / NS_PER_MS), s.last_error);
}

/* Adds when it is time, until all is sent or the time is over. */
static void run(struct push_queue *q, const struct args *a, const struct profile *p,
		struct push_lost *lost, uint64_t *longest_ns)
{
	uint64_t end = now_ns() + a->seconds * NS_PER_S, next = 0;
	int loop = epoll_create1(EPOLL_CLOEXEC), err;
	struct epoll_event event = { .events = EPOLLIN };
	unsigned long added = p ? 0 : a->count;
	struct push_queue_stats stats;

	if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, push_queue_fd(q), &event) < 0)
		die("epoll", strerror(errno));
	for (;;) {
		uint64_t begin = now_ns();
		uint8_t *body = NULL;
		size_t bytes = 0;

		push_queue_run(q);
		if (now_ns() - begin > *longest_ns)
			*longest_ns = now_ns() - begin;
		if (added < a->count && begin >= next) {
			err = push_profile_encode(&a->queue.http.target, p, a->labels, a->label_cnt,
						  lost, &body, &bytes);
			if (!err && body)
				err = push_queue_take(q, body, bytes);
			if (err)
				die("push", strerror(-err));
			added++;
			next = begin + a->every_ms * NS_PER_MS;
		}
		push_queue_stats(q, &stats);
		if (added == a->count &&
		    (!stats.spool.cnt || (a->failures && stats.failed_cnt >= a->failures)))
			break;
		if (now_ns() >= end)
			break;
		epoll_wait(loop, &event, 1, added < a->count ? 1 : 50);
	}
	close(loop);
}

int main(int argc, char **argv)
{
	struct args a = { 0 };
	struct push_lost lost = { 0 };
	struct profile *p = NULL;
	struct push_queue *q;
	uint64_t longest_ns = 0;
	int err;

	parse_args(argc, argv, &a);
	if (a.profile)
		p = read_profile(a.profile);
	if (p && a.is_now)
		p->time_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	log_set_level(LOG_INFO);
	err = push_queue_open(&a.queue, &q);
	if (err)
		die("open", strerror(-err));
	run(q, &a, p, &lost, &longest_ns);
	print_stats(q, &lost, longest_ns);
	push_queue_close(q);
	profile_free(p);
	return 0;
}
