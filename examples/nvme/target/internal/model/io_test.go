package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

const lba = 4096

// read returns a Read of namespace 1.
func (l *line) read(slba uint64, blocks int) capsule.SQE {
	return l.rw(capsule.OpRead, slba, blocks)
}

// rw returns a command with keyed data of the right length.
func (l *line) rw(op capsule.Opcode, slba uint64, blocks int, change ...func(*capsule.RW)) capsule.SQE {
	m := capsule.RW{Opcode: op, NSID: 1, SLBA: slba, NLB: uint16(blocks - 1)}
	for _, f := range change {
		f(&m)
	}
	sgl := capsule.NullSGL()
	if op != capsule.OpWriteZeroes {
		sgl = l.at(min(blocks*lba, 1<<24-1))
	}
	return m.SQE(l.next(), sgl)
}

// storageLine returns an I/O queue to a namespace of 1000 LBAs of 4 KiB.
func storageLine(t *testing.T, change ...func(*NamespaceConfig)) (*world, *line) {
	t.Helper()
	w := newWorld(t)
	cfg := namespace(1)
	for _, f := range change {
		f(&cfg)
	}
	w.add(cfg)
	return w, w.ready().io(1)
}

func TestNVME_60_LBARange(t *testing.T) {
	w, l := storageLine(t)
	for _, op := range []capsule.Opcode{capsule.OpRead, capsule.OpWrite, capsule.OpCompare, capsule.OpWriteZeroes} {
		l.ok(l.ask(l.rw(op, 999, 1)))
		l.ok(l.ask(l.rw(op, 990, 10)))
		for _, c := range []struct {
			slba   uint64
			blocks int
		}{{1000, 1}, {999, 2}, {991, 10}, {math.MaxUint64, 1}, {math.MaxUint64, 0x10000}, {math.MaxUint64 - 5, 8}, {0, 1001}} {
			l.refused(capsule.StatusLBAOutOfRange, 0, l.ask(l.rw(op, c.slba, c.blocks)))
		}
	}
	require.Len(t, w.ops, 8)
	require.Equal(t, uint64(990*lba), w.ops[1].Offset)
	require.Equal(t, uint64(10*lba), w.ops[1].Length)
}

func TestNVME_61_DataLength(t *testing.T) {
	_, l := storageLine(t)
	for _, op := range []capsule.Opcode{capsule.OpRead, capsule.OpWrite, capsule.OpCompare} {
		for _, n := range []int{0, 1, lba - 1, lba, 2*lba + 1, 3 * lba} {
			c := l.rw(op, 0, 2)
			c.SGL = l.at(n)
			l.refused(capsule.StatusInvalidSGLLength, 0, l.ask(c))
		}
		c := l.rw(op, 0, 2)
		c.SGL = capsule.NullSGL()
		l.refused(capsule.StatusInvalidSGLLength, 0, l.ask(c))
	}
}

// TestNVME_60_OrderOfChecks: the first failing check determines the status, whatever else is wrong.
func TestNVME_60_OrderOfChecks(t *testing.T) {
	_, l := storageLine(t, func(c *NamespaceConfig) { c.ReadOnly = true; c.Geometry.Blocks = 300 })
	m := capsule.RW{Opcode: capsule.OpWrite, NSID: 9, SLBA: 100, NLB: 256, PRINFO: 1}
	send := func(want capsule.Status) {
		t.Helper()
		l.refused(want, 0, l.ask(m.SQE(l.next(), l.at(1))))
	}
	send(capsule.StatusInvalidNamespace)
	m.NSID = 1
	send(capsule.StatusWriteProtected)
	m.Opcode = capsule.OpRead
	send(capsule.StatusInvalidProtectionInfo)
	m.PRINFO = 0
	send(capsule.StatusLBAOutOfRange)
	m.SLBA = 0
	send(capsule.StatusInvalidField) // above MDTS
	m.NLB = 255
	send(capsule.StatusInvalidSGLLength)
}

