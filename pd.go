package iwarp

import (
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/stag"
)

// A PD is a protection domain. A QP, and its peer, can access only regions of the QP's PD (RFC
// 5042 section 2.3). Put peers that do not trust each other into different PDs, or bind their
// regions to one QP (MROptions.QP).
type PD struct {
	rnic *RNIC
	id   uint64

	durable durable.OnReceive

	users quota.Users[lockorder.PD] // MRs, MWs, SRQs and QPs
}

// A Buffer provides octets that are not in memory, such as those of a file ([FileBuffer]), for
// registration (RFC 4296 section 2: a buffer could be a disk file). RDMA Writes call WriteAt
// and RDMA Reads call ReadAt. Both may be called from several goroutines at the same time, and
// WriteAt in any order. Size is called once, first of all, by the goroutine that registers the
// Buffer or posts the OpRegister. An atomic operation is a ReadAt and a WriteAt of eight octets
// at an offset that is a multiple of eight: see the package documentation. A Buffer whose octets
// are in memory, behind a lock for example, may be a [stag.MemoryBuffer]; its payload is then
// copied once less.
//
// A goroutine that calls any other method is sending or receiving for a QP. A method must therefore
// not wait for work of that QP: a blocking helper there waits for itself, until its context ends.
type Buffer = stag.Buffer

// MROptions are the optional parameters of a registration. A nil *MROptions means the
// defaults.
type MROptions struct {
	// BaseTO is the tagged offset of the first octet. The default, zero, reveals no address of
	// this process to the peer.
	BaseTO uint64
	// QP binds the region to one QP of the PD: no other peer can use its STag. Only such a
	// region can be invalidated by the peer (Send with Invalidate).
	QP *QP
	// Key, if not nil, is the low octet of the STag (draft-hilland-rddp-verbs section 7.2). If
	// it is nil, the library chooses a key that a peer can hardly predict. AllocMR ignores it:
	// each OpRegister has a key of its own.
	Key *uint8

	// Durable makes octets of the region durable when the peer requests it by a Commit (see
	// [QP.Commit]), so that they survive a power failure, for example. Its offsets are
	// relative to the region. A commit.File, commit.Mapping or commit.Buffer is a Buffer, and must
	// be passed to RegisterBuffer, too; a commit.Group is for memory, or another Buffer.
	//
	// If the region is memory, Durable may have a method Touched(off, n int64), which is
	// called for all octets that a peer has written. If Durable is a Buffer, it may have a
	// method Failed(off, n int64, err error), which is called for each RDMA Write that it
	// could not store. Such a failure does not end the stream; instead the next Flush of those
	// octets must fail. A message that follows the Write is delivered nevertheless, unless
	// DurableOnReceive is set. A panic of either method ends the QP, or makes the next Commit fail.
	Durable stag.Flusher
	// DurableOnReceive makes what peers have written durable before a receive of a QP of the
	// PD completes, so that a Send of the peer can replace a Commit and the wait for its
	// response. If that fails the QP ends. Meanwhile the QP receives nothing from its peer.
	//
	// A closed region is no longer made durable, since its Durable may be closed, too: a message that arrives after
	// [MR.Close] says nothing about what its sender wrote to the region before. Call the Flush method of Durable after
	// Close, and rely on such a message only if that has succeeded.
	DurableOnReceive bool
	// WriteThrough makes each segment durable as it is written, which leaves less work for a
	// Commit. It does not apply to atomic operations and follow-ons.
	WriteThrough bool
	// Integrity verifies octets before a Commit makes them durable, and the whole region before a receive with
	// DurableOnReceive does. After an error the octets are not made durable, and the Commit fails with commit.Integrity,
	// or the QP ends.
	Integrity func(off, n int64) error

	// Withdraw, if not nil, is called before [MR.Invalidate] or [MR.Close] revokes the region,
	// while peers may still use it. It allows the upper layer to ask its peers to stop using
	// the region, and to wait until they have done so, so that no connection ends because of
	// an access to a revoked region (draft-talpey-rdma-commit-00 section 7). ctx is that of
	// Invalidate or CloseContext; that of Close ends after Config.CloseTimeout. If Withdraw
	// fails, nothing is revoked and the caller gets its error; once it has succeeded it is not
	// called again. While it runs, other calls of these methods fail, so it must not call them
	// itself. Withdraw is not called if the region ends in another way: by an invalidation of
	// the peer or of a work request, or by [RNIC.Close].
	Withdraw func(ctx context.Context, mr *MR) error
}

