package rma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestRMA_34_RotationFailsThatRegionAlone: operations fail with AUTH, and no connection ends.
func TestRMA_34_RotationFailsThatRegionAlone(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newPair(t, p)
				_, err := w.server.Register(2, NewMemory(make([]byte, 64)), nil)
				require.NoError(t, err)
				w.serve()
				w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
				require.NoError(t, err)
				h, portal := w.opens(), w.portal(2)
				other, err := w.client.Open(w.context(), 2, MayRead)
				require.NoError(t, err)
				read := func(h *Handle) error {
					return does(t, portal, Command{Op: Read, Handle: h, Buf: make([]byte, 16)}).Err
				}
				for range 3 {
					require.NoError(t, read(h))
					_, err = w.region.Rekey(t.Context(), nil, 0)
					require.NoError(t, err)
					begun := time.Now()
					err = read(h)
					require.ErrorIs(t, err, ErrRemoteAuth)
					require.Zero(t, time.Since(begun), "at once")
					var e *OpError
					require.ErrorAs(t, err, &e)
					require.Equal(t, StaleEpoch, e.Reason)
					require.NoError(t, read(other))
					require.NoError(t, h.Reopen(w.context()))
				}
				require.NoError(t, read(h))

				// With a grace, the old key is valid until the grace ends.
				_, err = w.region.Rekey(t.Context(), nil, time.Second)
				require.NoError(t, err)
				time.Sleep(time.Second - time.Nanosecond)
				require.NoError(t, read(h))
				time.Sleep(time.Nanosecond)
				require.ErrorIs(t, read(h), ErrRemoteAuth)
				require.NoError(t, w.client.Close())
				require.NoError(t, <-w.served)
			})
		})
	}
}

// TestRekeyBehindTheEndOfAContext: it revokes the keys, because it does not block.
func TestRekeyBehindTheEndOfAContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, portal := w.opens(), w.portal(1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		epoch, err := w.region.Rekey(ctx, nil, 0)
		require.NoError(t, err)
		require.Equal(t, epoch, w.region.Epoch())
		require.ErrorIs(t, does(t, portal, Command{Op: Read, Handle: h, Buf: make([]byte, 16)}).Err, ErrRemoteAuth)
	})
}

// TestRMA_34_ClientsWithOldKeysDoNotGuess: their operations fail, however many epochs they are behind, and also if the region
// is closed; their connection survives.
func TestRMA_34_ClientsWithOldKeysDoNotGuess(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p.server.MaxFailures = 10
				w := start(t, p)
				h, portal := w.opens(), w.portal(64)
				refused := func(reason uint16) {
					_, err := portal.PostAll(slices.Repeat([]Command{{Op: Read, Handle: h}}, 64), nil)
					require.NoError(t, err)
					for range 64 {
						var e *OpError
						require.ErrorAs(t, portal.ended(t).Err, &e)
						require.Equal(t, []uint16{uint16(RemoteAuth), reason}, []uint16{uint16(e.Outcome), e.Reason})
					}
				}
				for behind := range 4 {
					for range 1 + behind {
						_, err := w.region.Rekey(t.Context(), nil, 0)
						require.NoError(t, err)
					}
					refused(StaleEpoch)
					require.NoError(t, h.Reopen(w.context()))
					require.NoError(t, does(t, portal, Command{Op: Read, Handle: h}).Err)
				}
				other, err := w.client.Open(w.context(), regionID, MayWrite)
				require.NoError(t, err)
				_, err = w.region.Rekey(t.Context(), nil, 0)
				require.NoError(t, err)
				require.NoError(t, other.Reopen(w.context()))
				require.NoError(t, does(t, portal, Command{Op: Write, Handle: other}).Err)
				refused(StaleEpoch)
				require.NoError(t, w.region.Close())
				refused(BadKey)
				_, err = w.server.Register(regionID, w.mem, nil)
				require.NoError(t, err)
				refused(BadKey)
				require.NoError(t, h.Reopen(w.context()))
				require.NoError(t, does(t, portal, Command{Op: Read, Handle: h}).Err)
			})
		})
	}
}

// TestRMA_42_OpenedRegionsThatAreGone: they are forgotten once a connection has opened more regions than there can be.
func TestRMA_42_OpenedRegionsThatAreGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{server: ServerConfig{MaxRegions: 3}})
		w.opens()
		for id := range uint64(10) {
			r, err := w.server.Register(id, w.mem, nil)
			require.NoError(t, err)
			_, err = w.client.Open(w.context(), id, MayRead)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}
		c := w.servedConn()
		c.mu.Lock()
		defer c.mu.Unlock()
		require.LessOrEqual(t, len(c.opened), 3)
		require.Contains(t, c.opened, regionID)
	})
}

