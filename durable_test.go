package iwarp_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/stag"
)

// A badDisk is a buffer that fails as the test says.
type badDisk struct {
	mu           sync.Mutex
	octets       [8192]byte
	write, sync_ error
	syncs        int
}

func (d *badDisk) Size() int64 { return int64(len(d.octets)) }

func (d *badDisk) Atomic() bool { return true }

func (d *badDisk) ReadAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return copy(p, d.octets[off:]), nil
}

func (d *badDisk) WriteAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.write != nil {
		return 0, d.write
	}
	return copy(d.octets[off:], p), nil
}

func (d *badDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	return d.sync_
}

func (d *badDisk) fails(write, sync error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write, d.sync_ = write, sync
}

func (s *side) badDisk(o iwarp.MROptions) (*badDisk, *iwarp.MR) {
	d := new(badDisk)
	b, err := commit.NewBuffer(d)
	require.NoError(s, err)
	o.Durable = b
	mr, err := s.pd.RegisterBuffer(b, stag.LocalWrite|stag.Remote, &o)
	require.NoError(s, err)
	return d, mr
}

// endOfReceive returns how the next receive ends.
func (s *side) endOfReceive() iwarp.WC {
	wcs := make([]iwarp.WC, 1)
	_, err := s.qp.RecvCQ().Wait(testContext(s.T), wcs)
	require.NoError(s, err)
	return wcs[0]
}

func TestCMT_29_30_DiskThatFailsInAnyWay(t *testing.T) {
	for what, x := range map[string]struct {
		write, sync error
		is          error
	}{
		"a bad sector":                  {syscall.EIO, nil, commit.ErrDataLost},
		"a full disk":                   {syscall.ENOSPC, nil, commit.ErrDataLost},
		"one that has become read-only": {syscall.EROFS, nil, commit.ErrReadOnly},
		"one that cannot say why":       {errors.New("no"), nil, commit.ErrDataLost},
		"a sync that drops pages":       {nil, syscall.EIO, commit.ErrDataLost},
		"a sync of a full disk":         {nil, syscall.ENOSPC, commit.ErrDataLost},
		"a sync of a read-only disk":    {nil, syscall.EROFS, commit.ErrReadOnly},
		"a sync for want of memory":     {nil, syscall.ENOMEM, commit.ErrTransient},
	} {
		for _, through := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				client, server := committers(t)
				ctx := testContext(t)
				d, mr := server.badDisk(iwarp.MROptions{WriteThrough: through})
				src, local := client.register(8192, stag.LocalWrite, nil)
				copy(src, "first")
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 4096), local.Slice(0, 4096)))
				require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 4096)))

				d.fails(x.write, x.sync)
				copy(src, "second")
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(4096, 4096), local.Slice(0, 4096)))
				for range 2 {
					require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(4096, 8)), x.is, "as often as it is asked")
				}
				require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 4096)), "what was durable still is")
				follow := iwarp.FollowOn{At: mr.Advertise(0, 8)}
				require.Error(t, client.qp.CommitThen(ctx, follow, mr.Advertise(4096, 8)))
				require.NoError(t, client.qp.RDMARead(ctx, local.Slice(4096, 5), mr.Advertise(0, 5)), "the stream goes on")
				require.Equal(t, "first", string(src[4096:4101]), "and no follow-on was stored")

				d.fails(nil, nil)
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(4096, 4096), local.Slice(0, 4096)))
				require.NoError(t, client.qp.Commit(ctx, mr.Advertise(4096, 4096)), "once it is written again it is durable")
				require.Equal(t, "second", string(d.octets[4096:4102]))
			})
		}
	}
}

// TestCMT_30_FlusherThatReportsAFailureOnce: a Flusher of the user's own fails once and then
// succeeds, as the sync of a file does that has dropped its pages. Whichever
// operation has reported the failure, no Commit of those octets succeeds until they are written again.
func TestCMT_30_FlusherThatReportsAFailureOnce(t *testing.T) {
	for what, o := range map[string]iwarp.MROptions{
		"Commit":       {},
		"WriteThrough": {WriteThrough: true},
		"Integrity":    {WriteThrough: true, Integrity: func(int64, int64) error { return nil }},
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			ctx := testContext(t)
			var m medium
			o.Durable = &m
			_, mr := server.register(64, stag.LocalWrite|stag.Remote, &o)
			src, local := client.register(64, stag.LocalWrite, nil)
			copy(src, "first")
			write := func(off int) {
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(off, 8), local.Slice(0, 8)))
			}
			write(0)
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)))
			m.fails(syscall.EIO)
			write(8)
			if o.WriteThrough {
				require.NoError(t, client.qp.RDMARead(ctx, local.Slice(32, 8), mr.Advertise(8, 8)), "the Write was placed, and the failure was not reported")
			} else {
				require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(8, 8)), commit.ErrDataLost)
			}
			m.fails(nil)
			for range 2 {
				require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(8, 8)), commit.ErrDataLost)
			}
			follow := iwarp.FollowOn{At: mr.Advertise(16, 8), Value: [8]byte{1}}
			require.ErrorIs(t, client.qp.CommitThen(ctx, follow, mr.Advertise(8, 8)), commit.ErrDataLost)
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), "what was durable still is")
			write(8)
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(8, 8)), "once it is written again it is durable")
			_, err := client.qp.FetchAdd(ctx, mr.Advertise(24, 8), 1)
			require.NoError(t, err)
			m.fails(syscall.EIO)
			require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(24, 8)), commit.ErrDataLost)
			m.fails(nil)
			_, err = client.qp.FetchAdd(ctx, mr.Advertise(24, 8), 1)
			require.NoError(t, err)
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(24, 8)), "by any operation")
		})
	}
}

