package capsule

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ourController returns the values of a target of this project.
func ourController() *IdentifyController {
	return &IdentifyController{
		SN: "0123456789abcdef0123", MN: "iWARP", FR: "1.0", RAB: 6, CMIC: CMICControllers, MDTS: 8, CNTLID: 0x102,
		VER: Version13, OAES: NoticeNamespaces, CTRATT: CTRATTHostID128 | CTRATTTrafficBased, CNTRLTYPE: ControllerIO,
		ACL: 3, AERL: 3, FRMW: 3, LPA: LPAEffects | LPAExtendedData, KAS: 10, SQES: EntrySizes64, CQES: EntrySizes16,
		MAXCMD: 128, NN: 1024, ONCS: ONCSDSM | ONCSWriteZeroes, VWC: VWCPresent | VWCFlushAll,
		SGLS: SGLSSupported | SGLSKeyed | SGLSInCapsule, MNAN: 1024, SubNQN: "nqn.example:a", IOCCSZ: 260, IORCSZ: 1,
		MSDBD: 1,
	}
}

func TestNVME_43_OffsetsOfIdentifyController(t *testing.T) {
	page := dirty()
	ourController().Put(page)
	for _, f := range []struct {
		off  int
		want string
	}{
		{4, "30313233343536373839616263646566 30313233"},
		{24, "6957415250" + strings.Repeat("20", 35)},
		{64, "312e302020202020"},
		{72, "06"},
		{76, "02 08 0201 00030100"},
		{92, "00010000 41000000"},
		{111, "01"},
		{258, "03 03 03 06 00"},
		{320, "0a00"},
		{512, "66 44 8000 00040000 0c00"},
		{525, "07 0000 0000"},
		{536, "05001000 00040000"},
		{768, "6e716e2e6578616d706c653a61"},
		{1792, "04010000 01000000 0000 00 01"},
	} {
		want := unhex(f.want)
		require.Equal(t, want, page[f.off:f.off+len(want)], f.off)
		clear(page[f.off : f.off+len(want)])
	}
	require.Equal(t, make([]byte, PageSize), page, "reserved octets are zero")

	// Each field that is not 0 is at its own offset.
	rest := &IdentifyController{
		VID: 0x0102, SSVID: 0x0304, ELPE: 5, ANATT: 6, ANACAP: 7, ANAGRPMAX: 0x08, NANAGRPID: 0x09, AWUN: 0x0A, AWUPF: 0x0B, NWPC: 0x10,
		ICDOFF: 0x0C, FCATT: 0x0D, PSD0: [32]byte{0x0E, 31: 0x0F},
	}
	rest.Put(page)
	at := map[int]byte{
		0: 2, 1: 1, 2: 4, 3: 3, 262: 5, 342: 6, 343: 7, 344: 8, 348: 9, 526: 10, 528: 11, 531: 16, 1800: 12, 1802: 13, 2048: 14, 2079: 15,
	}
	for off, v := range page {
		if off < 4 || off >= 72 { // texts are spaces
			require.Equal(t, at[off], v, off)
		}
	}
	got, err := ParseIdentifyController(page)
	require.NoError(t, err)
	require.Equal(t, rest, got)
}

func TestNVME_43_GoldenIdentifyController(t *testing.T) {
	all := goldenNamed(t, "data:identify-ctrl")
	require.Len(t, all, 5)
	for i, b := range all {
		c, err := ParseIdentifyController(b)
		require.NoError(t, err)
		require.NoError(t, c.CheckText())
		page := dirty()
		c.Put(page)
		require.Equal(t, b, page)

		require.Equal(t, "Linux", c.MN)
		require.Equal(t, map[bool]string{true: "6.12.117", false: "6.1.0-56"}[i < 3], c.FR)
		require.Len(t, c.SN, 20)
		discovery := i == 0 || i == 3
		require.Equal(t, discovery, c.SubNQN == DiscoveryNQN)
		require.Equal(t, discovery, c.CNTRLTYPE == ControllerDiscovery)
		require.Equal(t, Version13, c.VER)
		require.NoError(t, c.CheckHost(c.CNTLID))
		if discovery {
			require.Equal(t, NoticeDiscovery, c.OAES)
			continue
		}
		require.Equal(t, uint16(10), c.KAS)
		require.Equal(t, uint64(4096), c.InCapsuleSize())
		require.Equal(t, uint64(1<<20), c.MaxTransfer(0))
	}
}

