package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// View implements tea.Model.
func (m *model) View() tea.View {
	lines := m.screen()
	rendered := make([]string, len(lines))
	for i, l := range lines {
		rendered[i] = l.render(m.palette, m.width)
	}
	v := tea.NewView(strings.Join(rendered, "\n"))
	v.AltScreen = true
	return v
}

// screen returns the lines that are shown, as many as the screen has.
func (m *model) screen() []line {
	var lines []line
	if m.page == tablePage {
		lines = append(m.header(m.width, m.height), m.table()...)
	} else {
		content := m.content()
		m.scroll = min(m.scroll, max(len(content)-m.bodyHeight(), 0))
		lines = append([]line{m.title(m.width), {}}, content[m.scroll:]...)
	}
	last := max(m.height-1, 0)
	for len(lines) < last {
		lines = append(lines, line{})
	}
	return append(lines[:last], m.footer())[:m.height]
}

// bodyHeight returns how many lines remain for rows, or for the contents of a page below its title.
func (m *model) bodyHeight() int {
	above := 2
	if m.page == tablePage {
		above = len(m.header(m.width, m.height)) + 1
	}
	return max(m.height-above-1, 1)
}

// table returns the heading, and the rows that are shown.
func (m *model) table() []line {
	shown, rows := fitting(m.width, m.seen), m.view.Rows
	lines := []line{heading(shown, &m.options)}
	height := m.bodyHeight()
	m.first = max(min(m.first, m.cursor, len(rows)-height), m.cursor-height+1, 0)
	for i := m.first; i < min(m.first+height, len(rows)); i++ {
		l := row(shown, &rows[i], m.hasRates())
		if i == m.cursor {
			l = line{{chosen, l.plain()}, {chosen, strings.Repeat(" ", max(m.width-len(l.plain()), 0))}}
		}
		lines = append(lines, l)
	}
	switch {
	case len(rows) > 0:
	case m.view.QPs == 0:
		lines = append(lines, text(plain, "no connections"))
	default:
		lines = append(lines, text(plain, "no connection has all of these words: esc drops the filter"))
	}
	return lines
}

// content returns all lines of a page that is not the table.
func (m *model) content() []line {
	switch m.page {
	case detailPage:
		return m.detail.lines()
	case errorsPage:
		return everything(m.view)
	default:
		return help()
	}
}

// footer returns the line that lists the keys, and says which part of the table is shown.
func (m *model) footer() line {
	if m.page != tablePage {
		return text(faint, "esc back  q quit")
	}
	where := m.position()
	room := max(m.width-len(where)-2, 0)
	keys := span{faint, "q quit  ? help  / filter  s sort  p pause  enter details"}
	switch {
	case m.editing:
		t := "filter: " + m.options.Filter + "_"
		keys = span{strong, t[max(len(t)-room, 0):]} // where it is typed
	case m.paused:
		keys = span{warning, "paused: p goes on"}
	}
	keys.text = keys.text[:min(len(keys.text), room)]
	return line{keys, {plain, right(where, m.width-len(keys.text))}}
}

// position says which rows are shown, of how many, and in which order.
func (m *model) position() string {
	n := len(m.view.Rows)
	t := "0"
	if n > 0 {
		t = fmt.Sprintf("%s-%s", whole(m.first+1), whole(min(m.first+m.bodyHeight(), n)))
	}
	t += " of " + whole(n)
	if m.options.Filter != "" && !m.editing {
		t += fmt.Sprintf(" with %q", m.options.Filter)
	}
	t += " by " + string(m.options.Sort)
	if m.options.Reverse {
		t += ", reversed"
	}
	return t
}
