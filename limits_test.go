package iwarp_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

func TestLimitsHaveDefaults(t *testing.T) {
	require.Equal(t, iwarp.DefaultLimits, newSide(t, nil).rnic.Limits())
	require.Equal(t, iwarp.DefaultLimits, newSide(t, &iwarp.Config{}).rnic.Limits())
	v := reflect.TypeFor[iwarp.Limits]()
	for i := range v.NumField() { // each field alone
		name := v.Field(i).Name
		var l iwarp.Limits
		reflect.ValueOf(&l).Elem().Field(i).SetInt(3)
		want := iwarp.DefaultLimits
		reflect.ValueOf(&want).Elem().Field(i).SetInt(3)
		require.Equal(t, want, newSide(t, &iwarp.Config{Limits: l}).rnic.Limits(), name)

		reflect.ValueOf(&l).Elem().Field(i).SetInt(-1)
		_, err := iwarp.Open(&iwarp.Config{Limits: l})
		require.ErrorContains(t, err, name)
	}
	for _, l := range []iwarp.Limits{{MaxIRD: iwarp.MaxReads + 1}, {MaxORD: iwarp.MaxReads + 1}} {
		_, err := iwarp.Open(&iwarp.Config{Limits: l})
		require.Error(t, err, "RFC 6581 cannot say so much")
	}
}

func TestRDMAP_131_ARCH_17_SEC_2_30_LimitsHold(t *testing.T) {
	s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxPD: 2, MaxMR: 2, MaxQP: 1}})
	pd, err := s.rnic.AllocPD()
	require.NoError(t, err)
	_, err = s.rnic.AllocPD()
	require.ErrorIs(t, err, iwarp.ErrLimit)
	require.NoError(t, pd.Close())
	require.NoError(t, pd.Close(), "closing again does nothing")
	_, err = pd.RegisterMR(make([]byte, 1), 0, nil)
	require.Error(t, err, "a closed PD takes no region")
	_, err = s.rnic.AllocPD()
	require.NoError(t, err, "what is closed makes room")
	_, err = s.rnic.AllocPD()
	require.ErrorIs(t, err, iwarp.ErrLimit, "for one")

	_, a := s.register(1, 0, nil)
	_, b := s.register(1, 0, nil)
	_, err = s.pd.RegisterMR(make([]byte, 1), 0, nil)
	require.ErrorIs(t, err, iwarp.ErrLimit)
	require.Error(t, s.pd.Close(), "a PD with regions cannot be closed")
	require.NoError(t, a.Invalidate(context.Background()))
	_, err = s.pd.RegisterMR(make([]byte, 1), 0, nil)
	require.ErrorIs(t, err, iwarp.ErrLimit, "an invalidated region is still there")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "closing again does nothing")
	require.NoError(t, b.Close())
	s.register(1, 0, nil)
	s.register(1, 0, nil)
	_, err = s.pd.RegisterMR(make([]byte, 1), 0, nil)
	require.ErrorIs(t, err, iwarp.ErrLimit, "what was closed twice has made room once")

	_, err = s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
	require.NoError(t, err)
	_, err = s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
	require.ErrorIs(t, err, iwarp.ErrLimit)
}

// TestRDMAP_131_EachTakesItsShareOfWhatOneManagerGivesOut: section 8.1.2 (1) to (6) of RFC 5040. The manager is the
// RNIC. Two users of the library have an RNIC each. The first takes all that it can get, and the second still gets its
// full share.
func TestRDMAP_131_EachTakesItsShareOfWhatOneManagerGivesOut(t *testing.T) {
	const share = 3
	limits := iwarp.Limits{MaxPD: share, MaxMR: share, MaxCQ: share, MaxSRQ: share, MaxQP: share, MaxCQDepth: 8, MaxQueueDepth: 4}
	greedy, modest := newSide(t, &iwarp.Config{Limits: limits}), newSide(t, &iwarp.Config{Limits: limits})

	kinds := map[string]struct {
		first int // how many a side has from the beginning
		take  func(s *side) (io.Closer, error)
	}{
		"PD":  {1, func(s *side) (io.Closer, error) { return s.rnic.AllocPD() }},
		"MR":  {0, func(s *side) (io.Closer, error) { return s.pd.RegisterMR(make([]byte, 1), stag.LocalWrite, nil) }},
		"CQ":  {0, func(s *side) (io.Closer, error) { return s.rnic.CreateCQ(8) }},
		"SRQ": {0, func(s *side) (io.Closer, error) { return s.pd.CreateSRQ(4) }},
	}
	exhaust := func(s *side) {
		for kind, k := range kinds {
			var last io.Closer
			for range share - k.first {
				var err error
				last, err = k.take(s)
				require.NoError(t, err, kind)
			}
			_, err := k.take(s)
			require.ErrorIs(t, err, iwarp.ErrLimit, "%s: no more than the share", kind)
			require.NoError(t, last.Close())
			_, err = k.take(s)
			require.NoError(t, err, "%s: what is given back can be taken again", kind)
		}
		for range share {
			_, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
			require.NoError(t, err)
		}
		_, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
		require.ErrorIs(t, err, iwarp.ErrLimit)
	}
	exhaust(greedy)
	exhaust(modest)

	for what, f := range map[string]func() error{
		"regions, windows and STags ahead are of one share": func() error { _, err := modest.pd.AllocMW(); return err },
		"likewise":                        func() error { _, err := modest.pd.AllocMR(8, 0, nil); return err },
		"CQ entries":                      func() error { _, err := modest.rnic.CreateCQ(9); return err },
		"CQ entries that are asked later": func() error { return iwarp.NewCQ(modest.rnic, 8).Resize(9) },
		"CQ entries of a QP's own":        func() error { return qpError(modest, iwarp.QPConfig{SendDepth: 5}) },
		"CQ entries for receives":         func() error { return qpError(modest, iwarp.QPConfig{RecvDepth: 5}) },
	} {
		require.ErrorIs(t, f(), iwarp.ErrLimit, what)
	}
	for what, qc := range map[string]iwarp.QPConfig{
		"a PD of the other":        {PD: greedy.pd},
		"a PD of no RNIC":          {PD: new(iwarp.PD)},
		"a CQ of no RNIC":          {PD: modest.pd, SendCQ: new(iwarp.CQ)},
		"an SRQ of no RNIC":        {PD: modest.pd, SRQ: new(iwarp.SRQ)},
		"a CQ of the other's user": {PD: modest.pd, RecvCQ: iwarp.NewCQ(greedy.rnic, 8)},
	} {
		_, err := modest.rnic.NewQP(&qc)
		require.ErrorContains(t, err, "another RNIC", what)
	}
}

