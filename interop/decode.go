package main

import (
	"context"
	"fmt"
	"strings"
)

// checkCapture has tshark decode a capture, and fails on what it cannot make sense of.
// Malformed counts only at layers below a Send's payload: tshark takes a Send of four
// octets for more than it is.
func checkCapture(ctx context.Context, file string) error {
	out, err := output(ctx, "", "tshark", "-r", file, "-o", "tcp.try_heuristic_first:TRUE",
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