func TestNVME_20_MDTS(t *testing.T) {
	w, l := storageLine(t)
	l.ok(l.ask(l.read(0, 256)))
	l.refused(capsule.StatusInvalidField, 0, l.ask(l.read(0, 257)))
	c := l.read(0, 257)
	c.SGL = capsule.KeyedSGL(5, 0, 0xFFFFFF, true)
	l.refused(capsule.StatusInvalidField, 0, l.ask(c))
	require.Equal(t, uint32(5), l.last.Response.STag)
	l.ok(l.ask(l.rw(capsule.OpWriteZeroes, 0, 1000))) // it moves no data
	require.Len(t, w.ops, 2)
}

func TestNVME_60_NSIDs(t *testing.T) {
	_, l := storageLine(t)
	for _, nsid := range []uint32{0, 2, 1024, 1025, capsule.BroadcastNSID} {
		for _, op := range []capsule.Opcode{capsule.OpRead, capsule.OpWrite, capsule.OpWriteZeroes, capsule.OpCompare} {
			l.refused(capsule.StatusInvalidNamespace, 0,
				l.ask(l.rw(op, 0, 1, func(m *capsule.RW) { m.NSID = nsid })))
		}
		l.refused(capsule.StatusInvalidNamespace, 0, l.ask(capsule.DSM{NSID: nsid, AD: true}.SQE(l.next(), l.at(16))))
		if nsid != capsule.BroadcastNSID {
			l.refused(capsule.StatusInvalidNamespace, 0, l.ask(capsule.FlushSQE(l.next(), nsid)))
		}
	}
}

func TestNVME_60_UnknownOpcodes(t *testing.T) {
	_, l := storageLine(t)
	known := map[capsule.Opcode]bool{
		capsule.OpFlush: true, capsule.OpWrite: true, capsule.OpRead: true, capsule.OpCompare: true,
		capsule.OpWriteZeroes: true, capsule.OpDSM: true, capsule.OpFabrics: true,
	}
	for op := range 256 {
		if known[capsule.Opcode(op)] {
			continue
		}
		c := capsule.SQE{Opcode: capsule.Opcode(op), Flags: capsule.FlagSGL, CID: l.next(), NSID: 1, SGL: capsule.NullSGL()}
		l.refused(capsule.StatusInvalidOpcode, 0, l.ask(c))
	}
	for _, fc := range []capsule.FCType{capsule.FCPropertyGet, capsule.FCPropertySet, capsule.FCAuthSend, 0x7F} {
		c := capsule.SQE{Opcode: capsule.OpFabrics, Flags: capsule.FlagSGL, CID: l.next(), NSID: uint32(fc), SGL: capsule.NullSGL()}
		l.refused(capsule.StatusInvalidOpcode, 0, l.ask(c))
	}
}

func TestNVME_68_FlushAll(t *testing.T) {
	w := newWorld(t)
	one := w.add(namespace(1))
	durable := namespace(2)
	durable.Volatile = false
	w.add(durable)
	three := w.add(namespace(3))
	l := w.ready().io(1)
	l.ok(l.ask(capsule.FlushSQE(l.next(), capsule.BroadcastNSID)))
	l.ok(l.ask(capsule.FlushSQE(l.next(), 3)))
	l.ok(l.ask(capsule.FlushSQE(l.next(), 2))) // it has nothing to flush
	require.Len(t, w.ops, 2)
	require.Equal(t, Op{Kind: OpFlush, Namespaces: []*Namespace{one, three}}, w.ops[0])
	require.Equal(t, Op{Kind: OpFlush, Namespaces: []*Namespace{three}}, w.ops[1])
	w.status = capsule.StatusWriteFault
	l.refused(capsule.StatusWriteFault, 0, l.ask(capsule.FlushSQE(l.next(), 1)))
}

func ranges(rs ...capsule.DSMRange) []byte {
	var b []byte
	for _, r := range rs {
		b = r.Append(b)
	}
	return b
}

