package rmaperf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"
)

// A child process measures in virtual time what would otherwise depend on the precision of timers and the speed of the
// processors: in it computations take no time, and waits take exactly as long as they should. Package
// synctest has virtual time only for tests, so that process is a test of one function.

// serveFlows runs that process. It does not return.
func serveFlows(o *options, stdout io.Writer) {
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "virtual time", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			periods, err := measureFlows(o, ratePhase)
			if err == nil {
				err = json.NewEncoder(stdout).Encode(periods)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}}}, nil, nil)
}

// flowsInVirtualTime starts that process.
func (b *bench) flowsInVirtualTime() (all []period, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(b.ctx, self, "perf", "rma", "--virtual", "--crc="+strconv.FormatBool(b.opts.CRC),
		"--rate", strconv.FormatInt(b.opts.rate*8/1e6, 10))
	c.Stderr = b.stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("the process in virtual time: %w: %s", err, out)
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&all); err != nil {
		return nil, fmt.Errorf("the process in virtual time: %w", err)
	}
	if len(all) < 2 {
		return nil, errors.New("the process in virtual time has measured nothing")
	}
	return all, nil
}
