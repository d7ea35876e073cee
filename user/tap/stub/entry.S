/* SPDX-License-Identifier: MIT */
/*
 * entry.S - the header of the stub, and the ways between a function of the allocator and the slow path (slow.c).
 *
 * tap_alloc_entry: by a jump, with everything as at the function's entry, but the index of the site pushed on the stack.
 * Makes the real call, and tells of the block if it is kept: passes tap_alloc_nop, on which there is a probe,
 * with the block in rdi, its size in rsi, its weight in rdx and the function's entry in rcx. The callee-saved
 * registers are those of the caller there, and TAP_FRAME_BYTES above rsp is where the call returns to: so its stack
 * is found without a table.
 *
 * The real call finds every general register as the caller has left it, and the caller finds every one as the real call
 * has left it, whether or not a calling convention says that they are kept: a compiler that sees both sides uses more of
 * them. Vector registers are not touched.
 *
 * tap_free_entry: by a call out of the middle of a function that frees what is in rdi. Every register is kept. Tells of
 * a kept block at tap_free_nop, in rdi.
 */
/* struct tap_call in slow.c */
#define IN_RDI 0
#define IN_RSI 8
#define IN_RDX 16
#define IN_RCX 24
#define IN_R8 32
#define IN_R9 40
#define IN_RAX 48
#define IN_R10 56
#define IN_R11 64
#define OUT_RDI 72
#define OUT_RSI 80
#define OUT_RDX 88
#define OUT_RCX 96
#define OUT_R8 104
#define OUT_R9 112
#define OUT_R10 120
#define OUT_R11 128
#define OUT_RAX 136
#define REAL_ADDR 144
#define REAL_RDI 152
#define REAL_RSI 160
#define CALL_SITE 168
#define TOLD_PTR 184
#define TOLD_BYTES 192
#define TOLD_WEIGHT 200
#define TOLD_FREE 208
#define CALL_INDEX 224
#define TAP_FRAME_BYTES 232

/* struct tap_site */
#define SITE_ENTRY 16

/* What tap_after() says. */
#define AFTER_TELL 1

	.section .header, "a", @progbits
	.globl tap_header
	.hidden tap_header
/* struct tap_header in tap_layout.h; what is not here is written by who puts it in. */
tap_header:
	.quad 0x7061742d70616568
	.long 3
	.long TAP_HEADER_BYTES
	.long tap_alloc_entry - tap_header
	.long tap_alloc_nop - tap_header
	.long tap_free_entry - tap_header
	.long tap_free_nop - tap_header
	.long TAP_FRAME_BYTES
	.zero TAP_HEADER_BYTES - 36

	.text
tap_alloc_entry:
	sub	$CALL_INDEX, %rsp
	mov	%rdi, IN_RDI(%rsp)
	mov	%rsi, IN_RSI(%rsp)
	mov	%rdx, IN_RDX(%rsp)
	mov	%rcx, IN_RCX(%rsp)
	mov	%r8, IN_R8(%rsp)
	mov	%r9, IN_R9(%rsp)
	mov	%rax, IN_RAX(%rsp)
	mov	%r10, IN_R10(%rsp)
	mov	%r11, IN_R11(%rsp)
	mov	%rsp, %rdi
	call	tap_before
	mov	TOLD_FREE(%rsp), %rdi
	test	%rdi, %rdi
	jz	1f
	call	tap_tell_free
1:	mov	REAL_RDI(%rsp), %rdi
	mov	REAL_RSI(%rsp), %rsi
	mov	IN_RDX(%rsp), %rdx
	mov	IN_RCX(%rsp), %rcx
	mov	IN_R8(%rsp), %r8
	mov	IN_R9(%rsp), %r9
	mov	IN_RAX(%rsp), %rax
	mov	IN_R10(%rsp), %r10
	mov	IN_R11(%rsp), %r11
	call	*REAL_ADDR(%rsp)
	mov	%rdi, OUT_RDI(%rsp)
	mov	%rsi, OUT_RSI(%rsp)
	mov	%rdx, OUT_RDX(%rsp)
	mov	%rcx, OUT_RCX(%rsp)
	mov	%r8, OUT_R8(%rsp)
	mov	%r9, OUT_R9(%rsp)
	mov	%r10, OUT_R10(%rsp)
	mov	%r11, OUT_R11(%rsp)
	mov	%rax, OUT_RAX(%rsp)
	mov	%rsp, %rdi
	call	tap_after
	mov	TOLD_FREE(%rsp), %rdi
	test	%rdi, %rdi
	jz	2f
	call	tap_tell_free
2:	test	%eax, %eax
	jz	3f
	cmp	$AFTER_TELL, %eax
	jne	4f
	mov	CALL_SITE(%rsp), %rcx
	mov	TOLD_PTR(%rsp), %rdi
	mov	TOLD_BYTES(%rsp), %rsi
	mov	TOLD_WEIGHT(%rsp), %rdx
	mov	SITE_ENTRY(%rcx), %rcx
tap_alloc_nop:
	nop
3:	mov	OUT_RDI(%rsp), %rdi
	mov	OUT_RSI(%rsp), %rsi
	mov	OUT_RDX(%rsp), %rdx
	mov	OUT_RCX(%rsp), %rcx
	mov	OUT_R8(%rsp), %r8
	mov	OUT_R9(%rsp), %r9
	mov	OUT_R10(%rsp), %r10
	mov	OUT_R11(%rsp), %r11
	mov	OUT_RAX(%rsp), %rax
	add	$TAP_FRAME_BYTES, %rsp
	ret
	/* The function itself, as if it had just been called. Its address is in the place of the index, which the
	 * kernel spares as it spares all that is less than 128 bytes below rsp. */
4:	mov	IN_RDI(%rsp), %rdi
	mov	IN_RSI(%rsp), %rsi
	mov	IN_RDX(%rsp), %rdx
	mov	IN_RCX(%rsp), %rcx
	mov	IN_R8(%rsp), %r8
	mov	IN_R9(%rsp), %r9
	mov	IN_RAX(%rsp), %rax
	mov	IN_R10(%rsp), %r10
	mov	IN_R11(%rsp), %r11
	add	$TAP_FRAME_BYTES, %rsp
	jmp	*(CALL_INDEX - TAP_FRAME_BYTES)(%rsp)

tap_tell_free:
tap_free_nop:
	nop
	ret

tap_free_entry:
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%rbx
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	tap_freed
	test	%rax, %rax
	jz	5f
	mov	%rax, %rdi
	call	tap_tell_free
5:	mov	%rbx, %rsp
	pop	%rbx
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	ret
	.section .note.GNU-stack,"",@progbits
