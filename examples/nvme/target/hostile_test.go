package target

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// attacks returns the number of attacks, of some twenty messages each. A program that looks for faults sets the variable
// to more.
func attacks(t *testing.T) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("IWARP_NVME_HOSTILE"), "250"))
	require.NoError(t, err)
	if raceorder.Enabled {
		n /= 8
	}
	return n
}

const (
	honest  = "nqn.2026-11.org.example:honest"
	private = "nqn.2026-11.org.example:private" // the honest host's subsystem
)

// An attacker is a host that may use one subsystem, and sends whatever it likes.
type attacker struct {
	*host
	w    *world
	rng  *rand.Rand
	trap stag.STag // a region of the target
	mem  []byte    // registered in the middle
	mr   *iwarp.MR // for the target to write
	ro   *iwarp.MR // for it to read
	got  map[capsule.Status]int
}

// TestNVME_90_HostileHost: whatever a host sends, it gets NVMe statuses, or its queues end. Another host reads what it
// has written.
func TestNVME_90_HostileHost(t *testing.T) {
	virtual(t, func(t *testing.T) {
		limits := Limits{QueueMemory: 2 << 20, Memory: 4 << 20, Workers: 1}
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxMR: 600, MaxCQ: 16, MaxQP: 16}})
		require.NoError(t, err)
		b, err := backend.NewMemory(backend.MemoryConfig{Size: 4 << 20, BlockSize: lba})
		require.NoError(t, err)
		w := newWorld(t, "pipe", &Config{RNIC: rnic, Limits: limits}, b)
		t.Cleanup(func() {
			require.NoError(t, w.target.Close())
			require.NoError(t, rnic.Close())
		})
		go func() {
			for e := range rnic.Events() {
				w.target.Event(e)
			}
		}()
		canary := pattern(lba, 7)
		region, err := w.target.pd.RegisterMR(canary, stag.LocalWrite, nil)
		require.NoError(t, err)
		stop := w.honest(t)
		before, got := w.remains(t), make(map[capsule.Status]int)
		for seed := range uint64(attacks(t)) {
			w.attack(t, rand.New(rand.NewPCG(seed, 18)), region.STag(), got)
			require.Equal(t, before, w.remains(t), "seed %d", seed)
			require.Equal(t, pattern(lba, 7), canary, "seed %d", seed)
		}
		stop()
		require.Greater(t, len(got), 5, "the attacks come far: %v", got)
		require.Positive(t, got[capsule.Success])
		require.LessOrEqual(t, w.target.Stats().MostMemory, int64(limits.Memory))
		require.NoError(t, region.Close())
	})
}

// honest has another host write and read its own namespace, until stop is called.
func (w *world) honest(t *testing.T) (stop func()) {
	other := memoryOf(t, diskSize)
	require.NoError(t, w.target.AddSubsystem(Subsystem{NQN: private, Hosts: []string{honest}}))
	require.NoError(t, w.target.AddNamespace(private, Namespace{NSID: 1, Backend: other}))
	o := &nvme.Options{Network: "pipe", HostNQN: honest, HostID: [16]byte{9}, Queues: 2, Retries: -1, CtrlLoss: -1}
	c, err := nvme.Connect(context.Background(), w.addr, private, o)
	require.NoError(t, err)
	list, err := c.Namespaces(context.Background())
	require.NoError(t, err)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		got := make([]byte, 16*lba)
		for i := 0; ; i++ {
			began := time.Now()
			want, at := pattern(lba<<(i%5), byte(i)), int64(i%100*16*lba)
			if _, err := list[0].WriteAt(want, at); err != nil {
				t.Errorf("write %d of the honest host: %v", i, err)
			}
			if _, err := list[0].ReadAt(got[:len(want)], at); err != nil || !bytes.Equal(got[:len(want)], want) {
				t.Errorf("read %d of the honest host: %v", i, err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("the honest host has waited for %v", took)
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		require.NoError(t, c.Close())
	}
}

// attack runs one attack, after which nothing of the attacker remains.
func (w *world) attack(t *testing.T, rng *rand.Rand, trap stag.STag, got map[capsule.Status]int) {
	a := &attacker{host: newHost(t, w.addr), w: w, rng: rng, trap: trap, mem: pattern(48<<10, 1), got: got}
	register := func(from, to int, access stag.Access) *iwarp.MR {
		mr, err := a.pd.RegisterMR(a.mem[from<<10:to<<10], access, nil)
		require.NoError(t, err)
		return mr
	}
	a.mr, a.ro = register(8, 24, stag.LocalWrite|stag.RemoteWrite), register(32, 40, stag.RemoteRead)
	switch k := a.rng.IntN(40); {
	case k == 0:
		a.stall()
	case k < 3:
		a.noConnect()
	case k < 7:
		a.octets()
	case k < 12:
		a.regions()
	case k < 16:
		a.flood()
	default:
		a.capsules()
	}
	want := pattern(48<<10, 1)
	copy(want[8<<10:24<<10], a.mem[8<<10:])
	require.Equal(t, want, a.mem, "the target has written what it may not")
	require.NoError(t, a.rnic.Close())
	time.Sleep(time.Second)
	synctest.Wait()
}
