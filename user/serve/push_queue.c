/* SPDX-License-Identifier: MIT */
/* push_queue.c - see push_queue.h. */
#include "serve/push_queue.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "http/series.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/profile_copy.h"

/* Interval between lines about refused requests, whatever their number. */
#define LOG_EVERY_NS (60 * NS_PER_S)

struct push_queue {
	struct push_queue_options opts;
	struct push_http *http;
	struct push_spool *spool;
	uint64_t retry_ns; /* monotonic; 0 = none */
	uint8_t *body; /* of the request in progress; NULL: there is none */
	uint64_t seq; /* of that request, or the last one */
	unsigned int few_tries; /* PUSH_RETRY_FEW answers to it */
	unsigned int fails; /* in a row */
	struct log_limit refused_log, dropped_log;
	uint64_t dropped_logged_cnt;
	struct push_queue_stats stats; /* without spool */
};

const struct push_queue_options push_queue_defaults = {
	.http = { .timeout_ns = 15 * NS_PER_S },
	.spool = { .cnt_max = PUSH_QUEUE_CNT_MAX,
		   .bytes_max = (uint64_t)64 << 20,
		   .memory_bytes_max = (uint64_t)4 << 20 },
	.retry_min_ns = NS_PER_S,
	.retry_max_ns = 60 * NS_PER_S,
};

static void log_dropped(struct push_queue *q)
{
	struct push_spool_stats s;

	push_spool_stats(q->spool, &s);
	if (s.dropped_cnt == q->dropped_logged_cnt || !log_limit_allows(&q->dropped_log, now_ns()))
		return;
	q->dropped_logged_cnt = s.dropped_cnt;
	log_warn(
		"push: '%s' %s: the queue is full (%zu profiles): the oldest are dropped (%llu so far)",
		q->opts.http.target.name,
		q->stats.is_failing ? "does not "
				      "respond" :
				      "is too slow for the profiles",
		s.cnt, (unsigned long long)s.dropped_cnt);
}

static void log_refused(struct push_queue *q, const char *text)
{
	if (!log_limit_allows(&q->refused_log, now_ns()))
		return;
	log_warn("push: '%s' refuses a profile (%llu so far): %s", q->opts.http.target.name,
		 (unsigned long long)q->stats.refused_cnt, text);
}

static void on_recovery(struct push_queue *q)
{
	if (q->stats.is_failing)
		log_info("push: '%s' responds again", q->opts.http.target.name);
	q->stats.is_failing = false;
	q->fails = 0;
	q->few_tries = 0;
	q->retry_ns = 0;
}

static void on_failure(struct push_queue *q, uint32_t pause_s, const char *text)
{
	if (!q->stats.is_failing)
		log_warn("push: '%s': %s; retrying", q->opts.http.target.name, text);
	q->stats.is_failing = true;
	q->fails++;
	q->retry_ns = now_ns() + pause_s * NS_PER_S +
		      push_retry_delay_ns(q->opts.retry_min_ns, q->opts.retry_max_ns, q->fails);
	push_spool_settle(q->spool);
}

static void on_done(void *ctx, const struct push_answer *answer)
{
	struct push_queue *q = ctx;
	enum push_verdict verdict = answer->verdict;
	bool is_given_up = verdict == PUSH_RETRY_FEW && ++q->few_tries >= PUSH_TRIES_MAX;

	if (verdict != PUSH_SENT) {
		snprintf(q->stats.last_error, sizeof(q->stats.last_error), "%s", answer->text);
		q->stats.failed_cnt++;
	}
	switch (is_given_up ? PUSH_REFUSED : verdict) {
	case PUSH_SENT:
		q->stats.sent_cnt += push_spool_drop(q->spool, q->seq);
		on_recovery(q);
		break;
	case PUSH_REFUSED:
		if (push_spool_drop(q->spool, q->seq))
			q->stats.refused_cnt++;
		log_refused(q, answer->text);
		q->few_tries = 0;
		/* The target may dislike this request only, or any: the next one comes no sooner. */
		if (is_given_up)
			on_failure(q, answer->pause_s, answer->text);
		else
			on_recovery(q);
		break;
	case PUSH_RETRY:
	case PUSH_RETRY_FEW:
		on_failure(q, answer->pause_s, answer->text);
		break;
	}
	free(q->body);
	q->body = NULL;
}

static void begin_next(struct push_queue *q)
{
	struct push_http_call call = { 0 };
	uint64_t seq = 0;
	int err;

	q->retry_ns = 0;
	err = push_spool_first(q->spool, &q->body, &call.body_bytes, &seq);
	if (err == -ENOENT)
		return;
	if (seq != q->seq)
		q->few_tries = 0;
	q->seq = seq;
	call.body = q->body;
	/* A request that did not get through in its time gets twice as much, a few times. */
	call.timeout_ns = q->opts.http.timeout_ns << q->few_tries;
	if (!err)
		err = push_http_call(q->http, &call);
	if (err) {
		/* No memory, or the token's file is gone: treat it as a failed try. */
		free(q->body);
		q->body = NULL;
		snprintf(q->stats.last_error, sizeof(q->stats.last_error), "cannot be sent: %s",
			 strerror(-err));
		q->stats.failed_cnt++;
		on_failure(q, 0, q->stats.last_error);
	}
}

