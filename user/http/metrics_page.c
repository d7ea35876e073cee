/* SPDX-License-Identifier: MIT */
/*
 * metrics_page.c - see pages.h.
 *
 * Each metric is a line in a table: the family, and the field of view.h that it shows. A new metric of a process, a
 * scope, a push target or heaptap itself only needs a field and a line here.
 */
#include "http/pages.h"

#include "base/clock.h"
#include "base/printable.h"
#include "http/past.h"
#include "http/view.h"

const char *metric_format_type(enum metric_format format)
{
	return format == METRIC_OPENMETRICS ?
		       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		       "text/plain; version=0.0.4; charset=utf-8";
}

/* A range of an Accept header, RFC 9110 12.5.1: "type/subtype ; name=value ; q=0.5". */
struct media_range {
	const char *name; /* "type/subtype" */
	size_t name_len;
	const char *version; /* NULL: any */
	size_t version_len;
	double quality;
};

static bool text_is(const char *text, size_t len, const char *want)
{
	return len == strlen(want) && !strncasecmp(text, want, len);
}

/* Remove blanks around it. */
static void trim(const char **text, size_t *len)
{
	while (*len && (**text == ' ' || **text == '\t')) {
		(*text)++;
		(*len)--;
	}
	while (*len && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
		(*len)--;
}

static double parse_quality(const char *text, size_t len)
{
	char digits[8];
	double q;

	if (!len || len >= sizeof(digits))
		return 0;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (strspn(digits, "0123456789.") != len)
		return 0;
	q = strtod(digits, NULL);
	return q > 1 ? 1 : q;
}

static void parse_parameter(const char *text, size_t len, struct media_range *r)
{
	const char *equals = memchr(text, '=', len);
	const char *value;
	size_t value_len;

	if (!equals)
		return;
	value = equals + 1;
	value_len = len - (size_t)(value - text);
	len = (size_t)(equals - text);
	trim(&text, &len);
	trim(&value, &value_len);
	if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
		value++;
		value_len -= 2;
	}
	if (text_is(text, len, "q")) {
		r->quality = parse_quality(value, value_len);
	} else if (text_is(text, len, "version")) {
		r->version = value;
		r->version_len = value_len;
	}
}

/* Read the next range at *pos, and move *pos behind it; false at the end. */
static bool next_range(const char **pos, struct media_range *ret)
{
	const char *text = *pos;
	bool is_first = true;

	if (!*text)
		return false;
	*ret = (struct media_range){ .quality = 1 };
	while (*text && (is_first || *text != ',')) {
		size_t len;

		if (!is_first)
			text++; /* ';' */
		len = strcspn(text, ";,");
		if (is_first) {
			ret->name = text;
			ret->name_len = len;
			trim(&ret->name, &ret->name_len);
		} else {
			parse_parameter(text, len, ret);
		}
		is_first = false;
		text += len;
	}
	*pos = *text ? text + 1 : text;
	return true;
}

enum metric_format metric_format_choose(const char *accept)
{
	double open = 0, plain = 0;
	struct media_range r;

	while (accept && next_range(&accept, &r)) {
		if (text_is(r.name, r.name_len, "application/openmetrics-text") &&
		    (!r.version || text_is(r.version, r.version_len, "1.0.0")))
			open = fmax(open, r.quality);
		else if (text_is(r.name, r.name_len, "text/plain"))
			plain = fmax(plain, r.quality);
	}
	return open > 0 && open >= plain ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
}

static const char *type_name(const struct metric_text *m)
{
	switch (m->family->type) {
	case METRIC_COUNTER:
		return "counter";
	case METRIC_INFO:
		return m->format == METRIC_OPENMETRICS ? "info" : "gauge";
	case METRIC_GAUGE:
		break;
	}
	return "gauge";
}

/* The end of the family's name in samples. */
static const char *suffix(const struct metric_text *m)
{
	switch (m->family->type) {
	case METRIC_COUNTER:
		return "_total";
	case METRIC_INFO:
		return "_info";
	case METRIC_GAUGE:
		break;
	}
	return "";
}

void metric_head(struct metric_text *m, const struct metric_family *family)
{
	bool is_open = m->format == METRIC_OPENMETRICS;
	const char *added;

	m->family = family;
	added = is_open ? "" : suffix(m);
	fprintf(m->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, added, family->help,
		family->name, added, type_name(m));
	if (is_open && family->unit)
		fprintf(m->out, "# UNIT %s %s\n", family->name, family->unit);
}