func TestNVME_71_Ranges(t *testing.T) {
	w, l := storageLine(t)
	two := ranges(capsule.DSMRange{NLB: 0, SLBA: 5}, capsule.DSMRange{NLB: 8, SLBA: 992})
	trim := func(data []byte, n int) capsule.CQE {
		t.Helper()
		return l.ask(capsule.DSM{NSID: 1, NR: uint8(n - 1), AD: true}.SQE(l.next(), l.from(data)))
	}
	l.ok(trim(two, 2))
	l.ok(trim(append(two, make([]byte, 4096-32)...), 2))
	require.Len(t, w.ops, 2)
	op := w.ops[1]
	require.Equal(t, OpTrim, op.Kind)
	require.Equal(t, 2, op.Ranges)
	off, n := op.Range(0)
	require.Equal(t, []uint64{5 * lba, 0}, []uint64{off, n})
	off, n = op.Range(1)
	require.Equal(t, []uint64{992 * lba, 8 * lba}, []uint64{off, n})
	l.refused(capsule.StatusInvalidSGLLength, 0, trim(two[:31], 2))
	l.ok(trim(make([]byte, 4096), 256))
	inCapsule := capsule.DSM{NSID: 1, NR: 1, AD: true}.SQE(l.next(), capsule.InCapsuleSGL(0, 32))
	l.ok(l.ask(inCapsule, two...))
	require.Equal(t, two, w.ops[3].Octets)

	// A single bad range prevents them all.
	for _, bad := range []capsule.DSMRange{{NLB: 1, SLBA: 1000}, {NLB: 9, SLBA: 992}, {NLB: 1, SLBA: math.MaxUint64}} {
		l.refused(capsule.StatusLBAOutOfRange, 0, trim(append(two, ranges(bad)...), 3))
		inCapsule = capsule.DSM{NSID: 1, AD: true}.SQE(l.next(), capsule.InCapsuleSGL(0, 16))
		l.refused(capsule.StatusLBAOutOfRange, 0, l.ask(inCapsule, ranges(bad)...))
	}
	l.ok(l.ask(capsule.DSM{NSID: 1, IDR: true}.SQE(l.next(), l.at(16)))) // only a hint
	require.Len(t, w.ops, 4)
}

// TestNVME_71_LongRange: a range of more than 1 GiB is refused. Identify reports the limit.
func TestNVME_71_LongRange(t *testing.T) {
	w, l := storageLine(t, func(c *NamespaceConfig) { c.Geometry.Blocks = 1 << 20 })
	const most = 1 << 30 / lba
	trim := func(n uint32) capsule.CQE {
		data := ranges(capsule.DSMRange{NLB: n})
		return l.ask(capsule.DSM{NSID: 1, AD: true}.SQE(l.next(), l.from(data)))
	}
	l.ok(trim(most))
	l.refused(capsule.StatusInvalidField, 0, trim(most+1))
	require.Len(t, w.ops, 1)
}

// TestNVME_71_MoreThanAnyRanges: a list of ranges has at most 4096 octets. No more of the host's memory is requested,
// since nothing else, not even MDTS, bounds it.
func TestNVME_71_MoreThanAnyRanges(t *testing.T) {
	w, l := storageLine(t)
	w.hold[DoFetch] = true
	l.send(capsule.DSM{NSID: 1, AD: true}.SQE(1, l.at(1<<24-1)))
	require.Len(t, w.held, 1)
	require.EqualValues(t, capsule.MaxDSMRanges*capsule.DSMRangeSize, w.held[0].Data.Length)
}

func TestNVME_73_Compare(t *testing.T) {
	w, l := storageLine(t)
	data := make([]byte, lba)
	c := l.rw(capsule.OpCompare, 3, 1)
	c.SGL = l.from(data)
	l.ok(l.ask(c))
	require.Equal(t, OpCompare, w.ops[0].Kind)
	require.Equal(t, data, w.ops[0].Octets)
	w.status = capsule.StatusCompareFailure
	l.refused(capsule.StatusCompareFailure, 0, l.ask(l.rw(capsule.OpCompare, 3, 1)))
	require.True(t, l.answers[len(l.answers)-1].Status.DNR())

	without := newWorld(t, func(c *Config) { c.Compare = false })
	without.add(namespace(1))
	l = without.ready().io(1)
	l.refused(capsule.StatusInvalidOpcode, 0, l.ask(l.rw(capsule.OpCompare, 3, 1)))
}

func TestNVME_74_HintsAndProtection(t *testing.T) {
	w, l := storageLine(t)
	l.ok(l.ask(l.rw(capsule.OpRead, 0, 1, func(m *capsule.RW) { m.LR, m.Hints = true, 7 })))
	for prinfo := uint8(1); prinfo < 16; prinfo++ {
		l.refused(capsule.StatusInvalidProtectionInfo, 0,
			l.ask(l.rw(capsule.OpRead, 0, 1, func(m *capsule.RW) { m.PRINFO = prinfo })))
	}
	require.Len(t, w.ops, 1)
}

