package transport

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/pcap"
)

// A recorder records the data that the two sides of a connection send, as TCP segments. It
// is safe for concurrent use.
type recorder struct {
	mu            lockorder.Mutex[lockorder.Leaf]
	w             *pcap.Writer
	err           error // the first failure, after which recording ends
	local, remote *side
	reset         bool
	part          []byte // octets that were read and are not recorded yet
	writing       bool   // a write is running, which the peer may have answered already
	reading       bool   // a read is running
	resetBy       *side  // the side that resets the connection; recorded after running reads and writes
}

// A side is one end of the recorded connection.
type side struct {
	addr  netip.AddrPort
	peer  *side
	next  uint32 // sequence number of the next octet that it sends
	ended bool   // its FIN is recorded
	ends  bool   // its FIN is to be recorded, after a running write
}

// A guarded is a Writer whose panics become errors. A panic that went on, and from which the program recovers, could leave
// the right to send, or to receive, with a goroutine that no longer uses it.
type guarded struct{ io.Writer }

func (g guarded) Write(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the Writer panicked: %v", v)
		}
	}()
	return g.Writer.Write(p)
}

// newRecorder writes the header of the file, unless o.Continues, and the handshake.
func newRecorder(w io.Writer, local, remote netip.AddrPort, o TapOptions) *recorder {
	r := &recorder{local: &side{addr: local}, remote: &side{addr: remote}}
	w = guarded{w}
	r.local.peer, r.remote.peer = r.remote, r.local
	if o.Continues {
		r.w = pcap.ContinueWriter(w)
	} else if r.w, r.err = pcap.NewWriter(w); r.err != nil {
		return r
	}
	client := r.local
	if o.Passive {
		client = r.remote
	}
	r.put(client, pcap.SYN, nil)
	client.next++
	r.put(client.peer, pcap.SYN|pcap.ACK, nil)
	client.peer.next++
	r.put(client, pcap.ACK, nil)
	return r
}

// put records one segment of s. mu must be held. The time is read under mu, so that no segment is older than the
// previous one.
func (r *recorder) put(s *side, f pcap.Flags, payload []byte) {
	if r.err != nil || r.reset {
		return
	}
	seg := pcap.Segment{Src: s.addr, Dst: s.peer.addr, Seq: s.next, Flags: f, Payload: payload}
	if f&pcap.ACK != 0 {
		seg.Ack = s.peer.next
	}
	r.err = r.w.WriteSegment(time.Now(), &seg)
	s.next += uint32(len(payload))
}

// reads is called before a read, so that a reset is recorded after the octets that it reads.
func (r *recorder) reads() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = true
}

// read is called after a read, and after received.
func (r *recorder) read() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = false
	r.settle()
}

// received records octets that were read. A read that has filled its buffer has probably
// not read everything, for example only the header of a start-up frame. Then the octets are
// held back and recorded together with the next ones, because Wireshark does not recognize
// such a frame if it is split.
func (r *recorder) received(p []byte, filled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.part = append(r.part, p...)
	switch {
	case r.writing && len(r.part) < maxHeldBack:
	case !filled || len(r.part) >= pcap.MaxPayload:
		r.complete()
	}
}

// maxHeldBack bounds the octets that are held back during a long write.
const maxHeldBack = 1 << 20

// complete records the octets that were held back. mu must be held.
func (r *recorder) complete() {
	r.segments(r.remote, r.part)
	r.part = r.part[:0]
}

// sends is called before a write. Octets that are read until sent is called may be a response
// to the write, and are recorded after it.
func (r *recorder) sends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete()
	r.writing = true
}

// sent records octets that were written.
func (r *recorder) sent(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	r.segments(r.local, p)
	r.complete()
	r.settle()
}

// flush records the octets that were held back.
func (r *recorder) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete()
}

// segments records the octets of p as sent by s. mu must be held.
func (r *recorder) segments(s *side, p []byte) {
	for len(p) > 0 {
		n := min(len(p), pcap.MaxPayload)
		flags := pcap.ACK
		if n == len(p) {
			flags |= pcap.PSH
		}
		r.put(s, flags, p[:n])
		p = p[n:]
	}
}

// fin records, once, that s ends its half of the connection, after a running write.
func (r *recorder) fin(s *side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.ends = true
	r.settle()
}

// rst records that s resets the connection, after a running read and write. Nothing is recorded
// after a reset. If both sides have ended their halves, no reset is recorded.
func (r *recorder) rst(s *side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resetBy == nil {
		r.resetBy = s
	}
	r.settle()
}

// settle records the FINs and the reset that need not wait any more. mu must be held.
func (r *recorder) settle() {
	if r.writing {
		return
	}
	for _, s := range []*side{r.remote, r.local} {
		if s.ends && !s.ended {
			r.complete()
			s.ended = true
			r.put(s, pcap.FIN|pcap.ACK, nil)
			s.next++
		}
	}
	if r.resetBy == nil || r.reading {
		return
	}
	r.complete()
	if !r.local.ended || !r.remote.ended {
		r.put(r.resetBy, pcap.RST|pcap.ACK, nil)
	}
	r.reset = true
}

func (r *recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
