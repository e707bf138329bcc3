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

// streamCases is the table of cases of stream sockets: those of librdmacm at siw's end, package rsocket and its programs at ours.
var streamCases = slices.Concat(rstreamCases(), riostreamCases(), streamLifeCases(), streamProgramCases())

// rstreamPort is that of rstream.
const rstreamPort = "7471"

// crcOnOff is a case with the CRC of FPDUs, and one without, in one role.
func crcOnOff(c Case, run func(t *T, cfg *rsocket.Config)) []Case {
	if c.Limit == 0 {
		c.Limit = 2 * time.Minute
	}
	on, off := c, c
	on.Name, on.Run = c.Name+"/crc-on/"+string(c.Role), func(t *T) { run(t, new(rsocket.Config)) }
	off.Name, off.Run = c.Name+"/crc-off/"+string(c.Role), func(t *T) { run(t, &rsocket.Config{QP: noCRC}) }
	return []Case{on, off}
}

// inBothRoles is crcOnOff of the case in each role.
func inBothRoles(c Case, run func(t *T, cfg *rsocket.Config)) []Case {
	c.Role = Responder
	all := crcOnOff(c, run)
	c.Role = Initiator
	return append(all, crcOnOff(c, run)...)
}

// rnic opens an RNIC that is closed with the case.
func (t *T) rnic() *iwarp.RNIC { return t.open().rnic }

// listens makes our end listen for streams, with what the connections are to be like.
func (t *T) listens(cfg *rsocket.Config) *rsocket.Listener {
	l, err := rsocket.Listen(t.Ctx, t.rnic(), "tcp", net.JoinHostPort(OurIP, rstreamPort), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// An rstreamRun is what both ends of rstream do: messages to the server, as many back, and that again and again.
type rstreamRun struct {
	size, count, iterations int
}

// args are the flags of rstream.
func (r rstreamRun) args() []string {
	return []string{"-S", fmt.Sprint(r.size), "-C", fmt.Sprint(r.count), "-I", fmt.Sprint(r.iterations), "-T", "v"}
}

// syncLen is the length of the message that rstream sends ahead of a run.
const syncLen = 16

// An rstreamEnd does what rstream does, over a connection. Each direction has octets that count up.
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

// runs goes through a run, as the client or the server.
func (e *rstreamEnd) runs(client bool, r rstreamRun) error {
	if err := e.syncs(client); err != nil {
		return err
	}
	return e.exchanges(client, r)
}

// directions are what each message of a client's, and each of a server's, is for this end.
func (e *rstreamEnd) directions(client bool) (there, back func(int) error) {
	if client {
		return e.send, e.receive
	}
	return e.receive, e.send
}

// syncs is what a run begins with.
func (e *rstreamEnd) syncs(client bool) error {
	there, back := e.directions(client)
	if err := errors.Join(there(syncLen), back(syncLen)); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// exchanges is the rest of it.
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

// ends reads to the end of the stream, and closes it.
func (e *rstreamEnd) ends() error {
	n, err := io.Copy(io.Discard, e)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d octets more than there should be", n)
	}
	return errors.Join(err, e.Close())
}
