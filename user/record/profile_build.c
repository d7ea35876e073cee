/* SPDX-License-Identifier: MIT */
/*
 * profile_build.c - see profile_build.h.
 *
 * Once profile_stacks.c has made locations of the stacks, each row becomes a sample. Rows with
 * equal labels, and equal stacks without the allocator's frames, are one sample: their estimates
 * are added before anything is rounded.
 */
#include "record/profile_build_priv.h"

#include "base/hmap.h"
#include "base/printable.h"
#include "profile/history.h"
#include "profile/profile.h"
#include "profile/tag_labels.h"
#include "profile/thread_pool.h"
#include "record/scope_labels.h"
#include "record/snapshot.h"
#include "track/tracker.h"

/* scope, task, task_state, thread, pid, comm, and labels of the program */
#define LABELS_CAP (6 + TAG_LABELS_CAP)

/* A sample that is being made. */
struct row {
	uint32_t loc_first, loc_cnt;
	pid_t pid;
	uint32_t generation;
	char thread[HT_COMM_BYTES + 1];
	uint32_t label_set; /* set of scope_labels.h */
	bool has_exited; /* of the task */
	uint64_t instance;
	struct estimate inuse;
	struct estimate alloc;
	struct estimate peak;
	struct estimate pinned;
	uint32_t from; /* a row of the snapshot with the same labels */
	uint32_t first_from; /* head + 1 of the list of its rows in the snapshot: see next_from */
};

struct builder {
	const struct snapshot *s;
	const struct tracker *tracker;
	const struct profile_build_options *opts;
	struct profile *p;
	struct profile_stacks *stacks;
	struct hmap row_by_key; /* hash pair -> index in rows */
	VEC(struct row) rows;
	/* For each row of the snapshot: the next one of the same sample, + 1. */
	VEC(uint32_t) next_from;
	VEC(struct history_life) lives; /* of the row being emitted */
	struct location_list locs;
	struct scope_labels *labels;
};

struct row_key {
	uint64_t hash[2];
};

/* Rows are matched by a 128-bit hash of locations and labels: in practice equal hashes mean equal rows. */
static struct row_key key_of(const struct builder *b, const struct row *row)
{
	const uint32_t *loc = b->locs.loc.data + row->loc_first;
	struct row_key key;

	key.hash[0] = hash_bytes(loc, row->loc_cnt * sizeof(*loc));
	key.hash[1] = hash_bytes(row->thread, sizeof(row->thread)) * 31 + row->loc_cnt;
	key.hash[0] ^= (row->instance ^ (uint64_t)row->has_exited << 63) * 0xc4ceb9fe1a85ec53ULL;
	key.hash[1] ^= (row->label_set ^ row->instance << 20) * 0xd6e8feb86659fd93ULL;
	for (uint32_t i = 0; i < row->loc_cnt; i++)
		key.hash[1] = (key.hash[1] ^ loc[i]) * 0x9e3779b97f4a7c15ULL;
	if (b->opts->label_processes) {
		key.hash[0] ^= (uint64_t)row->pid << 32;
		key.hash[1] ^= row->generation * 0xff51afd7ed558ccdULL;
	}
	return key;
}

/* Set what distinguishes rows besides their stacks. */
static int note_labels(struct builder *b, const struct snapshot_row *from, struct row *row)
{
	const struct snapshot_instance *instance;
	char name[sizeof(row->thread)] = "";
	struct row_labels labels;
	int err = scope_labels_of(b->labels, from, &labels);

	if (err)
		return err;
	row->from = from - b->s->rows.data;
	row->label_set = labels.set;
	if ((b->opts->labels & LABEL_TASK) && from->instance) {
		instance = snapshot_instance(b->s, labels.task_slot, from->instance);
		row->instance = from->instance;
		row->has_exited = instance && instance->sums.has_exited;
	}
	if (b->opts->labels & LABEL_THREAD) {
		memcpy(name, from->comm, sizeof(from->comm));
		make_printable(name);
		memcpy(row->thread, name, sizeof(row->thread));
		if (b->opts->group_threads)
			thread_pool_name(name, row->thread, sizeof(row->thread));
	}
	return 0;
}

