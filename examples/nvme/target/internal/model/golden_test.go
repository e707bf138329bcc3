package model

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

const (
	privateAt = 24     // in an MPA frame
	filler    = 0xEEEE // the CID of commands that are not in the golden file
)

// A replay plays what Linux hosts sent, to a target like the one that they saw, and compares its answers.
type replay struct {
	*world
	local      Address
	lines      map[int]*line // by connection
	responses  int
	dataChecks int
}

// A capture is what was captured with one kernel.
type capture struct {
	local, nqn  string
	first, last int // connections
	lbads       uint8
	blocks      uint64
	uuid        string // of the namespace
}

func TestNVME_14_96_Linux612(t *testing.T) {
	r := play(t, capture{
		local: "10.1.1.1", nqn: "testnqn", first: 0, last: 5, lbads: 12, blocks: 0x4000,
		uuid: "236e555fe0b9479a9250ef5277fad681",
	})
	require.Equal(t, 96, r.responses)
	require.Equal(t, 13, r.dataChecks)
}

func TestNVME_14_96_Linux61(t *testing.T) {
	r := play(t, capture{
		local: "10.1.0.1", nqn: "nqn.lab", first: 6, last: 8, lbads: 9, blocks: 0x200000,
		uuid: "ddbca97b291f4511a0037c3341d2a9dd",
	})
	require.Equal(t, 57, r.responses)
	require.Equal(t, 7, r.dataChecks)
}

// play replays the connections of a capture.
func play(t *testing.T, c capture) *replay {
	t.Helper()
	w := newWorld(t, func(cfg *Config) { cfg.Compare = false })
	w.must(w.target.RemoveSubsystem(storage, nil))
	w.must(w.target.AddSubsystem(SubsystemConfig{NQN: c.nqn}, nil))
	cfg := namespace(1)
	cfg.Geometry = capsule.Geometry{LBADS: c.lbads, Blocks: c.blocks}
	copy(cfg.UUID[:], unhex(c.uuid))
	_, out, err := w.target.AddNamespace(c.nqn, cfg, nil)
	w.must(out, err)
	w.hold[DoFetch] = true
	r := &replay{world: w, local: Address{capsule.AddressIPv4, c.local, "4420"}, lines: map[int]*line{}}
	second := namespace(2)
	second.Geometry = cfg.Geometry
	events := 0
	for _, item := range script(t, c.first, c.last) {
		if item.Name == golden.Response+"async-event" {
			// The second namespace came, and went.
			r.fill(&item)
			if events++; events == 1 {
				_, out, err = w.target.AddNamespace(c.nqn, second, nil)
			} else {
				out, err = w.target.RemoveNamespace(c.nqn, 2, nil)
			}
			w.must(out, err)
		}
		r.item(&item)
	}
	return r
}

// An entry is an item, with the response if it is a command.
type entry struct {
	golden.Item
	response []byte // nil: the file has none
}

// script returns the items in an order in which they may have been on the wire: those of an I/O queue come after queues
// were granted, and those for the second namespace while it existed.
func script(t *testing.T, first, last int) []entry {
	t.Helper()
	items, err := golden.Load()
	require.NoError(t, err)
	conns := make([][]entry, last+1)
	for i := range items {
		if c := items[i].Conn; c >= first && c <= last {
			conns[c] = append(conns[c], entry{items[i], responseTo(items[i:])})
		}
	}
	var all []entry
	for c := first; c <= last; c++ {
		if conns[c][0].Queue != 0 {
			continue
		}
		var io []entry
		events := 0
		if c < last && conns[c+1][0].Queue != 0 {
			io = conns[c+1]
		}
		for _, e := range conns[c] {
			if e.Name == golden.Response+"async-event" {
				if events++; events == 2 {
					all, io = append(all, io...), nil
				}
			}
			all = append(all, e)
			if e.Name == golden.Response+"set-features-07" {
				n := forNamespace(io, 2)
				all, io = append(all, io[:n]...), io[n:]
			}
		}
	}
	return all
}

// forNamespace returns the index of the first command on a namespace.
func forNamespace(io []entry, nsid uint32) int {
	for i, e := range io {
		if e.IsCommand() && binary.LittleEndian.Uint32(e.Octets[4:]) == nsid {
			return i
		}
	}
	return len(io)
}

// responseTo finds the response to the first item.
func responseTo(items []golden.Item) []byte {
	first := &items[0]
	if !first.IsCommand() || first.Name == "async-event" { // which waits
		return nil
	}
	for i := 1; i < len(items) && items[i].Conn == first.Conn; i++ {
		if items[i].IsResponse() && string(items[i].Octets[12:14]) == string(first.Octets[2:4]) {
			return items[i].Octets
		}
	}
	return nil
}

func (r *replay) item(e *entry) {
	r.t.Helper()
	l := r.lines[e.Conn]
	switch {
	case e.Name == golden.MPARequest:
		r.open(e)
	case e.Name == golden.MPAReply:
		require.Equal(r.t, e.Octets[privateAt:], l.q.Accept().Append(nil))
	case e.Name == golden.ReadRequest:
		d := r.held[0].Data
		source := e.Octets[18+16:]
		require.Equal(r.t, d.STag, binary.BigEndian.Uint32(source))
		require.Equal(r.t, d.TO, binary.BigEndian.Uint64(source[4:]))
		require.Equal(r.t, d.Length, binary.BigEndian.Uint32(e.Octets[18+12:]))
	case e.Name == golden.ReadResponse:
		r.fetched(e.Octets)
	case e.IsCommand():
		r.command(l, e)
	case e.IsResponse():
		r.response(l, e)
	default:
		r.data(l, e)
	}
}

