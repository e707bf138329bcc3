package ddp

import "github.com/goiwarp/iwarp/stag"

// A Message is one outgoing message. Fill in a zero Message and pass it to
// [Sender.Emit] until that reports done; to use it again, assign a new value.
//
// The payload is all of Source, at most 2^32-1 octets. The batch refers to it until the
// flush that follows the message's last segment, and it must not change before, unless
// Stage is set.
type Message struct {
	Tagged      bool
	RsvdULP     uint8  // carried in every segment
	RsvdULPWord uint32 // untagged only: carried in every segment

	STag stag.STag // tagged: the sink's buffer
	TO   uint64    // tagged: where the payload goes

	QN  QN  // untagged: the sink's queue
	MSN MSN // untagged: see [Sender.NextMSN]

	Source []stag.Span
	Stage  bool // copy the payload as it is emitted, because it may change before the flush

	sent uint64
	slow bool // see mayBeSlow
}

// Sent returns how many octets of the payload have been emitted so far, which the
// report about an incomplete message must include (RFC 5040 section 4.8).
func (m *Message) Sent() uint64 { return m.sent }

// header appends the header of the segment that starts at the octet m.sent.
func (m *Message) header(b []byte, last bool) []byte {
	if m.Tagged {
		return TaggedHeader{Last: last, RsvdULP: m.RsvdULP, STag: m.STag, TO: m.TO + m.sent}.Append(b)
	}
	return UntaggedHeader{
		Last: last, RsvdULP: m.RsvdULP, RsvdULPWord: m.RsvdULPWord,
		QN: m.QN, MSN: m.MSN, MO: uint32(m.sent),
	}.Append(b)
}

// shared reports whether a peer may change the source while it is being sent.
func (m *Message) shared() bool {
	for i := range m.Source {
		if r := m.Source[i].Region; r != nil && r.PeersMayWrite() {
			return true
		}
	}
	return false
}

// mayBeSlow reports whether reading the source may take as long as a disk: a durable
// region is usually a mapped file.
func (m *Message) mayBeSlow() bool {
	for i := range m.Source {
		if r := m.Source[i].Region; r != nil && r.Flusher() != nil {
			return true
		}
	}
	return false
}
