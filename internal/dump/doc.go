// Package dump decodes packet captures into records: one for each FPDU of MPA, for each DDP segment over SCTP, and for
// each frame of connection set-up. It is what iwarp dump prints. It starts no goroutine and knows no clock: packets
// go in, records come out.
//
//	err := dump.Capture(file, dump.Config{}, func(records []dump.Record) error {
//		for i := range records {
//			fmt.Println(printer.Line(&records[i]))
//		}
//		return nil
//	})
//
// [Capture] reads a capture while it grows: it calls back after each packet. A [Decoder] takes packets that are read
// in another way. A [Printer] makes text of records; encoding/json makes objects whose keys do not change.
//
// # What is decoded
//
//   - Captures of pcap and pcapng: Ethernet with VLAN tags, Linux cooked, raw IP; IPv4 and IPv6.
//   - TCP, put in order. Where octets are missing a record says how many. Decoding goes on where an FPDU begins for
//     certain: at the next TCP segment that begins with an FPDU whose CRC is valid, or where a Marker points.
//     Without CRCs and Markers it ends for this direction of the connection.
//   - MPA of both revisions, with Markers and CRCs as the Request and the Reply have agreed. Where the capture has not
//     these frames, FPDUs with CRCs are found in the same way.
//   - DDP over SCTP, which is over IP or over UDP (RFC 6951); there any port may carry it, as its checksum tells.
//   - RDMAP with the extensions of RFC 7306 and Commit; Terminate in words. Linux siw exchanges the halves of the
//     first octet of a Terminate, which is recognized.
//   - Private data: package cm, the offer of Commit, NVMe, RPC over RDMA, rsocket.
//   - Sends: NVMe, RPC over RDMA and rsocket, where the private data or the port of the responder tell, or
//     [Config] does; package rma, whose first message is a HELLO. What they do not tell is not guessed.
//
// The headers of rma, rsocket and RPC over RDMA are read by code of its own, and not by that of the packages: so a
// mistake that a package makes when it sends as well as when it receives is seen here.
//
// # Limits
//
// The memory is bounded, whatever a capture says: [MaxConnections], [MaxOutOfOrder] and [MaxHeld], and packets of up to
// 262,144 octets.
package dump
