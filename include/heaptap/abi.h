/* SPDX-License-Identifier: MIT */
/*
 * abi.h - everything that crosses between the BPF object and user space, written once and
 * compiled by both.
 *
 * Rules: fixed-width types only; no pointers, bools, bit-fields, enums or implicit padding in a
 * struct; an assertion beside every size that a map is created with. Addresses come in three
 * kinds that never mix: addr (run time), vaddr (ELF), off (file).
 */
#ifndef HEAPTAP_ABI_H
#define HEAPTAP_ABI_H

#ifndef __BPF__
#include <linux/types.h>
#endif

#define HT_FRAMES_CAP 127
#define HT_COMM_BYTES 16
/* Calls of one thread that are between entry and return at once (signal handlers nest). */
#define HT_PENDING_CAP 4
/* Ranges of a file whose code is the allocator's own (see struct ht_file). */
#define HT_INNER_CAP 16

/*
 * Unwind rows
 * -----------
 * One row says how to step out of the frame at pc: where the CFA (the stack pointer before the
 * call) is and where the caller's rbp is kept. The return address is always at CFA - 8 (x86-64)
 * except for the row kinds that say otherwise. A row holds from its pc up to the next row's.
 * Rows are grouped by 64 KiB pages of vaddr so that 16 bits of pc are enough; every page that
 * has rows begins with one whose pc_lo is 0, so a search always lands on a row.
 * Offsets are in units of 8 bytes.
 */
struct ht_row {
	__u16 pc_lo; /* low 16 bits of the vaddr from which the row holds */
	__u8 cfa; /* HT_CFA_* */
	__u8 rbp; /* HT_RBP_*, and HT_ROW_* */
	__s16 cfa_off;
	__s16 rbp_off;
};
_Static_assert(sizeof(struct ht_row) == 8, "rows are searched by index: 8 bytes each");

#define HT_CFA_NONE 0 /* no unwind information for this pc */
#define HT_CFA_RSP 1 /* rsp + off */
#define HT_CFA_RBP 2 /* rbp + off */
#define HT_CFA_DEREF_RSP 3 /* *(rsp + off) */
#define HT_CFA_DEREF_RBP 4 /* *(rbp + off): a function that realigns its stack */
#define HT_CFA_PLT 5 /* rsp + 8 + 8 * ((pc & 15) >= cfa_off): cfa_off is NOT scaled here */
#define HT_CFA_SIGNAL 6 /* rsp points at a ucontext: rip, rsp and rbp come from there */
#define HT_CFA_END 7 /* the return address is undefined: the thread's first frame */
#define HT_CFA_UNSUPPORTED 8 /* a rule that this format cannot say */
/* rsp + off, for a frame of more than 256 KiB. off is unsigned and has 24 bits; its upper 8 bits are the upper
 * byte of rbp_off. Only the lower byte of rbp_off is left for the caller's rbp. */
#define HT_CFA_RSP_WIDE 9
#define HT_CFA_JIT 10 /* code made at run time: no table; the code itself or rbp tells the CFA */
#define HT_CFA_CNT 11
#define HT_ROW_WIDE_OFF(row) \
	((__u32)(__u16)(row)->cfa_off | (__u32)((__u16)(row)->rbp_off >> 8) << 16)
#define HT_ROW_WIDE_RBP_OFF(row) ((__s8)((row)->rbp_off & 0xff))

#define HT_RBP_SAME 0 /* the caller's rbp is still in rbp */
#define HT_RBP_AT_CFA 1 /* *(CFA + off) */
#define HT_RBP_AT_RBP 2 /* *(rbp + off) */
#define HT_RBP_UNDEFINED 3
#define HT_RBP_MASK 0x3f
/* The code of a probed function that allocates: allocations made below it are its own. A function that throws
 * (HT_SITE_THROWS) is tracked only for sizes up to throw_limit_bytes. */
#define HT_ROW_ALLOC 0x80
#define HT_ROW_THROWS 0x40

#define HT_PAGE_SHIFT 16

/*
 * Location of the rows of one 64 KiB page of a file. block[i] is the row (counted from `first`) that holds at
 * the start of block i, so a search touches only the rows of one block: without it most of a look-up's time is
 * cache misses of a binary search through the page's thousands of rows.
 */
#define HT_BLOCK_SHIFT 9
#define HT_BLOCK_CNT (1 << (HT_PAGE_SHIFT - HT_BLOCK_SHIFT))
struct ht_page {
	__u32 shard; /* index in the outer map `rows` */
	__u32 first; /* index of the first row in the shard */
	__u32 row_cnt; /* 0: nothing known about this page */
	__u16 block[HT_BLOCK_CNT + 2]; /* [HT_BLOCK_CNT] is the last row; one more for alignment */
};
_Static_assert(sizeof(struct ht_page) == 12 + 2 * (HT_BLOCK_CNT + 2), "value of map `pages`");

#define HT_SHARD_ROWS_SHIFT 17
#define HT_SHARD_ROWS (1 << HT_SHARD_ROWS_SHIFT)
#define HT_SHARDS_CAP 512
#define HT_PAGES_CAP (1 << 15) /* 2 GiB of text */

/*
 * The executable mappings of a process, sorted by start: an inner array of map `mapping_sets`, found through
 * map `maps_of`. The array may get a new owner: the generation tells the owner.
 */
struct ht_mapping {
	__u64 start_addr;
	__u64 end_addr;
	__u64 bias; /* addr - bias = vaddr */
	__u32 file_id; /* index in map `files`; 0: the mapping's file is not known */
	__u32 flags; /* HT_MAPPING_* */
};
_Static_assert(sizeof(struct ht_mapping) == 32, "element of the value of map `mapping_sets`");
/* Code made at run time. Its file id stands for the process and its vaddrs are addresses. */
#define HT_MAPPING_JIT 0x1

