package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
	"github.com/goiwarp/iwarp/transport"
)

// TestHOST_1_MPARequest: the MPA Request is that of Linux, except for bit C.
func TestHOST_1_MPARequest(t *testing.T) {
	for _, noCRC := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			l, err := transport.Listen(context.Background(), "pipe", "", transport.Options{})
			require.NoError(t, err)
			defer l.Close()
			want := goldenItem(t, 1, golden.MPARequest)
			got := make([]byte, len(want))
			var wg sync.WaitGroup
			wg.Go(func() {
				conn, err := l.Accept()
				if err == nil {
					_, _ = io.ReadFull(conn, got)
					l.Close() // there is no second attempt
					conn.Close()
				}
			})
			o := pipeOptions(t)
			o.QPConfig.MPA.NoCRC = noCRC
			_, err = Connect(context.Background(), l.Addr().String(), subsystem, o)
			require.Error(t, err)
			wg.Wait()
			if !noCRC {
				want = bytes.Clone(want)
				want[16] |= 0x40
			}
			require.Equal(t, want, got)
		})
	}
}

func TestHOST_1_IOQueue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Queues, o.QueueSize = 2, 32
		connect(t, tg, o)
		require.Equal(t, []capsule.Request{{QID: 0, HRQSize: 32, HSQSize: 31}, {QID: 1, HRQSize: 32, HSQSize: 31, CNTLID: 1}, {QID: 2, HRQSize: 32, HSQSize: 31, CNTLID: 1}}, tg.requests)
	})
}

// held holds back the commands of the I/O queues until release answers them.
type held struct {
	mu   sync.Mutex
	list []*call
}

func (h *held) hold(c *call) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
	return true
}

func (h *held) calls() []*call {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list
}

// TestHOST_2_OutstandingCommands: the responses to all commands come together, and each finds a receive at once.
func TestHOST_2_OutstandingCommands(t *testing.T) {
	for crqsize, outstanding := range map[uint16]int{2: 1, 8: 7, 128: 15, 0xffff: 15} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.QueueSize = 16
			tg.crqsize = func(r capsule.Request) uint16 {
				if r.QID == 0 {
					return 32
				}
				return crqsize
			}
			c := connect(t, tg, o)
			n := disk(t, c)
			var h held
			tg.script(only(capsule.OpFlush, h.hold))
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() { require.NoError(t, n.Flush(context.Background())) })
			}
			for done := 0; done < 40; {
				synctest.Wait()
				calls := h.calls()
				require.Len(t, calls, min(outstanding, 40-done))
				done += len(calls)
				for _, c := range calls {
					c.answer(0, capsule.Success)
				}
			}
			wg.Wait()
		})
	}
}

func TestHOST_2_NoRoomForCommands(t *testing.T) {
	for _, x := range [][2]uint16{{0, 1}, {0, 2}, {0, 3}, {1, 1}} {
		virtual(t, func(t *testing.T) {
			tg, qid := newTarget(t), x[0]
			tg.crqsize = func(r capsule.Request) uint16 {
				if r.QID == qid {
					return x[1]
				}
				return 32
			}
			_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
			require.ErrorIs(t, err, capsule.ErrMalformed)
			require.ErrorContains(t, err, fmt.Sprintf("queue %d", qid))
		})
	}
}

func TestHOST_3_Rejects(t *testing.T) {
	for s := range capsule.RejectStatus(11) {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.reject = func(capsule.Request) []byte {
				if s == 0 {
					return []byte{}
				}
				return s.Append(nil)
			}
			_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
			var reject capsule.RejectError
			require.ErrorAs(t, err, &reject)
			require.Equal(t, s, reject.Status)
			require.ErrorIs(t, err, iwarp.ErrRejected)
			require.ErrorContains(t, err, reject.Error())
		})
	}
}

