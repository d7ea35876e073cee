/* SPDX-License-Identifier: MIT */
/*
 * scope_table.c - the scenarios whose numbers must come out to the byte (--rate 1).
 *
 *	scope_table SCENARIO [VARIANT]
 *
 *	nested		Top{ A{ 100; B{ 100 } }; 100; B{ 100 } }: Top inclusive 400, exclusive 100
 *	before		allocated before READY, freed after: nothing. Attach only
 *	handover	allocated under a tag, freed by another thread under another tag: 0
 *	reuse		8 times 512 bytes under `old`, freed, 512 under `new` at the same address: both 0
 *	interleaved	two tasks on one thread: t1 4096, t2 8 (kept), t1 frees
 *	task 1		+10 +5 -10, exits: outstanding after exit 5
 *	task 2		... later -5: gone
 *	realloc new	64 -> 6400 under another tag: all of it at the new one
 *	realloc origin	... with --realloc-scope=origin: at the old one
 *	names		a million distinct dynamic names, 16 bytes kept at every tenth: the sum
 *	deep		100 bytes at depth 100 000, then at every depth on the way back to 0
 *	underflow	pop on empty, three times; then 100 bytes outside of all scopes
 *	signal		mallocs in a signal handler that interrupts pushes
 *	fork		a child goes on in the scope that it was forked in; its rows follow "PID <pid>"
 *	exec		allocates, then executes itself as "nested"
 *	labels		100 bytes for each of three tenants, and names with '/', '\', '=', ' ', UTF-8
 *	pause		what is allocated while paused is not there
 */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "scope_ledger.h"

static const char *variant;

static void nested(void)
{
	HEAPTAP_SCOPE("Top");
	{
		HEAPTAP_SCOPE("A");
		scoped_alloc("Top/A", 0, 100);
		{
			HEAPTAP_SCOPE("B");
			scoped_alloc("Top/A/B", 0, 100);
		}
	}
	scoped_alloc("Top", 0, 100);
	HEAPTAP_SCOPE("B");
	scoped_alloc("Top/B", 0, 100);
}

static void *early_blocks[100];
/* Not in any account: nobody saw them. */
static void before_ready(void)
{
	HEAPTAP_SCOPE("Before");
	for (int i = 0; i < 100; i++)
		early_blocks[i] = malloc(777);
}
static void before(void)
{
	HEAPTAP_SCOPE("After");
	for (int i = 0; i < 100; i++)
		free(early_blocks[i]);
}

static void *taker(void *arg)
{
	HEAPTAP_SCOPE("taker");
	scoped_free(arg);
	return NULL;
}
static void handover(void)
{
	pthread_t thread;
	void *p;

	HEAPTAP_SCOPE("maker");
	p = scoped_alloc("maker", 0, 5000);
	/* the library's own allocations for a thread are nobody's here */
	heaptap_pause();
	if (pthread_create(&thread, NULL, taker, p))
		led_die("scope_table: no thread\n");
	heaptap_unpause();
	pthread_join(thread, NULL);
}

static void reuse(void)
{
	for (int i = 0; i < 8; i++) {
		void *p, *q;

		{
			HEAPTAP_SCOPE("old");
			p = scoped_alloc("old", 0, 512);
			scoped_free(p);
		}
		HEAPTAP_SCOPE("new");
		q = scoped_alloc("new", 0, 512);
		if (q != p)
			e2e_say("BROKEN reuse: another address\n");
		scoped_free(q);
	}
}

static void interleaved(void)
{
	heaptap_node kind = heaptap_task("job");
	heaptap_state out;
	void *p;

	scope_has_instance("job", 1);
	scope_has_instance("job", 2);
	out = heaptap_enter(kind, 1);
	p = scoped_alloc("job", 1, 4096);
	heaptap_leave(out);
	out = heaptap_enter(kind, 2);
	scoped_alloc("job", 2, 8);
	heaptap_leave(out);
	out = heaptap_enter(kind, 1);
	scoped_free(p);
	heaptap_leave(out);
}

static void task(void)
{
	heaptap_node kind = heaptap_task("query");
	heaptap_state out = heaptap_enter(kind, 17);
	void *p, *q;

	scope_has_instance("query", 17);
	p = scoped_alloc("query", 17, 10);
	q = scoped_alloc("query", 17, 5);
	scoped_free(p);
	heaptap_leave(out);
	heaptap_task_exit(kind, 17);
	scope_instance_exits(17);
	if (variant[0] == '2')
		scoped_free(q);
}

SITE void *site_resized(void *p, size_t size)
{
	struct led_block b = led_take(p);

	return led_settle(__func__, &b, realloc(p, size), size);
}
static void reallocate(void)
{
	void *p;

	{
		HEAPTAP_SCOPE("first");
		p = scoped_alloc("first", 0, 64);
	}
	HEAPTAP_SCOPE("second");
	scope_note_free(p);
	p = site_resized(p, 6400);
	scope_note_alloc(!strcmp(variant, "origin") ? "first" : "second", 0, p, 6400);
}

SITE void *site_named(size_t size)
{
	return malloc(size);
}
static void names(void)
{
	char name[32];

	HEAPTAP_SCOPE("Top");
	for (int i = 0; i < 1000000; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		HEAPTAP_SCOPE_NAME(name);
		if (i % 10 == 0)
			OPAQUE(site_named(16));
	}
	led_bulk("site_named", 16, 100000, 100000);
	/* as far as anybody can say without the limits of the reader */
	scope_bulk("Top", 0, 16, 100000, 100000);
	scoped_alloc("Top", 0, 100);
}

