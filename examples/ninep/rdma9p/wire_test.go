package rdma9p

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestP9R_1_OneMessageIsOneSend(t *testing.T) {
	w := serve(t, "pipe", t.Name(), echo{}, Config{})
	p := w.dial(8192)
	require.EqualValues(t, 8192, p.version(8192))
	for n := headerSize; n < 8192; n = n*3 + 1 {
		require.Len(t, p.call(message(tstatfs, uint16(n), make([]byte, n-headerSize)...)), n)
	}
	got := p.close()
	require.Equal(t, got.Sent.Send, got.Received.Send)
	require.Equal(t, iwarp.OpStats{Send: got.Received.Send}, got.Received, "only Sends")
	require.Equal(t, iwarp.OpStats{Send: got.Sent.Send}, got.Sent, "only Sends")
}

func TestP9R_2_NoPrivateData(t *testing.T) {
	w := serve(t, "pipe", t.Name(), echo{}, Config{QP: iwarp.QPConfig{PrivateData: []byte("not sent")}})
	for _, n := range []int{0, 4, 5, 200} {
		p, err := w.tryDial(&iwarp.QPConfig{PrivateData: make([]byte, n)}, minMsize)
		require.NoError(t, err)
		require.Empty(t, p.qp.PrivateData())
		require.EqualValues(t, minMsize, p.version(minMsize))
	}
}

// A frame is one side's part of the recorded mount: an MPA frame, or an FPDU with one message.
type frame struct {
	client bool
	octets []byte
}

// message returns the 9P message of an FPDU: length (2), header of an untagged segment (18), message, padding, CRC (4).
func (f frame) message() []byte {
	return f.octets[20:][:int(f.octets[0])<<8+int(f.octets[1])-18]
}

func recordedMount(t *testing.T) []frame {
	t.Helper()
	text, err := os.ReadFile("testdata/mount.txt")
	require.NoError(t, err)
	var frames []frame
	for line := range strings.Lines(string(text)) {
		side, octets, _ := strings.Cut(strings.TrimSpace(line), " ")
		if side == "#" {
			continue
		}
		b, err := hex.DecodeString(octets)
		require.NoError(t, err)
		frames = append(frames, frame{side == "C", b})
	}
	return frames
}

// TestP9R_1_2_RecordedMount plays the client of a recorded mount over TCP. The handler gives the recorded answers. The
// octets on the wire are the recorded ones, except for the IRD of the MPA Reply.
func TestP9R_1_2_RecordedMount(t *testing.T) {
	frames := recordedMount(t)
	var answers []frame
	for _, f := range frames[2:] {
		if !f.client {
			answers = append(answers, f)
		}
	}
	var requests [][]byte
	h := handlerFunc(func(in io.ReadCloser, out io.WriteCloser) error {
		for _, f := range answers {
			msg, err := readMessage(in)
			if err != nil {
				return err
			}
			requests = append(requests, msg)
			if _, err := out.Write(f.message()); err != nil {
				return err
			}
		}
		_, err := readMessage(in)
		return err
	})
	w := serve(t, "tcp", "127.0.0.1:0", h, Config{})
	conn, err := net.Dial("tcp", w.l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	in := bufio.NewReader(conn)
	for i, f := range frames {
		if f.client {
			_, err := conn.Write(f.octets)
			require.NoError(t, err)
			continue
		}
		got := make([]byte, len(f.octets))
		_, err := io.ReadFull(in, got)
		require.NoError(t, err)
		want := bytes.Clone(f.octets)
		if i == 1 {
			want[21] = 0 // the other server could have been read from
		}
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got), "frame %d", i)
	}
	require.NoError(t, conn.Close())
	w.stopped()
	var want [][]byte
	for _, f := range frames[2:] {
		if f.client {
			want = append(want, f.message())
		}
	}
	require.Equal(t, want, requests, "the handler got what the client sent")
}
