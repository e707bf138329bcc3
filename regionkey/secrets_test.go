package regionkey

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// forms prints a value with many verbs.
func forms(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%08b"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
	return b.String()
}

func TestKEY_4_20_NothingPrintsSecrets(t *testing.T) {
	var secret Key
	for i := range secret {
		secret[i] = 0xc5 // 197, 305 octal
	}
	ring, err := NewRing(1, secret[:])
	require.NoError(t, err)
	_, err = ring.Rekey(epochStart, secret[:], 1)
	require.NoError(t, err)
	ring.current.prk, ring.previous.prk = secret, secret
	b := Binding{Secret: secret, Owner: Initiator, Dir: Responder, Suite: SuiteAES128}
	sealer, err := Traffic(&secret, &b)
	require.NoError(t, err)
	control, err := NewControl(func(string, []byte, int) ([]byte, error) { return bytes.Clone(secret[:]), nil }, Responder)
	require.NoError(t, err)
	cache := NewCache(4)
	cache.Put(CacheKey{}, sealer)
	for _, v := range []any{
		secret, &secret,
		[]Key{secret},
		struct{ K Key }{secret},
		b, &b, ring, *ring, sealer, *sealer, control, *control,
		cache, *cache,
		struct{ R *Ring }{ring},
		map[string]Key{"k": secret},
	} {
		text := forms(v)
		for _, form := range []string{"197 197", "197,197", "c5c5", "C5C5", "0xc5, 0xc5", "305 305", "11000101 11000101", `\xc5\xc5`, "xcXF"} {
			require.NotContains(t, text, form, "%T", v)
		}
	}
	require.Contains(t, forms(b), "regionkey.Binding of owner 1, direction 2, suite 1")
	require.Contains(t, forms(ring), "regionkey.Ring of region 1, epoch 2")

	ring.current.epoch = math.MaxUint32
	bad := b
	bad.Suite = 9
	for _, fail := range []func() error{
		func() error { _, err := NewRing(1, secret[:15]); return err },
		func() error { _, err := NewRing(1, bytes.Repeat([]byte{0xc5}, 65)); return err },
		func() error { return ring.RekeyTo(epochStart, 0, secret[:], 0) },
		func() error { _, err := Traffic(&secret, &bad); return err },
		func() error {
			_, err := ring.Derive(epochStart, 7, [32]byte(secret), [16]byte(secret[:16]), Read)
			return err
		},
		func() error { _, err := sealer.OpenInPlace(bytes.Clone(secret[:]), 0, secret[:]); return err },
	} {
		err := fail()
		require.Error(t, err)
		require.NotContains(t, err.Error(), "197 ")
		require.NotContains(t, err.Error(), "c5")
		require.NotContains(t, err.Error(), "\xc5")
	}
}

func TestKEY_20_SecretsAreOverwritten(t *testing.T) {
	var none Key
	ring := ringOf(t, 1)
	_, err := ring.Rekey(epochStart, nil, 1)
	require.NoError(t, err)
	require.NotEqual(t, none, ring.previous.prk)
	ring.Close()
	require.Equal(t, none, ring.current.prk)
	require.Equal(t, none, ring.previous.prk)
	_, err = ring.Derive(epochStart, 2, [32]byte{}, [16]byte{}, Read)
	require.ErrorIs(t, err, ErrClosed)
	_, err = ring.Rekey(epochStart, nil, 0)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, ring.RekeyTo(epochStart, 3, nil, 0), ErrClosed)
	ring.Close()

	k := Key(octets(1, 32))
	k.Wipe()
	require.Equal(t, none, k)

	// Exported octets are overwritten once they have been copied.
	var exported [][]byte
	x := func(_ string, _ []byte, n int) ([]byte, error) {
		exported = append(exported, octets(1, n))
		return exported[len(exported)-1], nil
	}
	secret, err := BindingSecret(x)
	require.NoError(t, err)
	require.Equal(t, Key(octets(1, 32)), secret)
	_, err = NewControl(x, Initiator)
	require.NoError(t, err)
	for _, e := range exported {
		require.Equal(t, none[:], e)
	}
	key := octets(1, 32)
	_, err = newAEAD(key)
	require.NoError(t, err)
	require.Equal(t, none[:], key)
}
