package capsule

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

// addGolden adds the items whose names begin with one of the prefixes to the corpus.
func addGolden(f *testing.F, prefixes ...string) {
	f.Helper()
	for _, item := range goldenItems(f) {
		for _, p := range prefixes {
			if strings.HasPrefix(item.Name, p) {
				f.Add(item.Octets)
			}
		}
	}
}

// FuzzMessage reads octets as each of the messages.
func FuzzMessage(f *testing.F) {
	for _, item := range goldenItems(f) {
		if item.IsCommand() {
			f.Add(item.Octets)
		}
	}
	addGolden(f, golden.Response)
	for _, item := range goldenItems(f) {
		if item.Name == golden.MPARequest || item.Name == golden.MPAReply {
			f.Add(item.Octets[privateAt:])
		}
	}
	f.Add(RejectQID.Append(nil))
	reserved := write(InCapsuleSGL(0, 16))
	reserved.SGL[12] = 2
	f.Add(append(reserved.Append(nil), make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, msg []byte) {
		checkCommand(t, msg)
		checkResponse(t, msg)
		checkPrivateData(t, msg)
	})
}

// FuzzData reads octets as each of the pages of data.
func FuzzData(f *testing.F) {
	addGolden(f, golden.ReadResponse)
	for _, b := range goldenNamed(f, "connect-io") {
		f.Add(b[SQESize:])
	}
	addGolden(f, "data:identify")
	addGolden(f, "data:get-log")
	f.Fuzz(func(t *testing.T, b []byte) {
		checkConnectData(t, b)
		checkIdentify(t, b)
		checkLog(t, b)
		checkDiscovery(t, b)
	})
}

// checkCommand parses a host's message. The command gives the same octets again, its data is in the message or in memory
// that does not wrap, and the fields of its type survive.
func checkCommand(t *testing.T, msg []byte) {
	c, behind, err := ParseSQE(msg)
	if err != nil {
		require.Less(t, len(msg), SQESize)
		return
	}
	require.Equal(t, msg, append(c.Append(nil), behind...))
	d, status := c.Data(behind)
	require.Equal(t, d.Length == 0, d.Kind == DataNone)
	require.Len(t, d.Octets, map[DataKind]int{DataInCapsule: int(d.Length)}[d.Kind])
	if status.OK() && d.Kind == DataKeyed {
		require.Greater(t, d.TO+uint64(d.Length), d.TO)
		require.Equal(t, c.SGL, KeyedSGL(d.STag, d.TO, d.Length, d.Invalidate))
	}
	if status.OK() && d.Kind == DataInCapsule {
		sgl := c.SGL
		clear(sgl[12:15]) // reserved, and not looked at
		require.Equal(t, sgl, InCapsuleSGL(sgl.Address(), d.Length))
		require.Equal(t, behind[c.SGL.Address():][:d.Length], d.Octets)
	}
	for _, io := range []bool{false, true} {
		again, known := rebuild(&c, io)
		if !known {
			continue
		}
		second, _ := rebuild(&again, io)
		require.Equal(t, again, second)
	}
	checkTyped(t, &c, &d)
}

// checkTyped calls the functions of command types that compute values from fields.
func checkTyped(t *testing.T, c *SQE, d *Data) {
	b := Bounds{NSZE: 1 << 30, LBADS: 12, MaxTransfer: 1 << 20}
	m := ParseRW(c)
	if m.Check(&b, d).OK() {
		require.Less(t, m.SLBA, b.NSZE)
		require.LessOrEqual(t, m.SLBA+m.Blocks(), b.NSZE)
	}
	if l := ParseGetLogPage(c); l.Check(d, 1<<20).OK() {
		require.Equal(t, uint64(d.Length), l.Length())
	}
	dsm := ParseDSM(c)
	if dsm.Check(&b, d).OK() && d.Kind == DataInCapsule {
		for i := range dsm.Ranges() {
			r := ParseDSMRange(d.Octets, i)
			require.Equal(t, d.Octets[16*i:16*i+16], r.Append(nil))
		}
		CheckDSMRanges(&b, d.Octets, dsm.Ranges(), 1<<18)
	}
	if p := ParseProperty(c); p.Check().OK() {
		require.LessOrEqual(t, p.Offset, uint32(PropCSTS))
	}
	require.Equal(t, ParseCC(c.CDW12), ParseCC(ParseCC(c.CDW12).Value()))
	require.Equal(t, ParseCAP(c.MPTR), ParseCAP(ParseCAP(c.MPTR).Value()))
}

// checkResponse parses a target's message. Except for the phase, it gives the same octets again.
func checkResponse(t *testing.T, msg []byte) {
	r, err := ParseCQE(msg)
	if err != nil {
		require.NotEqual(t, CQESize, len(msg))
		return
	}
	again := r.Append(nil)
	again[14] |= msg[14] & 1
	require.Equal(t, msg, again)
	require.NotEmpty(t, r.Status.String())
	require.Equal(t, r.Status.OK(), r.Status.Err() == nil)
	if _, err := ParseConnectResponse(&r); err != nil {
		require.NotEmpty(t, err.Error())
	}
	e := ParseAsyncEvent(r.DW0)
	require.Equal(t, e, ParseAsyncEvent(e.DW0()))
	q := ParseQueueCount(r.DW0)
	require.Equal(t, r.DW0, q.Value())
	require.Positive(t, q.Pairs())
	require.Equal(t, ParseCSTS(r.DW0), ParseCSTS(ParseCSTS(r.DW0).Value()))
}

