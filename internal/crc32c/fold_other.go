//go:build !amd64 || purego

package crc32c

import (
	"hash/crc32"
	"math"
)

// least is how many octets are worth a fold. Here there is none.
const least = math.MaxInt

func fold(crc uint32, p []byte) (uint32, []byte) { return crc, p }

func foldCopy(crc uint32, dst, src []byte) (uint32, []byte, []byte) { return crc, dst, src }

// shortJoin is the CRC32c of head and then src, which it copies to dst.
func shortJoin(head, dst, src []byte) uint32 {
	return shortCopy(short(0, head), dst, src)
}

// shortCopy is Copy of what is left.
func shortCopy(crc uint32, dst, src []byte) uint32 {
	copy(dst, src)
	return short(crc, dst)
}

// short is Update of what is left.
func short(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }
