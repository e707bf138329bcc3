//go:build !purego

#include "textflag.h"

// func cpuid7() (ebx uint32)
TEXT ·cpuid7(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL BX, ebx+0(FP)
	RET

// func clwb(p unsafe.Pointer)
TEXT ·clwb(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	CLWB (AX)
	RET

// func clflushopt(p unsafe.Pointer)
TEXT ·clflushopt(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	CLFLUSHOPT (AX)
	RET

// func clflush(p unsafe.Pointer)
TEXT ·clflush(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	CLFLUSH (AX)
	RET

// func sfence()
TEXT ·sfence(SB), NOSPLIT, $0-0
	SFENCE
	RET
