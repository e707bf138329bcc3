package matrix

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket"
)

// streamCases is the table of cases of stream sockets, with librdmacm at siw's end, and package rsocket and its programs at ours.
var streamCases = slices.Concat(rstreamCases(), riostreamCases(), streamLifeCases(), streamProgramCases())

// rstreamPort is the port of rstream.
const rstreamPort = "7471"

// crcOnOff makes a case with the CRC of FPDUs, and one without, in one role.
func crcOnOff(c Case, run func(t *T, cfg *rsocket.Config)) []Case {
	if c.Limit == 0 {
		c.Limit = 2 * time.Minute
	}
	on, off := c, c
	on.Name, on.Run = c.Name+"/crc-on/"+string(c.Role), func(t *T) { run(t, new(rsocket.Config)) }
	off.Name, off.Run = c.Name+"/crc-off/"+string(c.Role), func(t *T) { run(t, &rsocket.Config{QP: noCRC}) }
	return []Case{on, off}
}

// inBothRoles returns crcOnOff of the case in each role.
func inBothRoles(c Case, run func(t *T, cfg *rsocket.Config)) []Case {
	c.Role = Responder
	all := crcOnOff(c, run)
	c.Role = Initiator
	return append(all, crcOnOff(c, run)...)
}

// rnic opens an RNIC that is closed with the case.
func (t *T) rnic() *iwarp.RNIC { return t.open().rnic }

// listens makes our end listen for streams with a Config.
func (t *T) listens(cfg *rsocket.Config) *rsocket.Listener {
	l, err := rsocket.Listen(t.Ctx, t.rnic(), "tcp", net.JoinHostPort(OurIP, rstreamPort), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// An rstreamRun describes a run of rstream: count messages to the server, as many back, and that iterations times.
type rstreamRun struct {
	size, count, iterations int
}

// args returns the flags of rstream.
func (r rstreamRun) args() []string {
	return []string{"-S", fmt.Sprint(r.size), "-C", fmt.Sprint(r.count), "-I", fmt.Sprint(r.iterations), "-T", "v"}
}

// syncLen is the length of the message that rstream sends ahead of a run.
const syncLen = 16

// An rstreamEnd does what rstream does, over a connection. The octets of each direction count up.
type rstreamEnd struct {
	net.Conn
	out, in byte
	buf     []byte
}

func newRstreamEnd(c net.Conn) *rstreamEnd { return &rstreamEnd{Conn: c} }

func (e *rstreamEnd) mem(n int) []byte {
	if len(e.buf) < n {
		e.buf = make([]byte, n)
	}
	return e.buf[:n]
}

func (e *rstreamEnd) send(n int) error {
	b := e.mem(n)
	for i := range b {
		b[i] = e.out
		e.out++
	}
	_, err := e.Write(b)
	return err
}

func (e *rstreamEnd) receive(n int) error {
	b := e.mem(n)
	if _, err := io.ReadFull(e, b); err != nil {
		return err
	}
	for i := range b {
		if b[i] != e.in {
			return fmt.Errorf("octet %d of a message is %#x, want %#x", i, b[i], e.in)
		}
		e.in++
	}
	return nil
}

// runs performs a run, as the client or the server.
func (e *rstreamEnd) runs(client bool, r rstreamRun) error {
	if err := e.syncs(client); err != nil {
		return err
	}
	return e.exchanges(client, r)
}

// directions returns what this end does for each message of the client, and for each message of the server.
func (e *rstreamEnd) directions(client bool) (there, back func(int) error) {
	if client {
		return e.send, e.receive
	}
	return e.receive, e.send
}

// syncs performs the exchange with which a run begins.
func (e *rstreamEnd) syncs(client bool) error {
	there, back := e.directions(client)
	if err := errors.Join(there(syncLen), back(syncLen)); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// exchanges performs the rest of a run.
func (e *rstreamEnd) exchanges(client bool, r rstreamRun) error {
	there, back := e.directions(client)
	for i := range r.iterations {
		for k, step := range []func(int) error{there, back} {
			for n := range r.count {
				if err := step(r.size); err != nil {
					return fmt.Errorf("iteration %d, direction %d, message %d: %w", i, k, n, err)
				}
			}
		}
	}
	return nil
}

// ends expects the end of the stream, and closes the connection.
func (e *rstreamEnd) ends() error {
	n, err := io.Copy(io.Discard, e)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d octets more than there should be", n)
	}
	return errors.Join(err, e.Close())
}
