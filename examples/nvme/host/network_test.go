package host

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestNetworks: the host behaves alike on every network. Over SCTP, segments may come in any order.
func TestNetworks(t *testing.T) {
	for _, network := range []string{"tcp", "sctp+udp"} {
		t.Run(network, func(t *testing.T) {
			tg, o := newTargetOn(t, network, "127.0.0.1:0"), pipeOptions(t)
			o.Network, o.Queues = network, 2
			n := disk(t, connect(t, tg, o))
			w, r := pattern(2<<20, 1), make([]byte, 2<<20)
			_, err := n.WriteAt(w, 4096)
			require.NoError(t, err)
			_, err = n.ReadAt(r, 4096)
			require.NoError(t, err)
			require.Equal(t, w, r)
			require.NoError(t, n.Flush(context.Background()))
		})
	}
}

// TestConnectionsOfTheProgram: each queue uses a connection that Options.Dial made. A refused connection is closed.
func TestConnectionsOfTheProgram(t *testing.T) {
	tg, o := newTargetOn(t, "tcp", "127.0.0.1:0"), pipeOptions(t)
	o.RNIC = nil // each controller has its own
	var made []net.Conn
	errNoRoute := errors.New("no route")
	o.Network, o.Queues = "tcp", 2
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		made = append(made, c)
		return c, err
	}
	n := disk(t, connect(t, tg, o))
	_, err := n.ReadAt(make([]byte, 4096), 0)
	require.NoError(t, err)
	require.Len(t, made, 3)

	tg.mu.Lock()
	tg.reject = func(capsule.Request) []byte { return capsule.RejectNoResources.Append(nil) }
	tg.mu.Unlock()
	_, err = Connect(context.Background(), tg.addr, subsystem, o)
	require.ErrorIs(t, err, iwarp.ErrRejected)
	require.ErrorIs(t, made[3].Close(), net.ErrClosed, "it was closed")

	o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }
	_, err = Connect(context.Background(), tg.addr, subsystem, o)
	require.ErrorIs(t, err, errNoRoute)
}

// peersOnly connects to a target that resets connections whose Request does not request the peer-to-peer model (A=0), as
// Intel's network cards do. requests gets the enhanced data of each Request.
func peersOnly(wg *sync.WaitGroup, requests *[][]byte) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		inner, err := transport.Dial(ctx, network, addr, transport.Options{})
		if err != nil {
			return nil, err
		}
		ours, card := transport.Pipe(transport.PipeOptions{})
		wg.Go(func() {
			defer inner.Close()
			defer card.Close()
			request := make([]byte, mpa.HeaderSize+4)
			if _, err := io.ReadFull(card, request); err != nil {
				return
			}
			*requests = append(*requests, request[mpa.HeaderSize:])
			if request[mpa.HeaderSize]&0x80 == 0 {
				return
			}
			_, _ = inner.Write(request) // a read tells
			var back sync.WaitGroup
			back.Go(func() {
				_, _ = io.Copy(card, inner)
				card.Close()
			})
			_, _ = io.Copy(inner, card)
			inner.Close()
			back.Wait()
		})
		return ours, nil
	}
}

// TestTargetOfPeersAlone: a target refuses the client-server model without a Reply. On each queue, the host then offers
// it an RTR by Write.
func TestTargetOfPeersAlone(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		var wg sync.WaitGroup
		var requests [][]byte
		o.Queues, o.Dial = 1, peersOnly(&wg, &requests)
		c, err := Connect(context.Background(), tg.addr, subsystem, o)
		require.NoError(t, err)
		_, err = disk(t, c).ReadAt(make([]byte, 4096), 0)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		wg.Wait()
		server, peers := []byte{0x00, 0x80, 0x00, 0x00}, []byte{0x80, 0x80, 0x80, 0x00}
		require.Equal(t, [][]byte{server, peers, server, peers}, requests)
	})
}

// FuzzHOST_13_Messages: no message of a target makes the host panic or hang. A message that is no response to the
// command ends the connections.
func FuzzHOST_13_Messages(f *testing.F) {
	for _, cqe := range []capsule.CQE{{}, {CID: 0x1001, SQID: 1}, {CID: 0x1002, SQID: 1, Status: capsule.StatusBusy}, {CID: 0xffff, SQID: 1}, {CID: 0x1002}} {
		f.Add(cqe.Append(nil), false, uint32(0))
		f.Add(cqe.Append(nil), true, uint32(0x100))
	}
	f.Add([]byte{}, false, uint32(0))
	f.Add(make([]byte, 65), true, uint32(5))
	f.Fuzz(func(t *testing.T, msg []byte, admin bool, invalidate uint32) {
		msg = msg[:min(len(msg), 1024)]
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.Retries = -1
			n := disk(t, connect(t, tg, o))
			tg.script(only(capsule.OpFlush, func(c *call) bool {
				for _, q := range tg.live() {
					if (q.qid == 0) == admin {
						wr := iwarp.SendWR{Op: iwarp.OpSend, Inline: msg}
						if invalidate != 0 {
							wr.Op, wr.Invalidate = iwarp.OpSendInvalidate, stag.STag(invalidate)
						}
						_ = q.qp.PostSend(wr)
					}
				}
				return true
			}))
			if err := n.Flush(context.Background()); err != nil {
				if !errors.As(err, new(capsule.StatusError)) {
					require.ErrorIs(t, err, ErrLost)
				}
			}
		})
	})
}
