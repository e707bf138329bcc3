//go:build !purego

package crc32c

// A key moves 16 octets of a message forward by a fixed distance without
// changing the CRC of the message.
//
// Octets are polynomials over GF(2) here, the way CRC32c sees them: the first
// bit on the wire, which is the least significant of the first octet, is the
// coefficient of the highest power. 16 octets loaded into a vector register
// are A*x^64 + B, A being the low quadword and B the high one. To move them
// by d octets is to multiply by x^8d, and modulo the CRC's polynomial P that is
//
//	A * (x^(8d+64) mod P) + B * (x^8d mod P)
//
// which is at most 96 bits long and can be added (xor) to the 16 octets found
// there. The carry-less product of two bit-reversed quadwords is one bit short of
// the bit-reversed product, that is, multiplied by x. So both factors are taken
// one power lower. A factor has 32 bits, which, bit-reversed, are the upper half
// of its quadword.
type key struct {
	a uint64 // x^(8d+63) mod P, for the low quadword
	b uint64 // x^(8d-1) mod P, for the high one
}

// keys holds the keys of the distances that the assembly uses. It reads them by their offsets;
// they are never written.
var keys = [...]key{
	{0x75bda454_00000000, 0xe986c148_00000000}, // 512
	{0xe9a5d8be_00000000, 0x1426a815_00000000}, // 256
	{0x6577b245_00000000, 0x7417153f_00000000}, // 128
	{0x1c19243b_00000000, 0x75bba45b_00000000}, // 64
	{0xa46ef4aa_00000000, 0x6051243f_00000000}, // 48
	{0x33ccbbbc_00000000, 0xa2158b34_00000000}, // 32
	{0x3743f7bd_00000000, 0x3171d430_00000000}, // 16
	{}, // nowhere: the last lane of a vector stays where it is
}
