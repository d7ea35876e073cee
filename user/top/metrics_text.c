/* SPDX-License-Identifier: MIT */
/*
 * metrics_text.c - turns /metrics of heaptap serve into a table of processes.
 *
 * Prometheus' text format: a line is NAME{LABEL="VALUE",...} NUMBER. Lines of others, or newer than this program,
 * are ignored; a text without any family of heaptap is refused. The first line with a field of take_process()
 * creates the row of its process, whichever field that is: unknown values have no line.
 */
#include "top/table.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/strset.h"
#include "base/units.h"
#include "report/report_losses.h"

#define LABEL_BYTES 4096

struct line {
	const char *name;
	size_t name_bytes;
	char pid[16], comm[LABEL_BYTES], exe[LABEL_BYTES], reason[64];
	double value;
};

struct reader {
	struct top_table *t;
	struct hmap by_pid; /* pid_t -> index of its row */
	double rate_bytes, host_share, largest_loss;
	size_t loss_cnt; /* kinds of losses */
	bool is_ours;
	char largest_text[64];
};

/* Read "VALUE" at *at without its escapes, as much as fits into buf. */
static int read_quoted(const char **at, char *buf, size_t buf_bytes)
{
	const char *s = *at;
	size_t used = 0;

	if (*s++ != '"')
		return -EBADMSG;
	for (; *s && *s != '"' && *s != '\n'; s++) {
		char c = *s;

		if (c == '\\' && s[1] && s[1] != '\n')
			c = *++s == 'n' ? '\n' : *s;
		if (used + 1 < buf_bytes)
			buf[used++] = c;
	}
	buf[used] = '\0';
	*at = s + (*s == '"');
	return *s == '"' ? 0 : -EBADMSG;
}

static int read_labels(const char **at, struct line *l)
{
	const struct {
		const char *name;
		char *to;
		size_t bytes;
	} wanted[] = { { "pid", l->pid, sizeof(l->pid) },
		       { "comm", l->comm, sizeof(l->comm) },
		       { "exe", l->exe, sizeof(l->exe) },
		       { "reason", l->reason, sizeof(l->reason) } };
	char other[1] = "";

	while (**at != '}') {
		size_t len = strcspn(*at, "=\n"), i = 0;
		const char *name = *at;

		if (name[len] != '=')
			return -EBADMSG;
		*at += len + 1;
		while (i < 4 &&
		       (strlen(wanted[i].name) != len || strncmp(wanted[i].name, name, len) != 0))
			i++;
		if (read_quoted(at, i < 4 ? wanted[i].to : other, i < 4 ? wanted[i].bytes : 1))
			return -EBADMSG;
		*at += **at == ',';
	}
	(*at)++;
	return 0;
}

static int read_line(const char *at, struct line *l)
{
	char *end;

	l->pid[0] = l->comm[0] = l->exe[0] = l->reason[0] = '\0';
	l->name = at;
	l->name_bytes = strcspn(at, "{ \n");
	at += l->name_bytes;
	if (*at == '{') {
		at++;
		if (read_labels(&at, l))
			return -EBADMSG;
	}
	if (*at != ' ')
		return -EBADMSG;
	l->value = strtod(at, &end);
	return end == at ? -EBADMSG : 0;
}

static bool is_named(const struct line *l, const char *name)
{
	return l->name_bytes == strlen(name) && !strncmp(l->name, name, l->name_bytes);
}

/* Return the row of the line's process; add it if it is new. -ENOMEM. */
static int get_row(struct reader *r, const struct line *l, struct top_row **ret)
{
	pid_t pid = (pid_t)strtol(l->pid, NULL, 10);
	const uint64_t *known = hmap_get(&r->by_pid, &pid);
	struct top_row row = TOP_ROW_NONE;
	int err;

	if (!known) {
		row.pid = pid;
		row.key = strset_keep(r->t->texts, l->pid);
		row.name = strset_keep(r->t->texts, l->comm);
		row.tail = strset_keep(r->t->texts, l->exe);
		if (!row.key || !row.name || !row.tail)
			return -ENOMEM;
		err = vec_push(&r->t->rows, row);
		if (!err)
			err = hmap_put(&r->by_pid, &pid, r->t->rows.cnt - 1);
		if (err)
			return err;
	}
	*ret = &r->t->rows.data[known ? *known : r->t->rows.cnt - 1];
	return 0;
}