func (r *replay) open(e *entry) {
	a := arrival(0, 32)
	a.Private, a.Local = e.Octets[privateAt:], r.local
	q, reject := r.target.Open(0, a)
	require.Zero(r.t, reject)
	l := &line{w: r.world, q: q, memory: map[uint32][]byte{}, open: map[uint16]int{}}
	r.world.lines[q], r.lines[e.Conn] = l, l
}

// fetched continues a command whose data the file contains or leaves out.
func (r *replay) fetched(octets []byte) {
	a := r.goOn()
	require.True(r.t, a.Queue.Begin(a.Ref))
	if octets == nil {
		octets = make([]byte, a.Data.Length)
	}
	r.do(a.Queue.Fetched(0, a.Ref, octets, nil))
}

// command sends a command. Our CAP offers no I/O command sets, so that a host would not select them in CC.
func (r *replay) command(l *line, e *entry) {
	msg := append([]byte(nil), e.Octets...)
	if strings.HasPrefix(e.Name, "property-set-cc") {
		msg[48] &^= 7 << 4
	}
	r.fill(e)
	l.open[binary.LittleEndian.Uint16(msg[2:])]++
	r.do(l.q.Command(0, msg, nil))
}

// fill sends commands instead of those missing in the file, until SQHD is what the file has for an item.
func (r *replay) fill(e *entry) {
	l, response := r.lines[e.Conn], e.response
	if e.IsResponse() {
		response = e.Octets
	}
	if response == nil || l.q.ctrl == nil {
		return
	}
	for want := binary.LittleEndian.Uint16(response[8:]); (l.q.sqhd+1)%(l.q.sqsize+1) != want; {
		c := capsule.KeepAliveSQE(filler)
		if l.q.qid != 0 {
			c = capsule.FlushSQE(filler, 1)
		}
		l.ask(c)
	}
}

// response compares a response with the last one of the target.
func (r *replay) response(l *line, e *entry) {
	r.t.Helper()
	if len(r.held) > 0 {
		r.fetched(nil)
	}
	r.responses++
	want, err := capsule.ParseCQE(e.Octets)
	require.NoError(r.t, err)
	ours(strings.TrimPrefix(e.Name, golden.Response), &want)
	got := l.answers[len(l.answers)-1]
	require.Equal(r.t, want, got, "%s on connection %d", e.Name, e.Conn)
	require.Equal(r.t, want.Append(nil), l.last.Response.Octets[:])
	require.Equal(r.t, e.Invalidate, l.last.Response.Invalidate, e.Name)
}

// ours changes a response of the kernel's target where ours differs by design.
func ours(name string, r *capsule.CQE) {
	r.Status &^= 1 << 13 // More
	switch name {
	case "property-get-cap":
		r.SetValue(0x20_0F01007F)
	case "property-get-cc":
		r.DW0 &^= 7 << 4
	case "set-features-07", "get-features-07": // as many as were requested: one
		r.DW0 = 0
	case "set-features-0b", "get-features-0b": // no ANA
		r.DW0 &= capsule.NoticeDiscovery | capsule.NoticeNamespaces
	case "get-log-0c-8208":
		r.Status = capsule.StatusInvalidLogPage
	case "read-slbaf423f-n1":
		r.Status = capsule.StatusLBAOutOfRange
	}
}

// data compares data for the host with the kernel's, except for fields in which we differ.
func (r *replay) data(l *line, e *entry) {
	r.t.Helper()
	want := append([]byte(nil), e.Octets...)
	got := append([]byte(nil), l.data...)
	mask := func(at ...int) {
		for _, i := range at {
			want[i], got[i] = 0, 0
		}
	}
	switch name := strings.TrimPrefix(e.Name, golden.Data); name {
	case "identify-ctrl":
		c, err := capsule.ParseIdentifyController(got)
		require.NoError(r.t, err)
		require.NoError(r.t, c.CheckHost(l.cntlid()))
		require.Equal(r.t, want[78:84], got[78:84], "CNTLID and VER")
		require.Equal(r.t, want[768:1024], got[768:1024], "SUBNQN")
	case "identify-ns":
		mask(24, 33, 64, 66, 68, 70, 72, 92) // NSFEAT, DLFEAT, NPWG to NOWS, ANAGRPID
		require.Equal(r.t, want, got, name)
	case "identify-nslist", "identify-nsdesc", "get-log-01-4096", "get-log-04-4096":
		require.Equal(r.t, want, got, name)
	case "get-log-70-1024", "get-log-70-3072":
		mask(0) // GENCTR
		for i := 1024; i < len(want); i += 1024 {
			mask(i+3, i+769) // TREQ, PRTYPE
		}
		require.Equal(r.t, want, got, name)
	default:
		return
	}
	r.dataChecks++
}
