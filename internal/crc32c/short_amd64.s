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
