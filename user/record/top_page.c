/* SPDX-License-Identifier: MIT */
/*
 * top_page.c - see top_priv.h.
 *
 * From the top: what is shown; cost and losses; titles; rows; what is resident; a line with keys or the last message. On a low screen
 * the lines that help least are left out first, so that one line is left for rows.
 */
#include "record/top_priv.h"

#include "base/printable.h"
#include "base/units.h"
#include "report/report_text.h"

#define NAME_COLUMNS_GOOD 24
#define LINES_FOR_COST 6
#define LINES_FOR_KEYS 4
#define LINES_FOR_TITLES 3
#define LINES_FOR_RESIDENT 12
#define FRAME_INDENT 4

enum column {
	COLUMN_PID,
	COLUMN_HELD,
	COLUMN_ERROR,
	COLUMN_GROWTH,
	COLUMN_ALLOC,
	COLUMN_BLOCKS,
	COLUMN_SHARE,
	COLUMN_BAR,
	COLUMN_COST,
	COLUMN_RESIDENT,
	COLUMN_CNT
};

static const struct {
	const char *title;
	size_t width;
} columns_of[] = {
	[COLUMN_PID] = { "PID", 7 },	    [COLUMN_HELD] = { "IN USE", 9 },
	[COLUMN_ERROR] = { "+- 95 %", 11 }, [COLUMN_GROWTH] = { "GROWTH/min", 11 },
	[COLUMN_ALLOC] = { "ALLOC/s", 8 },  [COLUMN_BLOCKS] = { "BLOCKS", 7 },
	[COLUMN_SHARE] = { "SHARE", 5 },    [COLUMN_BAR] = { "", 8 },
	[COLUMN_COST] = { "COST", 6 },	    [COLUMN_RESIDENT] = { "RESIDENT", 8 },
};

struct drawing {
	struct top_page *page;
	struct top_view *v;
	const struct top_table *t;
	bool has[COLUMN_CNT];
	size_t used; /* columns used before the name */
	bool has_utf8;
	size_t at; /* the next line */
};

static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Cut text to the columns that there are. */
static void cut(char *text, size_t columns)
{
	size_t i = 0, n = 0;

	for (; text[i]; i++) {
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (n > columns)
			break;
	}
	text[i] = '\0';
}

static void put(struct drawing *d, enum top_paint paint, const char *text)
{
	struct top_line *l;

	if (d->at >= d->page->line_cnt)
		return;
	l = &d->page->lines[d->at++];
	l->paint = paint;
	snprintf(l->text, sizeof(l->text), "%s", text);
	make_printable(l->text);
	cut(l->text, d->page->columns);
}

__attribute__((format(printf, 3, 4))) static void
put_format(struct drawing *d, enum top_paint paint, const char *fmt, ...)
{
	char text[TOP_LINE_BUF];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	put(d, paint, text);
}

static char *format_growth(double per_min, bool is_weak, char buf[UNITS_BUF + 4])
{
	char bytes[UNITS_BUF];

	if (isnan(per_min)) {
		snprintf(buf, UNITS_BUF + 4, "- ");
		return buf;
	}
	snprintf(buf, UNITS_BUF + 4, "%s%s%c",
		 per_min > 0 ? "+" :
		 per_min < 0 ? "-" :
			       "",
		 format_bytes(fabs(per_min), bytes, sizeof(bytes)), is_weak ? '?' : ' ');
	return buf;
}

static const char *bytes_or(double bytes, const char *unknown, char *buf)
{
	return isnan(bytes) ? unknown : format_bytes(bytes, buf, UNITS_BUF);
}

/* The part of all that is in use, in whole percent and as a bar; "-": unknown. */
static void format_share(const struct drawing *d, const struct top_row *row, bool is_bar,
			 char buf[UNITS_BUF + 4])
{
	static const char *const parts[] = { " ",      "\u258f", "\u258e", "\u258d",
					     "\u258c", "\u258b", "\u258a", "\u2589" };
	double share = row->held_bytes / d->t->total.held_bytes;
	size_t eighths, width = columns_of[COLUMN_BAR].width, used = 0;

	if (!(share >= 0 && share <= 1)) {
		snprintf(buf, UNITS_BUF, "%s", is_bar ? "" : "-");
		return;
	}
	if (!is_bar) {
		snprintf(buf, UNITS_BUF, "%.0f %%", 100 * share);
		return;
	}
	eighths = (size_t)(8 * (double)width * share + 0.5);
	for (size_t i = 0; i < width; i++) {
		const char *part = i < eighths / 8  ? "\u2588" :
				   i == eighths / 8 ? parts[eighths % 8] :
						      " ";

		used += (size_t)snprintf(buf + used, UNITS_BUF + 4 - used, "%s", part);
	}
}

