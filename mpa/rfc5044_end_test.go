package mpa

import (
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

func TestMPA_79_AHalfEndsAlone(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		c := newConn(s, Options{}, &Terms{CRC: true})
		require.True(t, c.Append(octets(20), nil, true))
		require.NoError(t, c.Flush(true))
		require.NoError(t, c.CloseSend())
		ref := reference{crc: true}
		p.want("what was flushed", ref.stream(octets(20)))
		p.wantClosed("then the end of our half")
		ref = reference{crc: true}
		p.send(ref.stream(octets(40)))
		got := &collector{}
		got.stop = func() bool { return len(got.ulpdus) == 1 }
		require.NoError(t, placertest.Receive(c, got), "the other half goes on")
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		c := newConn(s, Options{}, &Terms{CRC: true})
		require.NoError(t, p.c.(interface{ CloseWrite() error }).CloseWrite())
		require.ErrorIs(t, placertest.Receive(c, &collector{}), io.EOF)
		require.True(t, c.Append(octets(20), nil, true))
		require.NoError(t, c.Flush(true), "we still send after the peer's FIN")
		ref := reference{crc: true}
		p.want("our FPDU", ref.stream(octets(20)))
	})
}

func TestMPA_80_FINAtABoundaryIsAGracefulEnd(t *testing.T) {
	ref := reference{crc: true}
	s := &script{reads: [][]byte{ref.stream(octets(20))}, end: io.EOF}
	c, p := conn(s, Terms{CRC: true}), collector{}
	require.Equal(t, io.EOF, drain(c, &p))
	require.Len(t, p.ulpdus, 1)
	require.Equal(t, io.EOF, c.Receive(&p, transport.NoWait), "it is told again")
	require.Equal(t, io.EOF, c.Discard())
}

func TestMPA_81_ConnectionLossIsCode1(t *testing.T) {
	ref := reference{crc: true}
	whole := ref.stream(octets(20))
	for n := 1; n < len(whole); n++ {
		s := &script{reads: [][]byte{whole[:n]}, end: io.EOF}
		var p collector
		err := drain(conn(s, Terms{CRC: true}), &p)
		requireFault(t, transport.MPAConnectionLost, err, "a FIN behind %d octets of an FPDU", n)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Empty(t, p.ulpdus)
	}
	s := &script{end: syscall.ECONNRESET}
	err := drain(conn(s, Terms{CRC: true}), &collector{})
	requireFault(t, transport.MPAConnectionLost, err, "a reset")
	require.ErrorIs(t, err, syscall.ECONNRESET)

	c := conn(&script{wrong: syscall.EPIPE}, Terms{})
	require.True(t, c.Append(octets(20), nil, false))
	err = c.Flush(false)
	requireFault(t, transport.MPAConnectionLost, err, "a write that fails")
	require.ErrorIs(t, err, syscall.EPIPE)
	require.True(t, c.Append(octets(20), nil, false), "what is appended afterwards is dropped")
	require.Equal(t, err, c.Flush(false), "and the error told again")
}

func TestMPA_84_NothingIsDeliveredAfterAnError(t *testing.T) {
	for what, v := range map[string]struct {
		good, bad reference
		code      transport.Code
	}{
		"a wrong CRC":               {reference{crc: true}, reference{crc: true, field: 1}, transport.MPACRC},
		"a wrong CRC, with Markers": {reference{markers: true, crc: true}, reference{markers: true, crc: true, field: 1}, transport.MPACRC},
		"a wrong Marker":            {reference{markers: true, crc: true}, reference{markers: true, crc: true, pointer: 64}, transport.MPAMarker},
	} {
		good, bad := v.good, v.bad
		wire := good.stream(octets(500))
		bad.pos = good.pos
		wire = append(wire, bad.stream(octets(600))...)
		good.pos = bad.pos
		wire = append(wire, good.stream(octets(40))...)
		s := &script{reads: [][]byte{wire, good.stream(octets(50))}}
		c, p := conn(s, Terms{CRC: true, ReceiveMarkers: good.markers}), collector{}
		err := drain(c, &p)
		requireFault(t, v.code, err, what)
		require.Equal(t, err, c.Receive(&p, transport.NoWait), "%s is told again", what)
		require.Equal(t, err, placertest.Receive(c, &p), "%s is told again", what)
		require.Equal(t, [][]byte{octets(500)}, p.ulpdus, "after %s", what)
	}
}

