package transport

import (
	"net"
	"sync/atomic"
)

// mssEvery is how many octets are written before the kernel is asked again for the maximum
// segment size: often enough to follow changes of the path, while the cost of one system call
// per mebibyte is negligible.
const mssEvery = 1 << 20

// An mssCache is the maximum segment size that the kernel last reported.
type mssCache struct {
	size    atomic.Int64
	asked   atomic.Uint64 // value of written when the kernel was last asked
	written atomic.Uint64
}

// due reports whether the caller must ask the kernel, and records that it does.
func (m *mssCache) due() bool {
	written := m.written.Load()
	if m.size.Load() != 0 && written-m.asked.Load() < mssEvery {
		return false
	}
	m.asked.Store(written)
	return true
}

// learn stores the kernel's answer. If there was none, the previous size stays.
func (m *mssCache) learn(size int, ok bool) {
	if ok {
		m.size.Store(int64(size))
	}
}

func (m *mssCache) get() int { return int(m.size.Load()) }

// EMSS asks the system, if the connection is TCP itself and not a wrapper: with TLS, the octets of a segment
// are not the octets of the Stream.
func (s *connStream) EMSS() int {
	if tcp, ok := s.conn.(*net.TCPConn); ok && s.mss.due() {
		s.mss.learn(segmentSize(tcp))
	}
	return s.mss.get()
}
