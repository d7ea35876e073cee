/* SPDX-License-Identifier: MIT */
/*
 * snapshot.c - see snapshot.h.
 *
 * There may be a million samples in random order, and each may belong to any row. Their cost is
 * cache lines. So the rows have a table of their own, not an hmap: a slot of four bytes, then a
 * cell of one cache line with the key and the sums of samples that were kept for certain. Only the
 * other samples, which have more to sum up, go to the row itself.
 */
#include "record/snapshot.h"

#include "base/clock.h"
#include "heaptap/sum.h"
#include "kernel/engine.h"
#include "profile/history.h"
#include "profile/resident_rows.h"
#include "track/tracker.h"

struct row_key {
	uint64_t stack_id;
	uint64_t instance;
	uint64_t image; /* tgid and generation, because context 0 does not tell them */
	uint64_t context_id;
};

#define CELL_BYTES 64

/* The cell of the row with the same index. */
struct cell {
	struct row_key key;
	uint64_t certain_cnt, certain_bytes; /* samples with a probability of 1 */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct cell) == CELL_BYTES, "a cache line");

#define SLOTS_LEAST 1024

struct row_bin {
	uint32_t row;
	struct bin_part part;
};

struct known_context {
	struct ht_context context;
	bool is_known;
	bool is_left_out; /* its image is to be taken out of the maps */
};

struct builder {
	struct engine *engine;
	const struct tracker *tracker; /* NULL: nothing is left out */
	struct snapshot *s;
	VEC(struct known_context) contexts; /* by id: BPF gives out the smallest that are free */
	uint32_t *slots; /* index of a cell + 1; 0: empty. At most half are used */
	unsigned slot_bits; /* 2^slot_bits slots; 0: none yet */
	struct cell *cells; /* aligned; half as many as slots */
	bool has_stacks; /* rows also differ by stack and task */
	struct history *history; /* NULL: not a moment of a history, and ages are not wanted */
	const struct resident_pins *pins; /* NULL: not known */
	VEC(struct row_bin) bins;
	struct engine_peak peak; /* valid if the snapshot has the time of one */
	struct hmap age_by_key; /* row << 8 | class -> index in the snapshot's ages */
	uint64_t now_ns;
};

static int on_context(void *ctx, const struct ht_context *k, const struct ht_context_value *v)
{
	struct builder *b = ctx;

	b->s->context_cnt++;
	if (vec_reserve(&b->contexts, (size_t)v->id + 1))
		return -ENOMEM;
	while (b->contexts.cnt <= v->id)
		b->contexts.data[b->contexts.cnt++] = (struct known_context){ 0 };
	b->contexts.data[v->id] = (struct known_context){
		.context = *k,
		.is_known = true,
		.is_left_out =
			b->tracker && tracker_is_let_go(b->tracker, (pid_t)k->tgid, k->generation),
	};
	return 0;
}

/* NULL: unknown. */
static const struct known_context *context_by_id(const struct builder *b, uint32_t id)
{
	bool is_known = id < b->contexts.cnt && b->contexts.data[id].is_known;

	return is_known ? &b->contexts.data[id] : NULL;
}

static bool is_left_out(const struct builder *b, uint32_t context_id)
{
	const struct known_context *c = context_by_id(b, context_id);

	return c && c->is_left_out;
}

static uint64_t image_of(uint32_t tgid, uint32_t generation)
{
	return (uint64_t)tgid << 32 | generation;
}

/* Ids of stacks are already hashes; the other members are small numbers. */
static uint32_t *find_slot(const struct builder *b, const struct row_key *key)
{
	const uint64_t k = 0x9e3779b97f4a7c15ULL;
	uint64_t h = (((key->image * k) ^ key->context_id) * k ^ key->instance) * k ^ key->stack_id;
	size_t mask = ((size_t)1 << b->slot_bits) - 1, i = (h * k) >> (64 - b->slot_bits);

	for (; b->slots[i]; i = (i + 1) & mask) {
		const struct row_key *at = &b->cells[b->slots[i] - 1].key;

		if (at->stack_id == key->stack_id && at->image == key->image &&
		    at->context_id == key->context_id && at->instance == key->instance)
			break;
	}
	return &b->slots[i];
}

