package wire

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
)

var octets = octettest.Hex

// captured is private data of librdmacm: version 1, IOMAP, 384 credits, no iomap; the address, key and
// number of slots; the address, key and length of the first half.
var captured = []struct {
	name, octets string
	want         Private
}{
	{
		"rstream", "0102018000000000" + "0000562937fbe000" + "508f4d00" + "00000002" + "00007f833ae67000" + "e2fede00" + "00080000",
		Private{
			Flags: FlagIOMap, Credits: 384, Table: Table{Addr: 0x562937fbe000, Key: 0x508f4d00, Slots: 2},
			Half: Slot{Addr: 0x7f833ae67000, Key: 0xe2fede00, Length: 512 << 10},
		},
	},
	{
		"rcopy", "0102018000000000" + "0000560fa4b90000" + "eb2db800" + "00000002" + "00007fd116a5f000" + "e24c6900" + "00010000",
		Private{
			Flags: FlagIOMap, Credits: 384, Table: Table{Addr: 0x560fa4b90000, Key: 0xeb2db800, Slots: 2},
			Half: Slot{Addr: 0x7fd116a5f000, Key: 0xe24c6900, Length: 64 << 10},
		},
	},
}

// TestRSK_1_PrivateData compares the codec with captured octets.
func TestRSK_1_PrivateData(t *testing.T) {
	for _, c := range captured {
		b := octets(c.octets)
		got, err := ParsePrivate(b)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, b, got.Append(nil), c.name)
		_, err = ParsePrivate(append(b, 0))
		require.NoError(t, err, "octets behind it are passed over")
		for n := range b {
			_, err := ParsePrivate(b[:n])
			require.ErrorContains(t, err, "of private data in place of 40", "%s, %d octets", c.name, n)
		}
	}
}

// TestRSK_1_PrivateDataThatIsRefused changes one field at a time.
func TestRSK_1_PrivateDataThatIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *Private)
		want   string
	}{
		{"no credits", func(p *Private) { p.Credits = 0 }, "no credits"},
		{"no slots", func(p *Private) { p.Table.Slots = 0 }, "a table of 0 slots"},
		{"many slots", func(p *Private) { p.Table.Slots = 65 }, "a table of 65 slots"},
		{"slots whose length overflows", func(p *Private) { p.Table.Slots = 1 << 28 }, "a table of 268435456 slots"},
		{"slots beyond the end", func(p *Private) { p.Table.Addr = math.MaxUint64 - 31 }, "a table of slots at 0xffffffffffffffe0, beyond"},
		{"no half", func(p *Private) { p.Half.Length = 0 }, "a first half without octets"},
		{"a half that is too long", func(p *Private) { p.Half.Length = MaxHalf + 1 }, "a slot of 1073741825 octets"},
		{"a half beyond the end", func(p *Private) { p.Half.Addr = math.MaxUint64 - 0xffff }, "beyond the last tagged offset"},
	} {
		p := captured[1].want
		c.change(&p)
		_, err := ParsePrivate(p.Append(nil))
		require.ErrorContains(t, err, c.want, c.name)
	}
	b := captured[1].want.Append(nil)
	b[0] = 2
	_, err := ParsePrivate(b)
	require.ErrorContains(t, err, "version 2 in place of 1")
}

// TestRSK_1_PrivateDataAtTheLimits takes the greatest values.
func TestRSK_1_PrivateDataAtTheLimits(t *testing.T) {
	p := captured[1].want
	p.Credits, p.IOMap, p.Flags = math.MaxUint16, 0xfe, FlagNet|FlagIOMap
	p.Table = Table{Addr: math.MaxUint64 - 64*SlotSize, Key: 1, Slots: 64}
	p.Half = Slot{Addr: math.MaxUint64 - MaxHalf, Key: 2, Length: MaxHalf}
	got, err := ParsePrivate(p.Append(nil))
	require.NoError(t, err)
	require.Equal(t, p, got)
	require.Equal(t, Big, got.Flags.Order())
	require.Equal(t, Little, FlagIOMap.Order())

	p.Flags = FlagNet
	got, err = ParsePrivate(p.Append(nil))
	require.NoError(t, err)
	require.Zero(t, got.IOMap, "the octet does not count without its flag")
}

