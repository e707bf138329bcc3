package streamperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
)

const (
	// leastOfStream is the least part of the rate of RDMA Writes, and of TCP.
	leastOfStream = 0.85
	// mostOfTurn is the most times the round trip of Sends.
	mostOfTurn = 1.5
	// leastOfRead is the least part of the rate of the same messages without RPC.
	leastOfRead = 0.7

	bothSides = "both sides"

	pieceSize = 64 * kib
	turnSize  = 64
	readSize  = mib
)

// stream holds a stream of pieces of an rsocket against RDMA Writes, and against TCP, which has no CRCs.
func (b *bench) stream() error {
	return b.on(func(s *stand) error {
		crc := b.opts.CRC
		checked, err := s.socket(fmt.Sprintf("64 KiB by rsocket.Conn, CRC %t", crc), &service{Kind: kindSocket, CRC: crc, Size: pieceSize})
		if err != nil {
			return err
		}
		writes, err := s.writes(fmt.Sprintf("64 KiB by QP.RDMAWrite, CRC %t", crc), &service{Kind: kindMemory, CRC: crc, Size: pieceSize})
		if err != nil {
			return err
		}
		plain, err := s.socket("64 KiB by rsocket.Conn, without CRC", &service{Kind: kindSocket, Size: pieceSize})
		if err != nil {
			return err
		}
		tcp, err := s.socket("64 KiB by net.TCPConn", &service{Kind: kindTCP, Size: pieceSize})
		if err != nil {
			return err
		}
		if err := b.compare(b.remote.Usage, writes, checked, tcp, plain); err != nil {
			return err
		}
		b.Marks.Least(checked.Name+", against QP.RDMAWrite", checked.Against(writes, contest.Rate), leastOfStream)
		b.Marks.Least(plain.Name+", against TCP", plain.Against(tcp, contest.Rate), leastOfStream)
		b.allocatesNothing(checked, bothSides)
		return nil
	})
}

// turnTime is the time of a round trip.
func turnTime(s *contest.Sample) float64 { return s.Elapsed.Seconds() / float64(s.Ops) }

// pingpong holds round trips of an rsocket against those of Sends.
func (b *bench) pingpong() error {
	return b.on(func(s *stand) error {
		sends, err := s.sends("64-octet ping-pong of Sends", &service{Kind: kindSends, CRC: b.opts.CRC, Size: turnSize})
		if err != nil {
			return err
		}
		turns, err := s.socket("64-octet ping-pong of rsockets", &service{Kind: kindEcho, CRC: b.opts.CRC, Size: turnSize})
		if err != nil {
			return err
		}
		if err := b.compare(b.remote.Usage, sends, turns); err != nil {
			return err
		}
		b.Marks.Most(turns.Name+", against Sends", turns.Against(sends, turnTime), mostOfTurn, "")
		b.allocatesNothing(turns, bothSides)
		return nil
	})
}

// readDepths are how many READs are under way.
var readDepths = []int{1, 4}

// reads holds READs by package rpcrdma against RDMA Writes with a Send.
func (b *bench) reads() error {
	for _, depth := range readDepths {
		if err := b.on(func(s *stand) error { return b.read(s, depth) }); err != nil {
			return err
		}
	}
	return nil
}

// read has so many under way. What the client allocates does not count: an object for each region that it enables.
func (b *bench) read(s *stand, depth int) error {
	gets, err := s.gets(fmt.Sprintf("1 MiB by an RDMA Write and a Send, %d under way", depth),
		&service{Kind: kindGet, CRC: b.opts.CRC, Size: readSize, Depth: depth})
	if err != nil {
		return err
	}
	calls, err := s.calls(fmt.Sprintf("1 MiB by READ, %d under way", depth),
		&service{Kind: kindNFS, CRC: b.opts.CRC, Size: readSize, Depth: depth})
	if err != nil {
		return err
	}
	if err := b.compare(b.remote.UsageOfServer, gets, calls); err != nil {
		return err
	}
	b.Marks.Least(calls.Name+", against an RDMA Write and a Send", calls.Against(gets, contest.Rate), leastOfRead)
	b.allocatesNothing(calls, "the server")
	return nil
}
