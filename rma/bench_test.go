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
	var cmds []Command
	post := func() {
		if _, err := portal.PostAll(cmds, nil); err != nil {
			b.Fatal(err)
		}
		cmds = cmds[:0]
	}
	b.SetBytes(4096)
	b.ReportAllocs()
	ends := make([]Completion, depth)
	begun, done := 0, 0
	for ; begun < min(depth, b.N); begun++ {
		cmds = append(cmds, Command{Op: what, Handle: h, Buf: bufs[begun], Tag: uint64(begun)})
	}
	post()
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
				cmds = append(cmds, Command{Op: what, Handle: h, Buf: bufs[e.Tag], Tag: e.Tag})
			}
		}
		post()
	}
}
