package attack

import (
	"encoding/binary"
	"math"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// rdmap sends messages of all kinds, allowed or not, in segments that DDP accepts.
func rdmap(d dice, at Target) talk {
	r := &messages{dice: d, at: at}
	t := talk{opening: opens(d, nil), frame: octets.FPDU}
	if d.one(6) { // a flood of one kind: RDMA Reads beyond the IRD, Terminates, Sends
		one := pick(d, (*messages).read, (*messages).terminate, (*messages).send, (*messages).atomic, (*messages).emptyWrite)
		for range 16 + d.IntN(64) {
			t.messages = append(t.messages, one(r))
		}
		return t
	}
	for range 1 + d.IntN(pick(d, 2, 8, 24)) { // the peer ignores all messages after the first one that it refuses
		t.messages = append(t.messages, pick(d, kinds...)(r))
	}
	return t
}

var kinds = []func(*messages) []byte{
	(*messages).write, (*messages).write, (*messages).send, (*messages).send, (*messages).read, (*messages).read,
	(*messages).readResponse, (*messages).invalidate, (*messages).immediate, (*messages).atomic, (*messages).terminate, (*messages).emptyWrite, (*messages).unknown,
}

// messages makes messages, and numbers them on each queue.
type messages struct {
	dice
	at      Target
	numbers [4]uint32
}

// next returns the number of the next message of a queue.
func (r *messages) next(queue uint32) uint32 {
	r.numbers[queue]++
	return r.numbers[queue]
}

func (r *messages) untagged(opcode byte, invalidate, queue uint32, payload []byte) []byte {
	return octets.Untagged(0x41, 0x40|opcode, invalidate, queue, r.next(queue), 0, string(payload))
}

func (r *messages) write() []byte {
	st, to := anyPlace(r.dice, r.at)
	return octets.Write(st, to, string(r.octets(r.IntN(600))))
}

func (r *messages) emptyWrite() []byte {
	return octets.Write(anySTag(r.dice, r.at), anyTO(r.dice, r.at), "")
}

func (r *messages) send() []byte {
	return r.untagged(pick[byte](r.dice, 3, 5), 0, 0, r.octets(pick(r.dice, 0, 1, 63, 64, 65, 1400)))
}

func (r *messages) invalidate() []byte {
	return r.untagged(pick[byte](r.dice, 4, 6), uint32(anySTag(r.dice, r.at)), 0, r.octets(r.IntN(64)))
}

func (r *messages) immediate() []byte {
	return r.untagged(pick[byte](r.dice, 8, 9), 0, 0, r.octets(pick(r.dice, 0, 7, 8, 8, 8, 9)))
}

// read requests more than exists, or little.
func (r *messages) read() []byte {
	size := pick(r.dice, 0, 1, r.at.Len, r.at.Len+1, math.MaxUint32, 1<<31, r.Uint32())
	src, to := r.at.STag, r.at.TO
	if r.one(3) {
		src, to = anyPlace(r.dice, r.at)
	}
	return octets.ReadRequest(r.next(1), anySTag(r.dice, r.at), r.Uint64(), size, src, to)
}

func (r *messages) readResponse() []byte {
	st, to := anyPlace(r.dice, r.at)
	return octets.ReadResponse(pick[byte](r.dice, 0xc1, 0x81), st, to, string(r.octets(r.IntN(600))))
}

// atomic returns a FetchAdd, a CmpSwap or a Swap (RFC 7306 section 5.2.1).
func (r *messages) atomic() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.Uint32N(4))
	b = binary.BigEndian.AppendUint32(b, r.Uint32())
	st, to := anyPlace(r.dice, r.at)
	b = binary.BigEndian.AppendUint32(b, uint32(st))
	b = binary.BigEndian.AppendUint64(b, to)
	return r.untagged(10, 0, 1, append(b, r.octets(32)...))
}

// terminate returns a Terminate with any cause (RFC 5040 section 4.8).
func (r *messages) terminate() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(r.Uint32()))
	b = append(b, pick[byte](r.dice, 0, 0x80, 0xc0, 0xe0, 0xff), 0)
	return r.untagged(7, 0, 2, append(b, r.octets(pick(r.dice, 0, 2, 16, 20, 48, 400))...))
}

func (r *messages) unknown() []byte {
	return octets.Untagged(0x41, byte(r.Uint32()), r.Uint32(), r.Uint32N(4), r.Uint32N(8), 0, string(r.octets(r.IntN(64))))
}
