package main

import (
	"context"
	"fmt"
	"strings"
)

// checkCapture has tshark decode a capture, and fails on what it cannot make sense of.
// RPC over RDMA is left out: tshark takes short Sends of anybody for it.
func checkCapture(ctx context.Context, file string) error {
	out, err := output(ctx, "", "tshark", "-r", file, "-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "rpcordma",
		"-Y", "_ws.malformed or iwarp_mpa.bad_length or iwarp_mpa.crc_check == 0 or iwarp_mpa.res.not_set0",
		"-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info")
	if err != nil {
		return err
	}
	if lines := strings.TrimSpace(out); lines != "" {
		return fmt.Errorf("tshark objects: %s", tail(lines, 3))
	}
	return nil
}