/* Double the number of slots. */
static int grow(struct builder *b)
{
	size_t old_cnt = b->slot_bits ? (size_t)1 << b->slot_bits : 0;
	size_t cnt = old_cnt ? old_cnt * 2 : SLOTS_LEAST;
	uint32_t *slots = calloc(cnt, sizeof(*slots));
	struct cell *cells = aligned_alloc(CELL_BYTES, cnt / 2 * sizeof(*cells));

	if (!slots || !cells) {
		free(slots);
		free(cells);
		return -ENOMEM;
	}
	if (b->s->rows.cnt)
		memcpy(cells, b->cells, b->s->rows.cnt * sizeof(*cells));
	free(b->slots);
	free(b->cells);
	b->slots = slots;
	b->cells = cells;
	b->slot_bits = (unsigned)__builtin_ctzll(cnt);
	for (uint32_t i = 0; i < b->s->rows.cnt; i++)
		*find_slot(b, &cells[i].key) = i + 1;
	return 0;
}

static int add_row(struct builder *b, const struct row_key *key)
{
	const struct known_context *known = context_by_id(b, (uint32_t)key->context_id);
	const struct ht_context *context = known ? &known->context : NULL;
	struct snapshot_row row = {
		.stack_id = key->stack_id,
		.pid = (pid_t)(key->image >> 32),
		.generation = (uint32_t)key->image,
		.context_id = (uint32_t)key->context_id,
		.instance = key->instance,
		.source = HT_SOURCE_OTHER,
	};

	if (context) {
		memcpy(row.comm, context->comm, sizeof(row.comm));
		row.source = context->source;
		row.node = context->node;
		row.labels_id = context->labels_id;
	}
	b->cells[b->s->rows.cnt] = (struct cell){ .key = *key };
	return vec_push(&b->s->rows, row);
}

/* Find or make the row of a key; return its index or -ENOMEM. */
static int64_t get_row(struct builder *b, const struct row_key *key)
{
	size_t cnt = b->s->rows.cnt;
	uint32_t *slot;
	int err = 0;

	if (!b->slot_bits || cnt >= (size_t)1 << (b->slot_bits - 1))
		err = grow(b);
	if (err)
		return err;
	slot = find_slot(b, key);
	if (*slot)
		return *slot - 1;
	err = add_row(b, key);
	if (err)
		return err;
	*slot = (uint32_t)cnt + 1;
	return (int64_t)cnt;
}

static int add_to_history(struct history *h, const struct ht_live_key *k, const struct ht_live *v)
{
	const struct history_key key = { .stack_id = v->stack_id,
					 .image = image_of(k->tgid, k->generation),
					 .context_id = v->context_id };

	return history_add(h, &key, v->time_ns, v->size_bytes,
			   estimate_threshold_probability(v->threshold));
}

static int add_age(struct builder *b, uint32_t row, const struct ht_live *v)
{
	uint64_t age_ns = b->now_ns > v->time_ns ? b->now_ns - v->time_ns : 0;
	uint64_t key = (uint64_t)row << 8 | age_class_of(age_ns);
	const struct snapshot_age fresh = { .row = row, .part.age_class = age_class_of(age_ns) };
	double p = estimate_threshold_probability(v->threshold), n = (double)v->size_bytes;
	struct snapshot_age *age;
	uint64_t i;

	if (hmap_add(&b->age_by_key, &key, b->s->ages.cnt, &i) ||
	    (i == b->s->ages.cnt && vec_push(&b->s->ages, fresh)))
		return -ENOMEM;
	age = &b->s->ages.data[i];
	age->part.samples++;
	age->part.bytes += n / p;
	age->part.bytes_variance += n * n * (1 - p) / (p * p);
	age->part.objects += 1 / p;
	age->part.objects_variance += (1 - p) / (p * p);
	if (age_ns > age->oldest_ns)
		age->oldest_ns = age_ns;
	return 0;
}

static int compare_ages(const void *a, const void *b)
{
	const struct snapshot_age *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->part.age_class < y->part.age_class ? -1 : x->part.age_class > y->part.age_class;
}

/* Like estimate_add(), which takes whole bytes: each block's part is small. */
static void add_pinned(struct builder *b, struct estimate *e, const struct ht_live_key *k,
		       const struct ht_live *v)
{
	double p = estimate_threshold_probability(v->threshold), bytes;

	if (image_of(k->tgid, k->generation) != b->pins->image)
		return;
	bytes = resident_pins_bytes(b->pins, k->addr, v->time_ns);
	if (isnan(bytes)) {
		b->s->unpinned_cnt++;
		return;
	}
	b->s->pinned_cnt++;
	e->bytes += bytes / p;
	e->bytes_variance += bytes * bytes * (1 - p) / (p * p);
}

