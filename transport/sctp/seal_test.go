package sctp

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/sealtest"
)

var sealedOptions = map[string]Options{"enhanced": {}, "plain": {Plain: true}}

// asked is the message with which an initiator asks for a session, sealed.
func asked(t *testing.T, o Options, private string) []byte {
	t.Helper()
	_, sent, _ := meet(t, o, private, nil)
	require.NotEmpty(t, sent)
	return sent[0].msg
}

// meet lets an initiator meet an answer to the same request as ever. Without an answer the
// association is lost.
func meet(t *testing.T, o Options, private string, answer []byte) (*Terms, []sentMessage, error) {
	t.Helper()
	f := newFakeOf(2)
	if answer == nil {
		close(f.lost)
	} else {
		f.in <- sentMessage{PPIDControl, slices.Clone(answer)}
	}
	o.Seal = &sealtest.Sealer{Key: "k"}
	c, terms, err := Connect(context.Background(), f, o, 16, 8, []byte(private))
	f.says(17, "0001 0004")
	if err == nil {
		require.NoError(t, c.Close())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return terms, slices.Clone(f.sent), err
}

// answered is what answer makes a responder send.
func answered(t *testing.T, request []byte, answer func(r *Request, unopened error)) []byte {
	t.Helper()
	f := newFakeOf(2)
	f.in <- sentMessage{PPIDControl, slices.Clone(request)}
	r, err := ReadRequest(context.Background(), f)
	require.NoError(t, err)
	answer(r, r.Open(&sealtest.Sealer{Key: "k"}))
	require.Len(t, f.sent, 1)
	return f.sent[0].msg
}

func accepts(t *testing.T, private string) func(*Request, error) {
	return func(r *Request, unopened error) {
		require.NoError(t, unopened)
		_, _, err := r.Accept(Options{}, 16, 8, []byte(private))
		require.NoError(t, err)
	}
}

func rejects(t *testing.T, private string) func(*Request, error) {
	return func(r *Request, unopened error) {
		require.NoError(t, unopened)
		require.NoError(t, r.Reject(3, 4, []byte(private)))
	}
}

func TestCM_6_7_SealedSession(t *testing.T) {
	for name, o := range sealedOptions {
		request := asked(t, o, "hello")
		answer := answered(t, request, func(r *Request, unopened error) {
			require.Equal(t, "hello", string(r.PrivateData()), name)
			accepts(t, "world")(r, unopened)
		})
		terms, _, err := meet(t, o, "hello", answer)
		require.NoError(t, err, name)
		require.Equal(t, "world", string(terms.PeerPrivateData), name)
	}
}

// TestCM_6_StartOfAControlMessage: what is covered begins with the function code, for the
// DDP-SSN is no part of the message that the ULPs exchange.
func TestCM_6_StartOfAControlMessage(t *testing.T) {
	seal := &sealtest.Sealer{Key: "k"}
	f := newFakeOf(2)
	close(f.lost)
	_, _, err := Connect(context.Background(), f, Options{Seal: seal}, 16, 8, []byte("hello"))
	require.Error(t, err)
	require.Equal(t, [][]byte{octets("0005 00100008")}, seal.Starts)
	f.mu.Lock() // a Terminate follows as soon as the request is acknowledged
	defer f.mu.Unlock()
	require.Equal(t, octets("0000 0005 00100008"), f.sent[0].msg[:8])
	require.Len(t, f.sent[0].msg, 8+5+sealtest.Overhead)
}

func flip(b []byte, bit int) []byte {
	b = slices.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

func TestCM_6_AnyBitOfAnInitiateMatters(t *testing.T) {
	for name, o := range sealedOptions {
		request := asked(t, o, "hello")
		for bit := 8 * ssnSize; bit < 8*len(request); bit++ {
			f := newFakeOf(2)
			f.in <- sentMessage{PPIDControl, flip(request, bit)}
			r, err := ReadRequest(context.Background(), f)
			if err != nil {
				continue // it asks for nothing any more
			}
			require.ErrorIs(t, r.Open(&sealtest.Sealer{Key: "k"}), sealtest.ErrForged, "%s, bit %d", name, bit)
			require.Empty(t, r.PrivateData())
			_, _, err = r.Accept(Options{}, 1, 1, nil)
			require.ErrorIs(t, err, sealtest.ErrForged, "it cannot be accepted any more")
			f.wantSent(t)
			r.Close()
			f.wantSent(t, "17 0000 0004")
		}
	}
}

func TestCM_7_34_AnyBitOfTheAnswerMatters(t *testing.T) {
	for name, o := range sealedOptions {
		for what, answer := range map[string]func(*Request, error){"an acceptance": accepts(t, "world"), "a refusal": rejects(t, "world")} {
			msg := answered(t, asked(t, o, "hello"), answer)
			for bit := 8 * ssnSize; bit < 8*len(msg); bit++ {
				_, _, err := meet(t, o, "hello", flip(msg, bit))
				require.Error(t, err, "%s, %s, bit %d", name, what, bit)
				var rej *RejectError
				require.False(t, errors.As(err, &rej), "%s, %s, bit %d: it is not believed", name, what, bit)
			}
		}
	}
}

// TestCM_34_AnswerWithoutASeal: of a peer that knows nothing of it. Only an answer that ends
// the session is not followed by a Terminate.
func TestCM_34_AnswerWithoutASeal(t *testing.T) {
	for msg, ends := range map[string]bool{"0000 0006 00080010": false, "0000 0002": false, "0000 0003 6e6f": true, "0000 0007 00080010": true, "0000 0007": true} {
		_, sent, err := meet(t, Options{}, "", octets(msg))
		require.ErrorIs(t, err, sealtest.ErrForged, msg)
		require.EqualError(t, err, "sctp: opening the answer: sealtest: the frame is not the peer's")
		require.Equal(t, ends, len(sent) == 1, msg)
	}
	_, _, err := meet(t, Options{}, "", octets("0000 0004"))
	require.ErrorIs(t, err, ErrRefused, "a Terminate has nothing to open")
}

func TestCM_35_RefusalOfASession(t *testing.T) {
	request := asked(t, Options{}, "hello")
	request[len(request)-2] ^= 1
	var sent []byte
	for _, cause := range []error{sealtest.ErrForged, errors.New("stale")} {
		answer := answered(t, request, func(r *Request, unopened error) {
			require.ErrorIs(t, unopened, sealtest.ErrForged)
			require.NoError(t, r.Refuse(cause))
			require.ErrorIs(t, r.Refuse(cause), errAnswered)
		})
		if sent != nil {
			require.Equal(t, sent, answer, "it does not tell why")
		}
		sent = answer
	}
	require.Equal(t, octets("0000 0007 00080010"), sent[:8], "depths that tell nothing")
	require.Len(t, sent, 8+sealtest.RefuseLen)
	_, _, err := meet(t, Options{}, "hello", sent)
	require.ErrorIs(t, err, sealtest.ErrRefused)
	var rej *RejectError
	require.False(t, errors.As(err, &rej))
}

func TestRejectionThatIsSealed(t *testing.T) {
	answer := answered(t, asked(t, Options{}, "hello"), rejects(t, "no room"))
	_, sent, err := meet(t, Options{}, "hello", answer)
	require.Len(t, sent, 1, "the session is over")
	var rej *RejectError
	require.ErrorAs(t, err, &rej)
	require.Equal(t, &RejectError{PrivateData: []byte("no room"), IRD: 3, ORD: 4}, rej, "the application's part alone")
}

func TestCM_3_SealedPrivateDataAreBounded(t *testing.T) {
	for _, c := range []struct {
		o    Options
		most int
		says string
	}{
		{Options{}, 476, "sctp: 477 octets of private data, at most 476 are left of 508: authentication takes 32"},
		{Options{Plain: true}, 480, "sctp: 481 octets of private data, at most 480 are left of 512: authentication takes 32"},
	} {
		c.o.Seal = &sealtest.Sealer{Key: "k"}
		require.NoError(t, c.o.CheckRequest(c.most))
		require.EqualError(t, c.o.CheckRequest(c.most+1), c.says)
		require.Equal(t, c.most+sealtest.Overhead, c.o.MaxPrivate())
		f := newFakeOf(2)
		_, _, err := Connect(context.Background(), f, c.o, 1, 1, make([]byte, c.most+1))
		require.EqualError(t, err, c.says)
		require.Empty(t, f.sent)
		request := asked(t, c.o, string(make([]byte, c.most)))
		require.Len(t, request, MinMessage, "the most goes out")
		answered(t, request, func(r *Request, unopened error) {
			require.NoError(t, unopened)
			require.EqualError(t, r.Reject(1, 1, make([]byte, c.most+1)), c.says)
			_, _, err := r.Accept(Options{}, 1, 1, make([]byte, c.most))
			require.NoError(t, err)
		})
		answered(t, request, func(r *Request, _ error) {
			_, _, err := r.Accept(Options{}, 1, 1, make([]byte, c.most+1))
			require.EqualError(t, err, c.says)
			r.Close()
		})
	}
}

func TestSealerThatFails(t *testing.T) {
	broken := errors.New("no randomness")
	for says, seal := range map[string]*sealtest.Sealer{
		"sctp: sealing the private data: no randomness":          {FailWrap: broken},
		"sctp: a sealed message of 43 octets, announced were 44": {NoRoom: 1},
	} {
		f := newFakeOf(2)
		_, _, err := Connect(context.Background(), f, Options{Seal: seal}, 1, 1, []byte("hello"))
		require.EqualError(t, err, says)
		require.Empty(t, f.sent)
		f.wantReleased(t, true)
	}
	for what, answer := range map[string]func(r *Request) error{
		"Accept": func(r *Request) error {
			_, _, err := r.Accept(Options{}, 1, 1, nil)
			return err
		},
		"Reject": func(r *Request) error { return r.Reject(1, 1, nil) },
	} {
		f := newFakeOf(2)
		f.in <- sentMessage{PPIDControl, asked(t, Options{}, "hello")}
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		require.NoError(t, r.Open(&sealtest.Sealer{Key: "k", FailWrap: broken}))
		require.ErrorIs(t, answer(r), broken, what)
		f.wantSent(t, "17 0000 0004")
		f.wantReleased(t, true)
	}
}

// TestAcceptWantsTheRequestOpened: a responder that gives Accept a Sealer believes it to be used.
func TestAcceptWantsTheRequestOpened(t *testing.T) {
	f := newFakeOf(2)
	f.says(17, "0000 0001")
	r, err := ReadRequest(context.Background(), f)
	require.NoError(t, err)
	_, _, err = r.Accept(Options{Seal: &sealtest.Sealer{}}, 1, 1, nil)
	require.ErrorIs(t, err, errNotOpened)
	require.NoError(t, r.Reject(1, 1, nil), "nothing has been sent")
}
