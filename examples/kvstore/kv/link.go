package kv

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A welcome is the first message of the backup: where its durable file is, which log the file contains, and a digest
// of its tenants.
type welcome struct {
	file    iwarp.RemoteBuffer
	mark    mark
	name    [nameLen]byte
	tenants [sha256.Size]byte
}

const welcomeLen = 16 + 8 + nameLen + sha256.Size

func (w *welcome) append(b []byte) ([]byte, error) {
	b, err := w.file.AppendBinary(b)
	b = append(binary.BigEndian.AppendUint64(b, w.mark.word()), w.name[:]...)
	return append(b, w.tenants[:]...), err
}

func (w *welcome) parse(b []byte) error {
	if len(b) != welcomeLen {
		return fmt.Errorf("kv: the backup has answered with %d octets, not with %d", len(b), welcomeLen)
	}
	w.mark = markOf(binary.BigEndian.Uint64(b[16:]))
	copy(w.name[:], b[24:])
	copy(w.tenants[:], b[24+nameLen:])
	return w.file.UnmarshalBinary(b[:16])
}

// missing returns from where on the backup needs the primary's log. A log that is not the beginning of the
// primary's, in this generation or the previous one, has another history.
func (w *welcome) missing(log *logFile) (mark, error) {
	all := mark{generation: log.mark.generation}
	switch {
	case w.mark.generation == 0:
		return all, nil
	case w.name != log.name:
		return all, fmt.Errorf("kv: the backup has the log of another store, or of another primary")
	case w.mark.generation == log.mark.generation && w.mark.tail <= log.mark.tail:
		return w.mark, nil
	case w.mark.generation == log.mark.generation-1:
		return all, nil
	}
	return all, fmt.Errorf("kv: the backup has changes that the primary does not have: generation %d up to %d, where the primary has generation %d up to %d",
		w.mark.generation, w.mark.tail, log.mark.generation, log.mark.tail)
}

// A link is the primary's connection to the backup.
type link struct {
	qp     *iwarp.QP
	theirs welcome
	named  bool // the backup's log has its name
	buf    []byte
	mr     *iwarp.MR
	lo, hi int64 // the range of the file that was written since the last commit
}

// stepTimeout bounds how long the backup may take to answer.
const stepTimeout = 5 * time.Second

// linkHead is the part of the link's buffer before the octets for the log: a mark to send, a mark that is
// received, and the name.
const linkHead = 8 + 8 + nameLen

func dialBackup(ctx context.Context, r *Replica) (*link, error) {
	auth, err := authAs(replicatorName, replicatorKey(r.cfg.Master))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	l := &link{buf: make([]byte, linkHead+maxBatch)}
	if l.mr, err = r.pd.RegisterMR(l.buf, stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	l.qp, err = r.rnic.Dial(ctx, r.cfg.Network, r.cfg.Backup, &iwarp.QPConfig{
		PD: r.pd, Auth: auth, PrivateData: []byte{byte(useReplicate)}, Commit: &iwarp.CommitOptions{Negotiate: true},
	})
	if err == nil {
		err = l.meet(ctx, r)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// meet waits for the backup, which may have to end a previous connection, and checks its log.
func (l *link) meet(ctx context.Context, r *Replica) error {
	n, err := l.qp.Recv(ctx, l.mr.Slice(0, welcomeLen))
	if err != nil {
		return fmt.Errorf("kv: the backup has not answered: %w", err)
	}
	if err := l.theirs.parse(l.buf[:n]); err != nil {
		return err
	}
	if _, _, ok := l.qp.CommitLimits(); !ok {
		return fmt.Errorf("kv: the backup serves no Commit")
	}
	if size := logStart + 2*r.log.half; uint64(l.theirs.file.Len) != size {
		return fmt.Errorf("kv: the backup's file has %d octets, that of the primary %d", l.theirs.file.Len, size)
	}
	if l.theirs.tenants != r.digest() {
		return fmt.Errorf("kv: the backup has other tenants, or memory of another size for them: start both with the same -tenants, -buckets and -values")
	}
	l.named = l.theirs.mark.generation > 0
	return nil
}

func (l *link) close() {
	if l.qp != nil {
		_ = l.qp.Abort()
	}
	_ = l.mr.Close()
}

// ended returns a channel that is closed when the connection has ended.
func (l *link) ended() <-chan struct{} { return l.qp.Done() }

// at returns n octets of the backup's file, from off.
func (l *link) at(off int64, n int) iwarp.RemoteBuffer { return l.theirs.file.Slice(int(off), n) }

// write writes octets to the backup's file, at most maxBatch, after those of the previous write.
func (l *link) write(ctx context.Context, off int64, b []byte) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if l.lo == l.hi {
		l.lo = off
	}
	l.hi = off + int64(len(b))
	if len(b) == 0 {
		return nil
	}
	copy(l.buf[linkHead:], b)
	return l.qp.RDMAWrite(ctx, l.at(off, len(b)), l.mr.Slice(linkHead, len(b)))
}

// mostUnsettled bounds how many octets the backup makes durable at once, except for one more batch. For a whole log its
// disk may need more than stepTimeout.
const mostUnsettled = 16 << 20

// settle makes the written octets durable if they are many. The mark, which only commit moves, does not cover them yet.
func (l *link) settle(ctx context.Context) error {
	if l.hi-l.lo < mostUnsettled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := l.qp.Commit(ctx, l.at(l.lo, int(l.hi-l.lo))); err != nil {
		return err
	}
	l.lo = l.hi
	return nil
}

// commit makes the written octets durable. When they are, the backup's mark becomes that of the log. Then
// commit tells the backup, which answers when its clients see the changes.
func (l *link) commit(ctx context.Context, log *logFile) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	f := iwarp.FollowOn{At: l.at(0, 8)}
	binary.BigEndian.PutUint64(f.Value[:], log.mark.word())
	var regions []iwarp.RemoteBuffer
	if !l.named {
		copy(l.buf[16:], log.name[:])
		if err := l.qp.RDMAWrite(ctx, l.at(nameAt, nameLen), l.mr.Slice(16, nameLen)); err != nil {
			return err
		}
		regions = append(regions, l.at(nameAt, nameLen))
	}
	if l.hi > l.lo {
		regions = append(regions, l.at(l.lo, int(l.hi-l.lo)))
	}
	if err := l.qp.CommitThen(ctx, f, regions...); err != nil {
		return err
	}
	l.named, l.lo, l.hi = true, 0, 0
	binary.BigEndian.PutUint64(l.buf, log.mark.word())
	if err := l.qp.Send(ctx, l.mr.Slice(0, 8)); err != nil {
		return err
	}
	if n, err := l.qp.Recv(ctx, l.mr.Slice(8, 8)); err != nil || n != 8 {
		return fmt.Errorf("kv: the backup has not answered: %d octets, %w", n, err)
	}
	if shown := markOf(binary.BigEndian.Uint64(l.buf[8:])); shown != log.mark {
		return fmt.Errorf("kv: the backup has answered with another mark: %v, not %v", shown, log.mark)
	}
	return nil
}
