package nbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client sends and receives octets.
type client struct {
	*testing.T
	net.Conn
	served chan error
}

// connect serves m to a client that has received the greeting.
func connect(t *testing.T, m Medium) *client {
	ours, theirs := net.Pipe()
	require.NoError(t, ours.SetDeadline(time.Now().Add(30*time.Second)))
	c := &client{t, ours, make(chan error, 1)}
	go func() { c.served <- Serve(theirs, m) }()
	c.hears("NBDMAGIC", "IHAVEOPT", uint16(3))
	return c
}

// octets concatenates numbers, big-endian, and texts.
func octets(parts ...any) (b []byte) {
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			var err error
			if b, err = binary.Append(b, binary.BigEndian, v); err != nil {
				panic(err)
			}
		}
	}
	return b
}

func (c *client) says(parts ...any) {
	c.Helper()
	_, err := c.Write(octets(parts...))
	require.NoError(c, err)
}

func (c *client) hears(parts ...any) {
	c.Helper()
	want := octets(parts...)
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(c, err)
	require.Equal(c, want, got)
}

// leaves closes the connection and returns the server's error.
func (c *client) leaves() error {
	require.NoError(c, c.Close())
	return <-c.served
}

// enter requests the disk as present clients do.
func enter(t *testing.T, m Medium) *client {
	c := connect(t, m)
	c.says(uint32(3))
	c.says("IHAVEOPT", uint32(7), uint32(6), uint32(0), uint16(0))
	c.hears(uint64(0x3e889045565a9), uint32(7), uint32(3), uint32(12), uint16(0), uint64(m.Size()), uint16(0x6d))
	c.hears(uint64(0x3e889045565a9), uint32(7), uint32(3), uint32(14), uint16(3), uint32(512), uint32(4096), uint32(32<<20))
	c.hears(uint64(0x3e889045565a9), uint32(7), uint32(1), uint32(0))
	return c
}

// asks sends the header of a request.
func (c *client) asks(flags, kind uint16, off uint64, n int) {
	c.says(uint32(0x25609513), flags, kind, "a cookie", off, uint32(n))
}

func (c *client) isTold(errno uint32) { c.Helper(); c.hears(uint32(0x67446698), errno, "a cookie") }

func TestOptions(t *testing.T) {
	c := connect(t, newDisk(1))
	c.says(uint32(3))
	c.says("IHAVEOPT", uint32(8), uint32(0))
	c.hears(uint64(0x3e889045565a9), uint32(8), uint32(1<<31|1), uint32(0))
	c.says("IHAVEOPT", uint32(6), uint32(10), "0123456789")
	c.hears(uint64(0x3e889045565a9), uint32(6), uint32(3), uint32(12), uint16(0), uint64(sectors*Sector), uint16(0x6d))
	c.hears(uint64(0x3e889045565a9), uint32(6), uint32(3), uint32(14), uint16(3), uint32(512), uint32(4096), uint32(32<<20))
	c.hears(uint64(0x3e889045565a9), uint32(6), uint32(1), uint32(0))
	c.says("IHAVEOPT", uint32(3), uint32(0))
	c.hears(uint64(0x3e889045565a9), uint32(3), uint32(1<<31|1), uint32(0))
	require.ErrorIs(t, c.leaves(), io.EOF)

	c = connect(t, newDisk(1))
	c.says(uint32(3), "IHAVEOPT", uint32(2), uint32(0))
	c.hears(uint64(0x3e889045565a9), uint32(2), uint32(1), uint32(0))
	require.NoError(t, <-c.served, "the client has left in form")
	require.NoError(t, c.Close())
}

func TestOldestOption(t *testing.T) {
	for _, noZeroes := range []bool{false, true} {
		c := connect(t, newDisk(1))
		flags, zeroes := uint32(1), make([]byte, 124)
		if noZeroes {
			flags, zeroes = 3, nil
		}
		c.says(flags, "IHAVEOPT", uint32(1), uint32(4), "disk")
		c.hears(uint64(sectors*Sector), uint16(0x6d), zeroes)
		c.asks(0, cmdFlush, 0, 0)
		c.isTold(0)
		require.ErrorIs(t, c.leaves(), io.EOF)
	}
}

func TestNonsenseEndsTheConnection(t *testing.T) {
	for what, say := range map[string][]byte{
		"an old client":      octets(uint32(0)),
		"unknown flags":      octets(uint32(5)),
		"no option":          octets(uint32(3), "IHAVENOT", uint32(7), uint32(0)),
		"an endless option":  octets(uint32(3), "IHAVEOPT", uint32(7), uint32(1<<31)),
		"no request":         octets(uint32(3), "IHAVEOPT", uint32(1), uint32(0), make([]byte, 28)),
		"an endless request": octets(uint32(3), "IHAVEOPT", uint32(1), uint32(0), uint32(0x25609513), uint32(cmdWrite), make([]byte, 16), ^uint32(0)),
	} {
		t.Run(what, func(t *testing.T) {
			c := connect(t, newDisk(1))
			go func() { _, _ = io.Copy(io.Discard, c) }()
			_, _ = c.Write(say) // the server need not read all of it
			err := <-c.served
			require.ErrorContains(t, err, "nbd: ")
			require.NoError(t, c.Close())
		})
	}
}