#define HT_MAPPINGS_CAP 1024
#define HT_PROCESSES_CAP 4096 /* mapping sets */
struct ht_mappings {
	__u32 mapping_cnt;
	__u32 generation; /* of the target; mappings of another generation are ignored */
	__u32 jit_file_id; /* for HT_MAPPING_JIT; 0: the process is not known to have any */
	/* generation that jit_file_id is for, valid also while the mappings are being changed */
	__u32 jit_generation;
	struct ht_mapping mapping[HT_MAPPINGS_CAP];
};

/*
 * A file that some target maps: the place of its unwind pages, and the code ranges whose calls of an allocator are a
 * part of another call (user/alloc/alloc_inner.c). Index = file id, 0 is unused.
 */
struct ht_range {
	__u64 start_vaddr, end_vaddr;
};
struct ht_file {
	__u64 first_page; /* vaddr >> HT_PAGE_SHIFT of its first page */
	__u32 page_cnt; /* 0: no unwind table */
	__u32 pages_base; /* index of its first page in map `pages` */
	__u32 inner_cnt;
	__u32 flags; /* HT_FILE_* */
	__u64 unproven_cnt; /* sampled calls from the ranges that no outer call was found for */
	struct ht_range inner[HT_INNER_CAP];
};
_Static_assert(sizeof(struct ht_file) == 32 + 16 * HT_INNER_CAP, "value of map `files`");
/* The ranges are the probed functions themselves, which are on the stack: there is no table that could be marked. */
#define HT_FILE_INNER_IS_PROBED 0x1
#define HT_FILES_CAP (1 << 13)

/* BPF finds a file by this key when it appeared in an address space after the last read of that space. */
struct ht_inode {
	__u64 ino;
	__u32 dev; /* kernel encoding: major << 20 | minor */
	__u32 reserved;
};
/* bias = start_addr - pgoff - vaddr_minus_off, for the executable segment of the file. */
struct ht_inode_file {
	__u32 file_id;
	__u32 reserved;
	__u64 vaddr_minus_off;
};

/*
 * A frame: file id and vaddr in one word, so that it survives exit, dlclose and ASLR and is the
 * same in every process. File id 0 means that vaddr is a run-time address in no known file.
 */
#define HT_FRAME_VADDR_BITS 47
#define HT_FRAME_VADDR_MASK ((1ULL << HT_FRAME_VADDR_BITS) - 1)
#define HT_FRAME(file_id, vaddr) \
	(((__u64)(file_id) << HT_FRAME_VADDR_BITS) | ((vaddr)&HT_FRAME_VADDR_MASK))
#define HT_FRAME_FILE(frame) ((frame) >> HT_FRAME_VADDR_BITS)

/* How a walk ended. HT_END_COMPLETE is the only good one. */
#define HT_END_COMPLETE 0 /* reached the thread's first frame */
#define HT_END_NO_MAPPING 1 /* pc in no known mapping */
#define HT_END_NO_TABLE 2 /* the mapping's file has no unwind table and no frame-pointer chain */
#define HT_END_NO_ROW 3 /* the table has nothing for this pc and no frame-pointer chain */
#define HT_END_UNSUPPORTED 4 /* a rule that rows cannot say */
#define HT_END_READ_FAULT 5 /* the stack could not be read */
#define HT_END_TOO_DEEP 6 /* more than HT_FRAMES_CAP frames */
#define HT_END_BAD_CFA 7 /* the CFA did not move towards the stack's base */
#define HT_END_JIT 8 /* code made at run time, and no frame-pointer chain */
#define HT_END_CNT 9

/*
 * Reclaiming
 * ----------
 * Stacks and label sets are kept once for all processes. Each entry has the epoch in which it was last asked
 * for. User space increments the epoch before it searches for references. An entry without references that has
 * not been asked for since then is taken out (user/kernel/reclaim.h). Asking for an entry moves its epoch on,
 * taking it out sets HT_EPOCH_DEAD, both by compare and swap: so one of the two sides sees the other.
 */
#define HT_EPOCH_DEAD 0xffffffffU /* being taken out: must not be used any more */
#define HT_SWEEP_STACK 1
#define HT_SWEEP_LABELS 2
#define HT_SWEEP_INSTANCE 3

/* Value of map `stacks`; its key is the 64-bit hash of the content. frame[0] is the leaf. */
struct ht_stack {
	__u32 frame_cnt;
	__u32 end; /* HT_END_* */
	/* Not part of the content: */
	__u32 epoch;
	__u32 owner_tgid, owner_generation; /* the image whose share it counts against */
	__u32 reserved;
	__u64 frame[HT_FRAMES_CAP];
};
_Static_assert(sizeof(struct ht_stack) == 24 + 8 * HT_FRAMES_CAP, "no padding");

/*
 * The kind of function that a probe is on, packed into the BPF cookie of its attachment, so that a hit needs no
 * map look-up for it. Made by alloc/allocators.c; track/file_links.c adds the file and the sharing.
 */
#define HT_OP_ALLOC 1 /* returns a new block */
#define HT_OP_FREE 2
#define HT_OP_REALLOC 3 /* frees one block and returns another (or the same) */
#define HT_OP_RESIZE 4 /* in place: returns the new size, the pointer stays (xallocx) */
#define HT_OP_SAMPLED \
	5 /* a sampler in the process kept an allocation: see struct ht_sampled_site */
#define HT_OP_SAMPLED_FREE 6 /* ... and this is the free of that allocation */

#define HT_RET_VALUE 0 /* the pointer is returned */
#define HT_RET_OUT 1 /* 0 is returned, the pointer is stored at *ptr_arg (posix_memalign) */

