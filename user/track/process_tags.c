/* SPDX-License-Identifier: MIT */
/* process_tags.c - see tracker_priv.h. */
#include "track/tracker_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/engine.h"
#include "proc/otel_process_ctx.h"
#include "proc/scope_descriptor.h"
#include "proc/tag_sources.h"
#include "track/file_tags.h"

#define KEYS_WAIT_NS (200 * NS_PER_MS)
#define KEYS_WAIT_CAP_NS (60 * NS_PER_S)
/*
 * A loader first maps the whole file, then its data over that. A look in between reads other bytes
 * in the place of the descriptor. So an error is believed only after this many looks.
 */
#define PROBLEM_TRIES 3

void process_tags_begin(struct process_tags *pt)
{
	pt->desc_addrs.cnt = 0;
	pt->otel.cnt = 0;
	pt->is_pending = false;
	if (!pt->has_problem)
		pt->problem_tries = 0;
	pt->has_problem = false;
}

void process_tags_release(struct process_tags *pt)
{
	vec_release(&pt->desc_addrs);
	vec_release(&pt->otel);
}

static void say_problem(struct track_file *file, const char *problem)
{
	if (!*problem || file->tags->is_logged)
		return;
	file->tags->is_logged = true;
	log_warn("record: the tags of '%s' are left out: %s", file->path, problem);
}

static int add_source(struct engine *e, pid_t pid, uint32_t generation,
		      const struct ht_tag_source *s)
{
	int err = engine_add_tag_source(e, pid, generation, s);

	/* -ENOSPC is counted in BPF; -ESTALE: another image, which gets its own refresh. */
	return err == -ENOSPC || err == -ESTALE ? 0 : err;
}

int process_tags_add_file(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			  uint32_t generation, struct track_file *file, uint64_t bias,
			  const struct proc_maps *maps)
{
	struct tag_sources found;
	int err;

	say_problem(file, file->tags->where.problem);
	err = tag_sources_read(tid, &file->tags->where, bias, tag_dtv_shift(maps), &found);
	if (err)
		return err;
	if (found.problem.text[0] && found.is_pending) {
		pt->has_problem = true;
		if (pt->problem_tries < PROBLEM_TRIES) {
			pt->problem_tries++;
			found.problem.text[0] = '\0';
		} else {
			found.is_pending = false;
		}
	}
	say_problem(file, found.problem.text);
	pt->is_pending |= found.is_pending;
	for (uint32_t i = 0; i < found.cnt && !err; i++) {
		struct ht_tag_source *s = &found.source[i];

		if (s->kind == HT_TAG_SCOPE)
			err = vec_push(&pt->desc_addrs, s->desc_addr);
		if (s->kind == HT_TAG_OTEL) {
			s->flags = pt->id_keys;
			err = vec_push(&pt->otel, *s);
		}
		if (!err)
			err = add_source(e, pid, generation, s);
	}
	return err;
}

/* Tell the engine to leave out id keys. They have another value for every request and would fill
 * the tables of labels and contexts. */
static int leave_out(struct process_tags *pt, struct engine *e, pid_t pid, uint32_t generation,
		     uint32_t id_keys)
{
	struct ht_tag_source *s;
	int err = 0;

	if (pt->id_keys == id_keys)
		return 0;
	pt->id_keys = id_keys;
	vec_each(&pt->otel, s) {
		s->flags = id_keys;
		if (!err)
			err = add_source(e, pid, generation, s);
	}
	return err;
}

bool process_tags_wants_keys(struct process_tags *pt, uint64_t now_ns)
{
	if (pt->otel.cnt)
		return true;
	if (!pt->desc_addrs.cnt || now_ns < pt->keys_due_ns)
		return false;
	pt->keys_wait_ns = pt->keys_wait_ns ? pt->keys_wait_ns * 2 : KEYS_WAIT_NS;
	if (pt->keys_wait_ns > KEYS_WAIT_CAP_NS)
		pt->keys_wait_ns = KEYS_WAIT_CAP_NS;
	pt->keys_due_ns = now_ns + pt->keys_wait_ns;
	return true;
}

int process_tags_read_keys(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			   uint32_t generation, const struct proc_maps *maps, struct tag_keys **ret)
{
	struct otel_process_ctx ctx;
	int err;

	*ret = NULL;
	if (!pt->otel.cnt && !pt->desc_addrs.cnt)
		return 0;
	err = otel_process_ctx_read(tid, maps, pt->published_ns, &ctx);
	/* The program may publish them only after the first label. */
	if ((err == -EAGAIN || err == -ENOENT) && pt->otel.cnt)
		pt->is_pending = true;
	if (err)
		return err == -ENOMEM ? err : 0;
	err = leave_out(pt, e, pid, generation, tag_keys_ids(&ctx.keys));
	*ret = err ? NULL : malloc(sizeof(**ret));
	if (!*ret) {
		tag_keys_release(&ctx.keys);
		return err ? err : -ENOMEM;
	}
	**ret = ctx.keys;
	pt->published_ns = ctx.published_ns;
	return 0;
}

bool process_tags_read_counters(const struct process_tags *pt, pid_t tid,
				struct scope_counters *ret)
{
	struct scope_counters sum = { 0 };
	struct scope_descriptor d;

	for (size_t i = 0; i < pt->desc_addrs.cnt; i++) {
		if (scope_descriptor_read(tid, pt->desc_addrs.data[i], &d, NULL))
			return false;
		sum.overflows += d.overflows;
		sum.underflows += d.underflows;
		sum.truncations += d.truncations;
	}
	*ret = sum;
	return pt->desc_addrs.cnt > 0;
}
