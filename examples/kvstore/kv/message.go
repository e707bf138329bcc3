package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A request asks the primary for a change. Integers are big-endian.
//
//	+--------------------------------+----------------+----------+------------+------------------+-----+-------+
//	| 1 for a Put, 2 for a Delete (1)| key length (1) | zero (2) | number (4) | value length (4) | key | value |
//	+--------------------------------+----------------+----------+------------+------------------+-----+-------+
//
// The answer has the number of the request, and a status.
//
//	+------------+------------+----------+
//	| number (4) | status (1) | zero (3) |
//	+------------+------------+----------+
type request struct {
	deletes    bool
	number     uint32
	key, value []byte
}

const (
	requestHead = 12
	maxRequest  = requestHead + MaxKey + MaxValue
	answerLen   = 8

	asksPut    = 1
	asksDelete = 2
)

// put encodes q into b and returns the length.
func (q *request) put(b []byte) int {
	clear(b[:requestHead])
	b[0], b[1] = asksPut, byte(len(q.key))
	if q.deletes {
		b[0] = asksDelete
	}
	binary.BigEndian.PutUint32(b[4:], q.number)
	binary.BigEndian.PutUint32(b[8:], uint32(len(q.value)))
	n := requestHead + copy(b[requestHead:], q.key)
	return n + copy(b[n:], q.value)
}

// parse parses a message, whose octets it keeps.
func (q *request) parse(b []byte) error {
	if len(b) < requestHead || b[0] != asksPut && b[0] != asksDelete {
		return fmt.Errorf("kv: a message of %d octets that is no request", len(b))
	}
	key := b[requestHead:]
	if n := uint64(b[1]) + uint64(binary.BigEndian.Uint32(b[8:])); n != uint64(len(key)) || b[1] == 0 {
		return fmt.Errorf("kv: a request with %d octets of key and value, and %d as it says", len(key), n)
	}
	*q = request{deletes: b[0] == asksDelete, number: binary.BigEndian.Uint32(b[4:]), key: key[:b[1]], value: key[b[1]:]}
	return checkValue(q.value)
}

// A status is how a change has ended.
type status uint8

const (
	statusDone status = iota
	statusUnavailable
	statusUncertain
	statusIndexFull
	statusValuesFull
	statusLogFull
	statusFailed
)

var errFailed = errors.New("kv: the change was refused")

var statusErrors = map[status]error{
	statusUnavailable: fmt.Errorf("%w: the primary cannot reach the backup", ErrUnavailable),
	statusUncertain:   ErrUncertain,
	statusIndexFull:   errIndexFull,
	statusValuesFull:  errValuesFull,
	statusLogFull:     errLogFull,
	statusFailed:      errFailed,
}

func (s status) err() error {
	if s == statusDone {
		return nil
	}
	if err := statusErrors[s]; err != nil {
		return err
	}
	return fmt.Errorf("%w: status %d", ErrUncertain, s)
}

func statusOf(err error) status {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, ErrUnavailable):
		return statusUnavailable
	case errors.Is(err, ErrUncertain):
		return statusUncertain
	case errors.Is(err, errIndexFull):
		return statusIndexFull
	case errors.Is(err, errValuesFull):
		return statusValuesFull
	case errors.Is(err, errLogFull):
		return statusLogFull
	}
	return statusFailed
}

func putAnswer(b []byte, number uint32, s status) {
	clear(b[:answerLen])
	binary.BigEndian.PutUint32(b, number)
	b[4] = byte(s)
}

func parseAnswer(b []byte) (number uint32, s status, err error) {
	if len(b) != answerLen {
		return 0, 0, fmt.Errorf("kv: an answer of %d octets, not of %d", len(b), answerLen)
	}
	return binary.BigEndian.Uint32(b), status(b[4]), nil
}
