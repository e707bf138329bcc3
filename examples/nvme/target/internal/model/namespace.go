package model

import (
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A NamespaceConfig is what hosts are told about a namespace, and what applies to commands on it.
type NamespaceConfig struct {
	NSID     uint32 // 1 to Limits.NamespaceCount
	Geometry capsule.Geometry
	// UUID and NGUID name the namespace. The UUID must not be zero, must not belong to another namespace, and must be
	// the same after a restart. An NGUID of zeros means none.
	UUID, NGUID [16]byte
	ReadOnly    bool
	Volatile    bool // there is a cache that a power cut loses
	Trims       bool // Dataset Management frees space; otherwise the command is not supported
	// TrimmedZeroes reports that trimmed octets read as zeros at once, and after a restart.
	TrimmedZeroes bool
	// Granularity is the number of octets of which writes and trims should be multiples. 0: an LBA.
	Granularity uint32
	// Handle belongs to the engine: its back end.
	Handle any
}

// A Namespace is a namespace of a subsystem. It never changes: a Namespace with another size replaces it.
type Namespace struct {
	NamespaceConfig
	lbads     uint8
	bounds    capsule.Bounds
	maxBlocks uint32 // of a range of Dataset Management
	flush     []*Namespace
}

// maxTrim is the length of the longest range of Dataset Management, in octets.
const maxTrim = 1 << 30

// newNamespace checks the configuration.
func newNamespace(cfg NamespaceConfig, limits *Limits, maxTransfer uint64) (*Namespace, error) {
	g := cfg.Geometry
	switch {
	case cfg.NSID == 0 || uint64(cfg.NSID) > uint64(limits.NamespaceCount):
		return nil, fmt.Errorf("nvme: NSID %d is not 1 to %d", cfg.NSID, limits.NamespaceCount)
	case g.LBADS < 9 || g.LBADS > 16:
		return nil, fmt.Errorf("nvme: LBADS %d of namespace %d is not 9 to 16", g.LBADS, cfg.NSID)
	case g.Blocks == 0 || g.Blocks > math.MaxInt64>>g.LBADS:
		return nil, fmt.Errorf("nvme: namespace %d has %d LBAs", cfg.NSID, g.Blocks)
	case cfg.UUID == [16]byte{}:
		return nil, fmt.Errorf("nvme: namespace %d has no UUID", cfg.NSID)
	case cfg.Granularity>>g.LBADS > 1<<16:
		return nil, fmt.Errorf("nvme: the granularity of namespace %d is %d octets", cfg.NSID, cfg.Granularity)
	}
	n := &Namespace{
		NamespaceConfig: cfg,
		lbads:           g.LBADS,
		bounds: capsule.Bounds{
			NSZE: g.Blocks, LBADS: g.LBADS, MaxTransfer: maxTransfer, ReadOnly: cfg.ReadOnly,
		},
		maxBlocks: maxTrim >> g.LBADS,
	}
	n.flush = []*Namespace{n}
	return n, nil
}

// identify returns the data of Identify Namespace.
func (n *Namespace) identify() capsule.IdentifyNamespace {
	g := n.Geometry
	d := capsule.IdentifyNamespace{
		NSZE: g.Blocks, NCAP: g.Blocks, NUSE: g.Blocks,
		NMIC:  capsule.NMICShared,
		NGUID: n.NGUID,
	}
	d.LBAF[0].LBADS = g.LBADS
	if n.TrimmedZeroes {
		d.DLFEAT = capsule.DLFEATZeroes | capsule.DLFEATWriteZeroes
	}
	if n.ReadOnly {
		d.NSATTR = capsule.NSATTRWriteProtected
	}
	if blocks := n.Granularity >> g.LBADS; blocks > 1 {
		d.NSFEAT = capsule.NSFEATOptimal
		v := uint16(blocks - 1)
		d.NPWG, d.NPWA, d.NPDG, d.NPDA, d.NOWS = v, v, v, v, v
	}
	return d
}

// A table is the namespaces of a subsystem. It never changes.
type table struct {
	byID     []*Namespace // NSID - 1; nil: not active
	ids      []uint32     // active, ascending
	volatile []*Namespace
}

// get finds an active namespace.
func (t *table) get(nsid uint32) *Namespace {
	if i := uint64(nsid) - 1; i < uint64(len(t.byID)) {
		return t.byID[i]
	}
	return nil
}

// with returns the table with n instead of the namespace with its id, or, if n is nil, without that namespace.
func (t *table) with(nsid uint32, n *Namespace) *table {
	u := &table{byID: make([]*Namespace, max(len(t.byID), int(nsid)))}
	copy(u.byID, t.byID)
	u.byID[nsid-1] = n
	for _, n := range u.byID {
		if n == nil {
			continue
		}
		u.ids = append(u.ids, n.NSID)
		if n.Volatile {
			u.volatile = append(u.volatile, n)
		}
	}
	return u
}