func TestHOST_4_Connect(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		want := goldenItem(t, 1, golden.ReadResponse)
		d, status := capsule.ParseConnectData(want)
		require.True(t, status.OK())
		o.HostNQN, o.HostID, o.KATO = d.HostNQN, d.HostID, 2*time.Second
		c, err := Connect(context.Background(), tg.addr, d.SubNQN, o)
		require.NoError(t, err)
		require.Equal(t, d, tg.connects[0])
		d.CNTLID = 1
		require.Equal(t, d, tg.connects[1])

		// Except for CID and SGL, the commands are those of Linux, with another size of the I/O queue.
		sqe, _, err := capsule.ParseSQE(goldenItem(t, 1, "connect-admin"))
		require.NoError(t, err)
		got := tg.commands(capsule.OpFabrics)[0]
		require.Equal(t, capsule.ParseConnect(&sqe), capsule.ParseConnect(&got))
		got.CID, got.SGL = sqe.CID, sqe.SGL
		require.Equal(t, sqe, got)
		require.NoError(t, c.Close())
	})
}

func TestHOST_4_ConnectFails(t *testing.T) {
	for _, qid := range []uint16{0, 1} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.script(func(c *call) bool {
				if !c.IsConnect() || c.q.qid != qid {
					return false
				}
				c.answer(uint64(capsule.ParamSubNQN.DW0()), capsule.StatusConnectParameter)
				return true
			})
			_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
			var refused *capsule.ConnectError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, capsule.ParamSubNQN, refused.Parameter)
			require.ErrorContains(t, err, "SUBNQN")
		})
	}
}

// ccs are the values that the host has written to CC.
func (tg *target) ccs() (list []uint32) {
	for _, c := range tg.commands(capsule.OpFabrics) {
		if p := capsule.ParseProperty(&c); c.FCType() == capsule.FCPropertySet && p.Offset == capsule.PropCC {
			list = append(list, uint32(p.Value))
		}
	}
	return list
}

func TestHOST_5_Enable(t *testing.T) {
	for css, want := range map[uint8][]uint32{1 | capsule.CSSCSI: {0x460060, 0x460061, 0x464061}, 1: {0x460000, 0x460001, 0x464001}} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.cap.CSS = css
			polls := 0
			tg.script(func(c *call) bool {
				p := capsule.ParseProperty(&c.SQE)
				if c.FCType() != capsule.FCPropertyGet || c.Opcode != capsule.OpFabrics || p.Offset != capsule.PropCSTS {
					return false
				}
				polls++
				s := c.q.csts()
				s.RDY = s.RDY && polls > 20
				if s.SHST != 0 && polls < 40 {
					s.SHST = capsule.SHSTOccurring
				}
				c.answer(uint64(s.Value()), capsule.Success)
				return true
			})
			c := connect(t, tg, pipeOptions(t))
			require.Equal(t, 21, polls)
			require.NoError(t, c.Close())
			require.Equal(t, 40, polls)
			require.Equal(t, want, tg.ccs())
		})
	}
}

func TestHOST_5_NotReady(t *testing.T) {
	for _, fails := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.script(func(c *call) bool {
				if p := capsule.ParseProperty(&c.SQE); c.FCType() != capsule.FCPropertyGet || p.Offset != capsule.PropCSTS || c.Opcode != capsule.OpFabrics {
					return false
				}
				c.answer(uint64(capsule.CSTS{CFS: fails}.Value()), capsule.Success)
				return true
			})
			start := time.Now()
			_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
			if fails {
				require.ErrorIs(t, err, errFailed)
				return
			}
			require.ErrorIs(t, err, ErrTimeout)
			require.Equal(t, 7500*time.Millisecond, time.Since(start), "CAP.TO is 15")
		})
	}
}

