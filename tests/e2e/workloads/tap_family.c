/* SPDX-License-Identifier: MIT */
/*
 * tap_family - a program with odd threads and children.
 *
 *	tap_family HOW [FILE | COUNT]
 *
 *	plain		one thread that allocates
 *	threads		COUNT of them, and COUNT that only wait
 *	main-gone	its first thread has ended
 *	births		threads are born and die, up to COUNT at a time
 *	vfork-stays	when told to "do" it, its first thread is in vfork(), whose child does not execute anything
 *	vfork-once, vfork-again	a child that takes 0.3 s until it executes; one after the other
 *	vfork-allocates	such children allocate and free, and keep, in the memory that they share
 *	fork-child	when told to "do" it, it has a child that allocates, and says CHILD <pid>
 *	shared-memory	a process that shares its memory, but is no thread of it, allocates all the time
 *	close-all	a process that shares its descriptors closes each one that is new
 *	swap FILE	the same puts FILE in its place, which it may not read
 *	no-files, no-memory	it is at its limit of descriptors, of address space
 *	exec COUNT	executes itself again and again, while COUNT threads allocate
 *	exec-file FILE	when told to "do" it, a thread executes FILE, which is not answered
 *	exec-child FILE	when told to "do" it, a child executes a program, before which FILE is closed; that is not answered
 *	read-file FILE	when told to "do" it, a thread reads FILE, which is not answered
 */
#include "tap_target.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CHILD_US 300000
#define STACK_BYTES (1 << 16)
#define GOOD_STATUS 9
#define LOOK_US 10

static const char *how, *path;
static unsigned thread_cnt;
static int file_fd = -1, free_fd = -1;
static volatile int is_told;
static char sibling_stack[STACK_BYTES] __attribute__((aligned(16)));

static void *wait_always(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *live_shortly(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg;

	do_pairs(16, &random);
	nap_us(2000);
	return arg;
}

static void *bear_threads(void *arg)
{
	static pthread_t thread[1000];

	for (;;) {
		unsigned cnt = 0;

		while (cnt < thread_cnt && cnt < 1000) {
			if (pthread_create(&thread[cnt], NULL, live_shortly,
					   (void *)(uintptr_t)cnt))
				bad("pthread_create");
			if (++cnt % 20 == 0)
				nap_us(2000);
		}
		while (cnt)
			pthread_join(thread[--cnt], NULL);
	}
	return arg;
}

static void *obey_beside(void *arg)
{
	void (*act)(void) = (void (*)(void))arg;

	obey(act);
	return NULL;
}

static void be_told(void)
{
	is_told = 1;
	nap_us(100000);
}

static void await_told(void)
{
	while (!is_told)
		nap_us(5000);
}

static void *vfork_children(void *arg)
{
	int status;

	do {
		pid_t pid = vfork();

		if (!pid) {
			uint32_t random = 3;

			if (!strcmp(how, "vfork-allocates")) {
				do_pairs(80, &random);
				keep(100);
			} else {
				nap_us(CHILD_US);
			}
			_exit(GOOD_STATUS);
		}
		if (waitpid(pid, &status, 0) != pid || status != GOOD_STATUS << 8)
			bad("a child of vfork");
		nap_us(10000);
	} while (!arg);
	return NULL;
}

static void begin_vfork(void)
{
	begin(vfork_children, !strcmp(how, "vfork-once") ? &thread_cnt : NULL);
	nap_us(50000);
}

/* Until it ends: whoever started this program has the child killed by that. */
static void stay_in_vfork(void)
{
	await_told();
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void fork_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		allocate((void *)7);
	}
	say("CHILD %d\n", (int)pid);
}

static int share_memory(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	allocate(arg);
	return 0;
}

/* Who runs before all others (chrt) looks every few microseconds, and leaves them the processor. */
static int share_files(void *arg)
{
	int is_first = sched_getscheduler(0) == SCHED_FIFO;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (fcntl(free_fd, F_GETFD) < 0) {
			if (is_first)
				nap_us(LOOK_US);
			continue;
		}
		if (file_fd >= 0) {
			dup2(file_fd, free_fd);
			nap_us(20000);
		}
		close(free_fd);
	}
	return arg != NULL;
}

