package sctpkernel

import (
	"testing"
)

func TestBasics(t *testing.T) {
	p := newPair(t)
	p.works()
	t.Log(p.client.LocalAddr(), p.client.RemoteAddr(), p.server.LocalAddr(), p.server.RemoteAddr(), p.client.MaxULPDU())
}