func TestReadAndWrite(t *testing.T) {
	d := newDisk(1)
	c := enter(t, d)
	data := slices.Concat(whole(1)[:Sector], whole(2)[:Sector])
	c.asks(0, cmdWrite, 4*Sector, len(data))
	c.says(data)
	c.isTold(0)
	c.asks(0, cmdRead, 3*Sector, 3*Sector)
	c.isTold(0)
	c.hears(whole(0)[:Sector], data)
	c.asks(0, cmdTrim, 4*Sector, Sector)
	c.isTold(0)
	c.asks(withFUA, cmdZeroes, 5*Sector, Sector)
	c.isTold(0)
	c.asks(fastZero, cmdZeroes, 4*Sector, Sector)
	c.isTold(95)
	c.asks(0, cmdRead, 4*Sector, 2*Sector)
	c.isTold(0)
	c.hears(data[:Sector], whole(0)[:Sector])
	c.asks(0, cmdDisc, 0, 0)
	require.NoError(t, <-c.served, "the client has left in form")
	require.NoError(t, c.Close())
}

func TestRequestsInARowAreAnsweredInOrder(t *testing.T) {
	c := enter(t, newDisk(1))
	var all []byte
	for i := range uint64(20) {
		all = append(all, octets(uint32(0x25609513), uint16(0), uint16(cmdWrite), i, i*Sector, uint32(Sector), whole(byte(i))[:Sector])...)
	}
	go func() { _, _ = c.Write(all) }()
	for i := range uint64(20) {
		c.hears(uint32(0x67446698), uint32(0), i)
	}
	require.ErrorIs(t, c.leaves(), io.EOF)
}

func TestFlushAndFUA(t *testing.T) {
	d := newDisk(1)
	c := enter(t, d)
	c.asks(withFUA, cmdWrite, 0, Sector)
	c.says(whole(1)[:Sector])
	c.isTold(0)
	c.asks(0, cmdWrite, Sector, 8*Sector)
	c.says(whole(2)[:8*Sector])
	c.isTold(0)
	c.asks(0, cmdFlush, 0, 0)
	c.isTold(0)
	c.asks(0, cmdWrite, 9*Sector, 32*Sector)
	c.says(whole(3)[:32*Sector])
	c.isTold(0)
	require.ErrorIs(t, c.leaves(), io.EOF)
	d.Cut()
	left := contents(t, d)
	require.Equal(t, byte(1), left[0], "written through")
	require.Equal(t, whole(2)[:8], left[1:9], "flushed")
	require.Contains(t, left[9:41], byte(0), "neither")
}

func TestRequestsThatCannotBe(t *testing.T) {
	c := enter(t, newDisk(1))
	for _, q := range []struct {
		flags, kind uint16
		off         uint64
		n           int
	}{
		{0, cmdRead, sectors * Sector, Sector},
		{0, cmdRead, 1 << 63, Sector},
		{0, cmdRead, 0, (sectors + 1) * Sector},
		{0, cmdRead, 100, Sector},
		{0, cmdRead, 0, 100},
		{0, cmdTrim, 0, (sectors + 1) * Sector},
		{0, 77, 0, Sector},
		{1 << 2, cmdRead, 0, Sector},
	} {
		c.asks(q.flags, q.kind, q.off, q.n)
		c.isTold(22)
	}
	c.asks(0, cmdWrite, sectors*Sector, Sector)
	c.says(whole(1)[:Sector])
	c.isTold(22)
	c.asks(0, cmdRead, 0, Sector)
	c.isTold(0)
	c.hears(whole(0)[:Sector])
	require.ErrorIs(t, c.leaves(), io.EOF, "the connection has lived")
}

// A faulty is a medium that fails.
type faulty struct {
	*Disk
	err error
}

func (f faulty) ReadAt([]byte, int64) error        { return f.err }
func (f faulty) WriteAt([]byte, int64, bool) error { return f.err }
func (f faulty) Flush() error                      { return f.err }

func TestErrorsHaveTheirNumbers(t *testing.T) {
	for err, number := range map[error]uint32{
		syscall.EIO: 5, errors.New("dust"): 5, syscall.EPERM: 1, syscall.ENOSPC: 28, fmt.Errorf("odd: %w", syscall.EINVAL): 22,
	} {
		c := enter(t, faulty{newDisk(1), err})
		c.asks(0, cmdRead, 0, Sector)
		c.isTold(number)
		c.asks(0, cmdWrite, 0, Sector)
		c.says(whole(1)[:Sector])
		c.isTold(number)
		c.asks(0, cmdZeroes, 0, Sector)
		c.isTold(number)
		c.asks(0, cmdFlush, 0, 0)
		c.isTold(number)
		require.ErrorIs(t, c.leaves(), io.EOF)
	}
}
