/* SPDX-License-Identifier: MIT */
/*
 * report_instance.c - the rows of a report by instance: one for each task, and one for everything
 * outside tasks.
 *
 * A task is {scope, number, process}. Notes (profile/scope_note.h) have the scope by which the task
 * was entered, its state, its peak and what it has allocated. Samples have what it holds, under
 * that scope and under all scopes entered inside the task. So a sample belongs to the innermost
 * task of its number on its path; without a note, its own path is taken as the task's.
 *
 * What tasks have allocated is in samples without a task, so it is subtracted from the row of
 * these: the rows add up to the total. A profile that was written without task numbers has its
 * tasks only in the notes; then what they hold is subtracted from that row, too.
 */

#include "base/hmap.h"
#include "report/report_rows.h"
#include "profile/match_list.h"
#include "profile/scope_note.h"
#include "profile/scope_tree.h"

struct task_key {
	int64_t path, pid; /* in report.names */
	int64_t id;
};

struct task {
	struct report_row row;
	int64_t inuse_bytes, inuse_objects; /* from its note */
	bool is_sampled;
	bool is_whole; /* the note is within --scope and --match */
};

struct tasks {
	VEC(struct task) list;
	struct hmap index; /* struct task_key -> task */
	struct hmap resolved; /* the same, with the path of a sample */
	struct report_row rest;
	bool has_rest;
};

static int name_row(struct report *r, struct report_row *row)
{
	const char *path = strset_get(r->names, row->scope.path);
	size_t bytes = strlen(path) + 32;
	char *name = malloc(bytes);

	if (!name)
		return -ENOMEM;
	snprintf(name, bytes, "%s #%" PRIu64, path, (uint64_t)row->task.id);
	row->name = strset_add(r->names, name);
	free(name);
	return row->name < 0 ? -ENOMEM : 0;
}

static int get_task(struct report *r, struct tasks *t, const struct task_key *key, size_t *ret)
{
	struct task task = { .row.scope.path = key->path,
			     .row.task = { .is_task = true, .id = key->id, .pid = key->pid } };
	int err = hmap_add(&t->index, key, t->list.cnt, ret);

	if (err || *ret < t->list.cnt)
		return err;
	err = name_row(r, &task.row);
	return err ? err : vec_push(&t->list, task);
}

/* Find the task with key's number that was entered last on key's path. */
static int find_innermost(struct report *r, const struct tasks *t, const struct task_key *key,
			  const uint64_t **ret)
{
	const char *path = strset_get(r->names, key->path), *pos = path;
	struct task_key k = *key;
	struct scope_name name;

	*ret = NULL;
	for (size_t i = 0; i < SCOPE_DEPTH_MAX && scope_path_next(&pos, &name); i++) {
		const uint64_t *found;

		k.path = strset_add_n(r->names, path, name.text + name.len - path);
		if (k.path < 0)
			return -ENOMEM;
		k.pid = key->pid;
		found = hmap_get(&t->index, &k);
		k.pid = 0; /* or a note without a process: there is only one */
		if (!found)
			found = hmap_get(&t->index, &k);
		if (found)
			*ret = found;
	}
	return 0;
}

static int resolve(struct report *r, struct tasks *t, const struct task_key *key, size_t *ret)
{
	const uint64_t *known = hmap_get(&t->resolved, key);
	int err = 0;

	if (known) {
		*ret = *known;
		return 0;
	}
	err = find_innermost(r, t, key, &known);
	if (!err && known)
		*ret = *known;
	else if (!err)
		err = get_task(r, t, key, ret);
	return err ? err : hmap_put(&t->resolved, key, *ret);
}

/* "" if the sample has no pid. */
static int64_t pid_of(struct report *r, const struct profile_sample *s)
{
	const struct profile_label *l = profile_find_label(r->p, s, "pid");
	char text[24];

	if (!l)
		return 0;
	if (l->str)
		return strset_add(r->names, profile_text(r->p, l->str));
	snprintf(text, sizeof(text), "%" PRId64, l->num);
	return strset_add(r->names, text);
}

