/* SPDX-License-Identifier: MIT */
/*
 * scope_pool.c - a thread pool that takes the scope of whoever posts a job to the worker that does
 * it. What a worker allocates for a job is charged to the poster's scope, label and task; what it
 * allocates for itself, to its own.
 *
 *	scope_pool [WORKERS [JOBS]]		4 400
 *
 * The two lines that make it so are marked with "<-".
 */
#include "scope_ledger.h"

struct job {
	void (*function)(int);
	int argument;
	heaptap_state state; /* <- of the thread that posted it */
	struct job *next;
};

static struct pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *first, **last;
	int waiting_cnt; /* not yet done */
	bool is_closed;
} pool = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &pool.first, 0, false };

static void post(struct job *job, void (*function)(int), int argument)
{
	job->function = function;
	job->argument = argument;
	job->state = heaptap_get();
	job->next = NULL;
	pthread_mutex_lock(&pool.lock);
	*pool.last = job;
	pool.last = &job->next;
	pool.waiting_cnt++;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

static struct job *take(void)
{
	struct job *job;

	pthread_mutex_lock(&pool.lock);
	while (!pool.first && !pool.is_closed)
		pthread_cond_wait(&pool.changed, &pool.lock);
	job = pool.first;
	if (job) {
		pool.first = job->next;
		if (!pool.first)
			pool.last = &pool.first;
	}
	pthread_mutex_unlock(&pool.lock);
	return job;
}

static void done(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.waiting_cnt--;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

static void *worker(void *arg)
{
	struct job *job;

	led_name_thread("worker");
	HEAPTAP_SCOPE("Pool");
	scoped_alloc("Pool", 0, 1000); /* its own buffer */
	while ((job = take())) {
		{
			HEAPTAP_WITH(job->state); /* <- until the end of this block */
			job->function(job->argument);
		}
		done();
	}
	return arg;
}

/* Jobs do not know who posted them; their numbers say it here, for the account. */
static void parse(int n)
{
	HEAPTAP_SCOPE("parse");
	scoped_alloc("Query/parse", n + 1, 100);
	scoped_free(scoped_alloc("Query/parse", n + 1, 5000));
}
static void load(int n)
{
	scoped_alloc("Import", 0, 10 + n % 3);
}

int main(int argc, char **argv)
{
	int worker_cnt = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 4;
	int job_cnt = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 400;
	pthread_t thread[64];
	static struct job jobs[1000];
	int label_cnt[2] = { 0, 0 };
	char line[100];

	if (worker_cnt < 1 || worker_cnt > 64 || job_cnt < 1 || job_cnt > 1000)
		led_die("scope_pool: 1 to 64 workers, 1 to 1000 jobs\n");
	led_name_thread("poster");
	e2e_ready();
	heaptap_pause(); /* what pthread_create() allocates */
	for (int i = 0; i < worker_cnt; i++)
		if (pthread_create(&thread[i], NULL, worker, NULL))
			led_die("scope_pool: no thread\n");
	heaptap_unpause();
	for (int i = 0; i < job_cnt; i++) {
		if (i % 2) {
			HEAPTAP_SCOPE("Import");
			post(&jobs[i], load, i);
		} else {
			HEAPTAP_TASK("Query", i + 1);
			HEAPTAP_LABEL("client", i % 4 ? "web" : "batch");
			scope_has_instance("Query", i + 1);
			label_cnt[i % 4 != 0]++;
			post(&jobs[i], parse, i);
		}
	}
	pthread_mutex_lock(&pool.lock);
	while (pool.waiting_cnt)
		pthread_cond_wait(&pool.changed, &pool.lock);
	pool.is_closed = true;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
	for (int i = 0; i < worker_cnt; i++)
		pthread_join(thread[i], NULL);
	snprintf(line, sizeof(line), "EXPECT_LABEL client %d batch\nEXPECT_LABEL client %d web\n",
		 100 * label_cnt[0], 100 * label_cnt[1]);
	e2e_say(line);
	scope_done();
	return 0;
}
