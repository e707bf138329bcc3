package capsule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// noAllocs checks that f allocates nothing.
func noAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	require.Zero(t, testing.AllocsPerRun(100, f), what)
}

// sink holds parsed values, so that the compiler does not leave out the parsing.
var sink struct {
	sqe    SQE
	data   Data
	rw     RW
	status Status
	err    error
	n      uint64
}

func TestNVME_94_CommandsWithoutAllocation(t *testing.T) {
	out := make([]byte, 0, 8192)
	bounds := &Bounds{NSZE: 1 << 20, LBADS: 12, MaxTransfer: 1 << 20}
	for _, item := range goldenItems(t) {
		if !item.IsCommand() {
			continue
		}
		noAllocs(t, item.Name, func() {
			c, behind, err := ParseSQE(item.Octets)
			sink.sqe, sink.err = c, err
			sink.data, sink.status = c.Data(behind)
			again, _ := rebuild(&c, item.Queue > 0)
			out = again.Append(out[:0])
			sink.rw = ParseRW(&c)
			sink.status = sink.rw.Check(bounds, &sink.data)
		})
	}
	short, bad := make([]byte, 63), write(SGL{15: 0xFF})
	noAllocs(t, "what is no command", func() {
		_, _, sink.err = ParseSQE(short)
		_, sink.err = ParseCQE(short)
		sink.data, sink.status = bad.Data(short)
	})
}

func TestNVME_94_ResponsesWithoutAllocation(t *testing.T) {
	out := make([]byte, 0, CQESize)
	for _, item := range goldenItems(t) {
		if item.IsResponse() {
			noAllocs(t, item.Name, func() {
				c, err := ParseCQE(item.Octets) // not into sink: for s390x Go 1.26 cannot compile an Append of it
				sink.n, sink.err = c.Value(), err
				out = c.Append(out[:0])
			})
		}
	}
}

func TestNVME_94_PrivateDataAndPagesWithoutAllocation(t *testing.T) {
	out := make([]byte, 0, 64)
	page := make([]byte, PageSize)
	request := Request{QID: 1, HRQSize: 128, HSQSize: 127}.Append(nil)
	accept := Accept{CRQSize: 128}.Append(nil)
	noAllocs(t, "private data", func() {
		r, _ := ParseRequest(request)
		out = r.Append(out[:0])
		a, _ := ParseAccept(accept)
		out = a.Append(out[:0])
		out = RejectORD.Append(out[:0])
	})
	ctrl, ns, desc := ourController(), new(IdentifyNamespace), &Descriptors{UUID: [16]byte{1}}
	smart, effects, ids := new(SMART), new(Effects), []uint32{1, 2, 3}
	entry := &DiscoveryEntry{TRSVCID: "4420", SubNQN: "nqn", TRADDR: "10.0.0.1"}
	noAllocs(t, "pages", func() {
		ctrl.Put(page)
		ns.Put(page)
		desc.Put(page)
		IdentifyNVM{}.Put(page)
		PutNamespaceList(page, ids, 1)
		PutChangedNamespaces(page, ids)
		smart.Put(page)
		effects.Put(page)
		entry.Put(page)
		sink.status = PutLog(page[:512], page[512:], 16)
	})
	data := goldenNamed(t, "dsm-incapsule")[0][SQESize:]
	noAllocs(t, "ranges", func() {
		r := ParseDSMRange(data, 0)
		out = r.Append(out[:0])
		sink.status = CheckDSMRanges(&Bounds{NSZE: 100}, data, 1, 0)
	})
	PutNamespaceList(page, ids, 0)
	noAllocs(t, "namespaces", func() {
		list, err := ParseNamespaceList(ids[:0], page, 0)
		sink.n, sink.err = uint64(len(list)), err
	})
}