static int add_sample(struct report *r, struct tasks *t, uint32_t i)
{
	const struct profile_sample *s = &r->p->samples.data[i];
	const struct profile_label *number = profile_find_label(r->p, s, "task");
	const char *state = profile_sample_label(r->p, s, "task_state");
	struct task_key key = { .path = r->scopes.data[i], .pid = pid_of(r, s) };
	struct task *task;
	size_t k;
	int err;

	if (key.pid < 0)
		return -ENOMEM;
	if (!number || number->str) {
		report_add_sample(r, s, &t->rest);
		t->has_rest = true;
		return 0;
	}
	key.id = number->num;
	err = resolve(r, t, &key, &k);
	if (err)
		return err;
	task = &t->list.data[k];
	task->is_sampled = true;
	report_add_sample(r, s, &task->row);
	if (state && !strcmp(state, "exited"))
		task->row.task.state = REPORT_STATE_EXITED;
	return 0;
}

/* Read a note's shown path and process. *ret_is_inside: the note is within --scope and --match. */
static int read_note(struct report *r, const struct scope_note *n, struct task_key *key,
		     bool *ret_is_inside)
{
	const struct report_options *o = r->opts;
	char *path = strdup(profile_text(r->p, n->path_str)), pid[24] = "";

	if (!path)
		return -ENOMEM;
	if (o->folds_repeated)
		scope_path_fold(profile_text(r->p, n->path_str), path);
	if (n->pid)
		snprintf(pid, sizeof(pid), "%" PRId64, n->pid);
	*ret_is_inside = (!o->scope || scope_path_is_in(path, o->scope)) &&
			 (!o->match || match_list_test(o->match, path));
	key->id = n->task;
	key->path = strset_add(r->names, path);
	key->pid = strset_add(r->names, pid);
	free(path);
	return key->path < 0 || key->pid < 0 ? -ENOMEM : 0;
}

static void take_note(const struct report *r, const struct scope_note *n, struct task *task)
{
	struct report_row *row = &task->row;
	struct estimate alloc = {
		.samples = (uint64_t)n->alloc_samples,
		.objects = (double)n->alloc_objects,
		.bytes = (double)n->alloc_bytes,
		.bytes_variance = n->alloc_error < 0 ? NAN : pow((double)n->alloc_error, 2),
		.rate_bytes = (double)r->rate_bytes,
	};

	task->inuse_bytes = report_add_saturating(task->inuse_bytes, n->inuse_bytes);
	task->inuse_objects = report_add_saturating(task->inuse_objects, n->inuse_objects);
	row->alloc = report_add_saturating(row->alloc, n->alloc_bytes);
	row->alloc_objects = report_add_saturating(row->alloc_objects, n->alloc_objects);
	estimate_merge(&row->alloc_estimate, &alloc);
	row->peak.is_minimum = row->peak.is_known;
	if (!row->peak.is_known || n->peak_bytes > row->peak.bytes) {
		row->peak.bytes = n->peak_bytes;
		row->peak.time_ns = n->peak_time_ns;
	}
	row->peak.is_known = true;
}

/* A task that is only partly in the report gets a state, but no sums. */
static int add_note(struct report *r, struct tasks *t, const struct scope_note *n)
{
	struct task_key key = { 0 };
	struct task *task;
	bool is_inside;
	size_t k;
	int err = read_note(r, n, &key, &is_inside);

	if (!err)
		err = get_task(r, t, &key, &k);
	if (err)
		return err;
	task = &t->list.data[k];
	if (n->is_exited)
		task->row.task.state = REPORT_STATE_EXITED;
	else if (task->row.task.state == REPORT_STATE_UNKNOWN)
		task->row.task.state = REPORT_STATE_LIVE;
	if (!is_inside)
		return 0;
	task->is_whole = true;
	take_note(r, n, task);
	return 0;
}

static int add_notes(struct report *r, struct tasks *t)
{
	const struct scope_note *n;
	int err = 0;

	if (!r->is_inuse && !r->is_alloc)
		return 0;
	vec_each(&r->p->scope_notes, n) {
		if (n->kind != SCOPE_NOTE_INSTANCE)
			continue;
		err = add_note(r, t, n);
		if (err)
			return err;
	}
	return 0;
}

/* Take what the samples do not tell from the note, and subtract it from the row without tasks. */
static void take_inuse(const struct report *r, struct task *task, struct report_row *rest)
{
	struct estimate *e = &task->row.estimate;

	task->row.value = task->inuse_bytes;
	task->row.objects = task->inuse_objects;
	e->bytes = (double)task->inuse_bytes;
	e->objects = (double)task->inuse_objects;
	e->rate_bytes = (double)r->rate_bytes;
	if (r->has_interval)
		e->bytes_variance =
			estimate_variance_from_sums(e->bytes, e->objects, r->rate_bytes);
	if (e->bytes_variance > 0)
		e->samples = (uint64_t)(e->bytes * e->bytes / e->bytes_variance);
	rest->value = report_add_saturating(rest->value, -task->inuse_bytes);
	rest->objects = report_add_saturating(rest->objects, -task->inuse_objects);
	rest->estimate.bytes -= e->bytes;
	rest->estimate.objects -= e->objects;
}

