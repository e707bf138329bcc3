package op

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hostile is one machine whose peer sends anything. The octets of an input decide what happens; the requests
// of the machine to its own side are carried out correctly.
type hostile struct {
	t       *testing.T
	in      []byte
	now     time.Time
	role    Role
	client  *Client
	server  *Server
	ids     []ID // that messages may name
	active  map[ID]bool
	grants  map[ID]grantState
	records map[int]ID
	jobs    []Action // to be finished
}

func (h *hostile) byte() int {
	if len(h.in) == 0 {
		return 0
	}
	b := h.in[0]
	h.in = h.in[1:]
	return int(b)
}

func (h *hostile) id() ID {
	b := h.byte()
	if b >= 240 || len(h.ids) == 0 {
		return NewID(uint16(b%8), uint64(1+b%16))
	}
	return h.ids[b%len(h.ids)]
}

func (h *hostile) message() *Message {
	b := h.byte()
	m := &Message{Type: Type(b % 14), Op: h.id(), Class: Class(b >> 7), Length: 100, Timeout: 50 * ms, TTL: 50 * ms}
	flags := h.byte()
	m.Invalidated, m.Source = Role(flags%4), flags&4 != 0
	if flags>>4 == 0 {
		m.Length, m.Salt = 99, salt
	}
	m.Code, m.Reason = uint16(1+flags%9), Reason(flags%5)
	if flags&0x88 == 0x88 {
		m.Verdict = Verdict{Outcome(1 + flags%2), 1}
	}
	return m
}

// event chooses one of the events that both machines have.
func (h *hostile) event(name Do, id ID, b int) []Action {
	c, s := h.client, h.server
	v := [...]Verdict{{}, {NACK, Closing}, {RemoteAuth, BadKey}, {Outcome: RemoteError}}[b%4]
	switch {
	case name == OpenData && c != nil:
		return c.Opened(nil, h.now, id, b%4 > 0)
	case name == OpenData:
		return s.Opened(nil, h.now, id, b%4 > 0)
	case name == Revoke && c != nil:
		return c.Revoked(nil, h.now, id)
	case name == Revoke:
		return s.Revoked(nil, h.now, id)
	case name == Seal:
		if b%4 == 0 {
			return c.Unsent(nil, h.now, id)
		}
		return c.Sealed(nil, h.now, id)
	case name == Serve:
		return s.Served(nil, h.now, id, v)
	case name == SendPull:
		return s.Pulled(nil, h.now, id, b%4 > 0)
	default:
		return s.Copied(nil, h.now, id, CopyResult(b%4))
	}
}

// machine is what both machines have in common.
type machine interface {
	Receive([]Action, time.Time, *Message) []Action
	Granted([]Action, time.Time, ID) []Action
	Expired([]Action, time.Time, ID) []Action
	Refused([]Action, time.Time, ID) []Action
	Tick([]Action, time.Time) []Action
	Close([]Action, time.Time) []Action
	Lost([]Action, time.Time) []Action
	Deadline() (time.Time, bool)
	Idle() bool
}

func (h *hostile) run(m machine) {
	for len(h.in) > 0 {
		switch b := h.byte(); {
		case b < 40 && h.client != nil:
			h.post(b)
		case b < 150:
			if k := h.message(); k.Role() == h.role {
				if h.server != nil && len(h.ids) < 16 {
					h.ids = append(h.ids, k.Op)
				}
				h.act(m.Receive(nil, h.now, k))
			}
		case b < 180:
			h.decide(m, h.byte())
		case b < 225:
			h.finish(h.byte())
		case b < 250:
			h.now = h.now.Add(time.Duration(h.byte()) * ms / 4)
			h.act(m.Tick(nil, h.now))
		case b == 250:
			h.act(m.Close(nil, h.now))
		case b == 251:
			h.act(m.Lost(nil, h.now))
		}
	}
	h.end(m)
}

// end lets everything end.
func (h *hostile) end(m machine) {
	h.act(m.Lost(nil, h.now))
	for range 100 {
		h.finish(1)
		h.decide(m, 0)
		if due, ok := m.Deadline(); ok {
			h.now = due
			h.act(m.Tick(nil, h.now))
		}
	}
	require.True(h.t, m.Idle())
	require.Empty(h.t, h.active)
	require.Empty(h.t, h.grants)
	require.Empty(h.t, h.records)
	_, ok := m.Deadline()
	require.False(h.t, ok)
}

