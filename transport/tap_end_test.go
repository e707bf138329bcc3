package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// A gated Stream reads and writes when it is let, and is not ended before.
type gated struct {
	Stream
	write, read chan struct{}
}

func (g *gated) Write(bufs [][]byte, _ bool) (n int, err error) {
	<-g.write
	for _, b := range bufs {
		n += len(b)
	}
	return n, nil
}

func (g *gated) Read(p []byte, _ Wait) (int, error) {
	<-g.read
	return copy(p, "answer"), nil
}

func (g *gated) CloseWrite() error { return nil }
func (g *gated) Close() error      { return nil }
func (g *gated) Abort() error      { return nil }

// TestTapRecordsEndsLast: what is being written, or read, when the connection is ended
// stands before the end.
func TestTapRecordsEndsLast(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(Stream) error
		flag pcap.Flags
	}{
		"FIN":   {Stream.CloseWrite, pcap.FIN | pcap.ACK},
		"close": {Stream.Close, pcap.FIN | pcap.ACK},
		"RST":   {Stream.Abort, pcap.RST | pcap.ACK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var file bytes.Buffer
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				g := &gated{NewStream(near, nil), make(chan struct{}), make(chan struct{})}
				s := Tap(g, &file, TapOptions{})
				var both sync.WaitGroup
				both.Go(func() { _, _ = s.Write([][]byte{[]byte("question")}, true) })
				both.Go(func() { _, _ = s.Read(make([]byte, 100), Park) })
				synctest.Wait()
				require.NoError(t, c.end(s))
				close(g.read)
				synctest.Wait()
				close(g.write)
				both.Wait()
				segs := segments(t, file.Bytes())[3:]
				payload := map[string]bool{}
				last := pcap.Flags(0)
				for _, seg := range segs {
					payload[string(seg.Payload)] = true
					if len(seg.Payload) == 0 {
						last = seg.Flags
					}
				}
				require.True(t, payload["question"], "what was written is recorded")
				require.True(t, payload["answer"], "and what was read")
				require.Equal(t, c.flag, last)
				ends := map[bool]int{}
				for i, seg := range segs { // no side's octets come after its end
					out := seg.Src == segments(t, file.Bytes())[0].Src
					if seg.Flags&(pcap.FIN|pcap.RST) != 0 {
						ends[out] = i
					} else if at, ended := ends[out]; ended {
						require.Less(t, i, at, "octets after the end")
					}
				}
			})
		})
	}
}

// A slowFile takes the header and the handshake at once, and any later Write when it is let.
type slowFile struct {
	bytes.Buffer
	writes int
	held   chan struct{} // closed when a Write waits
	let    chan struct{}
}

func (f *slowFile) Write(p []byte) (int, error) {
	if f.writes++; f.writes > 4 {
		if f.writes == 5 {
			close(f.held)
		}
		<-f.let
	}
	return f.Buffer.Write(p)
}

// TestTapEndsWhileAWriteToTheCaptureRuns: of another segment, or of the end itself. The capture has the
// end nevertheless when the Write returns.
func TestTapEndsWhileAWriteToTheCaptureRuns(t *testing.T) {
	for name, end := range map[string]func(Stream) error{
		"CloseWrite": Stream.CloseWrite, "Close": Stream.Close, "Abort": Stream.Abort,
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy=%t", name, busy), func(t *testing.T) {
				t.Parallel()
				file := &slowFile{held: make(chan struct{}), let: make(chan struct{})}
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				g := &gated{NewStream(near, nil), make(chan struct{}), make(chan struct{})}
				close(g.write)
				s := Tap(g, file, TapOptions{})
				var writer sync.WaitGroup
				if busy {
					writer.Go(func() { _, _ = s.Write([][]byte{[]byte("question")}, true) })
					<-file.held
				}
				ended := make(chan error, 1)
				go func() { ended <- end(s) }()
				select {
				case err := <-ended:
					require.Equal(t, name == "Close", errors.Is(err, os.ErrDeadlineExceeded), "Close says that the capture is not whole")
				case <-time.After(10 * endTime):
					require.Fail(t, "the end waits for the capture")
				}
				close(file.let)
				writer.Wait()
				require.Eventually(t, func() bool {
					s.(*tap).rec.mu.Lock()
					defer s.(*tap).rec.mu.Unlock()
					segs := segments(t, file.Bytes())
					return segs[len(segs)-1].Flags&(pcap.FIN|pcap.RST) != 0
				}, 5*time.Second, time.Millisecond, "the end is recorded")
			})
		}
	}
}

// A ready Stream never waits.
type ready struct{ *gated }

func (ready) Write(bufs [][]byte, _ bool) (int, error) { return len(bufs[0]), nil }
func (ready) Read(p []byte, _ Wait) (int, error)       { return copy(p, "answer"), nil }

// A yielding file lets other goroutines come to wait for the Write.
type yielding struct{ bytes.Buffer }

func (y *yielding) Write(p []byte) (int, error) {
	runtime.Gosched()
	return y.Buffer.Write(p)
}

// TestTapRecordsTimesInOrder, while one goroutine reads and another writes.
func TestTapRecordsTimesInOrder(t *testing.T) {
	var file yielding
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := Tap(ready{&gated{Stream: NewStream(near, nil)}}, &file, TapOptions{})
	var both sync.WaitGroup
	both.Go(func() {
		for range 40_000 {
			if _, err := s.Read(make([]byte, 100), Park); err != nil {
				t.Error(err)
			}
		}
	})
	both.Go(func() {
		for range 40_000 {
			if _, err := s.Write([][]byte{[]byte("question")}, true); err != nil {
				t.Error(err)
			}
		}
	})
	both.Wait()
	require.NoError(t, s.Close())
	r, err := pcap.NewReader(&file)
	require.NoError(t, err)
	var last time.Time
	for n := 0; ; n++ {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.False(t, p.Time.Before(last), "packet %d is %v older than the one in front of it", n, last.Sub(p.Time))
		last = p.Time
	}
}
