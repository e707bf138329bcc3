package cm_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// FuzzSetUp sets up a connection through a relay that modifies what passes, and has seen an earlier set-up. A client gets
// a connection only from the Reply to its Request. A host gets one only from a Request and, in mode B, a first message that
// arrive as sent. If all arrive as sent, both get it and have the same keys. Nothing is left of a failed set-up.
//
// The first octet of the input chooses mode and suite. The rest is what the relay does (see wiretest.Benders) with the
// Request and the first message in one direction, and the Reply in the other.
func FuzzSetUp(f *testing.F) {
	for kind := range byte(4) {
		f.Add([]byte{kind})
		for how := wiretest.Flip; how <= wiretest.Edge; how++ {
			for at := range uint16(3) {
				f.Add(append([]byte{kind}, wiretest.Change(false, 0, how, 16+50*at, 1)...))
				f.Add(append([]byte{kind}, wiretest.Change(false, 1, how, 17+20*at, 1)...))
				f.Add(append([]byte{kind}, wiretest.Change(true, 0, how, 16+50*at, 1)...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) < 64 {
			synctest.Test(t, func(t *testing.T) { newBentSetUp(t, in).run() })
		}
	})
}

// A bentSetUp is a modified set-up, and the frames that have passed.
type bentSetUp struct {
	*scene
	mode        cm.Mode
	there, back *wiretest.Bender
	sent, came  [legs][]byte
}

func newBentSetUp(t *testing.T, in []byte) *bentSetUp {
	b := &bentSetUp{mode: cm.ModeA}
	suite := cm.SuiteHMAC
	if in[0]&1 != 0 {
		b.mode = cm.ModeB
	}
	if in[0]&2 != 0 {
		suite = cm.SuiteX25519
	}
	b.scene = newScene(t, func(client, _ *cm.Config) { client.Mode, client.Suite = b.mode, suite })
	b.there, b.back = wiretest.Benders(in[1:])
	request, reply, _ := b.connects()
	b.there.Saw(request)
	b.back.Saw(reply)
	return b
}

// bends returns what the relay makes of a frame.
func (b *bentSetUp) bends(leg int, by *wiretest.Bender) func([]byte) []byte {
	return func(msg []byte) []byte {
		b.sent[leg] = bytes.Clone(msg)
		if b.came[leg] = bytes.Join(by.Bend(msg), nil); len(b.came[leg]) == 0 {
			return nil
		}
		return b.came[leg]
	}
}

// asSent reports whether a frame has arrived as sent, from an octet on. More may follow it.
func (b *bentSetUp) asSent(leg, from int) bool {
	sent, came := b.sent[leg], b.came[leg]
	return len(sent) > from && len(came) >= len(sent) && bytes.Equal(sent[from:], came[from:len(sent)])
}

func (b *bentSetUp) run() {
	const header = 18 // of the first message, and is not authenticated
	r := &relay{request: b.bends(legRequest, b.there), reply: b.bends(legReply, b.back)}
	if b.mode == cm.ModeB {
		r.first = b.bends(legFirst, b.there)
	}
	qp, err := b.dials(r)
	if err == nil {
		require.True(b, b.asSent(legRequest, 0) && b.asSent(legReply, 0), "the client has a connection")
	}
	time.Sleep(2 * time.Minute) // virtual time: longer than any timer of the set-up
	synctest.Wait()
	hosts := len(b.outcomes)
	for range hosts {
		o := <-b.outcomes
		if o.err != nil {
			continue
		}
		require.True(b, b.asSent(legRequest, 0), "the host has a connection")
		if b.mode == cm.ModeB {
			require.True(b, b.asSent(legFirst, header) && len(b.came[legFirst]) == len(b.sent[legFirst]), "the host has a connection")
		}
		if !b.there.Bent() && !b.back.Bent() {
			require.NoError(b, err)
			require.Equal(b, export(b, qp), export(b, o.qp))
		}
		require.NoError(b, o.qp.Abort())
	}
	if !b.there.Bent() && !b.back.Bent() {
		require.Equal(b, 1, hosts)
		require.Equal(b, uint64(2), b.auth.Stats().Accepted)
	}
	if err == nil {
		require.NoError(b, qp.Abort())
	}
	b.relayed.Wait()
	synctest.Wait()
	require.Zero(b, b.auth.Stats().HalfOpen)
	require.NoError(b, b.pd.Close(), "no QP is left")
	require.NoError(b, b.client.pd.Close(), "no QP is left")
}
