package target

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/raceorder"
)

// attach connects the host of this project to the target, until the test ends.
func (w *world) attach(o nvme.Options) (*nvme.Controller, *nvme.Namespace) {
	w.t.Helper()
	o.Network, o.HostNQN, o.HostID = network(w.addr), hostNQN, hostID
	c, err := nvme.Connect(context.Background(), w.addr, storage, &o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	list, err := c.Namespaces(context.Background())
	require.NoError(w.t, err)
	require.Len(w.t, list, 1)
	return c, list[0]
}

// exercise uses everything that a namespace supports.
func exercise(t *testing.T, n *nvme.Namespace) {
	ctx := context.Background()
	p, got := pattern(3<<20, 9), make([]byte, 3<<20)
	_, err := n.WriteAt(p, 1<<20)
	require.NoError(t, err)
	_, err = n.ReadAt(got, 1<<20)
	require.NoError(t, err)
	require.Equal(t, p, got)
	_, err = n.WriteFUA(ctx, p[:lba], 0)
	require.NoError(t, err)
	_, err = n.Compare(ctx, p[:lba], 0)
	require.NoError(t, err)
	_, err = n.Compare(ctx, p[lba:2*lba], 0)
	require.ErrorIs(t, err, capsule.StatusError{Status: capsule.StatusCompareFailure})
	_, err = n.Compare(ctx, p[:1<<20], 1<<20)
	require.NoError(t, err)
	require.NoError(t, n.WriteZeroes(ctx, 1<<20, lba, true))
	require.NoError(t, n.Trim(ctx, nvme.Range{Off: 2 << 20, Size: 1 << 20}, nvme.Range{Off: 3<<20 + lba, Size: lba}))
	clear(p[:lba])
	clear(p[1<<20:][:1<<20])
	clear(p[2<<20+lba:][:lba])
	_, err = n.ReadAt(got, 1<<20)
	require.NoError(t, err)
	require.Equal(t, p, got)
	require.NoError(t, n.Flush(ctx))
	_, err = n.ReadAt(got, n.Size()-lba)
	require.ErrorIs(t, err, io.EOF)
}

func TestHOST_25_OurHostAgainstOurTarget(t *testing.T) {
	fake := func() backend.Backend {
		b := fakeOf(t)
		return b
	}
	for name, c := range map[string]struct {
		cfg Config
		o   nvme.Options
		b   func() backend.Backend
	}{
		"as usual":            {},
		"a volatile back end": {b: fake},
		"nothing in capsules": {cfg: Config{InCapsule: -1}},
		"four queues":         {o: nvme.Options{Queues: 4, QueueSize: 16}},
		"an SRQ":              {cfg: Config{SRQ: 200}, o: nvme.Options{Queues: 2, QueueSize: 32}},
		"one Read at a time":  {cfg: Config{ORD: 1}},
		"little memory":       {cfg: Config{Limits: Limits{QueueMemory: 1 << 20, Memory: 1 << 20}}, o: nvme.Options{Queues: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				var b backend.Backend
				if c.b != nil {
					b = c.b()
				}
				ctl, n := newWorld(t, "pipe", &c.cfg, b).attach(c.o)
				exercise(t, n)
				require.NoError(t, ctl.Reset(context.Background()))
				exercise(t, n)
				time.Sleep(time.Minute) // Keep Alive
				require.NoError(t, ctl.Err())
				require.NoError(t, ctl.Close())
			})
		})
	}
}

func TestHOST_25_DiscoveryAndChanges(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		list, err := nvme.Discover(context.Background(), w.addr, &nvme.Options{Network: "pipe"})
		require.NoError(t, err)
		require.Len(t, list, 2)
		c, n := w.attach(nvme.Options{})
		large := memoryOf(t, 2*diskSize)
		require.Error(t, w.target.Resize(storage, 1, nil))
		require.NoError(t, w.target.Resize(storage, 1, large))
		for e := range c.Events() {
			if e.Kind == nvme.EventNamespaces {
				break
			}
		}
		require.EqualValues(t, 2*diskSize, n.Size())
		_, err = n.WriteAt(pattern(lba, 1), diskSize)
		require.NoError(t, err)
		require.NoError(t, w.b.Close(), "nothing uses the old one")
		w.b = large
		exercise(t, n)
		require.NoError(t, w.target.RemoveNamespace(storage, 1))
		require.ErrorIs(t, w.target.RemoveNamespace(storage, 1), ErrNotFound)
		require.ErrorIs(t, w.target.Resize(storage, 1, large), ErrNotFound)
		for n.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	})
}