void metric_begin(struct metric_text *m)
{
	fputs(m->family->name, m->out);
	fputs(suffix(m), m->out);
	m->label_cnt = 0;
}

static void put_label_value(const char *text, FILE *out)
{
	size_t left = strlen(text), len;

	for (; left; text += len, left -= len) {
		len = utf8_len(text, left);
		if (!len) {
			fputc('?', out);
			len = 1;
		} else if (len > 1) {
			fwrite(text, 1, len, out);
		} else if (*text == '\n') {
			fputs("\\n", out);
		} else {
			if (*text == '\\' || *text == '"')
				fputc('\\', out);
			fputc(printable(*text), out);
		}
	}
}

void metric_label(struct metric_text *m, const char *key, const char *value)
{
	if (!*value)
		return;
	fprintf(m->out, "%c%s=\"", m->label_cnt++ ? ',' : '{', key);
	put_label_value(value, m->out);
	fputc('"', m->out);
}

/* The largest whole numbers that a double holds exactly. */
#define WHOLE_MAX 9007199254740992.0

/* From here on 15 digits do not distinguish neighbouring whole numbers. */
#define FRACTION_MAX 1e15

/* Write whole numbers exactly, because rounded ones do not add up. A larger number is never printed as a smaller
 * one, or a counter would seem to restart. */
