package host

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

var (
	_ io.ReaderAt = (*Namespace)(nil)
	_ io.WriterAt = (*Namespace)(nil)
)

func TestHOST_15_LargeIO(t *testing.T) {
	const size = 64<<10*3 + 4096
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		tg.id.MDTS = 4 // 64 KiB
		n := disk(t, connect(t, tg, pipeOptions(t)))
		w, r := pattern(size, 1), make([]byte, size)
		got, err := n.WriteAt(w, 4096)
		require.NoError(t, err)
		require.Equal(t, size, got)
		got, err = n.ReadAt(r, 4096)
		require.NoError(t, err)
		require.Equal(t, size, got)
		require.Equal(t, w, r)
		for _, op := range []capsule.Opcode{capsule.OpWrite, capsule.OpRead} {
			slba := uint64(1)
			for _, c := range tg.commands(op) {
				m := capsule.ParseRW(&c)
				require.Equal(t, slba, m.SLBA)
				require.LessOrEqual(t, m.Blocks(), uint64(16))
				slba += m.Blocks()
			}
			require.Equal(t, uint64(1+size/4096), slba)
			require.Len(t, tg.commands(op), 4)
		}
		// The third piece fails.
		tg.script(func(c *call) bool {
			if c.q.qid == 0 || capsule.ParseRW(&c.SQE).SLBA != 32 {
				return false
			}
			c.answer(0, capsule.StatusLBAOutOfRange)
			return true
		})
		got, err = n.WriteAt(w, 0)
		require.Equal(t, 2*64<<10, got)
		require.ErrorIs(t, err, capsule.StatusError{Status: capsule.StatusLBAOutOfRange})
		got, err = n.ReadAt(r, 0)
		require.Equal(t, 2*64<<10, got)
		require.ErrorIs(t, err, capsule.StatusError{Status: capsule.StatusLBAOutOfRange})
	})
}

func TestHOST_15_Limits(t *testing.T) {
	for _, c := range []struct {
		mdts   uint8
		option int
		want   uint64
	}{{0, 0, 1 << 20}, {9, 0, 1 << 20}, {5, 0, 128 << 10}, {0, 2 << 20, 2 << 20}, {8, 4096, 4096}, {8, 10000, 8192}} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			tg.id.MDTS, o.MaxTransfer = c.mdts, c.option
			n := disk(t, connect(t, tg, o))
			_, err := n.ReadAt(make([]byte, 2<<20), 0)
			require.NoError(t, err)
			sqe := tg.commands(capsule.OpRead)[0]
			require.Equal(t, c.want, uint64(sqe.SGL.Length()))
		})
	}
}

func TestHOST_15_Ranges(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ctx := context.Background()
		n := disk(t, connect(t, newTarget(t), pipeOptions(t)))
		size := n.Size()
		p := make([]byte, 8192)
		for _, x := range []struct {
			off  int64
			n    int
			want error
			got  int
		}{
			{size - 4096, 8192, io.EOF, 4096},
			{size, 4096, io.EOF, 0},
			{size, 0, nil, 0},
			{1 << 62, 4096, io.EOF, 0},
			{0, 0, nil, 0},
			{-4096, 4096, ErrOutOfRange, 0},
			{1, 4096, ErrUnaligned, 0},
			{0, 100, ErrUnaligned, 0},
		} {
			got, err := n.ReadAt(p[:x.n], x.off)
			require.Equal(t, x.got, got, "%+v", x)
			require.ErrorIs(t, err, x.want, "%+v", x)
		}
		for _, x := range []struct {
			off, n int64
			want   error
		}{
			{size - 4096, 4096, nil},
			{size - 4096, 8192, ErrOutOfRange},
			{size, 4096, ErrOutOfRange},
			{-4096, 4096, ErrOutOfRange},
			{1<<63 - 4096, 8192, ErrOutOfRange},
			{0, 4095, ErrUnaligned},
			{511, 4096, ErrUnaligned},
		} {
			_, err := n.WriteAt(p[:x.n], x.off)
			require.ErrorIs(t, err, x.want, "%+v", x)
			require.ErrorIs(t, n.WriteZeroes(ctx, x.off, x.n, false), x.want, "%+v", x)
			require.ErrorIs(t, n.Trim(ctx, Range{0, 4096}, Range{x.off, x.n}), x.want, "%+v", x)
		}
		require.ErrorIs(t, n.WriteZeroes(ctx, 0, -4096, false), ErrOutOfRange)
		require.ErrorIs(t, n.WriteZeroes(ctx, 4096, 1<<63-4096, false), ErrOutOfRange)
	})
}

