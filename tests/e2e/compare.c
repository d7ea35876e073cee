/* SPDX-License-Identifier: MIT */
/*
 * compare.c - compares a profile with what a workload says that must come out.
 *
 *	compare exact PROFILE EXPECTED [--alloc] [--no-threads] [--label KEY=VALUE]
 *		In-use of every (site, thread) equal to the byte, and nothing in use at any other
 *		site. --alloc: the cumulative columns too. Differences go to stdout; 1 if any.
 *	compare sampled PROFILE EXPECTED
 *		One line per expected row: "ROW site thread estimate variance low high truth hit",
 *		hit = 1 when the 95 % interval holds the truth; a row that is missing has estimate
 *		0 and does not hold it. And "ALLOC ..." with the same of what it allocated.
 *	compare ledger PROFILE NAME...
 *		What the profile's comments say of a counter: in a ledger line or among the counters; of
 *		several a line each. What is not there is 0; 1 if there is no counter of that name.
 *	compare labels PROFILE KEY
 *		The distinct values of a label, one per line.
 *	compare total PROFILE
 *		"TOTAL inuse_bytes inuse_objects alloc_bytes alloc_objects" of all samples, whatever
 *		their stacks.
 *	compare time PROFILE
 *		When it was taken, in nanoseconds.
 *	compare sites PROFILE
 *		"SITE site thread inuse_bytes inuse_objects alloc_bytes alloc_objects" per row.
 *
 * A sample belongs to the first function from the leaf whose name begins with "site_"; samples
 * without one are the program's other business and are left out. EXPECTED is the output of a
 * workload: lines other than EXPECT are ignored, "-" in a column is not compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "profile/estimate.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/recording_notes.h"

#define ROWS_CAP 8192
#define SITE_BYTES 64
#define UNKNOWN INT64_MIN

enum { INUSE_BYTES, INUSE_OBJECTS, ALLOC_BYTES, ALLOC_OBJECTS, COLUMN_CNT };
static const char *const column_name[] = { "in-use bytes", "in-use objects", "allocated bytes",
					   "allocated objects" };
static const enum profile_value column_value[] = { PROFILE_INUSE_SPACE, PROFILE_INUSE_OBJECTS,
						   PROFILE_ALLOC_SPACE, PROFILE_ALLOC_OBJECTS };

struct row {
	char site[SITE_BYTES];
	char thread[SITE_BYTES];
	int64_t expected[COLUMN_CNT];
	int64_t found[COLUMN_CNT];
	struct estimate inuse, alloc;
	bool was_expected;
};

struct table {
	struct row row[ROWS_CAP];
	size_t cnt;
};

struct options {
	bool alloc, no_threads;
	const char *label_key, *label_value;
};

static struct row *find_row(struct table *t, const char *site, const char *thread)
{
	struct row *r;

	for (size_t i = 0; i < t->cnt; i++)
		if (!strcmp(t->row[i].site, site) && !strcmp(t->row[i].thread, thread))
			return &t->row[i];
	if (t->cnt == ROWS_CAP)
		return NULL;
	r = &t->row[t->cnt++];
	memset(r, 0, sizeof(*r));
	snprintf(r->site, sizeof(r->site), "%s", site);
	snprintf(r->thread, sizeof(r->thread), "%s", thread);
	return r;
}

static int64_t parse_value(const char *text)
{
	return strcmp(text, "-") ? strtoll(text, NULL, 10) : UNKNOWN;
}

static int read_expected(const char *path, const struct options *o, struct table *t)
{
	char line[512], site[SITE_BYTES], thread[SITE_BYTES], v[COLUMN_CNT][24];
	FILE *f = fopen(path, "r");
	size_t cnt = 0;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		struct row *r;

		if (sscanf(line, "EXPECT %63s %63s %23s %23s %23s %23s", site, thread, v[0], v[1],
			   v[2], v[3]) != 6)
			continue;
		r = find_row(t, site, o->no_threads ? "*" : thread);
		if (!r)
			break;
		r->was_expected = true;
		for (int c = 0; c < COLUMN_CNT; c++) {
			int64_t n = parse_value(v[c]);

			if (n == UNKNOWN || r->expected[c] == UNKNOWN)
				r->expected[c] = UNKNOWN;
			else
				r->expected[c] += n;
		}
		cnt++;
	}
	fclose(f);
	return cnt ? 0 : -ENODATA;
}

/* "site_x(int) [clone .cold]" -> "site_x"; false when it is no site. */
static bool site_name(const char *function, char *ret)
{
	size_t n = 0;

	if (strncmp(function, "site_", 5))
		return false;
	while (n < SITE_BYTES - 1 &&
	       (function[n] == '_' || (function[n] >= '0' && function[n] <= '9') ||
		(function[n] >= 'a' && function[n] <= 'z') ||
		(function[n] >= 'A' && function[n] <= 'Z')))
		n++;
	memcpy(ret, function, n);
	ret[n] = 0;
	return true;
}

