/* SPDX-License-Identifier: MIT */
/* stack_profile.c - see stack_profile.h. */
#include "serve/stack_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"
#include "metrics/stack_past.h"
#include "profile/profile.h"
#include "serve/profile_source.h"
#include "serve/stack_watch.h"
#include "snapshot/profile_build.h"
#include "snapshot/scope_labels.h"
#include "snapshot/snapshot.h"
#include "track/instances.h"
#include "track/tracker.h"

_Static_assert(STACK_PAST_REST == SNAPSHOT_STACK_REST, "one number");

/* Rows in the form that snapshots take. */
struct given {
	struct snapshot_given *data;
	size_t cnt, cap; /* like VEC() */
};

struct sides {
	struct given of[2];
	double least_variance; /* of rows that seem not to differ, and yet may */
};

static int on_pair(void *ctx, const struct history_key *key, const struct estimate at[2])
{
	struct sides *s = ctx;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		struct snapshot_given g = { .stack_id = key->stack_id,
					    .image = key->image,
					    .context_id = (uint32_t)key->context_id,
					    .inuse = at[i] };
		struct estimate *e = &g.inuse;

		if (!e->samples)
			continue;
		if (e->bytes_variance < s->least_variance)
			e->bytes_variance = s->least_variance;
		/* as if all objects had one size */
		if (e->bytes > 0)
			e->objects_variance = e->bytes_variance * (e->objects / e->bytes) *
					      (e->objects / e->bytes);
		err = vec_push(&s->of[i], g);
	}
	return err;
}

static int build(const struct profile_source *src, pid_t pid, const struct given *rows,
		 const struct history *history, bool is_partial, struct profile **ret)
{
	struct profile_build_options opts = {
		.rate_bytes = src->rate_bytes,
		.main_pid = pid,
		.labels = LABEL_SCOPE | LABEL_APP | LABEL_THREAD,
		.history = history,
		.is_history_partial = is_partial,
		.begin_ns = history ? history_moment_ns(history, 0) : 0,
		.symbols = profile_symbol_options(src),
	};
	struct snapshot *s;
	int err = snapshot_of(src->engine, rows->data, rows->cnt, &s);

	if (err)
		return err;
	err = profile_build(s, src->engine, src->files, src->tracker, &opts, ret);
	snapshot_free(s);
	return err;
}

/* -ENOENT: it was thinned out meanwhile. */
static int find_moment(const struct stack_past_moment *moments, size_t cnt, uint64_t time_ns,
		       size_t *ret)
{
	for (size_t i = 0; i < cnt; i++) {
		if (moments[i].time_ns != time_ns)
			continue;
		*ret = i;
		return 0;
	}
	return -ENOENT;
}

static int set_recording(const struct profile_source *src, pid_t pid,
			 const struct stack_past_moment *first,
			 const struct stack_past_moment *last, struct profile *p)
{
	const struct track_instance *inst = instances_find(tracker_instances(src->tracker), pid,
							   tracker_generation(src->tracker, pid));

	char comm[HT_COMM_BYTES + 1];

	snprintf(comm, sizeof(comm), "%.*s", HT_COMM_BYTES, inst ? inst->comm : "");
	p->time_ns = last->epoch_ns;
	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.pid = pid;
	p->recording.process_cnt = 1;
	p->recording.inuse = RECORDING_INUSE_ALL;
	p->recording.duration_ns = (int64_t)(last->time_ns - first->time_ns);
	p->recording.end_ns = last->epoch_ns;
	p->recording.begin_ns = last->epoch_ns - p->recording.duration_ns;
	p->recording.comm_str = profile_str(p, comm);
	p->recording.exe_str = profile_str(p, inst ? inst->exe : "");
	p->recording.called_str = profile_str(p, inst ? inst->called : "");
	return p->recording.comm_str < 0 || p->recording.exe_str < 0 ||
			       p->recording.called_str < 0 ?
		       -ENOMEM :
		       0;
}

int stack_profile_pair(const struct profile_source *src, pid_t pid, const struct stack_moments *at,
		       struct profile *ret[2])
{
	uint64_t image = stack_watch_image(src, pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments), before = 0, after = 0;
	struct sides s = { .least_variance = src->rate_bytes > 1 };
	struct profile *made[2] = { NULL, NULL };
	int err = find_moment(moments, cnt, at->before_ns, &before);

	if (!err)
		err = find_moment(moments, cnt, at->after_ns, &after);
	if (!err)
		err = stack_past_compare(src->stacks, image, before, after, on_pair, &s);
	for (int i = 0; i < 2 && !err; i++)
		err = build(src, pid, &s.of[i], NULL, false, &made[i]);
	for (int i = 0; i < 2 && !err; i++)
		err = set_recording(src, pid, &moments[i ? after : before],
				    &moments[i ? after : before], made[i]);
	for (int i = 0; i < 2; i++) {
		vec_release(&s.of[i]);
		if (err)
			profile_free(made[i]);
		else
			ret[i] = made[i];
	}
	return err;
}

int stack_profile_at(const struct profile_source *src, pid_t pid, uint64_t time_ns,
		     struct profile **ret)
{
	uint64_t image = stack_watch_image(src, pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments), i = 0;
	struct sides s = { 0 };
	struct profile *p = NULL;
	int err = find_moment(moments, cnt, time_ns, &i);

	if (!err)
		err = stack_past_compare(src->stacks, image, i, i, on_pair, &s);
	if (!err)
		err = build(src, pid, &s.of[1], NULL, false, &p);
	if (!err)
		err = set_recording(src, pid, &moments[i], &moments[i], p);
	vec_release(&s.of[0]);
	vec_release(&s.of[1]);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

int stack_profile_growth(const struct profile_source *src, pid_t pid, struct profile **ret)
{
	uint64_t image = stack_watch_image(src, pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments);
	struct sides s = { 0 };
	struct history *h = NULL;
	struct profile *p = NULL;
	bool is_partial = false;
	int err;

	if (!cnt)
		return -ENOENT;
	err = stack_past_history(src->stacks, image, 0, &h, &is_partial);
	if (!err)
		err = stack_past_compare(src->stacks, image, cnt - 1, cnt - 1, on_pair, &s);
	if (!err)
		err = build(src, pid, &s.of[1], h, is_partial, &p);
	if (!err)
		err = set_recording(src, pid, &moments[0], &moments[cnt - 1], p);
	vec_release(&s.of[0]);
	vec_release(&s.of[1]);
	history_free(h);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

int stack_profile_history(const struct profile_source *src, uint64_t image, uint64_t since_ns,
			  struct history **ret, bool *ret_is_partial)
{
	uint64_t now = now_ns(),
		 from_ns = now > STACK_PROFILE_HOUR_NS ? now - STACK_PROFILE_HOUR_NS : 0;
	int err = -ENOENT;

	*ret = NULL;
	if (src->stacks)
		err = stack_past_history(src->stacks, image,
					 from_ns > since_ns ? from_ns : since_ns, ret,
					 ret_is_partial);
	return err == -ENOENT ? 0 : err;
}
