// SPDX-License-Identifier: MIT
/*
 * tap_new - operator new that fails: how often is the new handler called, and what may it do?
 *
 *	tap_new throws | none | jumps | frees
 *
 * When told to "do" it, a block is wanted that nobody has, 50 times (jumps: once): the handler throws; there is none; it
 * leaves by longjmp; it makes room on the second call, so that the third attempt succeeds. Says CALLS <handler>
 * <failures>. The protocol is that of tap_target.h.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile unsigned long calls, fails, bytes;
static jmp_buf back;
static const char *how;
static char *volatile reserve;
static void *kept[1 << 16];
static unsigned kept_cnt;

static void say(const char *line) { (void)!write(1, line, strlen(line)); }
static void bad(const char *what)
{
	say("BAD ");
	say(what);
	say("\n");
	_exit(3);
}

static void handler()
{
	calls = calls + 1;
	if (!strcmp(how, "jumps"))
		longjmp(back, 1);
	if (!strcmp(how, "frees")) {
		rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
		setrlimit(RLIMIT_AS, &limit); // as if memory had been freed
		return;
	}
	throw std::bad_alloc();
}

static void fail_once(size_t size)
{
	if (setjmp(back)) {
		fails = fails + 1;
		return;
	}
	try {
		void *p = operator new(size);
		if (strcmp(how, "frees"))
			bad("it has the memory");
		operator delete(p);
	} catch (const std::bad_alloc &) {
		fails = fails + 1;
	}
}

static void act()
{
	char line[80];
	volatile size_t nobody = size_t(1) << 48;

	for (int i = 0; i < (strcmp(how, "jumps") ? 50 : 1); i++) {
		if (!strcmp(how, "frees")) {
			rlimit limit = { 1 << 20, RLIM_INFINITY };
			setrlimit(RLIMIT_AS, &limit);
			fail_once(size_t(1) << 28);
		} else {
			fail_once(nobody);
		}
		delete[] new char[100];
	}
	snprintf(line, sizeof(line), "CALLS %lu %lu\n", calls, fails);
	say(line);
}

static void keep()
{
	char line[80];

	for (int i = 0; i < 5000; i++) {
		kept[kept_cnt++] = memset(operator new(1000), 1, 1000);
		bytes = bytes + 1000;
	}
	snprintf(line, sizeof(line), "HELD %lu\n", (unsigned long)bytes);
	say(line);
}

int main(int argc, char **argv)
{
	char line[64], byte;
	size_t n = 0;

	how = argc > 1 ? argv[1] : "none";
	if (strcmp(how, "none"))
		std::set_new_handler(handler);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
	snprintf(line, sizeof(line), "READY %d\n", getpid());
	say(line);
	while (read(0, &byte, 1) == 1) {
		if (byte != '\n' && n < sizeof(line) - 1) {
			line[n++] = byte;
			continue;
		}
		line[n] = 0;
		n = 0;
		if (!strcmp(line, "do"))
			act();
		else if (!strcmp(line, "go"))
			keep();
		say("DONE\n");
	}
	_exit(7);
}
