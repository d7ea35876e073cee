/* SPDX-License-Identifier: MIT */
/* scope_labels.c - see scope_labels.h. */
#include "record/scope_labels.h"

#include "base/hmap.h"
#include "base/printable.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "heaptap/sum.h"
#include "kernel/engine.h"
#include "profile/scope_note.h"
#include "profile/scope_tree.h"
#include "profile/tag_labels.h"
#include "record/snapshot.h"
#include "track/tracker.h"

/* Longer paths are cut at the end, which is farthest from the root. */
#define PATH_BYTES 4096
#define CHAIN_CAP (HT_SCOPE_DEPTH_CAP + 2)

/* A {process, scope, labels}; the key of `known`. */
struct tag_key {
	uint32_t pid, generation;
	uint32_t source, node;
	uint64_t labels_id;
};

struct tag_value {
	uint32_t set;
	uint32_t task_slot;
};

/* A distinct {path, labels}. */
struct label_set {
	int64_t scope_str;
	uint32_t first, cnt; /* in `labels` */
};

struct scope_labels {
	const struct snapshot *s;
	struct engine *engine;
	const struct tracker *tracker;
	struct profile *p;
	unsigned wanted;
	struct hmap known; /* struct tag_key -> index in values */
	VEC(struct tag_value) values;
	struct hmap set_by_text; /* string that names the set -> index in sets */
	struct strset *texts; /* names of sets */
	VEC(struct label_set) sets;
	VEC(struct profile_label) labels;
	struct profile_label now[TAG_LABELS_CAP]; /* of the current row */
	size_t now_cnt;
};

int scope_labels_new(const struct snapshot *s, struct engine *e, const struct tracker *t,
		     struct profile *p, unsigned wanted, struct scope_labels **ret)
{
	struct scope_labels *sl = calloc(1, sizeof(*sl));
	int err;

	if (!sl)
		return -ENOMEM;
	sl->s = s;
	sl->engine = e;
	sl->tracker = t;
	sl->p = p;
	sl->wanted = wanted;
	hmap_init(&sl->known, sizeof(struct tag_key));
	hmap_init(&sl->set_by_text, sizeof(int64_t));
	err = strset_new(&sl->texts);
	if (err) {
		scope_labels_free(sl);
		return err;
	}
	*ret = sl;
	return 0;
}

void scope_labels_free(struct scope_labels *sl)
{
	if (!sl)
		return;
	hmap_release(&sl->known);
	hmap_release(&sl->set_by_text);
	strset_free(sl->texts);
	vec_release(&sl->values);
	vec_release(&sl->sets);
	vec_release(&sl->labels);
	free(sl);
}

/* The path from the root to a scope. */
struct chain {
	const struct ht_scope *scope[CHAIN_CAP];
	size_t cnt;
};

static const struct snapshot_scope *snapshot_scope_at(const struct snapshot *s, uint32_t slot)
{
	const uint64_t *idx = hmap_get(&s->scope_by_slot, &slot);

	return idx ? &s->scopes.data[*idx] : NULL;
}

static void climb(const struct snapshot *s, const struct snapshot_scope *from, struct chain *ret)
{
	const struct snapshot_scope *at = from;
	size_t cnt = 0;

	while (at && cnt < CHAIN_CAP) {
		ret->scope[cnt++] = &at->scope;
		at = at->scope.parent_slot ? snapshot_scope_at(s, at->scope.parent_slot) : NULL;
	}
	for (size_t i = 0; i < cnt / 2; i++) {
		const struct ht_scope *tmp = ret->scope[i];

		ret->scope[i] = ret->scope[cnt - 1 - i];
		ret->scope[cnt - 1 - i] = tmp;
	}
	ret->cnt = cnt;
}

/* Append a name. */
static size_t put_name(char *ret, size_t used, const struct ht_scope *scope)
{
	for (size_t i = 0; i < scope->name_len && used < PATH_BYTES - 8; i++) {
		char c = scope->name[i];

		if (c == '/' || c == '\\')
			ret[used++] = '\\';
		ret[used++] = printable(c);
	}
	if (scope->flags & 1)
		used += snprintf(ret + used, 4, "...");
	return used;
}