/* Send the oldest if nothing is in progress and it is time. No socket announces the time of the next try. */
static void send_next(struct push_queue *q)
{
	if (!q->body && (!q->retry_ns || now_ns() >= q->retry_ns))
		begin_next(q);
	push_http_wake_at(q->http, q->retry_ns);
}

void push_queue_run(struct push_queue *q)
{
	push_http_run(q->http);
	send_next(q);
}

int push_queue_take(struct push_queue *q, uint8_t *body, size_t bytes)
{
	int err;

	q->stats.added_cnt++;
	err = push_spool_add(q->spool, body, bytes);
	log_dropped(q);
	/* The target is down: leave nothing in memory that a crash would lose. */
	if (q->stats.is_failing)
		push_spool_settle(q->spool);
	send_next(q);
	return err;
}

int push_queue_open(const struct push_queue_options *opts, struct push_queue **ret)
{
	struct push_queue *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->opts = *opts;
	q->refused_log = q->dropped_log =
		(struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = 1 };
	q->seq = UINT64_MAX;
	err = push_http_open(&opts->http, on_done, q, &q->http);
	if (!err) {
		err = push_spool_open(&opts->spool, &q->spool);
		if (err)
			log_error("push: cannot use the folder '%s': %s", opts->spool.dir,
				  err == -EBUSY ? "another heaptap uses it" : strerror(-err));
	}
	if (err) {
		push_queue_close(q);
		return err;
	}
	q->opts.spool.dir = NULL;
	send_next(q); /* left by an earlier process */
	*ret = q;
	return 0;
}

void push_queue_close(struct push_queue *q)
{
	if (!q)
		return;
	if (q->spool)
		push_spool_settle(q->spool); /* first: ending a request may take time */
	push_http_close(q->http);
	push_spool_close(q->spool);
	free(q->body);
	free(q);
}

int push_queue_fd(const struct push_queue *q)
{
	return push_http_fd(q->http);
}

void push_queue_stats(const struct push_queue *q, struct push_queue_stats *ret)
{
	*ret = q->stats;
	push_spool_stats(q->spool, &ret->spool);
}

/* When to push, and when to try again. */

/* Evenly distributed in [low, high]. */
static uint64_t random_between(uint64_t low, uint64_t high)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = now_ns() * 0x9e3779b97f4a7c15ULL;
	return low + r % (high - low + 1);
}

void push_clock_set(struct push_clock *c, uint64_t interval_ns, uint64_t now)
{
	if (c->interval_ns == interval_ns)
		return;
	c->interval_ns = interval_ns;
	c->due_ns = interval_ns ? now + random_between(1, interval_ns) : 0;
}

bool push_clock_is_due(struct push_clock *c, uint64_t now)
{
	if (!c->interval_ns || now < c->due_ns)
		return false;
	c->due_ns += c->interval_ns;
	if (c->due_ns <= now)
		c->due_ns = now + c->interval_ns;
	return true;
}

