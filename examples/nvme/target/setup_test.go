package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/transport"
)

// linux returns the MPA Request of Linux for a queue, with an IRD of 128 and an ORD of 0.
func linux(qid uint16, entries int) []byte {
	b := append([]byte("MPA ID Req Frame"), 0x10, 2, 0, 36, 0, 128, 0, 0)
	return request(qid, entries).Append(b)
}

// raw connects without a host.
func (w *world) raw() net.Conn {
	c, err := transport.Dial(context.Background(), network(w.addr), w.addr, transport.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// reply sends a Request, and returns the Reply.
func (w *world) reply(c net.Conn, req []byte) []byte {
	_, err := c.Write(req)
	require.NoError(w.t, err)
	b := make([]byte, 20)
	_, err = io.ReadFull(c, b)
	require.NoError(w.t, err)
	private := make([]byte, b[19])
	_, err = io.ReadFull(c, private)
	require.NoError(w.t, err)
	return append(b, private...)
}

// TestNVME_1_ReplyToLinux: the Reply is that of the kernel in the capture, except for C, IRD and ORD.
func TestNVME_1_ReplyToLinux(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"as usual": {Config{}, "50" + "02" + "0024" + "0000" + "0010"},
		"ORD 128":  {Config{ORD: 128, NoCRC: true}, "10" + "02" + "0024" + "0000" + "0080"},
		"ORD 200":  {Config{ORD: 200}, "50" + "02" + "0024" + "0000" + "0080"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				w := newWorld(t, "pipe", &c.cfg, nil)
				want, err := hex.DecodeString(hex.EncodeToString([]byte("MPA ID Rep Frame")) + c.want + "0000" + "2000")
				require.NoError(t, err)
				require.Equal(t, append(want, make([]byte, 28)...), w.reply(w.raw(), linux(0, 32)))
			})
		})
	}
}

// TestNVME_5_NothingBeforeTheFirstFPDU: and TestNVME_12 what follows.
func TestNVME_5_NothingBeforeTheFirstFPDU(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		c := w.raw()
		w.reply(c, linux(0, 32))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(9*time.Second)))
		n, err := c.Read(make([]byte, 1))
		require.Zero(t, n)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nothing comes, and the connection does not end")
	})
}

func TestNVME_12_NoConnectWithinTenSeconds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		h := newHost(t, w.addr)
		began := time.Now()
		l, err := h.dial(0, 32, nil)
		require.NoError(t, err)
		s := h.connect(1)
		<-l.qp.Done()
		require.WithinDuration(t, began.Add(10*time.Second), time.Now(), tick)
		require.Equal(t, capsule.Success, s.io[0].writeInside(0, pattern(lba, 1)).Status, "others live on")
	})
}

func TestNVME_6_CRC(t *testing.T) {
	for _, off := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", &Config{NoCRC: off}, nil)
			h := newHost(t, w.addr)
			s := h.connect(0)
			q := s.queue(32, func(qc *iwarp.QPConfig) { qc.MPA.NoCRC = true })
			p, got := pattern(64*lba, 3), make([]byte, 64*lba)
			require.Equal(t, capsule.Success, q.write(0, p).Status)
			require.Equal(t, capsule.Success, q.read(0, got).Status)
			require.Equal(t, p, got)
			require.EqualValues(t, map[bool]byte{false: 0x50, true: 0x10}[off], w.reply(w.raw(), linux(0, 32))[16])
		})
	}
}

// rejected returns the status with which a connection is rejected.
func rejected(t *testing.T, err error) capsule.RejectStatus {
	t.Helper()
	var r *iwarp.RejectError
	require.ErrorAs(t, err, &r)
	return capsule.ParseReject(r.PrivateData).Status
}

func TestNVME_4_HostsThatAnswerNoReads(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		h := newHost(t, w.addr)
		_, err := h.dial(0, 32, func(qc *iwarp.QPConfig) { qc.IRD = -1 })
		require.Equal(t, capsule.RejectIRD, rejected(t, err))
		l, err := h.dial(0, 32, func(qc *iwarp.QPConfig) { qc.MPA.Revision = 1 })
		require.NoError(t, err)
		require.Equal(t, capsule.Success, l.connect(storage, capsule.AnyController).Status)
		require.EqualValues(t, 1, w.target.Stats().Rejected)
	})
}