func TestHOST_6_ControllerThatCannotBeUsed(t *testing.T) {
	for text, change := range map[string]func(id *capsule.IdentifyController){
		"CNTLID 77":  func(id *capsule.IdentifyController) { id.CNTLID = 77 },
		"keyed SGLs": func(id *capsule.IdentifyController) { id.SGLS &^= capsule.SGLSKeyed },
		"ICDOFF 1":   func(id *capsule.IdentifyController) { id.ICDOFF = 1 },
		"IOCCSZ 3":   func(id *capsule.IdentifyController) { id.IOCCSZ = 3 },
		"IORCSZ 0":   func(id *capsule.IdentifyController) { id.IORCSZ = 0 },
		"discovery":  func(id *capsule.IdentifyController) { id.CNTRLTYPE = capsule.ControllerDiscovery },
	} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			change(&tg.id)
			_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
			require.ErrorIs(t, err, capsule.ErrMalformed)
			require.ErrorContains(t, err, text)
		})
	}
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		tg.cap.MPSMIN = 1
		_, err := Connect(context.Background(), tg.addr, subsystem, pipeOptions(t))
		require.ErrorIs(t, err, capsule.ErrMalformed)
	})
}

func TestHOST_7_Queues(t *testing.T) {
	for _, c := range []struct{ wanted, granted, want int }{{1, 128, 1}, {4, 128, 4}, {4, 2, 2}, {2, 2, 2}} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			tg.granted, o.Queues = c.granted, c.wanted
			queues, _ := connect(t, tg, o).Queues()
			require.Equal(t, c.want, queues)
			require.Len(t, tg.live(), c.want+1)
			set := capsule.ParseSetFeatures(&tg.commands(capsule.OpSetFeatures)[0])
			require.Equal(t, capsule.SetFeatures{FID: capsule.FeatureQueues, Value: capsule.Queues(c.wanted).Value()}, set)
		})
	}
}

func TestHOST_7_QueueSize(t *testing.T) {
	for _, c := range []struct{ size, mqes, maxcmd, want int }{{128, 127, 128, 127}, {128, 31, 128, 31}, {128, 127, 64, 63}, {16, 127, 128, 15}, {128, 127, 0, 127}} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.QueueSize, tg.cap.MQES, tg.id.MAXCMD = c.size, uint16(c.mqes), uint16(c.maxcmd)
			_, commands := connect(t, tg, o).Queues()
			require.Equal(t, c.want, commands)
		})
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	for _, o := range []*Options{
		{HostNQN: "\x00"},
		{Queues: -1},
		{Queues: 65},
		{QueueSize: 1},
		{QueueSize: 1025},
		{MaxTransfer: 100},
		{MaxTransfer: 16 << 20},
		{IOTimeout: -1},
		{KATO: time.Hour},
		{QPConfig: iwarp.QPConfig{IRD: -1}},
		{QPConfig: iwarp.QPConfig{SRQ: new(iwarp.SRQ)}},
	} {
		_, err := Connect(context.Background(), "nowhere", subsystem, o)
		require.ErrorContains(t, err, "nvme: ")
		require.False(t, errors.Is(err, context.DeadlineExceeded))
	}
	_, err := Connect(context.Background(), "nowhere", subsystem, &Options{ReconnectDelay: -1})
	require.ErrorContains(t, err, "nvme: Options.ReconnectDelay is negative: -1ns")
	_, err = Connect(context.Background(), "nowhere", "", nil)
	require.Error(t, err)
	o, err := (*Options)(nil).withDefaults()
	require.NoError(t, err)
	require.NoError(t, capsule.CheckNQN(o.HostNQN))
	require.NotZero(t, binary.BigEndian.Uint64(o.HostID[:]))
	again, _ := (*Options)(nil).withDefaults()
	require.NotEqual(t, o.HostID, again.HostID)
}

// TestTemplate: it applies to each connection, and its Setup can end the set-up.
func TestTemplate(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		var seen []any
		refuse := error(nil)
		o.Queues, o.QPConfig.UserData = 2, "mine"
		o.QPConfig.Setup = func(_ context.Context, qp *iwarp.QP) error {
			seen = append(seen, qp.UserData())
			return refuse
		}
		require.NoError(t, connect(t, tg, o).Close())
		require.Equal(t, []any{"mine", "mine", "mine"}, seen)
		refuse = errors.New("not today")
		_, err := Connect(context.Background(), tg.addr, subsystem, o)
		require.ErrorIs(t, err, refuse)
	})
}
