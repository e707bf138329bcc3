package stream

import (
	"fmt"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A Config describes this end: its private data, and the size of its ring.
type Config struct {
	Half    uint32 // octets of each half
	Key     uint32 // of both halves: the first is at 0, the second behind it
	Credits uint16
	Ring    int // octets of the ring of what is to be sent
	IOMap   int // entries of the iomap that the peer may write
}

// A Table is where the peer writes slots for this side.
type Table interface {
	// Take returns a slot, and sets it to 0.
	Take(i int) wire.Slot
	// Entry returns an entry of the iomap.
	Entry(i int) wire.Entry
}

// Slots is how many slots the table of this side has.
const Slots = 2

const (
	maxPosts    = 64      // messages of data that are with the QP at one time
	maxControls = 4       // other messages that are with the QP at one time
	maxWrite    = 1 << 16 // octets of one message
)

// Depth is how many work requests are with the QP at one time.
const Depth = 2 * (maxPosts + maxControls + 2)

// A Stream is one end.
type Stream struct {
	in    receiver
	out   sender
	life  life
	polls account
	maps  iomap
	posts posts
	table wire.Table // of the peer
	at    uint32     // the slot of the table that is written next
}

// New returns a stream to a peer whose private data has been checked.
func New(cfg Config, peer wire.Private) *Stream {
	return &Stream{
		in:    newReceiver(cfg),
		out:   newSender(cfg.Ring, peer),
		polls: account{entries: uint64(peer.Credits)},
		maps:  newIOMap(cfg, peer),
		table: peer.Table,
		at:    1 % peer.Table.Slots,
	}
}

// Message takes a message of the peer. After an error the stream cannot go on.
func (s *Stream) Message(m wire.Message, t Table) error {
	if s.life.over() {
		return nil
	}
	switch m.Op() {
	case wire.OpData:
		return s.data(uint64(m.Data()))
	case wire.OpSGL:
		return s.sgl(m.Data(), t)
	case wire.OpCtrl:
		return s.ctrl(m)
	case wire.OpIOMapSGL:
		return s.entry(m.Data(), t)
	}
	return fmt.Errorf("an unknown message: %v", m)
}

func (s *Stream) data(n uint64) error {
	if s.life.heard != hearOpen {
		return fmt.Errorf("%d octets after SHUTDOWN", n)
	}
	if err := s.in.arrived(n); err != nil {
		return err
	}
	s.polls.heard(s.in.count, s.in.got)
	return nil
}

func (s *Stream) sgl(limit uint32, t Table) error {
	acked, err := s.out.raise(uint16(limit), s.polls.entries)
	if err != nil {
		return err
	}
	s.polls.acknowledged(acked)
	if s.out.wantsSlot() {
		return s.out.take(t)
	}
	return nil
}

func (s *Stream) ctrl(m wire.Message) error {
	switch m.Data() {
	case wire.CtrlDisconnect:
		s.life.disconnected()
	case wire.CtrlShutdown:
		s.life.shut()
	case wire.CtrlKeepAlive: // ignored, as librdmacm does, although over iWARP its own keep-alives are RDMA Writes
	default:
		return fmt.Errorf("an unknown message: %v", m)
	}
	return nil
}

// Room returns the first free part of the ring, as much of it as can be posted at once.
func (s *Stream) Room() (off, n int) {
	if s.queued() || s.posts.full() || !s.polls.mayData() {
		return 0, 0
	}
	return s.out.room()
}

// queued reports whether octets, or entries of the iomap, are still to be posted. What the program queues later follows them.
func (s *Stream) queued() bool { return s.out.pending() || len(s.maps.tell) > 0 }

// Queue queues the first n octets of Room to be sent.
func (s *Stream) Queue(n int) { s.out.queued += uint64(n) }

// Readable returns the first part of a half that may be read.
func (s *Stream) Readable() (half, off, n int) { return s.in.readable() }

// Told returns how many octets the peer was told that it may write in all.
func (s *Stream) Told() uint64 { return s.in.told }

// Consume records that the first n octets of Readable were read.
func (s *Stream) Consume(n int) { s.in.consume(uint64(n)) }

// Shutdown ends the direction to the peer, behind what is queued.
func (s *Stream) Shutdown() { s.life.shutdown() }

// Disconnect ends the stream, behind what is queued.
func (s *Stream) Disconnect() { s.life.disconnect() }

// Abandon drops what is queued and not posted.
func (s *Stream) Abandon() {
	s.out.drop()
	s.maps.tell = nil
}

// Writable reports whether octets may be queued.
func (s *Stream) Writable() bool { return s.life.said == sayOpen }

// Reset reports whether the peer has disconnected.
func (s *Stream) Reset() bool { return s.life.heard == hearGone }

// Complete reports whether everything that the peer had to send has arrived.
func (s *Stream) Complete() bool { return s.life.heard != hearOpen }

// Owes reports whether something that the program has queued is still to be posted: octets, an entry or the end.
func (s *Stream) Owes() bool {
	return s.life.said != sayGone && (s.queued() || s.life.said == sayDraining || s.life.said == sayEnding)
}

// Flushed reports whether everything that was to be sent, including the end, has left the QP. If the peer has ended the stream,
// quiet messages may remain.
func (s *Stream) Flushed() bool { return s.life.said == sayGone && s.posts.n <= s.posts.quiet.messages }

// Unsent reports whether queued octets have not left the QP. Octets of quiet messages count as having left it: no completion
// reports them.
func (s *Stream) Unsent() bool { return s.out.queued-s.out.freed > uint64(s.posts.quiet.octets) }
