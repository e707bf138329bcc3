package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goiwarp/iwarp/monitor"
)

// A model is the state that the screen shows and that keys change. It does no I/O: fetch is called in a goroutine of its own.
type model struct {
	interval time.Duration
	fetch    func() (*monitor.State, error)
	palette  palette

	width, height int

	before, now *monitor.State
	options     monitor.Options
	view        *monitor.View
	seen        lengths

	failure error     // why the last fetch has failed; nil if it has not
	failing time.Time // since when fetches have failed
	clock   time.Time // the time of the last fetch

	page    page
	scroll  int // the first line that is shown of a page that is not the table
	first   int // the first row that is shown
	cursor  int // the row to which keys apply
	detail  detail
	editing bool // the filter is being typed
	paused  bool

	interrupted bool // by Ctrl-C
}

// A page is a page that the screen can show.
type page uint8

const (
	tablePage page = iota
	detailPage
	errorsPage
	helpPage
)

// A sample is the result of a fetch, with its time.
type sample struct {
	state *monitor.State
	err   error
	at    time.Time
}

// A due is the message that the next fetch is due.
type due struct{}

// newModel returns a model that shows a first state.
func newModel(o *options, first *monitor.State, fetch func() (*monitor.State, error)) *model {
	m := &model{
		interval: o.interval, fetch: fetch, palette: newPalette(false), width: 80, height: 24,
		options: monitor.Options{Sort: monitor.Column(o.sort), Filter: o.filter}, seen: make(lengths),
	}
	m.take(sample{state: first, at: first.Time})
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.wait() }

// wait returns a command that ends when the next fetch is due.
func (m *model) wait() tea.Cmd {
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.editing {
			m.filter(m.options.Filter + clean(msg.Content))
		}
	case due:
		if m.paused {
			return m, m.wait()
		}
		return m, func() tea.Msg {
			s, err := m.fetch()
			return sample{s, err, time.Now()}
		}
	case sample:
		if !m.paused { // it may have been paused since the fetch began
			m.take(msg)
		}
		return m, m.wait()
	}
	return m, nil
}

// take takes the result of a fetch. If it is from another process, the model starts anew.
func (m *model) take(s sample) {
	m.clock = s.at
	if s.err != nil {
		if m.failure == nil {
			m.failing = s.at
		}
		m.failure = s.err
		return
	}
	m.failure = nil
	if m.now != nil && m.now.Process != s.state.Process {
		m.now, m.seen, m.cursor, m.detail = nil, make(lengths), 0, detail{}
		if m.page == detailPage {
			m.page = tablePage
		}
	}
	m.before, m.now = m.now, s.state
	m.compare()
	m.detail.take(m.before, m.now)
}

// compare makes the view. The cursor stays at its position on the screen, whichever connection is there: if rows followed their
// connections, they could not be read from top to bottom. A pause keeps all rows in place.
func (m *model) compare() {
	m.view = monitor.Compare(m.before, m.now, m.options)
	m.seen.see(m.view.Rows)
	m.point(m.cursor)
}

// point moves the cursor to row i, or to the nearest row that exists.
func (m *model) point(i int) { m.cursor = max(min(i, len(m.view.Rows)-1), 0) }

// filter sets the filter.
func (m *model) filter(text string) {
	m.options.Filter, m.cursor = text, 0
	m.compare()
}

// hasRates reports whether the view compares two states.
func (m *model) hasRates() bool { return m.view.Interval > 0 }
