package matrix

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

var noCRC = iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: true}}

func setupCases() []Case {
	cases := slices.Concat(
		both(Case{Name: "crc/on", Core: true, Run: func(t *T) { t.crc(setting{}, true) }}),
		both(Case{Name: "crc/off", Core: true, Run: func(t *T) { t.crc(setting{qc: noCRC}, false) }}),
		both(Case{Name: "private-data/ours", Core: true, Limit: 2 * time.Minute, Run: (*T).ourPrivateData}),
		both(Case{Name: "private-data/siw", Core: true, Limit: 2 * time.Minute, Run: (*T).siwPrivateData}),
		both(Case{Name: "reject", Core: true, NoRTR: true, Run: (*T).reject}),
		both(Case{Name: "connections/200", Core: true, Limit: 3 * time.Minute, Run: (*T).connections}),
	)
	return append(cases,
		Case{Name: "revision/1/initiator", Role: Initiator, Core: true, NoRTR: true, Run: func(t *T) {
			t.revision(setting{qc: iwarp.QPConfig{MPA: iwarp.MPAOptions{Revision: 1}}}, 1)
		}},
		Case{Name: "revision/2/initiator", Role: Initiator, Core: true, Run: func(t *T) { t.revision(setting{}, 2) }},
		Case{Name: "revision/2/responder", Role: Responder, Core: true, Run: func(t *T) { t.revision(setting{}, 2) }},
		Case{Name: "markers/initiator", Role: Initiator, Core: true, NoRTR: true, Run: (*T).markers},
	)
}

// Flags in the octet after the key of a Request or Reply (RFC 5044 section 7.1.1).
const (
	flagMarkers = 0x80
	flagCRC     = 0x40
	requestKey  = "MPA ID Req Frame"
	replyKey    = "MPA ID Rep Frame"
)

// startup returns the flags and the revision of the first Request and the first Reply
// on the wire.
func (t *T) startup() (request, reply [2]byte) {
	find := func(key string) (b [2]byte) {
		require.True(t, t.eventually(func() bool { return len(t.capture.find(key, 2)) == 2 }), "the capture has %q", key)
		copy(b[:], t.capture.find(key, 2))
		return b
	}
	return find(requestKey), find(replyKey)
}

// exchange transfers a few octets by each kind of operation, in both directions.
func (t *T) exchange(e *end, p *peer) {
	theirs := p.mr(0, 5000, all)
	ours, mr := e.mr(5000, ourAll)
	fillPattern(ours, 1)
	e.post(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, 4999)}, Remote: theirs})
	e.sent(1)
	e.notify(p)
	p.check(0, 0, 4999, 1)
	p.fill(0, 0, 5000, 2)
	e.post(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 4999)}, Remote: at(theirs, 0, 4999)})
	e.sent(1)
	e.checkPattern(ours[:4999], 2, "what was read")
	p.read(1, 0, 1, 3000, "-", mr.Advertise(0, 3000))
	p.good(1)
	p.check(0, 1, 3000, 2)
	p.fill(0, 0, 5000, 3)
	p.write(2, 0, 0, 5000, "-", mr.Advertise(0, 5000))
	p.good(1)
	e.notified(p)
	e.checkPattern(ours, 3, "what siw wrote")
	e.finish(p)
}

// crc checks whether the two ends agree to use the CRC.
func (t *T) crc(s setting, on bool) {
	e, p := t.connect(s)
	t.exchange(e, p)
	request, reply := t.startup()
	require.Equal(t, on, (request[0]|reply[0])&flagCRC != 0, "CRC in use: Request %x, Reply %x", request, reply)
}

func (t *T) revision(s setting, want byte) {
	e, p := t.connect(s)
	t.exchange(e, p)
	request, reply := t.startup()
	require.Equal(t, [2]byte{want, want}, [2]byte{request[1], reply[1]}, "revisions of Request and Reply")
}

// privateData returns n octets whose values depend on their position.
func privateData(n int) []byte {
	b := make([]byte, n)
	fillPattern(b, n)
	return b
}

