package rma

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// sealedAs are other operations for which a blob may have been sealed.
var sealedAs = map[string]func(a *regionkey.AAD){
	"another operation": func(a *regionkey.AAD) { a.OpID++ },
	"another offset":    func(a *regionkey.AAD) { a.Offset += 16 },
	"another region":    func(a *regionkey.AAD) { a.Region++ },
	"another direction": func(a *regionkey.AAD) { a.Dir = 3 - a.Dir },
	"another epoch":     func(a *regionkey.AAD) { a.Epoch++ },
	"another length":    func(a *regionkey.AAD) { a.Length-- },
	"another kind":      func(a *regionkey.AAD) { a.Op = 3 - a.Op },
	"another suite":     func(a *regionkey.AAD) { a.Suite = 3 - a.Suite },
	"another salt":      func(a *regionkey.AAD) { a.Salt[15]++ },
}

// TestRMA_15_KEY_11_12_ReadOfAnotherBlob: the read fails, under the same key and number, and the buffer is unchanged.
func TestRMA_15_KEY_11_12_ReadOfAnotherBlob(t *testing.T) {
	for name, change := range sealedAs {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r, h, p := asks(t, plan{}, 0)
				buf := bytes.Repeat([]byte{0xa5}, 16)
				posts(t, p, Command{Op: Read, Handle: h, Off: 4096, Buf: buf})
				msg := r.receives(wire.TypeReadReq)
				var q wire.ReadReq
				require.NoError(t, q.Parse(msg))
				a := regionkey.AAD{Op: regionkey.Read, Dir: regionkey.Responder, Suite: r.suite, Region: q.Region, Epoch: q.Epoch, Length: q.Length, Offset: q.Offset, OpID: uint64(id(msg)), DataCtr: uint64(id(msg)) & 0xffff}
				change(&a)
				blob := r.sealer(regionkey.Read, regionkey.Responder).Seal(nil, octets(1, 16), a.DataCtr, a.Append(nil))
				r.serves(msg, octets(1, 16), func(b []byte) { copy(b, blob) })
				end := p.ended(t)
				var e *OpError
				require.ErrorAs(t, end.Err, &e)
				require.Equal(t, []any{RemoteAuth, BadData}, []any{e.Outcome, e.Reason})
				require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), buf)
				w.close()
			})
		})
	}
}

// TestRMA_15_KEY_11_WriteOfAnotherBlob: the write is refused, and the region is unchanged.
func TestRMA_15_KEY_11_WriteOfAnotherBlob(t *testing.T) {
	for name, change := range sealedAs {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r := plays(t, plan{})
				pull := r.pulls(2, 16)
				a := regionkey.AAD{Op: regionkey.Write, Dir: regionkey.Initiator, Suite: r.suite, Region: regionID, Epoch: 1, Length: 16, OpID: 2, Salt: pull.Salt}
				change(&a)
				blob := r.sealer(regionkey.Write, regionkey.Initiator).Seal(nil, octets(1, 16), 0, a.Append(nil))
				r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, func(b []byte) { copy(b, blob) })
				r.wantStatus(op.RemoteAuth, op.BadData)
				w.wantRegion(make([]byte, 16))
				require.EqualValues(t, 1, w.server.Stats().AuthFailures)
				log := w.server.AuditLog()
				require.Equal(t, "bad data", log[len(log)-1].Reason)
				r.ends(w)
			})
		})
	}
}

// wantRegion requires the region to begin with some octets, followed by zeros.
func (w *pair) wantRegion(want []byte) {
	w.Helper()
	w.mem.View(func(b []byte) {
		require.Equal(w, want, b[:len(want)])
		require.Equal(w, len(b)-len(want), bytes.Count(b[len(want):], []byte{0}))
	})
}