static bool sample_site(const struct profile *p, const struct profile_sample *s, char *ret)
{
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = p->sample_locs.data[s->loc_first + i];
		const struct profile_location *l = &p->locations.data[loc];

		for (uint32_t k = 0; k < l->line_cnt; k++) {
			uint32_t f = p->lines.data[l->line_first + k].function;

			if (f < p->functions.cnt &&
			    site_name(profile_text(p, p->functions.data[f].name_str), ret))
				return true;
		}
	}
	return false;
}

static bool sample_is_wanted(const struct profile *p, const struct profile_sample *s,
			     const struct options *o)
{
	const char *have;
	char number[24];

	if (!o->label_key)
		return true;
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[s->label_first + i];

		if (strcmp(profile_text(p, l->key_str), o->label_key))
			continue;
		snprintf(number, sizeof(number), "%" PRId64, l->num);
		have = l->str ? profile_text(p, l->str) : number;
		return !strcmp(have, o->label_value);
	}
	return false;
}

static int add_samples(const struct profile *p, const struct options *o, struct table *t)
{
	char site[SITE_BYTES];

	for (size_t i = 0; i < p->samples.cnt; i++) {
		const struct profile_sample *s = &p->samples.data[i];
		const int64_t *value = p->values.data + s->value_first;
		const char *thread = profile_sample_label(p, s, "thread");
		struct estimate e = {
			.samples = s->inuse_samples,
			.objects = value[PROFILE_INUSE_OBJECTS],
			.bytes = value[PROFILE_INUSE_SPACE],
			.objects_variance = s->inuse_objects_variance,
			.bytes_variance = s->inuse_bytes_variance,
		};
		struct estimate alloc = {
			.samples = s->alloc_samples,
			.bytes = value[PROFILE_ALLOC_SPACE],
			.bytes_variance = s->alloc_bytes_variance,
		};
		struct row *r;

		if (!sample_is_wanted(p, s, o) || !sample_site(p, s, site))
			continue;
		r = find_row(t, site, o->no_threads ? "*" : thread ? thread : "?");
		if (!r)
			return -E2BIG;
		for (int c = 0; c < COLUMN_CNT; c++)
			r->found[c] += value[column_value[c]];
		estimate_merge(&r->inuse, &e);
		estimate_merge(&r->alloc, &alloc);
	}
	return 0;
}

static int compare_exact(const struct table *t, const struct options *o)
{
	int bad = 0;

	for (size_t i = 0; i < t->cnt; i++) {
		const struct row *r = &t->row[i];
		int columns = r->was_expected && o->alloc ? COLUMN_CNT : INUSE_OBJECTS + 1;

		for (int c = 0; c < columns; c++) {
			if (r->expected[c] == UNKNOWN || r->expected[c] == r->found[c])
				continue;
			printf("%s in thread %s: %s %" PRId64 ", must be %" PRId64 "%s\n", r->site,
			       r->thread, column_name[c], r->found[c], r->expected[c],
			       r->was_expected ? "" : " (no such row is expected)");
			bad++;
		}
	}
	return bad ? 1 : 0;
}

static void print_estimate(const char *what, const struct row *r, const struct estimate *e,
			   double truth)
{
	double low = 0, high = 0;
	int hit = 0;

	if (e->samples) {
		estimate_interval(e, &low, &high);
		/* values in the file are rounded to whole bytes */
		hit = low - 0.5 <= truth && truth <= high + 0.5;
	}
	printf("%s %s %s %.0f %.9g %.1f %.1f %.0f %d\n", what, r->site, r->thread, e->bytes,
	       e->bytes_variance, low, high, truth, hit);
}

static int print_sampled(const struct table *t)
{
	for (size_t i = 0; i < t->cnt; i++) {
		const struct row *r = &t->row[i];

		if (!r->was_expected) {
			printf("GHOST %s %s %.0f\n", r->site, r->thread, r->inuse.bytes);
			continue;
		}
		print_estimate("ROW", r, &r->inuse, r->expected[INUSE_BYTES]);
		print_estimate("ALLOC", r, &r->alloc, r->expected[ALLOC_BYTES]);
	}
	return 0;
}

static int print_sites(const struct table *t)
{
	for (size_t i = 0; i < t->cnt; i++) {
		const struct row *r = &t->row[i];

		printf("SITE %s %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", r->site,
		       r->thread, r->found[INUSE_BYTES], r->found[INUSE_OBJECTS],
		       r->found[ALLOC_BYTES], r->found[ALLOC_OBJECTS]);
	}
	return 0;
}

