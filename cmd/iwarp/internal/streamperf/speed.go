package streamperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
)

const (
	// leastOfStream is the smallest permitted part of the rate of RDMA Writes, and of TCP.
	leastOfStream = 0.85
	// mostOfTurn is how many times the round trip of Sends a round trip may take.
	mostOfTurn = 1.5
	// leastOfRead is the smallest permitted part of the rate of the same messages without RPC.
	leastOfRead = 0.7

	bothSides = "both sides"

	pieceSize = 64 * kib
	turnSize  = 64
	readSize  = mib
)

// stream compares a stream of pieces of an rsocket with RDMA Writes, and with TCP, which has no CRCs.
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

// turnTime returns the time of a round trip.
func turnTime(s *contest.Sample) float64 { return s.Elapsed.Seconds() / float64(s.Ops) }

// pingpong compares round trips of an rsocket with round trips of Sends.
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

// readDepths are the numbers of outstanding READs.
var readDepths = []int{1, 4}

// reads compares READs by package rpcrdma with RDMA Writes with a Send.
func (b *bench) reads() error {
	for _, depth := range readDepths {
		if err := b.on(func(s *stand) error { return b.read(s, depth) }); err != nil {
			return err
		}
	}
	return nil
}

// read measures READs with depth outstanding. Allocations of the client do not count: an object for each region that it enables.
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
