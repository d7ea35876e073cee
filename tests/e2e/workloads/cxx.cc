// SPDX-License-Identifier: MIT
// cxx.cc - operator new and delete in all their forms, containers, and exceptions that must stay
// catchable while the program is recorded. Works with any allocator in front of it; with
// E2E_NO_THROW it asks for nothing that cannot be had: mimalloc's C library ends the program then.
#include <sys/resource.h>

#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "ledger.h"

struct alignas(64) wide {
	char c[192];
};
struct counted { // has a destructor: new[] keeps the number of elements in front
	char c[41];
	~counted() { __asm__ volatile(""); }
};

static std::vector<void *> *no_elision;
static void escape(void *p) { __asm__ volatile("" : : "r"(p), "r"(no_elision) : "memory"); }

SITE void site_new()
{
	for (int i = 0; i < 11; i++)
		escape(led_alloc(__func__, new char[OPAQUE(1013UL)], 1013));
	for (int i = 0; i < 3; i++) {
		auto *p = new int64_t[OPAQUE(7UL)];
		led_alloc(__func__, p, 56);
		led_free(p);
		delete[] p;
	}
	auto *one = new int(5);
	led_alloc(__func__, one, sizeof(int));
	led_free(one);
	delete one; // sized
	led_alloc(__func__, ::operator new(OPAQUE(127UL)), 127);
}

SITE void site_new_array()
{
	counted *p = nullptr;

	for (int i = 0; i < 5; i++) {
		p = new counted[OPAQUE(13UL)];
		led_alloc(__func__, (char *)p - 8, 13 * sizeof(counted) + 8);
	}
	led_free((char *)p - 8);
	delete[] p;
}

SITE void site_new_nothrow()
{
	for (int i = 0; i < 7; i++) {
		auto *p = new (std::nothrow) char[OPAQUE(131UL)];
		escape(led_alloc(__func__, p, 131));
	}
	auto *q = new (std::nothrow) char[OPAQUE(139UL)];
	led_alloc(__func__, q, 139);
	led_free(q);
	operator delete[](q, std::nothrow);
}

SITE void site_new_nothrow_fail()
{
	if (!getenv("E2E_NO_THROW") && ::operator new(OPAQUE(1UL << 62), std::nothrow))
		led_die("cxx: a huge new succeeded\n");
	led_alloc(__func__, ::operator new(OPAQUE(137UL), std::nothrow), 137);
	led_skip_alloc(__func__); // inside, an exception is made and caught
}

SITE void site_new_aligned()
{
	wide *p = nullptr;

	for (int i = 0; i < 5; i++) {
		p = new wide;
		escape(led_alloc(__func__, p, sizeof(wide)));
	}
	led_free(p);
	delete p; // sized and aligned
	p = new wide[OPAQUE(3UL)];
	escape(led_alloc(__func__, p, 3 * sizeof(wide)));
	void *q = ::operator new(OPAQUE(8192UL), std::align_val_t(4096), std::nothrow);
	led_alloc(__func__, q, 8192);
	led_free(q);
	::operator delete(q, std::align_val_t(4096), std::nothrow);
}

// By its linkage name: clang declares it only with -fsized-deallocation.
extern "C" void _ZdlPvm(void *, size_t);
static void sized_delete(void *p, size_t size) { _ZdlPvm(p, size); }

SITE void site_sized_delete()
{
	for (int i = 0; i < 17; i++) {
		void *p = ::operator new(OPAQUE(149UL));
		led_alloc(__func__, p, 149);
		if (i % 4) {
			led_free(p);
			sized_delete(p, OPAQUE(149UL));
		}
	}
}

SITE std::vector<int> *site_vector()
{
	auto *v = new std::vector<int>;

	for (int i = 0; i < 10007; i++)
		v->push_back(i);
	led_alloc(__func__, v, sizeof(*v));
	led_alloc(__func__, v->data(), v->capacity() * sizeof(int));
	led_skip_alloc(__func__);
	return v;
}

SITE std::string *site_string()
{
	auto *s = new std::string;

	for (int i = 0; i < 1009; i++)
		s->append("abc");
	led_alloc(__func__, s, sizeof(*s));
	led_alloc(__func__, (void *)s->data(), s->capacity() + 1);
	led_skip_alloc(__func__);
	return s;
}

SITE std::map<int, int> *site_map()
{
	auto *m = new std::map<int, int>;

	for (int i = 0; i < 101; i++)
		(*m)[i] = i;
	for (int i = 0; i < 30; i++)
		m->erase(i * 3);
	led_alloc(__func__, m, sizeof(*m));
	led_bulk(__func__, sizeof(std::_Rb_tree_node<std::pair<const int, int>>), 101, 71);
	led_skip_alloc(__func__);
	return m;
}

SITE std::shared_ptr<wide> *site_make_unique()
{
	auto p = std::make_unique<char[]>(OPAQUE(151UL));

	escape(led_alloc(__func__, p.get(), 151));
	p.release();
	return nullptr;
}

// Exceptions. The sizes go from what an address space cannot hold to what only the limit set in
// main() forbids.
static int caught;

SITE void site_throwing(size_t size)
{
	try {
		escape(new char[OPAQUE(size)]);
		led_die("cxx: a huge new succeeded\n");
	} catch (const std::bad_alloc &) {
		caught++;
	}
	escape(led_alloc(__func__, new char[OPAQUE(157UL)], 157));
	led_skip_alloc(__func__); // the exception object may come from malloc
}

HELPER void throws_far(int depth, size_t size)
{
	std::string on_stack(100, 'x'); // needs a landing pad
	escape(&on_stack);
	if (depth)
		return throws_far(depth - 1, size);
	escape(::operator new(OPAQUE(size)));
}

SITE void site_catches_far(size_t size)
{
	try {
		throws_far(20, size);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	try {
		throw std::runtime_error("one that has nothing to do with memory");
	} catch (const std::exception &) {
		caught++;
	}
	escape(led_alloc(__func__, ::operator new(OPAQUE(163UL)), 163));
	led_skip_alloc(__func__);
}

static void limit(void)
{
	const char *mib = getenv("E2E_LIMIT_MIB");
	struct rlimit l;

	if (!mib)
		return;
	l.rlim_cur = l.rlim_max = strtoul(mib, NULL, 10) << 20;
	if (setrlimit(RLIMIT_AS, &l))
		led_die("cxx: no limit\n");
}

int main()
{
	static const size_t sizes[] = { (1UL << 62) - 4096, 1UL << 55, 1UL << 50, 1UL << 47 };
	char line[64];

	if (!getenv("E2E_LIMIT_LATE"))
		limit();
	e2e_ready();
	limit();
	site_new();
	site_new_array();
	site_new_nothrow();
	site_new_nothrow_fail();
	site_new_aligned();
	site_sized_delete();
	site_vector();
	site_string();
	site_map();
	site_make_unique();
	for (size_t size : sizes) {
		if (getenv("E2E_NO_THROW"))
			break;
		site_throwing(size);
		site_catches_far(size);
	}
	if (getenv("E2E_LIMIT_MIB")) {
		site_throwing(strtoul(getenv("E2E_LIMIT_MIB"), NULL, 10) << 20);
		site_catches_far(strtoul(getenv("E2E_LIMIT_MIB"), NULL, 10) << 20);
	}
	snprintf(line, sizeof(line), "CAUGHT %d\n", caught);
	e2e_say(line);
	e2e_done();
	return 0;
}
