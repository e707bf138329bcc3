//go:build linux && !386

package sctpkernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	library "github.com/ishidawataru/sctp"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// dial begins an association from one or more addresses to those of a peer. receive reports
// that it is established.
func dial(cfg Config, from, to Addr) (*socket, error) {
	kept := -1
	c := library.SocketConfig{
		InitMsg: streams,
		// The library would wait in the kernel, and close the socket that does not.
		Control: func(_, _ string, c syscall.RawConn) error {
			return prepared(c, cfg, func(fd int) (err error) {
				if err := unix.SetNonblock(fd, true); err != nil {
					return err
				}
				kept, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
				return err
			})
		},
	}
	local, remote := from.library(), to.library()
	var conn *library.SCTPConn
	err := roomy(func() (err error) {
		conn, err = c.Dial(Network, local, remote)
		return err
	})
	if err == nil {
		// Not by the Close of conn, which would shut the association down.
		err = descriptor(conn.SyscallConn, unix.Close)
	} else if errors.Is(err, unix.EINPROGRESS) {
		err = nil
	}
	if err != nil {
		if kept >= 0 {
			_ = unix.Close(kept)
		}
		return nil, known(err)
	}
	return newSocket(kept)
}

// listen opens a socket for the associations of peers.
func listen(cfg Config, at Addr) (*socket, error) {
	c := library.SocketConfig{
		InitMsg: streams,
		Control: func(_, _ string, c syscall.RawConn) error {
			// As package net does: associations of a former listener that have not ended
			// do not keep the next listener from the port.
			return prepared(c, cfg, func(fd int) error {
				return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
			})
		},
	}
	local := at.library()
	var l *library.SCTPListener
	err := roomy(func() (err error) {
		l, err = c.Listen(Network, local)
		return err
	})
	if err != nil {
		return nil, known(err)
	}
	var s *socket
	err = descriptor(l.SyscallConn, func(fd int) (err error) {
		if err = unix.SetNonblock(fd, true); err == nil {
			s, err = newSocket(fd)
		}
		return err
	})
	return s, err
}

// streams requests the same number in each direction (RFC 5043 section 8).
var streams = library.InitMsg{NumOstreams: maxStreams, MaxInstreams: maxStreams}

// known returns ErrNoSCTP for the errors by which a kernel says that it does not support SCTP.
func known(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ESOCKTNOSUPPORT) {
		return ErrNoSCTP
	}
	return fmt.Errorf("sctp: %w", err)
}

// descriptor calls f with the descriptor of a socket of the library.
func descriptor(of func() (syscall.RawConn, error), f func(fd int) error) error {
	c, err := of()
	if err != nil {
		return err
	}
	if cerr := c.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// prepared sets the options of a socket that is neither bound nor connected, and calls f.
func prepared(c syscall.RawConn, cfg Config, f func(fd int) error) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		for _, o := range options(cfg) {
			if err = unix.SetsockoptString(int(fd), unix.IPPROTO_SCTP, o.name, string(o.value)); err != nil {
				err = os.NewSyscallError("setsockopt "+strconv.Itoa(o.name), err)
				return
			}
		}
		enlarge(int(fd))
		err = f(int(fd))
	})
	return errors.Join(cerr, err)
}

// An option is a socket option of SCTP, in the byte order of the machine.
type option struct {
	name  int
	value []byte
}

// options returns the options of every socket. An accepted association inherits them from the listening socket.
func options(cfg Config) []option {
	ms := lastAttempt(cfg.PeerTimeout)
	const (
		rtoInitial, rtoMin = 1000, 1000 // milliseconds: RFC 9260 section 16
		attempts           = 4
		enableHeartbeats   = 1
	)
	events := make([]byte, 11)
	events[1] = 1 // SCTP_ASSOC_CHANGE
	events[6] = 1 // SCTP_PARTIAL_DELIVERY_EVENT
	events[7] = 1 // SCTP_ADAPTATION_INDICATION
	parameters := make([]byte, 4+128)
	parameters = binary.NativeEndian.AppendUint32(parameters, ms) // spp_hbinterval
	parameters = binary.NativeEndian.AppendUint16(parameters, attempts)
	parameters = binary.NativeEndian.AppendUint32(parameters, 0) // spp_pathmtu
	parameters = binary.NativeEndian.AppendUint32(parameters, 0) // spp_sackdelay
	parameters = binary.NativeEndian.AppendUint32(parameters, enableHeartbeats)
	parameters = append(parameters, make([]byte, 6)...) // spp_ipv6_flowlabel, spp_dscp, padding
	return []option{
		{0, words(0, min(rtoInitial, ms), ms, min(rtoMin, ms))},                                // SCTP_RTOINFO
		{1, append(binary.NativeEndian.AppendUint16(words(0), attempts), make([]byte, 14)...)}, // SCTP_ASSOCINFO
		{3, words(1)},               // SCTP_NODELAY: nothing is delayed for bundling (RFC 5043 section 11.2)
		{7, words(sctp.Adaptation)}, // SCTP_ADAPTATION_LAYER
		{9, parameters},             // SCTP_PEER_ADDR_PARAMS
		{11, events},                // SCTP_EVENTS
		{32, words(1)},              // SCTP_RECVRCVINFO
	}
}

// lastAttempt returns how long an attempt to reach a silent peer waits at most, in milliseconds. The peer is given up after five
// attempts, each longer than the previous one. To the kernel more than 2^31-1 is a wait without end.
func lastAttempt(timeout time.Duration) uint32 {
	return uint32(min(max(timeout/8, time.Millisecond).Milliseconds(), math.MaxInt32))
}

func words(w ...uint32) []byte {
	var b []byte
	for _, v := range w {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

// enlarge requests large socket buffers: beyond the system's limit if the process may
// (CAP_NET_ADMIN), otherwise up to net.core.rmem_max and wmem_max.
func enlarge(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
}

// library returns the address in the form of the library.
func (a Addr) library() *library.SCTPAddr {
	l := &library.SCTPAddr{Port: int(a.Port)}
	for _, ip := range a.IPs {
		l.IPAddrs = append(l.IPAddrs, net.IPAddr{IP: ip.AsSlice(), Zone: ip.Zone()})
	}
	return l
}

// zoneName returns the name of a network interface.
func zoneName(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(index), 10)
}

// roomy calls f on a stack that does not move: the library passes the kernel the addresses of
// variables on its stack as mere numbers, which would be wrong after a move. A stack moves when it
// must grow, so roomy makes it large enough. And a garbage collection halves a stack of which less than
// a quarter is in use, so roomy uses more than that: of a stack that grow has made, or that has 256 KiB.
//
//go:noinline
func roomy(f func() error) error {
	var used [64 << 10]byte
	grow(&used, 0)
	return f()
}

// grow makes the stack larger than its caller needs.
//
//go:noinline
func grow(used *[64 << 10]byte, i int) {
	var b [32 << 10]byte
	b[len(b)-1-i] = 1
	used[i] = b[i]
}
