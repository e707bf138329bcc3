package op

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

var doNames = map[Do]string{
	Enqueue: "Enqueue", Cancel: "Cancel", Hold: "Hold", Release: "Release", Revoke: "Revoke", OpenData: "OpenData",
	SendStatus: "SendStatus", Free: "Free", End: "End", SendRequest: "SendRequest", Seal: "Seal", SendData: "SendData",
	Complete: "Complete", Serve: "Serve", SendAnswer: "SendAnswer", SendPull: "SendPull", Copy: "Copy", Audit: "Audit",
}

// text returns a list of actions in the notation of the tests.
func text(actions []Action) string {
	var words []string
	for _, a := range actions {
		s := doNames[a.Do]
		switch a.Do {
		case Enqueue:
			s = fmt.Sprintf("Enqueue(%d)", a.N)
		case Release:
			s = "Release(" + [...]string{"OK", "NACK", "Timeout", "Failed"}[a.Refund] + ")"
		case SendStatus, Complete:
			s = fmt.Sprintf("%s(%d, %d)", s, a.Outcome, a.Reason)
			if a.Gone {
				s += " Gone"
			}
		case End, Audit:
			s = fmt.Sprintf("%s(%d)", s, a.Why)
		default:
		}
		if a.Invalidate {
			s += " Invalidate"
		}
		words = append(words, s)
	}
	return strings.Join(words, ", ")
}

// A side is a machine with its clock.
type side struct {
	t   *testing.T
	now time.Time
}

func (s *side) sleep(d time.Duration) { s.now = s.now.Add(d) }

func (s *side) want(want string, actions []Action) {
	s.t.Helper()
	require.Equal(s.t, want, text(actions))
}

// A client is a Client under test: its server allows two requests, and has a Ts of 50 ms and a guard of
// 20 ms; the client lets its sinks linger for 30 ms.
type client struct {
	side
	*Client
}

func clientConfig() ClientConfig {
	return ClientConfig{
		Slots: 4, Credits: 2, Dispatch: [2]time.Duration{5 * ms, 40 * ms}, OpTimeout: 100 * ms,
		PullTimeout: 50 * ms, Guard: 20 * ms, Linger: 30 * ms, Overhead: 16,
	}
}

func newClient(t *testing.T, change func(*ClientConfig)) *client {
	cfg := clientConfig()
	if change != nil {
		change(&cfg)
	}
	return &client{side: side{t: t, now: epoch}, Client: NewClient(cfg, epoch)}
}

func (c *client) posts(cmd Command, want string) ID {
	c.t.Helper()
	actions, id, err := c.Post(nil, c.now, cmd)
	require.NoError(c.t, err)
	c.want(want, actions)
	return id
}

// sent posts an operation and returns its ID; its request was sent.
func (c *client) sent(cmd Command) ID {
	c.t.Helper()
	if cmd.Kind != Read {
		return c.posts(cmd, "SendRequest")
	}
	id := c.posts(cmd, fmt.Sprintf("Enqueue(%d)", cmd.Length+16))
	c.want("SendRequest", c.Granted(nil, c.now, id))
	return id
}

func (c *client) hears(m Message, want string) {
	c.t.Helper()
	require.Equal(c.t, ClientRole, m.Role())
	c.want(want, c.Receive(nil, c.now, &m))
}

func (c *client) ticks(want string) {
	c.t.Helper()
	c.want(want, c.Tick(nil, c.now))
}

// waits lets d pass, and requires the given actions then, and none before.
func (c *client) waits(d time.Duration, want string) {
	c.t.Helper()
	at, ok := c.Deadline()
	require.True(c.t, ok)
	require.False(c.t, at.After(c.now.Add(d)))
	c.sleep(d - 1)
	c.ticks("")
	c.sleep(1)
	c.ticks(want)
}

// A server is a Server under test, with the values of client.
type server struct {
	side
	*Server
}

func serverConfig() ServerConfig {
	return ServerConfig{
		Credits: 3, Records: 4, Queue: 2, MaxOp: 4096, Dispatch: [2]time.Duration{5 * ms, 40 * ms},
		PullTimeout: 50 * ms, Guard: 20 * ms, Linger: 30 * ms, Overhead: 16, MaxFailures: 100,
	}
}

func newServer(t *testing.T, change func(*ServerConfig)) *server {
	cfg := serverConfig()
	if change != nil {
		change(&cfg)
	}
	return &server{side: side{t: t, now: epoch}, Server: NewServer(cfg, epoch)}
}

func (s *server) hears(m Message, want string) {
	s.t.Helper()
	require.Equal(s.t, ServerRole, m.Role())
	s.want(want, s.Receive(nil, s.now, &m))
}

// pulled returns the ID of a write for which PULL was sent.
func (s *server) pulled(m Message) ID {
	s.t.Helper()
	s.hears(m, fmt.Sprintf("Enqueue(%d)", m.Length+16))
	s.want("SendPull", s.Granted(nil, s.now, m.Op))
	return m.Op
}

func (s *server) ticks(want string) {
	s.t.Helper()
	s.want(want, s.Tick(nil, s.now))
}

func (s *server) waits(d time.Duration, want string) {
	s.t.Helper()
	at, ok := s.Deadline()
	require.True(s.t, ok)
	require.False(s.t, at.After(s.now.Add(d)))
	s.sleep(d - 1)
	s.ticks("")
	s.sleep(1)
	s.ticks(want)
}

func readReq(n uint64) Message {
	return Message{Type: TypeReadReq, Op: NewID(0, n), Length: 100, TTL: 100 * ms}
}

func writeReq(n uint64) Message { return Message{Type: TypeWriteReq, Op: NewID(0, n), Length: 100} }

func data(id ID) Message {
	return Message{Type: TypeData, Op: id, Length: 100, Invalidated: ServerRole}
}

func readDone(id ID) Message {
	return Message{Type: TypeReadDone, Op: id, Length: 100, Invalidated: ClientRole}
}

var salt = [16]byte{1, 2, 3}

func pull(id ID) Message {
	return Message{Type: TypePull, Op: id, Length: 100, Salt: salt, Timeout: 50 * ms}
}

func writeDone(id ID) Message {
	return Message{Type: TypeWriteDone, Op: id, Length: 100, Salt: salt}
}

func status(id ID, o Outcome, r Reason, dead Role) Message {
	return Message{Type: TypeStatus, Op: id, Code: uint16(o), Reason: r, Invalidated: dead}
}

var (
	getCmd    = Command{Kind: Read, Length: 100}
	putCmd    = Command{Kind: Write, Length: 100}
	sourceCmd = Command{Kind: Write, Length: 100, Source: true}
	directCmd = Command{Kind: Read, Length: 100, Direct: true}
)