// TestCMT_30_WindowOfAFlusherThatReportsAFailureOnce: what is lost, and written again, through a window is
// so in its region.
func TestCMT_30_WindowOfAFlusherThatReportsAFailureOnce(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	var m medium
	_, mr := server.register(64, stag.LocalWrite|stag.Remote|stag.MWBind, &iwarp.MROptions{Durable: &m})
	_, local := client.register(64, stag.LocalWrite, nil)
	mw, err := server.pd.AllocMW()
	require.NoError(t, err)
	require.NoError(t, server.qp.PostSend(iwarp.SendWR{Op: iwarp.OpBind, MW: mw, Access: stag.RemoteWrite, Local: []iwarp.SGE{mr.Slice(16, 16)}}))
	wcs := make([]iwarp.WC, 1)
	one(t, server.qp.SendCQ(), wcs)
	require.NoError(t, wcs[0].Err())
	window := iwarp.RemoteBuffer{STag: mw.STag(), Len: 8}
	m.fails(syscall.EIO)
	require.ErrorIs(t, client.qp.Commit(ctx, window), commit.ErrDataLost)
	m.fails(nil)
	require.ErrorIs(t, client.qp.Commit(ctx, window), commit.ErrDataLost)
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(16, 1)), commit.ErrDataLost)
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 16)))
	require.NoError(t, client.qp.RDMAWrite(ctx, window, local.Slice(0, 8)))
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(16, 8)))
}

// TestCMT_30_OnlyCommitsTellOfAFailedWrite: a response to another operation
// must not imply that octets were written that were not.
func TestCMT_30_OnlyCommitsTellOfAFailedWrite(t *testing.T) {
	t.Run("a Send into the disk", func(t *testing.T) {
		client, server := committers(t)
		d, mr := server.badDisk(iwarp.MROptions{})
		d.fails(syscall.EIO, nil)
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, 8)}}))
		_, local := client.register(8, stag.LocalWrite, nil)
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{local.Slice(0, 8)}}))
		require.NotEqual(t, iwarp.StatusSuccess, server.endOfReceive().Status)
	})
	t.Run("an RDMA Read into the disk", func(t *testing.T) {
		client, server := committers(t)
		d, mr := server.badDisk(iwarp.MROptions{})
		d.fails(syscall.EIO, nil)
		_, source := client.register(8, stag.LocalWrite|stag.RemoteRead, nil)
		require.Error(t, server.qp.RDMARead(testContext(t), mr.Slice(0, 8), source.Advertise(0, 8)))
	})
	t.Run("an atomic operation", func(t *testing.T) {
		client, server := committers(t)
		d, mr := server.badDisk(iwarp.MROptions{})
		d.fails(syscall.EIO, nil)
		_, err := client.qp.FetchAdd(testContext(t), mr.Advertise(0, 8), 1)
		require.Error(t, err)
	})
	t.Run("a receive after it", func(t *testing.T) {
		client, server := committers(t)
		d, mr := server.badDisk(iwarp.MROptions{DurableOnReceive: true})
		d.fails(syscall.EIO, nil)
		_, local := client.register(8, stag.LocalWrite, nil)
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
		require.NoError(t, client.qp.RDMAWrite(testContext(t), mr.Advertise(0, 8), local.Slice(0, 8)))
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}))
		require.NotEqual(t, iwarp.StatusSuccess, server.endOfReceive().Status)
	})
}

