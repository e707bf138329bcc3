//go:build !amd64 || purego

package crc32c

import (
	"hash/crc32"
	"math"
)

// least is how many octets are worth a fold. This platform has no fold.
const least = math.MaxInt

func fold(crc uint32, p []byte) (uint32, []byte) { return crc, p }

func foldCopy(crc uint32, dst, src []byte) (uint32, []byte, []byte) { return crc, dst, src }

// shortJoin returns the CRC32c of head followed by src, and copies src to dst.
func shortJoin(head, dst, src []byte) uint32 {
	return shortCopy(short(0, head), dst, src)
}

// shortCopy performs Copy for the rest.
func shortCopy(crc uint32, dst, src []byte) uint32 {
	copy(dst, src)
	return short(crc, dst)
}

// short performs Update for the rest.
func short(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }
