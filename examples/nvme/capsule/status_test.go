package capsule

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNVME_14_Statuses has the rows of section 7 of the specification, with the octets of the status.
func TestNVME_14_Statuses(t *testing.T) {
	for _, c := range []struct {
		s    Status
		code uint16
		dnr  bool
	}{
		{Success, 0x000, false},
		{StatusInvalidOpcode, 0x001, true},
		{StatusInvalidField, 0x002, true},
		{StatusCIDConflict, 0x003, true},
		{StatusDataTransferError, 0x004, true},
		{StatusInternalError, 0x006, false},
		{StatusAbortRequested, 0x007, false},
		{StatusSQDeleted, 0x008, false},
		{StatusInvalidNamespace, 0x00B, true},
		{StatusSequenceError, 0x00C, true},
		{StatusInvalidSGLLength, 0x00F, true},
		{StatusInvalidSGLType, 0x011, true},
		{StatusInvalidSGLOffset, 0x016, true},
		{StatusInvalidKATO, 0x01A, true},
		{StatusWriteProtected, 0x020, true},
		{StatusBusy, 0x022, false},
		{StatusLBAOutOfRange, 0x080, true},
		{StatusCapacityExceeded, 0x081, true},
		{StatusNamespaceNotReady, 0x082, false},
		{StatusAbortLimit, 0x103, true},
		{StatusAsyncEventLimit, 0x105, true},
		{StatusInvalidLogPage, 0x109, true},
		{StatusFeatureNotSaveable, 0x10D, true},
		{StatusConnectFormat, 0x180, true},
		{StatusConnectBusy, 0x181, false},
		{StatusConnectParameter, 0x182, true},
		{StatusConnectHost, 0x184, true},
		{StatusInvalidProtectionInfo, 0x181, true},
		{StatusWriteFault, 0x280, false},
		{StatusReadError, 0x281, false},
		{StatusCompareFailure, 0x285, true},
	} {
		require.Equal(t, c.dnr, c.s.DNR(), c.s)
		require.Equal(t, Status(c.code), c.s.Code(), c.s)
		require.Equal(t, uint8(c.code), c.s.SC())
		require.Equal(t, uint8(c.code>>8), c.s.SCT())
		require.Equal(t, c.code == 0, c.s.OK())
		wire := c.code&0xFF<<1 | c.code>>8<<9
		if c.dnr {
			wire |= 1 << 15
		}
		r := CQE{Status: c.s}
		require.Equal(t, []byte{byte(wire), byte(wire >> 8)}, r.Append(nil)[14:], c.s)
		require.Contains(t, c.s.String(), fmt.Sprintf("0x%03x", c.code))
		require.NotContains(t, c.s.String(), "status code type")
	}
	require.Equal(t, "0x182+DNR, invalid parameters of Connect", StatusConnectParameter.String())
	require.Equal(t, "0x181, controller busy (Connect) or invalid protection information", StatusConnectBusy.String())
	require.Equal(t, "0x3aa, status code type 3, status code 0xaa", Status(0x3AA).String())
}

func TestNVME_14_BitsOfTheStatus(t *testing.T) {
	r, err := ParseCQE(unhex("00000000 00000000 0000 0000 0000 ffff"))
	require.NoError(t, err)
	s := r.Status
	require.Equal(t, uint8(3), s.CRD())
	require.Equal(t, uint8(7), s.SCT())
	require.Equal(t, uint8(0xFF), s.SC())
	require.True(t, s.More() && s.DNR())
	require.False(t, s.WithoutDNR().DNR())
	require.True(t, s.WithoutDNR().More())
	require.True(t, s.WithoutDNR().WithDNR().DNR())
	require.Equal(t, []byte{0xFE, 0xFF}, r.Append(nil)[14:], "the phase is 0")
	require.Equal(t, uint8(1), Status(1<<11).CRD())
	require.True(t, (statusMore | Success).OK())

	for _, n := range []int{0, 15, 17, 64} {
		_, err := ParseCQE(make([]byte, n))
		require.ErrorIs(t, err, ErrMalformed)
	}
}

func TestHOST_20_StatusErrors(t *testing.T) {
	require.NoError(t, Success.Err())
	require.NoError(t, statusMore.Err())
	err := fmt.Errorf("write: %w", (StatusLBAOutOfRange | statusMore).Err())
	require.ErrorIs(t, err, StatusError{StatusLBAOutOfRange})
	require.ErrorIs(t, err, StatusError{StatusLBAOutOfRange.WithoutDNR()})
	require.NotErrorIs(t, err, StatusError{StatusWriteFault})
	var is StatusError
	require.True(t, errors.As(err, &is))
	require.True(t, is.Status.DNR())
	require.Equal(t, "write: nvme: 0x080+DNR, LBA out of range", err.Error())
}

// TestNVME_24_ShortCommand: a message that is too short for a command has no CID to answer to.
func TestNVME_24_ShortCommand(t *testing.T) {
	for n := range SQESize {
		_, _, err := ParseSQE(make([]byte, n))
		require.ErrorIs(t, err, ErrMalformed, n)
	}
	_, behind, err := ParseSQE(make([]byte, SQESize))
	require.NoError(t, err)
	require.Empty(t, behind)
}

func TestNVME_16_CIDIsReturnedAsItCame(t *testing.T) {
	for _, cid := range []uint16{0, 0x1009, 0xF000, 0xFFFF} {
		c, _, err := ParseSQE((&SQE{CID: cid}).Append(nil))
		require.NoError(t, err)
		require.Equal(t, cid, c.CID)
		r, err := ParseCQE((&CQE{CID: c.CID}).Append(nil))
		require.NoError(t, err)
		require.Equal(t, cid, r.CID)
	}
}