func (h *hostile) post(b int) {
	cmd := [...]Command{getCmd, putCmd, sourceCmd, directCmd, {Kind: Open}, {Kind: Rekey, Class: Bulk}}[b%6]
	actions, id, err := h.client.Post(nil, h.now, cmd)
	if err != nil {
		return
	}
	h.ids = append(h.ids, id)
	h.active[id] = true
	h.act(actions)
}

// decide lets the window decide about an operation.
func (h *hostile) decide(m machine, b int) {
	for _, id := range slices.Sorted(maps.Keys(h.grants)) {
		switch {
		case h.grants[id] != grantQueued:
			continue
		case b < 200:
			h.grants[id] = grantHad
			h.act(m.Granted(nil, h.now, id))
		case b < 230:
			delete(h.grants, id)
			h.act(m.Expired(nil, h.now, id))
		default:
			delete(h.grants, id)
			h.act(m.Refused(nil, h.now, id))
		}
		return
	}
}

func (h *hostile) finish(b int) {
	if len(h.jobs) == 0 {
		return
	}
	i := b % len(h.jobs)
	job := h.jobs[i]
	h.jobs = append(h.jobs[:i], h.jobs[i+1:]...)
	if job.Do == Copy && b%4 != int(CopyLate) && !h.now.Before(job.Before) {
		b = int(CopyLate)
	}
	h.act(h.event(job.Do, job.Op, b))
}

// act performs an action of the machine, and checks that it is allowed.
func (h *hostile) act(actions []Action) {
	for _, a := range actions {
		switch a.Do {
		case Enqueue:
			require.NotContains(h.t, h.grants, a.Op)
			h.grants[a.Op] = grantQueued
			h.begin(a)
		case Cancel:
			require.Equal(h.t, grantQueued, h.grants[a.Op])
			delete(h.grants, a.Op)
		case Hold:
			require.Equal(h.t, grantHad, h.grants[a.Op])
			h.grants[a.Op] = grantHeld
		case Release:
			require.GreaterOrEqual(h.t, h.grants[a.Op], grantHad)
			delete(h.grants, a.Op)
		case SendRequest:
			h.begin(a)
		case Serve:
			h.begin(a)
			h.jobs = append(h.jobs, a)
		case OpenData, Revoke, Seal:
			h.jobs = append(h.jobs, a)
		case Copy:
			require.True(h.t, h.now.Before(a.Before))
			h.jobs = append(h.jobs, a)
		case SendPull:
			if a.Source {
				h.jobs = append(h.jobs, a)
			}
		case Complete:
			require.True(h.t, h.active[a.Op])
			delete(h.active, a.Op)
		case Free:
			require.Equal(h.t, a.Op, h.records[a.Record])
			delete(h.records, a.Record)
		default:
		}
	}
}

// begin checks that a record belongs to one operation only.
func (h *hostile) begin(a Action) {
	if id, ok := h.records[a.Record]; ok {
		require.Equal(h.t, id, a.Op)
	}
	h.records[a.Record] = a.Op
}

func runHostile(t *testing.T, in []byte) {
	for _, role := range []Role{ClientRole, ServerRole} {
		h := &hostile{
			t: t, in: in, now: epoch, role: role,
			active: make(map[ID]bool), grants: make(map[ID]grantState), records: make(map[int]ID),
		}
		if role == ClientRole {
			h.client = NewClient(clientConfig(), epoch)
			h.run(h.client)
		} else {
			h.server = NewServer(serverConfig(), epoch)
			h.run(h.server)
		}
	}
}

// FuzzHostilePeer: whatever the peer sends, each operation is completed once, each grant is returned
// once, and nothing is left.
func FuzzHostilePeer(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(hostileInput(seed))
	}
	f.Fuzz(runHostile)
}

func hostileInput(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	in := make([]byte, 20+r.IntN(400))
	for i := range in {
		in[i] = byte(r.UintN(256))
	}
	return in
}

func TestRMA_42_HostilePeer(t *testing.T) {
	for seed := range uint64(5_000) {
		runHostile(t, hostileInput(seed))
	}
}
