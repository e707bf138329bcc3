package mpa

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// sealed returns the octets of f. The private data of f so far are the enhanced data; sealed appends
// those of the ULP. write is AppendRequest or AppendReply of f.
func (f *Frame) sealed(x enhanced.Seal, write func(b []byte) []byte, private []byte) ([]byte, error) {
	start := HeaderSize + len(f.PrivateData)
	f.PrivateData = append(f.PrivateData, private...)
	if x.Wrap == nil {
		return write(nil), nil
	}
	f.PrivateData = append(f.PrivateData, make([]byte, x.Overhead)...) // PD_Length is covered
	whole := write(nil)
	frame, err := x.Wrap(whole[:start], private)
	if err != nil {
		return nil, fmt.Errorf("mpa: sealing the private data: %w", err)
	}
	if len(frame) != len(whole) {
		return nil, fmt.Errorf("mpa: a sealed frame of %d octets, announced were %d", len(frame), len(whole))
	}
	return frame, nil
}

// open opens f, which arrived as wire, with s, and returns the application's part.
func open(s transport.Sealer, f *Frame, wire []byte) ([]byte, error) {
	off := HeaderSize
	if f.Enhanced {
		off += enhanced.Size
	}
	return s.Open(wire, min(off, len(wire)))
}

// An openError is why a Reply is not trusted. For the protocol the Reply is malformed.
type openError struct{ fault *transport.Fault }

func notOpened(err error) error {
	return &openError{&transport.Fault{Code: transport.MPAStartup, Err: err}}
}

func (e *openError) Error() string { return "mpa: opening the MPA Reply: " + e.fault.Err.Error() }
func (e *openError) Unwrap() error { return e.fault }