func TestHOST_6_ControllersThatAHostRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*IdentifyController)
	}{
		{"CNTLID 259, where Connect gave 258", func(c *IdentifyController) { c.CNTLID++ }},
		{"keyed SGLs", func(c *IdentifyController) { c.SGLS &^= SGLSKeyed }},
		{"no SGLs", func(c *IdentifyController) { c.SGLS &^= SGLSSupported }},
		{"IOCCSZ 3", func(c *IdentifyController) { c.IOCCSZ = 3 }},
		{"IORCSZ 0", func(c *IdentifyController) { c.IORCSZ = 0 }},
		{"ICDOFF 1", func(c *IdentifyController) { c.ICDOFF = 1 }},
		{"Keep Alive", func(c *IdentifyController) { c.KAS = 0 }},
		{"MDTS 32", func(c *IdentifyController) { c.MDTS = 32 }},
		{"", func(c *IdentifyController) { c.IOCCSZ = 4 }},
		{"", func(c *IdentifyController) { c.SGLS = 2 | SGLSKeyed }},
		{"", func(c *IdentifyController) { c.CNTRLTYPE, c.IOCCSZ, c.IORCSZ, c.KAS = ControllerDiscovery, 0, 0, 0 }},
	} {
		id := ourController()
		c.change(id)
		err := id.CheckHost(0x102)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, c.want)
	}
	_, err := ParseIdentifyController(make([]byte, PageSize-1))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestHOST_8_SizeOfDataInTheCapsule(t *testing.T) {
	c := ourController()
	require.Equal(t, uint64(4096), c.InCapsuleSize())
	c.IOCCSZ = 4
	require.Zero(t, c.InCapsuleSize())
	c.IOCCSZ = 3
	require.Zero(t, c.InCapsuleSize())
	c.IOCCSZ = 0xFFFFFFFF
	require.Equal(t, uint64(0xFFFFFFFB)*16, c.InCapsuleSize())
	c.SGLS &^= SGLSInCapsule
	require.Zero(t, c.InCapsuleSize())
}

func TestHOST_15_LargestTransfer(t *testing.T) {
	c := &IdentifyController{}
	require.Zero(t, c.MaxTransfer(0))
	c.MDTS = 8
	require.Equal(t, uint64(1<<20), c.MaxTransfer(0))
	require.Equal(t, uint64(1<<22), c.MaxTransfer(2))
	c.MDTS = 255
	require.Equal(t, uint64(1)<<58, c.MaxTransfer(255), "no overflow")
}

func TestNVME_43_TextsOfOurs(t *testing.T) {
	require.NoError(t, ourController().CheckText())
	for _, c := range []struct {
		want   string
		change func(*IdentifyController)
	}{
		{"serial number", func(c *IdentifyController) { c.SN += "4" }},
		{"model number", func(c *IdentifyController) { c.MN = strings.Repeat("m", 41) }},
		{"model number", func(c *IdentifyController) { c.MN = "a " }},
		{"firmware revision", func(c *IdentifyController) { c.FR = "1.0.0.0.0" }},
		{`"a\nb"`, func(c *IdentifyController) { c.SN = "a\nb" }},
		{"serial number", func(c *IdentifyController) { c.SN = "ü" }},
		{"NQN", func(c *IdentifyController) { c.SubNQN = "" }},
	} {
		id := ourController()
		c.change(id)
		require.ErrorContains(t, id.CheckText(), c.want)
	}
	// What is too long does not get into the next field.
	id := &IdentifyController{SN: strings.Repeat("s", 50), FR: strings.Repeat("f", 50), SubNQN: strings.Repeat("n", 300)}
	page := dirty()
	id.Put(page)
	require.Equal(t, strings.Repeat(" ", 40), string(page[24:64]))
	require.Zero(t, binary.LittleEndian.Uint64(page[72:]))
	require.Zero(t, page[1024])
}
