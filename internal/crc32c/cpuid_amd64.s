//go:build !purego

#include "textflag.h"

// func hasVPCLMULQDQ() bool
//
// CPUID leaf 7, ECX bit 10.
TEXT ·hasVPCLMULQDQ(SB), NOSPLIT, $0-1
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $10, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
	RET
