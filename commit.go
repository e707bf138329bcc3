package iwarp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// A FollowOn describes eight octets that the peer stores and makes durable when all regions of
// a Commit are durable, before it answers. A typical use is a pointer to the end of a log,
// stored after the record itself. The octets are stored atomically at the beginning of At,
// which must be aligned to eight octets and lie in a region with RemoteWrite. They are not
// stored if the Commit fails. The region must be memory, or a Buffer that can store eight
// octets atomically ([stag.AtomicBuffer]), such as a commit.File or commit.Mapping; otherwise
// the peer ends the stream (0/2/07) and stores nothing. Value is a big-endian integer; the
// peer stores it in the byte order of its host.
type FollowOn struct {
	At    RemoteBuffer
	Value [8]byte
}

// CommitOptions configures RDMA Commit (draft-talpey-rdma-commit-00) on a QP. The code points
// of the draft are not assigned, and a later draft uses them differently, so both ends must
// agree to use Commit: by Negotiate, or by means of their own. A peer that does not support
// Commit answers one by ending the stream with 0/2/06.
type CommitOptions struct {
	// Negotiate sends an offer of Commit in 20 octets before PrivateData.
	// [ConnRequest.PrivateData] and [QP.PrivateData] omit the offer. Commit is then enabled
	// only if the peer makes an offer, too. Without Negotiate the peer is assumed to have the
	// default limits.
	Negotiate bool
	// MaxRegions limits the number of regions in one Commit, in both directions: 1 to 65,535. The
	// default is 64. A Commit of the peer with more regions ends the stream (1/2/05).
	MaxRegions int
	// MaxOctets limits the total length of the regions of a Commit of the peer; 0 means no limit.
	// A Commit that exceeds it fails with the status commit.Limit.
	MaxOctets uint64
	// StrictDurable makes a Commit fail with commit.NotDurable if a region has no Durable
	// backing. Otherwise such a region does not affect the result.
	StrictDurable bool
}

const defaultCommitRegions = 64

var errNoCommit = fmt.Errorf("%w: Commit is not enabled on this QP (QPConfig.Commit), or not by the peer", ErrUnsupported)

func (o *CommitOptions) withDefaults() (*CommitOptions, error) {
	c := *o
	c.MaxRegions = cmp.Or(c.MaxRegions, defaultCommitRegions)
	if c.MaxRegions < 1 || c.MaxRegions > math.MaxUint16 {
		return nil, fmt.Errorf("iwarp: CommitOptions.MaxRegions is %d, not within 1..%d", o.MaxRegions, math.MaxUint16)
	}
	return &c, nil
}

// commits is the state of RDMA Commit on one QP.
type commits struct {
	ext     *rdmap.Extension // nil if Commit is not enabled
	peer    commit.Offer     // limits of the peer
	private []byte           // private data of the peer's application
	id      uint32           // ID of the last Commit posted; guarded by the stream's lock
	stats   commit.Stats
}

// offer returns our private data, preceded by an offer of Commit if that is wanted and
// configured.
func (qp *QP) offer(wanted bool) []byte {
	o := qp.cfg.Commit
	if !wanted || o == nil || !o.Negotiate {
		return qp.cfg.PrivateData
	}
	return append(o.limits().Append(nil), qp.cfg.PrivateData...)
}

func (o *CommitOptions) limits() commit.Offer {
	return commit.Offer{Regions: uint16(o.MaxRegions), Octets: o.MaxOctets}
}

// agree evaluates the peer's offer before the stream begins.
func (qp *QP) agree() {
	c, o := &qp.commits, qp.cfg.Commit
	offered, private, ok := commit.CutOffer(qp.terms.PeerPrivateData)
	c.private = private
	if o == nil || o.Negotiate && !ok {
		return
	}
	c.peer = commit.Offer{Regions: defaultCommitRegions}
	if o.Negotiate {
		c.peer = offered
	}
	c.peer.Regions = min(c.peer.Regions, uint16(o.MaxRegions))
	c.ext = commit.NewExtension(commit.Config{
		Table: qp.rnic.table, Scope: stag.Scope{PD: qp.cfg.PD.id, Stream: qp.id},
		Limits: o.limits(), Strict: o.StrictDurable, Stats: &c.stats,
		Task: qp.rnic.tasks.Starter, UnderWay: qp.rnic.tasks.Add,
		Panicked: func(p *stag.PanicError) { durable.LogPanic(qp.rnic.log, p) },
	})
}

