package rdma9p

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestP9R_12_AnswersBehindTheEnd: after the end, the goroutines of p9's server, one per request, still write answers.
func TestP9R_12_AnswersBehindTheEnd(t *testing.T) {
	for name, answer := range map[string][]byte{
		"header":       message(tread+1, 0),
		"inline":       message(tread+1, 0, numbers(0)...),
		"buffer":       message(tread+1, 0, make([]byte, 2*inlineSize)...),
		"too long":     message(tread+1, 0, make([]byte, 2*minMsize)...),
		"no message":   {6, 0, 0, 0, byte(tread + 1), 0, 0},
		"not to parse": rerror(noTag, einval),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.done()
				w := serve(t, "pipe", t.Name(), s, Config{})
				p := w.dial(minMsize)
				p.version(minMsize)
				for tag := range uint16(3) {
					p.send(message(tread, tag, make([]byte, 16)...))
					s.next()
				}
				require.NoError(t, p.qp.Abort())
				synctest.Wait()
				for tag := range byte(3) {
					if answer[5] == 0 || tag > 0 {
						answer[5] = tag
					}
					require.Error(t, s.write(answer))
				}
				w.stopped()
			})
		})
	}
}

// TestP9R_12_NoMemoryForASession: the connection then ends, since its peer would otherwise wait for ever.
func TestP9R_12_NoMemoryForASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.done()
		const ofPeer, ofFirstReceive = 1, 1
		limits := iwarp.Limits{MaxMR: ofPeer + ofFirstReceive}
		w := serveOn(t, &iwarp.Config{Limits: limits}, "pipe", t.Name(), s, Config{})
		p := w.dial(minMsize)
		p.post()
		require.NoError(t, p.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: tversionMsg(minMsize, "9P2000.L")}))
		p.wantEnd("the session has no memory")
		w.stopped()
		require.Contains(t, w.log.String(), iwarp.ErrLimit.Error())
	})
}