static void put_number(double value, FILE *out)
{
	char text[32];
	int digits = 15;

	if (fabs(value) <= WHOLE_MAX && (value == floor(value) || fabs(value) >= FRACTION_MAX)) {
		fprintf(out, "%.0f", value);
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*g", digits, value);
	while (fabs(value) > WHOLE_MAX && strtod(text, NULL) != value && ++digits <= 17);
	fputs(text, out);
}

void metric_value(struct metric_text *m, double value)
{
	fputs(m->label_cnt ? "} " : " ", m->out);
	put_number(value, m->out);
	fputc('\n', m->out);
}

void metric_end(struct metric_text *m)
{
	if (m->format == METRIC_OPENMETRICS)
		fputs("# EOF\n", m->out);
}

/* A family whose samples are the doubles at offset in structs of one kind. */
struct field_family {
	struct metric_family family;
	size_t offset;
};

#define FIELD(of, field, name, type, unit, help)                \
	{                                                       \
		{ name, type, unit, help }, offsetof(of, field) \
	}
#define PROCESS(...) FIELD(struct serve_process, __VA_ARGS__)
#define SCOPE(...) FIELD(struct serve_scope, __VA_ARGS__)
#define PUSH(...) FIELD(struct serve_push, __VA_ARGS__)
#define FILE_FIELD(...) FIELD(struct serve_file, __VA_ARGS__)
#define MAP(...) FIELD(struct serve_map, __VA_ARGS__)
#define VIEW(...) FIELD(struct serve_view, __VA_ARGS__)
#define CNT(array) (sizeof(array) / sizeof(*(array)))

static const struct field_family process_families[] = {
	PROCESS(inuse_bytes, "heaptap_inuse_bytes", METRIC_GAUGE, "bytes",
		"Bytes allocated since heaptap began to track the process, and not freed."),
	PROCESS(inuse_objects, "heaptap_inuse_objects", METRIC_GAUGE, NULL,
		"Blocks allocated since heaptap began to track the process, and not freed."),
	PROCESS(inuse_error_bytes, "heaptap_inuse_standard_error_bytes", METRIC_GAUGE, "bytes",
		"Standard error of heaptap_inuse_bytes: 1.96 times this to both sides is the 95 % "
		"confidence interval. The error of a sum is the root of the sum of squares."),
	PROCESS(inuse_samples, "heaptap_inuse_samples", METRIC_GAUGE, NULL,
		"Samples that heaptap_inuse_bytes is estimated from."),
	PROCESS(alloc_bytes, "heaptap_alloc_bytes", METRIC_COUNTER, "bytes",
		"Bytes allocated since heaptap began to track the process."),
	PROCESS(alloc_objects, "heaptap_alloc_objects", METRIC_COUNTER, NULL,
		"Blocks allocated since heaptap began to track the process."),
	PROCESS(rss_bytes, "heaptap_target_resident_bytes", METRIC_GAUGE, "bytes",
		"Resident memory of the process."),
	PROCESS(pss_bytes, "heaptap_target_proportional_bytes", METRIC_GAUGE, "bytes",
		"Proportional set size (PSS) of the process. Up to 30 seconds old, or more with "
		"many or large processes."),
	PROCESS(swap_bytes, "heaptap_target_swap_bytes", METRIC_GAUGE, "bytes",
		"Memory of the process that is swapped out."),
	PROCESS(cgroup_limit_bytes, "heaptap_target_cgroup_limit_bytes", METRIC_GAUGE, "bytes",
		"Memory limit of the process's control group, or of one above it if that is tighter. "
		"It is for all processes of the group."),
	PROCESS(cgroup_usage_bytes, "heaptap_target_cgroup_usage_bytes", METRIC_GAUGE, "bytes",
		"Memory that the control group with that limit uses, by all of its processes and for "
		"cached files."),
	PROCESS(overhead, "heaptap_overhead_ratio", METRIC_GAUGE, "ratio",
		"Share of the process's CPU time that its probes take."),
	PROCESS(overhead_step, "heaptap_overhead_step", METRIC_GAUGE, NULL,
		"Step in force to keep the overhead below --max-overhead: 0 none, 1 coarser "
		"sampling, 2 no tracking of frees (heap in use is unknown), 3 no recording."),
	PROCESS(overhead_rate_bytes, "heaptap_process_sample_rate_bytes", METRIC_GAUGE, "bytes",
		"One sample of the process per this many bytes, on average."),
	PROCESS(is_inuse_complete, "heaptap_inuse_complete", METRIC_GAUGE, NULL,
		"1: heaptap_inuse_bytes covers all allocations since heaptap began to track the process. "
		"0: frees are not tracked, to limit the overhead, and the process has no "
		"heaptap_inuse_*; or frees were not tracked for a while, and it covers "
		"allocations since then. heaptap serve --tap tracks frees of busy processes."),
};

/* The series of a process sum up to the process. */
static const struct field_family scope_families[] = {
	SCOPE(inuse_bytes, "heaptap_scope_inuse_bytes", METRIC_GAUGE, "bytes",
	      "Bytes in use by scope and thread pool. The first pairs of a process "
	      "(--metrics-scopes) have series of their own until it ends; all later ones are "
	      "(other)."),
	SCOPE(inuse_objects, "heaptap_scope_inuse_objects", METRIC_GAUGE, NULL,
	      "Blocks in use by scope and thread pool."),
	SCOPE(inuse_error_bytes, "heaptap_scope_inuse_standard_error_bytes", METRIC_GAUGE, "bytes",
	      "Standard error of heaptap_scope_inuse_bytes."),
	SCOPE(inuse_samples, "heaptap_scope_inuse_samples", METRIC_GAUGE, NULL,
	      "Samples that heaptap_scope_inuse_bytes is estimated from."),
	SCOPE(alloc_bytes, "heaptap_scope_alloc_bytes", METRIC_COUNTER, "bytes",
	      "Bytes allocated by scope and thread pool."),
	SCOPE(alloc_objects, "heaptap_scope_alloc_objects", METRIC_COUNTER, NULL,
	      "Blocks allocated by scope and thread pool."),
};

static const struct field_family push_families[] = {
	PUSH(sent_cnt, "heaptap_push_sent", METRIC_COUNTER, NULL,
	     "Profiles that the destination "
	     "accepted."),
	PUSH(refused_cnt, "heaptap_push_refused", METRIC_COUNTER, NULL,
	     "Profiles that the destination refused."),
	PUSH(dropped_cnt, "heaptap_push_dropped", METRIC_COUNTER, NULL,
	     "Profiles dropped because the queue was full."),
	PUSH(failed_cnt, "heaptap_push_failed", METRIC_COUNTER, NULL, "Attempts that failed."),
	PUSH(waiting_cnt, "heaptap_push_waiting", METRIC_GAUGE, NULL,
	     "Profiles that wait to be sent."),
	PUSH(debuginfo_uploaded_cnt, "heaptap_push_debuginfo_uploaded", METRIC_COUNTER, NULL,
	     "Files whose debug information the destination accepted."),
	PUSH(debuginfo_uploaded_bytes, "heaptap_push_debuginfo_uploaded_bytes", METRIC_COUNTER,
	     "bytes", "Bytes of debug information that the destination accepted."),
	PUSH(debuginfo_known_cnt, "heaptap_push_debuginfo_known", METRIC_GAUGE, NULL,
	     "Files whose debug information the destination had already."),
	PUSH(debuginfo_nameless_cnt, "heaptap_push_debuginfo_nameless", METRIC_GAUGE, NULL,
	     "Files that have no debug information."),
	PUSH(debuginfo_large_cnt, "heaptap_push_debuginfo_large", METRIC_GAUGE, NULL,
	     "Files whose debug information is over --push-debuginfo-cap."),
	PUSH(debuginfo_refused_cnt, "heaptap_push_debuginfo_refused", METRIC_GAUGE, NULL,
	     "Files whose debug information the destination refused."),
	PUSH(debuginfo_waiting_cnt, "heaptap_push_debuginfo_waiting", METRIC_GAUGE, NULL,
	     "Files whose debug information is not sent yet."),
};

static const struct field_family file_families[] = {
	FILE_FIELD(process_cnt, "heaptap_probed_processes", METRIC_GAUGE, NULL,
		   "Tracked processes that map the file, by the sharing of its probes: own, event "
		   "or all."),
	FILE_FIELD(hit_seconds, "heaptap_probe_hit_seconds", METRIC_GAUGE, "seconds",
		   "Predicted cost of a hit of a probe of the file in such a process, from "
		   "measurements on this machine."),
};

static const struct field_family map_families[] = {
	MAP(entry_cnt, "heaptap_map_entries", METRIC_GAUGE, NULL,
	    "Entries of a table of heaptap in the kernel: live has the samples in use (--max-live), "
	    "stacks the distinct call stacks (--max-stacks)."),
	MAP(entry_cap, "heaptap_map_capacity", METRIC_GAUGE, NULL,
	    "Capacity of the table; heaptap_losses_total counts entries that do not fit."),
};

/* Families with one value each. */
static const struct field_family view_families[] = {
	VIEW(sample_cnt, "heaptap_samples", METRIC_COUNTER, NULL, "Allocations sampled."),
	VIEW(rate_bytes, "heaptap_sample_rate_bytes", METRIC_GAUGE, "bytes",
	     "One sample per this many bytes, on average; 1 = every allocation."),
	VIEW(followed_cnt, "heaptap_followed_processes", METRIC_GAUGE, NULL,
	     "Processes tracked now."),
	VIEW(host_overhead, "heaptap_host_overhead_ratio", METRIC_GAUGE, "ratio",
	     "Share of the time of all CPUs that all probes together take."),
	VIEW(is_paused, "heaptap_paused", METRIC_GAUGE, NULL,
	     "1: all probes are removed, from SIGUSR1 until SIGUSR2."),
	VIEW(began_cnt, "heaptap_processes_followed", METRIC_COUNTER, NULL,
	     "Processes tracked since the start, including those that are tracked now."),
	VIEW(ended_cnt, "heaptap_processes_ended", METRIC_COUNTER, NULL,
	     "Tracked processes that have ended or are no longer selected."),
	VIEW(refused_cnt, "heaptap_refused_processes", METRIC_GAUGE, NULL,
	     "Running processes that are selected but cannot be tracked."),
	VIEW(keep.file_cnt, "heaptap_kept_profiles", METRIC_GAUGE, NULL,
	     "Saved profiles: at peaks, near memory limits, and before processes end (--keep-dir)."),
	VIEW(keep.bytes, "heaptap_kept_bytes", METRIC_GAUGE, "bytes",
	     "Size of the saved profiles."),
	VIEW(keep.memory_bytes, "heaptap_kept_memory_bytes", METRIC_GAUGE, "bytes",
	     "Size of the saved profiles that are in memory, not in the folder."),
	VIEW(keep.taken_cnt, "heaptap_kept_taken", METRIC_COUNTER, NULL,
	     "Profiles saved since the "
	     "start."),
	VIEW(keep.removed_cnt, "heaptap_kept_removed", METRIC_COUNTER, NULL,
	     "Saved profiles removed to make room (--keep-files, --keep-bytes)."),
	VIEW(keep.unwritten_cnt, "heaptap_kept_unwritten", METRIC_COUNTER, NULL,
	     "Saved profiles that could not be written to the folder."),
	VIEW(keep.failed_cnt, "heaptap_kept_failed", METRIC_COUNTER, NULL,
	     "Profiles that could not be made and so were not saved."),
	VIEW(keep.skipped_cnt, "heaptap_kept_skipped", METRIC_COUNTER, NULL,
	     "Last profiles of ended processes that were not made, because too many had ended."),
	VIEW(own.snapshot_seconds, "heaptap_snapshot_seconds", METRIC_GAUGE, "seconds",
	     "Time that the last snapshot for pages and metrics took."),
	VIEW(own.snapshot_age_seconds, "heaptap_snapshot_age_seconds", METRIC_GAUGE, "seconds",
	     "Age of that snapshot. Snapshots take at most a fortieth of the time."),
	VIEW(own.profile_snapshot_seconds, "heaptap_profile_snapshot_seconds", METRIC_GAUGE,
	     "seconds", "Time that the last snapshot for a profile took."),
	VIEW(own.rss_bytes, "heaptap_resident_memory_bytes", METRIC_GAUGE, "bytes",
	     "Resident memory of heaptap's main process."),
	VIEW(own.cpu_seconds, "heaptap_cpu_seconds", METRIC_COUNTER, "seconds",
	     "CPU time of heaptap's own processes, without its probes."),
	VIEW(own.start_seconds, "heaptap_start_time_seconds", METRIC_GAUGE, "seconds",
	     "Start time of heaptap serve, since the epoch."),
};

static double field_of(const void *of, const struct field_family *f)
{
	double value;

	memcpy(&value, (const char *)of + f->offset, sizeof(value));
	return value;
}

/* A family for each field of things of one kind, with a sample for each thing in which it is known. */
static void put_families(struct metric_text *m, const struct field_family *families,
			 size_t family_cnt, const void *things, size_t cnt, size_t thing_bytes,
			 void (*put_labels)(struct metric_text *m, const void *thing))
{
	for (size_t i = 0; i < family_cnt; i++) {
		metric_head(m, &families[i].family);
		for (size_t k = 0; k < cnt; k++) {
			const void *thing = (const char *)things + k * thing_bytes;
			double value = field_of(thing, &families[i]);

			if (isnan(value))
				continue;
			metric_begin(m);
			if (put_labels)
				put_labels(m, thing);
			metric_value(m, value);
		}
	}
}

#define PUT_FAMILIES(m, families, things, cnt, put_labels)                               \
	put_families((m), (families), CNT(families), (things), (cnt), sizeof(*(things)), \
		     (put_labels))

static void put_process_labels(struct metric_text *m, const void *of)
{
	const struct serve_process *p = of;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", p->pid);
	metric_label(m, "pid", pid);
	metric_label(m, "comm", p->comm);
	metric_label(m, "exe", p->exe);
	metric_label(m, "container", p->container);
}

/* What was never read, or could not be, is left out; a row that has appeared stays, with 0. */
static const struct rows_past_image *rows_of(const struct serve_view *v,
					     const struct serve_process *p)
{
	const struct rows_past_image *i = v->rows ? rows_past_find(v->rows, p->image) : NULL;

	return rows_past_is_known(i) ? i : NULL;
}

static void put_rows_of(struct metric_text *m, const struct serve_process *p,
			const struct rows_past_image *i)
{
	for (int kind = 0; kind < ROW_CNT; kind++) {
		if (!(i->seen >> kind & 1))
			continue;
		metric_begin(m);
		put_process_labels(m, p);
		metric_label(m, "kind", row_name((enum row_kind)kind));
		metric_value(m, (double)rows_past_bytes(i, (enum row_kind)kind));
	}
}

static void put_rows(struct metric_text *m, const struct serve_view *v)
{
	static const struct metric_family rows = {
		"heaptap_resident_bytes", METRIC_GAUGE, "bytes",
		"Resident memory of the process by kind, as in heaptap explain. The kinds add up "
		"to the resident memory at the reading."
	};
	static const struct metric_family age = { "heaptap_resident_age_seconds", METRIC_GAUGE,
						  "seconds",
						  "Time since the reading of "
						  "heaptap_resident_bytes." };
	const struct rows_past_image *i;

	metric_head(m, &rows);
	for (size_t k = 0; k < v->process_cnt; k++) {
		i = rows_of(v, &v->processes[k]);
		if (i)
			put_rows_of(m, &v->processes[k], i);
	}
	metric_head(m, &age);
	for (size_t k = 0; k < v->process_cnt; k++) {
		i = rows_of(v, &v->processes[k]);
		if (!i)
			continue;
		metric_begin(m);
		put_process_labels(m, &v->processes[k]);
		metric_value(m, (double)(now_ns() - i->last_ns) / (double)NS_PER_S);
	}
}

static void put_scopes_of(struct metric_text *m, const struct serve_process *p,
			  const struct field_family *f)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", p->pid);
	for (size_t i = 0; i < p->scope_cnt; i++) {
		double value = field_of(&p->scopes[i], f);

		if (isnan(value))
			continue;
		metric_begin(m);
		metric_label(m, "pid", pid);
		metric_label(m, "comm", p->comm);
		metric_label(m, "scope", p->scopes[i].scope);
		metric_label(m, "thread", p->scopes[i].thread);
		metric_value(m, value);
	}
}

