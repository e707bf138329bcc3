package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// A doorkeeper is an Upper, and a Queue of one buffer, that notes what it is asked about.
type doorkeeper struct {
	*conversation
	*scriptQueue
	inTurn []MSN
}

func (d *doorkeeper) Untagged(h UntaggedHeader, _ int) error {
	d.inTurn = append(d.inTurn, h.MSN)
	return nil
}

func (d *doorkeeper) Deliver(h UntaggedHeader, n uint32) error {
	if err := d.scriptQueue.Deliver(h, n); err != nil {
		return err
	}
	d.s.Unguard()
	return nil
}

// TestCM_22_GuardedStreamPlacesNothingBeforeItsTurn.
func TestCM_22_GuardedStreamPlacesNothingBeforeItsTurn(t *testing.T) {
	c := converse(t, 8)
	_, mem := c.region(16, nil)
	own, theirs := make([]byte, 8), make([]byte, 8)
	c.post(0, theirs)
	d := &doorkeeper{conversation: c, scriptQueue: &scriptQueue{c: c}}
	d.bufs = append(d.bufs, plain(own))
	c.s.Guard(d, 0, d)
	require.NoError(t, c.s.Segment(1, untagged(true, 0, 2, 0, []byte("second"))))
	require.NoError(t, c.s.Segment(2, untagged(true, 7, 1, 0, []byte("no such queue"))), "it is judged in its turn")
	require.Empty(t, d.inTurn)
	require.Equal(t, make([]byte, 8), theirs)
	require.Equal(t, make([]byte, 16), mem)
	err := c.s.Segment(0, untagged(true, 0, 1, 0, []byte("first")))
	_ = c.isFault("the third", transport.DDPQueue, err)
	require.Equal(t, []MSN{1}, d.inTurn, "the first alone: then the guard is gone")
	require.Equal(t, "first", string(own[:5]))
	require.Equal(t, "second", string(theirs[:6]))
	require.Equal(t, 1, c.asked)
}

// TestUnguardedStreamPlacesAheadOfItsTurn, like a stream that never had a guard.
func TestUnguardedStreamPlacesAheadOfItsTurn(t *testing.T) {
	c := converse(t, 8)
	r, mem := c.region(16, nil)
	c.bind(0)
	d := &doorkeeper{conversation: c, scriptQueue: &scriptQueue{c: c}}
	d.bufs = append(d.bufs, plain(make([]byte, 8)))
	c.s.Guard(d, 0, d)
	require.NoError(t, c.s.Segment(0, untagged(true, 0, 1, 0, []byte("first"))))
	require.NoError(t, c.s.Segment(2, tagged(true, r.STag(), 0x1000, []byte("early"))))
	require.Equal(t, "early", string(mem[:5]))
}

// TestGuardedStreamKeepsItsWindow, if that is less than what a guard allows.
func TestGuardedStreamKeepsItsWindow(t *testing.T) {
	c := converse(t, 2)
	d := &doorkeeper{conversation: c, scriptQueue: &scriptQueue{c: c}}
	c.bind(0)
	c.s.Guard(d, 0, d)
	require.NoError(t, c.s.Segment(2, untagged(true, 0, 3, 0, nil)))
	_ = c.isFault("one more", transport.DDPLocalCatastrophic, c.s.Segment(3, untagged(true, 0, 4, 0, nil)))
}
