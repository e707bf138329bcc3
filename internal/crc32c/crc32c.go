// Package crc32c computes CRC32c, the digest of MPA (RFC 5044 section 4.4, RFC
// 3720 section 12.1): faster than hash/crc32 where the processor multiplies
// vectors of polynomials (VPCLMULQDQ on amd64), and while copying.
//
// Everywhere else, for fewer octets than that pays for, and with the build tag
// purego it is hash/crc32. The numbers are those of hash/crc32 with its Castagnoli
// table. Nothing here allocates, and everything may be called concurrently.
package crc32c

import (
	"hash/crc32"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC32c of p.
func Checksum(p []byte) uint32 { return Update(0, p) }

// Update is the CRC32c of the octets whose CRC32c is crc, followed by p. That of
// no octets is 0.
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

// Join copies src into p, right after its first n octets, and is the CRC32c of both. Of
// src it is as Copy. It panics if p is too short.
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

// Copy copies src to the beginning of dst and is Update of it, in one pass. Each
// octet of src is read once: the CRC32c is that of what dst then holds even when
// someone writes to src meanwhile. They must not overlap. Copy panics if dst is
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
