package host

import (
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A phase is the progress of the command of a slot.
//
//	free      the queue has no command; a sender may be preparing one
//	queued    it is to be posted
//	posted    its capsule belongs to the QP, and there is no response
//	sent      its capsule belongs to the slot again, and there is no response
//	answered  the response has arrived, and the capsule still belongs to the QP
//
//	from       event                           to
//	free       add                             queued
//	queued     posted, and not copied          posted
//	queued     posted, and copied              sent
//	posted     completion of the Send          sent
//	posted     response                        answered
//	sent       response                        free
//	answered   completion of the Send          free
//	posted, sent   the post was refused        queued
//	any        the queue has failed            free
type phase uint8

const (
	free phase = iota
	queued
	posted
	sent
	answered
)

// A recipient says what is told that a command has ended.
type recipient uint8

const (
	toSender   recipient = iota // waits for done
	toNone                      // the sender no longer waits
	toTransfer                  // its Done is called
)

// A slot is the place of one command in a queue. The mutex of the queue guards phase. It also guards all other fields unless
// the slot is free: then they belong to the sender that has taken the slot.
type slot struct {
	index uint16
	gen   uint16 // differs for commands that follow one another
	cid   uint16

	// The sender sets these to post the command.
	capsule []byte
	local   [1]iwarp.SGE
	wrs     [2]iwarp.SendWR
	key     uint8

	mr     *iwarp.MR // made when it is first needed
	window window
	keyed  bool // the command has a region, which is VALID until invalid

	phase  phase
	to     recipient
	opcode capsule.Opcode
	copied bool // the QP copies the capsule when it is posted
	cqe    capsule.CQE
	err    error

	transfer *Transfer     // of toTransfer
	done     chan struct{} // of one element: the command has ended
	timeout  time.Duration // 0: none
	deadline time.Time
}

// The parts of a CID.
const (
	slotBits = 12
	slotMask = 1<<slotBits - 1
)

// begin prepares the slot for a command. The slot is not busy, so no other goroutine reads the fields that are set here.
func (s *slot) begin(op capsule.Opcode, timeout time.Duration) {
	s.gen++
	s.cid = s.index | s.gen<<slotBits
	s.opcode, s.timeout = op, timeout
	s.copied, s.keyed = false, false
	s.cqe, s.err = capsule.CQE{}, nil
}

// enable returns the work request that gives the region its memory, with one access right for the target. The
// STag must be known before the request is posted, since the capsule after it contains the STag: so
// its key is chosen here.
func (s *slot) enable(data []byte, dir capsule.Direction) (_ iwarp.SendWR, err error) {
	if s.key, err = s.mr.NextKey(); err != nil {
		return iwarp.SendWR{}, err
	}
	s.keyed = true
	s.window.attach(data)
	access := stag.RemoteRead
	if dir == capsule.ControllerToHost {
		access = stag.LocalWrite | stag.RemoteWrite
	}
	return iwarp.SendWR{ID: registerID(s.index), Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: s.mr, Buffer: &s.window, Access: access, Key: &s.key}, nil
}

// stag returns the STag of the region with the key of the command.
func (s *slot) stag() stag.STag { return s.mr.STag()&^0xff | stag.STag(s.key) }

// The IDs of work requests and receives.
const (
	kindSend = iota
	kindRegister
	kindReceive
)

func sendID(i uint16) uint64     { return uint64(i) }
func registerID(i uint16) uint64 { return uint64(i) | kindRegister<<16 }
func receiveID(i int) uint64     { return uint64(i) | kindReceive<<16 }
