package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Rights say what the peer may do with a region. An access beyond them ends the peer's
// connection and changes nothing.
func ExamplePD_RegisterMR() {
	_, peer, pd, done := pair()
	defer done()

	memory := []byte("to be read only")
	region := must(pd.RegisterMR(memory, stag.RemoteRead, nil))
	lent := peer.Remote(region.Advertise(0, len(memory)))

	p := make([]byte, len(memory))
	must(lent.ReadAt(p, 0))
	fmt.Printf("%s\n", p)
	must(lent.WriteAt([]byte("oh"), 0)) // leaves, and is refused there
	<-peer.Done()
	fmt.Printf("%s: %v\n", memory, errors.Is(peer.Err(), iwarp.ErrAccess))
	// Output:
	// to be read only
	// to be read only: true
}

// A peer can access only the regions of its own protection domain, even if it knows the STags
// of others.
func ExampleRNIC_AllocPD() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	ours, theirs := must(rnic.AllocPD()), must(rnic.AllocPD())
	secret := must(ours.RegisterMR([]byte("secret"), stag.RemoteRead, nil))

	client, _ := joined(rnic, theirs, iwarp.QPConfig{}, iwarp.QPConfig{})
	_, err := client.Remote(secret.Advertise(0, 6)).ReadAt(make([]byte, 6), 0)
	var terminate *iwarp.TerminateError
	errors.As(err, &terminate)
	fmt.Println(terminate)
	// Output: iwarp: terminated by the peer: RDMAP remote protection: STag not associated with the stream (0/1/03)
}

// Parts of a region are the sources and targets of work requests.
func ExampleMR_Slice() {
	client, server, pd, done := pair()
	defer done()

	memory := []byte("head----------body")
	region := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	check(server.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{region.Slice(4, 10)}}))
	check(client.Send(context.Background(), region.Slice(0, 4), region.Slice(14, 4))) // gathered

	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(context.Background(), wcs[:]))
	fmt.Printf("%s\n", memory[4:4+wcs[0].Len])
	fmt.Println(errors.Is(client.Send(context.Background(), region.Slice(10, 9)), iwarp.ErrBounds))
	// Output:
	// headbody
	// true
}

// A part of a region is advertised to the peer. Addresses of this process are not revealed: the
// peer counts from MROptions.BaseTO.
func ExampleMR_Advertise() {
	_, peer, pd, done := pair()
	defer done()

	region := must(pd.RegisterMR([]byte("page 1page 2"), stag.RemoteRead, &iwarp.MROptions{BaseTO: 1000}))
	page := region.Advertise(6, 6)
	fmt.Println(page.STag == region.STag(), page.TO, page.Len)

	p := make([]byte, 6)
	must(peer.Remote(page).ReadAt(p, 0))
	fmt.Printf("%s\n", p)
	fmt.Println(region.Advertise(6, 7) == iwarp.RemoteBuffer{}) // there are only six
	// Output:
	// true 1006 6
	// page 2
	// true
}

// A client may read 1 MiB, and reads a record of 16 octets in the middle of it.
func ExampleRemoteBuffer_Slice() {
	client, _, pd, done := pair()
	defer done()
	memory := make([]byte, 1<<20)
	copy(memory[512<<10:], "a record of mine")
	lent := must(pd.RegisterMR(memory, stag.RemoteRead, nil)).Advertise(0, 1<<20)

	record := make([]byte, 16)
	sink := must(pd.RegisterMR(record, stag.LocalWrite, nil))
	check(client.RDMARead(context.Background(), sink.Slice(0, 16), lent.Slice(512<<10, 16)))
	fmt.Printf("%s\n", record)
	fmt.Println(lent.Slice(1<<20, 16)) // out of range: it names nothing
	// Output:
	// a record of mine
	// {0x00000000 0 0}
}

// A RemoteBuffer as 16 octets, for the private data or a Send.
func ExampleRemoteBuffer_AppendBinary() {
	here := iwarp.RemoteBuffer{STag: 0x01020304, TO: 4096, Len: 512}
	message := must(here.AppendBinary([]byte("at ")))
	fmt.Printf("%q\n", message)

	var there iwarp.RemoteBuffer
	check(there.UnmarshalBinary(message[3:]))
	fmt.Println(there == here)
	// Output:
	// "at \x01\x02\x03\x04\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x02\x00"
	// true
}

// The octets of a Send become a RemoteBuffer for the peer's memory again.
func ExampleRemoteBuffer_UnmarshalBinary() {
	var lent iwarp.RemoteBuffer
	check(lent.UnmarshalBinary([]byte("\x01\x02\x03\x04\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x02\x00")))
	fmt.Printf("STag %#x, offset %d, %d octets\n", uint32(lent.STag), lent.TO, lent.Len)
	fmt.Println(lent.UnmarshalBinary(make([]byte, 15)) != nil)
	// Output:
	// STag 0x1020304, offset 4096, 512 octets
	// true
}

// Memory of the peer for a package that needs an io.ReaderAt.
func ExampleQP_Remote() {
	client, _, pd, done := pair()
	defer done()
	theirs := must(pd.RegisterMR([]byte("a book in far memory"), stag.RemoteRead, nil)).Advertise(0, 20)

	remote := client.Remote(theirs)
	chapter := io.NewSectionReader(remote, 2, remote.Size()-2)
	fmt.Printf("%s\n", must(io.ReadAll(chapter)))
	// Output: book in far memory
}

// Reading past the end returns io.EOF, as with a file.
func ExampleRemoteMemory_ReadAt() {
	client, _, pd, done := pair()
	defer done()
	theirs := must(pd.RegisterMR([]byte("far memory"), stag.RemoteRead, nil)).Advertise(0, 10)

	p := make([]byte, 16)
	n, err := client.Remote(theirs).ReadAt(p, 4)
	fmt.Printf("%s, %v\n", p[:n], err)
	// Output: memory, EOF
}

// Writing past the end is refused as a whole. What was written is in place when a later RDMA
// Read has completed.
func ExampleRemoteMemory_WriteAt() {
	client, _, pd, done := pair()
	defer done()
	memory := []byte("----------")
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil)).Advertise(0, 10)
	remote := client.Remote(theirs)

	must(remote.WriteAt([]byte("far"), 2))
	check(client.RDMARead(context.Background(), iwarp.SGE{}, iwarp.RemoteBuffer{}))
	fmt.Printf("%s\n", memory)
	_, err := remote.WriteAt([]byte("far"), 8)
	fmt.Println(err)
	// Output:
	// --far-----
	// iwarp: outside the bounds of the region: writing 3 octets at 8 of 10
}
