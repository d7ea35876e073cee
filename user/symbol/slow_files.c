/* SPDX-License-Identifier: MIT */
/*
 * slow_files.c - see name_cache.h.
 *
 * A table in which a new entry replaces the oldest. To fill it with files, a process has to wait for each of
 * them first.
 */
#include "symbol/name_cache.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define FILES_CAP 512

struct entry {
	_Atomic uint32_t part; /* written last; 0: none */
	struct slow_file_key key;
	uint64_t until_ns;
};

struct hung {
	_Atomic pid_t pid; /* 0: none */
	uint32_t dev;
};

struct slow_files {
	struct entry files[FILES_CAP];
	_Atomic uint32_t next;
	struct hung hung[SLOW_FILES_HUNG];
	_Atomic uint64_t end_ns;
};

int slow_files_new(struct slow_files **ret)
{
	struct slow_files *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		return -ENOMEM;
	s->end_ns = UINT64_MAX;
	*ret = s;
	return 0;
}

void slow_files_free(struct slow_files *s)
{
	if (s)
		munmap(s, sizeof(*s));
}

void slow_files_hide(struct slow_files *s)
{
	if (s)
		madvise(s, sizeof(*s), MADV_DONTFORK);
}

static bool is_same(const struct slow_file_key *a, const struct slow_file_key *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->changed_ns == b->changed_ns;
}

static bool is_none(const struct slow_file_key *key)
{
	return !key->dev && !key->ino && !key->changed_ns;
}

static const struct entry *find(const struct slow_files *s, const struct slow_file_key *key,
				uint64_t now_ns)
{
	for (size_t i = 0; i < FILES_CAP; i++)
		if (s->files[i].part && is_same(&s->files[i].key, key) &&
		    s->files[i].until_ns > now_ns)
			return &s->files[i];
	return NULL;
}

void slow_files_put(struct slow_files *s, const struct slow_file_key *key, enum slow_file_part part,
		    uint64_t now_ns)
{
	struct entry *e;

	if (!s || is_none(key))
		return;
	e = (struct entry *)find(s, key, now_ns);
	if (!e)
		e = &s->files[atomic_fetch_add(&s->next, 1) % FILES_CAP];
	e->part = 0;
	e->key = *key;
	e->until_ns = now_ns + SLOW_FILES_NS;
	e->part = part;
}

enum slow_file_part slow_files_find(const struct slow_files *s, const struct slow_file_key *key,
				    uint64_t now_ns)
{
	const struct entry *e = s && !is_none(key) ? find(s, key, now_ns) : NULL;

	return e ? (enum slow_file_part)e->part : SLOW_FILE_NOTHING;
}

/* The pid may be another process's by now: then one too many is counted as long as that lives. */
static bool hangs(const struct hung *h)
{
	return h->pid && (!kill(h->pid, 0) || errno == EPERM);
}

void slow_files_put_hung(struct slow_files *s, uint32_t dev, pid_t pid)
{
	for (size_t i = 0; s && i < SLOW_FILES_HUNG; i++) {
		struct hung *h = &s->hung[i];
		pid_t old = h->pid;

		if (hangs(h) || !atomic_compare_exchange_strong(&h->pid, &old, pid))
			continue;
		h->dev = dev;
		return;
	}
}

bool slow_files_is_full(const struct slow_files *s, uint32_t dev)
{
	size_t cnt = 0, dev_cnt = 0;

	for (size_t i = 0; s && i < SLOW_FILES_HUNG; i++) {
		if (!hangs(&s->hung[i]))
			continue;
		cnt++;
		dev_cnt += s->hung[i].dev == dev;
	}
	return cnt == SLOW_FILES_HUNG || dev_cnt >= SLOW_FILES_HUNG_DEVICE;
}

void slow_files_end_at(struct slow_files *s, uint64_t end_ns)
{
	if (s)
		s->end_ns = end_ns;
}

uint64_t slow_files_end_ns(const struct slow_files *s)
{
	return s ? s->end_ns : UINT64_MAX;
}
