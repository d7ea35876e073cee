/* SPDX-License-Identifier: MIT */
/*
 * entries.c - malloc, free and their kin in front of the program's allocator, for a library that is
 * preloaded or linked.
 *
 * The real functions are those of whatever comes next in the search order of the loader. Until they are known,
 * which is soon after the first call, pointers lead to functions that look for them; dlsym() may allocate
 * itself, and gets that from a small area that is never given back.
 *
 * operator new is malloc() here and, where that has nothing, the program's own, which throws or asks its
 * handler; so it is seen whatever allocator the program has, and once.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler.h"

#define EXPORT __attribute__((visibility("default")))
#define NEVER_INLINE __attribute__((noinline))

struct functions {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	void *(*reallocarray)(void *, size_t, size_t);
};

static struct functions real;

/*
 * Before the real ones are known.
 */

#define AREA_BYTES (16 << 10)
#define AREA_ALIGN 16
static char area[AREA_BYTES] __attribute__((aligned(AREA_ALIGN)));
static size_t area_used;
static pid_t looking_tid; /* who looks for them; 0: nobody */
static bool is_known;

static bool is_in_area(const void *ptr)
{
	return (const char *)ptr >= area && (const char *)ptr < area + sizeof(area);
}

static void *from_area(size_t bytes)
{
	size_t size = (bytes + AREA_ALIGN - 1) & ~(size_t)(AREA_ALIGN - 1);
	size_t at = __atomic_fetch_add(&area_used, size + AREA_ALIGN, __ATOMIC_RELAXED);

	if (bytes > sizeof(area) || at + size + AREA_ALIGN > sizeof(area)) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(area + at, &bytes, sizeof(bytes)); /* for realloc() */
	heaptap_sampler_mark(area + at + AREA_ALIGN);
	return area + at + AREA_ALIGN;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* false: this thread is looking already. */
static bool look(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid), nobody = 0;
	struct functions found;

	if (__atomic_load_n(&is_known, __ATOMIC_ACQUIRE))
		return true;
	if (__atomic_load_n(&looking_tid, __ATOMIC_RELAXED) == tid)
		return false;
	while (!__atomic_compare_exchange_n(&looking_tid, &nobody, tid, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&is_known, __ATOMIC_ACQUIRE))
			return true;
		nobody = 0;
		syscall(SYS_sched_yield);
	}
	found.malloc = next("malloc");
	found.free = next("free");
	found.calloc = next("calloc");
	found.realloc = next("realloc");
	found.memalign = next("memalign");
	found.posix_memalign = next("posix_memalign");
	found.aligned_alloc = next("aligned_alloc");
	found.valloc = next("valloc");
	found.pvalloc = next("pvalloc");
	found.reallocarray = next("reallocarray");
	real = found;
	__atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
	__atomic_store_n(&looking_tid, 0, __ATOMIC_SEQ_CST);
	return true;
}

static void *first_malloc(size_t bytes)
{
	return look() ? real.malloc(bytes) : from_area(bytes);
}

static void first_free(void *ptr)
{
	if (look())
		real.free(ptr);
}

static void *first_calloc(size_t cnt, size_t bytes)
{
	return look() ? real.calloc(cnt, bytes) : from_area(cnt * bytes); /* it is zeroed */
}

static void *first_realloc(void *ptr, size_t bytes)
{
	return look() ? real.realloc(ptr, bytes) : from_area(bytes);
}

static void *first_memalign(size_t align, size_t bytes)
{
	return look() ? real.memalign(align, bytes) : NULL;
}

static int first_posix_memalign(void **ret, size_t align, size_t bytes)
{
	return look() ? real.posix_memalign(ret, align, bytes) : ENOMEM;
}

static void *first_aligned_alloc(size_t align, size_t bytes)
{
	return look() ? real.aligned_alloc(align, bytes) : NULL;
}

static void *first_valloc(size_t bytes)
{
	return look() ? real.valloc(bytes) : NULL;
}

static void *first_pvalloc(size_t bytes)
{
	return look() ? real.pvalloc(bytes) : NULL;
}

static void *first_reallocarray(void *ptr, size_t cnt, size_t bytes)
{
	return look() ? real.reallocarray(ptr, cnt, bytes) : NULL;
}

