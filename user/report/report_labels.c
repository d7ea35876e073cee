/* SPDX-License-Identifier: MIT */
/* report_labels.c - rows that are named by a label, and what to ask for instead of what is not there. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "report/report.h"
#include "report/report_rows.h"
#include "profile/scope_path.h"
#include "profile/thread_pool.h"

#define KEYS_MAX 20
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

const char *report_sample_label(const struct report *r, const struct profile_sample *s, char *buf)
{
	const struct profile *p = r->p;

	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[s->label_first + i];
		const char *unit = profile_text(p, l->num_unit_str);

		if (strcmp(profile_text(p, l->key_str), r->opts->label_key) != 0)
			continue;
		if (l->str)
			return profile_text(p, l->str);
		snprintf(buf, REPORT_NAME_BUF, "%" PRId64 "%s%.400s", l->num, unit[0] ? " " : "",
			 unit);
		return buf;
	}
	return SCOPE_NONE;
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

/* Keys in the order in which they appear; true when `wanted` is one. */
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

static int check_key(const struct profile *p, const char *key, char *why, size_t why_bytes)
{
	struct words keys = { .max = KEYS_MAX };

	if (find_key(p, key, &keys))
		return 0;
	if (keys.cnt)
		snprintf(why, why_bytes, "no sample has the label '%s'; the labels are: %s", key,
			 keys.text);
	else
		snprintf(why, why_bytes, "no sample has the label '%s': there are no labels", key);
	return -ENOENT;
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

/* The same name elsewhere; a path or a name with a mistake; else what stands at the top. */
static void hint(const struct scope_tree *t, const struct paths *all, const char *scope, char *why,
		 size_t why_bytes)
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
	if (words.cnt) {
		snprintf(why, why_bytes, "there is no scope '%s'; did you mean %s?", scope,
			 words.text);
		return;
	}
	for (i = 0; i < t->nodes.cnt; i++)
		if (t->nodes.data[i].parent == SCOPE_NO_NODE)
			add_word(&words, all->path.data[i]);
	snprintf(why, why_bytes, "there is no scope '%s'; at the top there are: %s", scope,
		 words.text);
}

static int check_scope(const struct profile *p, const struct report_options *o, char *why,
		       size_t why_bytes)
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
	err = -ENOENT;
	if (!t.nodes.cnt || (t.nodes.cnt == 1 && !strcmp(all.path.data[0], SCOPE_NONE)))
		snprintf(why, why_bytes, "there is no scope '%s': no sample has a scope", o->scope);
	else
		hint(&t, &all, o->scope, why, why_bytes);
out:
	release_paths(&all);
	scope_tree_release(&t);
	return err;
}

/* What is unknown would be an empty picture, or rows of 0. */
static int check_inuse(const struct profile *p, const struct report_options *o, char *why,
		       size_t why_bytes)
{
	bool is_text = o->format == REPORT_TEXT;
	/* these say that it is not known, and what is */
	bool says_so = o->format == REPORT_JSON || o->format == REPORT_HTML;
	bool wants_inuse =
		o->value == REPORT_VALUE_INUSE || (o->value == REPORT_VALUE_DEFAULT && !is_text);
	char reason[RECORDING_TEXT_BUF], command[RECORDING_TEXT_BUF];

	if (!p->recording.is_known || p->recording.inuse != RECORDING_INUSE_UNKNOWN ||
	    !wants_inuse || says_so)
		return 0;
	recording_why_unknown(&p->recording, profile_text(p, p->recording.comm_str), reason);
	recording_way_out(&p->recording, p->period > 0 ? (uint64_t)p->period : 0, command);
	snprintf(why, why_bytes, "in use is unknown. %s To know it: %s%s", reason, command,
		 /* a dump is of nothing else */
		 o->format == REPORT_HEAP_V2 ? "" : ". What was allocated is known: --value alloc");
	return -ENODATA;
}

static bool has_type(const struct profile *p, const char *name)
{
	return profile_find_type(p, name) >= 0;
}

/* Another value in place of that which is asked for would be taken for it. */
static int check_types(const struct profile *p, const struct report_options *o, char *why,
		       size_t why_bytes)
{
	const struct profile_type *type;
	size_t len;

	if (o->value == REPORT_VALUE_ALLOC && !has_type(p, "alloc_space"))
		snprintf(why, why_bytes, "it does not say what was allocated (alloc_space)");
	else if (o->format == REPORT_HEAP_V2 &&
		 (!has_type(p, "inuse_space") || !has_type(p, "inuse_objects")))
		snprintf(why, why_bytes,
			 "a dump is of what is in use (inuse_space, inuse_objects)");
	else
		return 0;
	vec_each(&p->types, type) {
		len = strlen(why);
		snprintf(why + len, why_bytes - len, "%s%.32s",
			 type == p->types.data ? "; it has " : ", ",
			 profile_text(p, type->type_str));
	}
	return -ENODATA;
}

/* What there is no history of is not sorted by it. */
static int check_growth(const struct profile *p, const struct report_options *o, char *why,
			size_t why_bytes)
{
	if (o->sort != REPORT_SORT_GROWTH)
		return 0;
	if (p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		snprintf(why, why_bytes,
			 "whether it grows is unknown, because in use is: see heaptap report");
	else if (!p->moments_ns.cnt)
		snprintf(
			why, why_bytes,
			"whether it grows is unknown: only a file that heaptap record wrote says what "
			"was in use at several moments. heaptap diff compares two files");
	else
		return 0;
	return -ENODATA;
}

static int check_ages(const struct profile *p, const struct report_options *o, char *why,
		      size_t why_bytes)
{
	if (o->by != REPORT_BY_AGE || p->ages.cnt)
		return 0;
	snprintf(
		why, why_bytes,
		"how old its blocks are is unknown: only a file that heaptap record wrote says so");
	return -ENODATA;
}

static int check_bins(const struct profile *p, const struct report_options *o, char *why,
		      size_t why_bytes)
{
	bool wants_lifetimes = o->by == REPORT_BY_LIFETIME || o->sort == REPORT_SORT_TEMPORARY;
	bool is_unknown = p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN;

	if (!wants_lifetimes && o->by != REPORT_BY_SIZE)
		return 0;
	if (!p->has_bins)
		snprintf(why, why_bytes,
			 "how %s its blocks %s is unknown: only a profile that heaptap recorded "
			 "says so, and none of what changed in a time",
			 wants_lifetimes ? "long" : "large", wants_lifetimes ? "lived" : "were");
	else if (wants_lifetimes && is_unknown)
		snprintf(
			why, why_bytes,
			"how long its blocks lived is unknown, because frees were not watched: see "
			"heaptap report");
	else
		return 0;
	return -ENODATA;
}

int report_check(const struct profile *p, const struct report_options *opts, char *why,
		 size_t why_bytes)
{
	int err = 0;

	if (opts->by == REPORT_BY_LABEL)
		err = check_key(p, opts->label_key, why, why_bytes);
	if (!err && opts->scope)
		err = check_scope(p, opts, why, why_bytes);
	if (!err)
		err = check_types(p, opts, why, why_bytes);
	if (!err)
		err = check_inuse(p, opts, why, why_bytes);
	if (!err)
		err = check_growth(p, opts, why, why_bytes);
	if (!err)
		err = check_ages(p, opts, why, why_bytes);
	if (!err)
		err = check_bins(p, opts, why, why_bytes);
	if (err == -ENOENT || err == -ENODATA)
		for (char *c = why; *c; c++) /* names from a file must not drive a terminal */
			if (iscntrl((unsigned char)*c))
				*c = '?';
	return err;
}