/* Not below 0: if --match cuts through a task, it may have allocated more than what is left. */
static int64_t subtract(int64_t from, int64_t part)
{
	return from > part ? from - part : 0;
}

/* A remainder of 0 bytes is only rounding. If the part is unknown or not smaller, the remainder is unknown. */
static void subtract_alloc(struct report_row *rest, const struct estimate *part)
{
	struct estimate *e = &rest->alloc_estimate;

	e->samples -= e->samples < part->samples ? e->samples : part->samples;
	e->bytes = (double)rest->alloc;
	e->objects = (double)rest->alloc_objects;
	e->bytes_variance -= part->bytes_variance;
	if (!rest->alloc)
		e->bytes_variance = 0;
	else if (e->bytes_variance < 0)
		e->bytes_variance = NAN;
}

/* The same for rows of allocated values: samples of tasks have none. */
static void take_alloc(struct task *task, struct report_row *rest)
{
	const struct report_row *row = &task->row;

	rest->value = subtract(rest->value, row->alloc);
	rest->objects = subtract(rest->objects, row->alloc_objects);
	rest->estimate.bytes = (double)rest->value;
	if (row->alloc) /* a part of a sum is not independent of it */
		rest->estimate.bytes_variance = NAN;
	task->row.value = report_add_saturating(row->value, row->alloc);
	task->row.objects = report_add_saturating(row->objects, row->alloc_objects);
	estimate_merge(&task->row.estimate, &row->alloc_estimate);
}

static int list_tasks(struct report *r, struct tasks *t)
{
	struct task *task;

	vec_each(&t->list, task) {
		if (!task->is_sampled && !task->is_whole)
			continue;
		if (r->is_alloc)
			take_alloc(task, &t->rest);
		else if (!task->is_sampled)
			take_inuse(r, task, &t->rest);
		t->rest.alloc = subtract(t->rest.alloc, task->row.alloc);
		t->rest.alloc_objects = subtract(t->rest.alloc_objects, task->row.alloc_objects);
		subtract_alloc(&t->rest, &task->row.alloc_estimate);
		t->has_rest |= task->is_whole;
		/* The parts of a task, below different labels, had their peaks at different times. */
		if (task->row.peak.is_minimum && task->row.peak.bytes < task->row.value) {
			task->row.peak.bytes = task->row.value;
			task->row.peak.time_ns = 0;
		}
		task->row.task.has_no_alloc = !task->is_whole && !task->row.alloc;
		r->has_peaks |= r->is_inuse && task->row.peak.is_known;
		if (vec_push(&r->rows, task->row))
			return -ENOMEM;
	}
	return 0;
}

static int list_outstanding(struct report *r)
{
	const struct report_row *row;

	vec_each(&r->rows, row) {
		if (row->task.state != REPORT_STATE_EXITED || row->value <= 0)
			continue;
		if (vec_push(&r->outstanding, *row))
			return -ENOMEM;
		report_add_row(&r->outstanding_total, row);
	}
	vec_sort_r(&r->outstanding, report_compare_rows, r);
	return report_fold_rows(r, r->outstanding.data, &r->outstanding.cnt);
}

int report_rows_by_instance(struct report *r)
{
	struct tasks t = { .rest.name = strset_add(r->names, "(no task)") };
	int err = t.rest.name < 0 ? -ENOMEM : 0;

	hmap_init(&t.index, sizeof(struct task_key));
	hmap_init(&t.resolved, sizeof(struct task_key));
	if (!err)
		err = add_notes(r, &t);
	for (size_t k = 0; k < r->chosen.cnt && !err; k++)
		err = add_sample(r, &t, r->chosen.data[k]);
	if (!err)
		err = list_tasks(r, &t);
	if (!err && r->is_inuse)
		err = list_outstanding(r);
	if (!err)
		vec_sort_r(&r->rows, report_compare_rows, r);
	if (!err)
		err = report_fold_rows(r, r->rows.data, &r->rows.cnt);
	if (!err && t.has_rest)
		err = vec_push(&r->rows, t.rest);
	vec_release(&t.list);
	hmap_release(&t.index);
	hmap_release(&t.resolved);
	return err;
}
