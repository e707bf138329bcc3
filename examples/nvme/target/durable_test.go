package target

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// cacheOff switches the volatile write caches off.
func (s *session) cacheOff() {
	s.t.Helper()
	s.admin.ok(capsule.SetFeatures{FID: capsule.FeatureVWC}.SQE(0, capsule.NullSGL()))
}

// afterCrash returns block 1 after a power cut.
func (w *world) afterCrash(seed uint64) []byte {
	w.t.Helper()
	after, err := w.b.(*backend.Fake).Crash(seed, false)
	require.NoError(w.t, err)
	w.b = after
	got := make([]byte, lba)
	require.NoError(w.t, after.ReadAt(context.Background(), got, lba))
	return got
}

// TestNVME_51_CacheOff: commands answered after the cache was switched off are durable, even those that came before, and
// trims.
func TestNVME_51_CacheOff(t *testing.T) {
	old, p, zeros := pattern(lba, 1), pattern(lba, 2), make([]byte, lba)
	list := capsule.DSMRange{SLBA: 1, NLB: 1}.Append(nil)
	inside := capsule.InCapsuleSGL(0, lba)
	trim := capsule.DSM{NSID: 1, AD: true}.SQE(0, capsule.InCapsuleSGL(0, uint32(len(list))))
	for name, c := range map[string]struct {
		sqe    capsule.SQE
		behind []byte
		before bool // the command comes before the cache is off
		want   []byte
	}{
		"write":                     {rw(capsule.OpWrite, 1, 1, inside), p, false, p},
		"write that is under way":   {rw(capsule.OpWrite, 1, 1, inside), p, true, p},
		"zeroes":                    {rw(capsule.OpWriteZeroes, 1, 1, capsule.NullSGL()), nil, false, zeros},
		"zeroes that are under way": {rw(capsule.OpWriteZeroes, 1, 1, capsule.NullSGL()), nil, true, zeros},
		"trim":                      {trim, list, false, zeros},
		"trim that is under way":    {trim, list, true, zeros},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				virtual(t, func(t *testing.T) {
					b := fakeOf(t)
					w := newWorld(t, "pipe", nil, b)
					s := newHost(t, w.addr).connect(1)
					q := s.io[0]
					require.Equal(t, capsule.Success, q.writeInside(1, old).Status)
					q.ok(capsule.FlushSQE(0, 1))
					if !c.before {
						s.cacheOff()
					}
					open := make(chan struct{})
					b.Inject(backend.Fault{Off: lba, Len: lba, Wait: open})
					cid := q.send(c.sqe, c.behind...)
					synctest.Wait() // the back end has begun
					if c.before {
						s.cacheOff()
					}
					close(open)
					require.Equal(t, capsule.Success, q.wait(cid).Status)
					require.Equal(t, c.want, w.afterCrash(seed))
				})
			}
		})
	}
}

// TestNVME_66_TheFirstCache: a host that was told that there is no cache sends no Flush. What it writes to a namespace
// with a cache, which appears later, is durable all the same.
func TestNVME_66_TheFirstCache(t *testing.T) {
	for seed := range uint64(4) {
		virtual(t, func(t *testing.T) {
			b := fakeOf(t)
			w := newWorld(t, "pipe", nil, nil)
			s := newHost(t, w.addr).connect(1)
			page := make([]byte, capsule.PageSize)
			s.admin.ok(capsule.Identify{CNS: capsule.CNSController}.SQE(0, s.admin.writable(page)))
			id, err := capsule.ParseIdentifyController(page)
			require.NoError(t, err)
			require.Zero(t, id.VWC)
			require.NoError(t, w.target.Resize(storage, 1, b))
			require.NoError(t, w.b.Close())
			w.b = b
			require.Equal(t, capsule.Success, s.io[0].writeInside(1, pattern(lba, 1)).Status)
			require.Equal(t, pattern(lba, 1), w.afterCrash(seed))
		})
	}
}

// A leaving back end is replaced and closed just before its Flush.
type leaving struct {
	backend.Backend
	replace func()
}

func (b *leaving) Flush(ctx context.Context) error {
	b.replace()
	if err := b.Close(); err != nil {
		return err
	}
	return b.Backend.Flush(ctx)
}

// TestNVME_68_FlushOfAReplacedBackEnd: the back end that has replaced it is flushed, both for a host and at the end of a
// controller.
func TestNVME_68_FlushOfAReplacedBackEnd(t *testing.T) {
	for name, shutdown := range map[string]bool{"Flush": false, "shutdown": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				var disks [2]*backend.Fake
				for i := range disks {
					disks[i] = fakeOf(t)
				}
				b := &leaving{Backend: disks[0]}
				w := newWorld(t, "pipe", nil, b)
				b.replace = func() {
					w.b = disks[1]
					require.NoError(t, w.target.Resize(storage, 1, disks[1]))
				}
				s := newHost(t, w.addr).connect(1)
				if !shutdown {
					s.io[0].ok(capsule.FlushSQE(0, 1))
					return
				}
				s.admin.ok(capsule.SetProperty(capsule.PropCC, 0x00464001).SQE(0))
				synctest.Wait()
				csts := s.admin.ok(capsule.GetProperty(capsule.PropCSTS).SQE(0))
				require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, capsule.ParseCSTS(uint32(csts.Value())))
			})
		})
	}
}
