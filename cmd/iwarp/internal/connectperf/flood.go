package connectperf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	// paceEvery is the time from one set-up of howPaced to the next.
	paceEvery = 5 * time.Millisecond
	// attackers is the number of addresses from which forged and replayed Requests come.
	attackers = 64
	// attackTime is the longest time for which an attacker holds its connection.
	attackTime = time.Second
)

// paced begins a set-up at each tick, and spreads the attacks over the time between two.
func (r *run) paced(ctx context.Context) {
	var request []byte
	if r.Bad > 0 {
		var err error
		if request, err = r.client.record(ctx, r.qc); err != nil {
			r.failed(fmt.Errorf("no Request to forge: %w", err))
			return
		}
	}
	each := 1 + r.Bad
	tick := time.NewTicker(paceEvery / time.Duration(each))
	defer tick.Stop()
	var all sync.WaitGroup
	for i := range r.N * each {
		<-tick.C
		if i%each == 0 {
			all.Go(func() { r.failed(r.dial(ctx)) })
		} else {
			all.Go(func() { r.failed(attack(r.addr, request, i)) })
		}
	}
	all.Wait()
}

// attack connects from one of many loopback addresses, sends the recorded Request, every
// other time with one bit changed, and sends nothing more. Only a failure to connect is
// an error.
func attack(addr string, request []byte, i int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%attackers))}, Timeout: attackTime}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return fmt.Errorf("an attacker: %w", err)
	}
	_ = c.(*net.TCPConn).SetLinger(0) // otherwise that many connections would use up the ports
	defer c.Close()                   //nolint:errcheck // it was reset
	if i%2 == 0 {
		request = slices.Clone(request)
		bit := i / 2 % (8 * (len(request) - frameStart))
		request[frameStart+bit/8] ^= 1 << (bit % 8)
	}
	if c.SetDeadline(time.Now().Add(attackTime)) != nil {
		return nil
	}
	if _, err = c.Write(request); err == nil {
		_, _ = io.Copy(io.Discard, c) // until the server or the time ends it
	}
	return nil
}

// frameStart is the length of the fixed part of an MPA Request frame. Its last two octets are the
// length of the private data.
const frameStart = 20

// record returns a valid Request frame, which no server has seen.
func (c *client) record(ctx context.Context, qc *iwarp.QPConfig) (frame []byte, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // nothing is lost with it
	ctx, cancel := context.WithTimeout(ctx, attackTime)
	var dialing sync.WaitGroup
	dialing.Go(func() {
		_, _ = c.rnic.Dial(ctx, "tcp", l.Addr().String(), qc) // there is no answer
	})
	conn, err := l.Accept()
	if err == nil {
		frame = make([]byte, frameStart)
		if _, err = io.ReadFull(conn, frame); err == nil {
			frame = append(frame, make([]byte, binary.BigEndian.Uint16(frame[frameStart-2:]))...)
			_, err = io.ReadFull(conn, frame[frameStart:])
		}
		err = errors.Join(err, conn.Close())
	}
	cancel()
	dialing.Wait()
	return frame, err
}
