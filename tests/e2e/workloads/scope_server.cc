// SPDX-License-Identifier: MIT
// scope_server.cc - a server that says what its memory is for: each query is a task, the kind of
// query its tag, the tenant a label. One kind leaks.
//
//	scope_server [QUERIES [THREADS]]	600 2
//
// What heaptap must show: nothing is left of `select` and `insert`; of `report` 1000 bytes for each
// query, although every one of them has ended: outstanding after exit, by tenant.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scope_ledger.h"

static const char *const kinds[] = { "select", "insert", "report" };
static const char *const tenants[] = { "acme", "globex", "initech", "umbrella" };

// A thread that finishes what queries leave to it, in their name.
class janitor {
	std::mutex lock;
	std::condition_variable changed;
	std::function<void()> jobs[64]; // no container of its own to account for
	unsigned head = 0, tail = 0;
	bool is_closed = false;
	std::thread thread;

	void work()
	{
		for (;;) {
			std::function<void()> job;
			{
				std::unique_lock<std::mutex> guard(lock);
				changed.wait(guard, [this] { return is_closed || head != tail; });
				if (head == tail)
					return;
				job.swap(jobs[head++ % 64]);
			}
			changed.notify_all();
			job();
		}
	}

public:
	janitor() : thread([this] { work(); }) {}
	~janitor()
	{
		{
			std::lock_guard<std::mutex> guard(lock);
			is_closed = true;
		}
		changed.notify_all();
		thread.join();
	}
	template <class Function> void post(Function function)
	{
		{
			std::unique_lock<std::mutex> guard(lock);
			changed.wait(guard, [this] { return tail - head < 64; });
			// the job runs in the scope, label and task of the caller
			jobs[tail++ % 64] = heaptap::carry(std::move(function));
		}
		changed.notify_all();
	}
};

// The planted leak: results that are kept for a client that never asks again. Without a container,
// whose growth would be charged to whoever happens to push last.
static void *kept[10000];
static int kept_cnt;

SITE void *site_report(size_t size)
{
	return led_alloc(__func__, ::operator new(size), size);
}

static std::vector<std::string> execute(int n)
{
	HEAPTAP_SCOPE("execute");
	std::vector<std::string> rows;

	for (int i = 0; i < 20 + n % 30; i++)
		rows.push_back("row " + std::to_string(i) + " of a result that is longer than short");
	return rows;
}

static void serve(janitor &behind, int n)
{
	HEAPTAP_SCOPE("Server");
	HEAPTAP_LABEL("tenant", tenants[n / 3 % 4]);
	heaptap::task query(kinds[n % 3], n + 1); // ends with this block

	query.run([&] {
		auto rows = execute(n);

		{
			HEAPTAP_SCOPE("sort");
			std::sort(rows.begin(), rows.end(), std::greater<std::string>());
		}
		if (n % 3 == 2) {
			kept[__atomic_fetch_add(&kept_cnt, 1, __ATOMIC_RELAXED)] = site_report(1000);
			scope_has_instance("Server/report", n + 1);
			scope_bulk("Server/report", n + 1, 1000, 1, 1);
			scope_instance_exits(n + 1);
		}
		behind.post([rows] { std::string(rows[0]).append(rows.back()); });
	});
}

static void serve_all(int query_cnt, int thread_cnt)
{
	heaptap_pause(); // the threads themselves are not the subject here
	{
		janitor behind;
		std::vector<std::thread> threads;

		for (int t = 0; t < thread_cnt; t++)
			threads.emplace_back([&behind, t, query_cnt, thread_cnt] {
				led_name_thread("server");
				for (int n = t; n < query_cnt; n += thread_cnt)
					serve(behind, n);
			});
		for (auto &thread : threads)
			thread.join();
	}
	heaptap_unpause();
}

int main(int argc, char **argv)
{
	int query_cnt = argc > 1 ? atoi(argv[1]) : 600, thread_cnt = argc > 2 ? atoi(argv[2]) : 2;
	int per_tenant[4] = {};
	char line[100];

	if (query_cnt < 1 || query_cnt > 12000 || thread_cnt < 1)
		led_die("scope_server: 1 to 12000 queries\n");
	e2e_ready();
	serve_all(query_cnt, thread_cnt);
	for (int n = 2; n < query_cnt; n += 3)
		per_tenant[n / 3 % 4] += 1000;
	for (int i = 0; i < 4; i++) {
		snprintf(line, sizeof(line), "EXPECT_LABEL tenant %d %s\n", per_tenant[i], tenants[i]);
		e2e_say(line);
	}
	scope_skip_alloc = true;
	scope_bulk("Server/select", 0, 0, 0, 0);
	scope_bulk("Server/insert", 0, 0, 0, 0);
	scope_done();
	return 0;
}
