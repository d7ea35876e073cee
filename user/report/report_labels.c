/* SPDX-License-Identifier: MIT */
/* report_labels.c - rows named by a label, a summary of labels, and suggestions when a label or value is missing. */

#include "base/err.h"
#include "base/names.h"
#include "report/report.h"
#include "report/report_rows.h"
#include "report/report_text.h"
#include "profile/scope_tree.h"
#include "profile/thread_pool.h"

#define KEYS_MAX 20
#define TENANT_KEYS_MAX 2
#define HINTS_MAX 8

const char *report_sample_thread(const struct report *r, const struct profile_sample *s, char *buf)
{
	const char *thread = profile_sample_label(r->p, s, "thread");
	int rc = 0;

	if (!thread)
		return "(no thread)";
	if (r->opts->groups_threads && r->opts->thread_globs)
		rc = thread_pool_name_in(r->opts->thread_globs, thread, buf, REPORT_NAME_BUF);
	else if (r->opts->groups_threads)
		rc = thread_pool_name(thread, buf, REPORT_NAME_BUF);
	return rc > 0 ? buf : thread;
}

const char *report_sample_process(const struct report *r, const struct profile_sample *s, char *buf)
{
	const char *pid = profile_sample_label(r->p, s, "pid");
	const char *comm = profile_sample_label(r->p, s, "comm");
	const struct recording *rec = &r->p->recording;

	/* samples of one process do not name it */
	if (pid)
		snprintf(buf, REPORT_NAME_BUF, "%.200s (PID %.20s)", comm ? comm : "?", pid);
	else if (rec->is_known && rec->process_cnt <= 1)
		snprintf(buf, REPORT_NAME_BUF, "%.200s (PID %" PRId32 ")",
			 profile_text(r->p, rec->comm_str), rec->pid);
	else
		snprintf(buf, REPORT_NAME_BUF, "%s", SCOPE_NONE);
	return buf;
}

const char *report_sample_label(const struct report *r, const struct profile_sample *s, char *buf)
{
	const struct profile_label *l = profile_find_label(r->p, s, r->opts->label_key);
	const char *unit;

	if (!l)
		return SCOPE_NONE;
	if (l->str)
		return profile_text(r->p, l->str);
	unit = profile_text(r->p, l->num_unit_str);
	snprintf(buf, REPORT_NAME_BUF, "%" PRId64 "%s%.400s", l->num, unit[0] ? " " : "", unit);
	return buf;
}

/* A list of words in a sentence: "a, b, c, ...". */
struct words {
	char text[200];
	size_t used, cnt, max;
};

static void add_word(struct words *w, const char *word)
{
	size_t room = sizeof(w->text) - w->used;
	int n;

	if (w->cnt > w->max)
		return;
	if (w->cnt == w->max || strlen(word) + 8 > room) { /* ", " before, ", ..." behind */
		w->cnt = w->max + 1;
		w->used += snprintf(w->text + w->used, room, "%s...", w->used ? ", " : "");
		return;
	}
	n = snprintf(w->text + w->used, room, "%s%s", w->cnt ? ", " : "", word);
	w->used += n;
	w->cnt++;
}

/* List the keys in order of appearance; true if `wanted` is one. */
static bool find_key(const struct profile *p, const char *wanted, struct words *ret)
{
	int64_t seen[KEYS_MAX];
	const struct profile_label *l;
	size_t cnt = 0, i;

	vec_each(&p->labels, l) {
		if (!strcmp(profile_text(p, l->key_str), wanted))
			return true;
		for (i = 0; i < cnt && seen[i] != l->key_str; i++)
			;
		if (i < cnt || cnt == KEYS_MAX)
			continue;
		seen[cnt++] = l->key_str;
		add_word(ret, profile_text(p, l->key_str));
	}
	return false;
}