static void format_cell(const struct drawing *d, const struct top_row *row, enum column column,
			char buf[UNITS_BUF + 4])
{
	char text[UNITS_BUF];

	switch (column) {
	case COLUMN_PID:
		snprintf(buf, UNITS_BUF, "%d", row->pid);
		break;
	case COLUMN_HELD:
		snprintf(buf, UNITS_BUF + 4, "%s%c", bytes_or(row->held_bytes, "unknown", text),
			 row->is_weak ? '?' : ' ');
		break;
	case COLUMN_ERROR:
		snprintf(buf, UNITS_BUF, "%s", row->error);
		break;
	case COLUMN_GROWTH:
		format_growth(row->growth_per_min, row->growth_is_weak, buf);
		break;
	case COLUMN_ALLOC:
		snprintf(buf, UNITS_BUF, "%s", bytes_or(row->alloc_per_s, "-", text));
		break;
	case COLUMN_BLOCKS:
		snprintf(buf, UNITS_BUF, "%s",
			 isnan(row->blocks) ? "-" : format_count(row->blocks, text, sizeof(text)));
		break;
	case COLUMN_SHARE:
	case COLUMN_BAR:
		format_share(d, row, column == COLUMN_BAR, buf);
		break;
	case COLUMN_COST:
		if (isnan(row->cost_share))
			snprintf(buf, UNITS_BUF, "-");
		else
			snprintf(buf, UNITS_BUF, "%s %%",
				 format_percent(row->cost_share, text, sizeof(text)));
		break;
	default:
		snprintf(buf, UNITS_BUF, "%s", bytes_or(row->resident_bytes, "-", text));
	}
}

/* Choose the table's columns as far as there is room beside names. */
static void choose_columns(struct drawing *d)
{
	static const enum column first_last[] = { COLUMN_HELD,	   COLUMN_GROWTH, COLUMN_ALLOC,
						  COLUMN_PID,	   COLUMN_COST,	  COLUMN_ERROR,
						  COLUMN_RESIDENT, COLUMN_BLOCKS, COLUMN_SHARE,
						  COLUMN_BAR };
	enum column sorted = d->v->sort == TOP_BY_GROWTH ? COLUMN_GROWTH :
			     d->v->sort == TOP_BY_ALLOC	 ? COLUMN_ALLOC :
							   COLUMN_HELD;
	bool is_process = d->v->what == TOP_PROCESSES;

	/* The sorted column is always shown, unless it alone is too wide. */
	if (columns_of[sorted].width + 1 <= d->page->columns) {
		d->has[sorted] = true;
		d->used = columns_of[sorted].width + 1;
	}
	for (size_t i = 0; i < COLUMN_CNT; i++) {
		enum column c = first_last[i];
		bool is_of_process = c == COLUMN_PID || c == COLUMN_COST || c == COLUMN_RESIDENT;
		bool is_of_row =
			c == COLUMN_SHARE || c == COLUMN_BAR; /* of the only process, all */
		size_t name = is_of_row ? 2 * NAME_COLUMNS_GOOD : NAME_COLUMNS_GOOD;

		if (d->has[c] || (is_of_process && !is_process) || (is_of_row && is_process) ||
		    (c == COLUMN_BAR && !d->has_utf8) ||
		    d->used + columns_of[c].width + 1 + name > d->page->columns)
			continue;
		d->has[c] = true;
		d->used += columns_of[c].width + 1;
	}
}

static size_t name_columns(const struct drawing *d)
{
	return d->page->columns > d->used ? d->page->columns - d->used : 0;
}

/* Align right in its column, and add one space. */
static size_t add_cell(char *text, size_t used, enum column c, const char *cell)
{
	size_t width = columns_of[c].width, own = width_of(cell);

	return used + (size_t)snprintf(text + used, TOP_LINE_BUF - used, "%*s%s ",
				       own < width ? (int)(width - own) : 0, "", cell);
}