func (t *T) ourPrivateData() {
	for _, n := range []int{0, 1, 3, 4, 5, 64, 247, 248} {
		e, p := t.open(), t.peer("")
		s := setting{qc: iwarp.QPConfig{PrivateData: privateData(n)}}
		if t.Role == Initiator {
			p.do("listen %s %d", PeerIP, basePort)
			t.initiate(e, p, s)
			require.Equal(t, hexOf(privateData(n)), hexOf(trim(e.peerPD, n)), "siw's side gets our %d octets", n)
		} else {
			t.respond(e, p, s)
			require.Equal(t, hexOf(privateData(n)), hexOf(trim(e.connectPD, n)), "siw's side gets our %d octets", n)
		}
		e.finish(p)
		p.proc.kill()
	}
	// One octet more is refused before anything is sent.
	e, p := t.open(), t.peer("")
	qc := iwarp.QPConfig{PrivateData: privateData(249)}
	var err error
	if t.Role == Initiator {
		p.do("listen %s %d", PeerIP, basePort)
		_, err = e.rnic.Dial(t.Ctx, "tcp", hostPort(PeerIP), e.config(qc))
	} else {
		e.listen()
		p.do("resolve %s %d", OurIP, basePort)
		answer := make(chan string, 1)
		go func() { answer <- p.try("connect -") }()
		cr, aerr := e.listener.Accept(t.Ctx)
		require.NoError(t, aerr, "Accept")
		_, err = cr.Accept(t.Ctx, e.config(qc))
		require.NotContains(t, <-answer, "ok", "siw's side is not connected")
	}
	require.ErrorContains(t, err, "249 octets of private data", "249 octets are refused here")
}

// trim drops octets that librdmacm may append after n octets.
func trim(b []byte, n int) []byte { return b[:min(len(b), n)] }

func (t *T) siwPrivateData() {
	for _, n := range []int{0, 1, 4, 64, 248, 251} {
		e, p := t.connect(setting{peerPD: privateData(n)})
		got := e.peerPD
		if t.Role == Initiator {
			got = e.qp.PrivateData()
		}
		require.Equal(t, hexOf(privateData(n)), hexOf(got), "we get siw's %d octets", n)
		e.finish(p)
		p.proc.kill()
	}
}

func (t *T) reject() {
	e, p := t.open(), t.peer("")
	why := privateData(17)
	if t.Role == Responder {
		e.listen()
		p.do("resolve %s %d", OurIP, basePort)
		answer := make(chan string, 1)
		go func() { answer <- p.try("connect -") }()
		cr, err := e.listener.Accept(t.Ctx)
		require.NoError(t, err)
		require.NoError(t, cr.Reject(why))
		require.Contains(t, <-answer, "rejected pd="+hexOf(why), "siw's side is told")
		return
	}
	p.do("listen %s %d", PeerIP, basePort)
	result := make(chan error, 1)
	go func() {
		_, err := e.rnic.Dial(t.Ctx, "tcp", hostPort(PeerIP), e.config(iwarp.QPConfig{}))
		result <- err
	}()
	p.do("request")
	p.do("reject %s", hexOf(why))
	var rejected *iwarp.RejectError
	require.ErrorAs(t, <-result, &rejected, "Dial reports the refusal")
	require.Equal(t, hexOf(why), hexOf(rejected.PrivateData), "with siw's private data")
}

// markers requests Markers from siw, which does not support them and refuses.
func (t *T) markers() {
	e, p := t.open(), t.peer("")
	p.do("listen %s %d", PeerIP, basePort)
	_, err := e.rnic.Dial(t.Ctx, "tcp", hostPort(PeerIP), e.config(iwarp.QPConfig{MPA: iwarp.MPAOptions{Markers: true}}))
	require.ErrorIs(t, err, iwarp.ErrRejected, "siw refuses a peer that wants Markers")
	request, reply := t.startup()
	require.NotZero(t, request[0]&flagMarkers, "we asked for them")
	require.Zero(t, reply[0]&flagMarkers, "siw does not")
}

// connections opens and closes 200 connections, one after another.
func (t *T) connections() {
	e, p := t.open(), t.peer("")
	if t.Role == Initiator {
		p.do("listen %s %d", PeerIP, basePort)
	} else {
		e.listen()
	}
	for i := range 200 {
		if t.Role == Initiator {
			t.initiate(e, p, setting{})
		} else {
			t.respondOnce(e, p, setting{})
		}
		require.NoError(t, e.qp.Close(), "connection %d closes", i)
		p.do("disconnected")
		p.do("destroy")
	}
	require.NoError(t, e.pd.Close(), "no queue pair is left")
}
