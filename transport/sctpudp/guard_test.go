package sctpudp

import (
	"encoding/binary"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// guarded runs a test with a victim, in a bubble.
func guarded(t *testing.T, test func(x *victim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newVictim(t)
		defer x.l.End()
		test(x)
	})
}

// session is one for which the peer asks on a stream, and which the victim accepts.
func (x *victim) session(stream uint16) *sctp.Conn {
	x.says(victimTag, data(flagsMessage, x.tsn(), stream, sctp.PPIDControl, octets("0000 0001")))
	r, err := x.l.Accept()
	require.NoError(x, err)
	c, _, err := r.Accept(sctp.Options{}, 1, 1, nil)
	require.NoError(x, err)
	synctest.Wait()
	return c
}

// tsn returns the TSN of the peer's next chunk.
func (x *victim) tsn() uint32 {
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	return x.a.arrived.next
}

// sack acknowledges all that the victim has sent, with room for so many octets.
func (x *victim) sack(window uint32) { x.sackBefore(0, window) }

// sackBefore acknowledges all but the last few chunks.
func (x *victim) sackBefore(last, window uint32) {
	x.a.mu.Lock()
	next := x.a.flight.next
	x.a.mu.Unlock()
	b := binary.BigEndian.AppendUint32(nil, next-last-1)
	b = binary.BigEndian.AppendUint32(b, window)
	x.says(victimTag, appendChunk(nil, chunkSack, 0, append(b, 0, 0, 0, 0)))
}

// chunks takes the chunks of one kind that the victim has sent.
func (x *victim) chunks(kind byte) (all []chunk) {
	synctest.Wait()
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	for _, p := range x.v.packets {
		require.True(x, valid(p))
		for c, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
			if c, rest = split(rest); c.kind() == kind {
				all = append(all, c)
			}
		}
	}
	x.v.packets = nil
	return all
}

func (x *victim) failure() error {
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	return x.a.failure
}

func TestSCTP_40_43_DataThatNoPeerMaySend(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"an ordered message":          {data(3, 0, 3, 16, octets("0000 41")), errOrdered},
		"a piece of next to nothing":  {data(6, 0, 3, 16, make([]byte, minPiece-1)), errPieces},
		"a stream that is not there":  {data(7, 0, 8, 16, octets("0000 41")), errStream},
		"a piece that fills a packet": {data(6, 0, 3, 16, make([]byte, minPiece)), nil},
		"the last piece, a short one": {data(5, 0, 3, 16, octets("41")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.says(victimTag, c.data)
				require.Equal(t, c.want, x.failure())
				require.Len(t, x.chunks(chunkAbort), map[bool]int{true: 1}[c.want != nil])
			})
		})
	}
}

// TestSCTP_40_MessageThatIsLongerThanAnyPacket ends the association, whether a session has its stream or none can any more:
// nothing takes it out of pion, nor what comes behind it.
func TestSCTP_40_MessageThatIsLongerThanAnyPacket(t *testing.T) {
	for _, dead := range []bool{false, true} {
		guarded(t, func(x *victim) {
			c := x.session(3)
			stream := uint16(3)
			if dead {
				stream = 4
				x.says(victimTag, data(flagsMessage, x.tsn(), stream, sctp.PPIDControl, octets("0000 0004"))) // no Initiate
			}
			require.NoError(t, x.failure())
			piece := make([]byte, maxPacket/2)
			x.says(victimTag, data(6, x.tsn(), stream, sctp.PPIDSegment, piece))
			x.says(victimTag, data(4, x.tsn(), stream, sctp.PPIDSegment, piece))
			x.says(victimTag, data(5, x.tsn(), stream, sctp.PPIDSegment, piece))
			require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), errLong)
			require.Equal(t, errLong, x.failure())
			require.Len(t, x.chunks(chunkAbort), 1)
		})
	}
}