func (c *commits) extensions() []*rdmap.Extension {
	if c.ext == nil {
		return nil
	}
	return []*rdmap.Extension{c.ext}
}

// CommitLimits returns the limits of one Commit to the peer: its number of regions, and their
// total length in octets. ok is false if Commit is not enabled on this QP.
func (qp *QP) CommitLimits() (regions int, octets uint64, ok bool) {
	if qp.conn.Load() == nil || qp.commits.ext == nil {
		return 0, 0, false
	}
	return int(qp.commits.peer.Regions), cmp.Or(qp.commits.peer.Octets, math.MaxUint64), true
}

// fillCommit fills in a Commit Request from a work request.
func (qp *QP) fillCommit(r *rdmap.Request, wr *SendWR) error {
	regions, octets, ok := qp.CommitLimits()
	switch {
	case qp.cfg.Commit != nil && qp.conn.Load() == nil:
		return errNotConnected // what the peer allows is not known
	case !ok:
		return errNoCommit
	case qp.ORD() == 0:
		return fmt.Errorf("%w: Commit counts against the ORD, which is 0 (QPConfig.ORD, or the peer's IRD)", ErrUnsupported)
	case len(wr.Regions) > regions:
		return fmt.Errorf("%w: Commit of %d regions, the peer allows %d", ErrLimit, len(wr.Regions), regions)
	case len(wr.Regions) == 0 && wr.FollowOn == nil:
		return errors.New("iwarp: Commit without a region")
	}
	if err := noPayload(wr); err != nil {
		return err
	}
	c := &qp.commits
	r.Kind, r.Ext = rdmap.KindExtension, c.ext
	b, sum := commit.AppendRequest(r.Inline[:0], c.id+1, wr.Regions)
	if sum > octets {
		return fmt.Errorf("%w: Commit of %d octets, the peer allows %d", ErrLimit, sum, octets)
	}
	if f := wr.FollowOn; f != nil {
		if f.At.Len < stag.AtomicLen {
			return fmt.Errorf("%w: follow-on to a RemoteBuffer of %d octets", ErrBounds, f.At.Len)
		}
		b = commit.AppendFollowOn(b, commit.Region(f.At), binary.BigEndian.Uint64(f.Value[:]))
	}
	r.Inline = b
	c.id++
	return nil
}

// Commit makes octets in the peer's memory durable, and returns when they are. It covers what
// all work requests posted earlier on this QP have written to the regions. The octets then
// survive the end of the peer's process, and any other failure that the backing of the regions
// promises to survive (the peer's MROptions.Durable). For a region without a backing Commit
// guarantees nothing.
//
// If the peer's media fail, the error is a *[commit.Error], and the QP remains usable; it is
// then unknown which octets are durable. Commit requires RemoteWrite, and counts against the
// ORD as an RDMA Read does.
//
// Work requests posted after a Commit do not wait for it, and are executed even if it fails.
// To write something only if the Commit succeeds, wait for it, or use [QP.CommitThen].
func (qp *QP) Commit(ctx context.Context, regions ...RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpCommit, Regions: regions})
	return err
}

// CommitThen is like Commit, but then stores eight octets; see [FollowOn].
func (qp *QP) CommitThen(ctx context.Context, f FollowOn, regions ...RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpCommit, Regions: regions, FollowOn: &f})
	return err
}

// CommitRange commits n octets at tagged offset to, for any n. It splits them into as many
// Commits as the limits of the peer require, and waits for each before it posts the next.
func (qp *QP) CommitRange(ctx context.Context, st stag.STag, to, n uint64) error {
	regions, octets, ok := qp.CommitLimits()
	if !ok {
		return qp.Commit(ctx) // which says why it is refused
	}
	if n > 0 && to > math.MaxUint64-n {
		return fmt.Errorf("%w: %d octets from TO %#x wrap around", ErrBounds, n, to)
	}
	for list := range commit.Split[RemoteBuffer](st, to, n, regions, octets) {
		if err := qp.Commit(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}
