package setup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestSCTP_62_TermsOfASession: Establish gets all the negotiated terms.
func TestSCTP_62_TermsOfASession(t *testing.T) {
	fault := transport.Faultf(transport.MPAInsufficientIRD, "too few")
	got := sessionTerms(&sctp.Terms{IRD: 1, ORD: 2, PeerIRD: 3, PeerORD: 4, RTR: transport.RTRWrite, PeerPrivateData: []byte("hi"), Fault: fault})
	require.Equal(t, &mpa.Terms{IRD: 1, ORD: 2, PeerIRD: 3, PeerORD: 4, RTR: transport.RTRWrite, PeerPrivateData: []byte("hi"), Fault: fault}, got)
}

func TestCheckRequest(t *testing.T) {
	for _, c := range []struct {
		network string
		octets  int
		says    string // empty: nothing is wrong
	}{
		{"tcp", 248, ""},
		{"tcp", 249, "249 octets of private data, at most 248"},
		{SCTP, 508, ""},
		{SCTPUDP, 509, "509 octets of private data, at most 508"},
	} {
		l := &Local{PrivateData: make([]byte, c.octets)}
		if err := l.CheckRequest(c.network); c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}

// TestBothSides: each side gets what the other one has supplied.
func TestBothSides(t *testing.T) {
	for _, late := range []error{nil, errors.New("not today")} {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t)
			l := listens(t, m, ListenConfig{})
			asks, ours := local(t)
			asks.IRD, asks.ORD, asks.PrivateData = 3, 40, []byte("asked")
			answers, theirs := local(t)
			answers.IRD, answers.ORD, answers.PrivateData = 5, 7, []byte("answered")
			takes := answers.Establish
			answers.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
				return errors.Join(takes(ctx, llp, terms), late)
			}
			done := make(chan error, 1)
			go func() {
				q, err := l.Accept(someTime(t))
				if err == nil {
					require.Equal(t, "asked", string(q.PrivateData()))
					require.Equal(t, []int{3, 40}, []int{q.PeerIRD(), q.PeerORD()})
					err = q.Accept(someTime(t), answers)
				}
				done <- err
			}()
			require.NoError(t, m.Dial(someTime(t), "pipe", l.Addr().String(), asks))
			require.ErrorIs(t, <-done, late, "the error of Establish is that of Accept")
			require.Equal(t, "answered", string(ours.terms.PeerPrivateData))
			require.Equal(t, []int{3, 5}, []int{ours.terms.IRD, ours.terms.ORD})
			require.Equal(t, []int{5, 3}, []int{theirs.terms.IRD, theirs.terms.ORD})
			require.Equal(t, []int{1, 1}, []int{ours.prepared, theirs.prepared})
			require.Zero(t, m.Pending())
		})
	}
}
