package iwarp_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// attackScript runs the attacks of a text file, each against a victim of its own, in virtual
// time.
//
// The input of the command attack is what the peer sends. A correct Write and a Send in error follow it, which must not
// be processed. (The argument alone omits them.) The output is what the peer gets, and what the victim's application
// gets: the error, and the completions of what was posted. For each attack, the test also checks that the error is the
// same wherever the application meets it, that nothing was placed, and that the other QP of the RNIC goes on.
func attackScript(t *testing.T, path string) {
	wiretest.RunScript(t, path, map[string]wiretest.Command{
		"attack": func(t *testing.T, d *datadriven.TestData) (out string) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				names := v.names(d.Input)
				out = v.attacked(names, names.Parse(t, d.Input), d.HasArg("alone"))
			})
			return out
		},
	})
}

// rights are the rights of the regions that scripts name after them.
var rights = map[string]stag.Access{
	"no-right":                0,
	"local-write":             stag.LocalWrite,
	"remote-write":            stag.LocalWrite | stag.RemoteWrite,
	"remote-read":             stag.RemoteRead,
	"local-write,remote-read": stag.LocalWrite | stag.RemoteRead,
}

// names returns the STags of a victim that scripts know, and those of other regions of the same memory, which are made
// when a script mentions them.
func (v *victim) names(script string) wiretest.Names {
	v.Helper()
	made := map[string]func() *iwarp.MR{
		"closed": func() *iwarp.MR {
			mr := v.another(v.pd, anyRemote, nil)
			require.NoError(v, mr.Close())
			return mr
		},
		"invalidated": func() *iwarp.MR {
			mr := v.another(v.pd, anyRemote, nil)
			require.NoError(v, mr.Invalidate(testContext(v.T)))
			return mr
		},
		"other-pd": func() *iwarp.MR {
			pd, err := v.rnic.AllocPD()
			require.NoError(v, err)
			return v.another(pd, anyRemote, nil)
		},
		"other-qp": func() *iwarp.MR { return v.another(v.pd, anyRemote, v.other) },
		"this-qp":  func() *iwarp.MR { return v.another(v.pd, stag.LocalWrite, v.qp) }, // of this QP, and not of the peer's
	}
	for name, access := range rights {
		made[name] = func() *iwarp.MR { return v.another(v.pd, access, nil) }
	}
	for _, mr := range []*iwarp.MR{v.mr, v.recv} {
		v.Cleanup(func() { require.True(v, mr.Valid(), "a region that lives stays") })
	}
	n := wiretest.Names{"region": v.mr.STag(), "receive": v.recv.STag(), "sink": v.sink.STag()}
	for w := range strings.FieldsSeq(script) {
		_, name, _ := strings.Cut(w, "=")
		if region, ok := made[name]; ok && n[name] == 0 {
			mr := region()
			n[name] = mr.STag()
			valid := mr.Valid()
			v.Cleanup(func() { require.Equal(v, valid, mr.Valid(), "a region that lives stays") })
		}
	}
	return n
}

// attacked sends segments and describes everything that results.
func (v *victim) attacked(names wiretest.Names, segments [][]byte, alone bool) string {
	v.Helper()
	if !alone && wiretest.LLP == nil { // otherwise it may be placed before the error is seen
		segments = append(segments, wiretest.Write(v.mr.STag(), regionTO, "after the error"))
	}
	if !alone {
		segments = append(segments, wiretest.Send(99, 0, "another error"))
	}
	v.p.Send(segments...)
	var out strings.Builder
	for _, s := range v.p.Rest() {
		fmt.Fprintln(&out, "peer:", names.Format(s))
	}
	v.p.Close()
	<-v.qp.Done()
	require.Equal(v, iwarp.StateError, v.qp.State())
	e := <-v.rnic.Events()
	require.Same(v, v.qp, e.QP)
	cause := causeOf(e.Err)
	for _, err := range []error{v.qp.Err(), v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), v.qp.PostRecv(iwarp.RecvWR{})} {
		require.ErrorIs(v, err, net.ErrClosed)
		require.Equal(v, cause, causeOf(err), "the error is the same wherever it is met")
	}
	fmt.Fprintf(&out, "event: %v: %s\n", e.Kind, cause)
	fmt.Fprintln(&out, v.completions())
	require.Equal(v, v.want, v.arena, "nothing was placed, in the region or around it")
	v.othersLive()
	return out.String()
}

// completions takes the completions of works, and describes them.
func (v *victim) completions() string {
	v.Helper()
	posted := map[uint64]string{recvID: "receive", readID: "read"}
	var wcs [3]iwarp.WC
	said := make(map[string]string)
	for _, wc := range wcs[:v.cq.Poll(wcs[:])] {
		what := posted[wc.ID]
		require.NotContains(v, said, what, "what was posted completes once")
		require.ErrorIs(v, wc.Err(), net.ErrClosed)
		require.Zero(v, wc.STag, "nothing was invalidated")
		said[what] = fmt.Sprintf("%s: %v", what, wc.Status)
	}
	return strings.Join(slices.Sorted(maps.Values(said)), ", ")
}

// causeOf returns the kind of an error, without its particulars.
func causeOf(err error) string {
	s := "no Terminate"
	var te *iwarp.TerminateError
	if errors.As(err, &te) {
		s = fmt.Sprintf("%#04x", uint16(codeOf(te)))
		if te.Remote {
			s += " from the peer"
		}
	}
	for _, x := range []struct {
		is   error
		name string
	}{
		{iwarp.ErrNoReceive, "ErrNoReceive"},
		{iwarp.ErrAccess, "ErrAccess"},
		{iwarp.ErrBounds, "ErrBounds"},
		{iwarp.ErrInvalidSTag, "ErrInvalidSTag"},
		{iwarp.ErrUnsupported, "ErrUnsupported"},
	} {
		if errors.Is(err, x.is) {
			s += ", " + x.name
		}
	}
	return s
}
