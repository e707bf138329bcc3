package incast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
)

const (
	// piece is how many octets are written, or read, at a time.
	piece = 16 << 10
	// least is the smallest window: a piece fits, with the tag that seals it.
	least = piece + 16
	// victimSize is the length of the Read whose latency is measured.
	victimSize = 64
	// pause is the time between two of these Reads.
	pause = time.Millisecond
)

// A scene is a receiver, and hosts behind a link. The way in which their data get to the receiver
// connects them.
type scene struct {
	opts     *options
	link     *bottleneck.Link
	receiver *side
	hosts    *side  // all of them
	came     []byte // what has come, size octets for each host
	have     []byte // what each of the hosts sends

	transfers []func(ctx context.Context) error // of each host: all its data get to the receiver
	victim    func(ctx context.Context) error   // the receiver reads a few octets of another host
	granted   func() int64                      // the most octets of the window; nil: there is none
	end       func()                            // ends the connections, while the link exists; nil: nothing
	release   func() error                      // called after the connections have ended; nil: nothing
}

// A side is an RNIC with a PD.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newSide() (s *side, err error) {
	s = new(side)
	if s.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if s.pd, err = s.rnic.AllocPD(); err != nil {
		err = errors.Join(err, s.rnic.Close())
	}
	return s, err
}

// open makes the scene.
func (o *options) open(ctx context.Context, w way) (s *scene, err error) {
	s = &scene{opts: o, link: bottleneck.New(bottleneck.Options{Rate: o.rate, Latency: o.latency, Buffer: o.buffer, Sleep: o.sleep})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.receiver, err = newSide(); err != nil {
		return s, err
	}
	if s.hosts, err = newSide(); err != nil {
		return s, err
	}
	s.came, s.have = make([]byte, o.peers*o.size), pattern(o.size)
	return s, w.open(ctx, s)
}

// pattern returns octets that differ from one piece to the next.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/piece)
	}
	return b
}

// place returns the memory for the data of a host.
func (s *scene) place(host int) []byte {
	n := s.opts.size
	return s.came[host*n : (host+1)*n : (host+1)*n]
}

// check returns an error unless all data of the hosts have come.
func (s *scene) check() error {
	for i := range s.opts.peers {
		if !bytes.Equal(s.place(i), s.have) {
			return fmt.Errorf("the octets of host %d are not those that it has", i)
		}
	}
	return nil
}

func (s *scene) close() (err error) {
	if s.end != nil {
		s.end()
	}
	s.link.Close()
	var all sync.WaitGroup
	for _, d := range []*side{s.receiver, s.hosts} {
		if d != nil {
			all.Go(func() { _ = d.rnic.Close() }) // the link is gone, and with it the connections
		}
	}
	all.Wait()
	if s.release != nil {
		err = s.release()
	}
	return err
}