static struct functions real = {
	first_malloc,	      first_free,	   first_calloc, first_realloc, first_memalign,
	first_posix_memalign, first_aligned_alloc, first_valloc, first_pvalloc, first_reallocarray,
};

__attribute__((constructor)) static void look_early(void)
{
	look();
}

/*
 * Those that allocate. Each has a short way, which nearly every call takes, and one for a block whose bytes end
 * the thread's interval. The allocator may call us in turn meanwhile: is_busy.
 */

#define PASSES(bytes) SAMPLER_LIKELY(sampler_is_asleep() || sampler_passes(bytes))

/* The call, sampled if it comes to that. */
#define SAMPLED(bytes, call)                                       \
	({                                                         \
		bool is_kept_ = heaptap_sampler_take(bytes);       \
		void *ptr_;                                        \
                                                                   \
		sampler_me.is_busy |= is_kept_;                    \
		ptr_ = (call);                                     \
		if (is_kept_) {                                    \
			sampler_me.is_busy = false;                \
			if (ptr_)                                  \
				heaptap_sampler_keep(ptr_, bytes); \
		}                                                  \
		ptr_;                                              \
	})

static NEVER_INLINE void *heaptap_sampler_malloc(size_t bytes)
{
	return SAMPLED(bytes, real.malloc(bytes));
}

EXPORT void *malloc(size_t bytes)
{
	return PASSES(bytes) ? real.malloc(bytes) : heaptap_sampler_malloc(bytes);
}

static NEVER_INLINE void *heaptap_sampler_calloc(size_t cnt, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(cnt, bytes, &all))
		return real.calloc(cnt, bytes);
	return SAMPLED(all, real.calloc(cnt, bytes));
}

