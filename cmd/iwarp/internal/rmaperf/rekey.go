package rmaperf

import (
	"errors"
	"time"
)

// rekey compares a Rekey that a client requests with a write of smallSize octets, in turn on one connection. Opening the
// region again after each Rekey does not count.
func (b *bench) rekey() (err error) {
	s := &stand{b: b}
	defer func() { err = errors.Join(err, s.close()) }()
	what := b.sealedService(2)
	addr, err := s.open(what)
	if err != nil {
		return err
	}
	e, written, err := s.endOf(addr, what, 1, 1)
	if err != nil {
		return err
	}
	rotated, err := e.open(2)
	if err != nil {
		return err
	}
	write := e.succeeds("write of 64 octets", writes(written))
	rekey := &timed{name: "Rekey", do: func() (time.Duration, error) {
		began := time.Now()
		err := rotated.Rekey(b.ctx, nil, 0)
		took := time.Since(began)
		return took, errors.Join(err, rotated.Reopen(b.ctx))
	}}
	for range b.opts.Pairs {
		if err := b.block(write, rekey); err != nil {
			return err
		}
	}
	b.noteTimes(write, rekey)
	b.Marks.Most("Rekey, p50 against a 64-octet write", rekey.against(write), 1.1, "")
	return nil
}