static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct builder *b = ctx;
	struct row_key key = { .context_id = v->context_id,
			       .image = image_of(k->tgid, k->generation) };
	int64_t row;

	b->s->live_cnt++;
	if (is_left_out(b, v->context_id))
		return 0;
	if (b->history && add_to_history(b->history, k, v))
		return -ENOMEM;
	if (b->has_stacks) {
		key.stack_id = v->stack_id;
		key.instance = v->instance;
	}
	row = get_row(b, &key);
	if (row < 0)
		return (int)row;
	if (b->history && add_age(b, (uint32_t)row, v))
		return -ENOMEM;
	if (b->pins)
		add_pinned(b, &b->s->rows.data[row].pinned, k, v);
	if (v->threshold == HT_KEEP_ALWAYS) {
		b->cells[row].certain_cnt++;
		b->cells[row].certain_bytes += v->size_bytes;
	} else {
		estimate_add(&b->s->rows.data[row].inuse, v->size_bytes,
			     estimate_threshold_probability(v->threshold));
	}
	return 0;
}

/* Equals estimate_add() with a probability of 1 for each sample. */
static void add_certain(struct builder *b)
{
	for (size_t i = 0; i < b->s->rows.cnt; i++) {
		struct estimate *e = &b->s->rows.data[i].inuse;

		e->samples += b->cells[i].certain_cnt;
		e->objects += (double)b->cells[i].certain_cnt;
		e->bytes += (double)b->cells[i].certain_bytes;
	}
}

/* Find the row of a sum or of one of its bins; -ENOMEM. */
static int64_t row_of_sum(struct builder *b, uint64_t stack_id, uint32_t context_id)
{
	const struct known_context *known = context_by_id(b, context_id);
	struct row_key key = { .context_id = context_id };

	if (b->has_stacks)
		key.stack_id = stack_id;
	if (known)
		key.image = image_of(known->context.tgid, known->context.generation);
	return get_row(b, &key);
}

static int on_bin(void *ctx, const struct ht_bin_key *k, const struct ht_bin *v)
{
	struct builder *b = ctx;
	struct row_bin bin;
	int64_t row;

	/* without samples it is just being made */
	if (is_left_out(b, k->context_id) || !v->samples || k->bin >= HT_BIN_CNT)
		return 0;
	row = row_of_sum(b, k->stack_id, k->context_id);
	if (row < 0)
		return (int)row;
	bin.row = (uint32_t)row;
	bin.part = (struct bin_part){ .bin = k->bin,
				      .samples = v->samples,
				      .objects = ht_sum_value(&v->objects_16, 16),
				      .bytes = ht_sum_value(&v->bytes_8, 8),
				      .bytes_variance = engine_variance(b->engine, &v->variance) };
	return vec_push(&b->bins, bin);
}

/* Insert into the row's bins, of which there are few. */
static void insert_bin(struct bin_part *bins, uint32_t *cnt, const struct bin_part *part)
{
	uint32_t i = (*cnt)++;

	for (; i && bins[i - 1].bin > part->bin; i--)
		bins[i] = bins[i - 1];
	bins[i] = *part;
}

static int take_bins(struct builder *b)
{
	struct snapshot_row *rows = b->s->rows.data, *row;
	const struct row_bin *bin;
	int err = vec_reserve(&b->s->bins, b->bins.cnt + 1);

	if (err)
		return err;
	vec_each(&b->bins, bin)
		rows[bin->row].bin_cnt++;
	vec_each(&b->s->rows, row) {
		row->bin_first = (uint32_t)b->s->bins.cnt;
		b->s->bins.cnt += row->bin_cnt;
		row->bin_cnt = 0;
	}
	vec_each(&b->bins, bin) {
		row = &rows[bin->row];
		insert_bin(b->s->bins.data + row->bin_first, &row->bin_cnt, &bin->part);
	}
	return 0;
}