static void deep(void)
{
	char path[2 * 64 + 1] = "";

	for (int i = 0; i < 100000; i++)
		HEAPTAP_PUSH("d");
	for (int i = 0; i < 64; i++)
		memcpy(path + 2 * i, "/d", 3);
	scoped_alloc(path + 1, 0, 100);
	for (int i = 65535; i > 64; i--)
		heaptap_pop();
	for (int i = 64; i > 0; i--) {
		path[2 * i] = '\0';
		scoped_alloc(path + 1, 0, 100);
		heaptap_pop();
	}
	scoped_alloc("(none)", 0, 100);
}

static void underflow(void)
{
	for (int i = 0; i < 3; i++)
		heaptap_pop();
	scoped_alloc("(none)", 0, 100);
}

SITE void *site_handler(size_t size)
{
	return malloc(size);
}
static volatile sig_atomic_t handled_cnt;
static void on_signal(int number)
{
	static const char digits[] = "0123456789abcdef";
	char name[] = "handler 00";

	(void)number;
	name[8] = digits[handled_cnt >> 4 & 15];
	name[9] = digits[handled_cnt & 15];
	heaptap_push(name); /* new at first: may meet the lock of the push that it interrupted */
	OPAQUE(site_handler(24));
	heaptap_pop();
	handled_cnt++;
}
/* Which scope of the handler's gets the bytes is a matter of luck; the sums are not. */
static void signals(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } };
	struct sigaction action;
	char name[32];

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; handled_cnt < 1000; i++) {
		snprintf(name, sizeof(name), "main %d", i % 200000);
		heaptap_push(name);
		heaptap_pop();
	}
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	led_bulk("site_handler", 24, handled_cnt, handled_cnt);
	scope_bulk("(any)", 0, 24, handled_cnt, handled_cnt);
	scoped_alloc("(none)", 0, 100);
	alarm(900);
}

static void forking(void)
{
	int printed[2];
	char line[64], c;
	pid_t pid;

	HEAPTAP_SCOPE("Parent");
	scoped_alloc("Parent", 0, 100);
	if (pipe(printed))
		led_die("scope_table: no pipe\n");
	pid = fork();
	if (pid == 0) {
		HEAPTAP_SCOPE("Child");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(led_rows, 0, sizeof(led_rows));
		memset(scope_rows, 0, sizeof(scope_rows));
		scoped_alloc("Parent/Child", 0, 200);
		snprintf(line, sizeof(line), "PID %d\n", (int)getpid());
		e2e_say(line);
		scope_print_paths();
		e2e_print_ledger();
		close(printed[1]);
		alarm(900);
		for (;;)
			pause();
	}
	close(printed[1]);
	if (read(printed[0], &c, 1) != 0)
		led_die("scope_table: the child said something else\n");
	close(printed[0]);
	scoped_alloc("Parent", 0, 100);
	snprintf(line, sizeof(line), "PID %d\n", (int)getpid());
	e2e_say(line);
}

static void executing(void)
{
	HEAPTAP_SCOPE("Image");
	scoped_alloc("Image", 0, 100);
	/* the new image waits for no line of its own before it works */
	execl("/proc/self/exe", "scope_table", "nested", "executed", (char *)NULL);
	led_die("scope_table: cannot execute itself\n");
}

static void labels(void)
{
	static const char *const tenants[] = { "acme", "globex", "initech" };
	static const struct {
		const char *name, *shown;
	} odd[] = {
		{ "a/b", "a\\/b" },
		{ "a\\b", "a\\\\b" },
		{ "a=b", "a=b" },
		{ "a b", "a b" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
	};

	for (int i = 0; i < 3; i++) {
		char line[64];

		HEAPTAP_SCOPE("serve");
		HEAPTAP_LABEL("tenant", tenants[i]);
		HEAPTAP_SCOPE("parse");
		scoped_alloc("serve/parse", 0, 100 + i);
		snprintf(line, sizeof(line), "EXPECT_LABEL tenant %d %s\n", 100 + i, tenants[i]);
		e2e_say(line);
	}
	{
		HEAPTAP_LABEL("tenant", "outer");
		HEAPTAP_LABEL("tenant", "inner");
		scoped_alloc("(none)", 0, 50);
		e2e_say("EXPECT_LABEL tenant 50 inner\n");
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		HEAPTAP_SCOPE_NAME(odd[i].name);
		scoped_alloc(odd[i].shown, 0, 10 + i);
	}
}

SITE void *site_paused(size_t size)
{
	return malloc(size);
}
static void pausing(void)
{
	HEAPTAP_SCOPE("seen");
	{
		HEAPTAP_PAUSED();
		OPAQUE(site_paused(1000));
	}
	scoped_alloc("seen", 0, 100);
	heaptap_pause_all();
	OPAQUE(site_paused(1000));
	heaptap_unpause_all();
	scoped_alloc("seen", 0, 100);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {
		{ "nested", nested },
		{ "before", before },
		{ "handover", handover },
		{ "reuse", reuse },
		{ "interleaved", interleaved },
		{ "task", task },
		{ "realloc", reallocate },
		{ "names", names },
		{ "deep", deep },
		{ "underflow", underflow },
		{ "signal", signals },
		{ "fork", forking },
		{ "exec", executing },
		{ "labels", labels },
		{ "pause", pausing },
	};

	variant = argc > 2 ? argv[2] : "";
	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, argv[1]))
			continue;
		led_name_thread("table");
		if (scenarios[i].run == before)
			before_ready();
		if (strcmp(variant, "executed"))
			e2e_ready();
		scenarios[i].run();
		scope_done();
		return 0;
	}
	led_die("scope_table: which scenario?\n");
}
