/* SPDX-License-Identifier: MIT */
/*
 * scope_grow.c - does what it is told, and says what it holds: for who looks again and again.
 *
 *	scope_grow [WORKERS]	4
 *
 * Each line on stdin is one step; "DONE <steps>" is its end:
 *	grow N	scope App/s00 allocates N * 1000 bytes, App/s01 twice that, and so on to App/s29; each
 *		worker allocates N * 20000 bytes in App/conn
 *	churn N	allocates and frees 1000 bytes N times in App/churn
 *	free	frees all that the steps allocated in App/s29
 *	live N	N blocks of 16 bytes in App/live
 *	name X	an empty scope of that name allocates 1 byte
 *	exec	becomes this program anew
 * Before DONE stand "HOLDS <bytes> <objects> <allocated bytes> <thread> <scope>" for each.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "heaptap/scope.h"

#define SCOPES 30
#define WORKERS_CAP 64
#define ROWS 64

struct row {
	char scope[64], thread[16];
	unsigned long bytes, objects, alloc_bytes;
};

static struct row rows[ROWS];
static int row_cnt;
static void *largest[10000]; /* of App/s29 */
static int largest_cnt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long order_cnt, order_rounds, done_cnt;
static int worker_cnt = 4;

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

static struct row *row_of(const char *scope, const char *thread)
{
	for (int i = 0; i < row_cnt; i++)
		if (!strcmp(rows[i].scope, scope) && !strcmp(rows[i].thread, thread))
			return &rows[i];
	if (row_cnt == ROWS)
		_exit(1);
	snprintf(rows[row_cnt].scope, sizeof(rows[0].scope), "%s", scope);
	snprintf(rows[row_cnt].thread, sizeof(rows[0].thread), "%s", thread);
	return &rows[row_cnt++];
}

/* The caller has the lock, or is alone. */
__attribute__((noinline)) static void *hold(const char *scope, const char *thread, size_t bytes)
{
	struct row *r = row_of(scope, thread);
	char *p = malloc(bytes);

	if (!p)
		_exit(1);
	*(volatile char *)p = 1;
	r->bytes += bytes;
	r->alloc_bytes += bytes;
	r->objects++;
	return p;
}

static void *work(void *arg)
{
	char name[16];
	long seen = 0;

	snprintf(name, sizeof(name), "worker-%d", (int)(long)arg);
	prctl(PR_SET_NAME, name);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (order_cnt == seen)
			pthread_cond_wait(&changed, &lock);
		seen = order_cnt;
		HEAPTAP_SCOPE("App", "conn");
		for (long i = 0; i < order_rounds; i++)
			hold("App/conn", "worker-*", 20000);
		done_cnt++;
		pthread_cond_broadcast(&changed);
	}
	return arg;
}

static void grow(long rounds)
{
	char name[8], path[16];

	for (int i = 0; i < SCOPES; i++) {
		HEAPTAP_SCOPE("App");
		snprintf(name, sizeof(name), "s%02d", i);
		snprintf(path, sizeof(path), "App/%s", name);
		heaptap_push(name);
		for (long k = 0; k < rounds; k++) {
			void *p = hold(path, "scope_grow", 1000 * (i + 1));

			if (i == SCOPES - 1 && largest_cnt < 10000)
				largest[largest_cnt++] = p;
		}
		heaptap_pop();
	}
	pthread_mutex_lock(&lock);
	order_cnt++;
	order_rounds = rounds;
	done_cnt = 0;
	pthread_cond_broadcast(&changed);
	while (done_cnt < worker_cnt)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void churn(long cnt)
{
	struct row *r = row_of("App/churn", "scope_grow");

	HEAPTAP_SCOPE("App", "churn");
	for (long i = 0; i < cnt; i++) {
		free(hold("App/churn", "scope_grow", 1000));
		r->bytes -= 1000;
		r->objects--;
	}
}

static void free_largest(void)
{
	struct row *r = row_of("App/s29", "scope_grow");

	while (largest_cnt) {
		free(largest[--largest_cnt]);
		r->bytes -= 1000 * SCOPES;
		r->objects--;
	}
}

static void live(long cnt)
{
	HEAPTAP_SCOPE("App", "live");
	while (cnt-- > 0)
		hold("App/live", "scope_grow", 16);
}

static void step(char *line, char **argv)
{
	long n = strtol(line + strcspn(line, " "), NULL, 10);

	if (!strncmp(line, "grow ", 5))
		grow(n);
	else if (!strncmp(line, "churn ", 6))
		churn(n);
	else if (!strcmp(line, "free"))
		free_largest();
	else if (!strncmp(line, "live ", 5))
		live(n);
	else if (!strcmp(line, "exec"))
		execv("/proc/self/exe", argv);
	else if (!strncmp(line, "name ", 5)) {
		heaptap_push(line + 5);
		hold(line + 5, "scope_grow", 1);
		heaptap_pop();
	}
}

static bool read_line(char *line, size_t bytes)
{
	size_t n = 0;

	while (n + 1 < bytes && read(0, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return n > 0;
}

int main(int argc, char **argv)
{
	char line[256];
	int steps = 0;
	pthread_t thread;

	if (argc > 1)
		worker_cnt = (int)strtol(argv[1], NULL, 10);
	if (worker_cnt < 0 || worker_cnt > WORKERS_CAP)
		return 2;
	prctl(PR_SET_NAME, "scope_grow");
	alarm(900);
	snprintf(line, sizeof(line), "READY %d\n", (int)getpid());
	heaptap_pause();
	for (long i = 0; i < worker_cnt; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 1;
	heaptap_unpause();
	say(line);
	while (read_line(line, sizeof(line)) && strcmp(line, "end") != 0) {
		step(line, argv);
		for (int i = 0; i < row_cnt; i++) {
			snprintf(line, sizeof(line), "HOLDS %lu %lu %lu %s %s\n", rows[i].bytes,
				 rows[i].objects, rows[i].alloc_bytes, rows[i].thread,
				 rows[i].scope);
			say(line);
		}
		snprintf(line, sizeof(line), "DONE %d\n", ++steps);
		say(line);
	}
	return 0;
}
