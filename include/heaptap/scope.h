/* SPDX-License-Identifier: MIT */
/*
 * heaptap/scope.h - says what the memory is for. One header, C11 and C++11 or later, nothing to
 * link, Linux on x86-64 and arm64 with glibc or musl; elsewhere, and with HEAPTAP_DISABLE defined,
 * everything here compiles to nothing.
 *
 *	#include <heaptap/scope.h>
 *
 *	void load(struct tenant *t)
 *	{
 *		HEAPTAP_SCOPE("Cache", "Index");	// until the end of the block
 *		HEAPTAP_LABEL("tenant", t->name);
 *		...
 *	}						// the scope of the caller again
 *
 * A *scope* is a path of names, "Cache/Index". Each thread has a current one. heaptap(1), attached
 * from outside, reads it when it samples an allocation and reports the live heap by scope: a block
 * belongs to the scope that was current when it was *allocated*, whoever frees it, until it is
 * freed. Without heaptap nothing but this header runs: no thread, no file, no signal handler.
 *
 * Four things to say
 * ------------------
 *  tag	a name in the path: a subsystem, a phase, a kind of query. HEAPTAP_SCOPE, heaptap_push
 *  label	a key and a value that stand beside the path: tenant=acme. HEAPTAP_LABEL
 *  task	a tag with *instances*: many things of one kind that begin and end, such as queries,
 *	connections or jobs, each a number. heaptap_task, heaptap_enter, heaptap_task_exit.
 *	Blocks that an instance has not freed at its end are reported as in use after exit
 *  pause	allocations that shall not be recorded at all. HEAPTAP_PAUSED, heaptap_pause_all
 * Every path that was ever entered stays in a table until the process ends. So names and labels
 * are for what is few (thousands); what is many (requests, users, addresses) is an instance.
 *
 * Which form
 * ----------
 *	C block		HEAPTAP_SCOPE("a", "b");		ended by the compiler (cleanup)
 *	C++ block	the same, or heaptap::scope s(name);	ended by the destructor
 *	by hand		HEAPTAP_PUSH("a"); ... heaptap_pop();	for what is no block
 *	task		heaptap_node n = heaptap_task("query");	under the current scope
 *			heaptap_state s = heaptap_enter(n, 17); ... heaptap_leave(s);	any number of
 *			times, on any thread; at last heaptap_task_exit(n, 17);
 *	C block in one	{ HEAPTAP_TASK("query", 17); ... }	does not end the instance, which may go on in
 *			another block: heaptap_task_exit(heaptap_task("query"), 17); behind the last one does,
 *			in the same scope and below the same labels
 *	elsewhere	heaptap_state s = heaptap_get();	in the thread that hands work over
 *			heaptap_state o = heaptap_set(s); ... heaptap_set(o);	in the one that does it
 * The state is 24 bytes of plain data. A thread pool stores it beside the job, a coroutine or a
 * fibre gets its own back each time it is resumed. A new thread begins with no scope.
 * longjmp() and the end of a thread skip the ends of C blocks: use get and set around a setjmp().
 *
 * Cost
 * ----
 * A static tag, or path of several: 1 ns in and out as a block, 2 to 4 ns by hand (a pop has to look
 * up where it comes to). Entering and leaving a task: 1 to 2 ns. A name or label that is not a
 * literal: its hash and a look-up, 20 to 30 ns. No system call, no malloc and no lock in these; the
 * first time of a path takes a small lock, copies the name into memory of this header's own and
 * perhaps maps more of it. Memory: 170 KB of untouched .bss, 32 bytes of TLS per thread, 32 bytes and
 * the name per path, at most 8 MiB of paths and 16 MiB of names.
 *
 * Threads, signals, fork
 * ----------------------
 * Everything acts on the calling thread only, except heaptap_pause_all(), and may be called from
 * any thread at any time, from signal handlers too. A handler leaves the scope as it found it if
 * its pushes and pops are paired. A child after fork() goes on with its copy; between vfork() and
 * exec nothing of this may be called. No function changes errno, throws or fails.
 *
 * What cannot go wrong
 * --------------------
 * No misuse crashes or loses bytes; it is counted, and the count is in heaptap's report:
 *  overflows	the tables are full (245 760 paths, 16 MiB of names) or memory was refused: the bytes
 *		go to a child "(other)" of the current scope. Or a new path was met by a signal handler
 *		that interrupted the making of another one in its thread: they go to the current scope
 *  truncations	a path deeper than 64: the bytes go to its ancestor of depth 64
 *  underflows	a pop without a push, or one that would leave a task: nothing happens
 * Pops after an overflow or a truncation come back to where the push was (up to a depth of 65 535;
 * blocks always do). A name or value longer than 255 bytes is cut at a character of UTF-8 and
 * flagged; two that agree so far are one. An empty or null one is "(empty)". Names may hold any
 * byte; a '/' within one is shown as "\/".
 *
 * Several files, several libraries
 * --------------------------------
 * All translation units of one executable or library, C or C++, share one table and one record per
 * thread. Two libraries of one process have two, and a path does not go on across them: the inner
 * one does not see the outer's. Of several that are in a scope at once heaptap takes the one that
 * it knew first. It reads up to eight; a library that is opened later is known some milliseconds
 * after that.
 *
 * heaptap finds them by ELF notes, which strip keeps and llvm-strip --strip-all does not
 * (llvm-strip --strip-unneeded does).
 *
 * The record is initial-exec TLS. A library that programs may dlopen() many of, or that a musl
 * program dlopens, is compiled with -DHEAPTAP_SCOPE_REGISTRY (the default for -fPIC code when the C
 * library is not glibc), all of it: a table from thread to record instead, at most 4096 threads, and
 * 15 ns in and out. On glibc the first use in a thread may then allocate.
 *
 * With clang's ThinLTO and lld each unit that has this header costs 32 bytes of TLS per thread and
 * 160 KB of .bss that nobody touches. With many, define HEAPTAP_SCOPE_EXTERN in all units but one;
 * also when clang's LTO and GNU ld link units with and without LTO: then in those with.
 */
#ifndef HEAPTAP_SCOPE_H
#define HEAPTAP_SCOPE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__linux__) || !defined(__LP64__) || !defined(__GNUC__) || \
	!(defined(__x86_64__) || defined(__AARCH64EL__))
#undef HEAPTAP_DISABLE
#define HEAPTAP_DISABLE 1
#endif

/* The current scope of a thread: copy it, keep it, give it to another thread of the same program. */
typedef struct heaptap_state {
	uint64_t scope; /* bits 0-31 node, 32 paused, 33 truncated, 48-63 depth */
	uint64_t instance;
	uint64_t kv; /* 0, or the address of a thread-context record of OpenTelemetry's format */
} heaptap_state;

/* A path that can be entered: what heaptap_task() returns. Valid in the whole process, for ever. */
typedef uint64_t heaptap_node;

#ifndef HEAPTAP_DISABLE

#if !defined(HEAPTAP_SCOPE_REGISTRY) && defined(__PIC__) && !defined(__PIE__) && !defined(__GLIBC__)
#define HEAPTAP_SCOPE_REGISTRY 1
#endif

#ifdef __cplusplus
#define HEAPTAP_ASSERT_(what, why) static_assert(what, why)
#define HEAPTAP_FN_ __attribute__((visibility("hidden"), unused)) inline
/* Out of line: never reached while paths are known. */
#define HEAPTAP_SLOW_ __attribute__((visibility("hidden"), unused, noinline, cold)) inline
#else
#define HEAPTAP_ASSERT_(what, why) _Static_assert(what, why)
#define HEAPTAP_FN_ __attribute__((unused)) static inline
#define HEAPTAP_SLOW_ __attribute__((unused, noinline, cold)) static
#endif
#define HEAPTAP_ALWAYS_ __attribute__((always_inline)) HEAPTAP_FN_
#define HEAPTAP_HIDDEN_ __attribute__((visibility("hidden")))
#define HEAPTAP_LIKELY_(x) (__builtin_expect(!!(x), 1) != 0)

/*
 * What heaptap reads
 * ------------------
 * The record of a thread is three words of TLS (struct heaptap_state and a zero), written by its
 * thread only and read by BPF on the same thread, inside its call of malloc. The rest is in the
 * descriptor; its place is known from the USDT note whose semaphore it is.
 */
struct heaptap_node_ {
	uint32_t parent; /* less than its own id; 0 is the root, which has no name */
	uint16_t kind; /* HEAPTAP_TAG_... */
	uint16_t flags; /* 1: name cut, 2: value cut */
	uint64_t name_addr;
	uint64_t value_addr;
	uint16_t name_len;
	uint16_t value_len;
	uint32_t hash;
};
HEAPTAP_ASSERT_(sizeof(struct heaptap_node_) == 32, "a node of version 1 has 32 bytes");

