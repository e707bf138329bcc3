package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// TapOptions describe how a tapped connection appears in its capture. The zero value is
// valid.
type TapOptions struct {
	// Local and Remote are the addresses in the headers. If one is invalid, the addresses
	// of the Stream are used, or documentation addresses if it has no IP addresses.
	Local, Remote netip.AddrPort
	// Passive says that the peer opened the connection, so its SYN comes first.
	Passive bool
	// Received is the data that was received before the call of Tap.
	Received []byte
	// Continues says that w already holds a capture, to which this one is appended.
	Continues bool
}

// Tap returns a Stream that uses s and records everything that is read and written in w, as
// a pcap file for Wireshark. The headers are synthetic: a handshake, segments about as large
// as the reads and writes, in an order in which a response does not precede its request, and
// the end. The data of a TLS connection is recorded in plain text.
//
// Each packet is one Write to w, which should be fast: Read and Write of the Stream wait for it.
// CloseWrite, Close and Abort wait at most one second. The caller closes w after s. If a Write
// fails, or panics, recording ends, the connection continues, and Close returns the error. All
// other methods are those of s.
func Tap(s Stream, w io.Writer, o TapOptions) Stream {
	local, remote := o.Local, o.Remote
	if !local.IsValid() || !remote.IsValid() || local.Addr().Is4() != remote.Addr().Is4() {
		local, remote = tapAddrs(s, o.Continues)
	}
	t := &tap{Stream: s, rec: newRecorder(w, local, remote, o)}
	if len(o.Received) > 0 {
		t.rec.received(o.Received, false)
	}
	return t
}

// tapAddrs returns the addresses of s, or two documentation addresses (RFC 5737). The second connection of a
// capture has other ports; otherwise its octets would look like retransmissions of the first one.
func tapAddrs(s Stream, second bool) (local, remote netip.AddrPort) {
	l, lok := s.LocalAddr().(*net.TCPAddr)
	r, rok := s.RemoteAddr().(*net.TCPAddr)
	if lok && rok {
		local, remote = unmap(l.AddrPort()), unmap(r.AddrPort())
		if local.IsValid() && remote.IsValid() && local.Addr().Is4() == remote.Addr().Is4() {
			return local, remote
		}
	}
	port := uint16(49152) // the first port that cannot be registered
	if second {
		port += 2
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), port),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), port+1)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// FlushTap records the received octets that a Stream returned by Tap has held back. It is called
// before the connection is given to another user.
func FlushTap(s Stream) {
	if t, ok := s.(*tap); ok {
		t.rec.flush()
	}
}

type tap struct {
	Stream
	rec  *recorder
	copy []byte    // a copy of the octets that are being written
	one  [1][]byte // copy, as an argument of Write
}

func (t *tap) Read(p []byte, wait Wait) (int, error) {
	t.rec.reads()
	n, err := t.Stream.Read(p, wait)
	defer t.rec.read()
	if n > 0 {
		t.rec.received(p[:n], n == len(p))
	}
	switch {
	case errors.Is(err, io.EOF):
		t.rec.fin(t.rec.remote)
	case sockerr.Is(err, syscall.ECONNRESET):
		t.rec.rst(t.rec.remote)
	}
	return n, err
}

// Write writes a copy, because a response of the peer may change the caller's octets
// before they are recorded.
func (t *tap) Write(bufs [][]byte, wait bool) (int, error) {
	t.copy = t.copy[:0]
	for _, b := range bufs {
		t.copy = append(t.copy, b...)
	}
	t.one[0] = t.copy
	t.rec.sends()
	n, err := t.Stream.Write(t.one[:], wait)
	t.rec.sent(t.copy[:n])
	return n, err
}

// TCPInfo returns the TCPInfo of the Stream below.
func (t *tap) TCPInfo() (TCPInfo, bool) { return InfoOf(t.Stream) }

func (t *tap) Prefault(payload [][]byte) { Prefault(t.Stream, payload) }

func (t *tap) Detach() Stream {
	t.Stream = Detach(t.Stream)
	return t
}

func (t *tap) CloseWrite() error {
	err := t.Stream.CloseWrite()
	if err == nil {
		_ = t.ends(t.rec.fin) // Close returns the error
	}
	return err
}

func (t *tap) Close() error {
	err := t.Stream.Close()
	if tapErr := t.ends(t.rec.fin); tapErr != nil {
		err = errors.Join(err, fmt.Errorf("transport: tap: %w", tapErr))
	}
	return err
}

func (t *tap) Abort() error {
	err := t.Stream.Abort()
	_ = t.ends(t.rec.rst) // only the recording has failed
	return err
}

// endTime bounds how long the end of a connection waits for its record.
const endTime = time.Second

// ends records an end of this side, and returns the error of the recorder. It does not wait longer than
// endTime: a Write to w that does not return must not keep the connection from ending.
func (t *tap) ends(record func(s *side)) error {
	failed := make(chan error, 1)
	go func() {
		record(t.rec.local)
		failed <- t.rec.failure()
	}()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case err := <-failed:
		return err
	case <-timer.C:
		return fmt.Errorf("a Write has not returned: %w", os.ErrDeadlineExceeded)
	}
}
