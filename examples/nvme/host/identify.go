package host

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// maxInCapsule is the maximum number of octets of data that this host puts into a capsule.
const maxInCapsule = 16 << 10

// page executes an Identify.
func (a *assoc) page(ctx context.Context, m capsule.Identify) ([]byte, error) {
	page := make([]byte, capsule.PageSize)
	_, err := a.command(ctx, m.SQE(0, capsule.SGL{}), page)
	return page, err
}

// identify asks the controller for its limits, and refuses one with which this host cannot work.
func (a *assoc) identify(ctx context.Context) error {
	page, err := a.page(ctx, capsule.Identify{CNS: capsule.CNSController})
	if err != nil {
		return err
	}
	if a.id, err = capsule.ParseIdentifyController(page); err != nil {
		return err
	}
	if a.id.CNTRLTYPE == 0 && a.subnqn == capsule.DiscoveryNQN { // controllers before 1.4 do not report the type
		a.id.CNTRLTYPE = capsule.ControllerDiscovery
	}
	if err := a.id.CheckHost(a.cntlid); err != nil {
		return err
	}
	a.transfer = a.o.MaxTransfer
	if most := a.id.MaxTransfer(a.cap.MPSMIN); most > 0 {
		a.transfer = int(min(uint64(a.transfer), most))
	}
	return nil
}

// identifyNVM asks for the limits of Dataset Management and Write Zeroes, which controllers before 2.0 do not have.
func (a *assoc) identifyNVM(ctx context.Context) error {
	page, err := a.page(ctx, capsule.Identify{CNS: capsule.CNSCommandSet})
	var refused capsule.StatusError
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return err
	}
	a.nvm, err = capsule.ParseIdentifyNVM(page)
	return err
}

// ioEntries returns the size of the I/O queues.
func (a *assoc) ioEntries() int {
	n := min(a.o.QueueSize, int(a.cap.MQES)+1)
	if a.id.MAXCMD > 1 {
		n = min(n, int(a.id.MAXCMD))
	}
	return max(n, 2)
}

// inCapsule returns how many octets of data the capsules of I/O queues may contain.
func (a *assoc) inCapsule() int {
	if a.o.NoInCapsule {
		return 0
	}
	return int(min(a.id.InCapsuleSize(), maxInCapsule))
}

// maxNamespacePages bounds the number of namespaces of a controller: each page lists at most 1024.
const maxNamespacePages = 64

// namespaceIDs returns the active namespaces, in ascending order.
func (a *assoc) namespaceIDs(ctx context.Context) (ids []uint32, err error) {
	var after uint32
	for range maxNamespacePages {
		page, err := a.page(ctx, capsule.Identify{CNS: capsule.CNSNamespaceList, NSID: after})
		if err != nil {
			return nil, err
		}
		known := len(ids)
		if ids, err = capsule.ParseNamespaceList(ids, page, after); err != nil {
			return nil, err
		}
		if len(ids) < known+capsule.MaxNamespaces {
			return ids, nil
		}
		after = ids[len(ids)-1]
	}
	return nil, malformed("the controller has more than %d namespaces", maxNamespacePages*capsule.MaxNamespaces)
}

// An identity distinguishes namespaces: it holds the identifier of the subsystem, and those of the
// namespace in it.
type identity struct {
	serial      string
	nsid        uint32
	uuid, nguid [16]byte
	eui64       [8]byte
}

// A description is what Identify reports about a namespace.
type description struct {
	identity identity
	geometry capsule.Geometry
	readOnly bool
	zeroes   bool // trimmed LBAs read as zero
}

// pageOf is like page, for a namespace. If the controller does not have it, the error is capsule.ErrInactive.
func (a *assoc) pageOf(ctx context.Context, cns uint8, nsid uint32) ([]byte, error) {
	page, err := a.page(ctx, capsule.Identify{CNS: cns, NSID: nsid})
	if errors.Is(err, capsule.StatusError{Status: capsule.StatusInvalidNamespace}) {
		return nil, capsule.ErrInactive
	}
	return page, err
}

// describe requests the description of one namespace. If it is not active, even only since an earlier command, the error is capsule.ErrInactive.
func (a *assoc) describe(ctx context.Context, nsid uint32) (d description, err error) {
	page, err := a.pageOf(ctx, capsule.CNSNamespace, nsid)
	if err != nil {
		return d, err
	}
	ns, err := capsule.ParseIdentifyNamespace(page)
	if err != nil {
		return d, err
	}
	if d.geometry, err = ns.Geometry(); err != nil {
		return d, err
	}
	if d.geometry.BlockSize() > a.transfer {
		return d, malformed("an LBA has %d octets, and a command may move %d", d.geometry.BlockSize(), a.transfer)
	}
	d.readOnly = ns.NSATTR&capsule.NSATTRWriteProtected != 0
	d.zeroes = ns.DLFEAT&7 == capsule.DLFEATZeroes
	names, err := a.names(ctx, nsid, ns)
	if err != nil {
		return d, err
	}
	if names.CSI != 0 {
		return d, malformed("namespace %d has command set %d", nsid, names.CSI)
	}
	d.identity = identity{serial: a.id.SN, nsid: nsid, uuid: names.UUID, nguid: names.NGUID, eui64: names.EUI64}
	return d, nil
}

// names returns the identifiers of a namespace: from its descriptors, or if those have none, from Identify Namespace. Controllers before
// 1.3 need not have descriptors, and others refuse to return them.
func (a *assoc) names(ctx context.Context, nsid uint32, ns *capsule.IdentifyNamespace) (*capsule.Descriptors, error) {
	d := new(capsule.Descriptors)
	if a.version >= capsule.Version13 {
		page, err := a.pageOf(ctx, capsule.CNSDescriptors, nsid)
		var refused capsule.StatusError
		switch {
		case err == nil:
			if d, err = capsule.ParseDescriptors(page); err != nil {
				return nil, err
			}
		case !errors.As(err, &refused) || !unknown(refused.Status):
			return nil, err
		}
	}
	d.NGUID = cmp.Or(d.NGUID, ns.NGUID)
	d.EUI64 = cmp.Or(d.EUI64, ns.EUI64)
	return d, nil
}

// zeroesLimit returns the maximum number of octets of a Write Zeroes: that of commands that move octets, unless WZSL is less.
func (a *assoc) zeroesLimit() int {
	if a.nvm.WZSL == 0 {
		return a.transfer
	}
	return min(a.transfer, capsule.PageSize<<min(a.nvm.WZSL, 11)) // 8 MiB, which no command exceeds
}

// trimLimits returns how many ranges a Dataset Management may have, and of how many LBAs.
func (a *assoc) trimLimits() (ranges int, blocks uint32) {
	ranges, blocks = capsule.MaxDSMRanges, math.MaxUint32
	if a.nvm.DMRL > 0 {
		ranges = int(a.nvm.DMRL)
	}
	if a.nvm.DMRSL > 0 {
		blocks = a.nvm.DMRSL
	}
	if most := a.nvm.DMSL; most > 0 { // of all ranges together
		blocks = uint32(min(uint64(blocks), most))
		ranges = int(min(uint64(ranges), most/uint64(blocks)))
	}
	return ranges, blocks
}