func TestHOST_20_Retries(t *testing.T) {
	for _, x := range []struct {
		status  capsule.Status
		fails   int // so many times
		retries int
		sent    int
		ok      bool
	}{
		{capsule.StatusBusy, 3, 0, 4, true},
		{capsule.StatusBusy, 5, 0, 6, true},
		{capsule.StatusBusy, 6, 0, 6, false},
		{capsule.StatusInternalError, 100, 0, 6, false},
		{capsule.StatusInternalError, 100, 2, 3, false},
		{capsule.StatusBusy, 1, -1, 1, false},
		{capsule.StatusBusy.WithDNR(), 1, 0, 1, false},
		{capsule.StatusLBAOutOfRange, 1, 0, 1, false},
		{capsule.StatusLBAOutOfRange.WithoutDNR(), 1, 0, 2, true},
	} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.Retries = x.retries
			n := disk(t, connect(t, tg, o))
			fails := x.fails
			tg.script(only(capsule.OpWrite, func(c *call) bool {
				if fails--; fails < 0 {
					return false
				}
				c.answer(0, x.status)
				return true
			}))
			_, err := n.WriteAt(pattern(4096, 1), 0)
			require.Len(t, tg.commands(capsule.OpWrite), x.sent)
			if x.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, capsule.StatusError{Status: x.status})
		})
	}
}

// TestHOST_20_LostResponses: after a lost response, commands on fixed LBAs are sent again, but Compare is not.
func TestHOST_20_LostResponses(t *testing.T) {
	for op, f := range map[capsule.Opcode]func(n *Namespace) error{
		capsule.OpRead:    func(n *Namespace) error { _, err := n.ReadAt(make([]byte, 4096), 0); return err },
		capsule.OpWrite:   func(n *Namespace) error { _, err := n.WriteAt(make([]byte, 4096), 0); return err },
		capsule.OpFlush:   func(n *Namespace) error { return n.Flush(context.Background()) },
		capsule.OpCompare: func(n *Namespace) error { _, err := n.Compare(context.Background(), make([]byte, 4096), 0); return err },
	} {
		for _, losses := range []int{1, 5, 6} {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				n := disk(t, connect(t, tg, pipeOptions(t)))
				left := losses
				tg.script(only(op, func(c *call) bool {
					if left--; left < 0 {
						return false
					}
					c.q.qp.Abort()
					return true
				}))
				err := f(n)
				if op == capsule.OpCompare || losses > 5 {
					require.ErrorIs(t, err, ErrLost)
				} else {
					require.NoError(t, err)
				}
				want := min(losses+1, 6)
				if op == capsule.OpCompare {
					want = 1
				}
				require.Len(t, tg.commands(op), want)
			})
		}
	}
}

// TestHOST_20_LostWhilePrepared: a command whose memory is being prepared when the connections end is lost like all
// others, and may be sent again. The objects it needs are closed by then.
func TestHOST_20_LostWhilePrepared(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		q := c.assoc.io[0]
		s := <-q.free // its region is made for the first command
		tg.lose()
		event(t, c, EventDisconnected)
		synctest.Wait()
		read := capsule.RW{Opcode: capsule.OpRead, NSID: n.nsid}
		wrs, err := q.prepare(s, &command{sqe: read.SQE(0, capsule.SGL{}), data: make([]byte, 4096)})
		require.Error(t, err)
		var lost *LostError
		require.ErrorAs(t, q.enter(s, wrs, err), &lost)
		require.False(t, lost.Sent)
	})
}

func TestHOST_24_Commands(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ctx := context.Background()
		tg := newTarget(t)
		n := disk(t, connect(t, tg, pipeOptions(t)))
		require.NoError(t, n.Flush(ctx))
		equalGolden(t, tg, "flush")
		require.NoError(t, n.WriteZeroes(ctx, 8*4096, 8*4096, false))
		equalGolden(t, tg, "write-zeroes-slba8-n8")
		require.NoError(t, n.WriteZeroes(ctx, 4096, 4096, true))
		zeroes := tg.last(capsule.OpWriteZeroes)
		require.Equal(t, capsule.RW{Opcode: capsule.OpWriteZeroes, NSID: 1, SLBA: 1, DEAC: true}, capsule.ParseRW(&zeroes))
		_, err := n.WriteFUA(ctx, pattern(4096, 2), 4096)
		require.NoError(t, err)
		sqe := tg.last(capsule.OpWrite)
		require.Equal(t, capsule.RW{Opcode: capsule.OpWrite, NSID: 1, SLBA: 1, FUA: true}, capsule.ParseRW(&sqe))
		_, err = n.Compare(ctx, pattern(4096, 2), 4096)
		require.NoError(t, err)
		got, err := n.Compare(ctx, pattern(4096, 3), 4096)
		require.Zero(t, got)
		require.ErrorIs(t, err, capsule.StatusError{Status: capsule.StatusCompareFailure})
	})
}

