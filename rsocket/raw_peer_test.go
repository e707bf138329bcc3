package rsocket

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A rawPeer is an initiator that sends anything.
type rawPeer struct {
	*wiretest.Peer
	conn *Conn
	told wire.Private // by this side
	msn  uint32
}

// itsPrivate is the private data of a rawPeer.
var itsPrivate = wire.Private{
	Flags: wire.FlagIOMap, Credits: 64, Table: wire.Table{Addr: 0x1000, Key: 0x100, Slots: 2},
	Half: wire.Slot{Addr: 0x2000, Key: 0x200, Length: 4096},
}

// small is the configuration of this side towards raw peers.
var small = Config{ReadBuffer: 8192, WriteBuffer: 8192, Credits: 16}

// meet connects a rawPeer. It must be called within a bubble.
func meet(t testing.TB, cfg *Config, private wire.Private) *rawPeer {
	t.Helper()
	l := listen(t, open(t), "pipe", cfg)
	p := wiretest.Dial(t, "pipe", l.Addr().String(), append(wiretest.Hex("50 02 002c 8010 c010"), private.Append(nil)...))
	reply := p.Read(64)
	told, err := wire.ParsePrivate(reply[24:])
	require.NoError(t, err)
	s := &rawPeer{Peer: p, told: told}
	s.conn, err = l.AcceptConn()
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Conn.Close()
		_ = s.conn.qp.Abort()
		_ = s.conn.Close()
	})
	return s
}

// message returns a Send of a message.
func (s *rawPeer) message(op wire.Op, data uint32) []byte {
	s.msn++
	return wiretest.Send(s.msn, 0, string(wire.NewMessage(op, data).Append(nil, s.told.Flags.Order())))
}

// write returns a Write into the ring of this side.
func (s *rawPeer) write(at uint64, octets string) []byte {
	return wiretest.Write(stag.STag(s.told.Half.Key), at, octets)
}

// slot returns a Write into the table of this side.
func (s *rawPeer) slot(i uint64, slot wire.Slot) []byte {
	return wiretest.Write(stag.STag(s.told.Table.Key), wire.SlotSize*i, string(slot.Append(nil, s.told.Flags.Order())))
}

// entry returns a Write of an entry of the iomap into the table of this side.
func (s *rawPeer) entry(i uint64, e wire.Entry) []byte {
	return wiretest.Write(stag.STag(s.told.Table.Key), slotsSize+wire.EntrySize*i, string(e.Append(nil, s.told.Flags.Order())))
}

// nextMessage waits for a Write, and the message behind it.
func (s *rawPeer) nextMessage() wire.Message {
	s.Helper()
	require.NotZero(s, s.Segment()[0]&0x80, "a Write")
	return s.hears()
}

// writeTo returns a Write to the beginning of a half.
func (s *rawPeer) writeTo(half wire.Slot, octets string) []byte {
	return wiretest.Write(stag.STag(half.Key), half.Addr, octets)
}

// nextSlot waits for a slot, and the message behind it.
func (s *rawPeer) nextSlot() wire.Slot {
	s.Helper()
	u := s.Segment()
	require.NotZero(s, u[0]&0x80, "a Write")
	slot := wire.ParseSlot((*[wire.SlotSize]byte)(u[14:]), s.told.Flags.Order())
	require.Equal(s, wire.OpSGL, s.hears().Op())
	return slot
}

// hears waits for a message, and ignores Writes.
func (s *rawPeer) hears() wire.Message {
	s.Helper()
	for {
		if u := s.Segment(); u[0]&0x80 == 0 {
			m, err := wire.ParseMessage(u[18:], s.told.Flags.Order())
			require.NoError(s, err)
			return m
		}
	}
}

// endsWithDISCONNECT takes what comes, and ends its half after DISCONNECT. Then it closes the channel.
func (s *rawPeer) endsWithDISCONNECT() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s.hears() != disconnect {
		}
		s.CloseWrite()
	}()
	return ended
}

// wants waits for messages.
func (s *rawPeer) wants(all ...wire.Message) {
	s.Helper()
	for _, m := range all {
		require.Equal(s, m.String(), s.hears().String())
	}
}

// sgl returns a message that tells a limit.
func sgl(limit uint32) wire.Message { return wire.NewMessage(wire.OpSGL, limit) }

var (
	shutdown   = wire.NewMessage(wire.OpCtrl, wire.CtrlShutdown)
	disconnect = wire.NewMessage(wire.OpCtrl, wire.CtrlDisconnect)
)

// swapped returns a message in the other byte order.
func swapped(op wire.Op, data uint32) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(wire.NewMessage(op, data))))
}
