package regionkey

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var suites = []uint8{SuiteAES128, SuiteAES256}

// inPoison returns a copy of b with a pattern around it, and a function that reports whether the
// pattern is unchanged.
func inPoison(b []byte) (within []byte, whole func() bool) {
	poison := bytes.Repeat([]byte{0xa5}, 64)
	all := slices.Concat(poison, b, poison)
	end := 64 + len(b)
	return all[64:end], func() bool { return bytes.Equal(all[:64], poison) && bytes.Equal(all[end:], poison) }
}

// sizes are lengths of data around the steps of AES-GCM.
var sizes = []int{0, 1, 15, 16, 17, 100, 127, 128, 129, 1000, 4096}

func TestKEY_12_14_SealAndOpen(t *testing.T) {
	s := newScene(t)
	aad := s.readAAD().Append(nil)
	for _, suite := range suites {
		sealer, peer := s.sealer(t, Read, Responder, suite), s.sealer(t, Read, Responder, suite)
		for _, n := range sizes {
			plain := octets(1, n)
			blob := sealer.Seal([]byte("before"), plain, 9, aad)
			require.Equal(t, "before", string(blob[:6]))
			require.Len(t, blob, 6+n+TagSize)
			require.Equal(t, octets(1, n), plain)

			scratch, whole := inPoison(blob[6:])
			got, err := peer.OpenInPlace(scratch, 9, aad)
			require.NoError(t, err)
			require.Equal(t, octets(1, n), got)
			require.True(t, whole())
			require.Equal(t, blob[6+n:], scratch[n:], "the tag is not written to")

			buffer, whole := inPoison(make([]byte, n))
			require.NoError(t, peer.OpenTo(buffer, blob[6:], 9, aad))
			require.Equal(t, octets(1, n), buffer)
			require.True(t, whole())
			require.ErrorIs(t, peer.OpenTo(make([]byte, n+1), blob[6:], 9, aad), ErrOpen)
			if n > 0 {
				require.ErrorIs(t, peer.OpenTo(make([]byte, n-1), blob[6:], 9, aad), ErrOpen)
			}
		}
		// In place, over the data itself.
		all := append(octets(1, 100), make([]byte, TagSize)...)
		blob := sealer.Seal(all[:0], all[:100], 9, aad)
		require.Equal(t, &all[0], &blob[0])
		got, err := peer.OpenInPlace(blob, 9, aad)
		require.NoError(t, err)
		require.Equal(t, octets(1, 100), got)
	}
}

// TestKEY_11_12_EachBit: a blob with any bit changed, in itself, in its AAD or in its nonce, is not
// opened, and the octets around the blob are unchanged.
func TestKEY_11_12_EachBit(t *testing.T) {
	s := newScene(t)
	for _, suite := range suites {
		sealer := s.sealer(t, Read, Responder, suite)
		for _, n := range []int{0, 1, 16, 33} {
			aad := s.readAAD().Append(nil)
			blob := sealer.Seal(nil, octets(1, n), 5, aad)
			refused := func(changed []byte, ctr uint64, what string, bit int) {
				scratch, whole := inPoison(changed)
				got, err := sealer.OpenInPlace(scratch, ctr, aad)
				require.ErrorIs(t, err, ErrOpen, "%s, bit %d", what, bit)
				require.Nil(t, got)
				require.True(t, whole())
			}
			for bit := range len(blob) * 8 {
				changed := bytes.Clone(blob)
				changed[bit/8] ^= 1 << (bit % 8)
				refused(changed, 5, "blob", bit)
			}
			for bit := range len(aad) * 8 {
				aad[bit/8] ^= 1 << (bit % 8)
				refused(blob, 5, "AAD", bit)
				aad[bit/8] ^= 1 << (bit % 8)
			}
			for bit := range 64 {
				refused(blob, 5^1<<bit, "number", bit)
			}
			for bit := range 12 * 8 {
				var changed nonce
				changed.set(usageData, 5)
				changed[bit/8] ^= 1 << (bit % 8)
				_, err := sealer.aead.Open(nil, changed[:], blob, aad)
				require.Error(t, err, "nonce, bit %d", bit)
			}
			for n := range blob {
				refused(blob[:n], 5, "length", n)
			}
			refused(append(bytes.Clone(blob), 0), 5, "length", len(blob)+1)
			refused(blob[:len(blob):len(blob)], 6, "number", 0)
			require.NoError(t, sealer.OpenTo(make([]byte, n), blob, 5, aad), "it was good all the time")
		}
	}
}