#define HT_ARG_NONE 7 /* argument numbers are 0 to 5 in the order of the calling convention */

#define HT_COOKIE_OP(c) ((__u32)(c)&0xf)
#define HT_COOKIE_SIZE_ARG(c) ((__u32)((c) >> 4) & 7)
#define HT_COOKIE_COUNT_ARG(c) ((__u32)((c) >> 8) & 7) /* size = size_arg * count_arg */
#define HT_COOKIE_PTR_ARG(c) ((__u32)((c) >> 12) & 7) /* block to free, or the out parameter */
#define HT_COOKIE_RET(c) ((__u32)((c) >> 16) & 1)
#define HT_COOKIE_FLAGS(c) ((__u32)((c) >> 20) & 0xff)
/* The id of the file that the probe is attached to, and its sharing (HT_SHARING_*). */
#define HT_COOKIE_SHARING(c) ((__u32)((c) >> 28) & 3)
#define HT_COOKIE_FILE(c) ((__u32)((c) >> 32) & (HT_FILES_CAP - 1))
#define HT_COOKIE_AT(file_id, sharing) ((__u64)(sharing) << 28 | (__u64)(file_id) << 32)
#define HT_COOKIE(op, size_arg, count_arg, ptr_arg, ret, flags)                                    \
	((__u64)(op) | (__u64)(size_arg) << 4 | (__u64)(count_arg) << 8 | (__u64)(ptr_arg) << 12 | \
	 (__u64)(ret) << 16 | (__u64)(flags) << 20)
/* The cookie without file and sharing; and that cookie of malloc(size) and free(ptr), which cause nearly all
 * hits. */
#define HT_COOKIE_SITE(c) ((c)&0xfffffff)
#define HT_COOKIE_MALLOC HT_COOKIE(HT_OP_ALLOC, 0, HT_ARG_NONE, HT_ARG_NONE, HT_RET_VALUE, 0)
#define HT_COOKIE_FREE HT_COOKIE(HT_OP_FREE, HT_ARG_NONE, HT_ARG_NONE, 0, HT_RET_VALUE, 0)

/*
 * HT_OP_SAMPLED*: the index in map `sampled_sites`. A tap's probes are in code that belongs to one memory, and whoever runs
 * it in that memory allocates for the same process, the owner. Its forked children map this code too, and run it in their
 * own memory: their hits do not count. owner_tgid 0: the hit is of the process that runs.
 */
#define HT_COOKIE_SAMPLED(op, idx, owner_tgid) \
	((__u64)(op) | (__u64)(idx) << 4 | (__u64)(owner_tgid) << 32)
#define HT_COOKIE_SAMPLED_IDX(c) ((__u32)((c) >> 4) & 0xffff)
#define HT_COOKIE_SAMPLED_OWNER(c) ((__u32)((c) >> 32))

/* Each process has its own link; processes share a definition; one link for all processes. */
#define HT_SHARING_OWN 1
#define HT_SHARING_EVENT 2
#define HT_SHARING_ALL 3
#define HT_SHARING_CNT 4

/* May leave by a jump to another entry point, or to code that calls one: the call is followed to its return
 * even when it is not kept. */
#define HT_SITE_TAIL_CALLS 0x01
/* realloc(NULL, n) leaves by a jump to malloc, which is probed: skip the outer call. */
#define HT_SITE_NULL_DELEGATES 0x02
/* May throw: never arm a return for a size that can only fail (an unwinder would stop at the return probe). */
#define HT_SITE_THROWS 0x04
/* size 0 frees (realloc); without this flag, size 0 allocates. */
#define HT_SITE_ZERO_FREES 0x08
/* The probe is on an instruction that is single-stepped: such hits cost more and are counted apart. */
#define HT_SITE_STEPPED 0x10

/*
 * A recorded process. Key: tgid in the initial pid namespace. User space writes the entry once, and may set
 * HT_TARGET_OFF later, atomically; all else is changed by BPF (the exec hook, and ht_change_target for user space), so
 * that neither can undo what the other wrote.
 */
struct ht_target {
	__u32 generation; /* +1 at every exec */
	__u32 flags; /* HT_TARGET_* */
	__u32 rate_idx; /* index in map `rates` */
	__u32 hits_idx; /* index in map `hits`; a followed child has its parent's index */
	__u64 unmapped_ns; /* when HT_EVENT_UNMAPPED was last sent */
	/* Frees of this process are not seen: allocations are added to the sums but not to `live`. */
	__u32 is_alloc_only;
	__u32 name_cnt; /* number of contexts without a tag, at most HT_THREAD_NAMES_CAP */
	__u64 mm; /* the memory that the image is in, the kernel's address of it; 0: not known yet */
	__u32 tgid; /* the key */
	__u32 owner_tgid; /* HT_TARGET_BORROWS: the process whose memory it is */
};
_Static_assert(sizeof(struct ht_target) == 48, "value of map `targets`");
/* Distance between first generations, so that a reused pid never meets old entries. User space gives out
 * generations from 0 on, followed children get theirs from HT_GENERATION_CHILDREN on. */
#define HT_GENERATION_STEP 4096
#define HT_GENERATION_NONE 0xffffffffU
#define HT_GENERATION_CHILDREN 0x80000000U
#define HT_TARGET_FOLLOW 0x1 /* children become targets */
#define HT_TARGET_WAITS_EXEC 0x2 /* nothing counts until the process executes its program */
#define HT_TARGET_OFF 0x4 /* not recorded any more */
/*
 * While set, calls that begin are not seen. Probes are attached and detached one after the other: if hits
 * counted meanwhile, a block could be allocated in sight and freed or reallocated out of sight.
 */