// TestSCTP_51_NothingIsTakenBehindTheEnd: an ABORT removes the association at once (RFC 9260 section 9.1), and so does an error. What had come after it
// by then is not taken.
func TestSCTP_51_NothingIsTakenBehindTheEnd(t *testing.T) {
	for name, end := range map[string][]byte{
		"an ABORT": appendChunk(nil, chunkAbort, 0, nil),
		"an error": data(0, 0, 3, 16, octets("0000 41")),
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				guarded(t, func(x *victim) {
					x.session(3)
					next := x.tsn()
					x.a.mu.Lock() // so that all are in the queue when the first one is looked at
					for i := range uint32(9) {
						b := new([maxPacket]byte)
						address(b[:], ports{7, 7}, victimTag)
						chunk := data(flagsMessage, next+i-1, 3, 16, octets("0000 41"))
						if i == 0 {
							chunk = end
						}
						require.True(x, x.a.push(b, headerSize+copy(b[headerSize:], chunk)))
					}
					x.a.mu.Unlock()
					synctest.Wait()
					require.Error(t, x.failure())
					require.Equal(t, next, x.tsn())
				})
			}
		})
	}
}

// TestEveryHeartbeatSaysWhatItIsFor: Linux aborts an association for one that does not
// (RFC 9260 section 3.3.5), and an idle pion sends such.
func TestEveryHeartbeatSaysWhatItIsFor(t *testing.T) {
	guarded(t, func(x *victim) {
		x.session(3)
		x.sack(1 << 20)
		probe := packet(ports{pionPort, pionPort}, 0, chunkHeartbeat, 0, nil)
		n, err := (&conn{a: x.a}).Write(probe)
		require.NoError(t, err)
		require.Equal(t, len(probe), n)
		time.Sleep(x.a.e.cfg.PeerTimeout - time.Second)
		beats := x.chunks(chunkHeartbeat)
		require.NotEmpty(t, beats, "an idle association has some")
		for _, c := range beats {
			require.Greater(t, len(c), chunkHeaderSize)
		}
	})
}

// TestWhatIsNotReadIsBounded: by messages, as each costs more than its octets; and what
// was refused is taken when there is room again.
func TestWhatIsNotReadIsBounded(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		first := x.tsn()
		ssn := uint16(1)
		for range maxUnread/256 + 4 {
			var b []byte
			for i := range uint32(256) {
				b = append(b, data(flagsMessage, first+uint32(ssn)-1+i, 3, 16, binary.BigEndian.AppendUint16(nil, ssn+uint16(i)))...)
			}
			ssn += 256
			x.says(victimTag, b)
		}
		require.EqualValues(t, maxUnread, x.a.room.messages.Load())
		require.Equal(t, first+maxUnread, x.tsn())
		sacks := x.chunks(chunkSack)
		require.Equal(t, first+maxUnread-1, sacks[len(sacks)-1].tsn(), "what was refused is not acknowledged")

		require.NoError(t, placertest.Receive(c, &placertest.Collector{Want: maxUnread}))
		require.Zero(t, x.a.room.messages.Load())
		require.Zero(t, x.a.room.octets.Load())
		require.Len(t, x.chunks(chunkSack), 1, "the peer hears, once, that there is room")
		x.says(victimTag, data(flagsMessage, first+maxUnread, 3, 16, binary.BigEndian.AppendUint16(nil, maxUnread+1)))
		require.NoError(t, placertest.Receive(c, &placertest.Collector{Want: 1}))
	})
}

