package main

import (
	"bytes"
	"errors"
	"fmt"
)

// A check collects errors.
type check struct{ errs []error }

func (c *check) err() error { return errors.Join(c.errs...) }

// ok expects no error.
func (c *check) ok(what string, err error) {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// fails expects an error that matches want.
func (c *check) fails(what string, err, want error) {
	if !errors.Is(err, want) {
		c.errs = append(c.errs, fmt.Errorf("%s: want %q, have %s", what, want.Error(), fmt.Sprint(err)))
	}
}

// holds expects the octets at off to be want.
func (c *check) holds(what string, p *pair, off int, want []byte) {
	got, err := p.read(off, len(want))
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("want %.40q, have %.40q", want, got)
	}
	c.ok(what, err)
}