static void put_titles(struct drawing *d)
{
	static const char *const names[] = { "PROCESS", "STACK", "FUNCTION", "SCOPE", "THREAD" };
	char text[TOP_LINE_BUF];
	size_t used = 0;

	for (int c = 0; c < COLUMN_CNT; c++) {
		/* numbers are followed by marks */
		const char *pad = c == COLUMN_HELD || c == COLUMN_GROWTH ? " " : "";
		char title[16];

		if (!d->has[c])
			continue;
		snprintf(title, sizeof(title), "%s%s", columns_of[c].title, pad);
		used = add_cell(text, used, c, title);
	}
	snprintf(text + used, sizeof(text) - used, "%-*s", (int)name_columns(d), names[d->v->what]);
	put(d, TOP_TITLES, text);
}

/* "+ ": something is folded in it; "- ": it is unfolded. */
static const char *fold_mark(const struct drawing *d, size_t i)
{
	const struct top_row *row = &d->t->rows.data[i];
	bool is_parent = i + 1 < d->t->rows.cnt && d->t->rows.data[i + 1].parent == i;

	if (d->v->what != TOP_STACKS && d->v->what != TOP_SCOPES)
		return "";
	if (d->v->what == TOP_SCOPES && !is_parent)
		return "  ";
	return top_view_is_folded(d->v, row) ? "+ " : "- ";
}

/* Fit "< f a.c:1 < main a.c:9": as many as there is room for; of the first, as much as fits, with its sign. */
static void fit_tail(const char *tail, size_t columns, char buf[REPORT_FIT_BUF])
{
	const char *end = tail, *next;
	char name[REPORT_FIT_BUF], fitting[REPORT_FIT_BUF];
	size_t lead = strncmp(tail, "< ", 2) ? 0 : 2;

	do {
		next = strstr(end + 1, " < ");
		next = next ? next : end + strlen(end);
		snprintf(buf, REPORT_FIT_BUF, "%.*s", (int)(next - tail), tail);
		if (width_of(buf) > columns)
			break;
		end = next;
	} while (*end);
	snprintf(buf, REPORT_FIT_BUF, "%.*s", (int)(end - tail), tail);
	if (end > tail || columns <= lead)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(next - tail - (ptrdiff_t)lead), tail + lead);
	snprintf(buf, REPORT_FIT_BUF, "%.*s%s", (int)lead, tail,
		 report_fit_name(name, columns - lead, fitting));
}

/* What a name leaves to "< caller": two rows may differ in it alone. */
static size_t room_for_caller(const char *tail, size_t room)
{
	const char *next = strncmp(tail, "< ", 2) ? tail : strstr(tail + 1, " < ");
	size_t bytes = next ? (size_t)(next - tail) : strlen(tail);

	return bytes ? 2 + (bytes < room / 3 ? bytes : room / 3) : 0;
}

static void put_row(struct drawing *d, size_t i, bool is_selected)
{
	const struct top_row *row = &d->t->rows.data[i];
	char text[TOP_LINE_BUF], cell[UNITS_BUF + 4], name[REPORT_FIT_BUF],
		tail[REPORT_FIT_BUF] = "";
	size_t used = 0, room = name_columns(d), lead, indent = 2 * (size_t)row->depth;

	for (int c = 0; c < COLUMN_CNT; c++) {
		if (!d->has[c])
			continue;
		format_cell(d, row, c, cell);
		used = add_cell(text, used, c, cell);
	}
	lead = indent + strlen(fold_mark(d, i));
	if (lead > room / 2)
		lead = indent = 0; /* too deep for this screen */
	report_fit_name(row->name, room - lead - room_for_caller(row->tail, room - lead), name);
	if (row->tail[0] && lead + width_of(name) + 2 < room)
		fit_tail(row->tail, room - lead - width_of(name) - 2, tail);
	snprintf(text + used, sizeof(text) - used, "%*s%s%s%s%s", (int)indent, "",
		 lead ? fold_mark(d, i) : "", name, tail[0] ? "  " : "", tail);
	put(d, is_selected ? TOP_SELECTED : TOP_PLAIN, text);
}