// TestRoomIsToldOf: a peer that was told of little hears, without asking, that there is
// more.
func TestRoomIsToldOf(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		sent := 0
		for x.a.room.octets.Load() < receiveBuffer {
			sent++
			x.says(victimTag, data(flagsMessage, x.tsn(), 3, 16, append(binary.BigEndian.AppendUint16(nil, uint16(sent)), make([]byte, 8000)...)))
		}
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, 16, octets("ffff 41")))
		sacks := x.chunks(chunkSack)
		require.Zero(t, sacks[len(sacks)-1].window())

		require.NoError(t, placertest.Receive(c, &placertest.Collector{Want: sent}))
		sacks = x.chunks(chunkSack)
		require.Len(t, sacks, 1, "once")
		require.GreaterOrEqual(t, sacks[0].window(), uint32(receiveBuffer/2))
	})
}

// TestIBitAsksForAnAcknowledgement: the I bit is set on a chunk that is under way alone, and on
// one after which the peer's window, or our bound on unacknowledged octets, lets nothing follow.
func TestIBitAsksForAnAcknowledgement(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		x.sack(40_000)
		x.chunks(chunkData)
		send := func(n int) {
			require.True(t, c.Append(make([]byte, n), nil, true))
			require.NoError(t, c.Flush(true))
			synctest.Wait()
		}
		immediate := func() (bits []bool) {
			for _, k := range x.chunks(chunkData) {
				bits = append(bits, k[1]&flagImmediate != 0)
			}
			return bits
		}
		send(100)
		require.Equal(t, []bool{true}, immediate(), "it is alone")
		send(100)
		require.Equal(t, []bool{false}, immediate())
		x.sack(20_000)
		for range 4 {
			send(8000)
		}
		require.Equal(t, []bool{true, true}, immediate(), "alone; and there is no room for a third one")
		x.sack(0)
		require.Equal(t, []bool{true}, immediate(), "a probe of a window of nothing")
	})
}

// TestSackIsMadePlain: of gaps that overlap pion would walk each.
func TestSackIsMadePlain(t *testing.T) {
	for _, c := range []struct{ sack, want string }{
		{"03000010 00000001 00000002 0000 0000", "03000010 00000001 00000002 0000 0000"},
		{"03000014 00000001 00000002 0000 0001 00000001", "03000010 00000001 00000002 0000 0000"},
		{"03000018 00000001 00000002 0002 0000 00020003 00050005", "03000018 00000001 00000002 0002 0000 00020003 00050005"},
		{"03000018 00000001 00000002 0002 0000 00020005 00050007", "03000014 00000001 00000002 0001 0000 00020005"},
		{"03000018 00000001 00000002 0002 0000 00030002 00050007", "03000010 00000001 00000002 0000 0000"},
		{"03000018 00000001 00000002 ffff ffff 00020002 00050007", "03000018 00000001 00000002 0002 0000 00020002 00050007"},
	} {
		require.Equal(t, octets(c.want), []byte(plain(chunk(octets(c.sack)))))
	}
	require.Nil(t, plain(chunk(octets("0300000c 00000001 00000002"))))
	many := octets("03000000 00000001 00000002 1000 0000")
	for i := range 0x1000 {
		many = binary.BigEndian.AppendUint32(many, uint32(2*i+2)<<16|uint32(2*i+2))
	}
	require.Len(t, plain(many), 16+4*maxGaps)
}

// TestRecordOfTSNs: against a map, across the end of the numbers.
func TestRecordOfTSNs(t *testing.T) {
	const first = 1<<32 - 5000
	rnd := rand.New(rand.NewPCG(1, 2))
	r, seen := record{next: first}, make(map[uint32]bool)
	for range 100_000 {
		tsn := r.next + uint32(rnd.IntN(3*tsnWindow/2)) - tsnWindow/4
		if rnd.IntN(2) == 0 {
			tsn = r.next
		}
		known := seen[tsn] || int32(tsn-first) < 0
		require.Equal(t, known, r.known(tsn))
		if known || r.beyond(tsn) {
			continue
		}
		r.take(tsn)
		seen[tsn] = true
		require.False(t, seen[r.next], "%d has come", r.next)
		require.True(t, seen[r.next-1] || r.next == first)
	}
	require.Less(t, r.next, uint32(1<<31), "it has gone around")
}

