package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The types of SCTP chunks and parameters that are examined.
const (
	chunkData       = "0"
	chunkInit       = "1"
	chunkInitAck    = "2"
	paramAdaptation = "0xc006"
)

// sctpFields lists what tshark prints for each SCTP packet, over IP or over UDP: for a packet
// with several chunks, the values of all chunks, separated by commas.
var sctpFields = []string{
	"frame.number", "sctp.chunk_type", "sctp.parameter_type", "sctp.adaptation_layer_indication", "sctp.data_u_bit", "sctp.data_b_bit", "sctp.data_e_bit", "sctp.data_payload_proto_id",
}

// checkSCTP decodes a capture with tshark, and fails if it is not DDP over SCTP.
func checkSCTP(ctx context.Context, file string) error {
	args := []string{"-r", file, "-Y", "sctp", "-T", "fields"}
	for _, f := range sctpFields {
		args = append(args, "-e", f)
	}
	out, err := output(ctx, "", "tshark", args...)
	if err != nil {
		return err
	}
	return judgeSCTP(out)
}

// judgeSCTP requires the indication of DDP in every INIT and INIT ACK, every message to be
// unordered, whole and with one of DDP's two payload protocol identifiers, and at least one of
// each of these (RFC 5043 sections 5, 9 and 10).
func judgeSCTP(packets string) error {
	seen := map[string]bool{}
	for line := range strings.Lines(packets) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != len(sctpFields) {
			return fmt.Errorf("tshark tells %d fields of a packet: %q", len(f), line)
		}
		if err := judgePacket(f[1:], seen); err != nil {
			return fmt.Errorf("frame %s: %w", f[0], err)
		}
	}
	for _, want := range []string{"INIT", "INIT ACK", "PPID 16", "PPID 17"} {
		if !seen[want] {
			return errors.New("no " + want + " in the capture")
		}
	}
	return nil
}

// judgePacket records what a packet contains.
func judgePacket(f []string, seen map[string]bool) error {
	var v [7][]string
	for i := range v {
		v[i] = strings.FieldsFunc(f[i], func(r rune) bool { return r == ',' })
	}
	chunks, parameters, indications, flags, ppids := v[0], v[1], v[2], slices.Concat(v[3], v[4], v[5]), v[6]
	for kind, name := range map[string]string{chunkInit: "INIT", chunkInitAck: "INIT ACK"} {
		if !slices.Contains(chunks, kind) {
			continue
		}
		seen[name] = true
		if !slices.Contains(parameters, paramAdaptation) || !slices.Equal(indications, []string{"0x00000001"}) {
			return fmt.Errorf("%s with the indications %q", name, indications)
		}
	}
	messages := 0
	for _, c := range chunks {
		if c == chunkData {
			messages++
		}
	}
	if len(ppids) != messages || len(flags) != 3*messages || slices.Contains(flags, "0") {
		return fmt.Errorf("%d messages with U, B and E %q", messages, flags)
	}
	for _, p := range ppids {
		if p != "16" && p != "17" {
			return fmt.Errorf("a message with the payload protocol identifier %s", p)
		}
		seen["PPID "+p] = true
	}
	return nil
}
