/* SPDX-License-Identifier: MIT */
/*
 * scope_ledger.h - ledger.h for programs that tag: their account per scope and per instance,
 * beside the one per call site. One executable, no library with scopes of its own.
 *
 * Every allocation goes through scoped_alloc(), which is told the scope that the program believes
 * it is in. scope_done() prints, before ledger.h's rows (paths last, since they may hold anything):
 *
 *	EXPECT_SCOPE <inclusive bytes> <exclusive bytes> <exclusive objects> <path>
 *		for every path and everything above it; "(none)" for no scope
 *	EXPECT_INSTANCE <number> live|exited <inuse bytes> <inuse objects> <allocated bytes>
 *			<allocated objects> <path>
 *		for every instance that is live or has something left (exited: outstanding)
 *	EXPECT_SUM <inuse bytes> <inuse objects>
 *		over all scopes
 *	EXPECT_COUNTS <overflows> <underflows> <truncations>
 *		of the descriptor
 */
#ifndef E2E_SCOPE_LEDGER_H
#define E2E_SCOPE_LEDGER_H

#include "heaptap/scope.h"

#include "ledger.h"

#define SCOPE_ROWS 8192
#define SCOPE_INSTANCES 4096

struct scope_row {
	char path[512];
	uint64_t instance;
	int64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
};
struct scope_instance {
	char path[128]; /* of the task */
	uint64_t number;
	bool has_exited;
};

static struct scope_row scope_rows[SCOPE_ROWS];
static struct scope_instance scope_instances[SCOPE_INSTANCES];
static int scope_instance_cnt;
static struct led_block scope_blocks[LED_BLOCKS];
static pthread_mutex_t scope_lock = PTHREAD_MUTEX_INITIALIZER;
/* What an instance allocates is the library's business: "- -" instead of the sums. */
static bool scope_skip_alloc;

HELPER struct scope_row *scope_row_of(const char *path, uint64_t instance)
{
	unsigned h = 5381 + (unsigned)instance * 0x9e3779b1U;
	int tries = 0;

	for (const char *s = path; *s; s++)
		h = h * 33 + (unsigned char)*s;
	for (unsigned i = h % SCOPE_ROWS;; i = (i + 1) % SCOPE_ROWS) {
		struct scope_row *r = &scope_rows[i];

		if (!r->path[0]) {
			snprintf(r->path, sizeof(r->path), "%s", path);
			r->instance = instance;
			return r;
		}
		if (r->instance == instance && !strcmp(r->path, path))
			return r;
		if (++tries == SCOPE_ROWS)
			led_die("scope ledger: too many rows\n");
	}
}

/* Without a block of its own in the account. */
HELPER void scope_bulk(const char *path, uint64_t instance, int64_t size, int64_t alloc_cnt,
		       int64_t inuse_cnt)
{
	struct scope_row *r;

	pthread_mutex_lock(&scope_lock);
	r = scope_row_of(path, instance);
	r->inuse_bytes += size * inuse_cnt;
	r->inuse_objects += inuse_cnt;
	r->alloc_bytes += size * alloc_cnt;
	r->alloc_objects += alloc_cnt;
	pthread_mutex_unlock(&scope_lock);
}

HELPER void scope_note_alloc(const char *path, uint64_t instance, void *p, size_t size)
{
	unsigned i = led_slot(p);

	scope_bulk(path, instance, (int64_t)size, 1, 1);
	pthread_mutex_lock(&scope_lock);
	while (scope_blocks[i].p && scope_blocks[i].p != LED_GONE)
		i = (i + 1) % LED_BLOCKS;
	scope_blocks[i].p = p;
	scope_blocks[i].size = size;
	scope_blocks[i].row = (int)(scope_row_of(path, instance) - scope_rows);
	pthread_mutex_unlock(&scope_lock);
}

/* Call it before the block is freed. */
HELPER void scope_note_free(void *p)
{
	unsigned i = led_slot(p);
	struct scope_row *r;

	pthread_mutex_lock(&scope_lock);
	while (scope_blocks[i].p && scope_blocks[i].p != p)
		i = (i + 1) % LED_BLOCKS;
	if (!scope_blocks[i].p)
		led_die("scope ledger: a block that is not in use is freed\n");
	scope_blocks[i].p = LED_GONE;
	r = &scope_rows[scope_blocks[i].row];
	r->inuse_bytes -= (int64_t)scope_blocks[i].size;
	r->inuse_objects--;
	pthread_mutex_unlock(&scope_lock);
}

