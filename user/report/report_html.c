/* SPDX-License-Identifier: MIT */
/*
 * report_html.c - writes a report as one self-contained HTML file with a flame graph, or as a page of heaptap serve, which
 * has script and style of its own (html_base of the options).
 *
 * viewer.html is the page; a line "@WORD@" is replaced by a part of this profile. viewer.js draws
 * from @DATA@:
 *	rate		bytes per sample on average, 0: all were kept, or it is not known
 *	names		strings; everything below refers to them by index
 *	funcs		{ name, module, file, own }: arrays of the same length
 *	nodes		{ up, func }: the tree of report_html_priv.h; the parent of node i is i - up[i]; node 0 is the root
 *	samples		{ node, thread, process, scope, values, variances, counts }: node as the difference to the
 *			last; thread, process and scope: -1 = none; process is empty if there is one at most;
 *			values[measure], variances[] and counts[] (of samples) are arrays as long as node
 *	threads, processes, scopes	of the samples; a scope is an array of its path's names
 *	measures	{ key, title, unit, objects, variance, is_known, why }: objects: the measure that counts the
 *			blocks, variance: index of variances and counts (enum error); -1 = none
 *	opens		the key of the measure that is shown first
 *	moments		the time line, if there is one: see report_html_moments.c
 *	notes		the profile's comments
 * A difference also has:
 *	sides		{ names: before and after, rates: their rates, before: the number of samples of before }
 * Texts of a profile are untrusted: in @DATA@ they are JSON strings in which '<' is written \u003c,
 * elsewhere '&', '<', '>' and '"' are written as entities. A reader without JavaScript sees
 * @PLAIN@, the report as text.
 */

#include "base/hmap.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/strset.h"
#include "base/vec.h"
#include "profile/scope_tree.h"
#include "report/report.h"
#include "report/report_diff_rows.h"
#include "report/report_html_priv.h"
#include "report/report_places.h"
#include "report/report_text.h"

static const char page_html[] =
#include "viewer.html.h"
	;
static const char style[] =
#include "viewer.css.h"
	;
static const char script[] =
#include "viewer.js.h"
	;
const struct report_viewer report_viewer = { .script = script, .style = style };

/* Which error a value has. */
enum error {
	ERROR_NONE = -1,
	ERROR_END,
	ERROR_ALLOC,
	ERROR_PEAK,
	ERROR_MOMENT,
	ERROR_PINNED,
	ERROR_CNT
};

/* A value that the picture can show. */
struct measure {
	const char *key, *title;
	int type; /* sample type of the profile */
	bool is_of_end; /* whatever the moment of the profile */
	bool is_peak_objects; /* which have no type */
	int objects; /* index of a measure, or -1 */
	enum error error;
	bool is_known;
};
#define MEASURES_MAX 7
#define PLAIN_ROWS 50

/*
 * The stacks of a report as a tree from the root down. Frames of one function, module and file below the same parent are
 * one node, whatever their lines. Node 0 is the root, without a function. A child comes after its parent.
 */

struct report_tree_function {
	int64_t name, module, file; /* in names; "": none */
	bool is_own; /* the user's own: see report_places.h */
};

struct report_tree_node {
	uint32_t parent, function; /* HT_NO_INDEX for the root */
};

struct report_tree {
	struct strset *names;
	VEC(struct report_tree_function) functions;
	VEC(struct report_tree_node) nodes;
	VEC(uint32_t) leaf; /* node of each of report.chosen's samples */
};

struct picture {
	const struct report *r;
	const struct diff *diff; /* then r has both sides; NULL: no difference */
	struct report_tree tree;
	struct strset *threads, *processes, *scopes;
	VEC(int64_t) thread_of; /* of each chosen sample, in threads; -1 = none */
	VEC(int64_t) process_index; /* likewise; empty if there is one at most */
	VEC(int64_t) scope_of;
	struct measure measures[MEASURES_MAX];
	int measure_cnt;
	char moment[UNITS_BUF + 16]; /* title of the measure of a moment that was asked for */
	struct report_time_line time_line;
};

/* The process of one side of a difference; of a profile, whatever the side. NULL: no single one is known. */
static const struct profile *process_of(const struct picture *pic, int side)
{
	const struct profile *p = pic->diff ? pic->diff->side[side].r->p : pic->r->p;

	return p->recording.is_known && p->recording.process_cnt <= 1 ? p : NULL;
}

