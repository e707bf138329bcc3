package rdma9p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The header of a message: size (4), type (1), tag (2). All numbers of 9P are little-endian.
const (
	headerSize = 7

	// minMsize is the smallest msize that Linux accepts from a server.
	minMsize = 4096
	// firstSize is the size of the receive for the first message. A Tversion of Linux has 21 octets.
	firstSize = 8192
	// ioHeader is what Linux subtracts from msize for the header of a message with data. An answer to a Tread
	// or Treaddir of msize - ioHeader octets is shorter than msize.
	ioHeader = 24

	// inlineSize is the largest size of an answer that needs no buffer, such as the answer to the first Tversion, for which there is none.
	inlineSize = 64

	// noTag is the tag of a Tversion, and of a handler that could not parse a message.
	noTag = 0xffff
)

// A msgType is the type of a message. The answer to a request has the number after its own.
type msgType uint8

// The types that the adapter examines. Types of 9P2000.L that are missing here change something.
const (
	rlerror      msgType = 7
	tstatfs      msgType = 8
	tlopen       msgType = 12
	treadlink    msgType = 22
	tgetattr     msgType = 24
	txattrwalk   msgType = 30
	txattrcreate msgType = 32
	treaddir     msgType = 40
	tfsync       msgType = 50
	tlock        msgType = 52
	tgetlock     msgType = 54
	tversion     msgType = 100
	rversion     msgType = 101
	tauth        msgType = 102
	tattach      msgType = 104
	tflush       msgType = 108
	rflush       msgType = 109
	twalk        msgType = 110
	tread        msgType = 116
	twrite       msgType = 118
	tclunk       msgType = 120
	tremove      msgType = 122
	tflushf      msgType = 124 // p9 only: flushes a file
	twalkgetattr msgType = 126 // p9 only: a Twalk and a Tgetattr
)

// An errno is a Linux error number, in an Rlerror.
type errno uint32

const (
	eio    errno = 5
	einval errno = 22
	e2big  errno = 7
	enospc errno = 28
	erofs  errno = 30
	eproto errno = 71
)

// ErrProtocol is matched by the error of a connection that ends because the peer, or the handler, did what 9P
// over RDMA forbids.
var ErrProtocol = errors.New("9p: protocol error")

// A header is the beginning of a message.
type header struct {
	size uint32
	typ  msgType
	tag  uint16
}

// parseHeader reads the header of b, which has at least headerSize octets.
func parseHeader(b []byte) header {
	return header{size: binary.LittleEndian.Uint32(b), typ: msgType(b[4]), tag: binary.LittleEndian.Uint16(b[5:])}
}

// checkMessage checks the header of a received message. The length of a message must equal its size field, because one
// message is one Send.
func checkMessage(msg []byte) (header, error) {
	if len(msg) < headerSize {
		return header{}, fmt.Errorf("%w: a message of %d octets", ErrProtocol, len(msg))
	}
	h := parseHeader(msg)
	if uint64(h.size) != uint64(len(msg)) {
		return h, fmt.Errorf("%w: size field %d in a message of %d octets", ErrProtocol, h.size, len(msg))
	}
	return h, nil
}

func appendHeader(b []byte, size uint32, typ msgType, tag uint16) []byte {
	b = binary.LittleEndian.AppendUint32(b, size)
	b = append(b, byte(typ))
	return binary.LittleEndian.AppendUint16(b, tag)
}

// appendError appends an Rlerror.
func appendError(b []byte, tag uint16, e errno) []byte {
	return binary.LittleEndian.AppendUint32(appendHeader(b, headerSize+4, rlerror, tag), uint32(e))
}

// appendFlushed appends an Rflush.
func appendFlushed(b []byte, tag uint16) []byte { return appendHeader(b, headerSize, rflush, tag) }

const unknownVersion = "unknown"

// appendUnknown appends the Rversion of a server that does not know the version.
func appendUnknown(b []byte, tag uint16, msize uint32) []byte {
	b = appendHeader(b, headerSize+6+uint32(len(unknownVersion)), rversion, tag)
	b = binary.LittleEndian.AppendUint32(b, msize)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(unknownVersion)))
	return append(b, unknownVersion...)
}

// parseVersion reads a Tversion or Rversion: msize (4), version (2 and octets).
func parseVersion(msg []byte) (msize uint32, version string, ok bool) {
	body := msg[headerSize:]
	if len(body) < 6 || len(body) != 6+int(binary.LittleEndian.Uint16(body[4:])) {
		return 0, "", false
	}
	return binary.LittleEndian.Uint32(body), string(body[6:]), true
}

// setVersionSize changes the msize of a Tversion or Rversion.
func setVersionSize(msg []byte, msize uint32) { binary.LittleEndian.PutUint32(msg[headerSize:], msize) }

// knownVersion reports whether the version uses the message types of this file.
func knownVersion(v string) bool { return v == "9P2000.L" || strings.HasPrefix(v, "9P2000.L.") }

// number reads 4 octets of the body at off, or 0 if they are missing. A handler finds such a message too short.
func number(msg []byte, off int) uint32 {
	if len(msg) < headerSize+off+4 {
		return 0
	}
	return binary.LittleEndian.Uint32(msg[headerSize+off:])
}

// short is like number for 2 octets.
func short(msg []byte, off int) uint16 {
	if len(msg) < headerSize+off+2 {
		return 0
	}
	return binary.LittleEndian.Uint16(msg[headerSize+off:])
}

const (
	// maxXattr is the maximum length of an extended attribute: XATTR_SIZE_MAX of Linux.
	maxXattr = 1 << 16
	// maxXattrs is the maximum total length of the attributes of a connection that are not set yet.
	maxXattrs = 1 << 20
)

// xattrSize returns the attr_size of a Txattrcreate: fid (4), name (2 and its octets), attr_size (8), flags (4). The server holds
// that many octets until the Tclunk, which sets the attribute.
func xattrSize(msg []byte) uint64 {
	at := 4 + 2 + int(short(msg, 4))
	return uint64(number(msg, at+4))<<32 | uint64(number(msg, at))
}

// limitCount lowers the count of a Tread or Treaddir: fid (4), offset (8), count (4), so that its answer fits.
func limitCount(msg []byte, most uint32) {
	if number(msg, 12) > most {
		binary.LittleEndian.PutUint32(msg[headerSize+12:], most)
	}
}

// The flags of a Tlopen that change nothing are the access mode 0, and these. They are in octal, as in the Linux
// headers: O_NOCTTY, O_APPEND, O_NONBLOCK, O_DSYNC, FASYNC, O_DIRECT, O_LARGEFILE, O_DIRECTORY, O_NOFOLLOW, O_NOATIME, O_CLOEXEC,
// O_SYNC.
const harmlessFlags = 0o400 | 0o2000 | 0o4000 | 0o10000 | 0o20000 | 0o40000 | 0o100000 | 0o200000 | 0o400000 | 0o1000000 | 0o2000000 | 0o4000000

// changes reports whether a request may change files of the server. It reports true for an unknown type.
func changes(h header, msg []byte) bool {
	switch h.typ {
	case tstatfs, treadlink, tgetattr, txattrwalk, treaddir, tfsync, tlock, tgetlock, tversion, tauth, tattach, tflush, twalk,
		tread, tclunk, tflushf, twalkgetattr:
		return false
	case tlopen:
		return number(msg, 4)&^harmlessFlags != 0
	default:
		return true
	}
}