int push_clock_wait_ms(const struct push_clock *c, uint64_t now)
{
	uint64_t left_ms;

	if (!c->interval_ns)
		return -1;
	if (now >= c->due_ns)
		return 0;
	left_ms = (c->due_ns - now - 1) / NS_PER_MS + 1;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

uint64_t push_retry_delay_ns(uint64_t min_ns, uint64_t max_ns, unsigned int fail_cnt)
{
	uint64_t delay = min_ns;

	for (unsigned int i = 1; i < fail_cnt && delay < max_ns; i++)
		delay *= 2;
	if (delay > max_ns)
		delay = max_ns;
	return random_between(delay / 2, delay);
}

/* The thread that runs a queue. */

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

void push_sender_set_identity(struct push_sender *s, const struct push_identity *identity)
{
	pthread_mutex_lock(&s->lock);
	push_http_set_identity(s->queue->http, identity);
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

/* Profiles as requests. */

#define PROFILE_NAME "memory"

/* The finished request. */
struct request {
	uint8_t *body;
	size_t bytes;
};

struct label_list {
	VEC(struct push_label) list;
};

bool push_label_name_is_valid(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

static const char *find_label(const struct label_list *l, const char *name)
{
	for (size_t i = 0; i < l->list.cnt; i++)
		if (!strcmp(l->list.data[i].name, name))
			return l->list.data[i].value;
	return NULL;
}

/* The first value of a name stays. Backends treat an empty value as no label at all. */
static int add_label(struct label_list *l, const char *name, const char *value)
{
	if (!push_label_name_is_valid(name))
		return -EINVAL;
	if (!*value || find_label(l, name))
		return 0;
	return vec_push(&l->list, (struct push_label){ name, value });
}

static int add_labels(struct label_list *l, const struct push_label *labels, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = add_label(l, labels[i].name, labels[i].value);
	return err;
}

static int read_back(int fd, size_t bytes, uint8_t **ret)
{
	uint8_t *data = malloc(bytes + 1);
	ssize_t n;

	if (!data)
		return -ENOMEM;
	n = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_full(fd, data, bytes);
	if (n != (ssize_t)bytes) {
		free(data);
		return n < 0 ? (int)n : -EIO;
	}
	*ret = data;
	return 0;
}

/* Make the file of pprof_write() in memory; the caller frees it. */
static int profile_file(const struct profile *p, uint8_t **ret, size_t *ret_bytes)
{
	int fd = memfd_create("heaptap-push", MFD_CLOEXEC), err;
	off_t bytes = 0;

	if (fd < 0)
		return -errno;
	err = pprof_write(p, fd);
	if (!err) {
		bytes = lseek(fd, 0, SEEK_END);
		err = bytes < 0 ? -errno : read_back(fd, bytes, ret);
	}
	close(fd);
	if (!err)
		*ret_bytes = bytes;
	return err;
}

static int request_for_pyroscope(struct request *r, const struct profile *p, struct label_list *l,
				 struct push_lost *lost)
{
	static const struct profile_limits limits = { PYROSCOPE_ROW_MAX, PYROSCOPE_BYTES_MAX };
	const char *comm = find_label(l, "comm"), **taken = NULL;
	struct profile *rows = NULL, *small = NULL;
	struct profile_limited limited = { 0 };
	struct push_series series = { 0 };
	uint8_t *file = NULL;
	int err;

	err = add_label(l, "service_name", comm ? comm : "heaptap");
	if (!err)
		err = add_label(l, "__delta__", "false");
	if (!err) {
		taken = calloc(l->list.cnt + 1, sizeof(*taken));
		err = taken ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < l->list.cnt && !err; i++)
		taken[i] = l->list.data[i].name;
	if (!err)
		err = series_rows(p, PUSH_SERIES_MAX, taken, &rows, &lost->folded_series);
	if (!err && rows->samples.cnt) {
		err = profile_limit(rows, &limits, &small, &limited);
		if (!err)
			err = profile_file(small, &file, &series.pprof_bytes);
		if (!err) {
			series.pprof = file;
			series.labels = l->list.data;
			series.label_cnt = l->list.cnt;
			err = push_pyroscope_encode(&series, 1, &r->body, &r->bytes);
		}
	}
	lost->folded_rows = limited.folded_rows;
	lost->cut_stacks = limited.cut_stacks;
	profile_free(rows);
	profile_free(small);
	free(taken);
	free(file);
	return err;
}

/* Fill in the labels of one series: those of the process, then its own two. */
static int fill_series(const struct label_list *l, const struct series *from,
		       struct push_label *labels, struct push_series *to)
{
	uint8_t *file = NULL;
	size_t cnt = 0;
	int err = profile_file(from->profile, &file, &to->pprof_bytes);

	if (err)
		return err;
	to->pprof = file;
	for (size_t i = 0; i < l->list.cnt; i++)
		if (strcmp(l->list.data[i].name, "scope") != 0 &&
		    strcmp(l->list.data[i].name, "thread") != 0)
			labels[cnt++] = l->list.data[i];
	labels[cnt++] = (struct push_label){ "scope", from->scope };
	labels[cnt++] = (struct push_label){ "thread", from->pool };
	to->labels = labels;
	to->label_cnt = cnt;
	return 0;
}

static int request_for_parca(struct request *r, const struct profile *p, const struct label_list *l,
			     struct push_lost *lost)
{
	size_t per_series = l->list.cnt + 2;
	struct push_series *series = NULL;
	struct push_label *labels = NULL;
	struct series_set set;
	int err = series_split(p, PUSH_SERIES_MAX, &set);

	if (err)
		return err;
	lost->folded_series = set.folded_cnt;
	series = calloc(set.list.cnt + 1, sizeof(*series));
	labels = calloc((set.list.cnt + 1) * per_series, sizeof(*labels));
	if (!series || !labels)
		err = -ENOMEM;
	for (size_t i = 0; i < set.list.cnt && !err; i++)
		err = fill_series(l, &set.list.data[i], labels + i * per_series, &series[i]);
	if (!err && set.list.cnt)
		err = push_parca_encode(series, set.list.cnt, &r->body, &r->bytes);
	for (size_t i = 0; i < set.list.cnt && series; i++)
		free((void *)series[i].pprof);
	series_release(&set);
	free(series);
	free(labels);
	return err;
}

int push_profile_encode(const struct push_target *t, const struct profile *p,
			const struct push_label *labels, size_t label_cnt,
			struct push_lost *ret_lost, uint8_t **ret, size_t *ret_bytes)
{
	struct request r = { 0 };
	struct label_list l = { 0 };
	int err = add_label(&l, "__name__", PROFILE_NAME);

	memset(ret_lost, 0, sizeof(*ret_lost));
	if (!err)
		err = add_labels(&l, labels, label_cnt);
	if (!err)
		err = t->kind == PUSH_PARCA ? request_for_parca(&r, p, &l, ret_lost) :
					      request_for_pyroscope(&r, p, &l, ret_lost);
	vec_release(&l.list);
	if (!err) {
		*ret = r.body;
		*ret_bytes = r.bytes;
	}
	return err;
}
