package regionkey

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/freelist"
)

// TagSize is how much longer sealed data is.
const TagSize = 16

// ErrOpen is the error of what was not sealed like that.
var ErrOpen = errors.New("regionkey: it is not authentic")

// A usage is what one key is used for. It is a part of the nonce.
type usage uint8

const (
	usageControl usage = 1 + iota
	usageData
	usageTag
)

// A nonce is that of one use of a key. It is passed through an interface, so that it has to be
// on the heap.
type nonce [12]byte

// nonces are those that no call uses.
var nonces = freelist.List[nonce]{Retain: 64, New: func() *nonce { return new(nonce) }}

func (n *nonce) set(u usage, ctr uint64) {
	*n = nonce{byte(u)}
	binary.BigEndian.PutUint64(n[4:], ctr)
}

// seal appends what is sealed to dst.
func seal(a cipher.AEAD, u usage, dst, plain []byte, ctr uint64, aad []byte) []byte {
	if ctr >= counterEnd {
		panic("regionkey: a number that no Counter gives")
	}
	n := nonces.Get()
	n.set(u, ctr)
	dst = a.Seal(dst, n[:], plain, aad)
	nonces.Put(n)
	return dst
}

// open puts what was sealed into dst, which has the length for it, and where something else
// is left after an error. It may begin where the blob does.
func open(a cipher.AEAD, u usage, dst, blob []byte, ctr uint64, aad []byte) error {
	if ctr >= counterEnd {
		return ErrOpen
	}
	n := nonces.Get()
	n.set(u, ctr)
	_, err := a.Open(dst[:0:len(dst)], n[:], blob, aad)
	nonces.Put(n)
	if err != nil {
		return ErrOpen
	}
	return nil
}

// openInPlace returns the part of the blob where what was sealed is now.
func openInPlace(a cipher.AEAD, u usage, blob []byte, ctr uint64, aad []byte) ([]byte, error) {
	if len(blob) < TagSize {
		return nil, ErrOpen
	}
	plain := blob[:len(blob)-TagSize]
	if err := open(a, u, plain, blob, ctr, aad); err != nil {
		return nil, err
	}
	return plain, nil
}

// A Sealer seals the data of one kind of operation in one direction, and proves that its side
// has the key. It allocates nothing, where dst has the capacity. See Traffic.
//
// ctr is from the Counter of data for Seal, from that of messages for Tag, and is the number in
// what has come for the others; a larger one than a Counter gives makes Seal and Tag panic.
type Sealer struct{ aead cipher.AEAD }

// Format prints that it is a Sealer, whatever the verb.
func (Sealer) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Sealer") }

// Seal appends the data, sealed, to dst: TagSize octets more. dst may end where plain begins,
// and must not overlap it in any other way.
func (s *Sealer) Seal(dst, plain []byte, ctr uint64, aad []byte) []byte {
	return seal(s.aead, usageData, dst, plain, ctr, aad)
}

// OpenInPlace opens a blob, and returns the part of it where the data is now. After an error the
// blob is lost, since the standard library writes before it knows. Where what is there must
// survive an error, the blob is opened elsewhere, and copied then.
func (s *Sealer) OpenInPlace(blob []byte, ctr uint64, aad []byte) ([]byte, error) {
	return openInPlace(s.aead, usageData, blob, ctr, aad)
}

// OpenTo opens a blob into dst, which has the length of the data. After an error the content
// of dst is undefined.
func (s *Sealer) OpenTo(dst, blob []byte, ctr uint64, aad []byte) error {
	if len(dst)+TagSize != len(blob) {
		return fmt.Errorf("regionkey: %d octets sealed for a buffer of %d: %w", len(blob), len(dst), ErrOpen)
	}
	return open(s.aead, usageData, dst, blob, ctr, aad)
}

// Tag appends a proof that the sender of a message has the key.
func (s *Sealer) Tag(dst []byte, ctr uint64, message []byte) []byte {
	return seal(s.aead, usageTag, dst, nil, ctr, message)
}

// CheckTag checks what Tag has made.
func (s *Sealer) CheckTag(tag []byte, ctr uint64, message []byte) error {
	return open(s.aead, usageTag, nil, tag, ctr, message)
}

// A Control seals the messages of one direction of a connection. It allocates nothing, where
// dst has the capacity. See NewControl.
type Control struct{ aead cipher.AEAD }

// Format prints that it is a Control, whatever the verb.
func (Control) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Control") }

// Seal appends the secret part of a message, sealed, to dst. ctr is the number of the message,
// which no Counter has given if it makes Seal panic.
func (c *Control) Seal(dst, plain []byte, ctr uint64, aad []byte) []byte {
	return seal(c.aead, usageControl, dst, plain, ctr, aad)
}

// OpenInPlace opens the secret part of a message, and returns where it is now. After an error it
// is lost.
func (c *Control) OpenInPlace(sealed []byte, ctr uint64, aad []byte) ([]byte, error) {
	return openInPlace(c.aead, usageControl, sealed, ctr, aad)
}
