//go:build linux && !purego

package iwarp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

func (s *side) reader() readerState {
	s.qp.rx.mu.Lock()
	defer s.qp.rx.mu.Unlock()
	return s.qp.rx.current()
}

// becomes waits until the right to receive is in state want.
func (s *side) becomes(want readerState, expectation string) {
	s.Helper()
	require.Eventually(s, func() bool { return s.reader() == want }, patience, 100*time.Microsecond, expectation)
}

// hears waits until a reader stays because one Write after the other comes from peer.
func (s *side) hears(peer *side, expectation string) {
	s.Helper()
	stays := func() bool {
		require.NoError(s, peer.qp.RDMAWrite(context.Background(), RemoteBuffer{}))
		return s.reader() == readerStaying
	}
	require.Eventually(s, stays, patience, time.Millisecond, expectation)
}

func TestReaderStaysAWhileAndIsArmedWhenNothingComes(t *testing.T) {
	client, server := connect(t, pairConfig{})
	server.hears(client, "more may come")
	server.becomes(readerArmed, "nothing does")
	require.NoError(t, client.qp.RDMARead(testContext(t), SGE{}, RemoteBuffer{}), "it is there when something comes again")
}

func TestReaderDoesNotStayWhereMessagesAreFarApart(t *testing.T) {
	client, server := connect(t, pairConfig{})
	require.NoError(t, client.qp.RDMARead(testContext(t), SGE{}, RemoteBuffer{}))
	server.becomes(readerArmed, "nothing more comes")
	server.qp.rx.mu.Lock()
	server.qp.rx.since = time.Now().Add(-stayTime)
	server.qp.rx.mu.Unlock()
	require.NoError(t, client.qp.RDMARead(testContext(t), SGE{}, RemoteBuffer{}))
	require.Never(t, func() bool { return server.reader() == readerStaying }, stayTime/2, 100*time.Microsecond, "to stay would be in vain")
	server.becomes(readerArmed, "it waits for the next")
}

func TestWaiterClaimsTheRightFromAReaderThatStays(t *testing.T) {
	client, server := connect(t, pairConfig{})
	require.NoError(t, server.qp.PostRecv(RecvWR{}, RecvWR{}))
	ctx := testContext(t)
	done := make(chan error, 1)
	for range 2 {
		server.hears(client, "a reader has taken the Writes")
		go func() {
			_, err := server.qp.RecvCQ().Wait(ctx, make([]WC, 1))
			done <- err
		}()
		server.becomes(readerHeld, "who waits receives")
		require.NoError(t, client.qp.Send(ctx))
		require.NoError(t, <-done)
	}

	server.hears(client, "a reader has taken over again")
	short, cancel := context.WithCancel(ctx)
	go func() {
		_, err := server.qp.RecvCQ().Wait(short, make([]WC, 1))
		done <- err
	}()
	server.becomes(readerHeld, "who waits receives")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	server.becomes(readerArmed, "who has gone does not")
}

func TestSteadyWaiterKeepsTheRight(t *testing.T) {
	client, server := connect(t, pairConfig{})
	_, mr := server.register(8, stag.LocalWrite|stag.RemoteRead, nil)
	_, sink := client.register(8, stag.LocalWrite, nil)
	ctx := context.Background()
	kept := func() bool {
		for range 50 {
			require.NoError(t, client.qp.RDMARead(ctx, sink.Slice(0, 8), mr.Advertise(0, 8)))
		}
		return client.reader() == readerKept
	}
	require.Eventually(t, kept, patience, time.Millisecond, "nobody arms between the Reads")
	client.becomes(readerArmed, "the waiter has not come back")
	require.NoError(t, server.qp.Send(testContext(t)), "the other side may send")
}
