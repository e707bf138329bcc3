package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A result is the result of a slice.
type result struct {
	execs, inputs int64
	cpu           time.Duration
	finding       string
}

// stallTime is how long a target may execute nothing: longer than a wait for a busy processor.
const stallTime = 3 * time.Minute

// A watch reads what the testing package prints while it fuzzes.
type watch struct {
	stalled func() // stops the target
	began   time.Time

	mu       sync.Mutex
	text     bytes.Buffer
	result   result
	baseline string // its progress with the known inputs
	hangs    bool
	timer    *time.Timer
}

var (
	progressLine = regexp.MustCompile(`execs: (\d+) \(\d+/sec\), new interesting: (\d+) `)
	baselineLine = regexp.MustCompile(`gathering baseline coverage: (\d+/\d+)`)
)

// Write takes output. A line may arrive in parts; the next line repeats the information.
func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	for line := range strings.Lines(string(p)) {
		w.line(line)
	}
	return len(p), nil
}

// line takes a line. The caller holds the mutex.
func (w *watch) line(line string) {
	if m := baselineLine.FindStringSubmatch(line); m != nil && m[1] != w.baseline {
		w.baseline = m[1]
		w.timer.Reset(stallTime)
	}
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	execs, _ := strconv.ParseInt(m[1], 10, 64)
	inputs, _ := strconv.ParseInt(m[2], 10, 64)
	if execs > w.result.execs {
		w.timer.Reset(stallTime)
	}
	w.result.execs, w.result.inputs = max(w.result.execs, execs), max(w.result.inputs, inputs)
}

// alive starts the timer.
func (w *watch) alive() {
	w.timer = time.AfterFunc(stallTime, func() {
		w.mu.Lock()
		w.hangs = true
		w.mu.Unlock()
		w.stalled()
	})
}

func (w *watch) stop() { w.timer.Stop() }

func (w *watch) progress() result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}

// finding returns what is wrong, if anything: the program has ended with err, after it was stopped or by itself.
func (w *watch) finding(err error, stopped bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text.String()
	switch {
	case w.hangs:
		return "nothing was executed for " + stallTime.String() + "\n" + text
	case strings.Contains(text, "--- FAIL"), strings.Contains(text, "Failing input written"):
		return text
	case err != nil && !stopped:
		return err.Error() + "\n" + text
	}
	return ""
}