// TestRSK_2_Messages compares the codec with captured octets, and with the same octets in the order of a big-endian host.
func TestRSK_2_Messages(t *testing.T) {
	for _, c := range []struct {
		octets string
		want   Message
		text   string
	}{
		{"80010080", NewMessage(OpSGL, 384), "SGL 384"},
		{"10000000", NewMessage(OpData, 16), "DATA 16"},
		{"e8030000", NewMessage(OpData, 1000), "DATA 1000"},
		{"52030080", NewMessage(OpSGL, 850), "SGL 850"},
		{"000000e0", NewMessage(OpCtrl, CtrlDisconnect), "CTRL 0"},
		{"020000e0", NewMessage(OpCtrl, CtrlShutdown), "CTRL 2"},
		{"030000c0", NewMessage(OpIOMapSGL, 3), "IOMAP_SGL 3"},
		{"ffffff1f", NewMessage(OpData, MaxData), "DATA 536870911"},
		{"05000020", NewMessage(1, 5), "op 1, 5"},
	} {
		b := octets(c.octets)
		m, err := ParseMessage(b, Little)
		require.NoError(t, err)
		require.Equal(t, c.want, m)
		require.Equal(t, b, m.Append(nil, Little))
		require.Equal(t, c.text, m.String())
		big := []byte{b[3], b[2], b[1], b[0]}
		require.Equal(t, big, m.Append(nil, Big))
		m, err = ParseMessage(big, Big)
		require.NoError(t, err)
		require.Equal(t, c.want, m)
	}
	for _, n := range []int{0, 1, 2, 3, 5} {
		_, err := ParseMessage(make([]byte, n), Little)
		require.ErrorContains(t, err, "octets in place of 4")
	}
}

// TestRSK_2_Slots compares the codec with captured octets.
func TestRSK_2_Slots(t *testing.T) {
	b := [SlotSize]byte(octets("0070ee3a837f0000" + "00defee2" + "00000800"))
	want := Slot{Addr: 0x7f833aee7000, Key: 0xe2fede00, Length: 512 << 10}
	require.Equal(t, want, ParseSlot(&b, Little))
	require.Equal(t, b[:], want.Append(nil, Little))
	big := [SlotSize]byte(octets("00007f833aee7000" + "e2fede00" + "00080000"))
	require.Equal(t, want, ParseSlot(&big, Big))
	require.Equal(t, big[:], want.Append(nil, Big))
	require.NoError(t, want.Check())
	require.Error(t, Slot{Length: MaxHalf + 1}.Check())
	require.Error(t, Slot{Addr: math.MaxUint64, Length: 1}.Check())
}

// TestRSK_17_CodecsAllocateNothing if the caller has the memory.
func TestRSK_17_CodecsAllocateNothing(t *testing.T) {
	b := make([]byte, 0, PrivateSize)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p, err := ParsePrivate(captured[0].want.Append(b[:0]))
		if err != nil || p.Credits != 384 {
			t.Error(p, err)
		}
		if m, err := ParseMessage(NewMessage(OpSGL, 7).Append(b[:0], Little), Little); err != nil || m.Data() != 7 {
			t.Error(m, err)
		}
	}))
}

func FuzzPrivate(f *testing.F) {
	for _, c := range captured {
		f.Add(octets(c.octets))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePrivate(b)
		if err != nil {
			return
		}
		again, err := ParsePrivate(p.Append(nil))
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.LessOrEqual(t, p.Half.Length, uint32(MaxHalf))
	})
}

// TestRSK_18_Entries: 24 octets in the order of the receiver, and their number in one octet.
func TestRSK_18_Entries(t *testing.T) {
	e := Entry{Offset: 0x0102030405060708, Slot: Slot{Addr: 0x1112131415161718, Key: 0x21222324, Length: 0x31323334}}
	little := e.Append(nil, Little)
	require.Equal(t, "0807060504030201"+"1817161514131211"+"24232221"+"34333231", hex.EncodeToString(little))
	require.Equal(t, e, ParseEntry((*[EntrySize]byte)(little), Little))
	require.Equal(t, e, ParseEntry((*[EntrySize]byte)(e.Append(nil, Big)), Big))

	for n, want := range map[int]struct {
		scaled  uint8
		entries int
	}{
		0: {0, 0}, 1: {1, 1}, 128: {128, 128}, 129: {0x81, 256}, 256: {0x81, 256}, 257: {0x82, 512}, MaxEntries: {0xff, MaxEntries},
	} {
		require.Equal(t, want.scaled, ScaleEntries(n), n)
		require.Equal(t, want.entries, Entries(want.scaled), n)
	}
}