// cookie has the victim bake a cookie for its peer.
func (x *victim) cookie(tag uint32) *initiation {
	x.chunks(chunkInitAck)
	init := initiation{tag: tag, window: receiveBuffer, outbound: 8, inbound: 8}
	x.says(0, appendChunk(nil, chunkInit, 0, init.append(nil)))
	acks := x.chunks(chunkInitAck)
	require.Len(x, acks, 1)
	ack, err := parseInit(acks[0][chunkHeaderSize:])
	require.NoError(x, err)
	return &ack
}

// TestCookieOfThePast: an association ends for a peer that begins anew, not for a packet
// that was on its way for long.
func TestCookieOfThePast(t *testing.T) {
	guarded(t, func(x *victim) {
		time.Sleep(time.Second)
		old := x.cookie(5)
		time.Sleep(time.Second)
		young := x.cookie(6)
		x.says(young.tag, appendChunk(nil, chunkCookieEcho, 0, young.cookie))
		require.ErrorIs(t, x.failure(), syscall.ECONNRESET, "the peer has forgotten the first one")
		require.Equal(t, 1, x.l.e.count())
		now := x.l.e.associations()[0]
		require.Equal(t, young.tag, now.ourTag)

		x.says(old.tag, appendChunk(nil, chunkCookieEcho, 0, old.cookie))
		x.says(young.tag, appendChunk(nil, chunkCookieEcho, 0, young.cookie))
		require.Equal(t, []*association{now}, x.l.e.associations())
		require.NoError(t, now.Err())
	})
}

// TestStaleCookieIsTold to the peer that it belongs to, once for each packet (RFC 9260 section 5.1.5), which may then
// begin anew.
func TestStaleCookieIsTold(t *testing.T) {
	guarded(t, func(x *victim) {
		old := x.cookie(5)
		time.Sleep(cookieLife + time.Nanosecond)
		x.chunks(chunkError)
		x.says(old.tag+1, appendChunk(nil, chunkCookieEcho, 0, old.cookie))
		require.Empty(t, x.chunks(chunkError), "it is not the tag of the cookie")
		x.says(old.tag, appendChunk(nil, chunkCookieEcho, 0, old.cookie))
		require.Equal(t, []chunk{octets("0900 000c 0003 0008 00000000")}, x.chunks(chunkError))
		require.Zero(t, x.l.e.count())
		young := x.cookie(5)
		x.says(young.tag, appendChunk(nil, chunkCookieEcho, 0, young.cookie))
		require.Equal(t, 1, x.l.e.count())
	})
}

// TestAssociationThatIsOneTooMany is refused, so that the peer need not try again and again.
func TestAssociationThatIsOneTooMany(t *testing.T) {
	guarded(t, func(x *victim) {
		theirs := x.cookie(5)
		e := x.l.e
		e.mu.Lock()
		for tag := range uint32(maxAssociations - 1) {
			e.byTag[tag] = x.a
		}
		e.mu.Unlock()
		x.says(theirs.tag, appendChunk(nil, chunkCookieEcho, 0, theirs.cookie))
		e.mu.Lock()
		maps.DeleteFunc(e.byTag, func(tag uint32, a *association) bool { return tag != a.ourTag })
		require.Len(t, e.byTag, 1)
		e.mu.Unlock()
		require.Equal(t, []uint32{5}, x.aborted())
		require.NoError(t, x.failure())
	})
}

// TestAssociationWithAClosedListener, which lives on for another one, is refused at each of its steps.
func TestAssociationWithAClosedListener(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		x.sack(1 << 20)
		theirs := x.cookie(5)
		x.l.Close()
		x.says(theirs.tag, appendChunk(nil, chunkCookieEcho, 0, theirs.cookie))
		init := initiation{tag: 6, window: receiveBuffer, outbound: 8, inbound: 8}
		x.says(0, appendChunk(nil, chunkInit, 0, init.append(nil)))
		require.Equal(t, []uint32{5, 6}, x.aborted())
		x.wants(c, 3)
	})
}