static void put_process(const struct profile *p, const char *behind, FILE *out)
{
	char text[96];
	int n;

	if (!p)
		return;
	n = snprintf(text, sizeof(text), "%.40s (PID %d)", profile_text(p, p->recording.comm_str),
		     p->recording.pid);
	markup_put(text, (size_t)n, out);
	fputs(behind, out);
}

/* Another process on a server's page, with which this one is compared; NULL: there is none. */
static const struct profile *other_process(const struct picture *pic)
{
	const struct profile *a = process_of(pic, 0), *b = process_of(pic, 1);

	return pic->diff && a && b && a->recording.pid != b->recording.pid ? a : NULL;
}

static void put_title_of_one(const struct picture *pic, FILE *out)
{
	const struct recording *rec = &pic->r->p->recording;
	const char *comm = rec->is_known ? profile_text(pic->r->p, rec->comm_str) : "";
	char text[96];
	int n;

	n = !comm[0] ?
		    snprintf(text, sizeof(text), "heap profile") :
	    rec->process_cnt > 1 ?
		    snprintf(text, sizeof(text), "%.40s and %u more", comm, rec->process_cnt - 1) :
		    snprintf(text, sizeof(text), "%.40s (PID %d)", comm, rec->pid);
	markup_put(text, (size_t)n, out);
	fputs(" \xe2\x80\x93 heaptap\n", out);
}

/* On a server's page two moments are of one process, which the title names; of two, the sides name them. */
static void put_title(const struct picture *pic, FILE *out)
{
	if (pic->diff) {
		bool is_of_two = pic->r->opts->html_base && other_process(pic);

		if (pic->r->opts->html_base && !is_of_two)
			put_process(process_of(pic, 1), ": ", out);
		fputs(is_of_two ? "A: " : "", out);
		markup_put(pic->diff->side[0].name, strlen(pic->diff->side[0].name), out);
		fputs(is_of_two ? " \xe2\x86\x92 B: " : " \xe2\x86\x92 ", out);
		markup_put(pic->diff->side[1].name, strlen(pic->diff->side[1].name), out);
		fputs(" \xe2\x80\x93 heaptap\n", out);
		return;
	}
	put_title_of_one(pic, out);
}

/* Write a text for people, escaped. */
static int put_text(const struct picture *pic, void (*write_text)(const struct picture *, FILE *),
		    FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return -ENOMEM;
	write_text(pic, f);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	markup_put(text, bytes, out);
	free(text);
	return 0;
}

/* A column of the samples or the tree: "name":[1,2,3]. `at` points to the element. */
#define put_column(j, name, vec, format, ...)                          \
	do {                                                           \
		json_begin(j, name, '[');                              \
		for (size_t i_ = 0; i_ < (vec)->cnt; i_++) {           \
			__typeof__((vec)->data) at = &(vec)->data[i_]; \
			json_format(j, NULL, format, __VA_ARGS__);     \
		}                                                      \
		json_end(j, ']');                                      \
	} while (0)

static void put_names(struct json *j, const char *key, const struct strset *s)
{
	json_begin(j, key, '[');
	for (size_t i = 0; i < strset_cnt(s); i++) {
		json_line(j);
		json_text(j, NULL, strset_get(s, (int64_t)i));
	}
	json_end(j, ']');
}

static void put_scopes(struct json *j, const struct strset *scopes)
{
	json_begin(j, "scopes", '[');
	for (size_t i = 0; i < strset_cnt(scopes); i++) {
		const char *path = strset_get(scopes, (int64_t)i);
		struct scope_name name;

		json_begin(j, NULL, '[');
		while (scope_path_next(&path, &name)) {
			char *text = strndup(name.text, name.len);

			json_text(j, NULL, text ? text : "");
			free(text);
		}
		json_end(j, ']');
	}
	json_end(j, ']');
}

