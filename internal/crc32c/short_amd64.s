//go:build !purego

#include "textflag.h"

// func updateShort(crc uint32, p []byte) uint32
TEXT ·updateShort(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	SUBQ $32, CX
	JB   eights

thirtytwo:
	CRC32Q 0(SI), AX
	CRC32Q 8(SI), AX
	CRC32Q 16(SI), AX
	CRC32Q 24(SI), AX
	ADDQ   $32, SI
	SUBQ   $32, CX
	JAE    thirtytwo

eights:
	ADDQ $24, CX // of what is left, less 8
	JNC  four

eight:
	CRC32Q 0(SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JAE    eight

four: // the three low bits of CX are those of what is left
	TESTQ  $4, CX
	JZ     two
	CRC32L 0(SI), AX
	ADDQ   $4, SI

two:
	TESTQ  $2, CX
	JZ     one
	CRC32W 0(SI), AX
	ADDQ   $2, SI

one:
	TESTQ  $1, CX
	JZ     done
	CRC32B 0(SI), AX

done:
	MOVL AX, ret+32(FP)
	RET

// func copyShort(crc uint32, dst, src []byte) uint32
//
// src is as long as dst. What is stored is what went into the CRC.
TEXT ·copyShort(SB), NOSPLIT, $0-60
	MOVL crc+0(FP), AX
	MOVQ dst_base+8(FP), DI
	MOVQ src_base+32(FP), SI
	MOVQ src_len+40(FP), CX
	SUBQ $32, CX
	JB   eights

thirtytwo:
	MOVQ   0(SI), R8
	MOVQ   8(SI), R9
	MOVQ   16(SI), R10
	MOVQ   24(SI), R11
	CRC32Q R8, AX
	CRC32Q R9, AX
	CRC32Q R10, AX
	CRC32Q R11, AX
	MOVQ   R8, 0(DI)
	MOVQ   R9, 8(DI)
	MOVQ   R10, 16(DI)
	MOVQ   R11, 24(DI)
	ADDQ   $32, SI
	ADDQ   $32, DI
	SUBQ   $32, CX
	JAE    thirtytwo

eights:
	ADDQ $24, CX // of what is left, less 8
	JNC  four

eight:
	MOVQ   0(SI), R8
	CRC32Q R8, AX
	MOVQ   R8, 0(DI)
	ADDQ   $8, SI
	ADDQ   $8, DI
	SUBQ   $8, CX
	JAE    eight

four: // the three low bits of CX are those of what is left
	TESTQ  $4, CX
	JZ     two
	MOVL   0(SI), R8
	CRC32L R8, AX
	MOVL   R8, 0(DI)
	ADDQ   $4, SI
	ADDQ   $4, DI

two:
	TESTQ   $2, CX
	JZ      one
	MOVWLZX 0(SI), R8
	CRC32W  R8, AX
	MOVW    R8, 0(DI)
	ADDQ    $2, SI
	ADDQ    $2, DI

one:
	TESTQ   $1, CX
	JZ      done
	MOVBLZX 0(SI), R8
	CRC32B  R8, AX
	MOVB    R8, 0(DI)

done:
	MOVL AX, ret+56(FP)
	RET