static int check_key(const struct profile *p, const char *key, struct err *why)
{
	struct words keys = { .max = KEYS_MAX };

	if (find_key(p, key, &keys))
		return 0;
	if (keys.cnt)
		return err_set(why, -ENOENT, "no sample has the label '%s'; the labels are: %s",
			       key, keys.text);
	return err_set(why, -ENOENT, "no sample has the label '%s': there are no labels", key);
}

static int add_scopes(const struct profile *p, struct scope_tree *t)
{
	const struct scope_sums nothing = { 0 };
	const struct profile_sample *s;
	int err;

	vec_each(&p->samples, s) {
		err = scope_tree_add(t, profile_sample_label(p, s, "scope"), &nothing);
		if (err)
			return err;
	}
	return 0;
}

struct paths {
	VEC(const char *) path;
	VEC(const char *) leaf; /* in path */
};

static void release_paths(struct paths *all)
{
	for (size_t i = 0; i < all->path.cnt; i++)
		free((char *)all->path.data[i]);
	vec_release(&all->path);
	vec_release(&all->leaf);
}

static int list_paths(const struct scope_tree *t, struct paths *all)
{
	for (uint32_t i = 0; i < t->nodes.cnt; i++) {
		char *path = scope_tree_path(t, i);

		if (!path)
			return -ENOMEM;
		if (vec_push(&all->path, path)) {
			free(path);
			return -ENOMEM;
		}
		if (vec_push(&all->leaf, scope_path_leaf(path)))
			return -ENOMEM;
	}
	return 0;
}

/* Suggest the same name elsewhere; a path or name with a typo; else the top of the tree. -ENOENT. */
static int hint(const struct scope_tree *t, const struct paths *all, const char *scope,
		struct err *why)
{
	const char *leaf = scope_path_leaf(scope);
	struct words words = { .max = HINTS_MAX };
	size_t i;

	for (i = 0; i < all->path.cnt; i++)
		if (!strcmp(all->leaf.data[i], leaf))
			add_word(&words, all->path.data[i]);
	if (!words.cnt) {
		i = nearest_name(scope, all->path.data, all->path.cnt);
		if (i == all->path.cnt)
			i = nearest_name(leaf, all->leaf.data, all->leaf.cnt);
		if (i < all->path.cnt)
			add_word(&words, all->path.data[i]);
	}
	if (words.cnt)
		return err_set(why, -ENOENT, "there is no scope '%s'; did you mean %s?", scope,
			       words.text);
	for (i = 0; i < t->nodes.cnt; i++)
		if (t->nodes.data[i].parent == SCOPE_NO_NODE)
			add_word(&words, all->path.data[i]);
	return err_set(why, -ENOENT, "there is no scope '%s'; the top scopes are: %s", scope,
		       words.text);
}

static int check_scope(const struct profile *p, const struct report_options *o, struct err *why)
{
	struct paths all = { 0 };
	struct scope_tree t;
	uint32_t node = SCOPE_NO_NODE;
	int err = scope_tree_init(&t, o->folds_repeated);

	if (!err)
		err = add_scopes(p, &t);
	if (!err)
		err = scope_tree_find(&t, o->scope, &node);
	if (err || node != SCOPE_NO_NODE)
		goto out;
	err = list_paths(&t, &all);
	if (err)
		goto out;
	if (!t.nodes.cnt || (t.nodes.cnt == 1 && !strcmp(all.path.data[0], SCOPE_NONE)))
		err = err_set(why, -ENOENT, "there is no scope '%s': no sample has a scope",
			      o->scope);
	else
		err = hint(&t, &all, o->scope, why);
out:
	release_paths(&all);
	scope_tree_release(&t);
	return err;
}

