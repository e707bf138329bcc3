package cli

import (
	"fmt"
	"io"
)

// A Progress is a line on a terminal that shows progress. A nil Progress shows nothing.
type Progress struct{ w io.Writer }

// NewProgress returns a line on w if that is a terminal.
func NewProgress(w io.Writer) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	return &Progress{w}
}

// eraseLine moves to the beginning of a terminal's line, and erases it.
const eraseLine = "\r\x1b[K"

// Say replaces the text that is shown.
func (p *Progress) Say(format string, args ...any) {
	if p != nil {
		fmt.Fprintf(p.w, eraseLine+format, args...)
	}
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p != nil {
		fmt.Fprint(p.w, eraseLine)
	}
}
