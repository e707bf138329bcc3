//go:build !purego

#include "textflag.h"
#include "keys_amd64.h"

// The 256-bit form, for processors without AVX-512. See keys_amd64.go for the
// arithmetic.
//
//	SI  the next octets to read
//	DI  the next octets to write (copy256)
//	CX  how many are left
//	AX  the CRC register
//	Y0  to Y7, accumulators: 256 octets in the making
//	Y8  to Y12, keys, the same in both lanes
//	Y13, Y14  scratch

// KEYS loads the keys.
#define KEYS \
	VBROADCASTI128 KEY256, Y8  \
	VBROADCASTI128 KEY128, Y9  \
	VBROADCASTI128 KEY64, Y10  \
	VBROADCASTI128 KEY32, Y11  \
	VMOVDQU        LANES256, Y12

// SEED adds the CRC register to the first four octets of the message.
#define SEED \
	VMOVD AX, X13     \
	VPXOR Y13, Y0, Y0

// FOLD moves acc by the distance of key and adds next.
#define FOLD(acc, key, next) \
	VPCLMULQDQ $0x00, key, acc, Y13 \
	VPCLMULQDQ $0x11, key, acc, acc \
	VPXOR      next, Y13, Y13       \
	VPXOR      Y13, acc, acc

// TAKE loads the 32 octets at off; CARRY loads and stores them.
#define TAKE(off, acc) \
	VMOVDQU off(SI), acc

#define CARRY(off, acc) \
	VMOVDQU off(SI), acc \
	VMOVDQU acc, off(DI)

// FOLDCARRY is FOLD with the 32 octets at off, which are stored, too.
#define FOLDCARRY(acc, key, off) \
	CARRY(off, Y14)    \
	FOLD(acc, key, Y14)

// AHEAD asks for the octets eight rounds ahead. It costs nothing where they are
// close and gains where they come from memory. Behind the end of the memory a
// prefetch does nothing.
#define AHEAD \
	PREFETCHT0 2048(SI) \
	PREFETCHT0 2112(SI) \
	PREFETCHT0 2176(SI) \
	PREFETCHT0 2240(SI)

// GATHER brings the eight accumulators together in Y0: each moves to where a
// later one stands.
#define GATHER \
	FOLD(Y0, Y9, Y4)  \
	FOLD(Y1, Y9, Y5)  \
	FOLD(Y2, Y9, Y6)  \
	FOLD(Y3, Y9, Y7)  \
	FOLD(Y0, Y10, Y2) \
	FOLD(Y1, Y10, Y3) \
	FOLD(Y0, Y11, Y1)

// LAST brings the two lanes of Y0 together in the last one, which is then a
// message of 16 octets with the same CRC as the whole: the CRC instruction
// does the division.
#define LAST \
	VEXTRACTI128 $1, Y0, X1          \
	VPCLMULQDQ   $0x00, X12, X0, X13 \
	VPCLMULQDQ   $0x11, X12, X0, X0  \
	VPXOR        X13, X0, X0         \
	VPXOR        X1, X0, X0          \
	VMOVQ        X0, BX              \
	VPEXTRQ      $1, X0, DX          \
	XORL         AX, AX              \
	CRC32Q       BX, AX              \
	CRC32Q       DX, AX              \
	VZEROUPPER

// func update256(crc uint32, p []byte) uint32
//
// len(p) is a multiple of 32 and not less than 256.
TEXT ·update256(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	KEYS
	TAKE(0, Y0)
	TAKE(32, Y1)
	TAKE(64, Y2)
	TAKE(96, Y3)
	TAKE(128, Y4)
	TAKE(160, Y5)
	TAKE(192, Y6)
	TAKE(224, Y7)
	SEED
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JB   gather

	PCALIGN $32

eight:
	AHEAD
	FOLD(Y0, Y8, 0(SI))
	FOLD(Y1, Y8, 32(SI))
	FOLD(Y2, Y8, 64(SI))
	FOLD(Y3, Y8, 96(SI))
	FOLD(Y4, Y8, 128(SI))
	FOLD(Y5, Y8, 160(SI))
	FOLD(Y6, Y8, 192(SI))
	FOLD(Y7, Y8, 224(SI))
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  eight

gather:
	GATHER
	TESTQ CX, CX
	JZ    last

one:
	FOLD(Y0, Y11, 0(SI))
	ADDQ $32, SI
	SUBQ $32, CX
	JNZ  one

last:
	LAST
	MOVL AX, ret+32(FP)
	RET

// func copy256(crc uint32, dst, src []byte) uint32
//
// len(src) is a multiple of 32 and not less than 256, and dst as long.
TEXT ·copy256(SB), NOSPLIT, $0-60
	MOVL crc+0(FP), AX
	MOVQ dst_base+8(FP), DI
	MOVQ src_base+32(FP), SI
	MOVQ src_len+40(FP), CX
	KEYS
	CARRY(0, Y0)
	CARRY(32, Y1)
	CARRY(64, Y2)
	CARRY(96, Y3)
	CARRY(128, Y4)
	CARRY(160, Y5)
	CARRY(192, Y6)
	CARRY(224, Y7)
	SEED
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JB   gather

	PCALIGN $32

eight:
	AHEAD
	FOLDCARRY(Y0, Y8, 0)
	FOLDCARRY(Y1, Y8, 32)
	FOLDCARRY(Y2, Y8, 64)
	FOLDCARRY(Y3, Y8, 96)
	FOLDCARRY(Y4, Y8, 128)
	FOLDCARRY(Y5, Y8, 160)
	FOLDCARRY(Y6, Y8, 192)
	FOLDCARRY(Y7, Y8, 224)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  eight

gather:
	GATHER
	TESTQ CX, CX
	JZ    last

one:
	FOLDCARRY(Y0, Y11, 0)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JNZ  one

last:
	LAST
	MOVL AX, ret+56(FP)
	RET
