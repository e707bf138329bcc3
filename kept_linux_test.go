//go:build linux && !purego

package iwarp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holdsLock takes the send lock of an idle QP, as if somebody had just sent a share.
func (s *side) holdsLock() *sender {
	s.Helper()
	tx := &s.qp.tx
	require.Eventually(s, tx.take, patience, 100*time.Microsecond, "nobody sends")
	return tx
}

// isSteady makes believe that somebody has come to wait often enough.
func (s *sender) isSteady() {
	s.back, s.at = backTimes, int64(time.Since(clockStart))
}

// leavesOver posts a Write that is to be sent by whom the lock is kept for.
func (s *side) leavesOver() {
	s.Helper()
	require.NoError(s, s.qp.PostSend(SendWR{Op: OpRDMAWrite}))
	require.Zero(s, s.qp.SendCQ().Poll(make([]WC, 1)), "the lock is taken")
}

// hasSent waits for the completion of what was left over.
func (s *side) hasSent(expectation string) {
	s.Helper()
	require.Eventually(s, func() bool { return s.qp.SendCQ().Poll(make([]WC, 1)) == 1 }, patience, 100*time.Microsecond, expectation)
}

func TestSendLockIsKeptForWhoHasBeenSteady(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	tx := client.holdsLock()
	for range backTimes - 1 {
		tx.waits.Add(1)
		tx.at = int64(time.Since(clockStart)) // however slow this machine is
		require.False(t, tx.keep(), "not often enough yet")
	}
	tx.at = int64(time.Since(clockStart))
	require.False(t, tx.keep(), "nobody has been here since")
	tx.waits.Add(1)
	tx.at = int64(time.Since(clockStart))
	require.True(t, tx.keep())

	require.Eventually(t, tx.take, patience, 100*time.Microsecond)
	tx.isSteady()
	tx.at -= int64(backTime) + 1
	require.False(t, tx.keep(), "that was too long ago")
	tx.run(paceShare)
}

func TestSendLockIsNotKeptIfNobodyWillCome(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	tx := client.holdsLock()
	tx.isSteady()
	tx.park()
	require.False(t, tx.keep(), "who waits sleeps")
	tx.unpark()

	tx.isSteady()
	client.qp.closing.Store(true)
	require.False(t, tx.keep(), "the QP is being closed")
	client.qp.closing.Store(false)
	tx.run(paceShare)
}

func TestWhoWaitsSendsWhatIsLeftOver(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	sent := func() bool {
		tx := client.holdsLock()
		client.leavesOver()
		tx.isSteady()
		require.True(t, tx.keep())
		if !tx.goOn() { // the attendant has been faster
			client.hasSent("by a goroutine")
			return false
		}
		require.Equal(t, 1, client.qp.SendCQ().Poll(make([]WC, 1)), "it was sent here and now")
		return true
	}
	require.Eventually(t, sent, patience, time.Millisecond)
}

func TestSendLockIsNotKeptForLong(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	tx := client.holdsLock()
	client.leavesOver()
	tx.isSteady()
	require.True(t, tx.keep())
	client.hasSent("nobody has come")
	tx = client.holdsLock()
	require.Zero(t, tx.back, "nor is he expected again")
	tx.run(paceShare)
}

func TestWhoSleepsElsewhereHasALockThatIsKeptTakenUp(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	tx := client.holdsLock()
	client.leavesOver()
	tx.kept.Store(keptForReader)
	require.NoError(t, client.qp.Drain(testContext(t)))
	client.hasSent("Drain sleeps")

	tx = client.holdsLock()
	client.leavesOver()
	tx.kept.Store(keptForReader)
	ctx := testContext(t)
	done := make(chan error, 1)
	go func() { done <- client.qp.RDMAWrite(ctx, RemoteBuffer{}) }()
	require.NoError(t, <-done, "a blocking helper sleeps")
	client.hasSent("before it")
}

func TestConnectionEndsWhileTheSendLockIsKept(t *testing.T) {
	client, _ := connect(t, pairConfig{})
	tx := client.holdsLock()
	tx.kept.Store(keptForReader)
	client.qp.Abort()
	require.NoError(t, client.rnic.Close(), "both halves have ended")
}

func TestReaderThatStaysSendsWhatIsLeftOver(t *testing.T) {
	client, server := connect(t, pairConfig{})
	sent := func() bool {
		server.hears(client, "a reader stays")
		tx := server.holdsLock()
		server.leavesOver()
		if !tx.handBack() { // it has left
			tx.run(paceShare)
			server.hasSent("without it")
			return false
		}
		server.hasSent("by the reader")
		return true
	}
	require.Eventually(t, sent, patience, time.Millisecond)
}

// TestReaderWithEnoughToDoDoesNotSendAsWell: nothing comes that the test does not know of, for
// each segment counts.
func TestReaderWithEnoughToDoDoesNotSendAsWell(t *testing.T) {
	s, f := scripted(t, QPConfig{})
	x := &s.qp.rx
	require.Equal(t, paceReader, x.pace())
	x.weigh(heavyLen)
	require.Equal(t, paceShare, x.pace(), "a large segment has come")
	refused := func() bool {
		s.stays(f)
		x.weigh(heavyLen)
		tx := s.holdsLock()
		require.False(t, tx.handBack())
		stayed := s.reader() == readerStaying // it did all the while
		tx.run(paceShare)
		return stayed
	}
	require.Eventually(t, refused, patience, time.Microsecond)

	s.becomes(readerArmed, "nothing comes")
	x.weigh(heavyLen)
	for range lightTimes {
		require.Equal(t, paceShare, x.pace())
		x.weigh(heavyLen - 1)
	}
	require.Equal(t, paceReader, x.pace(), "that was long ago")
}
