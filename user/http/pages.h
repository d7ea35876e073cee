/* SPDX-License-Identifier: MIT */
/*
 * pages.h - the pages for people, file by file. Pure.
 *
 * A page is drawn by a script of this server (index.js, process.js) from JSON that the page brings along, so that the
 * first picture needs no second request. What a browser without scripts shows is in <noscript>.
 */
#ifndef HT_HTTP_PAGES_H
#define HT_HTTP_PAGES_H

#include "base/std.h"

struct serve_process;
struct serve_view;

/* page.c: the pages as HTML: the index at "/", and of one process at "/pid/N/". */

/* A live page is fetched again after this. */
#define PAGE_LIVE_S 10
/* A line of the page of a process, once: the place for what grows by stack (report.h), which takes a while. No name looks
 * like it. */
#define PROCESS_PAGE_STACKS "<!-- stacks -->\n"
/* p: one of v's; NULL: the index. Names are foreign bytes and are escaped. 0 or -ENOMEM. */
int page_write(const struct serve_view *v, const struct serve_process *p, bool is_live, FILE *out);

/*
 * page_json.c: the data of the pages as JSON: at /api and /pid/N/api, and within the pages themselves. Pure.
 *
 * Bounded: a process takes some 450 bytes in the index besides its names, its own page 50 KiB besides its scopes; at
 * most PAGE_JSON_SAVED_MAX saved profiles and PAGE_JSON_OTHERS_MAX other processes are listed. Numbers and texts that are not known are left out. The keys are
 * described in heaptap-serve(1), and stable: new ones may be added.
 */

#define PAGE_JSON_SAVED_MAX 100
#define PAGE_JSON_OTHERS_MAX 300
#define PAGE_JSON_POINTS 40 /* of the small line of a process in the index */

/* p: one of v's; NULL: the index. */
void page_json(const struct serve_view *v, const struct serve_process *p, FILE *out);

/* page_files.c: the files that the pages for people load: page.css and page.js both, index.js and process.js each. */

extern const struct page_files {
	const char *style, *script, *index_script, *process_script;
} page_files;

/*
 * metrics_page.c: the page at "/metrics".
 *
 * All families of a process have the same labels pid, comm, exe and container, so that a query can divide one by
 * the other: heaptap_inuse_bytes / heaptap_target_resident_bytes. Families heaptap_scope_* have pid, comm, scope
 * and thread (the thread's pool).
 */

/*
 * Metrics as text, in Prometheus' format or OpenMetrics. Pure.
 *
 * 	https://prometheus.io/docs/instrumenting/exposition_formats/
 * 	https://prometheus.io/docs/specs/om/open_metrics_spec/
 *
 * The formats differ in small things: OpenMetrics names a counter's family without the "_total" of its samples, has
 * units and a type for facts, and ends with "# EOF". The writer of a page need not know:
 *
 * 	metric_head(&m, &family);
 * 	metric_begin(&m);
 * 	metric_label(&m, "pid", "17");
 * 	metric_value(&m, 4096);
 * 	...
 * 	metric_end(&m);
 *
 * All samples of a family must stand together, and no two of them may have the same labels.
 */

enum metric_format { METRIC_PROMETHEUS, METRIC_OPENMETRICS };

/* METRIC_INFO: its labels are facts, its value is 1. */
enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO };

struct metric_family {
	const char *name; /* without a counter's _total, or the _info of facts */
	enum metric_type type;
	const char *unit; /* end of the name, such as "bytes"; NULL: a number */
	const char *help; /* without '\\', '"' and newline */
};

struct metric_text {
	FILE *out;
	enum metric_format format;
	/* Private to metrics_page.c from here on. */
	const struct metric_family *family;
	int label_cnt;
};

/*
 * Choose the format from a client's Accept header (NULL: none was sent). OpenMetrics only for a client that names
 * it and does not prefer text/plain.
 */
enum metric_format metric_format_choose(const char *accept);

void metric_head(struct metric_text *m, const struct metric_family *family);
void metric_begin(struct metric_text *m);
/* An empty value equals no label, and is left out. Bytes that are not UTF-8, and control characters but newline,
 * become '?'. */
void metric_label(struct metric_text *m, const char *key, const char *value);
void metric_value(struct metric_text *m, double value);
void metric_end(struct metric_text *m);

/* The page, in the format chosen for this Accept header. Returns its Content-Type. */
const char *metrics_page_write(const struct serve_view *v, const char *accept, FILE *out);

#endif