func TestKEY_11_FieldsOfTheAAD(t *testing.T) {
	s := newScene(t)
	base := *s.readAAD()
	seen := map[string]string{string(base.Append(nil)): "base"}
	for _, c := range []struct {
		name   string
		change func(*AAD)
		at, n  int
	}{
		{"op", func(a *AAD) { a.Op = Write }, 5, 1},
		{"dir", func(a *AAD) { a.Dir = Initiator }, 6, 1},
		{"suite", func(a *AAD) { a.Suite = SuiteAES256 }, 7, 1},
		{"region", func(a *AAD) { a.Region = ^a.Region }, 8, 8},
		{"epoch", func(a *AAD) { a.Epoch = ^a.Epoch }, 16, 4},
		{"length", func(a *AAD) { a.Length = ^a.Length }, 20, 4},
		{"offset", func(a *AAD) { a.Offset = ^a.Offset }, 24, 8},
		{"operation", func(a *AAD) { a.OpID = ^a.OpID }, 32, 8},
		{"number", func(a *AAD) { a.DataCtr = ^a.DataCtr }, 40, 8},
		{"salt", func(a *AAD) { a.Salt = [16]byte(bytes.Repeat([]byte{0xff}, 16)) }, 48, 16},
	} {
		a := base
		c.change(&a)
		got, was := a.Append(nil), base.Append(nil)
		require.NotContains(t, seen, string(got), c.name)
		seen[string(got)] = c.name
		require.Equal(t, was[:c.at], got[:c.at], c.name)
		require.Equal(t, was[c.at+c.n:], got[c.at+c.n:], c.name)
		for i := c.at; i < c.at+c.n; i++ {
			require.NotEqual(t, was[i], got[i], c.name)
		}
		sealer := s.sealer(t, Read, Responder, SuiteAES128)
		_, err := sealer.OpenInPlace(sealer.Seal(nil, []byte("data"), 0, was), 0, got)
		require.ErrorIs(t, err, ErrOpen, c.name)
	}
}

// TestKEY_11_UsesOfAKeyAreSeparate: data, tags and messages are not accepted in place of one another.
func TestKEY_11_UsesOfAKeyAreSeparate(t *testing.T) {
	s := newScene(t)
	sealer := s.sealer(t, Write, Initiator, SuiteAES128)
	message := []byte("message")
	tag := sealer.Tag(nil, 3, message)
	require.Len(t, tag, TagSize)
	require.NoError(t, sealer.CheckTag(tag, 3, message))
	require.ErrorIs(t, sealer.CheckTag(tag, 4, message), ErrOpen)
	require.ErrorIs(t, sealer.CheckTag(tag, 3, message[:6]), ErrOpen)
	require.ErrorIs(t, sealer.CheckTag(tag[:15], 3, message), ErrOpen)
	require.ErrorIs(t, sealer.CheckTag(append(tag, 0), 3, message), ErrOpen)
	require.ErrorIs(t, sealer.CheckTag(nil, 3, message), ErrOpen)
	_, err := sealer.OpenInPlace(bytes.Clone(tag), 3, message)
	require.ErrorIs(t, err, ErrOpen)
	require.ErrorIs(t, sealer.CheckTag(sealer.Seal(nil, nil, 3, message), 3, message), ErrOpen)
	_, err = (&Control{sealer.aead}).OpenInPlace(bytes.Clone(tag), 3, message)
	require.ErrorIs(t, err, ErrOpen)
	for bit := range TagSize * 8 {
		changed := bytes.Clone(tag)
		changed[bit/8] ^= 1 << (bit % 8)
		require.ErrorIs(t, sealer.CheckTag(changed, 3, message), ErrOpen)
	}
}