// TestNVME_83_AcceptThatFails: if the RNIC has no QP left, nothing remains of the connection.
func TestNVME_83_AcceptThatFails(t *testing.T) {
	virtual(t, func(t *testing.T) {
		const most = 3 // CQs
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxQP: 1, MaxCQ: most}})
		require.NoError(t, err)
		w := newWorld(t, "pipe", &Config{RNIC: rnic}, nil)
		t.Cleanup(func() {
			require.NoError(t, w.target.Close())
			require.NoError(t, rnic.Close())
		})
		w.reply(w.raw(), linux(0, 32))
		_, err = w.raw().Write(linux(0, 32))
		require.NoError(t, err)
		require.EqualValues(t, 1, w.settled().Queues)
		for range most - 1 {
			cq, err := rnic.CreateCQ(1)
			require.NoError(t, err, "the first connection has one")
			defer func() { require.NoError(t, cq.Close()) }()
		}
	})
}

func TestNVME_89_Connections(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{Limits: Limits{Connections: 2, IOQueues: 1}}, nil)
		h := newHost(t, w.addr)
		_, err := h.dial(2, 32, nil)
		require.Equal(t, capsule.RejectQID, rejected(t, err))
		s := h.connect(1)
		_, err = h.dial(1, 32, nil)
		require.Equal(t, capsule.RejectNoResources, rejected(t, err))
		require.NoError(t, s.io[0].qp.Close())
		time.Sleep(time.Second)
		s.io = nil
		s.queue(32, nil)
	})
}

// TestLogOfJSONHasTexts: the reason for a rejection is in words, and the address reads as in a text log.
func TestLogOfJSONHasTexts(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, "tcp", &Config{Logger: slog.New(slog.NewJSONHandler(&log, nil)), Limits: Limits{IOQueues: 1}}, nil)
	_, err := newHost(t, w.addr).dial(2, 32, nil)
	require.Equal(t, capsule.RejectQID, rejected(t, err)) // the Reject is sent after the log record
	var line struct{ Msg, Peer, Why string }
	require.NoError(t, json.NewDecoder(&log).Decode(&line))
	require.Equal(t, "connection rejected", line.Msg)
	require.Equal(t, capsule.RejectQID.String(), line.Why)
	require.Contains(t, line.Peer, "127.0.0.1:")
}

// TestNVME_9_ReceivesAreThereBeforeTheReply: as many commands as the Reply allows follow it at once.
func TestNVME_9_ReceivesAreThereBeforeTheReply(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(0)
		l, err := s.dial(1, 40, nil)
		require.NoError(t, err)
		accept, err := capsule.ParseAccept(l.qp.PrivateData())
		require.NoError(t, err)
		require.EqualValues(t, 40, accept.CRQSize)
		data := make([]byte, capsule.ConnectDataSize)
		d := capsule.ConnectData{HostID: hostID, CNTLID: s.cntlid, SubNQN: storage, HostNQN: hostNQN}
		d.Put(data)
		first := l.send(capsule.Connect{QID: 1, SQSize: 39}.SQE(0, capsule.InCapsuleSGL(0, capsule.ConnectDataSize)), data...)
		var rest []uint16
		for range 39 {
			rest = append(rest, l.send(capsule.FlushSQE(0, 1)))
		}
		require.Equal(t, capsule.Success, l.wait(first).Status)
		for _, cid := range rest {
			require.Equal(t, capsule.Success, l.wait(cid).Status)
		}
	})
}