func qpError(s *side, qc iwarp.QPConfig) error {
	qc.PD = s.pd
	_, err := s.rnic.NewQP(&qc)
	return err
}

// TestRDMAP_131_SEC_29_30_EveryLimitIsHeld: each limit is two objects, two octets, or a depth of two. The third is
// refused with an error that says so.
func TestRDMAP_131_SEC_29_30_EveryLimitIsHeld(t *testing.T) {
	newQP := func(s *side, qc iwarp.QPConfig) error {
		qc.PD = s.pd
		_, err := s.rnic.NewQP(&qc)
		return err
	}
	times := func(n int, f func() error) (err error) {
		for range n {
			err = errors.Join(err, f())
		}
		return err
	}
	takes := map[string]func(s *side, n int) error{
		"MaxPD": func(s *side, n int) error { // s has one
			return times(n-1, func() error { _, err := s.rnic.AllocPD(); return err })
		},
		"MaxMR": func(s *side, n int) error {
			return times(n, func() error { _, err := s.pd.RegisterMR(make([]byte, 1), 0, nil); return err })
		},
		"MaxQP": func(s *side, n int) error { return times(n, func() error { return newQP(s, iwarp.QPConfig{}) }) },
		"MaxCQ": func(s *side, n int) error {
			return times(n, func() error { _, err := s.rnic.CreateCQ(1); return err })
		},
		"MaxSRQ": func(s *side, n int) error {
			return times(n, func() error { _, err := s.pd.CreateSRQ(1); return err })
		},
		"MaxQueueDepth": func(s *side, n int) error {
			_, err := s.pd.CreateSRQ(n)
			return errors.Join(err, newQP(s, iwarp.QPConfig{SendDepth: n}), newQP(s, iwarp.QPConfig{RecvDepth: n}))
		},
		"MaxCQDepth": func(s *side, n int) error { _, err := s.rnic.CreateCQ(n); return err },
		"MaxSGE": func(s *side, n int) error {
			p, qp := responder(s, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
			defer p.Conn.Close()
			_, mr := s.register(1, stag.LocalWrite, nil)
			sges := slices.Repeat([]iwarp.SGE{mr.Slice(0, 1)}, n)
			return errors.Join(qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: sges}), qp.PostRecv(iwarp.RecvWR{Local: sges}))
		},
		"MaxInline": func(s *side, n int) error {
			p, qp := responder(s, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
			defer p.Conn.Close()
			return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, n)})
		},
		"MaxIRD": func(s *side, n int) error { return newQP(s, iwarp.QPConfig{IRD: n}) },
		"MaxORD": func(s *side, n int) error { return newQP(s, iwarp.QPConfig{ORD: n}) },
		"MaxHalfOpen": func(s *side, n int) error {
			_, err := s.rnic.Listen(testContext(s.T), "pipe", "", &iwarp.ListenConfig{MaxHalfOpen: n})
			return err
		},
	}
	v := reflect.TypeFor[iwarp.Limits]()
	for i := range v.NumField() {
		name := v.Field(i).Name
		t.Run(name, func(t *testing.T) {
			var l iwarp.Limits
			reflect.ValueOf(&l).Elem().Field(i).SetInt(2)
			take := takes[name]
			require.NotNil(t, take, "every limit has its test")
			require.NoError(t, take(newSide(t, &iwarp.Config{Limits: l}), 2), "as many as are allowed")
			require.ErrorIs(t, take(newSide(t, &iwarp.Config{Limits: l}), 3), iwarp.ErrLimit, "one more")
		})
	}
}

