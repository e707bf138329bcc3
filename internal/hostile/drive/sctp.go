package drive

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"sync"
)

// An association is what an attacker over UDP knows about its SCTP association: what its packets must carry.
type association struct {
	mu     sync.Mutex
	tag    uint32 // chosen by the other side
	cookie []byte
}

// attackerPort is the SCTP port of attackers.
const attackerPort = 5001

const (
	headerSize   = 12
	chunkInit    = 1
	chunkInitAck = 2
	chunkCookie  = 10
	paramCookie  = 7
)

// packet puts the header of SCTP in front of chunks (RFC 9260 section 3.1).
func (a *attacker) packet(chunks []byte) []byte {
	a.mu.Lock()
	tag := a.tag
	a.mu.Unlock()
	if len(chunks) > 0 && chunks[0] == chunkInit {
		tag = 0
	}
	b := binary.BigEndian.AppendUint16(nil, attackerPort)
	b = binary.BigEndian.AppendUint16(b, a.remotePort())
	b = binary.BigEndian.AppendUint32(b, tag)
	b = append(b, 0, 0, 0, 0)
	b = append(b, chunks...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// cookieEcho returns the chunk that returns the cookie, changed by mask.
func (a *attacker) cookieEcho(mask []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := binary.BigEndian.AppendUint16([]byte{chunkCookie, 0}, uint16(4+len(a.cookie)))
	b = append(b, a.cookie...)
	for i := range min(len(mask), len(a.cookie)) {
		b[4+i] ^= mask[i]
	}
	return append(b, make([]byte, -len(b)&3)...)
}

// heard takes the tag and the cookie from an INIT ACK (RFC 9260 section 3.3.3).
func (a *association) heard(p []byte) {
	const fixed = headerSize + 20
	if len(p) < fixed || p[headerSize] != chunkInitAck {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tag = binary.BigEndian.Uint32(p[headerSize+4:])
	for rest := p[fixed:]; len(rest) >= 4; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < 4 || n > len(rest) {
			return
		}
		if binary.BigEndian.Uint16(rest) == paramCookie {
			a.cookie = append([]byte(nil), rest[4:n]...)
		}
		rest = rest[min((n+3)&^3, len(rest)):]
	}
}

// remotePort returns the SCTP port of the other side, which has the same number as its UDP port.
func (a *attacker) remotePort() uint16 {
	return a.RemoteAddr().(*net.UDPAddr).AddrPort().Port()
}
