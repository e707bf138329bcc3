package iwarp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// dialTo connects a QP of s to scripts.
func (s *side) dialTo(qc iwarp.QPConfig, scripts ...func(p *wiretest.Peer)) error {
	s.Helper()
	qc.PD = s.pd
	var err error
	s.qp, err = s.rnic.Dial(testContext(s.T), "pipe", wiretest.Serve(s.T, scripts...), &qc)
	return err
}

func TestMPA2_7_26_RTRByWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(iwarp.QPConfig{}, func(p *wiretest.Peer) {
			defer close(done)
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("50 02 0004 8010 c010")
			p.WantSegment("the RTR is an empty Write, though a Read would do", "c1 40 00000000 0000000000000000")
			p.WantSegment("then comes the first message", "41 43 00000000 00000000 00000001 00000000")
		}))
		require.NoError(t, s.qp.Send(testContext(t)))
		<-done
		require.Zero(t, s.qp.SendCQ().Poll(make([]iwarp.WC, 1)), "the RTR makes no completion")
	})
}

// TestMPA2_26_30_RTRByRead: the Read takes MSN 1 of QN 1, and one slot of the ORD until it is answered.
func TestMPA2_26_30_RTRByRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, mr := s.register(8, 1, nil)
		posted, done := make(chan struct{}), make(chan struct{})
		require.NoError(t, s.dialTo(iwarp.QPConfig{ORD: 4, SendDepth: 2}, func(p *wiretest.Peer) {
			defer close(done)
			p.WantRequest("50 02 0004 8010 c004")
			p.Reply("50 02 0004 8002 4010")
			require.Equal(t, wiretest.ReadRequest(1, 0, 0, 0, 0, 0), p.Segment(), "the RTR is an empty Read")
			<-posted
			require.Equal(t, wiretest.ReadRequest(2, mr.STag(), 0, 1, remote.STag, remote.TO), p.Segment())
			p.WantIdle("the ORD is 2 now, and the RTR takes one of it", iwarp.SIWWaits[0]/2)
			p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
			require.Equal(t, wiretest.ReadRequest(3, mr.STag(), 1, 1, remote.STag, remote.TO), p.Segment())
			p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 0, "a"))
			p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 1, "b"))
			p.WantEOF("closed")
		}))
		require.Equal(t, 2, s.qp.ORD())
		require.NoError(t, s.qp.PostSend(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 1)}, Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(1, 1)}, Remote: remote}), "the RTR takes no room in the queue")
		close(posted)
		require.Equal(t, []uint64{1, 2}, ids(s.completes(s.qp.SendCQ(), 2)), "the RTR makes no completion")
		require.NoError(t, s.qp.Close())
		<-done
	})
}

// TestMPA2_14_27_FailedNegotiation: a Terminate is sent instead of the RTR.
func TestMPA2_14_27_FailedNegotiation(t *testing.T) {
	for name, c := range map[string]struct {
		reply string
		code  uint16
	}{
		"no common RTR: only Send":       {"50 02 0004 c010 0010", 0x2007},
		"no common RTR: none at all":     {"50 02 0004 8010 0010", 0x2007},
		"more Reads than our IRD takes":  {"50 02 0004 8010 8011", 0x2006},
		"more Reads, and the RTR, wrong": {"50 02 0004 c010 0011", 0x2006},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				err := s.dialTo(iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error { return qp.PostRecv(iwarp.RecvWR{ID: 1}) }}, func(p *wiretest.Peer) {
					p.WantRequest(wiretest.DefaultRequest)
					p.Reply(c.reply)
					require.Equal(t, wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, string([]byte{byte(c.code >> 8), byte(c.code), 0, 0})), p.Segment())
					p.WantEOF("nothing follows")
				})
				var te *iwarp.TerminateError
				require.ErrorAs(t, err, &te)
				require.Equal(t, c.code, uint16(codeOf(te)))
				require.False(t, te.Remote)
				require.Zero(t, s.rnic.InUse().MaxQP)
				e := <-s.rnic.Events()
				require.Equal(t, iwarp.EventTerminated, e.Kind)
			})
		})
	}
}

