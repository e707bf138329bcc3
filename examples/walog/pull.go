package main

import (
	"context"
	"encoding/binary"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// The pull model (draft-talpey-rdma-commit-00 section 1): the writer says where the record
// is, and the target fetches it, syncs its file and answers. It is here only for the
// comparison.

// askLen is the length of a request: where the record is, where it goes in the file, and the new mark.
const askLen = 16 + 8 + 8

// servePull serves the writer until the connection ends.
func (s *session) servePull(ctx context.Context) {
	buf := make([]byte, askLen)
	mr, err := s.pd.RegisterMR(buf, stag.LocalWrite, nil)
	if err != nil {
		_ = s.qp.Abort()
		return
	}
	defer func() { _ = mr.Close() }()
	for {
		if _, err := s.qp.Recv(ctx, mr.Slice(0, askLen)); err != nil {
			return
		}
		if err := s.pullOne(ctx, buf); err != nil {
			_ = s.qp.Abort()
			return
		}
	}
}

func (s *session) pullOne(ctx context.Context, ask []byte) error {
	var at iwarp.RemoteBuffer
	if err := at.UnmarshalBinary(ask[:16]); err != nil {
		return err
	}
	off := int(binary.LittleEndian.Uint64(ask[16:]))
	if err := s.qp.RDMARead(ctx, s.file.Slice(off, int(at.Len)), at); err != nil {
		return err
	}
	file := s.t.file
	if err := file.Flush(ctx, int64(off), int64(at.Len)); err != nil {
		return err
	}
	if _, err := file.WriteAt(ask[24:32], 0); err != nil {
		return err
	}
	if err := file.Flush(ctx, 0, 8); err != nil {
		return err
	}
	return s.qp.Send(ctx)
}

// A puller is a writer of this kind. It has one target, and writes one record at a time.
type puller struct {
	rnic   *iwarp.RNIC
	qp     *iwarp.QP
	mem    []byte // the intended contents of the file
	log    *iwarp.MR
	ask    []byte
	said   *iwarp.MR // ask
	end    uint64
	number uint64
}

func openPuller(ctx context.Context, addr string, size int64) (p *puller, err error) {
	p = &puller{mem: make([]byte, size), ask: make([]byte, askLen), end: start}
	if p.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.rnic.Close()
		}
	}()
	pd, err := p.rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	if p.log, err = pd.RegisterMR(p.mem, stag.RemoteRead, nil); err != nil {
		return nil, err
	}
	if p.said, err = pd.RegisterMR(p.ask, 0, nil); err != nil {
		return nil, err
	}
	p.qp, err = p.rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{PD: pd})
	return p, err
}

// append makes the target fetch a record.
func (p *puller) append(ctx context.Context, data []byte) error {
	n, err := putRecord(p.mem[p.end:], p.number, data)
	if err != nil {
		return err
	}
	m := mark{1, p.end + uint64(n)}
	if _, err := p.log.Advertise(int(p.end), n).AppendBinary(p.ask[:0]); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(p.ask[16:], p.end)
	binary.LittleEndian.PutUint64(p.ask[24:], m.word())
	p.end, p.number = m.tail, p.number+1
	if err := p.qp.Send(ctx, p.said.Slice(0, askLen)); err != nil {
		return err
	}
	_, err = p.qp.Recv(ctx, iwarp.SGE{})
	return err
}

func (p *puller) close() error { return p.rnic.Close() }