EXPORT void *calloc(size_t cnt, size_t bytes)
{
	size_t all;

	if (SAMPLER_LIKELY(sampler_is_asleep()))
		return real.calloc(cnt, bytes);
	if (!__builtin_mul_overflow(cnt, bytes, &all) && sampler_passes(all))
		return real.calloc(cnt, bytes);
	return heaptap_sampler_calloc(cnt, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes)
{
	return PASSES(bytes) ? real.memalign(align, bytes) :
			       SAMPLED(bytes, real.memalign(align, bytes));
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	return PASSES(bytes) ? real.aligned_alloc(align, bytes) :
			       SAMPLED(bytes, real.aligned_alloc(align, bytes));
}

EXPORT void *valloc(size_t bytes)
{
	return PASSES(bytes) ? real.valloc(bytes) : SAMPLED(bytes, real.valloc(bytes));
}

EXPORT void *pvalloc(size_t bytes)
{
	return PASSES(bytes) ? real.pvalloc(bytes) : SAMPLED(bytes, real.pvalloc(bytes));
}

EXPORT int posix_memalign(void **ret, size_t align, size_t bytes)
{
	int err = 0;

	if (PASSES(bytes))
		return real.posix_memalign(ret, align, bytes);
	(void)SAMPLED(bytes, (err = real.posix_memalign(ret, align, bytes)) ? NULL : *ret);
	return err;
}

/*
 * Those that free.
 */

static NEVER_INLINE void heaptap_sampler_free(void *ptr)
{
	size_t bytes;

	if (is_in_area(ptr))
		return;
	heaptap_sampler_drop(ptr, &bytes);
	real.free(ptr);
}

EXPORT void free(void *ptr)
{
	if (SAMPLER_LIKELY(sampler_is_empty() || !sampler_may_have(ptr)))
		real.free(ptr);
	else
		heaptap_sampler_free(ptr);
}

static void *leave_area(void *ptr, size_t bytes)
{
	size_t old_bytes;
	void *fresh = malloc(bytes);

	memcpy(&old_bytes, (char *)ptr - AREA_ALIGN, sizeof(old_bytes));
	if (fresh)
		memcpy(fresh, ptr, old_bytes < bytes ? old_bytes : bytes);
	return fresh;
}

#define ADDRESS_SPACE_BYTES (1ULL << 47)

/* Its end is told before the call, for the address may be another thread's right after. If the call fails the
 * block is still there, and that is told too. */
static NEVER_INLINE void *heaptap_sampler_realloc(void *ptr, size_t bytes)
{
	bool was_kept, is_kept;
	size_t old_bytes = 0;
	void *fresh;

	if (is_in_area(ptr))
		return leave_area(ptr, bytes);
	if (bytes >= ADDRESS_SPACE_BYTES)
		return real.realloc(ptr, bytes); /* it can only fail */
	was_kept = heaptap_sampler_drop(ptr, &old_bytes);
	is_kept = !sampler_is_asleep() && !sampler_passes(bytes) && heaptap_sampler_take(bytes);
	sampler_me.is_busy |= is_kept;
	fresh = real.realloc(ptr, bytes);
	if (is_kept)
		sampler_me.is_busy = false;
	if (fresh && is_kept)
		heaptap_sampler_keep(fresh, bytes);
	if (!fresh && bytes && was_kept)
		heaptap_sampler_keep(ptr, old_bytes);
	return fresh;
}

EXPORT void *realloc(void *ptr, size_t bytes)
{
	if (SAMPLER_LIKELY(sampler_is_empty()))
		return real.realloc(ptr, bytes);
	if (!sampler_may_have(ptr) && PASSES(bytes))
		return real.realloc(ptr, bytes);
	return heaptap_sampler_realloc(ptr, bytes);
}

EXPORT void *reallocarray(void *ptr, size_t cnt, size_t bytes)
{
	size_t all;

	if (SAMPLER_LIKELY(sampler_is_empty()) || __builtin_mul_overflow(cnt, bytes, &all))
		return real.reallocarray(ptr, cnt, bytes);
	return realloc(ptr, all);
}

/*
 * C++. Their linkage names; size_t is unsigned long.
 */

#define NEW(name, params, args, call)               \
	EXPORT void *name params;                   \
	EXPORT void *name params                    \
	{                                           \
		void *(*own)params;                 \
		void *ptr = call;                   \
                                                    \
		if (SAMPLER_LIKELY(ptr != NULL))    \
			return ptr;                 \
		own = (void *(*)params)next(#name); \
		return own ? own args : NULL;       \
	}

#define DELETE(name, params)     \
	EXPORT void name params; \
	EXPORT void name params  \
	{                        \
		free(ptr);       \
	}

#define UNUSED __attribute__((unused))
#define AT_LEAST_1(bytes) ((bytes) ? (bytes) : 1)

NEW(_Znwm, (size_t bytes), (bytes), malloc(AT_LEAST_1(bytes)))
NEW(_Znam, (size_t bytes), (bytes), malloc(AT_LEAST_1(bytes)))
NEW(_ZnwmRKSt9nothrow_t, (size_t bytes, const void *tag), (bytes, tag), malloc(AT_LEAST_1(bytes)))
NEW(_ZnamRKSt9nothrow_t, (size_t bytes, const void *tag), (bytes, tag), malloc(AT_LEAST_1(bytes)))
NEW(_ZnwmSt11align_val_t, (size_t bytes, size_t align), (bytes, align),
    memalign(align, AT_LEAST_1(bytes)))
NEW(_ZnamSt11align_val_t, (size_t bytes, size_t align), (bytes, align),
    memalign(align, AT_LEAST_1(bytes)))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t align, const void *tag),
    (bytes, align, tag), memalign(align, AT_LEAST_1(bytes)))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t align, const void *tag),
    (bytes, align, tag), memalign(align, AT_LEAST_1(bytes)))

DELETE(_ZdlPv, (void *ptr))
DELETE(_ZdaPv, (void *ptr))
DELETE(_ZdlPvm, (void *ptr, size_t bytes UNUSED))
DELETE(_ZdaPvm, (void *ptr, size_t bytes UNUSED))
DELETE(_ZdlPvRKSt9nothrow_t, (void *ptr, const void *tag UNUSED))
DELETE(_ZdaPvRKSt9nothrow_t, (void *ptr, const void *tag UNUSED))
DELETE(_ZdlPvSt11align_val_t, (void *ptr, size_t align UNUSED))
DELETE(_ZdaPvSt11align_val_t, (void *ptr, size_t align UNUSED))
DELETE(_ZdlPvmSt11align_val_t, (void *ptr, size_t bytes UNUSED, size_t align UNUSED))
DELETE(_ZdaPvmSt11align_val_t, (void *ptr, size_t bytes UNUSED, size_t align UNUSED))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
       (void *ptr, size_t align UNUSED, const void *tag UNUSED))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
       (void *ptr, size_t align UNUSED, const void *tag UNUSED))
