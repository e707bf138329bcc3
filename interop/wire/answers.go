package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// ErrAnswers is matched by errors about the answers of a server.
var ErrAnswers = errors.New("wire: an answer is not as its protocol has it")

// An Upper is the protocol above RDMAP that an end serves.
type Upper int

// The protocols whose answers are checked.
const (
	NoUpper Upper = iota
	// NineP is 9P over RDMA: an answer is shorter than the agreed msize.
	NineP
	// RPC is RPC over RDMA with NFS version 3: a chunk of an answer is as long as the answer says, and is not padded (RFC 8166
	// section 3.4). A Write chunk has the data of a READ or the path of a READLINK. The last word of the RPC message is the
	// length of these.
	RPC
)

// CheckAnswers checks what an end has sent as a server. It fails if there are no answers at all.
func (u Upper) CheckAnswers(capture io.Reader, end ...string) error {
	if u == NoUpper {
		return nil
	}
	streams, err := pcap.Streams(capture)
	if err != nil {
		return err
	}
	count := 0
	for _, st := range streams {
		if !isOf(st.Server, end) {
			continue
		}
		_, sent, err := readStartup(st.ServerBytes, replyKey)
		if whole(err) != nil {
			return err
		}
		n, err := u.answers(sent)
		if err != nil {
			return fmt.Errorf("from %v to %v: answer %d: %w", st.Server, st.Client, n, err)
		}
		count += n
	}
	if count == 0 {
		return fmt.Errorf("%w: there are none", ErrAnswers)
	}
	return nil
}

// answers checks the answers of one connection, and returns how many are right.
func (u Upper) answers(b []byte) (count int, err error) {
	segments, err := readSegments(b)
	if err != nil {
		return 0, err
	}
	written := make(map[uint32]uint64) // octets, by STag, of chunks whose answer has not come
	check := func(msg []byte) error { return checkChunks(msg, written) }
	if u == NineP {
		check = new(nineP).check
	}
	var msg []byte
	for _, s := range segments {
		switch {
		case s.op == Write:
			written[s.stag] += uint64(len(s.payload))
		case s.op >= Send && s.op <= SendSolicitedInvalidate:
			if msg = append(msg, s.payload...); !s.last {
				continue
			}
			if err := check(msg); err != nil {
				return count, err
			}
			msg = msg[:0]
			count++
		}
	}
	return count, nil
}

// nineP is the known state of a 9P connection.
type nineP struct{ msize int }

// check checks a message: size 4 (little-endian), type 1, tag 2; of an Rversion msize 4.
func (p *nineP) check(msg []byte) error {
	const rversion, header = 101, 7
	if len(msg) < header {
		return fmt.Errorf("%w: a message of %d octets", ErrAnswers, len(msg))
	}
	if msg[4] == rversion && len(msg) >= header+4 {
		p.msize = int(binary.LittleEndian.Uint32(msg[header:]))
	}
	if size := int(binary.LittleEndian.Uint32(msg)); size != len(msg) || size >= p.msize {
		return fmt.Errorf("%w: %d octets, whose size is told as %d, with an msize of %d", ErrAnswers, len(msg), size, p.msize)
	}
	return nil
}

// checkChunks checks the header of an RPC over RDMA answer, and removes its chunks from written (RFC 8166 section 4):
//
//	 0   xid, version, credits, type: 0 with the RPC message behind the header, 1 without
//	16   Read list: always 0
//	20   Write list: 1, the number of segments, {STag, length, offset 8} each; 0 at its end
//	     Reply chunk: likewise, or 0
func checkChunks(msg []byte, written map[uint32]uint64) error {
	const fixed, readList, noMessage = 16, 4, 1
	if len(msg) >= fixed && binary.BigEndian.Uint32(msg[12:]) > noMessage {
		return nil // RDMA_ERROR has no chunks
	}
	r := words{b: msg[min(fixed+readList, len(msg)):]}
	told := uint64(0) // in the Write list
	for list := range 2 {
		for r.next() == 1 {
			for range r.next() {
				stag, length := r.next(), r.next()
				_, _ = r.next(), r.next()
				if r.err != nil {
					return r.err
				}
				if have := written[stag]; have != uint64(length) {
					return fmt.Errorf("%w: %d octets were written to STag %#x, and %d are told", ErrAnswers, have, stag, length)
				}
				delete(written, stag)
				told += uint64(length)
			}
			if list == 1 {
				return r.err // there is one Reply chunk, with the whole RPC message
			}
		}
	}
	if told == 0 || r.err != nil {
		return r.err
	}
	if have := binary.BigEndian.Uint32(msg[len(msg)-4:]); uint64(have) != told {
		return fmt.Errorf("%w: a chunk of %d octets for data of %d", ErrAnswers, told, have)
	}
	return nil
}

// words are the words of an XDR header.
type words struct {
	b   []byte
	err error
}

// next returns the next word, or 0 after the end.
func (w *words) next() uint32 {
	if len(w.b) < 4 {
		w.err = fmt.Errorf("%w: a header that is cut", ErrAnswers)
		return 0
	}
	v := binary.BigEndian.Uint32(w.b)
	w.b = w.b[4:]
	return v
}
