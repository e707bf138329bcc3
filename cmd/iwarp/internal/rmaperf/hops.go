package rmaperf

import (
	"errors"
	"time"
)

const (
	// delay is the delay of an emulated link, in each direction.
	delay = time.Millisecond
	// fast is the rate of a link on which nothing queues: 10 Gb/s.
	fast = 10e9 / 8
)

// hops compares a sealed write, which has four hops, with a sealed read, which has two, over a link with a delay.
func (b *bench) hops() (err error) {
	what := b.sealedService(1)
	s, err := newScene(b.ctx, what)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cfg, err := clientConfig(true, what.MaxOp)
	if err != nil {
		return err
	}
	e, err := s.client(s.link(fast, delay), cfg, 1)
	if err != nil {
		return err
	}
	h, err := e.open(1)
	if err != nil {
		return err
	}
	read, write := e.succeeds("read of 64 octets, 1 ms each way", reads(h)), e.succeeds("write of 64 octets, 1 ms each way", writes(h))
	for range b.opts.Pairs {
		if err := b.block(read, write); err != nil {
			return err
		}
	}
	b.noteTimes(read, write)
	b.Marks.Most("64-octet write, p50 against a read, link with 1 ms delay", write.against(read), 2.1, "")
	return nil
}
