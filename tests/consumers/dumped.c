/* SPDX-License-Identifier: MIT */
/*
 * dumped.c - the program of test_dumps.sh and of the dumps in tests/golden/import: it ends with 30
 * blocks of 300000 bytes from load_index(), 4000 of 100 or 3000 (every fourth) from remember() in
 * main and 8000 in a thread, which has had and freed 3000 of 5000 in handle().
 */
#include <pthread.h>
#include <stdlib.h>

void load_index(int cnt);
void remember(int cnt);
void handle(int cnt);
int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
	__attribute__((weak));

static void *volatile kept[20000];
static int kept_cnt;

__attribute__((noinline)) void load_index(int cnt)
{
	for (int i = 0; i < cnt; i++)
		kept[kept_cnt++] = malloc(300000);
}

__attribute__((noinline)) void remember(int cnt)
{
	for (int i = 0; i < cnt; i++)
		kept[kept_cnt++] = malloc(i % 4 ? 100 : 3000);
}

__attribute__((noinline)) void handle(int cnt)
{
	for (int i = 0; i < cnt; i++) {
		void *volatile p = malloc(5000);

		free(p);
	}
}

/* jemalloc's own name of a thread. */
static void name_thread(const char *name)
{
	if (mallctl)
		mallctl("thread.prof.name", NULL, NULL, &name, sizeof(name));
}

static void *work(void *arg)
{
	name_thread("worker one");
	remember(8000);
	handle(3000);
	return arg;
}

int main(void)
{
	pthread_t thread;

	name_thread("main");
	load_index(30);
	remember(4000);
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