// TestMPA_70_VERBS_54_ResponderWaits: it waits until the initiator's first FPDU has come.
func TestMPA_70_VERBS_54_ResponderWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(iwarp.DefaultDepth)
		require.NoError(t, err)
		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendCQ: cq})
		require.NoError(t, qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Inline: []byte("a")}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("b")}))
		p.WantIdle("what is posted stays queued", time.Minute)
		require.Zero(t, cq.Poll(make([]iwarp.WC, 1)), "and is not complete")
		b := wiretest.FPDU(wiretest.Write(0, 0, ""))
		p.Write(b[:len(b)-1])
		p.WantIdle("an FPDU whose CRC is not there is none", time.Minute)
		p.Write(b[len(b)-1:])
		require.Equal(t, wiretest.Send(1, 0, "a"), p.Segment())
		require.Equal(t, wiretest.Send(2, 0, "b"), p.Segment())
		require.Equal(t, []uint64{1, 2}, ids(s.completes(cq, 2)))
		require.NoError(t, qp.Abort())

		p, qp = initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, MPA: iwarp.MPAOptions{EarlyResponderSend: true}})
		require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
		require.Equal(t, wiretest.Send(1, 0, ""), p.Segment(), "EarlyResponderSend does not wait")
		require.NoError(t, qp.Abort())
	})
}

// TestMPA_70_FencedResponderEnds: it may not even send a Terminate, and just closes.
func TestMPA_70_FencedResponderEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}))
		b := wiretest.FPDU(wiretest.Write(0, 0, ""))
		b[len(b)-1]++ // the first FPDU is corrupt
		p.Write(b)
		p.WantEOF("it closes without a word")
		<-qp.Done()
		var te *iwarp.TerminateError
		require.ErrorAs(t, qp.Err(), &te)
		require.Equal(t, uint16(0x2002), uint16(codeOf(te)), "its own side is told")
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(s.completes(qp.SendCQ(), 1)))
	})
}

func TestFencedResponderCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		start := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- qp.Close() }()
		p.WantEOF("an idle one ends at once")
		require.Zero(t, time.Since(start))
		p.Close()
		require.NoError(t, <-closed)

		p, qp = initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("bye")}))
		go func() { closed <- qp.Close() }()
		synctest.Wait()
		require.Empty(t, closed, "one with work waits for the permission to send")
		p.Send(wiretest.Write(0, 0, ""))
		require.Equal(t, wiretest.Send(1, 0, "bye"), p.Segment())
		p.WantEOF("and then ends")
		p.Close()
		require.NoError(t, <-closed)
	})
}

// TestResponderTakesTheRTR: an RTR of either kind leaves no trace.
func TestResponderTakesTheRTR(t *testing.T) {
	for name, c := range map[string]struct{ request, reply, rtr, answer string }{
		"Write":         {"50 02 0004 8010 c010", "50 02 0004 8010 8010", "c1 40 00000000 0000000000000000", ""},
		"Read":          {"50 02 0004 8010 4010", "50 02 0004 8010 4010", "41 41 00000000 00000001 00000001 00000000 00000000 0000000000000000 00000000 00000000 0000000000000000", "c1 42 00000000 0000000000000000"},
		"client-server": {"50 02 0004 0010 0010", "50 02 0004 0010 0010", "c1 40 00000000 0000000000000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(c.request))
				var err error
				s.qp, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd, RNRWait: -1})
				require.NoError(t, err)
				p.WantReply("the Reply", c.reply)
				require.NoError(t, s.qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}))
				p.WantIdle("nothing before the RTR", time.Second)
				p.SendHex("the RTR", c.rtr)
				first, second := p.Segment(), []byte(nil)
				if c.answer != "" {
					second = p.Segment()
					if second[1] == 0x42 {
						first, second = second, first
					}
					require.Equal(t, wiretest.Hex(c.answer), first)
					first = second
				}
				require.Equal(t, wiretest.Send(1, 0, ""), first)
				synctest.Wait()
				require.Zero(t, s.qp.RecvCQ().Poll(make([]iwarp.WC, 1)), "the RTR makes no completion")
				require.NoError(t, s.qp.Abort())
			})
		})
	}
}