static int add_row(struct builder *b, const struct snapshot_row *from)
{
	const uint64_t *known;
	struct row row = { .pid = from->pid, .generation = from->generation };
	struct row *into = &row;
	struct row_key key;
	int err;

	err = note_labels(b, from, &row);
	if (err)
		return err;
	row.loc_first = b->locs.loc.cnt;
	err = profile_stacks_append(b->stacks, from->stack_id, &b->locs);
	if (err)
		return err;
	row.loc_cnt = b->locs.loc.cnt - row.loc_first;
	key = key_of(b, &row);
	known = hmap_get(&b->row_by_key, &key);
	if (known) {
		into = &b->rows.data[*known];
		b->locs.loc.cnt = row.loc_first;
	}
	estimate_merge(&into->inuse, &from->inuse);
	estimate_merge(&into->alloc, &from->alloc);
	estimate_merge(&into->peak, &from->peak);
	estimate_merge(&into->pinned, &from->pinned);
	if (vec_push(&b->next_from, into->first_from))
		return -ENOMEM;
	into->first_from = (uint32_t)b->next_from.cnt;
	if (known)
		return 0;
	err = vec_push(&b->rows, row);
	return err ? err : hmap_put(&b->row_by_key, &key, b->rows.cnt - 1);
}

static int add_label(struct builder *b, struct profile_label *labels, size_t *cnt, const char *key,
		     const char *value)
{
	int64_t key_str = profile_str(b->p, key), str = profile_str(b->p, value);

	if (key_str < 0 || str < 0)
		return -ENOMEM;
	labels[(*cnt)++] = (struct profile_label){ .key_str = key_str, .str = str };
	return 0;
}

static int process_labels(struct builder *b, const struct row *row, struct profile_label *labels,
			  size_t *cnt)
{
	const struct track_instance *inst;
	char text[HT_COMM_BYTES + 1];
	int err;

	snprintf(text, sizeof(text), "%d", row->pid);
	err = add_label(b, labels, cnt, "pid", text);
	inst = instances_find(tracker_instances(b->tracker), row->pid, row->generation);
	snprintf(text, sizeof(text), "%.*s", HT_COMM_BYTES, inst ? inst->comm : "?");
	return err ? err : add_label(b, labels, cnt, "comm", text);
}

static int task_labels(struct builder *b, const struct row *row, struct profile_label *labels,
		       size_t *cnt)
{
	int64_t key_str = profile_str(b->p, "task");

	if (key_str < 0)
		return -ENOMEM;
	labels[(*cnt)++] =
		(struct profile_label){ .key_str = key_str, .num = (int64_t)row->instance };
	return row->has_exited ? add_label(b, labels, cnt, "task_state", "exited") : 0;
}

static int make_labels(struct builder *b, const struct row *row, struct profile_label *labels,
		       size_t *ret_cnt)
{
	struct row_labels of;
	size_t cnt = 0;
	int err = scope_labels_of(b->labels, &b->s->rows.data[row->from], &of);

	if (!err && of.scope_str)
		err = add_label(b, labels, &cnt, "scope", profile_text(b->p, of.scope_str));
	for (size_t i = 0; i < of.label_cnt && !err; i++)
		labels[cnt++] = of.labels[i];
	if (!err && row->instance)
		err = task_labels(b, row, labels, &cnt);
	if (!err && row->thread[0])
		err = add_label(b, labels, &cnt, "thread", row->thread);
	if (!err && b->opts->label_processes)
		err = process_labels(b, row, labels, &cnt);
	*ret_cnt = cnt;
	return err;
}

static int compare_lives(const void *a, const void *b)
{
	const struct history_life *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last < y->last ? -1 : x->last > y->last;
}

/*
 * The history knows no tasks. So all lives of a stack go to its row without a task, which always
 * exists (it has the allocated values). What a program held before it executed another one is in no
 * value.
 */
