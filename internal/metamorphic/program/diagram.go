package program

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp"
)

// An Entry is one event that was observed while a program ran.
type Entry struct {
	Line int // of the program
	End  End
	To   bool // it goes to the peer
	Text string
}

// note adds an entry to the trace.
func (x *run) note(end End, to bool, format string, args ...any) {
	x.trace = append(x.trace, Entry{Line: x.line, End: end, To: to, Text: fmt.Sprintf(format, args...)})
}

const column = 60 // characters of a column of a diagram

// Draw draws what has happened: time runs down, and each end has a column. An arrow leads to the end at which a
// work request is directed. The numbers at the left are line numbers of the program, from 0.
func Draw(conns int, trace []Entry) string {
	var b strings.Builder
	b.WriteString("     ")
	for i := range conns {
		for side := range 2 {
			fmt.Fprintf(&b, "%-*s", column, End{i, side}.String())
		}
	}
	trimRight(&b)
	last := -2
	for _, e := range trace {
		at := "    "
		if e.Line != last && e.Line >= 0 {
			at = fmt.Sprintf("%3d ", e.Line)
		}
		last = e.Line
		b.WriteString(at + " " + row(conns, e))
		trimRight(&b)
	}
	return b.String()
}

// row returns one line of the diagram.
func row(conns int, e Entry) string {
	var cells []string
	for i := range conns {
		left, right := "|", "|"
		text := clip(e.Text, column-3)
		switch {
		case e.End.Conn != i:
		case e.End.Side == 0 && e.To:
			left = text + " " + strings.Repeat("-", max(column-len([]rune(text))-3, 0)) + ">"
		case e.End.Side == 0:
			left = text
		case e.To:
			left, right = "<"+strings.Repeat("-", column-2), text
		default:
			right = text
		}
		cells = append(cells, pad(left), pad(right))
	}
	return strings.Join(cells, "")
}

func pad(s string) string { return s + strings.Repeat(" ", max(column-len([]rune(s)), 0)) }

func clip(s string, n int) string {
	if r := []rune(strings.ReplaceAll(s, "\n", " ")); len(r) > n {
		return string(r[:n-3]) + "..."
	} else {
		return string(r)
	}
}

// trimRight removes the spaces at the end of a line.
func trimRight(b *strings.Builder) {
	s := strings.TrimRight(b.String(), " ")
	b.Reset()
	b.WriteString(s + "\n")
}

// describe returns the text of a work request.
func describe(w *Work) string {
	s := w.Op.String()
	if w.Region != nil {
		s += fmt.Sprintf(" r%d", w.Region.number)
	}
	if w.Inval != nil {
		s += fmt.Sprintf(" of r%d", w.Inval.number)
	}
	if w.Bad != "" {
		s += ", bad " + w.Bad
	}
	if w.Region != nil && w.Op != iwarp.OpRegister && w.Op != iwarp.OpBind {
		s += fmt.Sprintf(" at %d", w.To)
	}
	if n := w.length(); n > 0 {
		s += fmt.Sprintf(" len %d", n)
	}
	for _, f := range []struct {
		flag iwarp.Flags
		text string
	}{{iwarp.Unsignaled, "uns"}, {iwarp.ReadFence, "fence"}, {iwarp.LocalFence, "lfence"}} {
		if w.Flags&f.flag != 0 {
			s += " " + f.text
		}
	}
	return s
}

// sends reports whether work goes to the peer.
func sends(op iwarp.Op) bool {
	return op != iwarp.OpRegister && op != iwarp.OpBind && op != iwarp.OpLocalInvalidate
}
