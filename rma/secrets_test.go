package rma

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestKEY_4_NoKeyIsEverOnTheWire in clear: neither that of the region nor those of a client, nor a
// new one that a client has chosen.
func TestKEY_4_NoKeyIsEverOnTheWire(t *testing.T) {
	var capture bytes.Buffer
	next := octets(0x30, 32)
	secret := octets(0x80, 200)
	var w *pair
	bubble(t, func(t *testing.T) {
		w = start(t, plan{change: func(client, _ *iwarp.QPConfig) { client.Trace = &capture }})
		h, p := w.opens(), w.portal(1)
		require.NoError(t, does(t, p, Command{Op: Write, Handle: h, Buf: secret}).Err)
		require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 200)}).Err)
		require.NoError(t, h.Rekey(w.context(), next, time.Second))
		require.NoError(t, h.Reopen(w.context()))
		require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 200)}).Err)

		synctest.Wait() // for the goroutine that writes the trace
		peer, _ := w.qps[1].Peer()
		found := func(b []byte) bool { return bytes.Contains(capture.Bytes(), b) }
		require.True(t, found(w.client.c.mine.Instance[:]), "the capture has what is sent in clear")
		ring, err := regionkey.NewRing(regionID, testKey)
		require.NoError(t, err)
		_, err = ring.Rekey(time.Now(), next, time.Minute)
		require.NoError(t, err)
		for _, key := range [][]byte{testKey, next, secret} {
			for n := 0; n+16 <= len(key); n++ {
				require.False(t, found(key[n:n+16]), "no sixteen octets of it")
			}
		}
		for e := regionkey.Epoch(1); e <= 2; e++ {
			for op := regionkey.Read; op <= regionkey.Manage; op++ {
				k, err := ring.Derive(time.Now(), e, peer.ID, w.client.c.mine.Instance, op)
				require.NoError(t, err)
				require.False(t, found(k[:16]))
				require.False(t, found(k[16:]))
			}
		}
		for _, text := range []string{fmt.Sprintf("%+v", w.client.c.secret), fmt.Sprintf("%v %+v", h.keys.Load(), *h.keys.Load())} {
			require.NotContains(t, text, fmt.Sprintf("%x", testKey[:8]))
		}
	})
}

// TestKEY_5_IdentityIsThatOfTheHandshake: the same client with the same instance has the same keys on
// another connection, and another client has others, whatever it says.
func TestKEY_5_IdentityIsThatOfTheHandshake(t *testing.T) {
	key := func(t *testing.T) (k regionkey.Key) {
		bubble(t, func(t *testing.T) {
			w, r := plays(t, plan{})
			k = r.rep.Keys[0]
			r.ends(w)
		})
		return k
	}
	a, b := key(t), key(t)
	require.Equal(t, a, b, "another connection, another port")
	old := testName
	defer func() { testName = old }()
	testName = [16]byte([]byte("client-000000002"))
	require.NotEqual(t, a, key(t), "another identity")
}

// TestRMA_8_KeysOfAnotherConnection are worth nothing: the traffic keys are bound to theirs.
func TestRMA_8_KeysOfAnotherConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		_, tag := r.sink(32)
		b := regionkey.Binding{Secret: regionkey.Key{1}, Owner: regionkey.Responder, Dir: regionkey.Initiator, Suite: 1}
		s, err := regionkey.Traffic(r.rep.Key(regionkey.Read), &b)
		require.NoError(t, err)
		r.reads(2, wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}, s)
		r.wantStatus(1, 2)
		r.ends(w)
	})
}

// TestKEY_20_MessagesAreOverwritten when they have been read: there may be keys in them.
func TestKEY_20_MessagesAreOverwritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p := w.opens(), w.portal(1)
		require.NoError(t, does(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)}).Err)
		require.NoError(t, h.Rekey(w.context(), nil, 0))
		synctest.Wait()
		for _, c := range []*conn{w.client.c, w.servedConn()} {
			require.NotEmpty(t, c.receives.mems)
			for i, m := range c.receives.mems {
				require.Equal(t, make([]byte, receiveSize), m, "receive %d", i)
			}
		}
	})
}
