/* SPDX-License-Identifier: MIT */
/* push_profile.c - see push_queue.h. */
#include "push/push_queue.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/vec.h"
#include "http/series.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/profile_copy.h"

#define PROFILE_NAME "memory"

/* The target of a request, and the finished request. */
struct request {
	const struct push_target *target;
	uint8_t *body;
	size_t bytes;
};

struct label_list {
	VEC(struct push_label) list;
};

bool push_label_name_is_valid(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

static const char *find_label(const struct label_list *l, const char *name)
{
	for (size_t i = 0; i < l->list.cnt; i++)
		if (!strcmp(l->list.data[i].name, name))
			return l->list.data[i].value;
	return NULL;
}

/* The first value of a name stays. Backends treat an empty value as no label at all. */
static int add_label(struct label_list *l, const char *name, const char *value)
{
	if (!push_label_name_is_valid(name))
		return -EINVAL;
	if (!*value || find_label(l, name))
		return 0;
	return vec_push(&l->list, (struct push_label){ name, value });
}

static int add_labels(struct label_list *l, const struct push_label *labels, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = add_label(l, labels[i].name, labels[i].value);
	return err;
}

static int read_back(int fd, size_t bytes, uint8_t **ret)
{
	uint8_t *data = malloc(bytes + 1);

	if (!data)
		return -ENOMEM;
	for (size_t at = 0; at < bytes;) {
		ssize_t n = pread(fd, data + at, bytes - at, (off_t)at);

		if (n <= 0) {
			free(data);
			return n < 0 ? -errno : -EIO;
		}
		at += n;
	}
	*ret = data;
	return 0;
}

/* Make the file of pprof_write() in memory; the caller frees it. */
static int profile_file(const struct profile *p, uint8_t **ret, size_t *ret_bytes)
{
	int fd = memfd_create("heaptap-push", MFD_CLOEXEC), err;
	off_t bytes = 0;

	if (fd < 0)
		return -errno;
	err = pprof_write(p, fd);
	if (!err) {
		bytes = lseek(fd, 0, SEEK_END);
		err = bytes < 0 ? -errno : read_back(fd, bytes, ret);
	}
	close(fd);
	if (!err)
		*ret_bytes = bytes;
	return err;
}

static int request_for_pyroscope(struct request *r, const struct profile *p, struct label_list *l,
				 struct push_lost *lost)
{
	static const struct profile_limits limits = { PYROSCOPE_ROW_MAX, PYROSCOPE_BYTES_MAX };
	const char *comm = find_label(l, "comm"), **taken = NULL;
	struct profile *rows = NULL, *small = NULL;
	struct profile_limited limited = { 0 };
	struct push_series series = { 0 };
	uint8_t *file = NULL;
	int err;

	err = add_label(l, "service_name", comm ? comm : "heaptap");
	if (!err)
		err = add_label(l, "__delta__", "false");
	if (!err) {
		taken = calloc(l->list.cnt + 1, sizeof(*taken));
		err = taken ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < l->list.cnt && !err; i++)
		taken[i] = l->list.data[i].name;
	if (!err)
		err = series_rows(p, PUSH_SERIES_MAX, taken, &rows, &lost->folded_series);
	if (!err && rows->samples.cnt) {
		err = profile_limit(rows, &limits, &small, &limited);
		if (!err)
			err = profile_file(small, &file, &series.pprof_bytes);
		if (!err) {
			series.pprof = file;
			series.labels = l->list.data;
			series.label_cnt = l->list.cnt;
			err = push_queue_encode(r->target, &series, 1, &r->body, &r->bytes);
		}
	}
	lost->folded_rows = limited.folded_rows;
	lost->cut_stacks = limited.cut_stacks;
	profile_free(rows);
	profile_free(small);
	free(taken);
	free(file);
	return err;
}

/* Fill in the labels of one series: those of the process, then its own two. */
static int fill_series(const struct label_list *l, const struct series *from,
		       struct push_label *labels, struct push_series *to)
{
	uint8_t *file = NULL;
	size_t cnt = 0;
	int err = profile_file(from->profile, &file, &to->pprof_bytes);

	if (err)
		return err;
	to->pprof = file;
	for (size_t i = 0; i < l->list.cnt; i++)
		if (strcmp(l->list.data[i].name, "scope") != 0 &&
		    strcmp(l->list.data[i].name, "thread") != 0)
			labels[cnt++] = l->list.data[i];
	labels[cnt++] = (struct push_label){ "scope", from->scope };
	labels[cnt++] = (struct push_label){ "thread", from->pool };
	to->labels = labels;
	to->label_cnt = cnt;
	return 0;
}

static int request_for_parca(struct request *r, const struct profile *p, const struct label_list *l,
			     struct push_lost *lost)
{
	size_t per_series = l->list.cnt + 2;
	struct push_series *series = NULL;
	struct push_label *labels = NULL;
	struct series_set set;
	int err = series_split(p, PUSH_SERIES_MAX, &set);

	if (err)
		return err;
	lost->folded_series = set.folded_cnt;
	series = calloc(set.list.cnt + 1, sizeof(*series));
	labels = calloc((set.list.cnt + 1) * per_series, sizeof(*labels));
	if (!series || !labels)
		err = -ENOMEM;
	for (size_t i = 0; i < set.list.cnt && !err; i++)
		err = fill_series(l, &set.list.data[i], labels + i * per_series, &series[i]);
	if (!err && set.list.cnt)
		err = push_queue_encode(r->target, series, set.list.cnt, &r->body, &r->bytes);
	for (size_t i = 0; i < set.list.cnt && series; i++)
		free((void *)series[i].pprof);
	series_release(&set);
	free(series);
	free(labels);
	return err;
}

int push_profile_encode(const struct push_target *t, const struct profile *p,
			const struct push_label *labels, size_t label_cnt,
			struct push_lost *ret_lost, uint8_t **ret, size_t *ret_bytes)
{
	struct request r = { .target = t };
	struct label_list l = { 0 };
	int err = add_label(&l, "__name__", PROFILE_NAME);

	memset(ret_lost, 0, sizeof(*ret_lost));
	if (!err)
		err = add_labels(&l, labels, label_cnt);
	if (!err)
		err = t->kind == PUSH_PARCA ? request_for_parca(&r, p, &l, ret_lost) :
					      request_for_pyroscope(&r, p, &l, ret_lost);
	vec_release(&l.list);
	if (!err) {
		*ret = r.body;
		*ret_bytes = r.bytes;
	}
	return err;
}

int push_profile(struct push_queue *q, const struct profile *p, const struct push_label *labels,
		 size_t label_cnt, struct push_lost *ret_lost)
{
	uint8_t *body = NULL;
	size_t bytes = 0;
	int err = push_profile_encode(push_queue_target(q), p, labels, label_cnt, ret_lost, &body,
				      &bytes);

	return err || !body ? err : push_queue_take(q, body, bytes);
}
