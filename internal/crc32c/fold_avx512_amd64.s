//go:build !purego

#include "textflag.h"
#include "keys_amd64.h"

// The 512-bit form. See keys_amd64.go for the arithmetic.
//
//	SI  the next octets to read
//	DI  the next octets to write (copy512)
//	CX  how many are left
//	AX  the CRC register
//	Z0  to Z7, accumulators: 512 octets in the making
//	Z8  to Z12, keys, the same in each of the four lanes
//	Z13, Z14  scratch

// KEYS loads the keys.
#define KEYS \
	VBROADCASTI32X4 KEY512, Z8  \
	VBROADCASTI32X4 KEY256, Z9  \
	VBROADCASTI32X4 KEY128, Z10 \
	VBROADCASTI32X4 KEY64, Z11  \
	VMOVDQU64       LANES512, Z12

// SEED adds the CRC register to the first four octets of the message.
#define SEED \
	VMOVD  AX, X13     \
	VPXORQ Z13, Z0, Z0

// FOLD moves acc by the distance of key and adds next.
#define FOLD(acc, key, next) \
	VPCLMULQDQ $0x00, key, acc, Z13 \
	VPCLMULQDQ $0x11, key, acc, acc \
	VPTERNLOGQ $0x96, next, Z13, acc

// TAKE loads the 64 octets at off; CARRY loads and stores them.
#define TAKE(off, acc) \
	VMOVDQU64 off(SI), acc

#define CARRY(off, acc) \
	VMOVDQU64 off(SI), acc \
	VMOVDQU64 acc, off(DI)

// FOLDCARRY is FOLD with the 64 octets at off, which are stored, too.
#define FOLDCARRY(acc, key, off) \
	CARRY(off, Z14)    \
	FOLD(acc, key, Z14)

// AHEAD asks for the octets four rounds ahead. It costs nothing where they are
// close, gains a fifth from the second-level cache and more from memory. Behind
// the end of the memory a prefetch does nothing.
#define AHEAD \
	PREFETCHT0 2048(SI) \
	PREFETCHT0 2112(SI) \
	PREFETCHT0 2176(SI) \
	PREFETCHT0 2240(SI) \
	PREFETCHT0 2304(SI) \
	PREFETCHT0 2368(SI) \
	PREFETCHT0 2432(SI) \
	PREFETCHT0 2496(SI)

// GATHER brings the eight accumulators together in Z0: each moves to where a
// later one stands.
#define GATHER \
	FOLD(Z0, Z9, Z4)  \
	FOLD(Z1, Z9, Z5)  \
	FOLD(Z2, Z9, Z6)  \
	FOLD(Z3, Z9, Z7)  \
	FOLD(Z0, Z10, Z2) \
	FOLD(Z1, Z10, Z3) \
	FOLD(Z0, Z11, Z1)

// LAST brings the four lanes of Z0 together in the last one, which is then a
// message of 16 octets with the same CRC as the whole: the CRC instruction
// does the division.
#define LAST \
	VEXTRACTI32X4 $3, Z0, X1          \
	VPCLMULQDQ    $0x00, Z12, Z0, Z13 \
	VPCLMULQDQ    $0x11, Z12, Z0, Z0  \
	VPXORQ        Z13, Z0, Z0         \
	VEXTRACTI64X4 $1, Z0, Y13         \
	VPXOR         Y13, Y0, Y0         \
	VEXTRACTI128  $1, Y0, X13         \
	VPXOR         X13, X0, X0         \
	VPXOR         X1, X0, X0          \
	VMOVQ         X0, BX              \
	VPEXTRQ       $1, X0, DX          \
	XORL          AX, AX              \
	CRC32Q        BX, AX              \
	CRC32Q        DX, AX              \
	VZEROUPPER

// func update512(crc uint32, p []byte) uint32
//
// len(p) is a multiple of 64 and not less than 512.
TEXT ·update512(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	KEYS
	TAKE(0, Z0)
	TAKE(64, Z1)
	TAKE(128, Z2)
	TAKE(192, Z3)
	TAKE(256, Z4)
	TAKE(320, Z5)
	TAKE(384, Z6)
	TAKE(448, Z7)
	SEED
	ADDQ $512, SI
	SUBQ $512, CX
	CMPQ CX, $512
	JB   gather

	PCALIGN $32

eight:
	AHEAD
	FOLD(Z0, Z8, 0(SI))
	FOLD(Z1, Z8, 64(SI))
	FOLD(Z2, Z8, 128(SI))
	FOLD(Z3, Z8, 192(SI))
	FOLD(Z4, Z8, 256(SI))
	FOLD(Z5, Z8, 320(SI))
	FOLD(Z6, Z8, 384(SI))
	FOLD(Z7, Z8, 448(SI))
	ADDQ $512, SI
	SUBQ $512, CX
	CMPQ CX, $512
	JAE  eight

gather:
	GATHER
	TESTQ CX, CX
	JZ    last

one:
	FOLD(Z0, Z11, 0(SI))
	ADDQ $64, SI
	SUBQ $64, CX
	JNZ  one

last:
	LAST
	MOVL AX, ret+32(FP)
	RET

// func copy512(crc uint32, dst, src []byte) uint32
//
// len(src) is a multiple of 64 and not less than 512, and dst as long.
TEXT ·copy512(SB), NOSPLIT, $0-60
	MOVL crc+0(FP), AX
	MOVQ dst_base+8(FP), DI
	MOVQ src_base+32(FP), SI
	MOVQ src_len+40(FP), CX
	KEYS
	CARRY(0, Z0)
	CARRY(64, Z1)
	CARRY(128, Z2)
	CARRY(192, Z3)
	CARRY(256, Z4)
	CARRY(320, Z5)
	CARRY(384, Z6)
	CARRY(448, Z7)
	SEED
	ADDQ $512, SI
	ADDQ $512, DI
	SUBQ $512, CX
	CMPQ CX, $512
	JB   gather

	PCALIGN $32

eight:
	AHEAD
	FOLDCARRY(Z0, Z8, 0)
	FOLDCARRY(Z1, Z8, 64)
	FOLDCARRY(Z2, Z8, 128)
	FOLDCARRY(Z3, Z8, 192)
	FOLDCARRY(Z4, Z8, 256)
	FOLDCARRY(Z5, Z8, 320)
	FOLDCARRY(Z6, Z8, 384)
	FOLDCARRY(Z7, Z8, 448)
	ADDQ $512, SI
	ADDQ $512, DI
	SUBQ $512, CX
	CMPQ CX, $512
	JAE  eight

gather:
	GATHER
	TESTQ CX, CX
	JZ    last

one:
	FOLDCARRY(Z0, Z11, 0)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JNZ  one

last:
	LAST
	MOVL AX, ret+56(FP)
	RET
