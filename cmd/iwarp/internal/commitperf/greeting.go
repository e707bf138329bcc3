package commitperf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// A greeting is the private data with which a connection is dialled: the target's slot for the
// connection.
type greeting uint16

const greetingLen = 2

func (g greeting) append(b []byte) []byte { return binary.BigEndian.AppendUint16(b, uint16(g)) }

func (g *greeting) parse(b []byte) error {
	if len(b) != greetingLen {
		return fmt.Errorf("greeting of %d octets", len(b))
	}
	*g = greeting(binary.BigEndian.Uint16(b))
	return nil
}

// A welcome is the target's answer.
type welcome struct {
	to    iwarp.RemoteBuffer // the slot
	syncs iwarp.RemoteBuffer // see counter
}

const welcomeLen = 2 * askLen

func (w *welcome) append(b []byte) []byte {
	b, _ = w.to.AppendBinary(b) // never fails
	b, _ = w.syncs.AppendBinary(b)
	return b
}

func (w *welcome) parse(b []byte) error {
	if len(b) != welcomeLen {
		return fmt.Errorf("welcome of %d octets", len(b))
	}
	if err := w.to.UnmarshalBinary(b[:welcomeLen/2]); err != nil {
		return err
	}
	return w.syncs.UnmarshalBinary(b[welcomeLen/2:])
}

// A counter is a buffer of eight octets: the number of syncs that the target has made when it is read.
type counter struct{ *target }

const counterLen = 8

func (c counter) Size() int64 { return counterLen }

func (c counter) ReadAt(p []byte, off int64) (int, error) {
	var n [counterLen]byte
	if c.file != nil {
		binary.BigEndian.PutUint64(n[:], c.file.Syncs())
	}
	return copy(p, n[off:]), nil // a region is never read beyond its size
}

func (c counter) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
