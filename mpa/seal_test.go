package mpa

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/sealtest"
	"github.com/goiwarp/iwarp/transport"
)

// sealed has a Request made by Connect, and the Reply that a responder gives, by the Sealers
// of both sides. answer is the responder's; a Request that was not opened gets there too, with
// the error.
func sealed(t *testing.T, o Options, private string, answer func(r *Request, unopened error)) (request, reply []byte) {
	t.Helper()
	i := &script{}
	o.Seal = &sealtest.Sealer{Key: "k"}
	_, _, err := Connect(t.Context(), i, o, 16, 16, []byte(private))
	require.Error(t, err)
	request = i.wire()
	return request, replyTo(t, request, answer)
}

// replyTo is what answer makes a responder send.
func replyTo(t *testing.T, request []byte, answer func(r *Request, unopened error)) []byte {
	t.Helper()
	s := &script{reads: [][]byte{slices.Clone(request)}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	answer(r, r.Open(&sealtest.Sealer{Key: "k"}))
	return s.wire()
}

// meet lets an initiator meet a Reply, in answer to the same Request as ever.
func meet(t *testing.T, o Options, private string, reply []byte) (result, *script) {
	t.Helper()
	s := &script{reads: [][]byte{slices.Clone(reply)}}
	o.Seal = &sealtest.Sealer{Key: "k"}
	c, terms, err := Connect(t.Context(), s, o, 16, 16, []byte(private))
	return result{c, terms, err}, s
}

// accepts answers with private.
func accepts(t *testing.T, private string) func(*Request, error) {
	return func(r *Request, unopened error) {
		require.NoError(t, unopened)
		_, _, err := r.Accept(t.Context(), Options{}, 16, 16, []byte(private))
		require.NoError(t, err)
	}
}

// The options of initiators whose frames differ in all that a header has.
var sealedOptions = map[string]Options{
	"revision 2":      {},
	"client-server":   {ClientServer: true},
	"Markers, no CRC": {Markers: true, NoCRC: true},
	"revision 1":      {Revision: 1},
	"all the room":    {LargePrivateData: true},
}

func TestCM_6_7_SealedSetUp(t *testing.T) {
	for name, o := range sealedOptions {
		var got *Request
		request, reply := sealed(t, o, "hello", func(r *Request, unopened error) {
			got = r
			accepts(t, "world")(r, unopened)
		})
		require.Equal(t, "hello", string(got.PrivateData()), name)
		enhancedSize := 4
		if o.Revision == 1 {
			enhancedSize = 0
		}
		for what, frame := range map[string][]byte{"Request": request, "Reply": reply} {
			require.Len(t, frame, HeaderSize+enhancedSize+5+sealtest.Overhead, "%s, the %s", name, what)
			require.EqualValues(t, len(frame)-HeaderSize, int(frame[18])<<8|int(frame[19]), "%s, the %s: PD_Length counts all of it", name, what)
		}
		r, s := meet(t, o, "hello", reply)
		require.NoError(t, r.err, name)
		require.Equal(t, "world", string(r.terms.PeerPrivateData), name)
		require.Equal(t, [][]byte{request}, s.writes, "%s: one write", name)
	}
}

// TestCM_6_StartIsFinal: Wrap is given the frame as it is sent, PD_Length included.
func TestCM_6_StartIsFinal(t *testing.T) {
	seal := &sealtest.Sealer{Key: "k"}
	s := &script{}
	_, _, err := Connect(t.Context(), s, Options{Seal: seal, ClientServer: true}, 16, 16, []byte("hello"))
	require.Error(t, err)
	want := unhex(keyReq + "50020029 00100010")
	require.Equal(t, [][]byte{want}, seal.Starts, "M, C, S, Rev, PD_Length, and the four octets")
	require.Equal(t, want, s.wire()[:len(want)])
}

func TestCM_6_AnyBitOfTheRequestMatters(t *testing.T) {
	for name, o := range sealedOptions {
		request, _ := sealed(t, o, "hello", accepts(t, ""))
		for bit := range 8 * len(request) {
			flipped := flip(request, bit)
			s := &script{reads: [][]byte{flipped}}
			r, err := ReadRequest(t.Context(), s)
			if err != nil {
				continue // it is no frame any more
			}
			require.ErrorIs(t, r.Open(&sealtest.Sealer{Key: "k"}), sealtest.ErrForged, "%s, bit %d", name, bit)
			require.Empty(t, r.PrivateData(), "%s, bit %d", name, bit)
			_, _, err = r.Accept(t.Context(), Options{}, 1, 1, nil)
			require.ErrorIs(t, err, sealtest.ErrForged, "it cannot be accepted any more")
			require.Empty(t, s.writes)
		}
	}
}

func TestCM_7_34_AnyBitOfTheReplyMatters(t *testing.T) {
	for name, o := range sealedOptions {
		for what, answer := range map[string]func(*Request, error){
			"an acceptance": accepts(t, "world"),
			"a refusal": func(r *Request, _ error) {
				require.NoError(t, r.Reject(t.Context(), 1, 2, []byte("world")))
			},
		} {
			request, reply := sealed(t, o, "hello", answer)
			for bit := range 8 * len(reply) {
				r, s := meet(t, o, "hello", flip(reply, bit))
				require.Error(t, r.err, "%s, %s, bit %d", name, what, bit)
				var rej *RejectError
				require.False(t, errors.As(r.err, &rej), "%s, %s, bit %d: it is not believed", name, what, bit)
				var fault *transport.Fault
				require.ErrorAs(t, r.err, &fault)
				require.Equal(t, [][]byte{request}, s.writes, "nothing more is sent")
				require.Equal(t, 1, s.closed)
			}
		}
	}
}

func flip(b []byte, bit int) []byte {
	b = slices.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// TestCM_34_ReplyWithoutASeal: of a peer that knows nothing of it.
func TestCM_34_ReplyWithoutASeal(t *testing.T) {
	for _, reply := range []string{frameR6, frameR8, keyRep + "50020004 80108010", keyRep + "40010000", keyRep + "60010002 6e6f", keyRep + "50020000"} {
		r, s := meet(t, Options{}, "", unhex(reply))
		require.ErrorIs(t, r.err, sealtest.ErrForged, reply)
		require.EqualError(t, r.err, "mpa: opening the MPA Reply: sealtest: the frame is not the peer's")
		requireFault(t, transport.MPAStartup, r.err, reply)
		require.Equal(t, 1, s.closed)
	}
}

// TestCM_7_ReplyOfAnotherSetUp: that of another Request is not believed.
func TestCM_7_ReplyOfAnotherSetUp(t *testing.T) {
	_, reply := sealed(t, Options{}, "hello", accepts(t, "world"))
	r, _ := meet(t, Options{}, "hallo", reply)
	require.ErrorIs(t, r.err, sealtest.ErrForged)
}

func TestCM_35_RefusalOfARequest(t *testing.T) {
	request, _ := sealed(t, Options{}, "hello", accepts(t, ""))
	bad := flip(request, 8*len(request)-10)
	var sent []byte
	for _, cause := range []error{sealtest.ErrForged, errors.New("stale")} {
		reply := replyTo(t, bad, func(r *Request, unopened error) {
			require.ErrorIs(t, unopened, sealtest.ErrForged)
			require.NoError(t, r.Refuse(t.Context(), cause))
		})
		if sent != nil {
			require.Equal(t, sent, reply, "it does not tell why")
		}
		sent = reply
	}
	require.Equal(t, unhex(keyRep+"70020018 80108010"), sent[:24], "R, and depths that tell nothing")
	require.Len(t, sent, 24+sealtest.RefuseLen)
	r, s := meet(t, Options{}, "hello", sent)
	require.ErrorIs(t, r.err, sealtest.ErrRefused)
	var rej *RejectError
	require.False(t, errors.As(r.err, &rej))
	require.Equal(t, 1, s.closed)
}

func TestRejectionThatIsSealed(t *testing.T) {
	_, reply := sealed(t, Options{}, "hello", func(r *Request, unopened error) {
		require.NoError(t, unopened)
		require.NoError(t, r.Reject(t.Context(), 3, 4, []byte("no room")))
	})
	r, s := meet(t, Options{}, "hello", reply)
	var rej *RejectError
	require.ErrorAs(t, r.err, &rej)
	require.Equal(t, &RejectError{PrivateData: []byte("no room"), IRD: 3, ORD: 4}, rej, "the application's part alone")
	require.Zero(t, s.closed, "the connection is the caller's (RFC 5044 section 7.1.2)")

	seal := &sealtest.Sealer{Key: "k"}
	req, err := ReadRequest(t.Context(), &script{reads: [][]byte{unhex(frameR5)}})
	require.NoError(t, err)
	require.Error(t, req.Open(seal))
	require.NoError(t, req.Reject(t.Context(), -1, -1, nil))
	require.Equal(t, []error{transport.ErrRejected}, seal.Causes)
}

func TestCM_3_SealedPrivateDataAreBounded(t *testing.T) {
	for _, c := range []struct {
		o    Options
		most int
		says string
	}{
		{Options{}, 216, "mpa: 217 octets of private data, at most 216 are left of 248: authentication takes 32"},
		{Options{LargePrivateData: true}, 476, "mpa: 477 octets of private data, at most 476 are left of 508: authentication takes 32"},
		{Options{LargePrivateData: true, Revision: 1}, 480, "mpa: 481 octets of private data, at most 480 are left of 512: authentication takes 32"},
	} {
		c.o.Seal = &sealtest.Sealer{Key: "k"}
		require.NoError(t, c.o.CheckRequest(c.most))
		require.EqualError(t, c.o.CheckRequest(c.most+1), c.says)
		require.Equal(t, c.most+sealtest.Overhead, c.o.MaxPrivate())
		s := &script{}
		_, _, err := Connect(t.Context(), s, c.o, 1, 1, make([]byte, c.most+1))
		require.EqualError(t, err, c.says)
		require.Empty(t, s.writes, "nothing is sent")
		require.Zero(t, s.closed)
		_, _, err = Connect(t.Context(), s, c.o, 1, 1, make([]byte, c.most))
		require.Error(t, err)
		require.Len(t, s.wire(), HeaderSize+int(s.wire()[18])<<8+int(s.wire()[19]), "the most goes out")

		replyTo(t, s.wire(), func(r *Request, unopened error) {
			require.NoError(t, unopened)
			o := c.o
			o.Seal = nil
			_, _, err := r.Accept(t.Context(), o, 1, 1, make([]byte, c.most+1))
			require.EqualError(t, err, c.says)
			require.EqualError(t, r.Reject(t.Context(), 1, 1, make([]byte, 217)), "mpa: 217 octets of private data, at most 216 are left of 248: authentication takes 32")
			_, _, err = r.Accept(t.Context(), o, 1, 1, make([]byte, c.most))
			require.NoError(t, err)
		})
	}
	require.EqualError(t, Options{Seal: &sealtest.Sealer{NoRoom: 220}}.CheckRequest(0),
		"mpa: 0 octets of private data, at most 0 are left of 248: authentication takes 252")
	require.Equal(t, 248, Options{Revision: 7}.MaxPrivate())
}

func TestSealerThatFails(t *testing.T) {
	broken := errors.New("no randomness")
	for says, seal := range map[string]*sealtest.Sealer{
		"mpa: sealing the private data: no randomness":        {FailWrap: broken},
		"mpa: a sealed frame of 61 octets, announced were 62": {NoRoom: 1},
	} {
		s := &script{}
		_, _, err := Connect(t.Context(), s, Options{Seal: seal}, 1, 1, []byte("hello"))
		require.EqualError(t, err, says)
		require.Empty(t, s.writes)
		require.Zero(t, s.closed)
	}
	request, _ := sealed(t, Options{}, "hello", accepts(t, ""))
	s := &script{reads: [][]byte{request}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	seal := &sealtest.Sealer{Key: "k", FailWrap: broken}
	require.NoError(t, r.Open(seal))
	_, _, err = r.Accept(t.Context(), Options{}, 1, 1, nil)
	require.ErrorIs(t, err, broken)
	require.Empty(t, s.writes)
}

// TestAcceptWantsTheRequestOpened: a responder that gives Accept a Sealer believes it to be used.
func TestAcceptWantsTheRequestOpened(t *testing.T) {
	s := &script{reads: [][]byte{unhex(frameR5)}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	_, _, err = r.Accept(t.Context(), Options{Seal: &sealtest.Sealer{}}, 1, 1, nil)
	require.ErrorIs(t, err, errNotOpened)
	require.Empty(t, s.writes)
}