/* Count the lines of a row, including itself. */
static size_t count_lines(const struct drawing *d, size_t i)
{
	char buf[TOP_FRAME_BUF];
	size_t n = 0;

	if (d->v->what != TOP_STACKS || top_view_is_folded(d->v, &d->t->rows.data[i]))
		return 1;
	while (top_table_frame(d->t, i, n, buf))
		n++;
	return n + 1;
}

static void put_frame(struct drawing *d, size_t i, size_t n)
{
	char buf[TOP_FRAME_BUF], name[REPORT_FIT_BUF];
	size_t indent = d->used + FRAME_INDENT;

	if (!top_table_frame(d->t, i, n, buf))
		return;
	if (indent + NAME_COLUMNS_GOOD > d->page->columns)
		indent = d->page->columns > NAME_COLUMNS_GOOD ? FRAME_INDENT : 0;
	report_fit_name(buf, d->page->columns - indent, name);
	put_format(d, TOP_DIM, "%*s%s", (int)indent, "", name);
}

/* Scroll so that the selected row is shown, with as many of its frames as fit. */
static void scroll(struct drawing *d, size_t selected, size_t room)
{
	size_t before = 0, lines;

	for (size_t k = 0; k < selected; k++)
		before += count_lines(d, d->v->order.data[k]);
	lines = d->v->order.cnt ? count_lines(d, d->v->order.data[selected]) : 1;
	if (lines > room)
		lines = room;
	if (before < d->v->first_line)
		d->v->first_line = before;
	else if (before + lines > d->v->first_line + room)
		d->v->first_line = before + lines - room;
}

static void put_rows(struct drawing *d, size_t room)
{
	size_t selected = top_view_selected(d->v, d->t), line = 0, end = d->at + room;

	d->v->body_lines = room;
	if (!room)
		return;
	scroll(d, selected, room);
	for (size_t k = 0; k < d->v->order.cnt && d->at < end; k++) {
		size_t i = d->v->order.data[k], cnt = count_lines(d, i);

		for (size_t n = 0; n < cnt && d->at < end; n++, line++) {
			if (line < d->v->first_line)
				continue;
			if (n)
				put_frame(d, i, n - 1);
			else
				put_row(d, i, k == selected);
		}
	}
	if (!d->v->order.cnt)
		put(d, TOP_DIM, d->v->search[0] ? "no name matches" : "nothing yet");
}

/* Add a part only if it fits: half a number is a wrong number. */
__attribute__((format(printf, 3, 4))) static void add_part(char text[TOP_LINE_BUF], size_t columns,
							   const char *fmt, ...)
{
	char part[TOP_TEXT_BUF + UNITS_BUF];
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(part, sizeof(part), fmt, args);
	va_end(args);
	if (width_of(text) + width_of(part) <= columns)
		snprintf(text + used, TOP_LINE_BUF - used, "%s", part);
}

static void put_head(struct drawing *d, const struct top_news *news)
{
	const struct top_row *total = d->t ? &d->t->total : NULL;
	size_t columns = d->page->columns;
	char buf[UNITS_BUF + 4], text[TOP_LINE_BUF] = "", title[REPORT_FIT_BUF];

	if (news->is_over || d->v->is_paused)
		add_part(text, columns, "%s", news->is_over ? "ENDED  " : "PAUSED  ");
	if (!total) {
		add_part(text, columns, "heaptap top");
		put(d, TOP_HEAD, text);
		return;
	}
	add_part(text, columns, "in use %s", bytes_or(total->held_bytes, "unknown", buf));
	if (!isnan(total->growth_per_min)) {
		format_growth(total->growth_per_min, total->growth_is_weak, buf);
		add_part(text, columns, " (%.*s/min)", (int)strlen(buf) - !total->growth_is_weak,
			 buf);
	}
	if (!isnan(total->alloc_per_s))
		add_part(text, columns, ", allocates %s/s", bytes_or(total->alloc_per_s, "", buf));
	if (!isnan(total->resident_bytes))
		add_part(text, columns, ", RSS %s", bytes_or(total->resident_bytes, "", buf));
	if (news->has_utf8 && d->t->spark[0])
		add_part(text, columns, " %s", d->t->spark);
	if (width_of(text) + 2 < columns)
		add_part(text, columns, "  %s",
			 report_fit_name(d->t->title, columns - width_of(text) - 2, title));
	add_part(text, columns, "%s", d->t->about);
	put(d, TOP_HEAD, text);
}

