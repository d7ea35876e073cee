/* SPDX-License-Identifier: MIT */
/* report_tree.c - see report_html_priv.h. */
#include "report/report_html_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "report/report_places.h"

/* Used while building: indexes of functions and nodes. */
struct maker {
	const struct report *r;
	struct report_tree *t;
	struct hmap functions; /* {name, module, file} to index */
	struct hmap nodes; /* {parent, function} to index */
	VEC(uint32_t) path; /* functions of one stack, from the leaf */
};

/* Index of the function of a frame, or -ENOMEM. */
static int64_t function_of(struct maker *m, const struct profile_sample *s,
			   const struct report_frame *f)
{
	const struct profile *p = m->r->p;
	char buf[REPORT_NAME_BUF];
	const char *file =
		f->line ? profile_text(p, p->functions.data[f->line->function].filename_str) : "";
	int64_t key[3] = {
		strset_add(m->t->names, report_frame_name(p, f, buf, sizeof(buf))),
		strset_add(m->t->names, report_frame_module(p, f)),
		strset_add(m->t->names, file),
	};
	const uint64_t *known;

	if (key[0] < 0 || key[1] < 0 || key[2] < 0)
		return -ENOMEM;
	known = hmap_get(&m->functions, key);
	if (known)
		return (int64_t)*known;
	if (vec_push(&m->t->functions,
		     ((struct report_tree_function){ .name = key[0],
						     .module = key[1],
						     .file = key[2],
						     .is_own = report_is_own(m->r, s, f) })) ||
	    hmap_put(&m->functions, key, m->t->functions.cnt - 1))
		return -ENOMEM;
	return (int64_t)m->t->functions.cnt - 1;
}

/* Index of the node of a function below parent, or -ENOMEM. */
static int64_t step_down(struct maker *m, uint32_t parent, uint32_t function)
{
	uint32_t key[2] = { parent, function };
	const uint64_t *known = hmap_get(&m->nodes, key);

	if (known)
		return (int64_t)*known;
	if (m->t->nodes.cnt >= UINT32_MAX ||
	    vec_push(&m->t->nodes,
		     ((struct report_tree_node){ .parent = parent, .function = function })) ||
	    hmap_put(&m->nodes, key, m->t->nodes.cnt - 1))
		return -ENOMEM;
	return (int64_t)m->t->nodes.cnt - 1;
}

static int add_sample(struct maker *m, const struct profile_sample *s)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	int64_t at = 0;

	m->path.cnt = 0;
	while (report_next_frame(m->r->p, s, &pos, &f)) {
		int64_t function = function_of(m, s, &f);

		if (function < 0 || vec_push(&m->path, (uint32_t)function))
			return -ENOMEM;
	}
	for (size_t i = m->path.cnt; i-- > 0;) {
		at = step_down(m, (uint32_t)at, m->path.data[i]);
		if (at < 0)
			return (int)at;
	}
	return vec_push(&m->t->leaf, (uint32_t)at);
}

static int fill(struct maker *m)
{
	const uint32_t *i;
	int err = vec_push(&m->t->nodes, ((struct report_tree_node){ .parent = HT_NO_INDEX,
								     .function = HT_NO_INDEX }));

	vec_each(&m->r->chosen, i)
		if (!err)
			err = add_sample(m, &m->r->p->samples.data[*i]);
	return err;
}

int report_tree_new(const struct report *r, struct report_tree **ret)
{
	struct maker m = { .r = r, .t = calloc(1, sizeof(*m.t)) };
	int err = m.t ? strset_new(&m.t->names) : -ENOMEM;

	hmap_init(&m.functions, 3 * sizeof(int64_t));
	hmap_init(&m.nodes, 2 * sizeof(uint32_t));
	if (!err)
		err = fill(&m);
	hmap_release(&m.functions);
	hmap_release(&m.nodes);
	vec_release(&m.path);
	if (err)
		report_tree_free(m.t);
	else
		*ret = m.t;
	return err;
}

void report_tree_free(struct report_tree *t)
{
	if (!t)
		return;
	strset_free(t->names);
	vec_release(&t->functions);
	vec_release(&t->nodes);
	vec_release(&t->leaf);
	free(t);
}