// TestRMA_33_RekeyByAClient: it needs the right for it, and says which epoch follows.
func TestRMA_33_RekeyByAClient(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := start(t, p)
				h := w.opens()
				late := w.opens()
				require.NoError(t, h.Rekey(w.context(), nil, 0))
				require.Equal(t, regionkey.Epoch(2), w.region.Epoch())
				require.ErrorIs(t, h.Rekey(w.context(), nil, 0), ErrRemoteAuth, "its own key is old too")
				require.NoError(t, h.Reopen(w.context()))
				secret := bytes.Repeat([]byte{7}, 32)
				require.NoError(t, h.Rekey(w.context(), secret, time.Second))
				require.Equal(t, regionkey.Epoch(3), w.region.Epoch())
				require.ErrorIs(t, h.Rekey(w.context(), nil, 0), ErrConflict, "in the grace the key is good, and the epoch is not next")
				require.ErrorIs(t, late.Rekey(w.context(), nil, 0), ErrRemoteAuth)

				reader, err := w.client.Open(w.context(), regionID, MayRead)
				require.NoError(t, err)
				require.ErrorIs(t, reader.Rekey(w.context(), nil, 0), errNotOpen)
				require.Error(t, h.Rekey(w.context(), []byte("short"), 0))
				require.Error(t, h.Rekey(w.context(), nil, -1))
			})
		})
	}
}

// TestRMA_33_GraceIsThatOfTheRegionAtMost: a client that requests more gets the longest grace, and the server itself is
// refused more.
func TestRMA_33_GraceIsThatOfTheRegionAtMost(t *testing.T) {
	for most, opt := range map[time.Duration]*RegionOptions{
		time.Minute:     {Ops: allOps},
		2 * time.Second: {Ops: allOps, MaxGrace: 2 * time.Second},
	} {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			r, err := w.server.Register(2, NewMemory(make([]byte, 64)), opt)
			require.NoError(t, err)
			h, err := w.client.Open(w.context(), 2, allOps)
			require.NoError(t, err)
			p := w.portal(1)
			read := func() error { return does(t, p, Command{Op: Read, Handle: h}).Err }
			require.NoError(t, h.Rekey(w.context(), nil, time.Hour))
			require.Equal(t, regionkey.Epoch(2), r.Epoch())
			time.Sleep(most - time.Nanosecond)
			require.NoError(t, read(), "the old key within the longest grace")
			time.Sleep(time.Nanosecond)
			require.ErrorIs(t, read(), ErrRemoteAuth)

			_, err = r.Rekey(w.context(), nil, most+1)
			require.ErrorContains(t, err, "grace")
			require.Equal(t, regionkey.Epoch(2), r.Epoch())
			_, err = r.Rekey(w.context(), nil, most)
			require.NoError(t, err)
		})
	}
}

// TestRMA_40_CloseWaitsForOperations: afterwards nothing accesses the Buffer, and later operations
// fail like those on an unknown region.
func TestRMA_40_CloseWaitsForOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p := w.opens(), w.portal(1)
		stuck := w.stall()
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		stuck.wait()
		closed := make(chan error, 1)
		go func() { closed <- w.region.Close() }()
		synctest.Wait()
		require.Empty(t, closed, "the operation is in the Buffer")
		stuck.release()
		require.NoError(t, <-closed)
		w.mem.View(func(b []byte) { require.Equal(t, octets(1, 16), b[:16]) })
		require.NoError(t, p.ended(t).Err)

		end := does(t, p, Command{Op: Write, Handle: h, Buf: octets(9, 16)})
		var e *OpError
		require.ErrorAs(t, end.Err, &e)
		require.Equal(t, []any{RemoteAuth, BadKey}, []any{e.Outcome, e.Reason})
		_, err := w.client.Open(w.context(), regionID, MayRead)
		require.ErrorIs(t, err, ErrRemoteAuth)
		_, err = w.region.Rekey(w.context(), nil, 0)
		require.ErrorIs(t, err, errNoRegion)
		require.NoError(t, w.region.Close())

		// Another region with the same ID and secret, in the same epoch, is another region.
		_, err = w.server.Register(regionID, w.mem, &RegionOptions{Key: []byte("another secret of the same ID !!!")})
		require.NoError(t, err)
		require.ErrorIs(t, does(t, p, Command{Op: Write, Handle: h, Buf: octets(9, 16)}).Err, ErrRemoteAuth)
		w.mem.View(func(b []byte) { require.Equal(t, octets(1, 16), b[:16]) })
	})
}

