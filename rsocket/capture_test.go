package rsocket

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// captured is the configuration of this side in the captures.
var captured = Config{ReadBuffer: 128 << 10}

// replies and requests are the first octets of a Reply and a Request with 44 octets of private data, with
// and without a CRC.
const (
	replies  = "50 02 002c"
	requests = "10 02 002c"
)

// A replay acts as the peer of a captured connection, and as the program of this side.
type replay struct {
	*wiretest.Peer
	conn  func() *Conn
	names *strings.Replacer
}

// learn takes the STags of this side from its private data.
func (r *replay) learn(start []byte) {
	p, err := wire.ParsePrivate(start[len(start)-wire.PrivateSize:])
	require.NoError(r, err)
	little := wire.Slot{Key: p.Half.Key}.Append(nil, wire.Little)[8:12]
	r.names = strings.NewReplacer(
		"RING-", hex.EncodeToString(little), "RING", fmt.Sprintf("%08x", p.Half.Key),
		"TABLE", fmt.Sprintf("%08x", p.Table.Key), "|", " ")
}

func (r *replay) octets(s string) []byte { return wiretest.Hex(r.names.Replace(s)) }

// step carries out a line.
func (r *replay) step(line string) {
	r.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "peer":
		r.Send(r.octets(rest))
	case "ours":
		require.Equal(r, r.octets(rest), r.Segment(), line)
	case "read":
		want := r.octets(rest)
		got := make([]byte, len(want))
		_, err := io.ReadFull(r.conn(), got)
		require.NoError(r, err)
		require.Equal(r, want, got)
	case "write":
		n, err := r.conn().Write(r.octets(rest))
		require.NoError(r, err)
		require.Equal(r, len(r.octets(rest)), n)
	case "close":
		c := r.conn()
		go func() { _ = c.Close() }()
	case "end":
		n, err := r.conn().Read(make([]byte, 1))
		require.Zero(r, n)
		require.Equal(r, io.EOF, err)
	default:
		require.Fail(r, line)
	}
}

// lines are the steps of a capture, without the two that begin it.
func lines(t testing.TB, name string) (starts, steps []string) {
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch _, rest, begins := strings.Cut(line, " start "); {
		case strings.HasPrefix(line, "#"):
		case begins:
			starts = append(starts, rest)
		default:
			steps = append(steps, line)
		}
	}
	require.Len(t, starts, 2)
	return starts, steps
}

// TestRSK_1_2_3_12_CapturedInitiators replays what librdmacm has sent as an initiator, and compares every octet
// of the answer: one program polls first, the other sends first.
func TestRSK_1_2_3_12_CapturedInitiators(t *testing.T) {
	for _, name := range []string{"rstream_to_go", "iperf3_to_go"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := listen(t, open(t), "pipe", &captured)
				starts, steps := lines(t, name)
				p := wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex(requests+starts[0]))
				reply := p.Read(64)
				r := &replay{Peer: p}
				r.learn(reply)
				require.Equal(t, append([]byte(wiretest.ReplyKey), wiretest.Hex(replies+r.names.Replace(starts[1]))...), reply, "the Reply")
				c, err := l.AcceptConn()
				require.NoError(t, err)
				r.conn = func() *Conn { return c }
				for _, line := range steps {
					r.step(line)
				}
				p.CloseWrite()
				require.NoError(t, c.Close())
			})
		})
	}
}

// TestRSK_1_2_3_12_CapturedResponder replays what librdmacm has answered.
func TestRSK_1_2_3_12_CapturedResponder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts, steps := lines(t, "go_to_rstream")
		dialled := make(chan *Conn, 1)
		addr := wiretest.Serve(t, func(p *wiretest.Peer) {
			request := p.Read(64)
			r := &replay{Peer: p}
			r.learn(request)
			require.Equal(t, append([]byte(wiretest.RequestKey), wiretest.Hex(requests+r.names.Replace(starts[0]))...), request, "the Request")
			p.Write(append([]byte(wiretest.ReplyKey), wiretest.Hex(replies+starts[1])...))
			c := <-dialled
			r.conn = func() *Conn { return c }
			for _, line := range steps {
				r.step(line)
			}
			p.WantEOF("the connection ends behind DISCONNECT")
			p.CloseWrite()
			<-c.done
		})
		cfg := captured
		cfg.QP.MPA.NoCRC = true
		c, err := Dial(within(t), open(t), "pipe", addr, &cfg)
		require.NoError(t, err)
		dialled <- c
		<-c.done
	})
}
