package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/interop/pace"
)

// Addresses of the two ends.
const (
	OurIP    = "10.1.0.1"
	OurIP6   = "fd00::1"
	PeerIP   = "10.1.0.2"
	PeerIP6  = "fd00::2"
	basePort = 7174
)

// A T is a running case. It implements require.TestingT of testify.
type T struct {
	*Case
	Ctx context.Context // ends with the case's limit
	Dir string          // for the files of the case

	pace    *pace.Gauge // stretches every limit
	capture *capture
	mu      sync.Mutex
	why     []string
	notes   []string
	cleanup []func()
}

// Errorf records a failure.
func (t *T) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = append(t.why, brief(fmt.Sprintf(format, args...)))
}

// figure adds a note to the report of the case.
func (t *T) figure(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// FailNow ends the case. It must be called by the goroutine that runs it.
func (t *T) FailNow() { runtime.Goexit() }

// Cleanup makes f run when the case ends; the function that was added last runs first.
func (t *T) Cleanup(f func()) { t.cleanup = append(t.cleanup, f) }

// brief joins testify's lines into one: the words after its labels, without the stack.
func brief(s string) string {
	var parts []string
	skip := false
	for line := range strings.Lines(s) {
		label, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case ok && label == "Error Trace":
			skip = true
			continue
		case ok && (label == "Error" || label == "Messages"):
			skip, line = false, rest
		}
		if line = strings.TrimSpace(line); line != "" && !skip {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// CaptureFile is the name of the file, in the folder of the case, with the traffic between the two ends.
const CaptureFile = "capture.pcap"

// Run runs one case and returns its result. The gauge stretches its limits.
func Run(ctx context.Context, gauge *pace.Gauge, c *Case, dir string) Result {
	limit := c.Limit
	if limit == 0 {
		limit = time.Minute
	}
	over := fmt.Errorf("the case has reached its limit of %v", limit)
	ctx, cancel := gauge.Context(ctx, limit, over)
	defer cancel()
	hang, cancelHang := gauge.Context(context.WithoutCancel(ctx), limit+15*time.Second, nil)
	defer cancelHang()
	t := &T{Case: c, Ctx: ctx, Dir: dir, pace: gauge}
	scale := gauge.Scale()
	began := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.end()
		t.begin()
		c.Run(t)
	}()
	select {
	case <-ended:
	case <-hang.Done():
		t.Errorf("hangs beyond its limit:\n%s", stacks(t.Dir))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	why := slices.Clone(t.why)
	if len(why) > 0 && errors.Is(context.Cause(ctx), over) {
		why = slices.Insert(why, 0, over.Error())
	}
	return Result{
		Name: c.Name, Done: true, Passed: len(why) == 0,
		Why: strings.Join(why, "; "), Notes: slices.Clone(t.notes), Took: time.Since(began).Round(time.Millisecond), Scale: scale,
	}
}

func (t *T) begin() {
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		t.Errorf("%v", err)
		t.FailNow()
	}
	if t.NoCapture {
		return
	}
	var err error
	if t.capture, err = startCapture(ourDevice); err != nil {
		t.Errorf("capture: %v", err)
		t.FailNow()
	}
}

func (t *T) end() {
	for _, f := range slices.Backward(t.cleanup) {
		f()
	}
	if t.capture == nil {
		return
	}
	if err := t.capture.stop(filepath.Join(t.Dir, CaptureFile)); err != nil {
		t.Errorf("capture: %v", err)
	}
}

// stacks writes the stacks of all goroutines to the folder of the case.
func stacks(dir string) string {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	file := filepath.Join(dir, "stacks")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return err.Error()
	}
	return "see stacks"
}