/* Losses matter more than the cost: if there are any, they come first. */
static void put_cost(struct drawing *d)
{
	bool is_lossy;

	if (!d->t) {
		put(d, TOP_PLAIN, "");
		return;
	}
	is_lossy = strncmp(d->t->losses, "no ", 3) != 0;
	put_format(d, is_lossy ? TOP_WARN : TOP_PLAIN, "%s; %s",
		   is_lossy ? d->t->losses : d->t->cost, is_lossy ? d->t->cost : d->t->losses);
}

static void put_foot(struct drawing *d, const struct top_news *news)
{
	static const char *const sorts[] = { "in use", "growth", "allocated" };
	const struct top_view *v = d->v;

	if (v->is_typing || v->search[0])
		put_format(d, TOP_PLAIN, "/%s%s", v->search, v->is_typing ? "_" : "");
	else if (news->message[0])
		put(d, TOP_WARN, news->message);
	else if (!v->pid)
		put_format(
			d, TOP_DIM,
			"by %s  ? help  q quit  Enter opens  i g a sort  / search  p pause  w save",
			sorts[v->sort]);
	else
		put_format(
			d, TOP_DIM,
			"by %s  ? help  q quit  s f o t views  i g a sort  / search  p pause  w save",
			sorts[v->sort]);
}

static void put_help(struct drawing *d)
{
	static const char *const help[] = {
		"q      quit",
		"?      this help; any key but q goes back",
		"s f o t  stacks, functions, scopes, threads; Tab: the next",
		"Enter  open a process, fold or unfold a row; Right, Space: the same",
		"Esc    back to the process; ends a search; Left, Backspace: the same",
		"i g a  sort by in use, growth, allocated",
		"/      search: show only rows that match",
		"p      pause the display; the recording goes on",
		"w      save a profile of what is shown, for heaptap report",
		"Up, Down, PgUp, PgDn, Home, End: move",
		"",
		"SHARE: of the total in use.",
		"IN USE: bytes allocated since heaptap attached, and not freed.",
		"A ? after IN USE: fewer than four samples; after GROWTH: may be noise.",
		"GROWTH: of the last minute. ALLOC: of the last seconds.",
		"-: unknown (at first there is nothing to compare with).",
	};

	for (size_t i = 0; i < sizeof(help) / sizeof(*help); i++)
		put(d, TOP_PLAIN, help[i]);
}

static void put_all(struct drawing *d, const struct top_news *news)
{
	size_t lines = d->page->line_cnt, below = lines >= LINES_FOR_KEYS, has_resident;

	if (d->v->shows_help) {
		put_help(d);
		return;
	}
	if (lines > 1)
		put_head(d, news);
	if (lines >= LINES_FOR_COST)
		put_cost(d);
	if (d->t) {
		choose_columns(d);
		if (lines >= LINES_FOR_TITLES)
			put_titles(d);
		has_resident = d->t->resident[0] && lines >= LINES_FOR_RESIDENT;
		put_rows(d, lines - d->at - below - has_resident);
		if (has_resident) {
			d->at = lines - 1 - below;
			put(d, TOP_DIM, d->t->resident);
		}
	} else if (!news->message[0]) {
		put(d, TOP_DIM, "waiting for the first samples");
	}
	d->at = lines - 1;
	if (below || !d->t)
		put_foot(d, news);
}

int top_page_draw(struct top_view *v, const struct top_table *t, const struct top_news *news,
		  size_t columns, size_t lines, struct top_page *ret)
{
	struct drawing d = { .page = ret, .v = v, .t = t, .has_utf8 = news->has_utf8 };
	int err = 0;

	*ret = (struct top_page){ .line_cnt = lines ? lines : 1 };
	ret->columns = columns < 1 ? 1 : columns > TOP_COLUMNS_MAX ? TOP_COLUMNS_MAX : columns;
	ret->lines = calloc(ret->line_cnt, sizeof(*ret->lines));
	if (!ret->lines)
		return -ENOMEM;
	if (t)
		err = top_view_arrange(v, t);
	if (err)
		top_page_release(ret);
	else
		put_all(&d, news);
	return err;
}

void top_page_release(struct top_page *p)
{
	free(p->lines);
	p->lines = NULL;
}