static void put_measures(const struct picture *pic, struct json *j)
{
	char why[RECORDING_TEXT_BUF];

	recording_why_unknown(&pic->r->p->recording, "", why);
	json_begin(j, "measures", '[');
	for (int i = 0; i < pic->measure_cnt; i++) {
		const struct measure *m = &pic->measures[i];

		json_begin(j, NULL, '{');
		json_text(j, "key", m->key);
		json_text(j, "title", m->title);
		json_text(j, "unit",
			  profile_text(pic->r->p, pic->r->p->types.data[m->type].unit_str));
		json_format(j, "objects", "%d", m->objects);
		json_format(j, "variance", "%d", m->error);
		json_bool(j, "is_known", m->is_known);
		json_text(j, "why", m->is_known ? "" : why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static struct estimate error_of(const struct report *r, enum error error, uint32_t sample)
{
	const struct profile_sample *s = &r->p->samples.data[sample];
	struct report_row row = { 0 };

	if (error == ERROR_PEAK)
		return (struct estimate){ .samples = s->peak_samples,
					  .bytes_variance = s->peak_bytes_variance };
	if (error == ERROR_END)
		return report_end_of(r, sample);
	report_add_sample(r, s, &row);
	return error == ERROR_ALLOC  ? row.alloc_estimate :
	       error == ERROR_PINNED ? row.pinned :
				       row.estimate;
}

/* Write the error of each sample, or the number of allocations kept for it. */
static void put_errors(const struct picture *pic, bool counts, enum error error, struct json *j)
{
	const uint32_t *i;
	bool is_used = error == ERROR_END || error == ERROR_ALLOC;

	for (int m = 0; m < pic->measure_cnt; m++)
		is_used |= pic->measures[m].error == error;
	json_begin(j, NULL, '[');
	vec_each(&pic->r->chosen, i) {
		struct estimate e;

		if (!is_used)
			break;
		e = error_of(pic->r, error, *i);
		if (counts)
			json_uint(j, NULL, e.samples);
		else if (isnan(e.bytes_variance))
			json_null(j, NULL);
		else
			json_format(j, NULL, "%.7g", e.bytes_variance);
	}
	json_end(j, ']');
}

static int64_t value_of(const struct profile *p, const struct measure *m, uint32_t sample)
{
	const struct profile_sample *s = &p->samples.data[sample];
	const struct estimate *end = m->is_of_end && p->ends.cnt ? &p->ends.data[sample] : NULL;

	if (m->is_peak_objects)
		return profile_value(s->peak_objects);
	if (end)
		return profile_value(strcmp(m->key, "objects") != 0 ? end->bytes : end->objects);
	return p->values.data[s->value_first + (uint32_t)m->type];
}

static void put_samples(const struct picture *pic, struct json *j)
{
	json_begin(j, "samples", '{');
	put_column(j, "node", &pic->tree.leaf, "%d", (int)*at - (i_ ? (int)at[-1] : 0));
	put_column(j, "thread", &pic->thread_of, "%lld", (long long)*at);
	put_column(j, "process", &pic->process_index, "%lld", (long long)*at);
	put_column(j, "scope", &pic->scope_of, "%lld", (long long)*at);
	json_begin(j, "values", '[');
	for (int m = 0; m < pic->measure_cnt; m++)
		put_column(j, NULL, &pic->r->chosen, "%lld",
			   (long long)value_of(pic->r->p, &pic->measures[m], *at));
	json_end(j, ']');
	for (int counts = 0; counts < 2; counts++) {
		json_begin(j, counts ? "counts" : "variances", '[');
		for (int error = 0; error < ERROR_CNT; error++)
			put_errors(pic, counts, (enum error)error, j);
		json_end(j, ']');
	}
	json_end(j, '}');
}

static void put_tree(const struct report_tree *t, struct json *j)
{
	const struct report_tree_node *first = t->nodes.data;

	json_begin(j, "funcs", '{');
	put_column(j, "name", &t->functions, "%lld", (long long)at->name);
	put_column(j, "module", &t->functions, "%lld", (long long)at->module);
	put_column(j, "file", &t->functions, "%lld", (long long)at->file);
	put_column(j, "own", &t->functions, "%d", at->is_own);
	json_end(j, '}');
	json_begin(j, "nodes", '{');
	put_column(j, "up", &t->nodes, "%d",
		   at->parent == HT_NO_INDEX ? 0 : (int)(at - first) - (int)at->parent);
	put_column(j, "func", &t->nodes, "%d",
		   at->function == HT_NO_INDEX ? -1 : (int)at->function);
	json_end(j, '}');
}

static void put_sides(const struct diff *d, struct json *j)
{
	json_begin(j, "sides", '{');
	json_begin(j, "names", '[');
	for (int i = 0; i < 2; i++)
		json_text(j, NULL, d->side[i].name);
	json_end(j, ']');
	json_begin(j, "rates", '[');
	for (int i = 0; i < 2; i++)
		json_uint(j, NULL, d->side[i].r->rate_bytes);
	json_end(j, ']');
	json_uint(j, "before", d->side[0].r->chosen.cnt);
	json_end(j, '}');
}

static void put_json(const struct picture *pic, FILE *out)
{
	const struct profile *p = pic->r->p;
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	json_uint(&j, "rate", pic->r->rate_bytes);
	if (pic->diff)
		put_sides(pic->diff, &j);
	put_measures(pic, &j);
	json_text(&j, "opens",
		  p->moment.at == PROFILE_AT_PEAK ? "peak_space" :
		  p->moment.at == PROFILE_AT_TIME ? "moment" :
						    "");
	report_time_line_put_json(&pic->time_line, &j);
	put_names(&j, "names", pic->tree.names);
	put_tree(&pic->tree, &j);
	put_names(&j, "threads", pic->threads);
	put_names(&j, "processes", pic->processes);
	put_scopes(&j, pic->scopes);
	put_samples(pic, &j);
	json_begin(&j, "notes", '[');
	for (size_t i = 0; i < p->comments.cnt; i++)
		json_text(&j, NULL, profile_text(p, p->comments.data[i]));
	json_end(&j, ']');
	json_end(&j, '}');
	fputc('\n', out);
}

static int put_data(const struct picture *pic, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return -ENOMEM;
	put_json(pic, f);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	markup_put_json(text, out);
	free(text);
	return 0;
}

static void write_head(const struct picture *pic, FILE *out)
{
	if (!pic->diff) {
		report_put_head(pic->r, out);
		return;
	}
	diff_write_head(pic->diff, out);
	fputs("Red grew, blue shrank, beyond sampling noise; a frame is as wide as its larger value.\n",
	      out);
}

/* A separate report as text, because r has all rows. */
static void write_plain(const struct picture *pic, FILE *out)
{
	struct report_options o = *pic->r->opts;

	if (pic->diff) {
		(void)diff_write(pic->diff, out);
		return;
	}
	o.format = REPORT_TEXT;
	o.row_cap = PLAIN_ROWS;
	(void)report_write(pic->r->p, &o, out);
}

/* A page that is a file contains all that it needs; a server's page contains nothing executable. */
static void put_policy(const struct picture *pic, FILE *out)
{
	const char *allowed = pic->r->opts->html_base ? "'self'" : "'unsafe-inline'";

	fprintf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
		"%s; style-src %s\">\n",
		allowed, allowed);
}

static void put_style(const struct picture *pic, FILE *out)
{
	const char *base = pic->r->opts->html_base;

	if (base)
		fprintf(out, "<link rel=\"stylesheet\" href=\"%sviewer.css\">\n", base);
	else
		fprintf(out, "<style>\n%s</style>\n", style);
}

static void put_script(const struct picture *pic, FILE *out)
{
	const char *base = pic->r->opts->html_base;

	if (base)
		fprintf(out, "<script src=\"%sviewer.js\"></script>\n", base);
	else
		fprintf(out, "<script>\n%s</script>\n", script);
}

/* Links to the pages that led here. */
static void put_back(const struct picture *pic, FILE *out)
{
	const char *base = pic->r->opts->html_base;
	const struct profile *other = other_process(pic);

	if (!base)
		return;
	fprintf(out, "<nav><a class=\"brand\" href=\"%s\">heaptap</a>", *base ? base : "./");
	if (*base) {
		fputs(" \xe2\x80\xba <a id=\"back\" href=\"./\">", out);
		put_process(process_of(pic, 1), "", out);
		fputs("</a>", out);
	}
	if (*base && other) {
		fprintf(out, ", <a href=\"../%d/\">", other->recording.pid);
		put_process(other, "", out);
		fputs("</a>", out);
	}
	fputs(" \xe2\x80\xba <a href=\"viewer\">Flame graph</a></nav>\n", out);
}

/* Write the replacement of "@WORD@", or the line itself. */
static int put_line(const struct picture *pic, const char *line, size_t len, FILE *out)
{
	if (len == 7 && !strncmp(line, "@TITLE@", len))
		put_title(pic, out);
	else if (len == 5 && !strncmp(line, "@CSS@", len))
		put_style(pic, out);
	else if (len == 4 && !strncmp(line, "@JS@", len))
		put_script(pic, out);
	else if (len == 8 && !strncmp(line, "@POLICY@", len))
		put_policy(pic, out);
	else if (len == 6 && !strncmp(line, "@BACK@", len))
		put_back(pic, out);
	else if (len == 6 && !strncmp(line, "@HEAD@", len))
		return put_text(pic, write_head, out);
	else if (len == 6 && !strncmp(line, "@TIME@", len))
		report_time_line_put(&pic->time_line, out);
	else if (len == 7 && !strncmp(line, "@PLAIN@", len))
		return put_text(pic, write_plain, out);
	else if (len == 6 && !strncmp(line, "@DATA@", len))
		return put_data(pic, out);
	else
		fprintf(out, "%.*s\n", (int)len, line);
	return 0;
}

static void add_measure(struct picture *pic, struct measure m)
{
	if (m.type >= 0)
		pic->measures[pic->measure_cnt++] = m;
}

/* The moment that the profile was moved to, and the peak. */
static void add_moments(struct picture *pic)
{
	const struct report *r = pic->r;
	bool has_error = r->has_interval, has_peak = profile_find_type(r->p, "peak_space") >= 0;
	char when[UNITS_BUF];

	if (r->p->moment.at == PROFILE_AT_TIME) {
		snprintf(pic->moment, sizeof(pic->moment), "in use at %s",
			 format_duration((uint64_t)r->p->moment.ns, when, sizeof(when)));
		add_measure(pic, (struct measure){ .key = "moment",
						   .title = pic->moment,
						   .type = r->value_type,
						   .objects = -1,
						   .error = has_error ? ERROR_MOMENT : ERROR_NONE,
						   .is_known = true });
	}
	if (!has_peak)
		return;
	add_measure(pic,
		    (struct measure){ .key = "peak_space",
				      .title = "in use at the peak",
				      .type = profile_find_type(r->p, "peak_space"),
				      .objects = r->objects_type < 0 ? -1 : pic->measure_cnt + 1,
				      .error = has_error ? ERROR_PEAK : ERROR_NONE,
				      .is_known = true });
	add_measure(pic, (struct measure){ .key = "peak_objects",
					   .title = "blocks at the peak",
					   .type = r->objects_type,
					   .is_peak_objects = true,
					   .objects = -1,
					   .error = ERROR_NONE,
					   .is_known = true });
}

static void choose_measures(struct picture *pic)
{
	const struct report *r = pic->r;
	bool is_known = !(r->is_unknown && r->is_inuse);
	const char *type = r->value_type < 0 ?
				   "" :
				   profile_text(r->p, r->p->types.data[r->value_type].type_str);

	add_measure(pic,
		    (struct measure){ .key = type,
				      .title = r->is_inuse ? "in use" :
					       r->is_alloc ? "allocated" :
							     type,
				      .type = r->value_type,
				      .is_of_end = r->is_inuse,
				      .objects = r->objects_type >= 0 ? 1 : -1,
				      .error = r->has_interval && is_known ? ERROR_END : ERROR_NONE,
				      .is_known = is_known });
	add_measure(pic, (struct measure){ .key = "objects",
					   .title = r->is_inuse ? "blocks in use" : "blocks",
					   .type = r->objects_type,
					   .is_of_end = r->is_inuse,
					   .objects = -1,
					   .error = ERROR_NONE,
					   .is_known = is_known });
	if (r->is_inuse && is_known && !pic->diff)
		add_moments(pic);
	if (is_known && !pic->diff)
		add_measure(pic,
			    (struct measure){ .key = "pinned_space",
					      .title = "free memory pinned",
					      .type = r->pinned_type,
					      .objects = r->objects_type >= 0 ? 1 : -1,
					      .error = r->has_interval ? ERROR_PINNED : ERROR_NONE,
					      .is_known = true });
	if (r->alloc_type < 0 || r->alloc_type == r->value_type)
		return;
	add_measure(pic, (struct measure){
				 .key = "alloc_space",
				 .title = "allocated",
				 .type = r->alloc_type,
				 .objects = r->alloc_objects_type < 0 ? -1 : pic->measure_cnt + 1,
				 .error = r->has_alloc_interval ? ERROR_ALLOC : ERROR_NONE,
				 .is_known = true });
	add_measure(pic, (struct measure){ .key = "alloc_objects",
					   .title = "blocks allocated",
					   .type = r->alloc_objects_type,
					   .objects = -1,
					   .error = ERROR_NONE,
					   .is_known = true });
}

/* Index in set, -1 without a text, or -ENOMEM. */
static int64_t index_of(struct strset *set, const char *text)
{
	return text ? strset_add(set, text) : -1;
}

static int find_places(struct picture *pic)
{
	const struct report *r = pic->r;
	const uint32_t *i;
	char buf[REPORT_NAME_BUF];

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];
		const char *pid = profile_sample_label(r->p, s, "pid");
		int64_t thread = index_of(pic->threads, profile_sample_label(r->p, s, "thread"));
		int64_t scope = index_of(pic->scopes, profile_sample_label(r->p, s, "scope"));
		int64_t process =
			index_of(pic->processes, pid ? report_sample_process(r, s, buf) : NULL);

		if (thread == -ENOMEM || scope == -ENOMEM || process == -ENOMEM ||
		    vec_push(&pic->thread_of, thread) || vec_push(&pic->scope_of, scope) ||
		    vec_push(&pic->process_index, process))
			return -ENOMEM;
	}
	if (strset_cnt(pic->processes) <= 2) /* "" and perhaps one: nothing to group by */
		pic->process_index.cnt = 0;
	return 0;
}

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
	uint64_t i;

	if (key[0] < 0 || key[1] < 0 || key[2] < 0 ||
	    hmap_add(&m->functions, key, m->t->functions.cnt, &i))
		return -ENOMEM;
	if (i == m->t->functions.cnt &&
	    vec_push(&m->t->functions,
		     ((struct report_tree_function){ .name = key[0],
						     .module = key[1],
						     .file = key[2],
						     .is_own = report_is_own(m->r, s, f) })))
		return -ENOMEM;
	return (int64_t)i;
}

