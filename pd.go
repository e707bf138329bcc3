package iwarp

import (
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/stag"
)

// A PD is a protection domain: a QP reaches only regions of its own PD, and so
// does its peer (RFC 5042 section 2.3). Peers that do not trust each other belong
// into different PDs, or their regions are bound to one QP (MROptions.QP).
type PD struct {
	rnic *RNIC
	id   uint32

	durable durable.OnReceive

	mu     lockorder.Mutex[lockorder.PD]
	users  int // MRs, MWs, SRQs and QPs
	closed bool
}

// A Buffer is registered octets that are not memory, such as a file ([FileBuffer]): RDMA Writes
// become WriteAt, RDMA Reads become ReadAt (RFC 4296 section 2: a buffer could be
// a disk file). Both may be called at the same time from several goroutines, and
// WriteAt in any order. Size is asked once, at registration. An atomic operation is a
// ReadAt and a WriteAt of eight octets at a position that is a multiple of eight: see
// the package documentation.
type Buffer = stag.Buffer

// MROptions are the rarer choices of a registration; nil means none.
type MROptions struct {
	// BaseTO is the tagged offset of the first octet. The default, zero, shows no
	// address of this process to the peer.
	BaseTO uint64
	// QP binds the region to one QP of the PD: no other peer can use its STag, and
	// only such a region can be invalidated by the peer (Send with Invalidate).
	QP *QP
	// Key, if it is not nil, is the low octet of the STag, chosen by the caller
	// (draft-hilland-rddp-verbs section 7.2). nil: one that a peer can hardly predict. AllocMR
	// does not look at it: each OpRegister has a key of its own.
	Key *uint8

	// Durable makes octets of the region survive a power cut, when the peer asks for it by
	// a Commit (see [QP.Commit]). Offsets are those in the region. Package commit has some,
	// which are Buffers and are registered as such. One of memory may have a method
	// Touched(off, n int64), which is then told of every octet that a peer has written. One
	// that is a Buffer may have a method Failed(off, n int64, err error), which is told of
	// RDMA Writes that it could not take: then such a one does not end the stream, and the
	// next Flush of its octets must fail. A message behind it is delivered all the same,
	// unless DurableOnReceive is set.
	Durable stag.Flusher
	// DurableOnReceive makes what peers have written durable before a receive of a QP of
	// the PD completes, so that a Send of the peer can take the place of a Commit and the
	// wait for it. If it fails the QP ends. The QP takes nothing from its peer meanwhile.
	DurableOnReceive bool
	// WriteThrough makes each segment durable as it is written, so that less is left to do
	// for a Commit.
	WriteThrough bool
	// Integrity checks octets before a Commit makes them durable. Its error is the status
	// commit.Integrity, and they are not.
	Integrity func(off, n int64) error

	// Withdraw is called before [MR.Invalidate] or [MR.Close] revokes the region, while peers may
	// still use it: the upper layer asks them to finish and to give it back, and waits for
	// that, so that no connection ends for an access to a region that is gone
	// (draft-talpey-rdma-commit-00 section 7). ctx is that of Invalidate, or never ends. If it
	// fails nothing is revoked, and the error is that of the call; when it has succeeded it is not
	// called again. While it is at work other calls fail, so that it must not call them
	// itself. Whatever else ends the region does not ask: a peer's or a posted invalidation,
	// [RNIC.Close].
	Withdraw func(ctx context.Context, mr *MR) error
}

// RegisterMR registers memory and returns its handle. From now until Invalidate or
// Close the peer may read or write buf at any moment that access allows; only a
// completion tells when it did. Reading locally is always allowed, and the rights
// RemoteWrite and RemoteAtomic need LocalWrite. An empty buf is refused.
//
// Every octet of buf must stay accessible until then. Beware of a mapped file: if somebody
// makes the file shorter, the next access behind its end, by the peer or by the data path
// of this process, is a SIGBUS that ends the process. [NewFileBuffer], and the mappings of
// package commit, answer that with an error instead.
func (pd *PD) RegisterMR(buf []byte, access stag.Access, opts *MROptions) (*MR, error) {
	return pd.register(nil, access, opts, func(_ *MR, o stag.Options) (*stag.Region, error) {
		return pd.rnic.table.Register(buf, o)
	})
}

// RegisterBuffer registers octets that are not memory; [NewFileBuffer] makes a Buffer of an
// *os.File. An error of the Buffer
// ends the stream whose operation met it, but for what a Commit will tell of: see
// MROptions.Durable.
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
			if opts.QP.pd != pd {
				return nil, fmt.Errorf("iwarp: register: MROptions.QP belongs to another PD")
			}
			o.Scope.Stream = opts.QP.id
		}
		if err := opts.durable(&o, buf); err != nil {
			return nil, err
		}
	}
	if err := pd.takeSTag(); err != nil {
		return nil, err
	}
	mr := &MR{pd: pd}
	if opts != nil {
		mr.ask = opts.Withdraw
	}
	region, err := reg(mr, o)
	if err != nil {
		pd.giveSTag()
		return nil, fmt.Errorf("iwarp: register: %w", clause{err})
	}
	mr.latest.Store(region)
	if opts != nil && opts.DurableOnReceive {
		pd.durable.Add(region)
	}
	return mr, nil
}

// takeSTag reserves one of the STags of the RNIC for an MR or MW of the PD.
func (pd *PD) takeSTag() error {
	if err := pd.use(); err != nil {
		return err
	}
	r := pd.rnic
	if err := r.take(&r.used.mr, r.limits.MaxMR, "memory regions and windows"); err != nil {
		pd.release()
		return err
	}
	return nil
}

func (pd *PD) giveSTag() {
	pd.rnic.used.mr.Give()
	pd.release()
}

// Close gives the PD back. It fails while regions, windows, SRQs or QPs of it are left.
func (pd *PD) Close() error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return nil
	}
	if pd.users > 0 {
		return fmt.Errorf("iwarp: close PD: still in use by %d regions, windows, shared receive queues and queue pairs", pd.users)
	}
	pd.closed = true
	pd.rnic.used.pd.Give()
	return nil
}

func (pd *PD) use() error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return fmt.Errorf("iwarp: PD closed: %w", net.ErrClosed)
	}
	pd.users++
	return nil
}

func (pd *PD) release() {
	pd.mu.Lock()
	pd.users--
	pd.mu.Unlock()
}
