package regionkey

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/freelist"
)

// TagSize is how many octets sealing adds to data.
const TagSize = 16

// ErrOpen is the error of data that was not sealed with the same key, number and AAD.
var ErrOpen = errors.New("regionkey: it is not authentic")

// A usage is the purpose for which a key is used. It is part of the nonce.
type usage uint8

const (
	usageControl usage = 1 + iota
	usageData
	usageTag
)

// A nonce is the nonce of one use of a key. It is passed through an interface, so it must be on
// the heap.
type nonce [12]byte

// nonces holds unused nonces.
var nonces = freelist.List[nonce]{Retain: 64, New: func() *nonce { return new(nonce) }}

func (n *nonce) set(u usage, ctr uint64) {
	*n = nonce{byte(u)}
	binary.BigEndian.PutUint64(n[4:], ctr)
}

// seal appends the sealed data to dst.
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

// open opens a blob into dst, which has the length of the data, and whose content is undefined after
// an error. dst may begin where the blob does.
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

// openInPlace opens a blob in place, and returns the part that holds the data.
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
// has the key. It allocates nothing if dst has the capacity. See Traffic.
//
// For Seal, ctr comes from the Counter of data, and for Tag from the Counter of messages; both
// panic if it is larger than a Counter can return. For the others, it is the number received.
type Sealer struct{ aead cipher.AEAD }

// Format prints the name of the type, whatever the verb.
func (Sealer) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Sealer") }

// Seal seals plain and appends the result, which is TagSize octets longer, to dst. dst may end where
// plain begins, and must not overlap it in any other way.
func (s *Sealer) Seal(dst, plain []byte, ctr uint64, aad []byte) []byte {
	return seal(s.aead, usageData, dst, plain, ctr, aad)
}

// OpenInPlace opens a blob in place, and returns the part of it that holds the data. After an error
// the blob is lost, because the standard library writes before it has checked the tag. If the
// destination must survive an error, open the blob elsewhere and then copy the data.
func (s *Sealer) OpenInPlace(blob []byte, ctr uint64, aad []byte) ([]byte, error) {
	return openInPlace(s.aead, usageData, blob, ctr, aad)
}

// OpenTo opens a blob into dst, whose length is that of the data. After an error the content of
// dst is undefined.
func (s *Sealer) OpenTo(dst, blob []byte, ctr uint64, aad []byte) error {
	if len(dst)+TagSize != len(blob) {
		return fmt.Errorf("regionkey: %d octets sealed for a buffer of %d: %w", len(blob), len(dst), ErrOpen)
	}
	return open(s.aead, usageData, dst, blob, ctr, aad)
}

// Tag appends to dst a proof that the sender of a message has the key.
func (s *Sealer) Tag(dst []byte, ctr uint64, message []byte) []byte {
	return seal(s.aead, usageTag, dst, nil, ctr, message)
}

// CheckTag checks a tag made by Tag.
func (s *Sealer) CheckTag(tag []byte, ctr uint64, message []byte) error {
	return open(s.aead, usageTag, nil, tag, ctr, message)
}

// A Control seals the messages of one direction of a connection. It allocates nothing if dst has the
// capacity. See NewControl.
type Control struct{ aead cipher.AEAD }

// Format prints the name of the type, whatever the verb.
func (Control) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Control") }

// Seal seals the secret part of a message and appends the result to dst. ctr is the number of the
// message. Seal panics if it is larger than a Counter can return.
func (c *Control) Seal(dst, plain []byte, ctr uint64, aad []byte) []byte {
	return seal(c.aead, usageControl, dst, plain, ctr, aad)
}

// OpenInPlace opens the secret part of a message in place, and returns it without the tag. After an
// error it is lost.
func (c *Control) OpenInPlace(sealed []byte, ctr uint64, aad []byte) ([]byte, error) {
	return openInPlace(c.aead, usageControl, sealed, ctr, aad)
}
