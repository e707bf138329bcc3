package model

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

// A hostile reads a script of hosts and an engine from octets: each step is one octet that selects an act, and the
// octets that the act needs.
type hostile struct {
	*world
	lines []*line
	rest  []byte
}

func newHostile(t *testing.T) *hostile {
	w := newWorld(t)
	w.add(namespace(1))
	w.add(namespace(3))
	admin := w.ready()
	disc := w.admin(hostB, idB, capsule.DiscoveryNQN)
	disc.enable()
	h := &hostile{world: w, lines: []*line{admin, admin.io(1), admin.io(2), disc, w.arrive(hostA, idA, 0, 2), w.arrive(hostA, idA, 3, 2)}}
	for _, do := range []Do{DoFetch, DoFill, DoExecute, DoFlush, DoClose} {
		w.hold[do] = true
	}
	return h
}

// take reads n octets, zeros behind the end.
func (h *hostile) take(n int) []byte {
	b := make([]byte, n)
	h.rest = h.rest[copy(b, h.rest):]
	return b
}

// run plays the script.
func (h *hostile) run(script []byte) {
	h.rest = script
	for len(h.rest) > 0 {
		b := h.take(1)[0]
		l := h.lines[int(b>>4)%len(h.lines)]
		switch b & 15 {
		default:
			h.message(l, capsule.SQESize)
		case 10:
			h.message(l, capsule.SQESize+int(h.take(1)[0]))
		case 11, 12, 13:
			h.engine(b>>7 == 1)
		case 14:
			h.now += time.Duration(h.take(1)[0]) * time.Second
			h.tick(0)
		case 15:
			h.configure(b >> 4)
		}
		h.check()
	}
}

// message sends a possible command, unless the connection has ended.
func (h *hostile) message(l *line, n int) {
	msg := h.take(n)
	if l.gone {
		return
	}
	c, _, err := capsule.ParseSQE(msg)
	if err == nil {
		l.open[c.CID]++
	}
	h.do(l.q.Command(h.now, msg, nil))
}

// engine continues the oldest action, or ends it in another way.
func (h *hostile) engine(fails bool) {
	if len(h.held) == 0 {
		return
	}
	a := h.goOn()
	switch {
	case a.Do == DoClose:
		if l := h.world.lines[a.Queue]; !l.gone {
			l.lose()
		}
	case a.Do == DoFlush:
		for _, more := h.target.Flush(a.Controller); more; _, more = h.target.Flush(a.Controller) {
			h.target.Flushed(a.Controller, h.result(fails))
		}
	case fails && a.Do != DoExecute:
		h.do(a.Queue.Finish(a.Ref, capsule.StatusBusy, nil))
	case a.Do == DoExecute:
		if a.Queue.Begin(a.Ref) {
			h.inRange(&a.Op)
			h.do(a.Queue.Finish(a.Ref, h.result(fails), nil))
		}
	default:
		h.act(a)
	}
}

func (h *hostile) result(fails bool) capsule.Status {
	if fails {
		return capsule.StatusWriteFault
	}
	return capsule.Success
}

// inRange checks that an operation is within its namespace.
func (h *hostile) inRange(o *Op) {
	check := func(off, n uint64) {
		size := o.Namespace.Geometry.Blocks << o.Namespace.Geometry.LBADS
		require.LessOrEqual(h.t, off, size)
		require.LessOrEqual(h.t, n, size-off)
	}
	switch o.Kind {
	case OpFlush:
		require.NotEmpty(h.t, o.Namespaces)
	case OpTrim:
		for i := range o.Ranges {
			check(o.Range(i))
		}
	default:
		check(o.Offset, o.Length)
	}
	if o.Kind == OpWrite || o.Kind == OpCompare {
		require.Len(h.t, o.Octets, int(o.Length))
	}
}

// configure changes namespaces and hosts.
func (h *hostile) configure(what byte) {
	switch what {
	case 0, 1:
		cfg := namespace(2)
		_, out, err := h.target.AddNamespace(storage, cfg, nil)
		if err != nil {
			out, err = h.target.RemoveNamespace(storage, 2, out)
		}
		h.must(out, err)
	case 2:
		smaller := namespace(1)
		smaller.Geometry.Blocks = 10
		_, out, err := h.target.ReplaceNamespace(storage, smaller, nil)
		h.must(out, err)
	case 3:
		h.must(h.target.SetHosts(storage, []string{hostA}, nil))
	}
}

// check checks the budget of each queue.
func (h *hostile) check() {
	for _, l := range h.lines {
		require.LessOrEqual(h.t, l.q.slots.used, l.q.depth)
		require.Len(h.t, l.q.slots.all, l.q.depth)
	}
	for _, a := range h.held {
		if a.Do == DoFill {
			require.LessOrEqual(h.t, a.Data.Length, h.target.cfg.MaxLog)
		}
		if a.Do == DoFetch {
			require.LessOrEqual(h.t, uint64(a.Data.Length), h.target.cfg.maxTransfer())
		}
	}
}