#define HT_TARGET_QUIET 0x8
/* The guardian holds the process when it executes a program, and when that program's loader is done: see
 * bpf/hold.bpf.h. */
#define HT_TARGET_HELD 0x10
/* The process's own sampler has reported an allocation: hits of the probes on its allocator no longer count. */
#define HT_TARGET_SAMPLES 0x20
/*
 * A followed child in the memory of its parent, by vfork(), posix_spawn() or clone(CLONE_VM). What it allocates and frees is
 * its parent's (owner_tgid). It becomes a process of its own when it executes a program; user space does not hear of it
 * before.
 */
#define HT_TARGET_BORROWS 0x40
#define HT_TARGETS_CAP 4096

/* What the program ht_threads says of a thread. */
#define HT_THREAD_DISPATCHES \
	0x1 /* handles its system calls itself (syscall user dispatch, as Wine does) */
#define HT_THREAD_MAY_NOT_RESTART 0x2 /* a seccomp filter may forbid restart_syscall() */

/*
 * Samplers of others
 * ------------------
 * A program, or a library in it, may sample its allocations itself and report kept ones by USDT probes
 * (user/alloc/file_sampler.h). An operand says where one argument of such a probe is: a constant, a register,
 * or memory at base + index * scale + value. Registers are offsets into struct pt_regs.
 */
#define HT_OPERAND_NONE 0
#define HT_OPERAND_CONST 1
#define HT_OPERAND_REG 2
#define HT_OPERAND_MEM 3
struct ht_operand {
	__u8 kind;
	__u8 bytes; /* 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 scale; /* of the index; 0: no index */
	__u16 base_off, index_off;
	__s64 value; /* a constant, or what is added to the address */
};
_Static_assert(sizeof(struct ht_operand) == 16, "no padding");
struct ht_sampled_site {
	struct ht_operand ptr;
	/* HT_OP_SAMPLED: size of the block, and the number of allocated bytes that it stands for (size / p). */
	struct ht_operand size, weight;
	/* The stack is that of a call to the function at `entry`. The call returns to the address that is
	 * stored stack_bytes above the stack pointer. HT_OPERAND_NONE: the stack begins at the probe. */
	struct ht_operand entry;
	__u64 stack_bytes;
};
_Static_assert(sizeof(struct ht_sampled_site) == 72, "value of map `sampled_sites`");
#define HT_SAMPLED_SITES_CAP 1024
/* A larger weight is invalid: no block is larger than 47 bits of addresses. */
#define HT_SAMPLED_WEIGHT_CAP (1ULL << 47)

/*
 * Sampling thresholds, one table per rate. A size n falls into a log-linear bucket; an
 * allocation is kept when a 32-bit random number is below the bucket's threshold t, so
 * p = t / 2^32, and t == HT_KEEP_ALWAYS means p = 1.
 */
#define HT_SUB_BITS 6
#define HT_BUCKET_CNT ((48 - HT_SUB_BITS + 1) << HT_SUB_BITS)
#define HT_KEEP_ALWAYS 0xffffffffU
#define HT_RATES_CAP 64
struct ht_rate {
	__u64 rate_bytes; /* R; 1 = keep all */
	__u64 throw_limit_bytes; /* HT_SITE_THROWS: larger sizes are not tracked */
	__u32 threshold[HT_BUCKET_CNT];
};

/*
 * The cost of one process: hits of its probes, and the work for its sampled allocations. Per CPU; counters only
 * grow, sampler_rate_bytes is overwritten. A hit of a target is counted here and not in map `stats`, so that it costs one look-up.
 */
struct ht_hits {
	__u64 alloc_cnt, free_cnt, return_cnt;
	/* of alloc_cnt and free_cnt: hits on an instruction that is single-stepped */
	__u64 stepped_cnt;
	__u64 sample_cnt; /* allocations that were kept */
	__u64 stack_ns; /* time spent on the stacks of kept allocations */
	/* rate of the process's own sampler, from its last samples; 0: not known */
	__u64 sampler_rate_bytes;
	__u64 reserved; /* fills a cache line */
};
_Static_assert(sizeof(struct ht_hits) == 64, "value of map `hits`");
#define HT_HITS_CAP HT_TARGETS_CAP

/* Key and value of map `live`: the sampled blocks in use. */
struct ht_live_key {
	__u32 tgid;
	__u32 generation;
	__u64 addr;
};
_Static_assert(sizeof(struct ht_live_key) == 16, "key of map `live`");
struct ht_live {
	__u64 size_bytes;
	__u64 stack_id;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 threshold; /* p with which the sample was kept: see struct ht_rate */
	__u32 context_id;
	__u32 tid;
	__u32 scope_slot; /* of the context */
	__u64 instance; /* of the innermost task; 0: none */
};
_Static_assert(sizeof(struct ht_live) == 48, "value of map `live`");

/* Value of map `pending`: the calls of a thread that are between entry and return. */
struct ht_call {
	/* at entry: address of the return address's slot; identifies the call. 0 = unused */
	__u64 sp;
	__u64 ret_addr; /* the true return address (a return probe overwrites the slot) */
	__u64 cookie;
	__u64 ptr; /* old block, or address of the out parameter */
	__u32 generation; /* of the target; a call of another generation is not completed */
	__u16 is_kept; /* drawn: insert `fresh` at the new address */
	__u16 has_old; /* `old` was taken out of `live` at entry */
	struct ht_live fresh;
	struct ht_live old;
};
struct ht_calls {
	__u32 next; /* slot to reuse when all are in use */
	__u32 reserved;
	/* the last call that leaves its allocation to the function that it jumps to; 0: none */
	__u64 delegate_sp;
	__u64 delegate_ret_addr;
	/* the last hit in a file whose probes are moving: see sharing.bpf.h */
	__u64 seen_sp;
	__u32 seen_sharing;
	__u32 reserved2;
	struct ht_call call[HT_PENDING_CAP];
};
_Static_assert(sizeof(struct ht_call) == 40 + 2 * sizeof(struct ht_live), "no padding");
_Static_assert(sizeof(struct ht_calls) == 40 + HT_PENDING_CAP * sizeof(struct ht_call),
	       "value of map `pending`");