// TestRDMAP_123_124_ARCH_15_16_SEC_13_31_RegistrationAndRights: what can be registered, advertised and revoked.
func TestRDMAP_123_124_ARCH_15_16_SEC_13_31_RegistrationAndRights(t *testing.T) {
	s, other := newSide(t, nil), newSide(t, nil)
	pd2, err := s.rnic.AllocPD()
	require.NoError(t, err)
	qp2, err := s.rnic.NewQP(&iwarp.QPConfig{PD: pd2})
	require.NoError(t, err)
	for why, f := range map[string]func() (*iwarp.MR, error){
		"no octets":           func() (*iwarp.MR, error) { return s.pd.RegisterMR(nil, stag.LocalWrite, nil) },
		"write, but not here": func() (*iwarp.MR, error) { return s.pd.RegisterMR(make([]byte, 1), stag.RemoteWrite, nil) },
		"a QP of another PD": func() (*iwarp.MR, error) {
			return s.pd.RegisterMR(make([]byte, 1), stag.LocalWrite, &iwarp.MROptions{QP: qp2})
		},
		"TO wraps": func() (*iwarp.MR, error) {
			return s.pd.RegisterMR(make([]byte, 2), stag.LocalWrite, &iwarp.MROptions{BaseTO: 1<<64 - 1})
		},
	} {
		mr, err := f()
		require.Error(t, err, why)
		require.Nil(t, mr, why)
	}
	require.Zero(t, s.rnic.InUse().MaxMR)
	require.Zero(t, other.rnic.InUse().MaxMR)

	_, mr := s.register(100, stag.LocalWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: 5000})
	require.EqualValues(t, 100, mr.Len())
	require.Equal(t, iwarp.RemoteBuffer{STag: mr.STag(), TO: 5010, Len: 90}, mr.Advertise(10, 90))
	require.Equal(t, iwarp.RemoteBuffer{STag: mr.STag(), TO: 5100}, mr.Advertise(100, 0))
	for _, r := range [][2]int{{0, 101}, {-1, 1}, {101, 0}, {50, -1}, {math.MaxInt, math.MaxInt}} {
		require.Zero(t, mr.Advertise(r[0], r[1]), "%v is not within the region", r)
	}
	big, err := s.pd.RegisterBuffer(vast{}, stag.RemoteRead, nil)
	require.NoError(t, err)
	if past := uint64(1 << 32); math.MaxInt > 1<<32 { // otherwise an int cannot hold that number
		require.Zero(t, big.Advertise(0, int(past)), "2^32 octets are too many for a RemoteBuffer")
		require.NotZero(t, big.Advertise(int(past), int(past-1)))
	}
	require.NoError(t, mr.Invalidate(context.Background()))
	require.False(t, mr.Valid(), "the STag is revoked")
	require.NoError(t, mr.Invalidate(context.Background()), "again does nothing")
}

func TestRemoteBufferOnTheWire(t *testing.T) {
	rb := iwarp.RemoteBuffer{STag: 0x01020304, TO: 0x05060708090a0b0c, Len: 0x0d0e0f10}
	b, err := rb.AppendBinary([]byte{0xff})
	require.NoError(t, err)
	require.Equal(t, wiretest.Hex("ff 01020304 05060708090a0b0c 0d0e0f10"), b)
	var back iwarp.RemoteBuffer
	for n := range 20 {
		err := back.UnmarshalBinary(make([]byte, n))
		require.Equal(t, n == 16, err == nil, "%d octets", n)
	}
	require.NoError(t, back.UnmarshalBinary(b[1:]))
	require.Equal(t, rb, back)
}

// TestHardeningGivesTheDefaultLimits: the table of docs/hardening.md shows the limits of an RNIC without a
// configuration.
func TestHardeningGivesTheDefaultLimits(t *testing.T) {
	text, err := os.ReadFile("docs/hardening.md")
	require.NoError(t, err)
	limits := reflect.ValueOf(iwarp.DefaultLimits)
	for i := range limits.NumField() {
		name := limits.Type().Field(i).Name
		_, row, found := strings.Cut(string(text), "| `"+name+"` | ")
		require.True(t, found, name)
		value, _, _ := strings.Cut(row, " |")
		require.Equal(t, strconv.FormatInt(limits.Field(i).Int(), 10), strings.ReplaceAll(value, ",", ""), name)
	}
}

// TestRefusedRegionDoesNotUseItsPD: the PD can be closed when the regions that exist are.
func TestRefusedRegionDoesNotUseItsPD(t *testing.T) {
	s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxMR: 1}})
	_, mr := s.register(1, 0, nil)
	_, err := s.pd.RegisterMR(make([]byte, 1), 0, nil)
	require.ErrorIs(t, err, iwarp.ErrLimit)
	_, err = s.pd.AllocMW()
	require.ErrorIs(t, err, iwarp.ErrLimit)
	require.NoError(t, mr.Close())
	require.NoError(t, s.pd.Close())
}
