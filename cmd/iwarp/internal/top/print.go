package top

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/goiwarp/iwarp/monitor"
)

// print prints the view of each interval, as text or as JSON.
func (o *options) print(ctx context.Context, from *source, before *monitor.State, to io.Writer) error {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(o.interval):
		}
		now, err := from.fetch(ctx, o.interval+patience)
		if err != nil {
			return err
		}
		m := newModel(o, before, nil)
		m.take(sample{state: now, at: now.Time})
		if o.json {
			err = printJSON(to, m.view)
		} else {
			err = printText(to, m)
		}
		if err != nil || o.once || n == o.count {
			return err
		}
		before = now
	}
}

// printText prints the page with all rows and columns.
func printText(to io.Writer, m *model) error {
	const width, unlimited = 120, 1 << 20
	out := bufio.NewWriter(to)
	for _, l := range m.header(width, unlimited) {
		fmt.Fprintln(out, l.plain())
	}
	all := *m
	all.width, all.height, all.cursor = unlimited, unlimited, -1
	for _, l := range all.table() {
		fmt.Fprintln(out, l.plain())
	}
	return out.Flush()
}

// printJSON prints one line. Everything except printable ASCII is escaped.
func printJSON(to io.Writer, view *monitor.View) error {
	v := *view
	v.Latencies, v.Errors, v.Rows = present(v.Latencies), present(v.Errors), present(v.Rows)
	b, err := json.Marshal(&v)
	if err != nil {
		return err
	}
	line := make([]byte, 0, len(b)+1)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch high, low := utf16.EncodeRune(r); {
		case r >= ' ' && r <= '~':
			line = append(line, b[0])
		case n == utf8.UTFMax:
			line = fmt.Appendf(line, `\u%04x\u%04x`, high, low)
		default:
			line = fmt.Appendf(line, `\u%04x`, r)
		}
		b = b[n:]
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// present returns a list that in JSON is [], not null, if it is empty.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