struct heaptap_descriptor_ {
	uint16_t semaphore; /* the kernel's: how many probes are on our USDTs */
	uint16_t major_version, minor_version;
	uint16_t descriptor_bytes;
	char magic[8];
	uint16_t record_bytes, node_bytes;
	uint8_t tls_mode; /* 0 not ready, 1 offset from the thread pointer, 3 registry */
	uint8_t pointer_bytes;
	uint16_t flags; /* 1: everybody is paused */
	int64_t tls_off; /* &record - thread pointer */
	uint64_t dtv_module, dtv_off;
	uint32_t node_cap;
	uint32_t node_cnt; /* the root included */
	uint32_t chunk_shift;
	uint32_t overflows;
	uint64_t kv_keys_addr;
	uint32_t underflows, truncations;
	uint32_t pid; /* of the process that added to the table last */
	uint32_t epoch; /* +1 for every fork in between */
	uint64_t registry_addr;
	uint64_t reserved[4];
	uint64_t chunk_addr[64];
};
HEAPTAP_ASSERT_(sizeof(struct heaptap_descriptor_) == 640, "a descriptor of version 1: 640 bytes");
HEAPTAP_ASSERT_(offsetof(struct heaptap_descriptor_, chunk_addr) == 128, "chunks begin at 128");

#define HEAPTAP_TAG_ 1
#define HEAPTAP_LABEL_ 2
#define HEAPTAP_TASK_ 3
#define HEAPTAP_OTHER_ 4

#define HEAPTAP_PAUSED_BIT_ (UINT64_C(1) << 32)
#define HEAPTAP_TRUNCATED_BIT_ (UINT64_C(1) << 33)
#define HEAPTAP_DEPTH_ONE_ (UINT64_C(1) << 48)
#define HEAPTAP_DEPTH_CAP_ 64
#define HEAPTAP_NODE_ID_(word) ((uint32_t)(word))
#define HEAPTAP_DEPTH_(word) ((uint32_t)((word) >> 48))

#define HEAPTAP_CHUNK_SHIFT_ 12
#define HEAPTAP_NODES_CAP_ (64U << HEAPTAP_CHUNK_SHIFT_)
/* The last nodes are for "(other)" below those paths that had more names than there was room. */
#define HEAPTAP_OTHERS_ 16384U
#define HEAPTAP_NAMES_BYTES_ (UINT64_C(16) << 20)

/*
 * What only this header reads. Who changes it changes the number in its name, so that two versions
 * of the header in one program do not meet.
 */
struct heaptap_pool_ {
	uint64_t lock; /* 0, or who interns: see heaptap_lock_() */
	uint64_t instance_cnt;
	uint64_t announced;
	uint64_t names_bytes; /* mapped for names */
	char *names, *names_end; /* what is left of the last mapping */
	uint32_t *index; /* [0] = mask, then mask + 1 ids, 0 = free; by hash, at most half full */
	char other[8]; /* "(other)" */
	struct heaptap_node_ node[1U << HEAPTAP_CHUNK_SHIFT_];
	uint32_t first_index[1 + 8192 + 15];
};
HEAPTAP_ASSERT_(sizeof(struct heaptap_pool_) == 163968, "as in the assembly below");

/*
 * Why assembly
 * ------------
 * The descriptor, the record, the pool and the probes exist once per linked object, however many
 * translation units in C and C++ have this header. C has no way to say that: of weak definitions
 * every loser's copy stays in the file (32 bytes of *TLS* each, enough to exhaust the room for
 * dlopened libraries), and the notes of dead copies would be found. One COMDAT group says it, keeps
 * all of it or nothing under --gc-sections, and does not depend on what a compiler makes of a weak
 * thread-local.
 *
 * Link-time optimization puts the assembly of all units into one file: .ifndef. Of units that are
 * not prevailing LLVM drops the label alone, so that it is not defined in the next line: .ifdef. In
 * its ThinLTO lld takes no notice of groups at all: the symbols are one, their storage and the notes
 * (which are equal then) are there for every unit. HEAPTAP_SCOPE_EXTERN in all units but one helps.
 *
 * A note of .note.stapsdt is: address of the probe, address of .stapsdt.base, address of the
 * semaphore, provider, name, arguments. That is the format of SystemTap's sdt.h, which may be
 * included in the same file.
 */
#if defined(__x86_64__)
#define HEAPTAP_ARGS_1_ "8@%rdi"
#define HEAPTAP_ARGS_2_ "8@%rdi 8@%rsi"
#define HEAPTAP_ARGS_3_ "8@%rdi 8@%rsi 8@%rdx"
#else
#define HEAPTAP_ARGS_1_ "8@x0"
#define HEAPTAP_ARGS_2_ "8@x0 8@x1"
#define HEAPTAP_ARGS_3_ "8@x0 8@x1 8@x2"
#endif

/* A function that does nothing but stand somewhere, and the note that says where. */
#define HEAPTAP_PROBE_(name, args)                                                     \
	".pushsection .text.heaptap_scope,\"axG\",@progbits,heaptap_scope_v1,comdat\n" \
	".weak heaptap_scope_" name "\n"                                               \
	".hidden heaptap_scope_" name "\n"                                             \
	".type heaptap_scope_" name ", @function\n"                                    \
	"heaptap_scope_" name ":\n"                                                    \
	"nop\n"                                                                        \
	"ret\n"                                                                        \
	".popsection\n"                                                                \
	".pushsection .note.stapsdt,\"G\",@note,heaptap_scope_v1,comdat\n"             \
	".balign 4\n"                                                                  \
	".4byte 8, 992f - 991f, 3\n"                                                   \
	".asciz \"stapsdt\"\n"                                                         \
	"991: .8byte heaptap_scope_" name ", _.stapsdt.base, heaptap_scope_v1\n"       \
	".asciz \"heaptap\"\n"                                                         \
	".asciz \"" name "\"\n"                                                        \
	".asciz \"" args "\"\n"                                                        \
	"992: .balign 4\n"                                                             \
	".popsection\n"

#ifndef HEAPTAP_SCOPE_EXTERN
__asm__(".ifndef _.stapsdt.base\n"
	".pushsection .stapsdt.base,\"aG\",@progbits,.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n"
	".endif\n");

__asm__(".ifndef heaptap_scope_v1\n"
	".pushsection .probes,\"awG\",@progbits,heaptap_scope_v1,comdat\n"
	".balign 64\n"
	".weak heaptap_scope_v1\n"
	".hidden heaptap_scope_v1\n"
	"heaptap_scope_v1:\n"
	".ifdef heaptap_scope_v1\n"
	".type heaptap_scope_v1, @object\n"
	".size heaptap_scope_v1, 640\n"
	".2byte 0, 1, 0, 640\n"
	".asciz \"HEAPTAP\"\n"
	".2byte 32, 32\n"
	".byte 0, 8\n"
	".2byte 0\n"
	".8byte 0, 0, 0\n"
	".4byte 262144, 1, 12, 0\n"
	".zero 576\n"
	".pushsection .tbss.heaptap_scope,\"awTG\",@nobits,heaptap_scope_v1,comdat\n"
	".balign 16\n"
	".weak heaptap_scope_record_v1\n"
	".hidden heaptap_scope_record_v1\n"
	".type heaptap_scope_record_v1, @tls_object\n"
	".size heaptap_scope_record_v1, 32\n"
	"heaptap_scope_record_v1: .zero 32\n"
	".popsection\n"
	".pushsection .bss.heaptap_scope,\"awG\",@nobits,heaptap_scope_v1,comdat\n"
	".balign 64\n"
	".weak heaptap_scope_pool_v1\n"
	".hidden heaptap_scope_pool_v1\n"
	".type heaptap_scope_pool_v1, @object\n"
	".size heaptap_scope_pool_v1, 163968\n"
	"heaptap_scope_pool_v1: .zero 163968\n"
	".popsection\n" HEAPTAP_PROBE_("tls_v1", HEAPTAP_ARGS_1_)
		HEAPTAP_PROBE_("node", HEAPTAP_ARGS_2_)
			HEAPTAP_PROBE_("task_exit", HEAPTAP_ARGS_3_) ".endif\n"
								     ".popsection\n"
								     ".endif\n");
#endif

#ifdef __cplusplus
extern "C" {
#endif
extern HEAPTAP_HIDDEN_ struct heaptap_descriptor_ heaptap_scope_v1;
extern HEAPTAP_HIDDEN_ struct heaptap_pool_ heaptap_scope_pool_v1;
/* Their arguments are where the notes say because that is the calling convention. */
HEAPTAP_HIDDEN_ void heaptap_scope_tls_v1(const struct heaptap_descriptor_ *descriptor);
HEAPTAP_HIDDEN_ void heaptap_scope_node(uint64_t id, const struct heaptap_node_ *node);
HEAPTAP_HIDDEN_ void heaptap_scope_task_exit(uint64_t id, uint64_t instance,
					     const struct heaptap_descriptor_ *descriptor);
#ifdef __cplusplus
}
#endif

/*
 * Why the record is read and written in assembly
 * ----------------------------------------------
 * A compiler that knows malloc() knows that it does not look at our variables: without a fence
 * `scope = 7; p = malloc(n); scope = 0;` loses its first store at -O2. And it may keep the address
 * of a thread-local across a call that, in a coroutine or a fibre, returns on another thread. Each
 * access here is one instruction that takes the thread pointer as it is then, and each store a fence.
 */
#ifdef HEAPTAP_SCOPE_REGISTRY
#define HEAPTAP_LOAD_(base, off) (*(volatile uint64_t *)((base) + (off)))
#define HEAPTAP_STORE_(base, off, v)                          \
	do {                                                  \
		__asm__ volatile("" ::: "memory");            \
		*(volatile uint64_t *)((base) + (off)) = (v); \
		__asm__ volatile("" ::: "memory");            \
	} while (0)