/* Unknown values would give an empty picture, or rows of 0. */
static int check_inuse(const struct profile *p, const struct report_options *o, struct err *why)
{
	bool is_text = o->format == REPORT_TEXT;
	/* these say themselves that it is not known, and what is */
	bool says_so = o->format == REPORT_JSON || o->format == REPORT_HTML;
	bool wants_inuse =
		o->value == REPORT_VALUE_INUSE || (o->value == REPORT_VALUE_DEFAULT && !is_text);
	char reason[RECORDING_TEXT_BUF], command[RECORDING_TEXT_BUF];

	if (!p->recording.is_known || p->recording.inuse != RECORDING_INUSE_UNKNOWN ||
	    !wants_inuse || says_so)
		return 0;
	recording_why_unknown(&p->recording, profile_text(p, p->recording.comm_str), reason);
	recording_advice_best(&p->recording, p->period > 0 ? (uint64_t)p->period : 0, command);
	return err_set(why, -ENODATA, "heap in use is unknown. %s To measure it: %s%s", reason,
		       command,
		       /* a dump has nothing else */
		       o->format == REPORT_HEAP_V2 ? "" : ". --value alloc shows allocations");
}

static bool has_type(const struct profile *p, const char *name)
{
	return profile_find_type(p, name) >= 0;
}

/* Refuse missing values: another value in their place would be mistaken for them. */
static int check_types(const struct profile *p, const struct report_options *o, struct err *why)
{
	const struct profile_type *type;

	if (o->value == REPORT_VALUE_ALLOC && !has_type(p, "alloc_space"))
		err_set(why, -ENODATA, "it has no allocations (alloc_space)");
	else if (o->format == REPORT_HEAP_V2 &&
		 (!has_type(p, "inuse_space") || !has_type(p, "inuse_objects")))
		err_set(why, -ENODATA, "it has no heap in use (inuse_space, inuse_objects)");
	else
		return 0;
	vec_each(&p->types, type)
		err_add(why, "%s%.32s", type == p->types.data ? "; it has " : ", ",
			profile_text(p, type->type_str));
	return -ENODATA;
}

/* Refuse to sort by growth without a history. */
static int check_growth(const struct profile *p, const struct report_options *o, struct err *why)
{
	if (o->sort != REPORT_SORT_GROWTH)
		return 0;
	if (p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		return err_set(why, -ENODATA,
			       "growth is unknown, because heap in use is: see heaptap report");
	if (!p->moments_ns.cnt)
		return err_set(
			why, -ENODATA,
			"growth is unknown: only profiles of heaptap record, and of one process "
			"of heaptap serve, have heap in use over time; heaptap diff compares two "
			"files");
	return 0;
}

static int check_pinned(const struct profile *p, const struct report_options *o, struct err *why)
{
	if (o->sort != REPORT_SORT_PINNED || has_type(p, "pinned_space"))
		return 0;
	return err_set(
		why, -ENODATA,
		"it has no pinned_space: only heaptap record has it, if the process still runs "
		"and its heap could be read, and heaptap serve with ?pinned=1. --notes may give "
		"the reason");
}

static int check_ages(const struct profile *p, const struct report_options *o, struct err *why)
{
	if (o->by != REPORT_BY_AGE || p->ages.cnt)
		return 0;
	return err_set(
		why, -ENODATA,
		"the ages of its blocks are unknown: only profiles of heaptap record have them");
}

static int check_bins(const struct profile *p, const struct report_options *o, struct err *why)
{
	bool wants_lifetimes = o->by == REPORT_BY_LIFETIME || o->sort == REPORT_SORT_TEMPORARY;
	bool is_unknown = p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN;

	if (!wants_lifetimes && o->by != REPORT_BY_SIZE)
		return 0;
	if (!p->has_bins)
		return err_set(
			why, -ENODATA,
			"the %s of its blocks are unknown: only profiles of heaptap have them, "
			"and not those with ?seconds=",
			wants_lifetimes ? "lifetimes" : "sizes");
	if (wants_lifetimes && is_unknown)
		return err_set(
			why, -ENODATA,
			"the lifetimes of its blocks are unknown, because frees were not tracked: "
			"see heaptap report");
	return 0;
}

int report_check(const struct profile *p, const struct report_options *opts, struct err *why)
{
	int err = 0;

	if (opts->by == REPORT_BY_LABEL)
		err = check_key(p, opts->label_key, why);
	if (!err && opts->scope)
		err = check_scope(p, opts, why);
	if (!err)
		err = check_types(p, opts, why);
	if (!err)
		err = check_inuse(p, opts, why);
	if (!err)
		err = check_growth(p, opts, why);
	if (!err)
		err = check_pinned(p, opts, why);
	if (!err)
		err = check_ages(p, opts, why);
	if (!err)
		err = check_bins(p, opts, why);
	if (why && (err == -ENOENT || err == -ENODATA))
		for (char *c = why->text; *c; c++) /* names from a file must not drive a terminal */
			if (iscntrl((unsigned char)*c))
				*c = '?';
	return err;
}

/* Keys of heaptap itself. */
static const char *const own_keys[] = { "scope", "thread", "task", "task_state", "pid", "comm" };

static bool is_own(const char *key)
{
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++)
		if (!strcmp(key, own_keys[i]))
			return true;
	return false;
}