// aborted takes the verification tags of the ABORTs that the victim has sent.
func (x *victim) aborted() (tags []uint32) {
	synctest.Wait()
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	for _, p := range x.v.packets {
		if p[headerSize] == chunkAbort {
			tags = append(tags, tagOf(p))
		}
	}
	return tags
}

func TestInitWithoutATagIsNotAnswered(t *testing.T) {
	guarded(t, func(x *victim) {
		sent := x.v.sent
		for _, init := range []string{"", "00000000", "00000000 00100000 0008 0008 00000000 c0060008 00000001"} {
			x.says(0, appendChunk(nil, chunkInit, 0, octets(init)))
		}
		require.Equal(t, sent, x.v.sent)
		x.says(0, appendChunk(nil, chunkInit, 0, octets("00000009 00100000 0000 0008 00000000 c0060008 00000001")))
		require.Len(t, x.chunks(chunkAbort), 1, "one without streams is refused")
	})
}

// TestSCTP_51_PeerThatAcknowledgesNothing: it answers, but takes nothing although its window is
// open.
func TestSCTP_51_PeerThatAcknowledgesNothing(t *testing.T) {
	for _, window := range []uint32{receiveBuffer, 0} {
		guarded(t, func(x *victim) {
			c := x.session(3)
			x.sack(window)
			require.True(t, c.Append([]byte("anything"), nil, true))
			require.NoError(t, c.Flush(true))
			for range 3 * 15 {
				x.says(victimTag, appendChunk(nil, chunkHeartbeat, 0, octets("00010008 00000000")))
				time.Sleep(time.Second)
			}
			if window == 0 {
				require.NoError(t, x.failure(), "it may say for ever that it has no room")
				return
			}
			require.ErrorIs(t, x.failure(), syscall.ETIMEDOUT)
			require.ErrorContains(t, x.failure(), "acknowledges nothing")
			require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), syscall.ETIMEDOUT)
		})
	}
}

// TestPeerThatHasRoomAgain has as long to acknowledge as if it had always had room.
func TestPeerThatHasRoomAgain(t *testing.T) {
	for _, reports := range []bool{true, false} {
		guarded(t, func(x *victim) { opensItsWindow(x, reports) })
	}
}

// opensItsWindow plays a peer whose window was closed for a long time, and is open now. The peer reported the closed window every second, or once.
func opensItsWindow(x *victim, reports bool) {
	c := x.session(3)
	x.sack(1 << 20)
	require.True(x, c.Append([]byte("anything"), nil, true))
	require.NoError(x, c.Flush(true))
	timeout := x.a.e.cfg.PeerTimeout
	synctest.Wait() // it is under way
	x.sackBefore(1, 0)
	for range 8 * timeout / time.Second { // it answers, and has no room
		if reports {
			x.sackBefore(1, 0)
		} else {
			x.says(victimTag, appendChunk(nil, chunkHeartbeat, 0, octets("00010008 00000000")))
		}
		time.Sleep(time.Second)
	}
	x.sackBefore(1, 1<<20)
	time.Sleep(timeout / 2)
	require.NoError(x, x.failure())
	x.sack(1 << 20)
	time.Sleep(timeout / 2)
	require.NoError(x, x.failure())
}

