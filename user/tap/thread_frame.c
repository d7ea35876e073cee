/* SPDX-License-Identifier: MIT */
/*
 * thread_frame.c - the way back of a thread that makes calls for heaptap, see threads_priv.h.
 *
 * When the tracer is killed, the kernel lets the thread go on with the registers of the call. So these lead back: the call
 * returns to the C library's function that ends signal handlers (rt_sigreturn), with the frame of a signal on the stack.
 * The frame has the registers, the signal mask and the vector registers as they were. A system call that our stop has
 * interrupted is begun again under its own number.
 *
 * Source of the layout: struct rt_sigframe and fpu__restore_sig() of the kernel, Intel's manual for XSAVE (volume 1, 13).
 */
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "tap/threads_priv.h"

#define XSTATE_BYTES_CAP 16384
#define XSTATE_LEAST_BYTES 576 /* x87 and SSE, and the header */
#define XSTATE_MASK_OFF 464 /* in what ptrace gives: XCR0; in a frame: struct software_bytes */
#define XSTATE_USED_OFF 512
#define XSTATE_TILES (3ULL << 17) /* AMX: 8 KiB, which the kernel has only for who asks for them */
#define MAGIC_BEGIN 0x46505853U
#define MAGIC_END 0x46505845U
#define CPUID_XSTATE 0xd

#define FLAG_XSTATE 1
#define FLAG_SS 2
#define FLAG_STRICT_SS 4
/* No mode of an alternative stack: the kernel keeps the one that there is. */
#define STACK_FLAGS_INVALID 0x40

/* Below the red zone, and threads_scratch_addr(). */
#define BELOW_BYTES 1024
#define XSTATE_ALIGN 64

struct software_bytes {
	uint32_t magic, extended_bytes;
	uint64_t mask;
	uint32_t bytes, reserved[7];
};

struct signal_frame {
	uint64_t return_addr;
	uint64_t flags, link;
	uint64_t stack_addr;
	uint32_t stack_flags, pad;
	uint64_t stack_bytes;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
		eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trap, old_mask, fault_addr;
	uint64_t xstate_addr, reserved[8];
	uint64_t signal_mask;
	uint8_t info[128];
};

/* Bytes of the states of a mask, in the standard format. */
static size_t xstate_bytes(uint64_t mask)
{
	size_t bytes = XSTATE_LEAST_BYTES;

	for (unsigned int i = 2; i < 63; i++) {
		unsigned int size, off, c, d;

		if (!(mask >> i & 1))
			continue;
		__cpuid_count(CPUID_XSTATE, i, size, off, c, d);
		if (off + size > bytes)
			bytes = off + size;
	}
	return bytes;
}

/* Read the vector registers in the form that a frame has. Returns the bytes; 0: they cannot be restored. */
static size_t read_xstate(pid_t tid, uint8_t *ret)
{
	struct iovec iov = { ret, XSTATE_BYTES_CAP };
	struct software_bytes sw = { .magic = MAGIC_BEGIN };
	const uint32_t end = MAGIC_END;
	uint64_t used;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &iov) ||
	    iov.iov_len < XSTATE_LEAST_BYTES)
		return 0;
	memcpy(&used, ret + XSTATE_USED_OFF, sizeof(used));
	memcpy(&sw.mask, ret + XSTATE_MASK_OFF, sizeof(sw.mask));
	sw.mask &= ~XSTATE_TILES;
	sw.bytes = (uint32_t)xstate_bytes(sw.mask);
	sw.extended_bytes = sw.bytes + (uint32_t)sizeof(end);
	if ((used & XSTATE_TILES) || iov.iov_len < sw.bytes || sw.extended_bytes > XSTATE_BYTES_CAP)
		return 0;
	memcpy(ret + XSTATE_MASK_OFF, &sw, sizeof(sw));
	memcpy(ret + sw.bytes, &end, sizeof(end));
	return sw.extended_bytes;
}

/* As the kernel does at a stop at which signals are delivered; but what it would go on with by restart_syscall() (-516)
 * is begun anew: rt_sigreturn forgets it. */
static void begin_call_again(const struct user_regs_struct *regs, struct signal_frame *f)
{
	static const int again[] = { -512, -513, -514, -516 };
	static const int instruction_bytes = 2;

	for (size_t i = 0; (int64_t)regs->orig_rax >= 0 && i < sizeof(again) / sizeof(*again); i++)
		if ((int64_t)regs->rax == again[i]) {
			f->rax = regs->orig_rax;
			f->rip = regs->rip - instruction_bytes;
		}
}

int thread_frame_make(pid_t tid, const struct user_regs_struct *regs, uint64_t signal_mask,
		      uint64_t sigreturn_addr, struct thread_frame *ret)
{
	static uint8_t xstate[XSTATE_BYTES_CAP]; /* a tracer has one caller */
	const size_t bytes = read_xstate(tid, xstate);
	const uint64_t xstate_addr = (regs->rsp - BELOW_BYTES - bytes) & ~(XSTATE_ALIGN - 1ULL);
	struct signal_frame f = {
		.return_addr = sigreturn_addr,
		.flags = FLAG_XSTATE | FLAG_SS | FLAG_STRICT_SS,
		.stack_flags = STACK_FLAGS_INVALID,
		.r8 = regs->r8,
		.r9 = regs->r9,
		.r10 = regs->r10,
		.r11 = regs->r11,
		.r12 = regs->r12,
		.r13 = regs->r13,
		.r14 = regs->r14,
		.r15 = regs->r15,
		.rdi = regs->rdi,
		.rsi = regs->rsi,
		.rbp = regs->rbp,
		.rbx = regs->rbx,
		.rdx = regs->rdx,
		.rax = regs->rax,
		.rcx = regs->rcx,
		.rsp = regs->rsp,
		.rip = regs->rip,
		.eflags = regs->eflags,
		.cs = (uint16_t)regs->cs,
		.ss = (uint16_t)regs->ss,
		.xstate_addr = xstate_addr,
		.signal_mask = signal_mask,
	};
	const size_t xstate_off = (sizeof(f) + XSTATE_ALIGN - 1) & ~(XSTATE_ALIGN - 1ULL);

	if (!bytes || xstate_off + bytes > sizeof(ret->bytes))
		return -ENOTSUP;
	begin_call_again(regs, &f);
	memset(ret->bytes, 0, xstate_off);
	memcpy(ret->bytes, &f, sizeof(f));
	memcpy(ret->bytes + xstate_off, xstate, bytes);
	ret->addr = xstate_addr - xstate_off;
	ret->byte_cnt = xstate_off + bytes;
	return 0;
}