static int collect_lives(struct builder *b, const struct row *row)
{
	b->lives.cnt = 0;
	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];
		const struct history_key key = {
			.stack_id = from->stack_id,
			.image = (uint64_t)from->pid << 32 | from->generation,
			.context_id = from->context_id,
		};
		const struct history_life *life;
		size_t cnt = 0;

		if (from->instance || instances_is_replaced(tracker_instances(b->tracker),
							    from->pid, from->generation))
			continue;
		life = history_lives(b->opts->history, &key, &cnt);
		for (size_t k = 0; k < cnt; k++)
			if (vec_push(&b->lives, life[k]))
				return -ENOMEM;
	}
	return 0;
}

static int emit_lives(struct builder *b, const struct row *row)
{
	size_t kept = 0;
	int err = b->opts->history ? collect_lives(b, row) : 0;

	if (err || !b->opts->history || !b->lives.cnt)
		return err;
	vec_sort(&b->lives, compare_lives);
	for (size_t i = 1; i < b->lives.cnt; i++) {
		struct history_life *to = &b->lives.data[kept], *from = &b->lives.data[i];

		if (compare_lives(to, from)) {
			b->lives.data[++kept] = *from;
			continue;
		}
		to->samples += from->samples;
		to->bytes += from->bytes;
		to->variance += from->variance;
	}
	return profile_add_lives(b->p, b->lives.data, kept + 1);
}

/* Find the first age of a row of the snapshot; ages are sorted by row. */
static size_t first_age(const struct snapshot *s, uint32_t row)
{
	size_t low = 0, high = s->ages.cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->ages.data[mid].row < row)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void add_age_part(struct age_part *to, const struct age_part *from)
{
	to->samples += from->samples;
	to->bytes += from->bytes;
	to->bytes_variance += from->bytes_variance;
	to->objects += from->objects;
	to->objects_variance += from->objects_variance;
}

static int emit_ages(struct builder *b, const struct row *row, struct profile_sample *sample)
{
	struct age_part parts[AGE_CLASS_CNT] = { 0 };
	int err = 0;

	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];

		if (instances_is_replaced(tracker_instances(b->tracker), from->pid,
					  from->generation))
			continue;
		for (size_t k = first_age(b->s, i - 1);
		     k < b->s->ages.cnt && b->s->ages.data[k].row == i - 1; k++) {
			const struct snapshot_age *age = &b->s->ages.data[k];

			add_age_part(&parts[age->part.age_class], &age->part);
			if (age->oldest_ns > sample->oldest_ns)
				sample->oldest_ns = age->oldest_ns;
		}
	}
	for (uint32_t c = 0; c < AGE_CLASS_CNT && !err; c++) {
		parts[c].age_class = c;
		if (parts[c].samples)
			err = profile_add_age(b->p, &parts[c]);
	}
	return err;
}

/* Add up the bins of the sample's rows in the snapshot. Allocated values of a program stay after an exec. */
static int emit_bins(struct builder *b, const struct row *row, struct profile_sample *sample)
{
	struct bin_part parts[HT_BIN_CNT] = { 0 };
	int err = 0;

	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];

		sample->freed_objects += from->freed_objects;
		sample->freed_bytes += from->freed_bytes;
		for (uint32_t k = 0; k < from->bin_cnt; k++) {
			const struct bin_part *part = &b->s->bins.data[from->bin_first + k];
			struct bin_part *to = &parts[part->bin];

			to->samples += part->samples;
			to->objects += part->objects;
			to->bytes += part->bytes;
			to->bytes_variance += part->bytes_variance;
		}
	}
	for (uint32_t bin = 0; bin < HT_BIN_CNT && !err; bin++) {
		parts[bin].bin = bin;
		if (parts[bin].samples)
			err = profile_add_bin(b->p, &parts[bin]);
	}
	return err;
}

static int add_moments(struct builder *b)
{
	const struct history_moments *m;
	int err = 0;

	if (!b->opts->history)
		return 0;
	m = history_moments(b->opts->history);
	for (size_t i = 0; i < m->cnt && !err; i++)
		err = vec_push(&b->p->moments_ns, (int64_t)(m->ns[i] - b->opts->begin_ns));
	b->p->is_history_partial =
		b->opts->is_history_partial || m->lost_cnt || b->s->stats[HT_STAT_TOTALS_FULL];
	return err;
}

