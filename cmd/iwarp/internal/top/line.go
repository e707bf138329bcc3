package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A style says what a text is. Only what is wrong has a colour.
type style uint8

const (
	plain style = iota
	strong
	faint
	chosen  // the row that the keys apply to
	warning // what may become an error
	failed
)

// A palette has the look of each style.
type palette map[style]lipgloss.Style

// newPalette makes the look of a terminal with colours, or without.
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

// plain is the line without styles, as long as it is.
func (l line) plain() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(clean(s.text))
	}
	return strings.TrimRight(b.String(), " ")
}

// render is the line of at most width columns, for a terminal. Two dots stand at the end of one that is longer.
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

// clean replaces all but the printable characters of ASCII, so that a text from a peer or a server cannot command the
// terminal, and each character has the width of one column.
func clean(t string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, t)
}

// left is a clean text that is filled up to a width. One that is too long loses its middle: both ends of an address matter.
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

// right is a clean text behind so many spaces that it ends at a width.
func right(t string, width int) string {
	t = clean(t)
	return strings.Repeat(" ", max(width-len(t), 0)) + t
}