// TestNVME_10_ReceivesAreThereBeforeTheResponse: the host always has as many commands outstanding as there are receives.
func TestNVME_10_ReceivesAreThereBeforeTheResponse(t *testing.T) {
	w := newWorld(t, "tcp", nil, nil)
	s := newHost(t, w.addr).connect(0)
	q := s.queue(2, nil)
	sgl := kept(q.writable(make([]byte, lba)))
	for range 2 {
		q.send(rw(capsule.OpRead, 1, 1, sgl))
	}
	for range 2000 {
		a, err := q.next()
		require.NoError(t, err)
		require.Equal(t, capsule.Success, a.Status)
		q.send(rw(capsule.OpRead, 1, 1, sgl))
	}
}

// TestConnectionsOfTheProgram: they are served like those of Serve, and ServeConn returns when they end.
func TestConnectionsOfTheProgram(t *testing.T) {
	w := newWorld(t, "pipe", nil, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var serving sync.WaitGroup
	serve := func() (ended chan error) {
		ended = make(chan error, 1)
		serving.Go(func() {
			c, err := l.Accept()
			if err == nil {
				err = w.target.ServeConn(t.Context(), c)
			}
			ended <- err
		})
		return ended
	}
	admin := serve()
	h := newHost(t, l.Addr().String())
	s := h.connect(0)
	io := serve()
	q := s.queue(2, nil)
	require.Equal(t, capsule.Success, q.wait(q.send(rw(capsule.OpRead, 1, 1, kept(q.writable(make([]byte, lba)))))).Status)
	require.NoError(t, h.rnic.Close())
	require.NoError(t, <-admin)
	require.NoError(t, <-io)

	broken := serve()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Error(t, <-broken, "there was no request")
	serving.Wait()
}

// TestNVME_10_EventRequestsKeepTheirReceive: it is posted again when the request is answered, however late.
func TestNVME_10_EventRequestsKeepTheirReceive(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := newHost(t, newWorld(t, "pipe", nil, nil).addr).connect(0).admin
		for range 40 { // there are 32
			event := l.send(capsule.AsyncEventSQE(0))
			abort := capsule.Abort{CID: event}
			l.ok(abort.SQE(0))
			require.Equal(t, capsule.StatusAbortRequested, l.wait(event).Status)
		}
	})
}

// blocked returns a back end one of whose blocks is stuck until a channel is closed.
func blocked(t testing.TB, at int64) (b *backend.Fake, open chan struct{}) {
	b = fakeOf(t)
	open = make(chan struct{})
	b.Inject(backend.Fault{Off: at * lba, Len: lba, Wait: open})
	return b, open
}

func TestNVME_11_OneCommandTooMany(t *testing.T) {
	for _, srq := range []int{0, 200} {
		virtual(t, func(t *testing.T) {
			b, open := blocked(t, 1)
			w := newWorld(t, "pipe", &Config{SRQ: srq}, b)
			s := newHost(t, w.addr).connect(0)
			bad, good := s.queue(32, nil), s.queue(32, nil)
			began := time.Now()
			for range 32 {
				bad.send(rw(capsule.OpWrite, 1, 1, capsule.InCapsuleSGL(0, lba)), pattern(lba, 1)...)
			}
			require.Equal(t, capsule.Success, s.admin.do(capsule.KeepAliveSQE(0)).Status)
			bad.send(capsule.FlushSQE(0, 1))
			<-bad.qp.Done()
			require.Equal(t, began, time.Now(), "at once")
			if srq == 0 { // otherwise the SRQ has one, and the model closes the queue
				require.ErrorIs(t, bad.qp.Err(), iwarp.ErrNoReceive)
			}
			require.Equal(t, capsule.Success, s.admin.do(capsule.KeepAliveSQE(0)).Status)
			require.Equal(t, capsule.StatusLBAOutOfRange, good.writeInside(1<<40, pattern(lba, 1)).Status)
			close(open)
			require.Equal(t, capsule.Success, good.writeInside(2, pattern(lba, 1)).Status)
			again, err := s.dial(3, 32, nil)
			require.NoError(t, err)
			require.Equal(t, capsule.Success, again.connect(storage, s.cntlid).Status)
			for range 200 { // no receive is lost
				again.ok(capsule.FlushSQE(0, 1))
			}
		})
	}
}
