/* SPDX-License-Identifier: MIT */
/*
 * wrapper.cc - a library in front of the allocator, as leak detectors, profilers and games have: its malloc
 * calls the next malloc, its operator new the next operator new, which is libstdc++'s and calls
 * malloc, which is the one of here again. Whatever the way, each call is one allocation.
 *
 * Built with -fno-optimize-sibling-calls it calls the next function, else it jumps there. With -DHELPER
 * a function of its own is between; with -DALIGNED aligned_alloc and posix_memalign are
 * made of memalign, and calloc of malloc; with -DBIG it is too large to be taken for an allocator. With
 * -DHOOK the program is asked at each malloc (nested.c).
 */
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

template <typename F> static F next(F &fn, const char *name)
{
	if (!fn)
		fn = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
	return fn;
}

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_memalign)(size_t, size_t);
static void *(*next_aligned)(size_t, size_t);
static int (*next_posix)(void **, size_t, size_t);
static void (*next_free)(void *);
static void *(*next_new)(size_t);
static void *(*next_new_array)(size_t);
static void (*next_delete)(void *);
static void (*next_delete_array)(void *);
/* dlsym() may allocate before the next calloc is known */
static char early[8192];
static size_t early_used;

static bool is_early(void *p)
{
	return static_cast<char *>(p) >= early && static_cast<char *>(p) < early + sizeof(early);
}

#ifdef BIG
/* what a library has that is more than a wrapper */
__asm__(".text\n.skip 300000, 0x90\n");
#endif

#ifdef HELPER
__attribute__((noinline)) static void *do_malloc(size_t size)
{
	void *p = next(next_malloc, "malloc")(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void *do_new(size_t size)
{
	void *p = next(next_new, "_Znwm")(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}
#else
#define do_malloc(size) next(next_malloc, "malloc")(size)
#define do_new(size) next(next_new, "_Znwm")(size)
#endif

#ifdef HOOK
extern "C" __attribute__((weak)) void wrapper_hook(size_t size);
#endif

EXPORT void *malloc(size_t size)
{
#ifdef HOOK
	if (wrapper_hook)
		wrapper_hook(size);
#endif
	return do_malloc(size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	return next(next_memalign, "memalign")(alignment, size);
}

#ifdef ALIGNED
EXPORT void *calloc(size_t cnt, size_t size)
{
	void *p = next(next_malloc, "malloc")(cnt * size);

	return p ? memset(p, 0, cnt * size) : p;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return next(next_memalign, "memalign")(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	*ret = next(next_memalign, "memalign")(alignment, size);
	return *ret ? 0 : ENOMEM;
}
#else
EXPORT void *calloc(size_t cnt, size_t size)
{
	static bool is_asking;

	if (!next_calloc && is_asking) {
		void *p = early + early_used;

		early_used += (cnt * size + 15) & ~size_t(15);
		return early_used <= sizeof(early) ? p : nullptr;
	}
	is_asking = !next_calloc;
	next(next_calloc, "calloc");
	is_asking = false;
	return next_calloc(cnt, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return next(next_aligned, "aligned_alloc")(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	return next(next_posix, "posix_memalign")(ret, alignment, size);
}
#endif

EXPORT void *realloc(void *p, size_t size)
{
	return next(next_realloc, "realloc")(p, size);
}

EXPORT void free(void *p)
{
	if (!is_early(p))
		next(next_free, "free")(p);
}

__attribute__((visibility("default"))) void *operator new(size_t size)
{
	return do_new(size);
}

__attribute__((visibility("default"))) void *operator new[](size_t size)
{
	return next(next_new_array, "_Znam")(size);
}

__attribute__((visibility("default"))) void operator delete(void *p) noexcept
{
	next(next_delete, "_ZdlPv")(p);
}

__attribute__((visibility("default"))) void operator delete[](void *p) noexcept
{
	next(next_delete_array, "_ZdaPv")(p);
}