// RegisterMR registers memory. From then until Invalidate or Close the peer may read or write
// buf at any time, as access allows; only a completion shows that it has done so. Local reads
// are always allowed. The rights RemoteWrite and RemoteAtomic require LocalWrite. buf must not
// be empty.
//
// Every octet of buf must stay accessible until then. Take care with a mapped file: if the
// file is truncated, the next access beyond its new end, by the peer or by the data path of
// this process, raises SIGBUS, which ends the process. With [NewFileBuffer], and the mappings
// of package commit, the access fails with an error instead.
func (pd *PD) RegisterMR(buf []byte, access stag.Access, opts *MROptions) (*MR, error) {
	return pd.register(nil, access, opts, func(_ *MR, o stag.Options) (*stag.Region, error) {
		return pd.rnic.table.Register(buf, o)
	})
}

// RegisterBuffer registers octets that are not in memory. [NewFileBuffer] makes a Buffer of an
// *os.File. An error of the Buffer ends the stream whose operation has caused it, except for
// an error that a Commit will report: see MROptions.Durable.
func (pd *PD) RegisterBuffer(buf Buffer, access stag.Access, opts *MROptions) (*MR, error) {
	return pd.register(buf, access, opts, func(_ *MR, o stag.Options) (*stag.Region, error) {
		return pd.rnic.table.RegisterBuffer(buf, o)
	})
}

func (pd *PD) register(buf Buffer, access stag.Access, opts *MROptions, reg func(*MR, stag.Options) (*stag.Region, error)) (*MR, error) {
	o := stag.Options{Access: access, Scope: stag.Scope{PD: pd.id}}
	if opts != nil {
		o.BaseTO, o.Key = opts.BaseTO, opts.Key
		if opts.QP != nil {
			if opts.QP.cfg.PD != pd {
				return nil, fmt.Errorf("iwarp: register: MROptions.QP belongs to another PD")
			}
			o.Scope.Stream = opts.QP.id
		}
		if err := opts.durable(&o, buf); err != nil {
			return nil, err
		}
	}
	if err := pd.takeSTag(quota.Regions); err != nil {
		return nil, err
	}
	mr, registered := &MR{pd: pd}, false
	defer func() {
		if !registered { // or the Buffer has panicked
			pd.giveSTag(quota.Regions)
		}
	}()
	if opts != nil {
		mr.ask = opts.Withdraw
	}
	region, err := reg(mr, o)
	if err != nil {
		return nil, fmt.Errorf("iwarp: register: %w", errtext.Clause(err))
	}
	registered = true
	mr.latest.Store(region)
	if opts != nil && opts.DurableOnReceive {
		pd.durable.Add(region)
	}
	return mr, nil
}

// takeSTag reserves an STag of the RNIC for an MR or MW of the PD.
func (pd *PD) takeSTag(k quota.Kind) error {
	if err := pd.use(k); err != nil {
		return err
	}
	r := pd.rnic
	if err := r.take(&r.used.mr, r.limits.MaxMR, "memory regions and windows"); err != nil {
		pd.users.Remove(k)
		return err
	}
	return nil
}

func (pd *PD) giveSTag(k quota.Kind) {
	pd.rnic.used.mr.Give()
	pd.users.Remove(k)
}

// Close releases the PD. It fails while the PD has regions, windows, SRQs or QPs. A QP counts until the channel of
// [QP.Done] is closed, which may be some time after its last completion.
func (pd *PD) Close() error {
	closed, users := pd.users.Close()
	switch {
	case users != "":
		return fmt.Errorf("iwarp: close PD: still in use by %s", users)
	case closed:
		pd.rnic.used.pd.Give()
	}
	return nil
}

func (pd *PD) use(k quota.Kind) error {
	if !pd.users.Add(k) {
		return fmt.Errorf("iwarp: PD closed: %w", net.ErrClosed)
	}
	return nil
}
