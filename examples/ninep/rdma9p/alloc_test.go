package rdma9p

import (
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// A reuser is a handler that allocates nothing for a request: it answers with as many octets.
type reuser struct{}

func (reuser) Handle(t io.ReadCloser, r io.WriteCloser) error {
	msg := make([]byte, defaultMsize)
	for {
		if _, err := io.ReadFull(t, msg[:headerSize]); err != nil {
			return nil
		}
		n := binary.LittleEndian.Uint32(msg)
		if _, err := io.ReadFull(t, msg[headerSize:n]); err != nil {
			return nil
		}
		msg[4]++
		if _, err := r.Write(msg[:headerSize]); err != nil {
			return nil
		}
		if n == headerSize {
			continue
		}
		if _, err := r.Write(msg[headerSize:n]); err != nil {
			return nil
		}
	}
}

func TestP9R_10_NoAllocations(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	const msize = 64 << 10
	for name, srq := range map[string]int{"own receives": 0, "SRQ": 8} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, "tcp", "127.0.0.1:0", reuser{}, Config{SRQ: srq, MaxMsize: msize})
			p := w.dial(msize)
			p.version(msize)
			for _, request := range [][]byte{
				message(tclunk, 1, numbers(1)...),                  // an answer without a buffer
				message(twrite, 2, make([]byte, msize-1000)...),    // with one
				message(twalk, 3, make([]byte, 200)...),            // the set of fids
				message(tflush, 4, 9, 9),                           // an answer of the adapter
				message(tread, 5, numbers(1, 0, 0, 1000, 2, 3)...), // lowered or not
			} {
				turn := p.turn(t, request)
				for range 100 {
					turn()
				}
				require.Zero(t, testing.AllocsPerRun(200, turn), "type %d", request[4])
			}
		})
	}
}

// turn returns a function that sends a request and waits for its answer, without allocating.
func (p *peer) turn(t *testing.T, request []byte) func() {
	mr, err := p.pd.RegisterMR(request, stag.LocalWrite, nil)
	require.NoError(t, err)
	p.sent = append(p.sent, mr)
	recv := []iwarp.RecvWR{{Local: []iwarp.SGE{p.mr.Slice(0, p.size)}}}
	send := []iwarp.SendWR{{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, len(request))}}}
	wcs := make([]iwarp.WC, 1)
	ctx := context.Background() // another context would allocate
	return func() {
		if err := p.qp.PostRecv(recv...); err != nil {
			t.Error(err)
		}
		if err := p.qp.PostSend(send...); err != nil {
			t.Error(err)
		}
		if _, err := p.qp.RecvCQ().Wait(ctx, wcs); err != nil || wcs[0].Err() != nil {
			t.Error(err, wcs[0].Err())
		}
	}
}