/* The only place where values are rounded. */
static int emit_row(struct builder *b, const struct row *row)
{
	int64_t values[PROFILE_VALUE_CAP] = {
		[PROFILE_ALLOC_OBJECTS] = profile_value(row->alloc.objects),
		[PROFILE_ALLOC_SPACE] = profile_value(row->alloc.bytes),
		[PROFILE_INUSE_OBJECTS] = profile_value(row->inuse.objects),
		[PROFILE_INUSE_SPACE] = profile_value(row->inuse.bytes),
		[PROFILE_PEAK_SPACE] = profile_value(row->peak.bytes),
		[PROFILE_PINNED_SPACE] = profile_value(row->pinned.bytes),
	};
	struct profile_label labels[LABELS_CAP];
	struct profile_sample *sample;
	size_t label_cnt = 0;
	int err = make_labels(b, row, labels, &label_cnt);

	if (err)
		return err;
	if (!b->s->peak_ns) /* then it has no type, and the next one has its place */
		values[PROFILE_PEAK_SPACE] = values[PROFILE_PINNED_SPACE];
	err = profile_add_sample(b->p, b->locs.loc.data + row->loc_first, row->loc_cnt, values,
				 labels, label_cnt, &sample);
	if (err)
		return err;
	sample->has_error = true;
	sample->inuse_samples = row->inuse.samples;
	sample->inuse_bytes_variance = row->inuse.bytes_variance;
	sample->inuse_objects_variance = row->inuse.objects_variance;
	sample->alloc_samples = row->alloc.samples;
	sample->alloc_bytes_variance = row->alloc.bytes_variance;
	sample->alloc_bytes_beyond = fmax(row->alloc.bytes - PROFILE_VALUE_MAX, 0);
	sample->peak_samples = row->peak.samples;
	sample->peak_bytes_variance = row->peak.bytes_variance;
	sample->peak_objects = row->peak.objects;
	sample->pinned_bytes_variance = row->pinned.bytes_variance;
	err = emit_ages(b, row, sample);
	if (!err && b->p->has_bins)
		err = emit_bins(b, row, sample);
	return err ? err : emit_lives(b, row);
}

static int emit_samples(struct builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->s->rows.cnt && !err; i++)
		err = add_row(b, &b->s->rows.data[i]);
	for (size_t i = 0; i < b->rows.cnt && !err; i++)
		err = emit_row(b, &b->rows.data[i]);
	return err;
}

/* Of main_pid, or of the last known process; NULL: none. */
static const struct track_instance *main_image(const struct tracker *t, pid_t main_pid)
{
	const struct track_instance *inst = tracker_instances(t)->list.data;
	size_t cnt = tracker_instances(t)->list.cnt;

	while (cnt && main_pid && inst[cnt - 1].pid != main_pid)
		cnt--;
	return cnt ? &inst[cnt - 1] : NULL;
}

int profile_build(const struct snapshot *s, struct engine *e, const struct track_files *files,
		  const struct tracker *t, const struct profile_build_options *opts,
		  struct profile **ret)
{
	struct builder b = { .s = s, .tracker = t, .opts = opts };
	int err = profile_new(&b.p);

	if (err)
		return err;
	hmap_init(&b.row_by_key, sizeof(struct row_key));
	b.p->has_bins = !opts->is_delta;
	err = profile_set_heap_types(b.p, opts->rate_bytes);
	if (!err && s->peak_ns)
		err = profile_add_type(b.p, "peak_space");
	if (!err && s->has_pinned)
		err = profile_add_type(b.p, "pinned_space");
	if (!err)
		err = scope_labels_new(s, e, t, b.p, opts->labels, &b.labels);
	if (!err)
		err = profile_stacks_new(s, e, files, opts, main_image(t, opts->main_pid), b.p,
					 &b.stacks);
	if (!err)
		err = add_moments(&b);
	if (!err)
		err = emit_samples(&b);
	if (!err) {
		*ret = b.p;
		b.p = NULL;
	}
	scope_labels_free(b.labels);
	profile_stacks_free(b.stacks);
	profile_free(b.p);
	hmap_release(&b.row_by_key);
	vec_release(&b.rows);
	vec_release(&b.next_from);
	vec_release(&b.lives);
	vec_release(&b.locs.loc);
	return err;
}
