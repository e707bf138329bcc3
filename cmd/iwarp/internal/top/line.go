package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A style is the style of a text. Only faults have a colour.
type style uint8

const (
	plain style = iota
	strong
	faint
	chosen  // the row to which the keys apply
	warning // what may become an error
	failed
)

// A palette maps each style to its look.
type palette map[style]lipgloss.Style

// newPalette returns the palette of a terminal with or without colours.
func newPalette(colours bool) palette {
	base := lipgloss.NewStyle()
	p := palette{strong: base.Bold(true), faint: base.Faint(true), chosen: base.Reverse(true), warning: base.Bold(true), failed: base.Bold(true)}
	if colours {
		p[warning] = base.Foreground(lipgloss.Yellow)
		p[failed] = base.Foreground(lipgloss.Red).Bold(true)
	}
	return p
}

func (p palette) text(s style, t string) string {
	if s == plain || t == "" {
		return t
	}
	return p[s].Render(t)
}

// A span is a part of a line. Its text may come from anywhere: lines clean it.
type span struct {
	style style
	text  string
}

// A line is one line of the screen.
type line []span

// text makes a line in one style.
func text(s style, t string) line { return line{{s, t}} }

// plain returns the line without styles, in full length.
func (l line) plain() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(clean(s.text))
	}
	return strings.TrimRight(b.String(), " ")
}

// render returns the line for a terminal, in at most width columns. A longer line is cut and ends with two dots.
func (l line) render(p palette, width int) string {
	var b strings.Builder
	long := l.len() > width
	if long {
		width -= len(cutMark)
	}
	for _, s := range l {
		t := clean(s.text)
		t = t[:min(len(t), max(width, 0))]
		width -= len(t)
		b.WriteString(p.text(s.style, t))
	}
	if long {
		b.WriteString(cutMark[:max(len(cutMark)+min(width, 0), 0)])
	}
	return b.String()
}

const cutMark = ".."

func (l line) len() (n int) {
	for _, s := range l {
		n += len(clean(s.text))
	}
	return n
}

// clean replaces everything except printable ASCII, so that a text from a peer or a server cannot control the
// terminal, and each character has the width of one column.
func clean(t string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, t)
}

// left returns a clean text, padded to a width. A text that is too long loses its middle: both ends of an address matter.
func left(t string, width int) string {
	t = clean(t)
	if n := len(t); n > width {
		head := (width - len(cutMark)) / 2
		if head < 1 {
			return t[:max(width, 0)]
		}
		return t[:head] + cutMark + t[n-(width-len(cutMark)-head):]
	}
	return t + strings.Repeat(" ", width-len(t))
}

// right returns a clean text, padded on its left to a width.
func right(t string, width int) string {
	t = clean(t)
	return strings.Repeat(" ", max(width-len(t), 0)) + t
}