static void put_scopes(struct metric_text *m, const struct serve_view *v)
{
	for (size_t i = 0; i < CNT(scope_families); i++) {
		metric_head(m, &scope_families[i].family);
		for (size_t k = 0; k < v->process_cnt; k++)
			put_scopes_of(m, &v->processes[k], &scope_families[i]);
	}
}

static void put_labelled(struct metric_text *m, const char *key, const char *label, double value)
{
	metric_begin(m);
	metric_label(m, key, label);
	metric_value(m, value);
}

static void put_named(struct metric_text *m, const struct metric_family *family, const char *key,
		      const struct serve_named *list, size_t cnt)
{
	metric_head(m, family);
	for (size_t i = 0; i < cnt; i++)
		put_labelled(m, key, list[i].name, list[i].value);
}

static void put_losses(struct metric_text *m, const struct metric_family *family,
		       const struct serve_counter *list, size_t cnt)
{
	metric_head(m, family);
	for (size_t i = 0; i < cnt; i++)
		put_labelled(m, "reason", list[i].name, (double)list[i].value);
}

static void put_push_labels(struct metric_text *m, const void *of)
{
	metric_label(m, "target", ((const struct serve_push *)of)->target);
}

static void put_map_labels(struct metric_text *m, const void *of)
{
	metric_label(m, "map", ((const struct serve_map *)of)->name);
}

