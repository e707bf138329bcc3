package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goiwarp/iwarp/interop/matrix"
)

// checkCaptures checks every capture of a case: the wire's, and traces of our own.
func checkCaptures(ctx context.Context, dir string, c *matrix.Case) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err == nil && len(files) == 0 {
		err = errors.New("nothing was captured")
	}
	err = errors.Join(err, checkWire(dir, c))
	for _, f := range files {
		cerr := checkCapture(ctx, f)
		if c.SCTP && cerr == nil {
			cerr = checkSCTP(ctx, f)
		}
		if cerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Base(f), cerr))
		}
	}
	return err
}

// objections is what tshark must not find. Where a port is used again it takes the next
// connection's Request and Reply for FPDUs; that is its own mistake.
const objections = `(_ws.malformed and not (iwarp_mpa.fpdu and tcp.payload contains "MPA ID Re"))` +
	" or iwarp_mpa.bad_length or iwarp_mpa.crc_check == 0 or iwarp_mpa.res.not_set0"

// checkCapture has tshark decode a capture, and fails on what it cannot make sense of.
// RPC over RDMA is left out: tshark takes short Sends of anybody for it. What TCP sends
// once more or late is to be put in its place, which is not what tshark does unasked. A
// segment that comes late may complete thousands of FPDUs at once, each a layer of one
// frame for tshark, which takes 500 of them unless told otherwise. What is in messages of
// SCTP it tells by the ports alone, and a port drawn by lot may be anybody's.
func checkCapture(ctx context.Context, file string) error {
	out, err := output(ctx, "", "tshark", "-r", file, "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE", "-o", "gui.max_tree_depth:1000000",
		"--disable-protocol", "rpcordma", "-d", "sctp.port==1-65535,data",
		"-Y", objections,
		"-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info")
	if err != nil {
		return err
	}
	if lines := strings.TrimSpace(out); lines != "" {
		return fmt.Errorf("tshark objects: %s", tail(lines, 3))
	}
	return nil
}
