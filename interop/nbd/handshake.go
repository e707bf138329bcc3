package nbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The handshake, "fixed newstyle".
const (
	greeting     = 0x4e42444d41474943 // NBDMAGIC
	optionMagic  = 0x49484156454f5054 // IHAVEOPT
	optReplyMark = 0x3e889045565a9

	serverFixed, serverNoZeroes = 1 << 0, 1 << 1

	optExportName = 1
	optAbort      = 2
	optInfo       = 6
	optGo         = 7

	repAck         = 1
	repInfo        = 3
	repUnsupported = 1<<31 | 1

	infoExport    = 0
	infoBlockSize = 3

	mostOption = 4096 // octets of one
)

// exportFlags say what is supported: flags, Flush, FUA, Trim, Write Zeroes.
const exportFlags = 1<<0 | 1<<2 | 1<<3 | 1<<5 | 1<<6

// handshake negotiates with the client. There is only one disk, whatever name the client
// requests. goOn is false when the client has left.
func (s *session) handshake() (goOn bool, err error) {
	b := binary.BigEndian.AppendUint64(nil, greeting)
	b = binary.BigEndian.AppendUint64(b, optionMagic)
	b = binary.BigEndian.AppendUint16(b, serverFixed|serverNoZeroes)
	if err := s.say(b); err != nil {
		return false, err
	}
	var flags [4]byte
	if _, err := io.ReadFull(s.r, flags[:]); err != nil {
		return false, err
	}
	client := binary.BigEndian.Uint32(flags[:])
	if client&^(serverFixed|serverNoZeroes) != 0 || client&serverFixed == 0 {
		return false, fmt.Errorf("nbd: a client with flags %#x", client)
	}
	for {
		over, goOn, err := s.option(client&serverNoZeroes != 0)
		if over || err != nil {
			return goOn, err
		}
	}
}

// option handles one option. over: the handshake is complete.
func (s *session) option(noZeroes bool) (over, goOn bool, err error) {
	var b [16]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return true, false, err
	}
	if binary.BigEndian.Uint64(b[:]) != optionMagic {
		return true, false, errors.New("nbd: no option")
	}
	option, n := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	if n > mostOption {
		return true, false, fmt.Errorf("nbd: an option of %d octets", n)
	}
	if _, err := io.CopyN(io.Discard, s.r, int64(n)); err != nil {
		return true, false, err
	}
	switch option {
	case optExportName:
		return true, true, s.say(s.export(noZeroes))
	case optAbort:
		return true, false, s.say(optionReply(option, repAck, nil))
	case optInfo, optGo:
		return option == optGo, option == optGo, s.say(s.describe(option))
	}
	return false, false, s.say(optionReply(option, repUnsupported, nil))
}

// export returns the answer to the oldest option.
func (s *session) export(noZeroes bool) []byte {
	b := s.sizeAndFlags(nil)
	if !noZeroes {
		b = append(b, make([]byte, 124)...)
	}
	return b
}

func (s *session) sizeAndFlags(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.medium.Size()))
	return binary.BigEndian.AppendUint16(b, exportFlags)
}

// describe returns the answers to one of the newer options.
func (s *session) describe(option uint32) []byte {
	info := s.sizeAndFlags(binary.BigEndian.AppendUint16(nil, infoExport))
	sizes := binary.BigEndian.AppendUint16(nil, infoBlockSize)
	for _, n := range []uint32{Sector, 4096, mostOctets} { // least, best, most
		sizes = binary.BigEndian.AppendUint32(sizes, n)
	}
	b := optionReply(option, repInfo, info)
	b = append(b, optionReply(option, repInfo, sizes)...)
	return append(b, optionReply(option, repAck, nil)...)
}

func optionReply(option, kind uint32, data []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, optReplyMark)
	b = binary.BigEndian.AppendUint32(b, option)
	b = binary.BigEndian.AppendUint32(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func (s *session) say(b []byte) error {
	_, _ = s.w.Write(b) // a bufio.Writer keeps its error until Flush
	return s.w.Flush()
}
