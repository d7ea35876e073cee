/* SPDX-License-Identifier: MIT */
/* top_view.c - see top_priv.h. */
#include "record/top_priv.h"

const char *const top_sort_names[] = { "inuse", "growth", "alloc", NULL };

void top_view_init(struct top_view *v)
{
	*v = (struct top_view){ 0 };
	v->of_process = TOP_STACKS;
	hmap_init(&v->turned, sizeof(uint64_t));
}

void top_view_release(struct top_view *v)
{
	free(v->selected);
	hmap_release(&v->turned);
	vec_release(&v->order);
}

bool top_view_is_folded(const struct top_view *v, const struct top_row *row)
{
	uint64_t id = top_row_id(v->what, row->key);

	return (v->what == TOP_STACKS) != (hmap_get(&v->turned, &id) != NULL);
}

static bool contains(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

static bool is_match(const struct top_view *v, const struct top_row *row)
{
	return contains(row->name, v->search) || contains(row->tail, v->search) ||
	       (v->what == TOP_PROCESSES && contains(row->key, v->search));
}

static double measure(const struct top_view *v, const struct top_row *row)
{
	return v->sort == TOP_BY_GROWTH ? row->growth_per_min :
	       v->sort == TOP_BY_ALLOC	? row->alloc_per_s :
					  row->held_bytes;
}

/* Largest first, unknown last, so that there is one order of all rows. */
static int compare_doubles(double x, double y)
{
	x = isnan(x) ? -INFINITY : x;
	y = isnan(y) ? -INFINITY : y;
	return x > y ? -1 : x < y;
}

/* Compare by the chosen column, then by what is held, so that rows stay in place. */
static int compare_brothers(const struct top_view *v, const struct top_row *x,
			    const struct top_row *y)
{
	int order = compare_doubles(measure(v, x), measure(v, y));

	if (!order)
		order = compare_doubles(x->held_bytes, y->held_bytes);
	if (!order)
		order = compare_doubles(x->alloc_bytes, y->alloc_bytes);
	if (!order)
		order = strcmp(x->key, y->key);
	return order;
}

struct sorter {
	const struct top_view *v;
	const struct top_row *rows;
};

/* Return the ancestor at that depth, or the row itself. */
static size_t lift(const struct top_row *rows, size_t i, uint32_t depth)
{
	while (rows[i].depth > depth && rows[i].parent != SIZE_MAX)
		i = rows[i].parent;
	return i;
}

/* Compare the ancestors (siblings) at which the paths from the top part; an ancestor comes first. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct sorter *s = ctx;
	size_t i = *(const size_t *)a, k = *(const size_t *)b, x, y;
	uint32_t depth_i = s->rows[i].depth, depth_k = s->rows[k].depth;
	int order;

	if (i == k)
		return 0;
	x = lift(s->rows, i, depth_k);
	y = lift(s->rows, k, depth_i);
	if (x == y)
		return depth_i < depth_k ? -1 : 1;
	while (s->rows[x].parent != s->rows[y].parent && s->rows[x].parent != SIZE_MAX &&
	       s->rows[y].parent != SIZE_MAX) {
		x = s->rows[x].parent;
		y = s->rows[y].parent;
	}
	order = compare_brothers(s->v, &s->rows[x], &s->rows[y]);
	return order ? order : (x > y) - (x < y);
}

/* A search also finds rows that are folded. */
static bool is_hidden(const struct top_view *v, const struct top_table *t, size_t i)
{
	if (v->search[0])
		return false;
	for (i = t->rows.data[i].parent; i != SIZE_MAX; i = t->rows.data[i].parent)
		if (top_view_is_folded(v, &t->rows.data[i]))
			return true;
	return false;
}

/* With a search: mark matches, and all rows that they are in. */
static void mark(const struct top_view *v, const struct top_table *t, bool *shown)
{
	for (size_t i = t->rows.cnt; i--;) {
		size_t parent = t->rows.data[i].parent;

		shown[i] |= !v->search[0] || is_match(v, &t->rows.data[i]);
		if (shown[i] && v->search[0] && parent != SIZE_MAX)
			shown[parent] = true;
	}
}

int top_view_arrange(struct top_view *v, const struct top_table *t)
{
	struct sorter s = { v, t->rows.data };
	bool *shown = calloc(t->rows.cnt + 1, sizeof(*shown));
	int err = 0;

	v->order.cnt = 0;
	if (!shown)
		return -ENOMEM;
	mark(v, t, shown);
	for (size_t i = 0; i < t->rows.cnt && !err; i++)
		if (shown[i] && !is_hidden(v, t, i))
			err = vec_push(&v->order, i);
	vec_sort_r(&v->order, compare_rows, &s);
	free(shown);
	return err;
}

size_t top_view_selected(const struct top_view *v, const struct top_table *t)
{
	for (size_t i = 0; v->selected && i < v->order.cnt; i++)
		if (!strcmp(t->rows.data[v->order.data[i]].key, v->selected))
			return i;
	return 0;
}

/* Without memory the selection does not change. */
static enum top_wish select_row(struct top_view *v, const struct top_table *t, size_t at)
{
	char *key;

	if (!t || !v->order.cnt)
		return TOP_NOTHING;
	at = at < v->order.cnt ? at : v->order.cnt - 1;
	key = strdup(t->rows.data[v->order.data[at]].key);
	if (key) {
		free(v->selected);
		v->selected = key;
	}
	return TOP_DRAW;
}

static void unselect(struct top_view *v)
{
	free(v->selected);
	v->selected = NULL;
	v->first_line = 0;
}

static enum top_wish move(struct top_view *v, const struct top_table *t, int key)
{
	size_t at = t ? top_view_selected(v, t) : 0, page = v->body_lines ? v->body_lines : 1;

	switch (key) {
	case TOP_KEY_UP:
		return select_row(v, t, at ? at - 1 : 0);
	case TOP_KEY_DOWN:
		return select_row(v, t, at + 1);
	case TOP_KEY_PAGE_UP:
		return select_row(v, t, at > page ? at - page : 0);
	case TOP_KEY_PAGE_DOWN:
		return select_row(v, t, at + page);
	case TOP_KEY_HOME:
		return select_row(v, t, 0);
	default:
		return select_row(v, t, SIZE_MAX);
	}
}

static enum top_wish change_what(struct top_view *v, enum top_what what)
{
	if (!v->pid || v->what == what)
		return TOP_NOTHING;
	v->what = v->of_process = what;
	unselect(v);
	return TOP_LOAD;
}

/* Open a process; fold or unfold any other row. */
static enum top_wish enter(struct top_view *v, const struct top_table *t)
{
	const struct top_row *row;
	uint64_t id;

	if (!t || !v->order.cnt)
		return TOP_NOTHING;
	row = &t->rows.data[v->order.data[top_view_selected(v, t)]];
	if (v->what == TOP_PROCESSES) {
		v->pid = row->pid;
		v->search[0] = '\0';
		return change_what(v, v->of_process);
	}
	id = top_row_id(v->what, row->key);
	if (!hmap_del(&v->turned, &id) && hmap_put(&v->turned, &id, 1))
		return TOP_NOTHING;
	return select_row(v, t, top_view_selected(v, t));
}

/* Close what was opened last: the search, then the process. */
static enum top_wish back(struct top_view *v)
{
	if (v->search[0]) {
		v->search[0] = '\0';
		return TOP_DRAW;
	}
	if (!v->pid)
		return TOP_NOTHING;
	v->what = TOP_PROCESSES;
	v->pid = 0;
	unselect(v);
	return TOP_LOAD;
}

static enum top_wish erase_char(struct top_view *v)
{
	size_t n = strlen(v->search);

	while (n && ((unsigned char)v->search[n - 1] & 0xc0) == 0x80)
		n--;
	v->search[n ? n - 1 : 0] = '\0';
	return TOP_DRAW;
}

static enum top_wish type(struct top_view *v, int key)
{
	size_t n = strlen(v->search);

	switch (key) {
	case TOP_KEY_ENTER:
		v->is_typing = false;
		return TOP_DRAW;
	case TOP_KEY_BACK:
		v->is_typing = false;
		v->search[0] = '\0';
		return TOP_DRAW;
	case TOP_KEY_ERASE:
		return erase_char(v);
	}
	if (key < ' ' || key == 127 || key > 0xff || n + 1 >= sizeof(v->search))
		return TOP_NOTHING;
	v->search[n] = (char)key;
	v->search[n + 1] = '\0';
	v->first_line = 0;
	return TOP_DRAW;
}

static enum top_wish letter(struct top_view *v, int key)
{
	switch (key) {
	case 'i':
	case 'g':
	case 'a':
		v->sort = key == 'i' ? TOP_BY_HELD : key == 'g' ? TOP_BY_GROWTH : TOP_BY_ALLOC;
		v->first_line = 0;
		return TOP_DRAW;
	case 's':
		return change_what(v, TOP_STACKS);
	case 'f':
		return change_what(v, TOP_FUNCTIONS);
	case 'o':
		return change_what(v, TOP_SCOPES);
	case 't':
		return change_what(v, TOP_THREADS);
	case '\t':
		return change_what(v, v->what == TOP_THREADS ? TOP_STACKS : v->what + 1);
	case '/':
		v->is_typing = true;
		return TOP_DRAW;
	case 'p':
		v->is_paused = !v->is_paused;
		return TOP_DRAW;
	case '?':
		v->shows_help = true;
		return TOP_DRAW;
	case 'w':
		return TOP_SAVE;
	case 'q':
		return TOP_QUIT;
	}
	return TOP_NOTHING;
}

enum top_wish top_view_key(struct top_view *v, const struct top_table *t, int key)
{
	if (key == TOP_KEY_GONE)
		return TOP_QUIT;
	if (key == TOP_KEY_RESIZE)
		return TOP_DRAW;
	if (v->shows_help) {
		v->shows_help = false;
		return key == 'q' ? TOP_QUIT : TOP_DRAW;
	}
	if (key >= TOP_KEY_UP && key <= TOP_KEY_END)
		return move(v, t, key);
	if (v->is_typing)
		return type(v, key);
	if (key == TOP_KEY_ENTER || key == ' ')
		return enter(v, t);
	if (key == TOP_KEY_BACK || key == TOP_KEY_ERASE)
		return back(v);
	return letter(v, key);
}
