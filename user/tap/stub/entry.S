/* SPDX-License-Identifier: MIT */
/*
 * entry.S - the header of the stub, and the ways between a function of the allocator and the slow path (slow.c).
 *
 * tap_alloc_entry: by a jump, with everything as at the function's entry, and the address of its struct tap_site in
 * r11. Makes the real call, and tells of the block if it is kept: passes tap_alloc_nop, on which there is a probe,
 * with the block in rdi, its size in rsi, its weight in rdx and the function's entry in rcx. The callee-saved
 * registers are those of the caller there, and TAP_FRAME_BYTES above rsp is where the call returns to: so its stack
 * is found without a table.
 *
 * tap_free_entry: by a call out of the middle of a function that frees what is in rdi. Every register is kept but
 * r10 and r11. Tells of a kept block at tap_free_nop, in rdi.
 */
/* struct tap_call in slow.c */
#define CALL_SITE 48
#define TOLD_PTR 64
#define TOLD_BYTES 72
#define TOLD_WEIGHT 80
#define RESULT 88
#define TOLD_FREE 96
#define TAP_FRAME_BYTES 104

/* struct tap_site */
#define SITE_REAL 0
#define SITE_ENTRY 8

/* What tap_after() says. */
#define AFTER_TELL 1

	.section .header, "a", @progbits
	.globl tap_header
	.hidden tap_header
/* struct tap_header in tap_layout.h; what is not here is written by who puts it in. */
tap_header:
	.quad 0x7061742d70616568
	.long 2
	.long TAP_HEADER_BYTES
	.long tap_alloc_entry - tap_header
	.long tap_alloc_nop - tap_header
	.long tap_alloc_return - tap_header
	.long tap_free_entry - tap_header
	.long tap_free_nop - tap_header
	.long TAP_FRAME_BYTES
	.zero TAP_HEADER_BYTES - 40

	.text
tap_alloc_entry:
	sub	$48, %rsp
	push	%r11
	push	%r9
	push	%r8
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	mov	%rsp, %rdi
	call	tap_before
	mov	TOLD_FREE(%rsp), %rdi
	test	%rdi, %rdi
	jz	1f
	call	tap_tell_free
1:	mov	(%rsp), %rdi
	mov	8(%rsp), %rsi
	mov	16(%rsp), %rdx
	mov	24(%rsp), %rcx
	mov	32(%rsp), %r8
	mov	40(%rsp), %r9
	mov	CALL_SITE(%rsp), %r11
	call	*SITE_REAL(%r11)
tap_alloc_return:
	mov	%rax, RESULT(%rsp)
	mov	%rsp, %rdi
	call	tap_after
	mov	TOLD_FREE(%rsp), %rdi
	test	%rdi, %rdi
	jz	5f
	call	tap_tell_free
5:	test	%eax, %eax
	jz	2f
	cmp	$AFTER_TELL, %eax
	jne	3f
	mov	CALL_SITE(%rsp), %rcx
	mov	TOLD_PTR(%rsp), %rdi
	mov	TOLD_BYTES(%rsp), %rsi
	mov	TOLD_WEIGHT(%rsp), %rdx
	mov	SITE_ENTRY(%rcx), %rcx
tap_alloc_nop:
	nop
2:	mov	RESULT(%rsp), %rax
	add	$TAP_FRAME_BYTES, %rsp
	ret
3:	mov	CALL_SITE(%rsp), %r11
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%r8
	pop	%r9
	add	$(TAP_FRAME_BYTES - 48), %rsp
	jmp	*SITE_ENTRY(%r11)

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
	push	%rbx
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	tap_freed
	test	%rax, %rax
	jz	4f
	mov	%rax, %rdi
	call	tap_tell_free
4:	mov	%rbx, %rsp
	pop	%rbx
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	ret
	.section .note.GNU-stack,"",@progbits
