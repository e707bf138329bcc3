package transfer

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A progress is a bar on a terminal.
type progress struct {
	w           io.Writer // nil: there is no terminal
	label       string
	done, total int64
	start, next time.Time
}

const (
	barWidth  = 32
	barPeriod = 100 * time.Millisecond
)

// newProgress makes a bar that is shown if w is a terminal.
func newProgress(w io.Writer, label string, total int64) *progress {
	p := &progress{label: label, total: total, start: time.Now()}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		p.w = f
	}
	return p
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// add counts n more octets.
func (p *progress) add(n int64) {
	p.done += n
	if p.w == nil {
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(barPeriod)
		fmt.Fprint(p.w, "\r", p.line(now.Sub(p.start)))
	}
}

// end leaves the bar as it is now and moves to the next line.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprintln(p.w, "\r"+p.line(time.Since(p.start)))
	}
}

func (p *progress) line(took time.Duration) string {
	part := 1.0
	if p.total > 0 {
		part = float64(p.done) / float64(p.total)
	}
	n := int(part * barWidth)
	return fmt.Sprintf("%-10s [%s%s] %3.0f %%  %-12s", p.label,
		strings.Repeat("=", n), strings.Repeat(" ", barWidth-n), 100*part, rate(p.done, took))
}

// rate formats a throughput.
func rate(octets int64, took time.Duration) string {
	if took <= 0 {
		return "- MiB/s"
	}
	return fmt.Sprintf("%.0f MiB/s", float64(octets)/(1<<20)/took.Seconds())
}