static int take_process(struct reader *r, const struct line *l)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
		{ "heaptap_inuse_bytes", offsetof(struct top_row, held_bytes) },
		{ "heaptap_inuse_objects", offsetof(struct top_row, blocks) },
		{ "heaptap_inuse_standard_error_bytes", offsetof(struct top_row, held_variance) },
		{ "heaptap_alloc_bytes_total", offsetof(struct top_row, alloc_bytes) },
		{ "heaptap_target_resident_bytes", offsetof(struct top_row, resident_bytes) },
		{ "heaptap_overhead_ratio", offsetof(struct top_row, cost_share) },
	};
	struct top_row *row;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		bool is_error = fields[i].at == offsetof(struct top_row, held_variance);
		double value = is_error ? l->value * l->value : l->value;
		int err;

		if (!is_named(l, fields[i].name))
			continue;
		err = get_row(r, l, &row);
		if (err)
			return err;
		memcpy((char *)row + fields[i].at, &value, sizeof(value));
	}
	return 0;
}

/* As for a profile, see report/report_losses.h. */
static void take_loss(struct reader *r, const struct line *l)
{
	if (!(l->value > 0) || report_loss_is_said_elsewhere(l->reason))
		return;
	r->loss_cnt++;
	if (l->value <= r->largest_loss)
		return;
	r->largest_loss = l->value;
	snprintf(r->largest_text, sizeof(r->largest_text), "%.40s %.0f", l->reason, l->value);
}

static int take_line(struct reader *r, const struct line *l)
{
	r->is_ours |= l->name_bytes > 8 && !strncmp(l->name, "heaptap_", 8);
	if (l->pid[0])
		return take_process(r, l);
	if (is_named(l, "heaptap_sample_rate_bytes"))
		r->rate_bytes = l->value;
	else if (is_named(l, "heaptap_host_overhead_ratio"))
		r->host_share = l->value;
	else if (is_named(l, "heaptap_losses_total"))
		take_loss(r, l);
	return 0;
}

static void set_error(struct reader *r, struct top_row *row)
{
	char text[UNITS_BUF];

	if (!(row->held_bytes > 0) || isnan(row->held_variance))
		return;
	snprintf(text, sizeof(text), "+-%.0f%%",
		 100 * 1.96 * sqrt(row->held_variance) / row->held_bytes);
	row->error = strset_keep(r->t->texts, row->held_variance > 0 ? text : "exact");
}

static void add_up(struct top_table *t)
{
	struct top_row *row;

	t->total = TOP_ROW_NONE;
	t->total.held_bytes = t->total.held_variance = 0;
	t->total.alloc_bytes = t->total.blocks = 0;
	vec_each(&t->rows, row) { /* a value unknown for one is unknown for the total */
		t->total.held_bytes += row->held_bytes;
		t->total.held_variance += row->held_variance;
		t->total.alloc_bytes += row->alloc_bytes;
		t->total.blocks += row->blocks;
	}
}

static void set_texts(const struct reader *r)
{
	struct top_table *t = r->t;
	char rate[UNITS_BUF], share[UNITS_BUF];

	snprintf(t->title, sizeof(t->title), "%zu process%s", t->rows.cnt,
		 t->rows.cnt == 1 ? "" : "es");
	if (r->rate_bytes > 0)
		snprintf(t->about, sizeof(t->about), ", one sample per %s",
			 format_bytes(r->rate_bytes, rate, sizeof(rate)));
	snprintf(t->cost, sizeof(t->cost), "cost not known yet");
	if (!isnan(r->host_share))
		snprintf(t->cost, sizeof(t->cost), "cost %s %% of the time of all CPUs",
			 format_percent(r->host_share, share, sizeof(share)));
	snprintf(t->losses, sizeof(t->losses), "no losses");
	if (r->loss_cnt == 1)
		snprintf(t->losses, sizeof(t->losses), "lost: %s", r->largest_text);
	else if (r->loss_cnt)
		snprintf(t->losses, sizeof(t->losses), "lost: %s, and %zu more", r->largest_text,
			 r->loss_cnt - 1);
}

/* Lines in another format are ignored, too: see the head. */
static int read_lines(struct reader *r, const char *text)
{
	struct line *l = malloc(sizeof(*l));
	int err = l ? 0 : -ENOMEM;

	while (*text && !err) {
		if (*text != '#' && *text != '\n' && !read_line(text, l))
			err = take_line(r, l);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	free(l);
	return err ? err : r->is_ours ? 0 : -EBADMSG;
}

int top_table_of_metrics(const char *text, struct top_table **ret)
{
	struct reader r = { .rate_bytes = NAN, .host_share = NAN };
	struct top_row *row;
	int err;

	r.t = calloc(1, sizeof(*r.t));
	if (!r.t)
		return -ENOMEM;
	hmap_init(&r.by_pid, sizeof(pid_t));
	err = strset_new(&r.t->texts);
	if (!err)
		err = read_lines(&r, text);
	if (!err) {
		vec_each(&r.t->rows, row) {
			set_error(&r, row);
			if (!row->error)
				err = -ENOMEM;
		}
		add_up(r.t);
		set_texts(&r);
	}
	hmap_release(&r.by_pid);
	if (err)
		top_table_free(r.t);
	else
		*ret = r.t;
	return err;
}
