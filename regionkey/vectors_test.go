package regionkey

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKEY_1_VectorsOfTheConnection(t *testing.T) {
	s := newScene(t)
	require.Equal(t, keyOf(t, "9673522cbd39d105410c0033e2c7d3db1439aa16043d87dc959687dd48e805fb"), s.secret)
	for dir, want := range map[uint8]string{
		Initiator: "c3f3e1c0085215b9704bc0ae5217a16eceb6fd3e03e309adcea3cc92d76a9750",
		Responder: "ff6b2dbf1fd1cd3e54989e748f38db4647a6d3a60f404c474837b40d71d50732",
	} {
		k, err := s.export.export(labelControl, []byte{dir})
		require.NoError(t, err)
		require.Equal(t, keyOf(t, want), k)
		a, err := newAEAD(k[:])
		require.NoError(t, err)
		c := s.control(t, dir)
		require.Equal(t, seal(a, usageControl, nil, []byte("x"), 7, nil), c.Seal(nil, []byte("x"), 7, nil))
	}
}

func TestKEY_1_VectorsOfTheRegion(t *testing.T) {
	s := newScene(t)
	require.Equal(t, keyOf(t, "fca30da206afa3de03185e370afa7b800ac2c2eafa13d80fac33926afb88f175"), s.ring.current.prk)
	require.Equal(t, s.region, s.ring.region)
	for op, want := range map[OpType]string{
		Read:   "e5c9d575c846ed4d3d60afa9902b540700afd9d75862c1546720733ccc7b9d4b",
		Write:  "0d08ecd42d2d9ca9e3854b7772d0b1397fadd401ef63552d9d4a5904f4282b6a",
		Manage: "5165f2299fe3dfbd4da8fd8a4e2a7336013ae586f0b855cdf31806bf7167729c",
	} {
		require.Equal(t, keyOf(t, want), s.key(t, op), op)
	}
	for _, c := range []struct {
		op         OpType
		dir, suite uint8
		want       string
	}{
		{Read, 1, 1, "886979177039cd7744a80025dc9c68ff"},
		{Read, 2, 1, "b94725a8843ef6e34353e2b1701c2691"},
		{Write, 1, 1, "5b804b02de095e6ab79c74ed16068711"},
		{Write, 2, 1, "b346e61bedfa4a8f6668826d19a89917"},
		{Read, 2, 2, "f6102466ac90aacb3c5d555bf82d2bc161cba6bffd351ad62b3c11ee7214eb21"},
	} {
		k := s.key(t, c.op)
		got, err := s.binding(c.dir, c.suite).trafficKey(&k)
		require.NoError(t, err)
		require.Equal(t, c.want, hex.EncodeToString(got))
		a, err := newAEAD(got)
		require.NoError(t, err)
		require.Equal(t, seal(a, usageData, nil, []byte("x"), 7, nil), s.sealer(t, c.op, c.dir, c.suite).Seal(nil, []byte("x"), 7, nil))
	}
}

func TestKEY_1_11_VectorsOfSealedData(t *testing.T) {
	s := newScene(t)
	read := s.readAAD()
	aad := read.Append(nil)
	require.Len(t, aad, AADSize)
	require.Equal(t, unhex(`524d4144010102011122334455667788000000030000001000000000000010000005000000000009
	000000000000000000000000000000000000000000000000`), aad)
	plain := []byte("0123456789abcdef")
	blob := s.sealer(t, Read, Responder, SuiteAES128).Seal(nil, plain, 0, aad)
	require.Equal(t, unhex("5a7d10c9fb858699dc54a1ce17cf1a848fa0c4e23a8e98a5e31915866f96d6de"), blob)

	write := &AAD{
		Op: Write, Dir: Initiator, Suite: SuiteAES128, Region: s.region, Epoch: 3,
		Length: 16, Offset: 8192, OpID: 6<<48 | 10, Salt: [16]byte(octets(0xd0, 16)),
	}
	sealer := s.sealer(t, Write, Initiator, SuiteAES128)
	aad = write.Append(aad[:0])
	blob = sealer.Seal(blob[:0], plain, 0, aad)
	require.Equal(t, unhex("422094ce3673038c10a4bb4b92cb3b95d753129e7a3cbba66bd1ff06a48c6f3e"), blob)
	got, err := sealer.OpenInPlace(blob, 0, aad)
	require.NoError(t, err)
	require.Equal(t, plain, got)
}

func TestKEY_1_VectorsOfTags(t *testing.T) {
	s := newScene(t)
	message := unhex(`010400000060000000000000000000020005000000000009112233445566778800000003abcdef01
	0000000000001000000000000000000000000010000f4240`)
	inner := s.sealer(t, Read, Initiator, SuiteAES128)
	message = inner.Tag(message, 2, message)
	require.Equal(t, unhex("b9b41eec6bbfdcbeefe6f1672a9c7824"), message[64:])
	require.NoError(t, inner.CheckTag(message[64:], 2, message[:64]))
	outer := s.control(t, Initiator)
	message = outer.Seal(message, nil, 2, message)
	require.Equal(t, unhex("312874c23cfe9f2d818e55fa6c9ce1f9"), message[80:])
	_, err := outer.OpenInPlace(message[80:], 2, message[:80])
	require.NoError(t, err)
}