/* Index of the node of a function below parent, or -ENOMEM. */
static int64_t step_down(struct maker *m, uint32_t parent, uint32_t function)
{
	uint32_t key[2] = { parent, function };
	uint64_t i;

	if (m->t->nodes.cnt >= UINT32_MAX || hmap_add(&m->nodes, key, m->t->nodes.cnt, &i))
		return -ENOMEM;
	if (i == m->t->nodes.cnt &&
	    vec_push(&m->t->nodes,
		     ((struct report_tree_node){ .parent = parent, .function = function })))
		return -ENOMEM;
	return (int64_t)i;
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

/* 0 or -ENOMEM. */
static int make_tree(const struct report *r, struct report_tree *ret)
{
	struct maker m = { .r = r, .t = ret };
	int err = strset_new(&ret->names);

	hmap_init(&m.functions, 3 * sizeof(int64_t));
	hmap_init(&m.nodes, 2 * sizeof(uint32_t));
	if (!err)
		err = fill(&m);
	hmap_release(&m.functions);
	hmap_release(&m.nodes);
	vec_release(&m.path);
	return err;
}

static int write_page(const struct report *r, const struct diff *diff, FILE *out)
{
	struct picture pic = { .r = r, .diff = diff };
	int err = make_tree(r, &pic.tree);

	if (!err)
		err = strset_new(&pic.threads);
	if (!err)
		err = strset_new(&pic.scopes);
	if (!err)
		err = strset_new(&pic.processes);
	if (!err)
		err = find_places(&pic);
	if (!err && !diff)
		err = report_time_line_find(r, &pic.time_line);
	if (err)
		goto out;
	choose_measures(&pic);
	for (const char *line = page_html, *end; !err && *line; line = end + 1) {
		end = line + strcspn(line, "\n");
		err = put_line(&pic, line, (size_t)(end - line), out);
	}
out:
	free(pic.time_line.points);
	strset_free(pic.tree.names);
	vec_release(&pic.tree.functions);
	vec_release(&pic.tree.nodes);
	vec_release(&pic.tree.leaf);
	strset_free(pic.threads);
	strset_free(pic.scopes);
	strset_free(pic.processes);
	vec_release(&pic.thread_of);
	vec_release(&pic.scope_of);
	vec_release(&pic.process_index);
	return err;
}

int report_write_html(const struct report *r, FILE *out)
{
	return write_page(r, NULL, out);
}

/* Bars of a change are known only if both sides have them. */
int diff_write_html(const struct diff *d, FILE *out)
{
	struct report_options o = { .by = REPORT_BY_STACK,
				    .format = REPORT_HTML,
				    .value = d->opts->value,
				    .html_base = d->opts->html_base,
				    .own = d->opts->own,
				    .own_cnt = d->opts->own_cnt };
	struct profile *both = NULL;
	struct report *r = NULL;
	int err = diff_join(d, 1, &both);

	if (!err)
		err = report_open(both, &o, &r);
	if (!err) {
		r->has_interval = d->side[0].r->has_samples && d->side[1].r->has_samples;
		err = write_page(r, d, out);
	}
	report_close(r);
	profile_free(both);
	return err;
}
