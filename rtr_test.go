package iwarp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// dialTo connects a QP of s to scripts.
func (s *side) dialTo(qc QPConfig, scripts ...func(p *peer)) error {
	s.Helper()
	qc.PD = s.pd
	var err error
	s.qp, err = s.rnic.Dial(testContext(s.T), "pipe", peers(s.T, scripts...), &qc)
	return err
}

func TestMPA2_7_26_RTRByWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{}, func(p *peer) {
			defer close(done)
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 c010")
			p.wantSegment("the RTR is an empty Write, though a Read would do", "c1 40 00000000 0000000000000000")
			p.wantSegment("then comes the first message", "41 43 00000000 00000000 00000001 00000000")
		}))
		require.NoError(t, s.qp.Send(testContext(t)))
		<-done
		require.Zero(t, s.qp.SendCQ().Poll(make([]WC, 1)), "the RTR makes no completion")
	})
}

// TestMPA2_26_30_RTRByRead: it takes MSN 1 of QN 1, and one slot of the ORD until it
// is answered.
func TestMPA2_26_30_RTRByRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, mr := s.register(8, 1, nil)
		posted, done := make(chan struct{}), make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{ORD: 4, SendDepth: 2}, func(p *peer) {
			defer close(done)
			p.wantRequest("50 02 0004 8010 c004")
			p.replies("50 02 0004 8002 4010")
			require.Equal(t, readRequest(1, 0, 0, 0, 0, 0), p.segment(), "the RTR is an empty Read")
			<-posted
			require.Equal(t, readRequest(2, mr.STag(), 0, 1, remote.STag, remote.TO), p.segment())
			p.wantIdle("the ORD is 2 now, and the RTR takes one of it", RTRWait/2)
			p.writes(fpdu(response(0xc1, 0, 0, "")))
			require.Equal(t, readRequest(3, mr.STag(), 1, 1, remote.STag, remote.TO), p.segment())
			p.writes(fpdu(response(0xc1, mr.STag(), 0, "a")))
			p.writes(fpdu(response(0xc1, mr.STag(), 1, "b")))
			p.wantEnd("closed")
		}))
		require.Equal(t, 2, s.qp.ORD())
		require.NoError(t, s.qp.PostSend(
			SendWR{ID: 1, Op: OpRDMARead, Local: []SGE{mr.Slice(0, 1)}, Remote: remote},
			SendWR{ID: 2, Op: OpRDMARead, Local: []SGE{mr.Slice(1, 1)}, Remote: remote}), "the RTR takes no room in the queue")
		close(posted)
		require.Equal(t, []uint64{1, 2}, ids(s.completes(s.qp.SendCQ(), 2)), "the RTR makes no completion")
		require.NoError(t, s.qp.Close())
		<-done
	})
}

// TestMPA2_14_27_FailedNegotiation: the Terminate takes the place of the RTR.
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
				err := s.dialTo(QPConfig{Setup: func(_ context.Context, qp *QP) error { return qp.PostRecv(RecvWR{ID: 1}) }}, func(p *peer) {
					p.wantRequest(defaultRequest)
					p.replies(c.reply)
					require.Equal(t, untagged(0x41, 0x47, 0, 2, 1, 0, string([]byte{byte(c.code >> 8), byte(c.code), 0, 0})), p.segment())
					p.wantEnd("nothing follows")
				})
				var te *TerminateError
				require.ErrorAs(t, err, &te)
				require.Equal(t, c.code, uint16(codeOf(te)))
				require.False(t, te.Remote)
				require.Zero(t, s.rnic.InUse().MaxQP)
				e := <-s.rnic.Events()
				require.Equal(t, EventTerminated, e.Kind)
			})
		})
	}
}