// TestNVME_62_BlocksAreNotTorn: writers and readers use the same LBA. Each write has one value throughout.
func TestNVME_62_BlocksAreNotTorn(t *testing.T) {
	w := newWorld(t, "tcp", nil, nil)
	var lost atomic.Int32
	ended := time.Now().Add(300 * time.Millisecond)
	c, n := w.attach(nvme.Options{Queues: 4})
	all(16, func(i int) {
		p := make([]byte, 4*lba)
		for k := 0; time.Now().Before(ended); k++ {
			if i%2 == 0 {
				for j := range p {
					p[j] = byte(i*31 + k)
				}
				if _, err := n.WriteAt(p[:lba<<(i/2%3)], 0); err != nil {
					lost.Add(1)
				}
				continue
			}
			if _, err := n.ReadAt(p[:lba<<(i/2%3)], 0); err != nil {
				lost.Add(1)
			}
			for j := range p {
				if p[j] != p[j&^(lba-1)] {
					t.Errorf("octet %d is torn", j)
					return
				}
			}
		}
	})
	require.Zero(t, lost.Load())
	require.NoError(t, c.Err())
}

func TestNVME_63_WritesAreVisibleEverywhere(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		a, b := newHost(t, w.addr), newHost(t, w.addr)
		b.nqn += "2"
		s := []*session{a.connect(2), a.connect(1), b.connect(1)}
		lines := []*line{s[0].io[0], s[0].io[1], s[1].io[0], s[2].io[0]}
		got := make([]byte, lba)
		for i, from := range lines {
			p := pattern(lba, byte(i))
			require.Equal(t, capsule.Success, from.writeInside(5, p).Status)
			for _, to := range lines {
				require.Equal(t, capsule.Success, to.read(5, got).Status)
				require.Equal(t, p, got)
			}
		}
	})
}

func TestNVME_23_NothingInCapsules(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{InCapsule: -1}, nil)
		s := newHost(t, w.addr).connect(1)
		page := make([]byte, 4096)
		s.admin.ok(capsule.Identify{CNS: capsule.CNSController}.SQE(0, s.admin.writable(page)))
		id, err := capsule.ParseIdentifyController(page)
		require.NoError(t, err)
		require.EqualValues(t, 4, id.IOCCSZ)
		require.Zero(t, id.SGLS&(1<<20))
		trim := capsule.DSM{NSID: 1, NR: 0, AD: true}.SQE(0, capsule.InCapsuleSGL(0, capsule.DSMRangeSize))
		require.Equal(t, capsule.StatusInvalidSGLOffset, s.io[0].do(trim, make([]byte, capsule.DSMRangeSize)...).Status)
		require.Equal(t, capsule.Success, s.io[0].write(0, pattern(lba, 1)).Status)
	})
}

// TestNVME_94_NothingIsAllocatedForACommand: over TCP, with a host that itself allocates nothing.
func TestNVME_94_NothingIsAllocatedForACommand(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	w := newWorld(t, "tcp", nil, nil)
	q := newHost(t, w.addr).connect(1).io[0]
	p := pattern(lba, 1)
	out := q.readable(p)
	for what, c := range map[string]struct {
		sqe  capsule.SQE
		tail []byte
	}{
		"a write in the capsule": {rw(capsule.OpWrite, 1, 1, capsule.InCapsuleSGL(0, lba)), p},
		"a keyed write":          {rw(capsule.OpWrite, 2, 1, kept(out)), nil},
		"a read":                 {rw(capsule.OpRead, 1, 1, kept(q.writable(make([]byte, lba)))), nil},
		"a flush":                {capsule.FlushSQE(0, 1), nil},
	} {
		c.sqe.CID = 0x1234
		msg := append(c.sqe.Append(nil), c.tail...)
		mr, err := q.h.pd.RegisterMR(msg, 0, nil)
		require.NoError(t, err)
		wr := []iwarp.SendWR{{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, len(msg))}}}
		recv := []iwarp.RecvWR{{Local: []iwarp.SGE{q.recv.Slice(0, responseSize)}}}
		one := func() {
			if err := q.qp.PostSend(wr...); err != nil {
				t.Fatal(err)
			}
			n, err := q.cq.Wait(context.Background(), q.wcs[:])
			if n != 1 || err != nil || q.wcs[0].Status != iwarp.StatusSuccess || q.mem[q.wcs[0].ID*responseSize+14] != 0 {
				t.Fatal(what, n, err, q.wcs[0].Status)
			}
			recv[0].ID = q.wcs[0].ID
			recv[0].Local[0].Off = int(q.wcs[0].ID) * responseSize
			if err := q.qp.PostRecv(recv...); err != nil {
				t.Fatal(err)
			}
		}
		for range 300 {
			one()
		}
		require.Zero(t, testing.AllocsPerRun(2000, one), what)
	}
}

// kept returns an SGL without the request to invalidate its STag.
func kept(s capsule.SGL) capsule.SGL {
	return capsule.KeyedSGL(s.Key(), s.Address(), s.Length(), false)
}

// TestReset: the host does not connect and repeat its commands before the back end has finished them. Otherwise another
// Write could come first and be undone.
func TestReset(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", nil, b)
		c, n := w.attach(nvme.Options{Retries: -1})
		errs, reset := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := n.WriteAt(pattern(lba, 1), lba)
			errs <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		time.AfterFunc(3*time.Second, func() { close(open) })
		go func() { reset <- c.Reset(context.Background()) }()
		require.ErrorIs(t, <-errs, nvme.ErrReset)
		require.NoError(t, <-reset)
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		require.NoError(t, n.Flush(context.Background()))
	})
}