// FuzzNVME_90_Messages: any messages on any queue, with any results of the engine. Nothing panics, each command is
// answered at most once, and no queue exceeds its budget.
func FuzzNVME_90_Messages(f *testing.F) {
	items, err := golden.Load()
	require.NoError(f, err)
	var all []byte
	for _, item := range items {
		if !item.IsCommand() {
			continue
		}
		step := []byte{byte(item.Queue<<4 | 10), byte(min(255, len(item.Octets)-capsule.SQESize))}
		step = append(step, item.Octets[:capsule.SQESize+int(step[1])]...)
		step = append(step, 11, 11)
		f.Add(step)
		all = append(all, step...)
	}
	f.Add(all)
	f.Add([]byte{15, 14, 255, 0x4A})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1<<14 {
			return
		}
		newHostile(t).run(script)
	})
}

// TestNVME_90_RandomCommands sends random commands that are nearly valid, which the fuzzer would take long to find.
func TestNVME_90_RandomCommands(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(90, seed))
		h := newHostile(t)
		var script []byte
		for range 300 {
			b := byte(rnd.UintN(256))
			if rnd.UintN(8) > 0 {
				b = b&0x70 | byte(rnd.UintN(14))
			}
			script = append(script, b)
			if b&15 < 10 {
				script = append(script, randomCommand(rnd)...)
			}
		}
		h.run(script)
	}
}

// randomCommand is a command whose fields are often those of a valid one.
func randomCommand(rnd *rand.Rand) []byte {
	pick := func(v ...uint64) uint64 {
		if rnd.UintN(16) == 0 {
			return rnd.Uint64()
		}
		return v[rnd.IntN(len(v))]
	}
	c := capsule.SQE{
		Opcode: capsule.Opcode(pick(0, 1, 2, 5, 6, 8, 9, 0x0A, 0x0C, 0x18, 0x7F, 0x7F)),
		Flags:  uint8(pick(capsule.FlagSGL)),
		CID:    uint16(rnd.UintN(40)),
		NSID:   uint32(pick(0, 1, 1, 1, 2, 3, 4, 8, capsule.BroadcastNSID)),
		CDW10:  uint32(pick(0, 1, 2, 4, 6, 7, 0x0B, 0x0F, 0x01FF0002, 0x03FF0004, 0x00FF0070, 0x00010001)),
		CDW11:  uint32(pick(0, 0, 0, 1, 4, capsule.PropCC, capsule.PropCSTS)),
		CDW12:  uint32(pick(0, 1, 7, 0x460001, 0x460000, 0x464001, 1<<30)),
		CDW13:  uint32(pick(0)),
		SGL: capsule.KeyedSGL(rnd.Uint32(), rnd.Uint64(), uint32(pick(0, 16, 32, 512, 1024, 4096, 8192))&0xFFFFFF,
			rnd.UintN(2) == 0),
	}
	return c.Append(nil)
}

// TestNVME_90_Memory: no message of a host makes anything grow.
func TestNVME_90_Memory(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	disc := w.discover(hostA, idA)
	rnd := rand.New(rand.NewPCG(90, 1))
	var out []Action
	flood := func(n int) {
		for range n {
			for _, q := range []*Queue{l.q, disc.q} {
				msg := randomCommand(rnd)
				msg[4] |= 4 // no Property Set, with which it would end
				out = q.Command(0, msg, out[:0])
				for _, a := range out {
					require.NotEqual(t, DoClose, a.Do)
					if a.Do != DoRespond {
						q.Finish(a.Ref, capsule.StatusBusy, nil)
					}
				}
			}
		}
	}
	flood(1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	flood(20000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<17))
}

// TestNVME_94_NoAllocations: commands of I/O queues allocate nothing.
func TestNVME_94_NoAllocations(t *testing.T) {
	w, l := storageLine(t)
	_ = w
	data := make([]byte, lba)
	out := make([]Action, 0, 4)
	cid := uint16(0)
	var msgs [][]byte
	for _, c := range []capsule.SQE{
		l.read(0, 1), l.rw(capsule.OpWrite, 0, 1), l.rw(capsule.OpCompare, 0, 1), l.rw(capsule.OpWriteZeroes, 0, 1),
		capsule.FlushSQE(1, 1), capsule.FlushSQE(1, capsule.BroadcastNSID), l.read(1000, 1),
	} {
		msgs = append(msgs, c.Append(nil))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, msg := range msgs {
			cid++
			msg[2], msg[3] = byte(cid), byte(cid>>8)
			out = l.q.Command(0, msg, out[:0])
			for len(out) == 1 && out[0].Do != DoRespond {
				a := &out[0]
				r := a.Ref
				l.q.Begin(r)
				if a.Do == DoFetch {
					out = l.q.Fetched(0, r, data, out[:0])
				} else {
					out = l.q.Finish(r, capsule.Success, out[:0])
				}
			}
			if len(out) != 1 {
				t.Error("no response")
			}
		}
	}))
}