#elif defined(__x86_64__)
#define HEAPTAP_LOAD_(base, off)                                                                  \
	__extension__({                                                                           \
		uint64_t loaded_;                                                                 \
		__asm__ volatile("mov{q}\t{%%fs:" #off "(%1), %0|%0, QWORD PTR fs:[%1+" #off "]}" \
				 : "=r"(loaded_)                                                  \
				 : "r"(base));                                                    \
		loaded_;                                                                          \
	})
#define HEAPTAP_STORE_(base, off, v)                                                      \
	__asm__ volatile("mov{q}\t{%1, %%fs:" #off "(%0)|QWORD PTR fs:[%0+" #off "], %1}" \
			 :                                                                \
			 : "r"(base), "r"((uint64_t)(v))                                  \
			 : "memory")
#else
#define HEAPTAP_LOAD_(base, off)                                           \
	__extension__({                                                    \
		uint64_t loaded_;                                          \
		__asm__ volatile("mrs %0, tpidr_el0\n\tadd %0, %0, %1\n\t" \
				 "ldr %0, [%0, #" #off "]"                 \
				 : "=&r"(loaded_)                          \
				 : "r"(base));                             \
		loaded_;                                                   \
	})
#define HEAPTAP_STORE_(base, off, v)                                       \
	do {                                                               \
		uint64_t at_;                                              \
		__asm__ volatile("mrs %0, tpidr_el0\n\tadd %0, %0, %1\n\t" \
				 "str %2, [%0, #" #off "]"                 \
				 : "=&r"(at_)                              \
				 : "r"(base), "r"((uint64_t)(v))           \
				 : "memory");                              \
	} while (0)
#endif
#define HEAPTAP_SCOPE_OFF_ 0
#define HEAPTAP_INSTANCE_OFF_ 8
#define HEAPTAP_KV_OFF_ 16

/* System calls by hand: no errno to keep, no feature macro to ask for, no function to interpose. */
#if defined(__x86_64__)
#define HEAPTAP_SYS_MMAP_ 9
#define HEAPTAP_SYS_YIELD_ 24
#define HEAPTAP_SYS_GETPID_ 39
#define HEAPTAP_SYS_GETTID_ 186
#else
#define HEAPTAP_SYS_MMAP_ 222
#define HEAPTAP_SYS_YIELD_ 124
#define HEAPTAP_SYS_GETPID_ 172
#define HEAPTAP_SYS_GETTID_ 178
#endif
HEAPTAP_SLOW_ long heaptap_syscall_(long number, unsigned long bytes)
{
	/* the arguments of mmap(NULL, bytes, ...) of private zeroes; the others take none */
#if defined(__x86_64__)
	register long flags __asm__("r10") = 0x4022, fd __asm__("r8") = -1, off __asm__("r9") = 0;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(0L), "S"(bytes), "d"(3L), "r"(flags), "r"(fd), "r"(off)
			 : "rcx", "r11", "memory");
	return ret;
#else
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = 0;
	register long x1 __asm__("x1") = (long)bytes, x2 __asm__("x2") = 3;
	register long x3 __asm__("x3") = 0x4022, x4 __asm__("x4") = -1, x5 __asm__("x5") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

HEAPTAP_SLOW_ void *heaptap_map_(unsigned long bytes)
{
	long addr = heaptap_syscall_(HEAPTAP_SYS_MMAP_, bytes);

	return addr < 0 && addr > -4096 ? NULL : (void *)addr;
}

