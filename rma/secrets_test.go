package rma

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestKEY_4_NoKeyIsEverOnTheWire: in clear, neither the key of a region, nor the keys of a client, nor a new
// key that a client has chosen.
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
			for of := regionkey.Read; of <= regionkey.Manage; of++ {
				k, err := ring.Derive(time.Now(), e, peer.ID, w.client.c.mine.Instance, of)
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
// another connection, and another client has other keys, whatever it claims.
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

// TestRMA_8_KeysOfAnotherConnection: they are worthless, because traffic keys are bound to their connection.
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

// TestKEY_20_MessagesAreOverwritten: once they have been read, because they may contain keys.
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

// TestKEY_20_KeysAreOverwritten: once they have been reported or used, both those granted and those of a Rekey.
func TestKEY_20_KeysAreOverwritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var none regionkey.Key
		w := start(t, plan{})
		h := w.opens()
		o := &opening{id: regionID, ops: allOps}
		require.NoError(t, w.client.do(w.context(), op.Open, &call{cmd: Command{Op: Open}, opens: o}))
		for i := range o.granted.Keys {
			require.NotEqual(t, none, o.granted.Keys[i])
		}
		require.NoError(t, h.take(o))
		for i := range o.granted.Keys {
			require.Equal(t, none, o.granted.Keys[i], "a key that the client was granted")
		}
		r := &rekeying{secret: regionkey.Key(octets(1, 32))}
		k := &call{cmd: Command{Op: Rekey, Handle: h}, keys: h.keys.Load(), rekeys: r, next: 2}
		require.NoError(t, w.client.do(w.context(), op.Rekey, k))
		require.Equal(t, none, r.secret, "the secret that the client has sent")
		synctest.Wait()

		c := w.servedConn()
		require.Equal(t, none, c.asked.secret, "the secret that the server was sent")
		require.NotEmpty(t, c.requests)
		for i := range c.requests {
			q := &c.requests[i]
			require.Equal(t, none, q.secret, "that of record %d", i)
			require.Equal(t, wire.OpenRep{}, q.reply, "the answer in record %d", i)
		}
		for _, c := range []*conn{w.client.c, c} {
			require.NotEmpty(t, c.outbox.messages)
			for _, m := range c.outbox.messages {
				require.Zero(t, *m, "a message that was sent")
			}
		}
	})
}

// TestKEY_20_KeysOfCallsThatAreGivenUp are overwritten: those that a late answer grants, and the secret of a Rekey that cannot begin.
func TestKEY_20_KeysOfCallsThatAreGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, _ := asks(t, plan{}, 0)
		ctx, cancel := context.WithCancel(w.context())
		end := make(chan error, 1)
		o := &opening{id: regionID, ops: allOps}
		go func() { end <- w.client.do(ctx, op.Open, &call{cmd: Command{Op: Open}, opens: o}) }()
		msg := r.receives(wire.TypeOpenReq)
		cancel()
		require.ErrorIs(t, <-end, context.Canceled)
		r.grants(msg, 1)
		synctest.Wait()
		require.Equal(t, regionkey.Epoch(1), o.granted.Epoch, "the answer has come")
		require.Equal(t, [3]regionkey.Key{}, o.granted.Keys)

		w.close()
		k := &rekeying{secret: regionkey.Key(octets(1, 32))}
		require.Error(t, w.client.do(w.context(), op.Rekey, &call{cmd: Command{Op: Rekey, Handle: h}, keys: h.keys.Load(), rekeys: k, next: 2}))
		require.Equal(t, regionkey.Key{}, k.secret)
	})
}

// TestKEY_19_RekeyForgetsCiphers: those of epochs whose keys are not valid any more, and no others.
func TestKEY_19_RekeyForgetsCiphers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		_, err := w.server.Register(2, NewMemory(make([]byte, 64)), nil)
		require.NoError(t, err)
		other, err := w.client.Open(w.context(), 2, MayWrite)
		require.NoError(t, err)
		h, p := w.opens(), w.portal(1)
		cached := func(want int, why string) {
			t.Helper()
			require.Equal(t, want, w.server.Stats().CachedSealers, why)
		}
		writes := func(h *Handle) { require.NoError(t, does(t, p, Command{Op: Write, Handle: h}).Err) }
		writes(other)
		writes(h)
		cached(2, "one of each region")
		_, err = w.region.Rekey(w.context(), nil, time.Second)
		require.NoError(t, err)
		writes(h)
		cached(2, "the grace lasts")
		require.NoError(t, h.Reopen(w.context()))
		writes(h)
		cached(3, "two epochs are good")
		_, err = w.region.Rekey(w.context(), nil, time.Second)
		require.NoError(t, err)
		cached(2, "the first epoch is over")
		require.NoError(t, h.Reopen(w.context()))
		writes(h)
		cached(3, "two epochs are good")
		require.NoError(t, h.Rekey(w.context(), nil, 0))
		cached(1, "only that of the other region")
		writes(other)
	})
}
