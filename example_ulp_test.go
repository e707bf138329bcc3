package iwarp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A sender that counts credits never sends a message for which no receive is posted. The receiver first posts a receive
// again, and only then grants it again: here for several messages at a time, in a message of two octets.
func Example_credits() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()
	const receives, size, batch = 8, 16, 4 // what both programs know, from the private data for example

	inbox := make([]byte, receives*size)
	lent := must(pd.RegisterMR(inbox, stag.LocalWrite, nil))
	for slot := range receives {
		check(server.PostRecv(iwarp.RecvWR{ID: uint64(slot), Local: []iwarp.SGE{lent.Slice(slot*size, size)}}))
	}
	go func() {
		used := 0
		for wc, err := range server.RecvCQ().All(ctx) {
			if err != nil || wc.Err() != nil {
				return // the end of the connection
			}
			// The message is inbox[wc.ID*size:][:wc.Len], until its receive is posted again.
			check(server.PostRecv(iwarp.RecvWR{ID: wc.ID, Local: []iwarp.SGE{lent.Slice(int(wc.ID)*size, size)}}))
			if used++; used == batch {
				grant := binary.BigEndian.AppendUint16(nil, batch)
				check(server.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: grant}))
				used = 0
			}
		}
	}()

	grants := make([]byte, 2*receives/batch) // for as many grants as can be under way
	granted := must(pd.RegisterMR(grants, stag.LocalWrite, nil))
	expect := func(slot int) {
		check(client.PostRecv(iwarp.RecvWR{ID: uint64(slot), Local: []iwarp.SGE{granted.Slice(2*slot, 2)}}))
	}
	for slot := range receives / batch {
		expect(slot)
	}
	credits := receives
	wait := func() {
		var wcs [1]iwarp.WC
		must(client.RecvCQ().Wait(ctx, wcs[:]))
		check(wcs[0].Err())
		credits += int(binary.BigEndian.Uint16(grants[2*wcs[0].ID:]))
		expect(int(wcs[0].ID))
	}
	for i := range 100 {
		for credits == 0 {
			wait()
		}
		credits--
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: fmt.Append(nil, "message ", i)}))
	}
	for credits < receives {
		wait()
	}
	fmt.Println("messages that waited for a receive:", server.Stats().ReceiveWaits)
	// Output: messages that waited for a receive: 0
}

const pageSize = 4096

// pages are a Buffer whose octets are not contiguous.
type pages [][]byte

func (p pages) Size() int64 { return int64(len(p)) * pageSize }

func (p pages) ReadAt(b []byte, off int64) (int, error) {
	return p.move(b, off, func(page, b []byte) int { return copy(b, page) })
}

func (p pages) WriteAt(b []byte, off int64) (int, error) {
	return p.move(b, off, func(page, b []byte) int { return copy(page, b) })
}

func (p pages) move(b []byte, off int64, move func(page, b []byte) int) (n int, err error) {
	for n < len(b) {
		i := off / pageSize
		if i >= int64(len(p)) {
			return n, io.EOF
		}
		moved := move(p[i][off%pageSize:], b[n:])
		n, off = n+moved, off+int64(moved)
	}
	return n, nil
}

// The pages of a cache are registered under one STag for one request, and the peer sees contiguous octets. This is what
// ib_map_mr_sg and IB_WR_REG_MR do in the Linux kernel.
func ExamplePD_AllocMR_pages() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	cache := pages{make([]byte, pageSize), make([]byte, pageSize), make([]byte, pageSize)}
	region := must(pd.AllocMR(len(cache)*pageSize, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: client}))
	must(client.Do(ctx, iwarp.SendWR{Op: iwarp.OpRegister, MR: region, Buffer: cache, Access: stag.LocalWrite | stag.RemoteWrite}))
	where := region.Advertise(0, len(cache)*pageSize) // the client would send this with its request
	check(client.PostRecv(iwarp.RecvWR{}))

	// The server writes the answer, and ends the loan with the message that tells of it.
	check(server.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: []byte("over the edge"), Remote: where.Slice(pageSize-5, 13)},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.Unsignaled, Invalidate: where.STag}))

	var wcs [1]iwarp.WC
	must(client.RecvCQ().Wait(ctx, wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%q %q, invalidated: %v\n", cache[0][pageSize-5:], cache[1][:8], wcs[0].STag == region.STag())
	// Output: "over " "the edge", invalidated: true
}