// TestRMA_40_AnotherRegionOfTheNumber: it must be opened again, even if there are no keys that show the difference.
func TestRMA_40_AnotherRegionOfTheNumber(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				closed := false
				p.server.Authorize = func(_ iwarp.Peer, _ uint64, ops Ops) Ops {
					if closed {
						return 0
					}
					return ops
				}
				w := start(t, p)
				h, portal := w.opens(), w.portal(1)
				require.NoError(t, does(t, portal, Command{Op: Write, Handle: h, Buf: octets(1, 16)}).Err)
				require.NoError(t, w.region.Close())
				closed = true
				other := NewMemory(octets(7, 64))
				_, err := w.server.Register(regionID, other, nil)
				require.NoError(t, err)
				for _, what := range []Op{Read, Write} {
					err := does(t, portal, Command{Op: what, Handle: h, Buf: make([]byte, 16)}).Err
					require.ErrorIs(t, err, ErrRemoteAuth, "%v", what)
				}
				other.View(func(b []byte) { require.Equal(t, octets(7, 64), b) })
			})
		})
	}
}

// TestRMA_34_37_EpochThatWasNotOpened: a client without keys that moves to the next epoch by itself has
// not been authorized for it. During a grace it may use what it has opened before.
func TestRMA_34_37_EpochThatWasNotOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		_, tag := r.sink(16)
		read := func(id op.ID, e regionkey.Epoch) {
			r.reads(id, wire.ReadReq{Region: regionID, Epoch: e, Length: 0, SinkSTag: uint32(tag), TTL: time.Second}, nil)
		}
		_, err := w.region.Rekey(t.Context(), nil, time.Second)
		require.NoError(t, err)
		read(2, 2)
		r.wantStatus(op.RemoteAuth, op.BadKey)
		_, tag = r.sink(16)
		read(3, 1)
		r.receives(wire.TypeReadDone)
		r.opens(4, regionID, wire.OpRead)
		for id, e := range []regionkey.Epoch{1, 2} {
			_, tag = r.sink(16)
			read(op.ID(5+id), e)
			r.receives(wire.TypeReadDone)
		}
		time.Sleep(time.Second)
		_, tag = r.sink(16)
		read(7, 1)
		require.EqualValues(t, 2, r.wantStatus(op.RemoteAuth, op.StaleEpoch).Epoch)
		r.ends(w)
	})
}

// faulty is a Buffer whose methods fail.
type faulty struct{ *Memory }

var errBroken = errors.New("the disk is broken")

func (faulty) ReadAt([]byte, int64) (int, error)  { return 0, errBroken }
func (faulty) WriteAt([]byte, int64) (int, error) { return 0, errBroken }

// TestRMA_27_FailingBuffer: only the operation fails, and the client does not learn the text of the error.
func TestRMA_27_FailingBuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{})
		_, err := w.server.Register(2, faulty{NewMemory(make([]byte, 64))}, nil)
		require.NoError(t, err)
		w.serve()
		w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
		require.NoError(t, err)
		h, err := w.client.Open(w.context(), 2, MayRead|MayWrite)
		require.NoError(t, err)
		p := w.portal(1)
		for _, what := range []Op{Read, Write} {
			end := does(t, p, Command{Op: what, Handle: h, Buf: make([]byte, 16)})
			require.ErrorIs(t, end.Err, ErrRemote)
			require.NotContains(t, end.Err.Error(), "disk")
		}
		require.NoError(t, w.client.Close())
		require.NoError(t, <-w.served)
	})
}

// TestRMA_41_46_AuditLog: it holds what was granted and refused, with identity, region, epoch and rights,
// a bounded number of records per second, and no secret.
func TestRMA_41_46_AuditLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		w := start(t, plan{server: ServerConfig{Logger: log, Authorize: func(_ iwarp.Peer, region uint64, ops Ops) Ops {
			if region == regionID {
				return ops
			}
			return 0
		}}})
		_, err := w.server.Register(2, NewMemory(nil), nil)
		require.NoError(t, err)
		h := w.opens()
		_, err = w.client.Open(w.context(), 2, MayRead)
		require.ErrorIs(t, err, ErrRemoteAuth)
		require.NoError(t, h.Rekey(w.context(), nil, 0))
		_, err = w.region.Rekey(w.context(), nil, 0)
		require.NoError(t, err)
		peer, known := w.qps[1].Peer()
		require.True(t, known)
		type record struct {
			peer    [32]byte
			op      Op
			region  uint64
			epoch   regionkey.Epoch
			ops     Ops
			granted bool
		}
		var got []record
		for _, e := range w.server.AuditLog() {
			got = append(got, record{e.Peer.ID, e.Op, e.Region, e.Epoch, e.Ops, e.Granted})
			require.Equal(t, e.Known, e.Remote != nil)
		}
		require.Equal(t, []record{
			{peer.ID, Open, regionID, 1, allOps, true},
			{peer.ID, Open, 2, 0, 0, false},
			{peer.ID, Rekey, regionID, 2, 0, true},
			{[32]byte{}, Rekey, regionID, 3, 0, true},
		}, got)

		p := w.portal(1)
		for range 50 {
			require.Error(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 1)}).Err)
		}
		events, lost := w.server.audit.counts()
		require.EqualValues(t, 54, events)
		require.EqualValues(t, 54-auditRate-1, lost, "of each peer so many have a record")
		time.Sleep(time.Second)
		require.Error(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 1)}).Err)
		all := w.server.AuditLog()
		require.EqualValues(t, lost, all[len(all)-1].Suppressed)
		require.Contains(t, text.String(), "level=INFO")
		require.Contains(t, text.String(), "level=WARN")
		require.NotContains(t, text.String(), string(testKey))
		require.NotContains(t, fmt.Sprintf("%+v", all), string(testKey))
	})
}

