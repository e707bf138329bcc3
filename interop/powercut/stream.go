package powercut

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// depth is how many records of a connection are outstanding at once.
const depth = 4

// A stream is one connection of the requester, and its ledger, which outlasts the connection.
type stream struct {
	*ledger
	mem   []byte    // slots for outstanding records
	local *iwarp.MR // of mem
	area  []byte    // what was read of the target's area
	sink  *iwarp.MR // of area

	qp     *iwarp.QP
	remote iwarp.RemoteBuffer // the area
	wcs    [depth]iwarp.WC
}

func newStream(pd *iwarp.PD, i int) (s *stream, err error) {
	s = &stream{ledger: newLedger(i), mem: make([]byte, depth*slotLen), area: make([]byte, areaLen)}
	if s.local, err = pd.RegisterMR(s.mem, 0, nil); err != nil {
		return nil, err
	}
	s.sink, err = pd.RegisterMR(s.area, stag.LocalWrite, nil)
	return s, err
}

func (s *stream) connect(ctx context.Context, pd *iwarp.PD, cr *iwarp.ConnRequest) error {
	var file iwarp.RemoteBuffer
	if err := file.UnmarshalBinary(cr.PrivateData()); err != nil {
		return err
	}
	if file.Len < FileSize {
		return errors.New("powercut: the target's file is too short")
	}
	s.remote = iwarp.RemoteBuffer{STag: file.STag, TO: file.TO + uint64(s.stream)*areaLen, Len: areaLen}
	qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: pd, Commit: &iwarp.CommitOptions{Negotiate: true}})
	s.qp = qp
	return err
}

func (s *stream) hangUp() {
	if s.qp != nil {
		_ = s.qp.Abort()
		s.qp = nil
	}
}

func (s *stream) check(ctx context.Context) error {
	if err := s.qp.RDMARead(ctx, s.sink.Slice(0, areaLen), s.remote); err != nil {
		return err
	}
	s.ledger.check(s.area)
	return nil
}

// run writes records until that fails.
func (s *stream) run(ctx context.Context) error {
	for under := 0; ; {
		for ; under < depth; under++ {
			if err := s.post(); err != nil {
				return err
			}
		}
		n, err := s.qp.SendCQ().Wait(ctx, s.wcs[:])
		if err != nil {
			return err
		}
		for _, wc := range s.wcs[:n] {
			if err := wc.Err(); err != nil {
				return err
			}
			s.acknowledge(wc.ID)
		}
		under -= n
	}
}

// post writes one record in two parts, and requests a Commit of both.
func (s *stream) post() error {
	n := s.begin()
	at := int(n%depth) * slotLen
	size := len(record(s.mem[at:at+slotLen], s.stream, n))
	half := size / 2
	first, second := s.part(slotOf(n), half), s.part(slotOf(n)+half, size-half)
	commit := iwarp.SendWR{ID: n, Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{first, second}}
	if s.tailed {
		commit.FollowOn = &iwarp.FollowOn{At: s.part(0, 8)}
		binary.BigEndian.PutUint64(commit.FollowOn.Value[:], n)
	}
	return s.qp.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{s.local.Slice(at, half)}, Remote: first},
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{s.local.Slice(at+half, size-half)}, Remote: second},
		commit,
	)
}

// part returns n octets of the area, from off.
func (s *stream) part(off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: s.remote.STag, TO: s.remote.TO + uint64(off), Len: uint32(n)}
}
