package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goiwarp/iwarp/interop/matrix"
)

// checkCaptures checks every capture of a case: those of the wire, and our own traces.
func checkCaptures(ctx context.Context, dir string, c *matrix.Case) error {
	if c.NoCapture {
		return nil
	}
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

// objections matches what tshark must not find. If a port is reused, tshark takes the next
// connection's Request and Reply for FPDUs, which is a mistake of tshark.
const objections = `(_ws.malformed and not (iwarp_mpa.fpdu and tcp.payload contains "MPA ID Re"))` +
	" or iwarp_mpa.bad_length or iwarp_mpa.crc_check == 0 or iwarp_mpa.res.not_set0"

// checkCapture decodes a capture with tshark, and fails if tshark cannot decode all of it. RPC
// over RDMA is disabled, because tshark mistakes short Sends of other protocols for it. By
// default tshark does not reassemble TCP segments that arrive out of order, so that is enabled.
// A late segment may complete thousands of FPDUs at once, each of which tshark counts as a layer
// of one frame, and it accepts only 500 by default. It recognizes the protocol of SCTP messages
// only by the ports, and a random port may be that of any other protocol; port 4420 is NVMe/TCP's for it.
func checkCapture(ctx context.Context, file string) error {
	out, err := output(ctx, "", "tshark", "-r", file, "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE", "-o", "gui.max_tree_depth:1000000",
		"--disable-protocol", "rpcordma", "--disable-protocol", "nvme-tcp", "-d", "sctp.port==1-65535,data",
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