// TestMPA_70_VERBS_54_ResponderWaits: until the initiator's first FPDU has come.
func TestMPA_70_VERBS_54_ResponderWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(DefaultDepth)
		require.NoError(t, err)
		p, qp := initiator(t, s.rnic, "pipe", &QPConfig{PD: s.pd, SendCQ: cq})
		require.NoError(t, qp.PostSend(SendWR{ID: 1, Op: OpSend, Inline: []byte("a")}, SendWR{ID: 2, Op: OpSend, Inline: []byte("b")}))
		p.wantIdle("what is posted stays queued", time.Minute)
		require.Zero(t, cq.Poll(make([]WC, 1)), "and is not complete")
		b := fpdu(write(0, 0, ""))
		p.writes(b[:len(b)-1])
		p.wantIdle("an FPDU whose CRC is not there is none", time.Minute)
		p.writes(b[len(b)-1:])
		require.Equal(t, send(1, 0, "a"), p.segment())
		require.Equal(t, send(2, 0, "b"), p.segment())
		require.Equal(t, []uint64{1, 2}, ids(s.completes(cq, 2)))
		require.NoError(t, qp.Abort())

		p, qp = initiator(t, s.rnic, "pipe", &QPConfig{PD: s.pd, MPA: MPAOptions{EarlyResponderSend: true}})
		require.NoError(t, qp.PostSend(SendWR{Op: OpSend}))
		require.Equal(t, send(1, 0, ""), p.segment(), "EarlyResponderSend does not wait")
		require.NoError(t, qp.Abort())
	})
}

// TestMPA_70_FencedResponderEnds: it may not even send a Terminate, and just closes.
func TestMPA_70_FencedResponderEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		p, qp := initiator(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		require.NoError(t, qp.PostSend(SendWR{ID: 1, Op: OpSend}))
		b := fpdu(write(0, 0, ""))
		b[len(b)-1]++ // the first FPDU is corrupt
		p.writes(b)
		p.wantEnd("it closes without a word")
		<-qp.Done()
		var te *TerminateError
		require.ErrorAs(t, qp.Err(), &te)
		require.Equal(t, uint16(0x2002), uint16(codeOf(te)), "its own side is told")
		require.Equal(t, []Status{StatusFlushed}, statuses(s.completes(qp.SendCQ(), 1)))
	})
}

func TestFencedResponderCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		p, qp := initiator(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		start := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- qp.Close() }()
		p.wantEnd("an idle one ends at once")
		require.Zero(t, time.Since(start))
		require.NoError(t, p.c.Close())
		require.NoError(t, <-closed)

		p, qp = initiator(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		require.NoError(t, qp.PostSend(SendWR{Op: OpSend, Inline: []byte("bye")}))
		go func() { closed <- qp.Close() }()
		synctest.Wait()
		require.Empty(t, closed, "one with work waits for the permission to send")
		p.writes(fpdu(write(0, 0, "")))
		require.Equal(t, send(1, 0, "bye"), p.segment())
		p.wantEnd("and then ends")
		require.NoError(t, p.c.Close())
		require.NoError(t, <-closed)
	})
}

// TestResponderTakesTheRTR: of either kind, without a trace.
func TestResponderTakesTheRTR(t *testing.T) {
	for name, c := range map[string]struct{ request, reply, rtr, answer string }{
		"Write":         {"50 02 0004 8010 c010", "50 02 0004 8010 8010", "c1 40 00000000 0000000000000000", ""},
		"Read":          {"50 02 0004 8010 4010", "50 02 0004 8010 4010", "41 41 00000000 00000001 00000001 00000000 00000000 0000000000000000 00000000 00000000 0000000000000000", "c1 42 00000000 0000000000000000"},
		"client-server": {"50 02 0004 0010 0010", "50 02 0004 0010 0010", "c1 40 00000000 0000000000000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				p, cr := requester(t, s.rnic, "pipe", hx(c.request))
				var err error
				s.qp, err = cr.Accept(testContext(t), &QPConfig{PD: s.pd, RNRWait: -1})
				require.NoError(t, err)
				p.wantOctets("the Reply", append([]byte(replyKey), hx(c.reply)...))
				require.NoError(t, s.qp.PostSend(SendWR{ID: 1, Op: OpSend}))
				p.wantIdle("nothing before the RTR", time.Second)
				p.sends("the RTR", c.rtr)
				first, second := p.segment(), []byte(nil)
				if c.answer != "" {
					second = p.segment()
					if second[1] == 0x42 {
						first, second = second, first
					}
					require.Equal(t, hx(c.answer), first)
					first = second
				}
				require.Equal(t, send(1, 0, ""), first)
				synctest.Wait()
				require.Zero(t, s.qp.RecvCQ().Poll(make([]WC, 1)), "the RTR makes no completion")
				require.NoError(t, s.qp.Abort())
			})
		})
	}
}
