package top

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/goiwarp/iwarp/monitor"
)

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		m.interrupted = true
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	if m.editing {
		m.edit(k)
		return nil
	}
	switch k.String() {
	case "q":
		return tea.Quit
	case "?":
		m.open(helpPage)
	case "e":
		m.open(errorsPage)
	case "p":
		m.paused = !m.paused
	case "esc":
		if m.page == tablePage && m.options.Filter != "" {
			m.filter("")
		}
		m.page = tablePage
	default:
		m.moveKey(k.String())
		if m.page == tablePage {
			m.tableKey(k.String())
		}
	}
	return nil
}

// moveKey handles the keys that move.
func (m *model) moveKey(name string) {
	switch name {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.turn(-m.bodyHeight())
	case "pgdown", "ctrl+f", "space":
		m.turn(m.bodyHeight())
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	}
}

// tableKey handles the keys of the table.
func (m *model) tableKey(name string) {
	switch name {
	case "s", ">":
		m.sort(1)
	case "S", "<":
		m.sort(-1)
	case "r":
		m.options.Reverse = !m.options.Reverse
		m.compare()
	case "/":
		m.editing = true
	case "enter":
		if len(m.view.Rows) > 0 {
			m.detail = detail{row: &m.view.Rows[m.cursor], rates: m.hasRates()}
			m.open(detailPage)
		}
	}
}

// edit changes the filter.
func (m *model) edit(k tea.KeyPressMsg) {
	was := m.options.Filter
	switch k.String() {
	case "enter":
		m.editing = false
	case "esc":
		m.editing = false
		m.filter("")
	case "backspace":
		m.filter(was[:max(len(was)-1, 0)])
	case "ctrl+u":
		m.filter("")
	default:
		if k.Text != "" {
			m.filter(was + clean(k.Text))
		}
	}
}

// open shows another page, or the table if that page is shown already.
func (m *model) open(p page) {
	if m.page == p {
		p = tablePage
	}
	m.page, m.scroll = p, 0
}

// move moves the cursor, or a page that is not the table.
func (m *model) move(by int) {
	if m.page == tablePage {
		m.point(m.cursor + by)
		return
	}
	m.scroll = max(m.scroll+by, 0) // View knows the end
}

// turn moves by a page.
func (m *model) turn(by int) {
	m.first += by // View knows the ends
	m.move(by)
}

// sort sorts by the next column that is shown, or by the previous one. The sum of both directions comes before all columns.
func (m *model) sort(by int) {
	orders := []monitor.Column{monitor.ByRate}
	for _, c := range fitting(m.width, m.seen) {
		orders = append(orders, c.by)
	}
	i := slices.Index(orders, m.options.Sort) // -1: it is not shown any more
	m.options.Sort = orders[(max(i, 0)+by+len(orders))%len(orders)]
	m.compare()
}
