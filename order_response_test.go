package iwarp_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestEXT_22_61_ResponseFollowsCompletions: when the peer has the response to a Read or to an atomic operation, its
// earlier messages are complete at this side (RFC 5040 appendix B, RFC 7306 section 7), even while what came with them
// is still being placed.
func TestEXT_22_61_ResponseFollowsCompletions(t *testing.T) {
	const atomics = stag.LocalWrite | stag.RemoteWrite | stag.RemoteAtomic
	messages := map[string]func(k *talk) [][]byte{
		"Immediate Data": func(*talk) [][]byte { return [][]byte{wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "12345678")} },
		"Send":           func(*talk) [][]byte { return [][]byte{wiretest.Send(1, 0, "ab")} },
		"Send for two SGEs": func(*talk) [][]byte {
			return [][]byte{wiretest.Send(1, 0, "abcdef")}
		},
		"Send of two segments": func(*talk) [][]byte {
			return [][]byte{wiretest.Untagged(0x01, 0x43, 0, 0, 1, 0, "ab"), wiretest.Untagged(0x41, 0x43, 0, 0, 1, 2, "cd")}
		},
		"Send with Invalidate": func(k *talk) [][]byte {
			_, own := k.register(8, atomics, &iwarp.MROptions{QP: k.qp})
			return [][]byte{wiretest.Untagged(0x41, 0x44, uint32(own.STag()), 0, 1, 0, "")}
		},
	}
	requests := map[string]func(k *talk) []byte{
		"Read": func(*talk) []byte { return wiretest.ReadRequest(1, 7, 0, 0, 0, 0) },
		"Atomic": func(k *talk) []byte {
			_, counter := k.register(8, atomics, nil)
			return atomicRequest(1, 0, counter.STag(), 0, 1, 0, 0, allBits)
		},
	}
	responses := map[string]byte{"Read": 0x42, "Atomic": 0x4b}
	for what, message := range messages {
		for request, segment := range requests {
			t.Run(what+", "+request, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					k := newTalk(t, iwarp.QPConfig{}, nil)
					gate := gateBuffer{make(chan struct{})}
					slow, err := k.pd.RegisterBuffer(gate, stag.LocalWrite|stag.RemoteWrite, nil)
					require.NoError(t, err)
					require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{k.mr.Slice(0, 4), k.mr.Slice(8, 4)}}))
					k.p.Send(append(message(k), segment(k), wiretest.Write(slow.STag(), 0, "slow"))...)
					synctest.Wait() // the Write is being placed
					k.posts(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: []byte("x"), Remote: remote})
					for k.p.Segment()[1] != responses[request] {
					}
					wcs := make([]iwarp.WC, 2)
					n := k.cq.Poll(wcs)
					close(gate.open)
					synctest.Wait()
					require.NoError(t, k.qp.Abort())
					require.Equal(t, 1, n, "the message is complete")
					require.EqualValues(t, 1, wcs[0].ID)
				})
			})
		}
	}
}