func TestNVME_75_ReadOnly(t *testing.T) {
	w, l := storageLine(t, func(c *NamespaceConfig) { c.ReadOnly = true })
	l.refused(capsule.StatusWriteProtected, 0, l.ask(l.rw(capsule.OpWrite, 0, 1)))
	l.refused(capsule.StatusWriteProtected, 0, l.ask(l.rw(capsule.OpWriteZeroes, 0, 1)))
	l.refused(capsule.StatusWriteProtected, 0, l.ask(capsule.DSM{NSID: 1, AD: true}.SQE(l.next(), l.at(16))))
	require.Empty(t, w.ops)
	l.ok(l.ask(l.read(0, 1)))
	l.ok(l.ask(l.rw(capsule.OpCompare, 0, 1)))
}

// TestNVME_51_FUA: what a back end is asked for: how durable a write must be, and whether space may be given back.
func TestNVME_51_FUA(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	l := admin.io(1)
	fua := func(m *capsule.RW) { m.FUA = true }
	deac := func(m *capsule.RW) { m.DEAC = true }
	last := func(c capsule.SQE) Op {
		t.Helper()
		l.ok(l.ask(c))
		return w.ops[len(w.ops)-1]
	}
	require.False(t, last(l.rw(capsule.OpWrite, 0, 1)).FUA)
	require.True(t, last(l.rw(capsule.OpWrite, 0, 1, fua)).FUA)
	require.True(t, last(l.rw(capsule.OpRead, 0, 1, fua)).FUA)
	require.True(t, last(l.rw(capsule.OpWriteZeroes, 0, 1, fua)).FUA)
	require.True(t, last(l.rw(capsule.OpWriteZeroes, 0, 1, deac)).Unmap)
	require.False(t, last(l.rw(capsule.OpWriteZeroes, 0, 1)).Unmap)

	off := capsule.SetFeatures{FID: capsule.FeatureVWC, Value: 0}
	admin.ok(admin.ask(off.SQE(admin.next(), capsule.NullSGL())))
	require.Equal(t, OpFlush, w.ops[len(w.ops)-1].Kind, "earlier writes are flushed")
	require.True(t, last(l.rw(capsule.OpWrite, 0, 1)).FUA)
	require.True(t, last(l.rw(capsule.OpWriteZeroes, 0, 1)).FUA)
	require.False(t, last(l.rw(capsule.OpRead, 0, 1)).FUA)
	require.True(t, last(capsule.DSM{NSID: 1, AD: true}.SQE(l.next(), l.from(make([]byte, 16)))).FUA)
}

// TestNVME_71_NoTrim: if the back end cannot give space back, there is no Dataset Management.
func TestNVME_71_NoTrim(t *testing.T) {
	w, l := storageLine(t, func(c *NamespaceConfig) { c.Trims, c.TrimmedZeroes = false, false })
	l.refused(capsule.StatusInvalidOpcode, 0, l.ask(capsule.DSM{NSID: 1, AD: true}.SQE(l.next(), l.at(16))))
	l.ok(l.ask(l.rw(capsule.OpWriteZeroes, 0, 1, func(m *capsule.RW) { m.DEAC = true })))
	require.False(t, w.ops[0].Unmap)
}

// TestNVME_54_RemovedWhileFetching: the namespace is looked up again when the data has come.
func TestNVME_54_RemovedWhileFetching(t *testing.T) {
	w, l := storageLine(t)
	w.hold[DoFetch] = true
	l.send(l.rw(capsule.OpWrite, 999, 1))
	l.send(l.rw(capsule.OpWrite, 999, 1))
	smaller := namespace(1)
	smaller.Geometry.Blocks = 999
	_, out, err := w.target.ReplaceNamespace(storage, smaller, nil)
	w.must(out, err)
	w.act(w.goOn())
	require.Equal(t, capsule.StatusLBAOutOfRange, l.answers[1].Status)
	w.must(w.target.RemoveNamespace(storage, 1, nil))
	w.act(w.goOn())
	require.Equal(t, capsule.StatusInvalidNamespace, l.answers[2].Status)
	require.Empty(t, w.ops)
}