func TestMPA_85_TCPStaysOpenAfterAFramingError(t *testing.T) {
	for code, bad := range map[transport.Code]reference{
		transport.MPACRC:    {markers: true, crc: true, field: 1},
		transport.MPAMarker: {markers: true, crc: true, pointer: 64},
	} {
		converse(t, func(t *testing.T, s transport.Stream, p *peer) {
			c := newConn(s, Options{}, &Terms{CRC: true, ReceiveMarkers: true})
			p.send(bad.stream(octets(20)))
			requireFault(t, code, placertest.Receive(c, &collector{}))
			p.wantNothing("MPA does not close")
			require.True(t, c.Append(octets(22), nil, true))
			require.NoError(t, c.Flush(true), "the other half still sends")
			ref := reference{crc: true}
			p.want("a Terminate, say", ref.stream(octets(22)))
			p.wantNothing("MPA still does not close")
		})
	}
}

func TestSegmentErrorEndsTheReceivingHalf(t *testing.T) {
	ref := reference{crc: true}
	s := &script{reads: [][]byte{ref.stream(octets(20), octets(21), octets(22))}}
	c := conn(s, Terms{CRC: true})
	p := collector{refuse: func(seq uint64) error {
		if seq == 1 {
			return errTest
		}
		return nil
	}}
	require.Equal(t, errTest, drain(c, &p), "returned as it is")
	p.refuse = nil
	require.Equal(t, errTest, c.Receive(&p, transport.NoWait))
	require.Len(t, p.ulpdus, 1)
}

func TestAbortEndsEveryCall(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		c := newConn(s, Options{}, &Terms{CRC: true})
		received, flushed := make(chan error), make(chan error)
		go func() { received <- placertest.Receive(c, &collector{}) }()
		go func() {
			for c.Append(octets(18), [][]byte{octets(60000)}, true) {
			}
			flushed <- c.Flush(true) // the peer reads nothing
		}()
		synctest.Wait()
		c.Abort(errTest)
		c.Abort(io.EOF)
		for _, err := range []error{<-received, <-flushed, c.Discard()} {
			require.ErrorIs(t, err, errTest, "the first cause")
			require.ErrorIs(t, err, net.ErrClosed)
			require.NotErrorIs(t, err, io.EOF)
		}
		_, err := p.c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET, "the peer sees a reset")
	})
	c := conn(&script{}, Terms{})
	c.Abort(nil)
	err := placertest.Receive(c, &collector{})
	require.ErrorIs(t, err, net.ErrClosed, "without a cause")
	require.ErrorContains(t, err, "aborted")
}

func TestCloseEndsEveryCall(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		c := newConn(s, Options{}, &Terms{})
		received := make(chan error)
		go func() { received <- placertest.Receive(c, &collector{}) }()
		synctest.Wait()
		require.NoError(t, c.Close())
		require.Equal(t, net.ErrClosed, <-received)
		require.True(t, c.Append(octets(20), nil, true))
		require.Equal(t, net.ErrClosed, c.Flush(true))
		p.wantClosed("after Close")
	})
}

func TestDiscardReadsToTheEnd(t *testing.T) {
	ref := reference{crc: true, field: 1}
	wire := ref.stream(octets(20))
	s := &script{reads: [][]byte{wire, octets(1 << 20), octets(7)}, end: io.EOF}
	c := conn(s, Terms{CRC: true})
	requireFault(t, transport.MPACRC, c.Receive(&collector{}, transport.NoWait))
	require.Equal(t, io.EOF, c.Discard())
	require.Empty(t, s.reads)
	require.Error(t, c.Receive(&collector{}, transport.NoWait), "nothing more is ever delivered")

	s = &script{reads: [][]byte{octets(7)}, end: syscall.ECONNRESET}
	c = conn(s, Terms{CRC: true})
	requireFault(t, transport.MPAConnectionLost, c.Discard())
	require.Equal(t, errDiscarded, c.Receive(&collector{}, transport.NoWait))
}