static int on_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct builder *b = ctx;
	struct estimate *alloc, peak;
	int64_t row;

	b->s->total_cnt++;
	if (is_left_out(b, k->context_id))
		return 0;
	row = row_of_sum(b, k->stack_id, k->context_id);
	if (row < 0)
		return (int)row;
	alloc = &b->s->rows.data[row].alloc;
	alloc->samples += v->alloc_samples;
	alloc->objects += ht_sum_value(&v->alloc_objects_16, 16);
	alloc->bytes += ht_sum_value(&v->alloc_bytes_8, 8);
	alloc->bytes_variance += engine_variance(b->engine, &v->alloc_variance);
	b->s->rows.data[row].freed_objects += ht_sum_value(&v->free_objects_16, 16);
	b->s->rows.data[row].freed_bytes += ht_sum_value(&v->free_bytes_8, 8);
	if (b->s->peak_ns) {
		engine_peak_of(b->engine, &b->peak, b->cells[row].key.image, v, &peak);
		estimate_merge(&b->s->rows.data[row].peak, &peak);
	}
	return 0;
}

static int on_scope(void *ctx, const struct ht_scope_key *k, const struct ht_scope *v)
{
	struct builder *b = ctx;
	struct snapshot *s = b->s;
	struct snapshot_scope scope = { .key = *k, .scope = *v };
	int err = engine_get_scope_sums(b->engine, v->slot, &scope.sums);

	if (err) /* slot beyond the map: the object is broken */
		return err;
	err = vec_push(&s->scopes, scope);
	if (!err)
		err = hmap_put(&s->scope_by_key, k, s->scopes.cnt - 1);
	return err ? err : hmap_put(&s->scope_by_slot, &v->slot, s->scopes.cnt - 1);
}

static int on_instance(void *ctx, const struct ht_instance_key *k, const struct ht_instance *v)
{
	struct builder *b = ctx;
	struct snapshot_instance instance = { .key = *k, .sums = *v };
	int err = vec_push(&b->s->instances, instance);

	return err ? err : hmap_put(&b->s->instance_by_key, k, b->s->instances.cnt - 1);
}

static int builder_init(struct builder *b, struct engine *e)
{
	*b = (struct builder){ .engine = e, .s = calloc(1, sizeof(*b->s)), .now_ns = now_ns() };
	if (!b->s)
		return -ENOMEM;
	hmap_init(&b->age_by_key, sizeof(uint64_t));
	hmap_init(&b->s->scope_by_key, sizeof(struct ht_scope_key));
	hmap_init(&b->s->scope_by_slot, sizeof(uint32_t));
	hmap_init(&b->s->instance_by_key, sizeof(struct ht_instance_key));
	return 0;
}

/* Pass the snapshot to *ret unless there is an error. */
static int builder_end(struct builder *b, int err, struct snapshot **ret)
{
	const struct snapshot_row *row;

	vec_each(&b->s->rows, row)
		estimate_merge(&b->s->inuse, &row->inuse);
	if (err)
		snapshot_free(b->s);
	else
		*ret = b->s;
	hmap_release(&b->age_by_key);
	free(b->slots);
	free(b->cells);
	vec_release(&b->bins);
	vec_release(&b->contexts);
	return err;
}

static int take_totals(struct builder *b)
{
	bool is_known;
	int err = engine_peak_begin(b->engine, &b->peak, &is_known);

	if (!err && is_known && b->has_stacks)
		b->s->peak_ns = b->peak.time_ns;
	if (!err)
		err = engine_each_total(b->engine, on_total, b);
	engine_peak_end(&b->peak);
	return err;
}

/* A process that frees and allocates blocks all the time has others at the end than were listed. */
#define UNPINNED_CAP 10 /* at most one block of so many */

static int take(struct engine *e, const struct tracker *t, bool has_stacks, struct history *h,
		const struct resident_pins *pins, struct snapshot **ret)
{
	struct builder b;
	int err = builder_init(&b, e);

	if (err)
		return err;
	b.tracker = t;
	b.has_stacks = has_stacks;
	b.history = h;
	b.pins = pins;
	/* A context that is made after this belongs to samples newer than the snapshot. The scope
	 * of a context existed before it. */
	err = engine_each_context(e, on_context, &b);
	if (!err)
		err = engine_each_scope(e, on_scope, &b);
	if (!err)
		err = engine_each_live(e, on_live, &b);
	/* Read bins before the sums that they are parts of, so that the sums contain them. */
	if (!err && has_stacks)
		err = engine_each_bin(e, on_bin, &b);
	if (!err)
		err = take_totals(&b);
	if (!err)
		err = take_bins(&b);
	if (!err && has_stacks)
		err = engine_each_instance(e, on_instance, &b);
	if (!err)
		err = engine_read_stats(e, b.s->stats);
	b.s->has_pinned =
		pins && b.s->unpinned_cnt * UNPINNED_CAP <= b.s->unpinned_cnt + b.s->pinned_cnt;
	add_certain(&b);
	vec_sort(&b.s->ages, compare_ages);
	return builder_end(&b, err, ret);
}

