// Package dump decodes packet captures into records: one for each MPA FPDU, for each DDP segment over SCTP, and for
// each frame of connection set-up. The command iwarp dump prints these records. The package starts no goroutine and
// uses no clock: it only turns packets into records.
//
//	err := dump.Capture(file, dump.Config{}, func(records []dump.Record) error {
//		for i := range records {
//			fmt.Println(printer.Line(&records[i]))
//		}
//		return nil
//	})
//
// [Capture] can read a capture while it grows: it calls back after each packet. A [Decoder] takes packets from other
// sources. A [Printer] formats records as text; encoding/json produces objects whose keys do not change.
//
// # What is decoded
//
//   - pcap and pcapng captures: Ethernet with VLAN tags, Linux cooked, raw IP; IPv4 and IPv6.
//   - TCP, put in order. If octets are missing, a record says how many. Decoding continues where an FPDU certainly
//     begins: at the next TCP segment that begins with an FPDU whose CRC is valid, or where a Marker points. Without
//     CRCs and Markers, it ends for this direction of the connection.
//   - MPA of both revisions, with the Markers and CRCs on which the Request and the Reply have agreed. If the capture
//     lacks these frames, FPDUs with CRCs are found in the same way.
//   - DDP over SCTP, over IP or over UDP (RFC 6951); over UDP it is recognized on any port by its checksum.
//   - RDMAP with the extensions of RFC 7306 and Commit; Terminate in words. Linux siw exchanges the halves of the
//     first octet of a Terminate, which is recognized.
//   - Private data: package cm, the offer of Commit, NVMe, RPC over RDMA, rsocket.
//   - Sends: NVMe, RPC over RDMA and rsocket, if the private data, the port of the responder or [Config] reveal the
//     protocol; package rma, whose first message is a HELLO. Nothing else is guessed.
//
// The package decodes the headers of rma, rsocket and RPC over RDMA with its own code, not with that of the packages.
// So it reveals a mistake that a package makes both when it sends and when it receives.
//
// # Limits
//
// The memory is bounded for any capture: by [MaxConnections], [MaxOutOfOrder] and [MaxHeld], and by packets of at most
// 262,144 octets.
package dump
