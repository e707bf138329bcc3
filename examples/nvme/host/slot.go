package host

import (
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A slot is the place of one command in a queue. While it is busy its fields are guarded by the mutex
// of the queue; busy itself always is. Otherwise they are the sender's that has taken the slot.
type slot struct {
	index uint16
	gen   uint16 // differs for commands that follow one another
	cid   uint16

	// What the command is posted with: the sender's.
	capsule []byte
	local   [1]iwarp.SGE
	wrs     [2]iwarp.SendWR
	key     uint8

	mr     *iwarp.MR // made when it is needed first
	window window
	keyed  bool // the command has a region, which is VALID until invalid

	opcode    capsule.Opcode
	busy      bool // a command was given to the queue, and has not ended for its sender
	queued    bool // it was not posted
	sent      bool // the capsule no longer belongs to the QP
	responded bool
	abandoned bool // the sender does not wait any more
	cqe       capsule.CQE
	err       error

	transfer *Transfer     // nil: a sender waits
	done     chan struct{} // of one element: the command has ended
	timeout  time.Duration // 0: none
	deadline time.Time
}

// What a CID is made of.
const (
	slotBits = 12
	slotMask = 1<<slotBits - 1
)

// begin prepares the slot for a command. It is not busy, so that no other goroutine reads what is set here.
func (s *slot) begin(op capsule.Opcode, timeout time.Duration) {
	s.gen++
	s.cid = s.index | s.gen<<slotBits
	s.opcode, s.timeout = op, timeout
	s.sent, s.responded, s.abandoned, s.keyed = false, false, false, false
	s.cqe, s.err = capsule.CQE{}, nil
}

// enable is the work request that gives the region its memory, with one right of the target. The
// STag must be known before the request is posted, since the capsule behind it contains the STag: so
// its key is drawn here.
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

// stag is the STag of the region with the key of the command.
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