// TestRMA_41_RefusedOpensHaveOneRecord: whatever the reason.
func TestRMA_41_RefusedOpensHaveOneRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		_, err := w.server.Register(2, NewMemory(nil), &RegionOptions{Ops: MayRead})
		require.NoError(t, err)
		for i, region := range []uint64{2, 3} { // one without that right, and one that does not exist
			_, err := w.client.Open(w.context(), region, MayManage)
			require.ErrorIs(t, err, ErrRemoteAuth)
			log := w.server.AuditLog()
			require.Len(t, log, i+1)
			require.Equal(t, []any{Open, region, "open refused"}, []any{log[i].Op, log[i].Region, log[i].Reason})
		}
	})
}

// TestRMA_42_AuditIsBounded: whatever peers there are.
func TestRMA_42_AuditIsBounded(t *testing.T) {
	l := newAudit(nil)
	now := time.Unix(1, 0)
	for i := range 3 * auditedPeers {
		e := AuditEvent{Time: now}
		e.Peer.ID[0], e.Peer.ID[1] = byte(i), byte(i>>8)
		l.keep(byPeer(&e.Peer), &e)
	}
	require.Len(t, l.list(), keptEvents)
	require.Equal(t, auditedPeers, l.peers.Len())
	require.EqualValues(t, 3*auditedPeers, l.list()[keptEvents-1].ID)
}

// TestPeersDoNotSuppressOwnRekeys: peers that are not authenticated do not suppress records of the server's own Rekeys.
func TestPeersDoNotSuppressOwnRekeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, suites()["suite 0"])
		for range 2 * auditRate {
			_, err := w.client.Open(w.context(), 2, MayRead)
			require.ErrorIs(t, err, ErrRemoteAuth)
		}
		log := w.server.AuditLog()
		require.Len(t, log, auditRate)
		epoch, err := w.region.Rekey(w.context(), nil, 0)
		require.NoError(t, err)
		log = w.server.AuditLog()[len(log):]
		require.Len(t, log, 1)
		require.Equal(t, []any{Rekey, epoch, uint64(0)}, []any{log[0].Op, log[0].Epoch, log[0].Suppressed})
	})
}

// TestServerRegister: what it refuses.
func TestServerRegister(t *testing.T) {
	_, pd := rnictest.Open(t, nil)
	s := NewServer(&ServerConfig{PD: pd, MaxRegions: 2})
	register := func(id uint64, b iwarp.Buffer, o *RegionOptions) error {
		_, err := s.Register(id, b, o)
		return err
	}
	m := NewMemory(make([]byte, 8))
	require.NoError(t, register(1, m, nil))
	require.ErrorContains(t, register(1, m, nil), "already")
	require.Error(t, register(2, nil, nil))
	require.Error(t, register(2, m, &RegionOptions{Key: []byte("short")}))
	require.Error(t, register(2, m, &RegionOptions{Ops: 8}))
	require.Error(t, register(2, m, &RegionOptions{MaxGrace: -1}))
	require.NoError(t, register(2, m, nil))
	require.ErrorContains(t, register(3, m, nil), "limit")
	require.Equal(t, 2, s.Stats().Regions)
}

// TestRMA_34_OpenDuringRotation: all keys that are granted belong to the reported epoch, whenever the region gets
// another key.
func TestRMA_34_OpenDuringRotation(t *testing.T) {
	w := start(t, plan{network: "tcp"})
	ctx, cancel := context.WithCancel(w.context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = w.region.Rekey(ctx, nil, 0)
			}
		})
	}
	failed := 0
	for range 50 {
		if _, err := w.client.Open(w.context(), regionID, allOps); err != nil {
			failed++
		}
	}
	cancel()
	all.Wait()
	require.Zero(t, failed)
}