/* It has the thread pointer of this thread, which therefore does nothing any more. */
static void *begin_sibling(void *arg)
{
	int is_files = arg != NULL;

	/* who shares no memory is not stopped */
	if (clone(is_files ? share_files : share_memory, sibling_stack + STACK_BYTES,
		  (is_files ? CLONE_FILES : CLONE_VM) | SIGCHLD, (void *)11) < 0)
		bad("clone");
	return wait_always(NULL);
}

static void begin_files(void)
{
	if (path && (file_fd = open(path, O_PATH)) < 0)
		bad(path);
	free_fd = dup(0);
	close(free_fd);
	begin(begin_sibling, &free_fd);
}

static void reach_limit(void)
{
	struct rlimit limit = { 3, 3 };

	if (!strcmp(how, "no-files")) {
		setrlimit(RLIMIT_NOFILE, &limit);
		return;
	}
	limit.rlim_cur = limit.rlim_max = 1 << 20; /* below what it has */
	setrlimit(RLIMIT_AS, &limit);
}

static void execute_self(unsigned left)
{
	char number[16], self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0'; /* by its own name, for who knows it by that */
	snprintf(number, sizeof(number), "%u", left - 1);
	setenv("E2E_EXECS", number, 1);
	execl(self, self, "exec", path, (char *)NULL);
	bad("execl");
}

static void *execute_soon(void *arg)
{
	nap_us(3000 + rand() % 15000);
	execute_self((unsigned)(uintptr_t)arg);
	return NULL;
}

/* Every other time from a thread that is not the first. */
static void execute_always(void)
{
	unsigned left = number_of("E2E_EXECS", 1000000);
	struct pollfd in = { .fd = 0, .events = POLLIN };

	srand((unsigned)getpid() + left);
	for (unsigned i = 0; i < thread_cnt; i++)
		begin(allocate, (void *)(uintptr_t)(i + 1));
	if (left % 2)
		begin(execute_soon, (void *)(uintptr_t)left);
	if (poll(&in, 1, left % 2 ? -1 : 3 + rand() % 15) > 0)
		_exit(7);
	execute_self(left);
}

static void *execute_file(void *arg)
{
	execl(path, path, (char *)NULL);
	return arg;
}

static void *read_file(void *arg)
{
	char byte;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || pread(fd, &byte, 1, 8192) < 0)
		say("READ %s\n", strerror(errno));
	return arg;
}

static void execute_in_child(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	nap_us(100000);
}

static void begin_with_file(void)
{
	begin(!strcmp(how, "exec-file") ? execute_file : read_file, NULL);
	nap_us(100000);
}

static void set_up(void)
{
	for (unsigned i = 0; !strcmp(how, "threads") && i < thread_cnt; i++) {
		begin(allocate, (void *)(uintptr_t)(i + 2));
		begin(wait_always, NULL);
	}
	if (!strcmp(how, "births"))
		begin(bear_threads, NULL);
	else if (!strcmp(how, "shared-memory"))
		begin(begin_sibling, NULL);
	else if (!strcmp(how, "close-all") || !strcmp(how, "swap"))
		begin_files();
	else if (!strncmp(how, "no-", 3))
		reach_limit();
	else if (!strcmp(how, "exec-child") && open(path, O_RDONLY | O_CLOEXEC) < 0)
		bad(path);
}

int main(int argc, char **argv)
{
	void (*act)(void) = NULL;

	how = argc > 1 ? argv[1] : "plain";
	path = argc > 2 ? argv[2] : NULL;
	thread_cnt = path ? (unsigned)strtoul(path, NULL, 10) : 0;
	nap_factor = 1 + thread_cnt / 4;
	if (!strcmp(how, "exec")) {
		if (!getenv("E2E_EXECS"))
			be_ready();
		execute_always();
	}
	begin(allocate, (void *)1);
	nap_us(20000);
	set_up();
	be_ready();
	if (!strcmp(how, "vfork-stays")) {
		begin(obey_beside, (void *)be_told);
		stay_in_vfork();
	}
	if (!strcmp(how, "main-gone")) {
		begin(obey_beside, NULL);
		pthread_exit(NULL);
	}
	if (!strncmp(how, "vfork", 5))
		act = begin_vfork;
	else if (!strcmp(how, "fork-child"))
		act = fork_child;
	else if (!strcmp(how, "exec-child"))
		act = execute_in_child;
	else if (strstr(how, "-file") && path)
		act = begin_with_file;
	obey(act);
}
