package rdma9p

import (
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestP9R_11_StopWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.done()
		w := serve(t, "pipe", t.Name(), s, Config{})
		p := w.dial(minMsize)
		p.version(minMsize)
		p.send(message(tread, 1, make([]byte, 16)...))
		p.send(message(tread, 2, make([]byte, 16)...))
		p.send(tflushMsg(3, 2))
		s.next()
		s.next()
		w.stop()
		for _, tag := range []uint16{1, 2} {
			synctest.Wait()
			require.Equal(t, iwarp.StateRTS, p.qp.State(), "the connection waits for the answer")
			s.answer(message(tread+1, tag, numbers(0)...))
			require.Equal(t, message(tread+1, tag, numbers(0)...), p.recv())
		}
		require.Equal(t, rflushMsg(3), p.recv())
		p.wantEnd("the server has closed the connection")
		require.NoError(t, p.qp.Err(), "a graceful end")
		w.stopped()
	})
}

func TestP9R_11_StopReadsNoMoreRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 4
		s := newScript(t)
		s.done()
		w := serve(t, "pipe", t.Name(), s, Config{Depth: depth})
		p := w.dial(minMsize)
		p.version(minMsize)
		for i := range 2 * depth { // the handler has half of these
			p.send(message(tread, uint16(i), make([]byte, 16)...))
		}
		synctest.Wait()
		require.Len(t, s.requests, depth)
		w.stop()
		synctest.Wait()
		require.Len(t, s.requests, depth)
		p.wantEnd("stopped")
		w.stopped()
	})
}

// TestP9R_11_StopReadsFewRequests: after the stop, at most depth more requests are read, even if they are answered.
func TestP9R_11_StopReadsFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 4
		s := newScript(t)
		w := serve(t, "pipe", t.Name(), s, Config{Depth: depth})
		p := w.dial(minMsize)
		p.version(minMsize)
		p.send(message(tread, 100, make([]byte, 16)...))
		s.next() // its answer does not come
		w.stop()
		synctest.Wait()
		for i := range uint16(depth) {
			p.send(message(tread, i, make([]byte, 16)...))
			s.next()
			s.answer(message(tread+1, i, numbers(0)...))
			require.Equal(t, i, parseHeader(p.recv()).tag)
		}
		p.send(message(tread, 50, make([]byte, 16)...))
		<-s.ended
		require.Empty(t, s.requests)
		s.done()
		w.stopped()
	})
}

// TestP9R_11_DrainTimeout: a handler that keeps a request for too long loses its connection.
func TestP9R_11_DrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		w := serve(t, "pipe", t.Name(), s, Config{DrainTimeout: 10 * time.Second})
		p := w.dial(minMsize)
		p.version(minMsize)
		p.send(message(tread, 1, make([]byte, 16)...))
		s.next()
		start := time.Now()
		w.stop()
		p.wantEnd("aborted")
		require.Equal(t, 10*time.Second, time.Since(start))
		<-(<-w.qps).Done()
		require.ErrorIs(t, s.write(message(tread+1, 1, numbers(0)...)), net.ErrClosed)
		s.done()
		w.stopped()
		require.Contains(t, w.log.String(), errDrain.Error())
	})
}

// TestP9R_11_StopWithPeerThatTakesNoAnswers: such a peer does not keep Serve from returning.
func TestP9R_11_StopWithPeerThatTakesNoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const msize = 1 << 16
		w := serve(t, "pipe", t.Name(), echo{}, Config{Depth: 4})
		p, err := w.tryDial(&iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever}, msize)
		require.NoError(t, err)
		p.version(msize)
		for i := range 100 {
			require.NoError(t, p.sendOnly(message(tread, uint16(i), make([]byte, msize-headerSize-1)...)))
		}
		synctest.Wait()
		w.stopped()
	})
}

func TestP9R_11_EndOfThePeer(t *testing.T) {
	for what, end := range map[string]func(*peer){
		"graceful": func(p *peer) { _ = p.qp.Close() },
		"abort":    func(p *peer) { _ = p.qp.Abort() },
		"terminate": func(p *peer) {
			_ = p.qp.Terminate()
		},
	} {
		for name, srq := range map[string]int{"": 0, " SRQ": 3} {
			t.Run(what+name, func(t *testing.T) {
				s := newScript(t)
				s.done()
				w := serve(t, "pipe", t.Name(), s, Config{SRQ: srq})
				for range 5 { // each would take a receive of the SRQ with it
					p := w.dial(minMsize)
					p.version(minMsize)
					p.send(message(tread, 1, make([]byte, 16)...))
					s.next()
					end(p)
					<-s.ended
				}
				w.stopped()
			})
		}
	}
}

// TestP9R_11_RequestBeforeTheEndOfThePeer: what a peer sent before its end is read, although receives are refused by
// then.
func TestP9R_11_RequestBeforeTheEndOfThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		got, result := make(chan []byte, 1), make(chan error, 1)
		h := handlerFunc(func(in io.ReadCloser, out io.WriteCloser) error {
			msg, _ := readMessage(in)
			msg[4] = byte(rversion)
			_, _ = out.Write(msg)
			head := make([]byte, headerSize)
			_, _ = io.ReadFull(in, head)
			<-proceed
			rest := make([]byte, 100)
			n, err := in.Read(rest)
			got <- append(head, rest[:n]...)
			result <- err
			return nil
		})
		w := serve(t, "pipe", t.Name(), h, Config{})
		p := w.dial(minMsize)
		p.version(minMsize)
		request := message(tclunk, 1, numbers(1)...)
		require.NoError(t, p.sendOnly(request))
		go p.qp.Close()
		synctest.Wait()
		close(proceed)
		require.Equal(t, request, <-got)
		require.NoError(t, <-result, "that a receive is refused is no error")
		w.stopped()
	})
}

func TestP9R_11_ListenerEnds(t *testing.T) {
	s := newScript(t)
	s.done()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	l, err := rnic.Listen(t.Context(), "pipe", t.Name(), nil)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { result <- Serve(t.Context(), l, s, &Config{QP: iwarp.QPConfig{PD: pd}}) }()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-result, net.ErrClosed)
}

func TestConfigIsChecked(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	require.True(t, errors.Is(Serve(t.Context(), nil, echo{}, nil), errNoPD))
	for _, x := range []struct {
		names string
		c     Config
	}{
		{"MaxMsize", Config{MaxMsize: minMsize - 1}},
		{"MaxMsize", Config{MaxMsize: 1<<20 + 1}},
		{"MaxMsize", Config{MaxMsize: -1}},
		{"Depth is -1", Config{Depth: -1}},
		{"Depth is 65529, above", Config{Depth: 65529, MaxMsize: minMsize}},
		{"Depth is", Config{Depth: math.MaxInt}},
		{"SRQ -1", Config{SRQ: -1}},
		{"SRQ is", Config{SRQ: math.MaxInt}},
		{"Config.SRQ: iwarp: limit reached", Config{SRQ: 1 << 17, MaxMsize: minMsize}},
		{"MaxFids -1", Config{MaxFids: -1}},
		{"VersionTimeout -1ns", Config{VersionTimeout: -1}},
		{"DrainTimeout -1ns", Config{DrainTimeout: -1}},
	} {
		x.c.QP.PD = pd
		require.ErrorContains(t, Serve(t.Context(), nil, echo{}, &x.c), x.names)
	}
	c := Config{Depth: math.MaxInt32/largestMsize - spareSends, MaxMsize: largestMsize, QP: iwarp.QPConfig{PD: pd}}
	_, err = c.withDefaults()
	require.NoError(t, err)
}