HEAPTAP_SLOW_ void heaptap_count_(uint32_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#ifdef HEAPTAP_SCOPE_REGISTRY
/*
 * Mode 3, for libraries whose TLS is not at one offset in all threads: a table from thread id to the
 * address of its record. A thread enters itself at its first push and leaves when it ends, by the
 * destructor of a key, so that the next thread of its number does not inherit what was unmapped.
 */
#include <pthread.h>
#define HEAPTAP_REGISTRY_SHIFT_ 12
#define HEAPTAP_REGISTRY_PROBES_ 16
#define HEAPTAP_TID_LEFT_ UINT32_C(0xfffffffe) /* may be taken, but the search goes on */
#define HEAPTAP_TID_COMING_ UINT32_C(0xffffffff)
struct heaptap_registry_ {
	uint32_t version, shift;
	uint64_t reserved;
	struct {
		uint32_t tid; /* 0: free */
		uint32_t reserved;
		uint64_t record_addr;
	} slot[1U << HEAPTAP_REGISTRY_SHIFT_];
};
HEAPTAP_ASSERT_(sizeof(struct heaptap_registry_) == 65552, "as in the assembly below");
/* State of the thread beside its record, and the key, which the table does not hold. */
struct heaptap_registered_ {
	uint32_t tid; /* 0: not yet */
	uint32_t slot;
};
#ifndef HEAPTAP_SCOPE_EXTERN
__asm__(".ifndef heaptap_scope_registry_v1\n"
	".pushsection .bss.heaptap_registry,\"awG\",@nobits,heaptap_scope_registry_v1,comdat\n"
	".balign 64\n"
	".weak heaptap_scope_registry_v1\n"
	".hidden heaptap_scope_registry_v1\n"
	".type heaptap_scope_registry_v1, @object\n"
	".size heaptap_scope_registry_v1, 65552\n"
	"heaptap_scope_registry_v1: .zero 65552\n"
	".weak heaptap_scope_key_v1\n"
	".hidden heaptap_scope_key_v1\n"
	".type heaptap_scope_key_v1, @object\n"
	".size heaptap_scope_key_v1, 8\n"
	"heaptap_scope_key_v1: .zero 8\n"
	".popsection\n"
	".pushsection .tbss.heaptap_registry,\"awTG\",@nobits,heaptap_scope_registry_v1,comdat\n"
	".balign 8\n"
	".weak heaptap_scope_registered_v1\n"
	".hidden heaptap_scope_registered_v1\n"
	".type heaptap_scope_registered_v1, @tls_object\n"
	".size heaptap_scope_registered_v1, 8\n"
	"heaptap_scope_registered_v1: .zero 8\n"
	".popsection\n"
	".endif\n");
#endif
#ifdef __cplusplus
extern "C" {
#endif
extern HEAPTAP_HIDDEN_ struct heaptap_registry_ heaptap_scope_registry_v1;
extern HEAPTAP_HIDDEN_ uint64_t heaptap_scope_key_v1; /* a pthread_key_t + 1 */
extern HEAPTAP_HIDDEN_ __thread heaptap_state heaptap_scope_record_v1;
extern HEAPTAP_HIDDEN_ __thread struct heaptap_registered_ heaptap_scope_registered_v1;
#ifdef __cplusplus
}
#endif

HEAPTAP_SLOW_ void heaptap_unregister_(void *unused)
{
	struct heaptap_registered_ *mine = &heaptap_scope_registered_v1;

	(void)unused;
	if (mine->tid && mine->slot < 1U << HEAPTAP_REGISTRY_SHIFT_)
		__atomic_store_n(&heaptap_scope_registry_v1.slot[mine->slot].tid, HEAPTAP_TID_LEFT_,
				 __ATOMIC_RELEASE);
	mine->tid = 0;
}

HEAPTAP_SLOW_ void heaptap_register_(void)
{
	struct heaptap_registry_ *registry = &heaptap_scope_registry_v1;
	struct heaptap_registered_ *mine = &heaptap_scope_registered_v1;
	uint32_t tid = (uint32_t)heaptap_syscall_(HEAPTAP_SYS_GETTID_, 0), taken, slot;
	const uint32_t mask = (1U << HEAPTAP_REGISTRY_SHIFT_) - 1;

	mine->tid = tid;
	mine->slot = ~UINT32_C(0);
	for (uint32_t i = 0; i < HEAPTAP_REGISTRY_PROBES_; i++) {
		slot = ((tid * 0x9e3779b1U >> (32 - HEAPTAP_REGISTRY_SHIFT_)) + i) & mask;
		taken = __atomic_load_n(&registry->slot[slot].tid, __ATOMIC_RELAXED);
		if ((taken && taken != HEAPTAP_TID_LEFT_) ||
		    !__atomic_compare_exchange_n(&registry->slot[slot].tid, &taken,
						 HEAPTAP_TID_COMING_, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		registry->slot[slot].record_addr = (uint64_t)(uintptr_t)&heaptap_scope_record_v1;
		__atomic_store_n(&registry->slot[slot].tid, tid, __ATOMIC_RELEASE);
		mine->slot = slot;
		if (heaptap_scope_key_v1)
			pthread_setspecific((pthread_key_t)(heaptap_scope_key_v1 - 1), mine);
		return;
	}
	heaptap_count_(&heaptap_scope_v1.overflows);
}

/* A child has one thread, with another number. */
HEAPTAP_SLOW_ void heaptap_forked_(void)
{
	for (uint32_t i = 0; i < 1U << HEAPTAP_REGISTRY_SHIFT_; i++)
		heaptap_scope_registry_v1.slot[i].tid = 0;
	heaptap_scope_registered_v1.tid = 0;
	heaptap_register_();
}

/* Out of line: the address of a thread-local must not be kept from one access to the next. */
HEAPTAP_SLOW_ uint64_t heaptap_base_(void)
{
	if (!heaptap_scope_registered_v1.tid)
		heaptap_register_();
	return (uint64_t)(uintptr_t)&heaptap_scope_record_v1;
}

HEAPTAP_SLOW_ void heaptap_place_(struct heaptap_descriptor_ *d)
{
	struct heaptap_registry_ *registry = &heaptap_scope_registry_v1;
	pthread_key_t key;

	if (d->tls_mode)
		return;
	registry->version = 1;
	registry->shift = HEAPTAP_REGISTRY_SHIFT_;
	if (!pthread_key_create(&key, heaptap_unregister_))
		heaptap_scope_key_v1 = (uint64_t)key + 1;
	pthread_atfork(NULL, NULL, heaptap_forked_);
	d->registry_addr = (uint64_t)(uintptr_t)registry;
	__atomic_store_n(&d->tls_mode, 3, __ATOMIC_RELEASE);
}
/* After dlclose() there is no destructor to call. */
__attribute__((destructor(101), used)) static void heaptap_late_(void)
{
	if (heaptap_scope_key_v1)
		pthread_key_delete((pthread_key_t)(heaptap_scope_key_v1 - 1));
	heaptap_scope_key_v1 = 0;
}
#else
HEAPTAP_ALWAYS_ uint64_t heaptap_base_(void)
{
	uint64_t off;

	/* An offset of initial-exec TLS; in an executable the linker makes it a constant. */
#if defined(__x86_64__)
	__asm__("mov{q}\t{heaptap_scope_record_v1@gottpoff(%%rip), %0|"
		"%0, QWORD PTR heaptap_scope_record_v1@gottpoff[rip]}"
		: "=r"(off));
#else
	__asm__("adrp %0, :gottprel:heaptap_scope_record_v1\n\t"
		"ldr %0, [%0, #:gottprel_lo12:heaptap_scope_record_v1]"
		: "=r"(off));
#endif
	return off;
}
HEAPTAP_ALWAYS_ void heaptap_place_(struct heaptap_descriptor_ *d)
{
	d->tls_off = (int64_t)heaptap_base_();
	__atomic_store_n(&d->tls_mode, 1, __ATOMIC_RELEASE);
}
#endif

/*
 * Fills what cannot be known before run time; the mode last. By the constructor, or by the first
 * push when another constructor was earlier. Twice does no harm.
 */
HEAPTAP_SLOW_ void heaptap_init_(void)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	struct heaptap_pool_ *pool = &heaptap_scope_pool_v1;

	if (__atomic_load_n(&pool->announced, __ATOMIC_ACQUIRE))
		return;
	pool->first_index[0] = 8191;
	__builtin_memcpy(pool->other, "(other)", 8);
	if (!__atomic_load_n(&pool->index, __ATOMIC_RELAXED))
		__atomic_store_n(&pool->index, &pool->first_index[0], __ATOMIC_RELEASE);
	d->chunk_addr[0] = (uint64_t)(uintptr_t)pool->node;
	d->pid = (uint32_t)heaptap_syscall_(HEAPTAP_SYS_GETPID_, 0);
	heaptap_place_(d);
	if (!__atomic_exchange_n(&pool->announced, 1, __ATOMIC_ACQ_REL))
		heaptap_scope_tls_v1(d);
}
__attribute__((constructor(101), used)) static void heaptap_early_(void)
{
	heaptap_init_();
}

/*
 * The table of paths
 * ------------------
 * Nodes are appended and never change, so looking one up takes no lock: an index by hash leads to
 * ids. Adding one takes the lock. Whoever meets the lock in its own thread is a signal handler that
 * interrupted an addition and must not wait for it; whoever meets the lock of another *process* is
 * a child of a fork(), in which the holder does not exist: it takes the lock over. Every state that
 * an addition may be left in is good: a node is counted when it is complete, and indexed after that
 * (so at worst a path is there twice).
 */
struct heaptap_key_ {
	uint32_t parent;
	uint16_t kind, flags;
	const char *name, *value;
	uint16_t name_len, value_len;
	uint32_t hash;
};

HEAPTAP_FN_ struct heaptap_node_ *heaptap_node_at_(uint32_t id)
{
	uint64_t chunk = __atomic_load_n(&heaptap_scope_v1.chunk_addr[id >> HEAPTAP_CHUNK_SHIFT_],
					 __ATOMIC_RELAXED);

	return (struct heaptap_node_ *)(uintptr_t)chunk + (id & ((1U << HEAPTAP_CHUNK_SHIFT_) - 1));
}

HEAPTAP_SLOW_ uint32_t heaptap_hash_(uint32_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x01000193U;
	return hash ^ hash >> 15;
}

/* Cuts at 255 bytes, not within a character of UTF-8. */
HEAPTAP_SLOW_ uint16_t heaptap_cut_(const char *text, size_t len, uint16_t flag, uint16_t *flags)
{
	size_t cut = 255;

	if (len <= 255)
		return (uint16_t)len;
	while (cut > 251 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	*flags = (uint16_t)(*flags | flag);
	return (uint16_t)cut;
}

HEAPTAP_SLOW_ void heaptap_key_init_(struct heaptap_key_ *key, uint32_t parent, uint16_t kind,
				     const char *name, size_t name_len, const char *value,
				     size_t value_len)
{
	int has_value = kind == HEAPTAP_LABEL_;

	if (!name || !name_len) {
		name = "(empty)";
		name_len = 7;
	}
	if (has_value && (!value || !value_len)) {
		value = "(empty)";
		value_len = 7;
	}
	key->parent = parent;
	key->kind = kind;
	key->flags = 0;
	key->name = name;
	key->name_len = heaptap_cut_(name, name_len, 1, &key->flags);
	key->value = value;
	key->value_len = has_value ? heaptap_cut_(value, value_len, 2, &key->flags) : 0;
	key->hash = heaptap_hash_(parent * 0x9e3779b1U + kind, name, key->name_len);
	if (has_value)
		key->hash = heaptap_hash_(key->hash, value, key->value_len);
}

HEAPTAP_SLOW_ int heaptap_is_key_(const struct heaptap_node_ *node, const struct heaptap_key_ *key)
{
	return node->hash == key->hash && node->parent == key->parent && node->kind == key->kind &&
	       node->flags == key->flags && node->name_len == key->name_len &&
	       node->value_len == key->value_len &&
	       !__builtin_memcmp((const char *)(uintptr_t)node->name_addr, key->name,
				 key->name_len) &&
	       (!key->value_len || !__builtin_memcmp((const char *)(uintptr_t)node->value_addr,
						     key->value, key->value_len));
}

/* 0: not there (or not yet seen by this thread). */
HEAPTAP_SLOW_ uint32_t heaptap_find_(const struct heaptap_key_ *key)
{
	const uint32_t *index = __atomic_load_n(&heaptap_scope_pool_v1.index, __ATOMIC_ACQUIRE);
	uint32_t mask = index[0], id;

	for (uint32_t i = key->hash & mask;; i = (i + 1) & mask) {
		id = __atomic_load_n(&index[1 + i], __ATOMIC_ACQUIRE);
		if (!id || heaptap_is_key_(heaptap_node_at_(id), key))
			return id;
	}
}

/* Process and thread: the thread pointer stands for the thread, in signal handlers as well. */
HEAPTAP_SLOW_ uint64_t heaptap_me_(void)
{
	uint64_t thread;

#if defined(__x86_64__)
	__asm__ volatile("mov{q}\t{%%fs:0, %0|%0, QWORD PTR fs:0}" : "=r"(thread));
#else
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return (uint64_t)heaptap_syscall_(HEAPTAP_SYS_GETPID_, 0) << 32 | (uint32_t)(thread >> 4);
}

/*
 * 0 when it is not to be had. Another thread holds it for some microseconds at most, unless it was
 * preempted: yield to it, some milliseconds long, but not for ever (a debugger may have stopped it).
 */
HEAPTAP_SLOW_ int heaptap_lock_(void)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	uint64_t *lock = &heaptap_scope_pool_v1.lock, me = heaptap_me_(), holder;
	int is_mine = 0;

	for (int tries = 0; !is_mine && tries < 20000; tries++) {
		holder = __atomic_load_n(lock, __ATOMIC_RELAXED);
		if (holder == me)
			return 0;
		if (!holder || holder >> 32 != me >> 32)
			is_mine = __atomic_compare_exchange_n(lock, &holder, me, 0,
							      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
		else if (tries >= 100)
			heaptap_syscall_(HEAPTAP_SYS_YIELD_, 0);
	}
	if (is_mine && d->pid != (uint32_t)(me >> 32)) {
		d->pid = (uint32_t)(me >> 32);
		d->epoch++;
	}
	return is_mine;
}
HEAPTAP_SLOW_ void heaptap_unlock_(void)
{
	__atomic_store_n(&heaptap_scope_pool_v1.lock, 0, __ATOMIC_RELEASE);
}

HEAPTAP_SLOW_ void heaptap_index_(uint32_t *index, uint32_t id)
{
	uint32_t mask = index[0], i = heaptap_node_at_(id)->hash & mask;

	while (index[1 + i])
		i = (i + 1) & mask;
	__atomic_store_n(&index[1 + i], id, __ATOMIC_RELEASE);
}

/* The old one stays mapped: others may be looking something up in it. */
HEAPTAP_SLOW_ int heaptap_grow_index_(uint32_t node_cnt)
{
	struct heaptap_pool_ *pool = &heaptap_scope_pool_v1;
	uint32_t slots = (pool->index[0] + 1) * 2;
	uint32_t *index = (uint32_t *)heaptap_map_((1 + (unsigned long)slots) * sizeof(*index));

	if (!index)
		return 0;
	index[0] = slots - 1;
	for (uint32_t id = 1; id < node_cnt; id++)
		heaptap_index_(index, id);
	__atomic_store_n(&pool->index, index, __ATOMIC_RELEASE);
	return 1;
}

/* What the next node needs: a place in the index, a chunk, room for the names. */
HEAPTAP_SLOW_ int heaptap_make_room_(uint32_t id, unsigned long name_bytes)
{
	struct heaptap_pool_ *pool = &heaptap_scope_pool_v1;
	uint64_t *chunk = &heaptap_scope_v1.chunk_addr[id >> HEAPTAP_CHUNK_SHIFT_];
	const unsigned long bytes = 256 << 10;

	if (id * 2 > pool->index[0] && !heaptap_grow_index_(id))
		return 0;
	if (!*chunk)
		__atomic_store_n(chunk, (uint64_t)(uintptr_t)heaptap_map_(sizeof(pool->node)),
				 __ATOMIC_RELAXED);
	if (!*chunk)
		return 0;
	if ((unsigned long)(pool->names_end - pool->names) >= name_bytes)
		return 1;
	if (pool->names_bytes >= HEAPTAP_NAMES_BYTES_)
		return 0;
	pool->names = (char *)heaptap_map_(bytes);
	pool->names_end = pool->names ? pool->names + bytes : NULL;
	pool->names_bytes += pool->names ? bytes : 0;
	return pool->names != NULL;
}

HEAPTAP_SLOW_ uint64_t heaptap_keep_(const char *text, size_t len)
{
	char *kept = heaptap_scope_pool_v1.names;

	__builtin_memcpy(kept, text, len);
	heaptap_scope_pool_v1.names += len;
	return (uint64_t)(uintptr_t)kept;
}

/* With the lock. 0: no room. */
HEAPTAP_SLOW_ uint32_t heaptap_append_(const struct heaptap_key_ *key)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	struct heaptap_pool_ *pool = &heaptap_scope_pool_v1;
	uint32_t id = d->node_cnt;
	int is_other = key->kind == HEAPTAP_OTHER_;
	struct heaptap_node_ *node;

	if (id >= HEAPTAP_NODES_CAP_ - (is_other ? 0 : HEAPTAP_OTHERS_) ||
	    !heaptap_make_room_(id, is_other ? 0 : (unsigned long)key->name_len + key->value_len))
		return 0;
	node = heaptap_node_at_(id);
	node->parent = key->parent;
	node->kind = key->kind;
	node->flags = key->flags;
	node->name_addr = is_other ? (uint64_t)(uintptr_t)pool->other :
				     heaptap_keep_(key->name, key->name_len);
	node->value_addr = key->value_len ? heaptap_keep_(key->value, key->value_len) : 0;
	node->name_len = key->name_len;
	node->value_len = key->value_len;
	node->hash = key->hash;
	__atomic_store_n(&d->node_cnt, id + 1, __ATOMIC_RELEASE);
	heaptap_index_(pool->index, id);
	return id;
}

/* 0, *ret_busy: not made, because the lock was not to be had. */
HEAPTAP_SLOW_ uint32_t heaptap_intern_(const struct heaptap_key_ *key, int *ret_busy)
{
	uint32_t id = heaptap_find_(key);
	int is_new = 0;

	if (id)
		return id;
	if (!heaptap_lock_()) {
		*ret_busy = 1;
		return 0;
	}
	id = heaptap_find_(key);
	if (!id) {
		id = heaptap_append_(key);
		is_new = id != 0;
	}
	heaptap_unlock_();
	if (is_new)
		heaptap_scope_node(id, heaptap_node_at_(id));
	return id;
}

/*
 * The word of a scope: node, flags and depth, one store. Its depth counts pushes; its node is as
 * many below the root, unless the word is truncated: then the pushes above it made no node, and
 * every further push makes none either, so that pops know where they are.
 */
HEAPTAP_SLOW_ uint64_t heaptap_truncate_(uint64_t word)
{
	return (HEAPTAP_DEPTH_(word) < 0xffff ? word + HEAPTAP_DEPTH_ONE_ : word) |
	       HEAPTAP_TRUNCATED_BIT_;
}

/* The word of a child of a word's node, flags kept. */
HEAPTAP_SLOW_ uint64_t heaptap_child_(uint64_t word, uint16_t kind, const char *name,
				      size_t name_len, const char *value, size_t value_len)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	uint32_t parent = HEAPTAP_NODE_ID_(word), id;
	struct heaptap_key_ key;
	int is_busy = 0;

	heaptap_init_();
	if ((word & HEAPTAP_TRUNCATED_BIT_) || HEAPTAP_DEPTH_(word) >= HEAPTAP_DEPTH_CAP_) {
		heaptap_count_(&d->truncations);
		return heaptap_truncate_(word);
	}
	heaptap_key_init_(&key, parent, kind, name, name_len, value, value_len);
	id = heaptap_intern_(&key, &is_busy);
	if (!id) {
		heaptap_count_(&d->overflows);
		if (is_busy || heaptap_node_at_(parent)->kind == HEAPTAP_OTHER_)
			return heaptap_truncate_(word);
		heaptap_key_init_(&key, parent, HEAPTAP_OTHER_, "(other)", 7, NULL, 0);
		id = heaptap_intern_(&key, &is_busy);
		if (!id)
			return heaptap_truncate_(word);
	}
	return word + HEAPTAP_DEPTH_ONE_ + (id - parent);
}

/* The word after a push; the first of the names of a path may be of any kind but LABEL. */
HEAPTAP_SLOW_ uint64_t heaptap_path_(uint64_t word, uint16_t kind, const char *const *name,
				     unsigned name_cnt)
{
	for (unsigned i = 0; i < name_cnt; i++)
		word = heaptap_child_(word, kind, name[i], name[i] ? __builtin_strlen(name[i]) : 0,
				      NULL, 0);
	return word;
}

/*
 * A call site remembers one step: bits 0-31 from which node, 34-63 how much larger the id of the
 * node is that it led to. The comparison leaves out the flag for pausing and includes the one for
 * truncation, which is never set here.
 */
#define HEAPTAP_SITE_EMPTY_ UINT64_C(0xffffffff)
#define HEAPTAP_SITE_SHIFT_ 34
HEAPTAP_SLOW_ uint64_t heaptap_learn_(uint64_t *site, uint64_t word, uint16_t kind,
				      const char *const *name, unsigned name_cnt)
{
	uint64_t child = heaptap_path_(word, kind, name, name_cnt);
	uint32_t parent = HEAPTAP_NODE_ID_(word), id = HEAPTAP_NODE_ID_(child);

	/* "(other)" is not remembered: every such push is counted */
	if (!(child & HEAPTAP_TRUNCATED_BIT_) && heaptap_node_at_(id)->kind == kind)
		__atomic_store_n(site, (uint64_t)(id - parent) << HEAPTAP_SITE_SHIFT_ | parent,
				 __ATOMIC_RELEASE);
	return child;
}
HEAPTAP_ALWAYS_ int heaptap_knows_(uint64_t site, uint64_t word)
{
	return HEAPTAP_LIKELY_(!((site ^ word) & (UINT64_C(0xffffffff) | HEAPTAP_TRUNCATED_BIT_)));
}
HEAPTAP_ALWAYS_ uint64_t heaptap_step_(uint64_t site, uint64_t word, unsigned name_cnt)
{
	return word + name_cnt * HEAPTAP_DEPTH_ONE_ + (site >> HEAPTAP_SITE_SHIFT_);
}

/* How far a node is below the root. */
HEAPTAP_SLOW_ uint32_t heaptap_depth_of_(uint32_t id)
{
	uint32_t depth = 0;

	for (; id; id = heaptap_node_at_(id)->parent)
		depth++;
	return depth;
}

/* The word after a pop that is not of the ordinary kind. */
HEAPTAP_SLOW_ uint64_t heaptap_pop_other_(uint64_t word)
{
	if (!(word & HEAPTAP_TRUNCATED_BIT_)) {
		heaptap_init_();
		heaptap_count_(&heaptap_scope_v1.underflows);
		return word;
	}
	word -= HEAPTAP_DEPTH_ONE_;
	if (HEAPTAP_DEPTH_(word) <= heaptap_depth_of_(HEAPTAP_NODE_ID_(word)))
		word &= ~HEAPTAP_TRUNCATED_BIT_;
	return word;
}

HEAPTAP_ALWAYS_ uint64_t heaptap_word_(void)
{
	uint64_t base = heaptap_base_();

	return HEAPTAP_LOAD_(base, 0);
}
HEAPTAP_ALWAYS_ void heaptap_put_word_(uint64_t word)
{
	uint64_t base = heaptap_base_();

	HEAPTAP_STORE_(base, 0, word);
}

HEAPTAP_ALWAYS_ heaptap_state heaptap_read_(uint64_t base)
{
	heaptap_state state;

	state.scope = HEAPTAP_LOAD_(base, 0);
	state.instance = HEAPTAP_LOAD_(base, 8);
	state.kv = HEAPTAP_LOAD_(base, 16);
	return state;
}
HEAPTAP_ALWAYS_ void heaptap_write_(uint64_t base, heaptap_state state)
{
	if (!HEAPTAP_LIKELY_(HEAPTAP_NODE_ID_(state.scope) <
			     __atomic_load_n(&heaptap_scope_v1.node_cnt, __ATOMIC_RELAXED)))
		state.scope = 0;
	HEAPTAP_STORE_(base, 16, state.kv);
	HEAPTAP_STORE_(base, 8, state.instance);
	HEAPTAP_STORE_(base, 0, state.scope);
}

/* The word after the push that a call site stands for. */
HEAPTAP_ALWAYS_ uint64_t heaptap_site_word_(uint64_t *site, uint64_t word, uint16_t kind,
					    const char *const *name, unsigned name_cnt)
{
	uint64_t known = __atomic_load_n(site, __ATOMIC_RELAXED);

	return heaptap_knows_(known, word) ? heaptap_step_(known, word, name_cnt) :
					     heaptap_learn_(site, word, kind, name, name_cnt);
}
/* These return what was before. */
HEAPTAP_ALWAYS_ uint64_t heaptap_push_site_(uint64_t *site, const char *const *name,
					    unsigned name_cnt)
{
	uint64_t base = heaptap_base_(), word = HEAPTAP_LOAD_(base, 0);

	HEAPTAP_STORE_(base, 0, heaptap_site_word_(site, word, HEAPTAP_TAG_, name, name_cnt));
	return word;
}
HEAPTAP_SLOW_ uint64_t heaptap_push_key_(uint16_t kind, const char *name, size_t name_len,
					 const char *value, size_t value_len)
{
	uint64_t word = heaptap_word_();

	heaptap_put_word_(heaptap_child_(word, kind, name, name_len, value, value_len));
	return word;
}

/* The same for names of run time, and for a task with an instance. */
HEAPTAP_FN_ uint64_t heaptap_push_text_(const char *name)
{
	return heaptap_push_key_(HEAPTAP_TAG_, name, name ? __builtin_strlen(name) : 0, NULL, 0);
}
HEAPTAP_FN_ uint64_t heaptap_push_label_(const char *key, const char *value)
{
	return heaptap_push_key_(HEAPTAP_LABEL_, key, key ? __builtin_strlen(key) : 0, value,
				 value ? __builtin_strlen(value) : 0);
}

/* ---- what programs call ---- */

/*
 * Pushes a tag whose name is known at run time only: a hash of it and a look-up, 20 to 30 ns for a short
 * one. Undone by heaptap_pop().
 */
HEAPTAP_FN_ void heaptap_push_n(const char *name, size_t bytes)
{
	heaptap_push_key_(HEAPTAP_TAG_, name, bytes, NULL, 0);
}
HEAPTAP_FN_ void heaptap_push(const char *name)
{
	heaptap_push_text_(name);
}

/* Pushes a label. Of two with one key the inner one counts. Undone by heaptap_pop(). */
HEAPTAP_FN_ void heaptap_push_label(const char *key, const char *value)
{
	heaptap_push_label_(key, value);
}

/*
 * Undoes the last push of this thread: 2 to 4 ns. Without a push, or when the last thing entered is
 * a task (heaptap_leave() ends that), nothing happens but the count of underflows.
 */
HEAPTAP_FN_ void heaptap_pop(void)
{
	uint64_t base = heaptap_base_(), word = HEAPTAP_LOAD_(base, 0);
	const struct heaptap_node_ *node;

	if (HEAPTAP_LIKELY_(HEAPTAP_NODE_ID_(word) && !(word & HEAPTAP_TRUNCATED_BIT_))) {
		/* for the first chunk there is no need to wait for its address */
		node = HEAPTAP_NODE_ID_(word) < 1U << HEAPTAP_CHUNK_SHIFT_ ?
			       &heaptap_scope_pool_v1.node[HEAPTAP_NODE_ID_(word)] :
			       heaptap_node_at_(HEAPTAP_NODE_ID_(word));
		if (HEAPTAP_LIKELY_(node->kind != HEAPTAP_TASK_)) {
			HEAPTAP_STORE_(base, 0,
				       word - HEAPTAP_DEPTH_ONE_ - HEAPTAP_NODE_ID_(word) +
					       node->parent);
			return;
		}
	}
	HEAPTAP_STORE_(base, 0, heaptap_pop_other_(word));
}

/* The whole state of this thread. */
HEAPTAP_FN_ heaptap_state heaptap_get(void)
{
	return heaptap_read_(heaptap_base_());
}

/*
 * Replaces the state of this thread and returns the one from before. States come from this
 * executable or library; what can be none means no scope. All zero: no scope, not paused.
 */
HEAPTAP_FN_ heaptap_state heaptap_set(heaptap_state state)
{
	uint64_t base = heaptap_base_();
	heaptap_state before = heaptap_read_(base);

	heaptap_write_(base, state);
	return before;
}

/*
 * A kind of task, below the current scope: 20 ns, so keep the result where that is much. It is
 * the same for all tasks of the kind; their instances are numbers that you choose, or
 * heaptap_instance_new(). Overflow: what it returns is "(other)", or the current scope.
 */
HEAPTAP_FN_ heaptap_node heaptap_task(const char *name)
{
	return heaptap_child_(heaptap_word_(), HEAPTAP_TASK_, name,
			      name ? __builtin_strlen(name) : 0, NULL, 0) &
	       ~HEAPTAP_PAUSED_BIT_;
}

/* 1, 2, 3, ...: never the same twice in one executable or library of one process. */
HEAPTAP_FN_ uint64_t heaptap_instance_new(void)
{
	return __atomic_add_fetch(&heaptap_scope_pool_v1.instance_cnt, 1, __ATOMIC_RELAXED);
}

/*
 * Makes a task, or its instance of that number (0: none), the current scope of this thread, wherever
 * the thread was. Give what it returns to heaptap_leave(). Two threads may be in one instance.
 */
HEAPTAP_FN_ heaptap_state heaptap_enter(heaptap_node task, uint64_t instance)
{
	uint64_t base = heaptap_base_();
	heaptap_state before = heaptap_read_(base), state = before;

	state.scope = (before.scope & HEAPTAP_PAUSED_BIT_) | task;
	state.instance = instance;
	heaptap_write_(base, state);
	return before;
}

/* Back to where the thread was; all that was pushed in between is undone, a pause too. */
HEAPTAP_FN_ void heaptap_leave(heaptap_state before)
{
	heaptap_write_(heaptap_base_(), before);
}

/*
 * Says that an instance has ended: its blocks are "in use after exit" from now on. Whether a thread is in it is
 * not looked at. 1 ns; a trap when heaptap is attached. Not only when the semaphore says so: where
 * a linker (lld) lets two writable segments share a page of the file, the kernel counts the tracers
 * of a program that they started in the wrong one of them.
 */
HEAPTAP_FN_ void heaptap_task_exit(heaptap_node task, uint64_t instance)
{
	heaptap_scope_task_exit(HEAPTAP_NODE_ID_(task), instance, &heaptap_scope_v1);
}

/*
 * Allocations of this thread are not recorded until heaptap_unpause(), or until the block or task
 * ends in which it was called: a pause is part of the state. It does not count: one unpause ends
 * any number of pauses.
 */
HEAPTAP_FN_ void heaptap_pause(void)
{
	heaptap_init_();
	heaptap_put_word_(heaptap_word_() | HEAPTAP_PAUSED_BIT_);
}
HEAPTAP_FN_ void heaptap_unpause(void)
{
	heaptap_put_word_(heaptap_word_() & ~HEAPTAP_PAUSED_BIT_);
}

/* The same for all threads of this executable or library's process, beside what each says. */
HEAPTAP_FN_ void heaptap_pause_all(void)
{
	heaptap_init_();
	__atomic_fetch_or(&heaptap_scope_v1.flags, 1, __ATOMIC_RELAXED);
	heaptap_scope_tls_v1(&heaptap_scope_v1); /* the flags have changed: readers look again */
}
HEAPTAP_FN_ void heaptap_unpause_all(void)
{
	heaptap_init_();
	__atomic_fetch_and(&heaptap_scope_v1.flags, 0xfffe, __ATOMIC_RELAXED);
	heaptap_scope_tls_v1(&heaptap_scope_v1);
}

/*
 * Whether heaptap is attached to this executable or library: for names that are dear to make. With
 * lld the answer may be no although heaptap started the program; see heaptap_task_exit().
 */
HEAPTAP_FN_ int heaptap_is_watched(void)
{
	return __atomic_load_n(&heaptap_scope_v1.semaphore, __ATOMIC_RELAXED) != 0;
}

/* The block form of a task: returns the state from before. */
HEAPTAP_FN_ heaptap_state heaptap_push_task_(uint64_t *site, const char *const *name,
					     uint64_t instance)
{
	uint64_t base = heaptap_base_(), word;
	heaptap_state before = heaptap_read_(base);

	word = heaptap_site_word_(site, before.scope, HEAPTAP_TASK_, name, 1);
	HEAPTAP_STORE_(base, 8, instance);
	HEAPTAP_STORE_(base, 0, word);
	return before;
}

/*
 * Sets the labels of this thread to a record of OpenTelemetry's thread-context format, whose keys
 * are those of the process context that its SDK publishes; NULL: none. The record is read whenever
 * the thread allocates, until it is replaced: it must live as long.
 */
HEAPTAP_FN_ void heaptap_set_kv(const void *record)
{
	uint64_t base = heaptap_base_();

	HEAPTAP_STORE_(base, 16, (uint64_t)(uintptr_t)record);
}

#else /* HEAPTAP_DISABLE */
#ifdef __cplusplus
#define HEAPTAP_FN_ inline
/* Apart from the functions of those units of the program that are not disabled. */
inline namespace heaptap_disabled
{
#else
#define HEAPTAP_FN_ __attribute__((unused)) static inline
#endif
HEAPTAP_FN_ void heaptap_push_n(const char *name, size_t bytes)
{
	(void)name;
	(void)bytes;
}
HEAPTAP_FN_ void heaptap_push(const char *name)
{
	(void)name;
}
HEAPTAP_FN_ void heaptap_push_label(const char *key, const char *value)
{
	(void)key;
	(void)value;
}
HEAPTAP_FN_ void heaptap_pop(void)
{
}
HEAPTAP_FN_ heaptap_state heaptap_get(void)
{
	heaptap_state none = { 0, 0, 0 };

	return none;
}
HEAPTAP_FN_ heaptap_state heaptap_set(heaptap_state state)
{
	return state;
}
HEAPTAP_FN_ heaptap_node heaptap_task(const char *name)
{
	(void)name;
	return 0;
}
HEAPTAP_FN_ uint64_t heaptap_instance_new(void)
{
	return 0;
}
HEAPTAP_FN_ heaptap_state heaptap_enter(heaptap_node task, uint64_t instance)
{
	(void)task;
	(void)instance;
	return heaptap_get();
}
HEAPTAP_FN_ void heaptap_leave(heaptap_state before)
{
	(void)before;
}
HEAPTAP_FN_ void heaptap_task_exit(heaptap_node task, uint64_t instance)
{
	(void)task;
	(void)instance;
}
HEAPTAP_FN_ void heaptap_pause(void)
{
}
HEAPTAP_FN_ void heaptap_unpause(void)
{
}
HEAPTAP_FN_ void heaptap_pause_all(void)
{
}
HEAPTAP_FN_ void heaptap_unpause_all(void)
{
}
HEAPTAP_FN_ int heaptap_is_watched(void)
{
	return 0;
}
HEAPTAP_FN_ void heaptap_set_kv(const void *record)
{
	(void)record;
}
#ifdef __cplusplus
}
#endif
#endif /* HEAPTAP_DISABLE */

/*
 * Blocks
 * ------
 * Each of these is a statement that holds until the end of the block it stands in, however that is
 * left (break, return, goto, exception; not longjmp). Not more than one on a line.
 *
 *	HEAPTAP_SCOPE("a", "b", ...)	tags, at least one, string literals: the cheap form
 *	HEAPTAP_SCOPE_NAME(name)	a tag whose name is known at run time only
 *	HEAPTAP_LABEL(key, value)	a label
 *	HEAPTAP_TASK("name", instance)	an instance of a task; does not end the instance
 *	HEAPTAP_WITH(state)		a state from heaptap_get()
 *	HEAPTAP_PAUSED()		nothing is recorded
 * And without a block, undone by heaptap_pop(), one for each name:
 *	HEAPTAP_PUSH("a", ...)
 */
#define HEAPTAP_GLUE2_(a, b) a##b
#define HEAPTAP_GLUE_(a, b) HEAPTAP_GLUE2_(a, b)

#if defined(HEAPTAP_DISABLE)
#define HEAPTAP_SCOPE(...) ((void)sizeof(HEAPTAP_FIRST_(__VA_ARGS__, 0)))
#define HEAPTAP_FIRST_(first, ...) first
#define HEAPTAP_SCOPE_NAME(name) ((void)sizeof(name))
#define HEAPTAP_LABEL(key, value) ((void)sizeof(key), (void)sizeof(value))
#define HEAPTAP_TASK(name, instance) ((void)sizeof(name), (void)sizeof(instance))
#define HEAPTAP_WITH(state) ((void)sizeof(state))
#define HEAPTAP_PAUSED() ((void)0)
#define HEAPTAP_PUSH(...) ((void)sizeof(HEAPTAP_FIRST_(__VA_ARGS__, 0)))

#elif !defined(__cplusplus)
HEAPTAP_ALWAYS_ void heaptap_end_word_(const uint64_t *before)
{
	heaptap_put_word_(*before);
}
HEAPTAP_ALWAYS_ void heaptap_end_state_(const heaptap_state *before)
{
	heaptap_leave(*before);
}
/* n: __COUNTER__, so that there may be several on one line (of a macro, for instance). */
#define HEAPTAP_SITE_(n, ...)                                                          \
	static const char *const HEAPTAP_GLUE_(heaptap_names_, n)[] = { __VA_ARGS__ }; \
	static uint64_t HEAPTAP_GLUE_(heaptap_site_, n) = HEAPTAP_SITE_EMPTY_
#define HEAPTAP_PUSH_SITE_(n)                                                                  \
	heaptap_push_site_(&HEAPTAP_GLUE_(heaptap_site_, n), HEAPTAP_GLUE_(heaptap_names_, n), \
			   sizeof(HEAPTAP_GLUE_(heaptap_names_, n)) / sizeof(const char *))
#define HEAPTAP_UNTIL_END_(n, type, end) \
	__attribute__((cleanup(end), unused)) const type HEAPTAP_GLUE_(heaptap_before_, n)
#define HEAPTAP_SCOPE(...) HEAPTAP_SCOPE_AT_(__COUNTER__, __VA_ARGS__)
#define HEAPTAP_SCOPE_AT_(n, ...)      \
	HEAPTAP_SITE_(n, __VA_ARGS__); \
	HEAPTAP_UNTIL_END_(n, uint64_t, heaptap_end_word_) = HEAPTAP_PUSH_SITE_(n)
#define HEAPTAP_SCOPE_NAME(name) \
	HEAPTAP_UNTIL_END_(__COUNTER__, uint64_t, heaptap_end_word_) = heaptap_push_text_(name)
#define HEAPTAP_LABEL(key, value)                                      \
	HEAPTAP_UNTIL_END_(__COUNTER__, uint64_t, heaptap_end_word_) = \
		heaptap_push_label_(key, value)
#define HEAPTAP_TASK(name, instance) HEAPTAP_TASK_AT_(__COUNTER__, name, instance)
#define HEAPTAP_TASK_AT_(n, name, instance)                                            \
	HEAPTAP_SITE_(n, name);                                                        \
	HEAPTAP_UNTIL_END_(n, heaptap_state, heaptap_end_state_) = heaptap_push_task_( \
		&HEAPTAP_GLUE_(heaptap_site_, n), HEAPTAP_GLUE_(heaptap_names_, n), instance)
#define HEAPTAP_WITH(state) \
	HEAPTAP_UNTIL_END_(__COUNTER__, heaptap_state, heaptap_end_state_) = heaptap_set(state)
#define HEAPTAP_PAUSED()                                                                \
	HEAPTAP_UNTIL_END_(__COUNTER__, uint64_t, heaptap_end_word_) = heaptap_word_(); \
	heaptap_pause()
#define HEAPTAP_PUSH(...) HEAPTAP_PUSH_AT_(__COUNTER__, __VA_ARGS__)
#define HEAPTAP_PUSH_AT_(n, ...)               \
	do {                                   \
		HEAPTAP_SITE_(n, __VA_ARGS__); \
		HEAPTAP_PUSH_SITE_(n);         \
	} while (0)
#else /* C++ */
#define HEAPTAP_AT_(n)                         \
	struct HEAPTAP_GLUE_(heaptap_at_, n) { \
	}
#define HEAPTAP_SITE_(n) (::heaptap::site_of_<HEAPTAP_GLUE_(heaptap_at_, n)>::step)
#define HEAPTAP_VAR_(n) HEAPTAP_GLUE_(heaptap_scope_, n)
#define HEAPTAP_SCOPE(...) HEAPTAP_SCOPE_AT_(__COUNTER__, __VA_ARGS__)
#define HEAPTAP_SCOPE_AT_(n, ...) \
	HEAPTAP_AT_(n);           \
	const ::heaptap::scope HEAPTAP_VAR_(n)(HEAPTAP_SITE_(n), __VA_ARGS__)
#define HEAPTAP_SCOPE_NAME(name) const ::heaptap::scope HEAPTAP_VAR_(__COUNTER__)(name)
#define HEAPTAP_LABEL(key, value) const ::heaptap::label HEAPTAP_VAR_(__COUNTER__)(key, value)
#define HEAPTAP_TASK(name, instance) HEAPTAP_TASK_AT_(__COUNTER__, name, instance)
#define HEAPTAP_TASK_AT_(n, name, instance) \
	HEAPTAP_AT_(n);                     \
	const ::heaptap::with HEAPTAP_VAR_(n)(HEAPTAP_SITE_(n), name, instance)
#define HEAPTAP_WITH(state) const ::heaptap::with HEAPTAP_VAR_(__COUNTER__)(state)
#define HEAPTAP_PAUSED() const ::heaptap::paused HEAPTAP_VAR_(__COUNTER__)
#define HEAPTAP_PUSH(...) HEAPTAP_PUSH_AT_(__COUNTER__, __VA_ARGS__)
#define HEAPTAP_PUSH_AT_(n, ...)                                      \
	do {                                                          \
		HEAPTAP_AT_(n);                                       \
		::heaptap::push_site_(HEAPTAP_SITE_(n), __VA_ARGS__); \
	} while (0)
#endif

#ifdef __cplusplus
#include <type_traits>
#include <utility>

/*
 * C++
 * ---
 *	heaptap::scope s("name");	a tag until s ends; a const char * or anything with data() and
 *					size(). For literals HEAPTAP_SCOPE() is cheaper
 *	heaptap::label l("tenant", t);	a label
 *	heaptap::paused p;		no recording
 *	heaptap::with w(state);		a state from heaptap_get()
 *	heaptap::task t("query");	an instance of a task that ends when t ends. Movable.
 *	t.run(function);		calls it within the task; from any thread, any number of times
 *	heaptap::with w(t);		the same for a block
 *	pool.post(heaptap::carry(f));	f will run with the state of the thread that called carry()
 * Destructors restore what was before the constructor, so objects end in the reverse order of their
 * beginning and on the same thread; locals do by themselves. Nothing here allocates or throws.
 */
#ifdef HEAPTAP_DISABLE
#define HEAPTAP_IN_ inline
inline namespace heaptap_disabled
{
#else
/* Hidden, or a library would run another one's copy, on the other one's thread-locals. */
#define HEAPTAP_IN_ __attribute__((visibility("hidden"), always_inline)) inline
#endif
namespace heaptap
{
#ifndef HEAPTAP_DISABLE
/* Static locals of inline functions are shared between libraries, whose node ids differ: not this. */
template <class Place> struct HEAPTAP_HIDDEN_ site_of_ {
	static uint64_t step;
};
template <class Place> uint64_t site_of_<Place>::step = HEAPTAP_SITE_EMPTY_;

template <class... Names>
HEAPTAP_SLOW_ uint64_t learn_(uint64_t &site, uint64_t word, uint16_t kind, Names... names)
{
	const char *const name[] = { names... };

	return heaptap_learn_(&site, word, kind, name, sizeof...(names));
}
template <class... Names>
HEAPTAP_IN_ uint64_t step_(uint64_t &site, uint64_t word, uint16_t kind, Names... names)
{
	uint64_t known = __atomic_load_n(&site, __ATOMIC_RELAXED);

	return heaptap_knows_(known, word) ? heaptap_step_(known, word, sizeof...(names)) :
					     learn_(site, word, kind, names...);
}
template <class... Names> HEAPTAP_IN_ uint64_t push_site_(uint64_t &site, Names... names)
{
	uint64_t base = heaptap_base_(), word = HEAPTAP_LOAD_(base, 0);

	HEAPTAP_STORE_(base, 0, step_(site, word, HEAPTAP_TAG_, names...));
	return word;
}
#endif

/* Names of run time: what is like a string. */
struct text_ {
	const char *data;
	size_t bytes;

	HEAPTAP_IN_ text_(const char *text) : data(text), bytes(text ? __builtin_strlen(text) : 0)
	{
	}
	template <class String, class = decltype(std::declval<const String &>().size())>
	HEAPTAP_IN_ text_(const String &text) : data(text.data()), bytes(text.size())
	{
	}
};

#ifdef HEAPTAP_DISABLE
inline uint64_t push_(uint16_t, text_, text_)
{
	return 0;
}
inline uint64_t word_()
{
	return 0;
}
inline void put_word_(uint64_t)
{
}
inline heaptap_node task_(text_)
{
	return 0;
}
#define HEAPTAP_TAG_ 1
#define HEAPTAP_LABEL_ 2
#else
HEAPTAP_IN_ uint64_t push_(uint16_t kind, text_ name, text_ value)
{
	return heaptap_push_key_(kind, name.data, name.bytes, value.data, value.bytes);
}
HEAPTAP_IN_ uint64_t word_()
{
	return heaptap_word_();
}
HEAPTAP_IN_ void put_word_(uint64_t word)
{
	heaptap_put_word_(word);
}
HEAPTAP_IN_ heaptap_node task_(text_ name)
{
	return heaptap_child_(heaptap_word_(), HEAPTAP_TASK_, name.data, name.bytes, NULL, 0) &
	       ~HEAPTAP_PAUSED_BIT_;
}
#endif

class scope
{
	uint64_t before;

      public:
	HEAPTAP_IN_ explicit scope(text_ name) : before(push_(HEAPTAP_TAG_, name, NULL))
	{
	}
#ifndef HEAPTAP_DISABLE
	template <class... Names>
	HEAPTAP_IN_ scope(uint64_t &site, const char *first, Names... rest)
		: before(push_site_(site, first, rest...))
	{
	}
#endif
	HEAPTAP_IN_ ~scope()
	{
		put_word_(before);
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
};

class label
{
	uint64_t before;

      public:
	HEAPTAP_IN_ label(text_ key, text_ value) : before(push_(HEAPTAP_LABEL_, key, value))
	{
	}
	HEAPTAP_IN_ ~label()
	{
		put_word_(before);
	}
	label(const label &) = delete;
	label &operator=(const label &) = delete;
};

class paused
{
	uint64_t before;

      public:
	HEAPTAP_IN_ paused() : before(word_())
	{
		heaptap_pause();
	}
	HEAPTAP_IN_ ~paused()
	{
		put_word_(before);
	}
	paused(const paused &) = delete;
	paused &operator=(const paused &) = delete;
};

class task;

class with
{
	heaptap_state before;

      public:
	HEAPTAP_IN_ explicit with(const heaptap_state &state) : before(heaptap_set(state))
	{
	}
	HEAPTAP_IN_ with(heaptap_node task, uint64_t instance)
		: before(heaptap_enter(task, instance))
	{
	}
	HEAPTAP_IN_ explicit with(const task &);
#ifndef HEAPTAP_DISABLE
	HEAPTAP_IN_ with(uint64_t &site, const char *name, uint64_t instance)
		: before(heaptap_get())
	{
		uint64_t base = heaptap_base_();
		uint64_t word = step_(site, before.scope, HEAPTAP_TASK_, name);

		HEAPTAP_STORE_(base, 8, instance);
		HEAPTAP_STORE_(base, 0, word);
	}
#endif
	HEAPTAP_IN_ ~with()
	{
		heaptap_leave(before);
	}
	with(const with &) = delete;
	with &operator=(const with &) = delete;
};

class task
{
	heaptap_node node_;
	uint64_t instance_;

      public:
	/* Below the current scope, with a number that no other has (or one of yours). */
	HEAPTAP_IN_ explicit task(text_ name)
		: node_(task_(name)), instance_(heaptap_instance_new())
	{
	}
	HEAPTAP_IN_ task(text_ name, uint64_t instance) : node_(task_(name)), instance_(instance)
	{
	}
	/* The other one is empty afterwards: entering it means no scope, its end says nothing. */
	HEAPTAP_IN_ task(task &&other) noexcept : node_(other.node_), instance_(other.instance_)
	{
		other.node_ = 0;
		other.instance_ = 0;
	}
	HEAPTAP_IN_ task &operator=(task &&other) noexcept
	{
		std::swap(node_, other.node_);
		std::swap(instance_, other.instance_);
		return *this;
	}
	HEAPTAP_IN_ ~task()
	{
		if (node_)
			heaptap_task_exit(node_, instance_);
	}
	HEAPTAP_IN_ heaptap_node node() const
	{
		return node_;
	}
	HEAPTAP_IN_ uint64_t instance() const
	{
		return instance_;
	}
	template <class Function>
	HEAPTAP_IN_ auto run(Function &&function) const -> decltype(function())
	{
		const with here(*this);

		return function();
	}
};
HEAPTAP_IN_ with::with(const task &t) : before(heaptap_enter(t.node(), t.instance()))
{
}

/* A function and the state in which it will run; copyable when the function is. */
template <class Function> class carried
{
	heaptap_state state;
	Function function;

      public:
	HEAPTAP_IN_ carried(const heaptap_state &with_state, Function &&carried_function)
		: state(with_state), function(std::move(carried_function))
	{
	}
	template <class... Args>
	HEAPTAP_IN_ auto operator()(Args &&...args)
		-> decltype(std::declval<Function &>()(std::forward<Args>(args)...))
	{
		const with here(state);

		return function(std::forward<Args>(args)...);
	}
};
template <class Function>
HEAPTAP_IN_ carried<typename std::decay<Function>::type> carry(Function &&function)
{
	typename std::decay<Function>::type copy(std::forward<Function>(function));

	return carried<typename std::decay<Function>::type>(heaptap_get(), std::move(copy));
}
} // namespace heaptap
#ifdef HEAPTAP_DISABLE
} // inline namespace
#endif
#endif /* C++ */

#endif
