package iwarp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// A FollowOn is eight octets that the peer stores when all regions of a Commit are
// durable, and then makes durable, too, before it answers: the pointer to the end of a log
// behind its record, say. They are stored at once, aligned to eight octets at the
// beginning of At, in a region with RemoteWrite, and not at all if the Commit has failed. That
// region is memory, or a Buffer that stores eight octets at once ([stag.AtomicBuffer]), as
// the backings of package commit do; else the stream ends (0/2/07) with nothing stored.
// Value is a big-endian integer, which the peer stores in the byte order of its host.
type FollowOn struct {
	At    RemoteBuffer
	Value [8]byte
}

// CommitOptions are how a QP does RDMA Commit (draft-talpey-rdma-commit-00). Its code
// points are not assigned and a later draft uses them otherwise, so both ends must agree
// on it: by Negotiate, or as their applications please. A Commit to a peer that does
// not know it ends the stream with 0/2/06.
type CommitOptions struct {
	// Negotiate offers Commit in 20 octets ahead of PrivateData, which neither
	// [ConnRequest.PrivateData] nor [QP.PrivateData] shows; it is then enabled only if the
	// peer does the same.
	Negotiate bool
	// MaxRegions is how many regions one Commit may have, of either side, 64 by default. If the
	// peer sends more the stream ends (1/2/05).
	MaxRegions int
	// MaxOctets is how many octets they may have in sum, 0: any number. More is a status,
	// commit.Limit.
	MaxOctets uint64
	// StrictDurable answers a Commit of a region that nothing makes durable with
	// commit.NotDurable. Without it, that is none of Commit's business and a success.
	StrictDurable bool
}

const defaultCommitRegions = 64

var errNoCommit = fmt.Errorf("%w: Commit is not enabled on this QP (QPConfig.Commit), or not by the peer", ErrUnsupported)

func (o *CommitOptions) withDefaults() (*CommitOptions, error) {
	c := *o
	if c.MaxRegions == 0 {
		c.MaxRegions = defaultCommitRegions
	}
	if c.MaxRegions < 1 || c.MaxRegions > math.MaxUint16 {
		return nil, fmt.Errorf("iwarp: CommitOptions.MaxRegions is %d, not within 1..%d", o.MaxRegions, math.MaxUint16)
	}
	return &c, nil
}

// commits is RDMA Commit of one QP.
type commits struct {
	ext     *rdmap.Extension // nil: not enabled
	peer    commit.Offer     // what the peer takes
	private []byte           // of the peer's application
	id      uint32           // of the last Commit posted; guarded by the stream's lock
	stats   commit.Stats
}

// offer returns our private data, with an offer in front if there is to be one.
func (qp *QP) offer(wanted bool) []byte {
	o := qp.cfg.Commit
	if !wanted || o == nil || !o.Negotiate {
		return qp.cfg.PrivateData
	}
	return append(o.limits().Append(nil), qp.cfg.PrivateData...)
}

// offersCommit reports whether an initiator has offered RDMA Commit.
func offersCommit(private []byte) bool {
	_, _, ok := commit.CutOffer(private)
	return ok
}

func (o *CommitOptions) limits() commit.Offer {
	return commit.Offer{Regions: uint16(o.MaxRegions), Octets: o.MaxOctets}
}

// agree looks at what the peer has said, before the stream begins.
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
		Table: qp.rnic.table, Scope: stag.Scope{PD: qp.pd.id, Stream: qp.id},
		Limits: o.limits(), Strict: o.StrictDurable, Stats: &c.stats,
		Task: qp.rnic.tasks.Starter, UnderWay: qp.rnic.tasks.Add,
	})
}

func (qp *QP) extensions() []*rdmap.Extension {
	if qp.commits.ext == nil {
		return nil
	}
	return []*rdmap.Extension{qp.commits.ext}
}

// CommitLimits returns how many regions, and octets in sum, one Commit to the peer may
// have. ok is false if Commit is not enabled on this QP.
func (qp *QP) CommitLimits() (regions int, octets uint64, ok bool) {
	if qp.conn.Load() == nil || qp.commits.ext == nil {
		return 0, 0, false
	}
	octets = qp.commits.peer.Octets
	if octets == 0 {
		octets = math.MaxUint64
	}
	return int(qp.commits.peer.Regions), octets, true
}

// fillCommit makes a Commit Request of a work request.
func (qp *QP) fillCommit(r *rdmap.Request, wr *SendWR) error {
	regions, octets, ok := qp.CommitLimits()
	switch {
	case !ok:
		return errNoCommit
	case qp.ORD() == 0:
		return fmt.Errorf("%w: Commit counts against the ORD, which is 0 (QPConfig.ORD, or the peer's IRD)", ErrUnsupported)
	case len(wr.Regions) > regions:
		return fmt.Errorf("%w: Commit of %d regions, the peer takes %d", ErrLimit, len(wr.Regions), regions)
	case len(wr.Regions) == 0 && wr.FollowOn == nil:
		return errors.New("iwarp: Commit of no region")
	}
	if err := noPayload(wr); err != nil {
		return err
	}
	c := &qp.commits
	r.Kind, r.Ext = rdmap.KindExtension, c.ext
	b := binary.BigEndian.AppendUint32(r.Inline[:0], c.id+1)
	var sum uint64
	for _, g := range wr.Regions {
		b = commit.Region(g).Append(b)
		sum += uint64(g.Len)
	}
	if len(wr.Regions) == 0 { // a request has at least one: it asks for nothing
		b = commit.Region{}.Append(b)
	}
	if sum > octets {
		return fmt.Errorf("%w: Commit of %d octets, the peer takes %d", ErrLimit, sum, octets)
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

// Commit makes octets of the peer durable, and returns when they are: what was written to
// them by everything posted before on this QP survives the end of the peer's process, and
// as much more as the backing there promises that the regions were registered with
// (MROptions.Durable). Of a region that has none it tells nothing.
//
// If the peer's media fail, the error is a *[commit.Error] and the QP goes on; how much is
// durable is then not known. Commit needs the peer's RemoteWrite, and a slot of the ORD as
// an RDMA Read does.
//
// Beware: what is posted behind a Commit is not held back by it, and not by its failure.
// To write something only if the Commit succeeds, wait for it, or use
// [QP.CommitThen].
func (qp *QP) Commit(ctx context.Context, regions ...RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpCommit, Regions: regions})
	return err
}

// CommitThen is Commit, and then stores eight octets; see [FollowOn].
func (qp *QP) CommitThen(ctx context.Context, f FollowOn, regions ...RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpCommit, Regions: regions, FollowOn: &f})
	return err
}

// CommitRange is Commit of n octets from to, any number of them: in as many requests, one
// after the other, as it takes to stay below what the peer allows in one.
func (qp *QP) CommitRange(ctx context.Context, st stag.STag, to, n uint64) error {
	regions, octets, ok := qp.CommitLimits()
	if !ok {
		return errNoCommit
	}
	if n > 0 && to > math.MaxUint64-n {
		return fmt.Errorf("%w: %d octets from TO %#x wrap", ErrBounds, n, to)
	}
	for n > 0 {
		var list []RemoteBuffer
		for room := min(n, octets); room > 0 && len(list) < regions; {
			g := RemoteBuffer{STag: st, TO: to, Len: uint32(min(room, math.MaxUint32))}
			list = append(list, g)
			room, to, n = room-uint64(g.Len), to+uint64(g.Len), n-uint64(g.Len)
		}
		if err := qp.Commit(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}