// TestHOST_24_WriteZeroesLimit: WZSL, if the target has one, limits Write Zeroes as MDTS limits other commands.
func TestHOST_24_WriteZeroesLimit(t *testing.T) {
	for wzsl, blocks := range map[uint8][]uint16{0: {255, 43}, 3: {7, 7, 7}, 31: {255, 43}, 255: {255, 43}} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.script(func(c *call) bool {
				if c.q.qid > 0 || c.Opcode != capsule.OpIdentify || capsule.ParseIdentify(&c.SQE).CNS != capsule.CNSCommandSet {
					return false
				}
				page := make([]byte, capsule.PageSize)
				capsule.IdentifyNVM{WZSL: wzsl}.Put(page)
				_ = c.put(0, page)
				c.answer(0, capsule.Success)
				return true
			})
			n := disk(t, connect(t, tg, pipeOptions(t)))
			size := int64(24)
			if wzsl != 3 {
				size = 300
			}
			require.NoError(t, n.WriteZeroes(context.Background(), 0, size*4096, false))
			var got []uint16
			for _, sqe := range tg.commands(capsule.OpWriteZeroes) {
				got = append(got, capsule.ParseRW(&sqe).NLB)
			}
			require.Equal(t, blocks, got, "WZSL %d", wzsl)
		})
	}
}

func TestHOST_24_WriteZeroesIsCut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		n := disk(t, connect(t, tg, pipeOptions(t)))
		require.NoError(t, n.WriteZeroes(context.Background(), 4096, 5<<19, false))
		var cut []capsule.RW
		for _, c := range tg.commands(capsule.OpWriteZeroes) {
			cut = append(cut, capsule.ParseRW(&c))
		}
		z := func(slba uint64, blocks uint16) capsule.RW {
			return capsule.RW{Opcode: capsule.OpWriteZeroes, NSID: 1, SLBA: slba, NLB: blocks - 1}
		}
		require.Equal(t, []capsule.RW{z(1, 256), z(257, 256), z(513, 128)}, cut)
	})
}

func TestHOST_24_Trim(t *testing.T) {
	for _, x := range []struct {
		limits capsule.IdentifyNVM
		list   []Range
		want   [][]capsule.DSMRange
	}{
		{capsule.IdentifyNVM{}, []Range{{4096, 8192}, {0, 0}, {1 << 20, 1 << 25}}, [][]capsule.DSMRange{{{SLBA: 1, NLB: 2}, {SLBA: 256, NLB: 8192}}}},
		{capsule.IdentifyNVM{DMRSL: 3}, []Range{{0, 7 * 4096}}, [][]capsule.DSMRange{{{SLBA: 0, NLB: 3}, {SLBA: 3, NLB: 3}, {SLBA: 6, NLB: 1}}}},
		{capsule.IdentifyNVM{DMRSL: 3, DMRL: 2}, []Range{{0, 7 * 4096}}, [][]capsule.DSMRange{{{SLBA: 0, NLB: 3}, {SLBA: 3, NLB: 3}}, {{SLBA: 6, NLB: 1}}}},
		{capsule.IdentifyNVM{DMSL: 5, DMRSL: 2}, []Range{{0, 5 * 4096}}, [][]capsule.DSMRange{{{SLBA: 0, NLB: 2}, {SLBA: 2, NLB: 2}}, {{SLBA: 4, NLB: 1}}}},
		{capsule.IdentifyNVM{DMSL: 5}, []Range{{0, 6 * 4096}}, [][]capsule.DSMRange{{{SLBA: 0, NLB: 5}}, {{SLBA: 5, NLB: 1}}}},
		{capsule.IdentifyNVM{}, nil, nil},
		{capsule.IdentifyNVM{}, []Range{{4096, 0}}, nil},
	} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			var got [][]capsule.DSMRange
			tg.script(func(c *call) bool {
				switch m := capsule.ParseDSM(&c.SQE); {
				case c.q.qid == 0 && c.Opcode == capsule.OpIdentify && capsule.ParseIdentify(&c.SQE).CNS == capsule.CNSCommandSet:
					page := make([]byte, capsule.PageSize)
					x.limits.Put(page)
					_ = c.put(0, page)
				case c.q.qid > 0 && c.Opcode == capsule.OpDSM:
					require.Equal(t, capsule.DSM{NSID: 1, NR: m.NR, AD: true}, m)
					var list []capsule.DSMRange
					for i := range m.Ranges() {
						list = append(list, capsule.ParseDSMRange(c.data.Octets, i))
					}
					require.Len(t, c.data.Octets, 16*len(list))
					got = append(got, list)
				default:
					return false
				}
				c.answer(0, capsule.Success)
				return true
			})
			n := disk(t, connect(t, tg, pipeOptions(t)))
			require.NoError(t, n.Trim(context.Background(), x.list...))
			require.Equal(t, x.want, got)
		})
	}
}

// TestConcurrentIO: calls of many goroutines use all queues.
func TestConcurrentIO(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Queues, o.QueueSize = 3, 8
		n := disk(t, connect(t, tg, o))
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				w, r := pattern(12288, byte(i)), make([]byte, 12288)
				for range 10 {
					_, err := n.WriteAt(w[:4096*(1+i%3)], int64(i)*12288)
					require.NoError(t, err)
					_, err = n.ReadAt(r, int64(i)*12288)
					require.NoError(t, err)
					require.Equal(t, w[:4096*(1+i%3)], r[:4096*(1+i%3)])
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
	})
}
