package commit

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

var region = Region{0x11223344, 0x1000, 8}

func TestCMT_7_22_RequesterCompletesOnTheResponse(t *testing.T) {
	c := converse(t, nil)
	c.posts(ask(1, region), ask(2, region))
	require.NoError(t, c.flush())
	c.wantDone("not when the requests are out")
	c.sends("the first response", responseOf(1, 1, 0))
	c.wantDone("completes the first", "1 committed")
	c.sends("a failure", responseOf(2, 2, MakeStatus(3, DataLost)))
	c.wantDone("completes, too", "2 data lost (region 3)")
	c.posts(ask(3, region))
	require.NoError(t, c.flush(), "and the stream goes on")
}

func TestCMT_8_ResponseThatDoesNotMatch(t *testing.T) {
	for what, x := range map[string]struct {
		code    transport.Code
		segment []byte
	}{
		"another ID":           {transport.RDMAPStreamCatastrophic, responseOf(1, 2, 0)},
		"too short":            {transport.RDMAPStreamCatastrophic, untagged(0x4d, 3, 1, "1234567")},
		"empty":                {transport.RDMAPStreamCatastrophic, untagged(0x4d, 3, 1, "")},
		"too long":             {transport.DDPTooLong, untagged(0x4d, 3, 1, "123456789")},
		"an Atomic Response":   {transport.RDMAPOpcode, atomicResponseOf(1, 1, 0)[:18+8]},
		"a request in its way": {transport.RDMAPOpcode, untagged(0x4c, 3, 1, "12345678")},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			c.posts(ask(1, region))
			require.NoError(t, c.flush())
			c.wantRefusedNow("ends the stream", x.code, x.segment)
		})
	}
	c := converse(t, nil)
	c.wantRefusedNow("one that was not asked for", transport.RDMAPStreamCatastrophic, responseOf(1, 1, 0))
}

// TestCMT_3_RequestsShareTheirMessageNumbers: Commits, Reads and Atomics are one sequence on QN 1.
func TestCMT_3_RequestsShareTheirMessageNumbers(t *testing.T) {
	c := converse(t, nil)
	q := ask(1, region)
	_, err := c.s.Post(4, func(i int, r *rdmap.Request) error {
		r.ID = uint64(i)
		switch i {
		case 1:
			r.Kind = rdmap.KindRead
		case 2:
			r.Kind = rdmap.KindAtomic
			r.Inline = rdmap.AtomicRequest{Op: rdmap.FetchAdd, At: rdmap.RemoteAddr{STag: 1}}.Append(r.Inline)
		default:
			r.Kind, r.Ext, r.Inline = rdmap.KindExtension, c.ext, q.Append(r.Inline)
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, c.flush())
	var heads []string
	for _, g := range c.sent {
		heads = append(heads, hex.EncodeToString(g[:14]))
	}
	require.Equal(t, []string{
		"414c00000000" + "00000001" + "00000001", "414100000000" + "00000001" + "00000002",
		"414a00000000" + "00000001" + "00000003", "414c00000000" + "00000001" + "00000004",
	}, heads)
}

// TestCMT_4_ResponsesShareTheirMessageNumbers: responses to Commits and Atomics are one sequence on
// QN 3, at either end.
func TestCMT_4_ResponsesShareTheirMessageNumbers(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	c.sends("a Commit, a Read, an Atomic, a Commit", requestOf(1, ask(1, part(r, 0, 8))), readOf(2), addOf(3, part(r, 0, 8)), requestOf(4, ask(4, part(r, 0, 8))))
	c.wantAnswer("the first", 1, 1, 0)
	c.wantSegment("has no number", readResponse)
	c.wantSegment("the second", atomicResponseOf(2, 3, 0))
	c.wantAnswer("the third", 3, 4, 0)

	q := ask(1, region)
	_, err := c.s.Post(2, func(i int, r *rdmap.Request) error {
		r.Kind, r.Ext, r.ID = rdmap.KindExtension, c.ext, uint64(i)
		r.Inline = q.Append(r.Inline)
		if i == 0 {
			r.Kind, r.Ext = rdmap.KindAtomic, nil
			r.Inline = rdmap.AtomicRequest{Op: rdmap.FetchAdd, At: rdmap.RemoteAddr{STag: 1}}.Append(r.Inline[:0])
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, c.flush())
	c.sends("an Atomic Response, and that to a Commit", atomicResponseOf(1, 1, 7), responseOf(2, 1, 0))
	require.Len(t, c.done, 2)
}

func TestCMT_47_CommitTakesASlotOfTheORD(t *testing.T) {
	c := converse(t, nil)
	c.posts(ask(1, region), ask(2, region), ask(3, region), ask(4, region), ask(5, region))
	require.NoError(t, c.flush())
	require.Len(t, c.sent, 4, "the fifth waits")
	c.sent = nil
	c.sends("a response", responseOf(1, 1, 0))
	c.wantSegment("frees a slot", requestOf(ddp.MSN(5), ask(5, region)))
}

func TestCMT_27_CommitThatCannotBeMade(t *testing.T) {
	c := converse(t, func(_ *Config, r *rdmap.Config) { r.ORD = 0 })
	c.posts(ask(1, region))
	err := c.flush()
	require.Error(t, err, "without an ORD there is no request")
	require.True(t, c.s.Terminate(err))
	c.wantSegment("but a Terminate, without headers", untagged(0x47, 2, 1, "\x00\x00\x00\x00"))
}