// TestRMA_7_13_14_HopThreeAgain repeats a part of hop three after the end of a write: its message, a new message for
// the same operation, or its octets.
func TestRMA_7_13_14_HopThreeAgain(t *testing.T) {
	for name, again := range map[string]func(r *raw, pull wire.Pull, data []byte){
		"not the next message": func(r *raw, _ wire.Pull, data []byte) { r.sends(data) },
		"data that nothing has asked for": func(r *raw, _ wire.Pull, _ []byte) {
			m := wire.Data{Length: 16}
			r.sends(m.Append(nil, r.header(2), r.out))
		},
		"invalid STag": func(r *raw, pull wire.Pull, _ []byte) {
			to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: 32}
			_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(8192, 32))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r := plays(t, plan{})
				pull := r.pulls(2, 16)
				r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
				data := bytes.Clone(r.mem[:wire.TypeData.Size()])
				r.receives(wire.TypeWriteDone)
				w.mem.Update(func(b []byte) { copy(b, "what came later!") })
				again(r, pull, data)
				r.wantEnd(w, name)
				w.wantRegion([]byte("what came later!"))
				w.wantNothingLeft()
			})
		})
	}
}

// TestRMA_13_PlainAccessToARegion: it is not possible, because no STag names the memory of a region. The STags of the
// server name memory to which the peer has no right.
func TestRMA_13_PlainAccessToARegion(t *testing.T) {
	known := func(r *raw, c *conn) []stag.STag {
		c.mu.Lock()
		defer c.mu.Unlock()
		return []stag.STag{c.receives.mrs[0].STag(), c.blobs.mrs[0].STag()}
	}
	for name, tags := range map[string]func(r *raw, c *conn) []stag.STag{
		"any STag": func(*raw, *conn) []stag.STag {
			rnd := rand.New(rand.NewPCG(1, 2))
			return []stag.STag{stag.STag(rnd.Uint32()), stag.STag(rnd.Uint32()), 0}
		},
		"one of the server's": known,
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 4 {
				bubble(t, func(t *testing.T) {
					w, r := plays(t, plan{})
					w.mem.Update(func(b []byte) { copy(b, "sixteen octets!!") })
					_, sink := r.sink(32)
					r.reads(2, wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(sink), TTL: time.Second}, r.sealer(regionkey.Read, regionkey.Initiator))
					r.receives(wire.TypeReadDone)
					all := tags(r, w.servedConn())
					to := iwarp.RemoteBuffer{STag: all[i/2], Len: 16}
					want := &iwarp.TerminateError{Layer: 1, Type: 1, Remote: true}
					if i%2 == 0 {
						_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(0, 16))
					} else {
						want = &iwarp.TerminateError{Layer: 0, Type: 1, Remote: true}
						_ = r.qp.RDMARead(r.context(), r.mr.Slice(0, 16), to)
					}
					<-r.qp.Done()
					e := r.qp.Terminated()
					require.NotNil(t, e)
					if name != "any STag" { // it is valid, but the peer may not use it
						want.Layer, want.Code = e.Layer, e.Code
						require.NotZero(t, e.Code)
					}
					require.Equal(t, want, e)
					require.Error(t, <-w.served)
					w.served = nil
					w.wantRegion([]byte("sixteen octets!!"))
					require.NotContains(t, string(r.mem), "sixteen octets!!")
					w.wantNothingLeft()
				})
			}
		})
	}
}

// TestRMA_13_39_SinkOfAnotherConnection: a Write to it ends only the connection on which it arrives.
func TestRMA_13_39_SinkOfAnotherConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		other := w.another()
		other.serve()
		s := newRaw(other)
		s.greets()
		pull := r.pulls(2, 16)
		to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: 32}
		_ = s.qp.RDMAWrite(s.context(), to, s.mr.Slice(0, 32))
		<-s.qp.Done()
		require.NotNil(t, s.qp.Terminated())
		require.Error(t, <-other.served)
		r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
		r.receives(wire.TypeWriteDone)
		w.wantRegion(octets(1, 16))
		r.ends(w)
	})
}

