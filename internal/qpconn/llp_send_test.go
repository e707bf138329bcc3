package qpconn

import (
	"errors"
	"os"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// llpSend is the sending half of a memoryLLP, whose mutex guards it.
type llpSend struct {
	batch    []rdmap.Opcode // of the segments in the batch
	most     int            // segments in a batch; 0: any number
	sent     []rdmap.Opcode
	full     bool // the network takes no more
	takes    int  // except so many batches
	isFenced bool // the peer has sent nothing yet
	broken   error
	senders  int
	waits    int // for the network
	shut     int // calls of CloseSend
	noShut   bool
}

func (f *memoryLLP) Append(head []byte, _ [][]byte, _ bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.one(&f.senders, "Append")()
	if f.most > 0 && len(f.batch) >= f.most {
		return false
	}
	f.batch = append(f.batch, rdmap.Opcode(head[1]&0xf))
	return true
}

func (f *memoryLLP) Flush(wait bool) error {
	f.pass("Flush")
	err := f.flush(wait)
	if errors.Is(err, transport.ErrFenced) {
		f.pass("fenced")
	}
	return err
}

func (f *memoryLLP) flush(wait bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.one(&f.senders, "Flush")()
	for waited := false; ; waited = true {
		switch {
		case f.closed != nil:
			return f.closed
		case f.broken != nil:
			return f.broken
		case f.shut > 0 && len(f.batch) > 0:
			return os.ErrClosed
		case f.isFenced && len(f.batch) > 0:
			return transport.ErrFenced
		case !f.full || f.takes > 0 || len(f.batch) == 0:
			if f.full && len(f.batch) > 0 {
				f.takes--
			}
			f.sent, f.batch = append(f.sent, f.batch...), nil
			return nil
		case !wait:
			return transport.ErrAgain
		}
		if !waited {
			f.waits++
		}
		f.changed.Wait()
	}
}

func (f *memoryLLP) Stage() {}

func (f *memoryLLP) CloseSend() error {
	f.pass("CloseSend")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noShut {
		return errors.ErrUnsupported
	}
	f.shut++
	return nil
}

func (f *memoryLLP) Fenced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isFenced
}

// counts returns how many messages of each kind were sent.
func (f *memoryLLP) counts() map[rdmap.Opcode]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := make(map[rdmap.Opcode]int)
	for _, op := range f.sent {
		n[op]++
	}
	return n
}
