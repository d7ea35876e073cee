// SPDX-License-Identifier: MIT
// leak_server.cc - a server with a small leak under much that comes and goes.
//
//	leak_server [scopes]
//
// Some 1.7 MB a second of strings and vectors that are freed, and 100 blocks of 4 KiB a second that are
// not. Says READY, and then ten times a second what is held, as the workload requests does:
// "AT <CPU time in ns> <allocated blocks> <held bytes>". With scopes each request has a tag and a tenant.
// Ends with its input.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "heaptap/scope.h"

static constexpr size_t SESSION_BYTES = 4096;
static std::vector<char *> sessions;
static unsigned long block_cnt;

static unsigned long clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long)ts.tv_sec * 1000000000 + (unsigned long)ts.tv_nsec;
}

struct session_store {
	static __attribute__((noinline)) void touch()
	{
		char *session = new char[SESSION_BYTES];

		memset(session, 1, SESSION_BYTES);
		sessions.push_back(session);
		block_cnt++;
	}
};

static __attribute__((noinline)) void handle_request(unsigned long number)
{
	std::vector<std::string> words;

	for (int i = 0; i < 4; i++) {
		words.emplace_back(400, 'x');
		block_cnt++;
	}
	if (number % 10 == 0)
		session_store::touch();
}

static void serve(unsigned long number, bool has_scopes)
{
	static const char *const tenants[] = { "acme", "globex", "initech" };

	if (!has_scopes) {
		handle_request(number);
		return;
	}
	HEAPTAP_SCOPE("Request");
	HEAPTAP_LABEL("tenant", tenants[number / 10 % 3]);
	handle_request(number);
}

int main(int argc, char **argv)
{
	const bool has_scopes = argc > 1 && !strcmp(argv[1], "scopes");
	struct pollfd in = { 0, POLLIN, 0 };
	unsigned long number = 0;

	setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
	sessions.reserve(1 << 20);
	puts("READY");
	while (!poll(&in, 1, 1)) {
		serve(++number, has_scopes);
		if (number % 100 == 0)
			printf("AT %lu %lu %zu\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID), block_cnt,
			       sessions.size() * SESSION_BYTES);
	}
	return 0;
}
