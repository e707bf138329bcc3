package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRPR_22_Failures are read as they are written, and others are refused.
func TestRPR_22_Failures(t *testing.T) {
	f, err := ParseFailure(AppendVersionFailure(nil, 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, Refusal{Kind: FailureVersion, Low: 1, High: 1}, f)
	f, err = ParseFailure(AppendChunkFailure(nil, 1, 3))
	require.NoError(t, err)
	require.Equal(t, Refusal{Kind: FailureChunk}, f)
	fixed := words(1, 1, 1, 4)
	for _, b := range [][]byte{fixed, append(words(1, 1, 1, 4), 0, 0, 0), words(1, 1, 1, 4, 0), words(1, 1, 1, 4, 3), words(1, 1, 1, 4, 1, 1)} {
		_, err := ParseFailure(b)
		require.ErrorIs(t, err, ErrMalformed, "%x", b)
	}
}

// TestRPR_22_ReplyOfTheCall: a message is a reply to a call if it has its XID, and says so.
func TestRPR_22_ReplyOfTheCall(t *testing.T) {
	require.NoError(t, CheckReply(words(7, 1), 7))
	for _, b := range [][]byte{words(8, 1), words(7, 0), words(7), nil} {
		require.ErrorIs(t, CheckReply(b, 7), ErrReply, "%x", b)
	}
}