// TestPeerThatDoesNotJoinInTheEnd is given up after PeerTimeout, whatever else it says.
func TestPeerThatDoesNotJoinInTheEnd(t *testing.T) {
	for name, begin := range map[string]func(x *victim){
		"an association without a session": func(*victim) {},
		"a Terminate that comes behind the end": func(x *victim) {
			c := x.session(3)
			require.NoError(t, c.Close())
			for range 2 * time.Minute / time.Second { // it does not acknowledge the Accept, and has no room
				x.sackBefore(1, 0)
				time.Sleep(time.Second)
			}
			x.l.Close()
			x.sack(1 << 20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				begin(x)
				begun, next := time.Now(), uint16(0)
				for x.failure() == nil && time.Since(begun) < time.Hour {
					x.says(victimTag, appendChunk(nil, chunkHeartbeat, 0, []byte{0, 1, 0, 4}))
					x.sack(0)
					if next < 8 && len(x.chunks(chunkShutdown)) > 0 {
						x.says(victimTag, data(flagsMessage, x.tsn(), next, sctp.PPIDControl, octets("0000 0001")))
						next++
					}
					time.Sleep(time.Second)
				}
				require.ErrorIs(t, x.failure(), net.ErrClosed)
				require.Less(t, time.Since(begun), 2*(idleTime+x.a.e.cfg.PeerTimeout))
				require.NotZero(t, next)
			})
		})
	}
}

// TestPeerThatNeverHasRoomForTheLastOctets of a session that has ended is given up after lastAcksTime.
func TestPeerThatNeverHasRoomForTheLastOctets(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		require.True(t, c.Append([]byte("anything"), nil, true))
		require.NoError(t, c.Flush(true))
		require.NoError(t, c.Close())
		begun := time.Now()
		for x.failure() == nil && time.Since(begun) < time.Hour {
			x.sackBefore(1, 0)
			time.Sleep(time.Second)
		}
		require.ErrorIs(t, x.failure(), net.ErrClosed)
		require.Greater(t, time.Since(begun), lastAcksTime)
		require.Less(t, time.Since(begun), lastAcksTime+2*time.Minute)
	})
}

// TestTimeOfDayEndsNoAssociation: when the peer was heard is not kept as a time of day, which may
// step by more than PeerTimeout.
func TestTimeOfDayEndsNoAssociation(t *testing.T) {
	guarded(t, func(x *victim) {
		time.Sleep(time.Second)
		x.session(3)
		require.InDelta(t, time.Since(x.a.made), x.a.heard.Load(), float64(time.Millisecond))
	})
}

// A broken socket fails at once, again and again.
type broken struct {
	*void
	reads int
}

func (b *broken) ReadFrom([]byte) (int, net.Addr, error) {
	select {
	case <-b.done:
		return 0, nil, net.ErrClosed
	default:
		b.reads++
		return 0, nil, io.ErrUnexpectedEOF
	}
}

func TestBrokenSocketIsNotSpunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{void: newVoid()}
		e := &endpoint{pc: b, outage: func(error) {}, byTag: make(map[uint32]*association), byPeer: make(map[peer]*association)}
		e.start()
		time.Sleep(100 * errorPause)
		require.NoError(t, b.Close())
		e.running.Wait()
		require.LessOrEqual(t, b.reads, 101)
	})
}

// TestAnswerToAnEarlierAttempt does not make a distant peer a near one, whose packets would be sent
// again before it can have acknowledged them.
func TestAnswerToAnEarlierAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt = 3*firstRetry + time.Millisecond // the third attempt has just left
		v := newVoid()
		h := &handshake{
			e: &endpoint{pc: v, addr: Addr{Port: 7}}, peer: peer{netip.MustParseAddrPort("192.0.2.1:9"), 9},
			ours: newInitiation(), in: make(chan []byte, handshakeBacklog),
		}
		says := func(kind byte, value []byte) {
			time.Sleep(rtt)
			h.handshakePacket(packet(ports{9, 7}, h.ours.tag, kind, 0, value), way{peer: h.peer.udp})
		}
		theirs := initiation{tag: 5, window: receiveBuffer, outbound: 8, inbound: 8, cookie: []byte("cookie")}
		go func() {
			says(chunkInitAck, theirs.append(nil))
			says(chunkCookieAck, nil)
		}()
		_, err := h.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, rtt, h.rtt)
	})
}