/*
 * What an image (a process between two execs) holds, and its peak. BPF keeps it beside `live` so that a reader
 * can watch all processes without walking `live`. Units as in struct ht_total; signed, because a sum is read
 * while others change it.
 */
struct ht_image_key {
	__u32 tgid;
	__u32 generation;
};
/* Tables that are shared out among processes: see bpf/share.bpf.h. */
enum ht_shared {
	HT_SHARED_LIVE,
	HT_SHARED_TOTALS,
	HT_SHARED_STACKS,
	HT_SHARED_CONTEXTS,
	HT_SHARED_SCOPES,
	HT_SHARED_LABELS,
	HT_SHARED_INSTANCES,
	HT_SHARED_BINS,
	HT_SHARED_CNT
};
struct ht_image {
	__s64 inuse_bytes_8;
	__s64 peak_bytes_8;
	__u64 peak_ns; /* CLOCK_MONOTONIC */
	__u64 over_peak; /* number of the peak (struct ht_peak) when the image was over; 0: it was not */
	__u32 used[HT_SHARED_CNT]; /* entries in these tables */
	__u32 refused[HT_SHARED_CNT];
};
_Static_assert(sizeof(struct ht_image) == 32 + 8 * HT_SHARED_CNT, "value of map `images`");
/* Images that run, and images that have ended and are not forgotten yet: a fast machine does 4 000 execs a
 * second. */
#define HT_IMAGES_CAP 65536

/*
 * Counting filter in front of `live`: the number of keys that fall into a slot. Nearly every free is of a block
 * that was not sampled: it finds 0 here and needs no hash look-up.
 */
#define HT_FILTER_SHIFT 18
#define HT_FILTER_CNT (1 << HT_FILTER_SHIFT)

/*
 * The same filter in front of `pending`: the number of calls between entry and return whose stack pointer leads
 * to a slot. Where every return is probed, nearly all returns are of calls that were not kept.
 */
#define HT_CALLS_FILTER_CNT (1 << 15)

/*
 * Tags: what the program says that its memory is for
 * --------------------------------------------------
 * A tag source is a thread-local variable of the target with a known layout: the record of heaptap/scope.h, or
 * one of two foreign formats. User space finds tag sources in the mapped files and writes them to map `tags`;
 * the program's own constructor announces them as well (probe heaptap:tls_v1). The first of the two wins.
 */
#define HT_TAG_FREE 0 /* the slot was never used */
#define HT_TAG_CLAIMED 1 /* being written */
#define HT_TAG_SCOPE 2 /* heaptap/scope.h; desc_addr is its descriptor, which has the rest */
#define HT_TAG_OTEL 3 /* OpenTelemetry thread context: pointer to a record */
#define HT_TAG_CUSTOM 4 /* Polar Signals custom labels v1: pointer to a label set */

#define HT_TLS_NOT_READY 0
#define HT_TLS_STATIC 1 /* at the thread pointer + off */
#define HT_TLS_DTV 2 /* in block `module` of the thread's dynamic vector, at off */
#define HT_TLS_REGISTRY 3 /* in the program's table of {thread, record} */

struct ht_tag_source {
	__u32 kind; /* HT_TAG_*; written last */
	__u32 tls_mode; /* HT_TLS_*; HT_TAG_SCOPE: not ready until BPF has read the descriptor */
	__s64 tls_off;
	__u64 tls_module; /* HT_TLS_DTV */
	__u64 desc_addr; /* HT_TAG_SCOPE */
	__u32 dtv_shift; /* log2 of the bytes of an entry of the dynamic vector: glibc 4, musl 3 */
	/* How often the descriptor at desc_addr was made ready again: a library that was unloaded and loaded
	 * anew begins with an empty node table. */
	__u32 epoch;
	/* HT_TAG_SCOPE: the descriptor's flags, HT_TAG_PAUSES_ALL. HT_TAG_OTEL: bit i = the value of key i is a
	 * request id and makes no difference. */
	__u32 flags;
	__u32 node_max; /* HT_TAG_SCOPE: the largest node met in this epoch */
};
#define HT_TAG_PAUSES_ALL 1
#define HT_TAG_SOURCES_CAP 8
struct ht_tags {
	__u32 tgid; /* 0: the entry is free; written last */
	__u32 generation; /* of the target; sources of another generation are ignored */
	__u32 scope_cnt; /* scopes interned for the process, at most HT_SCOPES_PER_PROCESS_CAP */
	__u32 context_cnt; /* contexts with a tag, at most HT_CONTEXTS_PER_PROCESS_CAP */
	struct ht_tag_source source[HT_TAG_SOURCES_CAP];
};
_Static_assert(sizeof(struct ht_tags) == 16 + 48 * HT_TAG_SOURCES_CAP, "value of map `tags`");
/* An array, because an array look-up is inlined. A process's entry is one of the HT_TAGS_TRIES entries from
 * tgid & (HT_TAGS_CNT - 1) on. */
#define HT_TAGS_CNT 8192
#define HT_TAGS_TRIES 8

/*
 * A scope of one process: a node in the table of one of its tag sources, and the weighted bytes that the node
 * and everything below it hold. Interned to a slot, 0 = none: the sums of slot i are at index i of map
 * `scope_sums`. BPF copies the names, so that they outlive the process. When an image is over, user space gives
 * its slots back (map `free_slots`) with sums of zero.
 */