static void put_file_labels(struct metric_text *m, const void *of)
{
	const struct serve_file *f = of;
	char id[16];

	snprintf(id, sizeof(id), "%u", f->id);
	metric_label(m, "file", f->path);
	metric_label(m, "id", id);
	metric_label(m, "way", f->sharing);
}

static const struct metric_family losses = {
	"heaptap_losses", METRIC_COUNTER, NULL,
	"Losses: events that were not recorded, or not in full, by reason."
};
static const struct metric_family lost_bytes = { "heaptap_lost_bytes", METRIC_COUNTER, "bytes",
						 "Bytes that were not recorded, by reason." };
static const struct metric_family reclaimed = {
	"heaptap_reclaimed", METRIC_COUNTER, NULL,
	"Entries of ended processes that were removed from the tables of the kernel."
};
static const struct metric_family fds = { "heaptap_open_fds", METRIC_GAUGE, NULL,
					  "Open descriptors of heaptap itself, by kind: "
					  "links are probes, maps tables in the kernel." };
static const struct metric_family build = { "heaptap_build", METRIC_INFO, NULL,
					    "Version of heaptap." };

void metrics_page_write(const struct serve_view *v, enum metric_format format, FILE *out)
{
	struct metric_text m = { .out = out, .format = format };

	PUT_FAMILIES(&m, process_families, v->processes, v->process_cnt, put_process_labels);
	put_rows(&m, v);
	put_scopes(&m, v);
	put_losses(&m, &losses, v->losses, v->loss_cnt);
	put_losses(&m, &lost_bytes, v->lost_bytes, v->lost_bytes_cnt);
	PUT_FAMILIES(&m, push_families, v->pushes, v->push_cnt, put_push_labels);
	PUT_FAMILIES(&m, file_families, v->files, v->file_cnt, put_file_labels);
	PUT_FAMILIES(&m, map_families, v->maps, v->map_cnt, put_map_labels);
	put_named(&m, &reclaimed, "what", v->reclaimed, v->reclaimed_cnt);
	put_named(&m, &fds, "kind", v->fds, v->fd_cnt);
	PUT_FAMILIES(&m, view_families, v, 1, NULL);
	metric_head(&m, &build);
	put_labelled(&m, "version", v->version, 1);
	metric_end(&m);
}