// TestKEY_13_OpenToMayWriteToTheBuffer: but to nothing else.
func TestKEY_13_OpenToMayWriteToTheBuffer(t *testing.T) {
	s := newScene(t)
	sealer := s.sealer(t, Read, Responder, SuiteAES128)
	blob := sealer.Seal(nil, octets(1, 100), 0, nil)
	blob[50] ^= 1
	before := bytes.Clone(blob)
	buffer, whole := inPoison(bytes.Repeat([]byte{0xa5}, 100))
	require.ErrorIs(t, sealer.OpenTo(buffer, blob, 0, nil), ErrOpen)
	require.True(t, whole())
	require.Equal(t, before, blob)
	for i := range 90 {
		require.NotEqual(t, octets(1, 100)[i:i+8], buffer[i:i+8], "what is not authentic is not given out")
	}
}

func TestKEY_9_NumbersAreUsedUp(t *testing.T) {
	var c Counter
	for want := range uint64(3) {
		n, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	c.next.Store(1<<48 - 1)
	n, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, uint64(1<<48-1), n)
	for range 3 {
		_, err = c.Next()
		require.ErrorIs(t, err, ErrExhausted)
	}

	s := newScene(t)
	sealer, control := s.sealer(t, Read, Responder, SuiteAES128), s.control(t, Responder)
	for _, ctr := range []uint64{1 << 48, 1<<48 + 1, 1<<64 - 1} {
		require.Panics(t, func() { sealer.Seal(nil, nil, ctr, nil) })
		require.Panics(t, func() { sealer.Tag(nil, ctr, nil) })
		require.Panics(t, func() { control.Seal(nil, nil, ctr, nil) })
	}
	last := sealer.Seal(nil, nil, n, nil)
	_, err = sealer.OpenInPlace(last, n, nil)
	require.NoError(t, err)

	// Nothing with a larger number is opened, even if it was sealed with it.
	var beyond nonce
	beyond.set(usageData, 1<<48)
	blob := sealer.aead.Seal(nil, beyond[:], nil, nil)
	_, err = sealer.OpenInPlace(blob, 1<<48, nil)
	require.ErrorIs(t, err, ErrOpen)
}

func TestKEY_9_SkippedNumbersAreUsedUp(t *testing.T) {
	var c Counter
	_, err := c.Next()
	require.NoError(t, err)
	c.Skip(9)
	n, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, uint64(10), n)
	for range 3 {
		c.Skip(1<<64 - 5) // it must not wrap
		_, err = c.Next()
		require.ErrorIs(t, err, ErrExhausted)
	}
}

func TestSealAndOpenAllocateNothing(t *testing.T) {
	s := newScene(t)
	a := s.readAAD()
	for _, suite := range suites {
		sealer, control := s.sealer(t, Read, Responder, suite), s.control(t, Responder)
		var c Counter
		aad, plain := make([]byte, 0, AADSize), octets(1, 4096)
		blob, tag, buffer := make([]byte, 0, 4096+TagSize), make([]byte, 0, TagSize), make([]byte, 4096)
		step := func() error {
			ctr, err := c.Next()
			if err != nil {
				return err
			}
			a.DataCtr = ctr
			aad = a.Append(aad[:0])
			blob = sealer.Seal(blob[:0], plain, ctr, aad)
			if err := sealer.OpenTo(buffer, blob, ctr, aad); err != nil {
				return err
			}
			if _, err := sealer.OpenInPlace(blob, ctr, aad); err != nil {
				return err
			}
			tag = sealer.Tag(tag[:0], ctr, aad)
			if err := sealer.CheckTag(tag, ctr, aad); err != nil {
				return err
			}
			tag = control.Seal(tag[:0], nil, ctr, aad)
			if _, err := control.OpenInPlace(tag, ctr, aad); err != nil {
				return err
			}
			blob[0] ^= 1
			if _, err := sealer.OpenInPlace(blob, ctr, aad); err == nil {
				return fmt.Errorf("a changed blob was opened")
			}
			return nil
		}
		require.NoError(t, step())
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}))
	}
}