static int print_total(const struct profile *p)
{
	int64_t sum[COLUMN_CNT] = { 0 };

	for (size_t i = 0; i < p->samples.cnt; i++)
		for (int c = 0; c < COLUMN_CNT; c++)
			sum[c] += p->values.data[p->samples.data[i].value_first + column_value[c]];
	printf("TOTAL %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", sum[INUSE_BYTES],
	       sum[INUSE_OBJECTS], sum[ALLOC_BYTES], sum[ALLOC_OBJECTS]);
	return 0;
}

static bool is_counter(const char *name)
{
	struct ledger_lines ledger;

	ledger_lines_read(&ledger, (const uint64_t[HT_STAT_CNT]){ 0 }, NULL);
	for (size_t i = 0; i < LEDGER_LINE_CNT; i++)
		if (!strcmp(ledger.line[i].name, name))
			return true;
	return false;
}

static int print_ledger(const struct profile *p, const char *name)
{
	char loss[128], done[128];
	size_t n = snprintf(loss, sizeof(loss), "ledger: %s ", name);
	long long value = 0;

	snprintf(done, sizeof(done), " %s=", name);
	for (size_t i = 0; i < p->comments.cnt; i++) {
		const char *text = profile_text(p, p->comments.data[i]), *at;

		if (!strncmp(text, loss, n))
			value = strtoll(text + n, NULL, 10);
		at = strncmp(text, "counters:", 9) ? NULL : strstr(text, done);
		if (at)
			value = strtoll(at + strlen(done), NULL, 10);
	}
	if (!is_counter(name))
		return 1;
	printf("%lld\n", value);
	return 0;
}

static int print_labels(const struct profile *p, const char *key)
{
	const char *seen[256];
	size_t seen_cnt = 0, k;

	for (size_t i = 0; i < p->samples.cnt; i++) {
		const char *v = profile_sample_label(p, &p->samples.data[i], key);

		for (k = 0; v && k < seen_cnt && strcmp(seen[k], v); k++)
			;
		if (!v || k < seen_cnt || seen_cnt == 256)
			continue;
		seen[seen_cnt++] = v;
		puts(v);
	}
	return 0;
}

static int open_profile(const char *path, struct profile **ret)
{
	struct err why = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0) {
		printf("cannot open %s: %s\n", path, strerror(errno));
		return -errno;
	}
	err = pprof_read(fd, ret, &why);
	close(fd);
	if (err)
		printf("cannot read %s: %s (%s)\n", path, strerror(-err), why.text);
	else if ((*ret)->types.cnt < PROFILE_VALUE_CNT || (*ret)->types.cnt > PROFILE_VALUE_CAP) {
		printf("%s has %zu sample types\n", path, (*ret)->types.cnt);
		err = -EBADMSG;
	}
	return err;
}

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 0; i < argc; i++) {
		char *eq;

		if (!strcmp(argv[i], "--alloc")) {
			o->alloc = true;
		} else if (!strcmp(argv[i], "--no-threads")) {
			o->no_threads = true;
		} else if (!strcmp(argv[i], "--label") && i + 1 < argc &&
			   (eq = strchr(argv[i + 1], '='))) {
			*eq = 0;
			o->label_key = argv[++i];
			o->label_value = eq + 1;
		} else {
			fprintf(stderr, "compare: bad argument '%s'\n", argv[i]);
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct profile *p = NULL;
	struct table *t = calloc(1, sizeof(*t));
	const char *what = argc > 2 ? argv[1] : "";
	bool wants_file = !strcmp(what, "exact") || !strcmp(what, "sampled");
	int err = 2;

	if (!t || argc < 3 ||
	    (argc < 4 && strcmp(what, "sites") && strcmp(what, "total") && strcmp(what, "time"))) {
		fprintf(stderr,
			"usage: compare exact|sampled|sites|total|time|ledger|labels PROFILE ...\n");
		goto out;
	}
	if (open_profile(argv[2], &p))
		goto out;
	if (!strcmp(what, "total")) {
		err = print_total(p);
		goto out;
	}
	if (!strcmp(what, "time")) {
		printf("%lld\n", (long long)p->time_ns);
		err = 0;
		goto out;
	}
	if (!strcmp(what, "ledger")) {
		err = 0;
		for (int i = 3; i < argc && !err; i++)
			err = print_ledger(p, argv[i]);
		goto out;
	}
	if (!strcmp(what, "labels")) {
		err = print_labels(p, argv[3]);
		goto out;
	}
	if (wants_file && (parse(argc - 4, argv + 4, &o) || read_expected(argv[3], &o, t))) {
		printf("nothing is expected by %s\n", argv[3]);
		goto out;
	}
	if (add_samples(p, &o, t))
		goto out;
	if (!strcmp(what, "exact"))
		err = compare_exact(t, &o);
	else if (!strcmp(what, "sampled"))
		err = print_sampled(t);
	else if (!strcmp(what, "sites"))
		err = print_sites(t);
out:
	profile_free(p);
	free(t);
	return err;
}
