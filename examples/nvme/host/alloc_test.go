package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// A fast is a target that answers I/O commands without an allocation. AllocsPerRun then counts only the host's
// allocations, and the library's for the region.
type fast struct {
	q    *targetQueue
	wrs  [2]iwarp.SendWR
	cqe  [capsule.CQESize]byte
	send [1]iwarp.SGE
	done [1]iwarp.WC
}

func (f *fast) answer(c *call) {
	cqe := capsule.CQE{SQHD: uint16(f.q.sqhd.Add(1)), SQID: f.q.qid, CID: c.CID}
	cqe.Put(f.cqe[:])
	wrs := f.wrs[:0]
	response := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: f.cqe[:]}
	if c.data.Kind == capsule.DataKeyed {
		response.Op, response.Invalidate = iwarp.OpSendInvalidate, stag.STag(c.data.STag)
		f.send[0] = f.q.dataMR.Slice(0, int(c.data.Length))
		if c.Opcode == capsule.OpWrite {
			f.wrs[0] = iwarp.SendWR{Op: iwarp.OpRDMARead, Local: f.send[:], Remote: c.remote()}
			_ = f.q.qp.PostSend(f.wrs[0])
			_, _ = f.q.qp.SendCQ().Wait(context.Background(), f.done[:])
		} else {
			wrs = append(wrs, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: f.send[:], Remote: c.remote()})
		}
	}
	_ = f.q.qp.PostSend(append(wrs, response)...)
}

// run takes the place of targetQueue.run.
func (f *fast) run() {
	wcs := make([]iwarp.WC, 8)
	for {
		n, err := f.q.cq.Wait(context.Background(), wcs)
		for i := range wcs[:n] {
			if wcs[i].Status != iwarp.StatusSuccess {
				return
			}
			id := int(wcs[i].ID)
			sqe, behind, _ := capsule.ParseSQE(f.q.mem[id*f.q.tg.size:][:wcs[i].Len])
			data, _ := sqe.Data(behind)
			c := call{SQE: sqe, q: f.q, data: data}
			recv := [1]iwarp.SGE{f.q.mr.Slice(id*f.q.tg.size, f.q.tg.size)}
			_ = f.q.qp.PostRecv(iwarp.RecvWR{ID: uint64(id), Local: recv[:]})
			f.answer(&c)
		}
		if err != nil {
			return
		}
	}
}

func TestCommandsDoNotAllocate(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	tg := newTarget(t)
	c := connect(t, tg, pipeOptions(t))
	n := disk(t, c)
	// The first I/O command makes the queue of the target fast: its goroutine goes on in fast.run.
	tg.script(func(c *call) bool {
		if c.q.qid == 0 {
			return false
		}
		f := &fast{q: c.q}
		f.answer(c)
		f.run()
		return true
	})
	ctx := context.Background()
	require.NoError(t, n.Flush(ctx))
	small, large := pattern(4096, 1), pattern(64<<10, 2)
	for _, x := range []struct {
		name   string
		f      func() error
		allocs float64
	}{
		{"Flush", func() error { return n.Flush(ctx) }, 0},
		{"Write in the capsule", func() error { _, err := n.WriteAt(small, 0); return err }, 0},
		{"WriteZeroes", func() error { return n.WriteZeroes(ctx, 0, 4096, false) }, 0},
		{"Trim", func() error { return n.Trim(ctx, Range{0, 4096}, Range{8192, 4096}) }, 0},
		{"Compare in the capsule", func() error { _, err := n.Compare(ctx, small, 0); return err }, 0},
		{"Read", func() error { _, err := n.ReadAt(small, 0); return err }, 1},
		{"large Read", func() error { _, err := n.ReadAt(large, 0); return err }, 1},
		{"large Write", func() error { _, err := n.WriteAt(large, 0); return err }, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			run := func() {
				if err := x.f(); err != nil {
					t.Fatal(err)
				}
			}
			for range 300 {
				run()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(500, run), x.allocs)
		})
	}
}
