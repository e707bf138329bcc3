package rma

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkOperations moves 4 KiB at a time over TCP on this host.
func BenchmarkOperations(b *testing.B) {
	for _, suite := range []string{"suite 0", "suite 1"} {
		for _, what := range []Op{Read, Write} {
			for _, depth := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/%v/%d in flight", suite, what, depth), func(b *testing.B) { benchmark(b, suites()[suite], what, depth) })
			}
		}
	}
}

func benchmark(b *testing.B, p plan, what Op, depth int) {
	p.network = "tcp"
	w := start(b, p)
	h, portal := w.opens(), w.portal(depth)
	bufs := make([][]byte, depth)
	for i := range bufs {
		bufs[i] = make([]byte, 4096)
	}
	post := func(i uint64) {
		if _, err := portal.Post(Command{Op: what, Handle: h, Buf: bufs[i], Tag: i}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(4096)
	b.ReportAllocs()
	ends := make([]Completion, depth)
	begun, done := 0, 0
	for ; begun < min(depth, b.N); begun++ {
		post(uint64(begun))
	}
	for done < b.N {
		n, err := portal.Wait(context.Background(), ends)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range ends[:n] {
			if e.Err != nil {
				b.Fatal(e.Err)
			}
			if done++; begun < b.N {
				begun++
				post(e.Tag)
			}
		}
	}
}
