// SPDX-License-Identifier: MIT
// leaky_server.cc - a server that answers requests, and may leak: for what a report says of growth.
//
//	leaky_server [leak [PER_SECOND [SMALL_PER_SECOND]]]
//
// A thousand requests a second, each with a buffer of 2 KiB that lives for up to a fifth of a second (about 2
// MB/s of churn), a cache that is filled in the first second and then replaces its entries, and with `leak` 1 KiB ten
// (PER_SECOND) times a second that nobody frees. With SMALL_PER_SECOND there are so many requests instead, which
// allocate ten small blocks each, and free them, and no cache. Writes READY, works until its input ends.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Session {
	char bytes[1024];
};

class Store {
public:
	__attribute__((noinline)) void remember(int id)
	{
		Session *s = new Session;
		memset(s->bytes, id, sizeof(s->bytes));
		sessions_.push_back(s);
	}

private:
	std::vector<Session *> sessions_; // grows by little
};

class Cache {
public:
	__attribute__((noinline)) void put(int key)
	{
		entries_[key % 500] = std::make_unique<std::string>(1500, 'c');
	}

private:
	std::map<int, std::unique_ptr<std::string>> entries_;
};

class Requests {
public:
	__attribute__((noinline)) void handle(int id)
	{
		in_flight_.push_back(std::make_unique<std::vector<char>>(2048, (char)id));
		if (in_flight_.size() > 200)
			in_flight_.pop_front();
	}

private:
	std::deque<std::unique_ptr<std::vector<char>>> in_flight_;
};

// Ten small ones, and they are gone.
__attribute__((noinline)) void answer(long id)
{
	std::unique_ptr<char[]> block[10];

	for (int i = 0; i < 10; i++) {
		block[i] = std::make_unique<char[]>(24 + 8 * i);
		block[i][0] = (char)id;
		asm volatile("" : : "r"(block[i].get()) : "memory");
	}
}

bool input_ended(int timeout_ms)
{
	struct pollfd in = { 0, POLLIN, 0 };

	return poll(&in, 1, timeout_ms) > 0;
}

} // namespace

int main(int argc, char **argv)
{
	bool leaks = argc > 1 && !strcmp(argv[1], "leak");
	double leaks_per_s = argc > 2 ? atof(argv[2]) : 10;
	double small_per_s = argc > 3 ? atof(argv[3]) : 0;
	Requests requests;
	Cache cache;
	Store store;
	struct timespec begin, now;
	long done = 0, remembered = 0, answered = 0;

	puts("READY");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!input_ended(5)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		double s = now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9;

		for (; !small_per_s && done < (long)(s * 1000); done++) {
			requests.handle((int)done);
			if (done % 2)
				cache.put((int)done);
		}
		for (; answered < (long)(s * small_per_s); answered++)
			answer(answered);
		for (; leaks && remembered < (long)(s * leaks_per_s); remembered++)
			store.remember((int)remembered);
	}
	return 0;
}
