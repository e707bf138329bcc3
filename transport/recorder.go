package transport

import (
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// A recorder writes what the two sides of a connection send as TCP segments. It is
// safe for concurrent use.
type recorder struct {
	mu            sync.Mutex
	w             *pcap.Writer
	err           error // the first failure: recording has ended
	local, remote *side
	reset         bool
	staged        []byte // octets of a segment that come from several buffers
}

// A side is one end of the recorded connection.
type side struct {
	addr  netip.AddrPort
	peer  *side
	next  uint32 // sequence number of what it sends next
	ended bool   // its FIN is recorded
}

// newRecorder writes the file's header and the handshake.
func newRecorder(w io.Writer, local, remote netip.AddrPort, passive bool) *recorder {
	r := &recorder{local: &side{addr: local}, remote: &side{addr: remote}}
	r.local.peer, r.remote.peer = r.remote, r.local
	if r.w, r.err = pcap.NewWriter(w); r.err != nil {
		return r
	}
	client := r.local
	if passive {
		client = r.remote
	}
	now := time.Now()
	r.put(now, client, pcap.SYN, nil)
	client.next++
	r.put(now, client.peer, pcap.SYN|pcap.ACK, nil)
	client.peer.next++
	r.put(now, client, pcap.ACK, nil)
	return r
}

// put records one segment of s. The caller holds mu.
func (r *recorder) put(now time.Time, s *side, f pcap.Flags, payload []byte) {
	if r.err != nil || r.reset {
		return
	}
	seg := pcap.Segment{Src: s.addr, Dst: s.peer.addr, Seq: s.next, Flags: f, Payload: payload}
	if f&pcap.ACK != 0 {
		seg.Ack = s.peer.next
	}
	r.err = r.w.WriteSegment(now, &seg)
	s.next += uint32(len(payload))
}

// octets records the first n octets of bufs as sent by s.
func (r *recorder) octets(now time.Time, s *side, bufs [][]byte, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.staged = r.staged[:0]
	for _, b := range bufs {
		b = b[:min(n, len(b))]
		n -= len(b)
		for len(b) > 0 && r.err == nil {
			m := min(len(b), pcap.MaxPayload-len(r.staged))
			r.staged = append(r.staged, b[:m]...)
			b = b[m:]
			if len(r.staged) == pcap.MaxPayload {
				r.put(now, s, pcap.ACK, r.staged)
				r.staged = r.staged[:0]
			}
		}
	}
	if len(r.staged) > 0 {
		r.put(now, s, pcap.ACK|pcap.PSH, r.staged)
	}
}

// fin records that s ends its half, once.
func (r *recorder) fin(now time.Time, s *side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	r.put(now, s, pcap.FIN|pcap.ACK, nil)
	s.next++
}

// rst records that s resets the connection, after which nothing is recorded. When
// both sides have ended there is nothing to reset.
func (r *recorder) rst(now time.Time, s *side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.local.ended && r.remote.ended {
		return
	}
	r.put(now, s, pcap.RST|pcap.ACK, nil)
	r.reset = true
}

func (r *recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