/* The program's own, in order of appearance in the samples that are reported. */
static size_t find_tenant_keys(const struct report *r, const char *ret[TENANT_KEYS_MAX])
{
	const uint32_t *i;
	size_t cnt = 0;

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];

		for (uint32_t k = 0; k < s->label_cnt && cnt < TENANT_KEYS_MAX; k++) {
			const struct profile_label *l = &r->p->labels.data[s->label_first + k];
			const char *key = profile_text(r->p, l->key_str);

			if (l->str && !is_own(key) && (!cnt || strcmp(ret[0], key) != 0))
				ret[cnt++] = key;
		}
	}
	return cnt;
}

static bool is_tenant(const struct report *r, const struct report_row *row)
{
	return row->value && strcmp(strset_get(r->names, row->name), SCOPE_NONE) != 0 &&
	       (!r->has_unmatched || row != &r->rows.data[r->rows.cnt - 1]);
}

/* Write as many values as fit in one line. */
static void put_tenants_of(const struct report *r, const char *key, FILE *out)
{
	size_t columns = report_columns(r), used, left = 0;
	char name[REPORT_FIT_BUF], value[UNITS_BUF];
	const struct report_row *row;
	const char *between = "";

	vec_each(&r->rows, row)
		left += is_tenant(r, row);
	if (!left)
		return;
	used = report_put_name(out, key, 16) + 1;
	fputc(':', out);
	vec_each(&r->rows, row) {
		size_t width;

		if (!is_tenant(r, row))
			continue;
		report_fit_name(strset_get(r->names, row->name), 20, name);
		report_format_value(r, report_value(row), value);
		width = report_width(name) + strlen(value) + 3;
		if (between[0] && used + width + (left > 1 ? 12 : 0) > columns)
			break;
		fprintf(out, "%s %s %s", between, name, value);
		used += width;
		between = ",";
		left--;
	}
	if (left)
		fprintf(out, ", %zu more", left);
	fputc('\n', out);
}

/* The values of each key that hold most; --by label:KEY has all. Left out if memory runs out. */
void report_put_tenants(const struct report *r, FILE *out)
{
	const char *keys[TENANT_KEYS_MAX];
	size_t cnt = find_tenant_keys(r, keys);

	for (size_t i = 0; i < cnt; i++) {
		struct report_options o = *r->opts;
		struct report *by_label;

		o.by = REPORT_BY_LABEL;
		o.label_key = keys[i];
		o.sort = REPORT_SORT_INUSE;
		o.row_cap = 0;
		if (report_open(r->p, &o, &by_label))
			continue;
		put_tenants_of(by_label, keys[i], out);
		report_close(by_label);
	}
}