// TestCMT_55_InvalidatedRegionIsDurableOnReceive: the message that invalidates a region, and one after
// that, completes when what was written to the region before is durable.
func TestCMT_55_InvalidatedRegionIsDurableOnReceive(t *testing.T) {
	for what, invalidate := range map[string]func(client *side, mr *iwarp.MR) iwarp.SendWR{
		"by the message": func(_ *side, mr *iwarp.MR) iwarp.SendWR {
			return iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: mr.STag()}
		},
		"before it": func(client *side, mr *iwarp.MR) iwarp.SendWR {
			require.NoError(client, mr.Invalidate(testContext(client.T)))
			return iwarp.SendWR{Op: iwarp.OpSend}
		},
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			ctx := testContext(t)
			var m medium
			_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, DurableOnReceive: true, QP: server.qp})
			_, local := client.register(64, stag.LocalWrite, nil)
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
			require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
			require.NoError(t, client.qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "the Write is placed")
			require.Empty(t, m.ranges())
			_, err := client.qp.Do(ctx, invalidate(client, mr))
			require.NoError(t, err)
			require.Equal(t, iwarp.StatusSuccess, server.endOfReceive().Status)
			require.Equal(t, []commit.Range{{Len: 64}}, m.ranges())
			require.NoError(t, mr.Close())
		})
	}
}

// TestReceiveBehindTheCloseOfARegion: its Flusher may be gone by then, and is not called.
func TestReceiveBehindTheCloseOfARegion(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	var m medium
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, DurableOnReceive: true})
	_, local := client.register(64, stag.LocalWrite, nil)
	require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
	require.NoError(t, client.qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "the Write is placed")
	require.NoError(t, mr.Close())
	_, err := client.qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend})
	require.NoError(t, err)
	require.Equal(t, iwarp.StatusSuccess, server.endOfReceive().Status)
	require.Empty(t, m.ranges())
}

// TestCMT_55_NothingCompletesBehindAFailedFlush: not even a message that was placed before its turn, which would complete
// the receive of the message that has failed.
func TestCMT_55_NothingCompletesBehindAFailedFlush(t *testing.T) {
	for seed := range uint64(8) {
		bubble(t, func(t *testing.T) {
			client, server := newSide(t, nil), newSide(t, nil)
			a, b := recordpipe.New(recordpipe.Options{Seed: seed, Window: 8})
			client.qp, server.qp = iwarp.ConnectOver(t, a, b, client.rnic, &iwarp.QPConfig{PD: client.pd}, server.rnic, &iwarp.QPConfig{PD: server.pd})
			f := new(failingOnce)
			server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: f, DurableOnReceive: true})
			_, to := server.register(64, stag.LocalWrite, nil)
			_, from := client.register(64, 0, nil)
			var sends []iwarp.SendWR
			for i := range 8 {
				require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{to.Slice(8*i, 8)}}))
				sends = append(sends, iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{from.Slice(0, i)}})
			}
			require.NoError(t, client.qp.PostSend(sends...))
			for i := range uint64(8) {
				wc := server.endOfReceive()
				require.Equal(t, i, wc.ID)
				require.NotEqual(t, iwarp.StatusSuccess, wc.Status)
			}
			<-server.qp.Done()
			require.ErrorContains(t, server.qp.Err(), "durable on receive")
			require.Equal(t, 1, f.flushes)
		})
	}
}

// failingOnce is a Flusher that fails once, and loses nothing.
type failingOnce struct{ flushes int }

func (f *failingOnce) Flush(context.Context, int64, int64) error {
	if f.flushes++; f.flushes == 1 {
		return errors.New("not now")
	}
	return nil
}

// TestCMT_30_GroupOfABuffer: a Write that the Buffer could not take is told by the next Commit, though
// the Group's sync succeeds.
func TestCMT_30_GroupOfABuffer(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	d := new(badDisk)
	g, err := commit.NewGroup(d.Size(), d.Sync)
	require.NoError(t, err)
	mr, err := server.pd.RegisterBuffer(d, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: g})
	require.NoError(t, err)
	_, local := client.register(8, stag.LocalWrite, nil)
	write := func() { require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8))) }
	d.fails(syscall.ENOSPC, nil)
	write()
	for range 2 {
		require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), commit.ErrDataLost)
	}
	d.fails(nil, nil)
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(8, 8)))
	write()
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)))
}

// A mirror is a backing whose octets are durable when they are at another place, too.
type mirror struct {
	*commit.Buffer
	mu   sync.Mutex
	fail error
}

func (m *mirror) Flush(ctx context.Context, off, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	return m.Buffer.Flush(ctx, off, n)
}

func (m *mirror) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// TestCMT_13_BackingInAFlusherOfTheUsers: a Commit calls Flush of the user's Flusher, not of the backing in it.
func TestCMT_13_BackingInAFlusherOfTheUsers(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	d := new(badDisk)
	b, err := commit.NewBuffer(d)
	require.NoError(t, err)
	m := &mirror{Buffer: b}
	mr, err := server.pd.RegisterBuffer(m, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: m})
	require.NoError(t, err)
	_, local := client.register(8, stag.LocalWrite, nil)
	write := func() { require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8))) }
	write()
	m.fails(syscall.EIO)
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), commit.ErrDataLost)
	m.fails(nil)
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), commit.ErrDataLost, "until it is written again")
	write()
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)))
	require.Equal(t, 1, d.syncs)
}
