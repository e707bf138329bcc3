package mpa

import (
	"fmt"
	"testing"
)

var benchTerms = []struct {
	name         string
	crc, markers bool
}{{"crc", true, false}, {"crc-markers", true, true}, {"plain", false, false}}

// BenchmarkEncode makes FPDUs of staged payload in hot memory. A ULPDU has 14
// octets more than the payload.
func BenchmarkEncode(b *testing.B) {
	for _, v := range benchTerms {
		for _, n := range []int{64, 512, 1400, 4096, 60000} {
			b.Run(fmt.Sprintf("%s/%d", v.name, n), func(b *testing.B) {
				e, head, payload := encoder{crc: v.crc, markers: v.markers}, octets(14), [][]byte{octets(n)}
				out := batches.Get()
				b.SetBytes(int64(n))
				for b.Loop() {
					if !out.fits(14+n, e.pieces(payload, 14+n, true), batchBytes) {
						out.release()
						out = batches.Get()
					}
					e.encode(out, head, payload, 14+n, true)
				}
				out.release()
			})
		}
	}
}

// BenchmarkDecode finds one FPDU again and again, in hot memory. It uses no Markers,
// because they would be gone after the first time.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{64, 512, 1400, 4096, 60000} {
		b.Run(fmt.Sprintf("crc/%d", n), func(b *testing.B) {
			d, wire := decoder{crc: true}, encoded(&encoder{crc: true}, true, octets(14+n))
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, fault := d.next(wire); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}
