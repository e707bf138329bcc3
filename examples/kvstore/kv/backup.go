package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A replicated is the backup's end of the connection of a primary, which writes the log.
type replicated struct {
	r    *Replica
	pd   *iwarp.PD // only for this connection: no other can name the file
	file *iwarp.MR
	msgs *iwarp.MR // of buf
	buf  []byte
	qp   *iwarp.QP // nil: not connected yet
	stop context.CancelFunc
}

// serveReplication lets the primary write the log. A previous connection ends first: its octets in flight
// must not be written later, since they contain an older mark.
func (r *Replica) serveReplication(ctx context.Context, cr *iwarp.ConnRequest) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &replicated{r: r, buf: make([]byte, msgsLen+welcomeLen), stop: stop}
	// A recorded Request that is replayed gets no further than this: it ends no connection.
	if err := s.accept(ctx, cr); err != nil {
		return errors.Join(err, s.close())
	}
	r.sessions.Lock()
	before := r.session
	r.session = s
	r.sessions.Unlock()
	if before != nil {
		before.stop()
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.close())
	}
	defer func() { <-r.turn }()
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	for {
		if err := s.next(ctx); err != nil {
			return err
		}
	}
}

// msgsLen is the number of octets of a received mark and of the answer.
const msgsLen = 8 + 8

// accept accepts the connection, and returns when the primary has proved that it is present.
func (s *replicated) accept(ctx context.Context, cr *iwarp.ConnRequest) (err error) {
	if s.pd, err = s.r.rnic.AllocPD(); err != nil {
		return err
	}
	if s.msgs, err = s.pd.RegisterMR(s.buf, stag.LocalWrite, nil); err != nil {
		return err
	}
	s.qp, err = cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, Commit: &iwarp.CommitOptions{Negotiate: true, StrictDurable: true}})
	return err
}

// open registers the file, and tells the primary of it.
func (s *replicated) open(ctx context.Context) (err error) {
	log := s.r.log
	if s.file, err = s.pd.RegisterBuffer(log.file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: log.file}); err != nil {
		return err
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	w := welcome{file: s.file.Advertise(0, int(log.file.Size())), mark: log.mark, name: log.name, tenants: s.r.digest()}
	if _, err := w.append(s.buf[:msgsLen]); err != nil {
		return err
	}
	return s.qp.Send(ctx, s.msgs.Slice(msgsLen, welcomeLen))
}

// catchUp shows clients the changes that the previous connection made durable but did not announce any more. A mark that
// the disk has refused does not count: the primary writes it again.
func (s *replicated) catchUp(ctx context.Context) error {
	log := s.r.log
	shown := log.mark
	if err := log.readMark(); err != nil || log.mark == shown {
		return err
	}
	m := log.mark
	log.mark = shown
	if err := log.file.Flush(ctx, 0, nameAt); err != nil {
		if ctx.Err() != nil { // Close, or a later connection, has interrupted it
			return err
		}
		s.r.cfg.Logger.Warn("the mark of the log is not durable", "err", err)
		return nil
	}
	return s.show(m)
}

// next waits until the primary reports that its log is durable here up to a mark, shows the changes to
// clients, and answers.
func (s *replicated) next(ctx context.Context) error {
	n, err := s.qp.Recv(ctx, s.msgs.Slice(0, 8))
	if err != nil {
		return err
	}
	if n != 8 {
		return fmt.Errorf("kv: the primary has sent %d octets, not a mark", n)
	}
	m := markOf(binary.BigEndian.Uint64(s.buf))
	if m.tail > s.r.log.half || m.generation == 0 {
		return fmt.Errorf("kv: the primary has sent a mark that is not possible: %v", m)
	}
	s.r.cfg.reached(stageDurable)
	if err = s.show(m); err == nil {
		err = s.r.serve()
	}
	if err != nil {
		s.r.fail(err)
		return err
	}
	s.r.cfg.reached(stageShown)
	copy(s.buf[8:], s.buf[:8])
	return s.qp.Send(ctx, s.msgs.Slice(8, 8))
}

// show makes the changes up to a mark in memory. Another generation consists of all changes that still count,
// which are known already if this replica was connected when the primary began it.
func (s *replicated) show(m mark) error {
	log := s.r.log
	from := log.mark
	if from.generation != m.generation {
		from = mark{generation: m.generation}
	}
	if _, err := log.scan(from, m.tail, true, s.r.apply); err != nil {
		return err
	}
	log.mark = m
	return log.readName()
}

// close returns when no octet of the connection can be written any more, however long the disk takes.
func (s *replicated) close() error {
	var errs []error
	if s.qp != nil {
		_ = s.qp.Abort()
		<-s.qp.Done()
	}
	for _, mr := range []*iwarp.MR{s.file, s.msgs} {
		if mr != nil {
			errs = append(errs, mr.CloseContext(context.Background()))
		}
	}
	if s.pd != nil {
		errs = append(errs, s.pd.Close())
	}
	return errors.Join(errs...)
}
