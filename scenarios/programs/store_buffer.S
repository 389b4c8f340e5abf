/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The guest's side of store_buffer.c, as a boot sector: it writes X and reads Y, with the barrier of smp_mb() between. */
	.code16
	.globl	_start
_start:
	cli
	xor	%ax, %ax
	mov	%ax, %ds
	xor	%ecx, %ecx
next:
	inc	%ecx
wait:
	cmp	0x1000, %ecx		/* ROUND */
	jne	wait
	mov	%ecx, 0x1080		/* X */
	lock addl $0, 0x1280
	mov	0x1100, %ebx		/* Y */
	mov	%ebx, 0x1180		/* READ */
	mov	%ecx, 0x1200		/* DONE */
	jmp	next
	.org	510
	.word	0xaa55
