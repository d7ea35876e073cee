/* SPDX-License-Identifier: MIT */
/*
 * scope_notes.c - see scope_notes.h.
 *
 * One shown path may be several scopes: of several processes (told apart by pid), of several images
 * of one process, or below different labels. The peak of such a path is the largest of theirs: it
 * held at least that much.
 */
#include "snapshot/scope_notes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/sum.h"
#include "kernel/engine.h"
#include "profile/profile.h"
#include "profile/scope_note.h"
#include "profile/scope_path.h"
#include "snapshot/scope_labels.h"
#include "snapshot/snapshot.h"

struct path_key {
	int64_t path_str;
	uint64_t pid;
};

struct note {
	struct path_key key;
	uint64_t instance;
	const struct ht_instance *sums; /* NULL: a scope */
	int64_t peak_bytes;
	uint64_t peak_ns;
	int64_t scope_cnt; /* merged into one: below different labels, or of several images */
};

struct notes {
	VEC(struct note) all;
	struct hmap by_path; /* struct path_key -> index; scopes only */
};

static int note_peak(struct notes *notes, const struct note *n)
{
	const uint64_t *known = hmap_get(&notes->by_path, &n->key);
	int err;

	if (known) {
		struct note *one = &notes->all.data[*known];

		one->scope_cnt++;
		if (n->peak_bytes > one->peak_bytes) {
			one->peak_bytes = n->peak_bytes;
			one->peak_ns = n->peak_ns;
		}
		return 0;
	}
	err = vec_push(&notes->all, *n);
	return err ? err : hmap_put(&notes->by_path, &n->key, notes->all.cnt - 1);
}

static bool is_wanted(const struct snapshot_scope *scope, const struct scope_notes_options *opts)
{
	return !opts->only_pid || scope->key.tgid == (uint32_t)opts->only_pid;
}

static int collect_scopes(const struct snapshot *s, struct scope_labels *labels,
			  const struct scope_notes_options *opts, struct profile *p,
			  struct notes *notes)
{
	const struct snapshot_scope *scope;
	bool has_scopes = false;

	vec_each(&s->scopes, scope) {
		struct note n = { .peak_bytes = scope->sums.peak_bytes_8 >> 8,
				  .peak_ns = scope->sums.peak_ns,
				  .scope_cnt = 1 };
		int err;

		if (scope->scope.kind == HT_NODE_LABEL || n.peak_bytes <= 0 ||
		    !is_wanted(scope, opts))
			continue;
		n.key.path_str = scope_labels_path(labels, scope);
		if (!n.key.path_str)
			n.key.path_str = profile_str(p, SCOPE_NONE);
		if (n.key.path_str < 0)
			return n.key.path_str;
		n.key.pid = opts->by_process ? scope->key.tgid : 0;
		err = note_peak(notes, &n);
		if (err)
			return err;
		has_scopes |= scope->key.node != 0;
	}
	if (!has_scopes) /* then nobody asks for the peak outside scopes */
		notes->all.cnt = 0;
	return 0;
}

static int collect_instances(const struct snapshot *s, struct scope_labels *labels,
			     const struct scope_notes_options *opts, struct notes *notes)
{
	const struct snapshot_instance *inst;

	vec_each(&s->instances, inst) {
		const struct snapshot_scope *scope = snapshot_scope_at(s, inst->key.task_slot);
		struct note n = { .instance = inst->key.instance, .sums = &inst->sums };
		int err;

		/* No scope: it was made after the scopes were read */
		if (!scope || !is_wanted(scope, opts))
			continue;
		n.key.path_str = scope_labels_path(labels, scope);
		if (n.key.path_str < 0)
			return n.key.path_str;
		n.key.pid = opts->by_process ? scope->key.tgid : 0;
		n.peak_bytes = inst->sums.peak_bytes_8 >> 8;
		n.peak_ns = inst->sums.peak_ns;
		err = vec_push(&notes->all, n);
		if (err)
			return err;
	}
	return 0;
}

/* Those that hold most now come first, then those that once held most. */
static int by_size(const void *a, const void *b)
{
	const struct note *l = a, *r = b;
	int64_t l_inuse = l->sums ? l->sums->inuse_bytes_8 : 0;
	int64_t r_inuse = r->sums ? r->sums->inuse_bytes_8 : 0;

	if (l_inuse != r_inuse)
		return l_inuse > r_inuse ? -1 : 1;
	return (l->peak_bytes < r->peak_bytes) - (l->peak_bytes > r->peak_bytes);
}

static void note_sums(const struct engine *e, const struct ht_instance *sums,
		      struct scope_note *note)
{
	note->is_exited = sums->has_exited;
	note->inuse_bytes = sums->inuse_bytes_8 >> 8;
	note->inuse_objects = sums->inuse_objects_16 >> 16;
	note->alloc_bytes = profile_value(floor(ht_sum_value(&sums->alloc_bytes_8, 8)));
	note->alloc_objects = profile_value(floor(ht_sum_value(&sums->alloc_objects_16, 16)));
	note->alloc_samples = (int64_t)sums->alloc_samples;
	/* Rounded up, never to 0: that would mean exact. */
	note->alloc_error = profile_value(ceil(sqrt(engine_variance(e, &sums->alloc_variance))));
}

static int write_notes(struct notes *notes, const struct engine *e, const char *what,
		       int64_t epoch_off_ns, struct profile *p)
{
	int err = 0;

	if (notes->all.cnt)
		qsort(notes->all.data, notes->all.cnt, sizeof(*notes->all.data), by_size);
	for (size_t i = 0; i < notes->all.cnt && i < SCOPE_NOTES_CAP && !err; i++) {
		const struct note *n = &notes->all.data[i];
		struct scope_note note = {
			.kind = n->sums ? SCOPE_NOTE_INSTANCE : SCOPE_NOTE_PEAK,
			.pid = n->key.pid,
			.peak_bytes = n->peak_bytes,
			.peak_time_ns = n->peak_ns ? (int64_t)n->peak_ns + epoch_off_ns : 0,
			.scope_cnt = n->scope_cnt > 1 ? n->scope_cnt : 0,
			.task = n->instance,
		};

		if (n->sums)
			note_sums(e, n->sums, &note);
		err = profile_add_scope_note(p, &note, profile_text(p, n->key.path_str));
	}
	if (!err && notes->all.cnt > SCOPE_NOTES_CAP)
		err = profile_comment(p, "%zu more %s are not listed",
				      notes->all.cnt - SCOPE_NOTES_CAP, what);
	return err;
}

int scope_notes_add(const struct snapshot *s, struct engine *e, const struct tracker *t,
		    const struct scope_notes_options *opts, struct profile *p)
{
	struct scope_labels *labels = NULL;
	struct notes notes = { 0 };
	int err = scope_labels_new(s, e, t, p, opts->labels, &labels);

	hmap_init(&notes.by_path, sizeof(struct path_key));
	if (!err && (opts->labels & LABEL_SCOPE)) {
		err = collect_scopes(s, labels, opts, p, &notes);
		if (!err)
			err = write_notes(&notes, e, "peaks of scopes", opts->epoch_off_ns, p);
	}
	notes.all.cnt = 0;
	if (!err && (opts->labels & LABEL_TASK)) {
		err = collect_instances(s, labels, opts, &notes);
		if (!err)
			err = write_notes(&notes, e, "tasks", opts->epoch_off_ns, p);
	}
	hmap_release(&notes.by_path);
	vec_release(&notes.all);
	scope_labels_free(labels);
	return err;
}
