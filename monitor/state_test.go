package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

var update = flag.Bool("update", false, "write what is in testdata")

// A filler gives each field another value.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		f.n++
		v.Set(reflect.ValueOf(time.Unix(int64(f.n), 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.String:
		f.n++
		v.SetString("text " + string(rune('a'+f.n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		f.n++
		v.SetInt(int64(f.n))
	default:
		f.n++
		v.SetUint(uint64(f.n % 256))
	}
}

// TestNamesInJSONAreStable: a field that is added needs another golden file, and no field may be removed.
func TestNamesInJSONAreStable(t *testing.T) {
	var s State
	new(filler).fill(reflect.ValueOf(&s).Elem())
	got, err := json.MarshalIndent(&s, "", "  ")
	require.NoError(t, err)
	got = append(got, '\n')
	if *update {
		require.NoError(t, os.WriteFile("testdata/state.json", got, 0o644))
	}
	want, err := os.ReadFile("testdata/state.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test ./monitor -update, if no name has changed or gone")

	var back State
	require.NoError(t, json.Unmarshal(got, &back))
	require.Equal(t, s, back)
}

// TestReadersLeaveOutWhatTheyDoNotKnow, names of counts as well.
func TestReadersLeaveOutWhatTheyDoNotKnow(t *testing.T) {
	var s State
	require.NoError(t, json.Unmarshal([]byte(`{"new":1,"rnics":[{"setups_refused":{"new":1,"tls":2},"paths":[{"ended":{"new":1}}]}]}`), &s))
	require.Equal(t, counters.Setups{counters.CauseTLS: 2}, s.RNICs[0].Refused)
	require.Error(t, json.Unmarshal([]byte(`{"rnics":[{"setups_refused":[1]}]}`), &s))
}

// TestStateHasWhatQPsCount, of the QPs that exist, and keeps their IDs.
func TestStateHasWhatQPsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cpd := rnictest.Open(t, &iwarp.Config{Latency: true})
		server, spd := rnictest.Open(t, nil)
		h := NewHandler(client, server)
		qps := rnictest.Pairs(t, 2, client, server, cpd, spd)
		mr, err := spd.RegisterMR(make([]byte, 100), stag.LocalWrite|stag.RemoteRead, nil)
		require.NoError(t, err)
		_, err = qps[1].Remote(mr.Advertise(0, 100)).ReadAt(make([]byte, 100), 0)
		require.NoError(t, err)
		synctest.Wait()

		first := state(t, h)
		require.Equal(t, os.Getpid(), first.Process.PID)
		require.Len(t, first.RNICs, 2)
		require.Equal(t, 1, first.RNICs[1].ID)
		mine := first.RNICs[0]
		require.Len(t, mine.QPs, 2)
		require.Equal(t, "RDMA Read", mine.Paths[0].Latency[0].Op)
		require.EqualValues(t, 2, mine.Paths[0].Made)
		byRemote := make(map[string]QP)
		for _, q := range mine.QPs {
			byRemote[q.Local] = q
		}
		used := byRemote[qps[1].LocalAddr().String()]
		require.Equal(t, qps[1].RemoteAddr().String(), used.Remote)
		require.Equal(t, "RTS", used.State)
		require.Equal(t, "pipe", used.Path)
		require.EqualValues(t, 100, used.Received.ReadResponse.Octets)
		require.Nil(t, used.TCP)
		require.Nil(t, used.Peer)

		require.NoError(t, qps[0].Close())
		newcomer := rnictest.Pairs(t, 1, client, server, cpd, spd)[0]
		time.Sleep(freshness)
		second := state(t, h)
		require.Greater(t, second.Uptime, first.Uptime)
		require.Len(t, second.RNICs[0].QPs, 2)
		require.Equal(t, used.ID, second.RNICs[0].QPs[0].ID, "it is the same connection")
		last := second.RNICs[0].QPs[1]
		require.Equal(t, newcomer.LocalAddr().String(), last.Local)
		for _, r := range first.RNICs {
			for _, q := range r.QPs {
				require.Greater(t, last.ID, q.ID, "no ID comes again")
			}
		}
		require.Len(t, h.cards[0].ids, 2, "those of QPs that have ended are not kept")
	})
}

// hostilePeer is a name that a client with a key of its own has chosen.
var hostilePeer = [16]byte{'<', 'b', '>', 0x1b, '[', '0', 'm'}

// auths returns Authenticators of a server and of a client with that name.
func auths(t *testing.T) (server, client iwarp.Authenticator) {
	t.Helper()
	auth := func(id [16]byte, k cm.Key) *cm.Auth {
		ring, err := cm.NewRing(k)
		require.NoError(t, err)
		a, err := cm.New(&cm.Config{Ring: ring, ID: id})
		require.NoError(t, err)
		return a
	}
	master := bytes.Repeat([]byte{7}, 32)
	return auth([16]byte{'s'}, cm.Key{ID: 1, Secret: master, Derive: true, Group: "lab"}),
		auth(hostilePeer, cm.Key{ID: 1, Secret: cm.ClientKey(master, 1, hostilePeer), Group: "lab", Primary: true})
}

// TestStateNamesThePeer that was authenticated, and contains what the kernel reports about its connection.
func TestStateNamesThePeer(t *testing.T) {
	client, cpd := rnictest.Open(t, nil)
	server, spd := rnictest.Open(t, nil)
	serverAuth, clientAuth := auths(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := server.Listen(ctx, "tcp", "127.0.0.1:0", &iwarp.ListenConfig{Auth: serverAuth})
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: spd})
		}
		accepted <- err
	}()
	qp, err := client.Dial(ctx, "tcp", l.Addr().String(), &iwarp.QPConfig{PD: cpd, Auth: clientAuth})
	require.NoError(t, err)
	require.NoError(t, <-accepted)

	q := state(t, NewHandler(server)).RNICs[0].QPs[0]
	require.Equal(t, qp.LocalAddr().String(), q.Remote)
	require.Equal(t, qp.RemoteAddr().String(), q.Local)
	require.Equal(t, "tcp", q.Network)
	require.Len(t, q.Peer.ID, 64)
	require.Equal(t, "lab", q.Peer.Group)
	require.Equal(t, `<b>\x1b[0m`, q.Peer.Name)
	require.EqualValues(t, cm.KindDerived, q.Peer.Kind)
	require.Equal(t, `lab/<b>\x1b[0m`, q.PeerText())
	if _, told := qp.TCP(); told {
		require.Positive(t, q.TCP.RTT)
	}
}

// TestTextsArePrintable, whatever a program, or a peer, calls itself.
func TestTextsArePrintable(t *testing.T) {
	require.Equal(t, `10.0.0.1:80 "x"`, printable(`10.0.0.1:80 "x"`))
	require.Equal(t, `a\n\x1b[0m\u202e\u00fc<b>\xff`, printable("a\n\x1b[0m\u202e\u00fc<b>\xff"))
	p := &iwarp.Peer{Kind: iwarp.PeerCertificate, Name: [16]byte{'a', 0xff}}
	require.Equal(t, "61ff0000000000000000000000000000", nameOf(p))
	p.Kind = 1
	require.Equal(t, `a\xff`, nameOf(p))
}
