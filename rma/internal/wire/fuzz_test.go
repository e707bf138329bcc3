package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
)

// FuzzMessage reads messages of a peer that may send anything, which in suite 0 gets as far as the
// bodies. A message that is read and written again is the same, except for octets without meaning.
func FuzzMessage(f *testing.F) {
	k := newVectorKeys(f)
	sealed := make(map[string]uint64)
	for _, s := range samples(f) {
		f.Add(s.build(k, Suite0))
		msg := s.build(k, regionkey.SuiteAES128)
		f.Add(msg)
		if !s.server {
			sealed[string(msg)] = s.header.Ctr
		}
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		h, err := parseHeader(msg)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			_, err = Open(msg, 0, nil)
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		ctr, seen := sealed[string(msg)]
		_, err = Open(bytes.Clone(msg), h.Ctr, k.client)
		require.Equal(t, seen && ctr == h.Ctr, err == nil)

		_, body, err := openAndParse(msg, h.Ctr, nil, Suite0)
		if err != nil {
			return
		}
		again := appendAny(body, h)
		require.Len(t, again, len(msg))
		_, second, err := openAndParse(again, h.Ctr, nil, Suite0)
		require.NoError(t, err)
		forget(body)
		require.Equal(t, body, second)
	})
}

// forget clears what suite 0 does not send.
func forget(body any) {
	if m, ok := body.(*OpenRep); ok {
		m.Keys = [3]regionkey.Key{}
	}
}

// appendAny makes the message of a body, in suite 0.
func appendAny(body any, h Header) []byte {
	switch m := body.(type) {
	case interface {
		Append([]byte, Header, *regionkey.Control) []byte
	}:
		return m.Append(nil, h, nil)
	case interface {
		Append([]byte, Header, *regionkey.Control, *regionkey.Sealer) []byte
	}:
		return m.Append(nil, h, nil, nil)
	}
	return nil
}
