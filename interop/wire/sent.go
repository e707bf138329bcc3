package wire

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// Sent is what one end has sent, on all its connections.
type Sent struct {
	Connections int
	Terminates  []Terminate
	Sends       []Opcode // the kind of each message, in their order
	// RTRs are the kinds of the ready-to-receive messages, one for each connection on which both
	// ends have agreed on such a message and the end has sent something.
	RTRs []Opcode
}

// Read reads a capture. The end is the one that has one of the addresses.
func Read(capture io.Reader, end ...string) (*Sent, error) {
	streams, err := pcap.Streams(capture)
	if err != nil {
		return nil, err
	}
	s := &Sent{}
	for _, st := range streams {
		if len(st.ClientBytes) == 0 {
			continue // refused, or ended at once
		}
		switch {
		case isOf(st.Client, end):
			err = s.initiator(st.ClientBytes, st.ServerBytes)
		case isOf(st.Server, end):
			err = s.responder(st.ClientBytes, st.ServerBytes)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("from %v to %v: %w", st.Client, st.Server, err)
		}
	}
	return s, nil
}

func isOf(a netip.AddrPort, end []string) bool { return slices.Contains(end, a.Addr().String()) }

// initiator reads a connection that the end has begun.
func (s *Sent) initiator(mine, peers []byte) error {
	request, sent, err := readStartup(mine, requestKey)
	if err != nil {
		return whole(err)
	}
	s.Connections++
	reply, _, err := readStartup(peers, replyKey)
	if err != nil || reply.reject {
		return whole(err)
	}
	segments, err := s.messages(sent)
	if err != nil || len(segments) == 0 || !request.peerToPeer || !reply.peerToPeer {
		return err
	}
	for _, kind := range request.rtr {
		if slices.Contains(reply.rtr, kind) && readyToReceive(segments[0], kind) {
			s.RTRs = append(s.RTRs, kind)
			return nil
		}
	}
	return fmt.Errorf("%w: the first FPDU is a %v of %d octets, the Request names %v, the Reply %v",
		ErrRTR, segments[0].op, len(segments[0].payload), request.rtr, reply.rtr)
}

// responder reads a connection that the other end has begun.
func (s *Sent) responder(peers, mine []byte) error {
	if _, _, err := readStartup(peers, requestKey); err != nil {
		return whole(err)
	}
	s.Connections++
	_, sent, err := readStartup(mine, replyKey)
	if err != nil {
		return whole(err)
	}
	_, err = s.messages(sent)
	return err
}

// whole ignores an incomplete frame: the connection or the capture has ended before.
func whole(err error) error {
	if errors.Is(err, errCut) {
		return nil
	}
	return err
}

// messages records the messages that are checked.
func (s *Sent) messages(b []byte) ([]segment, error) {
	segments, err := readSegments(b)
	if err != nil {
		return nil, err
	}
	for _, seg := range segments {
		switch {
		case seg.op == terminate:
			t, err := readTerminate(seg)
			if err != nil {
				return nil, err
			}
			s.Terminates = append(s.Terminates, t)
		case seg.op >= Send && seg.op <= SendSolicitedInvalidate && seg.last:
			s.Sends = append(s.Sends, seg.op)
		}
	}
	return segments, nil
}