SITE void *site_scoped(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

HELPER void *scoped_alloc(const char *path, uint64_t instance, size_t size)
{
	void *p = site_scoped(size);

	scope_note_alloc(path, instance, p, size);
	return p;
}

HELPER void scoped_free(void *p)
{
	scope_note_free(p);
	free(led_free(p));
}

HELPER void scope_has_instance(const char *path, uint64_t number)
{
	struct scope_instance *in;

	pthread_mutex_lock(&scope_lock);
	if (scope_instance_cnt == SCOPE_INSTANCES)
		led_die("scope ledger: too many instances\n");
	in = &scope_instances[scope_instance_cnt++];
	snprintf(in->path, sizeof(in->path), "%s", path);
	in->number = number;
	pthread_mutex_unlock(&scope_lock);
}
HELPER void scope_instance_exits(uint64_t number)
{
	pthread_mutex_lock(&scope_lock);
	for (int i = 0; i < scope_instance_cnt; i++)
		if (scope_instances[i].number == number)
			scope_instances[i].has_exited = true;
	pthread_mutex_unlock(&scope_lock);
}

/* Whether a path is above another one, or the same. */
HELPER bool scope_is_above(const char *above, const char *path)
{
	size_t n = strlen(above);

	return !strncmp(above, path, n) && (!path[n] || path[n] == '/');
}

static void scope_print_path(const char *path, const char *const *printed, int printed_cnt)
{
	int64_t inclusive = 0, exclusive = 0, objects = 0;
	char line[700];

	for (int i = 0; i < printed_cnt; i++)
		if (!strcmp(printed[i], path))
			return;
	for (int i = 0; i < SCOPE_ROWS; i++) {
		const struct scope_row *r = &scope_rows[i];

		if (!r->path[0] || !scope_is_above(path, r->path))
			continue;
		inclusive += r->inuse_bytes;
		if (strcmp(path, r->path))
			continue;
		exclusive += r->inuse_bytes;
		objects += r->inuse_objects;
	}
	snprintf(line, sizeof(line), "EXPECT_SCOPE %lld %lld %lld %s\n", (long long)inclusive,
		 (long long)exclusive, (long long)objects, path);
	e2e_say(line);
}

/* A '/' that is part of a name is written "\/". */
static void scope_print_paths(void)
{
	static char text[SCOPE_ROWS][512];
	static const char *printed[SCOPE_ROWS];
	int cnt = 0;

	for (int i = 0; i < SCOPE_ROWS; i++) {
		const char *path = scope_rows[i].path;

		for (size_t n = 1; path[0] && n <= strlen(path); n++) {
			if (path[n] && (path[n] != '/' || path[n - 1] == '\\'))
				continue;
			if (cnt == SCOPE_ROWS)
				led_die("scope ledger: too many paths\n");
			snprintf(text[cnt], sizeof(text[cnt]), "%.*s", (int)n, path);
			scope_print_path(text[cnt], printed, cnt);
			printed[cnt] = text[cnt];
			cnt++;
		}
	}
}

static void scope_print_instance(const struct scope_instance *in)
{
	int64_t inuse_bytes = 0, inuse_objects = 0, alloc_bytes = 0, alloc_objects = 0;
	char line[300], allocated[48];

	for (int i = 0; i < SCOPE_ROWS; i++) {
		const struct scope_row *r = &scope_rows[i];

		if (r->instance != in->number || !scope_is_above(in->path, r->path))
			continue;
		inuse_bytes += r->inuse_bytes;
		inuse_objects += r->inuse_objects;
		alloc_bytes += r->alloc_bytes;
		alloc_objects += r->alloc_objects;
	}
	if (in->has_exited && !inuse_objects)
		return;
	snprintf(allocated, sizeof(allocated), "%lld %lld", (long long)alloc_bytes,
		 (long long)alloc_objects);
	snprintf(line, sizeof(line), "EXPECT_INSTANCE %llu %s %lld %lld %s %.127s\n",
		 (unsigned long long)in->number, in->has_exited ? "exited" : "live",
		 (long long)inuse_bytes, (long long)inuse_objects,
		 scope_skip_alloc ? "- -" : allocated, in->path);
	e2e_say(line);
}

HELPER void scope_done(void)
{
	int64_t bytes = 0, objects = 0;
	char line[200];

	pthread_mutex_lock(&scope_lock);
	scope_print_paths();
	for (int i = 0; i < scope_instance_cnt; i++)
		scope_print_instance(&scope_instances[i]);
	for (int i = 0; i < SCOPE_ROWS; i++) {
		bytes += scope_rows[i].inuse_bytes;
		objects += scope_rows[i].inuse_objects;
	}
	snprintf(line, sizeof(line), "EXPECT_SUM %lld %lld\nEXPECT_COUNTS %u %u %u\n",
		 (long long)bytes, (long long)objects, heaptap_scope_v1.overflows,
		 heaptap_scope_v1.underflows, heaptap_scope_v1.truncations);
	e2e_say(line);
	pthread_mutex_unlock(&scope_lock);
	e2e_done();
}

#endif