struct ht_scope_key {
	__u32 tgid;
	__u32 generation;
	__u32 source; /* HT_SOURCE_* or HT_SOURCE(index in ht_tags, epoch) */
	__u32 node; /* 0: none */
};
#define HT_SOURCE_NONE 0 /* no tag: "(none)"; has no nodes */
#define HT_SOURCE(idx, epoch) (((idx) + 1) | ((epoch)&0xffff) << 8)
#define HT_SOURCE_UNREADABLE 0xffffffffU
#define HT_SOURCE_OTHER 0xfffffffeU /* a cap was reached: "(other)" */

#define HT_NODE_TAG 1
#define HT_NODE_LABEL 2 /* name = value */
#define HT_NODE_TASK 3
#define HT_NODE_OTHER 4 /* the program's own table was full */
#define HT_NAME_BYTES_CAP 256 /* 255 and a zero */
struct ht_scope {
	__u32 slot;
	__u32 parent_slot; /* 0: none */
	__u16 kind; /* HT_NODE_*; 0 for HT_SOURCE_* */
	__u16 flags; /* 1: name cut, 2: value cut */
	__u16 name_len;
	__u16 value_len;
	char name[HT_NAME_BYTES_CAP];
	char value[HT_NAME_BYTES_CAP];
};
_Static_assert(sizeof(struct ht_scope) == 16 + 2 * HT_NAME_BYTES_CAP, "value of map `scopes`");
#define HT_SCOPES_CAP 16384
#define HT_SCOPES_PER_PROCESS_CAP 8192
#define HT_SCOPE_DEPTH_CAP 64 /* deeper scopes are charged to their ancestor of this depth */

/* Units as in struct ht_total. Signed, because a sum is read while others change it. */
struct ht_scope_sums {
	__s64 inuse_bytes_8;
	__s64 peak_bytes_8;
	__u64 peak_ns; /* CLOCK_MONOTONIC */
	__u32 parent_slot;
	__u32 task_slot; /* innermost TASK node of the path, which may be this scope; 0: none */
};
_Static_assert(sizeof(struct ht_scope_sums) == 32, "value of map `scope_sums`");

/* A sum that only grows: high * 2^16 + low. Neither part wraps: see heaptap/sum.h. */
#define HT_SUM_LOW_BITS 16
struct ht_sum {
	__u64 low, high;
};
_Static_assert(sizeof(struct ht_sum) == 16, "no padding");

/* The variance of the allocated bytes; heaptap/variance.h has its units. */
struct ht_variance {
	__u64 fine, coarse;
};

/* One task, query or request: an instance of a TASK node. Reclaimed when it has exited and holds nothing. */
struct ht_instance_key {
	__u32 task_slot;
	__u32 reserved;
	__u64 instance;
};
struct ht_instance {
	__s64 inuse_bytes_8;
	__s64 inuse_objects_16;
	struct ht_sum alloc_bytes_8;
	struct ht_sum alloc_objects_16;
	struct ht_variance alloc_variance; /* of the bytes */
	__u64 alloc_samples;
	__s64 peak_bytes_8;
	__u64 peak_ns;
	__u64 last_ns; /* of the last sampled allocation */
	__u32 has_exited;
	__u32 reserved;
	__u32 owner_tgid, owner_generation; /* the image whose share it counts against */
};
_Static_assert(sizeof(struct ht_instance) == 112, "value of map `instances`");
#define HT_INSTANCES_CAP (1 << 18)

/*
 * Labels of other formats, as raw bytes: key = hash of the content.
 * HT_TAG_SCOPE (its kv record), HT_TAG_OTEL: {u8 key index, u8 length, value}...
 * HT_TAG_CUSTOM: {u8 key length, u8 value length, key, value}...
 */
#define HT_LABEL_BYTES_CAP 2048
#define HT_CUSTOM_LABELS_CAP 10
#define HT_CUSTOM_KEY_CAP 64
#define HT_CUSTOM_VALUE_CAP 128
struct ht_labels {
	__u32 kind; /* HT_TAG_* */
	__u32 byte_cnt;
	__u32 epoch; /* epoch and owner are not part of the content: as in struct ht_stack */
	__u32 owner_tgid, owner_generation;
	__u32 reserved;
	__u8 byte[HT_LABEL_BYTES_CAP];
};
_Static_assert(sizeof(struct ht_labels) == 24 + HT_LABEL_BYTES_CAP, "value of map `label_sets`");
#define HT_LABEL_SETS_CAP 8192

/* Who allocated, and for what. Interned to a 32-bit id, 0 = could not be interned. */
struct ht_context {
	__u32 tgid;
	__u32 generation;
	char comm[HT_COMM_BYTES]; /* of the thread, at allocation time */
	__u32 source; /* see struct ht_scope_key */
	__u32 node;
	__u64 labels_id; /* key of `label_sets`; 0: none */
};
_Static_assert(sizeof(struct ht_context) == 40, "key of map `contexts`");
struct ht_context_value {
	__u32 id;
	__u32 scope_slot;
};
#define HT_CONTEXTS_CAP 65536
#define HT_CONTEXTS_PER_PROCESS_CAP 16384
/* Of one process. Threads with further names are shown as one: a program that names its threads after requests
 * must not, in a year, leave other programs without names. */
#define HT_THREAD_NAMES_CAP 4096
#define HT_THREAD_OTHER "(other)"

/*
 * Cumulative sums per stack and context; monotonic. Values are weighted: an allocation of n bytes kept with
 * probability p adds n/p. Objects are in units of 2^-16, bytes in units of 2^-8.
 */