static const char *special_name(uint32_t source)
{
	switch (source) {
	case HT_SOURCE_UNREADABLE:
		return SCOPE_TEXT_UNREADABLE;
	case HT_SOURCE_OTHER:
		return SCOPE_TEXT_OTHER;
	default:
		return "";
	}
}

/* Return the string (of the profile) of a scope's shown path; 0: the scope is a process. */
static int64_t scope_labels_path(struct scope_labels *sl, const struct snapshot_scope *scope)
{
	char path[PATH_BYTES];
	struct chain chain;
	size_t used = 0;

	if (!scope->key.node)
		return profile_str(sl->p, special_name(scope->key.source));
	climb(sl->s, scope, &chain);
	for (size_t i = 0; i < chain.cnt; i++) {
		const struct ht_scope *at = chain.scope[i];

		if (!at->kind || at->kind == HT_NODE_LABEL || used > PATH_BYTES - 16)
			continue;
		if (used)
			path[used++] = '/';
		used = put_name(path, used, at);
	}
	path[used] = '\0';
	return profile_str(sl->p, path);
}

/* Labels that have their own meaning in a profile. */
static const char *const own_keys[] = { "scope", "thread", "task", "task_state", "pid", "comm" };

static int64_t key_string(struct scope_labels *sl, const char *key)
{
	char text[HT_NAME_BYTES_CAP + 8];

	for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++) {
		if (!strcmp(key, own_keys[i])) {
			snprintf(text, sizeof(text), "app.%s", key);
			return profile_str(sl->p, text);
		}
	}
	return profile_str(sl->p, key[0] ? key : "(empty)");
}

/* A later label replaces an earlier one with the same key. */
static int put_label(struct scope_labels *sl, const char *key, const char *value)
{
	int64_t key_str = key_string(sl, key);
	int64_t str = profile_str(sl->p, value[0] ? value : "(empty)");
	size_t i = 0;

	if (key_str < 0 || str < 0)
		return -ENOMEM;
	while (i < sl->now_cnt && sl->now[i].key_str != key_str)
		i++;
	if (i == TAG_LABELS_CAP)
		return 0;
	sl->now[i] = (struct profile_label){ .key_str = key_str, .str = str };
	if (i == sl->now_cnt)
		sl->now_cnt++;
	return 0;
}

/* Put the label of one LABEL node, which may have any bytes. */
static int put_node_label(struct scope_labels *sl, const struct ht_scope *node)
{
	char key[HT_NAME_BYTES_CAP], value[HT_NAME_BYTES_CAP];

	snprintf(key, sizeof(key), "%.*s", (int)node->name_len, node->name);
	snprintf(value, sizeof(value), "%.*s", (int)node->value_len, node->value);
	return put_label(sl, key, value);
}

static int put_foreign_labels(struct scope_labels *sl, const struct snapshot_row *row)
{
	const struct track_instance *inst;
	struct tag_label label[TAG_LABELS_CAP] = { 0 };
	struct ht_labels *raw = malloc(sizeof(*raw));
	int cnt, err = 0;

	if (!raw)
		return -ENOMEM;
	cnt = engine_get_labels(sl->engine, row->labels_id, raw);
	if (!cnt) {
		inst = instances_find(tracker_instances(sl->tracker), row->pid, row->generation);
		cnt = tag_labels_decode(raw, inst ? inst->tag_keys : NULL, sl->texts, label);
		err = cnt < 0 ? cnt : 0;
	}
	for (int i = 0; i < cnt && !err; i++)
		err = put_label(sl, strset_get(sl->texts, label[i].key_str),
				strset_get(sl->texts, label[i].value_str));
	free(raw);
	return err;
}

static int by_key(const void *a, const void *b)
{
	const struct profile_label *l = a, *r = b;

	return (l->key_str > r->key_str) - (l->key_str < r->key_str);
}

