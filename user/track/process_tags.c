/* SPDX-License-Identifier: MIT */
/* process_tags.c - see tracker_priv.h. */
#include "track/tracker_priv.h"

#include "base/clock.h"
#include "kernel/engine.h"
#include "profile/tag_labels.h"
#include "proc/tag_sources.h"
#include "proc/process.h"
#include "track/file_content.h"

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

int process_tags_add_file(struct tracker *t, struct tracked_process *p, uint32_t generation,
			  struct track_file *file, uint64_t bias, const struct proc_maps *maps)
{
	struct process_tags *pt = &p->tags;
	struct tag_sources found;
	int err;

	say_problem(file, file->tags->where.problem);
	err = tag_sources_read(t->policy->reader, p->live_tid, &file->tags->where, bias,
			       tag_dtv_shift(maps), &found);
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
			err = add_source(t->engine, p->pid, generation, s);
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

/* Is it time to look for names of label keys again? */
static bool wants_keys(struct process_tags *pt, uint64_t now)
{
	if (pt->otel.cnt)
		return true;
	if (!pt->desc_addrs.cnt || now < pt->keys_due_ns)
		return false;
	pt->keys_wait_ns = pt->keys_wait_ns ? pt->keys_wait_ns * 2 : KEYS_WAIT_NS;
	if (pt->keys_wait_ns > KEYS_WAIT_CAP_NS)
		pt->keys_wait_ns = KEYS_WAIT_CAP_NS;
	pt->keys_due_ns = now + pt->keys_wait_ns;
	return true;
}

int process_tags_read_keys(struct tracker *t, struct tracked_process *p, uint32_t generation,
			   const struct proc_maps *maps)
{
	struct process_tags *pt = &p->tags;
	struct track_instance *inst;
	struct otel_process_ctx ctx;
	struct tag_keys *keys;
	int err;

	if (!pt->otel.cnt && !pt->desc_addrs.cnt)
		return 0;
	err = otel_process_ctx_read(t->policy->reader, p->live_tid, maps, pt->published_ns, &ctx);
	/* The program may publish them only after the first label. */
	if ((err == -EAGAIN || err == -ENOENT) && pt->otel.cnt)
		pt->is_pending = true;
	if (err)
		return err == -ENOMEM ? err : 0;
	err = leave_out(pt, t->engine, p->pid, generation, tag_keys_ids(&ctx.keys));
	keys = err ? NULL : malloc(sizeof(*keys));
	inst = keys ? instances_get(&t->instances, p->pid, generation) : NULL;
	if (!inst) {
		free(keys);
		tag_keys_release(&ctx.keys);
		return err ? err : -ENOMEM;
	}
	*keys = ctx.keys;
	pt->published_ns = ctx.published_ns;
	instance_set_keys(inst, keys);
	return 0;
}

/* A program adds keys while it runs, and no event tells of that. On a failure the old keys stay. */
static void read_new_keys(struct tracker *t, struct tracked_process *p)
{
	struct proc_maps maps = { 0 };

	if (wants_keys(&p->tags, now_ns()) &&
	    !proc_maps_read(t->policy->reader, p->pid, p->live_tid, &maps))
		process_tags_read_keys(t, p, p->generation, &maps);
	proc_maps_release(&maps);
}

/* They stay as they were if the process cannot be read. */
static void read_counters(const struct tracker *t, const struct tracked_process *p,
			  struct scope_counters *ret)
{
	struct scope_counters sum = { 0 };
	struct scope_descriptor d;

	for (size_t i = 0; i < p->tags.desc_addrs.cnt; i++) {
		if (scope_descriptor_read(t->policy->reader, p->live_tid,
					  p->tags.desc_addrs.data[i], &d, NULL))
			return;
		sum.overflows += d.overflows;
		sum.underflows += d.underflows;
		sum.truncations += d.truncations;
	}
	*ret = sum;
}

void tracker_read_counters(struct tracker *t)
{
	struct tracked_process *p;

	vec_each(&t->list, p) {
		struct track_instance *inst =
			p->tags.desc_addrs.cnt ?
				instances_get(&t->instances, p->pid, p->generation) :
				NULL;

		if (inst)
			read_counters(t, p, &inst->scope_counters);
		read_new_keys(t, p);
	}
}