int snapshot_of(struct engine *e, const struct snapshot_given *given, size_t cnt,
		struct snapshot **ret)
{
	struct builder b;
	int err = builder_init(&b, e);

	if (err)
		return err;
	err = engine_each_context(e, on_context, &b);
	if (!err)
		err = engine_each_scope(e, on_scope, &b);
	for (size_t i = 0; i < cnt && !err; i++) {
		const struct row_key key = { .stack_id = given[i].stack_id,
					     .image = given[i].image,
					     .context_id = given[i].context_id };
		int64_t row = get_row(&b, &key);

		if (row < 0)
			err = (int)row;
		else
			b.s->rows.data[row].inuse = given[i].inuse;
	}
	return builder_end(&b, err, ret);
}

int snapshot_take(struct engine *e, const struct tracker *t, struct snapshot **ret)
{
	return take(e, t, true, NULL, NULL, ret);
}

int snapshot_take_moment(struct engine *e, struct history *h, const struct resident_pins *pins,
			 struct snapshot **ret)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int err;

	if (h)
		history_begin(h, now_ns());
	err = take(e, NULL, true, h, pins, ret);
	return err || !h ? err : history_end(h, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns);
}

static int on_block(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct resident_pins *to = ctx;

	if (image_of(k->tgid, k->generation) != to->image)
		return 0;
	if (to->list.cnt == RESIDENT_PINS_CAP)
		return -EFBIG;
	return vec_push(&to->list,
			(struct resident_pin){ k->addr, v->time_ns,
					       1 / estimate_threshold_probability(v->threshold) });
}

int snapshot_list_blocks(struct engine *e, pid_t pid, uint32_t generation, struct resident_pins *to)
{
	to->image = image_of((uint32_t)pid, generation);
	return engine_each_live(e, on_block, to);
}

static int on_live_moment(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	return add_to_history(ctx, k, v);
}

int snapshot_read_moment(struct engine *e, struct history *h)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int err;

	history_begin(h, now_ns());
	err = engine_each_live(e, on_live_moment, h);
	return err ? err : history_end(h, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns);
}

int snapshot_take_contexts(struct engine *e, const struct tracker *t, struct snapshot **ret)
{
	return take(e, t, false, NULL, NULL, ret);
}

static int add_exec_held(struct snapshot *s, const struct snapshot_row *row)
{
	struct snapshot_held *h;

	vec_each(&s->exec_held, h)
		if (h->pid == row->pid && h->generation == row->generation) {
			estimate_merge(&h->held, &row->inuse);
			return 0;
		}
	return vec_push(&s->exec_held,
			(struct snapshot_held){ row->pid, row->generation, row->inuse });
}

int snapshot_part_replaced(struct snapshot *s, const struct tracker *t)
{
	struct snapshot_row *row;
	int err = 0;

	s->inuse = (struct estimate){ 0 };
	vec_each(&s->rows, row) {
		if (instances_is_replaced(tracker_instances(t), row->pid, row->generation)) {
			if (row->inuse.samples && !err)
				err = add_exec_held(s, row);
			row->inuse = row->pinned = (struct estimate){ 0 };
		}
		estimate_merge(&s->inuse, &row->inuse);
	}
	return err;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	vec_release(&s->rows);
	vec_release(&s->ages);
	vec_release(&s->bins);
	vec_release(&s->exec_held);
	vec_release(&s->scopes);
	vec_release(&s->instances);
	hmap_release(&s->scope_by_key);
	hmap_release(&s->scope_by_slot);
	hmap_release(&s->instance_by_key);
	free(s);
}

const struct snapshot_scope *snapshot_scope(const struct snapshot *s,
					    const struct ht_scope_key *key)
{
	const uint64_t *idx = hmap_get(&s->scope_by_key, key);

	return idx ? &s->scopes.data[*idx] : NULL;
}

const struct snapshot_instance *snapshot_instance(const struct snapshot *s, uint32_t task_slot,
						  uint64_t instance)
{
	const struct ht_instance_key key = { .task_slot = task_slot, .instance = instance };
	const uint64_t *idx = hmap_get(&s->instance_by_key, &key);

	return idx ? &s->instances.data[*idx] : NULL;
}