// checkPrivateData parses the private data of both ends.
func checkPrivateData(t *testing.T, b []byte) {
	if r, status := ParseRequest(b); status == 0 {
		require.Equal(t, b[:10], r.Append(nil)[:10])
		if r.Check(64, 31, 127) == 0 {
			require.GreaterOrEqual(t, r.HRQSize, r.HSQSize)
		}
	}
	if a, err := ParseAccept(b); err == nil {
		require.Equal(t, b[:4], a.Append(nil)[:4])
	}
	e := ParseReject(b)
	require.NotEmpty(t, e.Error())
	if e.Status != 0 {
		require.Equal(t, b[:4], e.Status.Append(nil))
	}
}

// checkConnectData parses the data of Connect, whose names are used only if they are right.
func checkConnectData(t *testing.T, b []byte) {
	d, status := ParseConnectData(b)
	if !status.OK() {
		require.NotEqual(t, ConnectDataSize, len(b))
		return
	}
	if _, status := d.CheckHost(); !status.OK() || CheckNQN(d.SubNQN) != nil {
		return
	}
	page := dirty()
	d.Put(page)
	again, status := ParseConnectData(page[:ConnectDataSize])
	require.Equal(t, Success, status)
	require.Equal(t, d, again)
}

// checkIdentify parses a page as each kind of Identify data. Parsed values survive.
func checkIdentify(t *testing.T, b []byte) {
	page := dirty()
	if c, err := ParseIdentifyController(b); err == nil {
		_ = c.CheckText()
		_ = c.CheckHost(1)
		c.InCapsuleSize()
		c.MaxTransfer(b[0])
		c.Put(page)
		again, err := ParseIdentifyController(page)
		require.NoError(t, err)
		require.Equal(t, c, again)
	}
	if n, err := ParseIdentifyNamespace(b); err == nil {
		if g, err := n.Geometry(); err == nil {
			require.Positive(t, g.Size())
			require.Positive(t, g.BlockSize())
		}
		n.Put(page)
		again, err := ParseIdentifyNamespace(page)
		require.NoError(t, err)
		require.Equal(t, n, again)
	}
	if d, err := ParseDescriptors(b); err == nil {
		d.Put(page)
		again, err := ParseDescriptors(page)
		require.NoError(t, err)
		require.Equal(t, d, again)
	}
	if n, err := ParseIdentifyNVM(b); err == nil {
		n.Put(page)
		require.Equal(t, b[:16], page[:16])
	}
	if ids, err := ParseNamespaceList(nil, b, 0); err == nil {
		PutNamespaceList(page, ids, 0)
		require.Equal(t, b[:4*len(ids)], page[:4*len(ids)])
	}
}

// checkLog parses a page as each of the logs.
func checkLog(t *testing.T, b []byte) {
	page := dirty()
	if l, err := ParseSMART(b); err == nil {
		l.Put(page)
		again, err := ParseSMART(page)
		require.NoError(t, err)
		require.Equal(t, l, again)
	}
	if e, err := ParseErrorEntry(b); err == nil {
		e.Put(page)
		page[12] |= b[12] & 1
		require.Equal(t, b[:28], page[:28])
	}
	if l, err := ParseFirmware(b); err == nil {
		l.Put(page)
		again, err := ParseFirmware(page)
		require.NoError(t, err)
		require.Equal(t, l, again)
	}
	var e Effects
	if e.Parse(b) == nil {
		e.Put(page)
		require.Equal(t, b[:2048], page[:2048])
	}
	if ids, all, err := ParseChangedNamespaces(nil, b); err == nil {
		require.True(t, !all || len(ids) == 0)
		PutChangedNamespaces(page, ids)
	}
	if len(b) > 8 {
		_ = PutLog(page[:512], b, uint64(b[0])<<8|uint64(b[1]))
	}
}

// checkDiscovery parses a discovery log. It gives the same octets again, except those without meaning.
func checkDiscovery(t *testing.T, b []byte) {
	h, entries, err := ParseDiscoveryLog(b)
	if err != nil {
		require.ErrorIs(t, err, ErrMalformed)
		require.Empty(t, entries)
		return
	}
	require.LessOrEqual(t, h.Length(), uint64(len(b)))
	var page bytes.Buffer
	octets := dirty()
	h.Put(octets)
	page.Write(octets[:DiscoveryHeaderSize])
	for _, e := range entries {
		e.Put(octets)
		page.Write(octets[:DiscoveryEntrySize])
	}
	second, again, err := ParseDiscoveryLog(page.Bytes())
	require.NoError(t, err)
	require.Equal(t, h, second)
	require.Equal(t, entries, again)
}