struct ht_total_key {
	__u64 stack_id;
	__u32 context_id;
	__u32 reserved;
};
/* What samples hold: a sum that they are added to and taken out of. */
struct ht_held {
	__s64 bytes_8, objects_16, samples;
	struct ht_variance variance; /* of the bytes */
};
struct ht_total {
	__u64 alloc_samples;
	struct ht_sum alloc_objects_16; /* 2^-16 */
	struct ht_sum alloc_bytes_8; /* 2^-8 */
	struct ht_variance alloc_variance; /* of the bytes */
	__u64 free_samples;
	struct ht_sum free_objects_16;
	struct ht_sum free_bytes_8;
	/* Only where the peak is kept: what is held now, and what was held at the peak of this number. */
	struct ht_held held, at_peak;
	__u64 peak_number;
};
_Static_assert(sizeof(struct ht_total) == 184, "value of map `totals`");

/* The most that all targets held together: see bpf/peak.bpf.h. number: how often it rose; 0: nothing was held yet. */
struct ht_peak {
	__s64 held_bytes_8; /* now */
	__s64 bytes_8;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 number;
};

/*
 * The same sums, divided: allocations by size, frees by lifetime. Value of map `bins`, which has only those
 * bins that something fell into; see bpf/bins.bpf.h.
 *
 * Sizes: bin 0 is 0 bytes, bin i is [2^(i-1), 2^i) bytes. Lifetimes: the same in units of 1/1024 ms, so that 1
 * ms is a bound. The last bin of either has no upper end.
 */
struct ht_bin_key {
	__u64 stack_id;
	__u32 context_id;
	__u32 bin; /* HT_BIN_SIZE + i or HT_BIN_LIFE + i */
};
_Static_assert(sizeof(struct ht_bin_key) == 16, "key of map `bins`");
struct ht_bin {
	__u64 samples;
	struct ht_sum objects_16;
	struct ht_sum bytes_8;
	struct ht_variance variance; /* of the bytes */
};
_Static_assert(sizeof(struct ht_bin) == 56, "value of map `bins`");
#define HT_BIN_SIZE_CNT 32 /* the last: 1 GiB or more */
#define HT_BIN_LIFE_CNT 34 /* the last: 69.9 min or more */
#define HT_BIN_SIZE 0
#define HT_BIN_LIFE HT_BIN_SIZE_CNT
#define HT_BIN_CNT (HT_BIN_SIZE_CNT + HT_BIN_LIFE_CNT)
/* A lifetime in ns as whole units. No overflow for 36 years. */
#define HT_BIN_LIFE_UNITS(ns) ((ns)*16 / 15625)

/* Ring buffer records: process events only, never one per allocation. */
#define HT_EVENT_EXEC 1 /* other = 1: the process is held, nothing of the program has run */
#define HT_EVENT_EXIT 2 /* other = exit status as in wait(), and HT_EXIT_OOM */
#define HT_EVENT_FORK 3 /* tgid = parent, other = child */
#define HT_EVENT_UNMAPPED 4 /* a walk met an address that no mapping of tgid covers */
/* The kernel killed the process because memory ran out, in its cgroup or on the machine. */
#define HT_EXIT_OOM 0x10000
struct ht_event {
	__u32 kind;
	__u32 tgid;
	__u32 generation;
	__u32 other;
	__u64 time_ns;
	__u64 addr;
	char comm[HT_COMM_BYTES]; /* of the current thread; at an exec the new image's */
};

/*
 * Counters, per CPU. Each of them reaches the profile. X(id, kind, name, meaning): users see name, the ledger's
 * sentence is meaning. Kinds: ACTIVITY counts what was done; SUM counts losses that make in use or allocated
 * wrong; LOSS counts other losses: a missing stack, scope or label, or something that is reported elsewhere.
 */