// TestRMA_16_ManyPeersPushAtOnce: the octets that the server has requested fit into its window at all times.
func TestRMA_16_ManyPeersPushAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const peers, window, each = 64, 3 * (4096 + 16), 4
		w := newPair(t, plan{server: ServerConfig{Solicitor: fixed(t, window), Depth: each, Dispatch: [2]time.Duration{-1, -1}}, client: ClientConfig{OpTimeout: time.Minute, MaxSlots: each}})
		all := []*pair{w}
		for range peers - 1 {
			all = append(all, w.another())
		}
		var portals []*Portal
		for i, p := range all {
			p.serve()
			var err error
			p.client, err = NewClient(w.context(), p.qps[0], &p.plan.client)
			require.NoError(t, err)
			h, portal := p.opens(), p.portal(each)
			portals = append(portals, portal)
			for j := range each {
				n := i*each + j
				posts(t, portal, Command{Op: Write, Handle: h, Off: uint64(n * 4096), Buf: bytes.Repeat([]byte{byte(1 + n)}, 4096), Class: solicit.Class(j % 2)})
			}
		}
		for _, portal := range portals {
			for range each {
				require.NoError(t, portal.ended(t).Err)
			}
		}
		s := w.server.solicitor.Stats()
		require.LessOrEqual(t, s.MaxGranted, int64(window))
		require.Positive(t, s.MaxGranted)
		require.Zero(t, s.Granted)
		for _, p := range all {
			require.NoError(t, p.client.Close())
			require.NoError(t, <-p.served)
			p.served = nil
		}
		w.mem.View(func(b []byte) {
			for n := range peers * each {
				require.Equal(t, 4096, bytes.Count(b[n*4096:(n+1)*4096], []byte{byte(1 + n)}))
			}
		})
	})
}

// TestRMA_24_26_39_PeerThatNeverAnswers: its operations time out, and the window gets their octets back after
// Linger. Until then operations with other peers use the rest.
func TestRMA_24_26_39_PeerThatNeverAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		window := fixed(t, 3*(4096+16))
		w, r, h, p := asks(t, plan{client: ClientConfig{Solicitor: window, OpTimeout: time.Second}}, 250*time.Millisecond)
		good := start(t, plan{client: ClientConfig{Solicitor: window}})
		goodHandle, goodPortal := good.opens(), good.portal(1)
		proceeds := func() {
			t.Helper()
			require.NoError(t, does(t, goodPortal, Command{Op: Read, Handle: goodHandle, Buf: make([]byte, 4096)}).Err)
		}
		for range 2 {
			posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 4096)})
			r.receives(wire.TypeReadReq)
			proceeds()
		}
		for range 2 {
			require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		}
		proceeds()
		require.EqualValues(t, 2*(4096+16), window.Stats().Granted, "the octets may still come")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, window.Stats().Granted)
		proceeds()
		require.NoError(t, r.qp.Abort())
		<-w.client.Done()
		require.ErrorIs(t, w.client.Err(), net.ErrClosed)
		w.close()
	})
}

// TestKEY_7_8_CacheOfOneSealer: keys that are derived again and again never seal twice with the same number.
func TestKEY_7_8_CacheOfOneSealer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{server: ServerConfig{CacheSize: 1}})
		_, err := w.server.Register(2, NewMemory(make([]byte, 64)), &RegionOptions{Key: testKey})
		require.NoError(t, err)
		w.serve()
		r := newRaw(w)
		r.greets()
		regions := []uint64{regionID, 2}
		var sealers [2]*regionkey.Sealer
		for i, region := range regions {
			r.opens(op.ID(1+i), region, wire.OpRead)
			sealers[i] = r.sealer(regionkey.Read, regionkey.Initiator)
		}
		for n := range 20 {
			_, tag := r.sink(32)
			r.reads(op.ID(10+n), wire.ReadReq{Region: regions[n%2], Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}, sealers[n%2])
			var done wire.ReadDone
			require.NoError(t, done.Parse(r.receives(wire.TypeReadDone)))
			require.EqualValues(t, n, done.DataCtr)
			require.LessOrEqual(t, w.server.Stats().CachedSealers, 1)
		}
		r.ends(w)
	})
}
