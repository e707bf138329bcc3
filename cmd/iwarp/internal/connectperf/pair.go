package connectperf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// interleaved measures points in turn, repeats times, in a separate client process with a server
// that answers after delay. It returns the samples of each point.
func interleaved(ctx context.Context, stderr io.Writer, delay time.Duration, repeats int, points ...point) (all []samples, err error) {
	k, err := peer.Start(ctx, stderr, "perf", "connect", "--serve", "--delay", delay.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Stop()) }()
	in, err := json.Marshal(order{Points: points, Repeats: repeats})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "perf", "connect", "--client", k.Addr)
	c.Stdin, c.Stderr = bytes.NewReader(in), stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("the client process: %w", err)
	}
	all = make([]samples, len(points))
	d := json.NewDecoder(bytes.NewReader(out))
	for i := range repeats * len(points) {
		s := new(sample)
		if err := d.Decode(s); err != nil {
			return nil, err
		}
		all[i%len(points)] = append(all[i%len(points)], s)
	}
	return all, nil
}
