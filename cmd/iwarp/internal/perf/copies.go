package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A copiesCase counts how often user space copies an octet of an RDMA Write, by the
// addresses at which it is seen: the real layers run over a real connection, with
// witnesses between them. Octets that the system call gathers from the registered memory
// itself were not copied. Octets that are verified where the system call put them were not
// moved in between; and octets that DDP places from there were copied once.
type copiesCase struct{}

var (
	copiesReceived = metric{name: "received", unit: "copies/octet"}
	copiesSent     = metric{name: "sent", unit: "copies/octet"}
)

func (copiesCase) cases() []goal {
	return []goal{valueAtMost("copies", copiesReceived, maxCopies), valueAtMost("copies", copiesSent, 0)}
}

// maxCopies is one copy, and the cost of a segment that a read has cut in two: its first
// part is moved to the front of the buffer.
const maxCopies = 1.1

const (
	copiesOctets = 32 << 20
	copiesWrite  = 1 << 20
)

func (copiesCase) measure(_ pairing, _ *remote, cc string) ([]row, error) {
	sent, received, err := countCopies(cc)
	if err != nil {
		return nil, err
	}
	return []row{
		{Case: "copies", Metric: copiesReceived.name, Unit: copiesReceived.unit, Value: &received, Pairs: 1},
		{Case: "copies", Metric: copiesSent.name, Unit: copiesSent.unit, Value: &sent, Pairs: 1},
	}, nil
}

// countCopies sends Writes and returns the copies per octet at either end.
func countCopies(cc string) (sent, received float64, err error) {
	out, in, err := socketPair(cc)
	if err != nil {
		return 0, 0, err
	}
	poller, err := transport.NewPoller()
	if err != nil {
		return 0, 0, errors.Join(err, out.Close(), in.Close())
	}
	defer func() { _ = poller.Close() }()
	source, sink := make([]byte, copiesWrite), newSinkBuffer(copiesWrite)
	a := &outWitness{Stream: transport.NewStream(out, poller), source: addressOf(source)}
	b := &inWitness{Stream: transport.NewStream(in, poller), sink: sink}
	table := stag.NewTable()
	target, err := table.RegisterBuffer(sink, stag.Options{
		Access: stag.LocalWrite | stag.RemoteWrite, Scope: stag.Scope{PD: 1},
	})
	if err != nil {
		return 0, 0, errors.Join(err, a.Close(), b.Close())
	}
	taken := make(chan error, 1)
	go func() {
		err := takeWrites(b, table)
		if err != nil {
			_ = b.Abort() // otherwise the sender would wait
		}
		taken <- err
	}()
	if err = sendWrites(a, source, target.STag()); err != nil {
		_ = a.Abort() // otherwise the receiver would wait
	}
	err = errors.Join(err, <-taken, a.Close(), b.Close())
	if err == nil && sink.placed != copiesOctets {
		err = fmt.Errorf("%d octets were placed, not %d", sink.placed, copiesOctets)
	}
	return float64(copiesOctets-a.lent) / copiesOctets, float64(sink.copied+b.moved) / copiesOctets, err
}

// socketPair connects two sockets over the loopback.
func socketPair(cc string) (a, b *net.TCPConn, err error) {
	l, err := peer.Listen("127.0.0.1", cc)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // nothing is lost with it
	if a, err = peer.Dial(l.Addr().String(), cc); err != nil {
		return nil, nil, err
	}
	if b, err = l.AcceptTCP(); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

// sendWrites runs the initiator.
func sendWrites(s transport.Stream, source []byte, to stag.STag) error {
	conn, _, err := mpa.Connect(context.Background(), s, mpa.Options{}, 1, 1, nil)
	if err != nil {
		return err
	}
	table := stag.NewTable()
	region, err := table.Register(source, stag.Options{Scope: stag.Scope{PD: 1}})
	if err != nil {
		return err
	}
	stream := rdmap.New(rdmap.Config{
		Table: table, Scope: stag.Scope{PD: 1, Stream: 1}, ORD: 1, SendDepth: 1,
		Receives: noReceives{}, Events: noEvents{},
	})
	for range copiesOctets / copiesWrite {
		_, err := stream.Post(1, func(_ int, r *rdmap.Request) error {
			r.Kind = rdmap.KindWrite
			r.Spans = append(r.Spans, stag.Span{Region: region, Len: copiesWrite})
			r.Remote = rdmap.RemoteAddr{STag: to}
			return nil
		})
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = stream.Fill(conn); err != nil {
				return err
			}
			if err := conn.Flush(true); err != nil {
				return err
			}
			stream.Flushed()
		}
	}
	return conn.CloseSend()
}

// takeWrites runs the responder.
func takeWrites(s *inWitness, table *stag.Table) error {
	req, err := mpa.ReadRequest(context.Background(), s)
	if err != nil {
		return err
	}
	conn, _, err := req.Accept(context.Background(), mpa.Options{}, 1, 1, nil)
	if err != nil {
		return err
	}
	s.place = rdmap.New(rdmap.Config{
		Table: table, Scope: stag.Scope{PD: 1, Stream: 1}, IRD: 1, SendDepth: 1,
		Receives: noReceives{}, Events: noEvents{},
	})
	s.established()
	for err == nil {
		err = conn.Receive(s, transport.Park)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
