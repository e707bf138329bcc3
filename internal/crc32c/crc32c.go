// Package crc32c computes CRC32c, the digest of MPA (RFC 5044 section 4.4, RFC
// 3720 section 12.1). It is faster than hash/crc32 if the processor multiplies
// vectors of polynomials (VPCLMULQDQ on amd64), and it can copy at the same time.
//
// On other processors, for runs too short to benefit, and with the build tag purego
// it calls hash/crc32. The results equal those of hash/crc32 with its Castagnoli
// table. No function allocates, and all may be called concurrently.
package crc32c

import (
	"hash/crc32"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC32c of p.
func Checksum(p []byte) uint32 { return Update(0, p) }

// Update returns the CRC32c of the octets whose CRC32c is crc, followed by p. The
// CRC32c of no octets is 0.
func Update(crc uint32, p []byte) uint32 {
	raceorder.Lock()
	raceRead(p)
	if len(p) >= least {
		crc, p = fold(crc, p)
	}
	crc = short(crc, p)
	raceorder.Unlock()
	return crc
}

// Join copies src into p, right after its first n octets, and returns the CRC32c of both.
// It reads src like Copy. It panics if p is too short.
func Join(p []byte, n int, src []byte) uint32 {
	dst := p[n : n+len(src)]
	if len(src) >= least {
		return Copy(Checksum(p[:n]), dst, src)
	}
	raceorder.Lock()
	raceRead(src)
	raceWrite(dst)
	crc := shortJoin(p[:n], dst, src)
	raceorder.Unlock()
	return crc
}

// Copy copies src to the beginning of dst and returns the Update of it, in one pass. It
// reads each octet of src once, so the result is the CRC32c of what dst then holds, even
// if src is written meanwhile. The slices must not overlap. Copy panics if dst is
// shorter than src.
func Copy(crc uint32, dst, src []byte) uint32 {
	dst = dst[:len(src)]
	raceorder.Lock()
	raceRead(src)
	raceWrite(dst)
	if len(src) >= least {
		crc, dst, src = foldCopy(crc, dst, src)
	}
	crc = shortCopy(crc, dst, src)
	raceorder.Unlock()
	return crc
}
