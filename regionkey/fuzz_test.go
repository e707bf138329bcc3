package regionkey

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOpen opens blobs of an attacker that has seen a valid one.
func FuzzOpen(f *testing.F) {
	s := newScene(f)
	sealer, control := s.sealer(f, Read, Responder, SuiteAES128), s.control(f, Responder)
	aad := s.readAAD().Append(nil)
	good := sealer.Seal(nil, []byte("0123456789abcdef"), 5, aad)
	tag := sealer.Tag(nil, 5, aad)
	f.Add(good, uint64(5), aad)
	f.Add(good, uint64(1<<48|5), aad)
	f.Add(tag, uint64(5), aad)
	f.Add([]byte{}, uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, blob []byte, ctr uint64, forWhat []byte) {
		same := ctr == 5 && bytes.Equal(forWhat, aad)
		plain, err := sealer.OpenInPlace(bytes.Clone(blob), ctr, forWhat)
		require.Equal(t, same && bytes.Equal(blob, good), err == nil)
		if err == nil {
			require.Equal(t, "0123456789abcdef", string(plain))
		}
		require.Equal(t, same && bytes.Equal(blob, tag), sealer.CheckTag(blob, ctr, forWhat) == nil)
		_, err = control.OpenInPlace(bytes.Clone(blob), ctr, forWhat)
		require.ErrorIs(t, err, ErrOpen)
	})
}
