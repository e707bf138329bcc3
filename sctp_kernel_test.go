package iwarp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// TestKernelWithoutSCTP: the error names a network that works without it.
func TestKernelWithoutSCTP(t *testing.T) {
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	if err == nil {
		l.End()
		t.Skip("this kernel has SCTP")
	}
	s := newSide(t, nil)
	_, err = s.rnic.Dial(t.Context(), setup.SCTP, "127.0.0.1:1", &iwarp.QPConfig{PD: s.pd})
	require.ErrorIs(t, err, iwarp.ErrUnsupported)
	require.ErrorContains(t, err, setup.SCTPUDP)
	_, err = s.rnic.Listen(t.Context(), setup.SCTP, "127.0.0.1:0", nil)
	require.ErrorIs(t, err, iwarp.ErrUnsupported)
	require.ErrorIs(t, err, sctpkernel.ErrNoSCTP)
	require.ErrorContains(t, err, setup.SCTPUDP)
}

// TestSCTP_16_17_18_19_25_27_51_52_53_56_60_SessionsOfTheKernel runs the tests of sessions over sockets over the
// kernel's sockets.
func TestSCTP_16_17_18_19_25_27_51_52_53_56_60_SessionsOfTheKernel(t *testing.T) {
	wiretest.NeedsSCTP(t)
	was := overSCTP
	t.Cleanup(func() { overSCTP = was })
	overSCTP = setup.SCTP
	for _, test := range []func(*testing.T){
		TestSessionsOverARealSocket,
		TestSCTP_16_27_60_SetupOverSCTP,
		TestSCTP_52_TerminateOverSCTP,
		TestSCTP_25_56_RejectOverSCTP,
		TestSCTP_17_18_TooManyRequestsAreRefused,
		TestUnsupportedOverSCTP,
		TestSCTP_19_51_53_ThousandQPsShareTenAssociations,
	} {
		t.Run(wiretest.NameOf(test), test)
	}
}