#define HT_STATS(X)                                                                                \
	X(HITS_ALLOC, ACTIVITY, "alloc_hits", "allocation probe hits")                             \
	X(HITS_FREE, ACTIVITY, "free_hits", "free probe hits")                                     \
	X(HITS_RETURN, ACTIVITY, "return_hits", "return probe hits")                               \
	X(HITS_STEPPED, ACTIVITY, "stepped_hits", "hits of those that cost a single-step as well") \
	X(SAMPLES, ACTIVITY, "samples", "allocations sampled")                                     \
	X(FREES, ACTIVITY, "frees", "sampled allocations freed")                                   \
	X(FAILED_CALLS, ACTIVITY, "failed_calls",                                                  \
	  "sampled calls that failed and allocated nothing")                                       \
	X(SAMPLED_BAD, SUM, "sampled_bad",                                                         \
	  "samples of the program's own sampler that make no sense")                               \
	X(ALLOC_ONLY, LOSS, "alloc_only_samples",                                                  \
	  "samples of allocations only: frees were not tracked")                                   \
	X(DROPPED, LOSS, "dropped_samples",                                                        \
	  "sampled blocks dropped when the tracking of frees stopped")                             \
	X(NESTED, ACTIVITY, "nested",                                                              \
	  "sampled calls from inside another one, which counts instead")                           \
	X(NESTED_FOUND, ACTIVITY, "nested_found",                                                  \
	  "of those that only their caller's place tells, those whose outer call is sampled")      \
	X(NESTED_DUE_16, ACTIVITY, "nested_due_16",                                                \
	  "... those that were to be expected, times 65536")                                       \
	X(NESTED_UNPROVEN, SUM, "nested_unproven",                                                 \
	  "sampled calls left out as part of an outer call that was not found")                    \
	X(MISSED_FREE, SUM, "missed_frees",                                                        \
	  "blocks whose free was not seen: their address was allocated again")                     \
	X(LIVE_FULL, SUM, "live_full", "samples not tracked: live map full")                       \
	X(LIVE_FULL_BYTES, SUM, "live_full_bytes", "bytes not tracked: live map full")             \
	X(TOTALS_FULL, SUM, "totals_full", "samples missing from the cumulative sums: map full")   \
	X(STACKS_NEW, ACTIVITY, "stacks_new", "distinct call stacks that were kept")               \
	X(STACKS_FULL, LOSS, "stacks_full", "samples without a stack: stack map full")             \
	X(STACK_COLLISION, LOSS, "stack_collisions", "samples without a stack: hash collision")    \
	X(CONTEXTS_FULL, LOSS, "contexts_full", "samples without a thread: context map full")      \
	X(THREADS_OTHER, LOSS, "threads_other",                                                    \
	  "samples whose thread is shown as (other): too many")                                    \
	X(SCRATCH_BUSY, SUM, "scratch_busy", "samples lost: no scratch space free")                \
	X(PENDING_FULL, SUM, "pending_full", "samples lost: too many calls under way at once")     \
	X(PENDING_LOST, SUM, "pending_lost", "returns whose call was not found")                   \
	X(PENDING_STALE, ACTIVITY, "pending_stale",                                                \
	  "calls that never returned (longjmp, thread death)")                                     \
	X(READ_FAULT, SUM, "read_faults", "failed reads of the program's memory")                  \
	X(PAUSED, LOSS, "paused", "sampled allocations left out: paused by the program")           \
	X(TAG_UNREADABLE, LOSS, "tags_unreadable", "samples whose scope could not be read")        \
	X(TAG_SOURCES_FULL, LOSS, "tag_sources_full",                                              \
	  "tag sources not read: too many in a process")                                           \
	X(SCOPES_FULL, LOSS, "scopes_full", "scopes shown as (other): too many")                   \
	X(LABELS_FULL, LOSS, "labels_full", "samples without their labels: too many or too long")  \
	X(INSTANCES_FULL, LOSS, "instances_full",                                                  \
	  "samples without their task: too many live tasks")                                       \
	X(SHARE_LIVE, SUM, "share_live",                                                           \
	  "samples not tracked: the process's share of live samples is used up")                   \
	X(SHARE_TOTALS, SUM, "share_totals",                                                       \
	  "samples missing from the sums: the process's share is used up")                         \
	X(SHARE_STACKS, LOSS, "share_stacks",                                                      \
	  "samples without a stack: the process's share of stacks is used up")                     \
	X(SHARE_CONTEXTS, LOSS, "share_contexts",                                                  \
	  "samples without a thread: the process's share of contexts is used up")                  \
	X(SHARE_SCOPES, LOSS, "share_scopes",                                                      \
	  "scopes shown as (other): the process's share is used up")                               \
	X(SHARE_LABELS, LOSS, "share_labels",                                                      \
	  "samples without their labels: the process's share is used up")                          \
	X(SHARE_INSTANCES, LOSS, "share_instances",                                                \
	  "samples without their task: the process's share of live tasks is used up")              \
	X(SHARE_BINS, LOSS, "share_bins",                                                          \
	  "samples without their size or lifetime: the process's share is used up")                \
	X(BINS_FULL, LOSS, "bins_full", "samples without their size or lifetime: map full")        \
	X(IMAGES_FULL, LOSS, "images_full",                                                        \
	  "samples missing from the sums of their process: too many")                              \
	X(INSTANCES_ENDED, ACTIVITY, "instances_ended",                                            \
	  "tasks that exited and hold nothing any more")                                           \
	X(THROW_SKIPPED, SUM, "throw_skipped",                                                     \
	  "calls of operator new for too much memory: not recorded, they may throw")               \
	X(DISPATCHED, SUM, "dispatched",                                                           \
	  "samples lost: the program handles its system calls itself, as Wine does")               \
	X(EVENTS_LOST, SUM, "events_lost", "process events lost: ring buffer full")                \
	X(FIND_VMA, ACTIVITY, "find_vma", "frames resolved by asking the kernel for the mapping")  \
	X(FRAMES, ACTIVITY, "frames", "frames walked")                                             \
	X(FRAMES_FP, ACTIVITY, "frames_fp", "frames stepped over by frame pointer")                \
	X(WALK_NS, ACTIVITY, "walk_ns", "time spent unwinding")                                    \
	X(END_COMPLETE, ACTIVITY, "stacks_complete", "stacks that reach the thread's start")       \
	X(END_NO_MAPPING, LOSS, "truncated_no_mapping", "stacks cut: address in no known mapping") \
	X(END_NO_TABLE, LOSS, "truncated_no_table", "stacks cut: file without unwind table")       \
	X(END_NO_ROW, LOSS, "truncated_no_row", "stacks cut: no unwind row for the address")       \
	X(END_UNSUPPORTED, LOSS, "truncated_unsupported", "stacks cut: unsupported unwind rule")   \
	X(END_READ_FAULT, LOSS, "truncated_read_fault", "stacks cut: stack memory not readable")   \
	X(END_TOO_DEEP, LOSS, "truncated_too_deep", "stacks cut: more frames than are kept")       \
	X(END_BAD_CFA, LOSS, "truncated_bad_cfa", "stacks cut: stack pointer did not advance")     \
	X(END_JIT, LOSS, "truncated_jit", "stacks cut: JIT-compiled code without frame pointers")

#define HT_STAT_ENUM(id, kind, name, meaning) HT_STAT_##id,
enum { HT_STATS(HT_STAT_ENUM) HT_STAT_CNT };
_Static_assert(HT_STAT_SHARE_BINS - HT_STAT_SHARE_LIVE == HT_SHARED_CNT - 1,
	       "the SHARE_ counters follow enum ht_shared");
_Static_assert(HT_STAT_END_JIT - HT_STAT_END_COMPLETE == HT_END_CNT - 1,
	       "the END_ counters follow HT_END_*");

#endif