/* Name {scope_str, sl->now} by its ids in hex, because a strset needs text. */
static int64_t set_text(struct scope_labels *sl, int64_t scope_str)
{
	size_t bytes = 17 * (1 + 2 * sl->now_cnt) + 1, used;
	char *text = malloc(bytes);
	int64_t id;

	if (!text)
		return -ENOMEM;
	used = snprintf(text, bytes, "%llx", (unsigned long long)scope_str);
	for (size_t i = 0; i < sl->now_cnt; i++)
		used += snprintf(text + used, bytes - used, ",%llx,%llx",
				 (unsigned long long)sl->now[i].key_str,
				 (unsigned long long)sl->now[i].str);
	id = strset_add(sl->texts, text);
	free(text);
	return id;
}

/* Number of {scope_str, sl->now}. */
static int set_number(struct scope_labels *sl, int64_t scope_str, uint32_t *ret)
{
	struct label_set set = { scope_str, sl->labels.cnt, sl->now_cnt };
	uint64_t number;
	int64_t text;
	int err;

	qsort(sl->now, sl->now_cnt, sizeof(*sl->now), by_key);
	text = set_text(sl, scope_str);
	if (text < 0)
		return text;
	err = hmap_add(&sl->set_by_text, &text, sl->sets.cnt, &number);
	*ret = (uint32_t)number;
	if (err || number < sl->sets.cnt)
		return err;
	for (size_t i = 0; i < sl->now_cnt && !err; i++)
		err = vec_push(&sl->labels, sl->now[i]);
	return err ? err : vec_push(&sl->sets, set);
}

static int make_value(struct scope_labels *sl, const struct snapshot_row *row,
		      struct tag_value *ret)
{
	const struct ht_scope_key key = { row->pid, row->generation, row->source, row->node };
	const struct snapshot_scope *scope = snapshot_scope(sl->s, &key);
	int64_t scope_str = 0;
	struct chain chain = { .cnt = 0 };
	int err = 0;

	sl->now_cnt = 0;
	if (scope) {
		ret->task_slot = scope->sums.task_slot;
		climb(sl->s, scope, &chain);
	}
	if ((sl->wanted & LABEL_SCOPE) && scope)
		scope_str = scope_labels_path(sl, scope);
	else if (sl->wanted & LABEL_SCOPE)
		scope_str = profile_str(sl->p, special_name(row->source));
	if (scope_str < 0)
		return scope_str;
	if (sl->wanted & LABEL_APP) {
		if (row->labels_id)
			err = put_foreign_labels(sl, row);
		for (size_t i = 0; i < chain.cnt && !err; i++)
			if (chain.scope[i]->kind == HT_NODE_LABEL)
				err = put_node_label(sl, chain.scope[i]);
	}
	return err ? err : set_number(sl, scope_str, &ret->set);
}

int scope_labels_of(struct scope_labels *sl, const struct snapshot_row *row, struct row_labels *ret)
{
	const struct tag_key key = { row->pid, row->generation, row->source, row->node,
				     row->labels_id };
	const uint64_t *known = hmap_get(&sl->known, &key);
	const struct label_set *set;
	struct tag_value value = { 0 };
	int err = 0;

	if (known) {
		value = sl->values.data[*known];
	} else {
		err = make_value(sl, row, &value);
		if (!err)
			err = vec_push(&sl->values, value);
		if (!err)
			err = hmap_put(&sl->known, &key, sl->values.cnt - 1);
	}
	if (err)
		return err;
	set = &sl->sets.data[value.set];
	*ret = (struct row_labels){
		.scope_str = set->scope_str,
		.labels = sl->labels.data + set->first,
		.label_cnt = set->cnt,
		.set = value.set,
		.task_slot = value.task_slot,
	};
	return 0;
}

/* The notes of a profile on scopes and tasks. */

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
	struct note *one;
	uint64_t i;
	int err = hmap_add(&notes->by_path, &n->key, notes->all.cnt, &i);

	if (err || i == notes->all.cnt)
		return err ? err : vec_push(&notes->all, *n);
	one = &notes->all.data[i];
	one->scope_cnt++;
	if (n->peak_bytes > one->peak_bytes) {
		one->peak_bytes = n->peak_bytes;
		one->peak_ns = n->peak_ns;
	}
	return 0;
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

	vec_sort(&notes->all, by_size);
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
