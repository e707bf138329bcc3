package regionkey

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// good returns which of the epochs 1 to 9 the Ring accepts.
func good(t *testing.T, r *Ring, now time.Time) []Epoch {
	t.Helper()
	var all []Epoch
	for e := range Epoch(10) {
		_, err := r.Derive(now, e, [32]byte{}, [16]byte{}, Read)
		if err == nil {
			all = append(all, e)
			continue
		}
		require.ErrorIs(t, err, ErrStale)
	}
	return all
}

func ringOf(t *testing.T, secrets ...byte) *Ring {
	t.Helper()
	r, err := NewRing(7, octets(secrets[0], 32))
	require.NoError(t, err)
	for _, s := range secrets[1:] {
		_, err := r.Rekey(epochStart, octets(s, 32), 0)
		require.NoError(t, err)
	}
	return r
}

func TestKEY_15_PreviousEpochUntilTheEndOfItsGrace(t *testing.T) {
	r := ringOf(t, 1)
	before, err := r.Derive(epochStart, 1, [32]byte{}, [16]byte{}, Read)
	require.NoError(t, err)

	const grace = 30 * time.Second
	e, err := r.Rekey(epochStart, octets(2, 32), grace)
	require.NoError(t, err)
	require.EqualValues(t, 2, e)
	require.EqualValues(t, 2, r.Current())

	end := epochStart.Add(grace)
	require.Equal(t, []Epoch{1, 2}, good(t, r, epochStart))
	require.Equal(t, []Epoch{1, 2}, good(t, r, end.Add(-1)))
	require.EqualValues(t, 1, r.Expire(end.Add(-1)))
	k, err := r.Derive(end.Add(-1), 1, [32]byte{}, [16]byte{}, Read)
	require.NoError(t, err)
	require.Equal(t, before, k, "it is the key that clients hold")
	k, err = r.Derive(end.Add(-1), 2, [32]byte{}, [16]byte{}, Read)
	require.NoError(t, err)
	require.NotEqual(t, before, k)

	require.Equal(t, []Epoch{2}, good(t, r, end))
	require.EqualValues(t, 2, r.Expire(end))
	require.Equal(t, []Epoch{2}, good(t, r, epochStart), "a clock that goes back does not bring it back")
}

func TestKEY_15_LimitOfTheGrace(t *testing.T) {
	r := ringOf(t, 1)
	_, err := r.Rekey(epochStart, nil, time.Minute+1)
	require.ErrorContains(t, err, "where 0 to 1m0s are possible")
	_, err = r.Rekey(epochStart, nil, -1)
	require.Error(t, err)
	require.EqualValues(t, 1, r.Current())
	_, err = r.Rekey(epochStart, nil, time.Minute)
	require.NoError(t, err)
	r.MaxGrace = time.Hour
	_, err = r.Rekey(epochStart, nil, time.Hour)
	require.NoError(t, err)
	_, err = r.Rekey(epochStart, nil, time.Hour+1)
	require.Error(t, err)
}

func TestKEY_16_RekeyInsideTheGrace(t *testing.T) {
	r := ringOf(t, 1)
	for e := Epoch(2); e < 5; e++ {
		_, err := r.Rekey(epochStart, octets(byte(e), 32), time.Minute)
		require.NoError(t, err)
		require.Equal(t, []Epoch{e - 1, e}, good(t, r, epochStart))
		require.Equal(t, e-1, r.Expire(epochStart))
	}
	_, err := r.Rekey(epochStart, octets(5, 32), 0)
	require.NoError(t, err)
	require.Equal(t, []Epoch{5}, good(t, r, epochStart), "neither epoch that had a grace is left")
}

func TestKEY_17_NoGrace(t *testing.T) {
	s := newScene(t)
	aad := s.readAAD().Append(nil)
	sealer := s.sealer(t, Read, Responder, SuiteAES128)
	blob := sealer.Seal(nil, []byte("data"), 0, aad)
	_, err := s.ring.Rekey(epochStart, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []Epoch{4}, good(t, s.ring, epochStart))
	s.ring.Close()

	// Operations that began with the old key finish with it.
	plain, err := sealer.OpenInPlace(blob, 0, aad)
	require.NoError(t, err)
	require.Equal(t, []byte("data"), plain)
}

// TestKEY_20_EndedEpochsAreOverwritten: the key of an epoch is overwritten when the epoch becomes invalid.
func TestKEY_20_EndedEpochsAreOverwritten(t *testing.T) {
	r := ringOf(t, 1, 2)
	require.Equal(t, epochKey{}, r.previous, "it had no grace")
	_, err := r.Rekey(epochStart, octets(3, 32), time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 2, r.previous.epoch)
	require.EqualValues(t, 3, r.Expire(epochStart.Add(time.Second)))
	require.Equal(t, epochKey{}, r.previous, "its grace is over")
	for _, grace := range []time.Duration{time.Second, 0} {
		_, err = r.Rekey(epochStart, nil, grace)
		require.NoError(t, err)
	}
	require.Equal(t, epochKey{}, r.previous, "neither has one that had a grace from an earlier Rekey")
}

func TestKEY_18_EpochsGoUpByOne(t *testing.T) {
	r := ringOf(t, 1, 2, 3)
	for _, to := range []Epoch{0, 1, 2, 3, 5, math.MaxUint32} {
		require.ErrorIs(t, r.RekeyTo(epochStart, to, nil, 0), ErrEpoch, to)
		require.EqualValues(t, 3, r.Current())
	}
	require.NoError(t, r.RekeyTo(epochStart, 4, nil, 0))
	require.EqualValues(t, 4, r.Current())

	r.current.epoch = math.MaxUint32 - 1
	_, err := r.Rekey(epochStart, nil, time.Second)
	require.NoError(t, err)
	prk := r.current.prk
	_, err = r.Rekey(epochStart, nil, time.Second)
	require.ErrorIs(t, err, ErrEpoch)
	require.ErrorIs(t, r.RekeyTo(epochStart, 0, nil, 0), ErrEpoch)
	require.Equal(t, Epoch(math.MaxUint32), r.Current())
	require.Equal(t, prk, r.current.prk, "the ring is as before")
	require.Equal(t, Epoch(math.MaxUint32-1), r.Expire(epochStart))
}
